"""A Chromium without a window, for tests of pages; nothing is downloaded."""

import contextlib
import importlib.util
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

FLAGS = ["headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"]
FLAGS += ["disable-background-networking", "disable-component-update", "disable-sync"]

MISSING = [
    *(["pip install selenium"] if importlib.util.find_spec("selenium") is None else []),
    *(["apt-get install chromium"] if CHROMIUM is None else []),
    *(["apt-get install chromium-driver"] if DRIVER is None else []),
]


def skip_without_browser():
    """Leave out the module that calls this if something is missing, in one line of the summary."""
    if MISSING:
        reason = f"pages are not tested in a browser; install: {', '.join(MISSING)}"
        pytest.skip(reason, allow_module_level=True)


@contextlib.contextmanager
def open_browser(profile):
    """Yield a Chromium that keeps its files in the folder `profile`, which is new."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options, Service(DRIVER))
    try:
        yield chrome
    finally:
        chrome.quit()


def emulate(chrome, width=1400, height=900, **features):
    """Set the page's size and media features such as prefers_color_scheme="dark"."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chosen = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": chosen})


def ask(chrome, words, *arguments):
    """The value of an expression on the page."""
    return chrome.execute_script(f"return {words}", *arguments)
