"""How late the latest task is, and what comes of peaks: `general` with and without what relieves it.

    python benchmarks/peaks.py --out peaks.csv                      2 minutes of a core
    python benchmarks/peaks.py --quick

Six days of seven hours each on the bundled plants with three and four vehicles: steady loads, an hour of a
higher load or half an hour of a lull and what it held back, bursts of twenty tasks at a load of 0.8, and due
times that are 0.4 times as long. `before` hands over to `nearest`, and has no guard.
"""

from functools import lru_cache

from script import make_parser

import acerl_np
from acerl_np.evaluation.trials import Playing, play_policy
from acerl_np.policies.general import make_general
from acerl_np.problem.goal import SHIFT, Goal
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import resize_fleet
from acerl_np.problem.shift import HANDLING, find_scale, generate_shift
from acerl_np.support.report import render_csv

HOUR, SEED, STEADY = 3600.0, 4242, (0.8, 0.95, 1.0, 1.1, 1.2, 1.3)
DAYS: dict[str, list[tuple[float, float]]] = {
    **{f"{load:g}": [(9.0, load)] for load in STEADY},
    "mild peak": [(1.0, 0.75), (2.0, 1.05), (9.0, 0.75)],
    "peak of 0.8": [(1.0, 0.8), (2.0, 1.6), (9.0, 0.8)],
    "peak of 0.95": [(1.0, 0.95), (2.0, 1.9), (9.0, 0.95)],
    "lull": [(2.0, 0.95), (2.5, 0.2), (3.0, 1.7), (9.0, 0.95)],
    "bursts": [(9.0, 0.8)],
    "0.8, due x 0.4": [(9.0, 0.8)],
    "0.95, due x 0.4": [(9.0, 0.95)],
}
"""Loads until so many hours after the start."""

find_scale_once = lru_cache(find_scale)


def make_day(layout: acerl_np.Layout, name: str, index: int) -> Instance:
    """Return a day that is put together of days of several loads."""
    rows, begin = [], 0.0
    for hours, load in DAYS[name]:
        how = {"scale": find_scale_once(layout, load), "handling_time": HANDLING}
        day = generate_shift(layout, hours=7.0, **how, seed=SEED, index=index)
        rows += [row for row in day.rows() if begin <= row["arrival_time"] < hours * HOUR]
        begin = hours * HOUR
    if name == "bursts":
        for moment in range(2700, 21600, 5400):
            for row in [row for row in rows if row["arrival_time"] >= moment][:20]:
                row["arrival_time"] = float(moment)
    for k, row in enumerate(sorted(rows, key=lambda row: row["arrival_time"])):
        row["task"] = f"t{k}"
        if name.endswith("0.4"):
            row["expiry_time"] = max(1, round(0.4 * row["expiry_time"]))
    return Instance.from_rows(f"{layout.name} {name} {index}", layout, rows)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--out", default="peaks.csv")
    options = parser.parse_args()
    n, plants = (1, ["supply-loop"]) if options.quick else (6, ["supply-loop", "cross-aisles"])
    general = make_general("late")
    players = {
        "nearest": "nearest",
        "STD": "STD",
        "before": general.switch(10.0),
        "general": general,
    }
    rows: list[list[object]] = []
    figures = "value", "late", "tardiness", "waiting", "worst"
    playing = Playing(trials=1, goal=Goal(SHIFT), threads=1)
    for layout in [resize_fleet(acerl_np.load_layout(x), k) for x in plants for k in (3, 4)]:
        for name in list(DAYS)[: 2 if options.quick else None]:
            days = [make_day(layout, name, index) for index in range(n)]
            for label, player in players.items():
                played = play_policy(player, days, playing)
                for index in range(n):
                    own = (f"{getattr(played, x)[index, 0]:.5g}" for x in figures)
                    rows.append([layout.name, len(layout.vehicles), name, label, index, *own])
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(render_csv([["floor", "vehicles", "day", "policy", "index", *figures], *rows]))


if __name__ == "__main__":
    main()
