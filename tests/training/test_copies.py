"""Copies of trainers and simulators: they go on to the same bytes, and share nothing with the original."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import acerl_np
from acerl_np import ACERL, Config, Simulator, load_instance
from acerl_np.rivals import RivalTrainer

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}
RECORDS = ["DMH-01", "DMH-02"]
CONFIGS = {
    "network": Config(generations=3, population=16, hidden=(16,), curve_every=1, curve_trials=2),
    "best": Config.preset("best", decisions=None, generations=3, population=16),
    "one": Config.preset("best", decisions=None, generations=3, population=16, spread="one"),
}


def finish(trainer):
    """Train to the end; return all that the training knows, in bytes and without its seconds."""
    trainer.run()
    records = [replace(record, seconds=0.0) for record in trainer.history]
    looks = repr(trainer.curve)
    return trainer.search.mean.tobytes(), repr(records), looks, trainer.policy.theta.tobytes()


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_copied_trainer_goes_on_to_the_same_bytes(config, make_copy):
    instances = [load_instance(name) for name in RECORDS]
    trainer = ACERL(instances, config, seed=3, threads=2)
    trainer.step()
    other = make_copy(trainer)
    before = other.search.mean.tobytes()
    expected = finish(trainer)
    assert other.search.mean.tobytes() == before, "it is no part of the original"
    assert other.generation == 1
    assert finish(other) == expected
    assert other._workers._helpers is not trainer._workers._helpers


def test_a_copy_leaves_the_executor_with_the_original():
    config = CONFIGS["network"]
    with ThreadPoolExecutor(2) as executor:
        trainer = ACERL(load_instance("DMH-01"), config, seed=1, executor=executor)
        trainer.step()
        copies = [make_copy(trainer) for make_copy in COPIES.values()]
        expected = finish(trainer)
    for other in copies:
        assert finish(other) == expected


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("algorithm", ["ppo", "sac", "alsac", "rcpom", "amappo"])
def test_a_copied_rival_goes_on_to_the_same_bytes(algorithm, make_copy):
    instances = [load_instance(name) for name in RECORDS]
    trainer = RivalTrainer(algorithm, instances, steps=4500, seed=2, settings={"look_every": 2000})
    trainer.step()
    other = make_copy(trainer)
    assert other.taken == trainer.taken < 4500

    def finish_rival(one):
        one.run()
        policy = one.policy
        parts = [policy] if hasattr(policy, "theta") else [policy.vehicle, policy.rule]
        records = [replace(record, seconds=0.0) for record in one.history]
        return one.taken, repr(records), [part.theta.tobytes() for part in parts]

    assert finish_rival(trainer) == finish_rival(other)


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
def test_a_copied_simulator_goes_on_alike(make_copy):
    simulator = Simulator(acerl_np.load_suite("dmh-train"))
    for _ in range(5):
        simulator.step(simulator.action_mask.argmax(axis=1))
    other = make_copy(simulator)
    before = other.time
    while not simulator.done.all():
        simulator.step(simulator.action_mask.argmax(axis=1))
    assert np.array_equal(other.time, before)
    while not other.done.all():
        other.step(other.action_mask.argmax(axis=1))
    assert np.array_equal(other.makespan, simulator.makespan)
