"""Send command lines, calls and files, half of them wrong. Each ends in an answer or one sentence.

    python tests/fuzz/fuzz_requests.py [COUNT] [SEED]

Everything runs in this process, with warnings as errors and an alarm. A command line must exit with
0, or with 2 and one line of the form "Kind: sentence.". A call must return, or raise an error of
the workbench.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shlex
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typer

import workbench as wb
from workbench.cli import commands, main

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.requests import CALLS, COMMANDS, READERS, WORDS, WRONG, fill

__all__ = ["call", "command", "damage", "file", "folder", "run"]

ALARM = 20  # seconds of one case
CODES = (0, 2)


class TooSlow(BaseException):
    """The alarm of one case."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Warnings are errors, and no case takes long."""

    def late(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(ALARM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A current folder with one file of every kind."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        try:
            fill(Path())
            yield Path(temporary)
        finally:
            os.chdir(before)


# Command lines.


def command(source: random.Random) -> list[str]:
    """A command line: a good one with up to three options changed, left out, doubled or added."""
    words, options = source.choice(COMMANDS)
    given: dict[str, str | None] = dict(options)
    others = [name for _, each in COMMANDS for name in each]
    for _ in range(source.choice((0, 1, 1, 1, 2, 3))):
        name = source.choice([*given, source.choice(others)])
        action = source.random()
        if action < 0.1:
            given.pop(name, None)
        elif action < 0.9:
            given[name] = source.choice(WORDS)
        else:
            given[name] = None
    line = words.split()
    if source.random() < 0.1:
        line[source.randrange(len(line))] = source.choice(WORDS)
    if source.random() < 0.3:
        line.append("--json")
    for name, value in given.items():
        line += [name] if value is None else [f"{name}={value}"]
    return line


@cache
def built() -> None:
    """Build the tree of commands once. It takes ten times as long as most command lines."""
    commands.app = typer.main.get_command(commands.app)  # type: ignore[assignment]


def check_command(line: list[str]) -> str:
    """Run a command line and return how it ended.

    Raises:
        AssertionError: It ended neither in an answer nor in one sentence.
    """
    built()
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), watched():
        try:
            main(line)
        except SystemExit as stop:
            code = stop.code or 0
    said, words = out.getvalue(), err.getvalue()
    what = f"{shlex.join(line)}\n{said[-300:]}{words}"
    assert code in CODES, f"exit code {code}: {what}"
    lines = [one for one in words.splitlines() if not one.startswith("note: ")]
    usage = said.lstrip().startswith("Usage:")
    assert len(lines) == (code == 2 and not usage), what
    for one in lines:
        kind, _, sentence = one.partition(": ")
        assert kind == "Interrupted" or issubclass(getattr(wb, kind), wb.WorkbenchError), what
        assert sentence.endswith((".", "?")), what
        assert len(one) < 1000, what
    if "--json" in line and not usage and not {"--help", "--"} & {*line}:
        try:
            json.loads(said, parse_constant=_no_constant)
        except ValueError as error:
            raise AssertionError(f"{error}: {what}") from None
    return f"exit {code}"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# Calls from Python.


def call(source: random.Random) -> tuple[str, dict[str, Any]]:
    """A call from Python with one or two wrong arguments."""
    name = source.choice(list(CALLS))
    given = dict(CALLS[name][1])
    for _ in range(source.choice((1, 1, 2))):
        given[source.choice(list(given))] = source.choice(WRONG)
    return name, given


def check_call(name: str, given: Mapping[str, Any]) -> str:
    """Make a call; what it came to. Raises AssertionError for a foreign error."""
    kept = io.StringIO()
    try:
        with watched(), contextlib.redirect_stdout(kept):
            CALLS[name][0](**given)
    except wb.WorkbenchError as error:
        words = str(error)
        assert "\n" not in words, f"{name}({dict(given)}): {words!r}"
        assert words.endswith((".", "?", ")")), f"{name}({dict(given)}): {words!r}"
        assert len(words) < 1000, f"{name}({dict(given)}): {words!r}"
        return type(error).__name__
    except (Exception, TooSlow) as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-3:])
        raise AssertionError(
            f"{name}({dict(given)})\n{where}{type(error).__name__}: {error}"
        ) from None
    return "answer"


# Files.


def damage(source: random.Random, content: bytes) -> bytes:
    """A file with bytes flipped, cut off, repeated or put in."""
    found = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 5, 30))):
        at = source.randrange(len(found) + 1)
        way = source.random()
        if way < 0.5 and at < len(found):
            found[at] = source.choice((0, 255, 48, 57, 34, 44, 10, source.randrange(256)))
        elif way < 0.6:
            del found[at:]
        elif way < 0.75:
            del found[at : at + source.randrange(1, 20)]
        elif way < 0.9:
            part = found[at : at + source.randrange(1, 40)]
            found[at:at] = part
        else:
            found[at:at] = source.choice(
                (b"1e999", b"nan", b'"', b"\x00", b"\xff\xfe", b"[" * 300, b"9" * 500, b"-", b"\r")
            )
    return bytes(found)


def file(source: random.Random) -> tuple[str, bytes]:
    """A reader's file, damaged."""
    name = source.choice(list(READERS))
    return name, damage(source, Path(READERS[name][1]).read_bytes())


def check_file(name: str, content: bytes) -> str:
    """Read a file; what it came to. Raises AssertionError for a foreign error."""
    read, like = READERS[name]
    path = Path(f"damaged{Path(like).suffix}")
    for left in Path().glob(f"{path.name}*"):
        left.unlink()
    path.write_bytes(content)
    try:
        with watched():
            read(path)
    except wb.WorkbenchError as error:
        return type(error).__name__
    except (Exception, TooSlow) as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-3:])
        raise AssertionError(
            f"{name} of {content!r}\n{where}{type(error).__name__}: {error}"
        ) from None
    return "answer"


CASES: dict[str, Callable[[random.Random], str]] = {
    "command": lambda source: check_command(command(source)),
    "call": lambda source: check_call(*call(source)),
    "file": lambda source: check_file(*file(source)),
}


def run(kind: str, count: int, seed: int, *, stop: bool = True) -> tuple[Counter[str], list[str]]:
    """Run cases of one kind, and return the counts of each ending, and the failures.

    With stop, the first failure raises AssertionError.
    """
    ends: Counter[str] = Counter()
    failures: list[str] = []
    with folder():
        for case in range(count):
            source = random.Random(f"{kind} {seed} {case}")
            try:
                ends[CASES[kind](source)] += 1
            except (AssertionError, TooSlow) as error:
                words = f"{kind} {case} of seed {seed}: {type(error).__name__} {error}"
                if stop:
                    raise AssertionError(words) from None
                failures.append(words)
    return ends, failures


if __name__ == "__main__":
    cases, begin = (int(text) for text in (sys.argv[1:] + ["10000", "1"][len(sys.argv) - 1 :]))
    wrong = 0
    for each in CASES:
        counted, failed = run(each, cases, begin, stop=False)
        wrong += len(failed)
        for sentence in failed:
            print(sentence, flush=True)
        print(f"{each}: {dict(counted)}, {len(failed)} wrong, of {cases}", flush=True)
    sys.exit(bool(wrong))
