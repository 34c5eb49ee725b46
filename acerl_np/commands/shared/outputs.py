"""What a command may not write: what it reads, what exists, and where nothing can be written; folders."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from acerl_np.commands.shared.judges import FILE, read_held_back
from acerl_np.pictures.runs import read_config
from acerl_np.problem.bundled import bundled_instances, bundled_suites, expand_names
from acerl_np.support import files
from acerl_np.support.errors import AcerlError, InputError, make_printable
from acerl_np.support.files import has_mark

WRITTEN = ("out", "report", "write_mapping")
"""Options that name what is written; all others may name what is read."""

RUN_FILES = (
    *("policy.npz", "run.npz", "config.json", "history.csv", "curves.csv", "curves.png"),
    *("results.csv", "held-back.npz"),
)
"""What a training leaves in its folder."""


def declare_outputs(
    arguments: argparse.Namespace,
    outputs: Iterable[str | os.PathLike[str] | None],
    *,
    option: str = "--out",
    folder: str | os.PathLike[str] | None = None,
    own: bool = False,
    force: bool | None = None,
) -> None:
    """Refuse what exists, unless it is to be replaced, and what is read; an output of None is none.

    Whatever the arguments name may be read; `force` stands in the place of the arguments'. `option` names
    what is no option's value, for the error. `folder` is made later, if need be (`make_folder`). With `own`
    what this package made (`has_mark`) may be replaced unasked: for default names, nobody chose them.
    """
    force = bool(arguments.force) if force is None else force
    named = {vars(arguments).get(key): f"--{key.replace('_', '-')}" for key in WRITTEN}
    read, seen = _list_read(arguments), set[Path]()
    for path in (os.fspath(output) for output in outputs if output is not None):
        shown, place, wrong = make_printable(path), Path(path), ""
        if any(_are_same(name, path) for name in read):
            wrong = "is read, and would be overwritten; expected another name"
        elif place.resolve() in seen:
            wrong = "is what another option writes, too; expected another name"
        elif os.path.lexists(path) and not place.is_file() and not place.is_symlink():
            wrong = "is no file; expected the name of a file"
        elif os.path.lexists(path) and not force and not (own and has_mark(path)):
            wrong = "exists; expected a new name, or --force to replace it"
        if wrong:
            raise InputError(f"{named.get(path, option)}: {shown} {wrong}")
        seen.add(place.resolve())
        while folder and not place.parent.exists() and place.parent != place.parent.parent:
            place = place.parent
        try:
            files.check_place(place)
        except InputError as error:
            raise InputError(f"{named.get(path, option)}: {error}") from error


def _list_read(arguments: argparse.Namespace) -> list[str]:
    """Return all names among the arguments that may be of files that are read."""
    values = [value for key, value in vars(arguments).items() if key not in WRITTEN]
    every = [x for value in values for x in (value if isinstance(value, list) else [value])]
    texts = [name for name in every if isinstance(name, str)]
    names = [*texts, *(x for text in texts for x in expand_names([text], needed=False))]
    bundled, suites = bundled_instances(), bundled_suites()
    known = (x for name in names for x in suites.get(name, [name]) if x in bundled)
    return [*names, *(str(bundled[x]) for x in known)]


def _are_same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False


def make_folder(path: str | Path, *, new: bool = False) -> Path:
    """Make a folder for results if need be; with `new` one that did not exist, with the first free number."""
    folder = Path(path)
    for k in count(2):
        try:
            folder.mkdir(parents=True, exist_ok=not new)
            break
        except (OSError, ValueError) as error:
            if not isinstance(error, FileExistsError) or not folder.is_dir():
                reason = str(error)
                if isinstance(error, OSError):
                    reason = f"cannot make the folder: {files.describe_os_error(error)}"
                name = make_printable(str(folder))
                raise InputError(f"{name}: {reason}; expected the name of a folder") from error
        folder = Path(f"{path}-{k}")
    return folder


@contextmanager
def open_results(arguments: argparse.Namespace, name: str) -> Iterator[Path]:
    """Make the folder of a training's results if need be, and hold it for this run alone.

    Without `out` it is that of the checkpoint `resume`, or a new one below runs/ with this name.
    """
    out, resume = arguments.out, arguments.resume
    if out is None and resume is None:
        folder = make_folder(Path("runs") / name, new=True)
    else:
        folder = make_folder(Path(resume).parent if out is None else out)
    with files.claim_folder(folder):
        declare_run(arguments)
        yield folder


def declare_run(arguments: argparse.Namespace) -> None:
    """Refuse the folder of a training if it holds another run; a resumed one goes on in its own."""
    out, resume = arguments.out, arguments.resume
    declare_outputs(arguments, [arguments.report], option="--report")
    if out is None and resume is None:
        return
    folder = Path(resume).parent if out is None else Path(out)
    if resume is None or not _are_same(resume, str(folder / "run.npz")):
        force = bool(arguments.force) or is_killed_start(folder)
        declare_outputs(arguments, [folder / x for x in RUN_FILES], folder=folder, force=force)


def is_killed_start(folder: Path) -> bool:
    """Whether all that a folder holds is what a training writes before its first checkpoint.

    That is config.json, and the held-back records that it names: nothing was trained there.
    """
    try:
        names = {x.name for x in folder.iterdir() if not files.TEMPORARY.fullmatch(x.name)}
        facts = read_config(folder)
        # The folder of --seeds has a config.json with "seeds", and of a study none of these.
        if not names <= {"config.json", FILE} or not {"acerl_np", "seed"} <= facts.keys():
            return False
        held_back = read_held_back(folder / FILE) if FILE in names else []
    except (AcerlError, OSError, ValueError):
        return False
    return not held_back or {x.name: x.content_hash for x in held_back} == facts.get("held_back")
