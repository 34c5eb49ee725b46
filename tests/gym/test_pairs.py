"""Actions that are a vehicle and a waiting task: beside the simulator asked pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from tables_and_refusals import list_unrefused

from acerl_np import ActionError, Instance, Layout, Simulator, load_instance
from acerl_np.kernels.rollout import find_impossible, list_pairs
from acerl_np.kernels.state import EPISODE_POOL_SIZE

gymnasium = pytest.importorskip("gymnasium")

from acerl_np.gym import DMHEnv, DMHVectorEnv  # noqa: E402


def ask_every_pair(simulator, b, slots):
    """The mask of episode b, by asking the kernel that `Simulator.assign` asks."""
    n_vehicles = simulator.problem.fleet.shape[1]
    mask = np.zeros((n_vehicles, slots), np.bool_)
    if simulator.done[b]:
        return mask.ravel()
    alone = Simulator(simulator.instances[b], n_vehicles=n_vehicles)
    state = type(simulator.state)(*(array[b : b + 1].copy() for array in simulator.state))
    state.episode[0, 0] = 0
    for v in range(n_vehicles):
        for k in range(min(slots, state.episode[0, EPISODE_POOL_SIZE])):
            task = state.pool[0, k]
            found = find_impossible(
                alone.problem, state, np.zeros(1, np.int64), np.array([v]), np.array([int(task)])
            )
            mask[v, k] = found < 0
    return mask.ravel()


@pytest.mark.oracle
@settings(deadline=None, max_examples=60)
@given(worlds.worlds())
def test_the_mask_is_what_the_simulator_takes(world):
    instance = world.instance()
    record = load_instance("DMH-01")
    simulator = Simulator([instance, record], n_episodes=2, slots="pool")
    slots = 3
    tasks = np.zeros((2, slots), np.int64)
    mask = np.zeros((2, simulator.problem.fleet.shape[1], slots), np.bool_)
    for k in range(12):
        list_pairs(simulator.problem, simulator.state, tasks, mask)
        for b in range(2):
            assert mask[b].ravel().tolist() == ask_every_pair(simulator, b, slots).tolist()
            n = min(slots, simulator.state.episode[b, EPISODE_POOL_SIZE])
            assert np.array_equal(tasks[b, :n], simulator.state.pool[b, :n])
        if simulator.done.all():
            break
        actions = [
            world.choose(np.flatnonzero(legal), k) if legal.any() else 0
            for legal in simulator.action_mask
        ]
        simulator.step(actions)


def test_illegal_pairs_are_refused_or_redrawn():
    envs = DMHVectorEnv(2, "DMH-01", actions="pairs")
    _, infos = envs.reset(seed=0)
    before = envs.action_masks()
    legal, illegal = (getattr(infos["action_mask"], name)(axis=1) for name in ("argmax", "argmin"))
    line = " is illegal; expected one of ["
    cases = [([legal[0], illegal[1]], line), ([legal[0], 90], line), ([-1, legal[1]], line)]
    cases.append((np.zeros(2), "expected integers"))
    assert list_unrefused(lambda wrong: envs.step(np.array(wrong)), cases, ActionError) == []
    assert np.array_equal(envs.action_masks(), before)
    env = DMHEnv("DMH-01", actions="pairs", illegal="redraw")
    env.reset(seed=0)
    assert env.step(89)[4]["redrawn"]


def crowded(n_tasks):
    """One vehicle for light loads and one for all; the heavy tasks come first, and light ones are unseen."""
    fleet = [{"id": name, "start": "A", "capacity": most} for name, most in (("s", 1), ("l", 9))]
    floor = Layout.from_dict(worlds.straight_floor(fleet, task_slots=2))
    demands = [5] * (n_tasks - 1) + [1]
    rows = [worlds.make_task(f"t{k}", "A", "B", 0, 9, demand=x) for k, x in enumerate(demands)]
    return Instance.from_rows("crowded", floor, rows)


@pytest.mark.parametrize(("n", "decisions"), [(3, 3), (6, 5)])
def test_what_no_slot_shows_is_decided_without_a_learner(n, decisions):
    """Else no action would be legal where one is due."""
    env = DMHEnv(crowded(n), actions="pairs", slots="pool")
    _, info = env.reset(seed=0)
    over, k = False, 0
    while not over:
        assert info["action_mask"].any()
        _, _, over, _, info = env.step(info["action_mask"].argmax())
        k += 1
    assert info["status"] == "finished"
    # Of six, the light task waits unseen behind the heavy ones, and the small vehicle takes it at once.
    assert k == decisions
