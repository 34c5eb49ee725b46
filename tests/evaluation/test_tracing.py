"""Traces of policies and of past assignments: the very trials of `evaluate_policy`, with their reasons."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from pages import make_powered
from worlds import make_task, straight_floor

import acerl_np
from acerl_np import Config, InputError, Layout, PolicyError
from acerl_np.evaluation.past import play_past
from acerl_np.evaluation.tracing import trace_past, trace_policy
from acerl_np.evaluation.trials import Playing
from acerl_np.policies import reasons
from acerl_np.policies.index import NAMES, IndexPolicy
from acerl_np.policies.reasons import COMPARED, MOST
from acerl_np.policies.rules import PAIRING, RULES
from acerl_np.problem.goal import Goal
from acerl_np.problem.records import Assignments, read_assignments
from acerl_np.simulation.replay import replay_assignments
from studies import rivals


@pytest.fixture(scope="module")
def instance():
    return acerl_np.load_instance("DMH-03")


@pytest.fixture(scope="module")
def policies():
    records = acerl_np.load_suite("dmh-train")[:2]
    small = {"generations": 1, "population": 8}
    network = acerl_np.ACERL(records, Config(**small))
    network.run()
    index = acerl_np.ACERL(records, Config.preset("best", **small))
    index.run()
    return {
        "network": network.policy,
        "index": index.policy,
        "agents": rivals.train("mappo", records, steps=500),
        "lookahead": acerl_np.Lookahead("EDD", history=records, futures=3),
        **{rule: rule for rule in RULES},
    }


FORMS = ["network", "index", "agents", "lookahead", *RULES]
EXPECTED = {"MIX": {"FCFS", "EDD", "NVF", "STD"}}


@pytest.mark.parametrize("form", FORMS)
def test_a_trace_is_a_trial_and_its_reasons_name_what_was_chosen(instance, policies, form):
    """Also where vehicles break down at random, by the draws of the trial."""
    floor = instance.layout.with_random_breakdowns(acerl_np.RandomBreakdowns(900.0, 50.0))
    instance = replace(instance, layout=floor)
    trials = acerl_np.evaluate_policy(policies[form], instance, trials=3, seed=5)
    stops = []
    for trial in (0, 2):
        trace = trace_policy(policies[form], instance, trial=trial, seed=5)
        assert trace.makespan == trials.makespan[0, trial] == np.max(trace.finish)
        assert trace.tardiness == trials.tardiness[0, trial]
        assert trace.status == "finished"
        stops.append(trace.stops)
    assert stops[0] != stops[1]
    by = {decision.reason.by.split(",")[0] for decision in trace.decisions}
    assert by <= EXPECTED.get(form, {form})
    compared = [decision for decision in trace.decisions if decision.reason.alternatives]
    for decision in compared:
        found = decision.reason.alternatives
        assert (decision.vehicle, decision.task) in [(x.vehicle, x.task) for x in found[:MOST]]
        assert decision.reason.measure and len(found) <= MOST
    assert not compared if form == "Random" else len(compared) > len(trace.decisions) / 3
    # Greedy policies choose their best.
    for decision in trace_policy(policies[form], instance, greedy=True).decisions:
        if form in ("network", "index"):
            best = decision.reason.alternatives[0]
            assert (best.vehicle, best.task) == (decision.vehicle, decision.task)


@pytest.mark.compiles
def test_reasons_name_vehicles_that_charge_and_park(policies):
    """All that are free have actions, not the idle ones alone."""
    layout = make_powered().layout.with_commitment("assignment")
    trace = trace_policy(policies["network"], replace(make_powered(), layout=layout))
    begun = [(own.start, own.vehicle) for own in trace.auxiliary_moves]
    under_way = 0
    for decision in trace.decisions:
        found = [item.vehicle for item in decision.reason.alternatives]
        assert decision.vehicle in found
        under_way += any(v == decision.vehicle and t < decision.time for t, v in begun)
    assert under_way


@pytest.mark.slow
def test_past_assignments_call_vehicles_from_their_parking():
    """v is on its way to C to park when its task is due at 5 s: it turns at B."""
    parking = {"after": 0, "places": [{"site": "C"}]}
    layout = Layout.from_dict(straight_floor([{"id": "v", "start": "A"}], parking=parking))
    instance = acerl_np.Instance.from_rows("parked", layout, [make_task("t", "B", "A", 5, 60)])
    start, first = np.array([5.0]), np.zeros(1, np.int32)
    past = Assignments(instance, np.arange(1), first, start, start + np.nan)
    assert [trip.start for trip in trace_past(past).trips] == [5]
    assert replay_assignments(past).start.tolist() == [5]


def find_chosen(decision):
    pair = decision.vehicle, decision.task
    return next(x for x in decision.reason.alternatives if (x.vehicle, x.task) == pair)


@pytest.mark.parametrize("rule", [rule for rule in COMPARED if rule in RULES])
def test_rules_choose_the_first_alternative_and_baselines_compare_pairs(instance, rule):
    due, n_vehicles = instance.arrival + instance.expiry, set()
    for decision in trace_policy(rule, instance).decisions:
        reason, chosen = decision.reason, find_chosen(decision)
        found = reason.alternatives
        assert (reason.by, reason.measure) == (rule, COMPARED[rule])
        n_vehicles.add(len({item.vehicle for item in found}))
        if rule in PAIRING:
            if rule == "nearest" or (rule != "assignment" and len({x.vehicle for x in found}) == 1):
                assert chosen.value == found[0].value
            continue
        values = [item.value for item in found]
        assert values == sorted(values, reverse=rule in ("LWT", "AHP"))
        assert chosen == found[0] and {item.vehicle for item in found} == {decision.vehicle}
        assert all(instance.arrival[item.task] <= decision.time for item in found)
        assert rule != "EDD" or all(item.value == due[item.task] for item in found)
    assert (len(n_vehicles) > 1) == (rule in PAIRING)


def test_the_parts_of_a_score_add_up(instance, monkeypatch):
    monkeypatch.setattr(reasons, "MOST_PARTS", 99)
    theta = np.random.default_rng(4).normal(size=len(NAMES))
    policy = IndexPolicy(theta)
    trace = trace_policy(policy, instance, greedy=False)
    compared = 0
    for decision in trace.decisions:
        own = find_chosen(decision)
        others = [item for item in decision.reason.alternatives if item is not own]
        parts = decision.reason.parts
        # Of two vehicles at one place nothing tells the pairs apart.
        assert bool(parts) == (bool(others) and own.value != others[0].value)
        if parts:
            compared += 1
            total = sum(part.value for part in parts)
            assert total == pytest.approx(own.value - others[0].value, abs=1e-4)
            sizes = [abs(part.value) for part in parts]
            assert sizes == sorted(sizes, reverse=True)
            for part in parts:
                if part.words == "way to the pickup":
                    assert (part.value > 0) == (part.difference * theta[0] > 0)
    assert compared > 10


def test_probabilities_are_those_of_the_network(instance, policies):
    policy = policies["network"]
    decision = trace_policy(policy, instance, greedy=True).decisions[0]
    simulator = acerl_np.Simulator(instance, policy=policy)
    seen = (np.repeat(x, 4000, axis=0) for x in (simulator.observation, simulator.action_mask))
    shares = Counter(policy.act(*seen, rng=np.random.default_rng(0)).tolist())
    names = ["FCFS", "EDD", "NVF", "STD"]
    for item in decision.reason.alternatives:
        share = shares[item.vehicle * 4 + names.index(item.rule)] / 4000
        assert share == pytest.approx(item.value, abs=0.04)


def test_past_assignments(instance, tmp_path):
    trace = trace_policy("NVF", instance)
    fleet, trips = instance.layout.vehicles, [trip for trip in trace.trips if trip.delivered]
    lines = [f"{instance.tasks[x.task]},{fleet[x.vehicle].id},{x.start + 7}\n" for x in trips]
    path = tmp_path / "past.csv"
    path.write_text("task,vehicle,start\n" + "".join(lines))
    past = read_assignments(path, instance)
    replayed = replay_assignments(past)
    again = trace_past(past)
    assert (again.makespan, again.tardiness) == (replayed.makespan, replayed.tardiness)
    np.testing.assert_array_equal(again.finish, replayed.finish)
    assert len(again.decisions) == replayed.decisions
    assert {decision.reason.by for decision in again.decisions} == {"recorded"}
    late = play_past([past], Playing(2, 0, goal=Goal("late")))
    assert late.value.tolist() == [[100.0 * late.late[0, 0]] * 2]


def test_what_cannot_be_traced(instance):
    for policy, options, kind, message in (
        ("FIFO", {}, PolicyError, "unknown"),
        (3, {}, PolicyError, "policy: read 3; expected a policy, a rule's name, .*an object"),
        ("EDD", {"trial": -1}, InputError, "trial: read -1; expected a whole number from 0 on"),
        ("EDD", {"seed": "x"}, acerl_np.ConfigError, "seed"),
    ):
        with pytest.raises(kind, match=message):
            trace_policy(policy, instance, **options)
