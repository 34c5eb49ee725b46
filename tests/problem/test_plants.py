"""What plants write: read rightly, or refused by name, and never a default for what was not understood."""

import datetime
import io
import json
import re
import shlex

import pytest
from tables_and_refusals import FLEET, HEADER, write
from worlds import straight_floor

from acerl_np import InputError, Instance, Layout, RecordError, load_instance
from acerl_np.commands.main import main
from acerl_np.problem.columns import BREAKDOWNS, RECORD
from acerl_np.problem.export import Export
from acerl_np.problem.records import examine_record, read_assignments, read_breakdowns
from acerl_np.problem.servable import list_doubts

FLOOR = Layout.from_dict({"name": "hall", "machines": [{"site": "B"}], **straight_floor(FLEET)})
ROW = {"task": "t0", "pickup": "A", "delivery": "B", "arrival_time": "07:30", "expiry_time": 900}
CELLS = ["x", "n/a", "#N/A", "#REF!", "1,5", "0x1", "nan", "=1+2", "=A1", "?", "-1", "-0.5", "inf"]
CELLS += ["1e10", "1_000", "2024-01-01", "\u200b", "24:01", "25:00"]
CELLS += [True, False, 1.5, 0.25, 7, datetime.datetime(2024, 5, 6, 7), datetime.timedelta(hours=30)]


def make_table(rows, kind, path):
    """A table of one sheet, formulas not worked out, or a text."""
    if kind == "csv":
        lines = [";".join("" if x is None else str(x) for x in row) for row in rows]
        return write(path, *lines)
    path.write_bytes(make_book({"day": rows}))
    return path


def make_book(sheets):
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        page = book.create_sheet(title)
        for row in rows:
            page.append(row.split(",") if isinstance(row, str) else row)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def outcome(read, *given, **options):
    try:
        return read(*given, **options)
    except InputError as error:
        return re.sub(r"^\S+: ", "", str(error))


@pytest.mark.filterwarnings("ignore::acerl_np.RecordWarning")
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("column", RECORD.known)
def test_no_default_for_a_cell_that_was_not_understood(tmp_path, kind, column):
    """No row of a table is read as it is with nothing in its place."""
    rows = [{**ROW, "task": f"t{k}", column: cell} for k, cell in enumerate((None, *CELLS))]
    tables = (
        [[row] for row in rows] if column == "time_zero" else [[{**ROW, column: None}, *rows[1:]]]
    )
    got = {}
    for own in tables:
        if column in RECORD.required:  # a row that can be read
            own = [{**ROW, "task": "good"}, *own]
        path = make_table(
            [list(own[0]), *(list(row.values()) for row in own)], kind, tmp_path / f"a.{kind}"
        )
        found = outcome(
            examine_record, path, FLOOR, Export(due=600.0, handling=20.0, skip_bad=True)
        )
        if not isinstance(found, str):
            got |= {row.pop("task"): row for row in found[0][0].rows()}
            for row in got.values():
                row["epoch"] = found[0][0].epoch
    nothing = got.get("t0")
    kept = [
        rows[int(task[1:])][column] for task, row in got.items() if row == nothing and task != "t0"
    ]
    assert nothing is None or kept == [], kept


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_finish_that_was_not_understood_is_not_left_out(tmp_path, kind):
    record = load_instance(write(tmp_path / "day.csv", HEADER, "t0,A,B,0,9"), layout=FLOOR)
    for cell in CELLS:
        rows = [["task", "vehicle", "start", "finish"], ["t0", "v", 3, cell]]
        found = outcome(read_assignments, make_table(rows, kind, tmp_path / f"a.{kind}"), record)
        assert (
            "line 2: finish: read" in found if isinstance(found, str) else found.finish[0] >= 0
        ), cell


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("column", BREAKDOWNS.known)
def test_a_breakdown_is_as_it_stands_there_or_refused(tmp_path, kind, column):
    days, (moment, hours) = 45418.3125, CELLS[-2:]
    known = {"1,5": 1.5} | {cell: cell for cell in (1.5, 0.25, 7)}
    if kind == "xlsx":
        known[hours] = 108000
    meant = {"vehicle": {}, "time": {**known, moment: 3600}, "repair_time": {**known, days: days}}
    for cell in (None, *CELLS, days):
        row = {"vehicle": FLOOR.vehicles[0].id, "time": 3, "repair_time": 5, column: cell}
        path = make_table([list(row), list(row.values())], kind, tmp_path / f"a.{kind}")
        zero = datetime.datetime(2024, 5, 6, 6)
        found = outcome(read_breakdowns, path, FLOOR, zero, Export(), alone=True)
        if cell in meant[column]:
            [breakdown] = found.vehicles[0].breakdowns
            assert getattr(breakdown, column) == meant[column][cell]
        else:
            assert isinstance(found, str) and f"line 2: {column}: " in found, cell


def load(path, **mapping):
    return load_instance(path, layout=FLOOR, mapping=mapping)


LOADS = HEADER + ",demand"
TABS = [LOADS.replace(",", "\t"), "t0\tA\tB\t0\t9\t2,590"]


def at(*moments):
    return [HEADER, *(f"t{k},A,B,{moment},900" for k, moment in enumerate(moments))]


SHIFTS = "2024-05-06T03:30Z", "2024-05-06T04:30Z"  # of night and morning, in Berlin
ADVISED = [
    ([LOADS, 't0,A,B,0,9,"2,590"'], "", "--decimal .", "demand", 2590),
    ([LOADS, 't0,A,B,0,9,"2.590,5"'], "", "--decimal ,", "demand", 2590.5),
    (TABS, "", "--decimal .", "demand", 2590),
    (TABS, "", "--decimal ,", "demand", 2.59),
    (at(45418.3125, 45418.5), "", "--date-format excel", "arrival", 16200),
    (at(45418.3125), "", "--date-format seconds", "arrival", 45418.3125),
    (at(20240506073000), "", "--date-format %Y%m%d%H%M%S", "arrival", 0),
    (at(202405060730), "", "--date-format %Y%m%d%H%M", "arrival", 0),
    (at("06.05.2024 07:30"), "", "--date-format '%d.%m.%Y %H:%M'", "arrival", 0),
    (at("05/16/2024 07:30 PM"), "", "--date-format '%m/%d/%Y %I:%M %p'", "arrival", 0),
    (["task,pickup,delivery,arrival_time", "t0,A,B,0"], "", "--due 600", "expiry", 600),
    (["A1,B1" + HEADER[11:], "t,A,B,0,9"], "", "--columns task=A1,pickup=B1", "expiry", 9),
    ([*at(0), "t1,A,B,0,x"], "", "--skip-bad", "expiry", 900),
    ([HEADER + ",Wer", "t0,A,B,0,900,\x81\u0105"], "", "--encoding iso8859-2", "expiry", 900),
    (
        [HEADER + ",Wer", "t0,A,B,0,900,\u0105"],
        "--encoding morse",
        "--encoding cp1252",
        "expiry",
        900,
    ),
    ({"Mai": at(0), "Juni": at(7)}, "--sheet may", "--sheet Juni", "arrival", 7),
    (at(0, 5000, 5060), "--split shift", "--split 3600", "arrival", 60),
    (at(0, 5000, 5060), "--split never", "--split day", "arrival", 5060),
    (at(*SHIFTS), "--split shift", "--timezone Europe/Berlin", "arrival", 1800),
    (at(*SHIFTS), "--timezone CEST", "--timezone Europe/Berlin", "arrival", 3600),
]
for fold, late in (("earlier", 3600), ("later", 7200)):
    moments = "2024-10-27T01:30", "2024-10-27T02:30"
    zone = "--timezone Europe/Berlin"
    ADVISED.append((at(*moments), zone, f"{zone},{fold}", "arrival", late))
FREE = {"--due", "--encoding", "--columns"}
"""Options whose values nobody knows but who wrote the file."""


@pytest.mark.filterwarnings("ignore::acerl_np.RecordWarning")
@pytest.mark.parametrize(("lines", "given", "advised", "column", "value"), ADVISED)
def test_an_option_that_an_error_names_helps(
    tmp_path, capsys, lines, given, advised, column, value
):
    """As a command takes it; the last task of the last record has the value."""
    path, floor = tmp_path / "day.csv", write(tmp_path / "floor.json", json.dumps(FLOOR.to_dict()))
    path.write_bytes(
        make_book(lines) if isinstance(lines, dict) else "\n".join(lines).encode("iso8859-2")
    )
    words = f"records convert {path} --layout {floor} --out {tmp_path / 'made'} --force {given} "
    assert main(shlex.split(words)) == 2
    said = capsys.readouterr().err
    option, *values = shlex.split(advised)
    assert option in said
    for word in values:
        assert option in FREE or all(part in said for part in re.split(r",(?=\w)", word))
    assert main(shlex.split(words + advised)) == 0
    made = tmp_path / "made"
    last = max(made.iterdir()) if made.is_dir() else made.with_suffix(".csv")
    record = load_instance(last, layout=floor, date_format="seconds")
    assert getattr(record, column)[-1] == value


def test_days_of_a_spreadsheet_are_days(tmp_path):
    header = "Auftrag;Von;Nach;Angelegt;Faellig"
    path = write(
        tmp_path / "day.csv", header, "1;A;B;45418,3125;45418,3333", "2;B;C;45418,3264;45418,3472"
    )
    names = dict(zip(HEADER.split(","), header.split(";"), strict=True))
    found = load(path, columns=names, date_format="excel")
    assert found.epoch == datetime.datetime(2024, 5, 6, 7, 30)
    assert found.arrival.tolist() == [0, 1200.96]
    assert found.expiry.tolist() == [1797.12, 1797.12]


@pytest.mark.parametrize(
    ("header", "rows", "mapping", "arrival", "expiry"),
    [
        (HEADER, ["a,A,B,2024-05-06T23:30:00,900", "b,B,C,2024-05-06T24:00,900"], {}, 1800, 900),
        (HEADER, ["a,A,B,22:30,23:00", "b,B,C,23:10,24:00:00"], {}, 2400, 3000),
        (
            "task,pickup,delivery,Tag,Zeit,Termin",
            ["a,A,B,06.05.2024,23:30,24:00", "b,B,C,06.05.2024,24:00,00:20"],
            {
                "columns": {"arrival_time": "Tag+Zeit", "expiry_time": "Tag+Termin"},
                "date_format": "%d.%m.%Y %H:%M",
            },
            1800,
            1200,
        ),
    ],
)
def test_24_hours_are_the_next_day(tmp_path, header, rows, mapping, arrival, expiry):
    found = load(write(tmp_path / "day.csv", header, *rows), **mapping)
    assert (found.arrival[1], found.expiry[1]) == (arrival, expiry)


@pytest.mark.parametrize(
    "moment", ["24:01", "2024-05-06T24:00:01", "9999-12-31T24:00", "24:00:00.5"]
)
def test_no_more_than_24_hours(tmp_path, moment):
    with pytest.raises(RecordError, match="line 2: arrival_time"):
        load(write(tmp_path / "day.csv", HEADER, f"a,A,B,{moment},900"))


def test_times_of_another_unit_are_doubted():
    def doubts(*times):
        rows = [
            {**ROW, "task": f"t{k}", "arrival_time": x, "expiry_time": due}
            for k, (x, due) in enumerate(times)
        ]
        return list_doubts(Instance.from_rows("day", FLOOR, rows))

    assert (
        doubts((0, 900), (1.01, 900))
        == doubts((5, 900), (5, 900))
        == doubts((0, 7199), (0, 9000))
        == []
    )
    [line] = doubts((0, 900), (0.03, 900))
    assert "within 0.03 s" in line and "--date-format excel" in line
    [line] = doubts((0, 7300), (100, 7200))
    assert "until 7200 s after the last arrival" in line
