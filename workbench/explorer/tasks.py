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
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import count
from sys import float_info
from typing import Any

from solvers.search import bisect
from workbench.errors import InvalidRequest, NotProven, WorkbenchError
from workbench.exact.numbers import jsonable
from workbench.explorer import figures
from workbench.explorer.given import (
    EMPTY,
    Files,
    View,
    command_line,
    exact_values,
    listing,
    option_range,
    python_call,
    suggestions,
)
from workbench.families.base import Family, Request, Session
from workbench.families.design import Design
from workbench.families.frontier_plots import jumps
from workbench.families.option import read
from workbench.families.outcome import attempt
from workbench.families.registry import family
from workbench.frontiers.run import frontier_of, plan_of, run
from workbench.io.files import no_files
from workbench.io.result import Values

Tell = Callable[[int, int], None]  # (parts done, parts)
_SESSIONS = 4  # live at a time
_MOMENT = Fraction(1, 20)  # seconds of a preliminary solve
_SLOW = 0.1  # seconds of a hot design from which the next ones are preliminary
_STEPS = 25  # values of an option along its range
_FEWEST, _PATIENCE = 5, 8.0  # so many of them in any case, no further one after so many seconds
_EXPORTED = 13  # designs in an export
_DIGITS = 4  # of what the inverse task finds
_TURNS = 60  # of its bisection


def _silent(done: int, total: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class _Request:
    """What a task is about: a family, its options as texts and as exact values, what the task itself takes, and whom
    to tell how far it is."""

    kind: Family
    given: Values
    values: Values
    more: Values = field(default_factory=dict)
    tell: Tell = _silent

    @property
    def key(self) -> str:
        """The same for the same request."""
        return json.dumps([self.kind.name, self.given], sort_keys=True)

    def point(self, **moved: Any) -> View:
        """The hot options, with their defaults."""
        point = {name: self.values[name] for name in self.kind.hot} | moved
        return dict(self.kind.completed(self.values, point))

    def request(self, check: str, **more: Any) -> Request:
        """The family's request; no file is read."""
        with no_files():
            return self.kind.request_of({**self.values, "check": check, **more})

    def at(self, name: str, value: Fraction) -> _Request:
        """The same with another value of an option."""
        return replace(self, given={**self.given, name: _spelled(value)}, values={**self.values, name: value})

    def range(self, name: Any) -> View:
        """The range of a hot option's slider. Raises InvalidRequest for another option."""
        ends = option_range(self.kind.option(name)) if name in self.kind.hot else None
        return ends or InvalidRequest.must("along", f"a number among {', '.join(self.kind.hot)}", repr(name))

    def grid(self, name: Any, steps: int = _STEPS) -> list[Fraction]:
        """Values of a hot option over its slider's range, the present one among them, three digits each."""
        reach, places = self.range(name), [k / (steps - 1) for k in range(steps)]
        low, high, share = reach["low"], reach["high"], reach["scale"] == "share"
        numbers = {Fraction(f"{place**3 if share else low * (high / low) ** place:.3g}") for place in places}
        now = self.values[name]
        return sorted(numbers | ({now} if isinstance(now, Fraction) else set()))


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

    def __init__(self, files: Files = ()) -> None:
        self.files = frozenset(files)
        self._sessions: OrderedDict[str, _Live] = OrderedDict()
        self._last: tuple[str, Design] | None = None

    def run(self, task: str, request: Values, tell: Tell = _silent) -> View:
        """One task. request: family, given (option -> text), and what the task takes. Raises WorkbenchError."""
        InvalidRequest.unless_among(TASKS, "task", task)
        kind, given = family(request.get("family", "")), request.get("given")
        if task == "suggestions":
            return suggestions(kind)
        values = exact_values(kind, given, self.files)
        known = {name: value for name, value in (given or {}).items() if value not in EMPTY}
        answer = getattr(self, task)(_Request(kind, known, values, request, tell))
        view: View = jsonable(answer, gaps=True)
        return view

    # Sessions.

    def _session(self, request: _Request) -> _Live:
        """The live session for all that is not hot; the least recently used one makes room."""
        kind = request.kind
        fixed = {name: value for name, value in request.given.items() if name not in kind.hot}
        missing = [name for name in kind.hot if request.values[name] is None]
        key = json.dumps([kind.name, missing, fixed], sort_keys=True)
        if key not in self._sessions:
            self._sessions[key] = _Live(kind.open(request.request("audit")))
            while len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)[1].close()
        self._sessions.move_to_end(key)
        return self._sessions[key]

    def _drop(self) -> None:
        """Close all sessions: one that failed is not trusted with the next request."""
        while self._sessions:
            self._sessions.popitem()[1].close()

    def _designed(self, request: _Request) -> Design:
        if self._last is None or self._last[0] != request.key:
            live, begin = self._session(request), time.monotonic()
            try:
                design = live.session.design(request.point())
            except NotProven as error:
                if error.design is None:
                    raise
                design = replace(error.design, words=(*error.design.words, f"Not proven: {error}"))
            except WorkbenchError:
                self._drop()
                raise
            live.slow |= live.solved and time.monotonic() - begin > _SLOW  # the first design also states its model
            live.solved = True
            self._last = request.key, design
        return self._last[1]

    def _preliminary(self, request: _Request) -> Design | None:
        """What a moment of solving gives where designs take long: a design that lacks the proof. None elsewhere."""
        kind, live = request.kind, self._session(request)
        limit = next((option.name for option in kind.options if option.name == "time_limit" and option.solver), None)
        if not live.slow or live.fruitless or limit is None:
            return None
        if request.values[limit] is not None and request.values[limit] <= _MOMENT:
            return None
        if live.brief is None:
            live.brief = kind.open(request.request("audit", **{limit: _MOMENT}))
        try:
            self._last = request.key, live.brief.design(request.point())
        except NotProven as error:
            early: Design | None = error.design
            live.fruitless = early is None
            return early
        except WorkbenchError:
            pass  # the whole solve says why
        return None

    # Tasks.

    def design(self, request: _Request) -> View:
        """The mechanism as the solver gives it, from a live session; preliminary where that takes long."""
        solved = self._last is not None and self._last[0] == request.key
        design = None if solved else self._preliminary(request)
        if design is None:
            return self.complete(request)
        low, high = design.bound_words, f"{design.objective:.9g}"
        interval = "" if design.bound is None else f": the optimum lies between {low} and {high}"
        design = replace(design, words=(*design.words, f"Preliminary{interval}. The solver has not finished."))
        return _view(design, request) | {"preliminary": True}

    def complete(self, request: _Request) -> View:
        """The mechanism as the solver gives it, from a live session, solved to its end."""
        return _view(self._designed(request), request)

    def certify(self, request: _Request) -> View:
        """The certified mechanism, from a cold start, with its certificate's file."""
        design = request.kind.designed(request.request("certify"))
        proof = design.certificate
        return _view(design, request) | ({} if proof is None else {"certificate": proof.content().decode()})

    def profile(self, request: _Request) -> View:
        """The figures of its privacy."""
        design = self._designed(request)
        if design.mechanism is None:
            raise InvalidRequest("There is no mechanism, and so no privacy profile.")
        return {"figures": figures.profile_figures(design.mechanism, request.point())}

    def along(self, request: _Request) -> View:
        """The objective at values of one hot option (`along`)."""
        name: Any = request.more.get("along")
        grid = request.grid(name)
        session = self._session(request).session
        now = request.values[name]
        rows, label, begin = [], "objective", time.monotonic()
        for done, value in enumerate(_coarse_first(grid, now)):
            request.tell(done, len(grid))
            if done >= _FEWEST and time.monotonic() - begin > _PATIENCE:
                break
            row, design = attempt(partial(session.design, request.point(**{name: value})))
            rows.append({**row, name: float(value)})
            label = _label(design) if design is not None and label == "objective" else label
        rows.sort(key=lambda row: float(row[name]))
        if all(row["status"] == "refused" for row in rows if row[name] != now):  # as a δ > 0 under the notion pure
            return {"figure": None, "rows": rows}
        log, notion = request.range(name)["scale"] == "log", request.values.get("notion")
        steps = jumps({"notion": notion, **request.point(), name: row[name]} for row in rows)
        return {"figure": figures.along(name, label, rows, log=log, steps=steps), "rows": rows}

    def rivals(self, request: _Request) -> View:
        """Exact pieces and other mechanisms, from the family's frontier."""
        if request.kind.frontier is None:
            raise InvalidRequest(f"No published mechanisms are listed for the family {request.kind.name}.")
        try:
            rows = _frontier(request)
        except InvalidRequest as error:
            raise InvalidRequest(f"Other mechanisms are not listed for this request. {error}") from None
        return figures.rivals(rows) | {"rows": rows}

    def inverse(self, request: _Request) -> View:
        """By bisection between the ends of the slider; the objective is taken to be monotone."""
        name: Any = request.more.get("along")
        limit = request.more.get("limit")
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not abs(limit) <= float_info.max:
            InvalidRequest.must("limit", "a finite number", repr(limit))
        reach = request.range(name)
        session = self._session(request).session

        def within(value: Fraction) -> bool:
            row, _ = attempt(partial(session.design, request.point(**{name: value})))
            objective = row.get("objective")
            return objective is not None and objective <= limit

        turns = count()

        def middle(low: Fraction, high: Fraction) -> Fraction:
            request.tell(next(turns), _TURNS)
            return _short(math.sqrt(low * high) if low > 0 and reach["scale"] == "log" else (low + high) / 2)

        low, high = _short(reach["low"]), _short(reach["high"])
        if not within(high):
            raise InvalidRequest(f"No {name} up to {float(high):g} brings the objective to {limit:.6g}.")
        if within(low):
            return {"value": _spelled(low), "below": None}
        low, high = bisect(within, low, high, turns=_TURNS, middle=middle)
        return {"value": _spelled(high), "below": _spelled(low)}

    def export(self, request: _Request) -> View:
        """The certified design where the family certifies, its curves, and designs along the fastest hot option."""
        kind, quiet = request.kind, replace(request, tell=_silent)
        view = (self.certify if kind.certifies else self.complete)(request)
        hot = [name for name in kind.hot if request.values[name] is not None and option_range(kind.option(name))]
        moved = [quiet.at(hot[-1], value) for value in request.grid(hot[-1], _EXPORTED)] if hot else []
        steps = {f"{hot[-1]} {at.given[hot[-1]]}": partial(self.complete, at) for at in moved}
        curves = {f"along {name}": partial(self.along, replace(quiet, more={"along": name})) for name in hot}
        parts = {"profile": partial(self.profile, quiet), **curves, "rivals": partial(self.rivals, quiet), **steps}
        views: dict[str, View] = {}
        errors = {}
        for done, (name, compute) in enumerate(parts.items()):
            request.tell(done, len(parts))
            try:
                views[name] = compute()
            except WorkbenchError as error:
                errors[name] = str(error)
        drawn = {name: views[f"along {name}"]["figure"] for name in hot if f"along {name}" in views}
        page = {
            "family": kind.name,
            "given": dict(request.given),
            "errors": errors,
            "along": {name: figure for name, figure in drawn.items() if figure is not None},
            "steps": [views[name] for name in steps if name in views],
            "view": view,
        }
        if "profile" in views:
            page["profile"] = views["profile"]["figures"]
        if "rivals" in views:
            page["rivals"] = {key: views["rivals"][key] for key in ("overlays", "table")}
        page["listing"] = [entry for entry in listing() if entry["name"] == kind.name]
        return page


TASKS = ("suggestions", "design", "complete", "certify", "profile", "along", "rivals", "inverse", "export")


def _frontier(request: _Request) -> list[View]:
    """The rows of the family's frontier at one budget."""
    kind, values = request.kind, request.values
    offered = {option.name: option for option in frontier_of(kind).options}
    taken = {}
    for name, text in request.given.items():
        if name in offered:
            taken[name] = values[name] if offered[name].question else text
        elif kind.option(name).question:
            raise InvalidRequest(f"The trade-offs of {kind.name} are not computed for a question with {name}.")
    hot = {name: [value] for name, value in request.point().items() if value is not None and name in offered}
    if missing := [name for name in kind.hot if name in offered and offered[name].required and name not in hot]:
        raise InvalidRequest(f"They are compared at one {' and '.join(missing)}, which this request does not give.")
    raw = {"certify": False} if "certify" in offered else {}
    with no_files():
        plan = plan_of(kind, None, read([*offered.values()], taken | hot | raw))
    return list(run(plan, lambda done, total, what: request.tell(done, total)).rows)


def _short(value: Any) -> Fraction:
    return Fraction(f"{float(value):.{_DIGITS}g}")


def _spelled(value: Fraction) -> str:
    return f"{float(value):.{_DIGITS}g}" if value == _short(value) else str(value)


def _coarse_first(grid: list[Fraction], now: Any) -> list[Fraction]:
    """The same values, so ordered that the first few already span the range; the present one first."""
    order = [grid.index(now)] if now in grid else []
    for halvings in range(len(grid).bit_length(), -1, -1):
        order += [*range(0, len(grid), 1 << halvings), len(grid) - 1]
    return [grid[k] for k in dict.fromkeys(order)]


def _label(design: Design) -> str:
    """What the objective is called: the label of the fact that states it."""
    facts, number = [fact for fact in design.facts() if fact[0] != "bound"], f"{design.objective:.9g}"
    in_full = [label for label, words in facts if words == repr(design.objective)]
    columns = [name for name, value in design.family.columns(design).items() if value == design.objective]
    begun = [label for label, words in facts if words.startswith(number) and label != "objective"]
    return next(iter([*in_full, *begun, *columns]), "objective")


def _view(design: Design, request: _Request) -> View:
    """A design as plain data; nothing that is not in its row, its facts or its tables."""
    kind, given, certified = request.kind, request.given, design.certificate is not None
    raw, extra = ("", "") if certified or not kind.certifies else (" --raw", "certify=False")
    return {
        "heading": design.heading,
        "facts": design.facts(),
        "row": design.row(),
        "objective": design.objective,
        "label": _label(design),
        "certified": certified,
        "private": design.private,
        "certifies": kind.certifies,
        "status": design.status,
        "figures": figures.law_figures(design),
        "given": dict(given),
        "hot": request.point(),
        "command": command_line(kind, given, raw),
        "python": python_call(kind, given, extra),
    }
