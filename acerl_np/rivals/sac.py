"""SAC: soft actor-critic for discrete, masked actions, with n-step returns and a fixed weight of the entropy.

Sources: Haarnoja et al. 2018 (arXiv:1801.01290), Christodoulou 2019 (arXiv:1910.07207).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from acerl_np.kernels.losses import find_soft_values, soften_policy, square_errors
from acerl_np.kernels.perceptron import blend, list_inputs
from acerl_np.policies.network import Policy
from acerl_np.rivals.episodes import Seen
from acerl_np.rivals.learner import Learner, Task
from acerl_np.rivals.networks import Perceptron
from acerl_np.rivals.replay import Replay, Sample
from acerl_np.rivals.settings import OffPolicySettings, Settings
from acerl_np.support.errors import CheckpointError


class SAC(Learner):
    """Soft actor-critic with two critics and their targets."""

    settings_class: ClassVar[type[Settings]] = OffPolicySettings

    def __init__(self, task: Task, settings: OffPolicySettings) -> None:
        super().__init__(task, settings)
        self.memory: Replay = Replay(settings.capacity, settings.episodes, settings.batch, task)
        self._zeros = np.zeros(settings.episodes, np.int64)
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

    def act(self, seen: Seen) -> np.ndarray:
        """Draw actions from the policy."""
        list_inputs(seen.observation, self._inputs)
        uniforms = self.task.draw_actions(len(self._every), self._rounds)
        return self.sample(self.actor, seen.mask, uniforms, self._zeros)

    def update(self) -> None:
        """Learn from batches of what is remembered."""
        settings = self.settings
        while self._updates < self._count_due():
            uniforms = self.task.draw_batch(settings.batch, self._updates)
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

    def make_policy(self, shape: dict[str, Any]) -> Policy:
        """Return the policy so far."""
        return Policy(self.actor.read_parameters(), **shape)

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
