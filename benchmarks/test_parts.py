"""Throughput of the parts of a generation; each benchmark checks its answer before it is timed.

python -m pytest benchmarks            # times; groups share a reference
"""

from __future__ import annotations

import numpy as np
import pytest

import acerl_np
from acerl_np.evolution import Strategy, rank_utilities
from acerl_np.kernels.ground.random import BLOCK, LANES, NOISE, derive_key, fill_normals
from acerl_np.kernels.learning.update import Noise
from acerl_np.kernels.networks.network import act_batch, make_network
from acerl_np.kernels.playing.lookahead import decide_ahead
from acerl_np.policies.network import initial_parameters
from acerl_np.policies.rules import YARDSTICKS
from acerl_np.problem.interface import find_scaling
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_list, play_members
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
def test_forward(benchmark):
    """Logits and greedy action of 1,000 observations, six tasks waiting."""
    policy = make_policy()
    observation, mask = draw_observations(1000)
    assert np.array_equal(policy.act(observation, mask), act_with_numpy(policy, observation))
    actions = np.empty(1000, np.int64)
    uniforms = np.empty(0)
    benchmark(
        act_batch,
        policy.network,
        policy.theta,
        policy.column_sums,
        observation,
        mask,
        uniforms,
        actions,
    )


@pytest.mark.benchmark(group="forward")
def test_forward_of_numpy(benchmark):
    """The same as three matrix products of NumPy, all observations at once."""
    policy = make_policy()
    observation, mask = draw_observations(1000)
    assert np.array_equal(policy.act(observation, mask), act_with_numpy(policy, observation))
    benchmark(act_with_numpy, policy, observation)


@pytest.mark.benchmark(group="forward")
def test_reading_the_weights(benchmark):
    """The weights of 1,000 decisions read by NumPy: what a dense forward pass takes from the cache."""
    theta = make_policy().theta
    assert theta.dtype == np.float32 and theta.size == 46_220
    benchmark(lambda: [theta.max() for _ in range(1000)])


@pytest.mark.benchmark(group="forward")
def test_one_decision(benchmark):
    """`Policy.act` on one observation, checks included."""
    policy = make_policy()
    observation, mask = draw_observations(1)
    assert np.array_equal(policy.act(observation, mask), act_with_numpy(policy, observation))
    benchmark(policy.act, observation, mask)


GENERATION = Noise(0, 0, 256, False)


def make_policy(scaling: np.ndarray | None = None) -> acerl_np.Policy:
    return acerl_np.Policy(
        initial_parameters(SIZES, 0),
        hidden=SIZES[1:-1],
        task_slots=30,
        n_vehicles=3,
        scaling=np.ones(12) if scaling is None else scaling,
    )


def act_with_numpy(policy: acerl_np.Policy, observation: np.ndarray) -> np.ndarray:
    return find_logits(policy, observation).argmax(axis=1)


def find_logits(policy: acerl_np.Policy, observation: np.ndarray) -> np.ndarray:
    x = observation - observation.mean(axis=1, keepdims=True)
    x /= observation.std(axis=1, keepdims=True) + 1e-5
    position = 0
    for layer in range(3):
        n_in, n_out = SIZES[layer : layer + 2]
        weights = policy.theta[position : position + n_in * n_out].reshape(n_in, n_out)
        position += n_in * n_out
        x = x @ weights + policy.theta[position : position + n_out]
        position += n_out
        if layer < 2:
            x = np.maximum(x, 0.0)
    return x


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


@pytest.mark.benchmark(group="normals")
def test_normals(benchmark):
    """One block of keyed standard normals, 2,048 numbers."""
    key = np.empty(4, np.uint32)
    derive_key(0, NOISE, 0, 0, key)
    bits = np.empty((4, LANES), np.uint32)
    out = np.empty((4, LANES), np.float32)
    fill_normals(key, 3, bits, out)
    assert abs(out.mean()) < 0.1 and abs(out.std() - 1.0) < 0.1
    benchmark(fill_normals, key, 3, bits, out)


@pytest.mark.benchmark(group="normals")
def test_normals_of_numpy(benchmark):
    """As many by NumPy's SFC64, float32."""
    generator = np.random.Generator(np.random.SFC64(0))
    out = np.empty(BLOCK, np.float32)
    generator.standard_normal(out=out, dtype=np.float32)
    assert abs(out.mean()) < 0.1 and abs(out.std() - 1.0) < 0.1
    benchmark(generator.standard_normal, out=out, dtype=np.float32)


@pytest.mark.benchmark(group="rollout")
@pytest.mark.parametrize("threads", [1, 2])
def test_rollout(benchmark, suite, threads):
    """256 perturbed policies play an episode each: about 8,400 decisions."""
    problem = build_problem(suite)
    theta = initial_parameters(SIZES, 0)
    instances = (np.arange(256) % 8)[:, np.newaxis]
    workers = Workers(threads)
    own = problem, make_network(SIZES), theta, 0.1, GENERATION, instances
    expected = play_members(*own, Workers(1), tile=1)
    actual = play_members(*own, workers)
    assert all(np.array_equal(a, b) for a, b in zip(actual, expected, strict=True))
    benchmark.extra_info["decisions"] = int(actual.decisions.sum())
    benchmark(play_members, *own, workers)
    workers.close()


@pytest.mark.benchmark(group="rollout")
def test_rollout_step_by_step(benchmark, suite):
    """One of those episodes as users would write it: the simulator, and NumPy for the network."""
    policy = make_policy()
    sim = acerl_np.Simulator(suite[0])
    rng = np.random.default_rng(0)

    def play() -> float:
        sim.reset()
        while not sim.done[0]:
            legal = np.flatnonzero(sim.action_mask[0])
            logits = find_logits(policy, sim.observation)[0, legal]
            weight = np.exp(logits - logits.max())
            sim.step([rng.choice(legal, p=weight / weight.sum())])
        return float(sim.makespan[0])

    assert 1700.0 < play() < 2500.0
    benchmark(play)


@pytest.mark.benchmark(group="rules")
@pytest.mark.parametrize("rule", ["FCFS", "STD", "MIX", "Random", *YARDSTICKS])
def test_rules(benchmark, suite, rule):
    """A rule or a yardstick without a network, one thread; see decisions per second in extra_info."""
    expected = acerl_np.evaluate_policy(rule, suite, trials=100, threads=2)
    trials = benchmark(acerl_np.evaluate_policy, rule, suite, trials=100, threads=1)
    assert np.array_equal(trials.makespan, expected.makespan)
    benchmark.extra_info["decisions"] = trials.decisions
    if benchmark.stats is not None:
        seconds = benchmark.stats.stats.median
        benchmark.extra_info["decisions_per_second"] = round(trials.decisions / seconds)


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


@pytest.mark.benchmark(group="ranking")
@pytest.mark.parametrize("n_instances", [8, 1])
def test_ranking(benchmark, n_instances):
    """Utilities of 256 members by intrinsic stochastic ranking."""
    rng = np.random.default_rng(0)
    returns, costs = rng.normal(size=256), rng.uniform(0.0, 40.0, 256)
    ids = np.arange(256) % n_instances
    literal = rank_utilities(returns, costs, ids, shaping="rank")
    for k in range(n_instances):  # all feasible: the order of the returns
        assert np.array_equal(literal[ids == k].argsort(), returns[ids == k].argsort())
    costs += 30.0
    benchmark(rank_utilities, returns, costs, ids)


@pytest.mark.benchmark(group="ranking")
def test_ranking_of_the_naive_oracle(benchmark):
    """The same, eight instances, in plain Python."""
    rng = np.random.default_rng(0)
    returns, costs = rng.normal(size=256), rng.uniform(30.0, 70.0, 256)
    ids = np.arange(256) % 8
    from naive_evolution import utilities

    options = {"ranking": "isr", "shaping": "standardised", "cost_limit": 50.0, "p_f": 0.5}
    arrays = (returns.tolist(), costs.tolist(), ids.tolist())
    slow = utilities(*arrays, **options, seed=0, generation=0)
    assert np.allclose(slow, rank_utilities(returns, costs, ids))
    benchmark(utilities, *arrays, **options, seed=0, generation=0)


@pytest.mark.benchmark(group="update")
def test_update(benchmark):
    """Gradient of 46,220 parameters from 256 members, noise drawn again."""
    small = Strategy(np.zeros(100), population=256)
    utilities = np.random.default_rng(0).normal(size=256)
    noise = small.ask() / small.noise_std
    expected = utilities @ noise / (256 * small.noise_std)
    assert np.allclose(small.estimate_gradient(utilities), expected, rtol=1e-3, atol=1e-3)
    benchmark(Strategy(np.zeros(46_220), population=256).estimate_gradient, utilities)


@pytest.mark.benchmark(group="update")
def test_update_from_stored_noise(benchmark):
    """The same by NumPy from 47 MB of noise that is there already."""
    strategy = Strategy(np.zeros(46_220), population=256)
    noise = strategy.ask() / np.float32(strategy.noise_std)
    utilities = np.random.default_rng(0).normal(size=256).astype(np.float32)
    gradient = strategy.estimate_gradient(utilities.astype(np.float64))
    expected = utilities @ noise / (256 * strategy.noise_std)
    assert noise.dtype == np.float32 and np.allclose(gradient, expected, rtol=1e-3, atol=1e-3)
    benchmark(np.matmul, utilities, noise)


@pytest.mark.benchmark(group="update")
def test_reading_memory(benchmark):
    """47 MB read by NumPy: the least time from stored noise, whatever is computed with it."""
    noise = np.ones((256, 46_220), np.float32)
    noise[-1, -1] = 2.0
    assert noise.max() == 2.0  # read to its end
    benchmark(noise.max)


@pytest.mark.benchmark(group="generation")
def test_generation(benchmark, suite):
    """A whole generation with the paper's settings, one thread per core."""
    trainer = acerl_np.ACERL(suite, acerl_np.Config(), seed=0)
    again = acerl_np.ACERL(suite, acerl_np.Config(), seed=0, threads=1)
    assert trainer.step().return_mean == again.step().return_mean
    assert np.array_equal(trainer.strategy.theta, again.strategy.theta)
    benchmark(trainer.step)


@pytest.mark.benchmark(group="run")
def test_run(benchmark, suite):
    """Default training, 128 generations."""

    config = acerl_np.Config(generations=128 if benchmark.enabled else 4)

    def train() -> acerl_np.ACERL:
        trainer = acerl_np.ACERL(suite, config, seed=0)
        trainer.run()
        return trainer

    trainer = benchmark.pedantic(train, rounds=5)
    assert trainer.history[-1].return_mean > trainer.history[0].return_mean


@pytest.mark.benchmark(group="run")
def test_draws_of_numpy(benchmark):
    """A hundredth of the run's normals by NumPy's SFC64, float32, on one thread."""
    generator = np.random.Generator(np.random.SFC64(0))
    out = np.empty(128 * 256 * 46_220 // 100, np.float32)
    generator.standard_normal(out=out, dtype=np.float32)
    assert abs(out.mean()) < 0.01 and abs(out.std() - 1.0) < 0.01
    benchmark(generator.standard_normal, out=out, dtype=np.float32)
