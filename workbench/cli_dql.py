"""`workbench dql ...` and `workbench design laplace`: the dyadic quantized Laplace mechanism at the command line."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from workbench.console import Json, emit_json, err, out, table
from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    from workbench.mechanisms.dyadic_bits import DataLaw

__all__ = ["LAPLACE_EXAMPLES", "app", "laplace"]

LAPLACE_EXAMPLES = """Examples:

  workbench design laplace --epsilon 1 --bits 5

  workbench design laplace --epsilon 1 --bits 5 --code delta --json

  workbench design laplace --epsilon 0.1 --bits 8 --low 0 --high 100

  workbench design laplace --epsilon 1 --bits 6 --point 0.5"""

_ENCODE_EXAMPLES = """Examples:

  workbench dql keygen shared.key

  workbench dql encode --epsilon 1 --ell 2 --seed-file shared.key IN.csv OUT.bits

  workbench dql encode --epsilon 0.5 --ell 1.6 --seed-file shared.key --column age --code delta IN.csv OUT.bits"""

_DECODE_EXAMPLES = """Examples:

  workbench dql decode --epsilon 1 --ell 2 --seed-file shared.key OUT.bits NOISY.csv

  workbench dql decode --seed-file shared.key OUT.bits > NOISY.csv"""

_KEY_LIMIT = 1 << 16
_CAVEAT = "The guarantees are those of real arithmetic; floating-point attacks are outside them."

app = typer.Typer(
    help="Exact Laplace noise in few bits: encode and decode real data with a shared key.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

SeedFile = Annotated[Path, typer.Option("--seed-file", help="The shared key: a file of at least 16 random bytes.")]
CodeName = Annotated[str, typer.Option("--code", help="Signed Elias code of the integers: gamma or delta.")]


@app.command(epilog=_ENCODE_EXAMPLES)
def encode(
    source: Annotated[Path, typer.Argument(metavar="IN.csv", help="CSV file with the private numbers.")],
    target: Annotated[Path, typer.Argument(metavar="OUT.bits", help="The description to write.")],
    epsilon: Annotated[str, typer.Option(help="Database privacy per unit of |x - x'|, > 0; noise scale 1/epsilon.")],
    ell: Annotated[str, typer.Option(help="Decoder relaxation > 1: the decoder has ell * epsilon.")],
    seed_file: SeedFile,
    code: CodeName = "gamma",
    column: Annotated[str | None, typer.Option(help="Name or number (from 1) of the column, if several.")] = None,
    reach: Annotated[str, typer.Option(help="Public bound on |epsilon * x|.")] = "16777216",
    json: Json = False,
) -> None:
    """Add exact Laplace noise to a column of private numbers and describe the result in few bits.

    Each run uses a new nonce, so one key serves many files; every file costs its own privacy. The file is not
    encrypted: whoever reads it, with or without the key, learns at most what the decoder does (ell * epsilon).
    """
    from workbench.columns import read_column
    from workbench.mechanisms.dql_stream import read_header, write_stream
    from workbench.mechanisms.dyadic_laplace import DyadicLaplace
    from workbench.mechanisms.elias import check_code
    from workbench.mechanisms.piecewise_linear import positive_float

    _check_target(target)
    numbers = [positive_float(text, name) for text, name in ((epsilon, "epsilon"), (ell, "ell"), (reach, "reach"))]
    mechanism, chosen = DyadicLaplace(*numbers), check_code(code)
    key = _read_key(seed_file)
    values = read_column(source, column, largest=mechanism.reach / mechanism.epsilon)
    data = write_stream(values, mechanism, key, chosen)
    _write(target, data)
    report = {
        "file": str(target),
        "count": int(values.size),
        "bytes": len(data),
        "bits_per_scalar": 8 * read_header(data).size / values.size,
        "epsilon": mechanism.epsilon,
        "ell": mechanism.ell,
        "code": chosen,
        "decoder_epsilon": mechanism.decoder_epsilon,
        "database_epsilon": mechanism.database_epsilon,
        "database_epsilon_as_run": mechanism.database_epsilon_as_run,
        "mse": mechanism.mse,
        "max_level": mechanism.max_level,
    }
    if json:
        emit_json(report)
        return
    out.print(_report("", report))


@app.command(epilog=_DECODE_EXAMPLES)
def decode(
    source: Annotated[Path, typer.Argument(metavar="OUT.bits", help="A description that `dql encode` wrote.")],
    seed_file: SeedFile,
    target: Annotated[
        Path | None, typer.Argument(metavar="NOISY.csv", help="Noisy numbers to write; standard output if not given.")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Refuse a stream made with another epsilon.")] = None,
    ell: Annotated[str | None, typer.Option(help="Refuse a stream made with another ell.")] = None,
    json: Json = False,
) -> None:
    """Read the noisy numbers of a description. Another key, other parameters and any damage are refused.

    With --json and no NOISY.csv the numbers are the list "x_hat" of the object.
    """
    from workbench.columns import column_text
    from workbench.mechanisms.dql_stream import load_bytes, read_stream
    from workbench.mechanisms.piecewise_linear import positive_float

    if target is not None:
        _check_target(target)
    key = _read_key(seed_file)
    data = load_bytes(source)
    expected = {
        name: None if text is None else positive_float(text, name)
        for name, text in (("epsilon", epsilon), ("ell", ell))
    }
    values, header = read_stream(data, key, **expected)
    if target is not None:
        _write(target, column_text("x_hat", values).encode())
    mechanism = header.mechanism
    report: dict[str, object] = {
        "file": None if target is None else str(target),
        "count": header.count,
        "epsilon": mechanism.epsilon,
        "ell": mechanism.ell,
        "code": header.code,
        "decoder_epsilon": mechanism.decoder_epsilon,
        "database_epsilon": mechanism.database_epsilon,
        "mse": mechanism.mse,
    }
    if json:
        emit_json(report if target is not None else {**report, "x_hat": values.tolist()})
    elif target is None:
        sys.stdout.write(column_text("x_hat", values))
    else:
        out.print(_report("", report))


@app.command(epilog="Examples:\n\n  workbench dql keygen shared.key")
def keygen(
    target: Annotated[Path, typer.Argument(metavar="KEY", help="The file to create; never overwritten.")],
    json: Json = False,
) -> None:
    """Create a key file: 32 random bytes of the operating system, readable by its owner only."""
    try:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidRequest(f"key file must be a new file. Got {target.name}: {error.strerror}.") from None
    with os.fdopen(handle, "wb") as file:
        file.write(os.urandom(32))
    if json:
        emit_json({"file": str(target), "bytes": 32})
    else:
        out.print(f"Wrote a key of 32 random bytes to {target}.", highlight=False)


def laplace(
    epsilon: Annotated[str, typer.Option(help="Database privacy per unit of |x - x'|, > 0.")],
    bits: Annotated[str, typer.Option(help="Mean bits a scalar, > 0.")],
    code: CodeName = "gamma",
    low: Annotated[float | None, typer.Option(help="The data are uniform on [low, high]; -1 by default.")] = None,
    high: Annotated[float | None, typer.Option(help="The data are uniform on [low, high]; 1 by default.")] = None,
    point: Annotated[float | None, typer.Option(help="The datum is this number (instead of --low, --high).")] = None,
    json: Json = False,
) -> None:
    """The dyadic quantized Laplace mechanism with the best decoder privacy whose exact mean length fits the budget."""
    from workbench.mechanisms.dyadic_design import design_laplace
    from workbench.mechanisms.elias import check_code
    from workbench.mechanisms.piecewise_linear import positive_float

    data = _data(low, high, point)
    made = design_laplace(positive_float(epsilon, "epsilon"), positive_float(bits, "bits"), check_code(code), data)
    report = asdict(made)
    if json:
        emit_json(report)
        return
    if not made.reachable:
        out.print(
            f"Not reachable: no ell brings the mean length for epsilon = {made.epsilon:g} and {made.data} to "
            f"{made.bits:g} bits of Elias {made.code}; the least is {made.least_bits:.6g}.",
            highlight=False,
        )
        return
    shown = {name: value for name, value in report.items() if name not in ("reachable", "least_bits")}
    out.print(_report("Dyadic quantized Laplace", shown))
    if made.ell is not None and not _encodable(made.epsilon, made.ell):
        err.print("note: dql encode cannot use an ell so close to 1; allow fewer bits.", highlight=False)
    if made.decoder_epsilon is not None and made.decoder_epsilon > 100 * made.epsilon:
        err.print("note: at this ell the decoder learns nearly everything; allow more bits.", highlight=False)


def _data(low: float | None, high: float | None, point: float | None) -> DataLaw:
    """The law of one scalar. Raises InvalidRequest in the words of the options."""
    from workbench.mechanisms.dyadic_bits import DataLaw

    if point is not None:
        if low is not None or high is not None:
            raise InvalidRequest("point must be given without low and high.")
        if not math.isfinite(point):
            InvalidRequest.must("point", "a finite number", point)
        return DataLaw.point(point)
    low, high = -1.0 if low is None else low, 1.0 if high is None else high
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        InvalidRequest.must("low and high", "finite numbers with low < high", f"{low:g} and {high:g}")
    return DataLaw.uniform(low, high)


def _encodable(epsilon: float, ell: float) -> bool:
    from workbench.mechanisms.dyadic_laplace import DyadicLaplace

    try:
        return DyadicLaplace(epsilon, ell).max_level >= 0
    except InvalidRequest:
        return False


def _report(title: str, facts: Mapping[str, object]) -> Table:
    """Names and values; an epsilon in full, because nine digits could understate it."""
    rows = [[name, repr(value) if "epsilon" in name else value] for name, value in facts.items()]
    return table(title, ["", ""], rows, caption=_CAVEAT)


def _read_key(path: Path) -> bytes:
    """The bytes of a key file. Raises InvalidRequest when it is missing, short, long, or plainly not random."""
    from workbench.mechanisms.randomness import MIN_KEY_BYTES

    rule = f"a readable file of at least {MIN_KEY_BYTES} random bytes"
    try:
        with path.open("rb") as file:
            key = file.read(_KEY_LIMIT + 1)
    except OSError as error:
        raise InvalidRequest(f"seed-file must be {rule}. Got {path.name}: {error.strerror}.") from None
    if not MIN_KEY_BYTES <= len(key) <= _KEY_LIMIT:
        size = f"more than {_KEY_LIMIT}" if len(key) > _KEY_LIMIT else len(key)
        InvalidRequest.must("seed-file", rule, f"{path.name} with {size} bytes")
    if len(set(key)) < MIN_KEY_BYTES // 2:
        InvalidRequest.must("seed-file", rule, f"{path.name}, whose bytes take {len(set(key))} values")
    return key


def _check_target(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        InvalidRequest.must("output folder", "an existing folder", path.parent)
    if path.is_dir():
        InvalidRequest.must("output", "a file", f"the folder {path.name}")


def _write(path: Path, content: bytes) -> None:
    from workbench.papers.reproduce import write_whole

    try:
        write_whole(path, content)
    except OSError as error:
        raise InvalidRequest(f"output must be a file that can be written. Got {path.name}: {error.strerror}.") from None
