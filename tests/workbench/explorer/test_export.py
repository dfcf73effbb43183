"""Test pages of designs, audits, frontiers and the gallery."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.explorer.figures import make_law_figure, make_profile_figures
from workbench.explorer.page import build_audit_page, build_design_page, build_result_page
from workbench.explorer.tasks import Tasks
from workbench.papers.gallery import write_gallery


def data_of(text: str) -> dict[str, Any]:
    assert not re.search(
        r"""(src|href)\s*=\s*["'](?!data:)|@import|url\(""",
        re.sub(r"<script.*?</script>", "", text, flags=re.S),
    )
    found = re.search(
        r'<script type="application/json" id="data"( data-packed)?>(.*?)</script>', text, re.S
    )
    assert found is not None
    content = zlib.decompress(base64.b64decode(found[2])) if found[1] else found[2]
    data: dict[str, Any] = json.loads(content)
    return data


def parts_of(text: str) -> list[dict[str, Any]]:
    return [part for section in data_of(text)["sections"] for part in section["parts"]]


NOISE = wb.ModuloNoise(n=4, max_shift=1)


def test_a_design_page_has_the_row_and_the_law() -> None:
    design = wb.design(NOISE, epsilon=1, delta=0.1)
    parts = parts_of(build_design_page(design))
    (bars,) = [part for part in parts if part["kind"] == "bars"]
    assert bars["values"] == design.mechanism.pmf.tolist()
    assert bars["proven"]
    (row,) = [dict(part["rows"]) for part in parts if part["kind"] == "numbers"]
    assert row["objective"] == design.objective
    assert [tuple(fact) for fact in parts[0]["rows"]] == design.facts()


def test_profiles_and_trade_offs_are_those_of_the_exact_profile() -> None:
    design = wb.design(NOISE, epsilon=1, delta=0.1, notion="dp")
    mechanism = design.mechanism
    profile, trade = make_profile_figures(mechanism, design.claim)
    exact = wb.profile(mechanism, "dp")
    dp = next(one for one in profile["series"] if one["name"] == "DP δ")
    for epsilon, delta in list(zip(dp["x"], dp["y"], strict=True))[::17]:
        assert delta == pytest.approx(exact.delta(epsilon), abs=1e-9)
    for name, epsilon, delta in profile["table"][
        "rows"
    ]:  # Saved values are never below the exact δ.
        assert delta == wb.profile(mechanism, "dp" if name == "DP δ" else "pdp").delta(epsilon)
    curve = next(one for one in trade["series"] if one["name"] == "this mechanism")
    pmf = mechanism.pmf
    # Neyman and Pearson: the minimal type II error at α of the worst pair.
    best = dict.fromkeys(curve["x"], 1.0)
    for shift in (1, 4):
        p, q = pmf, [pmf[(k - shift) % 5] for k in range(5)]
        order = sorted(range(5), key=lambda k: q[k] / p[k] if p[k] else float("inf"), reverse=True)
        for alpha in best:
            left, beta = alpha, 1.0
            for k in order:
                share = min(1.0, left / p[k]) if p[k] else 1.0
                left, beta = left - share * p[k], beta - share * q[k]
            best[alpha] = min(best[alpha], beta)
    assert curve["y"] == pytest.approx(list(best.values()), abs=1e-9)


def test_an_audit_marks_no_budget_that_is_unknown() -> None:
    mechanism = wb.design(NOISE, epsilon=1).mechanism
    asked = [
        part
        for part in parts_of(build_audit_page(mechanism, [("a", "<b>")], None))
        if part["kind"] == "lines"
    ]
    assert asked
    assert not [
        one for part in asked for one in part["series"] if one["name"].startswith("requested")
    ]


def test_a_frontier_page_has_its_plots_and_rows() -> None:
    result = wb.frontier(NOISE, epsilon="0.5:1.5:3", delta=[0, 0.1], notion="pdp")
    parts = parts_of(build_result_page(result))
    drawn = [part["title"] for part in parts if part["kind"] == "image" and "<svg" in part["svg"]]
    assert drawn == ["error epsilon", "error epsilon delta", "error delta", "level curves"]
    rows = next(part for part in parts if part["kind"] == "numbers")
    assert len(rows["rows"]) == len(result)


def test_a_recommendation_is_a_table_and_then_the_plot() -> None:
    result = wb.recommend(answers="0..3", max_shift=1, epsilon=1)
    parts = [part for part in parts_of(build_result_page(result)) if part["kind"] != "text"]
    assert [part["kind"] for part in parts] == [
        "cells",
        "image",
        "cells",
        "facts",
        "facts",
        "numbers",
    ]
    assert (
        max(len(part["heads"]) for part in parts[:3] if part["kind"] == "cells") == 5
    )  # The page can be printed.
    served = [row for row in result if row["objective"] is not None]
    assert [row[:2] for row in parts[0]["rows"]] == [
        [row["class"], row["objective"]] for row in served
    ]
    assert parts[3]["rows"] == [[row["class"], row["command"]] for row in served]
    assert len(parts[4]["rows"]) + len(served) == len(result)


def test_a_recommendation_of_a_range_has_no_empty_table_and_is_brief_in_a_notebook() -> None:
    result = wb.recommend(range="0..1", epsilon=1, loss="absolute")
    tables = [part for part in parts_of(build_result_page(result)) if part["kind"] == "cells"]
    assert [part.get("look") for part in tables] == [
        "classes",
        None,
    ]  # The classes and the published outputs.
    heads = result._repr_html_().split("</thead>")[0]
    assert [head.split("<")[0] for head in heads.split("<th>")[1:]] == [
        "class", "objective", "bound", "certified", "notes",
    ]  # fmt: skip


def test_laws_of_every_kind() -> None:
    law = wb.design(wb.Quantization(bins=[-3, 3]), epsilon=1).mechanism
    figure = make_law_figure(law)
    assert figure is not None
    for one, output in zip(figure["series"], range(2), strict=True):
        for x, y in zip(one["x"], one["y"], strict=True):
            assert x != x or y == pytest.approx(float(law.law(x)[output]))
    heat = make_law_figure(wb.Channel.from_rows([[3, 1], [1, 3]]))
    assert heat is not None
    assert heat["values"].tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_the_gallery_has_every_figure(tmp_path: Path) -> None:
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
    parts = parts_of((tmp_path / "index.html").read_text("utf-8"))
    assert [part["svg"] for part in parts if part["kind"] == "image"] == [
        "<svg xmlns='http://www.w3.org/2000/svg'/>"
    ]
    assert [part["rows"] for part in parts if part["kind"] == "numbers"] == [[["1", "2"]]]
    (table,) = [part for part in parts if part["kind"] == "cells"]
    assert table["rows"][0][2:6] == [0.5, 0.51, 0.01, "DIFFERS"]


def test_the_stored_gallery_is_that_of_the_stored_results() -> None:
    """results/index.html shows every picture of results/."""
    results = Path(__file__).parents[3] / "results"
    pictures = [
        part["svg"]
        for part in parts_of((results / "index.html").read_text("utf-8"))
        if part["kind"] == "image"
    ]
    records = [
        json.loads(path.read_text("utf-8"))
        for path in results.glob("*/*.json")
        if path.name != "errata.json"
    ]
    assert len(pictures) == sum(record["figure"] for record in records)


def test_what_is_not_proven_says_so() -> None:
    asked = {
        "n": "60",
        "max_shift": "7",
        "epsilon": "0.7",
        "delta": "0.13",
        "notion": "pdp",
        "loss": "squared",
        "time_limit": "0.3",
    }
    view = Tasks().run("design", {"family": "modulo", "given": asked})
    assert view["note"].startswith("Not proven optimal: ")
    assert ["note", view["note"]] in view["facts"]
