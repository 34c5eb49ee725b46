"""Training and evaluation: each generation done by hand, checkpoints, history, curves, trials."""

import csv
import math
import tracemalloc
from dataclasses import fields
from functools import partial
from itertools import pairwise

import naive_evolution as naive
import numpy as np
import pytest
from machine import JIT, needs_jit
from tables_and_refusals import list_unrefused
from trainings import (
    damage,
    edit_json,
    list_taken_checkpoints,
    load_instances,
    outcome,
    put,
    read_state,
    same_trials,
)

import acerl_np
from acerl_np import ACERL, CheckpointError, Config, ConfigError, evaluate_policy
from acerl_np.evolution import Strategy
from acerl_np.kernels.core.random import CURVE
from acerl_np.kernels.learning.update import Noise
from acerl_np.kernels.networks.network import make_network
from acerl_np.policies.index import NAMES
from acerl_np.policies.network import initial_parameters
from acerl_np.problem.interface import find_scaling, find_slots
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import play_members, stream_keys
from acerl_np.support.workers import Workers
from acerl_np.training.history import CurvePoint

HIDDEN = (8,)
POPULATION = 12 if JIT else 4
GENERATIONS = 3 if JIT else 2
TRIALS = 6 if JIT else 2


def make_config(**options):
    # With a low limit some members are feasible and others are not.
    small = {"generations": GENERATIONS, "population": POPULATION, "hidden": HIDDEN}
    return Config(**{**small, "cost_limit": 55.0 if JIT else 35.0, **options})


def train(instances=None, seed=0, threads=1, tile=None, **options):
    how = {"seed": seed, "threads": threads, "tile": tile}
    trainer = ACERL(instances or load_instances(), make_config(**options), **how)
    trainer.run()
    return trainer


INDEX = {"population": 6, "records_per_member": 3, "curve_every": 2, "decisions": 2500}
REACHING = {
    "network": (
        partial(make_config, generations=6),
        [
            *({"learning_rate": 0.05}, {"noise_std": 0.2}, {"ranking": "f"}, {"sampler": "single"}),
            *(
                {"shaping": "rank"},
                {"antithetic": True},
                {"noise_decay": 0.5, "noise_decay_every": 1},
            ),
            *({"p_f": 0.0}, {"cost_limit": 0.0}, {"alpha_u": 25.0}, {"advantage": "released"}),
            *({"initialisation": "torch"}, {"initialisation": "small"}, {"biases": False}),
            {"standardise": False},
        ],
    ),
    "index": (
        partial(Config.preset, "best", **INDEX),
        [
            *({"spread": "one"}, {"perturb": 0}, {"perturb": 3}, {"synthetic": 1.0}),
            *({"penalty": 100.0, "margin": 50.0}, {"margin": 50.0}, {"records_per_member": 2}),
            *({"planned_breakdowns": False}, {"features": NAMES[:-1]}, {"ranking": "isr"}),
            *({"outcome": "last"}, {"outcome": "last", "noise_std": 3.0}, {"noise_std": 0.1}),
            *({"outcome": "best", "noise_std": 3.0, "curve_every": 1}, {"learning_rate": 0.5}),
        ],
    ),
}


@needs_jit
@pytest.mark.parametrize("form", REACHING)
def test_every_option_reaches_the_training(form):
    make, options = REACHING[form]
    thetas = []
    for given in ({}, *options):
        trainer = ACERL(load_instances(), make(**given), seed=1, threads=1)
        trainer.run()
        thetas.append(trainer.policy.theta.tobytes())
    assert len(set(thetas)) == len(thetas)


# Resume


def test_resuming_with_more_or_fewer_generations(tmp_path):
    train().save(tmp_path / "run.npz")
    with pytest.raises(CheckpointError, match=f"has {GENERATIONS} generations already"):
        ACERL.resume(tmp_path / "run.npz", generations=GENERATIONS - 1)
    finished = ACERL.resume(tmp_path / "run.npz", generations=GENERATIONS)
    assert finished.done
    finished.run()
    assert len(finished.history) == GENERATIONS
    resumed = ACERL.resume(tmp_path / "run.npz", generations=GENERATIONS + 2, threads=1)
    assert not resumed.done
    resumed.run()
    longer = train(generations=GENERATIONS + 2)
    assert resumed.config == longer.config
    assert outcome(resumed, tmp_path) == outcome(longer, tmp_path)
    resumed.step()  # beyond the end
    resumed.save(tmp_path / "run.npz")
    again = ACERL.resume(tmp_path / "run.npz")
    assert again.done and again.generation == again.config.generations == GENERATIONS + 3


def test_a_history_goes_on_and_lacks_means_only_where_members_did_not_finish(tmp_path):
    path, other = tmp_path / "run.npz", tmp_path / "other.npz"
    trainer = train(generations=1)
    trainer.save(path)
    assert ACERL.resume(path).history[0].seconds == trainer.history[0].seconds > 0
    damage(path, other, {"state.history": put(5000.0, where=2)})
    resumed = ACERL.resume(other, generations=2, threads=1)
    resumed.run()
    first, second = (record.seconds for record in resumed.history)
    assert first == 5000.0 < second
    damage(path, other, {"state.history": put(np.nan, where=3)})
    with pytest.raises(CheckpointError, match="history: not finite"):
        ACERL.resume(other)
    damage(other, other, {"state.failed": put(trainer.config.population)})
    assert np.isnan(ACERL.resume(other).history[0].return_mean)


def settle(**values):
    return edit_json(lambda settings: settings.update(values))


def hurry(data):
    data["instances"][1]["tasks"][0]["expiry_time"] += 1


def test_files_that_hold_no_checkpoint_are_refused(tmp_path):
    none = "not a usable checkpoint"
    path = tmp_path / "run.npz"
    ACERL(load_instances(), make_config(), threads=1).save(path)
    cases = [
        ({"kind": np.array("policy")}, "holds policy; expected a checkpoint"),
        ({"format": np.array(99)}, "format 99; this version reads format 4"),
        *(({name: None}, none) for name in ("settings", "instances")),
        *(({"settings": np.frombuffer(text, np.uint8)}, none) for text in (b"{", b"{}")),
        *(
            ({"settings": settle(decisions=n)}, f"decisions: read {n}"[:60])
            for n in (-1, 2**53 + 1, 10**400)
        ),
        ({"settings": settle(decisions=-1)}, "expected a count from 0 to"),
        ({"instances": edit_json(hurry)}, "content hash"),
        ({"state.theta": put(1e31)}, "theta: expected numbers of at most"),
        ({"state.sampler.count": put(-1)}, "sampler.count: expected counts from 0"),
        ({"settings": settle(generation=1)}, "history: read shape"),
    ]
    assert list_taken_checkpoints(ACERL, path, cases) == []
    # What is wrong with an option is not blamed on the file.
    with pytest.raises(ConfigError, match=r"^threads: read 0; expected"):
        ACERL.resume(path, threads=0)


# A generation by hand


def play_episode(instance, policy, theta, key):
    """One episode through the simulator, a float64 network and keyed draws."""
    simulator, decisions = acerl_np.Simulator(instance, policy=policy), 0
    while not simulator.done[0]:
        mask = simulator.action_mask[0]
        logits = naive.forward(policy.sizes, theta, simulator.observation[0])
        if key is None:
            action = np.flatnonzero(mask)[logits[mask].argmax()]
        else:
            uniform = naive.uniform(key, decisions, 0)
            action = naive.invert(naive.masked_softmax(logits, mask), uniform)
        simulator.step([action])
        decisions += 1
    return simulator.makespan[0], simulator.tardiness[0], decisions


def play_population(instances, theta, sigma, seed, generation, antithetic, dealt, **how):
    """Returns, costs and decisions by the fast kernels; a member plays one record or a list of them."""
    slots = find_slots("task", instances)
    problem = build_problem(instances, scaling=find_scaling(instances), slots=slots)
    workers = Workers(1)
    network = make_network([219, *HIDDEN, 12])
    noise = Noise(seed, generation, len(dealt), antithetic)
    rows = np.array(dealt, np.int64).reshape(len(dealt), -1)
    played = play_members(problem, network, theta, sigma, noise, rows, workers, **how)
    workers.close()
    return -played.makespan, played.tardiness, played.decisions


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("dealt", "antithetic", "tile", "rank"),
    [
        ([[0], [0], [1], [1], [0], [1]], False, 4, 0),
        ([[0], [0], [1], [1], [0], [1]], True, 4, 0),
        ([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0]], False, 1, 0),
        ([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0]], False, 4, 0),
        ([[0], [0], [1], [1], [0], [1]], True, 4, 1),
        ([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0]], False, 2, 3),
    ],
)
def test_each_episode_of_a_member_is_that_in_the_simulator(dealt, antithetic, tile, rank):
    """Episode k of member m is keyed by (seed, generation, m K + k); all K are by the same network."""
    instances = load_instances()
    seed, generation, sigma = 3, 5, 0.2
    dealt = dealt if JIT else dealt[: 4 if len(dealt[0]) == 1 else 2]
    sizes = [219, *HIDDEN, 12]
    shapes = [(n_in + 1, n_out) for n_in, n_out in pairwise(sizes)]
    strategy = Strategy(
        initial_parameters([219, *HIDDEN, 12], seed),
        **{"seed": seed, "population": len(dealt), "noise_std": sigma, "antithetic": antithetic},
        **({"noise_rank": rank, "shapes": shapes} if rank else {}),
    )
    strategy.generation = generation
    own = strategy.theta, sigma, seed, generation, antithetic
    told = play_population(instances, *own, dealt, tile=tile, rank=rank)
    policy = train(generations=0).policy
    # A pair shares its noise and its instance, but not its draws of actions.
    for member, theta in enumerate(strategy.ask()):
        for k, record in enumerate(dealt[member]):
            entry = len(dealt[member]) * member + k
            key = naive.stream_key(seed, naive.ACTION, generation, entry)
            played = play_episode(instances[record], policy, theta, key)
            returns, costs, decisions = (x[entry] for x in told)
            assert (-returns, costs, decisions) == played
    assert len(set(zip(*(x.tolist() for x in told[:2]), strict=True))) > 2


def test_the_two_of_a_pair_play_the_same_record():
    config = make_config(antithetic=True, sampler="random")
    trainer = ACERL(load_instances(), config, seed=4, threads=1)
    rows = trainer._records.assign(trainer.sampler, trainer.search.noise()).rows
    assert (rows[::2] == rows[1::2]).all() and len(np.unique(rows)) == 2


# Runs


def test_history_has_a_record_per_generation_and_a_file(tmp_path):
    trainer = train()
    assert trainer.done
    history, path = trainer.history, tmp_path / "history.csv"
    assert len(history) == GENERATIONS
    assert np.all(np.diff([[0, 0], *((x.decisions, x.seconds) for x in history)], axis=0) > 0)
    total = np.sum([record.counts for record in history], axis=0)
    assert trainer.sampler.count.tolist() == total.tolist()
    trainer.write_history(path)
    assert path.read_bytes().endswith(b"\n") and b"\r" not in path.read_bytes()
    header, *rows = csv.reader(path.read_text().splitlines())
    columns = "generation,decisions,seconds,return_mean,return_std,cost_mean,satisfied,noise_std"
    columns = columns.split(",")
    assert header == [*columns, "DMH-01", "DMH-02"]
    for row, record in zip(rows, history, strict=True):
        told = [getattr(record, column) for column in columns]
        assert row[:2] == [str(record.generation), str(record.decisions)]
        assert [float(x) for x in row] == pytest.approx([*told, *record.counts], rel=0, abs=1e-4)
        assert [float(x) for x in row[3:8]] == told[3:]
    # Without a generation it is a header.
    empty = train(generations=0)
    assert empty.history == []
    empty.write_history(path)
    assert path.read_text().splitlines() == [",".join(header)]
    empty.save(tmp_path / "run.npz")
    assert ACERL.resume(tmp_path / "run.npz").history == []


def test_a_callback_sees_every_generation_and_may_stop():
    seen = []
    trainer = ACERL(load_instances(), make_config(), threads=1)
    trainer.run(seen.append)
    assert seen == trainer.history
    for answer in (True, np.bool_(True), 1, False, np.bool_(False), None):
        trainer = ACERL(load_instances(), make_config(), threads=1)
        trainer.run(lambda record, answer=answer: answer)
        assert trainer.generation == (1 if answer else GENERATIONS)


def test_one_instance_needs_no_list_and_the_policy_fits_its_floor():
    instance = load_instances()[0]
    policy, listed = (train(given, generations=1).policy for given in (instance, [instance]))
    assert policy.theta.tobytes() == listed.theta.tobytes()
    assert policy.sizes.tolist() == [219, *HIDDEN, 12]
    with pytest.raises(ValueError, match="read-only"):  # sums of it are kept
        policy.theta[:] = 0


def test_unusable_instances_and_seeds_are_refused():
    instance = load_instances()[0]
    cases = [
        *(({"seed": seed}, "seed: read") for seed in (-1, 2**63, 1.5, True, "0", None)),
        ({"threads": 0}, "threads: read 0"),
        ({"instances": []}, "no instances"),
        ({"instances": [instance, instance]}, "'DMH-01' is given twice"),
    ]
    assert list_unrefused(lambda given: ACERL(**{"instances": [instance], **given}), cases) == []
    names = ("DMH-01", ["DMH-01"], 3, [3], None)
    cases = [(wrong, "; expected what load_instance") for wrong in names]
    for use in (acerl_np.Simulator, ACERL, lambda given: evaluate_policy("EDD", given)):
        assert list_unrefused(use, cases) == []
    with pytest.raises(acerl_np.InputError, match="no instances"):
        evaluate_policy("EDD", [])


# Curves


@pytest.mark.parametrize("outcome", ["last", "best"])
def test_a_look_plays_theta_on_every_record(outcome):
    """Every look is that of a float64 network in the simulator; the best one's theta is kept."""
    instances = load_instances()
    options = {"curve_every": 2, "curve_trials": 2, "outcome": outcome, "learning_rate": 0.3}
    trainer = ACERL(instances, make_config(generations=5, **options), seed=3, threads=1)
    thetas = [trainer.strategy.theta.copy()]
    while not trainer.done:
        trainer.step()
        thetas.append(trainer.strategy.theta.copy())
    taken = [0, *(record.decisions for record in trainer.history)]
    looks = [(point.generation, point.decisions) for point in trainer.curve]
    assert looks == [(generation, taken[generation]) for generation in (0, 2, 4)]
    scores = {}
    for generation in (0, 2, 4, 5):
        played = [
            [
                play_episode(instance, trainer.policy, thetas[generation], key)[:2]
                for key in stream_keys([instance], 2, 3, purpose=CURVE).tolist()
            ]
            for instance in instances
        ]
        makespan, tardiness = np.array(played).transpose(2, 0, 1)
        satisfied = tardiness < trainer.config.cost_limit
        scores[generation] = (-satisfied.mean(), makespan.mean())
        if generation < 5:
            point = trainer.curve[generation // 2]
            np.testing.assert_allclose(point.makespan, makespan.mean(axis=1))
            np.testing.assert_allclose(point.tardiness, tardiness.mean(axis=1))
            np.testing.assert_array_equal(point.satisfied, satisfied.mean(axis=1))
    kept = min(scores, key=scores.get) if outcome == "best" else 5
    assert trainer.policy.theta.tobytes() == thetas[kept].tobytes()


def test_the_better_look():
    """First the share within the limit, then the objective; an unfinished day is the worst."""

    def make_point(makespan, satisfied):
        value, nothing = np.array(makespan, float), np.zeros(len(makespan))
        return CurvePoint(0, 0, nothing, nothing, np.array(satisfied, float), value)

    good, late = make_point([100, 120], [1, 1]), make_point([90, 90], [1, 0.5])
    shorter, stuck = make_point([100, 119], [1, 1]), make_point([100, np.nan], [1, 1])
    in_order = [shorter, good, late]
    for points in (in_order, [good, stuck]):
        better = [[a.beats(b) for b in points] for a in points]
        assert better == np.triu(np.ones((len(points),) * 2, bool), 1).tolist()


def test_looks_change_no_training_and_the_last_line_is_the_present_theta(tmp_path):
    plain, watched = train(curve_every=0), train(curve_every=1, curve_trials=1)
    assert plain.curve == [] and len(watched.curve) == 1 + GENERATIONS
    states = [read_state(trainer, tmp_path / "run.npz") for trainer in (plain, watched)]
    for name in states[0].keys() - {"settings"}:
        assert name.startswith("state.curve") or states[0][name] == states[1][name]
    for trainer, generations in ((plain, []), (train(curve_every=100), [0, GENERATIONS])):
        trainer.write_curves(tmp_path / "curves.csv")
        _, *lines = (tmp_path / "curves.csv").read_text().splitlines()
        assert [int(line.split(",")[0]) for line in lines] == np.repeat(generations, 2).tolist()


# Configuration


DEFAULTS = """
objective=makespan cost=tardiness class_weights=[] form=network generations=128 decisions=None
population=256 learning_rate=0.06 noise_std=0.1 noise_decay=0.99 noise_decay_every=50
cost_limit=50.0 p_f=0.5 alpha_u=1.0 ranking=isr penalty=3.0 margin=5.0 sampler=ais
records_per_member=1 perturb=0 synthetic=0.0 spread=one planned_breakdowns=True features=None
commitment=assignment max_changes=8 may_wait=False tune_charging=False
rules=['FCFS','EDD','NVF','STD'] shaping=standardised antithetic=False hidden=[128,128]
advantage=paper initialisation=he biases=True standardise=True slots=task curve_every=8
curve_trials=3 outcome=last horizon=None
"""


def test_defaults_of_the_configuration():
    found = [f"{name}={value}".replace(" ", "") for name, value in Config().to_dict().items()]
    assert sorted(found) == sorted(DEFAULTS.split())


def test_options_are_shown_in_one_line_whatever_they_are():
    texts = ["a\nb", "\x1b[31m\0", "\u2028", "x" * 5000]
    values = [10**5000, -(10**5000), [10**5000], *texts]
    cases = [({field.name: x}, f"{field.name}: ") for field in fields(Config) for x in values]
    cases += [({text: 1}, "") for text in texts]
    assert list_unrefused(Config.from_dict, cases, ConfigError) == []
    for given, _ in cases:
        with pytest.raises(ConfigError) as caught:
            Config.from_dict(given)
        assert len(str(caught.value)) < 600


# Evaluation


def test_an_evaluated_episode_is_its_episode_in_the_simulator():
    """Drawn by nothing but seed, content and number of the trial; a greedy one by none of them."""
    instances, trained = load_instances(), train(generations=0).policy
    renamed = acerl_np.Instance.from_rows("other", instances[0].layout, instances[0].rows())
    # The features are scaled by the policy's constants, not by those of the floor.
    scaling = trained.scaling * np.linspace(0.5, 3.0, 12)
    policy = acerl_np.Policy(trained.theta, **{**trained.options, "scaling": scaling})
    trials = evaluate_policy(policy, [*instances, renamed], trials=2, seed=7)
    assert trials.makespan[-1].tolist() == trials.makespan[0].tolist()
    alone = evaluate_policy(trained, instances, trials=2, seed=7)
    assert trials.makespan[:-1].tolist() != alone.makespan.tolist()
    greedy = [evaluate_policy(policy, instances, trials=2, greedy=True, seed=k) for k in (0, 9)]
    assert same_trials(*greedy)
    decisions = 0
    for i, instance in enumerate([*instances, renamed]):
        content = int.from_bytes(bytes.fromhex(instance.content_hash[:16]), "big", signed=True)
        for trial in range(2):
            key = naive.stream_key(7, naive.EVALUATION, content, trial)
            assert stream_keys([instance], 2, 7)[trial].tolist() == key
            *played, n = play_episode(instance, policy, policy.theta, key)
            assert [trials.makespan[i, trial], trials.tardiness[i, trial]] == played
            decisions += n
        if instance is not renamed:
            makespan, tardiness, _ = play_episode(instance, policy, policy.theta, None)
            assert set(greedy[0].makespan[i].tolist()) == {makespan}
            assert set(greedy[0].tardiness[i].tolist()) == {tardiness}
    assert trials.decisions == decisions


def test_satisfied_is_the_share_of_trials_below_the_limit():
    """A tardiness of exactly the limit does not satisfy it."""
    instances, policy = load_instances(), train(generations=0).policy
    tardiness = evaluate_policy(policy, instances, trials=TRIALS).tardiness.ravel()
    middle = np.sort(tardiness)[len(tardiness) // 2]
    for limit in (50.0, float(middle), float(tardiness.max()), 1e9):
        trials = evaluate_policy(policy, instances, trials=TRIALS, cost_limit=limit)
        assert trials.satisfied == np.mean([t < limit for t in tardiness])
        assert trials.cost_limit == limit


def test_a_policy_of_another_size_is_refused():
    instance = load_instances()[0]
    for task_slots, n_vehicles, what in ((3, 3, "task slots"), (30, 2, "vehicles"), (30, 4, "veh")):
        sizes = [4 * task_slots + n_vehicles * (3 + task_slots), 2, 4 * n_vehicles]
        options = {"hidden": (2,), "task_slots": task_slots, "n_vehicles": n_vehicles}
        policy = acerl_np.Policy(initial_parameters(sizes, 0), scaling=np.ones(12), **options)
        with pytest.raises(acerl_np.PolicyError, match=f"DMH-01: .* {what}"):
            evaluate_policy(policy, instance, trials=1)
        with pytest.raises(acerl_np.PolicyError, match=f"dispatcher: .* {what}"):
            acerl_np.Dispatcher(instance.layout, policy)


@needs_jit
def test_memory_does_not_grow_with_the_population():
    """4,096 members: their noise or their parameters alone would take 240 MB."""
    config = Config(population=4096, hidden=(64,), generations=1)
    trainer = ACERL(load_instances(), config, threads=2)
    assert config.population * trainer.strategy.theta.size * 4 > 240e6
    tracemalloc.start()
    trainer.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_members_that_do_not_finish_rank_worst_and_are_counted(tmp_path):
    free = train(generations=1).history[0]
    horizon = -free.return_mean  # between the makespans of this generation
    trainer = train(generations=2, horizon=horizon)
    first = trainer.history[0]
    assert 0 < first.failed < trainer.config.population == sum(first.counts)
    assert first.return_mean > free.return_mean
    assert np.isfinite(trainer.strategy.theta).all()
    trainer.save(tmp_path / "run.npz")
    resumed = ACERL.resume(tmp_path / "run.npz", threads=1)
    assert resumed.history == trainer.history
    assert resumed.config.horizon == horizon
    # Without a finished member all are equally bad: the policy stays, and nothing warns.
    none = train(generations=2, horizon=1.0)
    assert np.array_equal(none.strategy.theta, train(generations=0).strategy.theta)
    assert [record.failed for record in none.history] == [none.config.population] * 2
    assert all(math.isnan(x.return_mean) and x.satisfied == 0.0 for x in none.history)


def test_trials_that_do_not_finish_are_counted_and_left_out_of_means():
    instance = load_instances()[0]
    free = evaluate_policy("MIX", instance, trials=20, threads=1)
    horizon = float(np.median(free.makespan))
    trials = evaluate_policy("MIX", instance, trials=20, threads=1, horizon=horizon)
    finished = free.makespan <= horizon
    assert trials.unfinished == 20 - finished.sum() > 0
    assert np.array_equal(np.isfinite(trials.makespan), finished)
    assert trials.mean("makespan")[0] == pytest.approx(free.makespan[finished].mean())
    assert trials.mean("tardiness")[0] == pytest.approx(free.tardiness[finished].mean())
    assert trials.satisfied == (free.tardiness[finished] < 50.0).sum() / 20
    none = evaluate_policy("MIX", instance, trials=3, threads=1, horizon=1.0)
    assert (none.unfinished, none.satisfied) == (3, 0.0)
    assert np.isnan(none.mean("makespan")).all()
