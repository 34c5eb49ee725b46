"""SAC: soft actor-critic for discrete, masked actions, with n-step returns and a fixed weight of the entropy.

Sources: Haarnoja et al. 2018 (arXiv:1801.01290), Christodoulou 2019 (arXiv:1910.07207). And LSAC, of a reward
with the cost in it.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from acerl_np.kernels.core.random import BATCH
from acerl_np.support.errors import CheckpointError
from studies.rivals.episodes import Seen
from studies.rivals.learner import RivalAlgorithm, Task
from studies.rivals.losses import find_soft_values, soften_policy, square_errors, sum_rewards
from studies.rivals.networks import Perceptron
from studies.rivals.perceptron import Inputs, allocate_inputs, blend, list_inputs
from studies.rivals.settings import LagrangianSettings, OffPolicySettings, RivalSettings


class Sample(NamedTuple):
    """A batch of m steps."""

    inputs: Inputs
    """2 m rows: before the steps, and after the last step of each return."""
    mask: np.ndarray
    next_mask: np.ndarray
    action: np.ndarray
    total: np.ndarray
    """Discounted rewards of the return's steps."""
    factor: np.ndarray
    """Discount of the value after them, 0 if the episode was over."""


class ReplayBuffer:
    """The latest steps of B episodes side by side, `capacity` of all together, in a ring."""

    def __init__(self, capacity: int, n_episodes: int, batch: int, task: Task) -> None:
        self.n_episodes = n_episodes
        self._capacity = max(1, capacity // n_episodes)
        # The last one holds what is seen now.
        shape = (self._capacity + 1, n_episodes)
        self.ring = {
            "seen": np.zeros((*shape, task.n_features), np.float32),
            "mask": np.zeros((*shape, task.n_actions), np.bool_),
            "action": np.zeros(shape, np.int64),
            "reward": np.zeros(shape),
            "over": np.zeros(shape, np.bool_),
        }
        self._inputs = allocate_inputs(2 * batch, task.n_features)
        self._now = 0
        self._n_steps = 0

    def add(
        self, seen: Seen, actions: np.ndarray, reward: np.ndarray, over: np.ndarray, now: Seen
    ) -> None:
        """Append a step of all episodes, over the oldest if there is no room."""
        step = seen.observation, seen.mask, actions, reward, over
        for array, own in zip(self.ring.values(), step, strict=True):
            array[self._now] = own
        self._now = (self._now + 1) % len(self.ring["seen"])
        self.ring["seen"][self._now], self.ring["mask"][self._now] = now.observation, now.mask
        self._n_steps = min(self._n_steps + 1, self._capacity)

    def sample(self, uniforms: np.ndarray, n_steps: int, discount: float) -> Sample:
        """Return steps drawn with replacement, and their returns of at most `n_steps`.

        A return also ends with the episode, and with what is known so far. A step is drawn by each of the
        `uniforms`, ndarray(float64, (m,)) in [0, 1).
        """
        seen, mask, action, reward, over = self.ring.values()
        m = len(uniforms)
        drawn = (uniforms * (self._n_steps * self.n_episodes)).astype(np.int64)
        ago, episodes = np.divmod(drawn, self.n_episodes)
        ago += 1
        slots = (self._now - ago) % len(seen)
        total, factor, end = np.empty(m), np.empty(m), np.empty(m, np.int64)
        sum_rewards(reward, over, slots, episodes, ago, n_steps, discount, total, end, factor)
        list_inputs(np.concatenate([seen[slots, episodes], seen[end, episodes]]), self._inputs)
        return Sample(
            self._inputs,
            mask[slots, episodes],
            mask[end, episodes],
            action[slots, episodes],
            total,
            factor,
        )

    def pack(self) -> dict[str, np.ndarray]:
        """Return what `restore` needs as arrays of a checkpoint, the oldest step first."""
        n, found = self._n_steps, {}
        for name, array in self.ring.items():
            found[name] = np.zeros((self._capacity + 1, *array.shape[1:]), array.dtype)
            # Nothing has come yet of what is seen now.
            last = n + (n > 0 and name in ("seen", "mask"))
            found[name][:last] = array[(self._now - n + np.arange(last)) % len(array)]
        return {**found, "counts": np.array([n, n], np.int64)}

    def restore(self, found: dict[str, np.ndarray]) -> None:
        """Take over what `pack` returned; a `CheckpointError` if there is no such action."""
        n_actions = self.ring["mask"].shape[2]
        if (found["action"] >= n_actions).any():
            raise CheckpointError(f"replay.action: expected actions below {n_actions}")
        now, n = found["counts"].tolist()
        n = self._now = self._n_steps = max(0, min(n, self._capacity))
        rows = (now - n + np.arange(n + 1)) % (self._capacity + 1)
        for name, own in self.ring.items():
            own[: n + 1] = found[name][rows]


class SAC(RivalAlgorithm):
    """Soft actor-critic with two critics and their targets."""

    settings_class: ClassVar[type[RivalSettings]] = OffPolicySettings

    def __init__(self, task: Task, settings: OffPolicySettings) -> None:
        super().__init__(task, settings)
        sizes = settings.capacity, settings.episodes, settings.batch
        self.memory: ReplayBuffer = ReplayBuffer(*sizes, task)
        self._batch = np.arange(settings.batch)
        self._next = self._batch + settings.batch
        n_rows = max(settings.batch, settings.episodes)
        self.actor, *pairs = (
            self.make_network(task.n_actions, n_rows, number) for number in (0, 1, 2, 1, 2)
        )
        self.critics, self.targets = pairs[:2], pairs[2:]

    @property
    def networks(self) -> dict[str, Perceptron]:
        """Actor, critics and targets."""
        names = ("actor", "critic1", "critic2", "target1", "target2")
        return dict(zip(names, [self.actor, *self.critics, *self.targets], strict=True))

    def update(self) -> None:
        """Learn from batches of what is remembered."""
        settings = self.settings
        while self._updates < self._count_due():
            uniforms = self.task.draw(BATCH, settings.batch, self._updates)
            self._updates += 1
            sample = self.memory.sample(uniforms, settings.n_steps, settings.discount)
            self.learn_values(sample, self.find_targets(sample))
            self.learn_policy(sample)
            for target, critic in zip(self.targets, self.critics, strict=True):
                blend(target.theta, critic.theta, settings.tau)

    def _count_due(self) -> int:
        settings = self.settings
        # Rounding must not take one away that is due.
        return int(self._rounds * settings.episodes * settings.updates_per_step + 1e-6)

    def find_targets(self, sample: Sample) -> np.ndarray:
        """Return y = R + factor * V(s'), V by the targets (Christodoulou, Eq. 3)."""
        logits = self.actor.forward(sample.inputs, self._next)
        q1, q2 = (target.forward(sample.inputs, self._next) for target in self.targets)
        value = np.empty(len(self._batch))
        find_soft_values(logits, sample.next_mask, q1, q2, self.settings.alpha, value)
        return sample.total + sample.factor * value

    def learn_values(self, sample: Sample, target: np.ndarray) -> None:
        """Take a step of both critics towards y, mean squared error."""
        for critic in self.critics:
            out = critic.forward(sample.inputs, self._batch)
            critic.delta[:] = 0.0
            square_errors(out, sample.action, self._batch, target, 1.0, critic.delta)
            critic.backward(sample.inputs, self._batch)
            critic.step(self.settings.critic_rate)

    def learn_policy(self, sample: Sample) -> None:
        """Take a step of the actor (Christodoulou, Eq. 12)."""
        actor = self.actor
        q1, q2 = (critic.forward(sample.inputs, self._batch) for critic in self.critics)
        logits = actor.forward(sample.inputs, self._batch)
        soften_policy(logits, sample.mask, q1, q2, self.settings.alpha, actor.delta)
        actor.backward(sample.inputs, self._batch)
        actor.step(self.settings.actor_rate)

    def pack(self) -> dict[str, Any]:
        """Return what `restore` needs, the replay buffer too."""
        return {**super().pack(), "replay": self.memory.pack()}

    def restore(self, found: dict[str, Any]) -> None:
        """Take over what `pack` returned."""
        super().restore(found)
        if self._updates != self._count_due():
            raise CheckpointError(
                f"learner.counts: read {self._updates} updates; expected {self._count_due()}"
            )
        self.memory.restore(found["replay"])


class LSAC(SAC):
    """Soft actor-critic whose reward is less a fixed Lagrangian multiplier times the cost.

    The paper refers to Tamar, Di Castro and Mannor (2012, arXiv:1206.6404), and does not give the multiplier.
    """

    settings_class = LagrangianSettings
