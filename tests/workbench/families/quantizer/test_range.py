"""Test quantizers of numbers in a range, which are those of [-c, c], shifted."""

from __future__ import annotations

import csv
from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.privacy.expected_error import compute_expected_error


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"levels": 3}, {"starts": 1}),
        ({"levels": 2}, {"loss": "squared"}),
        ({"levels": 3, "density": "normal:104,2"}, {"starts": 1, "method": "mvu"}),
    ],
)
def test_range_equals_the_shifted_centred_question(
    given: dict[str, object], more: dict[str, object]
) -> None:
    centred = {**given, "density": "normal:-1,2"} if "density" in given else given
    there = wb.design(wb.Quantization(range="100..110", **given), epsilon=1, **more)
    here = wb.design(wb.Quantization(c=5, **centred), epsilon=1, **more)
    assert there.objective == pytest.approx(here.objective, rel=1e-12)
    assert there.bound == here.bound
    assert [float(b) - 105 for b in there.mechanism.bins] == pytest.approx(
        [*map(float, here.mechanism.bins)], abs=1e-9
    )
    assert there.mechanism.bias == 0
    assert (there.mechanism.knots[0], there.mechanism.knots[-1]) == (100, 110)
    assert there.mechanism.mae_51 == pytest.approx(here.mechanism.mae_51)


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


def test_column_is_published_in_its_units(tmp_path, capsys) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("income\n" + "\n".join(["1000", "150000"] * 50) + "\n")
    given = [
        "privatise",
        "quantizer",
        str(source),
        "--column",
        "income",
        "--out",
        str(out),
        "--insecure-seed",
        "1",
    ]
    given.append("--overwrite")

    def code(*more: str) -> object:
        with pytest.raises(SystemExit) as stopped:
            main([*given, *more])
        return stopped.value.code

    assert not code("--range", "0..200000", "--levels", "2", "--epsilon", "1")
    published = {Fraction(row["income"]) for row in csv.DictReader(out.read_text().splitlines())}
    half = 100000 * (1 + 2 / (2.718281828459045 - 1))  # Two outputs are at the least reach.
    assert sorted(map(float, published)) == pytest.approx([100000 - half, 100000 + half], rel=1e-6)
    assert code("--levels", "2", "--epsilon", "1") == 2
    assert "range, levels and epsilon. Got no range" in capsys.readouterr().err
    assert code("--mechanism", "x.json", "--epsilon", "1") == 2


@pytest.mark.parametrize(
    ("prior", "loss"), [("5,1,1,0", "absolute"), ("worst", "absolute"), ("worst", "squared")]
)
def test_recommended_quantizer_has_the_loss_of_its_laws(prior: str, loss: str) -> None:
    table = wb.recommend(
        range="-3..5", prior=prior, loss=loss, epsilon=1, only="quantizer, 2 outputs"
    )
    design = table.best
    x = -3 + (np.arange(8000) + 0.5) / 1000
    gaps = np.abs(design.mechanism.outputs - x[:, None]) ** (2 if loss == "squared" else 1)
    each = (design.mechanism.probabilities(x) * gaps).sum(axis=1)
    own = (
        each.max() if prior == "worst" else np.average(each, weights=np.repeat([5, 1, 1, 0], 2000))
    )
    assert design.objective == table[0]["objective"] == pytest.approx(own, rel=1e-3)
    uniform = wb.design(wb.Quantization(levels=2, range="-3..5"), loss=loss, epsilon=1)
    if prior == "worst":
        assert design.mechanism == uniform.mechanism
        assert (
            design.bound,
            "The quantizer is designed for uniform answers" in design.words[-1],
        ) == (
            None,
            True,
        )
    else:
        assert (
            design.bound
            <= design.objective
            <= uniform.mechanism.expected_loss(loss, design.question.density)
        )
        assert "--prior" in table[0]["command"]


@pytest.mark.parametrize("wrong", ["parts:", "parts:0,0", "parts:1,-1", "parts:1,x"])
def test_weights_of_parts_must_be_numbers(wrong: str) -> None:
    with pytest.raises(wb.InvalidRequest, match="weights of parts"):
        wb.Quantization(levels=2, density=wrong)


def test_density_of_parts_is_piecewise_constant() -> None:
    """An odd number of parts has no break in the middle; masses and the mean of the whole."""
    law = wb.Quantization(levels=2, range="0..6", density="parts:1,0,3").density
    assert law.interval_masses([-3, -1, 1, 3]) == pytest.approx([0.25, 0, 0.75])
    x, w = law.quadrature([0.5])
    assert (w @ x) == pytest.approx(0.25 * -2 + 0.75 * 2)
    assert not law.is_symmetric
    assert wb.Quantization(levels=2, density="parts:1,2,1").density.is_symmetric


def test_claimed_objective_uses_the_units_of_the_range():
    design = wb.design(
        "quantizer", range="0..200000", bins=[-300000, 50000, 150000, 500000], epsilon=1
    )
    assert design.above_claimed == pytest.approx(0, abs=1e-6 * design.objective)
