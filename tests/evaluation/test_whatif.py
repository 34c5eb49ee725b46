"""Settings beside each other: the same shifts and draws in all, and what reaches a target."""

from dataclasses import replace

import numpy as np
import pytest
from tables_and_refusals import list_unrefused
from trainings import list_differences

import acerl_np
from acerl_np.evaluation import whatif
from acerl_np.evaluation.past import estimate_lengthening, measure_past
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import METRICS, Playing, Trials, play_policy
from acerl_np.evaluation.whatif import Row, Target, answer_target
from acerl_np.problem.goal import Goal
from acerl_np.problem.layout import lengthen, resize_fleet
from acerl_np.problem.records import Assignments
from acerl_np.simulation.replay import replay_assignments
from acerl_np.support.errors import PolicyError, RecordError

MODEL = acerl_np.RandomBreakdowns(1800.0, 300.0)


def list_rows(*given, **how):
    return whatif.whatif(*given, **how).rows


@pytest.fixture(scope="module")
def shifts():
    layout = acerl_np.load_layout("supply-loop").with_random_breakdowns(MODEL)
    return [
        acerl_np.generate_shift(layout, hours=1.0, scale=0.8, seed=1, index=k, name=f"s{k}")
        for k in range(3)
    ]


def test_the_base_is_what_evaluate_says_and_threads_change_nothing(shifts):
    knobs = {"vehicles": [2, 5], "demand": [1.3]}
    index = acerl_np.IndexPolicy.of_weights(approach=-1.0, slack=-0.3)
    policies = {"NVF": "NVF", "mine": index}  # NVF draws vehicles
    one, two = (
        list_rows(shifts, knobs, policies, playing=Playing(3, 7, threads=n)) for n in (1, 2)
    )
    settings = [(row.setting["vehicles"], row.setting["demand"]) for row in one[::2]]
    assert settings == [(2, 1.3), (4, 1.0), (5, 1.3)]
    for row, same in zip(one, two, strict=True):
        assert list_differences(row.trials, same.trials) == []
    assert [row.is_base for row in one] == [False, False, True, True, False, False]
    for row in one[2:4]:
        expected = acerl_np.evaluate_policy(policies[row.policy], shifts, trials=3, seed=7)
        assert list_differences(row.trials, expected) == []
        assert row.compare("late") == (0.0, 0.0)
    change, error = one[0].compare("waiting")
    paired = one[0].trials.mean("waiting") - one[2].trials.mean("waiting")
    assert change == pytest.approx(paired.mean()) and change > 0.0
    assert error == pytest.approx(paired.std(ddof=1) / np.sqrt(3))
    assert one[0].measure("late")[0] == pytest.approx(100 * one[0].trials.late.mean())


def test_a_second_question_has_the_answer_of_the_first(shifts):
    fresh = replace(shifts[0], layout=replace(shifts[0].layout))
    policies = {"mine": acerl_np.IndexPolicy.of_weights(approach=-1.0, n_late=-1.0)}
    first, again = (list_rows(fresh, {"speed": [1, 3]}, policies) for _ in range(2))
    for row, same in zip(first, again, strict=True):
        assert row.trials.value.tobytes() == same.trials.value.tobytes()


def test_all_settings_meet_the_same_shifts_and_draws(shifts, monkeypatch):
    met = []

    def play(policy, instances, playing, *, keys):
        met.append((keys.copy(), instances))
        return play_policy(policy, instances, playing, keys=keys)

    monkeypatch.setattr(whatif, "play_policy", play)
    knobs = {"vehicles": [3, 5], "demand": [1.3], "speed": [0.9, 1.1], "breakdown_rate": [0, 2]}
    rows = list_rows(shifts, knobs, {"NVF": "NVF"}, playing=Playing(2))
    assert len(met) == len(rows) == 9
    assert [row.is_base for row in rows].index(True) == 4
    base = met.pop(4)
    for keys, instances in met:
        assert np.array_equal(keys, base[0])
        for record, drawn, first in zip(shifts, instances, met[0][1], strict=True):
            assert drawn.rows() == first.rows() and drawn.n_tasks > record.n_tasks
    layouts = [instances[0].layout for _, instances in [base, *met]]
    assert {len(x.vehicles) for x in layouts[1:]} == {3, 5}
    speed = shifts[0].layout.vehicles[0].speed
    assert {x.vehicles[-1].speed for x in layouts} == {speed, 0.9 * speed, 1.1 * speed}
    models = {x.vehicles[-1].random_breakdowns for x in layouts}
    assert models == {MODEL, None, acerl_np.RandomBreakdowns(900.0, 300.0)}
    assert all(x.routes is layouts[0].routes for x in layouts)


def test_fleets_are_the_first_ones_or_have_more_like_them_in_turn():
    breakdowns = [{"time": 9, "repair_time": 9}]
    own = [
        {"id": "a", "start": "p0", "speed": 2},
        {"id": "v1", "start": "p1", "speed": 3, "breakdowns": breakdowns},
    ]
    layout = acerl_np.Layout.from_dict({**acerl_np.load_layout("dmh").to_dict(), "vehicles": own})
    assert resize_fleet(layout, 1).vehicles == layout.vehicles[:1]
    more = resize_fleet(layout, 4).vehicles
    assert [(x.id, x.start, x.speed, len(x.breakdowns)) for x in more] == [
        *(("a", "p0", 2.0, 0), ("v1", "p1", 3.0, 1), ("a1", "p0", 2.0, 0), ("v2", "p1", 3.0, 0))
    ]


def let_play(monkeypatch, values):
    """Let each policy have these objectives, and waiting times."""

    def play(policy, instances, playing, *, keys):
        value, *waiting = values[policy.name]
        return make_trials(value, **({"waiting": waiting[0]} if waiting else {}))

    monkeypatch.setattr(whatif, "play_policy", play)


def test_the_best_rule_is_told_by_the_other_records(monkeypatch, shifts):
    """EDD is far better on the first record alone, STD a little on the two others."""
    let_play(monkeypatch, {"EDD": [[0.0, 6.0, 6.0]], "STD": [[9.0, 5.0, 5.0]]})
    [row] = list_rows(shifts, {}, {"best": ("EDD", "STD")})
    assert row.trials.value.ravel().tolist() == [9.0, 6.0, 6.0]
    assert row.rules == ("EDD", "STD")
    [row] = list_rows(shifts[:1], {}, {"best": ("STD", "EDD")})
    assert row.trials.value[0, 0] == 9.0  # the first, as nobody else can tell
    # That of the least of what the target measures; of equals the first.
    for waiting, rule in ((7.0, "STD"), (9.0, "EDD")):
        let_play(monkeypatch, {"EDD": ([1.0] * 3, [9.0] * 3), "STD": ([5.0] * 3, [waiting] * 3)})
        rules = {"best": ("EDD", "STD")}
        assert list_rows(shifts, {}, rules)[0].rules == ("EDD",)
        [row] = list_rows(shifts, {}, rules, target="waiting<120")
        assert row.rules == (rule,) and row.measure("waiting")[0] == waiting


def make_trials(values, late=None, **more):
    """Trials of one episode a record, with these objectives and shares of late tasks."""
    value = np.array(values, np.float64)[:, None]
    figures = dict.fromkeys(METRICS, np.ones_like(value))
    figures |= {"value": value, "late": value if late is None else np.array(late)[:, None]}
    figures |= {name: np.array(x)[:, None] for name, x in more.items()}
    names = tuple(f"s{k}" for k in range(len(value)))
    return Trials(names, decisions=1, goal=Goal("late"), **figures)


def make_rows(lates, knob="vehicles", policy="mine", **more):
    base = {"vehicles": 9, **dict.fromkeys(("demand", "speed", "lengthen", "breakdown_rate"), 1.0)}
    base |= {"chargers": 0, "commitment": "assignment", "traffic": "off", **more}
    return [
        Row({**base, knob: value}, False, policy, (), 1.0, trials, trials)
        for value, late in lates.items()
        for trials in [make_trials(late, late)]
    ]


def test_answers_name_the_smallest_fleet_and_the_one_that_misses():
    unfinished = [np.nan, np.nan]
    demand = make_rows({0.8: [0.0, 0.0], 1.2: [0.01, 0.01], 1.4: [0.1, 0.1]}, "demand")
    for rows, answer in (
        (
            make_rows({3: [0.2, 0.3], 4: [0.05, 0.05], 5: [0.011, 0.013], 6: [0.0, 0.0]}),
            "reached with 5 vehicles, 1.2 % (se 0.1), not with 4 vehicles, 5.0 % (se 0.0).",
        ),
        (
            make_rows({1: unfinished, 2: [0.03, 0.04]}),
            "not reached; closest with 2 vehicles, 3.5 % (se 0.5).",
        ),
        (
            make_rows({1: [0.001, 0.02], 2: [0.0, 0.0]}),
            "reached with 1 vehicle, 1.1 % (se 0.9) (1 vehicle: within two standard errors of the limit, "
            "more records would tell).",
        ),
        # Of a larger fleet that misses again the smaller one's answer is not all.
        (
            make_rows({k: [x, x] for k, x in {3: 0.2, 4: 0.01, 5: 0.05, 6: 0.0, 7: 0.3}.items()}),
            "reached with 4 vehicles, 1.0 % (se 0.0), not with 3 vehicles, 20.0 % (se 0.0) "
            "and not with 5 vehicles, 5.0 % (se 0.0) and not with 7 vehicles, 30.0 % (se 0.0).",
        ),
        (
            make_rows({"off": [0.0, 0.0], "beside": [0.01, 0.01], "lane": [0.1, 0.1]}, "traffic"),
            "reached with traffic beside, 1.0 % (se 0.0), not with traffic lane, 10.0 % (se 0.0).",
        ),
        # Of demand it is the most, and a rule that was chosen is named.
        (
            [replace(row, rules=("nearest", "opentcs")) for row in demand],
            "reached with demand 1.2 (nearest), 1.0 % (se 0.0), "
            "not with demand 1.4 (nearest), 10.0 % (se 0.0).",
        ),
    ):
        assert answer_target(rows, Target.read("late<2%")) == [f"late below 2 %, mine: {answer}"]


def test_answers_for_each_policy_and_each_setting_of_other_knobs():
    few, many = {3: [0.2, 0.2], 4: [0.01, 0.01]}, {3: [0.4, 0.4], 4: [0.2, 0.2]}
    rows = [*make_rows(few), *make_rows(many, demand=1.5), *make_rows(few, policy="other")]
    base = replace(make_rows({6: [0.0, 0.0]}, demand=2.0)[0], is_base=True)
    found = answer_target([base, *rows], Target.read("late<2"))
    settings = ["demand 1, mine", "demand 1.5, mine", "demand 1, other"]
    assert [text.split(":")[0] for text in found] == [f"late below 2 %, {x}" for x in settings]
    assert ["not reached" in text for text in found] == [False, True, False]


def test_targets_are_read_or_refused():
    for text, expected in (
        ("late<2%", Target("late", 2.0)),
        (" waiting < 120 s ", Target("waiting", 120.0)),
        ("utilisation<85", Target("utilisation", 85.0)),
    ):
        assert Target.read(text) == expected
    words = "target: read  ... ; expected a measure below a number, such as 'late<2%'"
    texts = ("late", "late>2%", "late<2s", "late<", "late<0", "late<1.2.3", "lat<2%", "<2", "")
    assert list_unrefused(Target.read, [(text, words) for text in texts]) == []


def test_what_cannot_be_played_is_refused_before_anything_is(shifts, monkeypatch):
    monkeypatch.setattr(whatif, "play_policy", None)
    untrained = acerl_np.Config(generations=0, hidden=(2,), slots="pool")
    network = acerl_np.ACERL(shifts, untrained, threads=1).policy
    words = r"net: 5 vehicles: s0: .* has 5 vehicles; this policy was trained for 4"
    with pytest.raises(PolicyError, match=words):
        list_rows(shifts, {"vehicles": [5]}, {"net": network})
    calm = [replace(x, layout=x.layout.with_random_breakdowns(None)) for x in shifts]
    small = replace(shifts[1], layout=resize_fleet(shifts[1].layout, 2))
    many = range(1, 99)
    cases = [
        (([], {}), "no records; expected at least one"),
        ((shifts, {"ovens": [1]}), "knob: read 'ovens'; expected one of vehicles, demand"),
        ((shifts, {"vehicles": []}), "0 settings; expected 1 to 1,000"),
        ((shifts, {"vehicles": [2.5]}), "vehicles: read 2.5; expected a whole number from 1"),
        ((shifts, {"demand": many, "speed": many}), "9,604 settings; expected 1 to 1,000"),
        ((calm, {"breakdown_rate": [2]}), "breakdown_rate: read 2 on a floor without random"),
        (([shifts[0], small], {}), "s1: another floor or fleet than s0's"),
    ]
    assert list_unrefused(lambda given: list_rows(*given), cases) == []
    # A fleet that cannot carry a task
    fleet = shifts[0].layout.vehicles
    layout = shifts[0].layout.with_fleet([replace(fleet[0], capacity=1.0), *fleet[1:]])
    record = replace(shifts[0], layout=layout, demand=np.full(shifts[0].n_tasks, 2.0))
    words = "1 vehicle: s0: task 't0': demand: 2 exceeds every vehicle's"
    with pytest.raises(RecordError, match=words):
        list_rows(record, {"vehicles": [1]})


def test_driving_may_take_longer_and_records_tell_by_how_much():
    """A shift played where driving takes 1.3 times as long, its finishes recorded, and played here again."""
    floor = acerl_np.load_layout("supply-loop")
    shift = acerl_np.generate_shift(floor, hours=2.0, scale=0.5)
    longer = lengthen(floor, 1.3)
    for v, slow in zip(floor.vehicles, longer.vehicles, strict=True):
        times = longer.routes.find_time(slow.speed), 1.3 * floor.routes.find_time(v.speed)
        np.testing.assert_allclose(*times)
    rows = list_rows(shift, {"lengthen": [1.3]}, {"nearest": "nearest"})
    [row] = [row for row in rows if not row.is_base]
    trace = trace_policy("nearest", replace(shift, layout=longer))
    assert row.trials.waiting[0, 0] == pytest.approx(trace.waiting)
    n = shift.n_tasks
    vehicle, start, finish = np.zeros(n, np.int32), np.zeros(n), np.zeros(n)
    for trip in trace.trips:
        vehicle[trip.task], start[trip.task], finish[trip.task] = trip.vehicle, trip.start, trip.end
    past = Assignments(shift, np.argsort(start, kind="stable"), vehicle, start, finish)
    factor, error, n_trips = estimate_lengthening([replay_assignments(past)])
    assert n_trips == n - len(floor.vehicles)
    assert abs(factor - 1.3) < 0.02 and 0.0 < error < 0.01
    none = replace(past, finish=np.full(n, np.nan))
    assert estimate_lengthening([replay_assignments(none)])[2] == 0
    # By its own finishes the past is what was played there.
    goal = Goal("late+0.05*tardiness", cost="worst")
    was = measure_past([past], Playing(2, goal=goal))
    played = play_policy("nearest", replace(shift, layout=longer), Playing(2, goal=goal))
    for name in ("makespan", "tardiness", "late", "worst", "value", "cost", "utilisation"):
        np.testing.assert_allclose(getattr(was, name), getattr(played, name), rtol=1e-9)
    assert np.isnan(was.waiting).all() and np.isnan(was.empty).all()
    waits = measure_past([past], Playing(1, goal=Goal("waiting", class_weights=(2.0,))))
    assert np.isnan(waits.value).all() and waits.cost == was.tardiness[:, :1]
    assert measure_past([none], Playing(1)) is None
    with pytest.raises(acerl_np.LayoutError, match="lengthen: read 0"):
        lengthen(floor, 0.0)
