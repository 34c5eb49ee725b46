"""Vehicles that wait, park, charge and are called back: the kernels beside the slow simulator."""

import random
import re
from dataclasses import replace

import pytest
import worlds
from hypothesis import event, given, settings
from hypothesis import strategies as st
from naive_vehicles import NaiveEpisode
from played import KINDS, ROW, Played, compare_drawn

from acerl_np import Layout
from acerl_np.kernels import state as S
from acerl_np.kernels.offers import may_wait
from acerl_np.support.errors import InputError

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator(kind, commitment, data):
    compare_drawn(NaiveEpisode, KINDS[kind], commitment, data)


@pytest.mark.slow
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=700)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator_on_many_floors(kind, commitment, data):
    compare_drawn(NaiveEpisode, KINDS[kind], commitment, data)


@st.composite
def with_any_battery(draw, some_worlds):
    """Worlds with chargers, and batteries that may be too small for a task or for a way to a charger."""
    world = draw(worlds.with_chargers(some_worlds))
    levels = sorted(draw(st.lists(st.integers(0, 150), min_size=5, max_size=5)))
    battery = dict(zip(("critical", "resume", "good", "full", "capacity"), levels, strict=True))
    battery["capacity"] = max(1, battery["capacity"])
    battery |= {name: draw(st.integers(0, 4)) for name in ("idle", "empty", "loaded")}
    battery |= {"charge": draw(st.integers(1, 9)), "tow": draw(st.integers(0, 20))}
    battery["start"] = draw(st.integers(0, battery["capacity"]))
    vehicles = [
        {key: value for key, value in entry.items() if key != "battery"}
        for entry in world.layout["vehicles"]
    ]
    return replace(world, layout={**world.layout, "vehicles": vehicles, "battery": battery})


@pytest.mark.slow
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@settings(max_examples=1000)
@given(data=st.data())
def test_every_episode_ends_or_says_what_cannot_be_served(commitment, data):
    """Whatever is decided, and however often all wait."""
    world = data.draw(worlds.with_parking(with_any_battery(worlds.worlds())))
    draws = random.Random(data.draw(st.integers(0, 10**6)))
    try:
        layout = Layout.from_dict(world.layout).with_commitment(commitment, draws.randrange(9))
        played = Played(layout, world.rows)
    except InputError as error:
        event("refused")
        assert re.search(r"critical|tasks?\[?\b.* battery|charger", str(error)), error
        return
    while played.phase == S.RUNNING:
        if draws.random() < 0.3 and may_wait(played.problem, played.state, ROW):
            played.decide(-1, -1)
        else:
            v, task = draws.choice(played.candidates())
            played.decide(v, played.pool.index(task))
    assert played.phase == S.FINISHED
