"""Tables for programs: plain numbers, and nothing where one is not known."""

import io
import json
import math

import numpy as np

from acerl_np.support.report import name_cells, render_data, render_json, render_table

ROWS = [
    {"policy": "a", "makespan_s": np.float64(1.5), "late_share": math.nan, "trials": np.int64(3)},
    {"policy": "b, c", "makespan_s": math.inf, "late_share": 0.25, "trials": None},
]


def test_what_is_not_known_is_null_or_empty():
    assert json.loads(render_data(ROWS, "json")) == [
        {"policy": "a", "makespan_s": 1.5, "late_share": None, "trials": 3},
        {"policy": "b, c", "makespan_s": None, "late_share": 0.25, "trials": None},
    ]
    assert render_data(ROWS, "csv") == (
        'policy,makespan_s,late_share,trials\na,1.5,,3\n"b, c",,0.25,\n'
    )


def test_a_document_of_several_tables_knows_no_nan():
    tables = [{"table": "t", "rows": name_cells(["x"], [[math.nan], [2.0]])}]
    assert json.loads(render_json(tables)) == [{"table": "t", "rows": [{"x": None}, {"x": 2.0}]}]


def test_on_a_terminal_a_wide_table_goes_on_below(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    header, rows = ["policy", "one", "two", "three"], [["EDD", 1, 22, 333], ["mine", 4, 5, 6]]
    whole = render_table(header, rows, rules=[1])
    assert max(map(len, whole.splitlines())) == 23
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "23")
    assert render_table(header, rows, rules=[1]) == whole
    monkeypatch.setenv("COLUMNS", "16")
    first, rest = render_table(header, rows, rules=[1]).split("\n\n")
    assert f"{first}\n" == render_table(header[:3], [row[:3] for row in rows], rules=[1])
    assert rest == render_table(["policy", "three"], [["EDD", 333], ["mine", 6]], rules=[1])
