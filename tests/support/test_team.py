"""Workers behind executors: results as they finish, workers that die, hang, or compute something else."""

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest
import team_tasks

from acerl_np import ConfigError, InputError
from acerl_np.support.errors import WorkerError
from acerl_np.support.team import ProcessTeam, Team


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


def test_a_worker_that_is_killed_from_outside_loses_nothing(processes):
    stop = threading.Event()

    def kill_now_and_then():
        while not stop.wait(0.4):
            for pid in list(processes.pids)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                return

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        assert len(dict(processes.run(team_tasks.who, range(60)))) == 60
    finally:
        stop.set()
        killer.join()


def test_a_worker_that_hangs_is_replaced(tmp_path):
    team = ProcessTeam(1, time_limit=3.0)
    started = time.monotonic()
    try:
        found = dict(team.run(team_tasks.hang_once, [str(tmp_path / "mark")]))
    finally:
        team.close()
    assert found == {0: "mark"}
    assert time.monotonic() - started < 60.0


def test_a_task_that_always_kills_its_worker_is_given_up(processes):
    with pytest.raises(WorkerError, match="task 1 of 1 was lost 4 times"):
        dict(processes.run(team_tasks.die, [0]))
    assert dict(processes.run(team_tasks.square, [3])) == {0: 9}


def test_errors_of_ours_come_through_at_once(processes):
    with pytest.raises(InputError, match="x: read 5; expected another"):
        dict(processes.run(team_tasks.refuse, [5]))


def test_other_errors_are_tried_again_and_given_up(processes):
    with pytest.raises(WorkerError, match="was lost 4 times"):
        dict(processes.run(team_tasks.stumble, [5]))


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"numba": "0.1"}, "a worker on afar has numba: read 0.1; expected "),
        ({"code": "abc"}, "a worker on afar has other code of acerl_np: read abc; expected "),
        ({"test": "0"}, "another result of the test member"),
    ],
)
def test_other_versions_are_one_line(versions, message):
    team = ProcessTeam(1)
    try:
        with pytest.raises(WorkerError, match=message) as caught:
            for _ in range(2):
                list(team.run(team_tasks.pretend, [{"host": "afar", **versions}]))
        assert "\n" not in str(caught.value)
    finally:
        team.close()


class Gone(Executor):
    """One whose scheduler has gone: it takes tasks, and nothing comes back."""

    def submit(self, function, /, *arguments, **options):
        return Future()


def test_an_executor_of_which_nothing_is_heard_is_given_up():
    team = Team(Gone(), n_workers=2, time_limit=0.3)
    with pytest.raises(WorkerError, match="was lost 4 times"):
        list(team.run(team_tasks.square, [1, 2, 3]))


def test_pools_of_the_callers_are_not_mended():
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    with pool, pytest.raises(WorkerError, match="the executor has lost its workers"):
        list(Team(pool).run(team_tasks.die, [0]))
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(WorkerError, match="the executor takes no tasks"):
        list(Team(threads).run(team_tasks.square, [0]))


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
