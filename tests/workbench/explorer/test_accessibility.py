"""Test the accessibility of the page: the rules of axe, the contrast of texts, and keyboard use.

axe is a JavaScript library that checks a page against accessibility rules. The contrast of texts in
charts is computed here, because axe does not see the shapes below them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bench.chromium import Chromium, Page
from tests.workbench.explorer.test_chromium import IS_IDLE
from workbench.explorer.server import Server

# Either package contains the library.
_AXE_PACKAGES = ("axe_playwright_python", "axe_core_python")
SETTLED = "document.querySelector('main')?.dataset.settled"
IS_QUERY_DRAWN = "document.querySelector('main.home')?.dataset.drawn"
# The smallest contrast of small letters that WCAG 2.2 (1.4.3) allows.
MIN_CONTRAST = 4.5
# Tab must reach every control after at most this many steps.
MAX_TAB_STEPS = 150
DOWNLOAD_SECONDS = 300

# List [text, contrast] of every text in charts, at three points of each text.
#
# The background is found by blending the shapes below the point, from the first opaque one upwards.
# Where no shape is opaque, the contrast is given as 0. The formulas are those of WCAG 2.2.
CONTRASTS = r"""(() => {
  const linearise = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const luminance = (rgb) => rgb.map((v) => linearise(v / 255))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const parseColour = (text) => {
    const numbers = text.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
    const unit = text.startsWith("color(") ? 255 : 1;
    return { rgb: numbers.slice(0, 3).map((v) => v * unit), alpha: numbers[3] ?? 1 };
  };
  const paintOf = (node) => {
    const style = getComputedStyle(node);
    const isSvg = node instanceof SVGElement;
    const text = isSvg ? style.fill : style.backgroundColor;
    const hasNoFill = text === "none" || ["svg", "g", "line"].includes(node.tagName);
    if (hasNoFill) return { rgb: [0, 0, 0], alpha: 0 };
    const { rgb, alpha } = parseColour(text);
    return { rgb, alpha: alpha * (isSvg ? style.fillOpacity * style.opacity : 1) };
  };
  const blend = (rgb, layer) => (
    rgb.map((v, k) => v * (1 - layer.alpha) + layer.rgb[k] * layer.alpha)
  );
  const contrasts = [];
  for (const text of document.querySelectorAll("svg.chart text")) {
    const box = text.getBoundingClientRect();
    if (!box.width) continue;
    for (const share of [0.05, 0.5, 0.95]) {
      const x = box.left + share * box.width;
      const y = box.top + box.height / 2;
      const layers = document.elementsFromPoint(x, y)
        .filter((node) => node.tagName !== "text").map(paintOf)
        .filter((layer) => layer.alpha > 0);
      const opaqueIndex = layers.findIndex((layer) => layer.alpha >= 1);
      if (opaqueIndex < 0) {
        contrasts.push([text.textContent, 0]);
        continue;
      }
      const visibleLayers = layers.slice(0, opaqueIndex + 1).reverse();
      const background = luminance(visibleLayers.reduce(blend, [0, 0, 0]));
      const letters = luminance(parseColour(getComputedStyle(text).fill).rgb);
      const lighter = Math.max(background, letters);
      const darker = Math.min(background, letters);
      contrasts.push([text.textContent, (lighter + 0.05) / (darker + 0.05)]);
    }
  }
  return contrasts;
})()"""

# List [rule, HTML, explanation] of every element that violates a rule of axe, or that axe cannot
# judge. The contrast in charts is left out.
AXE_PROBLEMS = """[...result.violations, ...result.incomplete]
    .flatMap((rule) => rule.nodes.map((node) => [rule.id, node]))
    .filter(([id, node]) => {
        const isInChart = document.querySelector(node.target[0]).closest('svg.chart');
        return id !== 'color-contrast' || !isInChart;
    })
    .map(([id, node]) => [id, node.html.slice(0, 120), node.failureSummary])"""


def find_axe() -> Path | None:
    """Return the file of the library axe. None if no package contains it."""
    for name in _AXE_PACKAGES:
        spec = find_spec(name)
        if spec is not None:
            return Path(str(spec.origin)).with_name("axe.min.js")
    return None


AXE_PATH = find_axe()


def set_theme(page: Page, theme: str) -> None:
    """Show the whole page in the window, in the theme "light" or "dark"."""
    page.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}]
    )
    page.size(1280, max(800, page.js("document.documentElement.scrollHeight")))


def list_axe_problems(page: Page) -> list[Any]:
    """Run axe on the page and return `AXE_PROBLEMS`."""
    assert AXE_PATH is not None
    page.js(f"{AXE_PATH.read_text('utf-8')}; 0")
    page.js(
        "window.result = null; axe.run(document).then((result) => { window.result = result; }); 0"
    )
    page.wait("window.result")
    problems: list[Any] = page.js(AXE_PROBLEMS)
    return problems


# Name -> fragment of the address.
PAGES = {
    "query": "form=numbers&answers=0..6&max_shift=1&epsilon=1&delta=0.01&loss=squared",
    "modulo": "family=modulo&n=8&max_shift=3&epsilon=1.5&delta=0.1",
    "channel": "family=channel&answers=0..5&max_shift=1&loss=absolute&epsilon=1",
    "quantizer": "family=quantizer&bins=-3,-0.5,0.5,3&epsilon=1",
    "infeasible": "family=laplace&epsilon=1&bits=1",
    "wrong": "family=modulo&n=0&epsilon=1",
}


@pytest.fixture(params=PAGES, scope="module")
def page(request: pytest.FixtureRequest, browser: Chromium, server: Server) -> Iterator[Page]:
    """Yield each page of PAGES after it is drawn, or after it shows an error.

    Nothing is computed any more, so no card is drawn again or moved.
    """
    opened_page = browser.open(server.make_address(PAGES[request.param]))
    is_drawn = IS_QUERY_DRAWN if request.param == "query" else SETTLED
    opened_page.wait(f"{is_drawn} || document.querySelector('.status.error')")
    opened_page.wait(IS_IDLE)
    yield opened_page
    browser.close_pages()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_of_charts_have_enough_contrast(page: Page, theme: str) -> None:
    set_theme(page, theme)
    assert [text for text, contrast in page.js(CONTRASTS) if contrast < MIN_CONTRAST] == []


@pytest.mark.skipif(AXE_PATH is None, reason="axe is missing: pip install axe-core-python")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_problem(page: Page, theme: str) -> None:
    set_theme(page, theme)
    assert list_axe_problems(page) == []


# Use without a mouse.


def tab_to(page: Page, condition: str) -> None:
    """Press Tab until the focused element satisfies a condition.

    Every element on the way must be visible and outlined.

    Args:
        page: page in the browser.
        condition: JavaScript expression of `node`, the focused element.
    """
    for _ in range(MAX_TAB_STEPS):
        page.press("Tab")
        is_reached, is_visible = page.js(f"""(() => {{
            const node = document.activeElement;
            const hasOutline = getComputedStyle(node).outlineStyle !== 'none';
            const isOutlined = node.getBoundingClientRect().width > 0 && hasOutline;
            return [Boolean({condition}), node === document.body || isOutlined];
        }})()""")
        assert is_visible, page.js("document.activeElement.outerHTML.slice(0, 200)")
        if is_reached:
            return
    raise AssertionError(f"The focus never reaches {condition}.")


def test_a_query_is_refined_and_a_design_saved_by_keyboard_alone(
    browser: Chromium, server: Server, tmp_path: Path
) -> None:
    page = browser.open(server.make_address(PAGES["query"]))
    page.wait(IS_QUERY_DRAWN)
    tab_to(page, "node.id === 'query-epsilon'")
    # Tab selects the text of the field, so "2" replaces it.
    page.press("2", "Enter")
    page.wait("new URLSearchParams(location.hash.slice(1)).get('epsilon') === '2'")
    page.wait(
        "!document.querySelector('.stale') "
        "&& document.querySelector('.lead')?.textContent.startsWith('Best: ')"
    )
    tab_to(page, "node.textContent.startsWith('optimal integer noise') && node.closest('table')")
    page.press("Enter")
    page.wait(SETTLED)
    tab_to(page, "node.textContent === 'Pin to compare'")
    page.press("Space")
    page.wait("document.querySelector('[aria-label^=Remove]')")
    loss_text = page.js("document.querySelector('.value').textContent")
    tab_to(page, "node.getAttribute('aria-label') === 'epsilon, slider'")
    page.press("ArrowRight", "ArrowRight")
    page.wait(f"document.querySelector('.value').textContent !== '{loss_text}'")
    page.wait("document.querySelector('.hero .badge.proven')")
    assert page.js("document.activeElement.getAttribute('aria-label')") == "epsilon, slider"
    # New cards would draw the opened menu again.
    page.wait(IS_IDLE)
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab_to(page, "node.textContent === 'Save' && node.tagName === 'SUMMARY'")
    page.press("Enter")
    tab_to(page, "node.textContent === 'SVG'")
    page.press("Enter")
    tab_to(page, "node.textContent === 'Save the certificate'")
    page.press("Enter")
    end = time.monotonic() + DOWNLOAD_SECONDS
    while len([*tmp_path.glob("*.svg"), *tmp_path.glob("*.json")]) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert {file.suffix for file in tmp_path.iterdir()} == {".svg", ".json"}
    assert page.complaints == []
    browser.close_pages()


def test_typed_text_and_the_focus_survive_an_update_of_the_page(
    browser: Chromium, server: Server
) -> None:
    page = browser.open(server.make_address(PAGES["modulo"]))
    page.wait(SETTLED)
    page.js("document.querySelector('.inverse input').focus()")
    page.press("7")
    typed_text = page.js("document.querySelector('.inverse input').value")
    drawing_count = page.js("Number(document.querySelector('main').dataset.drawn)")
    page.set_control("option-epsilon", "1.7")
    page.wait(f"Number(document.querySelector('main').dataset.drawn) > {drawing_count}")
    assert page.js("document.activeElement.closest('.inverse') !== null")
    assert page.js("document.activeElement.value") == typed_text
    assert page.complaints == []
    browser.close_pages()
