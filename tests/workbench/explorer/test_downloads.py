"""Test that a page saves the certified mechanism."""

from __future__ import annotations

import csv
import io
import json
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from bench.chromium import Chromium
from tests.workbench.explorer.test_chromium import check_clean, opened
from workbench.cli import main
from workbench.explorer.given import first_example
from workbench.explorer.page import build_audit_page, build_design_page
from workbench.explorer.server import Server
from workbench.explorer.tasks import Tasks
from workbench.pipeline.registry import list_families
from workbench.privacy.loading import read_mechanism_file

CUT = {
    "sensitivity": "1",
    "clamp": "0..50",
    "epsilon": "0.5",
    "delta": "1e-6",
}  # The picture omits 18 of 55 masses.
FAMILIES = {kind.name: first_example(kind) for kind in list_families() if kind.certifies} | {
    "noise": CUT
}


def saved(figure: dict[str, Any], folder: Path) -> Path:
    """Return the table of a figure as the page saves it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [figure["table"]["heads"], *figure["table"]["rows"]]
    )
    (folder / "law.csv").write_text(text.getvalue())
    return folder / "law.csv"


def law_of(page: str) -> dict[str, Any]:
    """Return the figure of the law in a page of sections."""
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    return next(
        part for section in data["sections"] for part in section["parts"] if "table" in part
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_the_numbers_of_every_family_keep_the_certified_promise(tmp_path: Path, name: str) -> None:
    view = Tasks().run("certify", {"family": name, "given": FAMILIES[name]})
    certificate = tmp_path / "certificate.json"
    certificate.write_text(view["certificate"])
    proven = wb.check(certificate)
    found = read_mechanism_file(saved(view["figures"][0], tmp_path)).with_neighbours()
    epsilon = proven.claim.values["epsilon"] if proven.claim.is_epsilon_delta else 1
    own, theirs = wb.audit(proven.mechanism, epsilon), wb.audit(found, epsilon)
    assert theirs.pure_ratio == own.pure_ratio
    assert theirs.dp_delta == own.dp_delta
    assert theirs.holds(proven.claim)


def test_numbers_come_with_the_proof_and_not_before() -> None:
    tasks = Tasks()
    first_answer = tasks.run("design", {"family": "noise", "given": CUT})["figures"][0]
    assert first_answer["law"] is True
    assert "table" not in first_answer
    figure = tasks.run("certify", {"family": "noise", "given": CUT})["figures"][0]
    assert figure["note"].startswith("drawn: -18..18, 99.991 % of the mass")
    assert len(figure["labels"]) == 37
    masses = [Fraction(mass) for _, mass in figure["table"]["rows"]]
    assert len(masses) > 37
    assert sum(masses) == 1


def test_pages_of_commands_and_exports_have_the_whole_law(tmp_path: Path) -> None:
    design = wb.design("noise", **CUT)
    for page in (build_design_page(design), build_audit_page(design.mechanism, [], None)):
        assert read_mechanism_file(saved(law_of(page), tmp_path)).mechanism == design.mechanism
    export = Tasks().run(
        "export", {"family": "modulo", "given": {"n": "4", "max_shift": "1", "epsilon": "1"}}
    )
    for view in (export["view"], *export["steps"]):
        figure = view["figures"][0]
        assert ("table" in figure) == view["certified"]


def test_a_heavy_tail_is_drawn_and_what_is_not_is_named() -> None:
    for epsilon, least in (
        ("0.1", 0.999),
        ("0.001", 0.5),
    ):  # The core alone would have 5 % and 0.05 %.
        figure = wb.design("noise", sensitivity=1, epsilon=epsilon).mechanism.drawing()
        share = sum(figure["values"])
        assert share > least
        assert f"{100 * share:.5g} % of the mass" in figure["note"]
    assert wb.design("modulo", n=8, max_shift=3, epsilon=1.5).mechanism.drawing()["note"] == ""


def test_a_reader_saves_the_law_that_was_certified(
    browser: Chromium, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = opened(browser, server, {"family": "noise", **CUT})
    page.wait("document.querySelector('.hero .badge.proven') && window.view?.certificate")
    assert "drawn: -18..18, 99.991 % of the mass" in page.js(
        "document.querySelector('[aria-label=\"The mechanism\"]').innerText"
    )
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.js("void (document.querySelector('.save').open = true)")
    page.wait("document.querySelector('.save button')")
    page.click("CSV")
    page.click("SVG")
    files = [tmp_path / f"probability-of-every-noise-value.{ending}" for ending in ("csv", "svg")]
    end = time.monotonic() + 300  # Only a hang takes so long.
    while (
        not all(file.exists() and file.stat().st_size for file in files) and time.monotonic() < end
    ):
        time.sleep(0.05)
    assert "drawn: -18..18, 99.991 % of the mass" in files[1].read_text()
    with pytest.raises(SystemExit):
        main(["audit", str(files[0]), "--epsilon", "0.5", "--json"])
    delta = json.loads(capsys.readouterr().out)["dp_delta"]
    assert delta == wb.audit(wb.design("noise", **CUT), Fraction(1, 2)).dp_delta.upper <= 1e-6
    check_clean(page)
