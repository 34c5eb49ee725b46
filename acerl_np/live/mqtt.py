"""The service over MQTT: states of vehicles by VDA 5050 and tasks in, orders out."""

from __future__ import annotations

import json
import math
import queue
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from acerl_np.kernels.ground import state as S
from acerl_np.live.audit import format_line
from acerl_np.live.events import Assignment
from acerl_np.live.orders import ASSIGNED
from acerl_np.live.service import MAX_MESSAGE, QUIET, Message, Service
from acerl_np.problem.layout import Layout
from acerl_np.support.errors import EventError, InputError, StorageError, describe, needing
from acerl_np.support.files import describe_os_error

EXTRA = "{}: --mqtt needs paho-mqtt; pip install 'acerl_np[mqtt]'"

VERSION = "2.1.0"
"""Of VDA 5050."""

STATES, ORDERS = "uagv/v2/+/+/state", "uagv/v2/{}/{}/order"
TASK, CLOCK, ANSWER, REFUSED = "plant/task", "plant/clock", "plant/answer", "plant/refused"

OF_TASKS = ("task", "pickup", "delivery", "expiry", "priority", "handling_time", "demand")
"""What a message of a task may tell."""

UNREADABLE = ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError
"""What reading nonsense may raise."""

Published = tuple[str, Message]
"""A topic, and what is published there."""


class Bridge:
    """What vehicles and the plant publish, as messages of a service; and its orders, as VDA 5050 has them.

    Nothing is kept that a restart would need: which order a vehicle has, the dispatcher knows.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self.service, self.dispatcher = service, service.dispatcher
        self._makers: dict[str, str] = {}
        """Manufacturers of the vehicles, as the topics of their states tell them."""
        self._held: dict[str, Message] = {}
        """Orders of vehicles of which no state has come: nobody knows their topics."""
        self._seen, self._before = 0, math.inf
        self._asked: tuple[float, float] | None = None
        """How many messages come before the orders of a moment, and that moment."""
        if self.dispatcher._floor.has_errands:
            raise InputError(
                "--mqtt: gives vehicles tasks alone; expected a layout without batteries, parking places and "
                'commitment "pickup"'
            )

    def take(self, topic: str, payload: bytes) -> Iterator[Published]:
        """Take in what was published; give what is to be.

        Raises
        ------
        StorageError
            If the log cannot be written.
        """
        self._seen += 1
        try:
            if len(payload) > MAX_MESSAGE:
                raise ValueError(f"{len(payload):,} bytes; expected at most {MAX_MESSAGE:,}")
            told = json.loads(payload)
            now = read_moment(told["timestamp"])
            own, start = self.dispatcher, self.dispatcher._floor.day.start
            is_unknown = math.isinf(own.time) and abs(now - start) > own.ahead
            if is_unknown and topic in (TASK, CLOCK):
                own.begin_day(now)  # the plant's clock is that of its first message
            if topic == CLOCK:
                n, messages = int(told["messages"]), list[Message]()
                self._before = min(self._before, n - self._seen)  # that came before this process
                self._asked = n - self._before, now
            elif topic == TASK:
                known = {name: told[name] for name in OF_TASKS if name in told}
                messages = [{"kind": "TaskArrived", "time": now, **known}]
            else:
                *_, maker, vehicle, _ = topic.split("/")
                messages = [] if is_unknown else self._read_state(vehicle, told, now)
                self._makers[vehicle] = maker
                yield from self.publish(filter(None, [self._held.pop(vehicle, None)]))
        except UNREADABLE as error:
            yield REFUSED, {"topic": topic, "why": f"cannot be read: {describe(str(error))}"}
            return
        for message in messages:
            yield from self.publish(self.service.answer(json.dumps(message)))
        if self._asked is not None and self._seen >= self._asked[0]:
            now, self._asked = self._asked[1], None
            yield from self.publish(self.service.ask(now))
            n_orders = self.dispatcher._desk.orders.decisions - len(self._held)
            yield ANSWER, {"orders": n_orders}

    def count_anew(self) -> None:
        """Take the plant's count of messages from its next clock on, as some may have been lost."""
        self._before = math.inf

    def _read_state(self, vehicle: str, state: Message, now: float) -> list[Message]:
        """Return what a vehicle's state says that is new."""
        node, own = state["lastNodeId"], self.dispatcher._floor.fleet.get(vehicle)
        at = {"time": now, "vehicle": vehicle}
        is_broken = any(error["errorLevel"] == "FATAL" for error in state["errors"])
        if own is None:
            raise ValueError(f"vehicle {vehicle} is unknown")
        if is_broken or own.status == S.BROKEN:
            if is_broken and own.status == S.BROKEN:
                return []
            at |= (
                {"kind": "VehicleBroke"} if is_broken else {"kind": "VehicleRepaired", "site": node}
            )
            return [at]
        if own.task is not None and state["orderId"] != self._name_order(vehicle):
            return []  # of an order that is fulfilled or void
        left = state["nodeStates"] or own.task is None
        if left:
            moved = node != self.dispatcher.sites[vehicle]
            return [{**at, "kind": "VehiclePassed", "site": node}] if moved else []
        is_done = all(action["actionStatus"] == "FINISHED" for action in state["actionStates"])
        return [{**at, "kind": "VehicleIdle", "site": node}] if is_done else []

    def _name_order(self, vehicle: str) -> str:
        """Return the id of the order that a vehicle has."""
        made = self.dispatcher._desk.orders.given.get(vehicle)
        return f"{made.task}/{made.number}" if isinstance(made, Assignment) else ""

    def publish(self, answers: Iterable[Message]) -> Iterator[Published]:
        """Give what is to be published of a service's answers: orders, and what was refused."""
        for answer in answers:
            if answer["kind"] == ASSIGNED and answer["vehicle"] not in self._makers:
                self._held[answer["vehicle"]] = answer
            elif answer["kind"] == ASSIGNED:
                try:
                    if self.dispatcher.under_way.get(answer["task"]) == answer["vehicle"]:
                        yield self._make_order(answer)
                except EventError as error:  # a floor in parts
                    yield REFUSED, {"why": f"vehicle {answer['vehicle']}: {error}"}
            elif answer["kind"] == "Refused":
                yield REFUSED, {"why": answer["why"]}

    def _make_order(self, order: Message) -> Published:
        """Return an order from where a vehicle stands to the pickup and on to the delivery."""
        vehicle, task, floor = order["vehicle"], order["task"], self.dispatcher._floor
        event = floor.tasks[task].event
        there = find_way(floor.layout, self.dispatcher.sites[vehicle], event.pickup)
        way = [*there, *find_way(floor.layout, event.pickup, event.delivery)[1:]]
        actions = {len(there) - 1: "pick", len(way) - 1: "drop"}
        name, maker = f"{task}/{order['number']}", self._makers[vehicle]
        nodes: list[Message] = [
            {"nodeId": node, "sequenceId": 2 * k, "released": True, "actions": []}
            for k, node in enumerate(way)
        ]
        for k, kind in actions.items():
            load = [{"key": "loadId", "value": task}]
            own = {"actionId": f"{name}/{kind}", "actionType": kind, "blockingType": "HARD"}
            nodes[k]["actions"] = [{**own, "actionParameters": load}]
        edges = [
            {
                **{"edgeId": f"{a}-{b}", "sequenceId": 2 * k + 1, "released": True},
                **{"startNodeId": a, "endNodeId": b, "actions": []},
            }
            for k, (a, b) in enumerate(pairwise(way))
        ]
        header = {
            **{"headerId": order["number"], "timestamp": show_moment(order["time"])},
            **{"version": VERSION, "manufacturer": maker, "serialNumber": vehicle},
        }
        told = {"orderId": name, "orderUpdateId": 0, "nodes": nodes, "edges": edges}
        return ORDERS.format(maker, vehicle), {**header, **told}


def find_way(layout: Layout, start: str, end: str) -> list[str]:
    """Return the sites of the route between two sites, both included."""
    routes, (a, b) = layout.routes, (layout.site_index[name] for name in (start, end))
    if not math.isfinite(routes.distance[a, b]):
        raise EventError(f"no way from '{start}' to '{end}'")
    way = [a]
    while way[-1] != b:
        way.append(routes.find_next(a, way[-1], b))
    return [layout.sites[k].id for k in way]


def read_moment(text: str) -> float:
    """Return a timestamp as seconds since 1970; one without a zone is in UTC."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def show_moment(seconds: float) -> str:
    """Return seconds since 1970 as VDA 5050 writes them."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def check_client() -> None:
    """Raise a MissingExtraError if there is no client."""
    with needing(EXTRA):
        import paho.mqtt.client  # noqa: F401


def serve_mqtt(
    service: Service,
    broker: tuple[str, int],
    password: str,
    *,
    wall: bool,
    begun: Callable[[], None],
    stopped: Callable[[], bool],
) -> None:
    """Take what a broker has, and publish orders, until it is stopped; broken connections come back.

    Parameters
    ----------
    service : Service
    broker : tuple of str and int
    password : str
        USER:PASSWORD, or "".
    wall : bool
        Also ask after quiet, and when something is due, by the clock on the wall.
    begun : callable
        Called once the broker has the subscriptions.
    stopped : callable

    Raises
    ------
    StorageError
        If the broker cannot be reached at first, or refuses; or the log cannot be written.
    """
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    bridge, came = Bridge(service), queue.SimpleQueue[Any]()
    # What comes while this process is down is kept for it, and counts once it is taken in.
    name = f"acerl_np-{service.dispatcher.layout.name}"
    client = Client(CallbackAPIVersion.VERSION2, name, clean_session=False, manual_ack=True)
    if password:
        client.username_pw_set(*password.split(":", 1))
    refusals: list[Any] = []

    def subscribe(client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
        if reason.is_failure:
            refusals.append(reason)
        else:
            client.subscribe([(STATES, 0), (TASK, 1), (CLOCK, 0)])

    client.on_connect = subscribe
    client.on_subscribe = lambda *_: came.put(None)
    client.on_message = lambda _, __, message: came.put(message)
    where = f"--mqtt: {broker[0]}:{broker[1]}"
    try:
        client.connect(*broker)
    except OSError as error:
        raise StorageError(f"{where}: cannot connect: {describe_os_error(error)}") from error
    client.loop_start()
    try:
        while not stopped():
            if refusals:
                raise StorageError(f"{where}: refused: {refusals[0]}")
            try:
                message, told = came.get(timeout=QUIET), list[Published]()
            except queue.Empty:
                now = time.time()
                told = (
                    list(bridge.publish(service.ask(now))) if wall and service.is_due(now) else []
                )
            else:
                if message is None:
                    bridge.count_anew()
                    begun()
                    continue
                told = list(bridge.take(message.topic, message.payload))
                client.ack(message.mid, message.qos)
            for topic, text in told:
                client.publish(topic, format_line(text).strip())
    finally:
        client.disconnect()
        client.loop_stop()
