"""Instances: a layout and the tasks that arrive on it, and what they need of a battery."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from acerl_np.kernels.core.rounding import count_ticks, cut_metres
from acerl_np.problem import task_rows
from acerl_np.problem.columns import CHAIN, START
from acerl_np.problem.export import Export
from acerl_np.problem.json_tree import hash_json
from acerl_np.problem.layout import Layout, show_site
from acerl_np.problem.parts import Battery
from acerl_np.problem.source import refuse_faults
from acerl_np.support.errors import InputError, RecordError, refuse

COLUMNS = {
    "pickup": "pickup",
    "delivery": "delivery",
    "arrival": "arrival_time",
    "expiry": "expiry_time",
    "handling_time": "handling_time",
    "demand": "demand",
    "priority": "priority",
    **{name: name for name in CHAIN},
}
"""Arrays of an instance, and the columns of its rows."""

SHIFT_TASKS, SHIFT_SECONDS = 100, 3600.0
"""Tasks of a record, and s between its first and last arrival, above which records are shifts."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A layout and the tasks that arrive on it, sorted by arrival: of a chain, by that of its first.

    Attributes
    ----------
    name : str
    layout : Layout
    tasks : tuple of str
        Ids, n_tasks of them.
    pickup, delivery : ndarray(int32, (n_tasks,))
        Positions in `layout.sites`.
    arrival : ndarray(float64, (n_tasks,)), s
        Of a task that follows another: before then it is not ready; at least that of the chain's first.
    expiry : ndarray(float64, (n_tasks,)), s
        Counted from the arrival: a task is due at arrival + expiry; of one that follows another, so long
        after it is ready. inf: never.
    handling_time : ndarray(float64, (n_tasks,)), s
    demand : ndarray(float64, (n_tasks,)), units of load
    priority : ndarray(float64, (n_tasks,))
        Of the waiting tasks that a vehicle may carry it is offered those with the highest. 0 by default.
    after : ndarray(int32, (n_tasks,))
        Row of the task that must be delivered and processed before, -1 without one.
    processing : ndarray(float64, (n_tasks,)), s
        What the machine at the delivery needs.
    announced : ndarray(float64, (n_tasks,)), s
        So long before it is ready a task is known; inf: since its predecessor's processing began.
    epoch : datetime or None
        The moment of time zero; None if the record counts seconds. It is not in the content hash.

    See Also
    --------
    load_instance : Reads one.
    generate_shift : Draws one.
    perturb : Moves its arrivals.

    Examples
    --------
    >>> import acerl_np
    >>> record = acerl_np.load_instance("DMH-01")
    >>> record.n_tasks, record.tasks[0], record.layout.name
    (30, 'task_0', 'dmh')
    """

    name: str
    layout: Layout
    tasks: tuple[str, ...]
    pickup: np.ndarray
    delivery: np.ndarray
    arrival: np.ndarray
    expiry: np.ndarray
    handling_time: np.ndarray
    demand: np.ndarray
    priority: np.ndarray
    after: np.ndarray
    processing: np.ndarray
    announced: np.ndarray
    epoch: datetime | None = None

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    @cached_property
    def root(self) -> np.ndarray:
        """Row of the first task of each task's chain (ndarray(int64, (n_tasks,)))."""
        return task_rows.find_roots(self.after)

    @cached_property
    def is_plain(self) -> bool:
        """Whether no task follows another, is processed or announced, and each is due some time."""
        used = (self.after >= 0) | (self.processing > 0.0) | (self.announced > 0.0)
        return not (used | np.isinf(self.expiry)).any()

    @classmethod
    def from_rows(
        cls,
        name: str,
        layout: Layout,
        rows: Sequence[Mapping[str, Any]],
        places: Sequence[str] | None = None,
        *,
        epoch: datetime | None = None,
        date_format: str | None = None,
        servable: bool = True,
    ) -> Instance:
        """Build an instance from task rows in any order.

        Parameters
        ----------
        name : str
        layout : Layout
        rows : sequence of mappings
            Keys `task`, `pickup`, `delivery`, `arrival_time`, `expiry_time` and optionally
            `handling_time`, `demand`, `priority`, `earliest_start`, `time_zero`, `after`, `processing` and
            `announced`; numbers or texts that read as numbers.
            Arrivals may also be ISO 8601 timestamps, times of day such as "07:30", or
            seconds since 1970 (numbers above 1e9), or milliseconds (above 1e12); then expiries may be due
            moments of the same kind, and `time_zero` the moment of time zero, the same in each row that has
            it. A task whose earliest start is after its arrival arrives then, and is due as it was. `after`
            is the id of the task that goes before; then the arrival may be empty, that of the chain's first.
            `announced` is a number of seconds or "start". With one of these an expiry may be empty: never
            due.
        places : sequence of str, optional
            Where each row stood, for errors; "row 1", "row 2", ... if not given.
        epoch : datetime, optional
            The moment of time zero; by default that of the rows, else the first arrival if arrivals are
            timestamps.
        date_format : str, optional
            How texts write dates besides ISO 8601, as `datetime.strptime` reads it: "%d.%m.%Y %H:%M".
        servable : bool
            Refuse a record some of whose tasks may be impossible to reach or to carry.

        Raises
        ------
        RecordError
            If a value is missing, malformed or out of range, a column holds both seconds and
            timestamps, a task stands twice or follows itself or an unknown one, is processed where there is
            no machine, a site is unknown or cannot be reached, or no vehicle can carry a task, or has the
            battery for it.
        InputError
            If the date format is none.
        """
        if places is None:
            places = [f"row {k + 1}" for k in range(len(rows))]
        export = Export(date_format=date_format)
        found = task_rows.read_tasks(rows, places, layout, epoch, export)
        kept = [places[k] for k in found.columns["row"]]
        repeated = task_rows.find_repeated(found.columns["tasks"], kept)
        refuse_faults([*found.faults, *repeated.values()], len(rows))
        instance, order = make_instance(name, layout, found.columns, found.epoch)
        if servable:
            instance.check_servable([kept[k] for k in order])
        return instance

    @cached_property
    def is_reachable(self) -> bool:
        """True, or a `RecordError` names a task that may be impossible to reach, whoever may carry it.

        This is looked at once, as tables are made at every decision of some policies.
        """
        self.check_servable(loads=False)
        return True

    def check_servable(self, places: Sequence[str] = (), *, loads: bool = True) -> None:
        """Refuse a record that some vehicle could not finish from wherever it may stand.

        Parameters
        ----------
        places : sequence of str
            Where each task stands, for the error.
        loads : bool
            Whether demands count, too. Batteries always do.

        Raises
        ------
        RecordError
            With the task and what is wrong with it.
        """
        layout, found = self.layout, find_obstacles(self)
        kinds = found.unreached, found.dead_ends, loads & found.too_heavy, found.lacks > 0.0
        faulty = np.concatenate([np.flatnonzero(kind) for kind in kinds])
        if not len(faulty):
            return
        k = int(faulty[0])
        place = places[k] if places else f"{self.name}: task '{self.tasks[k]}'"
        pickup, delivery = self.pickup[k], self.delivery[k]
        start, end = show_site(layout, pickup), show_site(layout, delivery)
        if found.unreached[k] or found.dead_ends[k]:
            legs = [*((site, pickup) for site in layout.origins), (pickup, delivery)]
            legs += [(delivery, site) for site in self.pickup]
            cut = (leg for leg in legs if np.isinf(layout.routes.distance[leg]))
            lost = next(cut, (delivery, -1))
            what = "pickup" if lost[0] != pickup and lost[1] >= 0 else "delivery"
            start = show_site(layout, lost[0])
            said = f"{show_site(layout, lost[1])} cannot be reached from {start}"
            if lost[1] < 0:
                said = f"no way from {start} to a charger, or to a site aside where vehicles meet"
            said = f"{what}: {said}; expected a way along the edges"
        elif loads and found.too_heavy[k]:
            said = (
                f"demand: {self.demand[k]:g} exceeds every vehicle's capacity; "
                f"expected at most {layout.largest_load:g}"
            )
        else:
            said = (
                f"from {start} to {end} takes {found.lacks[k]:g} more than 'full' of a battery, by way of "
                "the farthest charger; expected a task that some vehicle can do from every charger"
            )
        raise RecordError(f"{place}: {said}")

    def rows(self) -> list[dict[str, Any]]:
        """Return the tasks as `from_rows` reads them, in order of arrival."""
        columns = {name: getattr(self, column).tolist() for column, name in COLUMNS.items()}
        for end in ("pickup", "delivery"):
            columns[end] = [self.layout.sites[k].id for k in columns[end]]
        if self.is_plain:
            for column in CHAIN:
                del columns[column]
        else:
            columns["after"] = ["" if k < 0 else self.tasks[k] for k in columns["after"]]
            for name, shown in (("announced", START), ("expiry_time", None)):
                columns[name] = [shown if x == math.inf else x for x in columns[name]]
        names = ("task", *columns)
        found = zip(self.tasks, *columns.values(), strict=True)
        rows: list[dict[str, Any]] = [dict(zip(names, values, strict=True)) for values in found]
        for row in rows:
            if not row["priority"]:
                del row["priority"]
        return rows

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything that decides an episode; names of instance, layout and stations are not."""
        data = self.layout.to_dict()
        for key in ("name", "stations", "aliases"):  # the rows name the sites themselves
            data.pop(key, None)
        return hash_json([data, self.rows()])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is found of the rest: where an instance arrives, it is found of what arrived."""
        return {name: vars(self)[name] for name in self.__dataclass_fields__}

    def __repr__(self) -> str:
        return f"Instance({self.name!r}, layout={self.layout.name!r}, n_tasks={self.n_tasks})"


def make_instance(
    name: str, layout: Layout, columns: Mapping[str, Sequence[Any]], epoch: datetime | None
) -> tuple[Instance, np.ndarray]:
    """Return the instance of tasks in any order, by its attributes, and the order of their arrivals.

    Of `after` the columns have ids, empty ones of tasks that follow none.
    """
    rows = {task: k for k, task in enumerate(columns["tasks"])} | {"": -1}
    after = np.array([rows[task] for task in columns["after"]], np.int32)
    roots = task_rows.find_roots(after)
    if (roots < 0).any():  # by a task of another that stood there twice, and was left out
        task = columns["tasks"][int(roots.argmin())]
        raise RecordError(
            f"task '{task}': after: follows itself; expected a chain with a first task"
        )
    arrival = np.array(columns["arrival"])
    order = np.lexsort((task_rows.count_before(after), roots, arrival[roots]))
    columns = {**columns, "arrival": np.maximum(arrival, arrival[roots])}
    place = np.append(np.argsort(order), -1)
    arrays = {}
    for column in COLUMNS:
        kind = np.int32 if column in ("pickup", "delivery", "after") else np.float64
        values = place[after] if column == "after" else columns[column]
        arrays[column] = np.array(values, kind)[order]
        arrays[column].setflags(write=False)
    tasks = tuple(columns["tasks"][k] for k in order)
    return Instance(name, layout, tasks, epoch=epoch, **arrays), order


class Obstacles(NamedTuple):
    """What keeps tasks from being served, each (n_tasks,).

    No vehicle may carry those `too_heavy`. The pickup of those `unreached` is not reached from where some
    vehicle starts, parks or charges, or the delivery not from the pickup. From the delivery of `dead_ends`
    some task's pickup is not reached, or no place to rest or to charge. `lacks` is what `find_shortfalls`
    returns.
    """

    too_heavy: np.ndarray
    unreached: np.ndarray
    dead_ends: np.ndarray
    lacks: np.ndarray


def find_obstacles(instance: Instance) -> Obstacles:
    """Return what keeps each task from being served."""
    layout, distance = instance.layout, instance.layout.routes.distance
    stranded = np.isinf(distance[instance.pickup, instance.delivery])
    ends, which = np.unique(instance.delivery, return_inverse=True)
    dead_ends = np.isinf(distance[np.ix_(ends, np.unique(instance.pickup))]).any(axis=1)
    dead_ends = (dead_ends | layout.traps[ends])[which]
    return Obstacles(
        instance.demand > layout.largest_load,
        ~layout.reached[instance.pickup] | stranded,
        dead_ends,
        find_shortfalls(instance),
    )


def find_earliest(instance: Instance, seconds: np.ndarray) -> np.ndarray:
    """Return when each task is ready at the earliest, s, float64 (n_tasks,), if trips take so long."""
    ready, after = instance.arrival.copy(), instance.after
    ends = seconds + instance.processing
    for k in np.argsort(task_rows.count_before(after), kind="stable").tolist():
        if after[k] >= 0:
            ready[k] = max(ready[k], ready[after[k]] + ends[after[k]])
    return ready


def measure_needs(instance: Instance, speed: float, battery: Battery) -> np.ndarray:
    """Return what a vehicle must hold for each task at the charger that is the worst for it, (n_tasks,).

    As the simulator counts: empty to the pickup, loaded to the delivery, handling included, empty to the
    nearest charger from there, and the critical level is left. -inf where some way is missing.
    """
    layout, pickup, delivery = instance.layout, instance.pickup, instance.delivery
    distance, slowdown = layout.routes.distance, layout.routes.find_slowdown(speed)
    slowdown = np.zeros_like(distance) if slowdown is None else slowdown
    back = layout.count_ways_to_chargers(speed)[delivery]
    worst = np.full(instance.n_tasks, -np.inf)
    for charger in layout.chargers:
        site = layout.site_index[charger.site]
        approach, slowed = distance[site, pickup], slowdown[site, pickup]
        metres = approach + distance[pickup, delivery]
        reached = np.isfinite(metres + back)
        approach, metres, after = (np.where(reached, x, 0.0) for x in (approach, metres, back))
        metres = cut_metres(metres, layout.truncate_distances)
        to_pickup = count_ticks(approach / speed + slowed)
        seconds = metres / speed + slowed + slowdown[pickup, delivery] + instance.handling_time
        duration = np.maximum(1.0, count_ticks(seconds))
        to_pickup = np.minimum(to_pickup, duration)
        empty, loaded = to_pickup + after, duration - to_pickup
        needs = battery.critical + battery.empty * empty + battery.loaded * loaded
        worst = np.where(reached, np.maximum(worst, needs), worst)
    return worst


def find_shortfalls(instance: Instance) -> np.ndarray:
    """Return what a vehicle that is charged to `full` lacks for each task, (n_tasks,), in units of energy.

    Of the vehicles that may carry a task the one counts that lacks least, at the charger that is the worst
    for it: above 0 a task may wait for ever. Tasks that nobody may carry lack nothing.
    """
    layout = instance.layout
    lacks = np.full(instance.n_tasks, np.inf)
    kinds = zip(layout.vehicles, layout.batteries, strict=True)
    for speed, capacity, battery in {(v.speed, v.capacity, battery) for v, battery in kinds}:
        lacking = np.full(instance.n_tasks, -np.inf)
        if battery is not None:
            lacking = measure_needs(instance, speed, battery) - battery.full
        able = instance.demand <= (capacity or math.inf)
        lacks = np.where(able, np.minimum(lacks, lacking), lacks)
    return np.where(instance.demand > layout.largest_load, -np.inf, lacks)


def number_hash(digest: str) -> int:
    """Return the number, an int64, that a content's hash stands for in the keys of draws."""
    return int.from_bytes(bytes.fromhex(digest[:16]), signed=True)


def list_instances(instances: Any) -> list[Instance]:
    """Return one or several instances as a list; `InputError` if something else is among them."""
    several = isinstance(instances, Iterable) and not isinstance(instances, str)
    found = list(instances) if several else [instances]
    for item in found:
        if not isinstance(item, Instance):
            refuse("instances", item, "what load_instance or load_suite returns")
    return found


def refuse_chains(places: Iterable[Instance | Layout], kind: type[InputError] = InputError) -> None:
    """Refuse records that an observation cannot show, by an error of this kind."""
    for place in places:
        if isinstance(place, Instance) and not place.is_plain:
            raise kind(
                f"{place.name}: has tasks that follow others, are processed or announced, or are never due, "
                "which no observation shows; expected another record, or a rule or an index policy"
            )


def commit_instances(
    instances: Sequence[Instance], commitment: str, max_changes: int
) -> list[Instance]:
    """Return instances with `Layout.with_commitment`."""
    return change_layouts(instances, lambda layout: layout.with_commitment(commitment, max_changes))


def change_layouts(
    instances: Sequence[Instance], change: Callable[[Layout], Layout]
) -> list[Instance]:
    """Return instances on changed layouts; those that share one go on sharing it."""
    layouts = {id(item.layout): change(item.layout) for item in instances}
    return [replace(item, layout=layouts[id(item.layout)]) for item in instances]


def find_layout(place: Instance | Layout) -> Layout:
    """Return the floor and fleet of an instance, or the layout itself."""
    return place.layout if isinstance(place, Instance) else place


def check_names(instances: Iterable[Instance]) -> None:
    """Refuse instances of one name, by an `InputError` with the first that stands twice."""
    names = [instance.name for instance in instances]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"instance '{twice}' is given twice; expected different names")


def are_shifts(instances: Sequence[Instance]) -> bool:
    """Whether some records hold more than `SHIFT_TASKS` tasks, or tasks of more than `SHIFT_SECONDS`."""
    return any(
        item.n_tasks > SHIFT_TASKS or np.ptp(item.arrival) > SHIFT_SECONDS for item in instances
    )
