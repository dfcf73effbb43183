"""`workbench design FAMILY`, the same for every family, and `workbench recommend`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli.console import Report, err, facts, folded, note, table, under_a_bar, verbatim
from workbench.cli.options import Examples, command, files_of, present
from workbench.cli.output_paths import Outputs
from workbench.errors import InvalidRequest, NotProven
from workbench.exact.objects import Record
from workbench.io.result import now_and_then

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
    options, known = kind.given_in("command"), {option.name for option in kind.options}

    def run(*, raw: bool = False, formula: bool, prices: bool, **given: Any) -> Report:
        outputs = Outputs(files_of(options, given), given)
        fixed: Record = {"check": "audit" if raw else "certify"}
        if "progress" in known:
            fixed["progress"] = now_and_then(err.print)
        request = kind.request_of(kind.read(present(given), "command") | fixed)
        optimum = None
        if formula:
            from workbench.formulas.formula import formula_around

            optimum = formula_around(request)
        design = _kept(kind, request, outputs["saved file"])
        if design.status == "infeasible":
            sentence = dict(design.facts()).get("not reachable", "No design meets the request.")
            return Report(design.to_dict, stopped=f"Infeasible: {sentence}")
        if mps := outputs["program file"]:
            design.program.save(mps)
        outputs.write(design, "design_page")
        more: Record = {}
        shown = []
        if optimum:
            more["formula"] = optimum.to_dict()
            shown.append(
                note(
                    f"The optimum is {optimum.pieces[0].text()}, {optimum.where(optimum.pieces[0])}."
                )
            )
        if prices:
            more |= {"shadow_prices": design.shadow_prices.to_dict(), "unique": design.unique}
            shown += map(note, (str(design.shadow_prices), _UNIQUE[design.unique]))
        return Report(lambda: design.to_dict() | more, (*_shown(design), *shown))

    offered = {
        "raw": kind.certifies,
        "plot": kind.draws,
        "width": kind.draws,
        "mps": "solver" in known,
    }
    without = [name for name, there in offered.items() if not there]
    return command("design", run, options, without, kind.summary), kind.examples


def _kept(kind: Family, request: Any, save: Path | None) -> Design:
    """The design; of one that a limit or Ctrl-C ended early what is certified so far is saved before that is said."""
    try:
        return kind.designed(request)
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
    yield facts([fact for fact in design.facts() if fact[0] != "note"])
    yield ""
    yield from (folded(title, heads, cells) for title, heads, cells in kind.tables(design))
    yield from map(note, design.words)


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
    from workbench.recommendation.wording import BORROWED, STOPPED

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
    result = under_a_bar(lambda tell: recommended(**present(given), progress=tell))
    outputs.write(result, "result_page", lambda path: result.best.save(path))

    def shown() -> Iterator[Any]:
        what = "epsilon" if given["minimise"] == "epsilon" else "loss"
        columns = {
            "class": "class",
            what: "objective",
            "proven bound": "bound",
            "certified": "certified",
        }
        heads = {**columns, "notes": "notes"}
        yield table(
            result.title, [*heads], [[row[name] for name in heads.values()] for row in result]
        )
        laws = [row for row in result if row["worst"] is not None]
        if laws:
            yield table("What is published", [*_LAWS], [_cells(row) for row in laws])
        for row in result:
            stopped = STOPPED in row["notes"]
            if row["command"] and (stopped or row["class"] == result.chosen):
                own = row["objective"] is not None and BORROWED not in row["notes"]
                further = ", to go on" + ", to a value at least as good" * own
                yield verbatim(f"{row['class']}{further * stopped}: {row['command']}")
        yield from result.sentences

    return Report(result.to_dict, shown())
