"""Tables for programs: plain numbers, and nothing where one is not known."""

import json
import math

import numpy as np

from acerl_np.support.report import name_cells, render_data, render_json

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
