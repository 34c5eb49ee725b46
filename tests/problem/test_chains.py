"""Records of chained tasks: columns, faults, files, and what moves, copies and parts them."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables_and_refusals import list_unrefused
from worlds import row_floor

import acerl_np
from acerl_np import Instance, Layout, load_instance, load_suite
from acerl_np.kernels.rollout.variation import draw_records
from acerl_np.problem.bundled import YARDSTICK, instances_folder
from acerl_np.problem.demand import draw_shift
from acerl_np.problem.export import Export
from acerl_np.problem.packing import pack_instances, unpack_instances
from acerl_np.problem.records import examine_record, write_record
from acerl_np.problem.servable import check_record
from acerl_np.problem.tables import allocate_variants, build_problem
from acerl_np.problem.task_rows import count_before, find_roots
from acerl_np.support.errors import InputError, LayoutError, RecordError
from studies.job_shops import import_bilge_ulusoy

MACHINES = [{"site": "b"}, {"site": "c", "servers": 2}]
FLOOR = row_floor("abcd", [{"id": "v", "start": "a"}], machines=MACHINES)
HEADER = "task,pickup,delivery,arrival_time,expiry_time,after,processing,announced\n"


def read(tmp_path, lines, header=HEADER, export=None):
    path = tmp_path / "r.csv"
    path.write_text(header + lines)
    found, reading = examine_record(path, Layout.from_dict(FLOOR), export or Export())
    return found if export else (found[0], reading)


def test_a_chain_stands_where_its_first_task_arrives(tmp_path):
    lines = "c,b,c,,,b,0,start\nx,a,b,5,100,,3,\nb,c,b,,30,a,7,\na,a,c,0,,,4,10\n"
    instance, reading = read(tmp_path, lines)
    assert instance.tasks == ("a", "b", "c", "x") and not instance.is_plain
    assert instance.after.tolist() == [-1, 0, 1, -1] and instance.root.tolist() == [0, 0, 0, 3]
    assert instance.arrival.tolist() == [0, 0, 0, 5]
    assert instance.expiry.tolist() == [np.inf, 30, np.inf, 100]
    assert instance.processing.tolist() == [4, 7, 0, 3]
    assert instance.announced.tolist() == [10, 0, np.inf, 0]
    assert reading.first_row == ("x", "5", "100") and reading.first == (5, 100)
    write_record(instance, tmp_path / "w.csv")
    again = load_instance(tmp_path / "w.csv", layout=instance.layout)
    assert ",b,c,,,b,0,start" in (tmp_path / "w.csv").read_text()
    assert again.content_hash == instance.content_hash
    [again] = unpack_instances(pack_instances([instance]))
    assert again.content_hash == instance.content_hash
    # b is ready at 24 at the earliest, after 20 s of way and 4 s of processing; c at 41, and done at 51.
    found = check_record(instance)
    assert (found.chains, found.longest, found.load.span) == (1, 3, 105)
    assert found.machines == {"b": pytest.approx(10 / 105), "c": pytest.approx(4 / 210)}
    alone, _ = read(tmp_path, lines.replace("5,100", "5,20").replace(",30,a", ",13,a"))
    assert check_record(alone).load.span == 51 and not check_record(alone).hopeless
    early, _ = read(tmp_path, lines.replace(",30,a", ",9,a"))
    assert check_record(early).hopeless == ("b",)


def test_unused_columns_change_nothing(tmp_path):
    plain, _ = read(tmp_path, "t,a,b,3,9\n", HEADER.partition(",after")[0] + "\n")
    empty, _ = read(tmp_path, "t,a,b,3,9,,0,\n")
    assert plain.is_plain and empty.content_hash == plain.content_hash
    assert "after" not in plain.rows()[0] and "machines" in plain.layout.to_dict()


FAULTS = [
    ("a,a,b,0,,a,,\n", "line 2: after: 'a' is the task itself; expected another"),
    ("a,a,b,0,,z,,\n", "line 2: after: unknown task 'z'; expected a task of the record"),
    (
        "a,a,b,,,b,,\nb,a,b,,,c,,\nc,a,b,,,a,,\n",
        "line 2: after: 'a' follows itself by way of 'b', 'c'; expected a chain",
    ),
    ("a,a,d,0,,,5,\n", "line 2: processing: read \"5\"; expected 0 at 'd', as it is none"),
    ("a,a,e,0,,,,\nb,a,b,,,a,,\n", "line 2: delivery: unknown site 'e'"),
    ("b,a,b,0,,,,soon\n", 'line 2: announced: read "soon"; expected a number of seconds'),
    (
        "a,a,b,07:00,07:30,,,\nb,b,c,,07:40,a,,\n",
        'line 3: expiry_time: read "07:40"; expected a number of seconds after the task is ready',
    ),
]


def test_faults_of_chains_and_machines(tmp_path):
    assert list_unrefused(lambda lines: read(tmp_path, lines), FAULTS, RecordError) == []
    cases = [
        ([{"site": "z"}], "machines[0].site: unknown site 'z'"),
        ([{"site": "b"}, {"site": "b"}], "machines[1].site: 'b' again"),
    ]
    layout = Layout.from_dict
    assert list_unrefused(lambda own: layout(FLOOR | {"machines": own}), cases, LayoutError) == []


def test_what_follows_a_bad_row_is_left_out_with_it(tmp_path):
    lines = "a,a,e,0,,,,\nb,a,b,,,a,,\nc,a,b,,,b,,\nd,a,b,1,,,,\n"
    with pytest.warns(acerl_np.RecordWarning):
        [instance] = read(tmp_path, lines, export=Export(skip_bad=True))
    assert instance.tasks == ("d",)


def test_a_chain_stays_in_the_shift_of_its_first_task(tmp_path):
    """Ids come again in each shift; what follows names the last one above."""
    day = "2024-05-0{0}T{1}:59"
    lines = "".join(
        f"a,a,b,{day.format(k, '13')},60,,,\nb,b,c,,60,a,,\nc,c,d,{day.format(k, '14')},60,b,,\n"
        for k in (6, 7)
    )
    found = read(tmp_path, lines, export=Export(split="shift"))
    assert [item.name[-15:] for item in found] == ["2024-05-06-0600", "2024-05-07-0600"]
    for item in found:
        assert item.after.tolist() == [-1, 0, 1]
        assert item.arrival.tolist() == [28740, 28740, 32340]
        write_record(item, tmp_path / "w.csv")
        assert "b,b,c,,60,a" in (tmp_path / "w.csv").read_text()
        again = load_instance(tmp_path / "w.csv", layout=item.layout)
        assert again.content_hash == item.content_hash and again.epoch == item.epoch


def make_chains(n=40):
    """Chains of three tasks, the middle one in the file before the others."""
    rows = []
    for k in range(n):
        ends, times = ("bc", "ab", "cd"), ("", 60 * k + 30, 60 * k + 400)
        after = (f"a{k}", "", f"b{k}")
        for name, (x, y), time, before in zip("bac", ends, times, after, strict=True):
            row = {"task": f"{name}{k}", "pickup": x, "delivery": y, "arrival_time": time}
            rows.append(row | {"expiry_time": "", "after": before})
    return Instance.from_rows("chains", Layout.from_dict(FLOOR), rows)


def test_noise_and_demand_keep_chains():
    record = make_chains()
    noised, more = acerl_np.perturb(record, 20, seed=3), draw_shift(record, 1.5, seed=1)
    before = dict(zip(record.tasks, record.arrival, strict=True))
    moves = {(x[1:], y - before[x]) for x, y in zip(noised.tasks, noised.arrival, strict=True)}
    assert len(moves) == 40 and len({move for _, move in moves}) > 5
    assert more.n_tasks == 180 and (more.after >= 0).sum() == 120
    for item in (noised, more):
        for k in np.flatnonzero(item.after >= 0):
            # The copy's own predecessor, not that of the first.
            name, first = item.tasks[k], item.tasks[item.after[k]]
            assert first[0] == {"b": "a", "c": "b"}[name[0]] and first[1:] == name[1:]
        assert (np.diff(item.arrival[item.root]) >= 0).all()


def draw_variants(records, magnitude, synthetic):
    """The arrivals and the priorities of variants of the first of these records, and who follows whom."""
    source, n = build_problem(records), 20
    target = allocate_variants(source, n)
    bases, key = np.zeros(n, np.int64), np.empty(4, np.uint32)
    draw_records(source, target, bases, magnitude, synthetic, 5, 1, key)
    for k in range(n):
        size = target.instance["n_tasks"][k]
        rows, after = target.record[k, :size], target.chain["after"][k, :size]
        is_ranked = bool(target.instance["has_priorities"][k])
        yield rows["arrival"][:], rows["priority"][:], is_ranked, find_roots(after)


@pytest.mark.parametrize("synthetic", [0.0, 1.0])
def test_a_chain_moves_with_its_first_task(synthetic):
    """As `perturb` moves it: what may not be ready before a moment is held back as long as before."""
    record, seen = make_chains(), set()
    for arrival, _, _, root in draw_variants([record], 20, synthetic):
        assert len(arrival) == 120 and sorted(Counter(root.tolist()).values()) == [3] * 40
        held = (arrival - arrival[root]).reshape(40, 3).tolist()
        assert sorted(map(sorted, held)) == [[0.0, 0.0, 370.0]] * 40
        seen |= {*(arrival[root] - record.arrival[root]).tolist()}
        if not synthetic:
            moves = arrival - record.arrival
            assert (moves == moves[record.root]).all() and (abs(moves) <= 20).all()
    assert len(seen) > 20


def test_a_synthetic_day_of_chains_has_the_priorities_of_its_tasks():
    plain = make_chains(5)
    rows = [{**row, "priority": 2.0} for row in plain.rows()]
    other = Instance.from_rows("urgent", plain.layout, rows)
    found = set()
    for _, priority, is_ranked, _ in draw_variants([plain, other], 0, 1.0):
        assert is_ranked == bool(priority.any())
        found |= {*priority.tolist()}
    assert found == {0.0, 2.0}


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=12))
def test_roots_are_where_walking_ends(numbers):
    after = np.array([x if x < len(numbers) else -1 for x in numbers])
    expected = []
    for k in range(len(after)):
        steps = 0
        while after[k] >= 0 and steps <= len(after):
            k, steps = after[k], steps + 1
        expected.append((k, steps) if steps <= len(after) else (-1, 0))
    roots = find_roots(after)
    assert roots.tolist() == [k for k, _ in expected]
    if (roots >= 0).all():
        assert count_before(after).tolist() == [steps for _, steps in expected]


# Bilge and Ulusoy


def test_the_baseline_is_as_published():
    """EX11 by hand, and of all forty the ways and the sums of processing."""
    [first, *_] = suite = load_suite("bu-all")
    names = [item.name for item in suite]
    assert names[-4:] == ["EX101", "EX102", "EX103", "EX104"]
    assert sorted(item.name for k in range(1, 11) for item in load_suite(f"bu-{k}")) == sorted(
        names
    )
    columns = ("task", "pickup", "delivery", "after", "processing")
    assert [tuple(row[x] for x in columns) for row in first.rows()[:4]] == [
        ("j1-1", "lu", "m1", "", 8.0),
        ("j1-2", "m1", "m2", "j1-1", 16.0),
        ("j1-3", "m2", "m4", "j1-2", 12.0),
        ("j2-1", "lu", "m1", "", 20.0),
    ]
    numbers = json.loads((instances_folder() / YARDSTICK).read_text(encoding="utf-8"))
    for item in suite:
        job_set, layout = item.name[2:-1], item.name[-1]
        assert (item.layout.routes.distance == np.array(numbers["layouts"][layout])).all()
        jobs = numbers["job_sets"][job_set]
        assert item.processing.sum() == sum(time for job in jobs for _, time in job)
        assert (item.after < 0).sum() == len(jobs)
        assert (item.arrival == 0).all() and np.isinf(item.expiry).all()
        assert [v.start for v in item.layout.vehicles] == ["lu", "lu"]
    # Sums over the published tables.
    times = np.array([numbers["layouts"][str(k)] for k in range(1, 5)])
    assert times.sum(axis=(1, 2)).tolist() == [160, 128, 140, 200]
    jobs = [job for jobs in numbers["job_sets"].values() for job in jobs]
    assert sum(map(len, jobs)) == 171 and sum(t for job in jobs for _, t in job) == 2112


def test_the_baseline_is_imported_from_its_numbers(empty, study):
    path = instances_folder() / YARDSTICK
    study(f"job-shops {path} --out made")
    bundled = [*instances_folder().glob(f"{YARDSTICK.parent}-?/*")]
    assert len(bundled) == 44
    for file in bundled:
        assert Path("made", file.parent.name, file.name).read_bytes() == file.read_bytes()
    known = next(x for x in import_bilge_ulusoy(path, announced=True) if x.name == "EX53")
    expected = np.where(known.after >= 0, np.inf, 0.0)
    assert known.announced.tolist() == expected.tolist()

    def read(change):
        (*where, last), value = change
        data = at = json.loads(path.read_text(encoding="utf-8"))
        for key in where:
            at = at[key]
        at[last] = value
        Path("bad.json").write_text(json.dumps(data))
        return import_bilge_ulusoy(Path("bad.json"))

    way, machine = ("layouts", "2"), ("job_sets", "1", 0, 1, 0)
    place = "job_sets.1[0][1]: delivery:"
    cases = [
        (((*way, 1, 1), 1), "layouts.2[1][1]: read 1.0; expected 0 from a station to"),
        ((machine, 1), f"{place} 'm1' is also the pickup; expected another site"),
        ((machine, 7), f"{place} unknown site 'm7'; expected a site of layout"),
        ((("layouts",), {}), "layouts: read {}; expected at least one"),
        ((("job_sets",), {}), "job_sets: read {}; expected at least one"),
    ]
    assert list_unrefused(read, cases) == []
    with pytest.warns(UserWarning, match=r"layouts.2: 1 ways are quicker .* \(0 to 1\)"):
        found = read(((*way, 0, 1), 15))
    longest = next(item for item in found if item.name == "EX12").layout
    assert longest.routes.distance[0, 1] == 14


def test_no_observation_shows_chains():
    record = load_instance("EX11")
    with pytest.raises(InputError, match=r"EX11: has tasks that follow others.*no observation"):
        acerl_np.ACERL(record, acerl_np.Config())
    network = acerl_np.Agent(lambda seen, mask: mask.argmax(axis=1), load_instance("DMH-01"))
    with pytest.raises(acerl_np.PolicyError, match="no observation shows"):
        network.check_fits(record)
