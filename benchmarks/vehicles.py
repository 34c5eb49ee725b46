"""What calling back, parking and charging do to the yardsticks, on the same shifts.

    python examples/floors.py --out floors                        two floors with chargers and parking places
    python benchmarks/vehicles.py floors/two-lane-hall/layout.json
    python benchmarks/vehicles.py floors/one-way-aisles/layout.json --utilisation 0.7 --shifts 20
    python benchmarks/vehicles.py plant.json --records days/*.csv --chargers CD YP1 JN1 JN2
    python benchmarks/vehicles.py plant.json --scale 1.6 --roles roles.json --chargers CD YP1 JN1 JN2
    python benchmarks/vehicles.py --quick                         seconds' worth, for a check

Every yardstick plays with tasks committed at assignment or until the pickup, with vehicles that park or stay,
with batteries or without: what the layout has no chargers or places for is left out. Batteries are the
layout's; without any they use 7 : 3 : 1 loaded, empty and idle, last two hours of driving, and charge so fast
that a vehicle must charge `--charging` of its time for these shifts, as `records check` says. A shift begins
with levels spread from `full` down to `good`.

CSV: means over the shifts with their standard errors, and by how much they differ from the same yardstick
committed at assignment, without parking, without batteries, shift by shift. `charging_share` is that of the
fleet's time until the makespan, of sessions that a decision fell into.
"""

import argparse
import csv
import json
import sys
from dataclasses import replace
from itertools import product
from math import ceil
from pathlib import Path

import numpy as np

import acerl_np
from acerl_np.commands.floor import RATES
from acerl_np.evaluation.metrics import standard_error
from acerl_np.kernels import state as S
from acerl_np.kernels.episodes import play_episodes
from acerl_np.policies.rules import RulePolicy
from acerl_np.problem.importers.common import complete_battery
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Battery, Charger, Layout, Parking, ParkingPlace
from acerl_np.problem.servable import measure_load
from acerl_np.problem.shift import find_scale
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import InputError

POLICIES = ("nearest", "assignment")
FIGURES = ("waiting_s", "late_share", "empty_share", "empty_m_a_task", "charging_share")
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


def play(policy: str, instance: Instance) -> list[float]:
    """Return the figures of one episode, which is played decision by decision."""
    problem = build_problem([instance])
    problem, prepare = RulePolicy(policy).prepare(problem, [instance], None)
    state, outcome, decider = S.allocate_state(problem, 1), S.allocate_outcome(1), prepare()
    keys = stream_keys([instance], 1, 0)
    episodes = S.Episodes(np.zeros(1, np.int64), keys, np.zeros(1, np.int64))
    sessions: dict[tuple[int, int], int] = {}  # vehicle and first tick -> last tick
    ending: dict[tuple[int, int], int] = {}  # of those that go on: when they are full
    begins = True
    while not play_episodes(problem, state, decider, episodes, (0, 1), begins, 1, outcome):
        begins = False
        now = int(state.episode[0, S.EPISODE_TIME])
        sessions |= {session: min(full, now) for session, full in ending.items()}
        vehicles = state.vehicle[0]
        charging = np.flatnonzero(vehicles[:, S.VEHICLE_STATUS] == S.CHARGING)
        ending = {
            (int(v), int(vehicles[v, S.VEHICLE_LEVEL_TICK])): int(vehicles[v, S.VEHICLE_EVENT_TICK])
            for v in charging
        }
    makespan = float(outcome.makespan[0])
    sessions |= {session: int(min(full, makespan)) for session, full in ending.items()}
    seconds = sum(last - first for (_, first), last in sessions.items())
    empty = float(state.usage[0, :, S.USAGE_EMPTY].sum())
    return [
        float(outcome.waiting[0]),
        float(outcome.late[0]),
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


def read_records(options: argparse.Namespace, layout: Layout) -> list[Instance]:
    """Return the records that are named, else shifts that are drawn."""
    if options.records:
        return [acerl_np.load_instance(path, layout=layout) for path in options.records]
    roles = json.loads(Path(options.roles).read_text("utf-8")) if options.roles else None
    plant = {"hours": options.hours, "roles": roles}
    scale = options.scale or find_scale(layout, options.utilisation, **plant)
    return [
        acerl_np.generate_shift(
            layout, scale=scale, seed=options.seed, index=k, name=f"shift-{k}", **plant
        )
        for k in range(options.shifts)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layout", nargs="?", help="a layout's file, or the name of a bundled one")
    parser.add_argument("--records", nargs="+", help="task records, instead of drawn shifts")
    parser.add_argument("--shifts", type=int, default=20)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--utilisation", type=float, default=0.8, help="of the shifts drawn")
    parser.add_argument("--scale", type=float, help="instead of a utilisation")
    parser.add_argument("--roles", help="a JSON file of who does what, as generate_shift takes it")
    parser.add_argument("--chargers", nargs="+", default=[], help="sites, one slot each")
    parser.add_argument("--parking", nargs="+", default=[], help="sites, a place each")
    parser.add_argument("--charging", type=float, default=0.25, help="share of a vehicle's time")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.layout, options.shifts, options.hours = "supply-loop", 2, 1.0
        options.chargers, options.parking = ["rack-1", "park"], ["park"]
    layout = acerl_np.load_layout(options.layout)
    given = {"chargers": tuple(map(Charger, options.chargers)) or layout.chargers}
    places = tuple(map(ParkingPlace, options.parking))
    given["parking"] = Parking(places) if places else layout.parking
    layout = replace(layout, **given)
    records = read_records(options, layout)
    battery = size_battery(records, options.charging)
    variants = list_variants(layout, battery)
    names = [*FIGURES, *(f"{name}_change" for name in FIGURES)]
    columns = [part for name in names for part in (name, f"{name}_error")]
    writer = csv.writer(sys.stdout)
    writer.writerow(["floor", "policy", "commitment", "parking", "battery", "shifts", *columns])
    for policy in POLICIES:
        base = None
        for commitment, parks, energy, floor in variants:
            own = [replace(record, layout=floor) for record in records]
            try:
                figures = np.array([play(policy, instance) for instance in own])
            except InputError as error:
                print(f"{policy}, {commitment}, {parks}, {energy}: {error}", file=sys.stderr)
                continue
            base = figures if base is None else base
            values = [*figures.T, *(figures - base).T]
            cells = [f"{x:.6g}" for v in values for x in (v.mean(), standard_error(v))]
            writer.writerow([layout.name, policy, commitment, parks, energy, len(records), *cells])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
