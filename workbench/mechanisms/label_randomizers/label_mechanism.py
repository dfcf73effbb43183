"""What every label randomizer is as a mechanism: an exact law for every label, all labels neighbours of each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import exact
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.mechanism import Budget, Comparison, Label, Segment
from workbench.mechanisms.quantization import rationals
from workbench.mechanisms.shown_mechanism import ShownMechanism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LabelMechanism", "LossFunction"]

LossFunction: TypeAlias = Callable[[Any, Any], NDArray[np.float64]]  # (outputs, labels) -> losses, broadcast

_MASSES = 4_000_000  # of a whole channel


class LabelMechanism(ShownMechanism):
    """Subclasses give labels (or label_values (k,)), outputs (m,), row(position) and audit_rows."""

    one_sided: ClassVar[bool] = False
    segments: ClassVar[tuple[Segment, ...]] = ()

    labels: Labels

    @property
    def label_values(self) -> NDArray[np.float64]:
        """The labels, increasing. Shape (k,)."""
        return self.labels.values

    @property
    def inputs(self) -> NDArray[np.float64]:
        """The labels."""
        return self.label_values

    @abstractmethod
    def row(self, position: int) -> Distribution:
        """The exact law of the output for the label at a position."""

    @property
    @abstractmethod
    def audit_rows(self) -> Channel:
        """Rows that show every ratio of masses: all, or one for every kind of label."""

    @property
    @abstractmethod
    def matrix(self) -> NDArray[np.float64]:
        """Pr[o|y] in floats. Shape (k, m)."""

    def losses(self, loss: LossFunction) -> NDArray[np.float64]:
        """E ℓ(o, y) of every label y, outputs of mass 0 left out; of ℓ(o, y) = o - y its bias. Shape (k,)."""
        matrix, outputs = self.matrix, np.asarray(self.outputs, dtype=float)
        table = loss(outputs[None, :], self.label_values[:, None])
        return np.asarray((matrix * np.where(matrix > 0, table, 0.0)).sum(axis=1))

    def loss(self, loss: LossFunction, prior: ArrayLike | None = None) -> float:
        """E ℓ(o, y) under a prior (k,), by default the labels' own."""
        p = self.labels.prior if prior is None else np.asarray(prior, dtype=float)
        return float(p[p > 0] @ self.losses(loss)[p > 0])

    def positions(self, values: ArrayLike) -> NDArray[np.intp]:
        """Where each value stands among the labels. Raises InvalidRequest for a value that is none of them."""
        return self.labels.positions(values)

    def sample(self, values: ArrayLike, source: Source | None = None) -> NDArray[Any]:
        """A randomized copy of labels, from the exact laws. Raises InvalidRequest for a value that is no label."""
        present, which = np.unique(self.positions(values).reshape(-1), return_inverse=True)
        if not present.size:
            return np.asarray(self.outputs[:0])
        return np.asarray(self.outputs[Sampler([self.row(int(at)) for at in present], source).draw_from(which)])

    def position(self, label: Any) -> int:
        """Where a label stands. Raises InvalidRequest for a value that is none."""
        values = self.label_values
        at = None if label is None else float(exact(label, "answer"))
        place = -1 if at is None else int(np.searchsorted(values, at))
        if at is None or place == values.size or values[place] != at:
            where = f"one of the {values.size} labels from {values[0]:g} to {values[-1]:g}"
            InvalidRequest.must("answer", where, label)
        return place

    def law(self, x: Any) -> Distribution:
        """The exact law of the output's position for a label. Raises InvalidRequest."""
        return self.row(self.position(x))

    def budgets(self, epsilon: Budget) -> dict[Label, Fraction]:
        """The budget of every comparison. Raises InvalidRequest."""
        return self.audit_rows.budgets(epsilon)

    def comparisons(self) -> Iterable[Comparison]:
        """Every two of the rows that show all ratios."""
        return self.audit_rows.comparisons()

    def extremes(self) -> Iterable[Comparison]:
        """The rows that give each output most and least."""
        return self.audit_rows.extremes()

    def draws(self, x: Any, count: int, source: Source) -> NDArray[Any]:
        """Published values for the label x. Shape (count,)."""
        return np.asarray(self.outputs)[Sampler(self.law(x), source).draw(count)]

    def whole_channel(self) -> Channel:
        """One row for every label, every two of them neighbours. Raises InvalidRequest beyond 4·10^6 masses."""
        k, m = self.label_values.size, self.outputs.size
        if k * m > _MASSES:
            InvalidRequest.must("labels times outputs", f"at most {_MASSES} for a whole channel", k * m)
        return Channel(tuple(self.row(position) for position in range(k)))

    def certified_form(self) -> Channel:
        """What a certificate holds of it: the whole channel. Raises InvalidRequest."""
        return self.whole_channel()

    @property
    def unbiased_means(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """(what is published, the labels), which the mean is where the mechanism is unbiased."""
        return rationals(self.outputs.tolist(), "outputs"), rationals(self.label_values.tolist(), "labels")

    def figure(self) -> Figure:
        """Pr[o|y] as marks."""
        from workbench.io.figures import channel_plot

        matrix = self.whole_channel().matrix
        return channel_plot(self.label_values, self.outputs, matrix, self.describe())

    @property
    def drawable(self) -> bool:
        """Whether labels and outputs are few enough."""
        return self.label_values.size <= 400 >= len(self.outputs)

    def describe(self) -> str:
        """One line."""
        low, high = self.label_values[0], self.label_values[-1]
        count = f"{self.label_values.size} labels in [{low:g}, {high:g}]"
        return f"{type(self).__name__} on {count} with {self.outputs.size} outputs, any two labels neighbours"
