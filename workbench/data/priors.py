"""Read how likely answers, labels or parts of a range are.

    accepted                            read as
    "uniform"                           equal weights
    "worst"                             None: the answer with the largest loss counts
    "1,2,1", list, array, table, CSV    weights >= 0, not all 0, divided by their sum
    CSV or rows of two columns          answers and their weights; others have the weight 0

A Series or a table is aligned by its index (`workbench.data.labels`). Weights of parts of a range
belong to positions, and labels are refused.
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


def read_prior(given: Any, inputs: Sequence[Point]) -> Rationals | None:
    """Read the prior of finitely many inputs as shares with the total 1; None for the worst input.

    Args:
        given: What the module header lists.
        inputs: Different points, as `workbench.data.points` reads them.

    Raises:
        InvalidRequest: The prior is none of these, or does not have one weight for every input.
    """
    count = len(inputs)
    if isinstance(given, str) and given == "uniform":
        return (Fraction(1, count),) * count
    if isinstance(given, str) and given == "worst":
        return None
    entries = _list_weights(given, inputs)
    weights = [read_number(entry, "every weight of the prior") for entry in entries]
    if len(weights) != count:
        must("prior", f"uniform, worst, or {count} weights, one for every input", len(weights))
    if min(weights) < 0 or not any(weights):
        must("prior", "weights >= 0, not all 0", format_fraction(min(weights)))
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def read_range_prior(given: Any) -> Rationals | None:
    """Read the shares of equal parts of a range, those of None as of "uniform"; None for the worst answer.

    Raises InvalidRequest.
    """
    if given is None or (isinstance(given, str) and given == "uniform"):
        return (ONE,)
    if isinstance(given, str) and given == "worst":
        return None
    refuse_labels(given, "prior")
    cells = list_cells(given, "prior", "uniform, worst, or a list of weights")
    ends = read_points(range(len(cells) + 1), "inputs")
    shares = read_prior([*cells, 0], ends)
    return None if shares is None else shares[:-1]


def read_label_prior(given: Any, shape: tuple[int, ...]) -> Any:
    """Read a prior of labels that is a text: "uniform", or weights; return anything else as it is.

    Args:
        given: A text, or weights in any container.
        shape: Shape of the labels.

    Raises:
        InvalidRequest: A weight is no number.
    """
    if not isinstance(given, str):
        return given
    if given.strip() == "uniform":
        return np.ones(shape)
    return [float(read_number(weight, "every weight of the prior")) for weight in given.split(",")]


def _list_weights(given: Any, inputs: Sequence[Point]) -> Sequence[Any]:
    """List the weights of a text, a file or a container in the order of the inputs."""
    if isinstance(given, str) and "," in given and not names_file(given):
        given = given.split(",")
    if isinstance(given, (str, Path)):
        if not names_file(given):
            must("prior", "uniform, worst, weights or a CSV file of them", repr(str(given)))
        rows: Sequence[Any] = read_table(given, "prior")
    else:
        rows = read_list(given, "prior", "a list", column=True)
    if not any(isinstance(row, list) for row in rows):
        return align_container(given, rows, lambda: inputs, "prior")
    if not all(isinstance(row, list) and row for row in rows):
        must("prior", "weights, or rows of an input and its weight", repr(rows)[:80])
    if all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    return _weigh_inputs(rows, inputs)


def _weigh_inputs(rows: Sequence[Sequence[Any]], inputs: Sequence[Point]) -> list[Any]:
    """Read rows of an input and its weight; inputs that are left out have the weight 0."""
    index = PointIndex(inputs)
    weights: dict[int, Any] = {}
    for row in rows:
        position = None
        if len(row) == 2:
            position = index.find(read_point(row[0], "an input of the prior"), row[0])
        if position is None or position in weights:
            wanted = "a CSV of inputs, each once, and their weights"
            must("prior", wanted, ",".join(map(str, row)))
        weights[position] = row[1]
    return [weights.get(position, 0) for position in range(len(inputs))]
