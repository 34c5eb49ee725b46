"""Learners of other libraries are shown other records as those of their training."""

from __future__ import annotations

import numpy as np
import pytest
from plain_policies import first_legal
from tables_and_refusals import list_unrefused
from worlds import make_task, straight_floor

import acerl_np
from acerl_np import ActionError, Agent, Instance, Layout, PolicyError, Simulator
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.simulation.actions import make_actions


def week(name, expiry, n=4, vehicles=2):
    """Records of a floor whose file gives no constants: they follow from the tasks."""
    fleet = [{"id": f"v{k}", "start": "A", "speed": 1 + k} for k in range(vehicles)]
    floor = straight_floor(fleet, task_slots=3)
    del floor["scaling"]
    rows = [make_task(f"t{k}", "A", "BC"[k % 2], 5 * k, expiry + k) for k in range(n)]
    return Instance.from_rows(name, Layout.from_dict(floor), rows)


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
    simulator = Simulator([other] * 2, scaling=Simulator(training).problem.scaling[0], **options)
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
