"""Two networks that decide together: one chooses the vehicle, the other the rule for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core.state import Problem
from acerl_np.kernels.dispatching.deciders import AgentsDecider
from acerl_np.policies.files import Places, Prepared
from acerl_np.policies.network import Policy
from acerl_np.policies.origin import Origin
from acerl_np.support.errors import PolicyError


class AgentPair(Policy):
    """A policy of two agents: what `Policy` is, but the vehicle is chosen by a network of its own.

    Parameters
    ----------
    vehicle : Policy, its first n_vehicles outputs are the vehicles', the others are never read
    rule : Policy
        Of its outputs, those of the chosen vehicle's actions are read. Its sizes, its floor and its origin
        are the pair's.

    Raises
    ------
    PolicyError
        If the two differ in size or in how they see the floor.
    """

    form: ClassVar[str] = "agents"
    kinds: ClassVar[Mapping[str, tuple[str, int]]] = {**Policy.kinds, "vehicle_theta": ("f", 1)}

    def __init__(self, vehicle: Policy, rule: Policy) -> None:
        super().__init__(rule.theta, **rule.options, origin=rule.origin)
        own, other = vehicle.options, rule.options
        if any(not np.array_equal(own[name], other[name]) for name in other):
            raise PolicyError("agents: two networks of different sizes; expected equal ones")
        self.vehicle = vehicle
        self.rule = rule

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases of both networks."""
        return 2 * len(self.theta)

    def __repr__(self) -> str:
        layers = "-".join(map(str, self.sizes))
        return f"AgentPair(2 of {layers}, {self.n_parameters:,} parameters)"

    def act(
        self,
        observation: ArrayLike,
        action_mask: ArrayLike,
        *,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Choose one action per row.

        Parameters
        ----------
        observation, action_mask, rng
            As of `Policy.act`.

        Returns
        -------
        ndarray(int64, (B,))
        """
        mask = np.atleast_2d(np.asarray(action_mask, np.bool_))
        if mask.ndim != 2 or mask.shape[1] != self.n_actions:
            return self.rule.act(observation, action_mask)  # which says what is wrong
        by_vehicle = mask.reshape(len(mask), -1, len(self.rules))
        vehicles = np.zeros_like(mask)
        vehicles[:, : self.n_vehicles] = by_vehicle.any(axis=2)
        chosen = self.vehicle.act(observation, vehicles, rng=rng)
        own = np.zeros_like(by_vehicle)
        rows = np.arange(len(mask))
        own[rows, chosen] = by_vehicle[rows, chosen]
        return self.rule.act(observation, own.reshape(mask.shape), rng=rng)

    def _prepare(self, problem: Problem, places: Places, greedy: bool) -> Prepared:
        fitted = super()._prepare(problem, places, greedy)[0]
        thetas = np.stack([self.vehicle.theta, self.rule.theta])
        return fitted, lambda: AgentsDecider(self._make_decider(thetas, greedy))

    def _pack(self) -> dict[str, np.ndarray]:
        return {**super()._pack(), "vehicle_theta": self.vehicle.theta}

    @classmethod
    def _unpack(cls, arrays: Mapping[str, np.ndarray], origin: Origin | None) -> Self:
        own = {**arrays, "theta": arrays["vehicle_theta"]}
        return cls(Policy._unpack(own, origin), Policy._unpack(arrays, origin))
