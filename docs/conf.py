"""Sphinx's settings for the site of these pages: `.ci/docs` builds it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import site_commands
import site_reference

import acerl_np

project = "acerl_np"
author = "acerl_np maintainers"
copyright = author
version = release = acerl_np.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc"]
exclude_patterns = ["_build"]
nitpicky = True
# What other libraries' classes are called; their own pages are not linked, as a build needs no network.
nitpick_ignore_regex = [("py:.*", r"(gymnasium|numpy|concurrent|collections|typing)\..*")]
highlight_language = "none"  # of blocks that name none
smartquotes = False  # two hyphens begin an option
default_role = "py:obj"

# Links to headings are written as a code host names them.
myst_heading_anchors = 4

# Docstrings say types and shapes; signatures are shorter without.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = True

html_theme = "furo"
html_title = f"acerl_np {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

# Pages outside this folder, and the pages of the site that include them.
OUTSIDE = {
    "../instances/README.md": "formats.md",
    "../SECURITY.md": "security.md",
    "../CHANGELOG.md": "changes.md",
    "results/": "results/comparison-train.md",
}


def adapt_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn what only a code host shows well into what the site does."""
    text = source[0]
    for there, here in OUTSIDE.items():
        text = re.sub(rf"\]\({re.escape(there)}(#[\w-]+)?\)", rf"]({here}\1)", text)
    # A link that shows a file's name shows the page's title.
    text = re.sub(r"\[[\w/.-]+\.md\]\(", "[](", text)
    if docname.startswith("results/") and not text.startswith("#"):
        text = f"# {text}"  # tables as `python -m studies` writes them begin with a line, no title
    if docname == "results":
        text += "\n```{toctree}\n:hidden:\n:glob:\n\nresults/*\n```\n"
    source[0] = text


def adapt_part(app: Sphinx, path: Path, parent: str, source: list[str]) -> None:
    """Turn a picture that a page includes with its width into a plain one, whose path is followed."""
    source[0] = re.sub(r'<img src="([^"]+)"[^>]* alt="([^"]*)">', r"![\2](\1)", source[0])


def resolve_public(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Link a class by its public name where its own module is named; leave other words as they are."""
    target = node.get("reftarget", "")
    public = site_reference.find_public_names().get(target)
    if public is not None and node.get("refdomain") == "py":
        return env.get_domain("py").resolve_xref(
            env, node["refdoc"], app.builder, "obj", public, node, content
        )
    if isinstance(node.parent, nodes.classifier | nodes.term):  # a type, which stays plain text
        return nodes.Text(content.astext().rpartition(":")[2].removesuffix("()"))
    return content if node.get("reftype") == "obj" else None


def check_reference(app: Sphinx, env: Any) -> None:
    """Warn of every public name that has no entry; warnings fail the build."""
    entries = env.get_domain("py").objects
    for module, names in site_reference.find_public_modules().items():
        for name in names:
            if f"{module}.{name}" not in entries:
                logging.getLogger(__name__).warning(
                    "reference: %s.%s is public and has no entry", module, name
                )


def write_pages(app: Sphinx) -> None:
    """Write what is made of the code."""
    site_reference.write_reference(HERE / "reference")
    site_commands.write_commands(HERE / "commands")


def setup(app: Sphinx) -> None:
    """Connect the steps above to the build."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", adapt_page)
    app.connect("include-read", adapt_part)
    app.connect("missing-reference", resolve_public)
    app.connect("env-check-consistency", check_reference)
