"""What all tests share: they run on all cores, kernels are compiled once before, and Hypothesis' profiles.

Tests lie in folders named like the package's rooms, and in `studies`; those of the whole
project, and what several of them use, lie here: slow, obvious versions of what `acerl_np.plain` has not
(`full`, `naive...`), random floors and records (`worlds`), episodes beside the slow simulator's (`episodes`,
`played`), short trainings (`trainings`), hostile inputs (`fuzz`).
"""

import json
import math
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numba
import numba.core.event
import pytest
from hypothesis import HealthCheck, Phase, settings

from acerl_np.support.workers import count_cores

JIT = not numba.config.DISABLE_JIT
HERE = Path(__file__).parent

MANY = 100 if JIT else 30
settings.register_profile(
    "many",
    deadline=None,
    max_examples=MANY,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
# The suite says the same each time of the same code; `many` draws anew.
settings.register_profile(
    "few", settings.get_profile("many"), max_examples=MANY // 5, derandomize=True, database=None
)
# That a mutant is seen is enough; no example of it is sought that is as small as can be.
settings.register_profile(
    "mutants",
    settings.get_profile("many"),
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("few")

# What helpers assert is shown as fully as in a test.
pytest.register_assert_rewrite("episodes", "played")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """On all cores, unless told otherwise (`-n 0`), debugged, or one test or file is asked for."""
    if hasattr(config, "workerinput") or getattr(config.option, "numprocesses", 0) is not None:
        return  # a worker, or told, or without pytest-xdist
    if any(Path(word).is_dir() for word in config.args) and not config.option.usepdb:
        config.option.numprocesses = count_cores()
        if config.option.dist == "no":
            config.option.dist = "worksteal"
        config.option.benchmark_disable = True


def pytest_sessionstart(session):
    """Compile before the workers of the whole suite start, which else compile the same twice."""
    config, options = session.config, session.config.option
    is_worker, is_parallel = hasattr(config, "workerinput"), getattr(options, "dist", "no") != "no"
    is_whole = not options.keyword and any(Path(word).resolve() == HERE for word in config.args)
    if not JIT or not is_parallel or not is_whole or is_worker or options.collectonly:
        return
    if subprocess.call([sys.executable, HERE / "compile_all.py"]) != 0:
        pytest.exit("the kernels cannot be compiled", returncode=1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the kernels' folder, and as slow what compiles; numbers of examples shrink with the profile's."""
    share = settings.default.max_examples / MANY
    seen = {}
    for item in items:
        test = getattr(item, "obj", None)
        own = getattr(test, "_hypothesis_internal_use_settings", settings.default)
        if share < 1.0 and own.max_examples != settings.default.max_examples and test not in seen:
            fewer = seen[test] = max(2, round(share * own.max_examples))
            test._hypothesis_internal_use_settings = settings(own, max_examples=fewer)
        if JIT and (mark := item.get_closest_marker("compiles")):
            item.add_marker(pytest.mark.long if mark.kwargs.get("long") else pytest.mark.slow)
        if HERE / "kernels" in item.path.parents:
            item.add_marker(pytest.mark.oracle)


# What tests cost, for the budget: `--costs FILE` writes which tests took more than `--long` seconds of
# processor time with their children, without what they compiled themselves.

costs = {"long": [], "most": 0.0}


def pytest_addoption(parser):
    parser.addoption("--costs", metavar="FILE", help="write what tests cost into this file")
    parser.addoption("--long", metavar="SECONDS", type=float, default=4.0, help="which are named")


def use_processor():
    return sum(os.times()[:4]) - compiling.seconds  # its children's with it


class Compiling(numba.core.event.Listener):
    """Processor time of this process while it compiled; kernels compile others while they do."""

    seconds, depth, begun = 0.0, 0, 0.0

    def on_start(self, event):
        if not self.depth:
            self.begun = time.process_time()
        self.depth += 1

    def on_end(self, event):
        self.depth -= 1
        if not self.depth:
            self.seconds += time.process_time() - self.begun


compiling = Compiling()
numba.core.event.register("numba:compile", compiling)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    begun = use_processor()
    try:
        return (yield)
    finally:
        seconds = use_processor() - begun
        costs["most"] = max(costs["most"], seconds)
        if seconds > item.config.getoption("long"):
            costs["long"].append(item.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over what a worker has counted."""
    counted = getattr(node, "workeroutput", {}).get("costs")
    if counted:
        costs["long"] += counted["long"]
        costs["most"] = max(costs["most"], counted["most"])


def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        session.config.workeroutput["costs"] = costs
    elif path := session.config.getoption("costs"):
        Path(path).write_text(json.dumps(costs), encoding="utf-8")


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    """A browser, for modules that are left out where there is none."""
    from browser import open_browser

    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def processes():
    """Two workers in processes of their own."""
    from acerl_np.support.processes import ProcessTeam

    team = ProcessTeam(2, time_limit=300.0)
    yield team
    team.close()


# How commands are tried: in an empty folder, in this process.


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder, the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_all():
    """The folders here, and the content of every file; links are followed."""
    return {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}


@pytest.fixture
def few_lookaheads(request, monkeypatch):
    """Hindsight's are compiled for each rule: for slow tests."""
    from acerl_np.evaluation import hindsight, judge

    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(hindsight, "_play_policies", lambda *given: given[-1])
        monkeypatch.setattr(judge, "SECONDS_PER_SIZE", math.inf)


@pytest.fixture
def run(capsys, few_lookaheads):
    """Run a command and return what it prints; one that is refused says so in a line and changes no file."""
    from acerl_np.commands.main import main

    return make_runner(main, capsys)


@pytest.fixture
def study(capsys):
    """Run a command of the studies, as `run` does."""
    from studies.__main__ import main

    return make_runner(main, capsys)


def make_runner(main, capsys):
    def call(words, status=0):
        before = read_all() if status else {}
        capsys.readouterr()
        assert main(shlex.split(words) if isinstance(words, str) else words) == status, (
            capsys.readouterr().err
        )
        found = capsys.readouterr()
        if status:
            lines = found.err.splitlines()
            assert "Traceback" not in found.err and "error: " in lines[-1]
            assert sum("error: " in line for line in lines) == 1
            assert read_all() == before and found.out == ""
        return found

    return call
