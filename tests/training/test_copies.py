"""Copies of trainers and simulators: they go on to the same bytes, and share nothing with the original."""

from __future__ import annotations

import copy
import hashlib
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import acerl_np
from acerl_np import ACERL, CheckpointError, Config, Simulator, load_instance
from acerl_np.problem.packing import pack_json, unpack_json
from acerl_np.rivals import RivalTrainer
from acerl_np.rivals.history import HISTORY_COLUMNS as RIVAL_COLUMNS
from acerl_np.support.files import read_arrays, write_arrays
from acerl_np.training.history import HISTORY_COLUMNS

PACKAGE = str(Path(acerl_np.__file__).parent)
DATA = Path(__file__).parents[1] / "data"
ENDS = {"network": "98072386c3905c03", "appo": "ccd435fba66d09a0"}

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
    trainer = make_rival(algorithm)
    trainer.step()
    other = make_copy(trainer)
    assert other.taken == trainer.taken < trainer.steps

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


# Steps that are torn


def read_state(trainer, path):
    """All that a checkpoint keeps of a trainer but the seconds, in bytes."""
    trainer.save(path)
    arrays = read_arrays(path, CheckpointError)
    columns = RIVAL_COLUMNS if isinstance(trainer, RivalTrainer) else HISTORY_COLUMNS
    arrays["state.history"] = np.delete(arrays["state.history"], columns.index("seconds"), axis=1)
    return {name: array.tobytes() for name, array in arrays.items()}


def list_lines(step):
    """Lines of the package that a step runs in this thread, in order of their first time."""
    lines = {}

    def trace(frame, event, _):
        if PACKAGE not in frame.f_code.co_filename:
            return None
        if event == "line":
            lines[frame.f_code, frame.f_lineno] = None
        return trace

    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(None)
    return list(lines)


def interrupt_at(step, line):
    """Let Ctrl-C fall on a line of a step."""

    def trace(frame, event, _):
        if frame.f_code is not line[0]:
            return trace if PACKAGE in frame.f_code.co_filename else None
        if event == "line" and frame.f_lineno == line[1]:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(None)


def make_rival(name):
    settings = {"hidden": (4,), "look_every": 40, "look_trials": 1, "episodes": 2, "batch": 4}
    settings |= {"capacity": 40} if "sac" in name else {"collect": 20, "repeats": 1}
    instances = [load_instance(name) for name in RECORDS]
    return RivalTrainer(name, instances, steps=120, seed=2, settings=settings)


def make_acerl(form):
    options = {"curve_every": 1, "curve_trials": 1, "outcome": "best", "generations": 3}
    if form == "network":
        config = Config(population=4, hidden=(4,), **options)
    else:
        config = Config.preset("best", population=4, decisions=None, **options)
    return ACERL([load_instance(name) for name in RECORDS], config, seed=2, threads=1)


TRAINERS = {
    "network": lambda: make_acerl("network"),
    "index": lambda: make_acerl("index"),
    "asac": lambda: make_rival("asac"),
    "rcpom": lambda: make_rival("rcpom"),
}


@pytest.mark.parametrize("make", TRAINERS.values(), ids=TRAINERS)
def test_a_step_that_is_interrupted_anywhere_is_not_taken_or_whole(make, tmp_path):
    trainer, path = make(), tmp_path / "run.npz"
    trainer.step()
    before = read_state(trainer, path)
    copy.deepcopy(trainer).step()  # what is computed once in a process
    whole = copy.deepcopy(trainer)
    lines = list_lines(whole.step)
    after = read_state(whole, path)
    assert before != after and len(lines) > 100
    whole.run()
    end = read_state(whole, path)
    some = [line for line in lines if line[0].co_name == "step"]
    some += lines[:: len(lines) // 30]
    for number, line in enumerate(some):
        torn = copy.deepcopy(trainer)
        with pytest.raises(KeyboardInterrupt):
            interrupt_at(torn.step, line)
        assert read_state(torn, path) in (before, after), line
        if number % 12 == 0:
            resumed = type(torn).resume(path)
            resumed.run()
            assert read_state(resumed, path) == end, line


@pytest.mark.parametrize("name", ENDS)
def test_stored_checkpoints_go_on_to_the_same_bytes(name, tmp_path):
    """The hash is of what the version ended with that began the training."""
    kind = RivalTrainer if name == "appo" else ACERL
    trainer = kind.resume(DATA / f"{name}-run.npz")
    trainer.run()
    state = read_state(trainer, tmp_path / "run.npz")
    digest = hashlib.sha256()
    for part in sorted(state):
        if part.startswith("state."):
            digest.update(part.encode() + state[part])
    assert digest.hexdigest()[:16] == ENDS[name]


@pytest.mark.parametrize("name", ENDS)
def test_a_checkpoint_that_lacks_an_option_is_refused(name, tmp_path):
    kind, own = (RivalTrainer, "settings") if name == "appo" else (ACERL, "config")
    arrays = read_arrays(DATA / f"{name}-run.npz", CheckpointError)
    settings = unpack_json(arrays["settings"])
    del settings[own]["slots"]
    write_arrays(tmp_path / "run.npz", {**arrays, "settings": pack_json(settings)})
    with pytest.raises(
        CheckpointError, match=r"^[^\n]*run.npz: .* slots: missing; expected[^\n]*$"
    ):
        kind.resume(tmp_path / "run.npz")
