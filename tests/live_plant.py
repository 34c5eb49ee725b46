"""A service in a thread, and a simulated plant that speaks to one over HTTP."""

import heapq
import http.client
import io
import json
import random
import threading
from contextlib import contextmanager
from itertools import count

import pytest

import acerl_np
from acerl_np.live.service import Service
from acerl_np.live.worker import Worker
from acerl_np.pictures.replay import describe_floor, make_live_page


def give_input(*texts):
    """Return a standard input that ends after some texts."""
    data = "".join(texts).encode()
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))


LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})
PAGE = *make_live_page(), describe_floor


@contextmanager
def serving(log, layout=LAYOUT, *, wall=False, start=0.0, policy="nearest", **how):
    """A server in a thread; gives what asks it: method, path, body, headers -> status, text."""
    pytest.importorskip("uvicorn", reason="needs the extra serve")
    from acerl_np.live.web import Page, make_server, open_door

    if "page" in how:
        how["page"] = Page(*how["page"])
    make = acerl_np.Dispatcher.recover if log.exists() else acerl_np.Dispatcher
    dispatcher = make(layout, policy, audit=log, start=start)
    worker = Worker(Service(dispatcher, ahead=5.0 if wall else None), wall=wall)
    server = make_server(worker, "127.0.0.1", **how)
    with dispatcher, worker, open_door(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()

        def ask(method, path, body=None, **headers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)
            try:
                named = {key.replace("_", "-"): x for key, x in headers.items()}
                connection.request(method, path, body, named)
                answer = connection.getresponse()
                ask.headers = answer.headers
                return answer.status, answer.read().decode()
            finally:
                connection.close()

        ask.port, ask.server, ask.thread, ask.worker = port, server, thread, worker
        ask.url = f"http://127.0.0.1:{port}/"
        try:
            yield ask
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def listening(ask, path="/orders", **headers):
    """Give what reads the data of a stream's next event, or of the next of a name; `events` are all names."""
    connection = http.client.HTTPConnection("127.0.0.1", ask.port, timeout=10.0)
    connection.request("GET", path, headers={k.replace("_", "-"): x for k, x in headers.items()})
    stream = connection.getresponse()

    def read(event=b""):
        line, found = b"", not event
        while not (line.startswith(b"data: ") and found):
            line = stream.readline()
            if line.startswith(b"event: "):
                read.events.append(line[7:-1].decode())
                found |= line[7:-1] == event
        return json.loads(line.removeprefix(b"data: "))

    read.status, read.line, read.events = stream.status, stream.readline, []
    try:
        yield read
    finally:
        connection.close()


def tell(service, now=0.0, **message):
    """Return the answers of a service to a message."""
    return list(service.answer(json.dumps(message), now))


def arrive(name, now=0.0, **more):
    """Return the message of a task that arrives."""
    own = {"kind": "TaskArrived", "time": now, "task": name, "pickup": "st1", "delivery": "st5"}
    return {**own, "expiry": 400.0, **more}


def arrive_numbered(number, now=0.0, **more):
    """Return that of a task called by the message's number."""
    return {**arrive(f"t{number}", now, **more), "number": number}


class Plant:
    """Tasks between random stations, one every `every` seconds; vehicles pass each site of their ways."""

    def __init__(self, layout, port, *, every=20.0, expiry=400.0, start=0.0, seed=0, token=""):
        self.layout, self.port, self.every, self.expiry = layout, port, every, expiry
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.draw, self.now, self.numbers = random.Random(seed), start, count(1)
        self.stations = [site.id for site in layout.sites if site.kind == "station"]
        self.stations = self.stations or [site.id for site in layout.sites]
        self.at = {vehicle.id: vehicle.start for vehicle in layout.vehicles}
        self.ends, self.done, self.last = {}, set(), None
        self.coming = []
        self._add(start, {"kind": "TaskArrived"})

    def _add(self, time, message):
        heapq.heappush(self.coming, (time, next(self.numbers), message))

    def tell(self, *messages):
        """Post messages in one request; return the answers."""
        body = "".join(json.dumps(message) + "\n" for message in messages)
        return [json.loads(line) for line in self._send("POST", "/events", body).splitlines()]

    def ask(self, path):
        """Return what is at a path."""
        return json.loads(self._send("GET", path))

    def _send(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20.0)
        try:
            connection.request(method, path, body, self.headers)
            return connection.getresponse().read()
        finally:
            connection.close()

    def arrive(self, number):
        """Return the message of a new task, and plan the next one."""
        pickup, delivery = self.draw.sample(self.stations, 2)
        name = f"t{number}"
        self.ends[name] = pickup, delivery
        self._add(self.now + self.draw.expovariate(1 / self.every), {"kind": "TaskArrived"})
        own = {"kind": "TaskArrived", "task": name, "pickup": pickup, "delivery": delivery}
        return {**own, "expiry": self.expiry}

    def drive(self, order):
        """Plan what a vehicle does that has a task: it is at each site of its way, and delivers."""
        vehicle, time, routes = order["vehicle"], self.now, self.layout.routes
        index, site = self.layout.site_index, self.layout.site_index[self.at[order["vehicle"]]]
        pickup, delivery = (index[name] for name in self.ends[order["task"]])
        for goal in (pickup, delivery):
            if site == goal:
                self._add(time, {"kind": "VehiclePassed", "vehicle": vehicle, "site": goal})
            while site != goal:
                following = int(routes.next_site[site, goal])
                time += float(routes.edge_length[site, following])
                site = following
                self._add(time, {"kind": "VehiclePassed", "vehicle": vehicle, "site": site})
        self._add(time + 5.0, {"kind": "VehicleIdle", "vehicle": vehicle, "site": delivery})
        self.at[vehicle] = self.layout.sites[delivery].id

    def step(self):
        """Let the next thing happen, and tell it; return its time."""
        self.now, number, message = heapq.heappop(self.coming)
        if message["kind"] == "TaskArrived":
            message = self.arrive(number)
        if isinstance(site := message.get("site"), int):
            message["site"] = self.layout.sites[site].id
        own = {"time": self.now, "number": number}
        answers = self.tell({**message, **own}, {"kind": "Decide", "time": self.now})
        for order in answers:
            if order["kind"] == "Assigned" and order["number"] not in self.done:
                self.done.add(order["number"])
                self.last = order
                self.drive(order)
        return self.now

    def run(self, until):
        """Let things happen until a moment."""
        while self.coming[0][0] <= until:
            self.step()
        self.now = until


def make_fleet(name, n):
    """Return a bundled floor with so many vehicles, which never break down."""
    data = acerl_np.load_layout(name).with_breakdowns({}).to_dict()
    starts = [site["id"] for site in data["sites"]]
    data["vehicles"] = [
        {"id": f"v{k}", "start": starts[k % len(starts)], "speed": 1.0} for k in range(n)
    ]
    return acerl_np.Layout.from_dict(data)
