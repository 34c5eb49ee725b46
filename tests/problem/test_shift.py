"""Records of a plant's shift: who sends what where, how often, due when, and what a floor's names tell."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from tables_and_refusals import list_unrefused

import acerl_np
from acerl_np import InputError, Layout
from acerl_np.problem.servable import check_record, measure_load
from acerl_np.problem.shift import SAMPLE, find_roles, find_scale, generate_shift
from acerl_np.support.fields import MAX_SEED

NAMES = ("Goods in 1", "Inbound-2", "rack1", "rack2", "Storage 3", "work1", "work2", "Press", "out")
KINDS = ("", "", "shelf", "shelf", "shelf", "workstation", "workstation", "Work cell", "goods-out")
PAIRS = {("in", "store"), ("store", "work"), ("work", "out")}


def plant(**changes):
    """Sites 10 m apart along a line, the vehicles' start at its end, two vehicles."""
    sites = [
        {"id": site, "x": 10.0 * k, "y": 0.0, "kind": kind}
        for k, (site, kind) in enumerate(zip((*NAMES, "park"), (*KINDS, "parking"), strict=True))
    ]
    for site in sites[:2]:
        site["kind"] = "dock"
    edges = [{"a": a["id"], "b": b["id"]} for a, b in itertools.pairwise(sites)]
    fleet = [{"id": f"v{k}", "start": "park"} for k in range(2)]
    data = {"format": 1, "sites": sites, "edges": edges, "vehicles": fleet, **changes}
    return Layout.from_dict(data)


ROLE_OF = np.array(["in"] * 2 + ["store"] * 3 + ["work"] * 3 + ["out"] * 2)


def part(shift, role):
    """Return what tasks are that begin at a role's places."""
    return np.flatnonzero(ROLE_OF[shift.pickup] == role)


def test_a_shift_holds_what_its_process_says():
    shift = generate_shift(plant(), seed=3, hours=24, handling_time=(10, 40))
    kinds = set(zip(ROLE_OF[shift.pickup], ROLE_OF[shift.delivery], strict=True))
    assert kinds == PAIRS
    assert (shift.arrival == np.floor(shift.arrival)).all() and shift.arrival.max() < 24 * 3600
    assert shift.handling_time.min() == 10 and shift.handling_time.max() == 40

    loads, calls, goods = (part(shift, role) for role in ("in", "store", "work"))
    assert (shift.expiry[loads] == 1500).all()
    assert shift.expiry[calls].min() >= 480 and shift.expiry[calls].max() <= 900
    assert 650 < shift.expiry[calls].mean() < 730
    leaving = (shift.arrival + shift.expiry)[goods] % 3600 == 0
    early, late = shift.expiry[goods] == 420, shift.expiry[goods] == 2400
    assert (leaving | early | late).all()
    assert leaving.sum() > 20 and early.sum() > 20 and late.sum() > 20
    assert (shift.arrival[goods][early] % 3600 > 3600 - 420).all()
    assert (shift.arrival[goods][late & ~leaving] % 3600 < 3600 - 2400).all()


def test_lorries_bring_their_loads_to_one_dock():
    lorries, sizes, gaps = [], [], []
    for k in range(60):
        # Few of them, so that they seldom meet at a dock, and before the first break.
        shift = generate_shift(plant(), seed=1, index=k, hours=2, scale=0.2)
        for dock in (0, 1):
            moments = shift.arrival[shift.pickup == dock]
            ends = np.flatnonzero(np.diff(moments, prepend=-1e9) > 71)
            lorries += moments[ends].tolist()
            sizes += np.diff(ends).tolist()
            inner = np.diff(moments)
            gaps += inner[inner <= 71].tolist()
    assert len(lorries) == pytest.approx(60 * 0.2 * 7200 / 2700, rel=0.35)
    assert np.mean([5 <= size <= 14 for size in sizes]) > 0.9
    assert np.mean(gaps) == pytest.approx(47.5, abs=4)
    assert np.mean([gap >= 24 for gap in gaps]) > 0.9


def test_a_work_station_calls_and_sends_in_turn_by_the_takt():
    gaps = []
    for scale in (1.0, 2.0):
        shift = generate_shift(plant(), hours=2, scale=scale, seed=5)
        for station in (5, 6, 7):
            of = np.flatnonzero((shift.pickup == station) | (shift.delivery == station))
            calls = shift.delivery[of] == station
            assert (calls[1:] != calls[:-1]).all()
            gaps += (np.diff(shift.arrival[of]) * scale).tolist()
    assert np.median(gaps) == pytest.approx(260, abs=15)
    assert np.std([gap for gap in gaps if gap < 480]) == pytest.approx(65, rel=0.2)
    assert min(gaps) >= 65 - 2


def test_breaks_let_fifteen_percent_through():
    moments = [0, 6300, 7200, 8100, 9000, 15300, 16200, 18000, 18900, 28800]
    counts = np.zeros(len(moments) - 1)
    for k in range(40):
        counts += np.histogram(generate_shift(plant(), index=k, scale=4).arrival, moments)[0]
    rates = counts / np.diff(moments)
    during = np.isin(moments[:-1], (7200, 16200))
    shares = rates / np.average(rates[~during], weights=np.diff(moments)[~during])
    assert shares[during] == pytest.approx(0.15, abs=0.03)
    assert shares[~during] == pytest.approx(1.0, abs=0.1)


def test_the_scale_divides_the_gaps_and_every_draw_is_keyed():
    one, two = (generate_shift(plant(), scale=scale).n_tasks for scale in (1.0, 2.0))
    assert two == pytest.approx(2 * one, rel=0.15)
    first = generate_shift(plant(), seed=5, index=1)
    assert generate_shift(plant(), seed=5, index=1).content_hash == first.content_hash
    shorter = generate_shift(plant(), seed=5, index=1, hours=4).rows()
    assert [row for row in first.rows() if row["arrival_time"] < 4 * 3600] == shorter
    hashes = {
        generate_shift(plant(), seed=seed, index=index, hours=1).content_hash
        for seed in (0, 5)
        for index in (0, 1)
    }
    assert len(hashes) == 4
    for k in range(10):  # loads of a lorry that is not yet empty wait for the next shift
        assert generate_shift(plant(), index=k, hours=1, scale=10).arrival.max() < 3600
    loaded = generate_shift(plant(), demand=(1, 4), handling_time=None, hours=1)
    assert {*loaded.demand.tolist()} == {1, 2, 3, 4} and not loaded.handling_time.any()


def test_roles_are_told_by_types_and_names():
    own = {"goods-in": (0, 1), "storage": (2, 3, 4), "work": (5, 6, 7), "goods-out": (8,)}
    assert find_roles(plant()) == {role: [(k,) for k in some] for role, some in own.items()}
    given = find_roles(plant(), {"storage": ["rack2"], "goods-out": "dock"})
    assert given["storage"] == [(3,)] and given["goods-out"] == [(0,), (1,)]
    # A station of several sites is served from the nearest.
    layout = plant(stations={"Shipping": ["Press", "out", "park"]})
    shift = generate_shift(layout, hours=1, roles={"work": ["work1", "work2"]})
    assert {*shift.delivery[part(shift, "work")].tolist()} == {7}
    # Places that cannot be reached are left out.
    data = plant().to_dict()
    data["sites"].append({"id": "island", "x": 0.0, "y": 9.0, "kind": "workstation"})
    layout = Layout.from_dict(data)
    assert find_roles(layout) == find_roles(plant())
    with pytest.raises(InputError, match=r"^work: 0 of 1 places can be reached from every start"):
        find_roles(layout, {"work": "island"})


def test_places_of_other_names_are_dealt_out_alike():
    dmh = acerl_np.load_layout("dmh")
    roles = find_roles(dmh)
    assert roles == find_roles(dmh)
    places = [place for own in roles.values() for place in own]
    assert len(set(places)) == len(places) == 9
    assert [len(own) for own in roles.values()] == [2, 3, 3, 1]
    assert check_record(generate_shift(dmh, seed=1)).servable


def test_the_scale_of_a_utilisation():
    scale = find_scale(plant(), 0.9)
    assert scale == find_scale(plant(), 0.9) and scale != find_scale(plant(), 0.45)
    with pytest.raises(InputError, match=r"^utilisation: read 0.01, which takes a scale of 0.00"):
        find_scale(plant(), 0.01)
    for seed, error in ((MAX_SEED, 0.004), (9, 0.05)):  # the shifts that decide it, and others
        shifts = [generate_shift(plant(), scale=scale, seed=seed, index=k) for k in range(SAMPLE)]
        load = np.mean([measure_load(shift).offered for shift in shifts])
        assert load == pytest.approx(0.9, abs=error)


REFUSED = [
    ({"roles": {"dock": "out"}}, "role: read 'dock'; expected one of goods-in, storage, work, "),
    ({"roles": {"work": "saw"}}, 'work: read "saw"; expected one of Work cell, dock, '),
    (
        {"roles": {"work": ["work1", "rack1"], "storage": "shelf"}},
        "work: read rack1, which is in storage, too; expected a place of one of both",
    ),
    (
        {"roles": {"storage": ["dock", "shelf", "workstation", "Press"]}},
        "goods-in: 1 of the floor's places are left for goods-in, work, goods-out; expected at least 3",
    ),
    ({"hours": 0.25, "scale": 0.01}, "hours: no task arrives in 0.25 h at scale 0.01; "),
    ({"handling_time": (4, 1)}, "handling time: read 4 to 1; expected two numbers"),
    ({"demand": (-1, 1)}, "demand: read -1 to 1; expected two numbers"),
]


def test_one_line_says_what_is_wrong():
    assert list_unrefused(lambda options: generate_shift(plant(), **options), REFUSED) == []


def test_shifts_are_written_and_told(empty, run):
    words = "records make --layout dmh --arrivals shift --hours 1"
    roles = (
        "--role work=workstation --role storage=warehouse --role goods-in=p0 --role goods-out=p2"
    )
    told = run(f"{words} {roles} --utilisation 0.8 --count 2 --out a")
    assert told.out.split() == ["a/tasks-01.csv", "a/tasks-02.csv"]
    *lines, last = told.err.splitlines()
    assert lines[1] == "storage: warehouse" and last.endswith(" for 3 vehicles")
    scale = last.split()[1].rstrip(":")
    run(f"{words} {roles} --scale {scale} --out b --names x{{k}}")
    assert Path("a/tasks-01.csv").read_bytes() == Path("b/x01.csv").read_bytes()
    for more, line in (
        ("--rate 9", "--rate: given without RECORDS and --arrivals shift; expected it left out"),
        ("--tasks 9", "--tasks: given without RECORDS and --arrivals shift"),
        ("--scale 1 --utilisation 1", "--utilisation: given with --scale; expected one of both"),
        ("--arrivals poisson", "--hours: given without RECORDS and --arrivals poisson"),
        ("--arrivals poisson --hours 8", "--tasks: missing; expected the number of tasks"),
        ("--role goods-in=st1,nix", 'goods-in: read "nix"; expected one of parking, '),
    ):
        assert line in run(f"{words} {more} --out c", 2).err
