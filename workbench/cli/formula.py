"""`workbench formula FAMILY`: the optimum as a formula in e^ε, and in δ where it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli.console import Report, err, note, table
from workbench.cli.options import Named, command, files_of, present
from workbench.cli.output_paths import check_outputs

if TYPE_CHECKING:
    from workbench.families.base import Family
    from workbench.families.formula_object import Formula


def commands() -> Iterator[Named]:
    """One for every family."""
    from workbench.families.registry import families

    return ((kind.name, _command(kind), kind.formulas) for kind in families())


def _command(kind: Family) -> Callable[..., None]:
    """The command that finds the formulas of a family."""
    own = {"epsilon", "delta", "time_limit"}
    options = [option for option in kind.given_in("command") if not option.solver and option.name not in own]

    def run(
        *,
        epsilon: str | None = None,
        delta: str | None = None,
        time_limit: float | None = None,
        save: Path | None = None,
        plot: Path | None = None,
        **given: Any,
    ) -> Report:
        from workbench.families.formula import formula_of
        from workbench.families.formula_certificate import Question

        check_outputs(files_of(options, given), {"saved file": save, "plot file": plot})

        def values(point: Mapping[str, Any] = {"epsilon": "1"}) -> dict[str, Any]:
            return kind.read({**present(given), **point}, "command")

        question = Question(kind, lambda point: kind.request_of(values(point)), values, given.get("notion"))
        result = formula_of(question, epsilon, delta, time_limit, err.print)
        if save is not None:
            result.save(save)
        if plot is not None:
            result.plot(plot)
        return Report(result.to_dict, _shown(result))

    return command("formula", run, options, summary=f"The least loss of {kind.title} as a formula.")


def _shown(formula: Formula) -> Iterator[Any]:
    yield Text(formula.what, style="bold")
    rows = formula.to_frame()
    heads = {"from_epsilon": "from ε", "to_epsilon": "to ε", "from_delta": "from δ", "to_delta": "to δ"}
    names = [*(name for name in heads if name in rows), "formula"]
    yield table("", [heads.get(name, name) for name in names], rows[names].values.tolist())
    yield note(f"Proven for every epsilon of each line, in exact arithmetic ({formula.seconds:.2f} s).")
    for low, high in formula.open:
        yield note(f"Open, for want of time: epsilon between {low:.9g} and {high:.9g}.")
