"""Slow, obvious features and scores of index policies: the oracle of `kernels.dispatching`.

Written from the words of `policies.index.FEATURES`, feature by feature, on the slow simulator's vehicles and
tasks. Features are in units of the time that a vehicle of mean speed takes for the mean distance between two
sites of the floor; all else is in seconds from now.
"""

import math
from functools import lru_cache
from statistics import fmean

import full

FAR = 4.0
"""Units at which times to spare are cut."""

MOST_TASKS, MOST_VEHICLES, MOST_PAIRS = 24, 12, 24
"""What is looked at on a large floor."""

MOST_STEPS = 12
"""Tasks that are completed."""


def cut(x, low, high):
    return max(low, min(high, x))


def mean_distance(floor):
    """Mean over the ordered pairs of different sites that have a way; 1 m on a floor without distances."""
    known = [metres for (a, b), metres in floor.distances.items() if a != b and metres < math.inf]
    return (fmean(known) if known else 0.0) or 1.0


@lru_cache(100_000)
def drive(floor, a, b, speed):
    """Seconds from site a to site b."""
    return floor.distances[a, b] / speed + floor.lost(a, b, speed)


def true_way(floor, vehicle, pickup):
    """Seconds from where a vehicle without a task truly stands to a pickup."""
    return find_way(floor, vehicle, pickup)[1]


def find_way(floor, vehicle, pickup):
    """Metres and seconds of that way."""
    standing, speed = vehicle.standing, vehicle.speed
    if standing is None or standing.offset == 0.0:
        site = vehicle.site
        return floor.distances[site, pickup], drive(floor, site, pickup, speed)
    a, b, offset = standing.last, standing.next, standing.offset
    rest = floor.arcs[a, b] - offset
    seconds = rest / speed + floor.lost_on((a, b), rest, speed) + drive(floor, b, pickup, speed)
    ways = [(rest + floor.distances[b, pickup], seconds)]
    if (b, a) in floor.arcs:
        seconds = offset / speed + floor.lost_on((b, a), offset, speed)
        seconds += drive(floor, a, pickup, speed)
        ways.append((offset + floor.distances[a, pickup], seconds))
    # It takes the shorter way, back if both are as long, unless the floor asks for the quicker one.
    measure = 1 if floor.is_quickest else 0
    return min(reversed(ways), key=lambda way: full.round9(way[measure]))


def pairs(slow):
    """Every possible pair (vehicle, position in the pool), by vehicle and then by position."""
    return [
        (v, k)
        for v, vehicle in enumerate(slow.vehicles)
        for k, task in enumerate(slow.waiting)
        if vehicle.status == full.IDLE and any(task is other for other in slow.offered(vehicle))
    ]


def keep_least(items, most, rate):
    """At most so many of the least ratings, the first of equals, in their order."""
    items = list(items)
    if len(items) <= most:
        return items
    least = set(sorted(items, key=rate)[:most])
    return [item for item in items if item in least]


class Scene:
    """What all pairs of a decision share; on a large floor the tasks, vehicles and pairs that are looked at.

    slow : a `full.Episode` at a decision
    knows_breakdowns : whether planned breakdowns are looked at
    class_weights : weight of a late task of priority 0, 1, ...
    """

    def __init__(self, slow, knows_breakdowns, class_weights=(1.0,)):
        self.slow, self.floor, self.now = slow, slow.floor, slow.time
        self.knows_breakdowns, self.class_weights = knows_breakdowns, class_weights
        self.unit = mean_distance(slow.floor) / fmean(vehicle.speed for vehicle in slow.vehicles)
        self.tasks = keep_least(range(len(slow.waiting)), MOST_TASKS, self.rate_task)
        self.fleet = keep_least(range(len(slow.vehicles)), MOST_VEHICLES, self.rate_vehicle)
        possible = [(v, k) for v, k in pairs(slow) if v in self.fleet and k in self.tasks]
        self.pairs = keep_least(possible, MOST_PAIRS, self.rate_pair)

    def find_breakdown(self, vehicle):
        """When a vehicle breaks down next by plan, and when it is back; inf without."""
        coming = [item for item in vehicle.breakdowns if item[0] > self.now]
        if not self.knows_breakdowns or vehicle.status == full.BROKEN or not coming:
            return math.inf, math.inf
        tick, repair = coming[0]
        return tick - self.now, tick - self.now + repair + 1

    def find_free(self, vehicle):
        """When a vehicle is free, inf if nobody knows, and at which site; None for where it stands."""
        if vehicle.status == full.IDLE:
            return 0.0, None
        if vehicle.status == full.BROKEN:
            left, site = 0, None
            if vehicle.task is not None:  # it keeps its load
                left, site = vehicle.finish - vehicle.repaired_at, vehicle.task.delivery
            if vehicle.mean_times is not None:
                return vehicle.mean_times[1] + left, site
            back = vehicle.repaired_at - self.now
            return back + left if self.knows_breakdowns else math.inf, site
        breakdown, back = self.find_breakdown(vehicle)
        finish = vehicle.finish - self.now
        if breakdown <= finish:
            if self.slow._loads_stay and vehicle.loaded_at - self.now < breakdown:
                return finish + back - breakdown + 1, vehicle.task.delivery
            return back, vehicle.site
        return finish, vehicle.task.delivery

    def find_trip(self, vehicle, site, task):
        """Seconds to the pickup, and from there to the delivery, handling included."""
        ride = drive(self.floor, task.pickup, task.delivery, vehicle.speed) + task.handling
        if site is None:
            return true_way(self.floor, vehicle, task.pickup), ride
        return drive(self.floor, site, task.pickup, vehicle.speed), ride

    def delay(self, vehicle, free, end):
        """When a trip ends; it begins after the repair if the vehicle would break down before its end."""
        breakdown, back = self.find_breakdown(vehicle)
        return back + (end - free) if free < breakdown <= full.round9(end) else end

    def rate(self, task, ride, end):
        """What comes first has the highest priority, then the least key."""
        spare = min(task.due - self.now - end, 1.7 * self.unit)
        return -task.priority, full.round9(end - 0.5 * ride + 0.3 * spare)

    def rate_next(self, vehicle, task):
        """How soon a vehicle would take a task next, whether it breaks down or not."""
        free, site = self.find_free(vehicle)
        if free == math.inf or not vehicle.can_carry(task):
            return math.inf, math.inf
        way, ride = self.find_trip(vehicle, site, task)
        return self.rate(task, ride, free + way + ride)

    def rate_task(self, k):
        """By the idle vehicle that would take it first."""
        idle = [vehicle for vehicle in self.slow.vehicles if vehicle.status == full.IDLE]
        return min(self.rate_next(vehicle, self.slow.waiting[k]) for vehicle in idle)

    def rate_vehicle(self, v):
        """Idle ones first, then by the task that it would take first; last those that can take none."""
        vehicle = self.slow.vehicles[v]
        least = min(self.rate_next(vehicle, self.slow.waiting[k]) for k in self.tasks)
        return (2,) if least[0] == math.inf else (int(vehicle.status != full.IDLE), *least)

    def rate_pair(self, pair):
        vehicle, task = self.slow.vehicles[pair[0]], self.slow.waiting[pair[1]]
        way, ride = self.find_trip(vehicle, None, task)
        return self.rate(task, ride, self.delay(vehicle, 0.0, way + ride))


class Look:
    """What can be seen of one possible pair of a scene; every feature is a method of its name.

    v, k : vehicle, and position of the task in the pool
    steps : tasks that are done, and when
    empties : ways to pickups
    place : when each vehicle is free at last, and where
    """

    def __init__(self, scene, v, k):
        self.scene, self.task = scene, scene.slow.waiting[k]
        self.fleet = {u: scene.slow.vehicles[u] for u in scene.fleet}
        self.way, self.ride = scene.find_trip(self.fleet[v], None, self.task)
        self.spare = self.task.due - scene.now - self.way - self.ride
        self.left = list(scene.tasks)
        self.steps, self.empties = [], [self.way]
        self.place = {
            u: scene.find_free(vehicle)
            for u, vehicle in self.fleet.items()
            if scene.find_free(vehicle)[0] < math.inf
        }
        breakdown, back = scene.find_breakdown(self.fleet[v])
        end = self.way + self.ride
        if breakdown <= full.round9(end):  # the task waits on
            self.place[v] = back, self.task.pickup
        else:
            self.take(v, k, end)
        while self.left and len(self.steps) < MOST_STEPS:
            options = self.list_options()
            if not options:
                break
            _, v, k, way, end = min(options)
            self.empties.append(way)
            self.take(v, k, end)

    def take(self, v, k, end):
        task = self.scene.slow.waiting[k]
        self.left.remove(k)
        self.steps.append((task, end))
        self.place[v] = end, task.delivery

    def list_options(self):
        """What may be done next: its rating, vehicle, position of the task, way to the pickup, end."""
        found = []
        for v, (free, site) in self.place.items():
            for k in self.left:
                task = self.scene.slow.waiting[k]
                if self.fleet[v].can_carry(task):
                    way, ride = self.scene.find_trip(self.fleet[v], site, task)
                    end = self.scene.delay(self.fleet[v], free, free + way + ride)
                    found.append((self.scene.rate(task, ride, end), v, k, way, end))
        return found

    def units(self, seconds):
        return seconds / self.scene.unit

    def spares(self):
        return [task.due - self.scene.now - end for task, end in self.steps]

    def weigh_late(self, measure):
        """The sum of a measure of the time that each late task is late by, by the weight of its class."""
        total, weights = 0.0, self.scene.class_weights
        for (task, _), spare in zip(self.steps, self.spares(), strict=True):
            if spare < -1e-9:
                total += weights[min(int(task.priority), len(weights) - 1)] * measure(-spare)
        return total

    def ends(self):
        return [free for free, _ in self.place.values()]

    # The features

    def approach(self):
        return self.units(self.way)

    def loaded(self):
        return self.units(self.ride)

    def slack(self):
        return cut(self.units(self.spare), 0.0, FAR)

    def lateness(self):
        return max(0.0, -self.units(self.spare))

    def waiting(self):
        return self.units(self.scene.now - self.task.waiting_since)

    def last_end(self):
        return self.units(max(self.ends()))

    def total_late(self):
        return self.units(self.weigh_late(lambda late: late))

    def n_late(self):
        return self.weigh_late(lambda late: 1.0)

    def empty(self):
        return self.units(sum(self.empties))

    def imbalance(self):
        return self.units(max(self.ends()) - min(self.ends()))


def score(look, features, theta):
    """Score of a pair, and the sum of all magnitudes in it, which rounding is relative to.

    features : of `policies.index.FEATURES`
    theta : a weight per feature, each per its scale
    """
    parts = [
        weight * getattr(look, feature.name)() / feature.scale
        for feature, weight in zip(features, theta, strict=True)
    ]
    return sum(parts), sum(map(abs, parts))


def softmax(scores):
    """Probability of each pair when one is drawn."""
    weights = [math.exp(value - max(scores)) for value in scores]
    return [weight / sum(weights) for weight in weights]
