"""`acerl-np replay` as users call it: what it prints, writes and refuses."""

import json
import re
from pathlib import Path

import pytest

import acerl_np
from acerl_np.evaluation.tracing import trace_policy


@pytest.fixture
def network(folder):
    config = acerl_np.Config(generations=1, population=2, hidden=(4,))
    Path("old").mkdir()
    for name in ("net.npz", "old/net.npz"):
        acerl_np.ACERL([acerl_np.load_instance("week.csv")], config, seed=0).policy.save(name)


def read_runs(path):
    text = Path(path).read_text(encoding="utf-8")
    script = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text)
    return json.loads(script[1])["runs"]


def test_defaults_write_a_page_and_print_one_line(folder, run):
    shown = run("replay STD DMH-01").out
    trace = trace_policy("STD", acerl_np.load_instance("DMH-01"))
    end = f"STD, makespan {trace.makespan:.1f} s, tardiness {trace.tardiness:.1f} s"
    assert shown == f"wrote replay.html (open it in a browser): {end}\n"
    [episode] = read_runs("replay.html")
    assert (episode["label"], episode["makespan"]) == ("STD", trace.makespan)
    # An unfinished episode says so.
    shown = run("replay EDD DMH-01 --horizon 500").out
    assert shown == "wrote replay.html (open it in a browser): EDD - (stopped at 500 s)\n"


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("EDD week.csv", ["EDD"]),
        ("net.npz edd week.csv --greedy", ["net.npz", "EDD"]),
        ("net.npz old/net.npz week.csv", ["net.npz", "old/net.npz"]),
        ("old/net.npz week.csv", ["net.npz"]),
        ("EDD week.csv --past past.csv", ["EDD", "past.csv"]),
        ("week.csv --past past.csv --layout layout.json --breakdowns none", ["past.csv"]),
        pytest.param(
            *("EDD DMH-02 --lookahead 2 --futures DMH-01", ["EDD", "EDD, lookahead 2"]),
            marks=pytest.mark.slow,  # a lookahead's trace is compiled
        ),
        ("MIX week.csv --trial 3 --seed 5 --breakdowns 90,5", ["MIX"]),
    ],
)
def test_who_decides(network, run, words, labels):
    shown = run(f"replay {words} --out page.html --force").out
    episodes = read_runs("page.html")
    assert [episode["label"] for episode in episodes] == labels
    told = [
        f"{episode['label']}, makespan {episode['makespan']:.1f} s, tardiness {episode['tardiness']:.1f} s"
        for episode in episodes
    ]
    assert shown == f"wrote page.html (open it in a browser): {'; '.join(told)}\n"


def test_the_trial_is_one_of_evaluate(folder, run):
    instance = acerl_np.load_instance("DMH-01")
    trials = acerl_np.evaluate_policy("MIX", instance, trials=3, seed=4)
    for trial in range(3):
        run(f"replay MIX DMH-01 --trial {trial} --seed 4")
        [episode] = read_runs("replay.html")
        assert episode["makespan"] == trials.makespan[0, trial]
