"""A dispatcher that looks ahead: its day, its budget, its memory."""

import tracemalloc

import numpy as np
import pytest
from live_events import play_reckoned, tell_row
from machine import JIT
from worlds import parts_floor

from acerl_np import (
    Dispatcher,
    IndexPolicy,
    Instance,
    Layout,
    Lookahead,
    load_instance,
    load_layout,
)
from acerl_np.live import events as E
from acerl_np.live.parts import FIRST_ROOM
from acerl_np.problem.generate import perturb

INDEX = IndexPolicy.of_weights(approach=-1.0, loaded=-0.7, lateness=0.6, waiting=0.3)


def history_of(numbers):
    found = [load_instance(f"DMH-0{number}") for number in numbers]
    return found if JIT else [cut(record, 12) for record in found]


def cut(instance, n):
    return Instance.from_rows(instance.name, instance.layout, instance.rows()[:n])


def make(policy=INDEX, start=0.0, budget=None, futures=3, layout=None, history=None, **options):
    ahead = Lookahead(policy, history=history or history_of((1, 2)), futures=futures, **options)
    return Dispatcher(layout or load_layout("dmh"), ahead, start=start, budget=budget)


def look(dispatcher):
    """The lookahead's own tables."""
    return dispatcher._decider._decider


@pytest.mark.oracle
@pytest.mark.parametrize("policy", [INDEX, "STD"], ids=["index", "STD"])
@pytest.mark.parametrize("horizon", [None, 300.0])
def test_a_day_may_begin_at_any_time(policy, horizon):
    day = perturb(history_of((1,))[0], 5, seed=2)

    def play(start=0.0):
        dispatcher = make(policy, start=start, horizon=horizon)
        return play_reckoned(dispatcher, day, start, breaks=[(150.0, "v1")])

    plain = play()
    assert {name for _, _, name, _ in plain} == set(day.tasks)
    assert play(1e9) == play(-5e6) == plain


@pytest.mark.oracle
def test_begin_day_starts_anew():
    """The second day is decided as the first one was; nothing of it is left."""
    day = perturb(history_of((1,))[0], 5, seed=2)
    dispatcher = make()
    first = play_reckoned(dispatcher, day)
    assert dispatcher._floor.day.n_tasks == len(first) == day.n_tasks
    dispatcher.begin_day(50_000.0)
    assert dispatcher._floor.day.mark == (0, 0.0, 0, 0)
    fresh = make()
    # Vehicles stand where the first day has left them; draws go on by the number of decisions.
    for v, vehicle in enumerate(dispatcher._floor.vehicles):
        fresh._floor.put(v, fresh._floor.vehicles[v]._replace(site=vehicle.site))
    fresh.desk.orders.decisions = dispatcher.desk.orders.decisions
    for row in day.rows():
        if row["arrival_time"] == 0.0:
            dispatcher.feed(tell_row(row, 0.0, 50_000.0))
            fresh.feed(tell_row(row, 0.0))
    assert dispatcher.decide(50_000.0) == fresh.decide(0.0)
    assert np.array_equal(look(dispatcher).agreement, look(fresh).agreement)
    # What waits when a day begins is none of the day: no record can be like it.
    dispatcher = make()
    for name in ("a", "b"):
        dispatcher.feed(E.TaskArrived(900.0, name, "st1", "st5", 400.0))
    dispatcher.begin_day(1000.0)
    assert len(dispatcher.decide(1000.0)) == 2
    assert look(dispatcher).agreement.tolist() == [0.0, 0.0]
    assert look(dispatcher).weight.tolist() == [0.5, 0.5]


@pytest.mark.oracle
def test_delivered_and_cancelled_tasks_are_part_of_the_day():
    """A record agrees with all that has arrived, however long ago it left the floor."""
    day = history_of((1,))[0]
    other = Instance.from_rows(
        "other", day.layout, [{**row, "expiry_time": row["expiry_time"] + 1} for row in day.rows()]
    )
    dispatcher = make(history=[day, other])
    board = dispatcher._floor
    rows = [row for row in day.rows() if row["arrival_time"] <= 100.0]
    for row in rows:
        dispatcher.feed(tell_row(row, row["arrival_time"]))
    dispatcher.feed(E.TaskCancelled(101.0, rows[-1]["task"]))
    taken = dispatcher.decide(101.0)
    for vehicle, task, _ in taken:
        end = next(row["delivery"] for row in rows if row["task"] == task)
        dispatcher.feed(E.VehicleIdle(109.0, vehicle, end))
    assert len(board.tasks) == len(rows) - 1 - len(taken)
    found = dispatcher.decide(109.0)
    assert found and all(item.futures in (0, 3) for item in found)
    assert look(dispatcher).agreement.tolist() == [1.0, 0.0]
    assert look(dispatcher).deviation[0] == 0.0
    assert dispatcher._floor.day.delivered == len(taken)


@pytest.mark.oracle
def test_a_budget_of_nothing_still_answers():
    for budget, futures in ((0.0, 0), (1e-9, 0), (1e6, 9), (None, 9)):
        dispatcher = make(budget=budget, futures=9)
        dispatcher.feed(E.TaskArrived(0.0, "a", "st1", "st5", 400.0))
        dispatcher.feed(E.TaskArrived(0.0, "b", "st2", "st6", 400.0))
        assert next(item.futures for item in dispatcher.decide(0.0)) == futures
    # With one vehicle and one task left there is nothing to choose, hence nothing to look at.
    dispatcher = make()
    for name in ("v0", "v1"):
        dispatcher.feed(E.VehicleBroke(0.0, name))
    dispatcher.feed(E.TaskArrived(1.0, "a", "st1", "st5", 400.0))
    (only,) = dispatcher.decide(1.0)
    assert (only, only.futures) == (("v2", "a", "lookahead"), 0)


def test_a_dispatcher_is_ready_when_it_is_made(monkeypatch):
    """The first decision must not be the one that compiles."""
    from acerl_np.live import decision

    called, names = [], ("begin_lookahead", "rate_candidates", "pick_candidate")

    def watch(name, kernel):
        return lambda *arguments: (called.append(name), kernel(*arguments))[1]

    for name in names:
        monkeypatch.setattr(decision, name, watch(name, getattr(decision, name)))
    dispatcher = make()
    assert tuple(called) == names
    assert dispatcher.decide(0.0) == []


@pytest.mark.oracle
def test_many_vehicles_and_tasks_in_one_moment():
    data = load_layout("dmh").to_dict()
    n = 30 if JIT else 6
    stations = [site["id"] for site in data["sites"] if site["id"].startswith("st")]
    data["vehicles"] = [{"id": f"v{k}", "start": stations[k % 8], "speed": 1.0} for k in range(n)]
    layout = Layout.from_dict(data)
    dispatcher = make(futures=1, layout=layout, candidates=3)
    for k in range(n + 5):
        dispatcher.feed(E.TaskArrived(0.0, f"t{k}", stations[k % 8], stations[(k + 3) % 8], 400.0))
    found = dispatcher.decide(0.0)
    assert len({item.vehicle for item in found}) == len({item.task for item in found}) == n
    assert len(dispatcher.waiting) == 5


def test_memory_is_that_of_the_day(tmp_path):
    """What is kept of 20,000 events, and saved, is the day's log, in arrays; the next day begins without."""
    dispatcher = make(start=-7.5, futures=1)
    board = dispatcher._floor
    stations = [f"st{k}" for k in range(1, 9)]
    for k in range(10_000):
        now = 10.0 * k
        dispatcher.feed(E.TaskArrived(now, f"t{k}", stations[k % 8], stations[(k + 3) % 8], 50.0))
        if k % 250 == 0 and JIT:
            assert len(dispatcher.decide(now)) == 1
            (vehicle,) = dispatcher.under_way.values()
        else:
            vehicle = dispatcher.idle[0]
            dispatcher.assign(now, vehicle, f"t{k}")
        dispatcher.feed(E.VehicleIdle(now + 9.0, vehicle, stations[(k + 3) % 8]))
    assert (board.room, len(board._free), len(board.tasks), len(board.pool)) == (64, 64, 0, 0)
    day = dispatcher._floor.day
    assert (day.n_tasks, day.delivered) == (10_000, 10_000)
    assert day.ends.nbytes + day.record.nbytes <= 16384 * 72
    dispatcher.save(tmp_path / "live.npz")
    tracemalloc.start()
    again = Dispatcher.load(tmp_path / "live.npz")._floor.day
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # What is read leaves no garbage, which would stay with the process.
    assert most - held < 3_000_000
    assert (again.start, again.mark) == (-7.5, day.mark)
    assert np.array_equal(again.record[: day.n_tasks], day.record[: day.n_tasks])
    assert np.array_equal(again.ends[: day.n_tasks], day.ends[: day.n_tasks])
    dispatcher.begin_day(now + 10.0)
    assert len(dispatcher._floor.day.ends) == FIRST_ROOM


@pytest.mark.long  # it compiles a lookahead with errands
def test_futures_stay_in_the_part_of_the_day():
    """The first task tells which."""
    layout = Layout.from_dict(parts_floor("vw"))

    def record(a, b):
        rows = [
            {"task": f"t{k}", "pickup": a, "delivery": b, "arrival_time": 3.0 * k, "expiry_time": 9}
            for k in range(4)
        ]
        return Instance.from_rows(a + b, layout, rows)

    def weights(history):
        dispatcher = make("EDD", layout=layout, history=history)
        for k in range(3):
            dispatcher.feed(E.TaskArrived(float(k), f"t{k}", "A", "B", expiry=9.0))
        assert len(dispatcher.decide(3.0)) == 2
        return dispatcher._decider._decider.weight.tolist()

    mine, other = record("B", "A"), record("X", "Y")
    assert weights([other, mine]) == [0.0, 1.0]
    # A floor has to go on without a record of its part.
    assert weights([other]) == [1.0]
