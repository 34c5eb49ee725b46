"""`--tensorboard`: event files hold what history.csv and curves.csv hold."""

from __future__ import annotations

import struct
import sys

import pytest
from tables_and_refusals import read_rows

from acerl_np.commands.main import main

event_pb2 = pytest.importorskip(
    "tensorboardX.proto.event_pb2", reason="needs tensorboardX: pip install -e '.[tensorboard]'"
)


def read_scalars(folder):
    """(tag, step) -> value, of all event files by age; a purge takes back what came after it."""
    found = {}
    for path in sorted((folder / "tensorboard").iterdir()):
        content = path.read_bytes()
        at = 0
        while at < len(content):
            (size,) = struct.unpack_from("<Q", content, at)
            event = event_pb2.Event.FromString(content[at + 12 : at + 12 + size])
            at += size + 16
            if event.WhichOneof("what") == "session_log":
                found = {key: x for key, x in found.items() if key[1] < event.step}
            for value in event.summary.value:
                found[value.tag, event.step] = value.simple_value
    return found


def check(folder, step):
    """Event files hold every line of the history and every look; `step` is the history's column of steps."""
    scalars = read_scalars(folder)
    lines = read_rows(folder / "history.csv")
    n = 0
    for line in lines:
        names = [name for name in line if name.startswith("DMH")]
        total = sum(int(line[name]) for name in names)
        for name in names:
            share = int(line[name]) / max(total, 1)
            assert scalars[f"sampler/{name}", int(line[step])] == pytest.approx(share)
        for name in ("return_mean", "cost_mean", "satisfied"):
            value = scalars[f"population/{name}", int(line[step])]
            assert value == pytest.approx(float(line[name]), rel=1e-6)
            n += 1
    assert n == len(
        [key for key in scalars if key[0].endswith(("n_mean", "t_mean", "n/satisfied"))]
    )
    for line in read_rows(folder / "curves.csv"):
        tag = f"policy/makespan/{line['instance']}", int(line["decisions"])
        if tag in scalars:  # the last line of curves.csv is looked at when it is written
            assert scalars[tag] == pytest.approx(float(line["makespan"]))
    assert any(key[0].startswith("policy/") for key in scalars)


TRAIN = ["train", "DMH-01", "DMH-02", "--population", "8", "--trials", "0", "--quiet"]


def test_a_training(tmp_path):
    out = tmp_path / "run"
    options = ["--generations", "9", "--tensorboard", "--out", str(out)]
    assert main([*TRAIN, *options]) == 0
    check(out, "decisions")
    assert main(["train", "--resume", f"{out}/run.npz", "--generations", "11", "--quiet"]) == 0
    resume = ["train", "--resume", f"{out}/run.npz", "--generations", "14", "--quiet"]
    assert main([*resume, "--tensorboard", "--trials", "0"]) == 0
    assert len(list((out / "tensorboard").iterdir())) == 2
    steps = {step for tag, step in read_scalars(out) if tag == "population/return_mean"}
    # Two generations in between were not logged.
    assert len(steps) == len(read_rows(out / "history.csv")) - 2


def test_a_compared_learner(tmp_path):
    out = tmp_path / "run"
    options = ["--steps", "12000", "--tensorboard", "--trials", "0", "--quiet", "--out", str(out)]
    assert main(["rivals", "ppo", "DMH-01", *options]) == 0
    check(out, "steps")


def test_a_missing_extra_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert main([*TRAIN, "--tensorboard", "--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err == (
        "acerl-np train: error: tensorboardX is not installed; install it with: "
        "pip install 'acerl_np[tensorboard]'\n"
    )
    assert not (tmp_path / "x").exists()
