"""Compile ahead: the first use of a kernel on a machine compiles it, later processes load it."""

from __future__ import annotations

from acerl_np.acerl import ACERL
from acerl_np.config import Config
from acerl_np.evaluation import evaluate_policy
from acerl_np.kernels.compiled import is_compiled, mark_compiled
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Edge, Layout, Site, Vehicle
from acerl_np.simulator import Simulator

__all__ = ["is_compiled", "warm_up"]


def warm_up() -> None:
    """Compile every kernel, or load what an earlier process compiled.

    The machine code is kept in the user's cache folder (`NUMBA_CACHE_DIR` or `XDG_CACHE_HOME` move
    it); a changed kernel or another version of numba is compiled anew.
    """
    layout = Layout(
        "two sites",
        (Site("a", 0.0, 0.0), Site("b", 1.0, 0.0)),
        (Edge("a", "b", 1.0),),
        (Vehicle("v", "a"),),
        task_slots=1,
    )
    row = {"task": "t", "pickup": "a", "delivery": "b", "arrival_time": 0, "expiry_time": 9}
    instance = Instance.from_rows("one task", layout, [row])
    trainer = ACERL(instance, Config(generations=2, population=2, hidden=(2,)), threads=1)
    trainer.run()
    policy = trainer.policy
    evaluate_policy(policy, instance, trials=1, threads=1)
    simulator = Simulator(instance)
    simulator.step(policy.act(simulator.observation, simulator.action_mask))
    mark_compiled()
