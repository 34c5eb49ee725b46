"""What an `Evolution` shows of itself while it searches: nothing here changes it."""

from __future__ import annotations

import math

import numpy as np

from acerl_np.evolution.covariance import Covariance, FullCovariance
from acerl_np.evolution.progress import Progress
from acerl_np.evolution.records import Best, Result
from acerl_np.evolution.search import Search
from acerl_np.evolution.spreads import PerParameter
from acerl_np.evolution.stop import Stops, find_reasons, read_limits


class Shown:
    """The half of `Evolution` that reads: where the search stands, what it found, whether it is over."""

    population: int
    cost_limit: float
    _search: Search[PerParameter | Covariance]
    _progress: Progress
    _options: dict[str, np.ndarray]
    _start: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean of the search distribution, inside the bounds, float64 (n_parameters,), a copy."""
        return self._search.found

    @property
    def generation(self) -> int:
        """Number of finished generations."""
        return self._search.generation

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviation of the present generation's noise, float64 (n_parameters,)."""
        return self._search.sigma

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the present generation's noise, float64 (n_parameters, n_parameters).

        Without a matrix the diagonal alone, (n_parameters,). A new search that starts from `mean` with
        sigma 1 and this `covariance` goes on where this one is.
        """
        spread = self._search.spread
        if not isinstance(spread, FullCovariance):
            return np.asarray(np.square(self.sigma))
        unit = spread.unit(self.generation) * spread.state.size
        outer: np.ndarray = np.outer(unit, unit)
        return np.asarray(spread.state.covariance * outer)

    @property
    def evaluations(self) -> int:
        """Members told so far, those that failed and those before a restart included."""
        return self._progress.evaluations

    @property
    def restarts(self) -> int:
        """Number of restarts so far."""
        return self._progress.restarts

    @property
    def closest(self) -> Best | None:
        """The member of the least cost so far, the first of equal ones; None if all failed.

        It says how near the search is as long as there is no `best`.
        """
        return self._progress.closest

    @property
    def best(self) -> Best | None:
        """The best feasible member so far; None without one.

        With several instances, a member is evaluated on one of them only, and returns of different
        instances need not be comparable: judge `mean` on all of them instead.
        """
        return self._progress.best

    @property
    def failed(self) -> int:
        """Members of the last generation whose return or cost was not finite."""
        return self._progress.failed

    def stop(self, limits: Stops | None = None) -> dict[str, float]:
        """Return why the search is over; nothing, so false, while it is not.

        Nothing is changed: you may tell further generations, or `restart`.

        Parameters
        ----------
        limits : Stops, optional

        Returns
        -------
        dict of str to float
            The limits reached by name: those of `Stops`; "noeffectcoord": a fifth of sigma no longer
            changes a parameter of the mean; "noeffectaxis": nor does a tenth of a column of the
            matrix's root the mean.

        Raises
        ------
        ConfigError
            If the limits are something else.
        """
        return find_reasons(
            read_limits(limits),
            self._search,
            self._progress.record,
            evaluations=self.evaluations,
            best=-math.inf if self.best is None else self.best.return_,
        )

    def result(self, limits: Stops | None = None) -> Result:
        """Return what was found so far, and why the search is over, if it is."""
        found = self.best or self.closest
        nothing = np.full(self._start.size, np.nan)
        return Result(
            x=nothing if found is None else found.parameters.copy(),
            value=math.nan if found is None else found.return_,
            violation=math.nan if found is None else max(0.0, found.cost - self.cost_limit),
            mean=self.mean,
            feasible=self.best is not None,
            evaluations=self.evaluations,
            generations=self.generation,
            restarts=self.restarts,
            reasons=tuple(self.stop(limits)),
        )

    def __repr__(self) -> str:
        best = "no feasible member yet"
        if self.best is not None:
            best = f"best return {self.best.return_:g}"
        elif self.closest is not None:
            best += f", least cost {self.closest.cost:g}"
        return (
            f"<Evolution of {self._start.size} parameters, adapt '{self._options['adapt']}', population "
            f"{self.population}: generation {self.generation}, {self.evaluations} evaluations, {best}>"
        )
