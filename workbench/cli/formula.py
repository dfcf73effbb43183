"""`workbench formula FAMILY`: the optimum as a formula in e^ε, and in δ where it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli.console import Report, note, table
from workbench.cli.options import Named, command, files_of, present
from workbench.cli.output_paths import check_outputs

if TYPE_CHECKING:
    from workbench.families.base import Family
    from workbench.families.formula import Formula

_EXAMPLES = {
    "channel": (
        "formula channel --answers 0..5 --max-shift 1 --loss absolute",
        "formula channel --answers 0..3 --max-shift 1 --loss absolute --delta 0..1 --epsilon 0.1..4",
    ),
    "modulo": (
        "formula modulo --n 12 --max-shift 2 --loss circular-squared --save f.tex",
        "formula modulo --n 8 --max-shift 3 --delta 0.01 --epsilon 1",
    ),
}


def commands() -> Iterator[Named]:
    """One for every family."""
    from workbench.families.registry import families

    return ((kind.name, _command(kind), _EXAMPLES.get(kind.name, ())) for kind in families())


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
        **given: Any,
    ) -> Report:
        from workbench.families.formula import formula_of

        check_outputs(files_of(options, given), {"saved file": save})
        found = formula_of(
            kind,
            lambda point: kind.request_of(kind.read(present(given) | point, "command")),
            given.get("notion"),
            epsilon,
            delta,
            time_limit,
        )
        if save is not None:
            found.save(save)
        return Report(found.to_dict, _shown(found))

    return command("formula", run, options, summary=f"The least loss of {kind.title} as a formula.")


def _shown(found: Formula) -> Iterator[Any]:
    yield Text(found.what, style="bold")
    rows = found.to_frame()
    heads = {"from_epsilon": "from ε", "to_epsilon": "to ε", "from_delta": "from δ", "to_delta": "to δ"}
    names = [*(name for name in heads if name in rows), "formula"]
    yield table("", [heads.get(name, name) for name in names], rows[names].values.tolist())
    yield note(f"Proven for every epsilon of each line, in exact arithmetic ({found.seconds:.2f} s).")
    for low, high in found.open:
        yield note(f"Open, for want of time: epsilon between {low:.9g} and {high:.9g}.")
