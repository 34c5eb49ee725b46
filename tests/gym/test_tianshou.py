"""Observations with their mask, as Tianshou reads them.

It needs PyTorch, which comes with the extra:

    pip install -e '.[tianshou]' && python -m pytest -m long tests/gym/test_tianshou.py
"""

import copy
from pathlib import Path

import numpy as np
import pytest

from acerl_np import Agent, evaluate_policy, load_suite

gymnasium = pytest.importorskip("gymnasium")

from acerl_np.gym import ENV_ID, DMHEnv  # noqa: E402
from acerl_np.gym.tianshou import MaskInObservation  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

PAGE = (Path(__file__).parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("actions", ["rules", "pairs"])
def test_the_mask_is_in_the_observation(actions):
    env = MaskInObservation(gymnasium.make(ENV_ID, instances="DMH-01", actions=actions))
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
        assert not {"action_mask", "makespan", "tardiness", "status"} & info.keys()
        assert info["finished"] == over
    assert not seen["mask"].any()


def test_a_copy_goes_its_own_way():
    env = MaskInObservation(DMHEnv("DMH-01"))
    seen = env.reset(seed=0)[0]["mask"]
    other = copy.copy(env)
    other.step(int(seen.argmax()))
    assert np.array_equal(env.unwrapped.action_masks(), seen)


def make_single(n, **options):
    """What the library makes of single environments."""
    vectors = pytest.importorskip("tianshou.env", reason="needs the extra tianshou")
    return vectors.DummyVectorEnv([lambda: MaskInObservation(DMHEnv("dmh-train", **options))] * n)


class Layers(torch.nn.Module if torch else object):
    """A network of observations; which actions are illegal, DQN's policy sees itself."""

    def __init__(self, n_out):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(219, 64), torch.nn.ReLU(), torch.nn.Linear(64, n_out)
        )

    def forward(self, obs, state=None, info=None):
        seen = getattr(obs, "obs", obs)
        return self.layers(torch.as_tensor(seen, dtype=torch.float32) / 10.0), state


def make_dqn(space):
    from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory

    model = Layers(int(space.n))
    policy = DiscreteQLearningPolicy(
        model=model, action_space=space, eps_training=0.3, eps_inference=0.3
    )
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=50)


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_the_example_of_the_page_runs_and_its_agent_is_judged(capsys):
    pytest.importorskip("tianshou", reason="needs the extra tianshou")
    from tianshou.data import Batch

    [code] = [block for block in PAGE.split("```\n") if "collector.collect(" in block]
    names = {}
    exec(compile(code, "environments.md", "exec"), names)
    assert -4000.0 < float(capsys.readouterr().out) < -1500.0
    policy = names["policy"]
    policy.set_eps_inference(0.0)
    [line] = [
        line for line in PAGE.splitlines() if line.startswith("`lambda observation, mask: policy(")
    ]
    function = eval(line.strip("`."), {"policy": policy, "Batch": Batch})
    agent = Agent(function, load_suite("dmh-train"))
    trials = evaluate_policy(agent, load_suite("dmh-test")[:2], trials=2)
    env = MaskInObservation(DMHEnv("DMH-09"))
    seen, _ = env.reset()
    over = False
    while not over:
        batch = Batch(obs=Batch(obs=seen["obs"][None], mask=seen["mask"][None]), info=Batch())
        seen, reward, over, _, _ = env.step(policy(batch).act[0])
    assert trials.makespan[0, 0] == -reward


@pytest.mark.long
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("options", [{}, {"horizon": 700.0}, {"illegal": "redraw"}], ids=str)
def test_its_trainer_runs_and_its_buffer_lacks_nothing(options):
    """A missing number or word in an info ends a training, where an episode ends or later."""
    envs, tests = make_single(4, **options), make_single(2, **options)
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.trainer import OffPolicyTrainerParams

    algorithm = make_dqn(envs.action_space[0])
    buffer = VectorReplayBuffer(4000, 4)
    training = Collector(
        algorithm, envs, buffer, exploration_noise=True, raise_on_nan_in_buffer=True
    )
    result = algorithm.run_training(
        OffPolicyTrainerParams(
            max_epochs=2,
            epoch_num_steps=240,
            training_collector=training,
            test_collector=Collector(algorithm, tests),
            collection_step_num_env_steps=80,
            test_step_num_episodes=2,
            batch_size=64,
            update_step_num_gradient_steps_per_sample=0.1,
        )
    )
    assert not buffer.hasnull()
    assert (buffer[:].info.cost > 0.0).any()
    assert (buffer[:].info.finished == buffer[:].done).all() == ("horizon" not in options)
    assert -9000.0 < result.best_reward < -1500.0
