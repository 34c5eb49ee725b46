"""Trainings that are judged: presets, budgets, records held back, verdicts; what `--resume` knows of it."""

import html
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from machine import needs_jit
from tables_and_refusals import read_config, write

import acerl_np
from acerl_np.commands.shared import judging
from acerl_np.commands.shared.judges import Judges, write_judges
from acerl_np.commands.shared.training import show_means
from acerl_np.evaluation.metrics import Difference
from acerl_np.policies.general import make_general
from acerl_np.problem.goal import Goal
from acerl_np.problem.packing import unpack_instances
from acerl_np.support.errors import CheckpointError, InputError
from acerl_np.support.files import read_arrays

pytestmark = needs_jit

SHORT = "--generations 2 --set population=4 --quiet"
TRAINING = f"{SHORT} --preset best"
COPIES = ", on perturbed copies of the training records.\n"
RESUME = "train --resume run/run.npz --quiet --trials 0"
BEST = "train DMH-01 --preset best --trials 0 --out run"


@pytest.fixture
def days(empty):
    """Six own records, and the words that train on some of them."""
    for k, record in enumerate(acerl_np.load_suite("dmh-train")[:6]):
        write_record(empty / f"day{k}.csv", record.rows()[:12])
    return [f"day{k}.csv" for k in range(6)]


def write_record(path, rows):
    write(Path(path), ",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows))


@pytest.fixture
def train(run):
    """Train on own records on the floor of the bundled ones."""
    return lambda days, words, status=0: run(f"train {' '.join(days)} --layout dmh {words}", status)


def names(records):
    return [record.name for record in records]


def read_verdict(out):
    shown = out[: out.index("\n2 generations")]
    return [line for line in shown.splitlines() if "run.npz" not in line]


def read_records(path, key, kind):
    return unpack_instances(read_arrays(path, kind)[key])


@pytest.mark.slow
def test_what_is_held_back_is_held_back_from_everything(days, train):
    out = train(days, f"--preset best {SHORT} --trials 2 --hold-out 0.25 --out run --details").out
    config = read_config()
    held, kept = list(config["held_back"]), list(config["instances"])
    assert len(held) == 2 and sorted(held + kept) == [f"day{k}" for k in range(6)]
    assert (config["judged_on"], config["hold_out"]) == ("held-back records", 0.25)
    # Neither the checkpoint nor the policy has seen them.
    assert names(read_records("run/run.npz", "instances", CheckpointError)) == kept
    assert names(acerl_np.load_policy("run/policy.npz").origin.history) == kept
    stored = read_records("run/held-back.npz", "records", InputError)
    assert {item.name: item.content_hash for item in stored} == config["held_back"]
    assert out.startswith("Too few records to tell: makespan ") and "Training records: " in out
    assert f"Verdict on 2 unseen records (held out: {', '.join(held)})" in out
    assert (
        out.count("\nOn 2 unseen records, beside ")
        == out.count(": too few records to tell for makespan (")
        == 1
    )
    assert "\nTo tell, at least 5 records have to judge: train with --folds 5.\n" in out


def test_the_order_of_the_files_and_a_stop_change_nothing(days, train, run):
    held = f"{TRAINING} --hold-out 0.25"
    straight = train(days, f"{held} --trials 1 --out run").out
    assert "policy  " not in train(days[::-1], f"{held} --trials 0 --out other").out
    assert read_config("other")["held_back"] == read_config()["held_back"]
    train(days, f"{held} --trials 0 --seed 4 --out seeded")
    assert read_config("seeded")["held_back"] != read_config()["held_back"]
    train(days, f"{held} --generations 1 --trials 0 --out halved")
    resumed = run("train --resume halved/run.npz --generations 2 --quiet --trials 1").out
    assert read_verdict(resumed) == read_verdict(straight)
    assert read_config("halved")["held_back"] == read_config()["held_back"]
    assert Path("run/policy.npz").read_bytes() == Path("halved/policy.npz").read_bytes()


def test_what_is_given_beside_a_resumed_run_must_agree(days, train, run):
    own = f"{TRAINING} --seed 3 --hold-out 0.25"
    train(days, f"{own} --trials 0 --out run")
    # The same again, all of it.
    train(days, f"--resume run/run.npz --trials 0 {own} --generations 3")
    before = Path("run/run.npz").read_bytes()
    for words, message in {
        "--hold-out 0.5": "trained with hold_out 0.25; read 0.5, expected the same",
        "--hold-out none": "trained with hold_out 0.25; read none, expected the same",
        "--folds 3": "trained with held-back records, which judge; read --folds 3",
        "--preset paper": "trained with preset best; read paper, expected the same",
        "--set spread=one": "trained with spread full; read one",
        "--set population=8": "trained with population 4; read 8, expected the same",
        "--objective late": "trained with objective makespan; read late, expected the same",
        "--set features=approach": "; read ['approach'], expected the same",
        "--set planned_breakdowns=false": "trained with planned_breakdowns True; read False",
        "--seed 0": "trained with seed 3; read 0",
        "dmh-test": "; read DMH-09, DMH-10",
        "--layout dmh": "--layout: given without task records",
        "--generations 1": "has 3 generations already",
        "--generations -1": "generations: read -1",
    }.items():
        assert message in run(f"{RESUME} {words}", 2).err
    # A record that has changed since is not one that was held back, or trained on.
    for kind, message in {
        "held_back": "expected the same records",
        "instances": "' or its layout has changed since",
    }.items():
        name = next(iter(read_config()[kind]))
        text = Path(f"{name}.csv").read_text()
        rows = acerl_np.load_instance(f"{name}.csv", layout="dmh").rows()
        write_record(
            f"{name}.csv", [{**row, "expiry_time": row["expiry_time"] + 1} for row in rows]
        )
        assert message in train(days, RESUME.removeprefix("train "), 2).err
        Path(f"{name}.csv").write_text(text)
    assert Path("run/run.npz").read_bytes() == before
    run(f"{RESUME} --generations 4")


def test_held_back_records_that_are_lost_are_missed(days, train, run):
    train(days, f"{TRAINING} --trials 0 --hold-out 0.25 --out run")
    shutil.copytree("run", "changed")
    Path("run/held-back.npz").unlink()
    found = run("train --quiet --trials 1 --resume run/run.npz")
    assert "config.json names held-back records; noised copies" in found.err
    assert COPIES in found.out
    # Others in their place are refused, training records above all.
    Path("changed/config.json").write_text(json.dumps({**read_config("changed"), "held_back": {}}))
    err = run("train --quiet --trials 1 --resume changed/run.npz", 2).err
    assert "holds other records than config.json beside it names" in err
    known = acerl_np.ACERL.resume("run/run.npz").instances[0]
    write_judges(Path("changed"), Judges("held-back records", (known,), 0.25))
    facts = {**read_config("changed"), "held_back": {known.name: known.content_hash}}
    Path("changed/config.json").write_text(json.dumps(facts))
    err = run("train --quiet --trials 1 --resume changed/run.npz", 2).err
    assert f"'{known.name}' is a training record" in err


def test_few_own_records_are_judged_on_noised_copies(days, train):
    out = train(days[:3], f"{TRAINING} --trials 1 --out run").out
    assert COPIES in out
    assert read_config()["judged_on"] == "noised copies" and read_config()["held_back"] == {}
    assert len(read_config()["instances"]) == 3
    # All are trained on if asked so; what an earlier run left in the folder is gone.
    train(days, f"{TRAINING} --trials 0 --hold-out 0.5 --out both")
    out = train(days, f"{TRAINING} --trials 1 --out both --force --hold-out none").out
    assert COPIES in out
    assert not Path("both/held-back.npz").exists()


def test_each_of_a_few_records_judges_a_policy_that_has_not_seen_it(days, train, run, monkeypatch):
    out = train(days, f"{TRAINING} --trials 1 --out run --report report.html").out
    first = out.splitlines()[0]
    assert ", on 6 records not seen in training (5 folds)." in first
    page = html.unescape(Path("report.html").read_text())
    assert first in page and "<h1>Dispatching on dmh, 3 vehicles, 6 records</h1>" in page
    assert "<td>policy</td>" in page and "lanes are driven in both directions" in page
    assert (
        "report.html exists; expected a new name"
        in train(days, f"{TRAINING} --report report.html", 2).err
    )
    said = "--report: no verdict to write; expected own records, --hold-out or --folds, and"
    assert said in run("train --quiet --generations 1 --report other.html", 2).err
    config = read_config()
    assert (config["judged_on"], config["folds"], config["hold_out"]) == ("folds", 5, None)
    assert len(config["instances"]) == 6 and not Path("run/held-back.npz").exists()
    # The policy that is kept is that of all records, as without folds; and a stop changes nothing.
    train(days, f"{TRAINING} --trials 0 --hold-out none --out all")
    assert Path("run/policy.npz").read_bytes() == Path("all/policy.npz").read_bytes()
    for words in ("--resume run/run.npz", "--resume all/run.npz --folds 5"):
        resumed = run(f"train --quiet --trials 1 {words}").out
        assert read_verdict(resumed) == read_verdict(out)
    # What takes long is left out, and said, but done if asked for.
    monkeypatch.setattr(judging, "FOLD_SECONDS", 0.0)
    out = train(days, f"{TRAINING} --trials 1 --out slow").out
    assert ", on 3 records not seen in training.\n" in out
    line = "1 of 2 folds: 5 trainings would take about 1 s (acerl-np train "
    assert f"\n{line}--resume slow/run.npz --folds 5)\n" in out
    assert "training (2 folds)." in train(days, f"{TRAINING} --trials 1 --out two --folds 2").out
    assert "expected one of the two" in train(days, f"{TRAINING} --folds 2 --hold-out 0.5", 2).err


@pytest.mark.parametrize(("n", "kept"), [(4, "general"), (6, "general"), (6, "training")])
def test_what_began_as_general_is_kept_if_better(days, train, n, kept, monkeypatch):
    """By its 95 % interval, on what it has not seen; never of fewer than five records."""
    if kept == "training":  # whatever judges, the training gains a second of each record
        monkeypatch.setattr(
            judging, "compare_paired", lambda own, other: Difference(-1.0, 0.1, 0.0, 0.0)
        )
    words = "--preset best --set start=general --set generations=1"
    out = train(days[:n], f"{words} --trials 1 --out run").out
    why = {
        (
            "general",
            4,
        ): "Kept: general, as fewer than 5 different records have trained\nThe training is in ",
        ("general", 6): "Kept: general, as the training is ",
        (
            "training",
            6,
        ): "Kept: the training, better than general in makespan by 1.0 (95 % interval 0.8 to 1.2)",
    }
    assert why[kept, n] in out
    own = acerl_np.load_policy("run/policy.npz")
    assert np.array_equal(own.theta, make_general("makespan").theta) == (kept == "general")


def test_bundled_records_are_held_back_only_if_asked(empty, run):
    bundled = f"train DMH-01 DMH-02 DMH-03 DMH-04 {TRAINING} --trials 1 --out run"
    out = run(bundled).out
    assert out.startswith("Means over 1 trials") and "not seen" not in out
    assert read_config()["judged_on"] == "nothing"
    unseen = "on 2 records not seen in training."
    assert unseen in run(f"{bundled} --force --hold-out 0.5").out
    assert len(read_config()["held_back"]) == 2
    # And a resumed one is as it was.
    resumed = run("train --resume run/run.npz --quiet --trials 1").out
    assert unseen in resumed
    # Without the records the policy does not have them.
    run(f"{bundled} --force --hold-out 0.5 --set no_records=true")
    origin = acerl_np.load_policy("run/policy.npz").origin
    assert not origin.history and len(origin.records) == 2


def test_a_training_without_a_verdict_still_ends_well(days, train, monkeypatch):
    def refuse(*arguments, **options):
        raise InputError("a reason")

    monkeypatch.setattr(judging, "judge", refuse)
    found = train(days, f"{TRAINING} --trials 1 --hold-out none --out run")
    assert found.err.splitlines()[-1] == "no verdict: a reason"
    assert "policy run/policy.npz" in found.out


# Presets and budgets


def test_the_default_is_the_papers_preset(empty, run):
    words = f"train DMH-01 {SHORT} --set hidden=3 --trials 0 --out"
    run(f"{words} a")
    run(f"{words} b --preset paper")
    trainer = acerl_np.ACERL(
        [acerl_np.load_instance("DMH-01")],
        acerl_np.Config(generations=2, population=4, hidden=(3,)),
    )
    trainer.run()
    trainer.policy.save("c.npz")
    found = [Path(name).read_bytes() for name in ("a/policy.npz", "b/policy.npz", "c.npz")]
    assert found[0] == found[1] == found[2]
    assert read_config("a")["preset"] == "paper"


def test_own_records_take_the_best_preset_and_shifts_their_objective(days, train):
    few = "--generations 1 --set population=4 --trials 0 --force --out run"
    told = "preset best: the paper's is for the benchmark (--preset paper)"
    err = train(days[:2], few).err
    assert told in err and "objective" not in err
    assert (read_config()["preset"], read_config()["config"]["objective"]) == ("best", "makespan")
    err = train(days[:2], f"{few} --set slots=pool").err
    assert told not in err and read_config()["preset"] == "paper"
    for name in days[:2]:
        rows = acerl_np.load_instance(name, layout="dmh").rows()
        write_record(name, [{**row, "arrival_time": 9 * row["arrival_time"]} for row in rows])
    err = train(days[:2], few).err
    line = "objective late+0.05*tardiness, as these are shifts of 12 tasks (--objective makespan, "
    assert line in err and ": late+0.05*tardiness " in err and "within limit" not in err
    config = read_config()["config"]
    assert (config["objective"], config["cost_limit"]) == ("late+0.05*tardiness", None)
    err = train(days[:2], f"{few} --preset paper").err
    assert "objective makespan, though these are shifts of 12 tasks" in err and told not in err
    err = train(days[:2], f"{few} --objective empty --set cost=late --cost-limit 5").err
    assert "train: objective" not in err and ": empty " in err and ", late " in err
    assert "within limit" in err and told not in train(days[:2], f"{few} --quiet").err


def test_progress_has_no_minus_before_a_zero():
    for total in (0.0, 1e-4):
        record = SimpleNamespace(return_mean=total, cost_mean=0.0)
        assert show_means(record, Goal("late")) == "late 0.00, tardiness 0.0"


def test_the_best_preset_trains_to_its_budget(empty, run):
    err = run(f"{BEST} --decisions 3000").err
    expected = acerl_np.Config.preset("best", decisions=3000, objective="makespan").to_dict()
    assert read_config()["config"] == expected
    shown = [line for line in err.splitlines() if " decisions: " in line]
    assert shown[-1].startswith("3,000/3,000 decisions: ") and " s left" in shown[0]
    assert isinstance(acerl_np.load_policy("run/policy.npz"), acerl_np.IndexPolicy)
    # Longer than first meant, and no shorter than done.
    run(f"{RESUME} --decisions 6000")
    assert read_config()["config"]["decisions"] == 6000
    run(f"{RESUME} --decisions 6000")
    err = run(f"{RESUME} --decisions 4000", 2).err
    assert "decisions already; expected at least as many (--decisions)" in err
    err = run(f"{RESUME} --generations 1000 --decisions 7000", 2).err
    assert "generations: given besides decisions" in err
    # Generations take the place of a budget, also of one in a file.
    lines = 'preset = "best"', "decisions = 2000", 'spread = "diagonal"', 'hold_out = "none"'
    write(Path("options.toml"), *lines)
    words = f"{BEST} --quiet --force --config options.toml"
    for more, budget in (("", 2000), ("--generations 1", None)):
        run(f"{words} {more}")
        config = read_config()
        assert (config["preset"], config["config"]["spread"]) == ("best", "diagonal")
        assert config["config"]["decisions"] == budget
    assert config["config"]["generations"] == 1


def test_every_option_can_be_set(empty, run):
    some = {"form": "index", "spread": "diagonal", "perturb": 3, "records_per_member": 2}
    some |= {"synthetic": 0.5, "ranking": "penalty", "penalty": 2.0}
    some |= {"margin": 1.0, "outcome": "average"}
    some |= {"decisions": 500, "population": 4, "cost": "empty", "cost_limit": 3.0}
    words = "".join(f"--set {name}={value} " for name, value in some.items())
    words += "--set features=imbalance,approach --set planned_breakdowns=false --quiet --trials 0 "
    run(f"train DMH-01 {words} --objective late+0.50*waiting --set class_weights=1,4 --out run")
    some |= {"features": ("approach", "imbalance"), "planned_breakdowns": False}
    some |= {"objective": "late+0.5*waiting", "class_weights": (1.0, 4.0)}
    assert acerl_np.Config.from_dict(read_config()["config"]) == acerl_np.Config(**some)
    run(f"{RESUME} --set features=imbalance,approach --set penalty=2")


def test_python_trains_and_evaluates_as_the_command_does(days, train, caplog):
    """Policy, folds and verdict; what is chosen is told to the logger; a page of it can be written."""
    records = [acerl_np.load_instance(name, layout="dmh") for name in days]
    first = train(days, f"{TRAINING} --trials 1 --out run").out.splitlines()[0]
    with caplog.at_level("INFO", "acerl_np"):
        found = acerl_np.train(records, generations=2, population=4, trials=1)
    assert f"{found!r}" == f"<Training: {first}>" and found.verdict.headline == first
    assert "preset best" in caplog.text and "fold 5 of 5 is trained" in caplog.text
    found.policy.save("own.npz")
    assert Path("own.npz").read_bytes() == Path("run/policy.npz").read_bytes()
    acerl_np.write_report("own.html", found)
    assert html.escape(first) in Path("own.html").read_text()
    few = acerl_np.train(records[:1], generations=1, population=2, trials=0)
    assert few.verdict is None and "no verdict" in f"{few}"
    for wrong, message in {"popluation": "no setting of acerl", "resume": "no setting of"}.items():
        with pytest.raises(acerl_np.ConfigError, match=message):
            acerl_np.train(records, **{wrong: 3})
    with pytest.raises(InputError, match="without a verdict"):
        acerl_np.write_report("own.html", few)
