"""A headless Chromium for the tests of pages; `make browser` installs it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

#: Widths of a desktop and a phone.
VIEWPORTS = {"desktop": (1280, 900), "phone": (390, 844)}


@contextmanager
def open_page(path, viewport="desktop"):
    """Open a file in Chromium; yield the page and the list of its console errors."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: run `make browser` to test pages"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium: run `make browser` to test pages")
    width, height = VIEWPORTS[viewport]
    errors: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("requestfailed", lambda request: errors.append(request.url))
            page.goto(path.as_uri(), wait_until="load")
            yield page, errors
        finally:
            browser.close()
