"""Policies: a network's parameters with what is needed to use them on a floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.random import INITIAL, fill_uniforms, make_key
from acerl_np.kernels.dispatching.deciders import NetworkDecider, make_network_decider
from acerl_np.kernels.learning.update import fill_stream
from acerl_np.kernels.networks.network import act_batch, count_parameters, make_network, sum_columns
from acerl_np.policies.files import AnyPolicy, Places, Prepared
from acerl_np.policies.origin import Origin
from acerl_np.problem import choices, interface
from acerl_np.problem.instance import Instance, refuse_chains
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import count_actions, count_features
from acerl_np.support.errors import PolicyError, refuse

MAX_PARAMETERS = 100_000_000

NO_UNIFORMS = np.empty(0, np.float64)


def initial_parameters(
    sizes: Sequence[int],
    seed: int,
    *,
    initialisation: choices.Initialisation = "he",
    has_biases: bool = True,
) -> np.ndarray:
    """Draw initial parameters.

    Returns
    -------
    ndarray(float32, (n_parameters,))
    """
    theta = np.zeros(count_parameters(sizes, has_biases), np.float32)
    position = 0
    n_layers = len(sizes) - 1
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        n_layer = (n_in + has_biases) * n_out
        own = theta[position : position + n_layer]
        if initialisation == "torch":
            uniforms = np.empty(n_layer)
            fill_uniforms(make_key(seed, INITIAL, layer), uniforms)
            own[:] = (2.0 * uniforms - 1.0) / np.sqrt(n_in)
        else:
            weights = own[: n_in * n_out]
            fill_stream(seed, INITIAL, layer, 0, weights)
            scale = 0.01 if initialisation == "small" and layer == n_layers - 1 else 1.0
            weights *= np.float32(scale * np.sqrt(2.0 / n_in))
        position += n_layer
    return theta


class Policy(AnyPolicy):
    """A trained dispatcher: observation and action mask in, action out.

    Parameters
    ----------
    theta : array_like of float32, (n_parameters,)
        For each layer the weights, input-major, then the biases.
    hidden : sequence of int
        Sizes of the hidden layers.
    task_slots : int
        Waiting tasks that the network sees.
    n_vehicles : int
    scaling : array_like of float64, (12,)
        Feature constants: (mid, half) of distance, waiting, expiry, demand and total distance, then
        the divisors of speed and capacity.
    smallest : tuple of int, optional
        Task slots and vehicles of the smallest floor it was trained on; by default the sizes above.
    has_biases : bool
    standardises : bool
        Whether an observation is standardised before the first layer.
    origin : Origin, optional
        Floors, fleets and records of its training.
    slots : {"pool", "task"}
        The slot of a waiting task: its place in the pool, or one of its own; `Simulator` says more.
    task_ids : sequence of str
        Tasks that have a slot of their own, in the order of the slots.
    rules : sequence of str
        Rules that it chooses among for a vehicle; its actions are vehicle * number of rules + rule.

    Raises
    ------
    PolicyError
        If the sizes contradict each other, a number is not finite, slots "task" come without ids, or a rule
        is unknown or stands twice.

    See Also
    --------
    ACERL : Trains one.
    load_policy : Reads one.
    IndexPolicy : For days that nobody has seen.

    Examples
    --------
    >>> import acerl_np
    >>> trainer = acerl_np.ACERL(acerl_np.load_suite("dmh-train"), acerl_np.Config(generations=0))
    >>> trainer.policy
    Policy(219-128-128-12, 46,220 parameters)
    """

    form: ClassVar[str] = "network"
    is_greedy: ClassVar[bool] = False
    recalls = False
    kinds: ClassVar[Mapping[str, tuple[str, int]]] = {
        "theta": ("f", 1),
        "hidden": ("i", 1),
        "task_slots": ("i", 0),
        "n_vehicles": ("i", 0),
        "scaling": ("f", 1),
        "smallest": ("i", 1),
        "has_biases": ("b", 0),
        "standardises": ("b", 0),
        "slots": ("U", 0),
        "task_ids": ("U", 1),
        "rules": ("U", 1),
    }

    def __init__(
        self,
        theta: ArrayLike,
        *,
        hidden: Sequence[int],
        task_slots: int,
        n_vehicles: int,
        scaling: ArrayLike,
        smallest: tuple[int, int] | None = None,
        has_biases: bool = True,
        standardises: bool = True,
        origin: Origin | None = None,
        slots: choices.SlotKind = "pool",
        task_ids: Sequence[str] = (),
        rules: Sequence[str] = choices.PAPER_RULES,
    ) -> None:
        self.origin = origin
        self.slots, self.task_ids = interface.check_slots(slots, task_ids, PolicyError)
        self.rules = choices.RULE_NAMES.read("rules", rules, PolicyError)
        self.hidden = tuple(int(size) for size in hidden)
        self.task_slots = int(task_slots)
        self.n_vehicles = int(n_vehicles)
        self.smallest = smallest or (self.task_slots, self.n_vehicles)
        if min(self.task_slots, self.n_vehicles, *self.hidden, *self.smallest) < 1:
            raise PolicyError("a policy's sizes must be at least 1")
        if self.smallest[0] > self.task_slots or self.smallest[1] > self.n_vehicles:
            found = f"{self.smallest[0]} task slots and {self.smallest[1]} vehicles"
            expected = f"at most {self.task_slots} and {self.n_vehicles}"
            refuse("smallest", found, expected, PolicyError)
        self.n_features = count_features(self.task_slots, self.n_vehicles)
        self.n_actions = count_actions(self.n_vehicles, self.rules)
        self.network = make_network(
            [self.n_features, *self.hidden, self.n_actions],
            has_biases=bool(has_biases),
            standardises=bool(standardises),
        )
        self.scaling = interface.check_scaling(scaling, PolicyError)
        with np.errstate(over="ignore"):  # what overflows is refused below
            self._theta = np.array(theta, np.float32)
        n = count_parameters(self.sizes.tolist(), self.network.has_biases)
        if self._theta.shape != (n,):
            expected = f"({n},) for layers {'-'.join(map(str, self.sizes))}"
            refuse("theta", f"shape {self._theta.shape}", expected, PolicyError)
        if not np.isfinite(self._theta).all():
            raise PolicyError("theta: not finite; expected finite numbers")
        self.column_sums = np.empty(self.sizes[1], np.float32)
        sum_columns(self.network, self._theta, self.column_sums)

    @property
    def theta(self) -> np.ndarray:
        """Weights and biases, ndarray(float32, (n_parameters,)); nobody may write them."""
        theta = self._theta.view()
        theta.flags.writeable = False
        return theta

    @property
    def sizes(self) -> np.ndarray:
        """Layer sizes, ndarray(int64, (n_layers + 1,)): n_features first, n_actions last."""
        return self.network.sizes

    @property
    def options(self) -> dict[str, Any]:
        """What it takes beside its parameters and its origin."""
        own = vars(self) | self.network._asdict()
        return {name: own[name] for name in Policy.kinds if name != "theta"}

    @property
    def n_parameters(self) -> int:
        """Number of weights and biases."""
        return len(self.theta)

    def __repr__(self) -> str:
        return f"Policy({'-'.join(map(str, self.sizes))}, {self.n_parameters:,} parameters)"

    def act(
        self,
        observation: ArrayLike,
        action_mask: ArrayLike,
        *,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Choose one action per row.

        Parameters
        ----------
        observation : array_like of float32, (B, n_features) or (n_features,)
            As `Simulator.observation`, not standardised. Nothing in it says which slots it shows, nor in the
            mask which rules the actions are: they are to be this policy's, as those of
            `Simulator(instances, policy=policy)` are.
        action_mask : array_like of bool, (B, n_actions) or (n_actions,)
            Rows without a legal action belong to finished episodes and get -1.
        rng : numpy.random.Generator, optional
            Sample from the masked softmax with this generator; by default the most probable action
            is taken, the first of equals.

        Returns
        -------
        ndarray(int64, (B,))
            vehicle * number of rules + rule; a single observation gives one row.

        Raises
        ------
        PolicyError
            If the shapes do not fit this policy, or an entry is not finite.
        """
        x = np.atleast_2d(np.ascontiguousarray(observation, np.float32))
        mask = np.atleast_2d(np.ascontiguousarray(action_mask, np.bool_))
        if x.ndim != 2 or x.shape[1] != self.n_features:
            found, expected = f"shape {np.shape(observation)}", f"(B, {self.n_features})"
            refuse("observation", found, expected, PolicyError)
        if mask.shape != (len(x), self.n_actions):
            found, expected = f"shape {np.shape(action_mask)}", f"({len(x)}, {self.n_actions})"
            refuse("action mask", found, expected, PolicyError)
        # A sum is quicker, but that of finite numbers may overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = not np.isfinite(x.sum())
        if suspect and not np.isfinite(x).all():
            raise PolicyError("observation: not finite; expected finite numbers")
        actions = np.empty(len(x), np.int64)
        uniforms = NO_UNIFORMS if rng is None else rng.random(len(x))
        act_batch(self.network, self._theta, self.column_sums, x, mask, uniforms, actions)
        return actions

    def _prepare(self, problem: S.Problem, places: Places, greedy: bool) -> Prepared:
        refuse_chains(places, PolicyError)
        instance = problem.instance.copy()
        instance["task_slots"] = self.task_slots
        fitted = problem._replace(
            instance=instance, scaling=np.tile(self.scaling, (len(instance), 1))
        )
        instances = [place for place in places if isinstance(place, Instance)]
        if len(instances) == len(problem.instance) and (
            self.task_ids or problem.record["slot"][0, 0]
        ):
            fitted = interface.place_tasks(
                fitted, instances, interface.Slots(self.slots, self.task_ids)
            )
        own = self.theta[np.newaxis]
        return fitted, lambda: self._make_decider(own, greedy)

    def _make_decider(self, thetas: np.ndarray, greedy: bool) -> NetworkDecider:
        return make_network_decider(
            self.network, thetas, greedy, interface.number_rules(self.rules)
        )

    def _find_misfit(self, layout: Layout) -> str | None:
        for what, size, low, high in (
            ("task slots", layout.task_slots, self.smallest[0], self.task_slots),
            ("vehicles", len(layout.vehicles), self.smallest[1], self.n_vehicles),
        ):
            if not low <= size <= high:
                expected = str(high) if low == high else f"{low} to {high}"
                return f"has {size} {what}; this policy was trained for {expected}"
        return None

    def _pack(self) -> dict[str, np.ndarray]:
        types = {"hidden": np.int64, "smallest": np.int64, "task_ids": np.str_, "rules": np.str_}
        own = {name: np.array(value, types.get(name)) for name, value in self.options.items()}
        return {"theta": self.theta, **own}

    @classmethod
    def _unpack(cls, arrays: Mapping[str, np.ndarray], origin: Origin | None) -> Self:
        own: dict[str, Any] = {
            name: arrays[name].tolist() for name in Policy.kinds if name != "theta"
        }
        sizes = [own["task_slots"], own["n_vehicles"], *own["hidden"]]
        if len(own["hidden"]) > 100 or not all(1 <= size <= MAX_PARAMETERS for size in sizes):
            raise PolicyError(f"sizes: read {sizes[:8]}; expected sizes of a network")
        if len(own["smallest"]) != 2:
            raise PolicyError("smallest: expected two sizes")
        own["smallest"] = tuple(own["smallest"])
        return cls(arrays["theta"], **own, origin=origin)
