"""Leave-one-out: train on seven of the eight instances, play all eight (the paper's cross-validation)."""

from __future__ import annotations

from acerl_np.problem.bundled import load_suite
from studies import study_tables
from studies.study import Results, Study, Training

NAME = "leave-one-out"


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: one per fold, and per fold one for each learner that is compared."""
    instances = load_suite("dmh-train")
    found = []
    for left_out in instances:
        fold = Training(
            f"without {left_out.name}",
            tuple(instance for instance in instances if instance is not left_out),
            study.config(),
            (("dmh-train", tuple(instances)),),
        )
        found += [fold, *study.beside(fold, f"{{}} without {left_out.name}")]
    return found


def tables(study: Study, results: Results) -> list[study_tables.StudyTable]:
    """Return one table per fold, and all folds on the record that each has left out."""
    instances = load_suite("dmh-train")
    rules = study.rule_rows("dmh-train", instances)
    found = []
    unseen: list[study_tables.Measured] = []
    for k, left_out in enumerate(instances, start=1):
        runs = {
            name: results[
                f"{name} without {left_out.name}" if beside else f"without {left_out.name}"
            ]
            for name, beside in [("ACERL", False), *((x.upper(), True) for x in study.rivals)]
        }
        name, title = f"leave-one-out-{k:02d}", f"Trained without {left_out.name}"
        rows = [*study.rows(runs, "dmh-train"), *rules]
        found.append(study_tables.build_table(name, title, instances, rows, same_records=True))
        part = slice(k - 1, k)
        unseen += (
            study_tables.Measured(x.label, x.makespan[part], x.tardiness[part]) for x in rows
        )
    title = "The record that each fold has left out, all eight folds together"
    return [
        *found,
        study_tables.spread_table("leave-one-out-unseen", title, study_tables.join_rows(unseen)),
    ]
