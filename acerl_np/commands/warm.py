"""`acerl-np warm`: compile ahead, and say what and how long."""

from __future__ import annotations

import argparse
import time

from acerl_np.commands.shared import options as opt
from acerl_np.support.log import count_compiled


def run(arguments: argparse.Namespace) -> None:
    """Compile what commands need, so that their first use does not wait.

    Parts: training (networks), best (index policies), rules, baselines, lookahead, search (policy bound),
    replay (past assignments), own (rules of yours), simulator (your own programs), dispatcher (serve).

    Examples
    --------
      acerl-np warm
      acerl-np warm training
      acerl-np warm rules baselines
    """
    from acerl_np.warm import PARTS, check_part, warm_up

    parts = arguments.parts or list(PARTS)
    for part in parts:
        check_part(part)
    for part in parts:
        started, before = time.perf_counter(), count_compiled()
        warm_up(part)
        n = count_compiled() - before
        what = f"{n} kernels compiled" if n else "compiled already, loaded"
        print(f"{part}: {what} in {time.perf_counter() - started:.1f} s", flush=True)


ACTION = opt.Action(run, {"": (opt.Argument("parts PART*", "default: all", default=[]),)})
