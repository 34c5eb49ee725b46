"""Compiled functions on plain arrays: the simulator, the network, the random streams, ranking, update.

Nothing here raises or knows a file, and no loop over decisions allocates; the hindsight search sorts each
level into a new array. Arrays are checked once, by the callers. `state` names the arrays, their fields and
the index letters; docstrings of kernels do not repeat them, nor those of a decider or a view. Functions named
`allocate_...` and `make_...` are plain Python: they return what the kernels work on.
"""
