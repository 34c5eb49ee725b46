"""A share of the fuzzer's cases."""

import sys

import pytest
from fuzz import KINDS, check_samples, fill_folder, limited_memory, make_samples, run_case, run_main
from hypothesis import settings
from machine import needs_jit

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="cases are timed by a signal"),
    needs_jit,
    pytest.mark.usefixtures("few_lookaheads"),
]


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    return make_samples(tmp_path_factory.mktemp("samples"))


def test_the_samples_are_accepted(samples, tmp_path):
    check_samples(samples, tmp_path)


@pytest.mark.parametrize("times", [1, pytest.param(35, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_mutated_inputs_work_or_are_refused_in_one_line(kind, times, samples, tmp_path):
    counts = dict.fromkeys(("accepted", "refused", "finding"), 0)
    n = max(60, times * kind.cases * settings.default.max_examples // 100)
    with limited_memory():
        for number in range(n):
            result = run_case(kind, number, tmp_path, samples)
            if result.outcome == "finding":
                pytest.fail(f"case {number}: {result.reason}\n{result.trace}")
            counts[result.outcome] += 1
    # Mutations that are all refused, or all accepted, would find nothing.
    assert min(counts["accepted"], counts["refused"]) > n / 50


def test_names_of_files_that_are_not_text(samples, tmp_path, monkeypatch):
    fill_folder(tmp_path / "case", samples)
    monkeypatch.chdir(tmp_path / "case")
    odd, small = "\udcff", ["--trials", "1", "--threads", "1"]
    perturb = ["records", "make", f"{odd}.csv", "--magnitude", "3", "--out", odd]
    status, out, err = run_main(perturb)
    assert (status, out, err) == (0, f"{odd}/%udcff-n3.csv\n", "")
    words = ["evaluate", f"{odd}.npz", "--on", f"{odd}.csv", *small, "--out", "all"]
    status, out, err = run_main(words)
    assert status == 0, err
    trials = (tmp_path / "case" / "all" / "trials.csv").read_text()
    assert trials.splitlines()[1].startswith("\\udcff.npz,")
    sizes = ["--generations", "1", "--set", "population=2", "--set", "hidden=2"]
    status, out, err = run_main(["train", f"{odd}.csv", *small, *sizes, "--out", odd])
    assert status == 0, err
