"""Store the answers of all sweeps in one SQLite file, which one process at a time writes.

    column    content
    key       sha256 of `request`
    request   canonical JSON: schema, model, parameters, backend, versions, options
    answer    canonical JSON: status, reason, objective, bound, ...; a failed solve has its reason
    seal      sha256 of request and answer; it reveals a changed bit that SQLite does not notice
    seconds   runtime; it differs from run to run and is therefore not part of the answer

The table `sweeps` stores the text of every specification that was run.

Rows are immutable: triggers refuse updates and deletes, and ignore a second row of the same key.
Rows are added in batches, and a batch is one transaction. After a crash, the file therefore
contains all rows of a batch or none. The file uses a write-ahead log (WAL): SQLite first writes
changes to a second file beside it, so that others can read while one process writes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

from workbench.errors import CorruptFile, WorkbenchError, must
from workbench.exact.objects import Values
from workbench.io.files import read_file_path, read_would_block

DEFAULT_LEDGER = Path("results/ledger.sqlite")  # Git ignores this file.
APPLICATION_ID = 0x64707762  # The header of the file contains this number, "dpwb" in ASCII.
SCHEMA = 1  # The version of the tables, which the header of the file contains too.

# A longer waiting time for another process that writes is refused: one day.
_MAX_PATIENCE_SECONDS = 86_400
_LOCK_RETRY_SECONDS = 0.01  # A statement on a locked file is tried again after this time.
# Every message about damage ends with this sentence.
_RECOVERY_ADVICE = "Restore a copy of the file, or name another --ledger and run the sweep again."
# The status of a row whose request names another solver than the one that was used.
FALSE_NAME_STATUS = "false_name"
# Only rows of requests with these methods can have that status.
_SEARCH_METHODS = re.compile(r'"method":"(optm|product)"')
# The messages of SQLite about a damaged file start with one of these texts.
_DAMAGE_MESSAGES = ("Could not decode", "no such table", "no such column")
# Names of SQLite's errors -> their meaning for the ledger.
_SQLITE_EXPLANATIONS = {
    ("SQLITE_BUSY", "SQLITE_LOCKED"): (
        "is locked: another process has been writing for {patience:g} s"
    ),
    ("SQLITE_FULL", "SQLITE_IOERR_WRITE"): (
        "cannot grow: the disk is full, or a limit on file sizes is reached"
    ),
    ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"): (
        "cannot be written: the file or its folder is read-only, or the folder does not exist"
    ),
}
_COLUMNS = "key, request, answer, seal, seconds"
_TABLES = (
    """create table results (
             number integer primary key, key text not null unique, request text not null,
             answer text not null, seal text not null, seconds real not null) strict""",
    """create table sweeps (
             key text primary key, text text not null, first_run text not null)
             strict, without rowid""",
    """create trigger results_once before insert on results
             when exists (select 1 from results where key = new.key or number = new.number)
             begin select raise(ignore); end""",
    """create trigger results_kept before delete on results
             begin select raise(abort, 'rows of the ledger are immutable'); end""",
    """create trigger results_unchanged before update on results
             begin select raise(abort, 'rows of the ledger are immutable'); end""",
)


def canonical_json(value: Any) -> str:
    """Write a value as its unique JSON text: sorted keys, no spaces, no NaN or infinity."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def hash_texts(*texts: str) -> str:
    """Return the sha256 of texts, joined by line ends, as hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


class LedgerRow(NamedTuple):
    """One answer as it is stored.

    Attributes:
        key: The sha256 of the request.
        request: The request as canonical JSON.
        answer: The answer as canonical JSON.
        seconds: The runtime of the solve in seconds.
    """

    key: str
    request: str
    answer: str
    seconds: float

    @property
    def request_values(self) -> Values:
        """Return the request as a dictionary (the keys are in the module's docstring)."""
        return dict(json.loads(self.request))

    @property
    def answer_values(self) -> Values:
        """Return the answer as a dictionary.

        Its status is FALSE_NAME_STATUS if the request names another solver than the one used.
        """
        answer = dict(json.loads(self.answer))
        if _SEARCH_METHODS.search(self.request):
            answer.update(self._find_false_name(self.request_values))
        return answer

    @staticmethod
    def _find_false_name(request: Values) -> Values:
        """Return {"status": ..., "failure": ...} of a row under a false name, otherwise {}.

        Early versions ignored the solver in the request of a search for quantizers (methods optm
        and product) and used HiGHS. Their requests have no parameter `revision`.
        """
        parameters = request.get("parameters", {})
        solver = request.get("backend")
        is_quantizer = request.get("model") == "quantizer"
        if not is_quantizer or solver in (None, "highs") or "revision" in parameters:
            return {}
        if parameters.get("method") == "product" and parameters.get("levels") is None:
            return {}
        failure = (
            f"HiGHS answered, not {solver}: do not use this row. A sweep solves the request again."
        )
        return {"status": FALSE_NAME_STATUS, "failure": failure}


class Ledger:
    """An open ledger. As a context manager it closes the file at the end.

    Args:
        path: The file. Its folder is created with the ledger.
        create: Whether to create a missing file. If False, the file must exist, and it is opened
            for reading if it cannot be written.
        patience: The seconds to wait for another process that writes.

    Raises:
        InvalidRequest: The file does not exist, or the path is not a regular file.
        WorkbenchError: The folder cannot be written, the disk is full, the file is locked, or the
            schema is newer.
        CorruptFile: The file is damaged or is not a ledger.
    """

    def __init__(
        self, path: Path | str = DEFAULT_LEDGER, *, create: bool = True, patience: float = 10.0
    ) -> None:
        is_number = isinstance(patience, (int, float)) and not isinstance(patience, bool)
        if not is_number or not 0 <= patience <= _MAX_PATIENCE_SECONDS:
            must("patience", f"a number of seconds in [0, {_MAX_PATIENCE_SECONDS}]", patience)
        self.path = read_file_path(path, "ledger")
        self.patience = float(patience)
        if not isinstance(create, bool):
            must("create", "True or False", create)
        if not create and not self.path.is_file():
            must("ledger", "an existing file", self.path)
        if self.path.exists() and not self.path.is_file():
            must("ledger", "a regular file", self.path)
        if read_would_block(self.path):
            must("ledger", "a file that is readable without waiting", self.path)
        if create:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise WorkbenchError(
                    f"The ledger {self.path} cannot be created: {error.strerror}."
                ) from None
        self._db = self._connect("rwc" if create else "rw")
        try:
            with self._translated_errors():
                self._prepare(create)
        except BaseException:
            self._db.close()
            raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        """Open the file in a mode of SQLite's URIs."""
        address = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        with self._translated_errors():
            return sqlite3.connect(address, uri=True, timeout=self.patience, isolation_level=None)

    def _prepare(self, create: bool) -> None:
        """Check the schema, set the options of the connection, and create missing tables."""
        try:
            version = self._read_schema_version()
        except sqlite3.OperationalError:
            if create or self._log_size:
                raise
            # A read-only folder has no place for the shared memory of a WAL. Nobody can be writing
            # to the file then, so it is opened as immutable.
            self._db.close()
            self._db = self._connect("ro&immutable=1")
            version = self._read_schema_version()
        if version > SCHEMA:
            raise WorkbenchError(
                f"The ledger {self.path} has schema {version}, newer than the schema {SCHEMA} of "
                "this version. Update the workbench."
            )
        self._db.execute("pragma synchronous = full")
        self._db.execute("pragma recursive_triggers = on")
        if not version:
            self._create_tables()

    def _read_schema_version(self) -> int:
        """Return the version of the schema, 0 for an empty file.

        Raises CorruptFile if the file is another database or if its header was changed.
        """
        # One transaction reads all values, because another process may be creating the tables.
        is_inside = self._db.in_transaction
        transaction = contextlib.nullcontext() if is_inside else self._transaction("deferred")
        with transaction:
            version = int(self._fetch_value("pragma user_version"))
            missing_bytes = self._count_missing_bytes()
            if missing_bytes:
                raise self._damage_error(f"its last {missing_bytes} bytes are missing")
            has_tables = int(self._fetch_value("select count(*) from sqlite_master")) > 0
            application_id = self._fetch_value("pragma application_id")
        if has_tables and application_id != APPLICATION_ID:
            raise CorruptFile(f"{self.path} is a database, but not a ledger of this workbench.")
        is_expected = (has_tables and version >= 1) or (not has_tables and version == 0)
        if not is_expected:
            raise self._damage_error(
                f"its header has schema {version}, which does not match its tables"
            )
        return version

    def _damage_error(self, reason: str) -> CorruptFile:
        """Make the error for a damaged file."""
        return CorruptFile(f"The ledger {self.path} is damaged: {reason}. {_RECOVERY_ADVICE}")

    @property
    def _log_size(self) -> int:
        """Return the number of bytes of the write-ahead log."""
        log = Path(f"{self.path}-wal")
        return log.stat().st_size if log.exists() else 0

    def _count_missing_bytes(self) -> int:
        """Count the missing bytes of a truncated file, which SQLite would read as zeros.

        Call this within a transaction, so that nobody writes to the file. If there is a write-ahead
        log, it may contain the missing bytes, so the result is 0.
        """
        if self._log_size:
            return 0
        page_count = int(self._fetch_value("pragma page_count"))
        page_size = int(self._fetch_value("pragma page_size"))
        return page_count * page_size - self.path.stat().st_size

    def _create_tables(self) -> None:
        """Create the tables of an empty file."""
        mode = self._enable_write_ahead_log()
        if mode != "wal":
            raise WorkbenchError(
                f"The ledger {self.path} cannot use a write-ahead log on this file system ({mode})."
            )
        with self._transaction():
            # Another process may have created the tables first.
            if self._read_schema_version() == 0:
                for statement in (*_TABLES, f"pragma user_version = {SCHEMA}"):
                    self._db.execute(statement)
                self._db.execute(f"pragma application_id = {APPLICATION_ID}")

    def _enable_write_ahead_log(self) -> Any:
        """Turn the write-ahead log on and return the resulting journal mode, "wal" if it is on.

        SQLite fails at once if another process turns it on at the same moment, so this is retried.
        """
        from workbench.solvers.search import Deadline  # This import needs NumPy, which is slow.

        deadline = Deadline(self.patience)
        while True:
            try:
                return self._fetch_value("pragma journal_mode = wal")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or deadline.has_passed:
                    raise
                time.sleep(_LOCK_RETRY_SECONDS)

    def _fetch_value(self, statement: str) -> Any:
        """Return the first value of the result of a statement."""
        return self._db.execute(statement).fetchone()[0]

    @contextlib.contextmanager
    def _transaction(self, kind: str = "immediate") -> Iterator[None]:
        """Commit at the end, or roll back after an exception."""
        self._db.execute(f"begin {kind}")
        try:
            yield
            self._db.execute("commit")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("rollback")
            raise

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translate errors of SQLite to errors of the workbench."""
        try:
            yield
        except sqlite3.Error as error:
            self._raise_explained(error)
        except UnicodeDecodeError as error:
            # SQLite's own message quotes the damaged text of the file.
            raise CorruptFile(
                f"The ledger {self.path} is damaged ({error.reason}). {_RECOVERY_ADVICE}"
            ) from None

    def _raise_explained(self, error: sqlite3.Error) -> NoReturn:
        """Raise an error that explains an error of SQLite."""
        name = getattr(error, "sqlite_errorname", None) or ""
        is_damaged = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
        if is_damaged or str(error).startswith(_DAMAGE_MESSAGES):
            raise CorruptFile(
                f"The ledger {self.path} is damaged ({error}). {_RECOVERY_ADVICE}"
            ) from None
        explanation = f"cannot be used ({error})"
        for names, text in _SQLITE_EXPLANATIONS.items():
            if name.startswith(names):
                explanation = text.format(patience=self.patience)
                break
        raise WorkbenchError(
            f"The ledger {self.path} {explanation}. Rows that were committed before are kept."
        ) from None

    def close(self) -> None:
        """Close the database of the ledger."""
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing.

    def add(self, rows: Iterable[LedgerRow]) -> int:
        """Commit rows in one transaction and return the number of new rows.

        Args:
            rows: The answers to store. A row whose key is in the ledger already is ignored.
        """
        records = [
            (row.key, row.request, row.answer, hash_texts(row.request, row.answer), row.seconds)
            for row in rows
        ]
        changes_before = self._db.total_changes
        with self._translated_errors(), self._transaction():
            self._db.executemany(
                "insert into results (key, request, answer, seal, seconds) values (?, ?, ?, ?, ?)",
                records,
            )
        return self._db.total_changes - changes_before

    def record_specification(self, text: str, first_run: str = "") -> None:
        """Store the text of a specification.

        Args:
            text: The content of the specification. A text that is stored already is ignored.
            first_run: The time (UTC, ISO 8601) of its first run. Default: now.
        """
        first_run = first_run or datetime.now(UTC).isoformat(timespec="seconds")
        with self._translated_errors(), self._transaction():
            self._db.execute(
                "insert or ignore into sweeps values (?, ?, ?)", (hash_texts(text), text, first_run)
            )

    # Reading.

    def __len__(self) -> int:
        with self._translated_errors():
            return int(self._fetch_value("select count(*) from results"))

    def list_specifications(self) -> list[dict[str, str]]:
        """Return every specification that was run: key (sha256), text, first_run (UTC)."""
        columns = ("key", "text", "first_run")
        with self._translated_errors():
            rows = self._db.execute(
                f"select {', '.join(columns)} from sweeps order by first_run, key"
            ).fetchall()
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def find_known_keys(self, keys: Sequence[str]) -> set[str]:
        """Return the keys that have a row.

        Args:
            keys: The keys to look up.
        """
        statement = "select key from results where key in (select value from json_each(?))"
        with self._translated_errors():
            return {key for (key,) in self._db.execute(statement, (json.dumps(keys),))}

    def find(self, prefix: str) -> LedgerRow:
        """Return the row whose key starts with a prefix.

        Args:
            prefix: Hexadecimal digits.

        Raises:
            InvalidRequest: No key or several keys start with the prefix.
            CorruptFile: The row is damaged.
        """
        if not prefix or not set(prefix) <= set("0123456789abcdef"):
            must("key", "hexadecimal digits, as `workbench results list` shows them", repr(prefix))
        with self._translated_errors():
            # The letter g follows the last hexadecimal digit, so the interval has all keys with the
            # prefix. A second row shows that the prefix is not unique.
            rows = self._db.execute(
                f"select {_COLUMNS} from results where key >= ? and key < ? limit 2",
                (prefix, prefix + "g"),
            ).fetchall()
        if len(rows) != 1:
            count = "no key" if not rows else "several keys"
            must("key", "the beginning of exactly one key in the ledger", f"{prefix} ({count})")
        return self._check_row(rows[0])

    def rows(self) -> Iterator[LedgerRow]:
        """Yield all rows in the order they were written.

        Raises CorruptFile at the first row that cannot be read.
        """
        with self._translated_errors():
            records = self._db.execute(f"select {_COLUMNS} from results order by number")
            yield from map(self._check_row, records)

    def list_row_numbers(self, keys: Collection[str] | None = None) -> list[int]:
        """Return the numbers of rows, sorted by request.

        Args:
            keys: The keys (sha256 of the request) whose rows are listed. None: all rows.

        Returns:
            Numbers for `read_numbered_rows`. A ledger never changes them.
        """
        with self._translated_errors():
            numbered_keys = self._db.execute("select number, key from results order by request")
            return [number for number, key in numbered_keys if keys is None or key in keys]

    def read_numbered_rows(self, numbers: Iterable[int]) -> Iterator[LedgerRow]:
        """Yield the rows of these numbers, one at a time.

        Args:
            numbers: The numbers that `list_row_numbers` returned.

        Raises:
            CorruptFile: A row cannot be read.
        """
        with self._translated_errors():
            yield from map(self._read_numbered_row, numbers)

    def _read_numbered_row(self, number: int) -> LedgerRow:
        """Return the row of a number. Raises CorruptFile."""
        record = self._db.execute(
            f"select {_COLUMNS} from results where number = ?", (number,)
        ).fetchone()
        if record is None:
            raise self._damage_error(f"row {number} is missing")
        return self._check_row(record)

    def _check_row(self, record: tuple[Any, ...]) -> LedgerRow:
        """Convert a record of SQLite to a row and check its hashes. Raises CorruptFile."""
        key, request, answer, seal, seconds = record  # In the order of _COLUMNS.
        has_texts = all(isinstance(text, str) for text in (key, request, answer, seal))
        if not has_texts or not isinstance(seconds, float):
            raise self._damage_error("a row has values of other types")
        row = LedgerRow(key, request, answer, seconds)
        if hash_texts(row.request) != row.key or hash_texts(row.request, row.answer) != seal:
            raise self._damage_error(f"the content of row {row.key[:12]} was changed")
        return row
