"""What a floor wants: an objective to make small and a limit on a cost, both measures of an episode."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.support.errors import ConfigError, InputError, refuse, refuse_unknown
from acerl_np.support.fields import MOST, Field, Several
from acerl_np.support.own import Own
from acerl_np.support.trust import is_own_name, read_kept

if TYPE_CHECKING:
    from acerl_np.kernels.core.state import Outcome

MEASURES = {
    **{"makespan": "s", "tardiness": "s", "late": "%", "waiting": "s", "empty": "%"},
    "worst": "s",
}
"""What is measured of an episode, and its unit, in the order of the kernels: until all is done; mean delay of
the tasks; share of those late; mean time from arrival to pickup; share of the metres driven empty;
how late the latest is."""

EQUIVALENTS = {name: 0.05 if unit == "%" else 1.0 for name, unit in MEASURES.items()}
"""What of each measure weighs about as much as 1 s: the scale of penalties and margins."""

SHIFT = "late+0.05*tardiness"
"""The objective of a shift unless told otherwise."""

PAPER_LIMIT = 50.0
"""s, limit on the mean tardiness where the makespan is the objective: the paper's xi."""

EXPECTED = f"weighted measures such as '{SHIFT}', of {', '.join(MEASURES)}"
OR_OWN = f"{EXPECTED}; or a function of yours, module:name"
COST_LIMIT = Field(float, -MOST, optional=True, expected="a number, or infinity for no limit")
TERM = re.compile(r"(?:((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?)\*)?([a-z]+)")
CLASS_WEIGHTS = Several(float, 1e-9, 1e9, expected="at most 100 numbers above 0", most=100)


class Measures(NamedTuple):
    """What a function of a user's own is told of episodes that have ended, in the units of `MEASURES`.

    Attributes
    ----------
    makespan, tardiness, waiting, worst : ndarray(float64, (n,)), s
    late, empty : ndarray(float64, (n,)), %
    """

    makespan: np.ndarray
    tardiness: np.ndarray
    late: np.ndarray
    waiting: np.ndarray
    empty: np.ndarray
    worst: np.ndarray


OwnMeasure: TypeAlias = Callable[[Measures], ArrayLike]
"""An objective or cost of a user's own: a number for each episode, (n,), whatever the others are."""


def read_objective(text: object, name: str = "objective") -> dict[str, float]:
    """Return the weight of each measure in a text such as "late+0.05*tardiness".

    Raises
    ------
    ConfigError
        If it is no sum of measures, each named once, with weights above 0.
    """
    weights: dict[str, float] = {}
    for term in text.replace(" ", "").split("+") if isinstance(text, str) else [""]:
        found = TERM.fullmatch(term)
        weight = float(found[1] or 1.0) if found else 0.0
        if not found or found[2] not in MEASURES or found[2] in weights or not 0.0 < weight < 1e9:
            refuse(name, f"'{text}'" if isinstance(text, str) else text, OR_OWN, ConfigError)
        weights[found[2]] = weight
    return weights


def write_objective(weights: dict[str, float]) -> str:
    """Return the text of weighted measures in its shortest form."""
    return "+".join(
        measure if weight == 1.0 else f"{weight:.12g}*{measure}"
        for measure, weight in weights.items()
    )


class ObjectiveField(Field):
    """A text of weighted measures, read in its shortest form; or a function, read as an `Own`."""

    def read(self, name: str, value: Any, error: type[Exception] = ConfigError) -> Any:
        """Return the text, or None where that is allowed; a `ConfigError` if it is none."""
        if isinstance(value, Own) or (value is None and self.optional):
            return value
        if callable(value) or is_own_name(value):
            return Own.of(value, name)
        return write_objective(read_objective(value, name))


@dataclass(frozen=True)
class Goal:
    """An objective, and a cost with a limit.

    Attributes
    ----------
    objective, cost : str or callable
        A measure of `MEASURES`, or a weighted sum in their units: "late+0.05*tardiness" takes 1 % of the
        tasks for as bad as 20 s of mean tardiness. Or a function of yours, f(measures) -> (n,), or its name,
        "module:name": it is told the `Measures` of episodes that have ended, and judges each by itself; no
        lookahead and no search in hindsight can ask it. It is kept as a text, `module:name`. The
        objective is minimised, the cost is to stay below its limit.
    cost_limit : float or None
        In the cost's unit. By default 50 s if the objective is the makespan and the cost the tardiness, as in
        the paper, and none (infinity) else.
    class_weights : tuple of float
        What a task of priority 0, 1, ... weighs in the mean tardiness, the share of late tasks and the mean
        waiting; the last is that of all priorities from there on. All alike by default.

    Raises
    ------
    ConfigError
        If one of them is unusable.

    See Also
    --------
    Config : The same for a training.
    evaluate_policy : Takes one.

    Examples
    --------
    >>> import acerl_np
    >>> goal = acerl_np.Goal("late+0.05*tardiness", cost="waiting", cost_limit=100)
    >>> goal.cost_limit
    100.0
    """

    objective: str | OwnMeasure = "makespan"
    cost: str | OwnMeasure = "tardiness"
    cost_limit: float = None  # type: ignore[assignment]
    class_weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("objective", "cost"):
            object.__setattr__(self, name, ObjectiveField(str).read(name, getattr(self, name)))
        limit = COST_LIMIT.read("cost_limit", self.cost_limit)
        if limit is None:
            is_paper = (self.objective, self.cost) == ("makespan", "tardiness")
            limit = PAPER_LIMIT if is_paper else math.inf
        object.__setattr__(self, "cost_limit", limit)
        weights = CLASS_WEIGHTS.read("class_weights", self.class_weights)
        object.__setattr__(self, "class_weights", weights)

    @property
    def has_limit(self) -> bool:
        """Whether the cost has a limit."""
        return self.cost_limit < math.inf

    @property
    def format(self) -> str:
        """How the objective is written: tenths of seconds, hundredths where 1 s weighs less."""
        return ".1f" if self.objective in ("makespan", "waiting", "empty", "worst") else ".2f"

    def show(self, value: float) -> str:
        """Return an objective's value with its unit."""
        return f"{value:{self.format}}{self.unit and f' {self.unit}'}"

    @property
    def limit(self) -> str:
        """The limit with its unit."""
        return f"{self.cost_limit:g}{self.cost_unit and f' {self.cost_unit}'}"

    def describe(self) -> str:
        """Return the goal in words: the objective, the limit, and what classes of priority weigh."""
        words = [f"{self.objective}"]
        if self.has_limit:
            words.append(f"{self.cost} below {self.limit}")
        if self.class_weights:
            words.append(f"priorities weigh {', '.join(f'{x:g}' for x in self.class_weights)}")
        return ", ".join(words)

    @property
    def unit(self) -> str:
        """Unit of the objective, empty where it adds measures of different ones."""
        return find_unit(self.objective)

    @property
    def cost_unit(self) -> str:
        """Unit of the cost, empty where it adds measures of different ones."""
        return find_unit(self.cost)

    @property
    def scale(self) -> float:
        """What of the objective weighs as much as 1 s of makespan."""
        return _measure_scale(self.objective)

    @property
    def cost_scale(self) -> float:
        """What of the cost weighs as much as 1 s of tardiness."""
        return _measure_scale(self.cost)

    @property
    def own(self) -> dict[str, Own]:
        """The functions of a user's own among objective and cost, by "objective" and "cost"."""
        both = {"objective": self.objective, "cost": self.cost}
        return {name: x for name, x in both.items() if isinstance(x, Own)}

    def without_own(self) -> Goal:
        """Return the goal of those that only play and measure: the usual in the place of functions."""
        return replace(self, **{name: getattr(Goal, name) for name in self.own})

    def refuse_own(self, who: str, error: type[Exception] = InputError) -> None:
        """Refuse functions of a user's own for what asks the goal in compiled code.

        Parameters
        ----------
        who : str, which the error names
        error : type, of what is raised
        """
        for name, own in self.own.items():
            raise error(f"{name}: {who} cannot ask a function ({own}); expected {EXPECTED}")

    def weigh(self, played: Outcome) -> Outcome:
        """Return what was played, with what functions of a user's own say of it; nan where it did not end."""
        for name, own in self.own.items():
            ended = np.isfinite(played.makespan)
            values = np.full(ended.shape, np.nan)
            if ended.any():
                given = Measures._make(
                    getattr(played, measure)[ended] * (100.0 if unit == "%" else 1.0)
                    for measure, unit in MEASURES.items()
                )
                values[ended] = own.ask(int(ended.sum()), given)
            played = played._replace(**{"value" if name == "objective" else "cost": values})
        return played

    def make_table(self) -> np.ndarray:
        """Return the weights as kernels take them, ndarray(float64, (2, n_measures)), nan of a function."""
        table = np.full((2, len(MEASURES)), np.nan)
        for row, text in zip(table, (self.objective, self.cost), strict=True):
            if isinstance(text, Own):
                text.load()  # before anything is played
            else:
                weights = read_objective(text)
                row[:] = [weights.get(measure, 0.0) for measure in MEASURES]
        return table

    def make_class_weights(self) -> np.ndarray:
        """Return the weight of each class of priority as kernels take them, ndarray(float64, (n,))."""
        return np.array(self.class_weights or (1.0,))

    def to_dict(self) -> dict[str, Any]:
        """Return the goal as plain values; the limit is None where there is none."""
        names = {name: str(own) for name, own in self.own.items()}
        limit = self.cost_limit if self.has_limit else None
        return {**asdict(self), **names, "cost_limit": limit}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Goal:
        """Build a goal from `to_dict`; what it names of a user's is found when it is asked for."""
        refuse_unknown(data, cls.__dataclass_fields__, "unknown key of a goal")
        own = {name: read_kept(data[name], name) for name in ("objective", "cost") if name in data}
        without_limit = {"cost_limit": math.inf} if data.get("cost_limit", 0.0) is None else {}
        return cls(**{**data, **own, **without_limit})


PAPER = Goal()
"""The paper's: the smallest makespan with a mean tardiness below 50 s."""


def find_goal(objective: str | Goal | OwnMeasure, cost_limit: float | None = None) -> Goal:
    """Return a goal: it itself, or that of an objective and a limit on the mean tardiness."""
    if isinstance(objective, Goal):
        if cost_limit is not None:
            expected = "it in the Goal, Goal(cost_limit=...)"
            refuse("cost_limit", cost_limit, expected, ConfigError)
        return objective
    return Goal(objective, cost_limit=cost_limit)  # type: ignore[arg-type]


def find_unit(objective: str | OwnMeasure) -> str:
    """Return the unit of an objective, empty where it adds measures of different ones, or is a function."""
    if is_own_name(objective):
        return ""
    units = {MEASURES[measure] for measure in read_objective(objective)}
    return units.pop() if len(units) == 1 else ""


def _measure_scale(objective: str | OwnMeasure) -> float:
    if isinstance(objective, Own):
        return 1.0  # it weighs as it likes
    weights = read_objective(objective)
    return max(weight * EQUIVALENTS[measure] for measure, weight in weights.items())
