"""The service over MQTT: what VDA 5050 says becomes events, orders are published, nonsense is refused."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_events import floor
from machine import EXAMPLES

from acerl_np import Dispatcher, load_layout
from acerl_np.live import mqtt
from acerl_np.live.mqtt import Bridge, read_moment, show_moment
from acerl_np.live.service import Service
from acerl_np.support.errors import InputError

LAYOUT = load_layout("dmh").with_breakdowns({})
START = read_moment("2025-01-06T06:00:00Z")


def tell(fleet, topic, now, **more):
    message = {"timestamp": show_moment(START + now), **more}
    return list(fleet.take(topic, json.dumps(message).encode()))


def state(fleet, now, vehicle, node, order="", *, left=0, done=True, broken=False):
    status = "FINISHED" if done else "WAITING"
    own = {"orderId": order, "lastNodeId": node, "nodeStates": [{"nodeId": "x"}] * left}
    own |= {"actionStates": [{"actionStatus": status}]}
    own |= {"errors": [{"errorLevel": "FATAL"}] if broken else []}
    return tell(fleet, f"uagv/v2/acme/{vehicle}/state", now, **own)


def begin(**own):
    fleet = Bridge(Service(Dispatcher(LAYOUT, "nearest", **own)))
    assert state(fleet, 0.0, "v0", "carport") == []
    task = {"task": "t", "pickup": "st1", "delivery": "st5", "expiry": 400.0}
    assert tell(fleet, mqtt.TASK, 0.0, **task) == []
    return fleet


def test_a_task_becomes_an_order_and_states_its_events(tmp_path):
    fleet = begin(audit=tmp_path / "day.jsonl")
    own = fleet.dispatcher
    (topic, order), answer = tell(fleet, mqtt.CLOCK, 0.0, messages=3)
    assert topic == "uagv/v2/acme/v0/order" and answer == ("plant/answer", {"orders": 1})
    assert (order["orderId"], order["headerId"], order["serialNumber"]) == ("t/1", 1, "v0")
    nodes, edges = order["nodes"], order["edges"]
    ways = LAYOUT.routes.edge_length
    for a, b, edge in zip(nodes[:-1], nodes[1:], edges, strict=True):
        ends = [LAYOUT.site_index[node["nodeId"]] for node in (a, b)]
        assert ways[tuple(ends)] > 0 and [edge["startNodeId"], edge["endNodeId"]] == [
            a["nodeId"],
            b["nodeId"],
        ]
        assert (a["sequenceId"], edge["sequenceId"]) == (b["sequenceId"] - 2, b["sequenceId"] - 1)
    acts = {node["nodeId"]: [x["actionType"] for x in node["actions"]] for node in nodes}
    assert {node: x for node, x in acts.items() if x} == {"st1": ["pick"], "st5": ["drop"]}
    assert (nodes[0]["nodeId"], nodes[-1]["nodeId"]) == ("carport", "st5")
    state(fleet, 5.0, "v0", "st5", "older/7")  # of an order of before: nothing
    state(fleet, 9.0, "v0", "st1", "t/1", left=2, done=False)
    assert own.tasks()["t"].state == "loaded" and own.sites["v0"] == "st1"
    state(fleet, 60.0, "v0", "st5", "t/1", done=False)
    assert own.under_way == {"t": "v0"}
    state(fleet, 61.0, "v0", "st5", "t/1")
    assert own.tasks()["t"].state == "delivered" and own.idle == ("v0", "v1", "v2")
    state(fleet, 90.0, "v0", "st5", "t/1")  # again
    state(fleet, 91.0, "v0", "st5", "t/1", broken=True)
    state(fleet, 92.0, "v0", "st5", "t/1", broken=True)
    assert own.idle == ("v1", "v2")
    state(fleet, 99.0, "v0", "st4", "t/1")
    assert own.idle == ("v0", "v1", "v2") and own.sites["v0"] == "st4"
    log = (tmp_path / "day.jsonl").read_text()
    kinds = [json.loads(line)["kind"] for line in log.splitlines()]
    assert kinds[:4] == ["Started", "DayBegan", "TaskArrived", "Assigned"]
    assert kinds[4:] == ["VehiclePassed", "VehicleIdle", "VehicleBroke", "VehicleRepaired"]


def test_after_a_restart_an_order_waits_for_its_vehicles_topic(tmp_path):
    with begin(audit=tmp_path / "day.jsonl").dispatcher:
        pass
    fleet = Bridge(Service(Dispatcher.recover(LAYOUT, "nearest", audit=tmp_path / "day.jsonl")))
    # The plant has counted messages that came before.
    assert tell(fleet, mqtt.CLOCK, 1.0, messages=41) == [("plant/answer", {"orders": 0})]
    (vehicle,) = fleet.dispatcher.under_way.values()
    ((topic, order),) = state(fleet, 2.0, vehicle, "carport")
    assert topic == f"uagv/v2/acme/{vehicle}/order" and order["orderId"] == "t/1"
    assert state(fleet, 3.0, vehicle, "carport", "t/1", left=3) == []
    assert tell(fleet, mqtt.CLOCK, 3.0, messages=44) == [("plant/answer", {"orders": 1})]
    assert tell(fleet, mqtt.CLOCK, 4.0, messages=99) == []  # some are on their way, or lost
    fleet.count_anew()
    assert tell(fleet, mqtt.CLOCK, 5.0, messages=100) == [("plant/answer", {"orders": 1})]


NONSENSE = [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"timestamp": 5}', b'{"timestamp": "x"}']
NONSENSE += [b'{"timestamp": "2025-01-06T06:00:00Z"}', b" " * 1_000_001]
NONSENSE += [b'{"timestamp": "2025-01-06T06:00:00Z", "messages": Infinity}']


@pytest.mark.parametrize("topic", [mqtt.TASK, mqtt.CLOCK, "uagv/v2/acme/v0/state"])
def test_what_cannot_be_read_is_refused_in_a_line(topic):
    fleet = begin()
    before = fleet.dispatcher.tasks()
    for payload in NONSENSE:
        ((there, told),) = fleet.take(topic, payload)
        assert there == "plant/refused" and told["why"] and "\n" not in told["why"]
    assert fleet.dispatcher.tasks() == before and fleet.dispatcher.check() == []
    ((_, told),) = state(fleet, 1.0, "v9", "st1")
    assert "vehicle v9 is unknown" in told["why"]
    ((_, told),) = tell(fleet, mqtt.TASK, 1.0, task="t", pickup="st1", delivery="no", expiry=1.0)
    assert "task 't' is waiting" in told["why"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.just("st1"),
    lambda x: st.lists(x, max_size=2) | st.dictionaries(st.text(max_size=3), x, max_size=2),
    max_leaves=5,
)
NAMES = (
    "lastNodeId",
    "errors",
    "nodeStates",
    "actionStates",
    "orderId",
    "messages",
    "task",
    "pickup",
)


@given(st.sampled_from([mqtt.TASK, mqtt.CLOCK, "uagv/v2/acme/v0/state"]), st.data())
def test_whatever_a_message_holds_is_taken_or_refused(topic, data):
    fleet = begin()
    told = {"errors": [], "nodeStates": [], "actionStates": [], "lastNodeId": "st1", "orderId": ""}
    told |= data.draw(st.dictionaries(st.sampled_from(NAMES), JSON))
    for there, _ in tell(fleet, topic, 1.0, **told):
        assert there.startswith(("plant/", "uagv/"))
    assert fleet.dispatcher.check() == []


def test_floors_that_need_other_orders_are_refused():
    with pytest.raises(InputError, match="--mqtt: gives vehicles tasks alone; expected"):
        Bridge(Service(Dispatcher(floor(2), "nearest")))


def test_the_command_says_what_is_wrong(empty, run):
    pytest.importorskip("paho.mqtt.client")
    words = "serve nearest --layout dmh --mqtt"
    assert "--mqtt: read x; expected HOST:PORT" in run(f"{words} x", 2).err
    assert "expected neither --http nor --shadow" in run(f"{words} localhost:1 --shadow", 2).err
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said = f"--mqtt: 127.0.0.1:{port}: cannot connect: connection refused"
    assert said in run(f"{words} 127.0.0.1:{port}", 1).err


@pytest.mark.slow
def test_a_plant_goes_on_over_a_broker_when_the_service_is_killed():
    pytest.importorskip("paho.mqtt.client")
    if shutil.which("mosquitto") is None:
        pytest.importorskip("amqtt.broker")
    command = [sys.executable, str(EXAMPLES / "mqtt_plant.py"), "--quick"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "40 of 40 tasks delivered" in out and "0 messages refused; killed at" in out
