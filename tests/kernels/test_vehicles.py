"""Vehicles that wait, park, charge and are called back: the kernels beside the slow simulator."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_vehicles import NaiveEpisode
from played import KINDS, compare

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator(kind, commitment, data):
    world = data.draw(KINDS[kind])
    max_changes, seed = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 10**6))
    compare(NaiveEpisode, world, commitment, max_changes, seed)


@pytest.mark.slow
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=700)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator_on_many_floors(kind, commitment, data):
    world = data.draw(KINDS[kind])
    max_changes, seed = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 10**6))
    compare(NaiveEpisode, world, commitment, max_changes, seed)
