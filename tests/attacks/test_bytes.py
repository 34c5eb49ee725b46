"""Whatever bytes come to the standard input: each line is answered once, and the end of input ends it."""

import json
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acerl_np
from acerl_np.live.service import Service
from acerl_np.live.stdio import CHUNK, serve_lines, split_lines
from acerl_np.live.wire import MAX_MESSAGE
from acerl_np.live.worker import Worker
from acerl_np.support.errors import StorageError, WorkerError

LAYOUT = acerl_np.load_layout("dmh").with_breakdowns({})
STATE = b'{"kind": "State", "number": 1}'


def feed(*chunks, service=None):
    """Return the answers to what a standard input gives."""
    told, left = [], iter(chunks)
    worker = Worker(service or Service(acerl_np.Dispatcher(LAYOUT, "FCFS")))
    serve_lines(worker, lambda most: next(left, b""), told.append, lambda: False)
    return [json.loads(line) for line in "".join(told).splitlines()]


NAMED = b'{"kind": "TaskCancelled", "time": 1, "task": "%b"}'
LINES = [
    (NAMED % "Pal\u00e4tte".encode("cp1252"), "no UTF-8"),
    (NAMED % b"\xff\xfe", "no UTF-8"),
    (NAMED % b"\xed\xa0\x80", "no UTF-8"),  # half of a pair
    (b"\xef\xbb\xbf" + STATE, "expected a JSON object"),
    (STATE.decode().encode("utf-16-le"), "message: "),
    (b"\0" * 50, "message: read"),
    (b"\x80" * 50, "no UTF-8"),
    (NAMED % "\u2028\x85\x0b".encode(), "message: read"),
    (NAMED % "\u2028 \u2029".encode(), "is unknown"),
    (b'{"kind": "Decide", "time": 1' + b"0" * 5000 + b"}", "message: "),
    (b'{"kind": "Acknowledge", "number": 1' + b"0" * 5000 + b"}", "message: "),
    (b" " * (3 * MAX_MESSAGE) + STATE, f"expected at most {MAX_MESSAGE:,}"),
    ("\u00e4".encode() * MAX_MESSAGE, f"expected at most {MAX_MESSAGE:,}"),
]


@pytest.mark.parametrize(("line", "why"), LINES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_that_is_no_message_is_refused_and_the_next_is_answered(line, why, end):
    data = STATE + b"\n" + line + (end and end + STATE)
    chunks = [data[k : k + CHUNK] for k in range(0, len(data), CHUNK)]
    first, ok, refused, *rest = feed(*chunks)
    assert (first["kind"], ok["kind"], refused["kind"]) == ("State", "Ok", "Refused")
    assert why in refused["why"] and len(refused["why"]) < 2000
    assert [x["kind"] for x in rest] == (["State", "Ok"] if end else [])


@given(st.lists(st.one_of(st.binary(max_size=20), st.sampled_from([b"\n", b"\r\n", STATE]))))
def test_any_bytes_in_any_pieces_are_answered_line_by_line(chunks):
    chunks = [x for x in chunks if x]
    answers = [x for x in feed(*chunks) if x["kind"] in ("Ok", "Refused")]
    lines = [x.decode(errors="replace").strip() for x in b"".join(chunks).split(b"\n")]
    assert len(answers) == sum(map(bool, lines))
    oks = sum(line == STATE.decode() for line in lines)
    assert sum(x["kind"] == "Ok" for x in answers) == oks


def test_a_line_without_an_end_is_never_held_whole():
    n, sizes = 300, []

    def read(most):
        sizes.append(most)
        return b"x" * most if len(sizes) <= n else b""

    tracemalloc.start()
    found = [line for lines in split_lines(read) for line in lines]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * MAX_MESSAGE
    assert len(found) == 1 and len(found[0]) == MAX_MESSAGE + 1 < n * CHUNK


def test_what_cannot_be_read_or_written_ends_it():
    with pytest.raises(OSError, match="gone"):
        worker = Worker(Service(acerl_np.Dispatcher(LAYOUT, "FCFS")))
        serve_lines(worker, lambda most: exec("raise OSError('gone')"), print, lambda: False)

    def close(text):
        raise BrokenPipeError

    worker, left = Worker(Service(acerl_np.Dispatcher(LAYOUT, "FCFS"))), iter([STATE + b"\n"])
    serve_lines(worker, lambda most: next(left, b""), close, lambda: False)
    assert isinstance(worker.error, BrokenPipeError)


def test_it_ends_though_nobody_reads_its_answers(monkeypatch):
    monkeypatch.setattr("acerl_np.live.worker.PATIENCE", 0.2)
    worker, left = Worker(Service(acerl_np.Dispatcher(LAYOUT, "FCFS"))), iter([STATE + b"\n"])
    begun, may_end = threading.Event(), threading.Event()

    def write(text):
        begun.set()
        may_end.wait(30.0)

    with pytest.raises(WorkerError, match="answers"):
        serve_lines(worker, lambda most: next(left, b""), write, begun.is_set)
    may_end.set()
    worker.stop()


def test_a_log_that_cannot_be_written_ends_it_and_the_rest_has_no_answer(monkeypatch):
    service = Service(acerl_np.Dispatcher(LAYOUT, "FCFS"))

    def fail(*_):
        raise StorageError("full")
        yield

    monkeypatch.setattr(service, "_take", fail)
    with pytest.raises(StorageError, match="full"):
        feed(STATE + b"\n" + STATE + b"\n", service=service)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["", "cp1252", "ascii"])
def test_the_process_hears_after_a_byte_that_is_no_letter_and_ends_with_its_input(encoding):
    command = [sys.executable, "-m", "acerl_np", "serve", "nearest", "--layout", "dmh"]
    how = {"env": {**os.environ, "PYTHONIOENCODING": encoding}} if encoding else {}
    data = STATE + b"\n" + LINES[0][0] + b"\n" + STATE
    done = subprocess.run(command, input=data, capture_output=True, timeout=120.0, **how)
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert kinds == ["Ready", "State", "Ok", "Refused", "State", "Ok"] and done.returncode == 0
