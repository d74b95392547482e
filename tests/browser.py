"""A headless Chromium for the tests of pages; `make browser` installs it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

#: Widths of a desktop and a phone.
VIEWPORTS = {"desktop": (1280, 900), "phone": (390, 844)}
#: Both widths, in light and in dark.
SCREENS = [(viewport, scheme) for viewport in VIEWPORTS for scheme in ("light", "dark")]

#: Text that leaves the window or a box that hides it, and labels of one drawing that overlap.
#: Code, tables and formulas may scroll in a box of their own, nothing else.
_CUT = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const scrolls = e => e.matches('pre, .highlight, .scroll, .formula, .table-wrapper, .wide') &&
    ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  const hides = e => ['hidden', 'clip'].includes(getComputedStyle(e).overflowX);
  const unseen = e => e.closest('script, style, [aria-hidden=true]:not(svg), .sr-only, ' +
    '.visually-hidden, .sidebar-drawer, .toc-drawer, .skip-to-content, .headerlink, .announcement');
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || unseen(parent) || !parent.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (!box.width) continue;
      let free = true;
      for (let e = parent; e && e !== document.body; e = e.parentElement) {
        if (e instanceof SVGElement && e.tagName !== 'svg') continue;
        if (scrolls(e)) { free = false; break; }
        const outer = e.getBoundingClientRect();
        if (hides(e) && (box.left < outer.left - 1 || box.right > outer.right + 1))
          found.push('hidden: ' + node.textContent.trim());
      }
      if (free && (box.left < -1 || box.right > innerWidth + 1))
        found.push('outside: ' + node.textContent.trim());
    }
  }
  for (const drawing of document.querySelectorAll('svg')) {
    const labels = [...drawing.querySelectorAll(':scope > text')];
    const boxes = labels.map(label => label.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 3)
        found.push('overlap: ' + labels[i].textContent + ' / ' + labels[i + 1 + j].textContent);
    }));
  }
  return [...new Set(found)];
}"""


@contextmanager
def browser():
    """Start Chromium; yield a function that opens a file and returns its page and messages."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: run `make browser` to test pages"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium: run `make browser` to test pages")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

        def open_file(path, viewport="desktop", scheme="light"):
            for context in started.contexts:
                context.close()
            width, height = VIEWPORTS[viewport]
            size = {"width": width, "height": height}
            page = started.new_context(viewport=size, color_scheme=scheme).new_page()
            messages: list[str] = []
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.on("requestfailed", lambda request: messages.append(request.url))
            page.goto(path.as_uri(), wait_until="load")
            return page, messages

        try:
            yield open_file
        finally:
            started.close()


def faults(page, messages):
    """Return what is wrong with a page: scrolling sideways, text cut, messages of the console."""
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    found = [f"{wide} pixels too wide"] if wide > 0 else []
    return [*found, *page.evaluate(_CUT), *messages]
