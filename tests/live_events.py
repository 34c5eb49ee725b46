"""Events of every kind for tests of the dispatcher, and all that can be seen of one; simulators as plants."""

import heapq
import math
from contextlib import suppress

import full
import numpy as np
import worlds

from acerl_np import EventError, Instance, Layout, load_instance, load_layout
from acerl_np.live import events as E

SITES = [site.id for site in load_layout("dmh").sites if site.id.startswith("st")]

MAKERS = (
    lambda t, k, site: E.TaskArrived(t, f"n{k}", site, "carport", 60.0, priority=float(k % 2)),
    lambda t, k, site: E.TaskArrived(t, f"n{k}", site, "carport", 60.0, earliest_start=t + 2.0),
    lambda t, k, site: E.TaskCancelled(t, f"n{k // 2}"),
    lambda t, k, site: E.TaskChanged(t, f"n{k // 2}", due=t + 40.0),
    lambda t, k, site: E.TaskRecalled(t, f"busy{k % 2}", cancel=k % 3 == 0),
    lambda t, k, site: E.VehiclePassed(t, f"v{k % 3}", site),
    lambda t, k, site: E.VehicleIdle(t, f"v{k % 3}", site),
    lambda t, k, site: E.VehicleBroke(t, f"v{k % 3}"),
    lambda t, k, site: E.VehicleRepaired(t, f"v{k % 3}", site),
    lambda t, k, site: E.VehicleOutOfService(t, f"v{k % 3}", at_once=k % 2 == 0),
    lambda t, k, site: E.VehicleBack(t, f"v{k % 3}"),
    lambda t, k, site: E.VehicleAdded(t, f"w{k % 2}", site),
    lambda t, k, site: E.VehicleRemoved(t, f"v{k % 3}", at_once=k % 2 == 0),
)

ERRAND_MAKERS = (
    lambda t, k, v, site: E.TaskArrived(t, f"n{k}", site, "ABCA"["ABC".index(site) + 1], 60.0),
    lambda t, k, v, site: E.VehiclePassed(t, v, site),
    lambda t, k, v, site: E.VehicleParked(t, v, site),
    lambda t, k, v, site: E.VehicleCharging(t, v, "C", begins=k % 3 > 0),
    lambda t, k, v, site: E.VehicleLevel(t, v, 40 * (k % 25)),
    lambda t, k, v, site: E.RecallAnswered(t, v, f"n{k // 2}", done=k % 2 == 0),
    lambda t, k, v, site: E.VehicleIdle(t, v, site, delivered=k % 4 > 0),
    lambda t, k, v, site: E.VehicleBroke(t, v),
    lambda t, k, v, site: E.VehicleRepaired(t, v, site),
    lambda t, k, v, site: E.VehicleOutOfService(t, v, at_once=k % 2 == 0),
    lambda t, k, v, site: E.VehicleBack(t, v),
    lambda t, k, v, site: E.TaskRecalled(t, f"n{k // 2}"),
)

BATTERY = {"capacity": 1000, "start": 600, "idle": 0, "empty": 1, "loaded": 2, "charge": 10}
BATTERY |= {"critical": 40, "resume": 300, "good": 400, "full": 900}


def floor(n=2, **keys):
    """Vehicles at A of A --10 m-- B --6 m-- C; a charger at C, a parking place at B."""
    parking = {"after": 5, "places": [{"site": "B"}]}
    vehicles = [{"id": f"v{k}", "start": "A"} for k in range(n)]
    own = {"battery": BATTERY, "chargers": [{"site": "C"}], "parking": parking, **keys}
    return Layout.from_dict(worlds.straight_floor(vehicles, **own))


def line(*vehicles):
    """Five sites in a row, 10 m apart, with vehicles (id, start) or (id, start, capacity)."""
    keys = "id", "start", "capacity"
    fleet = [dict(zip(keys, vehicle, strict=False)) for vehicle in vehicles]
    return Layout.from_dict(worlds.row_floor("abcde", fleet, name="line"))


def look(dispatcher):
    """All that can be seen, and what is behind it."""
    board, day = dispatcher._floor, dispatcher._floor.day
    tasks = {name: (task.event, task.since, task.vehicle) for name, task in board.tasks.items()}
    return (
        [vehicle.id for vehicle in dispatcher.layout.vehicles],
        board.vehicles.copy(),
        tasks,
        board.pool.copy(),
        board.planned.copy(),
        (day.start, day.mark, day.ends[: day.n_tasks].tolist(), day.record[: day.n_tasks].tolist()),
        dispatcher.next_time,
    )


NAMES = ("a", "a (2)", "b" * 200, "=1", "c" * 300, "d\ne", "", " f ", 5, None, [])
NUMBERS = (0.0, 60.0, np.float32(7.5), 1e9, 5e9, -1.0, 1e300, np.inf, np.nan, None, "6", True)


def do_anything(dispatcher, draw, now, k, told):
    """One of a day's things: late, doubled or impossible events, odd ids and numbers, orders, deliveries."""
    late, hold = draw.choice((0.0, 0.0, 0.0, 2.5, 4.0, 7.0)), draw.random() < 0.2
    number, has_auxiliary = draw.choice((None, k, k - 1)), bool(dispatcher.layout.chargers)
    sites = "ABC" if has_auxiliary else SITES
    with suppress(EventError):
        match draw.randrange(12):
            case 0 | 1:
                dispatcher.decide(now)
            case 2 if dispatcher.idle and dispatcher.waiting:
                dispatcher.assign(now, draw.choice(dispatcher.idle), dispatcher.waiting[-1])
            case 3 | 4 | 5 if dispatcher.under_way:
                task, vehicle = draw.choice(sorted(dispatcher.under_way.items()))
                event = dispatcher._floor.tasks[task].event
                kind, site = E.VehicleIdle, event.delivery
                if draw.random() < 0.25:
                    kind, site = E.VehiclePassed, event.pickup
                dispatcher.feed(kind(now - late, vehicle, site), hold=hold, number=number)
            case 6 if told:
                dispatcher.feed(draw.choice(told), hold=hold)
            case 7 | 8:
                numbers = dict.fromkeys(("expiry", "priority", "earliest_start"), 60.0 + now)
                numbers[draw.choice(list(numbers))] = draw.choice(NUMBERS)
                ends = draw.sample(sites, 2)
                event = E.TaskArrived(now - late, draw.choice(NAMES), *ends, **numbers)
                told.append(event)
                dispatcher.feed(event, hold=hold, number=number)
            case _:
                makers = ERRAND_MAKERS if has_auxiliary else MAKERS
                maker = makers[draw.choice((0, 0, 0, *range(len(makers))))]
                own = (f"v{draw.randrange(3)}",) if has_auxiliary else ()
                told.append(maker(now - late, k, *own, draw.choice(sites)))
                dispatcher.feed(told[-1], hold=hold, number=number)


def quiet(name):
    """A record of DMH whose vehicles never break down."""
    instance = load_instance(name)
    return Instance.from_rows(name, instance.layout.with_breakdowns({}), instance.rows())


class EventLog(full.Episode):
    """The slow simulator, telling what happens tick by tick as a control system would."""

    def __init__(self, instance):
        self.events = []
        self._names = [vehicle.id for vehicle in instance.layout.vehicles]
        super().__init__(instance.layout.to_dict(), instance.rows())

    def process_tick(self):
        before = [(v.status, v.site) for v in self.vehicles]
        waiting = len(self.to_arrive)
        super().process_tick()
        now = float(self.time)
        for name, vehicle, (status, site) in zip(self._names, self.vehicles, before, strict=True):
            if status != full.BROKEN and vehicle.status == full.BROKEN:
                self.events.append(E.VehicleBroke(now, name))
            elif status == full.BROKEN and vehicle.status == full.IDLE:
                self.events.append(E.VehicleRepaired(now, name))
            elif status == full.WORKING and vehicle.status == full.IDLE:
                self.events.append(E.VehicleIdle(now, name, vehicle.site))
            elif vehicle.site != site:
                self.events.append(E.VehiclePassed(now, name, vehicle.site))
        arrived = self.tasks[len(self.tasks) - waiting : len(self.tasks) - len(self.to_arrive)]
        for task in arrived:
            ends, own = (task.pickup, task.delivery), (task.expiry, task.handling, task.demand)
            self.events.append(E.TaskArrived(task.arrival, task.name, *ends, *own, task.priority))

    def take_events(self):
        events, self.events = self.events, []
        return sorted(events, key=lambda event: event.time)


def play_reckoned(dispatcher, instance, start=0.0, until=math.inf, breaks=()):
    """Feed a day until then; vehicles deliver when they should. Return who took what when."""
    rows = instance.rows()
    heap = [
        (row["arrival_time"], k, tell_row(row, row["arrival_time"], start))
        for k, row in enumerate(rows)
    ]
    for time, name in breaks:
        heap.append((time, len(heap), E.VehicleBroke(start + time, name)))
        heap.append((time + 200.0, len(heap), E.VehicleRepaired(start + time + 200.0, name)))
    heapq.heapify(heap)
    ends, carries, decided = {row["task"]: row["delivery"] for row in rows}, {}, []
    while heap and heap[0][0] <= until:
        now = heap[0][0]
        while heap and heap[0][0] == now:
            event = heapq.heappop(heap)[2]
            if isinstance(event, E.VehicleIdle) and carries.pop(event.vehicle, None) is not event:
                continue
            if isinstance(event, E.VehicleBroke):
                carries.pop(event.vehicle, None)
            dispatcher.feed(event)
        for made in dispatcher.decide(start + now):
            decided.append((now, *made))
            time = math.ceil(made.finish - start - 1e-3)
            event = E.VehicleIdle(start + time, made.vehicle, ends[made.task])
            carries[made.vehicle] = event
            heapq.heappush(heap, (time, len(rows) + 9 + len(decided), event))
    return decided


def tell_row(row, at, start=0.0):
    """The arrival of a record's task, or before it the news of it."""
    own, due = start + at, row["arrival_time"] + row["expiry_time"] - at
    ends, later = (row["pickup"], row["delivery"]), row["arrival_time"] + start
    more = {"demand": row["demand"], "earliest_start": None if later == own else later}
    return E.TaskArrived(own, row["task"], *ends, due, **more)
