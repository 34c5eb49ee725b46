"""The scheduler for the League of Robot Runners, against a stand-in with the kit's rules for tasks."""

from types import SimpleNamespace

import numpy as np
import pytest
from test_examples import load_example

SIDE, TICKS = 9, 5


class Kit:
    """Robots that drive a cell a tick and pass through each other; a call takes `TICKS` ticks, as in the kit.

    A task is a list of cells to be visited in order. One that was begun stays with its robot, and one that
    is done cannot be proposed again: the kit refuses both, and so does `propose`.
    """

    def __init__(self, n_robots, seed):
        self.random = np.random.default_rng(seed)
        wall = np.zeros(SIDE * SIDE, int)
        self.free = np.arange(SIDE * SIDE)
        self.cells = self.random.choice(self.free, n_robots, replace=False)
        self.tasks, self.done, self.schedule = {}, 0, [-1] * n_robots
        self.new, self.freed = [], list(range(n_robots))
        self.known = SimpleNamespace(
            map=wall.tolist(), rows=SIDE, cols=SIDE, num_of_agents=n_robots, max_counter=1
        )
        self.reveal()

    def reveal(self):
        while len(self.tasks) < 1.5 * len(self.schedule):
            task = self.done + len(self.tasks)
            stops = self.random.choice(self.free, self.random.integers(2, 5)).tolist()
            self.tasks[task] = SimpleNamespace(locations=stops, idx_next_loc=0, agent_assigned=-1)
            self.new.append(task)

    def show(self, now):
        """Put into the scheduler's view what the kit knows now, as a copy."""
        own = self.known
        own.curr_timestep = now
        own.curr_states = [SimpleNamespace(location=int(cell)) for cell in self.cells]
        own.task_pool = {task: SimpleNamespace(**vars(one)) for task, one in self.tasks.items()}
        own.curr_task_schedule = list(self.schedule)
        own.new_tasks, own.new_freeagents, self.new, self.freed = self.new, self.freed, [], []

    def propose(self, proposal):
        """Take what the kit takes of a proposal; return how many changes of begun tasks it refuses."""
        refused, taken = 0, set()
        begun = {t: one.agent_assigned for t, one in self.tasks.items() if one.idx_next_loc}
        for robot, task in enumerate(proposal):
            held = self.schedule[robot]
            if begun.get(held) == robot and task != held:
                refused, task = refused + 1, held
            if task not in self.tasks or task in taken or begun.get(task, robot) != robot:
                task = -1
            taken.add(task)
            self.schedule[robot] = task
        for robot, task in enumerate(self.schedule):
            if task >= 0:
                self.tasks[task].agent_assigned = robot
        return refused

    def drive(self):
        for robot, task in enumerate(self.schedule):
            if task < 0:
                continue
            one = self.tasks[task]
            row, column = divmod(self.cells[robot], SIDE)
            to_row, to_column = divmod(one.locations[one.idx_next_loc], SIDE)
            if column != to_column:
                column += np.sign(to_column - column)
            else:
                row += np.sign(to_row - row)
            self.cells[robot] = row * SIDE + column
            if self.cells[robot] == one.locations[one.idx_next_loc]:
                one.idx_next_loc += 1
            if one.idx_next_loc == len(one.locations):
                del self.tasks[task]
                self.done, self.schedule[robot] = self.done + 1, -1
                self.freed.append(robot)
        self.reveal()


@pytest.mark.parametrize(
    ("policy", "commitment"),
    [("assignment", "assignment"), ("assignment", "pickup"), ("FCFS", "assignment")],
)
def test_robots_work_without_end(policy, commitment, monkeypatch):
    monkeypatch.setenv("ACERL_NP_POLICY", policy)
    monkeypatch.setenv("ACERL_NP_COMMITMENT", commitment)
    runners = load_example("robot_runners")
    kit, scheduler, refused = Kit(12, 3), runners.pyTaskScheduler(), 0
    scheduler.env = kit.known
    scheduler.initialize(30_000)
    for turn in range(80):
        kit.show(turn * TICKS)
        proposal = scheduler.plan(1000)
        for _ in range(TICKS):  # the plan of a call is carried out when the next one begins
            kit.drive()
        refused += kit.propose(proposal)
        # The scheduler's picture is the kit's, but for what has happened since it was shown.
        assert scheduler.dispatcher.check() == []
    assert kit.done > 60
    assert (refused > 0) == (commitment == "pickup")


def test_cells_beside_each_other_are_joined():
    layout = load_example("robot_runners").make_layout([0, 0, 1, 0, 0, 0], 3)
    assert [site.id for site in layout.sites] == ["0", "1", "3", "4", "5"]
    assert {(edge.a, edge.b) for edge in layout.edges} == {
        ("0", "1"),
        ("0", "3"),
        ("1", "4"),
        ("3", "4"),
        ("4", "5"),
    }
