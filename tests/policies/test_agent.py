"""Learners of other libraries are shown other records as those of their training."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import make_task, straight_floor

import acerl_np
from acerl_np import ActionError, Agent, InputError, Instance, Layout, PolicyError, Simulator
from acerl_np.simulation.actions import make_actions


def week(name, expiry, n=4, vehicles=2):
    """Records of a floor whose file gives no constants: they follow from the tasks."""
    fleet = [{"id": f"v{k}", "start": "A", "speed": 1 + k} for k in range(vehicles)]
    floor = straight_floor(fleet, task_slots=3)
    del floor["scaling"]
    rows = [make_task(f"t{k}", "A", "BC"[k % 2], 5 * k, expiry + k) for k in range(n)]
    return Instance.from_rows(name, Layout.from_dict(floor), rows)


def first_legal(observation, mask):
    return mask.argmax(axis=1)


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


def test_misuse_is_an_error():
    training = week("training", 10.0)
    with pytest.raises(PolicyError, match="function: read EDD; expected a function"):
        Agent("EDD", training)
    with pytest.raises(
        PolicyError, match=r"actions: read tasks; expected one of \['rules', 'pairs'\]"
    ):
        Agent(first_legal, training, actions="tasks")
    with pytest.raises(InputError, match="expected"):
        Agent(first_legal, [])
    larger = week("larger", 10.0, vehicles=3)
    with pytest.raises(InputError, match="n_vehicles: read 2; expected"):
        acerl_np.evaluate_policy(Agent(first_legal, training), larger, trials=1)
    for actions in ("rules", "pairs"):
        illegal = Agent(lambda observation, mask: np.full(len(mask), 99), training, actions=actions)
        with pytest.raises(ActionError, match="action 99 is illegal; expected one of"):
            acerl_np.evaluate_policy(illegal, training, trials=1)
        # As some libraries' predict() returns it.
        pair = Agent(
            lambda observation, mask: (mask.argmax(axis=1), None), training, actions=actions
        )
        with pytest.raises(ActionError, match=r"actions: .* expected integers"):
            acerl_np.evaluate_policy(pair, training, trials=1)
