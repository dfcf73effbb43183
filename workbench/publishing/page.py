"""Render a release as one page to print and sign."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Sequence
from datetime import UTC, datetime

import workbench
from workbench.io.shown import Facts
from workbench.publishing.plan import PlanRelease
from workbench.publishing.release import Release

_STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #111; background: #fff; }
h1 { font-size: 1.5rem; margin-bottom: .25rem; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-top: 1px solid #ccc; }
th { width: 9rem; font-weight: 600; }
td { overflow-wrap: anywhere; }
table.numbers th { width: auto; white-space: nowrap; }
table.numbers td { overflow-wrap: normal; min-width: 8rem; }
table.numbers th:not(:first-child) { text-align: right; }
table.numbers td.number { text-align: right; font-variant-numeric: tabular-nums; min-width: 0;
  white-space: nowrap; }
.value { font-size: 1.6rem; }
.signature { display: flex; flex-wrap: wrap; gap: 2rem; margin-top: 3rem; }
.signature div { flex: 1 1 14rem; border-top: 1px solid #111; padding-top: .3rem; }
@media (max-width: 500px) {
  th { width: 5rem; }
  th, td { padding: .3rem; }
  body { padding: 0 .5rem; }
  table.numbers { font-size: .7rem; }
  table.numbers th, table.numbers td { padding: .3rem .15rem; }
  table.numbers td { min-width: 4rem; }
}
@media print { body { margin: 0; } .table { overflow-x: visible; } }
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
<p class="question">I have read the guarantee and the limits of this {noun}. I agree to its
publication.</p>
<div class="signature"><div>Date and place</div><div>Name and signature</div></div>
</body>
</html>
"""


def render_release_page(release: Release, data: str = "") -> str:
    """Render a release as a self-contained HTML page without script.

    Args:
        release: The release.
        data: Name of the file of the data. Empty: it is not stated.
    """
    is_dry_run = release.published is None
    title = f"{_name_page(is_dry_run)}: {release.statistic.describe()}"
    origin = _render_facts(list_origins([release], data))
    return render_page(title, render_release(release) + origin, is_dry_run=is_dry_run)


def render_plan_page(plan: PlanRelease, data: str = "") -> str:
    """Render the releases of a plan as a self-contained HTML page without script.

    Args:
        plan: The releases.
        data: Name of the file of the data. Empty: it is not stated.
    """
    heads = ("statistic", "epsilon", "value", "95 % interval", "RMSE")
    is_dry_run = plan.releases[0].published is None
    facts = [*plan.facts(), *list_origins(plan.releases, data)]
    return render_page(
        f"{_name_page(is_dry_run)} of {len(plan.releases)} statistics",
        _render_table(heads, plan.rows) + _render_facts(facts),
        is_dry_run=is_dry_run,
    )


def render_page(title: str, body: str, *, is_dry_run: bool = False) -> str:
    """Render a page with a place for a signature.

    Args:
        title: Text of the title.
        body: HTML of the body.
        is_dry_run: Whether nothing is published yet.
    """
    noun = _name_page(is_dry_run).lower()
    return _TEMPLATE.format(title=html.escape(title), style=_STYLE, body=body, noun=noun)


def list_origins(releases: Sequence[Release], data: str) -> Facts:
    """List what ties a page to its releases, as rows (label, text).

    Args:
        releases: The releases of the page.
        data: Name of the file of the data. Empty: it is not stated.
    """
    facts = []
    if data:
        facts.append(("data", data))
    facts += [
        ("page made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("version", f"workbench {workbench.__version__}"),
    ]
    for release in releases:
        digest = hashlib.sha256(release.certificate.content()).hexdigest()
        subject = f"{release.statistic.describe()}: " if len(releases) > 1 else ""
        facts.append(("certificate", f"{subject}SHA-256 {digest}"))
    return facts


def _name_page(is_dry_run: bool) -> str:
    """Return what a page states: a release, or the request of a dry run."""
    return "Request" if is_dry_run else "Release"


def render_release(release: Release) -> str:
    """Render the numbers and the facts of a release as HTML.

    Args:
        release: The release.
    """
    # The first fact is the statistic, which is in the title of the page.
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
    return f"<div class='table'><table class='numbers'>{body}</table></div>"


def _render_facts(facts: Facts) -> str:
    """Render labels and sentences as a table."""
    lines = []
    last_label = ""
    for label, text in facts:
        head = "" if label == last_label else html.escape(label)
        kind = " class='value'" if label == "value" else ""
        lines.append(f"<tr><th>{head}</th><td{kind}>{html.escape(text)}</td></tr>")
        last_label = label
    return f"<div class='table'><table>{''.join(lines)}</table></div>"
