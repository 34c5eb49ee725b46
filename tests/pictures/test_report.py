"""Report pages: one file, good in a browser and on paper, with what was said, and figures that are right."""

import math
import re

import numpy as np
import pytest
from browser import open_browser, skip_without_browser

import acerl_np
from acerl_np.evaluation.left_out import describe_left_out
from acerl_np.pictures.report import draw_dots, write_page
from acerl_np.support.report import Html, render_table

EVIL = "<script>alert('&')</script>"


def test_dots_stand_where_values_are():
    picture = draw_dots(["a", EVIL], {"own": [0.0, 30.0], "near": [math.nan, 15.0]}, EVIL)
    own = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)[:2]
    [near] = re.findall(r'<path d="M([\d.]+),([\d.]+)m-5', picture)[:-1]  # the last is the legend's
    (x, zero), (y, top) = np.array(own, float)
    assert zero > top and x < y == float(near[0])
    assert float(near[1]) == pytest.approx((zero + top) / 2.0, abs=0.1)
    assert [int(x) for x in re.findall(r'end">(\d+)<', picture)] == [0, 10, 20, 30]
    assert draw_dots(["a"], {"own": [math.nan], "bound": [math.inf]}, "x").count("<title>own") == 1
    assert "<script" not in picture and picture.count("&lt;script") >= 3


def test_what_the_model_leaves_out_here():
    """Of a line A - B - C and a way back C to A, only A to C leads through a station, B."""
    sites = [{"id": x, "x": 0, "y": 0, "kind": "station"} for x in "ABC"]
    edges = [{"a": "A", "b": "B", "length": 5}, {"a": "B", "b": "C", "length": 5}]
    edges.append({"a": "C", "b": "A", "length": 3, "one_way": True})
    floor = {"format": 1, "sites": sites, "edges": edges}
    floor["vehicles"] = [{"id": "v", "speed": 1.0, "start": "A"}]
    layout = acerl_np.Layout.from_dict(floor)
    pairs = [("A", "C"), ("C", "A"), ("A", "B"), ("B", "C")]
    rows = [
        {"task": f"t{k}", "pickup": a, "delivery": b, "arrival_time": k, "expiry_time": 60}
        for k, (a, b) in enumerate(pairs)
    ]
    told = describe_left_out([acerl_np.Instance.from_rows("r", layout, rows)])
    assert "2 of 3 lanes are driven in both directions, and 25% of the loaded trips" in told[0]
    assert told[1] == "Handling times: none are given, so loading and unloading take no time."
    rows = [{**row, "handling_time": 12.5} for row in rows]
    told = describe_left_out([acerl_np.Instance.from_rows("r", layout, rows)])
    assert told[1] == "Handling times: as given, 12.5 s a task in the mean."
    met = acerl_np.Instance.from_rows("r", layout.with_traffic("lane"), rows)
    assert describe_left_out([met])[0].startswith(
        "Traffic: vehicles meet: 1 of 3 sites of stations lie aside, 1 of all 3, headway 3 s. 2 of 3 lanes"
    )


def write(path):
    table = render_table(["policy", "late"], [[EVIL, "1.0"], ["nearest", "2.0"]], "html")
    dots = draw_dots([f"shift-{k}" for k in range(60)], {"policy": range(60)}, "late")
    parts = {f"Figures {EVIL}": [table, dots, f"one\n{EVIL}"]}
    write_page(path, f"Verdict {EVIL}", "better than nearest\nby 5.5", parts)


def test_a_page_holds_no_markup_of_others(tmp_path):
    write(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page and "http:" not in page and "https:" not in page
    assert "default-src 'none'" in page and isinstance(render_table(["a"], [["1"]], "html"), Html)
    write(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


@pytest.mark.browser
def test_a_page_fits_screens_and_paper(tmp_path):
    skip_without_browser()
    write(tmp_path / "report.html")
    with open_browser(tmp_path / "profile") as chrome:
        for width in (1300, 400):
            chrome.set_window_size(width, 900)
            chrome.get((tmp_path / "report.html").as_uri())
            wide = chrome.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0
            assert "by 5.5" in chrome.find_element("class name", "first").text
            assert len(chrome.find_elements("css selector", "svg circle")) == 61
        paper = chrome.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        assert len(paper["data"]) > 1000
        assert chrome.get_log("browser") == []
