"""Stored studies: what is written comes back, rows are kept once, and claims are judged by the same rules."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from acerl_np import Config, InputError, load_suite
from acerl_np.training.history import HISTORY_COLUMNS
from studies import claims
from studies.claims import JUDGES, compare, measure_curves, read_claims
from studies.rivals.training import RivalConfig
from studies.stored import ROWS_FILE, StoredStudy, read_table, store_rules, store_study
from studies.study import GREEDY, Finished, Training
from studies.study_tables import Measured

TRAIN = load_suite("dmh-train")
SUITES = (("dmh-train", tuple(TRAIN)),)
MAIN = Training("ACERL", tuple(TRAIN), Config(), SUITES, greedy=True)


def make_run(seed, makespan=1900.0, suites=("dmh-train", f"dmh-train{GREEDY}")):
    draws = np.random.default_rng(seed)
    trials = {x: makespan + draws.integers(0, 40, (8, 3)).astype(float) for x in suites}
    late = {x: draws.integers(0, 2000, (8, 3)) / 30 for x in suites}
    late["dmh-train"][2] = 12.5  # equal trials
    history = np.zeros((2, len(HISTORY_COLUMNS)))
    history[1, [HISTORY_COLUMNS.index(x) for x in ("decisions", "seconds")]] = (4096, 1.5)
    looks, curves = np.array([[0, 0], [2, 4096]]), draws.random((3, 2, 8)).round(4)
    dealt = np.full((2, 8), 32), np.full((2, 8), 0.125)
    names = tuple(x.name for x in TRAIN)
    return Finished(seed, names, trials, late, history, *dealt, looks, curves)


def test_what_is_stored_comes_back(tmp_path):
    runs = [make_run(seed) for seed in range(2)]
    store_study(tmp_path, "comparison", [MAIN], {"ACERL": runs})
    stored = StoredStudy(tmp_path)
    [row, greedy] = stored.rows(stored.load("comparison"), "dmh-train")
    assert (row.label, greedy.label) == ("ACERL", "ACERL, greedy")
    for k, run in enumerate(runs):
        assert np.array_equal(row.makespan[:, k], run.makespan["dmh-train"])
        np.testing.assert_allclose(row.tardiness[:, k], run.tardiness["dmh-train"], atol=1e-4)
    restored = stored.load("comparison")["ACERL"][1].history
    assert np.array_equal(restored, runs[1].history[-1:])
    [line, *_] = read_table(tmp_path, "comparison", "curves")
    assert line["row"] == "ACERL" and float(line["makespan"]) == runs[0].curves[0, 0, 0]
    assert len(read_table(tmp_path, "comparison", "sampler")) == 2 * 2 * 8


def test_a_row_of_two_studies_is_kept_once(tmp_path):
    """Also where the other one asks for fewer seeds; the code that trained it does not matter."""
    store_study(tmp_path, "comparison", [MAIN], {"ACERL": [make_run(0), make_run(1)]})
    store_study(tmp_path, "learning", [replace(MAIN, label="default")], {"default": [make_run(0)]})
    rows = json.loads((tmp_path / ROWS_FILE).read_text())
    assert rows["learning"]["default"] == {"seeds": [0], "at": ["comparison", "ACERL"]}
    assert not (tmp_path / "learning-trials.csv.xz").exists()
    found = StoredStudy(tmp_path).load("learning")["default"]
    assert len(found) == 1
    assert np.array_equal(found[0].makespan["dmh-train"], make_run(0).makespan["dmh-train"])


def test_rules_come_back_by_suite(tmp_path):
    ones = np.ones((8, 2, 3))
    rows = [
        Measured(x, ones * (1900.0 + k), ones * k / 3) for k, x in enumerate(("EDD", "nearest"))
    ]
    store_rules(tmp_path, {"dmh-train": rows, "dmh-test": rows[:1]})
    assert [row.label for row in StoredStudy(tmp_path).rule_rows("dmh-train")] == ["EDD"]
    found = StoredStudy(tmp_path).rule_rows("dmh-train", rules=("EDD", "nearest"))
    assert [row.label for row in found] == ["EDD", "nearest"]
    assert np.array_equal(found[1].makespan, rows[1].makespan)
    np.testing.assert_allclose(found[1].tardiness, rows[1].tardiness, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (ROWS_FILE, b"{", "expected the rows of stored studies"),
        ("comparison-trials.csv.xz", b"no archive", "expected a stored study"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, content, message):
    store_study(tmp_path, "comparison", [MAIN], {"ACERL": [make_run(0)]})
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}.*{message}"):
        StoredStudy(tmp_path).load("comparison")


def make_row(label, means, share=1.0):
    """Seeds with these mean makespans on every record, that share of the records within the limit."""
    seeds = np.asarray(means, float)
    late = np.where(np.arange(8) < 8 * share, 10.0, 60.0)
    trials = np.zeros((8, len(seeds), 2))
    return Measured(label, trials + seeds[None, :, None], trials + late[:, None, None])


def test_an_order_is_judged_seed_by_seed():
    own = make_row("A", range(20))
    starts = {"near": 1, "far": 40, "ahead": -40}
    others = [make_row(name, range(start, start + 20)) for name, start in starts.items()]
    found = compare(own, others, 0)
    assert found.verdict == "holds in part: 1 of 3"
    assert "better than far" in found.figures and "worse than ahead" in found.figures
    assert "not told apart from near" in found.figures
    assert found.tests[0] == pytest.approx(mannwhitneyu(range(20), range(1, 21)).pvalue)
    assert found.show(0.0)[2:4] == ["2 of 3", "0"] and found.show(0.04)[3] == "2"
    # The side is that of the ranks: one bad seed of twenty hides nothing, and turns nothing round.
    bad = make_row("bad", [*range(19), 9000])
    assert "better than far" in compare(bad, others[1:2], 0).figures
    assert compare(own, others[:1], 0).verdict == "not told apart"
    assert compare(own, others[2:], 0).verdict == "does not hold"
    assert compare(own, others[1:2], 0).verdict == "holds"


def judge(judge_name, rows, **fields):
    claim = next(x for x in read_claims() if x.judge == judge_name)._replace(**fields)
    made = SimpleNamespace(rows_of=lambda study, suite: {row.label: row for row in rows})
    return JUDGES[judge_name](made, claim)


def test_a_level_is_what_five_seeds_would_print():
    fields = {"row": "ACERL", "what": "makespan", "table": "comparison-train-spread"}
    fields["suite"] = "dmh-train"
    found = judge("level", [make_row("ACERL", [1855, 1865, 1875])], **fields)
    assert found.verdict == "not told apart" and "1857.0 to 1873.0 s" in found.figures
    assert judge("level", [make_row("ACERL", [1800, 1801])], **fields).verdict == "holds"
    found = judge("level", [make_row("ACERL", [1899, 1900, 1901])], **fields)
    assert found.verdict == "does not hold"
    # Seven of ten seeds at 100 %: five of them all are with a probability of 0.7^5.
    row = make_row("ACERL", range(10))
    row.tardiness[:, 7:] = 60.0
    found = judge("level", [row], **{**fields, "what": "within the limit"})
    assert found.verdict == "not told apart"
    assert float(found.figures.rpartition(" ")[2]) == pytest.approx(0.7**5, abs=0.01)


def test_a_gain_is_within_an_interval_or_not():
    fields = {"row": "ISR+AIS", "others": ("ISR+Uniform",), "what": "makespan"}
    rows = [make_row("ISR+AIS", range(1850, 1870)), make_row("ISR+Uniform", range(1850, 1870))]
    assert judge("gain", rows, **fields).verdict == "does not hold"  # the paper's is 5.6 s
    rows[0] = make_row("ISR+AIS", range(1845, 1865))
    assert judge("gain", rows, **fields).verdict == "not told apart"


def make_cells(error):
    """Trials of all rules whose means are the paper's, and further off by so many of their errors."""
    rows = []
    for label in claims.RULE_ROWS:
        cells = claims.find_row("comparison-train", label).cells.values()
        around = 60.0 * np.sign(np.arange(600) % 2 - 0.5)
        spread = around.std(ddof=1) * (1 / 30 + 1 / 600) ** 0.5
        trials = [np.array([x[k] + error * spread + around for x in cells]) for k in (0, 1)]
        rows.append(claims.Measured(label, *(x.reshape(8, 20, 30) for x in trials)))
    return rows


def test_cells_of_rules_are_judged_by_the_sum_of_their_squares():
    found = judge("cells", make_cells(1.0), others=claims.RULE_ROWS)
    assert found.verdict == "not told apart" and "over 96 cells: 96 if" in found.figures
    assert judge("cells", make_cells(1.3), others=claims.RULE_ROWS).verdict == "does not hold"


def test_a_rank_counts_who_is_ahead():
    rows = [make_row(x, [1900.0 + k]) for k, x in enumerate(("ACERL", "b", "c"))]
    fields = {"suite": "dmh-test", "others": ("b", "c")}
    assert judge("first", rows, **fields).verdict == "holds"  # equal C and P share the first place
    found = judge("first", rows, row="c", **{**fields, "others": ("ACERL", "b")})
    assert found.verdict == "holds in part: 2 of 3" and "M 3; C 1; P 1" in found.figures


def test_what_a_curve_says():
    """It settles after the last look that is off; each look is a million decisions."""
    makespan = [2200, 1900, 2000, 1910, 1900, 1905, 1900, 1902, 1900]
    late = [90, 90, 20, 90, 20, 20, 20, 20, 20]
    looks = np.zeros((9, 8, 4))
    looks[:, :, 0] = 1e6 * np.arange(9)[:, None]
    looks[:, :, 1], looks[:, :, 2] = np.array(makespan)[:, None], np.array(late)[:, None]
    assert measure_curves(looks) == (3.0, 4.0, 2.0)
    looks[-1, :2, 2] = 60
    assert measure_curves(looks)[1] == 8.0


def test_every_claim_can_be_judged():
    found = read_claims()
    assert len(found) > 30
    assert {x.judge for x in found} == set(JUDGES)
    assert all(x.what in claims.WHAT for x in found if x.judge in ("better", "level"))


def test_rows_of_an_earlier_time_stay(tmp_path):
    """What is stored later replaces its own rows alone."""
    other = replace(MAIN, label="PPO", config=RivalConfig("ppo", 1000))
    store_study(tmp_path, "comparison", [MAIN], {"ACERL": [make_run(0)]})
    store_study(tmp_path, "comparison", [other], {"PPO": [make_run(1)]})
    store_study(tmp_path, "comparison", [MAIN], {"ACERL": [make_run(2)]})
    found = StoredStudy(tmp_path).load("comparison")
    seeds = {label: [run.seed for run in runs] for label, runs in found.items()}
    assert seeds == {"ACERL": [2], "PPO": [1]}
    for label, seed in (("PPO", 1), ("ACERL", 2)):
        played, expected = (x.makespan["dmh-train"] for x in (found[label][0], make_run(seed)))
        assert np.array_equal(played, expected)
    assert {x["row"] for x in read_table(tmp_path, "comparison", "curves")} == {"ACERL", "PPO"}


def test_a_claim_is_judged_by_the_learners_that_are_stored(tmp_path):
    other = replace(MAIN, label="PPO", config=RivalConfig("ppo", 1000))
    runs = {"ACERL": [make_run(0), make_run(1)], "PPO": [make_run(2), make_run(3)]}
    store_study(tmp_path, "comparison", [MAIN, other], runs)
    stored = StoredStudy(tmp_path)
    store_rules(tmp_path, {"dmh-train": [make_row("STD", [1900, 1901])]})
    claim = next(x for x in read_claims() if x.judge == "better" and x.others == claims.LEARNERS)
    assert "PPO" in claims.judge(stored, claim).figures
    assert claims.judge(stored, claim._replace(others=("STD",))).verdict == "not told apart"
    assert claims.judge(stored, claim._replace(row="EDD")).verdict == "not run"
