"""Workers behind executors: results as they finish, workers that die, hang, or compute something else."""

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import pytest
import team_tasks

import acerl_np
from acerl_np import ConfigError, InputError
from acerl_np.support import machine_code
from acerl_np.support.errors import WorkerError
from acerl_np.support.fingerprint import own_fingerprint
from acerl_np.support.processes import ProcessTeam
from acerl_np.support.team import TRIES, Ledger, Team, count_workers, find_team, run_test, work


@pytest.fixture(scope="module")
def processes():
    team = ProcessTeam(2)
    yield team
    team.close()


def test_results_of_processes_and_threads(processes):
    expected = {k: k * k for k in range(9)}
    assert dict(processes.run(team_tasks.square, range(9))) == expected
    with ThreadPoolExecutor(3) as threads:
        team = Team(threads)
        assert team.n_workers == 3
        assert dict(team.run(team_tasks.square, range(9))) == expected
        assert dict(team.run(team_tasks.square, [])) == {}
    pids = set(dict(processes.run(team_tasks.who, range(8))).values())
    assert os.getpid() not in pids and 1 <= len(pids) <= 2
    assert pids <= processes.pids


def test_a_task_whose_worker_dies_is_done_again(processes, tmp_path):
    marks = [tmp_path / f"mark-{k}" for k in range(3)]
    found = dict(processes.run(team_tasks.die_once, [str(mark) for mark in marks]))
    assert found == {k: mark.name for k, mark in enumerate(marks)}


def test_workers_that_are_killed_from_outside_lose_nothing(processes):
    found, before = {}, set()
    for k, pid in processes.run(team_tasks.who, range(12)):
        found[k] = pid
        if len(found) == 2:
            before = processes.pids
            for pid in before:  # so that none can do the rest
                os.kill(pid, signal.SIGKILL)
    assert sorted(found) == list(range(12))
    assert before and not before & processes.pids


def test_a_worker_that_hangs_is_replaced(tmp_path):
    team = ProcessTeam(1, time_limit=3.0)
    try:
        assert dict(team.run(team_tasks.hang_once, [str(tmp_path / "mark")])) == {0: "mark"}
    finally:
        team.close()


def test_the_clock_of_a_task_begins_when_it_does():
    ledger, futures = Ledger(3), [Future() for _ in range(3)]
    ledger.running = {future: k for k, future in enumerate(futures)}
    ledger.note_begun(1)
    assert list(ledger.since) == futures[:1]
    ledger.since[futures[0]] -= 100.0
    assert ledger.find_late(50.0) == futures[:1] and ledger.find_late(None) == []
    futures[0].set_result(None)
    ledger.note_begun(1)
    assert list(ledger.since) == futures[:2] and ledger.find_late(50.0) == []


def test_a_task_that_always_kills_its_worker_is_given_up(processes):
    with pytest.raises(
        WorkerError, match="task 1 of 1 was lost 4 times, the last time: a worker p"
    ):
        dict(processes.run(team_tasks.die, [0]))
    assert dict(processes.run(team_tasks.square, [3])) == {0: 9}


def test_errors_of_ours_come_through_at_once(processes):
    with pytest.raises(InputError, match="x: read 5; expected another"):
        dict(processes.run(team_tasks.refuse, [5]))


def test_a_full_disk_of_a_worker_is_left_to_another(processes, tmp_path):
    assert dict(processes.run(team_tasks.fill_disk, [str(tmp_path / "mark")])) == {0: "mark"}


def test_other_errors_are_tried_again_and_given_up_with_their_reason(processes):
    message = "task 1 of 1 was lost 4 times, the last time: ZeroDivisionError: 5"
    with pytest.raises(WorkerError, match=message):
        dict(processes.run(team_tasks.stumble, [5]))


def read_call(call):
    """Return function, argument and test of a call, without making it."""
    with mock.patch("acerl_np.support.team.work", lambda task, expected: pickle.loads(task)):
        return pickle.loads(call)


class Flaky(Executor):
    """One in which the first task is lost over and over, while others finish."""

    def __init__(self):
        self.lost = 0

    def submit(self, load, call):
        future = Future()
        if read_call(call)[1] == 0 and self.lost < TRIES:
            self.lost += 1
            future.set_exception(OSError("gone"))
        else:
            future.set_result(load(call))
        return future


def test_losses_count_only_while_nothing_finishes():
    flaky = Flaky()
    assert dict(Team(flaky, n_workers=1).run(team_tasks.square, range(12)))[0] == 0
    assert flaky.lost == TRIES


class Dying(Executor):
    """A pool of ours that dies with one task, while others have a result already."""

    def __init__(self):
        self.given = []

    def submit(self, load, call):
        future, x = Future(), read_call(call)[1]
        self.given.append(x)
        if x == 0 and self.given.count(0) == 1:
            future.set_exception(BrokenProcessPool("died"))
        else:
            future.set_result(load(call))
        return future


def test_results_that_have_come_are_kept_when_another_worker_dies(monkeypatch):
    dying, team = Dying(), ProcessTeam(2)
    monkeypatch.setattr(team, "_find_executor", lambda: dying)
    assert dict(team.run(team_tasks.square, range(4))) == {k: k * k for k in range(4)}
    assert sorted(dying.given) == [0, 0, 1, 2, 3]
    # A pool of the caller's is not mended, but what it has given is taken.
    found = {}
    with pytest.raises(WorkerError, match="the executor has lost its workers"):
        for k, value in Team(Dying(), n_workers=4).run(team_tasks.square, range(8)):
            found[k] = value
    assert sorted(found) == list(range(1, 8))


def test_results_that_have_come_are_kept_when_another_worker_hangs():
    team, ledger, futures = ProcessTeam(2), Ledger(3), [Future() for _ in range(3)]
    ledger.running = {future: k for k, future in enumerate(futures)}
    ledger.note_begun(2)
    futures[1].set_result(None)
    team._drop(futures[:1], "it took longer", ledger)
    assert list(ledger.running) == futures[1:2] and list(ledger.waiting)[3:] == [0, 2]


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"numba": "0.1", "code": "abc"}, "a worker on afar has numba: read 0.1; expected "),
        ({"python": "2.7", "code": "abc"}, "a worker on afar has python: read 2.7; expected "),
        ({"code": "abc"}, "a worker on afar has other code of acerl_np: read abc; expected "),
    ],
)
def test_other_versions_are_one_line(versions, message):
    team = ProcessTeam(1)
    try:
        assert dict(team.run(team_tasks.pretend, [{"host": "afar", **versions}])) == {0: "done"}
        with pytest.raises(WorkerError, match=message) as caught:
            list(team.run(team_tasks.square, [1]))
        assert "\n" not in str(caught.value)
    finally:
        team.close()


def test_a_worker_of_another_version_reads_no_task():
    own = own_fingerprint()
    report = work(b"no pickle that this version knows", {**own, "code": "newer"})
    assert report.fingerprint == own and report.value is None


def test_another_result_of_the_test_is_one_line(processes):
    with pytest.raises(WorkerError, match="has another result of the test member: read "):
        list(processes.run(team_tasks.square, [1], test=team_tasks.tell_otherwise))


class Altering(Executor):
    """One on whose way an instance changes."""

    def submit(self, load, call):
        function, instance, test = read_call(call)
        other = replace(instance, arrival=instance.arrival + 1.0)
        future = Future()
        future.set_result(work(pickle.dumps((function, other, test)), own_fingerprint()))
        return future


def read_hash(instance):
    return instance.content_hash


def test_a_task_that_arrives_altered_is_refused():
    instance = acerl_np.load_instance("DMH-01")
    with pytest.raises(WorkerError, match="received another task than it was sent"):
        list(Team(Altering()).run(read_hash, [instance]))


def test_the_hash_of_an_instance_is_computed_where_it_arrives():
    instance = acerl_np.load_instance("DMH-01")
    before = instance.content_hash
    arrived = pickle.loads(pickle.dumps(instance))
    object.__setattr__(arrived, "arrival", arrived.arrival + 1.0)
    assert arrived.content_hash != before
    assert pickle.loads(pickle.dumps(instance)).content_hash == before


def test_the_lock_is_taken_once_for_a_test(monkeypatch):
    calls = []
    monkeypatch.setattr("acerl_np.support.team._TESTS", {})
    monkeypatch.setattr(
        "acerl_np.support.team.compile_alone",
        lambda: calls.append(1) or machine_code.compile_alone(),
    )
    assert {run_test(team_tasks.tell_otherwise) for _ in range(3)} == {str(os.getpid())}
    assert calls == [1]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such lock")
def test_a_lock_that_is_never_let_go_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(machine_code, "COMPILE_WAIT", 0.3)
    with machine_code.compile_alone(), machine_code.compile_alone():
        pass


class Gone(Executor):
    """One whose scheduler has gone: it takes tasks, and nothing comes back."""

    def submit(self, function, /, *arguments, **options):
        return Future()


def test_an_executor_of_which_nothing_is_heard_is_given_up():
    team = Team(Gone(), n_workers=2, time_limit=0.3)
    with pytest.raises(
        WorkerError, match=r"lost 4 times, the last time: it took longer than 0.3 s"
    ):
        list(team.run(team_tasks.square, [1, 2, 3]))


def test_pools_of_the_callers_are_not_mended():
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    with pool, pytest.raises(WorkerError, match="the executor has lost its workers"):
        list(Team(pool).run(team_tasks.die, [0]))
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(WorkerError, match="the executor takes no tasks"):
        list(Team(threads).run(team_tasks.square, [0]))


class Client:
    """What a team knows of a Dask client."""

    def __init__(self):
        self.status, self.threads = "running", {"a": 1, "b": 2}

    def nthreads(self):
        return self.threads


class Scheduled(Executor):
    """Dask's executor, here; its workers and its scheduler come and go."""

    def __init__(self):
        self._client, self.given = Client(), []

    def submit(self, load, call):
        self.given.append(read_call(call)[1])
        future = Future()
        future.set_result(load(call))
        return future


def test_workers_that_come_later_are_used(monkeypatch):
    executor = Scheduled()
    team = find_team(executor)
    assert team.n_workers == count_workers(executor) == 3
    executor._client.threads = {}
    assert team.n_workers == 1
    monkeypatch.setattr("acerl_np.support.team.RECOUNT", 0.0)
    running = team.run(team_tasks.square, range(40))
    next(running)
    assert len(executor.given) == 2
    executor._client.threads = {"a": 4, "b": 4}
    for _ in range(2):
        next(running)
    assert len(executor.given) == 2 + 16
    running.close()


def test_a_scheduler_without_workers_is_one_line(monkeypatch):
    monkeypatch.setattr("acerl_np.support.team.RECOUNT", 0.0)
    executor = Scheduled()
    executor._client.threads = {}
    monkeypatch.setattr(executor, "submit", lambda *arguments: Future())
    team = Team(executor, patience=0.3)
    with pytest.raises(WorkerError, match="the scheduler has no worker; expected at least one"):
        list(team.run(team_tasks.square, [1]))


def test_a_scheduler_that_has_gone_is_one_line_at_once(monkeypatch):
    executor = Scheduled()
    cancelled = []

    class Lost(Future):
        def cancel(self):
            cancelled.append(self)  # would fail in the client
            return False

    monkeypatch.setattr(executor, "submit", lambda *arguments: Lost())
    team, looks = Team(executor), []

    def lose():
        looks.append(executor._client.status)
        if len(looks) == 2:
            executor._client.status = "closed"

    team.watch = lose
    with pytest.raises(WorkerError, match="the scheduler has gone"):
        list(team.run(team_tasks.square, [1]))
    assert len(looks) == 2 and not cancelled


class Closed(Executor):
    """One that refuses tasks with an error of its own kind."""

    def submit(self, *arguments):
        raise LookupError("client is closed")


def test_an_executor_that_takes_no_tasks_is_one_line():
    with pytest.raises(WorkerError, match="takes no tasks: LookupError: client is closed"):
        list(Team(Closed()).run(team_tasks.square, [1]))


SCRIPT = """
import sys, time
from acerl_np.support.fingerprint import own_fingerprint
from acerl_np.support.processes import ProcessTeam

if __name__ == "__main__":
    team = ProcessTeam(2)
    team.watch = lambda: print(*sorted(team.pids), flush=True)
    list(team.run(time.sleep, [600.0, 600.0]))
"""


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_workers_end_with_their_parent(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    root = str(Path(acerl_np.__file__).parents[1])
    parent = subprocess.Popen(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        text=True,
    )
    pids = []
    while not pids:
        pids = [int(word) for word in parent.stdout.readline().split()]
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 60.0
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "workers are left behind"
        time.sleep(0.05)


class Foreign(Executor):
    """One that answers what no worker of ours would."""

    def submit(self, function, /, *arguments, **options):
        future = Future()
        future.set_result("nonsense")
        return future


def test_what_is_no_report_is_refused():
    with pytest.raises(WorkerError, match="a worker returned nonsense; expected a report"):
        list(Team(Foreign()).run(team_tasks.square, [0]))


@pytest.mark.parametrize("number", [0, -1, 1.5, True, 2000, "two"])
def test_numbers_of_processes_are_checked(number):
    with pytest.raises(ConfigError, match="processes: read"):
        ProcessTeam(number)
