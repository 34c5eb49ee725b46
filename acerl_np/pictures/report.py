"""A report as one HTML page to hand on: sentences, tables and dots of every record; it loads nothing."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import cycle

import numpy as np
from numpy.typing import ArrayLike

from acerl_np.pictures.drawing import COLOURS
from acerl_np.support.files import MARK, FilePath, write_atomically
from acerl_np.support.report import Html

WIDTH, HEIGHT, LEFT, TOP = 760, 220, 64, 12
"""Of a picture's dots, and the margins for its axis."""

TICKS = 4
"""Lines that a picture's axis has about."""

LETTERS = 24
"""Of a name below a picture."""

MARKS = (
    '<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"><title>{title}</title></circle>',
    '<path d="M{x:.1f},{y:.1f}m-5,4l5,-9l5,9z" fill="{colour}"><title>{title}</title></path>',
    '<path d="M{x:.1f},{y:.1f}m-4,-4h8v8h-8z" fill="{colour}"><title>{title}</title></path>',
    '<path d="M{x:.1f},{y:.1f}m-6,0h12" stroke="{colour}" stroke-width="2"><title>{title}</title></path>',
)
"""One for each series, so that they are told apart without colours, too."""


def draw_dots(names: Sequence[str], series: Mapping[str, ArrayLike], what: str) -> Html:
    """Return a picture of values, a column for each name, a mark for each series where it is finite."""
    values = np.array(list(series.values()), np.float64)
    known = np.append(values[np.isfinite(values)], 0.0)
    low, high = float(known.min()), max(float(known.max()), 1e-9)
    step = 10.0 ** math.floor(math.log10((high - low) / TICKS))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= TICKS + 1)
    foot, wide = TOP + HEIGHT, (WIDTH - LEFT) / len(names)
    end = foot + 40.0 + 5.4 * min(LETTERS, max(map(len, names)))

    def place(value: float) -> float:
        return foot - (value - low) / (high - low) * (foot - TOP)

    parts = [f'<svg viewBox="0 0 {WIDTH} {end:.0f}" role="img" font-size="11" fill="#1b1f24">']
    parts.append(f"<title>{html.escape(what)}</title>")
    for k in range(math.ceil(low / step), math.floor(high / step) + 1):
        y = place(k * step)
        parts.append(f'<path d="M{LEFT},{y:.1f}H{WIDTH}" stroke="#d9d9d9"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{k * step:g}</text>')
    every = math.ceil(len(names) / 40)
    for i, name in enumerate(names):
        x = LEFT + (i + 0.5) * wide
        if i % every == 0:
            at = f"translate({x + 3:.1f},{foot + 8}) rotate(-60)"
            short = html.escape(name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…")
            parts.append(f'<text transform="{at}" text-anchor="end">{short}</text>')
        for own, value, mark, colour in zip(series, values[:, i], cycle(MARKS), cycle(COLOURS)):
            if math.isfinite(value):
                title = html.escape(f"{name}, {own}: {value:.6g}")
                parts.append(mark.format(x=x, y=place(value), colour=colour, title=title))
    x = float(LEFT)
    for own, mark, colour in zip(series, cycle(MARKS), cycle(COLOURS)):
        parts.append(mark.format(x=x + 6, y=end - 9, colour=colour, title=html.escape(own)))
        parts.append(f'<text x="{x + 16:.0f}" y="{end - 5:.0f}">{html.escape(own)}</text>')
        x += 34 + 6.2 * len(own)
    return Html("".join([*parts, "</svg>"]))


def write_page(
    path: FilePath, title: str, sentence: str, parts: Mapping[str, Iterable[str]]
) -> None:
    """Write a page: what is said first, then parts by their headings, each of texts and `Html`."""
    first = html.escape(sentence).replace("\n", "<br>")
    body = [f"<h1>{html.escape(title)}</h1>", f'<p class="first">{first}</p>']
    for heading, texts in parts.items():
        body.append(f"<h2>{html.escape(heading)}</h2>")
        for text in texts:
            own = html.escape(text).replace("\n", "<br>")
            body.append(f"<div>{text}</div>" if isinstance(text, Html) else f"<p>{own}</p>")
    style = (files("acerl_np.pictures") / "page" / "report.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    page = (
        f'<!doctype html>\n<!-- {MARK} -->\n<html lang="en"><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title><style>{style}</style>\n"
        + "\n".join(body)
        + "\n</html>\n"
    )
    write_atomically(path, page.encode())
