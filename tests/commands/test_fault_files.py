"""Exports with everything that exports have: each is read, or refused with all its faults and what helps."""

import datetime as dt
import io
import sys
import warnings
from typing import NamedTuple
from unittest.mock import Mock

import pytest

import acerl_np
from acerl_np.commands.main import main

HEADER = "task,pickup,delivery,arrival_time,expiry_time"
DAY = "06.05.2024 07:00"
PLAIN = (HEADER, "t0,A,B,0,60", "t1,B,C,30,60")
GERMAN = "TA-Nr;Von-Platz;Nach-Platz;Datum;Uhrzeit;Fällig-Datum;Fällig-Uhrzeit;Bediener"
ROWS = (
    "t0;A;B;06.05.2024;07:00:00;06.05.2024;07:01:00;Jörg",
    "t1;B;C;06.05.2024;07:00:30;06.05.2024;07:01:30;Änne",
)
TIMES = "--columns arrival_time=Datum+Uhrzeit,expiry_time=Fällig-Datum+Fällig-Uhrzeit"
DATES = "--date-format '%d.%m.%Y %H:%M:%S'"
OURS = [("t0", "A", "B", 0.0, 60.0), ("t1", "B", "C", 30.0, 60.0)]


def lines(*given, encoding="utf-8"):
    return "\r\n".join([*given, ""]).encode(encoding)


def workbook(*sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for k, rows in enumerate(sheets):
        page = book.create_sheet(f"sheet {k}")
        for row in rows:
            page.append(row)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def cells():
    day = dt.datetime(2024, 5, 6)
    for (task, pickup, delivery, arrival, expiry), name in zip(OURS, ["Jörg", None], strict=True):
        moments = [day + dt.timedelta(hours=7, seconds=s) for s in (arrival, arrival + expiry)]
        yield [task, pickup, delivery, day, moments[0].time(), day, moments[1].time(), name]


class Case(NamedTuple):
    """A file, what refuses it as it is (nothing: it is read), and what reads it, by convert's options."""

    data: object
    faults: str = ""
    options: str = ""
    tasks: tuple = tuple(OURS)


FIRST = tuple(OURS[:1])
SKIP = "--skip-bad"
CASES = {
    "UTF-8 with its mark": Case(lines(*PLAIN, encoding="utf-8-sig")),
    "UTF-16 with its mark": Case(lines(*PLAIN, encoding="utf-16")),
    "UTF-16 without one": Case(lines(*PLAIN, encoding="utf-16-be")),
    "Windows-1252": Case(
        lines(GERMAN, *ROWS, encoding="cp1252"),
        "missing columns 'task', 'pickup' ... task=TA-Nr ... arrival_time=Datum+Uhrzeit",
        f"{TIMES} {DATES}",
    ),
    "another encoding": Case(
        lines(f"{HEADER},Zó\x81", encoding="latin-1")
        + lines(*(f"{row},ż" for row in PLAIN[1:]), encoding="iso8859-2"),
        "byte 0x81 is not UTF-8 or CP1252 ... --encoding",
        "--encoding iso8859-2",
    ),
    "workbook": Case(
        lambda: workbook([["Werk 3"]], [["Stand 6.5."], [], GERMAN.split(";"), *cells()]),
        "line 1: missing columns",
        TIMES,
    ),
    "an old workbook": Case(b"\xd0\xcf\x11\xe0 old", "(.xls) ... saved as .xlsx or CSV", tasks=()),
    "damaged-workbook": Case(lambda: workbook([PLAIN])[:900], "not a readable workbook", tasks=()),
    "titles above the header": Case(lines("Report of 06.05.2024,,", "", "by,me", *PLAIN)),
    "date and time in two columns": Case(
        lines(
            "task;pickup;delivery;Datum;Uhrzeit;expiry_time",
            "t0;A;B;06.05.2024 00:00;07:00:00;60",
            "t1;B;C;06.05.2024 00:00;30.12.1899 07:00:30;60",
        ),
        "missing column 'arrival_time' ... --columns (mapping=) such as \"arrival_time=Datum+Uhrzeit\"",
        "--columns arrival_time=Datum+Uhrzeit --date-format '%d.%m.%Y %H:%M:%S'",
    ),
    "one name of two columns": Case(
        lines("task;von;nach;Zeit;Zeit", "t0;A;B;0;60", "t1;B;C;30;60"),
        "missing columns",
        "--columns 'task=task,arrival_time=column 4,expiry_time=column 5'",
    ),
    "no due time": Case(
        lines("task,pickup,delivery,arrival_time,due", *PLAIN[1:]),
        "missing column 'expiry_time' ... expiry_time=due",
    ),
    "dates of no known form": Case(
        lines(HEADER, f"t0,A,B,{DAY}:00,60", f"t1,B,C,{DAY}:30,60"),
        "line 2: arrival_time ... --date-format (date_format=)",
        DATES,
    ),
    "a line that is no task, a page's end": Case(
        lines(*PLAIN, HEADER, "Summe:,,,30,", ",,,,", "- 1 -"),
        'line 5 ... pickup ... read "" ... line 7 ... 1 fields; expected 5 ... 2 of 4 rows',
        SKIP,
    ),
    "bad rows": Case(
        lines(
            *(HEADER, "t0,A,B,07:00,07:01", "t1,A-,Z,07:30,07:31", "t2,B,B,07:30,07:31"),
            *("t3,B,C,07:30,07:10", "t0,B,C,07:30,07:31"),
            *("t4,B,C,07:30,07:31", "t4,B,C,07:31,07:32"),
        ),
        "line 3  pickup ... did you mean 'A'? ... line 3  delivery ... unknown site 'Z' ... line 4 ... 'B' "
        "is also the pickup ... line 5  expiry_time ... 1200 s before the task's arrival ... line 6 ... 't0' "
        "stands already on line 2 ... 't4' stands already on line 7 ... 5 of 7 rows",
        SKIP,
        (*FIRST, ("t4", "B", "C", 1800.0, 60.0)),
    ),
    "texts of a spreadsheet, a formula": Case(
        lines(HEADER, '="t0",="A",B,0,="60"', "=2*3,A,B,1,1", "t1,B,C,30,60"),
        "line 3  task ... a name, no formula",
        SKIP,
    ),
    "empty lines, empty fields behind": Case(
        lines("", f"{HEADER};".replace(",", ";"), "t0;A;B;0;60;;;", ";;;;;", "", "t1;B;C;30;60;")
    ),
    "several faults in a row, in a column of another kind": Case(
        lines(HEADER, "t0,A,B,0,60", "t1,B,C,2024-05-06T07:00,-1"),
        "line 3  arrival_time ... a number of seconds, as on line 2 ... line 3  expiry_time ... -1",
        SKIP,
        FIRST,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_read_or_refused_with_all_its_faults(folder, run, capsys, name):
    case = CASES[name]
    data = case.data() if callable(case.data) else case.data
    (folder / "erp.csv").write_bytes(data)
    capsys.readouterr()
    status = main(["records", "check", "erp.csv", "--layout", "layout.json"])
    found = capsys.readouterr()
    assert status == (2 if case.faults else 0), found.err
    told = found.out + found.err
    for part in filter(None, case.faults.split(" ... ")):
        assert part in told
    words = f"records convert erp.csv --layout layout.json --out new.csv {case.options}"
    if not case.tasks:
        run(words, 2)
        return
    if case.options == SKIP:
        assert "--skip-bad" in run(words.removesuffix(SKIP), 2).err
    run(f"{words} --write-mapping erp.toml")
    assert (folder / "new.left-out.csv").exists() == (case.options == SKIP)
    instance = acerl_np.load_instance("new.csv", layout="layout.json")
    ends = [[instance.layout.sites[k].id for k in x] for x in (instance.pickup, instance.delivery)]
    times = instance.arrival.tolist(), instance.expiry.tolist()
    assert tuple(zip(instance.tasks, *ends, *times, strict=True)) == case.tasks
    # The mapping says the same to the other commands and in Python.
    run("records check new.csv --layout layout.json --mapping erp.toml")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = acerl_np.load_instance("erp.csv", layout="layout.json", mapping="erp.toml")
    assert again.content_hash == instance.content_hash
    listed = [fault for item in caught for fault in item.message.faults]
    assert bool(listed) == (case.options == SKIP)


WEEK = [
    "nr;from;to;created;due",
    "a;A;B;2024-05-06T05:59;60",
    "b;A;B;2024-05-06T06:00;60",
    "c;B;C;2024-05-06T13:59;60",
    "a;A;B;2024-05-07T05:00;60",
]
PARTS = {
    "shift": {"05-2200": [28740.0], "06-0600": [0.0, 28740.0], "06-2200": [25200.0]},
    "06:00": {"05-0600": [86340.0], "06-0600": [0.0, 28740.0, 82800.0]},
    "day": {"06": [0.0, 60.0, 28800.0], "07": [0.0]},
    "3600": {"1": [0.0, 60.0], "2": [0.0], "3": [0.0]},
}


@pytest.mark.parametrize("split", PARTS)
def test_a_week_falls_into_records(folder, run, split, monkeypatch):
    """Numbers of tasks may begin anew in each record."""
    (folder / "week.csv").write_bytes(lines(*WEEK))
    words = f"week.csv --layout layout.json --split {split}"
    run(f"records convert {words} --out days --write-mapping erp.toml")
    prefix = "week-" if split == "3600" else "week-2024-05-"
    found = sorted((folder / "days").iterdir())
    assert [x.stem for x in found] == [prefix + name for name in PARTS[split]]
    own = [acerl_np.load_instance(path, layout="layout.json") for path in found]
    assert [x.arrival.tolist() for x in own] == list(PARTS[split].values())
    read = acerl_np.load_records("week.csv", layout="layout.json", mapping="erp.toml")
    assert [x.content_hash for x in read] == [x.content_hash for x in own]
    # Those of the standard input have plain names.
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(*WEEK))))
    run(f"records convert - --layout layout.json --split {split} --out plain")
    names = sorted(x.name for x in (folder / "plain").iterdir())
    assert names == [x.name.removeprefix("week-") for x in found]
    with pytest.raises(acerl_np.InputError, match="records by split"):
        acerl_np.load_instance("week.csv", layout="layout.json", mapping="erp.toml")
    out = run(
        "evaluate EDD --on week.csv --layout layout.json --mapping erp.toml --trials 1 --format csv"
    ).out
    assert out.count("EDD") == len(own) + 1
    run("replay EDD week.csv --layout layout.json --mapping erp.toml", 2)


def test_a_file_is_parsed_once(folder, run, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    (folder / "erp.xlsx").write_bytes(workbook([GERMAN.split(";"), *cells()]))
    load = Mock(wraps=openpyxl.load_workbook)
    monkeypatch.setattr(openpyxl, "load_workbook", load)
    run(f"records convert erp.xlsx --layout layout.json --out new.csv {TIMES}")
    assert load.call_count == 1
    # Without openpyxl the extra is named.
    (folder / "erp.xlsx").write_bytes(b"PK\x03\x04 any")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    err = run("evaluate EDD --on erp.xlsx --layout layout.json --trials 1", 2).err
    assert "erp.xlsx: a workbook" in err and "'acerl_np[excel]'" in err


def test_causes_and_due_times_are_told(folder, run, capsys):
    rows = [
        f"{name}{k};A;{to};06.05.2024;23:5{k};00:10" for name, to in ("tB", "uZ") for k in range(3)
    ]
    (folder / "erp.csv").write_bytes(
        lines("TA-Nr;Von-Platz;Nach-Platz;Datum;Uhrzeit;Termin", *rows)
    )
    words = (
        "erp.csv --layout layout.json --write-mapping erp.toml --due 60 --skip-bad --out new.csv"
    )
    columns = "--columns arrival_time=Datum+Uhrzeit,expiry_time=Datum+Termin"
    told = run(f"records convert {words} {columns} --date-format '%d.%m.%Y %H:%M'")
    assert "3 tasks due the day after, at most 1200 s after the arrival" in told.out
    cause = "\n  3 rows such as line 5: delivery: unknown site 'Z'"
    assert "(50 %: " in told.err and cause in told.err
    assert "due = 60" in (folder / "erp.toml").read_text()
    assert main(["records", "check", "erp.csv", "--layout", "layout.json", "--mapping", "erp.toml"])
    out = capsys.readouterr().out
    assert "\n3 rows such as line 5" in out and "line 7  delivery" in out


def test_past_assignments_of_the_same_export(folder, run):
    (folder / "past.csv").write_bytes(lines("TA-Nr;FTF;Beginn", "t0;v;0", "t1;w;30"))
    rows = (";".join(map(str, x)) for x in OURS)
    (folder / "in.csv").write_bytes(lines("TA-Nr;Von;Nach;Zeit;Frist", *rows))
    columns = ['task = "TA-Nr"', 'vehicle = "FTF"', 'start = "Beginn"', 'pickup = "Von"']
    columns += ['delivery = "Nach"', 'arrival_time = "Zeit"', 'expiry_time = "Frist"']
    (folder / "erp.toml").write_text("\n".join(["[columns]", *columns]))
    words = "evaluate EDD --on in.csv --past past.csv --layout layout.json --mapping erp.toml"
    assert "past " in run(f"{words} --trials 1").out
    text = 'mapping = "erp.toml"\ntasks = ["in.csv"]\nlayout = "layout.json"\n'
    (folder / "options.toml").write_text(text)
    small = "--generations 1 --set population=2 --trials 0 --set hidden=2 --out run --quiet"
    run(f"train --config options.toml {small}")


def test_what_a_spreadsheet_would_carry_out_is_written_as_a_text(folder, run):
    """Once, in every table, and a number never; what reads a table takes the mark off."""
    names = ["+cmd|calc", "@SUM(1)", "-5.0", "''+x", "-a"]
    rows = [f"{name},A,B,{k},60" for k, name in enumerate(names)]
    (folder / "in.csv").write_bytes(lines(HEADER, *rows, "=cmd(),A,B,0,1", "+y,C,C,0,1"))
    run("records convert in.csv --layout layout.json --out new.csv --skip-bad")
    text = (folder / "new.left-out.csv").read_text()
    assert "line 7,task,'=cmd()," in text and "line 8,delivery,C," in text
    own = ("+cmd|calc", "@SUM(1)", "-5.0", "'+x", "-a")
    assert acerl_np.load_instance("new.csv", layout="layout.json").tasks == own
    marked = ["'+cmd|calc", "'@SUM(1)", "-5.0", "''+x", "'-a"]
    text = (folder / "new.csv").read_text()
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == marked
    (folder / "past.csv").write_bytes(lines("task,vehicle,start", *(f"{x},v,0" for x in marked)))
    words = "evaluate EDD --on new.csv --past past.csv --layout layout.json --trials 1"
    run(f"{words} --details --out tasks")
    told = (folder / "tasks/schedule-new.csv").read_text()
    assert all(f"\n{name},v," in told for name in marked)
    assert ",'+cmd|calc," in (folder / "tasks/tasks.csv").read_text()
    # A pattern of names finds what was left out beside the records; no command takes it for one.
    run("records check new.csv new.left-out.csv --layout layout.json")


ASKED = (
    "TA-Nr;Von-Platz;Nach-Platz;Datum;Uhrzeit;Termin;Menge;Handlingzeit",
    "t0;A;Rack 3;06.05.2024;07:00;;1.200;20",
    "t1;Rack 3;Presss;06.05.2024;07:30;-;2.400;-",
    "t2;A;Z;06.05.2024;07:30;07:50;2.400;25",
)


def test_what_a_file_does_not_tell_is_asked_for_and_kept_in_the_mapping(folder, run, capsys):
    (folder / "erp.csv").write_bytes(lines(*ASKED))
    floor = (
        (folder / "layout.json").read_text().replace('"C"', '"Press"').replace('"B"', '"Rack 03"')
    )
    (folder / "layout.json").write_text(floor)
    words = "records convert erp.csv --out new.csv --skip-bad --due 900 "
    asked = run(f"{words} --columns demand=Menge", 2).err
    assert "arrival_time=Datum+Uhrzeit" in asked and "missing column 'arrival_time'" in asked
    words += "--columns arrival_time=Datum+Uhrzeit,expiry_time=Datum+Termin,demand=Menge "
    assert "--decimal (decimal=) '.' for 1.2, or ',' for 1200" in run(words, 2).err
    words += "--decimal ,"
    assert "--date-format" in run(words, 2).err
    words += " --date-format '%d.%m.%Y %H:%M'"
    assert "did you mean 'Rack 03'?" in run(words, 2).err
    (folder / "sites.toml").write_text('[sites]\n"Rack 3" = "Rack 03"\n"Presss" = "Press"\n')
    told = run(f"{words} --mapping sites.toml --write-mapping erp.toml")
    assert "sites read as         Rack 3 -> Rack 03, Presss -> Press\n" in told.out
    assert "columns ignored: Handlingzeit\n" in told.err
    text = (folder / "erp.toml").read_text()
    assert 'decimal = ","' in text
    assert '[sites]\n"Rack 3" = "Rack 03"\n"Presss" = "Press"\n' in text
    assert acerl_np.load_instance("new.csv").demand.tolist() == [1200, 2400]
    check = ["records", "check", "--mapping", "erp.toml", "new.csv", "erp.csv"]
    main(check)  # a row is bad
    assert capsys.readouterr().out.count("handling                           none, 0 s") == 2
    main([*check, "--handling", "12.5"])
    assert capsys.readouterr().out.count("12.5 s a task") == 2
    main([*check, "--columns", "handling_time=Handlingzeit", "--handling", "12"])
    found = capsys.readouterr()
    assert "  16 s a task" in found.out and "columns ignored" not in found.err
