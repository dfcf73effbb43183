"""The commands `publish`, which publish statistics of a private table.

All work is in `workbench.publishing`. A release is booked before anything is printed or written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, make_facts_grid, make_note, make_table
from workbench.cli.output_paths import check_outputs, write_output
from workbench.exact.objects import Record

if TYPE_CHECKING:
    from workbench.publishing.release import Release


def publish_count(**options: Any) -> Report:
    """Publish how many rows satisfy a condition, with the best integer noise.

    Args:
        options: Options of the command.
    """
    return _publish_statistic("count", **options)


def publish_sum(**options: Any) -> Report:
    """Publish the sum of a column, with the best noise on the reals.

    Args:
        options: Options of the command.
    """
    return _publish_statistic("sum", **options)


def publish_mean(**options: Any) -> Report:
    """Publish the mean of a column. The number of rows is private, or public with --rows.

    Args:
        options: Options of the command.
    """
    return _publish_statistic("mean", **options)


def publish_histogram(**options: Any) -> Report:
    """Publish how many rows have each listed value, or are in each bin.

    Args:
        options: Options of the command.
    """
    return _publish_statistic("histogram", **options)


def _publish_statistic(
    kind: str, *, data: Path, save: Path | None, html: Path | None, **options: Any
) -> Report:
    """Publish a statistic.

    Args:
        kind: "count", "sum", "mean" or "histogram".
        data: CSV file.
        save: File of the certificate. None: not written.
        html: Page to write. None: not written.
        **options: Other options of the command.
    """
    from workbench.publishing.api import publish_kind

    check_outputs(
        {"data": data},
        {
            "saved file": save,
            "html file": html,
            "owner report": options["owner_report"],
            "ledger": options["ledger"],
        },
    )
    given = {name: value for name, value in options.items() if value not in (None, [], ())}
    for name in ("values", "bins"):
        if len(given.get(name, ())) == 1:
            given[name] = given[name][0]
    release = publish_kind(kind, data, given)
    content = release.certificate.content()
    if save:
        write_output(save, content)
    if html:
        from workbench.publishing.page import render_release_page

        write_output(html, render_release_page(release).encode())
    return Report(functools.partial(_list_values, release), _list_parts(release))


def _list_values(release: Release) -> Record:
    """Return the object of --json."""
    ledger = None
    if release.ledger is not None:
        ledger = vars(release.ledger)
    return {
        **release.to_dict(),
        "ledger": ledger,
        "certificate": release.certificate.to_dict(),
    }


def _list_parts(release: Release) -> Iterable[Any]:
    """Return what is printed."""
    parts: list[Any] = []
    if release.rows:
        heads = ("cell", "value", "95 % interval")
        parts.append(make_table("", heads, release.rows))
    return [*parts, make_facts_grid(release.facts()), *map(make_note, release.notes)]
