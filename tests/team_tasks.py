"""Tasks for workers in other processes, which import this module by its name."""

import os
import signal
import time
from pathlib import Path

from acerl_np import InputError
from acerl_np.support import fingerprint
from acerl_np.support.errors import StorageError


def square(x):
    return x * x


def who(_):
    time.sleep(0.05)
    return os.getpid()


def die_once(path):
    """Kill the worker the first time, return its mark the second."""
    mark = Path(path)
    if not mark.exists():
        mark.write_text("was here")
        os.kill(os.getpid(), signal.SIGKILL)
    return mark.name


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def hang_once(path):
    mark = Path(path)
    if not mark.exists():
        mark.write_text("was here")
        time.sleep(600)
    return mark.name


def refuse(x):
    raise InputError(f"x: read {x}; expected another")


def stumble(x):
    raise ZeroDivisionError(x)


def fill_disk(path):
    """Fail as a node whose disk is full the first time, go on at another the second."""
    mark = Path(path)
    if not mark.exists():
        mark.write_text("was here")
        raise StorageError("/tmp: no space left on device")
    return mark.name


def pretend(versions):
    """Do as a worker with other versions from now on."""
    own = {**fingerprint.own_fingerprint(), **versions}
    fingerprint._find_own = lambda: own
    return "done"


def tell_otherwise():
    """A test of which each process makes something else."""
    return str(os.getpid())
