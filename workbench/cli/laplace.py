"""Run the commands `laplace encode`, `decode` and `keygen`: exact Laplace noise in few bits.

The mechanism is `workbench.mechanisms.dyadic_laplace`. `encode` turns a column of numbers into an
encoded file; `decode` turns this file into the numbers plus Laplace noise. Both need the same key.
"""

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

# A key file is read up to this many bytes.
_MAX_KEY_BYTES = 1 << 16
_NEW_KEY_BYTES = 32
_CAPTION = "The guarantees hold in real arithmetic. Floating-point attacks are not covered."
_EXACT_CAPTION = (
    "The certificate proves decoder_epsilon for the integers as they were drawn. The database's "
    "guarantees hold in real arithmetic."
)


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
    certificate: Path | None,
) -> Report:
    """Add exact Laplace noise to a column of private numbers, and encode the result in few bits.

    One key can be used for many files. Every file of the same data uses more of the privacy budget.
    The file is not encrypted. It guarantees ell * epsilon to every reader, with or without the key.

    Args:
        source: CSV file with the private numbers.
        target: File to write.
        epsilon: Privacy of the decoded numbers, per unit of distance.
        ell: The ratio ℓ > 1 of the guarantee of the file to that of the decoded numbers.
        seed_file: File with the shared key.
        code: Elias code of the integers.
        column: Name or number of the column.
        header: Whether the first row has names.
        reach: Public bound on |epsilon * x|.
        certificate: File for the proof of the guarantee of the encoded integers, which are then
            drawn in exact arithmetic.
    """
    from workbench.data.csv_column import read_column
    from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
    from workbench.mechanisms.dyadic_laplace.elias import check_code
    from workbench.mechanisms.dyadic_laplace.exact_integers import DyadicIntegers
    from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_positive_float
    from workbench.mechanisms.dyadic_laplace.stream import read_header, write_stream

    check_outputs(
        {"input": source, "key": seed_file}, {"output": target, "certificate": certificate}
    )
    mechanism = DyadicLaplace(
        read_positive_float(epsilon, "epsilon"),
        read_positive_float(ell, "ell"),
        read_positive_float(reach, "reach"),
    )
    elias_code = check_code(code)
    key = _read_key(seed_file)
    values = read_column(source, column, mechanism.reach / mechanism.epsilon, header=header)
    data = write_stream(values, mechanism, key, elias_code, is_exact=certificate is not None)
    if certificate is not None:
        DyadicIntegers.from_mechanism(mechanism).save(certificate)
    write_output(target, data)
    facts = {
        "file": str(target),
        "count": int(values.size),
        "bytes": len(data),
        "bits_per_scalar": 8 * read_header(data).size / values.size,
        **_list_budgets(mechanism, elias_code),
        "database_epsilon_as_run": mechanism.database_epsilon_as_run,
        "mse": mechanism.mse,
        "max_level": mechanism.max_level,
    }
    caption = _CAPTION
    if certificate is not None:
        facts["certificate"] = str(certificate)
        caption = _EXACT_CAPTION
    return Report(facts, [_make_laplace_table(facts, caption)])


def _list_budgets(mechanism: Any, code: str) -> Values:
    """Return the parameters of a mechanism and its two guarantees, for a report."""
    return {
        "epsilon": mechanism.epsilon,
        "ell": mechanism.ell,
        "code": code,
        "decoder_epsilon": mechanism.decoder_epsilon,
        "database_epsilon": mechanism.database_epsilon,
    }


def decode(
    source: Path,
    target: Path | None,
    *,
    seed_file: Path,
    epsilon: str | None,
    ell: str | None,
    json: bool,
) -> Report | None:
    """Decode the noisy numbers of an encoded file.

    Decoding fails if the key or a parameter differs, or if the file is damaged. With --json and no
    NOISY.csv, the JSON object contains the numbers as the list "x_hat".

    Args:
        source: Encoded file, as `laplace encode` writes it.
        target: File for the noisy numbers. None: stdout.
        seed_file: File with the shared key.
        epsilon: The ε with which the file must have been encoded. None: any.
        ell: The ℓ with which the file must have been encoded. None: any.
        json: Whether to print a JSON object.
    """
    from workbench.data.csv_column import format_csv_column
    from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_positive_float
    from workbench.mechanisms.dyadic_laplace.stream import load_bytes, read_stream

    check_outputs({"description": source, "key": seed_file}, {"output": target})
    key = _read_key(seed_file)
    data = load_bytes(source)
    required_values = {}
    for name, text in (("epsilon", epsilon), ("ell", ell)):
        required_values[name] = None if text is None else read_positive_float(text, name)
    with prefix_errors_with_file(source):
        values, header = read_stream(data, key, **required_values)
    if target:
        write_output(target, format_csv_column("x_hat", values).encode())
    elif not json:
        sys.stdout.write(format_csv_column("x_hat", values))
        return None
    facts = {
        "file": target and str(target),
        "count": header.count,
        **_list_budgets(header.mechanism, header.code),
        "mse": header.mechanism.mse,
    }
    table = _make_laplace_table(facts, _CAPTION)
    if not target:
        facts["x_hat"] = values.tolist()
    return Report(facts, [table])


def make_key_file(target: Path) -> Report:
    """Create a key file: 32 random bytes of the operating system, readable by its owner only.

    Args:
        target: File to create. It must not exist.
    """
    try:
        write_new_file(target, os.urandom(_NEW_KEY_BYTES), private=True)
    except OSError as error:
        must("key file", "a new file", f"{target.name or target}: {error.strerror}")
    sentence = f"Wrote a key of {_NEW_KEY_BYTES} random bytes to {target}."
    return Report({"file": str(target), "bytes": _NEW_KEY_BYTES}, [sentence])


def _make_laplace_table(facts: Values, caption: str) -> Any:
    """Make a table of names and values, with a caption.

    An epsilon is shown with all digits, because nine digits could understate it.
    """
    rows = []
    for name, value in facts.items():
        rows.append([name, repr(value) if "epsilon" in name else value])
    return make_table("", ["", ""], rows, caption=caption)


def _read_key(path: Path) -> bytes:
    """Return the bytes of a key file. Raises InvalidRequest if they are too few or not random."""
    from workbench.mechanisms.dyadic_laplace.randomness import MIN_KEY_BYTES

    rule = f"a file of at least {MIN_KEY_BYTES} random bytes"
    key = read_bytes(path, _MAX_KEY_BYTES, "seed-file")
    if len(key) < MIN_KEY_BYTES:
        must("seed-file", rule, f"{path.name} with {len(key)} bytes")
    # Random bytes hardly ever take so few different values.
    if len(set(key)) < MIN_KEY_BYTES // 2:
        must("seed-file", rule, f"{path.name}, whose bytes take {len(set(key))} values")
    if others_can_read(path):
        err.print(
            f"note: other users can read the key {path.name}; chmod 600 keeps it to its owner.",
            soft_wrap=True,
        )
    return key
