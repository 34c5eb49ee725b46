"""One training split over workers: the same bytes for any number and kind of them.

That killed workers lose nothing is tested where they are: `support.test_team`.
"""

from concurrent.futures import Executor, Future, ThreadPoolExecutor

import own_rules
import pytest
from trainings import read_state

import acerl_np
from acerl_np.support.errors import WorkerError
from acerl_np.training import remote

pytestmark = pytest.mark.filterwarnings("ignore:a generation takes")

SUITE = acerl_np.load_suite("dmh-train")[:3]
CONFIGS = {
    "network": {"population": 14, "hidden": (4,), "generations": 3, "curve_every": 2},
    "antithetic": {"population": 14, "hidden": (4,), "generations": 3, "antithetic": True},
    "low rank": {"population": 14, "hidden": (4,), "generations": 3, "noise_rank": 2},
    "perturbed": {"population": 8, "hidden": (4,), "generations": 3, "perturb": 20},
    "common": {"population": 8, "hidden": (4,), "generations": 2, "records_per_member": 2},
    "unfinished": {"population": 8, "hidden": (4,), "generations": 2, "horizon": 1500.0},
}


def make_config(name):
    if name not in CONFIGS:
        own = {"features": [own_rules.way, "slack"]} if name == "own feature" else {}
        return acerl_np.Config.preset("best", decisions=4_000, records_per_member=2, **own)
    return acerl_np.Config(**CONFIGS[name])


def start(name, executor=None):
    return acerl_np.ACERL(SUITE, make_config(name), seed=5, executor=executor)


def train(name):
    trainer = start(name)
    trainer.run()
    return trainer


@pytest.mark.parametrize("name", [*CONFIGS, "index", "own feature"])
def test_the_same_bytes_on_any_workers(name, processes, tmp_path):
    path = tmp_path / "run.npz"
    alone = read_state(train(name), path)
    with ThreadPoolExecutor(3) as threads:
        trainer = start(name, threads)
        trainer.step()
        trainer.save(path)
        trainer.run()
    assert read_state(trainer, tmp_path / "other.npz") == alone
    assert (sum(item.failed for item in trainer.history) > 0) == (name == "unfinished")
    # The checkpoint goes on with other workers.
    resumed = acerl_np.ACERL.resume(path, executor=processes)
    resumed.run()
    assert read_state(resumed, path) == alone


class Here(Executor):
    """A worker in this thread, which fails from its second task on if it is told to."""

    def __init__(self, fails=False):
        self.given, self.fails = 0, fails

    def submit(self, function, /, *arguments):
        self.given += 1
        future = Future()
        if self.fails and self.given > 1:
            future.set_exception(ZeroDivisionError("broken"))
        else:
            future.set_result(function(*arguments))
        return future


def test_a_training_whose_workers_fail_can_be_saved_and_goes_on(tmp_path):
    trainer = start("network", Here(fails=True))
    with pytest.raises(WorkerError, match="a task has failed: ZeroDivisionError: broken") as caught:
        trainer.run()
    assert "\n" not in str(caught.value)
    assert trainer.generation == 0
    path = tmp_path / "run.npz"
    trainer.save(path)
    resumed = acerl_np.ACERL.resume(path)
    resumed.run()
    assert read_state(resumed, path) == read_state(train("network"), path)


def test_a_worker_that_has_forgotten_a_training_makes_its_tables_anew(tmp_path):
    trainer = start("network", Here())
    trainer.step()
    for k in range(2 * remote.KEPT):
        config = acerl_np.Config(population=2, hidden=(2,), generations=1, p_f=0.1 + k / 100)
        acerl_np.ACERL(SUITE, config, executor=Here()).run()
    assert remote._KEPT.find.cache_info().currsize == remote.KEPT
    trainer.run()
    path = tmp_path / "run.npz"
    assert read_state(trainer, path) == read_state(train("network"), path)


def test_a_split_that_does_not_pay_is_said_once():
    config = acerl_np.Config(population=2, hidden=(2,), generations=12)
    trainer = acerl_np.ACERL(SUITE, config, executor=Here())
    with pytest.warns(RuntimeWarning, match="its split over workers costs more") as caught:
        trainer.run()
    assert len(caught) == 1 and caught[0].filename == __file__
