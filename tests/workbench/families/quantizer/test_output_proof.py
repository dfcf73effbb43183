"""Proofs over all outputs: the dual's own arithmetic, weak duality, no false proof, interrupts and files."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from models.output_dual import OutputDual, largest_ratio
from models.quantizer import usual_reach
from workbench.families.quantizer.laws import LawQuestion, exact_quantizer
from workbench.families.quantizer.output_proof import OutputProof, prove_outputs
from workbench.families.quantizer.output_search import optimised_bins

ONE = Fraction(1)
MIDDLES = -1 + 2 / 7 * (np.arange(7) + 0.5)


def random_dual(seed: int, size: float = 0.3) -> OutputDual:
    return OutputDual.of(MIDDLES, np.random.default_rng(seed).normal(0, size, 18))


def test_the_price_of_an_output_is_its_integral():
    dual, ratio = random_dual(0), largest_ratio(1.3)
    outputs = np.array([-3.0, -1.0, -0.31, 0.05, MIDDLES[2], 0.7, 1.0, 2.2])
    x = (np.arange(1_000_000) + 0.5) / 500_000 - 1
    alpha, beta = np.interp(x, dual.nodes, dual.alpha), np.interp(x, dual.nodes, dual.beta)
    for output, price in zip(outputs, dual.price(outputs, ratio), strict=True):
        g = np.abs(output - x) / 2 - alpha - beta * output
        ends = -dual.ends[0] - dual.ends[1] * output
        expected = 2 * np.where(g > 0, g, ratio * g).mean() + np.where(ends > 0, ends, ratio * ends).sum()
        assert price == pytest.approx(expected, abs=1e-9)
    total = 2 * (alpha + x * beta).mean() + dual.ends[0].sum() + dual.ends[1, 1] - dual.ends[1, 0]
    assert dual.total == pytest.approx(total, abs=1e-9)


def test_between_points_of_an_interval_the_price_stays_above_its_bound():
    search = OutputProof(3, 1.0, 4.0)
    places, dips = search.places(((-4.0, -1.5), (-1.3, 0.9), (0.2, 0.21)))
    assert {-1.0, -1.3, 0.9} <= set(places[:, 1])
    for seed in range(20):
        dual = random_dual(seed)

        def price(at: np.ndarray, dual: OutputDual = dual) -> np.ndarray:
            return dual.price(at.ravel(), search.ratio).reshape(at.shape)

        h = price(places)
        low = np.minimum(h[:-1], h[1:]) - dips
        for share in (0.1, 0.5, 0.8):
            assert (price(places[:-1] + share * np.diff(places, axis=0)) >= low - 1e-12).all()


def test_halves_of_a_box_leave_no_output_out():
    search = OutputProof(2, 1.0, 5.0)
    ((_, box),) = search.open
    outputs = np.random.default_rng(0).uniform(*np.array(box).T, (2000, 2))
    outputs = outputs[outputs.sum(axis=1) > 0]
    for _ in range(40):
        search.advance(10.0)  # more than any error: nothing closes
        assert len(search.open) > 1
    held = np.zeros(len(outputs), dtype=bool)
    for _, box in search.open:
        low, high = np.array(box).T
        held |= ((outputs >= low) & (outputs <= high)).all(axis=1)
    assert held.all()


def test_a_lowered_dual_bounds_as_well():
    dual, ratio, at = random_dual(1), largest_ratio(1.0), np.linspace(-3.0, 3.0, 61)
    lowered, c = dual.lowered(0.02), 0.02
    assert lowered.total == pytest.approx(dual.total - 2 * c, abs=1e-12)
    gained = lowered.price(at, ratio) - dual.price(at, ratio)
    assert ((gained >= 2 * c - 1e-12) & (gained <= 2 * ratio * c + 1e-12)).all()


def test_any_dual_is_below_every_quantizer():
    outputs = tuple(Fraction(b) for b in ("-2.5", "-0.3", "0.6", "3"))
    best = exact_quantizer(outputs, LawQuestion(ONE), knots=21)
    assert best is not None
    shown = np.array([float(b) for b in outputs])
    for seed, size in itertools.product(range(30), (0.02, 0.3)):
        dual = random_dual(seed, size)
        assert dual.total + min(0.0, dual.price(shown, largest_ratio(1.0)).min()) <= best.objective


@pytest.mark.parametrize(("m", "epsilon"), [(2, 1.0), (3, 0.5), (4, 0.5)])
def test_the_best_outputs_are_proven(m: int, epsilon: float):
    best = optimised_bins(m, LawQuestion(Fraction(epsilon)), starts=1)
    assert best is not None
    reach = usual_reach(epsilon)
    proven = prove_outputs(m, epsilon, reach, best.objective)
    assert proven.closed
    assert best.objective * (1 - 5e-4) <= proven.bound <= best.objective
    # a value that no outputs reach is never proven
    false = prove_outputs(m, epsilon, reach, best.objective * 1.01, seconds=0.5)
    assert not false.closed
    assert false.bound <= best.objective


def test_an_interrupt_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, best = tmp_path / "proof.json", 3.6843
    whole = prove_outputs(3, 0.5, usual_reach(0.5), best)
    advance, calls = OutputProof.advance, itertools.count()

    def interrupted(self: OutputProof, target: float) -> None:
        if next(calls) == 20:
            monkeypatch.setattr(OutputProof, "_bounded", stop)
        advance(self, target)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    bounded = OutputProof._bounded
    monkeypatch.setattr(OutputProof, "advance", interrupted)
    first = prove_outputs(3, 0.5, usual_reach(0.5), best, file=file)
    assert first.stopped
    assert not first.closed
    assert -math.inf < first.bound < whole.bound
    monkeypatch.setattr(OutputProof, "advance", advance)
    monkeypatch.setattr(OutputProof, "_bounded", bounded)
    kept = json.loads(file.read_text())["proof"]
    search = OutputProof(3, 0.5, usual_reach(0.5))
    search.restore(kept)
    assert search.bound == first.bound
    assert sorted(search.to_dict()["open"]) == sorted(kept["open"])
    rest = prove_outputs(3, 0.5, usual_reach(0.5), best, file=file)
    assert rest.closed
    assert rest.bound == whole.bound
    assert rest.boxes > first.boxes
    again = prove_outputs(3, 0.5, usual_reach(0.5), best, file=file)
    assert (again.boxes, again.bound) == (rest.boxes, rest.bound)  # nothing left to do


def test_files_of_other_proofs_and_damaged_ones_are_refused(tmp_path: Path):
    file = tmp_path / "proof.json"
    prove_outputs(2, 1.0, usual_reach(1.0), 2.1, file=file, seconds=0.2)
    with pytest.raises(wb.CorruptFile, match="another request"):
        prove_outputs(2, 1.5, usual_reach(1.5), 2.1, file=file)
    text = file.read_text()
    for damaged in (text.replace('"closed": ', '"closed": 1'), "{}", "[]", '{"proof": 3, "sha256": 4}', "not JSON"):
        file.write_text(damaged)
        with pytest.raises(wb.CorruptFile):
            prove_outputs(2, 1.0, usual_reach(1.0), 2.1, file=file)


def test_a_design_says_what_is_proven(tmp_path: Path):
    made = wb.design(wb.Quantization(levels=3, c=2), epsilon="0.5", prove=True, starts=1)
    assert made.bound is not None
    assert made.objective * (1 - 6e-4) <= made.bound <= made.objective
    assert any("every unbiased private mechanism on real inputs with at most 3 outputs" in word for word in made.words)
    file = tmp_path / "proof.json"
    short = wb.design(
        wb.Quantization(levels=4), epsilon=1, prove=True, proof_time="0.001", starts=1, proof_file=str(file)
    )
    assert any("can go on" in word for word in short.words)
    assert short.bound is not None
    assert short.bound <= made.objective
    again = wb.design(
        wb.Quantization(levels=4), epsilon=1, prove=True, proof_time="0.001", starts=1, proof_file=str(file)
    )
    assert ["from a file, not proven" in " ".join(design.words) for design in (short, again)] == [False, True]


@pytest.mark.parametrize(
    ("question", "more"),
    [
        ({"levels": 5}, {}),
        ({"bins": "-3,3"}, {}),
        ({"levels": 4}, {"method": "mvu"}),
        ({"levels": 4}, {"loss": "squared"}),
        ({"levels": 4}, {"metric": "absolute"}),
        ({"levels": 4, "density": "normal:0.5,0.1"}, {}),
    ],
)
def test_what_cannot_be_proven_is_refused(question: dict, more: dict):
    with pytest.raises(wb.InvalidRequest, match=r"with prove|prove must be left out"):
        wb.design(wb.Quantization(**question), epsilon=1, prove=True, **more)
    with pytest.raises(wb.InvalidRequest, match="proof_file must be left out"):
        wb.design(wb.Quantization(levels=4), epsilon=1, proof_file="x.json")


def test_the_first_box_holds_the_least_reach_and_the_reach():
    for epsilon in (0.1, 1.0, 10.0, 30.0):
        ((_, box),) = OutputProof(4, epsilon, usual_reach(epsilon)).open
        assert box[0][1] >= -(1 + 2 / math.expm1(epsilon)) * (1 + 1e-15)
        assert box[3][1] >= usual_reach(epsilon)
