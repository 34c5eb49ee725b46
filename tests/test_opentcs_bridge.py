"""The bridge to openTCS, against a small stand-in with the part of the web API that it uses."""

import contextlib
import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from test_examples import load_example

import acerl_np
from acerl_np.problem.importers.files import import_floor

HALL = Path(__file__).parents[1] / "docs" / "tutorial" / "hall.xml"
NEVER = "+1000000000-12-31T23:59:59.999999999Z"
KEY = "secret"

bridge = load_example("opentcs_bridge")


class Plant:
    """What the kernel knows: vehicles that need `trip` rounds for an order, and who may ask."""

    def __init__(self, trip=3):
        self.trip, self.told, self.events = trip, [], 0
        self.orders, self.left, self.assigned = {}, {}, Counter()
        self.vehicles = {
            name: {
                **{"name": name, "currentPosition": f"Park-{k}", "transportOrder": None},
                **{"state": "IDLE", "integrationLevel": "TO_BE_UTILIZED", "paused": False},
            }
            for k, name in enumerate(("AGV-1", "AGV-2", "AGV-3"), 1)
        }

    def add(self, name, *ends, intended="Nobody", **more):
        destinations = [{"destination": {"destination": end, "operation": "Load"}} for end in ends]
        self.orders[name] = {
            **{
                "name": name,
                "state": "DISPATCHABLE",
                "dispensable": False,
                "wrappingSequence": None,
            },
            **{"intendedVehicle": intended, "processingVehicle": None, "driveOrders": destinations},
            **{"creationTime": "2025-01-06T06:00:00.123456789Z", "deadline": NEVER, **more},
        }

    def dispatch(self):
        """Give orders to the vehicles for which they are intended, as a kernel does."""
        for name, order in self.orders.items():
            vehicle = self.vehicles.get(order["intendedVehicle"])
            if order["state"] == "DISPATCHABLE" and vehicle and not vehicle["transportOrder"]:
                order.update(state="BEING_PROCESSED", processingVehicle=vehicle["name"])
                vehicle.update(state="EXECUTING", transportOrder=name)
                self.left[name] = self.trip
                self.assigned[name] += 1

    def drive(self):
        """Let every vehicle drive on: to the pickup, and at last to the delivery."""
        self.events += 1
        for vehicle in self.vehicles.values():
            name = vehicle["transportOrder"]
            if name is None:
                continue
            self.left[name] -= 1
            ends = [item["destination"]["destination"] for item in self.orders[name]["driveOrders"]]
            vehicle["currentPosition"] = ends[0]
            if self.left[name] == 0:
                self.orders[name]["state"] = "FINISHED"
                vehicle.update(state="IDLE", transportOrder=None, currentPosition=ends[-1])

    def answer(self, method, path, query):
        """Return the status and the body of an answer."""
        match method, *path:
            case "GET", "vehicles":
                return 200, list(self.vehicles.values())
            case "GET", "transportOrders":
                return 200, sorted(self.orders.values(), key=lambda order: order["name"])
            case "GET", "events":
                first, until = int(query["minSequenceNo"]), self.events
                messages = [{"sequenceNumber": number} for number in range(first, until)]
                return 200, {"timeStamp": "", "statusMessages": messages}
            case "PUT", "transportOrders", name, "intendedVehicle":
                if name not in self.orders or self.orders[name]["state"] != "DISPATCHABLE":
                    return 404, [f"Could not find transport order '{name}'."]
                self.told.append((name, query["vehicle"]))
                self.orders[name]["intendedVehicle"] = query["vehicle"]
                return 200, None
            case "POST", "transportOrders", "dispatcher", "trigger":
                self.dispatch()
                return 200, None
        return 404, ["unknown"]


@contextlib.contextmanager
def serve(plant, port=0):
    class Handler(BaseHTTPRequestHandler):
        def reply(self):
            url = urlsplit(self.path)
            assert url.path.startswith("/v1/")
            path = [unquote(part) for part in url.path.split("/")[2:]]
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            if self.headers.get("X-Api-Access-Key") != KEY:
                status, body = 403, None
            else:
                status, body = plant.answer(self.command, path, query)
            text = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = reply  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_bridge(url, rule="EDD"):
    dispatcher = acerl_np.Dispatcher(acerl_np.Layout.from_dict(import_floor(HALL)[0]), rule)
    return bridge.Bridge(dispatcher, bridge.Kernel(url, KEY), "Nobody")


def go_on(plant, own, most=60):
    for _ in range(most):
        own.step()
        plant.drive()
        own.kernel.wait()
        assert len({*own.dispatcher.under_way.values()}) == len(own.dispatcher.under_way)
        if all(order["state"] == "FINISHED" for order in plant.orders.values()):
            return
    raise AssertionError({name: order["state"] for name, order in plant.orders.items()})


STATIONS = ("Press", "P-02", "Wash", "Paint", "Assembly", "Test", "Pack", "Goods-out", "Rack-B")


def add_orders(plant, n=9, **more):
    for k in range(n):
        name = f"order {k}/{k}"  # names are whatever the host likes
        plant.add(name, STATIONS[k], STATIONS[(k + 4) % 9], **more)


def test_all_orders_are_decided_and_delivered_once():
    plant = Plant()
    add_orders(plant)
    with serve(plant) as url:
        own = make_bridge(url)
        go_on(plant, own)
        own.step()
    assert (
        Counter(name for name, _ in plant.told) == plant.assigned == dict.fromkeys(plant.orders, 1)
    )
    for name, vehicle in plant.told:
        assert plant.orders[name]["processingVehicle"] == vehicle
    assert set(own.dispatcher.idle) == set(plant.vehicles) and not own.dispatcher.waiting
    where = {name: item["currentPosition"] for name, item in plant.vehicles.items()}
    assert own.dispatcher.sites == {k: "Mill" if v == "P-02" else v for k, v in where.items()}


def test_a_bridge_that_is_started_again_goes_on_where_the_other_ended():
    plant = Plant(trip=4)
    add_orders(plant)
    with serve(plant) as url:
        for _ in range(9):  # each lives for two rounds
            with contextlib.suppress(AssertionError):
                go_on(plant, make_bridge(url), most=2)
        go_on(plant, make_bridge(url))
    assert plant.assigned == dict.fromkeys(plant.orders, 1)


@pytest.mark.parametrize(
    ("rule", "order"), [("EDD", ["old", "soon", "late"]), ("FCFS", ["old", "late", "soon"])]
)
def test_deadlines_decide_and_age_counts(rule, order):
    plant = Plant()
    del plant.vehicles["AGV-2"], plant.vehicles["AGV-3"]
    made, due = "2999-02-06T06:00:00Z", "2998-01-06T06:00:00Z"
    plant.add("soon", "Press", "Wash", creationTime=made, deadline=due)
    plant.add("late", "Press", "Wash", creationTime="2999-01-06T06:00:00Z")
    plant.add("old", "Press", "Wash")
    with serve(plant) as url:
        go_on(plant, make_bridge(url, rule))
    assert [name for name, _ in plant.told] == order


@pytest.mark.parametrize("vehicle", ["AGV-1", "AGV-2", "AGV-3"])
def test_an_order_for_a_vehicle_keeps_it(vehicle):
    plant = Plant()
    plant.add("a", "Press", "Wash", intended=vehicle)
    with serve(plant) as url:
        own = make_bridge(url)
        own.step()
    assert own.dispatcher.under_way == {"a": vehicle} and not plant.told


def test_an_order_that_waits_may_be_withdrawn_or_given_a_vehicle_by_hand():
    plant = Plant()
    add_orders(plant, 6)
    with serve(plant) as url:
        own = make_bridge(url)
        own.step()
        first, second, third = own.dispatcher.waiting
        plant.orders[first]["state"] = "WITHDRAWN"
        plant.orders[second]["intendedVehicle"] = "AGV-1"
        own.step()
        assert own.dispatcher.waiting == (third,)
        plant.orders[first]["state"] = "FINISHED"
        go_on(plant, own)
    assert second not in dict(plant.told) and plant.orders[second]["processingVehicle"] == "AGV-1"


def test_what_others_decide_is_taken_as_it_is(capsys):
    """Orders for a vehicle, orders of the kernel's own, and orders that an operator withdraws."""
    plant = Plant()
    plant.add("a", "Press", "Wash")
    plant.add("b", "Press", "Wash", intended="AGV-3")
    plant.add("three", "Press", "Wash", "Pack")
    plant.add("nowhere", "Moon", "Wash")
    plant.add("free", "Press", "Wash", intended=None)
    plant.add("park", "Park-1", dispensable=True, intended=None)
    with serve(plant) as url:
        own = make_bridge(url)
        plant.vehicles["AGV-1"]["paused"] = True
        own.step()
        assert own.dispatcher.under_way == {"a": "AGV-2", "b": "AGV-3"}
        assert own.dispatcher.out_of_service == ("AGV-1",)
        assert plant.told == [("a", "AGV-2")]
        # An operator gives it to another vehicle by hand, and withdraws the other order.
        plant.vehicles["AGV-2"].update(transportOrder=None, state="IDLE")
        plant.vehicles["AGV-1"].update(transportOrder="a", state="EXECUTING", paused=False)
        plant.orders["a"]["processingVehicle"] = "AGV-1"
        plant.orders["b"]["state"] = "FAILED"
        plant.vehicles["AGV-3"].update(transportOrder="three", state="EXECUTING")
        plant.orders["three"].update(state="BEING_PROCESSED", processingVehicle="AGV-3")
        own.step()
        assert own.dispatcher.under_way == {"a": "AGV-1"}
        assert own.dispatcher.out_of_service == ("AGV-3",)
        # A vehicle on its way to a parking place is free.
        plant.vehicles["AGV-2"].update(transportOrder="park", state="EXECUTING")
        plant.add("c", "Press", "Wash")
        own.step()
        assert own.dispatcher.under_way == {"a": "AGV-1", "c": "AGV-2"}
    said = capsys.readouterr().out
    assert "nowhere is left to the kernel: TaskArrived" in said and "site 'Moon' unknown" in said
    assert "b is taken off AGV-3: FAILED" in said


def test_a_refused_order_is_left_to_the_kernel(capsys):
    plant = Plant()
    plant.add("a", "Press", "Wash")
    with serve(plant) as url:
        own = make_bridge(url)
        answer = plant.answer

        def vanish(method, path, query):
            plant.orders.pop("a", None) if method == "PUT" else None
            return answer(method, path, query)

        plant.answer = vanish
        own.step()
        own.step()
    assert not own.dispatcher.waiting and len(own.dispatcher.idle) == 3
    assert "HTTP 404 [\"Could not find transport order 'a'.\"]" in capsys.readouterr().out


def test_a_kernel_that_is_away_is_asked_again(monkeypatch, capsys):
    """It is away from the start, comes, goes in the middle of a round, and comes again."""
    plant, pauses = Plant(), []
    add_orders(plant)
    with serve(plant) as url:
        port = urlsplit(url).port
    stack = contextlib.ExitStack()
    own = make_bridge(url)
    rounds = iter(range(100))

    def wait():
        plant.drive()
        if next(rounds) == 3:
            stack.close()
        if all(order["state"] == "FINISHED" for order in plant.orders.values()):
            raise KeyboardInterrupt

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) in (7, 9):
            stack.enter_context(serve(plant, port))

    monkeypatch.setattr(own.kernel, "wait", wait)
    monkeypatch.setattr(bridge.time, "sleep", sleep)
    with stack, pytest.raises(KeyboardInterrupt):
        bridge.run(own)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 1.0, 2.0]
    assert plant.assigned == dict.fromkeys(plant.orders, 1)
    lines = capsys.readouterr().out.splitlines()
    assert sum("; asking again" in line for line in lines) == 2
    assert sum("the kernel answers again" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "HTTP 403 ; expected the kernel's access key in OPENTCS_ACCESS_KEY"),
        (("--audit", "floor.json"), "--audit: floor.json exists; expected a new file"),
        (("--url", "{url}/nowhere"), "GET {url}/nowhere/vehicles: HTTP 404"),
    ],
)
def test_what_cannot_go_on_ends_with_a_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    data, _ = import_floor(HALL)
    (tmp_path / "floor.json").write_text(json.dumps(data))
    with serve(Plant()) as url:
        given = [word.format(url=url) for word in ("--url", "{url}", *words)]
        if words:
            monkeypatch.setenv("OPENTCS_ACCESS_KEY", KEY)
        monkeypatch.setattr(
            sys, "argv", ["bridge", "floor.json", "EDD", "--hold", "Nobody", *given]
        )
        with pytest.raises(SystemExit) as ended:
            bridge.main()
        message = message.format(url=url)
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.err.count("\n") == 1
    assert said.err.startswith("opentcs_bridge: error: ") and message in said.err
