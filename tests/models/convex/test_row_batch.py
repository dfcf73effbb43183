"""A batch adds rows and columns to a live program as the whole program states them."""

from __future__ import annotations

import numpy as np

from workbench.models import statement
from workbench.models.convex.tangent_program import RowBatch
from workbench.solvers.growing import GrowingProgram


def make_batch() -> tuple[GrowingProgram, RowBatch]:
    """Make a batch for: minimise -x_0 - x_1 with x_0 + x_1 <= 9. Its row has the number 0."""
    x = statement.Variable(2, "x", (0.0, np.inf))
    ones = np.ones(2)
    problem = statement.Problem(-ones @ x, [ones @ x <= 9], [x])
    growing = GrowingProgram(problem.to_program("two numbers", 1.0))
    return growing, RowBatch(growing)


def test_columns_may_be_added_to_old_and_to_new_rows():
    growing, batch = make_batch()
    sum_row = batch.add_rows(1, 4.0)
    new_columns = batch.add_columns(sum_row, 2, 3.0)
    old_columns = batch.add_columns(0, 1, 5.0)
    tangent_row = batch.add_rows(1, 0.0)
    batch.add_coefficients(np.array([2.0, -1.0]), np.full(2, tangent_row), np.array([0, 2]))
    batch.flush()
    assert (sum_row, tangent_row) == (1, 2)
    assert [*new_columns, *old_columns] == [2, 3, 4]
    template = growing.program.template
    assert template.A.toarray().tolist() == [[1, 1, 0, 0, 1], [0, 0, 1, 1, 0], [2, 0, -1, 0, 0]]
    assert template.row_upper.tolist() == [9, 4, 0]
    assert template.upper[2:].tolist() == [3, 3, 5]


def test_the_live_program_has_the_rows_of_a_batch():
    growing, batch = make_batch()
    sum_row = batch.add_rows(1, 4.0)
    t = batch.add_columns(sum_row, 1, 3.0)
    rows = sum_row + np.arange(1, 3)
    batch.add_rows(2, 0.0)
    # x_0 <= t <= 3 and x_1 <= t.
    batch.add_coefficients(np.ones(2), rows, np.arange(2))
    batch.add_coefficients(-np.ones(2), rows, np.repeat(t, 2))
    batch.flush()
    assert growing.solve().value == -6


def test_an_empty_batch_changes_nothing():
    growing, batch = make_batch()
    batch.flush()
    assert (growing.rows, growing.width) == (1, 2)
