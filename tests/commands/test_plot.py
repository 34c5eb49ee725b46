"""`acerl-np plot` and the pictures that trainings leave: what users call, what is refused, what is kept."""

import csv
import json
import shutil
import sys
from pathlib import Path

import numba
import pytest

import acerl_np
from acerl_np.commands.curves import RULES, draw_training, find_beside
from acerl_np.commands.main import main

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="trains")

TRAIN = ["train", "--generations", "2", "--population", "8", "--hidden", "4", "--trials", "0"]
TRAIN += ["--curve-every", "1", "--curve-trials", "1"]
PNG = b"\x89PNG"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two seeds on the paper's records, without a picture."""
    out = tmp_path_factory.mktemp("trained") / "both"
    with pytest.MonkeyPatch.context() as patch:
        hide_matplotlib(patch)
        assert main([*TRAIN, "--seeds", "0:2", "--quiet", "--out", str(out)]) == 0
    return out


def hide_matplotlib(patch):
    for name in ("matplotlib", "matplotlib.figure"):
        patch.setitem(sys.modules, name, None)


def refusal(capsys, words):
    """Run a command that must end with status 2, and return its only line of error."""
    assert main(["plot", *map(str, words)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


def write_index(path):
    acerl_np.IndexPolicy.of_weights(approach=-1.0, lateness=0.5).save(path)
    return path


def write_run(folder):
    folder.mkdir()
    header = "generation,decisions,instance,makespan,tardiness,satisfied\n"
    (folder / "curves.csv").write_text(header + "0,0,A,9,1,1\n8,90,A,8,1,1\n")
    return folder


@pytest.mark.parametrize("kind", ["curves", "gantt", "floor", "compare", "sampler", "weights"])
def test_help_of_every_kind_has_examples(capsys, kind):
    assert main(["plot", kind, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: acerl-np plot {kind}") and "examples:" in out


@needs_jit
def test_every_kind_has_a_name_of_its_own(folder, capsys, trained):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    both = folder / "both"
    shutil.copytree(trained, both)
    write_index(both / "index.npz")
    network = str(both / "seed0" / "policy.npz")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for words, name in (
        (["curves", "both"], "both/curves.png"),
        (["curves", "both/seed0"], "both/seed0/curves.png"),
        (["curves", "both", "both/seed1"], "curves.png"),
        (["gantt", "EDD", "DMH-01"], "gantt.png"),
        (["floor", network, "DMH-02", "--trial", "1", "--greedy"], "traffic.png"),
        (
            ["compare", network, "EDD", "--tasks", "DMH-01", "DMH-02", "--trials", "2"],
            "compare.png",
        ),
        (["sampler", "both"], "both/sampler.png"),
        (["weights", "both/index.npz"], "both/weights.png"),
        (["curves", "both", "--out", "a.svg"], "a.svg"),
    ):
        assert main(["plot", *words]) == 0
        assert capsys.readouterr().out == f"{name}\n"
        picture = Path(name)
        assert picture.read_bytes().startswith(b"<?xml" if name.endswith("svg") else PNG)
        picture.unlink()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@needs_jit
def test_past_assignments_are_drawn_as_they_were_given(folder, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    instance = acerl_np.load_instance("DMH-01")
    fleet = [vehicle.id for vehicle in instance.layout.vehicles]
    rows = [
        (name, fleet[k % len(fleet)], float(instance.arrival[k]))
        for k, name in enumerate(instance.tasks)
    ]
    with open("past.csv", "w", newline="") as file:
        csv.writer(file).writerows([("task", "vehicle", "start"), *rows])
    for kind in ("gantt", "floor"):
        assert main(["plot", kind, "DMH-01", "--past", "past.csv", "--out", f"{kind}.svg"]) == 0
    assert "past assignments on DMH-01" in Path("gantt.svg").read_text()
    capsys.readouterr()
    line = refusal(capsys, ["gantt", "EDD", "DMH-01", "--past", "past.csv"])
    assert "read 2 names (EDD, DMH-01); expected INSTANCE" in line


def test_the_papers_figures_stand_beside_its_own_records_alone(tmp_path):
    names = ["DMH-01", "DMH-02"]
    known = {name: acerl_np.load_instance(name).content_hash for name in names}

    def write(facts):
        (tmp_path / "config.json").write_text(json.dumps(facts))
        return find_beside([tmp_path])

    found = write({"instances": known, "config": {"cost_limit": 50.0}})
    assert [name.split()[0] for name in found.rules] == list(RULES) and found.limit == 50.0
    assert found.rules["EDD (paper)"]["DMH-01"] == (1903.2, 33.9)
    assert found.paper[0] == "ACERL (paper)" and found.paper[1]["DMH-02"] == (1859.2, 30.7)
    found = write({"instances": known, "algorithm": "ppo", "settings": {"cost_limit": 30}})
    assert found.paper[0] == "PPO (paper)" and found.limit == 30.0
    assert write({"instances": {**known, "DMH-02": known["DMH-01"]}})[:2] == ({}, None)
    assert write({"instances": {**known, "own": "0"}})[:2] == ({}, None)
    assert write({}) == ({}, None, None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["curves", "nowhere"], "nowhere: not there; expected the folder of a run"),
        (["curves", "."], "no curves.csv and no history.csv"),
        (["curves", "run", "--only", "other"], "--only: read 'other'; expected some of run"),
        (["curves", "run", "--out", "a.jpg"], "a.jpg: ends in 'jpg'; expected a picture's name"),
        (["gantt", "EDD"], "read 1 names (EDD); expected POLICY and INSTANCE"),
        (["gantt", "EDD", "DMH-99"], "DMH-99: no such task record"),
        (["floor", "EDD", "DMH-01", "--trial", "-1"], "--trial: read -1"),
        (["gantt", "index.png", "DMH-01", "--out", "index.png"], "index.png is read, and would"),
        (["weights", "index.png", "--out", "./index.png"], "index.png is read, and would"),
        (["compare", "index.png", "--out", "index.png"], "index.png is read, and would"),
        (["sampler", "run"], "history.csv: expected a file, found nothing"),
        (["weights", "EDD"], "EDD: expected a file, found nothing"),
        (["compare", *["EDD"] * 15], "15 policies; expected 1 to 14"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_line(folder, capsys, words, message):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    write_run(folder / "run")
    write_index(folder / "index.npz")
    Path("index.npz").rename("index.png")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert message in refusal(capsys, words)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@needs_jit
def test_weights_of_other_forms_are_refused(folder, capsys, trained):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    line = refusal(capsys, ["weights", trained / "seed0" / "policy.npz", "--out", "a.png"])
    assert "a policy of form network" in line and "expected an index policy" in line
    assert list(folder.iterdir()) == []


def test_without_matplotlib_the_extra_is_named(folder, capsys, monkeypatch):
    hide_matplotlib(monkeypatch)
    write_run(folder / "run")
    for words in (["curves", "run"], ["gantt", "EDD", "DMH-01"], ["compare", "EDD"]):
        assert "pip install 'acerl_np[plot]'" in refusal(capsys, words)
    assert [path.name for path in folder.iterdir()] == ["run"]


@needs_jit
def test_a_training_leaves_a_picture_of_its_curves(folder, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert main([*TRAIN, "--quiet", "--out", "one"]) == 0
    assert "picture one/curves.png" in capsys.readouterr().out
    drawn = Path("one/curves.png").read_bytes()
    assert drawn.startswith(PNG)
    assert main(["plot", "curves", "one", "--out", "again.png"]) == 0
    assert Path("again.png").read_bytes() == drawn
    capsys.readouterr()
    assert main([*TRAIN, "--seeds", "0:2", "--quiet", "--out", "two"]) == 0
    assert "picture two/curves.png" in capsys.readouterr().out
    assert Path("two/curves.png").read_bytes().startswith(PNG)
    facts = json.loads(Path("two/config.json").read_text())
    assert facts["seeds"] == [0, 1] and len(facts["instances"]) == 8
    assert facts["config"]["population"] == 8


@needs_jit
@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_training_without_matplotlib_says_so_once(folder, capsys, monkeypatch, quiet):
    hide_matplotlib(monkeypatch)
    Path("one").mkdir()
    Path("one/curves.png").write_text("of an earlier run")
    assert main([*TRAIN, *quiet, "--out", "one", "--force"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "curves.png" in line]
    hint = (
        "no curves.png: matplotlib is not installed; install it with: pip install 'acerl_np[plot]'"
    )
    assert lines == ([] if quiet else [hint])
    assert not Path("one/curves.png").exists()


def test_a_picture_that_fails_is_a_line_and_no_error(folder, capsys, monkeypatch):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    run = write_run(folder / "run")
    assert draw_training(run, quiet=True) == run / "curves.png"

    def fail(*args, **kwargs):
        raise ValueError("no\nink")

    monkeypatch.setattr("acerl_np.pictures.trainings.draw_curves", fail)
    assert draw_training(run, quiet=True) is None
    assert capsys.readouterr().err == "no curves.png: ValueError: no ink\n"


@needs_jit
def test_hidden_units_are_played(folder, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    config = acerl_np.Config.preset(
        "best", generations=1, decisions=None, population=4, hidden=(2,), records_per_member=2
    )
    trainer = acerl_np.ACERL(acerl_np.load_suite("dmh-train")[:2], config, seed=0)
    trainer.run()
    trainer.policy.save("hidden.npz")
    assert main(["plot", "weights", "hidden.npz", "--out", "a.svg"]) == 0
    assert "what its features are worth, on" in Path("a.svg").read_text()
