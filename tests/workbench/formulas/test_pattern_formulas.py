"""Test formulas for PDP: the exact frontier over δ at one ε, with the formula of each piece."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import workbench as wb
from workbench.cli.commands import app
from workbench.models.modulo.frontier import compute_delta_frontier
from workbench.models.modulo.program import loss_vector, shift_positions

CASES: list[tuple[Any, str, str]] = [
    (wb.ModuloNoise(n=8, max_shift=3, directed=True), "error-rate", "1.5"),
    (wb.ModuloNoise(n=6, max_shift=2, directed=True), "circular-squared", "1.5"),
    (wb.ModuloNoise(n=5, max_shift=1), "squared", "0.7"),
    (wb.ModuloNoise(sizes=[3, 3], shifts=[(0, 1), (1, 0)]), "error-rate", "1"),
]


def value_at(frontier: list[Any], delta: float) -> float:
    """Return the minimal loss at a δ."""
    return float(
        next(piece for piece in frontier[::-1] if piece.delta_low <= delta).value_at(delta)
    )


@pytest.mark.parametrize(("noise", "loss", "epsilon"), CASES)
def test_every_piece_of_the_frontier_has_its_formula(noise: Any, loss: str, epsilon: str) -> None:
    found = wb.formula(noise, notion="pdp", epsilon=epsilon, delta="0..1", loss=loss)
    frontier = compute_delta_frontier(noise.sizes, noise.differences, float(epsilon), loss)
    assert not found.unproven
    for k in range(1, 60):
        delta = Fraction(k, 60)
        assert float(found(epsilon, delta)[0]) == pytest.approx(
            value_at(frontier, float(delta)), rel=1e-9, abs=1e-9
        )
    x = Fraction(math.exp(float(epsilon)))
    for before, after in zip(found.pieces, found.pieces[1:], strict=False):
        assert (
            before.delta[1] == after.delta[0]
        )  # The ends are the same function of e^ε, so there is no gap.
        assert (
            before.delta[1].denominator.degree() + before.delta[1].constant.degree() > 0
        )  # The end is no traced number.
        delta = before.delta[1](x)
        assert before.value is not None
        assert after.value is not None
        assert after.value(x, delta) <= before.value(x, delta) + Fraction(
            1, 10**12
        )  # The loss never increases with δ.


@pytest.mark.parametrize(("noise", "loss", "epsilon"), CASES)
def test_the_masses_of_a_piece_are_private_and_cost_its_formula(
    noise: Any, loss: str, epsilon: str
) -> None:
    """Check exactly, at a rational near e^ε, in the middle of every piece."""
    x = Fraction(math.exp(float(epsilon)))
    losses = [Fraction(value) for value in loss_vector(loss, noise.sizes).tolist()]
    for piece in wb.formula(noise, notion="pdp", epsilon=epsilon, delta="0..1", loss=loss).pieces:
        delta = sum(end(x) for end in piece.delta) / 2
        masses = [mass(x, delta) for mass in piece.masses.values()]
        assert sum(masses) == 1
        assert min(masses) >= 0
        for mu in (
            noise.shifts
            if noise.directed
            else [*noise.shifts, *(tuple(-k for k in mu) for mu in noise.shifts)]
        ):
            moved = shift_positions(noise.sizes, mu).tolist()
            assert sum(m for k, m in enumerate(masses) if m > x * masses[moved[k]]) <= delta
        assert piece.value is not None
        assert sum(c * m for c, m in zip(losses, masses, strict=True)) == piece.value(x, delta)


def test_theorem_2_is_found_again() -> None:
    """Flat regions have the loss 1 - 1/(1 + a + .. + a^(n-k)) from δ_k on, others 1 - δ x^(n-k)."""
    found = wb.formula(
        wb.ModuloNoise(n=3, shifts=[1], directed=True), notion="pdp", epsilon=1, delta="0..1"
    )
    assert [piece.to_text() for piece in found.pieces] == [
        "1 - e^(3ε) / (e^(3ε) + e^(2ε) + e^ε + 1)",
        "1 - e^(2ε) δ",
        "1 - e^(2ε) / (e^(2ε) + e^ε + 1)",
        "1 - e^ε δ",
        "1 / (e^ε + 1)",
        "1 - δ",
    ]


def test_it_says_that_it_is_proven_at_one_epsilon(tmp_path: Path) -> None:
    line = (
        "formula modulo --n 8 --max-shift 3 --directed --notion pdp --epsilon 1.5 --delta 0..0.05"
    )
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0
    words = " ".join(done.stdout.split())
    assert "1 - e^(2ε) δ" in words
    assert "proven at epsilon = 1.5 to 1e-9" in words
    assert "only while its pattern is optimal" in words
    values = json.loads(CliRunner().invoke(app, [*line.split(), "--json"]).stdout)
    assert values["proven_at"] == {"epsilon": 1.5}
    pattern = values["pieces"][1]["broken"]  # One of several patterns with this formula.
    assert re.fullmatch(r"\d: \d(; \d: \d)*", pattern)
    assert pattern in words
    found = wb.formula(CASES[0][0], notion="pdp", epsilon="1.5", delta="0..0.05")
    with pytest.raises(
        wb.InvalidRequest, match=r"epsilon must be 1\.5, where the patterns are proven"
    ):
        found(1, "0.01")
    with pytest.raises(wb.InvalidRequest, match="which no file proves again"):
        found.save(tmp_path / "f.json")
    found.save(tmp_path / "f.tex")
    assert r"\varepsilon = 1.5" in (tmp_path / "f.tex").read_text()
    drawn = found.plot()
    assert drawn.axes[0].get_xlabel() == "δ"
    space: dict[str, Any] = {}
    exec(found.python(), space)
    assert space["optimum"](1.5, 0.01) == pytest.approx(float(found("1.5", "0.01")[0]), abs=1e-14)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--epsilon 1..2", "epsilon must be one number for pdp"),
        ("--epsilon 1 --delta 0.1", "delta must be an interval such as 0..0.2 under pdp"),
        ("--epsilon 1 --loss worst-squared", "loss must be"),
    ],
)
def test_what_it_refuses(arguments: str, sentence: str) -> None:
    line = f"formula modulo --n 5 --max-shift 1 --notion pdp {arguments}"
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code
    assert sentence in str(done.exception)
