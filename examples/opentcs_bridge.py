"""The dispatcher beside an openTCS kernel, by its web API: transport orders in, intended vehicles out.

Tried against a small stand-in with this API in the project's tests, whose answers have the forms that
openTCS has published, not against a kernel. What it uses of version 1, in kernels from 5.10 on: GET /vehicles
and /transportOrders, each round; GET /events, to wait until something happens;
PUT /transportOrders/NAME/intendedVehicle, the decision; POST /transportOrders/dispatcher/trigger, after it.
Before 6.7 a kernel does not tell when orders were created and are due: they count from when they are seen.

A kernel gives an order that is intended for nobody to a vehicle of its own choice, at once. So that orders
wait for the dispatcher, create them for a vehicle of the model that never works (integration level
TO_BE_IGNORED), and name that by --hold. Orders for another vehicle keep it, those for nobody stay its own.

The floor is the plant model after `acerl-np floor import`, its vehicles with their names. An order has two
destinations, pickup and delivery. Others, those of a sequence, and dispensable ones stay the kernel's. No
task goes to a vehicle that is paused, in error, of unknown position, not TO_BE_UTILIZED, or busy for the
kernel.

Parking and charging stay the kernel's, too (defaultdispatcher.parkIdleVehicles, .rechargeIdleVehicles). The
dispatcher is told of levels and charging where the layout has batteries. It calls no vehicle back: an order
that is withdrawn has failed, for the kernel and for whoever created it. A policy that does is refused.

An order that has failed, was withdrawn, or is gone has ended: its vehicle is idle without a delivery, once
it is done with what the kernel had sent it. Nobody else gets that order, as it has ended for the kernel, too.
A vehicle that is taken out finishes what it does; an order that it has not begun waits for another one.
An order that takes --overdue times as long as reckoned, and five minutes, is named once: a pick that failed,
a vehicle that the kernel has lost, an order that the kernel gives to nobody. Somebody has to look.

The bridge keeps nothing that a restart needs: each round compares what the kernel says with what the
dispatcher believes, so it may be stopped and started at any time. A kernel that does not answer is asked
again, after 1 s to 30 s. Its access key, if it has one, stands in the environment as OPENTCS_ACCESS_KEY.

    python examples/opentcs_bridge.py floor.json EDD --hold Nobody [--url URL] [--due S]
        [--overdue FACTOR] [--audit NEW.jsonl]
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import acerl_np

PATIENCE = 15.0
"""s to wait for an answer."""
WAIT, LONGEST_PAUSE = 1.0, 30.0
"""s between two rounds in which nothing happens, and between two attempts to reach the kernel, at most."""
GRACE = 300.0
"""s that an order may take beside its multiple of the reckoned time, as people help vehicles."""
MOST_SECONDS = 1e9
"""A task may be due so late at the most."""

READY = {"IDLE", "EXECUTING", "CHARGING"}

Item = dict[str, Any]
"""An order or a vehicle, as the kernel describes it."""


class UnreachableError(Exception):
    """The kernel does not answer, or not now."""


class RefusedError(Exception):
    """The kernel answers that it will not."""


class Kernel:
    """An openTCS kernel, by its web API."""

    def __init__(self, url: str, key: str = "") -> None:
        self.url = url.rstrip("/")
        self._headers = {"X-Api-Access-Key": key} if key else {}
        self._next = 0

    def ask(self, method: str, path: str, **query: Any) -> Any:
        """Return the answer to a request, None if it is empty."""
        asked = f"{self.url}/{path}" + (f"?{urlencode(query)}" if query else "")
        request = Request(asked, method=method, headers=self._headers)
        try:
            with urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
            return json.loads(text) if text else None
        except HTTPError as error:
            said = " ".join(error.read(1000).decode(errors="replace").split())
            line = f"{method} {asked}: HTTP {error.code} {said}"
            if error.code in (401, 403):
                fail(f"{line}; expected the kernel's access key in OPENTCS_ACCESS_KEY")
            raise (RefusedError if error.code < 500 else UnreachableError)(line) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._next = 0  # a kernel that was started anew counts anew
            raise UnreachableError(f"{method} {asked}: {error}") from error

    def list(self, path: str) -> dict[str, Item]:
        """Return all orders or vehicles by their names."""
        found = self.ask("GET", path)
        if not isinstance(found, list):
            fail(
                f"GET {self.url}/{path}: read {str(found)[:60]}; expected an openTCS kernel's list"
            )
        return {item["name"]: item for item in found}

    def wait(self) -> None:
        """Return when something has happened, or after a while."""
        found = self.ask("GET", "events", minSequenceNo=self._next, timeout=int(1000 * WAIT))
        for item in found["statusMessages"]:
            self._next = max(self._next, item["sequenceNumber"] + 1)


class Bridge:
    """A dispatcher that follows a kernel, and a kernel that follows the dispatcher."""

    def __init__(
        self,
        dispatcher: acerl_np.Dispatcher,
        kernel: Kernel,
        hold: str,
        due: float = 1800.0,
        overdue: float = 2.0,
    ) -> None:
        self.dispatcher, self.kernel, self.hold, self.due = dispatcher, kernel, hold, due
        self.overdue = overdue
        self._began = time.monotonic()
        self._out: set[str] = set()
        """Vehicles that get no tasks."""
        self._left: set[str] = set()
        """Orders that stay the kernel's."""
        self._given: dict[str, str] = {}
        """For whom the kernel was told that an order is intended."""
        self._late: dict[str, float] = {}
        """When an order under way is overdue."""
        self._charging: set[str] = set()
        self._levels: dict[str, int] = {}
        """In percent, as they were told last."""
        self._is_checked = False

    def step(self) -> None:
        """Bring the dispatcher up to what the kernel says, and tell the kernel what it decides."""
        vehicles, orders = self.kernel.list("vehicles"), self.kernel.list("transportOrders")
        if not self._is_checked:
            self._check(vehicles)
        now = time.monotonic() - self._began
        self._given = {task: vehicle for task, vehicle in self._given.items() if task in orders}
        self._end_tasks(now, orders)
        self._place_vehicles(now, vehicles, orders)
        self._take_orders(now, orders)
        for order in self.dispatcher.decide(now):
            if isinstance(order, acerl_np.Assignment):
                say(f"{order.vehicle} takes {order.task} by {order.rule}")
                self._reckon(now, order)
        self._tell(now, orders)
        self._name_overdue(now, vehicles, orders)

    def _check(self, vehicles: dict[str, Item]) -> None:
        """End if kernel, layout and --hold do not fit together."""
        own = [vehicle.id for vehicle in self.dispatcher.layout.vehicles]
        if strange := [name for name in own if name not in vehicles]:
            fail(
                f"the layout's vehicles {', '.join(strange)}: unknown to the kernel; expected some of "
                f"{', '.join(vehicles)} (acerl-np floor import keeps names, without --vehicles)"
            )
        if self.hold not in vehicles or vehicles[self.hold]["integrationLevel"] == "TO_BE_UTILIZED":
            fail(
                f"--hold: read {self.hold}; expected one of the kernel's vehicles that is TO_BE_IGNORED"
            )
        if others := [name for name in vehicles if name not in (*own, self.hold)]:
            say(f"{', '.join(others)} not in the layout: left to the kernel")
        self._is_checked = True

    def _end_tasks(self, now: float, orders: dict[str, Item]) -> None:
        """End tasks that are delivered, and those of which the kernel says otherwise than is believed."""
        for task, vehicle in self.dispatcher.under_way.items():
            order = orders.get(task, {"state": "gone"})
            if order["state"] == "FINISHED":
                end = self._name(list_ends(order)[-1])
                site = self.dispatcher.layout.stations.get(end, (end,))[0]
                self.dispatcher.feed(acerl_np.VehicleIdle(now, vehicle, site))
            elif find_vehicle(order) != vehicle and not self._is_held(task, order):
                self._drop(now, task, vehicle)
                say(f"{task} is taken off {vehicle}: {order['state']}")
        for task in self.dispatcher.waiting:
            if not self._is_held(task, orders.get(task, {"state": "gone"})):
                self.dispatcher.feed(acerl_np.TaskCancelled(now, task))

    def _is_held(self, task: str, order: Item) -> bool:
        """Return whether the kernel waits for a decision, or for what comes after one that is void."""
        held = self.hold, self._given.get(task, self.hold)
        return order["state"] == "DISPATCHABLE" and find_vehicle(order) in held

    def _drop(self, now: float, task: str, vehicle: str) -> None:
        """Forget a task; its vehicle has not delivered it, wherever it has got to."""
        site = self.dispatcher.sites[vehicle]
        self.dispatcher.feed(acerl_np.VehicleIdle(now, vehicle, site, delivered=False))
        self.dispatcher.feed(acerl_np.TaskCancelled(now, task))

    def _place_vehicles(
        self, now: float, vehicles: dict[str, Item], orders: dict[str, Item]
    ) -> None:
        """Tell where vehicles are, and which may be given tasks."""
        for name, before in self.dispatcher.sites.items():
            item = vehicles.get(name, {})
            site = self._name(item.get("currentPosition"))
            order = orders.get(item.get("transportOrder") or "")
            is_known = site in self.dispatcher.layout.site_index
            self._tell_battery(now, name, item, before, site)
            if is_known and site != before:
                self.dispatcher.feed(acerl_np.VehiclePassed(now, name, site))
            is_out = (
                not is_known
                or item["integrationLevel"] != "TO_BE_UTILIZED"
                or item["paused"]
                or item["state"] not in READY
                or (order is not None and not order["dispensable"] and not self._is_ours(order))
                or (order is not None and order["state"] == "WITHDRAWN")  # not done with it yet
            )
            if is_out != (name in self._out):
                if is_out:
                    self._take_out(now, name, orders)
                else:
                    self.dispatcher.feed(acerl_np.VehicleBack(now, name))
                self._out ^= {name}
                facts = [item.get(key) for key in ("state", "integrationLevel", "currentPosition")]
                say(f"{name} gets {'no ' * is_out}tasks: {', '.join(map(str, facts))}")

    def _take_out(self, now: float, vehicle: str, orders: dict[str, Item]) -> None:
        """Give a vehicle no more tasks; an order that it has not begun is for another one."""
        own = [task for task, other in self.dispatcher.under_way.items() if other == vehicle]
        waiting = [task for task in own if orders[task]["state"] == "DISPATCHABLE"]
        self.dispatcher.feed(acerl_np.VehicleOutOfService(now, vehicle, at_once=bool(waiting)))
        for task in waiting:
            if not self._is_held(task, orders[task]):  # somebody else has chosen this vehicle
                self.dispatcher.feed(acerl_np.TaskCancelled(now, task))

    def _tell_battery(self, now: float, name: str, item: Item, before: str, site: str) -> None:
        """Tell whether a vehicle charges, and its level, if the layout knows its battery."""
        layout, level = self.dispatcher.layout, item.get("energyLevel")
        battery = dict(zip(self.dispatcher.sites, layout.batteries, strict=True))[name]
        if battery is None or level is None:
            return
        if name in self.dispatcher.under_way.values():
            self._charging.discard(name)
        else:
            is_charging = item["state"] == "CHARGING" and site in [x.site for x in layout.chargers]
            if is_charging != (name in self._charging):
                place = site if is_charging else before
                self.dispatcher.feed(acerl_np.VehicleCharging(now, name, place, is_charging))
                self._charging ^= {name}
        if level != self._levels.get(name):
            amount = battery.capacity * level / 100.0
            self.dispatcher.feed(acerl_np.VehicleLevel(now, name, amount))
            self._levels[name] = level

    def _name(self, name: str | None) -> str:
        """Return what the layout calls a point or location of the plant model."""
        return self.dispatcher.layout.aliases.get(name or "", name or "")

    def _is_ours(self, order: Item) -> bool:
        """Return whether an order is the dispatcher's business."""
        is_plain = not order["dispensable"] and not order["wrappingSequence"]
        is_left = order["name"] in self._left or order["intendedVehicle"] is None
        return is_plain and not is_left and len(list_ends(order)) == 2

    def _take_orders(self, now: float, orders: dict[str, Item]) -> None:
        """Take in new orders, with the vehicles that they have already."""
        known = {*self.dispatcher.under_way, *self.dispatcher.waiting}
        for order in sorted(orders.values(), key=lambda order: order.get("creationTime", "")):
            name, vehicle = order["name"], find_vehicle(order)
            is_free = vehicle == self.hold or vehicle in self.dispatcher.idle
            if name in known or not is_free or not self._is_ours(order):
                continue  # at least until its vehicle is free
            (pickup, delivery), expiry = list_ends(order), find_expiry(order, self.due)
            try:
                self.dispatcher.feed(acerl_np.TaskArrived(now, name, pickup, delivery, expiry))
            except acerl_np.EventError as error:
                self._leave(name, error)
                continue
            if vehicle is not None and vehicle != self.hold:
                self._reckon(now, self.dispatcher.assign(now, vehicle, name))

    def _leave(self, name: str, error: Exception) -> None:
        self._left.add(name)
        say(f"{name} is left to the kernel: {error}")

    def _tell(self, now: float, orders: dict[str, Item]) -> None:
        """Tell the kernel of the decisions that it does not know; again if an answer was lost."""
        under_way = self.dispatcher.under_way
        wanted = dict.fromkeys(self.dispatcher.waiting, self.hold) | under_way
        news = [task for task in wanted if find_vehicle(orders[task]) != wanted[task]]
        for task in news:
            path = f"transportOrders/{quote(task, safe='')}/intendedVehicle"
            try:
                self.kernel.ask("PUT", path, vehicle=wanted[task])
                self._given[task] = wanted[task]
            except RefusedError as error:
                self._leave(task, error)
                if task in under_way:
                    self._drop(now, task, under_way[task])
        if news:
            self.kernel.ask("POST", "transportOrders/dispatcher/trigger")

    def _reckon(self, now: float, order: acerl_np.Assignment) -> None:
        """Note from when on an order is overdue."""
        self._late[order.task] = now + self.overdue * (order.finish - now) + GRACE

    def _name_overdue(self, now: float, vehicles: dict[str, Item], orders: dict[str, Item]) -> None:
        """Say once of each order that it should have ended long ago."""
        under_way = self.dispatcher.under_way
        for task, late in list(self._late.items()):
            if task not in under_way:
                del self._late[task]
            elif now >= late:
                self._late[task] = math.inf
                item = vehicles.get(under_way[task], {})
                facts = [item.get(key) for key in ("state", "transportOrder", "currentPosition")]
                say(
                    f"{task} is overdue: {orders[task]['state']}; {under_way[task]}: "
                    f"{', '.join(map(str, facts))}"
                )


def find_vehicle(order: Item) -> str | None:
    """Return the vehicle that has an order, or for which it waits; None if it has ended or has none."""
    if order["state"] not in ("DISPATCHABLE", "BEING_PROCESSED"):
        return None
    vehicle: str | None = order["processingVehicle"] or order["intendedVehicle"]
    return vehicle


def list_ends(order: Item) -> list[str]:
    """Return the locations or points to which an order leads."""
    if "driveOrders" not in order:  # before 6.7
        return [item["locationName"] for item in order["destinations"]]
    return [item["destination"]["destination"] for item in order["driveOrders"]]


def find_expiry(order: Item, due: float) -> float:
    """Return in how many s an order is due: at its deadline, else `due` s after it was created."""
    if "creationTime" not in order:  # before 6.7
        return due
    now = datetime.now(UTC)
    left = due - (now - datetime.fromisoformat(order["creationTime"])).total_seconds()
    with suppress(ValueError):  # the deadline of an order without one lies beyond all dates
        left = (datetime.fromisoformat(order["deadline"]) - now).total_seconds()
    return min(max(0.0, left), MOST_SECONDS)


def run(bridge: Bridge) -> NoReturn:
    """Follow the kernel for ever, also after it has been away."""
    pause = 0.0
    while True:
        try:
            bridge.step()
            if pause:
                say("the kernel answers again")
            pause = 0.0
            bridge.kernel.wait()
        except UnreachableError as error:
            if not pause:
                say(f"{error}; asking again")
            pause = min(LONGEST_PAUSE, 2.0 * pause or 1.0)
            time.sleep(pause)


def say(line: str) -> None:
    """Print a line of the log."""
    print(f"{datetime.now():%H:%M:%S} {line}", flush=True)


def fail(line: str) -> NoReturn:
    """End with a line."""
    print(f"opentcs_bridge: error: {line}", file=sys.stderr)
    sys.exit(2)


def main() -> None:
    """Run the bridge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layout", help="the plant model, imported")
    parser.add_argument("policy", help="a rule's name or a policy's file")
    parser.add_argument("--url", default="http://localhost:55200/v1")
    parser.add_argument("--hold", required=True, help="the vehicle whose orders are to be decided")
    parser.add_argument("--due", type=float, default=1800.0, help="s, without a deadline")
    parser.add_argument("--overdue", type=float, default=2.0, help="times as long as reckoned")
    parser.add_argument("--audit", help="a new file for the dispatcher's log")
    words = parser.parse_args()
    if not 1.0 <= words.overdue < math.inf:
        fail(f"--overdue: read {words.overdue:g}; expected a factor from 1 on")
    if words.audit and Path(words.audit).exists():
        fail(f"--audit: {words.audit} exists; expected a new file, as each start begins a log")
    try:
        is_file = words.policy.endswith(".npz")
        policy = acerl_np.load_policy(words.policy) if is_file else words.policy
        if not isinstance(policy, str) and policy.commitment == "pickup":
            fail(
                f"{words.policy}: commitment 'pickup', by which vehicles are called back; expected "
                "'assignment', as a kernel gives a withdrawn order to nobody else"
            )
        dispatcher = acerl_np.Dispatcher(
            words.layout, policy, audit=words.audit, parks=False, charges=False
        )
        kernel = Kernel(words.url, os.environ.get("OPENTCS_ACCESS_KEY", ""))
        run(Bridge(dispatcher, kernel, words.hold, words.due, words.overdue))
    except (acerl_np.AcerlError, RefusedError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
