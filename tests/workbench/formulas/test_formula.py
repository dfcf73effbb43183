"""Test `wb.formula`: stored formulas, comparison with designs, texts, figures, errors.

A formula is the smallest loss as a function of ε and δ. x is e^ε. On each of its pieces, which are
intervals of ε and of δ, the formula is (numerator + δ numerator_delta) / denominator, where each
polynomial is a list of coefficients by rising power of x. The masses of an optimal mechanism are
such functions, too. P(o|i) is the probability of output o for answer i.
"""

from __future__ import annotations

import itertools
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
from workbench.formulas.plot import number_formulas
from workbench.solvers.exact.parametric import ParametricProgram

# The question of most tests: the answers 0..3, of which consecutive ones are neighbours.
COUNTS = wb.FiniteQuery("0..3", max_shift=1)

# Each row has a question, options, (numerator, denominator) of every piece, and the ε between them,
# rounded to five decimals. The formulas are values of the current program, pinned. Other tests
# compare formulas with designs.
STORED_FORMULAS: list[
    tuple[Any, dict[str, Any], list[tuple[list[int], list[int]]], list[float]]
] = [
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


@pytest.mark.parametrize(("question", "options", "formulas", "breakpoints"), STORED_FORMULAS)
def test_a_question_has_its_stored_formula(
    question: Any, options: dict[str, Any], formulas: Any, breakpoints: list[float]
) -> None:
    pieces = wb.formula(question, **options).to_dict()["pieces"]
    assert [(piece["numerator"], piece["denominator"]) for piece in pieces] == formulas
    assert [round(piece["epsilon"][1], 5) for piece in pieces[:-1]] == breakpoints
    assert pieces[0]["epsilon"][0] == 0
    assert pieces[-1]["epsilon"][1] is None


def test_the_breakpoint_is_an_algebraic_number() -> None:
    breakpoint = wb.formula(COUNTS, loss="absolute").to_dict()["pieces"][0]["breakpoint"]
    assert breakpoint["polynomial"] == [-1, -1, -1, 1]  # x^3 = x^2 + x + 1
    lower, upper = breakpoint["value"]
    # The root 1.8392867552141612 of this polynomial is the tribonacci constant.
    assert lower <= 1.8392867552141612 <= upper


@pytest.mark.parametrize("seed", range(6))
def test_mechanisms_attain_their_formula_wherever_it_holds(seed: int) -> None:
    """At a random point of each piece, the mechanism is private and has the loss of the formula.

    The question and its losses are random, too. All numbers are exact.
    """
    generator = random.Random(700 + seed)
    k = generator.choice([2, 3, 4])
    query = wb.FiniteQuery(range(k), max_shift=1)
    losses = [[Fraction(generator.randint(0, 9), 2) for _ in range(k)] for _ in range(k)]
    for piece in wb.formula(query, loss=losses, delta="0..1").pieces:
        assert piece.value is not None
        for part in piece.parts:
            # The ends of a part are algebraic numbers x, enclosed by rationals. An open part is
            # tested up to three times its lower end.
            x_low = part.low.high
            x_high = x_low * 3 if part.high is None else part.high.low
            x = x_low + (x_high - x_low) * Fraction(generator.randint(1, 15), 16)
            delta_low, delta_high = (end(x) for end in piece.delta)
            delta = delta_low + (delta_high - delta_low) * Fraction(generator.randint(0, 8), 8)
            rows = [[part.masses[f"P({o}|{i})"](x, delta) for o in range(k)] for i in range(k)]
            assert_rows_are_private(rows, x, delta)
            loss = sum(losses[i][o] * rows[i][o] / k for i in range(k) for o in range(k))
            assert loss == piece.value(x, delta)


def assert_rows_are_private(rows: list[list[Fraction]], x: Fraction, delta: Fraction) -> None:
    """Assert that the rows are distributions, and (ln x, δ)-DP for consecutive answers."""
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
    for first, second in pairwise(rows):
        for p, q in ((first, second), (second, first)):
            excesses = [max(a - x * b, Fraction(0)) for a, b in zip(p, q, strict=True)]
            assert sum(excesses) <= delta


def test_the_mechanism_of_a_piece_is_private_and_has_the_loss_of_the_formula() -> None:
    piece = wb.formula(COUNTS, loss="absolute", epsilon=1).pieces[0]
    x = Fraction(5, 2)
    rows = [[piece.masses[f"P({o}|{i})"](x) for o in range(4)] for i in range(4)]
    assert_rows_are_private(rows, x, delta=Fraction(0))
    assert piece.value is not None
    loss = sum(Fraction(abs(i - o), 4) * rows[i][o] for i in range(4) for o in range(4))
    assert loss == piece.value(x)


def test_shadow_prices_equal_difference_quotients() -> None:
    formula = wb.formula(COUNTS, loss="absolute", epsilon="1..2", delta="0..1")
    for piece in formula.pieces:
        assert piece.shadow_prices is not None
        by_epsilon, by_delta = piece.shadow_prices
        x = Fraction(4)
        step = Fraction(1, 10**6)
        assert piece.value is not None
        # dx/dε = x, so a step of ε changes x by x times the step.
        slope = (piece.value(x * (1 + step)) - piece.value(x)) / step
        assert abs(float(by_epsilon(x) - slope)) < 1e-5
        assert by_delta(x) == piece.value(x, Fraction(1)) - piece.value(x)


def load_optimum_function(formula: Any) -> Any:
    """Run the source code of a formula. Return its function `optimum` of ε and, if it has one, δ."""
    namespace: dict[str, Any] = {}
    exec(formula.python(), namespace)
    return namespace["optimum"]


def test_the_source_code_of_a_formula_computes_its_value() -> None:
    formula = wb.formula(COUNTS, loss="absolute", delta="0..1")
    optimum = load_optimum_function(formula)
    assert optimum(1.0, 0.1) == pytest.approx(float(formula(1, "0.1")[0]), abs=1e-14)


def test_the_latex_of_a_formula_has_cases_or_a_table() -> None:
    formula = wb.formula(COUNTS, loss="absolute", delta="0..1")
    assert r"\begin{cases}" in formula.latex()
    assert r"e^{2\varepsilon}" in formula.latex()
    assert r"\toprule" in formula.latex(table=True)
    assert formula._repr_latex_().startswith("$$")


def test_a_formula_is_saved_in_four_formats(tmp_path: Path) -> None:
    formula = wb.formula(COUNTS, loss="absolute", delta="0..1")
    for name in ("f.json", "f.tex", "f.py", "f.csv"):
        assert formula.save(tmp_path / name) == [tmp_path / name]
    assert json.loads((tmp_path / "f.json").read_text())["variable"] == "x = exp(epsilon)"
    assert list(formula.to_frame().columns) == [
        "from_epsilon",
        "to_epsilon",
        "formula",
        "from_delta",
        "to_delta",
    ]


def test_distances_of_one_half_give_powers_of_e_to_half_epsilon() -> None:
    query = wb.FiniteQuery("0,0.5,2", neighbours="all")
    formula = wb.formula(query, notion="metric", loss="absolute", epsilon="0.5..2")
    assert formula.steps == 2
    assert formula.to_dict()["variable"] == "x = exp(epsilon/2)"
    design = wb.design(query, notion="metric", loss="absolute", epsilon=1)
    assert float(formula(1)[0]) == pytest.approx(design.objective, rel=1e-9)
    assert load_optimum_function(formula)(1.0) == pytest.approx(design.objective, rel=1e-9)
    sympy = pytest.importorskip("sympy")
    sympy_value = formula.sympy().subs(sympy.Symbol("epsilon", positive=True), 1)
    assert float(sympy_value) == pytest.approx(design.objective, rel=1e-9)


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
def test_questions_without_a_formula_are_refused_with_the_reason(
    arguments: str, sentence: str
) -> None:
    run = CliRunner().invoke(app, arguments.split())
    assert run.exit_code
    assert sentence in str(run.exception)


def test_the_command_prints_a_table_and_json() -> None:
    line = "formula channel --answers 0..3 --max-shift 1 --loss absolute"
    run = CliRunner().invoke(app, line.split())
    assert run.exit_code == 0
    # The first piece of the first stored formula, and its end.
    assert "(e^ε + 1) / (2e^ε)" in run.stdout
    assert "0.609377863" in run.stdout
    run = CliRunner().invoke(app, [*line.split(), "--json"])
    assert json.loads(run.stdout)["pieces"][0]["proven"] is True


def test_a_formula_of_labels_agrees_with_designs() -> None:
    labels = wb.Labels([0, 1, 4], [1, 2, 3])
    options: dict[str, Any] = {"method": "lp", "outputs": (0, 2, 4), "loss": "squared"}
    formula = wb.formula(labels, **options)
    assert formula.to_dict()["pieces"][0]["numerator"] == [3]
    for epsilon in (0.5, 1, 3):
        assert float(formula(epsilon)[0]) == pytest.approx(
            wb.design(labels, epsilon=epsilon, **options).objective
        )


def test_a_formula_of_quantizers_agrees_with_designs() -> None:
    question = wb.Quantization("-3,-1,1,3", c=2)
    formula = wb.formula(question, loss="squared", knots=3)
    for epsilon in (1.7, 3):
        design = wb.design(question, loss="squared", knots=3, epsilon=epsilon)
        assert float(formula(epsilon)[0]) == pytest.approx(design.objective, rel=1e-9)


def test_a_formula_of_quantizers_has_no_value_where_the_outputs_are_too_close_together() -> None:
    """Unbiased outputs up to ±B for inputs in ±c need ε >= ln((B + c)/(B - c)). Here B = 3, c = 2."""
    formula = wb.formula(wb.Quantization("-3,-1,1,3", c=2), loss="squared", knots=3)
    assert formula.pieces[0].value is None
    assert formula.pieces[0].epsilon[1] == pytest.approx(math.log((3 + 2) / (3 - 2)))
    with pytest.raises(wb.Infeasible):
        formula(1)


def test_the_legend_of_a_figure_has_every_formula_once() -> None:
    formula = wb.formula(COUNTS, loss="absolute", delta="0..1")
    figure = formula.plot(title="counts")
    (axis,) = figure.axes
    (legend,) = figure.legends
    labels = {text.get_text() for text in legend.get_texts()}
    assert len(labels) == len({piece.to_text() for piece in formula.pieces})
    assert axis.get_ylabel() == "δ"
    assert axis.get_title() == "counts"


def test_every_region_of_a_map_has_the_number_of_its_formula() -> None:
    formula = wb.formula(COUNTS, loss="absolute", delta="0..1")
    (axis,) = formula.plot().axes
    numbers = [int(text.get_text()) for text in axis.texts if text.get_text().isdecimal()]
    assert len(numbers) == len(formula.pieces)
    assert set(numbers) == set(number_formulas(formula.pieces).values())


def test_a_figure_labels_its_breakpoints() -> None:
    curve = wb.formula(COUNTS, loss="absolute").plot()
    assert "0.60938" in {text.get_text() for text in curve.axes[0].texts}


def test_a_design_prints_the_formula_at_its_epsilon() -> None:
    line = "design channel --answers 0..3 --max-shift 1 --loss absolute --epsilon 1 --delta 0.05 --formula"
    run = CliRunner().invoke(app, line.split())
    printed_text = " ".join(run.stdout.split())
    assert "(27e^(2ε) + 17e^ε + 9) / (20e^(2ε)(e^ε + 1)), 0.609377863 < ε < 1.2116" in printed_text
    record = json.loads(CliRunner().invoke(app, [*line.split(), "--json"]).stdout)
    assert record["formula"]["pieces"][0]["numerator"] == [9, 17, 27]


def test_a_design_without_a_formula_refuses_the_option() -> None:
    line = "design noise --sensitivity 1 --epsilon 1 --formula"
    run = CliRunner().invoke(app, line.split())
    assert "infinitely many masses" in str(run.exception)


@pytest.mark.parametrize(("delta", "number"), [("0.01", 0), ("0.0271", 1), ("0.05", 2)])
def test_a_design_under_pdp_has_the_formula_at_its_delta(delta: str, number: int) -> None:
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


def test_an_epsilon_outside_the_intervals_of_a_formula_is_refused() -> None:
    formula = wb.formula(COUNTS, loss="absolute", epsilon="1..2")
    with pytest.raises(wb.InvalidRequest, match="where the formula holds"):
        formula(3)


def test_ctrl_c_keeps_the_proven_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = ParametricProgram.propose_basis
    call_numbers = itertools.count(1)

    def interrupt_third_call(self: ParametricProgram, x: Fraction, delta: Fraction) -> Any:
        """Propose a basis, but raise KeyboardInterrupt like Ctrl-C in the third call."""
        if next(call_numbers) == 3:
            raise KeyboardInterrupt
        return original(self, x, delta)

    monkeypatch.setattr(ParametricProgram, "propose_basis", interrupt_third_call)
    line = (
        f"formula channel --answers 0..5 --max-shift 1 --loss absolute --save {tmp_path / 'f.json'}"
    )
    run = CliRunner().invoke(app, line.split())
    assert run.exit_code == 2
    assert "Open, not proven: epsilon between" in run.stdout
    saved = wb.check(tmp_path / "f.json")
    complete = wb.formula(wb.FiniteQuery("0..5", max_shift=1), loss="absolute")
    assert saved.unproven
    saved_texts = {piece.to_text() for piece in saved.pieces}
    assert saved_texts < {piece.to_text() for piece in complete.pieces}
    with pytest.raises(wb.InvalidRequest, match="where the formula holds"):
        saved(sum(saved.unproven[0]) / 2)


def test_ctrl_c_before_the_first_proven_piece_ends_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ParametricProgram, "propose_basis", interrupt)
    with pytest.raises(KeyboardInterrupt):
        wb.formula(COUNTS, loss="absolute")


def test_an_interval_with_an_infeasible_delta_is_refused() -> None:
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


def test_the_sympy_expression_equals_the_formula() -> None:
    sympy = pytest.importorskip("sympy")
    epsilon, delta = sympy.symbols("epsilon delta", positive=True)
    curve = wb.formula(COUNTS, loss="absolute")
    for point in (Fraction(1, 3), Fraction(1), Fraction(5, 2)):
        sympy_point = sympy.Rational(point.numerator, point.denominator)
        sympy_value = float(curve.sympy().subs(epsilon, sympy_point))
        assert sympy_value == pytest.approx(float(curve(point)[0]), rel=1e-15)
    slope = sympy.diff(curve.sympy(), epsilon).subs(epsilon, 1)
    prices = curve.pieces[1].shadow_prices
    assert prices is not None
    assert float(slope) == pytest.approx(float(prices[0](Fraction(math.e))), rel=1e-12)
    plane = wb.formula(COUNTS, loss="absolute", delta="0..1")
    value = plane.sympy().subs({epsilon: 1, delta: sympy.Rational(1, 10)})
    assert float(value) == pytest.approx(float(plane(1, "0.1")[0]), rel=1e-15)
    # This quantizer is infeasible at a small ε.
    quantizer = wb.formula(wb.Quantization("-2,-0.5,0.5,2")).sympy()
    assert quantizer.subs(epsilon, sympy.Rational(1, 2)) is sympy.nan


def test_a_file_contains_the_exact_prior_of_labels(tmp_path: Path) -> None:
    """The weights 2/7, 3/7 and 1/7 are no doubles."""
    formula = wb.formula(
        wb.Labels([0, 1, 4, 5], [2, 3, 1, 1]), method="lp", outputs=(0, 1, 2), loss="squared"
    )
    (path,) = formula.save(tmp_path / "f.json")
    assert wb.check(path).to_dict() == formula.to_dict()


def test_worst_case_losses_that_are_no_doubles_are_exact() -> None:
    """The nearest double of the loss 1/3 is below 1/3."""
    query = wb.FiniteQuery("0..1", max_shift=1, prior="worst")
    assert wb.formula(query, loss=[["1/3", "1/3"], ["1/3", "1/3"]]).to_dict()["pieces"][0][
        "denominator"
    ] == [3]


def test_a_formula_with_high_powers_of_x_is_proven() -> None:
    """The distance 1/100 makes the formula one in e^(ε/100)."""
    query = wb.FiniteQuery("0,0.01,1", neighbours="all")
    formula = wb.formula(query, notion="metric", loss="absolute")
    assert not formula.unproven
    for epsilon in (0.3, 2):
        design = wb.design(query, notion="metric", loss="absolute", epsilon=epsilon)
        assert float(formula(epsilon)[0]) == pytest.approx(design.objective, rel=1e-9)


def test_rational_losses_and_budgets_of_differences_are_exact() -> None:
    formula = wb.formula(wb.ModuloNoise(n=1, max_shift=1), loss=[0, "1/3"], epsilon={1: "1/2"})
    assert formula.what.endswith("budgets 1=0.5 times ε")
    assert formula.pieces[0].to_text() == "1 / (3e^(ε/2) + 3)"
    design = wb.design(wb.ModuloNoise(n=1, max_shift=1), loss=[0, "1/3"], epsilon={1: "1/2"})
    assert float(formula(1)[0]) == pytest.approx(design.objective, rel=1e-12)
