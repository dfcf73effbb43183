"""Pages of the documentation as programs: their blocks, run in the order in which a reader meets
them.

fence       what is done with it console     "$ command" lines are run, what follows each is its
output, "..." standing for anything pycon       ">>>" examples, as doctest runs them python
run; with a first line "# name.py" written to that file instead toml, text  with a first line "#
name.x" written to that file, without that line {code-cell} a notebook's cell, run others      shown
only

Blocks of one page share a folder and a namespace. Commands of the workbench run in this process,
others in a shell; so do those that load a plug-in, which would stay.
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

__all__ = ["ROOT", "Block", "blocks", "pages", "run_page"]

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<kind>\{?[\w:-]*\}?)[^\n]*\n(?P<body>.*?)^(?P=ticks)`*$",
    re.MULTILINE | re.DOTALL,
)
_NAMED = re.compile(r"# (?P<name>[\w.-]+\.\w+)\n")
_RUN = ("console", "pycon", "python", "toml", "text", "{code-cell}")
_REFUSAL = re.compile(rf"^(?:{'|'.join(errors.__all__)}): |: false: ", re.MULTILINE)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind, its text, the line it begins on."""

    kind: str
    text: str
    line: int


def pages() -> list[Path]:
    """The README and every page."""
    return [
        ROOT / "README.md",
        *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
    ]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page that can be run."""
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        if found["kind"] in _RUN:
            yield Block(found["kind"], found["body"], text.count("\n", 0, found.start("body")) + 1)


def run_page(page: Path, folder: Path) -> None:
    """Run a page in an empty folder, which is the working directory. Raises AssertionError with the
    line.
    """
    for name in ("examples", "tools", "tests"):
        (folder / name).symlink_to(ROOT / name)
    space: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(page):
        place = f"{page.relative_to(ROOT)}:{block.line}"
        named = _NAMED.match(block.text)
        if named and block.kind in ("python", "toml", "text"):
            text = block.text if block.kind == "python" else block.text[named.end() :]
            (folder / named["name"]).write_text(text, "utf-8")
        elif block.kind == "console":
            for command, expected in _commands(block.text):
                _run_command(command, expected, place)
        elif block.kind == "pycon":
            _run_examples(block, space, place)
        elif block.kind in ("python", "{code-cell}"):
            code = re.sub(
                r"\A(:[\w-]+:.*\n)+", lambda options: "\n" * options[0].count("\n"), block.text
            )
            exec(compile("\n" * (block.line - 1) + code, str(page), "exec"), space)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    command, output = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, "\n".join(output)
            command, output = line[2:], []
        elif line.startswith("> ") and not output:
            command = f"{command.removesuffix(chr(92))} {line[2:]}"
        else:
            output.append(line)
    if command:
        yield command, "\n".join(output)


def _run_command(command: str, expected: str, place: str) -> None:
    words = shlex.split(command, comments=True)
    if words[0] == "workbench" and not {"|", ">", ";", "--plugin"} & set(words):
        code, output = _workbench(words[1:])
    else:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            timeout=600,
            env=environment,
            check=False,
        )
        code, output = done.returncode, done.stdout + done.stderr
    assert (code != 0) == bool(_REFUSAL.search(expected)), (
        f"{place}: exit code {code} of {command}\n{output}"
    )
    if expected.strip():
        same = doctest.OutputChecker().check_output(
            expected.strip() + "\n", output.strip() + "\n", _FLAGS
        )
        assert same, f"{place}: {command}\nexpected\n{expected}\nbut it printed\n{output}"


def _workbench(arguments: list[str]) -> tuple[int, str]:
    from workbench.cli import main

    if arguments[0] == "recommend" and "--time-limit" not in arguments:
        arguments = [
            *arguments,
            "--time-limit",
            "300",
        ]  # its 20 seconds are too few on a busy machine
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            main(arguments)
        except SystemExit as stop:
            return int(stop.code or 0), output.getvalue()
    return 0, output.getvalue()


def _run_examples(block: Block, space: dict[str, Any], place: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, space, place, place, block.line)
    failures = io.StringIO()
    result = doctest.DocTestRunner(optionflags=_FLAGS).run(
        test, out=failures.write, clear_globs=False
    )
    space.update(test.globs)
    assert result.attempted, f"{place}: no example"
    assert not result.failed, failures.getvalue()
