"""Test exact integers of dyadic quantized Laplace noise: law, draws, proof, both checkers.

At a level T with the step δ, a number x is encoded as M = ⌊y⌋ + B + K for y = εx/δ - U. B is 1 with
the probability y - ⌊y⌋, else 0. The integer noise K has Pr[K = k] ∝ a_|k|, with the ratios
s = a_0 / a_1 and q = a_(k+2) / a_k. The decoder knows T and the shared number U.
"""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench.errors import CorruptFile, InvalidRequest, NotCertified
from workbench.exact.random_source import Source
from workbench.mechanisms.dyadic_laplace import exact_integers
from workbench.mechanisms.dyadic_laplace.dyadic_law import component
from workbench.mechanisms.dyadic_laplace.exact_integers import (
    DyadicIntegers,
    draw_geometric,
    encode_exactly,
)
from workbench.mechanisms.dyadic_laplace.randomness import SharedStream, symmetric_uniform
from workbench.privacy.loading import read_mechanism_file

CHECKER = Path(__file__).resolve().parents[3] / "tools" / "check_certificate.py"
MECHANISM = wb.DyadicLaplace(epsilon=0.5, ell=1.7)
LAW = DyadicIntegers.from_mechanism(MECHANISM)
KEY = bytes(range(32))
# A correct sampler has a smaller p-value with this probability. The seeds are fixed.
MIN_PVALUE = 1e-4


def list_weights(t: int, size: int) -> dict[int, Fraction]:
    """Return k -> the exact weight a_|k| of level t for |k| <= size, with a_1 = 1."""
    level = LAW.levels[t]
    weights = {}
    for k in range(-size, size + 1):
        periods, is_odd = divmod(abs(k), 2)
        first_weight = 1 if is_odd else level.first_ratio
        weights[k] = first_weight * level.period_ratio**periods
    return weights


def compute_law(t: int, y: Fraction, size: int) -> dict[int, Fraction]:
    """Return m -> Pr[M = m] at y and level t, by the formula of the header, for |m - y| < size."""
    floor = math.floor(y)
    share = y - floor
    weights = list_weights(t, size + 2)
    q = LAW.levels[t].period_ratio
    total = (LAW.levels[t].first_ratio * (1 + q) + 2) / (1 - q)
    law = {}
    for m in range(floor - size, floor + size):
        law[m] = ((1 - share) * weights[m - floor] + share * weights[m - floor - 1]) / total
    return law


@pytest.mark.parametrize("t", [0, 1, 5, 20])
def test_the_rational_weights_are_those_of_the_paper(t: int) -> None:
    paper_law = component(MECHANISM.ell, t)
    paper_weights = np.array([paper_law.weight(k) for k in range(-6, 7)], dtype=float)
    weights = np.array([float(weight) for weight in list_weights(t, 6).values()])
    assert weights / weights[6] == pytest.approx(paper_weights / paper_weights[6], rel=1e-9)


@pytest.mark.parametrize("t", [0, 3, len(LAW.levels) - 1])
def test_no_pair_of_inputs_exceeds_the_proven_guarantee(t: int) -> None:
    """The laws are computed from the definition at many inputs, and compared at every m."""
    rng = np.random.default_rng(t)
    step = LAW.levels[t].step
    largest_slope = 0.0
    for _ in range(60):
        first_steps, second_steps = rng.uniform(low=-3, high=3, size=2).tolist()
        first_x = Fraction(first_steps) * step
        second_x = Fraction(second_steps) * step
        u = Fraction(float(rng.uniform(-0.5, 0.5)))
        first_law = compute_law(t, LAW.epsilon * first_x / step - u, 8)
        second_law = compute_law(t, LAW.epsilon * second_x / step - u, 8)
        for m in first_law.keys() & second_law.keys():
            privacy_loss = abs(math.log1p(float(first_law[m] / second_law[m] - 1)))
            largest_slope = max(largest_slope, privacy_loss / float(abs(first_x - second_x)))
    assert largest_slope <= float(LAW.decoder_epsilon) * (1 + 1e-9)


def test_the_guarantee_is_attained_next_to_an_even_integer() -> None:
    """From y = 1 to y = 1 - 1e-6 the mass of M = 0 grows from a_1 towards a_0 = s a_1."""
    step = LAW.levels[0].step
    laws = [compute_law(0, Fraction(y), 4) for y in (1, 1 - Fraction(1, 10**6))]
    distance = Fraction(1, 10**6) * step / LAW.epsilon
    slope = math.log(laws[1][0] / laws[0][0]) / float(distance)
    assert slope == pytest.approx(float(LAW.decoder_epsilon), rel=1e-5)


def test_the_guarantee_is_the_exact_product_of_both_parameters() -> None:
    assert LAW.decoder_epsilon == Fraction(0.5) * Fraction(1.7)
    assert len(LAW.levels) == MECHANISM.max_level + 1


@pytest.mark.parametrize("ratio", [Fraction(1, 3), Fraction(3, 4), Fraction(99, 100)])
def test_geometric_draws_have_their_law(ratio: Fraction) -> None:
    draws = draw_geometric(ratio, 20_000, Source(insecure_seed=1))
    edges = range(12)
    expected = [float((1 - ratio) * ratio**g) for g in edges] + [float(ratio**12)]
    observed = [np.count_nonzero(draws == g) for g in edges] + [np.count_nonzero(draws >= 12)]
    assert stats.chisquare(observed, 20_000 * np.array(expected)).pvalue > MIN_PVALUE


def test_geometric_draws_with_a_ratio_near_1_are_fast_and_have_their_mean() -> None:
    ratio = 1 - Fraction(1, 2**40)
    draws = draw_geometric(ratio, 4000, Source(insecure_seed=2)) / 2**40
    assert stats.kstest(draws, "expon").pvalue > MIN_PVALUE


@pytest.mark.parametrize("digit", [0, 1, 4, 7])
def test_enclosures_contain_the_exact_probability(digit: int) -> None:
    ratio = Fraction(97, 100)
    power = ratio ** (2**digit)
    for bits in (8, 64, 200):
        for enclose, exact in (
            (exact_integers._enclose_power, power),
            (exact_integers._enclose_digit, power / (1 + power)),
        ):
            low, high = enclose(ratio, digit, bits)
            assert low <= 2**bits * exact <= high
            assert high - low <= 4


def test_a_word_between_two_bounds_is_decided_by_more_bits() -> None:
    """The first word has the first 64 bits of 1/3, so the second word decides."""

    class Words:
        """A source of random words that a test chooses."""

        def __init__(self, *words: int) -> None:
            self.words = [*words]

        def draw_uint64(self, count: int) -> np.ndarray:
            """Return the next `count` words."""
            return np.array([self.words.pop(0) for _ in range(count)], dtype=np.uint64)

    def enclose_third(bits: int) -> tuple[int, int]:
        """Return integers around 2^bits / 3."""
        return 2**bits // 3, 2**bits // 3 + 1

    third = 2**64 // 3
    for second_word, is_below in ((0, True), (2**63, False)):
        source: Any = Words(third, second_word)
        assert exact_integers._draw_flags(enclose_third, 1, source).tolist() == [is_below]
        assert source.words == []


@pytest.mark.parametrize("t", [0, 2])
def test_noise_of_a_level_has_its_law(t: int) -> None:
    draws = LAW.levels[t].draw(20_000, Source(insecure_seed=3))
    law = compute_law(t, Fraction(0), 6)
    observed = [int(np.count_nonzero(draws == k)) for k in law]
    expected = [20_000 * float(mass) for mass in law.values()]
    observed.append(20_000 - sum(observed))
    expected.append(20_000 - sum(expected))
    assert stats.chisquare(observed, expected).pvalue > MIN_PVALUE


def test_a_quotient_is_rounded_up_with_the_probability_of_its_fraction() -> None:
    source = Source(insecure_seed=6)
    draws = [exact_integers._round_at_random(Fraction(-7, 4), source) for _ in range(4000)]
    assert {*draws} == {-2, -1}
    assert stats.binomtest(draws.count(-1), 4000, 0.25).pvalue > MIN_PVALUE


def test_encoding_rounds_each_number_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without K, the integer is ⌊y⌋ + B, and B = 1 has the probability θ = y - ⌊y⌋.

    The mean of (B - θ)² is that of θ (1 - θ), 1/6 for uniform θ. It would be 1/12 if B were the
    nearest integer.
    """
    monkeypatch.setattr(
        exact_integers.DyadicLevel, "draw", lambda level, count, source: np.zeros(count, np.int64)
    )
    x = np.random.default_rng(7).uniform(low=-5, high=5, size=4000)
    m = encode_exactly(MECHANISM, x, SharedStream(KEY, bytes(16)), Source(insecure_seed=8))
    words = SharedStream(KEY, bytes(16)).take(4000)
    steps = MECHANISM.law.deltas[MECHANISM.choose_levels(words[:, 0])]
    y = MECHANISM.epsilon * x / steps - symmetric_uniform(words[:, 1])
    rounding_errors = m - y
    assert np.abs(rounding_errors).max() < 1
    # The standard error of the mean of (B - θ)² is below 0.003.
    assert np.mean(rounding_errors**2) == pytest.approx(1 / 6, abs=0.015)


def test_exactly_encoded_numbers_are_decoded_with_laplace_noise() -> None:
    x = np.random.default_rng(4).uniform(low=-5, high=5, size=4000)
    m = encode_exactly(MECHANISM, x, SharedStream(KEY, bytes(16)), Source(insecure_seed=5))
    noise = MECHANISM.decode(m, SharedStream(KEY, bytes(16))) - x
    scale = 1 / MECHANISM.epsilon
    assert stats.kstest(noise, "laplace", args=(0, scale)).pvalue > MIN_PVALUE


def test_exact_encoding_needs_a_shared_stream() -> None:
    stream: Any = object()
    with pytest.raises(InvalidRequest, match="shared must be a SharedStream"):
        encode_exactly(MECHANISM, [1.0], stream)


def test_exact_encoding_needs_numbers_within_the_reach() -> None:
    with pytest.raises(InvalidRequest, match="at most"):
        encode_exactly(MECHANISM, [1e12], SharedStream(KEY, bytes(16)))


# Files and both checkers.


def run_checker(data: Any, folder: Path) -> tuple[int, str]:
    """Run the independent checker on a file with these data, and return its exit code and line."""
    path = folder / "law.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(CHECKER), str(path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return process.returncode, process.stdout


def test_both_checkers_prove_a_saved_law(tmp_path: Path) -> None:
    LAW.save(tmp_path / "law.json")
    assert wb.check(tmp_path / "law.json") == LAW
    code, line = run_checker(LAW.to_dict(), tmp_path)
    assert code == 0
    assert "proven: Integers of dyadic quantized Laplace noise, 37 levels" in line


def test_a_law_of_integers_is_no_mechanism_to_audit(tmp_path: Path) -> None:
    LAW.save(tmp_path / "law.json")
    with pytest.raises(CorruptFile, match="Got a dp-workbench dyadic law, which `workbench check`"):
        read_mechanism_file(tmp_path / "law.json")


def scale(data: Any, name: str, factor: Fraction) -> None:
    """Multiply an entry of the record by a factor."""
    data[name] = str(Fraction(data[name]) * factor)


# Name -> a change of a record that makes its guarantee false, by less than one in a thousand.
FALSE_CHANGES: dict[str, Callable[[Any], None]] = {
    "a smaller guarantee": lambda data: scale(data, "decoder_epsilon", Fraction(999, 1000)),
    "a larger epsilon": lambda data: scale(data, "epsilon", Fraction(1001, 1000)),
    "a smaller step": lambda data: scale(data["levels"][3], "step", Fraction(999, 1000)),
    "a larger first ratio": lambda data: scale(
        data["levels"][3], "first_ratio", Fraction(1001, 1000)
    ),
    "a smaller first ratio": lambda data: scale(
        data["levels"][0], "first_ratio", Fraction(999, 1000)
    ),
    "a smaller period ratio": lambda data: scale(
        data["levels"][0], "period_ratio", Fraction(999, 1000)
    ),
}


@pytest.mark.parametrize("name", FALSE_CHANGES)
def test_both_checkers_refute_a_law_without_its_guarantee(name: str, tmp_path: Path) -> None:
    data = copy.deepcopy(LAW.to_dict())
    FALSE_CHANGES[name](data)
    code, line = run_checker(data, tmp_path)
    assert code == 1
    assert ": false: " in line
    with pytest.raises(CorruptFile, match="does not prove its claim") as caught:
        wb.check(tmp_path / "law.json")
    assert isinstance(caught.value.__cause__, NotCertified)


@pytest.mark.parametrize(
    "changes",
    [
        {"levels": []},
        {"levels": [{"step": "0", "first_ratio": "1", "period_ratio": "1/2"}]},
        {"levels": [{"step": "1", "first_ratio": "1", "period_ratio": "1"}]},
        {"epsilon": "-1"},
        {"version": 2},
        {"extra": 1},
    ],
)
def test_neither_checker_reads_a_malformed_law(changes: dict[str, Any], tmp_path: Path) -> None:
    code, _ = run_checker(LAW.to_dict() | changes, tmp_path)
    assert code == 2
    with pytest.raises(CorruptFile):
        wb.check(tmp_path / "law.json")
