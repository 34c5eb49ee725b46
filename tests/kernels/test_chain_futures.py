"""Futures of a present with chains: what comes with a finite horizon, and what of the day is kept."""

import random

import numpy as np
import pytest
import worlds
from episodes import begin
from played import Played

from acerl_np import IndexPolicy, Instance, Layout, Lookahead, Simulator
from acerl_np.kernels import state as S
from acerl_np.kernels.futures import PRESENT, open_future
from acerl_np.kernels.lookahead import rate_candidates

NEAREST = IndexPolicy.of_weights(approach=-1.0)
HORIZON = 30.0


def decisions(seed, most=6):
    """Decisions of a random day with chains: the episode, and its record."""
    world, draws = worlds.chained_world(seed), random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(draws.choice(["assignment", "pickup"]))
    day = Played(layout, world.rows)
    instance = Instance.from_rows("day", layout, world.rows)
    for _ in range(most):
        if day.phase != S.RUNNING:
            break
        yield day, instance
        v, task = draws.choice(day.candidates())
        day.decide(v, day.pool.index(task))


def look_ahead(day, instance, **options):
    """A lookahead that has listed its candidates at a decision of the day."""
    policy = Lookahead(NEAREST, candidates=24, penalty=0.0, **options)
    ahead = policy.prepare(day.problem, [instance])[1]()
    begin(day, ahead, decision=day.n_decisions)
    return ahead


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_of_a_day_is_worth_what_it_is_with_its_past(seed):
    """Where nothing is to come: only what is open, at machines and expected, or all of the episode."""
    for day, instance in decisions(seed):
        both = [look_ahead(day, instance, futures=0, horizon=x) for x in (np.inf, HORIZON)]
        for ahead in both:
            rate_candidates(day.problem, day.state, np.int64(0), ahead, S.NEVER)
        n = int(both[0].n_candidates[0])
        assert both[1].n_candidates[0] == n > 0
        assert np.array_equal(both[0].candidate[0, :n], both[1].candidate[0, :n])
        assert np.array_equal(both[0].total[0, :n], both[1].total[0, :n])


def make_history(instance):
    """Another record with chains on the floor of a day; each task is known by its handling time."""
    rows = [
        {**row, "handling_time": k / 8, "arrival_time": row["arrival_time"] + 7}
        for k, row in enumerate(instance.rows())
    ]
    return Instance.from_rows("history", instance.layout, rows)


def check_chains(ahead, history, now, first):
    """Rows from `first` on are chains of the history as a whole, each after what it is there."""
    future, rows = ahead.future, history.after.tolist()
    ids = [round(8 * x) for x in future.record[0, :, S.RECORD_HANDLING].tolist()]
    own = range(first, int(future.instance[0, S.INSTANCE_N_TASKS]))
    came = [ids[n] for n in own]
    unit = float(np.floor(future.unit[0, S.UNIT_SECONDS]))
    for n in own:
        task, after = ids[n], int(future.chain[0, n, S.CHAIN_AFTER])
        arrival = future.record[0, n, S.RECORD_ARRIVAL]
        assert future.chain[0, n, S.CHAIN_PROCESSING] == np.ceil(history.processing[task])
        assert future.lead[0, n, S.LEAD_ANNOUNCED] == history.announced[task]
        if rows[task] < 0:
            assert after == -1 and now < arrival <= now + HORIZON
            assert abs(arrival - history.arrival[task]) <= unit
        else:
            assert ids[after] == rows[task] and first <= after < n
            assert arrival == min(history.arrival[task], now + HORIZON)
    for task, after in enumerate(rows):
        lead = history.announced[task] if np.isfinite(history.announced[task]) else 0.0
        if after >= 0:
            assert (task in came) == (after in came)
        elif now + max(unit, lead + unit) + 1 < history.arrival[task] <= now + HORIZON - unit:
            assert task in came
    assert came == sorted(set(came))
    return len(came)


def check_links(ahead, day, first):
    """Rows of the day's open tasks follow each other as they do in the day."""
    future, n_arrived = ahead.future, day.n_arrived
    records = [day.problem.record[0, task].tolist() for task in range(n_arrived)]
    for n in range(first):
        after = int(future.chain[0, n, S.CHAIN_AFTER])
        assert future.record[0, n].tolist() in records
        assert after < first and after != n
    expected = [np.int64(x) for x in day.state.expected[0, : day.n_expected]]
    own = ahead.states.expected[PRESENT, : day.n_expected].tolist()
    for task, n in zip(expected, own, strict=True):
        assert future.record[0, n].tolist() == records[task]
        before, after = day.problem.chain[0, task, S.CHAIN_AFTER], future.chain[0, n, S.CHAIN_AFTER]
        if before >= 0 and day.state.job[0, task, S.JOB_KNOWN] == S.NEVER:
            assert future.record[0, after].tolist() == records[before]


def play_future(ahead, layout, first, draws):
    """Play the future at hand at random: all is delivered, nothing before what it follows is done."""
    played = Played.__new__(Played)
    played.layout, played.problem, played.state = layout, ahead.future, ahead.states
    n = int(ahead.future.instance[0, S.INSTANCE_N_TASKS])
    played.ids = [f"row {k}" for k in range(n)]
    while played.phase == S.RUNNING:
        v, task = draws.choice(played.candidates())
        played.decide(v, played.pool.index(task))
    assert played.phase == S.FINISHED and played.n_finished == n
    done, finish = ahead.states.job[0, :n, S.JOB_DONE], [row[3] for row in played.schedule()]
    for k, after in enumerate(ahead.future.chain[0, :n, S.CHAIN_AFTER].tolist()):
        assert after < 0 or k < first or finish[k] >= done[after] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_futures_with_a_horizon_hold_whole_chains_and_end(seed):
    draws, n_came = random.Random(seed), 0
    for day, instance in decisions(seed):
        history = make_history(instance)
        ahead = look_ahead(
            day, instance, history=history, futures=3, weights="even", horizon=HORIZON
        )
        first = int(ahead.states.episode[PRESENT, S.EPISODE_N_ARRIVED])
        present = [array.copy() for array in ahead.states]
        for f in range(3):
            for array, kept in zip(ahead.states, present, strict=True):
                array[:] = kept
            open_future(day.problem, day.state, np.int64(0), ahead, np.int64(f), np.int64(0))
            n_came += check_chains(ahead, history, day.time, first)
            check_links(ahead, day, first)
            play_future(ahead, instance.layout, first, draws)
    assert n_came > 0


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [np.inf, 300.0])
def test_a_late_arrival_within_a_chain_hides_nothing_of_a_record(horizon):
    """A record of its own arrivals 2 s later agrees with the day, wherever a chain has a late task."""
    fleet = [{"id": name, "start": "A", "speed": 5.0} for name in ("v", "w")]
    layout = Layout.from_dict(worlds.straight_floor(fleet, machines=[{"site": "C"}]))

    def make(name, shift):
        rows = []
        for k in range(12):
            late = 400.0 + shift if k == 1 else ""
            rows.append(
                worlds.make_task(f"a{k}", "A", "C", 1.0 + shift + 10.0 * k, 900.0, processing=1.0)
            )
            rows.append(worlds.make_task(f"b{k}", "C", "B", late, 900.0, after=f"a{k}"))
        return Instance.from_rows(name, layout, rows)

    day, record = make("day", 0.0), make("record", 2.0)
    simulator = Simulator(day, slots="pool")
    while simulator.time[0] < 60.0:
        simulator.assign(*NEAREST.choose(simulator))
    policy = Lookahead(NEAREST, history=record, futures=1, horizon=horizon)
    ahead = policy.prepare(simulator.problem, [day])[1]()
    begin(simulator, ahead)
    assert ahead.agreement.tolist() == [1.0] and 2.0 <= ahead.deviation[0] <= 3.0
    seen = int(simulator.state.episode[0, S.EPISODE_N_ARRIVED])
    assert ahead.matched.sum() == seen > 10
