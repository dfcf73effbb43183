"""What families are verified on: requests whose closed forms are known.

The grids are data, `verification.toml`.
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
def _grids() -> dict[str, list[Record]]:
    return tomllib.loads(GRIDS.read_text())


def has_grid(kind: Family) -> bool:
    """Whether a family has something to verify."""
    return kind.name in _grids()


def list_grid_requests(kind: Family, small: bool) -> Iterator[tuple[Any, Record]]:
    """(question, options) of every request of a family, of the small grid or of the full one."""
    size, spelling = (
        "small" if small else "full",
        [option for option in kind.options if option.question],
    )
    for table in _grids().get(kind.name, ()):
        if table.get("of", size) != size:
            continue
        for given in expand_table({name: value for name, value in table.items() if name != "of"}):
            if given.get("delta") and not get_notion(given["notion"]).has_delta:
                continue
            spelled = {
                option.name: given.pop(option.name) for option in spelling if option.name in given
            }
            yield kind.parse_question(read_options(spelling, spelled, exact_defaults=True)), given


def expand_table(table: Values) -> Iterator[Record]:
    """One set of options for every choice from the lists of a table."""
    for chosen in itertools.product(
        *[value if isinstance(value, list) else [value] for value in table.values()]
    ):
        given: Record = {}
        for name, value in zip(table, chosen, strict=True):
            given |= value if name == "each" else {name: value}
        if any(isinstance(value, list) for value in given.values()):
            yield from expand_table(given)
        else:
            yield given
