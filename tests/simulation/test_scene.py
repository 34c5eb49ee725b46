"""What a policy is asked about: names of what it sees, and the pages that list them."""

import re
from pathlib import Path

import pytest

import acerl_np
from acerl_np import InputError, Simulator
from acerl_np.kernels.core.state import Outcome
from acerl_np.policies.index import FEATURES
from acerl_np.problem.bundled import bundled_suites
from acerl_np.simulation.scene import Pairs

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("slots", ["task", "pool"])
@pytest.mark.parametrize("suite", [name for name in bundled_suites() if name.startswith("dmh")])
def test_names_are_in_the_order_of_the_slow_simulators_observation(suite, slots):
    simulator = Simulator(acerl_np.load_suite(suite), slots=slots, n_vehicles=5)
    of_task = ("loaded way", "waiting time", "expiry", "demand")
    expected = [f"slot {k}: {word}" for k in range(30) for word in of_task]
    for v in range(5):
        expected += [f"vehicle {v}: {word}" for word in ("speed", "status", "capacity")]
        expected += [f"vehicle {v}: total way, slot {k}" for k in range(30)]
    assert list(simulator.observation_names) == expected
    n = simulator.n_episodes
    words = f"b: read {n}; expected the index of an episode, from 0 to {n - 1}"
    with pytest.raises(InputError, match=words):
        simulator.pairs(n)


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
