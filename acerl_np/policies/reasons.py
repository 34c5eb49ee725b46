"""Why a policy of any form chose what it chose: what it compared, as its decider has left it behind."""

from __future__ import annotations

import numpy as np

from acerl_np.kernels.core.state import Problem, State
from acerl_np.kernels.dispatching import deciders as D
from acerl_np.kernels.dispatching.greedy_rollout import LAST_END, MOST_STEPS, TOTAL_LATE
from acerl_np.kernels.dispatching.index import COMPLETED, CURRENT
from acerl_np.kernels.dispatching.own import OwnDecider
from acerl_np.kernels.dispatching.rules import AHP, LWT
from acerl_np.kernels.motion.offers import is_free
from acerl_np.kernels.rollout.futures import Ahead
from acerl_np.kernels.rollout.trace import rate_tasks
from acerl_np.policies.index import find_by_number
from acerl_np.policies.own import FUNCTIONS
from acerl_np.policies.rules import RULE_NAMES
from acerl_np.problem.goal import MEASURES, find_unit, write_objective
from acerl_np.simulation.trace import Alternative, Outlook, Part, Reason

MOST = 8
"""Alternatives that a reason names."""

MOST_PARTS = 3
"""Parts of a score that it names."""

COMPARED = {
    "FCFS": "arrival, s",
    "EDD": "due, s",
    "NVF": "way to the pickup, m",
    "STD": "way to pickup and delivery, m",
    "LWT": "waiting, s",
    "AHP": "weight of due time and loaded way",
    "nearest": "approach, s",
    "fcfs-nearest": "arrival, s",
    "edd-nearest": "due, s",
    "opentcs": "due, s",
    "assignment": "approach less 0.3 of the waiting, s",
    "shortest": "approach and half of the loaded way, s",
    "overdue": "approach, s",
}
"""What each rule compares first. LWT and AHP take the largest, the others the smallest."""


def explain_choice(
    decider: D.Decider | Ahead, problem: Problem, state: State, b: int, chosen: tuple[int, int, int]
) -> Reason:
    """Return why an assignment was chosen, before it is carried out."""
    v, position, rule = chosen
    if v < 0:
        return Reason("wait")
    if isinstance(decider, Ahead):
        return _compare_futures(decider, state, b)
    name, task = RULE_NAMES.get(rule, ""), int(state.pool[b, position])
    if isinstance(decider, D.IndexDecider) and isinstance(decider.fallback, D.BaselineDecider):
        decider = decider.fallback if rule >= 0 else decider  # which relieves it
    if isinstance(decider, D.IndexDecider):
        pairs, n = decider.pairs, _count_pairs(decider)
        tasks = state.pool[b, pairs.position[:n]]
        best = _best_with(_list_pairs("", pairs.vehicle, tasks, pairs.score[:n]), v, task, "")
        more = _compare_best(decider, problem, state, b, v, position)
        return Reason("index", "score", best, *more)
    if isinstance(decider, OwnDecider):
        name, own = FUNCTIONS[decider.rate].__name__, decider.pairs
        found = _list_pairs(name, own.vehicle, own.task, own.value[: int(own.n[0])])
        found = [item for item in found if np.isfinite(item.value)]
        return Reason(name, "value", _best_with(found, v, task, name, sign=1.0))
    if isinstance(decider, D.BaselineDecider):
        n_vehicles = problem.instance["n_vehicles"][state.episode["instance"][b]]
        tasks = state.pool[b, : state.episode["pool_size"][b]]
        vehicles, positions = np.nonzero(np.isfinite(decider.value[:n_vehicles, tasks]))
        tasks = tasks[positions]
        found = _list_pairs(name, vehicles, tasks, decider.value[vehicles, tasks])
        return Reason(name, COMPARED[name], _best_with(found, v, task, name, sign=1.0))
    if isinstance(decider, D.NetworkDecider):
        found = _list_actions(decider, problem, state, b)
        return Reason(f"network, {name}", "probability", _best_with(found, v, task, name))
    by = f"agents, {name}" if isinstance(decider, D.AgentsDecider) else name
    if name not in COMPARED:
        return Reason(by)
    sign = -1.0 if rule in (LWT, AHP) else 1.0
    found = [
        Alternative(v, int(state.pool[b, k]), name, sign * float(key))
        for k, key in enumerate(_rate(problem, state, b, v, rule))
        if np.isfinite(key)
    ]
    return Reason(by, COMPARED[name], _best_with(found, v, task, name, sign))


def _list_pairs(
    rule: str, vehicles: np.ndarray, tasks: np.ndarray, values: np.ndarray
) -> list[Alternative]:
    """Return pairs with their values, as many as there are values."""
    pairs = zip(vehicles.tolist(), tasks.tolist(), values.tolist(), strict=False)
    return [Alternative(v, task, rule, value) for v, task, value in pairs]


def _count_pairs(decider: D.IndexDecider) -> int:
    """Return the number of pairs that were compared, without the choice to wait."""
    n = int(decider.pairs.n[0])
    return n - 1 if n and decider.pairs.vehicle[n - 1] < 0 else n


def _compare_best(
    decider: D.IndexDecider, problem: Problem, state: State, b: int, v: int, position: int
) -> tuple[tuple[Part, ...], tuple[Outlook, ...]]:
    """Return what moves the chosen pair's score most beside the next best one's, and what comes of both."""
    index, pairs, n = decider.indices, decider.pairs, _count_pairs(decider)
    if n < 2:
        return (), ()
    score = pairs.score[:n].copy()
    [chosen] = np.flatnonzero((pairs.vehicle[:n] == v) & (pairs.position[:n] == position))
    score[chosen] = -np.inf
    both = [int(chosen), int(score.argmax())]
    own, its = pairs.x[both][:, index.used].astype(np.float64)
    second = problem.unit["seconds"][state.episode["instance"][b]]
    found = []
    for k, difference, weight in zip(index.used, own - its, index.parameters[0], strict=False):
        feature = find_by_number(index, k)
        factor = second if feature.unit == "s" else 1.0
        value = float(weight * difference)
        found.append(Part(feature.words, feature.unit, float(factor * difference), value))
    found.sort(key=lambda part: -abs(part.value))
    parts = tuple(part for part in found[:MOST_PARTS] if part.value != 0.0)
    if not parts or not any(COMPLETED <= k < CURRENT for k in index.used):
        return parts, ()
    outlooks = []
    is_cut = state.episode["pool_size"][b] > MOST_STEPS
    what = f"the next {MOST_STEPS} are" if is_cut else "all is"
    for k in both:
        task = int(state.pool[b, pairs.position[k]])
        end, late = (
            float(second * pairs.x[k, COMPLETED + result]) for result in (LAST_END, TOTAL_LATE)
        )
        outlooks.append(Outlook(int(pairs.vehicle[k]), task, what, end, late))
    return parts, tuple(outlooks)


def _rate(problem: Problem, state: State, b: int, v: int, rule: int) -> np.ndarray:
    """Return what a rule compares of the waiting tasks for a vehicle, inf of those it cannot take."""
    keys = np.empty(int(state.episode["pool_size"][b]))
    rate_tasks(problem, state, b, v, rule, keys)
    return keys


def _list_actions(
    decider: D.NetworkDecider, problem: Problem, state: State, b: int
) -> list[Alternative]:
    """Return a network's legal actions with their probabilities."""
    actions, found = [], []
    free = [v for v in range(state.vehicle.shape[1]) if is_free(state, np.int64(b), np.int64(v))]
    for v in free:
        for k, rule in enumerate(decider.rules.tolist()):
            keys = _rate(problem, state, b, v, rule)
            if np.isfinite(keys).any():
                actions.append(v * len(decider.rules) + k)
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


def _compare_futures(ahead: Ahead, state: State, b: int) -> Reason:
    """Return what a lookahead's candidates came to; without a comparison there is one candidate."""
    found: dict[tuple[int, int], float] = {}
    for row in range(len(ahead.candidate)):
        for k in range(int(ahead.n_candidates[row])):
            w, position = (int(x) for x in ahead.candidate[row, k])
            pair = (w, int(state.pool[b, position]))
            value = float(ahead.total[row, k]) / max(1, int(ahead.n_seen[row, k]))
            found[pair] = min(value, found.get(pair, np.inf))
    if len(found) < 2:
        return Reason("lookahead, the only candidate")
    ordered = sorted(found.items(), key=lambda item: item[1])[:MOST]
    objective, cost = (
        write_objective({name: x for name, x in zip(MEASURES, row, strict=True) if x})
        for row in ahead.future.goal.tolist()
    )
    measure = (
        f"mean {objective} of the futures" if ahead.trip > 0.0 else f"{objective} of what waits"
    )
    if ahead.cost_limit < np.inf:
        measure += f", with a penalty for {cost}"
    if unit := find_unit(objective):
        measure += f", {unit}"
    best = tuple(Alternative(*pair, "", value) for pair, value in ordered)
    return Reason("lookahead", measure, best)
