"""Orders of tasks that follow others: the search beside all orders, and what it refuses."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import permutations, product

import pytest
import worlds
from machine import JIT, needs_jit
from tables_and_refusals import read_rows

import acerl_np
from acerl_np.evaluation import hindsight
from acerl_np.evaluation.bounds import bound_objective
from acerl_np.evaluation.hindsight import (
    find_effort,
    find_hindsight,
    find_references,
    play_orders,
    replay_actions,
)
from acerl_np.evaluation.references import bundled_references, load_references, save_references
from acerl_np.kernels.core import state as S
from acerl_np.policies.rules import BASELINES
from acerl_np.problem.bundled import YARDSTICK, instances_folder
from acerl_np.problem.goal import MEASURES, PAPER, Goal
from acerl_np.problem.interface import TASK_RULES
from studies.job_shops import import_bilge_ulusoy

NO_LIMIT = Goal(cost_limit=float("inf"))


@pytest.fixture(autouse=True)
def search_alone(request, monkeypatch):
    """Only where the name says so, hindsight also plays all rules: each is compiled anew for chains."""
    if "played" not in request.node.originalname:
        monkeypatch.setattr(hindsight, "_play_policies", lambda *given: given[-1])


def chained(seed: int) -> acerl_np.Instance:
    """A small record with chains or announced tasks, without what breaks, charges or parks."""
    world = worlds.chained_world(seed)
    rows = [dict(row) for row in world.rows[:4]]
    known = {row["task"] for row in rows}
    for row in rows:
        if row.get("after") not in known:
            row.pop("after", None)
            row["arrival_time"] = row.get("arrival_time") or 0
    keys = ("parking", "battery", "chargers")
    layout = {key: value for key, value in world.layout.items() if key not in keys}
    layout["vehicles"] = [{**vehicle, "breakdowns": []} for vehicle in layout["vehicles"]]
    instance = acerl_np.Instance.from_rows("chained", acerl_np.Layout.from_dict(layout), rows)
    assert not instance.is_plain
    return instance


def list_outcomes(instance: acerl_np.Instance) -> list[tuple[float, float]]:
    """Makespan and tardiness of all orders, those left out in which a task waits for one behind it."""
    n, found = instance.n_tasks, []
    fleet = range(len(instance.layout.vehicles))
    for turns in permutations(range(n)):
        for vehicles in product(fleet, repeat=n):
            actions = [v * n + task for v, task in zip(vehicles, turns, strict=True)]
            state = play_orders(instance, actions)
            if state.episode["phase"][0] == S.FINISHED:
                pair = state.outcome[0, [S.OUTCOME_MAKESPAN, S.OUTCOME_TARDINESS]]
                found.append(tuple(pair.tolist()))
    return found


@pytest.mark.compiles
@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(0, 40, 4 if JIT else 20))
def test_what_the_search_finds_is_what_the_simulator_plays_and_above_the_bound(seed):
    instance = chained(seed)
    for objective in MEASURES if JIT else ("makespan",):
        goal = Goal(objective, cost_limit=float("inf"))
        found = find_hindsight(instance, goal, effort=0.001)
        state = play_orders(instance, found.actions)
        assert state.outcome[0, S.OUTCOME_MAKESPAN] == found.makespan
        assert bound_objective(instance, goal) <= found.value + 1e-9


def test_a_bound_of_a_chain_by_hand():
    """A job alone, whose machines never wait for it."""
    every = acerl_np.load_instance("EX11")
    rows = every.rows()[: [*every.after, -1].index(-1, 1)]
    instance = acerl_np.Instance.from_rows("job", every.layout, rows)
    distance = instance.layout.routes.distance
    ends = [0.0] * instance.n_tasks
    for task, before in enumerate(instance.after.tolist()):
        ride = distance[instance.pickup[task], instance.delivery[task]]
        ends[task] = (ends[before] if before >= 0 else 0.0) + ride + instance.processing[task]
    assert bound_objective(instance, NO_LIMIT) == max(ends)


@pytest.mark.compiles
@needs_jit
@pytest.mark.parametrize("seed", [0, 3, 5, 8, 13, 21])
def test_the_search_finds_the_best_of_all_orders(seed):
    instance = chained(seed)
    outcomes = list_outcomes(instance)
    assert find_hindsight(instance, NO_LIMIT, effort=0.01).makespan == min(outcomes)[0]
    limit = sorted(tardiness for _, tardiness in outcomes)[len(outcomes) // 10] + 0.001
    found = find_hindsight(instance, Goal(cost_limit=limit), effort=0.01)
    assert found.within
    assert found.makespan == min(pair for pair in outcomes if pair[1] < limit)[0]
    assert replay_actions(instance, found.actions).makespan[0] == found.makespan


@pytest.mark.slow
@needs_jit
@pytest.mark.parametrize("name", [pytest.param("EX32", marks=pytest.mark.long), "DMH-01"])
def test_hindsight_is_never_worse_than_what_is_played(name, monkeypatch, tmp_path):
    """Whatever the search finds, here next to nothing; what wins is played as it was."""
    for search, most in (("ANNEALING_CHAINS", 0), ("BEAM_WIDTH", 1), ("ORDER_CHAINS", 0)):
        monkeypatch.setattr(hindsight, search, most)
    instance = acerl_np.load_instance(name)
    goal = Goal("makespan+0.1*late", cost_limit=float("inf"))
    found = find_hindsight(instance, goal, effort=1e-4, seed=3)
    names = (*TASK_RULES, *BASELINES)
    ahead = [acerl_np.Lookahead(base, futures=0, objective=goal) for base in names]
    how = {"objective": goal, "seed": 3}
    played = [
        acerl_np.evaluate_policy(policy, instance, trials=trials, **how).value.min()
        for policies, trials in ((names, 30), (ahead, 1))
        for policy in policies
    ]
    assert found.value == pytest.approx(min(played), rel=1e-12)
    save_references(tmp_path / "best.json", [found])
    [again] = load_references(tmp_path / "best.json")
    assert again.actions == found.actions
    assert replay_actions(instance, again.actions, goal).value[0] == found.value


def test_a_machine_is_never_done_before_its_work():
    """Both tasks are there after 1 s at the earliest, take 20 s each, and the last ride takes 1 s."""
    fleet = [{"id": name, "start": "A", "speed": 10.0} for name in "vw"]
    for servers, least in ((1, 42.0), (2, 22.0)):
        machines = [{"site": "B", "servers": servers}]
        layout = acerl_np.Layout.from_dict(worlds.straight_floor(fleet, machines=machines))
        rows = [worlds.make_task(f"a{k}", "A", "B", 0.0, processing=20.0) for k in range(2)]
        rows += [worlds.make_task(f"b{k}", "B", "A", "", after=f"a{k}") for k in range(2)]
        instance = acerl_np.Instance.from_rows("machine", layout, rows)
        assert bound_objective(instance, NO_LIMIT) == least


def test_effort_grows_with_the_tasks():
    records = [acerl_np.load_instance(name) for name in ("DMH-01", "EX32")]
    assert [find_effort(record, 0.5) for record in records] == [0.5, 0.5]
    rows = [worlds.make_task(f"t{k}", "A", "B", k) for k in range(120)]
    layout = acerl_np.Layout.from_dict(worlds.straight_floor([{"id": "v", "start": "A"}]))
    assert find_effort(acerl_np.Instance.from_rows("many", layout, rows), 0.5) == 1.5


@needs_jit
@pytest.mark.long  # lookaheads over rules and baselines are compiled, with chains
def test_hindsight_does_not_depend_on_threads_and_shows_a_table(empty, run):
    instances = [acerl_np.load_instance(name) for name in ("EX11", "EX52")]
    one, three = (find_references(instances, effort=0.01, threads=k) for k in (1, 3))
    assert one == three
    rows = read_rows(run("policy bound EX11 EX52 --effort 0.01 --format csv --out best.json").out)
    assert [float(row["makespan_s"]) for row in rows] == [item.makespan for item in one]
    assert all(float(row["bound"]) <= float(row["makespan_s"]) for row in rows)
    assert "proof" not in rows[0] and load_references("best.json") == one


@pytest.mark.compiles
@needs_jit
def test_published_optima_are_found():
    announced = import_bilge_ulusoy(instances_folder() / YARDSTICK, announced=True)
    found = {item.name: find_hindsight(item, effort=0.1).makespan for item in announced[:2]}
    assert found == {"EX11": 96.0, "EX12": 82.0}


def test_what_orders_do_not_have_is_refused_in_one_line():
    instance = acerl_np.load_instance("EX11")
    broken = instance.layout.with_breakdowns({"v1": [acerl_np.problem.parts.Breakdown(5.0, 9.0)]})
    with pytest.raises(acerl_np.InputError, match=r"\A.*batteries, parking or traffic.*\Z"):
        find_hindsight(replace(instance, layout=broken))


EXACT = "exact EX12 --effort 0.001 --time-limit 60"


def test_a_missing_extra_is_named(monkeypatch, study):
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    assert "pip install 'acerl_np[exact]'" in study(EXACT, 2).err


@needs_jit
def test_an_optimum_is_proven(empty, study):
    pytest.importorskip("ortools")
    [row] = json.loads(study(f"{EXACT} --format json --out best.json").out)
    told = [row[name] for name in ("makespan_s", "bound", "proof", "gap_share")]
    assert told == [82, 82, "optimal", 0]
    assert load_references("best.json")[0].makespan == 82.0


@needs_jit
@pytest.mark.parametrize("seed", [0, 3, 5, 8])
def test_no_order_is_below_the_proven_bound(seed):
    pytest.importorskip("ortools")
    from studies.exact import prove_makespan

    instance = chained(seed)
    outcomes = list_outcomes(instance)
    limit = sorted(tardiness for _, tardiness in outcomes)[len(outcomes) // 5] + 0.001
    for goal in (NO_LIMIT, Goal(cost_limit=limit)):
        proof = prove_makespan(instance, goal, seconds=30.0, threads=1)
        best = min(pair for pair in outcomes if pair[1] < goal.cost_limit)[0]
        assert proof.bound <= best
        assert proof.makespan == proof.planned == proof.bound


@needs_jit
@pytest.mark.parametrize("name", ["DMH-01", "DMH-05", "EX71"])
def test_what_the_simulator_plays_is_a_solution_of_the_model(name):
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    from studies.exact import _Model

    instance = acerl_np.load_instance(name)
    stored = bundled_references().get(instance.content_hash)
    found = stored or find_hindsight(instance, effort=0.001)
    model = _Model(instance, PAPER, int(found.makespan) + 100)
    model.hint(hindsight.play(instance, found.actions))
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    assert solver.objective_value == found.makespan
