"""What a page can ask for, computed in a worker: one function for each task, from texts to plain data.

suggestions words that the options of a family take, and examples
fields      which options a request has room for, and which sliders
adapt       a request after one option changed: without what no longer fits, with what is then missing
design      the mechanism at once: certified where that takes no longer than a slider may, else audited, and to be
            certified next; where a solve takes long what there is after a moment, preliminary
complete    the same, solved to its end, not certified
certify     the same proven: what `workbench design` writes, with the certificate's file
prove       certify, where it takes long: beside the sliders
profile     privacy profile and trade-off curve of what was designed last, and what an attacker gains
along       the objective against one number of the budget, over the range of its slider, with designs on the way; no
            figure where no other value is taken
rivals      the family's own frontier at this budget: exact pieces, published mechanisms and their laws
formulas    where in the (ε, δ) plane which formula of the optimum holds
recommend   classes of mechanisms for a query at a budget
export      everything above about one request, for a page without a server
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from workbench.errors import InvalidRequest, NotProven, WorkbenchError, must
from workbench.exact.numbers import jsonable
from workbench.exact.objects import Values
from workbench.explorer import alone, figures, views
from workbench.explorer.formula_map import formula_map
from workbench.explorer.given import (
    EMPTY,
    Files,
    View,
    exact_values,
    known,
    listing,
    suggestions,
    texts_given,
)
from workbench.explorer.page_request import PageRequest, Tell, adapted, fields, silent
from workbench.pipeline.design import Design
from workbench.pipeline.frontier_plots import jumps
from workbench.pipeline.outcome import attempt
from workbench.pipeline.registry import family
from workbench.solvers.search import Deadline

_MOMENT = Fraction(1, 20)  # seconds of a preliminary solve
_WHILE, _LONG = (
    Fraction(6),
    Fraction(60),
)  # of one beside a slider, and of others: lanes have limits, too
_ROUNDING = 1e-6  # relative, of a solver's answer
_SLOW = 0.1  # seconds of a design from which the next ones are preliminary
_QUICK = 0.12  # seconds within which a design is certified while a slider moves
_FEWEST, _PATIENCE, _LONGEST = (
    5,
    8.0,
    20.0,
)  # so many designs of a curve unless it takes longest; seconds of a pass
_CURVES = 12  # whose rows are kept
_EXPORTED = 13  # designs in an export
_KEPT = 250_000  # characters of the figures of a design that comes with a curve


@dataclass
class _Timing:
    """How long designs of a question take. solved: so far, the first of which states the model; slow: whether they take
    long; seconds: what certifying took last; fruitless: whether a moment has ended with nothing in hand, as it does for
    linear programs."""

    solved: int = 0
    slow: bool = False
    seconds: float = 0.0
    fruitless: bool = False


class Tasks:
    """The tasks, with what is known from earlier ones. files: (family, option, text) whose texts may name files."""

    def __init__(self, files: Files = ()) -> None:
        self.files = frozenset(files)
        self._timings: defaultdict[str, _Timing] = defaultdict(_Timing)  # of questions
        self._last: tuple[str, Design] | None = None
        self._limit = _LONG
        self._rows: OrderedDict[str, dict[Fraction, tuple[View, str]]] = (
            OrderedDict()
        )  # of curves that go on

    def run(self, task: str, request: Values, tell: Tell = silent) -> View:
        """One task. request: family, given (option -> text), and what the task takes. Raises WorkbenchError."""
        InvalidRequest.unless_among(TASKS, "task", task)
        self._limit = _WHILE if task == "design" else _LONG
        if task == "recommend":
            return alone.recommend(request, tell)
        named = request.get("family", "")
        kind = family(
            named if isinstance(named, str) else must("family", "a text", type(named).__name__)
        )
        given = texts_given(kind, request.get("given"))
        if task == "suggestions":
            return suggestions(kind)
        if task in ("fields", "adapt"):
            texts = {name: value for name, value in given.items() if name in known(kind)}
            if task == "fields":
                return fields(kind, texts)
            limit = request.get("limit")
            fit = adapted(
                kind, texts, str(request.get("changed")), limit if isinstance(limit, str) else None
            )
            return {"given": fit, "room": fields(kind, fit)}
        values = exact_values(kind, given, self.files)
        texts = {name: value for name, value in given.items() if value not in EMPTY}
        view: View = jsonable(
            getattr(self, task)(PageRequest(kind, texts, values, request, tell)), gaps=True
        )
        return view

    # Designs.

    def _timing(self, request: PageRequest) -> _Timing:
        """That of all requests that differ in what is hot alone."""
        kind = request.kind
        fixed = {name: value for name, value in request.given.items() if name not in kind.hot}
        return self._timings[json.dumps([kind.name, fixed], sort_keys=True)]

    def _designed(self, request: PageRequest) -> Design:
        if self._last is None or self._last[0] != request.key:
            timing, clock = self._timing(request), Deadline()
            design = _reached(_audited(request, self._limit))
            timing.slow |= (
                timing.solved > 0 and clock.elapsed > _SLOW
            )  # the first design also states its model
            timing.solved += 1
            self._last = request.key, design
        return self._last[1]

    def _preliminary(self, request: PageRequest) -> Design | None:
        """What a moment of solving gives where designs take long: a design that lacks the proof. None elsewhere."""
        timing = self._timing(request)
        if not timing.slow or timing.fruitless or not request.within(_MOMENT):
            return None
        try:
            self._last = request.key, _audited(request, _MOMENT)()
        except NotProven as error:
            early: Design | None = error.design
            timing.fruitless = early is None
            return early
        except WorkbenchError:
            pass  # the whole solve says why
        return None

    def _proven(self, request: PageRequest) -> Design | None:
        """The certified design, where it takes no longer than a slider may; None elsewhere."""
        timing = self._timing(request)
        if (
            not request.kind.certifies
            or timing.solved <= 1
            or timing.slow
            or timing.seconds > _QUICK
        ):
            return None
        clock = Deadline()
        try:
            return request.kind.designed(request.request("certify"))
        except WorkbenchError:
            return None  # the audited one comes first, and then why it cannot be certified
        finally:
            timing.seconds = clock.elapsed

    # Tasks.

    formulas = staticmethod(formula_map)

    def design(self, request: PageRequest) -> View:
        """The mechanism: certified where that is quick; preliminary where solving takes long."""
        if proven := self._proven(request):
            return views.view(proven, request)
        solved = self._last is not None and self._last[0] == request.key
        design = None if solved else self._preliminary(request)
        if design is None:
            return self.complete(request)
        low, high = design.bound_words, f"{design.objective:.9g}"
        interval = "" if design.bound is None else f": the optimum lies between {low} and {high}"
        design = replace(design, words=(f"Preliminary{interval}. The solver has not finished.",))
        view = views.view(design, request, proving=True)
        return view | {"preliminary": True, "facts": [*view["facts"], ("note", design.words[-1])]}

    def complete(self, request: PageRequest) -> View:
        """The mechanism as the solver gives it, solved to its end."""
        view = views.view(self._designed(request), request, proving=True, is_final=True)
        return view | {"quick": not self._timing(request).slow}

    def certify(self, request: PageRequest) -> View:
        """The certified mechanism, with its certificate's file."""
        design = _reached(
            partial(request.kind.designed, request.request("certify", **request.within(_LONG)))
        )
        self._last, proof = (request.key, design), design.certificate
        view = views.view(design, request, is_final=True)
        return view | ({"certificate": proof.content().decode()} if proof else {})

    prove = certify

    def profile(self, request: PageRequest) -> View:
        """The figures of its privacy, and what an attacker gains in words."""
        design = self._designed(request)
        if design.mechanism is None:
            raise InvalidRequest("There is no mechanism, and so no privacy profile.")
        drawn = figures.profile_figures(design.mechanism, design.claim)
        return {"figures": drawn, "risk": views.leaks(design.mechanism)}

    def along(self, request: PageRequest) -> View:
        """The objective at values of one number of the budget (`along`); each design with its figures is told. A curve
        that stopped goes on when it is wanted again; left: how many values it lacks."""
        name: Any = request.more.get("along")
        grid = request.grid(name)
        others = {option: text for option, text in request.given.items() if option != name}
        known = self._rows.setdefault(
            json.dumps([request.kind.name, name, others], sort_keys=True), {}
        )
        self._rows.move_to_end(next(key for key, rows in self._rows.items() if rows is known))
        while len(self._rows) > _CURVES:
            self._rows.popitem(last=False)
        clock = Deadline()
        for value in alone.coarse_first(grid, request.values[name]):
            if value in known:
                continue
            if clock.elapsed > (_PATIENCE if len(known) >= _FEWEST else _LONGEST):
                break
            there = request.at(name, value)
            solve = (
                _audited(request, _LONG, **{name: value})
                if name in request.kind.hot
                else _audited(there, _LONG)
            )
            row, design = attempt(partial(_reached, solve))
            known[value] = {**row, name: float(value)}, views.label(design) if design else ""
            request.tell(len(known), len(grid), _step(design, there, name, value))
        return self._curve(request, name, known) | {
            "left": sum(value not in known for value in grid)
        }

    def _curve(
        self, request: PageRequest, name: str, known: dict[Fraction, tuple[View, str]]
    ) -> View:
        """The figure of a curve, None where no other value than the present one is taken."""
        rows = [known[value][0] for value in sorted(known)]
        label = next((label for _, label in known.values() if label), "objective")
        if all(
            row["status"] == "refused" for row in rows if row[name] != request.values[name]
        ):  # as a δ of pure
            return {"figure": None, "rows": rows}
        scale, notion = request.range(name)["scale"], request.values.get("notion")
        steps = scale == "count" or jumps(
            {"notion": notion, **request.point(), name: row[name]} for row in rows
        )
        return {"figure": figures.along(name, label, rows, scale=scale, steps=steps), "rows": rows}

    def rivals(self, request: PageRequest) -> View:
        """Exact pieces and other mechanisms, from the family's frontier, and laws of published ones."""
        if request.kind.frontier is None:
            raise InvalidRequest(
                f"No published mechanisms are listed for the family {request.kind.name}."
            )
        design = self._designed(request)
        laws = figures.other_laws(design) if design.mechanism else []
        try:
            rows = alone.frontier(request)
        except InvalidRequest as error:
            if laws:
                return {"overlays": {}, "table": None, "rows": [], "laws": laws}
            raise InvalidRequest(
                f"Other mechanisms are not listed for this request. {error}"
            ) from None
        return figures.rivals(rows) | {"rows": rows, "laws": laws}

    def export(self, request: PageRequest) -> View:
        """The certified design where the family certifies, its curves, and designs along the first slider."""
        kind, quiet = request.kind, replace(request, tell=silent)
        view = (self.certify if kind.certifies else self.complete)(request)
        slid = list(request.numbers)
        moved = (
            [quiet.at(slid[0], value) for value in request.grid(slid[0], _EXPORTED)] if slid else []
        )
        steps = {f"{slid[0]} {at.given[slid[0]]}": partial(self._exported, at) for at in moved}
        curves = {
            f"along {name}": partial(self.along, replace(quiet, more={"along": name}))
            for name in slid
        }
        parts = {
            "profile": partial(self.profile, quiet),
            **curves,
            "rivals": partial(self.rivals, quiet),
        }
        parts |= {"formulas": partial(self.formulas, quiet), **steps}
        answers = {}
        errors, deadline = {}, Deadline(8 * _PATIENCE)
        for done, (name, compute) in enumerate(parts.items()):
            request.tell(done, len(parts))
            if name in steps and deadline.passed:
                continue
            try:
                answers[name] = compute()
            except WorkbenchError as error:
                if name != "formulas":  # which most questions have none of
                    errors[name] = str(error)
        drawn = {
            name: answers[f"along {name}"]["figure"] for name in slid if f"along {name}" in answers
        }
        page: View = {
            "family": kind.name,
            "given": dict(request.given),
            "errors": errors,
            "along": {name: figure for name, figure in drawn.items() if figure},
            "steps": [answers[name] for name in steps if name in answers],
            "view": view,
            **{name: answers[name] for name in ("profile", "formulas") if name in answers},
        }
        if "rivals" in answers:
            page["rivals"] = {key: answers["rivals"][key] for key in ("overlays", "table", "laws")}
        page["listing"] = [entry for entry in listing() if entry["name"] == kind.name]
        return page

    def _exported(self, request: PageRequest) -> View:
        """A design of an export, certified where that is quick."""
        proven = self._proven(request)
        return views.view(proven, request, is_final=True) if proven else self.complete(request)


def _audited(request: PageRequest, seconds: Fraction, **moved: Any) -> Callable[[], Design]:
    """The design of a request, not certified, in so many seconds. moved: other values of hot options."""
    own = request.request("audit", **request.within(seconds))
    return lambda: request.kind.designed(own.at(moved) if moved else own)


def _reached(solve: Callable[[], Design]) -> Design:
    """A design, or what there was when time was up, which says so. Raises WorkbenchError; NotProven for an answer that
    is below its bound by more than rounding, which no private one is."""
    try:
        design = solve()
    except NotProven as error:
        if error.design is None:
            raise
        between, bound = str(error), error.design.bound
        if bound is not None:
            between = f"the optimum lies between {bound:.9g} and {error.design.objective:.9g}."
        design = replace(
            error.design, words=(*error.design.words, f"Not proven to be the best: {between}")
        )
    low = -math.inf if design.bound is None or design.certificate is not None else design.bound
    if low - design.objective > _ROUNDING * abs(low):
        raise NotProven("The solver was stopped before its law was private.", bound=low)
    return design


def _step(design: Design | None, request: PageRequest, name: str, value: Fraction) -> View | None:
    """A design on the way along an option, for a page to show while the solver is at work; None of a large one."""
    if design is None or design.mechanism is None:
        return None
    answers = jsonable(views.view(design, request, proving=True), gaps=True)
    return (
        {"along": name, "at": float(value), "view": answers}
        if len(json.dumps(answers["figures"])) <= _KEPT
        else None
    )


TASKS = (
    "suggestions", "fields", "adapt", "design", "complete", "certify", "prove", "profile", "along", "rivals",
    "formulas", "export", "recommend",
)  # fmt: skip
