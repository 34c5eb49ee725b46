"""What policies see and choose where vehicles wait, park, charge and are called back, beside slow ones."""

import math
import random
from statistics import fmean

import full
import naive_baselines
import naive_index
import numpy as np
import pytest
import worlds
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from played import KINDS, ROW, Played

from acerl_np import Lookahead
from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching.deciders import make_baseline_decider, make_index_decider
from acerl_np.kernels.dispatching.index import CURRENT, N_INDEX_FEATURES
from acerl_np.kernels.episode.events import advance_events
from acerl_np.kernels.motion.commitment import take_decision
from acerl_np.kernels.rollout.episodes import decide_rows
from acerl_np.kernels.rollout.lookahead import UNFINISHED, begin_lookahead, rate_candidates
from acerl_np.policies.index import FEATURES, KNOWN, WAITING, IndexPolicy
from acerl_np.policies.rules import BASELINES, RULES, RulePolicy
from acerl_np.problem.layout import Layout

pytestmark = pytest.mark.oracle


class Seen:
    """What policies look at, in the slow simulator."""

    def __init__(self, slow):
        self.slow, self.now = slow, slow.time
        self.vehicles, self.pool = slow.vehicles, slow.task_pool
        speed = fmean(vehicle.speed for vehicle in self.vehicles)
        self.unit = naive_index.mean_distance(slow.floor) / speed

    def is_free(self, v):
        return v not in self.slow._settled and self.slow.is_free(self.vehicles[v])

    def find_way(self, v, task):
        """Metres and seconds from where a free vehicle is now to a pickup."""
        vehicle = self.vehicles[v]
        site, tick, left = self.slow._stand(vehicle)
        if vehicle.stops:  # it turns at the next site
            metres = self.slow.floor.distances[site, task.pickup]
            seconds = naive_index.drive(self.slow.floor, site, task.pickup, vehicle.speed)
        else:
            metres, seconds = naive_index.find_way(self.slow.floor, vehicle, task.pickup)
        return left + metres, tick - self.now + seconds

    def look(self, v, task):
        """The features of a pair that are of call-backs and batteries."""
        vehicle, present = self.vehicles[v], self.vehicles[task.vehicle]
        found = dict.fromkeys(KNOWN[CURRENT:N_INDEX_FEATURES], 0.0)
        found["current"] = float(task.vehicle == v)
        if task.vehicle not in (-1, v):
            gain = present.loaded_at - self.now - self.find_way(v, task)[1]
            found["gain"] = gain / self.unit
        found["level"] = found["reserve"] = 1.0
        battery, slow = vehicle.battery, self.slow
        if battery is not None:
            beyond = vehicle.level - slow._need(vehicle, task)
            ticks = full.ticks_to_charger(slow.floor, slow._chargers, task.delivery, vehicle)
            found["level"] = vehicle.level / battery.capacity
            found["reserve"] = beyond / battery.capacity
            found["charger_near"] = ticks / self.unit
        return found

    def find_soonest(self, vehicle):
        """In how many seconds a vehicle is free that is not now."""
        if vehicle.word == "broken":
            return math.inf
        if vehicle.word == "working":
            return vehicle.finish - self.now
        begin = vehicle.finish if vehicle.word == "to_charger" else self.now
        battery = vehicle.battery
        level = max(0, vehicle.level - battery.empty * (begin - self.now))
        return begin - self.now + max(0, math.ceil((battery.resume - level) / battery.charge))

    def wait(self):
        """The features of waiting."""
        n = len(self.vehicles)
        free = [self.is_free(v) for v in range(n)]
        busy = (vehicle for v, vehicle in enumerate(self.vehicles) if not free[v])
        soonest = min(map(self.find_soonest, busy), default=math.inf)
        due = min(task.due for task in self.pool) - self.now
        words = [vehicle.word for vehicle in self.vehicles]
        return {
            "wait": 1.0,
            "idle_share": sum(free) / n,
            "crowd": len(self.pool) / n,
            "next_free": min(4.0, soonest / self.unit),
            "next_due": max(-4.0, min(4.0, due / self.unit)),
            "charging_share": sum(x in ("to_charger", "queued", "charging") for x in words) / n,
        }

    def list_costs(self):
        """What "assignment" compares, ms: of free vehicles, and of those that are free once they deliver."""
        costs, later = {}, {}
        names = {task.name: k for k, task in enumerate(self.pool)}
        for v, name in self.slow.candidates():
            costs[v, names[name]] = self.find_way(v, self.pool[names[name]])[1]
        for v, vehicle in enumerate(self.vehicles):
            if self.slow.commitment != "pickup" or vehicle.word != "working" or self.is_free(v):
                continue
            fitting = [k for k, task in enumerate(self.pool) if self.fits_later(vehicle, task)]
            highest = max((self.pool[k].priority for k in fitting), default=0)
            for k in (k for k in fitting if self.pool[k].priority == highest):
                way = vehicle.task.delivery, self.pool[k].pickup, vehicle.speed
                seconds = naive_index.drive(self.slow.floor, *way)
                later[v, k] = vehicle.finish - self.now + seconds
        for some in (costs, later):
            for v, k in some:
                some[v, k] -= 0.3 * (self.now - self.pool[k].waiting_since)
                some[v, k] = int(np.floor(1e3 * full.round9(some[v, k]) + 0.5))
        return costs, later

    def fits_later(self, vehicle, task):
        if not vehicle.can_carry(task):
            return False
        if vehicle.battery is None:
            return True
        loads = max(self.now, vehicle.loaded_at)
        level = vehicle.level - vehicle.battery.empty * (loads - self.now)
        level -= vehicle.battery.loaded * (vehicle.finish - loads)
        need = self.slow._need(vehicle, task, vehicle.task.delivery)
        return max(0, level) >= need


def ask(fast, decider):
    chosen = np.empty((1, 3), np.int64)
    decide_rows(fast.problem, fast.state, decider, np.zeros((1, 4), np.uint32), chosen)
    return tuple(chosen[0, :2].tolist())


def check_index(fast, seen, policy):
    """Its features are the slow ones; the best score wins, waiting too if a vehicle comes for each task."""
    decider = make_index_decider(policy.index, fast.problem, True)
    chosen = ask(fast, decider)
    pairs = decider.pairs
    scores = {}
    weights = dict(zip(policy.features, policy.theta, strict=True))
    scaled = {item.name: weights[item.name] / item.scale for item in FEATURES}
    returning = sum(vehicle.word in ("working", "broken") for vehicle in seen.vehicles)
    waits = len(seen.pool) <= returning
    for n in range(int(pairs.n[0]) - waits):
        v, k = int(pairs.vehicle[n]), int(pairs.position[n])
        found = dict(zip(KNOWN, pairs.x[n].tolist(), strict=False))
        for name, value in seen.look(v, seen.pool[k]).items():
            assert found[name] == pytest.approx(value, rel=1e-4, abs=1e-4), (v, k, name)
        scores[v, k] = sum(scaled[name] * found[name] for name in found)
    if waits:
        expected = seen.wait()
        found = dict(zip(WAITING, pairs.wait.tolist(), strict=True))
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
        scores[-1, -1] = sum(scaled[name] * value for name, value in expected.items())
    assert scores[chosen] == pytest.approx(max(scores.values()), rel=1e-3, abs=1e-3)
    return chosen


def check_pair(fast, seen, rule):
    """The pair is the one that the page names: by seconds, of the same time by approach, pool, vehicle."""

    def measure(v, k):
        task = seen.pool[k]
        return full.round9(seen.find_way(v, task)[1]), seen.slow.ready_in(task), 0.0

    names = {task.name: k for k, task in enumerate(seen.pool)}
    pairs = [(v, names[name]) for v, name in seen.slow.candidates()]
    n_free = sum(map(seen.is_free, range(len(seen.vehicles))))
    expected = naive_baselines.choose_of(pairs, seen.pool, rule, n_free, measure)
    assert ask(fast, make_baseline_decider(RULES[rule], fast.problem)) == expected
    return expected


def check_assignment(fast, seen):
    """The pair is one of a best assignment; nobody is taken only if there is one of busy vehicles alone."""
    chosen = ask(fast, make_baseline_decider(RULES["assignment"], fast.problem))
    free, later = seen.list_costs()
    costs = {**free, **later}
    if chosen == (-1, -1):
        assert seen.slow.may_wait()
        assert naive_baselines.find_best(later) == naive_baselines.find_best(costs)
    else:
        others = {(v, k): x for (v, k), x in costs.items() if v != chosen[0] and k != chosen[1]}
        number, least = naive_baselines.find_best(others)
        assert (number + 1, least + free[chosen]) == naive_baselines.find_best(costs)
    return chosen


def play(world, commitment, seed):
    draws = random.Random(seed)
    theta = np.random.default_rng(seed).normal(size=len(KNOWN))
    policy = IndexPolicy(theta, features=KNOWN, planned_breakdowns=False)
    layout = Layout.from_dict(world.layout).with_commitment(commitment)
    fast = Played(layout, world.rows)
    slow = full.Episode(world.layout, world.rows, commitment=commitment, scaling=worlds.RAW)
    while not slow.done:
        seen = Seen(slow)
        chosen = [check_index(fast, seen, policy)]
        chosen += [check_pair(fast, seen, rule) for rule in BASELINES if rule != "assignment"]
        chosen.append(check_assignment(fast, seen))
        v, k = draws.choice(chosen)
        if v < 0:
            slow.wait()
        else:
            slow.assign(v, seen.pool[k].name)
        fast.decide(v, k)


@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, phases=[Phase.generate])
@given(data=st.data())
def test_policies_see_and_choose_as_the_slow_ones(kind, commitment, data):
    play(data.draw(KINDS[kind]), commitment, data.draw(st.integers(0, 10**6)))


@settings(max_examples=60, phases=[Phase.generate])
@given(st.integers(0, 2**32 - 1), st.sampled_from(["assignment", "pickup"]))
def test_baselines_of_announced_tasks_compare_pairs(seed, commitment):
    world, draws = worlds.chained_world(seed), random.Random(seed)
    fast = Played(Layout.from_dict(world.layout).with_commitment(commitment), world.rows)
    slow = full.Episode(world.layout, world.rows, commitment=commitment, scaling=worlds.RAW)
    while not slow.done:
        rules = [rule for rule in BASELINES if rule != "assignment"]
        v, k = draws.choice([check_pair(fast, Seen(slow), rule) for rule in rules])
        slow.assign(v, slow.pool[k])
        fast.decide(v, k)


# Lookahead


def play_on(fast, base, chosen):
    """Mean delay, s, of the tasks that are open now, and of all, if a choice is taken and a base goes on."""
    state = S.State(*(array.copy() for array in fast.state))
    working = fast.state.vehicle[0]["status"] == S.WORKING
    opened = {*fast.state.vehicle[0, working].task.tolist()}
    opened |= {*fast.state.pool[0, : fast.pool_size].tolist()}
    find, found = base.prepare(fast.problem, [fast.layout], True)[1](), np.empty((1, 3), np.int64)
    while state.episode["phase"][0] == S.RUNNING:
        take_decision(fast.problem, state, ROW, *map(np.int64, chosen))
        advance_events(fast.problem, state, ROW)
        decide_rows(fast.problem, state, find, np.zeros((1, 4), np.uint32), found)
        chosen = found[0, :2].tolist()
    if state.episode["phase"][0] != S.FINISHED:
        return UNFINISHED, UNFINISHED
    record = fast.problem.record[0]
    due = record["arrival"] + record["expiry"]
    late = np.maximum(0.0, state.task["finish"][0] - due)
    return late[sorted(opened)].mean(), late.mean()


def look_ahead(world, commitment, seed):
    """Where nothing is to come, a candidate is worth what comes of it: the future goes on from what is."""
    draws = random.Random(seed)
    rows = [{**row, "arrival_time": 0, "earliest_start": 0} for row in world.rows]
    fleet = [{**entry, "breakdowns": []} for entry in world.layout["vehicles"]]
    layout = Layout.from_dict({**world.layout, "vehicles": fleet}).with_commitment(commitment)
    fast = Played(layout, rows)
    theta = np.random.default_rng(seed).normal(size=len(KNOWN) - 3)
    index = IndexPolicy(theta, features=KNOWN[:-3])
    asked = []
    for base in (RulePolicy("nearest"), RulePolicy("assignment"), index):
        for horizon in (np.inf, 1e9):
            how = {"futures": 0, "objective": "tardiness", "horizon": horizon}
            ahead = Lookahead(getattr(base, "name", base), **how)
            problem, make = ahead.prepare(fast.problem, [layout], True)
            asked.append((base, horizon, problem, make()))
    while fast.phase == S.RUNNING:
        for base, horizon, problem, own in asked:
            found = begin_lookahead(problem, fast.state, ROW, own, np.zeros(4, np.uint32), 0)
            assert found > 0
            rate_candidates(problem, fast.state, ROW, own, S.NEVER)
            for n in range(int(own.n_candidates[0])):
                chosen = own.candidate[0, n].tolist()
                worth = play_on(fast, base, chosen)[int(horizon == np.inf)]
                assert own.value[0, 0, n] == pytest.approx(worth), (base, horizon, chosen)
        *_, own = draws.choice(asked)
        fast.decide(*draws.choice(own.candidate[0, : int(own.n_candidates[0])].tolist()))


@pytest.mark.long
@pytest.mark.parametrize("commitment", ["assignment", "pickup"])
@pytest.mark.parametrize("kind", ["batteries", "both"])
@settings(max_examples=10, phases=[Phase.generate])
@given(data=st.data())
def test_futures_go_on_from_what_is(kind, commitment, data):
    look_ahead(data.draw(KINDS[kind]), commitment, data.draw(st.integers(0, 10**6)))
