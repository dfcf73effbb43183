"""Test that a command whose output is its input or another output is refused at its start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main
from workbench.io.files import require_distinct_files

NOISE = "design modulo --n 8 --max-shift 3 --epsilon 1"
LABELS = "design labels --labels p.csv --epsilon 1"
QUANTIZER = "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1"
ENCODE = "laplace encode --epsilon 1 --ell 2 --seed-file key"
PRIVATISE = "privatise labels --column 1 --epsilon 9"

# Command -> (name of the refused file, name of the other file, path of the other file) in the
# error.
CASES = {
    f"{ENCODE} p.csv key": ("output", "key", "key"),
    f"{ENCODE} p.csv p.csv": ("output", "input", "p.csv"),
    f"{ENCODE} p.csv link": ("output", "input", "p.csv"),
    f"{ENCODE} p.csv hard": ("output", "input", "p.csv"),
    "laplace decode --seed-file key s.bits key": ("output", "key", "key"),
    "laplace decode --seed-file key s.bits ./s.bits": ("output", "description", "s.bits"),
    f"{PRIVATISE} o.csv.json --out o.csv": ("report beside the output", "input", "o.csv.json"),
    f"{PRIVATISE} p.csv --out sub/../p.csv": ("output", "input", "p.csv"),
    f"{PRIVATISE} p.csv --labels o.csv.json --out o.csv": ("report beside the output", "labels",
    "o.csv.json"),
    "results export l.csv --ledger l.csv": ("export file", "ledger", "l.csv"),
    "results export x.csv --ledger x.csv.json": ("provenance beside the export", "ledger", "x.csv.json"),
    "results export l.csv-wal.csv --ledger l.csv --spec l.csv-wal.csv": (
        "export file", "specification", "l.csv-wal.csv",
    ),
    "sweep s.toml --ledger s.toml": ("ledger", "specification", "s.toml"),
    "sweep m-wal --ledger m": ("log of the ledger", "specification", "m-wal"),
    "sweep s.toml --ledger s.toml --dry-run": ("ledger", "specification", "s.toml"),
    f"{LABELS} --save p.csv": ("saved file", "labels", "p.csv"),
    f"{LABELS} --save same.svg --plot same.svg": ("plot file", "saved file", "same.svg"),
    f"{NOISE} --save same.svg --plot sub/../same.svg": ("plot file", "saved file", "same.svg"),
    f"{NOISE} --loss prior-squared --prior p.csv --save p.csv": ("saved file", "prior", "p.csv"),
    f"{NOISE} --save dangling --plot new.svg": ("plot file", "saved file", "dangling"),
    f"{QUANTIZER} --save same.svg --plot same.svg": ("plot file", "saved file", "same.svg"),
    "audit m.svg --plot m.svg": ("plot file", "mechanism", "m.svg"),
    "frontier labels --labels f/frontier.csv --epsilon 1 --out f": ("out", "labels", "f/frontier.csv"),
    "frontier labels --labels f/x.svg --epsilon 1 --out f": ("out", "labels", "f/x.svg"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the input files of CASES and links to them, and return its path."""
    monkeypatch.chdir(tmp_path)
    for name in ("sub", "f"):
        Path(name).mkdir()
    for name in ("p.csv", "o.csv.json", "f/frontier.csv", "f/x.svg"):
        Path(name).write_text("0.25,1\n0.5,1\n")
    Path("key").write_bytes(bytes(range(32)))
    for name in ("s.bits", "s.toml", "m-wal", "l.csv-wal.csv"):
        Path(name).write_text("nothing that is read")
    with wb.Ledger("l.csv"), wb.Ledger("x.csv.json"):
        pass
    Path("m.svg").write_text("[[0.5, 0.5], [0.25, 0.75]]")
    Path("link").symlink_to("p.csv")
    os.link("p.csv", "hard")
    Path("dangling").symlink_to("new.svg")
    return tmp_path


@pytest.mark.parametrize("command", [pytest.param(command, id=command) for command in CASES])
def test_no_command_overwrites_its_input_or_another_output(folder: Path, capsys, command: str):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    captured = capsys.readouterr()
    refused_name, other_name, other_path = CASES[command]
    assert (stop.value.code, captured.out) == (2, "")
    rule = f"{refused_name} must be another file than the {other_name} {other_path}."
    assert captured.err.startswith(f"InvalidRequest: {rule} Got ")
    assert captured.err.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"input": "p.csv", "key": None}, {"output": "q.csv", "report": "q.csv.json"}),
        # Two inputs may be one file.
        ({"input": "p.csv", "labels": "p.csv"}, {"output": "missing/p.csv"}),
        ({"input": "/dev/null"}, {"output": "/dev/null", "report": "/dev/null"}),
    ],
)
def test_distinct_files_and_devices_are_accepted(
    folder: Path, inputs: dict[str, str | None], outputs: dict[str, str]
):
    require_distinct_files(inputs, outputs)


@pytest.mark.parametrize(
    ("output", "report"),
    [
        ("sub/q", "./sub/../sub/q"),
        ("sub/q", "folder-link/q"),
        ("no/q", "sub/../no/q"),
    ],
)
def test_two_paths_of_one_file_are_refused(folder: Path, output: str, report: str):
    """The file need not exist, and neither must its folder."""
    Path("folder-link").symlink_to("sub")
    with pytest.raises(
        wb.InvalidRequest, match=f"report must be another file than the output {output}"
    ):
        require_distinct_files({}, {"output": output, "report": report})
