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
from acerl_np.commands.main import COMMANDS, main
from acerl_np.support import machine_code
from acerl_np.support.workers import MAX_THREADS

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


def last_error(capsys) -> str:
    """Return the only line of standard error that is an error, and no other may follow it."""
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "Traceback" in line] == []
    assert lines and "error: " in lines[-1]
    return lines[-1]


@needs_jit
def test_train_writes_everything_and_shows_the_paper_beside_it(tmp_path):
    status, out, err = call(*SMALL, "--out", "run", cwd=tmp_path, module="acerl_np.train")
    assert status == 0, err
    # A picture, too, where matplotlib is installed.
    written = ["policy.npz", "run.npz", "config.json", "curves.csv", "history.csv", "results.csv"]
    assert {path.name for path in (tmp_path / "run").iterdir()} - {"curves.png"} == set(written)
    line = next(line for line in out.splitlines() if line.startswith("DMH-01"))
    assert line.split()[-2:] == ["1797.8", "29.5"]
    assert "generation 3/3" in err and "satisfied" in err and "left" in err
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
    for module, words, folder in (
        ("acerl_np.train", [], "a"),
        ("acerl_np", ["train"], "b"),
    ):
        # Imported already, it would run again with a warning.
        monkeypatch.delitem(sys.modules, "acerl_np.train", raising=False)
        monkeypatch.setattr(sys, "argv", [module, *words, *SMALL, "--quiet", "--out", folder])
        with pytest.raises(SystemExit) as caught:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        assert caught.value.code == 0, capsys.readouterr().err
    assert (tmp_path / "a/policy.npz").read_bytes() == (tmp_path / "b/policy.npz").read_bytes()


def test_a_default_folder_is_never_reused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["train", "DMH-01", *SMALL, "--generations", "0", "--quiet", "--trials", "0"]
    assert main(words) == 0
    assert main(words) == 0
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert folders == ["tasks-seed0", "tasks-seed0-2"]


def test_resume_ends_in_the_same_bytes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    common = [
        "train",
        "DMH-01",
        "DMH-02",
        "--population",
        "4",
        "--hidden",
        "3",
        "--quiet",
        "--trials",
        "0",
    ]
    assert main([*common, "--generations", "4", "--out", "straight"]) == 0
    assert main([*common, "--generations", "2", "--out", "halved"]) == 0
    resume = "train --resume halved/run.npz --generations 4 --quiet --trials 0"
    assert main(resume.split()) == 0
    histories = []
    for folder in ("straight", "halved"):
        with open(f"{folder}/history.csv", newline="") as file:
            histories.append([{**row, "seconds": ""} for row in csv.DictReader(file)])
    assert histories[0] == histories[1]
    assert Path("straight/policy.npz").read_bytes() == Path("halved/policy.npz").read_bytes()


BAD_WORDS = {
    "train --population 1": "population: read 1",
    "train --population many": "argument --population: invalid int value: 'many'",
    "train --generation 3": "unrecognized arguments: --generation",
    "train --hidden 12,x": "read '12,x'; expected sizes such as 128,128",
    "train --seed -3": "seed: read -3",
    "train --trials -1": "trials: read -1",
    "train --threads 0": "threads: read 0",
    "train --antithetic --population 7": "population: read 7; expected an even number",
    "train --suite nowhere": "suite 'nowhere': unknown; expected one of dmh-train",
    "train missing.csv": "missing.csv: no such task record",
    "train DMH-01 DMH-01": "instance 'DMH-01' is given twice",
    "train DMH-01 --suite dmh-train": "expected one of the two",
    "train --layout dmh": "given without task records",
    "train --config missing.toml": "missing.toml: expected a file, found nothing",
    "train --resume missing.npz": "missing.npz: expected a file, found nothing",
    "train --resume run.npz --population 8": "expected a file, found nothing",
    "evaluate SPT": "policy 'SPT': unknown; expected one of FCFS",
    "evaluate missing.npz": "missing.npz: expected a file, found nothing",
    "evaluate EDD --suite nowhere": "suite 'nowhere': unknown",
    "evaluate EDD --tasks DMH-01 DMH-02 DMH-01": "instance 'DMH-01' is given twice; expected different",
    "evaluate EDD --trials 0": "--trials: read 0",
    "records perturb DMH-01 --magnitude -1 --out x": "magnitude: read -1",
    "records perturb DMH-01 DMH-02 --magnitude 1 --names same --out x": "gives one name twice",
    "hindsight DMH-01 --effort 0": "--effort: read 0.0",
    "experiments comparison --seeds 0": "--seeds: read 0",
    "experiments nothing": "invalid choice: 'nothing'",
    "fly": "invalid choice: 'fly'",
    "": "the following arguments are required: COMMAND",
}


@pytest.mark.parametrize("words", list(BAD_WORDS))
def test_bad_arguments_are_one_line_and_status_2(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert BAD_WORDS[words] in last_error(capsys)
    assert list(tmp_path.iterdir()) == []


EVERYWHERE = {
    "--threads 0": (
        "train, evaluate EDD, hindsight DMH-01, experiments comparison",
        "--threads: read 0; expected a whole number from 1 to",
    ),
    f"--threads {MAX_THREADS + 1}": (
        "train, hindsight",
        f"--threads: read {MAX_THREADS + 1}; expected",
    ),
    "--breakdowns=": (
        "train, train --resume run.npz, evaluate EDD, hindsight, floor check dmh DMH-01, records check, "
        "records perturb DMH-01 --magnitude 1 --out x, records replay past.csv --tasks DMH-01",
        "argument --breakdowns: read ''; expected the name of a file, or none",
    ),
    "--suite=": (
        "train, evaluate EDD, hindsight, records check",
        "suite '': unknown; expected one of dmh-train",
    ),
}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{words} {more}", message)
        for more, (several, message) in EVERYWHERE.items()
        for words in several.split(", ")
    ],
)
def test_an_option_means_the_same_everywhere(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert message in last_error(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", list(COMMANDS))
def test_help_of_every_command_names_its_defaults(capsys, command):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: acerl-np {command}")
    if command == "train":
        for name in acerl_np.Config().to_dict():
            assert f"--{name.replace('_', '-')}" in out
        assert "(default: 0.06)" in out


def test_an_unwritable_place_is_status_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    words = ["train", "DMH-01", *SMALL, "--generations", "0", "--out", "file/below"]
    assert main(words) == 1
    assert "cannot make the folder: not a directory" in last_error(capsys)


def test_evaluate_compares_policies_and_writes_every_trial(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    instances = [acerl_np.load_instance("DMH-01")]
    trainer = acerl_np.ACERL(instances, acerl_np.Config(generations=1, population=2, hidden=(2,)))
    trainer.policy.save("policy.npz")
    words = ["evaluate", "policy.npz", "edd", "Static", "DMH-01", "DMH-02", "--trials", "3"]
    assert main([*words, "--trials-csv", "all.csv", "--format", "csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
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
        *("policy", "instance", "trial", "makespan", "tardiness", "satisfied"),
    ]
    for name in ("late", "utilisation", "empty"):
        assert all(0.0 <= float(row[f"{name}_share"]) <= 1.0 for row in trials)
    assert float(trials[-1]["waiting_s"]) == played.waiting[0, 0]
    for form in ("json", "markdown", "latex", "text"):
        assert main([*words, "--format", form]) == 0
        out = capsys.readouterr().out
        if form == "json":
            assert json.loads(out)[3]["policy"] == "EDD"


@needs_jit
def test_references_of_own_records_join_the_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = acerl_np.load_instance("DMH-01").rows()[:4]
    lines = [
        f"{row['task']},{row['pickup']},{row['delivery']},{row['arrival_time']},{row['expiry_time']}"
        for row in rows
    ]
    header = "task,pickup,delivery,arrival_time,expiry_time"
    (tmp_path / "own.csv").write_text("\n".join([header, *lines]))
    own = ["own.csv", "--layout", "dmh"]
    assert main(["hindsight", *own, "--effort", "0.001", "--out", "best.json"]) == 0
    capsys.readouterr()
    words = ["evaluate", "EDD", "Static", "--fit", "own.csv", "--tasks", *own]
    words += ["--format", "json", "--trials", "2"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)[-1]["policy"].startswith("Static")
    assert main([*words, "--references", "best.json"]) == 0
    captured = capsys.readouterr()
    table = json.loads(captured.out)
    assert table[-1]["policy"] == "hindsight"
    assert table[3]["of_the_way_share"] in (0.0, None)
    assert "best.json" not in captured.err
    # What fits no record is said, and does not hide a bundled reference that does.
    missing = "best.json: no reference for own (other tasks, floor, breakdowns or cost limit)"
    for more in (["--cost-limit", "40"], ["--breakdowns", "none"]):
        assert main([*words, "--references", "best.json", *more]) == 0
        assert missing in capsys.readouterr().err.splitlines()
    stored = json.loads((tmp_path / "best.json").read_text())
    stored["references"][0]["content_hash"] = acerl_np.load_instance("DMH-01").content_hash
    stored["references"][0]["cost_limit"] = 3
    (tmp_path / "best.json").write_text(json.dumps(stored))
    words = ["evaluate", "EDD", "--tasks", "DMH-01", "--trials", "1", "--format", "json"]
    assert main([*words, "--references", "best.json"]) == 0
    captured = capsys.readouterr()
    assert "best.json" not in captured.err
    assert json.loads(captured.out)[-1]["policy"] == "hindsight"


def test_a_policy_of_another_floors_size_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    layout = acerl_np.load_layout("dmh").to_dict()
    layout["vehicles"] = layout["vehicles"][:2]
    (tmp_path / "layout.json").write_text(json.dumps(layout))
    rows = acerl_np.load_instance("DMH-01").rows()
    instance = acerl_np.Instance.from_rows("two", acerl_np.Layout.from_dict(layout), rows)
    config = acerl_np.Config(generations=0, hidden=(2,))
    acerl_np.ACERL([instance], config).policy.save("two.npz")
    acerl_np.ACERL(acerl_np.load_instance("DMH-01"), config).policy.save("three.npz")
    assert main(["evaluate", "three.npz", "EDD", "two.npz"]) == 2
    expected = (
        "error: two.npz: DMH-01: the layout 'dmh' has 3 vehicles; this policy was trained for 2"
    )
    assert last_error(capsys).endswith(expected)


def test_perturbed_suites_are_what_the_command_makes(tmp_path, capsys):
    words = ["records", "perturb", "--suite", "dmh-train", "--out", str(tmp_path)]
    assert main([*words, "--magnitude", "5", "--first", "9", "--names", "DMH-{k}"]) == 0
    for magnitude in (10, 15, 20, 25, 30):
        names = f"DMH-N{magnitude}-{{k}}"
        assert main([*words, "--magnitude", str(magnitude), "--names", names]) == 0
    bundled = Path(acerl_np.__file__).parent.parent / "instances" / "dmh"
    made = sorted(tmp_path.glob("*.csv"))
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
def test_what_takes_time_is_compiled_ahead(tmp_path, monkeypatch, capsys, words, parts):
    monkeypatch.chdir(tmp_path)
    acerl_np.warm_up("rules")
    capsys.readouterr()
    done = []

    def compile_part(part, *, quiet):
        assert quiet == ("--quiet" in words)
        done.append(part)
        machine_code.note_compiling()

    monkeypatch.setattr(machine_code, "_said", set())
    monkeypatch.setattr("acerl_np.warm.warm_up", compile_part)
    assert main(words.split()) == 0
    assert done == parts
    err = capsys.readouterr().err
    spoken = bool(parts) and "--quiet" not in words
    assert err.count("acerl_np: compiling kernels, once on this machine") == spoken
    assert err.count("compiled in") == spoken


@needs_jit
def test_a_replay_compiles_nothing_that_was_not_compiled_ahead(tmp_path, monkeypatch, capsys):
    from acerl_np.kernels.baselines import play_assignments

    monkeypatch.chdir(tmp_path)
    (tmp_path / "past.csv").write_text(PAST)
    acerl_np.warm_up("replay")
    ahead = list(play_assignments.signatures)
    assert len(ahead) == 1
    assert main(["records", "replay", "past.csv", "--tasks", "DMH-01"]) == 0
    assert capsys.readouterr().err == ""
    assert play_assignments.signatures == ahead


@needs_jit
@pytest.mark.slow
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


@needs_jit
def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "experiments comparison --seeds 2 --trials 1 --generations 1 --rivals none --threads 1"
    words = [*words.split(), "--out", "study", "--format", "json"]
    assert main(words) == 0
    first = capsys.readouterr().out
    runs = sorted(Path("study/runs").iterdir())
    kept = runs[0].stat().st_mtime_ns
    runs[1].unlink()
    assert main(words) == 0
    assert sorted(Path("study/runs").iterdir()) == runs and len(runs) == 2
    assert runs[0].stat().st_mtime_ns == kept
    tables, again = json.loads(first), json.loads(capsys.readouterr().out)
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
