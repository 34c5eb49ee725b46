"""Waiting, utilisation and empty travel by hand; test_trace.py sets them beside the trips of traces."""

import pytest
from worlds import make_task, row_floor

import acerl_np
from acerl_np.evaluation.trials import evaluate_policy


def play(tasks, breakdowns=(), n_vehicles=1, **keys):
    """Sites a - b - c, 10 m apart, and vehicles at a that drive 1 m/s."""
    vehicle = {"start": "a", "speed": 1, "breakdowns": list(breakdowns)}
    layout = row_floor("abc", [{"id": f"v{k}", **vehicle} for k in range(n_vehicles)], **keys)
    record = acerl_np.Instance.from_rows("hand", acerl_np.Layout.from_dict(layout), tasks)
    return evaluate_policy("FCFS", record, trials=1)


def test_figures_of_one_vehicle_by_hand():
    # x: from 2 at a, at b at 12, at c at 22. y: at a at 42, at b at 52.
    trials = play([make_task("x", "b", "c", 2, 100), make_task("y", "a", "b", 3, 100)])
    assert trials.makespan[0, 0] == 52.0
    assert trials.waiting[0, 0] == ((12 - 2) + (42 - 3)) / 2
    assert (trials.utilisation[0, 0], trials.empty[0, 0]) == (50 / 52, 30 / 50)
    # x is delivered at 10, when it is due, and so not late; y at 20.
    trials = play([make_task("x", "a", "b", 0, 10), make_task("y", "b", "c", 0, 19.5)])
    assert (trials.late[0, 0], trials.tardiness[0, 0]) == (1 / 2, 0.5 / 2)
    trials = play([make_task("x", "b", "c", 0, 100)], n_vehicles=2)
    assert (trials.makespan[0, 0], trials.utilisation[0, 0]) == (20.0, 0.5)
    # A trip that a breakdown undoes counts for what it was: at b at 10, broken at 17 where it was at 16:
    # 6 m past b, repaired for 28; back to b, and to c.
    trials = play([make_task("x", "b", "c", 0, 100)], [{"time": 17, "repair_time": 10}])
    assert (trials.makespan[0, 0], trials.waiting[0, 0]) == (28 + 6 + 10, 28 + 6)
    assert trials.utilisation[0, 0] == (17 + 16) / 44
    assert trials.empty[0, 0] == pytest.approx((10 + 6) / (10 + 6 + 6 + 10))
    # With its load on it, it drives the last 4 m from 28 on.
    once = [{"time": 17, "repair_time": 10}]
    trials = play([make_task("x", "b", "c", 0, 100)], once, loads="stay")
    assert (trials.makespan[0, 0], trials.waiting[0, 0]) == (32, 10)
    assert (trials.utilisation[0, 0], trials.empty[0, 0]) == ((17 + 4) / 32, 10 / 20)
