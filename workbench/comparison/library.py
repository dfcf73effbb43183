"""The library of programs: every linear and mixed-integer program of the suite "library" as a file anybody can solve.

A folder holds for each program NAME.mps (free MPS; its head says what it is) and NAME.json:

    name, model, parameters         what it states
    sha256                          of the MPS file
    rows, columns, nonzeros, integers, scale     scale: a solver with absolute tolerances does well to multiply x by it
    value, bound                    the optimum lies in [bound, value] but for `violation`
    violation                       the largest by which the point misses a row or bound, exact
    proof                           what the bound rests on; of a mixed-integer program two solvers, where installed
    point, dual                     x of the value; multipliers y whose Lagrangian value, in rationals, is the bound
    made_by                         versions

`verify_folder` decides value, violation and bound again from the two files alone. For a mixed-integer program the dual
proves the bound of its linear relaxation only (`dual_bound`); its `bound` is the least of two solvers'
branch and bound, and says so.
Somebody else's file needs no more beside it than {"optimum": 1.5}, or nothing.
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
_OPTIMA_FILE = Path(__file__).with_name("optima.json")  # tools/optima.py writes it from an export
_MAX_FILE_BYTES = 200_000_000  # bytes of a file
_MAX_JUDGED_NONZEROS = 5000  # non-zeros up to which answers are judged as mechanisms
_LOSS_UNITS = 2.0**20
_COMPLETE_TERMINATIONS = (Termination.OPTIMAL, Termination.GAP_LIMIT)
_MIN_IMPROVEMENT = 1e-6  # relative: by how much another solver's point must cost less to be the one that is written
_CLOSED_GAP = 1e-11  # relative gap at which nothing more is tried


def _describe_program(instance: Instance, program: Program) -> Row:
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
    """The programs whose names match patterns, with at most so many non-zeros. Raises InvalidRequest."""
    for instance in select_instances("library", names):
        program = instance.program_at_values()
        if most is None or program.template.A.nnz <= most:
            yield instance, program


def list_library(names: str | None = None, most: int | None = None) -> list[Row]:
    """A row for each program, with the hash of its file and, where that is in optima.json, value, bound and proof
    of its optimum as they were exported; nothing is solved. Raises InvalidRequest.
    """
    known, rows = json.loads(_OPTIMA_FILE.read_text("utf-8")), []
    for instance, program in iterate_library(names, most):
        digest, stored = (
            _hash_text(_write_program_text(instance, program)),
            known.get(instance.name, {}),
        )
        proven = (
            stored if stored.get("sha256") == digest else dict.fromkeys(("value", "bound", "proof"))
        )
        rows.append(_describe_program(instance, program) | proven | {"sha256": digest})
    return rows


def _write_program_text(instance: Instance, program: Program) -> str:
    head = [f"{instance.model}: {instance.parameters}", f"{SCALE_PREFIX}{program.scale!r}"]
    return format_mps(instance.name, program.template, program.variables, head)


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def export_library(
    folder: Path,
    names: str | None = None,
    most: int | None = None,
    *,
    time_limit: float = 60.0,
    progress: Progress = ignore_progress,
) -> list[Row]:
    """Write programs with what is known of their optima, solved by HiGHS; returns their rows.

    A file is written whole or not at all, so an interrupted export keeps what it has. Raises InvalidRequest.
    """
    rows, wanted = [], list(iterate_library(names, most))
    folder.mkdir(parents=True, exist_ok=True)
    for done, (instance, program) in enumerate(wanted):
        progress(done, len(wanted), instance.name)
        text = _write_program_text(instance, program)
        program = Program(
            program.name, read_mps(text).data, scale=program.scale
        )  # what the file says
        row = _describe_program(instance, program)
        with translate_errors():
            solution, *others = [
                solve(program, {}, solver, Options(time_limit=time_limit))
                for solver in _choose_judges(program)
            ]
        row |= {"sha256": _hash_text(text), **_describe_optimum(program, solution, others)}
        row["made_by"] = {
            "workbench": workbench.__version__,
            "highs": get_backend("highs").version(),
        }
        write_atomically(folder / f"{instance.name}.mps", text.encode())
        write_atomically(
            folder / f"{instance.name}.json",
            (json.dumps({"format": RECORD_FORMAT, **row}) + "\n").encode(),
        )
        rows.append({key: value for key, value in row.items() if key not in ("point", "dual")})
    return rows


def _choose_judges(program: Program) -> list[str]:
    """HiGHS; of a mixed-integer program also others that are installed, whose bounds are to agree."""
    return [
        "highs",
        *(
            name
            for name in ("scip", "ortools:gscip")
            if program.is_mip and get_backend(name).is_installed()
        ),
    ][:2]


def _describe_optimum(program: Program, solution: Solution, others: Sequence[Solution] = ()) -> Row:
    """Value, violation and bound of a solution, exact where they say so. others: of other solvers; the least bound of
    all counts."""
    record = {
        "value": None,
        "bound": None,
        "violation": None,
        "point": None,
        "dual": None,
        "dual_bound": None,
    }
    solved = [each for each in (solution, *others) if each.objective is not None]
    if not solved:
        return {**record, "proof": f"none: {solution.raw_status}"}
    best = min(solved, key=lambda each: float(each.objective or 0.0))
    if solution.objective is None or float(
        best.objective or 0.0
    ) < solution.objective - _MIN_IMPROVEMENT * abs(solution.objective):
        solution, others = best, [each for each in (solution, *others) if each is not best]
    assert solution.x is not None
    data = program.template
    point, dual = _sharpen_solution(data, solution.x.tolist(), solution.seconds)
    record |= _evaluate_exactly(data, point, dual) | {
        "point": list(point),
        "dual": None if dual is None else list(dual),
    }
    if program.is_mip:
        known = [solution, *others]
        least = min(
            (-math.inf if each.bound is None else each.bound for each in known), default=-math.inf
        )
        words = " and ".join(f"{each.solver} {each.version}" for each in known)
        proof = f"the least bound of branch and bound of {words}, their word"
        if early := [
            f"{each.solver} ({each.termination})"
            for each in known
            if each.termination not in _COMPLETE_TERMINATIONS
        ]:
            proof += (
                f"; stopped early: {', '.join(early)}, so that the value may not be the optimum"
            )
        return record | {"bound": None if least == -math.inf else least, "proof": proof}
    return record | {
        "bound": record["dual_bound"],
        "proof": "Lagrangian value of the dual, in rationals",
    }


def _evaluate_exactly(data: Data, point: Sequence[float], dual: Sequence[float] | None) -> Row:
    """What a point and multipliers prove, in rationals."""
    proven = None if dual is None else exact_bound(data, dual)
    return {
        "value": float(exact_objective(data, point)),
        "violation": float(exact_violation(data, point)),
        "dual_bound": None if proven is None else round_down(proven),
    }


def _sharpen_solution(
    data: Data, x: Sequence[float], seconds: float
) -> tuple[Sequence[float], Sequence[float] | None]:
    """(point, multipliers) that prove a linear program's optimum to rounding; of a mixed-integer one x and those of its
    relaxation.

    Some programs are so ill-conditioned that a residual of 1e-7 hides 1e-5 of the optimum. They are solved in units of
    2^-20 with losses multiplied as well, by simplex and, where that leaves a gap, by interior point with crossover.
    """
    whole, best, dual = data.is_mip, tuple(x), None
    relaxed = replace(data, integrality=data.integrality & False, c=data.c * _LOSS_UNITS)
    gap = math.inf
    for algorithm in (None, "interior-point"):
        options = Options(
            feasibility_tolerance=1e-9,
            dual_feasibility_tolerance=1e-9,
            algorithm=algorithm,
            time_limit=60 + 20 * seconds,
        )
        solution = solve(
            Program("in small units", relaxed, scale=_LOSS_UNITS), {}, "highs", options
        )
        if (
            solution.x is None
            or solution.row_dual is None
            or (bound := exact_bound(data, solution.row_dual / _LOSS_UNITS)) is None
        ):
            continue
        left = float(exact_objective(data, solution.x) - bound) + float(
            exact_violation(relaxed, solution.x)
        )
        if left < gap:
            gap, dual = left, tuple((solution.row_dual / _LOSS_UNITS).tolist())
            best = best if whole else tuple(solution.x.tolist())
        if gap <= _CLOSED_GAP * max(1.0, abs(float(bound))):
            break
    return tuple(map(float, best)), dual


# Files.


def read_program(path: Path) -> tuple[Program, Row]:
    """The program in an MPS file (plain or gzipped), and what is known of it: the JSON beside it, or nothing.

    Raises InvalidRequest, CorruptFile: the file is no MPS file, or not the one that the JSON speaks of.
    """
    content = read_bytes(path, _MAX_FILE_BYTES, "program")
    beside = path.with_name(_strip_suffix(path) + ".json")
    with prefix_errors_with_file(path):
        try:
            text = _decode_text(
                gzip.decompress(content) if path.suffix.lower() == ".gz" else content
            )
            program = read_mps(text)
        except (OSError, EOFError, zlib.error, InvalidProgram) as error:
            raise CorruptFile(f"This is no MPS file that can be read: {error}.") from None
    known = {}
    if beside.exists():
        with prefix_errors_with_file(beside):
            known = parse_json(
                read_bytes(beside, _MAX_FILE_BYTES, "program's record").decode("utf-8", "replace")
            )
            _check_record(known)
            digest = _hash_text(text)
            if known.get("sha256", digest) != digest:
                raise CorruptFile(
                    f"The record is of another program than {path.name}: their sha256 differ."
                )
            _check_record_points(known, program.data)
    try:
        scale = next(
            (
                float(line.removeprefix(SCALE_PREFIX))
                for line in program.comments
                if line.startswith(SCALE_PREFIX)
            ),
            1.0,
        )
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        raise CorruptFile(
            f"The comment {SCALE_PREFIX.strip()!r} of {path.name} must be followed by a finite number > 0."
        )
    return Program(program.name, program.data, program.sense, scale=scale), known


def _decode_text(content: bytes) -> str:
    """The text of a file, whose comments and names may be in an older encoding."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _check_record_points(known: Row, data: Data) -> None:
    for name, length in (("point", data.c.size), ("dual", data.A.shape[0])):
        values = known.get(name)
        if values is None:
            continue
        finite = isinstance(values, list) and all(
            type(v) in (int, float) and abs(v) <= float_info.max for v in values
        )
        if not finite or len(values) != length:
            raise CorruptFile(f"{name} must be a list of {length} numbers.")


def _check_record(known: Any) -> None:
    if not isinstance(known, dict):
        raise CorruptFile("The record must be a JSON object.")
    for name in ("optimum", "value", "bound", "violation", "dual_bound"):
        if not isinstance(known.get(name, 0.0), (int, float, type(None))) or isinstance(
            known.get(name), bool
        ):
            raise CorruptFile(f"{name} must be a number.")


def known_range(known: Values) -> tuple[float | None, float | None]:
    """(bound, value) of a record: where the optimum is known to lie. `optimum` stands for both."""
    optimum = known.get("optimum")
    return (known.get("bound", optimum), known.get("value", optimum))


def _list_program_files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        return must("programs", "an MPS file, or a folder with files named .mps or .mps.gz", folder)
    files = sorted(
        path for path in folder.iterdir() if path.name.lower().endswith((".mps", ".mps.gz"))
    )
    return files or must(
        "programs", "an MPS file, or a folder with files named .mps or .mps.gz", folder
    )


def folder_instances(folder: Path, names: str | None = None) -> tuple[list[Instance], list[str]]:
    """The programs of a folder as instances, and why files were left out.

    Programs of the library that are unchanged are judged as mechanisms too.

    Raises:
        InvalidRequest: when no file is meant.
        CorruptFile: when no file can be read.
    """
    files = [
        path for path in _list_program_files(folder) if matches_pattern(_strip_suffix(path), names)
    ]
    if not files:
        must("instances", "patterns that match some of the folder", repr(names))
    instances, left_out = list[Instance](), list[str]()
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
    return re.sub(r"\.mps(\.gz)?$", "", path.name, flags=re.IGNORECASE)


def _read_instance(path: Path) -> Instance:
    name = _strip_suffix(path)
    program, known = read_program(path)
    judge = (
        _find_library_judge(name, known) if program.template.A.nnz <= _MAX_JUDGED_NONZEROS else None
    )
    model, parameters = (str(known.get(part, "")) for part in ("model", "parameters"))
    return Instance(
        name,
        model,
        lambda: (program, {}),
        judge,
        "library",
        parameters=parameters,
        known_optimum=known_range(known),
    )


@lru_cache
def _index_library() -> dict[str, Instance]:
    return {instance.name: instance for instance in select_instances("library")}


def _find_library_judge(name: str, known: Values) -> Any:
    """The judge of the library's own instance where the file is the one that it makes."""
    instance = _index_library().get(name)
    if (
        instance is None
        or known.get("format") != RECORD_FORMAT
        or known.get("parameters") != instance.parameters
    ):
        return None
    return (
        instance.judge
        if instance.program_at_values().shape == (known.get("rows"), known.get("columns"))
        else None
    )


def verify_folder(folder: Path) -> list[Row]:
    """Decide every record of a folder again, in rationals, from the two files alone.

    Each row: name, value, bound, violation (recomputed), proven: what holds ("" where the record says otherwise).
    """
    rows, files = list[Row](), _list_program_files(folder)
    for path in files:
        try:
            program, known = read_program(path)
        except (CorruptFile, InvalidRequest) as error:
            if len(files) == 1:
                raise
            rows.append({"name": path.name, "holds": False, "proven": str(error)})
            continue
        data = program.template
        if known.get("point") is None:
            rows.append({"name": path.name, "holds": None, "proven": "the record has no point"})
            continue
        decided = _evaluate_exactly(data, known["point"], known.get("dual"))
        holds = all(known[name] == value for name, value in decided.items())
        what = "linear relaxation" if data.is_mip else "program"
        words = f"no point of the {what} costs less than dual_bound; the point misses a row by violation"
        rows.append(
            {"name": path.name, "holds": holds, **decided, "bound": known["bound"], "proven": words}
        )
    return rows
