"""A long run: does memory stay flat, and does it end where shorter runs end?

python benchmarks/soak.py --minutes 60

Trains with a large population, saves a checkpoint every ten seconds, and notes the process's memory. Then
two shorter runs must give the same bytes: one from the start to a generation that the long one passed, one
from a checkpoint of its middle to its end.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
import time
from pathlib import Path

import acerl_np

WARM_UP_SECONDS = 60.0
"""Memory is compared from then on: kernels are loaded and every array has been used."""


def resident_megabytes() -> float:
    """Return the memory that the process holds now, MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def fingerprint(trainer: acerl_np.ACERL) -> str:
    """Return a hash of what a run has come to: parameters, sampler, history but for the seconds."""
    digest = hashlib.sha256(trainer.strategy.theta.tobytes())
    for name, array in sorted(trainer.sampler.get_state().items()):
        digest.update(name.encode() + array.tobytes())
    for record in trainer.history:
        digest.update(f"{record.decisions} {record.return_mean!r} {record.counts}".encode())
    return digest.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--population", type=int, default=8192)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    instances = acerl_np.load_suite("dmh-train")
    config = acerl_np.Config(population=options.population, generations=10_000_000)
    trainer = acerl_np.ACERL(instances, config, seed=options.seed, threads=options.threads)
    folder = Path(tempfile.mkdtemp(prefix="acerl_np-soak-"))
    started = last_save = time.monotonic()
    early = ""
    memory: list[float] = []
    middle = 0
    saves = 0
    while time.monotonic() - started < 60.0 * options.minutes:
        trainer.step()
        if trainer.generation == 20:
            early = fingerprint(trainer)
        if time.monotonic() - last_save >= 10.0:
            trainer.save(folder / "run.npz")
            saves += 1
            last_save = time.monotonic()
            if last_save - started >= WARM_UP_SECONDS:
                memory.append(resident_megabytes())
            if not middle and last_save - started >= 54.0 * options.minutes:
                shutil.copy(folder / "run.npz", folder / "late.npz")
                middle = trainer.generation
    if not middle:
        trainer.save(folder / "late.npz")
        middle = trainer.generation
    memory.append(resident_megabytes())
    end = fingerprint(trainer)
    n = trainer.generation
    decisions = trainer.history[-1].decisions
    print(
        f"{n} generations, {decisions:,} decisions, {saves} checkpoints in {options.minutes:g} minutes"
    )
    growth = max(memory) / memory[0] - 1.0
    print(f"memory {memory[0]:.1f} MB after a minute, {max(memory):.1f} MB at most: {growth:+.2%}")

    short = acerl_np.ACERL(instances, config, seed=options.seed, threads=2)
    while short.generation < 20:
        short.step()
    same_start = fingerprint(short) == early
    print(f"20 generations anew, two threads: {'the same bytes' if same_start else 'OTHER BYTES'}")
    resumed = acerl_np.ACERL.resume(folder / "late.npz", threads=2)
    while resumed.generation < n:
        resumed.step()
    same_end = fingerprint(resumed) == end
    print(
        f"resumed at generation {middle}, two threads, to the end: "
        f"{'the same bytes' if same_end else 'OTHER BYTES'}"
    )
    shutil.rmtree(folder)
    if not same_start or not same_end or growth > 0.02:
        sys.exit(1)


if __name__ == "__main__":
    main()
