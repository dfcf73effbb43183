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


def _random_question(draw: random.Random) -> tuple[Any, dict[str, Any]]:
    """A small channel or modulo noise: any prior, any neighbours, named losses and matrices of one's own."""
    if draw.random() < 0.5:
        k, m = draw.randint(2, 4), draw.randint(2, 4)
        inputs = sorted(draw.sample(range(8), k))
        prior = draw.choice(["uniform", "worst", [draw.randint(0, 3) + (i == 0) for i in range(k)]])
        near = draw.choice([{"neighbours": "all"}, {"neighbours": "consecutive"}])
        query = wb.FiniteQuery(inputs, inputs if draw.random() < 0.5 else range(m), prior=prior, **near)
        own = [[Fraction(draw.randint(0, 9), draw.randint(1, 7)) for _ in range(query.m)] for _ in range(k)]
        return query, {"loss": draw.choice(["absolute", "squared", own, own])}
    n = draw.randint(2, 9)
    shifts = draw.sample(range(1, n + 1), draw.randint(1, 2))
    noise = wb.ModuloNoise(n=n, shifts=shifts, directed=draw.random() < 0.4)
    own = [draw.randint(0, 9) for _ in range(n + 1)]
    return noise, {"loss": draw.choice(["error-rate", "circular-squared", "squared", "worst-squared", own])}


@pytest.mark.parametrize("seed", range(16))
def test_formulas_agree_with_designs(seed: int) -> None:
    draw = random.Random(500 + seed)
    question, options = _random_question(draw)
    free, fixed = draw.random() < 0.5, round(draw.random() ** 3, 3)
    found = wb.formula(question, delta="0..1" if free else fixed, **options)
    for _ in range(2):
        epsilon, delta = round(draw.uniform(0.06, 4.9), 3), round(draw.uniform(0.001, 0.9), 3) if free else fixed
        low, high = found(epsilon, delta)
        assert high - low < Fraction(1, 10**30)
        design = wb.design(question, epsilon=epsilon, delta=delta, **options)
        assert float(low) == pytest.approx(design.objective, rel=1e-9, abs=1e-9)
        assert design.bound is None or float(design.bound) <= float(high) + 1e-11 * max(1, float(high))


@pytest.mark.parametrize("seed", range(6))
def test_mechanisms_attain_their_formula_wherever_it_holds(seed: int) -> None:
    """Rows that are laws, private, and cost the formula: at δ anywhere between its ends, in every part of a piece."""
    draw = random.Random(700 + seed)
    k = draw.choice([2, 3, 4])
    query = wb.FiniteQuery(range(k), max_shift=1)
    losses = [[Fraction(draw.randint(0, 9), 2) for _ in range(k)] for _ in range(k)]
    for piece in wb.formula(query, loss=losses, delta="0..1").pieces:
        assert piece.value is not None
        for part in piece.parts:
            high = part.low.high * 3 if part.high is None else part.high.low
            x = part.low.high + (high - part.low.high) * Fraction(draw.randint(1, 15), 16)
            least, most = (end(x) for end in piece.delta)
            delta = least + (most - least) * Fraction(draw.randint(0, 8), 8)
            rows = [[part.masses[f"P({o}|{i})"](x, delta) for o in range(k)] for i in range(k)]
            assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
            for first, second in pairwise(rows):
                for p, q in ((first, second), (second, first)):
                    assert sum(max(a - x * b, Fraction(0)) for a, b in zip(p, q, strict=True)) <= delta
            cost = sum(losses[i][o] * rows[i][o] / k for i in range(k) for o in range(k))
            assert cost == piece.value(x, delta)


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
        ("formula noise --sensitivity 1", "infinitely many masses"),
        ("formula labels --labels 0..5", "needs method lp"),
        ("formula quantizer --levels 4", "needs method exact with given bins"),
        ("formula quantizer --bins=-2,2 --method mvu", "needs method exact with given bins"),
        ("formula quantizer --bins=-2,2 --metric absolute", "metric must be left out"),
        ("formula quantizer --bins=-2,2 --density normal:0,1", "density must be uniform"),
        ("formula channel --answers 0..5 --max-shift 1 --epsilon 2..1", "epsilon must be"),
        ("formula channel --answers 0..5 --max-shift 1 --delta 0..2", "delta must be"),
        ("formula channel --answers 0..900 --max-shift 1", "of at most 4000 probabilities"),
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


def test_labels_and_quantizers_agree_with_designs() -> None:
    labels = wb.Labels([0, 1, 4], [1, 2, 3])
    options: dict[str, Any] = {"method": "lp", "outputs": (0, 2, 4), "loss": "squared"}
    found = wb.formula(labels, **options)
    assert found.to_dict()["pieces"][0]["numerator"] == [3]
    for epsilon in (0.5, 1, 3):
        assert float(found(epsilon)[0]) == pytest.approx(wb.design(labels, epsilon=epsilon, **options).objective)
    laws = wb.Quantization("-3,-1,1,3", c=2)
    found = wb.formula(laws, loss="squared", knots=3)
    assert found.pieces[0].value is None  # the outputs reach too little
    assert found.pieces[0].epsilon[1] == pytest.approx(1.6094379124341003)  # ln((3 + 2)/(3 - 2))
    for epsilon in (1.7, 3):
        design = wb.design(laws, loss="squared", knots=3, epsilon=epsilon)
        assert float(found(epsilon)[0]) == pytest.approx(design.objective, rel=1e-9)
    with pytest.raises(wb.Infeasible):
        found(1)


def test_pictures_name_every_formula() -> None:
    drawn = wb.formula(COUNTS, loss="absolute", delta="0..1").plot()
    numbers = {text.get_text() for text in drawn.axes[0].get_legend().get_texts()}
    assert len(numbers) == len({piece.text() for piece in wb.formula(COUNTS, loss="absolute", delta="0..1").pieces})
    assert drawn.axes[0].get_ylabel() == "δ"
    curve = wb.formula(COUNTS, loss="absolute").plot()
    assert "0.60938" in {text.get_text() for text in curve.axes[0].texts}


def test_a_design_says_the_formula_that_holds_at_its_epsilon() -> None:
    line = "design channel --answers 0..3 --max-shift 1 --loss absolute --epsilon 1 --delta 0.05 --formula"
    done = CliRunner().invoke(app, line.split())
    assert "(27e^(2ε) + 17e^ε + 9) / (20e^(2ε)(e^ε + 1)), 0.609377863 < ε < 1.2116" in " ".join(done.stdout.split())
    piece = json.loads(CliRunner().invoke(app, [*line.split(), "--json"]).stdout)["formula"]["pieces"][0]
    assert piece["numerator"] == [9, 17, 27]
    done = CliRunner().invoke(app, ["design", "noise", "--sensitivity", "1", "--epsilon", "1", "--formula"])
    assert "infinitely many masses" in str(done.exception)


def test_outside_its_interval_a_formula_says_where_it_holds() -> None:
    found = wb.formula(COUNTS, loss="absolute", epsilon="1..2")
    with pytest.raises(wb.InvalidRequest, match="where the formula holds"):
        found(3)
