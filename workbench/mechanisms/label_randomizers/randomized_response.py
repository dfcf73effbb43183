"""Build exact randomized response on labels: k-ary, on bins, on the top k labels, with a prior.

A label is published as one of m outputs. It has one own output, which is the likeliest, or none.
There are k labels. Algorithms and definitions are those of Ghazi et al., Regression with Label
Differential Privacy.

    own output j:   Pr[j] = odds / (odds + m - 1),  every other output 1 / (odds + m - 1),
                    odds <= e^ε
    no own output:  every output 1/m

Example: with m = 3 outputs and odds = 2, a label has its own output with probability 2/4, and each
other output with probability 1/4.

The ratio odds is ⌊2^64 e^ε⌋ / 2^64, so the exact audit passes and the law is within 2^-64 of
the ideal one.

| mechanism                               | own output                     | built by        |
|-----------------------------------------|--------------------------------|-----------------|
| k-ary RR (Warner 1965; Def. 27)         | the label                      | `rr_k_ary`      |
| RR-on-Bins (Algorithm 1)                | Φ(y), the value of y's bin     | `rr_on_bins`    |
| RRTop-k (Ghazi et al. 2021a)            | the label if among the top k   | `rr_top_k`      |
| RRWithPrior (Ghazi et al. 2021a)        | RRTop-k with the best k        | `rr_with_prior` |
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

LossFunction: TypeAlias = Callable[[Any, Any], Vector]
"""(outputs, labels) -> losses, broadcast."""


_ODDS_BITS = 64  # The odds are a multiple of 2^-64.
_MAX_MASSES = 4_000_000  # A matrix or channel of more masses is refused.
_MAX_DRAWN_LABELS = 400  # Mechanisms with more labels or outputs have no picture.
# With more outputs, only two rows with an own output are audited. They show every ratio already.
_MAX_FULLY_AUDITED_OUTPUTS = 40
_MAX_EPSILON = 700  # For a larger ε, e^ε would overflow a double.
_FORM = RecordForm(
    "Randomized response",
    {"kind": "randomized-response"},
    labels=DOUBLES,
    prior=DOUBLES,
    outputs=DOUBLES,
    own=INTEGERS,
    odds=RATIO,
    epsilon=RATIO,
    name=TEXT,
)


@dataclass(frozen=True, eq=False)
class RandomizedResponse(ShownMechanism):
    """A mechanism of the module's table.

    Attributes:
        labels: The labels, with their prior.
        outputs: The published values, shape (m,).
        own: The position of each label's own output, -1 for none, shape (k,).
        odds: The exact ratio of the two masses of a row, >= 1.
        epsilon: The requested ε.
        name: The name of the mechanism in reports.
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
        """Return the labels, of which every two are neighbours. Shape (k,)."""
        return self.labels.values

    @property
    def distances(self) -> Distances:
        """Return the distances of the labels: every two are neighbours."""
        return Distances("listed", inputs=self.inputs.tolist(), max_distance=1)

    def with_max_distance(self, distance: int) -> RandomizedResponse:
        """Return itself: every two labels are neighbours.

        Args:
            distance: Not used.
        """
        return self

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads."""
        return _FORM.write(self, labels=self.labels.values, prior=self.labels.prior)

    @classmethod
    def from_dict(cls, data: Any) -> RandomizedResponse:
        """Return the mechanism written by `to_dict`, which claims no privacy: audit it.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form, a position outside the outputs, or odds
                below 1.
            InvalidRequest: If the labels are not increasing, or the prior has a negative weight.
        """
        values, prior, outputs, own_outputs, odds, epsilon, name = _FORM.read(data).values()
        if (
            len(own_outputs) != len(values)
            or not all(-1 <= j < len(outputs) for j in own_outputs)
            or odds < 1
        ):
            raise_corrupt_entry(
                "Randomized response",
                "of an output's position, or -1, for each label, and of odds >= 1",
            )
        return cls(
            Labels.restore(values, prior),
            outputs=outputs,
            own=np.array(own_outputs, dtype=np.int64),
            odds=odds,
            epsilon=epsilon,
            name=name,
        )

    @property
    def weights(self) -> Pair:
        """Return (own, other): integers in proportion to the two masses of a row."""
        return self.odds.numerator, self.odds.denominator

    def row(self, position: int) -> Distribution:
        """Return the exact law of the output for a label.

        Args:
            position: The position of the label, 0..k-1.
        """
        own_output = int(self.own[position])
        if own_output < 0:
            return Distribution([1] * self.outputs.size)
        own_weight, other_weight = self.weights
        weights = [other_weight] * self.outputs.size
        weights[own_output] = own_weight
        return Distribution(weights)

    def distinct_rows(self, limit: int | None = None) -> Positions:
        """Return one label position for every different row.

        Two rows with own outputs i, j differ by exchanging the masses of i and j, so any two of
        them (and the one without an own output, if there is one) show every ratio of the mechanism.

        Args:
            limit: The largest number of rows with an own output that are returned; None for all.
        """
        own_outputs, first_labels = np.unique(self.own, return_index=True)
        rows_with_own_output = first_labels[own_outputs >= 0]
        if limit is not None:
            rows_with_own_output = rows_with_own_output[:limit]
        return np.concatenate([first_labels[own_outputs < 0], rows_with_own_output])

    @cached_property
    def audit_rows(self) -> Channel:
        """Return the channel of rows that show every ratio of masses (see `distinct_rows`).

        These are all different rows if there are at most 40 outputs. Otherwise they are two rows
        with an own output, and the uniform row if there is one.
        """
        limit = None
        if self.outputs.size > _MAX_FULLY_AUDITED_OUTPUTS:
            limit = 2
        positions = self.distinct_rows(limit)
        if positions.size == 1:
            # All labels have one law, which is compared with itself.
            positions = np.concatenate([positions, positions])
        return self._rows(positions)

    def _rows(self, positions: Positions) -> Channel:
        """Return the channel with the rows of some labels, by their positions."""
        if positions.size * self.outputs.size > _MAX_MASSES:
            must(
                "the channel",
                f"of at most {_MAX_MASSES} masses",
                positions.size * self.outputs.size,
            )
        return Channel(tuple(self.row(int(i)) for i in positions))

    @property
    def matrix(self) -> Vector:
        """Return Pr[o|y] as floats, for every label. Shape (k, m).

        Raises:
            InvalidRequest: If there are more than 4·10^6 masses.
        """
        m = self.outputs.size
        k = self.labels.k
        if k * m > _MAX_MASSES:
            must("the matrix", f"of at most {_MAX_MASSES} masses", k * m)
        odds = float(self.odds)
        table = np.where(self.own[:, None] < 0, 1 / m, 1 / (odds + m - 1)) * np.ones((k, m))
        owned_rows = np.flatnonzero(self.own >= 0)
        table[owned_rows, self.own[owned_rows]] = odds / (odds + m - 1)
        return table

    def bins(self) -> list[dict[str, float]]:
        """Return one mapping for each bin: lower and upper (its first and last label), and value.

        The mechanism must be one of `rr_on_bins`.
        """
        # The own outputs rise with the label, so that the labels of a bin are consecutive.
        firsts = np.searchsorted(self.own, np.arange(self.outputs.size))
        lasts = np.append(firsts[1:], self.labels.k) - 1
        y = self.labels.values
        return [
            {"lower": float(y[i]), "upper": float(y[j]), "value": float(value)}
            for i, j, value in zip(firsts, lasts, self.outputs, strict=True)
        ]

    def losses(self, loss: LossFunction) -> Vector:
        """Compute E ℓ(o, y) of every label y, shape (k,). For ℓ(o, y) = o - y this is its bias.

        Args:
            loss: (outputs, labels) -> ℓ, broadcast.
        """
        y = self.labels.values
        m = self.outputs.size
        odds = float(self.odds)
        total = np.zeros(y.size)
        for output in self.outputs:
            total += loss(output, y)
        own_excess = (odds - 1) * loss(self.outputs[np.maximum(self.own, 0)], y)
        return np.where(self.own < 0, total / m, (total + own_excess) / (odds + m - 1))

    def loss(self, loss: LossFunction) -> float:
        """Compute E ℓ(o, y) under the labels' prior.

        Args:
            loss: (outputs, labels) -> ℓ, broadcast.
        """
        # Losses may be infinite at labels of probability 0.
        p = self.labels.prior
        return float(p[p > 0] @ self.losses(loss)[p > 0])

    def sample(self, values: ArrayLike, source: Source | None = None) -> Vector:
        """Draw a randomized copy of labels, from the exact law. Shape (n,).

        Args:
            values: The labels, shape (n,).
            source: The source of randomness, default: the operating system.

        Raises:
            InvalidRequest: If a value is no label.
        """
        own_outputs = self.own[self.labels.find_positions(values)]
        source = source or Source()
        m = self.outputs.size
        own_weight, other_weight = self.weights
        # A draw keeps the own output with probability (odds-1)/(odds+m-1), else it is uniform.
        uniform_draws = source.draw_integers(m, own_outputs.size)
        is_kept = source.draw_bernoulli(
            own_weight - other_weight, own_weight + (m - 1) * other_weight, own_outputs.size
        )
        is_kept &= own_outputs >= 0
        return self.outputs[np.where(is_kept, own_outputs, uniform_draws)]

    def find_row(self, label: Any) -> int:
        """Find the position of a label.

        Args:
            label: One of the labels, as a number.

        Returns:
            The position, 0..k-1.

        Raises:
            InvalidRequest: If a value is no label.
        """
        return int(self.labels.find_positions(float(read_number(label, "answer")), "answer"))

    def law(self, x: Any) -> Distribution:
        """Return the exact law of the output's position for a label.

        Args:
            x: One of the labels, as a number.

        Raises:
            InvalidRequest: If x is no label.
        """
        return self.row(self.find_row(x))

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return the budget of every comparison.

        Args:
            epsilon: One number >= 0, or a mapping (pair of audited rows) -> number.

        Raises:
            InvalidRequest: If a budget is negative or no number, or if a mapping leaves out a pair
                of audited rows or names another one.
        """
        return self.audit_rows.budgets(epsilon)

    def comparisons(self) -> Iterable[Comparison]:
        """Yield every two of the rows that show all ratios."""
        return self.audit_rows.comparisons()

    def extremes(self) -> Iterable[Comparison]:
        """Yield the rows that give each output most and least."""
        return self.audit_rows.extremes()

    def certified_form(self) -> Channel:
        """Return the channel that a certificate holds: a row for every label.

        Raises:
            InvalidRequest: If there are more than 4·10^6 masses.
        """
        return self._rows(np.arange(self.labels.k))

    @property
    def unbiased_means(self) -> tuple[Rationals, Rationals]:
        """Return (published values, labels). An unbiased mechanism has the labels as means."""
        outputs = read_rationals(self.outputs.tolist(), "outputs")
        labels = read_rationals(self.labels.values.tolist(), "labels")
        return outputs, labels

    @property
    def drawable(self) -> bool:
        """Return whether labels and outputs are few enough for a picture."""
        return max(self.labels.k, self.outputs.size) <= _MAX_DRAWN_LABELS

    def describe(self) -> str:
        """Describe the mechanism in one line."""
        y = self.labels.values
        count = f"{y.size} labels in [{y[0]:g}, {y[-1]:g}]"
        outputs = f"{self.outputs.size} outputs"
        return f"RandomizedResponse on {count} with {outputs}, any two labels neighbours"

    def __repr__(self) -> str:
        parameters = f"{self.outputs.size} outputs, epsilon={float(self.epsilon):g}"
        return f"{self.name}({self.labels!r}, {parameters})"


def round_odds_down(epsilon: Real) -> RationalPair:
    """Return the largest multiple of 2^-64 that is at most e^ε, and ε as an exact number.

    Args:
        epsilon: The budget, 0 < ε <= 700.

    Raises:
        InvalidRequest: If epsilon is not a number in (0, 700].
    """
    budget = read_positive(epsilon, "epsilon")
    if budget > _MAX_EPSILON:
        must("epsilon", f"at most {_MAX_EPSILON}", epsilon)
    odds, _ = exp_interval(budget, _ODDS_BITS)
    return odds, budget


def rr_on_bins(
    labels: Labels, starts: ArrayLike, values: ArrayLike, epsilon: Real
) -> RandomizedResponse:
    """Build RR-on-Bins (Algorithm 1).

    Args:
        labels: The labels, with their prior.
        starts: The first label position of each bin, shape (d,).
        values: The output of each bin, shape (d,).
        epsilon: The budget ε > 0.

    Returns:
        The mechanism.

    Raises:
        InvalidRequest: If starts does not begin with 0 or is not increasing within 0..k-1, if there
            is not one finite value for each bin, or if epsilon is not in (0, 700].
    """
    first_positions = np.asarray(starts, dtype=np.int64)
    outputs = np.array(values, dtype=float)
    if (
        first_positions.ndim != 1
        or [*first_positions[:1]] != [0]  # An empty array has no first position.
        or not (np.diff(first_positions) > 0).all()
        or first_positions[-1] >= labels.k
    ):
        must(
            "starts",
            f"increasing positions in 0..{labels.k - 1} that begin with 0",
            first_positions,
        )
    if outputs.shape != first_positions.shape or not np.isfinite(outputs).all():
        must("values", f"{first_positions.size} finite numbers", outputs)
    own_outputs = np.searchsorted(first_positions, np.arange(labels.k), side="right") - 1
    odds, budget = round_odds_down(epsilon)
    return RandomizedResponse(
        labels, outputs, own_outputs.astype(np.int64), odds, epsilon=budget, name="RR-on-Bins"
    )


def rr_k_ary(labels: Labels, epsilon: Real) -> RandomizedResponse:
    """Build k-ary randomized response over all labels.

    Args:
        labels: The labels with their prior.
        epsilon: The budget ε > 0.

    Raises:
        InvalidRequest: If epsilon is not in (0, 700].
    """
    return rr_top_k(labels, labels.k, epsilon, "RR")


def rr_top_k(labels: Labels, count: int, epsilon: Real, name: str = "") -> RandomizedResponse:
    """Build RRTop-k: randomized response over the likeliest labels.

    For any other label the output is uniform among the likeliest ones.

    Args:
        labels: The labels with their prior. Of equally likely labels the smaller one is taken.
        count: The number of likeliest labels.
        epsilon: The budget ε > 0.
        name: The name of the mechanism in reports. Default: "RRTop-k".

    Returns:
        The mechanism.

    Raises:
        InvalidRequest: If count is no integer from 1 to k, or epsilon is not in (0, 700].
    """
    label_count = read_integer(count, "count", 1, labels.k)
    top_positions = np.sort(np.argsort(-labels.prior, kind="stable")[:label_count])
    own_outputs = np.full(labels.k, -1, dtype=np.int64)
    own_outputs[top_positions] = np.arange(label_count)
    odds, budget = round_odds_down(epsilon)
    return RandomizedResponse(
        labels,
        outputs=labels.values[top_positions],
        own=own_outputs,
        odds=odds,
        epsilon=budget,
        name=name or f"RRTop-{label_count}",
    )


def rr_with_prior(labels: Labels, epsilon: Real) -> RandomizedResponse:
    """Build RRWithPrior: RRTop-k with the best k.

    The best k is the smallest that maximises Pr[o = y] = e^ε/(e^ε + k - 1) Σ p over the k likeliest
    labels.

    Args:
        labels: The labels with their prior.
        epsilon: The budget ε > 0.

    Raises:
        InvalidRequest: If epsilon is not in (0, 700].
    """
    odds, _ = round_odds_down(epsilon)
    # top_masses[i] is the prior mass of the i + 1 likeliest labels.
    top_masses = np.cumsum(np.sort(labels.prior)[::-1])
    correct_masses = top_masses / (float(odds) + np.arange(labels.k))
    best_count = int(np.argmax(correct_masses)) + 1
    return rr_top_k(labels, best_count, epsilon, "RRWithPrior")
