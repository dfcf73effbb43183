"""Read labels and their weights from texts, files and containers.

    accepted                         read as
    "0..20", "0..200000:1000"        the numbers from LOW to HIGH, one STEP apart
    "0,1,5"                          numbers in any order
    CSV of one column                numbers in any order
    CSV of two columns               numbers in any order, and their weights
    list, array, Series, table       numbers in increasing order; a float32 means the decimal that
                                     is printed for it

A text or a file may list the labels in any order. A separate list of weights then has this order,
too, and `LabelList.order` puts it into increasing order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.intervals import split_ends
from workbench.data.plain import read_floats
from workbench.data.points import check_last_step, read_steps
from workbench.data.tables import read_table
from workbench.errors import must
from workbench.exact.arrays import Vector
from workbench.exact.distribution import to_common_denominator
from workbench.exact.numbers import parse_rational, read_number, read_positive
from workbench.io.files import names_file

MAX_LABELS = 50_000_000  # More labels are refused: an array of their floats has 400 MB.
# Ranges with a larger integer end are refused: their floats would not be correctly rounded.
_MAX_EXACT_INTEGER = 1 << 53


@dataclass(frozen=True)
class LabelList:
    """Labels as a text or file lists them.

    Attributes:
        values: Labels in increasing order. The question refuses the duplicates of a text later.
        weights: Weight of each label, in the order of `values`. None without weights.
        order: Position in the text or file of each label of `values`. Example: (1, 0) for "5,1".
            None if the text or file lists the labels in increasing order.
    """

    values: Sequence[float] | Vector
    weights: Sequence[float] | None = None
    order: tuple[int, ...] | None = None


def read_label_text(text: Any) -> LabelList:
    """Read labels from a text, or from the file that it names.

    Args:
        text: "LOW..HIGH", "LOW..HIGH:STEP", "a,b,c", or the name of a CSV file.

    Raises:
        InvalidRequest: The text is none of these.
        CorruptFile: The file is no table.
    """
    is_list = isinstance(text, str) and (".." in text or "," in text)
    if not is_list or names_file(text):
        # A single number is no list, and is not taken for the name of a file.
        if parse_rational(text) is not None:
            must("labels", 'LOW..HIGH, "a,b,c" or a CSV file', repr(text))
        return read_label_file(text)
    if ".." in text:
        return LabelList(_read_range(text))
    constraint = "a number (for names, use `design channel --neighbours all`)"
    listed_values = [
        float(read_number(part, "every label", constraint)) for part in text.split(",")
    ]
    return LabelList(sorted(listed_values), order=_order_of(listed_values))


def read_label_file(path: Path | str) -> LabelList:
    """Read a CSV file of labels, or of labels and weights, with or without a header.

    Args:
        path: Path of the file.

    Raises:
        InvalidRequest: A cell is no number, a weight is negative, or a label occurs twice.
        CorruptFile: The file is no table.
    """
    weights: dict[Fraction, Fraction] = {}
    rows = read_table(path, "labels")
    for row in rows:
        if len(row) != len(rows[0]) or len(row) > 2:
            constraint = "a label, or a label and a weight as in every line"
            must(row[0].place, constraint, ",".join(row))
        label = read_number(row[0], "a label")
        weight = read_positive(row[1], "a weight", or_zero=True) if row[1:] else Fraction(1)
        if label in weights:
            must("label", "one that was not given before", row[0])
        weights[label] = weight
    if not weights:
        must(Path(path).name, "a CSV with at least one label", "none")
    labels = sorted(weights)
    shares = [float(weights[label]) for label in labels]
    return LabelList([*map(float, labels)], weights=shares, order=_order_of([*weights]))


def read_label_values(values: Any) -> Vector:
    """Read labels from a container as floats. Shape as the container.

    The question checks later that the labels are increasing.

    Args:
        values: Numbers. A float32 means the decimal that is printed for it.

    Raises:
        InvalidRequest: A label is no number.
    """
    numbers = read_floats(values, "labels", "a list of numbers", column=True).copy()
    if getattr(values, "dtype", None) in (np.float16, np.float32):
        decimal_values = [float(str(value)) for value in np.asarray(values).reshape(-1)]
        return np.array(decimal_values).reshape(numbers.shape)
    return numbers


def _read_range(text: str) -> Vector:
    """Read LOW..HIGH or LOW..HIGH:STEP. Raises InvalidRequest."""
    split_ends(text, "labels")
    ends = read_steps(text)
    if ends is not None:
        check_last_step(ends, "labels", text)
        (low, high, step), scale = to_common_denominator(ends)
        is_short = high - low < MAX_LABELS * step
        if is_short and max(-low, high) < _MAX_EXACT_INTEGER:
            return np.arange(low, high + 1, step) / scale
    constraint = f"LOW..HIGH or LOW..HIGH:STEP with LOW <= HIGH and at most {MAX_LABELS} values"
    return must("labels", constraint, repr(text))


def _order_of(listed_values: Sequence[Any]) -> tuple[int, ...] | None:
    """Return the positions of the values from the smallest to the largest value.

    None if the list is increasing. Example: [5, 1] -> (1, 0).
    """
    order = tuple(sorted(range(len(listed_values)), key=listed_values.__getitem__))
    if order == tuple(range(len(listed_values))):
        return None
    return order
