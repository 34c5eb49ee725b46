"""The same seed gives the same bytes: on any threads, tiles and processors, stopped or in a child."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import own_goals
import pytest
import trainings
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import JIT, ROOT, find_environment, needs_jit
from pages import make_powered
from trainings import (
    CHILD_CONFIG,
    COPIES,
    INSTANCES,
    go_on,
    make_rival,
    outcome,
    run_in_child,
    start,
)

from acerl_np import ACERL, Config, evaluate_policy
from acerl_np.kernels.networks.network import act_batch
from studies.rivals import ALGORITHMS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


# Threads, tiles, stops, copies


def check_same(make, folder, ways, **how):
    """Any threads and tiles, and any way to go on from anywhere, end in the same bytes."""
    straight = make()
    straight.run()
    end = outcome(straight, folder)
    for way in ways:
        other = make(**way)
        other.run()
        assert outcome(other, folder) == end
    going, left = make(**ways[0] if ways else {}), []
    done = False
    while not done:
        here, done = outcome(going, folder), going.done
        again = [go_on(going, way, folder, **how) for way in ("checkpoint", *COPIES)]
        if not done:
            going.step()  # they share nothing with who goes on
        assert all(outcome(one, folder) == here for one in again)
        left += again
    for one in left:
        one.run()
        assert outcome(one, folder) == end
    return straight


def make_acerl(config, instances=INSTANCES):
    """What makes a trainer; a few more options keep a run short."""
    return lambda seed=1, **how: ACERL(instances, config, seed=seed, **{"threads": 1, **how})


def make_network(instances=INSTANCES, **options):
    small = {"population": 6 if JIT else 4, "hidden": (4,), "generations": 3, "curve_every": 2}
    return make_acerl(Config(**{**small, "records_per_member": 2, **options}), instances)


def make_index(instances=INSTANCES, **options):
    small = {"population": 6 if JIT else 4, "generations": 3, "curve_every": 2, "decisions": None}
    config = Config.preset("best", **{**small, "records_per_member": 2, **options})
    return make_acerl(config, instances)


OWN = {"objective": own_goals.shift, "cost": own_goals.late, "cost_limit": 5.0}
OWN |= {"ranking": own_goals.by_return, "sampler": own_goals.Worst}

TRAINERS = {
    **{spread: make_index(spread=spread) for spread in ("full", "diagonal", "one")},
    "few features": make_index(features=["imbalance", "approach"], planned_breakdowns=False),
    "synthetic": make_index(synthetic=0.5, outcome="best", curve_every=1),
    "antithetic": make_index(antithetic=True, noise_decay=0.5, noise_decay_every=1),
    "a record each": make_index(records_per_member=1, ranking="isr", sampler="ais"),
    "own": make_index(**OWN, outcome="best", curve_every=1),
    "vehicles": make_index(make_powered(), commitment="pickup", may_wait=True, tune_charging=True),
    "network": make_network(),
    "network, perturbed": make_network(perturb=20, outcome="average", ranking="penalty"),
    "network, synthetic": make_network(synthetic=0.5, perturb=5, sampler="random"),
    "network, variants": make_network(records_per_member=1, perturb=5, synthetic=0.2, ranking="f"),
    "paper": make_network(
        records_per_member=1, hidden=(17, 4), cost_limit=35.0, population=11 if JIT else 4
    ),
    "linear": make_network(records_per_member=1, hidden=(), sampler="uniform", ranking="cf"),
    "mirrored": make_network(records_per_member=1, antithetic=True, sampler="single", ranking="r"),
    "low rank": make_network(records_per_member=1, noise_rank=2, antithetic=True),
    "network, own": make_network(**OWN, outcome="best", curve_every=1, records_per_member=1),
    **{name: partial(make_rival, name) for name in ALGORITHMS},
}


@pytest.mark.parametrize("name", TRAINERS)
def test_any_trainer_ends_in_the_same_bytes_however_it_is_stopped(name, folder):
    make = TRAINERS[name]
    if name in ALGORITHMS:
        trainer = check_same(make, folder, [])
    else:
        ways = [{"threads": 2}, {"threads": 3, "tile": 4 if JIT else 3}]
        trainer = check_same(make, folder, ways, threads=2)
    assert trainer.curve and len(trainer.history) >= 3
    other = make(seed=2**63 - 1)
    other.run()
    assert not JIT or trainings.find_theta(other) != trainings.find_theta(trainer)


@settings(max_examples=15 if JIT else 2)
@given(
    st.permutations(range(len(INSTANCES))),
    st.sampled_from(["network", "greedy network", "EDD", "MIX", "Random"]),
    st.integers(1, 70 if JIT else 3),  # 64 trials make a tile
    st.integers(0, 2**63 - 1),
    st.integers(1, 3),
)
def test_trials_depend_on_neither_the_order_of_the_instances_nor_threads(
    order, name, trials, seed, n_threads
):
    policy = start(Config(hidden=(5,)), seed).policy if "network" in name else name
    options = {"trials": trials, "seed": seed, "greedy": name == "greedy network"}
    straight = evaluate_policy(policy, INSTANCES, threads=1, **options)
    other = evaluate_policy(policy, [INSTANCES[k] for k in order], threads=n_threads, **options)
    assert other.instances == tuple(straight.instances[k] for k in order)
    assert other.makespan.tobytes() == straight.makespan[order].tobytes()
    assert other.tardiness.tobytes() == straight.tardiness[order].tobytes()
    assert other.decisions == straight.decisions


# Child processes


def test_a_child_process_gives_the_same_bytes(tmp_path):
    """It hashes texts by a salt of its own, too."""
    arrays = start(CHILD_CONFIG, 6).policy.to_arrays()
    trained, trials = run_in_child("spawn", trainings.train_and_evaluate, tmp_path, arrays)
    assert trained == [trainings.train_anew(tmp_path, 1)] * 2
    assert trainings.same_trials(trials, trainings.evaluate_again(arrays))


# Other threads of this process, idle by then, need not trouble a child.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_trainer_in_use_goes_on_in_a_forked_child(n_threads, tmp_path):
    """Its helpers stay behind; the child and the parent both end as a run that never forked."""
    straight = trainings.train_anew(tmp_path, 1)
    trainer = start(CHILD_CONFIG, 6, n_threads)
    trainer.step()
    forked = run_in_child("fork", trainings.train_on, trainer, tmp_path)
    assert forked == straight
    # A second child, and one of the parent after it went on.
    assert run_in_child("fork", trainings.train_on, trainer, tmp_path) == straight
    trainer.step()
    assert run_in_child("fork", trainings.train_on, trainer, tmp_path) == straight
    assert trainings.train_on(trainer, tmp_path) == straight


# Processors


@pytest.mark.long
@needs_jit
def test_no_result_depends_on_the_width_of_vectors(tmp_path):
    """Compiled for the oldest processors of its kind, without any wide vector or fused product."""
    program = (
        "import json, trainings; from acerl_np.kernels.networks.network import act_batch; "
        "d = trainings.describe_run(); "
        "d['code'] = ''.join(act_batch.inspect_asm().values()); print(json.dumps(d))"
    )
    environment = find_environment(ROOT, Path(__file__).parent) | {
        "XDG_CACHE_HOME": str(tmp_path),
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    generic = json.loads(done.stdout)
    code = generic.pop("code")
    assert act_batch.__name__ in code
    assert not any(word in code for word in ("ymm", "zmm", "vfmadd"))
    own = trainings.describe_run()
    assert len(set(own["greedy"])) > 6
    assert generic == own
