"""A hundred small mistakes, one at a time in a copy of the package: do the tests see them?

    python benchmarks/mutants.py                  all of them, into benchmarks/mutants.csv
    python benchmarks/mutants.py --only live      those with this in their name or file
    python benchmarks/mutants.py --quick          two of them; nothing is written

A mutant is an exact text of a file, another text in its place, and the tests that should go red. The text is
found wherever it stands, however it is broken into lines, and with its columns imported one by one or as a
module. Where it is found no more the mutant is stale: aim it again at what now does the same. Mutants of
kernels run as plain Python on the tests that compare kernels with slow versions, so that nothing is compiled.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from script import make_parser

ROOT = Path(__file__).resolve().parent.parent
OUTCOMES = Path(__file__).with_suffix(".csv")
SECONDS = 600
"""After so long a mutant counts as caught: the tests hang."""
COPIED = ("acerl_np", "studies", "tests", "instances", "docs", "examples", "benchmarks")
QUICK = ("kernels: equally good members swap", "files: bytes need not be on the disk")


class Mutant(NamedTuple):
    """A mistake: `old` becomes `new` in a file of the package; these tests should go red."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    compiled: bool = False
    """Whether a kernel shows it only when it is compiled."""

    @property
    def is_plain(self) -> bool:
        return self.file.startswith("kernels/") and not self.compiled


SIMULATOR = "tests/simulation/test_simulator.py"
BREAKDOWNS = f"tests/simulation/test_random_breakdowns.py {SIMULATOR}"
TRACE = f"tests/simulation/test_trace.py {SIMULATOR}"
BASELINES = f"tests/kernels/test_deciders.py {SIMULATOR}"
AHEAD = "tests/kernels/test_lookahead.py"
INDEX = "tests/kernels/test_index.py"
RANDOM = "tests/kernels/test_random.py"
STORAGE = "tests/support/test_storage.py"
TRAINING = "tests/plain/test_plain.py tests/training/test_training.py"
FORMATS = "tests/policies/test_files.py tests/kernels/test_network.py"
RECORDS = "tests/problem/test_records.py"
PROBLEM = "tests/problem/test_problem.py"
SAMPLER = "tests/evolution/test_sampler.py"
RANKING = "tests/evolution/test_ranking.py"
METRICS = "tests/evaluation/test_metrics.py"
VERDICT = "tests/evaluation/test_verdict.py"
COMMANDS = "tests/commands/test_commands.py"
JUDGING = "tests/commands/test_judging.py"
LATE = "tests/live/test_late_events.py"
FLEET = "tests/live/test_fleet.py"
LIVE = f"tests/live/test_dispatcher.py {FLEET}"

MUTANTS = [
    Mutant(
        "kernels: a vehicle at the pickup drives to it",
        "kernels/episode/events.py",
        "if leg == TO_PICKUP and (task < 0 or site == problem.ends[i, task].pickup):",
        "if leg == TO_PICKUP and (task < 0 or site != problem.ends[i, task].pickup):",
        TRACE,
    ),
    Mutant(
        "kernels: the pool loses another task",
        "kernels/episode/events.py",
        "for k in range(position, state.episode[b].pool_size - 1):",
        "for k in range(position + 1, state.episode[b].pool_size - 1):",
        SIMULATOR,
    ),
    Mutant(
        "kernels: handling takes no time",
        "kernels/episode/events.py",
        "count_ticks(metres / speed + slowdown + handling)",
        "count_ticks(metres / speed + slowdown)",
        SIMULATOR,
    ),
    Mutant(
        "kernels: a service may take no second",
        "kernels/episode/events.py",
        "duration = max(np.int64(1),",
        "duration = max(np.int64(0),",
        SIMULATOR,
    ),
    Mutant(
        "kernels: a task put back waits from a second later",
        "kernels/episode/events.py",
        "max(ready, np.float64(now - 1))",
        "max(ready, np.float64(now))",
        SIMULATOR,
    ),
    Mutant(
        "kernels: repairs end a second early",
        "kernels/episode/events.py",
        "vehicle.event_tick = now + ticks + 1",
        "vehicle.event_tick = now + ticks",
        SIMULATOR,
    ),
    Mutant(
        "kernels: a breakdown during a repair comes after it",
        "kernels/episode/events.py",
        "problem.breakdown[i, v, k].tick <= tick: k += 1",
        "problem.breakdown[i, v, k].tick < tick: k += 1",
        SIMULATOR,
    ),
    Mutant(
        "kernels: tasks that are early make up for late ones",
        "kernels/core/state.py",
        "+= weight * max(0.0, delay)",
        "+= weight * delay",
        SIMULATOR,
    ),
    Mutant(
        "kernels: a task on time is late",
        "kernels/core/state.py",
        "+= weight * (delay > 1e-9)",
        "+= weight * (delay > -1e-9)",
        "tests/simulation/test_usage.py",
    ),
    Mutant(
        "kernels: an episode ends before its horizon",
        "kernels/episode/events.py",
        "if tick > problem.instance[i].horizon:",
        "if tick >= problem.instance[i].horizon:",
        TRACE,
    ),
    Mutant(
        "kernels: an undone trip waits twice",
        "kernels/episode/breakdowns.py",
        "vehicle.waiting -= vehicle.last_waiting",
        "vehicle.waiting += vehicle.last_waiting",
        "tests/simulation/test_usage.py",
    ),
    Mutant(
        "kernels: a random repair is another vehicle's",
        "kernels/episode/events.py",
        "draw_waiting_time(state.breakdown_key[b], n, 2 * v + 1)",
        "draw_waiting_time(state.breakdown_key[b], n, 2 * v)",
        BREAKDOWNS,
    ),
    Mutant(
        "kernels: a halted vehicle goes on where back is as long",
        "kernels/motion/ways.py",
        "turns = back <= onward",
        "turns = back < onward",
        SIMULATOR,
    ),
    Mutant(
        "kernels: a one-way edge is driven back",
        "kernels/motion/ways.py",
        "if edge_length[ahead, site] == np.inf:",
        "if edge_length[ahead, site] == -1.0:",
        SIMULATOR,
    ),
    Mutant(
        "kernels: the shortest trip is the shortest approach",
        "kernels/dispatching/rules.py",
        "floor.whole(way + floor.trip(task))",
        "floor.whole(way)",
        BASELINES,
    ),
    Mutant(
        "kernels: of equals the last is picked",
        "kernels/dispatching/rules.py",
        "if best < 0 or key < best_key:",
        "if best < 0 or key <= best_key:",
        BASELINES,
    ),
    Mutant(
        "kernels: a user's rule takes the last of equals",
        "kernels/dispatching/own.py",
        "if value < least or (value == least and comes_first):",
        "if value <= least:",
        "tests/kernels/test_deciders.py",
    ),
    Mutant(
        "kernels: a user's rule asks beyond the fleet",
        "kernels/dispatching/floor.py",
        "if 0 <= vehicle < self.problem.fleet.shape[1] and 0 <= task",
        "if 0 <= vehicle and 0 <= task",
        "tests/policies/test_own_rules.py",
        compiled=True,
    ),
    Mutant(
        "files: a path in a policy is followed",
        "support/own.py",
        "if is_own_name(text) and not KEPT.fullmatch(text):",
        "if False:",
        "tests/policies/test_own_rules.py",
    ),
    Mutant(
        "kernels: the longest waiting is the shortest",
        "kernels/dispatching/rules.py",
        "return -floor.waiting(task)",
        "return floor.waiting(task)",
        BASELINES,
    ),
    Mutant(
        "kernels: a full load is too heavy",
        "kernels/core/state.py",
        "problem.record[i, task].demand <= capacity",
        "problem.record[i, task].demand < capacity",
        SIMULATOR,
    ),
    Mutant(
        "kernels: priorities are ignored",
        "kernels/motion/offers.py",
        "if priority > highest and may_take",
        "if priority < highest and may_take",
        SIMULATOR,
    ),
    Mutant(
        "kernels: seconds are rounded down",
        "kernels/core/state.py",
        "min(np.ceil(seconds - 0.5e-9), 2.0**62)",
        "min(np.floor(seconds - 0.5e-9), 2.0**62)",
        SIMULATOR,
    ),
    Mutant(
        "kernels: seen waiting begins at the arrival",
        "kernels/dispatching/observation.py",
        "np.float64(now) - state.waiting_since[b, task]",
        "np.float64(now) - problem.record[i, task].arrival",
        SIMULATOR,
    ),
    Mutant(
        "kernels: seen capacity is scaled as speed",
        "kernels/dispatching/observation.py",
        "problem.fleet[i, v].capacity / scale[SCALING_CAPACITY]",
        "problem.fleet[i, v].capacity / scale[SCALING_SPEED]",
        SIMULATOR,
    ),
    Mutant(
        "kernels: lateness is slack",
        "kernels/dispatching/index.py",
        "x[LATENESS] = max(0.0, -slack)",
        "x[LATENESS] = max(0.0, slack)",
        INDEX,
    ),
    Mutant(
        "kernels: a task is completed where it waits",
        "kernels/dispatching/greedy_rollout.py",
        "own.site[w] = own.delivery[task]",
        "own.site[w] = own.pickup[task]",
        INDEX,
    ),
    Mutant(
        "kernels: of a long queue one task more is completed",
        "kernels/dispatching/greedy_rollout.py",
        "own.n[0] - n_left >= MOST_STEPS",
        "own.n[0] - n_left > MOST_STEPS",
        INDEX,
    ),
    Mutant(
        "kernels: a future above the margin costs nothing",
        "kernels/rollout/lookahead.py",
        "(ahead.cost_limit - ahead.margin)",
        "(ahead.cost_limit + ahead.margin)",
        AHEAD,
    ),
    Mutant(
        "kernels: of equal candidates the last is taken",
        "kernels/rollout/lookahead.py",
        "and ahead.total[row, k] < least:",
        "and ahead.total[row, k] <= least:",
        AHEAD,
    ),
    Mutant(
        "kernels: a future is played once",
        "kernels/rollout/lookahead.py",
        "ahead.known[h] = futures.is_repeated(ahead, h)",
        "ahead.known[h] = True",
        AHEAD,
    ),
    Mutant(
        "kernels: what agrees by half is a copy",
        "kernels/rollout/futures.py",
        "is_copy = ahead.agreement[h] > 0.5",
        "is_copy = ahead.agreement[h] >= 0.5",
        AHEAD,
    ),
    Mutant(
        "kernels: a future holds what arrives beyond its horizon",
        "kernels/rollout/futures.py",
        "if arrival > now + reach:",
        "if arrival > now + 2.0 * reach:",
        AHEAD,
    ),
    Mutant(
        "kernels: another than the base's own choice wins by a hair",
        "kernels/rollout/lookahead.py",
        "if -mean <= error * (1.0 + 1e-9):",
        "if -mean <= 0.0:",
        AHEAD,
    ),
    Mutant(
        "kernels: a broken vehicle is back early",
        "kernels/rollout/futures.py",
        "return max(now + 1, began + ticks + 1)",
        "return max(now + 1, began + ticks)",
        AHEAD,
    ),
    Mutant(
        "kernels: p_f is its complement",
        "kernels/learning/update.py",
        "draw_uniform(key, sweep, j) < p_f",
        "draw_uniform(key, sweep, j) >= p_f",
        RANKING,
    ),
    Mutant(
        "kernels: equally good members swap",
        "kernels/learning/update.py",
        "swap = returns[a] < returns[b]",
        "swap = returns[a] <= returns[b]",
        RANKING,
    ),
    Mutant(
        "kernels: mirrored members are alike",
        "kernels/learning/update.py",
        "F(1.0) if member % 2 == 0 else F(-1.0)",
        "F(1.0) if member % 2 == 0 else F(1.0)",
        "tests/evolution/test_strategy.py",
    ),
    Mutant(
        "kernels: mirrored utilities add up",
        "kernels/learning/update.py",
        "weight -= utilities[member + 1]",
        "weight += utilities[member + 1]",
        "tests/evolution/test_strategy.py",
    ),
    Mutant(
        "kernels: a seed's high bits say nothing",
        "kernels/core/random.py",
        "U((seed >> np.int64(32)) & low)",
        "U(0)",
        RANDOM,
    ),
    Mutant(
        "kernels: uniforms share counters with normals",
        "kernels/core/random.py",
        "U(i), U(j), U(0), U(1))",
        "U(i), U(j), U(0), U(0))",
        RANDOM,
    ),
    Mutant(
        "kernels: draws depend on the tile",
        "kernels/rollout/episodes.py",
        "row, key = episodes.rows[first + b], state.breakdown_key[b]",
        "row, key = episodes.rows[b], state.breakdown_key[b]",
        f"{TRAINING} tests/test_determinism.py",
    ),
    Mutant(
        "kernels: observations are not centred for their spread",
        "kernels/networks/network.py",
        "squares / sizes[0] - mean * mean",
        "squares / sizes[0]",
        "tests/kernels/test_network.py",
    ),
    Mutant(
        "files: the file itself is written to",
        "support/files.py",
        "os.replace(temporary, target)",
        "target.write_bytes(data); temporary.unlink()",
        STORAGE,
    ),
    Mutant(
        "files: bytes need not be on the disk",
        "support/files.py",
        "os.fsync(file.fileno())",
        "pass",
        STORAGE,
    ),
    Mutant(
        "files: a checksum is not compared",
        "support/files.py",
        "or str(checksum) != digest_arrays(arrays)",
        "",
        STORAGE,
    ),
    Mutant(
        "files: a mark of the byte order is text",
        "support/files.py",
        'data.decode("utf-8-sig")',
        'data.decode("utf-8")',
        f"{STORAGE} {RECORDS}",
    ),
    Mutant(
        "files: objects are unpickled",
        "support/files.py",
        "np.lib.format.read_array(content, allow_pickle=False)",
        "np.lib.format.read_array(content, allow_pickle=True)",
        STORAGE,
    ),
    Mutant(
        "files: any kind of file is taken",
        "support/files.py",
        "if found is None or str(found) != kind:",
        "if found is None:",
        f"{FORMATS} {TRAINING}",
    ),
    Mutant(
        "files: any version of a format is taken",
        "support/files.py",
        'stored.dtype.kind not in "iu" or stored.tolist() != version:',
        'stored.dtype.kind not in "iu":',
        f"{FORMATS} {TRAINING}",
    ),
    Mutant(
        "files: two runs write to one folder",
        "support/files.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "tests/test_interruptions.py -k two_runs",
    ),
    Mutant(
        "files: a default name takes any file made here",
        "commands/shared/outputs.py",
        "not (own and has_mark(path))",
        "not has_mark(path)",
        "tests/commands/test_outputs.py",
    ),
    Mutant(
        "files: what is read may be written",
        "commands/shared/outputs.py",
        "if any(_are_same(name, path) for name in read):",
        "if False:",
        "tests/commands/test_outputs.py",
    ),
    Mutant(
        "files: a checkpoint may count below zero",
        "training/checkpoint.py",
        "((array < 0) | (array > MAX_COUNT)).any()",
        "(array > MAX_COUNT).any()",
        TRAINING,
    ),
    Mutant(
        "files: a checkpoint may hold huge parameters",
        "training/checkpoint.py",
        "(np.abs(array) > MAX_PARAMETER).any()",
        "False",
        TRAINING,
    ),
    Mutant(
        "files: a resumed run forgets its average",
        "training/acerl.py",
        '"average": self._average,',
        '"average": self.search.mean.astype(np.float64),',
        f"{TRAINING} tests/training/test_best.py tests/test_determinism.py",
    ),
    Mutant(
        "files: a resumed run counts its seconds anew",
        "training/trainer.py",
        "self._seconds = history[-1].seconds if history else 0.0",
        "self._seconds = 0.0",
        TRAINING,
    ),
    Mutant(
        "files: a policy without a form is a network",
        "policies/files.py",
        "if text not in FORMS:",
        'text = text or "network"\n    if text not in FORMS:',
        FORMATS,
    ),
    Mutant(
        "problem: a task may stand twice",
        "problem/task_rows.py",
        "if first != place:",
        "if False:",
        f"{RECORDS} {PROBLEM}",
    ),
    Mutant(
        "problem: a task held back keeps its time",
        "problem/task_rows.py",
        "return (held, due - held, rolled)",
        "return (held, left, rolled)",
        f"{RECORDS} {SIMULATOR}",
    ),
    Mutant(
        "problem: a record may go on after midnight",
        "problem/task_rows.py",
        "arrivals[falls[0] - 1] - arrivals[falls[0]] > DAY / 2",
        "arrivals[falls[0] - 1] - arrivals[falls[0]] < DAY / 2",
        "tests/problem/test_exports.py",
    ),
    Mutant(
        "problem: a breakdown before time zero keeps its repair",
        "problem/records.py",
        "repair_time + min(0.0, time)",
        "repair_time",
        RECORDS,
    ),
    Mutant(
        "problem: written numbers are rounded",
        "problem/records.py",
        "str(int(value)) if value == int(value) else repr(value)",
        'str(int(value)) if value == int(value) else f"{value:.3g}"',
        f"tests/problem/test_exports.py {RECORDS}",
    ),
    Mutant(
        "problem: waiting is scaled as expiry",
        "problem/interface.py",
        "waiting = [np.zeros(1), *expiries]",
        "waiting = expiries",
        f"{PROBLEM} {SIMULATOR}",
    ),
    Mutant(
        "problem: features may be divided by zero",
        "problem/interface.py",
        "constants[DIVISORS] >= MIN_DIVISOR",
        "constants[DIVISORS] >= 0.0",
        f"{PROBLEM} tests/kernels/test_network.py",
    ),
    Mutant(
        "problem: a full load is refused",
        "problem/instance.py",
        "self.demand > layout.largest_load",
        "self.demand >= layout.largest_load",
        f"{PROBLEM} {RECORDS}",
    ),
    Mutant(
        "problem: hopeless tasks are rounded down",
        "problem/servable.py",
        "np.maximum(1.0, count_ticks(seconds))",
        "np.maximum(1.0, count_ticks(seconds) - 1.0)",
        f"tests/problem/test_exports.py {RECORDS}",
    ),
    Mutant(
        "problem: edges lead both ways",
        "problem/routes.py",
        "[: 1 if edge.one_way else 2]",
        "[:2]",
        f"{PROBLEM} {SIMULATOR}",
    ),
    Mutant(
        "problem: named routes are ignored",
        "problem/routes.py",
        "explicit[indices[0], indices[-1]] = indices",
        "pass",
        f"{PROBLEM} {SIMULATOR}",
    ),
    Mutant(
        "problem: arrivals at zero move",
        "problem/generate.py",
        'zeros == "move" or first > 0.0',
        "True",
        f"{COMMANDS} {RECORDS}",
    ),
    Mutant(
        "problem: poisson arrivals come in bursts",
        "problem/generate.py",
        'burst_size if process == "bursts" else 1',
        "burst_size",
        RECORDS,
    ),
    Mutant(
        "problem: the load leaves handling out",
        "problem/servable.py",
        "max(offered, driven + handling + slowed), max(loaded, rides)",
        "max(offered, driven + slowed), max(loaded, rides)",
        f"tests/problem/test_exports.py {RECORDS}",
    ),
    Mutant(
        "evolution: a penalty begins beyond the limit",
        "evolution/ranking.py",
        "costs - (self.cost_limit - self.margin)",
        "costs - (self.cost_limit + self.margin)",
        RANKING,
    ),
    Mutant(
        "evolution: failed members rank with the last",
        "evolution/ranking.py",
        "(len(bad) if counts else 0)",
        "0",
        RANKING,
    ),
    Mutant(
        "evolution: utilities are shaped once",
        "evolution/ranking.py",
        "return self._shape(utilities) if len(utilities) else utilities",
        "return utilities",
        RANKING,
    ),
    Mutant(
        "evolution: the paper's advantage is the released one",
        "evolution/sampler.py",
        'if self.advantage == "paper":',
        'if self.advantage != "paper":',
        SAMPLER,
    ),
    Mutant(
        "evolution: the bonus counts one episode more",
        "evolution/sampler.py",
        "np.log(self.count.sum())",
        "np.log(self.count.sum() + 1)",
        SAMPLER,
    ),
    Mutant(
        "evolution: untried records are not tried first",
        "evolution/sampler.py",
        "chosen[: len(first)] = first",
        "pass",
        SAMPLER,
    ),
    Mutant(
        "evolution: the path of the covariance is longer",
        "evolution/rates.py",
        "c_c = (4 + mu_eff / n)",
        "c_c = (2 + mu_eff / n)",
        "tests/evolution/test_covariance.py",
    ),
    Mutant(
        "training: the sampler learns from costs",
        "training/acerl.py",
        "self.sampler.update(dealt.records.ravel(), returns.ravel())",
        "self.sampler.update(dealt.records.ravel(), costs.ravel())",
        TRAINING,
    ),
    Mutant(
        "training: the worst look is kept",
        "training/history.py",
        "return bool(own > rival)",
        "return bool(own < rival)",
        f"tests/training/test_best.py {TRAINING}",
    ),
    Mutant(
        "evaluation: the worst makespan is 1",
        "evaluation/metrics.py",
        "(largest[varied] - x[:, varied])",
        "(x[:, varied] - smallest[varied])",
        METRICS,
    ),
    Mutant(
        "evaluation: the limit itself is kept",
        "evaluation/metrics.py",
        "(np.asarray(tardiness, np.float64) < cost_limit)",
        "(np.asarray(tardiness, np.float64) <= cost_limit)",
        METRICS,
    ),
    Mutant(
        "evaluation: a fleet is one vehicle",
        "evaluation/trials.py",
        'own.pop("busy") / (fleet * own["makespan"])',
        'own.pop("busy") / own["makespan"]',
        f"tests/simulation/test_usage.py {METRICS}",
    ),
    Mutant(
        "evaluation: one error is enough for a verdict",
        "evaluation/metrics.py",
        "max(self.errors * self.error, 1e-9)",
        "max(self.error, 1e-9)",
        VERDICT,
    ),
    Mutant(
        "evaluation: the best rule may be beyond the limit",
        "evaluation/margin.py",
        'if not trials.unfinished and average(name, "cost") < trials.cost_limit',
        "if not trials.unfinished",
        f"{VERDICT} tests/evaluation/test_hindsight.py {METRICS}",
    ),
    Mutant(
        "evaluation: above hindsight is a ratio",
        "evaluation/margin.py",
        "above = mean / best - 1.0",
        "above = mean / best",
        f"tests/evaluation/test_hindsight.py tests/commands/test_tables.py {COMMANDS}",
    ),
    Mutant(
        "commands: a range has no lower end",
        "support/fields.py",
        "fits = self.low <= number <= self.high",
        "fits = number <= self.high",
        "tests/commands/test_errors.py",
    ),
    Mutant(
        "commands: no seed is a range of seeds",
        "commands/shared/several.py",
        "not 0 <= seeds.start < seeds.stop <= MAX_SEED",
        "not 0 <= seeds.start <= seeds.stop <= MAX_SEED",
        "tests/commands/test_errors.py",
    ),
    Mutant(
        "commands: a terminated command says interrupted",
        "commands/main.py",
        "143 if isinstance(stop, Terminated) else 130",
        "130",
        "tests/test_interruptions.py -k stopped",
    ),
    Mutant(
        "commands: a stopped training ends with 0",
        "commands/shared/training.py",
        "return 128 + stopped",
        "return 0",
        "tests/test_interruptions.py -k stopped",
    ),
    Mutant(
        "commands: trials beyond the limit are within",
        "commands/shared/standings.py",
        "within = int(trials.cost[i, k] < trials.cost_limit)",
        "within = int(trials.cost[i, k] > trials.cost_limit)",
        COMMANDS,
    ),
    Mutant(
        "commands: failures and repairs change places",
        "commands/shared/inputs.py",
        "RandomBreakdowns(float(numbers[0]), float(numbers[1]))",
        "RandomBreakdowns(float(numbers[1]), float(numbers[0]))",
        "tests/commands/test_errors.py tests/simulation/test_random_breakdowns.py",
    ),
    Mutant(
        "problem: a file of breakdowns is a record",
        "problem/bundled.py",
        " if files[name].name != BREAKDOWNS_FILE",
        "",
        f"{RECORDS} {COMMANDS}",
    ),
    Mutant(
        "commands: five own records have no folds",
        "commands/shared/judges.py",
        "different >= LEAST_JUDGES",
        "different > 2 * LEAST_JUDGES",
        JUDGING,
    ),
    Mutant(
        "files: code is imported untrusted",
        "support/own.py",
        "if not TRUST.get():",
        "if False:",
        "tests/support/test_own.py",
    ),
    Mutant(
        "commands: a training record may judge",
        "commands/shared/judges.py",
        "if seen is not None:",
        "if False:",
        JUDGING,
    ),
    Mutant(
        "commands: what cannot be told is nan in JSON",
        "support/report.py",
        "None if isinstance(value, float) and not math.isfinite(value) else value",
        "value",
        "tests/support/test_report.py tests/commands/test_tables.py",
    ),
    Mutant(
        "commands: parameters are text in JSON",
        "commands/policy.py",
        'int(text.replace(",", "")) if name == "parameters" else text',
        "text",
        "tests/commands/test_policy.py",
    ),
    Mutant(
        "live: an event may be later than said",
        "live/feed.py",
        "LATE = 5.0",
        "LATE = 6.0",
        f"{LATE} {LIVE}",
    ),
    Mutant(
        "live: an event told twice counts twice",
        "live/feed.py",
        "if self._is_known(event):",
        "if False:",
        f"{LATE} {LIVE}",
    ),
    Mutant(
        "live: a refused late event stays",
        "live/feed.py",
        "del self.entries[n_entries:]",
        "pass",
        "tests/live/test_undone.py",
    ),
    Mutant(
        "live: the delay of a day counts from arrivals",
        "live/floor.py",
        "self.day.delay += max(0.0, now - task.due)",
        "self.day.delay += max(0.0, now - task.event.time)",
        "tests/live",
    ),
    Mutant(
        "live: a recalled and cancelled task waits again",
        "live/floor.py",
        "waits=not event.cancel",
        "waits=True",
        FLEET,
    ),
    Mutant(
        "live: a fetched load may be recalled",
        "live/floor.py",
        "has_fetched, moved = True, now",
        "has_fetched, moved = False, now",
        LIVE,
    ),
    Mutant(
        "live: a full load cannot be given",
        "live/floor.py",
        "if capacity and demand > capacity:",
        "if capacity and demand >= capacity:",
        LIVE,
    ),
    Mutant(
        "live: a vehicle out of service is idle",
        "live/board.py",
        "is_away = own.service == parts.OUT or (is_hidden and",
        "is_away = (is_hidden and",
        LIVE,
    ),
    Mutant(
        "live: a changed due time counts from the change",
        "live/floor.py",
        "expiry=float(event.due) - begin",
        "expiry=float(event.due) - event.time",
        LIVE,
    ),
    Mutant(
        "live: a torn line of a log goes on",
        "live/log.py",
        'if os.read(self._file, 1) != b"\\n":',
        "if False:",
        "tests/live/test_recovery.py",
    ),
]


def make_pattern(text: str) -> re.Pattern[str]:
    """The text with any white space between its words, and a module before its capitals."""
    words = re.findall(r"\"[^\"]*\"|\w+|[^\w\s]", text)
    parts = []
    for word in words:
        own = re.escape(word)
        if re.fullmatch(r"[A-Z][A-Z_0-9]{3,}", word):
            own = rf"(?:(?<![\w.])(?:S|state)\.)?{own}"
        parts.append(own)
    return re.compile(r"\s*".join(parts) + (r"\b" if words[-1][-1].isalnum() else ""))


def find_place(mutant: Mutant, package: Path) -> tuple[Path, re.Match[str]] | None:
    """Where the text stands once: in its file, or in another one that it moved to."""
    pattern, own = make_pattern(mutant.old), package / mutant.file
    for files in ([own] if own.exists() else [], sorted(package.rglob("*.py"))):
        found = [
            (path, match) for path in files for match in pattern.finditer(path.read_text("utf-8"))
        ]
        if len(found) == 1:
            return found[0]
    return None


def apply(mutant: Mutant, match: re.Match[str]) -> str:
    """The text in its place, with the module before those capitals that had it."""
    prefixes = dict(re.findall(r"\b(S|state)\.([A-Z][A-Z_0-9]{3,})", match[0]))
    new = mutant.new
    if prefixes:
        name = next(iter(prefixes))
        new = re.sub(r"(?<![\w.])([A-Z][A-Z_0-9]{3,})\b", rf"{name}.\1", new)
    return match.string[: match.start()] + new + match.string[match.end() :]


class Run(NamedTuple):
    """What became of tests: `passed`, `failed`, `none` (there are none), `hang`; the first that failed."""

    outcome: str
    failed: str = ""


def run_tests(folder: Path, words: list[str], *, plain: bool) -> Run:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--override-ini=addopts=--import-mode=importlib", "--hypothesis-profile=mutants"]
    usage = any(
        "test_usage" in word for word in words
    )  # by hand, and as quick without the compiler
    command += ["-rfE", "-m", "oracle" if plain and not usage else "not long and not browser"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    if plain:
        environment["NUMBA_DISABLE_JIT"] = "1"
    try:
        done = subprocess.run(
            [*command, *words],
            cwd=folder,
            env=environment,
            timeout=SECONDS,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return Run("hang")
    failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    crashed = "failed" if done.returncode < 0 else "none"
    outcome = {0: "passed", 1: "failed", 2: "failed"}.get(done.returncode, crashed)
    return Run(outcome, failed[-1] if failed else "")


def judge(mutant: Mutant, folder: Path) -> str:
    """Return `caught`, `survived`, `stale`, `no tests`, or that a test fails without the mutant, too."""
    place = find_place(mutant, folder / "acerl_np")
    if place is None:
        return "stale"
    path, match = place
    words = mutant.tests.split()
    words = [word for word in words if "tests/" not in word or (folder / word).exists()]
    before = path.read_text("utf-8")
    path.write_text(apply(mutant, match), "utf-8")
    try:
        found = run_tests(folder, words, plain=mutant.is_plain)
    finally:
        path.write_text(before, "utf-8")
    if found.outcome in ("passed", "none"):
        return "survived" if found.outcome == "passed" else "no tests"
    own = [found.failed] if found.failed else words
    clean = run_tests(folder, own, plain=mutant.is_plain).outcome
    return "caught" if clean == "passed" else f"{clean} without it"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="those with it in name or file")
    parser.add_argument("--list", action="store_true", help="where each stands, and no tests")
    options = parser.parse_args()
    chosen = [m for m in MUTANTS if options.only in f"{m.name} {m.file}"]
    if options.quick:
        chosen = [m for m in MUTANTS if m.name in QUICK]
    outcomes: dict[str, str] = {}
    if OUTCOMES.exists():
        with OUTCOMES.open(encoding="utf-8", newline="") as file:
            outcomes = {row["name"]: row["outcome"] for row in csv.DictReader(file)}
    if options.list:
        for mutant in chosen:
            place = find_place(mutant, ROOT / "acerl_np")
            where = "stale" if place is None else place[0].relative_to(ROOT)
            print(f"{mutant.name}: {where}")
        return
    counts: dict[str, int] = {}
    lost = []
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for name in COPIED:
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for path in ("pyproject.toml", "setup.cfg", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / path, folder / path)
        for mutant in chosen:
            started = time.perf_counter()
            outcome = judge(mutant, folder)
            counts[outcome] = counts.get(outcome, 0) + 1
            seconds = time.perf_counter() - started
            print(f"{outcome:8} {mutant.name} ({mutant.file}), {seconds:.0f} s", flush=True)
            if outcomes.get(mutant.name) == "caught" and outcome not in ("caught", "stale"):
                lost.append(mutant.name)
            if not options.quick:
                outcomes[mutant.name] = outcome
                write_outcomes(outcomes)
    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())))
    if lost:
        sys.exit(f"caught before, and now not: {'; '.join(lost)}")


def write_outcomes(outcomes: dict[str, str]) -> None:
    with OUTCOMES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "outcome"])
        writer.writerows((m.name, outcomes[m.name]) for m in MUTANTS if m.name in outcomes)


if __name__ == "__main__":
    main()
