"""Why a policy of any form chose what it chose: what it compared, as its decider has left it behind."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels import state as S
from acerl_np.kernels.deciders import (
    AgentsDecider,
    Decider,
    IndexDecider,
    NetworkDecider,
    YardstickDecider,
)
from acerl_np.kernels.futures import Ahead
from acerl_np.kernels.rules import AHP, LWT, N_RULES
from acerl_np.kernels.state import Problem, State
from acerl_np.kernels.trace import rate_tasks
from acerl_np.policies.rules import RULES
from acerl_np.simulation.trace import Alternative, Reason

MOST = 8
"""Alternatives that a reason names."""

MEASURES = {
    "FCFS": "arrival, s",
    "EDD": "due, s",
    "NVF": "way to the pickup, m",
    "STD": "way to pickup and delivery, m",
    "LWT": "waiting, s",
    "AHP": "weight of due time and loaded way",
    "nearest": "approach, m",
    "fcfs-nearest": "arrival, s",
    "edd-nearest": "due, s",
    "opentcs": "due, s",
    "assignment": "approach less 0.3 of the waiting, s",
}
"""What each rule compares first. LWT and AHP take the largest, the others the smallest."""

RULE_NAMES = {number: name for name, number in RULES.items()}

LOOKAHEAD = "mean makespan of the futures, with a penalty for tardiness, s"


def explain_choice(
    decider: Decider | Ahead, problem: Problem, state: State, b: int, chosen: tuple[int, int, int]
) -> Reason:
    """Return why an assignment was chosen, before it is carried out."""
    v, position, rule = chosen
    if isinstance(decider, Ahead):
        return _compare_futures(decider, state, b, chosen)
    if isinstance(decider, IndexDecider):
        pairs, n = decider.pairs, int(decider.pairs.n[0])
        tasks = state.pool[b, pairs.position[:n]]
        listed = zip(pairs.vehicle[:n].tolist(), tasks.tolist(), pairs.score[:n], strict=True)
        found = [Alternative(w, task, "", float(score)) for w, task, score in listed]
        return Reason("index", "score", _best_with(found, v, int(state.pool[b, position]), ""))
    name = RULE_NAMES[rule]
    if isinstance(decider, YardstickDecider):
        n_vehicles = problem.instance[state.episode[b, S.EPISODE_INSTANCE], S.INSTANCE_N_VEHICLES]
        value = decider.value[:n_vehicles, : state.episode[b, S.EPISODE_POOL_SIZE]]
        found = [
            Alternative(w, int(state.pool[b, k]), name, float(value[w, k]))
            for w, k in np.argwhere(np.isfinite(value)).tolist()
        ]
        own = _best_with(found, v, int(state.pool[b, position]), name, sign=1.0)
        return Reason(name, MEASURES[name], own)
    if isinstance(decider, NetworkDecider):
        found = _list_actions(decider, problem, state, b)
        own = _best_with(found, v, int(state.pool[b, position]), name)
        return Reason(f"network, {name}", "probability", own)
    by = f"agents, {name}" if isinstance(decider, AgentsDecider) else name
    if name not in MEASURES:
        return Reason(by)
    return Reason(by, MEASURES[name], _compare_tasks(problem, state, b, v, position, rule))


def _rate(problem: Problem, state: State, b: int, v: int, rule: int) -> np.ndarray:
    keys = np.empty(int(state.episode[b, S.EPISODE_POOL_SIZE]))
    rate_tasks(problem, state, b, v, rule, keys)
    return keys


def _compare_tasks(
    problem: Problem, state: State, b: int, v: int, position: int, rule: int
) -> tuple[Alternative, ...]:
    """Return the tasks that a rule compares for a vehicle, the one it picks first."""
    keys = _rate(problem, state, b, v, rule)
    sign = -1.0 if rule in (LWT, AHP) else 1.0
    order = [k for k in np.argsort(keys, kind="stable")[:MOST].tolist() if np.isfinite(keys[k])]
    return tuple(
        Alternative(v, int(state.pool[b, k]), RULE_NAMES[rule], sign * float(keys[k]))
        for k in order
    )


def _list_actions(
    decider: NetworkDecider, problem: Problem, state: State, b: int
) -> list[Alternative]:
    """Return a network's legal actions with their probabilities."""
    actions, found = [], []
    for v in np.flatnonzero(state.vehicle[b, :, S.VEHICLE_STATUS] == S.IDLE).tolist():
        for rule in range(N_RULES):
            keys = _rate(problem, state, b, v, rule)
            if np.isfinite(keys).any():
                actions.append(v * N_RULES + rule)
                found.append((v, int(state.pool[b, np.argmin(keys)]), RULE_NAMES[rule]))
    logits = decider.layers.logits[actions].astype(np.float64)
    weights = np.exp(logits - logits.max())
    return [
        Alternative(*own, float(value))
        for own, value in zip(found, weights / weights.sum(), strict=True)
    ]


def _best_with(
    found: list[Alternative], v: int, task: int, rule: str, sign: float = -1.0
) -> tuple[Alternative, ...]:
    """Return the alternatives of largest value, or with sign 1 of least, the chosen one among them."""
    ordered = sorted(found, key=lambda item: sign * item.value)
    best = ordered[:MOST]
    chosen = [item for item in ordered[MOST:] if item[:3] == (v, task, rule)]
    return (*(best[:-1] if chosen else best), *chosen[:1])


def _compare_futures(ahead: Ahead, state: State, b: int, chosen: tuple[int, int, int]) -> Reason:
    """Return what a lookahead's candidates came to; without a comparison there is one candidate."""
    found: dict[tuple[int, int], float] = {}
    for row in range(len(ahead.candidate)):
        for k in range(int(ahead.n_candidates[row])):
            w, position = (int(x) for x in ahead.candidate[row, k])
            pair = (w, int(state.pool[b, position]))
            value = float(ahead.total[row, k]) / ahead.n_futures
            found[pair] = min(value, found.get(pair, np.inf))
    if len(found) < 2:
        return Reason("lookahead, the only candidate")
    ordered = sorted(found.items(), key=lambda item: item[1])[:MOST]
    return Reason(
        "lookahead", LOOKAHEAD, tuple(Alternative(*pair, "", value) for pair, value in ordered)
    )
