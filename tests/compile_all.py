"""Compile all that many tests need, in two processes side by side: python tests/compile_all.py"""

import subprocess
import sys
from functools import partial

from worlds import make_task, straight_floor

from acerl_np import IndexPolicy, Instance, Layout, Simulator, evaluate_policy
from acerl_np.warm import PARTS, warm_up
from studies.rivals import training


def make_errands():
    """A record on a floor with a parking place, so that vehicles may drive without a task."""
    parking = {"after": 1, "places": [{"site": "B"}]}
    fleet = [{"id": "v", "start": "A", "speed": 1}]
    layout = Layout.from_dict(straight_floor(fleet, task_slots=1, parking=parking))
    return Instance.from_rows("one task", layout, [make_task("t", "A", "B", 0, 9)])


def play_errands():
    for policy in ("EDD", "nearest", IndexPolicy([-1.0], features=["approach"])):
        evaluate_policy(policy, make_errands(), trials=1, threads=1)


def step_errands():
    simulator = Simulator(make_errands())
    simulator.step(simulator.action_mask.argmax(axis=1))


ALL = [*(partial(warm_up, part) for part in PARTS), play_errands, step_errands, training.warm_up]


def main(words):
    """With a number: every other part, from the first or the second one on."""
    if words:
        for compile_part in ALL[int(words[0]) :: 2]:
            compile_part()
        return 0
    halves = [subprocess.Popen([sys.executable, __file__, str(half)]) for half in range(2)]
    return max([process.wait() for process in halves])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
