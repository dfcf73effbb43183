"""Test the comparison of solvers on the program of a request, such as a design of modulo noise.

A family is a kind of question with its options, for example "modulo".
"""

from __future__ import annotations

import pytest

import workbench as wb


def test_a_family_is_compared_by_its_name() -> None:
    by_name = wb.compare("modulo", "highs,ortools:glop", n=6, max_shift=2, epsilon=1)
    by_question = wb.compare(wb.ModuloNoise(n=6, max_shift=2), "highs,ortools:glop", epsilon=1)
    assert [(row["solver"], row["status"], row["objective"]) for row in by_name] == [
        (row["solver"], row["status"], row["objective"]) for row in by_question
    ]


def test_a_family_that_solves_no_program_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match=r"of a family that solves programs\. Got laplace"):
        wb.compare("laplace", bits=4, epsilon=1)
