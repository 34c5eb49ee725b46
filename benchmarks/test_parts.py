"""Throughput of what `speed.py` does not time; each benchmark checks its answer before it is timed.

python -m pytest benchmarks            # times; groups share a reference
"""

from __future__ import annotations

import numpy as np
import pytest

import acerl_np
from acerl_np.kernels.rollout.lookahead import decide_ahead
from acerl_np.plain import policy as plain
from acerl_np.policies.network import initial_parameters
from acerl_np.policies.rules import BASELINES
from acerl_np.problem.interface import find_scaling
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_list
from acerl_np.support.workers import Workers

SIZES = (219, 128, 128, 12)


def play_first_actions(sim: acerl_np.Simulator) -> acerl_np.Simulator:
    sim.reset()
    while not sim.done.all():
        sim.step(sim.action_mask.argmax(axis=1))
    return sim


@pytest.mark.benchmark(group="events")
def test_events(benchmark, suite):
    """256 episodes with the first legal action, observation included; 7,680 tasks."""
    sim = acerl_np.Simulator([suite[k % 8] for k in range(256)])
    alone = play_first_actions(acerl_np.Simulator(suite))
    together = play_first_actions(sim)
    assert np.array_equal(together.makespan, np.tile(alone.makespan, 32))
    benchmark(play_first_actions, sim)


@pytest.mark.benchmark(group="events")
def test_events_of_the_naive_oracle(benchmark, suite):
    """One episode with the first legal action, frame by frame in plain Python."""
    from acerl_np.plain.floor import Floor
    from acerl_np.plain.simulator import Episode

    layout, rows = suite[0].layout.to_dict(), suite[0].rows()

    def play() -> float:
        episode = Episode(Floor(layout), rows)
        while not episode.done:
            episode.step(episode.mask().index(True))
        return episode.makespan

    assert play() == play_first_actions(acerl_np.Simulator(suite[0])).makespan[0]
    benchmark(play)


def draw_observations(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    observation = rng.normal(size=(n, 219)).astype(np.float32)
    slots = np.arange(219) < 120
    observation[:, slots & (np.arange(219) >= 24)] = 0.0  # six of thirty slots are filled
    for v in range(3):
        observation[:, 120 + 33 * v + 9 : 120 + 33 * (v + 1)] = 0.0
    return observation, np.ones((n, 12), np.bool_)


@pytest.mark.benchmark(group="forward")
def test_one_decision(benchmark):
    """`Policy.act` on one observation, checks included."""
    policy = make_policy()
    observation, mask = draw_observations(1)
    logits = plain.Policy(list(SIZES), policy.theta).logits(observation[0].tolist())
    assert policy.act(observation, mask).tolist() == [logits.argmax()]
    benchmark(policy.act, observation, mask)


def make_policy(scaling: np.ndarray | None = None) -> acerl_np.Policy:
    return acerl_np.Policy(
        initial_parameters(SIZES, 0),
        hidden=SIZES[1:-1],
        task_slots=30,
        n_vehicles=3,
        scaling=np.ones(12) if scaling is None else scaling,
    )


@pytest.mark.benchmark(group="dispatcher")
@pytest.mark.parametrize("chosen", ["policy", "STD"])
def test_live_decision(benchmark, chosen):
    """One decision of a dispatcher, six tasks waiting; feeding the events is not timed."""
    layout = acerl_np.load_layout("dmh")
    policy = make_policy(find_scaling([acerl_np.load_instance("DMH-01")]))
    dispatcher = acerl_np.Dispatcher(layout, policy if chosen == "policy" else "STD")
    clock = [0.0]

    def prepare() -> tuple[tuple[float], dict]:
        clock[0] += 1.0
        for vehicle in dispatcher.under_way.values():
            dispatcher.feed(acerl_np.VehicleIdle(clock[0], vehicle, "st5"))
        for vehicle in dispatcher.idle[1:]:
            dispatcher.feed(acerl_np.VehicleBroke(clock[0], vehicle))
        while len(dispatcher.waiting) < 6:
            clock[0] += 1.0
            dispatcher.feed(acerl_np.TaskArrived(clock[0], f"t{clock[0]}", "st1", "st5", 300.0))
        return (clock[0],), {}

    (now,), _ = prepare()
    assert len(dispatcher.decide(now)) == 1
    benchmark.pedantic(dispatcher.decide, setup=prepare, rounds=500)


@pytest.mark.benchmark(group="rules")
@pytest.mark.parametrize("rule", ["FCFS", "STD", "MIX", "Random", *BASELINES])
def test_rules(benchmark, suite, rule):
    """A rule or a baseline without a network, one thread; see decisions per second in extra_info."""
    expected = acerl_np.evaluate_policy(rule, suite, trials=100, threads=2)
    trials = benchmark(acerl_np.evaluate_policy, rule, suite, trials=100, threads=1)
    assert np.array_equal(trials.makespan, expected.makespan)
    benchmark.extra_info["decisions"] = trials.decisions
    if benchmark.stats is not None:
        seconds = benchmark.stats.stats.median
        benchmark.extra_info["decisions_per_second"] = round(trials.decisions / seconds)


@acerl_np.rule(vehicle="random")
def fcfs(floor, vehicle, task):
    return floor.arrival(task)


@acerl_np.rule(vehicle="random")
def nvf(floor, vehicle, task):
    return floor.whole(floor.distance(floor.site(vehicle), floor.pickup(task)))


@acerl_np.rule
def nearest(floor, vehicle, task):
    return floor.metres(vehicle, task)


@pytest.mark.benchmark(group="rules")
@pytest.mark.parametrize(("name", "own"), [("FCFS", fcfs), ("NVF", nvf), ("nearest", nearest)])
def test_own_rules(benchmark, suite, name, own):
    """A rule of a user's, beside the equal one of the package."""
    expected = acerl_np.evaluate_policy(name, suite, trials=100, threads=1)
    trials = benchmark(acerl_np.evaluate_policy, own, suite, trials=100, threads=1)
    assert np.array_equal(trials.makespan, expected.makespan)


BY_PAIR = acerl_np.IndexPolicy.of_weights(approach=-1.0)
FULL = acerl_np.IndexPolicy.of_weights(approach=-1.0, imbalance=-1.0, total_late=-0.5)


@pytest.mark.benchmark(group="index")
@pytest.mark.parametrize("completes", [False, True])
def test_index_policy(benchmark, suite, completes):
    """An index policy scores all pairs of each decision, one thread; 100 episodes of each record.

    By the pair alone, or by what becomes of all tasks that wait.
    """
    policy = FULL if completes else BY_PAIR
    days = [acerl_np.perturb(record, 30, seed=seed) for record in suite for seed in range(100)]
    problem, prepare = policy.prepare(build_problem(days), days)
    rows, keys = np.arange(len(days)), np.zeros((len(days), 4), np.uint32)
    expected = acerl_np.evaluate_policy(policy, days, trials=1, threads=2)
    workers = Workers(1)
    outcome = benchmark(play_list, problem, prepare, rows, keys, workers)
    workers.close()
    assert np.array_equal(outcome.makespan, expected.makespan[:, 0])
    decisions = int(outcome.decisions.sum())
    benchmark.extra_info["decisions"] = decisions
    if benchmark.stats is not None:
        seconds = benchmark.stats.stats.median
        benchmark.extra_info["decisions_per_second"] = round(decisions / seconds)


@pytest.mark.benchmark(group="lookahead")
@pytest.mark.parametrize(("bases", "futures"), [(1, 32), (8, 16)])
@pytest.mark.parametrize("weights", ["match", "even"])
def test_lookahead(benchmark, suite, bases, futures, weights):
    """One decision of a lookahead: one of four tasks for a vehicle, with two thirds of the day to come."""
    acerl_np.warm_up("lookahead")
    day = acerl_np.perturb(suite[0], 5, seed=0)
    policy = acerl_np.Lookahead(FULL, history=suite, futures=futures, bases=bases, weights=weights)
    sim = acerl_np.Simulator(day)
    for _ in range(9):
        sim.assign(*BY_PAIR.choose(sim))
    assert sim.state.episode["pool_size"][0] == 4
    ahead = policy.prepare(sim.problem, sim.pool)[1]()
    own = sim.problem, sim.state, 0, ahead, 0, np.zeros(4, np.uint32), 9
    v, position, _ = decide_ahead(*own)
    assert (v, sim.state.pool[0, position]) == tuple(int(a[0]) for a in policy.choose(sim))
    assert benchmark(decide_ahead, *own)[:2] == (v, position)
