"""What is trained: the paper's network, or an index function; how each starts, plays and becomes a policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from acerl_np.evolution import Strategy
from acerl_np.evolution.covariance import DiagonalCovariance, FullCovariance
from acerl_np.evolution.search import Search
from acerl_np.evolution.spreads import MIN_SIGMA, OneSigma
from acerl_np.kernels.deciders import (
    Decider,
    derive_keys,
    make_index_decider,
    make_network_decider,
)
from acerl_np.kernels.network import count_parameters, make_network
from acerl_np.kernels.random import ACTION
from acerl_np.kernels.state import Outcome, Problem
from acerl_np.kernels.update import Noise
from acerl_np.policies.index import IndexPolicy, IndexShape, Knowledge
from acerl_np.policies.network import Policy, initial_parameters
from acerl_np.policies.origin import Origin
from acerl_np.problem.instance import Instance
from acerl_np.problem.scaling import find_scaling
from acerl_np.problem.slots import SlotKind, find_slots
from acerl_np.problem.tables import build_problem, count_actions, count_features
from acerl_np.simulation.arena import play_list, play_members
from acerl_np.support.errors import InputError
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.records import Dealt

MAX_SPREAD = 1e15
"""Largest adapted sigma of a parameter: its members' scores stay finite as float32, of hidden units, too."""


class Form(ABC):
    """How parameters are played.

    Attributes
    ----------
    problem : Problem
        The training records as this form sees them.
    workers : Workers
    """

    problem: Problem
    workers: Workers

    @abstractmethod
    def start(self, seed: int) -> np.ndarray:
        """Return the first parameters, (n_parameters,)."""

    @abstractmethod
    def describe(
        self, search: Search[Any], noise: Noise, ranges: Sequence[tuple[int, int]]
    ) -> list[tuple[Any, ...]]:
        """Return what `play_range` needs of the search for each range of members, as plain values."""

    @abstractmethod
    def play_range(
        self, state: tuple[Any, ...], noise: Noise, dealt: Dealt, members: tuple[int, int]
    ) -> Outcome:
        """Let a range of members play their records: K entries of each, member by member."""

    @abstractmethod
    def make_decider(self, thetas: np.ndarray, problem: Problem) -> Decider:
        """Return the decider that follows functions, one per row of `thetas`, on instances of a problem."""

    @abstractmethod
    def make_policy(self, theta: np.ndarray) -> Policy | IndexPolicy:
        """Return the policy of these parameters."""

    def play(self, search: Search[Any], noise: Noise, dealt: Dealt) -> Outcome:
        """Let every member play its records (Algorithm 1, lines 6, 8 and 10), member by member."""
        every = (0, noise.population)
        [state] = self.describe(search, noise, [every])
        return self.play_range(state, noise, dealt, every)

    def look(self, theta: np.ndarray, instances: np.ndarray, keys: np.ndarray) -> Outcome:
        """Let one policy play a list of episodes on the training records; networks sample."""
        own = theta[np.newaxis]
        return play_list(
            self.problem,
            lambda: self.make_decider(own, self.problem),
            instances,
            keys,
            self.workers,
        )


def find_layer_sizes(
    instances: Sequence[Instance], hidden: Sequence[int], slots: SlotKind = "task"
) -> list[int]:
    """Return the layer sizes of a network for the largest of these instances' floors."""
    n_ids = len(find_slots(slots, instances).ids)
    seen = max(n_ids, *(instance.layout.task_slots for instance in instances))
    fleet = max(len(instance.layout.vehicles) for instance in instances)
    return [count_features(seen, fleet), *hidden, count_actions(fleet)]


def describe_network(
    instances: Sequence[Instance],
    hidden: Sequence[int],
    *,
    biases: bool = True,
    standardise: bool = False,
    slots: SlotKind = "task",
) -> dict[str, Any]:
    """Return what `Policy` takes beside its parameters, for the floors of these training records.

    Parameters
    ----------
    instances : sequence of Instance
    hidden : sequence of int
    biases, standardise : bool
    slots : str
        As `Config`.
    """
    own = find_slots(slots, instances)
    sizes = [instance.layout.task_slots for instance in instances]
    fleets = [len(instance.layout.vehicles) for instance in instances]
    return {
        "hidden": tuple(hidden),
        "task_slots": max(len(own.ids), *sizes),
        "n_vehicles": max(fleets),
        "scaling": find_scaling(instances),
        "smallest": (min(sizes), min(fleets)),
        "has_biases": biases,
        "standardises": standardise,
        "origin": Origin.of(instances),
        "slots": own.kind,
        "task_ids": own.ids,
    }


class NetworkForm(Form):
    """The paper's network: members are perturbed where they are played.

    Parameters
    ----------
    instances : sequence of Instance
        The training records.
    config : Config
    workers : Workers
    tile : int, optional
        Members that a worker plays side by side; no result depends on it.
    """

    def __init__(
        self,
        instances: Sequence[Instance],
        config: Config,
        workers: Workers,
        tile: int | None = None,
    ) -> None:
        self.config = config
        self.workers = workers
        scaling = find_scaling(instances) if instances else None
        own = find_slots(config.slots, instances)
        self.problem = build_problem(instances, scaling=scaling, horizon=config.horizon, slots=own)
        self.sizes = find_layer_sizes(instances, config.hidden, config.slots)
        self._shape = describe_network(
            instances,
            config.hidden,
            biases=config.biases,
            standardise=config.standardise,
            slots=config.slots,
        )
        self.network = make_network(
            self.sizes, has_biases=config.biases, standardises=config.standardise
        )
        self.tile = tile

    def start(self, seed: int) -> np.ndarray:
        """Return the first weights and biases, ndarray(float32, (n_parameters,))."""
        return initial_parameters(
            self.sizes,
            seed,
            initialisation=self.config.initialisation,
            has_biases=self.config.biases,
        )

    def describe(
        self, search: Search[Any], noise: Noise, ranges: Sequence[tuple[int, int]]
    ) -> list[tuple[Any, ...]]:
        """Return theta and sigma: whoever plays a member perturbs it."""
        return [(search.mean, float(search.sigma)) for _ in ranges]

    def play_range(
        self, state: tuple[Any, ...], noise: Noise, dealt: Dealt, members: tuple[int, int]
    ) -> Outcome:
        """Let a range of members play their records."""
        theta, sigma = state
        own = dealt.problem, self.network, theta, sigma, noise, dealt.rows, self.workers
        return play_members(*own, members=members, tile=self.tile)

    def make_decider(self, thetas: np.ndarray, problem: Problem) -> Decider:
        """Return the decider that follows networks; actions are sampled."""
        return make_network_decider(self.network, thetas, False)

    def make_policy(self, theta: np.ndarray) -> Policy:
        """Return the policy of these parameters."""
        return Policy(theta, **self._shape)


class IndexForm(Form):
    """An index function: all members fit into one small table; the best pair is taken, nothing drawn.

    Parameters
    ----------
    instances : sequence of Instance
        The training records.
    config : Config
    workers : Workers
    """

    def __init__(self, instances: Sequence[Instance], config: Config, workers: Workers) -> None:
        self.workers = workers
        self.problem = build_problem(instances, horizon=config.horizon)
        self.shape = find_index_shape(instances, config)
        self.origin = Origin.of(instances)

    def start(self, seed: int) -> np.ndarray:
        """Return the first parameters, ndarray(float64, (n_parameters,))."""
        return self.shape.start(seed)

    def describe(
        self, search: Search[Any], noise: Noise, ranges: Sequence[tuple[int, int]]
    ) -> list[tuple[Any, ...]]:
        """Return the members' parameters, some twenty each."""
        members = search.place(noise)
        return [(members[first:last],) for first, last in ranges]

    def play_range(
        self, state: tuple[Any, ...], noise: Noise, dealt: Dealt, members: tuple[int, int]
    ) -> Outcome:
        """Let a range of members play their records."""
        first, last = members
        n, each = last - first, dealt.rows.shape[1]
        keys = np.empty((each, 4), np.uint32)
        # All members of a record meet the same random breakdowns.
        derive_keys(noise.seed, ACTION, noise.generation, 0, keys)
        return play_list(
            dealt.problem,
            lambda: self.make_decider(state[0], dealt.problem),
            dealt.rows[first:last].ravel(),
            np.tile(keys, (n, 1)),
            self.workers,
            rows=np.repeat(np.arange(n), each),
        )

    def make_decider(self, thetas: np.ndarray, problem: Problem) -> Decider:
        """Return the decider that follows index functions; the best pair is taken."""
        return make_index_decider(self.shape.build(thetas), problem, True)

    def make_policy(self, theta: np.ndarray) -> IndexPolicy:
        """Return the policy of these parameters."""
        return IndexPolicy(
            theta,
            hidden=self.shape.hidden,
            knowledge=self.shape.knowledge,
            vehicles=self.shape.vehicles,
            without=self.shape.without,
            origin=self.origin,
        )


def find_index_shape(instances: Sequence[Instance], config: Config) -> IndexShape:
    """Return what index policies trained on these records look at.

    Planned breakdowns are looked at if a layout lists any, unless the configuration says otherwise.
    """
    knowledge: tuple[Knowledge, ...]
    if config.knowledge is not None:
        knowledge = config.knowledge  # type: ignore[assignment]
    else:
        lists_any = any(
            vehicle.breakdowns for instance in instances for vehicle in instance.layout.vehicles
        )
        knowledge = ("breakdowns",) if lists_any else ()
    fleets = [tuple(vehicle.id for vehicle in item.layout.vehicles) for item in instances]
    names = max(fleets, key=len, default=()) if "vehicles" in knowledge else ()
    return IndexShape(knowledge, sum(config.hidden), names, config.without)


def make_form(
    instances: Sequence[Instance], config: Config, workers: Workers, tile: int | None = None
) -> NetworkForm | IndexForm:
    """Return the form that the configuration names."""
    if config.form == "index":
        return IndexForm(instances, config, workers)
    return NetworkForm(instances, config, workers, tile)


def make_search(start: np.ndarray, config: Config, seed: int, workers: Workers) -> Search[Any]:
    """Return the search that the configuration names, at its start."""
    if config.form == "network":
        return Strategy(
            start,
            seed=seed,
            population=config.population,
            learning_rate=config.learning_rate,
            noise_std=config.noise_std,
            noise_decay=config.noise_decay,
            noise_decay_every=config.noise_decay_every,
            antithetic=config.antithetic,
            workers=workers,
        )
    decay = config.noise_decay, config.noise_decay_every
    first = np.full(start.size, config.noise_std)
    limits = np.full(start.size, MIN_SIGMA), np.full(start.size, MAX_SPREAD)
    spread: OneSigma | FullCovariance | DiagonalCovariance
    if config.spread == "one":
        spread = OneSigma(config.noise_std, *decay, workers)
        start = start.astype(np.float32)
    elif config.spread == "full":
        spread = FullCovariance(first, *decay, limits=limits)
    else:
        spread = DiagonalCovariance(first, *decay, limits=limits)
    return Search(
        start,
        spread,
        seed=seed,
        population=config.population,
        learning_rate=config.learning_rate,
        antithetic=config.antithetic,
    )


def pack_search(search: Search[Any]) -> dict[str, np.ndarray]:
    """Return what a search has adapted as arrays of a checkpoint, beside its mean."""
    return {} if isinstance(search.spread, OneSigma) else search.spread.pack()


def restore_search(
    search: Search[Any], mean: np.ndarray, generation: int, own: dict[str, np.ndarray]
) -> None:
    """Set a search to a mean, a generation and what `pack_search` returned.

    Raises
    ------
    InputError
        If no search reaches these arrays.
    """
    if not isinstance(search.spread, OneSigma):
        search.spread = search.spread.unpack(own)
        reached = search.spread.sigma(generation), own["size_path"], own["shape_path"]
        if max(np.abs(values).max() for values in reached) > MAX_SPREAD:
            raise InputError("spread: read values that no search reaches")
    search.mean = mean
    search.generation = generation


def count_form_parameters(instances: Sequence[Instance], config: Config) -> int:
    """Return the number of parameters of the form, before anything is allocated for it."""
    if config.form == "index":
        return find_index_shape(instances, config).n_parameters
    sizes = find_layer_sizes(instances, config.hidden, config.slots)
    return count_parameters(sizes, config.biases)
