"""Kinds and ranges of options, and the one line that refuses a value."""

import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tables_and_refusals import list_unrefused

from acerl_np import Config, evaluate_policy, generate_shift, load_instance, load_layout
from acerl_np.evaluation.trials import TRIALS
from acerl_np.evolution import Evolution, make_sampler, rank_utilities
from acerl_np.evolution.arguments import OPTIONS
from acerl_np.evolution.ranges import ADVANTAGE, FIELDS, SAMPLER_FIELD
from acerl_np.evolution.sampler import N_INSTANCES
from acerl_np.problem.demand import DEMAND, draw_shift
from acerl_np.problem.goal import COST_LIMIT
from acerl_np.problem.shift import HOURS, SCALE
from acerl_np.problem.tables import HORIZON
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.fields import MOST, SEED, Field, Several
from acerl_np.support.trust import OwnField
from acerl_np.support.workers import THREADS
from studies.rivals.training import LEARNERS


def test_values_become_pythons_own():
    for field, value, expected in (
        (Field(int, 2), np.int32(2), 2),
        (Field(int, 2, optional=True), None, None),
        *((Field(float), value, float(value)) for value in (np.float32(0.5), 3, math.inf)),
        (Field(bool), np.bool_(True), True),
        (Field(("isr", "r")), "r", "r"),
        (SEED, 2**63 - 1, 2**63 - 1),
    ):
        read = field.read("name", value)
        assert (read, type(read)) == (expected, type(expected))


def test_others_are_refused_in_one_line():
    positive, ranking = Field(float, 0.0, 1.0, above=True), Field(("isr", "r"))
    cases = [
        *(((Field(int, 2), x), f"{x}; expected a whole number of at least 2") for x in (1, None)),
        ((Field(int, 1, 10_000), 2.0), "2.0; expected a whole number from 1 to 10,000"),
        ((Field(int, 0), True), "True; expected a whole number of at least 0"),
        ((Field(float, 0.0, MOST), math.inf), "inf; expected a finite number of at least 0"),
        ((Field(float, 0.0, MOST), 10**400), f"{str(10**400)[:57]}...; expected a finite"),
        *(((positive, x), f"{x}; expected a number above 0 to 1") for x in (0.0, math.nan, "1")),
        ((Field(bool), 1), "1; expected true or false"),
        ((ranking, "x\n"), "'x\\n'; expected one of isr, r"),
        ((ranking, ["r"]), "'['r']'; expected one of isr, r"),
        ((SEED, -1), "-1; expected a whole number from 0 to 2**63 - 1"),
    ]
    cases = [(given, f"name: read {line}") for given, line in cases]
    assert list_unrefused(lambda given: given[0].read("name", given[1]), cases, ConfigError) == []
    for (field, value), _ in cases:
        with pytest.raises(InputError):
            field.read("name", value, InputError)


# Every declared option: its limits, and what its owner says of a value beside them

TAKEN = {  # what Evolution reads before the fields do: None means a number drawn, or chosen
    name: replace(field, optional=field.optional or name in ("adapt", "population", "seed"))
    for name, field in OPTIONS.items()
    if name != "antithetic"
}
RECORD = load_instance("DMH-01")
evaluate = partial(evaluate_policy, "EDD", RECORD, trials=1, threads=1)
DOORS = {
    "Config": (Config, Config.list_fields()),
    "Config of an index policy": (partial(Config.preset, "best"), Config.list_fields()),
    "Evolution": (partial(Evolution, [0.0, 0.0], sigma=1.0), TAKEN),
    "evaluation": (evaluate, {"cost_limit": COST_LIMIT, "seed": SEED, "threads": THREADS}),
    "episodes": (evaluate, {"trials": TRIALS, "horizon": HORIZON}),
    "shifts": (
        partial(generate_shift, load_layout("supply-loop")),
        {"hours": HOURS, "scale": SCALE},
    ),
    "demand": (partial(draw_shift, RECORD), {"demand": DEMAND}),
    "rankings": (partial(rank_utilities, [1.0], [1.0], [0]), FIELDS),
    "samplers": (
        lambda sampler="ais", n_instances=3, **given: make_sampler(sampler, n_instances, **given),
        {"n_instances": N_INSTANCES, "advantage": ADVANTAGE, "sampler": SAMPLER_FIELD},
    ),
    **{
        name: (learner.settings_class, learner.settings_class.list_fields())
        for name, learner in LEARNERS.items()
    },
}

LIMITS = {  # least and largest; "(": the least is too little itself
    "Config": """
        generations 0 1e7  decisions 1 1e15  population 2 1e6  learning_rate 0 1e6  noise_std 1e-9 1e3
        noise_decay (0 1  noise_decay_every 1 1e7  noise_rank 1 1e3  cost_limit 0 1e9  p_f 0 1
        class_weights 1e-9 1e9  alpha_u 0 1e6  penalty 0 1e6  margin 0 1e9  records_per_member 1 1e5
        perturb 0 1e6  synthetic 0 1  max_changes 0 1e3  beyond (0 1e6  guard (0 1e6  waiting_weight 0 1e6
        hidden 1 4096  curve_every 0 1e7  curve_trials 1 1e5  horizon (0 1e15
    """,
    "Evolution": """
        population 2 inf  seed 0 9223372036854775807  learning_rate 0 most  cost_limit -most inf  p_f 0 1
        noise_decay (0 1  noise_decay_every 1 inf  n_instances 1 inf  alpha_u 0 most
    """,
    "evaluation": "seed 0 9223372036854775807  threads 1 1024  cost_limit -most inf",
    "episodes": "trials 1 1e7  horizon 0 1e15",
    "shifts": "hours 0.25 24  scale 0.01 100",
    "demand": "demand 0.01 100",
    "rankings": "p_f 0 1  cost_limit -most inf  penalty 0 most  margin 0 most",
    "samplers": "n_instances 1 inf",
    "all rivals": """
        hidden 1 4096  discount 0 1  cost_limit 0 1e9  reward_scale 1e-6 1e6  reward_shift -10 10
        batch 1 65536  look_every 0 1e12  look_trials 1 1e4  episodes 1 65536  collect 1 1e7  repeats 1 1e3
        learning_rate 0 1  clip 0 1  decay 0 1  value_factor 0 1e6  entropy_factor 0 1e6  max_norm 1e-9 1e9
        multiplier 0 1e6  multiplier_rate 0 1e6  updates_per_step 1e-6 100  actor_rate 0 1  critic_rate 0 1
        alpha 0 1e6  tau 0 1  capacity 1 1e7  n_steps 1 1e6
    """,
}


ASKED = ("episodes", "shifts", "demand")
"""What is asked for is no option: another kind of error."""


def list_limits(text):
    words = text.replace("most", repr(MOST)).split()
    return {
        name: ([int(x) if x.isdigit() else float(x) for x in (low.strip("("), high)], low[0] == "(")
        for name, low, high in zip(words[::3], words[1::3], words[2::3], strict=True)
    }


def try_values(field):
    """Values at the edges of a field, and values beside them or of other kinds."""
    if isinstance(field.kind, tuple):
        good, bad = list(field.kind), ["", "other", 1, True, *(x.swapcase() for x in field.kind)]
    elif field.kind is bool:
        good, bad = [True, False], [0, 1, "no"]
    else:
        edges = [x for x in (field.low, field.high) if abs(x) < math.inf]
        good = edges[1:] if field.above else edges
        if field.kind is int:
            good = [int(x) for x in good]
            bad = [field.low - 1, field.low + 0.5, float(field.low)]
            bad += [int(x) + 1 for x in edges[1:]]
        else:
            bad = [
                math.nextafter(x, sign * math.inf) for x, sign in zip(edges, (-1, 1), strict=False)
            ]
            bad += [field.low] * field.above
        bad += [True, "3", math.nan]
    bad += [None] * (not field.optional)
    if isinstance(field, Several):
        fits = max(1, field.fewest)
        good, bad = [(x,) * fits for x in good], ["3", 3, *((x,) * fits for x in bad)]
        bad += [good[0] * (field.most + 1)] + [()] * (field.fewest > 0)
    return good, bad


@pytest.mark.parametrize("door", DOORS)
def test_every_option_has_its_limits_and_is_refused_beside_them(door):
    use, declared = DOORS[door]
    numbers = {name: x for name, x in declared.items() if x.kind in (int, float)}
    limits = list_limits(LIMITS.get(door.split()[0], LIMITS["all rivals"]))
    found = {name: ([x.low, x.high], x.above) for name, x in numbers.items()}
    assert found == {name: limits[name] for name in found}
    tried, faults = 0, []
    for name, field in declared.items():
        if type(field) not in (Field, Several, OwnField):
            continue  # an objective, features, rules
        good, bad = try_values(field)
        faults += [f"{name} = {value}" for value in good if field.read(name, value) != value]
        for value in bad:
            try:
                use(**{name: value})
                faults.append(f"{name} = {value!r} is taken")
            except InputError as error:
                line, kind = str(error), InputError if door in ASKED else ConfigError
                if (
                    type(error) is not kind
                    or not re.fullmatch(f"{name}: read .*; expected .+", line)
                    or len(line) > 600
                ):
                    faults.append(f"{name} = {value!r}: {line}")
            tried += 1
    assert faults == [] and tried > 5
