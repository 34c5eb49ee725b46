"""Perturbed task records: noised variants of known ones, as in the paper's test and noised suites."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from acerl_np.kernels.random import PERTURBATION, derive_key, draw_uniform
from acerl_np.problem.instance import Instance
from acerl_np.support.errors import InputError
from acerl_np.support.fields import Field
from acerl_np.support.numbers import Whole, check_seed

MAX_MAGNITUDE = 1_000_000

Zeros = Literal["keep", "move"]
"""What happens to tasks that arrive at 0."""


def perturb(
    instance: Instance,
    magnitude: int,
    *,
    seed: Whole = 0,
    zeros: Zeros = "keep",
    name: str | None = None,
) -> Instance:
    """Add uniform whole-number noise to the arrivals, cut at 0; a chain of tasks moves with its first.

    The noise is keyed by (seed, content of the instance, magnitude, task), so a record has the same
    variant wherever it is made.

    Parameters
    ----------
    instance : Instance
    magnitude : int
        n: noise in {-n, ..., n}, s.
    seed : int
        0 to 2**63 - 1.
    zeros : {"keep", "move"}
        Whether tasks that arrive at 0 stay there, as the benchmark's own noised records seem to have it
        (`instances/README.md`), or move like the others.
    name : str, optional
        Of the new instance, by default the old one's with the magnitude: "DMH-01-N5".

    Returns
    -------
    Instance
        Sorted by its new arrivals.

    Raises
    ------
    InputError
        If the magnitude is negative or too large, or `zeros` is neither word.
    ConfigError
        If the seed is no usable number.

    Examples
    --------
    >>> import acerl_np
    >>> record = acerl_np.perturb(acerl_np.load_instance("DMH-01"), 5, seed=0)
    >>> record.name, bool((record.arrival == 0.0).sum() >= 5)
    ('DMH-01-N5', True)
    """
    magnitude = Field(int, 0, MAX_MAGNITUDE).read("magnitude", magnitude, InputError)
    seed = check_seed(seed)
    Field(get_args(Zeros)).read("zeros", zeros, InputError)
    key = np.empty(4, np.uint32)
    content = int.from_bytes(bytes.fromhex(instance.content_hash[:16]), signed=True)
    derive_key(seed, PERTURBATION, content, magnitude, key)
    rows = instance.rows()
    for row, root in zip(rows, instance.root.tolist(), strict=True):
        first = float(instance.arrival[root])
        if zeros == "move" or first > 0.0:
            noise = int(draw_uniform(key, root, 0) * (2 * magnitude + 1)) - magnitude
            row["arrival_time"] += max(-first, noise)
    name = f"{instance.name}-N{magnitude}" if name is None else name
    return Instance.from_rows(name, instance.layout, rows, epoch=instance.epoch)
