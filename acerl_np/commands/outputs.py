"""What each command reads, by its options, and what it may therefore not write."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from acerl_np.support.errors import AcerlError
from acerl_np.support.files import TEMPORARY
from acerl_np.support.outputs import check_not_read, check_outputs

RECORDS = ("tasks", "fit", "history", "names")
"""Options that name task records; others of these names hold no files, which does no harm."""

FILES = (
    "against",
    "assignments",
    "audit",
    "breakdowns",
    "config",
    "file",
    "layout",
    "past",
    "policies",
    "policy",
    "references",
    "replay",
    "resume",
)
"""Options that name other files."""

FOLDERS = ("folder", "runs")
"""Options that name folders of runs."""

RUN_FILES = (
    "policy.npz",
    "run.npz",
    "config.json",
    "history.csv",
    "curves.csv",
    "curves.png",
    "held-back.npz",
    "static.npz",
)
"""What a training leaves in its folder."""


def add_force(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Declare --force."""
    parser.add_argument(
        "--force",
        action="store_true",
        default=None,
        help="replace what exists; a file that is read is never written",
    )


def declare_outputs(
    arguments: argparse.Namespace,
    outputs: Iterable[str | os.PathLike[str]],
    *,
    option: str = "--out",
    own: bool = False,
) -> None:
    """Refuse what must not be written, before any work; all that the arguments name counts as read.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `force`.
    outputs, option, own
        As `check_outputs` takes them.

    Raises
    ------
    InputError
        If one is refused.
    """
    force = bool(arguments.force)
    check_outputs(outputs, list_inputs(arguments), force=force, option=option, own=own)


def declare_run(arguments: argparse.Namespace) -> None:
    """Refuse the folder of a training if it holds another run; a resumed one goes on in its own.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `out`, `resume` and `force`. Without the first two a new folder is made.

    Raises
    ------
    InputError
        If it is refused.
    """
    out, resume = arguments.out, arguments.resume
    if out is None and resume is None:
        return
    folder = Path(resume).parent if out is None else Path(out)
    outputs = {name: folder / name for name in RUN_FILES}
    checkpoint = outputs["run.npz"]
    try:
        own = resume is not None and checkpoint.samefile(resume)
    except (OSError, ValueError):
        own = False
    if not own:
        force = bool(arguments.force) or is_killed_start(folder)
        check_outputs(outputs.values(), list_inputs(arguments), force=force)
        return
    inputs = list_inputs(arguments)
    del outputs["run.npz"]
    check_not_read(outputs.values(), inputs)
    check_not_read([checkpoint], [name for name in inputs if name != resume])


def is_killed_start(folder: Path) -> bool:
    """Whether all that a folder holds is what a training writes before its first checkpoint.

    That is config.json, and the held-back records that it names: nothing was trained there.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    bool
    """
    from acerl_np.commands.judging import FILE, read_facts, read_held_back

    try:
        names = {item.name for item in folder.iterdir()}
    except (OSError, ValueError):
        return False
    names = {name for name in names if not TEMPORARY.fullmatch(name)}
    facts = read_facts(folder)
    # The folder of --seeds has a config.json with "seeds", and of a study none of these.
    if not names <= {"config.json", FILE} or not {"acerl_np", "seed"} <= facts.keys():
        return False
    if FILE not in names:
        return True
    try:
        held_back = read_held_back(folder / FILE)
    except AcerlError:
        return False
    return {item.name: item.content_hash for item in held_back} == facts.get("held_back")


def list_inputs(arguments: argparse.Namespace) -> list[str | Path]:
    """Return the names of all that a command with these arguments may read.

    Parameters
    ----------
    arguments : argparse.Namespace

    Returns
    -------
    list of str or Path
        Some may be no files.
    """
    options = vars(arguments)
    found: list[str | Path] = []
    for option in FILES:
        found += _list(options.get(option))
    for option in FOLDERS:
        for folder in _list(options.get(option)):
            found += [folder, *_list_run(Path(folder))]
    records = [name for option in RECORDS for name in _list(options.get(option))]
    suite = options.get("suite")
    return [*found, *_list_records(options, records, suite)]


def _list(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _list_run(folder: Path) -> Iterator[Path]:
    """Yield the tables and facts in a folder of a run, of several seeds or of a study."""
    try:
        for pattern in ("*.csv", "*.json", "seed*/*.csv", "seed*/*.json"):
            yield from folder.glob(pattern)
    except (OSError, ValueError):
        return


def _list_records(
    options: dict[str, object], records: list[str], suite: object
) -> Iterator[str | Path]:
    """Yield records with what stands beside them, and the files of bundled ones and of their layouts."""
    from acerl_np.problem.bundled import bundled_instances, bundled_suites, instances_folder
    from acerl_np.problem.records import BREAKDOWNS_FILE
    from acerl_np.support.files import STDIN

    bundled, suites = bundled_instances(), bundled_suites()
    # Of a layout or breakdowns that are named, those beside a record are not read.
    beside = [] if options.get("layout") is not None else ["layout.json"]
    beside += [] if options.get("breakdowns") is not None else [BREAKDOWNS_FILE]
    names = [*records, *([suite] if isinstance(suite, str) else [])]
    # Without a name all bundled records may be meant.
    for name in names or (list(suites) if "suite" in options else []):
        yield name
        files = [bundled[each] for each in suites.get(name, [name]) if each in bundled]
        yield from files
        for file in [] if name == STDIN else [Path(name), *files]:
            yield from (file.with_name(other) for other in beside if file.name)
    for name in _list(options.get("layout")):
        yield instances_folder() / name / "layout.json"
