"""`acerl-np warm`: compile ahead, and say what and how long.

Compile what commands need, so that their first use on this machine does not wait for it. The machine code is
kept in your cache folder; what is there already is loaded.

PART is one of these, all by default:
  training   networks                          best     index policies
  rules      dispatching rules                 search   hindsight
  replay     past assignments                  own      rules of your own
  baselines nearest, opentcs, assignment, ..  simulator  Simulator, in your own programs
  lookahead  lookahead of a rule
"""

from __future__ import annotations

import argparse
import time

from acerl_np.commands.shared.options import CommandOption


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    CommandOption("parts PART*", default=[]).declare(parser)


def run(arguments: argparse.Namespace) -> None:
    """Compile."""
    from acerl_np.support.machine_code import count_compiled
    from acerl_np.warm import PARTS, check_part, warm_up

    parts = arguments.parts or list(PARTS)
    for part in parts:
        check_part(part)
    for part in parts:
        started, before = time.perf_counter(), count_compiled()
        warm_up(part, quiet=True)
        n = count_compiled() - before
        what = f"{n} kernels compiled" if n else "compiled already, loaded"
        print(f"{part}: {what} in {time.perf_counter() - started:.1f} s", flush=True)
