"""What belongs to one thread at a time refuses a second one; copies are free."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from trainings import interrupt_at, list_lines

import acerl_np
from acerl_np import ACERL, Config, Dispatcher, SharingError, Simulator, evolution
from acerl_np.support import sharing
from acerl_np.support.sharing import Exclusive, exclusive
from studies.rivals import RivalTrainer


def test_a_second_thread_is_refused_and_not_kept_waiting():
    use = Exclusive("thing")
    raised = []

    def enter():
        try:
            with use.acquire():
                raised.append(None)
        except SharingError as error:
            raised.append(str(error))

    with use.acquire():
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(10)
        for one in (copy.deepcopy(use), pickle.loads(pickle.dumps(use))):
            with one.acquire():
                assert one.name == "thing"
    enter()
    for _ in range(2):  # an error leaves it free
        with pytest.raises(ValueError, match="x"), use.acquire():
            raise ValueError("x")
    assert raised == ["thing: in use by another thread; expected one thread at a time", None]


def test_ctrl_c_on_any_line_leaves_it_free():
    class Thing:
        _use = Exclusive("thing")

        @exclusive
        def look(self):
            return 5

    thing, rooms = Thing(), (__file__, sharing.__file__)
    for line in list_lines(thing.look, rooms):
        interrupt_at(line, thing.look, rooms)
        assert thing.look() == 5, line


def test_a_simulator_in_use_is_refused_and_unchanged():
    simulator = Simulator(acerl_np.load_instance("DMH-01"))

    def find_bytes():
        return [array.tobytes() for array in simulator.state], pickle.dumps(simulator._streams)

    for call in (
        *(partial(simulator.step, np.zeros(1, int)), simulator.reset),
        *(partial(simulator.assign, [0], [0]), partial(simulator.reset, seed=1)),
        partial(simulator.restart, [0], seeds=[3]),
    ):
        before = find_bytes()
        with (
            simulator._use.acquire(),  # as if another thread were at a step
            pytest.raises(SharingError, match="simulator: in use by another thread"),
        ):
            call()
        assert find_bytes() == before
        call()


SMALL = {"generations": 9, "population": 4, "hidden": (4,), "curve_every": 0, "decisions": None}
TRAINERS = {
    "acerl": lambda: ACERL(acerl_np.load_instance("DMH-01"), Config(**SMALL), threads=1),
    "sac": lambda: RivalTrainer(
        "sac", acerl_np.load_instance("DMH-01"), settings={"look_every": 100}
    ),
    "ppo": lambda: RivalTrainer("ppo", acerl_np.load_instance("DMH-01"), settings={"collect": 100}),
    "evolution": lambda: evolution.Evolution([0.0], sigma=1.0, adapt="sigma"),
}


STEPS = {"step": (), "run": (), "save": ("run.npz",), "write_curves": ("curves.csv",)}
ASKED = {"ask": (), "tell": ([2.0],), "inject": ([[1.0]],), "restart": (), "set_state": ({},)}


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_trainer_in_use_is_refused_and_unchanged(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer, other = TRAINERS[kind](), TRAINERS[kind]()
    with trainer._use.acquire():  # as if another thread were at a step
        for name, arguments in (ASKED if kind == "evolution" else STEPS).items():
            with pytest.raises(SharingError, match="in use by another thread"):
                getattr(trainer, name)(*arguments)
        copied = copy.copy(trainer)
    assert not list(tmp_path.iterdir())

    def advance(one):
        if kind == "evolution":
            one.tell(-(one.ask()[0][:, 0] ** 2))
            return one.mean.tolist()
        one.step(), one.step()
        return one.policy.theta.tolist()

    assert advance(trainer) == advance(copied) == advance(other)


def test_two_threads_in_one_trainer_are_seen():
    trainer, raised = TRAINERS["acerl"](), []

    def meet():
        with ThreadPoolExecutor(1) as other:
            raised.append(other.submit(trainer.step).exception())

    trainer.watch = meet
    trainer.step()
    assert raised and all(isinstance(error, SharingError) for error in raised)
    assert trainer.generation == len(trainer.history) == 1


def test_a_dispatcher_in_use_is_refused():
    dispatcher = Dispatcher(acerl_np.load_layout("dmh"), "STD")
    calls = dict.fromkeys(("decide", "observe", "begin_day"), (0.0,))
    with dispatcher._use.acquire():
        for name, arguments in {**calls, "assign": (0.0, "v0", "t"), "feed": (None,)}.items():
            with pytest.raises(SharingError, match="dispatcher: in use by another thread"):
                getattr(dispatcher, name)(*arguments)


@pytest.mark.parametrize("preset", ["paper", "best"])
def test_threads_share_a_policy(preset):
    """It is only read."""
    config = Config.preset(preset, generations=1, population=4, decisions=None)
    instances = acerl_np.load_suite("dmh-train")
    policy = ACERL(instances[:1], config).policy

    def play(instance):
        simulator = Simulator([instance] * 16)
        while not simulator.done.all():
            simulator.assign(*policy.choose(simulator))
        return simulator.makespan.tolist()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(play, instances)) == [play(instance) for instance in instances]
