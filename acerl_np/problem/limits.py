"""Sizes and numbers that layouts and records may hold."""

from __future__ import annotations

MAX_SITES = 5_000
"""Tables hold all pairs: routes of 5,000 sites take 4.4 s and 1.1 GiB, of 20,000 they would take 18 GiB."""

MAX_EDGES = 100_000
MAX_ALIASES = 20_000
MAX_VEHICLES = 1_000
MAX_TASK_SLOTS = 10_000
MAX_BREAKDOWNS = 10_000
"""Listed breakdowns of one vehicle."""

MAX_CLOSURES = 1_000
"""Of edges of one floor."""

MAX_TASKS = 100_000
MAX_NUMBER = 1e9
"""Largest coordinate, length, time, speed or load that is accepted."""

LIFT_LENGTH = 10.0
"""Metres of an edge between two levels for which no length is known."""

MAX_SERVERS = 1_000
"""Of one machine."""

MAX_LEVEL, MAX_RATE, MAX_TOW = 10**12, 10**9, 10**7
"""Largest level and rate of a battery, in its units, and longest wait of a vehicle, s."""

MAX_HORIZON = 1e15
"""Latest horizon of any episode, s."""

MAX_TABLE_BYTES = 4 * 2**30
"""Largest sum of the tables of one batch of instances."""

MAX_HEADWAY = 3_600
MAX_RESERVE = 10.0
"""s."""

MIN_SPEED = 1e-6
"""m/s."""

MAX_NAME = 200
"""Characters of a name, of a site's kind."""

MAX_COLUMNS = 1_000
"""Columns of a table, those that are passed over among them."""
