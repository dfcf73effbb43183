"""The page as one file: stylesheet, script and data inlined, nothing fetched from anywhere.

It shows an exploration, or without controls a list of sections {title, parts}; a part is a figure
(`workbench.explorer.figures`), {"kind": "facts", rows}, {"kind": "text", text}, {"kind": "cells", heads, rows},
{"kind": "numbers", title, heads, rows} behind a click, or {"kind": "image", title, svg}, which grows on a click.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.exact.numbers import to_jsonable
from workbench.exact.objects import Values
from workbench.explorer import figures
from workbench.explorer.given import FileTexts
from workbench.explorer.processes import Lanes, TaskStopped
from workbench.io.files import write_atomically
from workbench.io.shown import Facts, render_picture

if TYPE_CHECKING:
    from workbench.io.result import Result, Row
    from workbench.pipeline.design import Design
    from workbench.privacy.claim import Claim


_MIN_COMPRESSED_LENGTH = 1 << 20  # characters of data from where they are compressed
_SCRIPTS = (
    "charts.js",
    "pdf.js",
    "sentences.js",
    "parts.js",
    "map.js",
    "board.js",
    "query.js",
    "family.js",
    "document.js",
    "explorer.js",
    "page.js",
)  # one module, in this order; the last one is the host


@cache
def read_asset(name: str) -> str:
    """A file of the page."""
    return resources.files("workbench.explorer").joinpath("assets", name).read_text("utf-8")


@cache
def build_script() -> str:
    """The drawing module with its host, as one module."""
    return "\n".join(map(read_asset, _SCRIPTS))


def make_security_policy(*, live: bool) -> str:
    """The content security policy: this script alone, pictures from the file itself, no connection but a live page's
    to its own server."""
    mark = base64.b64encode(hashlib.sha256(build_script().encode()).digest()).decode()
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src 'sha256-{mark}'; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def build_page(title: str, data: Values) -> str:
    """The page. data: what it shows, JSON-ready; its mode is "live" (asks the server) or "document".

    In the JSON every "<" is escaped, so that no text in it can end the element it stands in; a long one is compressed.
    """
    content = json.dumps(
        to_jsonable({"version": __version__, **data}, nan_as_null=True),
        allow_nan=False,
        ensure_ascii=False,
    )
    packed = len(content) > _MIN_COMPRESSED_LENGTH
    if packed:  # base64 has no "<" either
        content = base64.b64encode(zlib.compress(content.encode(), 9)).decode()
    content = content.replace("<", "\\u003c")
    live = data.get("mode") == "live"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{html.escape(make_security_policy(live=live))}">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>
{read_asset("explorer.css")}</style>
</head>
<body>
<div id="app"><noscript>This page draws its figures with JavaScript.</noscript></div>
<script type="application/json" id="data"{" data-packed" if packed else ""}>{content}</script>
<script type="module">{build_script()}</script>
</body>
</html>
"""


def write_page(path: Path, content: str) -> None:
    """Write a page, whole or not at all."""
    write_atomically(path, content.encode())


def build_document(title: str, sections: Iterable[Values]) -> str:
    """A page of sections."""
    return build_page(title, {"mode": "document", "title": title, "sections": [*sections]})


def make_hidden_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Values:
    """A table behind a click."""
    return {"kind": "numbers", "title": title, "heads": [*heads], "rows": [*rows]}


def _make_section(title: str, *parts: Values, narrow: bool = True) -> Values:
    return {"title": title, "narrow": narrow, "parts": [*parts]}


def convert_message(task: str, message: Values) -> Values:
    """A message of a task for its reader, who gets the result of "export" as a page."""
    if task != "export" or "result" not in message:
        return message
    result = message["result"]
    title = f"{result['view']['heading']} - dp-workbench"
    return {"result": {"html": build_page(title, {"mode": "document", "export": result})}}


def stream_messages(lanes: Lanes, task: str, request: Values) -> Generator[Values, None, None]:
    """The messages of a task (`Lanes.run`) for its reader: of an export a page, and why the task was stopped."""
    try:
        with closing(lanes.run(task, request)) as messages:  # ends the computation
            for message in messages:
                yield convert_message(task, message)
    except TaskStopped as error:
        yield {"error": "Stopped", "message": str(error)}


def build_export_page(family: str, given: Values, files: FileTexts = ()) -> str:
    """Compute the export of one request as a page.

    Args:
        family: Name of the family.
        given: Texts of its options.
        files: (family, option, text) whose texts may name files.

    Raises:
        WorkbenchError: the request has no design.
    """
    from workbench.explorer.tasks import Tasks

    result = Tasks(files).run("export", {"family": family, "given": dict(given)})
    return str(convert_message("export", {"result": result})["result"]["html"])


# What commands return.


def build_design_page(design: Design) -> str:
    """One design: its report, its mechanism, its privacy, its row."""
    proven = design.certificate is not None
    title = design.heading
    row = make_hidden_table("The row", ["column", "value"], list(design.row().items()))
    sections = [
        _make_section(title, {"kind": "facts", "rows": design.facts()}, row),
        *(
            _make_section("", figure | {"proven": proven})
            for figure in figures.make_law_figures(design)
        ),
    ]
    return build_document(
        title,
        sections
        + (_make_privacy_sections(design.mechanism, design.claim) if design.mechanism else []),
    )


def build_audit_page(mechanism: Any, facts: Facts, claim: Claim | None) -> str:
    """An audit: its facts, the mechanism's law and its profile. claim: what is known to be asked."""
    drawn = figures.make_law_figure(mechanism)
    law = drawn and figures.add_law_table(drawn, mechanism)
    sections = [
        _make_section("Exact audit", {"kind": "facts", "rows": facts}),
        *([_make_section("", law)] if law else []),
    ]
    return build_document(mechanism.describe(), sections + _make_privacy_sections(mechanism, claim))


def _make_privacy_sections(mechanism: Any, claim: Claim | None) -> list[Values]:
    try:
        return [
            _make_section("", figure) for figure in figures.make_profile_figures(mechanism, claim)
        ]
    except WorkbenchError as error:
        return [_make_section("Privacy profile", {"kind": "text", "text": str(error)})]


def build_result_page(result: Result) -> str:
    """A frontier, a table of budgets or a comparison: what follows from it, its lines, its plots, its rows."""
    table = result.to_frame()
    rows = result.to_dict()["rows"]
    texts = [{"kind": "text", "text": words} for words in result.sentences]
    cells = make_hidden_table(
        "Show them", list(table.columns), [list(row.values()) for row in rows]
    )
    drawn = [
        {"kind": "image", "title": name.replace("_", " "), "svg": render_picture(lambda: figure)}
        for name, draw in result.draw(table).items()
        if (figure := draw())
    ]
    if result.name == "recommend":
        return build_document(
            result.title, _make_recommendation_sections(rows, texts, drawn, cells)
        )
    sections = [
        *([_make_section("What follows", *texts, narrow=False)] if texts else []),
        *(_make_section(part["title"], part) for part in drawn),
        _make_section(f"{len(rows)} rows", cells, narrow=False),
    ]
    return build_document(result.title, sections)


_LOSS_HEADS = {
    "class": "class",
    "objective": "expected loss",
    "bound": "no less than",
    "certified": "certified",
}
_RECOMMENDATION_HEADS = {  # of a recommendation: title -> column -> its head
    "What to use": _LOSS_HEADS | {"notes": "what it needs"},
    "What is published": {"class": "class", "rmse": "root mean squared error", "worst": "loss of the worst answer",
                          "bias": "largest bias", "bits": "bits"},
}  # fmt: skip


def _make_recommendation_sections(
    rows: Sequence[Row], texts: Sequence[Values], drawn: Sequence[Values], cells: Values
) -> list[Values]:
    """Of a recommendation: the classes, the plot of what they cost, what they publish, their commands, the others."""
    served = [row for row in rows if row["objective"] is not None]
    first, second = (
        {
            "kind": "cells",
            "title": title,
            "heads": [*heads.values()],
            "rows": [[*map(r.get, heads)] for r in served],
        }
        for title, columns in _RECOMMENDATION_HEADS.items()
        for heads in [
            {
                name: head
                for name, head in columns.items()
                if any(r[name] is not None for r in served)
            }
        ]
    )
    commands = {
        "kind": "facts",
        "rows": [(row["class"], row["command"]) for row in rows if row["command"]],
    }
    others = {
        "kind": "facts",
        "rows": [(row["class"], row["notes"]) for row in rows if row["objective"] is None],
    }
    whole = {**cells, "title": "All columns"}
    parts: list[list[Values]] = [
        [*texts, first | {"look": "classes"}],
        [*drawn],
        [second],
        [commands],
        [others, whole],
    ]
    titles = (
        "What to use",
        "",
        "What is published",
        "The command of each",
        "What does not apply, and why",
    )
    sections = [
        _make_section(title, *part, narrow=False) for title, part in zip(titles, parts, strict=True)
    ]
    return [
        section for section in sections if section["parts"] != [second] or len(second["heads"]) > 1
    ]
