"""Test exact sampling by enumerating random words, by chi-square tests, and its source of entropy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import workbench as wb
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler


class Words(Source):
    """A fixed stream of words."""

    def __init__(self, *words: int) -> None:
        super().__init__()
        self.left = list(words)

    def draw_uint16(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count, "more words were asked for than expected"
        return np.array(taken, dtype=np.uint16)


EVERY = np.arange(1 << 16, dtype=np.uint16)


@pytest.mark.parametrize(
    "weights", [[1, 1], [3, 1], [1, 0, 2, 5], [0, 0, 16], [1000, 24], [1] * 64]
)
def test_all_random_words_for_denominators_that_divide(weights):
    total = Distribution(weights).total
    sampler = Sampler(Distribution(weights), Words(*EVERY.tolist()))
    counts = np.bincount(sampler.draw(1 << 16), minlength=len(weights))
    assert counts.tolist() == [(1 << 16) * w // total for w in Distribution(weights).integers]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any))
def test_every_first_word_is_decided_exactly_or_left_open(weights):
    masses = Distribution(weights)
    sampler = Sampler(masses)
    edges = [Fraction(0)]
    for k in masses.integers:
        edges.append(edges[-1] + Fraction(k, masses.total))
    for word in sorted(
        {*range(0, 1 << 16, 211), *np.flatnonzero(sampler.cell_outcomes < 0).tolist()}
    ):
        low, high = Fraction(word, 1 << 16), Fraction(word + 1, 1 << 16)
        inside = any(low < edge < high for edge in edges)
        got = int(sampler.cell_outcomes[word])
        assert (got == -1) == inside
        assert inside or edges[got] <= low < high <= edges[got + 1]


@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 0, 2], [5, 1, 1], [2, 3, 0, 6, 0]])
def test_probabilities_by_enumerating_two_words(weights):
    """First words that decide, plus for each open one all its 2^16 continuations.

    Within 2^-31 of k/T, no bias left.
    """
    masses = Distribution(weights)
    sampler = Sampler(masses)
    mass = [Fraction(0)] * len(weights)
    open_ = Fraction(0)
    for word in range(1 << 16):
        if sampler.cell_outcomes[word] >= 0:
            mass[int(sampler.cell_outcomes[word])] += Fraction(1, 1 << 16)
            continue
        for more in range(1 << 16):
            value = word << 16 | more
            low, high = value * masses.total, (value + 1) * masses.total
            at = next(i for i, c in enumerate(sampler.cumulative_sums[0]) if c << 32 > low)
            if high <= sampler.cumulative_sums[0][at] << 32:
                mass[at] += Fraction(1, 1 << 32)
                if more % 4096 == 1:  # and that is what a draw with these words gives
                    assert Sampler(masses, Words(word, more, 0, 0)).draw(1).tolist() == [at]
            else:
                open_ += Fraction(1, 1 << 32)
    assert open_ <= Fraction(len(weights), 1 << 32)
    for i, k in enumerate(masses.integers):
        exact = Fraction(k, masses.total)
        assert exact - open_ <= mass[i] <= exact


@pytest.mark.parametrize("total_bits", [3, 40, 200, 500])
def test_draws_that_sit_on_a_boundary_take_more_words(total_bits):
    """Every boundary C/T, approached from both sides.

    The number v 2^-80 decides, whatever its first 64 bits are.
    """
    rng = np.random.default_rng(total_bits)
    weights = [
        int(x) << max(0, total_bits - 40) | 1 for x in rng.integers(1, 1 << min(40, total_bits), 5)
    ]
    masses = Distribution(weights)
    running = 0
    for i, k in enumerate(masses.integers[:-1]):
        running += k
        cell = (running << 80) // masses.total  # the 80-bit cell that holds the boundary
        for value, outcome in ((cell - 1, i), (cell + 1, i + 1)):
            words = [value >> shift & 0xFFFF for shift in (64, 48, 32, 16, 0)]
            assert Sampler(masses, Words(*words)).draw(1).tolist() == [outcome]


def test_a_boundary_at_a_whole_cell_belongs_to_the_right():
    assert Sampler(Distribution([1, 1]), Words(0x7FFF)).draw(1).tolist() == [0]
    assert Sampler(Distribution([1, 1]), Words(0x8000)).draw(1).tolist() == [1]
    assert Sampler(Distribution([0, 7, 0]), Words(0xFFFF)).draw(1).tolist() == [1]


@pytest.mark.parametrize("size", [2, 9, 1000])
def test_chi_square_with_fixed_seeds(size):
    eta = np.arange(size)
    masses = Distribution.from_floats(np.exp(-np.minimum(eta, size - eta) * 6.0 / size))
    draws = Sampler(masses, Source(insecure_seed=11)).draw(500_000)
    assert chisquare(np.bincount(draws, minlength=size), 500_000 * masses.floats).pvalue > 1e-3
    wrong = np.roll(masses.floats, max(1, size // 9))
    assert chisquare(np.bincount(draws, minlength=size), 500_000 * wrong).pvalue < 1e-6


def test_more_outcomes_than_first_words():
    masses = Distribution(np.random.default_rng(2).integers(1, 1 << 50, 100_000).tolist())
    draws = Sampler(masses, Source(insecure_seed=5)).draw(200_000)
    groups = np.add.reduceat(masses.floats, np.arange(0, 100_000, 1000))
    assert (
        chisquare(np.bincount(draws // 1000, minlength=100), 200_000 * groups / groups.sum()).pvalue
        > 1e-3
    )


def test_tiny_masses_are_drawn_as_rarely_as_they_should():
    masses = Distribution([1, (1 << 90) - 1])
    assert Sampler(masses, Source(insecure_seed=3)).draw(100_000).min() == 1
    assert Sampler(masses, Words(0, 0, 0, 0, 0, 1)).draw(1).tolist() == [0]  # below 2^-90
    assert Sampler(masses, Words(0, 0, 0, 0, 0, 64)).draw(1).tolist() == [1]  # at 2^-90


def test_secure_words_come_from_the_system(monkeypatch):
    asked = []
    monkeypatch.setattr("os.urandom", lambda n: asked.append(n) or bytes(n))
    assert Source().draw_uint16(5).tolist() == [0] * 5
    wb.sample(wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2]), 7)
    assert asked == [10, 14]


def test_seeded_draws_repeat_and_are_named_insecure():
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2])
    one, two = (wb.sample(noise, 100, insecure_seed=4) for _ in range(2))
    assert (one == two).all()
    assert (one != wb.sample(noise, 100, insecure_seed=5)).any()


def test_answers_get_their_noise_modulo_the_group():
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [0, 1, 0, 0])
    assert wb.sample(noise, 3).tolist() == [1, 1, 1]
    assert wb.sample(noise, 2, answer=3).tolist() == [0, 0]
    vector = wb.AdditiveNoise(wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1)]), [0, 0, 0, 0, 0, 1])
    assert wb.sample(vector, 1, answer=(1, 2)).tolist() == [[0, 1]]
    rows = wb.Channel.from_pairs([[1, 0], [0, 1]], [(0, 1)])
    assert wb.sample(rows, 2, answer=1).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": -1}, "count"),
        ({"count": 1.5}, "count"),
        ({"count": True}, "count"),
        ({"count": 1, "answer": 4}, "answer"),
        ({"count": 1, "answer": (1, 1)}, "answer"),
        ({"count": 1, "insecure_seed": -1}, "seed"),
    ],
)
def test_wrong_arguments_of_sampling_are_refused(arguments, message):
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2])
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.sample(noise, **arguments)
    with pytest.raises(wb.InvalidRequest, match="mechanism"):
        wb.sample([1, 2], 1)
    with pytest.raises(wb.InvalidRequest, match="answer"):
        wb.sample(wb.Channel.from_pairs([[1, 0], [0, 1]], [(0, 1)]), 1)
