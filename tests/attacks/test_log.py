"""What may become of a log and its state: cut, changed, moved away, a full disk, a process that is killed."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from acerl_np import Dispatcher, load_layout
from acerl_np.live import events as E
from acerl_np.live import log as log_module
from acerl_np.live.daybook import read_audit
from acerl_np.support.errors import RecordError, StorageError

LAYOUT = load_layout("dmh").with_breakdowns({})
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def arrive(number):
    return E.TaskArrived(float(number), f"t{number}", "st1", "st5", 400.0)


def tell(own, *numbers):
    for number in numbers:
        own.feed(arrive(number), number=number)
        own.decide(float(number))


def seen(own):
    return own.under_way, own.waiting, own.last_number, own.sites, own.tasks(), own.time


@pytest.fixture
def plant(tmp_path):
    """A log of nine events, the first six of which a state knows, and what is known at last."""
    with Dispatcher(LAYOUT, "nearest", audit=tmp_path / "day.jsonl") as own:
        tell(own, *range(1, 7))
        own.save(tmp_path / "live.npz")
        tell(own, 7, 8, 9)
        return tmp_path / "day.jsonl", tmp_path / "live.npz", seen(own)


def recover(log, state=None):
    return Dispatcher.recover(LAYOUT, "nearest", audit=log, state=state)


def test_what_a_state_knows_of_its_log_is_not_read(tmp_path):
    """Nothing may be wrong with it there but its last bytes, by which the place is known again."""
    log, state = tmp_path / "day.jsonl", tmp_path / "live.npz"
    with Dispatcher(LAYOUT, "nearest", audit=log) as own:
        tell(own, *range(1, 60))
        own.save(state)
        place = log.stat().st_size
        tell(own, 60)
        expected = seen(own)
    data = log.read_bytes()
    assert place > 2 * log_module.N_COMPARED
    for spoilt in (data.index(b"\n") + 1, data.rindex(b"\n", 0, place - 1) + 1):
        log.write_bytes(data[:spoilt] + b"[" + data[spoilt + 1 :])
        if place - spoilt > log_module.N_COMPARED:
            with recover(log, state) as own:
                assert seen(own) == expected
        else:
            with pytest.raises(RecordError, match="not JSON"):
                recover(log, state)
        log.write_bytes(data[:spoilt] + b"[" + data[spoilt + 1 :])
        with pytest.raises(RecordError, match="not JSON"):
            recover(log)


@pytest.mark.filterwarnings("ignore::acerl_np.LogWarning")
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.7, 0.9])
def test_a_log_that_was_cut_goes_on_from_its_state(plant, share):
    """As after a power cut: what the state knows is known, whatever the log lacks."""
    log, state, _ = plant
    data = log.read_bytes()
    log.write_bytes(data[: int(share * len(data))])
    with recover(log, state) as own:
        first = own.last_number
        assert first >= 6 and own.check() == []
        tell(own, *range(first + 1, 10))
        expected = seen(own)
    with recover(log, state) as own:
        assert seen(own) == expected and own.last_number == 9


def test_a_state_of_another_log_is_refused(tmp_path):
    logs, state = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "a.npz"
    for log, numbers in zip(logs, (range(3), range(10, 20)), strict=True):
        with Dispatcher(LAYOUT, "nearest", audit=log) as own:
            tell(own, *numbers)
            if not state.exists():
                own.save(state)
    before = logs[1].read_bytes()
    with pytest.raises(RecordError, match="expected the log of the state"):
        Dispatcher.recover(LAYOUT, "nearest", audit=logs[1], state=state)
    assert logs[1].read_bytes() == before
    with Dispatcher.recover(LAYOUT, "nearest", audit=tmp_path / "new.jsonl", state=state) as own:
        assert own.last_number == 2  # a new one may go on from it
        tell(own, 3, 4)
    own = Dispatcher.recover(LAYOUT, "nearest", audit=tmp_path / "new.jsonl", state=state)
    assert own.last_number == 4
    own.close()


def test_a_log_that_is_moved_away_is_an_error_and_goes_on_once_it_is_back(plant):
    log, state, _ = plant
    away = log.with_name("away.jsonl")
    with recover(log, state) as own:
        log.rename(away)
        for _ in range(2):
            with pytest.raises(StorageError, match=r"day\.jsonl: cannot write: it was moved or"):
                own.feed(arrive(10), number=10)
        with pytest.raises(StorageError, match="moved or deleted"):
            own.save(state)
        log.write_text("")  # another file of its name
        with pytest.raises(StorageError, match="moved or deleted"):
            own.decide(10.0)
        away.replace(log)
        own.decide(11.0)
        expected = seen(own)
    with recover(log, state) as own:
        assert seen(own)[:3] == expected[:3]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has one")
def test_a_full_device_takes_no_log():
    with pytest.raises(StorageError, match="no space left"):
        Dispatcher(LAYOUT, "nearest", audit="/dev/full")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a limit of one process")
def test_a_full_disk_loses_nothing(plant):
    """No byte more may be written in the midst of a line; room comes back later."""
    log, state, _ = plant

    def fill():
        limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        own, refused = recover(log, state), 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 300, hard))
        for number in range(10, 14):
            try:
                tell(own, number)
            except StorageError:
                refused += 1
        try:
            own.rotate(state, log.with_name("old.jsonl"))
        except StorageError:
            refused += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        own.decide(14.0)
        print(json.dumps([refused, own.last_number, own.under_way, list(own.waiting)]), flush=True)
        os.kill(os.getpid(), 9)

    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(write, 1)
        sys.stdout = os.fdopen(1, "w")
        try:
            fill()
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read) as pipe:
        refused, last, under_way, waiting = json.loads(pipe.read())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -9
    assert refused >= 2 and last == 13 and not log.with_name("old.jsonl").exists()
    for paths in (None, state):
        with recover(log, paths) as own:
            assert (own.under_way, [*own.waiting]) == (under_way, waiting)
            assert own.last_number == last


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="it may write everywhere")
def test_a_folder_that_nobody_may_write_stops_saving_and_rotating_alone(plant):
    log, state, _ = plant
    with recover(log, state) as own:
        log.parent.chmod(0o500)
        try:
            for call in (lambda: own.save(state), lambda: own.rotate(state, log.with_name("old"))):
                with pytest.raises(StorageError, match="permission denied"):
                    call()
            tell(own, 10)
        finally:
            log.parent.chmod(0o700)


def test_a_log_of_more_than_64_megabytes_is_read(plant):
    log, _, expected = plant
    rows = log.read_bytes().splitlines()
    wide = [json.dumps({**json.loads(row), "pad": "x" * 6_000_000}).encode() for row in rows]
    log.write_bytes(b"\n".join(wide) + b"\n")
    assert log.stat().st_size > 70e6
    assert read_audit(log, LAYOUT).instance.n_tasks == len(expected[0])
    with recover(log) as own:
        assert seen(own) == expected


@pytest.mark.slow
@pytest.mark.parametrize("words", ["--quick", "--tasks 150 --kills 40 --saves"])
def test_a_day_survives_kills_with_its_log_alone_or_a_state_beside_it(words):
    script = [sys.executable, BENCHMARKS / "kill_live.py", *words.split()]
    done = subprocess.run(script, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 carried twice" in done.stdout
