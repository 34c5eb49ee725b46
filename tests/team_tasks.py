"""Tasks for workers in other processes, which import this module by its name."""

import os
import signal
import time
from concurrent.futures import Executor, Future
from multiprocessing.connection import Connection
from pathlib import Path

from acerl_np import InputError
from acerl_np.support import team
from acerl_np.support.errors import StorageError


def square(x):
    return x * x


def who(_):
    time.sleep(0.05)
    return os.getpid()


def is_first(path):
    """Whether nobody was here; the second is."""
    mark = Path(path)
    if mark.exists():
        return False
    mark.write_text("was here")
    return True


def die_once(path):
    """Kill the worker the first time, return the mark's name the second."""
    if is_first(path):
        os.kill(os.getpid(), signal.SIGKILL)
    return Path(path).name


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def die_within_answer_once(path):
    """Kill the first worker when half of its answer is written."""

    def write_half(self, content):
        os.write(self.fileno(), content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    if is_first(path):
        Connection._send = write_half
    return Path(path).name


def hang_once(path):
    if is_first(path):
        time.sleep(600)
    return Path(path).name


def refuse(x):
    raise InputError(f"x: read {x}; expected another")


def stumble(x):
    raise ZeroDivisionError(x)


def fill_disk(_):
    """Fail as a node whose disk is full."""
    raise StorageError("/tmp: no space left on device")


def pretend(versions):
    """Do as a worker with other versions from now on."""
    own = {**team.find_versions(), **versions}
    team.find_versions = lambda: own
    return "done"


class Here(Executor):
    """A worker in this thread, which takes only so many tasks."""

    num_workers = 1

    def __init__(self, last=100):
        self.last = last

    def submit(self, function, /, *arguments):
        if self.last == 0:
            raise RuntimeError("no more workers")
        self.last -= 1
        future = Future()
        future.set_result(function(*arguments))
        return future


class TeamHere(team.Team):
    """In the place of processes, each of which takes a second to start."""

    def __init__(self, n_processes, *, time_limit=None):
        super().__init__(Here())

    def close(self):
        pass
