"""ACERL for dynamic material handling: exact simulator, evolutionary training, evaluation.

Public names are imported when they are first used, so that `import acerl_np` is quick.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from acerl_np.support.version import __version__ as __version__

_HOMES = {
    "commands.evaluate": "Evaluation evaluate",
    "commands.floor": "FloorCheck FloorImport check_floor import_floor",
    "commands.policy": "Bounds bound",
    "commands.records.check": "FileCheck check_records",
    "commands.replay": "replay",
    "commands.shared.reporting": "write_report",
    "commands.train": "Training",
    "evaluation.trials": "Playing Trials evaluate_policy",
    "evaluation.verdict": "Verdict",
    "evaluation.whatif": "WhatIf whatif",
    "kernels.dispatching.floor": "Floor",
    "live.dispatcher": "Dispatcher",
    "live.events": (
        "Assignment Charge EdgeClosed EdgeOpened Explanation Forecast MachineBusy Option Park Recall "
        "RecallAnswered TaskAnnounced TaskArrived TaskCancelled TaskChanged TaskMoved TaskReady "
        "TaskRecalled VehicleAdded VehicleBack VehicleBroke VehicleCharging VehicleIdle "
        "VehicleLevel VehicleOutOfService VehicleParked VehiclePassed VehicleRemoved "
        "VehicleRepaired "
    ),
    "live.orders": "Followed",
    "live.shadow": "Compared",
    "live.states": "TaskState",
    "policies.agent": "Agent",
    "policies.agent_pair": "AgentPair",
    "policies.files": "load_policy",
    "policies.index": "Feature IndexPolicy feature",
    "policies.lookahead": "Lookahead",
    "policies.network": "Policy",
    "policies.origin": "Origin",
    "policies.own": "rule",
    "pictures.replay": "write_replay",
    "problem.bundled": "load_instance load_layout load_records load_suite",
    "problem.conversion": "Conversion convert_records",
    "problem.export": "Export",
    "problem.goal": "Goal Measures",
    "problem.instance": "Instance",
    "problem.layout": "Layout",
    "problem.parts": (
        "Battery Block Breakdown Charger Closure Edge Machine Parking ParkingPlace "
        "RandomBreakdowns Site Traffic Vehicle "
    ),
    "problem.generate": "perturb",
    "problem.shift": "generate_shift",
    "simulation.scene": "Fleet Pairs Scene",
    "simulation.simulator": "Schedule Simulator",
    "support.errors": (
        "AcerlError ActionError CheckpointError ConfigError EventError EventWarning InputError "
        "LayoutError LogWarning MissingExtraError PolicyError PolicyWarning RecordError "
        "SharingError StorageError WorkerError "
    ),
    "support.faults": "Fault RecordWarning",
    "support.team": "Team",
    "train": "train",
    "training.acerl": "ACERL",
    "training.config": "Config",
    "training.history": "CurvePoint Generation",
    "warm": "warm_up",
}
"""Public names by the module that defines them, as in `__init__.pyi`."""

_NAMES = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_NAMES)


def _load(package: dict[str, Any], homes: Mapping[str, str], name: str) -> object:
    """Import a public name of a package where it is first asked for."""
    if name not in homes:
        raise AttributeError(f"module '{package['__name__']}' has no attribute {name!r}")
    package[name] = getattr(importlib.import_module(f"acerl_np.{homes[name]}"), name)
    return package[name]


def __getattr__(name: str) -> object:
    if name == "evolution":  # needs no import of its own
        return importlib.import_module("acerl_np.evolution")
    return _load(globals(), _NAMES, name)


def __dir__() -> list[str]:
    return __all__
