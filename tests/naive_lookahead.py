"""A slow, obvious lookahead on the slow simulator: the oracle of `kernels.rollout.lookahead`.

What a future is, what a record weighs and what a candidate is worth, written from the words of
`policies.lookahead.Lookahead`. Draws are those of `kernels.core.random`, by the kernel's counters.
"""

import copy
import math
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import full
import naive_baselines
import naive_index

from acerl_np.kernels.core.random import draw_uniform, draw_waiting_time

GOLDEN = 0.6180339887498949
TRUST = 2.0
UNFINISHED = 1e9


def same_kind(a, b):
    return (a.pickup, a.delivery, a.expiry, a.demand) == (b.pickup, b.delivery, b.expiry, b.demand)


@dataclass
class Match:
    """How a record agrees with the day so far; `left` are its tasks without a counterpart, by position."""

    agreement: float = 0.0
    deviation: float = 0.0
    left: tuple = ()
    looked: int = 0


def match(record, seen, now, window, reach):
    """Pair each task of the last `reach` s of the day with the nearest of its kind in a record.

    record, seen : lists of `full.Task`, by arrival; times since the day's start
    """
    seen = [task for task in seen if task.arrival >= now - reach]
    left = list(range(len(record)))
    deviations = []
    for task in seen:
        near = [
            (abs(record[k].arrival - task.arrival), k)
            for k in left
            if same_kind(record[k], task) and abs(record[k].arrival - task.arrival) <= window
        ]
        if near:
            deviation, k = min(near)
            left.remove(k)
            deviations.append(deviation)
    largest = max(deviations, default=0.0)
    early = now - reach + window
    missed = sum(record[k].arrival >= early and record[k].arrival + largest < now for k in left)
    n = len(deviations)
    deviation = math.ceil(largest * (n + 2) / (n + 1))
    return Match(n / max(1, len(seen) + missed), deviation, tuple(left), len(seen))


def weigh(history, excluded, seen, now, window, reach, *, matches):
    """Matches and weights of the records."""
    if matches:
        found = [
            Match() if out else match(record, seen, now, window, reach)
            for record, out in zip(history, excluded, strict=True)
        ]
    else:
        found = [Match() for _ in history]
    trust = [TRUST * item.looked * max(0.0, 2.0 * item.agreement - 1.0) for item in found]
    weights = [
        0.0 if out else math.exp(t - max(trust)) for t, out in zip(trust, excluded, strict=True)
    ]
    return found, [weight / sum(weights) for weight in weights]


def pick(weights, place):
    """The record that a place in [0, 1) falls on."""
    last = 0
    for h, weight in enumerate(weights):
        if weight > 0.0:
            last = h
            place -= weight
            if place < 0.0:
                return h
    return last


def find_window(slow):
    """Seconds that a vehicle of mean speed takes for the mean distance between two sites."""
    return naive_index.mean_distance(slow.floor) / fmean(vehicle.speed for vehicle in slow.vehicles)


class Lookahead:
    """One decision on the slow simulator.

    slow : a `full.Episode` at a decision
    history : lists of `full.Task`
    breakdowns : per record and vehicle, a list of (tick, ticks of the repair) by time
    excluded : per record, whether it is no future of this one
    key : ndarray(uint32, (4,)), stream of the decision's draws
    options : `futures`, `matches`, `candidates`, `goal`, `penalty`, `margin`, `horizon` (s, or infinity)
    base : "STD", another rule, "MIX", "Random", "opentcs", or None for the nearest pickup;
        or what returns vehicle and position in the pool for a day
    """

    def __init__(self, slow, history, breakdowns, excluded, key, base, options):
        self.slow, self.history, self.breakdowns = slow, history, breakdowns
        self.key, self.base, self.options = key, base, options
        seen = [task for task in slow.tasks if task.arrival <= slow.time]
        self.seen = seen
        reach = find_window(slow), options["horizon"]
        self.matches, self.weights = weigh(
            history, excluded, seen, slow.time, *reach, matches=options["matches"]
        )
        self.candidates = self.list_candidates()

    def record_of(self, f):
        place = draw_uniform(self.key, 0, 0) + f * GOLDEN
        return pick(self.weights, place - math.floor(place))

    def move(self, arrival, most, k, f):
        """Arrival of task k of a record in future f: moved by whole seconds, but for one of 0."""
        if arrival <= 0.0:
            return arrival
        noise = math.floor(draw_uniform(self.key, k, f + 1) * (2 * most + 1)) - most
        return max(0.0, arrival + noise)

    def tasks_to_come(self, f):
        """Tasks of future f that have not arrived, by arrival."""
        h, now = self.record_of(f), self.slow.time
        found, record = self.matches[h], self.history[h]
        coming = []
        if found.agreement <= 0.5:
            unit = math.floor(find_window(self.slow))
            for k, task in enumerate(record):
                arrival = self.move(task.arrival, unit, k, f)
                if arrival > now:
                    coming.append((arrival, task))
        else:
            for k in found.left:
                arrival = record[k].arrival
                if arrival + found.deviation < now:
                    continue
                arrival = self.move(arrival, found.deviation, k, f)
                coming.append((max(arrival, now + 1.0), record[k]))
        coming.sort(key=lambda item: item[0])
        return [
            replace(task, arrival=a, waiting_since=a, known=math.ceil(a))
            for a, task in coming
            if a <= now + self.options["horizon"]
        ]

    def find_repair_end(self, v, h, f):
        """Tick at which a broken vehicle may be back."""
        now, vehicle = self.slow.time, self.slow.vehicles[v]
        if vehicle.mean_times is not None:
            draw = draw_waiting_time(self.key, f, 2 * v + 1)
            return now + max(1, math.ceil(full.round9(vehicle.mean_times[1] * draw)))
        past = [ticks for tick, ticks in self.breakdowns[h][v] if tick <= now]
        if past:
            ticks = past[-1]
        else:
            listed = [ticks for own in self.breakdowns[h] for _, ticks in own]
            ticks = sum(listed) // len(listed) if listed else int(find_window(self.slow))
        return max(now + 1, vehicle.began + ticks + 1)

    def open_future(self, f):
        """The present with the tasks and breakdowns of future f to come."""
        h = self.record_of(f)
        floor = self.slow.floor
        day = copy.deepcopy(self.slow, {id(floor): floor})
        future_key = self.key ^ type(self.key[0])(f + 1)
        day.stream = future_key
        day.waiting_time = lambda v, n, what: draw_waiting_time(future_key, n, 2 * v + what)
        arrived = [task for task in day.tasks if task.arrival <= day.time]
        if self.options["horizon"] < math.inf:
            arrived = [task for task in arrived if not task.finished]
        day.replace_tasks([*arrived, *self.tasks_to_come(f)])
        for v, vehicle in enumerate(day.vehicles):
            vehicle.breakdowns = self.breakdowns[h][v]
            if vehicle.status == full.BROKEN:
                late = self.find_repair_end(v, h, f) - vehicle.repaired_at
                vehicle.repaired_at += late
                if vehicle.task is not None:  # it delivers its load as much later
                    vehicle.finish += late
                    vehicle.task.finish += late
            else:
                day._plan_failure(v, vehicle)
        return day

    # The base

    def choose(self, day):
        """What the base does: vehicle and position in the pool."""
        if self.base is None:
            return self.order_pairs(day)[0]
        if callable(self.base):
            return self.base(day)
        if self.base == "opentcs":
            return naive_baselines.choose(day, self.base)
        able = [v for v in range(len(day.vehicles)) if day.mask()[len(day.rules) * v]]
        v = able[int(draw_uniform(day.stream, day.n_decisions, 0) * len(able))]
        second = draw_uniform(day.stream, day.n_decisions, 1)
        if self.base == "Random":
            offered = day.offered(day.vehicles[v])
            visible = [k for k, t in enumerate(day.waiting) if any(t is x for x in offered)]
            return v, visible[int(second * len(visible))]
        rule = full.ACTION_RULES[int(second * 4)] if self.base == "MIX" else self.base
        return v, day.select(v, rule)

    def order_pairs(self, day):
        """Every possible pair, the shortest time to its pickup first."""

        def approach(v, k):
            return naive_index.true_way(day.floor, day.vehicles[v], day.waiting[k].pickup)

        return sorted(naive_index.pairs(day), key=lambda pair: round(approach(*pair), 6))

    def list_candidates(self):
        """Assignments that are tried, the base's own choice first."""
        day = self.open_future(0)
        most = self.options["candidates"]
        if self.base is None:
            return self.order_pairs(day)[:most]
        found = [self.choose(day)]
        for v in range(len(day.vehicles)):
            if day.mask()[len(day.rules) * v]:
                found += [(v, day.select(v, rule)) for rule in day.rules]
        return list(dict.fromkeys(found))[:most]

    def value(self, f, v, k):
        """Objective and penalty of future f if vehicle v takes the task at position k now."""
        day = self.open_future(f)
        day.assign(v, k)
        while not day.done:
            day.assign(*self.choose(day))
        late = 100.0 * fmean(task.finish > task.due + 1e-9 for task in day.tasks)
        goal, options = self.options["goal"], self.options
        value = {"makespan": day.makespan, "late+0.05*tardiness": late + 0.05 * day.tardiness}[
            goal.objective
        ]
        scale = goal.scale  # that of the cost, the tardiness, is 1
        excess = max(0.0, day.tardiness - (goal.cost_limit - options["margin"]))
        return value + options["penalty"] * scale * excess

    def values(self):
        """Value of each candidate in each future."""
        futures = range(self.options["futures"])
        return [[self.value(f, v, k) for f in futures] for v, k in self.candidates]

    def pick(self, values):
        """Which candidate has the least mean; with a horizon the first one if chance makes that unclear."""
        means = [fmean(own) for own in values]
        best = next(k for k, x in enumerate(means) if x <= min(means) + 1e-9 * abs(min(means)))
        is_certain = not any(self.history)
        if self.options["horizon"] < math.inf and best > 0 and not is_certain:
            gains = [x - y for x, y in zip(values[0], values[best], strict=True)]
            if len(gains) < 2:
                return 0
            # A gain of just its error, as of two futures with one equal, is none, however it is rounded.
            error = stdev(gains) / math.sqrt(len(gains))
            if fmean(gains) <= error * (1.0 + 1e-9):
                return 0
        return best
