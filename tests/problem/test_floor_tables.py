"""Floors from two tables, of sites and of paths; the JSON Schema of layouts, by a plain reading of it."""

import json
from pathlib import Path

import pytest

import acerl_np
from acerl_np.problem.bundled import instances_folder
from acerl_np.problem.importers.tables import TEMPLATE
from acerl_np.problem.parts import make_schema

SITES = "site,x,y,kind\na,0,0,station\nb,3,4,\nc,3,0,parking\n"
PATHS = "from,to,length,one_way,max_speed\na,b,,,\nb,c,5.5,yes,0.5\nc,a,,no,\n"
FLEET = {"vehicles": 2, "start": ["c"]}


def write(folder, sites=SITES, paths=PATHS):
    names = folder / "sites.csv", folder / "paths.csv"
    for path, text in zip(names, (sites, paths), strict=True):
        path.write_text(text)
    return names


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_two_tables_are_a_floor_in_any_order(tmp_path, separator):
    texts = [text.replace(",", separator) for text in (SITES, PATHS)]
    if separator == ";":
        texts[1] = texts[1].replace("5.5", "5,5").replace("0.5", "0,5")
    names = write(tmp_path, f"# a title\n{texts[0]}", texts[1])
    found = acerl_np.import_floor(*names, **FLEET)
    by_hand = acerl_np.Layout.from_dict(
        {
            "name": tmp_path.name,
            "format": 1,
            "sites": [
                {"id": "a", "x": 0, "y": 0, "kind": "station"},
                {"id": "b", "x": 3, "y": 4},
                {"id": "c", "x": 3, "y": 0, "kind": "parking"},
            ],
            "edges": [
                {"a": "a", "b": "b"},
                {"a": "b", "b": "c", "length": 5.5, "one_way": True, "max_speed": 0.5},
                {"a": "c", "b": "a"},
            ],
            "vehicles": [{"id": "v1", "start": "c"}, {"id": "v2", "start": "c"}],
            "loads": "stay",
        }
    )
    assert found.layout == by_hand and found.layout.edges[0].length == 5.0
    assert acerl_np.import_floor(*names[::-1], **FLEET).layout == by_hand
    both = acerl_np.import_floor(*names, **FLEET, two_way=True).layout
    assert not any(edge.one_way for edge in both.edges)
    with pytest.raises(acerl_np.LayoutError, match="--join: given for tables; expected it for LIF"):
        acerl_np.import_floor(*names, **FLEET, join=True)


@pytest.mark.parametrize(
    ("sites", "paths", "told"),
    [
        (SITES, PATHS.replace("b,c", "b,sea"), "paths.csv: line 3: to: read "),
        (SITES, PATHS.replace("5.5", "far"), "paths.csv: line 3: length: read "),
        (SITES, PATHS.replace("yes", "maybe"), "line 3: one_way: read "),
        (SITES.replace("b,3", "b,"), PATHS, "sites.csv: line 3: x: read "),
        (SITES.replace("b,3", "a,3"), PATHS, "sites.csv: line 3: site: 'a' again"),
        (SITES, SITES, "a second table of sites"),
        (PATHS, PATHS, "a second table of paths"),
    ],
)
def test_a_bad_line_is_named(tmp_path, sites, paths, told):
    with pytest.raises(acerl_np.LayoutError) as caught:
        acerl_np.import_floor(*write(tmp_path, sites, paths), **FLEET)
    assert told in f"{caught.value}" and "\n" not in f"{caught.value}"


def test_a_new_floor_is_two_tables_to_edit(empty, run):
    out = run("floor new hall").out
    assert {path.name for path in Path("hall").iterdir()} == {*TEMPLATE, "layout.schema.json"}
    command = out.splitlines()[-1].removeprefix("next: acerl-np ")
    assert run(command).out.startswith("layout.json: 5 sites, 5 edges (1 one-way), 2 vehicles")
    data = {"$schema": "hall/layout.schema.json", **json.loads(Path("layout.json").read_text())}
    Path("named.json").write_text(json.dumps(data))
    assert acerl_np.load_layout("named.json") == acerl_np.load_layout("layout.json")
    assert json.loads(Path("hall/layout.schema.json").read_text()) == make_schema()
    Path("hall/paths.csv").unlink()
    assert "sites.csv exists; expected a new folder" in run("floor new hall", 2).err
    assert not Path("hall/paths.csv").exists()


KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


def fits(schema, value):
    """Whether a value is what a JSON Schema of the words that `make_schema` uses says."""
    if "enum" in schema:
        return value in schema["enum"]
    kind = schema["type"]
    if kind == "object":
        known, more = schema.get("properties", {}), schema["additionalProperties"]
        return (
            isinstance(value, dict)
            and {*schema.get("required", ())} <= value.keys()
            and all(key in known or more for key in value)
            and all(fits(known.get(key, more), item) for key, item in value.items())
        )
    if kind == "array":
        size = isinstance(value, list) and len(value)
        least, most = schema.get("minItems", 0), schema.get("maxItems", size)
        is_long_enough = size is not False and least <= size <= most
        return is_long_enough and all(fits(schema["items"], x) for x in value)
    is_kind = isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    return is_kind and (kind == "string" or low <= value <= high)


def test_layouts_are_as_the_schema_says():
    schema = make_schema()
    for path in instances_folder().rglob("layout.json"):
        assert fits(schema, json.loads(path.read_text())), path
    whole = acerl_np.load_layout("dmh").to_dict()
    uses = dict.fromkeys(("idle", "empty", "loaded", "critical"), 1)
    whole["battery"] = {"capacity": 10, "charge": 2, **uses}
    damaged = [
        {**whole, "wheels": 4},
        {key: x for key, x in whole.items() if key != "sites"},
        {**whole, "task_slots": 0},
        {**whole, "vehicles": []},
        {**whole, "sites": [{**whole["sites"][0], "x": "0"}, *whole["sites"][1:]]},
        {**whole, "vehicles": [{"id": "v", "start": "st1", "speed": 0.0}]},
        {**whole, "aliases": {"x": 3}},
        {**whole, "battery": {"capacity": 10}},
    ]
    for data in damaged:
        assert not fits(schema, data)
        with pytest.raises(acerl_np.LayoutError):
            acerl_np.Layout.from_dict(data)
