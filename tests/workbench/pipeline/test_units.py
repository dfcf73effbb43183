"""Test that no result depends on the unit of the answers or of the losses.

A request in another unit multiplies all answers by a factor s. If its loss is the p-th power of a
distance, the objective and the bound are multiplied by s^p (p is the *power* below; it is 0 if ε or
δ is minimised). The status and the verdict of the closed form stay the same. A constant that is
added to all losses is added to the objective and the bound. The last tests are of the units inside a
program: the unit of its probabilities, and the unit of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.pipeline.design import Design
from workbench.solvers.backend import solve

FACTORS = [Fraction(1, 10**9), Fraction(1, 10**5), Fraction(10**5), Fraction(10**9)]
CONSTANTS = [1, 10**6, 10**9]
POWERS = {"squared": 2, "absolute": 1}
# A user-defined loss of a channel with five answers, and one of noise modulo 14.
TABLE = [[3, 10, 1, 6, 9], [2, 0, 4, 7, 1], [5, 5, 2, 3, 8], [9, 1, 6, 0, 2], [4, 8, 3, 7, 1]]
MODULO_LOSSES = [0, 1, 4, 9, 16, 25, 36, 37, 36, 25, 16, 9, 4, 1]

# Takes the factor s of the unit and returns the design.
DesignInUnit = Callable[[Fraction], Design]


def scale_max_loss(options: dict[str, Any], factor: Fraction) -> dict[str, Any]:
    """Return the options with max_loss, if there is one, multiplied by a factor."""
    if "max_loss" not in options:
        return options
    return options | {"max_loss": Fraction(options["max_loss"]) * factor}


# The next functions return a family of requests in any unit, and its power.


def channel(loss: str = "squared", last: int = 8, **options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        relation = {} if "neighbours" in options else {"max_shift": s}
        answers = [s * i for i in range(last + 1)]
        return wb.design(
            "channel",
            answers=answers,
            loss=loss,
            **relation,
            **scale_max_loss(options, s ** POWERS[loss]),
        )

    return design_in_unit, 0 if "max_loss" in options else POWERS[loss]


def table(**options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        loss = [[value * s for value in row] for row in TABLE]
        limited = scale_max_loss(options, s)
        return wb.design("channel", answers=range(5), max_shift=1, loss=loss, **limited)

    return design_in_unit, 0 if "max_loss" in options else 1


def places(**options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        corners = [(i * s, j * s) for i in range(3) for j in range(3)]
        near = f"within {float(s):.17g} L1"
        return wb.design("channel", places=corners, neighbours=near, loss="euclidean", **options)

    return design_in_unit, 1


def on_range(loss: str, sensitivity: int = 10, **options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        return wb.design(
            "channel", range=(0, 10 * s), sensitivity=sensitivity * s, loss=loss, **options
        )

    return design_in_unit, POWERS[loss]


def labels(loss: str = "squared", **options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        return wb.design(wb.Labels([float(s * i) for i in range(7)]), loss=loss, **options)

    return design_in_unit, POWERS[loss]


def clamped(loss: str = "squared", **options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        limited = scale_max_loss(options, s ** POWERS[loss])
        return wb.design("noise", on="integers", clamp=(0, 8), unit=s, loss=loss, **limited)

    return design_in_unit, 0 if "max_loss" in options else POWERS[loss]


def noise_with_listed_losses(**options: Any) -> tuple[DesignInUnit, int]:
    return lambda s: wb.design(
        "noise", on="integers", loss=[v * s for v in (0, 1, 4, 9, 11, 12)], **options
    ), 1


def reals(loss: str, *, is_clamped: bool = False, **options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        clamp = {"clamp": (0, 5 * s)} if is_clamped else {}
        return wb.design("noise", on="reals", sensitivity=s, loss=loss, **clamp, **options)

    return design_in_unit, POWERS[loss]


def modulo(**options: Any) -> tuple[DesignInUnit, int]:
    def design_in_unit(s: Fraction) -> Design:
        return wb.design(
            "modulo",
            n=13,
            max_shift=2,
            loss=[v * s for v in MODULO_LOSSES],
            **scale_max_loss(options, s),
        )

    return design_in_unit, 0 if "max_loss" in options else 1


def quantizer(loss: str = "absolute", **options: Any) -> tuple[DesignInUnit, int]:
    bins = [Fraction(-3), Fraction(-1, 2), Fraction(1, 2), Fraction(3)]
    return lambda s: wb.design(
        "quantizer", bins=[b * s for b in bins], c=s, epsilon=1, loss=loss, **options
    ), POWERS[loss]


CASES = {
    "channel": channel(epsilon=1),
    "channel, δ": channel(epsilon=1, delta="1e-5"),
    "channel, large δ": channel(epsilon=1, delta="0.1"),
    "channel, worst": channel("absolute", epsilon=1, delta="0.01", prior="worst"),
    "channel, far answer": channel(epsilon=1, prior=[1] * 8 + [Fraction(1, 10**12)]),
    "channel, blocks": channel(epsilon=1, delta="0.01", method="block"),
    "channel, pdp": channel(last=3, epsilon=1, delta="0.05", notion="pdp"),
    "channel, zcdp": channel(last=2, notion="zcdp", rho="0.5"),
    "channel, curve": channel(last=5, notion="curve", curve="0.5:0.1,1:0.01"),
    "channel, renyi": channel(last=4, notion="renyi", alpha=2, epsilon=1),
    "channel, least δ": channel("absolute", epsilon=1, minimise="delta", max_loss="0.5"),
    "channel, least ε": channel(
        "absolute", epsilon=3, minimise="epsilon", delta="0.01", max_loss="0.5"
    ),
    "channel, constraint": channel(last=5, epsilon=1, delta="0.01", constraints=["row-monotone"]),
    "channel, runs": channel(last=2, epsilon=4, delta="1e-3", runs=2),
    "channel, GLOP": channel(last=4, epsilon=1, delta="0.01", solver="ortools:glop"),
    "free": channel(last=5, epsilon=1, outputs="free"),
    "free, δ": channel(last=5, epsilon=1, delta="0.01", outputs="free"),
    "free, worst": channel(last=3, epsilon=1, prior="worst", outputs="free"),
    "table": table(epsilon=1),
    "table, δ": table(epsilon=1, delta="0.01"),
    "table, worst": table(epsilon=1, prior="worst"),
    "table, least ε": table(epsilon=6, minimise="epsilon", max_loss=2),
    "places": places(epsilon="0.7", notion="pure"),
    "range": on_range("absolute", epsilon=1),
    "range, near": on_range("absolute", 5, epsilon=1),
    "labels, bins": labels(epsilon=1),
    "labels, lp": labels(epsilon=1, method="lp"),
    "labels, lp, δ": labels(epsilon=1, method="lp", delta="0.01"),
    "labels, unbiased": labels(epsilon=1, method="unbiased"),
    "noise": clamped(epsilon=1),
    "noise, δ": clamped(epsilon=1, delta="0.01"),
    "noise, worst": clamped("absolute", epsilon=1, delta="0.01", prior="worst"),
    "noise, least ε": clamped("absolute", epsilon=3, delta="0.01", minimise="epsilon", max_loss=1),
    "noise, own": noise_with_listed_losses(epsilon=1),
    "noise, own, δ": noise_with_listed_losses(epsilon=1, delta="0.01"),
    "reals": reals("squared", epsilon=1),
    "reals, clamped": reals("absolute", is_clamped=True, epsilon=1),
    "modulo": modulo(epsilon=1),
    "modulo, δ": modulo(epsilon=1, delta="0.01"),
    "modulo, pdp": modulo(epsilon=1, delta="0.05", notion="pdp"),
    "modulo, zcdp": modulo(notion="zcdp", rho="0.5"),
    "modulo, least δ": modulo(epsilon=1, notion="pdp", minimise="delta", max_loss=3),
    "modulo, least ε": modulo(epsilon=5, delta="0.01", minimise="epsilon", max_loss=3),
    "quantizer": quantizer(),
    "quantizer, squared": quantizer("squared"),
    "quantizer, OPTM": quantizer(method="optm"),
}


# These cases are tested with the smallest and the largest factor only.
SLOW = [
    "channel, zcdp",
    "channel, runs",
    "noise, least ε",
    "modulo, zcdp",
    "free, worst",
    "channel, pdp",
    "channel, renyi",
]


@pytest.mark.parametrize("case", CASES)
def test_answers_and_losses_in_another_unit_have_the_same_optimum(case: str) -> None:
    design_in_unit, power = CASES[case]
    unscaled = design_in_unit(Fraction(1))
    assert unscaled.status in ("optimal", "found")
    factors = FACTORS[::3] if case in SLOW else FACTORS
    for factor in factors:
        scaled = design_in_unit(factor)
        unit = float(factor) ** power
        assert scaled.objective / unit == pytest.approx(unscaled.objective, rel=2e-6), factor
        if unscaled.bound is not None:
            assert scaled.bound / unit == pytest.approx(unscaled.bound, rel=2e-6), factor
        assert scaled.status == unscaled.status, factor
        assert scaled.oracle.agrees == unscaled.oracle.agrees, factor
        assert scaled.private == unscaled.private
        assert (scaled.gap or 0) == pytest.approx(unscaled.gap or 0, abs=2e-6)


WITH_A_CONSTANT: dict[str, Callable[[int], Design]] = {
    "channel": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        epsilon=1,
        delta="0.01",
        loss=add_constant(TABLE, c),
    ),
    "channel, zcdp": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        notion="zcdp",
        rho="0.5",
        loss=add_constant(TABLE, c),
    ),
    "channel, worst": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        epsilon=1,
        prior="worst",
        loss=add_constant(TABLE, c),
    ),
    "channel, blocks": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        epsilon=1,
        method="block",
        loss=add_constant(TABLE, c),
    ),
    "labels": lambda c: wb.design(
        wb.Labels(range(5)),
        method="lp",
        neighbours="consecutive",
        epsilon=1,
        loss=add_constant(TABLE, c),
    ),
    "noise": lambda c: wb.design(
        "noise", on="integers", epsilon=1, delta="0.01", loss=[v + c for v in (0, 1, 4, 9, 11, 12)]
    ),
    "modulo": lambda c: wb.design(
        "modulo", n=13, max_shift=2, epsilon=1, delta="0.01", loss=[v + c for v in MODULO_LOSSES]
    ),
    "modulo, pdp": lambda c: wb.design(
        "modulo",
        n=13,
        max_shift=2,
        epsilon=1,
        delta="0.05",
        notion="pdp",
        loss=[v + c for v in MODULO_LOSSES],
    ),
}


def add_constant(rows: list[list[int]], constant: int) -> list[list[int]]:
    """Return rows of losses with a constant added to each loss."""
    return [[value + constant for value in row] for row in rows]


@pytest.mark.parametrize("case", WITH_A_CONSTANT)
def test_a_constant_added_to_the_loss_changes_no_optimum(case: str) -> None:
    design_with_constant = WITH_A_CONSTANT[case]
    unshifted = design_with_constant(0)
    constants = CONSTANTS[1:2] if "zcdp" in case else CONSTANTS
    for constant in constants:
        shifted = design_with_constant(constant)
        loss = float(shifted.details["loss"] - constant)
        assert loss == pytest.approx(unshifted.objective, rel=2e-6)
        bound = float(Fraction(shifted.details["bound"]) - constant)
        assert bound == pytest.approx(unshifted.bound, abs=1e-6 + constant * 1e-15)
        assert shifted.status == unshifted.status == "optimal"


FORMULAS: dict[str, Callable[[Fraction], tuple[Any, dict[str, Any]]]] = {
    "prior": lambda s: (wb.FiniteQuery([s * i for i in range(4)], max_shift=s), {}),
    "worst": lambda s: (wb.FiniteQuery([s * i for i in range(4)], max_shift=s, prior="worst"), {}),
    "modulo": lambda s: (
        wb.ModuloNoise(5, max_shift=1),
        {"loss": [s**2 * loss for loss in (0, 1, 3, 4, 3, 1)]},
    ),
    "quantizer": lambda s: (wb.Quantization(bins=[-3 * s, -s / 2, s / 2, 3 * s], c=s), {}),
}


@pytest.mark.parametrize("case", FORMULAS)
def test_formulas_and_their_prices_do_not_depend_on_units(case: str) -> None:
    """The program of a formula must contain losses below 1e-9 as well."""
    results = []
    for s in (Fraction(1), FACTORS[0], FACTORS[-1]):
        question, options = FORMULAS[case](s)
        options = {"loss": "squared", **options}
        formula = wb.formula(question, **options)
        design = wb.design(question, epsilon=1, **options)
        value = float(formula(1)[0] / s**2)
        price = design.shadow_prices.epsilon[1] / float(s) ** 2
        assert design.objective / float(s) ** 2 == pytest.approx(value, rel=1e-6)
        results.append((len(formula.pieces), value, price))
    unscaled_pieces, unscaled_value, unscaled_price = results[0]
    for pieces, value, price in results[1:]:
        assert pieces == unscaled_pieces
        assert value == pytest.approx(unscaled_value, rel=1e-12)
        assert price == pytest.approx(unscaled_price, rel=1e-9)


def test_a_formula_refuses_losses_that_a_solver_cannot_distinguish() -> None:
    table = [[0, 1, Fraction(1, 10**12)], [1, 0, 1], [2, 1, 0]]
    with pytest.raises(
        wb.InvalidRequest, match=r"^loss must be of sizes that a solver can distinguish"
    ):
        wb.formula(wb.FiniteQuery("0..2", max_shift=1, prior="worst"), loss=table)


@pytest.mark.parametrize("factor", FACTORS)
def test_whether_other_mechanisms_are_optimal_does_not_depend_on_units(factor: Fraction) -> None:
    for loss in ("absolute", "squared"):
        design_in_unit, _ = channel(loss, last=5, epsilon=1)
        assert design_in_unit(factor).unique is True
        assert design_in_unit(Fraction(1)).unique is True


def test_shadow_prices_of_a_constraint_are_in_the_units_of_the_loss() -> None:
    def price(s: Fraction) -> float:
        answers = [s * i for i in range(5)]
        options = {
            "answers": answers,
            "max_shift": s,
            "loss": "squared",
            "epsilon": 1,
            "delta": "0.01",
        }
        design = wb.design("channel", constraints=[lambda M: [M[0, 1] <= 0.5]], **options)
        (name,) = design.shadow_prices.constraints
        binding_rows, _, value = design.shadow_prices.constraints[name]
        assert binding_rows == 1
        return value / float(s) ** 2

    assert price(Fraction(1, 10**5)) == pytest.approx(price(Fraction(1)), rel=1e-6)
    assert price(Fraction(10**5)) == pytest.approx(price(Fraction(1)), rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute", "error-rate"])
def test_glop_solves_ordinary_counts(loss: str) -> None:
    """GLOP reports imprecise solutions if probabilities have the unit 2^-20, but not with the unit 1."""
    pytest.importorskip("ortools")
    options = {"answers": "0..40", "max_shift": 1, "loss": loss, "epsilon": 1, "method": "program"}
    glop = wb.design("channel", solver="ortools:glop", **options)
    highs = wb.design("channel", solver="highs", **options)
    assert glop.solution.solver == "ortools:glop"
    assert glop.objective == pytest.approx(highs.objective, rel=1e-6)


def test_rows_in_tiny_units_are_multiplied_and_their_multipliers_converted_back() -> None:
    """min x subject to 1e-12 x >= 3e-12: the multiplier of the row is 1e12."""
    rows = EntrywiseProgram(1)
    rows.c[:], rows.upper[:] = 1.0, 10.0
    rows.add_row([0], [1.0], 3.0, np.inf)
    program = rows.to_program("one row")
    data = program.template
    tiny = replace(
        program,
        template=replace(
            data, A=data.A * 1e-12, row_lower=data.row_lower * 1e-12, row_upper=data.row_upper
        ),
    )
    solution = solve(tiny)
    assert solution.x == pytest.approx([3.0])
    assert solution.row_dual == pytest.approx([1e12])
