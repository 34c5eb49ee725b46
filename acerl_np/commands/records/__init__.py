"""`acerl-np records`: convert, check and make task records.

Convert, check and make task records.

Examples
--------
  acerl-np records convert export.csv --layout floor.json --out week1.csv
  acerl-np records check week1.csv --layout floor.json
  acerl-np records make --layout floor.json --tasks 200 --rate 80 --out made
"""

from __future__ import annotations

from acerl_np.commands.records import check, convert, make

ACTIONS = {"convert": convert.ACTION, "check": check.ACTION, "make": make.ACTION}
