"""An index function in training: how it starts, plays and becomes a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acerl_np.evolution.search import Search
from acerl_np.kernels.core.random import ACTION
from acerl_np.kernels.core.state import Outcome, join_outcomes
from acerl_np.kernels.dispatching.deciders import derive_keys
from acerl_np.kernels.learning.update import Noise
from acerl_np.policies import index
from acerl_np.policies.general import find_set, make_general
from acerl_np.policies.origin import Origin
from acerl_np.problem.instance import Instance
from acerl_np.problem.tables import build_problem, set_commitment
from acerl_np.simulation.arena import play_list
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.records import AssignedRecords, Members, MemberSpec


class IndexParametrisation:
    """An index function: all members fit into one small table; the best pair is taken, nothing drawn."""

    def __init__(self, instances: Sequence[Instance], config: Config, workers: Workers) -> None:
        self.workers = workers
        self.problem = build_problem(instances, horizon=config.horizon, goal=config.goal)
        self.features = index.check_features(config.features or index.NAMES)
        self.n_parameters = len(self.features)
        self.how: dict[str, Any] = {"planned_breakdowns": config.planned_breakdowns}
        if config.commitment == "pickup":
            self.how |= {"commitment": "pickup", "max_changes": config.max_changes}
            self.problem = set_commitment(self.problem, "pickup", config.max_changes)
        if not isinstance(config.beyond, str):
            self.how["beyond"] = config.beyond
        if not isinstance(config.guard, str):
            self.how |= {"guard": config.guard, "relief": "shortest"}
        self.begins = find_set(instances, config.goal) if config.start == "general" else ""
        self.origin = Origin.of(instances, goal=config.goal)

    def start(self, seed: int) -> np.ndarray:
        """Return the first parameters, ndarray(float64, (n_parameters,))."""
        start = index.start_weights(self.features)
        if self.begins:
            general = make_general(self.begins)
            known = [self.features.index(name) for name in general.features]
            start[known] = general.theta
        return start

    def describe(self, search: Search[Any], ranges: Sequence[Members]) -> list[MemberSpec]:
        """Return the parameters of each range's members, ten each at most."""
        members = search.sample(search.noise())
        return [(members[first:last],) for first, last in ranges]

    def play(
        self, state: MemberSpec, noise: Noise, dealt: AssignedRecords, members: Members
    ) -> Outcome:
        """Let a range of members play their records, as `NetworkParametrisation`."""
        first, last = members
        n, each = last - first, dealt.rows.shape[1]
        keys = np.empty((each, 4), np.uint32)
        # All members of a record meet the same random breakdowns.
        derive_keys(noise.seed, ACTION, noise.generation, 0, keys)
        functions = index.build_index(state[0], self.features, self.how["planned_breakdowns"])
        make = index.seat_index(functions, self.features, dealt.problem, True)
        rows = dealt.rows[first:last]
        if not {*index.CHARGING} & {*self.features}:
            every, own = np.tile(keys, (n, 1)), np.repeat(np.arange(n), each)
            return play_list(dealt.problem, make, rows.ravel(), every, self.workers, rows=own)
        parts = []
        for k, theta in enumerate(state[0]):  # each member has batteries of its own
            problem = index.move_thresholds(dealt.problem, theta, self.features)
            own = np.full(each, k)
            parts.append(play_list(problem, make, rows[k], keys, self.workers, rows=own))
        return join_outcomes(parts)

    def make_policy(self, theta: np.ndarray) -> index.IndexPolicy:
        """Return the policy of these parameters."""
        return index.IndexPolicy(theta, features=self.features, **self.how, origin=self.origin)
