"""Values under labels: a Series or a table is read by its labels, not by its positions.

| axis                                    | read as                                            |
|-----------------------------------------|----------------------------------------------------|
| labels that are the answers, any order  | every value belongs to the answer that labels it   |
| 0, 1, ..., n-1 in this order            | positions, as of a list                            |
| anything else                           | refused, naming the labels that differ             |

The index of a column of data (one row a person) means nothing and is ignored; the caller says so. Labels of numbers
match answers within the rounding of floats (`workbench.data.tolerance`).
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

_LISTED = 5  # Labels that a message lists.


class LabelledTuple(tuple[Any, ...]):
    """A tuple of values, or of rows, that keeps the labels it was given under.

    labels: of the entries, columns: of the entries of every row; None where they are positions. of_file: whether it
    holds all cells of a CSV file, whose first row and column may be labels.
    """

    labels: list[Any] | None = None
    columns: list[Any] | None = None
    of_file: bool = False

    @classmethod
    def with_labels_of(cls, values: Any, entries: Iterable[Any]) -> LabelledTuple:
        """Keep the labels that a container has; entries: its entries, or rows."""
        labelled = cls(entries)
        if isinstance(values, LabelledTuple):
            labelled.labels, labelled.columns = values.labels, values.columns
        else:
            labelled.labels, labelled.columns = get_row_labels(values), get_column_labels(values)
        return labelled


def is_frame(values: Any) -> bool:
    """Whether this is a table with named columns: of pandas, polars or pyarrow."""
    return hasattr(values, "column_names") or (
        hasattr(values, "columns") and hasattr(values, "to_numpy")
    )


def to_python_scalar(value: Any) -> Any:
    """A scalar of pyarrow as Python has it; anything else as it is."""
    return value.as_py() if hasattr(value, "as_py") else value


def get_row_labels(values: Any) -> list[Any] | None:
    """The index of a Series or of a table of pandas; None where there is none, or only pandas' own default."""
    if isinstance(values, LabelledTuple):
        return values.labels
    if hasattr(values, "dims") and hasattr(values, "coords"):
        return _coordinate(values, 0)
    index = getattr(values, "index", None)
    return None if callable(index) or index is None or _is_default(index) else list(index)


def get_column_labels(values: Any) -> list[Any] | None:
    """The names of the columns of a table of several; None where there are none, or only default ones."""
    if isinstance(values, LabelledTuple):
        return values.columns
    if hasattr(values, "dims") and hasattr(values, "coords"):
        return _coordinate(values, 1)
    if not is_frame(values):
        return None
    names = values.column_names if hasattr(values, "column_names") else values.columns
    if _is_default(names) or list(names) == [
        f"column_{position}" for position in range(len(names))
    ]:
        return None
    return list(names) if len(names) > 1 else None


def _coordinate(array: Any, axis: int) -> list[Any] | None:
    """The labels of an axis of an array of xarray; None where it has none."""
    dims = array.dims
    return (
        list(np.asarray(array.coords[dims[axis]]))
        if axis < len(dims) and dims[axis] in array.coords
        else None
    )


def _is_default(index: Any) -> bool:
    """Whether an index is the one that pandas makes where none is given: a RangeIndex from 0."""
    return (
        hasattr(index, "step") and hasattr(index, "start") and (index.start, index.step) == (0, 1)
    )


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
        entries: values, or rows.
        labels: one for each entry; None: the entries are in order already.
        answers: exact numbers, texts or tuples of these.
        name: what a message calls the entries.
        what: what a message calls the answers.
        lacking_is_zero: whether an answer without a label may have been meant as 0; the message then says how.

    Returns:
        The entries in the order of the answers.

    Raises:
        InvalidRequest: the labels are neither the answers, each once, nor 0, 1, ..., n-1 in this order.
    """
    if labels is None:
        return list(entries)
    if len(labels) != len(entries):
        must(name, f"as many as their labels, {len(labels)}", len(entries))
    index = PointIndex(answers)
    positions = [index.find(read_label_point(label), label) for label in labels]
    if len(positions) == len(answers) and {*positions} == {*range(len(answers))}:
        ordered = sorted(zip(positions, range(len(entries)), strict=True))
        return [entries[at] for _, at in ordered]
    if len(labels) == len(answers) and [read_label_point(label) for label in labels] == [
        *range(len(labels))
    ]:
        return list(entries)
    times = Counter(positions)
    unknown = [label for label, position in zip(labels, positions, strict=True) if position is None]
    twice = [
        label for label, position in zip(labels, positions, strict=True) if times[position] > 1
    ]
    lacking = [answers[position] for position in range(len(answers)) if not times[position]]
    got = []
    if unknown:
        got.append(f"labels that are none of them: {_list_for_message(unknown)}")
    elif twice:
        got.append(f"a label twice: {_list_for_message(twice)}")
    if lacking:
        got.append(f"no label for {_list_for_message(lacking)}")
    if lacking and lacking_is_zero and not unknown and not twice:
        got.append(f"where that means 0: {name}.reindex({points_name}, fill_value=0)")
    return must(
        name,
        f"labelled by the {len(answers)} {points_name}, or by 0, 1, 2, ... in this order",
        "; ".join(got),
    )


@dataclass(frozen=True)
class Axis:
    """The labels of one axis of a table, and the points that they should be. what: what a message calls the points."""

    labels: Sequence[Any] | None
    points: Sequence[Any]
    points_name: str


def align_table(
    rows: Sequence[Sequence[Any]], row_axis: Axis, column_axis: Axis, name: str
) -> list[list[Any]]:
    """Put the rows of a table, and the entries of every row, into the order of the points. Raises InvalidRequest."""
    ordered = align_entries(
        rows, row_axis.labels, row_axis.points, f"the rows of {name}", row_axis.points_name
    )
    if column_axis.labels is None:
        return [list(row) for row in ordered]
    title = f"the columns of {name}"
    if wrong := next((len(row) for row in ordered if len(row) != len(column_axis.labels)), None):
        must(title, f"as many as their labels, {len(column_axis.labels)}", wrong)
    order = align_entries(
        range(len(column_axis.labels)),
        column_axis.labels,
        column_axis.points,
        title,
        column_axis.points_name,
    )
    return [[row[position] for position in order] for row in ordered]


def align_container(
    values: Any,
    entries: Sequence[Any],
    answers: Callable[[], Iterable[Any]],
    name: str,
    points_name: str = "answers",
) -> Sequence[Any]:
    """Put the entries of a container into the order of the answers, which are listed only where it has labels.

    Raises InvalidRequest, as `align`.
    """
    labels = get_row_labels(values)
    if labels is None:
        return entries
    known = [*map(read_label_point, answers())]
    return align_entries(entries, labels, known, name, points_name, lacking_is_zero=name == "prior")


def align_array(
    values: Any,
    array: NDArray[Any],
    answers: Callable[[], Iterable[Any]],
    name: str,
    points_name: str = "answers",
) -> NDArray[Any]:
    """Do the same with the array (n,) of a container's entries. Raises InvalidRequest."""
    if get_row_labels(values) is None:
        return array
    return array[
        np.array(
            align_container(values, range(array.size), answers, name, points_name), dtype=np.intp
        )
    ]


def refuse_labels(values: Any, name: str) -> None:
    """Refuse labels where only positions have a meaning: another index than 0, 1, 2, ... Raises InvalidRequest."""
    for labels in (get_row_labels(values), get_column_labels(values)):
        if labels is not None and [read_label_point(label) for label in labels] != [
            *range(len(labels))
        ]:
            wanted = (
                "read by position, without labels other than 0, 1, 2, ... (.to_numpy() drops them)"
            )
            must(name, wanted, f"the labels {_list_for_message(labels)}")


def read_label_point(label: Any) -> Any:
    """A label as the exact number, text or tuple it means; anything else as it is, which matches no answer."""
    label = to_python_scalar(label)
    if isinstance(label, tuple):
        return tuple(map(read_label_point, label))
    number = parse_rational(label)
    if number is not None:
        return number
    return label.strip() if isinstance(label, str) else label


def _list_for_message(labels: Sequence[Any]) -> str:
    """Some labels for a message."""
    shown = ", ".join(str(_format_short(label)) for label in labels[:_LISTED])
    return f"{shown}, ..." if len(labels) > _LISTED else shown


def _format_short(label: Any) -> Any:
    """A number as a short decimal."""
    number = read_label_point(label)
    return f"{nearest_float(number):.17g}" if parse_rational(number) is not None else label
