"""Static plans as policies: by the vehicles' ids, fitted on training records and judged on others."""

from __future__ import annotations

import json
from dataclasses import replace

import numba
import numpy as np
import pytest
from damaged import check_damaged
from episodes import play_static
from tables_and_refusals import HEADER, list_unrefused, write
from worlds import change, move, reorder

import acerl_np
from acerl_np import Dispatcher, PolicyError, StaticPlan, evaluate_policy, fit_static, load_layout
from acerl_np.policies.origin import Origin
from acerl_np.policies.static import estimate_static
from acerl_np.policies.static_search import PositionPlan, find_static
from acerl_np.problem.goal import Goal
from acerl_np.problem.packing import pack_json
from acerl_np.problem.tables import build_problem

needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="hundreds of episodes")

PLAN = StaticPlan(("v2", "v0", "v1"), {"v0": "NVF", "v1": "EDD", "v2": "STD"})


@pytest.fixture(scope="module")
def suite():
    return acerl_np.load_suite("dmh-train")


def differing_fleet():
    """A floor whose vehicles are not alike, so that it matters which one goes."""
    data = load_layout("dmh").to_dict()
    starts, speeds = ("carport", "st3", "st6"), (1.0, 2.0, 0.5)
    for vehicle, start, speed in zip(data["vehicles"], starts, speeds, strict=True):
        vehicle |= {"start": start, "speed": speed}
    return acerl_np.Layout.from_dict(data)


def test_plans_that_are_none():
    assert PLAN.describe() == "v2 STD, v0 NVF, v1 EDD"
    assert StaticPlan(["a", "b"], {"b": "edd", "a": "FCFS"}).describe() == "a FCFS, b EDD"
    assert "\n" not in StaticPlan(("a\nb",), {"a\nb": "EDD"}).describe()
    cases = [
        (((), {}), "order: read"),
        (((1, 2), {1: "EDD", 2: "EDD"}), "order: read"),
        ((("a", "a"), {"a": "EDD"}), "order: 'a' again; expected each vehicle once"),
        ((("a", "b"), {"a": "EDD"}), "rules: expected one for each vehicle"),
        ((("a",), {"a": "EDD", "b": "EDD"}), "rules: expected one for each vehicle"),
        ((("a",), ["EDD"]), "rules: expected one for each vehicle"),
        ((("a",), {"a": "LWT"}), "policy 'LWT': unknown; expected one of FCFS, EDD, NVF, STD"),
        ((("a",), {"a": 1}), "policy '1': unknown"),
    ]
    assert list_unrefused(lambda given: StaticPlan(*given), cases, PolicyError) == []


def test_damaged_plans_are_refused_in_one_line(tmp_path):
    path = tmp_path / "plan.npz"
    PLAN.save(path)
    rows = [
        ("plan", None, "plan: read nothing"),
        ("plan", np.zeros(3), "plan: read float64 of shape"),
        ("plan", np.zeros(0, np.uint8), "plan: read uint8"),
        ("plan", np.full(3, 255, np.uint8), "plan: .*decode"),
        ("plan", np.full(10**5, ord("["), np.uint8), "plan: "),
        ("plan", pack_json([]), "plan: order: read"),
        ("plan", pack_json([["a"]]), "plan: "),
        ("plan", pack_json([["a", "EDD"], ["a", "EDD"]]), "plan: order: 'a' again"),
        ("plan", pack_json([["a", "a\nb"]]), r"plan: policy 'a\\nb': unknown"),
        ("plan", pack_json([[["a"], "EDD"]]), "plan: "),
        ("plan", pack_json(3), "plan: "),
    ]
    check_damaged(path, rows, acerl_np.load_policy)


def test_a_fleet_of_other_vehicles_is_refused(suite):
    data = load_layout("dmh").to_dict()
    first = data["vehicles"][0]
    for vehicles, words in (
        (data["vehicles"][:2], "lacks 'v2'"),
        ([*data["vehicles"], {**first, "id": "tug"}], "has 'tug' besides"),
        ([{**first, "id": "tug"}], "lacks 'v2', 'v0', 'v1' and has 'tug' besides"),
    ):
        layout = change(load_layout("dmh"), vehicles=vehicles)
        expected = f"the layout 'dmh' {words}; this static plan goes by the vehicles' ids"
        with pytest.raises(PolicyError) as caught:
            PLAN.check_layout(layout, "floor")
        assert str(caught.value) == f"floor: {expected}"
        with pytest.raises(PolicyError, match=f"^DMH-01: {expected}"):
            evaluate_policy(PLAN, move(suite[0], layout))
        with pytest.raises(PolicyError, match=f"^dispatcher: {expected}"):
            Dispatcher(layout, PLAN)
    PLAN.check_layout(reorder(load_layout("dmh"), (2, 0, 1)), "floor")


def test_a_plan_goes_by_id_whatever_the_order_of_the_fleet(suite):
    """The same schedule, also beside a record with the fleet in another order."""
    layout = differing_fleet()
    instances = [move(item, layout) for item in suite[:2]]
    expected = evaluate_policy(PLAN, instances, trials=2, threads=1)
    direct = play_static([PositionPlan((2, 0, 1), (2, 1, 3))], instances)
    assert expected.makespan[:, 0].tolist() == direct[0][0].tolist()
    assert expected.makespan[:, 1].tolist() == direct[0][0].tolist()
    assert expected.tardiness[:, 0].tolist() == direct[1][0].tolist()
    assert expected.decisions == 2 * direct[2].sum()
    for order in ((2, 1, 0), (1, 2, 0)):
        other = [instances[0], move(instances[1], reorder(layout, order))]
        found = evaluate_policy(PLAN, other, trials=2, threads=1)
        assert found.makespan.tolist() == expected.makespan.tolist()
        assert found.tardiness.tolist() == expected.tardiness.tolist()
        assert found.decisions == expected.decisions
    # Nor is that warned of; the vehicles do differ: by position the plan is another one.
    turned = [move(item, reorder(layout, (2, 1, 0))) for item in instances]
    by_position = play_static([PositionPlan((2, 0, 1), (2, 1, 3))], turned)
    assert by_position[0][0].tolist() != direct[0][0].tolist()


def test_a_plan_elsewhere_warns_but_not_of_the_order(suite):
    plan = replace(PLAN, origin=Origin.of(suite))
    Dispatcher(reorder(suite[0].layout, (2, 1, 0)), plan)
    with pytest.warns(acerl_np.PolicyWarning, match="other starts, speeds or capacities") as caught:
        Dispatcher(differing_fleet(), plan)
    assert [item.filename for item in caught] == [__file__]


@needs_jit
def test_the_best_plan_is_found_and_named_by_ids(suite):
    best = find_static(suite)
    assert best.candidates == 384
    assert best.plan == PositionPlan(order=(1, 2, 0), rules=(3, 3, 3))
    assert best.makespan.mean() == 1900.375
    assert (best.tardiness < 50.0).sum() == 5
    plan = fit_static(suite)
    assert plan.describe() == "v1 STD, v2 STD, v0 STD"
    assert plan.origin == Origin.of(suite)
    assert plan.origin.history == tuple(suite)
    best = find_static(suite, within_limit=True)
    assert best.makespan.mean() == 1961.125
    assert (best.tardiness < 50.0).all()
    within = fit_static(suite, within_limit=True)
    assert within.describe() == best.plan.describe() == "v1 EDD, v0 EDD, v2 EDD"
    with pytest.raises(PolicyError, match="below 1 s; expected a larger cost_limit"):
        fit_static(suite[:1], 1.0, True)


def test_a_plan_within_the_limit_may_not_be_found(suite):
    """As it leaves an episode unfinished, or its tardiness is never below the limit."""
    for options in ({"horizon": 100.0}, {"goal": Goal(cost_limit=0.0)}):
        assert find_static(suite[0], within_limit=True, **options) is None


@needs_jit
def test_a_large_fleet_is_searched_locally(suite, monkeypatch):
    vehicles = [{"id": f"v{k}", "start": "carport"} for k in range(6)]
    instance = move(suite[0], change(suite[0].layout, vehicles=vehicles))
    built = []

    def build(*arguments, **options):
        built.append(arguments)
        return build_problem(*arguments, **options)

    monkeypatch.setattr("acerl_np.policies.static_search.build_problem", build)
    found = find_static(instance, seed=3)
    assert found.candidates > 4
    assert len(built) == 1  # on a large floor tables take longer than episodes
    monkeypatch.undo()
    assert find_static(instance, seed=3).plan == found.plan
    uniform = [PositionPlan(tuple(range(6)), (rule,) * 6) for rule in range(4)]
    assert found.makespan[0] <= play_static(uniform, [instance])[0].min()


@needs_jit
def test_fleets_of_training_may_be_listed_in_any_order(suite):
    layout = differing_fleet()
    same = [move(item, layout) for item in suite[:3]]
    mixed = [same[0], move(same[1], reorder(layout, (2, 0, 1))), same[2]]
    assert fit_static(mixed) == fit_static(same)
    # By positions something else would have been found.
    assert find_static(mixed).makespan.tolist() != find_static(same).makespan.tolist()
    assert [place.vehicles for place in fit_static(mixed).origin.places] == [
        ("v0", "v1", "v2"),
        ("v2", "v0", "v1"),
    ]
    two = reorder(layout, (0, 1))
    with pytest.raises(PolicyError, match=r"DMH-02: vehicles v0, v1; expected those of DMH-01"):
        fit_static([suite[0], move(suite[1], two)])
    with pytest.raises(acerl_np.InputError, match="no instances"):
        fit_static([])


def test_static_is_never_fitted_on_the_records_that_judge(suite, monkeypatch):
    with pytest.raises(PolicyError) as caught:
        evaluate_policy("static", suite[:1])
    assert str(caught.value) == (
        "Static: no records to fit it on; expected training=records, or the plan that "
        "fit_static(records) returns"
    )
    fitted_on = []

    def watch(instances, **options):
        fitted_on.extend(item.name for item in instances)
        return replace(PLAN, origin=Origin.of(instances))

    monkeypatch.setattr("acerl_np.evaluation.trials.fit_static", watch)
    trials = evaluate_policy("Static", suite[:1], trials=2, training=suite[3:5])
    assert fitted_on == ["DMH-04", "DMH-05"]
    expected = evaluate_policy(PLAN, suite[:1], trials=2)
    assert trials.makespan.tolist() == expected.makespan.tolist()
    assert trials.decisions == expected.decisions
    with pytest.raises(PolicyError, match="training: given with a policy that needs none"):
        evaluate_policy("EDD", suite[:1], training=suite[1:2])


def test_a_saved_dispatcher_keeps_its_plan(suite, tmp_path):
    dispatcher = Dispatcher(suite[0].layout, replace(PLAN, origin=Origin.of(suite[:1])))
    for k, expiry in enumerate((400.0, 370.0, 340.0)):
        dispatcher.feed(acerl_np.TaskArrived(0.0, f"t{k}", "st1", f"st{k + 3}", expiry))
    dispatcher.save(tmp_path / "live.npz")
    loaded = Dispatcher.load(tmp_path / "live.npz")
    assert loaded.policy == PLAN
    assert [item.name for item in loaded.policy.origin.history] == ["DMH-01"]
    found = loaded.decide(0.0)
    by_plan = [("v2", "STD"), ("v0", "NVF"), ("v1", "EDD")]
    assert [(item.vehicle, item.rule) for item in found] == by_plan
    assert found == dispatcher.decide(0.0)


@needs_jit
def test_the_command_says_what_static_was_fitted_on(empty, run):
    words = "evaluate EDD static --trials 1 --suite"
    out = run(f"{words} dmh-test").out.splitlines()
    assert out[3].startswith("Static (fitted on dmh-train) ")
    assert "Static (fitted on dmh-train): v1 STD, v2 STD, v0 STD" in out
    for fit, label in (
        ("dmh-test", "dmh-test"),
        ("DMH-09 DMH-10 DMH-11 DMH-12", "DMH-09, DMH-10, DMH-11, ... (4)"),
    ):
        found = run(f"{words} dmh-train --format json --fit {fit}")
        labels = [row["policy"] for row in json.loads(found.out)]
        assert f"Static (fitted on {label})" in labels
        assert found.err.startswith(f"Static (fitted on {label}): v")


@needs_jit
def test_static_on_own_records_needs_others(empty, run):
    for name in ("week1.csv", "week2.csv"):
        write(empty / name, HEADER, "a,st1,st5,0,500", "b,st2,st4,9,500")
    words = "evaluate Static week2.csv --layout dmh --trials 1"
    line = (
        "Static: no records to fit it on; expected --fit TASKS.csv or a bundled suite "
        "(other records than those that judge it)"
    )
    assert run(words, 2).err.rstrip().endswith(line)
    assert "Static (fitted on week1)" in run(f"{words} --fit week1.csv").out
    assert "--fit: given without Static" in run("evaluate EDD --fit DMH-01", 2).err
    # A bundled record on a floor of one's own is no bundled one.
    (empty / "floor.json").write_text(json.dumps(differing_fleet().to_dict()))
    words = "evaluate Static DMH-01 --layout floor.json --trials 1"
    run(words, 2)
    assert run(f"{words} --fit DMH-02").err == ""
    fleet = "Static (fitted on dmh-train): DMH-01: fleet: trained for v0, v1, v2 (hash "
    assert run(f"{words} --fit dmh-train").err.startswith(fleet)


@needs_jit
def test_the_command_reads_a_plan(empty, run, suite):
    replace(PLAN, origin=Origin.of(suite)).save("plan.npz")
    words = "evaluate plan.npz DMH-09 --trials 1"
    found = run(words)
    assert "plan.npz: v2 STD, v0 NVF, v1 EDD" in found.out.splitlines() and found.err == ""
    (empty / "two.json").write_text(json.dumps(reorder(load_layout("dmh"), (0, 1)).to_dict()))
    line = "plan.npz: DMH-09: the layout 'dmh' lacks 'v2'"
    assert line in run(f"{words} --layout two.json", 2).err


def test_a_plan_is_known_to_take_long_where_vehicles_meet():
    layout = load_layout("supply-loop")
    day = acerl_np.generate_shift(layout, hours=1.0, scale=0.3)
    meets = replace(day, layout=layout.with_traffic("lane"))
    assert estimate_static([meets]) > 10.0 * estimate_static([day])
