"""The slow simulator of all that a floor may have: traced by hand, and invariants.

Every vehicle of the traced floors drives 1 m/s on A --10 m-- B --10 or 6 m-- C, so that metres are ticks.
"""

import math

import full
import pytest
from full import Episode
from hypothesis import given, settings
from hypothesis import strategies as st
from played import decide_drawn
from worlds import floors, make_task, with_chains, with_chargers, with_parking, worlds

from acerl_np.plain import floor as plain
from acerl_np.plain import simulator

BATTERY = {
    **{"capacity": 100, "idle": 0, "empty": 1, "loaded": 2, "charge": 10, "critical": 21},
    **{"resume": 60, "good": 80, "full": 90, "tow": 6},
}


def line(*starts, lengths=(10, 10), breakdowns=(), speed=1, **keys):
    """A line A - B - C, a vehicle at each start; `breakdowns` are (vehicle, tick, ticks of its repair)."""
    fleet = [
        {
            **{"id": f"v{v}", "start": start, "speed": speed},
            "breakdowns": [{"time": t, "repair_time": n} for w, t, n in breakdowns if w == v],
        }
        for v, start in enumerate(starts)
    ]
    edges = [
        {"a": a, "b": b, "length": metres} for a, b, metres in zip("AB", "BC", lengths, strict=True)
    ]
    sites = [{"id": site, "x": 0, "y": 0} for site in "ABC"]
    return {"sites": sites, "edges": edges, "vehicles": fleet, "task_slots": 4, **keys}


def powered(starts, level, lengths=(10, 10), chargers="A", breakdowns=(), **battery):
    """A line whose vehicles have batteries and begin with a level, and chargers."""
    battery = {**BATTERY, "start": level, **battery}
    chargers = [{"site": site} for site in chargers]
    return line(*starts, lengths=lengths, breakdowns=breakdowns, battery=battery, chargers=chargers)


def episode(layout, *tasks, **options):
    """`tasks` are (pickup, delivery, arrival): t0, t1, ..."""
    return Episode(
        layout, [make_task(f"t{k}", *task, 100) for k, task in enumerate(tasks)], **options
    )


def called_back(layout, *tasks, **options):
    return episode(layout, *tasks, commitment="pickup", **options)


def follow(slow, *decisions):
    """Decide as told, each "time pool: vehicle task" or "time pool: wait"; at that time with that pool."""
    for told in decisions:
        seen, _, chosen = told.partition(": ")
        assert f"{slow.time} {' '.join(slow.pool)}" == seen
        if chosen == "wait":
            slow.wait()
        elif chosen:
            vehicle, task = chosen.split()
            slow.assign(int(vehicle), task)


# Called back


def test_a_vehicle_is_called_back_in_mid_edge():
    slow = called_back(line("A"), ("C", "B", 0), ("B", "C", 4))
    follow(slow, "0 t0: 0 t0")  # loaded at 20, delivered at 30
    # At 4 it is 4 m past A: it stands at B from 10 on, and 6 m are left.
    assert (slow.stand(0), slow.candidates()) == (("B", 10, 6.0), [(0, "t0"), (0, "t1")])
    # From 10, at the pickup of t1 then, 10 ticks loaded; at C at 20 at that of t0: 10 ticks back to B.
    follow(slow, "4 t0 t1: 0 t1", "20 t0: 0 t0")
    assert slow.log == [(4, 0, "recalled", "B")]
    assert slow.schedule == [("t0", 0, 20, 30), ("t1", 0, 4, 20)]
    assert slow.changes == [1, 0]


def test_a_task_stays_after_so_many_changes():
    tasks = ("C", "B", 0), ("C", "B", 1), ("C", "B", 2), ("C", "B", 3)
    slow = called_back(line("A"), *tasks, max_changes=1)
    # t0 waits again: 1 change; and so does t1. At 3 neither t0 nor its vehicle is in a round any more. It
    # set out from A at 0, so it reaches B at 10 and C at 20; all of its trips were joined at B.
    follow(slow, "0 t0: 0 t0", "1 t0 t1: 0 t1", "2 t0 t1 t2: 0 t0", "30 t1 t2 t3")
    assert (slow.changes, slow.schedule[0]) == ([1, 1, 0, 0], ("t0", 0, 2, 30))


def test_the_pool_of_a_round_holds_tasks_on_their_way_by_arrival():
    layout = line("A", "A", breakdowns=[(1, 3, 10)])
    slow = called_back(layout, ("C", "B", 0), ("C", "A", 1), ("C", "B", 2))
    # The present pair changes nothing.
    follow(slow, "0 t0: 1 t0", "1 t0 t1: 0 t1", "1 t0: 1 t0", "2 t0 t1 t2: wait")
    # v1 breaks down: t0 goes to the end, behind t2; t1, on its way with v0, stands before t2. v0 set out
    # from A at 1: its stand is B from 11 on, then 10 to C, 10 to B.
    follow(slow, "3 t1 t2 t0: 0 t0")
    assert (slow.changes, slow.schedule[0]) == ([0, 1, 0], ("t0", 0, 3, 31))


def test_a_vehicle_is_called_back_while_it_turns_back():
    layout = line("A", breakdowns=[(0, 8, 0), (0, 14, 0)])
    slow = called_back(layout, ("C", "B", 0), ("A", "B", 9), ("B", "C", 12))
    follow(slow, "0 t0: 0 t0", "9 t0 t1: 0 t1")  # from 7 m past A back to A, until 16
    assert slow.stand(0) == ("A", 16, 4.0)
    # It broke down at 14, where it was at 13: 3 m past A. From there 7 m to B and 10 m to C.
    follow(slow, "12 t0 t1 t2: 0 t2", "15 t0 t1 t2: 0 t2")
    assert slow.schedule[2] == ("t2", 0, 15, 32)


def test_a_load_stays_on_a_vehicle_that_breaks_down():
    # Loaded at 10 it breaks down at 15, where it was at 14, 4 m past B; repaired at 21 it drives 6 m.
    layout = line("A", "A", breakdowns=[(0, 15, 5)], loads="stay")
    slow = episode(layout, ("B", "C", 0), ("A", "B", 16))
    follow(slow, "0 t0: 0 t0", "16 t1: 1 t1")
    assert (slow.schedule[0], slow.time) == (("t0", 0, 0, 27), 27)
    # Before it is loaded, its task goes back: at 9, repaired at 10, 8 m past A; 2 m to B, 10 to C.
    slow = episode(line("A", breakdowns=[(0, 9, 0)], loads="stay"), ("B", "C", 0))
    follow(slow, "0 t0: 0 t0", "10 t0: 0 t0")
    assert slow.schedule == [("t0", 0, 10, 22)]


# Charging


def list_charges(slow):
    """What was noted: at a tick a vehicle queues (q), charges (+), ends (-), with its index and the site."""
    marks = {"queued": "q", "charging": "+", "charged": "-"}
    return " ".join(f"{tick}{marks[what]}{v}{where}" for tick, v, what, where in slow.log)


def test_a_charge_is_broken_off_at_resume():
    # need of t0 at A: 21 critical + 10 * 1 to B + 10 * 2 to A + 0 to the charger = 51
    slow = episode(powered("A", 35), ("B", "A", 0))
    # At 0 it has 35: below good. The way to the charger where it stands takes a tick: 34. Charging from 1:
    # 44, 54 (enough for t0, below resume), 64 at 4.
    assert (slow.time, slow.levels(), slow.statuses()) == (4, [64], ["charging"])
    assert slow.stand(0) == ("A", 4, 0.0)
    slow.assign(0, "t0")
    assert list_charges(slow) == "1q0A 1+0A 4-0A"
    assert (slow.schedule, slow.levels()) == ([("t0", 0, 4, 24)], [64 - 10 - 20])


def test_who_is_too_low_for_what_waits_charges_until_it_fits_though_its_level_is_good():
    # need of t0 at A: 21 + 20 * 1 + 10 * 2 + 10 * 1 = 71
    slow = episode(powered("A", 35), ("C", "B", 0))
    assert (slow.time, slow.levels(), slow.candidates()) == (5, [74], [(0, "t0")])
    # need of t0 at A: 21 + 20 * 1 + 10 * 2 = 61; at B 51
    slow = episode(powered("A", 60, chargers="B", resume=30, good=40), ("C", "B", 0))
    # It sets out at 0, is free on the way (30 are enough), and its need falls with its level: at B, at 10,
    # it has 50. At 11 it has 60.
    assert (slow.time, slow.levels(), slow.stand(0)) == (11, [60], ("B", 11, 0.0))


TWO = {"starts": "CA", "lengths": (5, 5), "level": 50, "chargers": "B"}
CHARGES = {
    # 80 at 2, 79 at 3; a tick to the charger, 78, and two to charge. From 6 on 98, from 25 on 79 again.
    "below good it sets out": (
        {"starts": "A", "level": 82, "idle": 1},
        "4q0A 4+0A 6-0A 26q0A 26+0A 28-0A",
        [98 - 12],
    ),
    "at good it stays": ({"starts": "A", "level": 80}, "", [80]),
    # Both arrive at 5 with 45. v0 is first: 45 to go, 5 ticks. At 10 v1 has 45 still.
    "two for one slot at one tick": (TWO, "5q0B 5q1B 5+0B 10-0B 10+1B 15-1B", [95, 95]),
    # v1 at 3 with 47: 43 to go, 5 ticks; then 45 to go
    "who arrives first is first": (
        {**TWO, "lengths": (3, 5)},
        "3q1B 3+1B 5q0B 8-1B 8+0B 13-0B",
        [95, 97],
    ),
    # v2 charges from 1 with 49, v1 arrives at 3 with 47 and v0 at 5 with 45.
    "who waits longer is first": (
        {**TWO, "starts": "CAB", "lengths": (3, 5)},
        "1q2B 1+2B 3q1B 5q0B 6-2B 6+1B 11-1B 11+0B 16-0B",
        [95, 97, 99],
    ),
    # By the breakdown, with 65; v1 with 45: 5 ticks. Repaired at 7 + 4 + 1 with 65, below good: a tick to
    # the charger, 26 to go from 64.
    "a breakdown frees its slot at once": (
        {**TWO, "breakdowns": [(0, 7, 4)]},
        "5q0B 5q1B 5+0B 7-0B 7+1B 12-1B 13q0B 13+0B 16-0B",
        [94, 95],
    ),
    # At 5 nothing is left: it broke down where it was at 4. Idle again at 5 + 6 + 1 with 21; the 6 m to B
    # take it until 18, with 15 then. 75 to go.
    "without energy it is towed": (
        {"starts": "A", "level": 5, "chargers": "B"},
        "18q0B 18+0B 26-0B",
        [95],
    ),
}


@pytest.mark.parametrize("case", CHARGES)
def test_who_charges_when(case):
    """Until 40 nothing is to do."""
    how, log, levels = CHARGES[case]
    slow = episode(powered(**how), ("A", "B", 40))
    assert (slow.time, list_charges(slow), slow.levels()) == (40, log, levels)


@pytest.mark.parametrize(
    ("metres", "listed", "site"), [(4, "BC", "C"), (5, "BC", "B"), (5, "CB", "C")]
)
def test_the_charger_is_that_of_the_earliest_start(metres, listed, site):
    slow = episode(powered("BA", 50, (1, metres), listed), ("A", "B", 40))
    # v0 queues at B at 1 with 49, and is full at 6. v1, there at 1 too, would start at 6; at C at 1 + metres.
    assert list_charges(slow).startswith("1q0B ") and f"+1{site}" in list_charges(slow)


# Waiting and parking


def test_waiting_for_the_last_event_and_for_a_delivery():
    slow = episode(line("A", breakdowns=[(0, 5, 0)]), ("B", "C", 0), ("B", "A", 3))
    # An arrival is to come, then a breakdown: at 5, repaired at 6.
    follow(slow, "0 t0: wait", "3 t0 t1: wait")
    with pytest.raises(ValueError, match="waiting is not legal at time 6"):
        slow.wait()
    follow(slow, "6 t0 t1: 0 t0", "26 t1")
    assert not slow.may_wait()
    slow = episode(line("A", "C"), ("A", "B", 0), ("B", "A", 0))
    follow(slow, "0 t0 t1: 0 t0")
    assert (slow.candidates(), slow.may_wait()) == ([(1, "t1")], True)
    follow(slow, "0 t1: wait", "10 t1")
    assert (slow.candidates(), slow.may_wait()) == ([(0, "t1"), (1, "t1")], False)


@pytest.mark.parametrize(
    ("metres", "parked"), [(10, (13, 0, "parked", "A")), (9, (12, 0, "parked", "C"))]
)
def test_the_nearest_place_is_taken_and_of_equals_the_first_site(metres, parked):
    parking = {"after": 3, "places": [{"site": "C"}, {"site": "A"}]}
    slow = episode(line("B", lengths=(10, metres), parking=parking), ("A", "B", 40))
    assert slow.log == [parked]


def test_a_place_is_given_at_the_tick_after_it_was_freed():
    parking = {"after": 3, "places": [{"site": "B"}]}
    slow = episode(line("B", "A", parking=parking), ("B", "A", 5), ("B", "A", 30), ("B", "C", 12))
    follow(slow, "5 t0: 0 t0")  # v1 sets out at 6; at 12 it is 6 m from A: at B from 16
    assert (slow.statuses(), slow.stand(1)) == (["working", "parking"], ("B", 16, 4.0))
    follow(slow, "12 t2: wait")  # for the delivery at 15
    assert slow.stand(1) == ("B", 16, 1.0)
    follow(slow, "15 t2: wait")  # for the end of the way to the place
    assert slow.log == [(16, 1, "parked", "B")]
    follow(slow, "16 t2: 0 t2", "30 t1")  # 10 to B, 10 to C
    assert slow.schedule[:2] == [("t0", 0, 5, 15), ("t2", 0, 16, 36)]


# Chains, machines and announced tasks


def plant(*starts, servers=1, **keys):
    """A line with machines at B and C."""
    machines = [{"site": "B", "servers": servers}, {"site": "C"}]
    return line(*starts, lengths=(10, 6), machines=machines, **keys)


FIRST = make_task("t0", "A", "B", 0, 100, processing=5)


def test_a_chain_over_two_machines():
    tasks = [
        {**FIRST, "expiry_time": 8},
        make_task("t1", "B", "C", None, 10, after="t0", processing=4),
        make_task("t2", "C", "A", None, None, after="t1"),
    ]
    slow = Episode(plant("A"), tasks)
    # t0 is delivered at 10 and processed until 15, t1 at 21 and until 25; t2 drives 16 m.
    follow(slow, "0 t0: 0 t0", "15 t1: 0 t1", "25 t2: 0 t2")
    assert slow.machine_log == [
        *((10, "B", "begin", "t0"), (15, "B", "end", "t0")),
        *((21, "C", "begin", "t1"), (25, "C", "end", "t1")),
    ]
    # task, ready, loaded, delivered, processed
    assert slow.times == [("t0", 0, 0, 10, 15), ("t1", 15, 15, 21, 25), ("t2", 25, 25, 41, 41)]
    # t0 was due at 8, t1 at 15 + 10, t2 never
    assert (slow.time, slow.makespan, slow.tardiness) == (41, 41, 2 / 3)
    # An episode ends when the last machine does.
    slow = Episode(plant("A"), [{**FIRST, "processing": 4.5}])
    slow.assign(0, "t0")
    assert (slow.schedule, slow.time, slow.makespan) == ([("t0", 0, 0, 10)], 15, 15)


@pytest.mark.parametrize(("servers", "begin"), [(1, 15), (2, 10)])
def test_of_two_deliveries_at_one_tick_that_of_the_first_vehicle_is_processed_first(servers, begin):
    tasks = [
        make_task("t0", "C", "B", 0, 100, processing=5, handling_time=4),
        *({**FIRST, "task": name} for name in ("t1", "t2")),
    ]
    slow = Episode(plant("A", "C", servers=servers), tasks)
    slow.assign(0, "t1")  # at B at 10
    slow.assign(1, "t0")  # at B at 6 + 4
    assert slow.time == 10
    assert slow.machine_busy(slow.waiting[0]) == {1: 5 + 5, 2: (5 + 5) / 2}[servers]
    slow.assign(0, "t2")  # at B at 10 + 20, when both servers are free
    begins = [(tick, task) for tick, _, what, task in slow.machine_log if what == "begin"]
    assert begins == [(10, "t1"), (begin, "t0"), (30, "t2")]


@pytest.mark.parametrize(
    ("announced", "known"), [(0, 15), (2.5, 13), (3, 12), (90, 10), ("start", 10)]
)
def test_a_vehicle_waits_at_the_pickup_for_an_announced_task(announced, known):
    tasks = [FIRST, make_task("t1", "B", "C", None, 100, after="t0", announced=announced)]
    slow = Episode(plant("A"), tasks)
    slow.assign(0, "t0")
    assert (slow.time, slow.ready_in(slow.waiting[0])) == (known, 15 - known)
    slow.assign(0, "t1")  # at B already, loaded at 15
    assert slow.schedule[1] == ("t1", 0, known, 21)
    assert slow.times[1] == ("t1", 15, 15, 21, 21)


def test_a_root_is_announced_before_an_earlier_row():
    tasks = [
        make_task("t0", "A", "B", 10, 100),
        make_task("t1", "A", "B", 20, 100, announced=15),
        make_task("t2", "A", "B", 25, 100, announced="start"),
    ]
    slow = Episode(plant("A"), tasks)
    follow(slow, "5 t1: wait", "10 t1 t0")
    assert slow.select(0, "LWT") == 0  # neither has waited yet
    follow(slow, "10 t1 t0: wait", "25 t1 t0 t2")
    assert not slow.may_wait()
    # Rules see when a task is ready.
    tasks = [
        make_task("t0", "A", "B", 12, 100, announced=12),
        make_task("t1", "B", "C", 0, 100),
        make_task("t2", "C", "B", 1, 1, announced=1),
    ]
    slow = Episode(plant("A"), tasks)
    assert slow.pool == ["t1", "t2", "t0"]
    # Metres to the pickup, at least so many as it drives until the task is ready: 10, 16, 12; then 6, 6, 10.
    picked = [slow.pool[slow.select(0, rule)] for rule in ("FCFS", "EDD", "NVF", "STD", "LWT")]
    assert picked == ["t1", "t2", "t1", "t1", "t1"]


# Whatever happens


class Watched(Episode):
    """Looks at every tick whether what it shows is possible."""

    def __init__(self, *args, **options):
        self.delivered = []
        self.seen = {}  # stand of each vehicle when it was last seen at a site, or driving to one
        super().__init__(*args, **options)

    def process_tick(self):
        super().process_tick()
        for vehicle in self.vehicles:
            if vehicle.battery is not None:
                assert 0 <= vehicle.level <= vehicle.battery.capacity
            if vehicle.word == "working":
                assert vehicle.task.vehicle == self._index(vehicle)
                assert vehicle.stops[-1].site == vehicle.task.pickup
                assert vehicle.stops[-1].tick == vehicle.at_pickup <= vehicle.finish
        if self.done:
            return
        for k, (site, slots) in enumerate(self._chargers):
            here = [v.word for v in self.vehicles if v.charger == k and v.site == site]
            assert here.count("charging") <= slots
            assert "queued" not in here or here.count("charging") == slots
        for index, vehicle in enumerate(self.vehicles):
            self.check_way(index, vehicle)

    def check_way(self, index, vehicle):
        """Between two sites lies the time to drive from one to the other, but for parts of ticks."""
        stand = self.stand(index)
        if (
            vehicle.word == "broken"
            or not vehicle.is_at_site
            or self.floor.layout.get("truncate_distances")
        ):
            self.seen.pop(index, None)
        elif stand is not None:
            if index in self.seen:
                site, tick, _ = self.seen[index]
                ticks = full.round9(self.distance(site, stand[0]) / vehicle.speed)
                assert ticks < stand[1] - tick + 1
            self.seen[index] = stand

    def deliver(self, vehicle):
        if vehicle.task is not None:
            self.delivered.append(vehicle.task.name)
        super().deliver(vehicle)


def play(world, commitment, max_changes, draws):
    slow = Watched(world.layout, world.rows, commitment=commitment, max_changes=max_changes)
    while not slow.done:
        decide_drawn(slow, draws)
    return slow


def check(world, slow):
    """What was delivered, the chains, the machines and the measures, from the finished tasks' times alone."""
    rows = {row["task"]: row for row in world.rows}
    assert sorted(slow.delivered) == sorted(rows)
    assert max(slow.changes) <= (slow._max_changes if slow.commitment == "pickup" else 0)
    assert all(0 <= vehicle < len(slow.vehicles) for _, vehicle, _, _ in slow.schedule)
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
        assert ready <= loaded <= finish <= begins.get(name, math.inf)
        assert processed == begins.get(name, finish) + math.ceil(row.get("processing") or 0)
        due = math.inf
        if row["expiry_time"] is not None:
            due = row["expiry_time"] + (row["arrival_time"] if pred is None else ready)
        late.append(max(0, finish - due))
    assert slow.time == slow.makespan == max(processed for *_, processed in times.values())
    assert slow.tardiness == pytest.approx(sum(late) / len(late))
    assert set(begins) == {name for name, row in rows.items() if row.get("processing")}
    for machine in world.layout.get("machines", ()):
        # It serves in order of delivery, and nobody waits while a server is free.
        names = [name for name in begins if rows[name]["delivery"] == machine["site"]]
        finishes = [times[name][2] for name in names]
        assert finishes == sorted(finishes)
        for k, name in enumerate(names):
            until = sorted(times[other][-1] for other in names[:k])
            # those before it of whom all servers but one may still be busy
            free_at = until[-machine["servers"]] if k >= machine["servers"] else 0
            assert begins[name] == max(times[name][2], free_at)


PLANTS = worlds() | with_chains(worlds())
PLANTS = st.one_of(
    *(PLANTS, with_chargers(PLANTS), with_parking(PLANTS), with_parking(with_chargers(PLANTS)))
)


@given(
    PLANTS,
    st.sampled_from(["assignment", "pickup"]),
    st.sampled_from([0, 1, 8]),
    st.randoms(use_true_random=False),
)
@settings(settings.get_profile("many"))
def test_every_episode_ends_and_is_possible(world, commitment, max_changes, draws):
    check(world, play(world, commitment, max_changes, draws))


ENDLESS = {
    **{"capacity": 10**9, "idle": 1, "empty": 3, "loaded": 7, "charge": 30, "critical": 10**6},
    **{"resume": 10**6, "good": 10**6, "full": 10**9},
}


@given(worlds(floors(limits=False)), st.booleans())
def test_without_a_need_for_energy_it_is_the_papers_simulator(world, has_batteries):
    keys = {"battery": ENDLESS, "chargers": [{"site": world.layout["sites"][0]["id"]}]}
    layout = {**world.layout, "loads": "return", **(keys if has_batteries else {})}
    rows = [
        {k: row[k] for k in row if k not in ("priority", "earliest_start")} for row in world.rows
    ]
    slow = simulator.Episode(plain.Floor(world.layout), rows)
    new = Episode(layout, rows)
    k = 0
    while not slow.done:
        assert (new.time, new.mask()) == (slow.time, slow.mask())
        assert new.pool == [task.name for task in slow.task_pool]
        if "scaling" in layout:
            assert new.state() == slow.state()
        action = world.choose([a for a, legal in enumerate(slow.mask()) if legal], k)
        slow.step(action)
        new.step(action)
        k += 1
    expected = [(task.name, task.vehicle, task.start, task.finish) for task in slow.tasks]
    assert new.schedule == expected
    assert (new.makespan, new.tardiness) == (slow.makespan, slow.tardiness)
