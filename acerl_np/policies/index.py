"""Index policies: one small function of some twenty features scores every possible assignment.

A pair of an idle vehicle and a waiting task is scored from features in units of the floor; the pair of the
largest score is taken. Nothing depends on the number of vehicles, tasks or sites, so that one policy serves
any fleet and floor. Such priority indices are common in dispatching (Panwalkar and Iskander, "A survey of
scheduling rules", Operations Research 25 (1977) 45-61); here the function is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.deciders import Decider, make_index_decider
from acerl_np.kernels.index import Index
from acerl_np.kernels.random import INITIAL
from acerl_np.kernels.state import Problem
from acerl_np.kernels.update import fill_stream
from acerl_np.policies.files import AnyPolicy
from acerl_np.policies.origin import Origin
from acerl_np.support.errors import PolicyError, describe
from acerl_np.support.numbers import is_whole

if TYPE_CHECKING:
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.layout import Layout

Knowledge = Literal["breakdowns", "tasks", "time", "vehicles"]
KNOWLEDGE: tuple[Knowledge, ...] = get_args(Knowledge)
"""What not every floor knows: planned breakdowns; how many tasks are still to come; how far the day has
gone, by the last arrival; which vehicle is which."""

MAX_HIDDEN = 64


class Feature(NamedTuple):
    """A feature of a pair.

    Attributes
    ----------
    name : str
    needs : str or None
        What must be known; "hidden" if only hidden units can use it, as all pairs of a decision share it.
    scale : float
        Typical difference between the pairs of a decision, in the feature's unit: a weight counts per such
        difference, so that weights can be compared. Measured on DMH-01 to -08.
    words : str, what the feature is; units are the floor's, see `kernels.state.Problem`
    """

    name: str
    needs: Knowledge | Literal["hidden"] | None
    scale: float
    words: str


# In the order in which `kernels.index` numbers them.
FEATURES = (
    Feature("approach", None, 0.4, "way to the pickup"),
    Feature("loaded", None, 0.4, "way from pickup to delivery, handling included"),
    Feature("slack", None, 0.7, "time to spare if taken now, at most four units"),
    Feature("urgency", None, 0.35, "what lacks to one unit of time to spare"),
    Feature("lateness", None, 1.3, "lateness if taken now"),
    Feature("waiting", None, 0.9, "time that the task has waited"),
    Feature("other_soonest", None, 0.4, "time until another vehicle could fetch it"),
    Feature("other_lateness", None, 0.9, "lateness if left to that other vehicle"),
    Feature("next_pickup", None, 0.3, "way from the delivery to the nearest next pickup"),
    Feature("mean_pickup", None, 0.3, "mean way from the delivery to the other pickups"),
    Feature("next_slack", None, 0.7, "least time to spare of the others after this trip"),
    Feature("earlier_due", None, 0.4, "share of the other tasks that are due earlier"),
    Feature("crowd_approach", None, 0.3, "approach, the more tasks wait per vehicle"),
    Feature("crowd_slack", None, 0.4, "slack, the more tasks wait per vehicle"),
    Feature("crowd", "hidden", 0.3, "tasks that wait per vehicle, at most two, halved"),
    Feature("idle_share", "hidden", 0.3, "share of the vehicles that are idle"),
    Feature("breaks", "breakdowns", 0.15, "whether a planned breakdown falls into the trip"),
    Feature("wasted", "breakdowns", 0.3, "time that such a trip lasts until the breakdown"),
    Feature("margin", "breakdowns", 0.5, "time from the trip's end to the next breakdown"),
    Feature("margin_loaded", "breakdowns", 0.4, "loaded, the more of it is left"),
    Feature("last_approach", "tasks", 0.2, "approach once all tasks have arrived"),
    Feature("last_loaded", "tasks", 0.15, "loaded once all tasks have arrived"),
    Feature(
        "last_overshoot", "tasks", 0.2,
        "time that the trip ends after all others, once all tasks have arrived",
    ),
    Feature("arrived_approach", "tasks", 0.3, "approach, the more have arrived"),
    Feature("time_approach", "time", 0.3, "approach, the later it is"),
    Feature("time_slack", "time", 0.4, "slack, the later it is"),
)  # fmt: skip

START = {"approach": -1.0, "loaded": -1.0}
"""Weights of the start: about the rule STD."""


def list_features(knowledge: Iterable[str] = (), *, hidden: int = 0) -> tuple[Feature, ...]:
    """Return the features of a function with so many hidden units that needs no other knowledge than this."""
    known = {None, *knowledge, *(["hidden"] if hidden else [])}
    return tuple(feature for feature in FEATURES if feature.needs in known)


def _choose(name: str, given: object, known: Sequence[str]) -> tuple[str, ...]:
    """Return those of the known names that are given, in their order; refuse any other."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable) or not set(names := tuple(names)) <= set(known):
        raise PolicyError(f"{name}: read {describe(given)}; expected some of {', '.join(known)}")
    return tuple(one for one in known if one in names)


def check_features(names: object) -> tuple[str, ...]:
    """Return names of features in the order of `FEATURES`; refuse unknown ones with a `PolicyError`."""
    return _choose("features", names, [feature.name for feature in FEATURES])


def check_knowledge(knowledge: object) -> tuple[Knowledge, ...]:
    """Return kinds of knowledge in the order of `KNOWLEDGE`; refuse unknown ones with a `PolicyError`."""
    return _choose("knowledge", knowledge, KNOWLEDGE)  # type: ignore[return-value]


class IndexShape(NamedTuple):
    """What an index function looks at, and its size.

    Attributes
    ----------
    knowledge : tuple of str, kinds of `KNOWLEDGE`
    hidden : int, hidden units, 0 for a linear function
    vehicles : tuple of str, ids of the vehicles that are told apart, with the knowledge "vehicles"
    without : tuple of str, names of features that are left out
    """

    knowledge: tuple[Knowledge, ...] = ()
    hidden: int = 0
    vehicles: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features that are looked at."""
        listed = list_features(self.knowledge, hidden=self.hidden)
        return tuple(feature for feature in listed if feature.name not in self.without)

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases."""
        n = len(self.features)
        return n + (n + 2) * self.hidden + len(self.vehicles)

    def start(self, seed: int) -> np.ndarray:
        """Return the first parameters, ndarray(float64, (n_parameters,)).

        The linear part is that of `START`; hidden units see random mixtures (He et al. 2015), and their
        output weights are zero.
        """
        names = [feature.name for feature in self.features]
        theta = np.zeros(self.n_parameters)
        for name, weight in START.items():
            if name in names:
                theta[names.index(name)] = weight
        n = len(names)
        mixtures = np.empty(n * self.hidden, np.float32)
        fill_stream(seed, INITIAL, 0, 0, mixtures)
        theta[n : n + n * self.hidden] = mixtures * np.sqrt(2.0 / n)
        return theta

    def build(self, thetas: np.ndarray) -> Index:
        """Return kernel tables of functions, one per row of `thetas` (ndarray(float, (N, n_parameters)))."""
        features = self.features
        n = len(features)
        scale = np.ones(self.n_parameters)
        inverse = 1.0 / np.array([feature.scale for feature in features])
        scale[:n] = inverse
        scale[n : n + n * self.hidden] = np.repeat(inverse, self.hidden)
        return Index(
            parameters=np.ascontiguousarray(thetas * scale, np.float32),
            used=np.array([FEATURES.index(feature) for feature in features], np.int32),
            n_hidden=self.hidden,
            n_names=len(self.vehicles),
            knows_breakdowns="breakdowns" in self.knowledge,
            knows_rest=bool({"tasks", "time"} & set(self.knowledge)),
        )


class IndexPolicy(AnyPolicy):
    """A trained index function: it scores every pair of an idle vehicle and a waiting task.

    Parameters
    ----------
    theta : array_like of float, (n_parameters,)
        A weight per feature, in the order of `list_features(knowledge)`; with hidden units the weights of
        the first layer, input-major, the biases and the output weights; with the knowledge "vehicles" a
        bias per vehicle.
    hidden : int
        Hidden units, 0 for a linear function.
    knowledge : sequence of str
        Kinds of `KNOWLEDGE` that it looks at.
    vehicles : sequence of str
        Ids of the vehicles that it tells apart, with the knowledge "vehicles".
    without : sequence of str
        Names of features that it leaves out.
    origin : Origin, optional
        Where it was trained.

    Raises
    ------
    PolicyError
        If the sizes contradict each other, a kind of knowledge is unknown, or a number is not finite.

    Examples
    --------
    >>> import acerl_np
    >>> policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, loaded=-1.0, lateness=0.5)
    >>> sim = acerl_np.Simulator(acerl_np.load_instance("DMH-01"))
    >>> while not sim.done.all():
    ...     sim.assign(*policy.choose(sim))
    >>> bool(sim.makespan[0] < 2152)
    True
    """

    form: ClassVar[str] = "index"
    kinds: ClassVar[Mapping[str, tuple[str, int]]] = {
        "theta": ("f", 1),
        "hidden": ("i", 0),
        "features": ("u", 1),
        "knowledge": ("u", 1),
        "vehicles": ("u", 1),
    }

    @property
    def portable(self) -> bool:
        """Whether it serves any floor and fleet: it does unless it tells vehicles apart."""
        return not self.shape.vehicles

    def __init__(
        self,
        theta: ArrayLike,
        *,
        hidden: int = 0,
        knowledge: Sequence[str] = (),
        vehicles: Sequence[str] = (),
        without: Sequence[str] = (),
        origin: Origin | None = None,
    ) -> None:
        if not is_whole(hidden) or not 0 <= hidden <= MAX_HIDDEN:
            raise PolicyError(
                f"hidden: read {describe(hidden)}; expected a whole number from 0 to {MAX_HIDDEN}"
            )
        known = check_knowledge(knowledge)
        names = tuple(vehicles)
        if bool(names) != ("vehicles" in known) or len(set(names)) < len(names):
            raise PolicyError(
                f"vehicles: read {len(names)} ids; expected different ones with the knowledge "
                "'vehicles', and none without"
            )
        self.shape = IndexShape(known, int(hidden), names, check_features(without))
        self.theta = np.array(theta, np.float64)
        self.theta.flags.writeable = False
        if self.theta.shape != (self.shape.n_parameters,):
            raise PolicyError(
                f"theta: read shape {self.theta.shape}; expected ({self.shape.n_parameters},)"
            )
        with np.errstate(over="ignore"):  # what overflows is refused below
            self.index = self.shape.build(self.theta[None])
        if not np.isfinite(self.index.parameters).all():
            raise PolicyError("theta: not finite; expected finite numbers")
        self.origin = origin

    @classmethod
    def of_weights(cls, **weights: float) -> IndexPolicy:
        """Return a linear policy by the weights of its features, 0 for those not named.

        Raises
        ------
        PolicyError
            If there is no feature of a name.
        """
        by_name = {feature.name: feature for feature in FEATURES}
        for name in weights:
            if name not in by_name:
                raise PolicyError(
                    f"feature '{name}': unknown; expected one of {', '.join(by_name)}"
                )
        kinds = {by_name[name].needs for name in weights} & set(KNOWLEDGE)
        knowledge = check_knowledge(kinds)
        theta = [weights.get(feature.name, 0.0) for feature in list_features(knowledge)]
        return cls(theta, knowledge=knowledge)

    def replace(self, theta: ArrayLike) -> IndexPolicy:
        """Return this policy with other parameters."""
        return IndexPolicy(theta, **self.shape._asdict(), origin=self.origin)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features that it looks at."""
        return self.shape.features

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases."""
        return len(self.theta)

    def __repr__(self) -> str:
        kind = f"{self.shape.hidden} hidden units" if self.shape.hidden else "linear"
        return f"IndexPolicy({len(self.features)} features, {kind}, {self.n_parameters} parameters)"

    def _prepare(
        self, problem: Problem, places: Sequence[Instance | Layout], greedy: bool
    ) -> tuple[Problem, Callable[[], Decider]]:
        return problem, lambda: make_index_decider(self.index, problem, greedy)

    def _find_misfit(self, layout: Layout) -> str | None:
        own = self.shape.vehicles
        fleet = tuple(vehicle.id for vehicle in layout.vehicles)
        if not own or own == fleet:
            return None
        return (
            f"has the vehicles {', '.join(fleet[:10])}; this policy tells apart "
            f"{', '.join(own[:10])}, in this order"
        )

    def _pack(self) -> dict[str, np.ndarray]:
        return {
            "theta": self.theta,
            "hidden": np.array(self.shape.hidden),
            "features": _pack_names(feature.name for feature in self.features),
            "knowledge": _pack_names(self.shape.knowledge),
            "vehicles": _pack_names(self.shape.vehicles),
        }

    @classmethod
    def _unpack(cls, arrays: Mapping[str, np.ndarray], origin: Origin | None) -> Self:
        features, knowledge, vehicles = (
            _unpack_names(name, arrays[name]) for name in ("features", "knowledge", "vehicles")
        )
        hidden = int(arrays["hidden"])
        all_features = list_features(check_knowledge(knowledge), hidden=hidden)
        policy = cls(
            arrays["theta"],
            hidden=hidden,
            knowledge=knowledge,
            vehicles=vehicles,
            without=[item.name for item in all_features if item.name not in features],
            origin=origin,
        )
        own = [feature.name for feature in policy.features]
        if features != own:
            raise PolicyError(
                f"features: read {', '.join(features[:40])}; expected {', '.join(own)} (train anew)"
            )
        return policy


def _pack_names(names: Iterable[str]) -> np.ndarray:
    return np.frombuffer("\n".join(names).encode(), np.uint8)


def _unpack_names(name: str, array: np.ndarray) -> list[str]:
    try:
        text = array.astype(np.uint8).tobytes().decode()
    except UnicodeDecodeError as error:
        raise PolicyError(f"{name}: not text; the file holds no policy of this format") from error
    return text.split("\n") if text else []
