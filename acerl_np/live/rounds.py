"""What one question decides: who takes which task, and who goes to charge or to park."""

from __future__ import annotations

import math
from collections.abc import Collection

from acerl_np.kernels.core import state as S
from acerl_np.live.decision import LiveDecider
from acerl_np.live.desk import Desk
from acerl_np.live.events import Order
from acerl_np.live.floor import Floor
from acerl_np.policies.agent import OwnPolicy
from acerl_np.policies.lookahead import Lookahead


def warm_up(floor: Floor, decider: LiveDecider) -> None:
    """Compile or load the kernels now, not at the first decision.

    Parameters
    ----------
    floor : Floor
        Is as it was afterwards.
    decider : LiveDecider
        Whose kernels are meant.
    """
    policy = decider.policy
    if isinstance(policy, OwnPolicy):  # which is asked about no task that is none
        decider.show(floor, 0.0).pairs()
    elif not isinstance(policy, Lookahead):
        before = floor.snapshot()
        floor.try_task()
        found = decider.decide(floor, 0, 0.0)
        if found.vehicle >= 0:
            decider.explain(floor, found, 0.0)
            floor.carry(found.vehicle, found.position, 0.0)
        floor.restore(before)
    decider.tell(floor, 0.0)
    floor.warm_up()
    if isinstance(policy, Lookahead):
        decider.decide(floor, 0, floor.day.start)


def decide(
    desk: Desk, decider: LiveDecider, now: float, without: Collection[str] = ()
) -> list[Order]:
    """Return the orders of a question, those first that may not have reached the plant.

    What was ordered before anything is raised stays, and the next question returns it.
    """
    now = desk.move_to(now, "decide")
    orders = desk.take_owed()
    hidden = [v for v, name in enumerate(desk.floor.fleet) if name in without]
    try:
        desk.floor.hide(hidden)
        if is_opened(desk, decider, now):
            give = give_anew if desk.floor.calls_back else give_waiting
            give(desk, decider, now, orders)
        desk.orders.opens, desk.orders.asked = bool(hidden), now
        if desk.floor.has_auxiliary:
            send_idle(desk, decider, now, orders)
    except BaseException:
        desk.orders.owe(orders)
        raise
    finally:
        desk.floor.hide(())
    return orders


def is_opened(desk: Desk, decider: LiveDecider, now: float) -> bool:
    """Whether something has happened since the last decision at which tasks may be given."""
    desk.keep_release()
    if desk.orders.opens or not desk.floor.has_auxiliary:
        return True
    return decider.is_opened(desk.floor, now, desk.orders.asked)


def give_waiting(desk: Desk, decider: LiveDecider, now: float, orders: list[Order]) -> None:
    """Give waiting tasks as long as a free vehicle may carry one."""
    floor, goes_on = desk.floor, False
    while floor.pool and (floor.n_ready or floor.has_auxiliary):
        found = decider.decide(floor, desk.orders.decisions, now, goes_on)
        if found.vehicle < 0:
            return
        orders.append(desk.assign(now, found, decider.explain(floor, found, now)))
        goes_on = floor.layout.traffic is None  # else others may have to drive around it


def give_anew(desk: Desk, decider: LiveDecider, now: float, orders: list[Order]) -> None:
    """Give the tasks that wait or are not loaded yet; each vehicle and each task takes part once."""
    desk.orders.opens = True  # also if this fails
    floor = desk.floor
    offer = floor.open_round(now)
    try:
        while offer:
            floor.offer(offer)
            found = decider.decide(floor, desk.orders.decisions, now)
            if found.vehicle < 0:
                break
            reason = decider.explain(floor, found, now)
            name = offer.pop(found.position)
            taker = floor.layout.vehicles[found.vehicle].id
            holder, own = floor.tasks[name].vehicle, floor.vehicles[found.vehicle].task
            if holder == found.vehicle:
                floor.settle(holder)
                continue
            floor.offer(floor.pool)
            if holder >= 0:
                orders.append(desk.recall(now, holder, f"{taker} takes {name}"))
            if own is not None:
                orders.append(desk.recall(now, found.vehicle, f"it takes {name}"))
            found = found._replace(position=floor.pool.index(name))
            orders.append(desk.assign(now, found, reason))
    finally:
        floor.close_round()


def send_idle(desk: Desk, decider: LiveDecider, now: float, orders: list[Order]) -> None:
    """Send idle vehicles to charge or park, and find when to look again."""
    floor, v = desk.floor, -1
    while True:
        first = v + 1
        v, status, site = decider.find_auxiliary_move(floor, now, first)
        looked_at = slice(first, v if v >= 0 else None)
        for w, place in enumerate(floor.state.vehicle["place"][0, looked_at].tolist(), first):
            if place != floor.vehicles[w].place:
                desk.take_place(now, w, place)
        if v < 0:
            desk.orders.next_errand = math.inf if site == S.NEVER else now + site
            return
        charges = status == S.TO_CHARGER
        if charges:
            level = floor.find_level(v, now)
            low = level < floor.problem.battery["good"][0, v]
            reason = f"level {level:.0f}: {'low' if low else 'no waiting task fits it'}"
        else:
            reason = f"idle for {now - floor.vehicles[v].since:.0f} s"
        orders.append(desk.send(now, v, site, charges, reason))
