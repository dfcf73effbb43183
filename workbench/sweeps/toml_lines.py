"""Find the line of each key of a TOML file, so that an error can name the line of a wrong value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.errors import InvalidRequest


@dataclass(frozen=True)
class KeyLines:
    """The line numbers of the keys of a specification.

    Attributes:
        file: The name of the file, for error messages.
        top: The line of each key at the top level.
        grids: The line of each key of every grid. The key "" has the line of the grid's header.
    """

    file: str
    top: dict[str, int]
    grids: Sequence[dict[str, int]]

    def make_error(self, message: str, key: str, grid: int | None = None) -> InvalidRequest:
        """Make an error that names the line of a key.

        Args:
            message: The error message without the line.
            key: The key that is wrong. If the file lacks it, the error names the grid's header.
            grid: The index of the grid that has the key; None for the top level.

        Returns:
            The error, which the caller raises.
        """
        lines = self.top if grid is None else self.grids[grid]
        line = lines.get(key, lines.get(""))
        if line is None:
            return InvalidRequest(message)
        return InvalidRequest(f"line {line} of {self.file}: {message}")

    def make_error_about(self, message: str, grid: int) -> InvalidRequest:
        """Make an error that names the line of the first key that the message mentions.

        Args:
            message: The error message without the line.
            grid: The index of the grid.
        """
        key = ""
        for key_word in re.findall(r"\w+", message):
            # A message may use the plural of a key.
            keys = (
                form for form in (key_word, key_word.removesuffix("s")) if form in self.grids[grid]
            )
            key = next(keys, "")
            if key:
                break
        return self.make_error(message, key, grid)


def find_key_lines(text: str, file: str, grid_count: int) -> KeyLines:
    """Find the line of each key of a text that is valid TOML.

    A statement may have several lines. It ends at the first line with which tomllib can parse it.

    Args:
        text: The content of the file.
        file: The name of the file.
        grid_count: The number of grids. Grids in an inline array all have the line of that array.

    Returns:
        The lines of all keys.
    """
    top: dict[str, int] = {}
    grids: list[dict[str, int]] = []
    table = top
    first_line = 0  # The line in which the current statement begins. 0: it has not begun.
    statement_text = ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        statement_text += line
        first_line = first_line or number
        try:
            statement = tomllib.loads(statement_text)
        except (tomllib.TOMLDecodeError, ValueError):
            continue
        if statement_text.lstrip().startswith("["):
            table = {"": first_line}
            if "grid" in statement:
                grids.append(table)
            top.setdefault(next(iter(statement), ""), first_line)
        else:
            for key in statement:
                table.setdefault(key, first_line)
        statement_text = ""
        first_line = 0
    if not grids:
        inline = {"": top["grid"]} if "grid" in top else {}
        grids = [inline] * grid_count
    return KeyLines(file, top, grids)
