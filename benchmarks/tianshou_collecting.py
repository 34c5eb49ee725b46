"""Time that Tianshou's collector takes: single environments, and the lockstep vector environment.

The same masked Q-network decides, at random in three steps of ten. Needs the extra:

    pip install -e '.[tianshou]' && python benchmarks/tianshou_collecting.py [--steps 12800] [--repeats 3]
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
from script import make_parser

try:
    import torch
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import BaseVectorEnv, DummyVectorEnv

    from acerl_np.gym import DMHEnv
    from acerl_np.gym.tianshou import LockstepVectorEnv, MaskInObservation
except ImportError as error:
    print(f"{error.name} is not installed: pip install -e '.[tianshou]'", file=sys.stderr)
    sys.exit(0 if "--quick" in sys.argv else 1)

SUITE = "dmh-train"


class Net(torch.nn.Module):
    """Values of actions, of an observation without its mask."""

    def __init__(self, space):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(219, 64), torch.nn.ReLU(), torch.nn.Linear(64, int(space.n))
        )

    def forward(self, obs, state=None, info=None):
        return self.layers(torch.as_tensor(obs, dtype=torch.float32)), state


def make_paths(n: int) -> dict[str, BaseVectorEnv]:
    """Return what is timed: the environments by their names."""
    return {
        f"{n} DMHEnv in a DummyVectorEnv": DummyVectorEnv(
            [lambda: MaskInObservation(DMHEnv(SUITE))] * n
        ),
        f"LockstepVectorEnv of {n}": LockstepVectorEnv(n, SUITE),
    }


def collect(envs: BaseVectorEnv, steps: int) -> tuple[float, float]:
    """Return the seconds that collecting takes, and those of the processor; returns are checked."""
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the library's own
    space = envs.action_space[0]
    policy = DiscreteQLearningPolicy(model=Net(space), action_space=space, eps_inference=0.3)
    buffer = VectorReplayBuffer(steps, len(envs))
    collector = Collector(policy, envs, buffer, exploration_noise=True)
    collector.reset()
    started = time.perf_counter(), time.process_time()
    collected = collector.collect(n_step=steps)
    seconds = time.perf_counter() - started[0], time.process_time() - started[1]
    if not (-4000.0 < collected.returns.min() <= collected.returns.max() < -1500.0):
        raise SystemExit(f"returns: read {collected.returns}")
    return seconds


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--steps", type=int, default=12_800)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--envs", type=int, default=64)
    options = parser.parse_args()
    if options.quick:
        options.steps, options.repeats, options.envs = 480, 1, 8
    steps = max(options.steps // options.envs, 60) * options.envs  # an episode takes about 30
    torch.set_num_threads(1)
    paths = make_paths(options.envs)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in paths}
    for envs in paths.values():
        collect(envs, 60 * options.envs)  # warms up
    for _ in range(options.repeats):  # in turn, as other programs come and go
        for name, envs in paths.items():
            taken[name].append(collect(envs, steps))
    print(f"{steps:,} steps, median of {options.repeats} rounds:")
    for name, rounds in taken.items():
        wall, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"  {name:32} {wall:6.2f} s, of the processor {cpu:6.2f} s")


if __name__ == "__main__":
    main()
