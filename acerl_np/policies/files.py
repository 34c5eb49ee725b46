"""Policies of every form: what each can do, what is made one, and one kind of file for them."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from acerl_np.kernels.core.state import Problem
from acerl_np.policies.origin import Origin, pack_origin, unpack_origin
from acerl_np.problem.choices import MAX_CHANGES
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.layout import Layout
from acerl_np.support.errors import PolicyError, describe, refuse
from acerl_np.support.files import FilePath, read_arrays, take_kind, write_arrays
from acerl_np.support.trust import trusting

if TYPE_CHECKING:
    from acerl_np.simulation.scene import Scene

FORMAT = 3

FORMS = {
    "agents": ("acerl_np.policies.agent_pair", "AgentPair"),
    "index": ("acerl_np.policies.index", "IndexPolicy"),
    "network": ("acerl_np.policies.network", "Policy"),
    "rule": ("acerl_np.policies.own", "OwnRule"),
}
"""Module and class of each form of policy; a module is imported when a policy of its form is read."""


Places = Sequence[Instance | Layout]
"""What is played: the instances of a problem, or a floor alone."""

Prepared = tuple[Problem, Callable[[], Any]]
"""Tables as a policy sees them, and what makes a worker's decider."""


class BasePolicy(ABC):
    """What decides in episodes of a simulator: a policy of any form, or a lookahead."""

    origin: Origin | None
    """Where it comes from, if that is known."""

    commitment: str | None = None
    max_changes: int = MAX_CHANGES
    """Until when tasks may change hands where it decides, and how often; None: as the floor says."""

    recalls: bool = True
    """Whether it can decide again about tasks that are under way."""

    is_greedy: ClassVar[bool] = True
    """Whether it takes what it likes best unless told otherwise."""

    def prepare(self, problem: Problem, places: Places, greedy: bool | None = None) -> Prepared:
        """Return the tables as it sees them, and what makes a worker's decider.

        Parameters
        ----------
        problem : Problem
        places : sequence of Instance or Layout
            What is played: the instances of `problem`, or a floor alone.
        greedy : bool, optional
            Take what it likes best, or sample; by default as in its training: networks sample, index policies
            do not. Lookaheads draw nothing but futures.

        Returns
        -------
        Problem, callable

        Raises
        ------
        PolicyError
            If a lookahead has no historical record for an instance, or the floors are different.
        """
        return self._prepare(problem, places, self.is_greedy if greedy is None else bool(greedy))

    @abstractmethod
    def _prepare(self, problem: Problem, places: Places, greedy: bool) -> Prepared: ...

    def check_layout(self, layout: Layout, name: str) -> None:
        """Refuse a floor and fleet that it cannot serve.

        Parameters
        ----------
        layout : Layout
        name : str
            What the message calls it.

        Raises
        ------
        PolicyError
        """
        misfit = self._find_misfit(layout)
        if not self.recalls and layout.commitment == "pickup":
            misfit = "lets tasks change hands, commitment 'pickup'; expected 'assignment' for this policy"
        if misfit:
            raise PolicyError(f"{name}: the layout '{layout.name}' {misfit}")

    def _find_misfit(self, layout: Layout) -> str | None:
        """Say what a layout has or lacks, and what was expected; None if it can be served."""
        return None

    def check_fits(self, instance: Instance) -> None:
        """Refuse an instance that it cannot play, as `check_layout` refuses its layout."""
        self.check_layout(instance.layout, instance.name)

    def choose(
        self, sim: Scene, *, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose an assignment in every episode that is not over.

        Parameters
        ----------
        sim : Scene, such as a Simulator
        rng : numpy.random.Generator, optional
            Keys of the draws; by default nothing is drawn, and the futures of a lookahead are the same in
            every episode.

        Returns
        -------
        vehicles, tasks : ndarray(int64, (B,))
            Positions in the layout's fleet and in the record, as `Simulator.assign` takes them; -1 where
            the episode is over.
        """
        return sim.decide(self, rng=rng)


class AnyPolicy(BasePolicy):
    """A policy that a file can hold.

    Attributes
    ----------
    form : str
        A key of `FORMS`.
    """

    form: ClassVar[str]

    kinds: ClassVar[Mapping[str, tuple[str, int]]]
    """Kind of each array that a file must hold, and its number of dimensions."""

    @property
    def names_code(self) -> bool:
        """Whether its file names a function of a user's."""
        return self.origin is not None and bool(self.origin.goal.own)

    def to_arrays(self, *, with_origin: bool = True) -> dict[str, np.ndarray]:
        """Return what `from_arrays` needs, as plain arrays, with or without the origin."""
        return {**(pack_origin(self.origin) if with_origin else {}), **self._pack()}

    @abstractmethod
    def _pack(self) -> dict[str, np.ndarray]: ...

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Build a policy from `to_arrays`.

        Raises
        ------
        PolicyError
            If an array is missing, of the wrong kind, or contradicts another.
        """
        for name, (kind, ndim) in cls.kinds.items():
            array = arrays.get(name)
            if array is None or array.dtype.kind != kind or array.ndim != ndim:
                found = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
                raise PolicyError(f"{name}: read {found}; the file holds no policy of this format")
        return cls._unpack(arrays, unpack_origin(arrays))

    @classmethod
    @abstractmethod
    def _unpack(cls, arrays: Mapping[str, np.ndarray], origin: Origin | None) -> Self: ...

    def save(self, path: FilePath) -> None:
        """Write the policy to an `.npz` file, atomically.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        write_arrays(path, {"kind": "policy", "format": FORMAT, **pack_policy(self)})

    @classmethod
    def load(cls, path: FilePath, *, trust: bool = False) -> Self:
        """Read a policy of this form, as `load_policy` reads those of all; pickles are never loaded.

        Raises
        ------
        PolicyError
            If the file is missing, damaged, of another format version, or holds no policy or one of
            another form (`acerl_np.load_policy` reads every form).
        """
        policy = load_policy(path, trust=trust)
        if type(policy) is not cls:
            raise PolicyError(
                f"{path}: holds a policy of form '{policy.form}', expected '{cls.form}'; "
                "acerl_np.load_policy reads every form"
            )
        return policy


def as_decider(
    policy: Any, instances: Instance | Sequence[Instance] = (), goal: Goal | None = None
) -> BasePolicy:
    """Return the policy of any form as it is, and make one of a rule's name or of a user's object.

    Which weights `general` means depends on the instances and the goal.

    Raises
    ------
    PolicyError
        If it is none of these, or a function of observations and masks without instances that say its sizes.
    """
    if isinstance(policy, BasePolicy):
        return policy
    if isinstance(policy, str):
        from acerl_np.policies.general import find_set, make_general
        from acerl_np.policies.rules import GENERAL, RulePolicy, find_policy_name

        name = find_policy_name(policy)
        own = name == GENERAL
        return make_general(find_set(list_instances(instances), goal)) if own else RulePolicy(name)
    from acerl_np.policies.agent import Agent, OwnPolicy

    if isinstance(policy, type) and hasattr(policy, "choose"):
        policy = policy()
    if callable(getattr(policy, "choose", None)):
        return OwnPolicy(policy)
    if not callable(policy) or not instances:
        expected = (
            "a policy, a rule's name, a function with @acerl_np.rule, an object with choose(sim), or an "
            "Agent around a function"
        )
        refuse("policy", policy, expected, PolicyError)
    return Agent(policy, instances)


def pack_policy(policy: AnyPolicy) -> dict[str, np.ndarray]:
    """Return a policy with its form and its origin as plain arrays."""
    return {"form": np.array(policy.form), **policy.to_arrays()}


def unpack_policy(arrays: Mapping[str, np.ndarray]) -> AnyPolicy:
    """Return the policy that `pack_policy` stored."""
    form = arrays.get("form")
    text = str(form) if form is not None and form.dtype.kind == "U" and form.ndim == 0 else None
    if text not in FORMS:
        found = "nothing" if form is None else describe(form)
        raise PolicyError(f"form: read {found}; expected one of {', '.join(FORMS)}")
    module, name = FORMS[text]
    own = {key: array for key, array in arrays.items() if key != "form"}
    policy: AnyPolicy = getattr(importlib.import_module(module), name).from_arrays(own)
    return policy


def load_policy(path: FilePath, *, trust: bool = False) -> AnyPolicy:
    """Read a policy of whichever form the file holds; pickles are never loaded.

    Parameters
    ----------
    path : path-like
    trust : bool
        Import the module of a rule or a feature that it names; without, it must have been handed over before.

    Returns
    -------
    Policy, IndexPolicy or OwnRule
        Of the form that was saved.

    Raises
    ------
    PolicyError
        If the file is missing, damaged, of another format version, or holds no policy.

    See Also
    --------
    Policy : A network.
    IndexPolicy : An index policy.

    Examples
    --------
    >>> import acerl_np, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "policy.npz"
    ...     acerl_np.IndexPolicy.of_weights(approach=-1.0).save(path)
    ...     acerl_np.load_policy(path).features
    ('approach',)
    """
    arrays = read_arrays(path, PolicyError)
    take_kind(path, arrays, "policy", FORMAT, PolicyError, noun="a policy file")
    try:
        with trusting(trust):
            return unpack_policy(arrays)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from error
