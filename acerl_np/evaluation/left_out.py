"""What the model leaves out on a floor and its records, in sentences with figures of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acerl_np.problem.instance import Instance
from acerl_np.problem.servable import describe_traffic, measure_passing


def describe_left_out(records: Sequence[Instance], *, some_meet: bool = False) -> list[str]:
    """Return what is assumed of vehicles that meet, in some rows or all, and of handling times."""
    layout = records[0].layout
    ways = {(edge.a, edge.b) for edge in layout.edges}
    ways |= {(edge.b, edge.a) for edge in layout.edges if not edge.one_way}
    both = sum((b, a) in ways for a, b in ways) // 2
    n_lanes = len({frozenset(way) for way in ways})
    assumed = "vehicles pass through each other"
    if some_meet:
        assumed = f"in rows with traffic vehicles meet; in those without {assumed}"
    elif layout.traffic is not None:
        assumed = describe_traffic(layout)
    seconds = float(np.concatenate([record.handling_time for record in records]).mean())
    handling = "none are given, so loading and unloading take no time"
    if seconds:
        handling = f"as given, {seconds:.3g} s a task in the mean"
    return [
        f"Traffic: {assumed}. {both} of {n_lanes} lanes are driven in both directions, and "
        f"{measure_passing(layout, records):.0%} of the loaded trips lead through another station.",
        f"Handling times: {handling}.",
        "Motion: turning, acceleration and people on the way cost nothing.",
    ]
