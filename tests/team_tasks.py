"""Tasks for workers in other processes, which import this module by its name."""

import os
import signal
import time
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
