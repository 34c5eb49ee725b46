"""What waiting, calling back, parking and charging do to baselines and trained policies, on the same shifts.

    python benchmarks/larger_floors.py --out floors                two floors with chargers and parking places
    python benchmarks/vehicles.py floors/two-lane-hall/layout.json --out vehicles.csv
    python benchmarks/vehicles.py floors/one-way-aisles/layout.json --utilisation 0.6 --cells "*/layout"
    python benchmarks/vehicles.py plant.json --records days/*.csv --chargers CD YP1 JN1 JN2 --seeds 0:0
    python benchmarks/vehicles.py plant.json --roles roles.json --chargers CD YP1 --parking 155 303
    python benchmarks/vehicles.py --quick                         seconds' worth, for a check

A cell is POLICY/COMMITMENT/PARKING/BATTERY: tasks are committed at assignment or until the pickup, vehicles
park or stay, batteries are the layout's or unlimited; what the layout has no chargers or places for is left
out. Policies are two baselines and index policies, which twelve other shifts train for an objective, one
for each seed: `index` has the ten features alone and those of call-backs, `+wait` may wait, `+tuned` tunes
the thresholds of charging, `+energy` has the features of batteries. Batteries are the layout's; without any
they use 7 : 3 : 1 loaded, empty and idle, last two hours of driving, have the thresholds 20, 45, 60 and 95
%, and charge so fast that a vehicle must charge `--charging` of its time for these shifts, as `records
check` says. A shift begins with levels spread from `full` down to `good`.

A line of the CSV is a shift of a cell and seed; baselines have neither objective nor seed. Lines are
written as each ends, and what is there is not played again: --out goes on with its file. `charging_share`
is that of the fleet's time until the makespan, of sessions that a decision fell into. Means are printed.
"""

import argparse
import csv
import json
import sys
import time
from dataclasses import replace
from fnmatch import fnmatch
from itertools import product
from math import ceil
from pathlib import Path

import numpy as np
from larger_floors import draw_shifts
from script import make_parser

import acerl_np
from acerl_np.commands.floor import RATES
from acerl_np.kernels.core import state as S
from acerl_np.kernels.rollout.episodes import play_episodes
from acerl_np.policies.files import BasePolicy
from acerl_np.policies.index import ENERGY, NAMES, RECALLING
from acerl_np.policies.rules import RulePolicy
from acerl_np.problem.goal import SHIFT
from acerl_np.problem.importers.common import complete_battery
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.parts import Battery, Charger, Parking, ParkingPlace
from acerl_np.problem.servable import measure_load
from acerl_np.problem.shift import find_scale
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import InputError

POLICIES = ("nearest", "assignment")
TRAINED = ("index", "index+wait", "index+tuned", "index+energy", "index+tuned+energy")
TRAINING = 12
KEYS = (
    *("floor", "utilisation", "policy", "commitment", "parking", "battery", "objective"),
    *("decisions", "seed", "shift"),
)
FIGURES = (
    *("waiting_s", "late_share", "tardiness_s", "empty_share", "empty_m_a_task"),
    "charging_share",
)
HOURS = 2.0


def size_battery(records: list[Instance], share: float) -> Battery:
    """Return a battery with which a vehicle must charge so much of its time for these records."""
    loads = [measure_load(record) for record in records]
    loaded = float(np.mean([load.loaded for load in loads]))
    empty = float(np.mean([load.offered for load in loads])) - loaded
    used = RATES["loaded"] * loaded + RATES["empty"] * empty
    used += RATES["idle"] * max(0.0, 1.0 - loaded - empty - share)
    capacity = round(1800 * HOURS * (RATES["loaded"] + RATES["empty"]))
    given = {**RATES, "capacity": capacity, "charge": ceil(used / share)}
    return Battery(start=capacity, **complete_battery(given))


def play(policy: BasePolicy, instance: Instance) -> list[float]:
    """Return the figures of one episode, which is played decision by decision."""
    problem = build_problem([instance])
    problem, prepare = policy.prepare(problem, [instance], None)
    state, outcome, decider = S.allocate_state(problem, 1), S.allocate_outcome(1), prepare()
    keys = stream_keys([instance], 1, 0)
    episodes = S.Episodes(np.zeros(1, np.int64), keys, np.zeros(1, np.int64))
    sessions: dict[tuple[int, int], int] = {}  # vehicle and first tick -> last tick
    ending: dict[tuple[int, int], int] = {}  # of those that go on: when they are full
    begins = True
    while not play_episodes(problem, state, decider, episodes, (0, 1), begins, 1, outcome):
        begins = False
        now = int(state.episode["time"][0])
        sessions |= {session: min(full, now) for session, full in ending.items()}
        vehicles = state.vehicle[0]
        charging = np.flatnonzero(vehicles["status"] == S.CHARGING).tolist()
        since, full = vehicles["level_tick"].tolist(), vehicles["event_tick"].tolist()
        ending = {(v, since[v]): full[v] for v in charging}
    makespan = float(outcome.makespan[0])
    sessions |= {session: int(min(full, makespan)) for session, full in ending.items()}
    seconds = sum(last - first for (_, first), last in sessions.items())
    empty = float(state.vehicle[0]["empty"].sum())
    return [
        float(outcome.waiting[0]),
        float(outcome.late[0]),
        float(outcome.tardiness[0]),
        float(outcome.empty[0]),
        empty / instance.n_tasks,
        seconds / (makespan * len(instance.layout.vehicles)),
    ]


def list_variants(layout: Layout, battery: Battery) -> list[tuple[str, str, str, Layout]]:
    """Return floors by commitment, parking and battery; the base is the first."""
    bare = replace(
        layout,
        battery=None,
        parking=None,
        vehicles=tuple(replace(vehicle, battery=None) for vehicle in layout.vehicles),
    )
    charged = layout
    if not any(layout.batteries):
        step = (battery.full - battery.good) // len(layout.vehicles)
        fleet = (
            replace(vehicle, battery=replace(battery, start=battery.full - k * step))
            for k, vehicle in enumerate(layout.vehicles)
        )
        charged = replace(layout, vehicles=tuple(fleet))
    batteries = {"unlimited": bare, "layout": charged} if layout.chargers else {"unlimited": bare}
    parkings = {"stay": None, "park": layout.parking} if layout.parking else {"stay": None}
    return [
        (commitment, parks, energy, replace(floor, parking=places).with_commitment(commitment))
        for (energy, floor), (parks, places), commitment in product(
            batteries.items(), parkings.items(), ("assignment", "pickup")
        )
    ]


def train(
    arm: str, shifts: list[Instance], commitment: str, seed: int, options: argparse.Namespace
) -> BasePolicy:
    """Return an index policy: what may wait, is tuned and is seen beside the ten is in the arm's name."""
    recalling = RECALLING if commitment == "pickup" else ()
    config = acerl_np.Config.preset(
        "best",
        decisions=options.decisions,
        objective=options.objective,
        curve_every=0,
        commitment=commitment,
        features=(*NAMES, *recalling, *(ENERGY if "+energy" in arm else ())),
        may_wait="+wait" in arm,
        tune_charging="+tuned" in arm,
    )
    trainer = acerl_np.ACERL(shifts, config, seed=seed, threads=1)
    trainer.run()
    return trainer.policy


def suits(arm: str, energy: str) -> bool:
    """Whether an arm is worth a cell: batteries are tuned and seen where there are some."""
    of_batteries = "+tuned" in arm or "+energy" in arm
    return energy == "layout" if of_batteries else arm != "index+wait" or energy == "unlimited"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("layout", nargs="?", help="a layout's file, or the name of a bundled one")
    parser.add_argument("--out", type=Path, help="the CSV")
    parser.add_argument("--cells", nargs="+", default=["*"], help='such as "index*/*/stay/*"')
    parser.add_argument("--seeds", default="0:10", help="of trainings")
    parser.add_argument("--objective", default=SHIFT, help="of trainings")
    parser.add_argument("--decisions", type=int, default=300_000, help="of a training")
    parser.add_argument("--records", nargs="+", help="task records, instead of drawn shifts")
    parser.add_argument("--shifts", type=int, default=20)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=2, help="of the shifts; the next trains")
    parser.add_argument("--utilisation", type=float, default=0.8, help="of the shifts drawn")
    parser.add_argument("--scale", type=float, help="instead of a utilisation")
    parser.add_argument("--roles", help="a JSON file of who does what, as generate_shift takes it")
    parser.add_argument("--chargers", nargs="+", default=[], help="sites, one slot each")
    parser.add_argument("--parking", nargs="+", default=[], help="sites, a place each")
    parser.add_argument("--charging", type=float, default=0.25, help="share of a vehicle's time")
    options = parser.parse_args()
    n_training = TRAINING
    if options.quick:
        options.layout, options.shifts, options.hours = "supply-loop", 2, 1.0
        options.chargers, options.parking = ["rack-1", "park"], ["park"]
        options.seeds, options.decisions, n_training = "0:1", 20_000, 2
    layout = acerl_np.load_layout(options.layout)
    given = {"chargers": tuple(map(Charger, options.chargers)) or layout.chargers}
    places = tuple(map(ParkingPlace, options.parking))
    given["parking"] = Parking(places) if places else layout.parking
    layout = replace(layout, **given)
    roles = json.loads(Path(options.roles).read_text("utf-8")) if options.roles else None

    def draw(hours: float, seed: int, n: int) -> list[Instance]:
        plant = {"hours": hours, "roles": roles}
        if options.scale is None:  # of the shifts that judge, for both
            options.scale = find_scale(layout, options.utilisation, **plant)
        return draw_shifts(layout, n, seed, scale=options.scale, **plant)

    if options.records:
        unseen = [acerl_np.load_instance(path, layout=layout) for path in options.records]
    else:
        unseen = draw(options.hours, options.seed, options.shifts)
    training = draw(options.hours / 2, options.seed + 1, n_training)
    battery = size_battery(unseen, options.charging)
    first, last = map(int, options.seeds.split(":"))
    trained = [(arm, str(seed)) for seed in range(first, last) for arm in TRAINED]

    done: set[tuple[str, ...]] = set()
    out = options.out.open("a+", newline="", encoding="utf-8") if options.out else sys.stderr
    writer = csv.writer(out, lineterminator="\n")
    if options.out:
        out.seek(0)
        done = {tuple(line[:9]) for line in csv.reader(out)}
    if not done:
        writer.writerow([*KEYS, *FIGURES])
    variants = list_variants(layout, battery)
    for policy, seed in [*((name, "") for name in POLICIES), *trained]:
        for commitment, parks, energy, floor in variants:
            cell = f"{policy}/{commitment}/{parks}/{energy}"
            learnt = (options.objective, str(options.decisions), seed) if seed else ("", "", "")
            key = (layout.name, f"{options.utilisation:g}", *cell.split("/"), *learnt)
            asked = any(fnmatch(cell, pattern) for pattern in options.cells)
            if not asked or key in done or not suits(policy, energy):
                continue
            started = time.process_time()
            try:
                player: BasePolicy = RulePolicy(policy)
                if seed:
                    shifts = [replace(record, layout=floor) for record in training]
                    player = train(policy, shifts, commitment, int(seed), options)
                own = [replace(record, layout=floor) for record in unseen]
                figures = [play(player, instance) for instance in own]
            except InputError as error:
                print(f"{cell}: {error}", file=sys.stderr)
                continue
            for k, values in enumerate(figures):
                writer.writerow([*key, k, *(f"{value:.5g}" for value in values)])
            out.flush()
            means = " ".join(f"{value:9.4g}" for value in np.mean(figures, axis=0))
            seconds = time.process_time() - started
            print(f"{layout.name} {cell} {seed or '-'}: {means}  {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
