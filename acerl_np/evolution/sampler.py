"""Which instance each member trains on: the adaptive instance sampler, and the ablation's modes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.evolution.ranges import ADVANTAGE, SAMPLER_FIELD, Advantage, Sampler
from acerl_np.kernels.core.random import SAMPLER, fill_uniforms, make_key
from acerl_np.kernels.learning.update import Noise
from acerl_np.support.errors import ConfigError, refuse
from acerl_np.support.fields import MOST, Field, Whole
from acerl_np.support.own import Own

ALPHA_U, N_INSTANCES = Field(float, 0.0, MOST), Field(int, 1)


def check_ids(instance_ids: ArrayLike, n_members: int, n_instances: int) -> np.ndarray:
    """Return the instance of each member as int64, each from 0 to n_instances - 1; refuse others."""
    try:
        ids = np.asarray(instance_ids)
    except ValueError:
        refuse("instance ids", "lists of unequal lengths", "one vector")
    if ids.shape != (n_members,) or (ids.dtype.kind not in "iu" and n_members):
        read = f"{ids.dtype} of shape {ids.shape}"
        refuse("instance ids", read, f"whole numbers of shape ({n_members},)")
    for one in ids[(ids < 0) | (ids >= n_instances)]:
        refuse("instance ids", one, f"0 to {n_instances - 1}")
    return ids.astype(np.int64)


class InstanceSampler(ABC):
    """Deals instances to the members of a generation, and learns from their returns.

    One of your own has its `assign`, and `update` if it learns. What changes as it goes stands in arrays that
    `statistics` names: they are all that a checkpoint keeps, beside the name of the class or function that
    makes one of n_instances and seed. Draw by `draw`, so that the same seed deals the same again. The arrays
    are replaced, never written, and all in one statement: a `copy.copy` stays as it was. `count`, int64
    (n_instances,), are the episodes played on each instance.

    Parameters
    ----------
    n_instances : int
    seed : int
    """

    statistics: tuple[str, ...] = ("count",)

    def __init__(self, n_instances: int, seed: Whole = 0) -> None:
        self.n_instances: int = N_INSTANCES.read("n_instances", n_instances)
        self.seed = seed
        self.count = np.zeros(n_instances, np.int64)

    @abstractmethod
    def assign(self, n_groups: int, generation: int) -> np.ndarray:
        """Return the instance of each of `n_groups` members or antithetic pairs, int64."""

    def assign_members(self, noise: Noise) -> np.ndarray:
        """Return the instance of each member, int64; members that share a stream share theirs."""
        # Counts near the largest float may overflow on the way to a probability.
        with np.errstate(over="ignore"):
            dealt = self.assign(noise.n_groups, noise.generation)
        return np.repeat(dealt, noise.group_size)

    def draw(self, n: int, generation: int) -> np.ndarray:
        """Return `n` uniform numbers in [0, 1) of this generation."""
        drawn = np.empty(n)
        fill_uniforms(make_key(self.seed, SAMPLER, generation), drawn)
        return drawn

    def update(self, instance_ids: ArrayLike, returns: ArrayLike) -> None:
        """Take in the returns of a finished generation, (n_members,); those that are not finite only count.

        An `InputError`, of other lengths or an id out of range, changes nothing.
        """
        values = np.asarray(returns, np.float64)
        if values.ndim != 1:
            refuse("returns", f"shape {values.shape}", "(n_members,)")
        vars(self).update(
            self._count(check_ids(instance_ids, len(values), self.n_instances), values)
        )

    def _count(self, ids: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the statistics after these returns."""
        return {"count": self.count + np.bincount(ids, minlength=self.n_instances)}

    def get_state(self) -> dict[str, np.ndarray]:
        """Return a copy of the statistics as plain arrays."""
        return {name: getattr(self, name).copy() for name in self.statistics}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Restore the statistics that `get_state` returned."""
        own = self.get_state()
        vars(self).update({name: np.array(state[name], own[name].dtype) for name in own})


OwnSampler: TypeAlias = InstanceSampler | Callable[[int, int], InstanceSampler]
"""A sampler of a user's own: the class, or another function of n_instances and seed; or one itself."""


class AdaptiveSampler(InstanceSampler):
    """AIS: softmax over the instances' advantage plus an upper-confidence bonus (Algorithm 2, Eq. 7).

    The metric u needs only the number, sum, least and largest of an instance's returns (Eq. 6):
    mean((max - J) / (max - min)) = (max - mean) / (max - min). By the advantage "paper" a badly served
    instance scores high; "released" has the sign of the authors' code, (mean - min) / (max - min). The bonus
    is alpha_u sqrt(log N / N_i).
    """

    statistics = ("count", "valid", "total", "least", "largest")

    def __init__(
        self,
        n_instances: int,
        seed: Whole = 0,
        *,
        alpha_u: float = 1.0,
        advantage: Advantage = "paper",
    ) -> None:
        super().__init__(n_instances, seed)
        self.alpha_u: float = ALPHA_U.read("alpha_u", alpha_u)
        self.advantage: Advantage = ADVANTAGE.read("advantage", advantage)
        self.valid = np.zeros(n_instances, np.int64)
        self.total = np.zeros(n_instances)
        self.least = np.full(n_instances, np.inf)
        self.largest = np.full(n_instances, -np.inf)

    def metric(self) -> np.ndarray:
        """Return u of each instance (Eq. 6), 0 where its returns are all equal or none is known."""
        u = np.zeros(self.n_instances)
        spread = self.largest - self.least
        known = (self.valid > 0) & np.isfinite(spread) & (spread > 0.0)
        mean = self.total[known] / self.valid[known]
        if self.advantage == "paper":
            u[known] = (self.largest[known] - mean) / spread[known]
        else:
            u[known] = (mean - self.least[known]) / spread[known]
        return u.clip(0.0, 1.0)

    def probabilities(self) -> np.ndarray:
        """Return the probability of drawing each instance, 0 for those never tried; they sum to 1."""
        tried = self.count > 0
        if not tried.any():
            return np.zeros(self.n_instances)
        bonus = np.sqrt(np.log(self.count.sum()) / self.count[tried])
        score = self.metric()[tried] + self.alpha_u * bonus
        weight = np.exp(score - score.max())
        probability = np.zeros(self.n_instances)
        probability[tried] = weight / weight.sum()
        return probability

    def assign(self, n_groups: int, generation: int) -> np.ndarray:
        """Return an instance per group: untried ones first in turn, the others by softmax."""
        untried = np.flatnonzero(self.count == 0)
        if len(untried) == self.n_instances:
            return np.arange(n_groups) % self.n_instances
        cumulative = np.cumsum(self.probabilities())
        # The last tried instance takes what rounding leaves of the sum.
        drawn = np.searchsorted(
            cumulative, self.draw(n_groups, generation) * cumulative[-1], "right"
        )
        chosen: np.ndarray = np.minimum(drawn, np.flatnonzero(self.count)[-1]).astype(np.int64)
        first = untried[:n_groups]
        chosen[: len(first)] = first
        return chosen

    def _count(self, ids: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
        finite = np.isfinite(values)
        known, values = ids[finite], values[finite]
        least, largest = self.least.copy(), self.largest.copy()
        np.minimum.at(least, known, values)
        np.maximum.at(largest, known, values)
        return {
            **super()._count(ids, values),
            "valid": self.valid + np.bincount(known, minlength=self.n_instances),
            "total": self.total + np.bincount(known, weights=values, minlength=self.n_instances),
            "least": least,
            "largest": largest,
        }


class UniformSampler(InstanceSampler):
    """Each instance equally often: member index modulo the number of instances.

    Where that does not go evenly, the next generation goes on with the next instance.
    """

    def assign(self, n_groups: int, generation: int) -> np.ndarray:
        """Return the instances in turn, from where the last generation ended."""
        first = generation * n_groups % self.n_instances
        return (first + np.arange(n_groups)) % self.n_instances


class RandomSampler(InstanceSampler):
    """Every instance with the same probability, independently for each member."""

    def assign(self, n_groups: int, generation: int) -> np.ndarray:
        """Return an independent uniform draw per group."""
        drawn: np.ndarray = (self.draw(n_groups, generation) * self.n_instances).astype(np.int64)
        return drawn


class SingleSampler(InstanceSampler):
    """Only the first instance."""

    def assign(self, n_groups: int, generation: int) -> np.ndarray:
        """Return the first instance for every group."""
        return np.zeros(n_groups, np.int64)


def make_sampler(
    name: Sampler | OwnSampler,
    n_instances: int,
    seed: Whole = 0,
    *,
    alpha_u: float = 1.0,
    advantage: Advantage = "paper",
) -> InstanceSampler:
    """Return the sampler of this name, or one of your own.

    Parameters
    ----------
    name : {"ais", "uniform", "random", "single"}, class or InstanceSampler
        A class, or any function, is called with n_instances and seed; a sampler is copied.
    n_instances, seed : int
    alpha_u, advantage
        As `AdaptiveSampler`; the others ignore them.

    Raises
    ------
    ConfigError
        If the name or the advantage is unknown, or what is yours is no sampler of so many instances.
    """
    ADVANTAGE.read("advantage", advantage)
    found = SAMPLER_FIELD.read("sampler", name)
    if isinstance(found, Own):
        own = found.load()
        is_one = isinstance(own, InstanceSampler)
        made = copy.deepcopy(own) if is_one else found.call(n_instances, seed)
        if not isinstance(made, InstanceSampler) or vars(made).get("n_instances") != n_instances:
            expected = (
                f"a subclass of acerl_np.evolution.InstanceSampler, of {n_instances} instances"
            )
            refuse(f"sampler: {found}", made, expected, ConfigError)
        return made
    if found == "ais":
        return AdaptiveSampler(n_instances, seed, alpha_u=alpha_u, advantage=advantage)
    others: dict[str, type[InstanceSampler]] = {
        "uniform": UniformSampler,
        "random": RandomSampler,
        "single": SingleSampler,
    }
    return others[found](n_instances, seed)
