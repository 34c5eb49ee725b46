"""Short trainings and evaluations, here or in a child process, and what must be the same of them."""

import copy
import json
import multiprocessing
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from machine import JIT
from tables_and_refusals import change_arrays, list_taken

from acerl_np import ACERL, Config, Instance, Policy, Simulator, evaluate_policy, load_suite
from acerl_np.evaluation.trials import METRICS
from acerl_np.policies.network import initial_parameters
from acerl_np.problem.parts import RandomBreakdowns
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import CheckpointError
from acerl_np.support.files import read_arrays, write_arrays
from acerl_np.training.history import HISTORY_COLUMNS
from studies.rivals import RivalTrainer
from studies.rivals.episodes import HISTORY_COLUMNS as RIVAL_COLUMNS

GENERATIONS = 3 if JIT else 2
RECORDED = Path(__file__).parent / "data" / "dmh-episodes.npz"


def shorten(instance):
    """The first tasks of an instance in quick succession: few decisions, but some choice."""
    rows = [{**row, "arrival_time": row["arrival_time"] / 5} for row in instance.rows()[:8]]
    return Instance.from_rows(instance.name, instance.layout, rows)


def load_instances(n=2):
    instances = load_suite("dmh-train")[:n]
    return instances if JIT else [shorten(instance) for instance in instances]


def make_instances():
    """Few decisions, but some choice; without compilation a smaller network, too."""
    instances = [shorten(instance) for instance in load_suite("dmh-train")[:3]]
    model = RandomBreakdowns(300.0, 60.0)
    layout = instances[2].layout.with_random_breakdowns(model)
    instances[2] = replace(instances[2], layout=layout)
    if JIT:
        return instances
    return [
        Instance.from_rows(one.name, replace(one.layout, task_slots=3), one.rows()[:4])
        for one in instances
    ]


INSTANCES = make_instances()
RECORDS = load_suite("dmh-train")[:2]
CHILD_CONFIG = Config(generations=GENERATIONS, population=12 if JIT else 4, hidden=(17, 4))


def start(config, seed, threads=1, tile=None):
    return ACERL(INSTANCES, config, seed=seed, threads=threads, tile=tile)


def history_without_seconds(trainer):
    return [replace(record, seconds=0.0) for record in trainer.history]


def read_state(trainer, path):
    """All that a checkpoint keeps of a trainer but the seconds, in bytes."""
    trainer.save(path)
    arrays = read_arrays(path, CheckpointError)
    columns = RIVAL_COLUMNS if isinstance(trainer, RivalTrainer) else HISTORY_COLUMNS
    arrays["state.history"] = np.delete(arrays["state.history"], columns.index("seconds"), axis=1)
    return {name: array.tobytes() for name, array in arrays.items()}


def outcome(trainer, folder):
    """All that a run leaves, but for the seconds that it took: checkpoint, policy, history, curve."""
    state = read_state(trainer, folder / "run.npz")
    trainer.policy.save(folder / "policy.npz")
    shown = repr((history_without_seconds(trainer), trainer.curve))
    return state, (folder / "policy.npz").read_bytes(), shown


def find_theta(trainer):
    """The parameters of a trainer's policy, of both if it has two."""
    arrays = trainer.policy.to_arrays()
    return {name: array.tobytes() for name, array in arrays.items() if name.endswith("theta")}


def make_rival(name, seed=2, **how):
    settings = {"hidden": (4,), "look_every": 40, "look_trials": 1, "episodes": 2, "batch": 4}
    settings |= {"capacity": 40} if "sac" in name else {"collect": 20, "repeats": 1}
    return RivalTrainer(name, RECORDS, steps=120, seed=seed, settings=settings, **how)


def go_on(trainer, way, folder, **how):
    """The same trainer again: as its checkpoint has it, or as a copy."""
    if way == "checkpoint":
        trainer.save(folder / "stopped.npz")
        return type(trainer).resume(folder / "stopped.npz", **how)
    return COPIES[way](trainer)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}


def list_differences(a, b):
    """In what two evaluations differ."""
    found = [name for name in ("instances", "decisions") if getattr(a, name) != getattr(b, name)]
    pairs = ((name, getattr(a, name), getattr(b, name)) for name in METRICS)
    return found + [x for x, one, two in pairs if not np.array_equal(one, two, equal_nan=True)]


def same_trials(a, b):
    return not list_differences(a, b)


def check_played(policy, instances, trials=2):
    """Trials are what comes of `choose` and `assign`, side by side, and in copies; return them."""
    played = evaluate_policy(policy, instances, trials=trials, seed=5, greedy=True, threads=1)
    entries = [instance for instance in instances for _ in range(trials)]
    keys = stream_keys(instances, trials, 5)
    simulator = Simulator(entries, policy=policy, breakdown_keys=keys)
    for own in (simulator, *(make_copy(simulator) for make_copy in COPIES.values())):
        is_over = False
        assert not own.done.all(), "a copy shares nothing"
        while not is_over:
            is_over = own.done.all()
            vehicles, tasks = policy.choose(own)
            assert ((vehicles == -1) == own.done).all() and ((tasks == -1) == own.done).all()
            own.assign(vehicles, tasks)
        assert own.makespan.tolist() == played.makespan.ravel().tolist()
        assert own.tardiness.tolist() == played.tardiness.ravel().tolist()
    return played


# Checkpoints with something else in them


def damage(source, path, changes):
    """Write a checkpoint with other arrays."""
    write_arrays(path, change_arrays(read_arrays(source, CheckpointError), changes))


def list_taken_checkpoints(kind, path, cases=()):
    """Changes of a checkpoint, each with words of its line, that a trainer takes, or refuses otherwise."""

    def resume(arrays):
        write_arrays(path.with_name("damaged.npz"), arrays)
        kind.resume(path.with_name("damaged.npz"))

    arrays = read_arrays(path, CheckpointError)
    return list_taken(resume, arrays, cases, CheckpointError, "state.")


def put(value, where=0):
    def change(array):
        array.reshape(-1)[where] = value
        return array

    return change


def edit_json(edit):
    def change(array):
        data = json.loads(array.tobytes())
        edit(data)
        return np.frombuffer(json.dumps(data).encode(), np.uint8)

    return change


# Ctrl-C at a line


def trace_lines(call, rooms, see):
    """Call, and let `see` look at each line of some folders or files that this thread comes to."""

    def trace(frame, event, _):
        if not any(room in frame.f_code.co_filename for room in rooms):
            return None
        if event == "line":
            see((frame.f_code, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)


def list_lines(call, rooms):
    """The lines that a call comes to, in order of their first time."""
    lines = {}
    trace_lines(call, rooms, lambda line: lines.setdefault(line))
    return list(lines)


def interrupt_at(line, call, rooms):
    """Let Ctrl-C fall on a line of a call."""

    def see(seen):
        if seen == line:
            sys.settrace(None)
            raise KeyboardInterrupt

    try:
        trace_lines(call, rooms, see)
    except KeyboardInterrupt:
        return
    raise AssertionError(f"never came to {line}")


# In a child process, which imports what it runs by the name of its module


def run_in_child(method, function, *arguments):
    """What `function` returns in a child process."""
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=send_result, args=(sender, function, *arguments))
    child.start()
    sender.close()
    try:
        assert receiver.poll(60), "the child hangs"
        result = receiver.recv()
        child.join(60)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
    return result


def send_result(sender, function, *arguments):
    sender.send(function(*arguments))
    sender.close()


def train_anew(folder, n_threads):
    trainer = start(CHILD_CONFIG, 6, n_threads)
    trainer.run()
    return outcome(trainer, folder)


def train_and_evaluate(folder, arrays):
    """All that a child is asked for, so that few are needed: a spawned one takes seconds to start."""
    return [train_anew(folder, n_threads) for n_threads in (1, 2)], evaluate_again(arrays)


def train_on(trainer, folder):
    trainer.run()
    return outcome(trainer, folder)


def evaluate_again(arrays):
    return evaluate_policy(Policy.from_arrays(arrays), INSTANCES, trials=5, seed=8, threads=2)


def describe_run():
    """Training, trials and decisions on recorded observations, as texts."""
    # 100 hidden units are summed in vectors of 16 and of 4, 12 actions in vectors of 4.
    config = Config(generations=2, population=12, hidden=(100, 21))
    instances = load_instances(2)
    trainer = ACERL(instances, config, seed=3, threads=2)
    trainer.run()
    trials = [
        evaluate_policy(trainer.policy, instances, trials=20, seed=3, greedy=greedy)
        for greedy in (False, True)
    ]
    # A policy that nothing was done to but drawing it.
    theta = initial_parameters(trainer.policy.sizes.tolist(), 4)
    policy = Policy.from_arrays({**trainer.policy.to_arrays(), "theta": theta})
    with np.load(RECORDED, allow_pickle=False) as recorded:
        observation, mask = recorded["decision_observation"], recorded["decision_mask"]
    return {
        "theta": trainer.strategy.theta.tobytes().hex(),
        "history": repr(history_without_seconds(trainer)),
        "trials": [[t.makespan.tolist(), t.tardiness.tolist(), t.decisions] for t in trials],
        "fixed theta": theta.tobytes().hex(),
        "greedy": policy.act(observation, mask).tolist(),
        "sampled": policy.act(observation, mask, rng=np.random.default_rng(2)).tolist(),
    }
