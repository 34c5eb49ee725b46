"""A small episode for tests of pages, and names that would do harm as HTML."""

from dataclasses import replace
from itertools import pairwise

from meeting import line, make_day
from worlds import make_task

from acerl_np import Instance, Layout, load_instance

HOSTILE = "</script><img src=x onerror=alert(1)>"
EVIL = ("<!-- put script -->", "&lt;b&gt;\"'`${1}", "<!--<script>", HOSTILE)


def make_instance(names=("a", "b", "c", "d"), **more):
    """Four sites in a row, two vehicles, one of which breaks down on its way."""
    layout = {
        "format": 1,
        "name": names[3],
        "sites": [
            {"id": name, "x": 10 * k, "y": 5 * k, "kind": names[0]} for k, name in enumerate(names)
        ],
        "edges": [{"a": a, "b": b} for a, b in pairwise(names)],
        "vehicles": [
            {"id": names[1], "start": names[0], "speed": 0.7},
            {"id": names[2], "start": names[3], "breakdowns": [{"time": 30, "repair_time": 9}]},
        ],
    }
    rows = [
        make_task(f"{names[3]}{k}", names[k % 4], names[(k + 2) % 4], 8.5 * k, 31.3)
        | {"handling_time": 2.5 * (k % 2)}
        for k in range(9)
    ]
    return Instance.from_rows("small", Layout.from_dict(layout), rows, **more)


BATTERY = {
    **{"capacity": 4000, "idle": 1, "empty": 3, "loaded": 7, "charge": 20},
    **{"critical": 700, "resume": 1200, "good": 2300, "full": 3700},
}


def make_powered():
    """DMH-01 with a charger, two parking places and batteries, whose tasks may be called back."""
    record = load_instance("DMH-01")
    layout = record.layout.to_dict()
    layout |= {"battery": BATTERY, "chargers": [{"site": "p1"}]}
    layout["parking"] = {"after": 5, "places": [{"site": "p3"}, {"site": "p2"}]}
    layout = Layout.from_dict(layout).with_commitment("pickup")
    return Instance.from_rows("powered", layout, record.rows())


def make_chained():
    """EX11, whose tasks are never due, known when the processing before them begins; m1 has two servers."""
    record = load_instance("EX11")
    layout = record.layout.to_dict()
    layout["machines"][0]["servers"] = 2
    rows = [{**row, "announced": "start"} for row in record.rows()]
    rows[-1]["expiry_time"] = 5.0
    return Instance.from_rows("chained", Layout.from_dict(layout), rows)


def make_meeting():
    """Two vehicles that cross a line head-on: v1 waits for v0 from 2 to 32, at D."""
    floor = line("A", "D")
    sites = tuple(replace(site, x=10.0 * k) for k, site in enumerate(floor.sites))
    return make_day(replace(floor, sites=sites), ("A", "D", 0, 4), ("D", "A", 0, 4))
