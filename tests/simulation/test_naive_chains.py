"""The slow simulator's chains, machines and announced tasks: traced by hand, and invariants.

Every vehicle of the traced floors drives 1 m/s on A --10 m-- B --6 m-- C, so that metres are ticks.
"""

import math
import random

import naive_vehicles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_chains import NaiveEpisode
from worlds import (
    chained_world,
    make_task,
    straight_floor,
    with_chains,
    with_chargers,
    with_parking,
    worlds,
)

BATTERY = {
    "capacity": 100,
    "idle": 1,
    "empty": 2,
    "loaded": 3,
    "charge": 10,
    "critical": 21,
    "resume": 60,
    "good": 60,
    "full": 95,
}


def floor(*starts, servers=1, breakdowns=(), speed=1, **keys):
    """A vehicle at each start, machines at B and C; `breakdowns` are v0's: (tick, ticks of its repair)."""
    vehicles = [{"id": f"v{k}", "start": start, "speed": speed} for k, start in enumerate(starts)]
    vehicles[0]["breakdowns"] = [{"time": t, "repair_time": ticks} for t, ticks in breakdowns]
    machines = [{"site": "B", "servers": servers}, {"site": "C"}]
    return straight_floor(vehicles, machines=machines, task_slots=4, **keys)


def test_a_chain_over_two_machines():
    tasks = [
        make_task("t0", "A", "B", 0, 8, processing=5),
        make_task("t1", "B", "C", None, 10, after="t0", processing=4),
        make_task("t2", "C", "A", None, None, after="t1"),
    ]
    slow = NaiveEpisode(floor("A"), tasks)
    assert slow.pool == ["t0"]
    slow.assign(0, "t0")  # delivered at 10, processed until 15
    assert (slow.time, slow.pool) == (15, ["t1"])
    slow.assign(0, "t1")  # delivered at 21, processed until 25
    assert (slow.time, slow.pool) == (25, ["t2"])
    slow.assign(0, "t2")  # 16 m
    assert slow.machine_log == [
        (10, "B", "begin", "t0"),
        (15, "B", "end", "t0"),
        (21, "C", "begin", "t1"),
        (25, "C", "end", "t1"),
    ]
    # task, ready, loaded, delivered, processed
    assert slow.times == [("t0", 0, 0, 10, 15), ("t1", 15, 15, 21, 25), ("t2", 25, 25, 41, 41)]
    # t0 was due at 8, t1 at 15 + 10, t2 never
    assert (slow.time, slow.makespan, slow.tardiness) == (41, 41, 2 / 3)


def test_the_episode_ends_when_the_last_machine_does():
    slow = NaiveEpisode(floor("A"), [make_task("t0", "A", "B", 0, 100, processing=4.5)])
    slow.assign(0, "t0")
    assert slow.schedule == [("t0", 0, 0, 10)]
    assert (slow.time, slow.makespan) == (15, 15)


@pytest.mark.parametrize(("servers", "begin"), [(1, 15), (2, 10)])
def test_of_two_deliveries_at_one_tick_that_of_the_first_vehicle_is_processed_first(servers, begin):
    tasks = [
        make_task("t0", "C", "B", 0, 100, processing=5, handling_time=4),
        make_task("t1", "A", "B", 0, 100, processing=5),
        make_task("t2", "A", "B", 0, 100, processing=5),
    ]
    slow = NaiveEpisode(floor("A", "C", servers=servers), tasks)
    slow.assign(0, "t1")  # at B at 10
    slow.assign(1, "t0")  # at B at 6 + 4
    assert slow.time == 10
    assert slow.machine_busy(slow.waiting[0]) == {1: 5 + 5, 2: (5 + 5) / 2}[servers]
    slow.assign(0, "t2")  # at B at 10 + 20, when both servers are free
    begins = [(tick, task) for tick, _, what, task in slow.machine_log if what == "begin"]
    assert begins == [(10, "t1"), (begin, "t0"), (30, "t2")]


def test_what_needs_no_processing_releases_its_successors_at_once():
    tasks = [
        make_task("t2", "A", "B", 10, 100),
        make_task("t1", "B", "C", None, 100, after="t0"),
        make_task("t3", "B", "C", 12.5, 100, after="t0"),
        make_task("t0", "A", "B", 0, 100),
    ]
    slow = NaiveEpisode(floor("A"), tasks)
    # The rows of t0's chain are first: t0, then by the file.
    assert [row[0] for row in slow.times] == ["t0", "t1", "t3", "t2"]
    slow.assign(0, "t0")
    # released before the arrivals of the tick; t3 is not ready yet
    assert (slow.time, slow.pool) == (10, ["t1", "t2"])
    slow.wait()
    assert (slow.time, slow.pool) == (13, ["t1", "t2", "t3"])
    assert slow.machine_log == []


@pytest.mark.parametrize(
    ("announced", "known"), [(0, 15), (2.5, 13), (3, 12), (90, 10), ("start", 10)]
)
def test_a_vehicle_waits_at_the_pickup_for_an_announced_task(announced, known):
    tasks = [
        make_task("t0", "A", "B", 0, 100, processing=5),
        make_task("t1", "B", "C", None, 100, after="t0", announced=announced),
    ]
    slow = NaiveEpisode(floor("A"), tasks)
    slow.assign(0, "t0")
    assert (slow.time, slow.ready_in(slow.waiting[0])) == (known, 15 - known)
    slow.assign(0, "t1")  # at B already, loaded at 15
    assert slow.schedule[1] == ("t1", 0, known, 21)
    assert slow.times[1] == ("t1", 15, 15, 21, 21)


def test_a_pause_uses_the_energy_of_an_idle_vehicle():
    tasks = [make_task("t0", "B", "C", 18, 100, announced=18), make_task("t1", "C", "B", 19, 0)]
    layout = floor("A", battery={**BATTERY, "start": 99}, chargers=[{"site": "A"}])
    # need: 21 + 10 * 2 to B + 6 * 3 to C + 16 * 2 to the charger = 91; the 8 s at B are left out
    slow = NaiveEpisode(layout, tasks)
    slow.assign(0, "t0")
    # At C at 24 with 53, too low for t1; at A at 40 with 21. There t1 needs 21 + 16 * 2 + 6 * 3 + 10 * 2.
    assert (slow.time, slow.levels()) == (47, [91])
    layout["battery"]["start"] = 90
    # Too low: a tick to the charger, where it stands. 88 at 1, full at 2.
    slow = NaiveEpisode(layout, tasks[:1])
    assert (slow.time, slow.levels()) == (2, [98])


def test_what_a_charging_vehicle_needs_leaves_the_pause_out():
    battery = {**BATTERY, "idle": 5, "empty": 1, "loaded": 1, "charge": 1, "critical": 10}
    battery |= {"start": 20, "resume": 20}
    layout = floor("A", battery=battery, chargers=[{"site": "A"}])
    slow = NaiveEpisode(layout, [make_task("t0", "A", "B", 23, 100, announced=23)])
    # It charges from 1 on, with 19. need: 10 + 10 + 10 to the charger.
    assert (slow.time, slow.levels(), slow.statuses()) == (12, [30], ["charging"])


@pytest.mark.parametrize("start", ["A", "C"])
def test_a_breakdown_while_it_waits_at_the_pickup(start):
    tasks = [make_task("t0", "C", "B", 30, 100, announced=30)]
    slow = NaiveEpisode(floor(start, speed=0.9, breakdowns=[(19, 1)]), tasks)
    slow.assign(0, "t0")
    # 16 m from A take 18 ticks. Edge by edge they would take 12 and 7: at 18, when the pause begins, it is
    # at C nevertheless.
    assert (slow.time, slow.stand(0)) == (21, ("C", 21, 0.0))
    (task,) = slow.waiting
    assert task.waiting_since == 30
    slow.assign(0, "t0")  # 6 m take 7 ticks
    assert slow.times == [("t0", 30, 30, 37, 37)]
    # Loaded, it leaves the pickup: after 5 ticks it is 4.5 m past C.
    slow = NaiveEpisode(floor(start, speed=0.9, breakdowns=[(36, 1)]), tasks)
    slow.assign(0, "t0")
    standing = slow.vehicles[0].standing
    assert (standing.last, standing.next, standing.offset) == ("C", "B", 4.5)
    assert slow.waiting[0].waiting_since == 35


def test_a_vehicle_that_waits_at_the_pickup_is_called_back():
    tasks = [make_task("t0", "B", "C", 30, 100, announced=30), make_task("t1", "B", "A", 12, 100)]
    slow = NaiveEpisode(floor("A"), tasks, commitment="pickup")
    slow.assign(0, "t0")
    assert (slow.time, slow.stand(0)) == (12, ("B", 12, 0.0))
    slow.assign(0, "t1")
    assert slow.log == [(12, 0, "recalled", "B")]
    assert slow.schedule == [("t1", 0, 12, 22), ("t0", -1, -1, -1)]
    slow.assign(0, "t0")  # from A at 22, at B at 32
    assert (slow.times[1], slow.changes) == (("t0", 30, 32, 38, 38), [0, 1])


def test_a_root_is_announced_before_an_earlier_row():
    tasks = [
        make_task("t0", "A", "B", 10, 100),
        make_task("t1", "A", "B", 20, 100, announced=15),
        make_task("t2", "A", "B", 25, 100, announced="start"),
    ]
    slow = NaiveEpisode(floor("A"), tasks)
    assert (slow.time, slow.pool) == (5, ["t1"])
    slow.wait()
    assert (slow.time, slow.pool) == (10, ["t1", "t0"])
    assert slow.select(0, "LWT") == 0  # neither has waited yet
    slow.wait()
    assert (slow.time, slow.pool, slow.may_wait()) == (25, ["t1", "t0", "t2"], False)


def test_rules_see_when_a_task_is_ready():
    tasks = [
        make_task("t0", "A", "B", 12, 100, announced=12),
        make_task("t1", "B", "C", 0, 100),
        make_task("t2", "C", "B", 1, 1, announced=1),
    ]
    slow = NaiveEpisode(floor("A"), tasks)
    assert slow.pool == ["t1", "t2", "t0"]
    # Metres to the pickup, at least so many as it drives until the task is ready: 10, 16, 12; then 6, 6, 10.
    picked = {
        rule: slow.pool[slow.select(0, rule)] for rule in ("FCFS", "EDD", "NVF", "STD", "LWT")
    }
    assert picked == {"FCFS": "t1", "EDD": "t2", "NVF": "t1", "STD": "t1", "LWT": "t1"}


def test_a_policy_waits_only_for_what_comes_without_a_decision():
    tasks = [
        make_task("t0", "A", "B", 0, 100, processing=5),
        make_task("t1", "B", "C", None, 100, after="t0"),
        make_task("t2", "A", "B", 0, 100),
        make_task("t3", "A", "B", 12, 100),
    ]
    slow = NaiveEpisode(floor("A"), tasks[:3])
    assert not slow.may_wait()  # t1 would never come
    slow.assign(0, "t0")
    assert (slow.time, slow.may_wait()) == (10, True)
    slow.wait()
    assert (slow.time, slow.may_wait()) == (15, False)
    slow = NaiveEpisode(floor("A"), [tasks[0], tasks[3]])
    slow.assign(0, "t0")
    # The machine processes until 15, but what it does then opens no decision.
    assert (slow.time, slow.machine_log, slow.may_wait()) == (12, [(10, "B", "begin", "t0")], False)


# Whatever happens


def play(world, commitment, max_changes, draws):
    slow = NaiveEpisode(world.layout, world.rows, commitment=commitment, max_changes=max_changes)
    while not slow.done:
        if draws.random() < 0.15 and slow.may_wait():
            slow.wait()
        else:
            slow.assign(*draws.choice(slow.candidates()))
    return slow


def check(world, slow):
    """The chains, the machines and the measures, from the times of the finished tasks alone."""
    rows = {row["task"]: row for row in world.rows}
    times = {name: numbers for name, *numbers in slow.times}
    begins = {task: tick for tick, _, what, task in slow.machine_log if what == "begin"}
    late = []
    for name, (ready, loaded, finish, processed) in times.items():
        row = rows[name]
        pred = row.get("after")
        first = max(row["arrival_time"] or 0, row.get("earliest_start") or 0)
        if pred is None:
            assert ready == first
        else:
            assert ready == max(first, times[pred][-1])
            start = next(start for task, _, start, _ in slow.schedule if task == name)
            assert start >= begins.get(pred, times[pred][2])
        assert ready <= loaded <= finish
        if name in begins:
            assert begins[name] >= finish
        assert processed == begins.get(name, finish) + math.ceil(row.get("processing") or 0)
        due = math.inf
        if row["expiry_time"] is not None:
            due = row["expiry_time"] + (row["arrival_time"] if pred is None else ready)
        late.append(max(0, finish - due))
    assert slow.time == slow.makespan == max(processed for *_, processed in times.values())
    assert slow.tardiness == pytest.approx(sum(late) / len(late))
    assert set(begins) == {name for name, row in rows.items() if row.get("processing")}
    for machine in world.layout["machines"]:
        check_machine(
            machine,
            [name for name in begins if rows[name]["delivery"] == machine["site"]],
            times,
            begins,
        )


def check_machine(machine, names, times, begins):
    """It serves in order of delivery, and nobody waits while a server is free; `names` by begin."""
    finishes = [times[name][2] for name in names]
    assert finishes == sorted(finishes)
    for k, name in enumerate(names):
        until = sorted(times[other][-1] for other in names[:k])
        # those before it of whom all servers but one may still be busy
        free_at = until[-machine["servers"]] if k >= machine["servers"] else 0
        assert begins[name] == max(times[name][2], free_at)


def test_times_and_measures_are_those_of_the_chains():
    n_paused = 0
    for seed in range(300):
        world, draws = chained_world(seed), random.Random(seed)
        slow = play(world, draws.choice(["assignment", "pickup"]), draws.choice([0, 1, 8]), draws)
        check(world, slow)
        n_paused += sum(
            start < loaded == math.ceil(ready)
            for (_, _, start, _), (_, ready, loaded, *_) in zip(
                slow.schedule, slow.times, strict=True
            )
        )
    assert n_paused > 100


PLANTS = with_chains(worlds())


@given(
    st.one_of(PLANTS, with_chargers(PLANTS), with_parking(with_chargers(PLANTS))),
    st.sampled_from(["assignment", "pickup"]),
    st.integers(0, 8),
    st.randoms(use_true_random=False),
)
def test_times_and_measures_are_those_of_any_chains(world, commitment, max_changes, draws):
    check(world, play(world, commitment, max_changes, draws))


@given(with_parking(with_chargers(worlds())), st.sampled_from(["assignment", "pickup"]))
def test_without_the_columns_it_is_the_simulator_of_before(world, commitment):
    old = naive_vehicles.NaiveEpisode(world.layout, world.rows, commitment=commitment)
    new = NaiveEpisode(world.layout, world.rows, commitment=commitment)
    k = 0
    while not old.done:
        assert (new.time, new.pool, new.levels()) == (old.time, old.pool, old.levels())
        assert (new.candidates(), new.may_wait()) == (old.candidates(), old.may_wait())
        choice = world.choices[k % len(world.choices)]
        for slow in (old, new):
            if choice % 5 == 0 and slow.may_wait():
                slow.wait()
            else:
                slow.assign(*slow.candidates()[choice % len(slow.candidates())])
        k += 1
    assert (new.schedule, new.log, new.changes) == (old.schedule, old.log, old.changes)
    assert (new.makespan, new.tardiness) == (old.makespan, old.tardiness)
