"""Wall time of MaskablePPO of sb3-contrib on one environment and on the lockstep vector environment.

The same steps, updates, batches and network; only how the steps are collected differs. Needs the extra:

    pip install -e '.[sb3]' && python benchmarks/maskable_ppo.py [--steps 16384] [--repeats 3]
"""

from __future__ import annotations

import statistics
import sys
import time

from script import make_parser

try:
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

    from acerl_np.gym import DMHEnv
    from acerl_np.gym.sb3 import DMHVecEnv
except ImportError as error:
    print(f"{error.name} is not installed: pip install -e '.[sb3]'", file=sys.stderr)
    sys.exit(0 if "--quick" in sys.argv else 1)

COLLECT = 2048
"""Steps of all environments between two updates: MaskablePPO's default for one."""

SUITE = "dmh-train"


def make_paths(n: int) -> dict[str, VecEnv]:
    """Return what is timed: the environments by their names."""
    return {
        "one DMHEnv": DummyVecEnv([lambda: DMHEnv(SUITE)]),
        f"{n} DMHEnv in a DummyVecEnv": DummyVecEnv([lambda: DMHEnv(SUITE)] * n),
        f"DMHVecEnv of {n}": DMHVecEnv(n, SUITE),
    }


def train(envs: VecEnv, steps: int, epochs: int) -> tuple[float, float]:
    """Return the seconds that training takes, and those of the processor; returns are checked."""
    monitored = VecMonitor(envs)
    model = MaskablePPO(
        "MlpPolicy",
        monitored,
        n_steps=COLLECT // envs.num_envs,
        n_epochs=epochs or 1,
        seed=0,
        device="cpu",
    )
    if epochs == 0:
        model.train = lambda: None
    started = time.perf_counter(), time.process_time()
    model.learn(steps)
    seconds = time.perf_counter() - started[0], time.process_time() - started[1]
    returns = [episode["r"] for episode in model.ep_info_buffer]
    if not all(-4000.0 < value < -1500.0 for value in returns):
        raise SystemExit(f"returns: read {min(returns):.0f} to {max(returns):.0f}")
    return seconds


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--steps", type=int, default=8 * COLLECT)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--envs", type=int, default=64)
    options = parser.parse_args()
    if options.quick:
        options.steps, options.repeats, options.envs = COLLECT, 1, 8
    torch.set_num_threads(1)
    paths = make_paths(options.envs)
    for epochs, what in ((10, "with its ten epochs"), (0, "collecting alone")):
        print(f"{options.steps:,} steps {what}, median of {options.repeats} rounds:")
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in paths}
        for envs in paths.values():
            train(envs, COLLECT, epochs)  # warms up
        for _ in range(options.repeats):  # in turn, as other programs come and go
            for name, envs in paths.items():
                taken[name].append(train(envs, options.steps, epochs))
        base = [statistics.median(column) for column in zip(*taken["one DMHEnv"], strict=True)]
        for name, rounds in taken.items():
            wall, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratios = f"{base[0] / wall:5.1f} x wall, {base[1] / cpu:5.1f} x processor"
            print(f"  {name:28} {wall:6.2f} s, of the processor {cpu:6.2f} s; {ratios}")


if __name__ == "__main__":
    main()
