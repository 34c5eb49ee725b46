"""Draw what the study of generalisation says about budgets (extra `plot`).

    acerl-np experiments generalisation --out runs/experiments
    python benchmarks/plot_budgets.py runs/experiments docs/budgets.png --force
    python benchmarks/plot_budgets.py --quick       # tables of made-up runs, and a picture that is dropped

Reads `generalisation-noised-5.csv` and `generalisation-noised-30.csv`: mean makespan and its spread over
seeds by decisions, network and index policy.
"""

from __future__ import annotations

import argparse
import csv
import re
import tempfile
from pathlib import Path

import numpy as np

from acerl_np.commands.outputs import declare_outputs
from acerl_np.experiments.study_tables import Measured, spread_table

MAGNITUDES = (5, 30)
MILLIONS = {"network": 1.07, "best": 1.07}
LOOKS = {
    "network": ("o", "--", "the paper's network"),
    "best": ("s", "-", "index policy, best"),
}


def read_table(path: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Return (million decisions, mean, standard deviation) of each preset, by decisions."""
    found: dict[str, list[tuple[float, float, float]]] = {"network": [], "best": []}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            budget = re.fullmatch(r"(network|best)(?:, ([\d.]+) M)?", row["policy"])
            if budget is not None:
                millions = float(budget[2]) if budget[2] else MILLIONS[budget[1]]
                numbers = float(row["makespan_s"]), float(row["makespan_deviation_s"] or 0.0)
                found[budget[1]].append((millions, *numbers))
    return {name: sorted(points) for name, points in found.items()}


def draw(folder: Path, picture: Path) -> None:
    """Draw both tables of a study's folder."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), sharey=True, layout="constrained")
    for axis, magnitude in zip(axes, MAGNITUDES, strict=True):
        table = read_table(folder / f"generalisation-noised-{magnitude}.csv")
        for name, points in table.items():
            marker, line, label = LOOKS[name]
            x, mean, spread = zip(*points, strict=True)
            axis.errorbar(x, mean, spread, marker=marker, linestyle=line, capsize=3, label=label)
        axis.set_xscale("log")
        axis.set_xticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
        axis.minorticks_off()
        axis.set_xlabel("million decisions")
        axis.set_title(f"noised by up to {magnitude} s")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("mean makespan (s)")
    axes[0].legend(frameon=False)
    figure.savefig(picture, dpi=150)


def write_tables(folder: Path) -> None:
    """Write tables as the study does, of two records, three seeds and four trials."""
    rng = np.random.default_rng(0)
    labels = ("best", "best, 0.3 M", "network", "network, 3 M", "best, linear, 3 M")
    for magnitude in MAGNITUDES:
        times = rng.uniform(1850.0, 1950.0, (len(labels), 2, 3, 4))
        rows = [Measured(label, x, x - 1850.0) for label, x in zip(labels, times, strict=True)]
        name = f"generalisation-noised-{magnitude}"
        text = spread_table(name, "", rows, "best").render("csv")
        (folder / f"{name}.csv").write_text(text, "utf-8")
        read = read_table(folder / f"{name}.csv")
        assert [point[0] for point in read["network"]] == [1.07, 3.0]
        assert np.isclose(read["best"][1][1], times[0].mean())


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="the study's tables as CSV")
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--force", action="store_true", help="replace that file")
    parser.add_argument("--quick", action="store_true", help="of made-up tables")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            write_tables(Path(folder))
            draw(Path(folder), Path(folder) / "budgets.png")
        return
    if options.picture is None:
        parser.error("expected a folder of tables and a picture")
    read = [str(path) for path in options.folder.glob("*.csv")]
    named = argparse.Namespace(force=options.force, tables=read)
    declare_outputs(named, [options.picture], option="picture")
    draw(options.folder, options.picture)


if __name__ == "__main__":
    main()
