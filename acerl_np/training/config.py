"""The configuration of a training: its settings, what they come to on records, and the presets."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from acerl_np.policies import index
from acerl_np.problem.goal import SHIFT, Goal
from acerl_np.problem.instance import Instance, are_shifts
from acerl_np.support.errors import ConfigError, refuse
from acerl_np.training.settings import ALONE, AUTO, BEST, Preset, Settings

USUAL_BEYOND, USUAL_GUARD, USUAL_WAITING = 8.0, 1.0, 0.02
"""Waiting tasks for each vehicle, and the weight of a second of waiting, where records are shifts."""


@dataclass(frozen=True)
class Config(Settings):
    """Options of a training run; the defaults are the paper's, or where it is silent the released code's.

    Its attributes are those of `Settings`.

    Raises
    ------
    ConfigError
        If a value has the wrong type or lies outside its range; the message names the field.

    See Also
    --------
    ACERL : The trainer.
    Goal : An objective for what only plays.

    Notes
    -----
    What is yours is kept as a text, `module:name`: `to_dict` and checkpoints name it so. `resume` imports it
    only if it is told to trust the file. A sampler handed over itself is named by its class.

    Examples
    --------
    >>> import acerl_np
    >>> acerl_np.Config(generations=20, sampler="random").population
    256
    >>> acerl_np.Config.preset("best", objective="late").form
    'index'
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        is_index = self.form == "index"
        if self.objective is None and not is_index:
            object.__setattr__(self, "objective", Goal.objective)
        if self.objective is not None and self.cost_limit is None and self.goal.has_limit:
            object.__setattr__(self, "cost_limit", self.goal.cost_limit)
        if self.antithetic and self.population % 2:
            refuse("population", self.population, "an even number with antithetic", ConfigError)
        if self.outcome == "best" and self.curve_every == 0:
            refuse("curve_every", 0, "at least 1 with outcome best", ConfigError)
        for name in ALONE["network" if is_index else "index"]:
            usual, given = type(self).__dataclass_fields__[name].default, getattr(self, name)
            if given != usual:
                shown = {tuple: "the default", type(None): "none"}.get(type(usual), usual)
                refuse(name, given, f"{shown} with form {self.form}", ConfigError)

    @property
    def goal(self) -> Goal:
        """The objective and the limit, the paper's where they are not known yet."""
        objective = self.objective or Goal.objective
        return Goal(objective, self.cost, self.cost_limit, self.class_weights)  # type: ignore[arg-type]

    def resolve(self, instances: Sequence[Instance]) -> Config:
        """Return the configuration with the objective and features that these training records suggest.

        Raises
        ------
        ConfigError
            If a floor has another commitment, or no batteries whose charging could be tuned.
        """
        layouts = [instance.layout for instance in instances]
        for layout in layouts:
            if layout.commitment not in ("assignment", self.commitment):
                own = f"that of the floor, {layout.commitment}"
                refuse("commitment", self.commitment, own, ConfigError)
        if self.tune_charging and not any(any(layout.batteries) for layout in layouts):
            refuse("tune_charging", True, "False, as no vehicle has a battery", ConfigError)
        changes: dict[str, Any] = {}
        if self.objective is None:
            changes["objective"] = SHIFT if are_shifts(instances) else Goal.objective
        if self.form == "index" and are_shifts(instances):
            usual = {"beyond": USUAL_BEYOND, "guard": USUAL_GUARD}
            changes |= {name: x for name, x in usual.items() if getattr(self, name) == AUTO}
        is_shift = SHIFT in (self.objective, changes.get("objective"))
        if self.waiting_weight is None and is_shift and are_shifts(instances):
            changes["waiting_weight"] = USUAL_WAITING
        if self.form == "index":
            features = self.features or index.suggest_features(instances, self.commitment)
            features = (*features, *(index.WAITING if self.may_wait else ()))
            features = (*features, *(index.CHARGING if self.tune_charging else ()))
            if features != index.NAMES:
                changes["features"] = features
        return replace(self, **changes) if changes else self

    @classmethod
    def preset(cls, name: Preset, **options: Any) -> Config:
        """Return a configuration by name, with other options on top.

        "paper" is ACERL as published. "best" trains an index policy, for days that nobody has seen
        (`docs/learning.md`).

        Parameters
        ----------
        name : {"paper", "best"}
        **options
            Fields of this class; with "best", `generations` alone replace the budget.

        Raises
        ------
        ConfigError
            If there is no such preset, a key is unknown or a value is not usable.

        Examples
        --------
        >>> import acerl_np
        >>> acerl_np.Config.preset("best").form
        'index'
        """
        if name not in get_args(Preset):
            refuse("preset", name, f"one of {', '.join(get_args(Preset))}", ConfigError)
        if name == "paper":
            return cls.from_dict(options)
        if "generations" in options:
            options = {"decisions": None, **options}
        return cls.from_dict({**BEST, **options})


Config.__doc__ = inspect.cleandoc(Config.__doc__ or "").replace(
    "Its attributes are those of `Settings`.",
    inspect.cleandoc(Settings.__doc__ or "").partition("\n\n")[2],
)


def check_config(config: object) -> Config:
    """Return a configuration; a `ConfigError` if it is something else, such as a dict of options."""
    if not isinstance(config, Config):
        how = "Config(**options)" if isinstance(config, Mapping) else "Config()"
        refuse("config", config, f"a Config: {how}", ConfigError)
    return config
