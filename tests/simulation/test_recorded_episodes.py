"""Recorded episodes of the public reference simulator, reproduced decision by decision."""

from pathlib import Path

import numpy as np
import pytest
from episodes import schedule_rows
from machine import JIT

from acerl_np import Simulator, load_instance
from acerl_np.plain.floor import Floor
from acerl_np.plain.simulator import Episode

RECORDED = dict(
    np.load(Path(__file__).parents[1] / "data" / "dmh-episodes.npz", allow_pickle=False)
)
N_EPISODES = len(RECORDED["instance"])
FIRST_DECISION = np.concatenate([[0], np.cumsum(RECORDED["n_decisions"], dtype=int)])


def compare_decision(episode, k, time, mask, seen):
    row = FIRST_DECISION[episode] + k
    where = f"decision {k} of recorded episode {episode}"
    assert time == RECORDED["decision_time"][row], where
    assert mask == RECORDED["decision_mask"][row].tolist(), where
    expected = RECORDED["decision_observation"][row]
    np.testing.assert_allclose(seen, expected, rtol=1e-6, atol=1e-6, err_msg=where)
    return RECORDED["decision_action"][row]


def compare_outcome(episode, schedule, makespan, tardiness):
    """`schedule` has vehicle, start and finish of each task of the record."""
    names = ("vehicle", "start", "finish")
    assert schedule == list(zip(*(RECORDED[x][episode].tolist() for x in names), strict=True))
    assert makespan == RECORDED["makespan"][episode]
    assert tardiness == pytest.approx(RECORDED["tardiness"][episode], rel=1e-12)


def replay(simulator, episodes):
    """Play recorded episodes in lockstep, row b the episode `episodes[b]`."""
    n_decisions = RECORDED["n_decisions"][list(episodes)]
    for k in range(n_decisions.max()):
        np.testing.assert_array_equal(simulator.done, n_decisions <= k)
        actions = np.zeros(len(n_decisions), int)
        shown = simulator.time, simulator.action_mask.tolist(), simulator.observation
        for b, episode in enumerate(episodes):
            if k < n_decisions[b]:
                actions[b] = compare_decision(episode, k, *(x[b] for x in shown))
        simulator.step(actions)
    assert simulator.done.all()
    for b, episode in enumerate(episodes):
        served = {task: rest for task, *rest in schedule_rows(simulator, b)}
        schedule = [tuple(served[task]) for task in simulator.instances[b].tasks]
        compare_outcome(episode, schedule, simulator.makespan[b], simulator.tardiness[b])


def test_recording_is_complete():
    assert N_EPISODES == 48
    assert set(RECORDED["instance"]) == {f"DMH-{k:02d}" for k in range(1, 9)}
    assert FIRST_DECISION[-1] == len(RECORDED["decision_time"]) == 1567
    # 30 tasks each; what is above that was assigned again after a breakdown
    assert (RECORDED["n_decisions"] >= 30).all()
    assert (RECORDED["n_decisions"] > 30).any()


@pytest.mark.oracle
def test_recorded_episodes_in_one_batch():
    episodes = range(0, N_EPISODES, 1 if JIT else 7)
    played = [load_instance(RECORDED["instance"][e]) for e in episodes]
    replay(Simulator(played, slots="pool"), episodes)


@pytest.mark.parametrize("episode", range(0, N_EPISODES, 7))
def test_recorded_episode_in_the_plain_simulator(episode):
    instance = load_instance(RECORDED["instance"][episode])
    slow = Episode(Floor(instance.layout.to_dict()), instance.rows())
    for k in range(RECORDED["n_decisions"][episode]):
        slow.step(compare_decision(episode, k, slow.time, slow.mask(), slow.state()))
    assert slow.done
    schedule = [(task.vehicle, task.start, task.finish) for task in slow.tasks]
    compare_outcome(episode, schedule, slow.makespan, slow.tardiness)
