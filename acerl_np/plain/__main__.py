"""`python -m acerl_np.plain`: train on DMH-01 to DMH-08, slowly and in plain sight."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import fmean

import numpy as np

from acerl_np.plain.evolution import Generation, Settings, train
from acerl_np.plain.floor import load_suite


def read_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""

    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) >= 2**63:
            raise argparse.ArgumentTypeError(f"read '{text}'; expected a whole number from 0 on")
        return int(text)

    parser = argparse.ArgumentParser(prog="python -m acerl_np.plain", description=__doc__)
    parser.add_argument("--generations", type=whole, default=128, help="G (default 128)")
    parser.add_argument("--seed", type=whole, default=0, help="default 0")
    parser.add_argument(
        "--out", type=Path, help="file for theta, the policy's parameters; numpy.load reads it"
    )
    read = parser.parse_args(arguments)
    if read.out is not None and read.out.exists():
        parser.error(f"--out: {read.out} exists; expected a new file")
    if read.out is not None and not read.out.parent.is_dir():
        parser.error(f"--out: {read.out.parent} is no folder; expected one")
    return read


def show(generation: Generation, number: int, of: int, seconds: float) -> None:
    """Print a line about a generation."""
    members = [member for buffer in generation.instance_buffers for member in buffer]
    within = sum(member.j_c < Settings.cost_limit for member in members) / len(members)
    print(
        f"generation {number}/{of}  decisions {generation.decisions}"
        f"  makespan {-fmean(member.j_r for member in members):.1f}"
        f"  tardiness {fmean(member.j_c for member in members):.1f}"
        f"  within limit {within:.0%}  {seconds:.0f} s",
        flush=True,
    )


def write(theta: np.ndarray, path: Path) -> None:
    """Write an array to a file, wholly or not at all."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        np.save(file, theta)
    os.replace(part, path)


def main(arguments: list[str] | None = None) -> int:
    """Train; return the exit status."""
    options = read_arguments(arguments)
    started = time.perf_counter()
    try:
        for number, generation in enumerate(train(load_suite(), options.generations, options.seed)):
            if number:
                show(generation, number, options.generations, time.perf_counter() - started)
        if options.out is not None:
            write(generation.theta, options.out)
    except KeyboardInterrupt:
        print("interrupted; nothing is kept", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
