"""Named problems that evaluate `optimize`: equalities, failures, scales, whole numbers, noise.

They were chosen before the rules that they evaluate, and no setting is chosen on them. HS: Hock and
Schittkowski, "Test examples for nonlinear programming codes", 1981; g: CEC 2006 (Liang et al.); the batch
plant: Kocis and Grossmann 1988, in the numbers of CEC 2020. Optima are published ones, or by construction.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable
from math import nan, pi
from typing import Any

import numpy as np
from designs import DESIGNS, Evaluated, Named, read_table
from families import draw_hessian, rosenbrock

GIVEN = """
HS 7 | -1.7320508076 | 2, 2 | log(1 + a**2) - b
 | (1 + a**2)**2 + b**2 - 4
HS 26 | 0 | -2.6, 2, 2 | (a - b)**2 + (b - c)**4
 | (1 + b**2) * a + c**4 - 3
HS 27 | 0.04 | 2, 2, 2 | 0.01 * (a - 1)**2 + (b - a**2)**2
 | a + c**2 + 1
HS 39 | -1 | 2, 2, 2, 2 | -a
 | b - a**3 - c**2, a**2 - b - d**2
HS 40 | -0.25 | 0.8, 0.8, 0.8, 0.8 | -a * b * c * d
 | a**3 + b**2 - 1, a**2 * d - c, d**2 - b
HS 71 | 17.0140173 | 1:5, 1:5, 1:5, 1:5 | a * d * (a + b + c) + c
 | a**2 + b**2 + c**2 + d**2 - 40 | 25 - a * b * c * d
HS 77 | 0.24150513 | 2, 2, 2, 2, 2 | (a-1)**2 + (a-b)**2 + (c-1)**2 + (d-1)**4 + (e-1)**6
 | a**2 * d + sin(d - e) - 8**0.5, b + c**4 * d**2 - 8 - 2**0.5
HS 78 | -2.91970041 | -2, 1.5, 2, -1, -1 | a * b * c * d * e
 | a*a + b*b + c*c + d*d + e*e - 10, b * c - 5 * d * e, a**3 + b**3 + 1
HS 79 | 0.0787768209 | 2, 2, 2, 2, 2 | (a-1)**2 + (a-b)**2 + (b-c)**2 + (c-d)**4 + (d-e)**4
 | a + b**2 + c**3 - 2 - 18**0.5, b - c**2 + d + 2 - 8**0.5, a * e - 2
g06 | -6961.8138755802 | 13:100, 0:100 | (a - 10)**3 + (b - 20)**3
 | | 100 - (a - 5)**2 - (b - 5)**2, (a - 6)**2 + (b - 5)**2 - 82.81
g08 | -0.0958250415 | 1e-5:10, 1e-5:10 | -sin(2*pi*a)**3 * sin(2*pi*b) / (a**3 * (a + b))
 | | a**2 - b + 1, 1 - a + (b - 4)**2
g11 | 0.7499 | -1:1, -1:1 | a**2 + (b - 1)**2
 | b - a**2
g24 | -5.5080132716 | 0:3, 0:4 | -a - b
 | | b - 2 * a**2 * (a - 2)**2 - 2, b - 4 * a**4 + 32 * a**3 - 88 * a**2 + 96 * a - 36
g13 | 0.0539415140 | -2.3:2.3, -2.3:2.3, -3.2:3.2, -3.2:3.2, -3.2:3.2 | exp(a * b * c * d * e)
 | a*a + b*b + c*c + d*d + e*e - 10, b * c - 5 * d * e, a**3 + b**3 + 1
g21 | 193.72451007 | 0:1000, 0:40, 0:40, 100:300, 6.3:6.7, 5.9:6.4, 4.5:6.25 | a
 | 7500 * (e - f) - 300 * c - 25 * d * (e - f) + c * d,
        100 * b + 155.365 * d + 2500 * g - b * d - 25 * d * g - 15536.5,
        log(900 - d) - e, log(d + 300) - f, log(700 - 2 * d) - g | 35 * (b**0.6 + c**0.6) - a
g23 | -400.0551 | 0:300, 0:300, 0:100, 0:200, 0:100, 0:300, 0:100, 0:200, 0.01:0.03
 | -9 * e - 15 * h + 6 * a + 16 * b + 10 * (f + g)
 | a + b - c - d, 0.03 * a + 0.01 * b - i * (c + d), c + f - e, d + g - h
 | i * c + 0.02 * f - 0.025 * e, i * d + 0.02 * g - 0.015 * h
batch plant | 53638.94272 | #0.51:3.49, #0.51:3.49, #0.51:3.49, 250:2500, 250:2500, 250:2500,
               6:20, 4:16, 40:700, 10:450 | 250 * (a * d**0.6 + b * e**0.6 + c * f**0.6)
 | | 40000 * g / i + 20000 * h / j - 6000, 2 * i + 4 * j - d, 3 * i + 6 * j - e, 4 * i + 3 * j - f,
   8 - a * g, 20 - b * g, 8 - c * g, 16 - a * h, 4 - b * h, 4 - c * h
"""
NAMED = read_table(GIVEN)
NAMED |= {name: own._replace(near=1e-4) for name, own in NAMED.items() if name[0] == "g"}
NAMED["batch plant"] = NAMED["batch plant"]._replace(near=0.5, budget=12_000)


def named(name: str, optimum: float, near: float, n: int = 0, **rest: Any) -> Callable[[Any], Any]:
    """Enter a function among the problems; of n parameters in a box from -5 to 5, if n is given."""

    def enter(evaluate: Any) -> Any:
        box = {"lower": [-5] * n, "upper": [5] * n} if n else {}
        NAMED[name] = Named(evaluate, optimum, near=near, **box | rest)
        return evaluate

    return enter


for own in ("spring", "vessel", "bulkhead"):
    given = DESIGNS[own]
    near = 1e-6 * given.optimum
    named(own, given.optimum, near, lower=given.lower, upper=given.upper)(given.evaluate)
ENERGIES = (-6.089, -17.164, -34.054, -5.914, -24.721, -14.986, -24.1, -10.708, -26.662, -22.179)


@named("g14", -47.7648884595, 1e-4, lower=[1e-6] * 10, upper=[10] * 10, equalities=3)
def g14(x: Any) -> Evaluated:
    h = [x[[0, 1, 1, 2, 2, 5, 9]].sum() - 2, x[[3, 4, 4, 5, 6]].sum() - 1]
    f = float(x @ (ENERGIES + np.log(np.maximum(x, 1e-300) / x.sum())))
    return f, [*h, x[[2, 6, 7, 8, 8, 9]].sum() - 1]


# Whole numbers

BOX = {"lower": [0] * 8, "upper": [10] * 8, "equalities": 1, "budget": 10_000}


@named("sum of eight whole numbers", 0.0, 1e-4, **BOX, integers=tuple(range(8)))
@named("sum of eight, four whole", 0.0, 1e-4, **BOX, integers=(0, 1, 2, 3))
def share(x: Any) -> Evaluated:
    return float(np.arange(1, 9) @ np.square(x - 3)), [float(x.sum()) - 24]


BITS = {
    name: {"lower": [0] * n, "upper": [1] * n, "integers": tuple(range(n))}
    for name, n in (("leading", 20), ("cut", 14))
}
EDGES = np.triu(np.random.default_rng(0).integers(0, 10, (14, 14)), 1)


def cut(x: Any) -> Any:
    return ((x @ EDGES) * (1 - x) + ((1 - x) @ EDGES) * x).sum(axis=-1)


MOST = float(cut(np.array([*itertools.product((0, 1), repeat=14)])).max())
named("cut of 14 nodes", -MOST, 0.0, **BITS["cut"])(lambda x: (-float(cut(x)), []))
named("leading ones 20", -20.0, 0.0, **BITS["leading"])(lambda x: (-float(np.cumprod(x).sum()), []))


@named("tour of nine", 18 * math.sin(pi / 9), 1e-9, lower=[0] * 9, upper=[1] * 9)
def tour(x: Any) -> Evaluated:
    """The order of nine numbers is the order of nine points on a circle."""
    turn = 2 * pi / 9 * np.argsort(x)
    return float(np.abs(np.diff(np.exp(1j * np.append(turn, turn[0])))).sum()), []


# Evaluations that fail, and what is returned for them


def enter_failing(mark: float) -> None:
    @named(f"root, {mark:g} outside", 109.0, 1e-3, start=[-5, 3, 3], budget=3_000)
    def root(x: Any) -> Evaluated:
        f = mark if x[0] < 1 else 109 + math.sqrt(x[0] - 1) + float(np.square(x[1:]).sum())
        return f, [1 - x[0]]

    # The optimum is where i (1 - 1 / x_i) is the same for all i, and the sum is 4.
    @named(f"logarithms, {mark:g} outside", 109.26742753, 1e-5, start=[-3] * 5, budget=5_000)
    def logarithms(x: Any) -> Evaluated:
        g = [*(1e-3 - x), float(x.sum()) - 4]
        return mark if max(g) > 0 else 109 + float(np.arange(1, 6) @ (x - 1 - np.log(x))), g


enter_failing(nan)
enter_failing(0.0)
HILL = draw_hessian(np.random.default_rng(1), 8, 1e3)


@named("one in five fails", 0.0, 1e-8, 8, budget=12_000)
def crash(x: Any) -> Evaluated:
    return (nan if int(abs(x[0]) * 1e9) % 5 == 0 else float(x @ HILL @ x)), []


# Scales, sizes, noise


def enter_scaled(scale: float) -> None:
    @named(f"ellipsoid times {scale:g}", 0.0, 1e-6 * scale, 5, budget=6_000)
    def ellipsoid(x: Any) -> Evaluated:
        return scale * float(1e3 ** np.linspace(0, 1, 5) @ np.square(x)), []

    @named(f"corner times {scale:g}", 0.5 * scale, 1e-6 * scale, 5, budget=6_000)
    def corner(x: Any) -> Evaluated:
        return scale * float(x @ x), [scale * (1 - x[0] - x[1])]


for scale in (1e-12, 1e-30, 1e30):
    enter_scaled(scale)
named("Rosenbrock 10", 0.0, 1e-8, 10)(lambda x: (rosenbrock(x), []))
named("sphere 500", 0.0, 1e-6, 500, budget=100_000)(lambda x: (float(x @ x), []))
named("one parameter", 0.0, 1e-12, start=[3], budget=1_000)(lambda x: ((x[0] ** 2 - 2) ** 2, []))
NOISY = {"budget": 10_000, "population": 100}


@named("noisy sphere 10", 0.0, 0.1, 10, **NOISY, judge=lambda x: float(x @ x))
def noisy(x: Any) -> Evaluated:
    return float(x @ x + np.random.default_rng(zlib.crc32(x.tobytes())).normal()), []


@named("constant", 0.0, 1e-9, start=[1] * 3, budget=200, judge=lambda x: float(np.ptp([*x, 1])))
def constant(x: Any) -> Evaluated:
    return 1.0, []
