"""A floor's stations, and the sites that a name in a record stands for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acerl_np.problem.layout import Layout
from acerl_np.problem.routes import TOLERANCE
from acerl_np.support.errors import list_some

PARKING, CHARGER = "parking", "charger"
NO_STATIONS = frozenset({"", "waypoint", PARKING, CHARGER})
"""Kinds of sites where no loads change hands."""

STATION = "station"
"""Type of a station that has no other."""


def find_stations(layout: Layout) -> dict[str, tuple[int, ...]]:
    """Return the sites from which each station of a floor is served, as ascending positions by its name.

    Stations are those that the layout names, and each further site of a kind that is not in `NO_STATIONS`, in
    the order of the first of their sites.
    """
    found = {name: _sort(layout, sites) for name, sites in layout.stations.items()}
    named = {k for sites in found.values() for k in sites}
    for k, site in enumerate(layout.sites):
        if site.kind not in NO_STATIONS and k not in named:
            found[site.id] = (k,)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def name_stations(layout: Layout) -> dict[int, list[str]]:
    """Return the stations that are served from each site that serves any."""
    found: dict[int, list[str]] = {}
    for name, sites in find_stations(layout).items():
        for k in sites:
            found.setdefault(k, []).append(name)
    return found


def find_type(layout: Layout, sites: Sequence[int]) -> str:
    """Return the type of the station that is served from these sites: the first kind among them."""
    kinds = (layout.sites[k].kind for k in sites)
    return next((kind for kind in kinds if kind not in NO_STATIONS), STATION)


def find_sites(layout: Layout, name: str) -> tuple[int, ...]:
    """Return the sites that a name stands for, ascending: a site, a station, or an alias; none if unknown."""
    name = layout.aliases.get(name, name)
    if name in layout.site_index:
        return (layout.site_index[name],)
    return _sort(layout, layout.stations.get(name, ()))


def show_site(layout: Layout, site: int) -> str:
    """Return a site as an error's line shows it: its id, and the stations that it serves by other names."""
    own = layout.sites[site].id
    served = [name for name, sites in layout.stations.items() if own in sites]
    return f"'{own}'" + (f" (of station {list_some(served, 3)})" if served else "")


def find_ends(layout: Layout, pickups: Sequence[int], deliveries: Sequence[int]) -> tuple[int, int]:
    """Return the pair of sites that serves a task between two stations of several sites.

    It is the pair of two different sites with the shortest way; ties go to the first by the pickup's,
    then by the delivery's place in the order of the sites. Pickups that some vehicle cannot reach from
    its start are passed over unless there is no other.
    """
    if len(pickups) == len(deliveries) == 1:
        return pickups[0], deliveries[0]
    reached = [k for k in pickups if layout.reached[k]]
    pairs = [(a, b) for a in reached or pickups for b in deliveries if a != b]
    if not pairs:  # the only pickup that is reached is the only delivery
        pairs = [(a, b) for a in pickups for b in deliveries if a != b]
    lengths = layout.routes.distance[tuple(np.transpose(pairs))]
    shortest = float(lengths.min())
    return pairs[int(np.argmax(lengths <= shortest + TOLERANCE * max(1.0, shortest)))]


def _sort(layout: Layout, sites: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted(layout.site_index[site] for site in sites))
