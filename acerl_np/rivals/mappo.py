"""MAPPO: PPO of two agents with a central critic (Li et al. 2025; Yu et al. 2022, arXiv:2103.01955).

The first agent chooses the vehicle, the second, which is told the vehicle, the rule: it has four outputs for
each vehicle, of which those of the chosen one count. Both see what any policy sees, which is all there is;
so does the critic that values the situation for both.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from acerl_np.kernels.losses import clip_surrogate, find_logs, sample_actions, square_errors
from acerl_np.kernels.perceptron import list_inputs
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from acerl_np.rivals.episodes import Seen
from acerl_np.rivals.networks import Perceptron, number_seed
from acerl_np.rivals.ppo import PPO
from acerl_np.rivals.settings import AgentSettings, Settings


class MAPPO(PPO):
    """Two agents, one for the vehicle and one for the rule.

    Parameters
    ----------
    task : Task
    settings : AgentSettings
    """

    settings_class: ClassVar[type[Settings]] = AgentSettings

    def make_networks(self) -> None:
        """Begin with first parameters."""
        task, n = self.task, len(self.rollout.rows)
        inner = [task.n_features, *self.settings.hidden]
        self.agents = [
            self._make([*inner, task.n_vehicles], 0),
            self._make([*inner, task.n_actions], 1),
        ]
        self.critic = self._make([*inner, 1], 2)
        self._logs = [np.zeros(n), np.zeros(n)]

    def _make(self, sizes: list[int], number: int) -> Perceptron:
        seed = number_seed(self.task.seed, number)
        return Perceptron(sizes, n_rows=self.n_rows, seed=seed, start="orthogonal")

    def act(self, seen: Seen) -> np.ndarray:
        """Draw vehicles, and rules for them."""
        n, n_rules = len(self._every), self.task.n_rules
        list_inputs(seen.observation, self._inputs)
        uniforms = self.task.draw_actions(2 * n, self._rounds)
        by_vehicle = seen.mask.reshape(n, -1, n_rules)
        vehicle, rule = np.zeros((2, n), np.int64)
        logits = self.agents[0].forward(self._inputs, self._every)
        sample_actions(logits, self._zeros, by_vehicle.any(axis=2), uniforms[:n], vehicle)
        logits = self.agents[1].forward(self._inputs, self._every)
        mask = by_vehicle[self._every, vehicle]
        sample_actions(logits, vehicle * n_rules, mask, uniforms[n:], rule)
        return vehicle * n_rules + rule

    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the critic's values of some rows of the rollout."""
        return self.critic.forward(self.rollout.inputs, rows)[: len(rows), 0].astype(np.float64)

    def recall(self) -> None:
        """Find what each agent chose, from what, and how probable that was."""
        rollout, n_rules = self.rollout, self.task.n_rules
        vehicle, rule = np.divmod(rollout.action, n_rules)
        by_vehicle = rollout.mask.reshape(len(vehicle), -1, n_rules)
        self._choices = [
            (self._zeros, by_vehicle.any(axis=2), vehicle),
            (vehicle * n_rules, by_vehicle[rollout.rows, vehicle], rule),
        ]
        for agent, choice, log in zip(self.agents, self._choices, self._logs, strict=True):
            first_logit, mask, action = choice
            for first in range(0, len(vehicle), self.n_rows):
                rows = rollout.rows[first : first + self.n_rows]
                logits = agent.forward(rollout.inputs, rows)
                find_logs(logits, first_logit, mask, rows, action, log)

    def learn(self, rows: np.ndarray) -> None:
        """Take one step of gradient descent on a batch: each agent by its own ratio, and the critic."""
        rollout, settings = self.rollout, self.settings
        for agent, choice, log in zip(self.agents, self._choices, self._logs, strict=True):
            first, mask, action = choice
            clip_surrogate(
                agent.forward(rollout.inputs, rows),
                first,
                mask,
                rows,
                action,
                log,
                rollout.advantage,
                settings.clip,
                settings.entropy_factor,
                agent.delta,
            )
            agent.backward(rollout.inputs, rows)
            agent.step(settings.learning_rate, settings.max_norm)
        critic = self.critic
        out = critic.forward(rollout.inputs, rows)
        square_errors(out, self._zeros, rows, rollout.target, settings.value_factor, critic.delta)
        critic.backward(rollout.inputs, rows)
        critic.step(settings.learning_rate, settings.max_norm)

    def make_policy(self, shape: dict[str, Any]) -> AgentPair:
        """Return the policy so far."""
        n = self.task.n_actions
        return AgentPair(*(Policy(agent.read_parameters(n), **shape) for agent in self.agents))

    def list_networks(self) -> list[tuple[str, Perceptron]]:
        """Return the networks that learn, with their names in a checkpoint."""
        return [("vehicle", self.agents[0]), ("rule", self.agents[1]), ("critic", self.critic)]
