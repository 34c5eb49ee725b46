"""Rules and features that users write: compiled where they are first needed, at the speed of the package's.

`docs/extending.md` shows both from the first line to the table.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self, get_args, overload
from weakref import WeakValueDictionary

import numba
import numpy as np

from acerl_np.kernels.core.state import Problem, allocate_state
from acerl_np.kernels.dispatching import own as kernels
from acerl_np.kernels.dispatching.floor import Floor, list_rows, list_tables
from acerl_np.policies.files import AnyPolicy, Places, Prepared
from acerl_np.policies.origin import Origin
from acerl_np.support.callbacks import compile_own
from acerl_np.support.errors import PolicyError, describe, make_printable
from acerl_np.support.fields import Field
from acerl_np.support.own import fetch, load_kept, name_compiled, name_own, write_own
from acerl_np.support.trust import TRUST

PairFunction = Callable[[Floor, int, int], float]
"""What a rule or a feature is: of the floor, an idle vehicle and a waiting task."""

VehicleChoice = Literal["rule", "random"]
VEHICLE = Field(get_args(VehicleChoice))


def check_function(function: object, what: str) -> None:
    """Refuse what is no function of a floor, a vehicle and a task; what is wrong inside numba says."""
    found = inspect.signature(function).parameters if inspect.isfunction(function) else ()
    if tuple(found) != ("floor", "vehicle", "task"):
        name = describe(getattr(function, "__name__", function))
        raise PolicyError(
            f"{what} {name}: read parameters ({', '.join(found)}); expected a function of (floor, vehicle, "
            "task) alone; constants stand above it"
        )


COMPILED = "_acerl_np"
"""Attribute of a function of a user's that holds its machine code: both go when nobody needs it any more."""

FUNCTIONS: WeakValueDictionary[Any, PairFunction] = WeakValueDictionary()
"""Functions of users by what `compile_pairs` made of them."""


def compile_pairs(function: PairFunction, problem: Problem) -> Any:
    """Return what `call_own` calls for a function of a user's, as long as that lives.

    Any problem will do, as all have arrays of the same kinds.

    Raises
    ------
    PolicyError
        If it cannot be compiled: numba's reason, and the line.
    """
    made = vars(function).get(COMPILED)
    if made is None:
        tables, rows = list_tables(problem), list_rows(allocate_state(problem, 1))
        asked = kernels.allocate_asked(1)
        kind = numba.typeof(kernels.FloorView(tables, rows, asked.vehicle, asked.task, asked.value))
        try:
            made = compile_own(
                kernels.make_rating(function), kind, name_compiled(function, str(kind))
            )
        except (numba.core.errors.NumbaError, TypeError) as error:
            raise PolicyError(_explain(function, str(error))) from None
        setattr(function, COMPILED, made)
    FUNCTIONS[made[0]] = function
    return made[0]


def _explain(function: PairFunction, told: str) -> str:
    """Return one line of what numba says: where, and why."""
    own = inspect.getsourcefile(function) or ""
    found = re.findall(r'File "([^"]+)", line (\d+)', told)
    lines = [int(n) for path, n in found if own.endswith(path.lstrip("./"))]
    told = re.sub(r"\x1b\[[0-9;]*m", "", told)
    plain = [line.strip() for line in told.splitlines() if line.strip()]
    known = (line for line in plain if re.search(r"TypeError: mean:|too many positional", line))
    first = (
        line for line in plain if not re.search(r"Failed in|^During|^-|^def |^%|^entry:", line)
    )
    reason = next(known, next(first, told)).removeprefix("TypeError: ")
    if "Function(float64)" in reason:
        reason = "it returns no number, or not always"
    if reason.startswith("Untyped global"):
        reason += "; expected numbers, tuples, and helpers with @numba.njit"
    text = make_printable(reason[:200])
    where = f"({make_printable(own)}, line {[function.__code__.co_firstlineno, *lines][-1]})"
    return f"{name_own(function)}: cannot be compiled: {text} {where}"


class OwnRule(AnyPolicy):
    """A rule of a user's, see `rule`: it serves any floor and fleet. A file holds its name.

    Attributes
    ----------
    function : callable
    name : str
    draws_vehicle : bool
    """

    origin: Origin | None = None
    form: ClassVar[str] = "rule"
    portable: ClassVar[bool] = True
    kinds: ClassVar[Mapping[str, tuple[str, int]]] = {"function": ("U", 0)}

    def __init__(self, function: PairFunction, vehicle: VehicleChoice) -> None:
        check_function(function, "rule")
        VEHICLE.read("vehicle", vehicle, PolicyError)
        functools.update_wrapper(self, function)
        self.function, self.name = function, function.__name__
        self.draws_vehicle = vehicle == "random"
        write_own(self)

    def __call__(self, floor: Floor, vehicle: int, task: int) -> float:
        """Return what the function does, not compiled."""
        return self.function(floor, vehicle, task)

    def __repr__(self) -> str:
        return name_own(self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to other processes by name: they import it."""
        return fetch, (write_own(self), "rule")

    @property
    def names_code(self) -> bool:
        """It is code."""
        return True

    def _prepare(self, problem: Problem, places: Places, greedy: bool) -> Prepared:
        rate = compile_pairs(self.function, problem)
        return problem, lambda: kernels.make_own_decider(rate, self.draws_vehicle, problem)

    def _pack(self) -> dict[str, np.ndarray]:
        return {"function": np.array(write_own(self))}

    @classmethod
    def _unpack(cls, arrays: Mapping[str, np.ndarray], origin: Origin | None) -> Self:
        name = str(arrays["function"])
        if TRUST.get() is None:
            unread = cls(lambda floor, vehicle, task: np.nan, "rule")
            unread.name = name
            return unread
        found = load_kept(name, "rule", PolicyError)
        if not isinstance(found, cls):
            raise PolicyError(f"rule: {describe(name)}: no function with @acerl_np.rule")
        return found


@overload
def rule(function: PairFunction, /) -> OwnRule: ...
@overload
def rule(*, vehicle: VehicleChoice = ...) -> Callable[[PairFunction], OwnRule]: ...
def rule(
    function: PairFunction | None = None, /, *, vehicle: VehicleChoice = "rule"
) -> OwnRule | Callable[[PairFunction], OwnRule]:
    """Make a policy of a function of a floor, an idle vehicle and a waiting task: the least value is chosen.

    It is compiled by numba when it is first needed, and goes wherever a rule's name does: `evaluate_policy`,
    `Lookahead`, `Dispatcher`, a replay, and `module:name` on the command line.

    Parameters
    ----------
    function : callable
        (floor, vehicle, task) -> float. `floor` has the functions of `kernels.floor.Floor`. A value that is
        no number comes last; of equals the task that came to wait first is chosen, then the first vehicle.
    vehicle : {"rule", "random"}
        The rule chooses the pair, of those with a way; or an idle vehicle is drawn first, as for the paper's
        rules, and the rule chooses its task.

    Returns
    -------
    OwnRule

    Raises
    ------
    PolicyError
        If it is no function of three parameters; when it is first used, if it cannot be compiled.

    See Also
    --------
    feature : A feature of index policies.
    Floor : What it may ask.
    Lookahead : Looks ahead with it.

    Examples
    --------
    >>> import acerl_np
    >>> @acerl_np.rule
    ... def cautious(floor, vehicle, task):
    ...     return floor.approach(vehicle, task) - 0.3 * floor.slack(vehicle, task)
    >>> trials = acerl_np.evaluate_policy(cautious, acerl_np.load_instance("DMH-01"), trials=1)
    """
    if function is None:
        return lambda own: OwnRule(own, vehicle)
    return OwnRule(function, vehicle)
