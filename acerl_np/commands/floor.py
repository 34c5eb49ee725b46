"""`acerl-np floor`: describe, import, check, show and edit floors.

Describe, import, check, show and edit floors.

Examples
--------
  acerl-np floor import plant.xml --out layout.json
  acerl-np floor edit layout.json --vehicles 8 --start parking --out eight.json
  acerl-np floor check layout.json --on 'days/*.csv'
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from acerl_np.commands.shared import inputs
from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared.options import number
from acerl_np.commands.shared.outputs import declare_outputs, make_folder
from acerl_np.commands.shared.tables import count
from acerl_np.pictures.text import draw_text
from acerl_np.problem import layout as layouts
from acerl_np.problem import parts, servable
from acerl_np.problem.bundled import expand_names, load_layout, load_records
from acerl_np.problem.clearance import describe_near, keep_apart
from acerl_np.problem.export import read_mapping
from acerl_np.problem.importers.common import complete_battery
from acerl_np.problem.importers.files import read_floor
from acerl_np.problem.importers.tables import TEMPLATE
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import CHARGER, PARKING, Layout, find_sites
from acerl_np.problem.limits import LIFT_LENGTH, MAX_NUMBER, MAX_TOW, MAX_VEHICLES, MIN_SPEED
from acerl_np.problem.parts import make_schema
from acerl_np.support.errors import InputError, LayoutError, describe, list_first, make_printable
from acerl_np.support.fields import UNUSABLE, Field
from acerl_np.support.files import FilePath, path_exists, write_atomically

SHOWN = 5
"""Examples that are listed of what was found."""

MOST_TIMES = 5
"""Breakdowns of a vehicle that are shown one by one."""

RATES = {"idle": 100, "empty": 300, "loaded": 700}
"""Typical use of a battery per second, for hours of driving, half of them loaded."""

TIMES = {"hours": Field(float, 0.01, 1000.0), "minutes": Field(float, 0.1, 10000.0)}
"""What --battery may say instead: how long it lasts, and how long charging it takes."""


def new(arguments: argparse.Namespace) -> None:
    """Write two tables to describe a floor by hand: sites and paths.

    They hold a floor of five sites, with what each column means. Edit them in any editor or spreadsheet, then
    import them. layout.schema.json beside them tells editors what layout.json may hold.

    Examples
    --------
      acerl-np floor new hall
      acerl-np floor import hall/sites.csv hall/paths.csv --vehicles 2 --start Park --out layout.json
      acerl-np floor show layout.json
    """
    schema = json.dumps(make_schema(), indent=1) + "\n"
    texts = {**TEMPLATE, "layout.schema.json": schema}
    folder = Path(arguments.folder)
    files = {folder / name: text for name, text in texts.items()}
    for path in files:
        if path_exists(path):
            raise InputError(f"{make_printable(str(path))} exists; expected a new folder")
    make_folder(folder)
    for path, text in files.items():
        write_atomically(path, text.encode())
        print(make_printable(str(path)))
    tables = " ".join(str(folder / name) for name in TEMPLATE)
    print(f"next: acerl-np floor import {tables} --vehicles 2 --start parking --out layout.json")


def import_layout(arguments: argparse.Namespace) -> None:
    """Make a layout from a LIF or openTCS file, or from two CSV files.

    Or from two CSV files, of sites and of paths: acerl-np floor new writes such, to be edited. What could not
    be carried over is said in a line each. acerl-np floor edit adds what files do not tell: speeds, chargers,
    traffic.

    Examples
    --------
      acerl-np floor import plant.xml --out layout.json
      acerl-np floor import hall/sites.csv hall/paths.csv --vehicles 4 --start parking --out layout.json
      acerl-np floor import tower.json --join --lift ground/a:upper/a:20 --vehicles 4 --start dock -o t.json
    """
    declare_outputs(arguments, [arguments.out])
    names = ["vehicles", "start", "battery", "layout_id", "join", "two_way"]
    names += ["vehicle_length", "vehicle_width"]
    how = {name: getattr(arguments, name) for name in names}
    layout, warnings = import_floor(*arguments.files, **how, lifts=arguments.lift)
    _write(arguments, layout)
    for line in warnings:
        print(f"{make_printable(arguments.files[0])}: warning: {line}", file=sys.stderr)


class FloorImport(NamedTuple):
    """A floor from a file of another system.

    Attributes
    ----------
    layout : Layout
    warnings : list of str
        What could not be carried over.
    """

    layout: Layout
    warnings: list[str]


def import_floor(
    path: FilePath,
    *further: FilePath,
    vehicles: int | None = None,
    start: Sequence[str] | None = None,
    battery: Mapping[str, int] | None = None,
    layout_id: str | None = None,
    join: bool = False,
    lifts: Sequence[str] = (),
    two_way: bool = False,
    vehicle_length: float | None = None,
    vehicle_width: float | None = None,
) -> FloorImport:
    """Make a layout from a LIF file, an openTCS plant model, or two tables (CSV, .xlsx) of sites and paths.

    Parameters
    ----------
    path : path-like
    *further : path-like
        Of two tables the second.
    vehicles : int, optional
        Size of the fleet, which LIF files do not tell.
    start : sequence of str, optional
        Where vehicles start, in turn: sites, stations, or "parking".
    battery : mapping of str to int, optional
        Of every vehicle, with the keys of a layout's battery.
    layout_id : str, optional
        Of a LIF file: which layout, by its id, level, or ID/LEVEL.
    join : bool
        Whether all layouts of a LIF file are levels of one floor.
    lifts : sequence of str
        Two-way edges to add, A:B or A:B:LENGTH in m.
    two_way : bool
        Whether edges without an opposite lead both ways.
    vehicle_length, vehicle_width : float, optional, m
        Of every vehicle; blocks then keep places apart that are nearer.

    Returns
    -------
    FloorImport

    Raises
    ------
    LayoutError, InputError
        If the file cannot be read, or has no vehicles and none are given.
    """
    how: dict[str, Any] = {"layout_id": layout_id, "join": join, "two_way": two_way}
    data, warnings = read_floor(path, *further, battery=_read_battery(battery), **how)
    data["loads"] = "stay"
    data["edges"] += [_read_lift(text, data) for text in lifts]
    _demand_fleet(path, vehicles, start, data)
    # Whether batteries reach a charger is looked at once the vehicles stand where they start.
    own = [vehicle.pop("battery", None) for vehicle in data["vehicles"]]
    try:
        layout = Layout.from_dict(data)
        _ = layout.routes  # refuses lengths that routes cannot be told by
    except LayoutError as error:
        raise LayoutError(f"{path}: {error}") from error
    layout = _equip(battery, _start(start, layout), own)
    layout = _keep_apart(layout, vehicle_length, vehicle_width)
    warnings += [told] if (told := describe_near(layout)) else []
    if layout.blocks:
        blocks = count(len(layout.blocks), "block")
        warnings.append(
            f"{blocks} kept for traffic (floor edit --traffic or --aside): {_ask(layout)}"
        )
    faults = servable.describe_parts(layout)
    return FloorImport(layout, [*([faults] if faults else []), *warnings])


def _keep_apart(layout: Layout, length: float | None, width: float | None) -> Layout:
    """Return a floor with vehicles of a length and width, if given, and blocks of what is nearer."""
    if length is None and width is not None:
        raise InputError("--vehicle-width: given without --vehicle-length; expected both")
    return layout if length is None else keep_apart(layout, length, width or 0.0)


def _write(arguments: argparse.Namespace, layout: Layout) -> None:
    write_atomically(arguments.out, format_layout(layout).encode())
    print(f"{make_printable(arguments.out)}: {layout.sizes}")


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
    """Return what no import tells of vehicles that block each other, and the share of routes affected."""
    stations = list_first([*layouts.find_stations(layout)])
    return (
        f"no file says which stations stand beside the lane ({stations}); {_measure_ways(layout)}"
    )


def _measure_ways(layout: Layout) -> str:
    share = servable.measure_passing(layout)
    told = f"{0.0 if math.isnan(share) else share:.0%} of the routes between two stations"
    return f"{told} lead through another"


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


def _demand_fleet(
    path: FilePath, n: int | None, start: Sequence[str] | None, data: dict[str, Any]
) -> None:
    """Put n vehicles into an imported layout if they are asked for; refuse one without."""
    some = list_first([site["id"] for site in data["sites"]])
    if n is not None:
        if start is None:
            expected = f"expected 'parking' or some of the sites {some}"
            raise InputError(f"--start: missing beside --vehicles; {expected}")
        first = data["sites"][0]["id"]
        data["vehicles"] = [{"id": f"v{k + 1}", "start": first} for k in range(n)]
    elif not data["vehicles"]:
        raise InputError(
            f"{path}: no vehicles in it, and a layout needs a fleet; expected --vehicles N "
            f"--start SITE (one of {some})"
        )


def _start(words: Sequence[str] | None, layout: Layout) -> Layout:
    """Return a floor whose vehicles start, in turn, where --start says."""
    starts = [site for word in words or () for site in _find_starts(layout, word)]
    if not starts:
        return layout
    fleet = layout.vehicles
    return layout.with_fleet(
        replace(vehicle, start=starts[k % len(starts)]) for k, vehicle in enumerate(fleet)
    )


def parse_battery(text: str) -> dict[str, int]:
    """Parse "capacity=1000,idle=1,...", or "hours=2,minutes=40"."""
    found: dict[str, float] = {}
    for part in text.split(","):
        key, _, number = part.partition("=")
        try:
            found[key.strip()] = float(number) if key.strip() in TIMES else int(number)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"read {describe(part)}; expected KEY=N, N a whole number, separated by commas"
            ) from None
    if found.keys() == TIMES.keys():
        for key, field in TIMES.items():
            if field.take(found[key]) is UNUSABLE:
                said = f"{key}: read {found[key]:g}; expected {field.words}"
                raise argparse.ArgumentTypeError(said)
        capacity = round(1800.0 * found["hours"] * (RATES["empty"] + RATES["loaded"]))
        charge = math.ceil(capacity / (60.0 * found["minutes"]))
        return {**RATES, "capacity": capacity, "charge": charge}
    if found.keys() & TIMES.keys():
        raise argparse.ArgumentTypeError(f"read {describe(text)}; expected hours=H,minutes=M alone")
    return {key: int(number) for key, number in found.items()}


def _read_battery(given: Mapping[str, int] | None) -> Mapping[str, int] | None:
    """Return what --battery says, levels only if it says them; None for no battery."""
    if given is not None:
        whole = complete_battery(given) if "capacity" in given else given
        parts.VEHICLE["battery"].read("--battery", whole)  # refuses what is none
    return given


def _equip(
    battery: Mapping[str, int] | None, layout: Layout, own: Sequence[dict[str, int] | None]
) -> Layout:
    """Return a floor with the batteries that are given, and chargers if it has none.

    `own` is the battery of each vehicle that has one of its own.
    """
    changes: dict[str, Any] = {}
    given = _read_battery(battery)
    if given is not None:
        read = parts.VEHICLE["battery"].read
        batteries = [None if x is None else read("--battery", x) for x in own]
        fleet = zip(layout.vehicles, batteries, strict=True)
        changes["vehicles"] = tuple(replace(vehicle, battery=x) for vehicle, x in fleet)
        if not all(batteries):
            changes["battery"] = read("--battery", complete_battery(given))
        if not layout.chargers:
            changes["chargers"] = tuple(map(parts.Charger, _list_sites(layout, CHARGER)))
    return replace(layout, **changes) if changes else layout


def _list_sites(layout: Layout, kind: str) -> list[str]:
    """Return the sites of a kind from which an edge leads away; say which others there are."""
    found = [site.id for site in layout.sites if site.kind == kind]
    lost = [site for site in found if site in layout.dead_ends]
    if lost:
        said = f"sites of kind {kind}: {len(lost)} ({list_first(lost)}) left out, as no edge leads away"
        print(f"warning: {said}", file=sys.stderr)
    return [site for site in found if site not in lost]


def _change_stops(arguments: argparse.Namespace, layout: Layout) -> Layout:
    """Return a floor with the chargers and parking places that the arguments give."""
    changes: dict[str, Any] = {}
    if arguments.chargers:
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
        places = list(map(parts.ParkingPlace, _list_sites(layout, PARKING)))
        if not places:
            raise InputError(f"--parking: no site of kind '{PARKING}'; expected at least one")
        changes["parking"] = parts.Parking(tuple(places), after=arguments.parking)
    return replace(layout, **changes) if changes else layout


def _find_starts(layout: Layout, word: str) -> list[str]:
    """Return the sites that a word of --start stands for."""
    parking = [site.id for site in layout.sites if site.kind == PARKING]
    found = [layout.sites[k].id for k in find_sites(layout, word)]
    if not found and word == PARKING:
        found = parking
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


class FloorCheck(NamedTuple):
    """What can be reached on a floor, and what records ask of its fleet.

    Attributes
    ----------
    n_unreachable : int
        Pairs of sites without a way from the first to the second.
    unreachable : list of (str, str)
        The first of them.
    no_return : dict of str to list of str
        By vehicle: sites from which it cannot return to its start.
    loads : list of Load
        What each record asks of the fleet.
    passing : list of float
        With traffic: share of each record's loaded trips that lead through another station.
    lengthening : list of (float, float, int)
        With traffic: how many times as long driving takes with the rule nearest, its error, and of how many
        trips.
    """

    n_unreachable: int
    unreachable: list[tuple[str, str]]
    no_return: dict[str, list[str]]
    loads: list[servable.Load]
    passing: list[float]
    lengthening: list[tuple[float, float, int]]


def check_floor(layout: Layout, records: Sequence[Instance] = ()) -> FloorCheck:
    """Check what can be reached on a floor, and whether its fleet can serve records.

    Parameters
    ----------
    layout : Layout
    records : sequence of Instance
        On this floor. Its capacities count, not theirs.

    Returns
    -------
    FloorCheck

    Raises
    ------
    InputError
        If a record's fleet is of another size.
    """
    loads, passing, lengthening = [], [], []
    for record in records:
        n, own_n = len(record.layout.vehicles), len(layout.vehicles)
        if n != own_n:
            raise InputError(f"{record.name}: {n} vehicles; expected {own_n}, as on {layout.name}")
        fleet = zip(record.layout.vehicles, layout.vehicles, strict=True)
        vehicles = [replace(vehicle, capacity=own.capacity) for vehicle, own in fleet]
        loads.append(servable.measure_load(record, vehicles))
        if layout.traffic is not None:
            from acerl_np.evaluation.past import estimate_meeting

            passing.append(servable.measure_passing(record.layout, [record]))
            lengthening.append(estimate_meeting(record))
    pairs, returns = servable.find_unreachable(layout, SHOWN + 1), servable.find_no_return(layout)
    return FloorCheck(*pairs, returns, loads, passing, lengthening)


def check(arguments: argparse.Namespace) -> None:
    """Check what can be reached, and whether the fleet can serve records.

    Offered load is the time that the tasks take (mean approach, route, handling), divided by the time that
    the fleet has. Above 1 the fleet keeps up only with approaches shorter than the mean.

    Examples
    --------
      acerl-np floor check layout.json
      acerl-np floor check layout.json --on week1.csv,week2.csv
      acerl-np floor check layout.json --on 'days/*.csv' --traffic beside
    """
    layout = load_layout(arguments.layout)
    if arguments.traffic is not None:
        layout = layout.with_traffic(arguments.traffic)
    # Too large demands are counted here, not refused.
    floor = layout.with_fleet(replace(vehicle, capacity=0.0) for vehicle in layout.vehicles)
    names = expand_names(arguments.on)
    breakdowns, model = inputs.read_breakdowns(arguments.breakdowns or ())
    if arguments.breakdowns and not names:
        raise InputError("--breakdowns: given without records; expected --on RECORDS")
    faults = servable.describe_parts(layout)
    if faults:
        print(f"{layout.name}: {faults}", flush=True)
    with inputs.report_ignored():
        files: dict[str, Any] = {
            "breakdowns": breakdowns,
            "mapping": read_mapping(arguments.mapping),
        }
        loaded = [x for name in names for x in load_records(name, layout=floor, **files)]
    records = inputs.vary_breakdowns(loaded, model)
    show_floor(layout)
    show_check(check_floor(layout, records), layout, records)


def show_floor(layout: Layout) -> None:
    """Print what a floor has."""
    print(f"{layout.name}: {layout.sizes}")
    types: dict[str, list[str]] = {}
    for name, served in layouts.find_stations(layout).items():
        types.setdefault(layouts.find_type(layout, served), []).append(name)
    for kind, own in types.items():
        print(f"{count(len(own), 'station')} of type {kind}: {list_first(own)}")
    for line in _list_energy(layout):
        print(line)
    if layout.traffic is not None:
        print(servable.describe_traffic(layout))
    if told := describe_near(layout):
        print(told)
    sys.stdout.flush()  # a check may take long


def show_check(found: FloorCheck, layout: Layout, records: Sequence[Instance]) -> None:
    """Print what a check of a floor found."""
    if found.n_unreachable:
        pairs = list_first([f"{a} -> {b}" for a, b in found.unreachable])
        print(f"unreachable pairs: {found.n_unreachable} ({pairs})")
    else:
        print("every site can be reached from every other")
    for vehicle, sites in found.no_return.items():
        places = f"{count(len(sites), 'site')}: {list_first(sites)}"
        print(f"vehicle {vehicle}: cannot return to its start from {places}")
    for k, (instance, load) in enumerate(zip(records, found.loads, strict=True)):
        offered = f"offered load {load.offered:.2f} ({load.loaded:.2f} without approaches)"
        lines = [f"{instance.n_tasks} tasks in {load.span:g} s, {offered}"]
        if load.slots:
            share, slots, *said = servable.describe_charging(load, layout)
            time = f"a vehicle must charge {load.charging:.0%} of its time, {share}"
            lines += [f"{time}; slots: {load.slots:.1f} {slots}", *said]
        if load.too_heavy:
            heavy = [f"{instance.tasks[i]} ({instance.demand[i]:g})" for i in load.too_heavy]
            most = f"demand above every capacity ({layout.largest_load:g})"
            named = f"in {len(heavy)} tasks: {list_first(heavy)}"
            lines.append(f"{most} {named}; no vehicle can carry them")
        if load.loaded > 1.0:
            lines.append("this fleet cannot keep up with these records")
        elif load.offered > 1.0:
            lines.append("this fleet keeps up only with approaches shorter than the mean")
        if layout.traffic is not None:
            lines.append(f"{found.passing[k]:.0%} of the loaded trips lead through another station")
            factor, error, n = found.lengthening[k]
            if not math.isnan(factor):
                lines.append(
                    f"with nearest driving takes {factor:.3f} (se {error:.3f}) times as long as where nobody "
                    f"meets, over {n} trips (acerl-np floor edit LAYOUT --lengthen {factor:.3g})"
                )
        for line in (*lines, *servable.list_doubts(instance)):
            print(f"{instance.name}: {line}")


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


def edit(arguments: argparse.Namespace) -> None:
    """Write a floor with another fleet, speeds, chargers, or traffic.

    Further vehicles are like the first ones in turn. Listed breakdowns are not repeated.

    Examples
    --------
      acerl-np floor edit supply-loop --vehicles 6 --speed 1.2 --out six.json
      acerl-np floor edit six.json --battery hours=2,minutes=40 --chargers park:2,rack-7 --out e.json
      acerl-np floor edit supply-loop --traffic file --aside storage,line-1 --out met.json
    """
    declare_outputs(arguments, [arguments.out])
    layout = load_layout(arguments.layout)
    traffic, n = layout.traffic, arguments.vehicles or len(layout.vehicles)
    # Where they start, park and charge is known once all is changed.
    layout, where = _stand_aside(arguments, layout)
    layout = layouts.resize_fleet(layouts.lengthen(layout, arguments.lengthen), n)
    given = {name: getattr(arguments, name) for name in ("speed", "capacity")}
    changes: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
    layout = layout.with_fleet(replace(vehicle, **changes) for vehicle in layout.vehicles)
    layout = _change_stops(arguments, _start(arguments.start, layout))
    layout = _keep_apart(layout, arguments.vehicle_length, arguments.vehicle_width)
    layout = _equip(arguments.battery, layout, [None] * n).with_traffic(where, traffic)
    _write(arguments, layout)
    if told := describe_near(layout):
        print(told)
    if layout.traffic is not None:
        print(f"{servable.describe_traffic(layout)}; {_measure_ways(layout)}")


def show(arguments: argparse.Namespace) -> None:
    """Print a floor as text.

    As a picture: acerl-np plot floor.

    Examples
    --------
      acerl-np floor show dmh
      acerl-np floor show layout.json
      acerl-np floor show supply-loop
    """
    layout = load_layout(arguments.layout)
    print(f"{layout.name}: {layout.sizes}\n")
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
            long = f"for {model.mean_time_to_repair:g} s on average"
            print(f"    breaks down at random: {often} {long}")


FLOOR = opt.Argument("layout LAYOUT", "a layout's file, or a bundled floor such as dmh")
VEHICLES = opt.Argument(
    "--vehicles N", "size of the fleet (default: as it is)", Field(int, 1, MAX_VEHICLES)
)
START = opt.Argument(
    "--start SITES", "where vehicles start, in turn: sites or stations, or 'parking'", opt.NAMES
)
BATTERY = opt.Argument(
    "--battery KEY=N,...",
    "battery of every vehicle: hours=H,minutes=M (of driving, to charge); or capacity, idle, empty, loaded, "
    "charge (per s), start, critical, resume, good, full, tow",
    parse_battery,
)
SIZE = (
    opt.Argument(
        "--vehicle-length M",
        "length of every vehicle, m: places that are nearer exclude each other",
        number(0.0, MAX_NUMBER),
    ),
    opt.Argument(
        "--vehicle-width M",
        "width of every vehicle, m (default: its length)",
        number(0.0, MAX_NUMBER),
    ),
)
OUT = (opt.OUT.but(usage="-o/--out LAYOUT", help="layout to write", required=True), opt.FORCE)
IMPORT: opt.Options = {
    "": (opt.Argument("files FILE+", "a LIF file, a plant model, or two tables"),),
    opt.PLAY: (VEHICLES, START, BATTERY, *SIZE),
    opt.RECORDS: (
        opt.Argument("--layout-id ID", "which layout of a LIF file: its id, level, or ID/LEVEL"),
        opt.Argument("--join", "all layouts of a LIF file are levels of one floor", opt.SWITCH),
        opt.Argument(
            "--lift A:B[:LENGTH]",
            f"add a two-way edge of LENGTH m (default: {LIFT_LENGTH:g}); may be repeated",
            opt.EACH,
            default=[],
        ),
        opt.Argument("--two-way", "edges without an opposite lead both ways", opt.SWITCH),
    ),
    opt.OUTPUT: OUT,
}
CHECK: opt.Options = {
    "": (FLOOR,),
    opt.PLAY: (opt.TRAFFIC,),
    opt.RECORDS: (opt.ON.but(help=opt.RECORDS_PLACE.help), *opt.READING[1:]),
}
EDIT: opt.Options = {
    "": (FLOOR,),
    opt.PLAY: (
        *(VEHICLES, START),
        opt.Argument("--speed S", "speed of every vehicle, m/s", number(MIN_SPEED, MAX_NUMBER)),
        opt.Argument(
            "--capacity C", "capacity of every vehicle, 0 for unlimited", number(0.0, MAX_NUMBER)
        ),
        *(BATTERY, *SIZE),
        opt.Argument(
            "--chargers SITE[:SLOTS],...",
            "where vehicles charge (default: the layout's; without any the sites of kind charger)",
            opt.NAMES,
        ),
        opt.Argument(
            "--parking SECONDS",
            "vehicles without a task drive to a free site of kind parking after that",
            Field(int, 0, MAX_TOW),
        ),
        opt.Argument("--lengthen X", "factor of all driving times", layouts.LENGTHEN, 1.0),
        opt.TRAFFIC,
        opt.Argument("--aside SITES", "sites, stations or kinds of sites off the lane", opt.NAMES),
    ),
    opt.OUTPUT: OUT,
}
ACTIONS = {
    "new": opt.Action(new, {"": (opt.Argument("folder DIR", "a new folder"),)}),
    "import": opt.Action(import_layout, IMPORT),
    "check": opt.Action(check, CHECK),
    "show": opt.Action(show, {"": (FLOOR,)}),
    "edit": opt.Action(edit, EDIT),
}
