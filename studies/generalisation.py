"""Days that nobody has seen: forms of policy, their features, budgets, lookahead, and two honest judges.

Not a study of the paper. The judged records are noised copies of the training records, a record that a fold
has left out, and fresh records of one process. Settings were chosen on noised copies of other seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acerl_np.policies.index import NAMES
from acerl_np.problem.bundled import load_layout, load_suite
from acerl_np.problem.generate import generate_record, perturb
from acerl_np.problem.instance import Instance
from acerl_np.training.settings import Preset
from studies import study_tables
from studies.rivals.training import RivalConfig
from studies.study import Results, Study, Suites, Training

PAIR = ("approach", "loaded", "slack", "lateness", "waiting")
FIVE = ("approach", "loaded", "total_late", "empty", "imbalance")

NAME = "generalisation"
BASE = "best"
DRAWS = 10
FIRST_DRAW = 3000
"""Seeds of the judged noised copies; those that features and settings were chosen on lie below."""
MAGNITUDES = (5, 30)
BUDGETS = {"0.3": 300_000, "1.07": 1_070_000, "3": 3_000_000, "10": 10_000_000}
FIRST_SET, FRESH_SETS, FRESH_TRAINING, FRESH_UNSEEN = 10, 5, 8, 100
"""Sets of fresh records: what can be learned from eight days depends on the eight."""
RULES = (*study_tables.RULE_ROWS, "nearest")

LOOKAHEADS: dict[str, dict[str, Any]] = {
    "known tasks": {"futures": 0},
    **{f"{n}, match": {"futures": n} for n in (8, 32)},
    **{f"{n}, even": {"futures": n, "weights": "even"} for n in (8, 32)},
}

FORMS: dict[str, dict[str, Any]] = {
    "planned breakdowns ignored": {"planned_breakdowns": False},
    "one sigma": {"spread": "one", "learning_rate": 0.3, "noise_decay": 0.99},
    "diagonal covariance": {"spread": "diagonal"},
    "last mean": {"outcome": "last"},
    "ranking isr": {"ranking": "isr"},
    "ranking isr, p_f 0": {"ranking": "isr", "p_f": 0.0},
    "not perturbed": {"perturb": 0},
    "perturbed by 10": {"perturb": 10},
    "perturbed by 60": {"perturb": 60},
    "half synthetic": {"synthetic": 0.5},
    "all synthetic": {"synthetic": 1.0},
    "margin 0": {"margin": 0.0},
    "penalty 1": {"penalty": 1.0},
    "penalty 10": {"penalty": 10.0},
    "the pair alone": {"features": PAIR},
    "five features": {"features": FIVE},
}
"""Options beside the preset's."""

FRESH_FEW: dict[str, dict[str, Any]] = {"two days": {}, "two days, not perturbed": {"perturb": 0}}
"""Options of policies that are trained on the first two of eight days."""


def noised_suites(records: Sequence[Instance]) -> Suites:
    """Return the judged noised copies of some records: ten draws of each magnitude."""

    def draw(record: Instance, m: int, k: int) -> Instance:
        return perturb(record, m, seed=FIRST_DRAW + k, name=f"{record.name}-N{m}-{k}")

    return tuple(
        (f"noised-{m}", tuple(draw(record, m, k) for k in range(DRAWS) for record in records))
        for m in MAGNITUDES
    )


def fresh_records(n: int, first: int, seed: int) -> tuple[Instance, ...]:
    """Return records of one process on the DMH floor: as many tasks as in the benchmark, due as soon."""
    layout = load_layout("dmh")
    kind: dict[str, Any] = {"rate": 66.0, "slack": 3.2, "sites": "all", "seed": seed}
    return tuple(
        generate_record(layout, 30, **kind, index=first + k, name=f"day-{k}") for k in range(n)
    )


def trainings(study: Study) -> list[Training]:
    """Return the rows to train."""
    records = tuple(load_suite("dmh-train"))
    suites = (("dmh-train", records), *noised_suites(records))
    rows: list[Training] = []

    def add(
        label: str,
        preset: Preset = "best",
        *,
        own: tuple[Instance, ...] = records,
        play: Suites = suites,
        ahead: Sequence[str] = (),
        **options: Any,
    ) -> None:
        config = study.config(preset, **{"decisions": BUDGETS["1.07"], **options})
        rows.append(Training(label, own, config, play, {x: LOOKAHEADS[x] for x in ahead}))

    add(BASE, ahead=list(LOOKAHEADS))
    for label, options in FORMS.items():
        add(label, **options)
    steps = BUDGETS["1.07"] if study.generations is None else 1000 * study.generations
    ppo = RivalConfig("ppo", steps, {"look_every": 0})
    rows.append(Training("PPO", records, ppo, suites, seeds=study.rival_seeds))
    for name in NAMES:
        add(f"without {name}", features=tuple(other for other in NAMES if other != name))
    for label, decisions in BUDGETS.items():
        if label != "1.07":
            add(f"best, {label} M", decisions=decisions)
    for left_out in records:
        others = tuple(record for record in records if record is not left_out)
        unseen = (("itself", (left_out,)), *noised_suites([left_out]))
        add(
            f"left out {left_out.name}",
            own=others,
            play=unseen,
            ahead=("known tasks", "32, match", "32, even"),
        )
    for k in range(FIRST_SET, FIRST_SET + FRESH_SETS):
        days = fresh_records(FRESH_TRAINING, 0, k)
        later = (("fresh", fresh_records(FRESH_UNSEEN, FRESH_TRAINING, k)),)
        add(f"fresh best, set {k}", own=days, play=later, ahead=("known tasks", "32, even"))
        rows.append(Training(f"fresh PPO, set {k}", days, ppo, later, seeds=1))
        for label, options in FRESH_FEW.items():
            add(f"fresh {label}, set {k}", own=days[:2], play=later, **options)
    return rows


def tables(study: Study, results: Results) -> list[study_tables.StudyTable]:
    """Return the tables: forms and features by suite, budgets, lookahead, left out, fresh."""
    found = []
    folds = [label for label in results if label.startswith("left out ")]
    fresh = [label for label in results if label.startswith("fresh")]
    main = {label: runs for label, runs in results.items() if label not in {*folds, *fresh}}
    records = load_suite("dmh-train")
    for suite, instances in (("dmh-train", records), *noised_suites(records)):
        rows = study.rows(main, suite)
        rows += study.rows({BASE: results.get(BASE, [])}, suite, ahead=True)
        rows += study.rule_rows(suite, instances, rules=RULES)
        title = f"Forms, features, budgets and lookahead, played on {suite}"
        found.append(
            study_tables.spread_table(f"{NAME}-{suite.removeprefix('dmh-')}", title, rows, BASE)
        )
    for suite in ("itself", *(f"noised-{m}" for m in MAGNITUDES)):
        joined = join_sets(study, {label: results[label] for label in folds}, suite, "left out")
        title = f"Trained on the seven other records, played on {suite}"
        if joined:
            found.append(
                study_tables.spread_table(f"{NAME}-left-out-{suite}", title, joined, "left out")
            )
    rows = []
    for kind in ("best", "PPO", *FRESH_FEW):
        own = {label: results[label] for label in fresh if label.startswith(f"fresh {kind}, set")}
        rows += join_sets(study, own, "fresh", f"fresh {kind}")
    if rows:
        unseen = [
            record
            for k in range(FIRST_SET, FIRST_SET + FRESH_SETS)
            for record in fresh_records(FRESH_UNSEEN, FRESH_TRAINING, k)
        ]
        rows += study.rule_rows("fresh", unseen, rules=RULES)
        title = "Fresh records of one process, trained on eight: five sets"
        found.append(study_tables.spread_table(f"{NAME}-fresh", title, rows, "fresh best"))
    return found


def join_sets(
    study: Study, results: Results, suite: str, label: str
) -> list[study_tables.Measured]:
    """Return the rows of several trainings as if they were one on all their records."""
    return study_tables.join_rows(
        row
        for runs in results.values()
        for ahead in (False, True)
        for row in study.rows({label: runs}, suite, ahead=ahead)
    )
