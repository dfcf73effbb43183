"""Test `wb.explore`: the page in a frame of a notebook and in a file, and its design."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from bench.chromium import Chromium
from workbench.cli import main
from workbench.explorer.notebook import ExplorerPage
from workbench.pipeline.registry import list_families

NOISE = {"n": 8, "max_shift": 3, "epsilon": "1.5"}


@pytest.fixture(scope="module")
def noise_page() -> ExplorerPage:
    """Return the page of a small design, which no test changes."""
    return wb.explore("modulo", **NOISE)


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("modulo", {"shifts": [1, 2], "n": 8, "epsilon": "1/3"}),
        ("modulo", {"n": 4, "max_shift": 1, "epsilon": 1, "directed": True}),
        (
            "channel",
            {"answers": "0..3", "max_shift": 1, "epsilon": 1, "constraints": ["symmetric"]},
        ),
    ],
)
def test_a_page_takes_the_options_of_a_family(family: str, options: dict[str, Any]) -> None:
    page = wb.explore(family, **options)
    assert page.family == family
    assert set(page.given) == set(options)
    assert page.design().certificate is not None


def test_without_a_family_the_first_one_shows_an_example() -> None:
    page = wb.explore()
    assert page.family == list_families()[0].name
    assert page.given


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("modulo", {"n": -1}, "n must be an integer"),
        ("modulo", {"quality": 1}, "option must be one of n,"),
        ("nothing", {}, "family must be one of"),
        (None, {"n": 8}, "family must be given"),
        ("modulo", {"sizes": "3x3", "shifts": [[0, 1]]}, "shifts must be a text"),
        ("modulo", {"n": 8, "max_shift": 1, "epsilon": {1: 0.5}}, "epsilon must be"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(
    family: str | None, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.explore(family, **options)


def test_a_text_that_names_no_file_of_the_family_is_not_read() -> None:
    with pytest.raises(wb.InvalidRequest) as refused:
        wb.explore("modulo", **NOISE, loss="/etc/passwd")
    assert "root:" not in str(refused.value)


def test_a_saved_page_is_the_export_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both pages certify all designs of the slider, however long a design and its proof take.
    for name in ("_SLOW_DESIGN_SECONDS", "_QUICK_PROOF_SECONDS"):
        monkeypatch.setattr(f"workbench.explorer.tasks.{name}", 300.0)
    page = wb.explore("modulo", **NOISE)
    saved = page.save(tmp_path / "page.html")
    arguments = "explore --family modulo --n 8 --max-shift 3 --epsilon 1.5 --export"
    with pytest.raises(SystemExit) as stop:
        main([*arguments.split(), str(tmp_path / "command.html")])
    assert not stop.value.code
    # The runtimes of both pages differ, so they are removed.
    seconds = re.compile(r'"seconds": ?[^,}]+|\d+\.\d+ s\b')
    saved_text = saved.read_text("utf-8")
    command_text = (tmp_path / "command.html").read_text("utf-8")
    assert seconds.sub("", saved_text) == seconds.sub("", command_text)


def test_a_page_is_only_saved_as_html(noise_page: ExplorerPage, tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^path must be named \.html or \.htm\."):
        noise_page.save(tmp_path / "page.pdf")


def test_the_frame_of_a_notebook_contains_the_whole_page(noise_page: ExplorerPage) -> None:
    page = noise_page
    frame = re.fullmatch(
        r'<iframe title="dp-workbench" srcdoc="([^"]*)" [^<>]*></iframe>', page._repr_html_()
    )
    assert frame is not None
    assert html.unescape(frame[1]) == page.html
    assert "srcdoc" not in repr(page)
    assert len(repr(page)) < 200


def test_a_browser_draws_the_page_in_its_frame(browser: Chromium, tmp_path: Path) -> None:
    page = wb.explore("modulo", **NOISE)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>cell</title><body>{page._repr_html_()}", "utf-8")
    earlier_event_count = len(browser.events)
    browser_page = browser.open("about:blank", load=False)
    browser_page.reach(notebook.as_uri())
    frame = "document.querySelector('iframe')?.contentDocument"
    browser_page.wait(f"{frame}?.querySelector('.value')")
    shown_loss = float(browser_page.js(f"{frame}.querySelector('.value').textContent"))
    assert shown_loss == pytest.approx(page.design().objective, abs=1e-8)
    assert browser_page.js(f"{frame}.querySelectorAll('svg').length") > 1
    new_events = browser.events[earlier_event_count:]
    assert not [event for event in new_events if event["method"] == "Runtime.exceptionThrown"]
    local_addresses = ("file:", "data:", "about:", "blob:")
    assert not [url for url in browser_page.requests if not url.startswith(local_addresses)]
    browser.close_pages()


def test_a_kernel_sends_the_frame_as_the_result_of_the_cell() -> None:
    pytest.importorskip("ipykernel", reason="ipykernel is missing: make docs")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=300)
    try:
        client.execute("import workbench as wb; wb.explore('modulo', n=4, max_shift=1, epsilon=1)")
        result = None
        while result is None:
            message = client.get_iopub_msg(timeout=300)
            assert message["msg_type"] != "error", message["content"]
            if message["msg_type"] == "execute_result":
                result = message["content"]["data"]
        assert result["text/html"].startswith("<iframe ")
        assert result["text/plain"].startswith("ExplorerPage(family='modulo'")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
