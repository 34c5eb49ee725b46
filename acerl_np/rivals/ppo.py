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
    """Proximal policy optimisation, of one agent or several."""

    settings_class: ClassVar[type[Settings]] = OnPolicySettings

    def __init__(self, task: Task, settings: OnPolicySettings) -> None:
        super().__init__(task, settings)
        self.interval = max(1, settings.collect // settings.episodes)
        self.memory: Rollout = Rollout(self.interval, settings.episodes, task)
        n = len(self.memory.rows)
        self.n_rows = max(settings.episodes, min(n, 2 * settings.batch))
        self._zeros = np.zeros(n, np.int64)  # where each row's logits begin
        self.make_networks()
        self._heads = np.full(n, self.head)
        self._logs = [np.zeros(n) for _ in self.agents]

    def make_networks(self) -> None:
        """Begin with first parameters: of those who act, and of the critic and its output, the value."""
        self.head = self.task.n_actions
        self.critic = self.make_network(self.head + 1, self.n_rows, start="orthogonal")
        self.agents = [self.critic]

    @property
    def networks(self) -> dict[str, Perceptron]:
        """The one network."""
        return {"network": self.critic}

    def act(self, seen: Seen) -> np.ndarray:
        """Draw actions from the policy."""
        list_inputs(seen.observation, self._inputs)
        uniforms = self.task.draw_actions(len(self._every), self._rounds)
        return self.sample(self.critic, seen.mask, uniforms, self._zeros)

    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of some rows of the rollout."""
        out = self.critic.forward(self.memory.inputs, rows)
        return out[: len(rows), self.head].astype(np.float64)

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

    def list_choices(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return what each agent chose in each row: where its logits begin, their mask, and its choice."""
        return [(self._zeros, self.memory.mask, self.memory.action)]

    def recall(self) -> None:
        """Find how probable the choices were when they were made."""
        rollout, self._choices = self.memory, self.list_choices()
        for agent, choice, log in zip(self.agents, self._choices, self._logs, strict=True):
            first, mask, action = choice
            for rows in cut(rollout.rows, self.n_rows):
                logits = agent.forward(rollout.inputs, rows)
                find_logs(logits, first, mask, rows, action, log)

    def learn(self, rows: np.ndarray) -> None:
        """Take one step of gradient descent on a batch: Eq. 9, to be minimised."""
        rollout, settings, critic = self.memory, self.settings, self.critic
        factors = settings.clip, settings.entropy_factor
        for agent, choice, log in zip(self.agents, self._choices, self._logs, strict=True):
            first, mask, action = choice
            logits = agent.forward(rollout.inputs, rows)
            own = rows, action, log, rollout.advantage
            clip_surrogate(logits, first, mask, *own, *factors, agent.delta)
        out = critic.out if critic in self.agents else critic.forward(rollout.inputs, rows)
        square_errors(out, self._heads, rows, rollout.target, settings.value_factor, critic.delta)
        for network in self.networks.values():
            network.backward(rollout.inputs, rows)
            network.step(settings.learning_rate, settings.max_norm)

    def make_policy(self, shape: dict[str, Any]) -> Policy | AgentPair:
        """Return the policy so far."""
        return Policy(self.critic.read_parameters(self.task.n_actions), **shape)
