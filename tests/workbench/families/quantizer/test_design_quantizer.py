"""Test designs of quantizers in Python and on the command line, and their errors."""

from __future__ import annotations

import functools
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

# Keys of every report of a design in JSON.
KEYS = {"mae", "mae_51", "mse", "exact", "bins", "method", "objective", "bound", "status"}
# The bins (outputs) of most tests. Inputs are in [-1, 1].
BINS = "-3,-0.5,0.5,3"
# The mean absolute error of the exact method at these bins and ε = 1, with a law of 41 knots: value
# of the current program, pinned.
ERROR_WITH_41_KNOTS = 1.700701


@functools.cache
def design_for_bins(method: str) -> wb.Design:
    """Design a quantizer with the outputs BINS at ε = 1."""
    return wb.design(wb.Quantization(BINS), epsilon=1, method=method)


ALL_METHODS = pytest.mark.parametrize("method", ["exact", "optm", "product", "mvu"])


@ALL_METHODS
def test_a_design_for_given_bins_is_optimal_and_uses_the_whole_budget(method: str):
    design = design_for_bins(method)
    report = design.to_dict()
    assert report["status"] == "optimal"
    assert design.private
    assert 1 - 1e-6 < report["exact"]["epsilon"] <= 1


@ALL_METHODS
def test_a_design_for_given_bins_is_unbiased_and_certified(method: str):
    design = design_for_bins(method)
    report = design.to_dict()
    assert report["exact"]["bias"] == 0
    assert report["certified"]
    assert design.certificate is not None


@ALL_METHODS
def test_the_report_of_a_design_has_its_keys_and_its_error(method: str):
    design = design_for_bins(method)
    report = design.to_dict()
    assert set(report) >= KEYS
    assert report["mae"] == pytest.approx(design.mechanism.mae())
    json.dumps(report, allow_nan=False)
    assert "MAE" in str(design)


def test_an_uncertified_design_says_that_it_is_not_private():
    """With 41 knots the solver's law exceeds ε = 1 by a rounding error."""
    design = wb.design(wb.Quantization(BINS), epsilon=1, knots=41, certify=False)
    assert not design.private
    assert design.certificate is None
    assert any(
        "is NOT private at the requested budget: exact pure epsilon is 1.0" in words
        for words in design.words
    )
    certified = wb.design(wb.Quantization(BINS), epsilon=1, knots=41)
    assert certified.objective == pytest.approx(design.objective, abs=1e-12)


# The errors are values of the current program, pinned.
@pytest.mark.parametrize(("knots", "recorded_error"), [(0, 1.798681), (41, ERROR_WITH_41_KNOTS)])
def test_exact_method_has_its_recorded_error(knots: int, recorded_error: float):
    design = wb.design(wb.Quantization(BINS), epsilon=1, knots=knots)
    assert design.mechanism.mae() == pytest.approx(recorded_error, abs=1e-6)


def test_two_outputs_are_compared_with_their_closed_form():
    """Outputs ±B have the mean absolute error (B² - 1/3)/B for uniform inputs in [-1, 1]."""
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
    """Its outputs are at the least reach, 1/tanh(ε/2)."""
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
    # The formula of two outputs is the optimum of the method exact, and a bound for the others.
    expected_kind = "optimum" if design.request.how.method == "exact" else "lower bound"
    assert design.oracle.kind == expected_kind
    assert design.oracle.agrees


@pytest.mark.parametrize(
    ("question", "epsilon"),
    [
        ({}, 2),
        ({}, "0.3"),
        ({"c": 3, "density": "normal:0.2,0.4"}, "1.5"),
        ({"density": "normal:0.5,0.2"}, 6),
    ],
)
def test_the_product_method_is_above_the_formula_of_two_outputs(
    question: dict[str, Any], epsilon: Any
):
    """The product method only tries outputs on a grid, so it may miss the optimum."""
    design = wb.design(wb.Quantization(levels=2, **question), epsilon=epsilon, method="product")
    assert design.oracle.kind == "lower bound"
    assert design.oracle.agrees


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
def test_optimised_outputs_by_distance_are_certified_without_a_larger_error(
    levels: int, epsilon: str, options: dict[str, Any]
):
    """The best outermost outputs are near the least reach, where a repair has no margin."""
    request: dict[str, Any] = {"epsilon": epsilon, "metric": "absolute"} | options
    design = wb.design(wb.Quantization(levels=levels), **request)
    raw = wb.design(wb.Quantization(levels=levels), **request, certify=False)
    assert design.private
    assert design.mechanism.bias == 0
    assert design.objective == pytest.approx(raw.objective, rel=1e-6)


def test_requests_by_distance_below_the_least_reach_or_epsilon_are_infeasible():
    """The mean of output + B, which is x + B, has a slope of at most ε (x + B): B >= c + 1/ε."""
    with pytest.raises(wb.InvalidRequest, match="reach must be above 2, "):
        wb.design(wb.Quantization(levels=3), epsilon=1, metric="absolute", reach="1.9")
    with pytest.raises(wb.Infeasible, match="at least 1 for outputs"):
        wb.design(wb.Quantization("-5,0,2"), epsilon="0.99", metric="absolute")
    assert wb.design(wb.Quantization("-5,0,2.001"), epsilon=1, metric="absolute").private


def test_designs_by_distance_use_the_whole_budget():
    design = wb.design(wb.Quantization(BINS), epsilon=1, metric="absolute", knots=11)
    assert design.claim.notion.name == "metric"
    assert 1 - 1e-6 < design.privacy.metric_epsilon <= 1
    assert design.private


def test_designs_by_squared_distance_are_private():
    design = wb.design(wb.Quantization(BINS), epsilon=1, metric="squared", method="mvu")
    assert design.private
    assert design.certificate is not None


def test_a_method_whose_laws_jump_has_no_design_by_distance():
    with pytest.raises(wb.InvalidRequest, match="whose laws jump"):
        wb.design(wb.Quantization("-3,3"), epsilon=1, method="optm", metric="absolute")


@pytest.mark.parametrize("method", ["exact", "optm", "mvu"])
@pytest.mark.parametrize("m", range(3, 17))
def test_repair_keeps_the_error_for_every_number_of_outputs(m: int, method: str):
    bins = [-3 + 6 * Fraction(k, m - 1) for k in range(m)]
    design = wb.design(wb.Quantization(bins), epsilon=1, method=method)
    raw = wb.design(wb.Quantization(bins), epsilon=1, method=method, certify=False)
    assert design.private
    assert design.mechanism.bias == 0
    assert design.mechanism.mae() == pytest.approx(raw.mechanism.mae(), rel=1e-6)


@pytest.mark.parametrize("method", ["exact", "optm", "product", "mvu"])
@pytest.mark.parametrize("c", ["0.000001", "1/3", "1000000"])
def test_inputs_may_have_any_magnitude(method: str, c: str):
    unit_report = wb.design(wb.Quantization(BINS), epsilon=1, method=method).to_dict()
    scale = Fraction(c)
    bins = [Fraction(b) * scale for b in ("-3", "-1/2", "1/2", "3")]
    design = wb.design(wb.Quantization(bins, c=scale), epsilon=1, method=method)
    assert design.private
    assert design.certificate is not None
    assert design.mechanism.c == scale
    # The objective of MVU is a squared error, those of the other methods are absolute errors.
    power = 2 if method == "mvu" else 1
    powers = {"mae": 1, "mae_51": 1, "mse": 2, "objective": power, "bound": power}
    report = design.to_dict()
    for key, exponent in powers.items():
        if unit_report[key] is not None:
            scaled_error = float(scale) ** exponent * unit_report[key]
            assert report[key] == pytest.approx(scaled_error, rel=1e-9)


WIDE_BINS = "-3000,-500,500,3000"  # The same as BINS, if inputs are in [-1000, 1000].


def test_densities_and_losses_scale_with_the_inputs():
    """If e = 1000 u, then |e|/1001 + 1000 e²/1001 weighs |u| and u² as 1 : 10^6."""
    wide_question = wb.Quantization(WIDE_BINS, c=1000, density="normal:500,200")
    wide = wb.design(wide_question, epsilon=1, loss="1/1001")
    unit_question = wb.Quantization(BINS, density="normal:0.5,0.2")
    unit = wb.design(unit_question, epsilon=1, loss="1/1000001")
    factor = 1000 / 1001 + 1000 * 10**6 / 1001
    assert wide.objective == pytest.approx(factor * unit.objective, rel=1e-9)


def test_epsilon_by_distance_is_a_budget_per_unit_of_the_inputs():
    request = {"metric": "absolute", "knots": 9}
    unit = wb.design(wb.Quantization(BINS), epsilon=1, **request)
    wide = wb.design(wb.Quantization(WIDE_BINS, c=1000), epsilon="0.001", **request)
    assert wide.private
    assert wide.objective == pytest.approx(1000 * unit.objective, rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.3"])
@pytest.mark.parametrize("method", ["exact", "mvu"])
def test_small_budgets_are_certified_with_the_error_of_randomized_response(
    epsilon: str, method: str
):
    design = wb.design(wb.Quantization(levels=3), epsilon=epsilon, method=method, starts=1)
    assert design.private
    assert design.certificate is not None
    reach = 1 / math.tanh(float(epsilon) / 2)
    randomized_response_error = (reach**2 - 1 / 3) / reach
    assert design.mechanism.mae() <= randomized_response_error * (1 + 1e-5)


@pytest.mark.parametrize(
    ("epsilon", "density"), [(12, "uniform"), (30, "uniform"), (7, "normal:0.5,0.2")]
)
def test_large_budgets_have_a_bound(epsilon: float, density: str):
    design = wb.design(wb.Quantization(levels=3, density=density), epsilon=epsilon, starts=1)
    assert design.private
    assert design.bound is not None
    assert 0 < design.bound <= design.objective
    if density == "uniform":
        # Stochastic rounding to -1, 0 and 1 has the error 1/3.
        assert design.objective == pytest.approx(1 / 3, rel=1e-4)
        assert design.bound == pytest.approx(1 / 3, rel=1e-6)


def test_squared_distances_add_up_over_the_coordinates_of_a_vector():
    design = wb.design(wb.Quantization("-3,-1,1,3"), epsilon=2, metric="squared", knots=5)
    assert any("dithered to" in words for words in design.words)
    points = [float(k) for k in design.mechanism.knots]
    laws = design.mechanism.probabilities(points)
    # privacy_losses[a, b] is the largest privacy loss between one coordinate at points a and b.
    privacy_losses = np.log(laws[:, None, :] / laws[None, :, :]).max(axis=2)
    vectors = list(itertools.product(range(5), repeat=3))
    for x, y in itertools.product(vectors[::7], vectors[::5]):
        coordinates = list(zip(x, y, strict=True))
        privacy_loss = sum(privacy_losses[a, b] for a, b in coordinates)
        squared_distance = sum((points[a] - points[b]) ** 2 for a, b in coordinates)
        assert privacy_loss <= 2 * squared_distance + 1e-12


@pytest.mark.parametrize(
    ("bins", "options"),
    [
        ("-3,-1,1,3", {"metric": "squared", "knots": 5}),
        ("-5,-0.3,0.9,2", {"metric": "squared", "knots": 4}),
        ("-2,0,4", {"metric": "squared", "method": "mvu", "inputs": 4}),
        ("-3,-1,1,3", {"metric": "absolute"}),
        ("-5,0,2.5", {"metric": "absolute", "method": "mvu", "inputs": 4}),
    ],
)
def test_error_names_the_smallest_feasible_epsilon_by_distance(bins: str, options: dict[str, Any]):
    question: Any = wb.Quantization(bins)
    message = r"The smallest feasible epsilon is|epsilon must be at least"
    with pytest.raises(wb.Infeasible, match=message) as raised:
        wb.design(question, epsilon="0.1", **options)
    least_epsilon = float(re.findall(r"(?:is|least) ([\d.]+\d)", str(raised.value))[0])
    assert wb.design(question, epsilon=least_epsilon * 1.0001, **options).private
    with pytest.raises(wb.Infeasible):
        wb.design(question, epsilon=least_epsilon * 0.9999, **options)


@pytest.mark.parametrize(
    ("question", "options", "message"),
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
def test_invalid_requests_raise(question: dict, options: dict, message: str):
    with pytest.raises(wb.WorkbenchError, match=message):
        wb.design(wb.Quantization(**question), **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_invalid_questions_raise(arguments: dict, message: str):
    with pytest.raises(wb.InvalidRequest, match=message):
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


DESIGN_COMMAND = ("design", "quantizer", f"--bins={BINS}", "--epsilon", "1", "--knots", "41")


def test_command_line_reports_a_design(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, *DESIGN_COMMAND, "--json")
    assert code == 0
    report = json.loads(out)
    assert set(report) >= KEYS
    assert report["mae"] == pytest.approx(ERROR_WITH_41_KNOTS, abs=1e-6)
    assert report["certified"]


def test_command_line_saves_a_certificate(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "q.json"
    code, _, _ = run(capsys, *DESIGN_COMMAND, "--save", str(path))
    assert code == 0
    certificate = check(path)
    assert certificate.epsilon == 1
    assert certificate.bias is not None
    assert certificate.bias.worst == 0
    assert certificate.mechanism.outputs.tolist() == [-3, -0.5, 0.5, 3]


def test_command_line_plots_a_design(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "q.png"
    code, _, _ = run(capsys, *DESIGN_COMMAND, "--plot", str(path))
    assert code == 0
    assert path.stat().st_size > 10_000


def test_command_line_prints_the_output_law(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "design", "quantizer", "--bins=-3,3", "--epsilon", "1.2")
    assert code == 0
    assert "Output law" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bins=3,-3", "--epsilon", "1"],
        ["--bins=-3,3", "--epsilon", "0.5"],
        ["--bins=-3,3", "--epsilon", "1", "--density", "normal:0,-1"],
    ],
)
def test_command_line_refuses_invalid_requests_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
):
    code, _, err = run(capsys, "design", "quantizer", *arguments)
    assert code == 2
    assert err.count("\n") == 1


AUDIT_RQM = ("audit", "rqm", "--with", "bins=-2.7,-0.9,0.9,2.7", "--with", "q=0.22")


def test_command_line_audits_rqm(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, *AUDIT_RQM, "--loss", "absolute", "--json")
    assert code == 0
    report = json.loads(out)
    # Values of the current program, pinned. Table 1 of Cai et al. 2024 prints 1.993.
    assert report["mae_51"] == pytest.approx(1.99286, abs=5e-6)
    assert report["mean_error"] == pytest.approx(report["mae_51"], rel=0.01)
    assert report["pure_epsilon"] == pytest.approx(0.998767, abs=1e-6)
    assert report["bias"] == 0


def test_command_line_audit_of_erm_shows_its_published_epsilon(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "audit", "erm", "--with", "bins=-3,-1,1,3", "--with", "gamma=1")
    assert code == 0
    assert "published epsilon" in out
    assert "does NOT hold" not in out


def test_command_line_audit_says_where_theorem_1_is_false(capsys: pytest.CaptureFixture[str]):
    with_bins = "bins=-1.1,-11/30,11/30,1.1"
    arguments = ("audit", "erm", "--with", with_bins, "--with", "gamma=0.1")
    _, out, _ = run(capsys, *arguments)
    line = next(line for line in out.splitlines() if line.startswith("published epsilon"))
    assert "2.27475172" in line
    assert "does NOT hold here" in line
    _, out, _ = run(capsys, *arguments, "--json")
    report = json.loads(out)
    assert report["published_epsilon"] < report["pure_epsilon"] <= report["proven_epsilon"]


@pytest.mark.parametrize("parameter", ["q", "levels=4", "bins=-3"])
def test_command_line_refuses_an_invalid_parameter_in_one_line(
    parameter: str, capsys: pytest.CaptureFixture[str]
):
    code, _, err = run(capsys, *AUDIT_RQM, "--with", parameter)
    assert code == 2
    assert err.count("\n") == 1


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


@pytest.mark.parametrize(
    ("mechanism", "parameters"),
    [
        ("pbm", {"levels": 4, "epsilon": 1}),
        ("randomized-response", {"epsilon": 1}),
        ("biased", {"bins": "-2.7,-0.9,0.9,2.7", "q": 0.22, "beta": 0.3}),
    ],
)
def test_published_quantizers_have_an_error_and_an_epsilon(mechanism: str, parameters: dict):
    quantizer = build_named_quantizer(mechanism, **parameters)
    assert quantizer.mae(parse_density("normal:0.5,0.2", 1.0)) > 0
    # Mechanisms whose law is not affine state their ε themselves.
    if hasattr(quantizer, "epsilon"):
        epsilon = quantizer.epsilon
    else:
        epsilon = wb.audit(quantizer, 0).pure_epsilon
    assert 0 < epsilon < 3


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


def test_two_bits_are_four_levels():
    family = next(family for family in list_families() if family.name == "quantizer")
    request = family.make_request_from_options(bits=2, epsilon=1)
    assert request.question == wb.Quantization(levels=4)
    values_by_bits = family.read_values({"epsilon": 1, "bits": 2}, "sweep")
    values_by_levels = family.read_values({"epsilon": 1, "levels": 4}, "sweep")
    assert family.sweep_key(values_by_bits) == family.sweep_key(values_by_levels)
    with pytest.raises(wb.InvalidRequest, match="bits must be left out with levels"):
        family.make_request_from_options(bits=2, levels=4, epsilon=1)


@pytest.mark.parametrize(
    ("loss", "accepted_names"),
    [
        ("mae", "absolute, the name"),
        ("mse", "squared, the name"),
        ("worst", "one of absolute, squared, λ; "),
        (2, "one of absolute, squared, λ; "),
    ],
)
def test_unknown_losses_raise_an_error_with_the_accepted_names(loss: object, accepted_names: str):
    with pytest.raises(wb.InvalidRequest, match=f"loss must be {accepted_names}"):
        wb.design(wb.Quantization(bins=[-3, 3]), epsilon=1, loss=loss)
