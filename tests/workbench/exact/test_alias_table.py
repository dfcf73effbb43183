"""Tests that alias tables draw every outcome with exactly its probability.

A table reads a word of 16 and a byte of 8 random bits for each draw. If these bits do not decide
the draw, it reads more words.
"""

from __future__ import annotations

import numpy as np
import pytest

from workbench.exact.alias_table import AliasTable
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler


class FixedSource(Source):
    """A source of random bits that returns fixed ones.

    Attributes:
        first_words: the words of the first call of `draw_uint16`. None after that call.
        fixed_bytes: the bytes of each call of `draw_uint8`.
        later_words: words of later calls of `draw_uint16`. None for seeded random words.
    """

    def __init__(
        self,
        first_words: np.ndarray,
        fixed_bytes: np.ndarray,
        later_words: list[int] | None = None,
    ) -> None:
        super().__init__(insecure_seed=7)
        self.first_words: np.ndarray | None = first_words
        self.fixed_bytes = fixed_bytes
        self.later_words = later_words

    def draw_uint16(self, count: int) -> np.ndarray:
        """Return `first_words` in the first call, and the next `later_words` or random words then."""
        if self.first_words is not None:
            words = self.first_words
            self.first_words = None
            return words
        if self.later_words is None:
            return super().draw_uint16(count)
        words = self.later_words[:count]
        self.later_words = self.later_words[count:]
        assert len(words) == count
        return np.array(words, dtype=np.uint16)

    def draw_uint8(self, count: int) -> np.ndarray:
        """Return `fixed_bytes`."""
        return self.fixed_bytes


def draw_weights(size: int, total: int, seed: int) -> list[int]:
    """Draw `size` integers >= 0 whose sum is `total`. Some of them are 0, and others are large."""
    rng = np.random.default_rng(seed)
    return np.bincount((size * rng.random(total) ** 3).astype(int), minlength=size).tolist()


@pytest.mark.parametrize(
    ("size", "total"), [(129, 1000), (257, 4096), (300, 77_777), (512, 513), (200, 10**40)]
)
def test_the_columns_of_a_table_add_up_to_the_weights(size: int, total: int):
    """Each column has the height Σ weights, which its own outcome and one other outcome share."""
    if total > 10**9:  # The sum is too large to be drawn one by one. These weights fall steeply.
        weights = [total // (3 + i) ** 9 for i in range(size)]
    else:
        weights = draw_weights(size, total, seed=size)
    table = AliasTable(weights, Source())
    other_outcomes = table.outcomes[1::2].tolist()
    column_count = len(other_outcomes)
    height = sum(weights)
    masses = [0] * column_count
    columns = zip(table.own_masses, other_outcomes, strict=True)
    for own_outcome, (own_mass, other_outcome) in enumerate(columns):
        assert 0 <= own_mass < height
        masses[own_outcome] += own_mass
        masses[other_outcome] += height - own_mass
    padding = [0] * (column_count - size)
    assert masses == [column_count * weight for weight in weights] + padding


def test_all_first_bits_together_give_each_outcome_its_probability():
    """All 2^24 values of the first word and byte are drawn once, in four parts."""
    weights = draw_weights(300, 1 << 10, seed=3)
    words = np.repeat(np.arange(1 << 16, dtype=np.uint16), 64)
    counts = np.zeros(300, dtype=int)
    for part in range(4):
        part_bytes = np.arange(64 * part, 64 * (part + 1), dtype=np.uint8)
        source = FixedSource(words, np.tile(part_bytes, 1 << 16))
        counts += np.bincount(AliasTable(weights, source).draw(words.size), minlength=300)
    assert counts.tolist() == [weight << 14 for weight in weights]


def test_a_draw_reads_words_until_it_is_decided():
    """The random bits equal those of the share of a column, except in the fifth later word."""
    total = 1001
    weights = draw_weights(300, total, seed=5)
    table = AliasTable(weights, Source())
    for column in np.flatnonzero(table.own_masses)[:40].tolist():
        # The leading bits of own mass / total, which has infinitely many.
        share_bits = (table.own_masses[column] << table.value_bits + 48 + 32) // total
        first_bits = column << table.value_bits | share_bits >> 80
        later_words = [share_bits >> position & 0xFFFF for position in (64, 48, 32, 16, 0)]
        own_outcome, other_outcome = table.outcomes[2 * column : 2 * column + 2]
        # Bits below the share draw the column's own outcome, and larger ones the other outcome.
        for last_word, expected in (
            (later_words[-1] - 1, own_outcome),
            (later_words[-1] + 1, other_outcome),
        ):
            if not 0 <= last_word < 1 << 16:
                continue
            first_word = np.array([first_bits >> 8], dtype=np.uint16)
            first_byte = np.array([first_bits & 255], dtype=np.uint8)
            source = FixedSource(first_word, first_byte, [*later_words[:-1], last_word])
            assert AliasTable(weights, source).draw(1).tolist() == [expected]
            assert source.later_words == []


def test_many_draws_from_many_outcomes_follow_the_weights():
    """Outcome i has the weight 1 + i % 7, so that outcomes are counted by i % 7."""
    draw_count = 400_000
    weights = np.array([1 + i % 7 for i in range(5000)])
    sampler = Sampler(Distribution(weights.tolist()), Source(insecure_seed=1))
    remainders = sampler.draw(draw_count) % 7
    assert "_alias_table" in vars(sampler)
    frequencies = np.bincount(remainders, minlength=7) / draw_count
    probabilities = np.bincount(np.arange(5000) % 7, weights=weights) / weights.sum()
    assert np.abs(frequencies - probabilities).max() < 5e-3


def test_no_table_is_made_for_few_draws():
    """Making the table takes longer than drawing a few outcomes without it."""
    sampler = Sampler(Distribution([1 + i % 7 for i in range(5000)]), Source(insecure_seed=1))
    assert sampler.draw(1000).size == 1000
    assert "_alias_table" not in vars(sampler)
