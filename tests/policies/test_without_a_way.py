"""Vehicles that stand where no way leads to a task: no policy gives it to them."""

import numpy as np
import pytest
from worlds import make_task, straight_floor

from acerl_np import Dispatcher, IndexPolicy, Instance, Layout, Simulator
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.kernels.core.state import NEVER, count_ticks
from acerl_np.live.events import TaskArrived
from acerl_np.policies.rules import RULES, RulePolicy

POLICIES = {name: RulePolicy(name) for name in RULES}
POLICIES["index"] = IndexPolicy.of_weights(approach=-1.0)
each_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def join(floor, *ends, **keys):
    """A floor with sites P and Q beside it, joined to each other, and to the rest as `ends` say."""
    more = [{"id": "P", "x": 20, "y": 0}, {"id": "Q", "x": 20, "y": 9}]
    edges = [{"a": a, "b": b, "one_way": True} for a, b in ("PQ", "QP", *ends)]
    return floor | {"sites": floor["sites"] + more, "edges": floor["edges"] + edges} | keys


@pytest.mark.compiles
@each_policy
def test_who_parks_in_a_pocket_is_given_nothing(policy, monkeypatch):
    vehicles = [{"id": "v", "start": "A"}, {"id": "w", "start": "A"}]
    places = {"after": 0, "places": [{"site": "P", "places": 2}]}
    floor = Layout.from_dict(join(straight_floor(vehicles), "BP", parking=places))
    rows = [make_task("t0", "A", "C", 0), make_task("t1", "A", "C", 600, 60)]
    monkeypatch.setattr(Instance, "check_servable", lambda *_, **__: None)
    instance = Instance.from_rows("pocket", floor, rows)
    simulator = Simulator(instance)
    while not simulator.done[0]:
        assert np.isfinite(simulator.pairs(0).approach).all()
        simulator.assign(*simulator.decide(policy))
    assert simulator.status[0] == "stuck" and simulator.schedule(0).task == ("t0",)
    assert len(trace_policy(policy, instance).trips) == 1


@pytest.mark.compiles
@each_policy
def test_who_stands_in_another_part_of_a_live_floor_is_given_nothing(policy):
    vehicles = [{"id": "v", "start": "A"}, {"id": "w", "start": "P"}]
    dispatcher = Dispatcher(Layout.from_dict(join(straight_floor(vehicles))), policy)
    for k in range(2):
        dispatcher.feed(TaskArrived(0.0, f"t{k}", "P", "Q", 100.0))
    assert [order.vehicle for order in dispatcher.decide(0.0)] == ["w"]


def test_a_time_without_end_is_no_tick():
    assert count_ticks(np.inf) == NEVER
    assert count_ticks(2.0) == count_ticks(2.0 + 1e-10) == 2
