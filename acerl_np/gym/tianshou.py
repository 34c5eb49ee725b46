"""For Tianshou: observations with their mask, as its policies read them, and a vector environment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import gymnasium
import numpy as np

from acerl_np.gym.episodes import InstanceLike, Settings
from acerl_np.gym.vector import DMHVectorEnv
from acerl_np.support.errors import ActionError, MissingExtraError
from acerl_np.support.fields import refuse
from acerl_np.support.numbers import Whole
from acerl_np.support.sharing import CopiedWhole

MISSING: ImportError | None = None
"""Why there is no Tianshou; `MaskInObservation` needs nothing of it."""

try:
    from tianshou.data import Batch
    from tianshou.env import BaseVectorEnv
except ImportError as error:
    BaseVectorEnv, MISSING = object, error

UNTOLD = {"action_mask", "makespan", "tardiness", "status"}
"""What infos of steps leave out: the mask is seen, the others are nan or missing while an episode goes on."""

Indices = int | Iterable[int] | None


class MaskInObservation(CopiedWhole, gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observation is a dict of "obs" and "mask".

    Tianshou stacks such dicts into batches, and its policies for discrete actions that know masks, such as
    DQN's, read `batch.obs.obs` and `batch.obs.mask`. Its vector environments take the wrapper:
    `DummyVectorEnv([lambda: MaskInObservation(DMHEnv("DMH-01"))] * 8)`.

    "obs" is the observation, float32 (n_features,); "mask" bool (n_actions,), True is legal. At an end, which
    no policy is asked about, it is all False. An info of a step holds the same numbers each time, as trainers
    refuse a buffer in which something is missing: those of `DMHEnv` but for the mask, and "finished" (bool,
    whether all tasks are served) instead of status, makespan and tardiness. Reward and "cost" tell these two.

    Parameters
    ----------
    env : gymnasium.Env
        A `DMHEnv`, or what `gymnasium.make` returns of one.
    """

    def __init__(self, env: gymnasium.Env[np.ndarray, Any]) -> None:
        super().__init__(env)
        self.observation_space = _add_mask(env.observation_space, env.action_space)

    def reset(
        self, *, seed: Whole | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode, as `DMHEnv`."""
        observation, info = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        return self._join(observation, info), info

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Take one decision, as `DMHEnv`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        told = {name: value for name, value in info.items() if name not in UNTOLD}
        told["finished"] = info.get("status") == "finished"
        return self._join(observation, info), float(reward), terminated, truncated, told

    def _join(self, observation: np.ndarray, info: dict[str, Any]) -> dict[str, np.ndarray]:
        return {"obs": observation, "mask": info["action_mask"].astype(np.bool_)}


class LockstepVectorEnv(CopiedWhole, BaseVectorEnv):  # type: ignore[misc]
    """Many environments on one lockstep simulator, as Tianshou's collectors want them.

    It stands for a `DummyVectorEnv` of as many `MaskInObservation`: same observations, rewards and ends.
    Observations are a `Batch` of "obs", float32 (n, n_features), and "mask", bool (n, n_actions). An info of
    a step holds "env_id", "cost" and "finished"; that of a reset names the "instance". All environments step
    in one call, so the collector for asynchronous ones is not for it.

    Parameters
    ----------
    num_envs, instances
        As of `DMHVectorEnv`.
    **settings
        As of `DMHVectorEnv`: horizon, illegal, render_mode, task_slots, n_vehicles, scaling, instance,
        actions, observation_space, slots, rules.

    Raises
    ------
    InputError
        As of `DMHVectorEnv`.
    MissingExtraError
        Without Tianshou.
    """

    def __init__(
        self,
        num_envs: Whole = 1,
        instances: InstanceLike | Sequence[InstanceLike] | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        if MISSING is not None:
            raise MissingExtraError(
                f"{MISSING}: LockstepVectorEnv needs Tianshou; pip install 'acerl_np[tianshou]'"
            ) from MISSING
        # The base class makes a worker for each environment: as in the library's wrappers, it is not called.
        self.envs = DMHVectorEnv(num_envs, instances, autoreset_mode="Disabled", **settings)
        self.env_num = self.wait_num = self.envs.num_envs
        self.workers: list[Any] = []
        self.waiting_conn: list[Any] = []
        self.waiting_id: list[int] = []
        self.ready_id = list(range(self.env_num))
        self.timeout = None
        self.is_async = self.is_closed = False

    def reset(self, env_id: Indices = None, **kwargs: Any) -> tuple[Any, np.ndarray]:
        """Start an episode in all environments, as the very first reset must, or in some.

        "seed" and "options" are as of `DMHEnv.reset`, the same for each environment.
        """
        rows = self._read(env_id)
        seed, options = kwargs.pop("seed", None), kwargs.pop("options", None)
        if kwargs:
            refuse("reset", sorted(kwargs), "seed and options")
        if len(rows) < self.env_num:
            mask = {"reset_mask": np.isin(np.arange(self.env_num), rows)}
            # What is no dict is refused below.
            options = {**options, **mask} if isinstance(options, dict) else options or mask
        _, infos = self.envs.reset(seed=[seed] * self.env_num, options=options)
        return self._look(rows), np.array([{"instance": infos["instance"][b]} for b in rows])

    def step(
        self, action: Any, id: Indices = None
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Take one decision in all environments or in some; who is over waits for its reset.

        An `ActionError`, where an action is illegal or an environment over or not started, changes none.
        """
        rows = self._read(id)
        over = rows[self.envs.is_over[rows]].tolist()
        if over:
            raise ActionError(f"environments {over} are over; expected reset({over}) first")
        rewards, ended, settled, _ = self.envs.take(rows, action)
        costs, finished = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
        if settled is not None:
            costs[ended], finished[ended] = settled.cost, settled.status == "finished"
        infos = [
            {"env_id": int(b), "cost": float(cost), "finished": bool(end)}
            for b, cost, end in zip(rows, costs, finished, strict=True)
        ]
        return self._look(rows), rewards, ended, np.zeros(len(rows), np.bool_), np.array(infos)

    def seed(self, seed: Whole | Sequence[Whole | None] | None = None) -> list[list[Any]]:
        """Start all episodes with these seeds, seed + i for environment i; return them."""
        self._assert_is_not_closed()
        self.envs.reset(seed=seed)
        return [[own] for own in self.envs.np_random_seed]

    def get_env_attr(self, key: str, id: Indices = None) -> list[Any]:
        """Return an attribute, the same of all environments, once for each of those asked for."""
        envs = self.envs
        spaces = {
            "observation_space": _add_mask(envs.single_observation_space, envs.single_action_space),
            "action_space": envs.single_action_space,
        }
        value = spaces[key] if key in spaces else getattr(envs, key)
        return [value for _ in self._read(id)]

    def set_env_attr(self, key: str, value: Any, id: Indices = None) -> None:
        """Set an attribute of all environments; an `InputError` if it is to be set of some."""
        if len(self._read(id)) < self.env_num:
            refuse("id", f"some, for {key}", "all environments")
        setattr(self.envs, key, value)

    def render(self, **kwargs: Any) -> list[Any]:
        """Return a frame of each environment, as `render_mode` says."""
        self._assert_is_not_closed()
        return list(self.envs.render() or [None] * self.env_num)

    def close(self) -> None:
        """Close the environments."""
        self._assert_is_not_closed()
        self.envs.close()
        self.is_closed = True

    def _read(self, ids: Indices) -> np.ndarray:
        self._assert_is_not_closed()
        if ids is None:
            return np.arange(self.env_num)
        rows = np.atleast_1d(np.asarray(ids))
        known = (
            rows.dtype.kind in "iu" and rows.ndim == 1 and bool(np.isin(rows, self.ready_id).all())
        )
        if not known or len(np.unique(rows)) < len(rows) or not len(rows):
            refuse("id", ids, f"environments from 0 to {self.env_num - 1}, each once")
        return rows

    def _look(self, rows: np.ndarray) -> Any:
        return Batch(obs=self.envs.observation[rows], mask=self.envs.action_masks()[rows])


def _add_mask(
    observations: gymnasium.Space[Any], actions: gymnasium.Space[Any]
) -> gymnasium.spaces.Dict:
    """Return the space of observations with their mask."""
    n_actions = int(actions.n)  # type: ignore[attr-defined]
    return gymnasium.spaces.Dict(
        {"obs": observations, "mask": gymnasium.spaces.MultiBinary(n_actions)}
    )
