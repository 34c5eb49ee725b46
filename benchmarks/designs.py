"""Constrained design problems of the literature, in plain Python.

Each is a function of a point that returns the cost and the constraints g <= 0. Equalities are kept to 1e-4.
The optimum is the best published, or where the bounds here differ the best that any search has found.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from math import cos, log, log10, pi, radians, sin, sqrt
from typing import Any, NamedTuple

import numpy as np

Evaluated = tuple[float, list[float]]


class Named(NamedTuple):
    """A problem: value and constraints g <= 0 of a point, of which the last `equalities` are h = 0.

    `near` is how far above the optimum counts as solved. Without a start searches begin at random points of
    the box; `judge` evaluates the final mean, where values mean nothing.
    """

    evaluate: Callable[[Any], Evaluated]
    optimum: float
    lower: Sequence[float] = ()
    upper: Sequence[float] = ()
    integers: tuple[int, ...] = ()
    near: float = 1e-5
    start: Sequence[float] = ()
    equalities: int = 0
    budget: int = 20_000
    population: int = 8
    judge: Callable[[Any], float] | None = None


def read_row(row: str) -> Named:
    """Return a problem of a table: optimum, start or box, value, equalities, inequalities.

    They are of the parameters a, b, ...; # stands before the box of one that is a whole number.
    """
    optimum, points, value, equal, *rest = (part.strip() for part in row.split("|"))
    code = compile(f"(({value}), [{', '.join(filter(None, [*rest, equal]))}])", row, "eval")
    m = len(ast.parse(f"[{equal}]", mode="eval").body.elts)  # type: ignore[attr-defined]

    def evaluate(x: Any) -> Evaluated:
        return eval(code, vars(math) | dict(zip("abcdefghijk", map(float, x), strict=False)))

    each = points.split(",")
    sides = [*zip(*(map(float, one.strip(" #").split(":")) for one in each), strict=True)]
    where = {"start": sides[0]} if len(sides) == 1 else {"lower": sides[0], "upper": sides[1]}
    whole = tuple(k for k, one in enumerate(each) if "#" in one)
    return Named(evaluate, float(optimum), integers=whole, equalities=m, **where)  # type: ignore[arg-type]


def read_table(text: str) -> dict[str, Named]:
    """Return the problems of a table by name; comments are dropped."""
    rows = re.split(r"\n(?=\w)", re.sub(r"\n *# .*", "", text).strip())
    return {name.strip(): read_row(rest) for name, _, rest in (row.partition("|") for row in rows)}


DESIGNS = read_table("""
spring | 0.0126652328 | 0.05:2, 0.25:1.3, 2:15 | (c + 2) * b * a**2
    # of tension and compression: Arora 1989
    | | 1 - b**3 * c / (71785 * a**4),
        (4 * b**2 - a * b) / (12566 * (b * a**3 - a**4)) + 1 / (5108 * a**2) - 1,
        1 - 140.45 * a / (b**2 * c), (a + b) / 1.5 - 1
three bars | 263.895843 | 0:1, 0:1 | 100 * (2 * sqrt(2) * a + b)
    # truss: Nowacki 1974
    | | 2 * (sqrt(2) * a + b) / (sqrt(2) * a**2 + 2 * a * b + 1e-300) - 2,
        2 * b / (sqrt(2) * a**2 + 2 * a * b + 1e-300) - 2, 2 / (sqrt(2) * b + a + 1e-300) - 2
cantilever | 1.3399563 | 0.01:100, 0.01:100, 0.01:100, 0.01:100, 0.01:100
    # hollow, of five blocks: Svanberg 1987
    | 0.0624 * (a + b + c + d + e) | | 61 / a**3 + 37 / b**3 + 19 / c**3 + 7 / d**3 + 1 / e**3 - 1
column | 26.4994968915 | 2:14, 0.2:0.8 | 9.8 * a * b + 2 * a
    # tubular: Rao 1996
    | | 2500 / (pi * a * b * 500) - 1,
        8 * 2500 * 250**2 / (pi**3 * 0.85e6 * a * b * (a**2 + b**2)) - 1
car side | 22.8429691991 | 0.5:1.5, 0.5:1.5, 0.5:1.5, 0.5:1.5, 0.5:1.5, 0.5:1.5, 0.5:1.5,
                           0.192:0.345, 0.192:0.345, -30:30, -30:30
    # side impact of a car: Gu et al. 2001
    | 1.98 + 4.9 * a + 6.67 * b + 6.98 * c + 4.01 * d + 1.78 * e + 2.73 * g | |
        0.16 - 0.3717 * b * d - 0.00931 * b * j - 0.484 * c * i + 0.01343 * f * j,
        -0.059 - 0.0159 * a * b - 0.188 * a * h - 0.019 * b * g + 0.0144 * c * e
            + 0.0008757 * e * j + 0.08045 * f * i + 0.00139 * h * k + 0.00001575 * j * k,
        0.74 - 0.61 * b - 0.163 * c * h + 0.001232 * c * j - 0.166 * g * i + 0.227 * b**2 - 0.32,
        -3.02 + 3.818 * c - 4.2 * a * b + 0.0207 * e * j + 6.63 * f * i - 7.77 * g * h
            + 0.32 * i * j,
        1.86 + 2.95 * c + 0.1792 * j - 5.057 * a * b - 11 * b * h - 0.0215 * e * j
            - 9.98 * g * h + 22 * h * i,
        14.36 - 9.9 * b - 12.9 * a * h + 0.1107 * c * j,
        0.72 - 0.5 * d - 0.19 * b * c - 0.0122 * d * j + 0.009325 * f * j + 0.000191 * k**2,
        0.68 - 0.674 * a * b - 1.95 * b * h + 0.02054 * c * j - 0.0198 * d * j + 0.028 * f * j,
        0.75 - 0.489 * c * g - 0.843 * e * f + 0.0432 * i * j - 0.0556 * i * k - 0.000786 * k**2
compressor | 2964895.4173 | 20:50, 1:10, 20:50, 0.1:60
    # gas transmission: Beightler and Phillips 1976
    | 8.61e5 * a**0.5 * b * c ** (-2 / 3) * d**-0.5 + 3.69e4 * c + 7.72e8 / a * b**0.219
        - 765.43e6 / a | | (d + 1) / b**2 - 1
synthesis of two | 2.0 | 0:1.6, #0:1 | 2 * a + b
    # processes, a yes or no: Kocis and Grossmann 1988
    | | 1.25 - a**2 - b, a + b - 1.6
flow sheet | 1.0765430833 | 0.2:1, -2.22554:-1, #0:1 | 5 * (a - 0.5) ** 2 + 0.8 - 0.7 * c
    # of a process: Floudas 1995
    | | -exp(a - 0.2) - b, b + 1.1 * c + 1, a - c - 0.2
process design | 26887.4221 | 27:45, 27:45, 27:45, #78:102, #33:45
    # Himmelblau's, with two whole numbers: Dua et al.
    | -5.357854 * a**2 - 0.835689 * d * c - 37.29329 * d + 40792.141 | |
        85.334407 + 0.0056858 * e * c + 0.0006262 * d * b - 0.0022053 * d * d * c - 92,
        80.51249 + 0.0071317 * e * c + 0.0029955 * d * b + 0.0021813 * a**2 - 110,
        9.300961 + 0.0047026 * d * b + 0.0012547 * d * a + 0.0019085 * a * b - 25
concrete beam | 358.922063691 | 0.2:15, #28:40, 5:10 | 29.4 * a + 0.6 * b * c
    # with steel of any area: Amir and Hasegawa 1989
    | | b / c - 4, 180 + 7.375 * a**2 / c - a * b
two bars | 1.50865241 | 0.2:4, 0.1:1.6 | a * sqrt(1 + b**2)
    # truss: Svanberg 1987
    | | 0.124 * sqrt(1 + b**2) * (8 / a + 1 / (a * b)) - 1,
        0.124 * sqrt(1 + b**2) * (8 / a - 1 / (a * b)) - 1
""")


def design(
    lower: Sequence[float], upper: Sequence[float], optimum: float, *whole: Any, name: str = ""
) -> Callable[[Any], Any]:
    """Enter a function among the designs, by its own name if it has no other one."""

    def enter(evaluate: Any) -> Any:
        own = name or evaluate.__name__.replace("_", " ")
        DESIGNS[own] = Named(evaluate, optimum, lower, upper, *whole)
        return evaluate

    return enter


@design([0.1] * 4, [2, 10, 10, 2], 1.7248523086)
def welded_beam(x: list[float]) -> Evaluated:
    """Ragsdell and Phillips 1976, in Deb's form."""
    h, length, t, b = x
    arm = 0.25 * (length**2 + (h + t) ** 2)
    first = 6000 / (sqrt(2) * h * length)
    moment = 6000 * (14 + length / 2)
    second = moment * sqrt(arm) / (sqrt(2) * h * length * (length**2 / 12 + (h + t) ** 2 / 4) * 2)
    shear = sqrt(first**2 + 2 * first * second * length / (2 * sqrt(arm)) + second**2)
    load = 4.013 * 30e6 * t * b**3 / 6 / 196 * (1 - t / 28 * sqrt(30e6 / 48e6))
    return 1.10471 * h**2 * length + 0.04811 * t * b * (14 + length), [
        shear / 13600 - 1,
        504000 / (b * t**2) / 30000 - 1,
        h - b,
        0.125 - h,
        65856000 / (30e6 * b * t**3) - 0.25,
        1 - load / 6000,
        0.10471 * h**2 + 0.04811 * t * b * (14 + length) - 5,
    ]


@design([0.0625, 0.0625, 10, 10], [6.1875, 6.1875, 200, 200], 5885.3327736)
def vessel(x: list[float]) -> Evaluated:
    """Pressure vessel: Sandgren 1990."""
    s, h, r, length = x
    cost = 0.6224 * s * r * length + 1.7781 * h * r**2 + 3.1661 * s**2 * length + 19.84 * s**2 * r
    volume = 1_296_000 - pi * r**2 * length - 4 / 3 * pi * r**3
    return cost, [0.0193 * r - s, 0.00954 * r - h, volume, length - 240]


@design([1, 1, 10, 10], [99, 99, 200, 200], 6059.714335, (0, 1))
def plated_vessel(x: list[float]) -> Evaluated:
    """Vessel of plates of whole sixteenths of an inch."""
    return vessel([x[0] / 16, x[1] / 16, *x[2:]])


@design([2.6, 0.7, 17, 7.3, 7.3, 2.9, 5], [3.6, 0.8, 28, 8.3, 8.3, 3.9, 5.5], 2994.471066)
def reducer(x: list[float]) -> Evaluated:
    """Speed reducer: Golinski 1973."""
    a, m, z, k, p, d, e = x
    cost = 0.7854 * a * m**2 * (3.3333 * z**2 + 14.9334 * z - 43.0934)
    cost += -1.508 * a * (d**2 + e**2) + 7.4777 * (d**3 + e**3) + 0.7854 * (k * d**2 + p * e**2)
    return cost, [
        27 / (a * m**2 * z) - 1,
        397.5 / (a * m**2 * z**2) - 1,
        1.93 * k**3 / (m * z * d**4) - 1,
        1.93 * p**3 / (m * z * e**4) - 1,
        sqrt((745 * k / (m * z)) ** 2 + 16.9e6) / (110 * d**3) - 1,
        sqrt((745 * p / (m * z)) ** 2 + 157.5e6) / (85 * e**3) - 1,
        m * z / 40 - 1,
        5 * m / a - 1,
        a / (12 * m) - 1,
        (1.5 * d + 1.9) / k - 1,
        (1.1 * e + 1.9) / p - 1,
    ]


@design([10, 10, 0.9, 0.9], [50, 80, 5, 5], 0.0130741188, name="I-beam")
def i_beam(x: list[float]) -> Evaluated:
    """I-beam of the least deflection: Gold and Krishnamurty 1997."""
    b, h, w, f = x
    inner = h - 2 * f
    inertia = w * inner**3 / 12 + b * f**3 / 6 + 2 * b * f * ((h - f) / 2) ** 2
    first = w * inner**3 + 2 * b * f * (4 * f**2 + 3 * h * inner)
    stress = 180_000 * h / first + 15_000 * b / (inner * w**3 + 2 * f * b**3)
    return 5000 / inertia, [2 * b * f + w * inner - 300, stress - 6]


@design([0] * 4, [100, 100, 100, 5], 6.8429580)
def bulkhead(x: list[float]) -> Evaluated:
    """Corrugated bulkhead of a tanker: Kvalie 1966."""
    w, d, length, t = x
    span = w + sqrt(abs(length**2 - d**2)) + 1e-300
    return 5.885 * t * (w + length) / span, [
        8.94 * span - t * d * (0.4 * w + length / 6),
        2.2 * (8.94 * span) ** (4 / 3) - t * d**2 * (0.2 * w + length / 12),
        0.0156 * w + 0.15 - t,
        0.0156 * length + 0.15 - t,
        1.05 - t,
        d - length,
    ]


@design([12] * 4, [60] * 4, 2.70085715e-12, (0, 1, 2, 3))
def gear_train(x: list[float]) -> Evaluated:
    """Four gears: Sandgren 1990."""
    return (1 / 6.931 - x[0] * x[1] / (x[2] * x[3])) ** 2, []


@design([0.05] * 4, [500, 500, 500, 120], 8.41269832)
def piston_lever(x: list[float]) -> Evaluated:
    """Piston component: Vanderplaats 1995."""
    h, b, d, s = x
    turn = radians(45)
    before = sqrt((s - b) ** 2 + h**2)
    after = sqrt((s * sin(turn) + h) ** 2 + (b - s * cos(turn)) ** 2)
    lever = abs(-s * (s * sin(turn) + h) + h * (b - s * cos(turn))) / (before + 1e-300)
    return 0.25 * pi * d**2 * (after - before), [
        2.4e6 * cos(turn) - lever * pi * 1500 * d**2 / 4,
        10_000 * (240 - s) - 1.8e6,
        1.2 * (after - before) - before,
        d / 2 - b,
    ]


@design([1] * 4, [16] * 4, 1625.44275908)
def thrust_bearing(x: list[float]) -> Evaluated:
    """Hydrostatic thrust bearing: Siddall 1982; viscosity in millionths."""
    r, inner, mu, q = x
    mu *= 1e-6
    power = (log10(log10(8.122e6 * mu + 0.8)) - 10.04) / -3.55
    warmer = 2 * (10**power - 560)
    friction = 9336 * q * 0.0307 * 0.5 * warmer
    film = (2 * pi * 750 / 60) ** 2 * 2 * pi * mu / friction * (r**4 - inner**4 or 1e-12) / 4
    ratio = log(r / inner) or 1e-12
    pressure = 6 * mu * q / (pi * film**3) * ratio
    load = pi * pressure / 2 * (r**2 - inner**2) / ratio
    return (q * pressure / 0.7 + friction) / 12, [
        101_000 - load,
        pressure - 1000,
        warmer - 50,
        0.001 - film,
        inner - r,
        0.0307 / (386.4 * pressure) * (q / (2 * pi * r * film)) - 0.001,
        load / (pi * (r**2 - inner**2) + 1e-300) - 5000,
    ]


BARS = np.array([(2, 4), (0, 2), (3, 5), (1, 3), (2, 3), (0, 1), (3, 4), (2, 5), (1, 2), (0, 3)])
NODES = np.array([(720, 360), (720, 0), (360, 360), (360, 0), (0, 360), (0, 0)], float)


@design([0.1] * 10, [35] * 10, 5060.85366032)
def ten_bars(x: list[float]) -> Evaluated:
    """Truss of ten bars under two loads: stresses and displacements."""
    along = NODES[BARS[:, 1]] - NODES[BARS[:, 0]]
    length = np.sqrt(np.square(along).sum(axis=1))
    unit, area = along / length[:, np.newaxis], np.array(x)
    stiff = np.zeros((12, 12))
    for bar, (i, j) in enumerate(BARS):
        at = [2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
        direction = np.concatenate((-unit[bar], unit[bar]))
        stiff[np.ix_(at, at)] += 1e7 * area[bar] / length[bar] * np.outer(direction, direction)
    load = np.zeros(8)
    load[[3, 7]] = -1e5
    move = np.zeros(12)
    move[:8] = np.linalg.solve(stiff[:8, :8], load)
    ends = move.reshape(6, 2)
    stress = 1e7 / length * ((ends[BARS[:, 1]] - ends[BARS[:, 0]]) * unit).sum(axis=1)
    limits = [*(np.abs(stress) / 25_000 - 1), *(np.abs(move[:8]) / 2 - 1)]
    return 0.1 * float(length @ area), limits


@design([1] * 5 + [30] * 5, [5] * 5 + [65] * 5, 63108.7479865)
def stepped_beam(x: list[float]) -> Evaluated:
    """Cantilever of five steps, widths and heights: Vanderplaats 1984."""
    b, h = np.array(x[:5]), np.array(x[5:])
    arms, shares = np.arange(500, 0, -100), np.array([61, 37, 19, 7, 1])
    bend = 50_000 * 100**3 / (3 * 2e7) * (shares * 12 / (b * h**3)).sum()
    return float(100 * b @ h), [
        *(6 * 50_000 * arms / (b * h**2) / 14_000 - 1),
        *(h / b - 20),
        bend - 2.7,
    ]


@design([60, 90, 2, 0, 2], [80, 110, 6, 100, 9], 0.31365661053, (0, 1, 2, 3, 4))
def clutch(x: list[float]) -> Evaluated:
    """Brake of several disks, all whole numbers: Osyczka 2002."""
    inner, outer, half, tens, disks = x
    t, force = half / 2, 10 * tens
    ring, cube = outer**2 - inner**2, outer**3 - inner**3
    pressure = force / (pi * ring)
    speed = 2 * pi * 250 * cube / (90 * ring) / 1000
    moment = 2 / 3 * 0.5 * force * disks * cube / ring / 1000
    time = 55 * pi * 250 / (30 * (moment + 3))
    return pi * ring * t * (disks + 1) * 7.8e-6, [
        20 - outer + inner,
        (disks + 1) * (t + 0.5) - 30,
        pressure - 1,
        pressure * speed - 10,
        speed - 10,
        time - 15,
        60 - moment,
    ]


@design([0.1] * 6, [20] * 4 + [3] * 2, 135.075962829)
def transformer(x: list[float]) -> Evaluated:
    """Small transformer: Bartholomew-Biggs 1976 (Hock and Schittkowski 93)."""
    a, b, c, d, e, f = x
    first, second = a * d * (a + b + c), b * c * (a + 1.57 * b + d)
    cost = first * (0.0204 + 0.0607 * e**2) + second * (0.0187 + 0.0437 * f**2)
    return cost, [
        2.07 - 0.001 * a * b * c * d * e * f,
        0.00062 * first * e**2 + 0.00058 * second * f**2 - 1,
    ]


@design([0.1] * 8, [10] * 8, 3.9511634396)
def reactor(x: list[float]) -> Evaluated:
    """Two reactors: Rijckaert 1973 (Hock and Schittkowski 104)."""
    a, b, c, d, e, f, g, h = x
    cost = 0.4 * (a / g) ** 0.67 + 0.4 * (b / h) ** 0.67 + 10 - a - b
    return cost, [
        0.0588 * e * g + 0.1 * a - 1,
        0.0588 * f * h + 0.1 * a + 0.1 * b - 1,
        4 * c / e + 2 / (c**0.71 * e) + 0.0588 * g / c**1.3 - 1,
        4 * d / f + 2 / (d**0.71 * f) + 0.0588 * h / d**1.3 - 1,
        cost - 4.2,
        1 - cost,
    ]
