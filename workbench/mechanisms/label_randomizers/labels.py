"""The question behind a label randomizer: which labels there are, and how often each is expected.

paper ("Regression with Label Differential Privacy")    code
𝒴 = {y^1 < ... < y^k}                                    values (k,)
P                                                        prior (k,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.exact.plain import is_whole, plain_numbers
from workbench.io.files import is_there, read_rows
from workbench.io.records import float_array, floats

__all__ = ["Labels"]

MAX_LABELS = 50_000_000
LARGEST = 1e100  # in size: squares of labels must stay finite


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Labels:
    """Labels and their prior. Build it with arrays, or with `uniform`, `counted`, `read`.

    values: (k,) at most 1e100 in size, strictly increasing; prior: (k,) weights >= 0, not all zero, divided by their
    sum; None is uniform. Raises InvalidRequest.
    """

    values: NDArray[np.float64]
    prior: NDArray[np.float64]

    def __init__(self, values: ArrayLike, prior: ArrayLike | None = None) -> None:
        y = plain_numbers(values, "labels", "a list of numbers").copy()
        p = np.ones(y.shape) if prior is None else plain_numbers(prior, "prior", "a list of numbers").copy()
        if y.ndim != 1 or y.size == 0:
            InvalidRequest.must("labels", "a non-empty list of numbers", f"shape {y.shape}")
        if not (np.abs(y) <= LARGEST).all():
            InvalidRequest.must("labels", f"finite, at most {LARGEST:g} in size", y[~(np.abs(y) <= LARGEST)][0])
        if (np.diff(y) <= 0).any():
            at = int(np.flatnonzero(np.diff(y) <= 0)[0])
            InvalidRequest.must("labels", "strictly increasing", f"{y[at]:g} before {y[at + 1]:g}")
        if p.shape != y.shape:
            InvalidRequest.must("prior", f"one weight for each of the {y.size} labels", f"shape {p.shape}")
        if not np.isfinite(p).all() or (p < 0).any():
            InvalidRequest.must("prior", "finite weights >= 0", p[~(np.isfinite(p) & (p >= 0))][0])
        largest = float(p.max())
        if not largest > 0:
            InvalidRequest.must("prior", "weights with a positive sum", "0")
        if largest > 1e290:
            p = p / largest  # the sum could overflow
        p = p / float(p.sum())
        for array in (y, p):
            array.setflags(write=False)
        object.__setattr__(self, "values", y)
        object.__setattr__(self, "prior", p)

    @classmethod
    def uniform(cls, low: int, high: int) -> Labels:
        """The integers low..high, equally likely. Raises InvalidRequest."""
        ends = [end for end in (low, high) if is_whole(end)]
        if len(ends) < 2 or not 0 <= high - low < MAX_LABELS:
            InvalidRequest.must(
                "labels", f"LOW..HIGH with LOW <= HIGH and at most {MAX_LABELS} values", f"{low}..{high}"
            )
        return cls(np.arange(low, high + 1, dtype=float))

    @classmethod
    def parse(cls, text: str) -> Labels:
        """The labels of "0..20" or "uniform:0..20", or of a CSV file (`read`). Raises InvalidRequest."""
        if not isinstance(text, str):
            return cls.read(text)
        spelled = text.removeprefix("uniform:")
        low, dots, high = spelled.partition("..")
        if dots and not is_there(text):
            try:
                return cls.uniform(int(low), int(high))
            except ValueError as error:
                if isinstance(error, InvalidRequest):
                    raise
                InvalidRequest.must("labels", "LOW..HIGH with integers, such as 0..20", repr(text))
        return cls.read(Path(text))

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Labels and weights from a CSV of two columns, with or without a header line; any order of the labels.

        Raises InvalidRequest, naming the line; CorruptFile.
        """
        rows = [(number, row) for number, row in enumerate(read_rows(path, "prior"), 1) if any(c.strip() for c in row)]
        weights: dict[float, float] = {}
        for position, (number, row) in enumerate(rows):
            if position == 0 and row[0].strip()[:1].isalpha() and not _is_number(row[0]):
                continue  # a header
            try:
                label, weight = (float(cell.replace("_", "?")) for cell in row)  # Python's own 1_000 is no number
            except ValueError:
                InvalidRequest.must(f"line {number} of {path.name}", "a label and a weight", ",".join(row))
            if label in weights:
                InvalidRequest.must(f"line {number} of {path.name}", "a label that was not given before", row[0])
            if not math.isfinite(label) or not 0 <= weight < math.inf:
                InvalidRequest.must(f"line {number} of {path.name}", "a finite label and weight >= 0", ",".join(row))
            weights[label] = weight
        if not weights:
            InvalidRequest.must(path.name, "a CSV with at least one label and its weight", "none")
        ordered = sorted(weights)
        return cls(ordered, [weights[label] for label in ordered])

    def record(self) -> dict[str, Any]:
        """Entries of a mechanism's record: labels and prior as strings that read back the same."""
        return {"labels": floats(self.values), "prior": floats(self.prior)}

    @classmethod
    def from_record(cls, data: Any) -> Labels:
        """The labels and prior among the entries of a record. Raises CorruptFile, InvalidRequest."""
        values, prior = float_array(data["labels"], "labels"), float_array(data["prior"], "prior")
        read = cls(values, prior)
        object.__setattr__(read, "prior", prior / prior.sum() if abs(prior.sum() - 1) > 1e-12 else prior)
        return read

    @property
    def k(self) -> int:
        """Number of labels."""
        return int(self.values.size)

    def positions(self, values: ArrayLike) -> NDArray[np.intp]:
        """Where each value stands among the labels. Raises InvalidRequest for a value that is none of them."""
        given = plain_numbers(values, "every label", "one of the mechanism's labels")
        at = np.minimum(np.searchsorted(self.values, given), self.k - 1)
        wrong = self.values[at] != given
        if wrong.any():
            InvalidRequest.must("every label", "one of the mechanism's labels", f"{given[wrong][0]:g}")
        return at

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"values": self.values.tolist(), "prior": self.prior.tolist()}

    def __repr__(self) -> str:
        return f"Labels({self.k} from {self.values[0]:g} to {self.values[-1]:g})"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
