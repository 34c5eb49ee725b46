"""Policies in plain Python, and learners of other libraries: they play the trials that others play.

They are told in one line what they do wrong, and learners are shown other records as those of their training.
"""

import numpy as np
import pytest
from plain_policies import Answering, Asking, Nearest, first_legal
from tables_and_refusals import list_unrefused
from trainings import list_differences
from worlds import make_task, straight_floor

import acerl_np
from acerl_np import ActionError, Agent, Dispatcher, Instance, PolicyError
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.problem.parts import RandomBreakdowns
from acerl_np.simulation.actions import make_actions

RECORDS = acerl_np.load_suite("dmh-train")[:2]


def failing(record):
    """A record whose vehicles also break down at random."""
    layout = record.layout.with_random_breakdowns(RandomBreakdowns(900.0, 60.0))
    return Instance.from_rows(record.name, layout, record.rows())


def test_the_same_decisions_are_the_same_bytes_and_a_trace_is_a_trial():
    """Breakdowns too, which are drawn by the keys of the trials."""
    records = [failing(record) for record in RECORDS]
    expected = acerl_np.evaluate_policy("nearest", records, trials=3, seed=4)
    assert len(np.unique(expected.makespan[0])) > 1
    for policy in (Nearest(), Nearest):  # a class is as good as an object
        found = acerl_np.evaluate_policy(policy, records, trials=3, seed=4)
        assert list_differences(found, expected) == []
    own, built_in = (trace_policy(x, records[1], trial=2, seed=4) for x in (Nearest(), "nearest"))
    assert own.makespan == expected.makespan[1, 2]
    assert own.trips == built_in.trips and own.stops == built_in.stops
    assert (own.label, own.decisions[0].reason.by) == ("own", "own")


def test_it_may_ask_a_trained_policy():
    """A network, which sees tasks in slots of their own, and an index policy."""
    network = acerl_np.ACERL(RECORDS, acerl_np.Config(generations=1, population=8))
    network.run()
    index = acerl_np.IndexPolicy.of_weights(approach=-1.0, total_late=-0.5)
    for policy in (network.policy, index):
        options = {"trials": 1, "horizon": 400.0}
        expected = acerl_np.evaluate_policy(policy, RECORDS, greedy=True, **options)
        found = acerl_np.evaluate_policy(Asking(policy), RECORDS, **options)
        assert list_differences(found, expected) == []


def crowd(n=6):
    """More tasks wait than slots show, and what stands in them may be too heavy for a vehicle."""
    fleet = [
        {"id": "w", "start": "C", "speed": 2},
        {"id": "v", "start": "A", "speed": 1, "capacity": 1},
    ]
    loads = [2.0] * 3 + [0.0] * (n - 3)
    rows = [make_task(f"t{k}", "AB"[k % 2], "C", k // 3, 50, demand=loads[k]) for k in range(n)]
    return Instance.from_rows("crowd", acerl_np.Layout.from_dict(straight_floor(fleet)), rows)


@pytest.mark.parametrize("actions", ["rules", "pairs"])
def test_an_agent_is_traced(actions):
    """Also where it is not asked, as no action could say what to do."""
    agent = Agent(first_legal, crowd(), actions=actions, task_slots=2, slots="pool")
    trials = acerl_np.evaluate_policy(agent, crowd(), trials=1)
    trace = trace_policy(agent, crowd())
    assert (trace.makespan, len(trace.decisions)) == (trials.makespan[0, 0], trials.decisions)


WRONG = [
    (None, "choose: read None; expected vehicles and tasks"),
    ((1, 2, 3), r"choose: read \(1, 2, 3\); expected vehicles and tasks"),
    ((0, 0), r"vehicles: read int64 of shape \(\); expected integers of shape \(1,\)"),
    (([0], [0.5]), r"tasks: read float64 of shape \(1,\); expected integers"),
    (([0, 1], [0, 0]), r"vehicles: read int64 of shape \(2,\); expected integers"),
    (
        ([-1], [-1]),
        r"episode 0 at [01] s: vehicle -1 with task -1 is impossible: nothing is to come that would end the "
        r"wait; expected a vehicle and a task",
    ),
    (([0], [5]), r".* task 5 does not wait; expected one of \[0, 1, 2\]"),
    (([1], [1]), r".* vehicle 1 may not carry task 1 now; expected one of \[\]"),
]


def test_a_wrong_answer_is_told_in_one_line_by_whoever_asks():
    def live(policy):
        dispatcher = Dispatcher(crowd().layout, policy)
        for k in range(3):
            dispatcher.feed(acerl_np.TaskArrived(0.0, f"t{k}", "AB"[k % 2], "C", 50.0, demand=2))
        dispatcher.decide(0.0)

    doors = [
        lambda policy: acerl_np.evaluate_policy(policy, crowd(), trials=1),
        lambda policy: trace_policy(policy, crowd()),
        live,
    ]
    for answer, message in WRONG:
        for ask in doors:
            with pytest.raises(ActionError, match=f"^{message}") as caught:
                ask(Answering(answer))
            assert "\n" not in str(caught.value)


def test_where_only_what_is_compiled_or_stored_can_be(tmp_path):
    for policy in (Nearest(), Agent(first_legal, RECORDS)):
        words = r"a lookahead's base must be compiled: .* @acerl_np.rule"
        with pytest.raises(PolicyError, match=words):
            acerl_np.Lookahead(policy, history=RECORDS)
    with pytest.raises(PolicyError, match="no file can hold a policy in plain Python"):
        Dispatcher("dmh", Nearest()).save(tmp_path / "dispatcher.npz")
    with pytest.raises(PolicyError, match=r"policy: read .*; expected a policy, a rule's name"):
        Dispatcher("dmh", first_legal)


class Noting(Nearest):
    """It notes what a dispatcher shows it."""

    def choose(self, sim):
        [record], pairs = sim.instances, sim.pairs()
        names = [record.tasks[task] for task in pairs.task]
        self.noted = sim.time.tolist(), names, [x.tolist() for x in pairs[3:]], sim.observation
        return super().choose(sim)


def test_a_dispatchers_clock_is_the_control_systems():
    """One vehicle is out of service, the other at C; nobody is asked where nothing can be assigned."""
    policy = Noting()
    dispatcher = Dispatcher(crowd().layout, policy, start=900.0, explain=True)
    dispatcher.feed(acerl_np.VehicleOutOfService(1000.0, "v"))
    assert dispatcher.decide(1000.0) == [] and not hasattr(policy, "noted")
    dispatcher.feed(acerl_np.TaskArrived(1000.5, "late", "B", "A", 40.0, handling_time=2.0))
    [assignment] = dispatcher.decide(1003.0)
    assert assignment == ("w", "late", "own") and assignment.reason.by == "own"
    time, names, values, observation = policy.noted
    # 6 m to B and 10 m on to A at 2 m/s; due at 1040.5 s.
    assert (time, names) == ([1003.0], ["late"])
    assert values == [[3.0], [7.0], [27.5], [2.5], [1000.5], [1040.5]]
    assert np.array_equal(observation[0][:4], [10.0, 2.5, 40.0, 0.0])


# Agents


def week(name, expiry, n=4, vehicles=2):
    """Records of a floor whose file gives no constants: they follow from the tasks."""
    fleet = [{"id": f"v{k}", "start": "A", "speed": 1 + k} for k in range(vehicles)]
    floor = straight_floor(fleet, task_slots=3)
    del floor["scaling"]
    rows = [make_task(f"t{k}", "A", "BC"[k % 2], 5 * k, expiry + k) for k in range(n)]
    return Instance.from_rows(name, acerl_np.Layout.from_dict(floor), rows)


def note(seen):
    def act(observation, mask):
        seen.append((observation, mask))
        return first_legal(observation, mask)

    return act


@pytest.mark.parametrize("actions", ["rules", "pairs"])
def test_it_sees_by_the_constants_and_sizes_of_its_training(actions):
    training, other = week("training", 10.0), week("other", 90.0)
    options = {"task_slots": 4, "n_vehicles": 3}
    seen = []
    agent = Agent(note(seen), training, actions=actions, **options)
    judged = acerl_np.evaluate_policy(agent, other, trials=2)
    constants = acerl_np.Simulator(training).problem.scaling[0]
    simulator = acerl_np.Simulator([other] * 2, scaling=constants, **options)
    kind = make_actions(actions, simulator)
    for observation, mask in seen:
        assert np.array_equal(observation, simulator.observation)
        assert np.array_equal(mask, kind.mask())
        kind.take(first_legal(observation, mask))
    assert simulator.done.all()
    assert np.array_equal(judged.makespan[0], simulator.makespan)
    plain = []
    acerl_np.evaluate_policy(note(plain), other, trials=2)
    assert plain[0][0].shape != seen[0][0].shape
    own = []
    acerl_np.evaluate_policy(Agent(note(own), other, actions=actions, **options), other, trials=2)
    assert not np.array_equal(own[0][0], seen[0][0]), "these constants are another's"


def test_constants_may_be_given():
    agent = Agent(first_legal, week("training", 10.0), scaling=np.arange(1.0, 13.0), slots="pool")
    assert agent.scaling.tolist() == list(range(1, 13))
    assert repr(agent).endswith("actions='rules', task_slots=3, n_vehicles=2)")


def illegal(observation, mask):
    return np.full(len(mask), 99)


def with_state(observation, mask):
    """As some libraries' predict() returns it."""
    return mask.argmax(axis=1), None


def test_misuse_is_an_error():
    training, larger = week("training", 10.0), week("larger", 10.0, vehicles=3)

    def play(given):
        given = {"function": first_legal, "instances": training, "played": training, **given}
        played = given.pop("played")
        acerl_np.evaluate_policy(Agent(**given), played, trials=1)

    cases = [
        ({"function": "EDD"}, "function: read EDD; expected a function"),
        ({"actions": "tasks"}, "actions: read tasks; expected one of ['rules', 'pairs']"),
    ]
    assert list_unrefused(play, cases, PolicyError) == []
    cases = [({"instances": []}, "expected"), ({"played": larger}, "n_vehicles: read 2; expected")]
    assert list_unrefused(play, cases) == []
    for actions in ("rules", "pairs"):
        line = "action 99 is illegal; expected one of"
        cases = [({"function": illegal, "actions": actions}, line)]
        cases.append(({"function": with_state, "actions": actions}, "actions:  ... expected integ"))
        assert list_unrefused(play, cases, ActionError) == []
        with pytest.raises(ActionError, match=f"^episode 0 at 0 s: {line}"):
            trace_policy(Agent(illegal, training, actions=actions), training)
