"""Episodes of vehicles that meet, played from tick to tick, and what is never seen in what they have done."""

import itertools
from bisect import bisect_right
from dataclasses import replace

import numpy as np
from naive_traffic import list_zones
from worlds import World, chain

from acerl_np.kernels.core import state as S
from acerl_np.kernels.episode.events import open_episode, pass_tick
from acerl_np.kernels.motion import commitment, offers, traffic
from acerl_np.problem.instance import Instance
from acerl_np.problem.layout import Layout
from acerl_np.problem.tables import build_problem
from acerl_np.simulation.trace import find_part


def make_floor(sites, edges, starts, traffic, *, breakdowns=(), more=(), **vehicle):
    """A floor; `sites` are names, capitals aside, `edges` (a, b, metres) or (a, b, metres, one-way).

    `more` are further keys of a layout.
    """
    fleet = [
        {
            **{"id": f"v{v}", "start": start, "speed": 1.0, **vehicle},
            "breakdowns": [{"time": t, "repair_time": n} for w, t, n in breakdowns if w == v],
        }
        for v, start in enumerate(starts)
    ]
    return Layout.from_dict(
        {
            "format": 1,
            "sites": [{"id": x, "x": 0, "y": 0, "aside": x.isupper()} for x in sites],
            "edges": [
                {"a": a, "b": b, "length": metres, "one_way": bool(one_way)}
                for a, b, metres, *one_way in edges
            ],
            "vehicles": fleet,
            "traffic": traffic,
            **dict(more),
        }
    )


def line(*starts, headway=3, **keys):
    """A line A - b - c - D of edges of 10 s; the ends lie aside."""
    edges = [("A", "b", 10), ("b", "c", 10), ("c", "D", 10)]
    return make_floor(["A", "b", "c", "D"], edges, starts, {"headway": headway}, **keys)


def make_day(layout, *tasks):
    """`tasks` are (pickup, delivery, arrival, seconds of handling), all due in 100 s."""
    rows = [
        {
            **{"task": f"t{k}", "pickup": a, "delivery": b, "arrival_time": arrival},
            **{"expiry_time": 100, "handling_time": handling},
        }
        for k, (a, b, arrival, handling) in enumerate(tasks)
    ]
    return Instance.from_rows("day", layout, rows)


def draw_errands(draw, aside):
    """Parking and batteries, each on some floors."""
    more = {}
    if draw.random() < 0.5:
        places = [{"site": site, "places": draw.randrange(1, 3)} for site in aside[:2]]
        more["parking"] = {"places": places, "after": draw.randrange(20)}
    if draw.random() < 0.5:
        more["chargers"] = [{"site": aside[-1], "slots": draw.randrange(1, 3)}]
        rates = {"idle": draw.randrange(2), "charge": draw.randrange(20, 200)}
        rates |= {"empty": draw.randrange(1, 5), "loaded": draw.randrange(1, 6)}
        levels = {"critical": 700, "resume": 900, "good": 1500, "full": 4800, "capacity": 5000}
        start = draw.randrange(5001)
        more["battery"] = {**rates, **levels, "start": start, "tow": draw.randrange(60)}
    return more


def draw_blocks(draw, names, edges):
    """One to three blocks of some sites and edges, which may overlap."""
    blocks = []
    for k in range(draw.randrange(1, 4)):
        sites = draw.sample(names, draw.randrange(1, min(5, len(names))))
        own = [[a, b] for a, b, *_ in draw.sample(edges, draw.randrange(min(4, len(edges) + 1)))]
        kind = draw.choice(["single", "same_direction"])
        blocks.append({"id": f"b{k}", "kind": kind, "sites": sites, "edges": own})
    return blocks


def draw_day(draw, *, whole=True, breakdowns=False, errands=False, blocks=False, wide=False):
    """A day on a floor of 4 to 9 places, all in reach; `draw` is a `random.Random`.

    `errands`: some have parking, batteries, call-backs, machines, chains, announced tasks. `blocks`: it has
    some. `wide`: some places hold several vehicles.
    """
    n = draw.randrange(4, 10)
    names = [chr(97 + k).upper() if draw.random() < 0.35 else chr(97 + k) for k in range(n)]
    names[0] = "A"
    edges = [(names[k], names[draw.randrange(k)]) for k in range(1, n)]
    for _ in range(draw.randrange(4)):
        a, b = draw.sample(names, 2)
        if (a, b) not in edges and (b, a) not in edges:
            edges.append((a, b, draw.random() < 0.3))
    metres = (lambda: draw.randrange(1, 7)) if whole else (lambda: draw.uniform(0.0, 6.0))
    edges = [(a, b, metres(), *one_way) for a, b, *one_way in edges]
    starts = draw.choices([x for x in names if x.isupper()], k=draw.randrange(1, 5))
    traffic = {"headway": draw.randrange(1, 5), "lanes": draw.choice(["shared", "apart"])}
    halts = [
        (draw.randrange(len(starts)), draw.randrange(80), draw.randrange(30))
        for _ in range(draw.randrange(4) if breakdowns else 0)
    ]
    speed = 1.0 if whole else draw.uniform(0.5, 2.0)
    more = draw_errands(draw, [x for x in names if x.isupper()]) if errands else {}
    if blocks:
        more["blocks"] = draw_blocks(draw, names, edges)
    layout = make_floor(names, edges, starts, traffic, breakdowns=halts, more=more, speed=speed)
    if wide:
        sites = [replace(x, holds=draw.choice([1, 2, 2, 3])) for x in layout.sites]
        layout = replace(layout, sites=tuple(sites))
    if errands and draw.random() < 0.5:
        layout = layout.with_commitment("pickup", draw.randrange(1, 4))
    tasks = [
        (*draw.sample(names, 2), draw.randrange(60), draw.randrange(6))
        for _ in range(draw.randrange(1, 12))
    ]
    day = make_day(layout, *sorted(tasks, key=lambda task: task[2]))
    if not errands or draw.random() < 0.5:
        return day
    commitment = layout.commitment, layout.max_changes
    world = chain(draw.randint, World(layout.to_dict(), day.rows(), []))
    return replace(day := world.instance(), layout=day.layout.with_commitment(*commitment))


def choose_drawn(draw):
    """Give any waiting task to any free vehicle."""
    return lambda free, pool: (draw.choice(free), draw.randrange(len(pool)))


class Meeting:
    """An episode whose free vehicles take waiting tasks as `choose(free vehicles, pool)` says.

    If a vehicle may not take that task, it takes the next one that it may. The tables hold `beside`, too.
    """

    def __init__(self, instance, choose, key=(1, 2, 3, 4), beside=()):
        self.instance, self.problem = instance, build_problem([*beside, instance])
        self.state = S.allocate_state(self.problem, 1)
        self.state.breakdown_key[0] = key
        self.visits = [[] for _ in instance.layout.vehicles]
        self.came, self.alone = {}, {}
        open_episode(self.problem, self.state, 0, len(beside))
        while self.state.episode["phase"][0] == S.RUNNING:
            if offers.is_decision_due(self.problem, self.state, 0):
                tables = self.problem, self.state, 0
                free = [v for v in range(len(self.visits)) if offers.has_choice(*tables, v)]
                pool = self.state.pool[0, : self.state.episode["pool_size"][0]].tolist()
                v, position = choose(free, pool)
                while not offers.may_take(*tables, v, pool[position]):
                    position = (position + 1) % len(pool)
                seen = self.before(v, pool[position])
                commitment.take_decision(self.problem, self.state, 0, v, position)
                self.after(v, pool[position], seen)
            else:
                pass_tick(self.problem, self.state, 0, S.NEVER)
            note_plans(self.state, self.visits)
        self.finish = self.state.task["finish"][0, : instance.n_tasks]

    def find_start(self, v):
        """The site from which vehicle v may set out, and when it is there."""
        now, plan = int(self.state.episode["time"][0]), self.state.plan[0, v]
        k = traffic.find_next_visit(plan, now)
        if k == 0:
            return int(self.state.vehicle[0, v].site), now
        return int(plan[k, S.PLAN_SITE]), max(now, int(plan[k, S.PLAN_IN]))

    def list_plans(self, but):
        """Of each vehicle but one the visits (site, comes, leaves) planned, and those it made before, too."""
        note_plans(self.state, self.visits)
        plans = enumerate(self.state.plan[0])
        found = [
            (plan[1 : plan[0, S.PLANNED_VISITS] + 1, :3].tolist(), self.visits[v])
            for v, plan in plans
            if v != but
        ]
        return [visits for visits in found if visits[0]]

    def before(self, v, task):
        """Look at the episode before vehicle v is given a task; `after` sees what is returned."""

    def after(self, v, task, seen):
        """Look at the episode when vehicle v has been given a task."""

    def list_faults(self):
        """Return what must not be in what the vehicles have done."""
        return list_faults(self.instance.layout, self.visits)


def note_plans(state, visits):
    """Note what vehicles have planned anew, behind what they have done."""
    for v, plan in enumerate(state.plan[0]):
        rows = [tuple(row[:3].tolist()) for row in plan[1 : plan[0, S.PLANNED_VISITS] + 1]]
        if rows:
            # What the plan has forgotten stays: its first visit is one that was known.
            known = [visit[:2] for visit in visits[v]]
            n = len(known) - known[::-1].index(rows[0][:2]) - 1 if rows[0][:2] in known else 0
            visits[v][n:] = rows


def list_faults(layout, vehicles):
    """Return what must not be: two at a place, head-on, in a block, overtaking, jumps, an end on the lane."""
    headway = layout.traffic.headway
    aside = [site.aside for site in layout.sites]
    faults, places, lanes = [], {}, {}
    for v, visits in enumerate(vehicles):
        if visits and not aside[visits[-1][0]]:
            faults.append(f"vehicle {v} ends on the lane, {visits[-1]}")
        for site, came, left in visits:
            if left < came:
                faults.append(f"vehicle {v} leaves {site} at {left}, comes at {came}")
            if not aside[site]:
                places.setdefault(site, []).append((came, left + headway, v))
        for (a, _, out), (c, came, _) in itertools.pairwise(visits):
            ticks = np.ceil(layout.routes.edge_length[a, c] / layout.find_pace(v, a, c) - 1e-6)
            if came - out < ticks - 1:  # of a way without a stop the sum is rounded
                faults.append(f"vehicle {v} drives {a} to {c} in {came - out}, not {ticks}")
            lanes.setdefault(frozenset((a, c)), []).append((out, came, a, v))
    for zone, block in zip(list_zones(layout), layout.blocks, strict=True):
        stays = [(*x, v) for v, own in enumerate(vehicles) for x in zone.list_stays(own, headway)]
        for one, two in itertools.combinations(sorted(stays), 2):
            if one[3] != two[3] and one[1] > two[0] and zone.are_apart(one[2], two[2]):
                faults.append(f"in block {block.id} {one}, {two}")
    for site, held in places.items():
        for came, _, v in held:
            there = {w for comes, until, w in held if w != v and comes <= came < until}
            if len(there) >= layout.sites[site].holds:
                faults.append(f"at {site} {v} at {came} beside {there}")
    for lane, crossings in lanes.items():
        for one, two in itertools.combinations(sorted(crossings), 2):
            if one[3] == two[3]:
                continue
            if one[2] != two[2] and layout.traffic.lanes == "shared" and one[1] > two[0]:
                faults.append(f"head-on on {sorted(lane)}: {one}, {two}")
            if one[2] == two[2] and (two[0] < one[0] + headway or two[1] < one[1] + headway):
                faults.append(f"too close on {sorted(lane)}: {one}, {two}")
    return faults


def list_visits(trace):
    """The visits of each vehicle, as the replay shows them: from its steps along edges."""
    vehicles = []
    for v, vehicle in enumerate(trace.instance.layout.vehicles):
        ways = [*trace.trips, *trace.auxiliary_moves]
        steps = [x for way in ways if way.vehicle == v for x in way.steps if x.origin != x.target]
        visits = [(trace.instance.layout.site_index[vehicle.start], 0, S.NEVER)]
        for step in sorted(steps, key=lambda x: (x.start, x.end)):
            if step.first > 0.0:  # the rest of an edge that another way began
                assert visits[-1][0] == step.target, (v, visits[-1], step)
                visits[-1] = (step.target, step.end, S.NEVER)
                continue
            assert visits[-1][0] == step.origin, (v, visits[-1], step)
            visits[-1] = (*visits[-1][:2], step.start)
            visits.append((step.target, step.end, S.NEVER))
        vehicles.append(visits)
    return vehicles


def list_drawn_faults(trace):
    """Return what must not be seen second by second: two at one place, head-on, through another, jumps."""
    layout, drawn = trace.instance.layout, [[] for _ in trace.instance.layout.vehicles]
    faults = []
    for way in trace.list_ways():
        for step in way.steps:
            own = drawn[way.vehicle]
            if own:
                before, a, c = own[-1], step.origin, step.target
                jumps = before.target != a or before.last < 1.0 - 1e-6
                if (before.origin, before.target) == (a, c) != (a, a):
                    jumps = abs(step.first - before.last) > 1e-6
                if jumps:
                    faults.append(f"vehicle {way.vehicle} jumps: {before}, {step}")
            own.append(step)
    starts = [[step.start for step in own] for own in drawn]
    known = {}
    for now in range(trace.end + 1):
        places, before = {}, known
        for v, own in enumerate(drawn):
            k = bisect_right(starts[v], now) - 1
            if k < 0:
                continue
            step = own[k]
            part = find_part(step, now)
            if step.origin == step.target or not 1e-6 < part < 1.0 - 1e-6:
                site = step.origin if part <= 1e-6 else step.target
                places.setdefault((site, site), []).append((0.0, v))
            else:
                places.setdefault((step.origin, step.target), []).append((part, v))
        for (a, c), there in places.items():
            room = layout.sites[a].holds if not layout.sites[a].aside else len(there)
            if len(there) > room if a == c else len({round(x, 6) for x, _ in there}) < len(there):
                faults.append(f"at {now} on {a, c}: {there}")
            if a < c and (c, a) in places and layout.traffic.lanes == "shared":
                faults.append(f"at {now} head-on on {a, c}: {there}, {places[c, a]}")
        known = {v: (edge, x) for edge, there in places.items() for x, v in there}
        for v, w in itertools.combinations(known.keys() & before.keys(), 2):
            (e1, x1), (e2, x2) = before[v], before[w]
            (e3, y1), (e4, y2) = known[v], known[w]
            if e1[0] != e1[1] and e1 == e2 == e3 == e4 and (x1 < x2) != (y1 < y2):
                faults.append(f"at {now} {v} and {w} pass on {e1}")
    return faults
