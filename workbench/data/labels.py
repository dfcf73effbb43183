"""Put the entries of a labelled Series or table into the order of the answers that label them.

| axis                                    | read as                                               |
|-----------------------------------------|-------------------------------------------------------|
| labels that are the answers, any order  | every value belongs to the answer that labels it      |
| 0, 1, ..., n-1 in this order            | positions, as in a list                               |
| anything else                           | an error that names the labels that differ            |

Example: a Series with the values 0.7, 0.3 and the index 1, 0 is [0.3, 0.7] for the answers 0, 1.

Columns of data (one row for each person) are read without this module, because their index has no
meaning. Labels that are numbers match answers within the rounding of floats
(`workbench.data.tolerance`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.data.tolerance import PointIndex
from workbench.errors import must
from workbench.exact.numbers import nearest_float, parse_rational

_MAX_LISTED_LABELS = 5  # A message lists at most this many labels.


class LabelledTuple(tuple[Any, ...]):
    """A tuple of values or rows, with the labels under which they were given.

    Attributes:
        labels: Labels of the entries. None if the entries are in order already.
        columns: If the entries are rows, the labels of the columns. None as for `labels`.
        of_file: Whether the rows are all rows of a CSV file. Its first row and its first column
            may then contain labels.
    """

    labels: list[Any] | None = None
    columns: list[Any] | None = None
    of_file: bool = False

    @classmethod
    def with_labels_of(cls, values: Any, entries: Iterable[Any]) -> LabelledTuple:
        """Build a tuple with the labels of a container.

        Args:
            values: A list, an array, a Series, a data frame or another container.
            entries: The entries or rows of the container.
        """
        labelled = cls(entries)
        labelled.labels = get_row_labels(values)
        labelled.columns = get_column_labels(values)
        return labelled


def is_frame(values: Any) -> bool:
    """Return whether an object is a table with named columns: of pandas, polars or pyarrow.

    Args:
        values: Any object.
    """
    if hasattr(values, "column_names"):
        return True
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def to_python_scalar(value: Any) -> Any:
    """Convert a scalar of pyarrow to Python. Other values are returned unchanged.

    Args:
        value: Any object.
    """
    if hasattr(value, "as_py"):
        return value.as_py()
    return value


def get_row_labels(values: Any) -> list[Any] | None:
    """Return the index of a Series or table of pandas, or the labels of a DataArray of xarray.

    Args:
        values: A list, an array, a Series, a data frame or another container.

    Returns:
        None if there are no labels, or only the default index of pandas.
    """
    if isinstance(values, LabelledTuple):
        return values.labels
    if hasattr(values, "dims") and hasattr(values, "coords"):
        return _get_coordinate(values, 0)
    index = getattr(values, "index", None)
    if callable(index) or index is None or _is_default_index(index):
        return None
    return list(index)


def get_column_labels(values: Any) -> list[Any] | None:
    """Return the names of the columns of a table.

    Args:
        values: A list, an array, a Series, a data frame or another container.

    Returns:
        None if there is one column, or only default names.
    """
    if isinstance(values, LabelledTuple):
        return values.columns
    if hasattr(values, "dims") and hasattr(values, "coords"):
        return _get_coordinate(values, 1)
    if not is_frame(values):
        return None
    names = values.column_names if hasattr(values, "column_names") else values.columns
    default_names = [f"column_{position}" for position in range(len(names))]
    if _is_default_index(names) or list(names) == default_names:
        return None
    if len(names) > 1:
        return list(names)
    return None


def _get_coordinate(array: Any, axis: int) -> list[Any] | None:
    """Return the labels of an axis of an array of xarray, or None if it has none."""
    dims = array.dims
    if axis >= len(dims) or dims[axis] not in array.coords:
        return None
    return list(np.asarray(array.coords[dims[axis]]))


def _is_default_index(index: Any) -> bool:
    """Return whether an index is the one that pandas makes by default: a RangeIndex from 0."""
    is_range = hasattr(index, "step") and hasattr(index, "start")
    return is_range and (index.start, index.step) == (0, 1)


def align_entries(
    entries: Sequence[Any],
    labels: Sequence[Any] | None,
    answers: Sequence[Any],
    name: str,
    points_name: str = "answers",
    *,
    lacking_is_zero: bool = False,
) -> list[Any]:
    """Put entries into the order of the answers that their labels name.

    Args:
        entries: Values, or rows. Length n.
        labels: Label of each entry. None if the entries are in order already.
        answers: Exact numbers, texts or tuples of these. Length n.
        name: Name of the entries in errors.
        points_name: Name of the answers in errors.
        lacking_is_zero: Whether answers without a label may mean 0. They are still an error, but
            the error says how to add the zeros.

    Returns:
        The entries in the order of the answers.

    Raises:
        InvalidRequest: The labels are neither the answers, each once, nor 0, 1, ..., n-1 in order.
    """
    if labels is None:
        return list(entries)
    if len(labels) != len(entries):
        must(name, f"as many as their labels, {len(labels)}", len(entries))
    index = PointIndex(answers)
    positions = [index.find(read_label_point(label), label) for label in labels]
    if len(positions) == len(answers) and {*positions} == {*range(len(answers))}:
        order = sorted(zip(positions, range(len(entries)), strict=True))
        return [entries[source] for _, source in order]
    if len(labels) == len(answers) and _are_positions(labels):
        return list(entries)
    counts = Counter(positions)
    unknown = []
    repeated = []
    for label, position in zip(labels, positions, strict=True):
        if position is None:
            unknown.append(label)
        if counts[position] > 1:
            repeated.append(label)
    lacking = [answer for position, answer in enumerate(answers) if not counts[position]]
    problems = []
    if unknown:
        problems.append(f"labels that are none of them: {_list_for_message(unknown)}")
    elif repeated:
        problems.append(f"a label twice: {_list_for_message(repeated)}")
    if lacking:
        problems.append(f"no label for {_list_for_message(lacking)}")
    if lacking and lacking_is_zero and not unknown and not repeated:
        problems.append(f"where that means 0: {name}.reindex({points_name}, fill_value=0)")
    return must(
        name,
        f"labelled by the {len(answers)} {points_name}, or by 0, 1, 2, ... in this order",
        "; ".join(problems),
    )


def _are_positions(labels: Sequence[Any]) -> bool:
    """Return whether labels are 0, 1, 2, ... in this order."""
    return [read_label_point(label) for label in labels] == [*range(len(labels))]


@dataclass(frozen=True)
class Axis:
    """The labels of the rows or columns of a table, and the points that they must name.

    Attributes:
        labels: Labels. None if the rows or columns are in order already.
        points: Inputs or outputs of the question, one for each row or column.
        points_name: Name of the points in errors.
    """

    labels: Sequence[Any] | None
    points: Sequence[Any]
    points_name: str


def align_table(
    rows: Sequence[Sequence[Any]], row_axis: Axis, column_axis: Axis, name: str
) -> list[list[Any]]:
    """Put the rows of a table, and the entries of every row, into the order of the points.

    Args:
        rows: Rows of k entries. Length n.
        row_axis: Labels of the rows.
        column_axis: Labels of the columns.
        name: Name of the table in errors.

    Raises:
        InvalidRequest: The labels of the rows or columns are not their points.
    """
    ordered_rows = align_entries(
        rows,
        row_axis.labels,
        answers=row_axis.points,
        name=f"the rows of {name}",
        points_name=row_axis.points_name,
    )
    labels = column_axis.labels
    if labels is None:
        return [list(row) for row in ordered_rows]
    columns_name = f"the columns of {name}"
    for row in ordered_rows:
        if len(row) != len(labels):
            must(columns_name, f"as many as their labels, {len(labels)}", len(row))
    order = align_entries(
        range(len(labels)),
        labels,
        answers=column_axis.points,
        name=columns_name,
        points_name=column_axis.points_name,
    )
    return [[row[position] for position in order] for row in ordered_rows]


def align_container(
    values: Any,
    entries: Sequence[Any],
    answers: Callable[[], Iterable[Any]],
    name: str,
    points_name: str = "answers",
) -> Sequence[Any]:
    """Put the entries of a container into the order of the answers.

    Args:
        values: The container, which may have labels.
        entries: Its entries. Length n.
        answers: Function that returns the answers. It is only called if there are labels.
        name: Name of the entries in errors.
        points_name: Name of the answers in errors.

    Raises:
        InvalidRequest: The labels are not the answers.
    """
    labels = get_row_labels(values)
    if labels is None:
        return entries
    answer_points = [*map(read_label_point, answers())]
    lacking_is_zero = name == "prior"
    return align_entries(
        entries, labels, answer_points, name, points_name, lacking_is_zero=lacking_is_zero
    )


def align_array(
    values: Any,
    array: NDArray[Any],
    answers: Callable[[], Iterable[Any]],
    name: str,
    points_name: str = "answers",
) -> NDArray[Any]:
    """Put an array of the entries of a container into the order of the answers. Shape (n,).

    Args:
        values: The container, which may have labels.
        array: Its entries. Shape (n,).
        answers: Function that returns the answers. It is only called if there are labels.
        name: Name of the entries in errors.
        points_name: Name of the answers in errors.

    Raises:
        InvalidRequest: The labels are not the answers.
    """
    if get_row_labels(values) is None:
        return array
    order = align_container(values, range(array.size), answers, name, points_name)
    return array[np.array(order, dtype=np.intp)]


def refuse_labels(values: Any, name: str) -> None:
    """Refuse labels other than 0, 1, 2, ... of a container that is read by position.

    Args:
        values: A list, an array, a Series, a data frame or another container.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The rows or columns have such labels.
    """
    for labels in (get_row_labels(values), get_column_labels(values)):
        if labels is not None and not _are_positions(labels):
            constraint = (
                "read by position, without labels other than 0, 1, 2, ... (.to_numpy() drops them)"
            )
            must(name, constraint, f"the labels {_list_for_message(labels)}")


def read_label_point(label: Any) -> Any:
    """Read a label as the exact number, text or tuple that it means.

    Other objects are returned unchanged, and match no answer.

    Args:
        label: Label of an entry: a number, a text or a tuple of these.
    """
    label = to_python_scalar(label)
    if isinstance(label, tuple):
        return tuple(map(read_label_point, label))
    number = parse_rational(label)
    if number is not None:
        return number
    if isinstance(label, str):
        return label.strip()
    return label


def _list_for_message(labels: Sequence[Any]) -> str:
    """List the first labels for a message."""
    label_list = ", ".join(str(_format_short(label)) for label in labels[:_MAX_LISTED_LABELS])
    if len(labels) > _MAX_LISTED_LABELS:
        return f"{label_list}, ..."
    return label_list


def _format_short(label: Any) -> Any:
    """Format a number as a short decimal. Other labels are returned unchanged."""
    if parse_rational(label) is None:
        return label
    return f"{nearest_float(read_label_point(label)):.17g}"
