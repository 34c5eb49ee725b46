"""Records to judge a policy on: some that are held back from training, or noised copies of all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.kernels.core.random import HOLD_OUT, make_key
from acerl_np.problem.generate import perturb
from acerl_np.problem.instance import Instance, list_instances, number_hash
from acerl_np.support.errors import refuse
from acerl_np.support.fields import MAX_SEED, Whole, check_seed, is_real

SHARE = 0.25
"""Share of the records that is held back where it is asked for without a number."""

FOLDS, FEWER_FOLDS, MOST_IN_FOLDS = 5, 3, 30
"""Parts of the records in turn judge; so many where that takes long; records up to which all judge so."""

PRECISION = 0.05
"""Of more records so many are held back that the standard error of `nearest` is this share of its mean."""

COPIES = 5
MAGNITUDE = 30
"""Noised copies of each record, and how far their arrivals are moved at most, s."""


def choose_share(values: ArrayLike) -> float | None:
    """Return the share of the records that is held back unless told otherwise; None where all judge in folds.

    Parameters
    ----------
    values : array_like of float, (n_records,)
        What `nearest` comes to on each record: the trained policy's results choose nothing.
    """
    x = np.asarray(values, np.float64)
    if len(x) <= MOST_IN_FOLDS:
        return None
    wanted = (x.std(ddof=1) / (PRECISION * max(abs(x.mean()), 1e-9))) ** 2
    return float(min(max(math.ceil(wanted), MOST_IN_FOLDS // 2), len(x) // 2) / len(x))


def hold_out(
    instances: Instance | Sequence[Instance], share: float = SHARE, *, seed: Whole = 0
) -> tuple[list[Instance], list[Instance]]:
    """Part records into those to train on and those to judge by, each in the given order, neither empty.

    The share that is held back is above 0 and below 1, rounded to whole records. Which ones depends on the
    seed and on the records' contents, not on their order or names; records of one content are never parted.

    Raises
    ------
    InputError
        If the share is no such number, or the records cannot be parted.

    Examples
    --------
    >>> import acerl_np
    >>> from acerl_np.evaluation.hold_out import hold_out
    >>> training, held_back = hold_out(acerl_np.load_suite("dmh-train"))
    >>> len(training), len(held_back)
    (6, 2)
    """
    chosen = list_instances(instances)
    seed = check_seed(seed)
    if not is_real(share) or not 0.0 < share < 1.0:
        refuse("hold_out", share, "a share above 0 and below 1")
    counts = Counter(instance.content_hash for instance in chosen)
    if len(counts) < 2:
        expected = "at least two, one to train on and one to judge by"
        refuse("hold_out", f"{len(counts)} different records", expected)
    wanted = min(max(1, int(len(chosen) * share + 0.5)), len(chosen) - 1)
    held: Counter[str] = Counter()
    for content in sorted(counts, key=lambda item: (_draw_word(seed, item, 0), item)):
        # Of one content alone something is left to train on, whatever was wanted.
        if not held or held.total() + counts[content] <= wanted:
            held[content] = counts[content]
    return (
        [instance for instance in chosen if instance.content_hash not in held],
        [instance for instance in chosen if instance.content_hash in held],
    )


def part_folds(
    instances: Instance | Sequence[Instance], n_folds: int = FOLDS, *, seed: Whole = 0
) -> list[list[Instance]]:
    """Part records into folds, one after the other to judge by; as many as there are contents at most.

    As in `hold_out`, seed and contents decide, and records of one content are never parted.

    Raises
    ------
    InputError
        If there are fewer than two folds, or two different records.
    """
    chosen = list_instances(instances)
    seed = check_seed(seed)
    contents = {instance.content_hash for instance in chosen}
    if n_folds < 2 or len(contents) < 2:
        read = f"{n_folds} of {len(contents)} different records"
        refuse("folds", read, "at least two of two")
    order = sorted(contents, key=lambda item: (_draw_word(seed, item, 0), item))
    n = min(n_folds, len(order))
    fold = {content: k % n for k, content in enumerate(order)}
    return [[item for item in chosen if fold[item.content_hash] == k] for k in range(n)]


def make_noised(
    instances: Instance | Sequence[Instance], *, seed: Whole = 0, magnitude: int = MAGNITUDE
) -> list[Instance]:
    """Return noised copies of each record; they are no unseen records.

    Arrivals move by whole seconds within plus and minus `magnitude`; those of 0 stay unless all are. The
    noise is keyed apart from that of training and of `perturb` with the same seed.
    """
    seed = check_seed(seed)
    return [
        perturb(
            instance,
            magnitude,
            seed=_draw_word(seed, instance.content_hash, 1 + k),
            zeros="keep" if (instance.arrival > 0.0).any() else "move",
            name=f"{instance.name}-N{magnitude}-{k + 1}",
        )
        for instance in list_instances(instances)
        for k in range(COPIES)
    ]


def _draw_word(seed: int, content_hash: str, which: int) -> int:
    """Return a number from 0 to `MAX_SEED` that belongs to a record."""
    key = make_key(seed, HOLD_OUT, number_hash(content_hash), which)
    return (int(key[0]) << 32 | int(key[1])) & MAX_SEED
