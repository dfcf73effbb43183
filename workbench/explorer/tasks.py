"""The tasks that the explorer's page can request, such as a design or a privacy profile.

A task gets the options of a family as texts ("given") and returns a view: a dictionary that becomes
JSON for the page. Tasks run in a worker process (`workbench.explorer.processes`).

suggestions the choices of the options of a family, and examples
fields      which options a request can have, and which it cannot
adapt       a request after one option changed: options that can no longer be given are removed, and
            missing ones get a first value
design      the mechanism, quickly enough for a slider: certified if that is quick, preliminary (not
            solved to the end) if solving is slow, else audited; the page then requests "certify"
complete    the mechanism, solved to the end, not certified
certify     the certified mechanism: what `workbench design` writes, with the certificate's file
prove       the same as certify, but in the slow worker process, so that it does not block "design"
            (`processes.LANE_BY_TASK`)
profile     the privacy profile and trade-off curve of the last design, and the gain of an attacker
along       the objective against one number of the budget, over the range of its slider
rivals      the family's frontier at this budget: exact pieces, published mechanisms and their laws
formulas    where in the (ε, δ) plane which formula of the optimum holds
recommend   mechanism classes for a query at a budget, with the designs that their pages show first
class       the mechanism of one class of a query
export      everything above about one request, for a page without a server

The hot options of a family are those, such as ε and δ, whose values only change numbers of a model
that is already built. Sliders move them. A new task is a method of `Tasks` and a name in
`TASK_NAMES`; if it must be quick, also an entry of `processes.LANE_BY_TASK`.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.errors import InvalidRequest, NotProven, WorkbenchError, must
from workbench.exact.numbers import to_jsonable
from workbench.exact.objects import Values
from workbench.explorer import alone, comparison, figures, views
from workbench.explorer.formula_map import make_formula_map
from workbench.explorer.given import (
    EMPTY_TEXTS,
    FileTexts,
    OptionTexts,
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
from workbench.pipeline.family import Family
from workbench.pipeline.frontier_plots import may_jump
from workbench.pipeline.outcome import attempt_design
from workbench.pipeline.registry import get_family
from workbench.solvers.search import Deadline

if TYPE_CHECKING:
    from workbench.recommendation.recommend import Recommendation

# Time limits of solves in seconds. The worker of a task stops it later (LANE_LIMIT_SECONDS).
_PRELIMINARY_SECONDS = Fraction(1, 20)
_SLIDER_DESIGN_SECONDS = Fraction(6)
_FULL_DESIGN_SECONDS = Fraction(60)

_BOUND_TOLERANCE = 1e-6  # An objective may be below its bound by this share, due to rounding.
_SLOW_DESIGN_SECONDS = 0.1  # After a slower design, the next ones are preliminary.
_QUICK_PROOF_SECONDS = 0.12  # A design is certified at once if the last proof took at most this.

# A pass over a curve takes at most _CURVE_PASS_SECONDS if it has _MIN_CURVE_DESIGNS designs, else
# at most _MAX_CURVE_PASS_SECONDS.
_MIN_CURVE_DESIGNS = 5
_CURVE_PASS_SECONDS = 8.0
_MAX_CURVE_PASS_SECONDS = 20.0

_MAX_STORED_CURVES = 12  # The rows of this many curves are stored; older ones are forgotten.
_EXPORT_DESIGNS = 13  # The number of designs in an export.
_DESIGN_PAGE_SECONDS = 5.0  # The page of `design --html` has the parts that are begun by then.
_EXPORT_SECONDS = 8 * _CURVE_PASS_SECONDS  # After this time an export omits further designs.
_MAX_COMPARED_CHARACTERS = 4_000_000  # Larger views of compared designs are not sent ahead.
_MAX_STEP_CHARACTERS = 250_000  # Larger figures of a design along a curve are omitted.


class _CurveRow(NamedTuple):
    """A design on a curve.

    Attributes:
        row: The row of the design, with the value on the horizontal axis.
        label: The name of the objective, "" without a design.
    """

    row: View
    label: str


# Value on the horizontal axis -> the row of its design.
_CurveRows = dict[Fraction, _CurveRow]


@dataclass
class _QuestionTiming:
    """The time that designs of one question take, which decides what is shown at once.

    Attributes:
        solved_count: The number of designs. The first one also builds the model.
        is_slow: Whether a design took longer than _SLOW_DESIGN_SECONDS.
        certify_seconds: The seconds of the last certification.
        is_preliminary_useless: Whether a preliminary solve has found nothing, as for linear
            programs.
    """

    solved_count: int = 0
    is_slow: bool = False
    certify_seconds: float = 0.0
    is_preliminary_useless: bool = False


class Tasks:
    """The tasks as methods. They reuse the last design, timings and curves of earlier tasks.

    Attributes:
        files: (family, option, text) of each text that may name a file.
    """

    def __init__(self, files: FileTexts = ()) -> None:
        """Start without results.

        Args:
            files: (family, option, text) of each text that may name a file.
        """
        self.files = frozenset(files)
        self._timings: defaultdict[str, _QuestionTiming] = defaultdict(_QuestionTiming)
        # The key of the last request, and its design.
        self._last: tuple[str, Design] | None = None
        self._curves: OrderedDict[str, _CurveRows] = OrderedDict()
        # The last query without its time limit, and its comparison.
        self._comparison: tuple[str, Recommendation] | None = None
        # The key of a request -> the design of the last comparison that answers it.
        self._compared_designs: dict[str, Design] = {}

    def run(
        self, task: str, request: Values, report_progress: ProgressFunction = ignore_progress
    ) -> View:
        """Run one task.

        Args:
            task: One of TASK_NAMES.
            request: The JSON object of the page: "family" (its name), "given" (its options as
                texts), and the fields of the task ("along"; "changed" and "limit"; "query").
            report_progress: Called with (parts done, parts, and the result of the last part).

        Returns:
            The view of the task, ready for JSON. The method of the task describes its keys.

        Raises:
            WorkbenchError: The task has no result.
        """
        InvalidRequest.check_choice(TASK_NAMES, "task", task)
        if task == "recommend":
            return self._compare_classes(request, report_progress)
        if task == "class":
            return self._show_class(request, report_progress)

        family_name = request.get("family", "")
        if not isinstance(family_name, str):
            must("family", "a text", type(family_name).__name__)
        family = get_family(family_name)
        option_texts = check_option_texts(family, request.get("given"))
        if task == "suggestions":
            return make_suggestions(family)
        if task in ("fields", "adapt"):
            return _describe_fields(task, family, option_texts, request)

        values = read_option_values(family, option_texts, self.files)
        texts = {name: text for name, text in option_texts.items() if text not in EMPTY_TEXTS}
        page_request = PageRequest(
            family, texts, values, task_fields=request, report_progress=report_progress
        )
        view: View = to_jsonable(getattr(self, task)(page_request), nan_as_null=True)
        return view

    # Designs.

    def _get_timing(self, request: PageRequest) -> _QuestionTiming:
        """Return the timing that all requests share that differ only in hot options."""
        family = request.family
        fixed = {
            name: value
            for name, value in request.texts.items()
            if name not in family.hot_option_names
        }
        return self._timings[json.dumps([family.name, fixed], sort_keys=True)]

    def _get_last_design(self, request: PageRequest) -> Design | None:
        """Return the last design, or that of the last comparison, if it answers this request."""
        if self._last is not None:
            key, design = self._last
            if key == request.key:
                return design
        return self._compared_designs.get(request.key)

    def _get_audited_design(
        self, request: PageRequest, limit_seconds: Fraction = _FULL_DESIGN_SECONDS
    ) -> Design:
        """Return the last design if it answers this request, else a new one without certificate.

        Raises WorkbenchError.
        """
        design = self._get_last_design(request)
        if design is None:
            timing = self._get_timing(request)
            clock = Deadline()
            design = _solve_or_best_found(_make_audited_solve(request, limit_seconds))
            # The first design also builds the model, so its time does not count.
            if timing.solved_count > 0 and clock.elapsed_seconds > _SLOW_DESIGN_SECONDS:
                timing.is_slow = True
            timing.solved_count += 1
            self._last = (request.key, design)
        return design

    def _make_preliminary_design(self, request: PageRequest) -> Design | None:
        """Return the best design after a moment of solving, whose optimality is not proven.

        The result is None if designs of this question are quick, or if nothing is found so soon. If
        the solve ends in time, its design is stored as the last design, and the result is None.
        """
        timing = self._get_timing(request)
        is_useful = timing.is_slow and not timing.is_preliminary_useless
        if not is_useful or not request.time_limit_option(_PRELIMINARY_SECONDS):
            return None
        try:
            self._last = (request.key, _make_audited_solve(request, _PRELIMINARY_SECONDS)())
        except NotProven as error:
            found_design: Design | None = error.design
            timing.is_preliminary_useless = found_design is None
            return found_design
        except WorkbenchError:
            # The whole solve raises it again.
            pass
        return None

    def _make_quick_certified_design(self, request: PageRequest) -> Design | None:
        """Return the certified design, or None if it is not quick enough for a slider.

        The first designs of a question are not certified, because their times are not known yet.
        """
        timing = self._get_timing(request)
        is_quick = not timing.is_slow and timing.certify_seconds <= _QUICK_PROOF_SECONDS
        if not request.family.certifies or timing.solved_count <= 1 or not is_quick:
            return None
        clock = Deadline()
        try:
            return request.family.design_request(request.make_request("certify"))
        except WorkbenchError:
            # The audited design is shown first, and then why it cannot be certified.
            return None
        finally:
            timing.certify_seconds = clock.elapsed_seconds

    # Comparisons of classes.

    def _compare_classes(self, request: Values, report_progress: ProgressFunction) -> View:
        """Return the comparison of a query, with the designs of classes that have their own page.

        See `comparison.describe_comparison`. A row with a design has "view", the view of `certify`.
        """
        result = alone.compute_recommendation(request, report_progress)
        self._comparison = (_write_query_key(request), result)
        self._compared_designs.clear()
        view = comparison.describe_comparison(result)
        for row in view["rows"]:
            address = comparison.read_design_command(row["command"] or "")
            if address is not None and row["class"] in result.design_makers:
                row["view"] = self._make_compared_view(*address, result.design(row["class"]))
        answer: View = to_jsonable(view, nan_as_null=True)
        return answer

    def _make_compared_view(self, family: Family, texts: Values, design: Design) -> View | None:
        """Return the view of a design of a comparison, and store the design for its page.

        The result is None if the view is too large to send.
        """
        page_request = PageRequest(family, texts, read_option_values(family, texts))
        self._compared_designs[page_request.key] = design
        view = to_jsonable(_make_certified_view(design, page_request), nan_as_null=True)
        is_small = len(json.dumps(view)) <= _MAX_COMPARED_CHARACTERS
        return view if is_small else None

    def _show_class(self, request: Values, report_progress: ProgressFunction) -> View:
        """Return the mechanism of one class of a query (`comparison.describe_class`).

        "along" is the chart of its error against ε, if it is a published mechanism.
        """
        name = request.get("class")
        if not isinstance(name, str):
            must("class", "a text", type(name).__name__)
        stored_key, stored_result = self._comparison or ("", None)
        if stored_result is not None and stored_key == _write_query_key(request):
            result = stored_result
        else:
            result = alone.compute_recommendation(request, report_progress, only=name)
        view = comparison.describe_class(result, name)
        view["along"] = alone.compute_class_curve(request, result, name)
        answer: View = to_jsonable(view, nan_as_null=True)
        return answer

    # Tasks.

    formulas = staticmethod(make_formula_map)

    def design(self, request: PageRequest) -> View:
        """Return the mechanism: certified if that is quick, preliminary if solving takes long.

        Args:
            request: The request of the page.

        Returns:
            The keys of `views.make_design_view`. A design from `complete` has "quick" too, and a
            preliminary one "preliminary": True.
        """
        certified_design = self._make_quick_certified_design(request)
        if certified_design:
            return views.make_design_view(certified_design, request)
        if self._get_last_design(request):
            return self.complete(request, _SLIDER_DESIGN_SECONDS)
        design = self._make_preliminary_design(request)
        if design is None:
            return self.complete(request, _SLIDER_DESIGN_SECONDS)
        interval = ""
        if design.bound is not None:
            interval = f": the optimum lies between {design.bound_text} and {design.objective:.9g}"
        note = f"Preliminary{interval}. The solver has not finished."
        view = views.make_design_view(replace(design, words=(note,)), request, proving=True)
        return view | {"preliminary": True, "facts": [*view["facts"], ("note", note)]}

    def complete(
        self, request: PageRequest, limit_seconds: Fraction = _FULL_DESIGN_SECONDS
    ) -> View:
        """Return the mechanism, solved to the end, not certified.

        Args:
            request: The request of the page.
            limit_seconds: The time limit of the solver.

        Returns:
            The keys of `views.make_design_view`, and "quick": whether designs of this question are
            fast enough for a slider.
        """
        design = self._get_audited_design(request, limit_seconds)
        view = views.make_design_view(design, request, proving=True, is_final=True)
        return view | {"quick": not self._get_timing(request).is_slow}

    def certify(self, request: PageRequest) -> View:
        """Return the certified mechanism, with the certificate's file.

        Args:
            request: The request of the page.

        Returns:
            The keys of `views.make_design_view`, and "certificate": the text of the file, if there
            is one.
        """
        limit = request.time_limit_option(_FULL_DESIGN_SECONDS)
        design_request = request.make_request("certify", **limit)
        design = _solve_or_best_found(partial(request.family.design_request, design_request))
        self._last = (request.key, design)
        return _make_certified_view(design, request)

    prove = certify

    def profile(self, request: PageRequest) -> View:
        """Return the figures of the mechanism's privacy, and the gain of an attacker.

        Args:
            request: The request of the page.

        Returns:
            "figures": see `figures.make_profile_figures`. "risk": see
            `views.compute_attacker_gains`.
        """
        design = self._get_audited_design(request)
        if design.mechanism is None:
            raise InvalidRequest("There is no mechanism, and so no privacy profile.")
        profile_figures = figures.make_profile_figures(design.mechanism, design.claim)
        gains = views.compute_attacker_gains(design.mechanism)
        return {"figures": profile_figures, "risk": gains}

    def along(self, request: PageRequest) -> View:
        """Return the objective at values of one number of the budget.

        Each design is reported with its figures. A curve that stopped continues when it is
        requested again.

        Args:
            request: The request of the page. Its field "along" names the number.

        Returns:
            "figure": the curve; None if no other value is accepted. "rows": the rows of the
            designs. "left": the number of values without a design.
        """
        name: Any = request.task_fields.get("along")
        grid = request.slider_grid(name)
        rows_by_value = self._get_curve_rows(request, name)
        clock = Deadline()
        for value in alone.order_coarse_first(grid, request.values[name]):
            if value in rows_by_value:
                continue
            has_enough = len(rows_by_value) >= _MIN_CURVE_DESIGNS
            limit = _CURVE_PASS_SECONDS if has_enough else _MAX_CURVE_PASS_SECONDS
            if clock.elapsed_seconds > limit:
                break

            moved_request = request.with_value(name, value)
            if name in request.family.hot_option_names:
                solve = _make_audited_solve(request, _FULL_DESIGN_SECONDS, **{name: value})
            else:
                solve = _make_audited_solve(moved_request, _FULL_DESIGN_SECONDS)

            row, design = attempt_design(partial(_solve_or_best_found, solve))
            label = views.find_objective_label(design) if design else ""
            rows_by_value[value] = _CurveRow({**row, name: float(value)}, label)
            step = _make_step_view(design, moved_request, name, value)
            request.report_progress(len(rows_by_value), len(grid), step)
        left = sum(value not in rows_by_value for value in grid)
        return self._make_curve(request, name, rows_by_value) | {"left": left}

    def _get_curve_rows(self, request: PageRequest, name: str) -> _CurveRows:
        """Return the stored rows of a curve, to which the caller adds new ones.

        Rows are only stored for the latest curves.
        """
        other_texts = {option: text for option, text in request.texts.items() if option != name}
        key = json.dumps([request.family.name, name, other_texts], sort_keys=True)
        rows = self._curves.setdefault(key, {})
        self._curves.move_to_end(key)
        while len(self._curves) > _MAX_STORED_CURVES:
            self._curves.popitem(last=False)
        return rows

    def _make_curve(self, request: PageRequest, name: str, rows_by_value: _CurveRows) -> View:
        """Return the figure of a curve and its rows.

        The figure is None if no value other than the current one is accepted, as for δ under pure
        DP.
        """
        rows = [rows_by_value[value].row for value in sorted(rows_by_value)]
        other_rows = [row for row in rows if row[name] != request.values[name]]
        if all(row["status"] == "refused" for row in other_rows):
            return {"figure": None, "rows": rows}
        labels = [point.label for point in rows_by_value.values() if point.label]
        label = next(iter(labels), "objective")
        scale = request.slider_range(name)["scale"]
        budget = {"notion": request.values.get("notion"), **request.hot_values()}
        has_jumps = scale == "count" or may_jump({**budget, name: row[name]} for row in rows)
        figure = figures.make_curve_figure(name, label, rows, scale=scale, steps=has_jumps)
        return {"figure": figure, "rows": rows}

    def rivals(self, request: PageRequest) -> View:
        """Return exact pieces and other mechanisms of the frontier, and laws of published ones.

        Args:
            request: The request of the page.

        Returns:
            "overlays" and "table": see `figures.make_rival_figures`; "overlays" also has the
            curves of published mechanisms. "rows": the rows of the frontier. "laws": outlines that
            are drawn over the law of the design. "links": the addresses of the pages of published
            mechanisms (`comparison.link_published`). "design": the loss of the design, with which
            the published mechanisms are compared ("label", "value", "low").
        """
        if request.family.frontier is None:
            raise InvalidRequest(
                f"No published mechanisms are listed for the family {request.family.name}."
            )
        design = self._get_audited_design(request)
        label = views.find_objective_label(design)
        # Published mechanisms are compared by their loss.
        loss: View = {"label": label, "value": design.objective, "low": design.bound}
        has_loss = request.values.get("minimise", "loss") in (None, "loss")
        if label == views.DECODER_LABEL:
            loss = {"label": "mean squared error", "value": design.details["mse"], "low": None}
            has_loss = False
        answer: View = {"overlays": {}, "table": None, "rows": [], "laws": [], "design": loss}
        if design.mechanism:
            answer["laws"] = figures.make_published_outlines(design)
        try:
            rows = alone.compute_frontier_rows(request)
        except InvalidRequest as error:
            if not answer["laws"]:
                raise InvalidRequest(
                    f"Other mechanisms are not listed for this request. {error}"
                ) from None
        else:
            answer |= figures.make_rival_figures(rows, loss["label"]) | {"rows": rows}
            names = [row["mechanism"] for row in rows if row.get("curve") == "baseline"]
            links = comparison.link_published(request, names) if has_loss else {}
            answer["links"] = {figures.name_published(name): link for name, link in links.items()}
        if has_loss:
            for name, series in alone.compute_published_curves(request).items():
                answer["overlays"][name] = [*answer["overlays"].get(name, []), *series]
        return answer

    def export(self, request: PageRequest) -> View:
        """Return everything about one request, for a page without a server.

        The design is certified if the family certifies.

        Args:
            request: The request of the page.

        Returns:
            "family", "given"; "view": the design; "profile", "rivals" and "formulas": the views of
            these tasks, if they have a result; "along": the curve of each slider; "steps": designs
            along the first slider; "errors": why a part is missing; "listing": the description of
            the family.
        """
        view = (self.certify if request.family.certifies else self.complete)(request)
        return self._collect_export(request, view)

    def export_design(self, design: Design, request: PageRequest) -> View:
        """Return everything about a design that is already computed, as `export` does.

        Parts that are not begun within _DESIGN_PAGE_SECONDS are left out, with a message.

        Args:
            design: The design.
            request: The request that it answers. Without values, because an option has no text,
                the page has the design and its privacy only.
        """
        self._last = (request.key, design)
        view = _make_certified_view(design, request)
        page = self._collect_export(request, view, Deadline(_DESIGN_PAGE_SECONDS))
        answer: View = to_jsonable(page, nan_as_null=True)
        return answer

    def _collect_export(
        self, request: PageRequest, view: View, part_deadline: Deadline | None = None
    ) -> View:
        """Return the parts of an export, around the view of its design.

        Args:
            request: The request of the page.
            view: The view of its design.
            part_deadline: Parts that are not begun by then are left out. None: only the designs
                along the slider are limited.
        """
        family = request.family
        quiet = replace(request, report_progress=ignore_progress)
        slider_names = list(request.slider_values)

        # The parts of the export, as functions that compute them.
        parts: dict[str, Callable[[], View]] = {"profile": partial(self.profile, quiet)}
        for name in slider_names:
            curve_request = replace(quiet, task_fields={"along": name})
            parts[f"along {name}"] = partial(self.along, curve_request)
        if request.values:
            parts["rivals"] = partial(self.rivals, quiet)
            parts["formulas"] = partial(self.formulas, quiet)
        steps = self._list_export_steps(quiet)
        parts |= steps

        answers = {}
        errors = {}
        deadline = Deadline(_EXPORT_SECONDS)
        for done_count, (name, compute) in enumerate(parts.items()):
            request.report_progress(done_count, len(parts))
            if name in steps and deadline.has_passed:
                continue
            if part_deadline is not None and part_deadline.has_passed:
                if name not in steps:
                    errors[name] = "It takes long: `workbench explore --export` computes it."
                continue
            try:
                answers[name] = compute()
            except WorkbenchError as error:
                # Most questions have no formulas, so that is no error.
                if name != "formulas":
                    errors[name] = str(error)

        curves = {}
        for name in slider_names:
            figure = answers.get(f"along {name}", {}).get("figure")
            if figure:
                curves[name] = figure
        page: View = {
            "family": family.name,
            "given": dict(request.texts),
            "errors": errors,
            "along": curves,
            "steps": [answers[name] for name in steps if name in answers],
            "view": view,
        }
        for name in ("profile", "formulas"):
            if name in answers:
                page[name] = answers[name]
        if "rivals" in answers:
            keys = ("overlays", "table", "laws", "design")
            page["rivals"] = {key: answers["rivals"][key] for key in keys}
        page["listing"] = [entry for entry in describe_families() if entry["name"] == family.name]
        return page

    def _list_export_steps(self, request: PageRequest) -> dict[str, Callable[[], View]]:
        """Return functions that design along the first slider, by name such as "epsilon 0.5"."""
        slider_names = list(request.slider_values)
        if not slider_names:
            return {}
        first = slider_names[0]
        steps: dict[str, Callable[[], View]] = {}
        for value in request.slider_grid(first, _EXPORT_DESIGNS):
            moved_request = request.with_value(first, value)
            steps[f"{first} {moved_request.texts[first]}"] = partial(
                self._make_export_view, moved_request
            )
        return steps

    def _make_export_view(self, request: PageRequest) -> View:
        """Return a design of an export, certified if that is quick."""
        certified_design = self._make_quick_certified_design(request)
        if certified_design:
            return views.make_design_view(certified_design, request, is_final=True)
        return self.complete(request)


def _describe_fields(task: str, family: Family, option_texts: OptionTexts, request: Values) -> View:
    """Return which options a request can have ("fields"), or an adapted request ("adapt").

    The view of "adapt" has the new texts as "given", and the view of "fields" for them as "room".
    """
    texts = {name: value for name, value in option_texts.items() if name in offered_options(family)}
    if task == "fields":
        return classify_missing_options(family, texts)
    limit = request.get("limit")
    limit_text = limit if isinstance(limit, str) else None
    new_texts = adapt_request(family, texts, str(request.get("changed")), limit_text)
    return {"given": new_texts, "room": classify_missing_options(family, new_texts)}


def _make_certified_view(design: Design, request: PageRequest) -> View:
    """Return a design to which nothing is added any more, with the certificate's file."""
    view = views.make_design_view(design, request, is_final=True)
    if design.certificate:
        view["certificate"] = design.certificate.content().decode()
    return view


def _write_query_key(request: Values) -> str:
    """Return a text that is equal for equal queries, whatever their time limit."""
    query = request.get("query") or {}
    if not isinstance(query, Mapping):
        return ""
    texts = {name: text for name, text in query.items() if name != "time_limit"}
    return json.dumps(texts, sort_keys=True, default=str)


def _make_audited_solve(
    request: PageRequest, seconds: Fraction, **moved_values: Any
) -> Callable[[], Design]:
    """Return a function that designs a request within seconds, without a certificate.

    Args:
        request: The request of the page.
        seconds: Time limit of the solve.
        **moved_values: Values of hot options that replace those of the request.
    """
    family_request = request.make_request("audit", **request.time_limit_option(seconds))

    def solve() -> Design:
        """Design the request at the moved values."""
        point_request = family_request
        if moved_values:
            point_request = family_request.at_point(moved_values)
        return request.family.design_request(point_request)

    return solve


def _solve_or_best_found(solve: Callable[[], Design]) -> Design:
    """Return a design. If the time limit ends the solve, return the best one with a note.

    Raises WorkbenchError. Raises NotProven for an answer that is below its bound by more than
    rounding: such a small loss is only possible without privacy.
    """
    try:
        design = solve()
    except NotProven as error:
        if error.design is None:
            raise
        best = error.design
        reason = str(error)
        if best.bound is not None:
            reason = f"the optimum lies between {best.bound:.9g} and {best.objective:.9g}."
        design = replace(best, words=(*best.words, f"Not proven optimal: {reason}"))
    bound = design.bound
    if bound is None or design.certificate is not None:
        # A certified design is private, whatever its bound.
        return design
    if bound - design.objective > _BOUND_TOLERANCE * abs(bound):
        raise NotProven("The solver was stopped before its law was private.", bound=bound)
    return design


def _make_step_view(
    design: Design | None, request: PageRequest, name: str, value: Fraction
) -> View | None:
    """Return a design along an option, which a page shows while the curve is computed.

    The keys are "along" (the name of the option), "at" (its value) and "view" (the design). The
    result is None if there is no mechanism, or if its figures are too large to send.
    """
    if design is None or design.mechanism is None:
        return None
    view = to_jsonable(views.make_design_view(design, request, proving=True), nan_as_null=True)
    if len(json.dumps(view["figures"])) > _MAX_STEP_CHARACTERS:
        return None
    return {"along": name, "at": float(value), "view": view}


TASK_NAMES = (
    "suggestions",
    "fields",
    "adapt",
    "design",
    "complete",
    "certify",
    "prove",
    "profile",
    "along",
    "rivals",
    "formulas",
    "export",
    "recommend",
    "class",
)
