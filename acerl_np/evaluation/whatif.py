"""What if the fleet, the demand or the speed were another: settings judged on the same shifts."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from acerl_np.evaluation.margin import choose_rule
from acerl_np.evaluation.metrics import compare_paired, standard_error
from acerl_np.evaluation.trials import Playing, Trials, join_trials, play_policy
from acerl_np.policies.files import BasePolicy, as_decider
from acerl_np.policies.rules import BASELINES, NEAREST
from acerl_np.problem.choices import COMMITMENT
from acerl_np.problem.demand import DEMAND, DemandBy, draw_shift
from acerl_np.problem.goal import MEASURES
from acerl_np.problem.instance import Instance, check_names, list_instances
from acerl_np.problem.layout import LENGTHEN, TRAFFIC, Layout, lengthen, resize_fleet
from acerl_np.problem.limits import MAX_VEHICLES
from acerl_np.problem.parts import Vehicle
from acerl_np.simulation.arena import stream_keys
from acerl_np.support.errors import InputError, PolicyError, RecordError, refuse
from acerl_np.support.fields import Field, Whole

MAX_SETTINGS = 1_000

UNITS = {**MEASURES, "utilisation": "%", "delay": "s"}
"""What is said of each setting beside the objective, and its unit."""

BEST = "best baseline"
STANDING = {NEAREST: NEAREST, "assignment": "assignment"}
"""Baselines that have rows of their own beside the best."""


# What may be another


def scale_speed(layout: Layout, factor: float) -> Layout:
    """Return a floor whose vehicles drive so many times as fast; limits of its edges stay."""
    return layout.with_fleet(
        replace(vehicle, speed=factor * vehicle.speed) for vehicle in layout.vehicles
    )


def scale_breakdowns(layout: Layout, factor: float) -> Layout:
    """Return a floor whose vehicles break down so many times as often at random; with 0 not at all."""
    if factor == 0.0:
        return layout.with_breakdowns({}).with_random_breakdowns(None)
    if not layout.has_random_breakdowns:
        expected = "0 or 1 (listed breakdowns are there or not), or random breakdowns"
        refuse("breakdown_rate", f"{factor:g} on a floor without random breakdowns", expected)

    def scale(vehicle: Vehicle) -> Vehicle:
        model = vehicle.random_breakdowns
        if model is None:
            return vehicle
        between = model.mean_time_between_failures / factor
        often = replace(model, mean_time_between_failures=between)
        return replace(vehicle, random_breakdowns=often)

    return layout.with_fleet(map(scale, layout.vehicles))


def deal_slots(layout: Layout, n: int) -> Layout:
    """Return a floor whose chargers have n slots, dealt over their sites in order; the last may get none."""
    if n == 0 or not layout.chargers:
        read = f"{n:g} slots on a floor with {len(layout.chargers)} chargers"
        refuse("chargers", read, "at least one of both")
    if not any(layout.batteries):
        expected = "batteries, as nobody charges without (acerl-np floor edit --battery)"
        refuse("chargers", f"{n:g} slots on a floor where no vehicle has a battery", expected)
    each, more = divmod(n, len(layout.chargers))
    slots = [each + (k < more) for k in range(len(layout.chargers))]
    dealt = [replace(x, slots=own) for x, own in zip(layout.chargers, slots, strict=True) if own]
    return replace(layout, chargers=tuple(dealt))


class Knob(NamedTuple):
    """What may be another than it is.

    Attributes
    ----------
    field : Field
        Its values.
    eases : bool
        Whether more of it makes a shift easier.
    words : str
        A setting in words.
    find : callable
        What it is on a floor as it stands.
    change : callable or None
        The floor with another value; None where the records are what changes.
    """

    field: Field
    eases: bool
    words: str
    find: Callable[[Layout], Any]
    change: Callable[[Layout, Any], Layout] | None = None


FACTOR = Field(float, 0.01, 100.0)
KNOBS = {
    "vehicles": Knob(
        Field(int, 1, MAX_VEHICLES), True, "{:g} vehicles", lambda x: len(x.vehicles), resize_fleet
    ),
    "demand": Knob(DEMAND, False, "demand {:g}", lambda _: 1.0),
    "speed": Knob(FACTOR, True, "speed {:g}", lambda _: 1.0, scale_speed),
    "lengthen": Knob(LENGTHEN, False, "driving x {:g}", lambda _: 1.0, lengthen),
    "breakdown_rate": Knob(
        Field(float, 0.0, 1000.0), False, "breakdown rate {:g}", lambda _: 1.0, scale_breakdowns
    ),
    "chargers": Knob(
        Field(int, 0, MAX_VEHICLES),
        True,
        "{:g} slots",
        lambda x: sum(charger.slots for charger in x.chargers),
        deal_slots,
    ),
    "commitment": Knob(
        COMMITMENT, True, "commitment {}", lambda x: x.commitment, Layout.with_commitment
    ),
    "traffic": Knob(
        TRAFFIC, False, "traffic {}", lambda x: "file" if x.traffic else "off", Layout.with_traffic
    ),
}
"""Vehicles and slots of chargers are counted, commitment and traffic named; others are factors, else 1."""

Setting = Mapping[str, Any]
"""A value of each of `KNOBS`."""


def show_setting(setting: Setting) -> str:
    """Return some values of `KNOBS` in words."""
    words = ", ".join(KNOBS[name].words.format(value) for name, value in setting.items())
    return re.sub(r"\b1 (vehicle|slot)s", r"1 \1", words)


def list_settings(layout: Layout, knobs: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """Return every combination of the values of some knobs, the others as they are on the floor.

    The floor as it is stands among them, in the order of the values.
    """
    for name in knobs:
        Field(tuple(KNOBS)).read("knob", name, InputError)
    base = {name: knob.find(layout) for name, knob in KNOBS.items()}
    values = {
        name: sorted({knob.field.read(name, x, InputError) for x in knobs.get(name, [base[name]])})
        for name, knob in KNOBS.items()
    }
    n = math.prod(map(len, values.values()))
    if not 1 <= n <= MAX_SETTINGS:
        raise InputError(f"{n:,} settings; expected 1 to {MAX_SETTINGS:,}")
    found = {*itertools.product(*values.values()), tuple(base.values())}
    return [dict(zip(values, some, strict=True)) for some in sorted(found)]


def make_shifts(
    records: Sequence[Instance], setting: Setting, seed: Whole, demand_by: DemandBy = "records"
) -> list[Instance]:
    """Return the shifts of a setting, one for each record; records that share a layout go on sharing it."""
    layouts = {id(record.layout): record.layout for record in records}
    for key, layout in layouts.items():
        for name, knob in KNOBS.items():
            if knob.change is not None and setting[name] != knob.find(layout):
                layouts[key] = knob.change(layouts[key], setting[name])
    shifts = []
    for record in records:
        drawn = draw_shift(record, setting["demand"], by=demand_by, seed=seed)
        shift = replace(drawn, layout=layouts[id(record.layout)])
        shift.check_servable()
        shifts.append(shift)
    return shifts


# What they bring


@dataclass(frozen=True)
class Row:
    """A setting with a policy.

    Attributes
    ----------
    setting : mapping of float
    is_base : bool
        Whether floor and demand are as they were given.
    policy : str
        Its label.
    rules : tuple of str
        Of the best of several rules, which ones it was, that of the most records first; else empty.
    n_tasks : float
        Mean over the shifts.
    trials : Trials
        A row of each record's shift.
    base : Trials
        The same policy's of the floor and the demand as they were given.
    """

    setting: Setting
    is_base: bool
    policy: str
    rules: tuple[str, ...]
    n_tasks: float
    trials: Trials
    base: Trials

    def describe(self) -> str:
        """Return the policy with the rule that it was; "..." stands for those of fewer records."""
        more = ", ..." if len(self.rules) > 1 else ""
        return self.policy + (f" ({self.rules[0]}{more})" if self.rules else "")

    def measure(self, name: str) -> tuple[float, float]:
        """Return mean and standard error of one of `UNITS`, in its unit, or of the "value".

        The error is over the records, of one record over its trials.
        """
        return _average(_list_means(self.trials, name))

    def compare(self, name: str) -> tuple[float, float]:
        """Return mean and standard error of what it is more than in the base, record by record."""
        return _average(_list_means(self.trials, name) - _list_means(self.base, name))


class WhatIf(NamedTuple):
    """What other settings come to.

    Attributes
    ----------
    rows : list of Row
        Setting by setting, each with every policy.
    answers : list of str
        Sentences on the target.
    """

    rows: list[Row]
    answers: list[str]


def _list_means(trials: Trials, name: str) -> np.ndarray:
    """Return the means of the records, of one record its trials."""
    share = 100.0 if UNITS.get(name) == "%" else 1.0
    alone = len(trials.instances) == 1
    return share * np.ravel(getattr(trials, name) if alone else trials.mean(name))


def _average(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), standard_error(values)


def whatif(
    records: Instance | Sequence[Instance],
    knobs: Mapping[str, Sequence[Any]],
    policies: Mapping[str, Any] | None = None,
    *,
    playing: Playing | None = None,
    target: str | None = None,
    demand_by: DemandBy = "records",
    report: Callable[[int, int, str], object] | None = None,
) -> WhatIf:
    """Play every setting of a floor and its demand on the same shifts, and say what reaches a target.

    Shift k of a setting is drawn from record k (`problem.demand.draw_shift`), and at a demand of 1 the record
    itself. Breakdowns and what policies draw have the same keys in all settings: those of `evaluate_policy`
    on the records, so the base is what that says. Differences are therefore of the settings, record by
    record, and their errors small.

    Parameters
    ----------
    records : Instance or sequence of Instance
        Of one floor and fleet.
    knobs : mapping of sequences
        Values of some of `KNOBS`: "vehicles" (see `problem.layout.resize_fleet`), "chargers" (slots, dealt
        over their sites in order), "commitment" and "traffic" (see `Layout.with_commitment`,
        `Layout.with_traffic`), and as factors "demand", "speed",
        "lengthen" and "breakdown_rate" (how often vehicles break down at random; 0: listed breakdowns are
        left out, too). Every combination is played, and the base: what is given.
    policies : mapping, optional
        What `evaluate_policy` takes, by labels; or several rules' names, of which the best is played: of a
        record that of all other records in all settings, unless another is better on those of the setting by
        its 95 % interval; of a single record `nearest`, or the first. By default the best of `BASELINES`, and
        `STANDING`.
    playing : Playing, optional
        By default a trial of each record.
    target : str, optional
        Such as "late<2%". The best rule is that of the least of its measure; by default of the objective.
        Small differences are told apart by waiting, then by empty metres.
    demand_by : {"records", "takt"}
        What more demand means where a pair of sites has a takt, see `problem.demand.draw_shift`.
    report : callable, optional
        Is told how many settings are played, of how many, and which was the last.

    Returns
    -------
    WhatIf

    Raises
    ------
    InputError
        If a knob or a value is unusable, the records are of several floors or fleets, or no vehicle can carry
        a task.
    PolicyError
        If a policy cannot play a setting, such as a network a larger fleet than it was trained for.

    Examples
    --------
    >>> import acerl_np
    >>> floor = acerl_np.load_layout("supply-loop")
    >>> shifts = [acerl_np.generate_shift(floor, scale=0.5, seed=1, index=k, name=f"s{k}") for k in range(4)]
    >>> found = acerl_np.whatif(shifts, {"vehicles": [2, 3, 4]}, {"nearest": "nearest"}, target="late<2%")
    >>> [row.setting["vehicles"] for row in found.rows if row.is_base]
    [4]
    >>> [answer] = found.answers
    """
    chosen, playing = _check_floor(records), playing or Playing(trials=1)
    first, aim = chosen[0].layout, None if target is None else Target.read(target)
    settings = list_settings(first, knobs)
    words = [show_setting({name: setting[name] for name in knobs}) for setting in settings]
    deciders: dict[str, dict[str, BasePolicy]] = {}
    for label, policy in (policies or {BEST: BASELINES, **STANDING}).items():
        several = policy if isinstance(policy, tuple) else (policy,)
        deciders[label] = {str(x): as_decider(x, chosen, playing.goal) for x in several}
    shifts = []
    for setting, told in zip(settings, words, strict=True):
        try:
            shifts.append(make_shifts(chosen, setting, playing.seed, demand_by))
        except RecordError as error:
            raise RecordError(f"{told}: {error}") from error
        for label, some in deciders.items():
            try:
                for policy, shift in itertools.product(some.values(), shifts[-1]):
                    policy.check_fits(shift)
            except PolicyError as error:
                raise PolicyError(f"{label}: {told}: {error}") from error
    keys = stream_keys(chosen, playing.trials, playing.seed)
    # By setting and label; of the best of several each of them.
    played = list[dict[str, dict[str, Trials]]]()
    for k, own in enumerate(shifts):
        played.append(
            {
                label: {name: play_policy(x, own, playing, keys=keys) for name, x in some.items()}
                for label, some in deciders.items()
            }
        )
        if report is not None:
            report(k + 1, len(settings), words[k])
    measure = "value" if aim is None else aim.measure
    rows: list[Row] = []
    for k, (setting, own) in enumerate(zip(settings, shifts, strict=True)):
        is_base = all(knob.find(first) == setting[name] for name, knob in KNOBS.items())
        n_tasks = float(np.mean([shift.n_tasks for shift in own]))
        for label, found in played[k].items():
            rules: tuple[str, ...] = ()
            trials = next(iter(found.values()))
            if len(found) > 1:
                rules, trials = _choose_best([x[label] for x in played], k, measure)
            rows.append(Row(setting, is_base, label, rules, n_tasks, trials, trials))
    base = {row.policy: row.trials for row in rows if row.is_base}
    rows = [replace(row, base=base[row.policy]) for row in rows]
    return WhatIf(rows, [] if aim is None else answer_target(rows, aim))


def _check_floor(records: Instance | Sequence[Instance]) -> list[Instance]:
    """Return the records, which have names of their own and are of one floor and fleet."""
    chosen = list_instances(records)
    if not chosen:
        raise InputError("no records; expected at least one")
    check_names(chosen)
    first = chosen[0]
    for record in chosen:
        hashes = [(x.layout.floor_hash, x.layout.fleet_hash) for x in (record, first)]
        if hashes[0] != hashes[1]:
            read = f"{record.name}: another floor or fleet than {first.name}'s"
            raise InputError(f"{read}; expected the same for all records")
    return chosen


def _choose_best(
    played: Sequence[Mapping[str, Trials]], k: int, measure: str
) -> tuple[tuple[str, ...], Trials]:
    """Return which rules are the best in setting k, and the trials of each shift by its rule.

    That of a shift is the best on all other shifts of all settings, unless another is better on those of this
    setting by its 95 % interval; of a single record it is `nearest`.
    """
    results, n = played[k], len(next(iter(played[k].values())).instances)
    best = [NEAREST if NEAREST in results else next(iter(results))] * n
    for i in range(n) if n > 1 else ():
        others = [j for j in range(n) if j != i]
        parts = [{name: x.select(others) for name, x in own.items()} for own in played]
        best[i] = choose_rule({x: join_trials([own[x] for own in parts]) for x in results}, measure)
        here = choose_rule(parts[k], measure)
        both = (parts[k][name].mean(measure) for name in (here, best[i]))
        if compare_paired(*both).sign == -1:
            best[i] = here
    trials = join_trials([results[rule].select([i]) for i, rule in enumerate(best)])
    return tuple(name for name, _ in Counter(best).most_common()), trials


# What reaches a target


class Target(NamedTuple):
    """What is to stay below a limit, in the unit of `UNITS`."""

    measure: str
    limit: float

    @classmethod
    def read(cls, text: str) -> Target:
        """Return the target that a text such as "late<2%" says; an `InputError` if it says none."""
        found = re.fullmatch(r"([a-z]+)\s*<\s*([0-9.]+)\s*(%|s|)", text.strip())
        try:
            measure, limit, unit = found.groups() if found else ("", "", "")
            if unit in ("", UNITS[measure]) and 0.0 < float(limit) < math.inf:
                return cls(measure, float(limit))
        except (KeyError, ValueError):
            pass
        known = ", ".join(f"{name} ({unit})" for name, unit in UNITS.items())
        refuse("target", text, f"a measure below a number, such as 'late<2%', of {known}")

    def __str__(self) -> str:
        return f"{self.measure} below {self.limit:g} {UNITS[self.measure]}"

    def show(self, row: Row) -> str:
        """Return a row's mean of the measure with its error."""
        mean, error = row.measure(self.measure)
        digits = 1 if max(mean, self.limit) >= 1.0 else 2
        shown = f"{mean:.{digits}f} {UNITS[self.measure]}"
        return shown if math.isnan(error) else f"{shown} (se {error:.{digits}f})"


def find_varied(rows: Sequence[Row]) -> list[str]:
    """Return the knobs that have several values, in the order of `KNOBS`."""
    return [name for name in KNOBS if len({row.setting[name] for row in rows}) > 1]


def group_rows(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows that differ in the first knob alone, by policy and by what the other knobs are."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        others = {name: row.setting[name] for name in find_varied(rows)[1:]}
        groups.setdefault((row.policy, show_setting(others)), []).append(row)
    return groups


def answer_target(rows: Sequence[Row], target: Target) -> list[str]:
    """Say in one sentence for each policy how little of the first knob that varies reaches a target.

    Of what makes shifts harder, such as demand: how much. Other knobs have a sentence for each of their
    settings.
    """
    asked = next(iter(find_varied(rows)), "vehicles")
    answers = []
    for (label, others), group in group_rows(rows).items():
        if all(row.is_base for row in group) and len(rows) > len(group):
            continue  # the base alone, which was not asked for
        names = KNOBS[asked].field.kind
        order = list(
            names if isinstance(names, tuple) else sorted({x.setting[asked] for x in group})
        )
        hardest_first = sorted(
            group, key=lambda row: order.index(row.setting[asked]), reverse=not KNOBS[asked].eases
        )
        words = ", ".join(filter(None, (str(target), others, label)))
        answers.append(f"{words}: {_answer(hardest_first, asked, target)}.")
    return answers


def _answer(rows: Sequence[Row], asked: str, target: Target) -> str:
    """Answer for rows of which each is easier than the one before."""

    def show(row: Row) -> str:
        rule = f" ({row.rules[0]})" if row.rules else ""
        return f"{show_setting({asked: row.setting[asked]})}{rule}, {target.show(row)}"

    means, errors = np.array([row.measure(target.measure) for row in rows]).T
    reached = np.flatnonzero(means < target.limit).tolist()
    if reached:
        k = reached[0]
        told = [x for x in range(len(rows)) if x in (k - 1, k) or (x > k and x not in reached)]
        missed = " and not with ".join(show(rows[x]) for x in told if x != k)
        text = f"reached with {show(rows[k])}" + (f", not with {missed}" if missed else "")
    else:  # a mean of nan, as of an episode that did not finish, is the farthest
        told = [int(np.argmin(np.nan_to_num(means, nan=np.inf)))]
        text = f"not reached; closest with {show(rows[told[0]])}"
    # Of one trial no error is known.
    unclear = [rows[k] for k in told if abs(means[k] - target.limit) < 2.0 * errors[k]]
    if unclear:
        words = " and ".join(show_setting({asked: row.setting[asked]}) for row in unclear)
        text += f" ({words}: within two standard errors of the limit, more records would tell)"
    return text
