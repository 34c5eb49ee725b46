"""Evaluations and hindsight on workers: the same figures as on threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import acerl_np
from acerl_np.commands.main import main
from acerl_np.evaluation.hindsight import find_references
from acerl_np.support.processes import ProcessTeam

SUITE = acerl_np.load_suite("dmh-train")[:3]


@pytest.fixture(scope="module")
def processes():
    team = ProcessTeam(2)
    yield team
    team.close()


def make_policies():
    config = acerl_np.Config(generations=1, population=2, hidden=(4,))
    network = acerl_np.ACERL(SUITE, config).policy
    index = acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=-1.0)
    plan = acerl_np.fit_static(SUITE[:1])
    ahead = acerl_np.Lookahead(index, history=SUITE, futures=2)
    return {"network": network, "index": index, "plan": plan, "ahead": ahead, "rule": "EDD"}


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
            for part in ("makespan", "tardiness", "late"):
                np.testing.assert_array_equal(getattr(here, part), getattr(found, part))
            assert here.decisions == found.decisions


def test_hindsight_is_the_same_anywhere(processes):
    seen = []
    alone = find_references(SUITE, effort=0.002)
    how = {"effort": 0.002, "executor": processes}
    found = find_references(SUITE, **how, callback=lambda *both: seen.append(both))
    assert found == alone
    assert {item.name: one for item, one in seen} == dict(
        zip((item.name for item in SUITE), found, strict=True)
    )


@pytest.mark.slow
def test_commands_take_processes(tmp_path, capsys):
    path = tmp_path / "policy.npz"
    POLICIES["index"].save(path)
    common = ["evaluate", str(path), "EDD", "--suite", "dmh-train", "--trials", "2"]
    tables = []
    for more in ([], ["--processes", "2"]):
        assert main([*common, *more]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert main(["hindsight", "DMH-01", "--effort", "0.002", "--processes", "1"]) == 0
    assert main([*common, "--processes", "0"]) == 2
    assert "processes: read 0; expected a whole number from 1" in capsys.readouterr().err
    assert main([*common, "--processes", "1", "--dask", "tcp://x:1"]) == 2
    assert "--processes: given besides --dask" in capsys.readouterr().err
