"""The command `formula FAMILY`: the optimum as a formula in e^ε, and in δ if δ is a range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli.console import Report, err, make_note, make_table
from workbench.cli.options import Examples, list_input_files, make_command, select_given
from workbench.cli.output_paths import Outputs
from workbench.errors import must
from workbench.exact.objects import Values
from workbench.pipeline.family import Family

if TYPE_CHECKING:
    import pandas as pd

    from workbench.formulas.formula_object import Formula
    from workbench.formulas.series import FormulaSeries


# Heads of the table of formulas, by column.
_HEADS = {
    "from_epsilon": "from ε",
    "to_epsilon": "to ε",
    "from_delta": "from δ",
    "to_delta": "to δ",
    "formula": "formula",
}
# Heads of the table of formulas of patterns, by column.
_PATTERN_HEADS = {
    "delta_low": "from δ",
    "delta_high": "to δ",
    "formula": "formula",
    "to_delta": "to δ as formula",
    "broken": "broken",
}
_PATTERN_NOTE = (
    "Each line is the exact optimum of a pattern of broken pairs (difference: noise values). It is "
    "proven at epsilon = {epsilon:g} to 1e-9 that no other pattern is better. At another epsilon a "
    "line holds only while its pattern is optimal."
)
_NO_CONJECTURE_NOTE = (
    "No pattern fits: a conjecture must hold for at least five n that it was not fitted to."
)


def formula_command(kind: Family) -> Examples:
    """Return the command that finds the formulas of a family, with its examples.

    Args:
        kind: The `Family`.
    """
    replaced_names = {"epsilon", "delta", "time_limit", *kind.solving_option_names}
    count_names = set()
    options = []
    for option in kind.options_for("command"):
        if option.question and option.kind is int:
            count_names.add(option.name)
            option = replace(option, kind=str)
        if not option.solver and option.name not in replaced_names:
            options.append(option)

    def run(
        *,
        epsilon: str | None,
        delta: str | None,
        time_limit: float | None,
        pattern: bool,
        **values: Any,
    ) -> Report:
        from workbench.formulas.formula import formula
        from workbench.formulas.series import read_ranged_option

        outputs = Outputs(list_input_files(options, values), values)
        texts = select_given(values)
        for name in count_names & texts.keys():
            if texts[name].isdecimal():
                texts[name] = int(texts[name])
        ranged_option = read_ranged_option(count_names, texts)
        plot = outputs["plot file"]
        if ranged_option and plot:
            must("plot", "left out for a range of questions", plot)
        if pattern and not ranged_option:
            rule = "given with a range such as n 3..20 or answers 0..3..0..12"
            must("pattern", rule, "one question")
        result = formula(
            kind.name,
            epsilon=epsilon,
            delta=delta,
            time_limit=time_limit,
            progress=err.print,
            **texts,
        )
        outputs.write(result)
        if ranged_option:
            _, questions = ranged_option
            return _report_series(result, len(questions), pattern)
        stop_message = None
        if result.unproven and (time_limit is None or result.seconds < time_limit):
            count = len(result.unproven)
            stop_message = f"Not all is proven: {count} interval(s) of epsilon are open."
        return Report(result.to_dict, _list_formula_parts(result), stop_message=stop_message)

    summary = f"Compute the minimal loss of {kind.title} as a formula."
    if kind.no_formula_reason != Family.no_formula_reason:
        summary = f"Not available: {kind.title} has no formula, because {kind.no_formula_reason}."
    return make_command("formula", run, options, summary=summary), kind.formulas


def _report_series(result: FormulaSeries, question_count: int, pattern: bool) -> Report:
    """Report the formulas of several questions as one table.

    Args:
        result: The formulas.
        question_count: Number of questions that were requested.
        pattern: Whether to look for conjectures, formulas in n that fit all questions.
    """
    conjectures = result.pattern() if pattern else []

    def list_parts() -> Iterator[Any]:
        """Yield the parts of the report: the table, its notes and the conjectures."""
        yield _make_formula_table(result.to_frame(), {result.name: result.name, **_HEADS})
        yield make_note("Each line is proven for every epsilon in it, in exact arithmetic.")
        for conjecture in conjectures:
            yield Text(str(conjecture))
        if pattern and not conjectures:
            yield make_note(_NO_CONJECTURE_NOTE)

    values = result.to_dict()
    if pattern:
        values |= {"conjectures": [str(conjecture) for conjecture in conjectures]}
    proven_count = len(result.formulas)
    stop_message = None
    if proven_count < question_count:
        stop_message = f"Interrupted: {proven_count} of {question_count} are proven."
    return Report(values, list_parts(), stop_message=stop_message)


def _make_formula_table(rows: pd.DataFrame, heads: Values) -> Any:
    """Make the table of the columns that the rows have."""
    names = [name for name in heads if name in rows]
    return make_table("", [heads[name] for name in names], rows[names].values.tolist())


def _list_formula_parts(formula: Formula) -> Iterator[Any]:
    """Yield the title, the table and the notes of a formula."""
    yield Text(formula.what, style="bold")
    if formula.proven_epsilon is not None:
        yield _make_formula_table(formula.to_frame(), _PATTERN_HEADS)
        yield make_note(_PATTERN_NOTE.format(epsilon=float(formula.proven_epsilon)))
        return
    yield _make_formula_table(formula.to_frame(), _HEADS)
    yield make_note(
        f"Each formula is proven for every epsilon of its interval, in exact arithmetic "
        f"({formula.seconds:.2f} s)."
    )
    for low, high in formula.unproven:
        yield make_note(f"Open, not proven: epsilon between {low:.9g} and {high:.9g}.")
