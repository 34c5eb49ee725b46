"""`python -m studies`: what goes on where it stopped, and what is refused."""

import json
from pathlib import Path

import pytest
from machine import needs_jit
from tables_and_refusals import read_rows


@needs_jit
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("leave-one-out --trainings 1", [*(f"{k:02}" for k in range(1, 9)), "unseen"]),
        pytest.param(
            "comparison --rivals none --trainings 2",
            ["train", "train-spread", "test", "test-spread", "times"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "checks --trainings 1 --rival-steps 100", ["train", "test"], marks=pytest.mark.slow
        ),
    ],
)
def test_an_interrupted_study_goes_on_where_it_stopped(empty, study, words, names):
    """And its several tables are one of CSV."""
    name_of = words.split()[0]
    words = f"{words} --trials 1 --generations 1 --threads 1 --out study --format"
    documents = json.loads(study(f"{words} json").out)
    assert [item["table"] for item in documents] == [f"{name_of}-{name}" for name in names]
    runs = sorted(Path("study/runs").iterdir())
    kept = runs[0].stat().st_mtime_ns
    runs[1].unlink()
    rows = read_rows(study(f"{words} csv").out)
    assert sorted(Path("study/runs").iterdir()) == runs
    assert runs[0].stat().st_mtime_ns == kept
    written = {f"{name_of}-{name}.{suffix}" for name in names for suffix in ("csv", "md")}
    written |= {f"{name_of}-{kind}.csv" for kind in ("curves", "history", "sampler")}
    assert {path.name for path in Path("study").iterdir()} == {"runs", *written}
    shown = read_rows(Path("study", f"{name_of}-{names[0]}.csv"))
    assert [list(row) for row in documents[0]["rows"]] == [list(row) for row in shown]
    expected = [(item["table"], row) for item in documents for row in item["rows"]]
    for found, (table, row) in zip(rows, expected, strict=True):
        assert found["table"] == table
        for name, value in row.items():
            # The time that a training took is its own; that of the table is the last one.
            text = "" if value is None else str(value)
            assert table.endswith("times") or found[name] == text, name


@needs_jit
def test_a_study_goes_on_in_its_own_folder_alone(empty, study):
    words = "leave-one-out --trainings 1 --trials 1 --generations 1 --threads 1 --out tables"
    Path("tables").mkdir()
    Path("tables/leave-one-out-01.md").write_text("mine")
    assert f"{Path('tables/leave-one-out-01.md')} exists" in study(words, 2).err
    Path("tables/runs").mkdir()
    Path("tables/runs/mine.npz").write_text("mine")
    assert "exists" in study(words, 2).err


WRONG = {
    "nothing": "invalid choice: 'nothing'",
    "comparison --threads 0": "--threads: read 0; expected a whole number",
    "comparison --rivals ppo,dqn": "python -m studies comparison: error: --rivals: read 'dqn'",
    "ablation --out file/below": "make the folder: not a directory",
    "rival-settings --rivals asac": "--rivals: read 'asac'; expected all, or some of ppo, sac",
    "train dqn": "read dqn; expected one of ppo",
    "train ppo --steps 0": "--steps: read 0; expected a whole number from 1",
    "train ppo --set clip": "--set: read clip; expected NAME=VALUE",
    "train ppo --set clip=x": "clip: read x; expected a number from 0 to 1",
    "train sac --set clip=0.1": "clip: no setting of sac; expected one that python -m studies train sac",
    "train ppo --processes 2": "--processes, --dask: one training runs on one",
    "train ppo --hold-out 0.5": "unrecognized arguments: --hold-out",
    "train ppo --config sac.json": "trained with algorithm sac; read ppo",
}


@pytest.mark.parametrize("words", WRONG)
def test_a_line_says_what_is_wrong(empty, study, words):
    Path("file").write_text("")
    facts = {"instances": {}, "algorithm": "sac", "settings": {}, "seed": 1}
    Path("sac.json").write_text(json.dumps(facts))
    assert WRONG[words] in study(words, 2).err
