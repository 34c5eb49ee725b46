"""Episodes of the simulator beside those of the slow one."""

import full
import numpy as np
import pytest
from plain_policies import first_legal
from worlds import PAIRS

from acerl_np import Simulator
from acerl_np.kernels.core.state import NEVER
from acerl_np.kernels.rollout.lookahead import begin_lookahead, rate_candidates
from acerl_np.problem.interface import find_scaling


def scaling_array(scaling):
    return np.array(
        [x for name in PAIRS for x in scaling[name]] + [scaling["speed"], scaling["capacity"]]
    )


def scaling_dict(array):
    pairs = {name: array[2 * k : 2 * k + 2].tolist() for k, name in enumerate(PAIRS)}
    return {**pairs, "speed": float(array[10]), "capacity": float(array[11])}


def finished_tasks(slow):
    """(task, vehicle, start, finish) of the tasks that are finished by now, in order of start."""
    served = [row for row in slow.schedule if row[1] >= 0 and row[3] <= slow.time]
    return sorted(served, key=lambda row: row[2])


def schedule_rows(simulator, b):
    """A schedule of the simulator, as `finished_tasks` gives that of the slow one."""
    schedule = simulator.schedule(b)
    ids = [vehicle.id for vehicle in simulator.instances[b].layout.vehicles]
    return [
        (task, ids.index(vehicle), start, finish)
        for task, vehicle, start, finish in zip(*schedule, strict=True)
    ]


def compare(simulator, b, slow, observation=True):
    """Compare all that can be seen of an episode at a decision or at its end."""
    assert simulator.done[b] == slow.done
    assert simulator.time[b] == slow.time
    assert schedule_rows(simulator, b) == finished_tasks(slow)
    if slow.done:
        assert not simulator.action_mask[b].any()
        assert not simulator.observation[b].any()
        assert len(finished_tasks(slow)) == simulator.instances[b].n_tasks
        assert simulator.makespan[b] == slow.makespan
        assert simulator.tardiness[b] == pytest.approx(slow.tardiness, rel=1e-9, abs=1e-9)
        return
    assert simulator.action_mask[b].tolist() == slow.mask()
    assert np.isnan(simulator.makespan[b])
    assert np.isnan(simulator.tardiness[b])
    if observation:
        assert simulator.observation.dtype == np.float32
        np.testing.assert_allclose(simulator.observation[b], slow.state(), rtol=1e-5, atol=1e-5)


def play_and_compare(world, simulator=None, check=lambda simulator, slow: None, **options):
    """Play both by the world's choices, with a check at each decision; `options` are the slow simulator's."""
    if simulator is None:
        simulator = Simulator(world.instance(), slots="pool")
    scaling = scaling_dict(find_scaling(simulator.pool))
    slow = full.Episode(world.layout, world.rows, scaling=scaling, **options)
    k = 0
    while not slow.done:
        compare(simulator, 0, slow)
        check(simulator, slow)
        action = world.choose(np.flatnonzero(simulator.action_mask[0]), k)
        simulator.step([action])
        slow.step(action)
        k += 1
    compare(simulator, 0, slow)
    return slow


def play_on(simulator, act=first_legal, n_steps=10**6):
    """Play to the end, or so many steps; returns the makespans."""
    while n_steps > 0 and not simulator.done.all():
        simulator.step(act(simulator.observation, simulator.action_mask))
        n_steps -= 1
    return simulator.makespan.tolist()


def begin(simulator, ahead, key=(0, 0, 0, 0), decision=0):
    """Let a prepared lookahead list its candidates in the first episode."""
    own = simulator.problem, simulator.state, np.int64(0), ahead
    return begin_lookahead(*own, np.array(key, np.uint32), np.int64(decision))


def rate(simulator, ahead, first, last):
    """Let it rate them by some of its futures."""
    ahead.progress[:] = first, 0, 0
    own = simulator.problem, simulator.state, np.int64(0), ahead._replace(n_futures=last)
    rate_candidates(*own, NEVER)
