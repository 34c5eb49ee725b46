"""A new policy for a dispatcher that runs: nothing is lost, and a restart goes on with it."""

import base64
import json
from pathlib import Path

import own_goals
import own_rules
import pytest

import acerl_np
from acerl_np.live import events as E
from acerl_np.live.saving import hash_policy
from acerl_np.live.service import Service
from acerl_np.policies.files import pack_policy
from acerl_np.policies.origin import Origin
from acerl_np.support.errors import RecordError
from acerl_np.support.files import write_arrays

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})
NEAR = acerl_np.IndexPolicy.of_weights(approach=-1.0)


def begin(log):
    dispatcher = acerl_np.Dispatcher(LAYOUT, "FCFS", audit=log)
    for k in range(5):
        dispatcher.feed(E.TaskArrived(k, f"t{k}", "st1", "st5", 900.0), number=k)
    dispatcher.decide(4.0)
    dispatcher.feed(E.TaskArrived(4.0, "held", "st2", "st5", 900.0, earliest_start=50.0))
    return dispatcher


def say(service, **message):
    return list(service.answer(json.dumps({"kind": "Policy", **message})))[-1]


def pack(policy, tmp_path, **more):
    path = tmp_path / "own.npz"
    arrays = {"kind": "policy", "format": acerl_np.policies.files.FORMAT, **pack_policy(policy)}
    write_arrays(path, {**arrays, **more})
    return base64.b64encode(path.read_bytes()).decode()


def test_a_new_policy_goes_on_where_the_old_one_was(tmp_path):
    log = tmp_path / "day.jsonl"
    with begin(log) as dispatcher:
        service, before = Service(dispatcher), dispatcher.tasks()
        free = dispatcher.under_way["t0"]
        assert say(service, file=pack(NEAR, tmp_path), number=7)["kind"] == "Ok"
        assert hash_policy(dispatcher.policy) == hash_policy(NEAR)
        assert dispatcher.tasks() == before
        assert dispatcher.check() == [] and dispatcher.next_time == 50.0
        dispatcher.feed(E.TaskArrived(2.0, "t2", "st1", "st5", 900.0), number=2)  # again: ignored
        dispatcher.feed(E.VehicleIdle(60.0, free, "st5"))
        [order] = dispatcher.decide(60.0)
        assert order.rule == "index" and order.number == 4
        found = dispatcher.tasks()
    first, *_, last = (json.loads(row) for row in log.read_text().splitlines() if "Started" in row)
    assert first["policy_hash"] is None and last["taken"]
    kept = Path(f"{log}.{last['policy_hash'][:16]}.npz")
    assert hash_policy(acerl_np.load_policy(kept)) == hash_policy(NEAR)
    for _ in range(2):  # the second goes on from a log whose last start is a recovery
        with acerl_np.Dispatcher.recover(LAYOUT, "FCFS", audit=log) as again:
            assert hash_policy(again.policy) == hash_policy(NEAR)
            assert again.tasks() == found and again.last_number == 4
    acerl_np.IndexPolicy.of_weights(approach=-2.0).save(kept)
    with pytest.raises(RecordError, match="holds another policy; expected hash"):
        acerl_np.Dispatcher.recover(LAYOUT, "FCFS", audit=log)
    kept.unlink()
    with pytest.raises(RecordError, match=r"policy that was taken over: .*npz") as caught:
        acerl_np.Dispatcher.recover(LAYOUT, "FCFS", audit=log)
    assert "\n" not in str(caught.value)


def test_a_name_is_taken_over_too(tmp_path):
    with begin(tmp_path / "day.jsonl") as dispatcher:
        assert say(Service(dispatcher), name="NEAREST")["kind"] == "Ok"
    with acerl_np.Dispatcher.recover(LAYOUT, "FCFS", audit=tmp_path / "day.jsonl") as again:
        assert again.policy == "nearest"


def test_what_is_no_policy_for_this_floor_leaves_the_old_one(tmp_path):
    log = tmp_path / "day.jsonl"
    with begin(log) as dispatcher:
        service, before = Service(dispatcher), log.read_bytes()
        own_feature = acerl_np.IndexPolicy([1.0], features=[own_rules.way])
        config = acerl_np.Config(generations=0, hidden=(2,))
        small = acerl_np.load_layout("supply-loop")
        day = acerl_np.generate_shift(small, hours=1.0, scale=0.1, name="d")
        network = acerl_np.ACERL([day], config).policy
        aim = acerl_np.Goal(own_goals.shift)
        origin = Origin.of(acerl_np.load_instance("DMH-01"), False, goal=aim)
        own_aim = acerl_np.IndexPolicy([1.0], features=["slack"], origin=origin)
        for message, why in [
            ({}, "expected either a name or a file"),
            ({"name": "nearest", "file": "x"}, "expected either"),
            ({"name": "module:rule"}, "module:rule"),
            ({"name": "neerest"}, "nearest"),
            ({"file": "%"}, "base64"),
            ({"file": base64.b64encode(b"\x80\x04pickle").decode()}, "not a readable .npz"),
            ({"file": pack(own_rules.near, tmp_path)}, "it names a module"),
            ({"file": pack(own_feature, tmp_path)}, "it names a module"),
            ({"file": pack(own_aim, tmp_path)}, "it names a module"),
            ({"file": pack(network, tmp_path)}, "vehicles"),
        ]:
            answer = say(service, **message)
            assert answer["kind"] == "Refused" and why in answer["why"], answer
            assert str(tmp_path) not in answer["why"] and "/tmp" not in answer["why"]
        assert dispatcher.policy == "FCFS" and log.read_bytes() == before
    assert [x.name for x in tmp_path.iterdir() if ".npz" in x.name] == ["own.npz"]


def test_lines_have_the_clock_on_the_wall_and_nothing_comes_of_it(tmp_path, monkeypatch):
    found = []
    for name, clock in (("a", 5.0), ("b", 1.7e9)):  # the second runs backwards
        moments = iter(clock - k for k in range(99))
        monkeypatch.setattr("acerl_np.live.log.time.time", lambda moments=moments: next(moments))
        with begin(tmp_path / name) as dispatcher:
            told = dispatcher.tasks()
        rows = [json.loads(row) for row in (tmp_path / name).read_text().splitlines()]
        assert [row["wall"] for row in rows] == [clock - k for k in range(len(rows))]
        with acerl_np.Dispatcher.recover(LAYOUT, "FCFS", audit=tmp_path / name) as again:
            assert again.tasks() == told and again.time == 4.0
            found.append([x[:2] for x in again.decide(4.0)])
    assert found[0] == found[1]


def test_a_guard_decides_live_and_a_restart_repeats_it(tmp_path):
    log, guarded = tmp_path / "day.jsonl", NEAR.switch(9.0, "shortest", 1.0)
    with acerl_np.Dispatcher(LAYOUT, guarded, audit=log, explain=True) as dispatcher:
        for k, site in enumerate(("st1", "st2", "st3")):
            dispatcher.feed(E.TaskArrived(900.0 * (k > 0), f"t{k}", site, "st5", 30.0))
        first, *others = dispatcher.decide(900.0)
        assert (first.task, first.rule) == ("t0", "overdue")
        assert {order.rule for order in others} == {"index"} and first.reason.by == "overdue"
        assert {option.task for option in first.reason.options} == {"t0"}
        found = dispatcher.tasks()
    with acerl_np.Dispatcher.recover(LAYOUT, guarded, audit=log) as again:
        assert again.tasks() == found
    rules = [
        line["rule"] for line in map(json.loads, log.read_text().splitlines()) if "rule" in line
    ]
    assert rules[0] == "overdue"
