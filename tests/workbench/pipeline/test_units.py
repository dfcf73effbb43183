"""Test that no result depends on the unit of the answers or of the losses.

A request in another unit multiplies all answers by a factor s. If its loss is the p-th power of a
distance, the objective and the bound are multiplied by s^p (p is the *power* below; it is 0 if ε or
δ is minimised). The status and the verdict of the closed form stay the same. A constant that is
added to all losses is added to the objective and the bound. The last tests are of the units inside
a program: the unit of its probabilities, and the unit of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import workbench as wb
from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.pipeline.design import Design
from workbench.solvers.backend import solve

# Factors s of the unit.
FACTORS = [Fraction(1, 10**9), Fraction(1, 10**5), Fraction(10**5), Fraction(10**9)]
# Constants that are added to all losses.
CONSTANTS = [1, 10**6, 10**9]
# Powers of s by which the built-in losses are multiplied.
POWERS = {"squared": 2, "absolute": 1}
# User-defined losses of a channel: a row for each of the five answers, a column for each output.
LOSS_TABLE = [[3, 10, 1, 6, 9], [2, 0, 4, 7, 1], [5, 5, 2, 3, 8], [9, 1, 6, 0, 2], [4, 8, 3, 7, 1]]
# User-defined losses of the noise values 0, ..., 13 modulo 14.
MODULO_LOSSES = [0, 1, 4, 9, 16, 25, 36, 37, 36, 25, 16, 9, 4, 1]
# User-defined losses of the noise values 0, ±1, ..., ±5.
NOISE_LOSSES = [0, 1, 4, 9, 11, 12]
# The tolerance of optima that a solver finds in two different units.
SOLVER_TOLERANCE = 2e-6

# A function that takes the factor s of the unit and returns the design in this unit.
DesignInUnit = Callable[[Fraction], Design]


class UnitCase(NamedTuple):
    """A request in any unit, and the power p: its objective is proportional to s^p."""

    design_in_unit: DesignInUnit
    power: int


def scale_max_loss(options: dict[str, Any], factor: Fraction) -> dict[str, Any]:
    """Return the options with max_loss, if there is one, multiplied by a factor."""
    if "max_loss" not in options:
        return options
    return options | {"max_loss": Fraction(options["max_loss"]) * factor}


def power_of_objective(loss_power: int, options: dict[str, Any]) -> int:
    """Return the power of the objective: 0 if max_loss limits the loss and ε or δ is minimised."""
    return 0 if "max_loss" in options else loss_power


# The next functions return the cases of one family. The options are passed to `wb.design`.


def make_channel_case(loss: str = "squared", last: int = 8, **options: Any) -> UnitCase:
    """Return a channel with the answers 0, s, ..., last s. Neighbours differ by s by default."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        relation = {} if "neighbours" in options else {"max_shift": s}
        answers = [s * i for i in range(last + 1)]
        return wb.design(
            "channel",
            answers=answers,
            loss=loss,
            **relation,
            **scale_max_loss(options, s ** POWERS[loss]),
        )

    return UnitCase(design_in_unit, power_of_objective(POWERS[loss], options))


def make_table_case(**options: Any) -> UnitCase:
    """Return a channel whose user-defined losses are s times LOSS_TABLE."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        loss = [[value * s for value in row] for row in LOSS_TABLE]
        limited = scale_max_loss(options, s)
        return wb.design("channel", answers=range(5), max_shift=1, loss=loss, **limited)

    return UnitCase(design_in_unit, power_of_objective(1, options))


def make_places_case(**options: Any) -> UnitCase:
    """Return a channel of nine places in a square grid of step s. Places s apart are neighbours."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        corners = [(i * s, j * s) for i in range(3) for j in range(3)]
        neighbours = f"within {float(s):.17g} L1"
        return wb.design(
            "channel", places=corners, neighbours=neighbours, loss="euclidean", **options
        )

    return UnitCase(design_in_unit, power=1)


def make_range_case(loss: str, sensitivity: int = 10, **options: Any) -> UnitCase:
    """Return a channel of the range [0, 10 s]. The sensitivity is multiplied by s too."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        return wb.design(
            "channel", range=(0, 10 * s), sensitivity=sensitivity * s, loss=loss, **options
        )

    return UnitCase(design_in_unit, POWERS[loss])


def make_labels_case(loss: str = "squared", **options: Any) -> UnitCase:
    """Return a randomizer of the labels 0, s, ..., 6 s."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        return wb.design(wb.Labels([float(s * i) for i in range(7)]), loss=loss, **options)

    return UnitCase(design_in_unit, POWERS[loss])


def make_clamped_noise_case(loss: str = "squared", **options: Any) -> UnitCase:
    """Return noise on the multiples of s whose outputs are clamped into 0..8 units."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        limited = scale_max_loss(options, s ** POWERS[loss])
        return wb.design("noise", on="integers", clamp=(0, 8), unit=s, loss=loss, **limited)

    return UnitCase(design_in_unit, power_of_objective(POWERS[loss], options))


def make_listed_loss_case(**options: Any) -> UnitCase:
    """Return noise on the integers whose losses are s times NOISE_LOSSES."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        losses = [s * loss for loss in NOISE_LOSSES]
        return wb.design("noise", on="integers", loss=losses, **options)

    return UnitCase(design_in_unit, power=1)


def make_real_noise_case(loss: str, *, is_clamped: bool = False, **options: Any) -> UnitCase:
    """Return noise on the reals for sensitivity s, clamped into [0, 5 s] if `is_clamped`."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        clamp = {"clamp": (0, 5 * s)} if is_clamped else {}
        return wb.design("noise", on="reals", sensitivity=s, loss=loss, **clamp, **options)

    return UnitCase(design_in_unit, POWERS[loss])


def make_modulo_case(**options: Any) -> UnitCase:
    """Return noise modulo 14 whose user-defined losses are s times MODULO_LOSSES."""

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        return wb.design(
            "modulo",
            n=13,
            max_shift=2,
            loss=[s * loss for loss in MODULO_LOSSES],
            **scale_max_loss(options, s),
        )

    return UnitCase(design_in_unit, power_of_objective(1, options))


def make_quantizer_case(loss: str = "absolute", **options: Any) -> UnitCase:
    """Return a quantizer at ε = 1 of the interval [-s, s]. Its four bins are multiples of s."""
    unscaled_bins = [Fraction(-3), Fraction(-1, 2), Fraction(1, 2), Fraction(3)]

    def design_in_unit(s: Fraction) -> Design:
        """Return the design in the unit s."""
        bins = [s * unscaled_bin for unscaled_bin in unscaled_bins]
        return wb.design("quantizer", bins=bins, c=s, epsilon=1, loss=loss, **options)

    return UnitCase(design_in_unit, POWERS[loss])


# The comma-separated words after the family are its options. "own" means listed losses.
CASES = {
    "channel": make_channel_case(epsilon=1),
    "channel, δ": make_channel_case(epsilon=1, delta="1e-5"),
    "channel, large δ": make_channel_case(epsilon=1, delta="0.1"),
    "channel, worst": make_channel_case("absolute", epsilon=1, delta="0.01", prior="worst"),
    "channel, far answer": make_channel_case(epsilon=1, prior=[1] * 8 + [Fraction(1, 10**12)]),
    "channel, blocks": make_channel_case(epsilon=1, delta="0.01", method="block"),
    "channel, pdp": make_channel_case(last=3, epsilon=1, delta="0.05", notion="pdp"),
    "channel, zcdp": make_channel_case(last=2, notion="zcdp", rho="0.5"),
    "channel, curve": make_channel_case(last=5, notion="curve", curve="0.5:0.1,1:0.01"),
    "channel, renyi": make_channel_case(last=4, notion="renyi", alpha=2, epsilon=1),
    "channel, least δ": make_channel_case("absolute", epsilon=1, minimise="delta", max_loss="0.5"),
    "channel, least ε": make_channel_case(
        "absolute", epsilon=3, minimise="epsilon", delta="0.01", max_loss="0.5"
    ),
    "channel, constraint": make_channel_case(
        last=5, epsilon=1, delta="0.01", constraints=["row-monotone"]
    ),
    "channel, runs": make_channel_case(last=2, epsilon=4, delta="1e-3", runs=2),
    "channel, GLOP": make_channel_case(last=4, epsilon=1, delta="0.01", solver="ortools:glop"),
    "free": make_channel_case(last=5, epsilon=1, outputs="free"),
    "free, δ": make_channel_case(last=5, epsilon=1, delta="0.01", outputs="free"),
    "free, worst": make_channel_case(last=3, epsilon=1, prior="worst", outputs="free"),
    "table": make_table_case(epsilon=1),
    "table, δ": make_table_case(epsilon=1, delta="0.01"),
    "table, worst": make_table_case(epsilon=1, prior="worst"),
    "table, least ε": make_table_case(epsilon=6, minimise="epsilon", max_loss=2),
    "places": make_places_case(epsilon="0.7", notion="pure"),
    "range": make_range_case("absolute", epsilon=1),
    "range, near": make_range_case("absolute", sensitivity=5, epsilon=1),
    "labels, bins": make_labels_case(epsilon=1),
    "labels, lp": make_labels_case(epsilon=1, method="lp"),
    "labels, lp, δ": make_labels_case(epsilon=1, method="lp", delta="0.01"),
    "labels, unbiased": make_labels_case(epsilon=1, method="unbiased"),
    "noise": make_clamped_noise_case(epsilon=1),
    "noise, δ": make_clamped_noise_case(epsilon=1, delta="0.01"),
    "noise, worst": make_clamped_noise_case("absolute", epsilon=1, delta="0.01", prior="worst"),
    "noise, least ε": make_clamped_noise_case(
        "absolute", epsilon=3, delta="0.01", minimise="epsilon", max_loss=1
    ),
    "noise, own": make_listed_loss_case(epsilon=1),
    "noise, own, δ": make_listed_loss_case(epsilon=1, delta="0.01"),
    "reals": make_real_noise_case("squared", epsilon=1),
    "reals, clamped": make_real_noise_case("absolute", is_clamped=True, epsilon=1),
    "modulo": make_modulo_case(epsilon=1),
    "modulo, δ": make_modulo_case(epsilon=1, delta="0.01"),
    "modulo, pdp": make_modulo_case(epsilon=1, delta="0.05", notion="pdp"),
    "modulo, zcdp": make_modulo_case(notion="zcdp", rho="0.5"),
    "modulo, least δ": make_modulo_case(epsilon=1, notion="pdp", minimise="delta", max_loss=3),
    "modulo, least ε": make_modulo_case(epsilon=5, delta="0.01", minimise="epsilon", max_loss=3),
    "quantizer": make_quantizer_case(),
    "quantizer, squared": make_quantizer_case("squared"),
    "quantizer, OPTM": make_quantizer_case(method="optm"),
}

# These cases are tested with the smallest and the largest factor only.
SLOW_CASES = [
    "channel, zcdp",
    "channel, runs",
    "noise, least ε",
    "modulo, zcdp",
    "free, worst",
    "channel, pdp",
    "channel, renyi",
]


def assert_same_answer(scaled: Design, unscaled: Design, unit: float) -> None:
    """Assert that two designs agree if the objective and the bound of `scaled` are in `unit`s."""
    assert scaled.objective / unit == pytest.approx(unscaled.objective, rel=SOLVER_TOLERANCE)
    if unscaled.bound is not None:
        assert scaled.bound / unit == pytest.approx(unscaled.bound, rel=SOLVER_TOLERANCE)
    assert scaled.status == unscaled.status
    assert scaled.oracle.agrees == unscaled.oracle.agrees
    assert scaled.private == unscaled.private
    assert (scaled.gap or 0) == pytest.approx(unscaled.gap or 0, abs=SOLVER_TOLERANCE)


@pytest.mark.parametrize("case", CASES)
def test_answers_and_losses_in_another_unit_have_the_same_optimum(case: str) -> None:
    design_in_unit, power = CASES[case]
    unscaled = design_in_unit(Fraction(1))
    assert unscaled.status in ("optimal", "found")
    factors = [FACTORS[0], FACTORS[-1]] if case in SLOW_CASES else FACTORS
    for factor in factors:
        assert_same_answer(design_in_unit(factor), unscaled, unit=float(factor) ** power)


# Functions that take a constant and return the design with the constant added to all losses.
WITH_A_CONSTANT: dict[str, Callable[[int], Design]] = {
    "channel": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        epsilon=1,
        delta="0.01",
        loss=add_constant(LOSS_TABLE, c),
    ),
    "channel, zcdp": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        notion="zcdp",
        rho="0.5",
        loss=add_constant(LOSS_TABLE, c),
    ),
    "channel, worst": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        epsilon=1,
        prior="worst",
        loss=add_constant(LOSS_TABLE, c),
    ),
    "channel, blocks": lambda c: wb.design(
        "channel",
        answers=range(5),
        max_shift=1,
        epsilon=1,
        method="block",
        loss=add_constant(LOSS_TABLE, c),
    ),
    "labels": lambda c: wb.design(
        wb.Labels(range(5)),
        method="lp",
        neighbours="consecutive",
        epsilon=1,
        loss=add_constant(LOSS_TABLE, c),
    ),
    "noise": lambda c: wb.design(
        "noise",
        on="integers",
        epsilon=1,
        delta="0.01",
        loss=[loss + c for loss in NOISE_LOSSES],
    ),
    "modulo": lambda c: wb.design(
        "modulo",
        n=13,
        max_shift=2,
        epsilon=1,
        delta="0.01",
        loss=[loss + c for loss in MODULO_LOSSES],
    ),
    "modulo, pdp": lambda c: wb.design(
        "modulo",
        n=13,
        max_shift=2,
        epsilon=1,
        delta="0.05",
        notion="pdp",
        loss=[loss + c for loss in MODULO_LOSSES],
    ),
}


def add_constant(rows: list[list[int]], constant: int) -> list[list[int]]:
    """Return rows of losses with a constant added to each loss."""
    return [[value + constant for value in row] for row in rows]


@pytest.mark.parametrize("case", WITH_A_CONSTANT)
def test_a_constant_added_to_the_loss_changes_no_optimum(case: str) -> None:
    design_with_constant = WITH_A_CONSTANT[case]
    unshifted = design_with_constant(0)
    constants = [10**6] if "zcdp" in case else CONSTANTS  # The designs under zCDP are slow.
    for constant in constants:
        shifted = design_with_constant(constant)
        loss = float(shifted.details["loss"] - constant)
        assert loss == pytest.approx(unshifted.objective, rel=SOLVER_TOLERANCE)
        bound = float(Fraction(shifted.details["bound"]) - constant)
        # The bound of the shifted program is a double, so it is rounded relative to the constant.
        assert bound == pytest.approx(unshifted.bound, abs=1e-6 + constant * 1e-15)
        assert shifted.status == unshifted.status == "optimal"


# Functions that take the factor s of the unit. They return a question and the options of its
# formula. The losses of all cases are proportional to s².
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
    piece_counts, optima, prices = [], [], []
    for s in (Fraction(1), FACTORS[0], FACTORS[-1]):
        question, options = FORMULAS[case](s)
        options = {"loss": "squared", **options}
        formula = wb.formula(question, **options)
        design = wb.design(question, epsilon=1, **options)
        optimum, _ = formula(1)
        _, price = design.shadow_prices.epsilon
        piece_counts.append(len(formula.pieces))
        optima.append(float(optimum / s**2))
        prices.append(price / float(s) ** 2)
        assert design.objective / float(s) ** 2 == pytest.approx(optima[-1], rel=1e-6)
    assert piece_counts == [piece_counts[0]] * 3
    assert optima == pytest.approx([optima[0]] * 3, rel=1e-12)
    assert prices == pytest.approx([prices[0]] * 3, rel=1e-9)


def test_a_formula_refuses_losses_that_a_solver_cannot_distinguish() -> None:
    table = [[0, 1, Fraction(1, 10**12)], [1, 0, 1], [2, 1, 0]]
    with pytest.raises(
        wb.InvalidRequest, match=r"^loss must be of sizes that a solver can distinguish"
    ):
        wb.formula(wb.FiniteQuery("0..2", max_shift=1, prior="worst"), loss=table)


@pytest.mark.parametrize("factor", FACTORS)
def test_whether_other_mechanisms_are_optimal_does_not_depend_on_units(factor: Fraction) -> None:
    for loss in ("absolute", "squared"):
        design_in_unit, _ = make_channel_case(loss, last=5, epsilon=1)
        assert design_in_unit(factor).unique is True
        assert design_in_unit(Fraction(1)).unique is True


def test_shadow_prices_of_a_constraint_are_in_the_units_of_the_loss() -> None:
    def compute_unscaled_price(s: Fraction) -> float:
        """Return the price of the constraint M[0, 1] <= 1/2 in the unit s, divided by s²."""
        design = wb.design(
            "channel",
            answers=[s * i for i in range(5)],
            max_shift=s,
            loss="squared",
            epsilon=1,
            delta="0.01",
            constraints=[lambda M: [M[0, 1] <= 0.5]],
        )
        (constraint_prices,) = design.shadow_prices.constraints.values()
        binding_rows, _, price = constraint_prices
        assert binding_rows == 1
        return price / float(s) ** 2

    price_in_unit_1 = compute_unscaled_price(Fraction(1))
    assert compute_unscaled_price(Fraction(1, 10**5)) == pytest.approx(price_in_unit_1, rel=1e-6)
    assert compute_unscaled_price(Fraction(10**5)) == pytest.approx(price_in_unit_1, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute", "error-rate"])
def test_glop_solves_ordinary_counts(loss: str) -> None:
    """GLOP reports imprecise solutions if probabilities have the unit 2^-20 instead of 1."""
    pytest.importorskip("ortools")
    options = {"answers": "0..40", "max_shift": 1, "loss": loss, "epsilon": 1, "method": "program"}
    glop = wb.design("channel", solver="ortools:glop", **options)
    highs = wb.design("channel", solver="highs", **options)
    assert glop.solution.solver == "ortools:glop"
    assert glop.objective == pytest.approx(highs.objective, rel=1e-6)


def test_rows_in_tiny_units_are_multiplied_and_their_multipliers_converted_back() -> None:
    """min x subject to 1e-12 x >= 3e-12: the multiplier of the row is 1e12."""
    builder = EntrywiseProgram(1)
    builder.c[:] = 1.0
    builder.upper[:] = 10.0
    builder.add_row([0], [1.0], low=3.0, high=np.inf)
    program = builder.to_program("one row")
    data = program.template
    tiny_data = replace(data, A=data.A * 1e-12, row_lower=data.row_lower * 1e-12)
    solution = solve(replace(program, template=tiny_data))
    assert solution.x == pytest.approx([3.0])
    assert solution.row_dual == pytest.approx([1e12])
