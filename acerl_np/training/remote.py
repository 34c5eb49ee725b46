"""One training split over workers: ranges of members go out with the search's state, outcomes come back.

Neither noise nor a member's parameters of a network travel: a worker makes both from the state and the keys,
so any number and kind of workers gives the same bytes. The update is taken where the training runs.
"""

from __future__ import annotations

import hashlib
import threading
import time
import warnings
from collections import OrderedDict
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evolution.sampler import make_sampler
from acerl_np.evolution.search import Search
from acerl_np.kernels.state import Outcome, allocate_outcome
from acerl_np.kernels.update import Noise
from acerl_np.problem.bundled import load_instance
from acerl_np.problem.instance import Instance
from acerl_np.simulation.arena import check_outcome
from acerl_np.support.errors import WorkerError
from acerl_np.support.team import Team
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.forms import Form, make_form
from acerl_np.training.records import Dealt, TrainingRecords

KEPT = 4
"""Trainings whose tables a worker keeps."""

WORTH = 0.2
"""Seconds of a generation below which a split costs more than it gains (docs/scaling.md)."""

LOOKED_AT = 5
"""Generations after which that is said, once."""

AHEAD, LIGHT = 2, 400_000
"""Ranges for each worker, so that a quick one waits less for a slow one, and bytes of a search's state up to
which they are worth their way; else there is one."""


class World(NamedTuple):
    """What a worker needs once: the training records and the options."""

    instances: tuple[Instance, ...]
    config: Config


class Order(NamedTuple):
    """A range of members to play.

    Attributes
    ----------
    key : str
        Of the world.
    world : World or None
        None if the worker should have it.
    state : tuple
        Of the search: see `Form.describe`.
    noise : Noise
    drawn : ndarray(int64, (n,)) or None
        Training records that variants are drawn of, None if they are played as they are.
    rows : ndarray(int32, (population, K))
    members : tuple of int, (first, last + 1)
    """

    key: str
    world: World | None
    state: tuple[Any, ...]
    noise: Noise
    drawn: np.ndarray | None
    rows: np.ndarray
    members: tuple[int, int]


class Played(NamedTuple):
    """What a worker played.

    Attributes
    ----------
    key : str
        Of the world that it has.
    outcome : Outcome
    """

    key: str
    outcome: Outcome


def name_world(world: World) -> str:
    """Return the key of a world: a hash of its records and options."""
    hashes = [item.content_hash for item in world.instances]
    content = [hashes, sorted(world.config.to_dict().items())]
    return hashlib.sha256(repr(content).encode()).hexdigest()


class Place:
    """What a worker keeps of a training."""

    def __init__(self, world: World) -> None:
        self.key = name_world(world)
        instances = list(world.instances)
        self.form = make_form(instances, world.config, Workers(1))
        sampler = make_sampler("random", len(instances))
        self.records = TrainingRecords(self.form.problem, sampler, world.config)


class _Kept(threading.local):
    """The latest places; each thread has its own, as a place draws its records anew each generation."""

    def __init__(self) -> None:
        self.places: OrderedDict[str, Place] = OrderedDict()


_KEPT = _Kept()


def play_order(order: Order) -> Played | None:
    """Play a range of members; None if the world is not known here."""
    places = _KEPT.places
    place = places.get(order.key)
    if place is not None:
        places.move_to_end(order.key)
    else:
        if order.world is None:
            return None
        place = places[order.key] = Place(order.world)
        while len(places) > KEPT:
            places.popitem(last=False)
    rows = order.rows.astype(np.int64)
    dealt = place.records.repeat(order.drawn, rows, rows, order.noise)
    outcome = place.form.play_range(order.state, order.noise, dealt, order.members)
    return Played(place.key, outcome)


@cache
def play_test_member() -> str:
    """Return the hash of what two members are and play: another machine must have the same.

    One is of each form, so that their kernels are compiled with it.
    """
    instances = (load_instance("DMH-01"),)
    noise, rows = Noise(1, 0, 2, False), np.zeros((2, 1), np.int64)
    digest = hashlib.sha256()
    for config in (
        Config(population=2, hidden=(16,)),
        Config.preset("best", decisions=1, records_per_member=1),
    ):
        place = Place(World(instances, config))
        first = place.form.start(1)
        state = (first, 0.1) if config.form == "network" else (np.stack([first, first + 0.5]),)
        drawn = np.zeros(1, np.int64) if config.perturb else None
        dealt = place.records.repeat(drawn, rows, rows, noise)
        for entries in place.form.play_range(state, noise, dealt, (0, 2)):
            digest.update(np.ascontiguousarray(entries).tobytes())
    return digest.hexdigest()[:12]


class Split:
    """Plays generations on workers.

    Parameters
    ----------
    team : Team
    form : Form
    instances : sequence of Instance
    config : Config
    """

    def __init__(self, team: Team, form: Form, instances: list[Instance], config: Config) -> None:
        self.team = team
        self.form = form
        self._world = World(tuple(instances), config)
        self._key = name_world(self._world)
        self._is_new = True
        self._seconds: list[float] = []

    def play(self, search: Search[Any], noise: Noise, dealt: Dealt) -> Outcome:
        """Let every member play its records, as `Form.play`.

        Raises
        ------
        WorkerError
            If workers are lost too often, or compute something else.
        """
        started = time.perf_counter()
        outcome = self._play(search, noise, dealt)
        self._seconds.append(time.perf_counter() - started)
        # The first one starts the workers.
        if len(self._seconds) == LOOKED_AT and min(self._seconds[1:]) < WORTH:
            warnings.warn(
                f"a generation takes {min(self._seconds[1:]):.3f} s: below {WORTH} s its split over workers "
                "costs more than it gains; train without an executor, or several seeds at a time",
                RuntimeWarning,
                stacklevel=4,
            )
        return outcome

    def _play(self, search: Search[Any], noise: Noise, dealt: Dealt) -> Outcome:
        population, each = dealt.rows.shape
        ahead = AHEAD if search.mean.nbytes <= LIGHT else 1
        n_ranges = min(population // noise.group_size, ahead * self.team.n_workers)
        edges = [population * k // n_ranges for k in range(n_ranges + 1)]
        ranges = list(pairwise(edges))
        world = self._world if self._is_new else None
        rows = dealt.rows.astype(np.int32)
        pending = [
            Order(self._key, world, state, noise, dealt.drawn, rows, members)
            for state, members in zip(
                self.form.describe(search, noise, ranges), ranges, strict=True
            )
        ]
        self._is_new = False
        outcome = allocate_outcome(population * each)
        while pending:
            unknown = []
            for k, found in self.team.run(play_order, pending, test=play_test_member):
                order = pending[k]
                if found is None:
                    if order.world is not None:
                        raise WorkerError("a worker does not keep what it is sent")
                    unknown.append(order._replace(world=self._world))
                    continue
                first, last = order.members
                part_outcome = self._check(found, order, dealt, each)
                for whole, part in zip(outcome, part_outcome, strict=True):
                    whole[first * each : last * each] = part
            pending = unknown
        return outcome

    def _check(self, found: object, order: Order, dealt: Dealt, each: int) -> Outcome:
        """Return the outcome of a range, if it is one."""
        if not isinstance(found, Played) or found.key != order.key:
            raise WorkerError(
                "a worker has other records or options; expected those that it was sent"
            )

        def replay(episodes: np.ndarray) -> Outcome:
            own = self.form.play_range(order.state, order.noise, dealt, order.members)
            return Outcome(*(part[episodes] for part in own))

        first, last = order.members
        return check_outcome(found.outcome, (last - first) * each, replay)
