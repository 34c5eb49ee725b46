"""What may come: how historical records weigh, and the futures that they make of the present situation.

A future is the present situation with tasks still to come, those of a historical record, and with that
record's breakdowns. The true future is never looked at: of the episode's own record only the tasks that
have arrived are read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acerl_np.kernels.core import random
from acerl_np.kernels.core import state as S
from acerl_np.kernels.core.records import copy_records
from acerl_np.kernels.dispatching import deciders, index
from acerl_np.kernels.episode import breakdowns, chains
from acerl_np.kernels.motion import commitment, energy, ways
from acerl_np.kernels.rollout import variation
from acerl_np.support.compiled import inner_kernel, kernel

GOLDEN = 0.6180339887498949
"""Step of the additive recurrence that spreads any number of futures over the history by weight."""

TRUST = 2.0
"""Log weight of each task of the day by which a record agrees better than half."""

LEAST_REACH, TRIPS = 900.0, 3.0
"""s, and mean trips of each vehicle per task that waits for it, that a future reaches at least."""

N_PAST_FIELDS = 4
PAST_CLOCK, PAST_DELAY, PAST_TASKS, PAST_SEEN = range(N_PAST_FIELDS)

N_PROGRESS_FIELDS = 3
PROGRESS_FUTURE, PROGRESS_CANDIDATE, PROGRESS_PLAYS = range(N_PROGRESS_FIELDS)

PRESENT, PLAYED = np.int64(0), np.int64(1)
"""Rows of `Ahead.states`; typed, or numba would compile what they are passed to for each of them."""


class Ahead(NamedTuple):
    """A lookahead with a worker's own scratch; H historical records, R bases, C candidates.

    Attributes
    ----------
    decider : Decider, the bases, one in each of its first R rows
    pairs : Pairs, scratch of index functions as bases, which holds the scores of all pairs after a decision
    ranks_pairs : bool, whether the bases are index functions
    rules : ndarray(int64, (n_rules,)), what picks further candidates of other bases
    draws : bool, whether the bases draw
    history : Problem, H instances, on the floor and with the fleet of the episodes
    excluded : ndarray(bool, (I, H)), records that are no future of an instance: its own content, and those
        of another part of the floor
    n_futures : int
    future : Problem, scratch: one instance, the future at hand
    states : State, scratch: row PRESENT is the situation in the future at hand, row PLAYED is played
    seed : int, of the futures' draws, beside the episode's key
    key : ndarray(uint64, (4,)), stream of the present decision's draws
    matches : bool, whether records weigh by how well they agree with the day so far, or all the same
    cost_limit, penalty, margin : float
        A future's value is its objective plus `penalty` times the cost beyond `cost_limit - margin`, both as
        `future` weighs them.
    horizon : ndarray(float64, (I,)), s of arrivals that a future of an instance holds, beside what is open;
        inf for all of the episode, 0 for `find_reach`
    trip : float, s, mean of the history's trips; 0 without a history
    reach : ndarray(float64, (1,)), the present decision's horizon
    past : ndarray(float64, (N_PAST_FIELDS,)), what the state does not hold
        PAST_CLOCK : s between the day's start and the state's tick 0
        PAST_DELAY, PAST_TASKS : s of delay of the tasks that have left the tables, and their number
        PAST_SEEN : tasks of the day so far in `seen_...`; -1 where the tables have them
    seen_ends : ndarray(ENDS, (n,)), sites of the day's tasks so far, by arrival
    seen_record : ndarray(RECORD, (n,)), times since the day's start
    agreement, deviation, weight : ndarray(float64, (H,)), see `weigh_history`
    matched : ndarray(bool, (H, M)), tasks of the history that have a counterpart in the day so far
    candidate : ndarray(int64, (R, C, 2)), vehicle and position in the pool
    n_candidates : ndarray(int64, (R,))
    total, square : ndarray(float64, (R, C)), sums of the futures' values, and of the squares of what they are
        above those of the base's own choice
    n_seen : ndarray(int64, (R, C)), futures in these sums
    is_behind : ndarray(bool, (R, C)), candidates that are played no more, as they are clearly behind
    progress : ndarray(int64, (N_PROGRESS_FIELDS,)), how far the futures are played
        PROGRESS_FUTURE, PROGRESS_CANDIDATE : the future at hand; of all bases' candidates the one at hand
        PROGRESS_PLAYS : whether row PLAYED is on the way
    known : ndarray(bool, (H,)), whether `value` has the record's, which is the same in all its futures
    value : ndarray(float64, (H, R, C)), values of the candidates in the last future of each record
    """

    decider: deciders.Decider
    pairs: index.Pairs
    ranks_pairs: bool
    rules: np.ndarray
    draws: bool
    history: S.Problem
    excluded: np.ndarray
    n_futures: int
    future: S.Problem
    states: S.State
    seed: int
    key: np.ndarray
    matches: bool
    cost_limit: float
    penalty: float
    margin: float
    horizon: np.ndarray
    trip: float
    reach: np.ndarray
    past: np.ndarray
    seen_ends: np.ndarray
    seen_record: np.ndarray
    agreement: np.ndarray
    deviation: np.ndarray
    weight: np.ndarray
    matched: np.ndarray
    candidate: np.ndarray
    n_candidates: np.ndarray
    total: np.ndarray
    square: np.ndarray
    n_seen: np.ndarray
    is_behind: np.ndarray
    progress: np.ndarray
    known: np.ndarray
    value: np.ndarray


@inner_kernel
def find_reach(problem, state, b, ahead):
    """Return how many seconds of arrivals the futures of a decision hold, inf for all of the episode."""
    i = state.episode[b].instance
    horizon = ahead.horizon[problem.instance[i].record]
    if horizon > 0.0:
        return horizon
    n_vehicles = problem.instance[i].n_vehicles
    crowd = max(1.0, state.episode[b].pool_size / n_vehicles)
    return max(LEAST_REACH, TRIPS * ahead.trip * crowd)


@inner_kernel
def find_moment(record, chain, task):
    """Return the arrival by which a task stands in its record: that of the first of its chain."""
    while task < len(chain) and chain[task].after >= 0:
        task = chain[task].after
    return record[task].arrival


@inner_kernel
def find_first(record, chain, n, moment):
    """Return the first of n tasks (ndarray(RECORD, (n,))) whose moment is `moment` or later."""
    low, high = np.int64(0), np.int64(n)
    while low < high:
        middle = (low + high) // 2
        if find_moment(record, chain, middle) < moment:
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def match_record(history, h, ends, record, chain, n_seen, now, window, ahead):
    """Find for each task of the day so far its counterpart in record h, and how well both agree.

    A counterpart has the same pickup, delivery, expiry and demand, and arrives within the window, as does
    the first of its chain; the nearest arrival wins. Agreement is the share of tasks with a counterpart among
    all that have arrived by now in either, within a horizon's time; the deviation is the largest difference
    of their arrivals. Returns the number of tasks of the day that were looked at.

    Parameters
    ----------
    ends, record, chain
        The day's tasks so far in the first `n_seen` rows, fields as in `Problem`.
    now, window : float, s
    ahead : Ahead, modified: `matched`, `deviation` and `agreement` of record h
    """
    n = history.instance[h].n_tasks
    reach = ahead.reach[0]
    own, links = history.record[h], history.chain[h]
    # Deviations, hence what is asked for later, reach 1.5 windows.
    first = find_first(own, links, n, now - reach - 2.0 * window)
    for task in range(first, find_first(own, links, n, now + reach + 2.0 * window)):
        ahead.matched[h, task] = False
    found, deviation = 0, 0.0
    earliest = find_first(record, chain, n_seen, now - reach)
    for seen in range(earliest, n_seen):
        arrival, moment = record[seen].arrival, find_moment(record, chain, seen)
        best, nearest = -1, np.inf
        task = find_first(own, links, n, moment - window)
        while task < n and find_moment(own, links, task) <= moment + window:
            difference = abs(own[task].arrival - arrival)
            if (
                difference < nearest
                and arrival - window <= own[task].arrival <= arrival + window
                and not ahead.matched[h, task]
                and history.ends[h, task].pickup == ends[seen].pickup
                and history.ends[h, task].delivery == ends[seen].delivery
                and own[task].expiry == record[seen].expiry
                and own[task].demand == record[seen].demand
            ):
                best, nearest = task, difference
            task += 1
        if best >= 0:
            ahead.matched[h, best] = True
            found += 1
            deviation = max(deviation, nearest)
    missed = 0
    # The counterpart of an earlier one may have arrived before what is looked at.
    early = find_first(own, links, n, now - reach + window)
    for task in range(early, find_first(own, links, n, now)):
        latest = own[task].arrival + deviation
        missed += latest < now and not ahead.matched[h, task]
    # The largest of k deviations is a little below the largest possible one.
    ahead.deviation[h] = np.ceil(deviation * (found + 2) / (found + 1))
    n_looked = n_seen - earliest
    ahead.agreement[h] = found / max(1, n_looked + missed)
    return n_looked


@inner_kernel
def weigh_history(problem, state, b, ahead):
    """Weigh the historical records, the sum 1: all alike, or by how well they agree with the day so far.

    A record that agrees by half or less weighs as any other, so on days that do not repeat all weigh alike.
    """
    i = state.episode[b].instance
    own, history = problem.instance[i].record, ahead.history
    now = np.float64(state.episode[b].time) + ahead.past[PAST_CLOCK]
    window = problem.unit[i].seconds
    highest = 0.0
    n_records = len(history.instance)
    for h in range(n_records):
        ahead.agreement[h] = 0.0
        if ahead.matches and not ahead.excluded[own, h]:
            n = np.int64(ahead.past[PAST_SEEN])
            ends, record, chain = ahead.seen_ends, ahead.seen_record, problem.chain[i][:0]
            if n < 0:
                n = state.episode[b].n_arrived
                ends, record, chain = problem.ends[i], problem.record[i], problem.chain[i]
            n = match_record(history, h, ends, record, chain, n, now, window, ahead)
            ahead.weight[h] = TRUST * n * max(0.0, 2.0 * ahead.agreement[h] - 1.0)
            highest = max(highest, ahead.weight[h])
        else:
            ahead.weight[h] = 0.0
    total = 0.0
    for h in range(n_records):
        if ahead.excluded[own, h]:
            ahead.weight[h] = 0.0
        else:
            ahead.weight[h] = np.exp(ahead.weight[h] - highest)
            total += ahead.weight[h]
    for h in range(n_records):
        ahead.weight[h] /= total


@inner_kernel
def write_present(problem, state, b, ahead):
    """Write what all futures of a decision share: floor, fleet, tasks that have arrived, situation.

    With a horizon, and of a live day, only those tasks that wait or are under way.
    """
    i = state.episode[b].instance
    future, states = ahead.future, ahead.states
    S.copy_floor(problem, i, future, 0)
    if ahead.reach[0] == np.inf and ahead.past[PAST_SEEN] < 0.0:
        for task in range(state.episode[b].n_arrived):
            variation.copy_task(problem, i, task, future, 0, task)
        S.copy_row(state, b, states, PRESENT)
        count_cut_off(states)
    else:
        S.copy_fleet(state, b, states, PRESENT)
        states.episode[PRESENT].n_arrived = 0
        states.episode[PRESENT].n_finished = 0
        recalls = problem.instance[i].max_changes >= 0
        if recalls:
            copy_open_tasks(problem, state, b, ahead)
        for position in range(0 if recalls else state.episode[b].pool_size):
            waiting = state.pool[b, position]
            states.pool[PRESENT, position] = copy_open_task(problem, state, b, ahead, waiting)
        for v in range(problem.instance[i].n_vehicles):
            vehicle = states.vehicle[PRESENT, v]
            waited = vehicle.last_waiting
            S.clear_usage(vehicle)
            if state.vehicle[b, v].task >= 0:
                task = states.vehicle[PRESENT, v].task
                if not recalls:
                    task = copy_open_task(problem, state, b, ahead, task)
                states.vehicle[PRESENT, v].task = task
                vehicle.waiting = vehicle.last_waiting = waited
        if S.is_chained(problem, i):
            copy_chains(problem, state, b, ahead)
    states.episode[PRESENT].instance = 0


@S.unless_auxiliary()
def count_cut_off(states):
    """Count tasks as delivered to which no way leads: nobody knows when one will be opened."""
    for task in range(states.episode[PRESENT].n_arrived):
        if states.task[PRESENT, task].vehicle == -2:
            states.task[PRESENT, task].finish = 0
            states.episode[PRESENT].n_finished += 1


@kernel
def copy_open_tasks(problem, state, b, ahead):
    """Copy all open and expected tasks in the order of their rows, by which those that are called back wait.

    In a round a task may both have a vehicle and wait for another one.
    """
    states, i = ahead.states, state.episode[b].instance
    n_vehicles = problem.instance[i].n_vehicles
    for task in range(problem.instance[i].n_tasks):
        position, own, place = commitment.find_waiting(state, b, task), np.int64(-1), np.int64(-1)
        for v in range(n_vehicles):
            vehicle = state.vehicle[b, v]
            if vehicle.task == task:
                own = np.int64(v)
        for k in range(state.episode[b].n_expected):
            if state.expected[b, k] == task:
                place = np.int64(k)
        if position < 0 and own < 0 and place < 0:
            continue
        row = copy_open_task(problem, state, b, ahead, np.int64(task))
        if position >= 0:
            states.pool[PRESENT, position] = row
        if own >= 0:
            states.vehicle[PRESENT, own].task = row
        if place >= 0:
            states.expected[PRESENT, place] = row


@inner_kernel
def copy_open_task(problem, state, b, ahead, task):
    """Copy a task that has arrived to the next row of the future, and return that row."""
    states = ahead.states
    n = states.episode[PRESENT].n_arrived
    variation.copy_task(problem, state.episode[b].instance, task, ahead.future, 0, n)
    states.waiting_since[PRESENT, n] = state.waiting_since[b, task]
    copy_records(state.task[b], task, states.task[PRESENT], n, 1)
    if S.is_chained(problem, state.episode[b].instance):
        copy_records(state.job[b], task, states.job[PRESENT], n, 1)
        states.ready[PRESENT, n] = state.ready[b, task]
        ahead.future.arrival_tick[0, n] = task  # nobody asks any more when it arrived
    states.episode[PRESENT].n_arrived = n + 1
    return n


@kernel
def copy_chains(problem, state, b, ahead):
    """Copy what is at machines or expected, too, and let tasks follow each other by their new rows."""
    future, states = ahead.future, ahead.states
    for k in range(state.episode[b].n_processed):
        task = state.processed[b, k]
        states.processed[PRESENT, k] = copy_open_task(problem, state, b, ahead, task)
    states.episode[PRESENT].n_finished = state.episode[b].n_processed
    recalls = problem.instance[state.episode[b].instance].max_changes >= 0
    for k in range(0 if recalls else state.episode[b].n_expected):
        task = state.expected[b, k]
        states.expected[PRESENT, k] = copy_open_task(problem, state, b, ahead, task)
    for n in range(states.episode[PRESENT].n_arrived):
        end = states.episode[PRESENT].n_arrived
        after = future.chain[0, n].after
        future.chain[0, n].after = find_origin(future, 0, end, after)


@inner_kernel
def find_origin(future, first, end, origin):
    """Return which of some rows of a future was copied from a row, as `arrival_tick` says; -1 for none."""
    for n in range(end - 1, first - 1, -1):
        if origin >= 0 and future.arrival_tick[0, n] == origin:
            return np.int64(n)
    return np.int64(-1)


@kernel
def link_task(future, task, first, n, arrival, now):
    """Give row n of a future, a task of history, its arrival and what it follows, from row `first` on.

    Return whether it may come: what it follows does, or nobody had to announce it by now.
    """
    chain = future.chain[0, n]
    after = chain.after
    future.record[0, n].arrival = arrival
    future.arrival_tick[0, n] = task
    chain.after = find_origin(future, first, n, after)
    if after >= 0:
        return chain.after >= 0
    unannounced = future.lead[0, n].announced == np.inf
    return unannounced or chains.find_known(future, 0, n, arrival) > now


@inner_kernel
def write_future(state, b, ahead, f, h):
    """Write what record h makes of future f: its tasks that have not arrived, and its breakdowns.

    A record that agrees with the day leaves its tasks without a counterpart, moved by at most its
    deviation. Any other leaves its tasks after now, moved by at most a unit of time: a few records give many
    futures then.
    """
    history, future = ahead.history, ahead.future
    now = np.float64(state.episode[b].time)
    clock, reach = ahead.past[PAST_CLOCK], ahead.reach[0]
    n = ahead.states.episode[PRESENT].n_arrived
    is_copy = ahead.agreement[h] > 0.5
    unit = np.floor(future.unit[0].seconds)
    moved = ahead.deviation[h] if is_copy else unit
    n_tasks, n_present = history.instance[h].n_tasks, n
    chained = S.is_chained(future, 0)
    has_chains = chained and S.is_chained(history, h)
    own, links = history.record[h], history.chain[h]
    for task in range(find_first(own, links, n_tasks, now + clock - moved), n_tasks):
        if find_moment(own, links, task) - moved > now + clock + reach:
            break
        arrival = own[task].arrival
        follows = has_chains and history.chain[h, task].after >= 0
        uniform = random.draw_uniform(ahead.key, task, f + 1)
        if follows:
            arrival = min(arrival - clock, now + reach)  # comes if what it follows does
        elif is_copy:
            if ahead.matched[h, task]:
                continue
            arrival = variation.perturb_arrival(arrival, ahead.deviation[h], uniform) - clock
            arrival = max(arrival, now + 1.0)
        else:
            arrival = variation.perturb_arrival(arrival, unit, uniform) - clock
            if arrival <= now:
                continue
        if arrival > now + reach:
            continue
        variation.copy_task(history, h, task, future, 0, n)
        if ways.is_cut_off(future, 0, n):
            continue
        if chained:
            n += link_task(future, task, n_present, n, arrival, now)
        else:
            variation.place_task(future, 0, n, arrival)
            n += 1
    future.instance[0].n_tasks = n
    if chained:
        chains.plan_arrivals(future, 0, n_present)
    # The true episode's horizon may have been found from the tasks that are still to come.
    future.instance[0].horizon = history.instance[h].horizon
    for v in range(future.breakdown.shape[1]):
        for k in range(future.breakdown.shape[2]):
            copy_records(history.breakdown[h, v], k, future.breakdown[0, v], k, 1)
            if history.breakdown[h, v, k].tick < S.NEVER:
                future.breakdown[0, v, k].tick -= np.int64(clock)


@inner_kernel
def find_repair_end(problem, state, b, v, ahead, f, h):
    """Return the tick at which the broken vehicle v may be back, as history knows it.

    Listed breakdowns last as long as the same vehicle's in record h, or as the history's in the mean;
    random ones are drawn. Of an empty battery the battery says it.
    """
    i = state.episode[b].instance
    now = state.episode[b].time
    mean = problem.fleet[i, v].mean_repair
    vehicle = state.vehicle[b, v]
    if energy.has_battery(problem, state, b, v) and vehicle.level == 0:
        tow = problem.battery[i, v].tow
        return max(now + 1, vehicle.level_tick + tow + 1)
    if problem.fleet[i, v].mean_uptime > 0.0:
        seconds = mean * random.draw_waiting_time(ahead.key, f, 2 * v + 1)
        return now + max(np.int64(1), S.count_ticks(seconds))
    history = ahead.history
    began = now
    k = state.vehicle[b, v].next_breakdown
    if k < problem.breakdown.shape[2] and problem.breakdown[i, v, k].tick <= now:
        began = problem.breakdown[i, v, k].tick
    ticks = np.int64(-1)
    clock = np.int64(ahead.past[PAST_CLOCK])
    for k in range(history.breakdown.shape[2]):
        if history.breakdown[h, v, k].tick - clock <= now:
            ticks = history.breakdown[h, v, k].repair_ticks
    if ticks < 0:
        total, n = np.int64(0), np.int64(0)
        for other in range(history.breakdown.shape[1]):
            for k in range(history.breakdown.shape[2]):
                if history.breakdown[h, other, k].tick < S.NEVER:
                    total += history.breakdown[h, other, k].repair_ticks
                    n += 1
        ticks = total // n if n > 0 else np.int64(problem.unit[i].seconds)
    return max(now + 1, began + ticks + 1)


@kernel
def open_future(problem, state, b, ahead, f, h):
    """Make future f of record h the one at hand; `write_present` must have been called."""
    write_future(state, b, ahead, f, h)
    states, future = ahead.states, ahead.future
    now = state.episode[b].time
    i = state.episode[b].instance
    ranks = problem.instance[i].has_priorities
    ranks |= ahead.history.instance[h].has_priorities
    future.instance[0].has_priorities = ranks
    # Breakdowns to come must not be those that the true episode will draw.
    for word in range(4):
        states.breakdown_key[PRESENT, word] = ahead.key[word] ^ np.uint64(f + 1)
    for v in range(future.instance[0].n_vehicles):
        states.vehicle[PRESENT, v].next_breakdown = 0
        breakdowns.plan_breakdown(future, states, PRESENT, v, now)
        if state.vehicle[b, v].status == S.BROKEN:
            back = find_repair_end(problem, state, b, v, ahead, f, h)
            states.vehicle[PRESENT, v].event_tick = back


@inner_kernel
def pick_future(ahead, f):
    """Return the historical record of future f: that on which its place in [0, 1) falls, by weight."""
    place = random.draw_uniform(ahead.key, np.int64(0), np.int64(0)) + f * GOLDEN
    place, last = place - np.floor(place), 0
    for h in range(len(ahead.weight)):
        if ahead.weight[h] > 0.0:
            last = h
            place -= ahead.weight[h]
            if place < 0.0:
                break
    return last


@inner_kernel
def play_decision(ahead, row):
    """Let the base of a row take the next decision of the future that is played."""
    future, states, decider = ahead.future, ahead.states, ahead.decider
    key, decision = states.breakdown_key[PLAYED], states.episode[PLAYED].n_decisions
    v, position, _ = deciders.decide(future, states, PLAYED, decider, row, key, decision)
    commitment.take_decision(future, states, PLAYED, v, position)


@inner_kernel
def is_repeated(ahead, h):
    """Whether all futures of record h are the same: its tasks stay where they are, and nothing is drawn."""
    if ahead.draws or ahead.agreement[h] <= 0.5 or ahead.deviation[h] > 0.0:
        return False
    for v in range(ahead.future.instance[0].n_vehicles):
        if ahead.future.fleet[0, v].mean_uptime > 0.0:
            return False
    return True
