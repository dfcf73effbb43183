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
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Record
from workbench.questions.labels import Labels

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
    def words(self) -> Record:
        """For captions and titles."""
        if self.real:
            return {"words": "the real data", "stand_in": ""}
        return {"words": "STAND-IN labels fitted to the paper's table", "stand_in": " stand-in"}


def load_criteo(path: Path) -> DataSet:
    """The conversion values of the Criteo log, as App. E.1 prepares them. Raises InvalidRequest, naming the line."""
    amounts = _column(path, "\t", 1, None, "The Criteo log", _CRITEO_SOURCE)
    amounts = amounts[amounts != -1]
    _refuse(path, amounts, amounts >= 0, "an amount >= 0, or -1 for none")
    return _counted(np.arange(_TOP + 1.0), amounts.clip(upper=_TOP).astype(int), path, "conversion")


def load_census(path: Path) -> DataSet:
    """The weeks worked in 1939, non-zero ones only (App. E.2). Raises InvalidRequest, naming the line."""
    weeks = _column(path, ",", "WKSWORK1", 0, "The census extract", _CENSUS_SOURCE)
    _refuse(path, weeks, weeks.isin(range(53)), "0..52 weeks")
    return _counted(
        np.arange(1.0, 53), weeks[weeks != 0].astype(int) - 1, path, "non-zero week count"
    )


def criteo() -> DataSet:
    """The real Criteo labels if WORKBENCH_DATA names a folder, else the stand-in. Raises InvalidRequest."""
    folder = os.environ.get("WORKBENCH_DATA")
    return (
        load_criteo(Path(folder) / CRITEO_FILE)
        if folder
        else _standin("criteo_standin.csv", 1_386_176)
    )


def census() -> DataSet:
    """The real census labels if WORKBENCH_DATA names a folder, else the stand-in. Raises InvalidRequest."""
    folder = os.environ.get("WORKBENCH_DATA")
    return (
        load_census(Path(folder) / CENSUS_FILE)
        if folder
        else _standin("census_standin.csv", 40_466_154)
    )


def _standin(name: str, records: int) -> DataSet:
    """A bundled distribution; records: the paper's training labels, 80 % of its examples, which set ε₁."""
    with resources.as_file(resources.files("workbench.papers").joinpath(f"data/{name}")) as path:
        return DataSet(Labels.read(path), records, False)


def _column(
    path: Path, separator: str, name: Any, header: int | None, what: str, source: str
) -> pd.Series[float]:
    """A column of numbers by line. Raises InvalidRequest."""
    if not path.is_file():
        raise InvalidRequest(
            f"{what} must be in a file named {path.name}; download it from {source}. Got no {path}."
        )
    table = pd.read_csv(
        path,
        sep=separator,
        header=header,
        dtype=str,
        quoting=csv.QUOTE_NONE,
        encoding="utf-8-sig",
        skip_blank_lines=False,
        usecols=None if header == 0 else [name],
    )
    table.columns = [str(column).strip().upper() for column in table.columns]
    if str(name) not in table:
        must(path.name, f"a CSV whose header names {name}", ",".join(table.columns))
    table.index += 1 if header is None else 2
    cells = table[str(name)].dropna()
    numbers = pd.to_numeric(cells, errors="coerce")
    _refuse(path, cells, numbers.notna(), "a number")
    return numbers


def _refuse(path: Path, cells: pd.Series[Any], right: pd.Series[bool], what: str) -> None:
    """Refuse the first line that is not right."""
    if not right.all():
        first = int((~right).to_numpy().argmax())
        must(f"line {cells.index[first]} of {path.name}", what, cells.iloc[first])


def _counted(values: Any, places: pd.Series[int], path: Path, what: str) -> DataSet:
    if places.empty:
        must(path.name, f"a file with at least one {what}", "none")
    return DataSet(Labels(values, np.bincount(places, minlength=len(values))), len(places), True)


def criteo_words(table: Any) -> Record:
    """Of captions and titles of artifacts on the Criteo labels."""
    return criteo().words


def census_words(table: Any) -> Record:
    """Of captions and titles of artifacts on the census labels."""
    return census().words


DATA = {"criteo": criteo, "census": census}
