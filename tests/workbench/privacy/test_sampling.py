"""Test exact sampling by enumerating random words, by chi-square tests, and its source of entropy.

A word is an integer of 16 random bits. The words of a draw are the binary digits of a number in
[0, 1), and the sampler returns the outcome in whose interval it lies. A first word is *open* if a
boundary of two outcomes lies inside its cell. Then the sampler reads more words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

WORD_COUNT = 1 << 16  # The number of different words.


class Words(Source):
    """A source whose words are given. It fails if more words are drawn.

    Args:
        words: The words in the order in which they are drawn, each in 0..2^16 - 1.
    """

    def __init__(self, words: Iterable[int]) -> None:
        super().__init__()
        self.remaining_words = list(words)

    def draw_uint16(self, count: int) -> np.ndarray:
        """Return the next words. Shape (count,)."""
        drawn_words = self.remaining_words[:count]
        self.remaining_words = self.remaining_words[count:]
        assert len(drawn_words) == count, "more words were drawn than given"
        return np.array(drawn_words, dtype=np.uint16)


def draw_with_words(masses: Distribution, words: Sequence[int]) -> int:
    """Draw one outcome with these words."""
    (outcome,) = Sampler(masses, Words(words)).draw(1).tolist()
    return int(outcome)


@pytest.mark.parametrize(
    "weights", [[1, 1], [3, 1], [1, 0, 2, 5], [0, 0, 16], [1000, 24], [1] * 64]
)
def test_all_first_words_give_the_exact_shares_if_the_total_divides_their_number(weights):
    masses = Distribution(weights)
    sampler = Sampler(masses, Words(range(WORD_COUNT)))
    counts = np.bincount(sampler.draw(WORD_COUNT), minlength=len(weights))
    assert counts.tolist() == [WORD_COUNT * weight // masses.total for weight in masses.integers]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any))
def test_every_first_word_is_decided_exactly_or_left_open(weights):
    masses = Distribution(weights)
    sampler = Sampler(masses)
    # Outcome k has the interval from boundary k to boundary k + 1.
    boundaries = [Fraction(0)]
    for weight in masses.integers:
        boundaries.append(boundaries[-1] + Fraction(weight, masses.total))
    open_words = np.flatnonzero(sampler.cell_outcomes < 0).tolist()
    # All open words, and every 211th word.
    for word in sorted({*range(0, WORD_COUNT, 211), *open_words}):
        low = Fraction(word, WORD_COUNT)
        high = Fraction(word + 1, WORD_COUNT)
        is_open = any(low < boundary < high for boundary in boundaries)
        outcome = int(sampler.cell_outcomes[word])  # -1 for an open word.
        assert (outcome == -1) == is_open
        assert is_open or boundaries[outcome] <= low < high <= boundaries[outcome + 1]


@pytest.mark.parametrize("weights", [[1, 1, 1], [1, 0, 2], [5, 1, 1], [2, 3, 0, 6, 0]])
def test_probabilities_by_enumerating_two_words(weights):
    """The decided mass of each outcome is at most its probability, and the rest is open.

    Every first word is enumerated, and for each open one all its 2^16 second words. Some draws are
    compared with the enumeration.
    """
    masses = Distribution(weights)
    sampler = Sampler(masses)
    upper_ends = sampler.cumulative_sums[0]
    decided_masses = [Fraction(0)] * len(weights)
    open_mass = Fraction(0)
    for first_word in range(WORD_COUNT):
        if sampler.cell_outcomes[first_word] >= 0:
            decided_masses[int(sampler.cell_outcomes[first_word])] += Fraction(1, 1 << 16)
            continue
        for second_word in range(WORD_COUNT):
            # The cell of both words, times 2^32 and the total of the weights.
            number = first_word << 16 | second_word
            low = number * masses.total
            high = (number + 1) * masses.total
            outcome = next(i for i, end in enumerate(upper_ends) if end << 32 > low)
            if high > upper_ends[outcome] << 32:
                open_mass += Fraction(1, 1 << 32)
                continue
            decided_masses[outcome] += Fraction(1, 1 << 32)
            if second_word % 4096 == 1:
                assert draw_with_words(masses, [first_word, second_word, 0, 0]) == outcome
    assert open_mass <= Fraction(len(weights), 1 << 32)
    for decided_mass, weight in zip(decided_masses, masses.integers, strict=True):
        exact = Fraction(weight, masses.total)
        assert exact - open_mass <= decided_mass <= exact


@pytest.mark.parametrize("total_bits", [3, 40, 200, 500])
def test_draws_beside_a_boundary_are_decided_by_five_words(total_bits):
    """The numbers next to every boundary, on both sides, differ from it in bits 65 to 80."""
    generator = np.random.default_rng(total_bits)
    random_integers = generator.integers(low=1, high=1 << min(40, total_bits), size=5)
    weights = [int(integer) << max(0, total_bits - 40) | 1 for integer in random_integers]
    masses = Distribution(weights)
    boundary = 0  # Times the total of the weights.
    for left_outcome, weight in enumerate(masses.integers[:-1]):
        boundary += weight
        cell = (boundary << 80) // masses.total  # The boundary lies in this cell of 2^-80.
        for number, outcome in ((cell - 1, left_outcome), (cell + 1, left_outcome + 1)):
            words = [number >> shift & 0xFFFF for shift in (64, 48, 32, 16, 0)]
            assert draw_with_words(masses, words) == outcome


def test_a_word_that_begins_at_a_boundary_has_the_outcome_to_its_right():
    assert draw_with_words(Distribution([1, 1]), [0x7FFF]) == 0
    assert draw_with_words(Distribution([1, 1]), [0x8000]) == 1
    assert draw_with_words(Distribution([0, 7, 0]), [0xFFFF]) == 1


@pytest.mark.parametrize("size", [2, 9, 1000])
def test_draws_pass_a_chi_square_test_that_rejects_a_shifted_law(size):
    noise_values = np.arange(size)
    distances = np.minimum(noise_values, size - noise_values)
    masses = Distribution.from_floats(np.exp(-distances * 6.0 / size))
    draws = Sampler(masses, Source(insecure_seed=11)).draw(500_000)
    assert chisquare(np.bincount(draws, minlength=size), 500_000 * masses.floats).pvalue > 1e-3
    shifted_masses = np.roll(masses.floats, max(1, size // 9))
    assert chisquare(np.bincount(draws, minlength=size), 500_000 * shifted_masses).pvalue < 1e-6


def test_draws_of_more_outcomes_than_first_words_pass_a_chi_square_test():
    """Neighbouring outcomes are counted together, 1,000 at a time."""
    masses = Distribution(np.random.default_rng(2).integers(1, 1 << 50, 100_000).tolist())
    draws = Sampler(masses, Source(insecure_seed=5)).draw(200_000)
    groups = np.add.reduceat(masses.floats, np.arange(0, 100_000, 1000))
    counts = np.bincount(draws // 1000, minlength=100)
    assert chisquare(counts, 200_000 * groups / groups.sum()).pvalue > 1e-3


def test_tiny_masses_are_drawn_as_rarely_as_they_should():
    masses = Distribution([1, (1 << 90) - 1])
    assert Sampler(masses, Source(insecure_seed=3)).draw(100_000).min() == 1
    # The sixth word counts 2^-96. The first outcome has the numbers below 2^-90 = 64 2^-96.
    assert draw_with_words(masses, [0, 0, 0, 0, 0, 1]) == 0
    assert draw_with_words(masses, [0, 0, 0, 0, 0, 64]) == 1


def test_secure_words_come_from_the_system(monkeypatch):
    byte_counts = []

    def record_bytes(count: int) -> bytes:
        """Return zeros in place of random bytes."""
        byte_counts.append(count)
        return bytes(count)

    monkeypatch.setattr("os.urandom", record_bytes)
    assert Source().draw_uint16(5).tolist() == [0] * 5
    wb.sample(wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2]), 7)
    assert byte_counts == [10, 14]  # A word has two bytes, and each of 7 draws takes one word.


def test_draws_repeat_for_one_insecure_seed_only():
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2])
    draws = wb.sample(noise, 100, insecure_seed=4)
    assert (draws == wb.sample(noise, 100, insecure_seed=4)).all()
    assert (draws != wb.sample(noise, 100, insecure_seed=5)).any()


def test_answers_get_their_noise_modulo_the_group():
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [0, 1, 0, 0])
    assert wb.sample(noise, 3).tolist() == [1, 1, 1]
    assert wb.sample(noise, 2, answer=3).tolist() == [0, 0]
    vector = wb.AdditiveNoise(wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1)]), [0, 0, 0, 0, 0, 1])
    assert wb.sample(vector, 1, answer=(1, 2)).tolist() == [[0, 1]]


def test_the_draws_of_a_channel_follow_the_row_of_the_answer():
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


def test_a_list_is_no_mechanism_to_sample_from():
    with pytest.raises(wb.InvalidRequest, match="mechanism"):
        wb.sample([1, 2], 1)


def test_a_channel_needs_an_answer_to_sample_from():
    with pytest.raises(wb.InvalidRequest, match="answer"):
        wb.sample(wb.Channel.from_pairs([[1, 0], [0, 1]], [(0, 1)]), 1)
