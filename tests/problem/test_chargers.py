"""Batteries, chargers and parking places before the simulator: what is refused, asked and imported."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import worlds
from full import Episode
from hypothesis import given, settings
from tables_and_refusals import list_unrefused
from worlds import make_task, straight_floor

import acerl_np
from acerl_np import Instance, Layout
from acerl_np.evaluation.bounds import bound_objective
from acerl_np.evaluation.hindsight import check_future
from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.evaluation.whatif import deal_slots, resize_fleet
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import measure_needs
from acerl_np.problem.parts import Battery
from acerl_np.problem.servable import check_record, measure_charging, measure_load
from acerl_np.support.errors import InputError, LayoutError, RecordError

RATES = {"idle": 1, "empty": 3, "loaded": 7, "charge": 10}
BATTERY = RATES | {"capacity": 1000, "critical": 100, "resume": 300, "good": 500, "full": 1000}
WORLDS = worlds.with_parking(worlds.with_chargers(worlds.worlds()))


def floor(*chargers, battery=BATTERY, vehicles=({"id": "v", "start": "A"},), **keys):
    keys = {"battery": battery, "chargers": [{"site": site} for site in chargers], **keys}
    return straight_floor(list(vehicles), **keys)


DEAD_END = [{"a": "A", "b": "B"}, {"a": "B", "b": "C", "one_way": True}]

PLACE = {"places": [{"site": "B"}, {"site": "B", "places": 2}]}
TRAP = [{"a": "A", "b": "B", "one_way": True}, {"a": "B", "b": "C"}]
FAULTS = [
    (floor("X"), "chargers[0].site: unknown site 'X'; expected the id"),
    (floor("A", "B", "A"), "chargers[2].site: 'A' again; expected each site once"),
    (floor("A", parking=PLACE), "parking.places[1].site: 'B' again; expected each site once"),
    (floor("A", parking={"places": [{"site": "X"}]}), "parking.places[0].site: unk"),
    (floor() | {"chargers": []}, "chargers: read 0 entries; expected a list of 1"),
    (straight_floor([{"id": "v", "start": "A"}], battery=BATTERY), "no chargers"),
    (
        floor("A", battery=BATTERY | {"good": 200}),
        "battery: read critical 100, resume 300, good 200, full 1000, capacity 1000; expected them",
    ),
    (floor("A", battery=BATTERY | {"start": 1001}), "battery.start: read 1001; expected at most"),
    (
        floor("A", vehicles=[{"id": "v", "start": "A", "battery": BATTERY | {"critical": 48}}]),
        "vehicles[0].battery.critical: read 48; expected at least 49, for 2 s of any use and the 16 s from",
    ),
    (
        floor("C") | {"edges": [{"a": a, "b": "B", "one_way": True} for a in "AC"]},
        "chargers[0].site: 'C' cannot be reached from 'A', where 'v' starts",
    ),
    (
        floor("C") | {"edges": DEAD_END},
        "chargers[0].site: no edge leads away from 'C'; expected a site that a vehicle can leave",
    ),
    (
        floor("A", parking={"places": [{"site": "A"}, {"site": "C"}]}) | {"edges": DEAD_END},
        "parking.places[1].site: no edge leads away from 'C'",
    ),
    (floor("A", battery=BATTERY | {"idle": 0.5}), "battery.idle: read 0.5; expected a whole"),
]


def test_a_layout_that_no_vehicle_can_charge_on_is_refused_in_a_line():
    assert list_unrefused(Layout.from_dict, FAULTS, LayoutError) == []


def test_where_no_task_ends_no_way_need_lead_to_a_charger():
    trapped = Layout.from_dict(floor("A") | {"edges": TRAP})
    for layout, ends in ((trapped, "BC"), (trapped.with_traffic("beside"), "BC")):
        with pytest.raises(RecordError, match="delivery: no way from 'C' to a charger"):
            Instance.from_rows("rows", layout, [make_task("t", *ends, 0)])
    # Without a battery in the fleet a charger without a way out is but a site.
    bare = floor("C", battery=None) | {"edges": DEAD_END}
    layout = Layout.from_dict({key: value for key, value in bare.items() if value is not None})
    assert Instance.from_rows("rows", layout, [make_task("t", "A", "B", 0)]).n_tasks == 1
    assert not layout.has_auxiliary


@settings(max_examples=60, deadline=None)
@given(WORLDS)
def test_needs_are_those_of_the_slow_simulator(world):
    instance = world.instance()
    layout = instance.layout
    slow = Episode(world.layout, world.rows)
    fleet = zip(layout.vehicles, slow.vehicles, layout.batteries, strict=True)
    for vehicle, own, battery in fleet:
        worst = measure_needs(instance, vehicle.speed, battery)
        for k, name in enumerate(instance.tasks):
            row = next(row for row in world.rows if row["task"] == name)
            task = SimpleNamespace(
                pickup=row["pickup"], delivery=row["delivery"], handling=row["handling_time"]
            )
            needs = [slow._need(own, task, charger.site) for charger in layout.chargers]
            assert worst[k] == max(needs)


def test_a_task_that_no_battery_can_do_is_refused_and_listed():
    # From C 16 s empty to A and 16 s loaded back: 100 + 3 * 16 + 7 * (16 + 20); C is at the delivery.
    rows = [
        make_task("near", "B", "C", 0, 99),
        make_task("far", "A", "C", 1, 99, handling_time=20),
        make_task("heavy", "A", "C", 2, 99, handling_time=20, demand=1),
    ]
    strong = {"id": "w", "start": "A", "capacity": 1}
    for full, vehicles, beyond in (
        (400, [{"id": "v", "start": "A"}], ()),
        (399, [{"id": "v", "start": "A"}], ("far", "heavy")),
        (399, [{"id": "v", "start": "A", "capacity": 0.5}, strong | {"battery": BATTERY}], ()),
        (399, [{"id": "v", "start": "A", "battery": BATTERY, "capacity": 0.5}, strong], ("heavy",)),
    ):
        battery = BATTERY | {"full": full, "good": 399}
        layout = Layout.from_dict(floor("A", "C", battery=battery, vehicles=vehicles))
        instance = Instance.from_rows("rows", layout, rows, servable=False)
        found = check_record(instance)
        assert found.beyond_battery == beyond and found.servable == (not beyond)
        if beyond:
            with pytest.raises(RecordError, match=r"task 'far'|task 'heavy'") as error:
                _ = instance.is_reachable
            assert "takes 1 more than 'full' of a battery" in str(error.value)
        else:
            instance.check_servable()


def test_a_record_that_a_pocket_ends_is_refused_and_listed():
    """From B one comes to P, and from there to Q and back, but never to a task."""
    data = straight_floor([{"id": "v", "start": "A"}], parking={"places": [{"site": "P"}]})
    data["sites"] += [{"id": "P", "x": 20, "y": 0}, {"id": "Q", "x": 30, "y": 0}]
    data["edges"] += [{"a": "B", "b": "P", "one_way": True}, {"a": "P", "b": "Q"}]
    rows, layout = [make_task("t", "A", "C", 0)], Layout.from_dict(data)
    with pytest.raises(RecordError, match="row 1: pickup: 'A' cannot be reached from 'P'"):
        Instance.from_rows("pocket", layout, rows)
    lost = check_record(Instance.from_rows("pocket", layout, rows, servable=False))
    assert lost.unreached == ("t",) and not lost.servable
    far = replace(layout, edges=layout.edges[:2] + layout.edges[3:])  # nobody comes to P
    assert check_record(Instance.from_rows("far", far, rows)).servable


def test_the_time_to_charge_is_what_a_hand_calculation_says():
    battery = Battery(start=1000, **BATTERY)
    # c = 7 l + 3 e + 1 i with 10 charged: 0.3 loaded, 0.2 empty, the rest of 0.5 idle or charging.
    share = measure_charging(battery, 0.3, 0.2)
    assert 10 * share == pytest.approx(7 * 0.3 + 3 * 0.2 + (0.5 - share))
    assert measure_charging(battery, 0.6, 0.4) == pytest.approx(0.54)  # no time is idle
    rows = [make_task(f"t{k}", "A", "C", 40 * k, 39) for k in range(10)]
    # In 399 s 160 s are loaded, 9 approaches are of 16 s.
    for slots, sentences in ((2, 0), (1, 1)):
        data = floor("A", "C", vehicles=[{"id": f"v{k}", "start": "A"} for k in range(3)])
        data["chargers"] = [{"site": "A", "slots": slots}]
        data["battery"] = BATTERY | {"charge": 2}
        load = measure_load(Instance.from_rows("rows", Layout.from_dict(data), rows))
        loaded, empty = 160 / (3 * 399), load.offered - load.loaded
        own = measure_charging(Battery(start=1000, **data["battery"]), loaded, empty)
        assert load.charging == pytest.approx(own) and load.slots == pytest.approx(3 * own)
        assert 1 < load.slots < 2
        said = acerl_np.problem.servable.describe_charging(load, Layout.from_dict(data))[2:]
        assert said == ["the chargers cannot keep up"][:sentences]
    assert measure_load(Instance.from_rows("rows", Layout.from_dict(floor("A")), rows)).slots < 1


def test_slots_are_dealt_and_batteries_are_copied():
    own = [{"id": "a", "start": "A"}, {"id": "b", "start": "B", "battery": BATTERY | {"full": 900}}]
    layout = Layout.from_dict(floor("A", "B", "C", vehicles=own))
    for n, slots in ((1, [1]), (2, [1, 1]), (5, [2, 2, 1])):
        assert [charger.slots for charger in deal_slots(layout, n).chargers] == slots
    assert [x.full for x in resize_fleet(layout, 4).batteries] == [1000, 900, 1000, 900]
    fleet = tuple(replace(vehicle, battery=None) for vehicle in layout.vehicles)
    plain = replace(layout, vehicles=fleet, battery=None, chargers=())
    assert plain.floor_hash != layout.floor_hash and plain.fleet_hash != layout.fleet_hash
    bare = Layout.from_dict(straight_floor([{"id": "v", "start": "A"}], chargers=[{"site": "A"}]))
    cases = [((layout, 0), "chargers: read"), ((acerl_np.load_layout("dmh"), 2), "chargers: read")]
    cases += [((bare, 2), "chargers: read 2 slots on a floor where no vehicle has a")]
    assert list_unrefused(lambda given: deal_slots(*given), cases) == []


def test_bounds_hold_where_vehicles_charge_and_park():
    keys = {"parking": {"after": 0, "places": [{"site": "B"}]}}
    layout = Layout.from_dict(floor("B", battery=BATTERY | {"start": 500, "good": 600}, **keys))
    rows = [make_task(f"t{k}", "B", "A", 50 * k, 9) for k in range(6)]
    instance = Instance.from_rows("rows", layout, rows)
    # It waits at the pickup, which is neither a start nor a delivery.
    waiting = evaluate_policy("nearest", instance, trials=1).waiting[0, 0]
    assert bound_objective(instance, Goal("waiting")) <= waiting < 10.0
    late = replace(instance, layout=layout.with_commitment("pickup"))
    with pytest.raises(InputError, match="tasks may change hands"):
        check_future(late)
