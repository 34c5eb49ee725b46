"""`--seeds`: a folder each, a summary, what is kept, processes, and what is refused."""

import csv
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import acerl_np
from acerl_np.commands import train
from acerl_np.commands.main import main
from acerl_np.commands.seeds import read_seeds
from acerl_np.experiments.seeds import SeedTask, train_seeds
from acerl_np.support.errors import InputError, StorageError
from acerl_np.support.team import Team

QUICK = ["--generations", "2", "--population", "8", "--hidden", "4", "--trials", "2"]


def run(capsys, *arguments):
    status = main(list(arguments))
    return status, *capsys.readouterr()


def test_seeds_are_what_single_runs_are(tmp_path, capsys):
    out = tmp_path / "all"
    status, shown, err = run(capsys, "train", "--seeds", "3:5", *QUICK, "--out", str(out))
    assert status == 0 and "2/2 trainings" in err
    for seed in (3, 4):
        own = tmp_path / str(seed)
        assert main(["train", "--seed", str(seed), *QUICK, "--quiet", "--out", str(own)]) == 0
        for name in ("policy.npz", "curves.csv"):
            assert (own / name).read_bytes() == (out / f"seed{seed}" / name).read_bytes()
        resumed = acerl_np.ACERL.resume(out / f"seed{seed}" / "run.npz")
        assert resumed.done and resumed.seed == seed
    rows = list(csv.DictReader((out / "summary.csv").read_text().splitlines()))
    assert [row["seed"] for row in rows] == ["3", "4", "mean", "standard deviation"]
    values = [float(row["makespan"]) for row in rows]
    assert values[2] == pytest.approx(np.mean(values[:2]))
    assert values[3] == pytest.approx(np.std(values[:2], ddof=1))
    assert "standard deviation" in shown


def test_what_is_finished_is_kept_and_what_differs_is_not(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert run(capsys, "train", "--seeds", "0:2", *QUICK, *out)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("policy.npz")}
    status, _, err = run(capsys, "train", "--seeds", "0:3", *QUICK, *out, "--processes", "1")
    assert status == 0 and "3/3 trainings" in err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (tmp_path / "seed2" / "policy.npz").exists()
    other = ["train", "--seeds", "0", *QUICK, "--p-f", "0.2", *out]
    status, _, err = run(capsys, *other)
    assert status == 2 and "config.json exists; expected a new name, or --force" in err
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert run(capsys, *other, "--force")[0] == 0
    assert (tmp_path / "seed0" / "policy.npz").stat().st_mtime_ns != before[
        tmp_path / "seed0" / "policy.npz"
    ]


@pytest.mark.parametrize(
    "command",
    [["train", "DMH-01", *QUICK[:-2]], ["rivals", "ppo", "DMH-01", "--steps", "50"]],
)
def test_more_metrics_of_what_is_kept(command, tmp_path, capsys):
    words = [*command, "--trials", "2", "--seeds", "0:2", "--out", str(tmp_path)]
    assert run(capsys, *words)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("policy.npz")}
    plain = list(csv.reader((tmp_path / "summary.csv").read_text().splitlines()))
    assert plain[0] == ["seed", "makespan", "tardiness", "satisfied"]
    status, shown, _ = run(capsys, *words, "--more")
    assert status == 0 and "waiting: from arrival to pickup" in shown
    assert {path: path.stat().st_mtime_ns for path in before} == before
    rows = list(csv.reader((tmp_path / "summary.csv").read_text().splitlines()))
    assert [row[:4] for row in rows] == plain
    assert rows[0][4:] == ["late", "waiting", "utilisation", "empty"]
    policy = acerl_np.load_policy(tmp_path / "seed1" / "policy.npz")
    trials = acerl_np.evaluate_policy(policy, acerl_np.load_instance("DMH-01"), trials=2, seed=1)
    expected = [getattr(trials, name).mean() for name in rows[0][4:]]
    assert [float(x) for x in rows[2][4:]] == pytest.approx(expected)
    line = next(line for line in shown.splitlines() if line.startswith("1 "))
    assert f"{expected[0]:.0%}" in line and f"{expected[1]:.1f}" in line


def test_records_held_back_judge_every_seed(tmp_path, capsys):
    status, shown, _ = run(
        capsys,
        "train",
        "--suite",
        "dmh-train",
        "--seeds",
        "0:2",
        "--hold-out",
        "0.25",
        *QUICK,
        "--out",
        str(tmp_path),
        "--quiet",
    )
    assert status == 0 and "unseen makespan" in shown
    own = [acerl_np.load_policy(tmp_path / f"seed{k}" / "policy.npz").origin for k in range(2)]
    assert own[0].records == own[1].records and len(own[0].records) == 6


def test_seeds_of_a_compared_learner(tmp_path, capsys):
    quick = ["--steps", "800", "--set", "hidden=4", "--set", "collect=100", "--trials", "1"]
    out = ["--out", str(tmp_path), "--quiet"]
    assert run(capsys, "rivals", "appo", "--seeds", "0:2", *quick, *out)[0] == 0
    thetas = [acerl_np.load_policy(tmp_path / f"seed{k}" / "policy.npz").theta for k in range(2)]
    assert not np.array_equal(*thetas)


def test_one_training_on_processes_has_the_same_bytes(tmp_path, capsys):
    for name, more in (("a", []), ("b", ["--processes", "2"])):
        arguments = ["train", *QUICK, *more, "--quiet", "--out", str(tmp_path / name)]
        assert run(capsys, *arguments)[0] == 0
    policies = [(tmp_path / name / "policy.npz").read_bytes() for name in "ab"]
    assert policies[0] == policies[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--seeds", "x"], "--seeds: read x; expected FIRST:LAST such as 0:5"),
        (["train", "--seeds", "5:5"], "--seeds: read 5:5; expected 1 to 10,000 seeds"),
        (["train", "--seeds=-1:2"], "--seeds: read -1:2"),
        (["train", "--seeds", "0:20000"], "--seeds: read 0:20000"),
        (["train", "--seeds", "0:2", "--seed", "1"], "--seed: given besides --seeds"),
        (["train", "--seeds", "0:2", "--resume", "x.npz"], "--resume: given besides --seeds"),
        (["rivals", "ppo", "--seeds", "0:2", "--seed", "1"], "--seed: given besides --seeds"),
        (["rivals", "ppo", "--processes", "2"], "--processes, --dask: one training runs on one"),
        (["train", "--processes", "0"], "processes: read 0"),
        (
            ["train", "--processes", "1", "--silence", "0"],
            "--silence: read 0.0; expected seconds ab",
        ),
        (
            ["train", "--seeds", "0:2", "--silence", "nan"],
            "--silence: read nan; expected seconds ab",
        ),
    ],
)
def test_bad_arguments_are_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    status, _, err = run(capsys, *arguments)
    assert status == 2
    assert message in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


class Answering(Executor):
    """A worker that changes what it found before it answers, and goes after so many tasks."""

    def __init__(self, change=lambda x: x, last=10**9):
        self.change, self.left = change, last

    def submit(self, function, /, *arguments):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no more workers")
        report = function(*arguments)
        future = Future()
        future.set_result(report._replace(value=self.change(report.value)))
        return future


def test_a_training_whose_workers_are_gone_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    team = Team(Answering(last=5), n_workers=1)  # two ranges a generation
    monkeypatch.setattr(train, "open_team", lambda *options: nullcontext(team))
    options = ["--population", "8", "--hidden", "4", "--generations", "4", "--trials", "0"]
    assert main(["train", *options, "--quiet", "--out", "run"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "the executor takes no tasks: RuntimeError: no more workers" in err
    assert err.endswith("; go on with: acerl-np train --resume run/run.npz\n")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert acerl_np.ACERL.resume("run/run.npz").generation == 2
    assert Path("run/policy.npz").exists()
    assert main(["train", "--resume", "run/run.npz", "--trials", "0", "--quiet"]) == 0
    assert main(["train", *options, "--quiet", "--out", "alone"]) == 0
    assert Path("run/policy.npz").read_bytes() == Path("alone/policy.npz").read_bytes()


SUITE = tuple(acerl_np.load_suite("dmh-train")[:2])
TASK = SeedTask(SUITE, (), acerl_np.Config(generations=1, population=4, hidden=(4,)), 0, 2)


def test_a_folder_that_is_half_written_over_is_not_taken_for_whole(tmp_path, monkeypatch):
    def fail(path, content):
        raise StorageError(f"{path}: no space left on device")

    assert [new for _, _, new in train_seeds([TASK], tmp_path, Team(Answering()))] == [True]
    other = TASK._replace(config=acerl_np.Config(generations=2, population=4, hidden=(4,)))
    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr("acerl_np.experiments.seeds.write_atomically", fail)
        list(train_seeds([other], tmp_path, Team(Answering())))
    assert [new for _, _, new in train_seeds([TASK], tmp_path, Team(Answering()))] == [True]


def test_seeds_are_read():
    assert read_seeds("3:5") == range(3, 5)
    assert read_seeds("7") == range(7, 8)
    with pytest.raises(InputError):
        read_seeds("1:2:3")
