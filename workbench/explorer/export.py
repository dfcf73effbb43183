"""Self-contained pages, which show what they hold without a server: explorations, designs, audits, results.

A page without controls is a list of sections: {title, parts}; a part is a figure (`workbench.explorer.figures`),
{"kind": "facts", rows}, {"kind": "text", text}, {"kind": "cells", heads, rows}, {"kind": "numbers", title, heads, rows}
behind a click, or {"kind": "image", title, svg}, which grows on a click.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.explorer import figures
from workbench.explorer.loss_figures import tradeoffs
from workbench.explorer.page import page
from workbench.explorer.privacy_figures import profile_figures
from workbench.io.files import write_whole
from workbench.io.html import picture

if TYPE_CHECKING:
    from workbench.families.design import Design
    from workbench.io.result import Result

__all__ = [
    "as_page",
    "audit_page",
    "design_page",
    "document",
    "export_page",
    "numbers",
    "result_page",
    "write_export",
    "write_page",
]

Section = dict[str, Any]


def write_page(path: Path, content: str) -> None:
    """Write a page, whole or not at all."""
    write_whole(path, content.encode())


def document(title: str, sections: Sequence[Section]) -> str:
    """A page of sections."""
    return page(title, {"mode": "document", "title": title, "sections": list(sections)})


def numbers(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """A table behind a click."""
    return {"kind": "numbers", "title": title, "heads": list(heads), "rows": figures.plain(list(rows))}


def _section(title: str, *parts: Mapping[str, Any], narrow: bool = True, **more: Any) -> Section:
    return {"title": title, "narrow": narrow, "parts": list(parts), **more}


# An exploration.


def export_page(result: Mapping[str, Any]) -> str:
    """The page of what the task "export" has computed."""
    return page(f"{result['view']['heading']} - dp-workbench", {"mode": "document", "export": result})


def as_page(task: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message of a task for its reader, who gets the result of "export" as a page."""
    if task == "export" and "result" in message:
        return {"result": {"html": export_page(message["result"])}}
    return message


def write_export(
    path: Path,
    family: str,
    given: Mapping[str, Any],
    files: Collection[tuple[str, str, Any]] = (),
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Compute the export of one request and write its page. Raises WorkbenchError, OSError."""
    from workbench.explorer.tasks import Tasks

    write_page(path, export_page(Tasks(files).run("export", {"family": family, "given": dict(given)}, tell)))


# What commands return.


def design_page(design: Design) -> str:
    """One design: its report, its mechanism, its privacy, its row."""
    proven = design.certificate is not None
    request = {name: getattr(design.request, name, None) for name in ("epsilon", "delta")}
    row = figures.plain(design.row())
    sections = [
        _section(
            design.family.heading(design),
            {"kind": "facts", "rows": [list(fact) for fact in design.facts()]},
            numbers("The row", ["column", "value"], list(row.items())),
        ),
        *(_section("", figure | {"proven": proven}) for figure in figures.law_figures(design)),
        *_privacy(design.mechanism, request),
    ]
    return document(design.family.heading(design), sections)


def audit_page(mechanism: Any, facts: Sequence[tuple[str, str]], budget: Mapping[str, Any]) -> str:
    """An audit: its facts, the mechanism's law and its profile. budget: epsilon and delta, None where unknown."""
    law = figures.law_figure(mechanism)
    sections = [
        _section("Exact audit", {"kind": "facts", "rows": [list(fact) for fact in facts]}),
        *([] if law is None else [_section("", law)]),
        *_privacy(mechanism, budget),
    ]
    return document(mechanism.describe(), sections)


def _privacy(mechanism: Any, budget: Mapping[str, Any]) -> list[Section]:
    if mechanism is None:
        return []
    try:
        return [_section("", figure) for figure in profile_figures(mechanism, budget)]
    except WorkbenchError as error:
        return [_section("Privacy profile", {"kind": "text", "text": str(error)})]


def result_page(result: Result) -> str:
    """A frontier, a table of budgets or a comparison: what follows from it, its lines, its plots, its rows."""
    table = result.to_frame()
    rows = result.to_dict()["rows"]
    drawn = [
        {"kind": "picture", "title": name.replace("_", " "), "svg": picture(lambda: figure)}
        for name, draw in result.draw(table).items()
        if (figure := draw()) is not None
    ]
    sections = [
        *(
            [_section("What follows", *({"kind": "text", "text": words} for words in result.sentences), narrow=False)]
            if result.sentences
            else []
        ),
        *(_section("", figure) for figure in tradeoffs(rows)),
        *(_section("", part, narrow=False) for part in drawn),
        _section(
            f"{len(rows)} rows",
            numbers("Show them", list(table.columns), [list(row.values()) for row in rows]),
            narrow=False,
        ),
    ]
    return document(result.title, sections)
