"""The class Result (rows, table, plots, files, notebook) and the functions that return a Result."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

import workbench as wb
from workbench.io.result import Result, encode_csv_table, encode_tex_table, make_table
from workbench.sweeps.export import _write_csv


def make_squares(count: int = 3, **fields: Any) -> Result:
    """Return a result with rows x, x² for x < count. Its plot "empty" is never drawn."""

    def draw(table: pd.DataFrame) -> Any:
        def line() -> Figure | None:
            if len(table) < 2:
                return None
            figure = Figure()
            figure.subplots().plot(table["x"], table["y"])
            return figure

        return {"empty": lambda: None, "line": line}

    rows = [{"x": x, "y": float(x * x), "note": None} for x in range(count)]
    return Result("Squares", rows, "squares", ("x", "y", "z"), draw, **fields)


def test_a_result_is_a_sequence_of_rows() -> None:
    result = make_squares()
    assert len(result) == 3
    assert [row["y"] for row in result] == [0, 1, 4]
    assert result[-1]["x"] == 2
    assert not result.is_interrupted
    assert repr(result) == "Result('Squares', 3 rows)"
    assert (
        repr(make_squares(1, finished=2, total=5))
        == "Result('Squares', 1 row, interrupted after 2 of 5)"
    )


def test_the_table_of_a_result_is_a_copy() -> None:
    table = make_squares().to_frame()
    # The column note has no value, so it is left out. The column z is one of the result's columns.
    assert list(table.columns) == ["x", "y", "z"]
    table["x"] = 0
    assert make_squares().to_frame()["x"].tolist() == [0, 1, 2]


def test_a_result_draws_the_plots_that_its_rows_allow(tmp_path: Path) -> None:
    result = make_squares()
    assert result.plots == ["empty", "line"]
    assert isinstance(result.plot(), Figure)  # The first plot that can be drawn.
    result.plot(tmp_path / "line.png", which="line")
    assert (tmp_path / "line.png").stat().st_size > 1000
    for bad in ({"which": "circle"}, {"which": "empty"}):
        with pytest.raises(wb.InvalidRequest, match=r" must be .* Got "):
            result.plot(**bad)
    with pytest.raises(
        wb.InvalidRequest, match=r"rows must be enough for a plot. Got 1 of 'Squares'."
    ):
        make_squares(1).plot()


@pytest.mark.parametrize(
    "backend", ["nonsense", "module://matplotlib_inline.backend_inline", "tkagg"]
)
def test_a_plot_needs_no_backend(tmp_path: Path, backend: str) -> None:
    """A plot ignores MPLBACKEND and the backend that the user has chosen for pyplot."""
    code = f"""
import os
os.environ["MPLBACKEND"] = {backend!r}
import workbench as wb
noise = wb.audit(wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2]), 1)
noise.plot("a.png")
noise._repr_html_()
import sys
assert "matplotlib.pyplot" not in sys.modules
assert os.environ["MPLBACKEND"] == {backend!r}
import matplotlib
# Matplotlib keeps the user's backend if it exists.
assert {backend!r} in ("nonsense", matplotlib.rcParams["backend"])
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_a_result_is_saved_in_the_format_of_the_file_name(tmp_path: Path) -> None:
    result = make_squares()
    assert [path.name for path in result.save(tmp_path / "new" / "folder")] == [
        "squares.csv",
        "line.png",
        "line.svg",
        "line.pdf",
    ]
    assert pd.read_csv(tmp_path / "new" / "folder" / "squares.csv")["y"].tolist() == [0, 1, 4]
    assert result.save(str(tmp_path / "a.json")) == [tmp_path / "a.json"]
    saved = json.loads((tmp_path / "a.json").read_text())
    assert saved["rows"][2] == {"x": 2, "y": 4.0, "z": None}
    assert saved["finished"] == 1
    assert saved["total"] == 1
    assert saved["interrupted"] is False
    result.save(tmp_path / "a.csv")
    result.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().count("<svg") == 1
    (tmp_path / "file").write_text("")
    (tmp_path / "v1.2").mkdir()
    assert result.save(tmp_path / "v1.2")[0] == tmp_path / "v1.2" / "squares.csv"
    endings = (tmp_path / f"x.{ending}" for ending in ("html", "xlsx", "parquet", "csv~"))
    for bad in (tmp_path / "nowhere" / "a.csv", tmp_path / "file" / "b", *endings):
        with pytest.raises(wb.InvalidRequest, match=r"path must be .* Got "):
            result.save(bad)
        assert not bad.exists()


def test_a_notebook_shows_a_table_and_a_picture_without_script() -> None:
    shown = Result(
        "<b>", [{"text": "<script>", "number": 1 / 3, "infinite": math.inf}]
    )._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "0.333333333" in shown
    page = make_squares(40, finished=1, total=2, sentences=("All are squares.",))._repr_html_()
    assert page.count("<svg") + page.count("<img") == 1
    assert "<script" not in page
    for sentence in ("10 more rows", "Interrupted: 1 of 2", "All are squares."):
        assert sentence in page


@pytest.mark.parametrize(
    "bad", [{"papers": "fancy"}, {"papers": "dql", "only": "fancy"}, {"only": ["fancy"]}]
)
def test_a_bad_reproduction_is_refused_with_rule_and_value(
    bad: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^\w+ must be .* Got .*\.$"):
        wb.reproduce(**bad, results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_reproduce_returns_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.papers import reproduce as module
    from workbench.papers import steps
    from workbench.papers.artifact import Artifact, Comparison, Paper

    def artifact(name: str) -> Any:
        def compute(full: bool) -> Artifact:
            if name == "stop":
                raise KeyboardInterrupt
            compared = [
                Comparison("a", "Table 1", 1.0, 1.25, 0.5),
                Comparison("b", "Table 1", 1.0, 2.0, 0.5),
            ]
            return Artifact(
                name,
                name,
                table=pd.DataFrame({"x": [1]}),
                draw=None,
                caption="",
                comparisons=compared,
            )

        return compute

    paper = Paper("dql", "t", "c", {name: artifact(name) for name in ("one", "stop", "two")})
    for loading_module in (module, steps):
        monkeypatch.setattr(loading_module, "load_paper", lambda name: paper)
    lines: list[str] = []
    result = wb.reproduce(
        "dql",
        results=tmp_path,
        jobs=1,
        progress=lambda done, total, line: lines.append(f"{done}/{total}"),
    )
    assert result.is_interrupted is True
    assert result.finished == 1
    assert result.total == 3
    assert [(row["what"], row["surprising"]) for row in result] == [("a", False), ("b", True)]
    assert (tmp_path / "dql" / "one.csv").exists()
    assert lines == ["0/3", "0/3", "1/3"]
    assert isinstance(result.plot(), Figure)


QUESTION = wb.ModuloNoise(n=4, max_shift=1)


def test_compare_requests_of_three_families() -> None:
    for question, request in (
        (QUESTION, {"delta": "0.1", "notion": "dp"}),
        (wb.Quantization("-3,-0.5,0.5,3"), {}),
        (wb.Labels.uniform(0, 3), {"method": "lp"}),
    ):
        result = wb.compare(question, "highs,ortools:glop,nonsense", epsilon=1, **request)
        assert [row["solver"] for row in result] == ["highs", "ortools:glop", "nonsense"]
        first, second, third = result.to_frame().to_dict("records")
        assert first["status"] == second["status"] == "optimal"
        assert first["objective"] == pytest.approx(second["objective"], abs=1e-7)
        assert third["status"] == "unavailable"
        assert third["failure"].startswith("solver must be one of")
        assert isinstance(result.plot(), Figure)
        (sentence,) = result.sentences
        assert sentence.startswith(("Use highs for", "Use ortools:glop for"))
        assert "proves the optimum" in sentence


def test_the_recommended_solver_is_the_fastest_with_a_proven_certified_answer() -> None:
    from workbench.comparison.compare import recommend_solver

    def row(solver: str, seconds: float, **changes: Any) -> dict[str, Any]:
        """Return the row of a solver that proves the optimum 1, with some changes."""
        values = {
            "solver": solver,
            "seconds": seconds,
            "status": "optimal",
            "objective": 1.0,
            "gap": 0.0,
        }
        values |= {"bound": 1.0, "certified": True, "certified_objective": 1.0}
        return values | {"residual": 0.0, "private": True, "oracle_agrees": True} | changes

    slow = row("slow", 3.0)
    fast = row("fast", 1.0)
    assert recommend_solver([slow, fast]).startswith(
        "Use fast for this request: it proves the optimum"
    )
    # A mechanism that is only private after the repair is certified too.
    assert recommend_solver([slow, fast | {"private": False}]).startswith("Use fast")
    assert recommend_solver([slow, fast | {"certified": False}]).startswith("Use slow")
    assert recommend_solver([slow, fast | {"certified_objective": 1 + 2e-8}]).startswith("Use slow")
    assert recommend_solver([slow, fast | {"certified_objective": 1 + 4e-13}]).startswith(
        "Use fast"
    )
    assert recommend_solver([slow, fast | {"gap": 0.1}]).startswith("Use slow")
    assert recommend_solver([slow, fast | {"residual": 0.1}]).startswith("Use slow")
    assert recommend_solver([slow, fast | {"oracle_agrees": False}]).startswith("Use slow")
    assert "does not prove an optimum" in recommend_solver([fast | {"status": "time_limit"}])
    assert "to within 0.01 %, as requested" in recommend_solver([fast | {"gap": 1e-4}])
    assert "private once it is repaired" in recommend_solver([fast | {"private": False}])
    assert "could not be certified" in recommend_solver(
        [fast | {"private": False, "certified": False}]
    )
    # A difference of milliseconds does not decide, so HiGHS is preferred.
    for seconds in (0.004, 0.006):
        close = [row("gurobi", 0.005), row("highs", seconds)]
        assert recommend_solver(close).startswith("Use highs")
        assert recommend_solver(close[::-1]).startswith("Use highs")
    assert recommend_solver([row("wrong", 1.0, oracle_agrees=False)]).startswith(
        "No solver can be recommended"
    )


def test_an_interrupted_comparison_keeps_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.comparison import compare as module

    design_by_solver = module._design_by_solver

    def stop(request: Any, solver: str, limit: float | None) -> Any:
        if solver == "scip":
            raise KeyboardInterrupt
        return design_by_solver(request, solver, limit)

    monkeypatch.setattr(module, "_design_by_solver", stop)
    result = wb.compare(QUESTION, ["highs", "scip"], epsilon=1)
    assert result.is_interrupted is True
    assert len(result) == 1


def test_compare_a_suite() -> None:
    result = wb.compare("small", ["highs"], instances="mvu-m4", time_limit=300)
    assert [row["status"] for row in result] == ["optimal"]
    assert result.sentences[0].startswith("For LPs use highs: it solved 1 of 1")


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("fancy", {}),
        (3, {"epsilon": 1}),
        ("small", {"epsilon": 1}),
        ("small", {"time_limit": 0}),
        ("small", {"instances": 3}),
        ("small", {"solvers": "nobody"}),
        ("small", {"solvers": []}),
        (QUESTION, {"epsilon": 0}),
        (QUESTION, {"epsilon": 1, "solver": "highs"}),
        (QUESTION, {}),
        (QUESTION, {"epsilon": 1, "instances": "mvu-*"}),
        (QUESTION, {"epsilon": 1, "solvers": ","}),
        (QUESTION, {"epsilon": 1, "progress": 3}),
        (wb.DataLaw.uniform(-1.0, 1.0), {"epsilon": 1, "bits": 5}),
    ],
)
def test_a_bad_comparison_is_refused_with_rule_and_value(
    question: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(wb.WorkbenchError, match=r" must be .* Got (?s:.)*\.$"):
        wb.compare(question, **options)


def test_verify_returns_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.comparison import verify as module

    points = [{"epsilon": epsilon, "delta": 0.1, "notion": "dp"} for epsilon in (0.5, 1.0)]
    monkeypatch.setattr(
        module, "list_grid_requests", lambda kind, small: [(QUESTION, point) for point in points]
    )
    result = wb.verify("highs,ortools:glop", small=True)
    assert [row["agrees"] for row in result] == [True] * 4
    assert result.sentences == ("4 of 4 answers agree with a known formula.",)
    assert isinstance(result.plot(), Figure)
    group = module.summarise_verification(result)[0]
    assert (group["requests"], group["agree"], group["disagree"]) == (2, 2, 0)


def test_every_family_is_verified_by_its_closed_forms() -> None:
    result = wb.verify(
        ["highs", "ortools:glop"], family=["labels", "laplace", "quantizer"], small=True
    )
    assert not [row for row in result if row["agrees"] is False]
    kinds_by_solver_and_oracle = {
        (row["solver"], row["oracle"]): row["oracle_kind"] for row in result if row["agrees"]
    }
    for solver in ("highs", "ortools:glop"):
        assert (
            kinds_by_solver_and_oracle[solver, "randomized response"]
            == kinds_by_solver_and_oracle[solver, "two outputs"]
            == "optimum"
        )
    # No solver takes part in the formulas of Laplace noise, so there is one row for all solvers.
    assert kinds_by_solver_and_oracle["none", "Algorithm 2"] == "optimum"
    assert kinds_by_solver_and_oracle["none", "Theorem 8"] == "upper bound"
    assert "Algorithm 2" not in {
        name for solver, name in kinds_by_solver_and_oracle if solver != "none"
    }
    assert len(wb.verify(family="laplace", small=True)) == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"solvers": "nobody"},
        {"solvers": 3},
        {"small": 1},
        {"progress": 1},
        {"family": "nois"},
        {"family": 3},
    ],
)
def test_a_bad_verification_is_refused_with_rule_and_value(bad: dict[str, Any]) -> None:
    with pytest.raises(wb.WorkbenchError, match=r" must be .* Got (?s:.)*\.$"):
        wb.verify(**bad)


def test_compare_list_needs_no_suite(capsys: pytest.CaptureFixture[str]) -> None:
    from workbench.cli import main

    with pytest.raises(SystemExit) as end:
        main(["compare", "--list", "--json"])
    assert end.value.code == 0
    assert len(json.loads(capsys.readouterr().out)["instances"]) > 20


def test_a_solver_without_duals_answers_a_quantizer():
    law = wb.compare(wb.Quantization([-3, "-0.5", "0.5", 3]), ["highs", "scip"], epsilon=1)
    assert [row["status"] for row in law] == ["optimal", "optimal"]
    assert law[0]["objective"] == pytest.approx(law[1]["objective"], rel=1e-7)


def test_a_search_is_timed_and_needs_a_solver_with_duals():
    real = wb.compare(
        wb.RealNoise(1), ["highs", "scip"], epsilon=1, delta="0.2", loss="absolute", gap="0.02"
    )
    assert real[0]["seconds"] > 0
    assert "dual values" in real[1]["failure"]
    assert "as requested" in real.sentences[0]


def test_a_name_like_a_spreadsheet_formula_gets_an_apostrophe_in_csv_files():
    names = ["=1+1", "+cmd|' /C calc'!A0", "-x", "@sum", "-3,-0.5,0.5,3", "-1e-05", "plain", None]
    expected_names = [
        "'=1+1",
        "'+cmd|' /C calc'!A0",
        "'-x",
        "'@sum",
        "-3,-0.5,0.5,3",
        "-1e-05",
        "plain",
        "",
    ]
    rows = [{"mechanism": name, "epsilon": -1.5, "proven": True} for name in names]
    table = list(csv.reader(encode_csv_table(make_table(rows)).decode().splitlines()))
    assert table == [
        ["mechanism", "epsilon", "proven"],
        *([name, "-1.5", "True"] for name in expected_names),
    ]

    class Lines(list[dict[str, Any]]):
        columns_and_versions = (list(rows[0]), set[str]())

    exported = b"".join(_write_csv(Lines(rows), record=lambda part: None)).decode()  # type: ignore[arg-type]
    assert list(csv.reader(exported.splitlines()))[1:] == [
        [name, "-1.5", "true"] for name in expected_names
    ]


def test_a_latex_table_has_symbols_and_escapes(tmp_path: Path):
    rows = [
        {"epsilon": 0.5, "what_is": "5 % of δ", "loss": math.inf},
        {"epsilon": 1 / 3, "what_is": "x", "loss": None},
    ]
    (file,) = Result("ε_1 & more", rows).save(tmp_path / "t.tex")
    text = file.read_text("utf-8")
    assert r"\caption{$\varepsilon$\_1 \& more}" in text
    assert r"0.5 & 5 \% of $\delta$ & $\infty$ \\" in text
    assert r"0.333333 & x &  \\" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_a_latex_table_has_the_columns_of_the_question(tmp_path: Path) -> None:
    result = wb.frontier("modulo", n=4, max_shift=1, epsilon=[1, 2], delta="0")
    result.save(tmp_path / "t.tex")
    heads = (tmp_path / "t.tex").read_text().split("toprule\n")[1].split("\\\\")[0]
    head = heads.replace("\\", "").split()
    assert {"epsilon", "delta", "objective"} <= {*head}
    assert "seconds" not in head
    assert "oracle_value" not in head
    assert heads.count("&") < 9
    result.save(tmp_path / "t.csv", columns=["epsilon", "solver"])
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "epsilon,solver"
    with pytest.raises(wb.InvalidRequest, match="columns must be among"):
        result.save(tmp_path / "t.tex", columns=["epsilom"])


def test_accents_and_greek_letters_become_latex_formulas() -> None:
    table = pd.DataFrame({"name": ["δ\u0332₀", "μ\u0304", "y\u0302", "ε ≤ 1", "$5 μ"]})
    text = encode_tex_table(table, "μ\u0304").decode()
    for words in (
        r"$\underline{\delta}_0$",
        r"\caption{$\bar{\mu}$}",
        "ŷ",
        r"$\varepsilon$ $\le$ 1",
        r"\$5 $\mu$",
    ):
        assert words in text
    assert not {*"\u0304\u0332δμ₀"} & {*text}
