"""The cache of machine code: kept across processes, and never stale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

import acerl_np

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="without the compiler there is no machine code"
)

# A kernel that calls kernels of another file, which call others in turn.
PROGRAM = """
import numpy as np
from acerl_np.kernels.update import fill_stream
out = np.empty(3, np.float32)
fill_stream(1, 2, 3, 4, out)
hits = sum(fill_stream.stats.cache_hits.values())
print(hits, out.tobytes().hex())
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package whose sources a test may change."""
    source = Path(acerl_np.__file__).parent
    shutil.copytree(
        source, tmp_path / "src" / "acerl_np", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path / "src" / "acerl_np"


def run(package, program=PROGRAM):
    """Return the words that a fresh process prints that imports this copy."""
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "XDG_CACHE_HOME": str(package.parent.parent / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def replace(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def folders(package):
    return sorted((package.parent.parent / "cache" / "acerl_np").glob("kernels-*"))


def test_machine_code_is_kept_and_never_stale(package):
    hits, first = run(package)
    assert hits == "0"
    assert run(package) == ["1", first]

    # A kernel changes that the cached one only calls, in another file.
    random = package / "kernels" / "random.py"
    replace(random, "radius = np.sqrt(max(F(-2.0)", "radius = np.sqrt(max(F(-8.0)")
    hits, changed = run(package)
    assert hits == "0"
    doubled = memoryview(bytes.fromhex(changed)).cast("f")
    assert doubled.tolist() == [2.0 * x for x in memoryview(bytes.fromhex(first)).cast("f")]
    assert run(package) == ["1", changed]

    # Changed back, even with the same size and an older time, the first code is the right one again.
    replace(random, "radius = np.sqrt(max(F(-8.0)", "radius = np.sqrt(max(F(-2.0)")
    os.utime(random, (1.0, 1.0))
    assert run(package) == ["1", first]
    assert len(folders(package)) == 2


def test_another_version_of_the_package_has_its_own_machine_code(package):
    stamp = "from acerl_np.support.compiled import source_stamp; print(source_stamp())"
    first = run(package, stamp)
    assert run(package, stamp) == first
    init = package / "__init__.py"
    replace(init, f'__version__ = "{acerl_np.__version__}"', '__version__ = "999.0"')
    assert run(package, stamp) != first


def test_machine_code_that_is_no_longer_used_is_dropped(package):
    cache = package.parent.parent / "cache" / "acerl_np"
    for name, days in (("kernels-old", 31), ("kernels-recent", 29), ("other-old", 31)):
        (cache / name).mkdir(parents=True)
        (cache / name / "code").write_text("x")
        os.utime(cache / name, (time.time() - 86400 * days,) * 2)
    run(package, "from acerl_np.support.compiled import mark_compiled; mark_compiled()")
    kept = {path.name for path in cache.iterdir()}
    assert "kernels-old" not in kept
    assert {"kernels-recent", "other-old"} < kept
    assert len(kept) == 3
