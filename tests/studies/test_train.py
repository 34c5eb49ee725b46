"""`python -m studies train`: a run, a stop and its continuation, and what is refused."""

import json
import signal
import tomllib
from pathlib import Path

import pytest
from tables_and_refusals import read_rows

from studies.__main__ import main
from studies.rivals import ALGORITHMS, RivalTrainer

QUICK = "--steps 2000 --trials 2 --quiet --set look_every=1000"


def test_a_run_writes_what_every_command_loads(empty, study, run):
    found = study(f"train arcpom {QUICK} --out run")
    # The paper's figures are those of this learner.
    assert found.err == "" and "1885.8" in found.out and "arcpom: 2,000 steps" in found.out
    written = "policy.npz run.npz config.json history.csv curves.csv results.csv"
    assert {path.name for path in Path("run").iterdir()} >= set(written.split())
    facts = json.loads(Path("run/config.json").read_text())
    assert facts["algorithm"] == "arcpom" and facts["settings"]["multiplier_rate"] == 1e-4
    [line] = read_rows("run/history.csv")
    assert line["steps"] == "2000" and float(line["multiplier"]) > 0.0
    assert {row["decisions"] for row in read_rows("run/curves.csv")} == {"0", "2000"}
    run("evaluate run/policy.npz --on dmh-train --trials 1")
    assert "219-128-128-12" in run("policy show run/policy.npz").out


@pytest.mark.parametrize("name", ALGORITHMS)
def test_settings_are_shown_with_their_sources(name, study):
    out = study(f"train {name} --settings --set hidden=64,32").out
    shown = tomllib.loads(out)
    about = {part.split("\n")[-1].split()[0]: part for part in out.strip().split("\n\n")}
    assert shown["hidden"] == [64, 32] and "(paper): a number" in about["discount"]
    assert "(Tianshou 0.4.6): a whole" in about["batch"] and "searched" in about["reward_scale"]
    assert shown.get("capacity", 20_000) == 20_000
    assert ("multiplier" in shown) == ("lsac" in name or "rcpom" in name)


def test_two_agents_are_shown_and_records_left_out(empty, study, run):
    study(f"train mappo {QUICK} --set no_records=true --out run")
    out = run("policy show run/policy.npz").out
    assert "92,440" in out and "219-128-128-12 each: one chooses the vehicle" in out
    assert "names and hashes alone" in out


def test_a_stopped_run_goes_on_to_the_same_bytes(empty, capsys, monkeypatch):
    words = "train appo --trials 0 --quiet --steps"
    begin = f"{words} 20000 --seed 4 --set hidden=16 --set look_every=0 --out"
    assert main(f"{begin} whole".split()) == 0
    step = RivalTrainer.step

    def stop(trainer):
        if trainer.steps > 4:  # else it is compiled ahead
            signal.raise_signal(signal.SIGINT)
        return step(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(RivalTrainer, "step", stop)
        assert main(f"{begin} stopped".split()) == 130
    end = "go on with: python -m studies train appo --resume stopped/run.npz\n"
    assert capsys.readouterr().err.endswith(end)
    assert len(read_rows("stopped/history.csv")) == 1
    assert main(f"{words} 20000 --resume stopped/run.npz".split()) == 0
    found, expected = (Path(name, "policy.npz").read_bytes() for name in ("stopped", "whole"))
    assert found == expected


def test_what_is_given_beside_a_checkpoint_must_agree(empty, study, run):
    study(f"train ppo {QUICK} --out .")
    for words, message in {
        "sac": "trained with algorithm ppo; read sac",
        "ppo --seed 1": "trained with seed 0; read 1",
        "ppo --set clip=0.1": "trained with clip 0.2; read 0.1",
        "ppo dmh-test": "read DMH-09, DMH-10, DMH-11, DMH-12, DMH-13",
        "ppo --steps 1000": "has 2000 steps already",
    }.items():
        assert message in study(f"train {words} --resume run.npz", 2).err
    study("train ppo --resume run.npz --trials 0 --quiet")


def test_seeds_that_are_finished_are_kept(empty, study):
    words = "train appo DMH-01 --steps 50 --trials 2 --set look_every=1000 --set hidden=4 --out all --seeds"
    study(f"{words} 0:2")
    before = {path: path.stat().st_mtime_ns for path in Path("all").glob("seed*/*")}
    assert len(before) == 10
    err = study(f"{words} 0:2").err
    assert "2/2 trainings" in err
    err = study(f"{words} 0 --set clip=0.1", 2).err
    assert "config.json exists; expected a new name, or --force" in err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    facts = json.loads(Path("all/config.json").read_text())
    assert (facts["algorithm"], facts["steps"], facts["seeds"]) == ("appo", 50, [0, 1])


def test_a_run_is_repeated_by_its_config_json(empty, study):
    """And by what --settings prints."""
    words = "train appo DMH-01 --steps 60 --set hidden=4 --set rules=LWT,EDD --set look_every=50 --quiet"
    study(f"{words} --trials 0 --out one")
    again = "train appo --config one/config.json --trials 0 --quiet"
    study(f"{again} --out two")
    Path("all.toml").write_text(study(f"{again} --settings").out)
    study("train appo --config all.toml --out three")
    for other in ("two", "three"):
        assert Path(other, "policy.npz").read_bytes() == Path("one/policy.npz").read_bytes()
