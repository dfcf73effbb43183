"""Randomized response on labels, exact: a label has one output of its own, or none.

    own output j:   Pr[j] = odds / (odds + m - 1),   every other output 1 / (odds + m - 1)         odds <= e^ε
    no own output:  every output 1/m

with m outputs. odds is ⌊2^64 e^ε⌋ / 2^64, so the exact audit passes and the law is within 2^-64 of the ideal one.

| mechanism                               | own output                     | built by        |
|-----------------------------------------|--------------------------------|-----------------|
| k-ary RR (Warner 1965; Def. 27)         | the label                      | `k_ary`         |
| RR-on-Bins (Algorithm 1)                | Φ(y), the value of y's bin     | `on_bins`       |
| RRTop-k (Ghazi et al. 2021a)            | the label if among the top k   | `top_k`         |
| RRWithPrior (Ghazi et al. 2021a)        | RRTop-k with the best k        | `with_prior`    |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.intervals import read_rationals
from workbench.data.plain import read_integer
from workbench.errors import must
from workbench.exact.arrays import Integers, Positions, Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import (
    RationalPair,
    Rationals,
    Real,
    exp_interval,
    read_number,
    read_positive,
)
from workbench.exact.objects import Pair, Record
from workbench.exact.random_source import Source
from workbench.io.records import DOUBLES, INTEGERS, RATIO, TEXT, RecordForm, raise_corrupt_entry
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import Budget, Budgets, Comparison, Distances
from workbench.mechanisms.shown_mechanism import ShownMechanism
from workbench.questions.labels import Labels

LossFunction: TypeAlias = Callable[[Any, Any], Vector]  # (outputs, labels) -> losses, broadcast

_BITS = 64
_MAX_CELLS = 4_000_000
_FORM = RecordForm(
    "Randomized response", {"kind": "randomized-response"}, labels=DOUBLES, prior=DOUBLES, outputs=DOUBLES, own=INTEGERS,
    odds=RATIO, epsilon=RATIO, name=TEXT,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RandomizedResponse(ShownMechanism):
    """See the module's table. labels: with their prior; outputs: (m,) published values; own: (k,) the position of each
    label's own output, -1 for none; odds: exact; epsilon: as asked; name: of the mechanism.
    """

    labels: Labels
    outputs: Vector
    own: Integers
    odds: Fraction
    epsilon: Fraction
    name: str

    is_one_sided = False
    segments = ()

    @property
    def inputs(self) -> Vector:
        """The labels, any two of them neighbours."""
        return self.labels.values

    @property
    def distances(self) -> Distances:
        """Every two labels are neighbours."""
        return Distances("listed", inputs=self.inputs.tolist(), max_distance=1)

    def with_max_distance(self, distance: int) -> RandomizedResponse:
        """Itself."""
        return self

    def to_dict(self) -> Record:
        """JSON-ready, read back by `from_dict`."""
        return _FORM.write(self, labels=self.labels.values, prior=self.labels.prior)

    @classmethod
    def from_dict(cls, data: Any) -> RandomizedResponse:
        """The mechanism written by `to_dict`, which claims no privacy: audit it. Raises CorruptFile, InvalidRequest."""
        values, prior, outputs, own, odds, *rest = _FORM.read(data).values()
        if len(own) != len(values) or not all(-1 <= j < len(outputs) for j in own) or odds < 1:
            raise_corrupt_entry(
                "Randomized response",
                "of an output's position, or -1, for each label, and of odds >= 1",
            )
        return cls(
            Labels.restore(values, prior), outputs, np.array(own, dtype=np.int64), odds, *rest
        )

    @property
    def weights(self) -> Pair:
        """(own, other): the integers in proportion to the two masses of a row."""
        return self.odds.numerator, self.odds.denominator

    def row(self, position: int) -> Distribution:
        """The exact law of the output for the label at a position."""
        own = int(self.own[position])
        (high, low) = self.weights
        return Distribution(
            [1] * self.outputs.size
            if own < 0
            else [high if j == own else low for j in range(self.outputs.size)]
        )

    def distinct_rows(self, limit: int | None = None) -> Positions:
        """One label position for every different row, at most `limit` rows with an own output and one without.

        Two rows with own outputs i, j differ by exchanging the masses of i and j, so any two of them (and the one
        without, if there is one) show every ratio of the mechanism.
        """
        kinds, first = np.unique(self.own, return_index=True)
        owned = first[kinds >= 0]
        return np.concatenate([first[kinds < 0], owned if limit is None else owned[:limit]])

    @cached_property
    def audit_rows(self) -> Channel:
        """Rows that show every ratio of masses (see `distinct`): all of up to 40, else two and the uniform one."""
        at = self.distinct_rows(None if self.outputs.size <= 40 else 2)
        return self._rows(at if at.size > 1 else np.concatenate([at, at]))

    def _rows(self, at: Positions) -> Channel:
        if at.size * self.outputs.size > _MAX_CELLS:
            must("the channel", f"of at most {_MAX_CELLS} masses", at.size * self.outputs.size)
        return Channel(tuple(self.row(int(i)) for i in at))

    @property
    def matrix(self) -> Vector:
        """Pr[o|y] as floats, for every label. Shape (k, m). Raises InvalidRequest beyond 4·10^6 masses."""
        m = self.outputs.size
        k = self.labels.k
        if k * m > _MAX_CELLS:
            must("the matrix", f"of at most {_MAX_CELLS} masses", k * m)
        odds = float(self.odds)
        table = np.where(self.own[:, None] < 0, 1 / m, 1 / (odds + m - 1)) * np.ones((k, m))
        owned = np.flatnonzero(self.own >= 0)
        table[owned, self.own[owned]] = odds / (odds + m - 1)
        return table

    def bins(self) -> list[dict[str, float]]:
        """lower, upper (first and last label) and value of every bin; for mechanisms made by `on_bins`."""
        firsts = np.searchsorted(self.own, np.arange(self.outputs.size))
        lasts = np.append(firsts[1:], self.labels.k) - 1
        y = self.labels.values
        return [
            {"lower": float(y[i]), "upper": float(y[j]), "value": float(value)}
            for i, j, value in zip(firsts, lasts, self.outputs, strict=True)
        ]

    def losses(self, loss: LossFunction) -> Vector:
        """E ℓ(o, y) of every label y; of ℓ(o, y) = o - y its bias. Shape (k,)."""
        y = self.labels.values
        m = self.outputs.size
        odds = float(self.odds)
        total = np.zeros(y.size)
        for output in self.outputs:
            total += loss(output, y)
        kept = (odds - 1) * loss(self.outputs[np.maximum(self.own, 0)], y)
        return np.where(self.own < 0, total / m, (total + kept) / (odds + m - 1))

    def loss(self, loss: LossFunction) -> float:
        """E ℓ(o, y) under the labels' prior."""
        p = self.labels.prior
        return float(p[p > 0] @ self.losses(loss)[p > 0])

    def sample(self, values: ArrayLike, source: Source | None = None) -> Vector:
        """A randomized copy of labels, from the exact law. Raises InvalidRequest for a value that is no label."""
        own = self.own[self.labels.find_positions(values)]
        source = source or Source()
        m = self.outputs.size
        (high, low) = self.weights
        # keeping with probability (odds-1)/(odds+m-1), else drawing uniformly from all m outputs, is the law above
        drawn = source.draw_integers(m, own.size)
        kept = source.draw_bernoulli(high - low, high + (m - 1) * low, own.size) & (own >= 0)
        return self.outputs[np.where(kept, own, drawn)]

    def find_row(self, label: Any) -> int:
        """Where a label stands. Raises InvalidRequest for a value that is none."""
        return int(self.labels.find_positions(float(read_number(label, "answer")), "answer"))

    def law(self, x: Any) -> Distribution:
        """The exact law of the output's position for a label. Raises InvalidRequest."""
        return self.row(self.find_row(x))

    def budgets(self, epsilon: Budget) -> Budgets:
        """The budget of every comparison. Raises InvalidRequest."""
        return self.audit_rows.budgets(epsilon)

    def comparisons(self) -> Iterable[Comparison]:
        """Every two of the rows that show all ratios."""
        return self.audit_rows.comparisons()

    def extremes(self) -> Iterable[Comparison]:
        """The rows that give each output most and least."""
        return self.audit_rows.extremes()

    def certified_form(self) -> Channel:
        """What a certificate holds of it: a row for every label. Raises InvalidRequest beyond 4·10^6 masses."""
        return self._rows(np.arange(self.labels.k))

    @property
    def unbiased_means(self) -> tuple[Rationals, Rationals]:
        """(what is published, the labels), which the mean is where the mechanism is unbiased."""
        return read_rationals(self.outputs.tolist(), "outputs"), read_rationals(
            self.labels.values.tolist(), "labels"
        )

    @property
    def drawable(self) -> bool:
        """Whether labels and outputs are few enough."""
        return self.labels.k <= 400 >= self.outputs.size

    def describe(self) -> str:
        """One line."""
        y = self.labels.values
        count = f"{y.size} labels in [{y[0]:g}, {y[-1]:g}]"
        return f"RandomizedResponse on {count} with {self.outputs.size} outputs, any two labels neighbours"

    def __repr__(self) -> str:
        return f"{self.name}({self.labels!r}, {self.outputs.size} outputs, epsilon={float(self.epsilon):g})"


def round_odds_down(epsilon: Real) -> RationalPair:
    """(the largest multiple of 2^-64 that is <= e^ε, ε exact). Raises InvalidRequest unless 0 < ε <= 700."""
    budget = read_positive(epsilon, "epsilon")
    if budget > 700:
        must("epsilon", "at most 700", epsilon)
    return exp_interval(budget, _BITS)[0], budget


def rr_on_bins(
    labels: Labels, starts: ArrayLike, values: ArrayLike, epsilon: Real
) -> RandomizedResponse:
    """RR-on-Bins (Algorithm 1): starts (d,) first label position of each bin, values (d,) what each publishes.

    Raises InvalidRequest.
    """
    first = np.asarray(starts, dtype=np.int64)
    published = np.array(values, dtype=float)
    if (
        first.ndim != 1
        or [*first[:1]] != [0]
        or not (np.diff(first) > 0).all()
        or first[-1] >= labels.k
    ):
        must("starts", f"increasing positions in 0..{labels.k - 1} that begin with 0", first)
    if published.shape != first.shape or not np.isfinite(published).all():
        must("values", f"{first.size} finite numbers", published)
    own = np.searchsorted(first, np.arange(labels.k), side="right") - 1
    return RandomizedResponse(
        labels, published, own.astype(np.int64), *round_odds_down(epsilon), "RR-on-Bins"
    )


def rr_k_ary(labels: Labels, epsilon: Real) -> RandomizedResponse:
    """k-ary randomized response over all labels. Raises InvalidRequest."""
    return rr_top_k(labels, labels.k, epsilon, "RR")


def rr_top_k(labels: Labels, count: int, epsilon: Real, name: str = "") -> RandomizedResponse:
    """RRTop-k: randomized response over the `count` likeliest labels, the others answered uniformly among them.

    Ties go to the smaller label. name: of the mechanism, "RRTop-k" by default. Raises InvalidRequest.
    """
    kept = read_integer(count, "count", 1, labels.k)
    chosen = np.sort(np.argsort(-labels.prior, kind="stable")[:kept])
    own = np.full(labels.k, -1, dtype=np.int64)
    own[chosen] = np.arange(kept)
    return RandomizedResponse(
        labels, labels.values[chosen], own, *round_odds_down(epsilon), name or f"RRTop-{kept}"
    )


def rr_with_prior(labels: Labels, epsilon: Real) -> RandomizedResponse:
    """RRWithPrior: RRTop-k with the k that maximises Pr[o = y] = e^ε/(e^ε + k - 1) Σ_{top k} p (the least such k)."""
    odds, _ = round_odds_down(epsilon)
    count = (
        int(np.argmax(np.cumsum(np.sort(labels.prior)[::-1]) / (float(odds) + np.arange(labels.k))))
        + 1
    )
    return rr_top_k(labels, count, epsilon, "RRWithPrior")
