"""Flip every byte of two policies and a checkpoint, one at a time: refused, or the same content?

python tests/flip_bytes.py            # about a quarter of an hour; --step 50 for a sample

Bytes that hold no content of an archive (dates, permissions) may change without harm: the arrays that
are read are compared with the original ones. Anything else must be refused with one line.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import acerl_np
from acerl_np.support.errors import CheckpointError, InputError
from acerl_np.support.files import read_arrays


def read(path):
    arrays = read_arrays(path, CheckpointError)
    return {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()}


def flip_all(path, step):
    """Read the file with each byte flipped; count the outcomes."""
    data, original = path.read_bytes(), read(path)
    outcomes = Counter()
    for k in range(0, len(data), step):
        changed = bytearray(data)
        changed[k] ^= 1 << (k % 8)
        path.write_bytes(changed)
        try:
            outcome = "same content" if read(path) == original else "OTHER CONTENT"
        except InputError as error:
            outcome = "refused" if "\n" not in str(error) else "MORE THAN A LINE"
        outcomes[outcome] += 1
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=1, help="flip every n-th byte")
    step = parser.parse_args().step
    folder = Path(tempfile.mkdtemp())
    config = acerl_np.Config(generations=3, population=4, hidden=(16,))
    trainer = acerl_np.ACERL(acerl_np.load_suite("dmh-train"), config, seed=0)
    trainer.run()
    trainer.save(folder / "run.npz")
    trainer.policy.save(folder / "policy.npz")
    acerl_np.IndexPolicy([-1.0], features=["slack"], origin=trainer.policy.origin).save(
        folder / "index.npz"
    )
    failed = False
    for name in ("policy.npz", "index.npz", "run.npz"):
        outcomes = flip_all(folder / name, step)
        print(f"{name}, {outcomes.total():,} bytes:", dict(outcomes))
        failed |= any(outcome.isupper() for outcome in outcomes)
    sys.exit(failed)


if __name__ == "__main__":
    main()
