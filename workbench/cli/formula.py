"""`workbench formula FAMILY`: the optimum as a formula in e^ε, and in δ where it is free."""

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

if TYPE_CHECKING:
    import pandas as pd

    from workbench.formulas.formula_object import Formula
    from workbench.formulas.series import FormulaSeries
    from workbench.pipeline.family import Family


_HEADS = {
    "from_epsilon": "from ε", "to_epsilon": "to ε", "from_delta": "from δ", "to_delta": "to δ", "formula": "formula",
}  # fmt: skip
_HEADS_OF_PATTERNS = {
    "delta_low": "from δ", "delta_high": "to δ", "formula": "formula", "to_delta": "to δ as formula",
    "broken": "broken",
}  # fmt: skip
_PATTERNS = (
    "Each line is the exact optimum of a pattern of broken pairs (difference: noise values). Proven at epsilon = "
    "{epsilon:g} to 1e-9, where no other pattern is better; at another epsilon only while this pattern is optimal."
)


def formula_command(kind: Family) -> Examples:
    """The command that finds the formulas of a family."""
    own = {"epsilon", "delta", "time_limit", *kind.solving_option_names}
    counts = {
        option.name
        for option in kind.options_for("command")
        if option.question and option.kind is int
    }
    options = [
        replace(option, kind=str) if option.name in counts else option
        for option in kind.options_for("command")
        if not option.solver and option.name not in own
    ]

    def run(
        *,
        epsilon: str | None,
        delta: str | None,
        time_limit: float | None,
        pattern: bool,
        **given: Any,
    ) -> Report:
        from workbench.formulas.formula import formula
        from workbench.formulas.series import read_ranged_option

        outputs = Outputs(list_input_files(options, given), given)
        texts = select_given(given)
        texts |= {
            name: int(texts[name]) for name in counts & texts.keys() if texts[name].isdecimal()
        }
        of_several = read_ranged_option(counts, texts)
        if of_several and (plot := outputs["plot file"]):
            must("plot", "left out for a range of questions", plot)
        if pattern and not of_several:
            must(
                "pattern",
                "given with a range such as n 3..20 or answers 0..3..0..12",
                "one question",
            )
        result = formula(
            kind.name,
            epsilon=epsilon,
            delta=delta,
            time_limit=time_limit,
            progress=err.print,
            **texts,
        )
        outputs.write(result)
        if of_several:
            return _series(result, len(of_several[1]), pattern)
        early = result.unproven and (time_limit is None or result.seconds < time_limit)
        words = f"Not all is proven: {len(result.unproven)} interval(s) of epsilon are open."
        return Report(result.to_dict, _shown(result), words if early else None)

    return make_command(
        "formula", run, options, summary=f"The least loss of {kind.title} as a formula."
    ), kind.formulas


def _series(result: FormulaSeries, wanted: int, pattern: bool) -> Report:
    """The formulas of a range of questions as one table, with conjectures. wanted: how many questions there are."""
    conjectures = result.pattern() if pattern else []

    def shown() -> Iterator[Any]:
        yield _table(result.to_frame(), {result.name: result.name, **_HEADS})
        yield make_note("Each line is proven for every epsilon of it, in exact arithmetic.")
        for conjecture in conjectures:
            yield Text(str(conjecture))
        if pattern and not conjectures:
            yield make_note(
                "No pattern fits: a conjecture is verified on at least five n that it was not fitted on."
            )

    proven = len(result.formulas)
    stopped = f"Interrupted: {proven} of {wanted} are proven." if proven < wanted else None
    told = result.to_dict() | (
        {"conjectures": [str(each) for each in conjectures]} if pattern else {}
    )
    return Report(told, shown(), stopped)


def _table(rows: pd.DataFrame, heads: Values) -> Any:
    """The columns of heads that are there."""
    names = [name for name in heads if name in rows]
    return make_table("", [heads[name] for name in names], rows[names].values.tolist())


def _shown(formula: Formula) -> Iterator[Any]:
    yield Text(formula.what, style="bold")
    yield _table(
        formula.to_frame(), _HEADS if formula.proven_epsilon is None else _HEADS_OF_PATTERNS
    )
    if formula.proven_epsilon is not None:
        yield make_note(_PATTERNS.format(epsilon=float(formula.proven_epsilon)))
        return
    yield make_note(
        f"Proven for every epsilon of each line, in exact arithmetic ({formula.seconds:.2f} s)."
    )
    for low, high in formula.unproven:
        yield make_note(f"Open, not proven: epsilon between {low:.9g} and {high:.9g}.")
