"""Reading and writing files safely: whole or not at all, bounded, strict, and no traceback for a hostile one."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from workbench.errors import CorruptFile

__all__ = ["LIMIT", "parse_json", "ratio", "read_text", "spelled", "whole", "write_whole"]

LIMIT = 16 << 20  # bytes; a mechanism of 10^5 masses is a tenth of that
_DIGITS = 400  # of a JSON number
_NUMERAL = 1 << 16  # characters of a number in a string
_LETTERS = frozenset("0123456789abcdefABCDEF")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside it, then renamed onto it. A device or pipe is written into, and a
    symbolic link followed: neither is replaced by a file."""
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.write(content)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_text(path: Path | str, limit: int = LIMIT) -> str:
    """The UTF-8 text of a regular file of at most `limit` bytes. Raises CorruptFile, also for no such file."""
    where = Path(path)
    try:
        if not stat.S_ISREG(where.stat().st_mode):
            raise CorruptFile(f"{where.name} is not a regular file.")
        with where.open("rb") as file:
            content = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CorruptFile(f"{where.name} cannot be read: {reason}.") from None
    if len(content) > limit:
        raise CorruptFile(f"{where.name} is larger than {limit} bytes.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFile(f"{where.name} is not UTF-8 text (byte {error.start}).") from None


def parse_json(text: str) -> Any:
    """Strict JSON: no duplicate keys, no NaN or Infinity, numbers of at most 400 characters, nesting that a reader can
    follow. Raises CorruptFile with the reason."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            double = Counter(key for key, _ in items).most_common(1)[0][0]
            raise CorruptFile(f"The key {double[:60]!r} appears twice in one object.")
        return found

    def constant(name: str) -> NoReturn:
        raise CorruptFile(f"{name} is not a number of JSON.")

    def integer(digits: str) -> int:
        if len(digits) > _DIGITS:
            raise CorruptFile(f"A number has {len(digits)} digits; {_DIGITS} are allowed.")
        return int(digits)

    def real(digits: str) -> float:
        if len(digits) > _DIGITS:
            raise CorruptFile(f"A number has {len(digits)} characters; {_DIGITS} are allowed.")
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise CorruptFile(f"The number {digits[:40]} is too large.")
        return value

    try:
        found = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=integer, parse_float=real)
        if "\\ud" in text.lower():  # half of a character, which no output could show
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except json.JSONDecodeError as error:
        raise CorruptFile(f"Not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except UnicodeEncodeError:
        raise CorruptFile("A string holds half a character (a lone surrogate).") from None
    except RecursionError:
        raise CorruptFile("Objects are nested too deeply.") from None


def whole(text: Any, what: str, bits: int = 4 * _NUMERAL) -> int:
    """A non-negative integer written in hexadecimal ("0x1f"), read in linear time. Raises CorruptFile."""
    if not isinstance(text, str) or not text.startswith("0x") or not 3 <= len(text) <= bits // 4 + 2:
        raise CorruptFile(f"{what} must be a hexadecimal integer such as 0x1f.")
    digits = text[2:]
    if not _LETTERS.issuperset(digits) or (digits[0] == "0" and len(digits) > 1):
        raise CorruptFile(f"{what} must be a hexadecimal integer such as 0x1f.")
    return int(digits, 16)


def ratio(text: Any, what: str, characters: int = 5000) -> Fraction:
    """An exact number in a string: "0.1", "1e-9", "-1/3", "0x1f/0x20". Raises CorruptFile."""
    from workbench.errors import InvalidRequest
    from workbench.numbers import exact

    if isinstance(text, str) and text.lstrip("-").startswith("0x") and text.count("/") == 1:
        top, bottom = (whole(part, what) for part in text.removeprefix("-").split("/"))
        if not bottom:
            raise CorruptFile(f"{what} divides by zero.")
        return Fraction(-top if text.startswith("-") else top, bottom)
    if not isinstance(text, str) or not 0 < len(text) <= characters or not text.isascii() or text != text.strip():
        raise CorruptFile(f"{what} must be an exact number in a string, such as '0.1' or '1/3'.")
    if "_" in text:
        raise CorruptFile(f"{what} must be an exact number in a string, such as '0.1' or '1/3'.")
    try:
        return exact(text, what)
    except (InvalidRequest, ValueError) as error:
        raise CorruptFile(f"{what} must be an exact number: {error}") from None


def spelled(value: Fraction) -> str:
    """A rational as an exact decimal if it has one of moderate length, else as a ratio: read back by `ratio`.

    Very long ones are ratios of hexadecimal integers, which can be read in linear time.
    """
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 4000:
        sign = "-" if value < 0 else ""
        return f"{sign}{hex(abs(value.numerator))}/{hex(value.denominator)}"
    twos = (value.denominator & -value.denominator).bit_length() - 1
    rest, fives = value.denominator >> twos, 0
    while rest % 5 == 0 and fives <= 400:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > 400:
        return f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    if not places:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
