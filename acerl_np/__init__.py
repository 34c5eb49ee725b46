"""ACERL for dynamic material handling: exact simulator, evolutionary training, evaluation.

Public names are imported when they are first used, so that `import acerl_np` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from acerl_np.support.version import __version__

if TYPE_CHECKING:
    from acerl_np import evolution as evolution
    from acerl_np import rivals as rivals
    from acerl_np.evaluation.trials import Trials, evaluate_policy
    from acerl_np.kernels.floor import Floor
    from acerl_np.live.dispatcher import Dispatcher
    from acerl_np.live.events import (
        Assignment,
        Explanation,
        Forecast,
        Option,
        TaskArrived,
        TaskCancelled,
        TaskChanged,
        TaskRecalled,
        VehicleAdded,
        VehicleBack,
        VehicleBroke,
        VehicleIdle,
        VehicleOutOfService,
        VehiclePassed,
        VehicleRemoved,
        VehicleRepaired,
    )
    from acerl_np.policies.agent import Agent
    from acerl_np.policies.files import load_policy
    from acerl_np.policies.index import IndexPolicy, feature
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.policies.network import Policy
    from acerl_np.policies.own import rule
    from acerl_np.policies.static import StaticPlan, fit_static
    from acerl_np.problem.bundled import load_instance, load_layout, load_records, load_suite
    from acerl_np.problem.instance import Instance
    from acerl_np.problem.layout import Layout
    from acerl_np.problem.parts import RandomBreakdowns
    from acerl_np.problem.perturb import perturb
    from acerl_np.problem.shift import generate_shift
    from acerl_np.simulation.scene import Pairs, Scene
    from acerl_np.simulation.simulator import Schedule, Simulator
    from acerl_np.support.errors import (
        AcerlError,
        ActionError,
        CheckpointError,
        ConfigError,
        EventError,
        InputError,
        LayoutError,
        LogWarning,
        MissingExtraError,
        PolicyError,
        PolicyWarning,
        RecordError,
        RecordWarning,
        SharingError,
        StorageError,
    )
    from acerl_np.training.acerl import ACERL
    from acerl_np.training.config import Config
    from acerl_np.training.history import Generation
    from acerl_np.warm import warm_up


_HOMES = {
    "training.acerl": ("ACERL",),
    "training.config": ("Config",),
    "training.history": ("Generation",),
    "live.dispatcher": ("Dispatcher",),
    "live.events": (
        "Assignment",
        "Explanation",
        "Forecast",
        "Option",
        "TaskArrived",
        "TaskCancelled",
        "TaskChanged",
        "TaskRecalled",
        "VehicleAdded",
        "VehicleBack",
        "VehicleBroke",
        "VehicleIdle",
        "VehicleOutOfService",
        "VehiclePassed",
        "VehicleRemoved",
        "VehicleRepaired",
    ),
    "support.errors": (
        "AcerlError",
        "ActionError",
        "CheckpointError",
        "ConfigError",
        "EventError",
        "InputError",
        "LayoutError",
        "LogWarning",
        "MissingExtraError",
        "PolicyError",
        "PolicyWarning",
        "RecordError",
        "RecordWarning",
        "SharingError",
        "StorageError",
    ),
    "evaluation.trials": ("Trials", "evaluate_policy"),
    "kernels.floor": ("Floor",),
    "policies.agent": ("Agent",),
    "policies.files": ("load_policy",),
    "policies.index": ("IndexPolicy", "feature"),
    "policies.lookahead": ("Lookahead",),
    "policies.network": ("Policy",),
    "policies.own": ("rule",),
    "policies.static": ("StaticPlan", "fit_static"),
    "problem.bundled": ("load_instance", "load_layout", "load_records", "load_suite"),
    "problem.instance": ("Instance",),
    "problem.layout": ("Layout",),
    "problem.parts": ("RandomBreakdowns",),
    "problem.perturb": ("perturb",),
    "problem.shift": ("generate_shift",),
    "simulation.scene": ("Pairs", "Scene"),
    "simulation.simulator": ("Schedule", "Simulator"),
    "warm": ("warm_up",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_ROOMS = ("evolution", "rivals")
"""Packages that need no import of their own: `acerl_np.rivals.train`."""

__all__ = [
    "ACERL",
    "AcerlError",
    "ActionError",
    "Agent",
    "Assignment",
    "CheckpointError",
    "Config",
    "ConfigError",
    "Dispatcher",
    "EventError",
    "Explanation",
    "Floor",
    "Forecast",
    "Generation",
    "IndexPolicy",
    "InputError",
    "Instance",
    "Layout",
    "LayoutError",
    "LogWarning",
    "Lookahead",
    "MissingExtraError",
    "Option",
    "Pairs",
    "Policy",
    "PolicyError",
    "PolicyWarning",
    "RandomBreakdowns",
    "RecordError",
    "RecordWarning",
    "Scene",
    "Schedule",
    "SharingError",
    "Simulator",
    "StaticPlan",
    "StorageError",
    "TaskArrived",
    "TaskCancelled",
    "TaskChanged",
    "TaskRecalled",
    "Trials",
    "VehicleAdded",
    "VehicleBack",
    "VehicleBroke",
    "VehicleIdle",
    "VehicleOutOfService",
    "VehiclePassed",
    "VehicleRemoved",
    "VehicleRepaired",
    "__version__",
    "evaluate_policy",
    "feature",
    "fit_static",
    "generate_shift",
    "load_instance",
    "load_layout",
    "load_policy",
    "load_records",
    "load_suite",
    "perturb",
    "rule",
    "warm_up",
]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return importlib.import_module(f"acerl_np.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'acerl_np' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"acerl_np.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
