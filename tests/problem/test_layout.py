"""Copies of layouts and instances: each is as if it had been read from its own file."""

import copy
import inspect
import json
import pickle
from dataclasses import is_dataclass, replace
from functools import cached_property

import numpy as np
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from acerl_np import Instance, Layout, LayoutError, RandomBreakdowns
from acerl_np.problem.parts import Breakdown, Closure

FLOORS = st.booleans().flatmap(lambda quickest: worlds.floors(quickest=quickest))
WORLDS = worlds.with_parking(worlds.worlds(FLOORS) | worlds.with_chargers(worlds.worlds(FLOORS)))

WITH = {
    "with_fleet": lambda layout: layout.with_fleet(
        [
            *(replace(vehicle, speed=2.5 * vehicle.speed) for vehicle in layout.vehicles[1:]),
            replace(layout.vehicles[0], id="new", start=layout.sites[-1].id, capacity=9.0),
            replace(layout.vehicles[0], id="newer", breakdowns=()),
        ]
    ),
    "with_breakdowns": lambda layout: layout.with_breakdowns({"v0": [Breakdown(1.0, 2.0)]}),
    "with_random_breakdowns": lambda layout: layout.with_random_breakdowns(
        RandomBreakdowns(300.0, 20.0)
    ),
    "with_loads": lambda layout: layout.with_loads("stay"),
    "with_commitment": lambda layout: layout.with_commitment("pickup", 3),
    "with_closures": lambda layout: layout.with_closures(
        [Closure(layout.edges[0].a, layout.edges[0].b, 3.0, 9.0)]
    ),
    "with_traffic": lambda layout: layout.with_traffic("beside"),
}


def show(value):
    """Every public property of a layout, an instance or its routes, also one that a later version adds."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if not is_dataclass(value) or type(value).__module__.endswith(".parts"):
        return value
    kinds = property | cached_property
    found = [
        name for name, _ in inspect.getmembers_static(type(value), lambda x: isinstance(x, kinds))
    ]
    names = {*found, *value.__dataclass_fields__}
    return {name: show(getattr(value, name)) for name in sorted(names) if name[0] != "_"}


def read(layout):
    """The same floor and fleet from a file, which does not say how long tasks may change hands."""
    again = Layout.from_dict(json.loads(json.dumps(layout.to_dict())))
    assert again.to_dict() == layout.to_dict()
    return replace(again, commitment=layout.commitment, max_changes=layout.max_changes)


@settings(max_examples=40, deadline=None)
@given(WORLDS, st.sampled_from(sorted(WITH)), st.booleans())
def test_a_changed_layout_is_that_of_its_own_file(world, name, is_used):
    named = {own for own in dir(Layout) if own.startswith("with_")}
    assert named == {*WITH, "with_closed"}  # of which live floors alone know
    layout = Layout.from_dict(world.layout)
    before = show(read(layout))
    if is_used:
        assert show(layout) == before
    try:
        other = WITH[name](layout)
    except (
        LayoutError
    ):  # a battery that does not do for the new speeds, or that nobody charges in traffic
        assert name in ("with_fleet", "with_traffic")
        assert world.layout.get("chargers") or layout.truncate_distances
        return
    assert show(other) == show(read(other))
    assert show(other.with_breakdowns({})) == show(read(other.with_breakdowns({})))
    assert show(layout) == before


@settings(max_examples=20, deadline=None)
@given(WORLDS, st.booleans())
def test_a_copied_instance_is_that_of_its_own_file(world, is_used):
    instance = world.instance()
    if is_used:
        show(instance)
    layout = WITH["with_random_breakdowns"](instance.layout)
    rows = instance.rows()
    for other in (replace(instance, layout=layout), copy.copy(instance), copy.deepcopy(instance)):
        assert show(other) == show(Instance.from_rows("random", read(other.layout), rows))
    arrived = pickle.loads(pickle.dumps(instance))
    assert set(vars(arrived)) == set(Instance.__dataclass_fields__)
    assert show(arrived) == show(instance)
