"""`acerl-np whatif`: tables, answers, the picture, and what is refused."""

import argparse
import csv
import html
import io
import json
import re
from pathlib import Path

import pytest
from tables_and_refusals import list_unrefused

import acerl_np
from acerl_np.commands.shared.reporting import write
from acerl_np.commands.whatif import VALUES, parse_factors, parse_values
from acerl_np.evaluation.whatif import KNOBS

UNREADABLE = ["", "x", "3:", "5:3", "3:5:0", "-1", "1:2:3:4", "nan", "inf", "1:2:-1"]
UNREADABLE += ["0:1e9", "1:inf"]
WEEK = "whatif --on week.csv,next.csv --vehicles 1:4"


def test_values_are_read():
    assert list(VALUES) == list(KNOBS)
    assert parse_values("3:6") == [3, 4, 5, 6]
    assert parse_values("3:8:2,10") == [3, 5, 7, 10]
    assert parse_factors("0.8:1.4") == [0.8, 0.95, 1.1, 1.25, 1.4]
    assert parse_factors("1:2") == [1, 1.25, 1.5, 1.75, 2]
    assert parse_factors("0.8:1.1:0.1") == [0.8, 0.9, 1, 1.1]
    assert parse_factors("1.5") == parse_factors("1.5:1.5") == [1.5]
    cases = dict.fromkeys(UNREADABLE, "expected values such as 3:8").items()
    assert list_unrefused(parse_values, cases, argparse.ArgumentTypeError) == []


def test_the_table_holds_the_base_and_the_answer(folder, run):
    found = run(f"{WEEK} --target late<2% --objective tardiness")
    lines = found.out.splitlines()
    assert lines[0].split()[:4] == ["vehicles", "policy", "tasks", "tardiness,"]
    assert [line.split()[0] for line in lines[2:14:3]] == ["1", "2", "3", "4"]
    assert [line.split()[1] for line in lines[2:5]] == ["best", "nearest", "assignment"]
    assert [line.endswith(" base") for line in lines[2:14:3]] == [False, True, False, False]
    assert "best baseline (nearest" in lines[5]
    assert "Means over 2 records, 1 trial of each, se: standard error over" in lines[14]
    chosen = "best baseline: chosen for each record by late on the others"
    assert lines[16].startswith(chosen)
    assert lines[17].startswith("late below 2 %, best baseline: reached with 1 vehicle (nearest)")
    assert "4/4 settings" in found.err.replace("\n", " ")


def test_call_backs_are_a_setting_like_others(folder, run):
    words = "whatif nearest --on week.csv --commitment assignment,pickup --format json"
    rows = {row["commitment"]: row for row in json.loads(run(words).out)}
    assert list(rows) == ["assignment", "pickup"] and rows["assignment"]["is_base"]
    late = run("evaluate nearest --on week.csv --commitment pickup --trials 1 --format json").out
    assert rows["pickup"]["makespan_s"] == json.loads(late)[0]["makespan_s"]
    assert "commitment: read 'load'" in run("whatif --on week.csv --commitment load", 2).err


def test_each_measure_has_one_column(folder, run):
    for words, titles in (
        ("--objective waiting", "waiting, s  late, %  worst, s  utilisation, %"),
        (
            "--objective makespan --target empty<40",
            "makespan, s  late, %  waiting, s  empty, %  worst, s  utilisation, %",
        ),
    ):
        header, _, first, *lines = run(
            f"whatif nearest --on week.csv --vehicles 4 {words}"
        ).out.splitlines()
        assert re.split(r"\s{2,}", header)[3:-1] == titles.split("  ")
        # The base has two vehicles and stands where it belongs.
        assert [first.split()[0], lines[0].split()[0]] == ["2", "4"] and first.endswith(" base")


def test_tables_for_programs_say_what_evaluate_says(folder, run):
    acerl_np.IndexPolicy.of_weights(approach=-1.0).save("index.npz")
    found = run(f"{WEEK} index.npz nearest --format json --target late<2%")
    rows = json.loads(found.out)
    assert "late below 2 %, index.npz: " in found.err
    assert [(row["vehicles"], row["policy"]) for row in rows[:3]] == [
        *((1, "index.npz"), (1, "nearest"), (2, "index.npz"))
    ]
    known = json.loads(
        run("evaluate index.npz nearest --on week.csv,next.csv --trials 1 --format json").out
    )
    means = {row["policy"]: row for row in known if row["record"] == "mean"}
    for row in (row for row in rows if row["is_base"]):
        assert row["vehicles"] == 2 and row["demand"] == row["speed"] == 1.0
        for name in ("makespan_s", "tardiness_s", "waiting_s", "late_share", "utilisation_share"):
            assert row[name] == pytest.approx(means[row["policy"]][name])
        assert row["waiting_change_s"] == row["waiting_change_error_s"] == 0.0
        assert row["makespan_error_s"] == means[row["policy"]]["makespan_error_s"]
    [header, *lines] = csv.reader(io.StringIO(run(f"{WEEK} index.npz --format csv").out))
    assert header == list(rows[0]) and len(lines) == 16
    named = {line[header.index("policy")] for line in lines}
    assert named == {"index.npz", "best baseline", "nearest", "assignment"}


def test_shifts_are_judged_by_late_tasks(folder, run):
    Path("hour.csv").write_text(Path("week.csv").read_text().replace("t1,B,C,3,", "t1,B,C,4000,"))
    assert "late+0.05*tardiness" in run("whatif --on hour.csv --speed-factor 0.5,2").out
    out = run("whatif --on week.csv --speed-factor 0.5,2").out
    assert "makespan, s" in out and "too few for a standard error" in out
    assert "best baseline: nearest, as there is one record" in out


def test_pages_to_hand_on(folder, run, monkeypatch):
    # The words of whatever process calls the command are nobody's business.
    monkeypatch.setattr("sys.argv", ["/usr/bin/script", "--token", "s3cret"])
    words = "nearest EDD --on week.csv,next.csv"
    out = run(f"whatif {words} --vehicles 1:2 --target tardiness<5 --report what.html").out
    page = html.unescape(Path("what.html").read_text())
    answers = [line for line in out.splitlines() if line.startswith("tardiness below 5 s, ")]
    assert len(answers) == 2 and "<br>".join(answers) in page and "<td>EDD</td>" in page
    command = f"evaluate {words} --format json --trials 2 --report beside.html"
    out = run(command).out
    page = html.unescape(Path("beside.html").read_text())
    assert f"acerl-np {command}" in page and "s3cret" not in page
    write("plain.html", "A page", "of no command", {})
    assert "acerl-np" not in Path("plain.html").read_text()
    for row in json.loads(out):
        cell = f"<td>{row['policy']}</td><td>{row['makespan_s']:.1f}</td>"
        assert (cell in page) == (row["record"] == "mean")
    assert "Too few records to tell for makespan (" in page and "What the model leaves out" in page
    assert "exists; expected a new name" in run(f"evaluate {words} --report beside.html", 2).err


def test_a_picture_of_fleets_and_demands(folder, run):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    words = "whatif EDD nearest --on week.csv,next.csv --vehicles 1:40 --demand-factor 1,2"
    words += " --target tardiness<5"
    for name in ("fleet.png", "fleet.svg"):
        run(f"{words} --out {name}")
    svg = Path("fleet.svg").read_text()
    assert Path("fleet.png").read_bytes()[:4] == b"\x89PNG"
    texts = ["tardiness (s)", "utilisation (%)", "EDD, demand 2", "dashed: tardiness below 5 s"]
    assert [text for text in texts if text not in svg] == []
    run(f"{words} --out fleet.svg", 2)
    run(f"{words} --out fleet.svg --force")
    assert Path("fleet.svg").read_text() == svg
