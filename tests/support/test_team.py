"""Workers behind executors: results as they finish, workers that die, hang, or have another version."""

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from multiprocessing import get_context

import pytest
import team_tasks
from machine import find_environment, is_alive
from tables_and_refusals import list_unrefused

import acerl_np
from acerl_np import ConfigError, InputError, StorageError
from acerl_np.support.errors import WorkerError
from acerl_np.support.processes import TRIES, ProcessTeam
from acerl_np.support.team import PENDING, Team, find_team, find_versions, work


def refuse(team, function, arguments, message, kind=WorkerError):
    """A run ends with one line."""
    with pytest.raises(kind, match=message) as caught:
        dict(team.run(function, arguments))
    assert "\n" not in str(caught.value)


def test_results_of_processes_and_threads(processes):
    expected = {k: k * k for k in range(9)}
    assert dict(processes.run(team_tasks.square, range(9))) == expected
    with ThreadPoolExecutor(3) as threads:
        team = Team(threads)
        assert team.n_workers == 3
        assert dict(team.run(team_tasks.square, range(9))) == expected
        assert dict(team.run(team_tasks.square, [])) == {}
        many = range(3 * PENDING)
        assert dict(team.run(team_tasks.square, many)) == {k: k * k for k in many}
    pids = set(dict(processes.run(team_tasks.who, range(8))).values())
    assert os.getpid() not in pids and 1 <= len(pids) <= 2
    assert pids <= processes.pids
    for pid in processes.pids:  # between two runs
        os.kill(pid, signal.SIGKILL)
    assert dict(processes.run(team_tasks.square, [3])) == {0: 9}
    assert processes.pids and not pids & processes.pids


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_worker_that_dies_or_hangs_is_replaced(tmp_path):
    with closing(ProcessTeam(1, time_limit=6.0)) as team:
        for name in ("die_once", "die_within_answer_once", "hang_once"):
            task = getattr(team_tasks, name)
            assert dict(team.run(task, [str(tmp_path / name)])) == {0: name}


def test_what_a_task_raises_is_one_line(processes):
    for function, message, kind in (
        (team_tasks.refuse, "^x: read 5; expected another", InputError),
        (team_tasks.fill_disk, "no space left on device", StorageError),
        (team_tasks.stumble, "a task has failed: ZeroDivisionError: 5", WorkerError),
        (lambda x: x, "the executor takes no tasks: ", WorkerError),
    ):
        refuse(processes, function, [5], message, kind)


def test_other_versions_are_one_line():
    with closing(ProcessTeam(1)) as team:
        others = {"numba": "0.1", "python": "2.7"}
        assert dict(team.run(team_tasks.pretend, [others])) == {0: "done"}
        refuse(team, team_tasks.square, [1], "a worker on .* has python: read 2.7; expected ")
    with pytest.raises(WorkerError, match=r"has numba: read .*; expected newer"):
        work(b"no pickle that this version knows", {**find_versions(), "numba": "newer"})


def answer(content, error=None):
    future = Future()
    future.set_exception(error) if error else future.set_result(content)
    return future


class Dying(Executor):
    """One that dies with one task, while others have a result already, or always."""

    def __init__(self, first=0, times=1):
        self.given, self.first, self.times = 0, first, times

    def submit(self, load, call):
        self.given += 1
        dies = self.first < self.given <= self.first + self.times
        return answer(None, BrokenProcessPool("died")) if dies else answer(load(call))


def test_results_that_have_come_are_kept_when_another_worker_dies(monkeypatch):
    dying, team = Dying(), ProcessTeam(2)
    monkeypatch.setattr(team, "_find_executor", lambda: dying)
    assert dict(team.run(team_tasks.square, range(4))) == {k: k * k for k in range(4)}
    assert dying.given == 5
    # A pool of the caller's is not mended, but what it has given is taken.
    found = {}
    with pytest.raises(WorkerError, match="the executor has lost its workers"):
        found.update(Team(Dying()).run(team_tasks.square, range(8)))
    taken = iter(Team(Dying()).run(team_tasks.square, range(8)))
    assert sorted(next(taken)[0] for _ in range(7)) == list(range(1, 8))


def test_losses_count_only_while_nothing_finishes(monkeypatch):
    team, executors = ProcessTeam(1), [Dying(times=TRIES - 1), Dying(times=TRIES)]
    monkeypatch.setattr(team, "_find_executor", lambda: executors[0])
    assert dict(team.run(team_tasks.square, [2])) == {0: 4}
    del executors[0]
    refuse(team, team_tasks.square, [2], "has lost its workers")


def test_the_hash_of_an_instance_is_computed_where_it_arrives():
    instance = acerl_np.load_instance("DMH-01")
    before = instance.content_hash
    arrived = pickle.loads(pickle.dumps(instance))
    object.__setattr__(arrived, "arrival", arrived.arrival + 1.0)
    assert arrived.content_hash != before


def test_pools_of_the_callers_are_not_mended():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        refuse(Team(pool), team_tasks.die, [0], "the executor has lost its workers: BrokenProcessP")
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    refuse(Team(threads), team_tasks.square, [0], "the executor takes no tasks: RuntimeError")


class Scheduled(Executor):
    """Dask's executor as a team knows it; its workers and its scheduler come and go."""

    def __init__(self):
        self._client, self.status, self.cancelled = self, "running", []

    def nthreads(self):
        return {"a": 1, "b": 2}

    def submit(self, load, call):
        future = Future()
        future.cancel = lambda: self.cancelled.append(future)
        return future


def test_an_executor_of_which_nothing_is_heard_is_given_up():
    team = Team(Scheduled(), time_limit=0.3)
    assert team.n_workers == find_team(team).n_workers == 3
    refuse(team, team_tasks.square, [1, 2, 3], r"no task has finished for 0.3 s")
    assert len(team._executor.cancelled) == 3
    executor = Scheduled()
    team = Team(executor)
    team.watch = lambda: setattr(executor, "status", "closed")
    refuse(team, team_tasks.square, [1], "Dask: the scheduler has gone")
    assert not executor.cancelled  # would fail in the client


LARGE = """
import time
from acerl_np.support.processes import ProcessTeam

def stop():
    time.sleep(0.3)  # its pipe is full by now
    raise KeyboardInterrupt

if __name__ == "__main__":
    team = ProcessTeam(1)
    team.watch = stop  # called while the first worker starts
    try:
        next(team.run(len, [bytes(3_000_000)] * 3))
    except KeyboardInterrupt:
        print("stopped")
"""
LASTING = """
import sys, time
from acerl_np.support.processes import ProcessTeam

if __name__ == "__main__":
    team = ProcessTeam(2)
    team.watch = lambda: print(*sorted(team.pids), flush=True)
    list(team.run(time.sleep, [600.0, 600.0]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_large_task_that_no_worker_has_read_keeps_nobody_and_workers_end_with_parents(tmp_path):
    path, how = tmp_path / "script.py", {"env": find_environment(), "stdout": subprocess.PIPE}
    path.write_text(LARGE)
    done = subprocess.run([sys.executable, path], timeout=60, check=True, **how)
    assert done.stdout == b"stopped\n"
    path.write_text(LASTING)
    parent = subprocess.Popen([sys.executable, path], text=True, **how)
    pids = []
    while not pids:
        pids = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 60.0
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "workers are left behind"
        time.sleep(0.05)


def test_numbers_of_processes_are_checked():
    cases = [(number, "processes: read") for number in (0, -1, 1.5, True, 2000, "two")]
    assert list_unrefused(ProcessTeam, cases, ConfigError) == []
