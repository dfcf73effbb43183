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
from workbench.exact.numbers import to_jsonable
from workbench.exact.objects import Values
from workbench.explorer import alone, figures, views
from workbench.explorer.formula_map import make_formula_map
from workbench.explorer.given import (
    EMPTY_TEXTS,
    FileTexts,
    View,
    check_option_texts,
    describe_families,
    make_suggestions,
    offered_options,
    read_option_values,
)
from workbench.explorer.page_request import (
    PageRequest,
    ProgressFunction,
    adapt_request,
    classify_missing_options,
    ignore_progress,
)
from workbench.pipeline.design import Design
from workbench.pipeline.frontier_plots import may_jump
from workbench.pipeline.outcome import attempt_design
from workbench.pipeline.registry import get_family
from workbench.solvers.search import Deadline

_PRELIMINARY_SECONDS = Fraction(1, 20)  # seconds of a preliminary solve
_SLIDER_DESIGN_SECONDS, _FULL_DESIGN_SECONDS = (
    Fraction(6),
    Fraction(60),
)  # of one beside a slider, and of others: lanes have limits, too
_BOUND_TOLERANCE = 1e-6  # relative, of a solver's answer
_SLOW_DESIGN_SECONDS = 0.1  # seconds of a design from which the next ones are preliminary
_QUICK_PROOF_SECONDS = 0.12  # seconds within which a design is certified while a slider moves
_MIN_CURVE_DESIGNS, _CURVE_PASS_SECONDS, _MAX_CURVE_PASS_SECONDS = (
    5,
    8.0,
    20.0,
)  # so many designs of a curve unless it takes longest; seconds of a pass
_MAX_STORED_CURVES = 12  # whose rows are kept
_EXPORT_DESIGNS = 13  # designs in an export
_MAX_STEP_CHARACTERS = 250_000  # characters of the figures of a design that comes with a curve


@dataclass
class _QuestionTiming:
    """How long designs of a question take. solved: so far, the first of which states the model; slow: whether they take
    long; seconds: what certifying took last; fruitless: whether a moment has ended with nothing in hand, as it does for
    linear programs."""

    solved_count: int = 0
    is_slow: bool = False
    certify_seconds: float = 0.0
    is_preliminary_useless: bool = False


class Tasks:
    """The tasks, with what is known from earlier ones. files: (family, option, text) whose texts may name files."""

    def __init__(self, files: FileTexts = ()) -> None:
        self.files = frozenset(files)
        self._timings: defaultdict[str, _QuestionTiming] = defaultdict(
            _QuestionTiming
        )  # of questions
        self._last: tuple[str, Design] | None = None
        self._limit = _FULL_DESIGN_SECONDS
        self._rows: OrderedDict[str, dict[Fraction, tuple[View, str]]] = (
            OrderedDict()
        )  # of curves that go on

    def run(self, task: str, request: Values, tell: ProgressFunction = ignore_progress) -> View:
        """One task. request: family, given (option -> text), and what the task takes. Raises WorkbenchError."""
        InvalidRequest.check_choice(TASK_NAMES, "task", task)
        self._limit = _SLIDER_DESIGN_SECONDS if task == "design" else _FULL_DESIGN_SECONDS
        if task == "recommend":
            return alone.compute_recommendation(request, tell)
        named = request.get("family", "")
        kind = get_family(
            named if isinstance(named, str) else must("family", "a text", type(named).__name__)
        )
        given = check_option_texts(kind, request.get("given"))
        if task == "suggestions":
            return make_suggestions(kind)
        if task in ("fields", "adapt"):
            texts = {name: value for name, value in given.items() if name in offered_options(kind)}
            if task == "fields":
                return classify_missing_options(kind, texts)
            limit = request.get("limit")
            fit = adapt_request(
                kind, texts, str(request.get("changed")), limit if isinstance(limit, str) else None
            )
            return {"given": fit, "room": classify_missing_options(kind, fit)}
        values = read_option_values(kind, given, self.files)
        texts = {name: value for name, value in given.items() if value not in EMPTY_TEXTS}
        view: View = to_jsonable(
            getattr(self, task)(PageRequest(kind, texts, values, request, tell)), nan_as_null=True
        )
        return view

    # Designs.

    def _timing(self, request: PageRequest) -> _QuestionTiming:
        """That of all requests that differ in what is hot alone."""
        kind = request.family
        fixed = {
            name: value
            for name, value in request.texts.items()
            if name not in kind.hot_option_names
        }
        return self._timings[json.dumps([kind.name, fixed], sort_keys=True)]

    def _audited_design(self, request: PageRequest) -> Design:
        if self._last is None or self._last[0] != request.key:
            timing, clock = self._timing(request), Deadline()
            design = _solve_or_best_found(_make_audited_solve(request, self._limit))
            timing.is_slow |= (
                timing.solved_count > 0 and clock.elapsed_seconds > _SLOW_DESIGN_SECONDS
            )  # the first design also states its model
            timing.solved_count += 1
            self._last = request.key, design
        return self._last[1]

    def _preliminary_design(self, request: PageRequest) -> Design | None:
        """What a moment of solving gives where designs take long: a design that lacks the proof. None elsewhere."""
        timing = self._timing(request)
        if (
            not timing.is_slow
            or timing.is_preliminary_useless
            or not request.time_limit_option(_PRELIMINARY_SECONDS)
        ):
            return None
        try:
            self._last = request.key, _make_audited_solve(request, _PRELIMINARY_SECONDS)()
        except NotProven as error:
            early: Design | None = error.design
            timing.is_preliminary_useless = early is None
            return early
        except WorkbenchError:
            pass  # the whole solve says why
        return None

    def _quick_certified_design(self, request: PageRequest) -> Design | None:
        """The certified design, where it takes no longer than a slider may; None elsewhere."""
        timing = self._timing(request)
        if (
            not request.family.certifies
            or timing.solved_count <= 1
            or timing.is_slow
            or timing.certify_seconds > _QUICK_PROOF_SECONDS
        ):
            return None
        clock = Deadline()
        try:
            return request.family.design_request(request.make_request("certify"))
        except WorkbenchError:
            return None  # the audited one comes first, and then why it cannot be certified
        finally:
            timing.certify_seconds = clock.elapsed_seconds

    # Tasks.

    formulas = staticmethod(make_formula_map)

    def design(self, request: PageRequest) -> View:
        """The mechanism: certified where that is quick; preliminary where solving takes long."""
        if proven := self._quick_certified_design(request):
            return views.make_design_view(proven, request)
        solved = self._last is not None and self._last[0] == request.key
        design = None if solved else self._preliminary_design(request)
        if design is None:
            return self.complete(request)
        low, high = design.bound_text, f"{design.objective:.9g}"
        interval = "" if design.bound is None else f": the optimum lies between {low} and {high}"
        design = replace(design, words=(f"Preliminary{interval}. The solver has not finished.",))
        view = views.make_design_view(design, request, proving=True)
        return view | {"preliminary": True, "facts": [*view["facts"], ("note", design.words[-1])]}

    def complete(self, request: PageRequest) -> View:
        """The mechanism as the solver gives it, solved to its end."""
        view = views.make_design_view(
            self._audited_design(request), request, proving=True, is_final=True
        )
        return view | {"quick": not self._timing(request).is_slow}

    def certify(self, request: PageRequest) -> View:
        """The certified mechanism, with its certificate's file."""
        design = _solve_or_best_found(
            partial(
                request.family.design_request,
                request.make_request("certify", **request.time_limit_option(_FULL_DESIGN_SECONDS)),
            )
        )
        self._last, proof = (request.key, design), design.certificate
        view = views.make_design_view(design, request, is_final=True)
        return view | ({"certificate": proof.content().decode()} if proof else {})

    prove = certify

    def profile(self, request: PageRequest) -> View:
        """The figures of its privacy, and what an attacker gains in words."""
        design = self._audited_design(request)
        if design.mechanism is None:
            raise InvalidRequest("There is no mechanism, and so no privacy profile.")
        drawn = figures.make_profile_figures(design.mechanism, design.claim)
        return {"figures": drawn, "risk": views.compute_attacker_gains(design.mechanism)}

    def along(self, request: PageRequest) -> View:
        """The objective at values of one number of the budget (`along`); each design with its figures is told. A curve
        that stopped goes on when it is wanted again; left: how many values it lacks."""
        name: Any = request.task_fields.get("along")
        grid = request.slider_grid(name)
        others = {option: text for option, text in request.texts.items() if option != name}
        known = self._rows.setdefault(
            json.dumps([request.family.name, name, others], sort_keys=True), {}
        )
        self._rows.move_to_end(next(key for key, rows in self._rows.items() if rows is known))
        while len(self._rows) > _MAX_STORED_CURVES:
            self._rows.popitem(last=False)
        clock = Deadline()
        for value in alone.order_coarse_first(grid, request.values[name]):
            if value in known:
                continue
            if clock.elapsed_seconds > (
                _CURVE_PASS_SECONDS if len(known) >= _MIN_CURVE_DESIGNS else _MAX_CURVE_PASS_SECONDS
            ):
                break
            there = request.with_value(name, value)
            solve = (
                _make_audited_solve(request, _FULL_DESIGN_SECONDS, **{name: value})
                if name in request.family.hot_option_names
                else _make_audited_solve(there, _FULL_DESIGN_SECONDS)
            )
            row, design = attempt_design(partial(_solve_or_best_found, solve))
            known[value] = (
                {**row, name: float(value)},
                views.find_objective_label(design) if design else "",
            )
            request.report_progress(
                len(known), len(grid), _make_step_view(design, there, name, value)
            )
        return self._make_curve(request, name, known) | {
            "left": sum(value not in known for value in grid)
        }

    def _make_curve(
        self, request: PageRequest, name: str, known: dict[Fraction, tuple[View, str]]
    ) -> View:
        """The figure of a curve, None where no other value than the present one is taken."""
        rows = [known[value][0] for value in sorted(known)]
        label = next((label for _, label in known.values() if label), "objective")
        if all(
            row["status"] == "refused" for row in rows if row[name] != request.values[name]
        ):  # as a δ of pure
            return {"figure": None, "rows": rows}
        scale, notion = request.slider_range(name)["scale"], request.values.get("notion")
        steps = scale == "count" or may_jump(
            {"notion": notion, **request.hot_values(), name: row[name]} for row in rows
        )
        return {
            "figure": figures.make_curve_figure(name, label, rows, scale=scale, steps=steps),
            "rows": rows,
        }

    def rivals(self, request: PageRequest) -> View:
        """Exact pieces and other mechanisms, from the family's frontier, and laws of published ones."""
        if request.family.frontier is None:
            raise InvalidRequest(
                f"No published mechanisms are listed for the family {request.family.name}."
            )
        design = self._audited_design(request)
        laws = figures.make_published_outlines(design) if design.mechanism else []
        try:
            rows = alone.compute_frontier_rows(request)
        except InvalidRequest as error:
            if laws:
                return {"overlays": {}, "table": None, "rows": [], "laws": laws}
            raise InvalidRequest(
                f"Other mechanisms are not listed for this request. {error}"
            ) from None
        return figures.make_rival_figures(rows) | {"rows": rows, "laws": laws}

    def export(self, request: PageRequest) -> View:
        """The certified design where the family certifies, its curves, and designs along the first slider."""
        kind, quiet = request.family, replace(request, report_progress=ignore_progress)
        view = (self.certify if kind.certifies else self.complete)(request)
        slid = list(request.slider_values)
        moved = (
            [
                quiet.with_value(slid[0], value)
                for value in request.slider_grid(slid[0], _EXPORT_DESIGNS)
            ]
            if slid
            else []
        )
        steps = {
            f"{slid[0]} {at.texts[slid[0]]}": partial(self._make_export_view, at) for at in moved
        }
        curves = {
            f"along {name}": partial(self.along, replace(quiet, task_fields={"along": name}))
            for name in slid
        }
        parts = {
            "profile": partial(self.profile, quiet),
            **curves,
            "rivals": partial(self.rivals, quiet),
        }
        parts |= {"formulas": partial(self.formulas, quiet), **steps}
        answers = {}
        errors, deadline = {}, Deadline(8 * _CURVE_PASS_SECONDS)
        for done, (name, compute) in enumerate(parts.items()):
            request.report_progress(done, len(parts))
            if name in steps and deadline.has_passed:
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
            "given": dict(request.texts),
            "errors": errors,
            "along": {name: figure for name, figure in drawn.items() if figure},
            "steps": [answers[name] for name in steps if name in answers],
            "view": view,
            **{name: answers[name] for name in ("profile", "formulas") if name in answers},
        }
        if "rivals" in answers:
            page["rivals"] = {key: answers["rivals"][key] for key in ("overlays", "table", "laws")}
        page["listing"] = [entry for entry in describe_families() if entry["name"] == kind.name]
        return page

    def _make_export_view(self, request: PageRequest) -> View:
        """A design of an export, certified where that is quick."""
        proven = self._quick_certified_design(request)
        return (
            views.make_design_view(proven, request, is_final=True)
            if proven
            else self.complete(request)
        )


def _make_audited_solve(
    request: PageRequest, seconds: Fraction, **moved: Any
) -> Callable[[], Design]:
    """The design of a request, not certified, in so many seconds. moved: other values of hot options."""
    own = request.make_request("audit", **request.time_limit_option(seconds))
    return lambda: request.family.design_request(own.at_point(moved) if moved else own)


def _solve_or_best_found(solve: Callable[[], Design]) -> Design:
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
    if low - design.objective > _BOUND_TOLERANCE * abs(low):
        raise NotProven("The solver was stopped before its law was private.", bound=low)
    return design


def _make_step_view(
    design: Design | None, request: PageRequest, name: str, value: Fraction
) -> View | None:
    """A design on the way along an option, for a page to show while the solver is at work; None of a large one."""
    if design is None or design.mechanism is None:
        return None
    answers = to_jsonable(views.make_design_view(design, request, proving=True), nan_as_null=True)
    return (
        {"along": name, "at": float(value), "view": answers}
        if len(json.dumps(answers["figures"])) <= _MAX_STEP_CHARACTERS
        else None
    )


TASK_NAMES = (
    "suggestions", "fields", "adapt", "design", "complete", "certify", "prove", "profile", "along", "rivals",
    "formulas", "export", "recommend",
)  # fmt: skip
