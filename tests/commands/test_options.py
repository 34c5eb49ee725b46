"""Options from the shell, from files and from a run's config.json; what goes with what."""

import json
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from machine import needs_jit
from tables_and_refusals import list_unrefused, read_config, read_rows

import acerl_np
from acerl_np.support.errors import InputError
from acerl_np.support.log import count_compiled
from acerl_np.warm import PARTS

TINY = "--set population=2 --set hidden=2 --quiet"


# Files of options


@needs_jit
def test_options_come_from_toml_and_the_command_line_wins(folder, run):
    Path("small.toml").write_text(
        'tasks = ["week.csv"]\ngenerations = 1\npopulation = 4\nhidden = [3]\ntrials = 0\nseed = 5\n'
        'noise-std = 0.2\nsampler = "uniform"\nquiet = true\n'
    )
    run("train --config small.toml --set population=6 --out run")
    written = read_config("run")
    assert written["seed"] == 5 and list(written["instances"]) == ["week"]
    for name, value in {"population": 6, "noise_std": 0.2, "hidden": [3]}.items():
        assert written["config"][name] == value
    Path("small.json").write_text(json.dumps(tomllib.loads(Path("small.toml").read_text())))
    run("train --config small.json --set population=6 --out again")
    assert read_config("again") == written


BAD_TOML = {
    "popluation = 4": "popluation: no setting of acerl; expected one that ... did you mean 'population'?",
    "population = 1": "population: read 1; expected a whole number from 2",
    "hidden = [0]": "hidden: read [0]; expected at most 10 layer sizes",
    "seed = -1": "seed: read -1; expected a whole number from 0",
    'seeds = "0:2"\nseed = 1': "seed: given besides seeds; expected one of the two",
    'tasks = "DMH-01"': "tasks: read DMH-01; expected a list",
    "trials = 2.5": "trials: read 2.5; expected a whole number from 0",
    "quiet = 1": "quiet: read 1; expected true or false",
    "breakdowns = 'none'": "breakdowns: read none; expected a list of texts",
    "mapping = 3": "mapping: read 3; expected a text",
    'preset = "good"': "preset: read good; expected one of paper, best",
    "hold_out = 2": "hold_out: read 2; expected a share above 0 and below 1 such as",
    'rules = ["STD", "SPT"]': "rules: read ['STD', 'SPT']; expected some of FCFS, EDD, NVF, STD, LWT, AHP",
    'form = "index"\nrules = ["STD"]': "rules: read ('STD',); expected the default with form index",
    'form = "index"\nbiases = false': "biases: read False; expected True with form index",
    "decisions = 9\ngenerations = 9": "generations: given besides decisions",
    'algorithm = "ppo"': "algorithm: no setting of acerl; expected one that acerl-np train --settings lists",
    "population = ": "not TOML",
}


def test_bad_options_in_a_file_are_one_line(folder, run):
    def read(text, name="bad.toml", more=""):
        Path(name).write_text(text)
        raise InputError(run(f"train {more} --config {name} --out run", 2).err.rstrip("\n"))

    assert list_unrefused(read, BAD_TOML.items()) == []
    # A seed in a file is not dropped beside --seeds.
    with pytest.raises(InputError, match=r"seed\.toml: seed: given besides seeds; expected one of"):
        read("seed = 7\n", "seed.toml", "week.csv --seeds 0:2")
    texts = ("[]", "3", '{"instances": 3}', '{"instances": {}, "config": 3}')
    cases = dict.fromkeys(texts, "config.json: expected the config.json of a run")
    cases["no"], cases['{"a": 1}'] = "config.json: not JSON: ", "config.json: a: no setting"
    assert list_unrefused(lambda text: read(text, "config.json"), cases.items()) == []


@needs_jit
@pytest.mark.parametrize(
    "words",
    [
        f"train DMH-01 DMH-02 --generations 1 {TINY} --set p_f=0.25 --set rules=AHP,STD --seed 3",
        "train DMH-02 DMH-03 --preset best --decisions 60 --quiet --hold-out 0.5",
    ],
)
def test_a_run_is_repeated_by_its_config_json(folder, run, words):
    """And by what --settings prints; with other seeds, and on other records, too."""
    run(f"{words} --trials 0 --out one")
    again = "train --config one/config.json --trials 0 --quiet"
    run(f"{again} --out two")
    Path("all.toml").write_text(run(f"{again} --settings").out)
    assert tomllib.loads(Path("all.toml").read_text())["quiet"] is True
    run("train --config all.toml --out three")
    for other in ("two", "three"):
        assert Path(other, "policy.npz").read_bytes() == Path("one/policy.npz").read_bytes()
        assert read_config(other) == read_config("one")
    run(f"{again} week.csv --seed 9 --hold-out none --out four")
    assert list(read_config("four")["instances"]) == ["week"] and read_config("four")["seed"] == 9


@needs_jit
def test_several_seeds_are_repeated_by_their_config_json(folder, run):
    """They are judged with the horizon."""
    words = f"train week.csv --generations 1 {TINY} --trials 2 --set horizon=10 --processes 1 --seeds 1:2"
    run(f"{words} --out all")
    policy = acerl_np.load_policy("all/seed1/policy.npz")
    trials = acerl_np.evaluate_policy(
        policy, acerl_np.load_instance("week.csv"), trials=2, horizon=10.0
    )
    assert trials.unfinished == 2 and read_rows("all/summary.csv")[0]["makespan"] == "nan"
    again = "train week.csv --config all/config.json --trials 0 --quiet --processes 1"
    run(f"{again} --out more --seeds 1:3")
    assert read_config("more") == read_config("all") | {"seeds": [1, 2]}
    run(f"{again} --out one --seed 1")
    assert Path("one/policy.npz").read_bytes() == Path("all/seed1/policy.npz").read_bytes()


@needs_jit
def test_files_of_own_records_are_named_beside_a_config_json(folder, run):
    run(f"train week.csv next.csv --generations 0 {TINY} --trials 0 --out run")
    err = run("train --config run/config.json --out two", 2).err
    assert "the run was of week, next, whose files it does not name; expected TASKS as well" in err
    config = {"config": {"form": "network", "knowledge": None}, "instances": {"week": ""}}
    Path("old.json").write_text(json.dumps(config))
    err = run("train week.csv --config old.json --settings", 2).err
    assert "old.json: generations: missing; expected every option, as this version writes" in err


# What is judged, and how long it takes


@needs_jit
def test_the_results_of_a_run_stay_in_its_folder(folder, run):
    out = run(f"train week.csv --generations 1 {TINY} --trials 2 --details --out run").out
    rows = read_rows("run/results.csv")
    assert [row["record"] for row in rows[:2]] == ["week", "mean"]
    assert {row["records_of"] for row in rows} == {"training", "noised copies"}
    shown = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    for row in rows:
        assert f"{float(row['makespan_s']):.1f}" in out
    assert float(rows[0]["tardiness_s"]) == pytest.approx(float(shown["week"][2]), abs=0.05)
    run("train --resume run/run.npz --trials 0 --quiet")
    assert not Path("run/results.csv").exists()


@needs_jit
def test_a_decision_takes_as_long_as_its_workers_took(folder, run, processes, monkeypatch):
    words = "evaluate EDD --on week.csv --lookahead 1 --futures next.csv --trials 3 --format csv"
    for more in ("--threads 1", "--processes 1"):
        run(f"{words} {more}")
        clock = map(float, range(10_000))
        with monkeypatch.context() as patch:
            timer = SimpleNamespace(perf_counter=lambda clock=clock: next(clock))
            patch.setattr("acerl_np.commands.evaluate.time", timer)
            err = run(f"{words} {more}").err
        # One worker, one second on the clock, two decisions in each of three episodes.
        assert f"EDD, lookahead 1: {1e3 / 6:.2g} ms a decision" in err


# Names of records and of past assignments


@needs_jit
@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("replay EDD week.csv --past past.csv", "replay --past past.csv EDD week.csv"),
        ("evaluate EDD STD --on week.csv", "evaluate --on week.csv EDD STD"),
        ("evaluate EDD --on week.csv,next.csv", "evaluate EDD --on week.csv --on next.csv"),
        ("evaluate EDD --on next.csv,week.csv", "evaluate EDD --on '[wn]e*.csv'"),
    ],
)
def test_names_stand_where_they_may(folder, run, words, same):
    assert run(words).out == run(same).out


# What there is


def test_what_there_is_to_name_is_listed(run):
    rows = json.loads(run("list --format json").out)
    names = {
        kind: [row["name"] for row in rows if row["kind"] == kind] for kind in ("suite", "rule")
    }
    assert "dmh-train" in names["suite"] and names["rule"][:2] == ["FCFS", "EDD"]
    assert all(row["what"] for row in rows)
    out = run("list features").out
    assert "way to the pickup" in out and "dmh-train" not in out


def test_warm_of_everything_leaves_out_nothing(run, monkeypatch):
    warmed = []
    with monkeypatch.context() as patch:
        patch.setattr("acerl_np.warm.warm_up", warmed.append)
        run("warm")
    assert warmed == list(PARTS) and "own" in warmed
    told = run("warm --help").out
    assert all(f"{part}" in told for part in PARTS)


@needs_jit
def test_warm_says_what_and_how_long(run):
    run("warm rules")
    compiled = count_compiled()
    began = time.perf_counter()
    out = run("warm rules replay").out
    assert count_compiled() == compiled and time.perf_counter() - began < 60.0
    lines = out.splitlines()
    assert lines[0].startswith("rules: compiled already, loaded in ") and lines[0].endswith(" s")
    assert lines[1].startswith("replay: ")
