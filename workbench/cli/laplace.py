"""`workbench laplace ...`: the dyadic quantized Laplace mechanism at the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from workbench.cli.console import Json, emit_json, err, out, table
from workbench.cli.output_paths import output_file, write_output
from workbench.errors import InvalidRequest
from workbench.io.files import distinct_files, named, others_can_read, read_bytes, write_new

__all__ = ["app"]

_ENCODE_EXAMPLES = """Examples:

  workbench laplace keygen shared.key

  workbench laplace encode --epsilon 1 --ell 2 --seed-file shared.key IN.csv OUT.bits

  workbench laplace encode --epsilon 0.5 --ell 1.6 --seed-file shared.key --column age --code delta IN.csv OUT.bits"""

_DECODE_EXAMPLES = """Examples:

  workbench laplace decode --epsilon 1 --ell 2 --seed-file shared.key OUT.bits NOISY.csv

  workbench laplace decode --seed-file shared.key OUT.bits > NOISY.csv"""

_KEY_LIMIT = 1 << 16
_CAVEAT = "The guarantees are those of real arithmetic; floating-point attacks are outside them."

app = typer.Typer(
    help="Exact Laplace noise in few bits: encode and decode real data with a shared key.",
    epilog=_ENCODE_EXAMPLES,
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
    from workbench.io.csv_column import read_column
    from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
    from workbench.mechanisms.dyadic_laplace.elias import check_code
    from workbench.mechanisms.dyadic_laplace.piecewise_linear import positive_float
    from workbench.mechanisms.dyadic_laplace.stream import read_header, write_stream

    output_file(target, "output")
    distinct_files({"input": source, "key": seed_file}, {"output": target})
    numbers = [positive_float(text, name) for text, name in ((epsilon, "epsilon"), (ell, "ell"), (reach, "reach"))]
    mechanism, chosen = DyadicLaplace(*numbers), check_code(code)
    key = _read_key(seed_file)
    values = read_column(source, column, largest=mechanism.reach / mechanism.epsilon)
    data = write_stream(values, mechanism, key, chosen)
    write_output(target, data)
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
    source: Annotated[Path, typer.Argument(metavar="OUT.bits", help="A description that `laplace encode` wrote.")],
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
    from workbench.io.csv_column import column_text
    from workbench.mechanisms.dyadic_laplace.piecewise_linear import positive_float
    from workbench.mechanisms.dyadic_laplace.stream import load_bytes, read_stream

    if target is not None:
        output_file(target, "output")
        distinct_files({"description": source, "key": seed_file}, {"output": target})
    key = _read_key(seed_file)
    data = load_bytes(source)
    expected = {
        name: None if text is None else positive_float(text, name)
        for name, text in (("epsilon", epsilon), ("ell", ell))
    }
    with named(source):
        values, header = read_stream(data, key, **expected)
    if target is not None:
        write_output(target, column_text("x_hat", values).encode())
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


@app.command(epilog="Examples:\n\n  workbench laplace keygen shared.key")
def keygen(
    target: Annotated[Path, typer.Argument(metavar="KEY", help="The file to create; never overwritten.")],
    json: Json = False,
) -> None:
    """Create a key file: 32 random bytes of the operating system, readable by its owner only."""
    try:
        write_new(target, os.urandom(32), private=True)
    except OSError as error:
        InvalidRequest.must("key file", "a new file", f"{target.name or target}: {error.strerror}")
    if json:
        emit_json({"file": str(target), "bytes": 32})
    else:
        out.print(f"Wrote a key of 32 random bytes to {target}.", highlight=False)


def _report(title: str, facts: Mapping[str, object]) -> Table:
    """Names and values; an epsilon in full, because nine digits could understate it."""
    rows = [[name, repr(value) if "epsilon" in name else value] for name, value in facts.items()]
    return table(title, ["", ""], rows, caption=_CAVEAT)


def _read_key(path: Path) -> bytes:
    """The bytes of a key file. Raises InvalidRequest when it is missing, short, long, or plainly not random."""
    from workbench.mechanisms.dyadic_laplace.randomness import MIN_KEY_BYTES

    rule = f"a file of at least {MIN_KEY_BYTES} random bytes"
    key = read_bytes(path, _KEY_LIMIT, "seed-file")
    if len(key) < MIN_KEY_BYTES:
        InvalidRequest.must("seed-file", rule, f"{path.name} with {len(key)} bytes")
    if len(set(key)) < MIN_KEY_BYTES // 2:
        InvalidRequest.must("seed-file", rule, f"{path.name}, whose bytes take {len(set(key))} values")
    if others_can_read(path):
        err.print(
            f"note: other users can read the key {path.name}; chmod 600 keeps it to its owner.",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    return key
