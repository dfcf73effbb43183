"""What users rely on stays as it was recorded: options, exit codes, JSON, keys of sweeps, ledgers and certificates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import workbench as wb

from . import reach
from .cases import BAD, CASES, DESIGNED, DESIGNS, FAMILIES, GIVEN, SUPERSEDED
from .difference import EXACT, SEARCH, SOLVER, VOLATILE, arithmetic, differences
from .record import FIXTURES, digest, expected, ledger, observe, place, refusal


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with place(tmp_path_factory.mktemp("golden")) as where:
        yield where


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    names = ("arithmetic", "certificates", "commands", "keys", "ledger", "options", "refusals")
    return {name: expected(name) for name in names}


@pytest.fixture(scope="module")
def same_arithmetic(recorded) -> bool:
    """Whether this processor rounds like the one of the recording: then a design's certificate is compared in bytes."""
    return bool(recorded["arithmetic"]["sha256"] == arithmetic())


def agree(old: Any, new: Any, tolerance: float = EXACT, open_keys: tuple[str, ...] = ()) -> None:
    """Fail with every difference on a line of its own."""
    lines = list(differences(old, new, tolerance=tolerance, open_keys=open_keys))
    if lines:
        pytest.fail("\n".join([f"{len(lines)} differences from what was recorded:", *lines[:40]]), pytrace=False)


def test_everything_recorded_is_still_run(recorded):
    """A case that is dropped would no longer guard anything."""
    assert set(recorded["commands"]) <= set(DESIGNS) | set(CASES)
    assert {**DESIGNS, **CASES}.keys() <= set(recorded["commands"])
    assert all({**DESIGNS, **CASES}[name].command == seen["command"] for name, seen in recorded["commands"].items())
    assert set(recorded["refusals"]) == set(BAD)
    assert set(recorded["certificates"]) == {f"{name}.json" for name in (*DESIGNED, *GIVEN)}


def test_every_recorded_option_exists_with_its_type_and_default(recorded):
    commands = dict(reach.commands())
    lines = []
    for name, parameters in recorded["options"].items():
        if name not in commands:
            lines.append(f"{name}: the command is missing")
            continue
        today = [reach.describe(parameter) for parameter in commands[name].params]
        by_word = {word: parameter for parameter in today for word in parameter["opts"]}
        for old in parameters:
            new = by_word.get(old["opts"][0])
            changed, _ = SUPERSEDED.get(f"{name} {old['opts'][0]}", ((), ""))
            old = old | {key: new[key] for key in changed if new is not None}
            if new is None:
                lines.append(f"{name} {old['opts'][0]}: missing")
            elif not set(old["opts"]) <= set(new["opts"]) or old | {"opts": new["opts"]} != new:
                lines.append(f"{name} {old['opts'][0]}: recorded {old}, now {new}")
        known = {word for old in parameters for word in old["opts"]}
        fresh = [new for new in today if not known & set(new["opts"])]
        lines += [f"{name} {new['opts'][0]}: new, but required" for new in fresh if new["required"]]
        order = [[p["opts"] for p in found if p["kind"] == "argument"] for found in (parameters, today)]
        if order[0] != order[1][: len(order[0])]:
            lines.append(f"{name}: arguments recorded {order[0]}, now {order[1]}")
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("name", [*DESIGNS, *CASES])
def test_a_command_answers_as_recorded(name: str, folder: Path, recorded, same_arithmetic: bool):
    case = {**DESIGNS, **CASES}[name]
    tolerance = EXACT if case.exact else SEARCH if case.search else SOLVER  # searches were replaced since
    superseded, _ = SUPERSEDED.get(name, ((), ""))
    agree(recorded["commands"][name], observe(case), tolerance, (*case.open_keys, *superseded))
    if name in DESIGNS:
        fixture = f"{name.removeprefix('design ')}.json"
        exact = EXACT if same_arithmetic and not case.repaired else tolerance
        _same_file(f"fresh-{fixture}", fixture, recorded, exact, superseded)


@pytest.mark.parametrize("command", BAD)
def test_a_bad_request_ends_as_recorded(command: str, folder: Path, recorded):
    agree(recorded["refusals"][command], refusal(command))


@pytest.mark.parametrize("family", FAMILIES)
def test_points_of_a_sweep_keep_their_requests_and_keys(family: str, folder: Path, recorded):
    """To the byte; only the versions of who answers are taken from the recording where a release has changed them."""
    today = reach.requests(Path(f"sweep_{family}.toml"))
    assert all(hashlib.sha256(request.encode()).hexdigest() == key for request, key in today)
    old = recorded["keys"][family]
    assert len(old) == len(today)
    for before, (request, _) in zip(old, today, strict=True):
        fields = json.loads(request)
        agree(json.loads(before["request"]), fields)
        written = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert request == written
        kept = fields | {"versions": json.loads(before["request"])["versions"]}
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert text == before["request"]
        assert hashlib.sha256(text.encode()).hexdigest() == before["key"]


def test_an_old_ledger_answers_a_sweep_again(folder: Path, recorded):
    """Nothing is solved twice: the points of the specification are found in the ledger of the time."""
    if reach.versions() != {name: recorded["keys"]["versions"][name] for name in reach.versions()}:
        pytest.skip("another release answers; its rows are filed under other keys")
    report = reach.run("sweep ledger.toml --ledger old.db --dry-run --json").json
    assert (report["points"], report["known"]) == (16, 16)


def test_an_old_ledger_is_read_and_exported_as_it_was(folder: Path, recorded):
    today, old = ledger("old.db"), recorded["ledger"]
    lines = [_renamed(line) for line in old["csv"]]
    agree(lines, today["csv"])
    columns = [name for name in today["csv"][0] if name in lines[0]]
    assert columns == list(lines[0]), "the columns are in another order"
    agree(old["rows"], today["rows"])
    agree(old["provenance"], today["provenance"], open_keys=("sha256",))


def test_a_sweep_gives_the_table_of_the_old_ledger(folder: Path, recorded, same_arithmetic: bool):
    outcome = reach.run("sweep ledger.toml --ledger new.db --jobs 1 --json")
    assert (outcome.code, outcome.json["solved"]) == (0, 16)
    rows = {row["key"]: _numbers(row) for row in ledger("new.db")["csv"]}
    old = {row["key"]: _numbers(row) for row in recorded["ledger"]["csv"]}
    for row in old.values():
        for name in reach.FILLED_COLUMNS:
            if row[name] == "":
                del row[name]
    for row in [*old.values(), *rows.values()]:
        if row.get("method") == "unbiased":
            for name in SUPERSEDED["ledger unbiased"][0]:
                row.pop(name, None)
    by_request = reach.versions() == recorded["keys"]["versions"]
    assert not by_request or rows.keys() == old.keys()
    agree(
        *([old, rows] if by_request else [[*old.values()], [*rows.values()]]),
        SEARCH if not same_arithmetic else SOLVER,
        ("key",),
    )


def _numbers(line: dict[str, str]) -> dict[str, Any]:
    """A line of a CSV, numbers as numbers; columns that a release changes left out."""

    def one(cell: str) -> Any:
        try:
            return float(cell)
        except ValueError:
            return cell

    return {name: one(cell) for name, cell in _renamed(line).items() if name not in VOLATILE}


def _renamed(line: dict[str, str]) -> dict[str, str]:
    """A line under today's names; of several columns that are one now, the one that is filled."""
    found: dict[str, str] = {}
    for name, cell in line.items():
        now = reach.RENAMED_COLUMNS.get(name, name)
        found[now] = cell or found.get(now, "")
    return found


def test_given_mechanisms_have_the_same_certificates(folder: Path, recorded):
    made = reach.certificates()
    assert set(made) == set(GIVEN)
    for name, certificate in made.items():
        wb.save_certificate(certificate, f"fresh-{name}.json")
        _same_file(f"fresh-{name}.json", f"{name}.json", recorded)


def _same_file(
    fresh: str, name: str, recorded: dict[str, Any], tolerance: float = EXACT, superseded: tuple[str, ...] = ()
) -> None:
    """The bytes, with what is volatile (versions of solvers) or superseded in the record as it was; or, with a
    tolerance, the claim to the letter and the probabilities."""
    old = (FIXTURES / name).read_text()
    assert digest(FIXTURES / name) == recorded["certificates"][name], f"the fixture {name} was changed"
    new = Path(fresh).read_text()
    record, before = (json.loads(text).get("record", {}) for text in (new, old))
    for key in {*VOLATILE, *superseded} & record.keys() & before.keys():
        new = new.replace(f'"{key}": {json.dumps(record[key])}', f'"{key}": {json.dumps(before[key])}')
    if tolerance:
        agree(_probabilities(json.loads(old)), _probabilities(json.loads(new)), tolerance, (*_LAST_BITS, *superseded))
    else:
        agree(json.loads(old), json.loads(new))
        assert new == old


_LAST_BITS = ("repair_share", "repair_mixed_in", "repair_moved_mass")


def _probabilities(data: Any) -> Any:
    """A certificate's JSON with each law as the probabilities it gives, and exact values as numbers."""
    if isinstance(data, list):
        return [_probabilities(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "weights" in data:
        total = int(data["total"], 16)
        return {k: v for k, v in data.items() if k != "total"} | {
            "weights": [int(w, 16) / total for w in data["weights"]]
        }
    return {k: _number(v) if k in _NUMBERS else _probabilities(v) for k, v in data.items()}


_NUMBERS = ("costs", "inputs", "knots", "outputs", "value", "worst")


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(Fraction(value)) if isinstance(value, str) else value


@pytest.mark.parametrize("name", [*DESIGNED, *GIVEN])
def test_an_old_file_loads_and_is_written_again_to_the_byte(name: str, folder: Path):
    assert wb.load(f"{name}.json") is not None
    if name.endswith("raw"):
        return
    proven = wb.verify_certificate(f"{name}.json")
    wb.save_certificate(proven, f"again-{name}.json")
    assert Path(f"again-{name}.json").read_bytes() == (FIXTURES / f"{name}.json").read_bytes()
    stated = json.loads((FIXTURES / f"{name}.json").read_text())["claim"]
    assert proven.notion == stated["notion"]
