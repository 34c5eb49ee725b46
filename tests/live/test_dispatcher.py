"""The live dispatcher: fed with an episode's events it sees and decides what the simulator does."""

import copy
import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_events import EventLog, quiet
from machine import JIT
from plain_policies import Asking, Nearest, first_legal
from tables_and_refusals import check_damaged

import acerl_np
from acerl_np import Dispatcher, Layout, load_instance, load_layout
from acerl_np.kernels.core.random import EVALUATION, derive_key
from acerl_np.live import events as E
from acerl_np.policies.rules import PAIRING, RULES
from acerl_np.support.errors import EventError, InputError, PolicyError

keys, RANKS = st.integers(0, 2**32 - 1), st.sampled_from([1, 3])


@pytest.fixture(scope="module")
def policy():
    config = acerl_np.Config(generations=2, population=8, hidden=(12,), noise_std=0.5, slots="pool")
    trainer = acerl_np.ACERL([load_instance("DMH-01"), load_instance("DMH-05")], config, threads=1)
    trainer.run()
    return trainer.policy


def play_live(instance, dispatcher, restart=None):
    """Feed a dispatcher with the events that its own decisions bring about; return the log.

    A network's dispatcher sees what the slow simulator shows.
    """
    log = EventLog(instance)
    vehicles = [vehicle.id for vehicle in instance.layout.vehicles]
    n = 0
    decided = []
    while not log.done:
        for event in log.take_events():
            dispatcher.feed(event)
            n += 1
            if restart is not None and n % 7 == 3:
                dispatcher = restart(dispatcher)
        if isinstance(dispatcher.policy, acerl_np.Policy):
            observation, mask = dispatcher.observe(float(log.time))
            np.testing.assert_allclose(observation, log.state(), rtol=1e-6, atol=1e-6)
            assert mask.tolist() == log.mask()
        assignments = dispatcher.decide(float(log.time))
        assert assignments
        decided += [(log.time, *assignment) for assignment in assignments]
        for vehicle, task, _ in assignments:
            assert not log.done
            log.assign(vehicles.index(vehicle), log.pool.index(task))
    return log, decided


def index_policy():
    return acerl_np.IndexPolicy.of_weights(
        approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3, total_late=-1.0, imbalance=-0.5
    )


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("form", "instance", "rules"),
    [
        *(("network", f"DMH-{k}", None) for k in ["01", "06", "12"][: 1 + 2 * JIT]),
        *((rule, "DMH-03", {rule}) for rule in RULES if rule not in ("MIX", *PAIRING)),
        ("MIX", "DMH-03", {"FCFS", "EDD", "NVF", "STD"}),
        *(
            (index_policy(), quiet(f"DMH-{k}"), {"index"})
            for k in ["01", "06", "12"][: 1 + 2 * JIT]
        ),
        # A dispatcher does not know where between two sites a vehicle has halted.
        *((rule, quiet("DMH-03"), {rule}) for rule in PAIRING),
        (Nearest(), quiet("DMH-03"), {"own"}),
        (Asking(index_policy()), quiet("DMH-06"), {"own"}),
        *(
            (
                acerl_np.Agent(first_legal, load_instance("DMH-03"), actions=kind, slots="pool"),
                "DMH-03",
                {"own"},
            )
            for kind in ("rules", "pairs")
        ),
    ],
    ids=lambda x: " ".join(sorted(x)) if isinstance(x, set) else str(x).partition(" at ")[0],
)
def test_a_policy_decides_as_in_an_evaluation(policy, form, instance, rules):
    """The same stream of draws gives the same episode."""
    policy = policy if form == "network" else form
    instance = load_instance(instance) if isinstance(instance, str) else instance
    dispatcher = Dispatcher(instance.layout, policy, loads="return")
    content = int.from_bytes(bytes.fromhex(instance.content_hash[:16]), signed=True)
    # Nobody else may choose the stream of a dispatcher's draws.
    derive_key(0, EVALUATION, content, 0, dispatcher._decider._key)
    log, decided = play_live(instance, dispatcher)
    trials = acerl_np.evaluate_policy(policy, instance, trials=1, greedy=True, threads=1)
    assert (log.makespan, len(decided)) == (trials.makespan[0, 0], trials.decisions)
    assert log.tardiness == pytest.approx(trials.tardiness[0, 0], rel=1e-12)
    assert rules is None or {name for *_, name in decided} == rules


ARRIVED = partial(E.TaskArrived, 10.0, "c", "st1", "st2")


def test_a_planned_breakdown_is_told_to_a_policy_that_looks_at_it():
    """Both vehicles could fetch it; the one that breaks down on the way is passed over."""
    layout = load_layout("dmh")
    planned = layout.with_breakdowns({"v0": layout.vehicles[0].breakdowns})
    policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, last_end=-5.0)
    for start, chosen in ((0.0, "v1"), (300.0, "v0")):
        dispatcher = Dispatcher(planned, policy, start=start, loads="return")
        dispatcher.feed(E.TaskArrived(390.0, "t", "st1", "st5", 400.0))
        assert [item.vehicle for item in dispatcher.decide(390.0)] == [chosen], start


@pytest.mark.parametrize("which", ["greedy", "drawn", "lookahead"])
def test_saved_and_restored_between_any_two_events(policy, tmp_path, which):
    instance = load_instance("DMH-02")
    if which == "lookahead":
        history = acerl_np.load_suite("dmh-train")
        instance = acerl_np.perturb(history[1], 10, seed=3)
        policy = acerl_np.Lookahead(index_policy(), history=history, futures=3, bases=2)

    def make():
        how = {"greedy": which != "drawn", "seed": 5, "budget": None, "loads": "return"}
        return Dispatcher(instance.layout, policy, **how)

    def restart(dispatcher):
        before = copy.deepcopy((dispatcher.waiting, dispatcher.under_way, dispatcher.idle))
        dispatcher.save(tmp_path / "live.npz")
        loaded = Dispatcher.load(tmp_path / "live.npz")
        assert (loaded.waiting, loaded.under_way, loaded.idle) == before
        return loaded

    assert play_live(instance, make(), restart)[1] == play_live(instance, make())[1]


def test_files_that_hold_no_dispatcher_are_refused(tmp_path):
    two_tasks().save(tmp_path / "live.npz")
    rows = [
        ("kind", "policy", "live.npz: "),
        ("kind", np.zeros(2), "live.npz: "),
        *(("format", odd, "live.npz: ") for odd in (2, 99, np.nan, "x")),
        ("state", None, "live.npz: "),
    ]
    check_damaged(tmp_path / "live.npz", rows, Dispatcher.load, error=InputError)


# Events by hand


def two_tasks():
    dispatcher = Dispatcher(load_layout("dmh"), "FCFS", seed=1)
    dispatcher.feed(E.TaskArrived(0.0, "a", "st1", "st2", expiry=300.0))
    dispatcher.feed(E.TaskArrived(10.0, "b", "st3", "st4", expiry=300.0, handling_time=5.0))
    return dispatcher


def test_impossible_events_are_errors_that_change_nothing(tmp_path):
    def arrived(name, pickup, delivery, **own):
        return E.TaskArrived(10.0, name, pickup, delivery, own.pop("expiry", 10.0), **own)

    dispatcher, untouched = two_tasks(), two_tasks()
    for event, message in [
        (E.TaskArrived(4.9, "c", "st1", "st2", 9.0), "more than 5 s before the last event at 10"),
        (E.TaskArrived(np.nan, "c", "st1", "st2", 9.0), "read time nan; expected seconds"),
        (arrived("a", "st1", "st2"), "task 'a' is waiting; expected a name that no task has"),
        (arrived("", "st1", "st2"), 'TaskArrived at 10.0 s: task: read ""; expected a name'),
        (arrived("c", "nowhere", "st2"), "site 'nowhere' unknown"),
        (arrived("c", "st1", "st1"), "pickup and delivery are one site"),
        (ARRIVED(-1.0), "expiry: read -1.0"),
        (ARRIVED(10**5000), "expiry: read int too large"),
        (ARRIVED(10.0, demand=np.inf), "demand: read inf"),
        (ARRIVED(9.0, priority="x"), "priority: read x"),
        (ARRIVED(9.0, earliest_start=19.5), "expected a time until 19 s"),
        (E.TaskCancelled(10.0, "c"), "task 'c' is unknown; expected a waiting task"),
        (E.TaskChanged(10.0, "c", due=5.0), "task 'c' is unknown; expected a waiting task"),
        (E.TaskChanged(10.0, "a", due=-1.0), "due: read -1.0; expected a time from 0 s on"),
        (E.TaskChanged(10.0, "a", priority=np.nan), "priority: read nan; expected a number"),
        (E.TaskRecalled(10.0, "a"), "task 'a' is waiting; expected one under way to its pickup"),
        (E.TaskRecalled(10.0, "c"), "task 'c' is unknown; expected one under way"),
        (E.VehicleIdle(10.0, "v0", "st1"), "is idle; expected it to be working"),
        (E.VehicleIdle(10.0, "v9", "st1"), "vehicle 'v9' unknown; expected one of v0, v1, v2"),
        (E.VehiclePassed(10.0, "v0", "nowhere"), "site 'nowhere' unknown"),
        (E.VehicleRepaired(10.0, "v0"), "is idle; expected it to be broken"),
        (E.VehicleAdded(10.0, "v0", "st1"), "vehicle 'v0' is in the fleet already"),
        (E.VehicleAdded(10.0, "", "st1"), "vehicle: read ''; expected a name"),
        (E.VehicleAdded(10.0, "v9", "z"), "site 'z' unknown"),
        (E.VehicleAdded(10.0, "v9", "st1", speed=0.0), r"speed: read 0\.0"),
        (E.VehicleAdded(10.0, "v9", "st1", capacity=-1.0), r"capacity: read -1\.0"),
        (E.VehicleRemoved(10.0, "v9"), "vehicle 'v9' unknown"),
        (E.VehicleOutOfService(10.0, "v9"), "vehicle 'v9' unknown"),
        (E.VehicleOutOfService(10.0, ["v0"]), "vehicle '.'v0'.' unknown"),
        (E.VehicleBack(10.0, "v0"), "vehicle 'v0' is not out of service"),
        ("something", "read str; expected one of the event classes"),
    ]:
        with pytest.raises(EventError, match=message) as caught:
            dispatcher.feed(event)
        assert "\n" not in str(caught.value)
    with pytest.raises(EventError, match="unknown"):  # what has no hash is not held
        dispatcher.feed(E.VehicleBroke(10.0, ["v0"]), hold=True)
    assert dispatcher.held == ()
    for time in (np.nan, np.bool_(True), "1", 10**5000):
        for ask in (dispatcher.decide, dispatcher.observe, dispatcher.begin_day):
            with pytest.raises(EventError, match="expected seconds"):
                ask(time)
    with pytest.raises(EventError, match="decide at 9"):
        dispatcher.decide(9.0)
    for name, one in (("one.npz", dispatcher), ("other.npz", untouched)):
        one.save(tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()
    for one in (dispatcher, untouched):
        one.feed(E.TaskArrived(11.0, "c", "st5", "st6", expiry=100.0))
    assert dispatcher.decide(11.0) == untouched.decide(11.0)
    assert dispatcher.under_way == untouched.under_way


def test_any_number_of_tasks_waits(policy):
    """More than the first room; served ones make room again."""
    for chosen in ("FCFS", policy):
        dispatcher = Dispatcher(load_layout("dmh"), chosen)
        for k in range(300):
            dispatcher.feed(E.TaskArrived(float(k), f"t{k}", "st1", "st2", 400.0))
        assert len(dispatcher.waiting) == 300
        for k in range(100):
            for vehicle in set(dispatcher.under_way.values()):
                dispatcher.feed(E.VehicleIdle(300.0 + k, vehicle, "st2"))
            assert len(dispatcher.decide(300.0 + k)) == 3
        assert len(dispatcher.waiting) == 0
        assert dispatcher._floor.problem.record.shape[1] == 512


def test_what_makes_no_dispatcher_is_refused(policy):
    data = load_layout("dmh").to_dict()
    two = Layout.from_dict({**data, "vehicles": data["vehicles"][:2]})
    for told, kind, message in (
        (("dmh", "nonsense"), PolicyError, "unknown"),
        (
            ("dmh", "Static"),
            PolicyError,
            r"'Static': unknown; expected one of FCFS, .*assignment, shortest, general$",
        ),
        (("dmh", 3), PolicyError, "policy: read 3; expected a policy, a rule's name, .*an object"),
        (("nowhere.json", "EDD"), InputError, "nowhere.json: no such layout"),
        ((3, "EDD"), InputError, "layout: read 3; expected a Layout or its file"),
        ((two, policy), PolicyError, "2 vehicles; this policy was trained for 3"),
    ):
        with pytest.raises(kind, match=message):
            Dispatcher(*told)
    with pytest.raises(InputError, match="seed: read -1"):
        Dispatcher("dmh", "edd", seed=-1)


@pytest.mark.parametrize("policy", [*PAIRING, "general"])
@settings(max_examples=25 if JIT else 2)
@given(st.integers(1, 60) | st.just(45), st.sampled_from([9, 45, 70]), st.booleans(), RANKS, keys)
def test_a_moment_is_decided_as_if_each_decision_were_alone(policy, n, n_tasks, limits, ranks, key):
    """What is kept from decision to decision changes none; on a grid many are equal."""
    rng, places = np.random.default_rng(key), [(x, y) for y in range(4) for x in range(4)]
    sites = tuple(acerl_np.Site(f"s{k}", *place) for k, place in enumerate(places))
    edges = tuple(
        acerl_np.Edge(a.id, b.id, 9.0 + rng.integers(2))
        for a, b in itertools.combinations(sites, 2)
        if abs(a.x - b.x) + abs(a.y - b.y) == 1
    )
    capacity = rng.integers(3, size=n) * limits
    fleet = tuple(
        acerl_np.Vehicle(f"v{v}", f"s{rng.integers(16)}", 1.0, float(capacity[v])) for v in range(n)
    )
    tasks, most, made = [], rng.integers(50, 2000), []
    for k in range(n_tasks):
        ends, due = (f"s{rng.integers(8)}", f"s{rng.integers(8, 16)}"), rng.integers(10, 10 + most)
        more = {"demand": float(rng.integers(3)), "priority": float(rng.integers(ranks))}
        tasks.append(E.TaskArrived(float(k // 8), f"t{k}", *ends, float(due), **more))
    for keeps in (True, False):
        dispatcher = Dispatcher(Layout("grid", sites, edges, fleet), policy, explain=True)
        if not keeps:
            choose = dispatcher._decider.decide
            dispatcher._decider.decide = lambda *told, choose=choose: choose(*told[:3])
        for task in tasks:
            dispatcher.feed(task)
        orders = dispatcher.decide(30.0)
        for order in orders[:2]:
            dispatcher.feed(E.VehicleIdle(90.0, order.vehicle, tasks[int(order.task[1:])].delivery))
        dispatcher = copy.deepcopy(dispatcher) if keeps else dispatcher
        made.append(orders + dispatcher.decide(100.0))
    assert made[0] == made[1]
