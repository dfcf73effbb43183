"""Build the explorer's page, and the pages that commands write, as one HTML file each.

Style sheet, script and data are inlined, and nothing is fetched. A page shows an exploration with
sliders, or a document: a list of sections {title, narrow, parts}. A narrow section shares its line
with other sections. A part is a figure (`workbench.explorer.figures`), or one of

    {"kind": "facts", rows}                    pairs of a name and a text
    {"kind": "text", text}                     a paragraph
    {"kind": "cells", heads, rows}             a table
    {"kind": "numbers", title, heads, rows}    a table that is shown on a click
    {"kind": "image", title, svg}              a picture that grows on a click
    {"kind": "comparison", ...}                mechanisms (`workbench.explorer.comparison`)
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.exact.numbers import to_jsonable
from workbench.exact.objects import Values
from workbench.explorer import figures
from workbench.explorer.given import FileTexts, list_file_texts, read_option_values
from workbench.explorer.page_request import PageRequest
from workbench.explorer.processes import Lanes, TaskStopped
from workbench.io.files import write_atomically
from workbench.io.shown import Facts, render_picture
from workbench.pipeline.registry import get_family

if TYPE_CHECKING:
    from workbench.io.result import Result, Row
    from workbench.pipeline.design import Design
    from workbench.privacy.claim import Claim
    from workbench.publishing.mechanism_guarantee import Guarantee
    from workbench.recommendation.recommend import Recommendation


_MIN_COMPRESSED_LENGTH = 1 << 20  # Data with more characters than this are compressed.
_COMPRESSION_LEVEL = 9  # The level of zlib with the shortest result.

# The files of the script in order. The last one is the entry point.
_SCRIPTS = (
    "charts.js",
    "pdf.js",
    "sentences.js",
    "texts.js",
    "parts.js",
    "map.js",
    "board.js",
    "comparison.js",
    "query.js",
    "class.js",
    "family.js",
    "document.js",
    "explorer.js",
    "page.js",
)

# Column of a recommendation -> its head in the table "What is published".
_PUBLISHED_HEADS = {
    "name": "mechanism",
    "rmse": "root mean squared error",
    "worst": "loss of the worst answer",
    "bias": "largest bias",
    "bits": "bits",
}


@cache
def read_asset(name: str) -> str:
    """Return the text of a file of the page.

    Args:
        name: The name of a file in assets/, such as "charts.js".
    """
    return resources.files("workbench.explorer").joinpath("assets", name).read_text("utf-8")


@cache
def build_script() -> str:
    """Return the script of the page as one module, without lines that are comments."""
    lines = "\n".join(map(read_asset, _SCRIPTS)).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("//"))


def make_security_policy(*, live: bool) -> str:
    """Return the content security policy.

    The policy allows this script only, pictures from the page itself, and no connection. A live
    page may connect to its own server.

    Args:
        live: Whether the page sends requests to a server.
    """
    digest = hashlib.sha256(build_script().encode()).digest()
    script_hash = base64.b64encode(digest).decode()
    connect = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src 'sha256-{script_hash}'; style-src 'unsafe-inline'; "
        f"img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def build_page(title: str, data: Values) -> str:
    """Return the page.

    In the JSON every "<" is escaped, so that no text can end the element that contains it. Long
    data are compressed.

    Args:
        title: The title of the browser's window.
        data: The content, ready for JSON. Its "mode" is "live" (sends requests to the server) or
            "document".
    """
    content = json.dumps(
        to_jsonable({"version": __version__, **data}, nan_as_null=True),
        allow_nan=False,
        ensure_ascii=False,
    )
    is_packed = len(content) > _MIN_COMPRESSED_LENGTH
    if is_packed:
        content = base64.b64encode(
            zlib.compress(content.encode(), level=_COMPRESSION_LEVEL)
        ).decode()
    content = content.replace("<", "\\u003c")
    policy = html.escape(make_security_policy(live=data.get("mode") == "live"))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>
{read_asset("explorer.css")}</style>
</head>
<body>
<div id="app"><noscript>This page draws its figures with JavaScript.</noscript></div>
<script type="application/json" id="data"{" data-packed" if is_packed else ""}>{content}</script>
<script type="module">{build_script()}</script>
</body>
</html>
"""


def write_page(path: Path, content: str) -> None:
    """Write a page completely or not at all.

    Args:
        path: The path of the file.
        content: The HTML text of the page.
    """
    write_atomically(path, content.encode())


def build_document(title: str, sections: Iterable[Values]) -> str:
    """Return a page of sections.

    Args:
        title: The title of the page.
        sections: Sections {title, narrow, parts}, see the module's docstring.
    """
    return build_page(title, {"mode": "document", "title": title, "sections": [*sections]})


def make_hidden_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Values:
    """Return a table that is shown on a click.

    Args:
        title: The text that is clicked.
        heads: The heads of the columns.
        rows: The cells, row by row.
    """
    return {"kind": "numbers", "title": title, "heads": [*heads], "rows": [*rows]}


def _make_section(title: str, *parts: Values, is_narrow: bool = True) -> Values:
    """Return a section. A narrow section shares its line with others."""
    return {"title": title, "narrow": is_narrow, "parts": [*parts]}


def convert_message(task: str, message: Values) -> Values:
    """Return a message of a task as the page receives it.

    The result of the task "export" becomes {"html": the text of a page}. Others are unchanged.

    Args:
        task: One of `tasks.TASK_NAMES`.
        message: A message of `Lanes.run`.
    """
    if task != "export" or "result" not in message:
        return message
    result = message["result"]
    title = f"{result['view']['heading']} - dp-workbench"
    return {"result": {"html": build_page(title, {"mode": "document", "export": result})}}


def stream_messages(lanes: Lanes, task: str, request: Values) -> Generator[Values, None, None]:
    """Yield the messages of a task (`Lanes.run`) as the page receives them.

    A stopped task ends with a message with the key "error".

    Args:
        lanes: The worker processes.
        task: One of `tasks.TASK_NAMES`.
        request: The JSON object of the page.
    """
    try:
        # Closing the generator ends the computation.
        with closing(lanes.run(task, request)) as messages:
            for message in messages:
                yield convert_message(task, message)
    except TaskStopped as error:
        yield {"error": "Stopped", "message": str(error)}


def build_export_page(family: str, option_texts: Values, files: FileTexts = ()) -> str:
    """Compute the export of one request and return it as a page.

    Args:
        family: The name of the family.
        option_texts: Option -> its text, flag or list of texts.
        files: (family, option, text) of each text that may name a file.

    Raises:
        WorkbenchError: The request has no design.
    """
    from workbench.explorer.tasks import Tasks

    result = Tasks(files).run("export", {"family": family, "given": dict(option_texts)})
    return str(convert_message("export", {"result": result})["result"]["html"])


# Pages that commands write.


def build_design_page(design: Design, option_texts: Values | None = None) -> str:
    """Return the page of one design, in the form of an export.

    Args:
        design: The design to show, with or without a mechanism.
        option_texts: Option -> its text, flag or list of texts. None: the options cannot be
            written, so that the page has no curves.

    Raises:
        WorkbenchError: The options are not those of the family.
    """
    from workbench.explorer.tasks import Tasks

    family = get_family(design.family.name)
    tasks = Tasks()
    if option_texts is None:
        request = PageRequest(family, {}, {})
    else:
        files = list_file_texts(family, option_texts)
        tasks = Tasks(files)
        values = read_option_values(family, option_texts, files)
        request = PageRequest(family, option_texts, values)
    result = tasks.export_design(design, request)
    return str(convert_message("export", {"result": result})["result"]["html"])


def build_audit_page(mechanism: Any, facts: Facts, claim: Claim | None) -> str:
    """Return the page of an audit: its facts, the mechanism's law, and its privacy.

    Args:
        mechanism: The audited mechanism, with exact laws.
        facts: The results of the audit as (name, text) pairs.
        claim: The privacy that was requested. None: no request is drawn.
    """
    sections = [_make_section("Exact audit", {"kind": "facts", "rows": facts})]
    figure = figures.make_law_figure(mechanism)
    if figure:
        sections.append(_make_section("", figures.add_law_table(figure, mechanism)))
    sections += _make_privacy_sections(mechanism, claim)
    return build_document(mechanism.describe(), sections)


def _make_privacy_sections(mechanism: Any, claim: Claim | None) -> list[Values]:
    """Return one section for each privacy figure, or one with the reason why there are none."""
    try:
        profile_figures = figures.make_profile_figures(mechanism, claim)
    except WorkbenchError as error:
        return [_make_section("Privacy profile", {"kind": "text", "text": str(error)})]
    return [_make_section("", figure) for figure in profile_figures]


def build_result_page(result: Result) -> str:
    """Return the page of a frontier, a comparison or a recommendation.

    It has the sentences, the plots and the rows of the result.

    Args:
        result: The result of a command, with its rows and plots.
    """
    table = result.to_frame()
    rows = result.to_dict()["rows"]
    all_rows = make_hidden_table(
        "Show them", list(table.columns), [list(row.values()) for row in rows]
    )
    if result.name == "recommend":
        sections = _make_recommendation_sections(cast("Recommendation", result), all_rows)
        guarantee = getattr(result, "guarantee", None)
        if guarantee is not None:
            # It follows the section that says which class to use.
            sections.insert(1, _make_guarantee_section(guarantee))
        return build_document(result.title, sections)
    texts = [{"kind": "text", "text": sentence} for sentence in result.sentences]
    images: list[Values] = []
    for name, draw in result.draw(table).items():
        figure = draw()
        if figure:
            svg = render_picture(partial(_return_figure, figure))
            images.append({"kind": "image", "title": name.replace("_", " "), "svg": svg})

    sections = []
    if texts:
        sections.append(_make_section("What follows", *texts, is_narrow=False))
    sections += [_make_section(image["title"], image) for image in images]
    sections.append(_make_section(f"{len(rows)} rows", all_rows, is_narrow=False))
    return build_document(result.title, sections)


def _return_figure(figure: Any) -> Any:
    """Return the figure itself. `render_picture` needs a function that draws."""
    return figure


def _make_guarantee_section(guarantee: Guarantee) -> Values:
    """Return the section that states the guarantee of the recommended class in plain words."""
    sentences = {"kind": "text", "text": " ".join(guarantee.sentences)}
    limits = [("limits", text) for text in guarantee.limits]
    facts = {"kind": "facts", "rows": limits}
    return _make_section("What the recommended class guarantees", sentences, facts, is_narrow=False)


def _make_class_table(title: str, heads: Mapping[str, str], rows: Sequence[Row]) -> Values:
    """Return a table of classes. Columns without values are omitted."""
    columns = [name for name in heads if any(row[name] is not None for row in rows)]
    return {
        "kind": "cells",
        "title": title,
        "heads": [heads[name] for name in columns],
        "rows": [[row[name] for name in columns] for row in rows],
    }


def _make_recommendation_sections(result: Recommendation, all_rows: Values) -> list[Values]:
    """Return the sections of a recommendation.

    They are the comparison, what the mechanisms publish, and their commands.
    """
    from workbench.explorer.comparison import describe_comparison

    comparison = describe_comparison(result)
    applicable = [row for row in comparison["rows"] if row["objective"] is not None]
    published_table = _make_class_table("What is published", _PUBLISHED_HEADS, applicable)
    commands = [(row["name"], row["command"]) for row in comparison["rows"] if row["command"]]
    parts_by_title: dict[str, list[Values]] = {
        "What to use": [{**comparison, "kind": "comparison"}],
    }
    # A table with the names of the mechanisms only is omitted.
    if len(published_table["heads"]) > 1:
        parts_by_title["What is published"] = [{**published_table, "look": "stacked"}]
    parts_by_title["The command of each"] = [
        {"kind": "facts", "rows": commands},
        {**all_rows, "title": "All columns"},
    ]
    return [
        _make_section(title, *parts, is_narrow=False) for title, parts in parts_by_title.items()
    ]
