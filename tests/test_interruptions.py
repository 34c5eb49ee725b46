"""Runs that are killed, stopped, or find no room to write: nothing good is lost, nothing half-written stays.

Real signals, real limits, and real processes where they are killed, stopped or several.
"""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from machine import find_environment, is_alive, limit_files, needs_jit
from trainings import read_state

import acerl_np
from acerl_np.commands.main import main

WINDOWS = sys.platform == "win32"
pytestmark = [needs_jit, pytest.mark.skipif(WINDOWS, reason="POSIX signals and limits")]

SMALL = ["--set", "population=6", "--set", "hidden=5", "--trials", "0", "--threads", "1", "--quiet"]
SETTINGS = {"population": 6, "hidden": (5,)}
ENDLESS = ["--generations", "1000000", "--set", "checkpoint_generations=1"]


@pytest.fixture(autouse=True, scope="module")
def compiled():
    acerl_np.warm_up()


def start(*words, cwd, **options):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "studies" if words[0] == "ablation" else "acerl_np",
            *map(str, words),
        ],
        **{"cwd": cwd, "env": find_environment(), "text": True},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
        # A shell lets what it runs in the background ignore Ctrl-C, and that is handed down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def straight(generations):
    """A run that nothing interrupts."""
    config = acerl_np.Config(generations=generations, **SETTINGS)
    trainer = acerl_np.ACERL(acerl_np.load_suite("dmh-train"), config, threads=1)
    trainer.run()
    return trainer


def comparable(trainer, path):
    """A checkpoint's arrays but for the seconds and the number of generations asked for."""
    return {k: v for k, v in read_state(trainer, path).items() if k != "settings"}


def wait_for_generations(checkpoint, n):
    """Wait until a checkpoint is written so many times."""
    for _ in range(n):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        wait_for(
            lambda before=before: checkpoint.exists() and checkpoint.stat().st_mtime_ns != before
        )


def kill_again_and_again(folder, kills, seed):
    """Kill a run at random moments, each time going on from what it left; return its generations.

    Half of the moments are within the start of the process, half while it trains and saves.
    """
    draw, reached = random.Random(seed), 0
    checkpoint = folder / "run" / "run.npz"
    for kill in range(kills):
        words = ["--out", "run", "--force", *SMALL]
        if checkpoint.exists():
            words = ["--resume", checkpoint, "--trials", "0", "--threads", "1", "--quiet"]
        process = start("train", *words, *ENDLESS, cwd=folder)
        if draw.random() < 0.5 and kill < kills - 1:
            time.sleep(draw.uniform(0.0, 1.5))
        else:
            # The first checkpoint is that of the start, the next that of a generation.
            wait_for_generations(checkpoint, 2)
            time.sleep(draw.uniform(0.0, 0.1))
        process.kill()
        process.communicate()
        if checkpoint.exists():
            generation = acerl_np.ACERL.resume(checkpoint, threads=1).generation
            assert generation >= reached
            reached = generation
    assert reached > 0
    return reached


@pytest.mark.parametrize(
    ("kills", "seed"), [(3, 0), pytest.param(50, 1, marks=pytest.mark.long, id="50")]
)
@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_bytes(tmp_path, kills, seed):
    reached = kill_again_and_again(tmp_path, kills, seed)
    run = tmp_path / "run"
    goal = str(reached + 3)
    assert main(["train", "--resume", str(run / "run.npz"), "--generations", goal, "--quiet"]) == 0
    expected, found = straight(reached + 3), acerl_np.ACERL.resume(run / "run.npz", threads=1)
    assert comparable(found, tmp_path / "a.npz") == comparable(expected, tmp_path / "b.npz")
    theta = acerl_np.Policy.load(run / "policy.npz").theta.tobytes()
    assert theta == expected.strategy.theta.tobytes()
    # What a killed process had begun to write is gone, too.
    names = {path.name for path in run.iterdir()} - {"curves.png"}
    tables = {f"{name}.csv" for name in ("curves", "history", "results")}
    assert names == {"run.npz", "policy.npz", "config.json", *tables}
    assert len((run / "history.csv").read_text().splitlines()) == reached + 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(tmp_path, number):
    process = start("train", "--out", "run", *SMALL, *ENDLESS, cwd=tmp_path)
    checkpoint = tmp_path / "run" / "run.npz"
    wait_for_generations(checkpoint, 2)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err.count("\n") == 1
    assert err.endswith("go on with: acerl-np train --resume run/run.npz\n")
    stopped = acerl_np.ACERL.resume(checkpoint, threads=1)
    assert stopped.generation >= 1
    expected = straight(stopped.generation).strategy.theta.tobytes()
    assert stopped.strategy.theta.tobytes() == expected
    assert acerl_np.Policy.load(checkpoint.parent / "policy.npz").theta.tobytes() == expected


def find_children(pid):
    """Ids of the living processes that a process has started, by what Linux says."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.add(int(path.parent.name))
    return set(filter(is_alive, found))


LONG = ["--generations", "1000000", "--trials", "0", "--quiet"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("words", "early", "number"),
    [
        (["train", "--seeds", "0:3", *LONG, "--out", "all"], False, signal.SIGINT),
        (["train", "--processes", "2", *LONG, "--out", "run"], False, signal.SIGINT),
        (["ablation", "--trainings", "1", "--out", "study"], True, signal.SIGTERM),
        (["policy", "bound", "DMH-01", "DMH-02", "--effort", "10"], True, signal.SIGINT),
    ],
)
def test_workers_end_with_a_command_that_is_stopped(tmp_path, words, early, number):
    """While they start or while they work, by a terminal's Ctrl-C, which all of them get, or by SIGTERM."""
    process = start(*words, cwd=tmp_path, start_new_session=True)
    # One of them is the tracker of multiprocessing.
    wait_for(lambda: len(find_children(process.pid)) >= 2)
    if not early:
        time.sleep(3.0)
    children = find_children(process.pid)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    # A split of so small a generation may have warned before.
    program = "python -m studies" if words[0] == "ablation" else "acerl-np"
    told = f"\n{err}".replace("\nacerl_np:", "\nacerl-np:").count(f"\n{program}")
    assert "Traceback" not in err and told == 1, err
    wait_for(lambda: not any(map(is_alive, children)))
    if words[-1] == "run":
        assert "go on with: acerl-np train --resume run/run.npz" in err
        assert (tmp_path / "run" / "run.npz").exists()


def test_two_runs_do_not_write_to_one_folder(tmp_path, capsys):
    first = start("train", "--out", "run", *SMALL, *ENDLESS, cwd=tmp_path)
    run = tmp_path / "run"
    wait_for((run / "run.npz").exists)
    config, resume = (run / "config.json").read_bytes(), ["--resume", str(run / "run.npz")]
    for words in (["--out", str(run), "--force", *SMALL, "--seed", "7"], resume):
        assert main(["train", *words]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert "another run is writing there; expected a folder of this run's own" in err
    assert (run / "config.json").read_bytes() == config
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    assert first.returncode == 143
    # The folder is free again.
    reached = str(acerl_np.ACERL.resume(run / "run.npz", threads=1).generation)
    assert main(["train", *resume, "--generations", reached, "--quiet"]) == 0


@pytest.mark.slow
def test_default_folders_of_runs_that_start_together_differ(tmp_path):
    runs = [start("train", *SMALL, "--generations", "2", cwd=tmp_path) for _ in range(2)]
    for run in runs:
        _, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert folders == ["dmh-train-seed0", "dmh-train-seed0-2"]
    assert (tmp_path / "runs" / "dmh-train-seed0" / "run.npz").exists()


def test_a_limit_on_the_size_of_files_is_one_line(tmp_path, capsys):
    """Config.json fits into the larger limits, the checkpoint into none."""
    folder = tmp_path / "run"
    train = ["train", "--out", str(folder), *SMALL]
    assert main([*train, "--generations", "2"]) == 0
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    for size in (0, 500, 3000):
        with limit_files(size):
            assert main([*train, "--force", "--generations", "5"]) == 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and "cannot write: file too large" in err
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert {**found, "config.json": b""} == {**kept, "config.json": b""}
    # The history grows until there is no room: the checkpoint before that stays and can be resumed.
    with limit_files((folder / "run.npz").stat().st_size + 2000):
        assert main([*train, "--force", *ENDLESS]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "cannot write: file too large" in err
    resumed = acerl_np.ACERL.resume(folder / "run.npz", threads=1)
    assert resumed.generation > 2
    assert resumed.strategy.theta.tobytes() == straight(resumed.generation).strategy.theta.tobytes()


GENERATION = "train --set population=65536 --trials 0 --quiet --out run"
EPISODES = "evaluate EDD --on dmh-test --lookahead 20000 --futures dmh-train"


@pytest.mark.slow
@pytest.mark.parametrize(("words", "seconds"), [(GENERATION, 3.0), (EPISODES, 8.0)])
def test_what_takes_minutes_is_given_up(tmp_path, words, seconds):
    """A generation, of which what is kept is whole, given up or just done, and episodes."""
    process, checkpoint = start(*words.split(), cwd=tmp_path), tmp_path / "run" / "run.npz"
    if words == GENERATION:
        wait_for(checkpoint.exists)
    time.sleep(seconds)
    assert process.poll() is None
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.count("\n") == 1, err
    assert time.monotonic() - started < 30.0
    if words == GENERATION:
        trainer = acerl_np.ACERL.resume(checkpoint, threads=1)
        assert trainer.generation == len(trainer.history) < 20
