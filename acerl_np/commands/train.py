"""`acerl-np train`: train a policy on task records and show what it achieves."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from acerl_np.commands.shared import options as opt
from acerl_np.commands.shared import train_options

if TYPE_CHECKING:
    from acerl_np.evaluation.verdict import Verdict
    from acerl_np.policies.files import AnyPolicy
    from acerl_np.problem.instance import Instance
    from acerl_np.support.fields import Whole
    from acerl_np.support.team import Team
    from acerl_np.training.acerl import ACERL


class Training(NamedTuple):
    """What `train` has trained.

    Attributes
    ----------
    policy : Policy or IndexPolicy
    verdict : Verdict or None
        How good it is on records that it has not seen; None where nothing evaluates it.
    notes : list of str
        What to know beside the verdict.
    trainer : ACERL
        With the history, the curves, and `save`.
    records : list of Instance
        Those that evaluate it.
    """

    policy: AnyPolicy
    verdict: Verdict | None
    notes: list[str]
    trainer: ACERL
    records: list[Instance]

    def __repr__(self) -> str:
        """Return the verdict in a sentence."""
        told = f"{len(self.trainer.instances)} records, no verdict"
        return f"<Training: {self.verdict.headline if self.verdict else told}>"


def train(
    records: Instance | Sequence[Instance],
    *,
    preset: str | None = None,
    hold_out: float | str | None = None,
    folds: int | None = None,
    seed: Whole = 0,
    trials: int = 30,
    threads: int | None = None,
    team: Team | None = None,
    progress: bool = False,
    **settings: Any,
) -> Training:
    """Train a policy on records, and evaluate it on records that it has not seen: `acerl-np train`.

    What it chooses by itself is told to the logger "acerl_np".

    Parameters
    ----------
    records : Instance or sequence of Instance
    preset : {"paper", "best"}, optional
        By default "best", and "paper" for bundled records.
    hold_out : float or "none", optional
        Share of the records that only evaluate. By default of more than 30 own records as many as the
        standard error of `nearest` asks for.
    folds : int, optional
        Of cross-validation. By default 5 with 5 to 30 own records; of fewer, perturbed copies evaluate.
    seed : int
    trials : int
        Episodes of each record in the verdict, 0 for no verdict.
    threads : int, optional
        By default one for each core.
    team : Team, optional
        Workers; by default threads of this process.
    progress : bool
        Show how far it is on the standard error stream.
    **settings
        Of `Config`, such as `decisions` and `objective`; shifts are trained for `late+0.05*tardiness`.

    Returns
    -------
    Training

    Raises
    ------
    ConfigError, InputError
        If a setting or the records cannot be used.

    Examples
    --------
    >>> import acerl_np
    >>> records = acerl_np.load_suite("dmh-train")[:3]
    >>> found = acerl_np.train(records, hold_out=0.3, generations=1, population=2, trials=1)
    >>> found.verdict.n_records
    1
    """
    from acerl_np.commands.shared.judging import find_verdict
    from acerl_np.commands.shared.progress import compile_ahead
    from acerl_np.commands.shared.training import Learner, show_progress
    from acerl_np.problem.bundled import bundled_instances
    from acerl_np.problem.instance import list_instances

    known = list_instances(records)
    algorithm = train_options.ACERL
    for name in settings:
        train_options.check_known(name, algorithm.settings.list_fields(), algorithm)
    given = {"preset": preset, "hold_out": hold_out, "folds": folds, "seed": int(seed)}
    given |= {"trials": trials, "threads": threads, **settings}
    given["own"] = not all(item.name in bundled_instances() for item in known)
    learner = Learner(*train_options.complete(given, algorithm), records=known)
    trainer, judges = learner.begin(team)
    compile_ahead(
        *learner.list_parts(trainer.config), "rules"
    )  # what folds may take counts none of it
    with show_progress(learner, trainer, quiet=not progress) as show:
        while not trainer.done:
            show(trainer.step())
    if judges.on == "nothing" or not trials:
        return Training(trainer.policy, None, [], trainer, [])
    playing = learner.make_playing(trainer)
    verdict, notes, kept = find_verdict(trainer, judges, playing, learner.options, team)
    evaluated = list(judges.held_back or trainer.instances)
    return Training(kept or trainer.policy, verdict, notes, trainer, evaluated)


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
