"""The slow simulator's vehicles that wait, park, charge and are called back: traced by hand, and invariants.

Every vehicle of the traced floors drives 1 m/s on A --10 m-- B --10 m-- C, so that metres are ticks.
"""

import naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_vehicles import NaiveEpisode
from worlds import make_task, with_chargers, with_parking, worlds

BATTERY = {
    "capacity": 100,
    "idle": 0,
    "empty": 1,
    "loaded": 2,
    "charge": 10,
    "critical": 21,
    "resume": 60,
    "good": 80,
    "full": 90,
    "tow": 6,
}


def line(*starts, lengths=(10, 10), breakdowns=(), **keys):
    """A line A - B - C, a vehicle at each start; `breakdowns` are (vehicle, tick, ticks of its repair)."""
    return {
        "sites": [{"id": site, "x": 0, "y": 0} for site in "ABC"],
        "edges": [
            {"a": a, "b": b, "length": metres}
            for a, b, metres in zip("AB", "BC", lengths, strict=True)
        ],
        "vehicles": [
            {
                "id": f"v{v}",
                "start": start,
                "speed": 1,
                "breakdowns": [
                    {"time": tick, "repair_time": ticks} for w, tick, ticks in breakdowns if w == v
                ],
            }
            for v, start in enumerate(starts)
        ],
        "task_slots": 4,
        **keys,
    }


def episode(layout, *tasks, **options):
    """`tasks` are (pickup, delivery, arrival): t0, t1, ..."""
    return NaiveEpisode(
        layout, [make_task(f"t{k}", *task, 100) for k, task in enumerate(tasks)], **options
    )


# Called back


def test_a_vehicle_is_called_back_in_mid_edge():
    slow = episode(line("A"), ("C", "B", 0), ("B", "C", 4), commitment="pickup")
    slow.assign(0, "t0")  # loaded at 20, delivered at 30
    # At 4 it is 4 m past A: it stands at B from 10 on, and 6 m are left.
    assert (slow.time, slow.stand(0)) == (4, ("B", 10, 6.0))
    assert slow.candidates() == [(0, "t0"), (0, "t1")]
    slow.assign(0, "t1")  # from 10, at its pickup then, 10 ticks loaded
    assert slow.log == [(4, 0, "recalled", "B")]
    # t0 waits again; at C at 20 it is at its pickup: 10 ticks back to B
    assert (slow.time, slow.candidates()) == (20, [(0, "t0")])
    slow.assign(0, "t0")
    assert slow.schedule == [("t0", 0, 20, 30), ("t1", 0, 4, 20)]
    assert slow.changes == [1, 0]


def test_a_vehicle_that_was_called_back_breaks_down_before_its_edge_ends():
    layout = line("A", breakdowns=[(0, 8, 0)])
    slow = episode(layout, ("C", "B", 0), ("B", "C", 4), commitment="pickup")
    slow.assign(0, "t0")
    slow.assign(0, "t1")  # at 4
    # It broke down at 8, where it was at 7: 7 m past A; t1 goes to the end. The breakdown opens a round
    # without a free vehicle, the repair at 9 the next. From there 3 m to t1 and 10 m with it: 22.
    assert (slow.time, slow.pool, slow.stand(0)) == (9, ["t0", "t1"], ("A", 9, 0.0))
    slow.assign(0, "t1")
    assert (slow.time, slow.schedule[1]) == (22, ("t1", 0, 9, 22))
    assert slow.changes == [1, 0]  # a breakdown is no change


def test_a_vehicle_that_lost_its_task_is_free_from_the_end_of_its_edge():
    layout = line("A", "C", breakdowns=[(1, 0, 3)])
    slow = episode(layout, ("C", "B", 0), ("B", "A", 6), ("A", "B", 25), commitment="pickup")
    assert slow.candidates() == [(0, "t0")]
    slow.assign(0, "t0")
    # v1 is repaired at 0 + 3 + 1 and stands at the pickup.
    assert (slow.time, slow.candidates()) == (4, [(0, "t0"), (1, "t0")])
    slow.assign(1, "t0")  # loaded at 4, delivered at 14
    assert slow.log == [(4, 0, "recalled", "B")]
    assert (slow.time, slow.statuses()) == (6, ["roaming", "working"])
    assert slow.stand(0) == ("B", 10, 4.0)
    assert slow.candidates() == [(0, "t1")]
    slow.assign(0, "t1")  # loaded at 10, delivered at 20
    assert (slow.time, slow.schedule[:2]) == (25, [("t0", 1, 4, 14), ("t1", 0, 6, 20)])
    assert (slow.stand(0), slow.stand(1)) == (("A", 25, 0.0), ("B", 25, 0.0))


def test_a_task_stays_after_so_many_changes():
    tasks = ("C", "B", 0), ("C", "B", 1), ("C", "B", 2), ("C", "B", 3)
    slow = episode(line("A"), *tasks, commitment="pickup", max_changes=1)
    slow.assign(0, "t0")
    slow.assign(0, "t1")  # t0 waits again: 1 change
    slow.assign(0, "t0")  # and so does t1
    # At 3 neither t0 nor its vehicle is in a round any more. It set out from A at 0, so it reaches B at 10
    # and C at 20; all of its trips were joined at B.
    assert (slow.time, slow.changes) == (30, [1, 1, 0, 0])
    assert slow.schedule[0] == ("t0", 0, 2, 30)


def test_the_pool_of_a_round_holds_tasks_on_their_way_by_arrival():
    layout = line("A", "A", breakdowns=[(1, 3, 10)])
    slow = episode(layout, ("C", "B", 0), ("C", "A", 1), ("C", "B", 2), commitment="pickup")
    slow.assign(1, "t0")
    assert (slow.time, slow.pool) == (1, ["t0", "t1"])
    slow.assign(0, "t1")
    slow.assign(1, "t0")  # the present pair: nothing changes
    assert (slow.time, slow.pool) == (2, ["t0", "t1", "t2"])
    slow.wait()
    # v1 breaks down: t0 goes to the end, behind t2; t1, on its way with v0, stands before t2.
    assert (slow.time, slow.pool) == (3, ["t1", "t2", "t0"])
    slow.assign(0, "t0")  # it set out from A at 1: its stand is B from 11 on, then 10 to C, 10 to B
    assert slow.schedule[0] == ("t0", 0, 3, 31)
    assert slow.changes == [0, 1, 0]


def test_a_vehicle_at_a_site_stands_there_now_and_one_that_loads_is_not_called_back():
    tasks = ("C", "B", 0), ("A", "B", 10), ("B", "C", 20)
    slow = episode(line("A"), *tasks, commitment="pickup")
    slow.assign(0, "t0")
    assert (slow.time, slow.stand(0)) == (10, ("B", 10, 0.0))
    slow.assign(0, "t1")  # at A at 20: loaded at the tick of t2's arrival, delivered at 30
    assert (slow.time, slow.schedule[1]) == (30, ("t1", 0, 10, 30))


def test_a_vehicle_that_loses_its_task_at_a_site_is_idle_there_from_now():
    parking = {"after": 3, "places": [{"site": "A"}]}
    layout = line("A", "C", breakdowns=[(1, 0, 9)], parking=parking)
    slow = episode(layout, ("C", "A", 0), commitment="pickup")
    slow.assign(0, "t0")
    slow.assign(1, "t0")  # repaired at 10; v0 is at B, sets out at 13 and parks at 23
    assert slow.log == [(10, 0, "recalled", "B"), (23, 0, "parked", "A")]
    assert slow.schedule == [("t0", 1, 10, 30)]


def test_a_vehicle_is_called_back_while_it_turns_back():
    layout = line("A", breakdowns=[(0, 8, 0), (0, 14, 0)])
    slow = episode(layout, ("C", "B", 0), ("A", "B", 9), ("B", "C", 12), commitment="pickup")
    slow.assign(0, "t0")
    assert slow.time == 9  # 7 m past A
    slow.assign(0, "t1")  # back to A, until 16
    assert (slow.time, slow.stand(0)) == (12, ("A", 16, 4.0))
    slow.assign(0, "t2")
    # It broke down at 14, where it was at 13: 3 m past A. From there 7 m to B and 10 m to C.
    assert slow.time == 15
    slow.assign(0, "t2")
    assert slow.schedule[2] == ("t2", 0, 15, 32)


# Charging


def test_a_charge_is_broken_off_at_resume():
    # need of t0 at A: 21 critical + 10 * 1 to B + 10 * 2 to A + 0 to the charger = 51
    battery = {**BATTERY, "start": 35}
    slow = episode(line("A", battery=battery, chargers=[{"site": "A"}]), ("B", "A", 0))
    # At 0 it has 35: below good. The way to the charger where it stands takes a tick: 34. Charging from 1:
    # 44, 54 (enough for t0, below resume), 64 at 4.
    assert (slow.time, slow.levels(), slow.statuses()) == (4, [64], ["charging"])
    assert slow.stand(0) == ("A", 4, 0.0)
    slow.assign(0, "t0")
    assert slow.log == [(1, 0, "queued", "A"), (1, 0, "charging", "A"), (4, 0, "charged", "A")]
    assert slow.schedule == [("t0", 0, 4, 24)]
    assert slow.levels() == [64 - 10 - 20]


def test_a_round_opens_at_resume():
    layout = line("A", "A", chargers=[{"site": "A"}])
    layout["vehicles"][1]["battery"] = {**BATTERY, "start": 35}
    slow = episode(layout, ("C", "B", 0), ("C", "B", 2), commitment="pickup")
    slow.assign(0, "t0")
    assert slow.time == 2
    slow.assign(0, "t0")
    # v1 has 64 at 4, as above, and would need 71 for either task; v0, between A and B, may change.
    assert (slow.time, slow.levels()) == (4, [None, 64])
    assert slow.candidates() == [(0, "t0"), (0, "t1")]


def test_an_idle_vehicle_sets_out_when_its_level_is_below_good():
    battery = {**BATTERY, "idle": 1, "start": 82}
    slow = episode(line("A", battery=battery, chargers=[{"site": "A"}]), ("A", "B", 40))
    # 80 at 2, 79 at 3; a tick to the charger, 78, and two to charge. From 6 on 98, from 25 on 79 again.
    assert slow.log == [
        (4, 0, "queued", "A"),
        (4, 0, "charging", "A"),
        (6, 0, "charged", "A"),
        (26, 0, "queued", "A"),
        (26, 0, "charging", "A"),
        (28, 0, "charged", "A"),
    ]
    assert (slow.time, slow.levels()) == (40, [98 - 12])


def test_an_idle_vehicle_whose_level_is_good_stays():
    layout = line("A", battery={**BATTERY, "start": 80}, chargers=[{"site": "A"}])
    assert episode(layout, ("A", "B", 40)).log == []


def test_a_charge_goes_on_until_a_task_fits():
    # need of t0 at A: 21 + 20 * 1 + 10 * 2 + 10 * 1 = 71
    battery = {**BATTERY, "start": 35}
    slow = episode(line("A", battery=battery, chargers=[{"site": "A"}]), ("C", "B", 0))
    assert (slow.time, slow.levels(), slow.candidates()) == (5, [74], [(0, "t0")])


def two_at_a_charger(lengths=(5, 5), **more):
    """v0 at C and v1 at A, both with 50; the charger is at B. Nothing is to do before 40."""
    battery = {**BATTERY, "start": 50}
    layout = line("C", "A", lengths=lengths, battery=battery, **more)
    return episode({"chargers": [{"site": "B"}], **layout}, ("A", "B", 40))


def test_two_vehicles_for_one_slot_at_one_tick():
    slow = two_at_a_charger()
    # Both arrive at 5 with 45. v0 is first: 45 to go, 5 ticks. At 10 v1 has 45 still.
    assert slow.log == [
        (5, 0, "queued", "B"),
        (5, 1, "queued", "B"),
        (5, 0, "charging", "B"),
        (10, 0, "charged", "B"),
        (10, 1, "charging", "B"),
        (15, 1, "charged", "B"),
    ]
    assert (slow.time, slow.levels()) == (40, [95, 95])


def test_who_arrives_first_is_charged_first():
    slow = two_at_a_charger(lengths=(3, 5))  # v1 at 3 with 47: 43 to go, 5 ticks
    assert slow.log == [
        (3, 1, "queued", "B"),
        (3, 1, "charging", "B"),
        (5, 0, "queued", "B"),
        (8, 1, "charged", "B"),
        (8, 0, "charging", "B"),  # 45 to go
        (13, 0, "charged", "B"),
    ]


def test_who_waits_longer_is_charged_first():
    battery = {**BATTERY, "start": 50}
    layout = line("C", "A", "B", lengths=(3, 5), battery=battery, chargers=[{"site": "B"}])
    slow = episode(layout, ("A", "B", 40))
    # v2 charges from 1 with 49, v1 arrives at 3 with 47 and v0 at 5 with 45.
    charging = [(tick, v) for tick, v, what, _ in slow.log if what == "charging"]
    assert charging == [(1, 2), (6, 1), (11, 0)]


@pytest.mark.parametrize(
    ("metres", "listed", "site"), [(4, "BC", "C"), (5, "BC", "B"), (5, "CB", "C")]
)
def test_the_charger_is_that_of_the_earliest_start(metres, listed, site):
    layout = line("B", "A", lengths=(1, metres), battery={**BATTERY, "start": 50})
    slow = episode({**layout, "chargers": [{"site": c} for c in listed]}, ("A", "B", 40))
    # v0 queues at B at 1 with 49, and is full at 6. v1, there at 1 too, would start at 6; at C at 1 + metres.
    assert slow.log[0] == (1, 0, "queued", "B")
    assert next(where for _, v, what, where in slow.log if (v, what) == (1, "charging")) == site


def test_a_breakdown_at_a_charger_frees_its_slot_at_once():
    slow = two_at_a_charger(breakdowns=[(0, 7, 4)])
    assert slow.log == [
        (5, 0, "queued", "B"),
        (5, 1, "queued", "B"),
        (5, 0, "charging", "B"),
        (7, 0, "charged", "B"),  # by the breakdown, with 65
        (7, 1, "charging", "B"),  # with 45: 5 ticks
        (12, 1, "charged", "B"),
        # repaired at 7 + 4 + 1 with 65, below good: a tick to the charger, 26 to go from 64
        (13, 0, "queued", "B"),
        (13, 0, "charging", "B"),
        (16, 0, "charged", "B"),
    ]
    assert (slow.time, slow.levels()) == (40, [94, 95])


def test_a_vehicle_without_energy_is_towed():
    battery = {**BATTERY, "start": 5}
    layout = line("A", battery=battery, chargers=[{"site": "B"}])
    slow = episode(layout, ("B", "A", 60))
    # At 5 nothing is left: it broke down where it was at 4. Idle again at 5 + 6 + 1 with 21; the 6 m to B
    # take it until 18, with 15 then. 75 to go.
    assert slow.log == [
        (18, 0, "queued", "B"),
        (18, 0, "charging", "B"),
        (26, 0, "charged", "B"),
    ]
    assert (slow.time, slow.levels()) == (60, [95])


def test_who_is_too_low_for_what_waits_charges_though_its_level_is_good():
    # need of t0 at A: 21 + 20 * 1 + 10 * 2 = 61; at B 51
    battery = {**BATTERY, "resume": 30, "good": 40, "start": 60}
    layout = line("A", battery=battery, chargers=[{"site": "B"}])
    slow = episode(layout, ("C", "B", 0))
    # It sets out at 0, is free on the way (30 are enough), and its need falls with its level: at B, at 10,
    # it has 50. At 11 it has 60.
    assert (slow.time, slow.levels(), slow.stand(0)) == (11, [60], ("B", 11, 0.0))


def test_a_task_that_fits_when_a_vehicle_becomes_idle_opens_a_round():
    # Truncated, the way A - B takes 1 tick, the task from A 6 ticks (4 of them empty), from B 4 (2).
    # need of t0 at A: 21 + 4 * 1 + 2 * 2 + 2 * 1 (from A to the charger) = 31; at B 29
    battery = {**BATTERY, "resume": 25, "good": 28, "full": 35, "start": 30}
    layout = line("A", lengths=(1.6, 1.6), truncate_distances=True, battery=battery)
    slow = episode({**layout, "chargers": [{"site": "B"}]}, ("C", "A", 0), commitment="pickup")
    # With 30 nothing fits; at B, at 1, it charges with 29, enough from the first tick on. Full at 2.
    assert slow.log == [(1, 0, "queued", "B"), (1, 0, "charging", "B"), (2, 0, "charged", "B")]
    assert (slow.time, slow.levels(), slow.candidates()) == (2, [39], [(0, "t0")])


# Waiting


def test_waiting_at_the_last_event():
    slow = episode(line("A", breakdowns=[(0, 5, 0)]), ("B", "C", 0), ("B", "A", 3))
    slow.wait()  # an arrival is to come
    assert (slow.time, slow.pool) == (3, ["t0", "t1"])
    slow.wait()  # a breakdown is to come: at 5, repaired at 6
    assert (slow.time, slow.may_wait()) == (6, False)
    with pytest.raises(ValueError, match="waiting is not legal at time 6"):
        slow.wait()
    slow.assign(0, "t0")  # 6 + 20
    assert (slow.time, slow.may_wait()) == (26, False)


def test_waiting_for_a_delivery():
    slow = episode(line("A", "C"), ("A", "B", 0), ("B", "A", 0))
    slow.assign(0, "t0")
    assert (slow.time, slow.candidates(), slow.may_wait()) == (0, [(1, "t1")], True)
    slow.wait()
    assert (slow.time, slow.candidates(), slow.may_wait()) == (10, [(0, "t1"), (1, "t1")], False)


# Parking


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
    slow.assign(0, "t0")  # at 5; v1 sets out at 6
    # At 12 v1 is 6 m from A: at B from 16.
    assert (slow.time, slow.statuses()) == (12, ["working", "parking"])
    assert slow.stand(1) == ("B", 16, 4.0)
    slow.wait()  # for the delivery at 15
    assert (slow.time, slow.stand(1)) == (15, ("B", 16, 1.0))
    slow.wait()  # for the end of the way to the place
    assert (slow.time, slow.log) == (16, [(16, 1, "parked", "B")])
    slow.assign(0, "t2")  # 10 to B, 10 to C
    assert slow.time == 30
    assert slow.schedule[:2] == [("t0", 0, 5, 15), ("t2", 0, 16, 36)]


# Whatever happens


class Watched(NaiveEpisode):
    """Looks at every tick whether what it shows is possible."""

    def __init__(self, *args, **options):
        self.delivered = []
        self.seen = {}  # stand of each vehicle when it was last seen at a site, or driving to one
        super().__init__(*args, **options)

    def _process_tick(self):
        super()._process_tick()
        for vehicle in self._vehicles:
            if vehicle.battery is not None:
                assert 0 <= vehicle.level <= vehicle.battery.capacity
            if vehicle.word == "working":
                assert vehicle.task.vehicle == self._index(vehicle)
                assert vehicle.stops[-1].site == vehicle.task.pickup
                assert vehicle.stops[-1].tick == vehicle.loaded_at <= vehicle.finish
        if self.done:
            return
        for k, (site, slots) in enumerate(self._chargers):
            here = [v.word for v in self._vehicles if v.charger == k and v.site == site]
            assert here.count("charging") <= slots
            assert "queued" not in here or here.count("charging") == slots
        for index, vehicle in enumerate(self._vehicles):
            self.check_way(index, vehicle)

    def check_way(self, index, vehicle):
        """Between two sites lies the time to drive from one to the other, but for parts of ticks."""
        stand = self.stand(index)
        if vehicle.word == "broken" or not vehicle.is_at_site or self._truncate:
            self.seen.pop(index, None)
        elif stand is not None:
            if index in self.seen:
                site, tick, _ = self.seen[index]
                ticks = naive.round9(self._distance(site, stand[0]) / vehicle.speed)
                assert ticks < stand[1] - tick + 1
            self.seen[index] = stand

    def _deliver(self, vehicle):
        if vehicle.task is not None:
            self.delivered.append(vehicle.task.name)
        super()._deliver(vehicle)


PLAIN = worlds()
PLANTS = st.one_of(with_chargers(PLAIN), with_parking(PLAIN), with_parking(with_chargers(PLAIN)))


@given(PLANTS, st.sampled_from(["assignment", "pickup"]), st.sampled_from([0, 1, 8]), st.booleans())
@settings(settings.get_profile("many"))
def test_every_episode_ends_and_is_possible(world, commitment, max_changes, waits):
    slow = Watched(world.layout, world.rows, commitment=commitment, max_changes=max_changes)
    k = 0
    while not slow.done:
        candidates = slow.candidates()
        choice = world.choices[k % len(world.choices)]
        if waits and choice % 3 == 0 and slow.may_wait():
            slow.wait()
        else:
            slow.assign(*candidates[choice % len(candidates)])
        k += 1
    assert sorted(slow.delivered) == sorted(row["task"] for row in world.rows)
    assert max(slow.changes) <= (max_changes if commitment == "pickup" else 0)
    assert all(0 <= vehicle < len(slow.vehicles) for _, vehicle, _, _ in slow.schedule)


ENDLESS = {
    "capacity": 10**9,
    "idle": 1,
    "empty": 3,
    "loaded": 7,
    "charge": 30,
    "critical": 10**6,
    "resume": 10**6,
    "good": 10**6,
    "full": 10**9,
}


@given(worlds(), st.booleans())
def test_without_a_need_for_energy_it_is_the_simulator_of_before(world, has_batteries):
    keys = {"battery": ENDLESS, "chargers": [{"site": world.layout["sites"][0]["id"]}]}
    layout = {**world.layout, **(keys if has_batteries else {})}
    slow = naive.NaiveEpisode(world.layout, world.rows)
    new = NaiveEpisode(layout, world.rows)
    k = 0
    while not slow.done:
        assert (new.time, new.pool, new.mask()) == (slow.time, slow.pool, slow.mask())
        if "scaling" in layout:
            assert new.observation() == slow.observation()
        action = world.choose([a for a, legal in enumerate(slow.mask()) if legal], k)
        slow.step(action)
        new.step(action)
        k += 1
    assert new.schedule == slow.schedule
    assert (new.makespan, new.tardiness) == (slow.makespan, slow.tardiness)
