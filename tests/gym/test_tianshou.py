"""The mask in the observation, as Tianshou reads it.

It needs PyTorch, which comes with the extra:

    pip install -e '.[tianshou]' && python -m pytest -m slow tests/gym/test_tianshou.py
"""

from __future__ import annotations

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from acerl_np.gym import ENV_ID, DMHEnv  # noqa: E402
from acerl_np.gym.tianshou import MaskInObservation  # noqa: E402


@pytest.mark.parametrize("actions", ["rules", "pairs"])
def test_the_mask_is_in_the_observation(actions):
    env = MaskInObservation(gymnasium.make(ENV_ID, instance="DMH-01", actions=actions))
    plain = DMHEnv("DMH-01", actions=actions)
    seen, info = env.reset(seed=0)
    observation, expected = plain.reset(seed=0)
    over = False
    while not over:
        assert seen in env.observation_space
        assert seen["mask"].dtype == np.bool_
        assert np.array_equal(seen["obs"], observation)
        assert np.array_equal(seen["mask"], expected["action_mask"] == 1)
        action = int(np.flatnonzero(seen["mask"])[-1])
        seen, reward, over, truncated, info = env.step(action)
        observation, *others, expected = plain.step(action)
        assert (reward, over, truncated) == tuple(others)
        assert info["time"] == expected["time"]
    assert not seen["mask"].any()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("actions", ["rules", "pairs"])
def test_dqn_of_tianshou_learns_on_it(actions):
    """It collects and updates; with and without exploration it takes legal actions only."""
    pytest.importorskip("tianshou", reason="needs the extra tianshou")
    torch = pytest.importorskip("torch")
    from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv

    torch.set_num_threads(1)
    torch.manual_seed(0)
    envs = DummyVectorEnv([lambda: MaskInObservation(DMHEnv("dmh-train", actions=actions))] * 4)
    space = envs.action_space[0]
    layers = torch.nn.Sequential(
        torch.nn.Linear(219, 64), torch.nn.ReLU(), torch.nn.Linear(64, int(space.n))
    )

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, obs, state=None, info=None):
            return self.layers(torch.as_tensor(obs, dtype=torch.float32) / 10.0), state

    policy = DiscreteQLearningPolicy(
        model=Net(), action_space=space, eps_training=0.3, eps_inference=0.3
    )
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=50)
    buffer = VectorReplayBuffer(4000, 4)
    collector = Collector(algorithm, envs, buffer)
    collector.reset()
    collected = collector.collect(n_episode=16)  # an illegal action raises
    assert collected.n_collected_episodes >= 16
    assert -6000.0 < collected.returns.min() <= collected.returns.max() < -1500.0
    before = [parameter.detach().clone() for parameter in layers.parameters()]
    from tianshou.utils.torch_utils import policy_within_training_step

    with policy_within_training_step(policy):
        for _ in range(20):
            algorithm.update(buffer=buffer, sample_size=64)
    assert any(
        not torch.equal(old, new) for old, new in zip(before, layers.parameters(), strict=True)
    )
    policy.set_eps_inference(0.0)
    assert collector.collect(n_episode=4).returns.max() < -1500.0
