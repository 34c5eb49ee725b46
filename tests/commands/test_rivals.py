"""`acerl-np rivals`: a run, a stop and its continuation, and what is refused."""

import csv
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import acerl_np
from acerl_np.commands.main import main
from acerl_np.rivals import ALGORITHMS

QUICK = ["--steps", "2000", "--trials", "2", "--quiet", "--set", "look_every=1000"]


def run(capsys, *arguments):
    status = main(["rivals", *arguments])
    return status, *capsys.readouterr()


def test_a_run_writes_what_every_command_loads(tmp_path, capsys):
    status, out, err = run(capsys, "arcpom", *QUICK, "--out", str(tmp_path / "run"))
    assert (status, err) == (0, "")
    # The paper's figures are those of this learner.
    assert "1885.8" in out and "arcpom: 2,000 steps" in out
    folder = tmp_path / "run"
    written = "policy.npz run.npz config.json history.csv curves.csv results.csv"
    assert {path.name for path in folder.iterdir()} >= set(written.split())
    facts = json.loads((folder / "config.json").read_text())
    assert facts["algorithm"] == "arcpom" and facts["settings"]["multiplier_rate"] == 1e-4
    [line] = csv.DictReader((folder / "history.csv").read_text().splitlines())
    assert line["steps"] == "2000" and float(line["multiplier"]) > 0.0
    decisions = {
        row["decisions"] for row in csv.DictReader((folder / "curves.csv").read_text().splitlines())
    }
    assert decisions == {"0", "2000"}
    assert (
        main(["evaluate", str(folder / "policy.npz"), "--suite", "dmh-train", "--trials", "1"]) == 0
    )
    assert main(["policy", "show", str(folder / "policy.npz")]) == 0
    assert "219-128-128-12" in capsys.readouterr().out


@pytest.mark.parametrize("name", ALGORITHMS)
def test_settings_are_shown_with_their_sources(name, capsys):
    status, out, _ = run(capsys, name, "--settings", "--set", "hidden=64,32")
    assert status == 0
    rows = {line.split()[0]: line for line in out.splitlines()[2:] if line.strip()}
    if "capacity" in rows:
        assert " 20000 " in rows["capacity"]
    assert "64,32" in rows["hidden"] and "paper" in rows["discount"]
    assert "Tianshou" in rows["batch"] and "searched" in rows["reward_scale"]
    assert ("multiplier" in rows) == ("lsac" in name or "rcpom" in name)


def test_two_agents_are_shown_and_records_left_out(tmp_path, capsys):
    folder = str(tmp_path)
    assert run(capsys, "mappo", *QUICK, "--no-records", "--out", folder)[0] == 0
    assert main(["policy", "show", str(tmp_path / "policy.npz")]) == 0
    out = capsys.readouterr().out
    assert "92,440" in out and "219-128-128-12 each: one chooses the vehicle" in out
    assert "names and hashes alone" in out


def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path):
    command = [sys.executable, "-m", "acerl_np", "rivals", "appo", "--trials", "0", "--seed", "4"]
    more = ["--steps", "400000", "--set", "hidden=16", "--set", "look_every=0"]
    process = subprocess.Popen(
        [*command, *more, "--checkpoint-every", "0", "--out", str(tmp_path / "a")],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    for line in process.stderr:
        if "steps:" in line:
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate()
    assert process.returncode == 130
    assert "go on with: acerl-np rivals appo --resume" in rest
    taken = len((tmp_path / "a" / "history.csv").read_text().splitlines()) - 1
    assert 0 < taken < 40
    steps = str((taken + 3) * 10_000)
    again = [*command[:4], "appo", "--trials", "0", "--quiet", "--steps", steps]
    run_npz = str(tmp_path / "a" / "run.npz")
    subprocess.run([*again, "--resume", run_npz], check=True)
    whole = ["--seed", "4", *more[2:], "--out", str(tmp_path / "b")]
    subprocess.run([*again, *whole], check=True)
    policies = [acerl_np.load_policy(tmp_path / k / "policy.npz") for k in "ab"]
    assert np.array_equal(policies[0].theta, policies[1].theta)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dqn"], "invalid choice: 'dqn'"),
        (["ppo", "--steps", "0"], "--steps: read 0; expected a whole number from 1"),
        (["ppo", "--set", "clip"], "--set: read clip; expected NAME=VALUE"),
        (["ppo", "--set", "clip=x"], "--set clip: read x; expected a number"),
        (["ppo", "--set", "batch=1.5"], "--set batch: read 1.5; expected whole numbers"),
        (["sac", "--set", "clip=0.1"], "clip: no such setting; expected one of hidden"),
        (["ppo", "--set", "clip=nan"], "clip: read nan; expected a number from 0 to 1"),
        (["ppo", "--set", "foo=bar"], "foo: no such setting"),
        (["ppo", "--seed", "-1"], "--seed: read -1"),
        (["ppo", "--suite", "nowhere"], "nowhere"),
        (["ppo", "--resume", "missing.npz"], "missing.npz"),
    ],
)
def test_bad_arguments_are_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        status, _, err = run(capsys, *arguments)
    except SystemExit as stop:
        status, err = stop.code, capsys.readouterr().err
    assert status == 2
    assert message in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_given_beside_a_checkpoint_must_agree(tmp_path, capsys):
    assert run(capsys, "ppo", *QUICK, "--out", str(tmp_path))[0] == 0
    path = str(tmp_path / "run.npz")
    before = (tmp_path / "run.npz").read_bytes()
    for arguments, message in (
        (["sac"], "trained with algorithm ppo; read sac"),
        (["ppo", "--seed", "1"], "trained with seed 0; read 1"),
        (["ppo", "--set", "clip=0.1"], "trained with clip 0.2; read 0.1"),
        (["ppo", "--suite", "dmh-test"], "records given besides a checkpoint"),
        (["ppo", "--steps", "1000"], "has 2000 steps already"),
    ):
        status, _, err = run(capsys, *arguments, "--resume", path)
        assert status == 2 and message in err and err.count("\n") == 1
    assert (tmp_path / "run.npz").read_bytes() == before
    assert run(capsys, "ppo", "--resume", path, "--trials", "0", "--quiet")[0] == 0
