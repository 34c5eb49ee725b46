"""How it plays out: the simulator, many episodes on threads, past assignments, pictures of an episode."""
