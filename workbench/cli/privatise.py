"""`workbench privatise`: a mechanism run on a column of a CSV file, with exact draws of the system's randomness.

Beside OUT.csv, OUT.csv.json states budget, mechanism and expected error: nothing in it but the number of rows depends
on the data. How many rows one person has, and the budget that makes, is printed for the owner of the data alone.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from workbench.cli.console import Json, emit_json, err, facts, out
from workbench.cli.output_paths import output_file, write_output
from workbench.errors import InvalidRequest
from workbench.io.files import distinct_files, others_can_read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.io.csv_column import CsvColumn
    from workbench.privacy.column_release import Account

__all__ = [
    "LABELS_EXAMPLES",
    "NOISE_EXAMPLES",
    "QUANTIZER_EXAMPLES",
    "privatise_labels",
    "privatise_noise",
    "privatise_quantizer",
]

NOISE_EXAMPLES = """Examples:

  workbench design noise --on reals --sensitivity 200000 --epsilon 0.5 --delta 0.05 --loss absolute --save real.json

  workbench privatise noise salaries.csv --column salary --mechanism real.json --out private.csv

  workbench design modulo --n 120 --max-shift 120 --epsilon 2 --save noise.json

  workbench privatise noise people.csv --column age --mechanism noise.json --out private.csv

  workbench privatise noise visits.csv --column hours --mechanism noise.json --person patient --out private.csv"""

QUANTIZER_EXAMPLES = """Examples:

  workbench design quantizer --levels 4 --epsilon 1 --save quantizer.json

  workbench privatise quantizer grades.csv --column change --mechanism quantizer.json --clip --out private.csv

  workbench privatise quantizer grades.csv --column change --mechanism quantizer.json --ledger releases --out p.csv"""

LABELS_EXAMPLES = """Examples:

  workbench privatise labels sales.csv --column amount --epsilon 2 --labels 0..400 --snap --out private.csv

  workbench privatise labels weeks.csv --column WKSWORK1 --epsilon 1 --labels 1..52 --loss absolute --out private.csv

  workbench privatise labels visits.csv --column stars --epsilon 1 --labels 1..5 --person patient --out private.csv"""


File = Annotated[Path, typer.Argument(metavar="FILE.csv", help="CSV file with the private column.")]
Column = Annotated[str, typer.Option(help="Name or number (from 1) of the private column.")]
Target = Annotated[Path, typer.Option("--out", help="CSV to write: the same rows, the column randomized.")]
Saved = Annotated[Path, typer.Option("--mechanism", help="The certificate that `workbench design ... --save` wrote.")]
Clip = Annotated[bool, typer.Option("--clip", help="Move numbers outside the mechanism's inputs to the nearest one.")]
Person = Annotated[str | None, typer.Option(help="Column that says whose row it is: budgets of one person add up.")]
Ledger = Annotated[
    Path | None, typer.Option(help="Your private account of releases of these data: budgets add up. Made if missing.")
]
Raw = Annotated[bool, typer.Option("--raw", help="Take a mechanism without a certificate, which claims no privacy.")]
_LABEL_METHODS = {"bins": "RR-on-Bins", "unbiased": "the unbiased randomizer"}
Insecure = Annotated[int | None, typer.Option(help="Repeatable and therefore NOT private: for experiments.")]


def _command(kind: str, summary: str) -> Callable[..., None]:
    """The command that publishes a column through a saved mechanism of a kind."""

    def privatise(
        source: File,
        column: Column,
        mechanism: Saved,
        target: Target,
        clip: Clip = False,
        person: Person = None,
        ledger: Ledger = None,
        raw: Raw = False,
        insecure_seed: Insecure = None,
        json: Json = False,
    ) -> None:
        sidecar = _sidecar(target, {"input": source, "mechanism": mechanism}, ledger)
        from workbench.exact.random_source import Source
        from workbench.io.csv_column import CsvColumn
        from workbench.privacy.column_release import Rows, mechanism_for_column
        from workbench.privacy.sampling import publish

        Source(insecure_seed)  # a wrong seed is refused before any work
        subject = mechanism_for_column(mechanism, kind, raw=raw)
        table = CsvColumn.read(source, column)
        rows = Rows.read(table, subject, clip=clip, person=person)
        account = subject.account(table.name, target.name, rows, ledger)
        words = [*subject.words, *rows.words, *account.words]
        if table.width > 1:
            words.append("Only this column is protected: the other columns are copied as they are.")
        if insecure_seed is not None:
            words.append("A seed was given: whoever knows it can undo the noise. Not for a release.")
        published = publish(subject.mechanism, rows.values, insecure_seed=insecure_seed)
        report: dict[str, Any] = {
            "file": target.name,
            "column": column,
            "rows": int(rows.values.size),
            "method": kind,
            "mechanism": subject.mechanism.describe(),
            "certified": subject.claim is not None,
            "claim": None if subject.claim is None else subject.claim.to_dict(),
            "pure_epsilon": subject.pure_epsilon,
            **account.report,
            "expected_error": subject.expected_error,
            "clip": clip,
            "person": person,
            "words": words,
        }
        _publish(account, target, sidecar, table, published, report)
        if json:
            emit_json(_for_owner(report, account, target) | {"clipped_rows": rows.clipped})
            return
        lines = [("wrote", f"{target} ({rows.values.size} rows) and {sidecar.name}"), ("budget", account.headline)]
        lines += [("error", f"{label}: {value:.9g}") for label, value in subject.expected_error.items()]
        if rows.clipped:
            lines.append(("clipped", f"{rows.clipped} of {rows.values.size} rows"))
        _show(lines, [*words, *account.own_words])

    sidecar_words = "Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error."
    privatise.__doc__ = f"{summary}\n\n{sidecar_words}"
    return privatise


privatise_noise = _command(
    "noise", "Add noise to a column: modulo n + 1 to integers 0..n, or made for all integers or reals."
)
privatise_quantizer = _command("quantizer", "Publish every number of a column through a quantizer.")


def privatise_labels(
    source: Annotated[Path, typer.Argument(metavar="FILE.csv", help="CSV file with the private labels.")],
    column: Annotated[str, typer.Option(help="Name or number (from 1) of the label column.")],
    epsilon: Annotated[str, typer.Option(help="The whole privacy budget > 0: of the prior and of the response.")],
    target: Annotated[Path, typer.Option("--out", help="CSV to write: the same rows, the column randomized.")],
    loss: Annotated[
        str, typer.Option(help="squared, absolute, poisson, poisson-deviance, error-rate, pinball:τ or huber:h.")
    ] = "squared",
    labels: Annotated[
        str | None, typer.Option(help="The known label set: LOW..HIGH or a CSV. Default: the values of the column.")
    ] = None,
    snap: Annotated[bool, typer.Option("--snap", help="Clip into the label set and round down to a label.")] = False,
    split: Annotated[str, typer.Option(help="epsilon1 = SPLIT * sqrt(k/n); 1/2 or 1/4 suit large files.")] = "1",
    epsilon1: Annotated[str | None, typer.Option(help="epsilon1 itself, instead of --split.")] = None,
    projection: Annotated[str, typer.Option(help="Of the noisy counts: clip (as the paper) or simplex.")] = "clip",
    method: Annotated[str, typer.Option(help="bins (least loss), or unbiased (least squared loss).")] = "bins",
    person: Person = None,
    ledger: Ledger = None,
    insecure_seed: Insecure = None,
    json: Json = False,
) -> None:
    """Randomize a column of labels under label DP (Algorithm 3), with a private prior and the best bins for it.

    Bins shift means towards the middle; --method unbiased shifts none, at a larger loss. Beside OUT.csv, OUT.csv.json
    states the budgets, the method, its outputs, expected error and bias; all of it is safe to publish. A new OUT.csv
    that copies other columns is readable by its owner only.
    """
    import numpy as np

    from workbench.exact.random_source import Source
    from workbench.io.csv_column import CsvColumn
    from workbench.mechanisms.label_randomizers.labels import Labels
    from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
    from workbench.privacy.column_release import Account, rows_of_one_person
    from workbench.privacy.releases import PrivacyBudget

    sidecar = _sidecar(target, {"input": source, "labels": labels}, ledger)
    drawing = Source(insecure_seed)
    if method not in _LABEL_METHODS:
        InvalidRequest.must("method", f"one of {', '.join(_LABEL_METHODS)}", repr(method))
    if method == "unbiased" and loss != "squared":
        InvalidRequest.must("loss", "squared where method is unbiased", repr(loss))
    table = CsvColumn.read(source, column)
    values = given = table.numbers()
    most = None if person is None else rows_of_one_person(table, person)
    known = np.unique(values) if labels is None else Labels.parse(labels).values
    if snap:
        values = known[np.maximum(np.searchsorted(known, values, side="right") - 1, 0)]
    elif labels is not None:
        near = known[np.minimum(np.searchsorted(known, values), known.size - 1)]
        table.refuse(near != values, f"one of the {known.size} labels", "--snap clips and rounds down")
    from workbench.families.api import design
    from workbench.families.labels.problem import best_bins
    from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer

    def best(prior: Labels, second: Fraction) -> Any:
        if method == "bins":
            return best_bins(prior, second, loss)
        return design(prior, epsilon=second, method=method).mechanism

    release = LabelRandomizer(known, epsilon, best, split=split, projection=projection, epsilon_prior=epsilon1).run(
        values, drawing
    )
    account = Account.of(PrivacyBudget(release.epsilon), "pure", table.name, target.name, given, most, ledger)
    words = [*account.words]
    if labels is None:
        words.append(
            "The label set was read from the column, and that is not private: its ends stand in the bins. The "
            "guarantee holds among columns over this very set; give --labels to fix it beforehand."
        )
    if table.width > 1:
        words.append("Label DP protects the labels only: the other columns are copied as they are.")
    if insecure_seed is not None:
        words.append("A seed was given: whoever knows it can undo the noise. Not for a release.")
    mechanism = release.mechanism
    report: dict[str, Any] = {
        "file": target.name, "column": column, "rows": int(values.size), "labels": release.known.k,
        "label_set": "given" if labels is not None else "taken from the column",
        "method": f"LabelRandomizer (Algorithm 3): private prior, {_LABEL_METHODS[method]}",
        "epsilon": float(release.epsilon), "epsilon1": float(release.epsilon_prior),
        "epsilon2": float(release.epsilon_response), "neighbours": "columns that differ in the label of one row",
        "loss": loss, "split": None if epsilon1 is not None else split, "projection": projection,
        "d": int(mechanism.outputs.size), "outputs": mechanism.outputs.tolist(),
        "bins": mechanism.bins() if isinstance(mechanism, RandomizedResponse) else None, **account.report,
        "expected_error": release.expected_error, "person": person, "words": words,
    }  # fmt: skip
    _publish(account, target, sidecar, table, release.labels, report)
    if json:
        emit_json(_for_owner(report, account, target))
        return
    lines = [
        ("wrote", f"{target} ({values.size} rows) and {sidecar.name}"),
        ("budget", account.headline),
        ("epsilon", f"{report['epsilon']:g} = {report['epsilon1']:.6g} (prior) + {report['epsilon2']:.6g} (response)"),
        ("labels", f"{release.known.k}, {report['label_set']}"),
        ("outputs", f"{mechanism.outputs.size}, of {_LABEL_METHODS[method]}, best for the private prior, {loss} loss"),
        *(("error", f"{label}: {value:.9g}") for label, value in release.expected_error.items()),
    ]
    _show(lines, [*words, *account.own_words])


def _for_owner(report: Mapping[str, Any], account: Account, target: Path) -> dict[str, Any]:
    """The report with what is not published: how many rows somebody has, and what that makes of the budget."""
    return {**report, **account.own, "file": str(target), "words": [*report["words"], *account.own_words]}


def _sidecar(target: Path, inputs: Mapping[str, Path | str | None], ledger: Path | None = None) -> Path:
    """The report beside an output; every path is checked before any work."""
    sidecar = target.parent / f"{target.name}.json"
    outputs = {"output": target, "report beside the output": sidecar, "ledger": ledger}
    for name, path in outputs.items():
        if path is not None:
            output_file(path, name)
    distinct_files(inputs, outputs)
    return sidecar


def _publish(
    account: Account, target: Path, sidecar: Path, table: CsvColumn, values: NDArray[Any], report: Mapping[str, Any]
) -> None:
    """Enter the release into its ledger and write it: both, or neither. Raises InvalidRequest."""
    undo = account.save()
    try:
        _write(target, sidecar, table, values, report)
    except BaseException:
        undo()
        raise
    if account.ledger is not None and others_can_read(account.ledger):
        err.print(f"Warning: other users can read the ledger {account.ledger.name}.", highlight=False, markup=False)


def _write(target: Path, sidecar: Path, table: CsvColumn, values: NDArray[Any], report: Mapping[str, Any]) -> None:
    """Report and output, or neither. Raises InvalidRequest."""
    write_output(sidecar, (json_module.dumps(report, indent=1, allow_nan=False) + "\n").encode())
    try:
        write_output(target, table.replaced(values), private=table.width > 1)
    except InvalidRequest:
        sidecar.unlink(missing_ok=True)
        raise


def _show(lines: list[tuple[str, str]], words: list[str]) -> None:
    out.print(facts(lines))
    for sentence in words:
        out.print(f"[yellow]note[/yellow] {escape(sentence)}", markup=True)
