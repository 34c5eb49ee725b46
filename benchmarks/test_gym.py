"""Steps through the Gymnasium environments; each benchmark checks its answer before it is timed.

A round is 30 decisions of every environment, with observations, infos and restarts.

python -m pytest benchmarks/test_gym.py
"""

from __future__ import annotations

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from acerl_np.gym import DMHEnv, DMHVectorEnv  # noqa: E402

STEPS = 30


class Player:
    """Takes the first legal action in every environment."""

    def __init__(self, envs):
        self.envs = envs
        _, self.infos = envs.reset(seed=0)

    def play(self):
        """Play a round; return each environment's sum of rewards."""
        total = np.zeros(self.envs.num_envs)
        for _ in range(STEPS):
            actions = self.infos["action_mask"].argmax(axis=1)
            _, rewards, _, _, self.infos = self.envs.step(actions)
            total += rewards
        return total


def gymnasiums_vector(suite, n):
    return gymnasium.vector.SyncVectorEnv([lambda: DMHEnv(suite)] * n)


@pytest.mark.benchmark(group="gym")
@pytest.mark.parametrize("n", [8, 64, 256, 1024])
def test_vector(benchmark, suite, n):
    player, other = Player(DMHVectorEnv(n, suite)), Player(gymnasiums_vector(suite, 8))
    for _ in range(3):
        first = player.play()[:8]
        assert np.array_equal(first, other.play())
    assert first.any()
    benchmark(player.play)
    if benchmark.stats is not None:
        benchmark.extra_info["steps_per_second"] = round(STEPS * n / benchmark.stats.stats.median)


@pytest.mark.benchmark(group="gym")
def test_gymnasiums_vector(benchmark, suite):
    """Eight single environments in Gymnasium's own vector environment."""
    player = Player(gymnasiums_vector(suite, 8))
    assert (player.play() + player.play()).all()  # an episode takes 30 decisions and a few more
    benchmark(player.play)
    if benchmark.stats is not None:
        benchmark.extra_info["steps_per_second"] = round(STEPS * 8 / benchmark.stats.stats.median)


@pytest.mark.benchmark(group="gym")
def test_single(benchmark, suite):
    """One environment, without Gymnasium's wrappers; its restarts included."""
    env = DMHEnv(suite)

    def play():
        _, info = env.reset(seed=0)
        over, n = False, 0
        while not over:
            _, reward, over, _, info = env.step(info["action_mask"].argmax())
            n += 1
        return reward, n

    assert play() == play()
    assert play()[0] < 0.0
    benchmark(play)
    if benchmark.stats is not None:
        benchmark.extra_info["steps_per_second"] = round(play()[1] / benchmark.stats.stats.median)
