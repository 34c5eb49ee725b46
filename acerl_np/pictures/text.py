"""A floor as lines of text."""

from __future__ import annotations

from acerl_np.problem.layout import Layout

WIDTH, HEIGHT = 78, 30
"""Largest text picture, in characters."""

MARK = "*"


def draw_text(layout: Layout) -> tuple[str, list[int]]:
    """Return lines of at most `WIDTH` characters with a mark per site, its name beside it.

    And the positions in `layout.sites` of those whose names found no room.
    """
    x, y = [site.x for site in layout.sites], [site.y for site in layout.sites]
    longest = min(max(len(site.id) for site in layout.sites), 20)
    columns = WIDTH - longest - 1
    # A character is about twice as high as wide.
    scale = max((max(x) - min(x)) / (columns - 1), (max(y) - min(y)) / (2.0 * (HEIGHT - 1))) or 1.0
    rows = [round((max(y) - b) / (2.0 * scale)) for b in y]
    places = [*zip(rows, (round((a - min(x)) / scale) for a in x), strict=True)]
    grid = [[" "] * WIDTH for _ in range(max(rows) + 1)]
    for row, column in places:
        grid[row][column] = MARK
    unnamed = []
    taken: set[tuple[int, int]] = set()
    for k, ((row, column), site) in enumerate(zip(places, layout.sites, strict=True)):
        line, length = grid[row], len(site.id)
        # At its right or at its left, a blank between it and what stands there.
        right, left = line[column + 1 : column + length + 2], line[:column][-length - 1 :]
        room = [column + 1] if column + length < WIDTH and set(right) == {" "} else []
        room += [column - length] if column >= length and set(left) == {" "} else []
        if (row, column) in taken or not room:
            unnamed.append(k)
            continue
        taken.add((row, column))
        line[room[0] : room[0] + length] = site.id
    return "\n".join("".join(line).rstrip() for line in grid), unnamed
