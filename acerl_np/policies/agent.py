"""Policies in plain Python: objects that choose, and learners of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core.state import Outcome, Problem, join_outcomes, read_outcome
from acerl_np.policies.files import BasePolicy, Places, Prepared
from acerl_np.policies.network import Policy
from acerl_np.problem.choices import PAPER_RULES, SlotKind
from acerl_np.problem.goal import Goal
from acerl_np.problem.instance import Instance, list_instances, refuse_chains
from acerl_np.problem.interface import POOL, find_rules, find_slots
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.actions import ACTIONS, Actions, make_actions, read_actions
from acerl_np.simulation.scene import Chooses, Scene, read_choices
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import ActionError, PolicyError, describe, refuse

AgentFunction = Callable[[np.ndarray, np.ndarray], ArrayLike]
"""Observations (float32, (B, n_features)) and masks (bool, (B, n_actions)) in, actions (int, (B,)) out."""


EPISODES = 1024
"""Episodes that a policy in plain Python plays side by side."""


class OwnPolicy(BasePolicy):
    """A policy in plain Python, as the simulator and a dispatcher ask it.

    `evaluate_policy`, `trace_policy` and `Dispatcher` make one of an object with a method `choose(sim)`.

    Parameters
    ----------
    policy : object
        `policy.choose(sim)` returns vehicles and tasks, int (B,) each, as `Simulator.assign` takes them;
        `sim` is a `Scene`, not to be changed. Slots are "pool", unless it has attributes `slots` and
        `task_ids`, such as those of a network that it asks.
    """

    form: ClassVar[str] = "own"
    origin = None
    scaling: np.ndarray | None = None
    task_slots: int | None = None
    n_vehicles: int | None = None
    rules: tuple[str, ...] = PAPER_RULES

    def __init__(self, policy: Chooses) -> None:
        self.policy = policy
        self.slots, self.task_ids = find_slots(policy, ()) if hasattr(policy, "task_ids") else POOL

    def __repr__(self) -> str:
        return f"OwnPolicy({describe(self.policy)})"

    def choose(
        self, sim: Scene, *, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose an assignment in every episode that is not over, as other policies.

        Raises
        ------
        ActionError
            If the answer is not vehicles and tasks, (B,) each.
        """
        answer = self.policy.choose(sim)
        try:
            vehicles, tasks = answer
        except (TypeError, ValueError):
            refuse("choose", answer, "vehicles and tasks", ActionError)
        n = sim.n_episodes
        return read_choices("vehicles", vehicles, n), read_choices("tasks", tasks, n)

    def play(self, simulator: Simulator) -> None:
        """Decide until all episodes of a simulator are over.

        Parameters
        ----------
        simulator : Simulator
            Of its sizes and constants.

        Raises
        ------
        ActionError
            If it chooses what cannot be.
        """
        while not simulator.done.all():
            simulator.assign(*self.choose(simulator))

    def play_all(
        self, entries: Sequence[Instance], keys: np.ndarray, *, horizon: float | None, goal: Goal
    ) -> Outcome:
        """Play an episode of each entry, many side by side; `keys` are those of their breakdowns."""
        played: list[Outcome] = []
        for first in range(0, len(entries), EPISODES):
            some = slice(first, first + EPISODES)
            simulator = Simulator(
                entries[some],
                policy=self,
                breakdown_keys=keys[some],
                horizon=horizon,
                goal=goal,
            )
            self.play(simulator)
            played.append(read_outcome(simulator.state))
        return join_outcomes(played)

    def _prepare(self, problem: Problem, places: Places, greedy: bool) -> Prepared:
        return problem, self._refuse_to_decide

    def _refuse_to_decide(self) -> NoReturn:
        refuse("policy", self, "one that is compiled, as a rule by @acerl_np.rule", PolicyError)


class Agent(OwnPolicy):
    """A function that decides, and how it sees and acts: as the environment that it has learned in.

    `evaluate_policy` shows it other records by the sizes and feature constants of its training; a plain
    function is shown them by those of the records that judge it. Where the floor's file gives the constants,
    they are the same.

    Parameters
    ----------
    function : callable
        Of observations (float32, (B, n_features)) and masks (bool, (B, n_actions)); it returns an action for
        each row. A row without a legal action is over, and what is returned for it is ignored.
    instances : Instance or sequence of Instance
        The records of its training.
    actions : {"rules", "pairs"}
        What an action is, as in `acerl_np.gym.DMHEnv`.
    task_slots, n_vehicles, scaling, slots, rules, may_wait
        As they were given to its environment; by default those of `instances`.

    Attributes
    ----------
    function : callable
    actions : str
    may_wait : bool
    scaling : ndarray(float64, (12,))
        Feature constants, as `kernels.state.Problem` lists them.
    task_slots, n_vehicles : int
    slots : str
    task_ids : tuple of str
    rules : tuple of str

    Raises
    ------
    PolicyError
        If it is no function, or there are no such actions.
    InputError
        If there is no instance, or a size or constant is unusable.

    See Also
    --------
    evaluate_policy : Judges it.
    Policy : A network of the package's own.

    Examples
    --------
    >>> import acerl_np
    >>> agent = acerl_np.Agent(
    ...     lambda observation, mask: mask.argmax(axis=1), acerl_np.load_suite("dmh-train"), actions="pairs"
    ... )
    >>> acerl_np.evaluate_policy(agent, acerl_np.load_instance("DMH-09"), trials=1).makespan
    array([[2055.]])
    """

    def __init__(
        self,
        function: AgentFunction,
        instances: Instance | Sequence[Instance],
        *,
        actions: str = "rules",
        task_slots: int | None = None,
        n_vehicles: int | None = None,
        scaling: ArrayLike | None = None,
        slots: SlotKind | Policy = "task",
        rules: Sequence[str] | Policy = PAPER_RULES,
        may_wait: bool = False,
    ) -> None:
        if not callable(function):
            refuse("function", function, "a function of observations and masks", PolicyError)
        if actions not in ACTIONS:
            refuse("actions", actions, f"one of {list(ACTIONS)}", PolicyError)
        records = list_instances(instances)
        own = find_slots(slots, records)
        problem = build_problem(
            records, scaling=scaling, task_slots=task_slots, n_vehicles=n_vehicles, slots=own
        )
        self.function = function
        self.actions = actions
        self.may_wait = may_wait
        self.slots, self.task_ids = own
        self.rules = find_rules(rules)
        self.scaling: np.ndarray = problem.scaling[0]
        self.task_slots = int(problem.instance["task_slots"][0])
        self.n_vehicles = int(problem.fleet.shape[1])

    def check_fits(self, instance: Instance) -> None:
        """Refuse an instance that no observation shows."""
        refuse_chains([instance], PolicyError)

    def __repr__(self) -> str:
        sizes = f"task_slots={self.task_slots}, n_vehicles={self.n_vehicles}"
        return f"Agent({describe(self.function)}, actions={self.actions!r}, {sizes})"

    def choose(
        self, sim: Scene, *, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose an assignment in every episode that is not over, as other policies.

        Parameters
        ----------
        sim : Scene
            Of its sizes and constants.
        rng : numpy.random.Generator, optional
            Ignored.

        Raises
        ------
        ActionError
            If it takes an illegal action.
        """
        chosen = read_actions(
            self.actions, sim, lambda mask: self.function(sim.observation, mask), self.may_wait
        )
        return chosen[0], chosen[1]

    def play(self, simulator: Simulator) -> None:
        """Decide until all episodes of a simulator are over, as `OwnPolicy`, but quicker."""
        actions: Actions = make_actions(self.actions, simulator, self.may_wait)
        while not simulator.done.all():
            actions.take(self.function(simulator.observation, actions.mask()))
