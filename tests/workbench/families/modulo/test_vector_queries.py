"""Test vector queries, whose answers differ within a norm, against linear programs stated here."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.cli import main
from workbench.mechanisms.additive import AdditiveNoise


def _list_differences(sizes: tuple[int, ...], radius: int, norm: str) -> list[tuple[int, ...]]:
    """List the differences with norm 1..radius.

    A coordinate counts with its distance from 0 modulo its size.

    Args:
        sizes: The number of values of each coordinate.
        radius: The largest norm.
        norm: "L1" (sum of distances) or "Linf" (largest distance).
    """
    differences = []
    for shift in product(*map(range, sizes)):
        distances = [min(part, size - part) for part, size in zip(shift, sizes, strict=True)]
        length = sum(distances) if norm == "L1" else max(distances)
        if 0 < length <= radius:
            differences.append(shift)
    return differences


def _solve_program(
    sizes: tuple[int, ...],
    differences: list[tuple[int, ...]],
    epsilon: float,
    delta: float,
    losses: list[float],
) -> float:
    """Minimise Σ f(η) loss(η) under (ε, δ)-DP for every difference, with SciPy.

    The variables are f, and for each difference the excesses y(η) >= f(η) - e^ε f(η + μ), y >= 0,
    whose sum is at most δ.
    """
    elements = [*product(*map(range, sizes))]
    index_by_element = {element: index for index, element in enumerate(elements)}
    order = len(elements)
    variable_count = order * (1 + len(differences))
    rows = []
    limits = []
    for number, shift in enumerate(differences, 1):
        sum_row = np.zeros(variable_count)
        for index, element in enumerate(elements):
            shifted_element = tuple(
                (part + step) % size for part, step, size in zip(element, shift, sizes, strict=True)
            )
            excess_index = number * order + index
            row = np.zeros(variable_count)
            row[index] += 1
            row[index_by_element[shifted_element]] -= math.exp(epsilon)
            row[excess_index] = -1
            sum_row[excess_index] = 1
            rows.append(row)
            limits.append(0.0)
        rows.append(sum_row)
        limits.append(delta)
    mass_sum = np.zeros((1, variable_count))
    mass_sum[0, :order] = 1
    objective = np.zeros(variable_count)
    objective[:order] = losses
    result = linprog(objective, np.array(rows), limits, mass_sum, [1.0], bounds=(0, 1))
    return float(result.fun)


@pytest.mark.parametrize(
    ("sizes", "radius", "norm", "epsilon", "delta", "loss"),
    [
        ((5, 5), 1, "L1", 1, 0, "error-rate"),
        ((5, 5), 1, "Linf", 1, 0, "error-rate"),
        ((5, 5), 2, "L1", 1, 0, "error-rate"),
        ((6, 4), 1, "Linf", 0.7, 0.02, "error-rate"),
        ((4, 4, 3), 1, "L1", 1.3, 0.05, "error-rate"),
        ((5, 5), 1, "Linf", 1, 0.05, "circular-squared"),
    ],
)
def test_a_design_for_a_norm_is_the_optimum_of_the_linear_program(
    sizes: tuple[int, ...], radius: int, norm: str, epsilon: float, delta: float, loss: str
) -> None:
    design = wb.design(
        "modulo",
        sizes=sizes,
        max_shift=f"{radius} {norm}",
        epsilon=epsilon,
        delta=delta,
        notion="dp",
        loss=loss,
    )
    losses = []
    for element in product(*map(range, sizes)):
        distances = [min(part, size - part) for part, size in zip(element, sizes, strict=True)]
        if loss == "error-rate":
            losses.append(float(any(distances)))
        else:
            losses.append(float(sum(distance**2 for distance in distances)))
    differences = _list_differences(sizes, radius, norm)
    optimum = _solve_program(sizes, differences, epsilon, delta, losses)
    assert design.objective == pytest.approx(optimum, rel=1e-8)


def _make_noise(sizes: str) -> AdditiveNoise:
    """Make noise with the weights 1, 2, 3, ... on a group."""
    question = wb.ModuloNoise(sizes=sizes, max_shift="1 L1")
    return wb.AdditiveNoise(question, [*range(1, question.order + 1)])


def test_a_marginal_sums_over_the_other_coordinates() -> None:
    noise = _make_noise("2x3x2")
    sums = [Fraction(0)] * 3
    for mass, (_, part, _) in zip(noise.exact_pmf, noise.question.elements, strict=True):
        sums[part] += mass
    assert noise.marginal(1).tolist() == pytest.approx([float(mass) for mass in sums], rel=1e-14)


def test_a_coordinate_that_does_not_exist_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match=r"coordinate must be an integer in 0\.\.1"):
        _make_noise("2x2").marginal(2)


def test_a_report_shows_the_marginals_of_a_vector_query(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["design", "modulo", "--sizes", "3x2", "--max-shift", "1 L1", "--epsilon", "1"]
    with pytest.raises(SystemExit, match="0"):
        main(command)
    out = capsys.readouterr().out
    design = wb.design("modulo", sizes="3x2", max_shift="1 L1", epsilon=1)
    for probability in design.mechanism.marginal(0):
        assert f"{probability:.9g}" in out


def test_noise_of_three_coordinates_is_drawn_by_its_marginals() -> None:
    noise = _make_noise("2x3x2")
    series = noise.drawing()["series"]
    assert [entry["name"] for entry in series] == [f"coordinate {axis}" for axis in (1, 2, 3)]
    assert series[1]["y"] == noise.marginal(1).tolist()


def test_an_audit_of_a_vector_pmf_reads_a_norm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The masses are products of 8, 2, 1, 1, 2, so a step in one coordinate changes them by 4."""
    part = [8, 2, 1, 1, 2]
    path = tmp_path / "pmf.csv"
    path.write_text("".join(f"{a * b}\n" for a in part for b in part))
    with pytest.raises(SystemExit, match="0"):
        main(["audit", str(path), "--sizes", "5x5", "--max-shift", "1 L1", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert record["pure_epsilon"] == pytest.approx(math.log(4), rel=1e-12)
