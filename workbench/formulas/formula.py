"""The optimum of a question as a formula: rational functions of e^ε, affine in δ, each with where it holds, proven.

>>> import workbench as wb
>>> f = wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="absolute")
>>> print(f)
best channel, absolute loss
0 < ε < 0.609377863: (e^ε + 1) / (2e^ε)
0.609377863 < ε: (3e^(2ε) + 2e^ε + 1) / (2e^(2ε)(e^ε + 1))
>>> low, high = f(1)
>>> round(float(low), 12), high - low < 1e-30
(0.520548783574, True)

A family states its program with polynomials in x = e^(ε/q) as entries (`Stated`); `workbench.solvers.exact.regions`
finds and proves the pieces. A formula is of the class the family optimises over ("best channel", "best noise modulo
9"), and holds for all ε and δ of its piece: no sampling, no rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, overload

from workbench.data.intervals import read_ends
from workbench.errors import Infeasible, NotProven, must
from workbench.exact.numbers import ONE, ZERO, RationalPair, read_positive
from workbench.exact.objects import Progress, Record, Values
from workbench.formulas.certificate import (
    FormulaQuestion,
    ProvenRegions,
    make_proof_record,
    x_bounds,
)
from workbench.formulas.formula_object import Formula
from workbench.formulas.pieces import merge_regions, to_epsilon_interval
from workbench.formulas.series import read_ranged_option, solve_series
from workbench.io.result import limit_message_rate
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.registry import find_family, get_family
from workbench.pipeline.requirements import MASS_ABOVE_RATIO, get_ratio_kind, list_ratio_notions
from workbench.pipeline.stated import (
    MAX_FORMULA_EPSILON,
    FormulaProgram,
    Interval,
    check_formula_notion,
)
from workbench.solvers.exact.regions import (
    Ends,
    InfeasiblePoint,
    Region,
    find_region_around,
    find_regions,
)
from workbench.solvers.search import Deadline

_EPSILON_RULE = "a number, or two in order such as 0.1..4"
_DELTA_RULE = "a number, or two in order such as 0..0.2"


@overload
def formula(question: str, **options: Any) -> Any: ...
@overload
def formula(question: Any, **options: Any) -> Formula: ...
def formula(
    question: Any,
    *,
    epsilon: Any = None,
    delta: Any = None,
    time_limit: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """The optimum of a question as a formula in ε, and in δ where an interval of it is given.

    question, options: as `workbench.design` takes them. epsilon: a number (the piece that holds there), two numbers or
    "0.1..4", all ε > 0 by default; budgets of differences, {1: 1, 2: 2} or "1=1,2=2", are multiplied by ε. delta: a
    number, two numbers or "0..0.2"; as in `design` by default. time_limit: seconds; what is found until then, or until
    Ctrl-C, stands, and what is open is said. progress: told every few seconds what is proven.
    formula("modulo", n="3..20", max_shift=1), or answers="0..3..0..12": the formulas of a range of questions, by n,
    as a table with `.pattern()`.

    Raises InvalidRequest: also for questions that have no formula, in one sentence that says why; Infeasible where an
    interval of δ holds one at which there is no mechanism.
    """
    spelled = isinstance(question, str)
    kind = get_family(question) if spelled else find_family(question)
    if unused := [name for name in kind.solving_option_names if options.get(name) is not None]:
        words = ", ".join(f"{name} = {options[name]!r}" for name in unused)
        must(
            "options",
            f"without {' and '.join(unused)}: a formula is found in exact arithmetic, by no solver",
            words,
        )
    counts = {
        option.name
        for option in kind.options_for("command")
        if option.question and option.kind is int
    }
    if spelled and (ranged := read_ranged_option(counts, options)) is not None:
        name, each = ranged
        ends = {"epsilon": epsilon, "delta": delta, "time_limit": time_limit}
        return solve_series(
            name, each, lambda n: formula(question, **{**options, **ends, name: each[n]}), progress
        )

    def request(point: Values) -> Any:
        given = {**options, **point}
        return (
            kind.make_request_from_options(**given)
            if spelled
            else kind.make_request(question, **given)
        )

    def values() -> Record:
        given = {**options, "epsilon": ONE}
        return kind.read_values(given, with_question=spelled)

    return solve_formula(
        FormulaQuestion(kind, request, values, options.get("notion")),
        epsilon,
        delta,
        time_limit,
        progress,
    )


def formula_around(request: Any) -> Formula:
    """The piece of a request's formula that holds at its ε, at its δ. Raises as `formula`; NotProven."""
    formulas = solve_formula(
        FormulaQuestion(request.family, request.at_point, dict, request.claim.notion.name),
        request.claim.epsilon,
    )
    if formulas.proven_epsilon is None:
        return formulas
    delta = float(request.claim.delta)  # of patterns, whose pieces lie side by side in δ
    for piece in formulas.pieces:
        low, high = piece.delta_limits_at(formulas.proven_epsilon)
        if low <= delta <= high:
            return replace(formulas, pieces=(piece,))
    raise NotProven(f"No formula is proven at delta = {delta:g}.")


def solve_formula(
    question: FormulaQuestion,
    epsilon: Any,
    delta: Any = None,
    time_limit: Any = None,
    progress: Progress | None = None,
) -> Formula:
    """The formula of a family's question. progress: told every few seconds what is proven. Raises as `formula`."""
    if isinstance(epsilon, Mapping) or (isinstance(epsilon, str) and "=" in epsilon):
        question, epsilon = replace(question, epsilon_unit=epsilon), None
    limits, deltas = (
        _read_limits(epsilon, "epsilon", _EPSILON_RULE),
        _read_limits(delta, "delta", _DELTA_RULE),
    )
    if question.notion is not None and question.notion not in list_ratio_notions():
        check_formula_notion(str(question.notion))
    limit = (
        None if time_limit is None else float(read_positive(time_limit, "time_limit", or_zero=True))
    )
    deadline = Deadline(limit)
    if question.notion is not None and get_ratio_kind(question.notion) == MASS_ABOVE_RATIO:
        if limits is None or limits[0] != limits[1]:
            got = "none" if limits is None else "..".join(map(str, limits))
            why = f"one number for {question.notion}, whose formulas are proven at one epsilon"
            must("epsilon", why, got)
        deltas = deltas or (ZERO, ONE)
        request = question.make_request({"epsilon": limits[0], "delta": deltas[1]})
        from workbench.formulas.pattern_formulas import (
            solve_pattern_formula,
        )  # imports the model of noise

        with translate_errors():
            formula = solve_pattern_formula(request, deltas, limit, progress)
        return replace(formula, seconds=deadline.elapsed_seconds)
    stated, deltas = question.state_program(deltas)
    with translate_errors():
        try:
            parts, left = _find_regions(
                stated, limits, deltas, deadline, _make_region_reporter(progress, stated.steps)
            )
        except InfeasiblePoint as none:
            at = f"epsilon = {stated.steps * math.log(none.x):.6g}, delta = {float(none.delta):.6g}"
            raise Infeasible(
                f"No mechanism meets the request at {at}: a formula for an interval of delta needs one at each of it."
            ) from None
        finally:
            stated.program.close()
    known = ProvenRegions(limits, deltas, tuple(parts))
    pieces = merge_regions(stated, parts)
    gaps = tuple(to_epsilon_interval(gap, stated.steps) for gap in left)
    return Formula(
        stated.title,
        pieces,
        stated.steps,
        gaps,
        deadline.elapsed_seconds,
        lambda: make_proof_record(question, stated, known),
    )


def _read_limits(given: Any, name: str, wanted: str) -> RationalPair | None:
    """Two ends, equal for one number; None for none. Raises InvalidRequest."""
    if given is None:
        return None
    low, high = read_ends(given, name, wanted)
    most = 1 if name == "delta" else MAX_FORMULA_EPSILON
    if not 0 <= low <= high <= most or (name == "epsilon" and not high):
        must(name, f"{wanted}, between 0 and {most}", repr(given))
    return low, high


def _find_regions(
    stated: FormulaProgram,
    limits: Interval | None,
    deltas: Interval,
    deadline: Deadline,
    told: Callable[[Region], None],
) -> tuple[list[Region], list[Ends]]:
    """The regions of an interval of ε, and what is open; of one ε the whole region around it."""
    low, high = x_bounds(limits, stated.steps)
    if limits is not None and limits[0] == limits[1]:
        assert high is not None
        return [find_region_around(stated.program, (low + high) / 2, deltas)], []
    return find_regions(stated.program, low, high, deltas, deadline, told)


def _make_region_reporter(progress: Progress | None, steps: int) -> Callable[[Region], None]:
    """Says every few seconds how many intervals are proven, and the last one."""
    say, proven = limit_message_rate(progress or str), itertools.count(1)

    def told(region: Region) -> None:
        low, high = to_epsilon_interval(region.ends, steps)
        say(
            f"{next(proven)} intervals of epsilon are proven, the last from {low:.6g} to {high:.6g}."
        )

    return told
