"""Test user-defined losses: functions, arrays and files agree with named losses; others are errors.

A user-defined loss gets a name that begins with "own". It is a loss for each noise value, or a
matrix with a row for each answer and a column for each output.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from tests.tools.test_check_certificate import decide_by_both
from workbench.models.modulo.program import UserLosses, loss_vector
from workbench.sweeps.specification import read_spec

# The noise values are 0..8.
NOISE = wb.ModuloNoise(n=8, max_shift=2)


@pytest.mark.parametrize(("notion", "delta"), [("dp", "0.05"), ("pdp", "0.05"), ("pure", 0)])
def test_noise_has_the_same_optimum_with_a_named_loss_a_function_an_array_or_a_file(
    notion, delta, tmp_path: Path
):
    file = tmp_path / "loss.csv"
    file.write_text("\n".join(str(eta * (9 - eta)) for eta in range(9)))
    request = {"epsilon": 1, "delta": delta, "notion": notion}
    named = wb.design(NOISE, loss="squared", **request)
    for loss in (lambda eta: eta * (9 - eta), loss_vector("squared", (9,)), file, str(file)):
        design = wb.design(NOISE, loss=loss, **request)
        assert design.objective == named.objective
        assert design.request.aim.loss.startswith("own-")


def test_the_certificate_of_a_user_defined_loss_states_its_numbers(tmp_path: Path):
    design = wb.design(NOISE, epsilon=1, loss=lambda eta: eta * (9 - eta))
    design.save(tmp_path / "own.json")
    assert decide_by_both(tmp_path / "own.json") == ("proven", "proven")
    name = design.request.aim.loss
    sentence = f"by numbers that this file states, under the name '{name}'"
    assert sentence in str(wb.check(tmp_path / "own.json"))


def test_losses_are_evaluated_at_every_vector_of_a_group():
    vector = wb.ModuloNoise(sizes=(3, 3), shifts=[(0, 1), (1, 0)])
    design = wb.design(
        vector, epsilon=1, loss=lambda eta: min(eta[0], 3 - eta[0]) + min(eta[1], 3 - eta[1])
    )
    assert design.request.losses.tolist() == [0, 1, 1, 1, 2, 2, 1, 2, 2]


def test_different_user_defined_losses_have_different_names():
    ones = wb.design(NOISE, epsilon=1, loss=[0] + [1] * 8)
    twos = wb.design(NOISE, epsilon=1, loss=[0] + [2] * 8)
    assert ones.request.aim.loss != twos.request.aim.loss


def test_the_name_of_user_defined_losses_is_pickled_with_the_losses():
    losses = wb.design(NOISE, epsilon=1, loss=[0] + [1] * 8).request.aim.loss
    copy = pickle.loads(pickle.dumps(losses))
    assert isinstance(copy, UserLosses)
    assert copy.values.tolist() == losses.values.tolist()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ([1, 2], "loss must be 9 numbers, one for every noise value. Got 2."),
        ([np.inf] * 9, "every loss must be a finite number >= 0"),
        ([-1] * 9, "every loss must be a finite number >= 0"),
        ([[1] * 9], "every loss must be a finite number >= 0"),
        (lambda eta: -1, r"loss\(0\) must be a finite number >= 0. Got -1."),
        (lambda eta: "x", r"loss\(0\) must be a finite number >= 0. Got x."),
        (lambda eta: 1 / eta, "loss must be a function of the noise value. Got ZeroDivisionError"),
        (7, "loss must be a name, a function of the noise value, or losses"),
        ("near", "loss must be one of error-rate, .* or a CSV file of losses. Got 'near'."),
    ],
)
def test_invalid_losses_are_errors(loss, message: str):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(NOISE, epsilon=1, loss=loss)


def test_a_sweep_refuses_a_loss_function():
    with pytest.raises(wb.InvalidRequest, match="a value that is filed must be a name, numbers"):
        read_spec({"grid": {"model": "modulo", "n": 3, "max_shift": 1, "epsilon": 1, "loss": len}})


LABELS = wb.Labels([0, 1, 3], [1, 2, 1])
# The loss |output - label|, with a row for each label.
LABEL_LOSSES = [[abs(output - label) for output in (0, 1, 3)] for label in (0, 1, 3)]


def test_labels_have_the_same_optimum_with_a_named_loss_a_function_a_matrix_or_a_file(
    tmp_path: Path,
):
    file = tmp_path / "loss.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in LABEL_LOSSES))
    named = wb.design(LABELS, epsilon=1, loss="absolute", method="lp")
    for loss in (lambda o, y: abs(o - y), LABEL_LOSSES, file):
        design = wb.design(LABELS, epsilon=1, loss=loss, method="lp")
        assert design.objective == pytest.approx(named.objective, rel=1e-12)
        assert design.to_dict()["loss"].startswith("own")
        assert design.certificate is not None


def test_a_loss_matrix_of_labels_has_a_column_for_each_output():
    design = wb.design(
        LABELS, epsilon=1, loss=[[0, 1], [1, 0], [1, 0]], outputs=[0, 5], method="lp"
    )
    assert design.private


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (LABEL_LOSSES[:2], "loss must be a matrix of 3 rows and 3 columns"),
        (lambda o, y: -1, r"loss\(0, 0\) must be a finite number >= 0"),
        (lambda o, y: 1 / 0, "loss must be a function of an output and an answer"),
    ],
)
def test_invalid_losses_of_labels_are_errors(loss, message: str):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(LABELS, epsilon=1, loss=loss, method="lp")


def test_bins_of_labels_need_a_named_loss():
    with pytest.raises(wb.InvalidRequest, match="loss must be a name if method is bins"):
        wb.design(LABELS, epsilon=1, loss=LABEL_LOSSES, method="bins")


def test_a_loss_matrix_of_labels_selects_the_method_lp():
    assert wb.design(LABELS, epsilon=1, loss=LABEL_LOSSES).request.how.method == "lp"


@pytest.mark.parametrize(
    ("notion", "budget"),
    [
        ("curve", {"curve": "0.5:0.1,1:0.01"}),
        ("renyi", {"alpha": 3, "epsilon": "0.5"}),
        ("zcdp", {"rho": "0.1"}),
        ("gdp", {"mu": 1}),
    ],
)
def test_every_notion_supports_user_defined_losses(notion, budget):
    question = wb.ModuloNoise(n=6, max_shift=1)
    losses = [min(eta, 7 - eta) ** 2 for eta in range(7)]
    named = wb.design(question, notion=notion, loss="circular-squared", **budget)
    for user_loss in (losses, lambda eta: losses[eta]):
        design = wb.design(question, notion=notion, loss=user_loss, **budget)
        assert design.objective == pytest.approx(named.objective, rel=1e-9)
        assert design.certificate.objective.losses == tuple(losses)


def test_a_user_defined_loss_needs_a_number_for_each_noise_value():
    question = wb.ModuloNoise(n=6, max_shift=1)
    with pytest.raises(wb.InvalidRequest, match="7 numbers"):
        wb.design(question, notion="zcdp", rho="0.1", loss=[0, 1, 4])


def test_losses_are_read_from_lists_frames_and_files_alike(tmp_path: Path):
    (tmp_path / "losses.csv").write_text("loss\n0\n1\n4\n\n")
    frame = pd.DataFrame({"loss": [0, 1, 4]})
    question = wb.ModuloNoise(n=2, max_shift=1)
    optima_by_loss = [
        wb.design(question, epsilon=1, loss=loss).objective
        for loss in ([0, 1, 4], frame, tmp_path / "losses.csv")
    ]
    assert optima_by_loss == [optima_by_loss[0]] * 3


def test_priors_are_read_from_lists_frames_and_files_alike(tmp_path: Path):
    (tmp_path / "prior.csv").write_text("share\n0.5\n0.25\n0.25\n")
    question = wb.ModuloNoise(n=2, max_shift=1)
    weights = [
        [0.5, 0.25, 0.25],
        pd.DataFrame({"share": [0.5, 0.25, 0.25]}),
        tmp_path / "prior.csv",
    ]
    optima_by_prior = [
        wb.design(question, epsilon=1, loss="prior-squared", prior=prior).objective
        for prior in weights
    ]
    assert optima_by_prior == [optima_by_prior[0]] * 3


def test_an_invalid_cell_of_a_file_of_losses_is_named(tmp_path: Path):
    (tmp_path / "losses.csv").write_text("0\nx\n4\n")
    question = wb.ModuloNoise(n=2, max_shift=1)
    with pytest.raises(
        wb.InvalidRequest, match=r"^line 2, column 1 of losses.csv must be a finite number"
    ):
        wb.design(question, epsilon=1, loss=tmp_path / "losses.csv")


@pytest.mark.parametrize(
    "question", [wb.IntegerNoise(1, clamp=(0, 3)), wb.ModuloNoise(n=3, max_shift=1)]
)
def test_a_table_of_noise_values_and_losses_is_aligned_by_the_values(
    question: object, tmp_path: Path
):
    """Each text gives the noise values 0..3 the losses 0, 1, 4, 9."""
    for text in (
        "0,1,4,9\n",
        "0\n1\n4\n9\n",
        "loss\n0\n1\n4\n9\n",
        "0,0\n1,1\n2,4\n3,9\n",
        "3,9\n1,1\n0,0\n2,4\n",
    ):
        (tmp_path / "loss.csv").write_text(text)
        design = wb.design(question, epsilon=1, loss=str(tmp_path / "loss.csv"))
        assert design.objective == wb.design(question, epsilon=1, loss=[0, 1, 4, 9]).objective


def overshoot_loss(output: float, answer: float) -> float:
    """Return |output - answer|, or three times as much above the answer."""
    if output > answer:
        return 3 * (output - answer)
    return answer - output


# The same loss as a matrix with a row for each answer.
OVERSHOOT_TABLE = [[overshoot_loss(o, x) for o in range(5)] for x in range(5)]
PRIOR = [5, 1, 1, 1, 1]


def test_a_loss_of_a_finite_query_is_a_function_of_output_and_answer() -> None:
    question = wb.FiniteQuery("0..4", max_shift=1, prior=PRIOR)
    by_table = wb.design(question, epsilon=1, loss=OVERSHOOT_TABLE)
    by_function = wb.design(question, epsilon=1, loss=overshoot_loss)
    assert by_function.objective == by_table.objective
    # The order of output and answer matters: the transposed matrix has another optimum.
    transposed = wb.design(question, epsilon=1, loss=np.transpose(OVERSHOOT_TABLE))
    assert transposed.objective != pytest.approx(by_table.objective, rel=1e-3)


def test_a_loss_of_labels_is_a_function_of_output_and_label() -> None:
    labels = wb.Labels([0, 1, 2, 3, 4], PRIOR)
    by_table = wb.design(labels, epsilon=1, method="lp", loss=OVERSHOOT_TABLE)
    by_function = wb.design(labels, epsilon=1, method="lp", loss=overshoot_loss)
    assert by_function.objective == by_table.objective


def test_a_loss_of_a_recommendation_is_a_function_of_output_and_answer() -> None:
    request = {
        "answers": "0..4",
        "max_shift": 1,
        "prior": PRIOR,
        "epsilon": 1,
        "only": "best channel",
    }
    by_function = wb.recommend(loss=overshoot_loss, **request)
    by_table = wb.recommend(loss=OVERSHOOT_TABLE, outputs="0..4", **request)
    assert by_function.rows[0]["objective"] == by_table.rows[0]["objective"]
