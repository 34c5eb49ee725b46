"""Quality of learning: train over several seeds, report mean and spread of the trained policies.

python benchmarks/learning.py --seeds 0:5
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import acerl_np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:5", help="first and last + 1, such as 0:5")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--suite", default="dmh-train")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="a field of Config, such as sampler=uniform; may be repeated",
    )
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    types = {name: type(value) for name, value in acerl_np.Config().to_dict().items()}
    settings = {}
    for item in options.set:
        name, _, value = item.partition("=")
        settings[name] = value == "True" if types[name] is bool else types[name](value)
    instances = acerl_np.load_suite(options.suite)
    acerl_np.warm_up()
    makespans, shares, seconds = [], [], []
    for seed in range(first, last):
        started = time.perf_counter()
        trainer = acerl_np.ACERL(instances, acerl_np.Config(**settings), seed=seed)
        trainer.run()
        seconds.append(time.perf_counter() - started)
        trials = acerl_np.evaluate_policy(trainer.policy, instances, trials=options.trials)
        makespans.append(float(trials.makespan.mean()))
        shares.append(trials.satisfied)
        print(
            f"seed {seed}: makespan {makespans[-1]:.1f}, satisfied {shares[-1]:.1%}, "
            f"{seconds[-1]:.1f} s",
            flush=True,
        )
    print(
        f"{len(makespans)} seeds: makespan {np.mean(makespans):.1f} (sd {np.std(makespans):.1f}), "
        f"satisfied {np.mean(shares):.1%} (sd {np.std(shares):.1%}), "
        f"median {np.median(seconds):.1f} s a run"
    )


if __name__ == "__main__":
    main()
