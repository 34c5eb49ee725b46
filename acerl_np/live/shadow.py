"""In the shadow of a plant's own control: what it decides is followed, and compared with the policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from acerl_np.kernels.core import state as S
from acerl_np.live import events, parts, rounds
from acerl_np.live.decision import LiveDecider
from acerl_np.live.desk import Desk
from acerl_np.live.orders import AWAY, FOLLOWED, QUEUED
from acerl_np.problem.layout import find_sites
from acerl_np.support.errors import EventError

TAKEN, LEFT = "taken", "left"
"""What becomes of an order of the plant, besides QUEUED and AWAY: its vehicle does it; nothing."""


class Compared(NamedTuple):
    """An order of the plant, and what the policy would have decided.

    Attributes
    ----------
    vehicle : str
    task, site : str or None
        What the vehicle was given, or where it was sent.
    policy : list of list of str
        Vehicle, and task or site, of each order that the policy would have given at that moment.
    agrees : bool
        Whether this order is one of them.
    then : str
        "taken"; "queued" (the vehicle has another task, and does it first; it is compared when it is taken);
        "away" (the vehicle is out of service until `VehicleIdle`, and a task that is known is withdrawn); or
        "left".
    why : str
        Why the order is impossible to the model; "" where it is not.
    """

    vehicle: str
    task: str | None
    site: str | None
    policy: list[list[str]]
    agrees: bool
    then: str
    why: str


def follow(
    desk: Desk, decider: LiveDecider, now: float, vehicle: str, task: str | None, site: str | None
) -> Compared | None:
    """Take an order of the plant as far as can be, as `Dispatcher.follow`; None for one that is known."""
    now = desk.move_to(now, "follow")
    layout = desk.floor.layout
    meant = find_sites(layout, site) if isinstance(site, str) else ()
    site = layout.sites[meant[0]].id if len(meant) == 1 else site
    own, queued = desk.floor.fleet.get(vehicle), desk.orders.followed.queued
    if task is not None and ((own and own.task == task) or (vehicle, task) in queued):
        return None
    works, why = own is not None and own.status == S.WORKING, ""
    policy = [] if works else consider(desk, decider, now)
    try:
        _order(desk, now, vehicle, task, site)
        then = TAKEN
    except EventError as error:
        why = str(error).partition(" s: ")[2]
        then = _settle(desk, now, vehicle, task, site)
    agrees = [vehicle, task or site] in policy
    found = Compared(vehicle, task, site, policy, agrees, then, why)
    line = {"time": now, **found._asdict()}
    desk.orders.followed = desk.orders.followed.add(line)
    desk.note(FOLLOWED, **line)
    return found


def consider(desk: Desk, decider: LiveDecider, now: float) -> list[list[str]]:
    """Return what the policy would order now; nothing is changed."""
    kept, log = (vars(desk.orders).copy(), desk.feed.mark()), desk.log
    desk.log = None
    try:
        return [[order[0], order[1]] for order in rounds.decide(desk, decider, now)]
    finally:
        desk.log = log
        desk.go_back(*kept, None)


def _order(desk: Desk, now: float, vehicle: str, task: str | None, site: str | None) -> None:
    if task is not None:
        desk.assign_by_hand(now, vehicle, task)
    else:
        desk.send_by_hand(now, vehicle, str(site))


def _settle(desk: Desk, now: float, vehicle: str, task: str | None, site: str | None) -> str:
    """Make an impossible order possible by events that the plant has not told; return what becomes of it."""
    floor = desk.floor
    own, known = floor.fleet.get(vehicle), None
    if own is None or (own.status == S.WORKING and task is None):
        return LEFT
    if own.status == S.WORKING:
        return QUEUED
    if own.service != parts.SERVING:
        _tell(desk, events.VehicleBack(now, vehicle))
    if own.status == S.BROKEN:
        _tell(desk, events.VehicleRepaired(now, vehicle))
        if own.task is not None:  # it goes on with its load
            return QUEUED
    if task is not None:  # else it is sent
        known = floor.tasks.get(task) or floor.planned.get(task)
    if known is not None and known.vehicle >= 0 and floor.vehicles[known.vehicle].is_stranded:
        _tell(desk, events.TaskMoved(now, known.event.task, known.event.pickup))
    elif known is not None and known.vehicle >= 0:
        other, place = floor.layout.vehicles[known.vehicle].id, floor.vehicles[known.vehicle].site
        gone = events.VehicleIdle(now, other, floor.layout.sites[place].id, delivered=False)
        _tell(desk, gone)
    elif task in floor.planned and floor.has_chains:
        _tell(desk, events.TaskReady(now, task))
    elif known is not None and task in floor.planned:  # begun before its earliest start
        _tell(desk, events.TaskCancelled(now, task))
        left = max(0.0, known.due - now)
        _tell(desk, replace(known.event, time=now, expiry=left, earliest_start=None))
    try:
        _order(desk, now, vehicle, task, site)
    except EventError:
        if task is None:
            return LEFT
        if task in floor.pool or task in floor.planned:
            _tell(desk, events.TaskCancelled(now, task))
        # What is told twice of one moment is ignored: it may be out of service as before, or serve.
        if floor.fleet[vehicle].service == parts.SERVING:
            _tell(desk, events.VehicleOutOfService(now, vehicle))
        return AWAY if floor.fleet[vehicle].service == parts.OUT else LEFT
    return TAKEN


def _tell(desk: Desk, event: events.Event) -> None:
    desk.take(event, hold=False, number=None)


def take(desk: Desk, decider: LiveDecider, event: Any, *, hold: bool, number: int | None) -> None:
    """Take in an event where orders of the plant are queued, or vehicles do what the model cannot know."""
    is_idle = desk.feed.is_new(number) and isinstance(event, events.VehicleIdle)
    if is_idle and event.vehicle in desk.orders.followed.away:
        event, is_idle = events.VehicleBack(event.time, event.vehicle, event.site), False
    try:
        desk.take(event, hold=hold, number=number)
    except EventError:
        if not (is_idle and _has_next(desk, event)):
            raise
        # Of the delivery before nothing was told.
        task = desk.floor.tasks[str(desk.floor.fleet[event.vehicle].task)]
        _tell(desk, events.VehicleIdle(event.time, event.vehicle, task.event.delivery))
        follow_queued(desk, decider)
        take(desk, decider, event, hold=hold, number=number)
    follow_queued(desk, decider)


def _has_next(desk: Desk, event: Any) -> bool:
    """Whether a vehicle stands where the task that is queued behind its own goes, as far as is known."""
    queued = [task for vehicle, task in desk.orders.followed.queued if vehicle == event.vehicle]
    if not queued or not event.delivered:
        return False
    floor, own = desk.floor, desk.floor.fleet.get(event.vehicle)
    if own is None or own.task is None:
        return False
    after = floor.tasks.get(queued[0])
    at = {*find_sites(floor.layout, event.site)} if isinstance(event.site, str) else set()
    return bool(at) and (
        after is None or not at.isdisjoint(find_sites(floor.layout, after.event.delivery))
    )


def follow_queued(desk: Desk, decider: LiveDecider) -> None:
    """Take the orders that were queued of vehicles that have ended what they did."""
    for vehicle, task in desk.orders.followed.queued:
        own, followed = desk.floor.fleet.get(vehicle), desk.orders.followed
        is_busy = own is not None and own.task is not None
        if not is_busy and vehicle not in followed.away:
            desk.orders.followed = followed.drop(vehicle, task)
            follow(desk, decider, desk.feed.time, vehicle, task, None)
