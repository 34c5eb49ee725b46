"""PPO beside MaskablePPO of sb3-contrib, with the same settings, first parameters and rewards.

It needs the extra, which brings PyTorch:

    pip install -e '.[sb3]' && python -m pytest -s -m long tests/rivals/test_maskable_ppo.py
"""

from itertools import pairwise

import numpy as np
import pytest

import acerl_np
from acerl_np.problem.goal import PAPER
from studies.rivals import RivalTrainer
from studies.rivals.learner import measure_unit

STEPS = 100_000
WINDOW = 10_000
SEEDS = range(5)


def train_ours(seed):
    """Mean makespan of the training episodes of each window."""
    instances = acerl_np.load_suite("dmh-train")
    trainer = RivalTrainer("ppo", instances, steps=STEPS, seed=seed, settings={"look_every": 0})
    trainer.run()
    return [-record.return_mean for record in trainer.history], trainer.policy


def train_theirs(seed):
    """The same of MaskablePPO, with one trunk for both heads."""
    gymnasium = pytest.importorskip("gymnasium")
    sb3_contrib = pytest.importorskip("sb3_contrib")
    torch = pytest.importorskip("torch")
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import DummyVecEnv

    from acerl_np.gym import DMHEnv

    torch.set_num_threads(1)
    instances = acerl_np.load_suite("dmh-train")
    unit = measure_unit(instances, PAPER)
    twin = RivalTrainer("ppo", instances, steps=1, seed=seed)
    own = twin.settings

    class Scaled(gymnasium.Wrapper):
        def step(self, action):
            observation, reward, terminated, truncated, info = self.env.step(action)
            if terminated:
                reward = own.reward_scale * (own.reward_shift + reward / unit)
            return observation, reward, terminated, truncated, info

        def action_masks(self):
            return self.env.action_masks()

    class Trunk(BaseFeaturesExtractor):
        def __init__(self, space):
            super().__init__(space, own.hidden[-1])
            sizes = [space.shape[0], *own.hidden]
            layers = []
            for n_in, n_out in pairwise(sizes):
                layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
            self.layers = torch.nn.Sequential(*layers)

        def forward(self, observation):
            return self.layers(observation)

    class Record(BaseCallback):
        def __init__(self):
            super().__init__()
            self.ended = []

        def _on_step(self):
            for done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
                if done:
                    self.ended.append((self.num_timesteps, info["makespan"]))
            return True

    env = DummyVecEnv([lambda: Scaled(DMHEnv("dmh-train"))] * own.episodes)
    model = sb3_contrib.MaskablePPO(
        "MlpPolicy",
        env,
        learning_rate=own.learning_rate,
        n_steps=own.collect // own.episodes,
        batch_size=own.batch,
        n_epochs=own.repeats,
        gamma=own.discount,
        gae_lambda=own.decay,
        clip_range=own.clip,
        normalize_advantage=False,
        ent_coef=own.entropy_factor,
        vf_coef=own.value_factor,
        max_grad_norm=own.max_norm,
        seed=seed,
        device="cpu",
        policy_kwargs={
            "features_extractor_class": Trunk,
            "net_arch": [],
            "optimizer_kwargs": {"eps": 1e-8},
        },
    )
    theta = torch.tensor(twin.learner.actor.read_parameters())
    linear = [*model.policy.features_extractor.layers[::2]]
    heads = [model.policy.action_net, model.policy.value_net]
    sizes, offset = [219, *own.hidden, 13], 0
    with torch.no_grad():
        for k, (n_in, n_out) in enumerate(pairwise(sizes)):
            weights = theta[offset : offset + n_in * n_out].reshape(n_in, n_out).T
            offset += (n_in + 1) * n_out
            parts = [weights] if k < len(linear) else [weights[:12], weights[12:]]
            for layer, part in zip([linear[k]] if k < len(linear) else heads, parts, strict=True):
                layer.weight.copy_(part)
                layer.bias.zero_()
    record = Record()
    model.learn(STEPS, callback=record)
    steps, makespan = np.array(record.ended).T
    window = np.minimum((steps - 1) // WINDOW, STEPS // WINDOW - 1)
    return [makespan[window == k].mean() for k in range(STEPS // WINDOW)]


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_ppo_learns_like_maskable_ppo():
    pytest.importorskip("sb3_contrib")
    theirs = np.array([train_theirs(seed) for seed in SEEDS])
    ours = np.array([train_ours(seed)[0] for seed in SEEDS])
    for name, curves in (("acerl_np", ours), ("MaskablePPO", theirs)):
        mean, spread = curves.mean(axis=0), curves.std(axis=0, ddof=1)
        print(name, " ".join(f"{m:.0f}±{s:.0f}" for m, s in zip(mean, spread, strict=True)))
    error = np.sqrt((ours.var(axis=0, ddof=1) + theirs.var(axis=0, ddof=1)) / len(SEEDS))
    # Ten windows, each a t test with eight degrees of freedom: 4 standard errors are one in 250 once.
    assert (abs(ours - theirs).mean(axis=0) < 40.0).all()
    assert (abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4.0 * error + 2.0).all()
    assert ours[:, -1].mean() < ours[:, 0].mean() - 30.0
