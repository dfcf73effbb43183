"""What the README, the pages and the notebooks show is what a reader gets; nothing of the public
face is left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import workbench
from workbench.cli.options import load_entries
from workbench.pipeline.registry import BUILTIN_FAMILIES

sys.path.insert(0, str(Path(__file__).parent))
from pages import ROOT, blocks, pages, run_page

DOCS = ROOT / "docs"
RUN = [page for page in pages() if any(True for _ in blocks(page))]
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#([^)\s]*))?\)")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_does_what_it_says(page: Path, place: Path) -> None:
    run_page(page, place)
    for drawn in place.glob("*.png"):
        if (
            DOCS / "figures" / drawn.name
        ).exists():  # the picture in the page is the one that its command draws
            ours, shown = (
                matplotlib.image.imread(file) for file in (drawn, DOCS / "figures" / drawn.name)
            )
            assert ours.shape == shown.shape
            assert np.abs(ours - shown).mean() < 0.02, f"draw docs/figures/{drawn.name} again"


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ workbench audit m.csv --epsilon 1\n...\nexact DP delta      0.25 at epsilon = 1\n```\n",
        "```console\n$ workbench audit nothing.csv --epsilon 1\n```\n",
        "```console\n$ workbench audit m.csv --epsilon 1\nInvalidRequest: no\n```\n",
        "```console\n$ exit 3\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```pycon\n1 + 1\n```\n",
        "```{code-cell}\n:tags: [x]\nassert False\n```\n",
        "```python\n# x.py\nraise ValueError\n```\n```console\n$ python x.py\n```\n",
    ],
)
def test_a_page_that_says_something_else_fails(text: str, place: Path) -> None:
    page = ROOT / "docs" / "no page.md"
    matrix = "```text\n# m.csv\n0.75,0.25\n0.25,0.75\n```\n\n"
    read = Path.read_text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Path,
            "read_text",
            lambda path, *a, **k: matrix + text if path == page else read(path, *a, **k),
        )
        found = list(blocks(page))
        assert len(found) >= 2
        with pytest.raises(AssertionError):
            run_page(page, place)


def test_every_public_name_has_an_entry() -> None:
    text = "\n".join(path.read_text("utf-8") for path in sorted((DOCS / "api").glob("*.md")))
    entries = re.findall(r"^\.\. (?:auto\w+|py:\w+):: workbench\.(\w+)$", text, re.MULTILINE)
    entries.remove("errors")  # the module, for its tree
    assert sorted(entries) == workbench.__all__


def test_every_family_has_a_page_that_the_index_names() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    for name in BUILTIN_FAMILIES:
        page = (DOCS / "families" / f"{name}.md").read_text("utf-8")
        assert f"families/{name}\n" in index
        for part in ("## Equation", "## Closed forms", "## A worked example", "## Limits", "](../"):
            assert part in page, f"{name}: {part}"
        assert "![" in page


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for name, anchor in _LINK.findall(page.read_text("utf-8")):
        target = page.parent / name
        assert target.exists(), f"{page.name}: {name}"
        if anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", words.lower()).replace(" ", "-") for words in headings}
            assert anchor in slugs, f"{page.name}: {name}#{anchor}"


def test_help_ends_with_the_commands_of_the_cheat_sheet() -> None:
    shown = [line for line in load_entries()["wishes"]["examples"] if not line.startswith("(")]
    page = (DOCS / "cheat-sheet.md").read_text("utf-8")
    assert shown == re.findall(r"^\$ workbench (.*)$", page, re.MULTILINE)
    assert len(shown) == 20


def test_the_readme_is_one_screen() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 80


def test_the_tables_of_options_are_of_families() -> None:
    tables = re.compile(r"^```\{options\} (.*)$", re.MULTILINE)
    named = [
        name for page in DOCS.rglob("*.md") for name in tables.findall(page.read_text("utf-8"))
    ]
    assert sorted(named) == sorted(BUILTIN_FAMILIES)
