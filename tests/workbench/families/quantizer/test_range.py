"""Test quantizers of numbers in a range, which are those of [-c, c], shifted.

c is half the width of the range. With a symmetric density, its middle is 0 for the shifted question.
"""

from __future__ import annotations

import csv
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.privacy.expected_error import compute_expected_error


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ({"levels": 3}, {"starts": 1}),
        ({"levels": 2}, {"loss": "squared"}),
        ({"levels": 3, "density": "normal:104,2"}, {"starts": 1, "method": "mvu"}),
    ],
)
def test_range_equals_the_shifted_centred_question(
    question: dict[str, object], options: dict[str, object]
) -> None:
    """The middle of the range is 105, which the centred question shifts to 0."""
    centred_question = dict(question)
    if "density" in question:
        centred_question["density"] = "normal:-1,2"
    on_range = wb.design(wb.Quantization(range="100..110", **question), epsilon=1, **options)
    centred = wb.design(wb.Quantization(c=5, **centred_question), epsilon=1, **options)
    assert on_range.objective == pytest.approx(centred.objective, rel=1e-12)
    assert on_range.bound == centred.bound
    shifted_bins = [float(output) - 105 for output in on_range.mechanism.bins]
    centred_bins = [float(output) for output in centred.mechanism.bins]
    assert shifted_bins == pytest.approx(centred_bins, abs=1e-9)
    assert on_range.mechanism.bias == 0
    assert (on_range.mechanism.knots[0], on_range.mechanism.knots[-1]) == (100, 110)
    assert on_range.mechanism.mae_51 == pytest.approx(centred.mechanism.mae_51)


def test_bins_and_formulas_use_the_units_of_the_range() -> None:
    question = wb.Quantization("4,15,26", range=(10, 20))
    assert question.middle == 15
    assert question.ends == (10, 20)
    design = wb.design(question, epsilon=2)
    assert design.objective == pytest.approx(
        wb.design(wb.Quantization("-11,0,11", c=5), epsilon=2).objective, rel=1e-12
    )
    assert compute_expected_error(design).mean_error == pytest.approx(design.objective)
    formula = wb.formula(question, epsilon=2)
    assert [*map(float, formula(2))] == pytest.approx([design.objective] * 2)


def test_invalid_ranges_raise() -> None:
    with pytest.raises(wb.InvalidRequest, match="c must be left out with a range"):
        wb.Quantization(levels=2, c=1, range="0..1")
    with pytest.raises(wb.InvalidRequest, match=r"range must be LOW\.\.HIGH with LOW < HIGH"):
        wb.Quantization(levels=2, range="1..1")
    with pytest.raises(wb.InvalidRequest, match=r"numbers that cover the inputs, \[10, 20\]"):
        wb.Quantization("12,25", range="10..20")


def publish_incomes(folder: Path, options: str) -> int:
    """Publish a column of 100 incomes from in.csv to out.csv of a folder. Returns the exit code."""
    (folder / "in.csv").write_text("income\n" + "\n".join(["1000", "150000"] * 50) + "\n")
    line = f"privatise quantizer {folder}/in.csv --column income --out {folder}/out.csv"
    with pytest.raises(SystemExit) as stop:
        main([*line.split(), "--insecure-seed", "1", *options.split()])
    assert stop.value.code is None or isinstance(stop.value.code, int)
    return stop.value.code or 0


def test_column_is_published_in_its_units(tmp_path: Path) -> None:
    """Two outputs are at the least reach: c coth(ε/2) from the middle, with c = 100000."""
    assert publish_incomes(tmp_path, "--range 0..200000 --levels 2 --epsilon 1") == 0
    rows = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    outputs = sorted({float(Fraction(row["income"])) for row in rows})
    reach = 100_000 / math.tanh(0.5)
    assert outputs == pytest.approx([100_000 - reach, 100_000 + reach], rel=1e-6)


def test_a_column_without_a_range_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish_incomes(tmp_path, "--levels 2 --epsilon 1") == 2
    assert "range, levels and epsilon. Got no range" in capsys.readouterr().err


def test_a_column_is_not_published_by_a_saved_mechanism_and_a_budget(tmp_path: Path) -> None:
    assert publish_incomes(tmp_path, "--mechanism x.json --epsilon 1") == 2


@pytest.mark.parametrize(
    ("prior", "loss"), [("5,1,1,0", "absolute"), ("worst", "absolute"), ("worst", "squared")]
)
def test_recommended_quantizer_has_the_loss_of_its_laws(prior: str, loss: str) -> None:
    """A prior such as 5,1,1,0 has the weights of four equal parts of the range -3..5."""
    table = recommend_two_outputs(prior, loss)
    design = table.best
    answers = -3 + (np.arange(8000) + 0.5) / 1000
    power = 2 if loss == "squared" else 1
    losses = np.abs(design.mechanism.outputs - answers[:, None]) ** power
    answer_losses = (design.mechanism.probabilities(answers) * losses).sum(axis=1)
    if prior == "worst":
        expected_loss = answer_losses.max()
    else:
        expected_loss = np.average(answer_losses, weights=np.repeat([5, 1, 1, 0], 2000))
    assert design.objective == table[0]["objective"] == pytest.approx(expected_loss, rel=1e-3)


def recommend_two_outputs(prior: str, loss: str) -> Any:
    """Recommend a quantizer with two outputs for the range -3..5 at ε = 1."""
    return wb.recommend(
        range="-3..5", prior=prior, loss=loss, epsilon=1, only="quantizer, 2 outputs"
    )


def design_for_uniform_answers(loss: str) -> wb.Design:
    """Design a quantizer with two outputs for uniform answers in -3..5 at ε = 1."""
    return wb.design(wb.Quantization(levels=2, range="-3..5"), loss=loss, epsilon=1)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_recommended_quantizer_for_the_worst_answer_is_that_for_uniform_answers(
    loss: str,
) -> None:
    design = recommend_two_outputs("worst", loss).best
    assert design.mechanism == design_for_uniform_answers(loss).mechanism
    assert design.bound is None
    assert "The quantizer is designed for uniform answers" in design.words[-1]


def test_the_recommended_quantizer_for_a_prior_is_better_than_that_for_uniform_answers() -> None:
    table = recommend_two_outputs("5,1,1,0", "absolute")
    design = table.best
    uniform_mechanism = design_for_uniform_answers("absolute").mechanism
    uniform_loss = uniform_mechanism.expected_loss("absolute", design.question.density)
    assert design.bound <= design.objective <= uniform_loss
    assert "--prior" in table[0]["command"]


@pytest.mark.parametrize("density", ["parts:", "parts:0,0", "parts:1,-1", "parts:1,x"])
def test_weights_of_parts_must_be_numbers(density: str) -> None:
    with pytest.raises(wb.InvalidRequest, match="weights of parts"):
        wb.Quantization(levels=2, density=density)


def test_density_of_parts_is_piecewise_constant() -> None:
    """The parts of 0..6 are shifted to [-3, -1], [-1, 1] and [1, 3]."""
    density = wb.Quantization(levels=2, range="0..6", density="parts:1,0,3").density
    assert density.interval_masses([-3, -1, 1, 3]) == pytest.approx([0.25, 0, 0.75])
    points, weights = density.quadrature([0.5])
    assert weights @ points == pytest.approx(0.25 * -2 + 0.75 * 2)


def test_a_density_of_parts_is_symmetric_if_its_weights_are() -> None:
    assert not wb.Quantization(levels=2, density="parts:1,0,3").density.is_symmetric
    assert wb.Quantization(levels=2, density="parts:1,2,1").density.is_symmetric


def test_claimed_objective_uses_the_units_of_the_range():
    design = wb.design(
        "quantizer", range="0..200000", bins=[-300000, 50000, 150000, 500000], epsilon=1
    )
    assert design.above_claimed == pytest.approx(0, abs=1e-6 * design.objective)
