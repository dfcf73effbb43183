"""Test the class Result and the functions that return a Result.

A `Result` is a sequence of rows (dictionaries) with a table, plots, files and a view in notebooks.
`wb.reproduce`, `wb.compare` and `wb.verify` return one. If such a function is interrupted, it
returns the rows that are finished.
"""

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
from workbench.cli import main
from workbench.comparison import compare, verify
from workbench.comparison.compare import recommend_solver
from workbench.io.result import Result, encode_csv_table, encode_tex_table, make_table
from workbench.papers import reproduce, steps
from workbench.papers.artifact import Artifact, Comparison, Paper
from workbench.sweeps.export import _write_csv


def make_squares(count: int = 3, **fields: Any) -> Result:
    """Return a result with rows x, x² for x < count. Its plot "empty" is never drawn."""

    def draw(table: pd.DataFrame) -> Any:
        """Return the functions that draw the plots of a table, by name."""

        def draw_line() -> Figure | None:
            """Draw the squares. None for fewer than two points."""
            if len(table) < 2:
                return None
            figure = Figure()
            figure.subplots().plot(table["x"], table["y"])
            return figure

        return {"empty": lambda: None, "line": draw_line}

    rows = [{"x": x, "y": float(x * x), "note": None} for x in range(count)]
    columns = ("x", "y", "z")
    return Result("Squares", rows, name="squares", columns=columns, draw=draw, **fields)


def test_a_result_is_a_sequence_of_rows() -> None:
    result = make_squares()
    assert len(result) == 3
    assert [row["y"] for row in result] == [0, 1, 4]
    assert result[-1]["x"] == 2


def test_the_repr_of_a_result_counts_its_rows() -> None:
    result = make_squares()
    assert not result.is_interrupted
    assert repr(result) == "Result('Squares', 3 rows)"


def test_the_repr_of_an_interrupted_result_says_how_much_is_finished() -> None:
    result = make_squares(1, finished=2, total=5)
    assert repr(result) == "Result('Squares', 1 row, interrupted after 2 of 5)"


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


@pytest.mark.parametrize("which", ["circle", "empty"])
def test_a_plot_that_does_not_exist_or_cannot_be_drawn_is_refused(which: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=r" must be .* Got "):
        make_squares().plot(which=which)


def test_a_result_with_too_few_rows_for_every_plot_refuses_to_plot() -> None:
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


def test_a_result_saved_to_a_folder_is_a_table_and_three_pictures(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    names = [path.name for path in make_squares().save(folder)]
    assert names == ["squares.csv", "line.png", "line.svg", "line.pdf"]
    assert pd.read_csv(folder / "squares.csv")["y"].tolist() == [0, 1, 4]


def test_a_path_with_a_dot_is_a_folder_if_the_folder_exists(tmp_path: Path) -> None:
    (tmp_path / "v1.2").mkdir()
    assert make_squares().save(tmp_path / "v1.2")[0] == tmp_path / "v1.2" / "squares.csv"


def test_a_result_saved_as_json_has_its_rows_and_its_progress(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert make_squares().save(str(path)) == [path]
    saved = json.loads(path.read_text())
    assert saved["rows"][2] == {"x": 2, "y": 4.0, "z": None}
    assert (saved["finished"], saved["total"], saved["interrupted"]) == (1, 1, False)


def test_a_result_saved_as_svg_is_one_picture(tmp_path: Path) -> None:
    make_squares().save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().count("<svg") == 1


@pytest.mark.parametrize(
    "name", ["nowhere/a.csv", "file/b", "x.html", "x.xlsx", "x.parquet", "x.csv~"]
)
def test_a_result_is_not_saved_to_a_bad_path(name: str, tmp_path: Path) -> None:
    """The folder `nowhere` does not exist, `file` is no folder, and the endings are unknown."""
    (tmp_path / "file").write_text("")
    with pytest.raises(wb.InvalidRequest, match=r"path must be .* Got "):
        make_squares().save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_notebook_escapes_titles_and_texts() -> None:
    rows = [{"text": "<script>", "number": 1 / 3, "infinite": math.inf}]
    page = Result("<b>", rows)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "0.333333333" in page


def test_a_notebook_shows_a_table_and_a_picture_without_script() -> None:
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


def make_paper(*names: str) -> Paper:
    """Return a paper whose artifacts have these names. The artifact "stop" interrupts the program.

    Each artifact compares two values with the paper: 1.25 with 1 and 2 with 1, both to within 0.5.
    """

    def make_compute_function(name: str) -> Any:
        """Return the function that computes the artifact of this name."""

        def compute(full: bool) -> Artifact:
            """Return the artifact, or interrupt the program."""
            if name == "stop":
                raise KeyboardInterrupt
            near = Comparison("near", "Table 1", printed=1.0, ours=1.25, tolerance=0.5)
            far = Comparison("far", "Table 1", printed=1.0, ours=2.0, tolerance=0.5)
            return Artifact(
                name,
                name,
                table=pd.DataFrame({"x": [1]}),
                draw=None,
                caption="",
                comparisons=[near, far],
            )

        return compute

    return Paper("dql", "t", "c", {name: make_compute_function(name) for name in names})


def test_an_interrupted_reproduction_returns_the_finished_artifacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = make_paper("one", "stop", "two")
    for loading_module in (reproduce, steps):
        monkeypatch.setattr(loading_module, "load_paper", lambda name: paper)
    lines: list[str] = []
    result = wb.reproduce(
        "dql",
        results=tmp_path,
        jobs=1,
        progress=lambda done, total, line: lines.append(f"{done}/{total}"),
    )
    assert result.is_interrupted is True
    assert (result.finished, result.total) == (1, 3)
    assert [(row["what"], row["surprising"]) for row in result] == [("near", False), ("far", True)]
    assert (tmp_path / "dql" / "one.csv").exists()
    assert lines == ["0/3", "0/3", "1/3"]
    assert isinstance(result.plot(), Figure)


# A question that every solver answers in milliseconds.
QUESTION = wb.ModuloNoise(n=4, max_shift=1)


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (QUESTION, {"delta": "0.1", "notion": "dp"}),
        (wb.Quantization("-3,-0.5,0.5,3"), {}),
        (wb.Labels.uniform(0, 3), {"method": "lp"}),
    ],
    ids=["modulo", "quantizer", "labels"],
)
def test_a_comparison_has_a_row_for_each_solver_and_recommends_one(
    question: Any, options: dict[str, Any]
) -> None:
    result = wb.compare(question, "highs,ortools:glop,nonsense", epsilon=1, **options)
    assert [row["solver"] for row in result] == ["highs", "ortools:glop", "nonsense"]
    highs, glop, unknown = result.to_frame().to_dict("records")
    assert highs["status"] == glop["status"] == "optimal"
    assert highs["objective"] == pytest.approx(glop["objective"], abs=1e-7)
    assert unknown["status"] == "unavailable"
    assert unknown["failure"].startswith("solver must be one of")
    assert isinstance(result.plot(), Figure)
    (sentence,) = result.sentences
    assert sentence.startswith(("Use highs for", "Use ortools:glop for"))
    assert "proves the optimum" in sentence


def make_solver_row(solver: str, seconds: float, **changes: Any) -> dict[str, Any]:
    """Return the row of a solver that proves and certifies the optimum 1, with some changes."""
    return {
        "solver": solver,
        "seconds": seconds,
        "status": "optimal",
        "objective": 1.0,
        "gap": 0.0,
        "bound": 1.0,
        "certified": True,
        "certified_objective": 1.0,
        "residual": 0.0,
        "private": True,
        "oracle_agrees": True,
        **changes,
    }


SLOW_ROW = make_solver_row("slow", seconds=3.0)
FAST_ROW = make_solver_row("fast", seconds=1.0)


def test_the_fastest_solver_with_a_proven_optimum_is_recommended() -> None:
    sentence = recommend_solver([SLOW_ROW, FAST_ROW])
    assert sentence.startswith("Use fast for this request: it proves the optimum")


@pytest.mark.parametrize(
    "change",
    [
        {"certified": False},
        {"certified_objective": 1 + 2e-8},
        {"gap": 0.1},
        {"residual": 0.1},
        {"oracle_agrees": False},
    ],
    ids=str,
)
def test_a_fast_solver_with_a_worse_answer_is_not_recommended(change: dict[str, Any]) -> None:
    assert recommend_solver([SLOW_ROW, FAST_ROW | change]).startswith("Use slow")


@pytest.mark.parametrize(
    "change",
    [
        {"private": False},  # It is private after the repair, and then certified.
        {"certified_objective": 1 + 4e-13},
    ],
    ids=str,
)
def test_a_fast_solver_with_a_repaired_or_nearly_optimal_answer_is_recommended(
    change: dict[str, Any],
) -> None:
    assert recommend_solver([SLOW_ROW, FAST_ROW | change]).startswith("Use fast")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"status": "time_limit"}, "does not prove an optimum"),
        ({"gap": 1e-4}, "to within 0.01 %, as requested"),
        ({"private": False}, "private once it is repaired"),
        ({"private": False, "certified": False}, "could not be certified"),
    ],
    ids=str,
)
def test_a_recommendation_says_what_the_only_answer_lacks(
    change: dict[str, Any], words: str
) -> None:
    assert words in recommend_solver([FAST_ROW | change])


@pytest.mark.parametrize("highs_seconds", [0.004, 0.006])
def test_highs_is_preferred_if_solvers_differ_by_milliseconds(highs_seconds: float) -> None:
    rows = [make_solver_row("gurobi", seconds=0.005), make_solver_row("highs", highs_seconds)]
    assert recommend_solver(rows).startswith("Use highs")
    assert recommend_solver(rows[::-1]).startswith("Use highs")


def test_no_solver_is_recommended_if_the_only_answer_disagrees_with_the_formula() -> None:
    row = make_solver_row("wrong", seconds=1.0, oracle_agrees=False)
    assert recommend_solver([row]).startswith("No solver can be recommended")


def test_an_interrupted_comparison_keeps_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    design_by_solver = compare._design_by_solver

    def interrupt_scip(request: Any, solver: str, limit: float | None) -> Any:
        """Design as usual, but raise KeyboardInterrupt instead if the solver is SCIP."""
        if solver == "scip":
            raise KeyboardInterrupt
        return design_by_solver(request, solver, limit)

    monkeypatch.setattr(compare, "_design_by_solver", interrupt_scip)
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
    points = [{"epsilon": epsilon, "delta": 0.1, "notion": "dp"} for epsilon in (0.5, 1.0)]
    requests = [(QUESTION, point) for point in points]
    monkeypatch.setattr(verify, "list_grid_requests", lambda kind, small: requests)
    result = wb.verify("highs,ortools:glop", small=True)
    assert [row["agrees"] for row in result] == [True] * 4  # Two solvers for each of two requests.
    assert result.sentences == ("4 of 4 answers agree with a known formula.",)
    assert isinstance(result.plot(), Figure)
    group = verify.summarise_verification(result)[0]
    assert (group["requests"], group["agree"], group["disagree"]) == (2, 2, 0)


def test_every_family_is_verified_by_its_closed_forms() -> None:
    families = ["labels", "laplace", "quantizer"]
    result = wb.verify(["highs", "ortools:glop"], family=families, small=True)
    assert not [row for row in result if row["agrees"] is False]
    # Names of the formulas that agree, and whether the formula is the optimum or an upper bound.
    formula_kinds: dict[str, dict[str, str]] = {"highs": {}, "ortools:glop": {}, "none": {}}
    for row in result:
        if row["agrees"]:
            formula_kinds[row["solver"]][row["oracle"]] = row["oracle_kind"]
    for solver in ("highs", "ortools:glop"):
        assert formula_kinds[solver]["randomized response"] == "optimum"
        assert formula_kinds[solver]["two outputs"] == "optimum"
        assert "Algorithm 2" not in formula_kinds[solver]
    # No solver takes part in the formulas of Laplace noise, so there is one row for all solvers.
    assert formula_kinds["none"]["Algorithm 2"] == "optimum"
    assert formula_kinds["none"]["Theorem 8"] == "upper bound"


def test_the_small_verification_of_laplace_noise_has_two_rows() -> None:
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
    with pytest.raises(SystemExit) as end:
        main(["compare", "--list", "--json"])
    assert end.value.code == 0
    assert len(json.loads(capsys.readouterr().out)["instances"]) > 20


def test_a_solver_without_duals_answers_a_quantizer():
    highs, scip = wb.compare(wb.Quantization([-3, "-0.5", "0.5", 3]), ["highs", "scip"], epsilon=1)
    assert highs["status"] == scip["status"] == "optimal"
    assert highs["objective"] == pytest.approx(scip["objective"], rel=1e-7)


def test_a_search_is_timed_and_needs_a_solver_with_duals():
    result = wb.compare(
        wb.RealNoise(1), ["highs", "scip"], epsilon=1, delta="0.2", loss="absolute", gap="0.02"
    )
    highs, scip = result
    assert highs["seconds"] > 0
    assert "dual values" in scip["failure"]
    assert "as requested" in result.sentences[0]


# A name of a mechanism, and its cell in a CSV file. A spreadsheet would run the first four.
NAMES_AND_CELLS = {
    "=1+1": "'=1+1",
    "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
    "-x": "'-x",
    "@sum": "'@sum",
    "-3,-0.5,0.5,3": "-3,-0.5,0.5,3",
    "-1e-05": "-1e-05",
    "plain": "plain",
    None: "",
}
NAME_ROWS = [{"mechanism": name, "epsilon": -1.5, "proven": True} for name in NAMES_AND_CELLS]


def test_a_name_like_a_spreadsheet_formula_gets_an_apostrophe_in_csv_files():
    table = list(csv.reader(encode_csv_table(make_table(NAME_ROWS)).decode().splitlines()))
    assert table[0] == ["mechanism", "epsilon", "proven"]
    assert table[1:] == [[cell, "-1.5", "True"] for cell in NAMES_AND_CELLS.values()]


class LedgerRows(list[dict[str, Any]]):
    """The rows of a ledger, with the columns and versions that an export asks for."""

    columns_and_versions = (list(NAME_ROWS[0]), set[str]())


def test_a_name_like_a_spreadsheet_formula_gets_an_apostrophe_in_exported_ledgers():
    parts = _write_csv(LedgerRows(NAME_ROWS), record=lambda part: None)  # type: ignore[arg-type]
    table = list(csv.reader(b"".join(parts).decode().splitlines()))
    assert table[1:] == [[cell, "-1.5", "true"] for cell in NAMES_AND_CELLS.values()]


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


@pytest.fixture(scope="module")
def frontier() -> Result:
    """Return a frontier of two points, whose rows have more columns than a page is wide."""
    return wb.frontier("modulo", n=4, max_shift=1, epsilon=[1, 2], delta="0")


def test_a_latex_table_has_the_columns_of_the_question(frontier: Result, tmp_path: Path) -> None:
    frontier.save(tmp_path / "t.tex")
    heads = (tmp_path / "t.tex").read_text().split("toprule\n")[1].split("\\\\")[0]
    head = heads.replace("\\", "").split()
    assert {"epsilon", "delta", "objective"} <= {*head}
    assert "seconds" not in head
    assert "oracle_value" not in head
    assert heads.count("&") < 9


def test_a_table_is_saved_with_the_requested_columns(frontier: Result, tmp_path: Path) -> None:
    frontier.save(tmp_path / "t.csv", columns=["epsilon", "solver"])
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "epsilon,solver"


def test_an_unknown_column_is_refused(frontier: Result, tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match="columns must be among"):
        frontier.save(tmp_path / "t.tex", columns=["epsilom"])


def test_accents_and_greek_letters_become_latex_formulas() -> None:
    # U+0332 is a line below the letter before it, U+0304 a line above it, and U+0302 a hat.
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
