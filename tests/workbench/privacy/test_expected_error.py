"""Compare the expected losses of every kind of mechanism with explicit sums and integrals."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.workbench.privacy.test_verbs import CASES, Design
from workbench.mechanisms.baselines.two_bin import rqm
from workbench.mechanisms.label_randomizers.randomized_response import rr_k_ary
from workbench.mechanisms.mechanism import can_publish_reals
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.privacy.expected_error import compute_expected_error
from workbench.questions.density import normal_density

# Names of the mechanisms with finitely many inputs, and so with exact sums.
FINITE_CASES = [
    name
    for name, case in CASES.items()
    if case.mechanism.inputs is not None and not can_publish_reals(case.mechanism)
]
# Losses as functions of the output minus the input.
LOSS_BY_NAME = {
    "absolute": abs,
    "squared": lambda error: error * error,
    "error-rate": lambda error: int(error != 0),
}


@pytest.mark.parametrize("loss", LOSS_BY_NAME)
@pytest.mark.parametrize("name", [name for name in FINITE_CASES if name != "vector noise"])
def test_the_loss_of_finitely_many_inputs_equals_an_explicit_sum(name: str, loss: str) -> None:
    mechanism = CASES[name].mechanism
    outputs = [Fraction(output) for output in np.asarray(mechanism.outputs).tolist()]
    inputs = np.asarray(mechanism.inputs).tolist()
    losses = [
        sum(
            p * LOSS_BY_NAME[loss](output - Fraction(x))
            for output, p in zip(outputs, mechanism.law(x), strict=True)
        )
        for x in inputs
    ]
    column = [inputs[0], inputs[-1], inputs[-1]]
    error = compute_expected_error(mechanism, loss, column)
    assert error.mean_error == (losses[0] + 2 * losses[-1]) / 3
    assert error.worst_error == max(losses)
    assert losses[inputs.index(error.worst_input)] == max(losses)
    weighted_error = compute_expected_error(mechanism, loss, {inputs[0]: 1, inputs[-1]: 2})
    assert weighted_error.mean_error == error.mean_error


def test_the_prior_of_a_label_randomizer_is_the_default_data() -> None:
    mechanism = CASES["RR-on-Bins"].mechanism
    default = compute_expected_error(mechanism, "squared")
    with_prior = compute_expected_error(mechanism, "squared", mechanism.labels)
    uniform = compute_expected_error(mechanism, "squared", mechanism.inputs)
    assert default.mean_error == with_prior.mean_error
    assert default.mean_error != uniform.mean_error
    assert float(default.mean_error) == pytest.approx(
        mechanism.loss(lambda output, label: (output - label) ** 2), rel=1e-12
    )


def test_the_only_loss_of_vector_noise_is_the_error_rate() -> None:
    mechanism = CASES["vector noise"].mechanism
    error = compute_expected_error(mechanism, "error-rate", data=[[0, 1], [1, 2]])
    assert error.mean_error == error.worst_error == Fraction(7, 10)
    with pytest.raises(
        wb.InvalidRequest, match=r"^loss must be error-rate for a vector query\. Got 'squared'\.$"
    ):
        compute_expected_error(mechanism, "squared")


def make_jumping_law() -> PiecewiseAffine:
    """Return a biased law on real inputs: two pieces with a jump between them, and three outputs."""
    return PiecewiseAffine.from_laws(
        [-1, 0, 2], [-2, Fraction(1, 2), 3], [[3, 1, 1], [1, 3, 1], [1, 1, 3], [0, 4, 1]]
    )


RQM = rqm("-2,-0.5,0.5,2", "0.3")  # Its inputs are [-1, 1].
each_real_loss = pytest.mark.parametrize("loss", ["absolute", "squared"])
each_real_mechanism = pytest.mark.parametrize(
    "mechanism", [RQM, make_jumping_law()], ids=["rqm", "jumps"]
)


def sum_loss(mechanism: PiecewiseAffine, loss: str, x: Fraction) -> Fraction:
    """Return the expected loss at the input x, as a sum over the outputs."""
    return sum(
        (
            p * LOSS_BY_NAME[loss](output - x)
            for p, output in zip(mechanism.law(x), mechanism.bins, strict=True)
        ),
        Fraction(0),
    )


def list_inputs(mechanism: PiecewiseAffine, count: int) -> list[Fraction]:
    """Return equally spaced inputs from the first knot to the last one."""
    low, high = mechanism.knots[0], mechanism.knots[-1]
    return [low + (high - low) * Fraction(k, count - 1) for k in range(count)]


@each_real_loss
@each_real_mechanism
def test_the_losses_on_real_inputs_are_close_to_those_on_a_fine_grid(
    mechanism: PiecewiseAffine, loss: str
) -> None:
    losses = [sum_loss(mechanism, loss, x) for x in list_inputs(mechanism, 701)]
    error = compute_expected_error(mechanism, loss)
    assert isinstance(error.mean_error, Fraction)
    assert float(error.mean_error) == pytest.approx(float(sum(losses)) / 701, abs=1e-2)
    assert max(losses) <= error.worst_error <= max(losses) + Fraction(1, 50)


@each_real_loss
@each_real_mechanism
def test_the_loss_for_a_column_of_numbers_is_the_mean_of_the_losses_at_them(
    mechanism: PiecewiseAffine, loss: str
) -> None:
    column = [float(x) for x in list_inputs(mechanism, 8)]
    error = compute_expected_error(mechanism, loss, column)
    expected_mean = float(np.mean(mechanism.error_at(column, loss)))
    assert error.mean_error == pytest.approx(expected_mean, rel=1e-12)


@each_real_loss
@each_real_mechanism
def test_the_loss_at_knots_is_an_exact_sum(mechanism: PiecewiseAffine, loss: str) -> None:
    """At a jump the law is the limit from the right. At the last knot it is that from the left."""
    knots = mechanism.knots[1:]
    error = compute_expected_error(mechanism, loss, dict.fromkeys(knots, 1))
    assert error.mean_error == sum(sum_loss(mechanism, loss, x) for x in knots) / len(knots)


@each_real_loss
def test_the_mean_loss_on_real_inputs_equals_the_integral_over_their_density(loss: str) -> None:
    uniform_error = compute_expected_error(RQM, loss)
    assert float(uniform_error.mean_error) == pytest.approx(RQM.expected_loss(loss), rel=1e-12)
    normal_error = compute_expected_error(RQM, loss, "normal:0.5,0.1")
    expected_loss = RQM.expected_loss(loss, normal_density(mu=0.5, sigma=0.1))
    assert normal_error.mean_error == pytest.approx(expected_loss, rel=1e-9)


def test_a_law_that_is_no_polynomial_of_pieces_has_no_worst_input() -> None:
    mechanism = CASES["Poisson binomial"].mechanism
    assert compute_expected_error(mechanism, "squared").worst_error is None


def test_the_squared_loss_of_the_poisson_binomial_mechanism_is_its_variance() -> None:
    """At the input x it draws a count with success probability p = 1/2 + θ x from n = 3 trials. The
    output is unbiased, and a unit of the input is θ n counts. So the loss is n p (1 - p) / (θ n)².
    """
    mechanism = CASES["Poisson binomial"].mechanism
    theta = mechanism.theta
    p = Fraction(1, 2) + theta * Fraction(1, 2)
    error = compute_expected_error(mechanism, "squared", [0.5, Fraction(1, 2)])
    assert error.mean_error == 3 * p * (1 - p) / (theta * 3) ** 2
    uniform_error = compute_expected_error(mechanism, "squared")
    assert uniform_error.mean_error == pytest.approx(mechanism.mse(), rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_every_audit_states_a_loss(name: str) -> None:
    case = CASES[name]
    loss = "error-rate" if name == "vector noise" else "absolute"
    privacy = wb.audit(case.mechanism, loss=loss)
    error = privacy.error.to_dict()
    assert wb.audit(Design(case.mechanism), loss=loss).to_dict() == privacy.to_dict()
    assert error["worst_error"] is None or error["mean_error"] <= error["worst_error"] * (1 + 1e-12)
    assert 0 < privacy.pure_epsilon <= float(case.epsilon) + 1e-12
    assert error["exact"] or name == "Poisson binomial"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("k-ary", {"data": [3]}),
        ("k-ary", {"data": "uniform"}),
        ("k-ary", {"loss": "poisson"}),
        ("k-ary", {"data": {0: -1}}),
        ("k-ary", {"data": {0: 0}}),
        ("affine", {"data": [3]}),
        ("affine", {"loss": "error-rate"}),
        ("affine", {"data": [float("nan")]}),
        ("affine", {"data": "lognormal"}),
        ("affine", {"data": []}),
    ],
)
def test_bad_losses_and_data_are_refused_in_one_form(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(wb.InvalidRequest, match=r" must be .* Got (?s:.)*\.$"):
        wb.audit(CASES[name].mechanism, **options)


def test_too_many_pairs_of_input_and_output_are_refused() -> None:
    labels = wb.Labels.uniform(0, 2100)
    with pytest.raises(
        wb.InvalidRequest, match=r"^inputs times outputs must be at most 4000000 .* Got 4414201\.$"
    ):
        wb.audit(rr_k_ary(labels, 1), loss="absolute")


def test_a_column_is_read_from_a_file(tmp_path: Any) -> None:
    file = tmp_path / "column.csv"
    file.write_text("amount\n0\n1\n1\n")
    mechanism = CASES["channel, all rows"].mechanism
    assert wb.audit(mechanism, data=file).error == wb.audit(mechanism, data=[0, 1, 1]).error


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("k-ary", "--loss absolute"),
        ("affine", "--data normal:0,0.5 --loss squared"),
        ("vector noise", "--loss error-rate"),
    ],
)
def test_the_command_states_the_loss_of_a_file(
    name: str, options: str, tmp_path: Any, capsys: Any
) -> None:
    from workbench.cli import main

    file = str(tmp_path / "mechanism.json")
    wb.save(CASES[name].mechanism, file)
    outputs = []
    for format_options in (["--json"], []):
        with pytest.raises(SystemExit) as end:
            main(["audit", file, *options.split(), *format_options])
        assert end.value.code == 0
        outputs.append(capsys.readouterr().out)
    json_text, report = outputs
    assert 0 < json.loads(json_text)["mean_error"] <= json.loads(json_text)["worst_error"]
    assert "exact pure epsilon" in report
