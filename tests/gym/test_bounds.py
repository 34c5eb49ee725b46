"""Observations never leave the bounds of their space, and these are such as a learner can rescale by."""

from __future__ import annotations

import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from acerl_np import Instance, Layout, RandomBreakdowns, load_instance
from acerl_np.kernels.ground.state import EPISODE_POOL_SIZE

gymnasium = pytest.importorskip("gymnasium")

from acerl_np.gym import DMHEnv, DMHVectorEnv  # noqa: E402
from acerl_np.gym.bounds import bound_durations, bound_time  # noqa: E402


def play_within(env, choose):
    """Play an episode, and return its last time."""
    low, high = env.observation_space.low, env.observation_space.high
    assert np.isfinite([low, high]).all() and (low < high).all()
    observation, info = env.reset(seed=0)
    k, over = 0, False
    while not over:
        assert observation in env.observation_space
        observation, _, over, _, info = env.step(choose(np.flatnonzero(info["action_mask"]), k))
        k += 1
    return info["time"]


PLAIN, POWERED = worlds.worlds(), worlds.with_parking(worlds.with_chargers(worlds.worlds()))
MODEL = RandomBreakdowns(2e4, 30.0)
HOW = [{"may_wait": True, "commitment": commitment} for commitment in ("assignment", "pickup")]


@settings(deadline=None, max_examples=200)
@given(
    st.tuples(PLAIN, st.sampled_from([{}, {"model": MODEL}, *HOW]))
    | st.tuples(POWERED, st.sampled_from(HOW)),
    st.sampled_from(["rules", "pairs"]),
    st.sampled_from(["task", "pool"]),
)
def test_no_observation_leaves_its_bounds(drawn, actions, slots):
    world, how = drawn
    may_wait, model = how.get("may_wait", False), how.get("model")
    layout = Layout.from_dict(world.layout).with_random_breakdowns(model)
    layout = layout.with_commitment(how.get("commitment", "assignment"), 2)
    instance = Instance.from_rows("random", layout, world.rows)
    env = DMHEnv(instance, actions=actions, slots=slots, may_wait=may_wait)
    time = play_within(env, world.choose)
    if model is None:
        assert time <= bound_time(instance, bound_durations(instance), np.inf, may_wait)


SPREAD = {
    "distance": [11.0, 4.0],
    "waiting": [9.0, 5.0],
    "expiry": [30.0, 7.0],
    "demand": [2.0, 0.5],
    "total_distance": [19.0, 6.0],
    "speed": 4.0,
    "capacity": 8.0,
}
"""Constants that let each feature of a task take values of both signs."""


@pytest.mark.parametrize("slots", ["task", "pool"])
@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize("scaling", [worlds.RAW, SPREAD], ids=["raw", "spread"])
def test_every_bound_is_touched(scaling, truncates, slots):
    """So `gym/bounds.py` and what kernels write cannot differ: neither is wider than the other."""
    fleet = [
        {"id": "u", "start": "A", "speed": 1, "capacity": 4},
        {
            "id": "v",
            "start": "C",
            "speed": 2,
            "capacity": 6,
            "breakdowns": [{"time": time, "repair_time": 20} for time in (5, 90)],
        },
    ]
    ways = (("A", "C", 16.4), ("A", "B", 10.2), ("B", "C", 6.2), ("C", "A", 16.4), ("B", "A", 10.2))
    rows = [
        worlds.make_task(f"t{k}", a, b, 3 * k, 20 + 5 * k, demand=1 + 0.5 * k)
        for k, (a, b, _) in enumerate(ways)
    ]
    how = {"task_slots": 3, "scaling": scaling, "truncate_distances": truncates}
    floor = worlds.straight_floor(fleet, **how)
    for edge, length in zip(floor["edges"], (10.2, 6.2), strict=True):
        edge["length"] = length
    instance = Instance.from_rows("touched", Layout.from_dict(floor), rows)
    env = DMHEnv(instance, actions="pairs", slots=slots)
    n_slots = 3 if slots == "pool" else len(rows)
    rng = np.random.default_rng(0)
    seen, longest = [], 0.0
    state = env._episodes.simulator.state
    for _ in range(150):
        observation, info = env.reset()
        over = False
        while not over:
            seen.append(observation)
            first = state.pool[0, 0] if slots == "pool" else 0  # the task in the first slot
            if first in state.pool[0, : state.episode[0, EPISODE_POOL_SIZE]]:
                longest = max(longest, info["time"] - state.waiting_since[0, first])
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            observation, _, over, _, info = env.step(action)
    least, most = np.min(seen, axis=0), np.max(seen, axis=0)
    low, high = env.observation_space.low, env.observation_space.high
    features = {"loaded": 0, "expiry": 2, "demand": 3}
    for v in range(2):
        first = 4 * n_slots + v * (3 + n_slots)
        names = ("speed", "status", "capacity", "total")
        features |= {f"{name} {v}": first + k for k, name in enumerate(names)}
    del features["status 0"]  # it never breaks down
    for name, k in features.items():
        # 0 is within, as of what is not there.
        assert high[k] == 0.0 or most[k] == pytest.approx(high[k], rel=1e-6), name
        assert low[k] == 0.0 or least[k] == pytest.approx(low[k], rel=1e-6), name
        assert low[k] < 0.0 or high[k] > 0.0, name
    # The longest wait is that of a fleet that does one thing after another, so it is not touched.
    mid, half = scaling["waiting"]
    latest = bound_time(instance, bound_durations(instance), np.inf)
    for value, seconds in ((low[1], 0.0), (high[1], latest), (least[1], 0.0), (most[1], longest)):
        assert value == pytest.approx((seconds - mid) / half, rel=1e-5, abs=1e-5)
    assert 20.0 < longest < latest


def test_bounds_hold_for_all_instances_and_sizes():
    """Those of several are the widest; slots and vehicles that are never used are rescaled, too."""
    short = load_instance("DMH-01")
    both = DMHVectorEnv(2, [short, "DMH-02"], task_slots=33, n_vehicles=5, horizon=300.0)
    space = both.single_observation_space
    for instance in (short, "DMH-02"):
        one = DMHEnv(instance, task_slots=33, n_vehicles=5, horizon=300.0).observation_space
        assert (space.low <= one.low).all()
        assert (space.high >= np.where(one.high == 1.0, 0.0, one.high)).all()
    unused = slice(4 * 30, 4 * 33)
    assert (space.low[unused] == 0.0).all()
    assert (space.high[unused] == 1.0).all()
