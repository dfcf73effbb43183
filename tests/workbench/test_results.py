"""Results: iterate, table, plot, files, notebook; and each public function that returns one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

import workbench as wb
from workbench.io.result import Result


def squares(count: int = 3, **more: Any) -> Result:
    def draw(table: pd.DataFrame) -> Any:
        def line() -> Figure | None:
            if len(table) < 2:
                return None
            figure = Figure()
            figure.subplots().plot(table["x"], table["y"])
            return figure

        return {"empty": lambda: None, "line": line}

    rows = [{"x": x, "y": float(x * x), "note": None} for x in range(count)]
    return Result("Squares", rows, "squares", ("x", "y", "z"), draw, **more)


def test_a_result_is_a_sequence_of_rows() -> None:
    result = squares()
    assert len(result) == 3
    assert [row["y"] for row in result] == [0, 1, 4]
    assert result[-1]["x"] == 2
    assert not result.interrupted
    assert repr(result) == "Result('Squares', 3 rows)"
    assert repr(squares(1, finished=2, total=5)) == "Result('Squares', 1 row, interrupted after 2 of 5)"


def test_its_table_is_its_own() -> None:
    table = squares().to_frame()
    assert list(table.columns) == ["x", "y", "z"]  # what no row has is left out, unless it is a column of the kind
    table["x"] = 0
    assert squares().to_frame()["x"].tolist() == [0, 1, 2]


def test_its_plots(tmp_path: Path) -> None:
    result = squares()
    assert result.plots == ["empty", "line"]
    assert isinstance(result.plot(), Figure)  # the first that the rows suffice for
    result.plot(tmp_path / "line.png", which="line")
    assert (tmp_path / "line.png").stat().st_size > 1000
    for bad in ({"which": "circle"}, {"which": "empty"}):
        with pytest.raises(wb.InvalidRequest, match=r" must be .* Got "):
            result.plot(**bad)
    with pytest.raises(wb.InvalidRequest, match=r"rows must be enough for a plot. Got 1 of 'Squares'."):
        squares(1).plot()


def test_its_files(tmp_path: Path) -> None:
    result = squares()
    assert [path.name for path in result.save(tmp_path / "new" / "folder")] == ["squares.csv", "line.png", "line.svg"]
    assert pd.read_csv(tmp_path / "new" / "folder" / "squares.csv")["y"].tolist() == [0, 1, 4]
    assert result.save(str(tmp_path / "a.json")) == [tmp_path / "a.json"]
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["rows"][2] == {"x": 2, "y": 4.0, "z": None}
    assert (found["finished"], found["total"], found["interrupted"]) == (1, 1, False)
    result.save(tmp_path / "a.csv")
    result.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().count("<svg") == 1
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "nowhere" / "a.csv", tmp_path / "file" / "b"):
        with pytest.raises(wb.InvalidRequest, match=r"path must be .* Got "):
            result.save(bad)


def test_a_notebook_shows_table_and_picture_without_script() -> None:
    shown = Result("<b>", [{"text": "<script>", "number": 1 / 3, "infinite": math.inf}])._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "0.333333333" in shown
    page = squares(40, finished=1, total=2, sentences=("All are squares.",))._repr_html_()
    assert page.count("<svg") == 1
    assert "<script" not in page
    for sentence in ("10 more rows", "Interrupted: 1 of 2", "All are squares."):
        assert sentence in page


def test_evaluate() -> None:
    result = wb.evaluate("rqm", bins="-2.7,-0.9,0.9,2.7", q="0.22")
    (row,) = result
    assert row["bias"] == 0
    assert row["pure_epsilon"] <= row["published_epsilon"]
    assert isinstance(result.plot(), Figure)
    assert isinstance(wb.evaluate("pbm", levels=4, epsilon=1).plot(), Figure)


@pytest.mark.parametrize(
    ("mechanism", "parameters"), [("fancy", {}), ("rqm", {}), ("rqm", {"bins": [-2, 2], "q": 2}), (3, {}),
                                  ("pbm", {"levels": 4, "epsilon": 1, "q": 0.1})],
)  # fmt: skip
def test_bad_evaluations_are_refused_in_one_form(mechanism: Any, parameters: dict[str, Any]) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^\w+ must be .* Got .*\.$"):
        wb.evaluate(mechanism, **parameters)


@pytest.mark.parametrize("bad", [{"papers": "fancy"}, {"papers": "dql", "only": "fancy"}, {"only": ["fancy"]}])
def test_bad_reproductions_are_refused_in_one_form(bad: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^\w+ must be .* Got .*\.$"):
        wb.reproduce(**bad, results=tmp_path)
    assert not list(tmp_path.iterdir())


def test_reproduce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.papers import reproduce as module
    from workbench.papers.artifact import Artifact, Comparison, Paper

    def artifact(name: str) -> Any:
        def compute(full: bool) -> Artifact:
            if name == "stop":
                raise KeyboardInterrupt
            compared = [Comparison("a", "Table 1", 1.0, 1.25, 0.5), Comparison("b", "Table 1", 1.0, 2.0, 0.5)]
            return Artifact(name, name, pd.DataFrame({"x": [1]}), None, "", compared)

        return compute

    paper = Paper("dql", "t", "c", {name: artifact(name) for name in ("one", "stop", "two")})
    monkeypatch.setattr(module, "load", lambda name: paper)
    lines: list[str] = []
    result = wb.reproduce(
        "dql", results=tmp_path, jobs=1, progress=lambda done, total, line: lines.append(f"{done}/{total}")
    )
    assert (result.interrupted, result.finished, result.total) == (True, 1, 3)
    assert [(row["what"], row["surprising"]) for row in result] == [("a", False), ("b", True)]
    assert (tmp_path / "dql" / "one.csv").exists()
    assert lines == ["0/3", "0/3", "1/3"]
    assert isinstance(result.plot(), Figure)


QUESTION = wb.ModuloNoise(n=4, max_shift=1)


def test_compare_a_request_of_every_family() -> None:
    for question, request in (
        (QUESTION, {"delta": "0.1", "notion": "dp"}), (wb.Quantization("-3,-0.5,0.5,3"), {}),
        (wb.Labels.uniform(0, 3), {"method": "lp"}),
    ):  # fmt: skip
        result = wb.compare(question, "highs,ortools:glop,nonsense", epsilon=1, **request)
        assert [row["solver"] for row in result] == ["highs", "ortools:glop", "nonsense"]
        first, second, third = result.to_frame().to_dict("records")
        assert first["status"] == second["status"] == "optimal"
        assert first["objective"] == pytest.approx(second["objective"], abs=1e-7)
        assert third["status"] == "unavailable"
        assert third["error"].startswith("solver must be one of")
        assert isinstance(result.plot(), Figure)
        (sentence,) = result.sentences
        assert sentence.startswith(("Use highs for", "Use ortools:glop for"))
        assert "proves the optimum" in sentence


def test_which_solver_to_use() -> None:
    from workbench.comparison.compare import recommendation

    def row(solver: str, seconds: float, **more: Any) -> dict[str, Any]:
        known = {"solver": solver, "seconds": seconds, "status": "optimal", "objective": 1.0, "gap": 0.0}
        return known | {"residual": 0.0, "private": True, "oracle_agrees": True} | more

    slow, fast = row("slow", 2.0), row("fast", 1.0)
    assert recommendation([slow, fast]).startswith("Use fast for this request: it proves the optimum")
    assert recommendation([slow, fast | {"private": False}]).startswith("Use slow")
    assert recommendation([slow, fast | {"gap": 0.1}]).startswith("Use slow")
    assert recommendation([slow, fast | {"residual": 0.1}]).startswith("Use slow")
    assert recommendation([slow, fast | {"oracle_agrees": False}]).startswith("Use slow")
    assert "does not prove an optimum" in recommendation([fast | {"status": "time_limit"}])
    assert "to within 0.01 %, as was asked" in recommendation([fast | {"gap": 1e-4}])
    assert "must be repaired to be private" in recommendation([fast | {"private": False}])
    assert recommendation([row("wrong", 1.0, oracle_agrees=False)]).startswith("No solver can be recommended")


def test_an_interrupted_comparison_keeps_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.comparison import compare as module

    real = module._design

    def stop(request: Any, solver: str) -> Any:
        if solver == "scip":
            raise KeyboardInterrupt
        return real(request, solver)

    monkeypatch.setattr(module, "_design", stop)
    result = wb.compare(QUESTION, ["highs", "scip"], epsilon=1)
    assert (result.interrupted, len(result)) == (True, 1)


def test_compare_a_suite() -> None:
    result = wb.compare("small", ["highs"], instances="mvu-m4", time_limit=20)
    assert [row["status"] for row in result] == ["optimal"]
    assert result.sentences[0].startswith("For LPs use highs: it solved 1 of 1")


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("fancy", {}), (3, {"epsilon": 1}), ("small", {"epsilon": 1}), ("small", {"time_limit": 0}),
        ("small", {"instances": 3}), ("small", {"solvers": "nobody"}), ("small", {"solvers": []}),
        (QUESTION, {"epsilon": 0}), (QUESTION, {"epsilon": 1, "solver": "highs"}), (QUESTION, {}),
        (QUESTION, {"epsilon": 1, "instances": "mvu-*"}), (QUESTION, {"epsilon": 1, "solvers": ","}),
        (QUESTION, {"epsilon": 1, "progress": 3}), (wb.DataLaw.uniform(-1.0, 1.0), {"epsilon": 1, "bits": 5}),
    ],
)  # fmt: skip
def test_bad_comparisons_are_refused_in_one_form(question: Any, options: dict[str, Any]) -> None:
    with pytest.raises(wb.WorkbenchError, match=r" must be .* Got (?s:.)*\.$"):
        wb.compare(question, **options)


def test_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.comparison import verify as module
    from workbench.families.verification import Group

    points = [{"epsilon": epsilon, "delta": 0.1} for epsilon in (0.5, 1.0)]
    monkeypatch.setattr(
        module, "_groups",
        lambda kind, small: [Group(QUESTION, {"notion": "dp"}, points)] if kind.name == "noise" else [],
    )  # fmt: skip
    result = wb.verify("highs,ortools:glop", small=True)
    assert [row["agrees"] for row in result] == [True] * 4
    assert result.sentences == ("4 of 4 answers with a closed form agree with it.",)
    assert isinstance(result.plot(), Figure)
    group = module.summary(result)[0]
    assert (group["requests"], group["agree"], group["disagree"]) == (2, 2, 0)


def test_every_family_is_verified_by_its_closed_forms() -> None:
    result = wb.verify(["highs", "ortools:glop"], family=["labels", "laplace", "quantizer"], small=True)
    assert not [row for row in result if row["agrees"] is False]
    judged = {(row["solver"], row["oracle"]): row["oracle_kind"] for row in result if row["agrees"]}
    for solver in ("highs", "ortools:glop"):
        assert judged[solver, "RRWithPrior"] == judged[solver, "two outputs"] == "optimum"
    assert judged["none", "Algorithm 2"] == "optimum"  # no solver takes part, so it is answered once
    assert judged["none", "Theorem 8"] == "upper bound"
    assert "Algorithm 2" not in {name for solver, name in judged if solver != "none"}
    assert len(wb.verify(family="laplace", small=True)) == 2


@pytest.mark.parametrize(
    "bad", [{"solvers": "nobody"}, {"solvers": 3}, {"small": 1}, {"progress": 1}, {"family": "nois"}, {"family": 3}]
)
def test_bad_verifications_are_refused_in_one_form(bad: dict[str, Any]) -> None:
    with pytest.raises(wb.WorkbenchError, match=r" must be .* Got (?s:.)*\.$"):
        wb.verify(**bad)


def test_the_list_of_instances_needs_no_suite(capsys: pytest.CaptureFixture[str]) -> None:
    from workbench.cli import main

    with pytest.raises(SystemExit) as end:
        main(["compare", "--list", "--json"])
    assert end.value.code == 0
    assert len(json.loads(capsys.readouterr().out)["instances"]) > 20


def test_solvers_without_duals_answer_quantizers_and_searches_have_times():
    law = wb.compare(wb.Quantization([-3, "-0.5", "0.5", 3]), ["highs", "scip"], epsilon=1)
    assert [row["status"] for row in law] == ["optimal", "optimal"]
    assert law[0]["objective"] == pytest.approx(law[1]["objective"], rel=1e-7)
    real = wb.compare(wb.RealNoise(1), ["highs", "scip"], epsilon=1, delta="0.2", cost="absolute", gap="0.02")
    assert real[0]["seconds"] > 0
    assert "dual values" in real[1]["error"]
    assert "as was asked" in real.sentences[0]
