"""Who decides: networks, index policies, dispatching rules."""
