"""Verdicts by hand: the best rule, paired differences, sentences; and records that are held back."""

import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import needs_jit

import acerl_np
from acerl_np.evaluation.hold_out import choose_share, hold_out, make_noised, part_folds
from acerl_np.evaluation.judge import Fold, judge
from acerl_np.evaluation.margin import choose_rule
from acerl_np.evaluation.metrics import Difference, compare_paired
from acerl_np.evaluation.trials import Playing, Trials
from acerl_np.evaluation.verdict import (
    SHOWN,
    BadDay,
    Verdict,
    VerdictRow,
    write_comparison,
)
from acerl_np.problem.generate import generate_record
from acerl_np.problem.goal import MEASURES, PAPER, Goal

LATE_LIMIT, SUM = Goal("late", cost="waiting", cost_limit=3.0), Goal("late+0.05*tardiness")


def make_trials(makespan, tardiness, goal=PAPER):
    """Trials of so many records, one each; under another goal the two are objective and cost."""
    makespan = np.array(makespan, float)[:, np.newaxis]
    names = tuple(f"r{k}" for k in range(len(makespan)))
    tardiness = np.array(tardiness, float)[:, np.newaxis]
    usage = [np.zeros_like(makespan)] * 4
    return Trials(
        names, makespan, tardiness, 9, goal, *usage, makespan, tardiness, usage[0], tardiness
    )


@pytest.mark.parametrize(
    ("a", "b", "best"),
    [
        # Mean makespan 101 and 100, both within the limit of 50 s in the mean.
        (([100, 102], [40, 40]), ([90, 110], [99, 0]), "B"),
        # The shortest is over the limit; at the limit is not below it.
        (([100, 102], [40, 40]), ([90, 90], [51, 50]), "A"),
        (([100, 102], [40, 40]), ([90, 90], [50, 50]), "A"),
        # None is below it: the least tardiness, whatever the makespan.
        (([10, 10], [60, 70]), ([90, 90], [61, 60]), "B"),
        # Another objective and another cost, of which 3 is the limit.
        (([5, 5], [1, 2], LATE_LIMIT), ([4, 4], [3, 3], LATE_LIMIT), "A"),
        # The first of equals; one that does not finish comes last.
        (([9, 9], [1, 2]), ([8, 10], [2, 1]), "A"),
        (([9, math.nan], [1, math.nan]), ([90, 90], [99, 99]), "B"),
    ],
)
def test_the_best_rule_is_the_shortest_within_the_limit(a, b, best):
    assert choose_rule({"A": make_trials(*a), "B": make_trials(*b)}) == best


def make_shift_trials(late, waiting, empty):
    """Trials of a shift's objective, late tasks in points."""
    value, none = np.array([late], float).T, np.zeros((1, 1))
    usage = [value / 100.0, np.array([[waiting]]), none, np.array([[empty]])]
    return Trials(("r",), none + 9.0, none, 9, SUM, *usage, value, none, none, none)


def test_baselines_that_are_nearly_equal_are_told_apart_by_waiting():
    def choose(**known):
        return choose_rule({name: make_shift_trials([x], *y) for name, (x, *y) in known.items()})

    # Within 0.05 points of the best: waiting, then empty metres; beyond, the objective alone.
    assert choose(a=(1.00, 60.0, 0.4), b=(1.04, 50.0, 0.5)) == "b"
    assert choose(a=(1.00, 60.0, 0.4), b=(1.06, 50.0, 0.5)) == "a"
    assert choose(a=(0.0, 60.0, 0.5), b=(0.0, 60.0, 0.4), c=(0.0, 61.0, 0.1)) == "b"


def test_paired_differences_and_their_errors_by_hand():
    other = [100.0, 200.0, 300.0, 400.0, 500.0]
    found = compare_paired([90.0, 196.0, 302.0, 386.0, 496.0], other)
    # Differences -10, -4, 2, -14, -4: mean -6, deviations -4, 2, 8, -8, 2, variance 152 / 4 = 38.
    assert found.amount == pytest.approx(-6.0)
    assert found.error == pytest.approx(math.sqrt(38.0 / 5.0))
    assert found.percent == pytest.approx(-2.0)  # of a mean of 300
    assert found.percent_error == pytest.approx(math.sqrt(38.0 / 5.0) / 3.0)
    assert found.errors == pytest.approx(2.776, abs=1e-3)  # Student's t for a 95 % interval of five
    assert found.sign == 0  # 6 is within 2.776 errors of 2.757
    few = compare_paired([90.0, 196.0, 302.0, 386.0], other[:4])
    assert few.amount == pytest.approx(-6.5)
    assert math.isnan(few.error) and few.sign is None
    signs = {(-2.0, 1.0): 0, (-2.1, 1.0): -1, (2.1, 1.0): 1, (0.0, 0.0): 0, (-1.0, 0.0): -1}
    assert {both: Difference(*both, *both).sign for both in signs} == signs


def make_row(label, tardiness=20.0, difference=None, unfinished=0):
    makespan = np.full(18, 100.0)
    makespan[:unfinished] = math.nan
    changes = {} if difference is None else {"value": difference}
    return VerdictRow(label, make_trials(makespan, [tardiness] * 18), changes)


OF = "95 % interval"
NOISED = "15 noised copies of the training records, not unseen ones"
COPIES = {"n": 15, "kind": "noised", "place": NOISED}
OVER, BOTH, RULE = {"own": 60.0}, {"own": 60.0, "rule": 50.0}, {"rule": 50.0}
LESS, KEPT = f"makespan 4.2 % less ({OF} 2.6 to 5.8)", "within the limit, NVF within it"
UNKNOWN = "too few records to tell for makespan (-4.2 %)"
SENTENCES = [
    (-4.2, 0.8, {}, f"{LESS}; {KEPT}"),
    (-0.04, 0.03, {}, f"no clear change in makespan (-0.04 %, {OF} -0.10 to +0.02); {KEPT}"),
    (0.0, 0.0, {}, f"makespan the same; {KEPT}"),
    (1.7, 0.8, {}, f"makespan 1.7 % more ({OF} 0.1 to 3.3); {KEPT}"),
    (-4.2, math.nan, {"n": 3, "place": "3 unseen records"}, f"{UNKNOWN}; {KEPT}"),
    (-4.2, 0.8, COPIES, f"{LESS}; {KEPT}"),
    (-4.2, 0.8, OVER, f"{LESS}; over the limit, NVF within it"),
    (-4.2, 0.8, BOTH, f"{LESS}; over the limit, NVF over it"),
    (-4.2, 0.8, RULE, f"{LESS}; within the limit, NVF over it"),
]


def say(percent, error, n=6, kind="unseen", own=20.0, rule=20.0, place="6 unseen records"):
    difference = Difference(10.0 * percent, 10.0 * error, percent, error)
    rows = make_row("policy", own, difference), make_row("NVF", rule)
    return Verdict(rows, "NVF", kind, n).sentence().removeprefix(f"On {place}, beside NVF: ")


def test_a_sentence_says_it_all():
    for percent, error, how, words in SENTENCES:
        assert say(percent, error, **how) == f"{words}."
    difference = Difference(math.nan, math.nan, math.nan, math.nan)
    rows = (make_row("policy", math.nan, difference, unfinished=2), make_row("NVF"))
    assert Verdict(rows, "NVF", "unseen", 6).sentence() == (
        "On 6 unseen records: the policy did not finish 2 of 18 episodes."
    )


def test_a_bad_day_says_what_differs_by_two_errors_and_who_keeps_a_task_waiting():
    def say(*rows):
        found = [make_row("policy"), make_row("nearest", 80.0), make_row("general", 900.0)]
        for k, both in zip((0, 2), rows, strict=True):
            pairs = zip(("value", "tardiness"), both, strict=True)
            changes = {name: Difference(*x, 0.0, 0.0) for name, x in pairs}
            found[k] = found[k]._replace(changes=changes)
        return BadDay("demand x 1.3", tuple(found), (9.0,) * 3).sentence(SUM)

    said = say(((3.0, 1.0), (-2.1, 1.0)), ((1.9, 1.0), (0.0, 1.0)))
    own, general, nearest = said.split("; ")
    assert own.startswith("With demand x 1.3 (18 drawn days)") and nearest.endswith("80 s.")
    assert f"worse than nearest by 3.0 ({OF} 1.0 to 5.0) and better in tardiness" in own
    assert own.endswith("20 s late")
    assert "general is not clearly different" in general and "15 min late" in general


def write_first(goal, value, late, kind="unseen", latest=(900.0, 800.0), bad=(0.0, 0.0), missed=0):
    """The headline of a policy with 10, and a rule with 20, % of late tasks, by differences."""

    def make(label, share, delay, changes=(), unfinished=0):
        row = make_row(label, unfinished=unfinished)
        trials = replace(
            row.trials, late=np.full((18, 1), share), value=np.full((18, 1), share), goal=goal
        )
        trials = replace(trials, worst=np.full((18, 1), delay))
        return VerdictRow(label, trials, dict(changes), (np.array([0.0, delay]),))

    known = {"value": Difference(*value, *value), "late": Difference(*late, *late)}
    rows = make("policy", 0.1, latest[0], known, missed), make("nearest", 0.2, latest[1])
    day = BadDay(
        "one vehicle fewer", (make("policy", 0.4, bad[0]), make("nearest", 0.4, bad[1])), (9.0, 9.0)
    )
    text = Verdict(rows, "nearest", kind, 7, goal, bad_days=(day,)).headline
    assert missed or text.endswith(day.sentence(goal))
    return text.removesuffix(f"\n{day.sentence(goal)}")


CLAIM = "10.0 % of tasks late instead of 20.0 % (nearest)"
UNSEEN = "on 7 shifts not seen in training."
CAREFUL = "Careful: with one vehicle fewer single tasks are up to 72 min late, with nearest 23 min."
FEWER, NEITHER, MORE = (-9.0, 1.0), (-1.0, 1.0), (9.0, 1.0)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ((SUM, FEWER, FEWER), f"Use the policy: {CLAIM}, {UNSEEN}"),
        ((SUM, NEITHER, NEITHER), f"No clear difference to nearest: {CLAIM}, {UNSEEN}"),
        ((Goal("late"), MORE, MORE), f"Use nearest: {CLAIM}, {UNSEEN}"),
        ((SUM, (-9.0, math.nan), FEWER), f"Too few records to tell: {CLAIM}, {UNSEEN}"),
        (
            (SUM, FEWER, FEWER, "noised"),
            f"Not tested on unseen records: {CLAIM}, on perturbed copies of the training shifts.",
        ),
        # No measure has changed as the objective has: it is told itself.
        (
            (Goal("late+empty"), MORE, FEWER),
            f"Use nearest: late+empty 0.10 % instead of 0.20 % (nearest), {UNSEEN}",
        ),
        ((LATE_LIMIT, FEWER, FEWER), f"Over the limit, waiting below 3 s: {CLAIM}, {UNSEEN}"),
        # The day with the longest delay is told, if that is far longer than that of the rule.
        (
            (SUM, FEWER, FEWER, "unseen", (900, 800), (4320, 1380)),
            f"Use the policy: {CLAIM}, {UNSEEN} {CAREFUL}",
        ),
        ((SUM, FEWER, FEWER, "unseen", (900, 800), (80, 30)), f"Use the policy: {CLAIM}, {UNSEEN}"),
        (
            (SUM, FEWER, FEWER, "unseen", (900, 30), (800, 30)),
            f"Use the policy: {CLAIM}, {UNSEEN} Careful: single tasks are up to 15 min late, "
            "with nearest 30 s.",
        ),
        (
            (SUM, FEWER, FEWER, "unseen", (9, 9), (9, 9), 2),
            "No verdict: the policy did not finish 2 of 18 episodes.",
        ),
    ],
)
def test_the_first_line_says_what_to_use_and_what_to_be_careful_about(changes, told):
    assert write_first(*changes) == told


def test_policies_are_compared_in_a_sentence():
    """The first with the best of the others; who is over the limit is never called better."""

    def say(own, other, costs=(20.0, 20.0), goal=PAPER, delay=0.0):
        results = [
            make_trials([x] * 6, [y] * 6, goal) for x, y in zip((own, other), costs, strict=True)
        ]
        results[0] = replace(results[0], worst=np.full((6, 1), delay))
        third = make_trials([999.0] * 6, [20.0] * 6, goal)
        return write_comparison(["a.npz", "NVF", "EDD"], [*results, third])

    end = "makespan {} s instead of {} s (NVF), on 6 records."
    assert say(90.0, 100.0) == f"a.npz is better than NVF: {end.format(90.0, 100.0)}"
    assert say(100.0, 90.0) == f"NVF is better than a.npz: {end.format(100.0, 90.0)}"
    assert say(90.0, 90.0) == f"No clear difference between a.npz and NVF: {end.format(90.0, 90.0)}"
    over = "a.npz over the limit, tardiness below 50 s: "
    assert say(90.0, 100.0, (60.0, 20.0)) == f"{over}{end.format(90.0, 100.0)}"
    late = say(90.0, 100.0, delay=600.0)
    assert late.endswith(" Careful: single tasks are up to 10 min late, with NVF 20 s.")
    assert say(math.nan, 100.0) == "" and write_comparison(["a"], [make_trials([1.0], [1.0])]) == ""


def write_sentence(goal, **changes):
    """The sentence of differences by measure, each an amount and its error; `value` is the objective's."""
    still = dict.fromkeys(MEASURES, (1.0, 2.0))
    known = {name: Difference(*both, *both) for name, both in {**still, **changes}.items()}
    known.setdefault("value", known.get(goal.objective))
    row = make_row("policy")._replace(changes=known)
    sentence = Verdict((row, make_row("NVF")), "NVF", "unseen", 6, goal).sentence()
    return sentence.removeprefix("On 6 unseen records, beside NVF: ")


LATE, BOUND = Goal("late"), Goal("late", cost_limit=50.0)
STILL = f"(+1.0 s, {OF} -3.0 to +5.0)"
NO = "no clear change in"
SAME = f"no clear change in makespan (+1.0 %, {OF} -3.0 to +5.0)"
FURTHER = [
    (PAPER, {}, f"{SAME}; {KEPT}."),
    # Nothing that has changed goes unsaid.
    (
        PAPER,
        {"tardiness": (37.1, 2.0), "empty": (3.0, 0.04)},
        f"{SAME}; tardiness 37.1 s more ({OF} 33.1 to 41.1); "
        f"empty metres 3.00 points more ({OF} 2.92 to 3.08); {KEPT}.",
    ),
    (
        LATE,
        {"late": (-3.0, 1.0), "waiting": (0.0, 0.0)},
        f"late 3.0 points less ({OF} 1.0 to 5.0); {NO} makespan {STILL}; {NO} tardiness {STILL}; "
        f"waiting the same; {NO} longest delay {STILL}.",
    ),
    (
        SUM,
        {"value": (-0.5, 0.02), "late": (0.9, 0.2)},
        f"late+0.05*tardiness 0.50 less ({OF} 0.46 to 0.54); {NO} makespan {STILL}; {NO} tardiness {STILL}; "
        f"late tasks 0.9 points more ({OF} 0.5 to 1.3); {NO} waiting {STILL}; {NO} longest delay {STILL}.",
    ),
    (LATE, {"late": (-3.0, math.nan)}, "too few records to tell for late (-3.0 points)."),
]


def test_the_objective_is_named_and_every_change_told():
    for goal, changes, words in FURTHER:
        assert write_sentence(goal, **changes) == words


AMOUNTS = st.tuples(st.integers(-400, 400), st.integers(0, 99)).map(lambda x: (x[0] / 8, x[1] / 64))


@given(
    st.sampled_from((PAPER, LATE, SUM, BOUND)),
    AMOUNTS,
    st.lists(AMOUNTS, min_size=6, max_size=6),
    st.sampled_from((20.0, 60.0)),
    st.sampled_from((20.0, 60.0)),
)
def test_words_agree_with_signs(goal, value, changes, own, other):
    known = {name: Difference(*both, *both) for name, both in zip(MEASURES, changes, strict=True)}
    difference = known.get(goal.objective, Difference(*value, *value))
    row = make_row("policy", own)._replace(changes={**known, "value": difference})
    text = Verdict((row, make_row("NVF", other)), "NVF", "unseen", 6, goal).sentence()
    objective = re.escape(f"{goal.objective}")
    assert re.match(f"On 6 unseen records, beside NVF: (no clear change in )?{objective} ", text)
    if goal.has_limit:
        assert ("over" if own > 50.0 else "within") + " the limit" in text
    for name, change in known.items():
        shown = SHOWN[name][0]
        if name != goal.objective and change.sign:
            word = "less" if change.sign < 0 else "more"
            assert re.search(rf"{shown} [\d.]+ \w+ {word} \(95 % ", text, re.IGNORECASE)
    assert "0.0 to +0.0" not in text


# Records that are held back


def load_records(n=8):
    return acerl_np.load_suite("dmh-train")[:n]


def list_contents(records):
    return {item.content_hash for item in records}


def test_a_share_is_rounded_to_records():
    for n, share, held in ((4, 0.25, 1), (6, 0.25, 2), (8, 0.25, 2), (8, 0.9, 7)):
        assert [len(part) for part in hold_out(load_records(n), share)] == [n - held, held]
    for share in (0, 1, -0.5, math.nan, "half", True):
        with pytest.raises(acerl_np.InputError, match="expected a share above 0 and below 1"):
            hold_out(load_records(), share)
    # More than thirty hold back as many as `nearest` differs between them, at least fifteen, at most a half.
    cases = ((30, 1.0, None), (31, 0.0, 15), (40, 5.0, 20), (100, 2.5, 25), (100, 9, 50))
    for n, spread, held in cases:
        values = 10.0 + spread * np.resize([-1.0, 1.0], n) * math.sqrt((n - 1) / n)
        share = choose_share(10.0 * values / values.mean())
        assert (share and round(share * n)) == held


def test_folds_hold_every_record_once_and_copies_together():
    records = load_records(5)
    records.append(replace(records[0], name="again"))
    folds = part_folds(records, 3, seed=1)
    assert sorted(x.name for fold in folds for x in fold) == sorted(x.name for x in records)
    assert [len(list_contents(fold)) for fold in folds] == [2, 2, 1]
    assert len(part_folds(records, 9)) == 5
    assert part_folds(records[::-1], 3, seed=1) == [fold[::-1] for fold in folds]
    with pytest.raises(acerl_np.InputError, match="expected at least two"):
        part_folds(records[:1])


def test_contents_and_seed_decide_who_is_held_back():
    records = load_records()
    _, first = hold_out(records, seed=3)
    for order in (records[::-1], records[3:] + records[:3]):
        training, held_back = hold_out(order, seed=3)
        assert {item.name for item in held_back} == {item.name for item in first}
        assert training == [item for item in order if item in training]  # in the given order
    renamed = [replace(item, name=f"day {k}") for k, item in enumerate(records)]
    _, again = hold_out(renamed, seed=3)
    assert list_contents(again) == list_contents(first)
    others = {frozenset(item.name for item in hold_out(records, seed=k)[1]) for k in range(8)}
    assert len(others) > 3
    # Records of one content stay together.
    one, two = records[:2]
    twice = [replace(one, name="again"), one, two, replace(one, name="and again")]
    for seed in range(4):
        training, held_back = map(list_contents, hold_out(twice, seed=seed))
        assert training and held_back and not training & held_back
    with pytest.raises(acerl_np.InputError, match="read 1 different records; expected at least"):
        hold_out(twice[:2])


def test_noised_copies_move_arrivals_and_have_draws_of_their_own():
    record = load_records(1)[0]
    copies = make_noised(record, seed=1)
    others = [record, *(acerl_np.perturb(record, 30, seed=seed) for seed in range(8))]
    assert len(list_contents(copies)) == 5 and not list_contents(copies) & list_contents(others)
    before = dict(zip(record.tasks, record.arrival, strict=True))
    for item in copies:
        for task, arrival in zip(item.tasks, item.arrival, strict=True):
            assert abs(arrival - before[task]) <= 30
            assert before[task] > 0 or arrival == 0
    # Where all tasks arrive at 0 they have to move, or nothing would.
    rows = [{**row, "arrival_time": 0.0} for row in record.rows()]
    still = acerl_np.Instance.from_rows("still", record.layout, rows)
    assert all(item.content_hash != still.content_hash for item in make_noised(still))


def make_policy():
    return acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=-1.0, lateness=0.5)


@needs_jit
def test_a_verdict_is_what_its_parts_are():
    records, policy = load_records(), make_policy()
    training, unseen = records[:6], records[6:]
    verdict = judge(policy, training, unseen, Playing(4, 5))
    assert [row.label for row in verdict.rows] == ["policy", verdict.best_rule]
    how = {"trials": 4, "seed": 5}
    rules = ("FCFS", "EDD", "NVF", "STD", "LWT", "AHP")
    played = {rule: acerl_np.evaluate_policy(rule, training, **how) for rule in rules}
    assert verdict.best_rule == choose_rule(played)
    both = (acerl_np.evaluate_policy(x, unseen, **how) for x in (policy, verdict.best_rule))
    own, other = (trials.makespan.mean() for trials in both)
    assert verdict.policy.trials.mean("makespan").mean() == own
    assert verdict.policy.difference.amount == pytest.approx(own - other)
    assert verdict.rule.difference is None
    assert verdict.kind == "unseen" and verdict.n_records == 2
    with pytest.raises(acerl_np.InputError, match="DMH-06 is among the training records"):
        judge(policy, training, records[5:])


@needs_jit
def test_a_fold_is_judged_by_what_it_has_not_seen():
    records = load_records(5)
    policies = [acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=w) for w in (0.0, -1.0)]
    parts = part_folds(records, 2)
    folds = [Fold(*both) for both in zip(policies, parts, strict=True)]
    verdict = judge(policies[0], records, playing=Playing(1), folds=folds)

    def find_mean(players):
        found = (
            acerl_np.evaluate_policy(player, part, trials=1).makespan.mean(axis=1)
            for player, part in zip(players, parts, strict=True)
        )
        return pytest.approx(np.concatenate(list(found)).mean())

    assert verdict.policy.trials.mean("makespan").mean() == find_mean(policies)
    assert (verdict.kind, verdict.n_records, verdict.n_folds) == ("folds", 5, 2)
    assert verdict.policy.difference.sign is not None
    rules = ("FCFS", "EDD", "NVF", "STD", "LWT", "AHP")
    best = [
        choose_rule({rule: acerl_np.evaluate_policy(rule, rest, trials=1) for rule in rules})
        for rest in parts[::-1]
    ]
    assert best == ["EDD", "STD"] and verdict.best_rule == "EDD or STD"
    assert verdict.rule.trials.mean("makespan").mean() == find_mean(best)
    with pytest.raises(acerl_np.InputError, match="some of the training records in each"):
        judge(policies[0], records[:3], folds=folds)


def list_left_out(verdict):
    return [note.partition(" left out: ")[0] for note in verdict.notes]


@needs_jit
def test_what_takes_too_long_is_left_out_and_said():
    """Hindsight, of days so long that it would take minutes, unless a bound tells."""
    record = load_records(1)[0]
    rows = [
        {**row, "task": f"{row['task']}-{k}", "arrival_time": row["arrival_time"] + 2000.0 * k}
        for k in range(20)
        for row in record.rows()
    ]
    long = acerl_np.Instance.from_rows("long", record.layout, rows)
    told = {}
    how = {"patience": 1.5, "report": told.__setitem__}
    for objective, expected in {"makespan": [], "empty": ["hindsight"]}.items():
        verdict = judge(make_policy(), [long], (), Playing(1, goal=Goal(objective)), **how)
        assert list_left_out(verdict) == expected
        words = re.compile(r"about \d+ (s|min) .*\(acerl-np policy bound ")
        assert all(words.search(note) for note in verdict.notes)
        assert verdict.margin is None or verdict.margin.is_proven
    assert next(iter(told)) == "rules and policy" and 0.0 < told["rules and policy"] < 1.0


@needs_jit
def test_a_verdict_on_shifts_has_rows_and_bad_days():
    floor = acerl_np.load_layout("supply-loop")
    make = partial(acerl_np.generate_shift, floor, hours=2.0, scale=0.5)
    days = [make(index=k, name=f"s{k}") for k in range(3)]
    verdict = judge(make_policy(), days[:2], days[2:], Playing(1, goal=SUM))
    labels = [row.label for row in verdict.rows]
    assert labels == list(dict.fromkeys(["policy", verdict.best_rule, "nearest", "general"]))
    assert [day.label for day in verdict.bad_days] == ["one vehicle fewer", "demand x 1.3"]
    assert all(
        [row.label for row in x.rows] == ["policy", "nearest", "general"] for x in verdict.bad_days
    )
    late = Playing(1, goal=LATE)
    short = judge(make_policy(), days[:2], days[2:], late, patience=1e-6)
    assert list_left_out(short)[0] == "bad days" and not short.bad_days


@needs_jit
@pytest.mark.parametrize("objective", ["makespan", "late"])
def test_what_a_verdict_says_is_true_of_further_records(objective):
    floor, how = acerl_np.load_layout("dmh"), {"rate": 80.0, "slack": 2.0}
    records = [generate_record(floor, 15, **how, index=k, name=f"r{k}") for k in range(52)]
    known, judges, further = records[:4], records[4:12], records[12:]
    goal = Goal(objective)
    said = {}
    for weight in (1.0, -1.0):
        policy = acerl_np.IndexPolicy.of_weights(approach=weight, loaded=-0.1)
        verdict = judge(policy, known, judges, Playing(3, goal=goal))
        own, other = (
            acerl_np.evaluate_policy(x, further, trials=3, objective=goal).mean("value")
            for x in (policy, verdict.best_rule)
        )
        said[weight] = verdict.policy.difference.sign, compare_paired(own, other).sign
    # Away from what is near, and towards it.
    assert said[1.0] == (1, 1) and -1 not in (said[-1.0][0] * said[-1.0][1], -said[-1.0][1])
