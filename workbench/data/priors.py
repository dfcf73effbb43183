"""Read priors: how likely answers, labels or parts of a range are.

    accepted                            read as
    "uniform"                           equal weights
    "worst"                             None: the loss is that of the answer with the largest loss
    "1,2,1", list, array, table, CSV    weights >= 0, not all 0, divided by their sum: 1/4, 1/2, 1/4
    CSV or rows of two columns          answers and their weights; other answers have the weight 0

The index of a Series or table names the answers (`workbench.data.labels`). Weights of the parts of
a range have no names: they are read by position, and labels are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.labels import align_container, refuse_labels
from workbench.data.plain import read_list
from workbench.data.points import Point, list_cells, read_point, read_points
from workbench.data.tables import read_table
from workbench.data.tolerance import PointIndex
from workbench.errors import must
from workbench.exact.numbers import ONE, Rationals, read_number
from workbench.io.files import format_fraction, names_file


def read_prior(value: Any, inputs: Sequence[Point]) -> Rationals | None:
    """Read the prior of finitely many inputs.

    Args:
        value: A form of the module header.
        inputs: Different points, as `workbench.data.points` reads them. Length k.

    Returns:
        Probability of each input. Length k. None for "worst".

    Raises:
        InvalidRequest: The prior has no form of the module header, or not one weight for each
            input.
    """
    count = len(inputs)
    if isinstance(value, str) and value == "uniform":
        return (Fraction(1, count),) * count
    if isinstance(value, str) and value == "worst":
        return None
    entries = _list_weights(value, inputs)
    weights = [read_number(entry, "every weight of the prior") for entry in entries]
    if len(weights) != count:
        must("prior", f"uniform, worst, or {count} weights, one for every input", len(weights))
    if min(weights) < 0 or not any(weights):
        must("prior", "weights >= 0, not all 0", format_fraction(min(weights)))
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def read_range_prior(value: Any) -> Rationals | None:
    """Read the prior of the equal parts into which a range is divided.

    Args:
        value: A form of the module header. The number of its weights is the number of parts. None
            means "uniform", which is one part.

    Returns:
        Probability of each part. None for "worst".

    Raises:
        InvalidRequest: The value has no form of the module header.
    """
    if value is None or (isinstance(value, str) and value == "uniform"):
        return (ONE,)
    if isinstance(value, str) and value == "worst":
        return None
    refuse_labels(value, "prior")
    cells = list_cells(value, "prior", "uniform, worst, or a list of weights")
    # `read_prior` checks the weights. It expects one for each end, and the last end begins no part.
    ends = read_points(range(len(cells) + 1), "inputs")
    shares = read_prior([*cells, 0], ends)
    if shares is None:
        return None
    return shares[:-1]


def read_label_prior(value: Any, shape: tuple[int, ...]) -> Any:
    """Read a prior of labels from a text: "uniform", or weights. Other values are not changed.

    Args:
        value: A text, or weights in any container.
        shape: Shape of the labels, (k,) for k labels.

    Raises:
        InvalidRequest: A weight is no number.
    """
    if not isinstance(value, str):
        return value
    if value.strip() == "uniform":
        return np.ones(shape)
    return [float(read_number(weight, "every weight of the prior")) for weight in value.split(",")]


def _list_weights(value: Any, inputs: Sequence[Point]) -> Sequence[Any]:
    """List the weights of a text, a file or a container in the order of the inputs."""
    if isinstance(value, str) and "," in value and not names_file(value):
        value = value.split(",")
    if isinstance(value, (str, Path)):
        if not names_file(value):
            must("prior", "uniform, worst, weights or a CSV file of them", repr(str(value)))
        rows: Sequence[Any] = read_table(value, "prior")
    else:
        rows = read_list(value, "prior", "a list", column=True)
    if not any(isinstance(row, list) for row in rows):
        return align_container(value, rows, answers=lambda: inputs, name="prior")
    if not all(isinstance(row, list) and row for row in rows):
        must("prior", "weights, or rows of an input and its weight", repr(rows)[:80])
    if all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    return _weigh_inputs(rows, inputs)


def _weigh_inputs(rows: Sequence[Sequence[Any]], inputs: Sequence[Point]) -> list[Any]:
    """Return the weight of each input from rows (input, weight). Other inputs have the weight 0."""
    index = PointIndex(inputs)
    weights: dict[int, Any] = {}
    for row in rows:
        position = None
        if len(row) == 2:
            position = index.find(read_point(row[0], "an input of the prior"), row[0])
        if position is None or position in weights:
            constraint = "a CSV of inputs, each once, and their weights"
            must("prior", constraint, ",".join(map(str, row)))
        weights[position] = row[1]
    return [weights.get(position, 0) for position in range(len(inputs))]
