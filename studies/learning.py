"""What learning needs: one setting changed at a time, at the paper's budget (not a study of the paper)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from studies.comparison import acerl_training
from studies.study import Results, Study, Training, load_suites
from studies.study_tables import StudyTable

NAME = "learning"
SUITES = ("dmh-train", "dmh-test", "dmh-noise-30")
DEFAULT = "default"
BEST_PRESET = "preset best, an index policy"

BEST: dict[str, Any] = {"outcome": "best", "curve_every": 1, "curve_trials": 2}
"""The best generation by two trials on each training record."""

FACTORS: dict[str, dict[str, dict[str, Any]]] = {
    "learning rate": {f"{rate:g}": {"learning_rate": rate} for rate in (0.015, 0.03, 0.12, 0.24)},
    "sigma": {f"{sigma:g}": {"noise_std": sigma} for sigma in (0.025, 0.05, 0.2)},
    "decay of sigma": {
        "none": {"noise_decay": 1.0},
        "0.99 every 5 generations": {"noise_decay_every": 5},
    },
    "p_f": {f"{p:g}": {"p_f": p} for p in (0.0, 0.25, 0.75, 1.0)},
    "shaping": {"rank, rate 0.0006": {"shaping": "rank", "learning_rate": 0.0006}},
    "sampler": {
        "AIS, released sign": {"advantage": "released"},
        "Uniform": {"sampler": "uniform"},
        "Random": {"sampler": "random"},
    },
    "estimator": {"antithetic": {"antithetic": True}},
    "initialisation": {
        "PyTorch's": {"initialisation": "torch"},
        "small last layer": {"initialisation": "small"},
    },
    "biases": {"none": {"biases": False}},
    "input": {"not standardised": {"standardise": False}},
    "hidden layers": {
        "none": {"hidden": ()},
        "32": {"hidden": (32,)},
        "64, 64": {"hidden": (64, 64)},
        "256, 256": {"hidden": (256, 256)},
    },
    "population x generations": {
        f"{n:,} x {256 * 128 // n}": {"population": n, "generations": 256 * 128 // n}
        for n in (64, 128, 512, 1024)
    },
    "slots of the tasks": {"place in the pool": {"slots": "pool"}},
    "decisions": {
        f"{n / 1e6:g} million": {"decisions": n} for n in (300_000, 3_000_000, 10_000_000)
    },
    "outcome": {"best generation": BEST},
    "together": {
        "rate 0.12, best": {"learning_rate": 0.12, **BEST},
        "sigma 0.05, rate 0.03": {"noise_std": 0.05, "learning_rate": 0.03},
        "sigma 0.05, rate 0.03, best": {"noise_std": 0.05, "learning_rate": 0.03, **BEST},
        "no hidden layer, rate 0.12, best": {"hidden": (), "learning_rate": 0.12, **BEST},
        "PyTorch's, rate 0.12, best": {"initialisation": "torch", "learning_rate": 0.12, **BEST},
        "PyTorch's, antithetic, rate 0.12, best": {
            "initialisation": "torch",
            "antithetic": True,
            "learning_rate": 0.12,
            **BEST,
        },
    },
}
"""Options by factor and value; what is not named is the default."""


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: the default, and every value of every factor."""
    suites = load_suites(*SUITES)
    main = acerl_training(study)
    rows = [replace(main, label=DEFAULT)]
    for factor, values in FACTORS.items():
        for value, options in values.items():
            rows.append(
                Training(f"{factor}: {value}", main.instances, study.config(**options), suites)
            )
    rows.append(Training(BEST_PRESET, main.instances, study.config("best"), suites))
    return rows


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Return a table for each suite."""
    return study.spread(results, NAME, "One setting changed at a time, played", SUITES, DEFAULT)
