"""Vehicles that wait, park, charge and are called back: the kernels beside the slow simulator."""

import random

import naive_vehicles
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from played import KINDS, ROW, Played

from acerl_np import Layout
from acerl_np.kernels import state as S
from acerl_np.kernels.offers import may_wait

pytestmark = pytest.mark.oracle


def compare(world, commitment, max_changes, seed):
    draws = random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(commitment, max_changes)
    fast = Played(layout, world.rows)
    slow = naive_vehicles.NaiveEpisode(
        world.layout,
        world.rows,
        commitment=commitment,
        max_changes=max_changes,
        scaling=worlds.RAW,
    )
    while not slow.done:
        assert fast.phase == S.RUNNING
        assert (fast.time, fast.pool) == (slow.time, slow.pool)
        assert (fast.statuses(), fast.levels()) == (slow.statuses(), slow.levels())
        for v in fast.vehicles:
            if v not in slow._settled:
                assert fast.stand(v) == slow.stand(v)
        pairs = slow.candidates()
        assert fast.candidates() == pairs
        assert bool(may_wait(fast.problem, fast.state, ROW)) == slow.may_wait()
        if draws.random() < 0.15 and slow.may_wait():
            slow.wait()
            fast.decide(-1, -1)
        else:
            v, task = draws.choice(pairs)
            position = fast.pool.index(task)
            slow.assign(v, task)
            fast.decide(v, position)
    assert fast.phase == S.FINISHED
    assert fast.schedule() == slow.schedule
    changes = fast.state.task[0, : len(fast.ids), S.TASK_CHANGES]
    assert changes.tolist() == slow.changes


@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator(kind, commitment, data):
    world = data.draw(KINDS[kind])
    compare(world, commitment, data.draw(st.integers(0, 8)), data.draw(st.integers(0, 10**6)))


@pytest.mark.slow
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=700)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator_on_many_floors(kind, commitment, data):
    world = data.draw(KINDS[kind])
    compare(world, commitment, data.draw(st.integers(0, 8)), data.draw(st.integers(0, 10**6)))
