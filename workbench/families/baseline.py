"""Baselines of other packages: published mechanisms that stand in the frontier of a family beside its optimum.

`workbench.register(Baseline("staircase", "modulo", build))`, or an entry point of the group `workbench.baselines`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from workbench.errors import WorkbenchError
from workbench.exact.numbers import round_up
from workbench.families.base import Family, Request, Row
from workbench.families.frontier_plan import NotApplicable, Task, baseline_task
from workbench.io.plugins import plugins
from workbench.mechanisms.mechanism import Mechanism, as_mechanism, on_real_inputs
from workbench.privacy.audit import audit, holds
from workbench.privacy.claim import Claim

__all__ = ["Baseline", "audited_row", "baseline_tasks", "baselines_of"]


@dataclass(frozen=True)
class Baseline:
    """A published mechanism for the questions of a family.

    name: of the series; family: the name of the family; mechanism: (request) -> the mechanism that is to meet its
    budget, None where there is none. It is audited exactly, and its loss computed by the family.
    """

    name: str
    family: str
    mechanism: Callable[[Any], Mechanism | None]

    def built(self, request: Any) -> Mechanism:
        """The mechanism for a request. Raises NotApplicable where there is none, and whatever its own code raises."""
        given = self.mechanism(request)
        if given is None:
            raise NotApplicable("no mechanism of it meets the budget", "infeasible")
        return as_mechanism(given)


def baseline_tasks(kind: Family, points: Iterable[tuple[Row, Request]], own: Sequence[Baseline] = ()) -> list[Task]:
    """One task for every baseline of a family at every point: (columns that name the point, request).

    own: of the user, beside those of other packages."""
    theirs = [*baselines_of(kind.name), *((baseline, "own") for baseline in own)]
    if not theirs:
        return []
    places = list(points)
    return [
        baseline_task(baseline.name, {**point, "package": package}, partial(_answer, kind, baseline, package, request))
        for baseline, package in theirs
        for point, request in places
    ]


def baselines_of(family: str) -> list[tuple[Baseline, str]]:
    """The baselines of other packages for a family, with the packages."""
    every = ((plugin.thing, plugin.package) for plugin in plugins("baselines").values())
    return [(baseline, package) for baseline, package in every if baseline.family == family]


def _answer(kind: Family, baseline: Baseline, package: str, request: Request) -> Row:
    try:
        return audited_row(kind, request, baseline.built(request))
    except WorkbenchError:
        raise
    except (Exception, SystemExit) as error:  # of code that is not ours
        raise NotApplicable(f"{package}: {type(error).__name__}: {error}", "failed") from error


def audited_row(kind: Family, request: Any, given: Mechanism) -> Row:
    """What a mechanism costs, if it meets the budget of a request under the neighbour relation of its question."""
    loss, mechanism = kind.loss(request, given), kind.related(request, given)
    budget = getattr(request, "claim", None)
    if isinstance(budget, Claim) and not budget.in_epsilon_delta:
        private = holds(mechanism, budget)
        words = None if private else f"The mechanism misses the request: {request.notion}, {budget.budget_words()}"
        status, value = ("audited", loss) if private else ("not_certified", None)
        return {"private": private, "status": status, "objective": value, "failure": words}
    privacy = audit(mechanism, request.epsilon)
    claim = (getattr(request, "notion", "pure"), request.epsilon, getattr(request, "delta", None) or 0)
    exact = {"dp_delta": privacy.dp_delta.upper, "pure_epsilon": privacy.pure_epsilon}
    if not on_real_inputs(mechanism):
        exact["pdp_delta"] = round_up(privacy.pdp_delta)
    if not privacy.meets(*claim):
        return {**exact, "private": False, "status": "not_certified", "failure": privacy.verdict(*claim)}
    return {**exact, "private": True, "status": "audited", "objective": loss, "failure": None}
