"""The command `privatise`, which publishes a column of a CSV file through a mechanism.

    OUT.csv         the published column, the column of --id, and with --copy all others unchanged
    OUT.csv.json    the report: budget, mechanism and expected error; may be published
    screen          also facts for the owner of the data alone, such as the budget of one person

The report depends on the data only by the number of rows, and by totals of published names. The
number of rows of one person is private, so it is only printed. Draws are exact and use the random
numbers of the operating system.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, err, make_facts_grid, make_note, note_booked_release
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
    from workbench.privacy.ledger_request import LedgerRequest
    from workbench.privacy.row_cost import RowCost


# Published columns up to this size are stored in the ledger.
_MAX_STORED_BYTES = 1_000_000
_SEED_NOTE = (
    "A seed was given: anybody who knows it can remove the noise. The output must not be released."
)


@dataclass(frozen=True)
class Columns:
    """The columns of a file that a command uses.

    Attributes:
        private: The columns to publish.
        id: The column of --id, which is copied. None if the option is not given.
        person: The column that identifies the person of a row. None if the option is not given.
        bucket: The public column of --bucket. None if the command has no such option.
    """

    private: list[CsvColumn]
    id: CsvColumn | None
    person: CsvColumn | None
    bucket: CsvColumn | None = None

    @property
    def table(self) -> CsvTable:
        """Return the table of the file."""
        return self.private[0].table


@dataclass(frozen=True)
class Publication:
    """One run of a command that publishes columns.

    All paths and the seed are checked before any work. Raises InvalidRequest.

    Attributes:
        inputs: Further files that are read.
        source: CSV file with the private columns.
        target: CSV file to write.
        person: Column that identifies the person of a row.
        release_ledger: File of the ledger of releases.
        insecure_seed: Seed for reproducible draws.
        id: Column that is copied.
        copy: Whether all other columns are copied.
        overwrite: Whether existing files are replaced.
        header: Whether the first row is a header. None: `CsvTable.read` decides.
        multiline: Whether quoted cells may have line breaks.
        total: ε of the total budget of a new ledger, as text. None if the option is not given.
        total_delta: δ of the total budget, as text. None if the option is not given.
        accounting: Rule of a new ledger, "basic" or "zcdp". None if the option is not given.
        local_neighbours: Whether the mechanism may protect distant values less than neighbours.
        protected: Clause of a note that says which columns are protected.
    """

    inputs: Inputs
    source: Path
    target: Path
    person: str | None
    release_ledger: Path | None
    insecure_seed: int | None
    id: str | None
    copy: bool
    overwrite: bool
    header: bool | None
    multiline: bool
    total: str | None = None
    total_delta: str | None = None
    accounting: str | None = None
    local_neighbours: bool = False
    protected: str = "Only this column is protected"

    def __post_init__(self) -> None:
        outputs = {
            "output": self.target,
            "report beside the output": self.sidecar,
            "ledger": self.release_ledger,
        }
        check_outputs({"input": self.source, **self.inputs}, outputs)
        for name in ("output", "report beside the output"):
            path = outputs[name]
            if path and path.is_file() and not self.overwrite:
                must(name, "a new file, or given with --overwrite", f"{path.name}, which exists")
        if self.insecure_seed is not None and self.release_ledger is not None:
            rule = "left out with a ledger, because draws of a seed must not be published"
            must("insecure_seed", rule, self.insecure_seed)
        # Computing these properties refuses a wrong seed and a wrong ledger before any work.
        self.random_source, self.ledger_request  # noqa: B018

    @cached_property
    def ledger_request(self) -> LedgerRequest | None:
        """Return the ledger and the terms that it must have. None without a ledger.

        The rows of a table are replaced: their number is published. Raises InvalidRequest.
        """
        from workbench.privacy.ledger_request import LedgerRequest

        return LedgerRequest.read(
            self.release_ledger,
            "replace",
            person=self.person,
            accounting=self.accounting,
            total=self.total,
            total_delta=self.total_delta,
        )

    @property
    def sidecar(self) -> Path:
        """Return the path of the report beside the output."""
        return self.target.parent / f"{self.target.name}.json"

    @cached_property
    def random_source(self) -> Source:
        """Return the source of all random numbers."""
        from workbench.exact.random_source import Source

        return Source(self.insecure_seed)

    def check_ledger(self, cost: RowCost) -> None:
        """Check that the release fits into its ledger if no person has more than one row.

        This is done before the file is read. `publish` checks the true budget.

        Args:
            cost: Privacy budget of one row.

        Raises:
            InvalidRequest: Too little is left in the ledger.
        """
        from workbench.privacy.column_release import Account

        if self.ledger_request is not None and not cost.is_local:
            account = Account.from_row_cost(cost, None, has_ledger=True)
            self.ledger_request.check_limit(account.make_entry("", self.target.name))

    def read(self, columns: Sequence[str], bucket: str | None = None) -> Columns:
        """Read the columns to publish, and the columns that the options name.

        Args:
            columns: Names or numbers of the columns to publish.
            bucket: Name or number of the column of --bucket.

        Raises:
            InvalidRequest: A column does not exist, or is named twice.
        """
        from workbench.data.csv_column import CsvTable

        options = {"id": self.id, "person": self.person, "bucket": bucket}
        option_columns = {name: column for name, column in options.items() if column is not None}
        names = [*columns, *option_columns.values()]
        _, located = CsvTable.read(
            self.source,
            names,
            header=self.header,
            multiline=self.multiline,
            # The option that names each column, for errors.
            options=[*["column"] * len(columns), *option_columns],
        )
        private = located[: len(columns)]
        positions = {column.position for column in private}
        if len(positions) < len(private):
            must("columns", "two different columns", " and ".join(columns))
        other_columns = dict(zip(option_columns, located[len(columns) :], strict=True))
        for option, column in other_columns.items():
            if column.position in positions:
                rule = "another column than the private one"
                must(option, rule, repr(option_columns[option]))
        return Columns(
            private,
            id=other_columns.get("id"),
            person=other_columns.get("person"),
            bucket=other_columns.get("bucket"),
        )

    def publish(
        self,
        columns: Columns,
        numbers: NDArray[Any],
        outputs: Sequence[NDArray[Any]],
        cost: RowCost,
        report: Values,
        lines: Facts,
        owner_entries: Values | None = None,
    ) -> Report:
        """Enter a release into its ledger, write its files, and report on it.

        Args:
            columns: The columns of the file.
            numbers: Numbers of the private columns, row by row if there are several columns.
            outputs: New values of each private column. Shape (rows,) each.
            cost: Privacy budget of one row.
            report: Entries of the published report. Its notes are the entry "words".
            lines: Rows (label, text) that are printed for the owner of the data.
            owner_entries: Entries of the JSON output for the owner, which are not published.

        Raises:
            InvalidRequest: The mechanism protects distant values less and this is not allowed, the
                release exceeds the limit of the ledger, or a file cannot be written.
        """
        from workbench.data.csv_column import encode_csv_rows
        from workbench.privacy.column_release import Account, count_max_rows_per_person

        if cost.is_local and not self.local_neighbours:
            rule = "private between any two values of the column, or given with --local-neighbours"
            must("mechanism", rule, f"{cost.headline}")
        if cost.is_local and self.release_ledger is not None:
            rule = "left out for a mechanism that is only private between neighbouring values"
            must(
                "ledger", rule, f"{self.release_ledger.name}, and a mechanism with {cost.headline}"
            )
        table = columns.table
        rows_per_person = None
        if columns.person is not None:
            rows_per_person = count_max_rows_per_person(columns.person)
        account = Account.from_row_cost(
            cost, rows_per_person, has_ledger=self.release_ledger is not None
        )
        written_positions = self._list_written_positions(columns)
        copied_positions = {*written_positions} - {column.position for column in columns.private}
        _check_copied_names(columns, copied_positions)
        notes = [*report["words"], *account.notes]
        if copied_positions:
            text = "the other columns are copied unchanged"
            if not self.copy:
                text = f"{self.id} is copied unchanged"
            notes.append(f"{self.protected}: {text}.")
        if self.insecure_seed is not None:
            notes.append(_SEED_NOTE)
        row_count = len(outputs[0])
        public_entries = {
            "file": self.target.name,
            "rows": row_count,
            **report,
            **account.report,
            "person": self.person,
            "words": notes,
        }
        sidecar = json_module.dumps(public_entries, indent=1, allow_nan=False).encode() + b"\n"
        pairs = zip(columns.private, outputs, strict=True)
        new_values = {column.position: values for column, values in pairs}
        cells = table.replace_columns(written_positions, new_values)
        # The ledger gets the private columns alone, so no other column is copied.
        published_columns = encode_csv_rows(table.replace_columns([], new_values))
        booking_notes, booking_entries = self._book_and_write(
            account,
            columns,
            numbers,
            published_columns,
            report=sidecar,
            content=encode_csv_rows(cells),
            private=bool(copied_positions),
        )
        all_notes = [*notes, *account.owner_notes, *booking_notes, *self._list_table_notes(table)]
        facts = [
            ("wrote", f"{self.target} ({row_count} rows) and {self.sidecar.name}"),
            ("budget", account.headline),
            *lines,
        ]
        for label, value in report["expected_error"].items():
            facts.append(("error", f"{label}: {value:.9g}"))
        values = {
            **public_entries,
            **account.owner_report,
            **booking_entries,
            "file": str(self.target),
            "words": all_notes,
            **(owner_entries or {}),
        }
        return Report(values, [make_facts_grid(facts), *map(make_note, all_notes)])

    def _list_written_positions(self, columns: Columns) -> list[int]:
        """Return the positions of the columns to write besides the private ones.

        With --copy these are all columns, including the private ones.
        """
        if self.copy:
            return [*range(columns.table.width)]
        return [] if columns.id is None else [columns.id.position]

    def _list_table_notes(self, table: CsvTable) -> list[str]:
        """Return notes for the owner on the header and on line breaks of the file."""
        notes = []
        if not table.header and self.header is None:
            notes.append(f"The first line of {table.file} was read as data (--header reads names).")
        if table.multiline_cell_count:
            notes.append(
                f"{table.multiline_cell_count} cells have line breaks. Check that none of them "
                "contains rows of the table."
            )
        return notes

    def _book_and_write(
        self,
        account: Account,
        columns: Columns,
        numbers: NDArray[Any],
        published_columns: bytes,
        *,
        report: bytes,
        content: bytes,
        private: bool,
    ) -> tuple[list[str], Record]:
        """Enter the release into the ledger, then write the report and the output.

        If writing fails, the entry of the ledger is withdrawn, because nothing was published. It
        stays if the output is a device, which may have received a part, or if the new report stays,
        which may have totals of the published column. Raises InvalidRequest.

        Args:
            account: Budget of the release.
            columns: The columns of the file.
            numbers: Numbers of the private columns.
            published_columns: The new private columns as a CSV file, for the ledger.
            report: Content of the file beside the output.
            content: Content of the output.
            private: Whether only the owner may read a new output file.

        Returns:
            Notes and JSON entries about the ledger, for the owner of the data alone.
        """
        from workbench.privacy.release_ledger import describe_booked_release

        booking = None
        notes = []
        if self.ledger_request is not None:
            name = " and ".join(column.name for column in columns.private)
            value = None
            if len(published_columns) <= _MAX_STORED_BYTES:
                value = published_columns
            else:
                notes.append(
                    f"The published column is too large for the ledger ({len(published_columns)} "
                    f"bytes). `publish again` cannot write it again. Keep {self.target.name}."
                )
            booking = account.book(self.ledger_request, name, numbers, self.target.name, value)
            if value is not None:
                path = self.ledger_request.path
                note_booked_release(describe_booked_release(path, booking.number))
        is_partly_published = self.target.exists() and not self.target.is_file()
        try:
            write_output(self.sidecar, report)
            try:
                write_output(self.target, content, private=private)
            except BaseException:
                if self.target.exists():
                    is_partly_published = True
                else:
                    self.sidecar.unlink(missing_ok=True)
                raise
        except InvalidRequest:
            if booking is not None and not is_partly_published:
                booking.withdraw()
                note_booked_release(None)
            raise
        if booking is None:
            return [], {}
        warn_of_readers(booking.ledger.path)
        return [*booking.notes, *notes], booking.owner_report


def warn_of_readers(ledger: Path) -> None:
    """Print a warning on stderr if other users can read a ledger.

    Args:
        ledger: File of the ledger.
    """
    if others_can_read(ledger):
        name = ledger.name
        err.print(f"Warning: other users can read the ledger {name}. Run chmod 600 {name}.")


def _check_copied_names(columns: Columns, positions: set[int]) -> None:
    """Raise InvalidRequest if a copied column has the name of a private column."""
    table = columns.table
    if not table.header:
        return
    private_names = {column.name.casefold() for column in columns.private}
    for position in positions:
        if table.rows[0][position].strip().casefold() in private_names:
            rule = f"left out if column {position + 1} has the name of the private column"
            must("copy", rule, table.file)


def privatise_noise(**options: Any) -> Report:
    """Add noise to a column: noise modulo n + 1 to integers 0..n, other noise to any integers or
    reals.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.

    Args:
        options: Options of the command.
    """
    return privatise_column("noise", **options)


def privatise_quantizer(**options: Any) -> Report:
    """Publish every number of a column through a quantizer: a saved one, or the best for a range.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.

    Args:
        options: Options of the command.
    """
    return privatise_column("quantizer", "range", "levels", "epsilon", **options)


# These options are fields of a Publication.
PUBLICATION_OPTIONS = (
    "source",
    "target",
    "person",
    "release_ledger",
    "total",
    "total_delta",
    "accounting",
    "insecure_seed",
    "id",
    "copy",
    "overwrite",
    "header",
    "multiline",
    "local_neighbours",
)


def privatise_column(
    kind: str,
    *required_names: str,
    column: str,
    mechanism: Path | None,
    clip: str | None,
    raw: bool,
    **options: Any,
) -> Report:
    """Publish a column through the mechanism of a file, or through a new design.

    Args:
        kind: Name of the family.
        *required_names: Options that a design needs if no mechanism is given.
        column: Name or number of the column.
        mechanism: Mechanism file. None: a mechanism is designed.
        clip: Range of --clip as text. None if the option is not given.
        raw: Whether a mechanism without a certificate is accepted.
        **options: Fields of a `Publication`, and options of the design.
    """
    publication_options = {name: options.pop(name) for name in PUBLICATION_OPTIONS}
    run = Publication({"mechanism": mechanism}, **publication_options)
    time_limit = options.pop("time_limit", None)
    load = _load_or_design(
        kind, mechanism, required_names, select_given(options), raw=raw, time_limit=time_limit
    )
    return _publish_through(run, kind, column, load, clip)


def _load_or_design(
    kind: str,
    mechanism: Path | None,
    required_names: Sequence[str],
    options: Record,
    *,
    raw: bool,
    time_limit: float | None,
) -> Callable[[], ColumnMechanism]:
    """Check the options, and return a function that loads or designs the mechanism.

    Raises InvalidRequest. Arguments are those of `privatise_column`.
    """
    from workbench.privacy.column_release import column_mechanism_of_design, load_column_mechanism

    if mechanism:
        if options:
            name = next(iter(options))
            raise InvalidRequest(f"{name} must be left out with a mechanism, which fixes it.")
        return partial(load_column_mechanism, mechanism, kind, raw=raw)
    missing_names = [name for name in required_names if name not in options]
    if missing_names:
        *first_names, last_name = required_names
        names = f"{', '.join(first_names)} and {last_name}"
        raise InvalidRequest(f"A mechanism must be given, or {names}. Got no {missing_names[0]}.")
    from workbench.pipeline.registry import get_family

    family = get_family(kind)
    request = family.make_request_from_options(**options, time_limit=time_limit)
    return lambda: column_mechanism_of_design(family.design_request(request))


def _publish_through(
    run: Publication, kind: str, column: str, load: Callable[[], ColumnMechanism], clip: str | None
) -> Report:
    """Publish a column through the mechanism that `load` returns."""
    from workbench.privacy.column_release import ColumnRows, read_clip_range

    subject = load()
    run.check_ledger(subject.row_cost(read_clip_range(clip, subject.inputs)))
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
    outputs = subject.mechanism.publish(rows.values, insecure_seed=run.insecure_seed)
    lines = []
    if rows.clipped_count and clip:
        lines.append(("clipped", f"{rows.clipped_count} of {rows.values.size} rows"))
    owner_entries = {"clipped_rows": rows.clipped_count}
    return run.publish(
        columns,
        rows.file_values,
        [outputs],
        cost=cost,
        report=report,
        lines=lines,
        owner_entries=owner_entries,
    )
