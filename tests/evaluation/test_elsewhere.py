"""Evaluations and hindsight on workers: the same figures as on threads."""

from concurrent.futures import ThreadPoolExecutor

import own_rules
import pytest
from trainings import list_differences

import acerl_np
from acerl_np.evaluation.hindsight import find_references

SUITE = acerl_np.load_suite("dmh-train")[:3]


def make_policies():
    config = acerl_np.Config(generations=1, population=2, hidden=(4,))
    network = acerl_np.ACERL(SUITE, config).policy
    index = acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=-1.0)
    ahead = acerl_np.Lookahead(index, history=SUITE, futures=2)
    own = {"network": network, "index": index, "ahead": ahead}
    return {**own, "rule": "EDD", "drawn": own_rules.drawn}


POLICIES = make_policies()


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("trials", [1, 5])
def test_trials_are_the_same_anywhere(name, trials, processes):
    """Also those that do not end."""
    horizon = 700.0 if (name, trials) == ("rule", 5) else None
    options = {"trials": trials, "seed": 3, "horizon": horizon}
    here = acerl_np.evaluate_policy(POLICIES[name], SUITE, **options)
    assert bool(here.unfinished) == (horizon is not None)
    with ThreadPoolExecutor(2) as threads:
        for executor in (processes, threads):
            found = acerl_np.evaluate_policy(POLICIES[name], SUITE, **options, executor=executor)
            assert list_differences(found, here) == []


def test_hindsight_is_the_same_anywhere(processes):
    seen = []
    alone = find_references(SUITE, effort=0.002)
    how = {"effort": 0.002, "executor": processes}
    found = find_references(SUITE, **how, callback=lambda *both: seen.append(both))
    assert found == alone
    names = [item.name for item in SUITE]
    assert {item.name: one for item, one in seen} == dict(zip(names, found, strict=True))


@pytest.mark.slow
def test_commands_take_processes(empty, run):
    POLICIES["index"].save("policy.npz")
    common = "evaluate policy.npz EDD --on dmh-train --trials 2"
    assert run(common).out == run(f"{common} --processes 2").out
    run("policy bound DMH-01 --effort 0.002 --processes 1")
    line = "processes: read 0; expected a whole number from 1"
    assert line in run(f"{common} --processes 0", 2).err
    line = "--processes: given besides --dask"
    assert line in run(f"{common} --processes 1 --dask tcp://x:1", 2).err
