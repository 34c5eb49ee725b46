"""An interrupt at any line leaves a search as it was, or a whole step further."""

import copy
import sys
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from acerl_np.evolution import Evolution, Strategy, make_sampler
from acerl_np.training.average import Average

ROOMS = str(Path("acerl_np", "evolution")), str(Path("acerl_np", "training", "average.py"))


def interrupt(call, at):
    """Whether a call was interrupted, as by Ctrl-C, before the line `at` of the rooms that it came to."""
    lines = count(1)

    def trace(frame, event, argument):
        if not any(room in frame.f_code.co_filename for room in ROOMS):
            return None
        if event == "line" and next(lines) == at:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


OPTIONS = {"sigma": 0.5, "population": 4, "adapt": "matrix", "n_instances": 2}


def read_bytes(state):
    return {name: np.asarray(array).tobytes() for name, array in state.items()}


def tell(evolution):
    members, _ = evolution.ask()
    evolution.tell(-np.square(members).sum(axis=1), members - 0.5)


def go_back(evolution):
    evolution.set_state(Evolution(np.ones(2), **OPTIONS).get_state())


@pytest.mark.parametrize("change", [tell, Evolution.restart, go_back])
def test_evolution_is_never_torn(change):
    evolution = Evolution(np.ones(2), **OPTIONS)
    tell(evolution)
    before, whole = read_bytes(evolution.get_state()), copy.deepcopy(evolution)
    change(whole)
    after = read_bytes(whole.get_state())
    assert before != after
    tell(whole)
    for at in count(1):
        torn = copy.deepcopy(evolution)
        if not interrupt(partial(change, torn), at):
            break
        state = read_bytes(torn.get_state())
        assert state in (before, after)
        if state == after or at % 20 == 0:  # and goes on
            if state == before:
                change(torn)
            tell(torn)
            assert read_bytes(torn.get_state()) == read_bytes(whole.get_state())
    assert at > 10


def make_strategy():
    part = Strategy(np.zeros(3), population=2)
    return part, partial(part.tell, [1.0, -1.0]), lambda: {"m": part.mean, "t": part.generation}


def make_dealer():
    part = make_sampler("ais", 2)
    return part, partial(part.update, [0, 1], [-1.0, -2.0]), part.get_state


def make_average():
    part = Average(np.zeros(3))
    return part, partial(part.add, np.ones(3), 1), part.pack


@pytest.mark.parametrize("make", [make_strategy, make_dealer, make_average])
def test_its_parts_are_never_torn_and_a_copy_stays_as_it_was(make):
    part, change, read = make()
    before, kept = read_bytes(read()), copy.copy(part)
    arrays = {k: v.copy() for k, v in vars(kept).items() if isinstance(v, np.ndarray)}
    change()
    after = read_bytes(read())
    assert before != after
    for name, array in arrays.items():
        np.testing.assert_array_equal(getattr(kept, name), array)
    for at in count(1):
        _, change, read = make()
        if not interrupt(change, at):
            break
        assert read_bytes(read()) in (before, after)
    assert at > 1
