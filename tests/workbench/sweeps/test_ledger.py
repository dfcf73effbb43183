"""Test that committed rows of a ledger survive errors of the disk, the folder, locks and the file."""

from __future__ import annotations

import csv
import hashlib
import json
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import CorruptFile, InvalidRequest, WorkbenchError
from workbench.sweeps import ledger as ledger_module
from workbench.sweeps.export import flatten_ledger
from workbench.sweeps.ledger import Ledger, LedgerRow, canonical_json, hash_texts
from workbench.sweeps.specification import read_spec

RECOVERY = "Restore a copy of the file, or name another --ledger and run the sweep again."


def make_row(k: int, size: int = 10) -> LedgerRow:
    """Return the row of request number k, with an answer of about `size` characters."""
    shape = {
        "model": "m",
        "backend": None,
        "parameters": {"k": k},
        "options": {},
        "versions": {"workbench": "0"},
    }
    request = canonical_json(shape)
    return LedgerRow(
        hash_texts(request),
        request,
        canonical_json({"status": "optimal", "value": "x" * size}),
        seconds=0.5,
    )


def make_rows(*range_: int, size: int = 10) -> list[LedgerRow]:
    """Return the rows of the requests in range(*range_)."""
    return [make_row(k, size) for k in range(*range_)]


def make_ledger(path: Path, count: int = 400, size: int = 300) -> list[LedgerRow]:
    """Write a ledger with rows 0..count - 1, twenty in a transaction, and return the rows."""
    stored_rows = make_rows(count, size=size)
    with Ledger(path) as ledger:
        for first in range(0, count, 20):
            ledger.add(stored_rows[first : first + 20])
    return stored_rows


def test_a_ledger_returns_each_added_row_once(tmp_path: Path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.add(make_rows(5)) == 5
        assert ledger.add(make_rows(3, 8)) == 3  # Rows 3 and 4 exist already.
        assert list(ledger.rows()) == make_rows(8)


def test_a_ledger_finds_rows_by_key_and_by_the_beginning_of_a_key(tmp_path: Path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.add(make_rows(8))
        assert ledger.find_known_keys([make_row(2).key, make_row(99).key]) == {make_row(2).key}
        assert ledger.find(make_row(6).key[:10]) == make_row(6)


def test_the_key_of_a_row_is_the_sha256_of_its_request():
    row = make_row(6)
    assert row.key == hashlib.sha256(row.request.encode()).hexdigest()


def test_a_new_ledger_in_a_new_folder_has_a_write_ahead_log(tmp_path: Path):
    path = tmp_path / "new" / "ledger.sqlite"
    with Ledger(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)


def test_canonical_json_sorts_keys_and_refuses_nan():
    assert canonical_json({"b": 1, "a": [None, True, "ε"]}) == '{"a":[null,true,"ε"],"b":1}'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_json({"a": float("nan")})


@pytest.mark.parametrize(
    "statement",
    [
        "update results set answer = 'x'",
        "delete from results",
        "update results set seconds = 0 where number = 1",
    ],
)
def test_rows_cannot_be_changed_by_another_program(tmp_path: Path, statement: str):
    path = tmp_path / "ledger.sqlite"
    make_ledger(path, 20)
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="immutable"),
    ):
        connection.execute(statement)


def test_insert_or_replace_changes_no_row(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    stored_rows = make_ledger(path, 20)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "insert or replace into results values (3, ?, 'r', 'a', 's', 0)", (stored_rows[5].key,)
        )
        connection.execute("insert or replace into results values (3, 'other', 'r', 'a', 's', 0)")
        connection.commit()
    with Ledger(path) as ledger:
        assert list(ledger.rows()) == stored_rows


def test_a_batch_with_a_bad_row_adds_no_row(tmp_path: Path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.add(make_rows(4))
        broken = [*make_rows(4, 8), make_row(8)._replace(answer=None)]  # type: ignore[arg-type]
        with pytest.raises((WorkbenchError, TypeError)):
            ledger.add(broken)
        assert list(ledger.rows()) == make_rows(4)


def test_a_newer_schema_is_refused(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    make_ledger(path, 20)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma user_version = {ledger_module.SCHEMA + 1}")
    with pytest.raises(WorkbenchError, match="newer"):
        Ledger(path)


def test_other_files_are_refused(tmp_path: Path):
    text = tmp_path / "text.sqlite"
    other = tmp_path / "other.sqlite"
    text.write_text("this is not a database, although it is long enough to be taken for one" * 30)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("create table t (x)")
        connection.commit()
    with pytest.raises(CorruptFile):
        Ledger(text)
    with pytest.raises(CorruptFile, match="not a ledger"):
        Ledger(other)
    with pytest.raises(InvalidRequest, match="existing"):
        Ledger(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_locked_ledger_refuses_new_rows_and_stays_readable(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    stored_rows = make_ledger(path, 20)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with Ledger(path, patience=0.1) as ledger:
            with pytest.raises(WorkbenchError, match="locked: another process"):
                ledger.add(make_rows(100, 101))
            assert list(ledger.rows()) == stored_rows
        other.execute("rollback")
    with Ledger(path) as ledger:
        assert ledger.add(make_rows(100, 101)) == 1


def test_a_full_disk_keeps_the_committed_rows(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    stored_rows = make_ledger(path, 20)
    with Ledger(path) as ledger:
        pages = ledger._fetch_value("pragma page_count")
        ledger._db.execute(f"pragma max_page_count = {pages + 2}")
        with pytest.raises(WorkbenchError, match="disk is full"):
            ledger.add(make_rows(100, 2000, size=500))
        assert list(ledger.rows()) == stored_rows
    with Ledger(path) as ledger:
        assert ledger.add(make_rows(100, 200, size=500)) == 100


# Adds batches of 50 rows to a ledger until an error of the workbench, and prints the number of rows
# after each batch and then the error. Its own files may have 600 kB.
PROGRAM_WITH_LITTLE_SPACE = """
import resource, signal, sys
from workbench.errors import WorkbenchError
from workbench.sweeps.ledger import Ledger, LedgerRow, canonical_json, hash_texts

resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def make_row(k):
    request = canonical_json({"k": k})
    return LedgerRow(hash_texts(request), request, canonical_json({"v": "x" * 400}), 0.0)

try:
    with Ledger(sys.argv[1]) as ledger:
        for first in range(0, 100000, 50):
            ledger.add([make_row(k) for k in range(first, first + 50)])
            print(first + 50, flush=True)
except WorkbenchError as error:
    print(error)
"""


def test_a_limit_on_file_sizes_ends_the_writer_with_one_message(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM_WITH_LITTLE_SPACE, str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    *row_counts, message = completed.stdout.splitlines()
    assert "disk is full" in message, completed.stdout + completed.stderr
    assert completed.returncode == 0, completed.stderr
    with Ledger(path, create=False) as ledger:
        assert len(list(ledger.rows())) == int(row_counts[-1]) > 100


# Tries to write to a folder and to a ledger in it, prints the errors, and then the keys of the
# rows that it can read. Permissions have no effect for root, so it first becomes another user.
PROGRAM_WITHOUT_PERMISSIONS = """
import os, sys
from pathlib import Path
from workbench.errors import WorkbenchError
from workbench.sweeps.ledger import Ledger, LedgerRow

if not os.geteuid():
    os.setuid(65534)
folder = Path(sys.argv[1])
new_row = LedgerRow("key", "{}", "{}", 0.5)
for write in (
    lambda: Ledger(folder / "new.sqlite"),
    lambda: Ledger(folder / "ledger.sqlite").add([new_row]),
    lambda: Ledger(folder / "ledger.sqlite", create=False).add([new_row]),
):
    try:
        write()
    except WorkbenchError as error:
        print(error)
with Ledger(folder / "ledger.sqlite", create=False) as ledger:
    print(*(row.key for row in ledger.rows()))
"""


def test_a_read_only_folder_is_named_and_its_ledger_can_be_read(tmp_path: Path):
    folder = tmp_path / "kept"
    stored_rows = make_ledger(folder / "ledger.sqlite", 20)
    (folder / "ledger.sqlite").chmod(0o444)
    for parent in (tmp_path, *list(tmp_path.parents)[:3]):
        if parent.stat().st_uid == os.geteuid() and str(parent) != "/tmp":
            parent.chmod(0o755)
    folder.chmod(0o555)
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM_WITHOUT_PERMISSIONS, str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    create_error, *add_errors, keys = completed.stdout.splitlines()
    assert "read-only" in create_error or "cannot be created" in create_error
    assert len(add_errors) == 2
    assert all("read-only" in error for error in add_errors)
    assert keys.split() == [row.key for row in stored_rows]


def damage_page(path: Path, page: int) -> None:
    """Overwrite a page of an SQLite file, which has 4096 bytes."""
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xa5" * 4096)


def test_a_damaged_page_is_refused(tmp_path: Path):
    whole = tmp_path / "whole.sqlite"
    stored_rows = make_ledger(whole)
    content = whole.read_bytes()
    pages = len(content) // 4096
    assert pages > 60
    messages = []
    for page in range(8, pages, 7):
        path = tmp_path / f"{page}.sqlite"
        path.write_bytes(content)
        damage_page(path, page)
        with Ledger(path, create=False) as ledger:
            try:
                read = list(ledger.rows())
            except CorruptFile as error:
                messages.append(str(error))
            else:
                assert read == stored_rows  # Pages of the index are not read here.
    assert len(messages) > 5
    assert all(" is damaged" in message and message.endswith(RECOVERY) for message in messages)


def test_commands_refuse_a_damaged_ledger_and_name_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "ledger.sqlite"
    target = tmp_path / "table.csv"
    make_ledger(path)
    for page in range(20, 30):
        damage_page(path, page)
    for command in (["list"], ["export", str(target)]):
        with pytest.raises(SystemExit) as stop:
            main(["results", *command, "--ledger", str(path)])
        message = capsys.readouterr().err
        assert stop.value.code == 2
        assert message.count("\n") == 1
        assert "damaged" in message
        assert message.endswith(f"{RECOVERY}\n")
    assert not target.exists()


def test_a_changed_answer_that_sqlite_accepts_is_refused(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    make_ledger(path, 40)
    content = path.read_bytes()
    assert content.count(b"optimal") == 40
    position = content.index(b"optimal")
    path.write_bytes(content[:position] + b"0ptimal" + content[position + 7 :])
    with (
        Ledger(path, create=False) as ledger,
        pytest.raises(CorruptFile, match="was changed"),
    ):
        list(ledger.rows())


@pytest.mark.parametrize("missing", [1, 100, 4096])
def test_a_ledger_without_its_last_bytes_is_refused(tmp_path: Path, missing: int):
    path = tmp_path / "ledger.sqlite"
    make_ledger(path, 40)
    content = path.read_bytes()
    path.write_bytes(content[:-missing])
    for action in (
        lambda: wb.sweep(
            {"grid": {"model": "modulo", "n": 4, "max_shift": 1, "epsilon": 1}}, path, jobs=1
        ),
        lambda: Ledger(path, create=False),
    ):
        with pytest.raises(CorruptFile, match=r"is damaged.*run the sweep again"):
            action()
    assert path.read_bytes() == content[:-missing]


def test_rows_that_are_only_in_the_log_are_read(tmp_path: Path):
    """A process may be killed before SQLite has copied its log (-wal) to the file."""
    path = tmp_path / "ledger.sqlite"
    copy = tmp_path / "copy.sqlite"
    stored_rows = make_ledger(path, 40)
    with Ledger(path) as ledger:
        ledger.add(make_rows(40, 80, size=300))
        for ending in ("", "-wal"):
            Path(f"{copy}{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
    with Ledger(copy, create=False) as ledger:
        assert list(ledger.rows()) == [*stored_rows, *make_rows(40, 80, size=300)]


@pytest.mark.timeout(600)
def test_an_export_does_not_keep_all_rows_in_memory(tmp_path: Path):
    """Exporting 100 MB needs less than 20 MB."""
    path = tmp_path / "ledger.sqlite"
    target = tmp_path / "table.csv"
    with Ledger(path) as ledger:
        for at in range(0, 20_000, 1000):
            ledger.add(make_rows(at, at + 1000, size=5000))
    code = """
import sys, tracemalloc
from pathlib import Path
from workbench.sweeps.export import export_ledger
from workbench.sweeps.ledger import Ledger
tracemalloc.start()
with Ledger(sys.argv[1]) as book:
    export_ledger(book, Path(sys.argv[2]))
print(tracemalloc.get_traced_memory()[1])
"""
    completed = subprocess.run(
        [sys.executable, "-c", code, str(path), str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert target.stat().st_size > 100_000_000
    assert int(completed.stdout) < 20_000_000
    with target.open(newline="") as file:
        assert [line["k"] for line in csv.DictReader(file)] == sorted(
            map(str, range(20_000)), key=lambda k: f"{k}}}"
        )


def test_a_row_returns_its_request_and_answer_as_values(tmp_path: Path):
    assert make_row(3).request_values["parameters"] == {"k": 3}
    assert json.loads(make_row(3).answer) == make_row(3).answer_values


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
def test_a_wrong_schema_number_is_reported_as_damage(tmp_path: Path, version: int):
    path = tmp_path / "ledger.sqlite"
    make_ledger(path, 5)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma user_version = {version}")
    with pytest.raises(
        CorruptFile,
        match=rf"damaged: its header has schema {version}, which does not match its tables\.",
    ):
        Ledger(path)


def test_changed_bytes_cause_no_error_of_another_library(tmp_path: Path):
    """Change single bytes of a small ledger: in the rows, the index, and the text of the schema."""
    whole = tmp_path / "whole.sqlite"
    make_ledger(whole, 8)
    content = whole.read_bytes()
    generator = random.Random(14)
    refused_count = 0
    for k in range(250):
        path = tmp_path / f"{k}.sqlite"
        damaged = bytearray(content)
        for _ in range(generator.choice((1, 1, 3, 20))):
            # The header is in the first 100 bytes, so half of the changes are there.
            in_header = generator.randrange(100)
            anywhere = generator.randrange(len(content))
            new_byte = generator.choice((0, 255, generator.randrange(256)))
            damaged[generator.choice((in_header, anywhere))] = new_byte
        path.write_bytes(damaged)
        for action in (
            lambda ledger: list(ledger.rows()),
            Ledger.list_specifications,
            len,
            lambda ledger: ledger.find("0"),
        ):
            try:
                with Ledger(path, create=False) as ledger:
                    action(ledger)
            except WorkbenchError:
                refused_count += 1
    assert refused_count > 100


@pytest.mark.parametrize(
    "patience", [float("nan"), float("inf"), -1, True, "1", None, [1], 10**400]
)
def test_patience_must_be_a_number_of_seconds(tmp_path: Path, patience: Any):
    with pytest.raises(
        InvalidRequest, match=r"^patience must be a number of seconds in \[0, 86400\]\. Got "
    ):
        Ledger(tmp_path / "ledger.sqlite", patience=patience)
    assert not [*tmp_path.iterdir()]


def test_a_ledger_that_another_process_is_creating_is_not_damaged(tmp_path: Path):
    """Several processes open a new ledger at the same time and read a complete header."""
    context = multiprocessing.get_context("fork")
    for attempt in range(12):
        start, errors = context.Barrier(4), context.Queue()
        processes = [
            context.Process(
                target=_open_and_report, args=(tmp_path / f"{attempt}.sqlite", start, errors)
            )
            for _ in range(4)
        ]
        for process in processes:
            process.start()
        assert [errors.get(timeout=300) for _ in processes] == [""] * 4
        for process in processes:
            process.join()


def _open_and_report(path: Path, start: Any, errors: Any) -> None:
    """Open a ledger when all processes are ready, and send the error or "" to the queue."""
    start.wait()
    try:
        with Ledger(path):
            errors.put("")
    except WorkbenchError as error:
        errors.put(str(error))


def test_rows_that_name_a_solver_which_did_not_answer_get_the_status_false_name(
    tmp_path: Path,
) -> None:
    def make_quantizer_row(backend: str, **parameters: object) -> LedgerRow:
        """Return an optimal row of a quantizer that names a solver as its backend."""
        request = {"model": "quantizer", "backend": backend, "parameters": parameters, "options": {},
                   "versions": {"workbench": "0.1.0"}}  # fmt: skip
        text = canonical_json(request)
        return LedgerRow(
            hash_texts(text),
            text,
            canonical_json({"status": "optimal", "objective": 2.0}),
            seconds=0.1,
        )

    false_rows = [
        make_quantizer_row("gurobi", method="optm"),
        make_quantizer_row("cvxpy:scs", method="product", levels=4),
    ]
    true_rows = [
        make_quantizer_row("highs", method="optm"),
        make_quantizer_row("gurobi", method="exact"),
        make_quantizer_row("gurobi", method="optm", revision=2),
    ]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.add([*false_rows, *true_rows])
        for stored in ledger.rows():
            status = stored.answer_values["status"]
            assert status == ("false_name" if stored in false_rows else "optimal")
        lines = {line["key"]: line for line in flatten_ledger(ledger)}
        assert lines[false_rows[0].key]["failure"].startswith("HiGHS answered, not gurobi")
        assert lines[true_rows[0].key]["failure"] is None


def test_a_request_with_the_method_optm_and_another_solver_has_a_new_key() -> None:
    grid = {"model": "quantizer", "bins": "-3,-0.5,0.5,3", "epsilon": 1, "method": "optm"}
    for solver, revised in (("highs", False), ("ortools:glop", True)):
        spec = read_spec({"grid": {**grid, "solver": solver}})
        assert ("revision" in spec.chunks[0].requests[0]) == revised


def test_list_accepts_a_limit_larger_than_64_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Ledger(tmp_path / "ledger.sqlite"):
        pass
    with pytest.raises(SystemExit) as stop:
        main(["results", "list", "--ledger", str(tmp_path / "ledger.sqlite"), "--limit", "9" * 22])
    assert not stop.value.code
    assert "0 of 0 matching rows" in capsys.readouterr().out
