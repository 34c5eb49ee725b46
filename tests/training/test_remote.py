"""One training split over workers: the same bytes for any number and kind of them."""

import os
import pickle
import signal
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest

import acerl_np
from acerl_np.kernels.state import Outcome
from acerl_np.support.errors import WorkerError
from acerl_np.support.fingerprint import own_fingerprint
from acerl_np.support.processes import ProcessTeam
from acerl_np.support.team import run_test, work
from acerl_np.training import remote

pytestmark = pytest.mark.filterwarnings("ignore:a generation takes")

SUITE = acerl_np.load_suite("dmh-train")[:3]
CONFIGS = {
    "network": {"population": 14, "hidden": (4,), "generations": 3, "curve_every": 2},
    "antithetic": {"population": 14, "hidden": (4,), "generations": 3, "antithetic": True},
    "perturbed": {"population": 8, "hidden": (4,), "generations": 3, "perturb": 20},
    "common": {"population": 8, "hidden": (4,), "generations": 2, "records_per_member": 2},
}


def make_config(name):
    if name == "index":
        return acerl_np.Config.preset("best", decisions=4_000, records_per_member=2)
    return acerl_np.Config(**CONFIGS[name])


def train(name, executor=None, seed=5):
    trainer = acerl_np.ACERL(SUITE, make_config(name), seed=seed, executor=executor)
    trainer.run()
    return trainer


def bytes_of(trainer):
    history = [(item.return_mean, item.cost_mean, item.counts) for item in trainer.history]
    curve = [point.makespan.tolist() for point in trainer.curve]
    return trainer.policy.theta.tobytes(), trainer.search.mean.tobytes(), history, curve


@pytest.fixture(scope="module")
def processes():
    team = ProcessTeam(2, time_limit=300.0)
    yield team
    team.close()


@pytest.mark.parametrize("name", [*CONFIGS, "index"])
def test_the_same_bytes_on_any_workers(name, processes):
    alone = bytes_of(train(name))
    assert bytes_of(train(name, processes)) == alone
    with ThreadPoolExecutor(3) as threads:
        assert bytes_of(train(name, threads)) == alone
    with ThreadPoolExecutor(1) as threads:
        assert bytes_of(train(name, threads)) == alone


def test_a_checkpoint_goes_on_with_other_workers(processes, tmp_path):
    alone = bytes_of(train("network"))
    trainer = acerl_np.ACERL(SUITE, make_config("network"), seed=5, executor=processes)
    trainer.step()
    trainer.save(tmp_path / "run.npz")
    resumed = acerl_np.ACERL.resume(tmp_path / "run.npz", executor=processes)
    resumed.run()
    assert bytes_of(resumed) == alone


def test_killed_workers_change_nothing(processes):
    trainer = acerl_np.ACERL(SUITE, make_config("network"), seed=5, executor=processes)
    killed = set()

    def kill():
        if not killed and processes.pids:
            killed.update(processes.pids)
            for pid in killed:  # so that none can do the rest
                os.kill(pid, signal.SIGKILL)

    processes.watch = kill
    trainer.run()
    processes.watch = None
    assert killed and not killed & processes.pids
    assert bytes_of(trainer) == bytes_of(train("network"))


class Answering(Executor):
    """A worker that changes what it computed before it answers."""

    def __init__(self, change):
        self.change = change

    def submit(self, function, /, *arguments, **options):
        future = Future()
        report = function(*arguments, **options)
        future.set_result(report._replace(**self.change(report)))
        return future


def change_outcome(**parts):
    """A change of the outcome that a worker reports."""

    def change(report):
        outcome = report.value.outcome
        changed = {name: np.full_like(getattr(outcome, name), x) for name, x in parts.items()}
        return {"value": report.value._replace(outcome=outcome._replace(**changed))}

    return change


def shorten(report):
    outcome = Outcome(*(x[:-1] for x in report.value.outcome))
    return {"value": report.value._replace(outcome=outcome)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_outcome(makespan=np.nan), "a worker returned nan for episodes that end"),
        (change_outcome(makespan=np.nan, tardiness=np.nan), "nan for episodes that end"),
        (change_outcome(tardiness=np.nan), "outcomes that no episode has"),
        (change_outcome(makespan=-1.0), "outcomes that no episode has"),
        (shorten, "no outcome of"),
        (lambda r: {"value": "members"}, "other records or options"),
        (lambda r: {"value": r.value._replace(key="other")}, "other records or options"),
        (lambda r: {"value": None}, "does not keep what it is sent"),
        (
            lambda r: {"fingerprint": {**r.fingerprint, "host": "afar"}, "test": "other"},
            "a worker on afar has another result of the test member: read other",
        ),
    ],
)
def test_wrong_answers_stop_the_training(change, message, tmp_path):
    trainer = acerl_np.ACERL(SUITE, make_config("network"), executor=Answering(change))
    with pytest.raises(WorkerError, match=message) as caught:
        trainer.run()
    assert "\n" not in str(caught.value)
    assert trainer.generation == 0
    trainer.save(tmp_path / "run.npz")  # and can be saved where it stood
    resumed = acerl_np.ACERL.resume(tmp_path / "run.npz")
    resumed.run()
    assert bytes_of(resumed) == bytes_of(train("network", seed=0))


def test_a_worker_forgets_and_is_sent_the_records_again():
    executor = Answering(lambda report: {})  # in this thread
    trainer = acerl_np.ACERL(SUITE, make_config("network"), seed=5, executor=executor)
    trainer.step()
    remote._KEPT.places.clear()
    trainer.run()
    assert bytes_of(trainer) == bytes_of(train("network"))
    for k in range(2 * remote.KEPT):
        remote.play_test_member.__wrapped__()
        config = acerl_np.Config(population=2, hidden=(2,), generations=1, p_f=0.1 + k / 100)
        acerl_np.ACERL(SUITE, config, executor=executor).run()
    assert len(remote._KEPT.places) == remote.KEPT


def test_a_split_that_does_not_pay_is_said_once():
    config = acerl_np.Config(population=2, hidden=(2,), generations=12)
    trainer = acerl_np.ACERL(SUITE, config, executor=Answering(lambda report: {}))
    with pytest.warns(RuntimeWarning, match="its split over workers costs more") as caught:
        trainer.run()
    assert len(caught) == 1


def test_reports_carry_the_test_member():
    task = pickle.dumps((len, "four", remote.play_test_member))
    report = work(task, own_fingerprint())
    assert report.value == 4
    assert len(report.test) == 12 and report.test == run_test(remote.play_test_member)


def test_records_that_change_on_a_worker_are_refused(monkeypatch):
    class Changing(remote.Place):
        def __init__(self, world):
            first = pickle.loads(pickle.dumps(world.instances[0]))
            object.__setattr__(first, "arrival", first.arrival + 1.0)
            super().__init__(world._replace(instances=(first, *world.instances[1:])))

    run_test(remote.play_test_member)  # computed once, before that
    monkeypatch.setattr(remote, "Place", Changing)
    remote._KEPT.places.clear()
    trainer = acerl_np.ACERL(SUITE, make_config("network"), executor=Answering(lambda report: {}))
    with pytest.raises(WorkerError, match="a worker has other records or options"):
        trainer.run()


def test_the_records_used_last_are_kept():
    executor = Answering(lambda report: {})
    configs = [acerl_np.Config(population=2, hidden=(2,), p_f=0.1 + k / 100) for k in range(5)]
    trainers = [acerl_np.ACERL(SUITE, config, executor=executor) for config in configs]
    remote._KEPT.places.clear()
    for k in (0, 1, 2, 3, 0, 4):
        trainers[k].step()
    assert trainers[0]._split._key in remote._KEPT.places
    assert trainers[1]._split._key not in remote._KEPT.places


def test_episodes_that_do_not_end_are_believed_when_they_are_so():
    config = acerl_np.Config(population=8, hidden=(4,), generations=2, horizon=1500.0)
    runs = []
    for executor in (None, Answering(lambda report: {})):
        trainer = acerl_np.ACERL(SUITE, config, seed=5, executor=executor)
        trainer.run()
        runs.append(trainer)
    assert sum(item.failed for item in runs[0].history) > 0
    assert bytes_of(runs[0])[:2] == bytes_of(runs[1])[:2]
