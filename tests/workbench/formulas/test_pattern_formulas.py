"""Test formulas for PDP: the smallest loss as a function of δ at one ε, piece by piece."""

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

# Each row has a question, the loss and ε.
CASES: list[tuple[Any, str, str]] = [
    (wb.ModuloNoise(n=8, max_shift=3, directed=True), "error-rate", "1.5"),
    (wb.ModuloNoise(n=6, max_shift=2, directed=True), "circular-squared", "1.5"),
    (wb.ModuloNoise(n=5, max_shift=1), "squared", "0.7"),
    (wb.ModuloNoise(sizes=[3, 3], shifts=[(0, 1), (1, 0)]), "error-rate", "1"),
]


def value_at(frontier: list[Any], delta: float) -> float:
    """Return the smallest loss of a frontier at a δ."""
    piece = next(piece for piece in frontier[::-1] if piece.delta_low <= delta)
    return float(piece.value_at(delta))


@pytest.mark.parametrize(("noise", "loss", "epsilon"), CASES)
def test_every_piece_of_the_frontier_has_its_formula(noise: Any, loss: str, epsilon: str) -> None:
    formula = wb.formula(noise, notion="pdp", epsilon=epsilon, delta="0..1", loss=loss)
    frontier = compute_delta_frontier(noise.sizes, noise.differences, float(epsilon), loss)
    assert not formula.unproven
    for k in range(1, 60):
        delta = Fraction(k, 60)
        assert float(formula(epsilon, delta)[0]) == pytest.approx(
            value_at(frontier, float(delta)), rel=1e-9, abs=1e-9
        )
    x = Fraction(math.exp(float(epsilon)))
    for before, after in zip(formula.pieces, formula.pieces[1:], strict=False):
        end = before.delta[1]
        # The ends are the same function of e^ε, so there is no gap. The function is not constant,
        # so it is not the number of the traced frontier.
        assert end == after.delta[0]
        assert end.denominator.degree() + end.constant.degree() > 0
        # The loss never increases with δ.
        delta = end(x)
        assert before.value is not None
        assert after.value is not None
        assert after.value(x, delta) <= before.value(x, delta) + Fraction(1, 10**12)


@pytest.mark.parametrize(("noise", "loss", "epsilon"), CASES)
def test_the_masses_of_a_piece_are_private_and_have_the_loss_of_its_formula(
    noise: Any, loss: str, epsilon: str
) -> None:
    """The check is exact, at a rational x near e^ε, in the middle of every piece."""
    x = Fraction(math.exp(float(epsilon)))
    losses = [Fraction(value) for value in loss_vector(loss, noise.sizes).tolist()]
    for piece in wb.formula(noise, notion="pdp", epsilon=epsilon, delta="0..1", loss=loss).pieces:
        delta = sum(end(x) for end in piece.delta) / 2
        masses = [mass(x, delta) for mass in piece.masses.values()]
        assert sum(masses) == 1
        assert min(masses) >= 0
        shifts = [*noise.shifts]
        if not noise.directed:
            shifts += [tuple(-k for k in mu) for mu in noise.shifts]
        for mu in shifts:
            targets = shift_positions(noise.sizes, mu).tolist()
            shifted_masses = [masses[target] for target in targets]
            broken = [a for a, b in zip(masses, shifted_masses, strict=True) if a > x * b]
            assert sum(broken) <= delta
        assert piece.value is not None
        assert sum(c * m for c, m in zip(losses, masses, strict=True)) == piece.value(x, delta)


def test_the_formulas_of_one_difference_are_those_of_theorem_2() -> None:
    """The loss is 1 - 1/(1 + a + .. + a^(n-k)) with a = 1/x, or 1 - δ x^(n-k), by turns."""
    formula = wb.formula(
        wb.ModuloNoise(n=3, shifts=[1], directed=True), notion="pdp", epsilon=1, delta="0..1"
    )
    assert [piece.to_text() for piece in formula.pieces] == [
        "1 - e^(3ε) / (e^(3ε) + e^(2ε) + e^ε + 1)",
        "1 - e^(2ε) δ",
        "1 - e^(2ε) / (e^(2ε) + e^ε + 1)",
        "1 - e^ε δ",
        "1 / (e^ε + 1)",
        "1 - δ",
    ]


PDP_COMMAND = (
    "formula modulo --n 8 --max-shift 3 --directed --notion pdp --epsilon 1.5 --delta 0..0.05"
)


def test_the_command_states_the_epsilon_of_the_proof() -> None:
    line = PDP_COMMAND
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0
    printed_text = " ".join(done.stdout.split())
    assert "1 - e^(2ε) δ" in printed_text
    assert "proven at epsilon = 1.5 to 1e-9" in printed_text
    assert "only while its pattern is optimal" in printed_text
    values = json.loads(CliRunner().invoke(app, [*line.split(), "--json"]).stdout)
    assert values["proven_at"] == {"epsilon": 1.5}
    pattern = values["pieces"][1]["broken"]  # One of several patterns with this formula.
    assert re.fullmatch(r"\d: \d(; \d: \d)*", pattern)
    assert pattern in printed_text


def test_a_formula_of_patterns_is_evaluated_and_saved_without_a_certificate(tmp_path: Path) -> None:
    formula = wb.formula(CASES[0][0], notion="pdp", epsilon="1.5", delta="0..0.05")
    with pytest.raises(
        wb.InvalidRequest, match=r"epsilon must be 1\.5, where the patterns are proven"
    ):
        formula(1, "0.01")
    with pytest.raises(wb.InvalidRequest, match="which no file proves again"):
        formula.save(tmp_path / "f.json")
    formula.save(tmp_path / "f.tex")
    assert r"\varepsilon = 1.5" in (tmp_path / "f.tex").read_text()
    drawn = formula.plot()
    assert drawn.axes[0].get_xlabel() == "δ"
    space: dict[str, Any] = {}
    exec(formula.python(), space)
    assert space["optimum"](1.5, 0.01) == pytest.approx(float(formula("1.5", "0.01")[0]), abs=1e-14)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--epsilon 1..2", "epsilon must be one number for pdp"),
        ("--epsilon 1 --delta 0.1", "delta must be an interval such as 0..0.2 under pdp"),
        ("--epsilon 1 --loss worst-squared", "loss must be"),
    ],
)
def test_invalid_options_under_pdp_are_refused(arguments: str, sentence: str) -> None:
    line = f"formula modulo --n 5 --max-shift 1 --notion pdp {arguments}"
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code
    assert sentence in str(done.exception)
