"""Records beyond seconds: timestamps, breakdowns of their own, drawn, looked through, replayed."""

import csv
import hashlib
import json
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import full
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import JIT
from tables_and_refusals import FLEET, HEADER, list_unrefused, list_unrefused_files, refused, write
from worlds import make_task, straight_floor, worlds

import acerl_np
from acerl_np import InputError, Instance, Layout, RecordError, Simulator, load_instance, load_suite
from acerl_np.problem.bundled import bundled_instances
from acerl_np.problem.generate import find_task_places, generate_record, perturb
from acerl_np.problem.parts import Breakdown
from acerl_np.problem.records import examine_record, read_assignments, write_record
from acerl_np.problem.servable import check_record, measure_load, measure_service_time
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.replay import replay_assignments, write_schedule


def floor(*vehicles, **keys):
    return Layout.from_dict({"name": "hall", **straight_floor(list(vehicles) or FLEET, **keys)})


def record(*rows, layout=None, **options):
    return Instance.from_rows("rows", layout or floor(), list(rows), **options)


def hall(folder, **files):
    """`layout.json` and tables by their names, in a folder."""
    (folder / "layout.json").write_text(json.dumps(straight_floor(FLEET)))
    for name, lines in files.items():
        write(folder / f"{name}.csv", *lines)


BROKEN = "vehicle,time,repair_time"
DAY = "2024-05-06T07:00:00"


# Timestamps


def test_rows_may_hold_moments_and_name_their_time_zero():
    moment = datetime(2024, 5, 6, 7, 0, 5)
    rows = [make_task("t0", "A", "B", moment, 9)]
    zero = datetime(2024, 5, 6, 7)
    instance = record(*rows, epoch=zero)
    assert (instance.arrival.tolist(), instance.epoch) == ([5], zero)
    assert record(*rows).epoch == moment
    with pytest.raises(RecordError, match=r"^row 1: arrival_time: .* not before time zero"):
        record(*rows, epoch=datetime(2024, 5, 6, 8))


def test_time_zero_may_be_named(tmp_path):
    path, zero, header = tmp_path / "tasks.csv", "2024-05-06T06:59:50", HEADER + ",time_zero"
    write(path, header, f"t0,A,B,{DAY},9,{zero}", f"t1,A,B,{DAY},9,")
    load = partial(load_instance, layout=floor())
    assert load(path).arrival.tolist() == [10, 10]
    assert load(path).epoch == datetime.fromisoformat(zero)
    first = f"t0,A,B,{DAY},9"
    cases = [
        ([header, f"{first},soon"], 'line 2: time_zero: read "soon" ... without an offset'),
        ([header, f"{first},{DAY}Z"], "line 2: time_zero ... expected a timestamp without an"),
        ([header, f"{first},2024-05-06T07:00:01"], "line 2: arrival_time ... not before time zero"),
        ([header, f"{first},{zero}", f"t1{first[2:]},{DAY}"], "line 3: time_zero ... line 2, 20"),
        ([header, f"t0,A,B,3,9,{DAY}"], "line 2: time_zero ... expected none, as arrival_time"),
    ]
    assert list_unrefused_files(path, cases, load) == []


@pytest.mark.parametrize("offset", ["", "Z", "+02:00"])
@pytest.mark.parametrize("seed", [0, 1])
def test_noised_records_keep_timestamps_and_time_zero(empty, run, offset, seed):
    times = [f"2024-05-06T07:0{k}:00.250{offset}" for k in range(4)]
    week = [f"t{k},A,B,{time},{times[3]}" for k, time in enumerate(times)]
    broken = [BROKEN, f"v,{times[1]},30", f"w,{times[2]},7.5"]
    hall(empty, week=[HEADER, *week], breakdowns=broken)
    words = "records make week.csv --layout layout.json --magnitude 40,move --out noised"
    told = run(f"{words} --seed {seed}")
    assert told.out.split() == [str(Path("noised/week-n40.csv"))]
    assert told.err == f"breakdowns {Path('noised/breakdowns.csv')}\n"
    assert Path("noised/breakdowns.csv").read_bytes() == Path("breakdowns.csv").read_bytes()
    old, new = (load_instance(x, layout="layout.json") for x in ("week.csv", "noised/week-n40.csv"))
    expected = perturb(old, 40, seed=seed, zeros="move", name="x")
    assert new.content_hash == expected.content_hash
    moment = datetime.fromisoformat(times[0])
    assert new.epoch == moment and new.epoch.utcoffset() == moment.utcoffset()
    assert listed(new) == listed(old) == [[(60, 30)], [(120, 7.5)]]
    rows = list(csv.DictReader(Path("noised/week-n40.csv").read_text().splitlines()))
    assert all(row["arrival_time"].startswith("2024-05-06T07:0") for row in rows)
    # Time zero is named where nothing arrives at it.
    assert ("time_zero" in rows[0]) == (new.arrival[0] > 0) == (seed == 1)


def test_breakdowns_in_seconds_hold_for_noised_records_too(empty, run):
    hall(empty, **{"week{k}": [HEADER, f"t0,A,B,{DAY},9"]}, other=[BROKEN, "v,3,4"])
    words = "records make week{k}.csv --magnitude 9 --layout layout.json"
    for file, breakdowns in (("other.csv", [[(3, 4)], []]), ("none", [[], []])):
        run(f"{words} --breakdowns {file} --out {file[:5]}")
        # A name may have braces.
        made = load_instance(f"{file[:5]}/week{{k}}-n9.csv", layout="layout.json")
        assert listed(made) == breakdowns
        assert made.epoch == datetime.fromisoformat(DAY)


def test_breakdowns_that_one_folder_cannot_hold_are_refused(empty, run):
    hall(empty)
    for name, lines in (("a", ["v,3,4"]), ("b", ["v,3,5"]), ("c", None)):
        Path(name).mkdir()
        write(Path(name, f"{name}1.csv"), HEADER, "t0,A,B,0,9")
        if lines is not None:
            write(Path(name, "breakdowns.csv"), BROKEN, *lines)
    words = "records make --magnitude 9 --layout layout.json --out"
    for first, second in (("a", "b"), ("a", "c"), ("c", "b")):
        line = run(f"{words} new {first}/{first}1.csv {second}/{second}1.csv", 2).err
        assert f"{second}1.csv: other breakdowns" in line and f"of {first}/{first}1.csv" in line
    other = "holds other breakdowns than those of the records"
    for record, folder in (("b/b1.csv", "a"), ("c/c1.csv", "a"), ("DMH-01", "b")):
        own = words.replace("layout.json", "dmh") if record == "DMH-01" else words
        line = f"{Path(folder, 'breakdowns.csv')}: {other}"
        assert line in run(f"{own} {folder} {record}", 2).err
    line = run("records make --layout dmh --tasks 3 --out a", 2).err
    assert f"{Path('a/breakdowns.csv')}: {other}" in line
    run(f"{words} a a/a1.csv")


def test_arrivals_of_zero_stay_unless_they_are_told_to_move():
    instance = acerl_np.load_instance("DMH-01")
    zero = instance.arrival == 0.0
    assert 5 <= zero.sum() < instance.n_tasks

    def arrivals(seed, **options):
        record = acerl_np.perturb(instance, 9, seed=seed, **options)
        by_name = {row["task"]: row["arrival_time"] for row in record.rows()}
        return [by_name[row["task"]] for row in instance.rows()]

    kept = np.array([arrivals(seed) for seed in range(20)])
    moved = np.array([arrivals(seed, zeros="move") for seed in range(20)])
    assert (kept[:, zero] == 0).all() and (kept[:, ~zero] == moved[:, ~zero]).all()
    # Half of the noise is negative, and cut at 0.
    assert 0.35 < (moved[:, zero] > 0).mean() < 0.6
    for arguments in ({"zeros": "stay"}, {"magnitude": -1}, {"magnitude": 1.5}, {"seed": -1}):
        with pytest.raises(acerl_np.AcerlError, match=f"{next(iter(arguments))}: read "):
            acerl_np.perturb(instance, **{"magnitude": 5, **arguments})


def test_records_are_not_written_over_what_was_read(empty, run, monkeypatch):
    Path("floor.csv").write_text(json.dumps(straight_floor(FLEET)))
    write(Path("w1.csv"), HEADER, "t0,A,B,50,9")
    Path("link.csv").symlink_to("w1.csv")
    Path("dmh.csv").write_text(json.dumps(acerl_np.load_layout("dmh").to_dict()))
    own = "records make w1.csv --layout floor.csv --magnitude 4 --out . --names"
    folder = bundled_instances()["DMH-01"].parent
    bundled = f"records make --magnitude 4 --names {{name}} --out {folder}"
    run(f"{own} {{name}}-{{n}}")
    assert Path("w1-4.csv").exists()
    monkeypatch.setattr(
        "acerl_np.support.files.write_atomically", lambda path, _: pytest.fail(path)
    )
    for words in (
        *(f"{own} {name}" for name in ("{name}", "link", "floor")),
        f"{own} w1".replace("w1.csv", f"{empty}/link.csv"),
        "records make --layout dmh.csv --tasks 3 --out . --names dmh",
        *(f"{bundled} {named}" for named in ("DMH-01", "dmh-train")),
    ):
        assert "read, and would be overwritten; expected another name" in run(words, 2).err


def test_written_timestamps_do_not_follow_a_clock_that_is_put_forward(tmp_path):
    berlin = ZoneInfo("Europe/Berlin")
    zero = datetime(2024, 3, 31, 1, 30, tzinfo=berlin)
    rows = [make_task("t0", "A", "B", 0, 9), make_task("t1", "A", "B", 7200, 9)]
    instance = record(*rows, epoch=zero)
    write_record(instance, tmp_path / "tasks.csv")
    again = load_instance(tmp_path / "tasks.csv", layout=floor())
    assert again.arrival.tolist() == [0, 7200] and again.epoch == zero
    late = record(*rows, epoch=datetime(9999, 12, 31, 23, 30))
    with pytest.raises(InputError, match=r"'t1': arrives 7200 s after .* before the year 10000"):
        write_record(late, tmp_path / "late.csv")
    assert not (tmp_path / "late.csv").exists()


# Breakdowns of a record


def break_down(vehicle, *times):
    return {**vehicle, "breakdowns": [{"time": time, "repair_time": rest} for time, rest in times]}


def listed(instance):
    return [
        [(item.time, item.repair_time) for item in vehicle.breakdowns]
        for vehicle in instance.layout.vehicles
    ]


def test_breakdowns_beside_the_record_replace_those_of_the_layout(tmp_path):
    layout = floor({**FLEET[0], "breakdowns": [{"time": 1, "repair_time": 2}]}, FLEET[1])
    path = write(tmp_path / "tasks.csv", HEADER, "t0,A,B,0,9")
    assert listed(load_instance(path, layout=layout)) == [[(1, 2)], []]
    other = write(tmp_path / "other.csv", BROKEN, "v,7.5,1")
    assert listed(load_instance(path, layout=layout, breakdowns=other)) == [[(7.5, 1)], []]
    write(tmp_path / "breakdowns.csv", BROKEN, "w,3,4", "", "w,9,0.5", "v,2,2")
    instance = load_instance(path, layout=layout)
    assert listed(instance) == [[(2, 2)], [(3, 4), (9, 0.5)]]
    named = load_instance(path, layout=layout, breakdowns=other)
    assert listed(named) == [[(7.5, 1)], []]
    assert build_problem([instance, named]).distance.shape[0] == 1  # the floor is one
    assert [(item.time, item.repair_time) for item in layout.vehicles[0].breakdowns] == [(1, 2)]
    write(tmp_path / "breakdowns.csv", BROKEN)
    assert listed(load_instance(path, layout=layout)) == [[], []]
    assert listed(load_instance(path, layout=layout, breakdowns="none")) == [[], []]
    # They are in the hash, and a layout that lists them is the same.
    expected = Instance.from_rows("rows", layout.with_breakdowns({}), instance.rows())
    assert load_instance(path, layout=layout).content_hash == expected.content_hash
    assert instance.content_hash != expected.content_hash


def test_breakdowns_may_be_timestamps(tmp_path):
    path = write(tmp_path / "tasks.csv", HEADER, "t0,A,B,2024-05-06T07:00:00Z,9")
    # The second is over before the first arrival, the third lasts 5 s beyond it.
    times = ["v,2024-05-06T09:00:10+02:00,5"]
    times += ["w,2024-05-06T06:00:00Z,60", "w,2024-05-06T06:59:00Z,65"]
    write(tmp_path / "breakdowns.csv", BROKEN, *times)
    assert listed(load_instance(path, layout=floor())) == [[(10, 5)], [(0, 5)]]
    # The word none switches them off.
    for item in load_suite("dmh-test", breakdowns="none"):
        assert listed(item) == [[]] * 3


@pytest.mark.compiles
def test_commands_take_breakdowns(empty, run):
    """One vehicle serves a task of 10 m on a way of 10 m; a repair makes it later."""
    write(Path("tasks.csv"), HEADER, "t0,B,A,0,40")
    write(Path("tasks2.csv"), HEADER, "t0,A,B,0,40")
    vehicle = {"id": "v", "start": "A", "breakdowns": [{"time": 5, "repair_time": 20}]}
    Path("floor.json").write_text(json.dumps(straight_floor([vehicle])))
    write(Path("late.csv"), BROKEN, "v,5,30")
    write(Path("past.csv"), "task,vehicle,start", "t0,v,0")
    # Halted after 4 m, idle at 5 + 20 + 1 (5 + 30 + 1), then 6 + 10 m.
    for file, makespan, repairs in (("", 42, 20), ("late.csv", 52, 30), ("none", 20, 0)):
        broken = f"--breakdowns {file}" if file else ""
        more = f"--layout floor.json {broken}"
        assert f"{makespan}.0" in run(f"evaluate FCFS --on tasks.csv {more}").out
        replayed = run(f"replay tasks.csv --past past.csv {more} --force").out
        assert f"makespan {makespan}.0 s" in replayed
        [row] = json.loads(run(f"records check tasks.csv {more} --format json").out)
        assert row["fleet_time_s"] == 40 - repairs
        load = f"offered load {(0 + 10 + 10) / (40 - repairs):.2f} "
        assert load in run(f"floor check floor.json --on tasks.csv {broken}").out
    if JIT:  # a search in plain Python takes minutes
        assert " 20.0 " in run(f"policy bound tasks.csv --cost-limit 90 --effort 0.001 {more}").out
    words = "--generations 1 --set population=2 --set hidden=2 --quiet --details"
    more, resume = "--layout floor.json --breakdowns late.csv", "train --resume run/run.npz --quiet"
    assert " 52.0 " in run(f"train tasks.csv tasks2.csv {words} --trials 1 --out run {more}").out
    run(f"{resume} tasks.csv tasks2.csv {more}")
    run(f"{resume} tasks.csv tasks2.csv --layout floor.json", 2)
    line = run(f"{resume} --breakdowns late.csv", 2).err
    assert "--breakdowns: given without records" in line
    # What a command takes when nothing is named.
    Path("options.toml").write_text('breakdowns = ["none"]\ntasks = ["tasks.csv"]\n')
    assert " 20.0 " in run(f"train --config options.toml --layout floor.json {words} --out new").out


REFUSED_BREAKDOWNS = [
    (["v,1,1", "x,1,1"], "line 3: vehicle ... 'x' ... 'hall'"),
    ([",1,1"], 'line 2: vehicle: read ""'),
    (["v,-1,1"], 'line 2: time: read "-1" ... timestamp'),
    (["v,1,"], 'line 2: repair_time: read ""'),
    ([f"v,1,{DAY}"], f"line 2: repair_time ... {DAY}"),
    ([f"v,{DAY},1", "v,3,1"], "line 3: time ... expected a timestamp ... line 2"),
    ([f"v,{DAY}Z,1"], "line 2: time ... without an offset from UTC"),
    (["v,1"], "line 2 ... 2 fields ... expected 3"),
]


def test_breakdowns_that_are_refused(tmp_path):
    path = write(tmp_path / "tasks.csv", HEADER, f"t0,A,B,{DAY},9")
    beside = tmp_path / "breakdowns.csv"

    def load(_):
        load_instance(path, layout=floor())

    cases = [([BROKEN, *lines], words) for lines, words in REFUSED_BREAKDOWNS]
    cases += [(["vehicle,time", "v,1"], "line 1 ... 'repair_time'"), ("", "empty")]
    assert list_unrefused_files(beside, cases, load) == []
    write(path, HEADER, "t0,A,B,0,9")
    cases = [([BROKEN, f"v,{DAY},1"], "line 2: time ... number of seconds")]
    assert list_unrefused_files(beside, cases, load) == []
    missing = tmp_path / "none.csv"
    refused(missing, ["found nothing"], load_instance, path, layout=floor(), breakdowns=missing)


def test_bundled_records_are_what_the_reader_of_exports_makes_of_their_files():
    for name, path in bundled_instances().items():
        record = load_instance(name)
        (other,), _ = examine_record(path, record.layout)
        for field in fields(record):
            ours, its = (getattr(x, field.name) for x in (record, other))
            if isinstance(ours, np.ndarray):
                assert (ours.dtype, ours.tobytes()) == (its.dtype, its.tobytes()), field.name
                assert not ours.flags.writeable
            else:
                assert ours == its, field.name


def test_bundled_instances_take_no_breakdowns_from_beside(tmp_path, monkeypatch):
    before = load_instance("DMH-01").content_hash
    folder = tmp_path / "instances" / "dmh"
    folder.mkdir(parents=True)
    source = bundled_instances()["DMH-01"]
    for name in ("DMH-01.csv", "layout.json"):
        (folder / name).write_bytes((source.parent / name).read_bytes())
    write(folder / "breakdowns.csv", BROKEN, "v0,1,1")
    monkeypatch.setattr("acerl_np.problem.bundled.instances_folder", lambda: folder.parent)
    bundled_instances.cache_clear()
    try:
        assert list(bundled_instances()) == ["DMH-01"]
        assert load_instance("DMH-01").content_hash == before
        # Named as a file it is an own record, and a file named besides it always counts.
        assert load_instance(folder / "DMH-01.csv").content_hash != before
        own = load_instance("DMH-01", breakdowns=folder / "breakdowns.csv")
        assert listed(own)[0] == [(1, 1)]
    finally:
        bundled_instances.cache_clear()


# Drawn records


@pytest.mark.parametrize("process", ["uniform", "poisson", "bursts"])
def test_drawn_arrivals_come_at_the_rate(process):
    layout, n, rate = acerl_np.load_layout("dmh"), 4000, 120.0
    instance = generate_record(layout, n, process=process, rate=rate, burst_size=4, seed=3)
    arrival = instance.arrival
    assert instance.n_tasks == n and (arrival == np.floor(arrival)).all()
    gaps = np.diff(np.unique(arrival) if process == "bursts" else arrival)
    # Gaps of a Poisson process, and of many uniform moments, spread as much as their mean.
    mean = 3600.0 / rate * (4 if process == "bursts" else 1)
    assert [gaps.mean(), gaps.std()] == pytest.approx([mean, mean], rel=0.1)
    if process == "bursts":
        assert (arrival.reshape(-1, 4) == arrival[::4, None]).all()
    if process == "uniform":
        assert arrival[-1] < 3600.0 * n / rate


def test_drawn_tasks_join_the_sites_and_are_due_with_slack():
    layout = floor({"id": "v", "start": "A", "speed": 2}, {"id": "w", "start": "A", "speed": 1})
    instance = generate_record(layout, 400, slack=3.0, seed=1)
    assert {*instance.pickup.tolist()} == {*instance.delivery.tolist()} == {1, 2}
    # B and C are 6 m apart, the fleet's mean speed is 1.5 m/s.
    assert {*instance.expiry.tolist()} == {3 * 4 + 4}
    assert 140 < (instance.pickup == 1).sum() < 260
    dmh = generate_record(acerl_np.load_layout("dmh"), 3000, sites="workstation")
    assert {dmh.layout.sites[site].kind for site in dmh.pickup} == {"workstation"}
    pairs, counts = np.unique([dmh.pickup, dmh.delivery], axis=1, return_counts=True)
    assert pairs.shape[1] == 8 * 7 and counts.min() > 20 and counts.max() < 100


def test_demands_and_handling_times_are_drawn_between_their_bounds():
    layout = floor({"id": "v", "start": "A", "capacity": 2}, {"id": "w", "start": "A", "speed": 2})
    plain = generate_record(layout, 400, slack=3.0)
    made = generate_record(layout, 400, slack=3.0, demand=(1, 4), handling_time=(0.5, 3))
    for name in ("tasks", "pickup", "delivery", "arrival"):
        assert np.array_equal(getattr(made, name), getattr(plain, name))
    assert not plain.demand.any() and not plain.handling_time.any()
    values, counts = np.unique(made.demand, return_counts=True)
    assert values.tolist() == [1, 2, 3, 4] and counts.min() > 60
    assert made.handling_time.min() >= 0.5 and made.handling_time.max() <= 3
    assert abs(made.handling_time.mean() - 1.75) < 0.15
    assert np.array_equal(made.handling_time, made.handling_time.round(3))
    # B and C are 6 m apart, the fleet's mean speed is 1.5 m/s.
    assert np.array_equal(made.expiry, np.ceil(3 * (4 + made.handling_time) + 4 - 1e-9))
    # One does not change the other, and bounds that meet leave no choice.
    alone = generate_record(layout, 400, slack=3.0, demand=(1, 4))
    assert np.array_equal(alone.demand, made.demand)
    assert np.array_equal(alone.expiry, plain.expiry)
    assert {*generate_record(layout, 40, demand=(2.5, 2.5)).demand.tolist()} == {2.5}
    assert {*generate_record(layout, 40, handling_time=(0, 1)).handling_time.tolist()} == {0, 1}
    # Nothing is above every capacity.
    small = floor(*({"id": f"v{x}", "start": "A", "capacity": x} for x in (2, 3.5)))
    assert generate_record(small, 200, demand=(1, 3.5)).demand.max() <= 3.5
    with pytest.raises(InputError, match=r"^demand: read 4; expected at most 3.5, the largest"):
        generate_record(small, 1, demand=(1, 4))


def test_what_is_drawn_for_a_task_is_independent():
    """On a floor of many sites, where a draw used twice would show."""
    made = generate_record(
        acerl_np.load_layout("dmh"), 1000, sites="all", demand=(0.0, 5.5), handling_time=(0.0, 9.5)
    )
    turn = (made.delivery - made.pickup) % 13
    columns = [made.pickup, turn, made.demand, made.handling_time, np.diff(made.arrival, prepend=0)]
    related = np.corrcoef(columns)[np.triu_indices(5, 1)]
    assert np.abs(related).max() < 5 / np.sqrt(1000)


def test_drawn_records_have_the_same_bytes_as_ever(empty, run):
    words = "records make --layout dmh --tasks 12 --out . --sites all"
    run(words)
    found = hashlib.sha256(Path("tasks-01.csv").read_bytes()).hexdigest()
    assert found == "a4410d738e7677a7da4a55b5b1c37e58e8fedd033835f16176731170cb551f72"
    run(f"{words} --handling-time 2:9 --force")
    header = Path("tasks-01.csv").read_text().splitlines()[0]
    assert header == f"{HEADER},handling_time"
    words = "records make --layout dmh --tasks 12 --seed 4 --arrivals bursts:5"
    made = run(f"{words} --count 3 --out a").out.split()
    assert made == [str(Path(f"a/tasks-0{k}.csv")) for k in (1, 2, 3)]
    run(f"{words} --count 2 --out b --names x{{k}}")
    for k in (1, 2):
        assert Path(f"a/tasks-0{k}.csv").read_bytes() == Path(f"b/x0{k}.csv").read_bytes()
        arrivals = load_instance(f"a/tasks-0{k}.csv", layout="dmh").arrival
        assert np.unique(arrivals, return_counts=True)[1].tolist() == [5, 5, 2]


def test_sites_that_cannot_be_reached_are_left_out():
    data = straight_floor([{"id": "v", "start": "A"}])
    data["sites"] += [{"id": site, "x": 0, "y": k} for k, site in enumerate("DEFGH")]
    # D is a dead end, E leads in only, F, G and H reach each other and nothing else
    data["edges"] += [{"a": a, "b": b, "one_way": True} for a, b in ("CD", "EA")]
    data["edges"] += [{"a": a, "b": b} for a, b in ("FG", "GH")]
    assert find_task_places(Layout.from_dict(data)) == [(1,), (2,)]
    data["edges"] = data["edges"][:1]
    with pytest.raises(InputError, match=r"^sites: 1 of 7 can be reached"):
        find_task_places(Layout.from_dict(data))


def test_every_draw_is_keyed():
    layout = acerl_np.load_layout("dmh")
    longer = generate_record(layout, 25, seed=5, index=1)
    assert longer.rows()[:20] == generate_record(layout, 20, seed=5, index=1).rows()
    keys = [{"seed": seed, "index": index} for seed in (0, 5) for index in (0, 1)]
    assert len({generate_record(layout, 20, **key).content_hash for key in keys}) == 4


# Records looked through


def test_check_counts_what_nobody_can_do(tmp_path):
    layout = floor(
        {"id": "v", "start": "A", "speed": 2, "capacity": 1},
        {"id": "w", "start": "C", "speed": 1, "capacity": 3},
    )
    lines = [
        "t0,B,C,0,3,1",  # v: 6 m in 3 s
        "t1,B,C,0,3,2",  # only w: 6 s
        "t2,A,B,4.5,5,0",  # v: tick 5 + 5 = 10, due at 9.5
        "t3,A,B,4.5,5.5,0",
        "t4,C,B,20,99,4",  # too heavy for both
    ]
    path = write(tmp_path / "tasks.csv", HEADER + ",demand", *lines)
    refused(path, ["line 6: demand"], load_instance, path, layout=layout)
    instance = load_instance(path, layout=layout, servable=False)
    found = check_record(instance)
    assert (found.n_tasks, found.first, found.last, found.servable) == (5, 0, 20, False)
    assert found.equal_arrivals == ("t0", "t1", "t2", "t3")
    assert (found.too_heavy, found.hopeless) == (("t4",), ("t1", "t2"))
    assert found.unreached == found.dead_ends == ()
    assert found.load == measure_load(instance) and found.load.too_heavy == (4,)


def test_check_agrees_with_what_is_refused():
    data = straight_floor([{"id": "v", "start": "A"}])
    data["edges"] += [{"a": a, "b": b, "one_way": True} for a, b in ("CD", "FA")]
    data["sites"] += [{"id": name, "x": 0, "y": k} for k, name in enumerate("DEF", 1)]
    layout = Layout.from_dict(data)
    for tasks, unreached, dead_ends, words in (
        ("AB BC", "", "", ""),
        ("AB BD", "", "t1", "row 2: pickup: 'A' cannot be reached from 'D'"),
        ("AB EB", "t1", "t0 t1", "row 2: pickup: 'E' cannot be reached from 'A'"),
        ("AB BE", "t1", "t1", "row 2: delivery: 'E' cannot be reached from 'B'"),
        ("AB BF", "t1", "", "row 2: delivery: 'F' cannot be reached from 'B'"),
    ):
        rows = [make_task(f"t{k}", *ends, k, 99) for k, ends in enumerate(tasks.split())]
        found = check_record(Instance.from_rows("rows", layout, rows, servable=False))
        assert list(found.unreached) == unreached.split()
        assert list(found.dead_ends) == dead_ends.split()
        assert found.servable == (not words)
        make = partial(Instance.from_rows, "rows", layout)
        assert not words or list_unrefused(make, [(rows, words)]) == []


def test_repairs_are_no_time_of_the_fleet():
    breakdowns = [(2, 4), (5, 90), (9, 0), (18, 9), (50, 1)]
    vehicle = break_down(FLEET[0], *breakdowns)
    rows = [make_task("t0", "A", "B", 4, 9), make_task("t1", "A", "B", 20, 30)]
    found = check_record(record(*rows, layout=floor(vehicle)))
    assert found.n_breakdowns == 4
    # of 46 s 2 are still repair, 5 falls into that repair, 18 leaves 9
    assert (found.load.span, found.load.fleet_time) == (46, 46 - 2 - 9)
    # two ways of 10 m; the first task is approached from A, the second from B or A
    assert found.load.loaded == pytest.approx(20 / 35)
    assert found.load.offered == pytest.approx((20 + (0 + 10)) / 35)
    vehicle = floor(break_down(FLEET[0], (90, 30), (0, 5), (95, 1), (200, 1))).vehicles[0]
    times = [measure_service_time(vehicle, *span) for span in ((2, 100), (5, 90), (91, 92))]
    assert times == [98 - 3 - 10, 85, 0]


def test_check_shows_one_table_per_record(empty, run):
    hall(empty, one=[HEADER, f"t0,A,B,{DAY},1"], breakdowns=[BROKEN, f"v,{DAY},1"])
    [row] = csv.DictReader(run("records check one.csv --format csv").out.splitlines())
    # 10 m by two vehicles of 1 m/s, approached from A or C, within a second of which one is repaired
    expected = {"record": "one", "first_arrival_s": "0.0", "begins": DAY, "breakdowns": "1"}
    expected |= {"hopeless": "1", "hopeless_tasks": "t0", "vehicles": "2"}
    expected |= {"span_s": "1.0", "fleet_time_s": "1.0"}
    assert row | expected == row
    assert float(row["offered_load"]) == pytest.approx(18)
    assert float(row["offered_load_without_approaches"]) == pytest.approx(10)
    out = run("records check one.csv").out
    assert "from 2024-05-06 07:00:00" in out and "18.00  10.00 without approaches" in out
    for names in ("DMH-01", "DMH-01 DMH-02"):
        data = json.loads(run(f"records check {names} --format json").out)
        found = [(item["record"], item["tasks"], item["usable"]) for item in data]
        assert found == [(name, 30, True) for name in names.split()]


# Offered load


def load_of(*rows, **keys):
    """The load of tasks on the floor of one vehicle that starts at A."""
    layout = Layout.from_dict(straight_floor(FLEET[:1]) | keys)
    return measure_load(record(*rows, layout=layout, servable=False))


def test_load_is_what_a_hand_calculation_says():
    vehicles = [{"id": f"v{k}", "start": "A", "speed": 1 + 2 * k} for k in range(2)]
    # Ways of 16 and 10 m, approached from A: 0 and 10 m. A fleet of 1 and 3 m/s, 25 s.
    rows = [make_task("t0", "A", "C", 5, 15, handling_time=3), make_task("t1", "B", "A", 0, 25)]
    load = load_of(*rows, vehicles=vehicles)
    assert (load.span, load.fleet_time, load.too_heavy) == (25, 50, ())
    assert load.loaded == pytest.approx(26 / (4 * 25) + 3 / 50)
    assert load.offered == pytest.approx((26 + 10) / (4 * 25) + 3 / 50)
    # A third task: two of three approaches from A, one from the mean of C, A, C.
    load = load_of(*rows, make_task("t2", "B", "C", 7, 1), vehicles=vehicles)
    at_a, at_b = (2 * 0 + 1 * (16 + 0 + 16) / 3) / 3, (2 * 10 + 1 * (6 + 10 + 6) / 3) / 3
    assert load.offered == pytest.approx((26 + 6 + at_a + 2 * at_b) / (4 * 25) + 3 / 50)
    # In whole metres where the layout counts so.
    sites = [{"id": site, "x": x, "y": 0} for site, x in zip("ABC", (0, 10.7, 0), strict=True)]
    cut = load_of(make_task("t", "A", "B", 0, 20), sites=sites, truncate_distances=True)
    assert cut.loaded == 10 / 20
    # Without what has no way.
    sites = [*straight_floor([])["sites"], {"id": "D", "x": 0, "y": 1}]
    ends = enumerate(("AB", "AD", "DA"))
    load = load_of(*(make_task(f"t{k}", *pair, 0, 40) for k, pair in ends), sites=sites)
    assert load.loaded == 10 / 40 and np.isfinite(load.offered)


def limited(limit, **keys):
    data = straight_floor([{"id": "v", "start": "A", "speed": 2}], **keys)
    data["edges"][0]["max_speed"] = limit
    return Layout.from_dict(data)


def test_speed_limits_add_to_load_and_due_times():
    # A to B takes 20 s at 0.5 m/s, not 5; B to C 3 s. The way back to B for the second task is no longer: it
    # is approached from A and from C, half each: 10 m and 6 m, with 15 s lost in the first case.
    rows = [make_task("t0", "A", "C", 0, 50), make_task("t1", "B", "C", 0, 50)]
    load = measure_load(record(*rows, layout=limited(0.5)))
    assert load.loaded == pytest.approx((16 / 2 + 15 + 6 / 2) / 50)
    # Approaches: of t0 from A, 0, and from C, 16 m and 15 s; of t1 from A and from C.
    approach = ((0 + 16 / 2 + 15) + (10 / 2 + 15 + 6 / 2)) / 2
    assert load.offered == pytest.approx(load.loaded + approach / 50)
    late = make_task("t", "A", "B", 0, 10)
    found = [check_record(record(late, layout=limited(limit))).hopeless for limit in (5.0, 0.5)]
    assert found == [(), ("t",)]
    free, slow = (
        generate_record(limited(limit), 20, sites=["A", "B", "C"], seed=3) for limit in (5.0, 0.5)
    )
    assert (free.pickup == slow.pickup).all() and (slow.expiry >= free.expiry).all()
    over = np.isin(free.pickup, 0) | np.isin(free.delivery, 0)  # with a ride between A and B
    assert (slow.expiry - free.expiry)[over].min() >= 2 * 15


def test_heavy_tasks_count_against_those_that_may_carry_them():
    vehicles = [{"id": f"v{k}", "start": "A", "capacity": k + 1} for k in range(3)]
    demands = {"t0": 3, "t1": 3, "u0": 1, "u1": 1, "u2": 1}
    rows = [make_task(name, "A", "B", 0, 100, demand=x) for name, x in demands.items()]
    rows += [make_task("w", "A", "B", 0, 1, demand=2.5), make_task("x", "A", "B", 0, 1, demand=4)]
    load = load_of(*rows, vehicles=vehicles)
    # Three of more than 2 for one vehicle; not six for three of them.
    assert (load.loaded, load.too_heavy) == (3 * 10 / 100, (6,))
    load = load_of(*rows, vehicles=[*vehicles, {"id": "z", "start": "A"}])
    assert load.loaded == pytest.approx(4 * 10 / 200) and load.too_heavy == ()


# What floors and records share


def test_a_record_that_nobody_can_finish_is_not_played():
    """A kernel would wait for ever, or call it finished."""
    data = straight_floor(FLEET[:1])
    data["sites"] += [{"id": "D", "x": 0, "y": 1}]
    cases = []
    for ends, message in (
        ("DA", "'t1': pickup: 'D' cannot be reached from 'A'"),
        ("AD", "'t1': delivery: 'D' cannot be reached from 'A'"),
    ):
        rows = [make_task("t0", "B", "A", 0, 50), make_task("t1", *ends, 0, 50)]
        instance = Instance.from_rows("cut", Layout.from_dict(data), rows, servable=False)
        cases.append(([instance], f"task {message}"))
    for play in (build_problem, Simulator, lambda x: acerl_np.evaluate_policy("NVF", x, trials=1)):
        assert list_unrefused(play, cases, RecordError, "cut: ") == []


def test_another_fleet_has_its_own_hash_and_breakdowns_are_none_of_it():
    layout = floor(FLEET[0])
    moved = layout.with_fleet(replace(item, start="C") for item in layout.vehicles)
    assert moved.floor_hash == layout.floor_hash and moved.fleet_hash != layout.fleet_hash
    broken = layout.with_breakdowns({"v": [Breakdown(1, 2)]})
    assert broken.fleet_hash == layout.fleet_hash and hash(broken) != hash(layout)
    assert len({layout, Layout.from_dict(layout.to_dict())}) == 1


def test_fleets_of_one_floor_keep_their_own_limits():
    slow = limited(0.5)
    fast = slow.with_fleet(replace(item, speed=0.75) for item in slow.vehicles)
    records = [record(make_task("t", "A", "B", 0, 9), layout=item) for item in (slow, fast)]
    for order in (records, records[::-1], records[:1], records[1:]):
        found = acerl_np.evaluate_policy("FCFS", order, trials=1).makespan
        assert found.tolist() == [[20.0]] * len(order)


# Past assignments


def assign(tmp_path, layout, rows, *lines, header="task,vehicle,start"):
    instance = Instance.from_rows("day", layout, rows)
    path = write(tmp_path / "assignments.csv", header, *lines)
    return read_assignments(path, instance)


def traced_rows():
    times = {"t0": ("BC", 0, 20), "t1": ("AB", 3.5, 10), "t2": ("CB", 16.2, 4)}
    return [make_task(name, *ends, *more) for name, (ends, *more) in times.items()]


def test_a_replay_stops_at_its_horizon(tmp_path):
    assignments = assign(tmp_path, floor(), traced_rows(), "t0,v,0", "t1,v,0", "t2,w,99")
    played = replay_assignments(assignments, horizon=30)
    assert np.isnan([played.makespan, played.tardiness]).all()
    # v is on its way with t1 and w has not begun.
    np.testing.assert_array_equal(played.start, [0, np.nan, np.nan])
    np.testing.assert_array_equal(played.finish, [16, np.nan, np.nan])
    write_schedule(tmp_path / "times.csv", played)
    rows = list(csv.DictReader((tmp_path / "times.csv").read_text().splitlines()))
    assert [row["finish"] for row in rows] == ["16.0", "", ""]


class SlowReplay(full.Episode):
    """Every tick is stepped, and at each one every vehicle looks whether its next task is due."""

    n_begun = 0

    def advance(self):
        pass

    def play(self, plan):
        """Plan: (task, vehicle, start) in the order in which a vehicle takes its tasks."""
        while not self.done:
            finished = {task.name for task in self.tasks if task.finished}
            waiting = {task.name: task for task in self.task_pool}
            for index, vehicle in enumerate(self.vehicles):
                left = [(x, at) for x, v, at in plan if v == index and x not in finished]
                if left and vehicle.status == full.IDLE:
                    name, start = left[0]
                    if self.time >= start and name in waiting:
                        self.begin_service(vehicle, waiting[name])
                        self.n_begun += 1
            self.time += 1
            self.process_tick()


@pytest.mark.oracle
@given(worlds(), st.data())
def test_replays_as_the_slow_one_does(tmp_path_factory, world, data):
    instance = world.instance()
    vehicles = instance.layout.vehicles
    plan = []
    for name, demand in zip(instance.tasks, instance.demand, strict=True):
        able = [v for v, item in enumerate(vehicles) if demand <= (item.capacity or np.inf)]
        start = data.draw(st.integers(0, 240)) / 4
        plan.append((name, data.draw(st.sampled_from(able)), start))
    plan = data.draw(st.permutations(plan))
    path = tmp_path_factory.mktemp("plans") / "plan.csv"
    lines = [f"{task},{vehicles[v].id},{start}" for task, v, start in plan]
    write(path, "task,vehicle,start", *lines)
    slow = SlowReplay(world.layout, world.rows)
    slow.play(sorted(plan, key=lambda row: row[2]))
    played = replay_assignments(read_assignments(path, instance))
    served = (played.assignments.vehicle, played.start, played.finish)
    rows = list(zip(instance.tasks, *(column.tolist() for column in served), strict=True))
    assert rows == slow.schedule
    assert (played.makespan, played.decisions) == (slow.makespan, slow.n_begun)
    assert played.tardiness == pytest.approx(slow.tardiness, abs=1e-9)


def test_assignments_may_hold_timestamps_and_finishes(tmp_path):
    first, second = "2024-05-06T07:00:20", "2024-05-06T07:00:13.5"
    rows = [make_task("t0", "B", "C", "2024-05-06T07:00:00", first)]
    rows += [make_task("t1", "A", "B", "2024-05-06T07:00:03.5", second)]
    lines = [
        "t0;v;2024-05-06T06:59:50;",  # a clock that is slow: before the first arrival
        "t1;v;2024-05-06T07:00:30,5;2024-05-06T07:01",
    ]
    assignments = assign(tmp_path, floor(), rows, *lines, header="task;vehicle;start;finish")
    write_schedule(tmp_path / "times.csv", replay_assignments(assignments))
    assert (tmp_path / "times.csv").read_text().splitlines() == [
        "task,vehicle,arrival,due,planned_start,start,planned_finish,finish,tardiness",
        "t0,v,0.0,20.0,-10.0,0.0,,16.0,0.0",
        "t1,v,3.5,13.5,30.5,31.0,60.0,57.0,43.5",
    ]


REFUSED_ASSIGNMENTS = [
    (["t0,v,0", "t9,v,0"], "line 3: task ... 't9' ... 'day'"),
    (["t0,x,0"], "line 2: vehicle ... 'x' ... 'hall'"),
    (["t0,v,0", "t1,w,0", "t0,w,5"], "line 4: task ... 't0' ... line 2"),
    (["t0,v,0", "t1,v,0"], "line 3: task ... 't2' ... record's 3 tasks"),
    ([], "line 1: task ... 't0' and 2 more"),
    (["t0,v,"], 'line 2: start: read "" ... timestamp'),
    (["t0,v,-1"], 'line 2: start: read "-1"'),
    ([f"t0,v,{DAY}"], f"line 2: start ... {DAY} ... number of seconds"),
    (["t0,v,0", f"t1,v,{DAY}"], "line 3: start ... as on line 2"),
    (["t0,w,0"], "line 2: vehicle: 'w' has a capacity of 1 ... demand of 2"),
]


def test_assignments_that_are_refused(tmp_path):
    rows = traced_rows()
    rows[0]["demand"] = 2
    day = Instance.from_rows("day", floor(FLEET[0], {**FLEET[1], "capacity": 1}), rows)
    cases = [(["task,vehicle,start", *lines], words) for lines, words in REFUSED_ASSIGNMENTS]
    cases += [(["task,vehicle,begin", "t0,v,0"], "line 1: missing column 'start' ... begin")]
    load = partial(read_assignments, instance=day)
    assert list_unrefused_files(tmp_path / "assignments.csv", cases, load) == []


def test_replay_and_evaluate_show_past_assignments(empty, run):
    day = [HEADER, "t0,B,C,0,20", "t1,A,B,3.5,10", "t2,C,B,16.2,4"]
    past = ["task,vehicle,start", "t0,v,2.5", "t1,v,5", "t2,w,0"]
    hall(empty, day=day, past=past)
    words = "evaluate EDD STD --on day.csv --trials 2 --format json --past past.csv"
    found = run(f"{words} --details --out all")
    line = "past: tasks start 10.5 s after the recorded start on average, at most 17.0 s"
    assert line in found.err
    assert len(Path("all/schedule-day.csv").read_text().splitlines()) == 4
    table = json.loads(found.out)
    assert [row["policy"] for row in table[::2]] == ["EDD", "STD", "past"]
    assert (table[4]["record"], table[4]["makespan_s"]) == ("day", 45.0)
    assert table[4]["tardiness_s"] == pytest.approx(11.4, abs=0.05)
    assert Path("all/trials.csv").read_text().count("\npast,day,") == 2
    line = "--past: read 2 files of assignments for 1 records"
    assert line in run(f"{words} --past past.csv", 2).err
    write(Path("past.csv"), "task,vehicle,start", "t0,v,2.5")
    assert "past.csv: line 2: task: the file ends without 't1'" in run(words, 2).err


def test_a_file_of_breakdowns_among_the_records_is_none_of_them(empty, run):
    """As by "*.csv" in a folder where both stand; alone it is refused as any other table."""
    write(Path("breakdowns.csv"), BROKEN, "v0,5,60")
    write(Path("own.csv"), HEADER, "a,st1,st5,0,500")
    out = run("records check breakdowns.csv own.csv --layout dmh --format json").out
    assert [table["record"] for table in json.loads(out)] == ["own"]
    assert "own" in run("floor check dmh --on breakdowns.csv,own.csv").out
    assert "breakdowns.csv: line 1" in run("records check breakdowns.csv --layout dmh", 2).err
