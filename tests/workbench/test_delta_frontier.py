"""wb.delta_frontier: the exact trade-off from Python, against designs at single deltas; refusals in one sentence."""

from __future__ import annotations

import pytest

import workbench as wb


@pytest.mark.parametrize(
    ("question", "epsilon", "cost"),
    [
        (wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), 1.5, "error-rate"),
        (wb.ModuloNoise(n=6, shifts=[1, 2]), {1: 0.5, 2: 1}, "squared"),
        (wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)]), 1, "error-rate"),
        (wb.ModuloNoise(n=6, shifts=[4], directed=True), 5, "error-rate"),
        (wb.ModuloNoise(n=4, shifts=[2], directed=True), "1.187006032252775", "error-rate"),
    ],
)
def test_it_is_the_value_of_the_designs(question, epsilon, cost):
    pieces = wb.delta_frontier(question, epsilon=epsilon, cost=cost)
    assert all(piece.proven for piece in pieces)
    for delta in (0, 1e-6, 0.003, 0.0123, 0.1212, 0.4, 0.77, 1):
        made = wb.design(question, epsilon=epsilon, delta=delta, cost=cost)
        assert wb.error_at(pieces, delta) == pytest.approx(made.objective, abs=2e-8 * max(1, made.objective))


def test_refusals():
    question = wb.ModuloNoise(n=4, shifts=[1])
    for name, values in {
        "epsilon": (0, -1, "abc", None, [1], True), "cost": ("mse", "worst-squared", None, 3),
        "high": (0, 2, -1, "abc", None), "solver": (None, 3), "time_limit": (0, -1, "abc", True),
        "question": (None, 3, "x"),
    }.items():  # fmt: skip
        for value in values:
            request = {"question": question, "epsilon": 1, name: value}
            with pytest.raises(wb.InvalidRequest, match=f"^{name} must be"):
                wb.delta_frontier(request.pop("question"), **request)
    with pytest.raises(wb.InvalidRequest, match=r"^solver must give duals"):
        wb.delta_frontier(question, epsilon=1, solver="scip")
    pieces = wb.delta_frontier(question, epsilon=1, high=0.2)
    for delta in (0.3, -1, None, "x"):
        with pytest.raises(wb.InvalidRequest, match=r"^delta must be"):
            wb.error_at(pieces, delta)
    with pytest.raises(wb.InvalidRequest, match=r"^delta must be within"):
        wb.error_at([], 0.1)


def test_an_unproven_piece_is_an_interval():
    question = wb.ModuloNoise(n=8, max_shift=3)
    late = wb.delta_frontier(question, epsilon=1.5, time_limit=1e-9)
    low, high = wb.error_at(late, 0.1, interval=True)
    truth = wb.error_at(wb.delta_frontier(question, epsilon=1.5, high=0.2), 0.1)
    assert low < high
    assert low - 1e-9 <= truth <= high + 1e-9
    with pytest.raises(wb.NotProven, match=r"not proven at delta = 0\.1") as caught:
        wb.error_at(late, 0.1)
    assert (caught.value.bound, caught.value.incumbent) == (low, high)


def test_progress_is_told():
    told = []
    wb.delta_frontier(wb.ModuloNoise(n=5, max_shift=1), epsilon=1, progress=lambda *state: told.append(state))
    assert told
    assert all(0 <= delta <= 1 for delta, _ in told)
