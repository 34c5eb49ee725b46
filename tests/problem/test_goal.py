"""What a floor wants: texts of objectives, defaults, and who follows them."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables_and_refusals import list_unrefused
from worlds import make_task

import acerl_np
from acerl_np import ACERL, Config, ConfigError, Instance, load_instance
from acerl_np.evaluation.trials import evaluate_policy
from acerl_np.problem.goal import MEASURES, PAPER, SHIFT, Goal, read_objective, write_objective
from studies.rivals import RivalTrainer

WEIGHTS = st.one_of(st.just(1.0), st.integers(1, 10**6).map(lambda k: k / 1000))


@given(st.dictionaries(st.sampled_from(list(MEASURES)), WEIGHTS, min_size=1))
def test_an_objective_that_is_written_is_read(weights):
    assert read_objective(write_objective(weights)) == weights


def test_objectives_in_their_shortest_form_or_none():
    assert Goal(" 1*late + 0.050*tardiness").objective == SHIFT == "late+0.05*tardiness"
    assert Goal("2e-3*makespan").objective == "0.002*makespan"
    texts = ["", "speed", "late+late", "0*late", "-1*late", "late+", "late*2"]
    texts += ["1e9*late", "1.2.3*late"]
    cases = [(text, f"objective: read '{text}'; expected weighted measures") for text in texts]
    assert list_unrefused(Goal, cases, ConfigError) == []
    cases = [(text, "cost: read") for text in texts]
    assert list_unrefused(lambda text: Config(cost=text), cases, ConfigError) == []
    weights = [(0.0,), (-1.0,), ("1",), (math.nan,), (1.0,) * 101, 3, None]
    cases = [(own, "class_weights: ") for own in weights]
    assert list_unrefused(lambda own: Goal(class_weights=own), cases, ConfigError) == []


def test_only_the_makespan_has_a_limit_by_itself():
    assert (PAPER.objective, PAPER.cost, PAPER.cost_limit) == ("makespan", "tardiness", 50.0)
    assert not Goal("late").has_limit
    assert not Goal(cost="late").has_limit
    assert Goal("waiting", "late", 2.0).limit == "2 %"
    assert Goal("late").show(1.234) == "1.23 %"
    assert Goal(SHIFT).show(1.234) == "1.23"
    assert Goal.from_dict(Goal("late", cost_limit=math.inf).to_dict()) == Goal("late")
    assert Goal.from_dict(PAPER.to_dict()) == PAPER


def make_shift(n_tasks, gap):
    layout = load_instance("DMH-01").layout
    ends = itertools.cycle(itertools.permutations([site.id for site in layout.sites], 2))
    rows = [make_task(f"t{k}", *next(ends), k * gap, 60.0) for k in range(n_tasks)]
    return Instance.from_rows("shift", layout, rows)


def test_the_records_choose_the_objective_of_index_policies():
    sizes = ((100, 1, False), (101, 1, True), (3, 1800, False), (3, 1801, True))
    for n_tasks, gap, is_shift in sizes:
        records = [load_instance("DMH-01"), make_shift(n_tasks, gap)]
        chosen = Config(form="index").resolve(records)
        assert chosen.objective == (SHIFT if is_shift else "makespan")
        assert chosen.cost_limit == (None if is_shift else 50.0)
        assert Config(form="index", objective="empty").resolve(records).objective == "empty"
        # The paper's network keeps the paper's objective.
        assert Config().resolve(records) == Config(objective="makespan", cost_limit=50.0)


def test_a_training_follows_its_objective(tmp_path):
    records = [make_shift(12, 40), make_shift(12, 60)]
    records = [Instance.from_rows(f"r{k}", one.layout, one.rows()) for k, one in enumerate(records)]
    how = {"generations": 2, "population": 4, "ranking": "penalty", "curve_every": 1}
    config = Config(form="index", objective="late+0.05*waiting", **how)
    trainer = ACERL(records, config, seed=1)
    trainer.run()
    last = trainer.curve[-1]
    own = evaluate_policy(trainer.policy, records, trials=1, objective=Goal("late+0.05*waiting"))
    assert last.value.tolist() == own.value[:, 0].tolist()
    assert last.value.tolist() == (100 * own.late + 0.05 * own.waiting)[:, 0].tolist()
    trainer.write_curves(tmp_path / "curves.csv")
    header, *lines = (tmp_path / "curves.csv").read_text().split()
    assert header == "generation,decisions,instance,makespan,tardiness,satisfied,value"
    assert float(lines[-1].rpartition(",")[2]) == round(last.value[1], 4)
    # A checkpoint keeps the objective, and its curve.
    trainer.save(tmp_path / "run.npz")
    again = ACERL.resume(tmp_path / "run.npz")
    assert again.config == trainer.config
    assert again.curve[-1].value.tolist() == last.value.tolist()


def test_a_learner_is_paid_by_its_objective():
    records = acerl_np.load_suite("dmh-train")[:2]
    settings = {"hidden": (8,), "look_every": 0, "episodes": 4, "collect": 200, "repeats": 1}
    trainer = RivalTrainer("ppo", records, steps=1000, settings={**settings, "objective": "late"})
    trainer.run()
    ended = [line for line in trainer.history if line.episodes]
    assert ended
    for line in ended:
        # Percent of 30 tasks, in the mean over these episodes.
        assert -100.0 <= line.return_mean <= 0.0
        share = -line.return_mean * line.episodes * 30 / 100
        assert share == pytest.approx(round(share), abs=1e-6)
