"""Record what the workbench answers today: `python -m tests.golden.record`.

    inputs/     written by hand: small tables, specifications of sweeps
    fixtures/   written once by the workbench before its modules moved: certificates, mechanisms, a ledger, streams and
                their key. They stand for the files that users have; an existing one is never written again.
    expected/   what commands answered, rewritten by every recording; `git diff` then shows what has changed

A recording is a decision: whoever records again says in the commit why the old answer is given up.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import workbench as wb

from . import reach
from .cases import BAD, CASES, DESIGNED, DESIGNS, FAMILIES, GIVEN, Case
from .difference import arithmetic

__all__ = ["EXPECTED", "FIXTURES", "digest", "expected", "observe", "place", "table"]

HERE = Path(__file__).resolve().parent
INPUTS, FIXTURES, EXPECTED = HERE / "inputs", HERE / "fixtures", HERE / "expected"
STREAMS = {
    "gamma.bits": "dql encode --epsilon 1 --ell 2 --seed-file dql.key --column amount numbers.csv gamma.bits",
    "delta.bits": "dql encode --epsilon 0.5 --ell 1.6 --code delta --seed-file dql.key --column 2 numbers.csv "
    "delta.bits",
}


@contextlib.contextmanager
def place(folder: Path) -> Iterator[Path]:
    """Be in a folder with copies of inputs and fixtures, and with damaged ones made from them."""
    for source in (INPUTS, FIXTURES):
        if source.is_dir():
            shutil.copytree(source, folder, dirs_exist_ok=True)
    (folder / "wrong.key").write_bytes(bytes(range(32)))
    if (folder / "gamma.bits").exists():
        data = bytearray((folder / "gamma.bits").read_bytes())
        data[-3] ^= 4
        (folder / "damaged.bits").write_bytes(data)
    if (folder / "noise-pdp.json").exists():
        claim = json.loads((folder / "noise-pdp.json").read_text())
        claim["claim"]["epsilon"] = "1"
        (folder / "false-claim.json").write_text(json.dumps(claim))
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def expected(name: str) -> Any:
    """A recorded file."""
    return json.loads((EXPECTED / f"{name}.json").read_text())


def digest(path: Path | str) -> str:
    """sha256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def table(path: Path | str) -> list[dict[str, str]]:
    """The lines of a CSV."""
    return list(csv.DictReader(io.StringIO(Path(path).read_text())))


def observe(case: Case) -> dict[str, Any]:
    """Run a case in the current folder."""
    outcome = reach.run(case.command)
    seen: dict[str, Any] = {"command": case.command, "exit": outcome.code}
    if case.text:
        seen["text"] = outcome.stdout
    else:
        seen["json"] = outcome.json
    if case.files:
        seen["sha256"] = {name: digest(name) for name in case.files}
    return seen


def refusal(command: str) -> dict[str, Any]:
    """The exit code of a bad request, and the kind of its error."""
    outcome = reach.run(command)
    said = outcome.json if command.endswith("--json") and outcome.stdout else {}
    return {"exit": outcome.code, "error": said.get("error")}


def ledger(path: str) -> dict[str, Any]:
    """Everything about a ledger that users read: each row, and the table it exports."""
    rows = reach.run(f"results list --ledger {path} --limit 0 --json").json["rows"]
    shown = {row["key"]: reach.run(f"results show {row['key']} --ledger {path} --json").json for row in rows}
    reach.run(f"results export exported.csv --ledger {path}")
    origin = json.loads(Path("exported.csv.json").read_text())
    return {"rows": shown, "csv": table("exported.csv"), "provenance": origin}


def _fixtures() -> None:
    """Write the fixtures that are missing, in the current folder and in fixtures/."""
    FIXTURES.mkdir(exist_ok=True)

    def keep(name: str) -> None:
        shutil.copy(name, FIXTURES / name)

    def missing(name: str) -> bool:
        return not (FIXTURES / name).exists()

    for name, command in DESIGNED.items():
        if missing(f"{name}.json"):
            _run(f"{command} --save {name}.json")
            keep(f"{name}.json")
    if any(missing(f"{name}.json") for name in GIVEN):
        for name, certificate in reach.certificates().items():
            wb.save_certificate(certificate, f"{name}.json")
            keep(f"{name}.json")
    for name, command in {"dql.key": "dql keygen dql.key", **STREAMS}.items():
        if missing(name):
            _run(command)
            keep(name)
    if missing("old.db"):
        _run("sweep ledger.toml --ledger old.db --jobs 1")
        keep("old.db")


def _run(command: str) -> None:
    outcome = reach.run(command)
    if outcome.code:
        raise RuntimeError(f"{command}: {outcome.stderr}")


def _write(name: str, content: Any) -> None:
    EXPECTED.mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    (EXPECTED / f"{name}.json").write_text(text + "\n")
    print(f"{name}: {len(content)} entries, {len(text)} characters")


def main() -> None:
    """Write missing fixtures, and everything expected."""
    with tempfile.TemporaryDirectory() as first, place(Path(first)):
        _fixtures()
    with tempfile.TemporaryDirectory() as second, place(Path(second)):
        _write("options", {name: [reach.describe(p) for p in command.params] for name, command in reach.commands()})
        _write("commands", {name: observe(case) for name, case in (DESIGNS | CASES).items()})
        _write("refusals", {command: refusal(command) for command in BAD})
        keys = {family: reach.requests(Path(f"sweep_{family}.toml")) for family in FAMILIES}
        keys = {family: [{"key": key, "request": request} for request, key in found] for family, found in keys.items()}
        _write("keys", {"versions": reach.versions(), **keys})
        _write("ledger", ledger("old.db"))
        _write("arithmetic", {"sha256": arithmetic()})
        _write("certificates", {path.name: digest(path) for path in sorted(FIXTURES.glob("*.json"))})


if __name__ == "__main__":
    main()
