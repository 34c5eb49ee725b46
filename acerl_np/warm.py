"""Compile ahead: the first use of a kernel on a machine compiles it, later processes load it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from acerl_np.evaluation.hindsight import find_hindsight
from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.policies.static import find_static
from acerl_np.problem.assignments import Assignments
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Edge, Layout, Site, Vehicle
from acerl_np.simulation.replay import replay_assignments
from acerl_np.simulation.simulator import Simulator
from acerl_np.support import compiled
from acerl_np.support.errors import InputError, describe
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config

__all__ = ["PARTS", "is_compiled", "warm_up"]


def _make_instance() -> Instance:
    layout = Layout(
        "two sites",
        (Site("a", 0.0, 0.0), Site("b", 1.0, 0.0)),
        (Edge("a", "b", 1.0),),
        (Vehicle("v", "a"),),
        task_slots=1,
    )
    row = {"task": "t", "pickup": "a", "delivery": "b", "arrival_time": 0, "expiry_time": 9}
    return Instance.from_rows("one task", layout, [row])


def _train() -> None:
    instance = _make_instance()
    trainer = ACERL(instance, Config(generations=2, population=2, hidden=(2,)), threads=1)
    trainer.run()
    policy = trainer.policy
    evaluate_policy(policy, instance, trials=1, threads=1)
    simulator = Simulator(instance)
    simulator.step(policy.act(simulator.observation, simulator.action_mask))


def _replay() -> None:
    one = np.zeros(1, np.int32)
    replay_assignments(Assignments(_make_instance(), one, one, np.zeros(1), np.full(1, np.nan)))


def _find_static() -> None:
    find_static(_make_instance(), threads=1)


def _search() -> None:
    find_hindsight(_make_instance(), effort=0.001)


@dataclass(frozen=True)
class Part:
    """Kernels that are compiled together.

    Attributes
    ----------
    what : str
        What they are for.
    seconds : int
        About how long that takes alone, s.
    run : callable
        Uses each of them once.
    """

    what: str
    seconds: int
    run: Callable[[], None]


PARTS = {
    "training": Part("training and evaluation", 20, _train),
    "replay": Part("replays", 7, _replay),
    "static": Part("static plans", 7, _find_static),
    "search": Part("hindsight", 15, _search),
}
"""What can be compiled ahead: most users need "training" alone, which does not wait for the others."""


def _check_part(part: str) -> None:
    if part not in PARTS:
        raise InputError(f"part: read {describe(part)}; expected one of {', '.join(PARTS)}")


def is_compiled(part: str = "training") -> bool:
    """Whether an earlier process left machine code of exactly these kernels.

    Parameters
    ----------
    part : str
        One of `PARTS`.

    Raises
    ------
    InputError
        If there is no such part.
    """
    _check_part(part)
    if part == "training":
        return compiled.is_compiled()
    folder = compiled.cache_folder()
    return folder is not None and (folder / part).exists()


def warm_up(part: str = "training") -> None:
    """Compile the kernels of a part, or load what an earlier process compiled.

    The machine code is kept in the user's cache folder (`NUMBA_CACHE_DIR` or `XDG_CACHE_HOME` move
    it); a changed kernel or another version of numba is compiled anew.

    Parameters
    ----------
    part : {"training", "replay", "static", "search"}
        Training, rules and policies; past assignments; static plans; hindsight.

    Raises
    ------
    InputError
        If there is no such part.
    """
    _check_part(part)
    PARTS[part].run()
    if part == "training":
        compiled.mark_compiled()
        return
    folder = compiled.cache_folder()
    if folder is not None:
        # Only the announcement of the next compilation depends on it.
        with contextlib.suppress(OSError):
            (folder / part).touch()
