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

# Names of the mechanisms with finitely many inputs.
FINITE_CASES = [
    name
    for name, case in CASES.items()
    if case.mechanism.inputs is not None and not can_publish_reals(case.mechanism)
]
# Losses as functions of the output minus the input.
LOSS_BY_NAME = {"absolute": abs, "squared": lambda r: r * r, "error-rate": lambda r: int(r != 0)}


@pytest.mark.parametrize("loss", LOSS_BY_NAME)
@pytest.mark.parametrize("name", [name for name in FINITE_CASES if name != "vector noise"])
def test_the_loss_of_finitely_many_inputs_equals_an_explicit_sum(name: str, loss: str) -> None:
    mechanism = CASES[name].mechanism
    outputs = [Fraction(o) for o in np.asarray(mechanism.outputs).tolist()]
    inputs = np.asarray(mechanism.inputs).tolist()
    losses = [
        sum(
            p * LOSS_BY_NAME[loss](o - Fraction(x))
            for o, p in zip(outputs, (mechanism.law(x)), strict=True)
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
    error = compute_expected_error(mechanism, "error-rate", [[0, 1], [1, 2]])
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


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize(
    "mechanism", [rqm("-2,-0.5,0.5,2", "0.3"), make_jumping_law()], ids=["rqm", "jumps"]
)
def test_the_loss_on_real_inputs_equals_a_numerical_integral(
    mechanism: PiecewiseAffine, loss: str
) -> None:
    low, high = mechanism.knots[0], mechanism.knots[-1]
    grid = [low + (high - low) * Fraction(k, 700) for k in range(701)]
    errors = [
        sum(
            p * LOSS_BY_NAME[loss](b - x)
            for p, b in zip(mechanism.law(x), mechanism.bins, strict=True)
        )
        for x in grid
    ]
    error = compute_expected_error(mechanism, loss)
    assert isinstance(error.mean_error, Fraction)
    assert max(errors) <= error.worst_error <= max(errors) + Fraction(1, 50)
    assert float(error.mean_error) == pytest.approx(float(sum(errors)) / 701, abs=1e-2)
    assert compute_expected_error(
        mechanism, loss, [float(x) for x in grid[::100]]
    ).mean_error == pytest.approx(
        float(np.mean(mechanism.error_at([float(x) for x in grid[::100]], loss))), rel=1e-12
    )
    at_knots = compute_expected_error(
        mechanism, loss, dict.fromkeys(mechanism.knots[1:], 1)
    ).mean_error
    # At a jump the law is the limit from the right. At the last knot it is that from the left.
    laws = [mechanism.law(x) for x in mechanism.knots[1:]]
    sums = [
        sum(p * LOSS_BY_NAME[loss](b - x) for p, b in zip(law, mechanism.bins, strict=True))
        for law, x in zip(laws, mechanism.knots[1:], strict=True)
    ]
    assert at_knots == sum(sums) / len(sums)
    if low == -high:
        assert float(error.mean_error) == pytest.approx(mechanism.expected_loss(loss), rel=1e-12)
        clipped = compute_expected_error(mechanism, loss, "normal:0.5,0.1")
        assert clipped.mean_error == pytest.approx(
            mechanism.expected_loss(loss, normal_density(0.5, 0.1)), rel=1e-9
        )


def test_a_law_that_is_no_polynomial_of_pieces_has_no_worst_input() -> None:
    mechanism = CASES["Poisson binomial"].mechanism
    error = compute_expected_error(mechanism, "squared", [0.5, Fraction(1, 2)])
    p = Fraction(1, 2) + mechanism.theta / 2
    # The variance of a binomial with n = 3, in units of (θ n)².
    assert error.mean_error == p * (1 - p) / 3 / mechanism.theta**2
    assert error.worst_error is None
    assert compute_expected_error(mechanism, "squared").mean_error == pytest.approx(
        mechanism.mse(), rel=1e-12
    )


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
