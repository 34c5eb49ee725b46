"""Slow, obvious features and scores of index policies: the oracle of `kernels.index`.

Written from the words of `policies.index.FEATURES`, feature by feature, on the slow simulator's vehicles and
tasks. Times are in units of the time that a vehicle of mean speed takes for the mean distance between two
sites of the floor, ways in that mean distance.
"""

from __future__ import annotations

import math
from statistics import fmean

import naive

FAR = 4.0
"""Units at which what may grow without end is cut."""

MOST_OTHERS = 32
"""Waiting tasks, the first in pool order, that a task is compared with."""


def cut(x, low, high):
    return max(low, min(high, x))


def mean_distance(floor):
    """Mean over the ordered pairs of different sites that have a way; 1 m on a floor without distances."""
    known = [metres for (a, b), metres in floor.distances.items() if a != b and metres < math.inf]
    return (fmean(known) if known else 0.0) or 1.0


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
    return min(reversed(ways), key=lambda way: naive.round9(way[measure]))


def pairs(slow):
    """Every possible pair (vehicle, position in the pool), by vehicle and then by position."""
    return [
        (v, k)
        for v, vehicle in enumerate(slow.vehicles)
        for k, task in enumerate(slow.waiting)
        if vehicle.status == naive.IDLE and any(task is other for other in slow.offered(vehicle))
    ]


class Look:
    """What can be seen of one possible pair; every feature is a method of its name.

    slow : a `naive.NaiveEpisode` at a decision
    v, k : vehicle, and position of the task in the pool
    knowledge : kinds of knowledge
    """

    def __init__(self, slow, v, k, knowledge):
        self.slow, self.floor, self.now = slow, slow.floor, slow.time
        self.vehicle, self.task = slow.vehicles[v], slow.waiting[k]
        self.rivals = [vehicle for u, vehicle in enumerate(slow.vehicles) if u != v]
        self.others = [task for j, task in enumerate(slow.waiting[:MOST_OTHERS]) if j != k]
        self.knows_breakdowns = "breakdowns" in knowledge
        self.metres = mean_distance(slow.floor)
        self.speed = fmean(vehicle.speed for vehicle in slow.vehicles)
        self.unit = self.metres / self.speed

    # Times in seconds

    def _distance(self, a, b):
        return self.floor.distances[a, b]

    def _way(self):
        return true_way(self.floor, self.vehicle, self.task.pickup)

    def _loaded(self, task, speed):
        return drive(self.floor, task.pickup, task.delivery, speed) + task.handling

    def _trip(self):
        return self._way() + self._loaded(self.task, self.vehicle.speed)

    def _finish(self):
        return self.now + self._trip()

    def _spare(self):
        return self.task.due - self._finish()

    def _fetches_in(self, rival):
        """Seconds until a rival could be at the pickup; infinite if it cannot, or nobody knows when."""
        if not rival.can_carry(self.task):
            return math.inf
        if rival.status == naive.WORKING:
            way = drive(self.floor, rival.task.delivery, self.task.pickup, rival.speed)
            return rival.finish - self.now + way
        way = true_way(self.floor, rival, self.task.pickup)
        if rival.status == naive.BROKEN:
            if not self.knows_breakdowns or rival.mean_times is not None:
                return math.inf
            return rival.repaired_at - self.now + way
        return way

    def _next_breakdown(self):
        """Tick of the vehicle's next planned breakdown, None without any."""
        ticks = [tick for tick, _ in self.vehicle.breakdowns if tick > self.now]
        return min(ticks, default=None)

    # The features

    def approach(self):
        return self._way() / self.unit

    def loaded(self):
        return self._loaded(self.task, self.vehicle.speed) / self.unit

    def slack(self):
        return cut(self._spare() / self.unit, 0.0, FAR)

    def urgency(self):
        return cut(1.0 - self._spare() / self.unit, 0.0, 1.0)

    def lateness(self):
        return max(0.0, -self._spare() / self.unit)

    def waiting(self):
        return (self.now - self.task.waiting_since) / self.unit

    def _soonest(self):
        """The rival that could fetch the task first, and in how many seconds; None if none could."""
        rival = min(self.rivals, key=self._fetches_in, default=None)
        if rival is None or self._fetches_in(rival) == math.inf:
            return None, math.inf
        return rival, self._fetches_in(rival)

    def is_close_call(self):
        """Whether rounding may decide which of two unlike rivals is the first."""
        _, least = self._soonest()
        near = [rival for rival in self.rivals if abs(self._fetches_in(rival) - least) < 1e-9]
        return len({rival.speed for rival in near}) > 1

    def other_soonest(self):
        return min(self._soonest()[1] / self.unit, FAR)

    def other_lateness(self):
        rival, seconds = self._soonest()
        if rival is None:
            return FAR
        finish = self.now + seconds + self._loaded(self.task, rival.speed)
        return cut((finish - self.task.due) / self.unit, 0.0, FAR)

    def _next_pickups(self):
        return [self._distance(self.task.delivery, other.pickup) for other in self.others]

    def next_pickup(self):
        return min(self._next_pickups(), default=0.0) / self.metres

    def mean_pickup(self):
        return fmean(self._next_pickups() or [0.0]) / self.metres

    def next_slack(self):
        """At the fleet's mean speed: nobody knows which vehicle will be the one."""
        spare = [FAR * self.unit]
        for other in self.others:
            begun = self._finish() + drive(self.floor, self.task.delivery, other.pickup, self.speed)
            spare.append(other.due - begun - self._loaded(other, self.speed))
        return cut(min(spare) / self.unit, -FAR, FAR)

    def earlier_due(self):
        return fmean([float(other.due < self.task.due) for other in self.others] or [0.0])

    def crowd(self):
        return min(2.0, len(self.slow.waiting) / len(self.slow.vehicles)) / 2.0

    def crowd_approach(self):
        return self.crowd() * self.approach()

    def crowd_slack(self):
        return self.crowd() * self.slack()

    def idle_share(self):
        return fmean(float(vehicle.status == naive.IDLE) for vehicle in self.slow.vehicles)

    def breaks(self):
        """At the tick of its finish a vehicle breaks down before it has delivered."""
        tick = self._next_breakdown()
        ends = self.now + math.ceil(naive.round9(self._trip()))
        return float(tick is not None and tick <= ends)

    def wasted(self):
        return (self._next_breakdown() - self.now) / self.unit if self.breaks() else 0.0

    def margin(self):
        tick = self._next_breakdown()
        return FAR if tick is None else cut((tick - self._finish()) / self.unit, 0.0, FAR)

    def margin_loaded(self):
        return min(1.0, self.margin()) * self.loaded()

    def _arrived(self):
        """Share of the record's tasks that have arrived."""
        return fmean(float(task.arrival <= self.now) for task in self.slow.tasks)

    def _is_last(self):
        return float(self._arrived() == 1.0)

    def last_approach(self):
        return self._is_last() * self.approach()

    def last_loaded(self):
        return self._is_last() * self.loaded()

    def last_overshoot(self):
        ends = [rival.finish for rival in self.rivals if rival.status == naive.WORKING]
        over = self._finish() - max(ends, default=self.now)
        return self._is_last() * cut(over / self.unit, 0.0, FAR)

    def arrived_approach(self):
        return self._arrived() * self.approach()

    def _day(self):
        """How far the day has gone, by the last arrival."""
        last = self.slow.tasks[-1].arrival
        return min(1.0, self.now / last) if last > 0 else 1.0

    def time_approach(self):
        return self._day() * self.approach()

    def time_slack(self):
        return self._day() * self.slack()


def score(slow, v, k, shape, theta):
    """Score of a pair, and the sum of all magnitudes in it, which rounding is relative to.

    shape : `policies.index.IndexShape`
    theta : a weight per feature, each per its typical difference; the first layer's weights, input-major,
        biases and output weights of the hidden units (ReLU); a bias per vehicle
    """
    look = Look(slow, v, k, shape.knowledge)
    x = [getattr(look, feature.name)() / feature.scale for feature in shape.features]
    theta = list(theta)

    def take(n):
        return [theta.pop(0) for _ in range(n)]

    linear = [weight * value for weight, value in zip(take(len(x)), x, strict=True)]
    total, size = sum(linear), sum(map(abs, linear))
    rows = [take(shape.hidden) for _ in x]
    biases, outputs = take(shape.hidden), take(shape.hidden)
    for j in range(shape.hidden):
        inputs = [biases[j], *(row[j] * value for row, value in zip(rows, x, strict=True))]
        total += outputs[j] * max(0.0, sum(inputs))
        size += abs(outputs[j]) * sum(map(abs, inputs))
    if shape.vehicles:
        total += theta[v]
        size += abs(theta[v])
    return total, size


def softmax(scores):
    """Probability of each pair when one is drawn."""
    weights = [math.exp(value - max(scores)) for value in scores]
    return [weight / sum(weights) for weight in weights]
