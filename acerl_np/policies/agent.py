"""A learner of another library, with what it was shown in its training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.state import INSTANCE_TASK_SLOTS
from acerl_np.policies.network import Policy
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.rules import PAPER_RULES, find_rules
from acerl_np.problem.slots import SlotKind, find_slots
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.actions import ACTIONS, Actions, make_actions
from acerl_np.simulation.simulator import Simulator
from acerl_np.support.errors import PolicyError, describe

AgentFunction = Callable[[np.ndarray, np.ndarray], ArrayLike]
"""Observations (float32, (B, n_features)) and masks (bool, (B, n_actions)) in, actions (int, (B,)) out."""


class Agent:
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
    task_slots, n_vehicles, scaling, slots, rules
        As they were given to its environment; by default those of `instances`.

    Attributes
    ----------
    function : callable
    actions : str
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
    ) -> None:
        if not callable(function):
            raise PolicyError(
                f"function: read {describe(function)}; expected a function of observations and masks"
            )
        if actions not in ACTIONS:
            raise PolicyError(f"actions: read {describe(actions)}; expected one of {list(ACTIONS)}")
        records = list_instances(instances)
        own = find_slots(slots, records)
        problem = build_problem(
            records, scaling=scaling, task_slots=task_slots, n_vehicles=n_vehicles, slots=own
        )
        self.function = function
        self.actions = actions
        self.slots, self.task_ids = own
        self.rules = find_rules(rules)
        self.scaling: np.ndarray = problem.scaling[0]
        self.task_slots = int(problem.instance[0, INSTANCE_TASK_SLOTS])
        self.n_vehicles = int(problem.fleet.shape[1])

    def __repr__(self) -> str:
        sizes = f"task_slots={self.task_slots}, n_vehicles={self.n_vehicles}"
        return f"Agent({describe(self.function)}, actions={self.actions!r}, {sizes})"

    def play(self, simulator: Simulator) -> None:
        """Decide until all episodes of a simulator are over.

        Parameters
        ----------
        simulator : Simulator
            Of its sizes and constants.

        Raises
        ------
        ActionError
            If it takes an illegal action.
        """
        actions: Actions = make_actions(self.actions, simulator)
        while not simulator.done.all():
            actions.take(self.function(simulator.observation, actions.mask()))
