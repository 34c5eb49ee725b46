"""What no schedule of a record can be better than: proven bounds, cheap ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.rounding import cut_metres
from acerl_np.problem.goal import Goal, read_objective
from acerl_np.problem.instance import Instance, find_earliest
from acerl_np.problem.tables import build_problem


def bound_objective(instance: Instance, goal: Goal) -> float:
    """Return a value of the objective that no schedule of this record goes below.

    Each task is taken to be served at once, by the fastest vehicle that may carry it, from the nearest place
    where one can stand: a start, or the delivery of another task; where vehicles break down, park, charge or
    are called back, the pickup itself. Charging is taken to cost no time. The makespan is also that of all
    work from some arrival on, shared evenly by the fleet. Empty metres are taken to be none.
    Of a chain the last task is done when all rides and all processing before are, and so is all that a
    machine has to do, shared by its servers, from the first delivery there on.
    """
    if instance.layout.traffic is not None:  # which ignores routes by name
        instance = replace(instance, layout=replace(instance.layout, named_routes=()))
    problem = build_problem([instance], goal=goal)
    fleet, distance, record = problem.fleet[0], problem.distance[0], problem.record[0]
    pickup, delivery = problem.ends["pickup"][0], problem.ends["delivery"][0]
    arrival, handling = record["arrival"], record["handling"]
    layout = instance.layout
    breaks = layout.has_random_breakdowns or any(x.breakdowns for x in layout.vehicles)
    approach = np.zeros(len(record))
    if not breaks and not problem.instance["auxiliary"][0]:
        places = np.union1d(problem.start_site[0], delivery)
        approach = distance[np.ix_(places, pickup)].min(axis=0)
    capacity = fleet["capacity"]
    able = (capacity == 0.0) | (record["demand"][:, np.newaxis] <= capacity)
    speed = np.where(able, fleet["speed"], 0.0).max(axis=1)
    if not speed.all():
        return np.inf  # some task can never be carried
    metres = approach + distance[pickup, delivery]
    metres = cut_metres(metres, problem.instance["truncates"][0])
    service = np.maximum(1.0, np.ceil(metres / speed + handling - 1e-6))
    waiting = np.minimum(np.ceil(approach / speed - 1e-6), service)
    begin = problem.arrival_tick[0].astype(float)
    finish = begin + service
    end, delay = finish, finish - arrival - record["expiry"]
    wait = waiting + begin - arrival
    if not instance.is_plain:
        # A vehicle may wait at the pickup until a task is ready. Each way is begun on a whole tick.
        cut = float(problem.instance["truncates"][0])
        seconds = (distance[pickup, delivery] - cut) / speed + handling
        ride = np.maximum(0.0, np.ceil(seconds - 1.0 + 1e-6))
        delivered = np.maximum(finish, find_earliest(instance, ride) + ride)
        machines = _bound_machines(instance, problem, delivered, ride)
        end = np.append(delivered + instance.processing, machines)
        delay, wait = ride - record["expiry"], np.zeros(len(record))
    # Work that arrives from a task on, shared by the fleet; tasks stand by their arrival.
    shared = begin + np.cumsum(service[::-1])[::-1] / len(fleet)
    last = len(problem.class_weight) - 1
    weights = problem.class_weight[np.minimum(record["priority"].astype(int), last)]
    weights = weights / weights.sum()
    least = {
        "makespan": max(end.max(), shared.max()),
        "tardiness": float(weights @ np.maximum(0.0, delay)),
        "late": 100.0 * float(weights @ (delay > 1e-6)),
        "waiting": float(weights @ wait),
        "empty": 0.0,
        "worst": max(0.0, float(delay.max())),
    }
    return float(sum(w * least[name] for name, w in read_objective(goal.objective).items()))


def _bound_machines(
    instance: Instance, problem: S.Problem, delivered: np.ndarray, ride: np.ndarray
) -> list[float]:
    """Return for each machine when all of its work, and what follows it, is done at the earliest.

    By the earliest deliveries and the least rides, s, float64 (n_tasks,). Of the tasks that come last, of any
    number: the first of them is delivered, all are processed, and the shortest rest follows.
    """
    chain, found = problem.chain[0], []
    ticks = chain["processing"]
    left = np.zeros(len(ticks))
    for k in range(len(ticks) - 1, -1, -1):
        before = instance.after[k]
        if before >= 0:  # which stands before it
            left[before] = max(left[before], ride[k] + instance.processing[k] + left[k])
    for machine, servers in enumerate(problem.servers[0]):
        own = np.flatnonzero(chain["machine"] == machine)
        own = own[np.argsort(-delivered[own], kind="stable")]
        work = np.cumsum(ticks[own]) / max(1, servers)
        found += (delivered[own] + work + np.minimum.accumulate(left[own])).tolist()
    return found
