"""Records as other systems export them, in the commands: what is said, pipes, conversion, several replays."""

import io
import json
import os
import sys
import threading
from dataclasses import replace

import pytest
from small_files import FILES

import acerl_np
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.problem.layout import lengthen
from acerl_np.problem.records import write_record

LINES = FILES["week.csv"].splitlines()
PAST = FILES["past.csv"].splitlines()
TRAIN = "--generations 1 --set population=2 --trials 0 --set hidden=2 --out run --force --quiet"


def text_of(lines):
    return "\n".join([*lines, ""])


def feed(monkeypatch, lines):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text_of(lines).encode())))


COMMANDS = {
    "records check IN": "<stdin>",
    "records make IN --magnitude 2 --out new --force": "<stdin>-n2",
    "records convert IN --out new.csv --force": "<stdin>",
    "replay IN --past past.csv --force": "browser): past.csv, makespan ",
    "floor check layout.json --on IN": "<stdin>",
    "evaluate EDD --on IN --trials 1": "Means over 1 record",
    "replay EDD IN --force": "browser): EDD, makespan ",
    f"train IN {TRAIN}": "run/policy.npz",
    "policy show index.npz --on IN": "pickup",
}


def make_index():
    acerl_np.IndexPolicy.of_weights(approach=-1.0).save("index.npz")


def test_a_dash_is_the_standard_input_and_pipes_are_read(folder, monkeypatch, run):
    make_index()
    for words, shown in COMMANDS.items():
        feed(monkeypatch, LINES)
        assert shown in run(words.replace("IN", "-")).out
        if os.path.isdir("/dev/fd") and words.startswith(("records", "eval")):  # noqa: PTH112
            read, write = os.pipe()
            os.write(write, text_of(LINES).encode())
            os.close(write)
            words = words.replace("IN", f"/dev/fd/{read} --layout layout.json")
            run(words.replace("new", "piped"))
            os.close(read)
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        writer = threading.Thread(target=lambda: (folder / "pipe").write_text(text_of(LINES)))
        writer.start()
        assert acerl_np.load_instance("pipe").n_tasks == 2
        writer.join()


def test_what_is_wrong_on_the_standard_input_is_named(folder, monkeypatch, run):
    (folder / "-").write_text(text_of(LINES))
    feed(monkeypatch, [])
    assert "<stdin>: the file is empty" in run("records check -", 2).err
    assert "week" not in run("records check ./-").out  # a file of that name
    feed(monkeypatch, [*LINES, "t2,A,A,0,1"])
    err = run("floor check layout.json --on -", 2).err
    assert err.startswith("acerl-np floor check: error: <stdin>: line 4: delivery")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"task\n\x81")))
    assert "<stdin>: line 2: byte 0x81" in run("records check -", 2).err
    monkeypatch.setattr(sys, "stdin", None)
    assert "<stdin>: the file is empty" in run("records check -", 2).err


def test_breakdowns_and_assignments_from_the_standard_input(folder, monkeypatch, run):
    words = "evaluate EDD --on week.csv --past past.csv --trials 1 --breakdowns"
    plain = run(f"{words} none").out
    # Two records, one stream: it is read once.
    feed(monkeypatch, FILES["broken.csv"].splitlines())
    assert run(f"{words} -").out == run(f"{words} broken.csv").out != plain
    feed(monkeypatch, FILES["broken.csv"].splitlines())
    run("records make week.csv --magnitude 2 --breakdowns - --out new")
    assert (folder / "new/breakdowns.csv").read_text() == FILES["broken.csv"]
    feed(monkeypatch, PAST)
    words = "evaluate EDD --on week.csv --past past.csv --trials 1"
    assert run(words.replace("past.csv", "-")).out == run(words).out
    feed(monkeypatch, PAST)
    assert "past" in run("evaluate EDD --on week.csv --trials 1 --past -").out
    feed(monkeypatch, PAST)
    shown = "EDD, makespan 26.0 s, tardiness 3.0 s; <stdin>, makespan 15.0 s"
    assert shown in run("replay EDD week.csv --past -").out


def test_ignored_columns_of_many_files_are_one_line(folder, run):
    for k in range(5):
        names = ["comment", "weight"] if k else ["comment"]
        lines = [f"{line},{','.join(names)}" for line in LINES]
        (folder / f"day{k}.csv").write_text(text_of(lines))
    err = run("records check " + " ".join(f"day{k}.csv" for k in range(5))).err
    assert err == "day0.csv, day1.csv, day2.csv, ... (5): columns ignored: comment, weight\n"
    (folder / "past.csv").write_text(text_of(f"{line},x" for line in PAST))
    err = run("evaluate EDD --on week.csv --trials 1 --past past.csv").err
    assert "past.csv: columns ignored: x\n" in err


DATED = [
    "Task;Pickup;Delivery;Arrival Time;Expiry Time;Order",
    "t1;B;C;06.05.2024 07:30;06.05.2024 07:40;4711",
    't0;A;B;06.05.2024 07:00;06.05.2024 07:10;"a;b"',
]


def test_the_date_format_is_in_a_mapping_of_every_command(folder, run):
    """And a column that is ignored is a line."""
    (folder / "dated.csv").write_text(text_of(DATED))
    words = "records convert dated.csv --date-format '%d.%m.%Y %H:%M' --out plain.csv"
    assert "mapping erp.toml" in run(f"{words} --write-mapping erp.toml").err
    starts = ["task;vehicle;start", "t0;v;06.05.2024 07:00", "t1;w;06.05.2024 07:31"]
    (folder / "past.csv").write_text(text_of(starts))
    make_index()
    for words in (*COMMANDS, "policy bound IN --effort 0.001"):
        words = words.replace("IN", "dated.csv")
        assert "--date-format" in run(words, 2).err
        err = run(f"{words} --mapping erp.toml").err
        told = [line for line in err.splitlines() if "ignored" in line]
        assert told == ["dated.csv: columns ignored: Order"]
    words = "evaluate EDD --on dated.csv --trials 1 --past past.csv"
    assert "past" in run(f"{words} --mapping erp.toml").out
    words = "replay EDD dated.csv --past past.csv --mapping erp.toml"
    assert "; past.csv, " in run(words).out
    (folder / "options.toml").write_text('mapping = "erp.toml"\ntasks = ["dated.csv"]\n')
    run(f"train --config options.toml {TRAIN}")


def test_convert_shows_what_was_understood(folder, run):
    (folder / "dated.csv").write_text(text_of(DATED), encoding="utf-8-sig")
    words = "records convert dated.csv --out new.csv --date-format '%d.%m.%Y %H:%M' --format json"
    [row] = json.loads(run(words).out)
    assert row == {
        "record": "dated",
        "columns_separated_by": "semicolon",
        "encoding": "utf-8",
        "header": "line 1",
        "columns_used": "task, pickup, delivery, arrival_time, expiry_time",
        "columns_ignored": "Order",
        "arrivals": "dates as %d.%m.%Y %H:%M; task t1: 06.05.2024 07:30 -> 1800 s",
        "expiries": "dates as %d.%m.%Y %H:%M; task t1: 06.05.2024 07:40 -> 600 s after the arrival",
        "tasks": 2,
        "first_arrival_s": 0.0,
        "last_arrival_s": 1800.0,
        "time_zero": "2024-05-06T07:00:00",
    }
    assert (folder / "new.csv").read_text() == text_of(
        [LINES[0], "t0,A,B,2024-05-06T07:00:00,600", "t1,B,C,2024-05-06T07:30:00,600"]
    )
    (folder / "clock.csv").write_text(text_of([LINES[0], "t0,A,B,07:30,60", "t1,B,C,8:00:30,61"]))
    out = run("records convert clock.csv --out clock-new.csv").out
    for text in ("times of day; task t0: 07:30 -> 0 s", "1830 s", " 07:30:00\n", " none\n"):
        assert text in out
    assert "t1,B,C,08:00:30,61\n" in (folder / "clock-new.csv").read_text()
    (folder / "unix.csv").write_text(text_of([LINES[0], "t0,A,B,1714980600,60"]))
    out = run("records convert unix.csv --out unix-new.csv").out
    assert "seconds since 1970; task t0: 1714980600 -> 0 s" in out
    assert "seconds; task t0: 60 -> 60 s" in out
    assert "second 0" in run("records convert week.csv --out week-new.csv").out


def test_past_assignments_of_several_records_are_a_row(folder, run):
    (folder / "late.csv").write_text(text_of([*LINES[:2], "t1,B,C,30,20"]))
    words = "evaluate EDD --on week.csv,late.csv --past past.csv,past.csv --trials 1 --format json"
    found = run(words)
    rows = {row["record"]: row for row in json.loads(found.out) if row["policy"] == "past"}
    assert list(rows) == ["week", "late", "mean"]
    for name in ("makespan_s", "tardiness_s", "late_share"):
        middle = (rows["week"][name] + rows["late"][name]) / 2
        assert rows["mean"][name] == pytest.approx(middle)
    for told in ("past: tasks start ", " s after the recorded start on average"):
        assert told in found.err


def test_the_past_stands_as_it_was_and_others_drive_as_slowly(folder, run):
    """A day that was driven 1.3 times as slowly as its floor says, with its finishes."""
    floor = acerl_np.load_layout("supply-loop")
    shift = acerl_np.generate_shift(floor, hours=5.0, scale=0.5, name="day")
    slow = replace(shift, layout=lengthen(floor, 1.3))
    trips = trace_policy("nearest", slow).trips
    rows = [
        f"{shift.tasks[x.task]},{floor.vehicles[x.vehicle].id},{x.start},{x.end}" for x in trips
    ]
    (folder / "served.csv").write_text(text_of(["task,vehicle,start,finish", *rows]))
    write_record(shift, "day.csv")
    words = "evaluate nearest EDD --on day.csv --layout supply-loop --past served.csv --trials 1"
    found = run(f"{words} --format json --report page.html")
    mean = {row["policy"]: row for row in json.loads(found.out) if row["record"] == "mean"}
    assert list(mean) == ["nearest", "EDD", "past, as simulated", "past, as it was"]
    own = acerl_np.evaluate_policy("nearest", slow, trials=1)
    assert mean["past, as it was"]["worst_s"] == pytest.approx(own.worst[0, 0])
    for row in (mean["nearest"], mean["past, as simulated"]):
        assert row["makespan_s"] == pytest.approx(own.makespan[0, 0], rel=0.01)
    assert "Driving took 1.3" in found.err and "all that is simulated drives" in found.err
    page = (folder / "page.html").read_text()
    assert "late+0.05*tardiness" in page and "past, as it was" in page
    # Of a few trips nothing is told, and nothing changed.
    few = "evaluate nearest --on week.csv --past past.csv --trials 1"
    assert "Driving took" not in run(few).out
