"""An interrupt at any line leaves a search as it was, or a whole step further."""

import copy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from searches import read_bytes
from trainings import interrupt_at, list_lines

from acerl_np.evolution import Evolution, Strategy, make_sampler

ROOMS = (str(Path("acerl_np", "evolution")),)


OPTIONS = {"sigma": 0.5, "population": 4, "adapt": "matrix", "n_instances": 2}


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
    lines = list_lines(partial(change, whole), ROOMS)
    after = read_bytes(whole.get_state())
    assert before != after and len(lines) > 10
    tell(whole)
    for at, line in enumerate(lines):
        torn = copy.deepcopy(evolution)
        interrupt_at(line, partial(change, torn), ROOMS)
        state = read_bytes(torn.get_state())
        assert state in (before, after)
        if state == after or at % 20 == 0:  # and goes on
            if state == before:
                change(torn)
            tell(torn)
            assert read_bytes(torn.get_state()) == read_bytes(whole.get_state())


def make_strategy():
    part = Strategy(np.zeros(3), population=2)
    return part, partial(part.tell, [1.0, -1.0]), lambda: {"m": part.mean, "t": part.generation}


def make_dealer():
    part = make_sampler("ais", 2)
    return part, partial(part.update, [0, 1], [-1.0, -2.0]), part.get_state


@pytest.mark.parametrize("make", [make_strategy, make_dealer])
def test_its_parts_are_never_torn_and_a_copy_stays_as_it_was(make):
    part, change, read = make()
    before, kept = read_bytes(read()), copy.copy(part)
    arrays = {k: v.copy() for k, v in vars(kept).items() if isinstance(v, np.ndarray)}
    lines = list_lines(change, ROOMS)
    after = read_bytes(read())
    assert before != after and lines
    for name, array in arrays.items():
        np.testing.assert_array_equal(getattr(kept, name), array)
    for line in lines:
        _, change, read = make()
        interrupt_at(line, change, ROOMS)
        assert read_bytes(read()) in (before, after)
