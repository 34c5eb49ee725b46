"""Policy files of every form, where a policy comes from, and where it says that it is used elsewhere."""

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from machine import needs_jit
from tables_and_refusals import check_damaged
from worlds import PAIRS, change, make_task, move, reorder

import acerl_np
from acerl_np import Dispatcher, Layout, Policy, PolicyError, evaluate_policy, load_policy
from acerl_np.policies.agent_pair import AgentPair
from acerl_np.policies.index import NAMES
from acerl_np.policies.origin import Origin, pack_origin
from acerl_np.problem.packing import pack_instances, pack_json, unpack_instances
from acerl_np.problem.parts import Breakdown, Edge, Site, Vehicle

UNTRAINED = acerl_np.Config(generations=0, hidden=(2,), slots="pool")


@pytest.fixture(scope="module")
def policy(suite):
    return acerl_np.ACERL(suite, UNTRAINED, threads=1).policy


def reverse(layout):
    return reorder(layout, range(len(layout.vehicles))[::-1])


def warnings_of(function, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments, **options)
    return [str(item.message) for item in caught if item.category is acerl_np.PolicyWarning]


OF_NETWORKS = ("theta", "hidden", "task_slots", "smallest", "rules")
OF_OTHERS = ("features", "planned_breakdowns")


def list_bytes(policy, **options):
    return {name: np.asarray(x).tobytes() for name, x in policy.to_arrays(**options).items()}


FORMS = {
    "network": lambda network: [network],
    "agents": lambda network: [AgentPair(network, network)],
    "index": lambda _: [
        acerl_np.IndexPolicy([-1.0, 0.5, 2.0], features=NAMES[:3], planned_breakdowns=knows)
        for knows in (True, False)
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_policy_comes_back_with_its_origin(form, policy, suite, tmp_path):
    path, again = tmp_path / "policy.npz", tmp_path / "again.npz"
    for made in FORMS[form](policy):
        bare = type(made).from_arrays(made.to_arrays(with_origin=False))
        full = type(made).from_arrays({**bare.to_arrays(), **pack_origin(Origin.of(suite))})
        assert (bare.origin, full.origin) == (None, Origin.of(suite))
        for own in (bare, full):
            own.save(path)
            again_in_memory = pickle.loads(pickle.dumps(own))
            for loaded in (load_policy(path), type(own).load(path), again_in_memory):
                assert type(loaded) is type(own) and repr(loaded) == repr(own) == repr(made)
                assert list_bytes(loaded) == list_bytes(own)
                for name in (*OF_NETWORKS, *OF_OTHERS):
                    assert np.array_equal(getattr(loaded, name, 0), getattr(made, name, 0)), name
                loaded.save(again)
                assert again.read_bytes() == path.read_bytes()
        assert [item.rows() for item in loaded.origin.history] == [item.rows() for item in suite]
        assert [item.layout for item in loaded.origin.history] == [item.layout for item in suite]
    if form != "network":
        line = f"{path}: holds a policy of form '{form}', expected 'network'; acerl_np.load_policy"
        with pytest.raises(PolicyError, match=f"^{line} reads every form$"):
            Policy.load(path)


def test_damaged_files_are_refused_in_one_line(policy, tmp_path):
    def facts(**changed):
        data = json.loads(policy.origin.to_arrays()["facts"].tobytes())
        return pack_json({**data, **changed})

    fewer = pack_instances(policy.origin.history[:1])
    rows = [
        ("form", None, "form: read nothing; expected one of .*network"),
        ("form", np.array("a\nb"), r"form: read a\\nb; expected one of .*network"),
        ("form", np.array(["network"]), "form: read .* expected one of .*network"),
        ("format", 4, "format 4; this version reads format 3"),
        ("origin.facts", None, "origin: .*; the file holds no usable origin"),
        ("origin.more", np.zeros(1, np.uint8), "unknown entry 'more'"),
        ("origin.facts", np.full(9, 255, np.uint8), "origin: .*decode"),
        ("origin.facts", np.full(10**5, ord("["), np.uint8), "origin: "),
        ("origin.facts", np.zeros(3), "facts: read float64"),
        ("origin.facts", pack_json([1]), "origin: "),
        ("origin.facts", facts(places=[]), "origin: places: read 0 entries"),
        ("origin.facts", facts(places=[{"floor": "dmh"}]), r"places\[0\].fleet_hash: missing"),
        (
            "origin.facts",
            facts(records=[{"name": "a", "content_hash": "b"}]),
            r"records\[0\].content_hash: read \"b\"",
        ),
        ("origin.facts", facts(records=[{"name": 1, "content_hash": "a" * 64}]), "name: read 1"),
        ("origin.facts", facts(records=[]), "the records do not fit"),
        ("origin.facts", facts(version=None), "version: read null; expected a text"),
        ("origin.history", pack_json({"layouts": [], "instances": []}), "no instances"),
        ("origin.history", fewer, "the records do not fit their names and hashes"),
    ]
    policy.save(tmp_path / "policy.npz")
    check_damaged(tmp_path / "policy.npz", rows, load_policy, Policy.load)


def test_records_that_were_changed_or_are_huge_are_refused(suite, monkeypatch):
    data = json.loads(pack_instances(suite).tobytes())
    data["instances"][0]["tasks"][3]["arrival_time"] += 1
    arrays = Origin.of(suite).to_arrays()
    with pytest.raises(PolicyError, match="'DMH-01' does not fit its content hash"):
        Origin.from_arrays({**arrays, "history": pack_json(data)})
    # Before anything is read of it.
    monkeypatch.setattr("acerl_np.policies.origin.MAX_TEXT_BYTES", 10_000)
    monkeypatch.setattr("acerl_np.policies.origin.packing.unpack_json", lambda array: 1 / 0)
    with pytest.raises(PolicyError, match="history: read uint8 of shape"):
        Origin.from_arrays(arrays)


def test_layouts_of_whole_numbers_come_back():
    layout = Layout(
        "whole",
        (Site("a", 0, -0.0), Site("b", 3, 0)),
        (Edge("a", "b", 3),),
        (Vehicle("v", "a", speed=2, capacity=5, breakdowns=(Breakdown(9, 1),)),),
        scaling={**dict.fromkeys(PAIRS, (1, 2)), "speed": 1, "capacity": 1},
    )
    instance = acerl_np.Instance.from_rows("whole", layout, [make_task("t", "a", "b", 0, 9)])
    again = unpack_instances(pack_instances([instance]))[0]
    assert again.content_hash == instance.content_hash
    assert Origin.of(again) == Origin.of(instance)
    # Also a layout of other numbers, whose text was never read.
    assert Layout.from_dict(layout.to_dict()).fleet_hash == layout.fleet_hash


# Where a policy comes from


def test_a_layout_is_compared_by_content(suite):
    origin = Origin.of(suite)
    layout = suite[0].layout
    same = [
        change(layout, name="renamed"),
        layout.with_breakdowns({}),
        layout.with_breakdowns({"v1": [Breakdown(5.0, 6.0)]}),
        layout.with_random_breakdowns(acerl_np.RandomBreakdowns(300.0, 60.0)),
        change(layout, task_slots=20),
        change(layout, vehicles=[{**v, "breakdowns": []} for v in layout.to_dict()["vehicles"]]),
    ]
    for other in same:
        assert origin.compare(other) == []
    data = layout.to_dict()
    edges = [{**data["edges"][0], "length": data["edges"][0]["length"] + 5}, *data["edges"][1:]]
    floor = change(layout, edges=edges, routes=[])
    lines = origin.compare(floor)
    hashes = layout.floor_hash[:12], floor.floor_hash[:12]
    assert lines == [f"floor: trained on 'dmh' (hash {hashes[0]}), read 'dmh' (hash {hashes[1]})"]
    assert origin.compare(reverse(layout)) == ["fleet: trained for v0, v1, v2; read v2, v1, v0"]
    fast = change(layout, vehicles=[{**own, "speed": 2.0} for own in data["vehicles"]])
    assert origin.compare(fast) == [
        f"fleet: trained for v0, v1, v2 (hash {layout.fleet_hash[:12]}); "
        f"read other starts, speeds or capacities (hash {fast.fleet_hash[:12]})"
    ]
    assert len(origin.compare(reverse(floor))) == 2
    assert len({item.floor_hash for item in (layout, fast, reverse(layout), *same)}) == 1
    sites = [{**data["sites"][0], "x": 1.5}, *data["sites"][1:]]
    for fields in ({"truncate_distances": False}, {"routes": []}, {"sites": sites}):
        assert origin.compare(change(layout, **fields))[0].startswith("floor: ")


def test_one_of_several_floors_is_enough(suite):
    layout = suite[0].layout
    two = change(reorder(layout, (0, 1)), name="two")
    other = change(layout, name="other", truncate_distances=False)
    origin = Origin.of([suite[0], move(suite[0], two), move(suite[1], other), suite[1]])
    assert [place.floor for place in origin.places] == ["dmh", "two", "other"]
    for known in (layout, two, other):
        assert origin.compare(known) == []
    # A pair that was never trained on is one line about the fleet of this floor.
    line = "fleet: trained for v0, v1, v2 or v0, v1; read v1, v0"
    assert origin.compare(reverse(two)) == [line]
    mixed = change(other, vehicles=two.to_dict()["vehicles"])
    assert origin.compare(mixed) == ["fleet: trained for v0, v1, v2; read v0, v1"]
    assert Origin.from_arrays(origin.to_arrays()) == origin


def test_a_large_fleet_and_odd_names_stay_on_one_line():
    sites, edges = (Site("a", 0, 0), Site("b", 3, 0)), (Edge("a", "b", 3),)
    fleet = tuple(Vehicle(f"v{k}", "a") for k in range(20))
    layout = Layout("a\nb", sites, edges, fleet)
    origin = Origin.of(
        acerl_np.Instance.from_rows("large", layout, [make_task("t", "a", "b", 0, 9)])
    )
    others = {"vehicles": (*fleet[:-1], Vehicle("w", "a")), "sites": (Site("a", 1, 0), sites[1])}
    lines = origin.compare(replace(layout, **others))
    assert lines[0].startswith(r"floor: trained on 'a\nb' (hash ")
    assert lines[1].startswith("fleet: trained for v0, v1, v2, v3, v4, v5, v6, v7, ... (20) (hash ")
    assert "read others (hash " in lines[1]
    assert all(line.isprintable() for line in lines)


def test_an_origin_is_of_its_records(suite):
    origin = Origin.of(suite)
    assert origin.version == acerl_np.__version__
    assert [item.name for item in origin.records] == ["DMH-01", "DMH-02"]
    assert [item.content_hash for item in origin.records] == [i.content_hash for i in suite]
    assert [place.vehicles for place in origin.places] == [("v0", "v1", "v2")]
    with pytest.raises(acerl_np.InputError, match="no instances"):
        Origin.of([])


# What is said


@needs_jit
def test_trials_elsewhere_warn_once(policy, suite):
    assert warnings_of(evaluate_policy, policy, suite, trials=2) == []
    same = [*acerl_np.load_suite("dmh-test")[:2], acerl_np.load_instance("DMH-N30-01")]
    same.append(replace(suite[0], layout=suite[0].layout.with_breakdowns({})))
    assert warnings_of(evaluate_policy, policy, same, trials=1) == []
    reversed_fleet = [
        move(item, reverse(item.layout)) for item in acerl_np.load_suite("dmh-train")[:3]
    ]
    found = warnings_of(evaluate_policy, policy, [suite[0], *reversed_fleet], trials=2)
    line = "policy: DMH-01: fleet: trained for v0, v1, v2; read v2, v1, v0 (and 2 more)"
    assert found == [line]
    other = move(suite[0], change(suite[0].layout, name="hall", truncate_distances=False))
    found = warnings_of(evaluate_policy, policy, other, trials=1)
    assert len(found) == 1 and "read 'hall'" in found[0]
    assert found[0].startswith("policy: DMH-01: floor: trained on 'dmh' (hash ")
    # What has no origin cannot differ.
    bare = Policy.from_arrays(policy.to_arrays(with_origin=False))
    assert warnings_of(evaluate_policy, bare, other, trials=1) == []


def test_dispatchers_elsewhere_warn_once_and_keep_the_origin(policy, tmp_path):
    layout = acerl_np.load_layout("dmh")
    assert warnings_of(Dispatcher, layout, policy) == []
    assert warnings_of(Dispatcher, layout.with_breakdowns({}), policy) == []
    line = "policy: dispatcher: fleet: trained for v0, v1, v2; read v2, v1, v0"
    assert warnings_of(Dispatcher, reverse(layout), policy) == [line]
    Dispatcher(layout, policy).save(tmp_path / "live.npz")
    loaded = Dispatcher.load(tmp_path / "live.npz").policy
    assert loaded.origin == policy.origin
    assert len(loaded.origin.history) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", acerl_np.PolicyWarning)
        Dispatcher(reverse(layout), policy).save(tmp_path / "live.npz")
    assert warnings_of(Dispatcher.load, tmp_path / "live.npz") == [line]


@needs_jit
def test_the_command_says_it_in_one_line(policy, empty, run):
    policy.save("policy.npz")
    (empty / "back.json").write_text(json.dumps(reverse(acerl_np.load_layout("dmh")).to_dict()))
    words = "evaluate policy.npz EDD --on DMH-01,DMH-03 --trials 1"
    line = "policy.npz: DMH-01: fleet: trained for v0, v1, v2; read v2, v1, v0 (and 1 more)\n"
    for more, told in (("", ""), ("--layout back.json", line), ("--breakdowns none", "")):
        assert run(f"{words} {more}").err == told


@needs_jit
def test_training_may_leave_its_records_out(suite, empty, run):
    few = "--generations 1 --set population=2 --set hidden=2 --trials 0 --quiet"
    words = f"train DMH-01 DMH-02 {few} --out"
    run(f"{words} with")
    run(f"{words} without --set no_records=true")
    (empty / "wrong.toml").write_text("no_records = 1")
    err = run(f"{words} wrong --config wrong.toml", 2).err
    assert "no_records: read 1; expected true or false" in err
    kept, left_out = (load_policy(f"{name}/policy.npz") for name in ("with", "without"))
    assert [item.name for item in kept.origin.history] == ["DMH-01", "DMH-02"]
    assert kept.origin == left_out.origin == Origin.of(suite, keep_records=False)
    assert left_out.origin.history == ()
    assert kept.theta.tobytes() == left_out.theta.tobytes()
    sizes = [(empty / name / "policy.npz").stat().st_size for name in ("with", "without")]
    assert sizes[0] - sizes[1] > 5_000
