"""Read and write files safely: atomic writes, bounded reads, strict JSON, clear errors."""

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

PICTURE_FORMATS = ("png", "svg", "pdf")  # Formats of saved figures.
# Files of more bytes are refused. A mechanism with 10^5 masses needs a tenth of this size.
MAX_FILE_BYTES = 16 << 20
_MAX_JSON_DIGITS = 400  # A number of JSON with more characters is refused.
# A decimal with more zeros before or after its significant digits is written with an exponent.
_MAX_ZEROS = 30
_MAX_HEX_DIGITS = 1 << 16  # A hexadecimal integer with more digits is refused.
_MAX_RATIO_CHARACTERS = 5000  # A longer decimal or ratio in a string is refused.
_MAX_DECIMAL_BITS = 4000  # Larger integers are written in hexadecimal.
_MAX_DECIMAL_PLACES = 400  # A rational with more decimals is written as a ratio.
# The name of an unfinished file begins with at most this many characters of the final name.
_MAX_NAME_CHARACTERS = 40
_MAX_SHOWN_CHARACTERS = 60  # An error shows at most this many characters of a text of a file.
_MAX_SHOWN_DIGITS = 40  # An error shows at most this many digits of a number.
# Modes of new files: only the owner may read and write, or everybody. The umask may remove bits.
_OWNER_MODE = 0o600
_DEFAULT_MODE = 0o666
_WRITE_BITS = 0o222  # The bits of a mode that let anybody write.
_OTHERS_BITS = 0o077  # The bits of a mode that give rights to others than the owner.
_DATA_SUFFIXES = (".csv", ".tsv", ".txt", ".json")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # Spreadsheets take such texts for formulas.
# A text of these characters alone is a number or a list of numbers, not a formula.
_NUMBER_CHARACTERS = frozenset("+-0123456789.,;:/e inf")
_HEXADECIMAL = re.compile("0x(0|[1-9a-fA-F][0-9a-fA-F]*)")
# Whether this context may read files and test whether they exist. False in `forbid_file_access`.
_may_read: ContextVar[bool] = ContextVar("may_read", default=True)


@contextlib.contextmanager
def forbid_file_access() -> Iterator[None]:
    """Forbid this context to read files or to test whether they exist.

    It is used for options of remote users, who must not learn anything about local files.
    """
    token = _may_read.set(False)
    try:
        yield
    finally:
        _may_read.reset(token)


def path_exists(path: Path | str) -> bool:
    """Return whether a file or folder exists. Always False inside `forbid_file_access`.

    Args:
        path: Path of the file or folder.
    """
    # A text may be too long for a name, or contain a zero byte.
    with contextlib.suppress(OSError, ValueError):
        return _may_read.get() and Path(path).exists()
    return False


def check_may_read(path: Path | str, name: str) -> None:
    """Refuse a path inside `forbid_file_access`, whether or not the file exists.

    Call it before a path is tested, so that the error tells nothing about local files.

    Args:
        path: Path of the file.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: This context may not read files.
    """
    if not _may_read.get():
        must(name, "spelled out, because no file is read here", repr(str(path)))


def names_file(option: object) -> bool:
    """Return whether the value of an option names a data file.

    A Path, the name of an existing file, and a text that ends with .csv, .tsv, .txt or .json name a
    data file.

    Args:
        option: Value of the option.
    """
    if isinstance(option, Path):
        return True
    return isinstance(option, str) and (option.endswith(_DATA_SUFFIXES) or path_exists(option))


def read_file_path(path: object, name: str = "file") -> Path:
    """Read a path from a text or a Path.

    Args:
        path: A text or a Path.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The object is neither, or contains a zero byte.
    """
    if not isinstance(path, (str, os.PathLike)):
        must(name, "the path of a file", path)
    text = os.fspath(path)
    if not isinstance(text, str) or "\0" in text:
        must(name, "the path of a file", path)
    return Path(text)


def write_atomically(
    path: Path | str, content: bytes | Iterable[bytes], *, private: bool = False
) -> None:
    """Write a file completely or not at all, by renaming a finished temporary file.

    A device or pipe is written directly, and a symbolic link is followed. Neither is replaced by a
    file. An existing file keeps its mode.

    Args:
        path: Path of the file.
        content: The content, or its parts in order.
        private: Whether a new file can only be read by its owner. Default: as the umask allows.

    Raises:
        InvalidRequest: The path is a folder or a read-only file.
        OSError: Writing fails.
    """
    path = read_file_path(path)
    refuse_read_only(path, "file")
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name[:_MAX_NAME_CHARACTERS]}.{os.urandom(8).hex()}")
    write_new_file(unfinished, content, private=private, like=path)
    try:
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_json(path: Path | str, data: Any, *, private: bool = False) -> None:
    """Write data as indented JSON, by `write_atomically`.

    Args:
        path: Path of the file.
        data: Lists and dictionaries of texts, numbers, booleans and None.
        private: Whether a new file can only be read by its owner.

    Raises:
        InvalidRequest: The path is a folder or a read-only file.
        OSError: Writing fails.
    """
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode(), private=private)


def write_new_file(
    path: Path, content: bytes | Iterable[bytes], *, private: bool = False, like: Path | None = None
) -> None:
    """Write a file that must not exist yet. A failed write leaves no file.

    Args:
        path: Path of the file.
        content: The content, or its parts in order.
        private: Whether the file can only be read by its owner (mode 600).
        like: File whose mode is copied, if it exists.

    Raises:
        OSError: The file exists, or writing fails.
    """
    mode = _OWNER_MODE if private else _DEFAULT_MODE
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
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
    """Raise InvalidRequest for a folder, and for a file without permission to write.

    The check is necessary because renaming another file onto a read-only file succeeds.

    Args:
        path: Path of the file.
        name: Name of the option in errors.
    """
    if path.is_dir():
        must(name, "a file", f"the folder {path.name or path}")
    if path.is_file() and not path.stat().st_mode & _WRITE_BITS:
        must(name, "a writable file", f"{path.name}, which is read-only")


def check_folder_writable(folder: Path) -> None:
    """Try to write a temporary file into a folder. Raises OSError if this fails.

    The mode of the folder alone does not tell whether writing works.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")


def others_can_read(path: Path) -> bool:
    """Return whether other users than its owner may read a file."""
    return os.name == "posix" and bool(path.stat().st_mode & _OTHERS_BITS)


def require_distinct_files(
    inputs: Mapping[str, Path | str | None], outputs: Mapping[str, Path | str | None]
) -> None:
    """Check, before any work, that no output is the same file as an input or another output.

    Existing files are compared by device and inode, with links followed. Others are compared by
    folder and name. Devices and pipes cannot be overwritten, so they are ignored.

    Args:
        inputs: Path of each input by its name in errors. None for one that is not given.
        outputs: Path of each output by its name in errors. None for one that is not given.

    Raises:
        InvalidRequest: Two files are the same.
    """
    names_by_identity: dict[tuple[object, ...], str] = {}
    for files in (inputs, outputs):
        for name, path in files.items():
            identity = None
            if path is not None:
                identity = _identify_file(Path(path))
            if identity is None:
                continue
            if files is outputs and identity in names_by_identity:
                must(name, f"another file than the {names_by_identity[identity]}", path)
            names_by_identity[identity] = f"{name} {path}"


def _identify_file(path: Path) -> tuple[object, ...] | None:
    """Return a value that is equal for all paths of one file, or None for a device or pipe."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        real_path = path
        if "\0" not in str(path):
            real_path = Path(os.path.realpath(path))
        with contextlib.suppress(OSError, ValueError):
            folder = real_path.parent.stat()
            return folder.st_dev, folder.st_ino, real_path.name
        return (str(real_path),)
    mode = status.st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return status.st_dev, status.st_ino
    return None


def read_bytes(path: Path | str, limit: int, name: str = "file") -> bytes:
    """Read the bytes of a regular file.

    Devices and pipes are refused: they may never end, and opening one may wait forever.

    Args:
        path: Path of the file.
        limit: Largest accepted number of bytes.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The path is no regular file, or the file cannot be read.
        CorruptFile: The file is too large.
    """
    file_path = read_file_path(path, name)
    shown_name = file_path.name or str(path)
    check_may_read(path, name)
    try:
        mode = file_path.stat().st_mode
        # A device may act when it is opened, so only regular files are opened.
        if stat.S_ISREG(mode):
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            handle = os.open(file_path, flags)
            with os.fdopen(handle, "rb") as file:
                # The opened file may be another one than the file that was checked.
                status = os.fstat(handle)
                mode = status.st_mode
                content = b""
                if stat.S_ISREG(mode) and status.st_size <= limit:
                    content = file.read(limit + 1)
            if content is None:
                # Some files of the kernel have no content yet.
                must(name, "a file that is readable without waiting", shown_name)
    except FileNotFoundError:
        must(name, "an existing file", shown_name)
    except OSError as error:
        must(name, "a readable file", f"{shown_name}: {error.strerror or error}")
    if not stat.S_ISREG(mode):
        kind = "a device, pipe or socket"
        if stat.S_ISDIR(mode):
            kind = "a folder"
        must(name, "a regular file", f"{shown_name}: {kind}")
    if max(status.st_size, len(content)) > limit:
        raise CorruptFile(f"{shown_name} is larger than {limit} bytes.")
    return content


def read_would_block(path: Path) -> bool:
    """Return whether the first read of a file would wait, as for some files of the kernel."""
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
    """Put the name of a file before the messages of CorruptFile and InvalidRequest."""
    try:
        yield
    except (CorruptFile, InvalidRequest) as error:
        name = Path(path).name
        if name in str(error):
            raise
        raise type(error)(f"{name}: {error}") from error.__cause__


def read_text(path: Path | str, limit: int = MAX_FILE_BYTES, name: str = "file") -> str:
    """Read the UTF-8 text of a regular file, as `read_bytes` does.

    Args:
        path: Path of the file.
        limit: Largest accepted number of bytes.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The path is no regular file, or the file cannot be read.
        CorruptFile: The file is too large, or is not UTF-8.
    """
    content = read_bytes(path, limit, name)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        is_utf_16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        hint = ""
        if is_utf_16:
            hint = ", but UTF-16: save it as UTF-8"
        raise CorruptFile(
            f"{Path(path).name} is not UTF-8 text (byte {error.start}){hint}."
        ) from None


def escape_spreadsheet_text(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would take for a formula.

    Other values are returned unchanged.

    Args:
        cell: A cell of a table.
    """
    if not isinstance(cell, str) or cell[:1] not in _FORMULA_STARTS:
        return cell
    if _NUMBER_CHARACTERS.issuperset(cell):
        return cell
    return f"'{cell}"


def parse_json(text: str, *, decimals: bool = False) -> Any:
    """Parse strict JSON: no duplicate keys, no NaN or Infinity, no very long numbers.

    Args:
        text: Contents of a JSON file.
        decimals: Whether a number with a point or exponent becomes the Decimal that it spells.
            Default: the nearest float.

    Raises:
        CorruptFile: The text is not strict JSON, or nested too deeply.
    """

    def build_object(items: list[tuple[str, Any]]) -> dict[str, Any]:
        """Build an object and refuse duplicate keys."""
        data = dict(items)
        if len(data) != len(items):
            ((duplicate, _),) = Counter(key for key, _ in items).most_common(1)
            shown_key = duplicate[:_MAX_SHOWN_CHARACTERS]
            raise CorruptFile(f"The key {shown_key!r} appears twice in one object.")
        return data

    def refuse_constant(name: str) -> NoReturn:
        """Refuse NaN and Infinity."""
        raise CorruptFile(f"{name} is not a number of JSON.")

    def parse_number(digits: str, *, is_integer: bool = False) -> Any:
        """Parse a number of at most `_MAX_JSON_DIGITS` characters."""
        if len(digits) > _MAX_JSON_DIGITS:
            raise CorruptFile(f"A number has {len(digits)} digits; {_MAX_JSON_DIGITS} are allowed.")
        if is_integer:
            return int(digits)
        if math.isinf(float(digits)):
            raise CorruptFile(f"The number {digits[:_MAX_SHOWN_DIGITS]} is too large.")
        if decimals:
            return Decimal(digits)
        return float(digits)

    try:
        data = json.loads(
            text,
            object_pairs_hook=build_object,
            parse_constant=refuse_constant,
            parse_int=partial(parse_number, is_integer=True),
            parse_float=parse_number,
        )
        # Half of a surrogate pair is no character, so no output could show it. Encoding it raises
        # UnicodeEncodeError.
        if "\\ud" in text.lower():
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
    """Parse a non-negative hexadecimal integer such as "0x1f", in linear time.

    Args:
        text: Text of the number. Anything else is refused.
        what: Name of the number in errors.

    Raises:
        CorruptFile: The text is no such integer, or too long.
    """
    if (
        not isinstance(text, str)
        or len(text) > len("0x") + _MAX_HEX_DIGITS
        or not _HEXADECIMAL.fullmatch(text)
    ):
        raise CorruptFile(f"{what} must be a hexadecimal integer such as 0x1f.")
    return int(text, 16)


def parse_ratio(text: Any, what: str, characters: int = _MAX_RATIO_CHARACTERS) -> Fraction:
    """Parse an exact number in a string: "0.1", "1e-9", "-1/3", "0x1f/0x20".

    Args:
        text: Text of the number, such as "0.1" or "1/3". Anything else is refused.
        what: Name of the number in errors.
        characters: Largest length of a decimal or of a ratio of decimal integers.

    Raises:
        CorruptFile: The text is no exact number, or too long.
    """
    from workbench.exact.numbers import parse_rational

    if isinstance(text, str) and text.lstrip("-").startswith("0x") and text.count("/") == 1:
        numerator, denominator = (
            parse_hex_integer(part, what) for part in text.removeprefix("-").split("/")
        )
        if not denominator:
            raise CorruptFile(f"{what} divides by zero.")
        return Fraction(-numerator if text.startswith("-") else numerator, denominator)
    value = None
    if isinstance(text, str) and 0 < len(text) <= characters and text == text.strip():
        value = parse_rational(text)
    if value is None:
        raise CorruptFile(f"{what} must be an exact number in a string, such as '0.1' or '1/3'.")
    return value


def format_fraction(value: Fraction) -> str:
    """Format a rational exactly, so that `parse_ratio` reads it back.

    The text is a decimal if the decimal is finite and not too long, and otherwise a ratio. Very
    large integers are hexadecimal, because hexadecimal digits are read in linear time.

    Args:
        value: Rational number.
    """
    sign = ""
    if value < 0:
        sign = "-"
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits > _MAX_DECIMAL_BITS:
        return f"{sign}{hex(abs(value.numerator))}/{hex(value.denominator)}"
    # A rational has k decimals at most if its denominator divides 10^k.
    if 10**_MAX_DECIMAL_PLACES % value.denominator:
        return f"{value.numerator}/{value.denominator}"
    places = next(k for k in range(_MAX_DECIMAL_PLACES + 1) if 10**k % value.denominator == 0)
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    # The number of places is the smallest possible, so only an integer has trailing zeros.
    significant_digits = digits
    if not places:
        significant_digits = digits.rstrip("0")
    trailing_zeros = len(digits) - len(significant_digits)
    if max(trailing_zeros, places - len(digits)) > _MAX_ZEROS:
        return f"{sign}{significant_digits}e{trailing_zeros - places}"
    return f"{Decimal(f'{sign}{digits}e-{places}'):f}"
