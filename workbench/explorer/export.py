"""Self-contained pages, which show what they hold without a server: explorations, designs, frontiers, audits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from workbench.explorer.page import page
from workbench.io.files import write_whole

__all__ = ["export_page", "write_export", "write_page"]


def export_page(result: Mapping[str, Any]) -> str:
    """The page of what the task "export" has computed."""
    return page(f"{result['view']['heading']} - dp-workbench", {"mode": "document", "export": result})


def write_export(
    path: Path, family: str, given: Mapping[str, Any], files: Collection[tuple[str, str, Any]] = (), tell: Any = None
) -> None:
    """Compute the export of one request and write its page. Raises WorkbenchError, OSError."""
    from workbench.explorer.tasks import Tasks

    told = {} if tell is None else {"tell": tell}
    result = Tasks(files).run("export", {"family": family, "given": dict(given)}, **told)
    write_page(path, export_page(result))


def write_page(path: Path, content: str) -> None:
    """Write a page, whole or not at all."""
    write_whole(path, content.encode())
