"""Places and edges too near for vehicles of a length: pairs, blocks, and what commands say of them."""

import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from acerl_np.commands.main import main
from acerl_np.pictures.replay import describe_floor
from acerl_np.problem import clearance
from acerl_np.problem.layout import Layout


def make_floor(points, edges, **vehicle):
    """A floor of sites by their coordinates, m."""
    sites = [{"id": name, "x": x, "y": y} for name, (x, y) in points.items()]
    return Layout.from_dict(
        {
            "format": 1,
            "sites": sites,
            "edges": [{"a": a, "b": b} for a, b in edges],
            "vehicles": [{"id": "v0", "start": sites[0]["id"], **vehicle}],
        }
    )


CROSSING = {"a": (0, 0), "b": (10, 0), "c": (5, -5), "d": (5, 5)}
EDGES = [("a", "b"), ("c", "d")]


def list_pairs(floor):
    names = [site.id for site in floor.sites]
    return [
        tuple("".join(names[k] for k in x) for x in pair) for pair in clearance.find_near(floor)
    ]


@pytest.mark.parametrize(
    ("points", "edges", "sizes", "pairs"),
    [
        (CROSSING, EDGES, {}, []),
        # They cross without a common point.
        (CROSSING, EDGES, {"length": 1.5, "width": 0.8}, [("ab", "cd")]),
        # Two points 1 m apart hold one vehicle; 2 m are enough.
        ({"a": (0, 0), "b": (1, 0)}, [("a", "b")], {"length": 1.5}, [("a", "b")]),
        ({"a": (0, 0), "b": (2, 0)}, [("a", "b")], {"length": 1.5}, []),
        # Lanes side by side are too near for vehicles that are as wide as long.
        (
            {"a": (0, 0), "b": (9, 0), "c": (0, 1.2), "d": (9, 1.2)},
            EDGES,
            {"length": 1.5},
            [
                ("a", "c"),
                ("b", "d"),
                ("a", "cd"),
                ("b", "cd"),
                ("c", "ab"),
                ("d", "ab"),
                ("ab", "cd"),
            ],
        ),
        (
            {"a": (0, 0), "b": (9, 0), "c": (0, 1.2), "d": (9, 1.2)},
            EDGES,
            {"length": 1.5, "width": 0.8},
            [],
        ),
        # Who stands at c reaches 0.75 m ahead, into the edge from a to b.
        (
            {"a": (0, 0), "b": (9, 0), "c": (4, 1), "d": (4, 6)},
            EDGES,
            {"length": 1.5, "width": 0.8},
            [("c", "ab")],
        ),
        # One after another on a line.
        ({"a": (0, 0), "b": (3, 0), "c": (6, 0)}, [("a", "b"), ("b", "c")], {"length": 1.5}, []),
    ],
)
def test_places_that_are_too_near(points, edges, sizes, pairs):
    assert list_pairs(make_floor(points, edges, **sizes)) == pairs


def list_corners(box):
    x, y, half, dx, dy, wide = box
    return [
        (x + a * half * dx - b * wide * dy, y + a * half * dy + b * wide * dx)
        for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))
    ]


def is_inside(box, point):
    x, y, half, dx, dy, wide = box
    u, w = point[0] - x, point[1] - y
    return abs(u * dx + w * dy) < half and abs(w * dx - u * dy) < wide


def test_boxes_overlap_as_their_points_do():
    draw = random.Random(3)
    n_found = 0
    for _ in range(300):
        boxes = []
        for _ in range(2):
            angle = draw.uniform(0, 7)
            size = draw.uniform(0.2, 3), math.cos(angle), math.sin(angle), draw.uniform(0.2, 3)
            boxes.append((draw.uniform(-3, 3), draw.uniform(-3, 3), *size))
        one, two = boxes
        found = bool(clearance._overlap(np.array(one), np.array([two]))[0])
        # A point of the first, of 60 x 60, that is in the second.
        grid = [k / 60 for k in range(61)]
        (ax, ay), (bx, by), (cx, cy), _ = list_corners(one)
        expected = any(
            is_inside(two, (bx + s * (ax - bx) + t * (cx - bx), by + s * (ay - by) + t * (cy - by)))
            for s in grid
            for t in grid
        )
        assert found or not expected
        grown = replace_sizes(one, 0.1)
        assert not found or bool(clearance._overlap(np.array(grown), np.array([two]))[0])
        n_found += found
        if found and not expected:  # only a corner of a finger's breadth
            shrunk = [replace_sizes(box, -0.06) for box in boxes]
            assert not clearance._overlap(np.array(shrunk[0]), np.array([shrunk[1]]))[0]
    assert 50 < n_found < 250


def replace_sizes(box, more):
    x, y, half, dx, dy, wide = box
    return x, y, half + more, dx, dy, wide + more


def test_blocks_of_what_is_too_near():
    floor = make_floor(CROSSING | {"e": (20, 0), "f": (21, 0)}, [*EDGES, ("e", "f")])
    near = clearance.keep_apart(floor, 1.5, 0.8)
    assert [(x.id, x.kind, x.sites, x.edges) for x in near.blocks] == [
        ("near:1", "single", ("e", "f"), ()),
        ("near:2", "same_direction", (), (("a", "b"), ("c", "d"))),
    ]
    # Made again for other vehicles; a floor without lengths is as it was.
    assert [x.edges for x in clearance.keep_apart(near, 0.5).blocks] == [(("a", "b"), ("c", "d"))]
    again = clearance.keep_apart(near, 1.5, 0.8)
    assert again == near and Layout.from_dict(near.to_dict()) == near
    assert near.floor_hash != floor.floor_hash and near.fleet_hash != floor.fleet_hash
    bare = replace(clearance.keep_apart(near, 0.0), blocks=())
    assert bare.to_dict() == floor.to_dict() and bare.fleet_hash == floor.fleet_hash
    assert "sizes" not in describe_floor(floor)
    assert describe_floor(near)["sizes"] == [[1.5, 0.8]]


def test_commands_tell_and_keep_lengths(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    floor = make_floor(CROSSING | {"e": (20, 0), "f": (21, 0)}, [*EDGES, ("e", "f")])
    (tmp_path / "floor.json").write_text(json.dumps(floor.to_dict()))
    words = "--vehicle-length 1.5 --vehicle-width 0.8"
    assert main(f"floor edit floor.json {words} --out near.json".split()) == 0
    told = "vehicles of 1.5 m: 2 pairs of places are nearer, on 100% of the ways"
    assert told in capsys.readouterr().out
    near = Layout.load("near.json")
    assert len(near.blocks) == 2 and near.vehicles[0].length == 1.5
    (tmp_path / "bare.json").write_text(json.dumps({**near.to_dict(), "blocks": []}))
    assert main(["floor", "check", "bare.json"]) == 0
    assert f"{told}; 2 without a block (floor edit --vehicle-length 1.5)" in capsys.readouterr().out
    assert main(["floor", "edit", "floor.json", "--vehicle-width", "1", "--out", "x.json"]) == 2
    assert "--vehicle-width: given without --vehicle-length" in capsys.readouterr().err
