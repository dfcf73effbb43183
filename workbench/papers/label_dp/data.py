"""The labels of the paper's data sets: loaders of the real files, and stand-ins when they are absent.

| data set | file             | format                                          | labels                        |
|----------|------------------|-------------------------------------------------|-------------------------------|
| Criteo   | CriteoSearchData | tab-separated, no header, 23 fields; the 2nd is | conversions (not -1), clipped |
|          |                  | SalesAmountInEuro, -1 where nothing was bought  | at 400, rounded down          |
| census   | census_1940.csv  | comma-separated, a header naming WKSWORK1       | non-zero weeks, 1..52         |

Criteo Sponsored Search Conversion Log: https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset/
1940 census: https://www.archives.gov/research/census/1940 (an IPUMS extract with WKSWORK1, saved as CSV)

The folder is named by the environment variable WORKBENCH_DATA.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest
from workbench.mechanisms.label_randomizers.labels import Labels

__all__ = ["CENSUS_FILE", "CRITEO_FILE", "DataSet", "census", "criteo", "load_census", "load_criteo"]

CRITEO_FILE, CENSUS_FILE = "CriteoSearchData", "census_1940.csv"
_CRITEO_SOURCE = "https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset/"
_CENSUS_SOURCE = "https://www.archives.gov/research/census/1940"
_TOP = 400  # euro: the 95th percentile, where the paper clips


@dataclass(frozen=True)
class DataSet:
    """Labels with their prior; records: how many; real: whether it was read from the real file."""

    labels: Labels
    records: int
    real: bool

    @property
    def words(self) -> str:
        """For captions."""
        return "the real data" if self.real else "STAND-IN labels fitted to the paper's table"

    @property
    def stand_in(self) -> str:
        """For titles."""
        return "" if self.real else " stand-in"


def load_criteo(path: Path) -> DataSet:
    """The conversion values of the Criteo log, as App. E.1 prepares them. Raises InvalidRequest, naming the line."""
    counts = np.zeros(_TOP + 1, dtype=np.int64)
    for number, row in _rows(path, "\t", "The Criteo log", _CRITEO_SOURCE):
        if len(row) < 2:
            InvalidRequest.must(f"line {number} of {path.name}", "23 tab-separated fields", f"{len(row)}")
        amount = _number(row[1], path, number)
        if amount != -1:
            if not amount >= 0:
                InvalidRequest.must(f"line {number} of {path.name}", "an amount >= 0, or -1 for none", row[1])
            counts[int(min(amount, _TOP))] += 1
    return _counted(np.arange(_TOP + 1.0), counts, path, "conversion")


def load_census(path: Path) -> DataSet:
    """The weeks worked in 1939, non-zero ones only (App. E.2). Raises InvalidRequest, naming the line."""
    counts = np.zeros(53, dtype=np.int64)
    at = -1
    for number, row in _rows(path, ",", "The census extract", _CENSUS_SOURCE):
        if at < 0:
            names = [cell.strip().upper() for cell in row]
            if "WKSWORK1" not in names:
                InvalidRequest.must(path.name, "a CSV whose header names WKSWORK1", ",".join(row))
            at = names.index("WKSWORK1")
            continue
        weeks = _number(row[at] if at < len(row) else "", path, number)
        if weeks not in range(53):
            InvalidRequest.must(f"line {number} of {path.name}", "0..52 weeks", row[at])
        counts[int(weeks)] += 1
    return _counted(np.arange(1.0, 53), counts[1:], path, "non-zero week count")


def criteo() -> DataSet:
    """The real Criteo labels if WORKBENCH_DATA names a folder, else the stand-in. Raises InvalidRequest."""
    folder = os.environ.get("WORKBENCH_DATA")
    return load_criteo(Path(folder) / CRITEO_FILE) if folder else _standin("criteo_standin.csv", 1_386_176)


def census() -> DataSet:
    """The real census labels if WORKBENCH_DATA names a folder, else the stand-in. Raises InvalidRequest."""
    folder = os.environ.get("WORKBENCH_DATA")
    return load_census(Path(folder) / CENSUS_FILE) if folder else _standin("census_standin.csv", 40_466_154)


def _standin(name: str, records: int) -> DataSet:
    """A bundled distribution; records: the paper's training labels, 80 % of its examples, which set ε₁."""
    with resources.as_file(resources.files("workbench.papers").joinpath(f"data/{name}")) as path:
        return DataSet(Labels.read(path), records, False)


def _rows(path: Path, separator: str, what: str, source: str) -> Iterator[tuple[int, list[str]]]:
    if not path.is_file():
        raise InvalidRequest(f"{what} must be in a file named {path.name}; download it from {source}. Got no {path}.")
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, row in enumerate(csv.reader(file, delimiter=separator, quoting=csv.QUOTE_NONE), 1):
            if row:
                yield number, row


def _number(cell: str, path: Path, number: int) -> float:
    try:
        return float(cell)
    except ValueError:
        InvalidRequest.must(f"line {number} of {path.name}", "a number", repr(cell))


def _counted(values: Any, counts: Any, path: Path, what: str) -> DataSet:
    if not counts.sum():
        InvalidRequest.must(path.name, f"a file with at least one {what}", "none")
    return DataSet(Labels(values, counts), int(counts.sum()), True)
