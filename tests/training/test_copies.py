"""Copies of trainers, and torn steps: they go on to the same bytes, and share nothing with the original."""

import copy
import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from trainings import (
    COPIES,
    RECORDS,
    find_theta,
    history_without_seconds,
    interrupt_at,
    list_lines,
    make_rival,
    read_state,
)

import acerl_np
from acerl_np import ACERL, CheckpointError, Config
from acerl_np.problem.packing import pack_json, unpack_json
from acerl_np.support.files import read_arrays, write_arrays
from studies.rivals import RivalTrainer

PACKAGE = (str(Path(acerl_np.__file__).parent),)
DATA = Path(__file__).parents[1] / "data"
ENDS = {"network": "98072386c3905c03", "appo": "ccd435fba66d09a0"}


def test_a_copy_leaves_the_executor_with_the_original():
    config = Config(generations=3, population=16, hidden=(16,), curve_every=1, curve_trials=2)
    with ThreadPoolExecutor(2) as executor:
        trainer = ACERL(RECORDS[0], config, seed=1, threads=2, executor=executor)
        trainer.step()
        copies = [make_copy(trainer) for make_copy in COPIES.values()]
        trainer.run()
    for other in copies:
        other.run()
        assert find_theta(other) == find_theta(trainer)
        assert history_without_seconds(other) == history_without_seconds(trainer)
        assert other._workers._helpers is not trainer._workers._helpers


# Steps that are torn


def make_acerl(form):
    options = {"curve_every": 1, "curve_trials": 1, "outcome": "best", "generations": 3}
    if form == "network":
        config = Config(population=4, hidden=(4,), **options)
    else:
        config = Config.preset("best", population=4, decisions=None, **options)
    return ACERL(RECORDS, config, seed=2, threads=1)


TRAINERS = {
    **{form: partial(make_acerl, form) for form in ("network", "index")},
    **{name: partial(make_rival, name) for name in ("asac", "rcpom")},
}


@pytest.mark.parametrize("make", TRAINERS.values(), ids=TRAINERS)
def test_a_step_that_is_interrupted_anywhere_is_not_taken_or_whole(make, tmp_path):
    trainer, path = make(), tmp_path / "run.npz"
    trainer.step()
    before = read_state(trainer, path)
    copy.deepcopy(trainer).step()  # what is computed once in a process
    whole = copy.deepcopy(trainer)
    lines = list_lines(whole.step, PACKAGE)
    after = read_state(whole, path)
    assert before != after and len(lines) > 100
    whole.run()
    end = read_state(whole, path)
    some = [line for line in lines if line[0].co_name == "step"]
    some += lines[:: len(lines) // 30]
    for number, line in enumerate(some):
        torn = copy.deepcopy(trainer)
        interrupt_at(line, torn.step, PACKAGE)
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
    with pytest.raises(CheckpointError, match=r"^[^\n]*run.npz: .* slots: missing; [^\n]*$"):
        kind.resume(tmp_path / "run.npz")
