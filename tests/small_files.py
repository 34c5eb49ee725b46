"""A floor of three sites in a row with two vehicles, and records of two tasks, as files of their texts."""

import json

from tables_and_refusals import FLEET, HEADER
from worlds import straight_floor

FILES = {
    "layout.json": json.dumps({"name": "hall", **straight_floor(FLEET)}),
    "week.csv": f"{HEADER}\nt0,A,B,0,20\nt1,B,C,3,20\n",
    "next.csv": f"{HEADER}\nt0,A,C,0,20\nt1,C,B,3,20\n",
    "past.csv": "task,vehicle,start\nt0,v,0\nt1,w,3\n",
    "broken.csv": "vehicle,time,repair_time\nv,1,5\n",
    "best.json": '{"format": 1, "references": []}',
}
