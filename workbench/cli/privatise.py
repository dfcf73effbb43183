"""`workbench privatise`: a mechanism run on a column of a CSV file, with exact draws of the system's randomness.

Beside OUT.csv, OUT.csv.json states budget, mechanism and expected error: nothing in it but the number of rows depends
on the data. How many rows one person has, and the budget that makes, is printed for the owner of the data alone.
"""

from __future__ import annotations

import contextlib
import json as json_module
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, err, facts, note
from workbench.cli.output_paths import check_outputs, write_output
from workbench.errors import InvalidRequest
from workbench.exact.objects import Values
from workbench.io.files import others_can_read
from workbench.io.shown import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.io.csv_column import CsvColumn
    from workbench.privacy.column_release import Account, ColumnMechanism


_LABEL_METHODS = {"bins": "RR-on-Bins", "unbiased": "the unbiased randomizer"}
_SEEDED = "A seed was given: whoever knows it can undo the noise. Not for a release."
_UNKNOWN = (
    "The label set was read from the column, and that is not private: its ends stand in the bins. The guarantee holds "
    "among columns over this very set; give --labels to fix it beforehand."
)


def privatise_noise(
    source: Path,
    *,
    column: str,
    mechanism: Path,
    target: Path,
    clip: bool = False,
    person: str | None = None,
    ledger: Path | None = None,
    raw: bool = False,
    insecure_seed: int | None = None,
) -> Report:
    """Add noise to a column: modulo n + 1 to integers 0..n, or made for all integers or reals.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.
    """
    from workbench.privacy.column_release import mechanism_for_column

    sidecar = sidecar_of(target, {"input": source, "mechanism": mechanism}, ledger)
    subject = partial(mechanism_for_column, mechanism, "noise", raw=raw)
    how = {"clip": clip, "person": person, "ledger": ledger, "insecure_seed": insecure_seed}
    return _through("noise", source, column, subject, target, sidecar, **how)


def privatise_quantizer(
    source: Path,
    *,
    column: str,
    mechanism: Path | None = None,
    range: str | None = None,
    levels: int | None = None,
    epsilon: str | None = None,
    loss: str | None = None,
    target: Path,
    clip: bool = False,
    person: str | None = None,
    ledger: Path | None = None,
    raw: bool = False,
    insecure_seed: int | None = None,
) -> Report:
    """Publish every number of a column through a quantizer: a saved one, or the best for a range.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.
    """
    from workbench.privacy.column_release import designed_for_column, mechanism_for_column

    sidecar = sidecar_of(target, {"input": source, "mechanism": mechanism}, ledger)
    own = {"range": range, "levels": levels, "epsilon": epsilon}
    given = [name for name, value in (own | {"loss": loss}).items() if value is not None]
    if mechanism is not None and given:
        raise InvalidRequest(f"{given[0]} must be left out with a mechanism, which says it.")
    if mechanism is not None:
        subject: Callable[[], ColumnMechanism] = partial(mechanism_for_column, mechanism, "quantizer", raw=raw)
    elif missing := [name for name, value in own.items() if value is None]:
        raise InvalidRequest(f"A mechanism must be given, or range, levels and epsilon. Got no {missing[0]}.")
    else:
        from workbench.families.quantizer.family import FAMILY

        request = FAMILY.spelled(**own, loss=loss)

        def subject() -> ColumnMechanism:
            certificate = FAMILY.designed(request).certificate
            assert certificate is not None
            return designed_for_column(certificate)

    how = {"clip": clip, "person": person, "ledger": ledger, "insecure_seed": insecure_seed}
    return _through("quantizer", source, column, subject, target, sidecar, **how)


def _through(
    kind: str,
    source: Path,
    column: str,
    read: Callable[[], ColumnMechanism],
    target: Path,
    sidecar: Path,
    **how: Any,
) -> Report:
    """A column published through a mechanism, with an account of it."""
    from workbench.exact.random_source import Source
    from workbench.io.csv_column import CsvColumn
    from workbench.privacy.column_release import Account, Rows

    clip, person, insecure_seed = how["clip"], how["person"], how["insecure_seed"]
    Source(insecure_seed)  # a wrong seed is refused before any work
    subject = read()
    table = CsvColumn.read(source, column)
    rows = Rows.read(table, subject, clip=clip, person=person)
    notion = "none" if subject.claim is None else subject.claim.notion.name
    account = Account.of(subject.budget, notion, table.name, target.name, rows.given, rows.most, how["ledger"])
    words = [*subject.words, *rows.words, *account.words]
    words += cautions(table, "Only this column is protected", insecure_seed)
    report: Values = {
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
    lines = errors_shown(subject.expected_error)
    lines += [("clipped", f"{rows.clipped} of {rows.values.size} rows")] if rows.clipped else []
    drawn = subject.mechanism.publish(rows.values, insecure_seed=insecure_seed)
    return published(account, target, sidecar, table, drawn, report, lines, {"clipped_rows": rows.clipped})


def privatise_labels(
    source: Path,
    *,
    column: str,
    epsilon: str,
    target: Path,
    loss: str = "squared",
    labels: str | None = None,
    snap: bool = False,
    split: str = "1",
    epsilon1: str | None = None,
    projection: str = "clip",
    method: str = "bins",
    person: str | None = None,
    ledger: Path | None = None,
    insecure_seed: int | None = None,
) -> Report:
    """Randomize a column of labels under label DP (Algorithm 3), with a private prior and the best bins for it.

    Bins shift means towards the middle; --method unbiased shifts none, at a larger loss. Beside OUT.csv, OUT.csv.json
    states the budgets, the method, its outputs, expected error and bias; all of it is safe to publish. A new OUT.csv
    that copies other columns is readable by its owner only.
    """
    from workbench.exact.random_source import Source
    from workbench.io.csv_column import CsvColumn
    from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
    from workbench.privacy.column_release import Account, PrivacyBudget, rows_of_one_person

    sidecar = sidecar_of(target, {"input": source, "labels": labels}, ledger)
    drawing = Source(insecure_seed)
    InvalidRequest.unless_among(_LABEL_METHODS, "method", method)
    if method == "unbiased" and loss != "squared":
        InvalidRequest.must("loss", "squared where method is unbiased", repr(loss))
    table = CsvColumn.read(source, column)
    given = table.numbers()
    most = None if person is None else rows_of_one_person(table, person)
    known, values = _labels(table, given, labels, snap)
    from workbench.families.api import design
    from workbench.families.labels.problem import best_bins
    from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer

    def best(prior: Any, second: Fraction) -> Any:
        if method == "bins":
            return best_bins(prior, second, loss)
        return design(prior, epsilon=second, method=method).mechanism

    randomizer = LabelRandomizer(known, epsilon, best, split=split, projection=projection, epsilon_prior=epsilon1)
    release = randomizer.run(values, drawing)
    account = Account.of(PrivacyBudget(release.epsilon), "pure", table.name, target.name, given, most, ledger)
    words = [*account.words, *([_UNKNOWN] if labels is None else [])]
    words += cautions(table, "Label DP protects the labels only", insecure_seed)
    mechanism = release.mechanism
    report: Values = {
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
    lines = [*_label_lines(report, _LABEL_METHODS[method]), *errors_shown(release.expected_error)]
    return published(account, target, sidecar, table, release.labels, report, lines)


def _label_lines(report: Values, method: str) -> Facts:
    """The budgets, the label set and the outputs in words."""
    shares = f"{report['epsilon1']:.6g} (prior) + {report['epsilon2']:.6g} (response)"
    return [
        ("epsilon", f"{report['epsilon']:g} = {shares}"),
        ("labels", f"{report['labels']}, {report['label_set']}"),
        ("outputs", f"{report['d']}, of {method}, best for the private prior, {report['loss']} loss"),
    ]


def _labels(table: CsvColumn, given: NDArray[Any], labels: str | None, snap: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """The label set, and the labels of the rows. Raises InvalidRequest where a row has none of the set."""
    import numpy as np

    from workbench.mechanisms.label_randomizers.labels import Labels

    known = np.unique(given) if labels is None else Labels.parse(labels).values
    if snap:
        return known, known[np.maximum(np.searchsorted(known, given, side="right") - 1, 0)]
    if labels is not None:
        near = known[np.minimum(np.searchsorted(known, given), known.size - 1)]
        table.refuse(near != given, f"one of the {known.size} labels", "--snap clips and rounds down")
    return known, given


def cautions(table: CsvColumn, protected: str, seed: int | None) -> list[str]:
    """What a release does not protect, and what a seed does to it."""
    copied = [f"{protected}: the other columns are copied as they are."] if table.width > 1 else []
    return copied if seed is None else [*copied, _SEEDED]


def errors_shown(expected: Mapping[str, float]) -> Facts:
    """The expected errors as lines of a report."""
    return [("error", f"{label}: {value:.9g}") for label, value in expected.items()]


def sidecar_of(target: Path, inputs: Mapping[str, Path | str | None], ledger: Path | None = None) -> Path:
    """The report beside an output; every path is checked before any work."""
    sidecar = target.parent / f"{target.name}.json"
    check_outputs(inputs, {"output": target, "report beside the output": sidecar, "ledger": ledger})
    return sidecar


def published(
    account: Account,
    target: Path,
    sidecar: Path,
    table: CsvColumn,
    values: NDArray[Any],
    report: Values,
    lines: Facts,
    own: Values | None = None,
) -> Report:
    """Enter the release into its ledger and write it: both, or neither; what the owner of the data alone is told is no
    part of the report beside it: how many rows somebody has, what that makes of the budget, own. Raises InvalidRequest.
    """
    with contextlib.ExitStack() as undo:
        undo.callback(account.save())
        write_output(sidecar, (json_module.dumps(report, indent=1, allow_nan=False) + "\n").encode())
        undo.callback(sidecar.unlink, missing_ok=True)
        write_output(target, table.replaced(values), private=table.width > 1)
        undo.pop_all()
    if account.ledger is not None and others_can_read(account.ledger):
        err.print(f"Warning: other users can read the ledger {account.ledger.name}.")
    words = [*report["words"], *account.own_words]
    wrote = f"{target} ({report['rows']} rows) and {sidecar.name}"
    shown = [facts([("wrote", wrote), ("budget", account.headline), *lines]), *map(note, words)]
    return Report({**report, **account.own, "file": str(target), "words": words, **(own or {})}, shown)
