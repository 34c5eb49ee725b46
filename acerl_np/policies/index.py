"""Index policies: a small linear function of some features scores every possible assignment.

A pair of a free vehicle and a waiting task is scored from features in units of the floor; the pair of the
largest score is taken. Half of the features finish the plan: the vehicle takes the task, and all tasks that
wait already follow greedily. Nothing depends on the number of vehicles, tasks or sites, so that one policy
serves any fleet and floor.

Such priority indices are common in dispatching (Panwalkar and Iskander, "A survey of scheduling rules",
Operations Research 25 (1977) 45-61); to complete a partial plan by a rule in order to rate its next step is
the pilot method (Duin and Voss, "The pilot method", Networks 34 (1999) 181-191). Here the function is
learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core import state as S
from acerl_np.kernels.dispatching.deciders import (
    IndexDecider,
    make_baseline_decider,
    make_index_decider,
)
from acerl_np.kernels.dispatching.index import N_INDEX_FEATURES, N_WAIT_FEATURES, Index
from acerl_np.policies.files import AnyPolicy, Places, Prepared
from acerl_np.policies.origin import Origin
from acerl_np.policies.own import FUNCTIONS, PairFunction, check_function, compile_pairs
from acerl_np.policies.rules import PAIRING, RULES, find_policy_name
from acerl_np.problem.choices import CHANGES, COMMITMENT, MAX_CHANGES
from acerl_np.problem.instance import Instance
from acerl_np.problem.tables import set_commitment
from acerl_np.support.errors import PolicyError, describe, refuse
from acerl_np.support.fields import Field
from acerl_np.support.own import load_kept, load_own, write_own
from acerl_np.support.trust import TRUST, is_own_name, trusting


class Feature(NamedTuple):
    """A feature of a pair or of waiting; or a threshold of charging, which is moved.

    Attributes
    ----------
    name : str
    scale : float
        Typical difference between the pairs of a decision, in the feature's unit: a weight counts per such
        difference, so that weights can be compared. Measured on DMH-01 to -08.
    unit : str, "s" for times, which are counted in units of the floor (see `kernels.state.Problem`), else ""
    words : str, what the feature is
    function : callable or None, a user's (floor, vehicle, task) -> float; the package's come from one kernel
    of : {"pair", "wait", "charging"}
    """

    name: str
    scale: float
    unit: str
    words: str
    function: PairFunction | None = None
    of: Literal["pair", "wait", "charging"] = "pair"

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to other processes by name, which import a user's function."""
        return _fetch_feature, (str(self.name),)


def _fetch_feature(name: str) -> Feature:
    """Return a feature that a pickle names."""
    with trusting(True):
        return find_feature(name)


# In the order in which `kernels.index` numbers them.
FEATURES = (
    Feature("approach", 0.4, "s", "way to the pickup"),
    Feature("loaded", 0.4, "s", "way from pickup to delivery, handling included"),
    Feature("slack", 0.5, "s", "time to spare if taken now, at most four units"),
    Feature("lateness", 0.5, "s", "lateness if taken now"),
    Feature("waiting", 0.5, "s", "time that the task has waited"),
    Feature("last_end", 0.25, "s", "time until all that wait are done"),
    Feature("total_late", 0.5, "s", "lateness of all of them"),
    Feature("n_late", 0.3, "", "number of them that will be late"),
    Feature("empty", 0.45, "s", "way to all their pickups"),
    Feature("imbalance", 0.4, "s", "time between the first and the last vehicle's end"),
    Feature("current", 1.0, "", "keeping the present vehicle"),
    Feature("gain", 0.4, "s", "time that it is earlier than the present vehicle"),
    Feature("level", 0.3, "", "level of the battery"),
    Feature("reserve", 0.3, "", "level beyond what the task needs"),
    Feature("charger_near", 0.3, "s", "way from the delivery to the nearest charger"),
    Feature("work_left", 0.5, "s", "processing after it, and the rest of its chain"),
    Feature("machine_busy", 0.5, "s", "time until the machine at the delivery is free"),
    Feature("ready_in", 0.4, "s", "time until it may be loaded"),
    Feature("wait", 1.0, "", "waiting", of="wait"),
    Feature("idle_share", 0.3, "", "waiting with many free vehicles", of="wait"),
    Feature("crowd", 0.5, "", "waiting with many tasks for each vehicle", of="wait"),
    Feature("next_free", 0.5, "s", "waiting when no vehicle is free soon", of="wait"),
    Feature("next_due", 0.5, "s", "waiting when nothing is due soon", of="wait"),
    Feature("charging_share", 0.3, "", "waiting with many vehicles at chargers", of="wait"),
    Feature("resume", 1.0, "", "level from which a charging vehicle is free", of="charging"),
    Feature("good", 1.0, "", "level below which an idle vehicle charges", of="charging"),
    Feature("full", 1.0, "", "level up to which it charges", of="charging"),
)
KNOWN = tuple(feature.name for feature in FEATURES)
NAMES = KNOWN[:10]
"""Those that every policy has unless told otherwise."""
RECALLING, ENERGY, CHAINED = KNOWN[10:12], KNOWN[12:15], KNOWN[15:18]
WAITING = tuple(feature.name for feature in FEATURES if feature.of == "wait")
CHARGING = tuple(feature.name for feature in FEATURES if feature.of == "charging")

EXPECTED = f"some of {', '.join(KNOWN)}, or functions with @acerl_np.feature"

START = {"approach": -1.0, "current": 1.0, "wait": -5.0}
"""Weights of the start: about the baseline nearest, which seldom calls a vehicle back and hardly waits."""

LATE, RELIEF = ("commitment", "max_changes"), ("beyond", "relief", "guard")
"""What a file holds only where it is told."""

BEYOND = Field(float, 0.0, 1e6, above=True, optional=True)
"""Tasks that wait for each vehicle, and times as long as a task was given that it may be late."""

THRESHOLD_STEP = 0.2
"""Share of a battery above its critical level by which a weight of 1 moves a threshold."""


class OwnName(str):
    """The name of a user's feature in files; whoever keeps it keeps the feature."""

    feature: Feature

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("name"), (self.feature,)

    def __deepcopy__(self, memo: object) -> OwnName:
        return self


FEATURE = "_acerl_np_feature"
"""Attribute of a user's function that holds its feature."""


def find_feature(name: str) -> Feature:
    """Return a feature by its name in a policy, a user's by `module:name` in a file; else a `PolicyError`."""
    if name in KNOWN:
        return FEATURES[KNOWN.index(name)]
    if isinstance(name, OwnName):
        return name.feature
    if TRUST.get() is None:
        return _leave_out(name)
    return _take_feature(load_kept(name, "feature", PolicyError), name)


def _leave_out(name: str) -> Feature:
    """Return a feature in the place of one that is not imported."""
    own = OwnName(name)
    own.feature = Feature(own, 1.0, "", "value of a user's function")
    return own.feature


def _take_feature(found: object, name: object) -> Feature:
    feature = getattr(found, FEATURE, found)
    if not isinstance(feature, Feature):
        raise PolicyError(f"feature: {describe(name)}: no function with @acerl_np.feature")
    return feature


def find_by_number(index: Index, k: int) -> Feature:
    """Return the feature of a number in `Index.used`."""
    if k < N_INDEX_FEATURES:
        return FEATURES[k]
    feature: Feature = getattr(FUNCTIONS[index.own[k - N_INDEX_FEATURES]], FEATURE)
    return feature


def check_features(given: object) -> tuple[str, ...]:
    """Return the names of features, the package's in the order of `FEATURES`, then users' as they are given.

    A feature of a user's is itself or its `module:name`; its name in files is returned.

    Raises
    ------
    PolicyError
        If there is no such feature, none at all, or two of one name.
    """
    listed = (given,) if isinstance(given, str | Feature) else given
    names = list(listed) if isinstance(listed, Iterable) else []
    for k, item in enumerate(names):
        if is_own_name(item) and not isinstance(item, OwnName):
            item = _take_feature(load_own(item, "feature", PolicyError), item)
        names[k] = item.name if isinstance(item, Feature) else item
    if not names or not all(name in KNOWN or isinstance(name, OwnName) for name in names):
        raise PolicyError(f"features: read {describe(given)}; expected {EXPECTED}")
    own = {name: name for name in names if name not in KNOWN}
    for name in names:
        if name not in KNOWN and name.feature is not own[name].feature:
            raise PolicyError(f"features: read two functions {describe(name)}; expected one")
    return (*(name for name in KNOWN if name in names), *own.values())


def suggest_features(instances: Iterable[Instance], commitment: str) -> tuple[str, ...]:
    """Return the features that records ask for: of batteries and chains if there are any, of call-backs."""
    recalling = RECALLING if commitment == "pickup" else ()
    energy = ENERGY if any(any(item.layout.batteries) for item in instances) else ()
    chained = () if all(item.is_plain for item in instances) else CHAINED
    return (*NAMES, *recalling, *energy, *chained)


def start_weights(features: Sequence[str]) -> np.ndarray:
    """Return the first weights of a training, ndarray(float64, (n_features,))."""
    return np.array([START.get(name, 0.0) for name in features])


def build_index(thetas: np.ndarray, features: Sequence[str], planned_breakdowns: bool) -> Index:
    """Return kernel tables of functions, one per row of `thetas` (ndarray(float, (N, n_features)))."""
    found = [find_feature(name) for name in features]
    own = [feature for feature in found if feature.function]
    scaled = thetas / [feature.scale for feature in found]
    pairs = [k for k, feature in enumerate(found) if feature.of == "pair"]
    waits = [k for k, feature in enumerate(found) if feature.of == "wait"]
    parameters = scaled[:, pairs]
    if waits:
        waiting = np.zeros((len(thetas), N_WAIT_FEATURES))
        waiting[:, [WAITING.index(found[k].name) for k in waits]] = scaled[:, waits]
        parameters = np.concatenate([parameters, waiting], axis=1)
    numbers = [KNOWN.index(name) for name in features if name in KNOWN[:N_INDEX_FEATURES]]
    used = np.array([*numbers, *range(N_INDEX_FEATURES, N_INDEX_FEATURES + len(own))], np.int32)
    return Index(
        np.ascontiguousarray(parameters, np.float32),
        used,
        bool(waits),
        planned_breakdowns,
        np.zeros(len(own), np.uint64),
        np.array([feature.unit == "s" for feature in own], np.bool_),
    )


def move_thresholds(problem: S.Problem, theta: np.ndarray, features: Sequence[str]) -> S.Problem:
    """Return tables of batteries whose thresholds are moved as a policy's parameters say, in their order.

    `full` stays at least what the floor says, up to which its tasks are known to be feasible.
    """
    moves = {name: theta[features.index(name)] for name in CHARGING if name in features}
    if not moves:
        return problem
    battery = problem.battery.copy()
    low, most = battery["critical"], battery["capacity"]
    room = most - low
    for name, least in (("full", battery["full"].copy()), ("good", low), ("resume", low)):
        step = THRESHOLD_STEP * np.clip(moves.get(name, 0.0), -1e3, 1e3) * room
        moved = battery[name] + np.rint(step).astype(np.int64)
        most = battery[name] = np.minimum(most, np.maximum(least, moved))
    return problem._replace(battery=battery)


def seat_index(
    index: Index, features: Sequence[str], problem: S.Problem, greedy: bool
) -> Callable[[], IndexDecider]:
    """Return what makes a worker's decider; users' features are compiled."""
    own = [function for name in features if (function := find_feature(name).function)]
    if own:
        made = [compile_pairs(function, problem) for function in own]
        kind = np.uint64 if isinstance(made[0], int) else np.object_
        index = index._replace(own=np.array(made, kind))
    return lambda: make_index_decider(index, problem, greedy)


class IndexPolicy(AnyPolicy):
    """A trained index function: it scores every pair of a free vehicle and a waiting task.

    Parameters
    ----------
    theta : array_like of float, (n_features,)
        A weight per feature, in the order of `FEATURES`, users' last.
    features : sequence of str or Feature
        What it looks at, by default `NAMES`, the first ten of `FEATURES`; also functions with `feature`. With
        features of waiting it may choose to wait, and thresholds of charging are moved.
    planned_breakdowns : bool
        Whether it looks at the breakdowns that a layout lists when it finishes the plan.
    commitment : {"assignment", "pickup"}, optional
        Until when tasks may change hands where it decides; by default as the floor says.
    max_changes : int
        How often a task may, with commitment "pickup".
    beyond : float, optional
        Tasks that wait for each vehicle beyond which `relief` decides; by default it never does.
    relief : str
        One of `PAIRING`.
    guard : float, optional
        A task that is late by more than `guard` times the time that it was given goes first, to the free
        vehicle that is there soonest, unless `relief` decides; and of what waits beyond, a late task counts
        as 2.5. By default there is no guard.
    origin : Origin, optional
        Where it was trained.

    Raises
    ------
    PolicyError
        If a feature is unknown, the sizes contradict each other, or a number is not finite.

    See Also
    --------
    ACERL : Trains one by the preset "best".
    feature : A feature of your own.
    Lookahead : Looks ahead with one.

    Examples
    --------
    >>> import acerl_np
    >>> policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, imbalance=-1.0, total_late=-0.5)
    >>> sim = acerl_np.Simulator(acerl_np.load_instance("DMH-01"), policy=policy)
    >>> while not sim.done.all():
    ...     sim.assign(*policy.choose(sim))
    >>> bool(sim.makespan[0] < 2000)
    True
    """

    form: ClassVar[str] = "index"
    portable: ClassVar[bool] = True
    kinds: ClassVar[Mapping[str, tuple[str, int]]] = {
        "theta": ("f", 1),
        "features": ("u", 1),
        "planned_breakdowns": ("b", 0),
    }

    def __init__(
        self,
        theta: ArrayLike,
        *,
        features: Sequence[str | Feature] = NAMES,
        planned_breakdowns: bool = True,
        commitment: str | None = None,
        max_changes: int = MAX_CHANGES,
        beyond: float | None = None,
        relief: str = "nearest",
        guard: float | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.features = check_features(features)
        self.beyond = BEYOND.read("beyond", beyond, PolicyError)
        self.guard = BEYOND.read("guard", guard, PolicyError)
        self.relief = find_policy_name(relief, PAIRING)
        self.planned_breakdowns = bool(planned_breakdowns)
        if commitment is not None:
            self.commitment = COMMITMENT.read("commitment", commitment, PolicyError)
        self.max_changes = CHANGES.read("max_changes", max_changes, PolicyError)
        self.theta = np.array(theta, np.float64)
        self.theta.flags.writeable = False
        if self.theta.shape != (len(self.features),):
            refuse("theta", f"shape {self.theta.shape}", f"({len(self.features)},)", PolicyError)
        with np.errstate(over="ignore"):  # what overflows is refused below
            self.index = build_index(self.theta[None], self.features, self.planned_breakdowns)
        if not np.isfinite(self.index.parameters).all():
            raise PolicyError("theta: not finite; expected finite numbers")
        self.origin = origin

    @classmethod
    def of_weights(cls, **weights: float) -> IndexPolicy:
        """Return a policy by the weights of the features that it looks at.

        Raises
        ------
        PolicyError
            If there is no feature of a name, or none at all.
        """
        own = {check_features(name)[0]: weight for name, weight in weights.items()}
        features = check_features(list(own))
        return cls([own[name] for name in features], features=features)

    def replace(self, theta: ArrayLike) -> IndexPolicy:
        """Return this policy with other weights."""
        return self._change(theta=theta)

    def switch(
        self, beyond: float | None, relief: str = "nearest", guard: float | None = None
    ) -> IndexPolicy:
        """Return this policy with a rule that decides beyond so many waiting tasks a vehicle, and a guard.

        What is learned on normal days fails where tasks pile up; a rule then bears more. And it abandons
        single tasks, as one that is late counts once however late it is.

        Parameters
        ----------
        beyond : float or None
            Tasks that wait for each vehicle of the fleet, above 0; None: the policy decides alone.
        relief : str
            Which of `PAIRING` decides then.
        guard : float or None
            Times as long as it was given that a task may be late before it goes first; None: it never does.

        Returns
        -------
        IndexPolicy

        Raises
        ------
        PolicyError
            If there is no such rule, or a number is not usable.
        """
        return self._change(beyond=beyond, relief=relief, guard=guard)

    def _change(self, **changes: Any) -> IndexPolicy:
        names = "theta", "features", "planned_breakdowns", "origin", *LATE, *RELIEF
        return IndexPolicy(**{**{name: getattr(self, name) for name in names}, **changes})

    def __repr__(self) -> str:
        return f"IndexPolicy({len(self.features)} features)"

    @property
    def names_code(self) -> bool:
        """Whether its file names a function of a user's: a feature, or what it was trained for."""
        return any(map(is_own_name, self.features)) or super().names_code

    def _prepare(self, problem: S.Problem, places: Places, greedy: bool) -> Prepared:
        problem = move_thresholds(problem, self.theta, self.features)
        if self.commitment is not None:
            problem = set_commitment(problem, self.commitment, self.max_changes)
        make = seat_index(self.index, self.features, problem, greedy)
        if self.beyond is self.guard is None:
            return problem, make
        rule, told = RULES[self.relief], {"threshold": self.beyond, "guard": self.guard}
        own = {name: value for name, value in told.items() if value is not None}
        return problem, lambda: make()._replace(
            fallback=make_baseline_decider(rule, problem), **own
        )

    def _pack(self) -> dict[str, np.ndarray]:
        told = () if self.commitment is None else LATE
        told = told if self.beyond is self.guard is None else (*told, *RELIEF)
        known = {name: x for name in told if (x := getattr(self, name)) is not None}
        return {
            **{name: np.array(x) for name, x in known.items()},
            "theta": self.theta,
            "features": np.frombuffer("\n".join(self.features).encode(), np.uint8),
            "planned_breakdowns": np.array(self.planned_breakdowns),
        }

    @classmethod
    def _unpack(cls, arrays: Mapping[str, np.ndarray], origin: Origin | None) -> Self:
        try:
            text = arrays["features"].astype(np.uint8).tobytes().decode()
        except UnicodeDecodeError as error:
            expected = "features: not text; the file holds no policy of this format"
            raise PolicyError(expected) from error
        features = [find_feature(x) if is_own_name(x) else x for x in text.split("\n")]
        told = {name: arrays[name].tolist() for name in (*LATE, *RELIEF) if name in arrays}
        return cls(
            arrays["theta"],
            features=features,
            planned_breakdowns=bool(arrays["planned_breakdowns"]),
            **told,
            origin=origin,
        )


def feature(
    *, scale: float, words: str = "", unit: Literal["", "s"] = ""
) -> Callable[[PairFunction], Feature]:
    """Make a feature of index policies of a function of a floor, an idle vehicle and a waiting task.

    `Config(features=["approach", mine])` trains its weight; the policy's file names the function's module.

    Parameters
    ----------
    scale : float
        Typical difference between the pairs of a decision: a weight counts per such difference.
    words : str
        What it is, for explanations; by default the function's name.
    unit : {"", "s"}
        "s" for times: they are counted in units of the floor (`Floor.unit`), and `scale` in these.

    Returns
    -------
    callable
        Of the function; returns a `Feature`.

    Raises
    ------
    PolicyError
        If it is no function of three parameters, or an option is unusable; when it is first used, if it
        cannot be compiled.

    See Also
    --------
    rule : A policy of such a function.
    Config : Its features train.
    Floor : What it may ask.

    Examples
    --------
    >>> import acerl_np
    >>> @acerl_np.feature(scale=0.4, words="load that a vehicle leaves free")
    ... def spare(floor, vehicle, task):
    ...     return 1.0 - floor.demand(task) / max(1.0, floor.capacity(vehicle))
    >>> config = acerl_np.Config.preset("best", features=["approach", "slack", spare], decisions=5000)
    """

    def make(function: PairFunction) -> Feature:
        check_function(function, "feature")
        name = OwnName(write_own(function))
        made = name.feature = Feature(
            name, float(scale), unit, words or function.__name__, function
        )
        setattr(function, FEATURE, made)
        return made

    Field(float, 0.0, 1e9, above=True).read("scale", scale, PolicyError)
    Field(("", "s"), expected="'' or 's'").read("unit", unit, PolicyError)
    return make
