"""The command `sample`, which draws outputs of a mechanism and books them before it prints them.

    stdout      the draws, one a line, or one JSON object
    stderr      the cost of the draws, and with --ledger the number of the release

With --ledger, the draws are in the ledger and on the disk before the first one is printed. A
process that is killed publishes nothing that is not booked, and loses nothing that is booked:
`publish again` prints it without further cost.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import emit_json, err, note_booked_release
from workbench.cli.output_paths import check_outputs
from workbench.cli.privatise import warn_of_readers
from workbench.cli.privatise_names import find_row, index_names, is_name_channel
from workbench.data.parameter_grid import read_integers
from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Record

if TYPE_CHECKING:
    from workbench.privacy.draw_cost import DrawCost
    from workbench.privacy.ledger_request import LedgerRequest

# More draws are refused. With --json all draws are in memory at once, so the limit is lower.
_MAX_DRAWS = 100_000_000
_MAX_JSON_DRAWS = 1_000_000
_MAX_BOOKED_DRAWS = 100_000  # A ledger stores the draws, so more are refused.
# Draws are printed in parts of this size.
_PRINTED_DRAWS = 65536


def sample_file(
    file: Path,
    *,
    count: int,
    answer: str | None,
    insecure_seed: int | None,
    json: bool,
    release_ledger: Path | None,
    neighbours: str | None,
    **ledger_options: str | None,
) -> None:
    """Draw outputs of a mechanism, one per line. Each draw about an answer uses the budget again.

    Draws are exactly distributed and use the random numbers of the operating system.

    Args:
        file: A mechanism file.
        count: Number of draws.
        answer: The true answer as text.
        insecure_seed: Seed for reproducible draws, which are not private.
        json: Whether to print a JSON object.
        release_ledger: File of the ledger of releases. None: the draws are not booked.
        neighbours: Relation between tables whose answers are neighbours of the mechanism.
        ledger_options: The person column and the terms of a new ledger, as in
            `LedgerRequest.read`.
    """
    if not 0 <= count <= _MAX_DRAWS:
        must("count", f"an integer in 0..{_MAX_DRAWS}", count)
    if json and count > _MAX_JSON_DRAWS:
        must("count", f"at most {_MAX_JSON_DRAWS} with --json", count)
    if release_ledger is None:
        for name, value in {"neighbours": neighbours, **ledger_options}.items():
            if value is not None:
                must(name, "given with a ledger", value)
    from workbench.data.csv_column import list_with_integers
    from workbench.mechanisms.mechanism import sample as draw
    from workbench.privacy.draw_cost import DrawCost, read_relation
    from workbench.privacy.ledger_request import LedgerRequest
    from workbench.privacy.loading import read_mechanism_file

    if release_ledger is not None:
        check_outputs({"FILE": file}, {"ledger": release_ledger})
        _check_bookable(count, answer, insecure_seed)
    contents = read_mechanism_file(file)
    relation = "replace"
    if release_ledger is not None:
        relation = read_relation(contents.certificate, neighbours)
    request = LedgerRequest.read(release_ledger, relation, **ledger_options)
    cost = DrawCost.from_file(contents)
    if request is not None:
        request.check_limit(cost.make_entry(count, file.name, b""))
    values = draw(
        contents.certificate or contents.mechanism,
        count,
        answer=_parse_answer(contents.mechanism, answer),
        insecure_seed=insecure_seed,
    )
    notes = []
    entries: Record = {}
    if count and insecure_seed is None:
        notes.append(cost.describe(count))
        entries = cost.to_dict(count)
    if request is not None:
        booking_notes, booking_entries = _book_draws(request, cost, values, file.name)
        notes += booking_notes
        entries |= booking_entries
    for note in notes:
        err.print(f"note: {note}", soft_wrap=True)
    if json:
        draws = list_with_integers(values)
        secure = insecure_seed is None
        emit_json({"file": file.name, "secure": secure, "draws": draws, **entries})
        return
    _print_draws(values)


def _check_bookable(count: int, answer: str | None, insecure_seed: int | None) -> None:
    """Raise InvalidRequest if draws of these options are no release for a ledger."""
    if not 1 <= count <= _MAX_BOOKED_DRAWS:
        must("count", f"in 1..{_MAX_BOOKED_DRAWS} with a ledger, which stores the draws", count)
    if answer is None:
        must("answer", "given with a ledger, because noise alone is not published", "none")
    if insecure_seed is not None:
        rule = "left out with a ledger, because draws of a seed must not be published"
        must("insecure_seed", rule, insecure_seed)


def _book_draws(
    request: LedgerRequest, cost: DrawCost, values: Any, name: str
) -> tuple[list[str], Record]:
    """Enter draws into a ledger. They are on the disk when this function returns.

    Returns notes and JSON entries about the ledger, for the owner of the data alone.
    """
    from workbench.privacy.release_ledger import describe_booked_release

    entry = cost.make_entry(len(values), name, _format_draws(values).encode())
    ledger = request.open(entry)
    releases = ledger.book(entry)
    number = releases[-1].number
    note_booked_release(describe_booked_release(request.path, number))
    left = ledger.describe_remaining_budget(releases)
    warn_of_readers(ledger.path)
    ledger_name = ledger.path.name
    remainder_clause = ""
    if ledger.terms.epsilon is not None:
        remainder_clause = f", which has {left} left"
    change = "adding or removing"
    if ledger.terms.relation == "replace":
        change = "replacing the rows of"
    notes = [
        f"This is release {number} of {ledger_name}{remainder_clause}. `workbench publish again "
        f"{ledger_name} {number}` prints the draws again and uses no budget.",
        f"The cost is right only if {change} one person leaves the true answer unchanged or "
        "changes it to a neighbouring answer.",
    ]
    return notes, {"ledger": ledger_name, "number": number, "left": left}


def _print_draws(values: Any) -> None:
    """Print draws, one a line."""
    for start in range(0, len(values), _PRINTED_DRAWS):
        sys.stdout.write(_format_draws(values[start : start + _PRINTED_DRAWS]))


def _format_draws(values: Any) -> str:
    """Format draws as lines. The coordinates of a vector are separated by commas."""
    from workbench.data.csv_column import list_with_integers

    rows = list_with_integers(values)
    lines = (",".join(map(str, row)) if isinstance(row, list) else str(row) for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _parse_answer(mechanism: Any, answer: str | None) -> Any:
    """Return an answer as an int or a tuple of ints, or as text if the mechanism reads texts.

    Mechanisms with labels or real inputs read the text themselves, exactly. A name is found in the
    spellings that `privatise channel` accepts in a column.
    """
    if answer is None:
        return None
    if is_name_channel(mechanism):
        # Names that differ in case alone are told apart by their exact spelling.
        with suppress(InvalidRequest):
            row = find_row(mechanism, index_names(mechanism), answer)
            return answer if row is None else mechanism.inputs[row]
    inputs = getattr(mechanism, "column_inputs", None)
    has_labels = getattr(mechanism, "axis_labels", None) is not None
    has_segments = getattr(mechanism, "segments", ()) != ()
    has_real_inputs = inputs is not None and not inputs.is_whole
    if has_labels or has_segments or has_real_inputs:
        return answer
    numbers = read_integers(answer, "answer")
    if len(numbers) == 1:
        return numbers[0]
    return tuple(numbers)
