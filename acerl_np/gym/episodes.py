"""What the single and the vector environment share: episodes named, drawn, settled and shown."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

from acerl_np.gym.bounds import bound_durations, bound_observations
from acerl_np.kernels.state import (
    EPISODE_TIME,
    TASK_FINISH,
)
from acerl_np.problem.bundled import bundled_suites, load_instance, load_suite
from acerl_np.problem.instance import Instance
from acerl_np.simulation.simulator import Simulator, find_legal, find_served
from acerl_np.simulation.view import describe_episode, draw_episode
from acerl_np.support.errors import InputError, describe
from acerl_np.support.numbers import is_whole

MAX_FRAMES = 100
"""Callers among which a `TimeLimit` is looked for."""

InstanceLike = str | os.PathLike[str] | Instance

RENDER_MODES = ("ansi", "rgb_array")
METADATA: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}
ILLEGAL = ("error", "redraw")


def check_choice(name: str, value: Any, expected: Sequence[Any]) -> None:
    """Refuse a value that is none of those expected."""
    if value not in expected:
        raise InputError(f"{name}: read {value!r}; expected one of {list(expected)}")


def read_seeds(seeds: Iterable[Any]) -> list[int | None]:
    """Return seeds as Python's numbers, which Gymnasium insists on."""
    read: list[int | None] = []
    for seed in seeds:
        if seed is not None and (not is_whole(seed) or seed < 0):
            raise InputError(f"seed: read {describe(seed)}; expected a whole number from 0 on")
        read.append(None if seed is None else int(seed))
    return read


def load(
    instances: InstanceLike | Sequence[InstanceLike] | None,
    others: InstanceLike | Sequence[InstanceLike] | None,
) -> list[Instance]:
    """Return what either of two names of one parameter asks for, by default DMH-01."""
    if instances is not None and others is not None:
        raise InputError("instance and instances are both given; expected one of the two")
    chosen: Any = others if instances is None else instances
    if chosen is None:
        chosen = "DMH-01"
    if isinstance(chosen, str | os.PathLike | Instance):
        chosen = [chosen]
    if not isinstance(chosen, Sequence):
        raise InputError(
            f"instances: read {chosen!r}; expected a name, a file, an Instance or several"
        )
    loaded: list[Instance] = []
    for item in chosen:
        if not isinstance(item, str | os.PathLike | Instance):
            raise InputError(f"instances: read {item!r}; expected a name, a file or an Instance")
        if isinstance(item, Instance):
            item.check_servable()
            loaded.append(item)
        elif item in bundled_suites():
            loaded += load_suite(str(item))
        else:
            loaded.append(load_instance(item))
    return loaded


def find_entries(simulator: Simulator, instances: Sequence[Instance]) -> list[int]:
    """Return each entry's position in the pool: an instance that stands twice is drawn as often."""
    position = {id(instance): k for k, instance in enumerate(simulator.pool)}
    return [position[id(instance)] for instance in instances]


def name_entry(
    simulator: Simulator, options: dict[str, Any] | None, known: Sequence[str] = ("instance",)
) -> int | None:
    """Return the position in the pool of the instance that `options` ask for, None if for none."""
    if options is None:
        return None
    if not isinstance(options, dict) or not options.keys() <= set(known):
        raise InputError(f"options: read {describe(options)}; expected a dict of {list(known)}")
    wanted = options.get("instance")
    if wanted is None:
        return None
    names = [instance.name for instance in simulator.pool]
    hashes = [instance.content_hash for instance in simulator.pool]
    if isinstance(wanted, Instance):
        keys = list(zip(hashes, names, strict=True))
        if (wanted.content_hash, wanted.name) in keys:
            return keys.index((wanted.content_hash, wanted.name))
        if wanted.content_hash in hashes:
            return hashes.index(wanted.content_hash)
        wanted = wanted.name
        raise InputError(f"instance: read {wanted!r} of other content; expected one of {names}")
    if not isinstance(wanted, str):
        raise InputError(f"instance: read {describe(wanted)}; expected one of {names}")
    check_choice("instance", wanted, names)
    same = {key for key, name in zip(hashes, names, strict=True) if name == wanted}
    if len(same) > 1:
        raise InputError(
            f"instance: {wanted!r} is the name of several; expected the instance itself"
        )
    return names.index(wanted)


def draw_entry(entries: Sequence[int], generator: Any) -> int:
    """Return an entry at random; one alone takes no draw. `generator` is called for the generator."""
    return entries[0] if len(entries) == 1 else entries[generator().integers(len(entries))]


def find_observation_space(
    simulator: Simulator, durations: list[np.ndarray], given: gymnasium.Space[Any] | None
) -> gymnasium.spaces.Box:
    """Return the space of one observation: the given one, or bounds that hold for the pool's instances."""
    shape = (simulator.n_features,)
    if given is None:
        low, high = bound_observations(simulator, durations)
        return gymnasium.spaces.Box(low, high, shape, np.float32)
    if (
        not isinstance(given, gymnasium.spaces.Box)
        or given.shape != shape
        or given.dtype != np.float32
    ):
        raise InputError(
            f"observation_space: read {describe(given)}; expected a Box of float32 and shape {shape}, of one "
            "environment"
        )
    return copy.deepcopy(given)  # its generator is no other environment's


def refuse_step_limit(limit: Any) -> None:
    """Refuse an end after so many steps."""
    if limit is not None:
        raise InputError(
            f"max_episode_steps: read {describe(limit)}; expected horizon=, in seconds: an episode cut "
            "before its end is paid nothing, which is more than for any schedule"
        )


def find_step_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """Return the limit of a `TimeLimit` around an environment that it is resetting, None without one.

    An environment is told nothing of its wrappers: they are found among its callers.
    """
    frame = sys._getframe(1)
    for _ in range(MAX_FRAMES):
        caller = frame.f_locals.get("self")
        if isinstance(caller, TimeLimit) and caller.unwrapped is env:
            return caller._max_episode_steps
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None


def redraw(
    actions: Any, mask: np.ndarray, running: np.ndarray, generator: Callable[[int], Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Replace illegal actions of n running episodes; return all actions, and where they were illegal.

    What is no array of whole numbers stays as it is, for the simulator to refuse.

    Parameters
    ----------
    actions : array_like of int, (n,)
    mask : ndarray(bool, (n, n_actions))
        What is legal.
    running : ndarray(bool, (n,))
    generator : callable
        Returns the generator of the k-th.
    """
    actions = np.asarray(actions)
    if actions.dtype.kind not in "iu" or actions.shape != (len(mask),):
        return actions, np.zeros(len(mask), np.bool_)
    illegal = running & ~find_legal(mask, actions)
    if illegal.any():
        actions = actions.astype(np.int64)
        for k in np.flatnonzero(illegal):
            actions[k] = generator(int(k)).choice(np.flatnonzero(mask[k]))
    return actions, illegal


class Settled(NamedTuple):
    """What n episodes that are over are paid, and how they ended.

    Attributes
    ----------
    reward : ndarray(float64, (n,)), s
    cost : ndarray(float64, (n,)), s
    makespan, tardiness : ndarray(float64, (n,)), s
        nan unless all tasks were finished.
    status : ndarray(object, (n,))
        "finished", "stopped" by the horizon, or "stuck".
    """

    reward: np.ndarray
    cost: np.ndarray
    makespan: np.ndarray
    tardiness: np.ndarray
    status: np.ndarray

    def tell(self, k: int) -> dict[str, Any]:
        """Return what an info says of the k-th."""
        return {
            "cost": float(self.cost[k]),
            "makespan": float(self.makespan[k]),
            "tardiness": float(self.tardiness[k]),
            "status": self.status[k],
        }


class Accounts:
    """What episodes that are over are paid.

    One that finished all tasks is paid minus its makespan, and its cost is its tardiness. One that the
    horizon stopped is charged for what is left: its tasks that are not finished count as if they were
    served from the horizon on, in order of arrival, each when the one before is done, and each as long
    as the slowest vehicle that may carry it takes from the farthest site (`bound_durations`). So it is
    always paid less than any episode that finishes by the horizon.

    Parameters
    ----------
    simulator : Simulator
    """

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.durations = [bound_durations(instance) for instance in simulator.pool]

    def settle(self, rows: np.ndarray) -> Settled:
        """Return what the episodes `rows`, int (n,), which are over, are paid."""
        simulator = self._simulator
        makespan, tardiness = simulator.makespan[rows], simulator.tardiness[rows]
        rewards, costs = -makespan, tardiness.copy()
        for k in np.flatnonzero(np.isnan(makespan)):
            rewards[k], costs[k] = self._charge(int(rows[k]))
        status = np.array([str(name) for name in simulator.status[rows]], object)
        return Settled(rewards, costs, makespan, tardiness, status)

    def _charge(self, b: int) -> tuple[float, float]:
        """Return reward and cost of an episode that was stopped."""
        simulator = self._simulator
        choice = int(simulator.choices[b])
        instance, state = simulator.pool[choice], simulator.state
        served = find_served(state, b, instance)
        finish = state.task[b, : instance.n_tasks, TASK_FINISH].astype(np.float64)
        end = float(state.episode[b, EPISODE_TIME])
        for task in np.flatnonzero(~served):
            end = max(end, float(np.ceil(instance.arrival[task])))
            end += float(self.durations[choice][task])
            finish[task] = end
        delay = np.maximum(finish - (instance.arrival + instance.expiry), 0.0)
        return -end, float(delay.mean())


def render(env: Any, simulator: Simulator, b: int) -> Any:
    """Return episode b as the environment's render mode wants it."""
    if env.render_mode == "ansi":
        return describe_episode(simulator, b)
    if env.render_mode == "rgb_array":
        return draw_episode(simulator, b)
    gymnasium.logger.warn(f"render() without a render mode; expected one of {RENDER_MODES}")
    return None


def put(infos: dict[str, Any], name: str, values: Any, where: np.ndarray) -> None:
    """Add an info the way Gymnasium's vector environments do: values, and which entries hold."""
    if where.any():
        infos[name] = values
        infos[f"_{name}"] = where.copy()
