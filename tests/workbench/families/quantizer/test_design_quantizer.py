"""Test designs of quantizers in Python and on the command line, and their errors."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.mechanisms.baselines.named_quantizers import build_named_quantizer
from workbench.pipeline.registry import list_families
from workbench.privacy.certificate_file import check
from workbench.questions.density import parse_density

KEYS = {"mae", "mae_51", "mse", "exact", "bins", "method", "objective", "bound", "status"}


@pytest.mark.parametrize("method", ["exact", "optm", "product", "mvu"])
def test_every_method_designs_for_given_bins(method: str):
    design = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, method=method)
    found = design.to_dict()
    assert set(found) >= KEYS
    assert 1 - 1e-6 < found["exact"]["epsilon"] <= 1
    assert found["exact"]["bias"] == 0
    assert found["certified"]
    assert design.private
    assert design.certificate is not None
    assert found["status"] == "optimal"
    assert found["mae"] == pytest.approx(design.mechanism.mae())
    json.dumps(found, allow_nan=False)
    assert "MAE" in str(design)


def test_uncertified_design_reports_its_bias():
    design = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, knots=41, certify=False)
    assert not design.private
    assert design.certificate is None
    assert any(
        "is NOT private at the requested budget: exact pure epsilon is 1.0" in words
        for words in design.words
    )
    better = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, knots=41)
    assert better.objective == pytest.approx(design.objective, abs=1e-12)


def test_exact_method_equals_reference_values():
    values = [
        wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, knots=k).mechanism.mae()
        for k in (0, 41)
    ]
    assert values == pytest.approx([1.798681, 1.700701], abs=1e-6)


def test_two_outputs_are_compared_with_their_closed_form():
    design = wb.design(wb.Quantization([-3, 3]), epsilon=1)
    assert design.oracle.valid
    assert design.oracle.agrees
    assert design.oracle.value == pytest.approx((9 - 1 / 3) / 3)


def test_optimised_levels_are_above_the_proven_limit():
    design = wb.design(wb.Quantization(levels=4), epsilon=1, starts=1)
    assert design.mechanism.mae() < 1.66
    assert design.bound is not None
    assert design.bound < design.mechanism.mae()
    assert design.oracle.kind == "lower bound"
    assert design.oracle.agrees


def test_two_optimised_outputs_are_randomized_response():
    design = wb.design(wb.Quantization(levels=2), epsilon=1)
    reach = 1 / math.tanh(0.5)
    assert design.mechanism.mae() == pytest.approx((reach**2 - 1 / 3) / reach, abs=1e-5)
    assert design.private


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ({}, {"epsilon": 2}),
        ({"c": 3, "density": "normal:0.2,0.4"}, {"epsilon": "1.5", "loss": "0.3"}),
        ({"density": "normal:0.5,0.2"}, {"epsilon": 6, "loss": "squared"}),
        ({}, {"epsilon": 2, "method": "mvu"}),
        ({}, {"epsilon": "0.3", "method": "mvu", "loss": "absolute", "inputs": 5}),
    ],
)
def test_bound_of_two_optimised_outputs_is_their_optimum(
    question: dict[str, Any], options: dict[str, Any]
):
    design = wb.design(wb.Quantization(levels=2, **question), **options)
    assert design.bound is not None
    assert design.bound <= design.objective
    assert design.bound == pytest.approx(design.objective, rel=5e-6)
    assert design.oracle.agrees
    assert design.oracle.kind == (
        "optimum" if design.request.how.method == "exact" else "lower bound"
    )
    wide = wb.design(
        wb.Quantization(levels=2, **question), epsilon=options["epsilon"], method="product"
    )
    assert wide.oracle.kind == "lower bound"  # Its outputs are on a grid.
    assert wide.oracle.agrees


@pytest.mark.parametrize("metric", [None, "absolute", "squared"])
@pytest.mark.parametrize(
    ("bins", "inputs"), [("-2,-0.3,0.4,1.9", 3), ("-3,-1,1,3", 5), ("-4,-0.1,2.5", 2)]
)
def test_bound_of_mvu_at_given_outputs_is_its_program_bound(
    bins: str, inputs: int, metric: str | None
):
    design = wb.design(wb.Quantization(bins), epsilon=2, method="mvu", inputs=inputs, metric=metric)
    assert design.bound == pytest.approx(design.objective, rel=1e-7)
    assert design.private


@pytest.mark.parametrize(
    ("levels", "epsilon", "options"),
    [
        (2, "0.7", {}),
        (3, "2", {"loss": "squared"}),
        (4, "1", {"starts": 1}),
        (4, "2.5", {"starts": 1}),
        (3, "1.56", {"method": "mvu"}),
        (5, "0.62", {"method": "mvu", "loss": "absolute"}),
        (3, "2", {"method": "mvu", "metric": "squared"}),
    ],
)
def test_outputs_by_distance_are_beyond_the_least_reach(
    levels: int, epsilon: str, options: dict[str, Any]
):
    """The best outermost outputs are at the least reach, where every ratio is tight."""
    asked: dict[str, Any] = {"epsilon": epsilon, "metric": "absolute"} | options
    design = wb.design(wb.Quantization(levels=levels), **asked)
    raw = wb.design(wb.Quantization(levels=levels), **asked, certify=False)
    assert design.private
    assert design.mechanism.bias == 0
    assert design.objective == pytest.approx(raw.objective, rel=1e-6)


def test_smallest_epsilon_and_reach_by_distance():
    """Σ (B_i + B) p_i(x) = x + B grows by at most ε of itself: B >= c + 1/ε."""
    with pytest.raises(wb.InvalidRequest, match="reach must be above 2, "):
        wb.design(wb.Quantization(levels=3), epsilon=1, metric="absolute", reach="1.9")
    with pytest.raises(wb.Infeasible, match="at least 1 for outputs"):
        wb.design(wb.Quantization("-5,0,2"), epsilon="0.99", metric="absolute")
    assert wb.design(wb.Quantization("-5,0,2.001"), epsilon=1, metric="absolute").private


def test_metric_designs_are_private_by_distance():
    design = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, metric="absolute", knots=11)
    assert design.claim.notion.name == "metric"
    assert 1 - 1e-6 < design.privacy.metric_epsilon <= 1
    assert design.private
    grid = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, metric="squared", method="mvu")
    assert grid.private
    assert grid.certificate is not None
    with pytest.raises(wb.InvalidRequest, match="whose laws jump"):
        wb.design(wb.Quantization("-3,3"), epsilon=1, method="optm", metric="absolute")


@pytest.mark.parametrize("method", ["exact", "optm", "mvu"])
@pytest.mark.parametrize("m", range(3, 17))
def test_repair_keeps_every_number_of_outputs(m: int, method: str):
    bins = [-3 + 6 * Fraction(k, m - 1) for k in range(m)]
    design = wb.design(wb.Quantization(bins), epsilon=1, method=method)
    raw = wb.design(wb.Quantization(bins), epsilon=1, method=method, certify=False)
    assert design.private
    assert design.mechanism.bias == 0
    assert design.mechanism.mae() == pytest.approx(raw.mechanism.mae(), rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "optm", "product", "mvu"])
@pytest.mark.parametrize("c", ["0.000001", "1/3", "1000000"])
def test_inputs_may_have_any_magnitude(method: str, c: str):
    unit = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, method=method).to_dict()
    scale = Fraction(c)
    bins = [Fraction(b) * scale for b in ("-3", "-1/2", "1/2", "3")]
    design = wb.design(wb.Quantization(bins, c=scale), epsilon=1, method=method)
    assert design.private
    assert design.certificate is not None
    found, s = design.to_dict(), float(scale)
    assert design.mechanism.c == scale
    assert found["mae"] == pytest.approx(s * unit["mae"], rel=1e-9)
    assert found["mae_51"] == pytest.approx(s * unit["mae_51"], rel=1e-9)
    assert found["mse"] == pytest.approx(s * s * unit["mse"], rel=1e-9)
    power = 2 if method == "mvu" else 1
    assert found["objective"] == pytest.approx(s**power * unit["objective"], rel=1e-9)
    if unit["bound"] is not None:
        assert found["bound"] == pytest.approx(s**power * unit["bound"], rel=1e-9)


def test_densities_losses_and_metrics_scale_with_the_inputs():
    bins, wide_bins = "-3,-0.5,0.5,3", "-3000,-500,500,3000"
    big = wb.design(
        wb.Quantization(wide_bins, c=1000, density="normal:500,200"), epsilon=1, loss="1/1001"
    )
    # If e = 1000 u, then |e|/1001 + 1000 e²/1001 weighs |u| and u² as 1 : 10^6.
    far = wb.design(wb.Quantization(bins, density="normal:0.5,0.2"), epsilon=1, loss="1/1000001")
    assert big.objective == pytest.approx(
        far.objective * (1000 / 1001 + 1000 * 10**6 / 1001), rel=1e-9
    )
    near = wb.design(wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, metric="absolute", knots=9)
    wide = wb.design(
        wb.Quantization("-3000,-500,500,3000", c=1000), epsilon="0.001", metric="absolute", knots=9
    )
    assert wide.private
    assert wide.objective == pytest.approx(1000 * near.objective, rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.3"])
@pytest.mark.parametrize("method", ["exact", "mvu"])
def test_small_budgets_are_certified(epsilon: str, method: str):
    design = wb.design(wb.Quantization(levels=3), epsilon=epsilon, method=method, starts=1)
    assert design.private
    assert design.certificate is not None
    reach = 1 / math.tanh(float(epsilon) / 2)
    assert design.mechanism.mae() <= (reach**2 - 1 / 3) / reach * (
        1 + 1e-5
    )  # This is randomized response.


@pytest.mark.parametrize(
    ("epsilon", "density"), [(12, "uniform"), (30, "uniform"), (7, "normal:0.5,0.2")]
)
def test_large_budgets_have_a_bound(epsilon: float, density: str):
    design = wb.design(wb.Quantization(levels=3, density=density), epsilon=epsilon, starts=1)
    assert design.private
    assert design.bound is not None
    assert 0 < design.bound <= design.objective
    if density == "uniform":
        assert design.objective == pytest.approx(
            1 / 3, rel=1e-4
        )  # This is stochastic rounding to -1, 0 and 1.
        assert design.bound == pytest.approx(1 / 3, rel=1e-6)


def test_squared_distances_add_up_over_the_coordinates_of_a_vector():
    design = wb.design(wb.Quantization("-3,-1,1,3"), epsilon=2, metric="squared", knots=5)
    assert any("dithered to" in words for words in design.words)
    points = [float(k) for k in design.mechanism.knots]
    laws = design.mechanism.probabilities(points)
    loss = np.log(laws[:, None, :] / laws[None, :, :]).max(
        axis=2
    )  # The law of one coordinate is given by two points.
    vectors = list(itertools.product(range(5), repeat=3))
    for x, y in itertools.product(vectors[::7], vectors[::5]):
        spent = sum(loss[a, b] for a, b in zip(x, y, strict=True))
        distance = sum((points[a] - points[b]) ** 2 for a, b in zip(x, y, strict=True))
        assert (
            spent <= 2 * distance + 1e-12
        )  # Thus vectors of diameter B are 2 B²-private (Section 5).


def test_error_names_the_smallest_feasible_epsilon_by_distance():
    for bins, options in (
        ("-3,-1,1,3", {"metric": "squared", "knots": 5}),
        ("-5,-0.3,0.9,2", {"metric": "squared", "knots": 4}),
        ("-2,0,4", {"metric": "squared", "method": "mvu", "inputs": 4}),
        ("-3,-1,1,3", {"metric": "absolute"}),
        ("-5,0,2.5", {"metric": "absolute", "method": "mvu", "inputs": 4}),
    ):
        question: Any = wb.Quantization(bins)
        with pytest.raises(
            wb.Infeasible, match=r"The smallest feasible epsilon is|epsilon must be at least"
        ) as raised:
            wb.design(question, epsilon="0.1", **options)
        least = float(re.findall(r"(?:is|least) ([\d.]+\d)", str(raised.value))[0])
        assert wb.design(question, epsilon=least * 1.0001, **options).private
        with pytest.raises(wb.Infeasible):
            wb.design(question, epsilon=least * 0.9999, **options)


@pytest.mark.parametrize(
    ("question", "request_", "words"),
    [
        (
            {"bins": "-3,3"},
            {"epsilon": 0.5},
            r"epsilon must be at least 0.693147181 for outputs in \[-3, 3\].*Got 0.5",
        ),
        ({"bins": "-1,0,2"}, {"epsilon": 1}, r"bins must reach beyond \[-1, 1\] on both sides"),
        ({"bins": "-3,3"}, {"epsilon": -1}, r"epsilon must be a finite number > 0. Got -1"),
        ({"bins": "-3,3"}, {"epsilon": 31}, "at most 30"),
        ({"bins": "-3,3"}, {"epsilon": 1, "method": "best"}, "method must be one of"),
        ({"bins": "-3,3"}, {"epsilon": 1, "loss": "rmse"}, "loss must be"),
        ({"bins": "-3,3"}, {"epsilon": 1, "knots": -1}, "knots must be"),
        ({"bins": "-3,3"}, {"epsilon": 1, "method": "mvu", "knots": 5}, "knots must be left out"),
        ({"levels": 4}, {"epsilon": 1, "reach": 2}, "reach must be above 2.16395"),
        ({"bins": "-3,3"}, {"epsilon": 1, "solver": "nobody"}, "solver must be one of"),
        ({"bins": "-3,3"}, {"epsilon": 1, "knots": 1}, "knots must be 0, or at least 2"),
        ({"bins": "-3,3"}, {"epsilon": 1, "reach": 5}, "reach must be left out with bins"),
    ],
)
def test_invalid_requests_raise(question: dict, request_: dict, words: str):
    with pytest.raises(wb.WorkbenchError, match=words):
        wb.design(wb.Quantization(**question), **request_)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "bins or levels must be given"),
        ({"bins": "-3,3", "levels": 2}, "not both"),
        ({"bins": "-3,,3"}, "a bin must be a finite number"),
        ({"bins": "-3,1,1,3"}, "bins must be strictly increasing"),
        ({"bins": "3,-3"}, "bins must be strictly increasing"),
        ({"bins": "-0.5,3"}, "bins must be numbers that cover the inputs"),
        ({"levels": 1}, "levels must be an integer in 2..64. Got 1"),
        ({"bins": "-3,3", "c": 0}, "c must be a finite number > 0"),
        ({"bins": "-3,3", "density": "x"}, "density must be uniform, or normal"),
    ],
)
def test_invalid_questions_raise(arguments: dict, words: str):
    with pytest.raises(wb.InvalidRequest, match=words):
        wb.Quantization(**arguments)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command line in this process.

    Returns:
        The exit code, standard output and standard error.
    """
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_command_line_designs_quantizers(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, out, _ = run(
        capsys,
        "design",
        "quantizer",
        "--bins=-3,-0.5,0.5,3",
        "--epsilon",
        "1",
        "--knots",
        "41",
        "--save",
        str(tmp_path / "q.json"),
        "--plot",
        str(tmp_path / "q.png"),
        "--json",
    )
    assert code == 0
    found = json.loads(out)
    assert set(found) >= KEYS
    assert found["mae"] == pytest.approx(1.700701, abs=1e-6)
    assert found["certified"]
    certificate = check(tmp_path / "q.json")
    assert certificate.epsilon == 1
    assert certificate.bias is not None
    assert certificate.bias.worst == 0
    assert certificate.mechanism.outputs.tolist() == found["bins"]
    assert (tmp_path / "q.png").stat().st_size > 10_000


def test_command_line_prints_reports_and_errors(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "design", "quantizer", "--bins=-3,3", "--epsilon", "1.2")
    assert code == 0
    assert "Output law" in out
    for arguments in (
        ["--bins=3,-3", "--epsilon", "1"],
        ["--bins=-3,3", "--epsilon", "0.5"],
        ["--bins=-3,3", "--epsilon", "1", "--density", "normal:0,-1"],
    ):
        code, _, err = run(capsys, "design", "quantizer", *arguments)
        assert code == 2
        assert err.count("\n") == 1


def test_command_line_audits_published_quantizers(capsys: pytest.CaptureFixture[str]):
    rqm = ("audit", "rqm", "--with", "bins=-2.7,-0.9,0.9,2.7", "--with", "q=0.22")
    code, out, _ = run(capsys, *rqm, "--loss", "absolute", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["mae_51"] == pytest.approx(1.99286, abs=5e-6)
    assert found["mean_error"] == pytest.approx(found["mae_51"], rel=0.01)
    assert found["pure_epsilon"] == pytest.approx(0.998767, abs=1e-6)
    assert found["bias"] == 0
    code, out, _ = run(capsys, "audit", "erm", "--with", "bins=-3,-1,1,3", "--with", "gamma=1")
    assert code == 0
    assert "published epsilon" in out
    for bad in (("--with", "q"), ("--with", "levels=4"), ("--with", "bins=-3")):
        code, _, err = run(capsys, *rqm, *bad)
        assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [
        ("rqm", {"bins": "-3,3"}),
        ("rqm", {"bins": "-3,3", "q": 0.2, "gamma": 1}),
        ("best", {}),
        ("pbm", {"levels": 4}),
        ("pbm", {"levels": 4, "theta": 0.1, "epsilon": 1}),
        ("biased", {"bins": "-3,3", "q": 0.1}),
        ("randomized-response", {"epsilon": 0}),
    ],
)
def test_invalid_published_quantizers_raise(mechanism: str, parameters: dict):
    with pytest.raises(wb.InvalidRequest):
        build_named_quantizer(mechanism, **parameters)


def test_every_published_quantizer_can_be_built():
    for mechanism, parameters in (
        ("pbm", {"levels": 4, "epsilon": 1}),
        ("randomized-response", {"epsilon": 1}),
        ("biased", {"bins": "-2.7,-0.9,0.9,2.7", "q": 0.22, "beta": 0.3}),
    ):
        design = build_named_quantizer(mechanism, **parameters)
        assert design.mae(parse_density("normal:0.5,0.2", 1.0)) > 0
        assert (
            0
            < (design.epsilon if hasattr(design, "epsilon") else wb.audit(design, 0).pure_epsilon)
            < 3
        )


@pytest.mark.parametrize("method", ["exact", "mvu"])
def test_outputs_stay_within_the_reach(method: str):
    design = wb.design(wb.Quantization(levels=4, c=2), epsilon=1, method=method, reach=5, starts=1)
    assert max(abs(b) for b in design.mechanism.bins) <= 5
    assert design.bound is not None
    assert design.bound <= design.objective
    assert any("within ±5 (reach)" in sentence for sentence in design.words)
    assert any(
        "not proven optimal over all outputs. No choice of outputs" in sentence
        for sentence in design.words
    )


def test_bits_option_sets_levels():
    kind = next(kind for kind in list_families() if kind.name == "quantizer")
    assert kind.make_request_from_options(bits=2, epsilon=1).question == wb.Quantization(levels=4)
    given, spelled = (
        kind.read_values({"epsilon": 1, **more}, "sweep") for more in ({"bits": 2}, {"levels": 4})
    )
    assert kind.sweep_key(given) == kind.sweep_key(spelled)
    with pytest.raises(wb.InvalidRequest, match="bits must be left out with levels"):
        kind.make_request_from_options(bits=2, levels=4, epsilon=1)


@pytest.mark.parametrize("loss", ["mae", "mse", "worst", 2])
def test_losses_have_the_common_names(loss: object):
    known = {"mae": "absolute, the name", "mse": "squared, the name"}.get(
        str(loss), "one of absolute, squared, λ; "
    )
    with pytest.raises(wb.InvalidRequest, match=f"loss must be {known}"):
        wb.design(wb.Quantization(bins=[-3, 3]), epsilon=1, loss=loss)
