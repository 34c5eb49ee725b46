"""What every command refuses to write: what it reads, and what exists and is not meant to be replaced."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from worlds import straight_floor

import acerl_np
from acerl_np.commands.main import COMMANDS, build_parser, main
from acerl_np.commands.outputs import FILES, FOLDERS, RECORDS
from acerl_np.experiments.seeds import TRIALS_FILE
from acerl_np.support.errors import InputError
from acerl_np.support.files import read_arrays, write_arrays
from acerl_np.support.outputs import MARK

needs_jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="trains")
PLANT = Path(__file__).parent.parent / "data" / "plant.xml"
FLEET = [{"id": "v", "start": "A"}, {"id": "w", "start": "C"}]
TEXTS = {
    "layout.json": json.dumps(straight_floor(FLEET)),
    "week.csv": "task,pickup,delivery,arrival_time,expiry_time\nt0,A,B,0,20\nt1,B,C,3,20\n",
    "other.csv": "task,pickup,delivery,arrival_time,expiry_time\nt0,A,C,0,20\nt1,C,B,3,20\n",
    "past.csv": "task,vehicle,start\nt0,v,0\nt1,w,3\n",
    "broken.csv": "vehicle,time,repair_time\nv,1,5\n",
    "options.toml": "population = 2\n",
}
TINY = "--generations 1 --population 2 --hidden 2 --trials 0 --quiet"
RIVAL = "--steps 50 --trials 0 --quiet --set look_every=1000"

WRITES = {
    "floor import plant.xml --out OUT": ("made.json", "plant.xml"),
    "floor show layout.json --out OUT": ("made.png", "layout.json"),
    "records convert week.csv --layout layout.json --out OUT": ("made.csv", "week.csv layout.json"),
    "records generate --layout layout.json --tasks 2 --sites B C --out new": (
        "new/tasks-01.csv",
        "layout.json",
    ),
    "records perturb week.csv other.csv --breakdowns broken.csv --magnitude 3 --out new": (
        "new/week-n3.csv",
        "week.csv other.csv layout.json broken.csv",
    ),
    "records replay past.csv --tasks week.csv --breakdowns broken.csv --schedule-csv OUT": (
        "made.csv",
        "past.csv week.csv layout.json broken.csv",
    ),
    "evaluate run/policy.npz EDD Static --fit other.csv --tasks week.csv --lookahead 2 "
    "--history other.csv --replay past.csv --references best.json --trials 1 --breakdowns broken.csv "
    "--trials-csv OUT": (
        "made.csv",
        "run/policy.npz other.csv week.csv past.csv best.json layout.json broken.csv",
    ),
    "hindsight week.csv --breakdowns broken.csv --effort 0.001 --out OUT": (
        "made.json",
        "week.csv layout.json broken.csv",
    ),
    "replay run/policy.npz week.csv --against past.csv --breakdowns broken.csv --out OUT": (
        "made.html",
        "run/policy.npz week.csv past.csv layout.json broken.csv",
    ),
    "replay EDD week.csv --layout layout.json --lookahead 2 --history other.csv --out OUT": (
        "made.html",
        "week.csv layout.json other.csv",
    ),
    "plot curves run --out OUT": ("made.png", "run/curves.csv run/history.csv run/config.json"),
    "plot sampler run --out OUT": ("made.svg", "run/history.csv"),
    "plot gantt run/policy.npz week.csv --out OUT": (
        "made.png",
        "run/policy.npz week.csv layout.json",
    ),
    "plot floor week.csv --past past.csv --breakdowns broken.csv --out OUT": (
        "made.pdf",
        "week.csv past.csv layout.json broken.csv",
    ),
    "plot compare run/policy.npz Static --fit other.csv --tasks week.csv --trials 1 --out OUT": (
        "made.png",
        "run/policy.npz other.csv week.csv layout.json",
    ),
    "plot weights index.npz --tasks week.csv --breakdowns broken.csv --out OUT": (
        "made.png",
        "index.npz week.csv layout.json broken.csv",
    ),
    f"train week.csv --config options.toml --breakdowns broken.csv {TINY} --out new": (
        "new/policy.npz",
        "week.csv options.toml layout.json broken.csv",
    ),
    f"train --resume run/run.npz --generations 2 {TINY[16:]} --out new": (
        "new/history.csv",
        "run/run.npz",
    ),
    f"train week.csv --config options.toml --seeds 0:1 {TINY} --out new": (
        "new/seed0/policy.npz",
        "week.csv options.toml layout.json",
    ),
    f"rivals ppo week.csv --breakdowns broken.csv {RIVAL} --out new": (
        "new/run.npz",
        "week.csv layout.json broken.csv",
    ),
    "rivals ppo --resume rival/run.npz --trials 0 --quiet --out new": (
        "new/policy.npz",
        "rival/run.npz",
    ),
    f"rivals ppo week.csv --seeds 0:1 {RIVAL} --out new": (
        "new/summary.csv",
        "week.csv layout.json",
    ),
}
"""Per command what it writes, and what it reads."""

PAIRS = [(words, name) for words, (_, read) in WRITES.items() for name in read.split()]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    shutil.copy(PLANT, folder / "plant.xml")
    instances = [acerl_np.load_instance(folder / "week.csv")]
    (folder / "best.json").write_text('{"format": 1, "references": []}')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(f"train week.csv {TINY} --out run".split()) == 0
        assert main(f"rivals ppo week.csv {RIVAL} --out rival".split()) == 0
        assert (
            main(["hindsight", "week.csv", "--effort", "0.001", "--out", "best.json", "--force"])
            == 0
        )
    config = acerl_np.Config.preset("best", generations=1, population=4)
    acerl_np.ACERL(instances, config, seed=0).policy.save(folder / "index.npz")
    return folder


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_all():
    """The content of every file here; links are followed."""
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def refusal(capsys, words):
    """Run a command that must end with status 2 and change nothing; return its only line of error."""
    before = read_all()
    capsys.readouterr()
    assert main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert read_all() == before
    return line


def give_name(words, out):
    return shlex.split(words.replace("OUT", out))


@needs_jit
@pytest.mark.parametrize("link", ["symlink", "hard link"])
@pytest.mark.parametrize(("words", "name"), PAIRS)
def test_what_is_read_is_never_written(folder, capsys, words, name, link):
    out = Path(WRITES[words][0])
    out.parent.mkdir(parents=True, exist_ok=True)
    if link == "symlink":
        out.symlink_to(folder / name)
    else:
        os.link(name, out)
    line = refusal(capsys, [*give_name(words, str(out)), "--force"])
    assert f": {out} is the same file as " in line and "which is read, and would be over" in line
    assert Path(re.search(r"same file as (.*), which", line)[1]).samefile(name)
    assert out.is_symlink() == (link == "symlink")


@pytest.mark.parametrize(
    "words",
    [
        "floor import plant.xml --out OUT",
        "records convert week.csv --out OUT",
        "records replay past.csv --tasks week.csv --schedule-csv OUT",
        "evaluate EDD --tasks week.csv --trials 1 --trials-csv OUT",
        "hindsight week.csv --out OUT",
    ],
)
@pytest.mark.parametrize("path", ["{}", "./{}", "sub/../{}", "{here}/{}"])
@needs_jit
def test_another_path_to_what_is_read(folder, capsys, words, path):
    (folder / "sub").mkdir()
    name = "plant.xml" if "plant.xml" in words else "week.csv"
    out = path.format(name, here=folder)
    line = refusal(capsys, [*give_name(words, out), "--force"])
    same = "is" if path == "{}" else f"is the same file as {name}, which is"
    assert f": {out} {same} read, and would be overwritten; expected another name" in line


@needs_jit
@pytest.mark.parametrize("words", WRITES)
def test_what_exists_is_replaced_with_force_alone(folder, capsys, words):
    out = Path(WRITES[words][0])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(b"mine")
    given = give_name(words, str(out))
    line = refusal(capsys, given)
    assert line.endswith(f": {out} exists; expected a new name, or --force to replace it")
    assert main([*given, "--force"]) == 0, capsys.readouterr().err
    assert out.read_bytes() != b"mine"


def test_a_link_that_leads_to_nothing_stays(folder, capsys):
    Path("made.json").symlink_to("nowhere")
    line = refusal(capsys, ["floor", "import", "plant.xml", "--out", "made.json"])
    assert "made.json exists; expected a new name" in line
    assert Path("made.json").is_symlink()


@pytest.mark.parametrize("out", [".", "-", "/dev/null"])
def test_what_is_no_file_is_not_replaced(folder, capsys, out):
    line = refusal(capsys, ["floor", "import", "plant.xml", "--force", "--out", out])
    assert "expected the name of a file" in line


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells")
def test_the_standard_input_may_be_a_file(folder):
    words = ["records", "convert", "-", "--layout", "layout.json", "--out", "week.csv", "--force"]
    before = read_all()
    with Path("week.csv").open("rb") as source:
        done = subprocess.run(
            [sys.executable, "-m", "acerl_np", *words],
            stdin=source,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(acerl_np.__file__).parent.parent)},
        )
    assert done.returncode == 2
    assert "week.csv is the same file as <stdin>, which is read" in done.stderr
    assert read_all() == before


def test_bundled_records_are_read_by_their_names(folder, capsys):
    bundled = Path(acerl_np.problem.bundled.bundled_instances()["DMH-01"])
    for name in ("DMH-01.csv", "layout.json"):
        Path("link.csv").unlink(missing_ok=True)
        Path("link.csv").symlink_to(bundled.with_name(name))
        for named in ("DMH-01", "--suite dmh-train", ""):
            words = f"hindsight {named} --out link.csv --force".split()
            assert "link.csv is the same file as " in refusal(capsys, words)


@needs_jit
@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("replay EDD week.csv", "replay.html"),
        ("plot gantt EDD week.csv", "gantt.png"),
        ("plot floor EDD week.csv", "traffic.png"),
        ("plot compare EDD STD --tasks week.csv --trials 1", "compare.png"),
        ("plot curves run", "run/curves.png"),
        ("plot sampler run", "run/sampler.png"),
        ("plot weights index.npz", "weights.png"),
    ],
)
def test_default_names_replace_what_was_made_here_alone(folder, capsys, words, name):
    words = words.split()
    assert main(words) == main(words) == 0
    assert MARK.encode() in Path(name).read_bytes()
    assert " exists; expected a new name" in refusal(capsys, [*words, "--out", name])
    Path(name).write_bytes(b"mine")
    assert f": {Path(name)} exists; expected a new name" in refusal(capsys, words)
    assert main([*words, "--force"]) == 0
    assert main(words) == 0


@needs_jit
@pytest.mark.parametrize(
    ("begin", "go_on"),
    [
        (f"train week.csv {TINY}", f"train --generations 2 {TINY[16:]}"),
        (f"rivals ppo week.csv {RIVAL}", "rivals ppo --steps 4000 --trials 0 --quiet"),
    ],
)
def test_a_run_goes_on_in_its_own_folder_alone(folder, capsys, begin, go_on):
    assert main([*begin.split(), "--out", "a"]) == 0
    line = refusal(capsys, [*begin.split(), "--out", "a"])
    assert "policy.npz exists; expected a new name, or --force" in line
    assert main([*go_on.split(), "--resume", "a/run.npz", "--out", "./a"]) == 0
    assert main([*go_on.split(), "--resume", "a/run.npz"]) == 0
    Path("link.npz").symlink_to("a/run.npz")
    assert main([*go_on.split(), "--resume", "link.npz", "--out", "a"]) == 0
    # A copy of the checkpoint elsewhere: what stands beside it is of something else.
    Path("b").mkdir()
    shutil.copy("a/run.npz", "b/saved.npz")
    Path("b/config.json").write_text("{}")
    line = refusal(capsys, [*go_on.split(), "--resume", "b/saved.npz"])
    assert f"{Path('b/config.json')} exists" in line
    # In its own folder, too, no other file of the run may be what is read.
    Path("a/policy.npz").unlink()
    os.link("a/run.npz", "a/policy.npz")
    assert "same file" in refusal(capsys, [*go_on.split(), "--resume", "a/run.npz", "--force"])


@needs_jit
def test_an_empty_folder_and_one_with_other_files_take_a_run(folder):
    for name in ("empty", "mine"):
        Path(name).mkdir()
    Path("mine/notes.txt").write_text("mine")
    for name in ("empty", "mine"):
        assert main([*f"train week.csv {TINY} --out".split(), name]) == 0
    assert Path("mine/notes.txt").read_text() == "mine"


STARTS = (
    f"train week.csv {TINY} --out new",
    f"train week.csv other.csv --hold-out 0.5 {TINY} --out new",
    f"rivals ppo week.csv {RIVAL} --out new",
)


class Killed(BaseException):
    """Nothing catches it."""


def kill(words, patch):
    """Begin a training, and end it before its first checkpoint."""

    def die(*_):
        raise Killed

    with patch.context() as within:
        within.setattr("acerl_np.training.acerl.ACERL.save", die)
        within.setattr("acerl_np.rivals.training.RivalTrainer.save", die)
        with pytest.raises(Killed):
            main(words)


@needs_jit
@pytest.mark.parametrize("words", STARTS)
def test_a_start_that_was_killed_may_be_made_again(folder, monkeypatch, words):
    words = words.split()
    kill(words, monkeypatch)
    left = {item.name for item in Path("new").iterdir()}
    assert left == {"config.json"} | ({"held-back.npz"} if "--hold-out" in words else set())
    Path("new/.run.npz.0123abcd.tmp").write_bytes(b"begun")
    assert main([*words, "--seed", "1"]) == 0
    assert json.loads(Path("new/config.json").read_text())["seed"] == 1


@needs_jit
@pytest.mark.parametrize("words", STARTS[:2])
@pytest.mark.parametrize(
    "name", ["policy.npz", "run.npz", "history.csv", "curves.png", "static.npz", "notes.txt"]
)
def test_a_killed_start_beside_anything_else_is_refused(folder, capsys, monkeypatch, words, name):
    kill(words.split(), monkeypatch)
    Path("new", name).write_text("mine")
    assert "exists; expected a new name, or --force" in refusal(capsys, words.split())
    assert Path("new", name).read_text() == "mine"


@needs_jit
def test_no_killed_start(folder, capsys, monkeypatch):
    """A file of that name that no start has written, and records that it does not name."""
    words = STARTS[0].split()
    Path("new").mkdir()
    several = {"acerl_np": "1", "seeds": [0, 1]}
    for text in ("{}", "[]", "mine", json.dumps(several)):
        Path("new/config.json").write_text(text)
        assert f"{Path('new/config.json')} exists" in refusal(capsys, words)
    shutil.rmtree("new")
    kill(STARTS[1].split(), monkeypatch)
    held_back = Path("new/held-back.npz").read_bytes()
    kill([*words, "--force"], monkeypatch)
    for content in (held_back, b"mine"):
        Path("new/held-back.npz").write_bytes(content)
        assert "exists" in refusal(capsys, words)


@needs_jit
def test_a_run_that_ends_before_the_folder_is_claimed_stays(folder, capsys, monkeypatch):
    words = STARTS[0].split()

    def finish_another(*_, **__):
        shutil.copytree("run", "new")

    monkeypatch.setattr("acerl_np.commands.train.compile_ahead", finish_another)
    assert main(words) == 2
    assert "exists" in capsys.readouterr().err
    assert Path("new/policy.npz").read_bytes() == Path("run/policy.npz").read_bytes()


@needs_jit
def test_seeds_go_on_in_their_own_folder_alone(folder, capsys):
    words = f"train week.csv {TINY} --out all --seeds".split()
    assert main([*words, "0:2"]) == main([*words, "0:3"]) == 0
    # Killed while a seed is kept: what says that it is whole is missing.
    path = Path("all/seed1") / TRIALS_FILE
    arrays = read_arrays(path, InputError)
    write_arrays(path, {name: arrays[name] for name in ("kind", "format", "key")})
    Path("all/seed1/curves.csv").unlink()
    Path("all/summary.csv").unlink()
    assert main([*words, "0:3"]) == 0
    assert Path("all/seed1/curves.csv").exists()
    line = refusal(capsys, [*words, "0:3", "--p-f", "0.1"])
    assert f"{Path('all/config.json')} exists" in line
    line = refusal(capsys, [*words, "0:3", "--trials", "1"])
    assert f"{Path('all/seed0/policy.npz')} exists" in line
    assert "exists" in refusal(capsys, f"train week.csv {TINY} --out all".split())
    # A single run's folder is none of a seed.
    shutil.copytree("run", "all/seed3")
    line = refusal(capsys, [*words, "0:4"])
    assert f"{Path('all/seed3/policy.npz')} exists" in line
    assert main([*words, "0:4", "--force"]) == 0


@needs_jit
def test_a_study_goes_on_in_its_own_folder_alone(folder, capsys):
    words = [
        "experiments",
        "leave-one-out",
        "--seeds",
        "1",
        "--trials",
        "1",
        "--generations",
        "1",
        "--threads",
        "1",
        "--out",
    ]
    Path("tables").mkdir()
    Path("tables/leave-one-out-01.md").write_text("mine")
    line = refusal(capsys, [*words, "tables"])
    assert f"{Path('tables/leave-one-out-01.md')} exists" in line
    Path("tables/runs").mkdir()
    Path("tables/runs/mine.npz").write_text("mine")
    assert "exists" in refusal(capsys, [*words, "tables"])


def find_parsers(parser):
    """A parser and all below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from find_parsers(below)


def test_every_option_that_names_a_file_is_known():
    """A new option must be named in `acerl_np.commands.outputs`, or here as what is written."""
    is_file = re.compile(
        r"\.(csv|json|npz|toml|html)|TASKS|RECORD|POLICY|FOLDER|FILE|INSTANCE|^IN$|^DIR$|^LOG$"
    )
    read, written = set(), {"out", "trials_csv", "schedule_csv"}
    for command in COMMANDS:
        for parser in find_parsers(build_parser(command)):
            named = {a.dest for a in parser._actions if is_file.search(str(a.metavar or ""))}
            read |= named - written
            if named & written:
                assert "force" in {action.dest for action in parser._actions}, parser.prog
    # Records are also named by --suite.
    assert read == {*RECORDS, *FILES, *FOLDERS}
