"""Draw docs/report.png: the top of the report that `fastmix demo` writes.

``python docs/report_picture.py`` runs the demonstration and opens its report in Chromium, which
`make browser` installs.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from fastmix.cli.demo import run_demo


def main() -> None:
    """Fit, open and save."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = run_demo(out=Path(folder) / "demo")["report"]
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 940, "height": 900}, device_scale_factor=1.5)
        page.goto(Path(report).as_uri())
        table = page.locator("h2", has_text="Regression table").bounding_box()
        assert table is not None
        clip = {"x": 0, "y": 0, "width": 940, "height": table["y"] - 8}
        path = Path(__file__).with_name("report.png")
        page.screenshot(path=path, clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
