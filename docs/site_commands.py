"""Pages of the commands, made of the program's parsers."""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path

from site_reference import replace_pages

from acerl_np.commands.main import COMMANDS, build_parser


def write_commands(folder: Path) -> None:
    """Write a page for each command, with its actions below it."""
    pages = {}
    for command, summary in COMMANDS.items():
        parser = _find_actions(build_parser(command))[command]
        pages[command] = "\n".join(_describe(parser, summary, "="))
    replace_pages(folder, pages)


def _find_actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return a parser's commands or actions."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _describe(parser: argparse.ArgumentParser, summary: str, line: str) -> list[str]:
    """Return a section: how it is called, what it does, its options, examples, its actions."""
    actions = _find_actions(parser)
    lines = [parser.prog, line * len(parser.prog), "", *_literal(_usage(parser))]
    lines += _paragraphs(parser.description or f"{_begin(summary)}.")
    lines += [f".. program:: {parser.prog}", ""]
    for group in parser._action_groups:
        shown = [
            action
            for action in group._group_actions
            if action.help != argparse.SUPPRESS
            and "-h" not in action.option_strings
            and not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        ]
        if not shown:
            continue
        lines += [f".. rubric:: {_escape(_begin(group.title or ''))}", ""]
        lines += _paragraphs(group.description or "")
        for action in shown:
            names = ", ".join(_name(action, option) for option in action.option_strings or [""])
            lines += [f".. option:: {names}", "", f"   {_escape(_help(parser, action))}", ""]
    if not actions:
        return lines + _paragraphs(parser.epilog or "")
    for name, summary in _summaries(parser).items():
        lines += _describe(actions[name], summary, "-")
    return lines


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=88, max_help_position=30)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    return re.sub(r"^(usage: | {7})", "", formatter.format_help(), flags=re.MULTILINE)


def _name(action: argparse.Action, option: str) -> str:
    """Return an option with its values as the help shows them: `--out DIR`."""
    formatter = argparse.HelpFormatter("")
    if not option:
        return formatter._format_args(action, formatter._get_default_metavar_for_positional(action))
    if action.nargs == 0:
        return option
    values = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
    return f"{option} {values}"


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return argparse.HelpFormatter(parser.prog)._expand_help(action) if action.help else ""


def _summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the actions' names in their order, each with its line of help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {}


def _paragraphs(text: str) -> list[str]:
    """Return a help text as paragraphs; indented lines, and examples, keep their lines."""
    lines = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        title, _, rest = block.partition("\n")
        if not block.strip():
            continue
        if title.endswith(":") and rest.startswith("  "):
            lines += [_escape(_begin(title)), "", *_literal(textwrap.dedent(rest))]
        elif re.search(r"^ ", block, re.MULTILINE):
            lines += _literal(textwrap.dedent(block))
        else:
            lines += [_escape(" ".join(block.split())), ""]
    return lines


def _literal(text: str) -> list[str]:
    body = [f"   {line}".rstrip() for line in text.strip("\n").splitlines()]
    return [".. code-block:: text", "", *body, ""]


def _begin(text: str) -> str:
    return text[:1].upper() + text[1:]


def _escape(text: str) -> str:
    return re.sub(r"([\\*`_|<>])", r"\\\1", text)
