"""Vehicles that park, charge and are called back, chains, announced tasks: beside the slow simulator."""

import random
import re
from dataclasses import replace

import pytest
import worlds
from hypothesis import event, given, settings
from hypothesis import strategies as st
from played import KINDS, ROW, Played, compare, compare_drawn, list_kinds

import acerl_np
from acerl_np import Layout
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.kernels.core import state as S
from acerl_np.kernels.motion.offers import may_wait
from acerl_np.support.errors import InputError

CHAINED = list_kinds(worlds.with_chains(worlds.worlds()))
ALL = {**KINDS, **{f"{kind}, chains": drawn for kind, drawn in CHAINED.items()}}
CLOSED = ("as they are", "both", "both, chains")
ALL |= {f"{kind}, closures": worlds.with_closures(ALL[kind]) for kind in CLOSED}

both = pytest.mark.parametrize("commitment", ["assignment", "pickup"])


@both
@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=25)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator(kind, commitment, data):
    compare_drawn(ALL[kind], commitment, data)


@pytest.mark.long
@both
@pytest.mark.parametrize("kind", ALL)
@settings(max_examples=700)
@given(data=st.data())
def test_the_kernels_equal_the_slow_simulator_on_many_floors(kind, commitment, data):
    compare_drawn(ALL[kind], commitment, data)


def test_rules_serve_tasks_that_are_never_due():
    for rule in ("FCFS", "EDD", "NVF", "STD", "LWT", "AHP"):
        trace = trace_policy(rule, acerl_np.load_instance("EX11"))
        assert sorted(decision.task for decision in trace.decisions) == list(range(13)), rule


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


@pytest.mark.long
@both
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


def test_who_charges_where_others_park_has_no_place_there():
    """v1 leaves the charger at the tick at which v0 drives there to park."""
    battery = dict.fromkeys(("idle", "empty", "loaded", "tow"), 0)
    battery |= {"capacity": 90, "charge": 1, "critical": 1, "resume": 2, "good": 60, "full": 80}
    vehicles = [
        {"id": "v0", "start": "B", "speed": 1, "battery": {**battery, "start": 90}},
        {"id": "v1", "start": "C", "speed": 1, "battery": {**battery, "start": 9}},
    ]
    keys = {"chargers": [{"site": "C"}], "parking": {"after": 10, "places": [{"site": "C"}]}}
    edges = [{"a": "A", "b": "B"}, {"a": "B", "b": "C", "length": 9}]
    layout = worlds.straight_floor(vehicles, task_slots=1, edges=edges, **keys)
    rows = [
        worlds.make_task(f"t{k}", "C", "B", arrival, 9) for k, arrival in enumerate((10, 12, 13))
    ]
    for seed in range(4):
        compare(worlds.World(layout, rows, [0]), "assignment", 0, seed)
