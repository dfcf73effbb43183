"""Test that the pages of the documentation are correct and complete.

A reader who runs the examples of the README, the pages and the notebooks gets the output that is
printed there. Every public name, every family and every option has its place in the documentation.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

import workbench
from workbench.cli.options import load_entries
from workbench.pipeline.registry import BUILTIN_FAMILIES

sys.path.insert(0, str(Path(__file__).parent))
from pages import ROOT, list_pages, read_blocks, run_page

DOCS = ROOT / "docs"
PAGES_WITH_BLOCKS = [page for page in list_pages() if [*read_blocks(page)]]

# A link to a file, with or without an anchor: "](page.md#anchor)".
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#([^)\s]*))?\)")


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the working directory. Pictures need no display."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


@pytest.mark.parametrize(
    "page", PAGES_WITH_BLOCKS, ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_examples_of_a_page_print_and_draw_what_it_shows(page: Path, empty_folder: Path) -> None:
    run_page(page, empty_folder)
    for drawn_file in empty_folder.glob("*.png"):
        shown_file = DOCS / "figures" / drawn_file.name
        if not shown_file.exists():
            continue
        drawn = matplotlib.image.imread(drawn_file)
        shown = matplotlib.image.imread(shown_file)
        assert drawn.shape == shown.shape
        # Fonts differ between machines, so pictures may differ a little.
        assert np.abs(drawn - shown).mean() < 0.02, f"draw docs/figures/{drawn_file.name} again"


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ workbench audit m.csv --epsilon 1\n...\nexact DP delta      0.25 at epsilon = 1\n```\n",
        "```console\n$ workbench audit nothing.csv --epsilon 1\n```\n",
        "```console\n$ workbench audit m.csv --epsilon 1\nInvalidRequest: no\n```\n",
        "```console\n$ exit 3\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```pycon\n>>> 1 / 3\n0.3333333332222222\n```\n",
        "```pycon\n1 + 1\n```\n",
        "```{code-cell}\n:tags: [x]\nassert False\n```\n",
        "```python\n# x.py\nraise ValueError\n```\n```console\n$ python x.py\n```\n",
    ],
)
def test_a_page_with_a_wrong_example_fails(
    text: str, empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "no page.md"
    matrix = "```text\n# m.csv\n0.75,0.25\n0.25,0.75\n```\n\n"
    pretend_page(page, matrix + text, monkeypatch)
    assert len(list(read_blocks(page))) >= 2
    with pytest.raises(AssertionError):
        run_page(page, empty_folder)


def test_the_last_digits_of_a_shown_float_may_differ(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "no page.md"
    pretend_page(page, "```pycon\n>>> 1 / 3\n0.3333333333333321\n```\n", monkeypatch)
    run_page(page, empty_folder)


def pretend_page(page: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `Path.read_text` return this text for a page that does not exist."""
    read_text = Path.read_text

    def read_this_page(path: Path, *arguments: Any, **options: Any) -> str:
        """Return the text for the page, and read every other file."""
        return text if path == page else read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_this_page)


def test_every_public_name_has_an_entry_in_the_reference() -> None:
    text = "\n".join(path.read_text("utf-8") for path in sorted((DOCS / "api").glob("*.md")))
    entries = re.findall(r"^\.\. (?:auto\w+|py:\w+):: workbench\.(\w+)$", text, re.MULTILINE)
    # This entry is the module of the errors, not a name.
    entries.remove("errors")
    assert sorted(entries) == workbench.__all__


def test_every_family_has_a_complete_page_in_the_index() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    for name in BUILTIN_FAMILIES:
        page = (DOCS / "families" / f"{name}.md").read_text("utf-8")
        assert f"families/{name}\n" in index
        for part in ("## Equation", "## Closed forms", "## A worked example", "## Limits", "](../"):
            assert part in page, f"{name}: {part}"
        assert "![" in page


@pytest.mark.parametrize("page", list_pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for name, anchor in _LINK.findall(page.read_text("utf-8")):
        target = page.parent / name
        assert target.exists(), f"{page.name}: {name}"
        if anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.MULTILINE)
            # The anchor of "Hockey stick" is "hockey-stick".
            anchors = {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}
            assert anchor in anchors, f"{page.name}: {name}#{anchor}"


def test_help_ends_with_the_commands_of_the_cheat_sheet() -> None:
    lines = load_entries()["wishes"]["examples"]
    # Lines in parentheses are explanations.
    commands = [line for line in lines if not line.startswith("(")]
    page = (DOCS / "cheat-sheet.md").read_text("utf-8")
    assert commands == re.findall(r"^\$ workbench (.*)$", page, re.MULTILINE)
    assert len(commands) == 20


@pytest.mark.parametrize(
    "page", sorted((DOCS / "notebooks").glob("*.md")), ids=lambda page: page.stem
)
def test_a_notebook_says_how_to_run_it(page: Path) -> None:
    # The words after the title. `make notebooks` writes this file.
    introduction = page.read_text("utf-8").split("\n\n")[2]
    file = f"docs/notebooks/{page.stem}.ipynb"
    assert (
        introduction
        == f"To run this notebook, run `make notebooks` and open `{file}` in JupyterLab."
    )
    assert f"notebooks/{page.stem}\n" in (DOCS / "index.md").read_text("utf-8")


def test_the_page_of_citations_names_every_title_of_the_citation_file() -> None:
    page = " ".join((DOCS / "citing.md").read_text("utf-8").split())
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    titles = re.findall(r'title: "(.+)"$', citation, re.MULTILINE)
    assert len(titles) == 6
    for title in titles:
        assert f"{{{title}}}" in page
    version = re.search(r"^version: (.+)$", citation, re.MULTILINE)
    assert version
    assert f"version = {{{version.group(1)}}}" in page


def test_the_readme_has_at_most_80_lines() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 80


def test_every_family_has_one_table_of_options() -> None:
    names = []
    for page in DOCS.rglob("*.md"):
        text = page.read_text("utf-8")
        names += re.findall(r"^```\{options\} (.*)$", text, re.MULTILINE)
    assert sorted(names) == sorted(BUILTIN_FAMILIES)
