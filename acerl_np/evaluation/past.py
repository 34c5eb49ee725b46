"""Past assignments judged as policies are: played in the simulator, trial by trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acerl_np.evaluation.margin import SHARES
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import Playing, Trials
from acerl_np.kernels.core.state import Outcome, join_outcomes
from acerl_np.problem.goal import MEASURES, Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.records import Assignments
from acerl_np.simulation.arena import stream_keys
from acerl_np.simulation.replay import Replay, replay_assignments


def play_past(past: Sequence[Assignments], playing: Playing) -> Trials:
    """Play past assignments, one for each record.

    Only random breakdowns are drawn, those that policies meet with this seed; where there are none all trials
    of a record are equal.
    """
    played = []
    for item in past:
        random = item.instance.layout.has_random_breakdowns
        different = playing.trials if random else 1
        for key in stream_keys([item.instance], different, playing.seed):
            replay = replay_assignments(item, horizon=playing.horizon, key=key, goal=playing.goal)
            played += [replay.outcome] * (playing.trials // different)
    return _make_trials(past, played, playing.goal)


def measure_past(past: Sequence[Assignments], playing: Playing) -> Trials | None:
    """Return what the recorded finishes come to, all trials equal; None if some are not known, or of chains.

    Starts and finishes do not tell the waiting, the empty metres and the delay: these are nan, and so is an
    objective that asks for them.
    """
    if not all(item.instance.is_plain and np.isfinite(item.finish).all() for item in past):
        return None
    played = []
    for item in past:
        instance, busy = item.instance, 0.0
        last = np.full(len(instance.layout.vehicles), -np.inf)
        for k in item.order:
            busy += max(0.0, item.finish[k] - max(item.start[k], last[item.vehicle[k]]))
            last[item.vehicle[k]] = item.finish[k]
        delay = item.finish - instance.arrival - instance.expiry
        weights = playing.goal.make_class_weights()
        weights = weights[np.minimum(instance.priority.astype(int), len(weights) - 1)]
        late = float(weights @ (delay > 1e-9) / weights.sum())
        known = {"makespan": item.finish.max(), "late": late, "worst": max(0.0, delay.max())}
        known["tardiness"] = float(weights @ np.maximum(0.0, delay) / weights.sum())
        unit = {name: 100.0 if name in SHARES else 1.0 for name in MEASURES}
        sums = [
            sum(
                w * unit[x] * known.get(x, math.nan)
                for x, w in zip(MEASURES, row, strict=True)
                if w
            )
            for row in playing.goal.make_table().tolist()
        ]
        known |= {"value": sums[0], "cost": sums[1], "busy": busy, "decisions": len(delay)}
        one = Outcome(*(np.array([known.get(name, math.nan)]) for name in Outcome._fields))
        played += [one] * playing.trials
    return _make_trials(past, played, playing.goal)


def _make_trials(past: Sequence[Assignments], played: Sequence[Outcome], goal: Goal) -> Trials:
    """Return trials whose utilisation counts vehicles from when they joined until they left."""
    trials = Trials.of([item.instance for item in past], join_outcomes(played), goal)
    present = np.ones_like(trials.makespan)
    for k, item in enumerate(past):
        if item.present is not None:
            end = trials.makespan[k, :, np.newaxis]
            seconds = np.maximum(0.0, np.minimum(item.present[:, 1], end) - item.present[:, 0])
            present[k] = seconds.mean(axis=1) / trials.makespan[k]
    return replace(trials, utilisation=trials.utilisation / present)


def measure_delays(replay: Replay) -> np.ndarray:
    """Return how far each task's simulated start is behind the recorded one, float64 (n_tasks,), s."""
    return np.asarray(replay.start - replay.assignments.start)


def estimate_lengthening(replays: Sequence[Replay]) -> tuple[float, float, int]:
    """Return how many times as long driving took as in the simulator, with its error, and of how many trips.

    By recorded finishes, of trips that began when their vehicle was free; handling is taken as given. nan of
    fewer than two.
    """
    took, free = list[float](), list[float]()
    for replay in replays:
        past, handling = replay.assignments, replay.assignments.instance.handling_time
        last = np.full(len(past.instance.layout.vehicles), -np.inf)
        for k in past.order:
            v, finish = past.vehicle[k], past.finish[k]
            if np.isfinite(finish) and np.isfinite(last[v]):
                took.append(finish - max(past.start[k], last[v]) - handling[k])
                free.append(replay.finish[k] - replay.start[k] - handling[k])
            last[v] = finish
    return _compare_times(took, free)


def _compare_times(took: Sequence[float], free: Sequence[float]) -> tuple[float, float, int]:
    """Return the ratio of the sums of times, its standard error, and of how many; nan of fewer than two."""
    x, y = np.array(took), np.array(free)
    if len(x) < 2 or not y.sum() > 0.0:
        return math.nan, math.nan, len(x)
    factor = float(x.sum() / y.sum())
    error = float((x - factor * y).std(ddof=1) / (y.mean() * math.sqrt(len(x))))
    return factor, error, len(x)


def estimate_meeting(instance: Instance, policy: str = "nearest") -> tuple[float, float, int]:
    """Return how many times as long driving takes as where nobody meets, its error, and of how many trips.

    A policy plays a record on its floor, on which vehicles meet but do not break down. Each trip counts from
    where its vehicle set out, beside the way from there without others. nan of fewer than two.
    """
    layout = instance.layout.with_breakdowns({}).with_random_breakdowns(None)
    took, free = list[float](), list[float]()
    for trip in trace_policy(policy, replace(instance, layout=layout)).trips:
        if not trip.delivered:
            continue
        took.append(trip.end - trip.start - trip.pause - instance.handling_time[trip.task])
        free.append(took[-1] - trip.delay)
    return _compare_times(took, free)
