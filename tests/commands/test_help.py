"""Help of all commands: how much there is, its groups, what it imports; completion; words of all commands."""

import argparse
import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import acerl_np
from acerl_np.commands.main import COMMANDS, GLOBAL, build_parser
from acerl_np.commands.shared.options import GROUPS, make_short_help

HELP = ("-h", "--help")


def find_leaves():
    """Parsers of commands that do something, by their words."""

    def walk(parser, words):
        below = [x for x in parser._actions if isinstance(x, argparse._SubParsersAction)]
        if not below:
            yield " ".join(words), parser
        for name, own in below[0].choices.items() if below else ():
            yield from walk(own, [*words, name])

    return dict(walk(build_parser(""), []))


LEAVES = find_leaves()


def list_options(parser):
    """Options but those of help."""
    return [x for x in parser._actions if x.option_strings and not set(x.option_strings) & {*HELP}]


def test_sentences_of_the_package_name_options_that_there_are():
    known = {*HELP}.union(
        *(
            x.option_strings
            for parser in [build_parser(None), *LEAVES.values()]
            for x in parser._actions
        )
    )
    found = [
        (path.name, word)
        for path in Path(acerl_np.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", node.value)
    ]
    assert len(found) > 300 and [x for x in found if x[1] not in known] == []


def test_the_command_line_fits_in_a_head():
    """Commands on the first screen, "help" among them; leaves, options and words of help."""
    assert len(COMMANDS) + 1 <= 12 and len(LEAVES) <= 22
    slots = sum(len(list_options(parser)) for parser in LEAVES.values())
    assert slots + len(list_options(build_parser(None))) <= 225
    words = [len(parser.format_help().split()) for parser in [build_parser(None), *LEAVES.values()]]
    assert sum(words) <= 6_500


@pytest.mark.parametrize("words", LEAVES)
def test_help_of_a_command(run, words):
    parser = LEAVES[words]
    short, whole = run(f"{words} -h").out, run(f"{words} --help").out
    assert short == make_short_help(parser) and run(f"help {words}").out == whole
    assert len(short.splitlines()) <= 30 and short.startswith(f"usage: acerl-np {words} ")
    assert short.split("examples:")[1].count("acerl-np ") - 1 == 3  # the last line names --help
    titles = [x.title for x in parser._action_groups if x._group_actions]
    own = [title for title in titles if title in GROUPS]
    assert own == [title for title in GROUPS if title in own]
    assert set(titles) - {*own} <= {"options", "positional arguments"}
    for option in list_options(parser):
        shown = "/".join(option.option_strings)
        assert shown in short and option.option_strings[-1] in whole
        assert (option.help and option.nargs is None) or option.nargs == 0, shown
        assert any(option in x._group_actions for x in parser._action_groups if x.title in own)


def test_an_option_has_one_short_name_and_kind_everywhere():
    found = {}
    for parser in LEAVES.values():
        for option in list_options(parser):
            found.setdefault(option.option_strings[-1], set()).add(tuple(option.option_strings))
    assert {name: own for name, own in found.items() if len(own) > 1} == {}
    short = [own for some in found.values() for own in some if len(own) > 1]
    flags = {flag for own in short for flag in own[:-1]}
    assert flags == {"-o", "-j", "-n"} and len(short) == 3


CODE = """
import sys
from acerl_np.commands.main import main
assert main({words}) == 0
print([name for name in ("numba", "scipy") if name in sys.modules])
"""


def test_help_imports_neither_numba_nor_scipy():
    """Of all commands in one process."""
    words = [[*own.split(), "--help"] for own in LEAVES]
    lines = [CODE.format(words=own) for own in (["--help"], *words)]
    found = subprocess.run(
        [sys.executable, "-c", "".join(lines)], capture_output=True, text=True, check=True
    )
    told = [line for line in found.stdout.splitlines() if line.startswith("[]")]
    assert len(told) == len(LEAVES) + 1


def test_words_of_all_commands_stand_anywhere(run):
    assert {flag for option in GLOBAL for flag in option.flags} == {
        *("-q", "--quiet", "-v", "--verbose", "--trust-code")
    }
    plain = run("list rules")
    for words in ("list rules -v", "-v list rules"):
        found = run(words)
        assert found.out == plain.out and "NumPy" in found.err and plain.err == ""
    assert "Traceback" not in run("list nothing", 2).err
    assert run("-V").out == run("--version").out != ""
    assert "acerl-np floor import: error: " in run("floor import", 2).err


def test_shells_complete_commands_and_options(run, monkeypatch):
    pytest.importorskip("shtab")
    script = run("--print-completion bash").out
    for word in ("evaluate", "--lookahead", "--magnitude", "bound"):
        assert word in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert "evaluate___on_COMPGEN=_shtab_compgen_files" in script
    assert (
        "--print-completion: read cmd; expected one of bash" in run("--print-completion cmd", 2).err
    )
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "pip install 'acerl_np[completion]'" in run("--print-completion bash", 2).err
