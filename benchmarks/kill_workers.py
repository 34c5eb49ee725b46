"""A study whose workers are killed now and then: nothing may be lost, and nothing may differ.

    python benchmarks/kill_workers.py [--trainings 50] [--every 30]

Default trainings on two processes, one of which is killed every so many seconds. Some are trained again alone
and must have the same bytes.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from script import make_parser

import acerl_np
from acerl_np.evaluation.seeds import SeedTask, train_seed, train_seeds
from acerl_np.support.processes import ProcessTeam


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--trainings", type=int, default=50)
    parser.add_argument("--every", type=float, default=30.0)
    parser.add_argument("--generations", type=int, default=128)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.trainings, arguments.every, arguments.generations = 4, 2.0, 8
    config = acerl_np.Config(generations=arguments.generations)
    records = tuple(acerl_np.load_suite("dmh-train"))
    tasks = [SeedTask(records, (), config, seed, 2) for seed in range(arguments.trainings)]
    team, stop, killed = ProcessTeam(2), threading.Event(), []

    def kill():
        while not (stop.wait(arguments.every) or (arguments.quick and killed)):
            for pid in sorted(team.pids)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = {k: result for k, result, _ in train_seeds(tasks, Path(folder), team)}
        finally:
            stop.set()
            killer.join()
            team.close()
        seconds = time.perf_counter() - started
        print(f"{len(found)} of {len(tasks)} trainings, {len(killed)} kills, {seconds:.0f} s")
        different = 0
        for k in range(0, len(tasks), max(1, len(tasks) // 3)):
            alone = train_seed(tasks[k]).files["policy.npz"]
            same = alone == (Path(folder) / f"seed{k}" / "policy.npz").read_bytes()
            print(f"seed {k}: the same bytes as alone: {same}")
            different += not same
    sys.exit(len(found) < len(tasks) or different > 0)


if __name__ == "__main__":
    main()
