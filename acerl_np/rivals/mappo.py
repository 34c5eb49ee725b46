"""MAPPO: PPO of two agents with a central critic (Li et al. 2025; Yu et al. 2022, arXiv:2103.01955).

The first agent chooses the vehicle, the second, which is told the vehicle, the rule: it has four outputs for
each vehicle, of which those of the chosen one count. Both see what any policy sees, which is all there is;
so does the critic that values the situation for both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acerl_np.kernels.losses import clip_surrogate, find_logs, square_errors
from acerl_np.kernels.perceptron import list_inputs
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from acerl_np.rivals.episodes import Seen
from acerl_np.rivals.networks import Perceptron
from acerl_np.rivals.ppo import PPO
from acerl_np.rivals.rollout import cut
from acerl_np.rivals.settings import AgentSettings


class MAPPO(PPO):
    """Two agents, one for the vehicle and one for the rule."""

    settings_class = AgentSettings

    def make_networks(self) -> None:
        """Begin with first parameters."""
        sizes = self.task.n_vehicles, self.task.n_actions, 1
        *self.agents, self.critic = (
            self.make_network(n_out, self.n_rows, number, "orthogonal")
            for number, n_out in enumerate(sizes)
        )
        self._logs = [self._log, self._log.copy()]

    @property
    def networks(self) -> dict[str, Perceptron]:
        """Both agents, and their critic."""
        return dict(zip(("vehicle", "rule", "critic"), [*self.agents, self.critic], strict=True))

    def act(self, seen: Seen) -> np.ndarray:
        """Draw vehicles, and rules for them."""
        n, n_rules = len(self._every), self.task.n_rules
        list_inputs(seen.observation, self._inputs)
        uniforms = self.task.draw_actions(2 * n, self._rounds)
        by_vehicle = seen.mask.reshape(n, -1, n_rules)
        any_rule = np.any(by_vehicle, axis=2)
        first = n_rules * self.sample(self.agents[0], any_rule, uniforms[:n], self._zeros)
        mask = by_vehicle[self._every, first // n_rules]
        return np.asarray(first + self.sample(self.agents[1], mask, uniforms[n:], first))

    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the critic's values of some rows of the rollout."""
        return self.critic.forward(self.memory.inputs, rows)[: len(rows), 0].astype(np.float64)

    def recall(self) -> None:
        """Find what each agent chose, from what, and how probable that was."""
        rollout, n_rules = self.memory, self.task.n_rules
        vehicle, rule = np.divmod(rollout.action, n_rules)
        by_vehicle = rollout.mask.reshape(len(vehicle), -1, n_rules)
        self._choices = [
            (self._zeros, by_vehicle.any(axis=2), vehicle),
            (vehicle * n_rules, by_vehicle[rollout.rows, vehicle], rule),
        ]
        for agent, choice, log in zip(self.agents, self._choices, self._logs, strict=True):
            first_logit, mask, action = choice
            for rows in cut(rollout.rows, self.n_rows):
                logits = agent.forward(rollout.inputs, rows)
                find_logs(logits, first_logit, mask, rows, action, log)

    def learn(self, rows: np.ndarray) -> None:
        """Take one step of gradient descent on a batch: each agent by its own ratio, and the critic."""
        rollout, settings, critic = self.memory, self.settings, self.critic
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
        out = critic.forward(rollout.inputs, rows)
        square_errors(out, self._zeros, rows, rollout.target, settings.value_factor, critic.delta)
        for network in self.networks.values():
            network.backward(rollout.inputs, rows)
            network.step(settings.learning_rate, settings.max_norm)

    def make_policy(self, shape: dict[str, Any]) -> AgentPair:
        """Return the policy so far."""
        n = self.task.n_actions
        return AgentPair(*(Policy(agent.read_parameters(n), **shape) for agent in self.agents))
