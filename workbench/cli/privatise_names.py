"""The command `privatise channel`: a column of numbers of a range, or of listed names or scores.

Listed names or scores need a channel that was designed with --answers. Every cell must be one
of the inputs of the channel. As in the values of `publish histogram`, blanks around a name, upper
and lower case, and the Unicode form of a letter do not matter. Totals are estimated from the
published column (`workbench.mechanisms.name_totals`), so they may be published and use no budget.
Errors never show a cell, because cells are private.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report, make_table
from workbench.cli.options import select_given
from workbench.cli.output_paths import check_outputs, write_output
from workbench.cli.privatise import PUBLICATION_OPTIONS, Publication, privatise_column
from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Record

if TYPE_CHECKING:
    from workbench.data.csv_column import CsvColumn
    from workbench.exact.arrays import Integers
    from workbench.mechanisms.channel import Channel
    from workbench.privacy.loading import FileContents
    from workbench.privacy.row_cost import RowCost

_TOTALS_NOTE = (
    "The totals are unbiased estimates from the published column alone. They use no further "
    "budget. Their standard errors measure the randomization, not which people are in the table."
)


@dataclass(frozen=True)
class NameColumn:
    """The options of a column of names.

    Attributes:
        column: Name or number of the column.
        totals: CSV file for the totals. None: no file is written.
        raw: Whether a mechanism without a certificate is accepted.
    """

    column: str
    totals: Path | None
    raw: bool


def privatise_channel(*, totals: Path | None, **options: Any) -> Report:
    """Publish a column with a saved channel, or with the optimal channel for a range of numbers.

    A channel that was designed with --answers publishes a column of names or scores. The report
    then has unbiased totals: how many rows have each value, with standard errors.
    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected error.

    Args:
        totals: CSV file for the totals. None: no file is written.
        options: Options of the command.
    """
    mechanism = options["mechanism"]
    contents = None
    if mechanism is not None:
        contents = read_name_channel(mechanism)
    if contents is None:
        if totals is not None:
            must("totals", "given with a channel between listed values (--answers)", totals.name)
        return privatise_column("channel", "range", "epsilon", **options)
    column = options.pop("column")
    raw = options.pop("raw")
    publication_options = {name: options.pop(name) for name in PUBLICATION_OPTIONS}
    given = select_given({**options, "mechanism": None, "time_limit": None})
    for name in given:
        must(name, "left out with a channel between listed values, which fixes it", given[name])
    run = Publication({"mechanism": mechanism}, **publication_options)
    return privatise_names(run, NameColumn(column, totals, raw), contents)


def read_name_channel(path: Path) -> FileContents | None:
    """Read a mechanism file. The result is None if it is no channel between listed values.

    Args:
        path: Path of the file.
    """
    from workbench.privacy.loading import read_mechanism_file

    contents = read_mechanism_file(path)
    return contents if is_name_channel(contents.mechanism) else None


def is_name_channel(mechanism: Any) -> bool:
    """Return whether a mechanism is a channel between listed values.

    Args:
        mechanism: Mechanism of a file.
    """
    from workbench.mechanisms.channel import Channel
    from workbench.mechanisms.mechanism import can_publish_reals
    from workbench.questions.places import are_planar

    if not isinstance(mechanism, Channel) or can_publish_reals(mechanism):
        return False
    return mechanism.axis_labels is not None and not any(map(are_planar, mechanism.axis_labels))


def privatise_names(run: Publication, options: NameColumn, contents: FileContents) -> Report:
    """Publish a column of listed values, and estimate how many rows have each value.

    Args:
        run: The files and options of the publication.
        options: The column and the file of the totals.
        contents: The channel, as `read_name_channel` returns it.

    Raises:
        InvalidRequest: A cell is no input of the channel, or an option does not fit.
    """
    import numpy as np

    from workbench.exact.sampler import Sampler
    from workbench.mechanisms.name_totals import estimate_totals

    channel: Any = contents.mechanism
    certificate = contents.certificate
    if certificate is None and not options.raw:
        must("mechanism", "a certificate (or use --raw)", "a file that proves no privacy")
    outputs = {"output": run.target, "report beside the output": run.sidecar}
    check_outputs({"input": run.source, **run.inputs}, {**outputs, "totals": options.totals})
    if options.totals is not None and options.totals.is_file() and not run.overwrite:
        got = f"{options.totals.name}, which exists"
        must("totals", "a new file, or given with --overwrite", got)
    cost = _make_row_cost(contents)
    run.check_ledger(cost)
    columns = run.read([options.column])
    positions = _find_rows(channel, columns.private[0], options.column, header=run.header)
    output_positions = Sampler(list(channel.rows), run.random_source).draw_from(positions)
    notes = []
    totals_table: list[Record] | None = None
    try:
        counts = np.bincount(output_positions, minlength=len(channel.outputs))
        totals = estimate_totals(channel, counts)
    except InvalidRequest as error:
        if options.totals is not None:
            raise
        notes.append(f"No totals are estimated. {error}")
    else:
        notes.append(_TOTALS_NOTE)
        rows = zip(_list_names(channel.inputs), totals.values, totals.errors, strict=True)
        totals_table = [
            {"value": name, "total": float(total), "standard_error": float(error)}
            for name, total, error in rows
        ]
    report = {
        "column": options.column,
        "method": "channel",
        "mechanism": channel.describe(),
        "certified": certificate is not None,
        "claim": certificate.claim.to_dict() if certificate else None,
        "expected_error": _measure_errors(channel),
        "totals": totals_table,
        "words": notes,
    }
    if certificate is None:
        notes.append("The mechanism has no certificate and claims no privacy.")
    published = channel.outputs[output_positions]
    result = run.publish(
        columns, positions.astype(float), [published], cost=cost, report=report, lines=[]
    )
    if totals_table is None:
        return result
    if options.totals is not None:
        write_output(options.totals, _encode_totals(totals_table))
    cells = [
        [row["value"], f"{row['total']:.1f}", f"{row['standard_error']:.1f}"]
        for row in totals_table
    ]
    table = make_table("Estimated totals", ["value", "rows", "standard error"], cells)
    return Report(result.values, [*result.parts, table])


def _find_rows(
    channel: Channel, column: CsvColumn, selected: str, *, header: bool | None
) -> Integers:
    """Return the row of the channel for every cell. Raises InvalidRequest, without any cell."""
    import numpy as np

    row_by_key = index_names(channel)
    first_cell = column.table.rows[0][column.position]
    first_row = find_row(channel, row_by_key, first_cell)
    has_unclear_header = selected.strip().isdecimal() or first_row is not None
    if header is None and has_unclear_header:
        rule = (
            "given with --header or --no-header, because the first cell of a column of names may "
            "be a name as well"
        )
        must("input", rule, column.table.file)
    row_by_cell = {cell: find_row(channel, row_by_key, cell) for cell in {*column.cells}}
    for index, cell in enumerate(column.cells):
        if row_by_cell[cell] is None:
            place = column.table.describe_row(index)
            rule = (
                f"one of the {len(channel.rows)} inputs of the mechanism (case and blanks around "
                "it do not matter)"
            )
            must(place, rule, "another value")
    return np.array([row_by_cell[cell] for cell in column.cells], dtype=np.int64)


def index_names(channel: Channel) -> dict[Hashable, int]:
    """Return the row of the channel by the key of its input.

    The inputs must differ in more than case and blanks. Otherwise a cell might have two rows.

    Args:
        channel: A channel between listed values.

    Raises:
        InvalidRequest: Two inputs have the same key.
    """
    from workbench.data.private_table import make_category_key

    row_by_key: dict[Hashable, int] = {}
    for row, name in enumerate(channel.inputs):
        key = make_category_key(name)
        if key in row_by_key:
            rule = "one whose inputs differ in more than case and blanks"
            must("mechanism", rule, f"one with {name} twice")
        row_by_key[key] = row
    return row_by_key


def find_row(channel: Channel, row_by_key: dict[Hashable, int], cell: str) -> int | None:
    """Return the row of the channel for a cell. None if it is no input.

    Args:
        channel: The channel.
        row_by_key: Its rows by the keys of their inputs.
        cell: The cell.
    """
    from workbench.data.private_table import make_category_key

    row = row_by_key.get(make_category_key(cell))
    if row is None:
        with suppress(InvalidRequest):
            # Inputs such as 007 were read as numbers when the channel was designed.
            row = channel.find_row(cell.strip())
    return row


def _list_names(inputs: Any) -> list[Any]:
    """Return the inputs of a channel for reports."""
    from workbench.data.points import format_point

    return [format_point(value) for value in inputs]


def _make_row_cost(contents: FileContents) -> RowCost:
    """Return the privacy cost of one row: by the certificate, and between any two inputs."""
    from workbench.mechanisms.channel import Channel
    from workbench.privacy.privacy_budget import PrivacyBudget, budget_of_claim
    from workbench.privacy.row_cost import RowCost, find_exact_budget

    channel: Any = contents.mechanism
    claim = contents.certificate.claim if contents.certificate else None
    budget = budget_of_claim(claim) if claim else None
    delta = budget.delta if budget else Fraction(0)
    any_two = find_exact_budget(Channel(channel.rows), delta) or PrivacyBudget(epsilon=None)
    if claim is None:
        budget = any_two
    if channel.neighbours is None and budget is not None and not budget.per_distance:
        is_local = False
        any_two = budget
    else:
        is_local = channel.neighbours is not None and not any_two.is_within(budget)
        any_two = any_two.round_up_epsilon()
    # A notion without ε, whose exact ε is unbounded, has no budget in ε.
    has_budget = budget is not None or any_two.epsilon is not None
    notion_name = "none"
    rho = None
    if claim:
        notion_name = claim.notion.name
        if channel.neighbours is None:
            rho = claim.values.get("rho")
    return RowCost(
        neighbours=budget,
        any_two=any_two if has_budget else None,
        is_local=is_local,
        domain=f"the {len(channel.rows)} inputs",
        notion=notion_name,
        rho=rho,
        neighbour_condition="that are neighbours in the certificate",
    )


def _measure_errors(channel: Channel) -> dict[str, float]:
    """Return the probabilities of a wrong output. They depend on the channel alone."""
    import numpy as np

    inputs = _list_names(channel.inputs)
    outputs = channel.outputs.tolist()
    right = []
    for row, name in zip(channel.matrix, inputs, strict=True):
        right.append(sum(mass for mass, output in zip(row, outputs, strict=True) if output == name))
    return {
        "probability of another value than the true one, all values equally often": float(
            1 - np.mean(right)
        ),
        "largest probability of another value than the true one": float(1 - min(right)),
    }


def _encode_totals(rows: list[Record]) -> bytes:
    """Encode the totals as a CSV file."""
    from workbench.data.csv_column import encode_csv_rows

    cells = [["value", "total", "standard_error"]]
    cells += [[str(row["value"]), repr(row["total"]), repr(row["standard_error"])] for row in rows]
    return encode_csv_rows(cells)
