"""What the single and the vector environment share: episodes named, drawn, settled and shown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np

from acerl_np.kernels.state import (
    EPISODE_TIME,
    TASK_FINISH,
    TASK_VEHICLE,
    VEHICLE_STATUS,
    VEHICLE_TASK,
    WORKING,
)
from acerl_np.problem.bundled import bundled_suites, load_instance, load_suite
from acerl_np.problem.instance import Instance
from acerl_np.simulation.simulator import Simulator, find_legal
from acerl_np.simulation.view import describe_episode, draw_episode
from acerl_np.support.errors import InputError, describe
from acerl_np.support.numbers import is_whole

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


def name_entry(simulator: Simulator, options: dict[str, Any] | None) -> int | None:
    """Return the position in the pool of the instance that `options` ask for, None if for none."""
    wanted = (options or {}).get("instance")
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


def observation_space(simulator: Simulator) -> gymnasium.spaces.Box:
    """Return the space of one observation."""
    # Distances and waiting times have no bound of their own.
    most = float(np.finfo(np.float32).max)
    return gymnasium.spaces.Box(-most, most, (simulator.n_features,), np.float32)


def redraw(simulator: Simulator, actions: Any, generator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Replace illegal actions of running episodes; return all actions, and where they were illegal.

    What is no array of whole numbers stays as it is, for the simulator to refuse.
    """
    actions = np.asarray(actions)
    if actions.dtype.kind not in "iu" or actions.shape != (simulator.n_episodes,):
        return actions, np.empty(0, np.int64)
    mask = simulator.action_mask
    illegal = np.flatnonzero(~simulator.done & ~find_legal(mask, actions))
    if len(illegal):
        actions = actions.astype(np.int64)
        for b in illegal:
            actions[b] = generator(b).choice(np.flatnonzero(mask[b]))
    return actions, illegal


def settle(simulator: Simulator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return reward and cost of episodes that are over, float64 (n,)."""
    rewards, costs = -simulator.makespan[rows], simulator.tardiness[rows]
    for k in np.flatnonzero(np.isnan(rewards)):
        rewards[k] = -simulator.time[rows[k]]
        costs[k] = delay_so_far(simulator, int(rows[k]))
    return rewards, costs


def delay_so_far(simulator: Simulator, b: int) -> float:
    """Return the mean delay of the tasks of a stopped episode, unfinished ones as if finished now."""
    instance, state = simulator.instances[b], simulator.state
    n, fleet = instance.n_tasks, len(instance.layout.vehicles)
    served = state.task[b, :n, TASK_VEHICLE] >= 0
    vehicles = state.vehicle[b, :fleet]
    served[vehicles[vehicles[:, VEHICLE_STATUS] == WORKING, VEHICLE_TASK]] = False
    finish = np.where(served, state.task[b, :n, TASK_FINISH], state.episode[b, EPISODE_TIME])
    return float(np.maximum(finish - (instance.arrival + instance.expiry), 0.0).mean())


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
