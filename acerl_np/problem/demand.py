"""More or less demand than a record has: shifts that are drawn from the record's own flows."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from acerl_np.kernels.core.random import GENERATION, draw_uniform, make_key
from acerl_np.problem.instance import COLUMNS, Instance, make_instance, number_hash
from acerl_np.problem.json_tree import hash_json
from acerl_np.problem.limits import MAX_TASKS
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Field, Whole, check_seed

DEMAND = Field(float, 0.01, 100.0)

BURST = 0.5
"""Share of a pickup's mean gap between arrivals up to which two tasks from there belong together."""

REACH, KNOT = 1800.0, 600.0
"""Seconds, in the mean, that a burst is moved at the most, and between two moments of the record's clock."""

DemandBy = Literal["records", "takt"]

TAKT, LEAST_IN_TAKT = 0.1, 10
"""How far the middle half of a pair's gaps is from their median at most, as a share; and least tasks."""

GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Steps of this length on a circle stay evenly spread, however many there are."""


def find_bursts(record: Instance) -> list[np.ndarray]:
    """Return the tasks of a record in bursts, by their first arrivals: ascending positions, int64 (n,) each.

    Tasks from one pickup belong together where the gap between them is at most half of the mean gap there:
    the loads of a lorry do. So do tasks to one delivery that arrive at the same moment: the parts of a kit.
    Of a chain this is asked of its first task alone; all of it belongs together.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    arrival, n = record.arrival, record.n_tasks
    pairs = np.column_stack([np.arange(n), record.root])[record.after >= 0].tolist()
    for ends, share in ((record.pickup, BURST), (record.delivery, 0.0)):
        for site in np.unique(ends):
            tasks = np.flatnonzero((ends == site) & (record.after < 0))
            gaps = np.diff(arrival[tasks])
            near = gaps <= share * gaps.sum() / max(1, len(gaps))
            pairs += np.column_stack([tasks[:-1], tasks[1:]])[near].tolist()
    a, b = np.array(pairs, np.int64).reshape(-1, 2).T
    links = coo_array((np.ones(len(a)), (a, b)), (n, n))
    _, burst = connected_components(links, directed=False)
    order = np.argsort(burst, kind="stable")
    _, first = np.unique(burst[order], return_index=True)
    return sorted(np.split(order, first[1:]), key=lambda tasks: int(tasks[0]))


def find_takts(record: Instance) -> list[np.ndarray]:
    """Return the tasks of each pair of sites that has a takt: ascending positions, int64 (n,) each.

    The middle half of the gaps between its tasks lies within a tenth of their median, and it has at least
    ten. Tasks of chains have none.
    """
    found = []
    if record.is_plain:
        pairs = np.column_stack([record.pickup, record.delivery])
        for pair in np.unique(pairs, axis=0):
            tasks = np.flatnonzero((pairs == pair).all(axis=1))
            if len(tasks) >= LEAST_IN_TAKT:
                low, median, high = np.quantile(np.diff(record.arrival[tasks]), [0.25, 0.5, 0.75])
                if median > 0.0 and max(high - median, median - low) <= TAKT * median:
                    found.append(tasks)
    return found


def draw_shift(
    record: Instance, demand: float, *, by: DemandBy = "records", seed: Whole = 0
) -> Instance:
    """Draw a shift of `demand` times the tasks of a record, from the record's own flows.

    What is drawn are bursts (`find_bursts`), whole ones: the gaps in them, their sites, due times, handling
    times, demands and priorities stay. Of the bursts from each pickup the share `demand` is drawn, to within
    one: below 1 some are left out, above 1 some come once more, at random. More demand has all of what less
    has, so shifts of one record and seed differ in as few tasks as can be. At 1 it is the record itself.

    A burst that comes once more is moved, by up to half an hour of the record's clock, which runs as fast as
    bursts arrive: through a break in no time, and hardly while a wave is released. So the hours keep their
    share, breaks stay, and waves grow. Bursts from one pickup are moved each by itself: what comes once more
    is as irregular as a second source beside the first.

    Parameters
    ----------
    record : Instance
    demand : float
        0.01 to 100.
    by : {"records", "takt"}
        What more demand means for a pair of sites with a takt (`find_takts`): tasks come once more, as of all
        others; or its takt is so many times as fast, with breaks where the record has them.
    seed : int
        Draws are keyed by it and by the record's tasks; the fleet has no part in them.

    Returns
    -------
    Instance
        Sorted by arrival. A task that comes once more has the number of its copy behind its id: "t5 (2)".

    Raises
    ------
    InputError
        If the demand is out of range, or no task or too many are left.

    Examples
    --------
    >>> import acerl_np
    >>> from acerl_np.problem.demand import draw_shift
    >>> shift = acerl_np.generate_shift(acerl_np.load_layout("supply-loop"), scale=0.5, seed=1)
    >>> [round(draw_shift(shift, x).n_tasks / shift.n_tasks, 1) for x in (0.8, 1.0, 1.4)]
    [0.8, 1.0, 1.4]
    """
    demand = DEMAND.read("demand", demand, InputError)
    seed = check_seed(seed)
    if demand == 1.0:
        return record
    if demand * record.n_tasks > MAX_TASKS:
        raise InputError(
            f"{record.name}: demand {demand:g} of {record.n_tasks} tasks; expected at most {MAX_TASKS:,} "
            "tasks"
        )
    takts = find_takts(record) if by == "takt" else []
    apart = np.concatenate(takts) if takts else np.empty(0, np.int64)
    # A task with a takt may share a burst with others: it leaves it.
    bursts = [
        rest for burst in find_bursts(record) if len(rest := burst[~np.isin(burst, apart)]) > 0
    ]
    key = make_key(seed, GENERATION, number_hash(hash_json(record.rows())))
    starts = record.arrival[record.root[[tasks[0] for tasks in bursts]]]
    span, last = float(np.ptp(starts)) if bursts else 0.0, len(bursts) - 1
    reach = min(1.0, REACH / span) * last if span > 0.0 else 0.0
    knots = np.unique(np.linspace(0, last, 1 + math.ceil(span / KNOT)).astype(int))
    is_whole = bool((record.arrival % 1.0 == 0.0).all())
    # Tasks, arrivals, numbers of copies.
    drawn = list[tuple[np.ndarray, np.ndarray, np.ndarray]]()
    for tasks in takts:
        which, moments = _speed_up(record.arrival[tasks], demand)
        copies = np.arange(len(which)) - np.searchsorted(which, which)
        drawn.append((tasks[which], np.floor(moments) if is_whole else moments, copies))
    for k, place in enumerate(_rank_bursts(record, bursts, key)):
        for copy in range(math.ceil(demand - place)):
            moved = 0.0
            if copy:
                to = k + (2.0 * draw_uniform(key, k, copy) - 1.0) * reach
                to = abs(last - abs(last - to))  # back from the ends
                moved = float(np.interp(to, knots, starts[knots])) - starts[k]
                moved = math.floor(moved) if is_whole else moved
            moments = np.maximum(0.0, record.arrival[bursts[k]] + moved)
            drawn.append((bursts[k], moments, np.full(len(moments), copy)))
    if not drawn:
        raise InputError(f"{record.name}: demand {demand:g} leaves no task; expected more")
    rows, arrivals, numbers = map(np.concatenate, zip(*drawn, strict=True))

    def name(tasks: np.ndarray) -> list[str]:
        marks = [f" ({copy + 1})" if copy else "" for copy in numbers]
        both = zip(tasks.tolist(), marks, strict=True)
        return ["" if k < 0 else f"{record.tasks[k]}{mark}" for k, mark in both]

    columns: dict[str, Any] = {x: getattr(record, x)[rows] for x in COLUMNS}
    columns |= {"tasks": name(rows), "arrival": arrivals, "after": name(record.after[rows])}
    return make_instance(f"{record.name} x {demand:g}", record.layout, columns, record.epoch)[0]


def _speed_up(arrival: np.ndarray, demand: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which tasks of a takt come when it is `demand` times as fast, and when; breaks stay."""
    at = np.arange(max(1, round(demand * len(arrival)))) / demand
    which = np.minimum(at.astype(int), len(arrival) - 1)
    gaps = np.diff(arrival)
    gaps = np.minimum(np.append(gaps, np.inf), np.median(gaps))  # none comes within a break
    return which, arrival[which] + (at - which) * gaps[which]


def _rank_bursts(record: Instance, bursts: list[np.ndarray], key: np.ndarray) -> np.ndarray:
    """Return numbers in [0, 1), spread evenly over the bursts from each pickup, in a random order.

    Pickups begin at different parts of their first step, spread evenly, too, or shares of few bursts would
    add up to another share of all.
    """
    draws = np.array([draw_uniform(key, k, 0) for k in range(len(bursts))])
    pickup = record.pickup[record.root[[tasks[0] for tasks in bursts]]]
    first = draw_uniform(key, len(bursts), 0)
    places = np.empty(len(bursts))
    for i, site in enumerate(np.unique(pickup)):
        own = np.flatnonzero(pickup == site)
        part = (first + i * GOLDEN) % 1.0
        places[own[np.argsort(draws[own])]] = (np.arange(len(own)) + part) / len(own)
    return places
