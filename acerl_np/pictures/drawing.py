"""What all pictures share: opening and saving a figure, colours, styles; matplotlib is the extra `plot`."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from acerl_np.support.errors import InputError, make_printable, needing
from acerl_np.support.files import MARK, FilePath, write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Style = dict[str, Any]
"""How something is drawn, as matplotlib takes it."""

METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": MARK},
    "svg": {"Date": None, "Creator": MARK},
    "pdf": {"CreationDate": None, "Creator": MARK},
}
FORMATS = tuple(METADATA)

DPI = 120

BLACK, GREY = "#000000", "#767676"
BLUE, SKY, GREEN = "#0072b2", "#56b4e9", "#009e73"
ORANGE, RED, PURPLE = "#e69f00", "#d55e00", "#cc79a7"
"""Colours that people tell apart who see fewer of them (M. Okabe and K. Ito, "Color Universal Design")."""

SETTINGS = {
    **{"font.size": 9.0, "axes.titlesize": 10.0, "axes.labelsize": 9.0, "legend.fontsize": 9.0},
    **{"xtick.labelsize": 8.0, "ytick.labelsize": 8.0, "hatch.linewidth": 0.8},
    **{"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False},
    "axes.titley": 1.0,  # looked for in the axes' surroundings else, which takes its time
    "figure.facecolor": "white",
    # What a fixed seed would be elsewhere: the same picture is the same file.
    "svg.hashsalt": "acerl_np",
    # Names of sites and files are no mathematics.
    "text.parse_math": False,
}

FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC", "Noto Sans JP"),
    *("Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("Droid Sans Fallback", "Microsoft YaHei", "SimHei", "Yu Gothic", "Meiryo", "MS Gothic"),
    *("PingFang SC", "Hiragino Sans GB", "Hiragino Sans", "Apple SD Gothic Neo", "Malgun Gothic"),
    *("IPAexGothic", "IPAGothic", "NanumGothic", "Arial Unicode MS"),
)
"""Where letters of China, Japan and Korea are looked for, the first best; matplotlib's own font has none."""

BESIDE: Style = {"textcoords": "offset points", "fontsize": 8, "ha": "center"}
GROUND: Style = {"facecolor": "white", "edgecolor": "none"}
"""Looks of a text beside a place, and of the ground that lets one be read."""

COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")

MAX_LINES = 14
"""Lines in one picture that can still be told apart."""


def choose_style(k: int) -> dict[str, str]:
    """Return the look of line `k`, from 0 on, as `Axes.plot` takes it; two differ in more than colour."""
    looks = {"color": COLOURS, "linestyle": DASHES, "marker": MARKERS}
    return {name: values[k % len(values)] for name, values in looks.items()}


def check_form(path: FilePath) -> str:
    """Return the format that a picture's name asks for; refuse another ending."""
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise InputError(
            f"{make_printable(str(path))}: ends in '{make_printable(form)}'; expected a picture's name in "
            f"{', '.join(FORMATS)}"
        )
    return form


def check_extra() -> None:
    """Refuse to draw without matplotlib."""
    with needing("matplotlib is not installed; install it with: pip install matplotlib"):
        import matplotlib.figure  # noqa: F401


@contextmanager
def open_figure(
    path: FilePath, width: float, height: float, *, tidy: bool = True
) -> Iterator[Figure]:
    """Open a white figure of so many inches, whatever the user's settings, and write it after the block.

    The name's ending, png, svg or pdf, says in which format; the same drawing gives the same bytes. With
    `tidy` matplotlib finds room for what stands around the axes; else they stay where they are put.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError
        If the ending is another.
    StorageError
        If the picture cannot be written.
    """
    form = check_form(path)
    with style_figure(width, height, tidy=tidy) as figure:
        yield figure
        picture = io.BytesIO()
        # No dates: the same picture is the same file.
        figure.savefig(picture, format=form, dpi=DPI, metadata=METADATA[form])
    write_atomically(path, picture.getvalue())


@contextmanager
def style_figure(width: float, height: float, *, tidy: bool = True) -> Iterator[Figure]:
    """Open a figure as `open_figure`, without writing it: what is drawn in the block has its style."""
    check_extra()
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        installed = {font.name for font in fontManager.ttflist}
        matplotlib.rcParams["font.family"] = ["DejaVu Sans", *(x for x in FONTS if x in installed)]
        warnings.simplefilter("ignore")  # letters that all fonts lack are boxes, which shows
        yield Figure(figsize=(width, height), layout="constrained" if tidy else None)


def count_letters(text: str) -> int:
    """Return how many letters a text is long; those of China, Japan and Korea are as wide as two."""
    return len(text) + sum(east_asian_width(letter) in "WF" for letter in text)


def cut(text: str, most: int) -> str:
    """Return a text of at most so many letters, the end left out, that a picture can show."""
    text = make_printable(text)
    return text if count_letters(text) <= most else f"{_fill(text, most - 1)}…"


def _fill(text: str, most: int) -> str:
    """Return the beginning of a text that is at most so many letters long."""
    return next(text[:k] for k in range(len(text), -1, -1) if count_letters(text[:k]) <= most)


def wrap(text: str, most: int) -> str:
    """Return a text on one line or two of so many letters each; what has no room there is cut.

    The first ends where names have a joint, if there is one in its second half.
    """
    text = make_printable(text)
    if count_letters(text) <= most:
        return text
    line = _fill(text, most)
    joint = max(line.rfind(letter) for letter in " /_-.,:") + 1
    line = line[:joint] if 2 * joint > len(line) else line
    return f"{line.rstrip()}\n{cut(text[len(line) :].lstrip(), most)}"


def cut_path(text: str, most: int) -> str:
    """Return a file's name of at most so many letters, its first folders left out."""
    text = make_printable(text)
    if len(text) <= most:
        return text
    parts = text.split("/")
    for k in range(1, len(parts)):
        end = "/".join(["…", *parts[k:]])
        if len(end) <= most:
            return end
    return f"…{text[len(text) - most + 1 :]}"


def write_title(figure: Figure, text: str) -> None:
    """Write what a picture shows above it, from its left edge on."""
    figure.suptitle(text, fontsize=10, x=0.01, ha="left")


def write_beside(
    axes: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], **look: Any
) -> None:
    """Write a small text so many points beside a place of the axes."""
    axes.annotate(text, at, xytext=shift, **{**BESIDE, **look})
