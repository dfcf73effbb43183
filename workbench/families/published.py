"""Published mechanisms: one registry, on which frontiers, `recommend`, the explorer and `reproduce published` draw.

A family lists its own in a module that `Family.baselines` names, as PUBLISHED = (Published(...), ...): whose mechanism
it is, what of it is scaled to the budget, and what it then costs a request. Whatever cannot serve a request raises
NotApplicable with the reason. Baselines of users and of other packages join by `workbench.families.baseline`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.families.frontier_plan import Row, Task, baseline_task

if TYPE_CHECKING:
    from workbench.families.base import Family


@dataclass(frozen=True)
class Reference:
    """What a published mechanism costs at a budget.

    objective: its loss; certified: whether exact arithmetic proves it private; mechanism: what was audited, None of a
    closed form; symbol, value: of its parameter."""

    objective: float
    certified: bool = False
    mechanism: Any = None
    symbol: str = ""
    value: float | None = None

    @property
    def words(self) -> str:
        """The parameter."""
        return f"{self.symbol} = {self.value:.6g}" if self.symbol else ""

    def row(self) -> Row:
        """Of a closed form."""
        return {"objective": self.objective, "parameter": self.value, "status": "closed form"}


@dataclass(frozen=True)
class Published:
    """One published mechanism of a family.

    name: in tables; source: author and year; parameter: what is scaled to the budget, and how far; cost: of a request
    of the family (or a query with the same fields). It raises NotApplicable. with_prior: whether it is fitted to the
    prior of the query."""

    name: str
    source: str
    parameter: str
    cost: Callable[[Any], Reference]
    with_prior: bool = False


def published(kind: Family) -> Mapping[str, Published]:
    """What a family lists, by name."""
    if kind.baselines is None:
        return {}
    entries: tuple[Published, ...] = importlib.import_module(kind.baselines).PUBLISHED
    return {entry.name: entry for entry in entries}


def published_tasks(
    entries: Iterable[Published],
    points: Iterable[tuple[Row, Any]],
    columns: Callable[[Any, Reference], Row] = lambda request, reference: reference.row(),
) -> list[Task]:
    """One task for every entry at every point of a frontier: (columns that name the point, request)."""
    places = list(points)

    def answer(entry: Published, request: Any) -> Row:
        return columns(request, entry.cost(request))

    return [
        baseline_task(entry.name, row, partial(answer, entry, request)) for entry in entries for row, request in places
    ]
