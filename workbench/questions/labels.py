"""The question behind a label randomizer: which labels there are, and how often each is expected.

paper ("Regression with Label Differential Privacy")    code
𝒴 = {y^1 < ... < y^k}                                    values (k,)
P                                                        prior (k,)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.label_lists import (
    MAX_LABELS,
    LabelList,
    read_label_file,
    read_label_text,
    read_label_values,
)
from workbench.data.labels import align_array
from workbench.data.plain import is_integer, read_floats, read_integer_text
from workbench.data.priors import read_label_prior
from workbench.data.tolerance import find_nearest_positions
from workbench.errors import must
from workbench.exact.arrays import Positions, Vector
from workbench.exact.objects import Record
from workbench.io.shown import OneLine

MAX_LABEL_SIZE = 1e100  # in size: squares of labels must stay finite


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
        y = read_label_values(values)
        prior = read_label_prior(prior, y.shape)
        p = np.ones(y.shape)
        if prior is not None:
            p = read_floats(prior, "prior", "a list of numbers", column=True).copy()
            if y.ndim == p.ndim == 1:
                p = align_array(prior, p, y.tolist, "prior", "labels")
        if y.ndim != 1 or y.size == 0:
            must("labels", "a non-empty list of numbers", f"shape {y.shape}")
        if (large := y[~(np.abs(y) <= MAX_LABEL_SIZE)]).size:
            must("labels", f"finite, at most {MAX_LABEL_SIZE:g} in size", large[0])
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
        low, high = read_integer_text(low), read_integer_text(high)
        if not (is_integer(low) and is_integer(high) and 0 <= high - low < MAX_LABELS):
            must(
                "labels", f"LOW..HIGH with LOW <= HIGH and at most {MAX_LABELS} values", (low, high)
            )
        return cls(np.arange(low, high + 1, dtype=float))

    @classmethod
    def parse(cls, text: str) -> Labels:
        """The labels of "0..20", "0..200000:1000" or "0,1,5" (in any order), or of a CSV file (`read`).

        Raises InvalidRequest, CorruptFile.
        """
        return cls._of_list(read_label_text(text))

    @classmethod
    def read(cls, path: Path | str) -> Labels:
        """Labels, with their weights in a second column, from a CSV with or without a header; in any order.

        Raises InvalidRequest, naming line and column; CorruptFile.
        """
        return cls._of_list(read_label_file(path))

    @classmethod
    def restore(cls, values: Vector, prior: Vector) -> Labels:
        """Those of a file, whose prior is divided by its sum already. Raises InvalidRequest."""
        read = cls(values, prior)
        read.__dict__["prior"] = prior / prior.sum() if abs(prior.sum() - 1) > 1e-12 else prior
        return read

    @classmethod
    def _of_list(cls, listed: LabelList) -> Labels:
        """Make labels that remember their order in a list, which weights given apart follow."""
        labels = cls(listed.values, listed.weights)
        if listed.order is not None:
            labels.__dict__["listed_order"] = listed.order
        return labels

    def with_prior(self, prior: Any) -> Labels:
        """The same labels with other weights, which follow the labels as they were listed.

        Weights under labels of their own are aligned by these. Raises InvalidRequest.
        """
        order = self.listed_order
        if order is None:
            return Labels(self.values, prior)
        weights = read_floats(
            read_label_prior(prior, (self.k,)), "prior", "a list of numbers", column=True
        )
        if weights.shape != (self.k,):
            must("prior", f"one weight for each of the {self.k} labels", f"shape {weights.shape}")
        listed = np.empty(self.k)
        listed[list(order)] = self.values
        same = Labels(
            self.values,
            align_array(prior, weights, listed.tolist, "prior", "labels")[list(order)],
        )
        same.__dict__["listed_order"] = order
        return same

    @property
    def k(self) -> int:
        """Number of labels."""
        return int(self.values.size)

    def find_positions(self, values: ArrayLike, name: str = "every label") -> Positions:
        """Where each value stands among the labels. Raises InvalidRequest for a value that is none of them."""
        words = f"one of the {self.k} labels from {self.values[0]:g} to {self.values[-1]:g}"
        given = read_floats(values, name, words, column=True)
        at = find_nearest_positions(self.values, given, getattr(values, "dtype", None))
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
