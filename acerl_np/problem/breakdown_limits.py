"""Limits on random breakdowns: how frequent they may be, and when an episode with them is stopped."""

from __future__ import annotations

import math

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError

MAX_HORIZON = 1e15
"""Latest horizon of any episode, s."""

RANDOM_HORIZON = 100
"""Where vehicles break down at random an episode might never end, so without a horizon it is stopped
after so many times the time that the slowest vehicle alone would need, if it never broke down."""

MAX_TRIES = 1000
"""Most tries that a task may take in the mean until a vehicle has served it without a random failure."""

MAX_CYCLES = 1_000_000
"""Mean times from failure to failure of the vehicle that fails most often, after which an episode is
stopped in any case: a kernel cannot be interrupted."""


def find_last_tick(instance: Instance, horizon: float | None = None) -> int:
    """Return the tick at which an episode with random breakdowns is stopped, at most `MAX_HORIZON`.

    That is `horizon`, s, by default as `RANDOM_HORIZON` says; `MAX_CYCLES` comes first if it is earlier.
    """
    models = [vehicle.random_breakdowns for vehicle in instance.layout.vehicles]
    cycle = min(x.mean_time_between_failures + x.mean_time_to_repair for x in models if x)
    if horizon is None:
        horizon = RANDOM_HORIZON * _measure_alone(instance)
    return int(min(horizon, MAX_CYCLES * cycle, MAX_HORIZON))


def check_tries(instance: Instance) -> None:
    """Refuse random breakdowns so frequent that some task would hardly ever be finished (`InputError`)."""
    routes = instance.layout.routes
    # What every try takes at least: the way to the delivery, without any to the pickup.
    least = np.full(instance.n_tasks, np.inf)
    shown = np.zeros(instance.n_tasks)
    for vehicle in instance.layout.vehicles:
        able = instance.demand <= (vehicle.capacity or np.inf)
        loaded = routes.find_time(vehicle.speed)[instance.pickup, instance.delivery]
        seconds = loaded + instance.handling_time
        model = vehicle.random_breakdowns
        uptime = np.inf if model is None else model.mean_time_between_failures
        failures = np.where(able, seconds / uptime, np.inf)
        shown = np.where(failures < least, seconds, shown)
        least = np.minimum(least, failures)
    worst = int(np.argmax(np.where(np.isfinite(least), least, 0.0)))
    if np.isfinite(least[worst]) and least[worst] > math.log(MAX_TRIES):
        mean = shown[worst] / least[worst]
        raise InputError(
            f"{instance.name}: task '{instance.tasks[worst]}' takes at least {shown[worst]:.0f} s, and "
            f"vehicles break down at random every {mean:g} s in the mean: expected a mean time between "
            f"failures of at least {math.ceil(shown[worst] / math.log(MAX_TRIES))} s"
        )


def _measure_alone(instance: Instance) -> float:
    """Return when the slowest vehicle alone would be done at the latest, s."""
    slowest = min(vehicle.speed for vehicle in instance.layout.vehicles)
    time = instance.layout.routes.find_time(slowest)
    ways = time[:, instance.pickup]
    approach = np.where(np.isfinite(ways), ways, 0.0).max(axis=0)
    work = float((approach + time[instance.pickup, instance.delivery]).sum())
    work += float((instance.handling_time + instance.processing).sum())
    expiry = np.where(np.isinf(instance.expiry), 0.0, instance.expiry)
    due = float((instance.arrival + expiry).max())
    return due + work
