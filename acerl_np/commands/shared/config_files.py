"""Options and settings of a training as files: TOML, JSON, a run's config.json."""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Mapping
from typing import Any

from acerl_np.commands.shared.train_options import (
    ACERL,
    SHELL,
    Algorithm,
    RunSettings,
    explain,
    fill_settings,
    find_preset,
)
from acerl_np.problem.bundled import bundled_instances, load_instance
from acerl_np.support import errors
from acerl_np.support.errors import ConfigError, InputError
from acerl_np.support.files import read_text


def read_file(path: str, given: Mapping[str, Any], algorithm: Algorithm) -> dict[str, Any]:
    """Return what a file of TOML or JSON gives by name, or the config.json of a run."""
    text = read_text(path, ConfigError)
    form, load = ("JSON", json.loads) if path.endswith(".json") else ("TOML", tomllib.loads)
    try:
        found = load(text)
        if form == "JSON" and "instances" in found:
            found = read_facts(found, given, algorithm)
        return {name.replace("-", "_"): value for name, value in found.items()}
    except InputError as error:
        raise ConfigError(f"{path}: {error}") from error
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        reason = errors.make_printable(str(error)[:200])
        raise ConfigError(f"{path}: not {form}: {reason}") from error
    except (LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
        expected = "the config.json of a run, or options and settings by name"
        raise ConfigError(f"{path}: expected {expected}") from error


def read_facts(
    facts: dict[str, Any], given: Mapping[str, Any], algorithm: Algorithm
) -> dict[str, Any]:
    """Return the options of the run that a config.json tells of; --seed and --seeds go before its own."""
    is_seeded = bool({"seed", "seeds"} & given.keys())
    names = (*algorithm.facts, *(() if is_seeded else ("seed",)))
    found = {name: facts[name] for name in names if facts.get(name) is not None}
    if "seeds" in facts and not is_seeded:
        found["seeds"] = f"{facts['seeds'][0]}:{facts['seeds'][-1] + 1}"
    config = dict(facts[algorithm.told])
    held_back = facts.get("held_back", {})
    if algorithm is ACERL:
        from acerl_np.training.checkpoint import take_stored

        config = take_stored(config)
        share = len(held_back) / (len(held_back) + len(facts["instances"]))
        if facts.get("folds") and not {"hold_out", "seeds"} & {*given, *found}:
            found["folds"] = facts["folds"]
        elif "folds" not in given:
            found["hold_out"] = facts.get("hold_out", share) or "none"
        # How long to train is said once.
        config.pop("decisions" if config.get("decisions") is None else "generations", None)
    if not any(given.get(name) for name in ("tasks", "resume")):
        named, bundled = {**facts["instances"], **held_back}, bundled_instances()
        for name, content in named.items():
            # Fingerprints alone name no files.
            if name not in bundled or load_instance(name).content_hash != content:
                runs = f"the run was of {errors.list_some(list(named), 3)}"
                raise InputError(f"{runs}, whose files it does not name; expected TASKS as well")
        found["tasks"] = list(named)
    return {**found, **config}


def format_options(
    options: Mapping[str, Any], settings: Mapping[str, Any], algorithm: Algorithm = ACERL
) -> str:
    """Return options and all settings as --config reads them, each setting below what it is."""
    own = fill_settings(options, settings, algorithm)
    preset = {"preset": find_preset(options, settings)} if algorithm is ACERL else {}
    values = {**own.to_dict(whole=True), **options, **preset}
    if values.get("decisions") is not None:
        values["generations"] = None
    shown = [name for name in algorithm.options if name not in SHELL]
    lines = [format_value(x, values[x]) for x in shown if values[x] not in (None, False, [])]
    for kind in (type(own), RunSettings):
        for name in kind.list_fields():
            about = textwrap.wrap(explain(kind, name), 100)
            lines += ["", *(f"# {line}" for line in about), format_value(name, values[name])]
    return "\n".join(lines)


def format_value(name: str, value: Any) -> str:
    """Return a line of TOML; without a value a comment."""
    return f"# {name} =" if value is None else f"{name} = {json.dumps(value, ensure_ascii=False)}"
