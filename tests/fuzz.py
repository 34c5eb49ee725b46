"""Mutated inputs of every kind: each must work, or be refused in one line; nothing else may happen.

Every case is decided by its kind and number alone. Its bytes come from a small valid sample whose structure
or bytes were changed. A finding is any exception but `InputError`, an error of more than one line, a figure
that is not finite, a case of more than five seconds or of too much memory. A case that hangs in compiled
code ends the process. Its input stays in the test's folder.
"""

import copy
import csv
import dataclasses
import faulthandler
import io
import json
import math
import mmap
import operator
import os
import pickle
import random
import re
import shutil
import signal
import struct
import time
import traceback
import warnings
import zipfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial, reduce
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

import acerl_np
from acerl_np import ACERL, Config, IndexPolicy, InputError, Instance, Layout, Policy
from acerl_np.commands.main import build_parser, main, sort_words
from acerl_np.commands.shared.train_options import fill_settings, merge_options
from acerl_np.evaluation.references import load_references, save_references
from acerl_np.live.daybook import read_audit
from acerl_np.policies.network import initial_parameters
from acerl_np.policies.origin import Origin
from acerl_np.problem.importers.files import read_floor
from acerl_np.problem.records import read_assignments, write_record
from acerl_np.problem.servable import describe_parts, measure_load
from acerl_np.problem.tables import count_actions, count_features
from acerl_np.simulation.replay import replay_assignments, write_schedule
from acerl_np.support.errors import CheckpointError, make_printable
from acerl_np.support.files import read_arrays, show_path, write_arrays

SECONDS, WAITING = 5.0, 60.0
"""A case that takes longer is a finding: of the processor, and by the clock."""

MEMORY = 500 * 2**20
"""Bytes of address space beyond those of the compiled kernels."""

MAX_DECISIONS = 20_000

DATA = Path(__file__).resolve().parent / "data"
VALID = DATA / "fuzz"
"""Small valid files of every kind that is text; those of the package's own formats are made."""


def read_table(name):
    with open(VALID / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def read_tree(name):
    return json.loads((DATA / name).read_text())


FLOOR = read_tree("fuzz/floor.json")
PLAIN_FLOOR = {key: FLOOR[key] for key in ("format", "sites", "edges", "vehicles")}
MODEL = {"mean_time_between_failures": 60, "mean_time_to_repair": 7.5}
RANDOM_FLOOR = {
    **FLOOR,
    "vehicles": [{**vehicle, "random_breakdowns": MODEL} for vehicle in FLOOR["vehicles"]],
}
BATTERY = {"capacity": 9000, "start": 8000, "idle": 1, "empty": 3, "loaded": 7, "charge": 30}
BATTERY |= {"critical": 2000, "resume": 4500, "good": 6000, "full": 8500, "tow": 60}
CHARGED_FLOOR = {
    **FLOOR,
    "vehicles": [{**FLOOR["vehicles"][0], "battery": BATTERY}, *FLOOR["vehicles"][1:]],
    "battery": BATTERY,
    "chargers": [{"site": site["id"], "slots": 1 + k} for k, site in enumerate(FLOOR["sites"][:2])],
    "parking": {"after": 9, "places": [{"site": FLOOR["sites"][1]["id"], "places": 2}]},
}
ORIGINS = read_tree("fuzz/origins.json")
TABLE = read_table("week")
OPTIONS = dict(line.split(" = ") for line in (VALID / "options.toml").read_text().splitlines())
MOMENTS = [
    *["2024-05-06T07:00:00", "2024-05-06T07:00:00Z", "2024-05-06 07:00", "20240506T070000,5+0200"],
    *["9999-12-31T23:59:59", "0001-01-01T00:00", "0001-01-01T00:00+14:00", "2024-02-30T00:00"],
    *["2024-05-06T07:00:00.1234567", "1900-01-01T00:00", "2024-05-06", "07:00"],
    *["23:59:59.999999999", "24:00", "7:5", "1714980600", "4000000000.1", "06.05.2024 07:30"],
]

SIZES = (3, 2)
"""Task slots and vehicles of the sample floor."""


class Finding(Exception):  # noqa: N818
    """Something that no input may cause."""


class Overdue(BaseException):
    """A case takes too long; no `except Exception` keeps it."""


# Mutations of bytes


def mutate_bytes(rng, data, others):
    """Return `data` with one to four of its bytes or stretches changed."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        size = len(data)
        at = rng.randrange(size + 1)
        end = min(size, at + rng.choice([1, 1, 2, 5, 20, 200]))
        before, own, rest = data[:at], data[at:end], data[end:]
        what = rng.randrange(8)
        if what == 0 and own:
            own, rest = bytes([own[0] ^ (1 << rng.randrange(8))]), data[at + 1 :]
        elif what == 1:
            own = rng.randbytes(rng.choice([1, 1, 3, 30])) + own
        elif what == 2:
            own = b""
        elif what == 3:
            own *= rng.choice([2, 2, 3, 100])
        elif what == 4:
            own = rest = b""
        elif what == 5:
            other = rng.choice(others)
            own, rest = b"", other[rng.randrange(len(other) + 1) :]
        elif what == 6:
            own = rng.choice([b"\0", b"\n", b"\r", b'"', b"\xff", b"\xef\xbb\xbf", b"-", b"9" * 40])
        elif own:
            own, rest = bytes([rng.randrange(256)]), data[at + 1 :]
        data = before + own + rest
    return data


# Values that people and machines get wrong


class Raw(str):
    """Text that stands in the file as it is, without quotes."""


TEXTS = ["", " ", "é日本\U0001f69a", "x" * 201, "x" * 5000]
TEXTS += ["a\nb", "a\0b", "\x1b[31m", "\u2028", "\ufeff"]
NUMBERS = "0 -0 -0.0 -1 1 2 0.5 1e-12 5e-324 1e-9 1e-6 1e9 999999999.5 1e9999 1e400 -1e400".split()  # noqa: SIM905
NUMBERS += ["1e308", "1e18", "100000", "4294967296", "0.1" + "0" * 400]
NUMBERS += ["9" * 19, "9" * 400, "-" + "9" * 400, "9" * 5000]


def hostile_json(rng, depth=0):
    """Return a value that its place most likely does not expect."""
    what = rng.randrange(10)
    if what < 5:
        return Raw(rng.choice([*NUMBERS, "NaN", "Infinity", "-Infinity"]))
    if what < 7:
        return rng.choice(TEXTS)
    if what == 7 or depth > 3:
        return rng.choice([None, True, False, [], {}])
    if what == 8:
        return [hostile_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(TEXTS): hostile_json(rng, depth + 1) for _ in range(rng.randrange(3))}


def dump_json(data, rng, indents=(None, None, 1)):
    """Return JSON in which every `Raw` stands as it is."""
    raw = []

    def mark(value):
        if isinstance(value, Raw):
            raw.append(str(value))
            return f"@raw{len(raw) - 1}@"
        if isinstance(value, dict):
            return {key: mark(item) for key, item in value.items()}
        if isinstance(value, list):
            return [mark(item) for item in value]
        return value

    text = json.dumps(mark(data), indent=rng.choice(indents), ensure_ascii=rng.random() < 0.5)
    return re.sub(r'"@raw(\d+)@"', lambda match: raw[int(match[1])], text)


def places_in(data, place=()):
    if place:
        yield place
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places_in(value, (*place, key))


def mutate_tree(rng, data):
    """Return a JSON tree with one to four of its parts changed."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        places = list(places_in(data))
        if not places:
            return data
        *path, key = rng.choice(places)
        parent = reduce(operator.getitem, path, data)
        what = rng.randrange(10)
        if what < 5:
            parent[key] = hostile_json(rng)
        elif what == 5:
            del parent[key]
        elif what == 6:
            if isinstance(parent, list):
                copies = [copy.deepcopy(parent[key]) for _ in range(rng.choice([1, 1, 2, 60]))]
                parent[key:key] = copies
            else:
                parent[rng.choice([*TEXTS, key + "s"])] = hostile_json(rng)
        elif what == 7:
            other = rng.choice(places)
            with suppress(KeyError, IndexError, TypeError):
                parent[key] = copy.deepcopy(reduce(operator.getitem, other, data))
        elif what == 8 and isinstance(parent, list):
            rng.shuffle(parent)
        elif what == 9:
            number = parent[key]
            if isinstance(number, int | float) and not isinstance(number, bool):
                parent[key] = rng.choice([number * 1e9, -number, number + 1e-10, number * 1e-10])
    return data


def make_json(rng, tree):
    """Return JSON with parts, or bytes, of it changed."""
    if rng.random() < 0.3:
        text = json.dumps(tree, indent=rng.choice([None, 1])).encode()
        return mutate_bytes(rng, text, [text, json.dumps(FLOOR).encode()])
    return encode(rng, dump_json(mutate_tree(rng, tree), rng))


def encode(rng, text):
    encoded = text.encode("utf-8", "surrogatepass")
    return mutate_bytes(rng, encoded, [encoded]) if rng.random() < 0.1 else encoded


CHECKPOINTS = ("new.npz", "run.npz", "uniform.npz")


# Makers: of (rng, folder, samples), the valid files of the package's own formats by their names


def of_trees(*trees):
    """Return the maker of JSON with parts of one of these trees changed."""
    return lambda rng, folder, samples: make_json(rng, rng.choice(trees))


def of_tables(*samples):
    """Return the maker of CSV with parts of one of these tables changed."""
    return lambda rng, folder, _: make_table(rng, rng.choice(samples))


def make_layout(rng, folder, samples):
    if rng.random() < 0.2:
        return encode(rng, dump_json(tiny_floor(rng), rng))
    data = make_json(rng, rng.choice([FLOOR, RANDOM_FLOOR, PLAIN_FLOOR, CHARGED_FLOOR]))
    return data.replace(b'"x"', b'"y"', 1) if rng.random() < 0.03 else data


TIMES, REPAIRS = [0, 0.5, 1, 2.5, 1e9], [0, 0.5, 7, 1e9]


def tiny_floor(rng):
    """A floor of very short, very long and equal ways, where rounding decides about routes."""
    n = rng.randrange(3, 7)
    lengths = [0, 1e-13, 1e-10, 3e-10, 1e-9, 0.25, 0.5, 1, 1, 2, 1e6, 1e9]
    names = [f"s{k}" for k in range(n)]
    chosen = [rng.choice(lengths) for _ in range(rng.choice([1, 2, 2, 3]))]
    pairs = [(a, b) for a in names for b in names if a != b]
    edges = [
        {"a": a, "b": b, "length": rng.choice(chosen), "one_way": rng.random() < 0.3}
        for a, b in rng.sample(pairs, min(len(pairs), rng.randrange(n, 3 * n)))
    ]
    data = {"format": 1, "task_slots": rng.choice([1, 2, 30]), "edges": edges}
    data["truncate_distances"] = rng.random() < 0.3
    data["sites"] = [{"id": name, "x": rng.choice([0, 1, 1e9]), "y": 0} for name in names]
    data["vehicles"] = []
    for k in range(rng.randrange(1, 4)):
        times = [(rng.choice(TIMES), rng.choice(REPAIRS)) for _ in range(rng.randrange(3))]
        vehicle = {"id": f"v{k}", "start": rng.choice(names)}
        vehicle["speed"] = rng.choice([1, 1e-6, 0.3, 1e9])
        vehicle["breakdowns"] = [{"time": time, "repair_time": rest} for time, rest in times]
        if rng.random() < 0.3:
            uptime, repair = rng.choice([1, 1.5, 50, 1e9]), rng.choice([0, 0.25, 30, 1e9])
            model = {"mean_time_between_failures": uptime, "mean_time_to_repair": repair}
            vehicle["random_breakdowns"] = model
        data["vehicles"].append(vehicle)
    if rng.random() < 0.3:
        rates = {key: rng.choice([0, 1, 7, 10**9]) for key in ("idle", "empty", "loaded")}
        levels = sorted(rng.choice([0, 1, 50, 10**6, 10**12]) for _ in range(5))
        keys = ("critical", "resume", "good", "full", "capacity")
        data["battery"] = {**rates, "charge": rng.choice([1, 30, 10**9])}
        data["battery"] |= dict(zip(keys, levels, strict=True))
        data["chargers"] = [{"site": rng.choice(names)}]
    if rng.random() < 0.3:
        data["parking"] = {"after": rng.choice([0, 60]), "places": [{"site": rng.choice(names)}]}
    return data


def render_csv(rng, table):
    """Return a table in one of the dialects that spreadsheets write."""
    text = io.StringIO()
    delimiter = rng.choice([",", ",", ",", ";", ";", "\t", "|"])
    rows = table
    if delimiter == ";" and rng.random() < 0.7:
        rows = [table[0], *([field.replace(".", ",") for field in row] for row in table[1:])]
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONE])
    style = {"delimiter": delimiter, "quoting": quoting, "escapechar": "\\"}
    style["lineterminator"] = rng.choice(["\n", "\n", "\r\n", "\r", "\n\n", "\n\r"])
    writer = csv.writer(text, **style)
    # The writer refuses to leave a lone empty field unquoted.
    writer.writerows([] if row == [""] else row for row in rows)
    content = text.getvalue()
    if rng.random() < 0.2:
        content += rng.choice(["\n\n", "  \n", ",,,,,,\n", ";;;;;;\r\n", '"', '"x', "\0", "\x1a"])
    if rng.random() < 0.1:
        content = rng.choice(["\n", "\r\n", " ", "sep=;\n", "\ufeff"]) + content
    encodings = ["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-8-sig", "utf-16", "latin-1"]
    return content.encode(rng.choice(encodings), "replace")


def make_audit(rng, folder, samples):
    audit = samples["audit.jsonl"]
    if rng.random() < 0.3:
        return mutate_bytes(rng, audit, [audit, b'{"kind": "VehicleIdle"}'])
    lines = mutate_tree(rng, [json.loads(line) for line in audit.splitlines()])
    return encode(rng, "".join(dump_json(line, rng, [None]) + "\n" for line in lines))


def make_plant(rng, folder, samples):
    text = (DATA / "plant.xml").read_bytes()
    if rng.random() < 0.3:
        return mutate_bytes(rng, text, [text, b"<!DOCTYPE a><!ENTITY b 'c'>"])
    root = ElementTree.fromstring(text)
    names = sorted({name for item in root.iter() for name in item.attrib} | {"energyLevelGood"})
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        items = list(root.iter())
        item, other = rng.choice(items), rng.choice(items)
        what = rng.randrange(9)
        if what < 4:
            name = rng.choice([*(item.attrib or names), rng.choice(names)])
            texts = [*NUMBERS, *TEXTS, "NaN", "Infinity", "1,5", "true", "P1", "P2", "Truck-1"]
            item.set(name, rng.choice([*texts, *other.attrib.values()]))
        elif what == 4 and item.attrib:
            del item.attrib[rng.choice(list(item.attrib))]
        elif what == 5 and len(item):
            del item[rng.randrange(len(item))]
        elif what == 6 and item is not root:
            other.extend(copy.deepcopy(item) for _ in range(rng.choice([1, 1, 2, 60])))
        elif what == 7:
            tags = ["model", "point", "path", "vehicle", "link", "{urn:x}point", "x"]
            item.tag = rng.choice(tags)
        elif what == 8:
            item.text = rng.choice([*TEXTS, "x" * 200_000])
            item.attrib |= {f"a{k}": "" for k in range(rng.choice([1, 100, 300]))}
    head = rng.choice(["utf-8", "latin-1", "utf-16", "x"])
    text = f'<?xml version="1.0" encoding="{head}"?>\n' if rng.random() < 0.2 else ""
    return encode(rng, text + ElementTree.tostring(root, encoding="unicode"))


def make_table(rng, sample):
    table = read_table(sample)
    if rng.random() < 0.2:
        return mutate_bytes(rng, "\n".join(map(",".join, table)).encode(), [b'a,"b\n"";c'])
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        i = rng.randrange(len(table))
        j = rng.randrange(len(table[i]) or 1)
        what = rng.randrange(9)
        if what < 3 and table[i]:
            odd = ["nan", "inf", "1_000", "0x10", "1,5", "2 5", "1e3", "+1", '"', "'1", "１２", "B"]
            odd += MOMENTS
            table[rng.randrange(len(table))][j : j + 1] = [rng.choice([*NUMBERS, *TEXTS, *odd])]
        elif what == 3:
            order = list(range(len(table[0])))
            rng.shuffle(order)
            table = [[row[k] for k in order if k < len(row)] for row in table]
        elif what == 4:
            for row in table:
                del row[j : j + 1]
        elif what == 5:
            for row in table:
                row.append(row[j] if j < len(row) and rng.random() < 0.9 else "7")
        elif what == 6:
            table[i:i] = [list(table[i]) for _ in range(rng.choice([1, 1, 50]))]
        elif what == 7:
            table.insert(i, rng.choice([[], [""], ["", "", "", "", "", "", ""], ["#", "note"]]))
        else:
            del table[i][rng.randrange(len(table[i]) + 1) :]
    data = render_csv(rng, table or [[]])
    return mutate_bytes(rng, data, [data]) if rng.random() < 0.1 else data


def make_config(rng, folder, samples):
    lines = dict(OPTIONS)
    for key in rng.sample(list(lines), rng.randrange(len(lines))):
        del lines[key]
    keys = [*OPTIONS, *OPTIONS, "suite", "config", "resume", '"a b"', '"a\\nb"', "x.y"]
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        key = rng.choice(keys)
        if rng.random() < 0.1:
            key = rng.choice([*QUOTED, "", "=", "[table]", "p-f"])
        lines[key] = rng.choice(ODD_TOML)
    items = list(lines.items())
    rng.shuffle(items)
    if rng.random() < 0.05 and items:
        items.append(items[0])
    end = rng.choice(["\n", "\n", "\r\n"])
    text = end.join(f"{key} = {value}" for key, value in items) + end
    data = text.encode(rng.choice(["utf-8", "utf-8", "utf-8-sig"]))
    return mutate_bytes(rng, data, [data]) if rng.random() < 0.15 else data


QUOTED = [json.dumps(text) for text in TEXTS]
ODD_TOML = [
    *[*NUMBERS, "nan", "-inf", "inf", "0xFFFF", "0x" + "F" * 5000, "0b" + "1" * 400, "0o17", "1_0"],
    *["true", "false", "[]", "{}", "[1, 2]", "[[2]]", "[2.0]", "[4097]", "[" + "1," * 11 + "]"],
    *["1979-05-27T07:32:00Z", "07:32:00", "1979-05-27", '"""a\nb"""', "'''\n'''", "[", "=", ""],
    *["[" * 5000, "[" * 300 + "]" * 300, '"DMH-01"', '["DMH-01", "DMH-01"]', '"dmh-train"'],
    *[*QUOTED, *(f"[{text}]" for text in QUOTED), *OPTIONS.values()],
]


# Archives


LAYOUT = Layout.from_dict(FLOOR)


def sample_instance(name="week"):
    rows = [dict(zip(TABLE[0], row, strict=True)) for row in TABLE[1:]]
    return Instance.from_rows(name, LAYOUT, rows)


def sample_policy():
    theta = initial_parameters([count_features(*SIZES), 2, count_actions(SIZES[1])], 1)
    more = {"task_slots": SIZES[0], "n_vehicles": SIZES[1], "origin": Origin.of(sample_instance())}
    return Policy(
        theta, hidden=(2,), scaling=[7.5, 2.5, 10, 10, 15, 5, 0, 1, 10, 4, 1.5, 4], **more
    )


def sample_index():
    features = ["approach", "slack"]
    return IndexPolicy([-1.0, 0.5], features=features, origin=Origin.of(sample_instance()))


def make_samples(folder):
    """Return valid files: policies, dispatchers, and checkpoints before and after some generations."""
    files = ("policy.npz", "index.npz", *CHECKPOINTS, "live.npz", "rule.npz", "audit.jsonl")
    paths = {name: folder / name for name in files}
    sample_policy().save(paths["policy.npz"])
    sample_index().save(paths["index.npz"])
    instances = [sample_instance(), sample_instance(name="other")]
    others = ((0, {}), (2, {}), (1, {"sampler": "uniform", "antithetic": True}))
    for name, (generations, options) in zip(CHECKPOINTS, others, strict=True):
        config = Config(generations=3, population=4, hidden=(2,), **options)
        trainer = ACERL(instances, config, threads=1)
        for _ in range(generations):
            trainer.step()
        trainer.save(paths[name])
    live_day(sample_policy(), paths["live.npz"])
    live_day("EDD", paths["rule.npz"], paths["audit.jsonl"])
    samples = {name: path.read_bytes() for name, path in paths.items()}
    for path in paths.values():
        path.unlink()
    return samples


def live_day(policy, path, log=None):
    """Save a dispatcher in the middle of a day, whose log goes on to its end."""
    live = acerl_np.Dispatcher(LAYOUT, policy, audit=log, explain=log is not None)
    tasks = [("t0", "A", "B"), ("t1", "C", "D"), ("t2", "D", "A"), ("off", "B", "C")]
    for k, ends in enumerate(tasks):
        live.feed(acerl_np.TaskArrived(float(k), *ends, 20.0, demand=0.5 * (k % 2)))
    live.feed(acerl_np.TaskCancelled(3.0, "off"))
    live.feed(acerl_np.TaskArrived(3.5, "later", "A", "C", 60.0, earliest_start=40.0))
    live.decide(4.0)
    live.feed(acerl_np.VehicleBroke(5.0, "v1"))
    if isinstance(policy, str):  # a network is of a fleet of its size
        live.feed(acerl_np.VehicleAdded(6.0, "v2", "C", 1.0, 4.0))
    live.decide(7.0)
    live.feed(acerl_np.VehicleRepaired(9.0, "v1"))
    live.save(path)
    now = 10.0
    while live.waiting or live.planned or live.under_way:
        for task, vehicle in live.under_way.items():
            site = {"t0": "B", "t1": "D", "t2": "A"}.get(task, "C")
            live.feed(acerl_np.VehicleIdle(now, vehicle, site))
        now += 15.0
        live.decide(now)


KINDS_OF_NUMBERS = ["f2", "f4", "f8", "i1", "i8", "u4", "u8", "c8", "?", "U9", ">f4", "g", "S3"]
STRANGE = [
    *[np.array(x) for x in (0, -1, 1, 2**31, 2**62, -(2**63), 100_000_001, 4096)],
    *[np.array(x) for x in (np.nan, np.inf, -np.inf, 1e308, -0.0, 1e-320)],
    *[np.array(x) for x in (True, 1j, np.datetime64("2020-01-01"), np.timedelta64(1, "s"))],
    *[np.array(x) for x in ("", "policy", "checkpoint", "a\nb", ["1"] * 3, b"x" * 5000, "\x1b[2J")],
    *[np.zeros(x) for x in ((), (0,), (1,), (2,), (7, 0), (2, 2), (1,) * 20, (100_000,))],
    np.zeros(3, np.dtype([("a", "i4"), ("b", "f8")])),
]


def hostile_array(rng, array):
    """Return an array of another shape, type or content."""
    what = rng.randrange(12)
    if what == 0 and array.dtype.kind in "fiu":
        return array.astype(rng.choice(KINDS_OF_NUMBERS))
    if what < 7:
        return rng.choice(STRANGE)
    if what == 7:
        return np.concatenate([array.ravel(), array.ravel()])
    if what == 8:
        return array.ravel()[: rng.randrange(array.size + 1)]
    if what == 9:
        return array[None] if rng.random() < 0.5 else array.reshape(-1, 1)
    changed = array.copy()
    if changed.size and changed.dtype.kind in "fiu":
        flat = changed.reshape(-1)
        at = rng.randrange(flat.size)
        if changed.dtype.kind == "f":
            big = float(np.finfo(changed.dtype).max)
            flat[at] = rng.choice([np.nan, np.inf, -np.inf, big, -big, 0, -1, 1e-40])
        else:
            info = np.iinfo(changed.dtype)
            flat[at] = rng.choice([0, 1, 2, 3, info.min, info.max, min(info.max, 10**6)])
    return changed


def read_members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {member.filename: archive.read(member) for member in archive.infolist()}


def rezip(rng, members):
    buffer = io.BytesIO()
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def mutate_members(rng, data):
    """Return an archive whose own checksums hold, but whose arrays are not as NumPy writes them."""
    members = list(read_members(data).items())
    k = rng.randrange(len(members))
    name, content = members[k]
    what = rng.randrange(6)
    if what == 0:
        shapes = [b"(-1,)", b"(10**9,)", b"(99999999999,)", b"(2, -2)", b"(0, 4611686018427387904)"]
        shapes += [b"None", b"('a',)", b"(1.5,)", b"((1,),)", b"()" * 50, b"(" * 200]
        kinds = [b"<f4", b"<f8", b"|O", b"|V0", b"<U0", b"<U1000000000", b"|b1", b"oops"]
        head = b"{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
        head %= rng.choice(kinds), rng.choice(shapes)
        head += b" " * ((64 - (len(head) + 11) % 64) % 64) + b"\n"
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
        members[k] = (name, head + content[:9])
    elif what == 1:
        members[k] = (name, mutate_bytes(rng, content, [content]))
    elif what == 2:
        odd = [" ", "x", "../x.npy", "a/b.npy", ".npy", "a\0.npy", "é.npy", "THETA.npy"]
        members[k] = (rng.choice(odd), content)
    elif what == 3:
        members.insert(rng.randrange(len(members)), rng.choice(members))
    elif what == 4:
        del members[k]
    else:
        members.append(("zeros.npy", b"\x93NUMPY" + bytes(rng.choice([10, 10**6]))))
    return rezip(rng, members)


def seal(folder, arrays):
    """Return an archive with a checksum that holds."""
    path = folder / "sealed.npz"
    write_arrays(path, arrays)
    return path.read_bytes()


def mutate_arrays(rng, arrays):
    arrays = dict(arrays)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name = rng.choice(list(arrays))
        if rng.random() < 0.1:
            del arrays[name]
        elif rng.random() < 0.1:
            arrays[rng.choice([*arrays, "extra", "state.x", "state.", "é", "a" * 300])] = np.ones(2)
        else:
            arrays[name] = hostile_array(rng, np.asarray(arrays[name]))
        if not arrays:
            break
    return arrays


def read_sealed(folder, data):
    path = folder / "sealed.npz"
    path.write_bytes(data)
    return read_arrays(path, InputError)


def of_archives(parts, *names):
    """Return the maker of archives with bytes, members, arrays, or JSON in these arrays changed."""
    return lambda rng, folder, samples: make_archive(rng, folder, samples, parts, names)


def make_archive(rng, folder, samples, parts, names):
    sample, others = samples[rng.choice(names)], list(samples.values())
    what = rng.random()
    if what < 0.2:
        return mutate_bytes(rng, sample, others)
    if what < 0.35:
        return mutate_members(rng, sample)
    arrays = read_sealed(folder, sample)
    if what < 0.75:
        part = rng.choice(parts)
        data = json.loads(arrays[part].tobytes())
        # Within another tree the root itself can change.
        changes_root = rng.random() < 0.1
        data = mutate_tree(rng, {"data": data} if changes_root else data)
        data = data.get("data") if changes_root else data
        if part == "instances" and rng.random() < 0.7:
            refresh_hashes(rng, data)
        arrays[part] = pack(data, rng)
        if rng.random() < 0.03:
            arrays[part] = np.frombuffer(b"[" * rng.choice([10, 100_000]), np.uint8)
        if rng.random() < 0.8:
            return seal(folder, arrays)
    return seal(folder, mutate_arrays(rng, arrays))


def make_policy(rng, folder, samples):
    if rng.random() < 0.8:
        parts = ["origin.facts", "origin.history"]
        return make_archive(rng, folder, samples, parts, ["policy.npz"])
    arrays = read_sealed(folder, samples["policy.npz"])
    slots, fleet = rng.choice([1, 2, 3, 40]), rng.choice([1, 2, 3])
    hidden = [rng.choice([1, 2, 9]) for _ in range(rng.randrange(4))]
    sizes = [count_features(slots, fleet), *hidden, count_actions(fleet)]
    theta = initial_parameters(sizes, rng.randrange(2**63))
    theta *= np.float32(rng.choice([0.0, 1.0, 1e-30, 1e30, 1e38]))
    arrays |= {"theta": theta, "hidden": np.array(hidden, np.int64)}
    arrays |= {"task_slots": np.array(slots), "n_vehicles": np.array(fleet)}
    arrays["smallest"] = np.array([rng.choice([1, slots, 99]), rng.choice([1, fleet])])
    return seal(folder, arrays if rng.random() < 0.5 else mutate_arrays(rng, arrays))


def pack(data, rng):
    return np.frombuffer(dump_json(data, rng).encode("utf-8", "surrogatepass"), np.uint8)


def refresh_hashes(rng, data):
    """Make the content hashes fit what was changed, as far as it can be read."""
    with suppress(Exception):
        plain = json.loads(dump_json(data, rng))
        layouts = [Layout.from_dict(layout) for layout in plain["layouts"]]
        for k, item in enumerate(plain["instances"]):
            instance = Instance.from_rows("x", layouts[item["layout"]], item["tasks"])
            data["instances"][k]["hash"] = instance.content_hash


# Command lines


LINES = [*map(str.split, (VALID / "commands.txt").read_text().splitlines())]
ODD = """
    - -- -h -1 fly -0 0.5 nan inf -inf 1e400 1e-400 abc 1_0 0x10 １ é é.csv \udcff \udcff.csv \udcff.npz
    bad.bin empty folder missing /dev/null a/b/c week.csv/x DMH-01 dmh dmh-train LWT isr text json opentcs
    2,2 2,,2 2,x {k} .. 1,0 1e9,1e9 5 , --details --horizon --p-f --set alpha_u=1 cost=late --on -q help
"""
WORDS = sorted({word for line in LINES for word in line} | set(ODD.split()))
WORDS += ["", " ", "a\nb", "\x1b[31m", "x" * 300, "x" * 5000]
WORDS += ["9" * 30, "9" * 400, "9" * 5000, "-" + "9" * 30]


def make_words(rng, folder, samples):
    words = list(rng.choice(LINES))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at = rng.randrange(len(words) + 1)
        what = rng.randrange(6)
        if what < 3 and at < len(words):
            words[at] = rng.choice(WORDS)
        elif what == 3:
            words.insert(at, rng.choice(WORDS))
        elif what == 4 and at < len(words):
            del words[at]
        elif at < len(words):
            words.append(words[at])
    return pickle.dumps(tame(words))


PLAYED = (("trials", 2, "2"), ("threads", 2, "1"))
LIMITS = {
    **dict.fromkeys(("evaluate", "whatif"), PLAYED),
    "train": (*PLAYED, ("generations", 3, "1")),
    "records": (("count", 20, "2"), ("tasks", 2_000, "3")),
}
"""Options by command: at most so much, and what is asked for instead."""


def tame(words):
    """Return the words with options added where they would ask for hours of work."""
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            options = build_parser(command).parse_args(sort_words(words))
    except (SystemExit, ValueError):
        return words

    if command == "train":  # what is not given is no attribute
        names = "trials threads generations population resume hidden config out"
        own, given = dict.fromkeys(names.split()), getattr(options, "set", ())
        for name, _, text in (item.partition("=") for item in given):
            with suppress(ValueError):
                own[name] = max(map(float, text.split(",")))
        options = type(options)(**{**own, **vars(options)})

    more = []
    for name, most, few in LIMITS.get(command, ()):
        value = getattr(options, name, 0)
        with suppress(TypeError, ValueError):
            value = int(value)
        if isinstance(value, str):
            continue
        plays = command != "records" or getattr(options, "action", "") == "make"
        if plays and (value is None or most < value < 1e8):
            more += [f"--{name}", few]
    if command == "train":
        if options.resume is not None:
            own = ("--set", "population=4")
            more = [word for word in more or ["--generations", "3"] if word not in own]
        elif options.config is None and (options.hidden or 101) > 100:
            more += ["--set", "hidden=2"]
        if (options.population or 9) > 8 and options.resume is None:
            more += ["--set", "population=4"]
        if options.out is None:
            more += ["--out", "run"]
    if getattr(options, "effort", 0.0) >= 0.001:
        more += ["--effort", "0"]
    if "--" in words:
        return ["train", "--", *words] if more else words
    return words + more


# What every case must do


@contextmanager
def within(seconds):
    """Raise `Overdue` in the block once the time is over, where it is Python that runs."""

    def stop(number, frame):
        raise Overdue

    # Of the processor, as others may be at work beside; by the clock where nothing is done at all.
    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, stop) for number in timers}
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, WAITING)
        faulthandler.dump_traceback_later(WAITING + 3, exit=True)  # no signal reaches compiled code
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def require(condition, what):
    if not condition:
        raise Finding(what)


def reload(path, save, load):
    """What is read of a file that was saved beside another one."""
    again = path.with_stem("again")
    save(again)
    return load(again)


def require_same(first, again, what):
    require(first == again, f"{what} that changes when it is written and read")


def check_refusal(error):
    message = str(error)
    require(message, "an error without a message")
    require(len(message.splitlines()) == 1, f"an error of several lines: {message[:200]!r}")
    require(message.isprintable(), f"an error that is not printable: {message[:200]!r}")
    require(len(message) < 2000, f"an error of {len(message):,} characters: {message[:200]!r}")


def play(instance, **sizes):
    """Play an instance to its end by the first legal action, and look at every figure.

    Where vehicles break down at random it may have no end but a horizon, which comes early here.
    """
    random_breakdowns = instance.layout.has_random_breakdowns
    if random_breakdowns:
        sizes["horizon"] = MAX_DECISIONS // 4
    simulator = acerl_np.Simulator(instance, **sizes)
    for _ in range(MAX_DECISIONS):
        if simulator.done.all():
            break
        require(np.isfinite(simulator.observation).all(), "an observation that is not finite")
        mask = simulator.action_mask
        require(mask.any(), "a decision without a legal action")
        simulator.step(mask.argmax(axis=1))
    else:
        raise Finding(f"no end after {MAX_DECISIONS:,} decisions")
    if random_breakdowns and simulator.status[0] == "stopped":
        require(simulator.time[0] == sizes["horizon"], f"stopped at {simulator.time[0]}")
        require(np.isnan(simulator.makespan[0]), "a makespan without an end")
        return
    for name in ("makespan", "tardiness", "time"):
        value = getattr(simulator, name)
        require(np.isfinite(value).all() and (value >= 0).all(), f"{name} {value}")
    schedule = simulator.schedule(0)
    require(sorted(schedule.task) == sorted(instance.tasks), "tasks left at the end")
    require((schedule.finish >= schedule.start).all(), "a task that finishes before it starts")


def check_told(thing, what):
    """What tells itself in JSON is the same when it is made of that."""
    again = type(thing).from_dict(json.loads(json.dumps(thing.to_dict(), allow_nan=False)))
    require_same(again.to_dict(), thing.to_dict(), what)
    return again


def check_layout(path):
    layout = Layout.load(path)
    check_told(layout, "a layout")
    sites = [site.id for site in layout.sites]
    for k in range(min(len(sites), 4)):
        ends = sites[k], sites[k - 1]
        row = dict(zip(TABLE[0], [f"t{k}", *ends, k / 2, 20, 1.25, 0], strict=True))
        later = row | {"task": "later", "arrival_time": 10**6}
        with suppress(InputError):
            instance = Instance.from_rows("week", layout, [row, later])
            require(len(instance.content_hash) == 64, "no hash")
            play(instance)


def check_record(path):
    layout = LAYOUT
    instance = acerl_np.load_instance(path, layout=layout)
    for name in ("arrival", "expiry", "handling_time", "demand"):
        require(np.isfinite(getattr(instance, name)).all(), f"{name} is not finite")
    load = partial(acerl_np.load_instance, layout=layout)
    again = reload(path, partial(write_record, instance), load)
    require_same(again.content_hash, instance.content_hash, "a record")
    load = measure_load(instance)
    figures = [load.offered, load.loaded, load.span, load.fleet_time]
    require(not np.isnan(figures).any() and min(figures) >= 0.0, f"a load {load}")
    play(instance)


def check_import(path):
    """Import as the command does, and play what was made."""
    made = path.with_name("made.json")
    made.unlink(missing_ok=True)
    words = ["floor", "import", str(path), f"--out={made}", "--vehicles=2"]
    try:
        data, notes = read_floor(path)
        words.append(f"--start={data['sites'][0]['id']}")
        Layout.from_dict(data | {"vehicles": [{"id": "v", "start": data["sites"][0]["id"]}]})
    except InputError:
        status, _, err = run_main([*words, "--start=A"] if len(words) == 5 else words)
        require(status == 2, f"status {status} for a floor that the library refuses: {err[:200]!r}")
        require(len(err.splitlines()) == 1, f"an error of several lines: {err[:200]!r}")
        require(not made.exists(), "a layout although the import was refused")
        raise
    with suppress(InputError):
        read_floor(path, battery={"capacity": 100})
    for note in notes:
        require(note.isprintable() and len(note) < 2000, f"a warning {note[:200]!r}")
    status, _, err = run_main(words)
    require(status == 0, f"status {status} for a floor that the library imports: {err[:200]!r}")
    expected = len(notes) + bool(describe_parts(acerl_np.load_layout(made)))
    require(len(err.splitlines()) == expected, f"{expected} warnings shown as {err[:500]!r}")
    check_layout(made)
    if data["vehicles"]:
        with suppress(InputError):
            Layout.from_dict(data)


def check_breakdowns(path):
    layout = LAYOUT
    first = None
    for name in ("week.csv", "stamped.csv"):
        try:
            instance = acerl_np.load_instance(path.with_name(name), layout=layout, breakdowns=path)
        except InputError as error:
            check_refusal(error)
            if first is not None:
                raise first from None
            first = error
            continue
        load = measure_load(instance)
        require(load.fleet_time >= 0.0 and not math.isnan(load.offered), f"a load {load}")
        check_told(instance.layout, "a floor with breakdowns")
        play(instance)


def check_assignments(path, read=read_assignments, of=None):
    past = read(path, of or sample_instance())
    require(sorted(past.order.tolist()) == list(range(past.instance.n_tasks)), "not each task once")
    played = replay_assignments(past)
    require(np.isfinite([played.makespan, played.tardiness]).all(), f"figures {played}")
    require((played.finish > played.start).all(), "a task that finishes before it starts")
    require((played.start >= past.start - 1e-6).all(), "a task that starts before it did")
    write_schedule(path.with_name("schedule.csv"), played)


def check_references(path):
    references = load_references(path)
    again = reload(path, lambda own: save_references(own, references), load_references)
    rounded = []
    for item in references:
        tardiness = round(item.tardiness, 9)
        cost = tardiness if item.cost == item.tardiness else item.cost
        rounded.append(dataclasses.replace(item, tardiness=tardiness, cost=cost))
    require_same(again, rounded, "a file of references")


def check_audit(path):
    """It is read as a record, and recovered from, which goes on writing it."""
    warnings.simplefilter("ignore", acerl_np.LogWarning)  # a changed time may be far ahead
    refusals = []
    for read in (partial(check_assignments, read=read_audit, of=LAYOUT), recover):
        try:
            read(path)
        except InputError as error:
            check_refusal(error)
            refusals.append(error)
    for error in refusals:
        require(str(error).startswith(f"{path}: "), f"no file in {str(error)[:200]!r}")
        raise error


def recover(path):
    acerl_np.Dispatcher.recover(LAYOUT, "EDD", audit=path).close()


def check_dispatcher(path):
    warnings.simplefilter("ignore", acerl_np.PolicyWarning)  # a changed layout is another floor
    live = acerl_np.Dispatcher.load(path)
    other = reload(path, live.save, acerl_np.Dispatcher.load)
    seen = operator.attrgetter("waiting", "planned", "under_way", "sites", "out_of_service")
    require_same(seen(live), seen(other), "a dispatcher")
    known = {vehicle.id for vehicle in live.layout.vehicles}
    for now in (50.0, 6e5):
        given = live.decide(now)
        require(given == other.decide(now), "a loaded dispatcher that decides otherwise")
        require({item.vehicle for item in given} <= known, f"unknown vehicles in {given}")


def check_config(path):
    os.chdir(path.parent)
    try:
        options, settings = merge_options({"config": str(path)})
        config = fill_settings(options, settings)
    except InputError:
        status, _, err = run_main(["train", "--config", path.name])
        require(status == 2, f"status {status} for options that the library refuses: {err[:200]!r}")
        raise
    require_same(check_told(config, "a set of options"), config, "a set of options")


def check_policy(path):
    policy = Policy.load(path)
    loaded = reload(path, policy.save, acerl_np.load_policy)
    require_same(loaded.theta.tobytes(), policy.theta.tobytes(), "a network")
    require_same(loaded.origin, policy.origin, "an origin")
    rng = np.random.default_rng(0)
    n = 6
    observation = rng.standard_normal((n, policy.n_features)).astype(np.float32)
    observation *= np.float32(10.0) ** np.array([[0], [5], [15], [-20], [0], [0]], np.float32)
    observation[4] = 0.0
    observation[5] = np.where(rng.random(policy.n_features) < 0.5, 3e38, -3e38)
    mask = rng.random((n, policy.n_actions)) < 0.4
    mask[0] = False
    mask[1:, 0] |= ~mask[1:].any(axis=1)
    for generator in (None, rng):
        actions = policy.act(observation, mask, rng=generator)
        require(actions[0] == -1, "an action without a legal one")
        require(mask[np.arange(1, n), actions[1:]].all(), f"illegal actions {actions}")
    policy.check_fits(sample_instance())
    sizes = {"task_slots": policy.task_slots, "n_vehicles": policy.n_vehicles}
    play(sample_instance(), scaling=policy.scaling, **sizes)
    judge(policy)


def check_index(path):
    policy = acerl_np.load_policy(path)
    require(isinstance(policy, IndexPolicy), "an index policy that has become another policy")
    loaded = reload(path, policy.save, acerl_np.load_policy)
    shown = [(x.theta.tolist(), x.features, x.origin) for x in (loaded, policy)]
    require_same(*shown, "an index policy")
    judge(policy)


def judge(policy):
    """Play the sample by a policy of a file; a changed origin is another floor."""
    warnings.simplefilter("ignore", acerl_np.PolicyWarning)
    trials = acerl_np.evaluate_policy(policy, sample_instance(), trials=1, threads=1)
    require(np.isfinite(trials.makespan).all(), "a makespan that is not finite")


def has_finite_figures(record):
    """Whether a generation's figures are finite; without a finished member it has no means."""
    values = [value for value in dataclasses.asdict(record).values() if isinstance(value, float)]
    return all(math.isfinite(x) or (math.isnan(x) and record.failed) for x in values)


def check_checkpoint(path):
    trainer = ACERL.resume(path, threads=1)
    if trainer.config.population <= 64 and trainer.strategy.theta.size <= 10_000:
        before = trainer.generation
        record = trainer.step()
        require(trainer.generation == before + 1, "a step that is no generation")
        require(has_finite_figures(record), f"figures {record}")
        require(np.isfinite(trainer.strategy.theta).all(), "parameters that are not finite")
        for name, array in trainer.sampler.get_state().items():
            require(not np.isnan(array).any(), f"sampler.{name} is not a number")
    for item in trainer.history:
        require(has_finite_figures(item), f"history {item}")
    require(trainer.policy.theta.size, "no policy")
    trainer.write_history(path.with_name("history.csv"))
    with suppress(CheckpointError):  # a step beyond the last generation
        reload(path, trainer.save, partial(ACERL.resume, threads=1))


def run_main(words):
    """Return exit status, output and errors of a command, with streams as strict as real ones."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict", write_through=True)
    err = io.TextIOWrapper(
        io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True
    )
    with redirect_stdout(out), redirect_stderr(err):
        status = main(words)
    texts = [stream.buffer.getvalue().decode("utf-8", "surrogateescape") for stream in (out, err)]
    return status, *texts


COMPILING = ("acerl_np: compiling kernels", "acerl_np: compiled ")


def check_words(path):
    words = pickle.loads(path.read_bytes())
    os.chdir(path.parent)
    status, _, err = run_main(words)
    lines = [line for line in err.splitlines() if not line.startswith(COMPILING)]
    require("Traceback" not in err and "Warning" not in err, f"on standard error: {err[:500]!r}")
    if status == 0:
        return
    require(lines and all(map(str.isprintable, lines)), f"lines of an error: {err[:500]!r}")
    *causes, last = lines
    require("error: " in last, f"an error's line: {last[:500]!r}")
    if causes:  # of each of several files
        n_wrong = re.search(r": error: ([0-9]+) of [0-9]+ files cannot be read as they are$", last)
        require(
            words[1:2] == ["check"] and n_wrong and int(n_wrong[1]) == len(causes),
            f"{len(lines)} lines for an error: {err[:500]!r}",
        )
        names = tuple(f"{make_printable(show_path(word))}: " for word in words[2:])
        told = all(line.startswith(names) and not line.endswith(": ") for line in causes)
        require(told, f"a line without its file: {err[:500]!r}")
    if status == 1:
        is_told = "cannot write" in err or "File name too long" in err
        require(is_told, f"status 1 without a machine's failure: {err[:500]!r}")
    require(status in (1, 2), f"status {status}")
    raise InputError(last[:1000])


class Kind(NamedTuple):
    """How inputs of a kind are made, what must hold for them, how many a test has, and valid ones."""

    name: str
    make: object
    check: object
    cases: int
    valid: str

    @property
    def suffix(self):
        return self.valid.rpartition(".")[2] or "pickle"


RECORDS = of_tables("week", "week", "stamped", "exported", "since-1970")
WEEKS = "week.csv stamped.csv exported.csv since-1970.csv"
BROKEN = of_tables("broken", "stamped-broken")
LIF = of_trees(read_tree("hall.lif.json"), ORIGINS)
REFERENCES = of_trees(read_tree("fuzz/best.json"))
CHECKPOINT = of_archives(["settings", "settings", "instances"], *CHECKPOINTS)
SAVED = of_archives(["state"], "live.npz", "rule.npz")
MADE = [
    Kind("layout", make_layout, check_layout, 400, "floor.json"),
    Kind("record", RECORDS, check_record, 400, WEEKS),
    Kind("lif", LIF, check_import, 120, "hall.json origins.json"),
    Kind("plant", make_plant, check_import, 120, "plant.xml"),
    Kind("breakdowns", BROKEN, check_breakdowns, 300, "broken.csv stamped-broken.csv"),
    Kind("assignments", of_tables("past"), check_assignments, 300, "past.csv"),
    Kind("config", make_config, check_config, 120, "options.toml"),
    Kind("references", REFERENCES, check_references, 200, "best.json"),
    Kind("policy", make_policy, check_policy, 150, "policy.npz"),
    Kind("index", of_archives(["origin.facts"], "index.npz"), check_index, 100, "index.npz"),
    Kind("checkpoint", CHECKPOINT, check_checkpoint, 100, " ".join(CHECKPOINTS)),
    Kind("dispatcher", SAVED, check_dispatcher, 200, "live.npz rule.npz"),
    Kind("audit", make_audit, check_audit, 300, "audit.jsonl"),
    Kind("command", make_words, check_words, 100, ""),
]
KINDS = {kind.name: kind for kind in MADE}


class Result(NamedTuple):
    """What became of a case, and why."""

    outcome: str
    reason: str = ""
    trace: str = ""


def fill_folder(folder, samples):
    """Lay out the files that command lines name."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(VALID, folder)
    shutil.copy(DATA / "hall.lif.json", folder / "hall.json")
    shutil.copy(DATA / "plant.xml", folder / "plant.xml")
    shutil.copy(folder / "floor.json", folder / "layout.json")
    table = (folder / "week.csv").read_text()
    (folder / "other.csv").write_text(table.replace("2.5", "3"))
    (folder / "\udcff.csv").write_text(table)  # a name that is not UTF-8
    for name, data in samples.items():
        (folder / name).write_bytes(data)
    (folder / "\udcff.npz").write_bytes(samples["policy.npz"])
    (folder / "bad.bin").write_bytes(bytes(range(256)))
    (folder / "empty").touch()
    (folder / "folder").mkdir()


def make_input(kind, number, folder, samples):
    rng = random.Random(f"0/{kind.name}/{number}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.make(rng, folder, samples)


def run_case(kind, number, folder, samples):
    """Make one input, hand it in, and judge what happens."""
    inside = folder / "inside" / "case"
    if kind.name in ("command", "config") or not inside.is_dir():
        fill_folder(inside, samples)
    path = inside / f"input.{kind.suffix}"
    path.write_bytes(make_input(kind, number, folder, samples))
    here = Path.cwd()
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(), within(SECONDS):
            warnings.simplefilter("error")
            # A column that is renamed is not read.
            warnings.simplefilter("ignore", acerl_np.RecordWarning)
            # The kernels' uint32 arithmetic wraps on purpose; NumPy says so in plain Python.
            warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning)
            try:
                kind.check(path)
            except InputError as error:
                check_refusal(error)
                return Result("refused", str(error))
            return Result("accepted")
    except Overdue:
        seconds = time.perf_counter() - started
        return Result("finding", f"{seconds:.1f} s", traceback.format_exc())
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error)[:300]}"
        return Result("finding", reason, traceback.format_exc())
    finally:
        os.chdir(here)


@contextmanager
def limited_memory():
    """Give the block so much memory and no more."""
    import resource

    import scipy.sparse.csgraph  # noqa: F401  # its address space is not the cases'

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * mmap.PAGESIZE + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def check_samples(samples, folder):
    """Make sure that what is mutated is accepted as it is."""
    inside, here = folder / "inside" / "case", Path.cwd()
    fill_folder(inside, samples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", acerl_np.RecordWarning)
        for kind in KINDS.values():
            for name in kind.valid.split():
                kind.check(inside / name)
                os.chdir(here)
