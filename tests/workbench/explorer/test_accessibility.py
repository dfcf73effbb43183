"""Test the accessibility of the page: axe, the contrast of letters, and use by keyboard only."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bench.chromium import Chromium, Page
from workbench.explorer.server import Server

_SPECS = [
    spec for name in ("axe_playwright_python", "axe_core_python") if (spec := find_spec(name))
]
AXE = Path(str(_SPECS[0].origin)).with_name("axe.min.js") if _SPECS else None
SETTLED = "document.querySelector('main')?.dataset.settled"
LEAST = 4.5  # The contrast of small letters (WCAG 2.2, 1.4.3).

# The ground of letters in a chart is the first opaque shape below them, else paper.
# The position and the contrast of every text, at three points.
CONTRAST = r"""(() => {
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = (parts) => parts.map((v) => linear(v / 255))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const numbers = (text) => text.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
  const parts = (text) => { const found = numbers(text), one = text.startsWith("color(") ? 255 : 1;
    return { rgb: found.slice(0, 3).map((v) => v * one), alpha: found[3] ?? 1 }; };
  const paint = (node) => {
    const style = getComputedStyle(node), svg = node instanceof SVGElement;
    const text = svg ? style.fill : style.backgroundColor;
    if (text === "none" || ["svg", "g", "line"].includes(node.tagName)) return { rgb: [0, 0, 0], alpha: 0 };
    const made = parts(text);
    return { rgb: made.rgb, alpha: made.alpha * (svg ? style.fillOpacity * style.opacity : 1) };
  };
  const found = [];
  for (const text of document.querySelectorAll("svg.chart text")) {
    const box = text.getBoundingClientRect();
    if (!box.width) continue;
    for (const share of [0.05, 0.5, 0.95]) {
      const layers = document.elementsFromPoint(box.left + share * box.width, box.top + box.height / 2)
        .filter((node) => node.tagName !== "text").map(paint).filter((one) => one.alpha > 0);
      const last = layers.findIndex((one) => one.alpha >= 1), under = layers.slice(0, last + 1).reverse();
      if (last < 0) { found.push([text.textContent, 0]); continue; }
      const over = (rgb, one) => rgb.map((v, k) => v * (1 - one.alpha) + one.rgb[k] * one.alpha);
      const ground = under.reduce(over, [0, 0, 0]);
      const [a, b] = [light(ground), light(parts(getComputedStyle(text).fill).rgb)].sort((x, y) => y - x);
      found.push([text.textContent, (a + 0.05) / (b + 0.05)]);
    }
  }
  return found;
})()"""


def looked_at(page: Page, *, dark: bool = False) -> None:
    """Show the whole page in the window, in a theme."""
    theme = "dark" if dark else "light"
    page.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}]
    )
    page.size(1280, max(800, page.js("document.documentElement.scrollHeight")))


def violations(page: Page) -> list[Any]:
    """Return what axe finds or cannot decide, except letters in charts, whose ground it cannot see."""
    assert AXE is not None
    page.js(f"{AXE.read_text('utf-8')}; 0")
    page.js(
        "window.result = null; axe.run(document).then((result) => { window.result = result; }); 0"
    )
    page.wait("window.result", 90)
    kept = """[...result.violations, ...result.incomplete].flatMap((rule) => rule.nodes.map((node) => [rule.id, node]))
        .filter(([id, node]) => id !== 'color-contrast' || !document.querySelector(node.target[0]).closest('svg.chart'))
        .map(([id, node]) => [id, node.html.slice(0, 120), node.failureSummary])"""
    found: list[Any] = page.js(kept)
    return found


PAGES = {
    "query": "form=numbers&answers=0..6&max_shift=1&epsilon=1&delta=0.01&loss=squared",
    "modulo": "family=modulo&n=8&max_shift=3&epsilon=1.5&delta=0.1",
    "channel": "family=channel&answers=0..5&max_shift=1&loss=absolute&epsilon=1",
    "quantizer": "family=quantizer&bins=-3,-0.5,0.5,3&epsilon=1",
    "infeasible": "family=laplace&epsilon=1&bits=1",
    "wrong": "family=modulo&n=0&epsilon=1",
}


@pytest.fixture(params=PAGES, scope="module")
def page(request: pytest.FixtureRequest, browser: Chromium, server: Server) -> Any:
    made = browser.open(server.make_address(PAGES[request.param]))
    wanted = (
        "document.querySelector('main.home')?.dataset.drawn"
        if request.param == "query"
        else SETTLED
    )
    made.wait(f"{wanted} || document.querySelector('.status.error')")
    yield made
    browser.close_pages()


def test_letters_of_charts_can_be_read_in_both_themes(page: Page) -> None:
    for dark in (False, True):
        looked_at(page, dark=dark)
        assert [one for one in page.js(CONTRAST) if one[1] < LEAST] == []


@pytest.mark.skipif(AXE is None, reason="axe is missing: pip install axe-core-python")
def test_axe_finds_nothing_in_both_themes(page: Page) -> None:
    for dark in (False, True):
        looked_at(page, dark=dark)
        assert violations(page) == []


# Use without a mouse.


def tab_to(page: Page, condition: str) -> None:
    """Press Tab until the focused element satisfies a condition. Every stop must be visible."""
    for _ in range(150):
        page.press("Tab")
        held, seen = (
            page.js(f"""(() => {{ const one = document.activeElement, style = getComputedStyle(one);
            const box = one.getBoundingClientRect();
            return [Boolean({condition}), one === document.body || (box.width > 0 && style.outlineStyle !== 'none')];
        }})()""")
        )
        assert seen, page.js("document.activeElement.outerHTML.slice(0, 200)")
        if held:
            return
    raise AssertionError(f"the focus never comes to {condition}")


def test_a_whole_session_by_keyboard_alone(
    browser: Chromium, server: Server, tmp_path: Path
) -> None:
    page = browser.open(server.make_address(PAGES["query"]))
    page.wait("document.querySelector('main.home')?.dataset.drawn")
    tab_to(page, "one.id === 'query-epsilon'")
    page.press("2", "Enter")  # Tab selects the text of the field.
    page.wait("new URLSearchParams(location.hash.slice(1)).get('epsilon') === '2'")
    page.wait(
        "!document.querySelector('.stale') && !document.querySelector('main').textContent.includes('being solved')"
    )
    tab_to(page, "one.textContent === 'integer noise, clamped' && one.closest('table')")
    page.press("Enter")
    page.wait(SETTLED, 90)
    tab_to(page, "one.textContent === 'Pin to compare'")
    page.press("Space")
    page.wait("document.querySelector('[aria-label^=Remove]')")
    before = page.js("document.querySelector('.value').textContent")
    tab_to(page, "one.getAttribute('aria-label') === 'epsilon, slider'")
    page.press("ArrowRight", "ArrowRight")
    page.wait(f"document.querySelector('.value').textContent !== '{before}'")
    page.wait("document.querySelector('.hero .badge.proven')")
    assert page.js("document.activeElement.getAttribute('aria-label')") == "epsilon, slider"
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab_to(page, "one.textContent === 'Save' && one.tagName === 'SUMMARY'")
    page.press("Enter")
    tab_to(page, "one.textContent === 'SVG'")
    page.press("Enter")
    tab_to(page, "one.textContent === 'Save the certificate'")
    page.press("Enter")
    end = time.monotonic() + 300
    while len([*tmp_path.glob("*.svg"), *tmp_path.glob("*.json")]) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert {file.suffix for file in tmp_path.iterdir()} == {".svg", ".json"}
    # Typed text is not lost when the page is updated.
    page.js("document.querySelector('.inverse input').focus()")
    page.press("7")
    typed = page.js("document.querySelector('.inverse input').value")
    drawn = page.js("Number(document.querySelector('main').dataset.drawn)")
    page.set_control("option-epsilon", "1.7")
    page.wait(f"Number(document.querySelector('main').dataset.drawn) > {drawn}")
    assert (
        page.js("document.activeElement.closest('.inverse') && document.activeElement.value")
        == typed
    )
    assert page.complaints == []
    browser.close_pages()
