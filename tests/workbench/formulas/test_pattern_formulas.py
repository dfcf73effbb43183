"""Test formulas for PDP: the smallest loss as a function of δ at one ε, piece by piece.

Under probabilistic DP (PDP), a pattern says for each shift which masses exceed e^ε times the mass of
the neighbouring answer. The masses of one pattern are functions of x = e^ε. Which pattern is optimal
is only proven at one ε.
"""

from __future__ import annotations

import functools
import itertools
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


def find_smallest_loss(frontier: list[Any], delta: float) -> float:
    """Return the smallest loss at a δ. The pieces of the frontier are in increasing order of δ."""
    piece = next(piece for piece in frontier[::-1] if piece.delta_low <= delta)
    return float(piece.value_at(delta))


@functools.cache
def compute_formula(case_index: int) -> Any:
    """Compute the formula of a case of CASES for all δ."""
    noise, loss, epsilon = CASES[case_index]
    return wb.formula(noise, notion="pdp", epsilon=epsilon, delta="0..1", loss=loss)


@pytest.mark.parametrize("case_index", range(len(CASES)))
def test_the_formula_has_the_value_of_the_traced_frontier(case_index: int) -> None:
    noise, loss, epsilon = CASES[case_index]
    formula = compute_formula(case_index)
    assert not formula.unproven
    frontier = compute_delta_frontier(noise.sizes, noise.differences, float(epsilon), loss)
    for numerator in range(1, 60):
        delta = Fraction(numerator, 60)
        assert float(formula(epsilon, delta)[0]) == pytest.approx(
            find_smallest_loss(frontier, float(delta)), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("case_index", range(len(CASES)))
def test_the_pieces_of_a_formula_join_at_a_function_of_epsilon(case_index: int) -> None:
    """The function is not constant, so it is not the number of the traced frontier."""
    for before, after in itertools.pairwise(compute_formula(case_index).pieces):
        end = before.delta[1]
        assert end == after.delta[0]
        assert end.denominator.degree() + end.constant.degree() > 0


@pytest.mark.parametrize("case_index", range(len(CASES)))
def test_the_loss_of_the_next_piece_is_not_larger_where_it_begins(case_index: int) -> None:
    _, _, epsilon = CASES[case_index]
    x = Fraction(math.exp(float(epsilon)))
    for before, after in itertools.pairwise(compute_formula(case_index).pieces):
        delta = after.delta[0](x)
        assert before.value is not None
        assert after.value is not None
        assert after.value(x, delta) <= before.value(x, delta) + Fraction(1, 10**12)


@pytest.mark.parametrize("case_index", range(len(CASES)))
def test_the_masses_of_a_piece_are_private_and_have_the_loss_of_its_formula(
    case_index: int,
) -> None:
    """The check is exact, at a rational x near e^ε, in the middle of every piece."""
    noise, loss, epsilon = CASES[case_index]
    x = Fraction(math.exp(float(epsilon)))
    losses = [Fraction(value) for value in loss_vector(loss, noise.sizes).tolist()]
    for piece in compute_formula(case_index).pieces:
        delta = sum(end(x) for end in piece.delta) / 2
        masses = [mass(x, delta) for mass in piece.masses.values()]
        assert sum(masses) == 1
        assert min(masses) >= 0
        shifts = [*noise.shifts]
        if not noise.directed:
            shifts += [tuple(-coordinate for coordinate in shift) for shift in noise.shifts]
        for shift in shifts:
            positions = shift_positions(noise.sizes, shift).tolist()
            shifted_masses = [masses[position] for position in positions]
            masses_above_ratio = [
                mass
                for mass, shifted_mass in zip(masses, shifted_masses, strict=True)
                if mass > x * shifted_mass
            ]
            assert sum(masses_above_ratio) <= delta
        assert piece.value is not None
        expected_loss = sum(loss * mass for loss, mass in zip(losses, masses, strict=True))
        assert expected_loss == piece.value(x, delta)


def test_the_formulas_of_one_difference_are_those_of_theorem_2() -> None:
    """Theorem 2 is the one of Kadam et al. 2024. Here n = 3, and k = 0, 1, 2, 3.

    The loss is 1 - 1/(1 + a + .. + a^(n-k)) with a = 1/x, or 1 - δ x^(n-k), by turns.
    """
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


def run_pdp_command(*options: str) -> str:
    """Run PDP_COMMAND with further options, and return its output."""
    run = CliRunner().invoke(app, [*PDP_COMMAND.split(), *options])
    assert run.exit_code == 0
    return run.stdout


def test_the_command_states_the_epsilon_of_the_proof() -> None:
    printed_text = " ".join(run_pdp_command().split())
    assert "1 - e^(2ε) δ" in printed_text
    assert "proven at epsilon = 1.5 to 1e-9" in printed_text
    assert "only while its pattern is optimal" in printed_text
    assert json.loads(run_pdp_command("--json"))["proven_at"] == {"epsilon": 1.5}


def test_the_command_prints_the_pattern_of_each_piece() -> None:
    """A pattern such as "1: 0,3; 2: 0" lists noise values by shift. Several have the same formula."""
    pattern = json.loads(run_pdp_command("--json"))["pieces"][1]["broken"]
    assert re.fullmatch(r"\d: \d(; \d: \d)*", pattern)
    assert pattern in " ".join(run_pdp_command().split())


@pytest.fixture(scope="module")
def formula_up_to_small_delta() -> Any:
    """Return the formula of the first case for δ in 0..0.05."""
    noise, _, epsilon = CASES[0]
    return wb.formula(noise, notion="pdp", epsilon=epsilon, delta="0..0.05")


def test_a_formula_of_patterns_is_only_evaluated_at_its_epsilon(
    formula_up_to_small_delta: Any,
) -> None:
    with pytest.raises(
        wb.InvalidRequest, match=r"epsilon must be 1\.5, where the patterns are proven"
    ):
        formula_up_to_small_delta(1, "0.01")


def test_a_formula_of_patterns_has_no_certificate(
    formula_up_to_small_delta: Any, tmp_path: Path
) -> None:
    with pytest.raises(wb.InvalidRequest, match="which no file proves again"):
        formula_up_to_small_delta.save(tmp_path / "f.json")


def test_the_latex_of_a_formula_of_patterns_names_its_epsilon(
    formula_up_to_small_delta: Any, tmp_path: Path
) -> None:
    formula_up_to_small_delta.save(tmp_path / "f.tex")
    assert r"\varepsilon = 1.5" in (tmp_path / "f.tex").read_text()


def test_the_figure_of_a_formula_of_patterns_is_drawn_against_delta(
    formula_up_to_small_delta: Any,
) -> None:
    assert formula_up_to_small_delta.plot().axes[0].get_xlabel() == "δ"


def test_the_source_code_of_a_formula_of_patterns_computes_its_value(
    formula_up_to_small_delta: Any,
) -> None:
    namespace: dict[str, Any] = {}
    exec(formula_up_to_small_delta.python(), namespace)
    expected_loss = float(formula_up_to_small_delta("1.5", "0.01")[0])
    assert namespace["optimum"](1.5, 0.01) == pytest.approx(expected_loss, abs=1e-14)


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
    run = CliRunner().invoke(app, line.split())
    assert run.exit_code
    assert sentence in str(run.exception)
