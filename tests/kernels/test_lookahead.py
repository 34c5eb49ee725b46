"""The lookahead's kernels beside the slow one: weights, futures, candidates, their values; and chains."""

import random
from dataclasses import replace

import full
import naive_lookahead
import numpy as np
import pytest
from episodes import begin, rate
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import JIT
from naive_evolution import forward
from played import Played
from worlds import chained_world, make_task, quarters, straight_floor, worlds

import acerl_np
from acerl_np import IndexPolicy, Instance, Layout, Lookahead, Policy, Simulator, load_instance
from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.random import derive_key
from acerl_np.kernels.rollout.futures import PRESENT, open_future
from acerl_np.kernels.rollout.lookahead import LEAST_FUTURES, pick_candidate, rate_candidates
from acerl_np.policies.lookahead import find_same, move_record
from acerl_np.policies.network import initial_parameters
from acerl_np.problem.goal import Goal
from acerl_np.problem.parts import RandomBreakdowns
from acerl_np.training.parametrisations import describe_network

NEAREST = IndexPolicy.of_weights(approach=-1.0)
BASES = {
    "nearest": (NEAREST, None),
    **{rule: (rule, rule) for rule in ("STD", "EDD", "MIX", "Random", "opentcs")},
}
QUICK = ("STD", "EDD", "MIX", "Random")


def read_tasks(record, layout):
    """The tasks of a record on a floor, as the slow simulator has them."""
    return [full.read_task(row) for row in move_record(record, layout).rows()]


def read_breakdowns(record, layout):
    """Breakdowns of each vehicle in a record, by time."""
    vehicles = move_record(record, layout).layout.to_dict()["vehicles"]
    return [full.read_vehicle(vehicle).breakdowns for vehicle in vehicles]


def read_future(ahead, layout):
    """The tasks of the future at hand, the sites by their ids."""
    n = int(ahead.future.instance["n_tasks"][0])
    names = [site.id for site in layout.sites]
    ends, record = ahead.future.ends[0, :n], ahead.future.record[0, :n]
    fields = ["arrival", "expiry", "handling", "demand"]
    return [
        (names[own["pickup"]], names[own["delivery"]], *numbers[fields].tolist())
        for own, numbers in zip(ends, record, strict=True)
    ]


def show(tasks):
    return [(t.pickup, t.delivery, t.arrival, t.expiry, t.handling, t.demand) for t in tasks]


def compare_decision(simulator, slow, policy, base, instance, key):
    """Compare everything that a lookahead finds out at one decision.

    Without futures it is as with one future: a record without tasks, and the day's own breakdowns.
    """
    ahead = policy.prepare(simulator.problem, [instance])[1]()
    n_futures, layout = max(1, policy.futures), instance.layout
    history = [read_tasks(record, layout) for record in policy.history]
    breakdowns = [read_breakdowns(record, layout) for record in policy.history]
    excluded = find_same([instance], policy.history)[0].tolist()
    if not policy.futures:
        history, breakdowns, excluded = [[]], [read_breakdowns(instance, layout)], [False]
    options = {name: getattr(policy, name) for name in ("candidates", "goal", "penalty", "margin")}
    options |= {"futures": n_futures, "horizon": policy.horizon or np.inf}
    options["matches"] = policy.weights == "match" and policy.futures > 0
    found = begin(simulator, ahead, key, simulator.state.episode["n_decisions"][0])
    expected = naive_lookahead.Lookahead(
        slow, history, breakdowns, excluded, ahead.key.copy(), base, options
    )
    assert found == min(2, len(expected.candidates))
    np.testing.assert_allclose(ahead.weight, expected.weights, rtol=1e-9, atol=1e-12)
    assert ahead.weight.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(ahead.agreement, [m.agreement for m in expected.matches], rtol=1e-12)
    assert ahead.deviation.tolist() == [m.deviation for m in expected.matches]
    n = int(ahead.n_candidates[0])
    assert [tuple(pair) for pair in ahead.candidate[0, :n].tolist()] == expected.candidates
    for f in range(n_futures):
        ahead.known[:] = False  # so that each future is written
        rate(simulator, ahead, f, f + 1)
        arrived = expected.seen
        if policy.horizon:
            arrived = [*slow.waiting, *(x.task for x in slow.vehicles if x.task is not None)]
        assert read_future(ahead, layout) == show([*arrived, *expected.tasks_to_come(f)])
    values = expected.values()
    np.testing.assert_allclose(ahead.total[0, :n], np.sum(values, axis=1), rtol=1e-9, atol=1e-9)
    _, _, v, position = pick_candidate(ahead)
    assert (v, position) == expected.candidates[expected.pick(values)]
    return ahead


def compare_day(instance, policy, base, most=1000):
    """Play a day by lookahead, both at once; return the number of decisions."""
    simulator = Simulator(instance, slots="pool")
    waiting_time = None
    if instance.layout.has_random_breakdowns:
        true_key = simulator.state.breakdown_key[0].copy()

        def waiting_time(v, n, what):
            return naive_lookahead.draw_waiting_time(true_key, n, 2 * v + what)

    slow = full.Episode(
        instance.layout.to_dict(), instance.rows(), rules=policy.rules, waiting_time=waiting_time
    )
    key = np.empty(4, np.uint32)
    n = 0
    while not slow.done and n < most:
        derive_key(9, 9, n, 0, key)
        ahead = compare_decision(simulator, slow, policy, base, instance, key)
        _, _, v, position = pick_candidate(ahead)
        task = int(simulator.state.pool[0, position])
        slow.assign(int(v), int(position))
        simulator.assign([v], [task])
        assert simulator.time[0] == slow.time or slow.done
        n += 1
    return n


@st.composite
def histories(draw, world):
    """One to three records: the day's own tasks moved, some left out, some new, and other breakdowns."""
    ids = [site["id"] for site in world.layout["sites"]]
    records = []
    ends = st.lists(st.sampled_from(ids), min_size=2, max_size=2, unique=True)
    for h in range(draw(st.integers(1, 3))):
        rows = []
        magnitude = draw(st.sampled_from([0, 0, 2, 10]))
        for row in world.rows:
            if draw(st.sampled_from([True, True, True, False])):
                moved = max(0.0, row["arrival_time"] + draw(st.integers(-magnitude, magnitude)))
                rows.append({**row, "arrival_time": moved, "earliest_start": 0})
        for k in range(draw(st.integers(0 if rows else 1, 3))):
            times = draw(quarters(40)), draw(quarters(40))
            rows.append(make_task(f"new{k}", *draw(ends), *times))
        vehicles = []
        for vehicle in world.layout["vehicles"]:
            lists = [vehicle["breakdowns"], [], [{"time": 9, "repair_time": 5}]]
            vehicles.append({**vehicle, "breakdowns": draw(st.sampled_from(lists))})
        layout = Layout.from_dict({**world.layout, "vehicles": vehicles})
        records.append(Instance.from_rows(f"h{h}", layout, rows))
    # One that is surely another.
    extra = make_task("extra", ids[0], ids[1], 4321.0, 9.0)
    records.append(Instance.from_rows("other", records[0].layout, [*records[0].rows(), extra]))
    return records


@st.composite
def days(draw):
    world = draw(worlds())
    return world, draw(histories(world))


GOALS = Goal(cost_limit=10.0), Goal("late+0.05*tardiness", cost_limit=10.0)
OPTIONS = {
    "weights": st.sampled_from(["match", "even"]),
    "futures": st.integers(0, 4),
    "candidates": st.integers(1, 6),
    "horizon": st.sampled_from([None, None, 30.0, 400.0]),
    "objective": st.sampled_from(GOALS),
}


@pytest.mark.slow
@settings(max_examples=30 if JIT else 4)
@given(days(), st.sampled_from(list(BASES)), st.booleans(), st.fixed_dictionaries(OPTIONS))
def test_random_days(day, name, is_random, options):
    world, history = day
    instance = world.instance()
    if is_random:
        model = RandomBreakdowns(200.0, 20.0)
        instance = replace(instance, layout=instance.layout.with_random_breakdowns(model))
    policy, base = BASES[name]
    assert compare_day(instance, Lookahead(policy, history=history, **options), base, 4) >= 1


@pytest.mark.compiles
def test_a_future_ends_at_its_horizon():
    instance = load_instance("DMH-02")
    instance = Instance.from_rows("short", instance.layout, instance.rows()[:8])
    history = [load_instance("DMH-05")]
    ahead = Lookahead("STD", history=history, futures=2, weights="even", horizon=150.0)
    assert compare_day(instance, ahead, "STD", 4) == 4


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.compiles) for name in BASES],
)
@pytest.mark.parametrize("weights", ["match", "even"])
def test_the_benchmarks_days(name, weights):
    """The vehicles break down as listed; a perturbed copy of the day is in the history."""
    instance = acerl_np.perturb(load_instance("DMH-02"), 7, seed=4)
    if not JIT:
        instance = Instance.from_rows("short", instance.layout, instance.rows()[:8])
    history = [load_instance(f"DMH-0{k}") for k in (2, 5, 7)]
    policy, base = BASES[name]
    ahead = Lookahead(policy, history=history, futures=2, weights=weights, candidates=3)
    assert compare_day(instance, ahead, base, 40 if JIT else 2) >= 2


@pytest.mark.long
def test_a_network_tries_what_its_rules_pick():
    instance = load_instance("DMH-03")
    if not JIT:
        instance = Instance.from_rows("short", instance.layout, instance.rows()[:6])
    rules = ("LWT", "AHP", "EDD")
    options = acerl_np.Config(hidden=(6,), slots="pool", rules=rules)
    shape = describe_network([instance], options)
    sizes = (219, 6, 9)
    network = Policy(initial_parameters(sizes, 5), **shape)

    def choose(day):
        logits = forward(sizes, network.theta, day.state(), standardises=False)
        v, rule = divmod(int(np.where(day.mask(), logits, -np.inf).argmax()), len(rules))
        return v, day.select(v, rules[rule])

    ahead = Lookahead(network, history=load_instance("DMH-05"), futures=2, candidates=9)
    assert ahead.rules == rules
    assert compare_day(instance, ahead, choose, 12 if JIT else 2) >= 2


def make_day(rows, breakdowns=(), **keys):
    layout = straight_floor(
        [{"id": "v", "start": "A", "speed": 1, "breakdowns": list(breakdowns)}],
        task_slots=4,
        **keys,
    )
    return Instance.from_rows("day", Layout.from_dict(layout), rows)


def begin_by_hand(day, policy):
    """A simulator at its first decision, and the lookahead that has listed its candidates."""
    simulator = Simulator(day, slots="pool")
    ahead = policy.prepare(simulator.problem, [day])[1]()
    assert begin(simulator, ahead) == 2
    return simulator, ahead


def make_shift(n, gap=30.0):
    """A record of many tasks, the first two at once."""
    rows = [make_task("a", "A", "B", 0, 10), make_task("b", "A", "C", 0, 5)]
    rows += [make_task(f"t{k}", "A", "CB"[k % 2], gap * k + k % 7, 40) for k in range(1, n - 1)]
    return make_day(rows)


@pytest.mark.compiles
def test_the_horizon_of_long_records():
    """900 s; or three mean trips, of the mean way and the loaded one, per task that waits for a vehicle."""

    def find_reach(day, history, **options):
        policy = Lookahead(NEAREST, history=history, **options)
        return begin_by_hand(day, policy)[1].reach[0]

    quiet = make_shift(101)
    assert find_reach(quiet, make_shift(120)) == 900.0
    # A, B at 10, C at 16, each way: 32 / 3 m in the mean. Loaded half by half, but for the first two.
    crowd = make_shift(101, gap=0.0)
    loaded = np.mean([16.0 if row["delivery"] == "C" else 10.0 for row in quiet.rows()])
    waiting = sum(row["arrival_time"] <= 0.0 for row in crowd.rows())
    expected = pytest.approx(3.0 * (32.0 / 3.0 + loaded) * waiting)
    assert find_reach(crowd, quiet) == expected
    # Short records are played to the end, unless a horizon is given.
    short, other = make_shift(60), make_shift(70)
    assert find_reach(short, other) == np.inf
    assert find_reach(short, other, horizon=7) == 7.0
    assert find_reach(quiet, other, horizon=np.inf) == np.inf


@pytest.mark.parametrize("horizon", [None, 300.0])
def test_however_often_it_is_asked_the_sums_are_the_same(horizon):
    """A step at a time, and all at once."""
    how = {"futures": 9, "horizon": horizon, "objective": "late"}
    day, policy = make_shift(12), Lookahead("MIX", history=make_shift(20), **how)
    simulator, once = begin_by_hand(day, policy)
    own = simulator.problem, simulator.state, np.int64(0)
    assert rate_candidates(*own, once, S.NEVER)
    _, stepwise = begin_by_hand(day, policy)
    calls = 1
    while not rate_candidates(*own, stepwise, np.int64(1)):
        calls += 1
    assert calls > 9
    assert np.array_equal(once.total, stepwise.total)
    assert np.array_equal(once.n_seen, stepwise.n_seen)
    assert np.array_equal(once.is_behind, stepwise.is_behind)


@pytest.mark.compiles
def test_no_more_futures_than_it_takes():
    """With a horizon, candidates that are clearly behind are dropped, and a clear leader ends it."""
    rows = [make_task("a", "A", "B", 0, 10), make_task("b", "A", "C", 0, 900)]
    day = make_day(rows)
    history = make_day([make_task("x", "B", "A", 35, 90), make_task("y", "C", "A", 60, 90)])
    options = {"history": history, "futures": 50, "horizon": 200.0, "objective": "tardiness"}
    simulator, ahead = begin_by_hand(day, Lookahead(NEAREST, **options))
    assert rate_candidates(simulator.problem, simulator.state, np.int64(0), ahead, S.NEVER)
    # First a is in time; after b it is late by 16 + 16 + 10 - 10 s, in all futures.
    assert ahead.progress[0] == LEAST_FUTURES
    assert ahead.is_behind[0, :2].tolist() == [False, True]
    assert pick_candidate(ahead)[2:] == (0, 0)


@pytest.mark.parametrize(("gains", "chosen"), [((5, -3, 5, -3), 0), ((1, 1, 1, 1), 1)])
def test_the_bases_own_choice_is_kept_where_another_is_hardly_better(gains, chosen):
    """By 1 in the mean, with a standard error of 4 / sqrt 3, or none."""
    policy = Lookahead(NEAREST, history=make_shift(20), horizon=300.0)
    _, ahead = begin_by_hand(make_shift(12), policy)
    ahead.n_candidates[0], ahead.n_seen[0, :2] = 2, 4
    ahead.total[0, :2] = 40.0, 40.0 - sum(gains)
    ahead.square[0, 1] = sum(gain**2 for gain in gains)
    assert pick_candidate(ahead)[1] == chosen


@pytest.mark.compiles
def test_what_has_left_counts_no_more_with_a_horizon():
    """Late in the day a future holds what is open and what is to come by then, and counts that alone."""
    day, history = make_shift(40), make_shift(50)
    simulator = Simulator(day, slots="pool")
    while simulator.time[0] < 600.0:
        simulator.assign(*NEAREST.choose(simulator))
    policy = Lookahead(NEAREST, history=history, horizon=100.0, objective="waiting", futures=1)
    ahead = policy.prepare(simulator.problem, [day])[1]()
    begin(simulator, ahead)
    rate(simulator, ahead, 0, 1)
    state, n = simulator.state, int(ahead.future.instance["n_tasks"][0])
    under_way = (state.vehicle[0]["task"] >= 0).sum()
    open_tasks = int(state.episode["pool_size"][0] + under_way)
    assert open_tasks <= n <= open_tasks + 5
    played = ahead.states.vehicle[1, 0].waiting
    assert ahead.value[0, 0, 0] == pytest.approx(played / n)
    assert 0.0 < played < 0.5 * state.vehicle[0, 0].waiting


def test_a_broken_vehicle_is_back_when_its_record_says_so():
    """Its true repair is longer than the record's; where none is known yet, it is a tick from now."""

    def make(repair, *more):
        fleet = [{"id": "v", "start": "A", "breakdowns": [{"time": 0, "repair_time": repair}]}]
        layout = Layout.from_dict(straight_floor([*fleet, {"id": "w", "start": "C"}]))
        return Instance.from_rows("day", layout, [make_task("a", "A", "B", 3, 100), *more])

    day = make(500)
    simulator = Simulator(day)
    for repair, back in ((20, 21), (1, 4)):
        history = make(repair, make_task("z", "A", "B", 900, 1))
        policy = Lookahead(NEAREST, history=history, futures=1)
        ahead = policy.prepare(simulator.problem, [day])[1]()
        begin(simulator, ahead)
        rate(simulator, ahead, 0, 1)
        assert ahead.states.vehicle[0, 0].event_tick == back


def test_a_record_that_agrees_by_half_weighs_as_any_other():
    rows = [make_task("a", "A", "B", 0, 100), make_task("b", "A", "C", 0, 100)]
    half = make_day([rows[0], make_task("c", "C", "A", 40, 10)])
    other = make_day([make_task("x", "B", "A", 5, 10)])
    both = Lookahead(NEAREST, history=[half, other], futures=1)
    _, ahead = begin_by_hand(make_day(rows), both)
    assert ahead.agreement.tolist() == [0.5, 0.0]
    assert ahead.weight.tolist() == [0.5, 0.5]
    # Where two tasks agree its log weight is 4.
    both = Lookahead(NEAREST, history=[make_day([*rows, make_task("c", "C", "A", 40, 10)]), other])
    _, ahead = begin_by_hand(make_day(rows), both)
    assert ahead.weight.tolist() == pytest.approx([1.0 / (1.0 + np.exp(x)) for x in (-4.0, 4.0)])
    # Nor is it a copy of the day, whose task would come when it came in the record, at 40.
    policy, arrivals = Lookahead(NEAREST, history=half, futures=8), set()
    simulator, ahead = begin_by_hand(make_day(rows), policy)
    for f in range(8):
        ahead.known[:] = False
        rate(simulator, ahead, f, f + 1)
        arrivals |= {task[2] for task in read_future(ahead, make_day(rows).layout)[2:]}
    assert len(arrivals) > 1
    # So its futures are played one by one, also where all are asked for at once.
    simulator, once = begin_by_hand(make_day(rows), policy)
    rate(simulator, once, 0, 8)
    assert once.total.tolist() == ahead.total.tolist()


# Chains: what comes with a finite horizon, and what of the day is kept

HORIZON = 30.0


def play_chained(seed, most=6):
    """Decisions of a random day with chains: the episode, and its record."""
    world, draws = chained_world(seed), random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(draws.choice(["assignment", "pickup"]))
    day = Played(layout, world.rows)
    instance = Instance.from_rows("day", layout, world.rows)
    for _ in range(most):
        if day.phase != S.RUNNING:
            break
        yield day, instance
        v, task = draws.choice(day.candidates())
        day.decide(v, day.pool.index(task))


def look_on(day, instance, **options):
    """A lookahead that has listed its candidates at a decision of the day."""
    policy = Lookahead(NEAREST, candidates=24, penalty=0.0, **options)
    ahead = policy.prepare(day.problem, [instance])[1]()
    begin(day, ahead, decision=day.n_decisions)
    return ahead


@pytest.mark.compiles(long=True)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_of_a_day_is_worth_what_it_is_with_its_past(seed):
    """Where nothing is to come: only what is open, at machines and expected, or all of the episode."""
    for day, instance in play_chained(seed):
        both = [look_on(day, instance, futures=0, horizon=x) for x in (np.inf, HORIZON)]
        for ahead in both:
            rate_candidates(day.problem, day.state, np.int64(0), ahead, S.NEVER)
        n = int(both[0].n_candidates[0])
        assert both[1].n_candidates[0] == n > 0
        assert np.array_equal(both[0].candidate[0, :n], both[1].candidate[0, :n])
        assert np.array_equal(both[0].total[0, :n], both[1].total[0, :n])


def make_history(instance):
    """Another record with chains on the floor of a day; each task is known by its handling time."""
    rows = [
        {**row, "handling_time": k / 8, "arrival_time": row["arrival_time"] + 7}
        for k, row in enumerate(instance.rows())
    ]
    return Instance.from_rows("history", instance.layout, rows)


def check_chains(ahead, history, now, first):
    """Rows from `first` on are chains of the history as a whole, each after what it is there."""
    future, rows = ahead.future, history.after.tolist()
    ids = [round(8 * x) for x in future.record["handling"][0].tolist()]
    own = range(first, int(future.instance["n_tasks"][0]))
    came = [ids[n] for n in own]
    unit = float(np.floor(future.unit["seconds"][0]))
    for n in own:
        task, after = ids[n], int(future.chain["after"][0, n])
        arrival = future.record["arrival"][0, n]
        assert future.chain["processing"][0, n] == np.ceil(history.processing[task])
        assert future.lead["announced"][0, n] == history.announced[task]
        if rows[task] < 0:
            assert after == -1 and now < arrival <= now + HORIZON
            assert abs(arrival - history.arrival[task]) <= unit
        else:
            assert ids[after] == rows[task] and first <= after < n
            assert arrival == min(history.arrival[task], now + HORIZON)
    for task, after in enumerate(rows):
        lead = history.announced[task] if np.isfinite(history.announced[task]) else 0.0
        if after >= 0:
            assert (task in came) == (after in came)
        elif now + max(unit, lead + unit) + 1 < history.arrival[task] <= now + HORIZON - unit:
            assert task in came
    assert came == sorted(set(came))
    return len(came)


def check_links(ahead, day, first):
    """Rows of the day's open tasks follow each other as they do in the day."""
    future, n_arrived = ahead.future, day.n_arrived
    records = [day.problem.record[0, task].tolist() for task in range(n_arrived)]
    for n in range(first):
        after = int(future.chain["after"][0, n])
        assert future.record[0, n].tolist() in records
        assert after < first and after != n
    expected = [np.int64(x) for x in day.state.expected[0, : day.n_expected]]
    own = ahead.states.expected[PRESENT, : day.n_expected].tolist()
    for task, n in zip(expected, own, strict=True):
        assert future.record[0, n].tolist() == records[task]
        before, after = day.problem.chain["after"][0, task], future.chain["after"][0, n]
        if before >= 0 and day.state.job["known"][0, task] == S.NEVER:
            assert future.record[0, after].tolist() == records[before]


def play_future(ahead, layout, first, draws):
    """Play the future at hand at random: all is delivered, nothing before what it follows is done."""
    played = Played.__new__(Played)
    played.layout, played.problem, played.state = layout, ahead.future, ahead.states
    n = int(ahead.future.instance["n_tasks"][0])
    played.ids = [f"row {k}" for k in range(n)]
    while played.phase == S.RUNNING:
        v, task = draws.choice(played.candidates())
        played.decide(v, played.pool.index(task))
    assert played.phase == S.FINISHED and played.n_finished == n
    done, finish = ahead.states.job["done"][0, :n], [row[3] for row in played.schedule()]
    for k, after in enumerate(ahead.future.chain["after"][0, :n].tolist()):
        assert after < 0 or k < first or finish[k] >= done[after] > 0


@pytest.mark.compiles(long=True)
@pytest.mark.parametrize("seed", range(12))
def test_futures_with_a_horizon_hold_whole_chains_and_end(seed):
    draws, n_came = random.Random(seed), 0
    for day, instance in play_chained(seed):
        history = make_history(instance)
        ahead = look_on(day, instance, history=history, futures=3, weights="even", horizon=HORIZON)
        first = int(ahead.states.episode["n_arrived"][PRESENT])
        present = [array.copy() for array in ahead.states]
        for f in range(3):
            for array, kept in zip(ahead.states, present, strict=True):
                array[:] = kept
            open_future(day.problem, day.state, np.int64(0), ahead, np.int64(f), np.int64(0))
            n_came += check_chains(ahead, history, day.time, first)
            check_links(ahead, day, first)
            play_future(ahead, instance.layout, first, draws)
    assert n_came > 0


@pytest.mark.compiles(long=True)
@pytest.mark.parametrize("horizon", [np.inf, 300.0])
def test_a_late_arrival_within_a_chain_hides_nothing_of_a_record(horizon):
    """A record of its own arrivals 2 s later agrees with the day, wherever a chain has a late task."""
    fleet = [{"id": name, "start": "A", "speed": 5.0} for name in ("v", "w")]
    layout = Layout.from_dict(straight_floor(fleet, machines=[{"site": "C"}]))

    def make(name, shift):
        rows = []
        for k in range(12):
            late = 400.0 + shift if k == 1 else ""
            rows.append(make_task(f"a{k}", "A", "C", 1.0 + shift + 10.0 * k, 900.0, processing=1.0))
            rows.append(make_task(f"b{k}", "C", "B", late, 900.0, after=f"a{k}"))
        return Instance.from_rows(name, layout, rows)

    day, record = make("day", 0.0), make("record", 2.0)
    simulator = Simulator(day, slots="pool")
    while simulator.time[0] < 60.0:
        simulator.assign(*NEAREST.choose(simulator))
    policy = Lookahead(NEAREST, history=record, futures=1, horizon=horizon)
    ahead = policy.prepare(simulator.problem, [day])[1]()
    begin(simulator, ahead)
    assert ahead.agreement.tolist() == [1.0] and 2.0 <= ahead.deviation[0] <= 3.0
    seen = int(simulator.state.episode["n_arrived"][0])
    assert ahead.matched.sum() == seen > 10
