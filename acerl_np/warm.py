"""Compile ahead: the first use of a kernel on a machine compiles it, later processes load it."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.general import make_general
from acerl_np.policies.own import OwnRule, rule
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import Edge, Site, Vehicle
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import refuse, suggest_name
from acerl_np.training.acerl import ACERL
from acerl_np.training.config import Config

__all__ = ["PARTS", "warm_up"]


# Each part imports what it alone needs: a training waits for none of the others.

LAYOUT = Layout(
    "two sites",
    (Site("a", 0.0, 0.0), Site("b", 1.0, 0.0)),
    (Edge("a", "b", 1.0),),
    (Vehicle("v", "a"),),
    task_slots=1,
)


def _make_instance(expiry: float = 9.0) -> Instance:
    row = {"task": "t", "pickup": "a", "delivery": "b", "arrival_time": 0, "expiry_time": expiry}
    return Instance.from_rows("one task", LAYOUT, [row])


def _play(policy: BasePolicy | str) -> None:
    evaluate_policy(policy, _make_instance(), trials=1, threads=1)


def _train(config: Config) -> None:
    trainer = ACERL(_make_instance(), config, threads=1)
    trainer.run()
    _play(trainer.policy)


def _simulate() -> None:
    simulator = Simulator(_make_instance())
    simulator.step(simulator.action_mask.argmax(axis=1))


def _search() -> None:
    from acerl_np.evaluation.hindsight import find_hindsight

    find_hindsight(_make_instance(), effort=0.001)


def _replay() -> None:
    from acerl_np.problem.records import Assignments
    from acerl_np.simulation.replay import replay_assignments

    one = np.zeros(1, np.int32)
    replay_assignments(Assignments(_make_instance(), one, one, np.zeros(1), np.full(1, np.nan)))


def _look_ahead(base: OwnRule | str = "STD") -> None:
    from acerl_np.policies.lookahead import Lookahead

    _play(Lookahead(base, history=_make_instance(8.0), futures=1))


def _play_own() -> None:
    own = rule(lambda floor, vehicle, task: 0.0)
    _play(own)
    _look_ahead(own)


def _dispatch() -> None:
    from acerl_np.live.dispatcher import Dispatcher

    for policy in ("nearest", make_general("late")):
        Dispatcher(LAYOUT, policy)


PARTS: dict[str, Callable[[], object]] = {
    "training": lambda: _train(Config(generations=1, population=2, hidden=(2,))),
    "best": lambda: _train(Config.preset("best", decisions=1, records_per_member=2)),
    "simulator": _simulate,
    "rules": lambda: _play("EDD"),
    "baselines": lambda: _play("nearest"),
    "replay": _replay,
    "search": _search,
    "lookahead": _look_ahead,
    "own": _play_own,
    "dispatcher": _dispatch,
}
"""What can be compiled ahead: most users need "training" alone, which does not wait for the others."""


def check_part(part: str) -> None:
    """Refuse what is no part."""
    if part not in PARTS:
        refuse("part", part, f"one of {', '.join(PARTS)}{suggest_name(part, PARTS)}")


def warm_up(part: str = "training") -> None:
    """Compile the kernels of a part, or load what an earlier process compiled.

    Without it, each kernel is compiled or loaded when it is first used. The first one that a process
    compiles is told to the logger "acerl_np"; to load says nothing.

    The machine code is kept in the user's cache folder (`NUMBA_CACHE_DIR` or `XDG_CACHE_HOME` move
    it); a changed kernel or another version of numba is compiled anew.

    Parameters
    ----------
    part : str
        "training": of networks, and their trials; "best": of index functions, as that preset has it;
        "simulator"; "rules"; "baselines"; "replay": past assignments; "search": hindsight; "lookahead": of a
        rule; "own": what rules of users need, and lookahead over them; "dispatcher": of rules and index
        policies. Another base of a lookahead is compiled when it is first used.

    Raises
    ------
    InputError
        If there is no such part.
    """
    check_part(part)
    if not numba.config.DISABLE_JIT:
        PARTS[part]()
