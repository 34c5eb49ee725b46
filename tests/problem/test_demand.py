"""More or less demand: what is kept of a record's flows, hours and bursts."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from worlds import make_task

import acerl_np
from acerl_np.problem.demand import draw_shift, find_bursts, find_takts
from acerl_np.problem.shift import BREAKS
from acerl_np.support.errors import InputError

KEPT = ("pickup", "delivery", "expiry", "handling_time", "demand", "priority")


def make_record(rows, layout=None):
    """A record on the DMH floor of (pickup, delivery, arrival)."""
    rows = [make_task(f"t{k}", *row, 60 + k, handling_time=k % 7) for k, row in enumerate(rows)]
    return acerl_np.Instance.from_rows("day", layout or acerl_np.load_layout("dmh"), rows)


@pytest.fixture(scope="module")
def shifts():
    layout = acerl_np.load_layout("supply-loop")
    return [
        acerl_np.generate_shift(layout, scale=0.6, seed=1, index=k, demand=(0, 2), name=f"s{k}")
        for k in range(12)
    ]


def test_bursts_are_the_loads_of_a_lorry_and_the_parts_of_a_kit():
    lorry = [("p0", f"st{1 + k}", 10 * k) for k in range(3)]
    later = [("p0", "st4", 1000), ("p0", "st5", 1010)]
    kit = [("st1", "st6", 400), ("st2", "st6", 400), ("st3", "st6", 401)]
    record = make_record([*lorry, *kit, *later, ("st8", "p1", 5), ("st8", "p1", 900)])
    found = [[record.tasks[k] for k in burst] for burst in find_bursts(record)]
    assert found == [["t0", "t1", "t2"], ["t8"], ["t3", "t4"], ["t5"], ["t9"], ["t6", "t7"]]


@pytest.mark.parametrize("demand", [0.3, 0.8, 1.4, 2.7])
def test_whole_bursts_come_each_pickup_keeps_its_share(shifts, demand):
    record = shifts[0]
    bursts = find_bursts(record)
    drawn = draw_shift(record, demand, seed=3)
    assert list(drawn.arrival) == sorted(drawn.arrival) and len(set(drawn.tasks)) == drawn.n_tasks
    place = {task: k for k, task in enumerate(drawn.tasks)}
    source = {task: k for k, task in enumerate(record.tasks)}
    for task, k in place.items():
        for name in KEPT:
            assert getattr(drawn, name)[k] == getattr(record, name)[source[task.split(" ")[0]]]
    whole, came, moved = Counter(), Counter(), []
    for burst in bursts:
        pickup = int(record.pickup[burst[0]])
        whole[pickup] += 1
        for mark in ("", " (2)", " (3)"):
            rows = [place.get(f"{record.tasks[k]}{mark}") for k in burst]
            assert (None in rows) == (rows == [None] * len(rows))
            if None not in rows:
                came[pickup] += 1
                gaps = np.diff(drawn.arrival[rows])
                assert np.array_equal(gaps, np.diff(record.arrival[burst]))
                assert mark or np.array_equal(drawn.arrival[rows], record.arrival[burst])
                moved += [abs(drawn.arrival[rows[0]] - record.arrival[burst[0]])] if mark else []
    for pickup, n in whole.items():
        assert abs(came[pickup] - demand * n) < 1.0
    assert abs(sum(came.values()) / len(bursts) - demand) < 0.02
    # By up to half an hour in the mean, which a break makes longer.
    assert not moved or (600.0 < np.mean(moved) < 1200.0 and max(moved) < 5400.0)


def test_more_demand_has_all_of_what_less_has(shifts):
    def list_tasks(demand):
        drawn = draw_shift(shifts[0], demand, seed=3)
        return set(zip(drawn.tasks, drawn.arrival.tolist(), strict=True))

    drawn = [list_tasks(demand) for demand in (0.5, 0.9, 1.0, 1.1, 1.6, 2.2)]
    assert all(less < more for less, more in pairwise(drawn))


def test_hours_breaks_and_bursts_stay(shifts):
    many = [draw_shift(shift, 1.5, seed=3) for shift in shifts]

    def count(records, width):
        counts = [np.bincount((x.arrival // width).astype(int), minlength=99) for x in records]
        return np.array([x[: 28800 // width] for x in counts])

    # Every hour has its share.
    hours, more = (count(x, 3600).sum(axis=0) for x in (shifts, many))
    assert np.allclose(more / more.sum(), hours / hours.sum(), atol=0.015)
    quiet = [
        sum(int(((x.arrival >= first) & (x.arrival < last)).sum()) for x in records)
        / sum(x.n_tasks for x in records)
        for records in (shifts, many)
        for first, last in [BREAKS[1]]
    ]
    assert quiet[0] < 0.015 and quiet[1] < 1.5 * quiet[0]
    # Counts in a quarter of an hour vary as those of independent bursts, beside those of a takt.
    spread, other = (
        (x.var(axis=0, ddof=1).mean() / x.mean()) for x in (count(shifts, 900), count(many, 900))
    )
    assert 0.8 * spread < other < 2.0 * spread


def test_waves_are_joined_and_a_single_moment_stays_one():
    rows = [(f"st{1 + k}", f"st{2 + k}", 3600 * wave) for wave in range(6) for k in range(7)]
    drawn = draw_shift(make_record(rows), 2.0, seed=1)
    later = drawn.arrival[[task.endswith("(2)") for task in drawn.tasks]]
    assert len(later) == 42 and (later % 3600 == 0).mean() > 0.6
    at_once = draw_shift(make_record([("st1", "p0", 7), ("st2", "p0", 7), ("st3", "p1", 7)]), 3.0)
    assert at_once.n_tasks == 9 and set(at_once.arrival) == {7.0}


def test_draws_are_keyed_by_the_tasks_alone(shifts):
    record = shifts[0]
    assert draw_shift(record, 1.0, seed=5) is record
    first, again, other = (draw_shift(record, 1.3, seed=seed) for seed in (1, 1, 2))
    assert first.content_hash == again.content_hash != other.content_hash
    small = record.layout.with_fleet(record.layout.vehicles[:1])
    rows = draw_shift(acerl_np.Instance.from_rows("x", small, record.rows()), 1.3, seed=1).rows()
    assert rows == first.rows()
    rows = [{**record.rows()[0], "arrival_time": 0.5}, record.rows()[1]]
    half = acerl_np.Instance.from_rows("x", small, rows)
    assert draw_shift(half, 9.5, seed=1).n_tasks > 15
    with pytest.raises(InputError, match=r"day: demand 0\.01 leaves no task"):
        draw_shift(make_record([("p0", "p1", 0)]), 0.01)


def test_a_pair_with_a_takt_has_it_so_many_times_as_short():
    """Breaks stay; a pair whose gaps differ is drawn as ever, and so is one of few tasks."""
    steady = [*range(0, 1000, 100), *range(1900, 2900, 100)]
    rows = [("st1", "p0", t) for t in steady] + [("st2", "p0", 7 * k * k) for k in range(20)]
    rows += [("st3", "p1", 50 * k) for k in range(9)]
    record = make_record(sorted(rows, key=lambda row: row[2]))
    [takt] = find_takts(record)
    assert record.arrival[takt].tolist() == steady
    drawn = draw_shift(record, 1.25, by="takt")
    sites = record.layout.site_index
    moments = drawn.arrival[drawn.pickup == sites["st1"]]
    assert len(moments) == 25 and len(set(drawn.tasks)) == drawn.n_tasks
    gaps = np.diff(moments)
    assert np.median(gaps) == 80.0 and sorted(gaps)[-2] <= 100.0 and gaps.max() >= 800.0
    for name, n in (("st2", 20), ("st3", 9)):  # as ever, to within one
        assert abs((drawn.pickup == sites[name]).sum() - 1.25 * n) <= 2.0
    half = draw_shift(record, 0.5, by="takt")
    assert half.arrival[half.pickup == sites["st1"]].tolist() == steady[::2]
