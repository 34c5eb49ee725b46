"""Leave-one-out: train on seven of the eight instances, play all eight (the paper's cross-validation)."""

from __future__ import annotations

from acerl_np.experiments.published import table_rows
from acerl_np.experiments.study import Finished, Study, Training, build_table
from acerl_np.experiments.tables import StudyTable
from acerl_np.problem.instance import load_suite

NAME = "leave-one-out"


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: one per fold."""
    instances = load_suite("dmh-train")
    return [
        Training(
            f"without {left_out.name}",
            tuple(instance for instance in instances if instance is not left_out),
            study.config(),
            (("dmh-train", tuple(instances)),),
        )
        for left_out in instances
    ]


def tables(study: Study, results: dict[str, list[Finished]]) -> list[StudyTable]:
    """Return one table per fold."""
    instances = load_suite("dmh-train")
    rules = study.rule_rows(instances)
    found = []
    for k, left_out in enumerate(instances, start=1):
        runs = {"ACERL": results[f"without {left_out.name}"]}
        published = table_rows(f"leave-one-out-{k:02d}")
        layout = build_table(
            instances,
            [*study.rows(runs, "dmh-train"), *rules],
            published,
            reference="ACERL",
            pool_published=published,
        )
        title = f"Trained without {left_out.name}"
        found.append(StudyTable(f"leave-one-out-{k:02d}", title, *layout))
    return found
