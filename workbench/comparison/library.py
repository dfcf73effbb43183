"""Export and verify the programs of the suite "library" as files that any solver reads.

A folder has two files for each program: NAME.mps (free MPS; its first comments describe the
program) and NAME.json:

    name, model, parameters         what the program states
    sha256                          of the MPS file
    rows, columns, nonzeros, integers
    scale                           solvers with absolute tolerances should multiply x by it
    value, bound                    the optimum lies in [bound, value], up to `violation`
    violation                       largest violation of a row or bound by the point, exact
    proof                           reason for the bound, in words
    point                           the x whose objective is `value`
    dual                            multipliers y of the rows
    dual_bound                      Lagrangian value of the dual, computed in rationals
    made_by                         versions of the workbench and of HiGHS

`verify_folder` computes value, violation and dual_bound again from the two files alone. For a
linear program, `bound` is `dual_bound`. For a mixed-integer program, the dual only proves a bound
of the linear relaxation. `bound` is then the smallest bound of branch and bound of two solvers, and
`proof` says so. A program from another source may have a file NAME.json with only
{"optimum": 1.5}, or none.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from sys import float_info
from typing import Any

import numpy as np

import workbench
from workbench.comparison.run import describe_size
from workbench.errors import CorruptFile, InvalidRequest, must
from workbench.exact.numbers import round_down
from workbench.exact.objects import Values
from workbench.io.files import parse_json, prefix_errors_with_file, read_bytes, write_atomically
from workbench.io.result import Progress, Row, ignore_progress
from workbench.pipeline.design_program import SCALE_PREFIX
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.programs import Instance, matches_pattern, select_instances
from workbench.solvers.backend import Options, get_backend, solve
from workbench.solvers.data import Data
from workbench.solvers.errors import InvalidProgram
from workbench.solvers.exact.rational_lp import exact_bound, exact_objective, exact_violation
from workbench.solvers.mps import format_mps, read_mps
from workbench.solvers.program import Program
from workbench.solvers.solution import Solution, Termination

RECORD_FORMAT = "dp-workbench-program-1"
# tools/optima.py writes this file.
_OPTIMA_FILE = Path(__file__).with_name("optima.json")
# Files of more bytes are refused.
_MAX_FILE_BYTES = 200_000_000
# Programs of a folder with more non-zeros are not judged as mechanisms.
_MAX_JUDGED_NONZEROS = 5000
# Ill-conditioned programs are solved with the objective times this factor, in units of 2^-20.
_LOSS_UNITS = 2.0**20
# After another termination, the record says that the solver stopped early.
_COMPLETE_TERMINATIONS = (Termination.OPTIMAL, Termination.GAP_LIMIT)
# The point of another solver is written if its value is smaller by more than this share.
_MIN_IMPROVEMENT = 1e-6
# A relative gap between value and bound of at most this is not improved any more.
_CLOSED_GAP = 1e-11
# The first installed one of these solvers checks HiGHS on mixed-integer programs.
_MIP_SOLVERS = ("scip", "ortools:gscip")
_FILES_RULE = "an MPS file, or a folder with files named .mps or .mps.gz"


def _describe_program(instance: Instance, program: Program) -> Row:
    """Return the columns that describe a program, without its optimum."""
    data = program.template
    return {
        "name": instance.name,
        "model": instance.model,
        "parameters": instance.parameters,
        **describe_size(program),
        "nonzeros": int(data.A.nnz),
        "integers": int(data.integrality.sum()),
        "scale": program.scale,
    }


def iterate_library(
    names: str | None = None, most: int | None = None
) -> Iterator[tuple[Instance, Program]]:
    """Yield the programs of the library.

    Args:
        names: patterns of names, separated by commas. None: all programs.
        most: largest number of non-zeros of a program. None: no limit.

    Yields:
        (instance, its program at the values of its parameters).

    Raises:
        InvalidRequest: no program matches.
    """
    for instance in select_instances("library", names):
        program = instance.program_at_values()
        if most is None or program.template.A.nnz <= most:
            yield instance, program


def list_library(names: str | None = None, most: int | None = None) -> list[Row]:
    """Return a row for each program, without solving it.

    A row has name, model, parameters, kind ("LP" or "MILP"), rows, columns, nonzeros, integers,
    scale and sha256, the hash of the program's file. If optima.json has that file, it also has the
    value, bound and proof of the optimum as they were exported, else None for each.

    Args:
        names: patterns of names, separated by commas. None: all programs.
        most: largest number of non-zeros of a program. None: no limit.

    Raises:
        InvalidRequest: no program matches.
    """
    optima = json.loads(_OPTIMA_FILE.read_text("utf-8"))
    unknown = dict.fromkeys(("value", "bound", "proof"))
    rows = []
    for instance, program in iterate_library(names, most):
        digest = _hash_text(_write_program_text(instance, program))
        optimum = optima.get(instance.name, {})
        if optimum.get("sha256") != digest:
            optimum = unknown
        rows.append(_describe_program(instance, program) | optimum | {"sha256": digest})
    return rows


def _write_program_text(instance: Instance, program: Program) -> str:
    """Return the text of the MPS file of a program."""
    comments = [f"{instance.model}: {instance.parameters}", f"{SCALE_PREFIX}{program.scale!r}"]
    return format_mps(instance.name, program.template, program.variables, comments)


def _hash_text(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def export_library(
    folder: Path,
    names: str | None = None,
    most: int | None = None,
    *,
    time_limit: float = 60.0,
    progress: Progress = ignore_progress,
) -> list[Row]:
    """Write programs and their optima, solved by HiGHS, and return their rows.

    A file is written whole or not at all, so an interrupted export keeps the finished files.

    Args:
        folder: folder to write to. It is made if it does not exist.
        names: patterns of names, separated by commas. None: all programs.
        most: largest number of non-zeros of a program. None: no limit.
        time_limit: time limit of one solve, in seconds.
        progress: called with (finished programs, programs, next program).

    Returns:
        One row per program: its record without format, point and dual.

    Raises:
        InvalidRequest: no program matches.
    """
    programs = list(iterate_library(names, most))
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for position, (instance, program) in enumerate(programs):
        progress(position, len(programs), instance.name)
        rows.append(_export_program(folder, instance, program, time_limit))
    return rows


def _export_program(folder: Path, instance: Instance, program: Program, time_limit: float) -> Row:
    """Write the two files of a program. Return its record without point and dual."""
    text = _write_program_text(instance, program)
    # The program is read from the text, so that the optimum belongs to the numbers in the file.
    program = Program(program.name, read_mps(text).data, scale=program.scale)
    options = Options(time_limit=time_limit)
    with translate_errors():
        solutions = [
            solve(program, solver=solver, options=options)
            for solver in _choose_export_solvers(program)
        ]
    record = {
        "format": RECORD_FORMAT,
        **_describe_program(instance, program),
        "sha256": _hash_text(text),
        **_describe_optimum(program, solutions),
        "made_by": {"workbench": workbench.__version__, "highs": get_backend("highs").version()},
    }
    write_atomically(folder / f"{instance.name}.mps", text.encode())
    write_atomically(folder / f"{instance.name}.json", (json.dumps(record) + "\n").encode())
    hidden_names = ("format", "point", "dual")
    return {name: value for name, value in record.items() if name not in hidden_names}


def _choose_export_solvers(program: Program) -> list[str]:
    """Return HiGHS and, for a mixed-integer program, another installed solver that checks it."""
    solvers = ["highs"]
    if program.is_mip:
        solvers += [name for name in _MIP_SOLVERS if get_backend(name).is_installed()]
    return solvers[:2]


def _describe_optimum(program: Program, solutions: Sequence[Solution]) -> Row:
    """Return value, violation, bound and proof of a program that several solvers solved.

    The first solution counts, unless another one is clearly better. The smallest bound counts.
    """
    record = dict.fromkeys(("value", "bound", "violation", "point", "dual", "dual_bound"))
    if all(solution.objective is None for solution in solutions):
        return {**record, "proof": f"none: {solutions[0].raw_status}"}
    best = _choose_solution(solutions)
    assert best.x is not None
    data = program.template
    point, dual = _improve_solution(data, best.x.tolist(), best.seconds)
    record |= _evaluate_exactly(data, point, dual)
    record["point"] = list(point)
    record["dual"] = None if dual is None else list(dual)
    if program.is_mip:
        other_solutions = [solution for solution in solutions if solution is not best]
        return record | _describe_mip_bound([best, *other_solutions])
    proof = "Lagrangian value of the dual, in rationals"
    return record | {"bound": record["dual_bound"], "proof": proof}


def _choose_solution(solutions: Sequence[Solution]) -> Solution:
    """Return the first solution, or the best one if it is better by more than _MIN_IMPROVEMENT."""
    first = solutions[0]
    solutions_with_point = [solution for solution in solutions if solution.objective is not None]
    best = min(solutions_with_point, key=lambda solution: float(solution.objective or 0.0))
    if first.objective is None:
        return best
    improvement = first.objective - float(best.objective or 0.0)
    if improvement > _MIN_IMPROVEMENT * abs(first.objective):
        return best
    return first


def _describe_mip_bound(solutions: Sequence[Solution]) -> Row:
    """Return the smallest bound of branch and bound, and a proof that names its solvers."""
    bounds = [solution.bound for solution in solutions if solution.bound is not None]
    is_bounded = len(bounds) == len(solutions) and min(bounds) > -math.inf
    solvers = " and ".join(f"{solution.solver} {solution.version}" for solution in solutions)
    proof = f"the smallest bound of branch and bound of {solvers}, not checked exactly"
    incomplete = [
        f"{solution.solver} ({solution.termination})"
        for solution in solutions
        if solution.termination not in _COMPLETE_TERMINATIONS
    ]
    if incomplete:
        proof += f"; stopped early: {', '.join(incomplete)}, so the value may not be the optimum"
    return {"bound": min(bounds) if is_bounded else None, "proof": proof}


def _evaluate_exactly(data: Data, point: Sequence[float], dual: Sequence[float] | None) -> Row:
    """Compute in rationals what a point and multipliers prove.

    Returns the fields value, violation and dual_bound of a record. dual_bound is None without
    multipliers, or if they prove nothing.
    """
    bound = None
    dual_bound = None
    if dual is not None:
        bound = exact_bound(data, dual)
    if bound is not None:
        dual_bound = round_down(bound)
    return {
        "value": float(exact_objective(data, point)),
        "violation": float(exact_violation(data, point)),
        "dual_bound": dual_bound,
    }


def _improve_solution(
    data: Data, x: Sequence[float], seconds: float
) -> tuple[Sequence[float], Sequence[float] | None]:
    """Improve a point of a program, and find multipliers that prove its optimum up to rounding.

    Returns (point, multipliers of the rows, or None if no solve gave any). For a mixed-integer
    program the point is x, and the multipliers are those of its linear relaxation.
    Some programs are so ill-conditioned that a residual of 1e-7 hides 1e-5 of the optimum. They are
    solved in units of 2^-20 with the losses multiplied as well, by the simplex method and, if that
    leaves a gap, by interior point with crossover.
    """
    no_integers = np.zeros_like(data.integrality)
    relaxed_data = replace(data, integrality=no_integers, c=data.c * _LOSS_UNITS)
    scaled_program = Program("in small units", relaxed_data, scale=_LOSS_UNITS)
    best_point = list(x)
    best_dual = None
    best_gap = math.inf
    for algorithm in (None, "interior-point"):
        # The tolerances are tighter than HiGHS's default of 1e-7. This solve may take 20 times as
        # long as the first one, which had the default.
        options = Options(
            feasibility_tolerance=1e-9,
            dual_feasibility_tolerance=1e-9,
            algorithm=algorithm,
            time_limit=60 + 20 * seconds,
        )
        solution = solve(scaled_program, solver="highs", options=options)
        if solution.x is None or solution.row_dual is None:
            continue
        dual = solution.row_dual / _LOSS_UNITS
        bound = exact_bound(data, dual)
        if bound is None:
            continue
        violation = float(exact_violation(relaxed_data, solution.x))
        gap = float(exact_objective(data, solution.x) - bound) + violation
        if gap < best_gap:
            best_gap = gap
            best_dual = tuple(dual.tolist())
            if not data.is_mip:
                best_point = solution.x.tolist()
        if best_gap <= _CLOSED_GAP * max(1.0, abs(float(bound))):
            break
    return tuple(map(float, best_point)), best_dual


# Files.


def read_program(path: Path) -> tuple[Program, Row]:
    """Read the program of an MPS file, and the record in the JSON file next to it.

    Args:
        path: the MPS file, plain or gzipped.

    Returns:
        (program, record). The record is empty if there is no JSON file.

    Raises:
        InvalidRequest, CorruptFile: the file is no MPS file, or the record is for another file.
    """
    content = read_bytes(path, _MAX_FILE_BYTES, "program")
    with prefix_errors_with_file(path):
        text, program = _parse_program(path, content)
    record = _read_record(path, text, program.data)
    scale = _read_scale(path, program.comments)
    return Program(program.name, program.data, program.sense, scale=scale), record


def _parse_program(path: Path, content: bytes) -> tuple[str, Any]:
    """Return (text of an MPS file, its program). Raises CorruptFile."""
    try:
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        text = _decode_text(content)
        return text, read_mps(text)
    except (OSError, EOFError, zlib.error, InvalidProgram) as error:
        raise CorruptFile(f"This file is not a readable MPS file: {error}.") from None


def _read_record(path: Path, text: str, data: Data) -> Row:
    """Read the record next to an MPS file. Return nothing if there is none."""
    record_path = path.with_name(_strip_suffix(path) + ".json")
    if not record_path.exists():
        return {}
    with prefix_errors_with_file(record_path):
        content = read_bytes(record_path, _MAX_FILE_BYTES, "program's record")
        record: Row = parse_json(content.decode("utf-8", "replace"))
        _check_record(record)
        digest = _hash_text(text)
        if record.get("sha256", digest) != digest:
            raise CorruptFile(
                f"The record is for another program than {path.name}: their sha256 differ."
            )
        _check_record_points(record, data)
    return record


def _read_scale(path: Path, comments: Sequence[str]) -> float:
    """Return the scale that a comment gives, or 1."""
    lines = [line for line in comments if line.startswith(SCALE_PREFIX)]
    if not lines:
        return 1.0
    try:
        scale = float(lines[0].removeprefix(SCALE_PREFIX))
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        raise CorruptFile(
            f"The comment {SCALE_PREFIX.strip()!r} of {path.name} must be followed by a finite "
            "number > 0."
        )
    return scale


def _decode_text(content: bytes) -> str:
    """Return the text of a file, whose comments and names may have an older encoding."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _check_record_points(record: Row, data: Data) -> None:
    """Raise CorruptFile unless point and dual are lists of numbers that fit the program."""
    for name, length in (("point", data.c.size), ("dual", data.A.shape[0])):
        values = record.get(name)
        if values is None:
            continue
        is_valid = isinstance(values, list) and len(values) == length
        if not is_valid or not all(map(_is_finite_number, values)):
            raise CorruptFile(f"{name} must be a list of {length} numbers.")


def _is_finite_number(value: Any) -> bool:
    """Return whether a value read from JSON is a finite number."""
    return type(value) in (int, float) and abs(value) <= float_info.max


def _check_record(record: Any) -> None:
    """Raise CorruptFile unless a record is an object whose optima are numbers."""
    if not isinstance(record, dict):
        raise CorruptFile("The record must be a JSON object.")
    for name in ("optimum", "value", "bound", "violation", "dual_bound"):
        value = record.get(name)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not is_number:
            raise CorruptFile(f"{name} must be a number.")


def known_range(record: Values) -> tuple[float | None, float | None]:
    """Return (bound, value) of a record: the interval of the optimum. None: not known.

    Args:
        record: a record. Its field `optimum` replaces a bound or a value that is missing.
    """
    optimum = record.get("optimum")
    return record.get("bound", optimum), record.get("value", optimum)


def _list_program_files(folder: Path) -> list[Path]:
    """List the MPS files of a folder in order. Raises InvalidRequest if there is none."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        return must("programs", _FILES_RULE, folder)
    suffixes = (".mps", ".mps.gz")
    files = [path for path in folder.iterdir() if path.name.lower().endswith(suffixes)]
    return sorted(files) or must("programs", _FILES_RULE, folder)


def folder_instances(folder: Path, names: str | None = None) -> tuple[list[Instance], list[str]]:
    """Read the programs of a folder as instances.

    Unchanged programs of the library are also judged as mechanisms.

    Args:
        folder: a folder, or one MPS file.
        names: patterns of names, separated by commas. None: all programs.

    Returns:
        (instances, sentences that name the files that were left out, with the reason).

    Raises:
        InvalidRequest: no file matches.
        CorruptFile: no file can be read.
    """
    all_files = _list_program_files(folder)
    files = [path for path in all_files if matches_pattern(_strip_suffix(path), names)]
    if not files:
        must("instances", "patterns that match some of the folder", repr(names))
    instances = list[Instance]()
    left_out = list[str]()
    for path in files:
        try:
            instances.append(_read_instance(path))
        except (CorruptFile, InvalidRequest) as error:
            if len(files) == 1:
                raise
            left_out.append(f"{path.name} was left out: {error}")
    if not instances:
        raise CorruptFile(f"None of the {len(files)} files of {folder} can be read: {left_out[0]}")
    return instances, left_out


def _strip_suffix(path: Path) -> str:
    """Return the name of a file without .mps or .mps.gz."""
    return re.sub(r"\.mps(\.gz)?$", "", path.name, flags=re.IGNORECASE)


def _read_instance(path: Path) -> Instance:
    """Read a file as an instance. Raises InvalidRequest, CorruptFile."""
    name = _strip_suffix(path)
    program, record = read_program(path)
    is_small = program.template.A.nnz <= _MAX_JUDGED_NONZEROS
    return Instance(
        name,
        str(record.get("model", "")),
        build=lambda: (program, {}),
        judge=_find_library_judge(name, record) if is_small else None,
        suite="library",
        parameters=str(record.get("parameters", "")),
        known_optimum=known_range(record),
    )


@lru_cache
def _index_library() -> dict[str, Instance]:
    """Return name -> instance for the programs of the library."""
    return {instance.name: instance for instance in select_instances("library")}


def _find_library_judge(name: str, record: Values) -> Any:
    """Return the judge of a program of the library, or None if the file is not that program."""
    instance = _index_library().get(name)
    if instance is None or record.get("format") != RECORD_FORMAT:
        return None
    if record.get("parameters") != instance.parameters:
        return None
    shape = record.get("rows"), record.get("columns")
    return instance.judge if instance.program_at_values().shape == shape else None


def verify_folder(folder: Path) -> list[Row]:
    """Compute the values of every record of a folder again, in rationals, from its two files.

    Each row has name, holds (whether the record agrees; None if it has no point) and proven (what
    the record proves, or why it cannot be read). If it has a point, also value, violation and
    dual_bound, computed again, and the bound of the record.

    Args:
        folder: a folder, or one MPS file.

    Raises:
        InvalidRequest, CorruptFile: the only file cannot be read.
    """
    files = _list_program_files(folder)
    rows = list[Row]()
    for path in files:
        try:
            rows.append(_verify_file(path))
        except (CorruptFile, InvalidRequest) as error:
            if len(files) == 1:
                raise
            rows.append({"name": path.name, "holds": False, "proven": str(error)})
    return rows


def _verify_file(path: Path) -> Row:
    """Return the row of `verify_folder` for one file. Raises InvalidRequest, CorruptFile."""
    program, record = read_program(path)
    if record.get("point") is None:
        return {"name": path.name, "holds": None, "proven": "the record has no point"}
    data = program.template
    exact_values = _evaluate_exactly(data, record["point"], record.get("dual"))
    kind = "linear relaxation" if data.is_mip else "program"
    return {
        "name": path.name,
        "holds": all(record[name] == value for name, value in exact_values.items()),
        **exact_values,
        "bound": record["bound"],
        "proven": f"no point of the {kind} has a value below dual_bound; the point violates the "
        "rows by at most violation",
    }
