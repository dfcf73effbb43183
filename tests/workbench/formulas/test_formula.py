"""Test formulas of questions: closed forms, comparison with designs, texts, figures, errors."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import workbench as wb
from workbench.cli.commands import app
from workbench.solvers.exact.parametric import ParametricProgram

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
def test_known_formulas(
    question: Any, options: dict[str, Any], formulas: Any, breaks: list[float]
) -> None:
    found = wb.formula(question, **options).to_dict()["pieces"]
    assert [(piece["numerator"], piece["denominator"]) for piece in found] == formulas
    assert [round(piece["epsilon"][1], 5) for piece in found[:-1]] == breaks
    assert found[0]["epsilon"][0] == 0
    assert found[-1]["epsilon"][1] is None


def test_the_breakpoint_is_an_algebraic_number() -> None:
    end = wb.formula(COUNTS, loss="absolute").to_dict()["pieces"][0]["breakpoint"]
    assert end["polynomial"] == [-1, -1, -1, 1]  # x^3 = x^2 + x + 1
    assert end["value"][0] <= 1.8392867552141612 <= end["value"][1]


@pytest.mark.parametrize("seed", range(6))
def test_mechanisms_attain_their_formula_wherever_it_holds(seed: int) -> None:
    """Mechanisms of every part are private laws and have the loss of the formula at any δ."""
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
                    assert (
                        sum(max(a - x * b, Fraction(0)) for a, b in zip(p, q, strict=True)) <= delta
                    )
            cost = sum(losses[i][o] * rows[i][o] / k for i in range(k) for o in range(k))
            assert cost == piece.value(x, delta)


def test_the_mechanism_of_a_piece_is_private_and_costs_the_formula() -> None:
    found = wb.formula(COUNTS, loss="absolute", epsilon=1)
    x, piece = Fraction(5, 2), found.pieces[0]
    rows = [[piece.masses[f"P({o}|{i})"](x) for o in range(4)] for i in range(4)]
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
    assert all(
        x * b >= a and x * a >= b for r, s in pairwise(rows) for a, b in zip(r, s, strict=True)
    )
    assert piece.value is not None
    assert sum(
        Fraction(abs(i - o), 4) * rows[i][o] for i in range(4) for o in range(4)
    ) == piece.value(x)


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
    assert list(found.to_frame().columns) == [
        "from_epsilon",
        "to_epsilon",
        "formula",
        "from_delta",
        "to_delta",
    ]


def test_half_distances_have_powers_of_a_root_of_e() -> None:
    query = wb.FiniteQuery("0,0.5,2", neighbours="all")
    found = wb.formula(query, notion="metric", loss="absolute", epsilon="0.5..2")
    assert found.steps == 2
    assert found.to_dict()["variable"] == "x = exp(epsilon/2)"
    design = wb.design(query, notion="metric", loss="absolute", epsilon=1)
    assert float(found(1)[0]) == pytest.approx(design.objective, rel=1e-9)
    space: dict[str, Any] = {}
    exec(found.python(), space)
    assert space["optimum"](1.0) == pytest.approx(design.objective, rel=1e-9)
    sympy = pytest.importorskip("sympy")
    plain = found.sympy().subs(sympy.Symbol("epsilon", positive=True), 1)
    assert float(plain) == pytest.approx(design.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            "formula channel --answers 0..5 --max-shift 1 --notion zcdp",
            "zcdp is no linear constraint",
        ),
        ("formula modulo --n 8 --max-shift 1 --notion pdp", "epsilon must be one number for pdp"),
        (
            "formula channel --answers 0..3 --max-shift 1 --notion pdp --epsilon 1",
            "would need binary variables",
        ),
        ("formula noise --sensitivity 1", "infinitely many masses"),
        ("formula labels --labels 0..5", "method must be lp for a formula"),
        ("formula quantizer --levels 4", "needs method exact with given bins"),
        ("formula quantizer --bins=-2,2 --method mvu", "needs method exact with given bins"),
        ("formula quantizer --bins=-2,2 --metric absolute", "metric must be left out"),
        ("formula quantizer --bins=-2,2 --density normal:0,1", "density must be uniform"),
        ("formula channel --answers 0..5 --max-shift 1 --epsilon 2..1", "epsilon must be"),
        ("formula channel --answers 0..5 --max-shift 1 --delta 0..2", "delta must be"),
        (
            "formula channel --answers 0..5 --max-shift 1 --outputs free",
            "must be a list for a formula",
        ),
        ("formula channel --range 0..10 --sensitivity 1 --cells 4", "must be a list for a formula"),
        ("formula channel --answers 0,0.001,1 --neighbours all --notion metric", "at most 200"),
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
        assert float(found(epsilon)[0]) == pytest.approx(
            wb.design(labels, epsilon=epsilon, **options).objective
        )
    laws = wb.Quantization("-3,-1,1,3", c=2)
    found = wb.formula(laws, loss="squared", knots=3)
    assert found.pieces[0].value is None  # The outputs are too close together.
    assert found.pieces[0].epsilon[1] == pytest.approx(1.6094379124341003)  # ln((3 + 2)/(3 - 2))
    for epsilon in (1.7, 3):
        design = wb.design(laws, loss="squared", knots=3, epsilon=epsilon)
        assert float(found(epsilon)[0]) == pytest.approx(design.objective, rel=1e-9)
    with pytest.raises(wb.Infeasible):
        found(1)


def test_pictures_name_every_formula() -> None:
    drawn = wb.formula(COUNTS, loss="absolute", delta="0..1").plot()
    numbers = {text.get_text() for text in drawn.axes[0].get_legend().get_texts()}
    assert len(numbers) == len(
        {piece.to_text() for piece in wb.formula(COUNTS, loss="absolute", delta="0..1").pieces}
    )
    assert drawn.axes[0].get_ylabel() == "δ"
    curve = wb.formula(COUNTS, loss="absolute").plot()
    assert "0.60938" in {text.get_text() for text in curve.axes[0].texts}


def test_a_design_says_the_formula_that_holds_at_its_epsilon() -> None:
    line = "design channel --answers 0..3 --max-shift 1 --loss absolute --epsilon 1 --delta 0.05 --formula"
    done = CliRunner().invoke(app, line.split())
    assert "(27e^(2ε) + 17e^ε + 9) / (20e^(2ε)(e^ε + 1)), 0.609377863 < ε < 1.2116" in " ".join(
        done.stdout.split()
    )
    piece = json.loads(CliRunner().invoke(app, [*line.split(), "--json"]).stdout)["formula"][
        "pieces"
    ][0]
    assert piece["numerator"] == [9, 17, 27]
    done = CliRunner().invoke(
        app, ["design", "noise", "--sensitivity", "1", "--epsilon", "1", "--formula"]
    )
    assert "infinitely many masses" in str(done.exception)


@pytest.mark.parametrize(("delta", "number"), [("0.01", 0), ("0.0271", 1), ("0.05", 2)])
def test_a_design_of_patterns_says_the_formula_that_holds_at_its_delta(
    delta: str, number: int
) -> None:
    line = f"design modulo --n 8 --max-shift 3 --directed --notion pdp --epsilon 1.5 --delta {delta} --formula --json"
    answer = json.loads(CliRunner().invoke(app, line.split()).stdout)
    pieces = wb.formula(
        wb.ModuloNoise(n=8, max_shift=3, directed=True),
        notion="pdp",
        epsilon="1.5",
        delta="0..0.05",
    )
    assert answer["formula"]["pieces"][0]["formula"] == pieces.pieces[number].to_text()
    assert float(pieces("1.5", delta)[0]) == pytest.approx(answer["objective"], rel=1e-9)


def test_outside_its_interval_a_formula_says_where_it_holds() -> None:
    found = wb.formula(COUNTS, loss="absolute", epsilon="1..2")
    with pytest.raises(wb.InvalidRequest, match="where the formula holds"):
        found(3)


def test_ctrl_c_keeps_what_is_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved, calls = ParametricProgram.propose_basis, iter(range(100))

    def pressed(self: ParametricProgram, x: Fraction, delta: Fraction) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return solved(self, x, delta)

    monkeypatch.setattr(ParametricProgram, "propose_basis", pressed)
    line = (
        f"formula channel --answers 0..5 --max-shift 1 --loss absolute --save {tmp_path / 'f.json'}"
    )
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 2
    assert "Open, not proven: epsilon between" in done.stdout
    again = wb.check(tmp_path / "f.json")
    whole = wb.formula(wb.FiniteQuery("0..5", max_shift=1), loss="absolute")
    assert again.unproven
    assert {piece.to_text() for piece in again.pieces} < {piece.to_text() for piece in whole.pieces}
    with pytest.raises(wb.InvalidRequest, match="where the formula holds"):
        again(sum(again.unproven[0]) / 2)
    monkeypatch.setattr(ParametricProgram, "propose_basis", lambda *_: _press())
    with pytest.raises(KeyboardInterrupt):
        wb.formula(COUNTS, loss="absolute")  # Nothing is proven yet.


def _press() -> None:
    raise KeyboardInterrupt


def test_an_interval_of_delta_without_a_mechanism_somewhere_is_refused() -> None:
    query = wb.FiniteQuery("0..2", "-1..3", max_shift=1)
    options: dict[str, Any] = {"loss": "absolute", "constraints": ["unbiased"]}
    with pytest.raises(
        wb.Infeasible, match=r"at epsilon = 0\.2\d*, delta = .*A formula for an interval of delta"
    ):
        wb.formula(query, delta="0..1", **options)
    assert all(
        piece.value is not None
        for piece in wb.formula(query, delta="0..1", epsilon="2..4", **options).pieces
    )
    assert wb.formula(query, delta="0.05", **options).pieces[0].value is None


def test_sympy_says_the_same() -> None:
    sympy = pytest.importorskip("sympy")
    epsilon, delta = sympy.symbols("epsilon delta", positive=True)
    curve = wb.formula(COUNTS, loss="absolute")
    for at in (Fraction(1, 3), Fraction(1), Fraction(5, 2)):
        assert float(
            curve.sympy().subs(epsilon, sympy.Rational(at.numerator, at.denominator))
        ) == pytest.approx(float(curve(at)[0]), rel=1e-15)
    slope = sympy.diff(curve.sympy(), epsilon).subs(epsilon, 1)
    prices = curve.pieces[1].shadow_prices
    assert prices is not None
    assert float(slope) == pytest.approx(float(prices[0](Fraction(math.e))), rel=1e-12)
    free = wb.formula(COUNTS, loss="absolute", delta="0..1")
    value = free.sympy().subs({epsilon: 1, delta: sympy.Rational(1, 10)})
    assert float(value) == pytest.approx(float(free(1, "0.1")[0]), rel=1e-15)
    none = wb.formula(wb.Quantization("-2,-0.5,0.5,2")).sympy()
    assert none.subs(epsilon, sympy.Rational(1, 2)) is sympy.nan


def test_a_file_holds_the_prior_of_labels(tmp_path: Path) -> None:
    """Test weights whose shares of 1 are no doubles."""
    found = wb.formula(
        wb.Labels([0, 1, 4, 5], [2, 3, 1, 1]), method="lp", outputs=(0, 1, 2), loss="squared"
    )
    (path,) = found.save(tmp_path / "f.json")
    assert wb.check(path).to_dict() == found.to_dict()


def test_worst_case_losses_that_are_no_doubles_are_exact() -> None:
    """Test a maximal loss for the worst case that is below 1/3 as a double."""
    query = wb.FiniteQuery("0..1", max_shift=1, prior="worst")
    assert wb.formula(query, loss=[["1/3", "1/3"], ["1/3", "1/3"]]).to_dict()["pieces"][0][
        "denominator"
    ] == [3]


def test_high_powers_are_sampled_where_they_are_no_huge_numbers() -> None:
    query = wb.FiniteQuery("0,0.01,1", neighbours="all")
    found = wb.formula(query, notion="metric", loss="absolute")
    assert not found.unproven
    for epsilon in (0.3, 2):
        design = wb.design(query, notion="metric", loss="absolute", epsilon=epsilon)
        assert float(found(epsilon)[0]) == pytest.approx(design.objective, rel=1e-9)


def test_losses_of_noise_and_budgets_of_differences_are_exact() -> None:
    found = wb.formula(wb.ModuloNoise(n=1, max_shift=1), loss=[0, "1/3"], epsilon={1: "1/2"})
    assert found.what.endswith("budgets 1=0.5 times ε")
    assert found.pieces[0].to_text() == "1 / (3e^(ε/2) + 3)"
    design = wb.design(wb.ModuloNoise(n=1, max_shift=1), loss=[0, "1/3"], epsilon={1: "1/2"})
    assert float(found(1)[0]) == pytest.approx(design.objective, rel=1e-12)
