"""Flip every byte of a policy, a static plan and a checkpoint, one at a time: refused, or the same content?

python tests/flip_bytes.py            # about a quarter of an hour; --step 50 for a sample

Bytes that hold no content of an archive (dates, permissions) may change without harm: the arrays that
are read are compared with the original ones. Anything else must be refused with one line.
"""

from __future__ import annotations

import argparse
import io
import struct
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import acerl_np
from acerl_np.support.errors import CheckpointError, InputError
from acerl_np.support.files import read_arrays


def regions(data: bytes) -> list[str]:
    """Which part of the archive every byte belongs to."""
    where = ["end record"] * len(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            start = member.header_offset
            name, extra = struct.unpack("<HH", data[start + 26 : start + 30])
            content = start + 30 + name + extra
            header = content + 10 + struct.unpack("<H", data[content + 8 : content + 10])[0]
            end = content + member.file_size
            where[start:content] = ["member headers"] * (content - start)
            where[content:header] = ["array headers"] * (header - content)
            where[header:end] = ["array data"] * (end - header)
        central = archive.start_dir
    last = data.rindex(b"PK\x05\x06")
    where[central:last] = ["directory"] * (last - central)
    return where


def flip_all(path: Path, step: int) -> Counter[tuple[str, str]]:
    """Read the file with each byte flipped; count (region, outcome)."""
    data = path.read_bytes()
    original = {name: (a.dtype, a.shape, a.tobytes()) for name, a in read(path).items()}
    outcomes: Counter[tuple[str, str]] = Counter()
    where = regions(data)
    for k in range(0, len(data), step):
        changed = bytearray(data)
        changed[k] ^= 1 << (k % 8)
        path.write_bytes(changed)
        try:
            arrays = read(path)
        except InputError as error:
            outcome = "refused" if "\n" not in str(error) else "MORE THAN A LINE"
        else:
            found = {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}
            outcome = "same content" if found == original else "OTHER CONTENT"
        outcomes[where[k], outcome] += 1
    path.write_bytes(data)
    return outcomes


def read(path: Path) -> dict:
    return read_arrays(path, CheckpointError)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=1, help="flip every n-th byte")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    config = acerl_np.Config(generations=3, population=4, hidden=(16,))
    trainer = acerl_np.ACERL(acerl_np.load_suite("dmh-train"), config, seed=0)
    trainer.run()
    trainer.save(folder / "run.npz")
    trainer.policy.save(folder / "policy.npz")
    plan = acerl_np.StaticPlan(("v1", "v0"), {"v0": "EDD", "v1": "STD"}, trainer.policy.origin)
    plan.save(folder / "plan.npz")
    failed = False
    for name in ("policy.npz", "plan.npz", "run.npz"):
        outcomes = flip_all(folder / name, options.step)
        print(f"{name}, {(folder / name).stat().st_size:,} bytes")
        for (region, outcome), count in sorted(outcomes.items()):
            print(f"  {region:15s} {outcome:13s} {count:,}")
            failed |= outcome.isupper()
    sys.exit(failed)


if __name__ == "__main__":
    main()
