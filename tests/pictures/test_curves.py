"""Training curves: lines are the means of the files, bands their spread, levels the paper's."""

import csv
import json
from collections import defaultdict
from statistics import fmean, stdev

import numpy as np
import pytest
from boxes import draw_figure, find_faults
from tables_and_refusals import list_unrefused_files

from acerl_np.commands.shared.curves import find_beside
from acerl_np.pictures.runs import MEMBERS, find_limit, find_runs, read_facts, read_lines
from acerl_np.pictures.trainings import Beside, average_seeds, draw_curves, list_records
from acerl_np.support.errors import InputError

CURVES = "generation,decisions,instance,makespan,tardiness,satisfied\n"
HISTORY = "generation,decisions,seconds,return_mean,return_std,cost_mean,satisfied,noise_std"


def write_run(folder, seed=0, looks=5, records=("A", "B"), per_look=1000):
    """A run whose figures are random, with one more decision a look than the seed before."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    lines = [CURVES]
    for look in range(looks):
        for name in records:
            makespan, tardiness = rng.uniform(10, 99, 2).round(4).tolist()
            place = f"{8 * look},{look * (per_look + seed)},{name}"
            lines.append(f"{place},{makespan},{tardiness},0.5\n")
    (folder / "curves.csv").write_text("".join(lines))
    return folder


def write_seeds(folder, n=3, **options):
    for seed in range(n):
        write_run(folder / f"seed{seed}", seed, **options)
    return folder


def read_slowly(folders, record, column):
    """Values by decisions' mean, seed by seed, as a csv.DictReader sees them."""
    found, decisions = defaultdict(list), defaultdict(list)
    for folder in folders:
        own = defaultdict(list)
        with open(folder / "curves.csv", newline="") as file:
            for row in csv.DictReader(file):
                if record in (None, row["instance"]):
                    own[int(row["generation"])].append(float(row[column]))
                    decisions[int(row["generation"])].append(int(row["decisions"]))
        for generation, values in own.items():
            found[generation].append(fmean(values))
    return [(fmean(decisions[g]), fmean(found[g]), found[g]) for g in sorted(found)]


def test_an_objective_is_drawn_in_the_place_of_the_makespan(tmp_path):
    folder = tmp_path / "aim"
    folder.mkdir()
    lines = ["0,0,A,900,5,1,7.5", "0,0,B,800,4,1,2.5", "8,90,A,901,3,1,6", "8,90,B,801,2,1,1"]
    (folder / "curves.csv").write_text("\n".join([f"{CURVES.strip()},value", *lines, ""]))
    options = {"objective": "late+0.05*tardiness", "cost": "late", "cost_limit": 3.0}
    (folder / "config.json").write_text(json.dumps({"config": options}))
    beside = find_beside([folder])
    assert (beside.objective, beside.limit) == (options["objective"], None)
    first, second, *small = draw_figure(draw_curves, read_lines(folder), beside).axes
    assert first.get_title(loc="left") == "late+0.05*tardiness, mean of 2 records"
    assert first.get_ylabel() == "late+0.05*tardiness" and second.get_ylabel() == "tardiness (s)"
    assert first.lines[0].get_ydata().tolist() == [5.0, 3.5]
    assert second.lines[0].get_ydata().tolist() == [4.5, 2.5]
    assert small[0].lines[0].get_ydata().tolist() == [7.5, 6.0]
    (folder / "config.json").write_text(json.dumps({"config": {**options, "objective": "late"}}))
    shown = draw_figure(draw_curves, read_lines(folder), find_beside([folder])).axes
    assert shown[0].get_ylabel() == "late (%)"
    other = write_run(tmp_path / "other")
    with pytest.raises(InputError, match="different objectives: late, makespan; expected the same"):
        find_beside([folder, other])


def test_lines_and_bands_are_means_and_deviations_of_the_files(tmp_path):
    folder = write_seeds(tmp_path / "three")
    figure = draw_figure(draw_curves, read_lines(folder), Beside(limit=50.0))
    seeds = [folder / f"seed{k}" for k in range(3)]
    shown = [(None, "makespan"), (None, "tardiness")]
    shown += [(name, what) for name in "AB" for what in ("makespan", "tardiness")]
    assert len(figure.axes) == len(shown)
    for axes, (record, what) in zip(figure.axes, shown, strict=True):
        expected = read_slowly(seeds, record, what)
        [line] = [line for line in axes.lines if line.get_label() == "three"]
        np.testing.assert_allclose(line.get_xdata(), [x for x, _, _ in expected])
        np.testing.assert_allclose(line.get_ydata(), [y for _, y, _ in expected])
        [area] = axes.collections
        corners = area.get_paths()[0].vertices
        for x, y, values in expected:
            heights = corners[np.isclose(corners[:, 0], x), 1]
            band = [y - stdev(values), y + stdev(values)]
            assert [heights.min(), heights.max()] == pytest.approx(band)
        limits = [line for line in axes.lines if line.get_label().startswith("limit")]
        assert [line.get_ydata()[0] for line in limits] == ([50.0] if what == "tardiness" else [])


def test_a_single_seed_has_no_band_and_gaps_where_nothing_finished(tmp_path):
    folder = write_run(tmp_path / "one", records=("A",))
    text = (folder / "curves.csv").read_text().splitlines()
    text[2] = "8,1000,A,nan,nan,0.0"
    (folder / "curves.csv").write_text("\n".join(text))
    figure = draw_figure(draw_curves, read_lines(folder))
    # A single record is no mean of others.
    assert len(figure.axes) == 2 and not figure.axes[0].collections
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).tolist() == [False, True, *[False] * 3]


def test_seeds_are_averaged_where_all_of_them_looked(tmp_path):
    write_run(tmp_path / "all" / "seed2", 2, looks=6)
    write_run(tmp_path / "all" / "seed10", 10, looks=3)
    (tmp_path / "all" / "notes").mkdir()
    [line] = read_lines(tmp_path / "all")
    assert [path.name for path in find_runs(tmp_path / "all")] == ["seed2", "seed10"]
    mean = average_seeds(line, ["A", "B"])
    assert mean.decisions.tolist() == [0.0, 1006.0, 2012.0] and mean.centre.shape == (2, 3)
    (tmp_path / "all" / "config.json").write_text(json.dumps({"seeds": [10]}))
    assert [path.name for path in find_runs(tmp_path / "all")] == ["seed10"]


def test_levels_stand_where_all_records_have_them(tmp_path):
    lines = read_lines(write_run(tmp_path / "one"))
    both, one = {"A": (10.0, 1.0), "B": (30.0, 5.0)}, {"A": (70.0, 7.0)}
    beside = Beside({"EDD": both, "STD": one}, ("paper", both))
    figure = draw_figure(draw_curves, lines, beside)
    found = [{x.get_label(): float(x.get_ydata()[0]) for x in axes.lines} for axes in figure.axes]
    names = "EDD", "STD", "paper"
    found = [{name: own[name] for name in names if name in own} for own in found]
    assert found[:2] == [{"EDD": 20.0, "paper": 20.0}, {"EDD": 3.0, "paper": 3.0}]
    assert found[2] == {"EDD": 10.0, "STD": 70.0, "paper": 10.0}
    assert found[4] == {"EDD": 30.0, "paper": 30.0}


def test_without_looks_the_members_are_drawn(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "curves.csv").write_text(CURVES)
    (folder / "history.csv").write_text(
        f"{HISTORY},A,B\n1,100,0.1,-50.0,1.0,7.0,0.5,0.1,3,1\n2,200,0.2,-40.0,1.0,6.0,0.5,0.1,2,2\n"
    )
    [line] = read_lines(folder)
    assert list_records([line]) == [MEMBERS]
    mean = average_seeds(line, [MEMBERS])
    assert mean.centre.tolist() == [[50.0, 40.0], [7.0, 6.0]]
    assert mean.decisions.tolist() == [100.0, 200.0]


def test_a_study_has_a_line_for_each_policy(tmp_path):
    header = "policy,seed,generation,decisions,instance,makespan,tardiness,satisfied\n"
    rows = [
        f"{policy},{seed},{look},{100 * look},A,{value + seed},{look},1\n"
        for policy, value in (("ACERL", 10), ("PPO, long", 20))
        for seed in range(2)
        for look in range(3)
    ]
    rows = [row.replace("PPO, long", '"PPO, long"') for row in rows]
    (tmp_path / "ours-curves.csv").write_text(header + "".join(rows))
    for path in (tmp_path, tmp_path / "ours-curves.csv"):
        lines = read_lines(path)
        assert [line.label for line in lines] == ["ACERL", "PPO, long"]
        assert average_seeds(lines[1], ["A"]).centre[0].tolist() == [20.5] * 3
    (tmp_path / "theirs-curves.csv").write_text(header)
    with pytest.raises(InputError, match=r"several studies: ours-curves\.csv, theirs-curves\.csv"):
        read_lines(tmp_path)
    with pytest.raises(InputError, match="a header and nothing else"):
        read_lines(tmp_path / "theirs-curves.csv")


def test_unusable_files_and_folders_are_named(tmp_path):
    path = tmp_path / "curves.csv"
    cases = {
        "": "line 1: no column 'generation'",
        CURVES: "line 1: a header and nothing else",
        "a,b\n1,2\n": "line 1: no column 'generation'; read a,b",
        CURVES + "0,0,A,1,1,1\n0,0,A,1\n": "line 3: 4 fields; expected 6",
        CURVES + "0,0,A,many,1,1\n": "line 2: makespan: read many; expected a number",
        CURVES + "0,-1,A,1,1,1\n": "line 2: decisions: read -1; expected a number from 0 on",
        CURVES + "nan,0,A,1,1,1\n": "line 2: generation: read nan; expected a number from 0 on",
        CURVES + '0,0,"A,1,1,1\n': "not CSV",
    }
    found = list_unrefused_files(
        path, cases.items(), lambda path: read_lines(path.parent), InputError
    )
    assert found == []
    path.unlink()
    for folder, words in (
        (tmp_path, r"no curves\.csv and no history\.csv"),
        (tmp_path / "nowhere", "not there"),
        ("a\0b", "not there"),
    ):
        with pytest.raises(InputError, match=words):
            read_lines(folder)
    [line] = read_lines(write_run(tmp_path / "one"))
    for lines, words in (([line] * 15, "15 lines .* at most 14"), ([], "no lines")):
        with pytest.raises(InputError, match=words):
            draw_curves(tmp_path / "a.png", lines)


def test_settings_tell_the_limit(tmp_path):
    assert read_facts(tmp_path) == {} and find_limit({}) is None
    (tmp_path / "config.json").write_text('{"config": {"cost_limit": 30}}')
    assert find_limit(read_facts(tmp_path)) == 30.0
    # That of --seeds holds for each seed that has none of its own, and for nothing else.
    for name in ("seed0", "seed1", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "seed1" / "config.json").write_text('{"config": {"cost_limit": 5}}')
    limits = [find_limit(read_facts(tmp_path / name)) for name in ("seed0", "seed1", "other")]
    assert limits == [30.0, 5.0, None]
    assert find_limit({"settings": {"cost_limit": 20.0}}) == 20.0
    assert find_limit({"config": {"cost_limit": "all"}, "settings": 3}) is None


@pytest.mark.parametrize(("n_records", "n_lines"), [(1, 1), (8, 3), (40, 14)])
def test_no_text_hides_another(tmp_path, n_records, n_lines):
    records = [f"$week_{{{k}}} of a long year$" for k in range(n_records)]
    lines = []
    for k in range(n_lines):
        [line] = read_lines(write_seeds(tmp_path / str(k), n=2, looks=3, records=records))
        lines.append(line._replace(label=f"a rather_long $label$ of a folder {k}"))
    levels = dict.fromkeys(records, (50.0, 50.0))
    rules = {f"{rule} (paper)": levels for rule in ("FCFS", "EDD", "NVF", "STD")}
    beside = Beside(rules, ("ACERL (paper)", levels), 50.0)
    assert draw_figure(draw_curves, lines, beside, look=find_faults) == []
