"""Test the pages that commands write: of designs, audits, frontiers, and of the gallery.

A page is one HTML file. Its data are JSON: a list of sections, each with parts.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.explorer.figures import make_law_figure, make_profile_figures
from workbench.explorer.given import read_option_values
from workbench.explorer.page import build_audit_page, build_design_page, build_result_page
from workbench.explorer.tasks import Tasks
from workbench.papers.gallery import write_gallery
from workbench.pipeline.registry import get_family

# An address that a browser would fetch: all are forbidden except data in the page itself.
_FETCHED_ADDRESS = re.compile(r"""(src|href)\s*=\s*["'](?!data:)|@import|url\(""")

_DATA = re.compile(
    r'<script type="application/json" id="data"(?P<packed> data-packed)?>(?P<content>.*?)</script>',
    re.S,
)


def read_data(text: str) -> dict[str, Any]:
    """Return the data of a page, after a check that the page fetches nothing."""
    assert not _FETCHED_ADDRESS.search(re.sub(r"<script.*?</script>", "", text, flags=re.S))
    match = _DATA.search(text)
    assert match is not None
    content: Any = match["content"]
    if match["packed"]:
        content = zlib.decompress(base64.b64decode(content))
    data: dict[str, Any] = json.loads(content)
    return data


def read_parts(text: str) -> list[dict[str, Any]]:
    """Return the parts of all sections of a page."""
    return [part for section in read_data(text)["sections"] for part in section["parts"]]


def find_series(figure: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the series of a figure with a name."""
    return next(series for series in figure["series"] if series["name"] == name)


def compute_type_ii_error(p: list[float], q: list[float], alpha: float) -> float:
    """Return the minimal type II error of a test of P against Q with the type I error α.

    By Neyman and Pearson the test rejects the outputs with the largest q/p first.
    """
    ratios = [q[k] / p[k] if p[k] else float("inf") for k in range(len(p))]
    remaining_alpha = alpha
    beta = 1.0
    for k in sorted(range(len(p)), key=lambda k: ratios[k], reverse=True):
        # The share of output k that is rejected.
        share = min(1.0, remaining_alpha / p[k]) if p[k] else 1.0
        remaining_alpha -= share * p[k]
        beta -= share * q[k]
    return beta


NOISE = wb.ModuloNoise(n=4, max_shift=1)


def test_a_design_page_has_the_facts_the_law_and_the_objective() -> None:
    design = wb.design(NOISE, epsilon=1, delta=0.1)
    view = read_data(build_design_page(design))["export"]["view"]
    names = {label for label, _ in design.facts()}
    assert {label for label, _ in view["facts"]} == names
    (bars,) = view["figures"]
    assert bars["values"] == design.mechanism.pmf.tolist()
    assert view["certificate"] == design.certificate.content().decode()
    assert view["row"]["objective"] == view["objective"] == design.objective


def test_a_design_page_is_the_export_of_its_options() -> None:
    texts = {"n": "4", "max_shift": "1", "epsilon": "1", "delta": "0.1"}
    family = get_family("modulo")
    values = read_option_values(family, texts) | {"check": "certify"}
    design = family.design_request(family.make_request_from_values(values))
    page = read_data(build_design_page(design, texts))["export"]
    export = Tasks().run("export", {"family": "modulo", "given": texts})
    assert page.keys() == export.keys()
    assert page["along"].keys() == export["along"].keys() == {"epsilon", "delta"}
    assert page["view"]["certificate"] == export["view"]["certificate"]
    assert len(page["steps"]) == len(export["steps"])


def test_the_drawn_profile_is_the_exact_one() -> None:
    design = wb.design(NOISE, epsilon=1, delta=0.1, notion="dp")
    figure, _ = make_profile_figures(design.mechanism, design.claim)
    exact_profile = wb.profile(design.mechanism, "dp")
    series = find_series(figure, "DP δ")
    points = list(zip(series["x"], series["y"], strict=True))
    # Every 17th point is enough.
    for epsilon, delta in points[::17]:
        assert delta == pytest.approx(exact_profile.delta(epsilon), abs=1e-9)
    # Saved numbers are exact, except that they are rounded up.
    for name, epsilon, delta in figure["table"]["rows"]:
        notion = "dp" if name == "DP δ" else "pdp"
        assert delta == wb.profile(design.mechanism, notion).delta(epsilon)


def test_the_drawn_tradeoff_curve_is_that_of_the_best_tests() -> None:
    design = wb.design(NOISE, epsilon=1, delta=0.1, notion="dp")
    _, figure = make_profile_figures(design.mechanism, design.claim)
    curve = find_series(figure, "this mechanism")
    pmf = design.mechanism.pmf.tolist()
    # Neighbouring answers differ by 1 or -1 modulo 5.
    shifted_pmfs = [[pmf[(k - shift) % 5] for k in range(5)] for shift in (1, 4)]
    for alpha, beta in zip(curve["x"], curve["y"], strict=True):
        errors = [compute_type_ii_error(pmf, shifted, alpha) for shifted in shifted_pmfs]
        assert beta == pytest.approx(min(errors), abs=1e-9)


def test_an_audit_without_a_claim_draws_no_request() -> None:
    mechanism = wb.design(NOISE, epsilon=1).mechanism
    parts = read_parts(build_audit_page(mechanism, facts=[("a", "<b>")], claim=None))
    charts = [part for part in parts if part["kind"] == "lines"]
    assert charts
    names = [series["name"] for chart in charts for series in chart["series"]]
    assert not [name for name in names if name.startswith("requested")]


def test_a_frontier_page_under_pure_dp_has_its_plot_and_rows() -> None:
    result = wb.frontier(
        wb.ModuloNoise(n=2, max_shift=1), notion="pure", epsilon="0.5,1", baselines=False
    )
    parts = read_parts(build_result_page(result))
    drawn = [part["title"] for part in parts if part["kind"] == "image" and "<svg" in part["svg"]]
    assert drawn == ["error epsilon"]
    rows = next(part for part in parts if part["kind"] == "numbers")
    assert len(rows["rows"]) == len(result) == 2


def test_a_frontier_page_has_its_plots_and_rows() -> None:
    result = wb.frontier(NOISE, epsilon="0.5:1.5:3", delta=[0, 0.1], notion="pdp")
    parts = read_parts(build_result_page(result))
    drawn = [part["title"] for part in parts if part["kind"] == "image" and "<svg" in part["svg"]]
    assert drawn == ["error epsilon", "error epsilon delta", "error delta", "level curves"]
    rows = next(part for part in parts if part["kind"] == "numbers")
    assert len(rows["rows"]) == len(result)


def test_a_recommendation_is_a_table_and_then_the_plot() -> None:
    result = wb.recommend(answers="0..3", max_shift=1, epsilon=1)
    parts = read_parts(build_result_page(result))
    # The guarantee of the best class, a text and its limits, follows the comparison.
    kinds = ["comparison", "text", "facts", "cells", "facts", "numbers"]
    assert [part["kind"] for part in parts] == kinds
    comparison, _, _, outputs, commands, _ = parts
    # Five columns fit on a printed page.
    assert len(outputs["heads"]) == 5
    losses = [(row["class"], row["objective"]) for row in comparison["rows"]]
    assert losses == [(row["class"], row["objective"]) for row in result]
    assert [text for _, text in commands["rows"]] == [
        row["command"] for row in result if row["command"]
    ]


def test_a_recommendation_of_a_range_has_no_empty_table_and_is_brief_in_a_notebook() -> None:
    result = wb.recommend(range="0..1", epsilon=1, loss="absolute")
    tables = [part for part in read_parts(build_result_page(result)) if part["kind"] == "cells"]
    # The table of what the mechanisms publish.
    assert [part.get("look") for part in tables] == ["stacked"]
    heads = result._repr_html_().split("</thead>")[0]
    assert [head.split("<")[0] for head in heads.split("<th>")[1:]] == [
        "class", "objective", "bound", "certified", "notes",
    ]  # fmt: skip


def test_the_law_of_a_quantizer_is_drawn_as_lines_over_the_input() -> None:
    quantizer = wb.design(wb.Quantization(bins=[-3, 3]), epsilon=1).mechanism
    figure = make_law_figure(quantizer)
    assert figure is not None
    for output, series in enumerate(figure["series"]):
        for x, probability in zip(series["x"], series["y"], strict=True):
            # A line is interrupted where x is NaN.
            if not math.isnan(x):
                assert probability == pytest.approx(float(quantizer.law(x)[output]))
    assert len(figure["series"]) == 2


def test_the_law_of_a_channel_is_drawn_as_a_heat_map() -> None:
    heat = make_law_figure(wb.Channel.from_rows([[3, 1], [1, 3]]))
    assert heat is not None
    assert heat["values"].tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_the_gallery_has_the_picture_the_data_and_the_comparisons_of_an_artifact(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "modulo-noise"
    folder.mkdir()
    record = {
        "name": "fig1",
        "title": "A <figure>",
        "caption": "Its caption.",
        "figure": True,
        "comparisons": [
            {
                "what": "f(0)",
                "place": "Fig. 1",
                "printed": 0.5,
                "ours": 0.51,
                "difference": 0.01,
                "verdict": "DIFFERS",
                "remark": "",
                "tolerance": 0.001,
                "expected": True,
                "explained": True,
                "surprising": True,
            }
        ],
    }
    (folder / "fig1.json").write_text(json.dumps(record))
    (folder / "fig1.csv").write_text("x,y\n1,2\n")
    (folder / "fig1.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    write_gallery(tmp_path)
    parts = read_parts((tmp_path / "index.html").read_text("utf-8"))
    assert [part["svg"] for part in parts if part["kind"] == "image"] == [
        "<svg xmlns='http://www.w3.org/2000/svg'/>"
    ]
    assert [part["rows"] for part in parts if part["kind"] == "numbers"] == [[["1", "2"]]]
    (table,) = [part for part in parts if part["kind"] == "cells"]
    assert table["rows"][0][2:6] == [0.5, 0.51, 0.01, "DIFFERS"]


def test_the_stored_gallery_shows_every_picture_of_the_stored_results() -> None:
    results = Path(__file__).parents[3] / "results"
    pictures = [
        part["svg"]
        for part in read_parts((results / "index.html").read_text("utf-8"))
        if part["kind"] == "image"
    ]
    records = [
        json.loads(path.read_text("utf-8"))
        for path in results.glob("*/*.json")
        if path.name != "errata.json"
    ]
    assert len(pictures) == sum(record["figure"] for record in records)


def test_a_design_that_reaches_its_time_limit_is_noted_as_not_proven() -> None:
    given = {
        "n": "60",
        "max_shift": "7",
        "epsilon": "0.7",
        "delta": "0.13",
        "notion": "pdp",
        "loss": "squared",
        "time_limit": "0.3",
    }
    view = Tasks().run("design", {"family": "modulo", "given": given})
    assert view["note"].startswith("Not proven optimal: ")
    assert ["note", view["note"]] in view["facts"]
