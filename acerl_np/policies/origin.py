"""Where a policy comes from: the floors and fleets that it was trained for, and on which records."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from acerl_np.problem import json_tree, packing
from acerl_np.problem.goal import PAPER, Goal
from acerl_np.problem.instance import Instance, list_instances
from acerl_np.problem.layout import Layout
from acerl_np.problem.limits import MAX_VEHICLES
from acerl_np.support.errors import (
    ConfigError,
    InputError,
    LayoutError,
    PolicyError,
    PolicyWarning,
    describe,
    list_some,
    make_printable,
)
from acerl_np.support.files import MAX_TEXT_BYTES
from acerl_np.support.version import __version__

PREFIX = "origin."
"""Before the names of an origin's arrays among those of its policy."""

SHOWN = 8
"""Most vehicles, and half of the most floors, that a line names."""


def is_hash(value: object) -> bool:
    """Whether a value is a hash as files hold it."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


@dataclass(frozen=True)
class Place:
    """A floor with a fleet.

    Attributes
    ----------
    floor : str, name of the layout, for messages
    floor_hash : str
        `Layout.floor_hash`.
    vehicles : tuple of str, ids, in the layout's order
    fleet_hash : str
        `Layout.fleet_hash`.
    """

    floor: str
    floor_hash: str
    vehicles: tuple[str, ...]
    fleet_hash: str

    @classmethod
    def of(cls, layout: Layout) -> Place:
        """Return the floor and the fleet of a layout."""
        vehicles = tuple(vehicle.id for vehicle in layout.vehicles)
        return cls(layout.name, layout.floor_hash, vehicles, layout.fleet_hash)


@dataclass(frozen=True)
class TrainingRecord:
    """Name and content hash of a record that a policy was trained on."""

    name: str
    content_hash: str


@dataclass(frozen=True)
class Origin:
    """Where a policy comes from.

    Attributes
    ----------
    places : tuple of Place, the different floors and fleets of training; breakdowns are no part of them
    records : tuple of TrainingRecord, what it was trained on, in order
    version : str, of acerl_np
    goal : Goal, what it was trained for; the paper's where the file says nothing
    history : tuple of Instance
        The training records themselves; empty if they were left out. Two origins are equal without them.
    """

    places: tuple[Place, ...]
    records: tuple[TrainingRecord, ...]
    version: str
    goal: Goal = PAPER
    history: tuple[Instance, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(
        cls,
        instances: Instance | Sequence[Instance],
        keep_records: bool = True,
        *,
        goal: Goal = PAPER,
    ) -> Origin:
        """Return the origin of a policy that is trained on these records, for a goal, by this version.

        Parameters
        ----------
        instances : Instance or sequence of Instance
        keep_records : bool, whether its file is to hold them
        goal : Goal
        """
        chosen = list_instances(instances)
        if not chosen:
            raise InputError("no instances; expected at least one")
        places: dict[tuple[str, str], Place] = {}
        for instance in chosen:
            place = Place.of(instance.layout)
            places.setdefault((place.floor_hash, place.fleet_hash), place)
        return cls(
            places=tuple(places.values()),
            records=tuple(TrainingRecord(item.name, item.content_hash) for item in chosen),
            version=__version__,
            goal=Goal.from_dict(goal.to_dict()),  # functions by their names
            history=tuple(chosen) if keep_records else (),
        )

    def without_records(self) -> Origin:
        """Return this origin without the records themselves; their names and hashes stay."""
        return replace(self, history=())

    def compare(self, layout: Layout) -> list[str]:
        """Say in what a layout differs from those of training, by content and not by name.

        Parameters
        ----------
        layout : Layout

        Returns
        -------
        list of str
            A line about the floor, one about the fleet; none where floor and fleet equal those of one
            of the training's layouts.
        """
        here = [place for place in self.places if place.floor_hash == layout.floor_hash]
        own = Place.of(layout)
        lines = []
        if not here:
            known = [_name_floor(place) for place in self.places]
            lines.append(
                f"floor: trained on {list_some(known, SHOWN // 2)}, read {_name_floor(own)}"
            )
        near = here or list(self.places)
        if not any(place.fleet_hash == layout.fleet_hash for place in near):
            lines.append(_tell_fleets(near, own))
        return lines

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"facts": packing.pack_json(FACTS.write(self))}
        if self.history:
            arrays["history"] = packing.pack_instances(self.history)
        return arrays

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what `from_arrays` needs, as plain arrays."""
        return dict(self._arrays)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Origin:
        """Build an origin from `to_arrays`."""
        with packing.unpacking(PolicyError, "origin", "; the file holds no usable origin"):
            if unknown := set(arrays) - {"facts", "history"}:
                raise PolicyError(f"unknown entry '{describe(min(unknown))}'")
            for name, array in arrays.items():
                if array.dtype != np.uint8 or array.ndim != 1 or array.size > MAX_TEXT_BYTES:
                    raise PolicyError(f"{name}: read {array.dtype} of shape {array.shape}")
            origin: Origin = FACTS.read("", packing.unpack_json(arrays["facts"]))
            if "history" not in arrays:
                return origin
            # What a record asks of its fleet matters to those who play it.
            history = packing.unpack_instances(arrays["history"], servable=False)
            found = cls.of(history)
            if (found.places, found.records) != (origin.places, origin.records):
                raise PolicyError("the records do not fit their names and hashes")
            return replace(origin, history=tuple(history))


def _read_goal(value: Any, where: str) -> Goal:
    if not isinstance(value, dict):
        json_tree.refuse(where, value, "a table")
    try:
        return Goal.from_dict(value)
    except ConfigError as error:
        raise LayoutError(f"{where}: {error}") from error


GOAL = json_tree.Key(reader=_read_goal, writer=Goal.to_dict)
"""Key of a goal in a file."""

TEXT = json_tree.Key(str)
HASH = json_tree.leaf(is_hash, "a hash of 64 digits", str)
PLACE = {"floor": TEXT, "floor_hash": HASH, "fleet_hash": HASH}
PLACE["vehicles"] = json_tree.items(TEXT, 0, MAX_VEHICLES)
RECORD = {"name": TEXT, "content_hash": HASH}
FACTS = json_tree.table(
    {
        "version": TEXT,
        "places": json_tree.items(json_tree.table(PLACE, Place), 1, 10**6),
        "records": json_tree.items(json_tree.table(RECORD, TrainingRecord), 0, 10**6),
        "goal": replace(GOAL, default=PAPER, brief=True),
    },
    Origin,
)


def _name_floor(place: Place) -> str:
    return f"'{describe(place.floor)}' (hash {place.floor_hash[:12]})"


def _name_fleet(place: Place) -> str:
    return list_some([describe(name) for name in place.vehicles], SHOWN)


def _tell_fleets(places: Sequence[Place], own: Place) -> str:
    known = list(dict.fromkeys(_name_fleet(place) for place in places))
    read = _name_fleet(own)
    if read not in known:
        more = " or others" if len(known) > SHOWN // 2 else ""
        return f"fleet: trained for {' or '.join(known[: SHOWN // 2])}{more}; read {read}"
    place = next(place for place in places if _name_fleet(place) == read)
    what = "other starts, speeds or capacities" if place.vehicles == own.vehicles else "others"
    return (
        f"fleet: trained for {read} (hash {place.fleet_hash[:12]}); "
        f"read {what} (hash {own.fleet_hash[:12]})"
    )


def add_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays whose names begin with a prefix, as part of others."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def take_prefixed(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of which `add_prefix` made those that begin so, by their names before."""
    n = len(prefix)
    return {name[n:]: array for name, array in arrays.items() if name.startswith(prefix)}


def pack_origin(origin: Origin | None) -> dict[str, np.ndarray]:
    """Return the arrays of an origin as they stand among those of its policy; none without one."""
    if origin is None:
        return {}
    return add_prefix(PREFIX, origin.to_arrays())


def unpack_origin(arrays: Mapping[str, np.ndarray]) -> Origin | None:
    """Return the origin among a policy's arrays, None if there is none."""
    own = take_prefixed(PREFIX, arrays)
    return Origin.from_arrays(own) if own else None


def describe_difference(policy: object, layouts: Iterable[tuple[str, Layout]]) -> str | None:
    """Say in one line where a policy is used elsewhere than it was trained for.

    Returns
    -------
    str or None
        The differences of the first that differs, and how many more differ; None if none does.
    """
    origin = getattr(policy, "origin", None)
    if not isinstance(origin, Origin) or getattr(policy, "portable", False):
        return None
    compared = [(name, origin.compare(layout)) for name, layout in layouts]
    differing = [(name, lines) for name, lines in compared if lines]
    if not differing:
        return None
    name, lines = differing[0]
    more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
    return f"{make_printable(name)}: {'; '.join(lines)}{more}"


def warn_of_difference(
    policy: object, layouts: Iterable[tuple[str, Layout]], *, stacklevel: int = 3
) -> None:
    """Warn once where a policy is used elsewhere than it was trained for, as `describe_difference` says."""
    line = describe_difference(policy, layouts)
    if line is not None:
        warnings.warn(f"policy: {line}", PolicyWarning, stacklevel=stacklevel)
