"""Test merging ledgers of two machines: every row once, conflicts reported, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.errors import CorruptFile, InvalidRequest
from workbench.sweeps.ledger import Ledger, LedgerRow, canonical_json, hash_texts
from workbench.sweeps.merge import merge_ledgers


def _row(k: int, objective: str = "1") -> LedgerRow:
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
        canonical_json({"status": "optimal", "objective": objective}),
        0.5,
    )


def _ledger(path: Path, rows: list[LedgerRow], specification: str = "") -> Path:
    with Ledger(path) as book:
        book.add(rows)
        if specification:
            book.record_specification(specification, "2026-01-02T03:04:05+00:00")
    return path


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


def test_every_row_is_there_once_with_the_specifications(tmp_path: Path) -> None:
    a = _ledger(tmp_path / "a.sqlite", [_row(k) for k in range(1200)], "a")
    b = _ledger(tmp_path / "b.sqlite", [_row(k) for k in range(1100, 1700)], "b")
    before = a.read_bytes(), b.read_bytes()
    told: list[int] = []
    merged = merge_ledgers([a, b], tmp_path / "c.sqlite", told.append)
    assert merged == (1700, 100, [])
    assert told[-1] == 1800
    with Ledger(tmp_path / "c.sqlite", create=False) as book:
        assert list(book.rows()) == [_row(k) for k in range(1700)]
        assert sorted((s["text"], s["first_run"][:10]) for s in book.list_specifications()) == [
            ("a", "2026-01-02"),
            ("b", "2026-01-02"),
        ]
    assert merge_ledgers([a, b], tmp_path / "c.sqlite") == (
        0,
        1800,
        [],
    )  # The second merge finds nothing new.
    assert (a.read_bytes(), b.read_bytes()) == before


def test_another_answer_to_the_same_request_is_said_and_not_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = _ledger(tmp_path / "a.sqlite", [_row(1), _row(2)])
    b = _ledger(tmp_path / "b.sqlite", [_row(2, "3"), _row(4)])
    into = tmp_path / "c.sqlite"
    assert _run("results", "merge", str(a), str(b), "--ledger", str(into), "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["new"], said["equal"]) == (3, 0)
    assert said["different"] == [{"key": _row(2).key, "ledger": str(b)}]
    with Ledger(into, create=False) as book:
        assert book.find(_row(2).key) == _row(2)
    assert _run("results", "merge", str(b), "--ledger", str(into)) == 1
    assert f"{_row(2).key[:12]}: {b} has another answer, which was not taken." in " ".join(
        capsys.readouterr().out.split()
    )


def test_what_is_no_ledger_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = _ledger(tmp_path / "a.sqlite", [_row(1)])
    (tmp_path / "text.sqlite").write_text("no database, of some length" * 100)
    for other, error in (
        (tmp_path / "none.sqlite", InvalidRequest),
        (tmp_path / "text.sqlite", CorruptFile),
    ):
        with pytest.raises(error):
            merge_ledgers([a, other], tmp_path / "c.sqlite")
        assert not (tmp_path / "c.sqlite").exists()
    assert _run("results", "merge", str(a), "--ledger", str(a)) == 2
    assert "Got" in capsys.readouterr().err


def test_answers_that_differ_in_how_they_were_found_are_equal(tmp_path: Path) -> None:
    def answered(**more: object) -> LedgerRow:
        answer = {"status": "optimal", "objective": 0.1 + 0.2, "private": True, **more}
        return _row(1)._replace(answer=canonical_json(answer))

    a = _ledger(
        tmp_path / "a.sqlite", [answered(start="hot", recheck="a cold start agrees", residual=0.0)]
    )
    b = _ledger(tmp_path / "b.sqlite", [answered(start="cold", objective=0.3, residual=1e-16)])
    assert merge_ledgers([a, b], tmp_path / "c.sqlite") == (1, 1, [])
    for k, other in enumerate(
        ({"objective": 0.31}, {"private": False}, {"status": "not_proven"}, {"bound": 1.0})
    ):
        c = _ledger(tmp_path / f"d{k}.sqlite", [answered(**other)])
        assert merge_ledgers([c], tmp_path / "c.sqlite") == (0, 0, [(_row(1).key, c)])
