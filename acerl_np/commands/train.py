"""`acerl-np train`: train a policy on task records and show what it achieves."""

from __future__ import annotations

import argparse

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared import train_options


def run(arguments: argparse.Namespace) -> int:
    """Train a policy with ACERL (Algorithm 1 of the paper).

    Without RECORDS it trains on DMH-01 to -08 with the paper's settings. Results go to a new folder below
    runs/, or to --out: policy.npz, run.npz (checkpoint), config.json, history.csv, curves.csv, results.csv.

    Some of your records are held out and used only to judge the final policy (--hold-out). With 5 to 30
    records, cross-validation is used instead (--folds).

    Examples
    --------
      acerl-np train                                            the paper's run
      acerl-np train 'days/*.csv' --layout floor.json --out run     your own records: preset best
      acerl-np train --resume run/run.npz --generations 256
    """
    from acerl_np.commands.shared.training import Learner, run_learner

    beside = ("command", "run", "prog", "trust_code", "verbose")
    own = vars(arguments).items()
    given = {name: x for name, x in own if name not in beside and x not in ([], None)}
    return run_learner(Learner(*train_options.merge_options(given)))


ACTION = opt.Action(run, train_options.BY_GROUP, given=True)
