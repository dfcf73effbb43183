"""Where each key of a TOML file stands, so that a wrong value can be refused with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.errors import InvalidRequest


@dataclass(frozen=True)
class KeyLines:
    """Where each key stands: top level, and grid by grid ("" is the grid's own header)."""

    file: str
    top: dict[str, int]
    grids: Sequence[dict[str, int]]

    def make_error(self, message: str, key: str, grid: int | None = None) -> InvalidRequest:
        """The error at the line of a key (of a grid's header when the key is not there)."""
        known = self.top if grid is None else self.grids[grid]
        line = known.get(key, known.get(""))
        return InvalidRequest(message if line is None else f"line {line} of {self.file}: {message}")

    def make_error_about(self, message: str, grid: int) -> InvalidRequest:
        """The error at the line of the first key that the message names."""
        named = (
            form for word in re.findall(r"\w+", message) for form in (word, word.removesuffix("s"))
        )
        key = next((form for form in named if form in self.grids[grid]), "")
        return self.make_error(message, key, grid)


def find_key_lines(text: str, file: str, count: int) -> KeyLines:
    """The lines of a text that is known to be TOML. A statement ends where it can be read on its own. count: of
    grids, all on one line where they are written inline."""
    top: dict[str, int] = {}
    grids = []
    here, begun, held = top, 0, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        held, begun = held + line, begun or number
        try:
            statement = tomllib.loads(held)
        except (tomllib.TOMLDecodeError, ValueError):
            continue
        if held.lstrip().startswith("["):
            here = {"": begun}
            if "grid" in statement:
                grids.append(here)
            top.setdefault(next(iter(statement), ""), begun)
        else:
            for key in statement:
                here.setdefault(key, begun)
        held, begun = "", 0
    return KeyLines(file, top, grids or [({"": top["grid"]} if "grid" in top else {})] * count)
