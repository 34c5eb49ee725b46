"""Recorded episodes of the public reference simulator, reproduced decision by decision."""

from pathlib import Path

import naive
import numba
import numpy as np
import pytest

from acerl_np import Simulator, load_instance

RECORDED = dict(
    np.load(Path(__file__).parents[1] / "data" / "dmh-episodes.npz", allow_pickle=False)
)
N_EPISODES = len(RECORDED["instance"])
FIRST_DECISION = np.concatenate([[0], np.cumsum(RECORDED["n_decisions"], dtype=int)])
SINGLE_EPISODES = range(0, N_EPISODES, 7)


def compare_decision(simulator, b, episode, k):
    row = FIRST_DECISION[episode] + k
    where = f"decision {k} of recorded episode {episode}"
    assert simulator.time[b] == RECORDED["decision_time"][row], where
    assert simulator.action_mask[b].tolist() == RECORDED["decision_mask"][row].tolist(), where
    seen, expected = simulator.observation[b], RECORDED["decision_observation"][row]
    np.testing.assert_allclose(seen, expected, rtol=1e-6, atol=1e-6, err_msg=where)


def compare_outcome(simulator, b, episode):
    instance = simulator.instances[b]
    vehicle_ids = [vehicle.id for vehicle in instance.layout.vehicles]
    schedule = simulator.schedule(b)
    position = [instance.tasks.index(task) for task in schedule.task]
    assert sorted(position) == list(range(instance.n_tasks))
    vehicle = np.array([vehicle_ids.index(name) for name in schedule.vehicle])
    np.testing.assert_array_equal(vehicle, RECORDED["vehicle"][episode][position])
    np.testing.assert_array_equal(schedule.start, RECORDED["start"][episode][position])
    np.testing.assert_array_equal(schedule.finish, RECORDED["finish"][episode][position])
    assert simulator.makespan[b] == RECORDED["makespan"][episode]
    assert simulator.tardiness[b] == pytest.approx(RECORDED["tardiness"][episode], rel=1e-12)


def replay(simulator, episodes):
    """Play recorded episodes in lockstep, row b the episode `episodes[b]`."""
    n_decisions = RECORDED["n_decisions"][list(episodes)]
    for k in range(n_decisions.max()):
        np.testing.assert_array_equal(simulator.done, n_decisions <= k)
        actions = np.zeros(len(n_decisions), int)
        for b, episode in enumerate(episodes):
            if k < n_decisions[b]:
                compare_decision(simulator, b, episode, k)
                actions[b] = RECORDED["decision_action"][FIRST_DECISION[episode] + k]
        simulator.step(actions)
    assert simulator.done.all()
    for b, episode in enumerate(episodes):
        compare_outcome(simulator, b, episode)


def test_recording_is_complete():
    assert N_EPISODES == 48
    assert set(RECORDED["instance"]) == {f"DMH-{k:02d}" for k in range(1, 9)}
    assert FIRST_DECISION[-1] == len(RECORDED["decision_time"]) == 1567
    # 30 tasks each; what is above that was assigned again after a breakdown
    assert (RECORDED["n_decisions"] >= 30).all()
    assert (RECORDED["n_decisions"] > 30).any()


@pytest.mark.oracle
def test_recorded_episodes_in_one_batch():
    episodes = range(0, N_EPISODES, 7 if numba.config.DISABLE_JIT else 1)
    played = [load_instance(RECORDED["instance"][e]) for e in episodes]
    replay(Simulator(played, slots="pool"), episodes)


@pytest.mark.parametrize("episode", SINGLE_EPISODES)
def test_recorded_episode_in_slow_simulator(episode):
    instance = load_instance(RECORDED["instance"][episode])
    slow = naive.NaiveEpisode(instance.layout.to_dict(), instance.rows())
    for row in range(FIRST_DECISION[episode], FIRST_DECISION[episode + 1]):
        assert slow.time == RECORDED["decision_time"][row]
        assert slow.mask() == RECORDED["decision_mask"][row].tolist()
        np.testing.assert_allclose(
            slow.observation(), RECORDED["decision_observation"][row], rtol=1e-6, atol=1e-6
        )
        slow.step(RECORDED["decision_action"][row])
    assert slow.done
    _, vehicle, start, finish = zip(*slow.schedule, strict=True)
    assert list(vehicle) == RECORDED["vehicle"][episode].tolist()
    assert list(start) == RECORDED["start"][episode].tolist()
    assert list(finish) == RECORDED["finish"][episode].tolist()
    assert slow.makespan == RECORDED["makespan"][episode]
    assert slow.tardiness == pytest.approx(RECORDED["tardiness"][episode], rel=1e-12)
