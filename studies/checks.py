"""Checks by fresh seeds: the slots of the tasks, chosen by the paper's figures, and the preset `best`.

The default; the same with the tasks of each record called by their place in it, so that slot k is that of
the k-th arrival, and with slots in the order of the pool; the preset best; PPO with slots in that order.
"""

from __future__ import annotations

from dataclasses import replace

from acerl_np.problem.instance import Instance
from studies.comparison import DRAWS, SUITES, draw_suite
from studies.rivals.training import RivalConfig
from studies.study import Results, Study, Training, load_suites
from studies.study_tables import StudyTable

NAME, PLACES = "checks", "slots by place in the record"
BEST, POOL, PPO_POOL = (
    "preset best",
    "slots by place in the pool",
    "PPO, slots by place in the pool",
)
FIRST = 200
"""Seed of the first training: no other study has it."""


def number_by_place(record: Instance) -> Instance:
    """Return a record whose tasks are called by their place in it."""
    rows = [{**row, "task": f"task_{k}"} for k, row in enumerate(record.rows())]
    return Instance.from_rows(record.name, record.layout, rows)


def trainings(study: Study) -> list[Training]:
    """Return the rows to train: the default, slots by the tasks' places, `best`, PPO with such slots."""
    suites = load_suites(*SUITES)
    placed = tuple((name, tuple(map(number_by_place, own))) for name, own in suites)
    main = Training("ACERL", suites[0][1], study.config(), suites)
    draws = tuple((f"draw-5-{draw}", draw_suite(5, draw)) for draw in DRAWS)
    main_too = replace(main, suites=(*suites, *draws))
    ppo = RivalConfig("ppo", study.rival_steps, {"slots": "pool"})
    return [
        main,
        replace(main, label=PLACES, instances=placed[0][1], suites=placed),
        replace(main_too, label=BEST, config=study.config("best")),
        replace(main_too, label=POOL, config=study.config(slots="pool")),
        replace(main_too, label=PPO_POOL, config=ppo, seeds=study.rival_seeds),
    ]


def tables(study: Study, results: Results) -> list[StudyTable]:
    """Return a table for each suite."""
    return study.spread(results, NAME, "Fresh seeds", SUITES, "ACERL")
