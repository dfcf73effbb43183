"""List the requests on which families are verified, because their closed forms are known.

The grids are in the file `verification.toml`.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from workbench.exact.objects import Record, Values
from workbench.notions import get_notion
from workbench.pipeline.family import Family
from workbench.pipeline.option import read_options

GRIDS = Path(__file__).with_suffix(".toml")


@cache
def _read_grids() -> dict[str, list[Record]]:
    """Read the grids of all families."""
    return tomllib.loads(GRIDS.read_text())


def has_grid(kind: Family) -> bool:
    """Return whether a family has requests to verify.

    Args:
        kind: The `Family`.
    """
    return kind.name in _read_grids()


def list_grid_requests(kind: Family, small: bool) -> Iterator[tuple[Any, Record]]:
    """List the requests of the grid of a family.

    Args:
        kind: The `Family`.
        small: Whether to use the small grid.

    Yields:
        The question and the options of each request.
    """
    size = "small" if small else "full"
    question_options = [option for option in kind.options if option.question]
    for table in _read_grids().get(kind.name, ()):
        if table.get("of", size) != size:
            continue
        for values in expand_table({name: value for name, value in table.items() if name != "of"}):
            if values.get("delta") and not get_notion(values["notion"]).has_delta:
                continue
            names = [option.name for option in question_options if option.name in values]
            question_values = {name: values.pop(name) for name in names}
            exact_values = read_options(question_options, question_values, exact_defaults=True)
            yield kind.parse_question(exact_values), values


def expand_table(table: Values) -> Iterator[Record]:
    """List one set of options for every choice from the lists of a table.

    Args:
        table: Values or lists of values by name. Each item of the list "each" is a table of options
            that belong together.
    """
    choices = [value if isinstance(value, list) else [value] for value in table.values()]
    for items in itertools.product(*choices):
        values: Record = {}
        for name, value in zip(table, items, strict=True):
            values |= value if name == "each" else {name: value}
        if any(isinstance(value, list) for value in values.values()):
            yield from expand_table(values)
        else:
            yield values
