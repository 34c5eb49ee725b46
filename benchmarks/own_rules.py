"""Rules of a user's beside equal ones of the package: the first use of a process, and speed.

    python benchmarks/own_rules.py [--rounds 15]

Both play the same episodes in turn, on one thread; the ratio is the median of the rounds. It differs by a
fifth from process to process, as the stack happens to lie: repeat it.
"""

import time

import numpy as np
from script import make_parser

import acerl_np


@acerl_np.rule(vehicle="random")
def fcfs(floor, vehicle, task):
    return floor.arrival(task)


@acerl_np.rule(vehicle="random")
def nvf(floor, vehicle, task):
    return floor.whole(floor.distance(floor.site(vehicle), floor.pickup(task)))


@acerl_np.rule
def nearest(floor, vehicle, task):
    return floor.metres(vehicle, task)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--trials", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.trials = 2, 10
    records = acerl_np.load_suite("dmh-train")

    def play(policy):
        started = time.process_time()
        trials = acerl_np.evaluate_policy(policy, records, trials=arguments.trials, threads=1)
        return time.process_time() - started, trials

    for name, own in (("FCFS", fcfs), ("NVF", nvf), ("nearest", nearest)):
        _, expected = play(name)
        first, found = play(own)
        assert np.array_equal(found.makespan, expected.makespan), name
        times = np.array([(play(name)[0], play(own)[0]) for _ in range(arguments.rounds)])
        per_decision = 1e9 * np.median(times, axis=0) / found.decisions
        ratio = np.median(times[:, 0] / times[:, 1])
        print(
            f"{name:8} {per_decision[0]:5.0f} ns a decision, own {per_decision[1]:5.0f} ns: "
            f"{ratio:.2f} of the speed; first use {first:.2f} s"
        )


if __name__ == "__main__":
    main()
