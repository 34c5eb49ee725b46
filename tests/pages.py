"""A small episode for tests of pages, and names that would do harm as HTML."""

from itertools import pairwise

from acerl_np import Instance, Layout

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
        {
            "task": f"{names[3]}{k}",
            "pickup": names[k % 4],
            "delivery": names[(k + 2) % 4],
            "arrival_time": 8.5 * k,
            "expiry_time": 31.3,
            "handling_time": 2.5 * (k % 2),
        }
        for k in range(9)
    ]
    return Instance.from_rows("small", Layout.from_dict(layout), rows, **more)
