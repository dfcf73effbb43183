"""Compute the optimal loss of a question as a formula in e^ε and δ, with a proof.

The formula consists of pieces. Each is a rational function of e^ε, affine in δ, on an interval.

>>> import workbench as wb
>>> f = wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="absolute")
>>> print(f)
best channel, absolute loss
0 < ε < 0.609377863: (e^ε + 1) / (2e^ε)
0.609377863 < ε: (3e^(2ε) + 2e^ε + 1) / (2e^(2ε)(e^ε + 1))
>>> low, high = f(1)
>>> round(float(low), 12), high - low < 1e-30
(0.520548783574, True)

A family builds its program with polynomials in x = e^(ε/q) as entries (`FormulaProgram`). Here q is
the number of steps into which ε is divided; it is 1 unless budgets or distances are fractions.
`workbench.solvers.exact.regions` finds and proves the pieces. A formula is the optimum of the class
over which the family optimises ("best channel", "best noise modulo 9"). It holds for all ε and δ of
its piece, without sampling or rounding.
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
from workbench.pipeline.family import Family
from workbench.pipeline.formula_program import (
    MAX_FORMULA_EPSILON,
    FormulaProgram,
    Interval,
    check_formula_notion,
)
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.registry import find_family, get_family
from workbench.pipeline.requirements import MASS_ABOVE_RATIO, get_ratio_kind, list_ratio_notions
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
    """Compute the optimum of a question as a formula in ε, and in δ if it has an interval.

    A range of questions gives a table of formulas by n with `.pattern()`. Examples of ranges are
    formula("modulo", n="3..20", max_shift=1) and answers="0..3..0..12".

    Args:
        question: A question, or the name of a family, as in `workbench.design`.
        epsilon: A number (the piece that holds there), two numbers, or a text such as "0.1..4".
            Budgets of differences, {1: 1, 2: 2} or "1=1,2=2", are multiplied by ε.
            Default: all ε > 0.
        delta: A number, two numbers, or a text such as "0..0.2". Default: as in `design`.
        time_limit: The time limit in seconds. After it, or after Ctrl-C, the formula has the
            proven pieces and the open intervals.
        progress: Called every few seconds with a sentence about what is proven.
        options: Further options, as in `workbench.design`.

    Returns:
        A Formula, or a FormulaSeries for a range of questions.

    Raises:
        InvalidRequest: An option is wrong, or the question has no formula.
        Infeasible: The interval of δ contains a value for which there is no mechanism.
    """
    is_named = isinstance(question, str)
    family = get_family(question) if is_named else find_family(question)
    _check_unused_options(family, options)
    if is_named:
        range_options = read_ranged_option(_list_count_options(family), options)
        if range_options is not None:
            name, values = range_options
            shared_options = {"epsilon": epsilon, "delta": delta, "time_limit": time_limit}

            def solve_one(n: int) -> Formula:
                """Return the formula for one n of the option's range."""
                solved_formula: Formula = formula(
                    question, **{**options, **shared_options, name: values[n]}
                )
                return solved_formula

            return solve_series(name, values, solve_one, progress)

    def make_request(point: Values) -> Any:
        """Make the family's request at one point, a dictionary of epsilon and delta."""
        values = {**options, **point}
        if is_named:
            return family.make_request_from_options(**values)
        return family.make_request(question, **values)

    def read_values() -> Record:
        """Return the values of the options by name, at ε = 1."""
        return family.read_values({**options, "epsilon": ONE}, with_question=is_named)

    formula_question = FormulaQuestion(
        family, make_request, read_values, notion=options.get("notion")
    )
    return solve_formula(formula_question, epsilon, delta, time_limit, progress)


def _check_unused_options(family: Family, options: Values) -> None:
    """Raise InvalidRequest if an option about the solver is given."""
    unused = [name for name in family.solving_option_names if options.get(name) is not None]
    if unused:
        must(
            "options",
            f"without {' and '.join(unused)}: a formula is computed exactly, without a solver",
            ", ".join(f"{name} = {options[name]!r}" for name in unused),
        )


def _list_count_options(family: Family) -> set[str]:
    """Return the names of the options of the question that are integers."""
    options = family.options_for("command")
    return {option.name for option in options if option.question and option.kind is int}


def formula_around(request: Any) -> Formula:
    """Compute the piece of a request's formula that holds at its ε and its δ.

    Args:
        request: A request of a family, with its budget.

    Raises:
        InvalidRequest: The request has no formula.
        NotProven: No piece is proven there.
    """
    claim = request.claim
    # The values of options are only needed to save a formula, which is not done here.
    question = FormulaQuestion(
        request.family,
        make_request=request.at_point,
        read_values=dict,
        notion=claim.notion.name,
    )
    solved_formula = solve_formula(question, claim.epsilon)
    if solved_formula.proven_epsilon is None:
        return solved_formula
    # The pieces of patterns (PDP) lie side by side in δ.
    delta = float(claim.delta)
    for piece in solved_formula.pieces:
        low, high = piece.delta_limits_at(solved_formula.proven_epsilon)
        if low <= delta <= high:
            return replace(solved_formula, pieces=(piece,))
    raise NotProven(f"No formula is proven at delta = {delta:g}.")


def solve_formula(
    question: FormulaQuestion,
    epsilon: Any,
    delta: Any = None,
    time_limit: Any = None,
    progress: Progress | None = None,
) -> Formula:
    """Compute the formula of a family's question.

    Args:
        question: The question of a family, without a budget.
        epsilon: A number, two numbers, a text such as "0.1..4", or budgets of differences, as in
            `formula`. None: all ε > 0.
        delta: A number, two numbers, or a text such as "0..0.2". None: the δ of the question.
        time_limit: The time limit in seconds. None: no limit.
        progress: Called every few seconds with a sentence about what is proven.

    Raises:
        InvalidRequest: An option is wrong, or the question has no formula.
        Infeasible: The interval of δ contains a value for which there is no mechanism.
    """
    if isinstance(epsilon, Mapping) or (isinstance(epsilon, str) and "=" in epsilon):
        question = replace(question, epsilon_unit=epsilon)
        epsilon = None
    limits = _read_limits(epsilon, "epsilon", _EPSILON_RULE)
    deltas = _read_limits(delta, "delta", _DELTA_RULE)
    notion = question.notion
    if notion is not None and notion not in list_ratio_notions():
        check_formula_notion(str(notion))
    limit = None
    if time_limit is not None:
        limit = float(read_positive(time_limit, "time_limit", or_zero=True))
    deadline = Deadline(limit)
    if notion is not None and get_ratio_kind(notion) == MASS_ABOVE_RATIO:
        solved_formula = _solve_patterns(question, limits, deltas, limit, progress)
        return replace(solved_formula, seconds=deadline.elapsed_seconds)
    program, delta_interval = question.state_program(deltas)
    report = _make_region_reporter(progress, program.steps)
    with translate_errors():
        try:
            regions, gaps = _find_regions(program, limits, delta_interval, deadline, report)
        except InfeasiblePoint as point:
            infeasible_epsilon = program.steps * math.log(point.x)
            raise Infeasible(
                f"No mechanism satisfies the request at epsilon = {infeasible_epsilon:.6g}, "
                f"delta = {float(point.delta):.6g}. A formula for an interval of delta needs a "
                "mechanism at each delta."
            ) from None
        finally:
            program.program.close()
    proven_regions = ProvenRegions(limits, delta_interval, tuple(regions))
    return Formula(
        program.title,
        pieces=merge_regions(program, regions),
        steps=program.steps,
        unproven=tuple(to_epsilon_interval(gap, program.steps) for gap in gaps),
        seconds=deadline.elapsed_seconds,
        proof=lambda: make_proof_record(question, program, proven_regions),
    )


def _solve_patterns(
    question: FormulaQuestion,
    limits: Interval | None,
    deltas: Interval | None,
    time_limit: float | None,
    progress: Progress | None,
) -> Formula:
    """Compute the formulas of the patterns of PDP at one ε. Raises InvalidRequest, NotProven.

    `limits` is the interval of ε, which must be one number. `deltas` is the interval of δ; None is
    0..1. The other arguments are those of `solve_formula`.
    """
    if limits is None or limits[0] != limits[1]:
        rule = f"one number for {question.notion}, whose formulas are proven at one epsilon"
        must("epsilon", rule, "none" if limits is None else "..".join(map(str, limits)))
    epsilon, _ = limits
    delta_interval = deltas or (ZERO, ONE)
    _, largest_delta = delta_interval
    request = question.make_request({"epsilon": epsilon, "delta": largest_delta})
    # This import loads the model of noise, which other formulas do not need.
    from workbench.formulas.pattern_formulas import solve_pattern_formula

    with translate_errors():
        return solve_pattern_formula(request, delta_interval, time_limit, progress)


def _read_limits(value: Any, name: str, rule: str) -> RationalPair | None:
    """Read two ends, which are equal for one number; None for no value. Raises InvalidRequest.

    rule: the description of an allowed value, for the error message.
    """
    if value is None:
        return None
    low, high = read_ends(value, name, rule)
    maximum = 1 if name == "delta" else MAX_FORMULA_EPSILON
    is_zero_epsilon = name == "epsilon" and not high
    if not 0 <= low <= high <= maximum or is_zero_epsilon:
        must(name, f"{rule}, between 0 and {maximum}", repr(value))
    return low, high


def _find_regions(
    program: FormulaProgram,
    limits: Interval | None,
    deltas: Interval,
    deadline: Deadline,
    report: Callable[[Region], None],
) -> tuple[list[Region], list[Ends]]:
    """Return the regions of an interval of ε and the open intervals.

    For one ε this is the whole region around it. report: called with each region.
    """
    low, high = x_bounds(limits, program.steps)
    if limits is not None and limits[0] == limits[1]:
        assert high is not None
        return [find_region_around(program.program, (low + high) / 2, deltas)], []
    return find_regions(program.program, low, high, deltas, deadline, progress=report)


def _make_region_reporter(progress: Progress | None, steps: int) -> Callable[[Region], None]:
    """Return a function that reports the number of proven intervals every few seconds."""
    say = limit_message_rate(progress)
    proven_counts = itertools.count(1)

    def report(region: Region) -> None:
        """Count the proven region and say its interval of ε."""
        low, high = to_epsilon_interval(region.ends, steps)
        say(
            f"{next(proven_counts)} intervals of epsilon are proven, the last from {low:.6g} to "
            f"{high:.6g}."
        )

    return report
