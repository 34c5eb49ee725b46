"""A dispatching rule of one's own, beside those of the package: a policy in five lines.

python examples/own_rule.py [--quick]
"""

import sys

import acerl_np


@acerl_np.rule
def cautious(floor: acerl_np.Floor, vehicle: int, task: int) -> float:
    """Prefer the nearest vehicle, and a task that runs out of time to one that can wait."""
    return floor.approach(vehicle, task) + 0.3 * floor.slack(vehicle, task)


def main() -> None:
    """Print the table."""
    trials = 3 if "--quick" in sys.argv else 30
    records = acerl_np.load_suite("dmh-test")
    history = acerl_np.load_suite("dmh-train")
    ahead = acerl_np.Lookahead(cautious, history=history, futures=8)
    print("               makespan   tardiness   within 50 s")
    for name, policy in (
        ("EDD", "EDD"),
        ("nearest", "nearest"),
        ("cautious", cautious),
        ("  looking ahead", ahead),
    ):
        found = acerl_np.evaluate_policy(policy, records, trials=trials)
        makespan, tardiness = found.makespan.mean(), found.tardiness.mean()
        print(f"{name:15}{makespan:8.1f} s{tardiness:10.1f} s{found.satisfied:12.0%}")


if __name__ == "__main__":
    main()
