"""Floors, fleets and task records for tests: drawn at random by Hypothesis, or made by hand."""

import math
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from full import Floor, read_vehicle, ticks_to_charger
from hypothesis import strategies as st

from acerl_np import Instance, Layout

PAIRS = ("distance", "waiting", "expiry", "demand", "total_distance")
RAW = {**{name: [0.0, 1.0] for name in PAIRS}, "speed": 1.0, "capacity": 1.0}
SCALED = {
    **{"distance": [7.5, 6.0], "waiting": [12.25, 11.0], "expiry": [20.0, 15.5]},
    **{"demand": [1.5, 1.25], "total_distance": [16.0, 9.0], "speed": 3.0, "capacity": 2.5},
}


@dataclass(frozen=True)
class World:
    """A layout and task rows as a user writes them, and numbers that decide the actions."""

    layout: dict[str, Any]
    rows: list[dict[str, Any]]
    choices: list[int]

    def instance(self) -> Instance:
        return Instance.from_rows("random", Layout.from_dict(self.layout), self.rows)

    def choose(self, legal, k):
        """The legal action taken at decision k."""
        return int(legal[self.choices[k % len(self.choices)] % len(legal)])


def quarters(most):
    """Numbers from 0 to `most`, half of them whole, the others with a fraction."""
    return st.integers(0, most) | st.integers(0, 4 * most).map(lambda k: k / 4)


@st.composite
def grids(draw):
    """Equal edges, two-way, sites in any order: many routes are equally short."""
    width, depth = draw(st.sampled_from([(2, 2), (3, 2), (2, 4), (3, 3)]))
    spacing = draw(st.sampled_from([1.0, 2.5, 4.0, 0.7]))
    points = draw(st.permutations([(x, y) for x in range(width) for y in range(depth)]))
    sites = [{"id": f"s{x}{y}", "x": x * spacing, "y": y * spacing} for x, y in points]
    edges = [
        {"a": f"s{x}{y}", "b": f"s{x + dx}{y + dy}"}
        for x, y in points
        for dx, dy in ((1, 0), (0, 1))
        if (x + dx, y + dy) in points
    ]
    return sites, edges


@st.composite
def scattered(draw, lengths):
    """A ring through all sites, part of it one-way, and chords: every site reaches every other."""
    points = draw(
        st.lists(st.tuples(quarters(12), quarters(12)), min_size=2, max_size=7, unique=True)
    )
    sites = [{"id": f"s{k}", "x": x, "y": y} for k, (x, y) in enumerate(points)]
    n = len(sites)
    edges = []
    for a in range(n):
        edges.append({"a": f"s{a}", "b": f"s{(a + 1) % n}", "one_way": draw(st.booleans())})
    ends = st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True)
    for a, b in draw(st.lists(ends, max_size=5)):
        edges.append({"a": f"s{a}", "b": f"s{b}", "one_way": draw(st.booleans())})
    for edge in edges:
        length = draw(st.none() | lengths)
        if length is not None:
            edge["length"] = length
    return sites, edges


def shortest_routes(floor, path, goal):
    """All shortest, or quickest, ways to complete `path`, no site twice."""
    site = path[-1]
    if site == goal:
        return [path]
    return [
        route
        for other in floor.neighbours[site]
        if other not in path
        and abs(floor.costs[site, other] + floor.least[other, goal] - floor.least[site, goal])
        <= 1e-9
        for route in shortest_routes(floor, [*path, other], goal)
    ]


@st.composite
def floors(draw, zero_lengths=False, limits=None, quickest=False):
    """Sites, edges and named routes, as a layout without vehicles; every third one has speed limits."""
    lengths = st.sampled_from([0.3, 1.0, 1.5, 2.25, 4.0, 7.1, 9.999])
    if zero_lengths:
        lengths = st.just(0.0) | lengths
    sites, edges = draw(scattered(lengths) if zero_lengths else grids() | scattered(lengths))
    layout = {"format": 1, "sites": sites, "edges": edges, "routes": []}
    if draw(st.sampled_from([False, False, True])) if limits is None else limits:
        for edge in edges:
            limit = draw(st.none() | st.sampled_from([0.4, 0.9, 1.1, 1.5, 2.5]))
            if limit is not None:
                edge["max_speed"] = limit
                if not edge.get("one_way") and draw(st.booleans()):
                    edge["max_reverse_speed"] = draw(st.sampled_from([0.5, 1.7, 9.0]))
    if quickest:
        # Which routes are the quickest is up to the fleet, so none is named.
        return {**layout, "quickest_routes": True}
    floor = Floor(layout)
    ids = list(floor.order)
    ends = st.lists(st.sampled_from(ids), min_size=2, max_size=2, unique=True).map(tuple)
    for a, b in draw(st.lists(ends, max_size=3, unique=True)):
        layout["routes"].append(draw(st.sampled_from(shortest_routes(floor, [a], b))))
    return layout


@st.composite
def fleets(draw, ids):
    """1 to 4 vehicles, each with up to 5 breakdowns, sometimes one that hits all of them at once."""
    n = draw(st.integers(1, 4))
    breakdown = st.fixed_dictionaries({"time": quarters(50), "repair_time": quarters(9)})
    shared = draw(st.lists(breakdown, max_size=1))
    return [
        {
            "id": f"v{k}",
            "start": draw(st.sampled_from(ids)),
            "speed": draw(st.sampled_from([1, 0.5, 0.7, 1.3, 2, 3])),
            "capacity": draw(st.sampled_from([0, 1, 2.5])),
            "breakdowns": shared + draw(st.lists(breakdown, max_size=4)),
        }
        for k in range(n)
    ]


@st.composite
def worlds(draw, floor=None):
    layout = dict(draw(floors() if floor is None else floor))
    ids = [site["id"] for site in layout["sites"]]
    layout["vehicles"] = draw(fleets(ids))
    layout["task_slots"] = draw(st.integers(1, 8))
    layout["truncate_distances"] = draw(st.booleans())
    layout["loads"] = draw(st.sampled_from(["return", "stay"]))
    if draw(st.booleans()):
        layout["scaling"] = SCALED
    capacities = [vehicle["capacity"] for vehicle in layout["vehicles"]]
    loads = [x for x in (0, 1, 1.5, 2.5, 4) if 0 in capacities or x <= max(capacities)]
    rows = []
    ranked, held = draw(st.sampled_from([(False, False)] * 2 + [(True, False), (True, True)]))
    for k in range(draw(st.integers(1, 8))):
        pickup, delivery = draw(st.lists(st.sampled_from(ids), min_size=2, max_size=2, unique=True))
        times = draw(st.just(0) | quarters(30)), draw(quarters(40))
        rows.append(make_task(f"t{k}", pickup, delivery, *times))
        rows[-1]["handling_time"] = draw(st.sampled_from([0, 0.5, 3.2]))
        rows[-1]["demand"] = draw(st.sampled_from(loads))
        if ranked:
            rows[-1]["priority"] = draw(st.sampled_from([0, 0, 1, 2.5]))
        if held:
            latest = int(rows[-1]["arrival_time"] + rows[-1]["expiry_time"])
            rows[-1]["earliest_start"] = draw(st.integers(0, latest))
    return World(layout, rows, draw(st.lists(st.integers(0, 999), min_size=1, max_size=20)))


def make_battery(integer, layout, rows, chargers):
    """A battery for every vehicle of a layout, with which it charges within a few hundred ticks.

    Each vehicle reaches a charger with `critical`, and does each task from any charger with `full`:
    where two chargers are too far apart it may else never reach the one from which a task fits. A slot
    gives more than the fleet uses by standing, or it may be towed for ever.
    `integer` draws a whole number from one to another.
    """
    floor = Floor(layout)
    vehicles = [read_vehicle(entry) for entry in layout["vehicles"]]
    idle, empty, loaded = (integer(0, most) for most in (1, 3, 5))

    def home(site, vehicle):
        return ticks_to_charger(floor, chargers, site, vehicle)

    def ticks(a, b, vehicle):
        return math.ceil(floor.distances[a, b] / vehicle.speed + floor.lost(a, b, vehicle.speed))

    # With a few ticks more a vehicle that was towed in mid-edge gets on.
    way = max(home(site, vehicle) for site in floor.order for vehicle in vehicles)
    critical = 1 + max(empty * way, 2 * empty, 2 * idle, 2 * loaded) + integer(0, 9)
    most = max(
        empty * (ticks(site, row["pickup"], vehicle) + home(row["delivery"], vehicle))
        + loaded * (2 + ticks(row["pickup"], row["delivery"], vehicle) + row["handling_time"])
        for site, _ in chargers
        for row in rows
        for vehicle in vehicles
    )
    full = math.ceil(critical + most) + integer(0, 30)
    resume = integer(critical, full)
    battery = {
        "capacity": full + integer(0, 20),
        "idle": idle,
        "empty": empty,
        "loaded": loaded,
        "charge": max(1 + idle * len(vehicles), full // integer(3, 40)),
        "critical": critical,
        "resume": resume,
        "good": integer(resume, full),
        "full": full,
        "tow": integer(0, 20),
    }
    if integer(0, 1):
        battery["start"] = integer(0, battery["capacity"])
    return battery


@st.composite
def with_chargers(draw, some_worlds):
    """Worlds with chargers, and with a battery for the fleet or for each vehicle."""
    world = draw(some_worlds)
    ids = [site["id"] for site in world.layout["sites"]]
    sites = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
    chargers = [(site, draw(st.integers(1, 2))) for site in sites]
    own = [{"site": site, "slots": slots} for site, slots in chargers]
    layout = {**world.layout, "chargers": own}

    def battery():
        return make_battery(drawer(draw), layout, world.rows, chargers)

    if draw(st.booleans()):
        layout["battery"] = battery()
    else:
        layout["vehicles"] = [{**entry, "battery": battery()} for entry in layout["vehicles"]]
    return replace(world, layout=layout)


@st.composite
def with_parking(draw, some_worlds):
    """Worlds with parking places, on which a vehicle may start."""
    world = draw(some_worlds)
    ids = [site["id"] for site in world.layout["sites"]]
    sites = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
    places = [{"site": site, "places": draw(st.integers(1, 2))} for site in sites]
    parking = {"after": draw(st.sampled_from([0, 1, 3, 10])), "places": places}
    return replace(world, layout={**world.layout, "parking": parking})


@st.composite
def with_closures(draw, some_worlds):
    """Worlds some of whose edges are closed for a time, one after the other or together."""
    world = draw(some_worlds)
    pairs = sorted({tuple(sorted((x["a"], x["b"]))) for x in world.layout["edges"]})
    closures = []
    for a, b in draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=4, unique=True)):
        time = 0.0
        for _ in range(draw(st.integers(1, 2))):
            time += draw(quarters(20))
            until = time + draw(st.sampled_from([0.25, 1.0, 2.5, 7.0, 30.0]))
            closures.append({"a": a, "b": b, "time": time, "until": until})
            time = until
    return replace(world, layout={**world.layout, "closures": closures})


def drawer(draw):
    """How Hypothesis draws a whole number from one to another."""
    return lambda low, high: draw(st.integers(low, high))


def chain(integer, world):
    """The world with machines, tasks in chains, and tasks announced before they are ready.

    Which of the three is up to chance; `integer` draws a whole number from one to another.
    """

    def pick(items):
        return items[integer(0, len(items) - 1)]

    has_chains, has_announced = pick([(True, True), (True, False), (True, True), (False, True)])
    rows = [dict(row) for row in world.rows]
    sites = [site for site in dict.fromkeys(row["delivery"] for row in rows) if integer(0, 3)]
    machines = [{"site": site, "servers": 1 + integer(0, 2) // 2} for site in sites]
    order = list(range(len(rows)))  # no task is chained to one that is before it here
    for k in range(len(rows)):
        other = integer(k, len(rows) - 1)
        order[k], order[other] = order[other], order[k]
    for place, k in enumerate(order):
        row = rows[k]
        if row["delivery"] in sites:
            row["processing"] = pick([0, 0.25, 1, 3, 6.5, 20])
        if has_announced:
            row["announced"] = pick([0, 0, 0.5, 2, 5.25, 12, 40, "start"])
        if integer(0, 7) == 0:
            row["expiry_time"] = None
        if has_chains and place and integer(0, 3):
            row["after"] = rows[order[integer(0, place - 1)]]["task"]
            row["arrival_time"] = pick([None, None, row["arrival_time"], 25.5])
            row.pop("earliest_start", None)
    if not any({"after", "processing", "announced"} & set(row) for row in rows):
        rows[0]["announced"] = 0
    return replace(world, layout={**world.layout, "machines": machines}, rows=rows)


@st.composite
def with_chains(draw, some_worlds):
    """Worlds with machines, chains and announced tasks; batteries and parking places come after."""
    return chain(drawer(draw), draw(some_worlds))


def chained_world(seed):
    """A small floor with machines, chains and announced tasks, or all it may have, as a seed tells."""
    draws = random.Random(seed)
    integer = draws.randint
    ids = [f"s{k}" for k in range(integer(3, 7))]
    ends = [*pairwise(ids), (ids[-1], ids[0])]
    ends += [draws.sample(ids, 2) for _ in range(integer(0, 3))]
    edges = [
        {"a": a, "b": b, "length": draws.choice([1.0, 1.5, 2.25, 4.0, 7.1]), "one_way": x < 0.3}
        for (a, b), x in ((pair, draws.random()) for pair in ends)
    ]
    vehicles = []
    for k in range(integer(1, 3)):
        own = {"id": f"v{k}", "start": draws.choice(ids), "speed": draws.choice([1, 0.7, 1.3, 2])}
        n = draws.choice([0, 0, 1, 3])
        times = [{"time": integer(0, 80), "repair_time": integer(0, 9)} for _ in range(n)]
        vehicles.append({**own, "breakdowns": times})
    layout = {
        "format": 1,
        "sites": [{"id": site, "x": 0, "y": k} for k, site in enumerate(ids)],
        "edges": edges,
        "vehicles": vehicles,
        "task_slots": 8,
        "loads": ("return", "stay")[seed % 2],
    }
    is_ranked = draws.random() < 0.2
    rows = []
    for k in range(integer(2, 10)):
        pickup, delivery = draws.sample(ids, 2)
        rows.append(make_task(f"t{k}", pickup, delivery, integer(0, 160) / 4, integer(0, 60)))
        rows[-1]["arrival_time"] *= draws.choice([0, 1])
        rows[-1]["handling_time"] = draws.choice([0, 0.5, 3.2])
        if is_ranked:
            rows[-1]["priority"] = integer(0, 1)
    if draws.random() < 0.4:
        places = [{"site": site} for site in draws.sample(ids, 2)]
        layout["parking"] = {"after": draws.choice([0, 2, 8]), "places": places}
    if draws.random() < 0.4:
        chargers = [(site, integer(1, 2)) for site in draws.sample(ids, 2)]
        layout["chargers"] = [{"site": site, "slots": slots} for site, slots in chargers]
        layout["battery"] = make_battery(integer, layout, rows, chargers)
    world = World(layout, rows, [integer(0, 999) for _ in range(20)])
    return chain(integer, world)


def straight_floor(vehicles, **keys):
    """A --10 m-- B --6 m-- C, both ways; observations show the raw numbers."""
    places = ("A", 0, 0), ("B", 10, 0), ("C", 10, 6)
    sites = [{"id": name, "x": x, "y": y} for name, x, y in places]
    return row_floor("ABC", vehicles, **{"sites": sites, "scaling": RAW, **keys})


def row_floor(names, vehicles, **keys):
    """Sites in a row, 10 m apart, and edges both ways between neighbours."""
    sites = [{"id": name, "x": 10 * k, "y": 0} for k, name in enumerate(names)]
    edges = [{"a": a, "b": b} for a, b in pairwise(names)]
    return {"format": 1, "sites": sites, "edges": edges, "vehicles": vehicles, **keys}


def make_task(task, pickup, delivery, arrival_time, expiry_time=0.0, **keys):
    times = {"arrival_time": arrival_time, "expiry_time": expiry_time}
    return {"task": task, "pickup": pickup, "delivery": delivery, **times, **keys}


def change(layout, **fields):
    """A layout of which some fields are others."""
    return Layout.from_dict({**layout.to_dict(), **fields})


def reorder(layout, order):
    """The same layout, its vehicles listed in another order."""
    vehicles = layout.to_dict()["vehicles"]
    return change(layout, vehicles=[vehicles[v] for v in order])


def move(instance, layout):
    """The same record on another floor."""
    return Instance.from_rows(instance.name, layout, instance.rows())


def cut(instance, n, name="short"):
    """The first tasks of a record, so that an episode takes few decisions."""
    return Instance.from_rows(name, instance.layout, instance.rows()[:n])


def make_hall(n_vehicles=20, n_tasks=1000, every=5.0):
    """A floor of 10 x 10 sites with a busy fleet that breaks down here and there."""
    rng = np.random.default_rng(0)
    names = [f"s{row}-{column}" for row in range(10) for column in range(10)]
    ends = [(k, k + 1) for k in range(100) if k % 10 < 9] + [(k, k + 10) for k in range(90)]
    fleet = [{"id": f"agv-{k:02d}", "start": names[k % 4], "speed": 2} for k in range(n_vehicles)]
    for k in range(0, n_vehicles, 3):
        fleet[k]["breakdowns"] = [{"time": 300 + 50 * (k % 20), "repair_time": 200}]
    sites, edges = [], []
    for k, name in enumerate(names):
        sites.append({"id": name, "x": 20 * (k % 10), "y": 15 * (k // 10), "kind": "ab"[k % 2]})
    for a, b in ends:
        way = {"length": 20, "one_way": 40 <= a == b - 1 < 49}
        edges.append({"a": names[a], "b": names[b], **way})
    layout = {"format": 1, "name": "hall", "sites": sites, "edges": edges, "vehicles": fleet}
    places = [rng.choice(100, 2, replace=False) for _ in range(n_tasks)]
    rows = [
        make_task(f"task-{k}", names[a], names[b], every * k, 300)
        for k, (a, b) in enumerate(places)
    ]
    return Instance.from_rows("busy", Layout.from_dict(layout), rows)


def parts_floor(vehicles="v"):
    """From P each vehicle may go to A and B, or to X and Y, and never back."""
    sites = [{"id": name, "x": x, "y": 0} for x, name in enumerate("PABXY")]
    edges = [{"a": "A", "b": "B"}, {"a": "X", "b": "Y"}]
    edges += [{"a": "P", "b": name, "one_way": True} for name in "AX"]
    fleet = [{"id": name, "start": "P", "speed": 1} for name in vehicles]
    return {"format": 1, "name": "parts", "sites": sites, "edges": edges, "vehicles": fleet}
