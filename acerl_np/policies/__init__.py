"""Who decides: networks, dispatching rules, static plans."""
