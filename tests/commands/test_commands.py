"""The program as users call it: real processes, files, exit statuses, one-line errors."""

from __future__ import annotations

import csv
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import acerl_np
from acerl_np.commands.main import COMMANDS
from acerl_np.support import machine_code

SMALL = ["--generations", "3", "--population", "8", "--hidden", "6", "--trials", "2"]

needs_jit = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="processes of their own are tested with compiled kernels"
)


def start(*words: str, cwd: Path, module: str = "acerl_np") -> subprocess.Popen:
    environment = dict(os.environ)
    root = str(Path(acerl_np.__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join([root, environment.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=cwd,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def call(*words: str, cwd: Path, module: str = "acerl_np") -> tuple[int, str, str]:
    process = start(*words, cwd=cwd, module=module)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@needs_jit
def test_train_writes_everything_and_shows_the_paper_beside_it(tmp_path):
    status, out, err = call(*SMALL, "--out", "run", cwd=tmp_path, module="acerl_np.train")
    assert status == 0, err
    # A picture, too, where matplotlib is installed.
    written = ["policy.npz", "run.npz", "config.json", "curves.csv", "history.csv", "results.csv"]
    assert {path.name for path in (tmp_path / "run").iterdir()} - {"curves.png"} == set(written)
    line = next(line for line in out.splitlines() if line.startswith("DMH-01"))
    assert line.split()[-2:] == ["1797.8", "29.5"]
    assert "generation 3/3" in err and "within limit" in err and "left" in err
    with open(tmp_path / "run" / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["generation"]) for row in rows] == [1, 2, 3]
    assert sum(int(rows[0][f"DMH-{k:02d}"]) for k in range(1, 9)) == 8
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["config"]["population"] == 8
    policy = acerl_np.Policy.load(tmp_path / "run" / "policy.npz")
    assert policy.hidden == (6,)


@needs_jit
def test_both_doors_are_one_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for module, words, folder in (("acerl_np.train", [], "a"), ("acerl_np", ["train"], "b")):
        # Imported already, it would run again with a warning.
        monkeypatch.delitem(sys.modules, "acerl_np.train", raising=False)
        monkeypatch.setattr(sys, "argv", [module, *words, *SMALL, "--quiet", "--out", folder])
        with pytest.raises(SystemExit) as caught:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        assert caught.value.code == 0, capsys.readouterr().err
    assert (tmp_path / "a/policy.npz").read_bytes() == (tmp_path / "b/policy.npz").read_bytes()


def test_a_default_folder_is_never_reused(empty, run):
    words = f"train DMH-01 {' '.join(SMALL)} --generations 0 --quiet --trials 0"
    run(words)
    run(words)
    assert sorted(path.name for path in Path("runs").iterdir()) == ["tasks-seed0", "tasks-seed0-2"]


def test_resume_ends_in_the_same_bytes(empty, run):
    common = "train DMH-01 DMH-02 --population 4 --hidden 3 --quiet --trials 0"
    run(f"{common} --generations 4 --out straight")
    run(f"{common} --generations 2 --out halved")
    run("train --resume halved/run.npz --generations 4 --quiet --trials 0")
    histories = []
    for folder in ("straight", "halved"):
        with open(f"{folder}/history.csv", newline="") as file:
            histories.append([{**row, "seconds": ""} for row in csv.DictReader(file)])
    assert histories[0] == histories[1]
    assert Path("straight/policy.npz").read_bytes() == Path("halved/policy.npz").read_bytes()


ACTIONS = {
    "floor": "import check show",
    "plot": "curves gantt floor compare sampler weights",
    "records": "perturb generate convert check replay",
    "policy": "show",
}


@pytest.mark.parametrize(
    "words",
    [*COMMANDS, *(f"{name} {own}" for name, some in ACTIONS.items() for own in some.split())],
)
def test_help_of_everything_names_its_defaults(run, words):
    out = run(f"{words} --help").out
    assert out.startswith(f"usage: acerl-np {words}")
    assert " " not in words or "examples:" in out
    if words == "train":
        for name in acerl_np.Config().to_dict():
            assert f"--{name.replace('_', '-')}" in out
        assert "(default: 0.06)" in out


def test_evaluate_compares_policies_and_writes_every_trial(empty, run):
    instances = [acerl_np.load_instance("DMH-01")]
    trainer = acerl_np.ACERL(instances, acerl_np.Config(generations=1, population=2, hidden=(2,)))
    trainer.policy.save("policy.npz")
    words = "evaluate policy.npz edd Static DMH-01 DMH-02 --trials 3 --format"
    rows = list(csv.DictReader(run(f"{words} csv --trials-csv all.csv").out.splitlines()))
    labels = ["policy.npz", "EDD", "Static (fitted on dmh-train)", "hindsight"]
    records = ["DMH-01", "DMH-02", "mean"]
    assert [(row["policy"], row["record"]) for row in rows] == [
        (label, record) for label in labels for record in records
    ]
    cells = {(row["policy"], row["record"]): row for row in rows}
    expected = acerl_np.evaluate_policy("EDD", acerl_np.load_instance("DMH-02"), trials=3)
    row = cells["EDD", "DMH-02"]
    assert float(row["makespan_s"]) == expected.makespan.mean()
    assert float(row["tardiness_s"]) == pytest.approx(expected.tardiness.mean())
    assert float(row["waiting_s"]) == pytest.approx(expected.waiting.mean())
    plan = acerl_np.fit_static(acerl_np.load_suite("dmh-train"))
    played = acerl_np.evaluate_policy(plan, acerl_np.load_instance("DMH-02"), trials=1)
    row = cells["Static (fitted on dmh-train)", "DMH-02"]
    assert float(row["makespan_s"]) == played.makespan[0, 0]
    assert row["plan"] == plan.describe()
    with open("all.csv", newline="") as file:
        trials = list(csv.DictReader(file))
    assert len(trials) == 3 * 2 * 3
    assert list(trials[0])[:6] == [
        *("policy", "instance", "trial", "makespan", "tardiness", "satisfied")
    ]
    for row in trials:
        assert int(row["satisfied"]) == (float(row["tardiness"]) < 50.0)
    for name in ("late", "utilisation", "empty"):
        assert all(0.0 <= float(row[f"{name}_share"]) <= 1.0 for row in trials)
    assert float(trials[-1]["waiting_s"]) == played.waiting[0, 0]
    for form in ("markdown", "latex", "text"):
        run(f"{words} {form}")
    assert json.loads(run(f"{words} json").out)[3]["policy"] == "EDD"


def test_evaluate_writes_every_task_of_trials_that_differ(empty, run):
    rows = "task,pickup,delivery,arrival_time,expiry_time,priority\n" + "".join(
        f"t{k},st1,st{2 + k % 3},2024-05-06 07:0{k}:30,{100 if k % 2 else 900},{k % 2}\n"
        for k in range(8)
    )
    Path("own.csv").write_text(rows)
    Path("past.csv").write_text(
        "task,vehicle,start\n" + "".join(f"t{k},v1,{k}\n" for k in range(8))
    )
    words = (
        "evaluate MIX nearest own.csv --layout dmh --past past.csv --trials 3 --class-weights 1,5"
    )
    run(f"{words} --trials-csv trials.csv --tasks-csv tasks.csv --vehicles-csv vehicles.csv")
    with open("vehicles.csv", newline="") as file:
        fleet = list(csv.DictReader(file))
    assert sum(int(row["tasks"]) for row in fleet) == 8 * 5 and len(fleet) == 3 * 5
    assert {row["lowest_level_share"] for row in fleet} == {""}
    with open("tasks.csv", newline="") as file:
        tasks = list(csv.DictReader(file))
    with open("trials.csv", newline="") as file:
        trials = {(row["policy"], row["trial"]): row for row in csv.DictReader(file)}
    played = {(row["policy"], row["trial"]) for row in tasks}
    # The yardstick draws nothing, and what was done is done.
    assert played == {*(("MIX", str(k)) for k in range(3)), ("nearest", "0"), ("replay", "0")}
    for policy, trial in played:
        own = [row for row in tasks if (row["policy"], row["trial"]) == (policy, trial)]
        assert [row["task"] for row in own] == [f"t{k}" for k in range(8)]
        assert {row["time_zero"] for row in own} == {"2024-05-06T07:00:30"}
        weight = [1.0 + 4.0 * float(row["priority"]) for row in own]
        figures = trials[policy, trial]
        for name, key in (("waited_s", "waiting_s"), ("late_s", "tardiness")):
            mean = sum(w * float(row[name]) for w, row in zip(weight, own, strict=True)) / sum(
                weight
            )
            assert mean == pytest.approx(float(figures[key]))
        assert max(float(row["delivered_s"]) for row in own) == float(figures["makespan"])
        for row in own:
            arrival, assigned, there, end = (
                float(row[f"{name}_s"])
                for name in ("arrival", "assigned", "picked_up", "delivered")
            )
            assert arrival <= assigned <= there <= end
            assert float(row["waited_s"]) == there - arrival
            assert float(row["late_s"]) == max(0.0, end - float(row["due_s"]))
    # An episode that was stopped leaves the rest empty.
    run("evaluate nearest own.csv --layout dmh --horizon 200 --tasks-csv cut.csv")
    with open("cut.csv", newline="") as file:
        cut = list(csv.DictReader(file))
    assert {bool(row["vehicle"]) for row in cut} == {False, True}
    assert {row["delivered_s"] == "" for row in cut if not row["vehicle"]} == {True}
    line = run("evaluate EDD own.csv --layout dmh --trials-csv a.csv --tasks-csv a.csv", 2).err
    assert "a.csv is what another option writes, too; expected another name" in line


@needs_jit
def test_references_of_own_records_join_the_table(empty, run):
    names = ("task", "pickup", "delivery", "arrival_time", "expiry_time")
    rows = [
        names,
        *([row[x] for x in names] for row in acerl_np.load_instance("DMH-01").rows()[:4]),
    ]
    Path("own.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    run("hindsight own.csv --layout dmh --effort 0.001 --out best.json")
    words = (
        "evaluate EDD Static --fit own.csv --tasks own.csv --layout dmh --format json --trials 2"
    )
    assert json.loads(run(words).out)[-1]["policy"].startswith("Static")
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
    stored["references"][0]["content_hash"] = acerl_np.load_instance("DMH-01").content_hash
    stored["references"][0]["cost_limit"] = 3
    Path("best.json").write_text(json.dumps(stored))
    words = "evaluate EDD --tasks DMH-01 --trials 1 --format json --references best.json"
    found = run(words)
    assert "best.json" not in found.err
    assert json.loads(found.out)[-1]["policy"] == "hindsight"


def test_a_policy_of_another_floors_size_is_refused(empty, run):
    layout = acerl_np.load_layout("dmh").to_dict()
    layout["vehicles"] = layout["vehicles"][:2]
    rows = acerl_np.load_instance("DMH-01").rows()
    instance = acerl_np.Instance.from_rows("two", acerl_np.Layout.from_dict(layout), rows)
    config = acerl_np.Config(generations=0, hidden=(2,))
    acerl_np.ACERL([instance], config).policy.save("two.npz")
    acerl_np.ACERL(acerl_np.load_instance("DMH-01"), config).policy.save("three.npz")
    expected = "two.npz: DMH-01: the layout 'dmh' has 3 vehicles; this policy was trained for 2\n"
    assert run("evaluate three.npz EDD two.npz", 2).err.endswith(f"error: {expected}")


def test_perturbed_suites_are_what_the_command_makes(empty, run):
    words = "records perturb --suite dmh-train --out . --magnitude"
    run(f"{words} 5 --first 9 --names DMH-{{k}}")
    for magnitude in (10, 15, 20, 25, 30):
        run(f"{words} {magnitude} --names DMH-N{magnitude}-{{k}}")
    bundled = Path(acerl_np.__file__).parent.parent / "instances" / "dmh"
    made = sorted(Path().glob("*.csv"))
    assert len(made) == 48
    for path in made:
        assert path.read_text() == (bundled / path.name).read_text()


PAST = "task,vehicle,start\n" + "".join(f"task_{k},v{k % 3},{k}\n" for k in range(30))


@needs_jit
@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("train --generations 0 --trials 0", ["training"]),
        ("train --generations 0 --trials 0 --quiet", ["training"]),
        ("train --generations 0 --trials 0 --preset best", ["best"]),
        ("hindsight DMH-01 --effort 0.001", ["search", "static"]),
        ("evaluate EDD --trials 1 --cost-limit 49", []),
        ("records check DMH-01", []),
    ],
)
def test_what_takes_time_is_compiled_ahead(empty, run, monkeypatch, words, parts):
    acerl_np.warm_up("rules")
    done = []

    def compile_part(part, *, quiet):
        assert quiet == ("--quiet" in words)
        done.append(part)
        machine_code.note_compiling()

    monkeypatch.setattr(machine_code, "_said", set())
    monkeypatch.setattr("acerl_np.warm.warm_up", compile_part)
    err = run(words).err
    assert done == parts
    spoken = bool(parts) and "--quiet" not in words
    assert err.count("acerl_np: compiling kernels, once on this machine") == spoken
    assert err.count("compiled in") == spoken


@needs_jit
def test_a_replay_compiles_nothing_that_was_not_compiled_ahead(empty, run):
    from acerl_np.kernels.baselines import play_assignments

    Path("past.csv").write_text(PAST)
    acerl_np.warm_up("replay")
    ahead = list(play_assignments.signatures)
    assert len(ahead) == 1
    assert run("records replay past.csv --tasks DMH-01").err == ""
    assert play_assignments.signatures == ahead


@needs_jit
@pytest.mark.long
def test_replays_are_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "past.csv").write_text(PAST)
    words = ["records", "replay", "past.csv", "--tasks", "DMH-01"]
    errors = [call(*words, cwd=tmp_path)[2] for _ in range(2)]
    assert errors == ["acerl_np: compiling kernels, once on this machine (10 to 40 s) ...\n", ""]
    # What a part compiles is what its use needs.
    program = "import acerl_np, acerl_np.support.machine_code as m; acerl_np.warm_up('replay'); "
    program += "print(m.count_compiled())"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "0\n"
    with pytest.raises(acerl_np.InputError, match="part: read all; expected one of training"):
        acerl_np.warm_up("all")


@pytest.mark.slow
@needs_jit
def test_an_interrupted_study_goes_on_where_it_stopped(empty, run):
    words = "experiments comparison --seeds 2 --trials 1 --generations 1 --rivals none --threads 1"
    words = f"{words} --out study --format json"
    tables = json.loads(run(words).out)
    runs = sorted(Path("study/runs").iterdir())
    kept = runs[0].stat().st_mtime_ns
    runs[1].unlink()
    again = json.loads(run(words).out)
    assert sorted(Path("study/runs").iterdir()) == runs and len(runs) == 2
    assert runs[0].stat().st_mtime_ns == kept
    # The time that a training took is its own; that of the table is the last one.
    assert again[:-1] == tables[:-1]
    names = [item["table"].removeprefix("comparison-") for item in tables]
    assert names == ["train", "train-spread", "test", "test-spread", "times"]
    expected = {f"comparison-{name}.{suffix}" for name in names for suffix in ("csv", "md")}
    expected |= {f"comparison-{kind}.csv" for kind in ("curves", "history", "sampler")}
    assert {path.name for path in Path("study").iterdir()} == {"runs", *expected}
    header, *rows = csv.reader(Path("study/comparison-train.csv").read_text().splitlines())
    assert len(tables[0]["rows"]) == len(rows) and list(tables[0]["rows"][0]) == header


def test_importing_changes_nothing_and_is_quick_to_find_names():
    code = (
        "import os, sys; before = dict(os.environ); import acerl_np; "
        "assert 'numba' not in sys.modules; acerl_np.Simulator; "
        "assert dict(os.environ) == before; print(len(dir(acerl_np)))"
    )
    root = str(Path(acerl_np.__file__).parent.parent)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )
    assert int(result.stdout) == len(acerl_np.__all__)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        acerl_np.nothing  # noqa: B018
