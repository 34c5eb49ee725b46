"""What every command refuses to write: what it reads, and what exists and is not meant to be replaced."""

import json
import os
import shutil
from pathlib import Path

import pytest
from machine import needs_jit
from small_files import FILES
from tables_and_refusals import HEADER

import acerl_np
from acerl_np.commands.main import main
from acerl_np.evaluation.seeds import TRIALS_FILE
from acerl_np.support.errors import InputError
from acerl_np.support.files import MARK, read_arrays, write_arrays

pytestmark = needs_jit
PLANT = Path(__file__).parent.parent / "data" / "plant.xml"
TINY = "--generations 1 --set population=2 --set hidden=2 --trials 0 --quiet"

WRITES = {
    "floor import plant.xml --out OUT": ("made.json", "plant.xml"),
    "records convert week.csv --out OUT": ("made.csv", "week.csv"),
    "evaluate run/policy.npz EDD --on week.csv --past past.csv --references best.json --trials 1 "
    "--out made --report OUT": ("made.html", "run/policy.npz past.csv best.json"),
    "evaluate EDD --on week.csv --trials 1 --details --out made": ("made/tasks.csv", ""),
    "policy bound week.csv --layout layout.json --effort 0.001 --out OUT": (
        "made.json",
        "layout.json",
    ),
    "replay EDD week.csv --past past.csv --out OUT": ("made.html", ""),
    "whatif --on week.csv --vehicles 1 --out OUT": ("made.svg", ""),
    "records convert week.csv --out other.csv --write-mapping OUT": ("made.toml", "week.csv"),
    "floor edit layout.json --vehicles 2 --out OUT": ("made.json", "layout.json"),
    "plot floor layout.json --out OUT": ("made.png", ""),
    f"train week.csv {TINY} --out new": ("new/policy.npz", ""),
    f"train --resume run/run.npz --generations 2 {TINY[16:]} --out new": ("new/history.csv", ""),
    f"train week.csv --seeds 0:1 {TINY} --processes 1 --out new": ("new/seed0/policy.npz", ""),
}
"""Per command what it writes, and some of what it reads."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    shutil.copy(PLANT, folder / "plant.xml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(f"train week.csv {TINY} --out run".split()) == 0
    acerl_np.IndexPolicy.of_weights(approach=-1.0).save(folder / "index.npz")
    return folder


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_read_is_never_written(folder, run):
    def refuse(words, out):
        line = run(f"{words} {out} --force", 2).err
        assert f": {out} is read, and would be overwritten; expected another name" in line

    for words, (_, read) in WRITES.items():
        for name in read.split():
            for out in (name, f"./{name}", f"{folder}/{name}"):
                refuse(words.removesuffix(" OUT"), out)
    for link in (os.symlink, os.link):
        link("week.csv", "made.csv")
        refuse("records convert week.csv --out", "made.csv")
        Path("made.csv").unlink()


@pytest.mark.parametrize("words", WRITES)
def test_what_exists_is_replaced_with_force_alone(folder, run, words):
    out = Path(WRITES[words][0])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(b"mine")
    given = words.replace("OUT", str(out))
    line = run(given, 2).err
    assert line.endswith(f": {out} exists; expected a new name, or --force to replace it\n")
    run(f"{given} --force")
    assert out.read_bytes() != b"mine"


def test_where_nothing_can_be_written_is_told_before_any_work(folder, run):
    """Folders for results are made if need be, those of files are not."""
    folders = ["records convert week.csv --split day --out OUT"]
    folders += ["records make --layout layout.json --tasks 9 --out OUT"]
    folders += ["records make week.csv --magnitude 1 --out OUT"]
    folders += [f"train week.csv {more}{TINY} --out OUT" for more in ("", "--seeds 0:1 ")]
    files = [(words, out) for words, (out, _) in WRITES.items() if "OUT" in words]
    for words, out in (*files, *((words, "made") for words in folders)):
        for place in [f"week.csv/{out}", *[f"none/{out}"] * ("." in out), f"{'x' * 250}{out}"]:
            line = run(words.replace("OUT", place), 2).err
            assert line.count("\n") == 1
            assert any(x in line for x in ("not a directory", "no such file", "name too long"))


def test_a_mapping_takes_no_name_of_what_is_written_beside_it(folder, run):
    rows = [f"t{k},A,B,2024-05-0{6 + k}T07:00:00,20\n" for k in range(2)]
    Path("in.csv").write_text("".join([f"{HEADER}\n", *rows, "t9,A,A,2024-05-07T08:00:00,20\n"]))
    words = "records convert in.csv --layout layout.json --skip-bad --split day --out made"
    for name in ("made/in-2024-05-06.csv", "./made.left-out.csv"):
        line = run(f"{words} --write-mapping {name}", 2).err
        assert f"{Path(name)} is what another option writes, too" in line
    run(f"{words} --write-mapping made/own.toml")
    assert len(list(Path("made").iterdir())) == 3 and Path("made.left-out.csv").exists()


def test_what_is_no_file_is_not_replaced(folder, run):
    Path("made.json").symlink_to("nowhere")
    assert "exists; expected a new name" in run("floor import plant.xml --out made.json", 2).err
    assert Path("made.json").is_symlink()
    for out in (".", "/dev/null"):
        line = run(f"floor import plant.xml --force --out {out}", 2).err
        assert "expected the name of a file" in line


def test_default_names_replace_what_was_made_here_alone(folder, run):
    made = {"replay EDD week.csv": "replay.html", "plot curves run": "run/curves.png"}
    for words, name in made.items():
        assert main(words.split()) == main(words.split()) == 0
        assert MARK.encode() in Path(name).read_bytes()
        assert " exists; expected a new name" in run(f"{words} --out {name}", 2).err
        Path(name).write_bytes(b"mine")
        assert f": {Path(name)} exists; expected a new name" in run(words, 2).err
        assert main([*words.split(), "--force"]) == 0


def test_a_run_goes_on_in_its_own_folder_alone(folder, run):
    begin, go_on = f"train week.csv {TINY}", f"train --generations 2 {TINY[16:]}"
    out, other = "train-a", Path("train-b")
    assert main([*begin.split(), "--out", out]) == 0
    assert "policy.npz exists; expected a new name" in run(f"{begin} --out {out}", 2).err
    link = Path(f"{out}.npz")
    link.symlink_to(f"{out}/run.npz")
    for more in (f"{out}/run.npz --out ./{out}", f"{out}/run.npz", f"{link} --out {out}"):
        assert main(f"{go_on} --resume {more}".split()) == 0
    # A copy of the checkpoint elsewhere: what stands beside it is of something else.
    other.mkdir()
    shutil.copy(f"{out}/run.npz", other / "saved.npz")
    (other / "config.json").write_text("{}")
    line = run(f"{go_on} --resume {other}/saved.npz", 2).err
    assert f"{other / 'config.json'} exists" in line


class Killed(BaseException):
    """Nothing catches it."""


def kill(words, patch):
    """Begin a training, and end it before its first checkpoint."""

    def die(*_):
        raise Killed

    with patch.context() as within:
        within.setattr("acerl_np.training.acerl.ACERL.save", die)
        with pytest.raises(Killed):
            main(words.split())


STARTS = [f"train {x} {TINY} --out new" for x in ("week.csv", "week.csv next.csv --hold-out 0.5")]


@pytest.mark.parametrize("words", STARTS)
def test_a_start_that_was_killed_may_be_made_again(folder, run, monkeypatch, words):
    kill(words, monkeypatch)
    left = {item.name for item in Path("new").iterdir()}
    assert left == {"config.json"} | ({"held-back.npz"} if "--hold-out" in words else set())
    for name in ("policy.npz", "curves.png", "notes.txt"):
        Path("new", name).write_text("mine")
        assert "exists; expected a new name, or --force" in run(words, 2).err
        Path("new", name).unlink()
    Path("new/.run.npz.0123abcd.tmp").write_bytes(b"begun")
    assert main([*words.split(), "--seed", "1"]) == 0
    assert json.loads(Path("new/config.json").read_text())["seed"] == 1


def test_no_killed_start(folder, run, monkeypatch):
    """A file of that name that no start has written, and records that it does not name."""
    Path("new").mkdir()
    for text in ("{}", "[]", "mine", json.dumps({"acerl_np": "1", "seeds": [0, 1]})):
        Path("new/config.json").write_text(text)
        assert f"{Path('new/config.json')} exists" in run(STARTS[0], 2).err
    shutil.rmtree("new")
    kill(STARTS[1], monkeypatch)
    held_back = Path("new/held-back.npz").read_bytes()
    kill(f"{STARTS[0]} --force", monkeypatch)
    for content in (held_back, b"mine"):
        Path("new/held-back.npz").write_bytes(content)
        assert "exists" in run(STARTS[0], 2).err


def test_a_run_that_ends_before_the_folder_is_claimed_stays(folder, capsys, monkeypatch):
    def finish_another(*_, **__):
        shutil.copytree("run", "new")

    monkeypatch.setattr("acerl_np.commands.shared.training.compile_ahead", finish_another)
    assert main(STARTS[0].split()) == 2
    assert "exists" in capsys.readouterr().err
    assert Path("new/policy.npz").read_bytes() == Path("run/policy.npz").read_bytes()


def test_seeds_go_on_in_their_own_folder_alone(folder, run):
    words = f"train week.csv {TINY} --processes 1 --out all --seeds"
    assert main(f"{words} 0:2".split()) == 0
    # Killed while a seed is kept: what says that it is whole is missing.
    path = Path("all/seed1") / TRIALS_FILE
    arrays = read_arrays(path, InputError)
    write_arrays(path, {name: arrays[name] for name in ("kind", "format", "key")})
    Path("all/seed1/curves.csv").unlink()
    Path("all/summary.csv").unlink()
    assert main(f"{words} 0:2".split()) == 0
    assert Path("all/seed1/curves.csv").exists()
    assert f"{Path('all/config.json')} exists" in run(f"{words} 0:2 --set p_f=0.1", 2).err
    assert f"{Path('all/seed0/policy.npz')} exists" in run(f"{words} 0:2 --trials 1", 2).err
    assert "exists" in run(f"train week.csv {TINY} --out all", 2).err
    # A single run's folder is none of a seed.
    shutil.copytree("run", "all/seed2")
    assert f"{Path('all/seed2/policy.npz')} exists" in run(f"{words} 0:3", 2).err
