"""For whom vehicles wait that meet others: by hand, and second by second beside the visits of all."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from meeting import draw_day, line, list_visits, make_day
from pages import make_meeting

from acerl_np.evaluation.tracing import trace_policy
from acerl_np.simulation.waits import Wait, list_waits

pytestmark = [pytest.mark.oracle, pytest.mark.compiles]


def test_for_whom_vehicles_wait_by_hand():
    # v0 crosses from A to D; v1 stands at D, loads for 2 s, and leaves once v0 has come, at 32.
    trace = trace_policy("nearest", make_meeting())
    assert list_waits(trace) == [Wait(1, 2, 32, 3, 2, 0)]
    # A headway behind another: it is loaded at once, and leaves at 3.
    day = make_day(line("A", "A"), ("A", "D", 0, 0), ("A", "c", 0, 0))
    assert list_waits(trace_policy("nearest", day)) == [Wait(1, 0, 3, 0, 1, 0)]
    alone = replace(day, layout=day.layout.with_traffic("off"))
    assert list_waits(trace_policy("nearest", alone)) == []


def test_who_is_pushed_waits_on_its_edge():
    # v0 is broken 4 m beyond b, from 15 to 36: v1 stands behind it since 15, and comes to c at 45.
    floor = line("A", "A", breakdowns=[(0, 15, 20)])
    trace = trace_policy("nearest", make_day(floor, ("A", "D", 0, 0), ("A", "D", 0, 0)))
    waits = [wait for wait in list_waits(trace) if wait.vehicle == 1]
    assert waits[:2] == [Wait(1, 0, 3, 0, 1, 0), Wait(1, 15, 36, 1, 2, 0)]


def is_in_the_way(layout, visits, a, c, leaves, ticks):
    """Whether one with these visits keeps another from driving from a to c at a moment."""
    headway, comes = layout.traffic.headway, leaves + ticks
    for site, came, left in visits[:-1]:  # but for where it stays
        if site == c and not layout.sites[c].aside and came <= comes < left + headway:
            return True
    for (x, _, out), (y, arrives, _) in itertools.pairwise(visits):
        meets = (x, y) == (c, a) and layout.traffic.lanes == "shared"
        if meets and leaves < arrives and out < comes:
            return True
        is_close = leaves < out + headway or comes < arrives + headway
        if (x, y) == (a, c) and out <= leaves and is_close:
            return True
    return False


@settings(max_examples=40)
@example(11, True)  # one that drives faster enters a headway after a slower one
@example(12, True)  # the other has left its way meanwhile: nobody is in the way
@example(43, False)  # it has held the place ahead itself
@example(113, True)  # the place ahead lies aside
@example(166, False)  # the episode ends before it goes
@example(29811, True)  # another way goes on by the same edge, and sooner
@given(st.integers(0, 2**32), st.booleans())
def test_the_last_in_the_way_before_a_vehicle_goes(seed, errands):
    day = draw_day(random.Random(seed), errands=errands)
    # Some drive up to three times as fast as others.
    own = enumerate(day.layout.vehicles)
    fleet = [replace(x, speed=x.speed * (1 + v * seed % 3)) for v, x in own]
    layout = day.layout.with_fleet(fleet)
    trace = trace_policy("nearest", replace(day, layout=layout))
    assume(not trace.stops)  # of an empty battery
    vehicles = list_visits(trace)
    until = {(way.vehicle, x.start): x.until for way in trace.list_ways() for x in way.steps}
    both = ((v, *x) for v, visits in enumerate(vehicles) for x in itertools.pairwise(visits))
    goes = {(v, a, c, out) for v, (a, _, out), (c, _, _) in both}
    for v, start, end, a, c, holder in list_waits(trace):
        assert 0 <= start < end <= trace.end and holder != v
        # It got another way as it waited, or the day is over.
        if not until[v, start] == end < trace.end or (v, a, c, end) not in goes:
            continue
        ticks = int(np.ceil(layout.routes.edge_length[a, c] / layout.find_pace(v, a, c) - 1e-6))
        last = {
            (t, u)
            for u, visits in enumerate(vehicles)
            for t in range(start, end)
            if u != v and is_in_the_way(layout, visits, a, c, t, ticks)
        }
        assert holder == max(last, default=(-1, -1))[1]
