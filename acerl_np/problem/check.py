"""Whether a floor can be driven: which sites can be reached from which."""

from __future__ import annotations

import numpy as np

from acerl_np.problem.layout import Layout


def find_unreachable(layout: Layout, most: int = 5) -> tuple[int, list[tuple[str, str]]]:
    """Count the ordered pairs of sites, first to second, without a way along the edges.

    Parameters
    ----------
    layout : Layout
    most : int
        How many pairs are returned: a floor in pieces has millions.

    Returns
    -------
    count : int
    pairs : list of (str, str)
        The first of them.
    """
    cut = np.isinf(layout.routes.distance)
    first = np.flatnonzero(cut.any(axis=1))[:most]
    pairs = [
        (layout.sites[a].id, layout.sites[b].id)
        for a in first
        for b in np.flatnonzero(cut[a])[:most]
    ]
    return int(cut.sum()), pairs[:most]


def find_no_return(layout: Layout) -> dict[str, list[str]]:
    """Return, by vehicle, the sites that it can reach and from which it cannot come back to its start.

    Parameters
    ----------
    layout : Layout
    """
    finite = np.isfinite(layout.routes.distance)
    found = {}
    for vehicle in layout.vehicles:
        start = layout.site_index[vehicle.start]
        lost = np.flatnonzero(finite[start] & ~finite[:, start])
        if lost.size:
            found[vehicle.id] = [layout.sites[k].id for k in lost]
    return found
