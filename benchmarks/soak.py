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

With --week a service that asks itself is told twenty messages a second for --days, by a clock that runs as
the machine's does while something is done, and passes over what is idle: so a day takes minutes. One in a
hundred is damaged, one comes twice. The state is written and the log rotated as ever; each hour the service
ends without a word, and what is built again from state and log must be as before. It prints how long after
it became possible an order came, and fails if 1 % take 250 ms, or one takes a second.

With --http the same plant tells a process of its own (`acerl-np serve`), for --minutes, by the clock on the
wall. The process is killed each minute. All orders must come, and no task may be lost.

With --logs a plant of 20 vehicles writes logs of 10,000, 100,000 and 1,000,000 events. It prints what it
takes to recover from each, to convert it, to write a state, and to recover from log and state.

Otherwise it trains with a large population, saves a checkpoint every ten seconds, and notes the process's
memory. Then two shorter runs must give the same bytes: one from the start to a generation that the long one
passed, one from a checkpoint of its middle to its end.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import hashlib
import heapq
import http.client
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from kill_live import BATTERY
from script import make_parser

import acerl_np
from acerl_np.live.service import Service
from acerl_np.live.worker import MOST_WAITING, Worker

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
        feed, decide = self.dispatcher.feed, self.dispatcher.decide
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


HOUR = 3_600.0
RATE, ODD = 20.0, 0.01
"""Messages a second; the share of these that are damaged, and that come twice."""

SEEN = ("waiting", "planned", "under_way", "idle", "sites", "out_of_service", "last_number")


class WallPlant(LivePlant):
    """A plant by the clock on the wall; vehicles that are loaded tell again and again where they are.

    `known` is the number of the last order that it has.
    `took` has the seconds from when an order became possible, after `up`, until it came.
    """

    def __init__(self, n_vehicles: int, start: float) -> None:
        super().__init__(n_vehicles)
        self.plan, self.line = [(start, 0, (None, 0))], "{}"
        self.start, self.up, self.number = start, start, 0
        self.took, self.known, self.n_damaged, self.n_refused = array.array("d"), 0, 0, 0
        self.opened, self.loaded, self.carried = dict.fromkeys(self.sites, start), {}, {}

    @property
    def next_at(self) -> float:
        return self.start + self.number / RATE

    def make_line(self) -> str:
        """Return the message that is due at `next_at`."""
        at, self.number = self.next_at, self.number + 1
        draw, event = self.draw.random(), self.find_event(at)
        if event is None:
            if not self.loaded or draw < ODD:
                self.n_damaged += 1
                return self.line[: self.draw.randrange(1, len(self.line))]
            if draw < 2 * ODD:
                return self.line
            event = acerl_np.VehiclePassed(at, *self.draw.choice([*self.loaded.items()]))
        self.line = json.dumps({"kind": type(event).__name__, **vars(event), "number": self.number})
        return self.line

    def find_event(self, at: float) -> object:
        """Return an event that is due, and note what it makes possible; None if there is none."""
        while self.plan[0][0] <= at:
            planned, _, (what, trip) = heapq.heappop(self.plan)
            if what is not None and trip != self.trips[what.vehicle]:
                continue
            # Who could not tell for long tells it with the time of now.
            event = self.next_event(planned, what)
            event = replace(event, time=max(event.time, at - 3.0))
            if isinstance(event, acerl_np.TaskArrived):
                self.opened[event.task] = at
            elif isinstance(event, acerl_np.VehicleIdle):
                self.opened[event.vehicle] = at
                del self.loaded[event.vehicle], self.carried[event.vehicle]
            else:
                self.loaded[event.vehicle] = event.site
            return event
        return None

    def obey(self, messages: list[dict], now: float) -> None:
        """Let vehicles do what is ordered, each order once."""
        for message in messages:
            self.n_refused += message["kind"] == "Refused"
            if message["kind"] == "Assigned" and message["number"] > self.known:
                self.known = message["number"]
                vehicle, task = message["vehicle"], message["task"]
                possible = max(self.opened.pop(task), self.opened.pop(vehicle))
                if possible >= self.up:
                    self.took.append(now - possible)
                self.send_off(now, vehicle, task)
                self.carried[vehicle] = task
                del self.ends[task]

    def report(self, name: str) -> bool:
        """Print how long orders took; return whether that is quick enough, and only nonsense was refused."""
        took = self.took or [9.9]  # none came
        half, most, last = 1e3 * np.percentile(took, (50, 99, 99.9))
        print(
            f"{name}: {self.number:,} messages, {self.n_refused:,} of them refused, {self.n_tasks:,} tasks; "
            f"{len(self.took):,} orders: half {half:.0f} ms, 99 % {most:.0f} ms, 99.9 % {last:.0f} ms, most "
            f"{1e3 * max(took):.0f} ms",
            flush=True,
        )
        return most < 250.0 and max(took) < 1.0 and self.n_refused == self.n_damaged


class Clock:
    """The machine's clock, but that what is idle can be passed over."""

    def __init__(self) -> None:
        self.passed = time.time() - time.perf_counter()

    def __call__(self) -> float:
        return self.passed + time.perf_counter()


def run_worker(service: Service, plant: WallPlant, clock: Clock, until: float) -> None:
    """Let the worker of a service run until a moment."""
    worker = Worker(service, wall=True, clock=clock)

    def rest(seconds: float) -> None:  # in place of waiting
        clock.passed += max(0.0, min(seconds, plant.next_at - clock()))
        while plant.next_at <= clock() and len(worker._waiting) < MOST_WAITING:
            worker.answer([plant.make_line()])
        worker._is_ending = clock() >= until

    worker.publish = lambda messages, text: plant.obey(messages, clock())
    worker._change.wait, plant.up = rest, clock()
    worker._run()
    if worker.error is not None:
        raise worker.error


def soak_week(n_days: float, n_vehicles: int) -> bool:
    """Run days of a service; return whether memory stayed and orders were quick enough."""
    with tempfile.TemporaryDirectory(prefix="acerl_np-week-") as folder:
        log, state, clock = Path(folder) / "day.jsonl", Path(folder) / "live.npz", Clock()
        start, slowest, memory = clock(), 0.0, list[float]()
        plant, how = WallPlant(n_vehicles, start), {"lateness": 10.0, "audit": log}
        layout, policy = plant.layout, plant.dispatcher.policy
        dispatcher = acerl_np.Dispatcher(layout, policy, start=start, **how)
        for hour in range(1, max(1, round(24 * n_days)) + 1):
            service = Service(dispatcher, str(state), log=str(log), ahead=5.0, say=print)
            run_worker(service, plant, clock, start + HOUR * min(hour, 24 * n_days))
            before = [getattr(dispatcher, name) for name in SEEN], dispatcher.tasks()
            dispatcher.close()
            os.utime(log, (clock(), clock()))
            began = clock()
            dispatcher = acerl_np.Dispatcher.recover(layout, policy, state=state, **how)
            slowest = max(slowest, clock() - began)
            assert before == ([getattr(dispatcher, name) for name in SEEN], dispatcher.tasks())
            assert not dispatcher.check()
            del service, before  # there is one of each at a time
            for kept in Path(folder).glob("day.2*"):
                kept.unlink()  # some 300 MB a day
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)  # what logs took that were read is no memory in use
            memory.append(resident_megabytes() - 8 * len(plant.took) / 1e6)
            if hour == 1 or hour % 6 == 0:
                good = plant.report(f"hour {hour}")
                print(
                    f"    memory {memory[-1]:.1f} MB, a restart within {slowest:.2f} s", flush=True
                )
        dispatcher.close()
    return good and memory[-1] - memory[min(5, len(memory) - 1)] <= 4.0


class Door:
    """The door of a service in a process of its own, which is killed now and then."""

    def __init__(self, folder: Path, plant: WallPlant) -> None:
        floor, policy = folder / "floor.json", folder / "policy.npz"
        floor.write_text(json.dumps(plant.layout.to_dict()), encoding="utf-8")
        plant.dispatcher.policy.save(policy)
        words = ["serve", policy, "--layout", floor, "--log", folder / "day.jsonl"]
        words += ["--clock", "wall", "--http", "127.0.0.1:0"]
        self.command = [sys.executable, "-m", "acerl_np", *words]
        self.plant, self.came, self.times = plant, queue.SimpleQueue(), array.array("d")
        self.starts = array.array("d")
        self.start()

    def start(self) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        with self.process.stdout as out:
            self.host = json.loads(out.readline())["http"].rpartition("/")[2]
        self.connection = http.client.HTTPConnection(self.host, timeout=60.0)
        threading.Thread(target=self.listen, daemon=True).start()
        self.starts.append(time.perf_counter() - began)
        self.plant.up = time.time()
        self.plant.start += max(0.0, self.plant.up - self.plant.next_at)

    def listen(self) -> None:
        """Note orders as they come, until the process ends."""
        stream = http.client.HTTPConnection(self.host)
        with contextlib.suppress(OSError, http.client.HTTPException):
            stream.request("GET", f"/orders?after={self.plant.known}")
            for line in stream.getresponse():
                if line.startswith(b'data: {"kind"'):
                    self.came.put(([json.loads(line[6:])], time.time()))

    def ask(self, *request: str) -> dict:
        self.connection.request(*request)
        return json.loads(self.connection.getresponse().read())

    def tell(self, line: str) -> None:
        """Tell a message, also to the next process where this one has gone, and obey what has come."""
        try:
            began = time.perf_counter()
            answer = self.ask("POST", "/events", line)
        except (OSError, http.client.HTTPException):
            self.process.wait()
            self.start()
            with contextlib.suppress(ValueError):  # of one that is damaged
                line = json.dumps({**json.loads(line), "time": time.time()})
            return self.tell(line)
        self.times.append(1e3 * (time.perf_counter() - began))
        self.plant.obey([answer], time.time())
        while not self.came.empty():
            self.plant.obey(*self.came.get())


def soak_http(minutes: float, n_vehicles: int) -> bool:
    """Tell a process over HTTP in real time; return whether nothing was lost or late."""
    with tempfile.TemporaryDirectory(prefix="acerl_np-http-") as folder:
        plant = WallPlant(n_vehicles, time.time() + 5.0)
        door, due = Door(Path(folder), plant), time.time() + min(60.0, 20.0 * minutes)
        end = plant.start + 60.0 * minutes
        try:
            while plant.next_at < end:
                if plant.next_at >= due:
                    threading.Timer(plant.draw.uniform(0.0, 0.1), door.process.kill).start()
                    due += 60.0
                time.sleep(max(0.0, plant.next_at - time.time()))
                door.tell(plant.make_line())
            known = {*door.ask("GET", "/state")["tasks"]}
        finally:
            door.process.kill()
    good = plant.report(f"{minutes:g} minutes over HTTP")
    (half, most), n = np.percentile(door.times, (50, 99)), len(door.starts)
    print(
        f"    answers: half {half:.1f} ms, 99 % {most:.1f} ms; {n} starts within {max(door.starts):.1f} s"
    )
    lost = {*plant.ends, *plant.carried.values()} ^ known
    print(f"    tasks that one of both does not know: {len(lost)}")
    return good and not lost


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
    parser.add_argument("--week", action="store_true", help="days of a service")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--http", action="store_true", help="a service in a process of its own")
    parser.add_argument("--logs", action="store_true", help="what reading logs takes")
    parser.add_argument("--events", type=int, default=100_000)
    options = parser.parse_args()
    if options.quick:
        soak_live(2000)
        soak_week(0.005, 20)
        soak_http(0.5, 20)
        soak_logs((300,))
        options.minutes, options.population = 0.02, 64
    elif options.logs:
        soak_logs((10_000, 100_000, 1_000_000))
        return
    elif options.http:
        sys.exit(0 if soak_http(options.minutes, 20) else 1)
    elif options.week:
        sys.exit(0 if soak_week(options.days, 20) else 1)
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
