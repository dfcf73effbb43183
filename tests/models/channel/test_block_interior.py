"""Tests of the block interior point method.

The blocks are compared with dense linear algebra. The method is tried with isolated inputs, Ctrl-C
and no time.
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


def line(k: int, prior: np.ndarray | None = None, ratio: float = 2.0) -> BlockProblem:
    """Squared loss, neighbours one apart."""
    labels = np.arange(k)
    first, second = np.append(labels[:-1], labels[1:]), np.append(labels[1:], labels[:-1])
    return BlockProblem(
        (labels[:, None] - labels) ** 2.0, prior, first, second, np.full(first.size, ratio)
    )


def grid_order(side: int) -> BandedOrder:
    k = side * side
    pairs = [(i, i + 1) for i in range(k) if i % side < side - 1] + [
        (i, i + side) for i in range(k - side)
    ]
    first, second = np.array(pairs + [(j, i) for i, j in pairs]).T
    return BandedOrder(k, first, second, np.full(first.size, 1.7))


def test_a_system_that_lost_its_diagonal_to_rounding_is_refused_without_a_warning() -> None:
    """User-defined rows with coefficients of both signs can give a sum a variance below 0."""
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        ScaledCholesky(np.diag([1.0, -1e-20, 0.0]), [0.0], 0)


def dense_order(k: int) -> BandedOrder:
    first, second = np.array([(i, j) for i in range(k) for j in range(k) if i != j]).T
    return BandedOrder(k, first, second, 1.5 + 0.1 * np.abs(first - second))


@pytest.mark.parametrize(
    "factors",
    [AllPairsFactors(7, 2.5), GraphFactors(grid_order(4)), GraphFactors(dense_order(60))],
    ids=["all pairs", "grid", "dense"],
)
def test_inverses_are_those_of_dense_matrices(factors: BlockFactors) -> None:
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
    labels = [inverse[: factors.k, : factors.k] for inverse in inverses]
    np.testing.assert_allclose(factors.schur_complement(), sum(labels), rtol=1e-9)
    weights = rng.uniform(0, 2, (factors.k + 2, factors.k, outputs))
    weights[: factors.k] *= np.eye(factors.k)[
        :, :, None
    ]  # The sums are one for each input, one over all inputs, and one of a single output.
    weights[-1, :, 1:] = 0
    factors.extra_sums = sp.csr_array(weights.reshape(factors.k + 2, -1))
    sum_rows = [np.vstack([np.eye(factors.k), weights[:, :, o]]) for o in range(outputs)]
    expected = sum(each @ inverse @ each.T for each, inverse in zip(sum_rows, labels, strict=True))
    np.testing.assert_allclose(factors.schur_complement(), expected, rtol=1e-9, atol=1e-12)
    right = rng.normal(size=(factors.n, outputs))
    solved = np.column_stack([inverses[o] @ right[:, o] for o in range(outputs)])
    np.testing.assert_allclose(factors.solve(right), solved, rtol=1e-8, atol=1e-10)


def test_a_block_keeps_its_small_eigenvalue_where_floats_of_the_matrix_lose_it() -> None:
    """One ratio of two neighbours is tight to 1e-13.

    With rows a = (-1, 2) and b = (2, -1) the corner of the inverse is
    (4 D1 + D2) / (D1 D2 det(a, b)²). The sum of the matrices D1 aa' and D2 bb' has lost it.
    """
    ratio, tight = 2.0, 1e-13
    order = BandedOrder(2, np.array([0, 1]), np.array([1, 0]), np.full(2, ratio))
    factors = GraphFactors(order)
    x = np.array([[ratio - tight], [1.0]])
    w, z = factors.apply_rows(x), np.array([[1.0], [1e-13]])
    factors.factorize(x, w, z)
    high, low = (z / w)[:, 0]
    assert factors.solve(np.array([[1.0], [0.0]]))[0, 0] == pytest.approx(
        (4 * high + low) / (9 * high * low), rel=1e-2
    )


def solved(blocks: BlockProblem, gap: float = 1e-9) -> BlockPoint:
    return BlockInteriorPoint(blocks).solve(gap)


def test_the_point_is_a_private_channel_at_its_bound() -> None:
    blocks = line(12, np.full(12, 1 / 12))
    point = solved(blocks)
    assert point.stop_reason == "optimal"
    assert blocks.first is not None
    assert blocks.second is not None
    assert (point.masses[blocks.first] <= 2 * point.masses[blocks.second] + 1e-12).all()
    np.testing.assert_allclose(point.masses.sum(axis=1), 1, atol=1e-9)
    cost = (point.masses * blocks.losses).sum() / 12
    assert point.objective == pytest.approx(cost, rel=1e-9)
    assert 0 <= point.objective - point.bound <= 1e-9 * point.objective


def test_an_input_without_neighbours_gets_its_own_output() -> None:
    first, second = np.array([0, 1]), np.array([1, 0])
    losses = 1.0 - np.eye(3)
    point = solved(BlockProblem(losses, np.full(3, 1 / 3), first, second, np.full(2, 3.0)))
    assert point.objective == pytest.approx(
        1 / 6, rel=1e-6
    )  # The two neighbours use randomized response, the third input has loss 0.
    assert point.masses[2, 2] == pytest.approx(1)


def test_the_worst_input_counts_with_weights() -> None:
    point = solved(line(9))
    assert point.weights is not None
    assert point.weights.sum() == pytest.approx(1)
    assert (point.masses * line(9).losses).sum(axis=1).max() == pytest.approx(
        point.objective, rel=1e-8
    )


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_user_rows_hold_with_their_multipliers(delta: float) -> None:
    """M[0,0] >= .5, and an equation of an output: the bound counts both."""
    entries = np.array([-1, *[0.2] * 5]), ([0] + [1] * 5, [0, *range(3, 25, 5)])
    blocks = replace(
        line(5, np.full(5, 0.2)),
        delta=delta,
        extra_rows=sp.csr_array(entries, shape=(2, 25)),
        is_equation=np.array([False, True]),
        extra_limits=np.array([-0.5, 0.15]),
    )
    point = solved(blocks)
    assert point.stop_reason == "optimal"
    assert point.masses[0, 0] >= 0.5 - 1e-9
    assert point.masses[:, 3].mean() == pytest.approx(0.15, abs=1e-9)
    assert point.extra_multipliers[0] < 0
    assert 0 <= point.objective - point.bound <= 1e-9 * point.objective
    assert (
        solved(
            replace(
                blocks, extra_rows=None, extra_limits=np.zeros(0), is_equation=np.zeros(0, bool)
            )
        ).objective
        < point.bound
    )


def test_a_deadline_and_an_interrupt_return_the_best_point() -> None:
    point = BlockInteriorPoint(line(20, np.full(20, 0.05))).solve(1e-9, Deadline(0))
    assert point.stop_reason == "time limit"

    def stop(iteration: int, objective: float, bound: float) -> None:
        assert objective >= bound
        if iteration == 4:
            raise KeyboardInterrupt

    point = BlockInteriorPoint(line(20, np.full(20, 0.05)), stop).solve(1e-9)
    assert point.stop_reason == "interrupted"
    assert point.iterations == 4
    np.testing.assert_allclose(point.masses.sum(axis=1), 1, atol=1e-9)
