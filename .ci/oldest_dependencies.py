"""Print the oldest declared version of every dependency as pip's constraints, one a line.

With --python the name of the oldest declared Python. Both are read from setup.cfg, so that they are
written down once.
"""

import configparser
import re
import sys
from pathlib import Path

BOUND = re.compile(r"([A-Za-z0-9._-]+) >= ([0-9.]+)")

setup = configparser.ConfigParser()
with (Path(__file__).parents[1] / "setup.cfg").open() as file:
    setup.read_file(file)
options = setup["options"]
if sys.argv[1:] == ["--python"]:
    print(f"python{options['python_requires'].removeprefix('>=').strip()}")
    sys.exit()
oldest: dict[str, str] = {}
for group in (options["install_requires"], *setup["options.extras_require"].values()):
    for line in group.split("\n"):
        if not line:
            continue
        bound = BOUND.fullmatch(line)
        if bound is None:
            sys.exit(f"setup.cfg: read {line!r}; expected NAME >= VERSION")
        name, version = bound.groups()
        if oldest.setdefault(name, version) != version:
            sys.exit(f"setup.cfg: {name} >= {oldest[name]} and >= {version}; expected one bound")
for name, version in oldest.items():
    print(f"{name} == {version}")
