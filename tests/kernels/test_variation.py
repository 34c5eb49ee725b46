"""Training records drawn anew: what stays, what moves and how far, and that every draw is keyed."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from worlds import World, make_task, parts_floor, straight_floor

from acerl_np.evolution import make_sampler
from acerl_np.kernels.core import state
from acerl_np.kernels.learning.update import Noise
from acerl_np.kernels.rollout.variation import draw_records
from acerl_np.problem.tables import allocate_variants, build_problem
from acerl_np.support.workers import Workers
from acerl_np.training.config import Config
from acerl_np.training.parametrisations import make_parametrisation
from acerl_np.training.records import TrainingRecords

SITES = "ABC"
TASK = ("ends", "record", "arrival_tick")
"""What a row of tasks consists of; the other tables are the floor's and the fleet's."""


def make_records():
    """Three records of one floor and one of another; the handling time of a task is its own."""
    fleet = [
        {"id": "v0", "start": "A", "speed": 1, "breakdowns": [{"time": 40, "repair_time": 5}]},
        {"id": "v1", "start": "C", "speed": 2},
    ]
    floors = [
        straight_floor(fleet, task_slots=4),
        straight_floor(fleet[:1], task_slots=4, truncate_distances=True),
    ]
    rng = np.random.default_rng(3)
    instances = []
    for k, (floor, n) in enumerate([(0, 9), (0, 4), (1, 7), (0, 6)]):
        # Several at 0, some with a fraction, and some at the same time.
        arrivals = np.sort(
            rng.integers(0, 40, n) * np.array([0.0, 0.5, 1.0])[rng.integers(0, 3, n)]
        )
        rows = []
        for task, arrival in enumerate(arrivals.tolist()):
            a, b = rng.permutation(3)[:2]
            expiry, own = float(rng.integers(1, 99)), 100.0 * k + task
            name = f"{k}-{task}"
            rows.append(make_task(name, SITES[a], SITES[b], arrival, expiry, handling_time=own))
        instances.append(World(floors[floor], rows, [0]).instance())
    return instances


INSTANCES = make_records()
SOURCE = build_problem(INSTANCES)
FLOOR = SOURCE.instance["layout"].tolist()
SIZES = SOURCE.instance["n_tasks"].tolist()

seeds = st.integers(0, 2**63 - 1)
generations = st.integers(0, 2**31)


def draw(bases, magnitude, synthetic, seed, generation):
    """A Problem of variants; what was in the memory before does not matter."""
    n = len(bases)
    own = {
        name: np.full((n, *array.shape[1:]), -7).astype(array.dtype)
        for name, array in SOURCE._asdict().items()
        if len(array) == len(INSTANCES) and name not in ("distance", "edge_length", "way")
    }
    target, before = SOURCE._replace(**own), [array.tobytes() for array in SOURCE]
    stream = synthetic, seed, generation, np.empty(4, np.uint32)
    draw_records(SOURCE, target, np.array(bases, np.int64), magnitude, *stream)
    assert [array.tobytes() for array in SOURCE] == before
    return target


def row_bytes(problem, k):
    n = int(problem.instance["n_tasks"][k])
    return [getattr(problem, name)[k, :n].tobytes() for name in TASK]


def tasks_of(problem, k):
    """(handling, demand, loaded, expiry, pickup, delivery, arrival, tick) of the tasks of a row."""
    fields = ["handling", "demand", "loaded", "expiry", "arrival"]
    n = int(problem.instance["n_tasks"][k])
    records, ends = [problem.record[name][k, :n] for name in fields], problem.ends[k, :n]
    found = zip(
        zip(*records, strict=True), ends.tolist(), problem.arrival_tick[k, :n].tolist(), strict=True
    )
    return [(*record[:4], *own, record[4], tick) for record, own, tick in found]


def check_setting(target, bases):
    """Floor, fleet, breakdowns and units are those of the base; arrivals ascend; padding never arrives."""
    for name in ("instance", "fleet", "start_site", "breakdown", "scaling", "unit"):
        assert np.array_equal(getattr(target, name), getattr(SOURCE, name)[bases]), name
    for k, i in enumerate(bases):
        arrivals = target.record["arrival"][k, : SIZES[i]]
        assert (np.diff(arrivals) >= 0.0).all() and arrivals[0] >= 0.0
        ticks = target.arrival_tick[k]
        assert ticks[: SIZES[i]].tolist() == [math.ceil(arrival) for arrival in arrivals]
        assert (ticks[SIZES[i] :] == state.NEVER).all()


bases_of = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@given(bases_of, st.integers(0, 30), seeds, generations)
def test_perturbed_copies_move_arrivals_and_nothing_else(bases, magnitude, seed, generation):
    target = draw(bases, magnitude, 0.0, seed, generation)
    check_setting(target, bases)
    for k, i in enumerate(bases):
        before = {task[0]: task for task in tasks_of(SOURCE, i)}
        after = tasks_of(target, k)
        assert {task[0] for task in after} == before.keys() and len(after) == SIZES[i]
        shifts = []
        for task in after:
            old = before[task[0]]
            assert task[1:6] == old[1:6]
            if old[6] == 0.0:
                assert task[6] == 0.0
            elif task[6] > 0.0:
                shifts.append(task[6] - old[6])
        assert all(shift == int(shift) and abs(shift) <= magnitude for shift in shifts)
        # Of equal arrivals the one that stood first still does.
        order = [(task[6], list(before).index(task[0])) for task in after]
        assert order == sorted(order)


def test_magnitudes_are_drawn_from_none_to_the_largest():
    """Each variant has one of its own: some are copies, and some move by the largest."""
    largest = []
    for generation in range(60):
        target = draw([0] * 4, 3, 0.0, 1, generation)
        for k in range(4):
            before = {task[0]: task[6] for task in tasks_of(SOURCE, 0)}
            moved = [abs(task[6] - before[task[0]]) for task in tasks_of(target, k)]
            largest.append(max(moved))
    assert set(largest) == {0.0, 1.0, 2.0, 3.0}
    # m = 0 in a quarter of 240 rows, and now and then nothing moves although it could.
    assert 35 < Counter(largest)[0.0] < 100


@given(bases_of, seeds, generations, st.sampled_from([0.0, 0.5, 1.0]), st.data())
def test_a_variant_depends_on_its_own_key_alone(bases, seed, generation, synthetic, data):
    """On (seed, generation, k): not on the other rows, nor on what was drawn before."""
    target = draw(bases, 20, synthetic, seed, generation)
    k = data.draw(st.integers(0, len(bases) - 1))
    others = data.draw(st.lists(st.integers(0, 3), min_size=k, max_size=k))
    more = data.draw(bases_of)
    again = draw([*others, bases[k], *more], 20, synthetic, seed, generation)
    assert row_bytes(again, k) == row_bytes(target, k)


def test_seed_generation_and_row_tell_variants_apart():
    keys = [(5, 1), (6, 1), (5, 2)]
    rows = [row_bytes(draw([0] * 3, 20, 0.0, *key), k)[1] for key in keys for k in range(3)]
    assert len(set(rows)) == 9


@given(bases_of, st.sampled_from([0, 7]), seeds, generations)
def test_synthetic_days_are_made_of_records_of_their_floor(bases, magnitude, seed, generation):
    target = draw(bases, magnitude, 1.0, seed, generation)
    check_setting(target, bases)
    for k, i in enumerate(bases):
        own = [task for j in range(4) if FLOOR[j] == FLOOR[i] for task in tasks_of(SOURCE, j)]
        trips = {(*task[:3], *task[4:6]) for task in own}
        expiries, arrivals = {task[3] for task in own}, {task[6] for task in own}
        for task in tasks_of(target, k):
            assert (*task[:3], *task[4:6]) in trips
            assert task[3] in expiries
            if magnitude == 0:
                assert task[6] in arrivals
            else:
                assert any(abs(task[6] - arrival) <= magnitude for arrival in arrivals)


def test_synthetic_days_mix_all_tasks_of_the_floor():
    """Each of the 19 tasks gives its trip about as often as the others, and trip, time and expiry differ."""
    trips, same = Counter(), 0
    for generation in range(60):
        target = draw([0, 3], 0, 1.0, 2, generation)
        for k in range(2):
            for task in tasks_of(target, k):
                trips[task[0]] += 1
                old = next(o for j in range(4) for o in tasks_of(SOURCE, j) if o[0] == task[0])
                same += task[3] == old[3] and task[6] == old[6]
    assert len(trips) == 9 + 4 + 6
    n = trips.total()
    assert n == 60 * (9 + 6)
    assert max(trips.values()) < 3.0 * n / 19 and min(trips.values()) > n / 19 / 3.0
    assert same < 0.1 * n


def test_synthetic_days_stay_in_their_part_of_the_floor():
    floor = parts_floor()
    instances = [
        World(floor, [make_task(f"{pair}{k}", *pair, k, 50) for k in range(5)], [0]).instance()
        for pair in ("AB", "XY", "BA", "YX")
    ]
    source = build_problem(instances)
    target = allocate_variants(source, 4)
    drawn = set()
    for generation in range(20):
        key = np.empty(4, np.uint32)
        draw_records(source, target, np.arange(4), 0, 1.0, 2, generation, key)
        for k in range(4):
            sets = [tuple(sorted(ends)) for ends in target.ends[k, :5].tolist()]
            assert set(sets) == {((1, 2), (3, 4))[k % 2]}
            drawn |= {(k, tuple(ends)) for ends in target.ends[k, :5].tolist()}
    assert len(drawn) == 8  # of both records of its part


def test_so_many_days_are_synthetic_as_was_asked():
    n = 300
    target = draw([1] * n, 0, 0.3, 4, 0)
    copies = sum(row_bytes(target, k) == row_bytes(SOURCE, 1) for k in range(n))
    assert abs(copies / n - 0.7) < 0.1


# What the members of a generation are dealt


def deal(generation, **options):
    given = {"population": 6, "sampler": "uniform", "hidden": (2,), "slots": "pool", **options}
    config, workers = Config(**given), Workers(1)
    form = make_parametrisation(INSTANCES, config, workers)
    workers.close()
    sampler = make_sampler(config.sampler, len(INSTANCES), 9)
    return TrainingRecords(form.problem, config).assign(sampler, Noise(9, generation, 6, False))


def check_variants(dealt, bases, generation):
    expected = draw(bases, 5, 0.0, 9, generation)
    for k in range(len(bases)):
        assert row_bytes(dealt.problem, k) == row_bytes(expected, k)


def test_members_share_their_records():
    """Above 1 a member, all members play the same ones, and the next generation goes on with the next."""
    dealt = deal(1, records_per_member=3)
    assert dealt.rows.tolist() == dealt.records.tolist() == [[3, 0, 1]] * 6
    assert dealt.problem.record.shape[0] == 4
    varied = deal(1, records_per_member=3, perturb=5)
    assert varied.records.tolist() == dealt.records.tolist()
    assert varied.rows.tolist() == [[0, 1, 2]] * 6
    check_variants(varied, [3, 0, 1], 1)


def test_a_record_a_member_is_dealt_in_one_variant():
    """The paper's way of dealing: members of a record play the same variant of it."""
    plain, varied = deal(2), deal(2, perturb=5)
    assert plain.rows.tolist() == plain.records.tolist() == [[0], [1], [2], [3], [0], [1]]
    assert varied.rows.tolist() == varied.records.tolist() == plain.rows.tolist()
    check_variants(varied, [0, 1, 2, 3], 2)
