r"""`acerl-np floor`: import floors from other formats, check them, show them.

Import floors from other formats, check them, show them.

Examples
--------
  acerl-np floor import plant.xml --out layout.json
  acerl-np floor import plant.xml --vehicles 8 --start parking --out layout.json
  acerl-np floor import hall.lif.json --vehicles 4 --start parking --speed 1.2 --out layout.json
  acerl-np floor import tower.lif.json --join --lift ground/lift:upper/lift:20 --vehicles 4 --start dock \
      --out layout.json
  acerl-np floor check layout.json week1.csv week2.csv
  acerl-np floor show layout.json --out floor.png
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.inputs import drop_breakdowns, report_ignored
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.commands.shared.tables import count
from acerl_np.problem import layout as layouts
from acerl_np.problem import parts, servable
from acerl_np.problem.bundled import load_layout, load_records
from acerl_np.problem.export import read_mapping
from acerl_np.problem.importers.common import complete_battery
from acerl_np.problem.importers.files import import_floor
from acerl_np.problem.instance import Instance
from acerl_np.problem.json_tree import table
from acerl_np.problem.layout import CHARGER, PARKING, Layout, find_sites
from acerl_np.problem.limits import LIFT_LENGTH, MAX_NUMBER, MAX_VEHICLES, MIN_SPEED
from acerl_np.support.errors import InputError, LayoutError, describe, list_first, make_printable
from acerl_np.support.files import write_atomically

SHOWN = 5
"""Examples that are listed of what was found."""

WIDTH, HEIGHT = 78, 30
"""Largest text picture, in characters."""

MOST_TIMES = 5
"""Breakdowns of a vehicle that are shown one by one."""

MARK = "*"

RATES = {"idle": 100, "empty": 300, "loaded": 700}
"""Typical use of a battery per second, for --battery-hours."""


def import_layout(arguments: argparse.Namespace) -> None:
    """Make a layout from LIF or openTCS.

    Turn a VDMA LIF file (JSON) or an openTCS plant model (XML) into a layout for acerl-np.

    Nodes or points become sites; a station or location alone on its only node gives that site its name, and
    records may go on using the node's. Records may name a station with several nodes, too.
    The levels of a LIF file become one floor by --join, with --lift between nodes of two of them.
    A layout needs a fleet: the plant model's vehicles, or --vehicles with --start. Vehicles have batteries
    if the command says what these hold and use; their levels are then the model's. Vehicles that cannot
    leave their starts, a floor in parts, and what could not be carried over are said on the standard error
    stream, one line each.

    Vehicles meet by --traffic beside (all stations stand beside the lane), --traffic lane (none does), or
    --aside (those that it names do), as no file tells. For what share of their ways it matters is said.
    """
    declare_outputs(arguments, [arguments.out])
    data, warnings = import_floor(
        arguments.file,
        kind=vars(arguments)["from"],
        layout_id=arguments.layout_id,
        join=arguments.join,
        battery=_read_battery(arguments),
        two_way=arguments.two_way,
    )
    data["edges"] += [_read_lift(text, data) for text in arguments.lift]
    _demand_fleet(arguments, data)
    # Whether batteries reach a charger is looked at once the vehicles stand where they start.
    own = [vehicle.pop("battery", None) for vehicle in data["vehicles"]]
    try:
        layout = Layout.from_dict(data)
        _ = layout.routes  # refuses lengths that routes cannot be told by
    except LayoutError as error:
        raise LayoutError(f"{arguments.file}: {error}") from error
    layout, where = _stand_aside(arguments, layout)
    layout = _equip(arguments, _set_out(arguments, layout), own)
    if where == "file" and not arguments.aside:
        raise InputError(
            f"--traffic: read file; expected beside, lane or --aside, as {_ask(layout)}"
        )
    if where == "off" and layout.blocks:
        blocks = count(len(layout.blocks), "block")
        warnings.append(
            f"{blocks} kept for vehicles that meet (--traffic, --aside): {_ask(layout)}"
        )
    layout = layout.with_traffic(where)
    _write(arguments, layout)
    if layout.traffic is not None:
        print(f"{layouts.describe_traffic(layout)}; {_measure_ways(layout)}")
    for line in filter(None, (servable.describe_parts(layout), *warnings)):
        print(f"{make_printable(arguments.file)}: warning: {line}", file=sys.stderr)


def _write(arguments: argparse.Namespace, layout: Layout) -> None:
    write_atomically(arguments.out, format_layout(layout).encode())
    print(f"{make_printable(arguments.out)}: {_sizes(layout)}")


def _stand_aside(arguments: argparse.Namespace, layout: Layout) -> tuple[Layout, str]:
    """Return a floor without traffic on which sites lie aside, too, and what traffic it shall have.

    They are those that --aside names: sites, stations, or kinds of sites.
    """
    words = arguments.aside or []
    where = arguments.traffic or ("file" if layout.traffic or words else "off")
    if words and where != "file":
        raise InputError(f"--aside: given with --traffic {where}; expected --traffic file")
    found: set[int] = set()
    for word in words:
        kind = {k for k, site in enumerate(layout.sites) if site.kind == word}
        named = find_sites(layout, word) or kind
        if not named:
            kinds = sorted({site.kind for site in layout.sites if site.kind})
            expected = f"sites, stations or kinds of sites: {list_first(kinds)}"
            raise InputError(f"--aside: read '{word}'; expected {expected}")
        found |= set(named)
    sites = [replace(x, aside=x.aside or k in found) for k, x in enumerate(layout.sites)]
    return replace(layout, sites=tuple(sites), traffic=None), where


def _ask(layout: Layout) -> str:
    """Return what no import tells of vehicles that meet, and for what share of their ways it matters."""
    stations = list_first([*layouts.find_stations(layout)])
    return (
        f"no file says which stations stand beside the lane ({stations}); {_measure_ways(layout)}"
    )


def _measure_ways(layout: Layout) -> str:
    share = servable.measure_passing(layout)
    return f"{0.0 if math.isnan(share) else share:.0%} of the ways between two stations lead through another"


def _read_lift(text: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the edge that A:B or A:B:LENGTH asks for; names of nodes may hold colons, too."""
    names = {site["id"]: site["id"] for site in data["sites"]}
    # An alias may be of a station that is served from several sites.
    names = {k: v for k, v in data.get("aliases", {}).items() if v in names} | names
    words = text.split(":")
    for k in range(1, len(words)):
        a, rest, shorter = (":".join(x) for x in (words[:k], words[k:], words[k:-1]))
        for b, length in ((rest, f"{LIFT_LENGTH}"), (shorter, words[-1])):
            if a in names and b in names and names[a] != names[b]:
                with suppress(ValueError):
                    if 0.0 < float(length) <= MAX_NUMBER:
                        return {"a": names[a], "b": names[b], "length": float(length)}
    some = list_first([site["id"] for site in data["sites"]])
    expected = f"expected A:B or A:B:LENGTH, two of the sites {some} and metres above 0"
    raise InputError(f"--lift: read '{text}'; {expected}")


def _demand_fleet(arguments: argparse.Namespace, data: dict[str, Any]) -> None:
    """Put vehicles into an imported layout if the arguments ask for them; refuse one without."""
    some = list_first([site["id"] for site in data["sites"]])
    if arguments.vehicles is not None:
        if arguments.start is None:
            expected = f"expected 'parking' or some of the sites {some}"
            raise InputError(f"--start: missing beside --vehicles; {expected}")
        first = data["sites"][0]["id"]
        data["vehicles"] = [{"id": f"v{k + 1}", "start": first} for k in range(arguments.vehicles)]
    elif not data["vehicles"]:
        raise InputError(
            f"{arguments.file}: no vehicles in it, and a layout needs a fleet; expected --vehicles N "
            f"--start SITE (one of {some})"
        )


def _set_out(arguments: argparse.Namespace, layout: Layout) -> Layout:
    """Return a floor whose fleet has the starts, in turn, speed and capacity that the arguments give."""
    given = {name: getattr(arguments, name) for name in ("speed", "capacity")}
    changes: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
    starts = [site for word in arguments.start or () for site in _find_starts(layout, word)]
    fleet = [replace(vehicle, **changes) for vehicle in layout.vehicles]
    if starts:
        fleet = [replace(vehicle, start=starts[k % len(starts)]) for k, vehicle in enumerate(fleet)]
    return layout.with_fleet(fleet)


def parse_pairs(text: str) -> dict[str, int]:
    """Parse "capacity=1000,idle=1"."""
    found = {}
    for part in text.split(","):
        key, _, number = part.partition("=")
        try:
            found[key.strip()] = int(number)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"read {describe(part)}; expected KEY=N, N a whole number, separated by commas"
            ) from None
    return found


def _read_battery(arguments: argparse.Namespace) -> dict[str, int] | None:
    """Return what the arguments say of a battery, levels only if they say them; None for no battery."""
    given: dict[str, int] | None = arguments.battery
    hours, minutes = arguments.battery_hours, arguments.charge_minutes
    if (hours is None) != (minutes is None) or (hours is not None and given is not None):
        raise InputError("--battery-hours: expected --charge-minutes beside it, and no --battery")
    if hours is not None:
        capacity = round(1800.0 * hours * (RATES["empty"] + RATES["loaded"]))
        given = {**RATES, "capacity": capacity, "charge": math.ceil(capacity / (60.0 * minutes))}
    if given is not None:
        whole = complete_battery(given) if "capacity" in given else given
        parts.VEHICLE["battery"].read("--battery", whole)  # refuses what is none
    return given


def _equip(
    arguments: argparse.Namespace, layout: Layout, own: Sequence[dict[str, int] | None]
) -> Layout:
    """Return a floor with the batteries, chargers and parking places that the arguments give.

    `own` is the battery of each vehicle that has one of its own.
    """

    def list_sites(kind: str) -> list[str]:
        found = [site.id for site in layout.sites if site.kind == kind]
        lost = [site for site in found if site in layout.dead_ends]
        if lost:
            said = f"sites of kind {kind}: {len(lost)} ({list_first(lost)}) left out, as no edge leads away"
            print(f"warning: {said}", file=sys.stderr)
        return [site for site in found if site not in lost]

    changes: dict[str, Any] = {}
    given = _read_battery(arguments)
    if given is not None:
        read = parts.VEHICLE["battery"].read
        batteries = [None if x is None else read("--battery", x) for x in own]
        fleet = zip(layout.vehicles, batteries, strict=True)
        changes["vehicles"] = tuple(replace(vehicle, battery=x) for vehicle, x in fleet)
        if not all(batteries):
            changes["battery"] = read("--battery", complete_battery(given))
        if not layout.chargers:
            changes["chargers"] = tuple(map(parts.Charger, list_sites(CHARGER)))
    if arguments.chargers is not None:
        changes["chargers"] = ()
    for word in arguments.chargers or ():
        name, _, slots = word.rpartition(":")
        whole = find_sites(layout, word)
        sites = whole or (find_sites(layout, name) if slots.isdecimal() else ())
        if not sites or not (whole or 1 <= int(slots) <= MAX_VEHICLES):
            raise InputError(
                f"--chargers: read '{word}'; expected sites, nodes or stations, each with SITE:SLOTS of 1 to "
                f"{MAX_VEHICLES} or for one slot without"
            )
        n = 1 if whole else int(slots)
        changes["chargers"] += tuple(parts.Charger(layout.sites[k].id, n) for k in sites)
    if arguments.parking is not None:
        after = table({"after": parts.PARKING["after"]}, dict).read("--parking", arguments.parking)
        places = list(map(parts.ParkingPlace, list_sites(PARKING)))
        if not places:
            raise InputError(f"--parking: no site of kind '{PARKING}'; expected at least one")
        changes["parking"] = parts.Parking(tuple(places), **after)
    return replace(layout, **changes) if changes else layout


def _find_starts(layout: Layout, word: str) -> list[str]:
    """Return the sites that a word of --start stands for."""
    parking = [site.id for site in layout.sites if site.kind == PARKING]
    found = [layout.sites[k].id for k in find_sites(layout, word)]
    if not found and word == PARKING:
        found = parking
    if not found and "," in word:
        return [site for part in word.split(",") for site in _find_starts(layout, part.strip())]
    if not found:
        some = list_first([site.id for site in layout.sites])
        raise InputError(
            f"--start: read '{word}'; expected sites, nodes or stations such as {some}, or '{PARKING}' "
            f"({count(len(parking), 'parking place')} on this floor)"
        )
    return found


def format_layout(layout: Layout) -> str:
    """Return a layout as JSON with one line per site, edge, vehicle and name."""
    show = partial(json.dumps, ensure_ascii=False)
    shown = []
    for key, value in layout.to_dict().items():
        marks, lines = "[]", value
        if key in ("stations", "aliases"):
            marks, lines = "{}", [f"{show(name)}: {show(item)}" for name, item in value.items()]
        elif isinstance(value, list):
            lines = [show(item) for item in value]
        if lines is value or not lines:
            shown.append(f"  {show(key)}: {show(value)}")
        else:
            listed = ",\n".join(f"    {line}" for line in lines)
            shown.append(f"  {show(key)}: {marks[0]}\n{listed}\n  {marks[1]}")
    return "{\n" + ",\n".join(shown) + "\n}\n"


def _sizes(layout: Layout) -> str:
    one_way = sum(edge.one_way for edge in layout.edges)
    return (
        f"{len(layout.sites)} sites, {len(layout.edges)} edges ({one_way} one-way), "
        f"{count(len(layout.vehicles), 'vehicle')}"
    )


def check(arguments: argparse.Namespace) -> None:
    """Check reach, and load against capacity.

    Say first which vehicles cannot leave their starts, and which parts the floor falls in; then how large it
    is, what cannot be reached on it, and whether its fleet can keep up with records; where vehicles meet, how
    much longer they drive.
    """
    layout, tasks = load_layout(arguments.layout), arguments.tasks
    if arguments.traffic is not None:
        layout = layout.with_traffic(arguments.traffic)
    # Too large demands are counted here, not refused.
    floor = layout.with_fleet(replace(vehicle, capacity=0.0) for vehicle in layout.vehicles)
    if arguments.breakdowns is not None and not tasks:
        raise InputError("--breakdowns: given without records; expected task records")
    faults = servable.describe_parts(layout)
    if faults:
        print(f"{layout.name}: {faults}", flush=True)
    with report_ignored():
        files = {"breakdowns": arguments.breakdowns, "mapping": read_mapping(arguments.mapping)}
        instances: list[Instance] = []
        for name in drop_breakdowns(tasks):
            instances += load_records(name, layout=floor, **files)
    print(f"{layout.name}: {_sizes(layout)}")
    types: dict[str, list[str]] = {}
    for name, served in layouts.find_stations(layout).items():
        types.setdefault(layouts.find_type(layout, served), []).append(name)
    for kind, own in types.items():
        print(f"{count(len(own), 'station')} of type {kind}: {list_first(own)}")
    for line in _list_energy(layout):
        print(line)
    if layout.traffic is not None:
        print(layouts.describe_traffic(layout))
    n_pairs, pairs = servable.find_unreachable(floor, SHOWN + 1)
    if n_pairs:
        print(f"unreachable pairs: {n_pairs} ({list_first([f'{a} -> {b}' for a, b in pairs])})")
    else:
        print("every site can be reached from every other")
    for vehicle, sites in servable.find_no_return(floor).items():
        places = f"{count(len(sites), 'site')}: {list_first(sites)}"
        print(f"vehicle {vehicle}: cannot return to its start from {places}")
    for instance in instances:
        fleet = [
            replace(vehicle, capacity=own.capacity)
            for vehicle, own in zip(instance.layout.vehicles, layout.vehicles, strict=True)
        ]
        load = servable.measure_load(instance, fleet)
        offered = f"offered load {load.offered:.2f} ({load.loaded:.2f} without approaches)"
        lines = [f"{instance.n_tasks} tasks in {load.span:g} s, {offered}"]
        if load.slots:
            share, slots, *said = servable.describe_charging(load, layout)
            time = f"a vehicle must charge {load.charging:.0%} of its time, {share}"
            lines += [f"{time}; slots: {load.slots:.1f} {slots}", *said]
        if load.too_heavy:
            heavy = [f"{instance.tasks[k]} ({instance.demand[k]:g})" for k in load.too_heavy]
            most = f"demand above every capacity ({layout.largest_load:g})"
            named = f"in {len(heavy)} tasks: {list_first(heavy)}"
            lines.append(f"{most} {named}; no vehicle can carry them")
        if load.loaded > 1.0:
            lines.append("this fleet cannot keep up with these records")
        elif load.offered > 1.0:
            lines.append("this fleet keeps up only with approaches shorter than the mean")
        if layout.traffic is not None:
            lines += _describe_meeting(instance)
        for line in lines:
            print(f"{instance.name}: {line}")


def _describe_meeting(instance: Instance) -> list[str]:
    """Say which tasks pass stations, and how much longer driving takes as vehicles meet."""
    from acerl_np.evaluation.past import estimate_meeting

    passing = servable.measure_passing(instance.layout, [instance])
    lines = [f"{passing:.0%} of the loaded trips lead through another station"]
    factor, error, n = estimate_meeting(instance)
    if not math.isnan(factor):
        lines.append(
            f"with nearest driving takes {factor:.3f} ± {error:.3f} times as long as where nobody meets, "
            f"over {n} trips (acerl-np floor fleet LAYOUT --lengthen {factor:.3g})"
        )
    return lines


def _list_energy(layout: Layout, most: int = SHOWN) -> list[str]:
    """Return lines on the floor's machines, chargers, parking places, and each kind of battery."""
    slots = {charger.site: charger.slots for charger in layout.chargers}
    slots = slots or {site.id: 1 for site in layout.sites if site.kind == CHARGER}
    lines = []
    if layout.machines:
        named = [x.site + f" ({x.servers} servers)" * (x.servers > 1) for x in layout.machines]
        lines.append(f"{count(len(named), 'machine')}: {list_first(named, most)}")
    if slots:
        named = [site + f" ({n} slots)" * (n > 1) for site, n in slots.items()]
        unused = "" if any(layout.batteries) else "; no vehicle has a battery"
        lines.append(f"{count(len(slots), 'charger')}: {list_first(named, most)}{unused}")
    if layout.parking is not None:
        places = [(place.site, place.places) for place in layout.parking.places]
        named = [site + f" ({n} places)" * (n > 1) for site, n in places]
        after = f"parking after {layout.parking.after} s without a task"
        lines.append(f"{after}: {count(len(named), 'site')}: {list_first(named, most)}")
    owners: dict[parts.Battery, list[str]] = {}
    for vehicle, battery in zip(layout.vehicles, layout.batteries, strict=True):
        if battery is not None:
            owners.setdefault(battery, []).append(vehicle.id)
    for battery, names in owners.items():
        hours = [
            f"{battery.capacity / rate / 3600:.1f} h {key}" if rate else f"for ever {key}"
            for key, rate in (("empty", battery.empty), ("loaded", battery.loaded))
        ]
        levels = ", ".join(
            f"{key} {getattr(battery, key) / battery.capacity:.0%}" for key in parts.THRESHOLDS
        )
        lines.append(
            f"battery of {list_first(names, most)}: lasts {hours[0]} or {hours[1]}, charged in "
            f"{battery.capacity / battery.charge / 3600:.1f} h; {levels}"
        )
    return lines


def _show_stations(layout: Layout) -> None:
    """Print each station with its type, the sites that serve it, and what else it is called."""
    called: dict[str, list[str]] = {}
    for alias, name in layout.aliases.items():
        called.setdefault(name, []).append(alias)
    stations = layouts.find_stations(layout)
    if stations:
        print("stations:")
    for name, sites in stations.items():
        line = f"  {name}  {layouts.find_type(layout, sites)}"
        if name in layout.stations:
            line += f"; served from {', '.join(layout.sites[k].id for k in sites)}"
        if name in called:
            line += f"; also called {', '.join(called[name])}"
        print(line)


def change_fleet(arguments: argparse.Namespace) -> None:
    """Write a floor with another fleet.

    Write a floor with another fleet of N vehicles: the layout's first ones with their names, and further ones
    like these in turn, where --start, --speed and --capacity do not say otherwise. Listed breakdowns are not
    repeated; batteries are, unless another one is given for all. --lengthen F makes all driving take F times
    as long, a stand-in for vehicles that wait for each other (records replay says how much longer it took);
    --traffic lets them meet, and --aside says at which stations they stand clear of the lane.

    Examples
    --------
      acerl-np floor fleet supply-loop --vehicles 6 --out loop6.json
      acerl-np floor fleet supply-loop --vehicles 6 --battery-hours 2 --charge-minutes 40 \
          --chargers park:2 rack-7 --parking after=60 --out loop6.json
      acerl-np floor fleet supply-loop --lengthen 1.08 --out busy.json
      acerl-np floor fleet supply-loop --aside storage line-1 --out met.json
    """
    declare_outputs(arguments, [arguments.out])
    layout = load_layout(arguments.layout)
    traffic, n = layout.traffic, arguments.vehicles or len(layout.vehicles)
    # Where they start, park and charge is known once all is changed.
    layout, where = _stand_aside(arguments, layout)
    layout = layouts.resize_fleet(layouts.lengthen(layout, arguments.lengthen), n)
    layout = _equip(arguments, _set_out(arguments, layout), [None] * n)
    _write(arguments, layout.with_traffic(where, traffic))


def show(arguments: argparse.Namespace) -> None:
    """Print or draw a floor.

    Show a floor: as text, or with --out as a picture (needs the extra: pip install 'acerl_np[plot]').
    """
    declare_outputs(arguments, [arguments.out])
    layout = load_layout(arguments.layout)
    if arguments.out is not None:
        from acerl_np.pictures.maps import draw_layout

        draw_layout(layout, arguments.out)
        print(make_printable(arguments.out))
        return
    print(f"{layout.name}: {_sizes(layout)}\n")
    picture, unnamed = draw_text(layout)
    print(picture + "\n")
    if unnamed:
        print("sites without room for their names:")
    for site in (layout.sites[k] for k in unnamed):
        print(f"  {site.id} at ({site.x:g}, {site.y:g})")
    _show_stations(layout)
    for line in _list_energy(layout, most=len(layout.sites)):
        print(line)
    print("edges:")
    for edge in layout.edges:
        limit = "" if edge.max_speed == math.inf else f", at most {edge.max_speed:g} m/s"
        print(f"  {edge.a} {'->' if edge.one_way else '--'} {edge.b}  {edge.length:g} m{limit}")
    print("vehicles:")
    for vehicle in layout.vehicles:
        limit = f"capacity {vehicle.capacity:g}" if vehicle.capacity else "any load"
        print(f"  {vehicle.id} at {vehicle.start}, {vehicle.speed:g} m/s, {limit}")
        if vehicle.breakdowns:
            shown = vehicle.breakdowns[:MOST_TIMES]
            times = ", ".join(f"{item.time:g} for {item.repair_time:g}" for item in shown)
            print(f"    breaks down at {times}{', ...' * bool(vehicle.breakdowns[MOST_TIMES:])} s")
        if vehicle.random_breakdowns is not None:
            model = vehicle.random_breakdowns
            often = f"every {model.mean_time_between_failures:g} s"
            long = f"for {model.mean_time_to_repair:g} s in the mean"
            print(f"    breaks down at random: {often} {long}")


def draw_text(layout: Layout) -> tuple[str, list[int]]:
    """Return lines of at most `WIDTH` characters with a mark per site, its name beside it.

    And the positions in `layout.sites` of those whose names found no room.
    """
    x, y = [site.x for site in layout.sites], [site.y for site in layout.sites]
    longest = min(max(len(site.id) for site in layout.sites), 20)
    columns = WIDTH - longest - 1
    # A character is about twice as high as wide.
    scale = max((max(x) - min(x)) / (columns - 1), (max(y) - min(y)) / (2.0 * (HEIGHT - 1))) or 1.0
    rows = [round((max(y) - b) / (2.0 * scale)) for b in y]
    places = [*zip(rows, (round((a - min(x)) / scale) for a in x), strict=True)]
    grid = [[" "] * WIDTH for _ in range(max(rows) + 1)]
    for row, column in places:
        grid[row][column] = MARK
    unnamed = []
    taken: set[tuple[int, int]] = set()
    for k, ((row, column), site) in enumerate(zip(places, layout.sites, strict=True)):
        line, length = grid[row], len(site.id)
        # At its right or at its left, a blank between it and what stands there.
        right, left = line[column + 1 : column + length + 2], line[:column][-length - 1 :]
        room = [column + 1] if column + length < WIDTH and set(right) == {" "} else []
        room += [column - length] if column >= length and set(left) == {" "} else []
        if (row, column) in taken or not room:
            unnamed.append(k)
            continue
        taken.add((row, column))
        line[room[0] : room[0] + length] = site.id
    return "\n".join("".join(line).rstrip() for line in grid), unnamed


FLOOR = opt.CommandOption(
    "layout LAYOUT.json", "a layout's file, or the name of a bundled one, such as 'dmh'"
)
FLEET = (
    opt.CommandOption(
        "--vehicles N", "a fleet of N vehicles instead of the file's", int, range=(1, MAX_VEHICLES)
    ),
    opt.CommandOption(
        "--start SITE+",
        "where the vehicles start, in turn: sites, nodes or stations by any of their names, or 'parking' for "
        "all parking places (default: the file's starts)",
    ),
    opt.CommandOption(
        "--speed S",
        "speed of every vehicle, m/s (default: the file's; of a fleet by --vehicles: 1)",
        float,
        range=(MIN_SPEED, MAX_NUMBER),
    ),
    opt.CommandOption(
        "--capacity C",
        "capacity of every vehicle in units of load, 0 for unlimited (default: 0)",
        float,
        range=(0.0, MAX_NUMBER),
    ),
)
"""A fleet in the place of another."""

MEET = (
    opt.TRAFFIC,
    opt.CommandOption(
        "--aside SITE+",
        "vehicles meet, and stand clear of the lane at these sites, stations or kinds of sites, and where "
        "the layout says so",
    ),
)
"""Vehicles that meet, and where they stand clear of the lane."""

ENERGY = (
    opt.CommandOption(
        "--battery KEY=N,...",
        "a battery for every vehicle: capacity; idle, empty, loaded, charge (used or charged in a second); "
        "start, critical, resume, good, full and tow may be added (default: charged, then the levels of the "
        "model imported, then 20, 45, 60 and 95 %% of the capacity)",
        parse_pairs,
    ),
    opt.CommandOption(
        "--battery-hours H",
        "instead: a battery for so many hours of driving, half of them loaded, with 7 : 3 : 1 used loaded, "
        "empty and idle",
        float,
        range=(0.01, 1000.0),
    ),
    opt.CommandOption(
        "--charge-minutes M", "and so many minutes to charge it", float, range=(0.1, 10000.0)
    ),
    opt.CommandOption(
        "--chargers SITE[:SLOTS]+",
        "where vehicles charge, one slot each or so many (default: the layout's; without any the sites of "
        "kind charger)",
    ),
    opt.CommandOption(
        "--parking after=N",
        "vehicles without a task drive to a free site of kind parking after N seconds",
        parse_pairs,
    ),
)
"""Batteries, chargers and parking places."""

IMPORT = (
    opt.CommandOption("file FILE", "a LIF file or an openTCS plant model"),
    opt.CommandOption("--out LAYOUT.json", "layout to write", required=True),
    opt.FORCE,
    opt.CommandOption(
        "--from", "format of FILE (default: by its content)", choices=("lif", "opentcs")
    ),
    opt.CommandOption(
        "--layout-id ID",
        "which layout of a LIF file with several to take: its layoutId, its layoutLevelId, or both "
        "as ID/LEVEL",
    ),
    opt.CommandOption(
        "--join",
        "take all layouts of a LIF file as the levels of one floor; an id of several levels becomes LEVEL/ID",
        bool,
        default=False,
    ),
    opt.CommandOption(
        "--lift A:B[:LENGTH]",
        "add a two-way edge between two nodes, LENGTH m long, the seconds that the lift takes times the "
        f"vehicles' speed (default: {LIFT_LENGTH:g}); may be given several times",
        list,
        default=[],
    ),
    opt.CommandOption(
        "--two-way",
        "every edge without an opposite one leads both ways (for files that list each way once)",
        bool,
    ),
    *FLEET,
    *MEET,
    *ENERGY,
)
CHECK = (
    FLOOR,
    opt.CommandOption("tasks TASKS.csv*", "task records to be served on it", default=[]),
    *(opt.BREAKDOWNS, opt.MAPPING, opt.TRAFFIC),
)
CHANGE = (
    FLOOR,
    opt.CommandOption("--out LAYOUT.json", "layout to write", required=True),
    opt.FORCE,
    FLEET[0].but(help="so many vehicles (default: as many as there are)"),
    opt.CommandOption("--lengthen", "factor of all driving times", float, 1.0, (0.1, 10.0)),
    *MEET,
    FLEET[1].but(help=FLEET[1].help.replace("the file's starts", "the layout's, in turn")),
    FLEET[2].but(help="speed of every vehicle, m/s (default: the layout's, in turn)"),
    FLEET[3].but(
        help="capacity of every vehicle in units of load, 0 for unlimited (default: the layout's, in turn)"
    ),
    *ENERGY,
)
PICTURE = opt.CommandOption("--out FILE", "picture to write: png, svg or pdf")
ACTIONS = {
    "import": opt.Action(import_layout, IMPORT),
    "check": opt.Action(check, CHECK, opt.OFFERED_LOAD),
    "fleet": opt.Action(change_fleet, CHANGE),
    "show": opt.Action(show, (FLOOR, PICTURE, opt.FORCE)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    opt.add_actions(parser, ACTIONS)
