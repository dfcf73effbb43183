"""Published mechanisms: one registry, on which frontiers, `recommend`, the explorer and `reproduce published` draw.

A family lists its own in modules that `Family.baselines` names, as PUBLISHED = (Published(...), ...): whose mechanism
it is, where it applies, and what it costs a request, with its parameter scaled to the budget. Whatever cannot serve a
request raises NotApplicable with the reason. Baselines of users and of other packages join the same list
(`workbench.families.baseline`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from solvers.search import Deadline
from workbench.exact.numbers import round_up
from workbench.exact.objects import Values
from workbench.families.frontier_plan import NotApplicable, Point, Row, Task, baseline_task
from workbench.families.requirements import ratio_notions
from workbench.mechanisms.mechanism import on_real_inputs
from workbench.privacy.audit import audit, audit_extremes

if TYPE_CHECKING:
    from workbench.families.base import Family


@dataclass(frozen=True)
class Reference:
    """What a published mechanism costs at a budget.

    objective: its loss; certified: whether exact arithmetic proves it private; mechanism: what was audited, None of a
    closed form; symbol, value: of its parameter; status, more: of its row where there is no mechanism to be audited,
    and further columns of it; note: what was done to the mechanism, in a sentence."""

    objective: float
    certified: bool = False
    mechanism: Any = None
    symbol: str = ""
    value: float | None = None
    status: str = "closed form"
    more: Values = field(default_factory=dict)
    note: str = ""

    @property
    def words(self) -> str:
        """The parameter, or the note."""
        return f"{self.symbol} = {self.value:.6g}" if self.symbol else self.note

    def shortfall(self, request: Any) -> str:
        """How the mechanism misses the budget of a request: what it needs, where the budget is ε and δ."""
        claim = request.claim
        if claim.in_epsilon_delta:
            return audit(self.mechanism, claim.values["epsilon"]).words(claim.on(self.mechanism))
        return f"The mechanism misses the request: {claim.notion.name}, {claim.budget_words()}"

    def row(self, request: Any) -> Row:
        """The columns of a frontier, with the exact audit of the mechanism. Raises NotApplicable where that misses the
        budget."""
        row: Row = {"objective": self.objective, "parameter": self.value, "status": self.status}
        if self.mechanism is None:
            return {**row, **self.more}
        claim, exact = request.claim, Row()
        if claim.in_epsilon_delta:
            privacy = audit_extremes(self.mechanism, request.epsilon)
            exact = {"dp_delta": privacy.dp_delta.upper, "pure_epsilon": privacy.pure_epsilon}
            if not self.symbol and not on_real_inputs(self.mechanism):  # a law that is clamped afterwards has another
                exact["pdp_delta"] = round_up(privacy.pdp_delta)
        if not self.certified:
            raise NotApplicable(self.shortfall(request), "not_certified", {**exact, "private": False})
        noted = {"note": self.note} if self.note else {}
        return {**row, **exact, **self.more, "private": True, "status": "audited", "failure": None, **noted}


@dataclass(frozen=True)
class Published:
    """One published mechanism of a family.

    name: in tables; source: author and year; cost: of a request of the family (or a query with the same fields). It
    raises NotApplicable. serves: whether it is for a question, or also for a budget where any_budget says so: others
    are compared at those of one run and one ratio alone. with_prior: whether it is fitted to the prior of the query.
    fixed: columns of its rows that are the same at every point of a frontier."""

    name: str
    source: str
    cost: Callable[[Any], Reference]
    serves: Callable[[Any], bool] = lambda request: True
    any_budget: bool = False
    with_prior: bool = False
    fixed: Values = field(default_factory=dict)

    def listed(self, request: Any) -> bool:
        """Whether frontiers and reports list it for a request."""
        return self.serves(request) and (self.any_budget or (request.runs == 1 and request.notion in ratio_notions()))

    def row(self, request: Any) -> Row:
        """That of a frontier."""
        clock = Deadline()
        return self.cost(request).row(request) | {"seconds": clock.elapsed}


def published(kind: Family) -> Mapping[str, Published]:
    """What a family lists, by name."""
    modules = (importlib.import_module(name) for name in kind.baselines)
    return {entry.name: entry for module in modules for entry in module.PUBLISHED}


def costs(entries: Mapping[str, Published], request: Any) -> dict[str, Reference]:
    """What those that serve a request cost it, by name."""
    known = {}
    for name, entry in entries.items():
        if entry.listed(request):
            with suppress(NotApplicable):
                known[name] = entry.cost(request)
    return known


def published_tasks(entries: Iterable[Published], points: Iterable[Point], named: Collection[str] = ()) -> list[Task]:
    """One task for every entry at every point of a frontier that it serves: (columns that name the point, request).
    Points that do not differ but in its fixed columns are one. named: those that say where they serve none."""
    places, tasks = list(points), dict[Any, Task]()
    for entry in entries:
        if entry.name in named and not any(entry.listed(request) for _, request in places):
            error = NotApplicable(f"{entry.name} is for none of these budgets, and is not drawn.")
            tasks[entry.name] = partial(list, [{"curve": "baseline", "mechanism": entry.name, **error.columns}])
        for point, request in places:
            row = {**point, **entry.fixed}
            key = (entry.name, *map(str, row.items()))
            if key not in tasks and entry.listed(request):
                tasks[key] = baseline_task(entry.name, row, partial(entry.row, request))
    return [*tasks.values()]
