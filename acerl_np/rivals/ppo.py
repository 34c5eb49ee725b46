"""PPO: proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347), with masked actions.

One network of two heads: the logits of the actions, and the value as one more output.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from acerl_np.kernels.losses import clip_surrogate, find_logs, square_errors
from acerl_np.kernels.perceptron import list_inputs
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from acerl_np.rivals.episodes import Seen
from acerl_np.rivals.learner import Learner, Task
from acerl_np.rivals.networks import Perceptron
from acerl_np.rivals.rollout import Rollout, cut
from acerl_np.rivals.settings import OnPolicySettings, Settings


class PPO(Learner):
    """Proximal policy optimisation."""

    settings_class: ClassVar[type[Settings]] = OnPolicySettings

    def __init__(self, task: Task, settings: OnPolicySettings) -> None:
        super().__init__(task, settings)
        self.interval = max(1, settings.collect // settings.episodes)
        self.memory: Rollout = Rollout(self.interval, settings.episodes, task)
        n = len(self.memory.rows)
        self.n_rows = max(settings.episodes, min(n, 2 * settings.batch))
        self._zeros = np.zeros(n, np.int64)  # where each row's logits begin
        self._log = np.zeros(n)
        self.make_networks()

    def make_networks(self) -> None:
        """Begin with first parameters."""
        n = self.task.n_actions
        self.network = self.make_network(n + 1, self.n_rows, start="orthogonal")
        self._head = np.full(len(self.memory.rows), n)

    @property
    def networks(self) -> dict[str, Perceptron]:
        """The one network."""
        return {"network": self.network}

    def act(self, seen: Seen) -> np.ndarray:
        """Draw actions from the policy."""
        list_inputs(seen.observation, self._inputs)
        uniforms = self.task.draw_actions(len(self._every), self._rounds)
        return self.sample(self.network, seen.mask, uniforms, self._zeros)

    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of some rows of the rollout."""
        head = self.network.forward(self.memory.inputs, rows)[: len(rows), self.task.n_actions]
        return head.astype(np.float64)

    def update(self) -> None:
        """Learn from the rollout, several times over."""
        rollout, settings = self.memory, self.settings
        rollout.judge(self.value, self.n_rows, settings.discount, settings.decay)
        self.recall()
        for _ in range(settings.repeats):
            order = self.task.draw_batch(len(rollout.rows), self._updates)
            self._updates += 1
            for rows in rollout.deal(settings.batch, order):
                self.learn(rows)

    def recall(self) -> None:
        """Find how probable the actions were when they were taken."""
        rollout = self.memory
        for rows in cut(rollout.rows, self.n_rows):
            logits = self.network.forward(rollout.inputs, rows)
            find_logs(logits, self._zeros, rollout.mask, rows, rollout.action, self._log)

    def learn(self, rows: np.ndarray) -> None:
        """Take one step of gradient descent on a batch: Eq. 9, to be minimised."""
        rollout, settings, network = self.memory, self.settings, self.network
        out = network.forward(rollout.inputs, rows)
        clip_surrogate(
            out,
            self._zeros,
            rollout.mask,
            rows,
            rollout.action,
            self._log,
            rollout.advantage,
            settings.clip,
            settings.entropy_factor,
            network.delta,
        )
        square_errors(out, self._head, rows, rollout.target, settings.value_factor, network.delta)
        network.backward(rollout.inputs, rows)
        network.step(settings.learning_rate, settings.max_norm)

    def make_policy(self, shape: dict[str, Any]) -> Policy | AgentPair:
        """Return the policy so far."""
        return Policy(self.network.read_parameters(self.task.n_actions), **shape)
