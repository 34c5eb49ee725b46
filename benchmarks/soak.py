"""A long run: does memory stay flat, and does it end where shorter runs end?

python benchmarks/soak.py --minutes 60
python benchmarks/soak.py --live
python benchmarks/soak.py --week
python benchmarks/soak.py --http
python benchmarks/soak.py --logs

With --live a dispatcher is fed with 100,000 events of 50 vehicles, late and repeated ones among them, and
asked after each moment; at other sizes of the fleet with fewer, and at 50 also where vehicles charge, park
and are called back until they have loaded. It prints how long decisions and events take, and fails if memory
grows or a time is beyond its limit. Processor time is printed beside time by the clock:
on a shared machine the second shows others' work, too.

With --week the service is told seven days of 50 vehicles that charge, park and are called back, as lines of
JSON, one in a hundred damaged, and it rotates its log each day. Four times a day it ends, two of these times
without a word, and is built again from state and log: it must be as before. Each damaged line must be refused
and change nothing.

With --http the service is a process of its own (`acerl-np serve`), which 50 vehicles tell what happens by a
connection that stays open. It prints how long a question takes by the clock, and beside each a request that
asks nothing (`GET /healthz`).

With --logs a plant of 20 vehicles writes logs of 10,000, 100,000 and 1,000,000 events. It prints what it
takes to recover from each, to convert it, to write a state, and to recover from log and state.

Otherwise it trains with a large population, saves a checkpoint every ten seconds, and notes the process's
memory. Then two shorter runs must give the same bytes: one from the start to a generation that the long one
passed, one from a checkpoint of its middle to its end.
"""

from __future__ import annotations

import array
import ctypes
import gc
import hashlib
import heapq
import http.client
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from kill_live import BATTERY
from script import make_parser

import acerl_np
from acerl_np.live.service import Service
from acerl_np.live.wire import ORDERS, unpack_order

WARM_UP_SECONDS = 60.0
"""Memory is compared from then on: kernels are loaded and every array has been used."""


def resident_megabytes() -> float:
    """Return the memory that the process holds now, MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def fingerprint(trainer: acerl_np.ACERL) -> str:
    """Return a hash of what a run has come to: parameters, sampler, history but for the seconds."""
    digest = hashlib.sha256(trainer.strategy.theta.tobytes())
    for name, values in sorted(trainer.sampler.get_state().items()):
        digest.update(name.encode() + values.tobytes())
    for record in trainer.history:
        digest.update(f"{record.decisions} {record.return_mean!r} {record.counts}".encode())
    return digest.hexdigest()[:16]


FLEETS = (3, 10, 50, 200)
MEDIAN_LIMIT, TAIL_LIMIT, ERRAND_LIMIT = 50.0, 2000.0, 200.0
"""us at 50 vehicles: half of the decisions, 99.9 % of them, and half where they also charge and so on."""


class LivePlant:
    """Vehicles that drive as told, tasks that keep most of them busy, messages that come late or twice."""

    def __init__(self, n_vehicles: int, errands: bool = False) -> None:
        data = acerl_np.load_layout("dmh").to_dict()
        self.stations = [site["id"] for site in data["sites"] if site["id"].startswith("st")]
        data["vehicles"] = [
            {"id": f"v{k}", "start": self.stations[k % 8], "speed": 1.0} for k in range(n_vehicles)
        ]
        if errands:
            chargers = [{"site": site, "slots": n_vehicles} for site in self.stations[::3]]
            places = [{"site": "carport", "places": n_vehicles // 5}]
            data |= {
                "battery": {**BATTERY, "charge": 60},
                "chargers": chargers,
                "parking": {"places": places},
            }
        self.layout = acerl_np.Layout.from_dict(data)
        if errands:
            self.layout = self.layout.with_commitment("pickup")
        policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, imbalance=-1.0, total_late=-0.5)
        self.dispatcher = acerl_np.Dispatcher(self.layout, policy)
        self.draw = random.Random(1)
        self.sites = {vehicle.id: vehicle.start for vehicle in self.layout.vehicles}
        self.ends: dict[str, tuple[str, str]] = {}
        self.plan: list[tuple[float, int, object]] = [(0.0, 0, (None, 0))]
        self.trips = dict.fromkeys(self.sites, 0)
        self.n_plans = self.n_tasks = 0
        self.per_task = 130.0 / n_vehicles

    def feed(self, event: object) -> None:
        self.dispatcher.feed(event)

    def decide(self, now: float) -> list[object]:
        return self.dispatcher.decide(now)

    def add(self, at: float, what: object) -> None:
        self.n_plans += 1
        # What an order has changed since is no event any more.
        trip = self.trips.get(getattr(what, "vehicle", ""), 0)
        heapq.heappush(self.plan, (at, self.n_plans, (what, trip)))

    def next_event(self, now: float, what: object) -> object:
        """Return the event of a plan; that of the next task is None."""
        if what is not None:
            return what
        pickup, delivery = self.draw.sample(self.stations, 2)
        name = f"t{self.n_tasks}"
        self.n_tasks += 1
        self.ends[name] = pickup, delivery
        self.add(now + self.draw.expovariate(1.0 / self.per_task), None)
        return acerl_np.TaskArrived(now, name, pickup, delivery, 400.0)

    def send_off(self, now: float, vehicle: str, task: str) -> None:
        """Plan a trip: it passes the pickup, which is told up to 4 s late, and delivers."""
        distance, index = self.layout.routes.distance, self.layout.site_index
        pickup, delivery = self.ends[task]
        at = now + float(distance[index[self.sites[vehicle]], index[pickup]])
        self.trips[vehicle] += 1
        passed = acerl_np.VehiclePassed(at, vehicle, pickup)
        self.add(at + self.draw.choice((0.0, 0.0, 0.0, 4.0)), passed)
        if self.draw.random() < 0.1:
            self.add(at + 4.0, passed)
        at += float(distance[index[pickup], index[delivery]]) + 5.0
        self.add(at, acerl_np.VehicleIdle(at, vehicle, delivery))
        self.sites[vehicle] = delivery

    def do_errand(self, now: float, order: object) -> None:
        """Plan what comes of an order that is no assignment."""
        vehicle = order.vehicle
        self.trips[vehicle] += 1
        if isinstance(order, acerl_np.Recall):
            own = self.dispatcher._floor.fleet[vehicle]
            site = self.layout.sites[own.way.end if own.way is not None else own.site].id
            at = max(now, own.finish) if own.way is not None else now
            self.add(at, acerl_np.VehiclePassed(at, vehicle, site))
            self.add(now, acerl_np.RecallAnswered(now, vehicle, order.task))
        elif isinstance(order, acerl_np.Park):
            site = order.site
            self.add(now + 30.0, acerl_np.VehicleParked(now + 30.0, vehicle, site))
        else:
            site = order.site
            self.add(now + 30.0, acerl_np.VehicleCharging(now + 30.0, vehicle, site))
            ended = acerl_np.VehicleCharging(now + 150.0, vehicle, site, begins=False)
            self.add(now + 150.0, ended)
        self.sites[vehicle] = site

    def run(self, n_events: int, times: dict[str, array.array[float]]) -> None:
        """Feed so many events, and note what each event and each decision took, us."""
        feed, decide = self.feed, self.decide
        clock, processor = time.perf_counter, time.thread_time
        done = 0
        while done < n_events:
            now = self.plan[0][0]
            while self.plan and self.plan[0][0] == now:
                what, trip = heapq.heappop(self.plan)[2]
                if what is not None and trip != self.trips[what.vehicle]:
                    continue
                event = self.next_event(now, what)
                started = clock()
                feed(event)
                times["event"].append(1e6 * (clock() - started))
                done += 1
            used, started = processor(), clock()
            given = decide(now)
            took, used = clock() - started, processor() - used
            for order in given:
                times["decision"].append(1e6 * took / len(given))
                times["processor"].append(1e6 * used / len(given))
                if isinstance(order, acerl_np.Assignment):
                    self.send_off(now, order.vehicle, order.task)
                else:
                    self.do_errand(now, order)


def soak_live(n_events: int) -> bool:
    """Run a plant of each size; return whether the limits hold at 50 vehicles."""
    print(
        "vehicles  first  median    99 %  99.9 %    most  processor: median  99.9 %  event: median  99.9 %"
    )
    good = True
    for n, errands in (*((n, False) for n in FLEETS), (50, True)):
        plant = LivePlant(n, errands)
        times = {name: array.array("d") for name in ("event", "decision", "processor")}
        count = n_events if n == 50 else n_events // 5
        memory = []
        for _ in range(10):
            # What is measured is the dispatcher's memory, not the times'.
            plant.run(count // 10, times)
            plant.dispatcher.begin_day(plant.plan[0][0])
            gc.collect()
            kept = sum(values.itemsize * len(values) for values in times.values()) / 1e6
            memory.append(resident_megabytes() - kept)
        decision, own = np.array(times["decision"]), np.array(times["processor"])
        a, b, c = np.percentile(decision, (50, 99, 99.9))
        d, e = np.percentile(own, (50, 99.9))
        f, g = np.percentile(times["event"], (50, 99.9))
        print(
            f"{n:8}{decision[0]:7.0f}{a:8.1f}{b:8.1f}{c:8.1f}{decision.max():8.0f}"
            f"{d:19.1f}{e:8.1f}{f:15.1f}{g:8.1f}"
        )
        if errands:
            print(f"{'':8}where vehicles charge, park and are called back")
            good &= d <= ERRAND_LIMIT
        elif n == 50:
            print(f"{'':8}{count:,} events: memory {memory[1]:.1f} to {memory[-1]:.1f} MB")
            growth = memory[-1] - memory[1]
            good &= a <= MEDIAN_LIMIT and e <= TAIL_LIMIT and growth <= 1.0
    return good


DAY = 86_400.0
TASKS, RESTARTS, DAMAGED = 4_000, 4, 0.01
"""A day, a day; the share of messages."""

SEEN = ("waiting", "planned", "under_way", "idle", "sites", "out_of_service")


class ToldPlant(LivePlant):
    """A plant that talks to a service in messages: `service` answers a line."""

    def __init__(self, n_vehicles: int, errands: bool = False) -> None:
        super().__init__(n_vehicles, errands)
        self.number = self.last_order = 0

    def tell(self, **message: object) -> list[dict]:
        self.number += 1
        *orders, answer = self.service.answer(json.dumps({**message, "number": self.number}))
        assert answer["kind"] == "Ok", (message, answer)
        return orders

    def feed(self, event: object) -> None:
        self.tell(kind=type(event).__name__, **vars(event))

    def decide(self, now: float) -> list[object]:
        lines = [x for x in self.tell(kind="Decide", time=now) if x["kind"] in ORDERS]
        fresh = [unpack_order(x) for x in lines if x["number"] > self.last_order]
        if fresh:
            self.last_order = fresh[-1].number
            if self.draw.random() < 0.01:
                self.service.answer(json.dumps({"kind": "Acknowledge", "number": self.last_order}))
        return fresh


class WeekPlant(ToldPlant):
    """One whose service ends now and then, and that sends it nonsense."""

    def __init__(self, n_vehicles: int, folder: Path) -> None:
        super().__init__(n_vehicles, errands=True)
        self.log, self.state = folder / "day.jsonl", folder / "live.npz"
        self.per_task = DAY / TASKS
        self.policy = self.dispatcher.policy
        self.dispatcher = acerl_np.Dispatcher(self.layout, self.policy, audit=self.log)
        self.service = Service(self.dispatcher, str(self.state))
        self.n_refused = self.n_restarts = 0

    def tell(self, **message: object) -> list[dict]:
        if self.draw.random() < DAMAGED:
            self.send_nonsense(message)
        return super().tell(**message)

    def send_nonsense(self, message: dict) -> None:
        text = json.dumps(message)
        broken = {"time": 1e12}, {"kind": "Nothing"}, {"more": 1}, {"time": "soon"}, {"time": True}
        draws = [json.dumps({**message, **one}) for one in broken]
        draws += [text[: self.draw.randrange(1, len(text))], f"x{text}", text * 2, "[" * 5000]
        before = self.show()
        [answer] = self.service.answer(self.draw.choice(draws))
        assert answer["kind"] == "Refused" and self.show() == before, answer
        self.n_refused += 1

    def show(self) -> dict[str, object]:
        own, now = self.dispatcher, self.plan[0][0] if self.plan else 0.0
        # A question without an answer moves the time of `levels`, and is in no log.
        levels = [own._floor.believe_level(name, now) for name in self.sites]
        seen = {name: getattr(own, name) for name in SEEN}
        return {**seen, "tasks": own.tasks(), "levels": levels}

    def restart(self) -> None:
        """End without a word, and build the dispatcher again from state and log: nothing may differ."""
        before = self.show()
        if self.n_restarts % 2:
            self.service.save()
        self.dispatcher.close()
        paths = {"audit": self.log, "state": self.state if self.state.exists() else None}
        self.dispatcher = acerl_np.Dispatcher.recover(self.layout, self.policy, **paths)
        self.service = Service(self.dispatcher, str(self.state))
        drift = [name for name, now in self.show().items() if now != before[name]]
        assert not drift and not self.dispatcher.check(), (drift, self.dispatcher.check())
        self.n_restarts += 1

    def begin_day(self, day: int) -> None:
        self.dispatcher.begin_day(self.plan[0][0])
        kept = self.log.with_name(f"day.{day}.jsonl")
        self.ends = {name: self.ends[name] for name in self.dispatcher.tasks()}
        self.dispatcher.rotate(self.state, kept)
        kept.unlink()  # some 10 MB


def soak_week(n_days: int, n_vehicles: int) -> bool:
    """Run days of a service; return whether memory stayed and orders were quick enough."""
    folder = Path(tempfile.mkdtemp(prefix="acerl_np-week-"))
    plant = WeekPlant(n_vehicles, folder)
    times = {name: array.array("d") for name in ("event", "decision", "processor")}
    memory, n_events = [], 0
    for day in range(n_days):
        for part in range(1, RESTARTS + 1):
            until = DAY * (day + part / RESTARTS)
            while plant.plan[0][0] < until:
                plant.run(1000, times)
            plant.restart()
        plant.begin_day(day)
        n_events += len(times["event"])
        times["event"] = array.array("d")
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what logs took that were read is no memory in use
        kept = sum(values.itemsize * len(values) for values in times.values()) / 1e6
        memory.append(resident_megabytes() - kept)
        half, most, last = np.percentile(times["processor"], (50, 99, 99.9))
        own = f"99 % of the orders below {most:.0f} us"
        print(f"day {day + 1}: {memory[-1]:.1f} MB, {n_events:,} events, {own}", flush=True)
    shutil.rmtree(folder)
    growth = memory[-1] - memory[min(2, len(memory) - 1)]
    print(
        f"{plant.n_tasks:,} tasks, {len(times['processor']):,} orders, {plant.n_restarts} restarts without "
        f"drift, {plant.n_refused:,} damaged messages refused; memory {growth:+.1f} MB since the third day\n"
        f"processor time of an order as JSON: half {half:.0f} us, 99 % {most:.0f} us, 99.9 % {last:.0f} us"
    )
    # Each restart within one process leaves a tenth of a megabyte that the allocator keeps.
    return growth <= 4.0 and most <= 1000.0


class Door:
    """The door of a service in another process, and how long its answers take by the clock, us."""

    def __init__(self, folder: Path, plant: LivePlant) -> None:
        floor, policy = folder / "floor.json", folder / "policy.npz"
        floor.write_text(json.dumps(plant.layout.to_dict()), encoding="utf-8")
        plant.dispatcher.policy.save(policy)
        words = ["serve", policy, "--layout", floor, "--log", folder / "day.jsonl"]
        command = [sys.executable, "-m", "acerl_np", *words, "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        host = json.loads(self.process.stdout.readline())["http"].rpartition("/")[2]
        self.connection = http.client.HTTPConnection(host, timeout=60.0)
        self.times = {name: array.array("d") for name in ("an event", "a question", "GET /healthz")}

    def ask(self, name: str, *request: str) -> str:
        started = time.perf_counter()
        self.connection.request(*request)
        text = self.connection.getresponse().read().decode()
        self.times[name].append(1e6 * (time.perf_counter() - started))
        return text

    def answer(self, line: str) -> list[dict]:
        is_question = json.loads(line)["kind"] == "Decide"
        text = self.ask("a question" if is_question else "an event", "POST", "/events", line)
        if is_question:
            self.ask("GET /healthz", "GET", "/healthz")
        return list(map(json.loads, text.splitlines()))


def soak_http(n_events: int, n_vehicles: int) -> None:
    """Tell a service over HTTP, and print how long that takes."""
    with tempfile.TemporaryDirectory(prefix="acerl_np-http-") as folder:
        plant = ToldPlant(n_vehicles)
        plant.service = Door(Path(folder), plant)
        with plant.service.process as process:
            try:
                times = {name: array.array("d") for name in ("event", "decision", "processor")}
                plant.run(n_events, times)
            finally:
                process.terminate()
        for name, took in plant.service.times.items():
            half, most, last = np.percentile(took, (50, 99, 99.9))
            print(
                f"{name}: half {half:.0f} us, 99 % {most:.0f} us, 99.9 % {last:.0f} us by the clock"
            )


READ = """
import resource, sys, time
import acerl_np
from acerl_np.live.daybook import read_days
import soak
layout = soak.LivePlant(20).layout
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
way, log = sys.argv[1:3]
if way == "days":
    read_days(log, layout)
else:
    state = None if way == "log" else sys.argv[3]
    acerl_np.Dispatcher.recover(layout, "nearest", audit=log, state=state)
took = time.process_time() - began
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{took:6.2f} s of the processor, {(most - before) / 1e3:6.1f} MB more")
"""


def soak_logs(sizes: tuple[int, ...]) -> None:
    """Print what logs of so many events take to be read."""
    names = {"log": "recovered", "state": "with a state", "days": "converted"}
    for n_events in sizes:
        with tempfile.TemporaryDirectory(prefix="acerl_np-logs-") as folder:
            log, state = Path(folder) / "day.jsonl", Path(folder) / "live.npz"
            plant = LivePlant(20)
            plant.dispatcher = acerl_np.Dispatcher(plant.layout, "nearest", audit=log)
            times = {name: array.array("d") for name in ("event", "decision", "processor")}
            plant.run(n_events, times)
            began = time.process_time()
            plant.dispatcher.save(state)
            took = 1e3 * (time.process_time() - began)
            plant.run(1000, times)
            plant.dispatcher.close()
            size = log.stat().st_size / 1e6
            print(f"{n_events:,} events, {size:.1f} MB: a state is written in {took:.1f} ms")
            for way, name in names.items():
                command = [sys.executable, "-c", READ, way, log, state]
                done = subprocess.run(command, cwd=Path(__file__).parent, stdout=-1, check=True)
                print(f"    {name:12} {done.stdout.decode().strip()}", flush=True)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--population", type=int, default=8192)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--live", action="store_true", help="a dispatcher instead of a training")
    parser.add_argument("--week", action="store_true", help="seven days of a service")
    parser.add_argument("--http", action="store_true", help="a service in a process of its own")
    parser.add_argument("--logs", action="store_true", help="what reading logs takes")
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args()
    if options.quick:
        soak_live(2000)
        soak_week(1, 50)
        soak_http(300, 50)
        soak_logs((300,))
        options.minutes, options.population = 0.02, 64
    elif options.logs:
        soak_logs((10_000, 100_000, 1_000_000))
        return
    elif options.http:
        soak_http(options.events, 50)
        return
    elif options.week:
        sys.exit(0 if soak_week(7, 50) else 1)
    elif options.live:
        sys.exit(0 if soak_live(options.events) else 1)
    instances = acerl_np.load_suite("dmh-train")
    config = acerl_np.Config(population=options.population, generations=10_000_000)
    trainer = acerl_np.ACERL(instances, config, seed=options.seed, threads=options.threads)
    folder = Path(tempfile.mkdtemp(prefix="acerl_np-soak-"))
    started = last_save = time.monotonic()
    early = ""
    memory: list[float] = []
    middle = 0
    saves = 0
    while trainer.generation < 21 or time.monotonic() - started < 60.0 * options.minutes:
        trainer.step()
        if trainer.generation == 20:
            early = fingerprint(trainer)
        if time.monotonic() - last_save >= 10.0:
            trainer.save(folder / "run.npz")
            saves += 1
            last_save = time.monotonic()
            if last_save - started >= WARM_UP_SECONDS:
                memory.append(resident_megabytes())
            if not middle and last_save - started >= 54.0 * options.minutes:
                shutil.copy(folder / "run.npz", folder / "late.npz")
                middle = trainer.generation
    if not middle:
        trainer.save(folder / "late.npz")
        middle = trainer.generation
    memory.append(resident_megabytes())
    end = fingerprint(trainer)
    n = trainer.generation
    decisions = trainer.history[-1].decisions
    print(
        f"{n} generations, {decisions:,} decisions, {saves} checkpoints in {options.minutes:g} minutes"
    )
    growth = max(memory) / memory[0] - 1.0
    print(f"memory {memory[0]:.1f} MB after a minute, {max(memory):.1f} MB at most: {growth:+.2%}")

    short = acerl_np.ACERL(instances, config, seed=options.seed, threads=2)
    while short.generation < 20:
        short.step()
    same_start = fingerprint(short) == early
    print(f"20 generations anew, two threads: {'the same bytes' if same_start else 'OTHER BYTES'}")
    resumed = acerl_np.ACERL.resume(folder / "late.npz", threads=2)
    while resumed.generation < n:
        resumed.step()
    same_end = fingerprint(resumed) == end
    print(
        f"resumed at generation {middle}, two threads, to the end: "
        f"{'the same bytes' if same_end else 'OTHER BYTES'}"
    )
    shutil.rmtree(folder)
    if not same_start or not same_end or (growth > 0.02 and not options.quick):
        sys.exit(1)


if __name__ == "__main__":
    main()
