"""Names and ranges of the options of a search, which need no compiler."""

from __future__ import annotations

from typing import Literal, get_args

from acerl_np.support.fields import MOST, Field
from acerl_np.support.trust import OwnField

Ranking = Literal["isr", "cf", "r", "f", "penalty"]
Shaping = Literal["standardised", "rank"]
Sampler = Literal["ais", "uniform", "random", "single"]
Advantage = Literal["paper", "released"]

MIN_NOISE_STD = 1e-9
"""Smallest single sigma: 1 / sigma stays a float32."""

FIELDS = {
    "ranking": OwnField(get_args(Ranking)),
    "shaping": Field(get_args(Shaping)),
    "cost_limit": Field(float, -MOST, expected="a number or infinity"),
    "p_f": Field(float, 0.0, 1.0),
    "penalty": Field(float, 0.0, MOST),
    "margin": Field(float, 0.0, MOST),
}
ADVANTAGE = Field(get_args(Advantage))
SAMPLER_FIELD = OwnField(get_args(Sampler), of="acerl_np.evolution.sampler:InstanceSampler")
