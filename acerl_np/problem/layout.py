"""The layout: a floor and its fleet, checked as a whole; its routes, stations, and what names stand for."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from acerl_np.kernels.core.rounding import count_ticks
from acerl_np.problem import parts
from acerl_np.problem.choices import CHANGES, COMMITMENT, MAX_CHANGES
from acerl_np.problem.json_tree import hash_json, parse_json
from acerl_np.problem.limits import MAX_NAME, MAX_VEHICLES
from acerl_np.problem.routes import TOLERANCE, Routes, find_routes
from acerl_np.support.errors import LayoutError, describe, list_some, make_printable, refuse
from acerl_np.support.fields import Field
from acerl_np.support.files import FilePath, read_text

LENGTHEN = Field(float, 0.1, 10.0)
LOADS = Field(parts.LOADS)
TRAFFIC = Field(("off", "file", "beside", "lane"))
"""Whether vehicles meet, and where they stand clear of the lane; see `Layout.with_traffic`."""


@dataclass(frozen=True)
class Layout:
    """A floor and its fleet.

    Attributes
    ----------
    name : str
    sites : tuple of Site
    edges : tuple of Edge
    vehicles : tuple of Vehicle
    task_slots : int
        Waiting tasks that a network sees.
    truncate_distances : bool
        Whether rules, durations and observations cut distances to whole metres.
    named_routes : tuple of tuple of str
        Routes to take where several are equally short, or quick, each as its sites.
    quickest_routes : bool
        Whether vehicles take the quickest route, as the fastest of the fleet drives it, instead of the
        shortest. Without speed limits both are the same.
    battery : Battery or None
        That of vehicles without one of their own.
    chargers : tuple of Charger
    parking : Parking or None
        Where idle vehicles go; None: they stay.
    machines : tuple of Machine
        What delivered tasks are processed at.
    traffic : Traffic or None
        How vehicles meet; None: they never hinder each other.
    blocks : tuple of Block
        What vehicles that meet are inside of one at a time, or in one direction.
    loads : {"return", "stay"}
        What becomes of the load of a vehicle that breaks down: its task goes back to its pickup, last in the
        queue, or it stays on the vehicle, which delivers it after the repair.
    closures : tuple of Closure
        Edges over which nobody is sent for a time.
    closed : tuple of tuple of str
        Pairs of sites between which no edge is driven now; no part of the file, see `with_closed`.
    commitment : {"assignment", "pickup"}
        Until when a task may change hands; no part of the file, see `with_commitment`.
    max_changes : int
        How often it may, with "pickup".
    scaling : dict or None
        Feature constants: (mid, half) of each of `SCALING_PAIRS`, divisors of `SCALING_DIVISORS`.
    stations : mapping of tuples of str
        Names that records may use for one of several sites: the sites' ids by the station's name.
    aliases : mapping of str
        Further names of sites and stations: their ids by the name.

    Raises
    ------
    LayoutError
        If the parts contradict each other: duplicate ids, unknown sites, named routes that are not
        shortest routes.

    See Also
    --------
    load_layout : Reads one.
    Instance : A layout with its tasks.

    Examples
    --------
    >>> import acerl_np
    >>> layout = acerl_np.load_layout("dmh")
    >>> len(layout.sites), [vehicle.id for vehicle in layout.vehicles]
    (14, ['v0', 'v1', 'v2'])
    """

    name: str
    sites: tuple[parts.Site, ...]
    edges: tuple[parts.Edge, ...]
    vehicles: tuple[parts.Vehicle, ...]
    task_slots: int = 30
    truncate_distances: bool = False
    named_routes: tuple[tuple[str, ...], ...] = ()
    quickest_routes: bool = False
    battery: parts.Battery | None = None
    chargers: tuple[parts.Charger, ...] = ()
    parking: parts.Parking | None = None
    machines: tuple[parts.Machine, ...] = ()
    traffic: parts.Traffic | None = None
    blocks: tuple[parts.Block, ...] = ()
    loads: str = parts.LOADS[0]
    closures: tuple[parts.Closure, ...] = ()
    scaling: Mapping[str, Any] | None = field(default=None, hash=False)
    stations: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    commitment: str = "assignment"
    max_changes: int = MAX_CHANGES
    closed: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _check_unique("sites", [site.id for site in self.sites])
        for k, edge in enumerate(self.edges):
            self._check_site(edge.a, f"edges[{k}].a")
            self._check_site(edge.b, f"edges[{k}].b")
            if edge.a == edge.b:
                raise LayoutError(f"edges[{k}]: goes from '{edge.a}' to itself; expected two sites")
        lists: dict[str, tuple[parts.Charger | parts.ParkingPlace | parts.Machine, ...]] = {
            "chargers": self.chargers,
            "parking.places": self.parking.places if self.parking else (),
            "machines": self.machines,
        }
        for what, berths in lists.items():
            for k, berth in enumerate(berths):
                self._check_site(berth.site, where := f"{what}[{k}].site")
                # Where nobody charges a charger is but a site.
                if what == "parking.places" or (what == "chargers" and any(self.batteries)):
                    self.check_stand(berth.site, where)
            _check_unique(what, [berth.site for berth in berths], "site")
        self._check_blocks()
        self._check_closures()
        self._check_fleet()
        self._check_routes()
        self._check_names()

    def _check_fleet(self) -> None:
        _check_unique("vehicles", [vehicle.id for vehicle in self.vehicles])
        for k, vehicle in enumerate(self.vehicles):
            self._check_site(vehicle.start, f"vehicles[{k}].start")
            if vehicle.random_breakdowns is not None:
                parts.check_model(vehicle.random_breakdowns, f"vehicles[{k}].random_breakdowns")
        self._check_chargers()
        self._check_traffic()

    def _check_blocks(self) -> None:
        """Refuse blocks of what is not on the floor, or of nothing."""
        _check_unique("blocks", [block.id for block in self.blocks])
        joined = {frozenset((edge.a, edge.b)) for edge in self.edges if self.blocks}
        for k, block in enumerate(self.blocks):
            if not block.sites and not block.edges:
                raise LayoutError(
                    f"blocks[{k}]: neither sites nor edges; expected at least one of either"
                )
            for j, site in enumerate(block.sites):
                self._check_site(site, f"blocks[{k}].sites[{j}]")
            for j, ends in enumerate(block.edges):
                if len(ends) != 2 or frozenset(ends) not in joined:
                    expected = "two sites that an edge joins"
                    refuse(f"blocks[{k}].edges[{j}]", list(ends), expected, LayoutError)

    def _check_closures(self, places: Sequence[str] = ()) -> None:
        """Refuse closures of what is not on the floor, that end before they begin, or that overlap.

        `places` are where they stand, for errors.
        """
        ends: dict[tuple[str, str], float] = {}
        joined = {frozenset((edge.a, edge.b)) for edge in self.edges if self.closures}
        for k, item in sorted(enumerate(self.closures), key=lambda pair: pair[1].time):
            where = places[k] if places else f"closures[{k}]."
            if frozenset(item.pair) not in joined:
                expected = "two sites that an edge joins"
                refuse(f"{where}a, b", f"'{item.a}', '{item.b}'", expected, LayoutError)
            if item.until <= item.time:
                expected = f"a time after {item.time:g}, when it begins"
                refuse(f"{where}until", f"{item.until:g}", expected, LayoutError)
            if item.time < ends.get(item.pair, 0.0):
                expected = (
                    f"at least {ends[item.pair]:g}, when the closure before of this edge ends"
                )
                refuse(f"{where}time", f"{item.time:g}", expected, LayoutError)
            ends[item.pair] = item.until

    def list_stages(self) -> list[tuple[int, tuple[tuple[str, str], ...]]]:
        """Return from which ticks on which edges are closed, wherever that changes, by time."""
        whole = [(x.pair, math.ceil(x.time), math.ceil(x.until)) for x in self.closures]
        found = [(-1, self.closed)]
        for tick in sorted({tick for _, *ends in whole for tick in ends}):
            own = {pair for pair, begin, end in whole if begin <= tick < end}
            closed = tuple(sorted(own.union(self.closed)))
            if closed != found[-1][1]:
                found.append((tick, closed))
        return found[1:]

    def _check_traffic(self) -> None:
        """Refuse floors on which a vehicle that meets others might not get through, or come to rest."""
        if self.traffic is None:
            return
        if self.closures:
            raise LayoutError("traffic: together with closures; expected one of them")
        if self.truncate_distances:
            raise LayoutError("traffic: together with truncate_distances; expected a floor without")
        where = {f"vehicles[{k}].start": vehicle.start for k, vehicle in enumerate(self.vehicles)}
        parks = self.parking.places if self.parking else ()
        where |= {f"parking.places[{k}].site": place.site for k, place in enumerate(parks)}
        where |= {f"chargers[{k}].site": charger.site for k, charger in enumerate(self.chargers)}
        for key, site in where.items():
            at = self.site_index[site]
            if at in self.origins and not self.sites[at].aside:
                raise LayoutError(
                    f"{key}: '{site}' is on the lane; expected a site that lies aside, as vehicles meet "
                    "(--traffic makes those aside where vehicles start, park or charge)"
                )

    @cached_property
    def traps(self) -> np.ndarray:
        """Sites from which a vehicle could not come to rest, or to a charger that it needs (ndarray(bool)).

        Records with a task that ends there are refused.
        """
        ways, traps = np.isfinite(self.routes.distance), np.zeros(len(self.sites), bool)
        if self.traffic is not None:
            traps |= ~ways[:, [site.aside for site in self.sites]].any(axis=1)
        if any(self.batteries):
            chargers = [self.site_index[charger.site] for charger in self.chargers]
            traps |= ~ways[:, chargers].any(axis=1)
        return traps

    def _check_chargers(self) -> None:
        """Refuse batteries with which a vehicle might not come to a charger."""
        for k, battery in enumerate(self.batteries):
            if battery is None:
                continue
            where = f"vehicles[{k}].battery" if self.vehicles[k].battery else "battery"
            if not self.chargers:
                raise LayoutError(f"{where}: no chargers; expected at least one")
            start = self.site_index[self.vehicles[k].start]
            sites = np.flatnonzero(np.isfinite(self.routes.distance[start]) & ~self.traps)
            for j, charger in enumerate(self.chargers):
                if self.site_index[charger.site] not in sites:
                    raise LayoutError(
                        f"chargers[{j}].site: '{charger.site}' cannot be reached from "
                        f"'{self.vehicles[k].start}', where '{self.vehicles[k].id}' starts; expected a "
                        "way along the edges"
                    )
            ticks = self.count_ways_to_chargers(self.vehicles[k].speed)[sites]
            far = int(ticks.argmax())
            # Towed, it must also come further than the tick that a breakdown takes back.
            most = 2 * max(battery.idle, battery.empty, battery.loaded)
            needed = 1 + max(battery.empty * int(ticks[far]), most)
            if battery.critical < needed:
                raise LayoutError(
                    f"{where}.critical: read {battery.critical}; expected at least {needed}, for 2 s of any "
                    f"use and the {ticks[far]:g} s from '{self.sites[sites[far]].id}' to the nearest charger"
                )

    @cached_property
    def batteries(self) -> tuple[parts.Battery | None, ...]:
        """The battery of each vehicle, None where it has none."""
        return tuple(vehicle.battery or self.battery for vehicle in self.vehicles)

    @cached_property
    def mean_speed(self) -> float:
        """Mean speed of the fleet, m/s."""
        return float(np.mean([vehicle.speed for vehicle in self.vehicles]))

    @property
    def has_auxiliary(self) -> bool:
        """Whether vehicles may drive without a task, or be called back."""
        late = self.commitment == "pickup"
        return bool(self.parking or late or any(self.batteries) or self.traffic)

    def count_ways_to_chargers(self, speed: float) -> np.ndarray:
        """Return the whole seconds from each site to the nearest charger, (n_sites,), inf without a way."""
        where = [self.site_index[charger.site] for charger in self.chargers]
        seconds = self.routes.find_time(speed)[:, where]
        return np.asarray(count_ticks(seconds).min(axis=1))

    @cached_property
    def longest_ways(self) -> tuple[float, ...]:
        """Ticks that no way between sites in reach of each vehicle exceeds, inf where one is missing."""
        found: dict[tuple[bytes, float], float] = {}
        longest = []
        for vehicle in self.vehicles:
            # A vehicle may be where no way leads now.
            open_ways = self.open_all().routes.distance
            near = np.isfinite(open_ways[self.site_index[vehicle.start]])
            key = near.tobytes(), vehicle.speed
            if key not in found:
                seconds = self.routes.find_time(vehicle.speed)[np.ix_(near, near)]
                found[key] = float(np.ceil(seconds.max())) + 1.0
            longest.append(found[key])
        return tuple(longest)

    def _check_site(self, site: str, where: str) -> None:
        if site not in self.site_index:
            raise LayoutError(
                f"{where}: unknown site '{describe(site)}'; expected the id of one of the sites"
            )

    @cached_property
    def dead_ends(self) -> frozenset[str]:
        """Sites that no edge leads away from; none on a floor of one site."""
        left = {edge.a for edge in self.edges} | {e.b for e in self.edges if not e.one_way}
        return frozenset(self.site_index) - left if len(self.sites) > 1 else frozenset()

    def check_stand(self, site: str, where: str) -> None:
        """Refuse a site from which a vehicle that stands there without a task could go nowhere.

        Parameters
        ----------
        site : str
            Id of one of the sites.
        where : str
            Its place, for the error.

        Raises
        ------
        LayoutError
            If no edge leads away from it.
        """
        if site in self.dead_ends:
            raise LayoutError(
                f"{where}: no edge leads away from '{site}'; expected a site that a vehicle can leave"
            )

    def _check_names(self) -> None:
        """Refuse names of stations and aliases that contradict the sites or each other."""
        for name, sites in self.stations.items():
            where = f"stations.{describe(name)}"
            if name in self.site_index:
                raise LayoutError(f"{where}: is also the id of a site; expected another name")
            if not sites:
                raise LayoutError(f"{where}: no sites; expected at least one")
            for site in sites:
                self._check_site(site, where)
            if len(set(sites)) < len(sites):
                [(twice, _)] = Counter(sites).most_common(1)
                raise LayoutError(f"{where}: '{twice}' again; expected each site once")
        known = {*self.site_index, *self.stations}
        for name, target in self.aliases.items():
            where = f"aliases.{describe(name)}"
            if name in known:
                raise LayoutError(f"{where}: is also a site or station; expected another name")
            if target not in known:
                raise LayoutError(
                    f"{where}: read '{describe(target)}'; expected the id of a site or a station"
                )

    def _check_routes(self) -> None:
        seen: set[tuple[str, str]] = set()
        for k, route in enumerate(self.named_routes):
            where = f"routes[{k}]"
            if len(route) < 2:
                raise LayoutError(f"{where}: {len(route)} sites; expected at least two")
            for site in route:
                self._check_site(site, where)
            if len(set(route)) < len(route):
                raise LayoutError(f"{where}: visits a site twice; expected each site once")
            ends = (route[0], route[-1])
            if ends in seen:
                raise LayoutError(
                    f"{where}: a second route from '{ends[0]}' to '{ends[1]}'; expected one"
                )
            seen.add(ends)
            total, cost = 0.0, self.routes.edge_cost
            for a, b in itertools.pairwise(route):
                total += float(cost[self.site_index[a], self.site_index[b]])
                if math.isinf(total):
                    raise LayoutError(f"{where}: no edge from '{a}' to '{b}'")
            least = float(self.routes.cost[self.site_index[ends[0]], self.site_index[ends[1]]])
            if total > least + TOLERANCE * max(1.0, least):
                what, unit = ("quickest", "s") if self.quickest_routes else ("shortest", "m")
                raise LayoutError(
                    f"{where}: {total:g} {unit} from '{ends[0]}' to '{ends[1]}'; "
                    f"expected a {what} route ({least:g} {unit})"
                )

    @cached_property
    def site_index(self) -> dict[str, int]:
        """Position of each site by its id."""
        return {site.id: k for k, site in enumerate(self.sites)}

    @cached_property
    def routes(self) -> Routes:
        """Routes between all pairs of sites; ties go to the first by the sites' order."""
        speed = max((vehicle.speed for vehicle in self.vehicles), default=1.0)
        quickest_at = speed if self.quickest_routes else None
        shut = {frozenset(ends) for ends in self.closed}
        edges = [edge for edge in self.edges if frozenset((edge.a, edge.b)) not in shut]
        named = [
            route
            for route in self.named_routes
            if shut.isdisjoint(map(frozenset, itertools.pairwise(route)))
        ]
        return find_routes(self.site_index, edges, named, quickest_at)

    def find_pace(self, vehicle: int, a: int, b: int) -> float:
        """Return the speed, m/s, at which a vehicle drives an edge from site a to site b.

        Parameters
        ----------
        vehicle : int
            Position in the fleet.
        a, b : int
            Positions of the edge's sites.
        """
        limit = math.inf if self.routes.edge_speed is None else float(self.routes.edge_speed[a, b])
        return min(self.vehicles[vehicle].speed, limit)

    @cached_property
    def starts(self) -> np.ndarray:
        """Sites where vehicles start, ascending (ndarray(int64))."""
        return np.unique([self.site_index[vehicle.start] for vehicle in self.vehicles])

    @property
    def largest_load(self) -> float:
        """Largest demand that some vehicle may carry, inf without a limit."""
        return max(vehicle.capacity or math.inf for vehicle in self.vehicles)

    @cached_property
    def origins(self) -> np.ndarray:
        """Sites where vehicles start, and where they may park or charge from there (ndarray(int64))."""
        places = [item.site for item in self.parking.places] if self.parking else []
        places += [item.site for item in self.chargers] if any(self.batteries) else []
        near = np.isfinite(self.routes.distance[self.starts]).any(axis=0)
        own = [self.site_index[site] for site in places]
        return np.unique([*self.starts.tolist(), *(k for k in own if near[k])])

    @cached_property
    def reached(self) -> np.ndarray:
        """Whether each site is reached from all `origins` (ndarray(bool, (n_sites,)))."""
        return np.asarray(np.isfinite(self.routes.distance[self.origins]).all(axis=0))

    @cached_property
    def floor_hash(self) -> str:
        """SHA-256 of the floor: sites, edges, routes, truncated distances; no name, no fleet.

        Task slots and scaling are not in it: they say what a network sees, not where vehicles drive. Nor
        are stations and aliases, which only say how records may name the sites.
        """
        data = self.to_dict()
        floor = ["sites", "edges", "routes", "truncate_distances", "quickest_routes"]
        floor += ["chargers", "parking", "machines", "traffic", "blocks"]
        return hash_json({key: data[key] for key in floor if key in data})

    @cached_property
    def fleet_hash(self) -> str:
        """SHA-256 of the fleet in its order: ids, starts, speeds, capacities, sizes, batteries."""
        fleet: list[list[Any]] = []
        for v in self.vehicles:
            # Whole numbers and minus zero count as the numbers that a file gives.
            fleet.append([v.id, v.start, float(v.speed), float(v.capacity) + 0.0])
            fleet[-1] += [v.length, v.width] if v.length > 0.0 else []
        levels = [battery and vars(battery) for battery in self.batteries]
        return hash_json([fleet, levels] if any(levels) else fleet)

    def with_commitment(self, commitment: str, max_changes: int = MAX_CHANGES) -> Layout:
        """Return this floor and fleet where tasks may change hands until they are loaded, or not.

        Parameters
        ----------
        commitment : {"assignment", "pickup"}
        max_changes : int
            How often a task may, at most.

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If a value is none of these.
        """
        COMMITMENT.read("commitment", commitment, LayoutError)
        most = CHANGES.read("max_changes", max_changes, LayoutError)
        return self._with(commitment=commitment, max_changes=most)

    def with_traffic(self, stations: str, traffic: parts.Traffic | None = None) -> Layout:
        """Return this floor and fleet where vehicles meet, or do not.

        Sites where vehicles start, park or charge lie aside then. A vehicle that would stand on the lane
        without a task drives to the nearest site aside at once.

        Parameters
        ----------
        stations : {"off", "file", "beside", "lane"}
            No traffic; sites lie aside as the floor says; all stations do, too; or none of them.
        traffic : Traffic or None
            By default the floor's own, or the defaults of `Traffic`.

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If there is no such assumption, or the floor cannot have traffic.

        Examples
        --------
        >>> import acerl_np
        >>> acerl_np.load_layout("supply-loop").with_traffic("beside").traffic.headway
        3
        """
        TRAFFIC.read("traffic", stations, LayoutError)
        if stations == "off":
            return replace(self, traffic=None)
        starts = {self.sites[k].id for k in self.origins}
        served = {self.sites[k].id for sites in find_stations(self).values() for k in sites}
        own = {site.id for site in self.sites if site.aside}
        aside = {"file": own, "beside": own | served, "lane": own - served}[stations] | starts
        sites = tuple(replace(site, aside=site.id in aside) for site in self.sites)
        how = traffic or self.traffic or parts.Traffic()
        return replace(self, sites=sites, traffic=how)

    def with_loads(self, loads: str) -> Layout:
        """Return this floor and fleet where the load of a vehicle that breaks down stays on it, or does not.

        Parameters
        ----------
        loads : {"return", "stay"}

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If it is neither.
        """
        return self._with(loads=LOADS.read("loads", loads, LayoutError))

    def with_closed(self, closed: Iterable[tuple[str, str]]) -> Layout:
        """Return this floor and fleet where nobody drives between these pairs of sites, in either direction.

        Parameters
        ----------
        closed : iterable of (str, str)
            Each joined by an edge. Whether all sites can still be reached is not looked at.

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If no edge joins two of them.
        """
        pairs = tuple(sorted({(min(ends), max(ends)) for ends in closed}))
        joined = {frozenset((edge.a, edge.b)) for edge in self.edges}
        for a, b in pairs:
            if frozenset((a, b)) not in joined:
                refuse("closed", f"{a}, {b}", "two sites that an edge joins", LayoutError)
        if pairs == self.closed:
            return self
        other = self._with(closed=pairs)
        del vars(other)["routes"]
        if not self.closed:
            vars(other)["_open"] = self
        return other

    def open_all(self) -> Layout:
        """Return this floor and fleet where no edge is closed now."""
        return vars(self).get("_open") or self.with_closed(()) if self.closed else self

    def with_closures(
        self, closures: Iterable[parts.Closure], places: Sequence[str] = ()
    ) -> Layout:
        """Return this floor and fleet with other closures of edges.

        Parameters
        ----------
        closures : iterable of Closure
        places : sequence of str
            Where they stand, for errors.

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If one is of no edge, ends before it begins, or overlaps another one.
        """
        layout = self._with(closures=tuple(closures))
        layout._check_closures(places)
        layout._check_traffic()
        return layout

    def with_breakdowns(self, breakdowns: Mapping[str, Sequence[parts.Breakdown]]) -> Layout:
        """Return this floor and fleet with other breakdowns; the routes are shared, not found anew.

        Parameters
        ----------
        breakdowns : mapping of sequences of Breakdown
            By vehicle id; a vehicle that is not in it has none.

        Returns
        -------
        Layout
        """
        fleet = [replace(x, breakdowns=tuple(breakdowns.get(x.id, ()))) for x in self.vehicles]
        return self._with(vehicles=tuple(fleet))

    def with_random_breakdowns(self, model: parts.RandomBreakdowns | None) -> Layout:
        """Return this floor and fleet with all vehicles breaking down at random as `model` says.

        Parameters
        ----------
        model : RandomBreakdowns or None
            None for no random breakdowns; listed ones stay.

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If it is neither.
        """
        parts.check_model(model, "random_breakdowns")
        fleet = tuple(replace(vehicle, random_breakdowns=model) for vehicle in self.vehicles)
        return self._with(vehicles=fleet)

    def with_fleet(self, vehicles: Iterable[parts.Vehicle]) -> Layout:
        """Return this floor with another fleet; the routes are shared where they stay the same.

        Parameters
        ----------
        vehicles : iterable of Vehicle

        Returns
        -------
        Layout

        Raises
        ------
        LayoutError
            If a vehicle is not usable, two have one id, or there are none or too many.
        """
        fleet = tuple(vehicles)
        if not 1 <= len(fleet) <= MAX_VEHICLES:
            raise LayoutError(f"vehicles: read {len(fleet):,}; expected 1 to {MAX_VEHICLES:,}")
        if self.quickest_routes:
            return replace(self, vehicles=fleet)
        layout = self._with(vehicles=fleet)
        layout._check_fleet()
        return layout

    def _with(self, **changes: Any) -> Layout:
        """Return this layout, checked already, with other values of fields that no route depends on."""
        _ = self.routes
        # Of what was found only what is of the floor alone: the rest is found anew of the changed fields.
        kept = {*self.__dataclass_fields__, "routes", "site_index", "floor_hash"}
        other = object.__new__(Layout)
        vars(other).update({key: value for key, value in vars(self).items() if key in kept})
        vars(other).update(changes)
        return other

    @property
    def has_random_breakdowns(self) -> bool:
        """Whether some vehicle breaks down at random, so that episodes differ."""
        return any(vehicle.random_breakdowns is not None for vehicle in self.vehicles)

    @classmethod
    def load(cls, path: FilePath) -> Layout:
        """Read a layout from a JSON file.

        Parameters
        ----------
        path : path-like
            Format in `instances/README.md`.

        Raises
        ------
        LayoutError
            If the file cannot be read or does not describe a layout; the message names the field.
        """
        text = read_text(path, LayoutError)
        try:
            name = make_printable(Path(path).stem)[:MAX_NAME]
            layout = cls.from_dict(parse_json(text), default_name=name)
            _ = layout.routes  # refuses lengths that routes cannot be told by
            return layout
        except LayoutError as error:
            raise LayoutError(f"{path}: {error}") from error

    @classmethod
    def from_dict(cls, data: object, *, default_name: str = "layout") -> Layout:
        """Build a layout from the parsed JSON.

        Parameters
        ----------
        data : dict
            Format in `instances/README.md`.
        default_name : str
            Name of a layout that has none.

        Raises
        ------
        LayoutError
            If a key is unknown or missing, or a value is of the wrong kind or out of range.
        """
        found = parts.LAYOUT.read("", data)
        points, edges = {site.id: site for site in found["sites"]}, []
        for k, edge in enumerate(found["edges"]):
            if edge.one_way and edge.max_reverse_speed is not None:
                back = f"{edge.max_reverse_speed:g}"
                expected = "none, as the edge is one-way"
                refuse(f"edges[{k}].max_reverse_speed", back, expected, LayoutError)
            if edge.length is None:
                a, b = (points.get(site, found["sites"][0]) for site in (edge.a, edge.b))
                edge = replace(edge, length=math.hypot(a.x - b.x, a.y - b.y))
            edges.append(edge)
        del found["format"], found["$schema"]
        found |= {"edges": tuple(edges), "named_routes": found.pop("routes")}
        found["name"] = default_name if found["name"] is None else found["name"]
        return cls(**found)

    @property
    def sizes(self) -> str:
        """How large it is, in words."""
        one_way, n = sum(edge.one_way for edge in self.edges), len(self.vehicles)
        edges = f"{len(self.edges)} edges ({one_way} one-way)"
        return f"{len(self.sites)} sites, {edges}, {n} vehicle{'s' * (n > 1)}"

    def __repr__(self) -> str:
        """Return its name and sizes."""
        return f"<Layout {self.name!r}: {self.sizes}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as `from_dict` reads it, every field given that has content."""
        more = {"$schema": "", "format": 1, "routes": self.named_routes}
        return dict(parts.LAYOUT.write({**vars(self), **more}))


def lengthen(layout: Layout, factor: float) -> Layout:
    """Return a floor on which all driving takes so many times as long: a stand-in for vehicles that meet.

    Vehicles and limits of edges are slower; handling takes what it does.

    Raises
    ------
    LayoutError
        If the factor is not from 0.1 to 10.
    """
    by = LENGTHEN.read("lengthen", factor, LayoutError)

    def slow(edge: parts.Edge) -> parts.Edge:
        back = edge.max_reverse_speed
        return replace(edge, max_speed=edge.max_speed / by, max_reverse_speed=back and back / by)

    fleet = tuple(replace(vehicle, speed=vehicle.speed / by) for vehicle in layout.vehicles)
    return replace(layout, vehicles=fleet, edges=tuple(map(slow, layout.edges)))


def resize_fleet(layout: Layout, n: int) -> Layout:
    """Return a floor with n vehicles: its own first, with their names, and further ones like these in turn.

    The further ones have their names with the next free numbers; listed breakdowns are not repeated.
    """
    own = layout.vehicles
    taken, numbers = {vehicle.id for vehicle in own}, itertools.count(1)
    fleet = list(own[:n])
    for k in range(len(own), n):
        stem = own[k % len(own)].id.rstrip("0123456789")[: MAX_NAME - 9]
        name = next(name for number in numbers if (name := f"{stem}{number}") not in taken)
        fleet.append(replace(own[k % len(own)], id=name, breakdowns=()))
    return layout.with_fleet(fleet)


def _check_unique(what: str, ids: Sequence[str], key: str = "id") -> None:
    seen: set[str] = set()
    for k, name in enumerate(ids):
        if name in seen:
            raise LayoutError(f"{what}[{k}].{key}: '{name}' again; expected each {key} once")
        seen.add(name)


# Stations, and the sites that a name in a record stands for

PARKING, CHARGER = "parking", "charger"
NO_STATIONS = frozenset({"", "waypoint", PARKING, CHARGER})
"""Kinds of sites where no loads change hands."""

STATION = "station"
"""Type of a station that has no other."""


def find_stations(layout: Layout) -> dict[str, tuple[int, ...]]:
    """Return the sites from which each station of a floor is served, as ascending positions by its name.

    Stations are those that the layout names, and each further site of a kind that is not in `NO_STATIONS`, in
    the order of the first of their sites.
    """
    found = {name: _sort(layout, sites) for name, sites in layout.stations.items()}
    named = {k for sites in found.values() for k in sites}
    for k, site in enumerate(layout.sites):
        if site.kind not in NO_STATIONS and k not in named:
            found[site.id] = (k,)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def name_stations(layout: Layout) -> dict[int, list[str]]:
    """Return the stations that are served from each site that serves any."""
    found: dict[int, list[str]] = {}
    for name, sites in find_stations(layout).items():
        for k in sites:
            found.setdefault(k, []).append(name)
    return found


def find_type(layout: Layout, sites: Sequence[int]) -> str:
    """Return the type of the station that is served from these sites: the first kind among them."""
    kinds = (layout.sites[k].kind for k in sites)
    return next((kind for kind in kinds if kind not in NO_STATIONS), STATION)


def find_sites(layout: Layout, name: str) -> tuple[int, ...]:
    """Return the sites that a name stands for, ascending: a site, a station, or an alias; none if unknown."""
    name = layout.aliases.get(name, name)
    if name in layout.site_index:
        return (layout.site_index[name],)
    return _sort(layout, layout.stations.get(name, ()))


def name_nodes(layout: Layout) -> dict[str, str]:
    """Return the first alias of each site that has one: of an imported floor its node's id."""
    found: dict[str, str] = {}
    for alias, name in layout.aliases.items():
        found.setdefault(name, alias)
    return found


def show_site(layout: Layout, site: int) -> str:
    """Return a site as an error's line shows it: its id, and the stations that it serves by other names."""
    own = layout.sites[site].id
    served = [name for name, sites in layout.stations.items() if own in sites]
    return f"'{own}'" + (f" (of station {list_some(served, 3)})" if served else "")


def find_ends(layout: Layout, pickups: Sequence[int], deliveries: Sequence[int]) -> tuple[int, int]:
    """Return the pair of sites that serves a task between two stations of several sites.

    It is the pair of two different sites with the shortest way; ties go to the first by the pickup's,
    then by the delivery's place in the order of the sites. Pickups that some vehicle cannot reach from
    its start are passed over unless there is no other.
    """
    if len(pickups) == len(deliveries) == 1:
        return pickups[0], deliveries[0]
    reached = [k for k in pickups if layout.reached[k]]
    pairs = [(a, b) for a in reached or pickups for b in deliveries if a != b]
    if not pairs:  # the only pickup that is reached is the only delivery
        pairs = [(a, b) for a in pickups for b in deliveries if a != b]
    lengths = layout.routes.distance[tuple(np.transpose(pairs))]
    shortest = float(lengths.min())
    return pairs[int(np.argmax(lengths <= shortest + TOLERANCE * max(1.0, shortest)))]


def _sort(layout: Layout, sites: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted(layout.site_index[site] for site in sites))
