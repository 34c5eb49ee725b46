"""Vehicles that meet: traced by hand, compared with a search second by second, and what is never seen."""

import csv
import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from meeting import (
    Meeting,
    choose_drawn,
    draw_day,
    line,
    list_drawn_faults,
    list_faults,
    list_visits,
    make_day,
    make_floor,
    note_plans,
)
from naive_traffic import NaiveSearch, list_zones

from acerl_np import InputError, LayoutError, Lookahead, RecordError, evaluate_policy, load_layout
from acerl_np.commands.main import main
from acerl_np.commands.shared.episode_tables import list_tasks
from acerl_np.evaluation.bounds import bound_objective
from acerl_np.evaluation.hindsight import find_hindsight
from acerl_np.evaluation.past import estimate_meeting
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.kernels.core import state as S
from acerl_np.kernels.episode.events import open_episode
from acerl_np.kernels.motion.traffic import take_way
from acerl_np.problem import spots
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.records import write_record
from acerl_np.problem.tables import build_problem

pytestmark = pytest.mark.oracle
compiles = pytest.mark.compiles


def give(*pairs):
    """Give tasks as told, each (vehicle, task), one after the other."""
    told = iter(pairs)

    def choose(free, pool):
        v, task = next(told)
        assert v in free
        return v, pool.index(task)

    return choose


# Traced by hand: a line A - b - c - D of edges of 10 s


@compiles
def test_who_comes_later_waits_where_it_stands_aside():
    # Both cross the line head-on: the second leaves D once the first has come, and nobody stands between.
    day = make_day(line("A", "D"), ("A", "D", 0, 4), ("D", "A", 0, 4))
    play = Meeting(day, give((0, 0), (1, 1)))
    assert play.visits[0] == [(0, 0, 2), (1, 12, 12), (2, 22, 22), (3, 32, S.NEVER)]
    # Half of the handling at the pickup; the other half at the delivery, where it stands aside.
    assert play.visits[1] == [(3, 0, 32), (2, 42, 42), (1, 52, 52), (0, 62, S.NEVER)]
    assert play.finish.tolist() == [34, 64]
    assert S.read_outcome(play.state).delay == 30


@compiles
def test_a_headway_behind_another():
    day = make_day(line("A", "A"), ("A", "D", 0, 0), ("A", "c", 0, 6))
    play = Meeting(day, give((0, 0), (1, 1)))
    assert play.visits[0][-1] == (3, 30, S.NEVER)
    # Ready at 3, it delivers on the lane from 23 to 26, and drives on to rest.
    assert play.visits[1] == [(0, 0, 3), (1, 13, 13), (2, 23, 26), (3, 36, S.NEVER)]
    # With a handling of 1 s it would leave at 1, and waits for the headway.
    play = Meeting(make_day(day.layout, ("A", "D", 0, 0), ("A", "c", 0, 1)), give((0, 0), (1, 1)))
    assert play.visits[1][:2] == [(0, 0, 3), (1, 13, 13)]


@compiles
def test_a_breakdown_pushes_those_who_planned_later():
    # Broken at 15, it stands where it was at 14; repaired at 15 + 20 + 1, 6 m from c; then D, and back.
    day = make_day(line("A", "A", breakdowns=[(0, 15, 20)]), ("A", "D", 0, 0), ("A", "D", 0, 0))
    play = Meeting(day, give((0, 0), (1, 1), (0, 0)))
    assert play.visits[0][:4] == [(0, 0, 0), (1, 10, 10), (2, 42, 42), (3, 52, 55)]
    # The one behind had left b at 13: it stands on the edge until a headway after c is free.
    assert play.visits[1] == [(0, 0, 3), (1, 13, 13), (2, 45, 45), (3, 55, S.NEVER)]
    assert play.finish[1] == 55
    # It drives 55 s, 30 without others. From c, at 42, the first drives to D and 50 s back to A and D again.
    assert play.finish[0] == 115
    assert S.read_outcome(play.state).delay == (55 - 30) + (115 - 42 - 50)


@compiles
def test_who_breaks_down_as_it_waits_on_an_edge_has_driven_it():
    # As above, but the one behind, which stands since 14, is broken from 30 to 36, too: in time for c at 45.
    halts = [(0, 15, 20), (1, 30, 5)]
    day = make_day(line("A", "A", breakdowns=halts), ("A", "D", 0, 0), ("A", "D", 0, 0))
    play = Meeting(day, choose_drawn(random.Random(1)))
    assert play.visits[1][:3] == [(0, 0, 3), (1, 13, 13), (2, 45, 45)]
    trace = trace_policy("nearest", day)
    assert list_drawn_faults(trace) == []
    # 4 m beyond b, and half as far, as a headway is more.
    assert [round(stop.part, 9) for stop in trace.stops] == [0.4, 0.2]


@compiles
def test_an_idle_vehicle_on_its_way_to_rest_turns_at_the_next_place():
    day = make_day(line("A"), ("A", "b", 0, 0), ("c", "D", 12, 0))
    play = Meeting(day, give((0, 0), (0, 1)))
    # Delivered at b at 10, it drives back to A; the second task reaches it at 12, in mid-edge.
    assert play.visits[0][:3] == [(0, 0, 0), (1, 10, 10), (0, 20, 20)]
    assert play.finish.tolist() == [10, 50]
    assert play.state.vehicle[0, 0].driven == 50.0
    assert play.state.vehicle[0, 0].empty == 30.0


@compiles
def test_who_loses_its_task_comes_to_rest_before_the_other_is_planned():
    # At 5 v1 takes over what v0 is under way to: v0 has its way back from b, before v1's plan holds b.
    day = make_day(line("A", "D").with_commitment("pickup", 1), ("c", "A", 0, 0), ("b", "A", 5, 0))
    play = Meeting(day, give((0, 0), (1, 0), (0, 1)))
    assert play.visits[0] == [(0, 0, 0), (1, 10, 10), (0, 20, S.NEVER)]
    assert play.visits[1] == [(3, 5, 5), (2, 15, 15), (1, 25, 25), (0, 35, S.NEVER)]
    assert play.finish.tolist() == [35, 20]
    assert play.state.vehicle[0]["empty"].tolist() == [10.0, 10.0]


@compiles
def test_waits_use_what_standing_does():
    powers = {"idle": 1, "empty": 10, "loaded": 100, "charge": 50, "capacity": 9000, "start": 9000}
    levels = {"critical": 500, "resume": 500, "good": 500, "full": 9000}
    more = {"battery": powers | levels, "chargers": [{"site": "A"}]}
    floor = line("A", "D", more=more)
    play = Meeting(make_day(floor, ("A", "D", 0, 4), ("D", "A", 0, 4)), give((0, 0), (1, 1)))
    # As traced above: v0 drives 30 s with its load and handles for 4, then stands to 64. v1 loads for 2 s,
    # waits for 30, drives for 30, and unloads for 2. No plan holds what stands after the last event.
    assert play.visits[1][0] == (3, 0, 32)
    levels = [play.state.vehicle[0, v].level for v in (0, 1)]
    assert levels == [9000 - 34 * 100, 9000 - 34 * 100 - 30]


@compiles
def test_who_parks_waits_for_others():
    more = {"parking": {"places": [{"site": "D"}], "after": 5}}
    play = Meeting(make_day(line("A", "A", more=more), ("A", "b", 0, 0)), give((0, 0)))
    # v0 delivers at b and comes back to A, 10 to 20; v1 would leave at 5, and has the only place at D.
    assert play.visits[0] == [(0, 0, 0), (1, 10, 10), (0, 20, S.NEVER)]
    assert play.visits[1] == [(0, 5, 20), (1, 30, 30), (2, 40, 40), (3, 50, S.NEVER)]
    assert play.state.vehicle[0]["place"].tolist() == [-1, 3]


@compiles
def test_a_vehicle_that_stands_aside_lets_another_pass():
    day = make_day(line("A", "A"), *[("A", "D", 0, 0)] * 4)
    play = Meeting(day, give((0, 0), (1, 1), (0, 2), (1, 3)))
    # At 30 v0 plans to leave D once v1 has come, at 33, and to be back at D at 93. v1, there at 33, would
    # have to wait for all that. So it passes, and both wait at A until the other has come.
    assert play.visits[1][3:7] == [(3, 33, 33), (2, 43, 43), (1, 53, 53), (0, 63, 66)]
    assert play.visits[0][3:7] == [(3, 30, 36), (2, 46, 46), (1, 56, 56), (0, 66, 69)]
    assert play.finish.tolist() == [30, 33, 99, 96]


@compiles
def test_vehicles_cross_a_single_lane_in_convoys():
    # Six vehicles bring all from A to D, 60 s apart, and come back: 150 s a convoy, 144 an hour.
    names = ["A", *"bcefg", "D"]
    edges = [(a, b, 10) for a, b in itertools.pairwise(names)]
    day = make_day(make_floor(names, edges, "A" * 6, {"headway": 3}), *[("A", "D", 0, 0)] * 30)
    play = Meeting(day, lambda free, pool: (free[0], 0))
    assert play.list_faults() == []
    assert play.finish.max() == 4 * 150 + 75


@compiles
def test_a_place_that_holds_several():
    # v0 handles at b from 30 to 50, and v1, which loads as long, follows at 33 if there is room. v2 comes
    # from D: at 40 beside both, at 53 once v0 has left, at 93 once v1 has. Then all drive on to A.
    floor, tasks = line("A", "A", "D"), [(x, "b", 0, 40) for x in "AAD"]
    for holds, ends in ((1, [50, 90, 113]), (2, [50, 53, 73]), (3, [50, 53, 60])):
        sites = [replace(x, holds=holds if x.id == "b" else 1) for x in floor.sites]
        day = make_day(replace(floor, sites=tuple(sites)), *tasks)
        play = Meeting(day, give((0, 0), (1, 1), (2, 2)))
        assert play.finish.tolist() == ends
        assert play.list_faults() == []


# Blocks: what is traced is a fork, where both ways from A to c lead to D


def fork(*starts, breakdowns=(), **block):
    """Ways of 20 s from A to c, by b and by e, then 10 s to D."""
    edges = [("A", "b", 10), ("b", "c", 10), ("A", "e", 10), ("e", "c", 10), ("c", "D", 10)]
    keys = {"breakdowns": breakdowns, "more": {"blocks": [{"id": "x", **block}]}}
    return make_floor(["A", "b", "c", "D", "e"], edges, starts, {"headway": 3}, **keys)


@compiles
def test_a_block_holds_one_vehicle():
    # The edge from A to b and the place e: v1 holds e from 10 to 10 + 3, and v0 drives back after that.
    day = make_day(
        fork("A", "A", sites=["e"], edges=[["b", "A"]]), ("A", "b", 0, 0), ("A", "e", 0, 0)
    )
    # In either order: v0 first would come back to A at 20, and v1 would be at e at 20; so v0 lets it pass.
    for order in ((0, 0), (1, 1)), ((1, 1), (0, 0)):
        play = Meeting(day, give(*order))
        assert play.visits[1] == [(0, 0, 0), (4, 10, 10), (0, 20, S.NEVER)]
        assert play.visits[0] == [(0, 0, 0), (1, 10, 13), (0, 23, S.NEVER)]


@compiles
def test_a_block_of_one_direction_holds_those_who_came_in_by_the_same_edge():
    # Two follow each other to D; alone, v0 is in the block from b at 10 until 3 s after it leaves c at 20.
    ways = {"sites": ["b", "c", "e"]}
    tasks = ("A", "D", 0, 0), ("A", "D", 0, 0)
    for kind, comes in (("same_direction", [30, 33]), ("single", [30, 43])):
        play = Meeting(make_day(fork("A", "A", kind=kind, **ways), *tasks), give((0, 0), (1, 1)))
        assert [visits[-1][1] for visits in play.visits] == comes
    # v0 delivers at b from 20 to 30; v1 comes in at c 3 s later, on its way to e.
    floor = fork("A", "D", kind="same_direction", **ways)
    tasks = ("A", "b", 0, 20), ("D", "e", 0, 0)
    play = Meeting(make_day(floor, *tasks), give((0, 0), (1, 1)))
    assert play.visits[0][:3] == [(0, 0, 13), (1, 23, 33), (0, 43, S.NEVER)]
    assert play.visits[1][:3] == [(3, 0, 0), (2, 10, 10), (4, 20, 20)]
    play = Meeting(make_day(replace(floor, blocks=()), *tasks), give((0, 0), (1, 1)))
    assert play.visits[0][:3] == [(0, 0, 10), (1, 20, 30), (0, 40, S.NEVER)]
    assert play.visits[1][:3] == [(3, 0, 0), (2, 10, 10), (4, 20, 20)]


@compiles
def test_a_block_knows_by_which_edge_one_came_in_however_long_ago():
    # v0 turns at c at 40 for a task at e: it is still one that came in at b, where v1 comes in from D.
    floor = fork("A", "D", kind="same_direction", sites=["b", "c", "e"])
    day = make_day(floor, ("A", "c", 0, 20), ("e", "A", 40, 0), ("D", "c", 40, 0))
    play = Meeting(day, give((0, 0), (0, 1), (1, 2)))
    assert play.visits[0][1:] == [(1, 20, 20), (2, 30, 40), (4, 50, 50), (0, 60, S.NEVER)]
    # v0 has left e at 50.
    assert play.visits[1] == [(3, 40, 43), (2, 53, 53), (3, 63, S.NEVER)]


@compiles
def test_a_block_is_held_by_who_breaks_down_in_it():
    # Broken at 15 on its way from b to c, v0 is there at 42 instead of at 20. v1 has left A at 13 already.
    floor = fork("A", "A", sites=["b", "c", "e"], breakdowns=[(0, 15, 20)])
    day = make_day(floor, ("A", "D", 0, 0), ("A", "e", 1, 0))
    play = Meeting(day, give((0, 0), (1, 1), (0, 0)))
    assert play.visits[0][:4] == [(0, 0, 0), (1, 10, 10), (2, 42, 42), (3, 52, 52)]
    assert play.visits[1] == [(0, 1, 13), (4, 45, 45), (0, 55, S.NEVER)]


@compiles
def test_floors_with_blocks_and_without_share_tables():
    for seed in range(6):
        days = [draw_day(random.Random(seed + k), blocks=not k) for k in range(2)]
        days.append(replace(days[0], layout=replace(days[0].layout, blocks=())))
        for k, day in enumerate(days):
            others = days[:k] + days[k + 1 :]
            alone, beside = (
                Meeting(day, choose_drawn(random.Random(seed)), beside=more)
                for more in ((), others)
            )
            assert alone.visits == beside.visits


def test_blocks_that_tell_too_many_spots_apart_are_refused(monkeypatch):
    monkeypatch.setattr(spots, "MAX_SPOTS", 5)
    floor = fork("A", kind="same_direction", sites=["b", "c"])
    # One comes in at b from A, at c from e or D, and drives on to the other: three spots of each.
    with pytest.raises(LayoutError, match=r"blocks: .* more than 5; expected fewer, or smaller"):
        build_problem([make_day(floor, ("A", "D", 0, 0))])
    monkeypatch.undo()
    monkeypatch.setattr(spots, "MAX_TABLE_BYTES", 10_000)
    with pytest.raises(
        InputError, match=r"traffic: plans of a fleet of 1 need .* up to 17 places at once"
    ):
        build_problem([make_day(floor, ("A", "D", 0, 0))])


@compiles
def test_who_stands_aside_is_in_no_block():
    # The bay B is in the block. v1 loads there until 20, and comes out; v0 is at b meanwhile, and back at A.
    more = {"blocks": [{"id": "bay", "sites": ["b", "B"]}]}
    floor = make_floor(["A", "b", "B"], [("A", "b", 10), ("b", "B", 10)], ["A", "B"], {}, more=more)
    day = make_day(floor, ("A", "b", 0, 0), ("B", "A", 0, 40))
    for order in ((0, 0), (1, 1)), ((1, 1), (0, 0)):
        play = Meeting(day, give(*order))
        assert play.visits[0] == [(0, 0, 0), (1, 10, 10), (0, 20, S.NEVER)]
        assert play.visits[1] == [(2, 0, 20), (1, 30, 30), (0, 40, S.NEVER)]


# Against a search second by second


class Compared(Meeting):
    """Each plan is as early as that of a slow search; a vehicle that passes others makes all cost less."""

    n_plans = n_kept = n_passed = 0

    def list_ends(self):
        """What `let_pass` adds up: squares of seconds from when tasks were ready, or vehicles idle."""
        ends = []
        for row in self.state.vehicle[0]:
            since = row.since
            if row.status == S.WORKING:
                since = np.ceil(S.find_ready(self.problem, self.state, 0, row.task))
            ends.append(float(row.event_tick - since) ** 2)
        return ends

    def before(self, v, task):
        site, second = self.find_start(v)
        so_far = [x[0] for x in self.visits[v] if x[1] <= second]
        ways = [None] * len(self.instance.layout.blocks)
        for k, zone in enumerate(list_zones(self.instance.layout)):
            for a, c in itertools.pairwise(so_far):
                ways[k] = zone.drive(ways[k], a, c)[1]
        place = site, tuple(ways)
        is_kept = self.state.task["vehicle"][0, task] == v
        loser = int(self.state.task["vehicle"][0, task])
        plans = [(visits, [*so_far]) for visits, so_far in self.list_plans(v)]
        return (place, second), is_kept, loser, plans, self.list_ends()

    def after(self, v, task, seen):
        start, is_kept, loser, plans, ends = seen
        self.note_ways()
        if is_kept:
            self.n_kept += 1
            return
        day, layout = self.instance, self.instance.layout
        length = layout.routes.edge_length
        edges = {(int(a), int(c)): int(length[a, c]) for a, c in np.argwhere(np.isfinite(length))}
        how = layout.traffic.headway, layout.traffic.lanes == "apart"
        handling = int(day.handling_time[task])
        task_ends = int(day.pickup[task]), int(day.delivery[task])
        ready = int(np.ceil(S.find_ready(self.problem, self.state, 0, task)))
        now, found = self.list_plans(v), int(self.state.vehicle[0, v].event_tick)
        # Who has lost the task has its way to rest before.
        if loser < 0 and now != plans:
            self.n_passed += 1
            expected = self.search(edges, how, plans).find_delivery(
                *start, *task_ends, ready, handling
            )
            others = [k for k in range(len(ends)) if k != v]
            own = self.list_ends()
            less = sum(own[k] - ends[k] for k in others)
            assert less + (found - ready) ** 2 < (expected - ready) ** 2
            for (visits, _), (_, so_far) in zip(plans, now, strict=True):
                self.check_kept(visits, so_far)
        elif loser < 0:
            expected = self.search(edges, how, now).find_delivery(
                *start, *task_ends, ready, handling
            )
            assert found == expected
        self.n_plans += 1
        # Who drives alone takes the shortest way, and waits at the pickup alone.
        alone = layout.routes.find_time(layout.vehicles[v].speed)
        alone = max(1, alone[start[0][0], task_ends[0]] + alone[task_ends] + handling)
        self.alone[task] = start[1], ready, alone

    def search(self, edges, how, plans):
        layout = self.instance.layout
        return NaiveSearch(edges, layout.sites, *how, plans, list_zones(layout))

    def check_kept(self, visits, so_far):
        """Until it stands aside, what a vehicle had planned stays."""
        now, aside = int(self.state.episode["time"][0]), self.instance.layout.sites
        for site, came, left in visits:
            if aside[site].aside and left >= now:
                assert (site, came) in {x[:2] for x in so_far}
                return
            assert [site, came, left] in [list(x) for x in so_far]

    def note_ways(self):
        """Note when vehicles are at the pickup, as they have planned at last."""
        for row, plan in zip(self.state.vehicle[0], self.state.plan[0], strict=True):
            if row.status == S.WORKING:
                self.came[int(row.task)] = int(plan[plan[0, S.PLANNED_PICKUP], S.PLAN_IN])

    @property
    def delay(self):
        """How much longer each task took than alone."""
        return {
            task: int(self.finish[task])
            - start
            - max(0, ready - max(start, self.came[task]))
            - alone
            for task, (start, ready, alone) in self.alone.items()
        }


def compare(seed, errands, blocks):
    draw = random.Random(seed)
    day = draw_day(draw, errands=errands, blocks=blocks, wide=seed % 4 > 1)
    play = Compared(day, choose_drawn(draw))
    assert play.list_faults() == []
    assert play.n_plans + play.n_kept == play.state.episode["n_decisions"][0]
    assert S.read_outcome(play.state).delay == sum(play.delay.values())
    return play.n_passed


def play_broken(seed, errands, blocks):
    draw = random.Random(seed)
    how = {"errands": errands, "blocks": blocks, "wide": seed % 4 > 1}
    day = draw_day(draw, whole=False, breakdowns=True, **how)
    day = replace(day, layout=day.layout.with_loads(("return", "stay")[seed // 4 % 2]))
    play = Meeting(day, choose_drawn(draw))
    assert play.state.episode["phase"][0] == S.FINISHED
    assert play.list_faults() == []


SEEDS = st.integers(0, 2**32)


@compiles
@settings(max_examples=12)
@given(SEEDS, st.booleans(), st.booleans())
def test_each_plan_ends_as_early_as_it_can(seed, errands, blocks):
    compare(seed, errands, blocks)


@compiles
@settings(max_examples=30)
@example(272, False, False)  # a place that the same vehicle had left less than a headway before
@example(841, False, False)  # broken at the tick of an arrival, with a stop of no time behind it
@example(2322, False, True)  # broken a tick after it was to leave, with a headway of 1 s
@example(12639, False, False)  # broken as it loads, it lets another pass after the repair
@example(30742, False, False)  # the same, and a place would hold too many
@given(SEEDS, st.booleans(), st.booleans())
def test_no_day_has_a_conflict(seed, errands, blocks):
    play_broken(seed, errands, blocks)


@pytest.mark.long
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("errands", [False, True])
@pytest.mark.parametrize("play", [compare, play_broken])
def test_ten_thousand_days(play, errands, blocks):
    for seed in range(10_000):
        play(seed, errands, blocks)


@compiles
@settings(max_examples=10)
@example(73)  # it drives an edge of no time to where it delivers
@given(SEEDS)
def test_one_vehicle_plays_as_if_nobody_met(seed):
    draw = random.Random(seed)
    day = draw_day(draw, whole=False, errands=True)
    aside = tuple(replace(site, aside=True) for site in day.layout.sites)
    alone = replace(day.layout, sites=aside, vehicles=day.layout.vehicles[:1])
    if alone.battery:  # enough for a day: what charges where it stands does not drive there
        alone = replace(
            alone, battery=replace(alone.battery, start=10**6, full=10**6, capacity=10**6)
        )
    seed = draw.random()
    found = []
    for layout in (alone, replace(alone, traffic=None)):
        play = Meeting(replace(day, layout=layout), choose_drawn(random.Random(seed)))
        level = play.state.vehicle[0]["level"]
        found.append(
            [*play.finish, *level, *play.state.outcome[0], *play.state.vehicle[0, 0].tolist()[-6:]]
        )
    np.testing.assert_allclose(*found, rtol=0.0, atol=1e-9)


# Grids of job shops with published routes (data of TUE-EE-ES/TJSP-toolset, MIT licence)

GRIDS = json.loads((Path(__file__).parents[1] / "data" / "grids.json").read_text())["instances"]


def make_grid(grid):
    """The floor, where the first and the last place lie aside; and the moves as tasks, in their order."""
    places = grid["places"]
    names = [chr(96 + k) if k not in (places[0], places[-1]) else chr(64 + k) for k in range(1, 27)]
    edges = [(names[a - 1], names[b - 1], 1) for a, b in grid["lanes"]]
    starts = [names[places[0] - 1]] * grid["vehicles"]
    layout = make_floor(names[: grid["nodes"]], edges, starts, {"headway": 1})
    ends = [(names[places[x["from"]] - 1], names[places[x["to"]] - 1]) for x in grid["moves"]]
    rows = [
        {"task": f"m{k}", "pickup": a, "delivery": b, "arrival_time": 0, "expiry_time": 9999}
        for k, (a, b) in enumerate(ends)
    ]
    return Instance.from_rows(grid["name"], layout, rows)


def test_published_routes_have_no_conflict():
    for grid in GRIDS:
        vehicles = []
        for route in grid["routes"]:
            visits = []
            for second, place in enumerate(route):
                if visits and visits[-1][0] == place - 1:
                    visits[-1] = (place - 1, visits[-1][1], second)
                else:
                    visits.append((place - 1, second, second))
            vehicles.append(visits)
        found = list_faults(make_grid(grid).layout, vehicles)
        assert [fault for fault in found if "ends on the lane" not in fault] == []


def plan_moves(grid):
    """Plan the moves in their order, machines in theirs; return the last arrival."""
    day = make_grid(grid)
    # Room for all visits: a vehicle is planned at a time when others' past is not past.
    problem = build_problem([day])._replace(auxiliary=np.zeros((0, 0, 1000), np.bool_))
    state = S.allocate_state(problem, 1)
    open_episode(problem, state, 0, 0)
    served = {}
    for j, operations in enumerate(grid["jobs"]):
        for k, operation in enumerate(operations):
            served.setdefault(operation["machine"], []).append((operation["start"], j, k))
    queues = {machine: [x[1:] for x in sorted(own)] for machine, own in served.items()}
    arrived, free, visits = {}, [0] * grid["vehicles"], [[] for _ in range(grid["vehicles"])]

    def find_end(j, k):
        operation = grid["jobs"][j][k]
        queue = queues[operation["machine"]]
        place = queue.index((j, k))
        before = find_end(*queue[place - 1]) if place else 0
        return max(arrived[j, k], before) + operation["processing"]

    for task, move in enumerate(grid["moves"]):
        j, k, v = move["job"], move["move"], move["vehicle"]
        problem.record["arrival"][0, task] = find_end(j, k - 1) if k else 0
        state.episode["time"][0] = free[v]
        for u, own in enumerate(visits):
            if own:
                state.plan[0, u, 1 : len(own) + 1, :3] = own
                state.plan[0, u, 0, [S.PLANNED_VISITS, S.PLANNED_FROM]] = len(own), 1
        state.vehicle[0, v].stand_site = 0  # it may turn
        state.vehicle[0, v].task, state.vehicle[0, v].status = task, S.WORKING
        take_way(problem, state, np.int64(0), np.int64(v), np.int64(task), np.int64(-1))
        state.vehicle[0, v].status = S.IDLE  # others are not planned again
        note_plans(state, visits)
        free[v] = arrived[j, k] = int(state.vehicle[0, v].event_tick)
    assert list_faults(day.layout, visits) == []
    return max(arrived.values())


@compiles
def test_orders_planned_anew_are_hardly_longer_and_never_shorter_than_proven():
    ratios = [plan_moves(grid) / grid["makespan"] for grid in GRIDS]
    assert min(ratios) == 1.0
    assert 1.0 < np.mean(ratios) < 1.01


# Doors: traces, lookahead, Gymnasium, `floor check`


@compiles
@pytest.mark.parametrize("ahead", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_a_replay_shows_has_no_conflict(ahead):
    n_steps = 0
    for seed in range(4 if ahead else 30):
        day = draw_day(random.Random(seed), errands=not ahead)
        policy = Lookahead("nearest", futures=0) if ahead else "nearest"
        trace = trace_policy(policy, day)
        assert min(trace.finish) > 0
        visits = list_visits(trace)
        n_steps += sum(map(len, visits))
        faults = list_faults(day.layout, visits)
        assert [fault for fault in faults if "ends on the lane" not in fault] == []
    assert n_steps > 50


@compiles
@settings(max_examples=40)
@example(16)  # broken at the tick after it was to leave
@example(13)  # it turns to another task in mid-edge
@example(78)  # repaired, it drives an edge of no time
@example(980062533)  # pushed at the very second of its loading
@given(SEEDS)
def test_nobody_is_drawn_through_another_or_along_an_edge_twice(seed):
    draw = random.Random(seed)
    kinds = {"whole": seed % 2 == 0, "errands": seed % 3 == 0, "blocks": seed % 5 == 0}
    day = draw_day(draw, breakdowns=True, wide=seed % 4 > 1, **kinds)
    day = replace(day, layout=day.layout.with_loads(("return", "stay")[seed // 32 % 2]))
    assert list_drawn_faults(trace_policy("nearest", day)) == []


def play_all(day, actions=()):
    """The makespans of all episodes of a day, whoever takes which task at each decision."""
    told, more = iter(actions), []

    def choose(free, pool):
        for action in told:
            return action
        more.extend((v, position) for v in free for position in range(len(pool)))
        raise EOFError

    try:
        return [Meeting(day, choose).finish.max()]
    except EOFError:  # undecided so far
        return [x for action in more for x in play_all(day, (*actions, action))]


@pytest.mark.long
@pytest.mark.parametrize("seed", [9, 53])
def test_hindsight_finds_the_best_of_all_episodes(seed):
    day, goal = draw_day(random.Random(seed)), Goal("makespan")
    found = find_hindsight(day, goal, effort=0.02)
    assert found.makespan == min(played := play_all(day))
    assert len({*played}) > 3 and bound_objective(day, goal) <= found.makespan


@compiles
def test_an_environment_plays_the_days_of_the_simulator():
    gym = pytest.importorskip("acerl_np.gym", reason="needs the extra gym")
    day = draw_day(random.Random(5))
    environment, done = gym.DMHEnv([day], rules=("EDD",)), False
    _, told = environment.reset(seed=0)
    while not done:
        action = int(np.flatnonzero(told["action_mask"])[0])
        *_, done, _, told = environment.step(action)
    play = Meeting(day, lambda free, pool: (free[0], 0))
    assert told["makespan"] == play.finish.max()


@compiles
def test_how_much_longer_vehicles_drive():
    # Each 100 s one vehicle crosses from 2 to 32; the other loads from 10 to 12, and waits for 20 s.
    moves = [(100 * k + wait, ends) for k in range(6) for wait, ends in ((0, "AD"), (10, "DA"))]
    day = make_day(line("A", "D"), *[(*ends, at, 4) for at, ends in moves])
    error = 10 / (30 * np.sqrt(11))
    assert estimate_meeting(day) == (pytest.approx(80 / 60), pytest.approx(error), 12)
    delays = [row["delay_s"] for row in list_tasks(trace_policy("nearest", day))]
    assert sorted(delays) == [0.0] * 6 + [20.0] * 6
    # The way to rest is none of it: v0 is asked again as it comes back from b, in mid-edge at 14.
    turned = make_day(line("A"), ("A", "b", 0, 0), ("b", "c", 14, 0))
    assert estimate_meeting(turned) == (1.0, 0.0, 2)
    alone = replace(day, layout=day.layout.with_fleet(day.layout.vehicles[:1]))
    assert estimate_meeting(alone)[0] == 1.0


@compiles
def test_tables_tell_the_delay_where_vehicles_meet(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # As traced first above: of two tasks one takes 30 s longer.
    day = make_day(line("A", "D"), ("A", "D", 0, 4), ("D", "A", 0, 4))
    write_record(day, "day.csv")
    Path("floor.json").write_text(json.dumps(day.layout.to_dict()))
    words = "nearest --on day.csv --layout floor.json --format csv"
    found = {}
    for command in ("evaluate", "evaluate --traffic off", "whatif --traffic off,lane"):
        assert main(f"{command} {words}".split()) == 0
        found[command] = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    met, free, asked = found.values()
    assert [row["delay_s"] for row in met] == ["15.0"] * 2 and "delay_s" not in free[0]
    assert [(x["traffic"], x["delay_s"]) for x in asked] == [
        *(("file", "15.0"), ("lane", "15.0"), ("off", "0.0"))
    ]
    trace = trace_policy("nearest", day)
    assert [trip.delay for trip in trace.trips] == [0, 30]
    assert evaluate_policy("nearest", day, trials=1).mean("delay") == 15.0


# What is refused, and what a layout's file says


def test_what_a_floor_of_vehicles_that_meet_must_have():
    base = line("A").to_dict()
    for changes, words in (
        ({"truncate_distances": True}, "traffic: together with truncate_distances"),
        (
            {"parking": {"places": [{"site": "b"}]}},
            "parking.places[0].site: 'b' is on the lane; expected a site that lies aside",
        ),
        ({"traffic": {"headway": 0}}, "traffic.headway: read 0; expected a whole number from 1"),
        ({"traffic": {"lanes": "one"}}, 'traffic.lanes: read "one"; expected one of shared, apart'),
        (
            {"sites": [dict(x, aside=x["id"] == "D") for x in base["sites"]]},
            "vehicles[0].start: 'A' is on the lane",
        ),
        ({"blocks": [{"id": "x"}]}, "blocks[0]: neither sites nor edges"),
        ({"blocks": [{"id": "x", "sites": ["z"]}]}, "blocks[0].sites[0]: unknown site 'z'"),
        (
            {"blocks": [{"id": "x", "edges": [["A", "c"]]}]},
            "blocks[0].edges[0]: read ['A', 'c']; expected two sites that an edge joins",
        ),
        (
            {"blocks": [{"id": "x", "kind": "double", "sites": ["b"]}]},
            'blocks[0].kind: read "double"; expected one of single, same_direction',
        ),
        ({"blocks": [{"id": "x", "sites": ["b"]}] * 2}, "blocks[1].id: 'x' again"),
    ):
        with pytest.raises(LayoutError) as caught:
            Layout.from_dict({**base, **changes})
        assert words in str(caught.value)
    # A dead end does no harm unless a task ends there.
    edges = [("A", "b", 9), ("b", "C", 9), ("b", "d", 9, True)]
    ended = make_floor("AbCd", edges, "A", {})
    assert make_day(ended, ("A", "C", 0, 0)).n_tasks == 1
    with pytest.raises(RecordError, match="'d'"):
        make_day(ended, ("A", "d", 0, 0))
    blocked = line("A", more={"blocks": [{"id": "x", "sites": ["b"], "edges": [["c", "D"]]}]})
    for floor in (line("A"), blocked):
        assert Layout.from_dict(floor.to_dict()) == floor
    assert blocked.floor_hash != line("A").floor_hash


def test_who_stands_aside():
    floor = load_layout("supply-loop")
    served = {x.id for x in floor.sites if x.kind not in ("", "waypoint", "parking", "charger")}
    starts = {vehicle.start for vehicle in floor.vehicles}
    parks = {place.site for place in floor.parking.places} if floor.parking else set()
    for stations, expected in (("beside", served | starts | parks), ("lane", starts | parks)):
        found = {site.id for site in floor.with_traffic(stations).sites if site.aside}
        assert found == expected
    assert floor.with_traffic("beside").with_traffic("off").traffic is None
    assert floor.with_traffic("lane").floor_hash != floor.with_traffic("beside").floor_hash
