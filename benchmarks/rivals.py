"""How long a million steps of each compared learner take on one core, and how much memory.

    python benchmarks/rivals.py [--steps 100000] [--algorithms ppo,sac]

Each runs in a process of its own. The first round, in which kernels may be compiled, does not count.
"""

import argparse
import resource
import subprocess
import sys
import time

from script import make_parser

import acerl_np
from studies.rivals import RivalTrainer


def measure(algorithm, steps):
    """Seconds of a million steps, and the process' peak memory in MB."""
    trainer = RivalTrainer(
        algorithm,
        acerl_np.load_suite("dmh-train"),
        steps=steps + 10_000,
        settings={"look_every": 0},
    )
    trainer.step()
    started, before = time.process_time(), time.perf_counter()
    trainer.run()
    cpu, wall = time.process_time() - started, time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return cpu / steps * 1e6, wall / steps * 1e6, peak


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--algorithms", default="ppo,sac,lsac,rcpom,mappo,appo,asac")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.steps, arguments.algorithms = 500, "ppo,sac"
    if arguments.one:
        print(
            "{:.0f} s of a core, {:.0f} s, {:.0f} MB".format(
                *measure(arguments.one, arguments.steps)
            )
        )
        return
    for name in arguments.algorithms.split(","):
        command = [sys.executable, __file__, "--one", name, "--steps", str(arguments.steps)]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        print(f"{name:6} a million steps: {found}", flush=True)


if __name__ == "__main__":
    main()
