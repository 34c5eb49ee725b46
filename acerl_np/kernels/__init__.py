"""Compiled functions on plain arrays: the simulator, the network, the random streams, ranking, update.

Nothing here raises, allocates in a loop or knows a file. Arrays are checked once, by the callers.
"""
