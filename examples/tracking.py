"""Log a training to a tracking server: parameters once, metrics by decisions, the policy's file at the end.

`Tracker` names what is called: `log_params`, `log_metrics` and `log_artifact`, as the module `mlflow` has
them. So `track(mlflow, ...)` inside `with mlflow.start_run():` logs there, and nothing of it is imported
here; other clients need a class of three short methods, such as `Printer`.

    python examples/tracking.py [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any, Protocol

import acerl_np

METRICS = ("return_mean", "return_std", "cost_mean", "satisfied", "noise_std")


class Tracker(Protocol):
    """What a tracking server's client has to offer."""

    def log_params(self, params: dict[str, Any]) -> Any:
        """Note the options of the run."""

    def log_metrics(self, metrics: dict[str, float], step: int) -> Any:
        """Note numbers that belong to a step."""

    def log_artifact(self, local_path: str) -> Any:
        """Keep a file."""


class Printer:
    """A tracker that prints."""

    def log_params(self, params: dict[str, Any]) -> None:
        """Print them on one line."""
        print(", ".join(f"{name} {value}" for name, value in params.items()))

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Print them on one line."""
        shown = ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        print(f"{step:>9,} decisions: {shown}")

    def log_artifact(self, local_path: str) -> None:
        """Print how large it is."""
        print(f"{Path(local_path).name}: {Path(local_path).stat().st_size:,} bytes")


def track(tracker: Tracker, trainer: acerl_np.ACERL, every: int = 16) -> None:
    """Train to the end, and log every so many generations."""
    names = [instance.name for instance in trainer.instances]
    tracker.log_params({"seed": trainer.seed, **trainer.config.to_dict()})

    def log(record: Any) -> None:
        # It returns nothing: what is true would stop the training.
        if record.generation % every == 0:
            metrics = {name: float(getattr(record, name)) for name in METRICS}
            shares = zip(names, record.counts, strict=True)
            metrics |= {f"share_{name}": n / sum(record.counts) for name, n in shares}
            tracker.log_metrics(metrics, step=record.decisions)

    trainer.run(log)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.npz"
        trainer.policy.save(path)
        tracker.log_artifact(str(path))


def main() -> None:
    """Train on the eight records of the paper."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="16 generations")
    arguments = parser.parse_args()
    config = acerl_np.Config(generations=16 if arguments.quick else 128)
    track(Printer(), acerl_np.ACERL(acerl_np.load_suite("dmh-train"), config))


if __name__ == "__main__":
    main()
