"""PPO, and what is made of it: MAPPO, of two agents, and RCPOM, with a limit; all with masked actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from acerl_np.kernels.core.random import ACTION, BATCH
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.network import Policy
from studies.rivals.episodes import Ended, Seen
from studies.rivals.learner import RivalAlgorithm, Task, reward_outcome
from studies.rivals.losses import clip_surrogate, find_advantages, find_logs, square_errors
from studies.rivals.networks import Perceptron
from studies.rivals.perceptron import allocate_inputs, list_inputs
from studies.rivals.settings import (
    AgentSettings,
    OnPolicySettings,
    RewardConstrainedSettings,
    RivalSettings,
)


def cut(rows: np.ndarray, n: int) -> list[np.ndarray]:
    """Return the rows in pieces of n, the last one of what is left."""
    return [rows[first : first + n] for first in range(0, len(rows), n)]


class Rollout:
    """T steps of B episodes; row t B + b is step t of episode b.

    The last B rows of the inputs are what is seen after the last step. `judge` finds the generalised
    advantages, and the targets, what the values should have been.
    """

    def __init__(self, n_steps: int, n_episodes: int, task: Task) -> None:
        self.n_steps, self.n_episodes = n_steps, n_episodes
        n = n_steps * n_episodes
        self.rows = np.arange(n)
        self._seen = np.zeros((n + n_episodes, task.n_features), np.float32)
        self.inputs = allocate_inputs(n + n_episodes, task.n_features)
        self.mask = np.zeros((n, task.n_actions), np.bool_)
        self.action = np.zeros(n, np.int64)
        self.reward = np.zeros((n_steps, n_episodes))
        self.over = np.zeros((n_steps, n_episodes), np.bool_)
        self.advantage = np.zeros(n)
        self.target = np.zeros(n)
        self._filled = 0

    def add(
        self, seen: Seen, actions: np.ndarray, reward: np.ndarray, over: np.ndarray, now: Seen
    ) -> None:
        """Append a step of all episodes."""
        t, b = self._filled % self.n_steps, self.n_episodes
        own, later = slice(t * b, (t + 1) * b), slice((t + 1) * b, (t + 2) * b)
        self._seen[own], self._seen[later] = seen.observation, now.observation
        self.mask[own], self.action[own] = seen.mask, actions
        self.reward[t], self.over[t] = reward, over
        self._filled = t + 1

    def judge(
        self, value_of: Callable[[np.ndarray], np.ndarray], n_rows: int, settings: Any
    ) -> None:
        """Compute advantages and targets of all steps, by the values of at most `n_rows` rows at a time."""
        list_inputs(self._seen, self.inputs)
        pieces = cut(np.arange(len(self._seen)), n_rows)
        value = np.concatenate([value_of(rows) for rows in pieces])
        values = value.reshape(self.n_steps + 1, self.n_episodes)
        advantage = self.advantage.reshape(self.reward.shape)
        own = self.reward, self.over, values, settings.discount, settings.decay
        find_advantages(*own, advantage)
        self.target[:] = self.advantage + value[: len(self.rows)]

    def deal(self, size: int, uniforms: np.ndarray) -> Iterator[np.ndarray]:
        """Return batches of rows, each row once, in the order of `uniforms` (float64 (T B,)).

        What is left at the end joins the last batch.
        """
        order = np.argsort(uniforms, kind="stable")
        n_batches = max(1, len(order) // size)
        for k in range(n_batches):
            yield order[k * size : (k + 1) * size if k < n_batches - 1 else None]


class PPO(RivalAlgorithm):
    """Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347), of one agent or several.

    One network of two heads: the logits of the actions, and the value as one more output.
    """

    settings_class: ClassVar[type[RivalSettings]] = OnPolicySettings

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
        self.actor = self.critic = self.make_network(self.head + 1, self.n_rows, 0, "orthogonal")
        self.agents = [self.actor]

    @property
    def networks(self) -> dict[str, Perceptron]:
        """The one network."""
        return {"network": self.actor}

    def value(self, rows: np.ndarray) -> np.ndarray:
        """Return the values of some rows of the rollout."""
        out = self.critic.forward(self.memory.inputs, rows)
        return out[: len(rows), self.head].astype(np.float64)

    def update(self) -> None:
        """Learn from the rollout, several times over."""
        rollout, settings = self.memory, self.settings
        rollout.judge(self.value, self.n_rows, settings)
        self.recall()
        for _ in range(settings.repeats):
            order = self.task.draw(BATCH, len(rollout.rows), self._updates)
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


class MAPPO(PPO):
    """PPO of two agents with a central critic (Li et al. 2025; Yu et al. 2022, arXiv:2103.01955).

    The first agent chooses the vehicle, the second, which is told the vehicle, the rule: it has four outputs
    for each vehicle, of which those of the chosen one count. Both see what any policy sees, which is all
    there is; so does the critic that values the situation for both.
    """

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


class RCPOM(PPO):
    """Reward-constrained policy optimisation with invariant reward shaping and masked actions.

    Sources: Tessler, Mankowitz and Mannor 2019 (arXiv:1805.11074); Hu et al. 2023, who add the shaping and
    the masks. The policy is PPO's. The reward is r - lambda c; after every update lambda follows the
    violation of the limit.

    Shaping adds gamma Phi(s') - Phi(s) (Ng, Harada and Russell 1999), which leaves the best policy unchanged.
    The authors' potential is not published. Here it is the queue, Phi(s) = -scale * waiting tasks / tasks of
    a record, that is the reward of the time that the fleet will need for them, and 0 when all is done. A
    policy that keeps the queue short is told so at its next decision, not at the end.
    """

    settings_class = RewardConstrainedSettings

    def __init__(self, task: Task, settings: RewardConstrainedSettings) -> None:
        super().__init__(task, settings)
        self._costs: list[float] = []

    def potential(self, seen: Seen) -> np.ndarray:
        """Return Phi of what is seen, ndarray(float64, (B,))."""
        return np.asarray(-self.settings.reward_scale * seen.waiting / self.task.n_tasks)

    def reward(self, seen: Seen, ended: Ended, now: Seen) -> np.ndarray:
        """Return the shaped reward less lambda times the cost."""
        self._costs += ended.cost[ended.over].tolist()
        reward, cost = reward_outcome(self.settings, self.task, ended)
        later = np.where(ended.over, 0.0, self.potential(now))
        shaping = self.settings.discount * later - self.potential(seen)
        return np.asarray(reward + shaping - self.multiplier * cost)

    def update(self) -> None:
        """Learn from the rollout, then move lambda, the slowest of all."""
        super().update()
        if self._costs:
            excess = float(np.mean(self._costs)) - self.settings.goal.cost_limit
            step = self.settings.multiplier_rate * excess
            self.multiplier = max(0.0, self.multiplier + step)
            self._costs = []

    def pack(self) -> dict[str, Any]:
        """Return what `restore` needs; between two updates no cost is waiting."""
        return {**super().pack(), "learner.multiplier": np.array([self.multiplier])}

    def restore(self, found: dict[str, Any]) -> None:
        """Take over what `pack` returned."""
        super().restore(found)
        self.multiplier = float(found["learner.multiplier"][0])
