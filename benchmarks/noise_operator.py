"""How many arrivals the paper's noise moved: the likelihood of its printed cells, for several guesses.

    python benchmarks/noise_operator.py                # 120 draws; five minutes on two cores
    python benchmarks/noise_operator.py --draws 300

The paper says that arrivals are moved at random by up to n seconds, and not how many: arrivals of 0 stay
(instances/README.md), 25 others may move. For each guess records are drawn so and played by four rules. The
mean makespans and tardinesses are taken as normally distributed over the draws of a record. Printed is the
log likelihood of the paper's cells of these rules, summed over the records, less that of 25. Cells of
learners cannot be weighed: their policies are not published, and with ours a guess would judge itself.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal
from script import make_parser

import acerl_np
from acerl_np.evaluation.published import table_rows

RULES = ("FCFS", "EDD", "NVF", "STD")
MOVED = (5, 8, 10, 12, 25)
TABLES = {5: "comparison-test", **{n: f"robustness-{n}" for n in (10, 15, 20, 25, 30)}}


def draw(
    record: acerl_np.Instance, magnitude: int, moved: int, rng: np.random.Generator
) -> acerl_np.Instance:
    """Return the record with so many of its later arrivals moved."""
    rows = record.rows()
    later = [k for k, row in enumerate(rows) if row["arrival_time"] > 0.0]
    for k in rng.choice(later, min(moved, len(later)), replace=False):
        noise = int(rng.integers(-magnitude, magnitude + 1))
        rows[k]["arrival_time"] = max(0.0, rows[k]["arrival_time"] + noise)
    return acerl_np.Instance.from_rows(record.name, record.layout, rows)


def weigh(
    record: acerl_np.Instance,
    magnitude: int,
    moved: int,
    cells: np.ndarray,
    draws: int,
    trials: int,
) -> float:
    """Return the log likelihood of a record's cells, ndarray(float64, (n_rules, 2))."""
    rng = np.random.default_rng([magnitude, moved])
    days = [draw(record, magnitude, moved, rng) for _ in range(draws)]
    played = [acerl_np.evaluate_policy(rule, days, trials=trials) for rule in RULES]
    means = np.array([[x.makespan.mean(axis=1), x.tardiness.mean(axis=1)] for x in played])
    values = means.reshape(-1, draws)
    # A rounding of 0.1 keeps the covariance of rules that hardly vary from being singular.
    return float(
        multivariate_normal(
            values.mean(axis=1), np.cov(values) + 0.01 * np.eye(len(values))
        ).logpdf(cells.ravel())
    )


def main() -> None:
    """Print a line for each magnitude, and the sum."""
    parser = make_parser(__doc__)
    parser.add_argument("--draws", type=int, default=120)
    parser.add_argument("--trials", type=int, default=30)
    arguments = parser.parse_args()
    records = acerl_np.load_suite("dmh-train")
    tables = dict([*TABLES.items()][:1]) if arguments.quick else TABLES
    draws, trials = (20, 3) if arguments.quick else (arguments.draws, arguments.trials)
    print("moved".rjust(9) + "".join(f"{moved:9}" for moved in MOVED))
    total = np.zeros(len(MOVED))
    for magnitude, table in tables.items():
        rows = {row.policy: [*row.cells.values()] for row in table_rows(table)}
        found = np.zeros(len(MOVED))
        for k, record in enumerate(records):
            cells = np.array([rows[rule][k][:2] for rule in RULES])
            found += [weigh(record, magnitude, moved, cells, draws, trials) for moved in MOVED]
        print(
            f"±{magnitude}".rjust(9) + "".join(f"{x:9.1f}" for x in found - found[-1]), flush=True
        )
        total += found - found[-1]
    print("all".rjust(9) + "".join(f"{x:9.1f}" for x in total))


if __name__ == "__main__":
    main()
