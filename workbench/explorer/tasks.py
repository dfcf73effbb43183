"""What a page can ask for, computed in a worker: one function for each task, from texts to plain data.

suggestions words that the options of a family take, and examples
design      the mechanism at once, as the solver gives it, audited but not certified; a live session follows the sliders
            and, where a solve takes long, gives what there is after a moment: preliminary, with the bound so far
complete    the same, solved to its end
certify     the same proven, from a cold start: what `workbench design` writes, with the certificate's file
profile     privacy profile and trade-off curve of what was designed last
along       the objective against one hot option, over the range of its slider; no figure where no other value is taken
rivals      the family's own frontier at this budget: exact pieces, published mechanisms
inverse     the least value of a hot option at which the objective is within a limit
export      everything above about one request, for a page without a server
"""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from sys import float_info
from typing import Any

from workbench.errors import InvalidRequest, NotProven, WorkbenchError
from workbench.explorer import figures, loss_figures
from workbench.explorer.given import command_line, exact_values, listing, option_range, python_call, suggestions
from workbench.explorer.privacy_figures import profile_figures
from workbench.families.base import Family, Session
from workbench.families.design import Design
from workbench.families.frontier_plots import jumps
from workbench.families.outcome import attempt
from workbench.families.registry import family
from workbench.frontiers.run import frontier_of, plan_of, read, run
from workbench.io.files import no_files

__all__ = ["TASKS", "Tasks"]

Tell = Callable[[int, int], None]  # (parts done, parts)
View = dict[str, Any]
_SESSIONS = 4  # live at a time
_MOMENT = Fraction(1, 20)  # seconds of a preliminary solve
_SLOW = 0.1  # seconds of a hot design from which the next ones are preliminary
_STEPS = 25  # values of an option along its range
_FEWEST, _PATIENCE = 5, 8.0  # so many of them in any case, no further one after so many seconds
_EXPORTED = 13  # designs in an export
_DIGITS = 4  # of what the inverse task finds


@dataclass
class _Live:
    """The session of a question, and what following a slider needs.

    brief: a second session, which solves for a moment only; slow: whether designs take long; fruitless: whether a
    moment has ended with nothing in hand, as it does for linear programs.
    """

    session: Session
    brief: Session | None = None
    solved: bool = False
    slow: bool = False
    fruitless: bool = False

    def close(self) -> None:
        self.session.close()
        if self.brief is not None:
            self.brief.close()


class Tasks:
    """The tasks, with their live sessions. files: (family, option, text) whose texts may name files."""

    def __init__(self, files: Collection[tuple[str, str, Any]] = ()) -> None:
        self.files = frozenset(files)
        self._sessions: OrderedDict[str, _Live] = OrderedDict()
        self._last: tuple[str, Design] | None = None

    def run(self, task: str, request: Mapping[str, Any], tell: Tell = lambda done, total: None) -> View:
        """One task. request: family, given (option -> text), and what the task takes. Raises WorkbenchError."""
        if task not in TASKS:
            InvalidRequest.must("task", f"one of {', '.join(TASKS)}", repr(task))
        kind, given = family(request.get("family", "")), request.get("given")
        if task == "suggestions":
            return suggestions(kind)
        values = exact_values(kind, given, self.files)
        known = {name: value for name, value in (given or {}).items() if value not in ("", None, [])}
        view: View = TASKS[task](self, kind, known, values, request, tell)
        return view

    # Sessions.

    def _session(self, kind: Family, given: Mapping[str, Any], values: Mapping[str, Any]) -> _Live:
        """The live session for all that is not hot; the least recently used one makes room."""
        fixed = {name: value for name, value in given.items() if name not in kind.hot}
        missing = [name for name in kind.hot if values[name] is None]
        key = json.dumps([kind.name, missing, fixed], sort_keys=True)
        if key not in self._sessions:
            with no_files():
                self._sessions[key] = _Live(kind.open(kind.request_of(dict(values) | {"check": "audit"})))
            while len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)[1].close()
        self._sessions.move_to_end(key)
        return self._sessions[key]

    def _drop(self) -> None:
        """Close all sessions: one that failed is not trusted with the next request."""
        while self._sessions:
            self._sessions.popitem()[1].close()

    def _designed(self, kind: Family, given: Mapping[str, Any], values: Mapping[str, Any]) -> Design:
        key = _key(kind, given)
        if self._last is None or self._last[0] != key:
            live, begin = self._session(kind, given, values), time.monotonic()
            try:
                design = live.session.design(_point(kind, values))
            except NotProven as error:
                if error.design is None:
                    raise
                design = replace(error.design, words=(*error.design.words, f"Not proven: {error}"))
            except WorkbenchError:
                self._drop()
                raise
            live.slow |= live.solved and time.monotonic() - begin > _SLOW  # the first design also states its model
            live.solved = True
            self._last = key, design
        return self._last[1]

    def _preliminary(self, kind: Family, given: Mapping[str, Any], values: Mapping[str, Any]) -> Design | None:
        """What a moment of solving gives where designs take long: a design that lacks the proof. None elsewhere."""
        live = self._session(kind, given, values)
        limit = next((option for option in kind.options if option.name == "time_limit" and option.solver), None)
        if not live.slow or live.fruitless or limit is None:
            return None
        if values[limit.name] is not None and values[limit.name] <= _MOMENT:
            return None
        if live.brief is None:
            with no_files():
                live.brief = kind.open(kind.request_of(dict(values) | {"check": "audit", limit.name: _MOMENT}))
        try:
            design = live.brief.design(_point(kind, values))
        except NotProven as error:
            early: Design | None = error.design
            live.fruitless = early is None
            return early
        except WorkbenchError:
            return None  # the whole solve says why
        self._last = _key(kind, given), design
        return None

    # Tasks.

    def design(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """The mechanism as the solver gives it, from a live session; preliminary where that takes long."""
        known = self._last is not None and self._last[0] == _key(kind, given)
        design = None if known else self._preliminary(kind, given, values)
        if design is None:
            return self.complete(kind, given, values, request, tell)
        low, high = design.bound_words, f"{design.objective:.9g}"
        interval = "" if design.bound is None else f": the optimum lies between {low} and {high}"
        design = replace(design, words=(*design.words, f"Preliminary{interval}. The solver has not finished."))
        return _view(design, kind, given, values) | {"preliminary": True}

    def complete(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """The mechanism as the solver gives it, from a live session, solved to its end."""
        return _view(self._designed(kind, given, values), kind, given, values)

    def certify(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """The certified mechanism, from a cold start, with its certificate's file."""
        with no_files():
            to_certify = kind.request_of(dict(values) | {"check": "certify"})
        with kind.open(to_certify) as session:
            design = session.design()
        view = _view(design, kind, given, values)
        if design.certificate is not None:
            view["certificate"] = design.certificate.content().decode()
        return view

    def profile(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """The figures of its privacy."""
        design = self._designed(kind, given, values)
        if design.mechanism is None:
            raise InvalidRequest("There is no mechanism, and so no privacy profile.")
        return {"figures": profile_figures(design.mechanism, _point(kind, values))}

    def along(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """The objective at values of one hot option (`along`)."""
        name = request.get("along")
        grid = _grid(kind, values, name)
        session = self._session(kind, given, values).session
        rows, label, begin = [], "objective", time.monotonic()
        for done, value in enumerate(_coarse_first(grid, values[name])):
            tell(done, len(grid))
            if done >= _FEWEST and time.monotonic() - begin > _PATIENCE:
                break
            row, design = attempt(partial(session.design, _point(kind, values, **{name: value})))
            rows.append({**row, name: float(value)})
            label = _label(design) if design is not None and label == "objective" else label
        rows.sort(key=lambda row: float(row[name]))
        log = _range(kind, name)["scale"] == "log"
        others = [row for row in rows if row[name] != values[name]]
        if all(row["status"] == "refused" for row in others):  # such as a delta > 0 under the notion pure
            return {"figure": None, "rows": figures.plain(rows)}
        steps = jumps({"notion": values.get("notion"), **_point(kind, values), name: row[name]} for row in rows)
        return {"figure": loss_figures.along(name, label, rows, log=log, steps=steps), "rows": figures.plain(rows)}

    def rivals(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """Exact pieces and other mechanisms, from the family's frontier."""
        if kind.frontier is None:
            raise InvalidRequest(f"No published mechanisms are listed for the family {kind.name}.")
        try:
            rows = self._frontier(kind, given, values, tell)
        except InvalidRequest as error:
            raise InvalidRequest(f"Other mechanisms are not listed for this request. {error}") from None
        return loss_figures.rivals(rows) | {"rows": figures.plain(rows)}

    def _frontier(self, kind: Family, given: Any, values: Any, tell: Tell) -> list[dict[str, Any]]:
        """The rows of the family's frontier at one budget."""
        offered = {option.name: option for option in frontier_of(kind).options}
        for name in given:
            if kind.option(name).question and name not in offered:
                raise InvalidRequest(f"The trade-offs of {kind.name} are not computed for a question with {name}.")
        hot = {name: value for name, value in _point(kind, values).items() if value is not None}
        if missing := [
            name for name, option in offered.items() if name in kind.hot and option.required and name not in hot
        ]:
            raise InvalidRequest(f"They are compared at one {' and '.join(missing)}, which this request does not give.")
        taken = {
            name: values[name] if offered[name].question else text for name, text in given.items() if name in offered
        } | {name: [value] for name, value in hot.items() if name in offered}
        if "certify" in offered:
            taken["certify"] = False
        with no_files():
            plan = plan_of(kind, None, read(list(offered.values()), taken))
        return list(run(plan, lambda done, total, what: tell(done, total)).rows)

    def inverse(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """By bisection between the ends of the slider; the objective is taken to be monotone."""
        name, limit = request.get("along"), request.get("limit")
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not abs(limit) <= float_info.max:
            InvalidRequest.must("limit", "a finite number", repr(limit))
        reach = _range(kind, name)
        session = self._session(kind, given, values).session

        def loss(value: Fraction) -> float:
            row, _ = attempt(partial(session.design, _point(kind, values, **{name: value})))
            objective = row.get("objective")
            return math.inf if objective is None else float(objective)

        low, high = _short(reach["low"]), _short(reach["high"])
        if loss(high) > limit:
            raise InvalidRequest(f"No {name} up to {float(high):g} brings the objective to {limit:.6g}.")
        if loss(low) <= limit:
            return {"value": _spelled(low), "below": None}
        for done in range(60):
            tell(done, 60)
            middle = _short(math.sqrt(low * high) if low > 0 and reach["scale"] == "log" else float(low + high) / 2)
            if middle in (low, high):
                break
            low, high = (low, middle) if loss(middle) <= limit else (middle, high)
        return {"value": _spelled(high), "below": _spelled(low)}

    def export(self, kind: Family, given: Any, values: Any, request: Any, tell: Tell) -> View:
        """The certified design where the family certifies, its curves, and designs along the fastest hot option."""
        parts: list[Callable[[], None]] = []
        page: View = {"family": kind.name, "given": dict(given), "errors": {}, "along": {}, "steps": []}

        def part(name: str, compute: Callable[[], Any], put: Callable[[Any], None]) -> None:
            def run_part() -> None:
                try:
                    put(compute())
                except WorkbenchError as error:
                    page["errors"][name] = str(error)

            parts.append(run_part)

        best = self.certify if kind.certifies else self.complete
        page["view"] = best(kind, given, values, request, tell)
        nothing: Tell = lambda done, total: None  # noqa: E731
        hot = [name for name in kind.hot if values[name] is not None and option_range(kind.option(name))]
        part(
            "profile",
            lambda: self.profile(kind, given, values, request, nothing),
            lambda view: page.update(profile=view["figures"]),
        )
        for name in hot:
            part(
                f"along {name}",
                partial(self.along, kind, given, values, {"along": name}, nothing),
                partial(_put, page["along"], name),
            )
        part(
            "rivals",
            lambda: self.rivals(kind, given, values, request, nothing),
            lambda view: page.update(rivals={key: view[key] for key in ("overlays", "table")}),
        )
        if hot:
            name = hot[-1]
            for value in _grid(kind, values, name, _EXPORTED):
                text = _spelled(value)
                moved = {**given, name: text}
                part(
                    f"{name} {text}",
                    partial(self.complete, kind, moved, {**values, name: value}, request, nothing),
                    page["steps"].append,
                )
        for done, compute in enumerate(parts):
            tell(done, len(parts))
            compute()
        page["listing"] = [entry for entry in listing() if entry["name"] == kind.name]
        return page


TASKS: dict[str, Callable[..., View]] = {
    "suggestions": lambda *_: {},
    "design": Tasks.design,
    "complete": Tasks.complete,
    "certify": Tasks.certify,
    "profile": Tasks.profile,
    "along": Tasks.along,
    "rivals": Tasks.rivals,
    "inverse": Tasks.inverse,
    "export": Tasks.export,
}


def _key(kind: Family, given: Mapping[str, Any]) -> str:
    return json.dumps([kind.name, given], sort_keys=True)


def _put(figures_of: dict[str, Any], name: str, view: View) -> None:
    if view["figure"] is not None:
        figures_of[name] = view["figure"]


def _point(kind: Family, values: Mapping[str, Any], **moved: Any) -> dict[str, Any]:
    """The hot options of a request, with their defaults."""
    point = {name: values[name] for name in kind.hot} | moved
    return dict(kind.completed(values, point))


def _range(kind: Family, name: Any) -> dict[str, Any]:
    ends = option_range(kind.option(name)) if name in kind.hot else None
    return ends or InvalidRequest.must("along", f"a number among {', '.join(kind.hot)}", repr(name))


def _short(value: Any) -> Fraction:
    return Fraction(f"{float(value):.{_DIGITS}g}")


def _spelled(value: Fraction) -> str:
    return f"{float(value):.{_DIGITS}g}" if value == _short(value) else str(value)


def _grid(kind: Family, values: Mapping[str, Any], name: Any, steps: int = _STEPS) -> list[Fraction]:
    """Values of a hot option over its slider's range, the present one among them, three digits each."""
    reach = _range(kind, name)
    places = [k / (steps - 1) for k in range(steps)]
    if reach["scale"] == "share":
        numbers = {Fraction(f"{place**3:.3g}") for place in places}
    else:
        low, high = reach["low"], reach["high"]
        numbers = {Fraction(f"{low * (high / low) ** place:.3g}") for place in places}
    now = values[name]
    return sorted(numbers | ({now} if isinstance(now, Fraction) else set()))


def _coarse_first(grid: list[Fraction], now: Any) -> list[Fraction]:
    """The same values, so ordered that the first few already span the range; the present one first."""
    step, order = 1 << len(grid).bit_length(), [grid.index(now)] if now in grid else []
    while step:
        order += [k for k in range(0, len(grid), step) if k not in order]
        order += [len(grid) - 1] if len(grid) - 1 not in order else []
        step //= 2
    return [grid[k] for k in order]


def _label(design: Design) -> str:
    """What the objective is called: the label of the fact that states it."""
    facts, number = [fact for fact in design.facts() if fact[0] != "bound"], f"{design.objective:.9g}"
    in_full = [label for label, words in facts if words == repr(design.objective)]
    columns = [name for name, value in design.family.columns(design).items() if value == design.objective]
    begun = [label for label, words in facts if words.startswith(number) and label != "objective"]
    return next(iter([*in_full, *begun, *columns]), "objective")


def _view(design: Design, kind: Family, given: Mapping[str, Any], values: Mapping[str, Any]) -> View:
    """A design as plain data; nothing that is not in its row, its facts or its tables."""
    certified = design.certificate is not None
    raw, extra = ("", "") if certified or not kind.certifies else (" --raw", "certify=False")
    return {
        "heading": kind.heading(design),
        "facts": [list(fact) for fact in design.facts()],
        "row": figures.plain(design.row()),
        "objective": figures.plain(design.objective),
        "label": _label(design),
        "certified": certified,
        "private": design.private,
        "certifies": kind.certifies,
        "status": design.status,
        "figures": figures.law_figures(design),
        "given": dict(given),
        "hot": figures.plain(_point(kind, values)),
        "command": command_line(kind, given, raw),
        "python": python_call(kind, given, values, extra),
    }
