"""What a policy sees at a decision: features of waiting tasks and vehicles, and the legal actions.

Most task slots are empty, so features are listed as (index, value) pairs; everything not listed is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion import offers, trips, ways
from acerl_np.kernels.networks import network
from acerl_np.support.compiled import inner_kernel

N_TASK_FEATURES = 4
"""Features of a waiting task, in this order: loaded way, waiting time, expiry, demand."""

N_VEHICLE_FEATURES = 3
"""Features of a vehicle before its ways to the waiting tasks: speed, status, capacity."""

N_SEEN_FIELDS = 2
SEEN_SLOT, SEEN_TASK = range(N_SEEN_FIELDS)


class View(NamedTuple):
    """What is seen in B episodes, and the scratch to list it in.

    Attributes
    ----------
    observation : ndarray(float32, (B, n_features)), zero in episodes that are over
    mask : ndarray(bool, (B, n_actions)), legal actions, all False in episodes that are over
    features : Features
    seen : ndarray(int64, (n_features, N_SEEN_FIELDS)), see `list_seen`
    legal : ndarray(int32, (n_actions,))
    rules : ndarray(int64, (R,)), the rules of a vehicle's actions
    """

    observation: np.ndarray
    mask: np.ndarray
    features: network.Features
    seen: np.ndarray
    legal: np.ndarray
    rules: np.ndarray


def allocate_view(n_episodes: int, n_features: int, n_vehicles: int, rules: np.ndarray) -> View:
    """Return a `View` of `n_episodes` in which nothing is seen."""
    n_actions = n_vehicles * len(rules)
    return View(
        observation=np.zeros((n_episodes, n_features), np.float32),
        mask=np.zeros((n_episodes, n_actions), np.bool_),
        features=network.allocate_features(n_features),
        seen=np.empty((n_features, N_SEEN_FIELDS), np.int64),
        legal=np.empty(n_actions, np.int32),
        rules=rules,
    )


@inner_kernel
def append_feature(features, n, position, feature):
    """Append a feature to the list of n (`features`, modified) unless it is zero; return its new length."""
    narrow = np.float32(feature)
    if narrow != np.float32(0.0):
        features.position[n] = position
        features.value[n] = narrow
        n += 1
    return n


@inner_kernel
def list_seen(problem, state, b, slots, seen):
    """List the waiting tasks of episode b that have one of the slots, by slot; return their number.

    Of two tasks of one slot, as a future may bring them, the first of the record is seen.

    Parameters
    ----------
    seen : ndarray(int64, (at least slots, N_SEEN_FIELDS))
        Output.
        SEEN_SLOT : from 0, ascending
        SEEN_TASK
    """
    i = state.episode[b].instance
    n = np.int64(0)
    for k in range(state.episode[b].pool_size):
        task = state.pool[b, k]
        slot = np.int64(problem.record[i, task].slot) - 1
        if slot < 0:
            if k >= slots:
                break
            slot = np.int64(k)
        if slot >= slots:
            continue
        position = n
        while position > 0 and seen[position - 1, SEEN_SLOT] > slot:
            position -= 1
        if position > 0 and seen[position - 1, SEEN_SLOT] == slot:
            seen[position - 1, SEEN_TASK] = min(seen[position - 1, SEEN_TASK], task)
            continue
        for later in range(n, position, -1):
            seen[later, SEEN_SLOT] = seen[later - 1, SEEN_SLOT]
            seen[later, SEEN_TASK] = seen[later - 1, SEEN_TASK]
        seen[position, SEEN_SLOT] = slot
        seen[position, SEEN_TASK] = task
        n += 1
    return n


@inner_kernel
def list_features(problem, state, b, features, seen):
    """List the non-zero features of episode b in ascending order and return their number.

    Parameters
    ----------
    state : State, the positions of working vehicles are brought up to date
    features : Features, output
    seen : ndarray(int64, (at least as many as slots, N_SEEN_FIELDS)), output, see `list_seen`
    """
    i = state.episode[b].instance
    now = state.episode[b].time
    scale = problem.scaling[i]
    slots = problem.instance[i].task_slots
    n_seen = list_seen(problem, state, b, slots, seen)
    distance = problem.distance[problem.instance[i].layout]
    truncate = problem.instance[i].truncates
    n = np.int64(0)
    for place in range(n_seen):
        task = seen[place, SEEN_TASK]
        waiting = np.float64(now) - state.waiting_since[b, task]
        first = N_TASK_FEATURES * seen[place, SEEN_SLOT]
        own = problem.record[i, task]
        seen_of = own.loaded, waiting, own.expiry, own.demand
        for k in range(N_TASK_FEATURES):
            # Scaling constants stand in the features' order, two of each.
            x = (seen_of[k] - scale[2 * k]) / scale[2 * k + 1]
            n = append_feature(features, n, first + k, x)
    for v in range(problem.instance[i].n_vehicles):
        status = state.vehicle[b, v].status
        if trips.drives(status):
            trips.locate_vehicle(problem, state, b, v, now)
        # The reference knows three: idle, working, broken.
        free = offers.is_free(state, b, v)
        status = S.IDLE if free else S.BROKEN if status == S.BROKEN else S.WORKING
        first = N_TASK_FEATURES * slots + v * (N_VEHICLE_FEATURES + slots)
        speed = problem.fleet[i, v].speed / scale[S.SCALING_SPEED]
        capacity = problem.fleet[i, v].capacity / scale[S.SCALING_CAPACITY]
        seen_of_it = speed, status / np.float64(S.BROKEN), capacity
        for k in range(N_VEHICLE_FEATURES):
            n = append_feature(features, n, first + k, seen_of_it[k])
        site = ways.find_stand(state, b, v)
        for k in range(n_seen):
            task = seen[k, SEEN_TASK]
            ends = problem.ends[i, task]
            pickup, delivery = ends.pickup, ends.delivery
            total = distance[site, pickup] + distance[pickup, delivery]
            if S.is_endless(problem, total):
                continue
            total = S.measure_distance(total, truncate)
            x = (total - scale[S.SCALING_TOTAL_MID]) / scale[S.SCALING_TOTAL_HALF]
            n = append_feature(features, n, first + N_VEHICLE_FEATURES + seen[k, SEEN_SLOT], x)
    return n


@inner_kernel
def list_actions(problem, state, b, n_rules, legal):
    """List the legal actions of episode b in ascending order and return their number.

    Parameters
    ----------
    n_rules : int, actions of each vehicle
    legal : ndarray(int32, (n_actions,)), output
    """
    n = 0
    for v in range(problem.instance[state.episode[b].instance].n_vehicles):
        if offers.has_choice(problem, state, b, v):
            for rule in range(n_rules):
                legal[n] = v * n_rules + rule
                n += 1
    return n


@inner_kernel
def write_view(problem, state, b, view):
    """Write to `view` what is seen in row b, and which actions are legal; nothing once it is over."""
    view.observation[b, :] = np.float32(0.0)
    view.mask[b, :] = False
    if state.episode[b].phase != S.RUNNING:
        return
    n = list_features(problem, state, b, view.features, view.seen)
    for k in range(n):
        view.observation[b, view.features.position[k]] = view.features.value[k]
    n = list_actions(problem, state, b, len(view.rules), view.legal)
    for k in range(n):
        view.mask[b, view.legal[k]] = True
