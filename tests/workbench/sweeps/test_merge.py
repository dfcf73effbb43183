"""Test merging ledgers of two machines: every row once, conflicts reported, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.errors import CorruptFile, InvalidRequest
from workbench.sweeps.ledger import Ledger, LedgerRow, canonical_json, hash_texts
from workbench.sweeps.merge import merge_ledgers


def _make_row(k: int, objective: str = "1") -> LedgerRow:
    """Return the row of request number k with an objective."""
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
        seconds=0.5,
    )


def _write_ledger(path: Path, rows: list[LedgerRow], specification: str = "") -> Path:
    """Write a ledger with these rows, and return its path."""
    with Ledger(path) as ledger:
        ledger.add(rows)
        if specification:
            ledger.record_specification(specification, "2026-01-02T03:04:05+00:00")
    return path


def _run_command(*arguments: str) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


def test_a_merged_ledger_has_every_row_once_and_all_specifications(tmp_path: Path) -> None:
    a = _write_ledger(tmp_path / "a.sqlite", [_make_row(k) for k in range(1200)], "a")
    b = _write_ledger(tmp_path / "b.sqlite", [_make_row(k) for k in range(1100, 1700)], "b")
    bytes_before = a.read_bytes(), b.read_bytes()
    progress_counts: list[int] = []
    merged = merge_ledgers([a, b], tmp_path / "c.sqlite", progress_counts.append)
    # New rows, rows that were there already, and rows with another answer.
    assert merged == (1700, 100, [])
    assert progress_counts[-1] == 1800
    with Ledger(tmp_path / "c.sqlite", create=False) as ledger:
        assert list(ledger.rows()) == [_make_row(k) for k in range(1700)]
        assert sorted((s["text"], s["first_run"][:10]) for s in ledger.list_specifications()) == [
            ("a", "2026-01-02"),
            ("b", "2026-01-02"),
        ]
    # The second merge finds nothing new.
    assert merge_ledgers([a, b], tmp_path / "c.sqlite") == (0, 1800, [])
    assert (a.read_bytes(), b.read_bytes()) == bytes_before


def test_a_different_answer_to_the_same_request_is_reported_and_not_merged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = _write_ledger(tmp_path / "a.sqlite", [_make_row(1), _make_row(2)])
    b = _write_ledger(tmp_path / "b.sqlite", [_make_row(2, "3"), _make_row(4)])
    target = tmp_path / "c.sqlite"
    assert _run_command("results", "merge", str(a), str(b), "--ledger", str(target), "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["new"], report["equal"]) == (3, 0)
    assert report["different"] == [{"key": _make_row(2).key, "ledger": str(b)}]
    with Ledger(target, create=False) as ledger:
        assert ledger.find(_make_row(2).key) == _make_row(2)
    assert _run_command("results", "merge", str(b), "--ledger", str(target)) == 1
    output = " ".join(capsys.readouterr().out.split())
    sentence = f"{_make_row(2).key[:12]}: {b} has another answer, which was not taken."
    assert sentence in output


def test_a_file_that_is_no_ledger_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = _write_ledger(tmp_path / "a.sqlite", [_make_row(1)])
    (tmp_path / "text.sqlite").write_text("no database, of some length" * 100)
    for wrong_file, error in (
        (tmp_path / "none.sqlite", InvalidRequest),
        (tmp_path / "text.sqlite", CorruptFile),
    ):
        with pytest.raises(error):
            merge_ledgers([a, wrong_file], tmp_path / "c.sqlite")
        assert not (tmp_path / "c.sqlite").exists()


def test_a_ledger_is_not_merged_into_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = _write_ledger(tmp_path / "a.sqlite", [_make_row(1)])
    assert _run_command("results", "merge", str(a), "--ledger", str(a)) == 2
    assert "Got" in capsys.readouterr().err


def _make_row_with_answer(**changes: object) -> LedgerRow:
    """Return a row with an optimal answer that has some changes."""
    answer = {"status": "optimal", "objective": 0.1 + 0.2, "private": True, **changes}
    return _make_row(1)._replace(answer=canonical_json(answer))


def test_answers_are_equal_if_only_start_residual_and_rounding_differ(tmp_path: Path) -> None:
    hot_row = _make_row_with_answer(start="hot", recheck="a cold start agrees", residual=0.0)
    cold_row = _make_row_with_answer(start="cold", objective=0.3, residual=1e-16)
    a = _write_ledger(tmp_path / "a.sqlite", [hot_row])
    b = _write_ledger(tmp_path / "b.sqlite", [cold_row])
    assert merge_ledgers([a, b], tmp_path / "c.sqlite") == (1, 1, [])


@pytest.mark.parametrize(
    "change", [{"objective": 0.31}, {"private": False}, {"status": "not_proven"}, {"bound": 1.0}]
)
def test_answers_are_different_if_a_number_or_a_verdict_differs(
    change: dict[str, object], tmp_path: Path
) -> None:
    a = _write_ledger(tmp_path / "a.sqlite", [_make_row_with_answer()])
    b = _write_ledger(tmp_path / "b.sqlite", [_make_row_with_answer(**change)])
    merge_ledgers([a], tmp_path / "c.sqlite")
    assert merge_ledgers([b], tmp_path / "c.sqlite") == (0, 0, [(_make_row(1).key, b)])
