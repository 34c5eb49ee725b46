"""A real Dask cluster: a scheduler and two worker processes that this test starts, and ends by their ids."""

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from machine import find_environment

import acerl_np
from acerl_np.commands.main import main
from acerl_np.commands.shared.teams import connect_dask
from acerl_np.support.errors import ConfigError, WorkerError
from acerl_np.support.team import Team

distributed = pytest.importorskip("distributed")
# Its loops leave sockets to the collector.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

ROOT = Path(acerl_np.__file__).parents[1]
TESTS = Path(__file__).parents[1]


def start(*words, root=ROOT, cwd=None):
    """A module of Python's in a process of its own, with the package below `root`."""
    how = {"env": find_environment(root, TESTS), "cwd": cwd or root, "text": True}
    how |= {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", *words], **how)


def start_scheduler():
    words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    return start("dask", "scheduler", *words)


def stop(process):
    """End a process by its id, and let go of what it said."""
    process.kill()
    process.wait()
    time.sleep(0.1)  # for the thread that reads it
    process.stderr.close()


def read_address(process):
    """The scheduler's address, as it announces it; the rest of what it says is thrown away."""
    for line in process.stderr:
        found = re.search(r"Scheduler at:\s*(tcp://\S+)", line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found.group(1)
    raise AssertionError("no scheduler")


class Cluster:
    def __init__(self, n_workers=2):
        self.scheduler = start_scheduler()
        self.address = read_address(self.scheduler)
        self.workers = [self.add_worker() for _ in range(n_workers)]

    def add_worker(self, root=ROOT):
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
        worker = start("dask", "worker", self.address, *words, root=root)
        threading.Thread(target=worker.stderr.read, daemon=True).start()
        return worker

    def close(self):
        for process in (*self.workers, self.scheduler):
            stop(process)
        gc.collect()  # what Dask's loops leave behind, while its warnings are still these tests' own


@pytest.fixture(scope="module")
def cluster():
    found = Cluster()
    with distributed.Client(found.address, set_as_default=False) as client:
        client.wait_for_workers(len(found.workers), timeout=120)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def collect():
    yield
    gc.collect()


SUITE = acerl_np.load_suite("dmh-train")[:3]
CONFIG = acerl_np.Config(population=24, hidden=(8,), generations=4)


def train(executor=None):
    trainer = acerl_np.ACERL(SUITE, CONFIG, seed=3, executor=executor)
    trainer.run()
    return trainer.policy.theta.tobytes(), [item.return_mean for item in trainer.history]


def test_a_worker_that_is_killed_while_it_works_changes_nothing(cluster):
    """Nor does it matter who is asked: a team, or Dask's executor."""
    alone = train()
    with connect_dask(cluster.address) as team:
        assert isinstance(team, Team) and team.n_workers == 2
        victim, looks = cluster.workers[0], []

        def kill():
            looks.append(victim.poll())
            if len(looks) == 4:
                os.kill(victim.pid, signal.SIGKILL)

        team.watch = kill
        assert train(team) == alone
        assert len(looks) > 4  # and there was work left
        stop(victim)
        cluster.workers[0] = cluster.add_worker()
    with distributed.Client(cluster.address, set_as_default=False) as client:
        assert train(client.get_executor(pure=False, retries=2)) == alone


def test_seeds_of_the_command_on_a_cluster(cluster, tmp_path, capsys):
    options = ["--seeds", "0:3", "--generations", "2", "--set", "population=8", "--set", "hidden=4"]
    options += ["--trials", "2", "--quiet"]
    assert main(["train", *options, "--dask", cluster.address, "--out", str(tmp_path / "a")]) == 0
    assert main(["train", *options, "--out", str(tmp_path / "b")]) == 0
    for seed in range(3):
        parts = [tmp_path / k / f"seed{seed}" / "policy.npz" for k in "ab"]
        assert parts[0].read_bytes() == parts[1].read_bytes()
    out = capsys.readouterr().out
    assert out.count("standard deviation") == 2
    assert main(["train", *options, "--dask", cluster.address, "--out", str(tmp_path / "a")]) == 0


def test_no_scheduler_and_no_worker_are_one_line(tmp_path, capsys):
    started = time.monotonic()
    scheduler = start_scheduler()
    try:
        for address, kind, message in (
            ("tcp://127.0.0.1:9", WorkerError, "no Dask scheduler answers"),
            ("nonsense://x", ConfigError, "--dask: read nonsense://"),
            (read_address(scheduler), WorkerError, "the scheduler has no worker"),
        ):
            with pytest.raises(kind, match=message), connect_dask(address, patience=1.0):
                pass
    finally:
        stop(scheduler)
    assert time.monotonic() - started < 60.0


@pytest.mark.parametrize("fault", ["the scheduler goes", "Ctrl-C"])
def test_a_command_whose_scheduler_goes_ends_in_one_line(fault, tmp_path):
    own = Cluster(1)
    try:
        words = (
            "--generations 1000000 --set population=24 --set hidden=8 --trials 0 --quiet --out run"
        )
        words += f" --set checkpoint_generations=1 --dask {own.address}"
        process = start("acerl_np", "train", *words.split(), cwd=tmp_path)
        saved = set()
        while len(saved) < 3:  # the start, and generations
            assert process.poll() is None, process.stderr.read()
            path = tmp_path / "run" / "run.npz"
            saved.add(path.stat().st_mtime_ns if path.exists() else 0)
            time.sleep(0.01)
        if fault == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        else:
            own.scheduler.kill()
        _, err = process.communicate(timeout=120)
    finally:
        own.close()
    assert err.count("\n") == 1 and "go on with: acerl-np train --resume run/run.npz" in err, err
    assert process.returncode == (130 if fault == "Ctrl-C" else 1)
    assert fault == "Ctrl-C" or re.search("tcp://.*: the scheduler has gone", err)
    stopped = acerl_np.ACERL.resume(tmp_path / "run" / "run.npz")
    config = acerl_np.Config(population=24, hidden=(8,), generations=stopped.generation)
    straight = acerl_np.ACERL(acerl_np.load_suite("dmh-train"), config)
    straight.run()
    assert stopped.generation > 0
    assert stopped.strategy.theta.tobytes() == straight.strategy.theta.tobytes()


@pytest.mark.parametrize("how", ["a newer file", "no such module"])
def test_a_worker_of_another_version_is_told(how, tmp_path):
    shutil.copytree(ROOT / "acerl_np", tmp_path / "acerl_np")
    if how == "a newer file":
        with (tmp_path / "acerl_np" / "train.py").open("a") as file:
            file.write("# newer\n")
    else:
        (tmp_path / "acerl_np" / "support" / "team.py").unlink()
    own = Cluster(0)
    try:
        own.workers.append(own.add_worker(root=tmp_path))
        with connect_dask(own.address, patience=60.0) as team, pytest.raises(WorkerError) as caught:
            train(team)
    finally:
        own.close()
    told = {"a newer file": "has other code of acerl_np", "no such module": "acerl_np.support.team"}
    assert told[how] in str(caught.value) and "\n" not in str(caught.value)
