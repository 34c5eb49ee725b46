"""Where the texts of a picture stand, as they are drawn, and which of them are on top of each other."""

from contextlib import contextmanager
from itertools import combinations
from unittest import mock

import pytest

from acerl_np.pictures.drawing import style_figure

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

SLACK = 1.5
"""Pixels by which boxes may touch: there is air around letters."""


def draw_texts(figure):
    """Every text that is drawn, with its box in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    drawn = {}
    plain = Text.draw

    def draw(self, renderer, *args, **kwargs):
        if self.get_visible() and self.get_text().strip():
            drawn[id(self)] = self, self.get_window_extent(renderer)
        return plain(self, renderer, *args, **kwargs)

    # A tidy figure is drawn twice; the second time everything is in its place.
    with mock.patch.object(Text, "draw", draw):
        FigureCanvasAgg(figure).draw()
    return list(drawn.values())


def overlap(a, b):
    return min(a.x1, b.x1) - max(a.x0, b.x0) > SLACK and min(a.y1, b.y1) - max(a.y0, b.y0) > SLACK


def find_faults(figure):
    """Pairs of texts that overlap, texts that leave the picture, and texts below 8 points."""
    texts = draw_texts(figure)
    assert texts
    faults = [
        (a.get_text(), b.get_text()) for (a, x), (b, y) in combinations(texts, 2) if overlap(x, y)
    ]
    whole = figure.bbox
    faults += [
        ("outside", text.get_text())
        for text, box in texts
        if box.x0 < whole.x0 - SLACK
        or box.x1 > whole.x1 + SLACK
        or box.y0 < whole.y0 - SLACK
        or box.y1 > whole.y1 + SLACK
    ]
    return faults + [("small", text.get_text()) for text, _ in texts if text.get_size() < 8.0]


def draw_figure(draw, *arguments, look=lambda figure: figure):
    """What `look` says of the figure that a function of `acerl_np.pictures` draws; nothing is written."""
    found = []

    @contextmanager
    def watch(path, *args, **kwargs):
        with style_figure(*args, **kwargs) as figure:
            yield figure
            found.append(look(figure))

    with mock.patch("acerl_np.pictures.drawing.open_figure", watch):
        draw("a.png", *arguments)
    return found[0]
