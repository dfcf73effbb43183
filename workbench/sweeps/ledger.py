"""The ledger: one SQLite file (WAL) that keeps every answer of every sweep, written by one process at a time.

    column    what it holds
    key       sha256 of `request`
    request   canonical JSON: schema, model, parameters, backend, versions, options; what was asked, and of whom
    answer    canonical JSON: status, reason, objective, bound, ...; a failed solve has its status and its reason
    seal      sha256 of request and answer, so that a flipped bit is noticed where SQLite would not
    seconds   how long it took: the one number that differs from run to run, and therefore not part of the content

Rows are immutable: triggers refuse updates and deletes, and pass over a second row of the same key. A batch is one
transaction, so a reader, or a process that comes after a crash, finds a batch whole or not at all. The table `sweeps`
keeps the text of every specification that was run.
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

DEFAULT_LEDGER = Path("results/ledger.sqlite")  # git-ignored
APPLICATION_ID = 0x64707762  # "dpwb", in the file's header
_MAX_PATIENCE_SECONDS = 86_400
# Ends every message about damage.
_RECOVERY_ADVICE = "Restore a copy of the file, or name another --ledger and run the sweep again."

FALSE_NAME_STATUS = (
    "false_name"  # the status of a row that another solver answered than the one it is filed under
)
_SEARCH_METHODS = re.compile(
    r'"method":"(optm|product)"'
)  # in requests whose rows may be under a false name
_DAMAGE_MESSAGES = (
    "Could not decode",
    "no such table",
    "no such column",
)  # so begins what SQLite says of a damaged file
# names of SQLite's errors -> what they mean for the ledger
_SQLITE_EXPLANATIONS = {
    ("SQLITE_BUSY", "SQLITE_LOCKED"): "is locked: another process has been writing for {patience:g} s",
    ("SQLITE_FULL", "SQLITE_IOERR_WRITE"): "cannot grow: the disk is full, or a limit on file sizes is reached",
    ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"):
        "cannot be written: the file or its folder is read-only, or is no folder",
}  # fmt: skip

SCHEMA = 1  # of the file
_TABLES = (
    """create table results (
             number integer primary key, key text not null unique, request text not null, answer text not null,
             seal text not null, seconds real not null) strict""",
    "create table sweeps (key text primary key, text text not null, first_run text not null) strict, without rowid",
    """create trigger results_once before insert on results
             when exists (select 1 from results where key = new.key or number = new.number)
             begin select raise(ignore); end""",
    """create trigger results_kept before delete on results
             begin select raise(abort, 'rows of the ledger are immutable'); end""",
    """create trigger results_unchanged before update on results
             begin select raise(abort, 'rows of the ledger are immutable'); end""",
)


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN or infinity."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def hash_texts(*texts: str) -> str:
    """sha256 of texts, as hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


class LedgerRow(NamedTuple):
    """One answer: key, request and answer as in the file, and the seconds it took."""

    key: str
    request: str
    answer: str
    seconds: float

    @property
    def request_values(self) -> Values:
        """The request as an object."""
        return dict(json.loads(self.request))

    @property
    def answer_values(self) -> Values:
        """The answer as an object; of a row that names another solver than the one that answered, with that status."""
        answer = dict(json.loads(self.answer))
        if _SEARCH_METHODS.search(self.request):
            answer.update(self._find_false_name(self.request_values))
        return answer

    @staticmethod
    def _find_false_name(request: Values) -> Values:
        """The status and failure of a row under a false name; nothing for any other row.

        Until requests had a revision, quantizers of methods optm and product searched with HiGHS whatever was named.
        """
        parameters, named = request.get("parameters", {}), request.get("backend")
        if (
            request.get("model") != "quantizer"
            or named in (None, "highs")
            or "revision" in parameters
        ):
            return {}
        if parameters.get("method") == "product" and parameters.get("levels") is None:
            return {}
        words = (
            f"HiGHS answered, not {named}: do not use this row. A sweep solves the request again."
        )
        return {"status": FALSE_NAME_STATUS, "failure": words}


class Ledger:
    """An open ledger; a context manager.

    Args:
        path: of the file; its folder is made when the ledger is.
        create: make the file when there is none. False: it must exist, and is opened for reading if need be.
        patience: seconds to wait for another process that is writing.

    Raises:
        InvalidRequest: no such file, or what is none.
        WorkbenchError: a folder that cannot be written, a full disk, a locked file, a newer schema.
        CorruptFile: not a ledger, or a damaged one.
    """

    def __init__(
        self, path: Path | str = DEFAULT_LEDGER, *, create: bool = True, patience: float = 10.0
    ) -> None:
        if (
            isinstance(patience, bool)
            or not isinstance(patience, (int, float))
            or not 0 <= patience <= _MAX_PATIENCE_SECONDS
        ):
            must("patience", f"a number of seconds in [0, {_MAX_PATIENCE_SECONDS}]", patience)
        self.path, self.patience = read_file_path(path, "ledger"), float(patience)
        if not isinstance(create, bool):
            must("create", "True or False", create)
        if not create and not self.path.is_file():
            must("ledger", "an existing file", self.path)
        if self.path.exists() and not self.path.is_file():
            must("ledger", "a regular file", self.path)
        if read_would_block(self.path):
            must("ledger", "a file that can be read without waiting", self.path)
        if create:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise WorkbenchError(
                    f"The ledger {self.path} cannot be made: {error.strerror}."
                ) from None
        self._db = self._connect("rwc" if create else "rw")
        try:
            with self._translated_errors():
                self._prepare(create)
        except BaseException:
            self._db.close()
            raise

    def _connect(self, mode: str) -> sqlite3.Connection:
        where = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
        with self._translated_errors():
            return sqlite3.connect(where, uri=True, timeout=self.patience, isolation_level=None)

    def _prepare(self, create: bool) -> None:
        try:
            version = self._read_schema_version()
        except sqlite3.OperationalError:
            if create or self._log_size:
                raise
            # A folder that cannot be written has no place for the shared memory of a WAL; nobody can be writing then.
            self._db.close()
            self._db = self._connect("ro&immutable=1")
            version = self._read_schema_version()
        if version > SCHEMA:
            raise WorkbenchError(
                f"The ledger {self.path} has schema {version}, newer than this version's {SCHEMA}; update."
            )
        self._db.execute("pragma synchronous = full")
        self._db.execute("pragma recursive_triggers = on")
        if not version:
            self._create_tables()

    def _read_schema_version(self) -> int:
        """The schema version; 0 for an empty file. Raises CorruptFile for somebody else's database, and for a ledger
        whose header was changed."""
        with contextlib.nullcontext() if self._db.in_transaction else self._transaction("deferred"):
            # of one moment: another process may be writing the first tables
            version = int(self._fetch_value("pragma user_version"))
            if missing := self._count_missing_bytes():
                raise CorruptFile(
                    f"The ledger {self.path} is damaged: its last {missing} bytes are missing. {_RECOVERY_ADVICE}"
                )
            tables = int(self._fetch_value("select count(*) from sqlite_master"))
            owner = self._fetch_value("pragma application_id")
        if tables and owner != APPLICATION_ID:
            raise CorruptFile(f"{self.path} is a database, but not a ledger of this workbench.")
        if (version < 1) if tables else version:
            raise CorruptFile(
                f"The ledger {self.path} is damaged: its header says schema {version}, its tables do not. {_RECOVERY_ADVICE}"
            )
        return version

    @property
    def _log_size(self) -> int:
        """Bytes of the log beside the file."""
        log = Path(f"{self.path}-wal")
        return log.stat().st_size if log.exists() else 0

    def _count_missing_bytes(self) -> int:
        """Bytes of the last page that the file lacks, which SQLite reads as zeros. Within a transaction: nobody writes
        into the file meanwhile, unless there is a log, which may hold that page."""
        if self._log_size:
            return 0
        return (
            int(self._fetch_value("pragma page_count")) * int(self._fetch_value("pragma page_size"))
            - self.path.stat().st_size
        )

    def _create_tables(self) -> None:
        """The tables of an empty file."""
        mode = self._enable_write_ahead_log()
        if mode != "wal":
            raise WorkbenchError(
                f"The ledger {self.path} cannot use a write-ahead log on this file system ({mode})."
            )
        with self._transaction():
            if not self._read_schema_version():  # another process may have been first
                for statement in (*_TABLES, f"pragma user_version = {SCHEMA}"):
                    self._db.execute(statement)
                self._db.execute(f"pragma application_id = {APPLICATION_ID}")

    def _enable_write_ahead_log(self) -> Any:
        """Turn the log on; SQLite does not wait for others that do so at the same moment."""
        from workbench.solvers.search import Deadline  # which needs NumPy, slow to import

        deadline = Deadline(self.patience)
        while True:
            try:
                return self._fetch_value("pragma journal_mode = wal")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or deadline.has_passed:
                    raise
                time.sleep(0.01)

    def _fetch_value(self, statement: str) -> Any:
        return self._db.execute(statement).fetchone()[0]

    @contextlib.contextmanager
    def _transaction(self, kind: str = "immediate") -> Iterator[None]:
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
        try:
            yield
        except sqlite3.Error as error:
            self._raise_explained(error)
        except UnicodeDecodeError as error:  # in SQLite's own words, which quote the damaged file
            raise CorruptFile(
                f"The ledger {self.path} is damaged ({error.reason}). {_RECOVERY_ADVICE}"
            ) from None

    def _raise_explained(self, error: sqlite3.Error) -> NoReturn:
        """Say what an error of SQLite means for the ledger."""
        name = getattr(error, "sqlite_errorname", None) or ""
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or str(error).startswith(
            _DAMAGE_MESSAGES
        ):
            raise CorruptFile(
                f"The ledger {self.path} is damaged ({error}). {_RECOVERY_ADVICE}"
            ) from None
        meant = (
            words.format(patience=self.patience)
            for names, words in _SQLITE_EXPLANATIONS.items()
            if name.startswith(names)
        )
        what = next(meant, f"cannot be used ({error})")
        raise WorkbenchError(
            f"The ledger {self.path} {what}. What was committed before is kept."
        ) from None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing.

    def add(self, rows: Iterable[LedgerRow]) -> int:
        """Commit rows in one transaction, passing over those whose key is there already; how many were new."""
        sealed = [
            (row.key, row.request, row.answer, hash_texts(row.request, row.answer), row.seconds)
            for row in rows
        ]
        before = self._db.total_changes
        with self._translated_errors(), self._transaction():
            self._db.executemany(
                "insert into results (key, request, answer, seal, seconds) values (?, ?, ?, ?, ?)",
                sealed,
            )
        return self._db.total_changes - before

    def record_specification(self, text: str, first_run: str = "") -> None:
        """Keep the text of a specification, with the time (UTC) of its first run: now, without."""
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
        """Every specification that was run: key (sha256), text, first_run (UTC)."""
        with self._translated_errors():
            rows = self._db.execute(
                "select key, text, first_run from sweeps order by first_run, key"
            ).fetchall()
        return [dict(zip(("key", "text", "first_run"), row, strict=True)) for row in rows]

    def find_known_keys(self, keys: Sequence[str]) -> set[str]:
        """Which of the keys have a row."""
        wanted = "select key from results where key in (select value from json_each(?))"
        with self._translated_errors():
            return {key for (key,) in self._db.execute(wanted, (json.dumps(keys),))}

    def find(self, prefix: str) -> LedgerRow:
        """The one row whose key begins so. Raises InvalidRequest for none or several."""
        if not prefix or not set(prefix) <= set("0123456789abcdef"):
            must("key", "hexadecimal digits, as `workbench results list` shows them", repr(prefix))
        with self._translated_errors():
            row = self._db.execute(
                f"select {_COLUMNS} from results where key >= ? and key < ? limit 2",
                (prefix, prefix + "g"),
            ).fetchall()
        if len(row) != 1:
            must(
                "key",
                "the beginning of one key in the ledger",
                f"{prefix}, which begins {len(row)}",
            )
        return self._check_row(row[0])

    def rows(self) -> Iterator[LedgerRow]:
        """All rows in the order they were written. Raises CorruptFile at the first that cannot be read."""
        with self._translated_errors():
            yield from map(
                self._check_row, self._db.execute(f"select {_COLUMNS} from results order by number")
            )

    def list_row_numbers(self, keys: Collection[str] | None = None) -> list[int]:
        """The numbers of all rows, or of those of some keys, sorted by request."""
        with self._translated_errors():
            named = self._db.execute("select number, key from results order by request")
            return [number for number, key in named if keys is None or key in keys]

    def read_numbered_rows(self, numbers: Iterable[int]) -> Iterator[LedgerRow]:
        """The rows of these numbers, one at a time. Raises CorruptFile at the first that cannot be read."""
        with self._translated_errors():
            yield from map(self._read_numbered_row, numbers)

    def _read_numbered_row(self, number: int) -> LedgerRow:
        cells = self._db.execute(
            f"select {_COLUMNS} from results where number = ?", (number,)
        ).fetchone()
        if cells is None:
            raise CorruptFile(
                f"The ledger {self.path} is damaged: there is no row {number}. {_RECOVERY_ADVICE}"
            )
        return self._check_row(cells)

    def _check_row(self, cells: tuple[Any, ...]) -> LedgerRow:
        row = LedgerRow(cells[0], cells[1], cells[2], cells[4])
        if not all(isinstance(text, str) for text in cells[:4]) or not isinstance(
            row.seconds, float
        ):
            raise CorruptFile(
                f"The ledger {self.path} is damaged: a row holds values of other types. {_RECOVERY_ADVICE}"
            )
        if hash_texts(row.request) != row.key or hash_texts(row.request, row.answer) != cells[3]:
            raise CorruptFile(
                f"The ledger {self.path} is damaged: row {row.key[:12]} is not what was written. {_RECOVERY_ADVICE}"
            )
        return row


_COLUMNS = "key, request, answer, seal, seconds"
