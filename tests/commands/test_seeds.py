"""`--seeds`: a folder each, a summary, what is kept, processes, and what is refused."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tables_and_refusals import read_rows
from team_tasks import Here

import acerl_np
from acerl_np.commands.main import main
from acerl_np.commands.shared import training
from acerl_np.commands.shared.several import read_seeds
from acerl_np.evaluation.seeds import SeedTask, train_seeds
from acerl_np.support.errors import StorageError
from acerl_np.support.team import Team

TINY = "week.csv --generations 1 --set population=2 --set hidden=2"


def find_times():
    return {path: path.stat().st_mtime_ns for path in Path("all").rglob("policy.npz")}


def test_seeds_are_what_single_runs_are(folder, run, processes):
    """Also one that is trained on several processes."""
    assert (read_seeds("3:5"), read_seeds("7")) == (range(3, 5), range(7, 8))
    shown, err = run(f"train {TINY} --trials 2 --seeds 3:5 --out all")
    assert "2/2 trainings" in err and "standard deviation" in shown
    for seed, more in ((3, ""), (4, "--processes 2")):
        run(f"train {TINY} --trials 0 --seed {seed} --quiet {more} --out {seed}")
        for name in ("policy.npz", "curves.csv"):
            assert Path(f"{seed}", name).read_bytes() == Path(f"all/seed{seed}", name).read_bytes()
        resumed = acerl_np.ACERL.resume(f"all/seed{seed}/run.npz")
        assert resumed.done and resumed.seed == seed
    rows = read_rows("all/summary.csv")
    assert [row["seed"] for row in rows] == ["3", "4", "mean", "standard deviation"]
    first, second, mean, deviation = (float(row["makespan"]) for row in rows)
    assert mean == pytest.approx(np.mean([first, second]))
    assert deviation == pytest.approx(np.std([first, second], ddof=1))


def test_what_is_finished_is_kept_and_what_differs_is_not(folder, run):
    words, other = f"train {TINY} --trials 2 --processes 1 --out all --seeds", "--set p_f=0.2"
    run(f"{words} 0:2")
    before, plain = find_times(), read_rows("all/summary.csv")
    assert list(plain[0]) == ["seed", "makespan", "tardiness", "satisfied"]
    shown, err = run(f"{words} 0:2 --details")
    assert "2/2 trainings" in err and "waiting: from arrival to pickup" in shown
    rows = read_rows("all/summary.csv")
    assert [{name: row[name] for name in plain[0]} for row in rows] == plain
    policy = acerl_np.load_policy("all/seed1/policy.npz")
    trials = acerl_np.evaluate_policy(policy, acerl_np.load_instance("week.csv"), trials=2, seed=1)
    for name in ("late", "waiting", "utilisation", "empty"):
        assert float(rows[1][name]) == pytest.approx(getattr(trials, name).mean())
    err = run(f"{words} 0 {other}", 2).err
    assert "config.json exists; expected a new name, or --force" in err
    assert find_times() == before
    run(f"{words} 0 {other} --force")
    changed = {path.parent.name for path, when in find_times().items() if when != before[path]}
    assert changed == {"seed0"}
    thetas = [acerl_np.load_policy(f"all/seed{k}/policy.npz").theta for k in range(2)]
    assert not np.array_equal(*thetas)


def test_records_held_back_judge_every_seed(folder, run):
    words = f"train next.csv {TINY} --trials 1 --seeds 0:2 --hold-out 0.5 --out all --quiet"
    assert "unseen makespan" in run(words).out
    own = [acerl_np.load_policy(f"all/seed{k}/policy.npz").origin for k in range(2)]
    assert own[0].records == own[1].records and len(own[0].records) == 1


def test_a_training_whose_workers_are_gone_says_how_to_go_on(empty, run, monkeypatch, capsys):
    words = "train --set population=8 --set hidden=4 --generations 4 --trials 0 --quiet --out"
    team = Team(Here(last=5))  # two ranges a generation
    with monkeypatch.context() as patch:
        patch.setattr(training, "open_team", lambda options: nullcontext(team))
        assert main(f"{words} run --processes 2".split()) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "the executor takes no tasks: RuntimeError: no more workers" in err
    assert err.endswith("; go on with: acerl-np train --resume run/run.npz\n")
    assert acerl_np.ACERL.resume("run/run.npz").generation == 2
    assert Path("run/policy.npz").exists()
    run("train --resume run/run.npz --trials 0 --quiet")
    run(f"{words} alone")
    assert Path("run/policy.npz").read_bytes() == Path("alone/policy.npz").read_bytes()


SUITE = tuple(acerl_np.load_suite("dmh-train")[:2])
TASK = SeedTask(SUITE, (), acerl_np.Config(generations=1, population=4, hidden=(4,)), 0, 2)


def test_a_folder_that_is_half_written_over_is_not_taken_for_whole(tmp_path, monkeypatch):
    def fail(path, content):
        raise StorageError(f"{path}: no space left on device")

    assert [new for _, _, new in train_seeds([TASK], tmp_path, Team(Here()))] == [True]
    other = replace(TASK, config=acerl_np.Config(generations=2, population=4, hidden=(4,)))
    with monkeypatch.context() as patch, pytest.raises(StorageError):
        patch.setattr("acerl_np.evaluation.seeds.write_atomically", fail)
        list(train_seeds([other], tmp_path, Team(Here())))
    assert [new for _, _, new in train_seeds([TASK], tmp_path, Team(Here()))] == [True]
