"""Reading and writing files safely: whole or not at all, bounded, strict, and no traceback for a hostile one."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from workbench.errors import CorruptFile, InvalidRequest, must

PICTURE_FORMATS = ("png", "svg", "pdf")  # files of a figure
MAX_FILE_BYTES = 16 << 20  # bytes; a mechanism of 10^5 masses is a tenth of that
_DIGITS = 400  # of a JSON number
_ZEROS = 30  # at either end of a decimal, beyond which it has an exponent
_NUMERAL = 1 << 16  # characters of a number in a string
_NUMBERS = frozenset("+-0123456789.,;:/e inf")  # lists of numbers, which are no formulas
_HEXADECIMAL = re.compile("0x(0|[1-9a-fA-F][0-9a-fA-F]*)")
_reading: ContextVar[bool] = ContextVar("reading", default=True)


@contextlib.contextmanager
def forbid_file_access() -> Iterator[None]:
    """While it lasts no file is read or looked for: texts come from somebody who may not see this machine's files."""
    token = _reading.set(False)
    try:
        yield
    finally:
        _reading.reset(token)


def path_exists(path: Path | str) -> bool:
    """Whether there is a file or a folder of that name; within `no_files` there is none."""
    with contextlib.suppress(
        OSError, ValueError
    ):  # a text too long for a name, or with a zero byte
        return _reading.get() and Path(path).exists()
    return False


def names_file(option: object) -> bool:
    """Whether an option names a file of data: a path, or a text that is the name of one or ends as such names do."""
    suffixes = (".csv", ".tsv", ".txt", ".json")
    return isinstance(option, Path) or (
        isinstance(option, str) and (option.endswith(suffixes) or path_exists(option))
    )


def read_file_path(path: object, name: str = "file") -> Path:
    """A path of a file, as text or Path. name: what a message calls it. Raises InvalidRequest."""
    if (
        not isinstance(path, (str, os.PathLike))
        or not isinstance(text := os.fspath(path), str)
        or "\0" in text
    ):
        must(name, "the path of a file", path)
    return Path(text)


def write_atomically(
    path: Path | str, content: bytes | Iterable[bytes], *, private: bool = False
) -> None:
    """Write a file whole or not at all: beside it, then renamed onto it. A device or pipe is written into, and a
    symbolic link followed: neither is replaced by a file. content: at once, or in parts.

    An existing file keeps its mode; a new one gets what the umask allows, or, private, is its owner's alone.
    Raises InvalidRequest for a folder and for a file that is read-only, OSError.
    """
    path = read_file_path(path)
    refuse_read_only(path, "file")
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name[:40]}.{os.urandom(8).hex()}")
    write_new_file(unfinished, content, private=private, like=path)
    try:
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_json(path: Path | str, data: Any, *, private: bool = False) -> None:
    """`write_whole` of JSON on lines. Raises InvalidRequest, OSError."""
    write_atomically(
        path, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode(), private=private
    )


def write_new_file(
    path: Path, content: bytes | Iterable[bytes], *, private: bool = False, like: Path | None = None
) -> None:
    """Write a file that must not exist yet; nothing is left of one that could not be written. Raises OSError.

    private: its owner's alone (mode 600); like: a file whose mode it gets, if there is one.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if like is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(path, stat.S_IMODE(like.stat().st_mode))
            file.writelines([content] if isinstance(content, bytes) else content)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def refuse_read_only(path: Path, name: str) -> None:
    """Refuse a folder, and a file that nobody may write: renaming another onto it would. Raises InvalidRequest."""
    if path.is_dir():
        must(name, "a file", f"the folder {path.name or path}")
    if path.is_file() and not path.stat().st_mode & 0o222:
        must(name, "a file that can be written", f"{path.name}, which is read-only")


def check_folder_writable(folder: Path) -> None:
    """Write a file without a name into a folder: its mode does not tell whether that works. Raises OSError."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")


def others_can_read(path: Path) -> bool:
    """Whether other users than its owner may read a file."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)


def require_distinct_files(
    inputs: Mapping[str, Path | str | None], outputs: Mapping[str, Path | str | None]
) -> None:
    """Refuse, before any work, an output that is the same file as an input or as another output.

    inputs, outputs: what a message calls a file -> its path, None where it was not given. Files are compared by device
    and inode with links followed, those that do not exist yet by their folder and name. Devices and pipes hold nothing
    that could be overwritten. Raises InvalidRequest.
    """
    seen: dict[tuple[object, ...], str] = {}
    for files in (inputs, outputs):
        for name, path in files.items():
            mark = None if path is None else _identify_file(Path(path))
            if mark is None:
                continue
            if files is outputs and mark in seen:
                must(name, f"another file than the {seen[mark]}", path)
            seen[mark] = f"{name} {path}"


def _identify_file(path: Path) -> tuple[object, ...] | None:
    """What two names of one file share; None for what is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        real = path if "\0" in str(path) else Path(os.path.realpath(path))
        with contextlib.suppress(OSError, ValueError):
            folder = real.parent.stat()
            return folder.st_dev, folder.st_ino, real.name
        return (str(real),)
    kind = status.st_mode
    return (status.st_dev, status.st_ino) if stat.S_ISREG(kind) or stat.S_ISDIR(kind) else None


def read_bytes(path: Path | str, limit: int, name: str = "file") -> bytes:
    """The bytes of a regular file, no device and no pipe: those may never end, and opening one may wait for ever.

    limit: of bytes; name: what a message calls the file. Raises InvalidRequest for what is no regular file or cannot
    be read, CorruptFile for one that is too large.
    """
    where = read_file_path(path, name)
    called = where.name or str(path)
    if not _reading.get():
        must(name, "spelled out, because no file is read here", repr(str(path)))
    try:
        kind = where.stat().st_mode
        if stat.S_ISREG(kind):  # a device may act when it is opened
            handle = os.open(
                where, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            )
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(
                    handle
                )  # what was opened may be another file than what was looked at
                kind = status.st_mode
                content = (
                    file.read(limit + 1) if stat.S_ISREG(kind) and status.st_size <= limit else b""
                )
            if content is None:  # a file of the kernel that has nothing to say yet
                must(name, "a file that can be read without waiting", called)
    except OSError as error:
        must(name, "a file that can be read", f"{called}: {error.strerror or error}")
    if not stat.S_ISREG(kind):
        words = "a folder" if stat.S_ISDIR(kind) else "a device, pipe or socket"
        must(name, "a regular file", f"{called}: {words}")
    if max(status.st_size, len(content)) > limit:
        raise CorruptFile(f"{called} is larger than {limit} bytes.")
    return content


def read_would_block(path: Path) -> bool:
    """Whether the first read of a regular file would wait, as it does of some files of the kernel."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        os.read(handle, 1)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


@contextlib.contextmanager
def prefix_errors_with_file(path: Path | str) -> Iterator[None]:
    """Put the name of a file before the messages about what it holds (CorruptFile, InvalidRequest)."""
    try:
        yield
    except (CorruptFile, InvalidRequest) as error:
        name = Path(path).name
        if name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error.__cause__


def read_text(path: Path | str, limit: int = MAX_FILE_BYTES, name: str = "file") -> str:
    """The UTF-8 text of a regular file; see `read_bytes`. Raises InvalidRequest, CorruptFile."""
    content = read_bytes(path, limit, name)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        other = (
            ", but UTF-16: save it as UTF-8" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        )
        raise CorruptFile(
            f"{Path(path).name} is not UTF-8 text (byte {error.start}){other}."
        ) from None


def escape_spreadsheet_text(cell: Any) -> Any:
    """A cell of a table as it is, but a text that a spreadsheet would take for a formula after an apostrophe."""
    formula = (
        isinstance(cell, str)
        and cell[:1] in ("=", "+", "-", "@", "\t", "\r")
        and not _NUMBERS.issuperset(cell)
    )
    return f"'{cell}" if formula else cell


def parse_json(text: str, *, decimals: bool = False) -> Any:
    """Strict JSON: no duplicate keys, no NaN or Infinity, numbers of at most 400 characters, nesting that a reader can
    follow. decimals: numbers with a point or exponent as the Decimals they spell, not as the nearest floats.
    Raises CorruptFile with the reason."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(items)
        if len(data) != len(items):
            double = Counter(key for key, _ in items).most_common(1)[0][0]
            raise CorruptFile(f"The key {double[:60]!r} appears twice in one object.")
        return data

    def constant(name: str) -> NoReturn:
        raise CorruptFile(f"{name} is not a number of JSON.")

    def number(digits: str, *, whole: bool = False) -> Any:
        if len(digits) > _DIGITS:
            raise CorruptFile(f"A number has {len(digits)} digits; {_DIGITS} are allowed.")
        if not whole and math.isinf(float(digits)):
            raise CorruptFile(f"The number {digits[:40]} is too large.")
        return int(digits) if whole else Decimal(digits) if decimals else float(digits)

    try:
        integer = partial(number, whole=True)
        data = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_constant=constant,
            parse_int=integer,
            parse_float=number,
        )
        if "\\ud" in text.lower():  # half of a character, which no output could show
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except json.JSONDecodeError as error:
        raise CorruptFile(
            f"Not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except UnicodeEncodeError:
        raise CorruptFile("A string holds half a character (a lone surrogate).") from None
    except RecursionError:
        raise CorruptFile("Objects are nested too deeply.") from None


def parse_hex_integer(text: Any, what: str) -> int:
    """A non-negative integer written in hexadecimal ("0x1f"), read in linear time. Raises CorruptFile."""
    if not isinstance(text, str) or len(text) > _NUMERAL + 2 or not _HEXADECIMAL.fullmatch(text):
        raise CorruptFile(f"{what} must be a hexadecimal integer such as 0x1f.")
    return int(text, 16)


def parse_ratio(text: Any, what: str, characters: int = 5000) -> Fraction:
    """An exact number in a string: "0.1", "1e-9", "-1/3", "0x1f/0x20". Raises CorruptFile."""
    from workbench.exact.numbers import parse_rational

    if isinstance(text, str) and text.lstrip("-").startswith("0x") and text.count("/") == 1:
        top, bottom = (parse_hex_integer(part, what) for part in text.removeprefix("-").split("/"))
        if not bottom:
            raise CorruptFile(f"{what} divides by zero.")
        return Fraction(-top if text.startswith("-") else top, bottom)
    short = isinstance(text, str) and 0 < len(text) <= characters and text == text.strip()
    value = parse_rational(text) if short else None
    if value is None:
        raise CorruptFile(f"{what} must be an exact number in a string, such as '0.1' or '1/3'.")
    return value


def format_fraction(value: Fraction) -> str:
    """A rational as an exact decimal if it has one of moderate length, else as a ratio: read back by `ratio`.

    Very long ones are ratios of hexadecimal integers, which can be read in linear time.
    """
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > 4000:
        sign = "-" if value < 0 else ""
        return f"{sign}{hex(abs(value.numerator))}/{hex(value.denominator)}"
    if 10**400 % value.denominator:
        return f"{value.numerator}/{value.denominator}"
    places = next(k for k in range(401) if 10**k % value.denominator == 0)
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    short = digits if places else digits.rstrip("0")
    more, sign = len(digits) - len(short) - places, "-" if value < 0 else ""
    if max(len(digits) - len(short), places - len(digits)) > _ZEROS:
        return f"{sign}{short}e{more}"
    return f"{Decimal(f'{sign}{digits}e-{places}'):f}"
