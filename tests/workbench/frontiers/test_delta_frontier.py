"""delta_frontier: the exact trade-off from Python, against designs at single deltas; refusals in one sentence."""

from __future__ import annotations

import pytest

import workbench as wb
from workbench.families.modulo.delta_frontier import delta_frontier


@pytest.mark.parametrize(
    ("question", "epsilon", "loss"),
    [
        (wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), 1.5, "error-rate"),
        (wb.ModuloNoise(n=6, shifts=[1, 2]), {1: 0.5, 2: 1}, "squared"),
        (wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)]), 1, "error-rate"),
        (wb.ModuloNoise(n=6, shifts=[4], directed=True), 5, "error-rate"),
        (wb.ModuloNoise(n=4, shifts=[2], directed=True), "1.187006032252775", "error-rate"),
    ],
)
def test_it_is_the_value_of_the_designs(question, epsilon, loss):
    pieces = delta_frontier(question, epsilon=epsilon, loss=loss)
    assert all(piece.proven for piece in pieces)
    for delta in (0, 1e-6, 0.003, 0.0123, 0.1212, 0.4, 0.77, 1):
        made = wb.design(question, notion="pdp", epsilon=epsilon, delta=delta, loss=loss)
        assert pieces.error_at(delta) == pytest.approx(made.objective, abs=2e-8 * max(1, made.objective))


def test_refusals():
    question = wb.ModuloNoise(n=4, shifts=[1])
    for name, values in {
        "epsilon": (0, -1, "abc", None, [1], True),
        "loss": ("mse", "worst-squared", None, 3),
        "high": (0, 2, -1, "abc", None),
        "solver": (None, 3),
        "time_limit": (0, -1, "abc", True),
        "question": (None, 3, "x"),
    }.items():
        for value in values:
            request = {"question": question, "epsilon": 1, name: value}
            with pytest.raises(wb.InvalidRequest, match=f"^{name} must be"):
                delta_frontier(request.pop("question"), **request)
    with pytest.raises(wb.InvalidRequest, match=r"^solver must give duals"):
        delta_frontier(question, epsilon=1, solver="scip")
    pieces = delta_frontier(question, epsilon=1, high=0.2)
    for delta in (0.3, -1, None, "x"):
        with pytest.raises(wb.InvalidRequest, match=r"^delta must be"):
            pieces.error_at(delta)


def test_an_unproven_piece_is_an_interval():
    question = wb.ModuloNoise(n=8, max_shift=3)
    late = delta_frontier(question, epsilon=1.5, time_limit=1e-9)
    low, high = late.error_interval(0.1)
    truth = delta_frontier(question, epsilon=1.5, high=0.2).error_at(0.1)
    assert low < high
    assert low - 1e-9 <= truth <= high + 1e-9
    with pytest.raises(wb.NotProven, match=r"not proven at delta = 0\.1") as caught:
        late.error_at(0.1)
    assert (caught.value.bound, caught.value.incumbent) == (low, high)


def test_progress_is_told():
    told = []
    delta_frontier(wb.ModuloNoise(n=5, max_shift=1), epsilon=1, progress=lambda *state: told.append(state))
    assert told
    assert all(0 <= delta <= 1 for delta, _ in told)


def test_the_least_delta_is_the_frontier_read_backwards():
    question = wb.ModuloNoise(n=8, max_shift=3)
    pieces = delta_frontier(question, epsilon=1.5)
    for error in (0.55, 0.3, 0.05, 0):
        least = pieces.least_delta_at(error)
        made = wb.design(question, notion="pdp", epsilon=1.5, minimise="delta", max_loss=error)
        assert least == pytest.approx(made.objective, abs=1e-8)
        assert pieces.error_at(least) <= error + 1e-12
    assert pieces.least_delta_at(0.9) == 0
    late = delta_frontier(question, epsilon=1.5, time_limit=1e-9)
    with pytest.raises(wb.NotProven, match=r"(known to reach|not proven at) error 0\.3"):
        late.least_delta_at(0.3)
    larger = wb.ModuloNoise(n=29, max_shift=2)
    late = delta_frontier(larger, epsilon=1, time_limit=1e-9)
    low, high = late.least_delta_interval(0.5)
    truth = delta_frontier(larger, epsilon=1).least_delta_at(0.5)
    assert low - 1e-9 <= truth <= high + 1e-9
    with pytest.raises(wb.NotProven, match=r"not proven at error 0\.5") as caught:
        late.least_delta_at(0.5)
    assert (caught.value.bound, caught.value.incumbent) == (low, high)
    for error in ("x", None, True):
        with pytest.raises(wb.InvalidRequest, match=r"^error must be"):
            pieces.least_delta_at(error)
    with pytest.raises(wb.InvalidRequest, match=r"^error must be one that"):
        delta_frontier(question, epsilon=1.5, high=0.2).least_delta_at(0.1)


def test_nothing_is_read_from_a_file(tmp_path):
    """A store of stairs could be forged into pieces that call themselves proven: all is proven in the call."""
    with pytest.raises(TypeError, match="store"):
        delta_frontier(wb.ModuloNoise(n=29, max_shift=2), epsilon=1, store=tmp_path / "frontier.json")
