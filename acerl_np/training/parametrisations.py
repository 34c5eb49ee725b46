"""What is trained: the paper's network, or an index function; how each starts, plays and becomes a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from acerl_np.evolution import Strategy
from acerl_np.evolution.covariance import Covariance, DiagonalCovariance, FullCovariance
from acerl_np.evolution.distributions import MIN_SIGMA
from acerl_np.evolution.search import Search
from acerl_np.kernels.core.random import ACTION
from acerl_np.kernels.core.state import Outcome, join_outcomes
from acerl_np.kernels.dispatching.deciders import derive_keys
from acerl_np.kernels.learning.update import Noise
from acerl_np.kernels.networks.network import count_parameters, list_shapes, make_network
from acerl_np.policies import index
from acerl_np.policies.general import find_set, make_general
from acerl_np.policies.network import Policy, initial_parameters
from acerl_np.policies.origin import Origin
from acerl_np.problem import interface
from acerl_np.problem.instance import Instance, refuse_chains
from acerl_np.problem.tables import build_problem, count_actions, count_features, set_commitment
from acerl_np.simulation.arena import play_list, play_members
from acerl_np.support.errors import InputError
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.records import AssignedRecords

MAX_SPREAD = 1e15
"""Largest adapted sigma of a parameter: its members' scores stay finite as float32."""


Members: TypeAlias = tuple[int, int]
"""A range of members, first and last + 1."""
MemberSpec: TypeAlias = tuple[Any, ...]
"""What a parametrisation needs of a search to let a range of members play, as plain values."""


def describe_network(
    instances: Sequence[Instance], options: Any, *, biases: bool = True, standardise: bool = False
) -> dict[str, Any]:
    """Return what `Policy` takes beside its parameters, for the floors of these training records.

    `options` are a training's, of any algorithm: they have `hidden`, `slots`, `goal` and `rules`.
    """
    refuse_chains(instances)
    own = interface.find_slots(options.slots, instances)
    sizes = [instance.layout.task_slots for instance in instances]
    fleets = [len(instance.layout.vehicles) for instance in instances]
    return {
        "hidden": tuple(options.hidden),
        "task_slots": max(len(own.ids), *sizes),
        "n_vehicles": max(fleets),
        "scaling": interface.find_scaling(instances),
        "smallest": (min(sizes), min(fleets)),
        "has_biases": biases,
        "standardises": standardise,
        "origin": Origin.of(instances, goal=options.goal),
        "slots": own.kind,
        "task_ids": own.ids,
        "rules": options.rules,
    }


class NetworkParametrisation:
    """The paper's network: members are perturbed where they are played, `tile` of them side by side."""

    def __init__(
        self,
        instances: Sequence[Instance],
        config: Config,
        workers: Workers,
        tile: int | None = None,
    ) -> None:
        self.config, self.workers, self.tile = config, workers, tile
        shape = self._shape = describe_network(
            instances, config, biases=config.biases, standardise=config.standardise
        )
        slots = interface.Slots(shape["slots"], shape["task_ids"])
        self.problem = build_problem(
            instances,
            scaling=shape["scaling"],
            horizon=config.horizon,
            slots=slots,
            goal=config.goal,
        )
        n_vehicles = shape["n_vehicles"]
        n_features = count_features(shape["task_slots"], n_vehicles)
        self.sizes = [n_features, *config.hidden, count_actions(n_vehicles, config.rules)]
        self.n_parameters = count_parameters(self.sizes, config.biases)
        self.network = make_network(
            self.sizes, has_biases=config.biases, standardises=config.standardise
        )

    def start(self, seed: int) -> np.ndarray:
        """Return the first weights and biases, ndarray(float32, (n_parameters,))."""
        config = self.config
        return initial_parameters(
            self.sizes, seed, initialisation=config.initialisation, has_biases=config.biases
        )

    def describe(self, search: Search[Any], ranges: Sequence[Members]) -> list[MemberSpec]:
        """Return theta and sigma for each range: whoever plays a member perturbs it."""
        return [(search.mean, float(search.sigma))] * len(ranges)

    def play(
        self, state: MemberSpec, noise: Noise, dealt: AssignedRecords, members: Members
    ) -> Outcome:
        """Let a range of members play their records (Algorithm 1, lines 8 and 10): K entries of each."""
        theta, sigma = state
        own = dealt.problem, self.network, theta, sigma, noise, dealt.rows, self.workers
        rules = interface.number_rules(self.config.rules)
        rank = self.config.noise_rank or 0
        return play_members(*own, members=members, tile=self.tile, rules=rules, rank=rank)

    def make_policy(self, theta: np.ndarray) -> Policy:
        """Return the policy of these parameters."""
        return Policy(theta, **self._shape)


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


Parametrisation: TypeAlias = NetworkParametrisation | IndexParametrisation
"""How parameters are played; its `problem` are the training records as it sees them."""


def make_parametrisation(
    instances: Sequence[Instance], config: Config, workers: Workers, tile: int | None = None
) -> Parametrisation:
    """Return the parametrisation that the configuration names."""
    if config.form == "index":
        return IndexParametrisation(instances, config, workers)
    return NetworkParametrisation(instances, config, workers, tile)


def make_search(form: Parametrisation, config: Config, seed: int, workers: Workers) -> Search[Any]:
    """Return the search that the configuration names, at its start."""
    start = form.start(seed)
    options: dict[str, Any] = {
        "seed": seed,
        "population": config.population,
        "learning_rate": config.learning_rate,
        "antithetic": config.antithetic,
    }
    sigma, decay, every = config.noise_std, config.noise_decay, config.noise_decay_every
    if config.spread == "one":
        noise = {"noise_std": sigma, "noise_decay": decay, "noise_decay_every": every}
        if config.noise_rank is not None and isinstance(form, NetworkParametrisation):
            options |= {"noise_rank": config.noise_rank, "shapes": list_shapes(form.network)}
        return Strategy(start, **noise, **options, workers=workers)  # type: ignore[arg-type]
    first = np.full(start.size, sigma)
    limits = np.full(start.size, MIN_SIGMA), np.full(start.size, MAX_SPREAD)
    kind = FullCovariance if config.spread == "full" else DiagonalCovariance
    return Search(start, kind(first, decay, every, limits=limits), **options)


def restore_search(
    search: Search[Any], mean: np.ndarray, generation: int, own: dict[str, np.ndarray]
) -> None:
    """Set a search to a mean, a generation and what its distribution packed."""
    search.distribution = search.distribution.unpack(own)
    if isinstance(search.distribution, Covariance):
        state = search.distribution.state
        reached = search.distribution.sigma(generation), state.size_path, state.shape_path
        if max(np.abs(values).max() for values in reached) > MAX_SPREAD:
            raise InputError("spread: read values that no search reaches")
    search.mean, search.generation = mean, generation
