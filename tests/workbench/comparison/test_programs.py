"""Test the library of programs: export, proofs of optima, reading by every backend, comparison.

A program is a linear program (LP) or a mixed-integer one (MILP). An exported program is a file in
the format MPS and a JSON file with its best known value, a proven bound, a point and dual values.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli.commands import main
from workbench.comparison import library
from workbench.comparison.compare import compare_programs
from workbench.comparison.library import (
    export_library,
    folder_instances,
    known_range,
    list_library,
    read_program,
    verify_folder,
)
from workbench.comparison.run import select_supported_options
from workbench.comparison.worker import solve_task
from workbench.errors import CorruptFile
from workbench.papers.solver_comparison import make_comparison_artifacts
from workbench.pipeline.programs import select_instances
from workbench.solvers.backend import get_backend, list_backend_names

SOLVERS = [name for name in list_backend_names() if get_backend(name).is_installed()]
# First-order methods, which stop early. Their optima are therefore compared to 1e-3 only.
LOOSE_SOLVERS = {"ortools:pdlp", "cvxpy:scs"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with exported programs of every family."""
    target = tmp_path_factory.mktemp("programs")
    patterns = (
        "noise-lp-n[248]",
        "noise-lp-n[24]-*",
        "noise-dp-n4*",
        "noise-milp-n[468]*",
        "mvu-m[248]",
        "quantizer-m[23]-*",
        "optm-m4",
        "channel-labels-k[235]",
    )
    # Larger programs, by the number of nonzero coefficients, are left out to save time.
    export_library(target, ",".join(patterns), most=900)
    return target


@pytest.fixture(scope="module")
def library_rows() -> list[dict[str, Any]]:
    """Return the rows of all programs of the library, of every size."""
    return list_library(most=None)


def test_the_library_contains_every_family_and_all_sizes(
    library_rows: list[dict[str, Any]],
) -> None:
    rows = library_rows
    assert len(rows) == len({row["name"] for row in rows}) >= 100
    sizes = [row["nonzeros"] for row in rows]
    assert min(sizes) <= 10
    assert 90_000 <= max(sizes) <= 100_000
    assert sum(row["kind"] == "MILP" for row in rows) >= 15
    assert {row["name"].partition("-")[0] for row in rows} == {
        "noise",
        "channel",
        "quantizer",
        "mvu",
        "optm",
        "additive",
    }
    assert all(row["parameters"] and row["model"] for row in rows)


def test_every_exported_optimum_is_verified_in_rational_arithmetic(folder: Path) -> None:
    rows = verify_folder(folder)
    assert len(rows) > 15
    assert all(row["holds"] for row in rows)
    for path in folder.glob("*.json"):
        known = json.loads(path.read_text())
        assert known["violation"] < 1e-12
        if known["kind"] == "LP":
            assert known["bound"] <= known["value"] + 1e-12
            assert known["value"] - known["bound"] < 1e-9 * max(1, known["value"])


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_backend_solves_the_exported_files(folder: Path, solver: str) -> None:
    capabilities = get_backend(solver).capabilities()
    for path in folder.glob("*.mps"):
        program, known = read_program(path)
        can_solve = capabilities.milp if program.is_mip else capabilities.lp
        if capabilities.integer_only or not can_solve:
            continue
        row = solve_task(
            program,
            solver,
            select_supported_options(solver, {"threads": 1, "time_limit": 300.0}),
            hot=False,
        )
        assert row["status"] == "optimal", row
        bound, value = known_range(known)
        error = max(row["objective"] - value, bound - row["objective"])
        tolerance = 1e-3 if solver in LOOSE_SOLVERS else 1e-6 * max(1.0, abs(value))
        assert error <= tolerance, row


def test_the_optimum_of_an_ill_conditioned_program_is_proven_to_1e_9(tmp_path: Path) -> None:
    """At its default tolerances HiGHS is off by 1e-5 here, with a residual of 1e-7."""
    (row,) = export_library(tmp_path, "channel-counts-k40")
    assert row["value"] - row["bound"] < 1e-9
    assert row["violation"] < 1e-12
    # Value of the current program, pinned.
    assert row["value"] == pytest.approx(1.719871336, abs=1e-9)


# Damaged files. Each test changes a copy of one exported program.


class ExportedProgram:
    """A copy of the exported program mvu-m2, whose files a test changes.

    Attributes:
        mps: The path of the program.
        json: The path of the record of its optimum.
        record: The unchanged content of the record.
    """

    def __init__(self, folder: Path, target: Path) -> None:
        self.mps = target / "mvu-m2.mps"
        self.json = target / "mvu-m2.json"
        for path in (self.mps, self.json):
            path.write_bytes((folder / path.name).read_bytes())
        self.record = json.loads(self.json.read_text())

    def write_record(self, **changes: object) -> None:
        """Write the record with some changed values."""
        self.json.write_text(json.dumps(self.record | changes))


@pytest.fixture
def exported_program(folder: Path, tmp_path: Path) -> ExportedProgram:
    """Return the only program in the folder `tmp_path`."""
    return ExportedProgram(folder, tmp_path)


def test_a_program_with_a_changed_coefficient_is_refused(exported_program: ExportedProgram) -> None:
    text = exported_program.mps.read_text()
    assert "18.0285" in text
    exported_program.mps.write_text(text.replace("18.0285", "18.0284"))
    with pytest.raises(wb.CorruptFile, match="sha256"):
        read_program(exported_program.mps)


def test_a_record_with_a_larger_bound_does_not_hold(
    exported_program: ExportedProgram, tmp_path: Path
) -> None:
    exported_program.write_record(dual_bound=exported_program.record["dual_bound"] + 1e-9)
    (row,) = verify_folder(tmp_path)
    assert row["holds"] is False


def test_a_record_whose_optimum_is_no_number_is_refused(exported_program: ExportedProgram) -> None:
    exported_program.json.write_text('{"optimum": "high"}')
    with pytest.raises(wb.CorruptFile, match="optimum must be a number"):
        read_program(exported_program.mps)


@pytest.mark.parametrize("name", ["point", "dual"])
def test_a_record_with_a_damaged_vector_is_refused(
    name: str, exported_program: ExportedProgram, tmp_path: Path
) -> None:
    vector = exported_program.record[name]
    # 10**350 is beyond the range of floats.
    vectors_with_one_bad_number = [[*vector[1:], number] for number in ({}, True, 10**350)]
    for damaged_vector in ({"a": 1}, "1", [1], 3, *vectors_with_one_bad_number):
        exported_program.write_record(**{name: damaged_vector})
        with pytest.raises(
            wb.CorruptFile, match=rf"{name} must be a list of {len(vector)} numbers"
        ):
            verify_folder(tmp_path)


# The first text only begins like a number, and 1e400 is beyond the range of floats.
@pytest.mark.parametrize("scale", ["10485799-100.0", "nan", "inf", "0", "-1", "1e400"])
def test_a_program_with_a_damaged_scale_is_refused(
    scale: str, exported_program: ExportedProgram
) -> None:
    exported_program.json.unlink()
    text = exported_program.mps.read_text()
    exported_program.mps.write_text(f"* scale {scale} \n" + text)
    with pytest.raises(wb.CorruptFile, match=r"scale.*must be followed by a finite number > 0"):
        read_program(exported_program.mps)


# Programs of a user.

# Minimise x + 2y subject to x + y >= 3 and x, y >= 0. The optimum is 3.
USER_PROGRAM = """\
NAME mine
ROWS
 N loss
 G r
COLUMNS
 x loss 1
 x r 1
 y loss 2
 y r 1
RHS
 RHS r 3
ENDATA
"""


def test_user_programs_are_solved_and_a_wrong_optimum_is_refuted(tmp_path: Path) -> None:
    (tmp_path / "mine.mps").write_text(USER_PROGRAM)
    (tmp_path / "mine.json").write_text('{"optimum": 3}')
    (tmp_path / "wrong.mps.gz").write_bytes(gzip.compress(USER_PROGRAM.encode()))
    (tmp_path / "wrong.json").write_text('{"optimum": 4}')
    (tmp_path / "unknown.mps").write_text(USER_PROGRAM)
    result = wb.compare(tmp_path, ["highs", "ortools:glop"], time_limit=300)
    rows = {(row["instance"], row["solver"]): row for row in result}
    assert len(rows) == 6
    assert rows["mine", "highs"]["solved"]
    assert rows["unknown", "ortools:glop"]["solved"]
    assert rows["wrong", "highs"]["best_objective"] == 3  # A feasible point refutes the optimum 4.
    assert rows["mine", "highs"]["hot_seconds"] > 0
    # A user's program is not recognised as one that designs a mechanism.
    assert rows["mine", "highs"].get("private") is None


def test_a_pattern_without_a_matching_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.mps").write_text(USER_PROGRAM)
    with pytest.raises(wb.InvalidRequest, match="patterns that match"):
        folder_instances(tmp_path, "nothing-*")


def test_a_comparison_on_a_folder_of_exported_programs(folder: Path) -> None:
    result = compare_programs(
        folder, ["highs", "ortools:glop"], instances="mvu-m2,noise-milp-n4*,channel-labels-k3"
    )
    assert {row["status"] for row in result} == {"optimal", "not applicable"}
    assert all(row["solved"] for row in result if row["status"] == "optimal")
    # Exported programs are recognised, so their solutions are certified as mechanisms.
    assert all(row["certified"] for row in result if row["status"] == "optimal")
    report = make_comparison_artifacts(result.to_frame(), "folder", time_limit=20.0)
    table = report["summary"].table
    highs = table[(table["solver"] == "highs") & (table["kind"] == "LP")].iloc[0]
    assert highs["hot_instances"] == 2
    assert highs["their_hot_seconds"] > 0
    assert "hot_seconds" in report["performance_profile"].table


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command. Return its exit code and its texts on stdout and stderr."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return stop.value.code, captured.out, captured.err


def test_the_command_export_writes_programs_from_large_to_small(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ("--names", "mvu-m[24]", "--json")
    code, output, _ = run(capsys, "programs", "export", str(tmp_path), *options)
    assert code == 0
    assert [row["name"] for row in json.loads(output)["programs"]] == ["mvu-m4", "mvu-m2"]


def test_the_command_list_lists_programs_up_to_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = run(capsys, "programs", "list", "--names", "mvu-*", "--most", "100", "--json")
    assert code == 0
    # The numbers of nonzero coefficients of mvu-m4 and mvu-m2.
    assert [row["nonzeros"] for row in json.loads(output)["programs"]] == [36, 9]


def test_the_command_verify_counts_the_records_that_hold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    export_library(tmp_path, "mvu-m[24]")
    code, output, _ = run(capsys, "programs", "verify", str(tmp_path))
    assert (code, output) == (0, "2 of 2 records hold, recomputed in rationals.\n")


def test_the_command_compare_solves_one_program(
    capsys: pytest.CaptureFixture[str], exported_program: ExportedProgram
) -> None:
    options = ("--programs", str(exported_program.mps), "--solvers", "highs,ortools:glop")
    code, output, _ = run(capsys, "compare", *options)
    assert code == 0
    # The table has two solvers, each with "1 of 1" solved and "1 of 1" certified.
    assert output.count("1 of 1") >= 4


def test_a_program_whose_record_has_a_wrong_optimum_is_not_solved(
    capsys: pytest.CaptureFixture[str], exported_program: ExportedProgram
) -> None:
    exported_program.json.write_text('{"optimum": 1}')
    options = ("--programs", str(exported_program.mps), "--solvers", "highs", "--json")
    code, output, _ = run(capsys, "compare", *options)
    assert code == 0
    (row,) = json.loads(output)["runs"]
    assert row["solved"] is False


def test_the_command_compare_refuses_programs_together_with_a_suite(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, _ = run(capsys, "compare", "--programs", str(tmp_path), "--suite", "small")
    assert code == 2


def test_the_command_compare_refuses_a_missing_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, error_text = run(capsys, "compare", "--programs", str(tmp_path / "missing"))
    assert code == 2
    assert "a folder with files named .mps" in error_text


def test_listed_optima_agree_with_exported_optima(tmp_path: Path) -> None:
    names = "mvu-m2,noise-milp-n4-m1,channel-labels-k3"
    listed_rows = {row["name"]: row for row in list_library(names)}
    rows = export_library(tmp_path, names)
    assert len(rows) == len(listed_rows) == 3
    for row in rows:
        listed = listed_rows[row["name"]]
        assert listed["sha256"] == row["sha256"]
        if listed["value"] is not None:  # Then the stored table describes this very file.
            assert listed["value"] == pytest.approx(row["value"], rel=1e-9)
            assert listed["bound"] == pytest.approx(row["bound"], rel=1e-9)
            # The first words say how the bound was proven. Later words may name solvers.
            assert listed["proof"].split()[:3] == row["proof"].split()[:3]


def test_the_stored_table_has_the_optima_of_all_programs(
    library_rows: list[dict[str, Any]],
) -> None:
    stored = json.loads(Path(library.__file__).with_name("optima.json").read_text("utf-8"))
    assert {instance.name for instance in select_instances("library")} == set(stored)
    has_optimum = [row["value"] is not None for row in library_rows]
    # Files differ on machines whose e^ε has other digits. Their optima are not in the table.
    assert sum(has_optimum) > len(has_optimum) / 2


def test_two_solvers_prove_a_mixed_integer_optimum(tmp_path: Path) -> None:
    (row,) = export_library(tmp_path, "noise-milp-n4-m1")
    assert "highs" in row["proof"]
    assert "scip" in row["proof"]
    assert row["value"] == pytest.approx(row["bound"], rel=1e-9)
    (listed,) = list_library("noise-milp-n4-m1")
    assert listed["sha256"] == row["sha256"]


# Unusual files of a user.


@pytest.fixture
def unusual_folder(tmp_path: Path) -> Path:
    """Return a folder with four unusual files and two damaged ones, bad.mps and worse.mps.gz.

    All have the program "minimise 2x subject to x >= 3".
    """
    text = "NAME t\nROWS\n N c\n G r\nCOLUMNS\n x c 2 r 1\nRHS\n RHS r 3\nENDATA\n"
    (tmp_path / "UPPER.MPS").write_text(text)
    # A byte order mark, as some editors write.
    (tmp_path / "bom.mps").write_bytes(b"\xef\xbb\xbf" + text.encode())
    # A comment that is not in UTF-8.
    (tmp_path / "latin.mps").write_bytes(b"* caf\xe9\n" + text.encode())
    (tmp_path / "packed.MPS.GZ").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "bad.mps").write_text(text.replace("ENDATA", ""))
    (tmp_path / "worse.mps.gz").write_bytes(gzip.compress(text.encode())[:20])
    return tmp_path


def test_unusual_files_are_read_and_damaged_ones_are_left_out(unusual_folder: Path) -> None:
    instances, left_out = folder_instances(unusual_folder)
    assert [instance.name for instance in instances] == ["UPPER", "bom", "latin", "packed"]
    assert [sentence.partition(" ")[0] for sentence in left_out] == ["bad.mps", "worse.mps.gz"]


def test_the_command_compare_names_damaged_files_that_it_leaves_out(
    unusual_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--instances UPPER,bad --solvers highs"
    code, output, _ = run(capsys, "compare", "--programs", str(unusual_folder), *options.split())
    assert code == 0
    report = " ".join(output.split())
    # The objective of the run and the best one of all runs are 6.
    assert "UPPER highs optimal 6 6" in report
    assert "bad.mps was left out" in report


@pytest.mark.parametrize("names", ["bad", "bad,worse"])
def test_only_damaged_files_are_an_error(names: str, unusual_folder: Path) -> None:
    with pytest.raises(CorruptFile):
        folder_instances(unusual_folder, names)


def test_a_damaged_file_does_not_hold_and_a_file_without_a_record_is_undecided(
    unusual_folder: Path,
) -> None:
    holds = {row["name"]: row["holds"] for row in verify_folder(unusual_folder)}
    assert holds["bad.mps"] is False
    assert holds["bom.mps"] is None
