"""PPO: proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347), with masked actions.

One network of two heads: the logits of the actions, and the value as one more output.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from acerl_np.kernels.losses import clip_surrogate, find_logs, sample_actions, square_errors
from acerl_np.kernels.perceptron import allocate_inputs, list_inputs
from acerl_np.policies.network import Policy
from acerl_np.rivals.episodes import Ended, Seen
from acerl_np.rivals.learner import Task, reward_outcome
from acerl_np.rivals.networks import Perceptron
from acerl_np.rivals.rollout import Rollout, in_pieces
from acerl_np.rivals.settings import OnPolicySettings, Settings


class PPO:
    """Proximal policy optimisation.

    Parameters
    ----------
    task : Task
    settings : OnPolicySettings
    """

    settings_class: ClassVar[type[Settings]] = OnPolicySettings

    def __init__(self, task: Task, settings: OnPolicySettings) -> None:
        self.task, self.settings = task, settings
        self.interval = max(1, settings.collect // settings.episodes)
        self.rollout = Rollout(self.interval, settings.episodes, task)
        n = len(self.rollout.rows)
        self.n_rows = max(settings.episodes, min(n, 2 * settings.batch))
        self._inputs = allocate_inputs(settings.episodes, task.n_features)
        self._every = np.arange(settings.episodes)
        self._zeros = np.zeros(n, np.int64)  # where each row's logits begin
        self._log = np.zeros(n)
        self._rounds = 0
        self._batches = 0
        self.make_networks()

    def make_networks(self) -> None:
        """Begin with first parameters."""
        task, settings = self.task, self.settings
        sizes = [task.n_features, *settings.hidden, task.n_actions + 1]
        self.network = Perceptron(sizes, n_rows=self.n_rows, seed=task.seed, start="orthogonal")
        self._head = np.full(len(self.rollout.rows), task.n_actions)

    @property
    def multiplier(self) -> float:
        """Weight of the cost in the reward: none."""
        return 0.0

    def act(self, seen: Seen) -> np.ndarray:
        """Draw actions from the policy."""
        list_inputs(seen.observation, self._inputs)
        logits = self.network.forward(self._inputs, self._every)
        actions = np.zeros(len(self._every), np.int64)
        uniforms = self.task.draw_actions(len(actions), self._rounds)
        sample_actions(logits, self._zeros, seen.mask, uniforms, actions)
        return actions

    def remember(self, seen: Seen, actions: np.ndarray, ended: Ended, now: Seen) -> None:
        """Take in a step."""
        self._rounds += 1
        self.rollout.add(seen, actions, self.reward(seen, ended, now), ended.over, now)

    def reward(self, seen: Seen, ended: Ended, now: Seen) -> np.ndarray:
        """Return the reward of a step; the tardiness does not count."""
        return reward_outcome(self.settings, self.task, ended)[0]

    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of some rows of the rollout."""
        head = self.network.forward(self.rollout.inputs, rows)[: len(rows), self.task.n_actions]
        return head.astype(np.float64)

    def update(self) -> None:
        """Learn from the rollout, several times over."""
        rollout, settings = self.rollout, self.settings
        rollout.judge(in_pieces(self.value, self.n_rows), settings.discount, settings.decay)
        self.recall()
        for _ in range(settings.repeats):
            order = self.task.draw_batch(len(rollout.rows), self._batches)
            self._batches += 1
            for rows in rollout.deal(settings.batch, order):
                self.learn(rows)

    def recall(self) -> None:
        """Find how probable the actions were when they were taken."""
        rollout = self.rollout
        for first in range(0, len(rollout.rows), self.n_rows):
            rows = rollout.rows[first : first + self.n_rows]
            logits = self.network.forward(rollout.inputs, rows)
            find_logs(logits, self._zeros, rollout.mask, rows, rollout.action, self._log)

    def learn(self, rows: np.ndarray) -> None:
        """Take one step of gradient descent on a batch: Eq. 9, to be minimised."""
        rollout, settings, network = self.rollout, self.settings, self.network
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

    def make_policy(self, shape: dict[str, Any]) -> Policy:
        """Return the policy so far."""
        return Policy(self.network.read_parameters(self.task.n_actions), **shape)

    def pack(self) -> dict[str, Any]:
        """Return what `restore` needs; between two updates the rollout is empty."""
        counts = np.array([self._rounds, self._batches], np.int64)
        networks = {name: network.pack() for name, network in self.list_networks()}
        return {"learner": {"counts": counts}, **networks}

    def restore(self, found: dict[str, Any]) -> None:
        """Take over what `pack` returned."""
        self._rounds, self._batches = found["learner"]["counts"].tolist()
        for name, network in self.list_networks():
            network.restore(found[name])

    def list_networks(self) -> list[tuple[str, Perceptron]]:
        """Return the networks that learn, with their names in a checkpoint."""
        return [("network", self.network)]
