"""Containers of all libraries are read alike, and missing or masked values are refused."""

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
SAME: dict[str, Any] = {
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
MISSING: dict[str, Any] = {
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
EYE = Channel.from_rows(np.eye(5))
FIXED = AdditiveNoise(wb.ModuloNoise(4, max_shift=1), [1, 0, 0, 0, 0])
READERS: dict[str, Callable[[Any], Any]] = {
    "inputs": lambda values: wb.FiniteQuery(values, max_shift=1).inputs,
    "prior": lambda values: wb.FiniteQuery("0..3", max_shift=1, prior=values).prior,
    "labels": lambda values: wb.Labels(values).values.tolist(),
    "prior of labels": lambda values: wb.Labels([0, 1, 2, 3], values).prior.tolist(),
    "shifts": lambda values: wb.ModuloNoise(9, values).shifts,
    "pmf": lambda values: AdditiveNoise.from_pmf(GROUP, values).pmf.tolist(),
    "rows": lambda values: Channel.from_rows([values, values]).matrix.tolist(),
    "loss": lambda values: make_loss_table(FINITE, read_loss([values] * 4, "loss")).floats.tolist(),
    "data": lambda values: wb.audit(EYE, loss="absolute", data=values).error.mean_error,
    "publish": lambda values: FIXED.publish(values, insecure_seed=1).tolist(),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("container", SAME)
def test_the_same_numbers_in_every_container(reader: str, container: str) -> None:
    only_integers = (reader == "publish" and container == "objects") or (
        reader in ("shifts", "publish") and "float" in container
    )
    if only_integers:
        with pytest.raises(wb.InvalidRequest):
            READERS[reader](SAME[container])
    else:
        assert READERS[reader](SAME[container]) == READERS[reader](VALUES)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("container", MISSING)
def test_missing_values_are_refused(reader: str, container: str) -> None:
    with pytest.raises(wb.InvalidRequest) as error:
        READERS[reader](MISSING[container])
    assert str(error.value).count("\n") == 0


def test_the_position_of_a_missing_value_is_named() -> None:
    for container in ("Series", "nullable", "arrow-backed", "pyarrow", "chunked", "table"):
        with pytest.raises(
            wb.InvalidRequest, match=r"none of them missing. Got no value at position 1\."
        ):
            read_list(MISSING[container], "values", column=True)


def test_types_keep_their_digits() -> None:
    tenth = pd.Series([0.1, 0.2], dtype="float32")
    assert wb.FiniteQuery(tenth, max_shift=1).inputs == (Fraction(1, 10), Fraction(1, 5))
    assert wb.Labels(np.array([0.1, 0.2], np.float32)).values.tolist() == [0.1, 0.2]
    decimals = pa.array([Decimal("0.10"), Decimal("0.20")])
    assert wb.FiniteQuery(decimals, max_shift=1).inputs == (Fraction(1, 10), Fraction(1, 5))
    table = pd.DataFrame({"x": np.array([0.1, 0.2], np.float32), "y": [1, 2]})
    assert wb.FiniteQuery(table, neighbours="all").inputs == (
        (Fraction(1, 10), 1),
        (Fraction(1, 5), 2),
    )


@pytest.mark.parametrize(
    "dtype", ["datetime64[s]", "datetime64[s, UTC]", "timedelta64[s]", "period[D]"]
)
def test_dates_and_spans_of_time_are_no_numbers(dtype: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^x must be"):
        read_floats(pd.Series([1, 2]).astype(dtype) if "period" not in dtype else pd.Series(
            pd.period_range("2020", periods=2, freq="D")), "x")  # fmt: skip


class Polars:
    """A column as polars has it."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def is_null(self) -> np.ndarray:
        return np.array([value is None for value in self.values])

    def to_numpy(self) -> np.ndarray:
        return np.array(self.values)


def test_columns_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Polars, "__module__", "polars.series.series")
    assert read_list(Polars([1, 2]), "values") == [1, 2]
    with pytest.raises(wb.InvalidRequest, match="position 1"):
        read_list(Polars([1, None]), "values")
