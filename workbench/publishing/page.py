"""Render a release as one page to print and sign."""

from __future__ import annotations

import html
from collections.abc import Sequence

from workbench.io.shown import Facts
from workbench.publishing.plan import PlanRelease
from workbench.publishing.release import Release

_STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #111; background: #fff; }
h1 { font-size: 1.5rem; margin-bottom: .25rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-top: 1px solid #ccc; }
th { width: 9rem; font-weight: 600; }
table.numbers th { width: auto; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.value { font-size: 1.6rem; }
.signature { display: flex; flex-wrap: wrap; gap: 2rem; margin-top: 3rem; }
.signature div { flex: 1 1 14rem; border-top: 1px solid #111; padding-top: .3rem; }
@media print { body { margin: 0; } }
"""
_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
<p class="question">I have read what this release protects and what it does not promise, and I
agree that it is published.</p>
<div class="signature"><div>Date and place</div><div>Name and signature</div></div>
</body>
</html>
"""


def render_release_page(release: Release) -> str:
    """Render a release as a self-contained HTML page without script.

    Args:
        release: The release.
    """
    title = f"Release: {release.statistic.describe()}"
    return render_page(title, render_release(release))


def render_plan_page(plan: PlanRelease) -> str:
    """Render the releases of a plan as a self-contained HTML page without script.

    Args:
        plan: The releases.
    """
    heads = ("statistic", "epsilon", "value", "95 % interval", "RMSE")
    return render_page(
        f"Release of {len(plan.releases)} statistics",
        _render_table(heads, plan.rows) + _render_facts(plan.facts()),
    )


def render_page(title: str, body: str) -> str:
    """Render a page with a place for a signature.

    Args:
        title: Text of the title.
        body: HTML of the body.
    """
    return _TEMPLATE.format(title=html.escape(title), style=_STYLE, body=body)


def render_release(release: Release) -> str:
    """Render the numbers and the facts of a release as HTML.

    Args:
        release: The release.
    """
    parts = [_render_numbers(release.rows), _render_facts(release.facts()[1:])]
    parts += [f"<p>{html.escape(note)}</p>" for note in release.notes]
    return "\n".join(parts)


def _render_numbers(rows: Sequence[tuple[str, str, str]]) -> str:
    """Render the numbers of cells or groups as a table."""
    if not rows:
        return ""
    return _render_table(("cell", "value", "95 % interval"), rows)


def _render_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table. All columns but the first have numbers."""
    lines = ["".join(f"<th>{html.escape(head)}</th>" for head in heads)]
    for label, *numbers in rows:
        cells = "".join(f"<td class='number'>{html.escape(number)}</td>" for number in numbers)
        lines.append(f"<td>{html.escape(label)}</td>{cells}")
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table class='numbers'>{body}</table>"


def _render_facts(facts: Facts) -> str:
    """Render labels and sentences as a table."""
    lines = []
    last_label = ""
    for label, text in facts:
        head = "" if label == last_label else html.escape(label)
        kind = " class='value'" if label == "value" else ""
        lines.append(f"<tr><th>{head}</th><td{kind}>{html.escape(text)}</td></tr>")
        last_label = label
    return f"<table>{''.join(lines)}</table>"
