"""Gantt charts and traffic: bars are the trace's steps, edges as busy as a slow count says."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from boxes import draw_figure, draw_texts, find_faults
from pages import make_powered
from worlds import make_hall, make_task, straight_floor

import acerl_np
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.pictures.gantt import LOOKS, draw_gantt, list_bars
from acerl_np.pictures.maps import count_traffic, draw_traffic
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout


@pytest.fixture(scope="module")
def traces():
    return [
        trace_policy("EDD", acerl_np.load_instance("DMH-01")),
        trace_policy("STD", make_hall(n_tasks=120)),
        trace_policy("nearest", make_powered()),
    ]


def test_bars_are_the_steps_of_the_trace(traces):
    for trace in traces:
        bars = list_bars(trace)
        assert {bar.kind for bar in bars} == set(list(LOOKS)[: 5 if trace.errands == () else -4])
        late = {k for k, delay in enumerate(trace.lateness) if delay > 0}
        for trip in trace.trips:
            own = [
                bar
                for bar in bars
                if (bar.row, bar.task) == (trip.vehicle, trip.task)
                and trip.start <= bar.start <= bar.end <= trip.end
            ]
            for loaded in (False, True) if trip.delivered else ():
                steps = [step for step in trip.steps if step.loaded is loaded]
                ways = [bar for bar in own if (bar.kind != "way") is loaded]
                drawn = sum(bar.end - bar.start for bar in ways)
                assert drawn == (max(x.end for x in steps) - steps[0].start if steps else 0)
                kind = "late" if trip.task in late else "loaded"
                assert all(bar.kind == (kind if loaded else "way") for bar in ways)
            if not trip.delivered:
                kind = "undone" if trip.recall is None else "recalled"
                assert [bar.kind for bar in own] == [kind] * (trip.end > trip.start)
        broken = Counter(bar.row for bar in bars if bar.kind == "broken")
        assert broken == Counter(stop.vehicle for stop in trace.stops)
        drawn = Counter((bar.row, bar.start, bar.end) for bar in bars if bar.task is None)
        assert drawn >= Counter((own.vehicle, own.start, own.end) for own in trace.errands)
        # No vehicle does two things at a time.
        for v in range(len(trace.instance.layout.vehicles)):
            own = sorted((bar.start, bar.end) for bar in bars if bar.row == v)
            assert all(a[1] <= b[0] for a, b in pairwise(own))


def test_bars_stand_where_they_belong(traces):
    for trace in traces:
        figure = draw_figure(draw_gantt, trace)
        [axes] = figure.axes
        drawn = set()
        for group in axes.collections:
            for path in group.get_paths():
                box = path.get_extents()
                drawn.add((group.get_gid(), round((box.y0 + box.y1) / 2), box.x0, box.x1))
        assert drawn == {(bar.kind, bar.row, bar.start, bar.end) for bar in list_bars(trace)}
        [title] = [text.get_text() for text in figure.texts if text.get_gid() == "title"]
        assert f"makespan {trace.makespan:,.1f} s, tardiness {trace.tardiness:,.1f} s" in title


def test_ids_stand_inside_their_bars(traces):
    trace = traces[0]
    texts = draw_figure(draw_gantt, trace, look=draw_texts)
    to_data = texts[0][0].figure.axes[0].transData.inverted()
    bars = [bar for bar in list_bars(trace) if bar.task is not None]
    n_ids = 0
    for text, box in texts:
        if text.get_gid() != "id":
            continue
        n_ids += 1
        (x0, _), (x1, _) = to_data.transform(box.get_points())
        name, row = text.get_text(), text.get_position()[1]
        assert any(
            bar.start <= x0 <= x1 <= bar.end and trace.instance.tasks[bar.task] == name
            for bar in bars
            if bar.row == row
        )
    assert n_ids >= 10


def count_slowly(trace):
    """Drives along each pair of sites, loaded and empty."""
    names = [site.id for site in trace.instance.layout.sites]
    counts = Counter()
    for way in (*trace.trips, *trace.errands):
        for step in way.steps:
            if step.origin != step.target:
                key = (*sorted((names[step.origin], names[step.target])), step.loaded)
                counts[key] += step.last - step.first
    return counts


def test_edges_are_as_busy_as_a_slow_count_says(traces):
    for trace in traces:
        layout, slow = trace.instance.layout, count_slowly(trace)
        traffic = count_traffic(trace)
        for k, edge in enumerate(layout.edges):
            own = [slow[*sorted((edge.a, edge.b)), loaded] for loaded in (True, False)]
            np.testing.assert_allclose(traffic[:, k], own)
        whole = sum(slow.values())
        assert traffic.sum() == pytest.approx(whole)
        figure = draw_figure(draw_traffic, trace)
        [lines] = [x for x in figure.axes[0].collections if hasattr(x, "get_segments")]
        place = {(site.x, site.y): site.id for site in layout.sites}
        drawn = {}
        parts = lines.get_segments(), lines.get_array(), lines.get_linewidths()
        for segment, share, width in zip(*parts, strict=True):
            ends = tuple(sorted(place[tuple(map(float, point))] for point in segment))
            drawn[ends] = share, width
        expected = Counter()
        for (a, b, _), passes in slow.items():
            expected[a, b] += passes * 3600 / trace.end
        assert {ends: share for ends, (share, _) in drawn.items()} == pytest.approx(expected)
        by_share = [width for _, width in sorted(drawn.values())]
        assert by_share == sorted(by_share) and by_share[0] < by_share[-1]
        empty = sum(passes for (_, _, loaded), passes in slow.items() if not loaded) / whole
        assert f"{empty:.0%} without a load" in figure.axes[0].get_title()


def test_edges_between_the_same_sites_count_once():
    edges = [{"a": a, "b": b, "one_way": True} for a, b in ("AB", "BA", "BC", "CB")]
    floor = straight_floor([{"id": "v", "start": "B", "speed": 1}], edges=edges)
    row = make_task("t", "A", "B", 0, 99)
    instance = Instance.from_rows("one", Layout.from_dict(floor), [row])
    assert count_traffic(trace_policy("EDD", instance)).tolist() == [[1.0, 0.0, 0.0, 0.0]] * 2


def test_no_text_hides_another(traces):
    large = trace_policy("EDD", make_hall())
    for trace in (*traces, replace(large, label="$runs_{a/" * 20 + "policy.npz")):
        for draw in (draw_gantt, draw_traffic):
            assert draw_figure(draw, trace, look=find_faults) == []


def test_an_episode_that_did_not_finish_is_drawn():
    for horizon in (1, 500):
        trace = trace_policy("EDD", acerl_np.load_instance("DMH-01"), horizon=horizon)
        assert "not finished" in draw_figure(draw_gantt, trace).texts[0].get_text()
        assert draw_figure(draw_traffic, trace).axes
