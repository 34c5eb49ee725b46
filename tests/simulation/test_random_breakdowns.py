"""Random breakdowns: against the slow simulator, as listed ones, their distribution, their seeds."""

import json
import re
from dataclasses import replace
from pathlib import Path

import naive_evolution
import numpy as np
import pytest
from episodes import play_and_compare, play_on
from hypothesis import event, given, settings
from hypothesis import strategies as st
from machine import JIT, needs_jit
from plain_policies import first_legal
from scipy import stats
from tables_and_refusals import list_unrefused, write
from trainings import same_trials
from worlds import make_task, straight_floor, worlds

from acerl_np import (
    ACERL,
    ActionError,
    Config,
    InputError,
    Instance,
    Layout,
    LayoutError,
    PolicyError,
    Simulator,
    evaluate_policy,
    load_instance,
    load_layout,
)
from acerl_np.kernels.learning.update import Noise
from acerl_np.policies import agent as agent_module
from acerl_np.problem.parts import RandomBreakdowns
from acerl_np.problem.records import write_record
from acerl_np.problem.servable import MAX_CYCLES, RANDOM_HORIZON, find_last_tick, measure_load
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_members, stream_keys
from acerl_np.support.workers import Workers

MODEL = RandomBreakdowns(400.0, 90.0)


def vary(instance, model=MODEL):
    return replace(instance, layout=instance.layout.with_random_breakdowns(model))


def short(number, n_tasks, model=MODEL):
    record = load_instance(f"DMH-0{number}")
    return vary(Instance.from_rows(record.name, record.layout, record.rows()[:n_tasks]), model)


def make_late(model, arrival):
    """One vehicle, and one task that arrives late."""
    layout = Layout.from_dict(straight_floor([{"id": "v", "start": "A"}]))
    rows = [make_task("t", "A", "B", arrival, 9)]
    return Instance.from_rows("late", layout.with_random_breakdowns(model), rows)


# The simulator


@pytest.mark.oracle
@settings(max_examples=100 if JIT else 15)
@given(worlds(), st.data(), st.integers(0, 2**63 - 1), st.integers(0, 2))
def test_equals_slow_simulator(world, data, seed, n_resets):
    """Listed and random breakdowns together; each reset draws others."""
    # Long enough that every trip ends some day.
    between = st.sampled_from([15.0, 40.25, 100.0])
    for vehicle in world.layout["vehicles"]:
        if data.draw(st.booleans()):
            vehicle["random_breakdowns"] = {
                "mean_time_between_failures": data.draw(between),
                "mean_time_to_repair": data.draw(st.sampled_from([0.0, 3.5, 20.0])),
            }
    simulator = Simulator(world.instance(), seed=seed, slots="pool")
    for _ in range(n_resets):
        simulator.reset()
    key = naive_evolution.stream_key(seed, naive_evolution.BREAKDOWN, n_resets, 0)
    slow = play_and_compare(
        world,
        simulator,
        waiting_time=lambda v, n, what: naive_evolution.waiting_time(key, n, 2 * v + what),
    )
    event(f"repairs: {sum(vehicle.n_repairs for vehicle in slow.vehicles)}")


def test_waiting_times_are_exponential():
    key = naive_evolution.stream_key(5, 9, 0, 0)
    draws = [naive_evolution.waiting_time(key, k, 0) for k in range(4000)]
    assert stats.kstest(draws, "expon").pvalue > 1e-3


def test_streams_of_vehicles_times_and_episodes_differ():
    def show():
        return simulator.state.breakdown_key.tolist()

    def find(*streams):
        return [naive_evolution.stream_key(seed, 9, n, 0) for seed, n in streams]

    instance = short(1, 2)
    simulator = Simulator([instance] * 4, seed=3)
    keys = show()
    assert keys == find(*((3 + b, 0) for b in range(4)))
    simulator.reset()
    assert show() == find(*((3 + b, 1) for b in range(4)))
    simulator.restart([2, 0], seeds=[8, None])
    assert [show()[2], show()[0]] == find((8, 0), (3, 2))
    simulator.reset(seed=3)
    assert show() == keys
    cases = [(bad, "seed: read") for bad in (-1, 0.5, "x")]
    assert list_unrefused(lambda seed: simulator.reset(seed=seed), cases) == []
    cases = [([4], "seeds: read 1; expected 2"), (5, "seeds: read 5; expected a list")]
    assert list_unrefused(lambda seeds: simulator.restart([0, 1], seeds=seeds), cases) == []
    assert show() == keys
    # Without random breakdowns nothing is drawn.
    simulator = Simulator(load_instance("DMH-01"), seed=9)
    simulator.reset(seed=4)
    assert not simulator.state.breakdown_key.any()
    # Keys of one's own stay.
    keys = np.arange(8).reshape(2, 4)
    simulator = Simulator([instance] * 2, breakdown_keys=keys)
    line = "keys of their own; expected no seed"
    cases = [(lambda: simulator.reset(seed=3), line)]
    cases += [(lambda: simulator.restart([0], seeds=[3]), line)]
    cases += [(lambda: Simulator([instance] * 2, seed=0, breakdown_keys=keys), line)]
    assert list_unrefused(lambda use: use(), cases) == []
    simulator.reset()
    simulator.restart([1], seeds=[None])
    assert show() == keys.tolist()


# Episodes that might never end


def test_tasks_that_hardly_ever_get_done_are_refused():
    """Nobody waits for a training in which every vehicle breaks down on every trip."""
    for model in (RandomBreakdowns(1.0, 0.0), RandomBreakdowns(9.0, 900.0)):
        line = r"DMH-01: task 'task_\d+' takes at least \d+ s"
        with pytest.raises(InputError, match=line) as caught:
            Simulator(short(1, 9, model))
    least = float(re.search(r"at least (\d+) s$", str(caught.value))[1])
    Simulator(short(1, 9, RandomBreakdowns(least, 0.0)))
    # One vehicle that never breaks down is enough.
    layout = load_layout("dmh")
    vehicles = [replace(item, random_breakdowns=RandomBreakdowns(1, 1)) for item in layout.vehicles]
    vehicles[1] = layout.vehicles[1]
    rows = load_instance("DMH-01").rows()[:4]
    Simulator(Instance.from_rows("one", replace(layout, vehicles=tuple(vehicles)), rows))


def test_an_episode_that_takes_too_long_is_stopped():
    instance = short(1, 3, RandomBreakdowns(40.0, 1e6))
    last = find_last_tick(instance)
    loaded = instance.layout.routes.distance[instance.pickup, instance.delivery].sum()
    assert last > RANDOM_HORIZON * ((instance.arrival + instance.expiry).max() + loaded)
    simulator = Simulator(instance)
    play_on(simulator)
    assert simulator.status[0] == "stopped"
    assert simulator.time[0] == last
    assert np.isnan(simulator.makespan[0])
    if JIT:
        trials = evaluate_policy("EDD", instance, trials=2)
        assert trials.unfinished == 2
    simulator = Simulator(instance, horizon=1000)
    play_on(simulator)
    assert simulator.time[0] == 1000


@needs_jit
def test_no_horizon_is_longer_than_a_million_failures():
    """Nobody waits for 1e9 s of failures every few seconds, in a kernel that hears no Ctrl-C."""
    late = make_late(RandomBreakdowns(2.0, 0.5), 1e9)
    assert find_last_tick(late) == find_last_tick(late, 1e15) == 2.5 * MAX_CYCLES
    assert evaluate_policy("EDD", late, trials=2, horizon=1e15).unfinished == 2
    assert find_last_tick(vary(late, RandomBreakdowns(1e6, 0.0))) > 1e11


# Trials


def play_with_key(instance, key, act=first_legal):
    """The makespan of an episode whose random breakdowns come from `key`."""
    return play_on(Simulator(instance, breakdown_keys=[key]), act)[0]


def test_all_policies_meet_the_same_breakdowns():
    """A trial's breakdowns are keyed by seed, content of the instance and trial alone."""
    instances = [short(1, 6, RandomBreakdowns(150.0, 50.0)), short(2, 5)]
    policy = ACERL(instances, Config(hidden=(4,)), seed=1).policy
    trials = 70 if JIT else 3  # 64 make a tile
    played = evaluate_policy(policy, instances, trials=trials, seed=4, greedy=True)
    for instance, makespan in zip(instances, played.makespan.tolist(), strict=True):
        keys = stream_keys([instance], trials, 4)
        assert makespan == [play_with_key(instance, key, policy.act) for key in keys]
        assert len(set(makespan)) > 1


def test_each_member_of_a_generation_draws_its_own():
    """One vehicle and one task: what differs between the members are the breakdowns."""
    layout = replace(load_layout("dmh"), vehicles=load_layout("dmh").vehicles[:1])
    record = load_instance("DMH-01")
    instance = Instance.from_rows("one", layout, record.rows()[:1])
    instance = vary(instance, RandomBreakdowns(60.0, 50.0))
    generation, records = 3, np.zeros((11, 1), np.int64)
    policy = ACERL(instance, Config(hidden=(2,)), seed=6).policy
    workers = Workers(2)
    noise = Noise(6, generation, 11, False)
    own = build_problem([instance]), policy.network, policy.theta, 0.1, noise, records, workers
    played = play_members(*own)
    workers.close()
    keys = [naive_evolution.stream_key(6, naive_evolution.ACTION, generation, k) for k in range(11)]
    assert played.makespan.tolist() == [play_with_key(instance, key) for key in keys]
    assert len(np.unique(played.makespan)) > 1


def test_wrong_models_keys_and_sizes_are_refused_where_they_are_made():
    times = ((0.0, 1.0), (np.nan, 1.0), (9.0, np.inf), ("9", 1.0))
    cases = [(own, "mean_time_") for own in times]
    assert list_unrefused(lambda own: RandomBreakdowns(*own), cases, LayoutError) == []
    layout = load_layout("dmh")

    def give(model):
        replace(layout, vehicles=(replace(layout.vehicles[0], random_breakdowns=model),))

    line = "random_breakdowns: read ... expected RandomBreakdowns"
    for call, words in ((layout.with_random_breakdowns, line), (give, f"vehicles[0].{line}")):
        cases = [(model, words) for model in ((3600, 300), "3600,300", 3600.0)]
        assert list_unrefused(call, cases, LayoutError) == []
    assert RandomBreakdowns(np.int64(3600), np.float32(300)) == RandomBreakdowns(3600.0, 300.0)
    instance, keys = short(1, 2), np.arange(8).reshape(2, 4)
    for seed in (np.uint8(255), np.int64(2**63 - 1), 2**70):
        assert Simulator([instance] * 3, seed=seed).done.shape == (3,)
    cases = [({"breakdown_keys": np.zeros(4, np.uint32)}, "read uint32 of shape (4,)")]
    for wrong in (keys - 1, keys + 2**32, keys + 0.5, [["a"] * 4] * 2, [[1], [2, 3]], keys[:1]):
        cases.append(({"breakdown_keys": wrong}, "breakdown_keys: "))
    for size in ("3", [3], 2.5, 10**400, True, 0):
        cases += [({name: size}, f"{name}: read") for name in ("task_slots", "n_vehicles")]
    assert list_unrefused(lambda given: Simulator([instance] * 2, **given), cases) == []
    assert Simulator(instance, n_vehicles=np.int8(3)).n_actions == 12
    assert evaluate_policy("EDD", instance, trials=2, cost_limit=np.inf).satisfied == 1.0
    played = evaluate_policy("EDD", instance, trials=70 if JIT else 3, threads=np.int8(2))
    assert played.unfinished == 0
    with pytest.raises(InputError, match="threads: read 0"):
        evaluate_policy(first_legal, instance, threads=0)


# The program


@needs_jit
def test_train_evaluate_and_replay_with_random_breakdowns(empty, run):
    record = short(1, 5, None)
    write_record(record, Path("own.csv"))
    past = [f"{task},v1,0" for task in record.tasks]
    write(Path("past.csv"), "task,vehicle,start", *past)
    random = "--breakdowns 300,60"
    small = "--generations 2 --set population=4 --set hidden=4 --trials 2 --quiet --out run"
    run(f"train own.csv --layout dmh {random} {small}")
    resume = "train --resume run/run.npz --generations 3 --quiet"
    line = run(f"{resume} --breakdowns 300,61", 2).err
    assert "'own' or its layout has changed" in line
    run(f"{resume} {random}")
    words = "evaluate run/policy.npz EDD nearest --on own.csv --layout dmh --past past.csv"
    words += " --trials 6 --out all --force --format json"
    tables = []
    models = (random, "--breakdowns listed", f"--breakdowns none {random}", "--breakdowns none")
    for model in models:
        tables.append(json.loads(run(f"{words} {model}").out))
        trials = Path("all/trials.csv").read_text().splitlines()[1:]
        spread = {
            policy: len({line.split(",")[3] for line in trials if line.startswith(policy)})
            for policy in ("nearest", "past")
        }
        # What draws no action differs between trials by its breakdowns alone.
        assert all((n > 1) == ("300,60" in model) for n in spread.values())
    names = ["run/policy.npz", "EDD", "nearest", "past"]
    assert [row["policy"] for row in tables[0] if row["record"] == "own"] == names
    assert tables[0][6]["policy"] == tables[1][6]["policy"] == "past"
    assert tables[0][6]["makespan_s"] != tables[1][6]["makespan_s"]


def test_the_load_counts_on_the_availability():
    instance = Instance.from_rows(
        "load", load_layout("dmh").with_breakdowns({}), load_instance("DMH-01").rows()
    )
    without = measure_load(instance)
    loaded = measure_load(vary(instance, RandomBreakdowns(300.0, 100.0)))
    assert loaded.fleet_time == pytest.approx(0.75 * without.fleet_time)
    assert loaded.offered == pytest.approx(without.offered / 0.75)


def test_an_agent_of_ones_own_meets_the_same_trials(monkeypatch):
    """In pieces or at once; its row stands beside those of rules and policies."""
    instances = [short(1, 6, RandomBreakdowns(150.0, 50.0)), short(2, 5)]
    policy = ACERL(instances, Config(hidden=(4,)), seed=1).policy
    played = evaluate_policy(policy, instances, trials=5, seed=4, greedy=True)
    for at_once in (1024, 3):
        monkeypatch.setattr(agent_module, "EPISODES", at_once)
        own = evaluate_policy(lambda *seen: policy.act(*seen), instances, trials=5, seed=4)
        assert same_trials(own, played)
    with pytest.raises(ActionError, match="illegal"):
        evaluate_policy(lambda observation, mask: np.full(len(mask), 99), instances, trials=2)
    with pytest.raises(PolicyError, match=r"policy: read 3; expected a policy, .*an object"):
        evaluate_policy(3, instances)
