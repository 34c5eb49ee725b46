"""One training split over workers: ranges of members go out with the search's state, outcomes come back.

Neither noise nor a member's parameters of a network travel: a worker makes both from the state and the keys,
so any number and kind of workers gives the same bytes. The update is taken where the training runs.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evolution.search import Search
from acerl_np.evolution.sampler import make_sampler
from acerl_np.kernels.state import Outcome, allocate_outcome
from acerl_np.kernels.update import Noise
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import WorkerError
from acerl_np.support.team import Team
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.forms import Form, IndexForm, NetworkForm, make_form
from acerl_np.training.records import Dealt, TrainingRecords

KEPT = 4
"""Trainings whose tables a worker keeps."""

AHEAD = 2
"""Ranges for each worker, so that a quick one does not wait for a slow one."""


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
    search : Any
        What `Form.play` needs of the search: see `Form.describe`.
    noise : Noise
    drawn : ndarray(int64, (n,)) or None
        Training records that variants are drawn of, None if they are played as they are.
    rows : ndarray(int32, (population, K))
    first, last : int
        The members, `last` excluded.
    """

    key: str
    world: World | None
    search: Any
    noise: Noise
    drawn: np.ndarray | None
    rows: np.ndarray
    first: int
    last: int


class Place:
    """What a worker keeps of a training."""

    def __init__(self, world: World) -> None:
        instances = list(world.instances)
        self.form = make_form(instances, world.config, Workers(1))
        sampler = make_sampler("random", len(instances))
        self.records = TrainingRecords(self.form.problem, sampler, world.config)


_PLACES: OrderedDict[str, Place] = OrderedDict()


def play_order(order: Order) -> Outcome | None:
    """Play a range of members; None if the world is not known here."""
    place = _PLACES.get(order.key)
    if place is None:
        if order.world is None:
            return None
        place = _PLACES[order.key] = Place(order.world)
        while len(_PLACES) > KEPT:
            _PLACES.popitem(last=False)
    dealt = place.records.repeat(order.drawn, order.rows.astype(np.int64), order.noise)
    return place.form.play_range(order.search, order.noise, dealt, order.first, order.last)


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
        content = [[item.content_hash for item in instances], sorted(config.to_dict().items())]
        self._key = hashlib.sha256(repr(content).encode()).hexdigest()
        self._is_new = True

    def play(self, search: Search[Any], noise: Noise, dealt: Dealt) -> Outcome:
        """Let every member play its records, as `Form.play`.

        Raises
        ------
        WorkerError
            If workers are lost too often, or compute something else.
        """
        population, each = dealt.rows.shape
        n_ranges = min(population // noise.group_size, AHEAD * self.team.n_workers)
        edges = [population * k // n_ranges for k in range(n_ranges + 1)]
        orders = [
            Order(
                self._key,
                self._world if self._is_new else None,
                self.form.describe(search, noise, first, last),
                noise,
                dealt.drawn,
                dealt.rows.astype(np.int32),
                first,
                last,
            )
            for first, last in zip(edges, edges[1:], strict=False)
        ]
        self._is_new = False
        outcome = allocate_outcome(population * each)
        pending = orders
        while pending:
            unknown = []
            for k, found in self.team.run(play_order, pending):
                order = pending[k]
                if found is None:
                    if order.world is not None:
                        raise WorkerError("a worker does not keep what it is sent")
                    unknown.append(order._replace(world=self._world))
                    continue
                _check(found, (order.last - order.first) * each)
                for whole, part in zip(outcome, found, strict=True):
                    whole[order.first * each : order.last * each] = part
            pending = unknown
        return outcome


def _check(found: object, n: int) -> None:
    """Refuse what is no outcome of n episodes."""
    if not isinstance(found, Outcome) or any(len(part) != n for part in found):
        raise WorkerError(f"a worker returned no outcome of {n} episodes")
    ended = np.isfinite(found.makespan)
    usable = ended == np.isfinite(found.tardiness)
    if not usable.all() or (found.decisions < 0).any() or (found.makespan[ended] < 0.0).any():
        raise WorkerError("a worker returned outcomes that no episode has")
