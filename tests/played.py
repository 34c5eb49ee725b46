"""Episodes on the kernels, each beside that of a slow simulator."""

import random

import numpy as np
import pytest
import worlds
from full import Episode
from hypothesis import strategies as st

from acerl_np import Instance, Layout
from acerl_np.kernels.core import state as S
from acerl_np.kernels.episode.events import advance_events, open_episode
from acerl_np.kernels.motion.commitment import take_decision
from acerl_np.kernels.motion.energy import find_level
from acerl_np.kernels.motion.offers import find_priority, is_free, is_offered, may_wait
from acerl_np.kernels.motion.ways import find_delay, find_rest, find_stand
from acerl_np.problem.tables import build_problem

ROW = np.int64(0)
WORDS = ("idle", "working", "broken", "roaming", "parking", "to_charger", "queued", "charging")


def list_kinds(plain):
    """Worlds by what their vehicles do of themselves."""
    return {
        "as they are": plain,
        "parking": worlds.with_parking(plain),
        "batteries": worlds.with_chargers(plain),
        "both": worlds.with_parking(worlds.with_chargers(plain)),
    }


KINDS = list_kinds(worlds.worlds())


class Played:
    """An episode on the kernels, asked as the slow simulator is."""

    def __init__(self, layout, rows):
        self.layout = layout
        instance = Instance.from_rows("random", layout, rows)
        self.ids, self.problem = list(instance.tasks), build_problem([instance])
        self.state = S.allocate_state(self.problem, 1)
        open_episode(self.problem, self.state, ROW, ROW)
        advance_events(self.problem, self.state, ROW)

    def __getattr__(self, name):
        """A field of the episode."""
        return int(self.state.episode[name][0])

    @property
    def vehicles(self):
        return [np.int64(v) for v in range(len(self.layout.vehicles))]

    @property
    def pool(self):
        return [self.ids[task] for task in self.state.pool[0, : self.pool_size]]

    def statuses(self):
        return [WORDS[self.state.vehicle[0, v].status] for v in self.vehicles]

    def levels(self):
        own = self.problem, self.state, ROW
        return [
            None if battery is None else int(find_level(*own, v, np.int64(self.time)))
            for v, battery in zip(self.vehicles, self.layout.batteries, strict=True)
        ]

    def stand(self, v):
        if not is_free(self.state, ROW, v):
            return None
        site = self.layout.sites[find_stand(self.state, ROW, v)].id
        left = find_rest(self.state, ROW, v)
        return site, self.time + int(find_delay(self.state, ROW, v)), pytest.approx(left, abs=1e-6)

    def candidates(self):
        problem, state = self.problem, self.state
        found = []
        for v in self.vehicles:
            if is_free(state, ROW, v):
                priority = find_priority(problem, state, ROW, v)
                for task in state.pool[0, : self.pool_size].astype(np.int64):
                    if is_offered(problem, state, ROW, v, task, priority):
                        found.append((int(v), self.ids[task]))
        return found

    def decide(self, v, position):
        take_decision(self.problem, self.state, ROW, np.int64(v), np.int64(position))
        advance_events(self.problem, self.state, ROW)

    def schedule(self):
        return [
            (name, *self.state.task[0, task].tolist()[:3]) for task, name in enumerate(self.ids)
        ]


def decide_drawn(slow, draws):
    """Wait or assign a pair in the slow simulator; return which, (-1, "") for waiting."""
    if draws.random() < 0.15 and slow.may_wait():
        slow.wait()
        return -1, ""
    chosen = draws.choice(slow.candidates())
    slow.assign(*chosen)
    return chosen


def compare_drawn(some_worlds, commitment, data):
    """Play a drawn world both alike."""
    world = data.draw(some_worlds)
    max_changes, seed = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 10**6))
    compare(world, commitment, max_changes, seed)


def compare(world, commitment, max_changes, seed):
    """Play both alike, at random, and return both."""
    draws = random.Random(seed)
    layout = Layout.from_dict(world.layout).with_commitment(commitment, max_changes)
    fast = Played(layout, world.rows)
    how = {"commitment": commitment, "max_changes": max_changes, "scaling": worlds.RAW}
    slow = Episode(world.layout, world.rows, **how)
    while not slow.done:
        assert fast.phase == S.RUNNING
        assert (fast.time, fast.pool) == (slow.time, slow.pool)
        assert (fast.statuses(), fast.levels()) == (slow.statuses(), slow.levels())
        for v in fast.vehicles:
            if v not in slow._settled:
                assert fast.stand(v) == slow.stand(v)
        assert fast.candidates() == slow.candidates()
        assert bool(may_wait(fast.problem, fast.state, ROW)) == slow.may_wait()
        pool = fast.pool
        v, task = decide_drawn(slow, draws)
        fast.decide(v, pool.index(task) if task else -1)
    assert fast.phase == S.FINISHED
    assert fast.time == slow.time
    assert fast.schedule() == slow.schedule
    changes = fast.state.task["changes"][0, : len(fast.ids)]
    assert changes.tolist() == slow.changes
    return fast, slow
