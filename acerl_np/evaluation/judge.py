"""Judge a policy on records that it has not seen, and on bad days, beside the best rule of its training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.hindsight import find_references, measure_size
from acerl_np.evaluation.hold_out import make_noised
from acerl_np.evaluation.margin import (
    RULES_TO_BEAT,
    Margin,
    choose_rule,
    find_little,
    measure_margin,
    play_rules,
)
from acerl_np.evaluation.trials import Playing, Trials, join_trials, play_policy
from acerl_np.evaluation.verdict import BadDay, Kind, Verdict, VerdictRow, show_seconds
from acerl_np.evaluation.whatif import KNOBS, make_shifts
from acerl_np.kernels.core import state as S
from acerl_np.kernels.rollout.episodes import play_episodes
from acerl_np.kernels.rollout.futures import Ahead
from acerl_np.policies.agent import OwnPolicy
from acerl_np.policies.files import AnyPolicy, BasePolicy, as_decider
from acerl_np.policies.general import find_set, make_general
from acerl_np.policies.index import IndexPolicy
from acerl_np.policies.network import Policy
from acerl_np.policies.rules import GENERAL, NEAREST
from acerl_np.problem.demand import draw_shift
from acerl_np.problem.instance import Instance, are_shifts, commit_instances, list_instances
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import InputError, PolicyError
from acerl_np.support.fields import Whole

PATIENCE = 60.0
"""s of a core that a verdict may take; what would take longer is left out."""

BAD_DEMAND, BAD_DAYS = 1.3, 20
"""How many times the tasks come on a bad day, and at least so many are drawn of the records that judge."""

MARGIN_EFFORT, MARGIN_RECORDS = 0.02, 5
"""Of the quick searches in hindsight that tell whether there is little to win: effort, and most records."""

SECONDS_PER_TASK, SECONDS_PER_SIZE = 0.4e-6, 0.015
"""Seconds of a core that a rule takes for a task, and that hindsight takes for the work of a DMH record."""

IN_TRAFFIC = 40.0
"""How many times as long a task takes where vehicles meet: 20 to 80 by `benchmarks/traffic.py`."""


class Fold(NamedTuple):
    """A policy that was trained on all training records but some, which judge it."""

    policy: Policy | IndexPolicy
    unseen: Sequence[Instance]


class Group(NamedTuple):
    """A policy, the training records that it has seen, and the records that judge it."""

    policy: AnyPolicy
    seen: Sequence[Instance]
    judging: Sequence[Instance]


class Patience:
    """The seconds of a core that a verdict may still take; `report` is told what begins, and its estimate."""

    def __init__(self, seconds: float, report: Callable[[str, float], None] | None) -> None:
        self.seconds, self.report = seconds, report

    def begin(self, part: str, seconds: float, command: str = "") -> None:
        """Count what begins; raise a `PolicyError` with the command if that takes too long."""
        if command and seconds > self.seconds:
            raise PolicyError(f"{show_seconds(seconds)} {command}")
        self.seconds -= seconds
        if self.report is not None:
            self.report(part, seconds)


def judge(
    policy: AnyPolicy,
    training: Instance | Sequence[Instance],
    unseen: Instance | Sequence[Instance] = (),
    playing: Playing | None = None,
    *,
    folds: Sequence[Fold] = (),
    general: bool = False,
    patience: float = PATIENCE,
    report: Callable[[str, float], None] | None = None,
) -> Verdict:
    """Judge a policy on records that it has not seen, beside what the training records suggest.

    The best rule is chosen on the training records; the unseen ones only judge. If there are none, noised
    copies of the training records do (`hold_out.make_noised`); or, with `folds`, each training record judges
    the policy of the fold that has not seen it, beside the best rule on that fold's training records.

    On shifts the rule is a baseline, `nearest` and `general` have rows (with `general` also elsewhere), and
    there are bad days. What `patience` s of a core are not enough for is left out, by an estimate, and a note
    says so. `report` is told what begins and its estimate, s.

    Raises
    ------
    InputError
        If there is no training record, one of them is among the unseen, or a record of the folds is none of
        them.
    PolicyError
        If the policy does not fit the records.

    Examples
    --------
    >>> import acerl_np
    >>> from acerl_np.evaluation.trials import Playing
    >>> from acerl_np.evaluation.judge import judge
    >>> policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=-1.0)
    >>> records = acerl_np.load_suite("dmh-train")
    >>> judge(policy, records[:6], records[6:], Playing(trials=2)).n_records
    2
    """
    playing = playing or Playing()
    kind, known, groups = _find_groups(policy, training, unseen, folds, playing.seed)
    judges = [record for group in groups for record in group.judging]
    budget, shifts = Patience(patience, report), are_shifts(known)
    each = SECONDS_PER_TASK * _find_slowness(judges) * playing.trials
    each *= float(np.mean([item.n_tasks for item in judges]))
    budget.begin("rules and policy", (len(RULES_TO_BEAT) * len(known) + 4 * len(judges)) * each)
    best, rule = _choose_rules(play_rules(known, playing), known, groups)

    def make_row(label: str, players: Sequence[Any], other: Trials | None) -> VerdictRow:
        pairs = [(player, group.judging) for player, group in zip(players, groups, strict=True)]
        return _play_row(label, pairs, playing, other, tells=shifts)

    rule_row = make_row(rule, best, None)
    other, started = rule_row.trials, time.process_time()
    rows = [make_row("policy", [group.policy for group in groups], other), rule_row]
    own_seconds = time.process_time() - started
    if shifts and rule != NEAREST:
        rows.append(make_row(NEAREST, [NEAREST] * len(groups), other))
    if shifts or general:
        everywhere = make_general(find_set(known, playing.goal))
        rows.append(make_row(GENERAL, [everywhere] * len(groups), other))
    notes, bad_days = list[str](), tuple[BadDay, ...]()
    if shifts:
        try:
            seconds = 8.0 * max(own_seconds, len(judges) * each) / playing.trials
            seconds *= math.ceil(BAD_DAYS / len(judges))
            budget.begin("bad days", seconds, "(acerl-np whatif)")
            days = [(group.policy, group.judging) for group in groups]
            bad_days = tuple(_play_bad_days(days, playing))
        except PolicyError as error:
            notes.append(f"bad days left out: {error}")
    margin, note = _find_margin(rows, judges, playing, budget)
    notes += [note] if note else []
    told = len(judges), playing.goal, tuple(notes), margin, len(folds), bad_days
    return Verdict(tuple(rows), rule, kind, *told)


def _find_groups(
    policy: AnyPolicy,
    training: Instance | Sequence[Instance],
    unseen: Instance | Sequence[Instance],
    folds: Sequence[Fold],
    seed: Whole,
) -> tuple[Kind, list[Instance], list[Group]]:
    """Return what judges, all training records, and who is judged by which records."""
    known, judges = list_instances(training), list_instances(unseen)
    if not known:
        raise InputError("training: no records; expected at least one")
    hashes = {instance.content_hash for instance in known}
    twin = next((item for item in judges if item.content_hash in hashes), None)
    if twin is not None:
        raise InputError(f"unseen: {twin.name} is among the training records; expected others")
    if policy.commitment is not None:  # the others play as the policy does
        late = policy.commitment, policy.max_changes
        known, judges = commit_instances(known, *late), commit_instances(judges, *late)
        folds = [Fold(fold.policy, commit_instances(fold.unseen, *late)) for fold in folds]
    if judges:
        return "unseen", known, [Group(policy, known, judges)]
    if folds:
        return "folds", known, [Group(x.policy, *_part(known, x.unseen)) for x in folds]
    return "noised", known, [Group(policy, known, make_noised(known, seed=seed))]


def _find_lateness(
    policy: BasePolicy | str, instances: Sequence[Instance], playing: Playing
) -> tuple[np.ndarray, ...]:
    """Return how late each task is in the first trial of each record, float64 (n_tasks,), s.

    0 in time, nan if nobody delivers it. Policies in plain Python and lookahead are not asked: none.
    """
    player = as_decider(policy)
    if isinstance(player, OwnPolicy) or not all(item.is_plain for item in instances):
        return ()
    chosen = list(instances)
    problem = build_problem(chosen, horizon=playing.horizon, goal=playing.goal)
    problem, prepare = player.prepare(problem, chosen, playing.greedy)
    decider, state = prepare(), S.allocate_state(problem, 1)
    if isinstance(decider, Ahead):
        return ()
    n, found = len(chosen), []
    keys = np.ascontiguousarray(
        stream_keys(chosen, playing.trials, playing.seed)[:: playing.trials]
    )
    episodes, outcome = S.Episodes(np.arange(n), keys, np.zeros(n, np.int64)), S.allocate_outcome(n)
    for k, item in enumerate(chosen):
        play_episodes(problem, state, decider, episodes, (k, k + 1), True, int(S.NEVER), outcome)
        finish = state.task["finish"][0, : item.n_tasks]
        late = np.maximum(0.0, finish - item.arrival - item.expiry)
        found.append(np.where(finish > 0, late, np.nan))
    return tuple(found)


Pairs = Sequence[tuple[Any, Sequence[Instance]]]
"""Players, and the records that each plays."""


def _play_row(
    label: str, pairs: Pairs, playing: Playing, other: Trials | None, *, tells: bool = True
) -> VerdictRow:
    """Return the row of a policy, or of those that stand for it; where it `tells`, with its lateness."""
    trials = join_trials([play_policy(player, some, playing) for player, some in pairs])
    late = [x for player, some in pairs if tells for x in _find_lateness(player, some, playing)]
    return VerdictRow.of(label, trials, other, tuple(late))


def _play_bad_days(pairs: Pairs, playing: Playing) -> Iterator[BadDay]:
    """Play days with a vehicle fewer, and with more demand, where that can be served.

    They are the records that judge, and as many drawn ones as `BAD_DAYS` needs: of each half of what twice
    its demand would be.
    """
    playing = replace(playing, trials=1)
    layout, n = pairs[0][1][0].layout, sum(len(some) for _, some in pairs)

    def draw(some: Sequence[Instance], times: int) -> list[Instance]:
        days = list(some)
        for k in range(1, times):
            for record in some:
                days.append(draw_shift(draw_shift(record, 2.0, seed=k), 0.5, seed=k))
        return days

    drawn = [(base, draw(some, math.ceil(BAD_DAYS / n))) for base, some in pairs]
    for label, knobs in (
        ("one vehicle fewer", {"vehicles": len(layout.vehicles) - 1}),
        (f"demand x {BAD_DEMAND:g}", {"demand": BAD_DEMAND}),
    ):
        setting = {name: knob.find(layout) for name, knob in KNOBS.items()} | knobs
        try:
            days = [(base, make_shifts(some, setting, playing.seed)) for base, some in drawn]
            every = [day for _, some in days for day in some]
            near = play_policy(NEAREST, every, playing)
            general = make_general(find_set(every, playing.goal))
            rows = (
                _play_row("policy", days, playing, near, tells=False),
                VerdictRow.of(NEAREST, near),
                _play_row(GENERAL, [(general, every)], playing, near, tells=False),
            )
        except InputError:  # nobody serves it, or not this policy
            continue
        last = np.array([day.arrival.max() for day in every])
        after = tuple(float((row.trials.mean("makespan") - last).mean()) for row in rows)
        yield BadDay(label, rows, after)


def _choose_rules(
    rules: Mapping[str, Trials], known: Sequence[Instance], groups: Sequence[Group]
) -> tuple[list[str], str]:
    """Return each group's best rule, on its own training records, and what all of them are called."""
    row_of, best = {id(record): k for k, record in enumerate(known)}, []
    for group in groups:
        rows = [row_of[id(record)] for record in group.seen]
        best.append(choose_rule({name: trials.select(rows) for name, trials in rules.items()}))
    return best, " or ".join(sorted(set(best), key=lambda name: (-best.count(name), name)))


def _part(
    known: Sequence[Instance], unseen: Sequence[Instance]
) -> tuple[list[Instance], list[Instance]]:
    """Return the training records of a fold, and those that judge it."""
    own, hashes = list(unseen), {item.content_hash for item in unseen}
    rest = [item for item in known if item.content_hash not in hashes]
    strange = hashes - {item.content_hash for item in known}
    if strange or not own or not rest:
        raise InputError("folds: expected some of the training records in each, not all of them")
    return rest, own


def _find_margin(
    rows: Sequence[VerdictRow], records: Sequence[Instance], playing: Playing, budget: Patience
) -> tuple[Margin | None, str]:
    """Return how far the best rule, the second row, is from hindsight, None if farther than little.

    Or None and what was not sought, and how to seek it.
    """
    goal, rule, played = playing.goal, rows[1], rows[1].trials
    least = min((row.mean("value") for row in rows if row.within_limit), default=math.inf)
    if goal.own or rule.mean("value") - least > find_little(goal, least) or played.unfinished:
        return None, ""
    some = np.linspace(0, len(records) - 1, min(MARGIN_RECORDS, len(records))).astype(int)
    margin = measure_margin(rule.label, played, records)
    if margin.is_proven:
        return margin, ""
    chosen = [records[k] for k in some]
    floors = [item.layout for item in chosen]
    if any(x.has_random_breakdowns or x.commitment == "pickup" for x in floors):
        return None, ""
    command = f"for {len(chosen)} of the records (acerl-np policy bound --effort {MARGIN_EFFORT})"
    try:
        seconds = SECONDS_PER_SIZE * _find_slowness(chosen)
        budget.begin("hindsight", seconds * sum(map(measure_size, chosen)), command)
    except PolicyError as error:
        return None, f"hindsight left out: {error}"
    how: Any = {"seed": playing.seed, "threads": playing.threads}
    found = find_references(chosen, goal, effort=MARGIN_EFFORT, **how)
    known = [item for item in found if item is not None]
    if len(known) < len(found):
        return None, ""
    return measure_margin(rule.label, played.select(some), chosen, known), ""


def _find_slowness(instances: Sequence[Instance]) -> float:
    """Return how many times as long playing takes as where nobody meets."""
    meets = any(instance.layout.traffic is not None for instance in instances)
    return IN_TRAFFIC if meets else 1.0
