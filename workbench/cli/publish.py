"""The commands `publish`, which publish statistics of a private table.

All work is in `workbench.publishing`. A release is booked before anything is printed or written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import (
    Report,
    make_facts_grid,
    make_note,
    make_table,
    note_booked_release,
)
from workbench.cli.options import select_given
from workbench.cli.output_paths import check_outputs, write_output
from workbench.errors import must
from workbench.exact.objects import Record

if TYPE_CHECKING:
    from workbench.publishing.release import LedgerStatus, Release


def publish_count(**options: Any) -> Report:
    """Publish how many rows satisfy a condition, with the optimal integer noise.

    Args:
        options: Options of the command.
    """
    return _publish_statistic("count", **options)


def publish_sum(**options: Any) -> Report:
    """Publish the sum of a column, with the optimal noise on the reals.

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


def publish_plan(
    *, plan: Path, data: Path | None, save: Path | None, html: Path | None, **options: Any
) -> Report:
    """Publish several statistics under one budget.

    The budget is split so that each error, divided by the size of its statistic, is the same.
    The plan is a TOML file. It names the data and has a table [[statistic]] for each statistic.

    Args:
        plan: TOML file.
        data: CSV file. None: the file that the plan names.
        save: Files of the certificates, without their numbers. None: not written.
        html: Page to write. None: not written.
        **options: Other options of the command.
    """
    from workbench.publishing.plan import list_certificate_paths, read_plan
    from workbench.publishing.plan import publish_plan as publish

    outputs = _name_outputs(html, options)
    if save:
        count = len(read_plan(plan)["statistic"])
        for path in list_certificate_paths(save, count):
            outputs[f"saved file {path.name}"] = path
    check_outputs({"plan": plan, "data": data}, outputs)
    release = publish(plan, data, **select_given(options))
    _note_booking(release.ledger, options["ledger"])
    certificates = [member.certificate.to_dict() for member in release.releases]
    if save:
        paths = list_certificate_paths(save, len(release.releases))
        for path, member in zip(paths, release.releases, strict=True):
            write_output(path, member.certificate.content())
    if html:
        from workbench.publishing.page import render_plan_page

        table = data if data is not None else read_plan(plan).get("data")
        name = "" if table is None else Path(table).name
        write_output(html, render_plan_page(release, name).encode())
    ledger = vars(release.ledger) if release.ledger is not None else None
    values = {**release.to_dict(), "ledger": ledger, "certificates": certificates}
    heads = ("statistic", "epsilon", "value", "95 % interval", "RMSE")
    parts = [make_table("", heads, release.rows), make_facts_grid(release.facts())]
    return Report(values, parts)


def _name_outputs(html: Path | None, options: Record) -> dict[str, Path | None]:
    """Return the output files of a command by their names in messages."""
    return {
        "html file": html,
        "owner report": options["owner_report"],
        "ledger": options["ledger"],
    }


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

    outputs = _name_outputs(html, options)
    check_outputs({"data": data}, {"saved file": save, **outputs})
    given = {name: value for name, value in options.items() if value not in (None, [], ())}
    for name in ("values", "bins"):
        texts = given.get(name, ())
        if len(texts) == 1:
            given[name] = texts[0]
        elif not all("=" in text for text in texts):
            must(
                name,
                "given once, or as COLUMN=... for each of several columns",
                " and ".join(texts),
            )
    release = publish_kind(kind, data, given)
    _note_booking(release.ledger, options["ledger"])
    content = release.certificate.content()
    if save:
        write_output(save, content)
    if html:
        from workbench.publishing.page import render_release_page

        write_output(html, render_release_page(release, data.name).encode())
    return Report(functools.partial(_list_values, release), _list_parts(release))


def _note_booking(status: LedgerStatus | None, ledger: Path) -> None:
    """Keep the number of a booked release for later errors. A dry run has none."""
    from workbench.privacy.release_ledger import describe_booked_release

    if status is not None and status.number is not None:
        note_booked_release(describe_booked_release(ledger, status.number))


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
    facts = release.facts()
    parts: list[Any] = []
    if release.rows:
        # The first fact names the statistic, which is then the title of the table.
        (_, title), *facts = facts
        parts.append(make_table(title, ("cell", "value", "95 % interval"), release.rows))
    return [*parts, make_facts_grid(facts), *map(make_note, release.notes)]
