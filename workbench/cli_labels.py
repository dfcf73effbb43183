"""`workbench design labels` and `workbench privatise labels`."""

from __future__ import annotations

import csv
import io
import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape

from workbench.console import Json, emit_json, err, facts, out, table
from workbench.errors import InvalidRequest
from workbench.mechanisms.labels import Labels

if TYPE_CHECKING:
    from workbench.design_labels import LabelDesign

__all__ = ["DESIGN_EXAMPLES", "PRIVATISE_EXAMPLES", "design_labels", "privatise_labels"]

DESIGN_EXAMPLES = """Examples:

  workbench design labels --prior uniform:0..20 --loss squared --epsilon 4

  workbench design labels --prior prior.csv --loss absolute --epsilon 1 --method lp --json

  workbench design labels --prior uniform:0..7 --loss absolute --epsilon 1 --method lp --neighbours consecutive

  workbench design labels --prior uniform:0..10 --epsilon 1 --method unbiased --save unbiased.json --plot channel.png

prior.csv has two columns: label, weight (a header line is optional)."""

PRIVATISE_EXAMPLES = """Examples:

  workbench privatise labels sales.csv --column amount --epsilon 2 --labels 0..400 --snap --out private.csv

  workbench privatise labels weeks.csv --column WKSWORK1 --epsilon 1 --labels 1..52 --loss absolute --out private.csv"""

LossName = Annotated[
    str, typer.Option(help="squared, absolute, poisson, poisson-deviance, zero-one, pinball:τ or huber:h.")
]


def design_labels(
    prior: Annotated[str, typer.Option(help="CSV of labels and weights, or uniform:LOW..HIGH.")],
    epsilon: Annotated[str, typer.Option(help="Privacy budget > 0; with notion metric per unit of the label.")],
    loss: LossName = "squared",
    method: Annotated[str, typer.Option(help="bins, printed, lp or unbiased.")] = "bins",
    outputs: Annotated[str | None, typer.Option(help="lp: LOW..HIGH, the integers that may be published.")] = None,
    neighbours: Annotated[str, typer.Option(help='lp: all, consecutive, or positions "0-1,1-2".')] = "all",
    notion: Annotated[str, typer.Option(help="lp: pure, dp or metric.")] = "pure",
    delta: Annotated[str, typer.Option(help="lp with notion dp: in [0, 1].")] = "0",
    constraint: Annotated[
        list[str] | None,
        typer.Option(help="lp, repeatable: unbiased, row-monotone, column-monotone, symmetric or honest."),
    ] = None,
    solver: Annotated[str, typer.Option(help="A name from `workbench solvers`.")] = "highs",
    time_limit: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The solver's own channel, neither repaired nor certified.")
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Write the certificate (with --raw: the bare mechanism).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the channel (.png, .svg or .pdf).")] = None,
    json: Json = False,
) -> None:
    """The least-loss randomizer of labels: bins, channel LP or unbiased; judged and audited exactly."""
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        InvalidRequest.must("plot file", "named .png, .svg or .pdf", plot.name)
    for target in (save, plot):
        if target is not None:
            _check_folder(target)
    if outputs is not None and ".." not in outputs:
        InvalidRequest.must("outputs", "LOW..HIGH with integers, such as -10..30", repr(outputs))
    question = Labels.parse(prior)
    from workbench.design_labels import design

    made = design(
        question, epsilon=epsilon, loss=loss, method=method, neighbours=_neighbours(neighbours), notion=notion,
        delta=delta, outputs=None if outputs is None else Labels.parse(outputs).values, solver=solver,
        constraints=tuple(dict.fromkeys(constraint or ())),
        time_limit=time_limit, certify=False if raw else None if save is None else True,
        progress=lambda line: err.print(line, highlight=False, markup=False),
    )  # fmt: skip
    if save is not None:
        _save(made, save)
    if plot is not None:
        _plot(made, plot)
    if json:
        emit_json(made.to_dict())
    else:
        _report(made)


def _report(made: LabelDesign) -> None:
    r, law = made.to_dict(), made.oracle
    lines = [
        (f"least {r['loss']} loss", f"{made.objective:.9g}"),
        ("proven bound", "unknown" if made.bound is None else f"{made.bound:.9g} (gap {made.gap:.2g})"),
        ("method", r["method"] if made.solution is None else f"{r['method']}, by {r['solver']} {r['version']}"),
        ("asked", f"{r['notion']}, epsilon = {r['epsilon']:g}, delta = {r['delta']:g}, {r['neighbours']} neighbours"),
        ("exact pure epsilon", str(r["exact"]["epsilon"])),
        ("as returned", "meets the request exactly" if made.private else "MISSES the request in exact arithmetic"),
        ("proof", made.proof),
    ]
    if law.value is None:
        lines.append(("oracle", f"none: {law.proof}"))
    else:
        verdict = "agrees" if law.agrees else "DISAGREES"
        lines += [("oracle", f"{law.name}: {law.value:.9g} ({law.kind}), {verdict}, difference {law.difference:.2g}")]
        lines += [("", law.proof)]
    out.print(f"[bold]{made.question!r}[/bold]", highlight=False)
    out.print(facts(lines))
    if made.bins is not None:
        cells = [[b["lower"], b["upper"], b["value"]] for b in made.bins]
        out.print(table(f"{len(cells)} bins", ["lower", "upper", "publishes"], cells[:40]))
    else:
        mass = made.question.prior @ made.mechanism.matrix
        used = np.flatnonzero(made.mechanism.matrix.max(axis=0) > 1e-9)
        cells = [[float(made.mechanism.outputs[j]), float(mass[j])] for j in used]
        out.print(table(f"{len(cells)} outputs in use", ["publishes", "overall probability"], cells[:40]))
    for sentence in made.words:
        out.print(f"[yellow]note[/yellow] {escape(sentence)}", highlight=False)


def _neighbours(text: str) -> str | list[tuple[int, int]]:
    """A named relation, or pairs of label positions spelled "0-1,1-2"."""
    if "-" not in text:
        return text
    try:
        return [(int(i), int(j)) for i, j in (pair.split("-") for pair in text.split(","))]
    except ValueError:
        InvalidRequest.must("neighbours", 'all, consecutive, or pairs of positions such as "0-1,1-2"', repr(text))


def _save(made: LabelDesign, path: Path) -> None:
    """The certificate; or, with --raw, the bare mechanism, which claims nothing."""
    from workbench.labels_certified import bare
    from workbench.privacy.certificate_file import save_certificate, save_mechanism

    if made.certificate is not None:
        save_certificate(made.certificate, path)
    else:
        save_mechanism(bare(made.mechanism, made.request.get("pairs")), path)


def _plot(made: LabelDesign, path: Path) -> None:
    from workbench.papers.reproduce import save_figure
    from workbench.plots import channel_plot

    r = made.to_dict()
    title = f"{made.question!r}, {r['notion']} at ε = {r['epsilon']:g}: {r['loss']} loss {made.objective:.6g}"
    save_figure(channel_plot(made.question.values, made.mechanism.outputs, made.mechanism.matrix, title), path)


def privatise_labels(
    source: Annotated[Path, typer.Argument(metavar="FILE.csv", help="CSV file with the private labels.")],
    column: Annotated[str, typer.Option(help="Name or number (from 1) of the label column.")],
    epsilon: Annotated[str, typer.Option(help="The whole privacy budget > 0: of the prior and of the response.")],
    target: Annotated[Path, typer.Option("--out", help="CSV to write: the same rows, the column randomized.")],
    loss: LossName = "squared",
    labels: Annotated[
        str | None, typer.Option(help="The known label set: LOW..HIGH or a CSV. Default: the values of the column.")
    ] = None,
    snap: Annotated[bool, typer.Option("--snap", help="Clip into the label set and round down to a label.")] = False,
    split: Annotated[str, typer.Option(help="epsilon1 = SPLIT * sqrt(k/n); 1/2 or 1/4 suit large files.")] = "1",
    epsilon1: Annotated[str | None, typer.Option(help="epsilon1 itself, instead of --split.")] = None,
    projection: Annotated[str, typer.Option(help="Of the noisy counts: clip (as the paper) or simplex.")] = "clip",
    seed: Annotated[int | None, typer.Option(help="Repeatable and therefore NOT private: for experiments.")] = None,
    json: Json = False,
) -> None:
    """Randomize a column of labels under label DP (Algorithm 3), with a private prior and the best bins for it.

    Beside OUT.csv, OUT.csv.json states the budgets, the method and the bins; all of it is safe to publish.
    """
    from workbench.columns import read_column
    from workbench.mechanisms.draws import Source

    for path in (target, _sidecar(target)):
        _check_folder(path)
        if path.is_dir():
            InvalidRequest.must("output", "a file", f"the folder {path.name}")
    if target.resolve() == source.resolve():
        InvalidRequest.must("output", "another file than the input", target.name)
    drawing = Source(seed)
    values = read_column(source, column)
    known = np.unique(values) if labels is None else Labels.parse(labels).values
    if snap:
        values = known[np.maximum(np.searchsorted(known, values, side="right") - 1, 0)]
    elif labels is not None:
        _check_members(values, known, source.name)
    from workbench.design_labels import best_bins
    from workbench.mechanisms.label_randomizer import LabelRandomizer

    release = LabelRandomizer(
        known, epsilon, lambda prior, second: best_bins(prior, second, loss),
        split=split, projection=projection, epsilon_prior=epsilon1,
    ).run(values, drawing)  # fmt: skip
    content, others = _replaced(source, column, release.labels)
    words = []
    if labels is None:
        words.append(
            "The label set was read from the column, and that is not private: its ends stand in the bins. The "
            "guarantee holds among columns over this very set; give --labels to fix it beforehand."
        )
    if others:
        words.append("Label DP protects the labels only: the other columns are copied as they are.")
    if seed is not None:
        words.append("A seed was given: whoever knows it can undo the noise. Not for a release.")
    made = release.mechanism
    report: dict[str, Any] = {
        "file": target.name, "column": column, "rows": int(values.size), "labels": made.labels.k,
        "label_set": "given" if labels is not None else "taken from the column",
        "method": "LabelRandomizer (Algorithm 3): private prior, RR-on-Bins",
        "epsilon": float(release.epsilon), "epsilon1": float(release.epsilon_prior),
        "epsilon2": float(release.epsilon_response), "neighbours": "columns that differ in the label of one row",
        "loss": loss, "split": None if epsilon1 is not None else split, "projection": projection,
        "d": int(made.outputs.size), "bins": made.bins(), "words": words,
    }  # fmt: skip
    _write(_sidecar(target), (json_module.dumps(report, indent=1, allow_nan=False) + "\n").encode())
    try:
        _write(target, content)
    except InvalidRequest:
        _sidecar(target).unlink(missing_ok=True)
        raise
    if json:
        emit_json(report | {"file": str(target)})
        return
    lines = [
        ("wrote", f"{target} ({values.size} rows) and {_sidecar(target).name}"),
        ("epsilon", f"{report['epsilon']:g} = {report['epsilon1']:.6g} (prior) + {report['epsilon2']:.6g} (response)"),
        ("labels", f"{made.labels.k}, {report['label_set']}"),
        ("bins", f"{made.outputs.size}, the best for the private prior under {loss} loss"),
    ]
    out.print(facts(lines))
    for sentence in words:
        out.print(f"[yellow]note[/yellow] {escape(sentence)}", highlight=False)


def _check_members(values: NDArray[np.float64], known: NDArray[np.float64], name: str) -> None:
    at = np.minimum(np.searchsorted(known, values), known.size - 1)
    wrong = np.flatnonzero(known[at] != values)
    if wrong.size:
        more = f" ({wrong.size} such rows; --snap clips and rounds down)"
        raise InvalidRequest(
            f"row {wrong[0] + 1} of {name} must be one of the {known.size} labels. Got {values[wrong[0]]:g}{more}."
        )


def _replaced(source: Path, column: str, labels: NDArray[np.float64]) -> tuple[bytes, int]:
    """The input with the chosen column replaced, and how many other columns it has; its shape was checked before."""
    from workbench.columns import locate

    with source.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    at, header = locate(rows[0], column, source.name)
    text = [repr(int(value)) if value.is_integer() else repr(value) for value in labels.tolist()]
    for row, value in zip(rows[1:] if header else rows, text, strict=True):
        row[at] = value
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode(), len(rows[0]) - 1


def _sidecar(target: Path) -> Path:
    return target.parent / f"{target.name}.json"


def _check_folder(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        InvalidRequest.must("output folder", "an existing folder", path.parent)


def _write(path: Path, content: bytes) -> None:
    from workbench.papers.reproduce import write_whole

    try:
        write_whole(path, content)
    except OSError as error:
        raise InvalidRequest(f"output must be a file that can be written. Got {path.name}: {error.strerror}.") from None
