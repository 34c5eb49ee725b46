"""The simulator against the slow one on random and hard floors, by hand; what a caller may do and may not."""

import full
import numba
import numpy as np
import pytest
from episodes import compare, play_and_compare, play_on, scaling_array, scaling_dict, schedule_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import JIT
from tables_and_refusals import list_unrefused
from worlds import SCALED, World, floors, make_hall, make_task, straight_floor, worlds

from acerl_np import ActionError, InputError, Instance, Layout, Simulator, load_instance
from acerl_np.kernels.core.state import allocate_state, copy_row
from acerl_np.problem.interface import find_scaling

# Random floors, fleets and tasks


FLOORS = {
    "any": worlds(),
    "edges of no length": worlds(floors(zero_lengths=True)),
    "speed limits": worlds(floors(limits=True)),
    "quickest routes": worlds(floors(limits=True, quickest=True)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", FLOORS)
@given(data=st.data())
def test_equals_slow_simulator(kind, data):
    play_and_compare(data.draw(FLOORS[kind]))


@pytest.mark.oracle
@given(worlds(), st.lists(st.sampled_from(full.RULES), min_size=1, unique=True))
def test_actions_name_the_simulators_rules(world, rules):
    simulator = Simulator(world.instance(), slots="pool", rules=rules)
    play_and_compare(world, simulator, rules=tuple(rules))


def make_record(rows, fleet=({"id": "v", "start": "A"},), **keys):
    return Instance.from_rows("made", Layout.from_dict(straight_floor(list(fleet), **keys)), rows)


@pytest.mark.oracle
@settings(max_examples=40 if JIT else 10)  # each example is several worlds
@given(st.lists(worlds(), min_size=2, max_size=3), st.integers(0, 2), st.booleans())
def test_padding_is_inert(batch, n_spare, twice):
    """Instances of unlike sizes in one batch: each episode is the one that is played alone."""
    if twice:
        batch = [*batch, batch[0]]
    instances = [world.instance() for world in batch]
    if twice:
        instances[-1] = instances[0]
    sizes = {
        "task_slots": max(world.layout["task_slots"] for world in batch) + n_spare,
        "n_vehicles": max(len(world.layout["vehicles"]) for world in batch) + n_spare,
    }
    shown = {**sizes, "scaling": scaling_array(SCALED), "slots": "pool"}
    together = Simulator(instances, **shown)
    alone = [Simulator(instance, **shown) for instance in instances]
    slow = [full.Episode(world.layout, world.rows, scaling=SCALED, **sizes) for world in batch]
    k = 0
    while True:
        for b in range(len(batch)):
            compare(together, b, slow[b])
            assert together.observation[b].tobytes() == alone[b].observation[0].tobytes()
            assert together.action_mask[b].tobytes() == alone[b].action_mask[0].tobytes()
        if together.done.all():
            break
        actions = np.zeros(len(batch), int)
        for b, world in enumerate(batch):
            if not slow[b].done:
                actions[b] = world.choose(np.flatnonzero(together.action_mask[b]), k)
                slow[b].step(actions[b])
                alone[b].step(actions[b : b + 1])
        together.step(actions)
        k += 1


# An episode traced by hand


@pytest.mark.oracle
def test_episode_traced_by_hand():
    fcfs, _, nvf, std = range(4)
    v, w = 0, 4  # first action of each vehicle
    # 4.0 and 11.25 s fall on ticks 4 and 12; the repairs end at ticks 4+5+1 = 10, 12+0+1 = 13
    breakdowns = [{"time": 4.0, "repair_time": 4.5}, {"time": 11.25, "repair_time": 0}]
    vehicles = [
        {"id": "v", "start": "A", "speed": 2, "breakdowns": breakdowns},
        {"id": "w", "start": "C", "speed": 1, "capacity": 1},
    ]
    tasks = [
        make_task("t0", "B", "C", 0, 20, handling_time=1, demand=2),
        make_task("t1", "A", "B", 3.5, 10, demand=2),
        make_task("t2", "C", "B", 16.2, 4.0, demand=1),
    ]
    simulator = Simulator(make_record(tasks, vehicles, task_slots=3), slots="pool")

    def check(time, waiting_tasks, v_status, v_totals, w_status, w_totals, legal):
        assert simulator.time.tolist() == [time]
        slots = 3 - len(waiting_tasks)
        assert simulator.observation[0].tolist() == pytest.approx(
            [x for features in waiting_tasks for x in features]
            + [0] * 4 * slots
            + [2, v_status / 2, 0, *v_totals, *[0] * slots]  # speed, status, capacity
            + [1, w_status / 2, 1, *w_totals, *[0] * slots]
        )
        assert np.flatnonzero(simulator.action_mask[0]).tolist() == legal

    idle, working = 0, 1
    # 0: t0 arrives. B to C is 6 m; v at A has 10 + 6 to go in all, w at C 6 + 6. t0 is too heavy
    # for w, so only v has a choice.
    check(0, [(6, 0, 20, 2)], idle, [16], idle, [12], [0, 1, 2, 3])
    simulator.step([v + fcfs])
    # v: 16 m at 2 m/s and 1 s of handling, to finish at 9. It breaks at 4, where it was at 3: 6 m
    # past A. t0 goes back to the pool, waiting since 3; then t1 joins it (3.5 s is tick 4). Nobody
    # can do anything until v is repaired at 10. Then the tasks have waited for 10 - 3 and 10 - 3.5.
    # The last site that v visited is A: 10 + 6 and 0 + 10 m; w at C: 6 + 6 and 16 + 10 m.
    check(10, [(6, 7, 20, 2), (10, 6.5, 10, 2)], idle, [16, 10], idle, [12, 26], [0, 1, 2, 3])
    assert simulator.schedule(0).task == ()
    simulator.step([v + std])
    # STD takes t1 (10 m). Back to A: 6 m; on to B and then to A: 4 + 10 m. So v turns back and would
    # finish at 10 + (6 + 10) / 2 = 18. It breaks at 12, where it was at 11: 2 m back, 4 m past A.
    # t1 joins the end of the pool, waiting since 11, and v is repaired at 13.
    check(13, [(6, 10, 20, 2), (10, 2, 10, 2)], idle, [16, 10], idle, [12, 26], [0, 1, 2, 3])
    simulator.step([v + fcfs])
    # FCFS takes t0 (arrival 0). Back over A to B: 4 + 10 m; straight on: 6 m. So v drives on and
    # finishes at 13 + (6 + 6) / 2 + 1 = 20. At 17 t2 arrives (16.2 s): w is asked. v passed B at 16,
    # but on this trip A is still seen as its last site: 0 + 10 m for t1, 16 + 6 m for t2.
    check(17, [(10, 6, 10, 2), (6, 0.8, 4, 1)], working, [10, 22], idle, [26, 6], [4, 5, 6, 7])
    simulator.step([w + fcfs])
    # w does not see t1, which is older, and takes t2: 0 + 6 m, to finish at 23. At 20 v delivers t0
    # at C and is asked. w is 3 m past C.
    check(20, [(10, 9, 10, 2)], idle, [26], working, [26], [0, 1, 2, 3])
    assert simulator.schedule(0).task == ("t0",)
    simulator.step([v + nvf])
    # v: 16 + 10 m at 2 m/s, to finish at 20 + 13 = 33.
    assert simulator.done.tolist() == [True]
    schedule = simulator.schedule(0)
    assert (schedule.task, schedule.vehicle) == (("t0", "t2", "t1"), ("v", "w", "v"))
    assert np.array_equal([schedule.start, schedule.finish], [[13, 17, 20], [20, 23, 33]])
    assert simulator.makespan.tolist() == [33]
    # due at 20, 20.2 and 13.5: late by 0, 2.8 and 19.5 s
    assert simulator.tardiness.tolist() == pytest.approx([22.3 / 3])


# Episodes chosen to be hard


PICKS = [2, 5, 3, 0, 1, 7, 6, 4]


def square(*vehicles, one_way=False):
    """A --7 m-- B --5 m-- C --6 m-- D --8 m-- A; one-way, it is driven in this order only."""
    ways = (("AB", 7), ("BC", 5), ("CD", 6), ("DA", 8))
    return {
        "format": 1,
        "sites": [{"id": site, "x": k, "y": 0} for k, site in enumerate("ABCD")],
        "edges": [{"a": a, "b": b, "length": n, "one_way": one_way} for (a, b), n in ways],
        "vehicles": [
            {"id": f"v{k}", "start": "A", "speed": 1, **x} for k, x in enumerate(vehicles)
        ],
        "task_slots": 4,
    }


def break_down(*times, repair_time=3):
    return {"breakdowns": [{"time": time, "repair_time": repair_time} for time in times]}


@pytest.mark.parametrize("kind", ["two-way", "one-way", "another takes its task"])
def test_breakdowns_on_every_pair_of_ticks(kind):
    """Whatever a breakdown falls on, it falls on it here: a finish, an arrival, a site, a repair."""
    tasks = (("B", "D", 2, 9), ("C", "A", 5, 40), ("A", "B", 13, 1))
    rows = [make_task(f"t{k}", *task) for k, task in enumerate(tasks)]
    others, step = [], 1 if JIT else 4
    if kind == "another takes its task":
        rows, others, step = rows[:1], [{"start": "C"}], 4
    for first in range(0, 24, step):
        for second in range(first, first + 26, step):
            layout = square(break_down(second, first), *others, one_way=kind == "one-way")
            play_and_compare(World(layout, rows, PICKS))


@pytest.mark.oracle
def test_a_vehicle_turns_back_where_both_ways_are_equally_long():
    """5 m past A it is 13 m to D either way; broken again at 10 it shows which it took: 3 m past A."""
    rows = [make_task("t0", "B", "C", 0, 100), make_task("t1", "D", "A", 0, 10)]
    world = World(square(break_down(6, 10, repair_time=0)), rows, [0, 1, 0])
    assert play_and_compare(world).schedule == [("t0", 0, 11, 20), ("t1", 0, 20, 34)]


@pytest.mark.oracle
@pytest.mark.parametrize("n_vehicles", [3, 200])
def test_a_large_record_equals_the_slow_simulator(n_vehicles):
    """For three vehicles hundreds of tasks wait, most of them beyond the slots that a network sees."""
    generator = np.random.default_rng(7)
    n_tasks = 1000 if JIT else 100
    instance = make_hall(n_vehicles, n_tasks, every=0.5)
    simulator = Simulator(instance, task_slots=4, slots="pool")
    how = {"scaling": scaling_dict(find_scaling([instance])), "task_slots": 4}
    slow = full.Episode(instance.layout.to_dict(), instance.rows(), **how)
    k = most = 0
    while not slow.done:
        if k % 100 == 0:
            compare(simulator, 0, slow)
        most = max(most, len(slow.pool))
        action = int(generator.choice(np.flatnonzero(simulator.action_mask[0])))
        simulator.step([action])
        slow.step(action)
        assert simulator.time[0] == slow.time
        k += 1
    assert k >= n_tasks
    assert most > n_tasks / 2 or n_vehicles > 3
    compare(simulator, 0, slow)


# How a caller may use it


def batch_of_three():
    return Simulator([load_instance(name) for name in ("DMH-01", "DMH-02", "DMH-01")])


def copy_of(simulator):
    shown = simulator.observation, simulator.action_mask
    return [*(array.copy() for array in simulator.state), *shown]


def check_same(simulator, before):
    for array, other in zip(before, copy_of(simulator), strict=True):
        np.testing.assert_array_equal(array, other)


ILLEGAL = {
    "one number": 0,
    "too few": [0, 0],
    "too many": [0, 0, 0, 0],
    "a column": [[0], [0], [0]],
    "empty": [],
    "floats": [0.0, 0.0, 0.0],
    "booleans": [True, False, True],
    "texts": ["0", "0", "0"],
    "none": [0, None, 0],
    "too large for the machine": [0, 2**70, 0],
    "lists of unlike length": [[0], [0, 1], [0]],
    "above the last action": [0, 12, 0],
    "far above": [0, 2**62, 0],
    "unsigned, far above": np.array([0, 2**64 - 1, 0], np.uint64),
    "negative": [0, 0, -1],
    "masked": [0, 4, 0],
}


def test_illegal_actions_change_nothing():
    simulator = batch_of_three()
    simulator.step([4, 4, 8])  # vehicle 1 of episode 1 works from now on
    assert simulator.action_mask[:, 0].all() and not simulator.action_mask[1, 4]
    before = copy_of(simulator)
    cases = [(actions, "") for actions in ILLEGAL.values()]
    assert list_unrefused(simulator.step, cases, ActionError) == []
    check_same(simulator, before)
    words = r"^episode 1 at .* s: action 5 .* \[0, 1, 2, 3, 8, 9, 10, 11\]$"
    with pytest.raises(ActionError, match=words):
        simulator.step([0, 5, 0])
    simulator.step([0, 0, 0])
    assert simulator.state.episode["n_decisions"].tolist() == [2, 2, 2]


@pytest.mark.parametrize("assigns", [False, True])
def test_some_episodes_take_a_step_and_the_others_wait(assigns):
    """The first task that waits, by FCFS or by its number."""

    def step(simulator, vehicles, **options):
        first = simulator.state.pool[options.get("episodes", [0, 1, 2]), 0]
        own = (vehicles, first) if assigns else ([4 * v for v in vehicles],)
        (simulator.assign if assigns else simulator.step)(*own, **options)

    simulator, twin = batch_of_three(), batch_of_three()
    before = copy_of(simulator)[-2][1].tolist(), simulator.time[1]
    step(simulator, [2, 0], episodes=[2, 0])
    step(twin, [0, 0, 2])
    assert simulator.state.episode["n_decisions"].tolist() == [1, 0, 1]
    assert before == (simulator.observation[1].tolist(), simulator.time[1])
    for row in (0, 2):
        np.testing.assert_array_equal(simulator.observation[row], twin.observation[row])
        np.testing.assert_array_equal(simulator.action_mask[row], twin.action_mask[row])
    step(simulator, [0], episodes=[1])
    check_same(simulator, copy_of(twin))
    tasks = simulator.state.pool[:, 0]
    for own, episodes, error in (
        (([0, 0], tasks[1:]), [1, 1], InputError),
        (([0], tasks[:1]), [3], InputError),
        (([0, 0, 0], tasks), [1], ActionError),
        (([12], tasks[1:2]), [1], ActionError),
        (([0, 8], tasks[1:]) if not assigns else ([0, 2], tasks[1:]), [1, 2], ActionError),  # works
    ):
        with pytest.raises(error):
            (simulator.assign if assigns else simulator.step)(
                *own[: 1 + assigns], episodes=episodes
            )
        check_same(simulator, copy_of(twin))


def test_actions_of_finished_episodes_are_ignored():
    tasks = [make_task("t0", "A", "B", 0), make_task("t1", "B", "A", 0)]
    simulator = Simulator([make_record(tasks[:1]), make_record(tasks)])
    simulator.step([0, 0])
    assert simulator.done.tolist() == [True, False]
    assert simulator.makespan[0] == 10
    simulator.step([-99, 0])
    assert simulator.done.all()
    assert simulator.makespan.tolist() == [10, 20]
    before = copy_of(simulator)
    simulator.step([77, -1])
    check_same(simulator, before)


def test_what_is_read_cannot_change_the_episode():
    simulator = batch_of_three()
    for name in ("observation", "action_mask", "time", "done", "makespan", "tardiness"):
        before = getattr(simulator, name)
        getattr(simulator, name)[...] = 1
        np.testing.assert_array_equal(getattr(simulator, name), before)


def record(simulator, seed):
    """All that is seen of an episode that is played by drawn actions."""
    generator = np.random.default_rng(seed)
    seen = []
    while not simulator.done.all():
        mask = simulator.action_mask
        seen.append((simulator.time.tobytes(), mask.tobytes(), simulator.observation.tobytes()))
        simulator.step(np.argmax(mask * generator.uniform(0.1, 1, mask.shape), axis=1))
    seen.append((simulator.makespan.tobytes(), simulator.tardiness.tobytes()))
    return seen, [schedule_rows(simulator, b) for b in range(simulator.n_episodes)]


def test_reset_starts_anew():
    simulator = batch_of_three()
    first = record(simulator, 1)
    simulator.reset()
    assert not simulator.done.any()
    assert np.isnan(simulator.makespan).all()
    assert all(simulator.schedule(b).task == () for b in range(3))
    assert record(simulator, 2) != first
    simulator.reset()
    simulator.step([0, 4, 8])  # also in the middle of an episode
    simulator.reset()
    assert record(simulator, 1) == record(batch_of_three(), 1) == first
    instance = load_instance("DMH-03")
    assert record(Simulator(instance), 5) == record(Simulator([instance]), 5)


# Restarts


@pytest.mark.oracle
def test_a_restart_leaves_the_other_episodes_alone():
    suite = [load_instance("DMH-01"), load_instance("DMH-02")]
    simulator, untouched = Simulator(suite, n_episodes=4), Simulator(suite, n_episodes=4)
    assert [instance.name for instance in simulator.instances] == ["DMH-01", "DMH-02"] * 2
    assert simulator.pool == tuple(suite)
    for both in (simulator, untouched):
        play_on(both, n_steps=7)
    simulator.restart([2, 1], [1, 1])
    names = ["DMH-01", "DMH-02", "DMH-02", "DMH-02"]
    assert [simulator.instances[b].name for b in range(4)] == names
    fresh = Simulator(suite[1])
    for b in range(4):
        same = untouched if b in (0, 3) else fresh
        k = b if b in (0, 3) else 0
        assert simulator.observation[b].tobytes() == same.observation[k].tobytes()
        assert simulator.action_mask[b].tolist() == same.action_mask[k].tolist()
        assert simulator.time[b] == same.time[k]
    for both in (simulator, untouched, fresh):
        play_on(both)
    expected = [untouched.makespan[0], *[fresh.makespan[0]] * 2, untouched.makespan[3]]
    assert simulator.makespan.tolist() == expected
    assert len(simulator.schedule(2).task) == suite[1].n_tasks
    simulator.restart([2])  # over, and on the same instance as before
    assert simulator.status.tolist() == ["finished", "finished", "running", "finished"]
    simulator.restart([])
    simulator.reset()
    assert [instance.name for instance in simulator.instances] == names


def test_bad_restarts_change_nothing():
    simulator = batch_of_three()
    play_on(simulator, n_steps=3)
    before = copy_of(simulator)
    cases = (
        ([3], None, "expected a list of indices from 0 to 2"),
        ([-1], None, "episodes: read"),
        ([0.0], None, "episodes: read"),
        ([True, False, True], None, "episodes: read"),
        ([[0]], None, "episodes: read"),
        ([1, 1], None, "stands twice"),
        ([1], [3], "choices: read int64 of shape"),
        ([1], [0, 0], "choices: read 2; expected 1"),
    )
    restarts = [((episodes, choices), text) for episodes, choices, text in cases]
    assert list_unrefused(lambda given: simulator.restart(*given), restarts) == []
    check_same(simulator, before)
    with pytest.raises(InputError, match="n_episodes: read 0"):
        Simulator(simulator.pool, n_episodes=0)


# The horizon


@pytest.mark.oracle
@pytest.mark.parametrize("horizon", [0, 100, 1000.7])
def test_an_episode_is_stopped_at_the_horizon(horizon):
    """All that happens up to the horizon happens; then the episode is over and has no makespan."""
    instance = load_instance("DMH-01")
    free, bounded = Simulator(instance), Simulator(instance, horizon=horizon)
    while not bounded.done[0]:
        assert np.array_equal(bounded.observation, free.observation)
        assert bounded.time[0] == free.time[0] <= horizon
        action = free.action_mask[0].argmax()
        free.step([action])
        bounded.step([action])
    assert free.status[0] == "running"
    assert bounded.status[0] == "stopped"
    assert bounded.time[0] == int(horizon) < free.time[0]
    assert np.isnan(bounded.makespan[0]) and np.isnan(bounded.tardiness[0])
    assert not bounded.action_mask.any()
    assert (bounded.schedule(0).finish <= horizon).all()
    play_on(free)
    for end, status in ((free.makespan[0], "finished"), (free.makespan[0] - 1.0, "stopped")):
        bounded = Simulator(instance, horizon=end)
        play_on(bounded)
        assert bounded.status.tolist() == [status]


# Rows of a batch


@numba.njit
def copy(source, i, target, j):
    copy_row(source, i, target, j)


@pytest.mark.oracle
def test_a_copied_row_is_whole():
    """Search copies partial schedules; a field left out would be that of another one."""
    problem = Simulator(load_instance("DMH-01")).problem
    source, target = (allocate_state(problem, 3) for _ in range(2))
    for k, array in enumerate(source):
        words = array.view(np.int64) if array.dtype.names and array.size else array
        words[...] = np.arange(words.size).reshape(words.shape) + k + 1
    # All tasks have arrived and wait: what belongs to those to come is not copied.
    source.episode["n_arrived"] = source.episode["pool_size"] = source.pool.shape[1]
    copy(source, 1, target, 2)
    for name, array, copied in zip(source._fields, source, target, strict=True):
        if array.size == 0:  # it says what kernels are compiled for
            continue
        assert copied[2].tobytes() == array[1].tobytes(), name
        assert not any(copied[:2].tobytes()), name
