"""Tables for people and for programs: every command that prints one."""

import csv
import json
import math
import re
import shutil

import numpy as np
import pytest
from machine import needs_jit
from pages import BATTERY, make_powered
from worlds import make_task

import acerl_np
from acerl_np.commands.main import main
from acerl_np.commands.shared.episode_tables import list_tasks, list_vehicles
from acerl_np.evaluation.judge import judge
from acerl_np.evaluation.margin import Margin
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import Playing
from acerl_np.kernels.core.state import CHARGING, QUEUED
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.records import write_record

NUMBER_AS_TEXT = re.compile(r"[-+~(]?\d[\d,.]*( ?[%s]| s)?([/±( ].*)?")

USAGE = "late_share waiting_s utilisation_share empty_share worst_s"
COMMANDS = {
    "evaluate EDD STD nearest --on quiet.csv --trials 2 --references best.json": f"{USAGE} "
    "makespan_s tardiness_s makespan_error_s tardiness_error_s satisfied_share m c above_hindsight_share "
    "records trials unfinished",
    "policy bound quiet.csv --effort 0.001": "makespan_s tardiness_s decisions "
    "rule_makespan_s rule_tardiness_s",
    "records check quiet.csv": "tasks first_arrival_s fleet_time_s offered_load vehicles",
    "records convert quiet.csv --out plain.csv --force": "tasks first_arrival_s last_arrival_s",
}
"""Columns of numbers of each command."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A record of three tasks far apart, so that every rule is as good as hindsight; its folder."""
    folder = tmp_path_factory.mktemp("made")
    layout = acerl_np.load_layout("dmh").with_breakdowns({})
    (folder / "layout.json").write_text(json.dumps(layout.to_dict()))
    rows = [make_task(f"t{k}", "st3", "st2", 4000 * k, 900) for k in range(3)]
    record = acerl_np.Instance.from_rows("quiet", layout, rows)
    write_record(record, folder / "quiet.csv")
    (folder / "past.csv").write_text("task,vehicle,start\nt0,v0,0\nt1,v0,4000\nt2,v1,8000\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert (
            main(["policy", "bound", "quiet.csv", "--effort", "0.001", "--out", "best.json"]) == 0
        )
    return folder, record


@pytest.fixture
def quiet(made, empty):
    shutil.copytree(made[0], empty, dirs_exist_ok=True)
    return made[1]


@needs_jit
@pytest.mark.parametrize("command", COMMANDS)
def test_programs_get_numbers_with_units_in_the_names(quiet, command, run):
    rows = json.loads(run(f"{command} --format json").out)
    for row in rows:
        for name, cell in row.items():
            assert not isinstance(cell, list | dict)
            if isinstance(cell, str):
                assert not NUMBER_AS_TEXT.fullmatch(cell), (name, cell)
    for name in COMMANDS[command].split():
        numbers = [row[name] for row in rows if row[name] is not None]
        assert numbers and all(type(x) in (int, float) and math.isfinite(x) for x in numbers), name
    table = list(csv.DictReader(run(f"{command} --format csv").out.splitlines()))
    assert [list(row) for row in table] == [list(row) for row in rows]
    for row, other in zip(table, rows, strict=True):
        assert row == {key: "" if x is None else str(x) for key, x in other.items()}


@needs_jit
def test_more_columns_and_what_they_mean(quiet, run):
    words = "evaluate EDD nearest --on quiet.csv --trials 2 --references best.json"
    for form in ("text", "markdown"):
        less = run(f"{words} --format {form}").out
        assert "longest delay, s" in less and "utilisation" not in less and "M, C: " not in less
        assert "Too few records to tell: makespan " in less.splitlines()[0]
        assert "of the way: share of the way, in the objective, from the best rule" in less
        assert re.search("^best rule on these records: [A-Za-z-]+ *$", less, re.M)
        more = run(f"{words} --format {form} --details").out
        header = more.splitlines()[2]
        assert "M, C: makespan and tardiness from 0, the worst policy" in more
        names = ("late", "waiting, s", "utilisation", "empty", "error")
        assert [name for name in names if name not in header] == []
        assert "waiting: from arrival to pickup" in more
        assert "standard error of the mean makespan/tardiness over the trials" in more
    out = run("evaluate FCFS --on quiet.csv --past past.csv --details --trials 1").out
    assert "past: tasks start 0.0 s after the recorded start on average, at most 0.0 s" in out


@needs_jit
def test_where_there_is_little_to_win_a_line_says_so(quiet, run):
    line = "Little to win here: "
    assert line in run("policy bound quiet.csv --effort 0.001").out
    words = "evaluate EDD --on quiet.csv --trials 2 --references best.json"
    assert line in run(words).out
    found = run(f"{words} --format csv")
    assert line in found.err and line not in found.out
    assert line not in run("evaluate EDD --on DMH-01 --trials 2").out
    policy = acerl_np.IndexPolicy.of_weights(approach=-1.0)
    verdict = judge(policy, quiet, (), Playing(2))
    assert verdict.margin.is_little
    busy = judge(policy, acerl_np.load_instance("DMH-01"), (), Playing(2))
    assert busy.margin is None or not busy.margin.is_little


def test_little_is_a_percent_and_a_second():
    def is_little(value, cost, goal=PAPER, bound=0.0, hindsight=1000.0):
        return Margin("STD", goal, value, cost, hindsight, 20.0, bound).is_little

    assert is_little(1010.0, 21.0)
    assert not is_little(1011.0, 20.0)
    assert not is_little(1000.0, 21.5)
    # Below hindsight, over the limit or by other draws: that says nothing.
    assert not is_little(990.0, 20.5) and is_little(1000.0 - 1e-10, 1.0)
    sentence = Margin("STD", PAPER, 1000.0 - 1e-10, 1.0, 1000.0, 20.0, 0.0).sentence()
    assert "is 0.0 % of makespan and 0.0 s of tardiness from hindsight" in sentence
    # Of other objectives what weighs as much as a second; a cost without a limit does not count.
    late = Goal("late")
    assert is_little(2.05, 99.0, late, hindsight=2.0) and not is_little(
        2.1, 0.0, late, hindsight=2.0
    )
    # A bound proves it, whatever hindsight has found, but not over the limit.
    assert is_little(1010.0, 40.0, bound=1000.0, hindsight=math.nan)
    assert not is_little(1010.0, 50.0, bound=1000.0, hindsight=math.nan)


@needs_jit
def test_a_training_tells_more_and_that_there_is_little_to_win(quiet, run):
    words = "train quiet.csv --preset paper --generations 1 --set population=2 --trials 2"
    out = run(f"{words} --out run --quiet --details").out
    assert out.count("waiting, s") == 4 and out.count("utilisation  empty") == 2
    assert "Little to win here: " in out


def test_vehicles_shares_are_those_of_every_second():
    trace = trace_policy("nearest", make_powered())
    rows = list(list_vehicles(trace))
    spans = {
        "queue_share": [own for own in trace.auxiliary_moves if own.status == QUEUED],
        "charging_share": [own for own in trace.auxiliary_moves if own.status == CHARGING],
        "broken_share": trace.stops,
    }
    times = np.arange(trace.end)
    for v, row in enumerate(rows):
        for name, found in spans.items():
            own = [any(x.vehicle == v and x.start <= t < x.end for x in found) for t in times]
            assert row[name] == pytest.approx(np.mean(own), abs=1e-6)
        busy = sum(row[name] for name in (*spans, "loaded_share", "empty_share"))
        assert 0.0 < row["loaded_share"] < busy <= 1.0
        lowest = min(trace.find_level(v, t) for t in times) / BATTERY["capacity"]
        assert float(row["lowest_level_share"]) == pytest.approx(lowest, abs=1e-5)
    changes = [row["changes"] for row in list_tasks(trace)]
    assert sum(changes) == sum(row["called_back"] for row in rows) > 0
    assert sum(row["tasks"] for row in rows) == trace.instance.n_tasks
