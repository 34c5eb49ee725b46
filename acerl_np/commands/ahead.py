"""Lookahead in a table: rows that look ahead beside the plain ones, and the time that a decision takes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from acerl_np.commands.players import Row, load_named
from acerl_np.commands.ranges import Range
from acerl_np.support.errors import InputError, PolicyError

if TYPE_CHECKING:
    from acerl_np.evaluation.trials import Trials
    from acerl_np.problem.instance import Instance

OPTIONS = ("history", "weights", "bases")
"""What only means something with --lookahead."""

RANGES = {
    "lookahead": Range(1, 100_000, "a number of futures from 1 to 100,000"),
    "bases": Range(1, 64, "a number from 1 to 64"),
}


def add_lookahead(parser: argparse.ArgumentParser) -> None:
    """Declare --lookahead and what goes with it."""
    from acerl_np.policies.lookahead import Weights

    group = parser.add_argument_group("lookahead")
    group.add_argument(
        "--lookahead",
        type=int,
        metavar="N",
        help="add to each trained policy and rule one that tries its best assignments on N sampled "
        "futures before each decision, such as 32",
    )
    group.add_argument(
        "--history",
        nargs="+",
        metavar="RECORDS",
        help="records that futures are made of: files, bundled instances or a suite (default: the training "
        "records in a policy's file; rules have none). A judged record is never among its own futures",
    )
    group.add_argument(
        "--weights",
        choices=get_args(Weights),
        help="match: a record weighs by how well it agrees with the day so far; even: all alike "
        "(default: match)",
    )
    group.add_argument(
        "--bases",
        type=int,
        metavar="N",
        help="index policies: look ahead with N - 1 noised copies of the policy, too (default: 1)",
    )


def look_ahead(
    arguments: argparse.Namespace, rows: Sequence[Row], instances: Sequence[Instance]
) -> list[Row]:
    """Return the rows, those that can look ahead with a second one that does.

    Raises
    ------
    InputError
        If an option is given without --lookahead, or is unusable.
    PolicyError
        If none of the policies can look ahead, or one has no history.
    """
    from acerl_np.policies.index import IndexPolicy
    from acerl_np.policies.lookahead import Lookahead
    from acerl_np.policies.network import Policy
    from acerl_np.policies.rules import RULES

    if arguments.lookahead is None:
        for name in OPTIONS:
            if getattr(arguments, name) is not None:
                raise InputError(f"--{name}: given without --lookahead; expected it as well")
        return list(rows)
    history = None if arguments.history is None else load_named(arguments, arguments.history)
    bases = 1 if arguments.bases is None else arguments.bases
    found: list[Row] = []
    for label, policy in rows:
        found.append(Row(label, policy))
        is_rule = isinstance(policy, str) and policy in RULES
        if not is_rule and not isinstance(policy, Policy | IndexPolicy):
            continue
        several = bases if isinstance(policy, IndexPolicy) else 1
        words = [label, f"lookahead {arguments.lookahead}"]
        words += [arguments.weights] if arguments.weights else []
        words += [f"{bases} bases"] if several > 1 else []
        try:
            ahead = Lookahead(
                policy,  # type: ignore[arg-type]
                history=history,
                futures=arguments.lookahead,
                seed=arguments.seed,
                weights=arguments.weights or "match",
                bases=several,
                cost_limit=arguments.cost_limit,
            )
            for instance in instances:
                ahead.check_fits(instance)
        except PolicyError as error:
            raise PolicyError(f"{label}: {error}") from error
        found.append(Row(", ".join(words), ahead))
    if len(found) == len(rows):
        raise PolicyError("--lookahead: no trained policy and no rule to look ahead with")
    if bases != 1 and not any(isinstance(row.policy, IndexPolicy) for row in rows):
        raise PolicyError(f"--bases: read {bases}; expected an index policy among the policies")
    return found


class Clock:
    """Measures how long decisions with lookahead take.

    Parameters
    ----------
    threads : int or None
        As given to `evaluate_policy`.
    """

    def __init__(self, threads: int | None) -> None:
        from acerl_np.support.workers import count_cores

        self.threads = threads or count_cores()
        self._started = 0.0
        self.lines: list[str] = []

    def start(self) -> None:
        """Begin to measure."""
        self._started = time.perf_counter()

    def stop(self, label: str, trials: Trials) -> None:
        """Note what these trials took."""
        seconds = time.perf_counter() - self._started
        each = 1e3 * seconds * min(self.threads, trials.makespan.size) / max(1, trials.decisions)
        self.lines.append(f"{label}: {each:.2g} ms a decision")


def compile_lookahead(rows: Sequence[Row]) -> None:
    """Compile or load what the rows need, so that no row's time has it in it."""
    from acerl_np.commands.common import compile_ahead
    from acerl_np.policies.lookahead import Lookahead

    if any(isinstance(row.policy, Lookahead) for row in rows):
        compile_ahead("lookahead")
