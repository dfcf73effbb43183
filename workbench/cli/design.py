"""The commands `design FAMILY` and `recommend`."""

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
from workbench.errors import InvalidRequest, NotProven, WorkbenchError
from workbench.exact.objects import Record, Values
from workbench.io.result import limit_message_rate

if TYPE_CHECKING:
    from workbench.pipeline.design import Design
    from workbench.pipeline.family import Family


# A bias below this share of the root mean square error, or of the worst loss, is shown as 0.
_MAX_ROUNDING_BIAS = 1e-9
_UNIQUENESS_SENTENCES = {
    True: (
        "No other mechanism of the class is optimal (by a second linear program over the optimal "
        "mechanisms, in double precision)."
    ),
    False: "Other mechanisms of the class are optimal as well.",
    None: "Whether other mechanisms of the class are optimal as well is not decided.",
}
# Head of a column of the table "Outputs" -> name of the entry in the rows of a recommendation.
_LAW_COLUMNS = {
    "class": "class",
    "RMSE": "rmse",
    "worst answer": "worst",
    "largest bias": "bias",
    "bits": "bits",
}


def design_command(kind: Family) -> Examples:
    """Return the command that designs a mechanism of a family, with its examples.

    Args:
        kind: The `Family`.

    Returns:
        The command, and its example lines.
    """
    options = kind.options_for("command")
    option_names = {option.name for option in kind.options}

    def run(*, raw: bool = False, formula: bool, prices: bool, **values: Any) -> Report:
        outputs = Outputs(list_input_files(options, values), values)
        fixed: Record = {"check": "audit" if raw else "certify"}
        if "progress" in option_names:
            fixed["progress"] = limit_message_rate(err.print)
        exact_values = kind.read_values(select_given(values), "command")
        request = kind.make_request_from_values(exact_values | fixed)
        entries: Record = {}
        notes = []
        if formula:
            optimum = _find_formula(request)
            entries["formula"] = optimum.to_dict()
            piece = optimum.pieces[0]
            notes.append(f"The optimum is {piece.to_text()}, {optimum.describe_interval(piece)}.")
        design = _design_and_save(kind, request, outputs["saved file"])
        if design.status == "infeasible":
            facts = dict(design.facts())
            sentence = facts.get("not reachable", "No design satisfies the request.")
            return Report(design.to_dict, stop_message=f"Infeasible: {sentence}")
        program_file = outputs["program file"]
        if program_file:
            design.program.save(program_file)
        page_options = None
        if outputs["html file"]:
            page_options = {"option_texts": _write_option_texts(kind, exact_values)}
        outputs.write(design, "build_design_page", page_options=page_options)
        if prices:
            entries["shadow_prices"] = design.shadow_prices.to_dict()
            entries["unique"] = design.unique
            notes.append(str(design.shadow_prices))
            notes.append(_UNIQUENESS_SENTENCES[design.unique])
        parts = (*_list_design_parts(design), *map(make_note, notes))
        return Report(lambda: design.to_dict() | entries, parts)

    supported = {
        "raw": kind.certifies,
        "plot": kind.draws,
        "width": kind.draws,
        "mps": "solver" in option_names,
    }
    without = [name for name, is_supported in supported.items() if not is_supported]
    command = make_command("design", run, options, without=without, summary=kind.summary)
    return command, kind.examples


def _write_option_texts(kind: Family, exact_values: Values) -> Record | None:
    """Return the options of a design as texts, without defaults. None: an option has no text."""
    from workbench.explorer.given import offered_options, write_option_texts

    offered = offered_options(kind)
    values = {
        name: value
        for name, value in exact_values.items()
        if name in offered and value not in (None, offered[name].default)
    }
    try:
        return write_option_texts(kind, values)
    except WorkbenchError:
        return None


def _find_formula(request: Any) -> Any:
    """Return the formula of the optimum around the request."""
    from workbench.formulas.formula import formula_around

    return formula_around(request)


def _design_and_save(kind: Family, request: Any, save: Path | None) -> Design:
    """Return the design. If a limit or Ctrl-C ends it early, save what is certified so far."""
    try:
        return kind.design_request(request)
    except NotProven as error:
        if save is None or getattr(error.design, "certificate", None) is None:
            raise
        error.design.save(save)
        error.args = (f"{error} The best certified mechanism is in {save}.",)
        raise


def _make_law_cells(row: Any) -> list[Any]:
    """Return the cells of a row of the table "Outputs".

    A bias that is only a rounding error is shown as 0.
    """
    bias = row["bias"]
    size = row["rmse"] or row["worst"]  # Only squared losses have an RMSE.
    is_rounding = bias is not None and abs(bias) < _MAX_ROUNDING_BIAS * size
    cells = [row[name] for name in _LAW_COLUMNS.values()]
    if is_rounding:
        cells[list(_LAW_COLUMNS.values()).index("bias")] = 0.0
    return cells


def _list_design_parts(design: Design) -> Iterator[Any]:
    """Yield the heading, the facts, the tables and the notes of a design."""
    yield Text(design.heading, style="bold")
    yield make_facts_grid([fact for fact in design.facts() if fact[0] != "note"])
    yield ""
    for title, heads, cells in design.family.list_tables(design):
        yield fold_table(title, heads, cells)
    yield from map(make_note, design.words)


def recommend_class(**options: Any) -> Report:
    """Compare the classes of mechanisms for a query, and recommend the one with the smallest loss.

    For each class the table shows the best mechanism, its expected loss and a proven lower bound.

    Args:
        options: Options of the command.
    """
    from workbench.recommendation.recommend import recommend

    file_names = ("answers", "places", "neighbours", "outputs", "prior", "loss")
    # No output may overwrite one of these files.
    files = {name: options[name] for name in file_names}
    files |= {f"baseline {k}": path for k, path in enumerate(options["baseline"] or [])}
    outputs = Outputs(files, options)
    answer_options = [options[name] for name in ("answers", "places", "range")]
    answer_count = sum(value is not None for value in answer_options)
    if options["column"] is None and answer_count != 1:
        raise InvalidRequest(
            "The answers must be given by exactly one of answers, places and range."
        )
    result = run_with_progress(lambda report: recommend(**select_given(options), progress=report))
    outputs.write(result, "build_result_page", save=lambda path: result.best.save(path))
    objective_name = "epsilon" if options["minimise"] == "epsilon" else "expected loss"
    return Report(result.to_dict, _list_recommendation_parts(result, objective_name))


def _list_recommendation_parts(result: Any, objective_name: str) -> Iterator[Any]:
    """Yield the tables, the commands and the sentences of a recommendation."""
    heads = {
        "class": "class",
        objective_name: "objective",
        "lower bound": "bound",
        "certified": "certified",
        "notes": "notes",
    }
    cells = [[row[name] for name in heads.values()] for row in result]
    yield make_table(result.title, [*heads], cells)
    law_rows = [row for row in result if row["worst"] is not None]
    if law_rows:
        yield make_table("Outputs", [*_LAW_COLUMNS], [_make_law_cells(row) for row in law_rows])
    for row in result:
        command = _describe_command(row, is_chosen=row["class"] == result.chosen)
        if command is not None:
            yield make_verbatim(command)
    yield from result.sentences


def _describe_command(row: Any, *, is_chosen: bool) -> str | None:
    """Return a line with the command of a class that was chosen or stopped early, else None."""
    from workbench.recommendation.wording import BORROWED_NOTE, STOPPED_NOTE

    is_stopped = STOPPED_NOTE in row["notes"]
    if not row["command"] or not (is_stopped or is_chosen):
        return None
    purpose = ""
    if is_stopped:
        purpose = ", to continue"
        # A borrowed objective belongs to another class, which the command does not design.
        if row["objective"] is not None and BORROWED_NOTE not in row["notes"]:
            purpose += " to a value at least as good"
    return f"Command for the {row['class']}{purpose}: {row['command']}"
