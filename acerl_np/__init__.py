"""ACERL for dynamic material handling: exact simulator, evolutionary training, evaluation.

Public names are imported when they are first used, so that `import acerl_np` is quick.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from acerl_np.support.version import __version__ as __version__

if TYPE_CHECKING:
    from acerl_np import evolution as evolution
    from acerl_np.evaluation.trials import Trials as Trials, evaluate_policy as evaluate_policy
    from acerl_np.kernels.deciding.floor import Floor as Floor
    from acerl_np.live.dispatcher import Dispatcher as Dispatcher
    from acerl_np.live.events import (
        Assignment as Assignment,
        Charge as Charge,
        Explanation as Explanation,
        Forecast as Forecast,
        MachineBusy as MachineBusy,
        Option as Option,
        Park as Park,
        Recall as Recall,
        RecallAnswered as RecallAnswered,
        TaskAnnounced as TaskAnnounced,
        TaskArrived as TaskArrived,
        TaskCancelled as TaskCancelled,
        TaskChanged as TaskChanged,
        TaskReady as TaskReady,
        TaskRecalled as TaskRecalled,
        VehicleAdded as VehicleAdded,
        VehicleBack as VehicleBack,
        VehicleBroke as VehicleBroke,
        VehicleCharging as VehicleCharging,
        VehicleIdle as VehicleIdle,
        VehicleLevel as VehicleLevel,
        VehicleOutOfService as VehicleOutOfService,
        VehicleParked as VehicleParked,
        VehiclePassed as VehiclePassed,
        VehicleRemoved as VehicleRemoved,
        VehicleRepaired as VehicleRepaired,
    )
    from acerl_np.live.orders import Followed as Followed
    from acerl_np.live.shadow import Compared as Compared
    from acerl_np.live.states import TaskState as TaskState
    from acerl_np.policies.agent import Agent as Agent
    from acerl_np.policies.agent_pair import AgentPair as AgentPair
    from acerl_np.policies.files import load_policy as load_policy
    from acerl_np.policies.index import (
        Feature as Feature,
        IndexPolicy as IndexPolicy,
        feature as feature,
    )
    from acerl_np.policies.lookahead import Lookahead as Lookahead
    from acerl_np.policies.network import Policy as Policy
    from acerl_np.policies.origin import Origin as Origin
    from acerl_np.policies.own import rule as rule
    from acerl_np.problem.bundled import (
        load_instance as load_instance,
        load_layout as load_layout,
        load_records as load_records,
        load_suite as load_suite,
    )
    from acerl_np.problem.export import Export as Export
    from acerl_np.problem.goal import Goal as Goal, Measures as Measures
    from acerl_np.problem.instance import Instance as Instance
    from acerl_np.problem.layout import Layout as Layout
    from acerl_np.problem.parts import (
        Battery as Battery,
        Block as Block,
        Breakdown as Breakdown,
        Charger as Charger,
        Edge as Edge,
        Machine as Machine,
        Parking as Parking,
        ParkingPlace as ParkingPlace,
        RandomBreakdowns as RandomBreakdowns,
        Site as Site,
        Traffic as Traffic,
        Vehicle as Vehicle,
    )
    from acerl_np.problem.generate import perturb as perturb
    from acerl_np.problem.shift import generate_shift as generate_shift
    from acerl_np.simulation.scene import Fleet as Fleet, Pairs as Pairs, Scene as Scene
    from acerl_np.simulation.simulator import Schedule as Schedule, Simulator as Simulator
    from acerl_np.support.errors import (
        AcerlError as AcerlError,
        ActionError as ActionError,
        CheckpointError as CheckpointError,
        ConfigError as ConfigError,
        EventError as EventError,
        EventWarning as EventWarning,
        Fault as Fault,
        InputError as InputError,
        LayoutError as LayoutError,
        LogWarning as LogWarning,
        MissingExtraError as MissingExtraError,
        PolicyError as PolicyError,
        PolicyWarning as PolicyWarning,
        RecordError as RecordError,
        RecordWarning as RecordWarning,
        SharingError as SharingError,
        StorageError as StorageError,
        WorkerError as WorkerError,
    )
    from acerl_np.support.team import Team as Team
    from acerl_np.training.acerl import ACERL as ACERL
    from acerl_np.training.config import Config as Config
    from acerl_np.training.curves import CurvePoint as CurvePoint
    from acerl_np.training.history import Generation as Generation
    from acerl_np.warm import warm_up as warm_up


@cache
def _find_homes() -> dict[str, str]:
    """Return the module that defines each public name, by the imports above, which type checkers go by."""
    import ast
    from pathlib import Path

    return {
        item.name: node.module
        for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("acerl_np.")
        for item in node.names
    }


def __getattr__(name: str) -> object:
    if name == "evolution":  # needs no import of its own
        return importlib.import_module("acerl_np.evolution")
    if name == "__all__":
        return sorted(_find_homes())
    home = _find_homes().get(name)
    if home is None:
        raise AttributeError(f"module 'acerl_np' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_find_homes())
