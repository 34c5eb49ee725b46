"""Draw what the study of generalisation says about budgets (extra `plot`).

    acerl-np experiments generalisation
    python benchmarks/plot_budgets.py runs/experiments docs/budgets.png --force

Reads `generalisation-noised-5.csv` and `generalisation-noised-30.csv`: mean makespan and its spread over
seeds by decisions, network and index policy.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from acerl_np.support.outputs import check_outputs

MILLIONS = {"network": 1.07, "best": 1.07}


def read_table(path: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Return (million decisions, mean, standard deviation) of each preset, by decisions."""
    found: dict[str, list[tuple[float, float, float]]] = {"network": [], "best": []}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            budget = re.fullmatch(r"(network|best)(?:, ([\d.]+) M)?", row[0]) if row else None
            if budget is None:
                continue
            numbers = [float(x) for x in re.findall(r"\d+(?:\.\d+)?", row[2])]
            millions = float(budget[2]) if budget[2] else MILLIONS[budget[1]]
            found[budget[1]].append((millions, numbers[0], numbers[1]))
    return {name: sorted(points) for name, points in found.items()}


def main(folder: str, picture: str, force: str = "") -> None:
    """Draw."""
    import matplotlib.pyplot as plt

    tables = Path(folder).glob("*.csv")
    check_outputs([picture], tables, force=force == "--force", option="picture")
    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.2), sharey=True, layout="constrained")
    looks = {
        "network": ("o", "--", "the paper's network"),
        "best": ("s", "-", "index policy, best"),
    }
    for axis, magnitude in zip(axes, (5, 30), strict=True):
        table = read_table(Path(folder) / f"generalisation-noised-{magnitude}.csv")
        for name, points in table.items():
            marker, line, label = looks[name]
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


if __name__ == "__main__":
    main(*sys.argv[1:4])
