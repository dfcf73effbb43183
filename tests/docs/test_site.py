"""Test the site that `make docs` builds: its pages fetch nothing from other sites.

The tests of the site are skipped if it is not built. `list_outside_addresses` itself is always
tested.
"""

from __future__ import annotations

import importlib.util
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"

# Element whose address a browser fetches without a click -> the attribute with the address.
FETCHED = dict.fromkeys(
    ("script", "img", "iframe", "source", "audio", "video", "embed", "input", "track"), "src"
)
FETCHED |= {"object": "data", "link": "href", "image": "href"}


class _AddressReader(HTMLParser):
    """Collect the addresses that a browser fetches for the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add the addresses of one element."""
        values = dict(attrs)
        address = values.get(FETCHED.get(tag, ""))
        if address:
            self.addresses.append(address)
        # An entry of srcset is an address and a size: "a.png 2x".
        for entry in (values.get("srcset") or "").split(","):
            if entry.strip():
                self.addresses.append(entry.split()[0])
        self.addresses += _find_style_addresses(values.get("style") or "")


def list_outside_addresses(text: str) -> list[str]:
    """Return the addresses on other sites that a browser fetches for a page of HTML."""
    reader = _AddressReader()
    reader.feed(text)
    styles = "\n".join(re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL))
    addresses = reader.addresses + _find_style_addresses(styles)
    return [address for address in addresses if re.match(r"\s*(https?:)?//", address)]


def _find_style_addresses(text: str) -> list[str]:
    """Return the addresses in a style sheet: those of url(...) and @import."""
    urls = re.findall(r"url\(\s*['\"]?([^'\")]+)", text)
    imports = re.findall(r"@import\s+['\"]([^'\"]+)", text)
    return urls + imports


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://a.b/c.js"></script>',
        '<link rel="stylesheet" href="//a.b/c.css">',
        "<img src=http://a.b/c>",
        "<style>@import 'https://a.b/c.css';</style>",
        "<p style='background: url(https://a.b/c.png)'>",
        '<img src="x.png" srcset="x.png 1x, https://a.b/c 2x">',
    ],
)
def test_an_address_on_another_site_is_found(text: str) -> None:
    assert len(list_outside_addresses(text)) == 1


def test_links_and_addresses_on_this_site_are_allowed() -> None:
    text = '<a href="https://a.b">a link</a><img src="data:image/png;base64,AA"><img src="c.png">'
    assert list_outside_addresses(text) == []


@pytest.fixture(scope="module")
def site() -> Path:
    """Return the folder of the built site."""
    if not importlib.util.find_spec("sphinx"):
        pytest.skip("Sphinx is missing: make docs")
    if not (SITE / "index.html").exists():
        pytest.skip("The site is not built: make docs")
    return SITE


def test_no_page_fetches_anything_from_another_site(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert not list_outside_addresses(page.read_text("utf-8")), page
    for sheet in site.rglob("*.css"):
        for address in _find_style_addresses(sheet.read_text("utf-8")):
            # The start of an address on another site is "https://" or "//".
            assert "//" not in address.split(",")[0][:8]


def test_no_script_fetches_anything_from_another_site(site: Path) -> None:
    for script in site.rglob("*.js"):
        text = script.read_text("utf-8", errors="replace")
        assert not re.search(r"(?:fetch|import|importScripts)\(\s*['\"`]https?:", text), script


def test_the_page_of_results_links_to_the_gallery(site: Path) -> None:
    results = (site / "results.html").read_text("utf-8")
    assert "<h1>All results" in results
    assert 'href="gallery.html"' in results
    assert '<div id="app">' in (site / "gallery.html").read_text("utf-8")


def test_formulas_are_mathml_without_a_script(site: Path) -> None:
    text = (site / "families" / "noise.html").read_text("utf-8")
    assert "<math " in text
    assert not re.search(r"<script[^>]*mathjax", text, re.IGNORECASE)


def test_every_notebook_can_be_downloaded(site: Path) -> None:
    sources = sorted((SITE.parents[1] / "notebooks").glob("*.md"))
    assert len(sources) > 10
    for source in sources:
        page = (site / "notebooks" / f"{source.stem}.html").read_text("utf-8")
        assert re.search(rf'href="{source.stem}\.ipynb"', page), source
        notebook = json.loads((site / "notebooks" / f"{source.stem}.ipynb").read_text("utf-8"))
        cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        # Cells may begin with options such as ":tags: [hide-output]".
        pattern = r"^```\{code-cell\}\n(?::[\w-]+:[^\n]*\n)*(.*?)^```$"
        code = re.findall(pattern, source.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        assert ["".join(cell).strip() for cell in cells] == [cell.strip() for cell in code]


def test_the_gallery_shows_and_opens_every_figure(site: Path) -> None:
    text = (site / "results.html").read_text("utf-8")
    results = SITE.parents[2] / "results"
    for figure in sorted(results.glob("*/*.png")):
        name = f"results/{figure.parent.name}/{figure.name}"
        thumbnail = f"results/{figure.parent.name}/small-{figure.name}"
        assert f'<a href="{name}"><img loading="lazy" src="{thumbnail}"' in text
        assert (site / thumbnail).stat().st_size < (site / name).stat().st_size


def test_every_page_with_code_loads_the_copy_buttons(site: Path) -> None:
    for name in ("index.html", "faq.html", "notebooks/channel.html"):
        assert "copybutton.js" in (site / name).read_text("utf-8")
