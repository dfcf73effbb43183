"""Run the fenced blocks of a page of the documentation, in the order of the page.

    kind of block    what is done with it
    console          lines "$ command" are run, and the lines after them are the expected output,
                     in which "..." stands for any text
    pycon            examples with ">>>" are run by doctest
    python           the code is run; if its first line is "# name.py", it is only written to this
                     file
    toml, text       if the first line is "# name.x", the other lines are written to this file
    {code-cell}      the code of a cell of a notebook is run
    others           nothing

All blocks of a page share a folder and a namespace. Commands of the workbench run in this process.
Commands of the shell, and commands that load a plug-in, run in another process: a plug-in would
stay loaded here.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench import errors

__all__ = ["ROOT", "Block", "list_pages", "read_blocks", "run_page"]

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<kind>\{?[\w:-]*\}?)[^\n]*\n(?P<body>.*?)^(?P=ticks)`*$",
    re.MULTILINE | re.DOTALL,
)
# The first line of a block that is written to a file: "# name.x".
_NAMED = re.compile(r"# (?P<name>[\w.-]+\.\w+)\n")
_KINDS = ("console", "pycon", "python", "toml", "text", "{code-cell}")

# Output that a command must print if and only if it fails.
_FAILURE = re.compile(rf"^(?:{'|'.join(errors.__all__)}): |: false: ", re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_COMMAND_SECONDS = 600  # A command in another process is stopped after this time.

# The time limit of `workbench recommend` on a page. Its default is too short on a busy machine.
_RECOMMEND_SECONDS = "300"


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        kind: One of `_KINDS`.
        text: The lines between the fences.
        line: The number of the first of these lines on the page, from 1.
    """

    kind: str
    text: str
    line: int


def list_pages() -> list[Path]:
    """Return the paths of the README and of every page of the documentation."""
    paths = sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
    return [ROOT / "README.md", *paths]


def read_blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page that can be run or written."""
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        if match["kind"] in _KINDS:
            line = text.count("\n", 0, match.start("body")) + 1
            yield Block(match["kind"], match["body"], line)


def run_page(page: Path, folder: Path) -> None:
    """Run a page in an empty folder, which must be the working directory.

    Raises AssertionError with the line of the page if an output differs from the expected one.
    """
    for name in ("examples", "tools", "tests"):
        (folder / name).symlink_to(ROOT / name)
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in read_blocks(page):
        place = f"{page.relative_to(ROOT)}:{block.line}"
        file_name = _NAMED.match(block.text)
        if file_name and block.kind in ("python", "toml", "text"):
            # The first line is a comment in Python, so it may stay.
            text = block.text if block.kind == "python" else block.text[file_name.end() :]
            (folder / file_name["name"]).write_text(text, "utf-8")
        elif block.kind == "console":
            for command, expected in _split_commands(block.text):
                _run_command(command, expected, place)
        elif block.kind == "pycon":
            _run_examples(block, namespace, place)
        elif block.kind in ("python", "{code-cell}"):
            _run_code(block, namespace, page)


class _NearNumbersChecker(doctest.OutputChecker):
    """Compare output with what a page shows, where long decimals only have to be near.

    The last digits of a float depend on the processor, because libraries add in another order.
    """

    _LONG_DECIMAL = re.compile(r"\d+\.\d{13,}(?:e[+-]?\d+)?")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether the output is the expected one. Decimals of 13 places or more are rounded
        to 11 significant digits on both sides.
        """
        if super().check_output(want, got, optionflags):
            return True
        want = self._LONG_DECIMAL.sub(lambda number: f"{float(number[0]):.11g}", want)
        got = self._LONG_DECIMAL.sub(lambda number: f"{float(number[0]):.11g}", got)
        return super().check_output(want, got, optionflags)


def _run_code(block: Block, namespace: dict[str, Any], page: Path) -> None:
    """Run a block of Python. Errors name the line of the page."""
    # The options of a cell, lines such as ":tags: [x]", become blank lines.
    code = re.sub(r"\A(:[\w-]+:.*\n)+", lambda match: "\n" * match[0].count("\n"), block.text)
    blank_lines = "\n" * (block.line - 1)
    exec(compile(blank_lines + code, str(page), "exec"), namespace)


def _split_commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a console block, each with its expected output.

    A line "> ..." directly after a command continues it.
    """
    command = ""
    output: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(output)
            command = line[2:]
            output = []
        elif line.startswith("> ") and not output:
            command = f"{command.removesuffix(chr(92))} {line[2:]}"
        else:
            output.append(line)
    if command:
        yield command, "\n".join(output)


def _run_command(command: str, expected: str, place: str) -> None:
    """Run a command and compare its exit code and output. Without expected output, any is right."""
    words = shlex.split(command, comments=True)
    needs_shell = bool({"|", ">", ";", "--plugin"} & set(words))
    if words[0] == "workbench" and not needs_shell:
        code, output = _run_workbench(words[1:])
    else:
        code, output = _run_in_shell(command)
    assert (code != 0) == bool(_FAILURE.search(expected)), (
        f"{place}: exit code {code} of {command}\n{output}"
    )
    if expected.strip():
        is_same = _NearNumbersChecker().check_output(
            expected.strip() + "\n", output.strip() + "\n", _FLAGS
        )
        assert is_same, f"{place}: {command}\nexpected\n{expected}\nbut it printed\n{output}"


def _run_in_shell(command: str) -> tuple[int, str]:
    """Run a command in a shell that finds this installation. Return its exit code and output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    process = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        env=environment,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


def _run_workbench(arguments: list[str]) -> tuple[int, str]:
    """Run a command of the workbench in this process. Return its exit code and output."""
    from workbench.cli import main

    if arguments[0] == "recommend" and "--time-limit" not in arguments:
        arguments = [*arguments, "--time-limit", _RECOMMEND_SECONDS]
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            main(arguments)
        except SystemExit as stop:
            return int(stop.code or 0), output.getvalue()
    return 0, output.getvalue()


def _run_examples(block: Block, namespace: dict[str, Any], place: str) -> None:
    """Run the examples of a block with doctest. Their variables stay in the namespace."""
    test = doctest.DocTestParser().get_doctest(block.text, namespace, place, place, block.line)
    failures = io.StringIO()
    result = doctest.DocTestRunner(_NearNumbersChecker(), optionflags=_FLAGS).run(
        test, out=failures.write, clear_globs=False
    )
    namespace.update(test.globs)
    assert result.attempted, f"{place}: no example"
    assert not result.failed, failures.getvalue()
