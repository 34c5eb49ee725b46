"""Task records as other systems export them: headers, separators, further columns, times."""

import csv
import io
import json
import time
import warnings
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from functools import partial
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables_and_refusals import FLEET, HEADER, list_unrefused, list_unrefused_files, refused, write
from worlds import make_task, straight_floor

import acerl_np
from acerl_np import Instance, Layout, Simulator, load_instance
from acerl_np.problem.export import Export
from acerl_np.problem.fields import TimeColumn
from acerl_np.problem.generate import perturb
from acerl_np.problem.limits import MAX_COLUMNS
from acerl_np.problem.packing import pack_instances, unpack_instances
from acerl_np.problem.parting import find_parting, part_rows
from acerl_np.problem.records import examine_record, read_assignments, write_record
from acerl_np.problem.source import find_lookalike
from acerl_np.problem.synonyms import find_synonyms
from acerl_np.support.errors import InputError, RecordError
from acerl_np.support.faults import RecordWarning

KNOWN = (*HEADER.split(","), "handling_time", "demand", "time_zero", "priority", "earliest_start")
FLOOR = Layout.from_dict({"name": "hall", **straight_floor(FLEET)})


def load(path, **options):
    return load_instance(path, layout=FLOOR, **options)


# Columns

MISSPELT = {
    "expiry_time": ["expirytime", "Expiry-Time", "expirey_time"],
    "arrival_time": ["arrivaltime", "arrival_tiem"],
    "pickup": ["pick_up", "Pick Up", "pickp"],
    "task": ["tasks"],
    "delivery": ["delivry"],
    "handling_time": ["handlingtime", "handeling_time"],
    "demand": ["demands", "demnad"],
    "time_zero": ["time-zero", "tiem_zero"],
    "priority": ["priorty", "prioirty"],
    "earliest_start": ["Earliest Strat"],
}
OTHERS = """
customer priority_class comment vehicle weight tags depend order_id date time start state status user remark
arrival due due_date deadline pickup_time delivery_note duration distance waiting_time loading_time
departure_time time_zone quantity load_unit prio shift line article demand_unit 優先 x
"""


def test_a_misspelt_column_is_an_error_and_another_looks_like_none(tmp_path):
    assert [name for name in OTHERS.split() if find_lookalike(name, KNOWN)] == []
    for meant, name in ((meant, name) for meant, names in MISSPELT.items() for name in names):
        assert find_lookalike(name, KNOWN) == meant
        header = (*HEADER.split(","), "demand")
        header = [name if column == meant else column for column in header]
        header += [name] * (name not in header)
        path = write(tmp_path / "day.csv", ",".join(header), ",".join(["t0", "A", "B", "0", "9"]))
        refused(path, [f"line 1: column '{name}': looks like '{meant}'"], load, path)


def test_other_columns_are_passed_over_with_one_warning(tmp_path):
    # What looks like a column that stands there is misspelt by nobody.
    names = ["comment", *HEADER.split(","), "Tasks", "priority_class", ""]
    path = write(tmp_path / "day.csv", ",".join(names), "seen,t0,A,B,0,9,me,high,")
    with pytest.warns(RecordWarning) as caught:
        load_instance(path, layout=FLOOR)
    assert [str(item.message) for item in caught] == [
        f"{path}: columns ignored: comment, Tasks, priority_class, column 9"
    ]
    assert caught[0].filename == __file__  # the line that asked for the record
    write(path, HEADER, "t0,A,B,0,9")
    broken = write(tmp_path / "broken.csv", "vehicle,time,repair_time,cause", "v,3,4,dust")
    with pytest.warns(RecordWarning, match="broken.csv: columns ignored: cause"):
        instance = load(path, breakdowns=broken)
    assert instance.layout.vehicles[0].breakdowns[0].time == 3


def test_columns_are_found_once(tmp_path):
    cases = [
        ([HEADER + ",Task", "t0,A,B,0,9,t0"], "line 1: column 'task' stands twice"),
        ([HEADER + ",x" * MAX_COLUMNS, "t"], "line 1: 1,005 columns; expected at most 1,000"),
        (
            ["task;pickup,delivery;arrival_time,expiry_time", "t0;A,B;0,9"],
            "line 1: read  ... semicolons or tabs, one of them throughout",
        ),
    ]
    assert list_unrefused_files(tmp_path / "day.csv", cases, load) == []


def test_a_first_line_may_name_the_separator(tmp_path):
    for mark in ",;\t":
        rows = (row.replace(" ", mark) for row in ("t0 A B 2 9", "t1 A A 0 9"))
        lines = [HEADER.replace(",", mark), *rows]
        cases = [([x, *lines], "line 4: delivery") for x in (f"sep={mark}", f'"sep={mark}"')]
        assert list_unrefused_files(tmp_path / "day.csv", cases, load) == []


@given(st.data())
def test_any_form_of_a_table_reads_to_the_same_instance(tmp_path_factory, data):
    """Case, order, separators, quoting, line ends, a byte-order mark, blanks, further columns."""

    def pick(*items):
        return data.draw(st.sampled_from(items))

    names = [*HEADER.split(","), "handling_time", "demand"]
    rows = [("t0", "A", "B", "0", "9.5", "1", "0"), ("t1", "B", "C", "2.25", "8", "0", "1.5")]
    order = data.draw(st.permutations(range(len(names) + 1)))
    mark = pick(*",;\t")
    commas = mark != "," and pick(False, True)
    header = []
    for name in names:
        form, inner = pick(str, str.upper, str.title, str.capitalize), pick("_", " ")
        header.append(pick("", " ", "  ") + form(name.replace("_", inner)) + pick("", " ", "  "))
    table = [[*header, "comment"]]
    for row in rows:
        shown = [*row[:3], *(x.replace(".", ",") if commas else x for x in row[3:])]
        table.append([*shown, data.draw(st.text('ab ,;"\n\t', max_size=4))])
    text, end = io.StringIO(), pick("\n", "\r\n")
    quoting = pick(csv.QUOTE_MINIMAL, csv.QUOTE_ALL)
    writer = csv.writer(text, delimiter=mark, quoting=quoting, lineterminator=end)
    writer.writerows([row[k] for k in order] for row in table)
    path = tmp_path_factory.getbasetemp() / "forms.csv"
    path.write_bytes((end * pick(0, 1, 2) + text.getvalue()).encode(pick("utf-8", "utf-8-sig")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)
        instance = load(path)
    expected = [dict(zip(names, row, strict=True)) for row in rows]
    assert instance.content_hash == Instance.from_rows("x", FLOOR, expected).content_hash


def test_a_large_file_is_read_quickly(tmp_path):
    lines = [
        f"t{k};A;B;06.05.2024 {k // 3600 % 24:02}:{k // 60 % 60:02};9;x" for k in range(50_000)
    ]
    path = write(tmp_path / "day.csv", HEADER.replace(",", ";") + ";comment", *lines)
    started = time.process_time()
    with pytest.warns(RecordWarning, match="comment"):
        [instance], _ = examine_record(path, FLOOR, Export(date_format="%d.%m.%Y %H:%M"))
    assert instance.n_tasks == 50_000
    assert time.process_time() - started < 5  # a second


def test_hostile_headers_are_refused_quickly(tmp_path):
    path = tmp_path / "day.csv"
    for text in ("x" * 60 + ",", "\t;,", "arrival_tim,", ',"'):
        path.write_text(text * (4_000_000 // len(text)))
        started = time.process_time()
        with pytest.raises(RecordError) as caught:
            load(path)
        assert len(str(caught.value)) < 600 + len(str(path))
        assert time.process_time() - started < 10


# Times

SAME_TIMES = {
    "plain": (["2024-05-06T07:00:00", "2024-05-06T07:00:02.5", "2024-05-06T08:01:00"], None),
    "space": (["2024-05-06 07:00", "2024-05-06 07:00:02,5", " 2024-05-06 08:01 "], None),
    "offset": (["2024-05-06T09:00+02:00", "2024-05-06T07:00:02.5Z", "2024-05-06T10:01+0200"], None),
    "basic": (["20240506T070000", "20240506T070002.5", "20240506T0801"], None),
    "night": (["2024-12-31T23:59:59", "2025-01-01T00:00:01.5", "2025-01-01T01:00:59"], None),
    "clock": (["07:30", "7:30:02.5", "08:31"], None),
    "clock with seconds": (["07:30:00", "07:30:02,5", "08:31:00"], None),
    "since 1970": (["1714980600", "1714980602.5", "1714984260"], None),
    "milliseconds since 1970": (["1714980600000", "1714980602500", "1714984260000"], None),
    "days first": (
        ["06.05.2024 07:30:00.0", "06.05.2024 07:30:02.5", "06.05.2024 08:31:00.0"],
        "%d.%m.%Y %H:%M:%S.%f",
    ),
    "months first": (
        ["05/06/24 07:30:00.0 AM", "05/06/24 07:30:02.5 AM", "05/06/24 08:31:00.0 AM"],
        "%m/%d/%y %I:%M:%S.%f %p",
    ),
    "clock of a format": (["07h30m0.0", "07h30m2.5", "08h31m0.0"], "%Hh%Mm%S.%f"),
}


@pytest.mark.parametrize("case", SAME_TIMES)
def test_times_of_any_form(tmp_path, case):
    times, form = SAME_TIMES[case]
    first, second, last = times = [f'"{time}"' for time in times]
    lines = [f"t2,A,B,{last},20", f"t0,A,B,{first},10", f"t1,B,C,{second},1.5"]
    path = write(tmp_path / "day.csv", HEADER, *lines)
    instance = load(path, date_format=form)
    assert instance.tasks == ("t0", "t1", "t2")
    assert (instance.arrival.tolist(), instance.expiry.tolist()) == ([0, 2.5, 3660], [10, 1.5, 20])
    seconds = ["t0,A,B,0,10", "t1,B,C,2.5,1.5", "t2,A,B,3660,20"]
    plain = load(write(tmp_path / "seconds.csv", HEADER, *seconds))
    assert plain.epoch is None and plain.content_hash == instance.content_hash
    moments = [
        f"t{k},A,B,{pair}" for k, pair in enumerate((f"{first},{second}", f"{second},{last}"))
    ]
    due = load(write(path, HEADER, *moments, f"t2,A,B,{last},{last}"), date_format=form)
    assert due.expiry.tolist() == [2.5, 3657.5, 0]
    broken = tmp_path / "broken.csv"
    write(broken, "vehicle,time,repair_time", f"v,{second},4", f"w,{last},1")
    with_breakdowns = load(path, breakdowns=broken, date_format=form)
    assert [item.breakdowns[0].time for item in with_breakdowns.layout.vehicles] == [2.5, 3660]
    lines = [f"t{k},v,{text},{last}" for k, text in enumerate(times)]
    past = write(tmp_path / "past.csv", "task,vehicle,start,finish", *lines)
    found = read_assignments(past, due, Export(date_format=form))
    assert (found.start.tolist(), found.finish.tolist()) == ([0, 2.5, 3660], [3660] * 3)
    # What was read is written in a form that needs no option.
    write_record(due, tmp_path / "again.csv")
    again = load(tmp_path / "again.csv")
    assert (again.content_hash, again.epoch) == (due.content_hash, due.epoch)
    packed = unpack_instances(pack_instances([due, plain]))
    assert [item.epoch for item in packed] == [due.epoch, None]


def test_time_zero_of_every_form():
    def zero(value, **options):
        return Instance.from_rows("x", FLOOR, [make_task("t", "A", "B", value, 9)], **options).epoch

    assert zero(1714980600) == zero("1714980600.0") == datetime(2024, 5, 6, 7, 30, tzinfo=UTC)
    assert zero(clock(7, 30)) == zero("07:30") == datetime(1, 1, 1, 7, 30)
    # The format is one more; numbers and ISO 8601 are read as before.
    assert zero("2024-05-06 07:30", date_format="%d.%m.%Y %H:%M") == datetime(2024, 5, 6, 7, 30)
    assert zero("30", date_format="%d.%m.%Y %H:%M") is None
    assert zero(1e9) is None
    assert zero("0730", date_format="%H%M") == datetime(1, 1, 1, 7, 30)
    rows = [make_task("t", "A", "B", "0730", "0800")]
    assert Instance.from_rows("x", FLOOR, rows, date_format="%H%M").expiry.tolist() == [800]


DAY = "2024-05-06T07:00:00"
REFUSED_TIMES = [
    ([f"{DAY},1", "7,1"], 'line 3: arrival_time: read "7" ... a timestamp without ... line 2'),
    (["0,1", f"{DAY},1"], f"line 3: arrival_time ... {DAY} ... number of seconds, as on line 2"),
    ([f"{DAY},1", f"{DAY}Z,1"], f'"{DAY}Z" ... without an offset from UTC, as on line 2'),
    ([f"{DAY},1", f"{DAY},{DAY}"], "line 3: expiry_time ... of seconds, as on"),
    ([f"0,{DAY}"], f"line 2: expiry_time ... {DAY} ... number of seconds"),
    ([f"{DAY},2024-05-06T06:59:58"], "line 2: expiry_time ... 2 s before"),
    (["2024-06-31T07:00:00,1"], "line 2: arrival_time ... 06-31"),
    (["1924-05-06T07:00:00,1", f"{DAY},1"], "line 3: arrival_time ... within 1e+09 s of 1924"),
    (["07:30,9", "2024-05-06T07:30,9"], "line 3: arrival_time ... a time of day"),
    (["3,9", "1714980600,9"], "line 3 ... a number of seconds, as on"),
    (["9e9,9"], "line 2 ... a number of seconds from 0"),
    (["24:30,9"], 'line 2: arrival_time: read "24:30" ... such as 07:30'),
    # Which is the day, and which the month?
    (["06.05.2024 07:30,9"], 'arrival_time ... --date-format (date_format=) ... "%d.%m.%Y %H:%M"'),
    (["06/05/2024 07:30:15,9"], '--date-format ... "%d/%m/%Y %H:%M:%S" or "%m/%d/%Y %H:%M:%S"'),
    (["06/05/2024 07:30 PM,9"], 'or "%m/%d/%Y %I:%M %p"'),
    (["2024/05/06 07:30,9"], '--date-format ... "%Y/%m/%d %H:%M"'),
    (["0,06.05.2024 07:30"], "expiry_time ... --date-format"),
    # Times of day: over midnight, and a duration of hours.
    (["23:50,9", "00:10,9", "05:00,9"], "line 3 ... 00:10:00 after 23:50:00 ... dates with them"),
    (["23:50,00:10"], "line 2: expiry_time ... on the same day"),
    (["07:30,00:15"], '"00:15:00", 26100 s before ... or a number of seconds'),
]


def test_times_that_cannot_be_told_are_refused(tmp_path):
    path = tmp_path / "day.csv"
    cases = [
        ([HEADER, *(f"t{k},A,B,{pair}" for k, pair in enumerate(pairs))], words)
        for pairs, words in REFUSED_TIMES
    ]
    assert list_unrefused_files(path, cases, load) == []
    form, row = "%d.%m.%Y %H:%M", "t0,A,B,06.05.2024 07:30,9"
    cases = [
        (
            [HEADER, row, "t1,A,B,2024,9"],
            'line 3: arrival_time: read "2024" ... a timestamp without',
        ),
        ([HEADER, row.replace(".", "/")], f'line 2 ... or a time of the format "{form}"'),
    ]
    assert list_unrefused_files(path, cases, partial(load, date_format=form)) == []
    write(path, HEADER, "t0,A,B,0,9")
    cases = [(form, "date_format (--date-format): read ") for form in UNUSABLE]
    assert list_unrefused(lambda form: load(path, date_format=form), cases) == []


def test_unsorted_times_of_a_day_are_no_night():
    times = ["07:30", "21:00", "06:00", "20:30", "07:00"]
    rows = [make_task(f"t{k}", "A", "B", value, 9) for k, value in enumerate(times)]
    assert Instance.from_rows("x", FLOOR, rows).arrival.tolist() == [0, 3600, 5400, 52200, 54000]


UNUSABLE = ["", "%q", "%", "%d.%m.%Y", "%d.%m. %H:%M", "%m %H:%M", "%I:%M", "%H:%H", "%H:%M %z"]
UNUSABLE += ["x" * 200, "%H:%M\x00", "%Y-%m %H:%M"]


def test_noise_leaves_times_of_day(tmp_path):
    rows = [make_task(f"t{k}", "A", "B", f"23:59:5{k}", 9, priority=k / 16) for k in range(9)]
    instance = Instance.from_rows("night", FLOOR, rows)
    noised = perturb(instance, 30, seed=1, zeros="move")
    assert noised.arrival[-1] > 10  # after midnight
    write_record(noised, tmp_path / "day.csv")
    again = load(tmp_path / "day.csv")
    assert (again.content_hash, again.epoch) == (noised.content_hash, instance.epoch)


# Small things


def test_texts_for_numbers():
    def read(**keys):
        row = {**make_task("t", "A", "B", "12", "12.5"), **keys}
        return Instance.from_rows("x", FLOOR, [row])

    instance = read(demand=" 3 ")
    assert (instance.arrival[0], instance.expiry[0], instance.demand[0]) == (12, 12.5, 3)
    names = ("arrival_time", "expiry_time", "handling_time", "demand")
    cases = [(name, f'row 1: {name}: read "12,5"; ... before decimals') for name in names]
    assert list_unrefused(lambda name: read(**{name: "12,5"}), cases) == []


def test_schedules_of_no_episode_are_refused():
    sim = Simulator([acerl_np.load_instance("DMH-01")] * 2)
    sim.reset()
    wrong = [2, -1, 10**30, 0.0, "0", None, True, [0], np.array([0])]
    cases = [(b, "expected the index of an episode, from 0 to 1") for b in wrong]
    assert list_unrefused(sim.schedule, cases) == []
    assert sim.schedule(np.int64(1)).task == ()


# What other systems call their columns

SYNONYMS = """
TA-Nr;Von-Platz;Nach-Platz;Erstell-Datum;Erstell-Uhrzeit;Fällig-Datum;Fällig-Uhrzeit;Gewicht
= TA-Nr;Von-Platz;Nach-Platz;Erstell-Datum+Erstell-Uhrzeit;Fällig-Datum+Fällig-Uhrzeit
Auftragsnummer;Quelle;Senke;Menge;Zeitstempel;Spätester Termin;Priorität
= Auftragsnummer;Quelle;Senke;Zeitstempel;Spätester Termin
Datum;Uhrzeit;Auftrag;Abholort;Zielort;Soll-Zeit;Fahrer
= Auftrag;Abholort;Zielort;Datum+Uhrzeit;Soll-Zeit
OrderID;FromLocation;ToLocation;CreatedAt;DueDate;Weight;Total
= OrderID;FromLocation;ToLocation;CreatedAt;DueDate
TANUM;VLPLA;NLPLA;Erfassungszeit;Faellig am
= TANUM;VLPLA;NLPLA;Erfassungszeit;Faellig am
Nr;Lagerort Von;Lagerort Nach;Auftragsdatum;Fa\u0308lligkeit
= Nr;Lagerort Von;Lagerort Nach;Auftragsdatum;Fa\u0308lligkeit
Auftrag;Abholort;Anlieferort;Eingang;Termin\u2028x
= Auftrag;Abholort;Anlieferort;Eingang;column 5
Auftrag;Entnahmeplatz;Empfänger;Eingang;bis
= Auftrag;Entnahmeplatz;Empfänger;Eingang;bis
id;von;nach;zeit;zeit;bis
= id;von;nach;column 4+column 5;bis
Kunde;Artikel;Menge;Farbe
=
"""


def test_usual_names_of_columns_are_known():
    order = ("task", "pickup", "delivery", "arrival_time", "expiry_time")
    lines = SYNONYMS.strip("\n").split("\n")
    for header, names in zip(lines[::2], lines[1::2], strict=True):
        names = [name.split("+") for name in names[1:].strip().split(";") if name]
        assert find_synonyms(header.split(";")) == dict(zip(order, names, strict=False))


# Several records of one table


@given(
    st.lists(st.integers(0, 500_000), min_size=1, max_size=30),
    st.sampled_from(["shift", "day", "05:30/17:15", "1800"]),
    st.integers(0, 86_399_999_999),
)
def test_each_task_is_in_the_shift_in_which_it_arrives(arrivals, split, offset):
    epoch = datetime(2024, 5, 6) + timedelta(microseconds=offset)
    parting = find_parting(split)
    parts, which = part_rows(np.array(arrivals, float), epoch, parting, np.zeros(len(arrivals)))
    assert {*which.tolist()} == {*range(len(parts))}
    assert [part.zero for part in parts] == sorted({part.zero for part in parts})
    for k, part in enumerate(parts):
        own = sorted(x for x, its in zip(arrivals, which, strict=True) if its == k)
        if parting.gap:
            assert all(b - a <= 1800 for a, b in pairwise(own)) and part.zero == own[0]
            others = sorted(set(arrivals) - set(own))
            assert all(x < own[0] - 1800 or x > own[-1] + 1800 for x in others)
            continue
        calendar = {"shift": "06:00/14:00/22:00", "day": "00:00"}.get(split, split)
        for x in own:  # minute by minute, back to the last beginning
            moment = epoch + timedelta(seconds=x)
            moment = moment.replace(second=0, microsecond=0)
            while moment.strftime("%H:%M") not in calendar.split("/"):
                moment -= timedelta(minutes=1)
            begins = epoch + timedelta(seconds=own[0] if split == "day" else part.zero)
            assert begins.date() == moment.date() if split == "day" else begins == moment
    assert len({part.name for part in parts}) == len(parts)


def test_shifts_of_the_first_and_the_last_year():
    for year in (1, 9999):
        epoch = datetime(year, 1, 1, tzinfo=UTC)
        with pytest.raises(RecordError, match=f"year {year}; expected one from 2 to 9998"):
            part_rows(np.zeros(1), epoch, find_parting("shift"), np.zeros(1))
    # Times of day know no day before.
    epoch, parting = datetime(1, 1, 1, 5), find_parting("shift")
    parts, _ = part_rows(np.array([0.0, 7200.0]), epoch, parting, np.zeros(2))
    assert [(part.name, part.zero) for part in parts] == [("0000", -18000.0), ("0600", 3600.0)]


SHIFTS = {"layout": FLOOR, "mapping": {"split": "shift"}}
CHANGES = {
    "March": [
        ("2024-03-30T22:30+01:00", "03-30-2200", 1800),
        ("2024-03-31T03:30+02:00", "03-30-2200", 16200),
        ("2024-03-31T05:59+02:00", "03-30-2200", 25140),
        ("2024-03-31T06:10+02:00", "03-31-0600", 600),
    ],
    "October": [
        ("2024-10-26T22:30+02:00", "10-26-2200", 1800),
        ("2024-10-27T02:30+02:00", "10-26-2200", 16200),
        ("2024-10-27T02:10+01:00", "10-26-2200", 18600),
        ("2024-10-27T05:50+01:00", "10-26-2200", 31800),
        ("2024-10-27T06:00+01:00", "10-27-0600", 0),
    ],
}


@pytest.mark.parametrize("month", CHANGES)
def test_shifts_begin_by_the_clock_on_the_wall(tmp_path, month):
    lines = [f"t{k},A,B,{time},9" for k, (time, _, _) in enumerate(CHANGES[month])]
    path = write(tmp_path / "day.csv", HEADER, *lines)
    found = []
    for record in acerl_np.load_records(path, layout=FLOOR, mapping={"split": "shift"}):
        begin = record.epoch.isoformat(timespec="minutes")
        assert begin[11:13] == record.name[-4:-2]
        zone = CHANGES[month][0 if record.name.endswith("2200") else -1][0][-6:]
        assert begin.endswith(zone)
        found += [(record.name.removeprefix("day-2024-"), x) for x in record.arrival.tolist()]
    assert found == [(name, seconds) for _, name, seconds in CHANGES[month]]


def test_shifts_of_times_in_utc_ask_for_the_plants_clock(tmp_path, monkeypatch):
    for times in (("1714966200", "1714968000000"), ("2024-05-06T03:30Z", "2024-05-06T06:00+02:00")):
        lines = [f"t{k},A,B,{time},9" for k, time in enumerate(times)]
        path = write(tmp_path / "day.csv", HEADER, lines[0])
        refused(path, ["split (--split)", "--timezone"], acerl_np.load_records, path, **SHIFTS)
        write(path, HEADER, *lines)
        read = {"layout": FLOOR, "mapping": {"split": "shift", "timezone": "Europe/Berlin"}}
        found = acerl_np.load_records(path, **read)
        assert [item.name for item in found] == ["day-2024-05-05-2200", "day-2024-05-06-0600"]
        assert [item.arrival.tolist() for item in found] == [[27000], [0]]
        # What was written is read again by the same mapping.
        write_record(found[0], path)
        [again] = acerl_np.load_records(path, **read)
        assert (again.content_hash, again.epoch) == (found[0].content_hash, found[0].epoch)
    for zone in ("Europe", "../x", "Europe/Berlun", "a\0", ""):
        with pytest.raises(InputError, match=r"^timezone \(--timezone\): read .*zone such as"):
            Export(timezone=zone)
    monkeypatch.setattr("acerl_np.problem.fields.available_timezones", set)
    with pytest.raises(InputError, match=r"this machine knows no other zone .*pip install tzdata"):
        Export(timezone="Europe/Berlun")
    assert Export(timezone="UTC").timezone == "UTC"


def test_clock_changes_are_no_time(tmp_path):
    """Between moments of one zone."""
    path = write(tmp_path / "day.csv", HEADER, "t0,A,B,1711843200,9", "t1,A,B,1711846800,9")
    read = load(path, mapping={"timezone": "Europe/Berlin"})
    assert read.arrival.tolist() == [0, 3600] and read.epoch.isoformat()[11:] == "01:00:00+01:00"
    # Whole seconds stay whole in a shift.
    times = enumerate(["05:59:59.3", "14:00:00", "14:00:07"])
    write(path, HEADER, *(f"t{k},A,B,2024-05-06T{x},60" for k, x in times))
    records = acerl_np.load_records(path, layout=FLOOR, mapping={"split": "shift"})
    assert [item.arrival.tolist() for item in records] == [[28799.3], [0.0, 7.0]]


def place(text, zone, fold=None):
    """The moment that a text names to a plant of this zone, None if it is refused."""
    column = TimeColumn("time", Export(timezone=zone, fold=fold).make_date_format())
    try:
        return column.read({"time": text}, "line 2")
    except RecordError as error:
        assert str(error).startswith("line 2: time: read ") and "\n" not in str(error)


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC")


@settings(max_examples=500)
@given(
    st.sampled_from([*ZONES, "Pacific/Apia", "Africa/Casablanca"]),
    st.datetimes(datetime(1975, 1, 1), datetime(2037, 12, 31)),
    st.sampled_from([0, 1, 2]),
)
def test_a_time_without_an_offset_is_what_the_clock_on_the_wall_shows(name, around, hint):
    """Of all moments by whatever offset the zone has in those days, those at which its clock shows it."""
    zone = ZoneInfo(name)
    changes = [around]
    for days in range(400 * (hint > 0)):  # a day on which the clock changes, if there is one
        day, after = (around + timedelta(days=days + k) for k in (0, 1))
        if day.replace(tzinfo=zone).utcoffset() != after.replace(tzinfo=zone).utcoffset():
            changes = [day + timedelta(minutes=30 * k) for k in range(49)]
            break
    for wall in changes:
        offsets = {(wall + timedelta(days=k)).replace(tzinfo=zone).utcoffset() for k in (-2, 0, 2)}
        possible = sorted((wall - offset).replace(tzinfo=UTC) for offset in offsets)
        meant = [at for at in possible if at.astimezone(zone).replace(tzinfo=None) == wall]
        text = wall.isoformat()
        assert place(text, name) == (meant[0] if len(meant) == 1 else None)
        assert place(text, name, "earlier") == (meant[0] if meant else None)
        assert place(text, name, "later") == (meant[-1] if meant else None)
        for at in meant:
            assert place(at.astimezone(zone).isoformat(), name) == at


NIGHTS = {
    "2024-10-27T01:30": ("2024-10-27T03:30", 10800),  # back
    "2024-03-31T01:30": ("2024-03-31T03:30", 3600),  # forward
    "2024-05-06T01:30": ("2024-05-06T03:30", 7200),
}


@pytest.mark.parametrize("night", NIGHTS)
def test_every_table_is_by_the_plants_clock(tmp_path, night):
    later, seconds = NIGHTS[night]
    how = {"timezone": "Europe/Berlin"}
    rows = [f"t0,A,B,{night},{later}", f"t1,A,B,{later},{later}"]
    path = write(tmp_path / "day.csv", HEADER, *rows)
    broken = write(tmp_path / "broken.csv", "vehicle,time,repair_time", f"v,{later},60")
    record = load(path, mapping=how, breakdowns=broken)
    assert record.arrival.tolist() == [0, seconds] and record.expiry.tolist() == [seconds, 0]
    assert record.layout.vehicles[0].breakdowns[0].time == seconds
    past = write(tmp_path / "past.csv", "task,vehicle,start", f"t0,v,{night}", f"t1,v,{later}")
    assert read_assignments(past, record, Export(**how)).start.tolist() == [0, seconds]
    # What was written has offsets, and is the same without the zone.
    write_record(record, path)
    assert load(path).epoch == record.epoch
    assert load(path).arrival.tolist() == [0, seconds]


def test_a_due_time_of_the_next_day_is_by_the_clock_of_that_day(tmp_path):
    """Also where it is doubled, or does not exist, on the day of the arrival."""
    header = "task,pickup,delivery,Tag,Zeit,Termin"
    how = {"date_format": "%d.%m.%Y %H:%M", "timezone": "Europe/Berlin", "columns": TWO_COLUMNS}
    for day, due, seconds in (
        ("26.10.2024", "03:30", 4 * 3600),
        ("30.03.2024", "03:30", 2 * 3600),
        ("27.10.2024", "02:30", 2 * 3600),
        ("31.03.2024", "02:30", 2 * 3600),
    ):
        path = write(tmp_path / "night.csv", header, f"t0,A,B,{day},23:30,{due}")
        assert load(path, mapping=how).expiry.tolist() == [seconds + 3600], day
    write(path, header, "t0,A,B,26.10.2024,23:30,02:30")
    words = ["line 2: expiry_time", "2024-10-27T02:30", "--timezone ZONE,FOLD"]
    refused(path, words, load, path, mapping=how)
    assert load(path, mapping={**how, "fold": "later"}).expiry.tolist() == [4 * 3600]
    assert load(path, mapping={**how, "fold": "earlier"}).expiry.tolist() == [3 * 3600]
    write(path, header, "t0,A,B,31.12.9999,23:30,02:30")
    refused(path, ["line 2: expiry_time", "before the task's arrival"], load, path, mapping=how)


def test_a_fold_needs_a_zone(tmp_path):
    with pytest.raises(InputError, match=r"^fold \(--timezone ZONE,FOLD\): .*earlier or later"):
        Export(timezone="Europe/Berlin", fold="first")
    with pytest.raises(InputError, match=r"^fold \(--timezone ZONE,FOLD\): .*timezone beside it"):
        Export(fold="later")
    path = write(
        tmp_path / "day.csv", f"{HEADER},time_zero", "t0,A,B,2024-10-27T03:30,9,2024-10-27T02:30"
    )
    how = {"timezone": "Europe/Berlin"}
    refused(path, ["line 2: time_zero", "--timezone ZONE,FOLD"], load, path, mapping=how)
    assert load(path, mapping={**how, "fold": "earlier"}).arrival.tolist() == [7200]
    rows = ["t0,A,B,2024-10-27T01:30,9", "t1,A,B,2024-10-27T02:30,9"]
    write(path, HEADER, *rows)
    with pytest.warns(RecordWarning, match="--timezone ZONE,FOLD"):
        assert load(path, mapping={**how, "skip_bad": True}).tasks == ("t0",)


def test_breakdowns_in_seconds_are_of_one_record(tmp_path):
    path = write(tmp_path / "week.csv", HEADER, "t0,A,B,0,60", "t1,A,B,9000,60")
    broken = write(tmp_path / "broken.csv", "vehicle,time,repair_time", "v,9100,60")
    with pytest.raises(RecordError, match=r"broken\.csv: time: seconds, .* expected timestamps"):
        acerl_np.load_records(path, layout=FLOOR, breakdowns=broken, mapping={"split": "3600"})


# Due times, sites

TWO_COLUMNS = {"arrival_time": "Tag+Zeit", "expiry_time": "Tag+Termin"}


def test_a_due_time_before_its_arrival_is_of_the_next_day(tmp_path):
    """Only where both are times of day of one date."""
    rows = ["t0,A,B,06.05.2024,23:50,00:10", "t1,A,B,06.05.2024,22:00,06:00"]
    rows += ["t2,A,B,07.05.2024,07:30,07:30", "t3,A,B,07.05.2024,07:30,08:00"]
    header = "task,pickup,delivery,Tag,Zeit,Termin"
    path = write(tmp_path / "night.csv", header, *rows)
    export = Export(columns=TWO_COLUMNS, date_format="%d.%m.%Y %H:%M")
    [night], reading = examine_record(path, FLOOR, export)
    found = dict(zip(night.tasks, night.expiry.tolist(), strict=True))
    assert found == {"t0": 1200, "t1": 28800, "t2": 0, "t3": 1800}
    assert reading.rolled == (1200, 28800)
    # Two dates beside one time of day, and a date of its own: what is due before it arrives is bad.
    for due, text in (("Termin+Zeit", "05.05.2024"), ("Termin", "06.05.2024 00:10")):
        columns = {**TWO_COLUMNS, "expiry_time": due}
        mapping = replace(export, columns=columns)
        lines = [header, f"t0,A,B,06.05.2024,23:50,{text}"]
        cases = [(lines, "line 2: expiry_time ... before the task's arrival")]
        assert list_unrefused_files(path, cases, partial(load, mapping=mapping)) == []


def test_due_is_for_tasks_that_say_nothing_of_it(tmp_path):
    path = write(tmp_path / "day.csv", HEADER[: HEADER.rindex(",")], "t0,A,B,0", "t1,B,C,2")
    refused(path, ["missing column 'expiry_time'", "--due SECONDS"], load, path)
    assert load(path, mapping={"due": 900}).expiry.tolist() == [900, 900]
    write(path, HEADER, "t0,A,B,2024-05-06T07:00,", "t1,A,B,2024-05-06T07:00,2024-05-06T07:01")
    assert load(path, mapping={"due": 900}).expiry.tolist() == [900, 60]
    cases = [({"due": due}, "from 1 to 1e") for due in (0, -1, float("nan"), "900", 1e10)]
    assert list_unrefused(lambda mapping: load(path, mapping=mapping), cases) == []


def test_case_does_not_matter_where_one_site_is_meant():
    text = json.dumps(straight_floor(FLEET)).replace('"C"', '"\\u00dc"')
    floor = Layout.from_dict(json.loads(text))
    row = make_task("t0", "u\u0308", "b", 0, 9)
    found = Instance.from_rows("x", floor, [row])
    assert [floor.sites[k].id for k in (found.pickup[0], found.delivery[0])] == ["Ü", "B"]
    with pytest.raises(RecordError, match="'Ü' is also the pickup"):
        Instance.from_rows("x", floor, [{**row, "delivery": "Ü"}])
    row["delivery"] = "ss"
    Instance.from_rows("x", replace(floor, aliases={"Ss": "A", "SS": "A"}), [row])
    with pytest.raises(RecordError, match="unknown site 'ss'"):
        Instance.from_rows("x", replace(floor, aliases={"Ss": "A", "SS": "B"}), [row])


# Faults


def test_faults_of_one_cause_are_told_once(tmp_path):
    rows = [f"t{k},A,B,{k},9" for k in range(9)]
    rows += ["u0,Z,B,0,9", "t3,A,B,0,9", "u1,Y,B,0,9", "u2,Z,B,0,9"]
    path = write(tmp_path / "day.csv", HEADER, *rows)
    refused(path, ["line 11: pickup", "4 of 13 rows are bad, of 2 causes; --skip-bad"], load, path)
    with pytest.warns(RecordWarning) as caught:
        load(path, mapping={"skip_bad": True})
    assert str(caught[0].message) == (
        f"{path}: 4 of 13 rows left out (31 %: what is left may tell too little of the plant): 3 rows "
        "such as line 11: pickup: unknown site 'Z'; expected a site of layout 'hall' (also read: Y), line "
        "12: task: 't3' stands already on line 5; expected each task once"
    )


def test_a_header_is_shown_as_it_stands(tmp_path):
    names = ",".join(f"Größe {k}" for k in range(9))
    cases = [
        ([names, ",".join("123456789")], f'{names} ... --columns (mapping=) such as "task=COLUMN,'),
        ([names, ",".join("123456789")], "convert"),
        # A column that looks like one that need not be there hides no others.
        (["Nr,Priorität", "1,2"], "missing columns 'task', 'pickup' ... \"task=Nr,pickup=COLUMN"),
    ]
    assert list_unrefused_files(tmp_path / "day.csv", cases, load) == []


def test_what_encodings_and_sheets_are_no_use(tmp_path):
    path = write(tmp_path / "day.csv", HEADER, "t0,A,B,0,9")
    assert load(path, mapping={"encoding": "utf-16", "sheet": "Mai"}).n_tasks == 1
    path.write_bytes("task,Größe".encode("cp1252"))
    with pytest.raises(RecordError, match="byte 0xf6 is not UTF-8; expected"):
        load(path, mapping={"encoding": "utf8"})
    write(path, "nr,von,nach", "1,A,B")
    refused(path, ['sheet (--sheet): read "Mai"', "workbook"], load, path, mapping={"sheet": "Mai"})
    write(path, HEADER.replace(",", "\t"), '"t0"x\tA\tB\t0\t9')
    refused(path, ["line 2: not CSV: '\\t' expected after"], load, path)
    with pytest.raises(RecordError) as caught:
        load(tmp_path)
    assert str(caught.value) == f"{tmp_path}: expected a file, found a directory"


# Numbers

DECIMALS = {
    ("1.200", "900"): None,
    ("1.200", "0.500"): [1.2, 0.5],
    ("1.200", "12.5"): [1.2, 12.5],
    ("1.200", "2,5"): [1200, 2.5],
    ("1.200", "1.200,5"): [1200, 1200.5],
    ("1.200.000", "1.200"): [1200000, 1200],
    ("1,200.5", "3.5"): [1200.5, 3.5],
    ("1,200", "0,5"): [1.2, 0.5],
    ("0.5", "2,5"): [0.5, 2.5],
    ("1.200", "0.5", "2,5"): None,
}
COMMA = {"mapping": {"decimal": ","}}


def test_points_between_thousands_are_told_or_asked_for(tmp_path):
    path = tmp_path / "day.csv"
    asked = "line 2: handling_time ... \"1.200\" ... --decimal ... '.' for 1.2, or ',' for 1200"
    for texts, values in DECIMALS.items():
        rows = [f"t{k};A;B;0;9;{text}" for k, text in enumerate(texts)]
        lines = [HEADER.replace(",", ";") + ";handling_time", *rows]
        if values is None:
            assert list_unrefused_files(path, [(lines, asked)], load) == []
        else:
            assert load(write(path, *lines)).handling_time.tolist() == values


def test_what_stands_before_decimals_may_be_said(tmp_path):
    path = tmp_path / "day.csv"
    for mark, value in ((".", 1.2), (",", 1200)):
        write(path, HEADER.replace(",", "\t") + "\tdemand", "t0\tA\tB\t0\t9\t1.200")
        assert load(path, mapping={"decimal": mark}).demand.tolist() == [value]
        # Between commas, too, but not in a plain record: what was converted is read by such a mapping.
        write(path, HEADER.replace("task", "nr") + ",demand", "t0,A,B,0,9,1.200")
        columns = {"task": "nr"}
        assert load(path, mapping={"decimal": mark, "columns": columns}).demand.tolist() == [value]
        write(path, HEADER + ",demand", "t0,A,B,0,9,1.200")
        assert load(path, mapping={"decimal": mark, "columns": columns}).demand.tolist() == [1.2]
    refused(path, ["line 2: demand", "no points between"], load, path, **COMMA)
    write(path, HEADER + ",demand", "t0,A,B,0.5,9,1.2")
    assert load(path, **COMMA).demand.tolist() == [1.2]
    cases = ((".", "1,200", 1200), (",", "1.200,5", 1200.5), (".", "1,200.5", 1200.5))
    for mark, text, value in cases:
        write(path, HEADER + ",demand", f't0,A,B,0,9,"{text}"')
        assert load(path, mapping={"decimal": mark}).demand.tolist() == [value]
    write(path, HEADER.replace(",", ";"), "t0;A;B;1.5;9")
    refused(path, ["line 2: arrival_time", "',' before decimals"], load, path, **COMMA)
    with pytest.raises(InputError, match=r"decimal \(--decimal\): read 'x'; expected ',' or"):
        Export(decimal="x")


def test_a_dash_is_an_empty_field_of_a_time_or_a_number(tmp_path):
    header = "task;pickup;delivery;Tag;Zeit;Termin;handling_time"
    rows = ["-;A;B;06.05.2024;07:30;-;–", "t1;A;B;06.05.2024;07:30;;-"]
    rows.append("t2;A;B;06.05.2024;07:30;08:00;3")
    path = write(tmp_path / "day.csv", header, *rows)
    export = Export(columns=TWO_COLUMNS, date_format="%d.%m.%Y %H:%M", due=900, handling=20)
    found = load(path, mapping=export)
    assert found.tasks == ("-", "t1", "t2")
    assert found.expiry.tolist() == [900, 900, 1800]
    assert found.handling_time.tolist() == [20, 20, 3]
    expected = ["line 2: expiry_time", 'read ""', "2 of 3 rows are bad"]
    refused(path, expected, load, path, mapping=replace(export, due=None))


# Sites


def test_a_mapping_names_sites(tmp_path):
    path = write(tmp_path / "day.csv", HEADER, "t0,Halle 1,B,0,9", "t1,A,Halle 1,0,9")
    with pytest.raises(RecordError, match="unknown site 'D'"):
        load(path, mapping={"sites": {"Halle 1": "D"}})
    # The floor's own names go before.
    found = load(path, mapping={"sites": {"Halle 1": "C", "A": "B"}})
    assert [FLOOR.sites[k].id for k in (*found.pickup, *found.delivery)] == [*"CABC"]
