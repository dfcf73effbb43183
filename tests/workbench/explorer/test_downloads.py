"""Test that a page saves the certified mechanism: its whole law, in exact numbers."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from bench.chromium import Chromium
from tests.workbench.explorer.test_chromium import (
    check_clean,
    open_settled,
    wait_for_files,
)
from workbench.cli import main
from workbench.explorer.given import first_example
from workbench.explorer.page import build_audit_page, build_design_page
from workbench.explorer.server import Server
from workbench.explorer.tasks import Tasks
from workbench.pipeline.registry import list_families
from workbench.privacy.loading import read_mechanism_file

# A request whose picture omits 18 of 55 masses.
PARTLY_DRAWN = {"sensitivity": "1", "clamp": "0..50", "epsilon": "0.5", "delta": "1e-6"}

# Name of a family that certifies -> the options of a request.
REQUESTS = {family.name: first_example(family) for family in list_families() if family.certifies}
REQUESTS["noise"] = PARTLY_DRAWN


def save_law(figure: dict[str, Any], folder: Path) -> Path:
    """Write the table of a figure as the page saves it, and return its path."""
    text = io.StringIO()
    rows = [figure["table"]["heads"], *figure["table"]["rows"]]
    csv.writer(text, lineterminator="\n").writerows(rows)
    path = folder / "law.csv"
    path.write_text(text.getvalue())
    return path


def find_law_figure(page: str) -> dict[str, Any]:
    """Return the figure of the law: an audit page has sections, a design page has an export."""
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    if "export" in data:
        return data["export"]["view"]["figures"][0]
    return next(
        part for section in data["sections"] for part in section["parts"] if "table" in part
    )


@pytest.mark.parametrize("name", REQUESTS)
def test_the_saved_law_has_the_privacy_of_the_certificate(tmp_path: Path, name: str) -> None:
    view = Tasks().run("certify", {"family": name, "given": REQUESTS[name]})
    certificate = tmp_path / "certificate.json"
    certificate.write_text(view["certificate"])
    checked = wb.check(certificate)
    saved_mechanism = read_mechanism_file(save_law(view["figures"][0], tmp_path)).with_neighbours()
    epsilon = 1  # A notion without an ε is audited at any ε, the same for both mechanisms.
    if checked.claim.is_epsilon_delta:
        epsilon = checked.claim.values["epsilon"]
    certified_audit = wb.audit(checked.mechanism, epsilon)
    saved_audit = wb.audit(saved_mechanism, epsilon)
    assert saved_audit.pure_ratio == certified_audit.pure_ratio
    assert saved_audit.dp_delta == certified_audit.dp_delta
    assert saved_audit.holds(checked.claim)


def test_only_a_certified_design_has_the_table_of_its_law() -> None:
    tasks = Tasks()
    first_figure = tasks.run("design", {"family": "noise", "given": PARTLY_DRAWN})["figures"][0]
    # The figure shows a law, whose table is only sent after the proof.
    assert first_figure["law"] is True
    assert "table" not in first_figure
    figure = tasks.run("certify", {"family": "noise", "given": PARTLY_DRAWN})["figures"][0]
    assert figure["note"].startswith("drawn: -18..18, 99.991 % of the mass")
    assert len(figure["labels"]) == 37
    masses = [Fraction(mass) for _, mass in figure["table"]["rows"]]
    assert len(masses) > 37
    assert sum(masses) == 1


def test_pages_of_commands_and_exports_have_the_whole_law(tmp_path: Path) -> None:
    design = wb.design("noise", **PARTLY_DRAWN)
    for page in (
        build_design_page(design),
        build_audit_page(design.mechanism, facts=[], claim=None),
    ):
        saved = read_mechanism_file(save_law(find_law_figure(page), tmp_path))
        assert saved.mechanism == design.mechanism


def test_an_export_has_the_whole_law_of_its_certified_designs() -> None:
    export = Tasks().run(
        "export", {"family": "modulo", "given": {"n": "4", "max_shift": "1", "epsilon": "1"}}
    )
    for view in (export["view"], *export["steps"]):
        figure = view["figures"][0]
        assert ("table" in figure) == view["certified"]


@pytest.mark.parametrize(("epsilon", "min_share"), [("0.1", 0.999), ("0.001", 0.5)])
def test_most_of_a_heavy_tail_is_drawn_and_its_share_is_stated(
    epsilon: str, min_share: float
) -> None:
    """The values that are stored one by one have only 5 % and 0.05 % of the mass."""
    figure = wb.design("noise", sensitivity=1, epsilon=epsilon).mechanism.drawing()
    share = sum(figure["values"])
    assert share > min_share
    assert f"{100 * share:.5g} % of the mass" in figure["note"]


def test_a_law_that_is_drawn_completely_has_no_note() -> None:
    assert wb.design("modulo", n=8, max_shift=3, epsilon=1.5).mechanism.drawing()["note"] == ""


def test_a_reader_saves_the_law_that_was_certified(
    browser: Chromium, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Published mechanisms draw the figure and its buttons again, so all cards must have content.
    page = open_settled(browser, server, {"family": "noise", **PARTLY_DRAWN})
    page.wait("document.querySelector('.hero .badge.proven') && window.view?.certificate")
    mechanism_text = page.js("document.querySelector('[aria-label=\"The mechanism\"]').innerText")
    assert "drawn: -18..18, 99.991 % of the mass" in mechanism_text
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.js("void (document.querySelector('.save').open = true)")
    page.wait("document.querySelector('.save button')")
    page.click("CSV")
    page.click("SVG")
    csv_file = tmp_path / "probability-of-every-noise-value.csv"
    svg_file = csv_file.with_suffix(".svg")
    wait_for_files([csv_file, svg_file])
    assert "drawn: -18..18, 99.991 % of the mass" in svg_file.read_text()
    with pytest.raises(SystemExit):
        main(["audit", str(csv_file), "--epsilon", "0.5", "--json"])
    saved_delta = json.loads(capsys.readouterr().out)["dp_delta"]
    design_audit = wb.audit(wb.design("noise", **PARTLY_DRAWN), Fraction(1, 2))
    assert saved_delta == design_audit.dp_delta.upper <= 1e-6
    check_clean(page)
