"""Publish statistics of a private table in the order that keeps them private.

    1. The terms of the ledger are checked, and whether enough budget is left. Noise is chosen and
       certified. A dry run ends here.
    2. The data are read, and the true values are computed.
    3. Noise is drawn, with the randomness of the operating system.
    4. The releases are booked together, with their values. The budget that is left is checked
       again. The entry is on the disk.
    5. Only then are the releases returned.

A process that is killed before step 4 has shown nothing. A process that is killed afterwards has
shown nothing that is not in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.data.plain import read_boolean
from workbench.data.private_table import PrivateCellError, read_private_table
from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.numbers import ZERO
from workbench.exact.random_source import Source
from workbench.privacy.release_ledger import describe_booked_release
from workbench.publishing.booking import Booking, book_release, describe_unused_ledger
from workbench.publishing.release import LedgerStatus, Release
from workbench.publishing.release_noise import PairNoise, ReleaseNoise
from workbench.publishing.request import ReleaseRequest
from workbench.publishing.ripple import RIPPLE, compute_ripple_rmse
from workbench.publishing.sensitivity import make_histogram_query
from workbench.publishing.statistic import COUNT, HISTOGRAM, Answer, Statistic, compute_answer
from workbench.publishing.usual_noise import (
    PublishedVector,
    UsualNoise,
    list_usual_noise,
    measure_geometric_noise,
    measure_histogram,
    measure_number,
    measure_sum_and_count,
)

_GROUPS_NOTE = (
    "Each person is in one group only. So the budget of all groups together is the budget of one "
    "group."
)


def publish_requests(
    data: Any,
    requests: Sequence[ReleaseRequest],
    booking: Booking,
    header: bool | None,
    write_content: Callable[[list[Release]], str],
) -> tuple[list[Release], LedgerStatus | None]:
    """Publish statistics of one table under one booking.

    Args:
        data: The private table, as for `read_private_table`.
        requests: The statistics and their budgets, all with the same relation and person.
        booking: The ledger and the report for the owner.
        header: Whether a file has a header. None: decided from its first row.
        write_content: Function that writes the releases as JSON text, which the ledger keeps.

    Returns:
        The releases, and what the ledger says. None without a ledger.

    Raises:
        InvalidRequest: An option or the data are wrong, or the ledger has too little budget left.
        NotCertified: A certificate would be too large to be proven again.
    """
    if header is not None:
        header = read_boolean(header, "header")
    booking.refuse_same_files(data)
    ledger_request = booking.request_ledger(requests)
    noises = [request.choose_noise() for request in requests]
    releases = [
        replace(_make_unpublished_release(request, noise), has_ledger=ledger_request is not None)
        for request, noise in zip(requests, noises, strict=True)
    ]
    if booking.dry_run:
        return releases, describe_unused_ledger(ledger_request, releases)
    with _reporting_private_errors(booking):
        table = read_private_table(data, header=header)
        answers = []
        for request, noise in zip(requests, noises, strict=True):
            grid = noise.grid if isinstance(noise, PairNoise) else None
            answers.append(compute_answer(request.statistic, table, grid))
    source = Source()
    published = [
        _publish_value(release, request, noise, answer, source)
        for release, request, noise, answer in zip(releases, requests, noises, answers, strict=True)
    ]
    status = book_release(ledger_request, published, write_content)
    facts = []
    for release, answer in zip(published, answers, strict=True):
        facts.append({"statistic": release.statistic.describe(), **_list_private_facts(answer)})
    try:
        booking.write_owner_report({"statistics": facts})
    except InvalidRequest as error:
        if ledger_request is None or status is None or status.number is None:
            raise
        note = describe_booked_release(ledger_request.path, status.number)
        raise InvalidRequest(f"{error} {note}") from None
    return published, status


def _make_unpublished_release(request: ReleaseRequest, noise: ReleaseNoise) -> Release:
    """Return a release without a value. Raises NotCertified if its proof would be too long."""
    noise.certificate.content()
    notes: tuple[str, ...] = ()
    if request.statistic.kind != HISTOGRAM and request.statistic.cell_columns:
        notes = (_GROUPS_NOTE,)
    return Release(
        statistic=request.statistic,
        epsilon=request.epsilon,
        delta=request.delta,
        mechanism=noise.text,
        rmse=noise.rmse,
        width=noise.width,
        advantage=noise.advantage,
        certificate=noise.certificate,
        rounding=noise.rounding,
        usual=list_usual_errors(request),
        notes=notes,
    )


def _publish_value(
    release: Release, request: ReleaseRequest, noise: ReleaseNoise, answer: Answer, source: Source
) -> Release:
    """Draw noise, and return a release with its published value.

    Args:
        release: The release without a value.
        request: Its statistic and budget.
        noise: Its noise.
        answer: The true value.
        source: The source of randomness.
    """
    published = noise.publish(answer, source)
    usual = list_usual_errors(request, published.estimate)
    return replace(release, published=published, rmse=published.rmse, usual=usual)


def list_usual_errors(
    request: ReleaseRequest, estimate: tuple[int, Fraction] | None = None
) -> tuple[UsualNoise, ...]:
    """List the errors of usual noise, and of ripple noise on a histogram.

    Args:
        request: The statistic and its budget.
        estimate: For a mean with private n, the estimated n and relative mean. None before the
            release: the expected number of rows and the worst mean, or no errors.
    """
    statistic = request.statistic
    vector = _measure_vector(statistic, request.expected_rows, estimate)
    if vector is None:
        return ()
    usual = list_usual_noise(vector, request.epsilon, request.delta)
    if statistic.kind == COUNT:
        usual.append(measure_geometric_noise(vector.l1_norm, request.epsilon))
    if statistic.kind == HISTOGRAM:
        query = make_histogram_query(statistic.person, one_row_per_bin=statistic.one_row_per_bin)
        with suppress(InvalidRequest):  # The sums of ripple noise would be too long.
            rmse = compute_ripple_rmse(query, len(statistic.labels), request.epsilon)
            usual.append(UsualNoise(RIPPLE, rmse, is_pure=True))
    return tuple(sorted(usual, key=lambda noise: noise.rmse))


def _measure_vector(
    statistic: Statistic, expected_rows: int | None, estimate: tuple[int, Fraction] | None
) -> PublishedVector | None:
    """Measure how far one person moves the vector that is usually published, None if unknown."""
    person = statistic.person
    if statistic.kind == HISTOGRAM:
        return measure_histogram(person, one_row_per_bin=statistic.one_row_per_bin)
    if statistic.kind == COUNT:
        return measure_number(COUNT, person)
    low = statistic.low
    high = statistic.high
    if not statistic.is_pair:
        return measure_number(statistic.kind, person, low, high, statistic.public_rows)
    if estimate is not None:
        rows, share = estimate
        return measure_sum_and_count(person, low, high, rows, share)
    if expected_rows is not None:
        return measure_sum_and_count(person, low, high, expected_rows, ZERO)
    return None


def _list_private_facts(answer: Answer) -> dict[str, Any]:
    """Return the true value and the numbers of rows, for the owner of the data."""
    values: list[Any] = [float(value) for value in answer.values]
    if answer.pairs:
        values = [[*pair] for pair in answer.pairs]
    return {"true values": values, **answer.facts}


@contextmanager
def _reporting_private_errors(booking: Booking) -> Iterator[None]:
    """Write the place of a wrong private cell to the report for the owner, not to the error."""
    try:
        yield
    except PrivateCellError as error:
        booking.write_owner_report({"error": str(error), "place": error.detail})
        hint = "--owner-report FILE writes the place to a private file."
        if booking.owner_report is not None:
            hint = f"The place is in {booking.owner_report.name}."
        raise PrivateCellError(f"{error} {hint}", error.detail) from None
    except (WorkbenchError, MemoryError):
        raise
    except Exception as error:
        # The text of an unexpected error may show a cell.
        detail = f"{type(error).__name__}: {error}"
        message = "data must be a table that can be read. Reading it failed with an unknown error."
        booking.write_owner_report({"error": message, "place": detail})
        raise PrivateCellError(message, detail) from None
