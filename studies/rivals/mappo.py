"""MAPPO: PPO of two agents with a central critic (Li et al. 2025; Yu et al. 2022, arXiv:2103.01955).

The first agent chooses the vehicle, the second, which is told the vehicle, the rule: it has four outputs for
each vehicle, of which those of the chosen one count. Both see what any policy sees, which is all there is;
so does the critic that values the situation for both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acerl_np.kernels.core.random import ACTION
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from studies.rivals.episodes import Seen
from studies.rivals.networks import Perceptron
from studies.rivals.perceptron import list_inputs
from studies.rivals.ppo import PPO
from studies.rivals.settings import AgentSettings


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
        self.head = 0

    @property
    def networks(self) -> dict[str, Perceptron]:
        """Both agents, and their critic."""
        return dict(zip(("vehicle", "rule", "critic"), [*self.agents, self.critic], strict=True))

    def act(self, seen: Seen) -> np.ndarray:
        """Draw vehicles, and rules for them."""
        n, n_rules = len(self._every), self.task.n_rules
        list_inputs(seen.observation, self._inputs)
        uniforms = self.task.draw(ACTION, 2 * n, self._rounds)
        by_vehicle = seen.mask.reshape(n, -1, n_rules)
        any_rule = np.any(by_vehicle, axis=2)
        first = n_rules * self.sample(self.agents[0], any_rule, uniforms[:n], self._zeros)
        mask = by_vehicle[self._every, first // n_rules]
        return np.asarray(first + self.sample(self.agents[1], mask, uniforms[n:], first))

    def list_choices(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return what each agent chose, from what."""
        rollout, n_rules = self.memory, self.task.n_rules
        vehicle, rule = np.divmod(rollout.action, n_rules)
        by_vehicle = rollout.mask.reshape(len(vehicle), -1, n_rules)
        return [
            (self._zeros, np.any(by_vehicle, axis=2), vehicle),
            (vehicle * n_rules, by_vehicle[rollout.rows, vehicle], rule),
        ]

    def make_policy(self, shape: dict[str, Any]) -> AgentPair:
        """Return the policy so far."""
        n = self.task.n_actions
        return AgentPair(*(Policy(agent.read_parameters(n), **shape) for agent in self.agents))
