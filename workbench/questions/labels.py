"""The question behind a label randomizer: which labels there are, and how often each is expected.

paper ("Regression with Label Differential Privacy")    code
𝒴 = {y^1 < ... < y^k}                                    values (k,)
P                                                        prior (k,)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.labels import aligned_array
from workbench.data.plain import is_whole, plain_numbers, spelled_integer
from workbench.data.points import steps
from workbench.data.tables import read_table
from workbench.data.tolerance import nearest_positions
from workbench.errors import must
from workbench.exact.arrays import Positions, Vector
from workbench.exact.distribution import over_common
from workbench.exact.numbers import exact, positive, rational
from workbench.exact.objects import Record
from workbench.io.files import names_file
from workbench.io.shown import OneLine

MAX_LABELS = 50_000_000
LARGEST = 1e100  # in size: squares of labels must stay finite


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Labels(OneLine):
    """Labels and their prior. Build it with arrays, or with `uniform`, `counted`, `read`.

    values: "0..20", "0,1,5" or a CSV file (`parse`), or (k,) at most 1e100 in size, strictly increasing.
    prior: (k,) weights >= 0, not all zero, divided by their sum; "uniform", or None: those of the file, else uniform.
    A list of weights follows the labels as a text or file lists them.
    Raises InvalidRequest.

    >>> Labels("4,0,1", prior=[3, 1, 2]).prior.round(3).tolist()
    [0.167, 0.333, 0.5]
    """

    values: Vector
    prior: Vector
    listed_order: ClassVar[tuple[int, ...] | None] = None  # Where a text or file lists each label.

    def __init__(self, values: ArrayLike | Path, prior: ArrayLike | None = None) -> None:
        if isinstance(values, (str, Path)):
            read = Labels.parse(str(values))
            self.__dict__.update((read if prior is None else read.with_prior(prior)).__dict__)
            return
        y = plain_numbers(values, "labels", "a list of numbers", column=True).copy()
        prior = _weights(prior, y.shape)
        if getattr(values, "dtype", None) in (np.float16, np.float32):
            y = np.array([float(str(value)) for value in np.asarray(values).reshape(-1)]).reshape(y.shape)
        p = np.ones(y.shape)
        if prior is not None:
            p = plain_numbers(prior, "prior", "a list of numbers", column=True).copy()
            if y.ndim == p.ndim == 1:
                p = aligned_array(prior, p, y.tolist, "prior", "labels")
        if y.ndim != 1 or y.size == 0:
            must("labels", "a non-empty list of numbers", f"shape {y.shape}")
        if (large := y[~(np.abs(y) <= LARGEST)]).size:
            must("labels", f"finite, at most {LARGEST:g} in size", large[0])
        if (falling := np.flatnonzero(np.diff(y) <= 0)).size:
            first, second = y[falling[0] :][:2]
            must("labels", "strictly increasing", f"{first:g} before {second:g}")
        if p.shape != y.shape:
            must("prior", f"one weight for each of the {y.size} labels", f"shape {p.shape}")
        if (wrong := p[~(np.isfinite(p) & (p >= 0))]).size:
            must("prior", "finite weights >= 0", wrong[0])
        largest = float(p.max())
        if not largest > 0:
            must("prior", "weights with a positive sum", "0")
        if largest > 1e290:
            p = p / largest  # the sum could overflow
        p = p / float(p.sum())
        for array in (y, p):
            array.setflags(write=False)
        self.__dict__.update(values=y, prior=p)

    @classmethod
    def uniform(cls, low: int, high: int) -> Labels:
        """The integers low..high, equally likely. Raises InvalidRequest."""
        low, high = spelled_integer(low), spelled_integer(high)
        if not (is_whole(low) and is_whole(high) and 0 <= high - low < MAX_LABELS):
            must("labels", f"LOW..HIGH with LOW <= HIGH and at most {MAX_LABELS} values", (low, high))
        return cls(np.arange(low, high + 1, dtype=float))

    @classmethod
    def parse(cls, text: str) -> Labels:
        """The labels of "0..20", "0..200000:1000" or "0,1,5" (in any order), or of a CSV file (`read`).

        Raises InvalidRequest, CorruptFile.
        """
        if not isinstance(text, str) or names_file(text) or (".." not in text and "," not in text):
            if rational(text) is not None:
                must("labels", 'LOW..HIGH, "a,b,c" or a CSV file', repr(text))
            return cls.read(text)
        if ".." not in text:
            number = "a number (names are counted: 0, 1, 2, ...)"
            listed = [float(exact(part, "every label", number)) for part in text.split(",")]
            return cls(sorted(listed))._listed_as(listed)
        known = steps(text)
        if known is not None:
            (low, high, step), scale = over_common(known)
            fits = high - low < MAX_LABELS * step
            if fits and max(-low, high) < 1 << 53:  # then quotients are correctly rounded
                return cls(np.arange(low, high + 1, step) / scale)
        wanted = f"LOW..HIGH or LOW..HIGH:STEP with LOW <= HIGH and at most {MAX_LABELS} values"
        return must("labels", wanted, repr(text))

    @classmethod
    def read(cls, path: Path | str) -> Labels:
        """Labels, with their weights in a second column, from a CSV with or without a header; in any order.

        Raises InvalidRequest, naming line and column; CorruptFile.
        """
        weights = {}
        rows = read_table(path, "labels")
        for row in rows:
            if len(row) != len(rows[0]) or len(row) > 2:
                must(row[0].place, "a label, or a label and a weight as in every line", ",".join(row))
            label, weight = exact(row[0], "a label"), positive(row[1], "a weight", or_zero=True) if row[1:] else 1
            if label in weights:
                must("label", "one that was not given before", row[0])
            weights[label] = Fraction(weight)
        if not weights:
            must(Path(path).name, "a CSV with at least one label", "none")
        labels, shares = zip(*sorted(weights.items()), strict=True)
        return cls([*map(float, labels)], [*map(float, shares)])._listed_as([*weights])

    @classmethod
    def stored(cls, values: Vector, prior: Vector) -> Labels:
        """Those of a file, whose prior is divided by its sum already. Raises InvalidRequest."""
        read = cls(values, prior)
        read.__dict__["prior"] = prior / prior.sum() if abs(prior.sum() - 1) > 1e-12 else prior
        return read

    def _listed_as(self, listed: Sequence[Any]) -> Labels:
        """Remember the order in which these labels were listed; weights given apart follow it."""
        order = tuple(sorted(range(self.k), key=listed.__getitem__))
        if order != tuple(range(self.k)):
            self.__dict__["listed_order"] = order
        return self

    def with_prior(self, prior: Any) -> Labels:
        """The same labels with other weights, which follow the labels as they were listed.

        Weights under labels of their own are aligned by these. Raises InvalidRequest.
        """
        order = self.listed_order
        if order is None:
            return Labels(self.values, prior)
        weights = plain_numbers(_weights(prior, (self.k,)), "prior", "a list of numbers", column=True)
        if weights.shape != (self.k,):
            must("prior", f"one weight for each of the {self.k} labels", f"shape {weights.shape}")
        listed = np.empty(self.k)
        listed[list(order)] = self.values
        same = Labels(self.values, aligned_array(prior, weights, listed.tolist, "prior", "labels")[list(order)])
        same.__dict__["listed_order"] = order
        return same

    @property
    def k(self) -> int:
        """Number of labels."""
        return int(self.values.size)

    def positions(self, values: ArrayLike, name: str = "every label") -> Positions:
        """Where each value stands among the labels. Raises InvalidRequest for a value that is none of them."""
        words = f"one of the {self.k} labels from {self.values[0]:g} to {self.values[-1]:g}"
        given = plain_numbers(values, name, words, column=True)
        at = nearest_positions(self.values, given, getattr(values, "dtype", None))
        if (wrong := given[at < 0]).size:
            must(name, words, f"{wrong[0]:g}")
        return at

    def to_dict(self) -> Record:
        """JSON-ready."""
        return {"values": self.values.tolist(), "prior": self.prior.tolist()}

    def __repr__(self) -> str:
        return f"Labels({self})"

    def __str__(self) -> str:
        return f"{self.k} labels {self.values[0]:g}..{self.values[-1]:g}"


def _weights(prior: Any, shape: tuple[int, ...]) -> Any:
    """Read a prior that is a text: "uniform", or weights. Anything else stays as it is. Raises InvalidRequest."""
    if not isinstance(prior, str):
        return prior
    if prior.strip() == "uniform":
        return np.ones(shape)
    return [float(exact(weight, "every weight of the prior")) for weight in prior.split(",")]
