"""`acerl-np policy show` and `acerl-np evaluate --lookahead`: policies of every form, in every format."""

import json
import re

import numpy as np
import pytest
from machine import needs_jit
from tables_and_refusals import read_rows

import acerl_np
from acerl_np.evaluation.hold_out import make_noised
from acerl_np.evaluation.importance import describe_effect, measure_importance
from acerl_np.policies.index import FEATURES
from acerl_np.policies.origin import Origin

WEIGHTS = {"approach": -1.0, "imbalance": -0.5}


@pytest.fixture
def records():
    return acerl_np.load_suite("dmh-train")[:2]


def make_policy(records=(), **weights):
    policy = acerl_np.IndexPolicy.of_weights(**(weights or WEIGHTS))
    policy.origin = Origin.of(records) if records else None
    return policy


def test_effects_in_words():
    for words, weight, effect in (
        ("way to the pickup", -1.0, "prefers a short way to the pickup"),
        ("time to spare", 2.0, "prefers much time to spare"),
        ("number of late tasks", -1.0, "prefers a small number of late tasks"),
        ("way to the pickup", 0.0, "nothing by way to the pickup"),
    ):
        assert describe_effect(words, weight) == effect
    shown = {describe_effect(feature.words, sign) for feature in FEATURES for sign in (-1.0, 1.0)}
    assert len(shown) == 2 * len(FEATURES)


@needs_jit
def test_what_a_feature_is_worth_is_what_the_policy_is_without_it(records):
    policy = make_policy(records, **WEIGHTS, waiting=0.0)
    found = measure_importance(policy, records, seed=2)
    copies = make_noised(records, seed=2, magnitude=5)
    assert found.n_records == 10
    whole = acerl_np.evaluate_policy(policy, copies, trials=1)
    assert found.value == whole.makespan.mean() and found.satisfied == whole.satisfied
    parts = {part.name: part for part in found.parts}
    for name in WEIGHTS:
        part = parts[name]
        without = make_policy(**{**WEIGHTS, name: 0.0})
        trials = acerl_np.evaluate_policy(without, copies, trials=1)
        assert part.weight == WEIGHTS[name]
        assert part.value == trials.makespan.mean()
        assert part.satisfied == trials.satisfied
    spans = [part.value for part in found.parts]
    assert spans == sorted(spans, reverse=True) and spans[0] > found.value
    # One without a weight is not missed.
    assert (parts["waiting"].weight, parts["waiting"].value) == (0.0, found.value)


@needs_jit
def test_an_index_policy_is_shown(records, empty, run):
    make_policy(records).save("policy.npz")
    lines = run("policy show policy.npz").out.splitlines()
    shown = ["form: index", "function: linear, 2 features", "planned breakdowns: looked at"]
    assert lines[:3] == shown
    assert "records: DMH-01, DMH-02" in lines
    assert f"trained by: acerl_np {acerl_np.__version__}" in lines
    line = next(line for line in lines if line.startswith("approach "))
    assert "-1.000" in line and line.endswith("prefers a short way to the pickup")
    assert lines[-1].startswith(
        "without: set to 0, on 10 noised copies of the records; with all of"
    )
    found = run("policy show policy.npz --format csv")
    rows = {row["feature"]: row for row in read_rows(found.out)}
    assert {name: float(row["weight"]) for name, row in rows.items()} == WEIGHTS
    assert "form: index" in found.err
    data = json.loads(run("policy show policy.npz --format json").out)
    assert data["form"] == "index" and len(data["features"]) == len(WEIGHTS)
    spans = [row["value_without"] for row in data["features"]]
    assert spans == sorted(spans, reverse=True)
    header = "| feature | weight | makespan without | more | within without | effect |"
    assert header in run("policy show policy.npz --format markdown").out
    # Without records nothing is played.
    make_policy().save("policy.npz")
    out = run("policy show policy.npz").out
    assert "origin: not known" in out and "makespan without" not in out
    told = "no records in the file; --on names some, to tell what each is worth\n"
    assert out.endswith(told)
    out = run("policy show policy.npz --on DMH-01 --format csv").out
    assert "value_without" in read_rows(out)[0]


@needs_jit
def test_networks_are_shown(records, empty, run):
    trainer = acerl_np.ACERL(records, acerl_np.Config(generations=0, hidden=(4,)))
    trainer.policy.save("network.npz")
    out = run("policy show network.npz").out
    assert "layers: 219-4-12\nparameters: 940\nserves: 3 vehicles, 30 tasks seen\n" in out
    assert "fleet: v0, v1, v2 (hash " in out
    assert json.loads(run("policy show network.npz --format json").out)["parameters"] == 940
    data = json.loads(run("policy show network.npz --format json").out)
    assert data["floor"] == [f"dmh (hash {records[0].layout.floor_hash[:12]})"]
    for form in ("csv", "markdown"):
        assert "network.npz" in run(f"policy show network.npz --format {form}").out
    # Records that are named are looked for, also where no feature is measured on them.
    err = run("policy show network.npz --on nowhere.csv", 2).err
    assert "nowhere.csv: no such task record" in err


# Lookahead in a table


@pytest.mark.compiles
@needs_jit
def test_rows_that_look_ahead_stand_beside_the_plain_ones(records, empty, run):
    policy = make_policy(acerl_np.load_suite("dmh-train")[:4])
    policy.save("policy.npz")
    judged = "DMH-01,DMH-05 --seed 3 --format csv --trials 1 --lookahead 2"
    found = run(f"evaluate policy.npz --on {judged} --cost-limit 40")
    rows = {(row["policy"], row["record"]): row for row in read_rows(found.out)}
    labels = ["policy.npz", "policy.npz, lookahead 2"]
    assert list(dict.fromkeys(label for label, _ in rows)) == labels
    # The history is that of the file, DMH-01 itself left out by its content.
    ahead = acerl_np.Lookahead(policy, futures=2, seed=3, cost_limit=40.0)
    trials = acerl_np.evaluate_policy(ahead, acerl_np.load_instance("DMH-05"), trials=1, seed=3)
    row = rows["policy.npz, lookahead 2", "DMH-05"]
    assert float(row["makespan_s"]) == trials.makespan[0, 0]
    assert float(row["tardiness_s"]) == pytest.approx(trials.tardiness[0, 0])
    assert re.search(r"^policy.npz, lookahead 2: .* ms a decision$", found.err, re.MULTILINE)
    words = "--futures dmh-train"
    table = read_rows(
        run(f"evaluate policy.npz std --on {judged},weights=even,bases=2 {words}").out
    )
    own = ["policy.npz", "policy.npz, lookahead 2, even, 2 bases"]
    labels = [*own, "STD", "STD, lookahead 2, even"]
    assert list({row["policy"]: row for row in table})[:4] == labels


@needs_jit
def test_index_policies_are_greedy_unless_told_otherwise_networks_are_not(records, empty, run):
    trainer = acerl_np.ACERL(records, acerl_np.Config(generations=0, hidden=(4,)))
    trainer.policy.save("network.npz")
    make_policy().save("index.npz")
    words = "evaluate index.npz network.npz --on DMH-01 --trials 4 --out all --force"
    found = {}
    for more in ("", "--greedy"):
        run(f"{words} {more}")
        for row in read_rows("all/trials.csv"):
            found.setdefault((row["policy"], bool(more)), []).append(float(row["makespan"]))
    assert len(set(found["index.npz", False])) == 1 == len(set(found["network.npz", True]))
    assert found["index.npz", False] == found["index.npz", True]
    assert len(set(found["network.npz", False])) > 1
    assert np.isfinite(found["network.npz", True]).all()
