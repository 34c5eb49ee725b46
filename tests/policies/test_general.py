"""The policy `general`, the family of floors that trains it, and policies that hand over to a baseline."""

import json

import numpy as np
import pytest
from machine import load_example
from tables_and_refusals import list_unrefused

import acerl_np
from acerl_np import Config, Dispatcher, IndexPolicy, Lookahead, evaluate_policy, load_suite
from acerl_np.commands.shared.players import find_policy
from acerl_np.evaluation.judge import judge
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import Playing
from acerl_np.live import events as E
from acerl_np.policies.general import SETS, make_general, read_sets
from acerl_np.policies.rules import BASELINES, RulePolicy
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import are_shifts
from acerl_np.problem.layout import resize_fleet
from acerl_np.problem.servable import measure_load
from acerl_np.problem.shift import find_scale
from acerl_np.problem.tables import build_problem
from acerl_np.support.errors import ConfigError, PolicyError
from studies import general as study
from studies.family import DAYS, KINDS, draw_day, draw_floor


def tiny_shifts(n):
    layout = acerl_np.load_layout("supply-loop")
    how = {"hours": 1.2, "scale": 0.5, "seed": 5}
    return [acerl_np.generate_shift(layout, **how, index=k, name=f"s{k}") for k in range(n)]


POLICY = IndexPolicy.of_weights(approach=-1.0, loaded=0.5, slack=-1.0)


@pytest.mark.parametrize(
    ("relief", "beyond", "guard"),
    [
        *(("nearest", beyond, None) for beyond in (0.4, 1.0, 9.0)),
        ("edd-nearest", 1.0, None),
        ("shortest", None, 0.2),
        ("shortest", 1.9, 0.1),
        ("shortest", 9.0, 0.1),
    ],
)
def test_a_rule_decides_exactly_where_more_waits_and_the_guard_where_a_task_is_overdue(
    relief, beyond, guard
):
    instance = load_suite("dmh-train")[0]
    rows = [{**row, "expiry_time": row["expiry_time"] / 2} for row in instance.rows()]
    instance = acerl_np.Instance.from_rows("tight", instance.layout, rows)
    unit = float(build_problem([instance]).unit["seconds"][0])
    bare, rule = POLICY, RulePolicy(relief)
    switched = bare.switch(beyond, relief, guard)
    simulator = acerl_np.Simulator(instance, policy=switched)
    counts = {"bare": 0, "relief": 0, "guard": 0}
    while not simulator.done.all():
        pairs, now = simulator.pairs(0), simulator.time[0]
        given = np.maximum(instance.expiry, 4.0 * unit)
        late = now - instance.arrival - instance.expiry
        tasks = np.unique(pairs.task)
        waiting = len(tasks) + 1.5 * (late[tasks] > 0).sum() * (guard is not None)
        overdue = late[pairs.task] > (np.inf if guard is None else guard * given[pairs.task])
        if beyond is not None and waiting > beyond * 3:
            who, expected = "relief", [x.tolist() for x in rule.choose(simulator)]
        elif overdue.any():
            # The pool has the tasks in the order in which they came.
            rated = zip(pairs.approach, pairs.task, pairs.vehicle, overdue, strict=True)
            *_, task, v = min((x, int(k), int(v)) for x, k, v, own in rated if own)
            who, expected = "guard", [[v], [task]]
        else:
            who, expected = "bare", [x.tolist() for x in bare.choose(simulator)]
        counts[who] += 1
        vehicle, task = switched.choose(simulator)
        assert [vehicle.tolist(), task.tolist()] == expected
        simulator.assign(vehicle, task)
    assert (counts["relief"] > 0) == (beyond is not None and beyond < 2.0)
    assert (counts["guard"] > 0) == (guard is not None)


def test_a_switch_is_kept_in_files_and_told(tmp_path):
    for told in ((3.5, "opentcs", None), (3.5, "shortest", 2.0), (None, "nearest", 0.5)):
        policy = POLICY.switch(*told)
        policy.save(tmp_path / "policy.npz")
        again = acerl_np.load_policy(tmp_path / "policy.npz").replace(policy.theta * 2.0)
        assert (again.beyond, again.relief, again.guard) == told
        assert ("guard" in policy.to_arrays()) == (told[2] is not None)
    assert not {"beyond", "relief", "guard"} & POLICY.to_arrays().keys()
    cases = [((0.0, "nearest"), "beyond"), ((1.0, "EDD"), "policy 'EDD': unknown")]
    assert list_unrefused(lambda own: POLICY.switch(*own), cases, PolicyError) == []


def test_general_is_a_name_wherever_a_policy_is_named():
    records = load_suite("dmh-train")[:2]
    played = evaluate_policy("general", records, trials=1)
    own = evaluate_policy(make_general("makespan"), records, trials=1)
    np.testing.assert_array_equal(played.makespan, own.makespan)
    assert Lookahead("General", futures=0).policy is make_general("late")
    dispatcher = Dispatcher(acerl_np.load_layout("dmh"), "general")
    dispatcher.feed(E.TaskArrived(0.0, "t", "st1", "st5", 400.0))
    assert [order.task for order in dispatcher.decide(0.0)] == ["t"]


def test_what_stands_here_under_its_name_is_not_meant(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "general").mkdir()
    assert find_policy("general") == find_policy("General") == "general"
    with pytest.raises(PolicyError, match="expected a file, found a directory"):
        find_policy("./general")


def test_shifts_have_weights_of_their_own():
    shifts = tiny_shifts(1)
    assert are_shifts(shifts)
    played = evaluate_policy("general", shifts, trials=1)
    own = evaluate_policy(make_general("late"), shifts, trials=1)
    np.testing.assert_array_equal(played.makespan, own.makespan)
    assert read_sets().keys() == SETS.keys()
    assert make_general("late").beyond and make_general("late").guard
    assert make_general("makespan").beyond is make_general("makespan").guard is None


def test_floors_and_days_of_the_family_can_be_played():
    kinds, loads = set(), []
    for k in range(9):
        for sort in ("shift", "batch"):
            floor = draw_floor(7, k, sort=sort)
            kinds.add(floor.name.split("-")[0])
            how = {"sort": sort, **({"load": 0.7} if sort == "shift" else {})}
            day = draw_day(floor, 7, k, **how)
            assert day.rows() == draw_day(draw_floor(7, k, sort=sort), 7, k, **how).rows()
            if sort == "shift":
                loads.append(measure_load(day).offered)
            else:
                assert day.n_tasks == 10 * len(floor.vehicles)
                assert (day.arrival == 0.0).sum() >= day.n_tasks / 6
            day.check_servable()
    assert kinds == set(KINDS) and len(DAYS) == 3
    assert np.mean(loads) == pytest.approx(0.7, abs=0.1)


def test_trainings_of_shifts_have_a_switch_and_stored_ones_none():
    shifts, batch = tiny_shifts(1), load_suite("dmh-train")
    config = Config.preset("best", decisions=200)
    assert (config.resolve(shifts).beyond, config.resolve(shifts).guard) == (8.0, 1.0)
    assert config.resolve(batch).beyond == config.resolve(batch).guard == "auto"
    assert not {"beyond", "guard", "start"} & config.to_dict().keys()
    assert Config.preset("best", beyond=None).resolve(shifts).beyond == "none"
    stored = config.resolve(shifts).to_dict()
    Config.check_whole({**Config().to_dict()})
    assert stored["beyond"] == 8.0
    with pytest.raises(ConfigError, match="beyond: read -1"):
        Config.preset("best", beyond=-1)
    with pytest.raises(ConfigError, match="beyond: read 3"):
        Config(beyond=3)
    trainer = acerl_np.ACERL(batch, Config.preset("best", generations=0, start="general"))
    np.testing.assert_allclose(trainer.policy.theta, make_general("makespan").theta, rtol=1e-6)


@pytest.mark.slow
def test_a_verdict_on_shifts_has_what_a_plant_asks_about():
    shifts = tiny_shifts(7)
    training, unseen = shifts[:2], shifts[2:]
    goal = Goal("late+0.05*tardiness")
    verdict = judge(POLICY, training, unseen, Playing(1, goal=goal))
    assert verdict.best_rule in BASELINES
    assert {"nearest", "assignment", "general"} <= {row.label for row in verdict.rows}
    # The worst record, and each task's lateness, are those of a trace.
    traces = [trace_policy(POLICY, day, objective=goal) for day in unseen]
    own, tail = verdict.policy, verdict.policy.find_tail()
    assert tail["worst_record"] == pytest.approx(max(trace.value for trace in traces))
    for day, trace, late in zip(unseen, traces, own.lateness, strict=True):
        expected = np.maximum(0.0, trace.finish - day.arrival - day.expiry)
        np.testing.assert_allclose(late, expected, atol=1e-6)
    assert tail["late_tasks"] == pytest.approx(
        np.mean([t.late * d.n_tasks for t, d in zip(traces, unseen, strict=True)])
    )
    assert [day.label for day in verdict.bad_days] == ["one vehicle fewer", "demand x 1.3"]
    for day in verdict.bad_days:
        assert [row.label for row in day.rows] == ["policy", "nearest", "general"]
        assert {row.trials.makespan.shape for row in day.rows} == {(20, 1)}
        assert len({*day.rows[0].trials.value.ravel()}) > 10
        assert day.rows[0].find_worst() >= own.find_worst() > 0.0
        assert day.sentence(verdict.goal) in verdict.headline
    # What there is no time for is left out, and said.
    verdict = judge(POLICY, training, unseen, Playing(1, goal=goal), patience=0.0)
    assert not verdict.bad_days
    assert "bad days left out: about 1 s (acerl-np whatif)" in verdict.notes


@pytest.mark.long
def test_the_study_makes_weights_and_tables(run, tmp_path):
    parts = study.list_parts(1, generations=1)
    assert [part.describe() for part in parts] == [
        "late, general, seed 0",
        *(f"late, kind left out {kind}, seed 0" for kind in KINDS),
        "late, general, five features, seed 0",
        "makespan, general, seed 0",
    ]
    assert not any(day.name.startswith("loop") for day in study.make_days(parts[2])[:9])
    made, rows = study.run_part(parts[-1])
    assert {row["policy"] for row in rows} >= {"general", "nearest", "STD"}
    assert json.loads(json.dumps(study.pack_weights([{**made, "set": "late"}, made])))
    [table] = [x for x in study.tables(rows) if x.name == "general-makespan"]
    assert [row[0] for row in table.rows] == ["dmh-train", "noised-5", "noised-30", "family"]


@pytest.mark.parametrize(("n", "beyond"), [(3, 10.0), (4, 1.0), (14, 10.0)])
def test_in_plain_python_it_decides_the_same(n, beyond, monkeypatch):
    """Beside few and many vehicles, and where a baseline decides."""
    plain = load_example("general_plain")
    monkeypatch.setattr(plain, "BEYOND", beyond)
    layout = resize_fleet(acerl_np.load_layout("cross-aisles"), n)
    day = acerl_np.generate_shift(layout, hours=0.4, scale=find_scale(layout, 1.3))
    metres = layout.routes.distance
    speed = [vehicle.speed for vehicle in layout.vehicles]
    ways = metres[~np.eye(len(metres), dtype=bool)]
    unit = float(ways[np.isfinite(ways)].mean()) * n / sum(speed)
    due = day.arrival + day.expiry
    rows = zip(day.pickup, day.delivery, day.handling_time, day.arrival, due, strict=True)
    tasks = [plain.Task(int(a), int(b), *map(float, more)) for a, b, *more in rows]
    fleet = [plain.Vehicle(layout.site_index[vehicle.start], 0.0) for vehicle in layout.vehicles]
    trace = trace_policy(make_general("late").switch(beyond, "shortest", 1.0), day)
    given = set[int]()
    for decision, trip in list(zip(trace.decisions, trace.trips, strict=True))[:40]:
        now = float(decision.time)
        waiting = [k for k, task in enumerate(tasks) if task.since <= now and k not in given]
        shown = [plain.Vehicle(site, max(0.0, end - now)) for site, end in fleet]
        own = [tasks[k] for k in waiting]
        v, k = plain.choose(now, shown, own, lambda v, a, b: metres[a, b] / speed[v], unit)
        assert (v, waiting[k]) == (decision.vehicle, decision.task)
        given.add(decision.task)
        fleet[v] = plain.Vehicle(tasks[decision.task].delivery, float(trip.end))
    assert len(given) == 40 and ("shortest" in {x.reason.by for x in trace.decisions}) == (n == 4)
