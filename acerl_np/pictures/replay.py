"""An episode as one HTML page that replays it, complete in itself; and the page of a service as it runs."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any

from acerl_np.problem.goal import PAPER
from acerl_np.problem.layout import Layout, name_stations
from acerl_np.simulation.scene import STATUSES
from acerl_np.simulation.trace import AuxiliaryMove, Decision, Step, Trace, Trip
from acerl_np.simulation.waits import list_waits
from acerl_np.support.errors import InputError
from acerl_np.support.files import MARK, FilePath, write_atomically

MOST = 2
"""Episodes that a page shows side by side."""

POLICY = '<meta http-equiv="Content-Security-Policy" content="{policy}">'

LIVE_HEAD = '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">'
"""Of the page that shows a service as it runs."""

COMMENT = re.compile(r"^ *(?:/\*(?:(?!\*/).)*\*/|//[^\n]*) *\n?", re.MULTILINE | re.DOTALL)
"""What begins lines of a module, and a page does not need."""

IMPORT = re.compile(r"^import \{[^}]*\} from \"\./(\w+)\.js\";\n", re.MULTILINE)
"""What a module of `page/` takes from another one, under the same names."""

ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
"""What could end a script element or a line of one; JSON reads the escapes as the same letters."""


def write_replay(traces: Trace | Sequence[Trace], path: FilePath) -> None:
    """Write the page that replays an episode, or two side by side.

    Parameters
    ----------
    traces : Trace or sequence of Trace
        From `replay`: one, or two of the same record.
    path : path-like

    Raises
    ------
    InputError
        If there are more, or they are of different records.
    """
    write_atomically(path, make_replay(traces).encode())


def make_replay(traces: Trace | Sequence[Trace]) -> str:
    """Return the page that replays an episode, or two side by side, as HTML.

    The page holds all that it shows, as JSON, and its policy (CSP) forbids it every access to a network.
    """
    shown = [traces] if isinstance(traces, Trace) else list(traces)
    if not 1 <= len(shown) <= MOST:
        raise InputError(f"traces: read {len(shown)}; expected one or two")
    first = shown[0].instance
    for trace in shown[1:]:
        other = trace.instance
        if (other.name, other.content_hash) != (first.name, first.content_hash):
            raise InputError(
                f"traces: read episodes of '{first.name}' and '{other.name}'; "
                "expected the same tasks, floor and breakdowns"
            )
    return fill_page("replay", ("replay.css",), "Replay", POLICY, describe_episodes(shown))[0]


def fill_page(
    name: str, styles: Sequence[str], title: str, head: str, data: object = None
) -> tuple[str, str]:
    """Return the page of a body and a module of `page/` that have this name, and its policy (CSP).

    It runs its own script, and loads nothing.
    """
    style = "".join(_strip(_read(own)) for own in styles)
    script = "".join(join_modules(name))
    own = f"script-src 'sha256-{_digest(script)}'; style-src 'sha256-{_digest(style)}'"
    policy = f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"
    parts = {"mark": MARK, "style": style, "script": script, "data": format_data(data)}
    parts |= {"title": title, "head": head.format(policy=policy), "body": _read(f"{name}.html")}
    # In one pass: what is put in is not searched for marks.
    filled = re.sub(r"<!-- put (\w+) -->", lambda mark: parts[mark[1]], _read("page.html"))
    return filled, policy


def make_live_page() -> tuple[str, str]:
    """Return the page as HTML, and its Content-Security-Policy, which goes into a header.

    The page holds nothing of a floor. It talks to the host that it came from, and to no other.
    """
    html, policy = fill_page("live", ("replay.css", "live.css"), "Dispatcher", LIVE_HEAD)
    own = "connect-src 'self'; img-src data:; frame-ancestors 'none'"
    return html, f"{policy}; {own}"


def join_modules(name: str, found: dict[str, str] | None = None) -> Iterable[str]:
    """Return the sources of a module of `page/` and of all that it imports, so ordered that they run as one.

    They share one scope: a name that begins a line of two modules would be declared twice.
    """
    found = {} if found is None else found
    if name not in found:
        source = _read(f"{name}.js")
        found[name] = ""  # taken, while those that it needs come first
        for other in IMPORT.findall(source):
            join_modules(other, found)
        del found[name]
        own = COMMENT.sub("", IMPORT.sub("", source))
        found[name] = re.sub(r"^export ", "", _strip(own), flags=re.MULTILINE)
    return found.values()


def _strip(text: str) -> str:
    return "".join(line.lstrip() for line in text.splitlines(keepends=True))


def _read(name: str) -> str:
    return (files("acerl_np.pictures") / "page" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def format_data(data: object) -> str:
    """Return data as JSON that may stand in a script element of HTML."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(ESCAPES)


def describe_episodes(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return what the page shows, as it is written into it; `page/run.js` reads it.

    Rows are lists, not objects, and sites, vehicles and tasks are positions: names stand once.
    """
    instance = traces[0].instance
    # Clocks show the record's own zone, wherever the page is read.
    zone = instance.epoch and instance.epoch.replace(tzinfo=None)
    tasks = []
    columns = instance.tasks, instance.pickup, instance.delivery, instance.arrival, instance.expiry
    for name, pickup, delivery, arrival, expiry in zip(*columns, strict=True):
        # The tick from which a task waits, and when it is due: rounding must not make it late, which counts
        # from 1e-9 s on. Where tasks follow others, both are of a run.
        times = [math.ceil(arrival), _round(arrival + expiry, 9)] if instance.is_plain else []
        tasks.append([name, int(pickup), int(delivery), *times])
    return {
        "name": instance.name,
        "epoch": zone and zone.isoformat(timespec="milliseconds"),
        **describe_floor(instance.layout),
        "tasks": tasks,
        "runs": [_describe_run(trace) for trace in traces],
    }


def describe_floor(layout: Layout) -> dict[str, Any]:
    """Return what a page shows of a floor and its fleet; `page/scene.js` reads it."""
    index, names = layout.site_index, name_stations(layout)
    berths = {item.site: [item.slots, 0] for item in layout.chargers}
    for place in layout.parking.places if layout.parking else ():
        berths.setdefault(place.site, [0, 0])[1] = place.places
    sizes = [[v.length, v.width or v.length] for v in layout.vehicles]  # m
    return {
        "layout": layout.name,
        # Last the stations that are served from a site.
        "sites": [
            [s.id, _round(s.x), _round(s.y), s.kind, ", ".join(names.get(k, []))]
            for k, s in enumerate(layout.sites)
        ],
        "edges": [[index[e.a], index[e.b], int(e.one_way)] for e in layout.edges],
        # How many may charge, and park, there at once.
        "berths": [[index[site], *numbers] for site, numbers in berths.items()],
        # With a battery its capacity and critical level.
        "vehicles": [
            [v.id, index[v.start], *([own.capacity, own.critical] if own else [])]
            for v, own in zip(layout.vehicles, layout.batteries, strict=True)
        ],
        **({"sizes": sizes} if any(map(any, sizes)) else {}),
    }


def _describe_run(trace: Trace) -> dict[str, Any]:
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    def list_decision(decision: Decision) -> list[Any]:
        reason = decision.reason
        alternatives = [
            [item.vehicle, item.task, number(item.rule), _shorten(item.value)]
            for item in reason.alternatives
        ]
        own = [decision.time, decision.vehicle, decision.task]
        told = [number(reason.by), number(reason.measure), find_chosen(decision)]
        parts = [
            [number(x.words), number(x.unit), _shorten(x.difference, 3), _shorten(x.value, 3)]
            for x in reason.parts
        ]
        outlooks = [
            [item.vehicle, item.task, number(item.what), _shorten(item.end), _shorten(item.late)]
            for item in reason.outlooks
        ]
        return [*own, *told, alternatives, *([parts, outlooks] if parts else [])]

    # Vehicles drive the same ways again and again: each stands once, with times from its start on.
    legs: dict[tuple[tuple[float, ...], ...], int] = {}

    def list_way(way: Trip | AuxiliaryMove) -> list[int]:
        own = []
        for _, group in groupby(way.steps, lambda step: step.loaded):
            steps = list(group)
            leg = tuple(_list_step(step, steps[0].start) for step in steps)
            own += [steps[0].start, legs.setdefault(leg, len(legs))]
        return own

    decisions = [list_decision(decision) for decision in trace.decisions]
    trips: list[list[Any] | None] = [None] * len(decisions)
    for trip in trace.trips:
        own = [trip.end, trip.pickup, int(trip.delivered), list_way(trip)]
        told = [trip.recall, *([trip.pause] if trip.pause else [])]
        trips[trip.decision] = own if told == [None] else [*own, *told]
    errands = [
        [number(STATUSES[own.status]), *own[1:5], int(own.arrived), list_way(own)]
        for own in trace.auxiliary_moves
    ]
    more = {} if trace.instance.is_plain else _describe_chains(trace)
    if trace.instance.layout.traffic is not None:
        more["waits"] = list_waits(trace)
    figures = ("makespan", "tardiness", "late", "waiting")
    return {
        "label": trace.label,
        "status": trace.status,
        "end": trace.end,
        **{name: _shorten(getattr(trace, name), 12) for name in figures},
        "objective": _describe_objective(trace),
        "texts": list(texts),
        "decisions": decisions,
        # The trip of each decision, in their order, null where it began none; of its way each leg's start and
        # position in `legs`; last which decision called it back.
        "trips": trips,
        "errands": errands,
        "levels": [[x for level in own for x in level] for own in trace.levels if own],
        "legs": list(legs),
        "stops": [[stop.vehicle, stop.start, stop.end] for stop in trace.stops],
        **more,
    }


def _describe_chains(trace: Trace) -> dict[str, Any]:
    """Return of each task from when on it waits, when it is due, and the one before; and machines' work.

    A task waits once it is ready, or given before that. None: never. Of a machine each server is one row.
    """
    instance, layout = trace.instance, trace.instance.layout
    first: dict[int, int] = {}
    for trip in trace.trips:
        first.setdefault(trip.task, trip.start)
    jobs, machines = [], []
    for task, after in enumerate(instance.after.tolist()):
        ready = float(trace.ready[task])
        due = ready + float(instance.expiry[task])
        begin = None if math.isnan(ready) else min(math.ceil(ready), first.get(task, math.inf))
        jobs.append([begin, _round(due, 9) if math.isfinite(due) else None, after])
    for k, server in trace.servers:
        work = [own[2:] for own in trace.processing if own[:2] == (k, server)]
        machines.append([layout.site_index[layout.machines[k].site], work])
    return {"jobs": jobs, "machines": machines}


def _describe_objective(trace: Trace) -> str:
    """Return an objective other than the makespan, with its value if the episode finished; else nothing."""
    if trace.goal.objective == PAPER.objective:
        return ""
    value = "–" if math.isnan(trace.value) else trace.goal.show(trace.value)
    return f"{trace.goal.objective}: {value}"


def find_chosen(decision: Decision) -> int:
    """Return the position of the chosen one among a decision's alternatives, -1 if it is not there."""
    for k, item in enumerate(decision.reason.alternatives):
        same = (item.vehicle, item.task) == (decision.vehicle, decision.task)
        # "network, EDD": two rules may pick one task, and only one of them was followed.
        if same and (not item.rule or decision.reason.by.split(", ")[-1] == item.rule):
            return k
    return -1


def _list_step(step: Step, start: int) -> tuple[float, ...]:
    """Return begin, sites and when the vehicle comes to the step's last place; shares unless 0 and 1."""
    begin = step.start - start
    reach = begin + (step.last - step.first) / step.pace
    row = (begin, step.origin, step.target, _round(reach))
    if (step.first, step.last) == (0.0, 1.0):
        return row
    return (*row, _round(step.first, 4), _round(step.last, 4))


def _round(value: float, digits: int = 3) -> float | int:
    """Return a number as JSON writes it in few letters."""
    rounded = round(float(value), digits)
    return int(rounded) if rounded.is_integer() else rounded


def _shorten(value: float, digits: int = 6) -> float | int | None:
    """Return a number cut to so many figures, None if it is not finite."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
