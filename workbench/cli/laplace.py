"""`workbench laplace ...`: the dyadic quantized Laplace mechanism at the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from workbench.cli.console import Report, err, make_table
from workbench.cli.output_paths import check_outputs, write_output
from workbench.errors import must
from workbench.exact.objects import Values
from workbench.io.files import others_can_read, prefix_errors_with_file, read_bytes, write_new_file

_KEY_LIMIT = 1 << 16
_CAVEAT = "The guarantees are those of real arithmetic; floating-point attacks are outside them."


def encode(
    source: Path,
    target: Path,
    *,
    epsilon: str,
    ell: str,
    seed_file: Path,
    code: str,
    column: str | None,
    header: bool | None,
    reach: str,
) -> Report:
    """Add exact Laplace noise to a column of private numbers and describe the result in few bits.

    Each run uses a new nonce, so one key serves many files; every file costs its own privacy. The file is not
    encrypted: whoever reads it, with or without the key, learns at most what the decoder does (ell * epsilon).
    """
    from workbench.data.csv_column import read_column
    from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
    from workbench.mechanisms.dyadic_laplace.elias import check_code
    from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_positive_float
    from workbench.mechanisms.dyadic_laplace.stream import read_header, write_stream

    check_outputs({"input": source, "key": seed_file}, {"output": target})
    numbers = [
        read_positive_float(text, name)
        for text, name in ((epsilon, "epsilon"), (ell, "ell"), (reach, "reach"))
    ]
    mechanism, chosen = DyadicLaplace(*numbers), check_code(code)
    key = _read_key(seed_file)
    values = read_column(source, column, mechanism.reach / mechanism.epsilon, header=header)
    data = write_stream(values, mechanism, key, chosen)
    write_output(target, data)
    size = {"bytes": len(data), "bits_per_scalar": 8 * read_header(data).size / values.size}
    facts = {"file": str(target), "count": int(values.size), **size, **_budgets(mechanism, chosen)}
    as_run = {"database_epsilon_as_run": mechanism.database_epsilon_as_run}
    facts |= as_run | {"mse": mechanism.mse, "max_level": mechanism.max_level}
    return Report(facts, [_shown(facts)])


def _budgets(mechanism: Any, code: str) -> Values:
    budgets = {name: getattr(mechanism, name) for name in ("decoder_epsilon", "database_epsilon")}
    return {"epsilon": mechanism.epsilon, "ell": mechanism.ell, "code": code, **budgets}


def decode(
    source: Path,
    target: Path | None,
    *,
    seed_file: Path,
    epsilon: str | None,
    ell: str | None,
    json: bool,
) -> Report | None:
    """Read the noisy numbers of a description. Another key, other parameters and any damage are refused.

    With --json and no NOISY.csv the numbers are the list "x_hat" of the object.
    """
    from workbench.data.csv_column import format_csv_column
    from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_positive_float
    from workbench.mechanisms.dyadic_laplace.stream import load_bytes, read_stream

    check_outputs({"description": source, "key": seed_file}, {"output": target})
    key = _read_key(seed_file)
    data = load_bytes(source)
    wanted = {"epsilon": epsilon, "ell": ell}
    expected = {
        name: None if text is None else read_positive_float(text, name)
        for name, text in wanted.items()
    }
    with prefix_errors_with_file(source):
        values, header = read_stream(data, key, **expected)
    if target:
        write_output(target, format_csv_column("x_hat", values).encode())
    elif not json:
        sys.stdout.write(format_csv_column("x_hat", values))
        return None
    mechanism = header.mechanism
    facts = {
        "file": target and str(target),
        "count": header.count,
        **_budgets(mechanism, header.code),
    }
    facts |= {"mse": mechanism.mse}
    return Report(facts if target else {**facts, "x_hat": values.tolist()}, [_shown(facts)])


def keygen(target: Path) -> Report:
    """Create a key file: 32 random bytes of the operating system, readable by its owner only."""
    try:
        write_new_file(target, os.urandom(32), private=True)
    except OSError as error:
        must("key file", "a new file", f"{target.name or target}: {error.strerror}")
    return Report(
        {"file": str(target), "bytes": 32}, [f"Wrote a key of 32 random bytes to {target}."]
    )


def _shown(facts: Values) -> Any:
    """Names and values; an epsilon in full, because nine digits could understate it."""
    rows = [[name, repr(value) if "epsilon" in name else value] for name, value in facts.items()]
    return make_table("", ["", ""], rows, caption=_CAVEAT)


def _read_key(path: Path) -> bytes:
    """The bytes of a key file. Raises InvalidRequest when it is missing, short, long, or plainly not random."""
    from workbench.mechanisms.dyadic_laplace.randomness import MIN_KEY_BYTES

    rule = f"a file of at least {MIN_KEY_BYTES} random bytes"
    key = read_bytes(path, _KEY_LIMIT, "seed-file")
    if len(key) < MIN_KEY_BYTES:
        must("seed-file", rule, f"{path.name} with {len(key)} bytes")
    if len(set(key)) < MIN_KEY_BYTES // 2:
        must("seed-file", rule, f"{path.name}, whose bytes take {len(set(key))} values")
    if others_can_read(path):
        err.print(
            f"note: other users can read the key {path.name}; chmod 600 keeps it to its owner.",
            soft_wrap=True,
        )
    return key
