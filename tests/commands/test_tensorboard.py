"""`--tensorboard`: event files hold what history.csv and curves.csv hold."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tables_and_refusals import read_rows

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
    lines, measures = read_rows(folder / "history.csv"), ("return_mean", "cost_mean", "satisfied")
    for line in lines:
        names = [name for name in line if name.startswith("DMH")]
        total = sum(int(line[name]) for name in names)
        expected = {f"sampler/{name}": int(line[name]) / max(total, 1) for name in names}
        expected |= {f"population/{name}": float(line[name]) for name in measures}
        found = {tag: scalars[tag, int(line[step])] for tag in expected}
        assert found == pytest.approx(expected, rel=1e-6)
    tags = [tag for tag, _ in scalars if tag.startswith("population/") and tag.endswith(measures)]
    assert len(tags) == len(measures) * len(lines)
    for line in read_rows(folder / "curves.csv"):
        tag = f"policy/makespan/{line['instance']}", int(line["decisions"])
        if tag in scalars:  # the last line of curves.csv is looked at when it is written
            assert scalars[tag] == pytest.approx(float(line["makespan"]))
    assert any(tag.startswith("policy/") for tag, _ in scalars)


TRAIN = "train DMH-01 DMH-02 --population 8 --trials 0 --quiet"


def test_a_training(empty, run):
    run(f"{TRAIN} --generations 9 --set tensorboard=true --out run")
    check(Path("run"), "decisions")
    resume = "train --resume run/run.npz --quiet --trials 0 --generations"
    run(f"{resume} 11")
    run(f"{resume} 14 --set tensorboard=true")
    assert len(list(Path("run/tensorboard").iterdir())) == 2
    steps = {step for tag, step in read_scalars(Path("run")) if tag == "population/return_mean"}
    # Two generations in between were not logged.
    assert len(steps) == len(read_rows("run/history.csv")) - 2
