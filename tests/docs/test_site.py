"""The site that `make docs` builds asks nothing of a network, and holds what its pages promise."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
# elements whose address a browser fetches by itself, and the attributes that hold it
FETCHED = dict.fromkeys(
    ("script", "img", "iframe", "source", "audio", "video", "embed", "input", "track"), "src"
)
FETCHED |= {"object": "data", "link": "href", "image": "href"}


class _Addresses(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in FETCHED and (address := given.get(FETCHED[tag])):
            self.found.append(address)
        self.found += [
            part.split()[0] for part in (given.get("srcset") or "").split(",") if part.strip()
        ]
        self.found += re.findall(r"url\(\s*['\"]?([^'\")]+)", given.get("style") or "")


def outside(text: str) -> list[str]:
    """The addresses of a page that are fetched from elsewhere, those of its stylesheets among them."""
    reader = _Addresses()
    reader.feed(text)
    styles = "\n".join(re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL))
    found = reader.found + _in_style(styles)
    return [address for address in found if re.match(r"\s*(https?:)?//", address)]


def _in_style(text: str) -> list[str]:
    return re.findall(r"url\(\s*['\"]?([^'\")]+)", text) + re.findall(
        r"@import\s+['\"]([^'\"]+)", text
    )


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
def test_what_is_fetched_from_elsewhere_is_seen(text: str) -> None:
    assert len(outside(text)) == 1
    assert (
        outside(
            '<a href="https://a.b">a link</a><img src="data:image/png;base64,AA"><img src="c.png">'
        )
        == []
    )


@pytest.fixture(scope="module")
def site() -> Path:
    if not importlib.util.find_spec("sphinx"):
        pytest.skip("Sphinx is missing: make docs")
    if not (SITE / "index.html").exists():
        pytest.skip("The site is not built: make docs")
    return SITE


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert not outside(page.read_text("utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not [
            address
            for address in _in_style(sheet.read_text("utf-8"))
            if "//" in address.split(",")[0][:8]
        ]


def test_scripts_of_the_site_name_no_other_place(site: Path) -> None:
    for script in site.rglob("*.js"):
        text = script.read_text("utf-8", errors="replace")
        assert not re.search(r"(?:fetch|import|importScripts)\(\s*['\"`]https?:", text), script


def test_the_gallery_stands_beside_the_page_that_names_it(site: Path) -> None:
    results = (site / "results.html").read_text("utf-8")
    assert "<h1>All results" in results
    assert 'href="gallery.html"' in results
    assert '<div id="app">' in (site / "gallery.html").read_text("utf-8")


def test_formulas_are_drawn_by_the_browser(site: Path) -> None:
    text = (site / "families" / "noise.html").read_text("utf-8")
    assert "<math " in text
    assert not re.search(r"<script[^>]*mathjax", text, re.IGNORECASE)
