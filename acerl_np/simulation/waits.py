"""Vehicles that wait for others in an episode: where, when, and for whom."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from acerl_np.simulation.trace import Step, Trace


class Wait(NamedTuple):
    """A vehicle that waits for others.

    Attributes
    ----------
    vehicle : int
    start, end : int, s
    site, ahead : int, positions in `layout.sites`
        Where it stands, or on its way from where it stands at the end of the edge, and the place ahead.
    holder : int
        Whom it waits for: of those who held the place ahead, or the lane to it, the vehicle whose holding
        ended last before it was to go; -1 for none, as where that one got another way since, or stays.
    """

    vehicle: int
    start: int
    end: int
    site: int
    ahead: int
    holder: int


Ends = defaultdict[tuple[int, ...], list[tuple[int, int]]]
"""By place, (site,), or lane, both its sites: ticks in order, and whose they are."""


def list_waits(trace: Trace) -> list[Wait]:
    """Return who waited for others in an episode, by vehicle and start; nobody without traffic.

    Handling, and waits at a pickup for a task that is not ready, are none.
    """
    layout = trace.instance.layout
    if layout.traffic is None:
        return []
    fleet: list[list[Step]] = [[] for _ in layout.vehicles]
    for way in trace.list_ways():
        fleet[way.vehicle] += way.steps
    # When crossings begin and end, and when vehicles leave places on the lane.
    begins, ends, leaves = Ends(list), Ends(list), Ends(list)
    for v, steps in enumerate(fleet):
        for a, c, start, end in _list_crossings(steps):
            begins[a, c].append((start, v))
            ends[a, c].append((end, v))
            if not layout.sites[a].aside:
                leaves[(a,)].append((start, v))
    for ticks in (*begins.values(), *ends.values(), *leaves.values()):
        ticks.sort()
    headway, waits = layout.traffic.headway, []
    for v, step in ((v, step) for v, steps in enumerate(fleet) for step in steps):
        a, c = step.origin, step.ahead
        if c < 0 or step.start >= trace.end:
            continue
        seconds = layout.routes.edge_length[a, c] / layout.find_pace(v, a, c)
        early = headway - (math.ceil(seconds - 1e-6) if a == step.target else 0)
        held = [(leaves[(c,)], early), (ends[a, c], early), (begins[a, c], headway)]
        if layout.traffic.lanes == "shared":
            held.append((ends[c, a], 0))
        last, holder = max(_find_last(ticks, more, step.until, v) for ticks, more in held)
        end = min(step.end, trace.end)
        waits.append(Wait(v, step.start, end, a, c, holder if last > step.start else -1))
    return waits


def _list_crossings(steps: Iterable[Step]) -> list[tuple[int, int, int, int]]:
    """Return each edge that a vehicle drove, and from when until when, also if it got another way on it."""
    found: list[tuple[int, int, int, int]] = []
    for step in steps:
        a, c = step.origin, step.target
        if a == c:
            continue
        goes_on = step.first > 0.0 and found and found[-1][:2] == (a, c)
        found.append((a, c, found.pop()[2] if goes_on else step.start, step.end))
    return found


def _find_last(ticks: list[tuple[int, int]], more: int, end: int, own: int) -> tuple[int, int]:
    """Return the last of others' ticks that is not after an end, once `more` is added; -1 both for none."""
    k = bisect_right(ticks, (end - more, math.inf))
    while k > 0 and ticks[k - 1][1] == own:
        k -= 1
    return (ticks[k - 1][0] + more, ticks[k - 1][1]) if k > 0 else (-1, -1)
