"""The cache of machine code: kept across processes, and never stale."""

import ast
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaWarning

import acerl_np
from acerl_np.kernels.learning.update import Noise, find_stream
from acerl_np.support import compiled, machine_code
from acerl_np.support.compiled import inner_kernel, kernel
from acerl_np.support.machine_code import SETTINGS, list_sources, source_stamp

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="without the compiler there is no machine code"
)


@pytest.fixture
def package(tmp_path):
    """A copy of the package whose sources a test may change."""
    copied, ignored = tmp_path / "src" / "acerl_np", shutil.ignore_patterns("__pycache__")
    return shutil.copytree(Path(acerl_np.__file__).parent, copied, ignore=ignored)


ALONE = "for this process alone, as no folder for them can be written"
ANNOUNCED = (
    "acerl_np: compiling kernels that this needs (5 to 40 s, kept for later runs; acerl-np warm compiles "
    "all) ...\n"
)
HEARD = """
import logging
from acerl_np.support.log import show_log
heard = show_log(logging.INFO)
heard.__enter__()
"""
"""What commands do: without it the library says nothing."""

# Compiles in half a second, and calls kernels of another file.
SMALL = """
import numpy as np
from acerl_np.kernels.learning.update import Noise, find_stream
key = np.empty(4, np.uint32)
find_stream(Noise(1, 2, 8, False), 3, key)
print(key.tobytes().hex())
"""


def find_key(kind=np.uint32):
    """What `SMALL` prints."""
    key = np.empty(4, kind)
    find_stream(Noise(1, 2, 8, False), 3, key)
    return key.tobytes().hex()


def run(package, program, words=(), start=(), **variables):
    """Return what a fresh process says that imports this copy; a variable of None is unset."""
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "XDG_CACHE_HOME": str(package.parent.parent / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [*start, sys.executable, "-c", program, *words]
    environment = {name: x for name, x in (environment | variables).items() if x is not None}
    how = {"env": environment, "capture_output": True, "text": True, "cwd": "/"}
    done = subprocess.run(command, **how)
    assert done.returncode == 0, done.stderr
    return done


def replace(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def folders(package):
    return sorted((package.parent.parent / "cache" / "acerl_np").glob("kernels-*"))


def test_a_stamp_covers_the_version_and_what_a_module_imports(package):
    names = "(f'acerl_np.kernels.{name}' for name in ('learning.update', 'core.vector'))"
    program = "from acerl_np.support.machine_code import source_stamp\n"
    program += f"print(*map(source_stamp, {names}))"
    first = run(package, program).stdout.split()
    replace(package / "kernels" / "core" / "random.py", "LANES = 512", "LANES = 256")
    update, vector = run(package, program).stdout.split()
    assert update != first[0] and vector == first[1]
    version = package / "support" / "version.py"
    replace(version, f'__version__ = "{acerl_np.__version__}"', '__version__ = "999.0"')
    assert not {update, vector} & set(run(package, program).stdout.split())


ROOMS = {
    "top.py": "import acerl_np.kernels.near.middle as m\n@kernel\ndef top(x):\n    return m.add(x)\n",
    "near/__init__.py": "",
    "near/middle.py": """
if 1: from ..far.room import (  # one (of two)
    leaf as c,
)
@kernel
def add(x):
    return c.one(x) + c.two(x)
""",
    "far/__init__.py": "",
    "far/room/__init__.py": "from .other import two\n",
    "far/room/other.py": "@kernel\ndef two(x):\n    return x\n",
    "far/room/leaf.py": """
from acerl_np.kernels.far.room import two
@kernel
def one(x):
    return x + 1
""",
}


def test_machine_code_is_kept_and_a_kernel_two_rooms_away_is_never_stale(package):
    for name, text in ROOMS.items():
        (package / "kernels" / name).parent.mkdir(parents=True, exist_ok=True)
        start = "from acerl_np.support.compiled import kernel\n" if "kernel" in text else ""
        (package / "kernels" / name).write_text(start + text)
    program = "from acerl_np.kernels.top import top\nprint(top(3), *top.stats.cache_hits.values())"
    done = run(package, HEARD + program)
    assert (done.stdout, done.stderr) == ("7\n", ANNOUNCED)
    leaf = package / "kernels" / "far" / "room" / "leaf.py"
    replace(leaf, "x + 1", "x + 2")
    assert run(package, program).stdout == "8\n"
    # Changed back, even with the same size and an older time, the first code is the right one again.
    replace(leaf, "x + 2", "x + 1")
    os.utime(leaf, (1.0, 1.0))
    assert run(package, program).stdout == "7 1\n"
    replace(package / "kernels" / "far" / "room" / "other.py", "return x", "return -x")
    assert run(package, program).stdout == "1\n"


def test_imports_of_kernels_are_found():
    """As Python reads them; the stamps mostly read their lines alone, which is quicker."""
    folder = Path(acerl_np.__file__).parent / "kernels"
    for path in folder.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        found = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        own = ".".join(path.relative_to(folder.parents[1]).with_suffix("").parts)
        assert {x for x in found if x.startswith("acerl_np.kernels.")} <= set(list_sources(own))
    beside = set(list_sources("studies.rivals.losses"))
    assert {"studies.rivals.losses", "acerl_np.kernels.core.vector"} <= beside


@pytest.mark.parametrize("name", SETTINGS)
def test_a_stamp_knows_numbas_settings(name, monkeypatch):
    before = source_stamp.__wrapped__("")
    monkeypatch.setattr(numba.config, name, "another")
    assert source_stamp.__wrapped__("") != before


@ctypes.CFUNCTYPE(ctypes.c_double)
def answer():
    return 42.0


def test_what_numba_cannot_keep_is_told_with_its_line():
    @kernel
    def ask():
        return answer()

    with pytest.warns(NumbaWarning, match='Cannot cache compiled function "ask"') as told:
        assert ask() == 42.0
    assert [Path(warning.filename).name for warning in told] == [Path(__file__).name]


# Both read the index before the other writes it; the last index is of one, the last code of the other.
TWO = """
import sys, time, pathlib
import numpy as np
from numba.core.caching import IndexDataCacheFile
from acerl_np.kernels.learning.update import Noise, find_stream
folder, first = pathlib.Path(sys.argv[1]), sys.argv[2] == "1"

def in_turn(name, steps):
    save = getattr(IndexDataCacheFile, name)
    def save_in_turn(file, *given):
        for does, what in steps if file._index_name.startswith("update.find_stream") else [(1, save)]:
            if what is save:
                save(file, *given)
            elif does:
                (folder / what).touch()
            else:
                deadline = time.monotonic() + 60
                while not (folder / what).exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
    steps[:] = [(does, save if what == "save" else what) for does, what in steps]
    setattr(IndexDataCacheFile, name, save_in_turn)

if first:
    in_turn("_save_index", [(0, "loaded"), (1, "save"), (1, "index")])
    in_turn("_save_data", [(0, "data"), (1, "save")])
else:
    in_turn("_save_index", [(1, "loaded"), (0, "index"), (1, "save")])
    in_turn("_save_data", [(1, "save"), (1, "data")])
key = np.empty(4, np.uint32 if first else np.uint64)
find_stream(Noise(1, 2, 8, False), 3, key)
"""


@pytest.mark.slow
def test_two_processes_that_save_at_once(package, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda which: run(package, TWO, (str(tmp_path), which)), "12"))
    kept = [path for folder in folders(package) for path in folder.glob("*find_stream*.1.nbc")]
    assert len(kept) == 1 and not list(kept[0].parent.glob("*find_stream*.2.nbc"))
    for _ in range(2):
        for kind in (np.uint64, np.uint32):
            done = run(package, SMALL.replace("uint32", kind.__name__))
            assert done.stdout.strip() == find_key(kind)
            assert "Warning" not in done.stderr
    assert done.stderr == ""


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
    no_folder = "import acerl_np.support.machine_code as m\nm.cache_folder = lambda *_: None\n"
    done = run(package, HEARD + no_folder + SMALL)
    assert ALONE in done.stderr
    assert done.stderr.count("\n") == 1
    assert folders(package) == []
    for name, days in (("kernels-old", 31), ("kernels-recent", 29), ("other-old", 31)):
        (cache / name).mkdir(parents=True)
        (cache / name / "code").write_text("x")
        os.utime(cache / name, (time.time() - 86400 * days,) * 2)
    run(package, SMALL)
    kept = {path.name for path in cache.iterdir()}
    assert "kernels-old" not in kept
    assert {"kernels-recent", "other-old"} < kept
    assert len(folders(package)) > 1


@pytest.mark.slow
def test_damaged_machine_code_is_compiled_anew(package):
    first = run(package, SMALL).stdout
    for path in [path for folder in folders(package) for path in folder.iterdir()]:
        path.write_bytes(path.read_bytes()[:-100])
    damaged = run(package, SMALL)
    assert damaged.stdout == first and damaged.stderr.count("Warning: ") == 1
    assert "code of kernels cannot be read, and is compiled anew" in damaged.stderr
    again = run(package, SMALL)
    assert (again.stdout, again.stderr) == (first, "")


def test_compiling_is_announced_once_and_loading_is_not(package):
    threads = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(2) as pool:  # one specialisation each
    seeds = np.int32(1), np.uint8(1)
    list(pool.map(lambda seed: find_stream(Noise(seed, 2, 8, False), 3, key), seeds))
"""
    program = SMALL.replace("find_stream(Noise(1, 2, 8, False), 3, key)", threads)
    done = run(package, HEARD + program)
    assert done.stderr == ANNOUNCED
    again = run(package, HEARD + program)
    assert (again.stdout, again.stderr) == (done.stdout, "")
    assert run(package, SMALL).stderr == ""
    assert run(package, SMALL, NUMBA_DISABLE_JIT="1").stdout == done.stdout


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
    assert done.stdout.strip() == find_key()
    assert done.stderr.count("Warning: ") == 1
    assert f"RuntimeWarning: acerl_np: {CHANGED_NUMBA[change]}" in done.stderr
    assert f"numba {numba.__version__}" in done.stderr


def test_a_user_without_a_home_keeps_machine_code_elsewhere(tmp_path, monkeypatch):
    pwd = pytest.importorskip("pwd")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])  # any user of a container
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    find, beside = machine_code.cache_folder.__wrapped__, Path(machine_code.__file__).parent
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert find().parent == beside / "__pycache__"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert find().parent == tmp_path / "acerl_np"
    monkeypatch.setattr(os, "access", lambda *_: False)  # a read-only file system
    assert find() is None


NOBODY = "54321"
# It may read all, as the interpreter may lie in somebody's home, and write nothing.
CAN_READ = "-all,+dac_read_search"
AS_NOBODY = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
AS_NOBODY += ["--inh-caps", CAN_READ, "--ambient-caps", CAN_READ]
NAMELESS = """
import os, pwd
try:
    raise SystemExit(f"{pwd.getpwuid(os.getuid())} is somebody")
except KeyError:
    assert "HOME" not in os.environ
"""


def test_a_process_of_a_user_without_a_name_and_a_home(package):
    """As a container starts it that runs as any user."""
    can = shutil.which("setpriv") and subprocess.run([*AS_NOBODY, "true"], capture_output=True)
    if not can or can.returncode:
        pytest.skip("only root may become another user")
    given = {"start": AS_NOBODY, "HOME": None, "XDG_CACHE_HOME": None}

    def check(folder, *told):
        for how in told:
            done = run(package, NAMELESS + HEARD + SMALL, NUMBA_CACHE_DIR=folder, **given)
            assert done.stdout.strip() == find_key()
            assert how in done.stderr and done.stderr.count("\n") == bool(how)
        return [*Path(folder).rglob("*.nbc")]

    # Below folders of pytest nobody else may search.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        assert check(folder, ALONE) == []
        os.chown(folder, int(NOBODY), int(NOBODY))
        assert check(folder, ANNOUNCED, "") != []
    assert not (package / "support" / "__pycache__").exists()


def test_a_fault_of_ones_own_is_not_said_to_be_of_numba(monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("acerl_np.support.numba_cache.make_kernel", fail)
    with pytest.raises(OSError, match="no space left"):
        compiled._find_maker.__wrapped__()
