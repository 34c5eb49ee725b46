"""What the model leaves out on a floor and its records, in sentences with figures of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acerl_np.problem.instance import Instance


def describe_left_out(records: Sequence[Instance]) -> list[str]:
    """Return what vehicles that meet would change here, and whether handling times are given.

    Stations are the sites at which tasks of these records begin or end.
    """
    layout = records[0].layout
    ways = {(edge.a, edge.b) for edge in layout.edges}
    ways |= {(edge.b, edge.a) for edge in layout.edges if not edge.one_way}
    both = sum((b, a) in ways for a, b in ways) // 2
    n_lanes = len({frozenset(way) for way in ways})
    station = np.zeros(len(layout.sites))
    for record in records:
        station[record.pickup] = station[record.delivery] = 1.0
    met = layout.routes.add_along(np.tile(station, (len(station), 1)))
    through = [met[x.pickup, x.delivery] - (x.pickup != x.delivery) > 0.0 for x in records]
    share = float(np.concatenate(through).mean())
    seconds = float(np.concatenate([record.handling_time for record in records]).mean())
    handling = "none are given, so loading and unloading take no time"
    if seconds:
        handling = f"as given, {seconds:.3g} s a task in the mean"
    return [
        f"Traffic: vehicles pass through each other. {both} of {n_lanes} lanes are driven in both "
        f"directions, and {share:.0%} of the loaded trips lead through another station.",
        f"Handling times: {handling}.",
        "Motion: turning, acceleration and people on the way cost nothing.",
    ]
