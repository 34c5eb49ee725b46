"""What a policy is asked about: names of what it sees, and the pages that list them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from worlds import make_task, straight_floor

import acerl_np
from acerl_np import InputError, Instance, Layout, Simulator
from acerl_np.kernels.state import Outcome
from acerl_np.policies.index import FEATURES
from acerl_np.problem.bundled import bundled_suites
from acerl_np.simulation.scene import Pairs

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("slots", ["task", "pool"])
@pytest.mark.parametrize("suite", [name for name in bundled_suites() if name.startswith("dmh")])
def test_every_entry_has_a_name(suite, slots):
    simulator = Simulator(acerl_np.load_suite(suite), slots=slots, n_vehicles=5)
    names = simulator.observation_names
    assert len(set(names)) == len(names) == simulator.n_features
    n = simulator.n_episodes
    words = f"b: read {n}; expected the index of an episode, from 0 to {n - 1}"
    with pytest.raises(InputError, match=words):
        simulator.pairs(n)


@pytest.mark.parametrize("slots", ["task", "pool"])
def test_a_name_says_what_the_entry_is(slots):
    """On A --10 m-- B --6 m-- C, whose constants leave numbers as they are."""
    fleet = [
        {"id": "v", "start": "A", "speed": 2, "capacity": 3},
        {"id": "w", "start": "C", "speed": 1, "breakdowns": [{"time": 2, "repair_time": 50}]},
    ]
    rows = [
        make_task("a", "B", "C", 0, 40),
        make_task("b", "C", "A", 1, 30, demand=3),
        make_task("c", "A", "B", 1, 20),
    ]
    layout = Layout.from_dict(straight_floor(fleet, task_slots=3))
    simulator = Simulator(Instance.from_rows("named", layout, rows), slots=slots)
    simulator.assign([0], [0])  # to B and on to C, until 8 s; then w breaks down and both wait
    assert simulator.time[0] == 1.0
    simulator.assign([1], [1])
    assert simulator.time[0] == 8.0
    seen = dict(zip(simulator.observation_names, simulator.observation[0].tolist(), strict=True))
    b, c = 1, 2 if slots == "task" else 0  # what a breakdown gives back is the last of the pool
    expected = {
        f"slot {b}: loaded way": 16,
        f"slot {b}: waiting time": 7,
        f"slot {b}: expiry": 30,
        f"slot {b}: demand": 3,
        f"slot {c}: waiting time": 7,
        "vehicle 0: speed": 2,
        "vehicle 0: status": 0,
        "vehicle 0: capacity": 3,
        f"vehicle 0: total way, slot {b}": 16,
        f"vehicle 0: total way, slot {c}": 26,
        "vehicle 1: status": 1,
        "vehicle 1: capacity": 0,
    }
    assert {name: seen[name] for name in expected} == expected


def read_table(page, heading):
    """The rows of the first table below a heading, cell by cell, without marks of code."""
    section = (DOCS / page).read_text().partition(f"\n## {heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE).group(0).replace("`", "")
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def first_column(page, heading):
    return [name for row in read_table(page, heading) for name in row[0].split(", ")]


def test_the_pages_list_what_there_is():
    sim = Simulator(acerl_np.load_instance("DMH-01"))
    names = [re.sub("slot [0-9]+", "slot k", name) for name in sim.observation_names]
    names = [re.sub("vehicle [0-9]+", "vehicle v", name) for name in names]
    rows = read_table("simulator.md", "The observation")
    assert [row[0] for row in rows] == list(dict.fromkeys(names))
    assert first_column("simulator.md", "A pair") == list(Pairs._fields)
    assert first_column("simulator.md", "The outcome") == list(Outcome._fields)
    features = [
        [item.name, item.words, "time" if item.unit == "s" else item.unit, f"{item.scale:g}"]
        for item in FEATURES
    ]
    assert read_table("policies.md", "What an index policy looks at") == features
