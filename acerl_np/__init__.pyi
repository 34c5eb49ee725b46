"""Public names and their homes, for type checkers; `__init__.py` imports them when they are used."""

from acerl_np import evolution as evolution
from acerl_np.commands.evaluate import Evaluation as Evaluation
from acerl_np.commands.evaluate import evaluate as evaluate
from acerl_np.commands.floor import FloorCheck as FloorCheck
from acerl_np.commands.floor import FloorImport as FloorImport
from acerl_np.commands.floor import check_floor as check_floor
from acerl_np.commands.floor import import_floor as import_floor
from acerl_np.commands.policy import Bounds as Bounds
from acerl_np.commands.policy import bound as bound
from acerl_np.commands.records.check import FileCheck as FileCheck
from acerl_np.commands.records.check import check_records as check_records
from acerl_np.commands.replay import replay as replay
from acerl_np.commands.shared.reporting import write_report as write_report
from acerl_np.commands.train import Training as Training
from acerl_np.commands.train import train as train
from acerl_np.evaluation.trials import Playing as Playing
from acerl_np.evaluation.trials import Trials as Trials
from acerl_np.evaluation.trials import evaluate_policy as evaluate_policy
from acerl_np.evaluation.verdict import Verdict as Verdict
from acerl_np.evaluation.whatif import WhatIf as WhatIf
from acerl_np.evaluation.whatif import whatif as whatif
from acerl_np.kernels.dispatching.floor import Floor as Floor
from acerl_np.live.dispatcher import Dispatcher as Dispatcher
from acerl_np.live.events import (
    Assignment as Assignment,
)
from acerl_np.live.events import (
    Charge as Charge,
)
from acerl_np.live.events import (
    EdgeClosed as EdgeClosed,
)
from acerl_np.live.events import (
    EdgeOpened as EdgeOpened,
)
from acerl_np.live.events import (
    Explanation as Explanation,
)
from acerl_np.live.events import (
    Forecast as Forecast,
)
from acerl_np.live.events import (
    MachineBusy as MachineBusy,
)
from acerl_np.live.events import (
    Option as Option,
)
from acerl_np.live.events import (
    Park as Park,
)
from acerl_np.live.events import (
    Recall as Recall,
)
from acerl_np.live.events import (
    RecallAnswered as RecallAnswered,
)
from acerl_np.live.events import (
    TaskAnnounced as TaskAnnounced,
)
from acerl_np.live.events import (
    TaskArrived as TaskArrived,
)
from acerl_np.live.events import (
    TaskCancelled as TaskCancelled,
)
from acerl_np.live.events import (
    TaskChanged as TaskChanged,
)
from acerl_np.live.events import (
    TaskMoved as TaskMoved,
)
from acerl_np.live.events import (
    TaskReady as TaskReady,
)
from acerl_np.live.events import (
    TaskRecalled as TaskRecalled,
)
from acerl_np.live.events import (
    VehicleAdded as VehicleAdded,
)
from acerl_np.live.events import (
    VehicleBack as VehicleBack,
)
from acerl_np.live.events import (
    VehicleBroke as VehicleBroke,
)
from acerl_np.live.events import (
    VehicleCharging as VehicleCharging,
)
from acerl_np.live.events import (
    VehicleIdle as VehicleIdle,
)
from acerl_np.live.events import (
    VehicleLevel as VehicleLevel,
)
from acerl_np.live.events import (
    VehicleOutOfService as VehicleOutOfService,
)
from acerl_np.live.events import (
    VehicleParked as VehicleParked,
)
from acerl_np.live.events import (
    VehiclePassed as VehiclePassed,
)
from acerl_np.live.events import (
    VehicleRemoved as VehicleRemoved,
)
from acerl_np.live.events import (
    VehicleRepaired as VehicleRepaired,
)
from acerl_np.live.orders import Followed as Followed
from acerl_np.live.shadow import Compared as Compared
from acerl_np.live.states import TaskState as TaskState
from acerl_np.pictures.replay import write_replay as write_replay
from acerl_np.policies.agent import Agent as Agent
from acerl_np.policies.agent_pair import AgentPair as AgentPair
from acerl_np.policies.files import load_policy as load_policy
from acerl_np.policies.index import (
    Feature as Feature,
)
from acerl_np.policies.index import (
    IndexPolicy as IndexPolicy,
)
from acerl_np.policies.index import (
    feature as feature,
)
from acerl_np.policies.lookahead import Lookahead as Lookahead
from acerl_np.policies.network import Policy as Policy
from acerl_np.policies.origin import Origin as Origin
from acerl_np.policies.own import rule as rule
from acerl_np.problem.bundled import (
    load_instance as load_instance,
)
from acerl_np.problem.bundled import (
    load_layout as load_layout,
)
from acerl_np.problem.bundled import (
    load_records as load_records,
)
from acerl_np.problem.bundled import (
    load_suite as load_suite,
)
from acerl_np.problem.conversion import Conversion as Conversion
from acerl_np.problem.conversion import convert_records as convert_records
from acerl_np.problem.export import Export as Export
from acerl_np.problem.generate import perturb as perturb
from acerl_np.problem.goal import Goal as Goal
from acerl_np.problem.goal import Measures as Measures
from acerl_np.problem.instance import Instance as Instance
from acerl_np.problem.layout import Layout as Layout
from acerl_np.problem.parts import (
    Battery as Battery,
)
from acerl_np.problem.parts import (
    Block as Block,
)
from acerl_np.problem.parts import (
    Breakdown as Breakdown,
)
from acerl_np.problem.parts import (
    Charger as Charger,
)
from acerl_np.problem.parts import (
    Closure as Closure,
)
from acerl_np.problem.parts import (
    Edge as Edge,
)
from acerl_np.problem.parts import (
    Machine as Machine,
)
from acerl_np.problem.parts import (
    Parking as Parking,
)
from acerl_np.problem.parts import (
    ParkingPlace as ParkingPlace,
)
from acerl_np.problem.parts import (
    RandomBreakdowns as RandomBreakdowns,
)
from acerl_np.problem.parts import (
    Site as Site,
)
from acerl_np.problem.parts import (
    Traffic as Traffic,
)
from acerl_np.problem.parts import (
    Vehicle as Vehicle,
)
from acerl_np.problem.shift import generate_shift as generate_shift
from acerl_np.simulation.scene import Fleet as Fleet
from acerl_np.simulation.scene import Pairs as Pairs
from acerl_np.simulation.scene import Scene as Scene
from acerl_np.simulation.simulator import Schedule as Schedule
from acerl_np.simulation.simulator import Simulator as Simulator
from acerl_np.support.errors import (
    AcerlError as AcerlError,
)
from acerl_np.support.errors import (
    ActionError as ActionError,
)
from acerl_np.support.errors import (
    CheckpointError as CheckpointError,
)
from acerl_np.support.errors import (
    ConfigError as ConfigError,
)
from acerl_np.support.errors import (
    EventError as EventError,
)
from acerl_np.support.errors import (
    EventWarning as EventWarning,
)
from acerl_np.support.errors import (
    InputError as InputError,
)
from acerl_np.support.errors import (
    LayoutError as LayoutError,
)
from acerl_np.support.errors import (
    LogWarning as LogWarning,
)
from acerl_np.support.errors import (
    MissingExtraError as MissingExtraError,
)
from acerl_np.support.errors import (
    PolicyError as PolicyError,
)
from acerl_np.support.errors import (
    PolicyWarning as PolicyWarning,
)
from acerl_np.support.errors import (
    RecordError as RecordError,
)
from acerl_np.support.errors import (
    SharingError as SharingError,
)
from acerl_np.support.errors import (
    StorageError as StorageError,
)
from acerl_np.support.errors import (
    WorkerError as WorkerError,
)
from acerl_np.support.faults import Fault as Fault
from acerl_np.support.faults import RecordWarning as RecordWarning
from acerl_np.support.team import Team as Team
from acerl_np.support.version import __version__ as __version__
from acerl_np.training.acerl import ACERL as ACERL
from acerl_np.training.config import Config as Config
from acerl_np.training.history import CurvePoint as CurvePoint
from acerl_np.training.history import Generation as Generation
from acerl_np.warm import warm_up as warm_up
