"""A live day whose dispatcher is killed now and then: no task may be lost, none carried by two vehicles.

    python benchmarks/kill_live.py [--tasks 800] [--kills 20] [--seed 0]

This process is the plant: its vehicles drive, and its events go to a dispatcher in another process, which
dies by SIGKILL at random moments: while it works, and while it starts. A new one recovers from the log alone.
The plant keeps what it has sent, tells it again from the last number that the log has, with a few known
events before, and begins no assignment whose number it has. It fails if a task is not delivered, or is given
to a second vehicle while one has it or afterwards.
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
from pathlib import Path
from typing import Any

import acerl_np

N_VEHICLES = 6


def make_layout() -> acerl_np.Layout:
    """Return the bundled floor with more vehicles."""
    data = acerl_np.load_layout("dmh").to_dict()
    stations = [site["id"] for site in data["sites"] if site["id"].startswith("st")]
    data["vehicles"] = [
        {"id": f"v{k}", "start": stations[k], "speed": 1.0} for k in range(N_VEHICLES)
    ]
    return acerl_np.Layout.from_dict(data)


def serve(log: Path) -> None:
    """Be the dispatcher: a line of JSON is an event or a question, whose answer is one."""
    policy = "nearest"
    warnings.simplefilter("ignore", acerl_np.LogWarning)
    if log.exists():
        dispatcher = acerl_np.Dispatcher.recover(make_layout(), policy, audit=log)
    else:
        dispatcher = acerl_np.Dispatcher(make_layout(), policy, audit=log)
    print(json.dumps({"last": dispatcher.last_number}), flush=True)
    for row in sys.stdin:
        message = json.loads(row)
        if "now" in message:
            made = dispatcher.decide(message["now"])
            told = [[item.number, item.vehicle, item.task, item.repeated] for item in made]
            print(json.dumps(told), flush=True)
        else:
            event = getattr(acerl_np, message["kind"])(**message["event"])
            dispatcher.feed(event, number=message["number"])


class KilledError(Exception):
    """The dispatcher is gone."""


class Plant:
    """Tasks, vehicles that drive as told, and what it has sent."""

    def __init__(self, n_tasks: int, n_kills: int, seed: int, log: Path) -> None:
        self.draw, self.log, self.layout = random.Random(seed), log, make_layout()
        self.sites = {vehicle.id: vehicle.start for vehicle in self.layout.vehicles}
        self.sent: list[dict[str, Any]] = []
        self.known: set[int] = set()
        self.carried: dict[str, str] = {}
        self.delivered: set[str] = set()
        self.twice = self.kills = self.repeats = 0
        self.ends: dict[str, tuple[str, str]] = {}
        self.plan: list[tuple[float, int, str, dict[str, Any]]] = []
        stations, now = [site for site in self.layout.site_index if site.startswith("st")], 0.0
        for k in range(n_tasks):
            pickup, delivery = self.draw.sample(stations, 2)
            self.ends[f"t{k}"] = pickup, delivery
            event = {"task": f"t{k}", "pickup": pickup, "delivery": delivery, "expiry": 400.0}
            self.add(now, "TaskArrived", event)
            now += round(self.draw.expovariate(N_VEHICLES / 130.0), 1)
        # About three moments a task: it comes, is picked up, is delivered.
        moments = range(3 * n_tasks)
        self.kill_at = set(self.draw.sample(moments[: int(0.9 * len(moments))], n_kills))
        self.process: subprocess.Popen[str] | None = None

    def add(self, at: float, kind: str, event: dict[str, Any]) -> None:
        heapq.heappush(
            self.plan, (at, len(self.plan) + len(self.sent), kind, {"time": at, **event})
        )

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
            words = [sys.executable, __file__, "--serve", str(self.log)]
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
        while self.plan:
            now = self.plan[0][0]
            due: list[dict[str, Any]] = []
            while self.plan and self.plan[0][0] == now:
                _, _, kind, event = heapq.heappop(self.plan)
                if kind == "VehicleIdle":
                    task = next(t for t, v in self.carried.items() if v == event["vehicle"])
                    del self.carried[task]
                    self.delivered.add(task)
                    self.sites[event["vehicle"]] = event["site"]
                self.sent.append({"kind": kind, "event": event, "number": len(self.sent)})
                due.append(self.sent[-1])
            if moment in self.kill_at:
                self.kill_at.discard(moment)
                self.kill_after(0.002)
            moment += 1
            try:
                for message in due:
                    self.write(message)
                made = self.ask(now)
            except KilledError:
                made = None
            while made is None:
                self.start()
                try:
                    made = self.ask(now)
                except KilledError:
                    continue
            for number, vehicle, task, repeated in made:
                self.begin(now, number, vehicle, task, repeated)
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        return now

    def begin(self, now: float, number: int, vehicle: str, task: str, repeated: bool) -> None:
        """Let a vehicle begin, unless the plant has the assignment's number."""
        self.repeats += repeated
        if number in self.known:
            self.twice += not repeated
            return
        self.known.add(number)
        if task in self.delivered or task in self.carried or vehicle in self.carried.values():
            self.twice += 1
            return
        self.carried[task] = vehicle
        distance, index = self.layout.routes.distance, self.layout.site_index
        pickup, delivery = self.ends[task]
        at = now + 1.0 + float(distance[index[self.sites[vehicle]], index[pickup]])
        self.add(at, "VehiclePassed", {"vehicle": vehicle, "site": pickup})
        at += 1.0 + float(distance[index[pickup], index[delivery]])
        self.add(at, "VehicleIdle", {"vehicle": vehicle, "site": delivery})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=800)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="60 tasks, 3 kills")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        serve(arguments.serve)
        return
    if arguments.quick:
        arguments.tasks, arguments.kills = 60, 3
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "day.jsonl"
        plant = Plant(arguments.tasks, arguments.kills, arguments.seed, log)
        end = plant.run()
        n_lines = log.read_bytes().count(b"\n")
    lost = arguments.tasks - len(plant.delivered)
    print(
        f"{arguments.tasks} tasks in {end:,.0f} s of the plant, {plant.kills} kills, "
        f"{plant.repeats} assignments repeated, {n_lines:,} lines: {lost} lost, {plant.twice} carried twice; "
        f"{time.perf_counter() - started:.0f} s"
    )
    sys.exit(lost > 0 or plant.twice > 0 or plant.kills < arguments.kills)


if __name__ == "__main__":
    main()
