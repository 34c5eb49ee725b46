"""Hindsight: stored references replay, the search reaches an exhaustive optimum, bad files are refused."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from unittest import mock

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import JIT, needs_jit
from tables_and_refusals import list_unrefused_files
from worlds import cut, make_task, worlds

import acerl_np
from acerl_np.evaluation import hindsight
from acerl_np.evaluation.bounds import bound_objective
from acerl_np.evaluation.hindsight import find_hindsight, replay_actions
from acerl_np.evaluation.margin import compare_trials
from acerl_np.evaluation.references import bundled_references, load_references, save_references
from acerl_np.evaluation.trials import Playing
from acerl_np.kernels.core import state as S
from acerl_np.kernels.rollout.beam import Guide, estimate_rest, hash_row
from acerl_np.problem.bundled import bundled_instances
from acerl_np.problem.choices import PAPER_RULES
from acerl_np.problem.goal import MEASURES, PAPER, Goal
from acerl_np.problem.tables import build_problem

REACHED = dict(enumerate((1683, 1781, 1792, 1849, 1775, 1807, 1849, 1764), 1))
"""Makespans that plain annealing reached on DMH-01 to -08; the stored references are as good."""


def search_exhaustively(instance: acerl_np.Instance, goal: Goal) -> float:
    """Try every action sequence, depth first; the least objective within the limit."""
    best = float("inf")
    stack: list[list[int]] = [[]]
    while stack:
        actions = stack.pop()
        simulator = acerl_np.Simulator(instance, goal=goal)
        for action in actions:
            simulator.step([action])
        if simulator.done[0]:
            value, cost = simulator.state.outcome[0, [S.OUTCOME_VALUE, S.OUTCOME_COST]]
            if cost < goal.cost_limit:
                best = min(best, value)
        else:
            stack += [[*actions, int(action)] for action in simulator.action_mask[0].nonzero()[0]]
    return best


@needs_jit
def test_every_dmh_record_has_a_reference_that_replays():
    references = bundled_references()
    instances = map(acerl_np.load_instance, bundled_instances())
    for instance in (item for item in instances if item.name.startswith("DMH")):
        reference = references[instance.content_hash]
        played = replay_actions(instance, reference.actions)
        assert played.makespan[0] == reference.makespan
        assert played.tardiness[0] == pytest.approx(reference.tardiness, abs=1e-8)
        assert reference.within and reference.goal == PAPER
    for k, most in REACHED.items():
        instance = acerl_np.load_instance(f"DMH-{k:02d}")
        assert references[instance.content_hash].makespan <= most


def make_calm(n_vehicles: int, *tasks: dict[str, object]) -> acerl_np.Instance:
    """Tasks for some of DMH's vehicles, none of which breaks down."""
    layout = acerl_np.load_layout("dmh").with_breakdowns({})
    layout = replace(layout, vehicles=layout.vehicles[:n_vehicles])
    return acerl_np.Instance.from_rows("calm", layout, list(tasks))


def two_vehicles() -> acerl_np.Instance:
    """Four tasks whose 672 action sequences end in 4 ways, the fastest of them not the least tardy."""
    ends = ("st3", "st2"), ("st4", "st1"), ("st4", "st5"), ("st1", "st6")
    times = (20, 230), (20, 170), (50, 100), (20, 240)
    return make_calm(2, *(make_task(f"t{k}", *ends[k], *times[k]) for k in range(4)))


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("goal", "value"),
    [
        # The tardiness of the fastest is 62.5 s, the least one 45 s; the limit is strict.
        (Goal(cost_limit=1000.0), 310.0),
        (Goal(cost_limit=62.5), 340.0),
        (Goal("tardiness"), 45.0),
        (Goal("late"), None),
        (Goal("waiting+late", "makespan", 330.0), None),
        (Goal("empty"), None),
    ],
    ids=lambda x: x.objective if isinstance(x, Goal) else "",
)
def test_the_search_finds_the_exhaustive_optimum(goal, value, monkeypatch):
    small = {"ANNEALING_CHAINS": 1, "ANNEALING_STEPS": 200, "BEAM_WIDTH": 20}
    for name, value_of in () if JIT else small.items():
        monkeypatch.setattr(hindsight, name, value_of)
    instance = two_vehicles()
    found = find_hindsight(instance, goal, effort=0.01)
    expected = search_exhaustively(instance, goal)
    assert found.within and found.value == expected
    assert value is None or value == expected
    assert bound_objective(instance, goal) <= expected


def test_a_limit_out_of_reach_leaves_the_least_violation():
    instance = two_vehicles()
    for goal in (Goal(cost_limit=45.0), Goal("late", "tardiness", 1.0)):
        found = find_hindsight(instance, goal, effort=0.01)
        assert not found.within and found.cost == found.tardiness == 45.0


def test_a_bound_by_hand():
    ends = "st3", "st2", 20
    instance = make_calm(1, make_task("t0", *ends, 10), make_task("t1", *ends, 9000))
    problem = build_problem([instance])
    start, pickup, delivery = problem.start_site[0, 0], *problem.ends[0, 0]
    distance = problem.distance[0]
    near = min(distance[start, pickup], distance[delivery, pickup])
    trip = float(near + distance[pickup, delivery])  # at 1 m/s, and handling
    trip += problem.record["handling"][0, 0]
    bounds = {x: bound_objective(instance, Goal(x)) for x in MEASURES}
    # Both arrive at once, and one vehicle does one after the other.
    arrival = instance.arrival[0]
    assert bounds["makespan"] == arrival + 2.0 * trip
    assert bounds["tardiness"] == (trip - 10.0) / 2.0
    assert (bounds["late"], bounds["waiting"], bounds["empty"]) == (50.0, near, 0.0)


@needs_jit
@settings(max_examples=25)
@given(worlds(), st.sampled_from((*MEASURES, "late+0.05*tardiness")))
def test_no_schedule_is_below_the_bound(world, objective):
    instance = world.instance()
    goal = Goal(objective, class_weights=(1.0, 5.0))
    bound = bound_objective(instance, goal)
    for name in ("NVF", "EDD", "nearest"):
        value = acerl_np.evaluate_policy(name, instance, trials=3, objective=goal).value
        assert not (value < bound - 1e-6).any()


@numba.njit
def hash_first(problem, state):
    return hash_row(problem, state, 0)


def make_row():
    """A row with two waiting tasks, and vehicles: halted in mid-edge, working until it breaks, working."""
    simulator = acerl_np.Simulator(acerl_np.load_instance("DMH-01"))
    state = simulator.state
    state.episode["pool_size"][0] = 2
    state.pool[0, :2] = 4, 7
    vehicles = state.vehicle[0]
    vehicles["halted_towards"] = 3, -1, -1
    vehicles["status"] = S.IDLE, S.WORKING, S.WORKING
    vehicles[1:]["task"] = 1, 2
    vehicles["event_tick"] = 300
    vehicles["breakdown_at"] = 400, 300, 301
    vehicles["halted_at"] = vehicles["edge_offset"] = 1.5
    return simulator.problem, state


DECISIVE = {
    "clock": ("episode.time", 0, 99),
    "pool order": ("pool", (0, slice(2)), (7, 4)),
    "another task waits": ("pool", (0, 1), 8),
    "where it halted": ("vehicle.halted_at", (0, 0), 1.25),
    "when it entered the edge": ("vehicle.edge_tick", (0, 1), 77),
    "where on the edge": ("vehicle.edge_offset", (0, 1), 0.25),
    "its task": ("vehicle.task", (0, 2), 3),
}
IDLE_TALK = {
    "since when a task waits": ("waiting_since", (0, 4), 33.0),
    "the edge of a vehicle that will not break": ("vehicle.edge_tick", (0, 2), 77),
    "where one that has set out halted": ("vehicle.halted_at", (0, 2), 9.0),
    "what is behind the pool": ("pool", (0, 2), 9),
}


def test_schedules_that_go_on_alike_alone_are_taken_for_one():
    for change, (name, place, value) in (DECISIVE | IDLE_TALK).items():
        problem, state = make_row()
        before = hash_first(problem, state)
        array, _, field = name.partition(".")
        table = getattr(state, array)
        (table[field] if field else table)[place] = value
        assert (hash_first(problem, state) == before) == (change in IDLE_TALK), change


@numba.njit
def estimate_first(problem, state, guide, most_delay):
    return estimate_rest(problem, state, 0, guide, most_delay)


def search_slowly(instance, width, guide, cost_limit):
    """The beam as one would write it: lists that hold every child, each played from the start."""
    best, best_actions = math.inf, ()
    level = [()]
    while level:
        children = []
        for parent in level:
            simulator = acerl_np.Simulator(instance)
            for action in parent:
                simulator.step([action])
            for action in simulator.action_mask[0].nonzero()[0].tolist():
                simulator = acerl_np.Simulator(instance)
                for taken in (*parent, action):
                    simulator.step([taken])
                if simulator.done[0]:
                    if simulator.tardiness[0] < cost_limit and simulator.makespan[0] < best:
                        best, best_actions = simulator.makespan[0], (*parent, action)
                    continue
                row = simulator.problem, simulator.state
                estimate = estimate_first(*row, guide, cost_limit * instance.n_tasks)
                if estimate < math.inf:
                    children.append((estimate, hash_first(*row), (*parent, action)))
        children.sort(key=lambda child: child[0])
        different = {}
        for _, row_hash, actions in children:
            different.setdefault(row_hash, actions)
        level = list(different.values())[:width]
    return best, best_actions


def make_fleet(seed, n_vehicles, n_tasks):
    """Many tasks that wait from the start, for vehicles that stand and drive differently."""
    rng = random.Random(seed)
    record = acerl_np.load_instance("DMH-01")
    layout = record.layout.to_dict()
    sites = [site["id"] for site in layout["sites"]]
    layout["vehicles"] = [
        {"id": f"v{k}", "start": rng.choice(sites), "speed": rng.choice([0.5, 1, 2])}
        for k in range(n_vehicles)
    ]
    rows = [{**row, "arrival_time": 0} for row in record.rows()[:n_tasks]]
    return acerl_np.Instance.from_rows("fleet", acerl_np.Layout.from_dict(layout), rows)


@needs_jit
@pytest.mark.parametrize(("seed", "n_vehicles", "n_tasks"), [(4, 8, 12), (1, 6, 10), (3, 5, 8)])
def test_a_beam_considers_every_child_of_every_parent(seed, n_vehicles, n_tasks, monkeypatch):
    """Up to 32 children a decision: all of them compete, also those of the last parents."""
    monkeypatch.setattr(hindsight, "_play_policies", lambda *given: given[-1])
    monkeypatch.setattr(hindsight, "ANNEALING_CHAINS", 0)
    monkeypatch.setattr(hindsight, "BEAMS", hindsight.BEAMS[:1])
    monkeypatch.setattr(hindsight, "BEAM_WIDTH", 8)
    instance = make_fleet(seed, n_vehicles, n_tasks)
    found = find_hindsight(instance, Goal(cost_limit=1e6))
    expected = search_slowly(instance, 8, Guide(*hindsight.BEAMS[0], 1e6), 1e6)
    assert (found.makespan, found.actions) == expected


@needs_jit
@settings(max_examples=20)
@given(worlds(), st.booleans())
def test_hindsight_is_never_worse_than_a_rule(world, searches):
    """Whatever the search finds, also next to nothing."""
    instance = world.instance()
    goal = Goal(cost_limit=1e6)
    names = (*PAPER_RULES, "nearest")
    rules = [acerl_np.evaluate_policy(x, instance, trials=30, objective=goal) for x in names]
    width, chains = (hindsight.BEAM_WIDTH, hindsight.ANNEALING_CHAINS) if searches else (1, 0)
    with mock.patch.multiple(hindsight, BEAM_WIDTH=width, ANNEALING_CHAINS=chains):
        found = find_hindsight(instance, goal, effort=0.001)
    finished = [value for trials in rules for value in trials.value.flat if not math.isnan(value)]
    assert found is not None or not finished
    if found is not None:
        assert found.makespan <= min(finished, default=math.inf) and found.tardiness < 1e6
        played = replay_actions(instance, found.actions)
        assert (played.makespan[0], played.tardiness[0]) == (found.makespan, found.tardiness)


def test_replay_refuses_what_is_no_sequence_of_a_record():
    instance, chained = cut(acerl_np.load_instance("DMH-01"), 2), acerl_np.load_instance("EX11")
    for record, actions, words in (
        (instance, [0], "expected more"),
        (instance, [0, 4, 8], "over after 2 decisions"),
        (chained, [0] * chained.n_tasks, "each task once"),
    ):
        with pytest.raises(acerl_np.InputError, match=words):
            replay_actions(record, actions)


def test_references_survive_a_file(tmp_path):
    references = list(bundled_references().values())[:3]
    other = Goal("late+0.05*tardiness", class_weights=(1.0, 5.0))
    for goal in (other, Goal("late", "waiting", 2.0)):
        references.append(replace(references[0], goal=goal, value=3.5, cost=7.25))
    references.append(replace(references[0], goal=Goal(cost_limit=math.inf)))
    path = tmp_path / "references.json"
    save_references(path, references)
    assert load_references(path) == references
    assert [item.within for item in references] == [True] * 4 + [False, True]


def reference_file(**changes):
    item = {"instance": "a", "content_hash": "00", "makespan": 9.5, "tardiness": 0}
    item |= {"goal": {"cost_limit": 50}, "value": 9.5, "cost": 0, "actions": [0, 4], **changes}
    item = {key: value for key, value in item.items() if value is not None}
    return json.dumps({"format": 1, "references": [item]})


DAMAGED = {
    "": "line 1 column 1: not JSON: expecting value; expected a file written by acerl-np policy bound --out",
    "[" * 100_000: "not JSON: ",
    "1" * 5000: "not JSON: ",
    "[]": "the file: read []; expected an object",
    "{}": "format: missing; this key is required",
    '{"format": 2, "references": []}': "format: read 2; expected 1",
    '{"format": 1}': "references: missing; this key is required",
    '{"format": 1, "references": {"a": 1}}': 'references: read {"a": 1}; expected a list',
    '{"format": 1, "references": ["a"]}': 'references[0]: read "a"; expected an object',
    reference_file(actions=None): "references[0].actions: missing",
    reference_file(actions=[1, 2.5]): "actions[1]: read 2.5; expected a whole number",
    reference_file(content_hash=3): "references[0].content_hash: read 3; expected a non-empty text",
    reference_file(makespan="9"): 'references[0].makespan: read "9"; expected a number',
    reference_file(tardiness=10**400): "references[0].tardiness: read 1000",
    reference_file(cost=True): "references[0].cost: read true; expected a number",
    reference_file(cost=math.nan): "references[0].cost: read NaN; expected a number",
    reference_file(value=math.inf): "references[0].value: read Infinity; expected a",
    reference_file(goal=None): "references[0].goal: missing; this key is required",
    reference_file(goal=3): "references[0].goal: read 3; expected a table",
    reference_file(cost=None): "references[0].cost: missing; this key is required",
    reference_file(goal={"a": 1}): "references[0].goal: ",
    reference_file(goal={"cost": "b"}): "goal: cost: read 'b'; expected weighted",
}


def test_damaged_reference_files_are_refused(tmp_path):
    cases = [(text, f"holds no references:  ... {words}") for text, words in DAMAGED.items()]
    path = tmp_path / "references.json"
    assert list_unrefused_files(path, cases, load_references, acerl_np.InputError) == []


@needs_jit
def test_above_hindsight_is_a_share_of_it():
    records = [acerl_np.load_instance(name) for name in ("DMH-01", "DMH-02")]
    played = acerl_np.evaluate_policy("STD", records, trials=1)
    found = compare_trials(records, [played], bundled_references(), Playing(1))
    best = sum(item.value for item in found.hindsight) / 2
    assert found.above_hindsight == pytest.approx([(played.value.mean() - best) / best])
