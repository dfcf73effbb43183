"""`workbench privatise`: a mechanism run on a column of a CSV file, with exact draws of the system's randomness.

Only the published column is written, and the one named by --id; --copy writes the others as they are. Beside OUT.csv,
OUT.csv.json states budget, mechanism and expected error: nothing in it but the number of rows depends on the data. How
many rows one person has, and the budget that makes, is printed for the owner of the data alone.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, err, make_facts_grid, make_note
from workbench.cli.options import select_given
from workbench.cli.output_paths import Inputs, check_outputs, write_output
from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Record, Values
from workbench.io.files import others_can_read
from workbench.io.shown import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.data.csv_column import CsvColumn, CsvTable
    from workbench.exact.random_source import Source
    from workbench.privacy.column_release import Account, ColumnMechanism
    from workbench.privacy.release_ledger import LedgerTerms
    from workbench.privacy.row_cost import RowCost


_SEEDED = "A seed was given: whoever knows it can undo the noise. Not for a release."


@dataclass(frozen=True)
class Columns:
    """The columns of a file that a command uses. private: those to publish; id, person: None where not asked for."""

    private: list[CsvColumn]
    id: CsvColumn | None
    person: CsvColumn | None

    @property
    def table(self) -> CsvTable:
        """The file."""
        return self.private[0].table


@dataclass(frozen=True)
class Publication:
    """One run of a command: what it reads, where it writes, whose rows are counted, in which account it is entered.

    protected: in words, what is; inputs: the files it reads besides; the rest are options of the command. Every path
    and the seed are checked before any work. Raises InvalidRequest.
    """

    inputs: Inputs
    source: Path
    target: Path
    person: str | None
    ledger: Path | None
    insecure_seed: int | None
    id: str | None
    copy: bool
    overwrite: bool
    header: bool | None
    multiline: bool
    ledger_limit: str | None = None
    local_neighbours: bool = False
    protected: str = "Only this column is protected"

    def __post_init__(self) -> None:
        outputs = {
            "output": self.target,
            "report beside the output": self.sidecar,
            "ledger": self.ledger,
        }
        check_outputs({"input": self.source, **self.inputs}, outputs)
        for name in ("output", "report beside the output"):
            path = outputs[name]
            if path and path.is_file() and not self.overwrite:
                must(name, "a new file, or given with --overwrite", f"{path.name}, which exists")
        self.random_source, self.terms  # noqa: B018 - a wrong seed and a wrong limit are refused

    @cached_property
    def terms(self) -> LedgerTerms:
        """What a new ledger fixes. Raises InvalidRequest."""
        from workbench.exact.numbers import read_positive, read_probability
        from workbench.privacy.release_ledger import LedgerTerms

        if self.ledger_limit is None:
            return LedgerTerms(person=self.person)
        if self.ledger is None:
            must("ledger_limit", "given with a ledger", self.ledger_limit)
        epsilon, _, delta = self.ledger_limit.partition(",")
        limit = (
            read_positive(epsilon, "ledger_limit"),
            read_probability(delta or 0, "delta of the ledger_limit"),
        )
        return LedgerTerms(person=self.person, epsilon=limit[0], delta=limit[1])

    @property
    def sidecar(self) -> Path:
        """The report beside the output."""
        return self.target.parent / f"{self.target.name}.json"

    @cached_property
    def random_source(self) -> Source:
        """Of all randomness."""
        from workbench.exact.random_source import Source

        return Source(self.insecure_seed)

    def read(self, columns: Sequence[str]) -> Columns:
        """The columns to publish, by name or number, and the others that the options name. Raises InvalidRequest."""
        from workbench.data.csv_column import CsvTable

        options = [
            (name, column)
            for name, column in (("id", self.id), ("person", self.person))
            if column is not None
        ]
        names = [*columns, *(column for _, column in options)]
        located = CsvTable.read(self.source, names, header=self.header, multiline=self.multiline)[1]
        private, others = located[: len(columns)], located[len(columns) :]
        positions = {column.position for column in private}
        if len(positions) < len(private):
            must("columns", "two different columns", " and ".join(columns))
        chosen = {option: column for (option, _), column in zip(options, others, strict=True)}
        for option, column in chosen.items():
            if column.position in positions:
                must(option, "another column than the private one", repr(getattr(self, option)))
        return Columns(private, chosen.get("id"), chosen.get("person"))

    def publish(
        self,
        columns: Columns,
        given: NDArray[Any],
        drawn: Sequence[NDArray[Any]],
        cost: RowCost,
        report: Values,
        lines: Facts,
        own: Values | None = None,
    ) -> Report:
        """Enter the release into its ledger, and then write it.

        columns: of which `drawn` replaces the private ones; given: their numbers, of several row by row; cost: of one
        row; report: what is safe to publish, with its first words; own: what the owner of the data alone is told, and
        no part of the report beside the output. Raises InvalidRequest.
        """
        from workbench.data.csv_column import encode_csv_rows
        from workbench.privacy.column_release import Account, count_max_rows_per_person

        if cost.is_local and not self.local_neighbours:
            must(
                "mechanism",
                "private between any two values of the column, or given with --local-neighbours",
                f"{cost.headline}",
            )
        table = columns.table
        most = None if columns.person is None else count_max_rows_per_person(columns.person)
        account = Account.from_row_cost(cost, most, has_ledger=self.ledger is not None)
        kept = (
            [*range(table.width)]
            if self.copy
            else []
            if columns.id is None
            else [columns.id.position]
        )
        others = {*kept} - {column.position for column in columns.private}
        private_names = {column.name.casefold() for column in columns.private}
        same = [
            at
            for at in others
            if table.header and table.rows[0][at].strip().casefold() in private_names
        ]
        if same:
            must(
                "copy",
                f"left out where another column, {same[0] + 1}, has the name of the private one",
                table.file,
            )
        words = [*report["words"], *account.notes]
        if others:
            copied = (
                "the other columns are copied as they are"
                if self.copy
                else f"{self.id} is copied as it is"
            )
            words.append(f"{self.protected}: {copied}.")
        words += [] if self.insecure_seed is None else [_SEEDED]
        rows, error = len(drawn[0]), report["expected_error"]
        safe = {
            "file": self.target.name,
            "rows": rows,
            **report,
            **account.report,
            "person": self.person,
            "words": words,
        }
        content = json_module.dumps(safe, indent=1, allow_nan=False).encode() + b"\n"
        cells = table.replace_columns(
            kept,
            {
                column.position: values
                for column, values in zip(columns.private, drawn, strict=True)
            },
        )
        own_words, own_entries = self._write(
            account, columns, given, content, encode_csv_rows(cells), private=bool(others)
        )
        if not table.header and self.header is None:
            own_words.append(
                f"The first line of {table.file} was taken as data (--header takes it as names)."
            )
        if table.multiline_cell_count:
            own_words.append(
                f"{table.multiline_cell_count} cells hold line breaks: see that none of them holds rows of the table."
            )
        every = [*words, *account.owner_notes, *own_words]
        wrote = f"{self.target} ({rows} rows) and {self.sidecar.name}"
        errors = [("error", f"{label}: {value:.9g}") for label, value in error.items()]
        shown = [("wrote", wrote), ("budget", account.headline), *lines, *errors]
        told = {
            **safe,
            **account.owner_report,
            **own_entries,
            "file": str(self.target),
            "words": every,
            **(own or {}),
        }
        return Report(told, [make_facts_grid(shown), *map(make_note, every)])

    def _write(
        self,
        account: Account,
        columns: Columns,
        given: NDArray[Any],
        report: bytes,
        content: bytes,
        *,
        private: bool,
    ) -> tuple[list[str], Record]:
        """Book the release, then write it. Returns words and entries for the owner of the data.

        The booking is withdrawn only where the output certainly is not there: a device may have got a part of it.
        Raises InvalidRequest.
        """
        booked = None
        if self.ledger is not None:
            name = " and ".join(column.name for column in columns.private)
            booked = account.book(self.ledger, self.terms, name, given, self.target.name)
        is_device = self.target.exists() and not self.target.is_file()
        try:
            write_output(self.sidecar, report)
            try:
                write_output(self.target, content, private=private)
            except BaseException:
                if not self.target.exists():
                    self.sidecar.unlink(missing_ok=True)
                raise
        except InvalidRequest:
            if booked is not None and not is_device:
                booked.withdraw()
            raise
        if booked is None:
            return [], {}
        if self.ledger and others_can_read(self.ledger):
            err.print(f"Warning: other users can read the ledger {self.ledger.name}.")
        return booked.notes, booked.owner_report


def privatise_noise(**given: Any) -> Report:
    """Add noise to a column: modulo n + 1 to integers 0..n, or made for all integers or reals.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.
    """
    return _privatise_column("noise", **given)


def privatise_quantizer(**given: Any) -> Report:
    """Publish every number of a column through a quantizer: a saved one, or the best for a range.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.
    """
    return _privatise_column("quantizer", "range", "levels", "epsilon", **given)


def privatise_channel(**given: Any) -> Report:
    """Publish every number of a column through the best channel of a range: a saved one, or one made for it.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.
    """
    return _privatise_column("channel", "range", "epsilon", **given)


_RUN = (
    "source", "target", "person", "ledger", "ledger_limit", "insecure_seed", "id", "copy", "overwrite", "header",
    "multiline", "local_neighbours",
)  # fmt: skip


def _privatise_column(
    kind: str,
    *needed: str,
    column: str,
    mechanism: Path | None,
    clip: str | None,
    raw: bool,
    **given: Any,
) -> Report:
    """A column through the mechanism of a file, or the best of a family. kind: of both; needed: the options that its
    request must have."""
    run = Publication({"mechanism": mechanism}, **{name: given.pop(name) for name in _RUN})
    seconds = given.pop("time_limit", None)
    subject = _load_or_design(
        kind, mechanism, needed, select_given(given), raw=raw, time_limit=seconds
    )
    return _publish_through(run, kind, column, subject, clip)


def _load_or_design(
    kind: str,
    mechanism: Path | None,
    needed: Sequence[str],
    given: Record,
    *,
    raw: bool,
    time_limit: float | None,
) -> Callable[[], ColumnMechanism]:
    """The mechanism of a file, or the best of a family. time_limit: seconds of its design. Raises InvalidRequest."""
    from workbench.privacy.column_release import column_mechanism_of_design, load_column_mechanism

    if mechanism:
        if given:
            raise InvalidRequest(
                f"{next(iter(given))} must be left out with a mechanism, which says it."
            )
        return partial(load_column_mechanism, mechanism, kind, raw=raw)
    if missing := [name for name in needed if name not in given]:
        *first, last = needed
        raise InvalidRequest(
            f"A mechanism must be given, or {', '.join(first)} and {last}. Got no {missing[0]}."
        )
    from workbench.pipeline.registry import get_family

    best = get_family(kind)
    request = best.make_request_from_options(**given, time_limit=time_limit)
    return lambda: column_mechanism_of_design(best.design_request(request))


def _publish_through(
    run: Publication, kind: str, column: str, read: Callable[[], ColumnMechanism], clip: str | None
) -> Report:
    """A column published through a mechanism."""
    from workbench.privacy.column_release import ColumnRows

    subject = read()
    columns = run.read([column])
    rows = ColumnRows.read(columns.private[0], subject, clip=clip)
    cost = subject.row_cost(rows.domain)
    claim = subject.claim
    report = {
        "column": column,
        "method": kind,
        "mechanism": subject.mechanism.describe(),
        "certified": claim is not None,
        "claim": claim.to_dict() if claim else None,
        "pure_epsilon": subject.pure_epsilon,
        "expected_error": subject.expected_error,
        "clip": clip is not None,
        "words": [*subject.notes, *rows.notes],
    }
    drawn = subject.mechanism.publish(rows.values, insecure_seed=run.insecure_seed)
    lines = (
        [("clipped", f"{rows.clipped_count} of {rows.values.size} rows")]
        if rows.clipped_count and clip
        else []
    )
    return run.publish(
        columns,
        rows.file_values,
        [drawn],
        cost,
        report,
        lines,
        {"clipped_rows": rows.clipped_count},
    )
