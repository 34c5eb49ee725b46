"""Static plans as policies: by the vehicles' ids, fitted on training records and judged on others."""

from __future__ import annotations

import json
from dataclasses import replace

import numba
import numpy as np
import pytest
from damaged import check_damaged
from episodes import play_static

import acerl_np
from acerl_np import (
    Dispatcher,
    InputError,
    Instance,
    Layout,
    PolicyError,
    PolicyWarning,
    StaticPlan,
    TaskArrived,
    VehicleIdle,
    evaluate_policy,
    fit_static,
    load_instance,
    load_layout,
    load_policy,
    load_suite,
)
from acerl_np.commands.main import main
from acerl_np.policies.origin import Origin
from acerl_np.policies.static_search import PositionPlan, find_static
from acerl_np.problem.packing import pack_json

needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="hundreds of episodes")

PLAN = StaticPlan(("v2", "v0", "v1"), {"v0": "NVF", "v1": "EDD", "v2": "STD"})


def reorder(layout, order):
    data = layout.to_dict()
    return Layout.from_dict({**data, "vehicles": [data["vehicles"][v] for v in order]})


def move(instance, layout):
    return Instance.from_rows(instance.name, layout, instance.rows())


@pytest.fixture(scope="module")
def suite():
    return load_suite("dmh-train")


def differing_fleet():
    """A floor whose vehicles are not alike, so that it matters which one goes."""
    data = load_layout("dmh").to_dict()
    starts, speeds = ("carport", "st3", "st6"), (1.0, 2.0, 0.5)
    for vehicle, start, speed in zip(data["vehicles"], starts, speeds, strict=True):
        vehicle |= {"start": start, "speed": speed}
    return Layout.from_dict(data)


# The plan itself


def test_plans_that_are_none():
    assert PLAN.describe() == "v2 STD, v0 NVF, v1 EDD"
    assert StaticPlan(["a", "b"], {"b": "edd", "a": "FCFS"}).describe() == "a FCFS, b EDD"
    assert "\n" not in StaticPlan(("a\nb",), {"a\nb": "EDD"}).describe()
    for order, rules, message in [
        ((), {}, "order: read"),
        ((1, 2), {1: "EDD", 2: "EDD"}, "order: read"),
        (("a", "a"), {"a": "EDD"}, "order: 'a' again; expected each vehicle once"),
        (("a", "b"), {"a": "EDD"}, "rules: expected one for each vehicle"),
        (("a",), {"a": "EDD", "b": "EDD"}, "rules: expected one for each vehicle"),
        (("a",), ["EDD"], "rules: expected one for each vehicle"),
        (("a",), {"a": "LWT"}, "policy 'LWT': unknown; expected one of FCFS, EDD, NVF, STD"),
        (("a",), {"a": 1}, "policy '1': unknown"),
    ]:
        with pytest.raises(PolicyError, match=message):
            StaticPlan(order, rules)


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
    check_damaged(path, rows, load_policy)


def test_a_fleet_of_other_vehicles_is_refused(suite):
    data = load_layout("dmh").to_dict()
    first = data["vehicles"][0]
    for vehicles, words in (
        (data["vehicles"][:2], "lacks 'v2'"),
        ([*data["vehicles"], {**first, "id": "tug"}], "has 'tug' besides"),
        ([{**first, "id": "tug"}], "lacks 'v2', 'v0', 'v1' and has 'tug' besides"),
    ):
        layout = Layout.from_dict({**data, "vehicles": vehicles})
        expected = f"the layout 'dmh' {words}; this static plan goes by the vehicles' ids"
        with pytest.raises(PolicyError) as caught:
            PLAN.check_layout(layout, "floor")
        assert str(caught.value) == f"floor: {expected}"
        with pytest.raises(PolicyError, match=f"^DMH-01: {expected}"):
            evaluate_policy(PLAN, move(suite[0], layout))
        with pytest.raises(PolicyError, match=f"^dispatcher: {expected}"):
            Dispatcher(layout, PLAN)
    PLAN.check_layout(reorder(load_layout("dmh"), (2, 0, 1)), "floor")


# Played


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
    with pytest.warns(PolicyWarning, match="other starts, speeds or capacities") as caught:
        Dispatcher(differing_fleet(), plan)
    assert [item.filename for item in caught] == [__file__]


# Fitted


@needs_jit
def test_a_fitted_plan_is_the_best_on_its_training_records(suite):
    plan = fit_static(suite)
    assert plan.describe() == "v1 STD, v2 STD, v0 STD"
    assert plan.origin == Origin.of(suite)
    assert plan.origin.history == tuple(suite)
    within = fit_static(suite, within_limit=True)
    assert within.describe() == "v1 EDD, v0 EDD, v2 EDD"
    assert evaluate_policy(within, suite, trials=1).satisfied == 1.0
    with pytest.raises(PolicyError, match="below 1 s; expected a larger cost_limit"):
        fit_static(suite[:1], 1.0, True)


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
    data = layout.to_dict()
    two = Layout.from_dict({**data, "vehicles": data["vehicles"][:2]})
    with pytest.raises(PolicyError, match=r"DMH-02: vehicles v0, v1; expected those of DMH-01"):
        fit_static([suite[0], move(suite[1], two)])
    with pytest.raises(InputError, match="no instances"):
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
    with pytest.raises(PolicyError, match="training: given with a policy that needs none"):
        evaluate_policy("EDD", suite[:1], training=suite[1:2])


# Live


def drive(dispatcher):
    """A few events; return all assignments."""
    sites = [("st1", "st5"), ("st3", "st4"), ("st2", "st6"), ("st8", "st7"), ("st4", "st1")]
    for k, (pickup, delivery) in enumerate(sites):
        expiry = 400.0 - 30 * k
        dispatcher.feed(TaskArrived(0.0, f"t{k}", pickup, delivery, expiry=expiry))
    found = dispatcher.decide(0.0)
    for time, vehicle in ((50.0, "v1"), (60.0, "v2"), (90.0, "v1")):
        task = next(task for task, other in dispatcher.under_way.items() if other == vehicle)
        dispatcher.feed(VehicleIdle(time, vehicle, sites[int(task[1:])][1]))
        found += dispatcher.decide(time)
    return found


def test_a_dispatcher_follows_the_plan(tmp_path):
    layout = load_layout("dmh")
    dispatcher = Dispatcher(layout, PLAN)
    found = drive(dispatcher)
    assert [(item.vehicle, item.rule) for item in found] == [
        ("v2", "STD"),
        ("v0", "NVF"),
        ("v1", "EDD"),
        ("v1", "EDD"),
        ("v2", "STD"),
    ]
    turned = reorder(layout, (2, 1, 0))
    assert drive(Dispatcher(turned, PLAN)) == found
    Dispatcher(turned, replace(PLAN, origin=Origin.of(load_instance("DMH-01")))).save(
        tmp_path / "live.npz"
    )
    loaded = Dispatcher.load(tmp_path / "live.npz")
    assert loaded.policy == PLAN
    assert [item.name for item in loaded.policy.origin.history] == ["DMH-01"]
    assert drive(loaded) == found


def test_a_vehicle_that_may_carry_nothing_is_passed_over():
    data = load_layout("dmh").to_dict()
    for vehicle in data["vehicles"]:
        vehicle["capacity"] = 5.0 if vehicle["id"] == "v2" else 50.0
    dispatcher = Dispatcher(Layout.from_dict(data), PLAN)
    dispatcher.feed(TaskArrived(0.0, "heavy", "st1", "st5", expiry=400.0, demand=20.0))
    assert [tuple(item) for item in dispatcher.decide(0.0)] == [("v0", "heavy", "NVF")]
    assert dispatcher.decide(1.0) == []


# The program


@needs_jit
def test_the_command_says_what_static_was_fitted_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", "EDD", "static", "--trials", "1"]
    assert main([*words, "--suite", "dmh-test"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[3].startswith("Static (fitted on dmh-train) ")
    assert "Static (fitted on dmh-train): v1 STD, v2 STD, v0 STD" in out
    words = [*words, "--suite", "dmh-train", "--format", "json"]
    for fit, label in (
        (["dmh-test"], "dmh-test"),
        (["DMH-09", "DMH-10", "DMH-11", "DMH-12"], "DMH-09, DMH-10, DMH-11, ... (4)"),
    ):
        assert main([*words, "--fit", *fit]) == 0
        captured = capsys.readouterr()
        rows = json.loads(captured.out)
        assert f"Static (fitted on {label})" in [row["policy"] for row in rows]
        assert captured.err.startswith(f"Static (fitted on {label}): v")


@needs_jit
def test_static_on_own_records_needs_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = ["task,pickup,delivery,arrival_time,expiry_time", "a,st1,st5,0,500", "b,st2,st4,9,500"]
    for name in ("week1.csv", "week2.csv"):
        (tmp_path / name).write_text("\n".join(lines))
    words = ["evaluate", "Static", "week2.csv", "--layout", "dmh", "--trials", "1"]
    assert main(words) == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith(
            "Static: no records to fit it on; expected --fit TASKS.csv or a bundled suite "
            "(other records than those that judge it)"
        )
    )
    assert main([*words, "--fit", "week1.csv"]) == 0
    assert "Static (fitted on week1)" in capsys.readouterr().out
    assert main(["evaluate", "EDD", "--fit", "DMH-01"]) == 2
    assert "--fit: given without Static" in capsys.readouterr().err
    # A bundled record on a floor of one's own is no bundled one.
    layout = differing_fleet().to_dict()
    (tmp_path / "floor.json").write_text(json.dumps(layout))
    words = ["evaluate", "Static", "DMH-01", "--layout", "floor.json", "--trials", "1"]
    assert main(words) == 2
    capsys.readouterr()
    assert main([*words, "--fit", "DMH-02"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*words, "--fit", "dmh-train"]) == 0
    assert capsys.readouterr().err.startswith(
        "Static: DMH-01: fleet: trained for v0, v1, v2 (hash "
    )


@needs_jit
def test_the_command_reads_a_plan(tmp_path, monkeypatch, capsys, suite):
    monkeypatch.chdir(tmp_path)
    replace(PLAN, origin=Origin.of(suite)).save("plan.npz")
    words = ["evaluate", "plan.npz", "DMH-09", "--trials", "1"]
    assert main(words) == 0
    captured = capsys.readouterr()
    expected = evaluate_policy(PLAN, acerl_np.load_instance("DMH-09"), trials=1)
    cell = f"{expected.makespan[0, 0]:.1f}/{expected.tardiness[0, 0]:.1f}"
    assert cell in captured.out
    assert "plan.npz: v2 STD, v0 NVF, v1 EDD" in captured.out.splitlines()
    assert captured.err == ""
    layout = load_layout("dmh").to_dict()
    layout["vehicles"] = layout["vehicles"][:2]
    (tmp_path / "two.json").write_text(json.dumps(layout))
    assert main([*words, "--layout", "two.json"]) == 2
    assert "plan.npz: DMH-09: the layout 'dmh' lacks 'v2'" in capsys.readouterr().err
