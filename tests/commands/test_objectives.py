"""Objectives of one's own: a policy's file keeps what it was trained for, and other commands take it."""

import csv
import json

import pytest
from machine import needs_jit

import acerl_np
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.packing import unpack_json

pytestmark = needs_jit

GOAL = Goal("late+0.05*tardiness", "waiting", 90.0, (1.0, 2.0))
AIM = "late+0.05*tardiness, waiting below 90 s, priorities weigh 1, 2"
SHORT = "--generations 1 --set population=4 --trials 0 --quiet"


@pytest.fixture
def policies(empty, run):
    """aim.npz, trained for `GOAL`, and paper.npz."""
    own = f"--objective {GOAL.objective} --set cost=waiting --cost-limit 90 --set class_weights=1,2"
    run(f"train DMH-01 --preset best {SHORT} {own} --out aim")
    run(f"train DMH-01 --preset best {SHORT} --out paper")
    for name in ("aim", "paper"):
        (empty / name / "policy.npz").rename(f"{name}.npz")


def read_evaluated(run, words):
    return {
        row["policy"]: row
        for row in json.loads(run(f"evaluate --on DMH-02 {words} --trials 2 --format json").out)
        if row["record"] == "mean"
    }


def test_the_file_of_a_policy_keeps_its_objective(policies, run):
    assert acerl_np.load_policy("aim.npz").origin.goal == GOAL
    paper = acerl_np.load_policy("paper.npz")
    assert paper.origin.goal == PAPER
    # Files of the paper's goal are what they were before there were others.
    facts = unpack_json(paper.origin.to_arrays()["facts"])
    assert set(facts) == {"version", "places", "records"}
    shown = run("policy show aim.npz").out
    assert f"trained for: {AIM}\n" in shown
    assert "late+0.05*tardiness without" in shown and "within without" in shown
    assert "trained for" not in run("policy show paper.npz").out


def test_evaluate_takes_what_all_policies_were_trained_for(policies, run):
    found = run("evaluate aim.npz EDD --on DMH-02 --trials 2").out
    assert f"Objective: {AIM}." in found.splitlines()
    assert "late+0.05*tardiness" in found.splitlines()[2]
    rows = read_evaluated(run, "aim.npz EDD")
    for label, policy in (("aim.npz", acerl_np.load_policy("aim.npz")), ("EDD", "EDD")):
        record = acerl_np.load_instance("DMH-02")
        played = acerl_np.evaluate_policy(policy, record, trials=2, objective=GOAL)
        assert rows[label]["value"] == pytest.approx(played.value.mean())
        assert rows[label]["satisfied_share"] == played.satisfied == (played.waiting < 90).mean()
    # What is asked for goes first, and policies of two minds are of none.
    assert "value" not in read_evaluated(run, "aim.npz --objective makespan")["aim.npz"]
    assert "value" not in read_evaluated(run, "aim.npz paper.npz")["aim.npz"]
    waits = read_evaluated(run, "paper.npz --objective waiting")["paper.npz"]
    assert waits["value"] == waits["waiting_s"]
    found = run("evaluate aim.npz --on DMH-02 --cost late --trials 2 --out all").out
    header = found.splitlines()[0].split()
    assert "Objective: late+0.05*tardiness, priorities weigh 1, 2." in found and "P" not in header
    with open("all/trials.csv") as file:
        assert float(next(csv.DictReader(file))["value"]) > 0.0
