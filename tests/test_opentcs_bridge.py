"""The bridge to openTCS, against a small stand-in with the part of the web API that it uses."""

import contextlib
import json
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from test_examples import load_example

import acerl_np
from acerl_np.problem.importers.files import read_floor

HALL = Path(__file__).parents[1] / "docs" / "tutorial" / "hall.xml"
ANSWERS = json.loads((Path(__file__).parent / "data" / "opentcs-answers.json").read_text())
KEY = "secret"

bridge = load_example("opentcs_bridge")


class Plant:
    """What the kernel knows: vehicles that need `trip` rounds for an order, and who may ask."""

    trip, form, url = 3, "transportOrder", ""

    def __init__(self):
        self.told, self.events = [], 0
        self.orders, self.left, self.assigned = {}, {}, Counter()
        self.vehicles = {
            name: {**ANSWERS["vehicle"], "name": name, "currentPosition": f"Park-{k}"}
            for k, name in enumerate(("AGV-1", "AGV-2", "AGV-3"), 1)
        }
        self.nobody = {
            **ANSWERS["vehicle"],
            **{"name": "Nobody", "currentPosition": None, "integrationLevel": "TO_BE_IGNORED"},
        }

    def add(self, name, *ends, intended="Nobody", **more):
        order = {**ANSWERS[self.form], "name": name, "intendedVehicle": intended, **more}
        (one,) = order["destinations"]
        order["destinations"] = [{**one, "locationName": end} for end in ends]
        if "driveOrders" in order:
            (one,) = order["driveOrders"]
            there = [{**one["destination"], "destination": end} for end in ends]
            order["driveOrders"] = [{**one, "destination": item} for item in there]
        self.orders[name] = order

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
            ends = [item["locationName"] for item in self.orders[name]["destinations"]]
            vehicle["currentPosition"] = ends[0]
            if self.left[name] == 0:
                self.orders[name]["state"] = "FINISHED"
                vehicle.update(state="IDLE", transportOrder=None, currentPosition=ends[-1])

    def answer(self, method, path, query):
        """Return the status and the body of an answer."""
        match method, *path:
            case "GET", "vehicles":
                return 200, [*self.vehicles.values(), self.nobody]
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


@pytest.fixture
def plant():
    """A kernel that is there for the whole test."""
    plant = Plant()
    with serve(plant) as plant.url:
        yield plant


def make_bridge(plant, rule="EDD", audit=None, **battery):
    data, _ = read_floor(HALL)
    if battery:
        for vehicle in data["vehicles"]:
            vehicle["battery"] = battery
        data["chargers"] = [{"site": "Park-2"}]
    layout = acerl_np.Layout.from_dict(data)
    dispatcher = acerl_np.Dispatcher(layout, rule, audit=audit, parks=False, charges=False)
    return bridge.Bridge(dispatcher, bridge.Kernel(plant.url, KEY), "Nobody")


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


@pytest.mark.parametrize("before_67", [False, True])
def test_all_orders_are_decided_and_delivered_once(plant, before_67):
    plant.form += " before 6.7" * before_67
    add_orders(plant)
    own = make_bridge(plant)
    go_on(plant, own)
    own.step()
    assert Counter(dict(plant.told).keys()) == plant.assigned == dict.fromkeys(plant.orders, 1)
    assert len(plant.told) == len(plant.orders)
    for name, vehicle in plant.told:
        assert plant.orders[name]["processingVehicle"] == vehicle
    assert set(own.dispatcher.idle) == set(plant.vehicles) and not own.dispatcher.waiting
    where = {name: item["currentPosition"] for name, item in plant.vehicles.items()}
    assert own.dispatcher.sites == {k: "Mill" if v == "P-02" else v for k, v in where.items()}


def test_a_bridge_that_is_started_again_goes_on_where_the_other_ended(plant):
    plant.trip = 4
    add_orders(plant)
    for _ in range(9):  # each lives for two rounds
        with contextlib.suppress(AssertionError):
            go_on(plant, make_bridge(plant), most=2)
    go_on(plant, make_bridge(plant))
    assert plant.assigned == dict.fromkeys(plant.orders, 1)


@pytest.mark.parametrize(
    ("rule", "order"), [("EDD", ["old", "soon", "late"]), ("FCFS", ["old", "late", "soon"])]
)
def test_deadlines_decide_and_age_counts(plant, rule, order):
    for name in ("AGV-2", "AGV-3"):
        plant.vehicles[name]["integrationLevel"] = "TO_BE_RESPECTED"
    today = datetime.now(UTC)
    late, made, due = ((today + timedelta(days)).isoformat() for days in (60, 90, 30))
    plant.add("soon", "Press", "Wash", creationTime=made, deadline=due)
    plant.add("late", "Press", "Wash", creationTime=late)
    plant.add("old", "Press", "Wash")
    go_on(plant, make_bridge(plant, rule))
    assert [name for name, _ in plant.told] == order


def test_an_order_that_waits_may_be_withdrawn_or_given_a_vehicle_by_hand(plant):
    add_orders(plant, 6)
    own = make_bridge(plant)
    own.step()
    first, second, third = own.dispatcher.waiting
    plant.orders[first]["state"] = "WITHDRAWN"
    plant.orders[second]["intendedVehicle"] = "AGV-1"
    own.step()
    assert own.dispatcher.waiting == (third,)
    plant.orders[first]["state"] = "FINISHED"
    go_on(plant, own)
    assert second not in dict(plant.told) and plant.orders[second]["processingVehicle"] == "AGV-1"


def test_what_others_decide_is_taken_as_it_is(plant, capsys):
    """Orders for a vehicle, orders of the kernel's own, and orders that an operator withdraws."""
    plant.add("a", "Press", "Wash")
    plant.add("b", "Press", "Wash", intended="AGV-3")
    plant.add("three", "Press", "Wash", "Pack")
    plant.add("nowhere", "Moon", "Wash")
    plant.add("free", "Press", "Wash", intended=None)
    plant.add("park", "Park-1", dispensable=True, intended=None)
    own = make_bridge(plant)
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


@pytest.mark.filterwarnings("ignore::acerl_np.EventWarning")  # all levels are told at once
def test_levels_and_charging_are_told(plant):
    empty, charging, full = plant.vehicles.values()
    rates = {"capacity": 100_000, "idle": 1, "empty": 3, "loaded": 7, "charge": 30}
    levels = {"start": 90_000, "critical": 20_000, "resume": 45_000, "good": 60_000, "full": 95_000}
    empty["energyLevel"] = 20
    charging.update(energyLevel=12, state="CHARGING", currentPosition="Park-2")
    plant.add("a", "Press", "Wash")
    own = make_bridge(plant, "nearest", **rates, **levels)
    own.step()
    told = {name: level / 1000.0 for name, level in own.dispatcher.levels.items()}
    assert told == pytest.approx({"AGV-1": 20.0, "AGV-2": 12.0, "AGV-3": 60.0}, abs=0.1)
    assert own.dispatcher.idle == ("AGV-1",) and own.dispatcher.under_way == {"a": "AGV-3"}
    charging.update(energyLevel=95, state="IDLE")
    full["energyLevel"] = 58
    own.step()
    assert own.dispatcher.idle == ("AGV-1", "AGV-2")
    assert own.dispatcher.levels["AGV-3"] == pytest.approx(58_000, abs=100)
    charging.update(state="CHARGING")
    own.step()
    charging.update(state="EXECUTING", currentPosition="Press")
    own.step()
    assert own.dispatcher.idle == ("AGV-1", "AGV-2")
    assert own.dispatcher.sites["AGV-2"] == "Press"


def read_kinds(log, vehicle):
    """What was told of a vehicle, places aside."""
    lines = map(json.loads, log.read_text().splitlines())
    lines = [line for line in lines if line.get("vehicle") == vehicle]
    kinds = [(line["kind"], line.get("delivered", line.get("at_once"))) for line in lines]
    return [kind for kind in kinds if kind[0] != "VehiclePassed"]


GIVEN_UP = [("Assigned", None), ("VehicleIdle", False)]


@pytest.mark.parametrize("state", ["FAILED", "UNROUTABLE", "gone"])
def test_an_order_that_ends_without_a_delivery_leaves_its_vehicle_idle(plant, state, tmp_path):
    """A pick that failed; an order that the kernel lost, as when it was started anew."""
    log = tmp_path / "log.jsonl"
    plant.add("a", "Press", "Wash")
    own = make_bridge(plant, audit=log)
    own.step()
    plant.drive()
    (vehicle,) = own.dispatcher.under_way.values()
    plant.vehicles[vehicle].update(transportOrder=None, state="IDLE")
    plant.orders["a"]["state"] = state
    if state == "gone":
        del plant.orders["a"]
    own.step()
    assert read_kinds(log, vehicle) == GIVEN_UP
    assert len(own.dispatcher.idle) == 3 and not own.dispatcher.waiting


def test_a_vehicle_whose_order_is_withdrawn_first_does_what_was_sent_to_it(plant, tmp_path):
    log = tmp_path / "log.jsonl"
    plant.vehicles["AGV-2"]["integrationLevel"] = "TO_BE_RESPECTED"
    plant.vehicles["AGV-3"]["integrationLevel"] = "TO_BE_NOTICED"
    plant.add("a", "Press", "Wash")
    own = make_bridge(plant, audit=log)
    own.step()
    plant.orders["a"]["state"] = "WITHDRAWN"
    plant.add("b", "Press", "Wash")
    own.step()
    assert plant.told == [("a", "AGV-1")] and own.dispatcher.waiting == ("b",)
    plant.orders["a"]["state"] = "FAILED"
    plant.vehicles["AGV-1"].update(transportOrder=None, state="IDLE")
    own.step()
    assert plant.told == [("a", "AGV-1"), ("b", "AGV-1")]
    out = [("VehicleOutOfService", False), ("VehicleBack", None)]
    assert read_kinds(log, "AGV-1") == [*GIVEN_UP, *out, ("Assigned", None)]


@pytest.mark.parametrize(
    "taken",
    [{"integrationLevel": "TO_BE_RESPECTED"}, {"paused": True}, {"currentPosition": None}]
    + [{"state": state} for state in ("UNKNOWN", "UNAVAILABLE", "ERROR")],
    ids=lambda taken: "-".join(map(str, *taken.items())),
)
def test_a_vehicle_that_is_taken_out(plant, taken, tmp_path):
    """In manual mode, lost, in error: an order that it has not begun is another one's, by itself."""
    log = tmp_path / "log.jsonl"
    add_orders(plant, 2)
    own = make_bridge(plant, audit=log)
    plant.dispatch = lambda: None  # the kernel gives it to nobody yet
    own.step()
    first, second = own.dispatcher.under_way.items()
    plant.orders[second[0]].update(state="BEING_PROCESSED", processingVehicle=second[1])
    plant.vehicles[second[1]].update(state="EXECUTING", transportOrder=second[0])
    for _, vehicle in (first, second):
        plant.vehicles[vehicle].update(taken)
    answer = plant.answer
    plant.answer = lambda method, *rest: (503, []) if method == "PUT" else answer(method, *rest)
    with pytest.raises(bridge.UnreachableError):  # the kernel is not told at first
        own.step()
    plant.answer = answer
    own.step()
    (third,) = {*plant.vehicles} - {first[1], second[1]}
    assert own.dispatcher.under_way == {first[0]: third, second[0]: second[1]}
    assert plant.orders[first[0]]["intendedVehicle"] == third
    plant.vehicles[third].update(taken)
    own.step()
    assert own.dispatcher.waiting == (first[0],)
    assert plant.orders[first[0]]["intendedVehicle"] == "Nobody"
    # The order that was begun fails.
    plant.orders[second[0]]["state"] = "FAILED"
    own.step()
    assert not own.dispatcher.under_way and not own.dispatcher.idle
    given, out = ("Assigned", None), "VehicleOutOfService"
    assert read_kinds(log, first[1]) == [given, (out, True)]
    assert read_kinds(log, second[1]) == [given, (out, False), ("VehicleIdle", False)]


def test_an_order_by_hand_stays_with_a_vehicle_that_is_taken_out(plant):
    plant.dispatch = lambda: None
    plant.add("a", "Press", "Wash", intended="AGV-1")
    own = make_bridge(plant)
    own.step()
    assert own.dispatcher.under_way == {"a": "AGV-1"}
    plant.vehicles["AGV-1"]["paused"] = True
    own.step()
    assert not own.dispatcher.under_way and not own.dispatcher.waiting
    plant.vehicles["AGV-1"]["paused"] = False
    own.step()
    assert own.dispatcher.under_way == {"a": "AGV-1"} and not plant.told


@pytest.mark.parametrize("overdue", [2.0, 5.0])
@pytest.mark.parametrize("intended", ["Nobody", "AGV-1"])
def test_an_order_that_is_overdue_is_named_once(plant, overdue, intended, monkeypatch, capsys):
    """A pick that failed in silence: the kernel holds the order for processed, for ever."""
    clock = [0.0]
    monkeypatch.setattr(bridge.time, "monotonic", lambda: clock[0])
    plant.add("a", "Press", "Wash", intended=intended)
    own = make_bridge(plant)
    own.overdue = overdue
    own.step()
    ((_, vehicle),) = own.dispatcher.under_way.items()
    (seen,) = own.dispatcher.forecast(0.0, history=())
    plant.dispatch()
    early = overdue * (seen.delivery - 1.0) + 300.0  # a delivery is at a whole second
    for clock[0], n in ((early, 0), (early + overdue, 1), (2e4, 0)):
        own.step()
        said = f"a is overdue: BEING_PROCESSED; {vehicle}: EXECUTING, a, Park-"
        assert capsys.readouterr().out.count(said) == n


def test_a_refused_order_is_left_to_the_kernel(plant, capsys):
    plant.add("a", "Press", "Wash")
    own = make_bridge(plant)
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
    with serve(plant) as plant.url:
        port = urlsplit(plant.url).port
    stack = contextlib.ExitStack()
    own = make_bridge(plant)
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


def test_what_cannot_go_on_ends_with_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data, _ = read_floor(HALL)
    (tmp_path / "floor.json").write_text(json.dumps(data))
    late = acerl_np.IndexPolicy([-1.0], features=("approach",), commitment="pickup")
    late.save("late.npz")
    others = [{**vehicle, "id": f"v{k}"} for k, vehicle in enumerate(data["vehicles"][:2], 1)]
    (tmp_path / "other.json").write_text(json.dumps({**data, "vehicles": others}))
    one = "expected one of the kernel's vehicles"
    usual = "floor.json EDD"
    for words, message in [
        (usual, "HTTP 403 ; expected the kernel's access key in OPENTCS_ACCESS_KEY"),
        (f"{usual} --overdue nan", "--overdue: read nan; expected a factor from 1 on"),
        (f"{usual} --audit floor.json", "--audit: floor.json exists; expected a new file"),
        (f"{usual} --url {{url}}/nowhere", "GET {url}/nowhere/vehicles: HTTP 404"),
        (f"{usual} --hold Somebody", f"--hold: read Somebody; {one}"),
        (f"{usual} --hold AGV-2", f"--hold: read AGV-2; {one} that is"),
        ("other.json EDD", "vehicles v1, v2: unknown to the kernel; expected some of AGV-1, AGV-2"),
        ("floor.json late.npz", "late.npz: commitment 'pickup', by which vehicles are called back"),
    ]:
        with serve(Plant()) as url:
            given = f"bridge --url {{url}} --hold Nobody {words}".format(url=url).split()
            monkeypatch.setattr(sys, "argv", given)
            with pytest.raises(SystemExit) as ended:
                bridge.main()
        said = capsys.readouterr()
        assert ended.value.code == 2 and said.err.count("\n") == 1
        assert said.err.startswith("opentcs_bridge: error: ")
        assert message.format(url=url) in said.err
        monkeypatch.setenv("OPENTCS_ACCESS_KEY", KEY)
