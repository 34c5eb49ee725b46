"""`acerl-np plot` and the pictures that trainings leave: what users call, what is refused, what is kept."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from machine import needs_jit
from tables_and_refusals import write
from team_tasks import TeamHere

import acerl_np
from acerl_np.commands.main import main
from acerl_np.commands.shared.curves import find_beside
from acerl_np.commands.shared.progress import draw_training
from acerl_np.problem.choices import PAPER_RULES

TRAIN = ["train", "--generations", "2", "--set", "population=8", "--set", "hidden=4"]
TRAIN += ["--trials", "0", "--set", "curve_every=1", "--set", "curve_trials=1"]
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two seeds on the paper's records, without a picture."""
    out = tmp_path_factory.mktemp("trained") / "both"
    with pytest.MonkeyPatch.context() as patch:
        hide_matplotlib(patch)
        patch.setattr("acerl_np.support.processes.ProcessTeam", TeamHere)
        assert main([*TRAIN, "--seeds", "0:2", "--quiet", "--out", str(out)]) == 0
    return out


def hide_matplotlib(patch):
    for name in ("matplotlib", "matplotlib.figure"):
        patch.setitem(sys.modules, name, None)


@needs_jit
def test_a_picture_has_a_name_of_its_own(empty, run, trained):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    both = empty / "both"
    shutil.copytree(trained, both)
    before = {path: path.read_bytes() for path in empty.rglob("*") if path.is_file()}
    for words, name in (
        ("curves both", "both/curves.png"),
        ("curves both/seed0", "both/seed0/curves.png"),
        ("curves both both/seed1", "curves.png"),
        ("curves both --out a.svg", "a.svg"),
    ):
        assert run(f"plot {words}").out == f"{name}\n"
        picture = Path(name)
        assert picture.read_bytes().startswith(b"<?xml" if name.endswith("svg") else PNG)
        picture.unlink()
    assert {path: path.read_bytes() for path in empty.rglob("*") if path.is_file()} == before


def test_the_papers_figures_stand_beside_its_own_records_alone(tmp_path):
    names = ["DMH-01", "DMH-02"]
    known = {name: acerl_np.load_instance(name).content_hash for name in names}

    def write(facts):
        (tmp_path / "config.json").write_text(json.dumps(facts))
        return find_beside([tmp_path])

    found = write({"instances": known, "config": {"cost_limit": 50.0}})
    assert [name.split()[0] for name in found.rules] == list(PAPER_RULES) and found.limit == 50.0
    assert found.rules["EDD (paper)"]["DMH-01"] == (1903.2, 33.9)
    assert found.paper[0] == "ACERL (paper)" and found.paper[1]["DMH-02"] == (1859.2, 30.7)
    found = write({"instances": known, "algorithm": "ppo", "settings": {"cost_limit": 30}})
    assert found.paper[0] == "PPO (paper)" and found.limit == 30.0
    assert write({"instances": {**known, "DMH-02": known["DMH-01"]}})[:2] == ({}, None)
    assert write({"instances": {**known, "own": "0"}})[:2] == ({}, None)
    assert write({})[:3] == ({}, None, None)


@needs_jit
def test_a_training_leaves_a_picture_of_its_curves(empty, run):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert "picture one/curves.png" in run([*TRAIN, "--quiet", "--out", "one"]).out
    drawn = Path("one/curves.png").read_bytes()
    assert drawn.startswith(PNG)
    run("plot curves one --out again.png")
    assert Path("again.png").read_bytes() == drawn
    words = [*TRAIN, "--seeds", "0:2", "--quiet", "--out", "two"]
    assert "picture two/curves.png" in run(words).out
    assert Path("two/curves.png").read_bytes().startswith(PNG)


@needs_jit
def test_a_training_without_matplotlib_says_so_once(empty, run, monkeypatch):
    hide_matplotlib(monkeypatch)
    Path("one").mkdir()
    hint = "matplotlib is not installed; install it with: pip install matplotlib"
    for quiet in ([], ["--quiet"]):
        Path("one/curves.png").write_text("of an earlier run")
        err = run([*TRAIN, *quiet, "--out", "one", "--force"]).err
        lines = [line for line in err.splitlines() if "curves.png" in line]
        assert lines == ([] if quiet else [f"no curves.png: {hint}"])
        assert not Path("one/curves.png").exists()


def test_a_picture_that_fails_is_a_line_and_no_error(empty, capsys, monkeypatch):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    header = "generation,decisions,instance,makespan,tardiness,satisfied"
    write(empty / "curves.csv", header, "0,0,A,9,1,1", "8,90,A,8,1,1")
    assert draw_training(empty, quiet=True) == empty / "curves.png"

    def fail(*args, **kwargs):
        raise ValueError("no\nink")

    monkeypatch.setattr("acerl_np.pictures.trainings.draw_curves", fail)
    assert draw_training(empty, quiet=True) is None
    assert capsys.readouterr().err == "no curves.png: ValueError: no ink\n"
