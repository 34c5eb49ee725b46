"""The threads that share work."""

import os
import signal
import threading
import time

import pytest

from acerl_np.support.workers import Workers, count_cores


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_item_is_taken_once(threads):
    workers = Workers(threads)
    for n in (0, 1, 2, 50):
        taken = []
        workers.run(taken.append, range(n))
        assert sorted(taken) == list(range(n))
    barrier = threading.Barrier(threads, timeout=60)
    workers.run(lambda _: barrier.wait(), range(threads))  # passes only if so many wait at a time
    workers.close()
    workers.close()
    assert Workers().threads == count_cores() >= 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", ["caller", "helper"])
def test_an_error_reaches_the_caller_and_the_rest_is_dropped(threads, place):
    caller = threading.get_ident()
    workers = Workers(threads)
    both = threading.Barrier(threads, timeout=60)
    taken = []

    def work(item):
        taken.append(item)
        both.wait()  # each thread has one item
        if threads == 1 or (threading.get_ident() == caller) == (place == "caller"):
            raise KeyError(item)
        while len(taken) < 2:  # the other thread goes on only after the error
            pass

    with pytest.raises(KeyError):
        workers.run(work, range(2))
    taken.clear()
    with pytest.raises(ZeroDivisionError):
        Workers(1).run(lambda item: taken.append(1 // item), [1, 0, 1])
    assert taken == [1]
    workers.run(taken.append, [5, 6])
    assert sorted(taken) == [1, 5, 6]
    workers.close()


def test_ctrl_c_while_the_caller_waits_ends_the_helpers():
    """They look at `failed` within long pieces; what is not begun is dropped."""
    workers, caller = Workers(2), threading.get_ident()
    ended = []

    def work(item):
        if threading.get_ident() == caller:
            while not waits.wait(0.01):
                pass
            return
        waits.set()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        deadline = time.monotonic() + 30
        while not workers.failed and time.monotonic() < deadline:
            time.sleep(0.01)
        ended.append(workers.failed)

    waits = threading.Event()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    with pytest.raises(KeyboardInterrupt):
        workers.run(work, range(2))
    assert ended == [True]
    workers.close()
