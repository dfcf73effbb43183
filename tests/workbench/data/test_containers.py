"""Test that numbers mean the same in the containers of all libraries, and that gaps are refused.

A container is a list of numbers of some library: NumPy, pandas, PyArrow or polars. A *reader* is a
public function that reads four numbers from a container.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.data.plain import read_floats, read_list
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.pipeline.loss_tables import make_loss_table, read_loss

pa = pytest.importorskip("pyarrow")

VALUES = [1, 2, 3, 4]
# The numbers of VALUES in each container.
CONTAINERS: dict[str, Any] = {
    "tuple": tuple(VALUES),
    "array": np.array(VALUES),
    "float32": np.array(VALUES, np.float32),
    "objects": np.array(VALUES, object),
    "masked array without a mask": np.ma.array(VALUES),
    "masked array with nothing masked": np.ma.array(VALUES, mask=[0, 0, 0, 0]),
    "Series": pd.Series(VALUES),
    "nullable": pd.Series(VALUES, dtype="Int64"),
    "nullable floats": pd.Series(VALUES, dtype="Float64"),
    "Series of float32": pd.Series(VALUES, dtype="float32"),
    "arrow-backed": pd.Series(VALUES, dtype="int64[pyarrow]"),
    "categorical": pd.Series(VALUES, dtype="category"),
    "sparse": pd.Series(pd.arrays.SparseArray(VALUES)),
    "Index": pd.Index(VALUES),
    "pandas array": pd.array(VALUES, dtype="Int64"),
    "frame": pd.DataFrame({"a": VALUES}),
    "pyarrow": pa.array(VALUES),
    "pyarrow floats": pa.array(VALUES, pa.float32()),
    "chunked": pa.chunked_array([[1, 2], [3, 4]]),
    "dictionary": pa.array(VALUES).dictionary_encode(),
    "chunks of a dictionary": pa.chunked_array([pa.array(VALUES).dictionary_encode()]),
    "table": pa.table({"a": VALUES}),
    "scalars": [pa.scalar(value) for value in VALUES],
}
# The same containers, with the second number missing.
CONTAINERS_WITH_GAP: dict[str, Any] = {
    "masked": np.ma.array(VALUES, mask=[0, 1, 0, 0]),
    "Series": pd.Series([1, None, 3, 4]),
    "nullable": pd.Series([1, None, 3, 4], dtype="Int64"),
    "arrow-backed": pd.Series([1, None, 3, 4], dtype="int64[pyarrow]"),
    "categorical": pd.Series([1, None, 3, 4], dtype="category"),
    "frame": pd.DataFrame({"a": [1, None, 3, 4]}),
    "pyarrow": pa.array([1, None, 3, 4]),
    "chunked": pa.chunked_array([[1, None], [3, 4]]),
    "table": pa.table({"a": [1, None, 3, 4]}),
    "pandas NA": [1, pd.NA, 3, 4],
    "None": [1, None, 3, 4],
}
FINITE = wb.FiniteQuery("0..3", max_shift=1)
GROUP = wb.ModuloNoise(3, max_shift=1)
IDENTITY_CHANNEL = Channel.from_rows(np.eye(5))
ZERO_NOISE = AdditiveNoise(wb.ModuloNoise(4, max_shift=1), [1, 0, 0, 0, 0])
# Functions that read the four numbers of a container, by the meaning of the numbers.
READERS: dict[str, Callable[[Any], Any]] = {
    "inputs": lambda values: wb.FiniteQuery(values, max_shift=1).inputs,
    "prior": lambda values: wb.FiniteQuery("0..3", max_shift=1, prior=values).prior,
    "labels": lambda values: wb.Labels(values).values.tolist(),
    "prior of labels": lambda values: wb.Labels([0, 1, 2, 3], values).prior.tolist(),
    "shifts": lambda values: wb.ModuloNoise(9, values).shifts,
    "pmf": lambda values: AdditiveNoise.from_pmf(GROUP, values).pmf.tolist(),
    "rows": lambda values: Channel.from_rows([values, values]).matrix.tolist(),
    "loss": lambda values: make_loss_table(FINITE, read_loss([values] * 4, "loss")).floats.tolist(),
    "data": lambda values: (
        wb.audit(IDENTITY_CHANNEL, loss="absolute", data=values).error.mean_error
    ),
    "publish": lambda values: ZERO_NOISE.publish(values, insecure_seed=1).tolist(),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_reader_reads_the_same_numbers_from_every_container(reader: str, container: str) -> None:
    has_floats = "float" in container
    # Shifts and the answers of modular noise must be integers, also by the type of the container.
    needs_integers = reader in ("shifts", "publish")
    if (needs_integers and has_floats) or (reader == "publish" and container == "objects"):
        with pytest.raises(wb.InvalidRequest):
            READERS[reader](CONTAINERS[container])
    else:
        assert READERS[reader](CONTAINERS[container]) == READERS[reader](VALUES)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("container", CONTAINERS_WITH_GAP)
def test_missing_values_are_refused_in_one_line(reader: str, container: str) -> None:
    with pytest.raises(wb.InvalidRequest) as error:
        READERS[reader](CONTAINERS_WITH_GAP[container])
    assert "\n" not in str(error.value)


def test_the_position_of_a_missing_value_is_named() -> None:
    for container in ("Series", "nullable", "arrow-backed", "pyarrow", "chunked", "table"):
        with pytest.raises(
            wb.InvalidRequest, match=r"none of them missing. Got no value at position 1\."
        ):
            read_list(CONTAINERS_WITH_GAP[container], "values", column=True)


def test_a_float32_means_the_decimal_that_is_printed_for_it() -> None:
    tenths = pd.Series([0.1, 0.2], dtype="float32")
    assert wb.FiniteQuery(tenths, max_shift=1).inputs == (Fraction(1, 10), Fraction(1, 5))
    assert wb.Labels(np.array([0.1, 0.2], np.float32)).values.tolist() == [0.1, 0.2]
    table = pd.DataFrame({"x": np.array([0.1, 0.2], np.float32), "y": [1, 2]})
    inputs = wb.FiniteQuery(table, neighbours="all").inputs
    assert inputs == ((Fraction(1, 10), 1), (Fraction(1, 5), 2))


def test_decimals_are_exact() -> None:
    decimals = pa.array([Decimal("0.10"), Decimal("0.20")])
    assert wb.FiniteQuery(decimals, max_shift=1).inputs == (Fraction(1, 10), Fraction(1, 5))


@pytest.mark.parametrize(
    "times",
    [
        pd.Series([1, 2]).astype("datetime64[s]"),
        pd.Series([1, 2]).astype("datetime64[s, UTC]"),
        pd.Series([1, 2]).astype("timedelta64[s]"),
        pd.Series(pd.period_range("2020", periods=2, freq="D")),
    ],
    ids=lambda times: str(times.dtype),
)
def test_dates_and_spans_of_time_are_no_numbers(times: pd.Series) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^x must be"):
        read_floats(times, "x")


class PolarsColumn:
    """A column with the methods of polars, which is not installed for the tests."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def is_null(self) -> np.ndarray:
        """Return whether each value is missing."""
        return np.array([value is None for value in self.values])

    def to_numpy(self) -> np.ndarray:
        """Return the values as an array."""
        return np.array(self.values)


def test_columns_of_polars_are_read_and_their_gaps_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PolarsColumn, "__module__", "polars.series.series")
    assert read_list(PolarsColumn([1, 2]), "values") == [1, 2]
    with pytest.raises(wb.InvalidRequest, match="position 1"):
        read_list(PolarsColumn([1, None]), "values")
