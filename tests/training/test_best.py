"""Training of index policies, on records drawn anew: presets, budgets, and damaged files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import JIT, needs_jit
from tables_and_refusals import list_unrefused
from trainings import edit_json, list_taken_checkpoints, load_instances, put, shorten

import acerl_np
from acerl_np import ACERL, Config, ConfigError
from acerl_np.policies.index import NAMES
from acerl_np.problem.goal import SHIFT
from acerl_np.training.acerl import move_average

SMALL = {"population": 6 if JIT else 4, "records_per_member": 3 if JIT else 2, "curve_every": 2}
NONE = "not a usable checkpoint"

# Two looks at each of two records, and K episodes of each member: a few generations.
BUDGET = 2500 if JIT else 100


def make_config(**options):
    return Config.preset("best", **{**SMALL, "decisions": BUDGET, **options})


def network_config(**options):
    small = {"population": 6 if JIT else 4, "hidden": (4,), "generations": 3, "curve_every": 2}
    return Config(**{**small, "records_per_member": 2, **options})


def train(config, seed=1, threads=1):
    trainer = ACERL(load_instances(), config, seed=seed, threads=threads)
    trainer.run()
    return trainer


def test_training_by_the_preset_gets_better():
    instances = load_instances()
    trainer = ACERL(instances, make_config(decisions=40_000 if JIT else 200), seed=0, threads=1)
    start = trainer.policy
    assert isinstance(start, acerl_np.IndexPolicy)
    assert dict(zip(start.features, start.theta.tolist(), strict=True))["approach"] == -1.0
    trainer.run()
    assert trainer.policy.origin.history == tuple(instances)
    if JIT:
        both = (start, trainer.policy)
        before, after = (acerl_np.evaluate_policy(policy, instances, trials=1) for policy in both)
        assert after.makespan.mean() < before.makespan.mean() - 20.0


def test_waiting_weighs_in_the_training_alone():
    """It trains as for the sum with it, and reports the sum without; by default on shifts alone."""
    sums = SHIFT, f"{SHIFT}+0.3*waiting"
    plain, summed = (train(make_config(objective=x, waiting_weight=0.0)) for x in sums)
    weighed = train(make_config(objective=SHIFT, waiting_weight=0.3))
    np.testing.assert_allclose(weighed.search.mean, summed.search.mean, rtol=1e-6, atol=1e-9)
    assert weighed.search.mean.tobytes() != plain.search.mean.tobytes()
    first = [trainer.history[0].return_mean for trainer in (plain, weighed, summed)]
    assert first[0] == first[1] > first[2]
    shift = [acerl_np.generate_shift(acerl_np.load_layout("supply-loop"), hours=2.0)]
    usual = Config.preset("best")
    assert usual.resolve(shift).waiting_weight == 0.02
    assert usual.resolve(load_instances()).waiting_weight is None
    assert Config.preset("best", objective="late").resolve(shift).waiting_weight is None
    assert Config.preset("best", waiting_weight=0.0).resolve(shift).waiting_weight == 0.0


def test_decisions_end_the_run(tmp_path):
    """After the generation that reaches them, whatever the number of generations."""
    for config in (make_config(generations=1), network_config(generations=1, decisions=BUDGET)):
        trainer = train(config)
        taken = [record.decisions for record in trainer.history]
        assert len(taken) > 1 and taken[-2] < BUDGET <= taken[-1]
        trainer.save(tmp_path / "run.npz")
        again = ACERL.resume(tmp_path / "run.npz", threads=1)
        assert again.done and again.config == trainer.config
        again.run()
        assert len(again.history) == len(taken)
        more = ACERL.resume(tmp_path / "run.npz", decisions=taken[-1] + 1, threads=1)
        assert not more.done
        more.run()
        assert len(more.history) == len(taken) + 1


def test_the_records_of_a_member_follow_from_the_budget():
    """Two at least, 32 at most, and some 150 generations between: K = D / (150 population tasks)."""
    instances = load_instances()
    tasks = np.mean([instance.n_tasks for instance in instances])
    for decisions, each in ((1, 2), (10**12, 32), (int(150 * 6 * tasks * 7), 7)):
        config = Config.preset("best", population=6, decisions=decisions)
        assert config.records_per_member is None
        trainer = ACERL(instances, config, threads=1)
        if each < 32 or JIT:
            trainer.step()
            assert sum(trainer.history[0].counts) == 6 * each


@needs_jit
def test_steps_beyond_the_end_keep_the_number_of_records(tmp_path):
    """It follows from the number of generations, which grows with such steps, and must not change with it."""
    path = tmp_path / "run.npz"
    options = {"decisions": None, "records_per_member": None, "generations": 1, "curve_every": 0}
    config = make_config(**options, population=2, spread="one")
    straight = stopped = ACERL([*map(shorten, load_instances())], config, threads=1)
    for _ in range(200):
        straight.step()
    for _ in range(3):
        stopped.save(path)
        stopped = ACERL.resume(path, threads=1)
        stopped.step()
        straight.step()
        assert sum(stopped.history[-1].counts) == sum(straight.history[-1].counts) == 2 * 2
    assert stopped.search.mean.tobytes() == straight.search.mean.tobytes()


@given(st.integers(1, 60), st.sampled_from([np.float32, np.float64]), st.integers(0, 2**32 - 1))
def test_the_average_is_a_weighted_mean(n, dtype, seed):
    """The weights grow with the third power."""
    means = np.random.default_rng(seed).normal(size=(n, 3)).astype(dtype)
    average = np.full(3, 9.0)
    for generation, mean in enumerate(means, 1):
        average = move_average(average, mean, generation)
    weights = [t * (t + 1) * (t + 2) for t in range(1, n + 1)]  # about t cubed
    expected = np.average(means.astype(float), axis=0, weights=weights)
    np.testing.assert_allclose(average, expected, atol=1e-12)
    assert average.dtype == np.float64


# Presets and ranges


def test_presets():
    assert Config.preset("paper") == Config()
    assert Config.preset("paper", population=8) == Config(population=8)
    best = Config.preset("best")
    assert (best.form, best.spread, best.outcome) == ("index", "full", "average")
    assert best.decisions and best.features is None and best.planned_breakdowns
    few = Config.preset("best", generations=3)
    assert (few.generations, few.decisions) == (3, None)
    # What is said goes before what the preset has.
    config = Config.preset("best", decisions=10**7, spread="one", perturb=0)
    assert (config.decisions, config.spread, config.perturb) == (10**7, "one", 0)
    assert config.population == best.population


def test_presets_that_are_none():
    cases = [
        *((name, {}, f"preset: read {name}; expected one of paper, best") for name in ("x", None)),
        (["best"], {}, "preset: read"),
        *((name, {"sigma": 1}, "sigma: unknown option") for name in ("best", "paper")),
        ("paper", {"spread": "full"}, "spread: read full; expected one with form network"),
        ("best", {"form": "network"}, "spread: read full; expected one with form network"),
        ("paper", {"features": NAMES[:1]}, "features: read ... expected none with form network"),
        ("best", {"hidden": ()}, "hidden: read () ... the default with form index"),
        ("paper", {"population": 7, "antithetic": True}, "population: read 7; expected an even"),
    ]
    values = "approach", ["speed"], (NAMES[0], 1), (), 3
    cases += [("best", {"features": value}, "features: read ... expected") for value in values]
    given = [((name, options), message) for name, options, message in cases]
    assert list_unrefused(lambda x: Config.preset(x[0], **x[1]), given, ConfigError) == []


@pytest.mark.parametrize(
    "config",
    [
        Config.preset("best"),
        Config.preset("best", decisions=10**7, features=[NAMES[3], NAMES[0]]),
        Config.preset("best", decisions=None, synthetic=1, planned_breakdowns=False),
        Config(records_per_member=np.int64(3), decisions=np.int32(5), perturb=np.int8(2)),
        Config(generations=0, learning_rate=1, hidden=[], ranking="f", antithetic=True),
    ],
)
def test_options_survive_a_round_trip(config):
    plain = json.loads(json.dumps(config.to_dict()))
    assert Config.from_dict(plain) == config == Config.from_dict(config.to_dict())
    assert Config.from_dict(plain).to_dict() == config.to_dict()
    assert hash(Config.from_dict(plain)) == hash(config)
    assert isinstance(config.learning_rate, float)
    assert config.features in (None, (NAMES[0], NAMES[3]))  # in one order


@pytest.mark.parametrize("spread", ["full", "diagonal", "one"])
def test_damaged_checkpoints_are_refused(spread, tmp_path):
    train(make_config(spread=spread)).save(tmp_path / "run.npz")
    faults = [
        ("theta", put(1e38), "theta: expected numbers of at most"),
        ("average", put(np.inf), "average: not finite"),
        *((name, put(np.nan), f"{name}: not finite") for name in ("average", "theta")),
    ]
    if spread != "one":  # what spreads refuse of themselves
        arrays = ("size", "covariance", "size_path", "shape_path")
        changes = (put(np.nan), put(1e300))
        faults += [(f"spread.{x}", change, NONE) for x in arrays for change in changes]
        faults.append(("spread.updates", np.array(-1), NONE))
    cases = [({f"state.{name}": change}, part) for name, change, part in faults]
    if spread == "full":
        other = edit_json(lambda own: own["config"].update(spread="diagonal"))
        cases.append(({"settings": other}, NONE))
    assert list_taken_checkpoints(ACERL, tmp_path / "run.npz", cases) == []
