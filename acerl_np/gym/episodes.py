"""What the single and the vector environment share: episodes named, started, decided and paid."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike

from acerl_np.problem.bundled import bundled_suites, load_instance, load_suite
from acerl_np.problem.choices import SlotKind
from acerl_np.problem.instance import Instance, refuse_chains
from acerl_np.simulation.actions import ACTIONS, make_actions
from acerl_np.simulation.scene import Chooser, find_legal
from acerl_np.simulation.simulator import Simulator, find_served
from acerl_np.simulation.view import describe_episode, draw_episode
from acerl_np.support.errors import ActionError, InputError, refuse
from acerl_np.support.fields import Field
from acerl_np.support.files import FilePath

InstanceLike = FilePath | Instance
Instances = InstanceLike | Sequence[InstanceLike]
Generators = Callable[[int], np.random.Generator]

RENDER_MODES = ("ansi", "rgb_array")
METADATA: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}


class Settings(TypedDict, total=False):
    """What environments take by name; `DMHEnv` says what each means."""

    horizon: float | None
    illegal: str
    render_mode: str | None
    task_slots: int | None
    n_vehicles: int | None
    scaling: ArrayLike | None
    actions: str
    max_episode_steps: int | None
    slots: SlotKind | Chooser
    rules: Sequence[str] | Chooser
    may_wait: bool


SEED = Field(int, 0, optional=True, expected="a whole number from 0 on")


ROUNDING = 1e-6
"""s, what rounding may add to a duration; a tick is rounded by far less."""


class Settled(NamedTuple):
    """What n episodes that are over are paid and cost, s, and how they ended.

    Makespan and tardiness, s, are nan unless all tasks were finished. The status is "finished", "stopped" by
    the horizon, or "stuck".
    """

    reward: np.ndarray
    cost: np.ndarray
    makespan: np.ndarray
    tardiness: np.ndarray
    status: np.ndarray

    def tell(self, k: int) -> dict[str, Any]:
        """Return what an info says of the k-th."""
        times = {name: float(getattr(self, name)[k]) for name in ("cost", "makespan", "tardiness")}
        return {**times, "status": self.status[k]}


class Episodes:
    """Episodes on one lockstep simulator, as the environments start, decide and show them.

    The arguments are those of `DMHEnv`; the simulator takes those that are not named. Where something is
    drawn, `generator` returns that of an episode.
    """

    def __init__(
        self,
        n: int,
        instances: Instances,
        *,
        illegal: str = "error",
        render_mode: str | None = None,
        actions: str = "rules",
        may_wait: bool = False,
        max_episode_steps: int | None = None,
        **simulated: Any,
    ) -> None:
        Field(ACTIONS).read("actions", actions, InputError)
        Field(bool).read("may_wait", may_wait, InputError)
        Field(("error", "redraw")).read("illegal", illegal, InputError)
        Field(RENDER_MODES, optional=True).read("render_mode", render_mode, InputError)
        if max_episode_steps is not None:
            why = (
                "an episode cut before its end is paid nothing, which is more than for any schedule"
            )
            refuse("max_episode_steps", max_episode_steps, f"horizon=, in seconds: {why}")
        loaded = _load(instances)
        refuse_chains(loaded)
        self.simulator = Simulator(loaded, n_episodes=n, **simulated)
        # An instance that stands twice is drawn as often.
        position = {id(instance): k for k, instance in enumerate(self.simulator.pool)}
        self._entries = [position[id(instance)] for instance in loaded]
        self._render_mode = render_mode
        self.redraws = illegal == "redraw"
        self.is_started = False
        self.over = np.zeros(n, np.bool_)
        """Ended, and the end has been reported."""
        self.actions = make_actions(actions, self.simulator, may_wait)
        self.action_space = gymnasium.spaces.Discrete(self.actions.n)
        self._durations = [bound_durations(instance) for instance in self.simulator.pool]
        most = np.finfo(np.float32).max  # not infinity, which Gymnasium's checker warns of
        self.observation_space = Box(-most, most, (self.simulator.n_features,), np.float32)

    def choose(self, options: dict[str, Any] | None, *others: str) -> int | None:
        """Return the position of the instance that `options` name, None if none; they may have others."""
        if options is None:
            return None
        known = ["instance", *others]
        if not isinstance(options, dict) or not options.keys() <= set(known):
            refuse("options", options, f"a dict of {known}")
        wanted = options.get("instance")
        if wanted is None:
            return None
        pool, is_whole = self.simulator.pool, isinstance(wanted, Instance)
        names = [x.name for x in pool]
        if not is_whole:
            Field(tuple(names)).read("instance", wanted, InputError)
        key = wanted.content_hash if is_whole else wanted
        found = [k for k, x in enumerate(pool) if key == (x.content_hash if is_whole else x.name)]
        if not found:
            refuse("instance", f"{wanted.name!r} of other content", f"one of {names}")
        if len({pool[k].content_hash for k in found}) > 1:
            refuse("instance", f"{wanted!r}, the name of several", "the instance itself")
        return next((k for k in found if is_whole and names[k] == wanted.name), found[0])

    def draw(self, b: int, generator: Generators) -> int:
        """Return the position of an instance at random; one alone takes no draw."""
        entries = self._entries
        return entries[0] if len(entries) == 1 else entries[generator(b).integers(len(entries))]

    def start(
        self, rows: Sequence[int] | np.ndarray, choices: list[int], seeds: list[int | None] | None
    ) -> None:
        """Start some episodes anew; seeds are those of random breakdowns."""
        self.simulator.restart(rows, choices, seeds=seeds)
        self.actions.begin()
        self.over[rows] = False
        self.is_started = True

    def take(
        self, rows: np.ndarray | None, actions: ArrayLike, generator: Generators
    ) -> tuple[np.ndarray, np.ndarray, Settled | None, np.ndarray]:
        """Take one decision in some episodes, or in all, as `DMHVectorEnv.take`."""
        if not self.is_started:
            raise ActionError("no episode is running; expected reset() first")
        which: Any = slice(None) if rows is None else rows
        waiting = self.over[which]
        redrawn = np.zeros(len(waiting), np.bool_)
        if self.redraws:
            mask, done = self.actions.mask()[which], self.simulator.done[which]
            actions, redrawn = redraw(
                actions, mask, ~done, lambda k: generator(k if rows is None else int(rows[k]))
            )
        self.actions.take(actions, rows)
        ended = self.simulator.done[which] & ~waiting
        rewards, settled = np.zeros(len(waiting)), None
        if ended.any():
            over = np.flatnonzero(ended) if rows is None else rows[ended]
            settled = self._settle(over)
            rewards[ended] = settled.reward
            self.over[over] = True
        return rewards, ended, settled, redrawn

    def _settle(self, rows: np.ndarray) -> Settled:
        """Return what episodes that are over are paid.

        One that finished all tasks is paid minus its makespan, and its cost is its tardiness. One that the
        horizon stopped is charged for what is left: its tasks that are not finished count as if they were
        served from the horizon on, in order of arrival, each when the one before is done, and each as long
        as the slowest vehicle that may carry it takes from the farthest site (`bound_durations`). So it is
        always paid less than any episode that finishes by the horizon.
        """
        simulator = self.simulator
        makespan, tardiness = simulator.makespan[rows], simulator.tardiness[rows]
        rewards, costs = -makespan, tardiness.copy()
        for k in np.flatnonzero(np.isnan(makespan)):
            rewards[k], costs[k] = self._charge(int(rows[k]))
        status = np.array([str(name) for name in simulator.status[rows]], object)
        return Settled(rewards, costs, makespan, tardiness, status)

    def _charge(self, b: int) -> tuple[float, float]:
        """Return reward and cost of an episode that was stopped."""
        choice, state = int(self.simulator.choices[b]), self.simulator.state
        instance = self.simulator.pool[choice]
        served = find_served(state, b, instance)
        finish = state.task["finish"][b, : instance.n_tasks].astype(np.float64)
        end = float(state.episode["time"][b])
        for task in np.flatnonzero(~served):
            end = max(end, float(np.ceil(instance.arrival[task])))
            end += float(self._durations[choice][task])
            finish[task] = end
        delay = np.maximum(finish - (instance.arrival + instance.expiry), 0.0)
        return -end, float(delay.mean())

    def render(self, b: int) -> Any:
        """Return an episode as the render mode wants it."""
        if self._render_mode == "ansi":
            return describe_episode(self.simulator, b)
        if self._render_mode == "rgb_array":
            return draw_episode(self.simulator, b)
        gymnasium.logger.warn(f"render() without a render mode; expected one of {RENDER_MODES}")
        return None


def bound_durations(instance: Instance) -> np.ndarray:
    """Return how long each task takes at most, from its assignment to its finish.

    It is served by the slowest of the vehicles that may carry it, from the farthest site; a vehicle that
    broke down in mid-edge drives the longest edge before. In whole seconds, at least one: float64 (n_tasks,).
    """
    layout, routes = instance.layout, instance.layout.routes
    lengths = routes.edge_length[np.isfinite(routes.edge_length)]
    halts = layout.has_random_breakdowns or any(vehicle.breakdowns for vehicle in layout.vehicles)
    # On an errand, or called back, it drives on to its next site.
    halts |= layout.has_auxiliary
    least = np.inf if routes.edge_speed is None else float(routes.edge_speed.min(initial=np.inf))
    longest = np.zeros(instance.n_tasks)
    for speed, capacity in sorted({(item.speed, item.capacity) for item in layout.vehicles}):
        ways = routes.find_time(speed)
        farthest = np.where(np.isfinite(ways), ways, 0.0).max(axis=0)
        own = farthest[instance.pickup] + ways[instance.pickup, instance.delivery]
        if halts:
            own += lengths.max(initial=0.0) / min(speed, least)
        able = (capacity == 0.0) | (instance.demand <= capacity)
        longest = np.where(able, np.maximum(longest, own), longest)
    return np.asarray(np.maximum(1.0, np.ceil(longest + instance.handling_time + ROUNDING)))


def _load(instances: Any) -> list[Instance]:
    """Return the instances that names, files and suites mean."""
    loaded: list[Instance] = []
    are_many = isinstance(instances, Sequence) and not isinstance(instances, str)
    for item in instances if are_many else [instances]:
        if isinstance(item, Instance):
            item.check_servable()
            loaded.append(item)
        elif not isinstance(item, str | os.PathLike):
            raise InputError(f"instances: read {item!r}; expected names, files or Instances")
        elif item in bundled_suites():
            loaded += load_suite(str(item))
        else:
            loaded.append(load_instance(item))
    return loaded


def redraw(
    actions: Any, mask: np.ndarray, running: np.ndarray, generator: Generators
) -> tuple[np.ndarray, np.ndarray]:
    """Replace illegal actions of running episodes; return all actions, and where they were illegal.

    What is no array of whole numbers stays as it is, for the simulator to refuse. `generator` returns that of
    the k-th.
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
