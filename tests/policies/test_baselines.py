"""Rules and baselines: recorded expectations, and by hand; `kernels.test_deciders` has their oracle."""

import csv
from pathlib import Path

import numpy as np
import pytest
from machine import needs_jit
from worlds import World, make_task, straight_floor

import acerl_np
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.policies.rules import BASELINES, POLICY_NAMES, RULES, find_policy_name

EXPECTATIONS = Path(__file__).parents[1] / "data" / "rule-expectations.csv"


@needs_jit
@pytest.mark.parametrize("rule", ["FCFS", "EDD", "NVF", "STD", "MIX", "Random"])
def test_rules_meet_the_recorded_expectations(rule):
    suite = acerl_np.load_suite("dmh-train")
    trials = acerl_np.evaluate_policy(rule, suite, trials=3000, seed=1)
    with open(EXPECTATIONS, newline="") as file:
        expected = {row["instance"]: row for row in csv.DictReader(file) if row["rule"] == rule}
    assert len(expected) == 8
    for k, instance in enumerate(suite):
        for name in ("makespan", "tardiness"):
            # Both means are of 3,000 episodes; the recorded one is rounded to 0.1.
            values, recorded = getattr(trials, name)[k], expected[instance.name][f"{name}_mean"]
            error = values.std() * np.sqrt(2.0 / 3000) + 0.05
            assert abs(values.mean() - float(recorded)) < 4 * error


def play(name, vehicles, rows, **keys):
    """Who takes what at which time, in the order of the decisions."""
    world = World(straight_floor(vehicles, task_slots=4, **keys), rows, [0])
    found = []
    for decision in trace_policy(name, world.instance()).decisions:
        vehicle, task = vehicles[decision.vehicle]["id"], rows[decision.task]["task"]
        found.append((decision.time, vehicle, task))
    return found


@pytest.mark.parametrize(
    ("name", "pairs"),
    {
        "nearest": [("q", "b"), ("p", "a")],  # 0 m, then 16 m: 32 s
        "fcfs-nearest": [("q", "a"), ("p", "b")],
        "edd-nearest": [("q", "b"), ("p", "a")],
        "opentcs": [("q", "b"), ("p", "a")],
        "shortest": [("q", "b"), ("p", "a")],
        "assignment": [("p", "b"), ("q", "a")],  # 12 s and 10 s at once, the first vehicle's first
    }.items(),
)
def test_the_first_pairs(name, pairs):
    vehicles = [{"id": "p", "start": "C", "speed": 0.5}, {"id": "q", "start": "B", "speed": 1}]
    rows = [make_task("a", "A", "B", 0, 90.0), make_task("b", "B", "C", 0, 80.0)]
    assert play(name, vehicles, rows) == [(0, *pair) for pair in pairs]


def test_opentcs_asks_vehicles_where_they_are_few():
    """Three tasks: p, the first vehicle, takes what is due first; two tasks: that takes q, the nearest."""
    vehicles = [{"id": "p", "start": "C", "speed": 1}, {"id": "q", "start": "A", "speed": 1}]
    rows = [make_task(f"a{k}", "A", "B", 0, 90.0 - k) for k in range(3)]
    assert play("opentcs", vehicles, rows)[:2] == [(0, "p", "a2"), (0, "q", "a1")]
    assert play("opentcs", vehicles, rows[:2]) == [(0, "q", "a1"), (0, "p", "a0")]


def test_opentcs_goes_by_due_time_then_age_then_approach():
    """Tasks are due at once. One vehicle: the older one, though it is farther away; two: the older one first,
    though a breakdown has put it behind the other; the vehicle that is nearest to it."""
    one = [{"id": "v", "start": "C", "speed": 1}]
    rows = [make_task("old", "A", "B", 0, 90.0), make_task("young", "C", "B", 0.5, 89.5)]
    first = make_task("first", "B", "C", 0, 1.0)
    assert play("opentcs", one, [first, *rows])[1] == (12, "v", "old")
    broken = [{"time": 5, "repair_time": 4}]
    two = [{"id": "p", "start": "C", "speed": 1}, {"id": "q", "start": "A", "speed": 1}]
    two[0]["breakdowns"] = broken
    rows = [
        make_task("first", "A", "B", 0, 1.0),
        make_task("old", "C", "B", 0, 90.0),
        make_task("young", "B", "C", 2.0, 88.0),
    ]
    assert play("opentcs", two, rows)[2:] == [(10, "p", "old"), (10, "q", "young")]


@pytest.mark.parametrize(("waited", "chosen"), [(46, "near"), (47, "far")])
def test_who_has_waited_may_be_farther_away(waited, chosen):
    """By the speed limit it is 20 s away, the other 6 s: 20 - 0.3 x 46 is more than 6, 20 - 0.3 x 47 less."""
    now = 1.0 + waited
    rows = [
        make_task("first", "A", "B", 0, handling_time=now - 20.0),
        make_task("far", "A", "B", 1.0),
        make_task("near", "C", "B", now),
    ]
    edges = [{"a": "A", "b": "B", "max_speed": 0.5}, {"a": "B", "b": "C"}]
    played = play("assignment", [{"id": "v", "start": "A", "speed": 1}], rows, edges=edges)
    assert played[:2] == [(0, "v", "first"), (now, "v", chosen)]


def test_names_of_policies_whatever_their_case():
    assert [find_policy_name(name.upper()) for name in BASELINES] == list(BASELINES)
    assert find_policy_name("edd") == "EDD"
    assert set(BASELINES) < set(RULES) == set(POLICY_NAMES)
    with pytest.raises(acerl_np.PolicyError, match="policy 'SPT': unknown; expected one of FCFS"):
        find_policy_name("SPT")
