"""A live day whose dispatcher is killed now and then: no task may be lost, none carried by two vehicles.

    python benchmarks/kill_live.py [--tasks 800] [--kills 20] [--seed 0] [--plain] [--saves] [--returns]

This process is the plant: its vehicles drive, park, charge, break down and are called back, with batteries
that use a little more than the dispatcher reckons, and messages that come up to 4 s late. Every third task
follows the one before it, which a machine processes first. Its events go to a
dispatcher in another process, which dies by SIGKILL at random moments: while it works, and while it starts. A
new one recovers from the log alone. The plant keeps what it has sent, tells it again from the last number
that the log has, with a few known events before, and does no order whose number it has. It fails if a task is
not delivered, or is given to a second vehicle while one has it or afterwards. With --plain vehicles only
drive. With --saves it writes its state every 40 messages, and recovers from state and log. With --returns a
vehicle that breaks down gives its load back; else it keeps it, and drives on with it after the repair.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from script import make_parser

import acerl_np

N_VEHICLES = 6


BATTERY = {"capacity": 10000, "idle": 1, "empty": 3, "loaded": 7, "charge": 30}
BATTERY |= {"critical": 1500, "resume": 4000, "good": 5000, "full": 9500}
TRUE_RATE, LATEST = 3.6, 4.0
"""What vehicles truly use a second as they drive; s that a message is late at most."""

TOLD, TRUE = 20.0, 25.0
"""s of processing, as the dispatcher is told, and as it is."""


def make_layout(plain: bool) -> acerl_np.Layout:
    """Return the bundled floor with more vehicles, by default with batteries and parking places."""
    data = acerl_np.load_layout("dmh").to_dict()
    stations = [site["id"] for site in data["sites"] if site["id"].startswith("st")]
    data["vehicles"] = [
        {"id": f"v{k}", "start": stations[k], "speed": 1.0} for k in range(N_VEHICLES)
    ]
    if not plain:
        data["battery"] = BATTERY
        data["chargers"] = [{"site": "st2"}, {"site": "st6", "slots": 2}]
        data["parking"] = {"after": 20, "places": [{"site": "carport", "places": 3}]}
        data["machines"] = [{"site": site} for site in stations]
    return acerl_np.Layout.from_dict(data)


def serve(log: Path, plain: bool, saves: bool, returns: bool) -> None:
    """Be the dispatcher: a line of JSON is an event or a question, whose answer is one."""
    layout, policy, state = make_layout(plain), "nearest", log.with_suffix(".npz")
    warnings.simplefilter("ignore", acerl_np.LogWarning)
    if log.exists():
        known = state if saves and state.exists() else None
        dispatcher = acerl_np.Dispatcher.recover(layout, policy, audit=log, state=known)
    else:
        commitment, loads = "assignment" if plain else "pickup", "return" if returns else "stay"
        dispatcher = acerl_np.Dispatcher(
            layout, policy, audit=log, commitment=commitment, loads=loads
        )
    print(json.dumps({"last": dispatcher.last_number}), flush=True)
    for n, row in enumerate(sys.stdin):
        message = json.loads(row)
        if saves and n % 40 == 0:
            dispatcher.save(state)
        if "now" in message:
            made = dispatcher.decide(message["now"])
            told = [[type(item).__name__, item.number, *item[:2], item.repeated] for item in made]
            print(json.dumps([told, dispatcher.next_time]), flush=True)
        else:
            event = getattr(acerl_np, message["kind"])(**message["event"])
            dispatcher.feed(event, number=message["number"])


class KilledError(Exception):
    """The dispatcher is gone."""


class Vehicle:
    """What a vehicle does: `way` are the moments at which it comes to its next sites."""

    def __init__(self, site: str) -> None:
        self.site, self.task = site, ""
        self.is_loaded = self.is_charging = self.is_broken = False
        self.level, self.since = float(BATTERY["capacity"]), 0.0
        self.trip = 0
        self.way: list[tuple[float, str]] = []


class Plant:
    """Tasks, vehicles that do as told, and what it has sent."""

    def __init__(self, n_tasks: int, n_kills: int, seed: int, log: Path, flags: list[str]) -> None:
        self.draw, self.log = random.Random(seed), log
        self.flags, self.plain, self.keeps = flags, "--plain" in flags, "--returns" not in flags
        self.layout, self.n_tasks = make_layout(self.plain), n_tasks
        self.fleet = {vehicle.id: Vehicle(vehicle.start) for vehicle in self.layout.vehicles}
        self.slots = {item.site: item.slots for item in self.layout.chargers}
        self.queue: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.due: list[dict[str, Any]] = []
        self.known: set[int] = set()
        self.refused: set[str] = set()
        self.delivered: set[str] = set()
        self.twice = self.kills = self.repeats = self.n_plans = 0
        self.counts = dict.fromkeys(("Recall", "refused", "Charge", "Park", "broken", "kept"), 0)
        self.ends: dict[str, tuple[str, str]] = {}
        self.follower: dict[str, str] = {}
        self.ready: dict[str, float] = {}
        self.busy: dict[str, float] = {}
        """Until when the machines are, by their sites, s."""
        self.plan: list[tuple[float, int, Callable[[float], None]]] = []
        stations, now = [site for site in self.layout.site_index if site.startswith("st")], 0.0
        for k in range(n_tasks):
            follows = not self.plain and k % 3 == 2
            if k and not follows:
                now += round(
                    self.draw.expovariate(N_VEHICLES / (130.0 if self.plain else 200.0)), 1
                )
            pickup, delivery = self.draw.sample(stations, 2)
            event: dict[str, Any] = {} if self.plain else {"processing": TOLD}
            if follows:
                before = f"t{k - 1}"
                pickup, self.follower[before] = self.ends[before][1], f"t{k}"
                delivery = self.draw.choice([site for site in stations if site != pickup])
                event["after"] = before
            self.ends[f"t{k}"] = pickup, delivery
            event |= {"task": f"t{k}", "pickup": pickup, "delivery": delivery, "expiry": 400.0}
            self.add(now, partial(self.tell, "TaskArrived", **event))
        # About three moments a task: it comes, is picked up, is delivered.
        moments = range(3 * n_tasks)
        self.kill_at = set(self.draw.sample(moments[: int(0.9 * len(moments))], n_kills))
        self.process: subprocess.Popen[str] | None = None

    def add(self, at: float, what: Callable[[float], None]) -> None:
        self.n_plans += 1
        heapq.heappush(self.plan, (at, self.n_plans, what))

    def tell(self, kind: str, now: float, **event: Any) -> None:
        self.due.append({"kind": kind, "event": {"time": now, **event}})

    def tell_late(self, kind: str, now: float, **event: Any) -> None:
        """Tell an event of now, sometimes later."""
        late = self.draw.choice((0.0, 0.0, LATEST)) if not self.plain else 0.0
        self.add(now + late, lambda _: self.tell(kind, now, **event))

    def write(self, message: dict[str, Any]) -> None:
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise KilledError from error

    def read(self) -> Any:
        assert self.process is not None and self.process.stdout is not None
        row = self.process.stdout.readline()
        if not row.endswith("\n"):  # what it said last may be cut off
            raise KilledError
        return json.loads(row)

    def kill_after(self, most: float) -> None:
        """Kill the dispatcher at some moment from now on, s."""
        assert self.process is not None
        pid, delay = self.process.pid, self.draw.uniform(0.0, most)

        def kill() -> None:
            time.sleep(delay)
            os.kill(pid, signal.SIGKILL)

        threading.Thread(target=kill).start()
        self.kills += 1

    def start(self) -> None:
        """Start a dispatcher, and tell it what it may not know."""
        while True:
            if self.process is not None:
                self.process.wait()
            words = [sys.executable, __file__, "--serve", str(self.log), *self.flags]
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            if self.kill_at and self.draw.random() < 0.2:
                self.kill_at.pop()
                self.kill_after(2.0)
            try:
                last = self.read()["last"]
                again = self.draw.randrange(5)
                for message in self.sent[max(0, (-1 if last is None else last) + 1 - again) :]:
                    self.write(message)
                return
            except KilledError:
                continue

    def ask(self, now: float) -> Any:
        self.write({"now": now})
        return self.read()

    def run(self) -> float:
        """Run the day; return its last moment, s."""
        self.start()
        moment, now = 0, 0.0
        while self.plan and len(self.delivered) < self.n_tasks:
            now = self.plan[0][0]
            while self.plan and self.plan[0][0] == now:
                heapq.heappop(self.plan)[2](now)
            due = [{**item, "number": len(self.sent) + k} for k, item in enumerate(self.due)]
            self.sent += due
            self.due.clear()
            if moment in self.kill_at:
                self.kill_at.discard(moment)
                self.kill_after(0.002)
            moment += 1
            try:
                for message in due:
                    self.write(message)
                answer = self.ask(now)
            except KilledError:
                answer = None
            while answer is None:
                self.start()
                try:
                    answer = self.ask(now)
                except KilledError:
                    continue
            made, next_time = answer
            for order in made:
                self.obey(now, *order)
            if next_time is not None:
                self.add(max(now + 0.5, next_time), lambda _: None)
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        return now

    def obey(
        self, now: float, kind: str, number: int, vehicle: str, what: str, repeated: bool
    ) -> None:
        """Do an order, unless the plant has its number."""
        self.repeats += repeated
        if number in self.known:
            self.twice += not repeated
            return
        self.known.add(number)
        own = self.fleet[vehicle]
        if kind == "Recall":
            self.give_back(now, vehicle, what)
        elif kind == "Assignment":
            carriers = [name for name, other in self.fleet.items() if other.task == what]
            if what in self.delivered or carriers or own.task:
                # Only what a recall that was refused has been followed by is to be expected.
                self.twice += what not in self.refused and own.task not in self.refused
            elif not own.is_broken:
                own.task = what
                self.leave_charger(now, vehicle)
                self.drive(now, vehicle, *self.ends[what])
        elif not own.task and not own.is_broken:
            self.counts[kind] += 1
            self.drive(now, vehicle, what, kind=kind)

    def give_back(self, now: float, vehicle: str, task: str) -> None:
        """Take a task off a vehicle, which drives on to its next site, unless it has loaded it."""
        own = self.fleet[vehicle]
        if own.task == task and own.is_loaded:
            self.refused.add(task)
            self.counts["refused"] += 1
            self.tell_late("RecallAnswered", now, vehicle=vehicle, task=task, done=False)
            return
        self.counts["Recall"] += 1
        if own.task == task:
            own.task = ""
            ahead = [site for at, site in own.way if at >= now]
            self.drive(now, vehicle, ahead[0] if ahead else own.site)
        self.tell_late("RecallAnswered", now, vehicle=vehicle, task=task)

    def use(self, now: float, own: Vehicle) -> None:
        """Reckon what a battery holds."""
        rate = TRUE_RATE if own.way else float(BATTERY["idle"])
        if own.is_charging:
            rate = -float(BATTERY["charge"])
        own.level = min(BATTERY["full"], max(1.0, own.level - rate * (now - own.since)))
        own.since = now

    def drive(self, now: float, vehicle: str, *ends: str, kind: str = "") -> None:
        """Let a vehicle drive to sites, from the next one on its way; it forgets its way of before."""
        own, index = self.fleet[vehicle], self.layout.site_index
        self.use(now, own)
        ahead = [item for item in own.way if item[0] >= now]
        at, site = ahead[0] if ahead else (now, own.site)
        own.way = ahead[:1]
        own.trip += 1
        # Some are at a pickup earlier than was reckoned: a recall may cross that.
        haste = 1.0 if self.plain else self.draw.choice((1.0, 1.0, 0.6))
        for end in ends:
            while site != end:
                following = int(self.layout.routes.next_site[index[site], index[end]])
                length = self.layout.routes.edge_length[index[site], following]
                at, site = at + haste * float(length), self.layout.sites[following].id
                own.way.append((at, site))
            if len(ends) == 2 and end == ends[0]:
                at = max(at + (0.5 if haste == 1.0 else 0.0), self.ready.get(own.task, 0.0))
                self.add(at, partial(self.load, vehicle, own.trip))
            own.way.append((at, site))
        for moment, place in dict.fromkeys(own.way[:-1]):
            self.add(max(now, moment), partial(self.reach, vehicle, own.trip, place))
        self.add(max(now, at) + 1.0, partial(self.arrive, vehicle, own.trip, kind))
        if not self.plain and self.draw.random() < 0.02:
            self.add(self.draw.uniform(now, at), partial(self.fail, vehicle, own.trip))

    def reach(self, vehicle: str, trip: int, site: str, now: float) -> None:
        own = self.fleet[vehicle]
        if own.trip == trip:
            own.site = site
            # That it loads must be known before it may break down with the load.
            loads = own.task and site == self.ends[own.task][0] and self.keeps
            tell = self.tell if loads else self.tell_late
            tell("VehiclePassed", now, vehicle=vehicle, site=site)

    def load(self, vehicle: str, trip: int, now: float) -> None:
        self.fleet[vehicle].is_loaded |= self.fleet[vehicle].trip == trip

    def arrive(self, vehicle: str, trip: int, kind: str, now: float) -> None:
        """End a way: with a delivery, in a queue, at a parking place, or where a task was given back."""
        own = self.fleet[vehicle]
        if own.trip != trip:
            return
        self.use(now, own)
        own.site, own.way = own.way[-1][1], []
        if own.task:
            self.delivered.add(own.task)
            self.refused.discard(own.task)
            self.tell("VehicleIdle", now, vehicle=vehicle, site=own.site)
            self.deliver(now, own.task)
            own.task, own.is_loaded = "", False
        else:
            told = "VehicleParked" if kind == "Park" else "VehiclePassed"
            self.tell(told, now, vehicle=vehicle, site=own.site)
        if not self.plain:
            self.tell_late("VehicleLevel", now, vehicle=vehicle, level=own.level)
        if kind == "Charge":
            self.queue.append(vehicle)
            self.plug_in(now)

    def deliver(self, now: float, task: str) -> None:
        """Let a machine take what was delivered, in turn; what follows is ready then, or announced now."""
        site, follower = self.ends[task][1], self.follower.get(task)
        done = self.busy[site] = max(now, self.busy.get(site, 0.0)) + TRUE
        if follower is not None:
            self.ready[follower] = done
            if self.draw.random() < 0.5:
                self.tell("TaskAnnounced", now, task=follower, ready=done)
            self.add(done, lambda then: self.tell_late("TaskReady", then, task=follower))

    def plug_in(self, now: float) -> None:
        """Let those begin to charge for whom there is a slot."""
        for vehicle in self.queue.copy():
            own = self.fleet[vehicle]
            if self.slots[own.site] > 0:
                self.queue.remove(vehicle)
                self.slots[own.site] -= 1
                self.use(now, own)
                own.is_charging = True
                self.tell("VehicleCharging", now, vehicle=vehicle, site=own.site)
                full = now + 1.0 + (BATTERY["full"] - own.level) / BATTERY["charge"]
                self.add(full, partial(self.unplug, vehicle, own.trip))

    def unplug(self, vehicle: str, trip: int, now: float) -> None:
        own = self.fleet[vehicle]
        if own.trip == trip and own.is_charging:
            self.leave_charger(now, vehicle)
            self.tell("VehicleCharging", now, vehicle=vehicle, site=own.site, begins=False)

    def leave_charger(self, now: float, vehicle: str) -> None:
        own = self.fleet[vehicle]
        if vehicle in self.queue:
            self.queue.remove(vehicle)
        if own.is_charging:
            self.use(now, own)
            own.is_charging = False
            self.slots[own.site] += 1
            self.plug_in(now)

    def fail(self, vehicle: str, trip: int, now: float) -> None:
        """Let a vehicle break down on its way; it is repaired where it was last."""
        own = self.fleet[vehicle]
        keeps = own.is_loaded and self.keeps
        # Whether it has the load is not told of one that stands at the pickup.
        loads = own.task and not own.is_loaded and own.site == self.ends[own.task][0]
        if own.trip != trip or not own.way or (loads and self.keeps):
            return
        self.use(now, own)
        self.counts["broken"] += 1
        own.trip += 1
        self.counts["kept"] += keeps
        own.way, own.is_loaded, own.is_broken = [], keeps, True
        own.task = own.task if keeps else ""
        self.tell("VehicleBroke", now, vehicle=vehicle)
        self.add(now + 60.0, partial(self.repair, vehicle))

    def repair(self, vehicle: str, now: float) -> None:
        own = self.fleet[vehicle]
        own.is_broken, own.since = False, now
        self.tell("VehicleRepaired", now, vehicle=vehicle, site=own.site)
        if own.task:
            self.drive(now, vehicle, self.ends[own.task][1])


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--tasks", type=int, default=800)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="no batteries, nobody is called back")
    parser.add_argument("--saves", action="store_true", help="restart with a state, too")
    parser.add_argument("--returns", action="store_true", help="broken vehicles give loads back")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        serve(arguments.serve, arguments.plain, arguments.saves, arguments.returns)
        return
    if arguments.quick:
        arguments.tasks, arguments.kills = 60, 3
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "day.jsonl"
        flags = [f"--{x}" for x in ("plain", "saves", "returns") if getattr(arguments, x)]
        plant = Plant(arguments.tasks, arguments.kills, arguments.seed, log, flags)
        end = plant.run()
        n_lines = log.read_bytes().count(b"\n")
    lost = arguments.tasks - len(plant.delivered)
    print(
        f"{arguments.tasks} tasks in {end:,.0f} s of the plant, {plant.kills} kills, "
        f"{plant.repeats} orders repeated, {n_lines:,} lines, {plant.counts}: {lost} lost, "
        f"{plant.twice} carried twice; "
        f"{time.perf_counter() - started:.0f} s"
    )
    sys.exit(lost > 0 or plant.twice > 0 or plant.kills < arguments.kills)


if __name__ == "__main__":
    main()
