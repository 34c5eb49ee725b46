"""The program as users call it: its doors, its help, evaluations, and what is compiled ahead."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from machine import needs_jit
from tables_and_refusals import HEADER, read_rows, write
from worlds import make_task

import acerl_np
from acerl_np.problem.records import write_record
from acerl_np.support import log

SMALL = ["--generations", "3", "--set", "population=8", "--set", "hidden=6", "--trials", "2"]


@needs_jit
def test_both_doors_are_one_program(empty, monkeypatch, capsys):
    """It writes everything, and shows the paper's figures beside it."""
    for module, words, folder in (("acerl_np.train", [], "a"), ("acerl_np", ["train"], "b")):
        # Imported already, it would run again with a warning.
        monkeypatch.delitem(sys.modules, "acerl_np.train", raising=False)
        monkeypatch.setattr(sys, "argv", [module, *words, *SMALL, "--out", folder])
        with pytest.raises(SystemExit) as caught:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        out, err = capsys.readouterr()
        assert caught.value.code == 0, err
        line = next(line for line in out.splitlines() if line.startswith("DMH-01"))
        assert line.split()[-2:] == ["1797.8", "29.5"]
        assert "generation 3/3" in err and "within limit" in err and "left" in err
        # A picture, too, where matplotlib is installed.
        written = {"policy.npz", "run.npz", "config.json", "curves.csv", "history.csv"}
        found = {path.name for path in Path(folder).iterdir()} - {"curves.png"}
        assert found == {"results.csv", *written}
    rows = read_rows("a/history.csv")
    assert [row["generation"] for row in rows] == ["1", "2", "3"]
    assert sum(int(rows[0][f"DMH-{k:02d}"]) for k in range(1, 9)) == 8
    assert json.loads(Path("a/config.json").read_text())["config"]["population"] == 8
    assert acerl_np.Policy.load("a/policy.npz").hidden == (6,)
    assert Path("a/policy.npz").read_bytes() == Path("b/policy.npz").read_bytes()


def test_a_default_folder_is_never_reused(empty, run):
    for _ in range(2):
        run(f"train DMH-01 {' '.join(SMALL)} --generations 0 --quiet --trials 0")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["tasks-seed0", "tasks-seed0-2"]


def test_evaluate_compares_policies_and_writes_every_trial(empty, run):
    config = acerl_np.Config(generations=0, hidden=(2,))
    acerl_np.ACERL([acerl_np.load_instance("DMH-01")], config).policy.save("best.csv")
    words = "evaluate ./best.csv edd nearest --on DMH-01,DMH-02 --trials 3 --format"
    rows = read_rows(run(f"{words} csv --out all").out)
    labels = ["./best.csv", "EDD", "nearest", "hindsight"]
    cells = {(row["policy"], row["record"]): row for row in rows}
    assert list(cells) == [(x, record) for x in labels for record in ("DMH-01", "DMH-02", "mean")]
    second = acerl_np.load_instance("DMH-02")
    expected, row = acerl_np.evaluate_policy("EDD", second, trials=3), cells["EDD", "DMH-02"]
    for name in ("makespan", "tardiness", "waiting"):
        assert float(row[f"{name}_s"]) == pytest.approx(getattr(expected, name).mean())
    played, row = acerl_np.evaluate_policy("nearest", second, trials=1), cells[labels[2], "DMH-02"]
    assert float(row["makespan_s"]) == played.makespan[0, 0]
    trials = read_rows("all/trials.csv")
    assert len(trials) == 3 * 2 * 3
    first = ["policy", "instance", "trial", "makespan", "tardiness", "satisfied"]
    assert list(trials[0])[:6] == first
    for row in trials:
        assert int(row["satisfied"]) == (float(row["tardiness"]) < 50.0)
        for name in ("late", "utilisation", "empty"):
            assert 0.0 <= float(row[f"{name}_share"]) <= 1.0
    assert float(trials[-1]["waiting_s"]) == played.waiting[0, 0]
    for form in ("markdown", "text"):
        run(f"{words} {form}")
    assert json.loads(run(f"{words} json").out)[3]["policy"] == "EDD"


def test_evaluate_writes_every_task_of_trials_that_differ(empty, run):
    own = [
        f"t{k},st1,st{2 + k % 3},2024-05-06 07:0{k}:30,{100 if k % 2 else 900},{k % 2}"
        for k in range(8)
    ]
    write(Path("own"), f"{HEADER},priority", *own)
    write(Path("past.csv"), "task,vehicle,start", *(f"t{k},v1,{k}" for k in range(8)))
    words = "evaluate MIX nearest --on own --layout dmh --past past.csv --trials 3"
    run(f"{words} --objective makespan@1,5 --details --out all")
    fleet, tasks = read_rows("all/vehicles.csv"), read_rows("all/tasks.csv")
    assert sum(int(row["tasks"]) for row in fleet) == 8 * 5 and len(fleet) == 3 * 5
    assert {row["lowest_level_share"] for row in fleet} == {""}
    trials = {(row["policy"], row["trial"]): row for row in read_rows("all/trials.csv")}
    played = {(row["policy"], row["trial"]) for row in tasks}
    # The baseline draws nothing, and what was done is done.
    assert played == {*(("MIX", str(k)) for k in range(3)), ("nearest", "0"), ("past", "0")}
    for policy, trial in played:
        own = [row for row in tasks if (row["policy"], row["trial"]) == (policy, trial)]
        assert [row["task"] for row in own] == [f"t{k}" for k in range(8)]
        assert {row["time_zero"] for row in own} == {"2024-05-06T07:00:30"}
        weight = [1.0 + 4.0 * float(row["priority"]) for row in own]
        figures = trials[policy, trial]
        for name, key in (("waited_s", "waiting_s"), ("late_s", "tardiness")):
            mean = np.average([float(row[name]) for row in own], weights=weight)
            assert mean == pytest.approx(float(figures[key]))
        assert max(float(row["delivered_s"]) for row in own) == float(figures["makespan"])
        for row in own:
            names = ("arrival", "assigned", "picked_up", "delivered")
            times = [float(row[f"{name}_s"]) for name in names]
            assert times == sorted(times)
            assert float(row["waited_s"]) == times[2] - times[0]
            assert float(row["late_s"]) == max(0.0, times[3] - float(row["due_s"]))
    # An episode that was stopped leaves the rest empty.
    run("evaluate nearest --on own --layout dmh --horizon 200 --details --out cut")
    cut = read_rows("cut/tasks.csv")
    assert {bool(row["vehicle"]) for row in cut} == {False, True}
    assert {row["delivered_s"] for row in cut if not row["vehicle"]} == {""}


@needs_jit
def test_references_of_own_records_join_the_table(empty, run):
    source = acerl_np.load_instance("DMH-01")
    own = acerl_np.Instance.from_rows("own", source.layout, source.rows()[:4])
    write_record(own, Path("own.csv"))
    run("policy bound own.csv --layout dmh --effort 0.001 --out best.json")
    words = "evaluate EDD nearest --on own.csv --layout dmh --format json --trials 2"
    assert json.loads(run(words).out)[-1]["policy"].startswith("nearest")
    found = run(f"{words} --references best.json")
    table = json.loads(found.out)
    assert table[-1]["policy"] == "hindsight"
    assert table[3]["of_the_way_share"] in (0.0, None)
    assert "best.json" not in found.err
    # What fits no record is said, and does not hide a bundled reference that does.
    missing = (
        "best.json: no reference for own (other tasks, floor, breakdowns, objective or cost limit)"
    )
    for more in ("--cost-limit 40", "--breakdowns none"):
        assert missing in run(f"{words} --references best.json {more}").err.splitlines()
    stored = json.loads(Path("best.json").read_text())
    stored["references"][0] |= {"content_hash": source.content_hash, "goal": {"cost_limit": 3}}
    Path("best.json").write_text(json.dumps(stored))
    found = run("evaluate EDD --on DMH-01 --trials 1 --format json --references best.json")
    assert "best.json" not in found.err
    assert json.loads(found.out)[-1]["policy"] == "hindsight"


def test_perturbed_suites_are_what_the_command_makes(empty, run):
    words = "records make dmh-train --out . --magnitude"
    run(f"{words} 5 --names DMH-{{k+8}}")
    for magnitude in (10, 15, 20, 25, 30):
        run(f"{words} {magnitude} --names DMH-N{magnitude}-{{k}}")
    bundled = Path(acerl_np.__file__).parent.parent / "instances" / "dmh"
    made = sorted(Path().glob("*.csv"))
    assert len(made) == 48
    for path in made:
        assert path.read_text() == (bundled / path.name).read_text()


@needs_jit
def test_what_takes_time_is_compiled_ahead(empty, run, monkeypatch):
    acerl_np.warm_up("rules")
    done = []

    def compile_part(part):
        done.append(part)
        log.note_compiling(is_kept=True)

    monkeypatch.setattr("acerl_np.warm.warm_up", compile_part)
    for words, parts in (
        ("train --generations 0 --trials 0", ["training"]),
        ("train --generations 0 --trials 0 --quiet --force", ["training"]),
        ("train --generations 0 --trials 0 --preset best --force", ["best"]),
        ("policy bound DMH-01 --effort 0.001", ["search"]),
        ("evaluate EDD --trials 1 --cost-limit 49", []),
        ("records check DMH-01", []),
    ):
        done.clear()
        monkeypatch.setattr(log, "_compiled", 0)
        err = run(f"{words} --out run" if words.startswith("train") else words).err
        assert done == parts
        spoken = bool(parts) and "--quiet" not in words
        assert err.count("acerl_np: compiling kernels that this needs") == spoken
        assert err.count("acerl_np: compiled ") == spoken


@needs_jit
def test_a_replay_compiles_nothing_that_was_not_compiled_ahead(empty, run):
    from acerl_np.kernels.dispatching.drawn import play_assignments

    rows = (f"task_{k},v{k % 3},{k}" for k in range(30))
    write(Path("past.csv"), "task,vehicle,start", *rows)
    acerl_np.warm_up("replay")
    ahead = list(play_assignments.signatures)
    assert len(ahead) == 1
    assert "compil" not in run("replay DMH-01 --past past.csv").err
    assert play_assignments.signatures == ahead


def test_importing_changes_nothing_and_is_quick_to_find_names():
    code = (
        "import os, sys; before = dict(os.environ); import acerl_np; "
        "assert 'numba' not in sys.modules; acerl_np.Simulator; "
        "assert dict(os.environ) == before; print(len(dir(acerl_np)))"
    )
    root = str(Path(acerl_np.__file__).parent.parent)
    words = [sys.executable, "-c", code]
    found = subprocess.run(words, capture_output=True, text=True, cwd=root, check=True)
    assert int(found.stdout) == len(acerl_np.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        acerl_np.nothing  # noqa: B018


def test_what_commands_compute_python_gets_from_functions(folder, run):
    week, layout = acerl_np.load_instance("week.csv"), acerl_np.load_layout("layout.json")
    [trace] = acerl_np.replay({"EDD": "EDD"}, week, acerl_np.Playing(seed=4), trial=2)
    shown = run("replay EDD week.csv --seed 4 --trial 2 --out page.html").out
    end = f"EDD, makespan {trace.makespan:.1f} s, tardiness {trace.tardiness:.1f} s\n"
    assert end in shown
    load = acerl_np.check_floor(layout, [week]).loads[0]
    shown = f"offered load {load.offered:.2f} ({load.loaded:.2f} "
    assert shown in run("floor check layout.json --on week.csv").out
    with pytest.raises(acerl_np.InputError, match="week: 2 vehicles; expected 3"):
        acerl_np.check_floor(acerl_np.load_layout("dmh"), [week])
    text = Path("week.csv").read_text()
    Path("bad.csv").write_text(f"{text}{text.splitlines()[-1]},,,,x\n")
    good, bad = acerl_np.check_records(["week.csv", "bad.csv"], "layout.json")
    assert good.checks[0].load == load and (good.faults, bad.records[0].n_tasks) == ((), 2)
    assert bad.faults[0].text in run("records convert bad.csv --out made.csv", 2).err
    assert acerl_np.convert_records("week.csv").records[0].content_hash == week.content_hash


def test_records_are_not_mixed_with_others_unless_named(empty, run):
    words = "records make --layout dmh --tasks 3 --out made"
    run(f"{words} --count 2")
    Path("made/tasks-01.csv").rename("made/monday.csv")
    err = run(words, 2).err
    assert "--out: made holds other records (made/monday.csv" in err and "or --names" in err
    assert not Path("made/tasks-01.csv").exists()
    run(f"{words} --names more-{{k}}")
    assert len(acerl_np.load_records("made", layout="dmh")) == 3
    assert [x.name for x in acerl_np.load_records("made/t*.csv", layout="dmh")] == ["tasks-02"]


def test_what_a_folder_holds_is_read_and_not_overwritten(empty, run):
    run("records make --layout dmh --tasks 3 --count 2 --out made")
    before = Path("made/tasks-02.csv").read_bytes()
    words = "evaluate EDD nearest --on made --layout dmh --trials 1 --force --report"
    assert "is read, and would be overwritten" in run(f"{words} made/tasks-02.csv", 2).err
    assert Path("made/tasks-02.csv").read_bytes() == before


def test_a_policy_of_another_floor_does_not_play_the_benchmark_unasked(empty, run):
    rows = [make_task(f"t{k}", "rack-1", "line-1", 40 * k, 900) for k in range(3)]
    record = acerl_np.Instance.from_rows("own", acerl_np.load_layout("supply-loop"), rows)
    policy = acerl_np.train(record, generations=1, population=2, trials=0).policy
    policy.save("own.npz")
    err = run("evaluate own.npz EDD --trials 1", 2).err
    assert "own.npz: trained on supply-loop, and no records are named; expected --on RECORDS" in err
    run("evaluate own.npz EDD --on DMH-01 --trials 1")


def test_several_days_in_one_record_are_told(empty, run):
    lines = [f"{6 * d + k},st1,st2,{86400 * d + 3600 * k},900" for d in range(3) for k in range(6)]
    Path("week.csv").write_text(
        "\n".join(["task,pickup,delivery,arrival_time,expiry_time", *lines])
    )
    told = "spans 3 days with 2 pauses of about 19 h; expected a record for each shift or day"
    found = run("records convert week.csv --layout dmh --out plain")
    assert told in found.err and Path("plain.csv").exists() and not Path("plain").exists()
    assert told in run("floor check dmh --on week.csv").out
    assert told not in run("floor check dmh --on DMH-01").out
