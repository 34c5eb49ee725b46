"""The cache of machine code: kept across processes, and never stale."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import acerl_np
from acerl_np.kernels.update import Noise, find_stream
from acerl_np.support.compiled import inner_kernel, kernel
from acerl_np.support.machine_code import list_sources

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


ANNOUNCED = "acerl_np: compiling kernels, once on this machine (10 to 40 s) ...\n"

# Compiles in half a second, and calls kernels of another file.
SMALL = """
import numpy as np
from acerl_np.kernels.update import Noise, find_stream
key = np.empty(4, np.uint32)
find_stream(Noise(1, 2, 8, False), 3, key)
print(key.tobytes().hex())
"""


def run(package, program=PROGRAM, **variables):
    """Return what a fresh process says that imports this copy."""
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "XDG_CACHE_HOME": str(package.parent.parent / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | variables,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return done


def count_and_fill(package):
    """Return how many kernels `PROGRAM` loads, and what it prints of their numbers."""
    return run(package).stdout.split()


def replace(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def folders(package):
    return sorted((package.parent.parent / "cache" / "acerl_np").glob("kernels-*"))


def test_machine_code_is_kept_and_never_stale(package):
    hits, first = count_and_fill(package)
    assert hits == "0"
    assert count_and_fill(package) == ["1", first]

    # A kernel changes that the cached one only calls, in another file.
    random = package / "kernels" / "random.py"
    replace(random, "radius = np.sqrt(max(F(-2.0)", "radius = np.sqrt(max(F(-8.0)")
    hits, changed = count_and_fill(package)
    assert hits == "0"
    doubled = memoryview(bytes.fromhex(changed)).cast("f")
    assert doubled.tolist() == [2.0 * x for x in memoryview(bytes.fromhex(first)).cast("f")]
    assert count_and_fill(package) == ["1", changed]

    # Changed back, even with the same size and an older time, the first code is the right one again.
    replace(random, "radius = np.sqrt(max(F(-8.0)", "radius = np.sqrt(max(F(-2.0)")
    os.utime(random, (1.0, 1.0))
    assert count_and_fill(package) == ["1", first]


def test_a_stamp_covers_the_version_and_what_a_module_imports(package):
    program = (
        "from acerl_np.support.machine_code import source_stamp\n"
        "print(*(source_stamp(f'acerl_np.kernels.{name}') for name in ('update', 'vector')))"
    )

    def find_stamps():
        return run(package, program).stdout.split()

    first = find_stamps()
    assert find_stamps() == first
    replace(package / "kernels" / "random.py", "LANES = 512", "LANES = 256")
    update, vector = find_stamps()
    assert update != first[0] and vector == first[1]
    version = package / "support" / "version.py"
    replace(version, f'__version__ = "{acerl_np.__version__}"', '__version__ = "999.0"')
    assert not {update, vector} & set(find_stamps())


def test_imports_of_kernels_are_found():
    """As Python reads them; the stamps read the text of the files, which is quicker."""
    folder = Path(acerl_np.__file__).parent / "kernels"
    for path in folder.glob("*.py"):
        imported = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "acerl_np.kernels":
                imported |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module.startswith("acerl_np.kernels."):
                imported.add(node.module.removeprefix("acerl_np.kernels."))
        assert imported <= set(list_sources(f"acerl_np.kernels.{path.stem}"))


def test_literals_do_not_specialise_a_kernel():
    @inner_kernel
    def add(a, b):
        return a + b

    @kernel
    def add_some(a):
        return add(a, 1) + add(a, 2) + add(a, b=3)

    assert add_some(4) == 18
    assert add(4, 5) == 9  # from Python, too
    [signature] = add.called_signatures()
    assert "Literal" not in str(signature)


def test_machine_code_that_is_no_longer_used_is_dropped(package):
    cache = package.parent.parent / "cache" / "acerl_np"
    for name, days in (("kernels-old", 31), ("kernels-recent", 29), ("other-old", 31)):
        (cache / name).mkdir(parents=True)
        (cache / name / "code").write_text("x")
        os.utime(cache / name, (time.time() - 86400 * days,) * 2)
    run(package, SMALL)
    kept = {path.name for path in cache.iterdir()}
    assert "kernels-old" not in kept
    assert {"kernels-recent", "other-old"} < kept
    assert len(folders(package)) > 1


def test_compiling_is_announced_once_and_loading_is_not(package):
    threads = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:  # one specialisation each
    list(
        pool.map(
            lambda seed: find_stream(Noise(seed, 2, 8, False), 3, key),
            [np.int32(1), np.uint8(1)],
        )
    )
"""
    program = SMALL.replace("find_stream(Noise(1, 2, 8, False), 3, key)", threads)
    done = run(package, program)
    assert done.stderr == ANNOUNCED
    again = run(package, program)
    assert (again.stdout, again.stderr) == (done.stdout, "")
    quiet = "from acerl_np.support.machine_code import silence\nsilence()\n"
    assert run(package, quiet + SMALL).stderr == ""
    assert run(package, SMALL, NUMBA_DISABLE_JIT="1").stdout == done.stdout


def test_machine_code_that_no_folder_can_hold_is_announced(package):
    no_folder = "import acerl_np.support.machine_code as m\nm.cache_folder = lambda *_: None\n"
    done = run(package, no_folder + SMALL)
    assert "kernels, for this process alone, as no folder for them can be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert folders(package) == []


NOT_KEPT = "compiled kernels are not kept, each process compiles them anew"
CHANGED_NUMBA = {
    "del caching._CacheLocator": NOT_KEPT,
    "del caching.Cache.load_overload, caching._Cache.load_overload": NOT_KEPT,
    # A cache at another place would have another stamp.
    "numba.config.CACHE_LOCATOR_CLASSES = 'UserWideCacheLocator'": NOT_KEPT,
    "caching.FunctionCache.save_overload = None": NOT_KEPT,
    "del cpu._options_mixin._nrt": "kernels are compiled without _nrt and may run slower",
}


@pytest.mark.parametrize("change", list(CHANGED_NUMBA))
def test_private_parts_of_numba_may_change(package, change):
    program = f"import numba\nfrom numba.core import caching, cpu\n{change}\n{SMALL}"
    done = run(package, program)
    key = np.empty(4, np.uint32)
    find_stream(Noise(1, 2, 8, False), 3, key)
    assert done.stdout.strip() == key.tobytes().hex()
    assert done.stderr.count("Warning: ") == 1
    assert f"RuntimeWarning: acerl_np: {CHANGED_NUMBA[change]}" in done.stderr
    assert f"numba {numba.__version__}" in done.stderr


def test_damaged_machine_code_is_compiled_anew(package):
    first = run(package, SMALL).stdout
    for path in [path for folder in folders(package) for path in folder.iterdir()]:
        path.write_bytes(path.read_bytes()[:-100])
    done = run(package, SMALL)
    assert done.stdout == first
    assert done.stderr.count("Warning: ") == 1
    assert "kept machine code of kernels cannot be read, and is compiled anew" in done.stderr
    again = run(package, SMALL)
    assert (again.stdout, again.stderr) == (first, "")
