"""Define the question of a label randomizer: k labels, and a prior on them.

A label is a number that one person wants to hide, such as a rating or an age. The paper is Ghazi et
al. 2023, "Regression with Label Differential Privacy".

    paper                       code
    𝒴 = {y^1 < ... < y^k}       values (k,)
    P                           prior (k,)
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

MAX_LABEL_SIZE = 1e100  # Larger labels are refused, because their squares must stay finite.
_MAX_PRIOR_WEIGHT = 1e290  # A larger weight is refused, because the sum could overflow.
_MAX_SUM_ERROR = 1e-12  # A stored prior is normalised if its sum differs from 1 by more than this.


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Labels(OneLine):
    """Labels and their prior. Build it with arrays, or with `uniform`, `parse`, `read`.

    Args:
        values: A text or the path of a CSV file, which `parse` reads, such as "0..20" or "0,1,5".
            Or an array (k,), strictly increasing, at most 1e100 in size.
        prior: (k,) weights >= 0, not all zero, which are divided by their sum; "uniform"; or None
            for the weights of the file, else uniform. A list of weights is in the order in which
            the text or file lists the labels.

    Raises:
        InvalidRequest: If the labels are not increasing or larger than 1e100 in size, or the prior
            has not one weight >= 0 for each label, or has only zeros.

    >>> Labels("4,0,1", prior=[3, 1, 2]).prior.round(3).tolist()
    [0.167, 0.333, 0.5]
    """

    values: Vector
    prior: Vector
    # Position of each label in the text or file that lists them. None if they were an array, or are
    # listed in increasing order. The class has None; `_from_list` and `with_prior` set it on an
    # object, in `__dict__` because it is frozen. A ClassVar is no field of the dataclass.
    listed_order: ClassVar[tuple[int, ...] | None] = None

    def __init__(self, values: ArrayLike | Path, prior: ArrayLike | None = None) -> None:
        if isinstance(values, (str, Path)):
            labels = Labels.parse(str(values))
            if prior is not None:
                labels = labels.with_prior(prior)
            self.__dict__.update(labels.__dict__)
            return
        y = read_label_values(values)
        # A text becomes a list of weights. Other priors are not changed.
        prior = read_label_prior(prior, y.shape)
        p = np.ones(y.shape)
        if prior is not None:
            p = read_floats(prior, "prior", "a list of numbers", column=True).copy()
            if y.ndim == p.ndim == 1:
                # The weights of a Series or another labelled container are put in the order of y.
                p = align_array(prior, p, answers=y.tolist, name="prior", points_name="labels")
        if y.ndim != 1 or y.size == 0:
            must("labels", "a non-empty list of numbers", f"shape {y.shape}")
        is_valid_label = np.abs(y) <= MAX_LABEL_SIZE
        if not is_valid_label.all():
            constraint = f"finite, at most {MAX_LABEL_SIZE:g} in size"
            must("labels", constraint, y[~is_valid_label][0])
        descents = np.flatnonzero(np.diff(y) <= 0)
        if descents.size:
            first, second = y[descents[0] :][:2]
            must("labels", "strictly increasing", f"{first:g} before {second:g}")
        if p.shape != y.shape:
            must("prior", f"one weight for each of the {y.size} labels", f"shape {p.shape}")
        is_valid_weight = np.isfinite(p) & (p >= 0)
        if not is_valid_weight.all():
            must("prior", "finite weights >= 0", p[~is_valid_weight][0])
        max_weight = float(p.max())
        if not max_weight > 0:
            must("prior", "weights with a positive sum", "0")
        if max_weight > _MAX_PRIOR_WEIGHT:
            p = p / max_weight
        p = p / float(p.sum())
        for array in (y, p):
            array.setflags(write=False)
        self.__dict__.update(values=y, prior=p)

    @classmethod
    def uniform(cls, low: int, high: int) -> Labels:
        """Build the integers low..high, equally likely.

        Args:
            low: The smallest label.
            high: The largest label.

        Raises:
            InvalidRequest: If an end is no integer, if low > high, or if there are too many labels.
        """
        low = read_integer_text(low)
        high = read_integer_text(high)
        if not (is_integer(low) and is_integer(high) and 0 <= high - low < MAX_LABELS):
            constraint = f"LOW..HIGH with LOW <= HIGH and at most {MAX_LABELS} values"
            must("labels", constraint, (low, high))
        return cls(np.arange(low, high + 1, dtype=float))

    @classmethod
    def parse(cls, text: str) -> Labels:
        """Parse labels.

        Args:
            text: "0..20", "0..200000:1000", "0,1,5" (in any order), or the path of a CSV file (as
                of `read`).

        Raises:
            InvalidRequest: If the text has none of these forms, a label is no number or occurs
                twice, or a weight is negative.
            CorruptFile: If the file is no table.
        """
        return cls._from_list(read_label_text(text))

    @classmethod
    def read(cls, path: Path | str) -> Labels:
        """Read labels, with their weights in a second column, from a CSV file.

        Args:
            path: A file with or without a header; its labels may have any order.

        Raises:
            InvalidRequest: If a cell is no number, a weight is negative, or a label occurs twice.
                The message names line and column.
            CorruptFile: If the file is no table.
        """
        return cls._from_list(read_label_file(path))

    @classmethod
    def restore(cls, values: Vector, prior: Vector) -> Labels:
        """Restore the labels of a mechanism file, whose prior is already divided by its sum.

        Args:
            values: Labels in increasing order. Shape (k,).
            prior: Probability of each label, with the sum 1. Shape (k,).

        Raises:
            InvalidRequest: If the labels are not increasing and finite, or the prior has not one
                weight >= 0 for each label.
        """
        labels = cls(values, prior)
        is_normalised = abs(prior.sum() - 1) <= _MAX_SUM_ERROR
        labels.__dict__["prior"] = prior if is_normalised else prior / prior.sum()
        return labels

    @classmethod
    def _from_list(cls, label_list: LabelList) -> Labels:
        """Build labels that remember their order in a list, which separate weights follow."""
        labels = cls(label_list.values, label_list.weights)
        if label_list.order is not None:
            labels.__dict__["listed_order"] = label_list.order
        return labels

    def with_prior(self, prior: Any) -> Labels:
        """Return the same labels with other weights.

        Args:
            prior: Weights, which follow the labels as they were listed; a Series or another
                labelled container is aligned by its index.

        Raises:
            InvalidRequest: If there is not one finite weight >= 0 for each label, or all weights
                are 0.
        """
        order = self.listed_order
        if order is None:
            return Labels(self.values, prior)
        weights = read_floats(
            read_label_prior(prior, (self.k,)), "prior", "a list of numbers", column=True
        )
        if weights.shape != (self.k,):
            must("prior", f"one weight for each of the {self.k} labels", f"shape {weights.shape}")
        # order[i] is the position of label i in the list. A labelled container is first put in the
        # order of the list, in which unlabelled weights already are.
        listed_values = np.empty(self.k)
        listed_values[list(order)] = self.values
        aligned_weights = align_array(
            prior, weights, answers=listed_values.tolist, name="prior", points_name="labels"
        )
        labels = Labels(self.values, aligned_weights[list(order)])
        labels.__dict__["listed_order"] = order
        return labels

    @property
    def k(self) -> int:
        """Return the number of labels."""
        return int(self.values.size)

    def find_positions(self, values: ArrayLike, name: str = "every label") -> Positions:
        """Find the position of each value among the labels. Shape (n,).

        Args:
            values: Values to find, each equal to a label. Shape (n,).
            name: Name of the values in errors.

        Raises:
            InvalidRequest: If a value is no label.
        """
        constraint = f"one of the {self.k} labels from {self.values[0]:g} to {self.values[-1]:g}"
        floats = read_floats(values, name, constraint, column=True)
        dtype = getattr(values, "dtype", None)
        positions = find_nearest_positions(self.values, floats, dtype)
        unknown_values = floats[positions < 0]
        if unknown_values.size:
            must(name, constraint, f"{unknown_values[0]:g}")
        return positions

    def to_dict(self) -> Record:
        """Return values and prior as data for JSON, lists of floats of length k."""
        return {"values": self.values.tolist(), "prior": self.prior.tolist()}

    def __repr__(self) -> str:
        return f"Labels({self})"

    def __str__(self) -> str:
        return f"{self.k} labels {self.values[0]:g}..{self.values[-1]:g}"
