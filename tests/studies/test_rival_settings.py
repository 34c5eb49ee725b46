"""The search of what is not known of the compared learners: its rows, and which of them is taken."""

import numpy as np

from studies.rival_settings import CANDIDATES, tables, trainings
from studies.study import Finished, Study


def test_the_search_takes_the_least_score_of_each_algorithm(tmp_path):
    labels = [row.label for row in trainings(Study(tmp_path, rivals=(*CANDIDATES,)))]
    assert len(set(labels)) == len(labels) == 40
    results = {}
    study = Study(tmp_path, rivals=("ppo",))
    for k, row in enumerate(trainings(study)):
        suite = {"dmh-train": np.full((8, 2), 1900.0 - k)}
        late = {"dmh-train": np.full((8, 2), 60.0 if k == 7 else 10.0)}
        results[row.label] = [Finished(0, (), suite, late, *[np.zeros(0)] * 5)] * 2
    [table] = tables(study, results)
    assert len(table.rows) == 8
    # The last has the shortest makespan, and 10 s beyond the limit weigh 40.
    assert [row[-1] for row in table.rows] == [""] * 6 + ["*", ""]
    assert table.rows[7][2] == "1933.0 and 1933.0"
