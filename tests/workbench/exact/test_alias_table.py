"""Alias tables draw every outcome with exactly its probability."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.exact.alias_table import AliasTable
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler


class Given(Source):
    """First words, then bytes, then more words: those that are given, or seeded ones."""

    def __init__(self, words: np.ndarray, more: np.ndarray, later: list[int] | None = None) -> None:
        super().__init__(insecure_seed=7)
        self.words_, self.bytes_, self.later = words, more, later

    def draw_uint16(self, count: int) -> np.ndarray:
        if self.words_ is not None:
            first, self.words_ = self.words_, None
            return first
        if self.later is None:
            return super().draw_uint16(count)
        taken, self.later = self.later[:count], self.later[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint16)

    def draw_uint8(self, count: int) -> np.ndarray:
        return self.bytes_


def weights_of(size: int, total: int, seed: int) -> list[int]:
    """Integers >= 0 of a sum, some of them 0, others large."""
    rng = np.random.default_rng(seed)
    return np.bincount((size * rng.random(total) ** 3).astype(int), minlength=size).tolist()


@pytest.mark.parametrize(
    ("size", "total"), [(129, 1000), (257, 4096), (300, 77_777), (512, 513), (200, 10**40)]
)
def test_columns_have_the_law_exactly(size: int, total: int):
    steep = [total // (3 + i) ** 9 for i in range(size)]
    weights = steep if total > 10**9 else weights_of(size, total, size)
    table = AliasTable(weights, Source())
    others, height = table.outcomes[1::2].tolist(), sum(weights)
    masses = [0] * len(others)
    for own, (mass, other) in enumerate(zip(table.own_masses, others, strict=True)):
        assert 0 <= mass < height
        masses[own] += mass
        masses[other] += height - mass
    assert masses == [len(others) * k for k in weights] + [0] * (len(others) - size)


def test_every_first_word_gives_each_outcome_its_share():
    weights = weights_of(300, 1 << 10, 3)
    words = np.repeat(np.arange(1 << 16, dtype=np.uint16), 64)
    counts = np.zeros(300, dtype=int)
    for part in range(4):
        more = np.tile(np.arange(64 * part, 64 * (part + 1), dtype=np.uint8), 1 << 16)
        counts += np.bincount(
            AliasTable(weights, Given(words, more)).draw(words.size), minlength=300
        )
    assert counts.tolist() == [k << 14 for k in weights]


def test_open_draws_take_words_until_they_are_decided():
    weights = weights_of(300, 1001, 5)
    table, total = AliasTable(weights, Source()), 1001
    for column in np.flatnonzero(table.own_masses)[:40].tolist():
        # These are the leading bits of a_j / T, which has infinitely many.
        digits = (table.own_masses[column] << table.value_bits + 48 + 32) // total
        first = digits >> 80
        later = [digits >> position & 0xFFFF for position in (64, 48, 32, 16, 0)]
        word = column << table.value_bits | first
        for last, place in ((later[-1] - 1, 0), (later[-1] + 1, 1)):
            if 0 <= last < 1 << 16:
                given = (
                    np.array([word >> 8], dtype=np.uint16),
                    np.array([word & 255], dtype=np.uint8),
                )
                source = Given(*given, [*later[:-1], last])
                assert AliasTable(weights, source).draw(1).tolist() == [
                    table.outcomes[2 * column + place]
                ]
                assert source.later == []


def test_many_draws_from_many_outcomes_follow_the_law():
    weights = [1 + i % 7 for i in range(5000)]
    sampler = Sampler(Distribution(weights), Source(insecure_seed=1))
    drawn = sampler.draw(400_000)
    assert "_alias_table" in vars(sampler)
    few = Sampler(Distribution(weights), Source(insecure_seed=1))
    assert few.draw(1000).size == 1000
    # To make the table takes longer than to draw these few outcomes without it.
    assert "_alias_table" not in vars(few)
    by_weight = np.bincount(drawn % 7, minlength=7) / 400_000
    share = np.array([sum(w for i, w in enumerate(weights) if i % 7 == r) for r in range(7)]) / sum(
        weights
    )
    assert np.abs(by_weight - share).max() < 5e-3
