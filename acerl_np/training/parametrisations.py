"""What is trained: how the paper's network starts, plays and becomes a policy; the search of either form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from acerl_np.evolution import Strategy
from acerl_np.evolution.covariance import DiagonalCovariance, FullCovariance
from acerl_np.evolution.scaled import MIN_SIGMA
from acerl_np.evolution.search import Search
from acerl_np.kernels.core.state import Outcome
from acerl_np.kernels.learning.update import Noise
from acerl_np.kernels.networks.network import count_parameters, list_shapes, make_network
from acerl_np.policies.network import Policy, initial_parameters
from acerl_np.policies.origin import Origin
from acerl_np.problem import interface
from acerl_np.problem.instance import Instance, refuse_chains
from acerl_np.problem.tables import build_problem, count_actions, count_features
from acerl_np.simulation.arena import play_members
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.index_form import IndexParametrisation
from acerl_np.training.records import AssignedRecords, Members, MemberSpec

MAX_SPREAD = 1e15
"""Largest adapted sigma of a parameter: its members' scores stay finite as float32."""


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
