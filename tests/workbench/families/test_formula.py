"""Formulas of questions: known closed forms to the letter, against designs, written, shown, refused."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import workbench as wb
from workbench.cli.commands import app

COUNTS = wb.FiniteQuery("0..3", max_shift=1)

# question, options, formulas (by rising power of x), breakpoints of ε
KNOWN: list[tuple[Any, dict[str, Any], list[tuple[list[int], list[int]]], list[float]]] = [
    (COUNTS, {"loss": "absolute"}, [([1, 1], [0, 2]), ([1, 2, 3], [0, 0, 2, 2])], [0.60938]),
    (COUNTS, {"loss": "squared"}, [([3, 2, 1], [0, 2, 2]), ([5, 6, 3], [0, 0, 2, 2])], [1.01200]),
    (COUNTS, {"loss": "error-rate"}, [([3], [2, 2])], []),
    (
        COUNTS,
        {"loss": "absolute", "delta": "1/20"},
        [
            ([18, 20, -1], [0, 40]),
            ([18, 21, 0, -1], [0, 40]),
            ([9, 17, 27], [0, 0, 20, 20]),
            ([36, 55], [0, 40, 40]),
            ([57], [40, 40]),
        ],
        [0.48121, 0.60938, 1.21161, 2.89037],
    ),
    (
        wb.ModuloNoise(n=12, shifts=[1, 2]),
        {"loss": "circular-squared"},
        [([72, 82, 26, 2], [2, 4, 4, 3]), ([122, 50, 10], [4, 4, 4, 1])],
        [1.01703],
    ),
    (
        wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True),
        {"loss": "error-rate", "delta": "0.1"},
        [([18, 27, 27], [20, 30, 30, 10])],
        [],
    ),
    (
        wb.ModuloNoise(n=8, max_shift=3),
        {"loss": "error-rate", "delta": "0.01"},
        [([99, 297], [100, 300, 50])],
        [],
    ),
]


@pytest.mark.parametrize(("question", "options", "formulas", "breaks"), KNOWN)
def test_known_formulas(question: Any, options: dict[str, Any], formulas: Any, breaks: list[float]) -> None:
    found = wb.formula(question, **options).to_dict()["pieces"]
    assert [(piece["numerator"], piece["denominator"]) for piece in found] == formulas
    assert [round(piece["epsilon"][1], 5) for piece in found[:-1]] == breaks
    assert found[0]["epsilon"][0] == 0
    assert found[-1]["epsilon"][1] is None


def test_the_breakpoint_is_an_algebraic_number() -> None:
    end = wb.formula(COUNTS, loss="absolute").to_dict()["pieces"][0]["breakpoint"]
    assert end["polynomial"] == [-1, -1, -1, 1]  # x^3 = x^2 + x + 1
    assert end["value"][0] <= 1.8392867552141612 <= end["value"][1]


@pytest.mark.parametrize("seed", range(8))
def test_formulas_agree_with_designs(seed: int) -> None:
    draw = random.Random(100 + seed)
    if seed % 2:
        question: Any = wb.ModuloNoise(n=draw.randint(3, 9), max_shift=draw.randint(1, 2), directed=bool(seed % 4 == 1))
        options = {"loss": draw.choice(["error-rate", "circular-squared", "squared"])}
    else:
        question = wb.FiniteQuery(f"0..{draw.randint(2, 4)}", max_shift=1)
        question = (
            question.with_prior(draw.choice(["uniform", "worst"])) if hasattr(question, "with_prior") else question
        )
        options = {"loss": draw.choice(["absolute", "squared", "error-rate"])}
    free = wb.formula(question, delta="0..1", epsilon="0.05..5", **options)
    for _ in range(4):
        epsilon, delta = round(draw.uniform(0.06, 4.9), 3), round(draw.uniform(0.001, 0.9), 3)
        low, high = free(epsilon, delta)
        assert high - low < Fraction(1, 10**30)
        design = wb.design(question, epsilon=epsilon, delta=delta, **options)
        assert float(low) == pytest.approx(design.objective, rel=1e-9, abs=1e-12)
        assert design.bound is None or float(design.bound) <= float(high) + 1e-12


def test_the_mechanism_of_a_piece_is_private_and_costs_the_formula() -> None:
    found = wb.formula(COUNTS, loss="absolute", epsilon=1)
    x, piece = Fraction(5, 2), found.pieces[0]
    rows = [[piece.masses[f"P({o}|{i})"](x) for o in range(4)] for i in range(4)]
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
    assert all(x * b >= a and x * a >= b for r, s in pairwise(rows) for a, b in zip(r, s, strict=True))
    assert piece.value is not None
    assert sum(Fraction(abs(i - o), 4) * rows[i][o] for i in range(4) for o in range(4)) == piece.value(x)


def test_shadow_prices_are_derivatives() -> None:
    found = wb.formula(COUNTS, loss="absolute", epsilon="1..2", delta="0..1")
    for piece in found.pieces:
        assert piece.shadow_prices is not None
        by_epsilon, by_delta = piece.shadow_prices
        x, step = Fraction(4), Fraction(1, 10**6)
        assert piece.value is not None
        slope = (piece.value(x * (1 + step)) - piece.value(x)) / step  # dx/dε = x
        assert abs(float(by_epsilon(x) - slope)) < 1e-5
        assert by_delta(x) == piece.value(x, Fraction(1)) - piece.value(x)


def test_python_latex_and_files_say_the_same(tmp_path: Path) -> None:
    found = wb.formula(COUNTS, loss="absolute", delta="0..1")
    space: dict[str, Any] = {}
    exec(found.python(), space)
    assert space["optimum"](1.0, 0.1) == pytest.approx(float(found(1, "0.1")[0]), abs=1e-14)
    assert r"\begin{cases}" in found.latex()
    assert r"e^{2\varepsilon}" in found.latex()
    assert r"\toprule" in found.latex(table=True)
    assert found._repr_latex_().startswith("$$")
    for name in ("f.json", "f.tex", "f.py", "f.csv"):
        assert found.save(tmp_path / name) == [tmp_path / name]
    assert json.loads((tmp_path / "f.json").read_text())["variable"] == "x = exp(epsilon)"
    assert list(found.to_frame().columns) == ["from_epsilon", "to_epsilon", "formula", "from_delta", "to_delta"]


def test_half_distances_have_powers_of_a_root_of_e() -> None:
    query = wb.FiniteQuery("0,0.5,2", neighbours="all")
    found = wb.formula(query, notion="metric", loss="absolute", epsilon="0.5..2")
    assert found.steps == 2
    assert found.to_dict()["variable"] == "x = exp(epsilon/2)"
    design = wb.design(query, notion="metric", loss="absolute", epsilon=1)
    assert float(found(1)[0]) == pytest.approx(design.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("formula channel --answers 0..5 --max-shift 1 --notion zcdp", "zcdp is no linear constraint"),
        ("formula modulo --n 8 --max-shift 1 --notion pdp", "pdp asks for binaries"),
        ("formula noise --sensitivity 1", "states no program whose optimum is a formula"),
        ("formula channel --answers 0..5 --max-shift 1 --epsilon 2..1", "epsilon must be"),
        ("formula channel --answers 0..5 --max-shift 1 --delta 0..2", "delta must be"),
        ("formula channel --answers 0..900 --max-shift 1", "of at most 4000 rows and columns"),
    ],
)
def test_what_has_no_formula_says_so_in_one_sentence(arguments: str, sentence: str) -> None:
    done = CliRunner().invoke(app, arguments.split())
    assert done.exit_code
    assert sentence in str(done.exception)


def test_the_command_prints_a_table_and_json() -> None:
    line = "formula channel --answers 0..3 --max-shift 1 --loss absolute"
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0
    assert "0.609377863" in done.stdout
    assert "(e^ε + 1) / (2e^ε)" in done.stdout
    done = CliRunner().invoke(app, [*line.split(), "--json"])
    assert json.loads(done.stdout)["pieces"][0]["proven"] is True


def test_outside_its_interval_a_formula_says_where_it_holds() -> None:
    found = wb.formula(COUNTS, loss="absolute", epsilon="1..2")
    with pytest.raises(wb.InvalidRequest, match="where the formula holds"):
        found(3)
