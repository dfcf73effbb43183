"""Load the labels of the data sets of Ghazi et al., or stand-ins if the files are missing.

A stand-in is a set of synthetic label frequencies, fitted to the numbers that the paper prints.

| data set | file             | format                                    | labels                 |
|----------|------------------|-------------------------------------------|------------------------|
| Criteo   | CriteoSearchData | tab-separated, no header; the 2nd of 23   | conversions (not -1),  |
|          |                  | fields is SalesAmountInEuro, -1: no sale  | rounded down to 0..400 |
| census   | census_1940.csv  | comma-separated, a header names WKSWORK1  | non-zero weeks, 1..52  |

Criteo: https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset/ (Sponsored Search
Conversion Log).
Census: https://www.archives.gov/research/census/1940 (an IPUMS extract with WKSWORK1 as CSV).

The environment variable WORKBENCH_DATA names the folder of the files. Without it, the stand-ins are
used.
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

CRITEO_FILE = "CriteoSearchData"
CENSUS_FILE = "census_1940.csv"
_CRITEO_SOURCE = "https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset/"
_CENSUS_SOURCE = "https://www.archives.gov/research/census/1940"
_MAX_EURO = 400  # Amounts are clipped here, the 95th percentile, as in the paper.
_MAX_WEEKS = 52  # The largest number of weeks of a year.

# The numbers of training labels in the paper, 80 % of its examples. They determine ε₁,
# the budget of the prior.
_CRITEO_RECORDS = 1_386_176
_CENSUS_RECORDS = 40_466_154


@dataclass(frozen=True)
class DataSet:
    """The label frequencies of a data set, real or stand-in.

    Attributes:
        labels: The labels with their prior.
        records: The number of training labels, which determines ε₁.
        is_real: Whether it was read from the real file.
    """

    labels: Labels
    records: int
    is_real: bool

    @property
    def template_values(self) -> Record:
        """Return the values of captions and titles that describe the data."""
        if self.is_real:
            return {"words": "the real data", "stand_in": ""}
        return {"words": "STAND-IN labels fitted to the paper's table", "stand_in": " stand-in"}


def load_criteo(path: Path) -> DataSet:
    """Return the conversion values of the Criteo log, prepared as in App. E.1.

    Args:
        path: The file CriteoSearchData, as in the table of the module.

    Raises:
        InvalidRequest: The file is missing or a line is wrong; the message names the line.
    """
    amounts = _read_column(
        path,
        separator="\t",
        name=1,
        header=None,
        description="the Criteo log",
        source=_CRITEO_SOURCE,
    )
    amounts = amounts[amounts != -1]
    _check_cells(path, amounts, amounts >= 0, "an amount >= 0, or -1 for none")
    indices = amounts.clip(upper=_MAX_EURO).astype(int)
    return _count_labels(np.arange(_MAX_EURO + 1.0), indices, path, "conversion")


def load_census(path: Path) -> DataSet:
    """Return the non-zero numbers of weeks worked in 1939, as in App. E.2.

    Args:
        path: The file census_1940.csv, as in the table of the module.

    Raises:
        InvalidRequest: The file is missing or a line is wrong; the message names the line.
    """
    weeks = _read_column(
        path,
        separator=",",
        name="WKSWORK1",
        header=0,
        description="the census extract",
        source=_CENSUS_SOURCE,
    )
    _check_cells(path, weeks, weeks.isin(range(_MAX_WEEKS + 1)), "0..52 weeks")
    indices = weeks[weeks != 0].astype(int) - 1
    return _count_labels(np.arange(1.0, _MAX_WEEKS + 1), indices, path, "non-zero week count")


def get_criteo_data() -> DataSet:
    """Return the real Criteo labels if WORKBENCH_DATA names a folder, else the stand-in.

    Raises:
        InvalidRequest: The real file cannot be read.
    """
    folder = os.environ.get("WORKBENCH_DATA")
    if folder:
        return load_criteo(Path(folder) / CRITEO_FILE)
    return _load_standin("criteo_standin.csv", _CRITEO_RECORDS)


def get_census_data() -> DataSet:
    """Return the real census labels if WORKBENCH_DATA names a folder, else the stand-in.

    Raises:
        InvalidRequest: The real file cannot be read.
    """
    folder = os.environ.get("WORKBENCH_DATA")
    if folder:
        return load_census(Path(folder) / CENSUS_FILE)
    return _load_standin("census_standin.csv", _CENSUS_RECORDS)


def _load_standin(name: str, records: int) -> DataSet:
    """Return the labels of a file of this package, with the number of records of the real data."""
    with resources.as_file(resources.files("workbench.papers").joinpath(f"data/{name}")) as path:
        return DataSet(Labels.read(path), records, is_real=False)


def _read_column(
    path: Path,
    *,
    separator: str,
    name: str | int,
    header: int | None,
    description: str,
    source: str,
) -> pd.Series[float]:
    """Return a column of numbers, indexed by the line of the file. Raises InvalidRequest.

    name: the name of the column, or its index if the file has no header (`header` is None).
    description, source: the name of the data and their web address, for the error message.
    """
    if not path.is_file():
        raise InvalidRequest(
            f"There is no file {path}. Download {description} from {source} and name it "
            f"{path.name}."
        )
    table = pd.read_csv(
        path,
        sep=separator,
        header=header,
        dtype=str,
        quoting=csv.QUOTE_NONE,
        encoding="utf-8-sig",
        skip_blank_lines=False,
        # With a header, the column is selected below, once the spelling of its name is made equal.
        usecols=None if header == 0 else [name],
    )
    table.columns = [str(column).strip().upper() for column in table.columns]
    if str(name) not in table:
        must(path.name, f"a CSV whose header names {name}", ",".join(table.columns))
    # Lines are counted from 1, and a header is line 1.
    table.index += 1 if header is None else 2
    cells = table[str(name)].dropna()
    numbers = pd.to_numeric(cells, errors="coerce")
    _check_cells(path, cells, numbers.notna(), "a number")
    return numbers


def _check_cells(
    path: Path, cells: pd.Series[Any], is_right: pd.Series[bool], description: str
) -> None:
    """Raise InvalidRequest for the first wrong line. `description` names the right cells."""
    if not is_right.all():
        first = int((~is_right).to_numpy().argmax())
        must(f"line {cells.index[first]} of {path.name}", description, cells.iloc[first])


def _count_labels(values: Any, indices: pd.Series[int], path: Path, description: str) -> DataSet:
    """Return labels with their frequencies as the prior.

    values: the labels. indices: the index of the label of each record. path, description: the file
    and the name of a label, for the error message.
    """
    if indices.empty:
        must(path.name, f"a file with at least one {description}", "none")
    frequencies = np.bincount(indices, minlength=len(values))
    return DataSet(Labels(values, frequencies), len(indices), is_real=True)


def describe_criteo_labels(table: Any) -> Record:
    """Return the template values of artifacts with the Criteo labels.

    Args:
        table: Not used. Every function that the entry `details` of an artifact names receives it.
    """
    return get_criteo_data().template_values


def describe_census_labels(table: Any) -> Record:
    """Return the template values of artifacts with the census labels.

    Args:
        table: Not used. Every function that the entry `details` of an artifact names receives it.
    """
    return get_census_data().template_values


# Name of a data set -> the function that loads it.
DATA = {"criteo": get_criteo_data, "census": get_census_data}
