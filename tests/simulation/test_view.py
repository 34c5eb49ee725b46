"""Episodes as text and as pictures, and rooms whose extra is missing."""

import importlib
import sys

import numpy as np
import pytest
from pages import make_powered
from worlds import make_task, row_floor

import acerl_np
from acerl_np import Instance, Layout, Simulator, load_instance
from acerl_np.simulation.view import COLOURS, SIDE, WAITING, describe_episode, draw_episode

BREAKDOWNS = [{"time": 11, "repair_time": 5}]
FLEET = [{"id": "v", "start": "a", "speed": 2, "breakdowns": BREAKDOWNS}, {"id": "w", "start": "c"}]
PLACES = ("a", 0, 0), ("b", 40, 0), ("c", 40, 20)
LAYOUT = row_floor("abc", FLEET, sites=[{"id": name, "x": x, "y": y} for name, x, y in PLACES])
OWN = ("t", "a", "b", 0, 30), ("u", "b", "c", 0, 25), ("x", "b", "a", 10, 70.5)
ROWS = [make_task(*own) for own in OWN]


def colours_of(picture):
    numbers = np.unique(picture.astype(int) @ (65536, 256, 1)).tolist()
    return {(n >> 16, n >> 8 & 255, n & 255) for n in numbers}


def find(picture, colour):
    """Middle of the pixels of a colour, (row, column)."""
    rows, columns = np.nonzero((picture == colour).all(axis=2))
    return (rows.min() + rows.max()) / 2, (columns.min() + columns.max()) / 2


@pytest.fixture
def simulator():
    return Simulator(Instance.from_rows("three", Layout.from_dict(LAYOUT), ROWS))


def test_text_of_an_episode(simulator):
    assert describe_episode(simulator, 0).splitlines() == [
        "three at 0 s: 0 of 3 tasks finished",
        "  v: idle at a",
        "  w: idle at c",
        "  waiting: t from a to b, due at 30 s",
        "  waiting: u from b to c, due at 25 s",
    ]
    simulator.step([0])  # v takes t, a to b in 20 s, but breaks down
    assert "  v: working at a, task t" in describe_episode(simulator, 0)
    simulator.step([4])  # w takes u
    while not simulator.done[0]:
        simulator.step(simulator.action_mask.argmax(axis=1))
    lines = describe_episode(simulator, 0).splitlines()
    assert lines[0] == (
        f"three at {simulator.time[0]:g} s: 3 of 3 tasks finished; finished, "
        f"makespan {simulator.makespan[0]:g} s, tardiness {simulator.tardiness[0]:.1f} s"
    )
    assert len(lines) == 3


def test_picture_of_an_episode(simulator):
    picture = draw_episode(simulator, 0)
    assert picture.dtype == np.uint8
    assert picture.shape == (232, SIDE, 3)  # 20 m by 40 m, and margins of 32 pixels
    assert colours_of(picture) >= {COLOURS[0], WAITING}
    assert not colours_of(picture) & {COLOURS[1], COLOURS[2]}
    simulator.step([0])
    simulator.step([4])
    # At 11 s v broke down, where it was at 10 s: 20 m past a, half way to b. It is idle at 17 s,
    # when w has driven 17 of the 20 m from c to b. A metre is 8.4 pixels.
    assert simulator.time[0] == 17
    picture = draw_episode(simulator, 0)
    assert find(picture, COLOURS[0]) == pytest.approx((200, 200), abs=1)
    assert find(picture, COLOURS[1]) == pytest.approx((32 + 17 * 8.4, 368), abs=1)


def test_a_missing_extra_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "acerl_np.gym", raising=False)
    with pytest.raises(acerl_np.MissingExtraError) as caught:
        importlib.import_module("acerl_np.gym")
    assert str(caught.value).endswith("pip install 'acerl_np[gym]'")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


def test_levels_and_errands_are_told_and_drawn():
    simulator, seen, told = Simulator(make_powered()), set(), set()
    assert "  v0: idle at carport, level 100%" in describe_episode(simulator, 0)
    while not simulator.done[0]:
        fleet = simulator.fleet(0)
        for v, status in enumerate(fleet.status):
            assert f"  v{v}: {status} at" in describe_episode(simulator, 0)
        told |= set(fleet.status)
        seen |= colours_of(draw_episode(simulator, 0))
        simulator.step(simulator.action_mask.argmax(axis=1))
    assert told >= {"on its way to a charger", "charging"} and seen >= {*COLOURS, WAITING}
    simulator = Simulator(load_instance("DMH-01"), horizon=0)
    for action in (0, 4, 8):
        simulator.step([action])
    assert "stopped, makespan nan s" in describe_episode(simulator, 0)
