"""Pictures of floors: stations are named first, no name hides another or leaves the axes."""

import numpy as np
import pytest
from boxes import draw_figure, find_faults

import acerl_np
from acerl_np.pictures.maps import draw_layout
from acerl_np.problem.layout import Layout


def make_grid(wide, gap, spaced=3, name="s{}"):
    """Return a floor of `wide` x `wide` sites; one in `spaced` of each row is a shelf, shifted by row."""
    sites = []
    for k in range(wide * wide):
        kind = "" if (k + k // wide) % spaced else "Shelf"
        place = {"x": gap * (k % wide), "y": gap * (k // wide)}
        sites.append({"id": name.format(k), **place, "kind": kind})
    edges = [{"a": sites[k]["id"], "b": sites[k + 1]["id"]} for k in range(len(sites) - 1)]
    fleet = [{"id": "v", "start": sites[1]["id"]}]
    data = {"format": 1, "name": "grid", "sites": sites, "edges": edges, "vehicles": fleet}
    return Layout.from_dict(data)


def list_names(figure):
    return {text.get_text() for text in figure.axes[0].texts if text.get_visible()}


def draw(path, layout):
    draw_layout(layout, path)


draw.__module__ = draw_layout.__module__  # where `draw_figure` watches


@pytest.mark.parametrize(("wide", "name"), [(3, "s{}"), (10, "s{}"), (10, "a-place-of-number-{}")])
def test_stations_are_named_before_waypoints_and_no_name_hides_another(wide, name):
    layout = make_grid(wide, 2.0, name=name)
    faults, names = draw_figure(draw, layout, look=lambda f: (find_faults(f), list_names(f)))
    assert faults == []
    stations = {site.id for site in layout.sites if site.kind}
    others = {site.id for site in layout.sites} - stations
    assert stations <= names
    # Where all fit all are named, where the floor is dense only some of the others.
    assert (others <= names) == (name == "s{}")


def test_names_stay_within_the_axes_and_apart_from_markers():
    layout = make_grid(5, 10.0, name="a-long-name-of-a-place-{:03d}")

    def look(figure):
        axes = figure.axes[0]
        texts = [text for text in axes.texts if text.get_text().startswith("a-long")]
        boxes = np.array([text.get_window_extent().extents for text in texts])
        centres = axes.transData.transform([(site.x, site.y) for site in layout.sites])
        return boxes, axes.bbox.extents, centres

    boxes, (left, bottom, right, top), centres = draw_figure(draw, layout, look=look)
    assert len(boxes) > 10
    assert boxes[:, 0].min() >= left and boxes[:, 2].max() <= right
    assert boxes[:, 1].min() >= bottom and boxes[:, 3].max() <= top
    for x, y in centres:
        inside = (boxes[:, 0] < x) & (x < boxes[:, 2]) & (boxes[:, 1] < y) & (y < boxes[:, 3])
        assert not inside.any()


def test_a_node_is_called_by_the_stations_that_it_serves():
    data = acerl_np.load_layout("dmh").to_dict()
    data["stations"] = {"Ramp": ["p0", "p1"], "Door": ["p0"], "Gate": ["p0"]}
    names = draw_figure(draw, Layout.from_dict(data), look=list_names)
    assert {"Door, Gate, ...", "Ramp", "p2", "st1", "20 m"} <= names and "p0" not in names


def test_chargers_and_parking_places_are_marked_where_there_are_some():
    def list_marks(figure):
        axes = figure.axes[0]
        found = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        return {name: len(found[name].get_offsets()) for name in found if "here" in name}

    data = make_grid(3, 2.0).to_dict()
    assert draw_figure(draw, Layout.from_dict(data), look=list_marks) == {}
    data["chargers"] = [{"site": "s1"}, {"site": "s2"}]
    data["parking"] = {"places": [{"site": "s1"}]}
    found = draw_figure(draw, Layout.from_dict(data), look=list_marks)
    assert found == {"vehicles charge here": 2, "vehicles park here": 1}
