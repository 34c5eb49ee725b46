"""A plant over MQTT: simulated vehicles that speak VDA 5050, and `acerl-np serve --mqtt` as their dispatcher.

A broker is started: Mosquitto if `mosquitto` is on the PATH, else amqtt. All messages go through it as JSON.
The plant's time is simulated, and each moment waits for its answer, so a run gives the same assignments
again. A vehicle breaks down and comes back. In the middle the service is killed and started anew.

Topics, and what is used of VDA 5050 2.1 (in `uagv/v2/MANUFACTURER/SERIAL/`); each such message begins with
`headerId`, `timestamp`, `version`, `manufacturer` and `serialNumber`:

state         of a vehicle, at every node, at every change and again every 30 s: `orderId` (of the last
              order, until the next), `orderUpdateId`, `lastNodeId`, `lastNodeSequenceId`; `nodeStates`
              and `edgeStates`, what is left of the order (`nodeId` or `edgeId`, `sequenceId`, `released`);
              `driving`; `actionStates` (`actionId`, `actionType`, `actionStatus`); `errors` (`errorType`,
              `errorLevel`): a breakdown is "FATAL", and the order is void after it; `operatingMode`
order         to a vehicle: `orderId`, `orderUpdateId`; `nodes` (`nodeId`, `sequenceId`, `released`,
              `actions`); `edges` (`edgeId`, `sequenceId`, `released`, `startNodeId`, `endNodeId`,
              `actions`); two actions, "pick" and "drop" (`actionId`, `actionType`, `blockingType`,
              `actionParameters` with the key "loadId")
plant/task    a new transport: task, pickup, delivery, expiry, priority, timestamp
plant/clock   all that happens until `timestamp` is sent: `messages` so far
plant/answer  the orders of that moment are sent: `orders` so far
plant/refused what the service could not take, and why

    python examples/mqtt_plant.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import heapq
import json
import logging
import queue
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import acerl_np

EPOCH = datetime(2025, 1, 6, 6, 0, tzinfo=UTC)
MANUFACTURER, VERSION = "example", "2.1.0"
N_VEHICLES = 6
SECONDS_PER_TASK = 26.0
BREAKS_AT, REPAIRED_AT = 500.0, 800.0
REPEATED_EVERY = 30.0
"""s between two states of a vehicle that has nothing new to say: VDA 5050's longest."""
PATIENCE = 10.0
"""s (of a real clock) to wait for a message."""

TASK, CLOCK, ANSWER, REFUSED = "plant/task", "plant/clock", "plant/answer", "plant/refused"


def show_moment(seconds: float) -> str:
    """Return a moment of the plant's clock as VDA 5050 writes it."""
    return (EPOCH + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def name_topic(vehicle: str, kind: str) -> str:
    """Return a vehicle's topic."""
    return f"uagv/v2/{MANUFACTURER}/{vehicle}/{kind}"


def write_header(number: int, now: float, vehicle: str) -> dict[str, Any]:
    """Return the fields with which every VDA 5050 message begins."""
    return {
        "headerId": number,
        "timestamp": show_moment(now),
        "version": VERSION,
        "manufacturer": MANUFACTURER,
        "serialNumber": vehicle,
    }


def make_layout(n_vehicles: int) -> acerl_np.Layout:
    """Return the bundled floor with more vehicles."""
    data = acerl_np.load_layout("dmh").to_dict()
    stations = [site["id"] for site in data["sites"] if site["id"].startswith("st")]
    data["vehicles"] = [
        {"id": f"agv{k}", "start": stations[k % len(stations)], "speed": 1.0}
        for k in range(n_vehicles)
    ]
    return acerl_np.Layout.from_dict(data)


def hurry(client: Any, data: Any, connection: Any) -> None:
    """Let a connection send small messages at once."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Station:
    """A client of the broker that counts what it sends and takes messages one after the other."""

    def __init__(self, name: str, port: int, topics: list[str]) -> None:
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion

        self.sent = 0
        self._inbox: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        ready = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name)
        self._client.on_subscribe = lambda *_: ready.set()
        self._client.on_message = lambda _, __, message: self._inbox.put(
            (message.topic, json.loads(message.payload))
        )
        self._client.on_socket_open = hurry
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._client.subscribe([(topic, 0) for topic in topics])
        if not ready.wait(PATIENCE):
            raise TimeoutError(f"{name}: the broker does not answer")

    def send(self, topic: str, message: dict[str, Any]) -> None:
        """Publish a message, at most once as VDA 5050 has it."""
        self.sent += 1
        self._client.publish(topic, json.dumps(message), qos=0)

    def receive(self) -> tuple[str, dict[str, Any]]:
        """Return the next message."""
        return self._inbox.get(timeout=PATIENCE)

    def leave(self) -> None:
        """Say goodbye to the broker."""
        self._client.disconnect()
        self._client.loop_stop()


class Vehicle:
    """A simulated vehicle: it follows its order node by node and reports its state at each."""

    def __init__(self, name: str, node: str) -> None:
        self.name, self.node = name, node
        self.order: dict[str, Any] | None = None
        self.position = 0
        self.is_broken = False
        self.trip = 0
        """Counts orders and breakdowns, so that a plan of an earlier trip is known as such."""
        self.n_states = 0

    @property
    def is_driving(self) -> bool:
        """Whether nodes of its order are left."""
        return self.order is not None and self.position + 1 < len(self.order["nodes"])

    def write_state(self, now: float) -> dict[str, Any]:
        """Return the VDA 5050 state."""
        self.n_states += 1
        nodes = [] if self.order is None else self.order["nodes"]
        edges = [] if self.order is None else self.order["edges"]
        left = slice(self.position + 1, None)
        is_left = {node["sequenceId"] for node in nodes[left]}
        return {
            **write_header(self.n_states, now, self.name),
            "orderId": "" if self.order is None else self.order["orderId"],
            "orderUpdateId": 0,
            "lastNodeId": self.node,
            "lastNodeSequenceId": 2 * self.position,
            "nodeStates": [
                {key: node[key] for key in ("nodeId", "sequenceId", "released")}
                for node in nodes[left]
            ],
            "edgeStates": [
                {key: edge[key] for key in ("edgeId", "sequenceId", "released")}
                for edge in edges[self.position :]
            ],
            "driving": self.is_driving,
            "actionStates": [
                {
                    "actionId": action["actionId"],
                    "actionType": action["actionType"],
                    "actionStatus": "WAITING" if node["sequenceId"] in is_left else "FINISHED",
                }
                for node in nodes
                for action in node["actions"]
            ],
            "errors": [{"errorType": "drive", "errorLevel": "FATAL"}] if self.is_broken else [],
            "operatingMode": "AUTOMATIC",
        }


class Plant:
    """The floor: tasks appear, vehicles drive, one breaks down; time jumps from event to event."""

    def __init__(self, layout: acerl_np.Layout, n_tasks: int, port: int) -> None:
        topics = [name_topic("+", "order"), ANSWER, REFUSED]
        self._station = Station("plant", port, topics)
        self._layout = layout
        self._vehicles = {v.id: Vehicle(v.id, v.start) for v in layout.vehicles}
        self._events: list[tuple[float, int, str, Any]] = []
        self._n_events = 0
        self._orders: set[str] = set()
        self.refused: list[dict[str, Any]] = []
        self.due: dict[str, float] = {}
        self.delivered: dict[str, float] = {}
        self._breaking = ""
        draw = random.Random(7)
        stations = [site.id for site in layout.sites if site.id.startswith("st")]
        now = 0.0
        self._plan(0.0, "repeat", None)
        for k in range(n_tasks):
            pickup, delivery = draw.sample(stations, 2)
            task = {"task": f"t{k}", "pickup": pickup, "delivery": delivery, "expiry": 420.0}
            # One in ten is urgent: it goes before all others.
            self._plan(now, "task", {**task, "priority": float(draw.random() < 0.1)})
            now += round(draw.expovariate(1.0 / SECONDS_PER_TASK), 3)
        self._plan(BREAKS_AT, "break", None)
        self._plan(REPAIRED_AT, "repair", None)
        self.n_tasks = n_tasks

    def step(self) -> float | None:
        """Let all happen that happens at the next moment, and tell; return the moment, None at the end."""
        if not self._events or len(self.delivered) == self.n_tasks:
            return None
        now = self._events[0][0]
        while self._events and self._events[0][0] == now:
            _, _, kind, what = heapq.heappop(self._events)
            getattr(self, f"_{kind}")(now, what)
        count = self._station.sent + 1
        self._station.send(CLOCK, {"timestamp": show_moment(now), "messages": count})
        return now

    def take_orders(self, now: float) -> None:
        """Wait for the answer to a moment, and let the orders begin."""
        expected = None
        while expected is None or len(self._orders) < expected:
            topic, message = self._station.receive()
            if topic == ANSWER:
                expected = message["orders"]
                continue
            if topic == REFUSED:
                self.refused.append(message)
                continue
            if message["orderId"] in self._orders:
                continue  # given again after a restart
            self._orders.add(message["orderId"])
            vehicle = self._vehicles[message["serialNumber"]]
            vehicle.order, vehicle.position = message, 0
            vehicle.trip += 1
            self._plan_edge(now, vehicle)

    @property
    def n_orders(self) -> int:
        """Orders that came, each once."""
        return len(self._orders)

    def report_all(self, now: float) -> None:
        """Let all vehicles say where they are, as they do again and again."""
        for vehicle in self._vehicles.values():
            self._report(now, vehicle)

    def leave(self) -> None:
        """Say goodbye to the broker."""
        self._station.leave()

    def _plan(self, at: float, kind: str, what: Any) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (at, self._n_events, kind, what))

    def _plan_edge(self, now: float, vehicle: Vehicle) -> None:
        """Plan when a vehicle is at the next node of its order."""
        assert vehicle.order is not None
        nodes = vehicle.order["nodes"]
        if vehicle.position + 1 == len(nodes):
            return
        index = self._layout.site_index
        a, b = (
            index[nodes[vehicle.position]["nodeId"]],
            index[nodes[vehicle.position + 1]["nodeId"]],
        )
        seconds = float(self._layout.routes.edge_length[a, b])  # at 1 m/s
        self._plan(round(now + seconds, 3), "arrive", (vehicle, vehicle.trip))

    def _report(self, now: float, vehicle: Vehicle) -> None:
        self._station.send(name_topic(vehicle.name, "state"), vehicle.write_state(now))

    def _task(self, now: float, task: dict[str, Any]) -> None:
        self.due[task["task"]] = now + task["expiry"]
        self._station.send(TASK, {**task, "timestamp": show_moment(now)})

    def _arrive(self, now: float, plan: tuple[Vehicle, int]) -> None:
        vehicle, trip = plan
        if trip != vehicle.trip or vehicle.order is None:
            return  # it broke down on the way
        vehicle.position += 1
        node = vehicle.order["nodes"][vehicle.position]
        vehicle.node = node["nodeId"]
        self._report(now, vehicle)
        if vehicle.is_driving:
            self._plan_edge(now, vehicle)
        else:
            self.delivered[vehicle.order["orderId"].split("/")[0]] = now

    def _break(self, now: float, _: None) -> None:
        """Break the first vehicle that works; the order is void, the load is where it was picked."""
        vehicle = next((v for v in self._vehicles.values() if v.is_driving), None)
        vehicle = vehicle or next(iter(self._vehicles.values()))
        self._breaking = vehicle.name
        vehicle.is_broken, vehicle.order, vehicle.position = True, None, 0
        vehicle.trip += 1
        self._report(now, vehicle)

    def _repeat(self, now: float, _: None) -> None:
        self.report_all(now)
        self._plan(now + REPEATED_EVERY, "repeat", None)

    def _repair(self, now: float, _: None) -> None:
        vehicle = self._vehicles[self._breaking]
        vehicle.is_broken = False
        self._report(now, vehicle)


def start_service(folder: Path, port: int) -> subprocess.Popen[str]:
    """Start the dispatcher, and wait until it listens; it goes on where the one before ended."""
    words = ["serve", "policy.npz", "--layout", "layout.json", "--log", "day.jsonl"]
    command = [sys.executable, "-m", "acerl_np", *words, "--mqtt", f"127.0.0.1:{port}"]
    service = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    if "Ready" not in service.stdout.readline():
        raise RuntimeError("the service did not start")
    return service


@contextlib.contextmanager
def run_broker(folder: Path) -> Iterator[tuple[str, int]]:
    """Run an MQTT broker on a free port of this machine; its name and port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    program = shutil.which("mosquitto")
    if program is not None:
        settings = folder / "mosquitto.conf"
        settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n"
        )
        words = [program, "-c", str(settings)]
        with subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                wait_for_port(port)
                yield "Mosquitto", port
            finally:
                process.terminate()
        return
    from amqtt.broker import Broker

    logging.getLogger("amqtt").setLevel(logging.CRITICAL)
    logging.getLogger("transitions").setLevel(logging.CRITICAL)
    settings_of = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> Any:
        broker = Broker(settings_of)
        await broker.start()
        return broker

    broker = asyncio.run_coroutine_threadsafe(begin(), loop).result(PATIENCE)
    try:
        yield "amqtt", port
    finally:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(broker.shutdown(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)


def wait_for_port(port: int) -> None:
    """Wait until somebody listens there."""
    for _ in range(int(PATIENCE * 20)):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.05)
    raise TimeoutError("the broker does not answer")


def run_plant(n_tasks: int, folder: Path) -> int:
    """Run the plant to its end and print what came out; return the exit status."""
    layout = make_layout(N_VEHICLES)
    policy = acerl_np.IndexPolicy.of_weights(approach=-1.0, imbalance=-1.0, total_late=-0.5)
    policy.save(folder / "policy.npz")
    (folder / "layout.json").write_text(json.dumps(layout.to_dict()))
    started = time.monotonic()
    restart = ""
    with run_broker(folder) as (broker, port):
        service = start_service(folder, port)
        try:
            plant = Plant(layout, n_tasks, port)
            while (now := plant.step()) is not None:
                plant.take_orders(now)
                if not restart and len(plant.delivered) >= n_tasks // 2:
                    restart = f"killed at {now:,.0f} s, {len(plant.delivered)} delivered"
                    service.kill()
                    service.wait()
                    service = start_service(folder, port)
                    plant.report_all(now)
            plant.leave()
        finally:
            service.terminate()
            service.wait()
    late = sum(moment > plant.due[task] for task, moment in plant.delivered.items())
    print(
        f"{broker}: {len(plant.delivered)} of {n_tasks} tasks delivered, {late} late, "
        f"{plant.n_orders} assignments, {len(plant.refused)} messages refused; {restart}; "
        f"log of {(folder / 'day.jsonl').read_text().count(chr(10)):,} lines; "
        f"{max(plant.delivered.values()):,.0f} s of the plant in {time.monotonic() - started:.1f} s"
    )
    return 0 if len(plant.delivered) == n_tasks and restart else 1


def main() -> None:
    """Run the plant."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="40 tasks instead of 200")
    arguments = parser.parse_args()
    try:
        import paho.mqtt.client  # noqa: F401

        if shutil.which("mosquitto") is None:
            import amqtt.broker  # noqa: F401
    except ImportError as error:
        print(
            f"mqtt_plant: {error.name} is not installed: pip install 'acerl_np[mqtt]'",
            file=sys.stderr,
        )
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder:
        status = run_plant(40 if arguments.quick else 200, Path(folder))
    sys.exit(status)


if __name__ == "__main__":
    main()
