"""A share of the fuzzer's cases, and arbitrary layouts and records built part by part."""

import sys

import numba
import pytest
from fuzz import (
    FLOOR,
    KINDS,
    check_refusal,
    check_samples,
    fill_folder,
    make_samples,
    play,
    run_case,
    run_main,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from acerl_np import InputError, Instance, Layout

JIT = not numba.config.DISABLE_JIT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="cases are timed by a signal"),
    pytest.mark.skipif(not JIT, reason="thousands of episodes are played with compiled kernels"),
]


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return make_samples(tmp_path_factory.mktemp("samples"))


def test_the_samples_are_accepted(samples, tmp_path):
    check_samples(samples, tmp_path)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_mutated_inputs_work_or_are_refused_in_one_line(kind, samples, tmp_path):
    counts = dict.fromkeys(("accepted", "refused", "finding"), 0)
    n = max(60, kind.cases * settings.default.max_examples // 100)
    for number in range(n):
        result = run_case(kind, number, 0, tmp_path, samples)
        if result.outcome == "finding":
            pytest.fail(
                f"python tests/fuzz.py --only {kind.name}:{number}: {result.reason}\n{result.trace}"
            )
        counts[result.outcome] += 1
    # Mutations that are all refused, or all accepted, would find nothing.
    assert min(counts["accepted"], counts["refused"]) > n / 50


def test_names_of_files_that_are_not_text(samples, tmp_path, monkeypatch):
    fill_folder(tmp_path / "case", samples)
    monkeypatch.chdir(tmp_path / "case")
    odd, small = "\udcff", ["--trials", "1", "--threads", "1"]
    perturb = ["records", "perturb", f"{odd}.csv", "--magnitude", "3", "--out", odd]
    status, out, err = run_main(perturb)
    assert (status, out, err) == (0, f"{odd}/%udcff-n3.csv\n", "")
    words = ["evaluate", f"{odd}.npz", "--tasks", f"{odd}.csv", *small, "--trials-csv", "all.csv"]
    status, out, err = run_main(words)
    assert status == 0, err
    assert (tmp_path / "case" / "all.csv").read_text().splitlines()[1].startswith("\\udcff.npz,")
    sizes = ["--generations", "1", "--population", "2", "--hidden", "2"]
    status, out, err = run_main(["train", f"{odd}.csv", *small, *sizes, "--out", odd])
    assert status == 0, err


# Parts that are mostly right, so that many layouts and records are accepted

names = st.sampled_from("ABCDE") | st.text(max_size=3)
numbers = (
    st.sampled_from([0, -0.0, 1, 0.5, 2.5, 1e9, -1, 1e-12, 1e-6, 10**400])
    | st.floats()
    | st.integers(0, 100)
)
few = st.integers(0, 40).map(lambda k: k / 2)
anything = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def one_in_ten(usual, odd):
    return st.integers(0, 9).flatmap(lambda k: odd if k == 9 else usual)


def part(required, optional):
    return one_in_ten(st.fixed_dictionaries(required, optional=optional), anything)


sites = st.lists(st.sampled_from("ABCDE"), min_size=2, max_size=5, unique=True).flatmap(
    lambda ids: st.tuples(
        *(
            part({"id": st.just(name), "x": one_in_ten(few, numbers), "y": few}, {"kind": names})
            for name in ids
        )
    ).map(list)
)
edges = st.lists(
    part({"a": names, "b": names}, {"length": one_in_ten(few, numbers), "one_way": st.booleans()}),
    max_size=8,
)
breakdowns = st.lists(part({"time": few, "repair_time": few | numbers}, {}), max_size=3)
models = part(
    {"mean_time_between_failures": st.sampled_from([1, 30, 1e9]), "mean_time_to_repair": few}, {}
)
vehicles = st.lists(
    part(
        {"id": st.integers(0, 99).map(str), "start": st.sampled_from("ABCDE")},
        {
            "speed": one_in_ten(few, numbers),
            "capacity": few,
            "breakdowns": breakdowns,
            "random_breakdowns": models,
        },
    ),
    max_size=3,
)
layouts = st.fixed_dictionaries(
    {"format": st.just(1), "sites": sites, "edges": edges, "vehicles": vehicles},
    optional={
        "name": names,
        "task_slots": one_in_ten(st.integers(1, 5), anything),
        "truncate_distances": st.booleans(),
        "routes": st.lists(st.lists(names, max_size=4), max_size=2),
        "scaling": anything,
    },
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "task": st.integers(0, 99).map("t{}".format) | names,
            "pickup": names,
            "delivery": names,
            "arrival_time": one_in_ten(few, anything),
            "expiry_time": one_in_ten(few, numbers),
        },
        optional={"handling_time": few, "demand": one_in_ten(st.sampled_from([0, 1]), numbers)},
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(layouts | st.builds(lambda: FLOOR), rows)
def test_any_layout_and_record_are_played_or_refused(data, tasks):
    try:
        layout = Layout.from_dict(data)
        instance = Instance.from_rows("week", layout, tasks)
    except InputError as error:
        check_refusal(error)
        return
    assert Layout.from_dict(layout.to_dict()).to_dict() == layout.to_dict()
    again = Instance.from_rows("again", layout, instance.rows())
    assert again.content_hash == instance.content_hash
    play(instance)
