"""Episodes chosen to be hard, each decision by decision against the slow simulator.

The random floors of `worlds` meet most of these cases now and then; here each is met on
purpose, at its worst and on every run.
"""

import numba
import numpy as np
import pytest
from episodes import WatchedEpisode, compare
from worlds import RAW, make_task

from acerl_np import Instance, Layout, Simulator

JIT = not numba.config.DISABLE_JIT


def square(vehicles, one_way=False, length=None, **keys):
    """A --7 m-- B --5 m-- C --6 m-- D --8 m-- A; one-way, it is driven in this order only."""
    lengths = (7, 5, 6, 8) if length is None else (length,) * 4
    return {
        "format": 1,
        "sites": [{"id": site, "x": k, "y": 0} for k, site in enumerate("ABCD")],
        "edges": [
            {"a": a, "b": b, "length": metres, "one_way": one_way}
            for (a, b), metres in zip(("AB", "BC", "CD", "DA"), lengths, strict=True)
        ],
        "vehicles": [{"id": f"v{k}", "speed": 1, **vehicle} for k, vehicle in enumerate(vehicles)],
        "scaling": RAW,
        "task_slots": 4,
        **keys,
    }


def breakdowns(*times, repair_time=3):
    return [{"time": time, "repair_time": repair_time} for time in times]


def first_legal(legal, k):
    return legal[0]


def random_legal():
    """A choice that is the same on every run."""
    generator = np.random.default_rng(5)
    return lambda legal, k: generator.choice(legal)


def play(layout, rows, choose, every=1):
    """Play an episode in both simulators; returns the slow one and (time, pool) of each decision."""
    instance = Instance.from_rows("hard", Layout.from_dict(layout), rows)
    simulator = Simulator(instance, slots="pool")
    slow = WatchedEpisode(layout, rows)
    decisions = []
    while not slow.done:
        k = len(decisions)
        if k % every == 0:
            compare(simulator, 0, slow)
        assert simulator.time[0] == slow.time
        decisions.append((slow.time, slow.pool))
        action = int(choose(np.flatnonzero(simulator.action_mask[0]), k))
        simulator.step([action])
        slow.step(action)
    compare(simulator, 0, slow)
    return slow, decisions


def play_both(layout, rows, every=1):
    """The same with the first legal actions, and with random ones."""
    return [play(layout, rows, choose, every) for choose in (first_legal, random_legal())]


def name_tasks(*ends):
    """Names and places of tasks that go from one letter to the other."""
    return [(f"t{k}", *two) for k, two in enumerate(ends)]


# Breakdowns


@pytest.mark.parametrize("one_way", [False, True])
def test_breakdowns_on_every_pair_of_ticks(one_way):
    """Whatever a breakdown falls on, it falls on it here: a finish, an arrival, a site, a repair."""
    times = ((2, 9), (5, 40), (13, 1))
    rows = [
        make_task(*task, *time)
        for task, time in zip(name_tasks("BD", "CA", "AB"), times, strict=True)
    ]
    cases = set()
    step = 1 if JIT else 4
    for first in range(0, 24, step):
        for second in range(first, first + 26, step):
            vehicle = {"start": "A", "breakdowns": breakdowns(second, first)}
            slow, _ = play(square([vehicle], one_way=one_way), rows, random_legal())
            cases |= slow.cases
    expected = {
        *("breaks idle at a site", "breaks at a site", "breaks in mid-edge"),
        *("breaks on the tick of its finish", "breaks on the tick of an arrival"),
        *("breaks again on the rest of the edge", "breaks again beyond the edge"),
        *("listed while broken", "listed on the tick of repair"),
        *(["cannot turn back"] if one_way else ["turns back", "breaks again while turning back"]),
    }
    if JIT:
        assert expected - cases == set()


@pytest.mark.parametrize("speed", [1, 0.7, 1.3])
def test_vehicle_that_hardly_ever_drives(speed):
    """Trip after trip ends in mid-edge, each the first after the breakdown before it."""
    rows = [make_task(*task, k, 5 * k) for k, task in enumerate(name_tasks("BD", "CA", "DB"))]
    for every in (2, 3, 4, 5, 7):
        times = [2.25 + every * k for k in range(40)]
        vehicle = {"start": "A", "speed": speed, "breakdowns": breakdowns(*times, repair_time=0)}
        for slow, decisions in play_both(square([vehicle]), rows):
            if every > 2:  # else it breaks down again as soon as it starts
                assert len(decisions) > 10
                assert slow.cases & {"turns back", "goes on"}


def test_turning_back_and_going_on_again_and_again():
    """Always in the same edge, at places known by hand."""
    # A --20 m-- B, C 1 m beyond A and D 1 m beyond B
    layout = square([{"start": "A", "breakdowns": breakdowns(9, 13, 16, 20, repair_time=0)}])
    ways = (("A", "B", 20), ("A", "C", 1), ("B", "D", 1))
    layout["edges"] = [{"a": a, "b": b, "length": metres} for a, b, metres in ways]
    fcfs, edd = 0, 1
    rows = [make_task("to D", "D", "B", 0, 90), make_task("to C", "C", "A", 0, 10)]
    # Halted at 9, 8 m past A; repaired at 10. Back for C until 12: 6 m past A, repaired at 14. On
    # for D until 15: 7 m past A, repaired at 17. Back for C until 19: 5 m past A, repaired at 21.
    # On for D: 15 + 1 + 1 m, finished at 38. Then from B 21 + 1 m for C: finished at 60.
    actions = [fcfs, edd, fcfs, edd, fcfs, fcfs]
    slow, decisions = play(layout, rows, lambda legal, k: actions[k])
    assert [time for time, _ in decisions] == [0, 10, 14, 17, 21, 38]
    assert slow.makespan == 60
    assert {"breaks again while turning back", "breaks again on the rest of the edge"} <= slow.cases


def test_vehicle_that_breaks_again_before_it_is_given_a_trip():
    """It stays where the first breakdown left it, and the first trip starts in mid-edge."""
    rows = [make_task("t0", "B", "D", 0), make_task("t1", "D", "C", 50)]
    for tick in (3, 4, 5, 6):
        # The other vehicle takes the task over while the first is broken.
        vehicles = [{"start": "A", "breakdowns": breakdowns(tick, 30, 40)}, {"start": "C"}]
        slow, decisions = play(square(vehicles), rows, first_legal)
        assert decisions == [(0, ["t0"]), (tick, ["t0"]), (50, ["t1"])]
        assert slow.cases >= {"breaks in mid-edge", "breaks idle in mid-edge", "turns back"}
        # Back to A, to D and to C: what it had driven until the tick before the breakdown, and 14 m.
        assert slow.schedule[1] == ("t1", 0, 50, 50 + tick - 1 + 14)


def test_breakdowns_within_a_repair_do_not_prolong_it():
    # Broken from 5 to 16; 5, 9 and 16 are skipped, and so is 15.5, which is tick 16.
    listed = [(9, 50), (5, 10), (5, 70), (16, 50), (15.5, 50), (17, 2)]
    broken = [x for time, repair in listed for x in breakdowns(time, repair_time=repair)]
    rows = [make_task("t0", "B", "D", 0), make_task("t1", "C", "A", 8)]
    for slow, decisions in play_both(square([{"start": "A", "breakdowns": broken}]), rows):
        assert [time for time, _ in decisions[:3]] == [0, 16, 20]
        assert {"listed while broken", "listed on the tick of repair"} <= slow.cases


def test_all_vehicles_break_at_once_while_they_work():
    """Their tasks wait in the order of the vehicles, then what arrives; nobody is asked meanwhile."""
    starts = (("D", 8), ("C", 8), ("A", 5))
    vehicles = [{"start": x, "breakdowns": breakdowns(9, repair_time=r)} for x, r in starts]
    tasks = name_tasks("BD", "CA", "DB", "AC", "AC")
    rows = [make_task(*task, 0, 20 - k) for k, task in enumerate(tasks[:3])]
    rows += [make_task(*task, time, 1) for task, time in zip(tasks[3:], (9, 11.5), strict=True)]
    for slow, decisions in play_both(square(vehicles), rows):
        assert "all vehicles broken at once" in slow.cases
        # Vehicle 2 is repaired at 15, the others at 18.
        assert [time for time, _ in decisions[:6]] == [0, 0, 0, 15, 18, 18]
        assert sorted(decisions[3][1][:3]) == ["t0", "t1", "t2"]
        assert decisions[3][1][3:] == ["t3", "t4"]


# Arrivals


def test_nothing_to_do_at_first():
    """Before the first arrival vehicles break and are repaired, also on its very tick."""
    late = 20_000 if JIT else 2_000
    broken = ((), (7, 90), (late,), (late - 4,))
    vehicles = [
        {"start": start, "breakdowns": breakdowns(*times)}
        for start, times in zip("ABCD", broken, strict=True)
    ]
    rows = [make_task(*task, late, 9) for task in name_tasks("BD", "CA", "DB", "AB")]
    for _, decisions in play_both(square(vehicles), rows):
        # Vehicles 0, 1 and 3 can go at once; vehicle 2 has broken down on this tick.
        assert [time for time, _ in decisions] == [late, late, late, late + 4]


def test_equal_arrivals():
    """Pool order is that of the arrivals, within a tick too, and of the file among equals."""
    arrivals = [4, 3.5, 4, 3.25, 3.5, 0, 0]
    tasks = name_tasks("AC", "BD", "CA", "DB", "AC", "BD", "CA")
    rows = [make_task(*task, time, 6) for task, time in zip(tasks, arrivals, strict=True)]
    # Both vehicles are broken when the first five arrive.
    vehicles = [{"start": "A", "breakdowns": breakdowns(2)}] * 2
    for _, decisions in play_both(square(vehicles, task_slots=7), rows):
        assert decisions[0] == (0, ["t5", "t6"])
        assert decisions[2][0] == 6
        assert sorted(decisions[2][1][:2]) == ["t5", "t6"]
        assert decisions[2][1][2:] == ["t3", "t1", "t4", "t0", "t2"]


def test_tasks_that_no_rule_can_tell_apart_are_taken_in_pool_order():
    rows = [make_task(f"t{k}", "B", "D", 1.5, 6) for k in range(12)]
    vehicles = [{"start": "A", "breakdowns": breakdowns(20)}, {"start": "A"}]
    for rule in range(4):
        _, decisions = play(square(vehicles), rows, lambda legal, k, rule=rule: legal[rule])
        # t0 of vehicle 0, which breaks down, comes again at the end.
        assert [pool[0] for _, pool in decisions] == [*(f"t{k}" for k in range(12)), "t0"]


def test_a_thousand_tasks_for_three_vehicles():
    """The pool holds hundreds of tasks, most of them beyond the slots that a network sees."""
    n = 1_000 if JIT else 200
    generator = np.random.default_rng(3)
    vehicles = [
        {"start": "A", "breakdowns": breakdowns(30, 90)},
        {"start": "B", "speed": 2, "capacity": 2},
        {"start": "C", "speed": 0.5},
    ]
    rows = []
    for k in range(n):
        ends = generator.choice(list("ABCD"), 2, replace=False).tolist()
        times = generator.integers(0, n // 5, 2).tolist()
        rows.append(make_task(f"t{k}", *ends, *times, demand=k % 4))
    for slow, decisions in play_both(square(vehicles, length=0.5), rows, every=20):
        assert max(len(pool) for _, pool in decisions) > n / 2
        assert "more waiting tasks than slots" in slow.cases


# Distances of nothing


@pytest.mark.parametrize("one_way", [False, True])
def test_floor_without_distances(one_way):
    """Every site is everywhere: services last their handling time, and a second at least."""
    tasks, handling = name_tasks("AB", "BD", "DC", "CA", "AD", "BA"), (0, 0, 2.5, 0, 1, 0)
    rows = [make_task(*task, k // 3, 2, handling_time=handling[k]) for k, task in enumerate(tasks)]
    for tick in range(12):
        vehicles = [{"start": "A", "breakdowns": breakdowns(tick, tick + 5)}, {"start": "C"}]
        for slow, _ in play_both(square(vehicles, one_way=one_way, length=0), rows):
            assert {finish - start for _, _, start, finish in slow.schedule} <= {1, 3}
            assert "breaks in mid-edge" not in slow.cases


def test_edges_without_length_within_a_route():
    """A vehicle that drives over one is at its far end at once, and breaks there."""
    rows = [
        make_task("t0", "A", "B", 0),  # picked up where the vehicle stands
        make_task("t1", "B", "C", 1, 8),  # no way at all once it is there
        make_task("t2", "C", "D", 3, 2),
    ]
    cases = set()
    for tick in range(1, 26 if JIT else 12):
        layout = square([{"start": "A", "breakdowns": breakdowns(tick, tick + 7)}])
        layout["edges"][1]["length"] = 0  # B to C
        cases = cases.union(*(slow.cases for slow, _ in play_both(layout, rows)))
    assert {"breaks at a site", "breaks in mid-edge"} <= cases


# Capacities


def test_only_the_vehicle_that_can_carry_it_is_waited_for():
    """The other one stays idle beside a task that is too heavy for it, and nobody is asked."""
    broken = breakdowns(0, 14, repair_time=9)
    vehicles = [{"start": "A", "capacity": 1}, {"start": "A", "capacity": 5, "breakdowns": broken}]
    rows = [make_task(f"t{k}", "B", "C", 2 * k, 9, demand=5) for k in range(3)]
    for slow, decisions in play_both(square(vehicles), rows):
        assert {vehicle for _, vehicle, _, _ in slow.schedule} == {1}
        assert decisions[0][0] == 10
        assert "idle vehicle without a task that it may carry" in slow.cases
