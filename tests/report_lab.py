"""Reports of fabricated runs, and a browser that opens them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from patience import PATIENCE_S
from report_example import example, judgement, large
from served_example import arrivals, asked_only, handshakes
from tollbar.report import html


@dataclass(frozen=True, slots=True)
class Pages:
    """Reports, written once for all tests."""

    small: Path
    large: Path
    served: Path


def written(folder: Path) -> Pages:
    """Write all reports into a folder."""
    found = Pages(folder / "small.html", folder / "large.html", folder / "served.html")
    html.write(example(), found.small)
    html.write(large(), found.large)
    html.write(judgement([handshakes(), arrivals(), asked_only()]), found.served)
    return found


def started(profile: Path) -> Iterator[webdriver.Chrome]:
    """Yield a browser without a network."""
    program, driver = shutil.which("chromium") or shutil.which("chrome"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.fail("Chromium or its driver is missing: install the packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={profile}",
        # The discard port: requests to the network are refused, and appear in the log.
        "--proxy-server=127.0.0.1:9",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    # With busy cores a page takes minutes.
    found.command_executor.client_config.timeout = 600
    yield found
    found.quit()


def open_page(browser: webdriver.Chrome, path: Path, *, width: int = 1300, dark: bool = False) -> None:
    """Open a page with empty logs, and wait until it is drawn."""
    for log in ("browser", "performance"):
        browser.get_log(log)
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(path.as_uri())
    wait(browser)


def wait(browser: webdriver.Chrome) -> None:
    """Wait until all visible charts are drawn."""
    deadline = time.monotonic() + PATIENCE_S
    ready = None
    while not ready and time.monotonic() < deadline:
        ready = browser.execute_script("return document.documentElement.dataset.ready")
        time.sleep(0.05)
    assert "true" == ready


def requests_of(browser: webdriver.Chrome) -> list[str]:
    """Return the addresses that the page has requested."""
    sent: list[str] = []
    for entry in browser.get_log("performance"):
        message: dict[str, Any] = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            sent.append(message["params"]["request"]["url"])
    # The browser's own new tab is still loading when the first page is opened.
    return [url for url in sent if not url.startswith(("data:", "blob:", "chrome:"))]
