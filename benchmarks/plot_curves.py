"""Training curves of the paper's eleven algorithms on each training record, from the stored studies.

python benchmarks/plot_curves.py docs/results docs/results/curves.png --force
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from acerl_np.experiments.claims import LEARNERS, read_curves
from acerl_np.experiments.stored import StoredStudy
from acerl_np.problem.bundled import load_suite

LIMIT = 50.0


def draw(folder: Path, path: Path) -> None:
    """Draw makespan and tardiness by decisions, a column for each record; ACERL is red, as in the paper."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = read_curves(StoredStudy(folder))
    records = load_suite("dmh-train")
    figure, axes = pyplot.subplots(4, 4, figsize=(14, 10), sharex=True, layout="constrained")
    colours = pyplot.get_cmap("tab20")
    for name in [*[x for x in LEARNERS if x in curves], "ACERL"]:
        looks = [*curves[name].values()]
        n = min(map(len, looks))
        mean = np.mean([own[:n] for own in looks], axis=0)
        colour = "red" if name == "ACERL" else colours(LEARNERS.index(name))
        style = {"color": colour, "linewidth": 2.0 if name == "ACERL" else 1.0, "label": name}
        for k, record in enumerate(records):
            column, row = k % 4, 2 * (k // 4)
            for below, which in enumerate((1, 2)):
                axis = axes[row + below, column]
                axis.plot(mean[:, k, 0] / 1e6, mean[:, k, which], **style)
                axis.set_title(f"{record.name}, {('makespan', 'tardiness')[below]} (s)", fontsize=9)
    for k in range(8):
        axes[2 * (k // 4) + 1, k % 4].axhline(LIMIT, color="black", linestyle="--", linewidth=0.8)
    for axis in axes[-1]:
        axis.set_xlabel("million decisions")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=11, fontsize=8
    )
    figure.savefig(path, dpi=80)


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/results"))
    parser.add_argument("picture", type=Path, nargs="?", default=Path("curves.png"))
    parser.add_argument("--force", action="store_true", help="replace the picture")
    parser.add_argument("--quick", action="store_true", help="read the curves, draw nothing")
    arguments = parser.parse_args()
    if arguments.quick:
        print(", ".join(read_curves(StoredStudy(arguments.folder))))
        return
    if arguments.picture.exists() and not arguments.force:
        sys.exit(f"{arguments.picture} exists; --force replaces it")
    draw(arguments.folder, arguments.picture)


if __name__ == "__main__":
    main()
