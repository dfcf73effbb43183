"""Run random command lines, calls and files, many of them wrong, and check how each ends.

    python tests/fuzz/fuzz_requests.py [COUNT] [SEED]

Default: 10000 cases of each kind with seed 1. A command line must exit with 0, or with 2 and one
line of the form "Kind: sentence.". A call, and the reader of a file, must return or raise an error
of the workbench. All cases run in this process, with warnings as errors and a time limit.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shlex
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer

import workbench as wb
from workbench.cli import commands, main

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.requests import CALLS, COMMANDS, READERS, WORDS, WRONG, write_files

__all__ = ["CASES", "Report", "check_all", "run_cases"]

MAX_CASE_SECONDS = 20
MAX_MESSAGE_LENGTH = 1000
EXIT_CODES = (0, 2)
# Texts that `damage` inserts into a file.
INSERTED_TEXTS = (
    b"1e999",
    b"nan",
    b'"',
    b"\x00",
    b"\xff\xfe",
    b"[" * 300,
    b"9" * 500,
    b"-",
    b"\r",
)


class TooSlow(BaseException):
    """A case took more than MAX_CASE_SECONDS. It is no Exception, so that no case catches it."""


@contextlib.contextmanager
def strict_limits() -> Iterator[None]:
    """Turn warnings into errors, and raise TooSlow after MAX_CASE_SECONDS."""

    def raise_too_slow(*_: object) -> None:
        raise TooSlow

    saved_handler = signal.signal(signal.SIGALRM, raise_too_slow)
    signal.alarm(MAX_CASE_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, saved_handler)


@contextlib.contextmanager
def folder_of_files() -> Iterator[None]:
    """Enter a temporary folder with one file of every kind."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files(Path())
        yield


# Command lines.


def draw_command(rng: random.Random) -> list[str]:
    """Draw a valid command line and set, change or remove up to three of its options."""
    words, valid_options = rng.choice(COMMANDS)
    options: dict[str, str | None] = dict(valid_options)  # None: an option without a value.
    all_names = [name for _, each in COMMANDS for name in each]
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        name = rng.choice([*options, rng.choice(all_names)])
        action_share = rng.random()
        if action_share < 0.1:
            options.pop(name, None)
        elif action_share < 0.9:
            options[name] = rng.choice(WORDS)
        else:
            options[name] = None
    line = words.split()
    if rng.random() < 0.1:
        line[rng.randrange(len(line))] = rng.choice(WORDS)
    if rng.random() < 0.3:
        line.append("--json")
    for name, value in options.items():
        line.append(name if value is None else f"{name}={value}")
    return line


@cache
def build_commands_once() -> None:
    """Build the tree of commands, which takes ten times as long as most command lines."""
    commands.app = typer.main.get_command(commands.app)  # type: ignore[assignment]


def check_command(line: list[str]) -> str:
    """Run a command line and return "exit 0" or "exit 2".

    Raises:
        AssertionError: it ended neither in an answer nor in one sentence.
    """
    build_commands_once()
    stdout = io.StringIO()
    stderr = io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr), strict_limits():
        try:
            main(line)
        except SystemExit as stop:
            code = stop.code or 0
    output = stdout.getvalue()
    errors = stderr.getvalue()
    case = f"{shlex.join(line)}\n{output[-300:]}{errors}"
    assert code in EXIT_CODES, f"exit code {code}: {case}"
    is_usage = output.lstrip().startswith("Usage:")
    messages = [text for text in errors.splitlines() if not text.startswith("note: ")]
    assert len(messages) == (1 if code == 2 and not is_usage else 0), case
    for message in messages:
        kind, _, sentence = message.partition(": ")
        assert kind == "Interrupted" or issubclass(getattr(wb, kind), wb.WorkbenchError), case
        assert sentence.endswith((".", "?")), case
        assert len(message) < MAX_MESSAGE_LENGTH, case
    if "--json" in line and not is_usage and not {"--help", "--"} & {*line}:
        try:
            json.loads(output, parse_constant=_refuse_constant)
        except ValueError as error:
            raise AssertionError(f"{error}: {case}") from None
    return f"exit {code}"


def _refuse_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python's reader of JSON accepts."""
    raise ValueError(f"{name} is not JSON")


def _describe_foreign_error(case: str, error: BaseException) -> AssertionError:
    """Return the failure of a case that raised an error of another kind than the workbench's."""
    traceback_end = "".join(traceback.format_tb(error.__traceback__)[-3:])
    return AssertionError(f"{case}\n{traceback_end}{type(error).__name__}: {error}")


# Calls from Python.


def draw_call(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Draw a name of CALLS, and arguments of which one or two are wrong."""
    name = rng.choice(list(CALLS))
    arguments = dict(CALLS[name][1])
    for _ in range(rng.choice((1, 1, 2))):
        arguments[rng.choice(list(arguments))] = rng.choice(WRONG)
    return name, arguments


def check_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Make a call, and return "answer" or the name of the error of the workbench.

    Raises:
        AssertionError: the call raised another error, or its message is not one sentence.
    """
    case = f"{name}({dict(arguments)})"
    try:
        with strict_limits(), contextlib.redirect_stdout(io.StringIO()):
            CALLS[name][0](**arguments)
    except wb.WorkbenchError as error:
        message = str(error)
        assert "\n" not in message, f"{case}: {message!r}"
        assert message.endswith((".", "?", ")")), f"{case}: {message!r}"
        assert len(message) < MAX_MESSAGE_LENGTH, f"{case}: {message!r}"
        return type(error).__name__
    except (Exception, TooSlow) as error:
        raise _describe_foreign_error(case, error) from None
    return "answer"


# Files.


def damage(rng: random.Random, content: bytes) -> bytes:
    """Return a file with bytes changed, removed, repeated or inserted."""
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        position = rng.randrange(len(damaged) + 1)
        action_share = rng.random()
        if action_share < 0.5 and position < len(damaged):
            # The bytes are 0, 255, and the characters 0, 9, ", comma and newline.
            damaged[position] = rng.choice((0, 255, 48, 57, 34, 44, 10, rng.randrange(256)))
        elif action_share < 0.6:
            del damaged[position:]
        elif action_share < 0.75:
            del damaged[position : position + rng.randrange(1, 20)]
        elif action_share < 0.9:
            part = damaged[position : position + rng.randrange(1, 40)]
            damaged[position:position] = part
        else:
            damaged[position:position] = rng.choice(INSERTED_TEXTS)
    return bytes(damaged)


def draw_file(rng: random.Random) -> tuple[str, bytes]:
    """Draw a name of READERS, and the damaged content of a file of this kind."""
    name = rng.choice(list(READERS))
    _, valid_file = READERS[name]
    return name, damage(rng, Path(valid_file).read_bytes())


def check_file(name: str, content: bytes) -> str:
    """Read a file, and return "answer" or the name of the error of the workbench.

    Raises:
        AssertionError: the reader raised another error.
    """
    read, valid_file = READERS[name]
    path = Path(f"damaged{Path(valid_file).suffix}")
    for old_file in Path().glob(f"{path.name}*"):  # A ledger may leave more than one file.
        old_file.unlink()
    path.write_bytes(content)
    try:
        with strict_limits():
            read(path)
    except wb.WorkbenchError as error:
        return type(error).__name__
    except (Exception, TooSlow) as error:
        raise _describe_foreign_error(f"{name} of {content!r}", error) from None
    return "answer"


# Kind of a case -> function that draws and checks one, and returns how it ended.
CASES: dict[str, Callable[[random.Random], str]] = {
    "command": lambda rng: check_command(draw_command(rng)),
    "call": lambda rng: check_call(*draw_call(rng)),
    "file": lambda rng: check_file(*draw_file(rng)),
}


@dataclass(frozen=True)
class Report:
    """The results of many cases of one kind.

    Attributes:
        counts: how a case ended ("answer", "exit 2", "InvalidRequest", ...) -> number of cases.
        failures: one text for each case that ended otherwise.
    """

    counts: Counter[str]
    failures: list[str]


def run_cases(kind: str, count: int, seed: int, *, stop_at_failure: bool = True) -> Report:
    """Draw and check cases of one kind.

    Args:
        kind: a key of CASES.
        count: number of cases.
        seed: seed of the random generators. Each case has its own generator.
        stop_at_failure: whether the first failure raises AssertionError.
    """
    report = Report(Counter(), [])
    with folder_of_files():
        for case in range(count):
            rng = random.Random(f"{kind} {seed} {case}")
            try:
                report.counts[CASES[kind](rng)] += 1
            except (AssertionError, TooSlow) as error:
                failure = f"{kind} {case} of seed {seed}: {type(error).__name__} {error}"
                if stop_at_failure:
                    raise AssertionError(failure) from None
                report.failures.append(failure)
    return report


def check_all(count: int = 10_000, seed: int = 1) -> int:
    """Print the report of each kind of case, and return the number of failures."""
    failure_count = 0
    for kind in CASES:
        report = run_cases(kind, count, seed, stop_at_failure=False)
        failure_count += len(report.failures)
        for failure in report.failures:
            print(failure, flush=True)
        summary = f"{dict(report.counts)}, {len(report.failures)} wrong, of {count}"
        print(f"{kind}: {summary}", flush=True)
    return failure_count


if __name__ == "__main__":
    sys.exit(check_all(*map(int, sys.argv[1:3])) > 0)
