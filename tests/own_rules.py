"""Rules and features as users write them: some equal to the package's, and each function of a floor once."""

import math

import acerl_np


@acerl_np.rule
def near(floor, vehicle, task):
    return floor.metres(vehicle, task)


@acerl_np.rule(vehicle="random")
def first(floor, vehicle, task):
    return floor.arrival(task)


@acerl_np.rule(vehicle="random")
def weighed(floor, vehicle, task):
    due, trip = floor.mean("due", vehicle), floor.mean("trip", vehicle)
    due = 0.37 * floor.due(task) / due if due > 0.0 else 0.0
    both = due + (0.63 * floor.trip(task) / trip if trip > 0.0 else 0.0)
    return -math.floor(1e9 * both + 0.5)


@acerl_np.rule
def near_in_a_loop(floor, vehicle, task):
    """The same as near, with a loop, and names of its own that modules have, too."""
    random, math = 0.0, 0
    while math < 4:
        random += floor.metres(vehicle, task) / 4
        math += 1
    return random


@acerl_np.rule
def drawn(floor, vehicle, task):
    return floor.draw(vehicle, task)


@acerl_np.rule
def nothing(floor, vehicle, task):
    return 0.0 if floor.demand(task) > 0.0 else math.nan


@acerl_np.feature(scale=0.4, unit="s", words="way to the pickup")
def way(floor, vehicle, task):
    return floor.approach(vehicle, task)


@acerl_np.feature(scale=0.5, unit="s")
def waited(floor, vehicle, task):
    return floor.waiting(task)


@acerl_np.feature(scale=1.0)
def odd(floor, vehicle, task):
    return 1.0 if task % 2 else math.inf


@acerl_np.feature(scale=0.1)
def chance(floor, vehicle, task):
    return floor.draw(vehicle, task)


def unmarked(floor, vehicle, task):
    return 0.0
