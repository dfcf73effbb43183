"""Designing quantizers as a user does: library, command line, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workbench as wb
from workbench import cli
from workbench.evaluate_quantizer import evaluate
from workbench.mechanisms.quantizer import Quantizer

KEYS = {"mae", "mae_51", "mse", "exact", "bins", "method", "objective", "bound", "status"}


@pytest.mark.parametrize("method", ["exact", "optm", "product", "mvu"])
def test_every_method_on_given_bins(method: str):
    made = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, method=method)
    found = made.to_dict()
    assert set(found) >= KEYS
    assert found["exact"]["epsilon"] == pytest.approx(1, abs=1e-9)
    assert abs(found["exact"]["bias"]) < 1e-12
    assert found["status"] == "optimal"
    assert found["mae"] == pytest.approx(made.mechanism.mae())
    json.dumps(found, allow_nan=False)
    assert "MAE" in str(made)


def test_the_exact_method_gives_the_references():
    values = [wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, knots=k).mechanism.mae() for k in (0, 41)]
    assert values == pytest.approx([1.798681, 1.700701], abs=1e-6)


def test_two_outputs_are_judged_by_their_closed_form():
    made = wb.design(wb.Quantization([-3, 3]), epsilon=1)
    assert made.oracle.valid
    assert made.oracle.agrees
    assert made.oracle.value == pytest.approx((9 - 1 / 3) / 3)


def test_levels_are_optimised_below_a_proven_limit():
    made = wb.design(wb.Quantization(levels=4), epsilon=1)
    assert made.mechanism.mae() < 1.66
    assert made.bound is not None
    assert made.bound < made.mechanism.mae()
    assert made.oracle.kind == "lower bound"
    assert made.oracle.agrees


def test_metric_designs():
    made = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, metric="absolute", knots=11)
    assert made.privacy.metric == "absolute"
    assert made.privacy.epsilon == pytest.approx(1, abs=1e-6)
    with pytest.raises(wb.InvalidRequest, match="whose laws jump"):
        wb.design(wb.Quantization("-3,3"), epsilon=1, method="optm", metric="absolute")


@pytest.mark.parametrize(("question", "request_", "words"), [
    ({"bins": "-3,3"}, {"epsilon": 0.5}, r"epsilon must be at least 0.693147181 for outputs in \[-3, 3\].*Got 0.5"),
    ({"bins": "-3,3"}, {"epsilon": -1}, r"epsilon must be a finite number > 0. Got -1"),
    ({"bins": "-3,3"}, {"epsilon": 31}, "at most 30"),
    ({"bins": "-3,3"}, {"epsilon": 1, "method": "best"}, "method must be one of"),
    ({"bins": "-3,3"}, {"epsilon": 1, "cost": "rmse"}, "cost must be"),
    ({"bins": "-3,3"}, {"epsilon": 1, "knots": -1}, "knots must be"),
    ({"bins": "-3,3"}, {"epsilon": 1, "method": "mvu", "knots": 5}, "knots must be left out"),
    ({"levels": 4}, {"epsilon": 1, "reach": 2}, "reach must be above 2.16395"),
    ({"bins": "-3,3"}, {"epsilon": 1, "solver": "nobody"}, "solver must be one of"),
])  # fmt: skip
def test_requests_that_make_no_sense(question: dict, request_: dict, words: str):
    with pytest.raises(wb.WorkbenchError, match=words):
        wb.design(wb.Quantization(**question), **request_)


@pytest.mark.parametrize(("arguments", "words"), [
    ({}, "bins or levels must be given"),
    ({"bins": "-3,3", "levels": 2}, "not both"),
    ({"levels": 1}, "levels must be an integer in 2..64. Got 1"),
    ({"bins": "-3,3", "c": 0}, "c must be a finite number > 0"),
    ({"bins": "-3,3", "density": "x"}, "density must be uniform, or normal"),
])  # fmt: skip
def test_questions_that_make_no_sense(arguments: dict, words: str):
    with pytest.raises(wb.InvalidRequest, match=words):
        wb.Quantization(**arguments)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_the_command_line_designs(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, out, _ = run(capsys, "design", "quantizer", "--bins=-3,-0.5,0.5,3", "--epsilon", "1", "--knots", "41",
                       "--save", str(tmp_path / "q.json"), "--plot", str(tmp_path / "q.png"), "--json")  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert set(found) >= KEYS
    assert found["mae"] == pytest.approx(1.700701, abs=1e-6)
    saved = json.loads((tmp_path / "q.json").read_text())
    assert Quantizer.from_dict(saved["mechanism"]).mae() == pytest.approx(found["mae"], abs=1e-12)
    assert (tmp_path / "q.png").stat().st_size > 10_000


def test_the_command_line_reports_and_refuses(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "design", "quantizer", "--bins=-3,3", "--epsilon", "1.2")
    assert code == 0
    assert "Output law" in out
    for arguments in (["--bins=3,-3", "--epsilon", "1"], ["--bins=-3,3", "--epsilon", "0.5"],
                      ["--bins=-3,3", "--epsilon", "1", "--density", "normal:0,-1"]):  # fmt: skip
        code, _, err = run(capsys, "design", "quantizer", *arguments)
        assert code == 2
        assert err.count("\n") == 1


def test_the_command_line_evaluates(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "evaluate", "quantizer", "--mechanism", "rqm", "--bins=-2.7,-0.9,0.9,2.7", "--q", "0.22",
                       "--json")  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert found["mae_51"] == pytest.approx(1.99286, abs=5e-6)
    assert found["exact"]["epsilon"] == pytest.approx(0.998767, abs=1e-6)
    assert found["exact"]["bias"] == 0
    code, out, _ = run(capsys, "evaluate", "quantizer", "--mechanism", "erm", "--bins=-3,-1,1,3", "--gamma", "1")
    assert code == 0
    assert "published bound" in out


@pytest.mark.parametrize(("mechanism", "parameters"), [
    ("rqm", {"bins": "-3,3"}), ("rqm", {"bins": "-3,3", "q": 0.2, "gamma": 1}), ("best", {}),
    ("pbm", {"levels": 4}), ("pbm", {"levels": 4, "theta": 0.1, "epsilon": 1}), ("biased", {"bins": "-3,3", "q": 0.1}),
    ("randomized-response", {"epsilon": 0}),
])  # fmt: skip
def test_evaluations_that_make_no_sense(mechanism: str, parameters: dict):
    with pytest.raises(wb.InvalidRequest):
        evaluate(mechanism, **parameters)


def test_every_closed_form_mechanism_can_be_evaluated():
    for mechanism, parameters in (("pbm", {"levels": 4, "epsilon": 1}), ("randomized-response", {"epsilon": 1}),
                                  ("biased", {"bins": "-2.7,-0.9,0.9,2.7", "q": 0.22, "beta": 0.3})):  # fmt: skip
        found = evaluate(mechanism, density="normal:0.5,0.2", **parameters)
        assert found["mae"] > 0
        assert 0 < found["exact"]["epsilon"] < 3
