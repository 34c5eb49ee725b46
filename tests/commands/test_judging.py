"""Trainings that are judged: presets, budgets, records held back, verdicts; what `--resume` knows of it."""

import csv
import json
import shutil

import numba
import pytest

import acerl_np
from acerl_np.commands.main import main
from acerl_np.evaluation import verdict as verdicts
from acerl_np.policies.lookahead import Lookahead
from acerl_np.problem.instance import list_instances
from acerl_np.problem.packing import unpack_instances
from acerl_np.support.errors import CheckpointError, InputError
from acerl_np.support.files import read_arrays

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="trains and plays many episodes"
)

SHORT = ["--generations", "2", "--population", "4", "--quiet"]
NETWORK = [*SHORT, "--hidden", "3"]


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Six own records, and their floor."""
    monkeypatch.chdir(tmp_path)
    for k, record in enumerate(acerl_np.load_suite("dmh-train")[:6]):
        write_record(tmp_path / f"day{k}.csv", record.rows()[:12])
    return [f"day{k}.csv" for k in range(6)]


def write_record(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def train(*words):
    return main(["train", *words, "--layout", "dmh"])


def read_config(folder="run"):
    with open(f"{folder}/config.json") as file:
        return json.load(file)


def names(records):
    return [record.name for record in records]


def read_records(path, key, kind):
    return unpack_instances(read_arrays(path, kind)[key])


def test_a_quarter_is_held_back_from_everything(days, capsys, monkeypatch):
    histories = []
    begin = Lookahead.__init__

    def note(self, *arguments, history, **options):
        histories.append(names(list_instances(history)))
        begin(self, *arguments, history=history, **options)

    monkeypatch.setattr(Lookahead, "__init__", note)
    assert train(*days, "--preset", "best", *SHORT, "--trials", "2", "--out", "run") == 0
    out = capsys.readouterr().out
    config = read_config()
    held, kept = list(config["held_back"]), list(config["instances"])
    assert len(held) == 2 and sorted(held + kept) == [f"day{k}" for k in range(6)]
    assert (config["judged_on"], config["hold_out"]) == ("held-back records", 0.25)
    # Neither the checkpoint, nor the policy, nor the plan, nor the lookahead has seen them.
    assert names(read_records("run/run.npz", "instances", CheckpointError)) == kept
    assert names(acerl_np.load_policy("run/policy.npz").origin.history) == kept
    plan = acerl_np.load_policy("run/static.npz")
    assert names(plan.origin.history) == kept
    assert histories[-2:] == [kept, kept]
    stored = read_records("run/held-back.npz", "records", InputError)
    assert {item.name: item.content_hash for item in stored} == config["held_back"]
    assert out.startswith("Training records: means over 2 trials")
    assert f"Verdict on 2 unseen records (held back from training: {', '.join(held)})" in out
    assert f"static plan {plan.describe()}   run/static.npz" in out
    lines = out.splitlines()
    assert (
        sum(line.startswith("On 2 unseen records: too few records to tell (") for line in lines)
        == 1
    )
    header, row = (line for line in lines if line.startswith("policy  "))
    assert "beside " in header and "too few to tell" in row


def test_the_order_of_the_files_and_a_stop_change_nothing(days, capsys):
    assert train(*days, *NETWORK, "--trials", "1", "--out", "run") == 0
    straight = capsys.readouterr().out
    assert train(*days[::-1], *NETWORK, "--trials", "0", "--out", "other") == 0
    assert "Verdict" not in capsys.readouterr().out
    assert read_config("other")["held_back"] == read_config()["held_back"]
    assert train(*days, *NETWORK, "--trials", "0", "--seed", "4", "--out", "seeded") == 0
    assert read_config("seeded")["held_back"] != read_config()["held_back"]

    half = [word if word != "2" else "1" for word in NETWORK]
    assert train(*days, *half, "--trials", "0", "--out", "halved") == 0
    capsys.readouterr()
    resume = "train --resume halved/run.npz --generations 2 --quiet --trials 1"
    assert main(resume.split()) == 0
    resumed = capsys.readouterr().out

    def read_verdict(out):
        shown = out[out.index("Verdict on") : out.index("\n2 generations")]
        return [line for line in shown.splitlines() if not line.startswith("static plan ")]

    assert read_verdict(resumed) == read_verdict(straight)
    assert read_config("halved") == read_config()
    with open("run/policy.npz", "rb") as one, open("halved/policy.npz", "rb") as other:
        assert one.read() == other.read()


def test_what_is_given_beside_a_resumed_run_must_agree(days, capsys):
    assert train(*days, "--preset", "best", *SHORT, "--trials", "0", "--out", "run") == 0
    resume = ["--resume", "run/run.npz", "--quiet", "--trials", "0"]
    assert train(*days, *resume) == 0
    assert main(["train", *resume, "--hold-out", "0.25", "--preset", "best"]) == 0
    for words, message in (
        (["--hold-out", "0.5"], "trained with hold_out 0.25; read 0.5, expected the same"),
        (["--hold-out", "none"], "trained with hold_out 0.25; read none, expected the same"),
        (["--preset", "paper"], "trained with preset best; read paper, expected the same"),
        (["--spread", "one"], "trained with spread full; read one"),
    ):
        assert main(["train", *resume, *words]) == 2
        assert message in capsys.readouterr().err
    # A record that has changed since is not one that was held back, or trained on.
    held = next(iter(read_config()["held_back"]))
    rows = acerl_np.load_instance(f"{held}.csv", layout="dmh").rows()
    write_record(f"{held}.csv", [{**row, "expiry_time": row["expiry_time"] + 1} for row in rows])
    assert train(*days, *resume) == 2
    assert "expected the same records" in capsys.readouterr().err


def test_held_back_records_that_are_lost_are_missed(days, tmp_path, capsys):
    assert train(*days, *NETWORK, "--trials", "0", "--out", "run") == 0
    shutil.copytree("run", "changed")
    (tmp_path / "run" / "held-back.npz").unlink()
    resume = ["--quiet", "--trials", "1", "--resume"]
    assert main(["train", *resume, "run/run.npz"]) == 0
    captured = capsys.readouterr()
    assert "config.json names held-back records; noised copies" in captured.err
    assert "On 20 noised copies of the training records, not unseen ones: " in captured.out
    # Others in their place are refused, training records above all.
    config = read_config("changed")
    config["held_back"] = {}
    (tmp_path / "changed" / "config.json").write_text(json.dumps(config))
    assert main(["train", *resume, "changed/run.npz"]) == 2
    assert "holds other records than config.json beside it names" in capsys.readouterr().err


def test_few_own_records_are_judged_on_noised_copies(days, capsys):
    words = [*NETWORK, "--trials", "1", "--out", "run"]
    assert train(*days[:3], *words) == 0
    out = capsys.readouterr().out
    assert "Verdict on 15 noised copies of the training records, not unseen ones\n" in out
    assert "\nOn 15 noised copies of the training records, not unseen ones: " in out
    assert read_config()["judged_on"] == "noised copies" and read_config()["held_back"] == {}
    assert len(read_config()["instances"]) == 3
    # All are trained on if asked so; what an earlier run left in the folder is gone.
    assert train(*days, *NETWORK, "--trials", "0", "--out", "both") == 0
    assert train(*days, *words[:-1], "both", "--force", "--hold-out", "none") == 0
    assert "Verdict on 30 noised copies" in capsys.readouterr().out
    with pytest.raises(FileNotFoundError), open("both/held-back.npz"):
        pass


def test_bundled_records_are_held_back_only_if_asked(days, capsys):
    bundled = ["train", "DMH-01", "DMH-02", "DMH-03", "DMH-04", *NETWORK, "--trials", "1"]
    assert main([*bundled, "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Means over 1 trials") and "Verdict" not in out
    assert read_config()["judged_on"] == "nothing"
    assert main([*bundled, "--out", "run", "--force", "--hold-out", "0.5"]) == 0
    assert "Verdict on 2 unseen records" in capsys.readouterr().out
    assert len(read_config()["held_back"]) == 2
    # And a resumed one is as it was.
    assert main(["train", "--resume", "run/run.npz", "--quiet", "--trials", "1"]) == 0
    assert "Verdict on 2 unseen records" in capsys.readouterr().out


def test_no_records_holds_for_the_plan_too(days):
    words = [*NETWORK, "--trials", "1", "--no-records", "--out", "run"]
    assert train(*days, *words) == 0
    for name in ("policy", "static"):
        origin = acerl_np.load_policy(f"run/{name}.npz").origin
        assert not origin.history and len(origin.records) == 4


@pytest.mark.parametrize("share", ["0", "1", "-1", "1.5", "nan"])
def test_a_share_out_of_range_is_one_line(days, capsys, share):
    assert train(*days, f"--hold-out={share}") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert (
        f"--hold-out: read {float(share)}; expected a share above 0 and below 1, or none" in error
    )
    assert train(*days, "--hold-out", "half") == 2
    assert "read 'half'; expected a share such as 0.25, or none" in capsys.readouterr().err


def test_a_training_without_a_verdict_still_ends_well(days, capsys, monkeypatch):
    def refuse(*arguments, **options):
        raise InputError("a reason")

    monkeypatch.setattr(verdicts, "judge", refuse)
    assert train(*days, *NETWORK, "--trials", "1", "--out", "run") == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == "no verdict: a reason"
    assert "policy run/policy.npz" in captured.out


# Presets and budgets


def test_the_default_is_the_papers_preset(days):
    words = ["train", "DMH-01", *NETWORK, "--trials", "0", "--out"]
    assert main([*words, "a"]) == 0
    assert main([*words, "b", "--preset", "paper"]) == 0
    trainer = acerl_np.ACERL(
        [acerl_np.load_instance("DMH-01")],
        acerl_np.Config(generations=2, population=4, hidden=(3,)),
    )
    trainer.run()
    trainer.policy.save("c.npz")
    found = []
    for name in ("a/policy.npz", "b/policy.npz", "c.npz"):
        with open(name, "rb") as file:
            found.append(file.read())
    assert found[0] == found[1] == found[2]
    assert read_config("a")["preset"] == "paper"


def test_the_best_preset_trains_to_its_budget(days, capsys):
    words = ["train", "DMH-01", "--preset", "best", "--trials", "0", "--out", "run"]
    assert main([*words, "--decisions", "3000"]) == 0
    captured = capsys.readouterr()
    expected = acerl_np.Config.preset("best", decisions=3000).to_dict()
    assert read_config()["config"] == expected
    shown = [line for line in captured.err.splitlines() if " decisions: " in line]
    assert shown[-1].startswith("3,000/3,000 decisions: ") and " s left" in shown[0]
    assert isinstance(acerl_np.load_policy("run/policy.npz"), acerl_np.IndexPolicy)
    # Longer than first meant, and no shorter than done.
    resume = ["train", "--resume", "run/run.npz", "--quiet", "--trials", "0"]
    assert main([*resume, "--decisions", "6000"]) == 0
    assert read_config()["config"]["decisions"] == 6000
    assert main([*resume, "--decisions", "6000"]) == 0
    assert main([*resume, "--decisions", "4000"]) == 2
    assert "decisions already; expected at least as many (--decisions)" in capsys.readouterr().err
    assert main([*resume, "--generations", "1000", "--decisions", "7000"]) == 2
    assert "generations: given besides decisions" in capsys.readouterr().err


def test_a_large_budget_takes_hidden_units_and_generations_take_the_place_of_a_budget(days):
    words = ["train", "DMH-01", "--preset", "best", "--trials", "0", "--quiet", "--out", "run"]
    words.append("--force")
    assert main([*words, "--generations", "1"]) == 0
    config = read_config()["config"]
    assert (config["generations"], config["decisions"], config["hidden"]) == (1, None, [])
    assert acerl_np.Config.preset("best", decisions=5_000_000).hidden == (8,)
    with open("options.toml", "w") as file:
        file.write('preset = "best"\ndecisions = 2000\nspread = "diagonal"\nhold_out = "none"\n')
    assert main([*words[:2], *words[4:], "--config", "options.toml"]) == 0
    config = read_config()
    assert (config["preset"], config["config"]["spread"]) == ("best", "diagonal")
    assert config["config"]["decisions"] == 2000
    assert main([*words[:2], *words[4:], "--config", "options.toml", "--generations", "1"]) == 0
    assert read_config()["config"]["decisions"] is None


def test_every_option_can_be_set(days):
    words = "--form index --spread diagonal --knowledge tasks,time --without loaded --perturb 3 "
    words += "--records-per-member 2 --synthetic 0.5 --ranking penalty --penalty 2 --margin 1 "
    words += "--hidden= --outcome average --decisions 500 --population 4 --quiet --trials 0"
    assert main(["train", "DMH-01", *words.split(), "--out", "run"]) == 0
    config = read_config()["config"]
    expected = acerl_np.Config(
        form="index",
        spread="diagonal",
        knowledge=("tasks", "time"),
        without=("loaded",),
        perturb=3,
        records_per_member=2,
        synthetic=0.5,
        ranking="penalty",
        penalty=2.0,
        margin=1.0,
        hidden=(),
        outcome="average",
        decisions=500,
        population=4,
    )
    assert acerl_np.Config.from_dict(config) == expected
    resume = ["train", "--resume", "run/run.npz", "--quiet", "--trials", "0"]
    assert main([*resume, "--knowledge", "tasks,time", "--penalty", "2"]) == 0
    assert main([*resume, "--knowledge", "none"]) == 2
