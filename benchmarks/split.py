"""What a second worker gains, on a training that deserves it, and how many bytes travel.

    python benchmarks/split.py                  200 sites, 30 vehicles, 1,000 tasks, population 4,096
    python benchmarks/split.py --seeds          five default trainings, in turn and on two processes
    python benchmarks/split.py --quick          both, at sizes of seconds

Rounds with one and with two workers take turns; a round counts if two calibration loops side by side gain at
least 1.8 then, as in `benchmarks/speed.py`.
"""

import pickle
import statistics
import time
import warnings
from dataclasses import replace

import numpy as np
from scaling import make_instance
from script import make_parser
from speed import CALIBRATED, calibrate

import acerl_np
from acerl_np.evaluation.seeds import SeedTask, train_seed
from acerl_np.support.processes import ProcessTeam
from acerl_np.support.workers import Workers


def show_round(times, gain, calibrated):
    """Print a round; return its gain, nothing if the machine was busy."""
    counts = calibrated >= CALIBRATED
    void = "" if counts else " (void: the machine was busy)"
    print(f"{times}, {gain:.2f}{void}", flush=True)
    return [gain] if counts else []


def measure_split(arguments):
    both = Workers(2)
    sizes = (40, 4, 20, 256) if arguments.quick else (1000, 30, 200, arguments.population)
    instance = make_instance(*sizes[:3])
    config = acerl_np.Config(population=sizes[3], generations=10**6, curve_every=0)
    teams = {n: ProcessTeam(n) for n in (1, 2)}
    trainers = {n: acerl_np.ACERL([instance], config, executor=team) for n, team in teams.items()}
    print(f"{sizes[2]} sites, {sizes[1]} vehicles, {sizes[0]} tasks, population {sizes[3]:,}")
    for trainer in trainers.values():
        trainer.step()  # starts the workers and sends the records
    gains, seconds = [], {1: [], 2: []}
    for _ in range(arguments.rounds):
        before = calibrate(both)
        for n, trainer in trainers.items():
            started = time.perf_counter()
            trainer.step()
            seconds[n].append(time.perf_counter() - started)
        gain = seconds[1][-1] / seconds[2][-1]
        times = f"one {seconds[1][-1]:.2f} s, two {seconds[2][-1]:.2f} s"
        gains += show_round(times, gain, min(before, calibrate(both)))
    if gains:
        print(f"two workers over one: median {statistics.median(gains):.2f} of {len(gains)}")
    same = np.array_equal(trainers[1].search.mean, trainers[2].search.mean)
    print(f"same bytes: {same}")
    show_bytes(trainers[2])
    for team in teams.values():
        team.close()


def show_bytes(trainer):
    """What travels in a generation, by the size of its pickles."""
    out, back = [], []

    class Counting(type(trainer._split.team)):
        def run(self, function, orders):
            for order in orders:
                out.append(len(pickle.dumps((function, order))))
            for k, found in super().run(function, orders):
                back.append(len(pickle.dumps(found)))
                yield k, found

    trainer._split.team.__class__ = Counting
    with warnings.catch_warnings(action="ignore"):  # that a quick generation is too short to split
        trainer.step()
    n = trainer._split.team.n_workers
    print(
        f"a generation and worker: {sum(out) / n / 1e3:,.0f} kB out, {sum(back) / n / 1e3:,.0f} kB back"
    )
    print(f"of each range sent, records and options: {len(trainer._split.world) / 1e3:,.0f} kB")
    update = []
    for _ in range(2):
        search = trainer.search
        noise = search.noise()
        utilities = np.linspace(-1.0, 1.0, noise.population)
        started = time.perf_counter()
        search.distribution.update(search, utilities, noise)
        update.append(time.perf_counter() - started)
    print(f"the update, where the training runs: {min(update):.2f} s")


def measure_seeds(arguments):
    both = Workers(2)
    config = acerl_np.Config(generations=4 if arguments.quick else 128)
    records = tuple(acerl_np.load_suite("dmh-train"))
    tasks = [SeedTask(records, (), config, seed, 30) for seed in range(5)]
    short = [replace(task, config=acerl_np.Config(generations=1)) for task in tasks[:4]]
    train_seed(short[0])
    gains = []
    with_processes = ProcessTeam(2)
    dict(with_processes.run(train_seed, short))  # starts the workers
    for _ in range(arguments.rounds):
        before = calibrate(both)
        started = time.perf_counter()
        alone = [train_seed(task) for task in tasks]
        one = time.perf_counter() - started
        started = time.perf_counter()
        found = dict(with_processes.run(train_seed, tasks))
        two = time.perf_counter() - started
        same = all(np.array_equal(found[k].played, own.played) for k, own in enumerate(alone))
        times = f"one after the other {one:.1f} s, on two processes {two:.1f} s, same {same}"
        gains += show_round(times, one / two, min(before, calibrate(both)))
    if gains:
        print(f"five seeds on two processes: median {statistics.median(gains):.2f} of {len(gains)}")
    with_processes.close()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--population", type=int, default=4096)
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    kinds = [measure_seeds] if arguments.seeds else [measure_split]
    for measure in [measure_split, measure_seeds] if arguments.quick else kinds:
        measure(arguments)


if __name__ == "__main__":
    main()
