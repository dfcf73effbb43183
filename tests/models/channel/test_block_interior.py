"""Tests of the interior-point method for channels, which has one block for each output.

The factors of the blocks are compared with dense linear algebra. The method is tested with isolated
inputs, user-defined rows, Ctrl-C and a time limit of 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from workbench.models.channel.block_factors import (
    AllPairsFactors,
    BandedOrder,
    BlockFactors,
    GraphFactors,
)
from workbench.models.channel.block_interior import BlockInteriorPoint, BlockPoint
from workbench.models.channel.block_parts import BlockProblem
from workbench.models.channel.scaled_cholesky import ScaledCholesky
from workbench.solvers.search import Deadline


def line_problem(k: int, prior: np.ndarray | None = None, ratio: float = 2.0) -> BlockProblem:
    """Return the problem of squared loss on the labels 0..k-1, with neighbours one apart.

    ratio: e^ε. prior: None for the worst label.
    """
    labels = np.arange(k)
    # The pairs (first, second) are compared: M[first] <= e^ε M[second].
    first = np.append(labels[:-1], labels[1:])
    second = np.append(labels[1:], labels[:-1])
    return BlockProblem(
        (labels[:, None] - labels) ** 2.0, prior, first, second, ratios=np.full(first.size, ratio)
    )


def grid_order(side: int) -> BandedOrder:
    """Return the order of the labels of a square grid, with horizontal and vertical neighbours."""
    k = side * side
    pairs = [(i, i + 1) for i in range(k) if i % side < side - 1]
    pairs += [(i, i + side) for i in range(k - side)]
    first, second = np.array(pairs + [(j, i) for i, j in pairs]).T
    return BandedOrder(k, first, second, np.full(first.size, 1.7))


def test_a_system_with_a_negative_diagonal_is_refused_without_a_warning() -> None:
    """Rounding can make the diagonal negative if a user-defined row has entries of both signs."""
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        ScaledCholesky(np.diag([1.0, -1e-20, 0.0]), shifts=[0.0], turns=0)


def dense_order(k: int) -> BandedOrder:
    """Return the order of k labels of which all pairs are neighbours, with different ratios."""
    first, second = np.array([(i, j) for i in range(k) for j in range(k) if i != j]).T
    return BandedOrder(k, first, second, 1.5 + 0.1 * np.abs(first - second))


@pytest.mark.parametrize(
    "factors",
    [AllPairsFactors(k=7, ratio=2.5), GraphFactors(grid_order(4)), GraphFactors(dense_order(60))],
    ids=["all pairs", "grid", "dense"],
)
def test_factors_equal_the_inverses_of_dense_matrices(factors: BlockFactors) -> None:
    rng = np.random.default_rng(5)
    outputs = 3
    x = factors.interior_start(np.array([[0.3]]), outputs) * rng.uniform(0.9, 1.1, outputs)
    w = factors.apply_rows(x)
    z = rng.uniform(0.5, 2, w.shape)
    factors.factorize(x, w, z)
    matrix = np.column_stack(
        [factors.apply_rows(unit[:, None])[:, 0] for unit in np.eye(factors.n)]
    )
    inverses = [
        np.linalg.inv(matrix.T @ np.diag(z[:, o] / w[:, o]) @ matrix) for o in range(outputs)
    ]
    label_inverses = [inverse[: factors.k, : factors.k] for inverse in inverses]
    np.testing.assert_allclose(factors.schur_complement(), sum(label_inverses), rtol=1e-9)
    weights = rng.uniform(0, 2, (factors.k + 2, factors.k, outputs))
    # There is one further sum for each input, one over all inputs, and one of a single output.
    weights[: factors.k] *= np.eye(factors.k)[:, :, None]
    weights[-1, :, 1:] = 0
    factors.extra_sums = sp.csr_array(weights.reshape(factors.k + 2, -1))
    sum_rows = [np.vstack([np.eye(factors.k), weights[:, :, o]]) for o in range(outputs)]
    expected = sum(
        coefficients @ inverse @ coefficients.T
        for coefficients, inverse in zip(sum_rows, label_inverses, strict=True)
    )
    np.testing.assert_allclose(factors.schur_complement(), expected, rtol=1e-9, atol=1e-12)
    right = rng.normal(size=(factors.n, outputs))
    solutions = np.column_stack([inverses[o] @ right[:, o] for o in range(outputs)])
    np.testing.assert_allclose(factors.solve(right), solutions, rtol=1e-8, atol=1e-10)


def test_a_solution_keeps_digits_that_a_matrix_of_floats_loses() -> None:
    """A privacy row of two neighbours has the slack 1e-13.

    With rows a = (-1, 2) and b = (2, -1) the corner of the inverse is
    (4 D1 + D2) / (D1 D2 det(a, b)²). The sum of the matrices D1 aa' and D2 bb' has lost it.
    """
    ratio = 2.0
    slack = 1e-13
    order = BandedOrder(2, np.array([0, 1]), np.array([1, 0]), np.full(2, ratio))
    factors = GraphFactors(order)
    x = np.array([[ratio - slack], [1.0]])
    w = factors.apply_rows(x)
    z = np.array([[1.0], [1e-13]])
    factors.factorize(x, w, z)
    d1, d2 = (z / w)[:, 0]
    corner = factors.solve(np.array([[1.0], [0.0]]))[0, 0]
    assert corner == pytest.approx((4 * d1 + d2) / (9 * d1 * d2), rel=1e-2)


def solve_blocks(blocks: BlockProblem, gap: float = 1e-9) -> BlockPoint:
    """Run the interior-point method up to a relative gap."""
    return BlockInteriorPoint(blocks).solve(gap)


def test_the_answer_is_a_private_channel_with_a_tight_bound() -> None:
    blocks = line_problem(12, np.full(12, 1 / 12))
    point = solve_blocks(blocks)
    assert point.stop_reason == "optimal"
    assert blocks.first is not None
    assert blocks.second is not None
    assert (point.masses[blocks.first] <= 2 * point.masses[blocks.second] + 1e-12).all()
    np.testing.assert_allclose(point.masses.sum(axis=1), 1, atol=1e-9)
    expected_loss = (point.masses * blocks.losses).sum() / 12
    assert point.objective == pytest.approx(expected_loss, rel=1e-9)
    assert 0 <= point.objective - point.bound <= 1e-9 * point.objective


def test_an_input_without_neighbours_gets_its_own_output() -> None:
    first, second = np.array([0, 1]), np.array([1, 0])
    losses = 1.0 - np.eye(3)
    point = solve_blocks(
        BlockProblem(losses, np.full(3, 1 / 3), first, second, ratios=np.full(2, 3.0))
    )
    # The two neighbours use randomized response, the third input has loss 0.
    assert point.objective == pytest.approx(1 / 6, rel=1e-6)
    assert point.masses[2, 2] == pytest.approx(1)


def test_without_a_prior_the_largest_loss_is_minimised() -> None:
    point = solve_blocks(line_problem(9))
    assert point.weights is not None
    assert point.weights.sum() == pytest.approx(1)
    losses_by_label = (point.masses * line_problem(9).losses).sum(axis=1)
    assert losses_by_label.max() == pytest.approx(point.objective, rel=1e-8)


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_user_defined_rows_hold_and_raise_the_bound(delta: float) -> None:
    """The rows are M[0,0] >= 0.5, and an equation: the mean of M[y,3] over y is 0.15."""
    # The masses are numbered row by row, with 5 outputs: M[0,0] is 0, and M[y,3] is 5 y + 3.
    coefficients = [-1, *[0.2] * 5]
    row_numbers = [0, *[1] * 5]
    mass_numbers = [0, *range(3, 25, 5)]
    entries = (np.array(coefficients), (row_numbers, mass_numbers))
    blocks = replace(
        line_problem(5, np.full(5, 0.2)),
        delta=delta,
        extra_rows=sp.csr_array(entries, shape=(2, 25)),
        is_equation=np.array([False, True]),
        extra_limits=np.array([-0.5, 0.15]),
    )
    point = solve_blocks(blocks)
    assert point.stop_reason == "optimal"
    assert point.masses[0, 0] >= 0.5 - 1e-9
    assert point.masses[:, 3].mean() == pytest.approx(0.15, abs=1e-9)
    assert point.extra_multipliers[0] < 0
    assert 0 <= point.objective - point.bound <= 1e-9 * point.objective
    free_blocks = replace(
        blocks, extra_rows=None, extra_limits=np.zeros(0), is_equation=np.zeros(0, bool)
    )
    assert solve_blocks(free_blocks).objective < point.bound


def test_a_deadline_stops_the_method() -> None:
    point = BlockInteriorPoint(line_problem(20, np.full(20, 0.05))).solve(1e-9, Deadline(0))
    assert point.stop_reason == "time limit"


def test_an_interrupt_returns_the_best_point() -> None:
    def stop(iteration: int, objective: float, bound: float) -> None:
        """Check the progress, and press Ctrl-C in the fourth iteration."""
        assert objective >= bound
        if iteration == 4:
            raise KeyboardInterrupt

    point = BlockInteriorPoint(line_problem(20, np.full(20, 0.05)), stop).solve(1e-9)
    assert point.stop_reason == "interrupted"
    assert point.iterations == 4
    np.testing.assert_allclose(point.masses.sum(axis=1), 1, atol=1e-9)
