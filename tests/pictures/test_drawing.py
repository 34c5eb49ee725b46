"""What all pictures share: formats, bytes that repeat, users' settings left aside, names cut."""

from unittest import mock

import pytest

from acerl_np.pictures import drawing
from acerl_np.support.errors import InputError, StorageError

STARTS = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF-"}


def draw(path, text="$x_{$"):
    with drawing.open_figure(path, 3.0, 2.0) as figure:
        axes = figure.add_subplot()
        axes.bar([0, 1], [1, 2], hatch="//")
        axes.set_title(text)


@pytest.mark.parametrize("form", STARTS)
def test_a_picture_is_what_its_name_says_and_repeats(tmp_path, form, monkeypatch):
    draw(tmp_path / f"a.{form}")
    # Neither the day nor the user's settings show.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    import matplotlib

    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 20.0}):
        draw(tmp_path / f"b.{form.upper()}")
        assert matplotlib.rcParams["font.size"] == 20.0
    first, second = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first.startswith(STARTS[form]) and first == second


def test_nothing_is_left_of_a_picture_that_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), drawing.open_figure(tmp_path / "a.png", 1.0, 1.0):
        _ = 1 // 0
    with pytest.raises(StorageError, match="cannot write"):
        draw(tmp_path / "nowhere" / "a.png")
    assert list(tmp_path.iterdir()) == []
    for name in ("a.jpg", "a", ".png", "a.png\n"):
        with pytest.raises(InputError, match=r"\A.*expected a picture's name in png, svg, pdf.*\Z"):
            drawing.check_form(name)


def test_lines_differ_in_more_than_colour():
    looks = [drawing.choose_style(k) for k in range(drawing.MAX_LINES)]
    assert len({(look["linestyle"], look["marker"]) for look in looks}) == drawing.MAX_LINES


def test_names_are_cut_where_they_say_least():
    assert drawing.cut("abcdef", 6) == "abcdef" and drawing.cut("abcdefg", 6) == "abcde…"
    assert drawing.cut("a\nb", 10) == "a\\nb"
    assert drawing.cut_path("runs/three/policy.npz", 30) == "runs/three/policy.npz"
    assert drawing.cut_path("/home/somebody/runs/three/policy.npz", 20) == "…/three/policy.npz"
    assert drawing.cut_path("x" * 50, 10) == "…" + "x" * 9
    # Letters of China, Japan and Korea take the room of two.
    assert drawing.count_letters("ab上海") == 6
    assert drawing.cut("上海上海", 8) == "上海上海" and drawing.cut("上海上海", 7) == "上海上…"
    # Long names go on where they have a joint.
    assert drawing.wrap("tasks-2026-03-02-early", 22) == "tasks-2026-03-02-early"
    assert drawing.wrap("tasks-2026-03-02-early", 12) == "tasks-2026-\n03-02-early"
    assert drawing.wrap("one two three", 8) == "one two\nthree"
    assert drawing.wrap("x" * 25, 10) == "x" * 10 + "\n" + "x" * 9 + "…"


def test_letters_that_the_font_lacks_come_from_another_that_is_installed():
    import matplotlib
    from matplotlib import font_manager

    entries = [font_manager.FontEntry(name=name) for name in ("Z", "Yu Gothic", "SimHei")]
    fonts = mock.patch.object(font_manager.fontManager, "ttflist", entries)
    with fonts, drawing.style_figure(1.0, 1.0):
        assert matplotlib.rcParams["font.family"] == ["DejaVu Sans", "SimHei", "Yu Gothic"]
