"""Lookahead as a policy: it never sees what is still to come, its options, and what it can be sure of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from episodes import begin, rate
from machine import JIT, needs_jit
from worlds import World, change, cut, make_task, parts_floor, straight_floor

from acerl_np import (
    AcerlError,
    ConfigError,
    IndexPolicy,
    InputError,
    Instance,
    Layout,
    Lookahead,
    Policy,
    PolicyError,
    Simulator,
    evaluate_policy,
    load_instance,
    load_suite,
    perturb,
    warm_up,
)
from acerl_np.kernels.core.state import NEVER
from acerl_np.kernels.rollout.lookahead import UNFINISHED, pick_candidate
from acerl_np.policies.lookahead import find_apart, find_same
from acerl_np.policies.network import initial_parameters
from acerl_np.problem.goal import Goal
from acerl_np.problem.packing import pack_json, unpack_json
from acerl_np.problem.parts import Breakdown, RandomBreakdowns
from acerl_np.problem.tables import build_problem

WEIGHTS = ("match", "even")

INDEX = IndexPolicy.of_weights(approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3, slack=0.2)
COMPLETING = IndexPolicy.of_weights(
    approach=-1.0, loaded=0.3, last_end=-0.3, total_late=-1.0, imbalance=-1.5, n_late=-0.2
)


def make_network(instance):
    slots, fleet = instance.layout.task_slots, len(instance.layout.vehicles)
    sizes = (4 * slots + fleet * (3 + slots), 8, 4 * fleet)
    shape = {"hidden": (8,), "task_slots": slots, "n_vehicles": fleet, "scaling": np.ones(12)}
    return Policy(initial_parameters(sizes, 3), **shape)


BASES = {
    "index": lambda instance: INDEX,
    "completing": lambda instance: COMPLETING,
    "network": make_network,
    "STD": lambda instance: "STD",
    "MIX": lambda instance: "MIX",
}


def day_of(number=1, seed=7):
    """A day like the history's, of fewer tasks where kernels run as Python."""
    day = perturb(load_instance(f"DMH-0{number}"), 6, seed=seed)
    return day if JIT else cut(day, 9)


def records_of(numbers=(1, 2, 3)):
    found = [load_instance(f"DMH-0{number}") for number in numbers]
    return found if JIT else [cut(record, 10, record.name) for record in found]


def test_futures_stay_in_the_part_of_the_floor():
    layout = Layout.from_dict(parts_floor())

    def make(pair, gap):
        rows = [make_task(f"t{k}", *pair, gap * k, 9) for k in range(5)]
        return Instance.from_rows(pair, layout, rows)

    day, mine, other = make("AB", 4.0), make("BA", 3.0), make("XY", 3.0)
    apart = find_apart([day, other, layout], [mine, other])
    assert apart.tolist() == [[False, True], [True, False], [False, False]]
    both = Lookahead("EDD", history=[mine, other], futures=4)
    alone = Lookahead("EDD", history=[mine], futures=4)
    played = [evaluate_policy(policy, day, trials=1).makespan for policy in (both, alone)]
    assert np.array_equal(*played)
    with pytest.raises(PolicyError, match="but itself in its part of the floor; expected other"):
        evaluate_policy(Lookahead("EDD", history=[day, other], futures=4), day, trials=1)


# What is to come is never read


def change_rest(instance, cut, rng):
    """The same day until `cut`, then other tasks, other breakdowns and other repair ends."""
    sites = [site.id for site in instance.layout.sites if site.id.startswith("st")]
    rows = [row for row in instance.rows() if row["arrival_time"] <= cut]
    for k in range(int(rng.integers(0, 12))):
        pickup, delivery = rng.choice(sites, 2, replace=False)
        arrival = cut + float(rng.integers(1, 900))
        ends = str(pickup), str(delivery)
        rows.append(make_task(f"new{k}", *ends, arrival, float(rng.integers(0, 500))))
    changed = {}
    for vehicle in instance.layout.vehicles:
        kept = []
        for item in vehicle.breakdowns:
            if item.time > cut:
                continue
            lasts = item.time + item.repair_time >= cut
            kept.append(Breakdown(item.time, item.repair_time + 77.0 * lasts))
        kept.append(Breakdown(cut + float(rng.integers(1, 300)), 55.0))
        changed[vehicle.id] = kept
    return Instance.from_rows("changed", instance.layout.with_breakdowns(changed), rows)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.compiles if name == "index" else pytest.mark.long)
        for name in BASES
    ],
)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_what_is_to_come_changes_no_decision_before_it(name, weights):
    """Days that agree up to a moment are decided alike up to it, whatever comes then."""
    day, history = day_of(), records_of()
    rng = np.random.default_rng(5)
    cuts = (0.0, 130.0, 405.0, 520.0, 705.0, 930.0, 1100.0) if JIT else (0.0, 130.0)
    others = [change_rest(day, cut, rng) for cut in cuts]
    options = {"bases": 2} if name in ("index", "completing") else {}
    ahead = Lookahead(
        BASES[name](day), history=history, futures=2, weights=weights, candidates=2, **options
    )
    simulator = Simulator([day, *others], slots="pool")
    agreed = np.zeros(len(cuts), int)
    while not simulator.done.all():
        vehicles, tasks = ahead.choose(simulator)
        for b, until in enumerate(cuts, 1):
            if simulator.time[0] <= until:
                assert simulator.time[b] == simulator.time[0]
                assert (vehicles[b], tasks[b]) == (vehicles[0], tasks[0]), until
                agreed[b - 1] += 1
        simulator.assign(vehicles, tasks)
        if simulator.done[0] or simulator.time[0] > max(cuts):
            break
    assert agreed[0] >= 1 and (np.diff(agreed) >= 0).all() and agreed[-1] > agreed[0]


@pytest.mark.oracle
@pytest.mark.compiles
@pytest.mark.parametrize("name", ["STD", "index", "completing"])
def test_the_true_breakdowns_to_come_are_not_known(name):
    """Two episodes whose random breakdowns differ are decided alike until the first one happens."""
    layout = day_of().layout.with_random_breakdowns(RandomBreakdowns(900.0, 200.0))
    day = replace(day_of(), layout=layout)
    n = 6
    keys = np.random.default_rng(0).integers(2**32, size=(n, 4), dtype=np.uint32)
    simulator = Simulator([day] * n, breakdown_keys=keys, slots="pool")
    ahead = Lookahead(BASES[name](day), history=records_of(), futures=2)
    assert len(set(simulator.state.vehicle["breakdown_at"].ravel().tolist())) > n
    decisions = 0
    while True:
        vehicles, tasks = ahead.choose(simulator)
        # What has happened to an episode is all that may make a difference.
        fleet = simulator.state.vehicle
        calm = (fleet["status"] != 2) & (fleet["n_repairs"] == 0)
        same = np.flatnonzero(calm.all(axis=1) & (simulator.time == simulator.time[0]))
        if len(same) < 2 or decisions == 10:
            break
        for b in same[1:]:
            assert (vehicles[b], tasks[b]) == (vehicles[same[0]], tasks[same[0]])
            decisions += 1
        simulator.assign(vehicles, tasks)
    assert decisions >= 3


@pytest.mark.compiles
@pytest.mark.oracle
def test_the_time_that_is_left_is_not_found_from_the_true_tasks():
    """Where vehicles break down at random an episode has a horizon that its tasks decide."""
    model = RandomBreakdowns(5000.0, 90.0)
    day = replace(day_of(), layout=day_of().layout.with_random_breakdowns(model))
    simulator = Simulator(day, slots="pool")
    other = Simulator(Instance.from_rows("other", day.layout, day.rows()[:6]))
    assert simulator.problem.instance["horizon"][0] < NEVER
    assert not np.array_equal(simulator.problem.instance, other.problem.instance)
    limits = []
    for seen in (simulator, other):
        ahead = Lookahead("STD", history=records_of((2,))).prepare(seen.problem, seen.pool)[1]()
        assert begin(seen, ahead) == 2
        limits.append(int(ahead.future.instance["horizon"][0]))
    assert limits[0] == limits[1] < NEVER


def rename(instance, layout):
    rows = [{**row, "task": f"x{k}"} for k, row in enumerate(instance.rows())]
    return Instance.from_rows("another", layout, rows)


@pytest.mark.compiles
@pytest.mark.oracle
def test_a_records_own_content_is_no_future_of_it():
    """Under whatever name, on an equal floor, with other breakdowns, its tasks in whatever order."""
    day = day_of()
    equal = change(day.layout, name="another floor")
    rows = day.rows()
    assert [row["arrival_time"] for row in rows[:3]] == [0.0, 0.0, 0.0]
    turned = Instance.from_rows("turned", day.layout, [rows[2], rows[1], rows[0], *rows[3:]])
    assert turned.rows() != rows
    floors = day.layout, equal, day.layout.with_breakdowns({})
    own = [day, *(rename(day, layout) for layout in floors), turned]
    other = records_of((2,))[0]
    assert find_same([day], [*own, other]).tolist() == [[True] * len(own) + [False]]
    assert find_same([day.layout], own).tolist() == [[False] * len(own)]
    for history in ([day], own):
        with pytest.raises(PolicyError, match="no historical record but itself; expected other"):
            evaluate_policy(Lookahead("STD", history=history), day, trials=1)
    # It changes nothing that the day itself is among the records, even several times.
    places = evaluate_policy(Lookahead(INDEX, history=[other], futures=2), day, trials=1, threads=1)
    for history in ([*own, other], [other, day]):
        ahead = Lookahead(INDEX, history=history, futures=2)
        found = evaluate_policy(ahead, day, trials=1, threads=1)
        assert np.array_equal(found.makespan, places.makespan)


@needs_jit
@pytest.mark.parametrize(
    "name",
    ["STD", *(pytest.param(name, marks=pytest.mark.compiles) for name in ("index", "network"))],
)
def test_threads_and_order_change_nothing(name):
    """Nor does what is played beside a record. But another seed draws other futures."""
    history = records_of((1, 2, 3, 4))
    days = [day_of(number) for number in (1, 2, 5)]
    ahead = Lookahead(BASES[name](days[0]), history=history, futures=4)

    def judge(policy, days, threads=1):
        return evaluate_policy(policy, days, trials=2, seed=3, threads=threads)

    one = judge(ahead, days)
    for threads in (2, 3):
        other = judge(ahead, days, threads)
        assert other.makespan.tobytes() == one.makespan.tobytes()
        assert other.tardiness.tobytes() == one.tardiness.tobytes()
    assert np.array_equal(judge(ahead, days[::-1], 2).makespan, one.makespan[::-1])
    assert np.array_equal(judge(ahead, days[1]).makespan[0], one.makespan[1])
    for seed in (1, 2, 2**40):
        other = Lookahead(BASES[name](days[0]), history=history, futures=4, seed=seed)
        assert judge(other, days).makespan.tobytes() != one.makespan.tobytes()


# Corners


def play(ahead, day, **options):
    """The outcome of one episode."""
    found = evaluate_policy(ahead, day, trials=1, threads=1, **options)
    return found.makespan[0, 0], found.tardiness[0, 0]


@pytest.mark.oracle
@pytest.mark.compiles
def test_options():
    """Of all kinds, also of histories: a longer and a shorter one, one that is over, one that comes late."""
    day, history = day_of(), records_of((1, 2))
    rows = day.rows()
    late = [{**row, "arrival_time": row["arrival_time"] + 50_000.0} for row in rows]
    long = [*rows, *({**row, "task": f"{row['task']}b"} for row in late)]
    records = [
        Instance.from_rows("history", day.layout, x)
        for x in (rows[:1], rows[:3], rows[-1:], late, long)
    ]
    one = {"futures": 1, "candidates": 1}
    cases = [
        {"futures": 1},
        one,
        {"futures": 2, "candidates": 1000},
        {"futures": 2, "bases": 3, "candidates": 1},
        {"futures": 2, "penalty": 0.0, "margin": 0.0, "cost_limit": 0.0},
        *({"futures": 2, "history": record, "weights": w} for record in records for w in WEIGHTS),
    ]
    for options in cases:
        makespan, tardiness = play(Lookahead(INDEX, **{"history": history, **options}), day)
        assert 0.0 < makespan < 2200.0 and np.isfinite(tardiness), options
        assert options is not one or (makespan, tardiness) == play(INDEX, day)
    day = cut(day, 1)
    assert np.isfinite(play(Lookahead("STD", history=history[1:], futures=2), day)).all()


@pytest.mark.oracle
@pytest.mark.compiles
def test_horizon_and_futures_that_cannot_end():
    """A horizon stops the episode but no future; where all futures get stuck, the base's choice is taken."""
    day, history = day_of(), records_of((1, 2))
    ahead = Lookahead(INDEX, history=history, futures=2)
    makespan, tardiness = play(ahead, day)
    assert play(ahead, day, horizon=makespan) == (makespan, tardiness)
    stopped = evaluate_policy(ahead, day, trials=1, threads=1, horizon=makespan - 1.0)
    assert np.isnan(stopped.makespan).all() and stopped.decisions >= 1
    # A task that nobody can carry waits for ever.
    vehicles = day.layout.to_dict()["vehicles"]
    small = change(day.layout, vehicles=[{**own, "capacity": 2} for own in vehicles])
    rows = [{**row, "demand": 9.0 * (k == 1)} for k, row in enumerate(day.rows()[:4])]
    hopeless = Instance.from_rows("hopeless", small, rows, servable=False)
    light = [{**row, "demand": 0.0} for row in history[1].rows()]
    simulator = Simulator(hopeless)
    ahead = Lookahead(INDEX, history=Instance.from_rows("light", small, light), futures=2)
    prepared = ahead.prepare(simulator.problem, [hopeless])[1]()
    assert begin(simulator, prepared) == 2
    rate(simulator, prepared, 0, 2)
    n = prepared.n_candidates[0]
    assert n >= 2 and (prepared.total[0, :n] == 2 * UNFINISHED).all()
    assert pick_candidate(prepared)[1] == 0
    assert np.isnan(play(ahead, hopeless)).all()


def test_room_is_that_of_what_there_can_be():
    """Neither futures nor candidates that cannot be take memory."""
    day = cut(day_of(), 5)
    ahead = Lookahead(INDEX, history=records_of((2, 3)), futures=100_000, candidates=1000, bases=2)
    prepared = ahead.prepare(build_problem([day]), [day])[1]()
    assert len(prepared.future.instance) == 1 and len(prepared.states.episode) == 2
    assert prepared.value.shape == (2, 2, 15)


def test_options_out_of_range_are_named():
    history = records_of((1,))
    network = make_network(day_of())
    for base, options, error, text in [
        ("STD", {"futures": -1}, InputError, "futures: read -1; .* number from 0 to 100,000"),
        ("STD", {"futures": 2.5}, InputError, "futures: read 2.5"),
        ("STD", {"futures": True}, InputError, "futures: read True"),
        ("STD", {"bases": 65}, InputError, "bases: read 65; .* whole number from 1 to 64"),
        ("STD", {"candidates": 0}, InputError, "candidates: read 0; .* from 1 to 1,000"),
        ("STD", {"weights": "odd"}, InputError, "weights: read 'odd'; .* one of match, even"),
        ("STD", {"cost_limit": "x"}, ConfigError, "cost_limit: read x; .* a number, or infinity"),
        ("STD", {"objective": "speed"}, ConfigError, "objective: read 'speed'; .* weighted"),
        ("STD", {"horizon": 0.0}, InputError, "horizon: read 0.0; .* above 0, or infinity"),
        ("STD", {"penalty": float("nan")}, InputError, "penalty: read nan"),
        ("STD", {"margin": "5"}, InputError, "margin: read 5;"),
        ("STD", {"seed": -1}, ConfigError, "seed"),
        ("STD", {"history": []}, InputError, "history: no records; expected at least one"),
        ("STD", {"history": "dmh-train"}, InputError, "instances: read"),
        ("STD", {"history": None}, PolicyError, "STD has no records of its own; .* history="),
        (INDEX, {"history": None}, PolicyError, "the policy has no records of its own"),
        ("SDT", {}, PolicyError, "unknown"),
        *((x, {"bases": 2}, PolicyError, "bases: read 2; .* index") for x in ("STD", network)),
        *(
            (x, {}, PolicyError, "policy: read .*; a lookahead's base must be compiled")
            for x in (3, None, Lookahead("STD", history=history))
        ),
    ]:
        with pytest.raises(error, match=text) as caught:
            Lookahead(base, **{"history": history, **options})
        assert "\n" not in str(caught.value)


def test_floors_that_do_not_fit_are_refused():
    day = day_of()
    vehicles, rows = day.layout.to_dict()["vehicles"], day.rows()

    def make(name, demand=0.0, **own):
        layout = change(day.layout, vehicles=[{**vehicle, **own} for vehicle in vehicles])
        return Instance.from_rows(name, layout, [{**row, "demand": demand} for row in rows])

    floor = straight_floor([{"id": "v", "start": "A"}])
    foreign = World(floor, [make_task("t", "A", "B", 0)], [0]).instance()
    two, heavy = records_of((2,)), make("heavy", demand=9.0)
    for history, played, text in (
        (two, [day, make("fast", speed=2)], "^fast: another floor or fleet than DMH-01"),
        (two, foreign, r"has no site '\w+', which the historical record DMH-02.* names"),
        (heavy, make("day", capacity=2), "^historical record heavy: task .*: demand: 9 exceeds"),
    ):
        with pytest.raises(AcerlError, match=text) as caught:
            evaluate_policy(Lookahead("STD", history=history), played, trials=1)
        assert "\n" not in str(caught.value)


@pytest.mark.compiles
@pytest.mark.oracle
def test_arrays_hold_all_of_it():
    day, history = day_of(), records_of((1, 2))
    for name in ("index", "network", "MIX"):
        options = {"futures": 2, "seed": 2**40, "weights": "even"}
        ahead = Lookahead(BASES[name](day), history=history, **options)
        again = Lookahead.from_arrays(ahead.to_arrays())
        assert repr(again) == repr(ahead)
        if name == "index":  # the others would compile for long
            simulator = Simulator(day, slots="pool")
            assert np.array_equal(ahead.choose(simulator), again.choose(simulator))
    goal = Goal("late+0.05*tardiness", cost="waiting", cost_limit=90.0, class_weights=(1, 5))
    arrays = Lookahead("STD", history=history, objective=goal, horizon=800).to_arrays()
    again = Lookahead.from_arrays(arrays)
    assert (again.goal, again.horizon) == (goal, 800.0)
    free = Lookahead("STD", history=history, objective=Goal(cost_limit=math.inf))
    assert Lookahead.from_arrays(free.to_arrays()).goal == free.goal
    options = unpack_json(arrays["options"])
    del options["goal"]
    with pytest.raises(PolicyError, match="'goal'"):
        Lookahead.from_arrays({**arrays, "options": pack_json(options)})


@pytest.mark.slow
@needs_jit
def test_what_is_compiled_ahead_serves_every_rule():
    """A base of another kind is compiled when it is first used, and then serves all of its kind."""
    from acerl_np.kernels.rollout.episodes import play_episodes

    warm_up("lookahead")
    day, history = cut(day_of(), 4), records_of((2,))

    def count_compiled(base):
        ahead = Lookahead(base, history=history, futures=1)
        evaluate_policy(ahead, day, trials=1, threads=1)
        return len(play_episodes.signatures)

    before = len(play_episodes.signatures)
    assert before >= 1
    assert count_compiled("EDD") == count_compiled("MIX") == before
    other = count_compiled(BASES["index"](day))
    assert count_compiled(BASES["index"](day)) == other


@pytest.mark.compiles
@needs_jit
def test_it_is_better_than_its_base():
    """On days like those of the history; by much more than its spread."""
    suite = load_suite("dmh-train")
    days = [perturb(record, 5, seed=1) for record in suite]
    ahead = Lookahead(INDEX, history=suite, futures=8)
    base, found = (evaluate_policy(x, days, trials=1).makespan.mean() for x in (INDEX, ahead))
    assert found < base - 30.0
