"""wb.delta_frontier: the exact trade-off from Python, against designs at single deltas; refusals in one sentence."""

from __future__ import annotations

import hashlib
import json

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


def test_the_least_delta_is_the_frontier_read_backwards():
    question = wb.ModuloNoise(n=8, max_shift=3)
    pieces = wb.delta_frontier(question, epsilon=1.5)
    for error in (0.55, 0.3, 0.05, 0):
        least = wb.least_delta_at(pieces, error)
        made = wb.design(question, epsilon=1.5, minimise="delta", budget=error)
        assert least == pytest.approx(made.objective, abs=1e-8)
        assert wb.error_at(pieces, least) <= error + 1e-12
    assert wb.least_delta_at(pieces, 0.9) == 0
    late = wb.delta_frontier(question, epsilon=1.5, time_limit=1e-9)
    with pytest.raises(wb.NotProven, match=r"known to reach error 0\.3"):
        wb.least_delta_at(late, 0.3)
    larger = wb.ModuloNoise(n=29, max_shift=2)
    late = wb.delta_frontier(larger, epsilon=1, time_limit=1e-9)
    low, high = wb.least_delta_at(late, 0.5, interval=True)
    truth = wb.least_delta_at(wb.delta_frontier(larger, epsilon=1), 0.5)
    assert low - 1e-9 <= truth <= high + 1e-9
    with pytest.raises(wb.NotProven, match=r"not proven at error 0\.5") as caught:
        wb.least_delta_at(late, 0.5)
    assert (caught.value.bound, caught.value.incumbent) == (low, high)
    for error in ("x", None, True):
        with pytest.raises(wb.InvalidRequest, match=r"^error must be"):
            wb.least_delta_at(pieces, error)
    with pytest.raises(wb.InvalidRequest, match=r"^error must be one that"):
        wb.least_delta_at(wb.delta_frontier(question, epsilon=1.5, high=0.2), 0.1)


def test_a_store_goes_on_where_a_call_stopped(tmp_path, monkeypatch):
    from models.noise_levels import LevelSearch

    question, path = wb.ModuloNoise(n=29, max_shift=2), tmp_path / "frontier.json"
    whole = wb.delta_frontier(question, epsilon=1)
    real, windows = LevelSearch.prove, []

    def interrupted(self, low, high):
        windows.append(high)
        if len(windows) == 6:
            raise KeyboardInterrupt
        real(self, low, high)

    monkeypatch.setattr(LevelSearch, "prove", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wb.delta_frontier(question, epsilon=1, store=path)
    told = []
    again = wb.delta_frontier(question, epsilon="1", store=path, progress=lambda *state: told.append(state))
    assert windows[6] == windows[5]  # the window that was interrupted, none before it
    assert again == whole
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert told[-1] == (pytest.approx(1.0), len(whole))
    assert wb.delta_frontier(question, epsilon=1, store=path, high=0.5)[-1].delta_high == 0.5
    with pytest.raises(wb.InvalidRequest, match=r"^store must be of this question"):
        wb.delta_frontier(question, epsilon=2, store=path)
    with pytest.raises(wb.InvalidRequest, match=r"^store must be left out unless"):
        wb.delta_frontier(question, epsilon=1, cost="squared", store=path)
    kept = path.read_text()
    lower = json.loads(kept)
    lower["t"][3] -= 1e-12  # still falling: an error that nothing reaches
    for spoilt in ("", "[]", kept.replace("frontier 2", "frontier 1"), json.dumps(lower)):
        path.write_text(spoilt)
        with pytest.raises(wb.CorruptFile):
            wb.delta_frontier(question, epsilon=1, store=path)
    for name, value in (("proven", 2.0), ("s", [0.5, *lower["s"][1:]]), ("t", lower["t"][1:])):
        written = {key: part for key, part in (json.loads(kept) | {name: value}).items() if key != "sha256"}
        digest = hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()
        path.write_text(json.dumps(written | {"sha256": digest}))
        with pytest.raises(wb.CorruptFile, match="holds no staircase"):
            wb.delta_frontier(question, epsilon=1, store=path)
