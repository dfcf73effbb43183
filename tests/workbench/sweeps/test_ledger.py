"""Test that committed rows of a ledger survive errors of the disk, the folder, locks and the file."""

from __future__ import annotations

import csv
import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
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


def row(k: int, size: int = 10) -> LedgerRow:
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
        0.5,
    )


def rows(*range_: int, size: int = 10) -> list[LedgerRow]:
    return [row(k, size) for k in range(*range_)]


def filled(path: Path, count: int = 400, size: int = 300) -> list[LedgerRow]:
    made = rows(count, size=size)
    with Ledger(path) as book:
        for at in range(0, count, 20):
            book.add(made[at : at + 20])
    return made


def test_rows_come_back_and_the_key_is_the_hash_of_the_request(tmp_path: Path):
    with Ledger(tmp_path / "deep" / "ledger.sqlite") as book:
        assert book.add(rows(5)) == 5
        assert book.add(rows(3, 8)) == 3  # Rows 3 and 4 exist already.
        assert list(book.rows()) == rows(8)
        assert book.find_known_keys([row(2).key, row(99).key]) == {row(2).key}
        assert book.find(row(6).key[:10]) == row(6)
        assert hashlib.sha256(row(6).request.encode()).hexdigest() == row(6).key
    with closing(sqlite3.connect(tmp_path / "deep" / "ledger.sqlite")) as raw:
        assert raw.execute("pragma journal_mode").fetchone() == ("wal",)


def test_one_question_has_one_text():
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
def test_rows_are_immutable_even_for_others(tmp_path: Path, statement: str):
    path = tmp_path / "ledger.sqlite"
    filled(path, 20)
    with (
        closing(sqlite3.connect(path)) as raw,
        pytest.raises(sqlite3.IntegrityError, match="immutable"),
    ):
        raw.execute(statement)


def test_a_replacement_changes_nothing(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    made = filled(path, 20)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(
            "insert or replace into results values (3, ?, 'r', 'a', 's', 0)", (made[5].key,)
        )
        raw.execute("insert or replace into results values (3, 'other', 'r', 'a', 's', 0)")
        raw.commit()
    with Ledger(path) as book:
        assert list(book.rows()) == made


def test_a_batch_is_whole_or_nothing(tmp_path: Path):
    with Ledger(tmp_path / "ledger.sqlite") as book:
        book.add(rows(4))
        broken = [*rows(4, 8), row(8)._replace(answer=None)]  # type: ignore[arg-type]
        with pytest.raises((WorkbenchError, TypeError)):
            book.add(broken)
        assert list(book.rows()) == rows(4)


def test_a_newer_schema_is_refused(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    filled(path, 20)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"pragma user_version = {ledger_module.SCHEMA + 1}")
    with pytest.raises(WorkbenchError, match="newer"):
        Ledger(path)


def test_other_files_are_refused(tmp_path: Path):
    text, other = tmp_path / "text.sqlite", tmp_path / "other.sqlite"
    text.write_text("this is not a database, although it is long enough to be taken for one" * 30)
    with closing(sqlite3.connect(other)) as raw:
        raw.execute("create table t (x)")
        raw.commit()
    with pytest.raises(CorruptFile):
        Ledger(text)
    with pytest.raises(CorruptFile, match="not a ledger"):
        Ledger(other)
    with pytest.raises(InvalidRequest, match="existing"):
        Ledger(tmp_path / "none.sqlite", create=False)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_locked_ledger_is_said_to_be_locked_and_stays_readable(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    made = filled(path, 20)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with Ledger(path, patience=0.1) as book:
            with pytest.raises(WorkbenchError, match="locked: another process"):
                book.add(rows(100, 101))
            assert list(book.rows()) == made
        other.execute("rollback")
    with Ledger(path) as book:
        assert book.add(rows(100, 101)) == 1


def test_a_full_disk_keeps_what_was_committed(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    made = filled(path, 20)
    with Ledger(path) as book:
        pages = book._fetch_value("pragma page_count")
        book._db.execute(f"pragma max_page_count = {pages + 2}")
        with pytest.raises(WorkbenchError, match="disk is full"):
            book.add(rows(100, 2000, size=500))
        assert list(book.rows()) == made
    with Ledger(path) as book:
        assert book.add(rows(100, 200, size=500)) == 100


def test_a_limit_on_file_sizes_ends_the_writer_in_one_line(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    code = f"""
from workbench.sweeps.ledger import Ledger, LedgerRow, canonical_json, hash_texts
from workbench.sweeps.specification import read_spec
from workbench.errors import WorkbenchError
def row(k):
    request = canonical_json({{"k": k}})
    return LedgerRow(hash_texts(request), request, canonical_json({{"v": "x" * 400}}), 0.0)
try:
    with Ledger({str(path)!r}) as book:
        for at in range(0, 100000, 50):
            book.add([row(k) for k in range(at, at + 50)])
            print(at + 50, flush=True)
except WorkbenchError as error:
    print(error)
"""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        preexec_fn=small,
        timeout=300,
        check=False,
    )
    *counts, said = done.stdout.splitlines()
    assert "disk is full" in said, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
    with Ledger(path, create=False) as book:
        assert len(list(book.rows())) == int(counts[-1]) > 100


@pytest.fixture
def nobody():
    """Skip for root, for whom permissions have no effect."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_a_read_only_folder_is_named_and_its_ledger_can_be_read(
    tmp_path: Path, request: pytest.FixtureRequest
):
    folder = tmp_path / "kept"
    made = filled(folder / "ledger.sqlite", 20)
    (folder / "ledger.sqlite").chmod(0o444)
    for parent in (tmp_path, *list(tmp_path.parents)[:3]):
        if parent.stat().st_uid == os.geteuid() and str(parent) != "/tmp":
            parent.chmod(0o755)
    folder.chmod(0o555)
    request.getfixturevalue("nobody")
    with pytest.raises(WorkbenchError, match=r"read-only|cannot be created"):
        Ledger(folder / "new.sqlite")
    with pytest.raises(WorkbenchError, match="read-only"):
        Ledger(folder / "ledger.sqlite").add(rows(100, 101))
    with Ledger(folder / "ledger.sqlite", create=False) as book:
        assert list(book.rows()) == made
        with pytest.raises(WorkbenchError, match="read-only"):
            book.add(rows(100, 101))


def damage(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xa5" * 4096)


def test_a_damaged_page_is_refused(tmp_path: Path):
    whole = tmp_path / "whole.sqlite"
    made = filled(whole)
    content = whole.read_bytes()
    pages = len(content) // 4096
    assert pages > 60
    messages = []
    for page in range(8, pages, 7):
        path = tmp_path / f"{page}.sqlite"
        path.write_bytes(content)
        damage(path, page)
        with Ledger(path, create=False) as book:
            try:
                read = list(book.rows())
            except CorruptFile as error:
                messages.append(str(error))
            else:
                assert read == made  # Pages of the index are not read here.
    assert len(messages) > 5
    assert all(" is damaged" in message and message.endswith(RECOVERY) for message in messages)


def test_the_command_line_refuses_a_damaged_ledger_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, target = tmp_path / "ledger.sqlite", tmp_path / "table.csv"
    filled(path)
    for page in range(20, 30):
        damage(path, page)
    for command in (["list"], ["export", str(target)]):
        with pytest.raises(SystemExit) as stop:
            main(["results", *command, "--ledger", str(path)])
        message = capsys.readouterr().err
        assert (stop.value.code, message.count("\n")) == (2, 1)
        assert "damaged" in message
        assert message.endswith(f"{RECOVERY}\n")
    assert not target.exists()


def test_a_flipped_bit_that_sqlite_does_not_see_is_noticed(tmp_path: Path):
    path = tmp_path / "ledger.sqlite"
    filled(path, 40)
    content = path.read_bytes()
    assert content.count(b"optimal") == 40
    at = content.index(b"optimal")
    path.write_bytes(content[:at] + b"0ptimal" + content[at + 7 :])
    with (
        Ledger(path, create=False) as book,
        pytest.raises(CorruptFile, match="was changed"),
    ):
        list(book.rows())


@pytest.mark.parametrize("missing", [1, 100, 4096])
def test_a_ledger_without_its_last_bytes_is_not_gone_on_with(tmp_path: Path, missing: int):
    path = tmp_path / "ledger.sqlite"
    filled(path, 40)
    content = path.read_bytes()
    path.write_bytes(content[:-missing])
    for use in (
        lambda: wb.sweep(
            {"grid": {"model": "modulo", "n": 4, "max_shift": 1, "epsilon": 1}}, path, jobs=1
        ),
        lambda: Ledger(path, create=False),
    ):
        with pytest.raises(CorruptFile, match=r"is damaged.*run the sweep again"):
            use()
    assert path.read_bytes() == content[:-missing]


def test_a_log_may_hold_what_the_file_lacks(tmp_path: Path):
    """A process that is killed before its log was written back loses nothing."""
    path, copy = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"
    made = filled(path, 40)
    with Ledger(path) as book:
        book.add(rows(40, 80, size=300))
        for ending in ("", "-wal"):
            Path(f"{copy}{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
    with Ledger(copy, create=False) as book:
        assert list(book.rows()) == [*made, *rows(40, 80, size=300)]


@pytest.mark.timeout(600)
def test_an_export_needs_no_memory_for_its_rows(tmp_path: Path):
    """Twenty thousand rows of 5 kB take less space than their texts."""
    path, target = tmp_path / "ledger.sqlite", tmp_path / "table.csv"
    with Ledger(path) as book:
        for at in range(0, 20_000, 1000):
            book.add(rows(at, at + 1000, size=5000))
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
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert target.stat().st_size > 100_000_000
    assert int(done.stdout) < 20_000_000
    with target.open(newline="") as file:
        assert [line["k"] for line in csv.DictReader(file)] == sorted(
            map(str, range(20_000)), key=lambda k: f"{k}}}"
        )


def test_rows_speak_json(tmp_path: Path):
    assert row(3).request_values["parameters"] == {"k": 3}
    assert json.loads(row(3).answer) == row(3).answer_values


@pytest.mark.parametrize("version", [0, -1, -(2**31)])
def test_a_changed_schema_number_is_said_to_be_damage(tmp_path: Path, version: int):
    path = tmp_path / "ledger.sqlite"
    filled(path, 5)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(f"pragma user_version = {version}")
    with pytest.raises(
        CorruptFile,
        match=rf"damaged: its header has schema {version}, which does not match its tables\.",
    ):
        Ledger(path)


def test_flipped_bytes_are_never_somebody_elses_error(tmp_path: Path):
    """Change single bytes of a small ledger: in the rows, the index, and the text of the schema."""
    whole = tmp_path / "whole.sqlite"
    filled(whole, 8)
    content, rng = whole.read_bytes(), random.Random(14)
    refused = 0
    for k in range(250):
        path, damaged = tmp_path / f"{k}.sqlite", bytearray(content)
        for _ in range(rng.choice((1, 1, 3, 20))):
            damaged[rng.choice((rng.randrange(100), rng.randrange(len(content))))] = rng.choice(
                (0, 255, rng.randrange(256))
            )
        path.write_bytes(damaged)
        for use in (
            lambda book: list(book.rows()),
            Ledger.list_specifications,
            len,
            lambda book: book.find("0"),
        ):
            try:
                with Ledger(path, create=False) as book:
                    use(book)
            except WorkbenchError:
                refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "patience", [float("nan"), float("inf"), -1, True, "1", None, [1], 10**400]
)
def test_patience_is_a_number_of_seconds(tmp_path: Path, patience: Any):
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
            context.Process(target=_opened, args=(tmp_path / f"{attempt}.sqlite", start, errors))
            for _ in range(4)
        ]
        for process in processes:
            process.start()
        assert [errors.get(timeout=300) for _ in processes] == [""] * 4
        for process in processes:
            process.join()


def _opened(path: Path, start: Any, errors: Any) -> None:
    start.wait()
    try:
        with Ledger(path):
            errors.put("")
    except WorkbenchError as error:
        errors.put(str(error))


def test_rows_under_the_name_of_a_solver_that_did_not_answer_are_not_believed(
    tmp_path: Path,
) -> None:
    def row(backend: str, **parameters: object) -> LedgerRow:
        request = {"model": "quantizer", "backend": backend, "parameters": parameters, "options": {},
                   "versions": {"workbench": "0.1.0"}}  # fmt: skip
        text = canonical_json(request)
        return LedgerRow(
            hash_texts(text), text, canonical_json({"status": "optimal", "objective": 2.0}), 0.1
        )

    false = [row("gurobi", method="optm"), row("cvxpy:scs", method="product", levels=4)]
    true = [
        row("highs", method="optm"),
        row("gurobi", method="exact"),
        row("gurobi", method="optm", revision=2),
    ]
    with Ledger(tmp_path / "ledger.sqlite") as book:
        book.add([*false, *true])
        for stored in book.rows():
            status = stored.answer_values["status"]
            assert status == ("false_name" if stored in false else "optimal")
        lines = {line["key"]: line for line in flatten_ledger(book)}
        assert lines[false[0].key]["failure"].startswith("HiGHS answered, not gurobi")
        assert lines[true[0].key]["failure"] is None


def test_a_request_of_optm_to_another_solver_has_a_key_of_its_own() -> None:
    grid = {"model": "quantizer", "bins": "-3,-0.5,0.5,3", "epsilon": 1, "method": "optm"}
    for solver, revised in (("highs", False), ("ortools:glop", True)):
        spec = read_spec({"grid": {**grid, "solver": solver}})
        assert ("revision" in spec.chunks[0].requests[0]) == revised


def test_any_limit_of_a_listing_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Ledger(tmp_path / "ledger.sqlite"):
        pass
    with pytest.raises(SystemExit) as stop:
        main(["results", "list", "--ledger", str(tmp_path / "ledger.sqlite"), "--limit", "9" * 22])
    assert not stop.value.code
    assert "0 of 0 matching rows" in capsys.readouterr().out
