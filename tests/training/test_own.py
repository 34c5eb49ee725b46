"""Own objectives, costs, rankings and samplers: as those built in, found by name, refused in a line."""

import copy
import gc
import importlib
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import own_goals
import pytest
from tables_and_refusals import list_unrefused
from trainings import GENERATIONS, JIT, load_instances

from acerl_np import ACERL, Config, Lookahead, Simulator, evaluate_policy, load_policy
from acerl_np.commands.main import main
from acerl_np.evaluation.hindsight import find_references
from acerl_np.evaluation.judge import judge
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.evaluation.trials import Playing
from acerl_np.evolution import Evolution, InstanceSampler, rank_utilities
from acerl_np.kernels.core.state import read_outcome
from acerl_np.problem.goal import Goal
from acerl_np.support.errors import CheckpointError, ConfigError, InputError, PolicyError
from studies.rivals import RivalTrainer

LIMIT = 5.0
TEXTS = {"objective": "late+0.05*tardiness", "cost": "late", "ranking": "f", "sampler": "uniform"}
OWN = {
    "objective": own_goals.shift,
    "cost": own_goals.late,
    "ranking": own_goals.by_return,
    "sampler": own_goals.Turns,
}
FORMS = {
    "network": {"hidden": (4,)},
    "index": {"form": "index", "spread": "full", "records_per_member": 2},
}
GOAL = Goal(own_goals.shift, own_goals.late, LIMIT)


def start(form, options, threads=1, n=2, **how):
    small = {"generations": GENERATIONS, "population": 6, "curve_every": 1, "outcome": "best"}
    config = Config(**{**small, **FORMS[form], "cost_limit": LIMIT, **options})
    return ACERL(load_instances(n), config, seed=3, threads=threads, **how)


def run(*given, **how):
    trainer = start(*given, **how)
    trainer.run()
    return trainer


def tell(trainer):
    """All that a training shows."""
    points = [np.stack([x.makespan, x.satisfied, x.value]).tobytes() for x in trainer.curve]
    figures = [(x.return_mean, x.cost_mean, x.satisfied, x.counts) for x in trainer.history]
    return trainer.search.mean.tobytes(), trainer.policy.theta.tobytes(), points, figures


@pytest.mark.parametrize("form", FORMS)
def test_ones_own_does_as_its_twin_that_is_built_in(form):
    built_in = tell(run(form, TEXTS))
    for name in ("objective", "cost", "sampler"):
        assert tell(run(form, {**TEXTS, name: OWN[name]})) == built_in, name
    # A ranking of one's own compares all members: of one record, as the one built in does within each.
    own, other = ({**TEXTS, "ranking": x} for x in (own_goals.by_return, "f"))
    assert tell(run(form, own, n=1)) == tell(run(form, other, n=1))


def test_what_a_ranking_is_told_and_what_comes_of_it():
    told = []

    def rank(returns, costs, ids):
        told.append((returns.tolist(), costs.tolist(), ids.tolist()))
        return returns + 100 * ids

    given = ([9.0, np.nan, 3.0, 4.0], [5.0, 6.0, 7.0, np.inf], [0, 0, 1, 1])
    assert rank_utilities(*given, ranking=rank, shaping="rank").tolist() == [9.0, 8.0, 103.0, 8.0]
    assert told == [([9.0, 3.0], [5.0, 7.0], [0, 1])]
    # Standardised over the population alone: that the second record's members are better stays.
    assert rank_utilities([1.0, 1.0], [0, 0], [0, 1], ranking=rank).tolist() == [-1.0, 1.0]
    assert rank_utilities([np.nan], [0.0], [0], ranking=rank).tolist() == [0.0]


@pytest.mark.skipif(not JIT, reason="what workers compile")
def test_workers_need_none_of_it():
    own = {
        "objective": lambda measures: own_goals.shift(measures),
        "cost": lambda measures: own_goals.late(measures),
        "ranking": lambda *given: own_goals.by_return(*given),
        "sampler": lambda *given: own_goals.Turns(*given),
    }
    how = {"trials": 1, "objective": own["objective"]}
    with ProcessPoolExecutor(1) as pool:
        trainer = run("index", own, executor=pool)
        trials = evaluate_policy(trainer.policy, load_instances(), executor=pool, **how)
    assert tell(trainer) == tell(run("index", OWN))
    expected = evaluate_policy(trainer.policy, load_instances(), **how)
    assert trials.value.tobytes() == expected.value.tobytes()


def test_a_sampler_itself_is_copied():
    mine = own_goals.Turns(2, 3)
    config = {**TEXTS, "sampler": mine}
    one, again, built_in = (tell(run("network", x)) for x in (config, config, TEXTS))
    assert one == again == built_in
    assert not mine.count.any() and start("network", config).sampler is not mine


def test_whoever_plays_asks_the_function():
    records, text = load_instances(), Goal(TEXTS["objective"], TEXTS["cost"], LIMIT)
    own, other = (evaluate_policy("EDD", records, trials=2, objective=x) for x in (GOAL, text))
    assert np.array_equal(own.value, other.value) and np.array_equal(own.cost, other.cost)
    assert own.satisfied == other.satisfied
    trace = trace_policy("EDD", records[0], objective=GOAL)
    assert trace.value == 0.05 * trace.tardiness + 100.0 * trace.late
    simulator = Simulator(records, goal=GOAL)
    assert np.isnan(simulator.value).all()
    while not simulator.done.all():
        simulator.step(simulator.action_mask.argmax(axis=1))
    played = read_outcome(simulator.state)
    assert simulator.value.tolist() == (0.05 * played.tardiness + 100.0 * played.late).tolist()
    assert simulator.cost.tolist() == (100.0 * played.late).tolist()
    # What did not end is not told.
    stopped = evaluate_policy("EDD", records, trials=1, horizon=50.0, objective=own_goals.raises)
    assert np.isnan(stopped.value).all() and stopped.unfinished == 2


def test_other_learners_ask_it_too():
    steps = 200 if JIT else 20
    trained = []
    for options in (OWN, TEXTS):
        own = {name: options[name] for name in ("objective", "cost")}
        settings = {**own, "cost_limit": LIMIT, "hidden": (4,), "episodes": 2, "collect": 50}
        trainer = RivalTrainer("rcpom", load_instances(), steps=steps, settings=settings)
        trainer.run()
        trained.append(trainer.policy.theta.tobytes())
    assert trained[0] == trained[1]


def test_evolution_takes_a_ranking_and_a_sampler():
    def search(ranking, sampler):
        own = {"ranking": ranking, "sampler": sampler, "shaping": "rank"}
        found = Evolution([1.0, 1.0], sigma=0.3, population=6, n_instances=2, **own)
        for _ in range(3):
            members, ids = found.ask()
            returns = -np.square(members).sum(axis=1)
            found.tell(returns, np.zeros(6), instance_ids=ids)
        again = Evolution.from_state(found.get_state())
        assert again.ask()[0].tobytes() == found.ask()[0].tobytes()
        return found.mean

    own = search(own_goals.by_return, own_goals.Turns)
    assert own.tobytes() == search("f", "uniform").tobytes()


def test_a_judgement_asks_it():
    verdict = judge(run("index", OWN).policy, load_instances(), (), Playing(1, goal=GOAL))
    assert [row.label for row in verdict.rows] == ["policy", verdict.best_rule]


def test_names_stand_for_what_they_name():
    config = Config(**OWN)
    names = {name: f"own_goals:{x.__name__}" for name, x in OWN.items()}
    assert Config(**names) == Config.from_dict(config.to_dict()) == config
    assert hash(Config(**names)) == hash(config)
    assert all(type(config.to_dict()[name]) is str for name in OWN)
    assert all(f"{getattr(config, name)}" == names[name] for name in OWN)
    assert Goal.from_dict(GOAL.to_dict()) == GOAL
    assert type(GOAL.to_dict()["objective"]) is type(GOAL.to_dict()["cost"]) is str
    assert GOAL.describe() == "own_goals:shift, own_goals:late below 5"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module that may change, and a run of it."""
    path = tmp_path / "fleeting.py"
    path.write_text("def fast(measures):\n    return measures.makespan\n")
    monkeypatch.syspath_prepend(tmp_path)
    trainer = start("index", {**TEXTS, "objective": "fleeting:fast"})
    trainer.step()
    trainer.save(tmp_path / "run.npz")
    trainer.policy.save(tmp_path / "policy.npz")
    del sys.modules["fleeting"], trainer
    gc.collect()
    yield path
    sys.modules.pop("fleeting", None)


def test_what_is_not_trusted_or_gone_is_told_in_a_line(module, tmp_path):
    for state in (True, False):
        with pytest.raises(CheckpointError, match=r"objective: read fleeting:fast, .*trust=True"):
            ACERL.resume(tmp_path / "run.npz")
        assert "fleeting" not in sys.modules
        if state:
            assert ACERL.resume(tmp_path / "run.npz", trust=True).generation == 1
            del sys.modules["fleeting"]
            gc.collect()
    module.unlink()
    importlib.invalidate_caches()
    with pytest.raises(CheckpointError, match="objective: fleeting:fast: cannot be imported") as e:
        ACERL.resume(tmp_path / "run.npz", trust=True)
    assert "\n" not in str(e.value)


def test_a_policy_plays_where_its_objective_is_not_known(module, tmp_path, capsys):
    module.unlink()
    policy = load_policy(tmp_path / "policy.npz")
    assert policy.origin.goal.describe() == "fleeting:fast, late below 5 %"
    assert np.isfinite(evaluate_policy(policy, load_instances(), trials=1).value).all()
    assert main(["evaluate", str(tmp_path / "policy.npz"), "--on", "DMH-01", "--trials", "1"]) == 0
    assert "not imported unasked: --objective fleeting:fast\n" in capsys.readouterr().err
    assert "fleeting" not in sys.modules


def test_one_line_says_what_is_wrong():
    short = {**TEXTS, "records_per_member": 1, "curve_every": 0, "outcome": "last"}
    cases = [
        ({"objective": own_goals.too_few}, "objective: own_goals:too_few: read shape (5"),
        ({"cost": own_goals.nowhere}, "cost: own_goals:nowhere: read nan as number 0"),
        ({"objective": own_goals.words}, "objective: own_goals:words: read str"),
        ({"objective": own_goals.raises}, "objective: own_goals:raises: AttributeError:"),
        ({"ranking": own_goals.late}, "ranking: own_goals:late: TypeError: late"),
        ({"ranking": lambda *given: [1.0]}, "<lambda>: read shape (1,)"),
        ({"sampler": own_goals.too_few}, "sampler: own_goals:too_few: TypeError"),
        ({"sampler": own_goals.Turns(9)}, "sampler: own_goals:Turns: read "),
        ({"sampler": InstanceSampler}, "InstanceSampler: TypeError: Can't"),
        ({"sampler": own_goals.Hollow}, "sampler: own_goals:Hollow: read "),
        ({"sampler": own_goals.Beyond}, "instance ids: read 2; expected 0 to 1"),
        ({"ranking": 3}, "ranking: read '3'; expected one of isr, "),
        ({"sampler": "own_goals:nix"}, "sampler: own_goals:nix: 'own_goals' has no 'nix'"),
    ]
    assert list_unrefused(lambda given: start("index", {**short, **given}).step(), cases) == []
    with pytest.raises(PolicyError, match=r"^objective: a lookahead cannot ask a function"):
        Lookahead("EDD", futures=0, objective=GOAL)
    with pytest.raises(InputError, match=r"^objective: hindsight cannot ask a function"):
        find_references(load_instances(), GOAL)
    trainer = start("index", TEXTS)
    with pytest.raises(ConfigError, match=r"^sampler: read .*; expected .*Config\(sampler=...\)"):
        trainer.sampler = own_goals.Turns(2)
    assert copy.copy(trainer).sampler.n_instances == 2
