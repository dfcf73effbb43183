"""`workbench design FAMILY`, the same for every family, and `workbench recommend`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli.console import (
    Report,
    err,
    fold_table,
    make_facts_grid,
    make_note,
    make_table,
    make_verbatim,
    run_with_progress,
)
from workbench.cli.options import Examples, list_input_files, make_command, select_given
from workbench.cli.output_paths import Outputs
from workbench.errors import InvalidRequest, NotProven
from workbench.exact.objects import Record
from workbench.io.result import limit_message_rate

if TYPE_CHECKING:
    from workbench.pipeline.design import Design
    from workbench.pipeline.family import Family


_NOTHING = 1e-9  # A bias below this share of the root mean square error, or of the worst loss, is shown as 0.


_UNIQUE = {
    True: "No other mechanism of the class is optimal (a second linear program over those that are, in doubles).",
    False: "Other mechanisms of the class are optimal as well.",
    None: "Whether other mechanisms of the class are optimal as well is not decided.",
}


def design_command(kind: Family) -> Examples:
    """The command that designs a mechanism of a family."""
    options, known = kind.options_for("command"), {option.name for option in kind.options}

    def run(*, raw: bool = False, formula: bool, prices: bool, **given: Any) -> Report:
        outputs = Outputs(list_input_files(options, given), given)
        fixed: Record = {"check": "audit" if raw else "certify"}
        if "progress" in known:
            fixed["progress"] = limit_message_rate(err.print)
        request = kind.make_request_from_values(
            kind.read_values(select_given(given), "command") | fixed
        )
        optimum = None
        if formula:
            from workbench.formulas.formula import formula_around

            optimum = formula_around(request)
        design = _kept(kind, request, outputs["saved file"])
        if design.status == "infeasible":
            sentence = dict(design.facts()).get("not reachable", "No design meets the request.")
            return Report(design.to_dict, stop_message=f"Infeasible: {sentence}")
        if mps := outputs["program file"]:
            design.program.save(mps)
        outputs.write(design, "build_design_page")
        more: Record = {}
        shown = []
        if optimum:
            more["formula"] = optimum.to_dict()
            shown.append(
                make_note(
                    f"The optimum is {optimum.pieces[0].to_text()}, {optimum.describe_interval(optimum.pieces[0])}."
                )
            )
        if prices:
            more |= {"shadow_prices": design.shadow_prices.to_dict(), "unique": design.unique}
            shown += map(make_note, (str(design.shadow_prices), _UNIQUE[design.unique]))
        return Report(lambda: design.to_dict() | more, (*_shown(design), *shown))

    offered = {
        "raw": kind.certifies,
        "plot": kind.draws,
        "width": kind.draws,
        "mps": "solver" in known,
    }
    without = [name for name, there in offered.items() if not there]
    return make_command("design", run, options, without, kind.summary), kind.examples


def _kept(kind: Family, request: Any, save: Path | None) -> Design:
    """The design; of one that a limit or Ctrl-C ended early what is certified so far is saved before that is said."""
    try:
        return kind.design_request(request)
    except NotProven as stopped:
        if save is None or getattr(stopped.design, "certificate", None) is None:
            raise
        stopped.design.save(save)
        stopped.args = (f"{stopped} The certified mechanism so far is in {save}.",)
        raise


def _cells(row: Any) -> list[Any]:
    """What a mechanism publishes, as cells of a table; a bias that rounding leaves is none."""
    bias, size = row["bias"], row["rmse"] or row["worst"]
    is_rounding = bias is not None and abs(bias) < _NOTHING * size
    return [0.0 if name == "bias" and is_rounding else row[name] for name in _LAWS.values()]


def _shown(design: Design) -> Iterator[Any]:
    kind = design.family
    yield Text(design.heading, style="bold")
    yield make_facts_grid([fact for fact in design.facts() if fact[0] != "note"])
    yield ""
    yield from (fold_table(title, heads, cells) for title, heads, cells in kind.list_tables(design))
    yield from map(make_note, design.words)


_LAWS = {
    "class": "class",
    "RMSE": "rmse",
    "worst answer": "worst",
    "largest bias": "bias",
    "bits": "bits",
}


def recommend(**given: Any) -> Report:
    """Which class of mechanisms for a query: some, each at its best, with proven numbers, the least loss first."""
    from workbench.recommendation.recommend import recommend as recommended
    from workbench.recommendation.wording import BORROWED_NOTE, STOPPED_NOTE

    files = {
        name: given[name]
        for name in ("answers", "places", "neighbours", "outputs", "prior", "loss")
    }
    files |= {f"baseline {k}": path for k, path in enumerate(given["baseline"] or [])}
    outputs = Outputs(files, given)
    if (
        given["column"] is None
        and sum(given[name] is not None for name in ("answers", "places", "range")) != 1
    ):
        raise InvalidRequest(
            "The answers must be given by exactly one of answers, places and range."
        )
    result = run_with_progress(lambda tell: recommended(**select_given(given), progress=tell))
    outputs.write(result, "build_result_page", lambda path: result.best.save(path))

    def shown() -> Iterator[Any]:
        what = "epsilon" if given["minimise"] == "epsilon" else "loss"
        columns = {
            "class": "class",
            what: "objective",
            "proven bound": "bound",
            "certified": "certified",
        }
        heads = {**columns, "notes": "notes"}
        yield make_table(
            result.title, [*heads], [[row[name] for name in heads.values()] for row in result]
        )
        laws = [row for row in result if row["worst"] is not None]
        if laws:
            yield make_table("What is published", [*_LAWS], [_cells(row) for row in laws])
        for row in result:
            stopped = STOPPED_NOTE in row["notes"]
            if row["command"] and (stopped or row["class"] == result.chosen):
                own = row["objective"] is not None and BORROWED_NOTE not in row["notes"]
                further = ", to go on" + ", to a value at least as good" * own
                yield make_verbatim(f"{row['class']}{further * stopped}: {row['command']}")
        yield from result.sentences

    return Report(result.to_dict, shown())
