"""Where vehicles are on an edge on which one is broken, or waits for the place ahead: behind each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acerl_np.problem.layout import Layout
    from acerl_np.simulation.trace import AuxiliaryMove, Step, Stop, Trip


class _Crossing:
    """One vehicle's drive along an edge, and its pieces: positions of a way and of a step in it."""

    def __init__(self, vehicle: int, edge: tuple[int, int], step: Step) -> None:
        self.vehicle, self.edge = vehicle, edge
        self.pace, self.first, self.end = step.pace, step.start, step.end
        self.pieces: list[tuple[int, int]] = []
        self.driven: set[int] = set()
        self.shares: list[float] = []

    def add(self, way: int, k: int, step: Step) -> None:
        self.pieces.append((way, k))
        self.driven.update(range(step.start, step.end))
        self.end, self.is_whole = step.end, step.last >= 1.0

    @property
    def stops(self) -> bool:
        """Whether it breaks down, is held up, or is not at the end when the episode is over."""
        ticks = self.end - self.first
        return not self.is_whole or len(self.driven) < ticks or (ticks - 1) * self.pace >= 1.0

    def drive(self, leader: _Crossing | None, headway: int) -> None:
        """Find the share of the edge that is behind it, second by second.

        It stands a headway before the place ahead, and behind the leader, or half as far where that is less.
        """
        gap, share = headway * self.pace, 0.0
        self.shares = [share]
        for now in range(self.first + 1, self.end + 1):
            limit = max(1.0 - gap, 0.5, 1.0 - self.pace * (self.end - now))
            if leader is not None and now < leader.end:
                ahead = leader.shares[now - leader.first]
                limit = min(limit, max(ahead - gap, ahead / 2.0))
            share = max(share, min(share + self.pace * (now - 1 in self.driven), limit))
            self.shares.append(share)
        if self.is_whole and self.end > self.first:
            self.shares[-1] = 1.0

    def list_steps(self, step: Step) -> list[Step]:
        """Return one piece in steps of an even pace, and stands that wait for the place ahead."""
        found: list[Step] = []
        at, shares = step.start, self.shares[step.start - self.first :]
        while at < step.end or not found:
            first, k = shares[at - step.start], min(at + 1, step.end)
            last = shares[k - step.start]
            pace = last - first
            while k < step.end and abs(shares[k + 1 - step.start] - min(1.0, last + pace)) < 1e-9:
                k += 1
                last = shares[k - step.start]
            piece = step._replace(start=at, end=k, first=first, last=last)
            if pace > 0.0:
                piece = piece._replace(pace=pace)
            else:
                piece = piece._replace(ahead=step.target, until=self.end)
            found.append(piece)
            at = k
        return found


def space_out(
    layout: Layout, ways: Sequence[Trip | AuxiliaryMove], stops: Sequence[Stop]
) -> tuple[list[Trip | AuxiliaryMove], list[Stop]]:
    """Return ways, by their starts, and breakdowns, as vehicles stand behind each other on edges."""
    assert layout.traffic is not None
    lanes: dict[tuple[int, int], list[_Crossing]] = {}
    last: dict[int, _Crossing | None] = {}
    found = {(w, k): [step] for w, way in enumerate(ways) for k, step in enumerate(way.steps)}
    for (w, k), (step,) in found.items():
        v, edge = ways[w].vehicle, (step.origin, step.target)
        own = last.get(v)
        if step.origin == step.target:
            last[v] = own if step.start == step.end else None
            continue
        if own is None or own.edge != edge:
            own = last[v] = _Crossing(v, edge, step)
            lanes.setdefault(edge, []).append(own)
        own.add(w, k, step)
    placed = list(stops)
    for edge, crossings in lanes.items():
        if not any(own.stops for own in crossings):
            continue
        leader = None
        for own in sorted(crossings, key=lambda own: own.first):
            own.drive(leader, layout.traffic.headway)
            leader = own
            for place in own.pieces:
                found[place] = own.list_steps(found[place][0])
            for k, stop in enumerate(placed):
                at = stop.start - 1 - own.first
                here = (stop.vehicle, stop.origin, stop.target) == (own.vehicle, *edge)
                if here and 0 <= at < len(own.shares):
                    placed[k] = stop._replace(part=own.shares[at])
    spaced = [[x for k in range(len(way.steps)) for x in found[w, k]] for w, way in enumerate(ways)]
    return [way._replace(steps=tuple(own)) for way, own in zip(ways, spaced, strict=True)], placed
