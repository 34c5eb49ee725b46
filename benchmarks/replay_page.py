"""The replay page in a browser: its size, the frames a second while it plays, and its screenshots.

    python benchmarks/replay_page.py                     # DMH, and 256 sites, 20 vehicles, 1,000 tasks
    python benchmarks/replay_page.py --screenshot docs --force   # replay-light.png and replay-dark.png

It needs Selenium (in the extra `dev`), Chromium and chromedriver (Debian: chromium, chromium-driver).
Frames are those that `requestAnimationFrame` gives the page while it plays, in Chromium without a window
and without a graphics card.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from larger_floors import make_grid
from script import import_beside, make_parser

import acerl_np
from acerl_np.commands.shared.outputs import declare_outputs
from acerl_np.evaluation.tracing import trace_policy
from acerl_np.pictures.replay import write_replay
from acerl_np.problem.generate import generate_record
from acerl_np.simulation.trace import Trace

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

browser = import_beside("tests", "browser")

SHOWN_AT = 1225
"""Moment of the screenshots, s: a vehicle is broken down, tasks wait, some are late."""


def measure_frames(chrome: Chrome, seconds: float) -> float:
    """Return the frames a second of the open page while it plays."""
    chrome.execute_script("player.seek(player.episode.end / 4); player.setSpeed(5); player.play()")
    time.sleep(1.0)
    count = "return [player.frames, performance.now()]"
    before, started = chrome.execute_script(count)
    time.sleep(seconds)
    after, ended = chrome.execute_script(count)
    assert chrome.execute_script("return player.playing"), "the episode is over too soon"
    return float(1e3 * (after - before) / (ended - started))


def measure_work(chrome: Chrome) -> float:
    """Return how long the page computes and draws for a frame, ms, texts and tables included."""
    script = """
        player.pause();
        const started = performance.now();
        for (let k = 0; k < 200; k++) { player.time += 0.1; player.show(true); }
        return (performance.now() - started) / 200;
    """
    return float(chrome.execute_script(script))


def trace_crowd() -> list[Trace]:
    """Return two episodes on 256 sites with 20 vehicles and 1,000 tasks."""
    floor = make_grid(16, 16, 20)
    record = generate_record(floor, 1000, rate=500.0, name="crowd")
    return [trace_policy("EDD", record), trace_policy("STD", record)]


def trace_dmh() -> list[Trace]:
    """Return two episodes on the bundled floor."""
    record = acerl_np.load_instance("DMH-01")
    return [trace_policy("STD", record), trace_policy("EDD", record)]


def main() -> None:
    """Measure, or take the screenshots."""
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--screenshot", metavar="FOLDER", help="write the two pictures there")
    parser.add_argument("--force", action="store_true", help="replace these pictures")
    arguments = parser.parse_args()
    if browser.CHROMIUM is None or browser.DRIVER is None:
        print("no Chromium or no chromedriver; Debian: apt-get install chromium chromium-driver")
        sys.exit(0 if arguments.quick else 1)
    if arguments.quick:
        arguments.seconds = 0.2
    if arguments.screenshot is not None:
        pictures = [Path(arguments.screenshot) / f"replay-{name}.png" for name in ("light", "dark")]
        declare_outputs(argparse.Namespace(force=arguments.force), pictures, option="--screenshot")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.screenshot is not None:
            take_screenshots(Path(folder), Path(arguments.screenshot))
            return
        floors = {"DMH": trace_dmh} if arguments.quick else {"DMH": trace_dmh, "crowd": trace_crowd}
        for name, trace in floors.items():
            traces = trace()
            for count in (1, 2):
                page = Path(folder) / f"{name}-{count}.html"
                write_replay(traces[:count], page)
                with browser.open_browser(f"{folder}/{name}-{count}") as chrome:
                    browser.emulate(chrome)
                    chrome.get(page.as_uri())
                    rate, work = measure_frames(chrome, arguments.seconds), measure_work(chrome)
                print(
                    f"{name}, {count} of 2: {page.stat().st_size / 1e3:.0f} kB, {rate:.0f} frames a "
                    f"second, {work:.1f} ms of work for a full one"
                )


def take_screenshots(folder: Path, target: Path) -> None:
    """Write one policy in light and two in dark colours."""
    traces = trace_dmh()
    for name, count, height in (("light", 1, 1110), ("dark", 2, 1400)):
        page = folder / f"{name}.html"
        write_replay(traces[:count], page)
        with browser.open_browser(f"{folder}/{name}") as chrome:
            browser.emulate(chrome, height=height)
            chrome.get(page.as_uri())
            if chrome.execute_script("return document.documentElement.dataset.theme") != name:
                chrome.find_element("id", "theme").click()
            chrome.execute_script(f"player.seek({SHOWN_AT})")
            chrome.save_screenshot(str(target / f"replay-{name}.png"))


if __name__ == "__main__":
    main()
