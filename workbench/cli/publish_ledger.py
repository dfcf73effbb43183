"""The commands `publish ledger` and `publish again`, which read a ledger of releases.

`publish ledger` shows the terms, the releases, and the used and the remaining budget. `publish
again` prints a booked value. It changes nothing, so it uses no budget.
"""

from __future__ import annotations

import json as json_module
import sys
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

from workbench.cli.console import Report, emit_json, make_facts_grid, make_note, make_table
from workbench.errors import must
from workbench.exact.objects import Record

_OWNER_NOTE = (
    "For the owner of the data alone: the cost of a published column counts the rows of the person "
    "with most rows, which is private."
)


def show_ledger(file: Path) -> Report:
    """Show a ledger of releases: its terms, its releases, and the used and the remaining budget.

    Args:
        file: File of the ledger.
    """
    from workbench.privacy.release_ledger import ReleaseLedger
    from workbench.publishing.booking import describe_all_releases

    ledger = ReleaseLedger.open(file)
    values = ledger.to_dict()
    releases = ledger.releases
    heads = ["release", "time (UTC)", "what", "privacy", "budget"]
    read_row = itemgetter("number", "booked", "what", "notion", "cost")
    rows = [read_row(release) for release in values["releases"]]
    facts = ledger.facts()
    all_releases = describe_all_releases(ledger, releases)
    values["all_releases"] = all_releases
    if all_releases is not None:
        facts.append(("all releases", all_releases))
    parts: list[Any] = [make_facts_grid(facts)]
    if rows:
        parts.append(make_table("Releases", heads, rows))
    if ledger.has_private_costs(releases):
        values["words"] = [_OWNER_NOTE]
        parts.append(make_note(_OWNER_NOTE))
    return Report(values, parts)


def print_release_again(file: Path, number: int, *, json: bool) -> None:
    """Print a published value again from the ledger. It uses no budget.

    Args:
        file: File of the ledger.
        number: Number of the release, which `publish ledger FILE` lists.
        json: Whether to print a JSON object.
    """
    from workbench.privacy.release_ledger import ReleaseLedger

    ledger = ReleaseLedger.open(file)
    release = ledger.find_release(number)
    if release.value is None:
        rule = f"a release whose value is in {file.name}"
        got = f"{number}, whose value is only in {release.output or 'its own output'}"
        must("number", rule, got)
    text = release.value.decode()
    value: Any = text
    # The table of an output file may begin with a brace, and so may a drawn label.
    if not release.output and text.startswith("{"):
        with suppress(json_module.JSONDecodeError):
            value = json_module.loads(text)
    if not json:
        lines = list_published_lines(value)
        if lines:
            text = "\n".join(lines)
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        return
    record: Record = {"ledger": file.name, **ledger.describe_release(release), "value": value}
    emit_json(record)


def list_published_lines(value: Any) -> list[str]:
    """List the statistic, the value and the interval of booked statistics, as they were printed.

    Args:
        value: What the ledger keeps: the JSON object of a release or of a plan, or another value.

    Returns:
        One line for each statistic or number. Empty for another value.
    """
    if not isinstance(value, dict):
        return []
    members = value.get("releases", [value])
    if not all({"statistic", "interval", "value", "rmse"} <= member.keys() for member in members):
        return []
    from workbench.publishing.release import format_interval, format_number

    lines = []
    for member in members:
        labels = member["labels"]
        numbers = [(member["value"], member["interval"])]
        names = [member["statistic"]]
        if labels:
            numbers = list(zip(member["value"], member["interval"], strict=True))
            names = [f"{member['statistic']}: {label}" for label in labels]
        for name, (number, interval) in zip(names, numbers, strict=True):
            shown = format_number(number, member["rmse"])
            ends = format_interval(interval, member["rmse"])
            lines.append(f"{name}: {shown} (95 % interval {ends})")
    return [*lines, *value["guarantee"]]
