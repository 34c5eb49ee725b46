"""The studies' tables on made-up trials, and when a finished training is used again."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from acerl_np import Config, load_suite
from acerl_np.evaluation import jobs, seeds
from acerl_np.evaluation.jobs import strip_source
from acerl_np.evaluation.published import table_rows
from studies import ablation, comparison, generalisation, learning, leave_one_out, noise, robustness
from studies.rivals import ALGORITHMS
from studies.rivals.training import RivalConfig
from studies.statistics import compare_ranks
from studies.study import Study, Training
from studies.study_tables import Measured, build_table, show_p, spread_table

TRAIN = load_suite("dmh-train")
N = len(TRAIN)


def make_row(label, makespan, tardiness, n_seeds=5, n_trials=4):
    """A row whose seeds differ by 1 s, and whose trials are all equal but for one of each seed."""
    seeds = np.arange(n_seeds)[None, :, None] + np.zeros((N, n_seeds, n_trials))
    return Measured(label, makespan + seeds, tardiness + 0.1 * seeds)


def find_rows(table, label):
    """The table's rows of one policy by source."""
    found, current = {}, None
    for row in table.rows:
        current = row[0] or current
        if current == label:
            found[row[1]] = row
    return found


def build(measured, **options):
    defaults = {"name": "comparison-train", "same_records": True}
    return build_table(title="T", instances=TRAIN, measured=measured, **{**defaults, **options})


def test_marks_compare_the_means_of_the_seeds():
    """Four trials of five seeds are five values: 30 equal trials make nothing more significant."""
    rows = ("ACERL", 1900, 30), ("EDD", 1902, 30), ("NVF", 1930, 25)
    table = build([make_row(*row) for row in rows])
    assert find_rows(table, "EDD")["measured"][3:-1] == ["1904.0~/30.2~"] * N
    # All 20 trials together would have been called different.
    a, b = np.repeat(np.arange(5.0), 4), np.repeat(2 + np.arange(5.0), 4)
    assert mannwhitneyu(a, b).pvalue < 0.05 < mannwhitneyu(np.arange(5), 2 + np.arange(5)).pvalue
    assert find_rows(table, "NVF")["measured"][2:-1] == [5, *["1932.0-/25.2+"] * N]
    assert find_rows(table, "ACERL")["measured"][3] == "1902.0/30.2"
    assert find_rows(table, "+/~/-")["measured"][3] == "(0/1/1)/(1/1/0)"
    assert any("NVF is better than ACERL in tardiness on 8 of 8 records." in n for n in table.notes)
    assert not any("EDD" in note for note in table.notes)


def test_same_records_share_the_papers_peers():
    """A row that equals the paper's gets the paper's M, C and P, and the difference is zero."""
    paper = next(row for row in table_rows("comparison-train") if row.policy == "ACERL")
    cells = [paper.cells[item.name] for item in TRAIN]
    figures = np.array([(cell.makespan, cell.tardiness) for cell in cells]).T[:, :, None, None]
    equal = Measured("ACERL", *(figures + np.zeros((2, N, 2, 3))))
    rows = find_rows(build([equal]), "ACERL")
    assert rows["measured"][-1] == rows["paper"][-1] == "0.90/0.90 (100%)"
    differences = [cell.replace("-0.0", "+0.0") for cell in rows["difference"][3:]]
    assert differences == [*["+0.0/+0.0"] * N, "+0.00/+0.00 (+0)"]


def test_spread_over_seeds():
    rows = [make_row("a", 1900, 49.85), make_row("b", 1950, 49.85, n_seeds=3)]
    table = spread_table("t", "T", rows, "a")
    told = table.data[0]
    names = ("policy", "seeds", "makespan_s", "makespan_p", "satisfied_p")
    assert [told[name] for name in names] == ["a", 5, 1902.0, None, None]
    shares = told["satisfied_share"], told["satisfied_deviation_share"]
    assert shares == pytest.approx((0.4, 0.3**0.5))
    assert table.rows[0] == ["a", 5, "1902.0 ± 1.6", "", "50.0 ± 0.2", "40 ± 55", ""]
    p = mannwhitneyu([1950, 1951, 1952], range(1900, 1905)).pvalue
    assert table.rows[1][:4] == ["b", 3, "1951.0 ± 1.0", f"{p:.3f}"]
    assert show_p(compare_ranks([1, 2], [1, 2]).p) == "1.000"
    assert show_p(compare_ranks(np.arange(20), np.arange(100, 120)).p) == "<0.001"
    [row] = spread_table("t", "T", [make_row("c", 1900, 9, n_seeds=2)]).rows
    assert row[2] == "1900.0 and 1901.0"


@pytest.mark.parametrize(
    ("module", "rows", "beside"),
    [
        (comparison, 1, 14),
        (robustness, 1, 14),
        (leave_one_out, 8, 88),
        (ablation, 44, 44),
        (learning, 43, 43),
    ],
)
def test_every_study_names_each_row_once(module, rows, beside):
    for rivals, n in (((), rows), (ALGORITHMS, beside)):
        study = Study(None, seeds=7, rivals=rivals, rival_seeds=2, rival_steps=100)
        found = module.trainings(study)
        assert len({row.label for row in found}) == len(found) == n
        others = [row for row in found if isinstance(row.config, RivalConfig)]
        assert {(row.config.steps, row.seeds) for row in others} <= {(100, 2)}
        assert module is not learning or len({row.config for row in found}) == n


def test_checks_have_seeds_of_their_own(tmp_path):
    study = Study(tmp_path, seeds=7, first=noise.FIRST)
    jobs = study.list_jobs(noise.trainings(study))
    for rank, n in (("rank 1", 7), ("rank 1, 10 million decisions", 5)):
        own = [job.seed for job in jobs if job.training.label == rank]
        assert own == [*range(200, 200 + n)]


def test_a_quick_look_is_quick_in_every_row():
    """Also in those that train until so many decisions are taken."""
    for row in generalisation.trainings(Study(None, generations=2)):
        config = row.config
        if isinstance(config, RivalConfig):
            assert config.steps == 2000
        else:
            assert (config.generations, config.decisions) == (2, None), row.label


# A finished training is used again only if it would come out the same


def test_comments_and_docstrings_are_not_part_of_the_stamp():
    code = b'"""Doc."""\ndef f(x):\n    """Doc."""\n    return x + 1\n'
    same = b'"""Other."""\n# why\n\ndef f(x):\n    return (x + 1)  # so\n'
    assert strip_source(code) == strip_source(same)
    assert strip_source(code) != strip_source(code.replace(b"+ 1", b"+ 2"))
    assert strip_source(code) != strip_source(code.replace(b"f(x)", b"f(x, y=3)"))


@pytest.mark.parametrize(
    ("name", "own", "rival"),
    [
        (b"def rank_members(", True, True),  # of kernels
        (b"class Trials:", True, True),  # of evaluation
        (b"class SAC", False, True),
        (b"class StudyTable:", False, False),
    ],
)
def test_other_code_has_another_stamp(name, own, rival, monkeypatch):
    def read(changed):
        hash_rooms = jobs.hash_rooms.__wrapped__
        monkeypatch.setattr(jobs, "strip_source", lambda x: f"{x}{changed and name in x}")
        return hash_rooms(), hash_rooms(RivalConfig("sac", 1).rooms)

    changes = [a != b for a, b in zip(read(False), read(True), strict=True)]
    assert changes == [own, rival]


def test_a_seed_is_judged_as_it_was_trained():
    """Also where a horizon stops episodes that would end late."""
    config = Config(generations=1, population=2, hidden=(2,), horizon=900.0, cost_limit=40.0)
    task = seeds.SeedTask((TRAIN[0],), (), config, 3, 2)
    assert np.isnan(seeds.train_seed(task).played[0]).all()
    other = replace(task, config=replace(config, horizon=None))
    assert task.key() != other.key() and np.isfinite(seeds.train_seed(other).played).all()


def test_compared_learners_stand_beside_acerl(tmp_path):
    """A quick comparison: rows of other numbers of seeds, records as CSV, kept trainings."""
    few = {"seeds": 3, "trials": 2, "generations": 1, "threads": 2}
    few |= {"rivals": ("appo", "mappo"), "rival_seeds": 2, "rival_steps": 2_000}
    study = Study(tmp_path, **few)
    main = replace(comparison.acerl_training(study), suites=(("dmh-train", tuple(TRAIN)),))
    rows = [main, *study.beside(main)]
    results = study.run(rows)
    numbers = {label: len(runs) for label, runs in results.items()}
    assert numbers == {"ACERL": 3, "APPO": 2, "MAPPO": 2}
    own = results["APPO"][1]
    assert own.makespan["dmh-train"].shape == (8, 2)
    assert own.history[-1, 1] == 2_000 and own.counts.sum() > 20
    assert own.probabilities.shape == own.counts.shape
    assert results["MAPPO"][0].probabilities.shape == (0, 8)
    again = study.run(rows[1:])
    np.testing.assert_array_equal(own.makespan["dmh-train"], again["APPO"][1].makespan["dmh-train"])
    files = study.write_records(results, "quick")
    history, *others = (path.read_text().splitlines() for path in files)
    assert sum(x.startswith("MAPPO,") for x in history) == 2
    assert all(any(x.startswith("APPO,1,") for x in lines) for lines in others)
    table = spread_table("t", "T", study.rows(results, "dmh-train"), "ACERL")
    labels = [["ACERL", 3], ["APPO", 2], ["MAPPO", 2], ["MAPPO, greedy", 2]]
    assert [row[:2] for row in table.rows] == labels


@pytest.mark.parametrize("changed", ["code", "trials", "config", "suite"])
def test_a_finished_training_is_reused_only_if_nothing_has_changed(changed, tmp_path, monkeypatch):
    trained = []
    instances = tuple(TRAIN[:2])

    def make(trials=2, suite=1, **options):
        study = Study(tmp_path, seeds=1, trials=trials, threads=1)
        config = study.config(generations=1, population=2, hidden=(2,), curve_every=0, **options)
        return study, Training("row", instances, config, (("s", instances[:suite]),))

    def run(study, training):
        before = set((tmp_path / "runs").glob("*"))
        results = study.run([training])
        trained.append(len(set((tmp_path / "runs").glob("*")) - before))
        return results[training.label][0]

    first = run(*make())
    again = run(*make())
    study, training = make()
    run(study, replace(training, label="another name"))
    assert trained == [1, 0, 0]
    np.testing.assert_array_equal(first.makespan["s"], again.makespan["s"])
    assert first.probabilities.shape == first.counts.shape
    if changed == "code":
        monkeypatch.setattr(jobs, "hash_rooms", lambda rooms: "other")
    options = {"trials": {"trials": 3}, "config": {"p_f": 0.3}, "suite": {"suite": 2}}
    run(*make(**options.get(changed, {})))
    assert trained == [1, 0, 0, 1]
