"""`acerl-np replay` as users call it: what it prints, writes and refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import acerl_np
from acerl_np.commands.main import main
from acerl_np.evaluation.tracing import trace_policy

LAYOUT = {
    "format": 1,
    "sites": [{"id": name, "x": 10 * k, "y": 0} for k, name in enumerate("abc")],
    "edges": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
    "vehicles": [{"id": "v", "start": "a"}, {"id": "w", "start": "c"}],
}
RECORD = "task,pickup,delivery,arrival_time,expiry_time\nt,a,b,0,9\nu,c,a,5,90\n"
PAST = "task,vehicle,start\nt,v,0\nu,w,40\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("layout.json").write_text(json.dumps(LAYOUT))
    Path("week.csv").write_text(RECORD)
    Path("past.csv").write_text(PAST)
    config = acerl_np.Config(generations=1, population=2, hidden=(4,))
    acerl_np.ACERL([acerl_np.load_instance("week.csv")], config, seed=0).policy.save("net.npz")
    return tmp_path


def read_runs(path):
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text)[1])[
        "runs"
    ]


def test_defaults_write_a_page_and_print_one_line(folder, capsys):
    assert main(["replay", "STD", "DMH-01"]) == 0
    trace = trace_policy("STD", acerl_np.load_instance("DMH-01"))
    line = f"replay.html: STD {trace.makespan:.1f}/{trace.tardiness:.1f}\n"
    assert capsys.readouterr().out == line
    [run] = read_runs("replay.html")
    assert (run["label"], run["makespan"]) == ("STD", trace.makespan)


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("EDD week.csv", ["EDD"]),
        ("net.npz week.csv --greedy --against edd", ["net.npz", "EDD"]),
        ("past.csv week.csv --against EDD", ["past.csv", "EDD"]),
        ("EDD week.csv --against past.csv", ["EDD", "past.csv"]),
        ("past.csv week.csv --layout layout.json --breakdowns none", ["past.csv"]),
        ("EDD DMH-02 --lookahead 2 --history DMH-01", ["EDD", "EDD, lookahead 2"]),
        ("Static week.csv --fit week.csv", ["Static (fitted on week)"]),
        ("MIX week.csv --trial 3 --seed 5 --random-breakdowns 90,5", ["MIX"]),
    ],
)
def test_who_decides(folder, capsys, words, labels):
    status = main(["replay", *words.split(), "--out", "page.html", "--force"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    runs = read_runs("page.html")
    assert [run["label"] for run in runs] == labels
    told = [f"{run['label']} {run['makespan']:.1f}/{run['tardiness']:.1f}" for run in runs]
    assert captured.out == f"page.html: {', '.join(told)}\n"


def test_the_trial_is_one_of_evaluate(folder):
    instance = acerl_np.load_instance("DMH-01")
    trials = acerl_np.evaluate_policy("MIX", instance, trials=3, seed=4)
    for trial in range(3):
        words = ["--trial", str(trial), "--seed", "4"]
        assert main(["replay", "MIX", "DMH-01", *words]) == 0
        [run] = read_runs("replay.html")
        assert run["makespan"] == trials.makespan[0, trial]


def test_files_of_one_name_keep_their_folders(folder):
    Path("old").mkdir()
    Path("old/net.npz").write_bytes(Path("net.npz").read_bytes())
    assert main(["replay", "net.npz", "week.csv", "--against", "old/net.npz"]) == 0
    assert [run["label"] for run in read_runs("replay.html")] == ["net.npz", "old/net.npz"]
    assert main(["replay", "old/net.npz", "week.csv"]) == 0
    assert [run["label"] for run in read_runs("replay.html")] == ["net.npz"]


def test_an_unfinished_episode_says_so(folder, capsys):
    assert main(["replay", "EDD", "DMH-01", "--horizon", "500"]) == 0
    assert capsys.readouterr().out == "replay.html: EDD - (stopped at 500 s)\n"


BAD = {
    "XYZ week.csv": "policy 'XYZ': unknown; expected one of FCFS",
    "none.npz week.csv": "none.npz: expected a file, found nothing",
    "none.csv week.csv": "none.csv: expected a file, found nothing",
    "week.csv week.csv": "week.csv: line 1: missing column 'vehicle'",
    "EDD none.csv": "none.csv: no such task record",
    "EDD": "read 1 names (EDD); expected POLICY and INSTANCE",
    "EDD week.csv --out week.csv": "--out: read 'week.csv'; expected a name that ends in .html",
    "EDD week.csv --out net": "--out: read 'net'; expected a name that ends in .html",
    "EDD week.csv --trial -1": "--trial: read -1; expected a whole number from 0 to",
    "EDD week.csv --seed x": "argument --seed: invalid int value",
    "EDD week.csv --horizon -1": "horizon",
    "EDD DMH-02 --against STD --lookahead 2 --history DMH-01": "--lookahead: 4 episodes",
    "past.csv week.csv --against past.csv --against past.csv --lookahead 3": "--lookahead: no trained",
    "EDD week.csv --weights even": "--weights: given without --lookahead",
    "EDD week.csv --layout none.json": "none.json: no such layout",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line(folder, capsys, words):
    before = sorted(folder.iterdir())
    assert main(["replay", *words.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert BAD[words] in captured.err
    assert sorted(folder.iterdir()) == before
