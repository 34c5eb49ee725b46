"""What trained policies depend on: how much of their greedy decisions the idle vehicles alone tell.

    python benchmarks/dependence.py                  # 20 seeds, both slots; two minutes
    python benchmarks/dependence.py --seeds 5

Each policy is trained with the paper's settings on DMH-01 to -08 and plays them greedily. "By idle vehicles":
the share of its decisions that equal the most frequent one among those with the same idle vehicles.
"Strangers": the mean makespan once the tasks of a record have swapped their slots at random, so that no
slot means what it meant in training.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict

import numpy as np
from script import make_parser

import acerl_np


def play(policy: acerl_np.Policy, instances: list[acerl_np.Instance]) -> tuple[float, float]:
    """Return the share of decisions that the idle vehicles tell, and the mean makespan (s)."""
    sim = acerl_np.Simulator(instances, slots=policy)
    chosen: dict[bytes, Counter[int]] = defaultdict(Counter)
    while not sim.done.all():
        idle = sim.action_mask.reshape(len(instances), -1, 4).any(axis=2)
        actions = policy.act(sim.observation, sim.action_mask)
        for k in np.flatnonzero(actions >= 0):
            chosen[idle[k].tobytes()][int(actions[k])] += 1
        sim.step(actions)
    told = sum(max(counts.values()) for counts in chosen.values())
    return told / sum(map(Counter.total, chosen.values())), float(sim.makespan.mean())


def shuffle_slots(policy: acerl_np.Policy, seed: int) -> acerl_np.Policy:
    """Return the policy with the ids of its slots in another order."""
    shuffled = copy.copy(policy)
    shuffled.task_ids = tuple(map(str, np.random.default_rng(seed).permutation(policy.task_ids)))
    return shuffled


def main() -> None:
    """Train, play, and print a line for each kind of slots."""
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    instances = acerl_np.load_suite("dmh-train")
    print(f"{'slots':6} {'by idle vehicles':>24} {'makespan':>16} {'strangers':>16}")
    for slots in ("task", "pool"):
        found = []
        for seed in range(1 if arguments.quick else arguments.seeds):
            config = acerl_np.Config(
                slots=slots, generations=4 if arguments.quick else 128, curve_every=0
            )
            trainer = acerl_np.ACERL(instances, config, seed=seed)
            trainer.run()
            share, makespan = play(trainer.policy, instances)
            if slots == "task":
                strange = [play(shuffle_slots(trainer.policy, k), instances)[1] for k in range(10)]
            found.append((share, makespan, np.mean(strange) if slots == "task" else np.nan))
        shares, makespans, strangers = np.array(found).T
        spread = f"{shares.mean():.0%} ({shares.min():.0%} to {shares.max():.0%})"
        strange = f"{strangers.mean():.1f} s" if slots == "task" else "-"
        print(f"{slots:6} {spread:>24} {makespans.mean():14.1f} s {strange:>16}")


if __name__ == "__main__":
    main()
