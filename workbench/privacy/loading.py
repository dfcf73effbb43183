"""Read any mechanism file: a file of the workbench, or a table of a PMF, a channel or noise.

    certificate, mechanism      the files that this workbench writes (JSON)
    a list of numbers           a PMF: JSON list, {"pmf": [...]}, or CSV with one row or one column
    a list of rows              a channel: JSON list of lists, {"rows": [...]} or {"matrix": [...]},
                                or CSV; its first column may name the inputs if its first line names
                                the columns
    pairs                       (value, probability) of noise on the integers: JSON list of pairs,
                                or CSV
    a law                       the CSV of a mechanism that the explorer saves, with named columns
                                (`workbench.privacy.law_table`)

Claims in a file are not trusted; they are proven again. Decimals are exact: 0.1 is 1/10, with any
number of digits. Integers and ratios such as 1/3 are exact as well. Weights are divided by their
exact sum, which must be 1 within 1e-6 unless all weights are integers. A PMF or matrix has no
neighbour relation, so the caller must give one. Nothing in a table is skipped except blank lines,
comments (#) and a first line of names, because a missing row or cell could be the worst outcome of
the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.data.number_tables import (
    MAX_SUM_ERROR,
    NumberTable,
    are_noise_pairs,
    list_lines,
    read_number,
    read_number_table,
    split_cells,
)
from workbench.data.plain import read_integer
from workbench.errors import CorruptFile, InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, round_up
from workbench.io.files import parse_json, prefix_errors_with_file, read_text
from workbench.io.providers import get_places
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel, pairs_within
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.mechanism import Mechanism
from workbench.mechanisms.shown_mechanism import MECHANISM_FILE_FORM, MECHANISM_FORMAT
from workbench.privacy.certificate import CERTIFICATE_FORMAT, Certificate
from workbench.privacy.certificate_file import certificate_from_dict, mechanism_from_dict
from workbench.privacy.law_table import is_law_table, read_integer_law, read_law_table
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.modulo_noise import ModuloNoise
from workbench.questions.unbounded_noise import MAX_SENSITIVITY, IntegerNoise


@dataclass(frozen=True)
class FileContents:
    """The contents of a mechanism file.

    Attributes:
        mechanism: The mechanism, or noise without a question (`Distribution`, `IntegerLaw`).
        certificate: The certificate. None for other files.
        has_neighbours: Whether the file defines which inputs are neighbours.
    """

    mechanism: Mechanism | Distribution | IntegerLaw
    certificate: Certificate | None = None
    has_neighbours: bool = True

    def with_neighbours(
        self,
        *,
        sizes: Iterable[int] | None = None,
        shifts: Iterable[Any] | None = None,
        max_shift: Any = None,
        directed: bool = False,
        pairs: Iterable[Any] | None = None,
    ) -> Mechanism:
        """Return the mechanism with its neighbour relation.

        The relation is that of the file, or for a PMF or matrix the one given here. Without any
        relation, every two rows of a channel are neighbours, which is the strongest relation.

        Args:
            sizes: Orders of the cyclic factors of the group, for a PMF or noise values.
            shifts: Differences of neighbours, for a PMF or noise modulo a size.
            max_shift: Largest difference of neighbours. For a channel, inputs that differ by at
                most this, or rows if they have no labels. For vectors a text such as "1 L1".
            directed: Whether neighbours are compared in one order only.
            pairs: Pairs of neighbouring rows of a channel.

        Raises:
            InvalidRequest: An option does not fit the file.
        """
        mechanism = self.mechanism
        if self.has_neighbours:
            assert not isinstance(mechanism, (Distribution, IntegerLaw))
            options = (sizes, shifts, max_shift, pairs)
            if any(option is not None for option in options) or directed:
                raise InvalidRequest(
                    "The file has its own neighbour relation; leave out sizes, shifts, max-shift "
                    "and pairs."
                )
            return mechanism
        if isinstance(mechanism, Distribution):
            if pairs is not None:
                raise InvalidRequest("pairs are for channels; give shifts or max-shift for a PMF.")
            if shifts is None and max_shift is None:
                raise InvalidRequest(
                    "A PMF does not say which answers are neighbours. Give --shifts or --max-shift."
                )
            group = {"n": len(mechanism) - 1} if sizes is None else {"sizes": sizes}
            question = ModuloNoise(**group, shifts=shifts, max_shift=max_shift, directed=directed)
            return AdditiveNoise(question, mechanism)
        if isinstance(mechanism, IntegerLaw):
            if pairs is not None:
                raise InvalidRequest("pairs are for channels; give max-shift for noise values.")
            return _noise_with_neighbours(mechanism, sizes, shifts, max_shift, directed)
        assert isinstance(mechanism, Channel)
        if sizes is not None or shifts is not None:
            raise InvalidRequest(
                "sizes and shifts are for PMFs; give pairs or max-shift for a channel."
            )
        return _channel_with_neighbours(mechanism, max_shift, pairs, directed)


def _channel_with_neighbours(
    channel: Channel, max_shift: Any, pairs: Iterable[Any] | None, is_directed: bool
) -> Channel:
    """Return a channel with a neighbour relation. Raises InvalidRequest.

    Neighbours are the `pairs` of row numbers, or answers that differ by at most `max_shift`; all if
    both are None. `is_directed` protects one order of each pair.
    """
    if pairs is not None and max_shift is not None:
        raise InvalidRequest("A channel's neighbours must be given by one of pairs and max-shift.")
    row_count = len(channel.rows)
    if channel.axis_labels is not None and channel.axis_labels[0] != tuple(range(row_count)):
        if pairs is not None:
            raise InvalidRequest(
                "pairs count rows, and the rows of this file have labels: leave the labels out."
            )
        if max_shift is not None:
            pairs = FiniteQuery(channel.axis_labels[0], max_shift=max_shift).neighbour_pairs
    if pairs is None:
        pairs = pairs_within(row_count - 1, row_count - 1 if max_shift is None else max_shift)
    return Channel.from_pairs(channel, pairs, directed=is_directed)


def _noise_with_neighbours(
    law: IntegerLaw,
    sizes: Iterable[int] | None,
    shifts: Iterable[Any] | None,
    max_shift: Any,
    is_directed: bool,
) -> Mechanism:
    """Return noise on the integers if `sizes` is None, otherwise modulo these sizes.

    The other arguments are those of `ModuloNoise`. Raises InvalidRequest.
    """
    if sizes is None:
        if max_shift is None or shifts is not None or is_directed:
            raise InvalidRequest(
                "Noise values do not say which answers are neighbours: give max-shift alone for "
                "noise on the integers, or sizes with shifts or max-shift for noise modulo a size."
            )
        distance = read_integer(max_shift, "max_shift", 1, MAX_SENSITIVITY)
        return AdditiveIntegerNoise(IntegerNoise(distance), law)
    question = ModuloNoise(sizes=sizes, shifts=shifts, max_shift=max_shift, directed=is_directed)
    if not question.is_scalar or law.ratio or law.first < 0 or law.last >= question.order:
        raise InvalidRequest(
            f"Noise modulo {question.order} must have the values 0..{question.order - 1}. "
            f"Got {law.first}..{law.last}{' and tails' if law.ratio else ''}."
        )
    return AdditiveNoise(question, law.weights_between(0, question.order - 1))


def load(path: Path | str) -> Mechanism | Distribution | IntegerLaw:
    """Read the mechanism of a file. A certificate is proven again first.

    Args:
        path: Path of a file of a kind that the module header lists.

    Returns:
        The mechanism: a Distribution for a PMF, a Channel for a matrix, and an IntegerLaw for pairs
        (value, probability).

    Raises:
        CorruptFile: The file is malformed, or its certificate does not prove the claim.
        InvalidRequest: The file cannot be read.
    """
    return read_mechanism_file(path).mechanism


def read_mechanism_file(path: Path | str) -> FileContents:
    """Read a file as `load` does, and return its certificate as well.

    Args:
        path: Path of the file.

    Raises:
        CorruptFile: The file is malformed, or its certificate does not prove the claim.
    """
    # Spreadsheets write a byte order mark.
    text = read_text(path).removeprefix("\ufeff")
    first_character = text.lstrip()[:1]
    try:
        with prefix_errors_with_file(path):
            if first_character in {"{", "["} or Path(path).suffix.lower() == ".json":
                return _read_json_contents(text)
            return _read_csv_contents(text)
    except InvalidRequest as error:
        raise CorruptFile(f"{Path(path).name} holds no mechanism: {error}") from None


def _read_json_contents(text: str) -> FileContents:
    """Read a certificate, a mechanism or a table of numbers from JSON. Raises CorruptFile."""
    data = parse_json(text)
    if isinstance(data, dict):
        if data.get("format") == CERTIFICATE_FORMAT:
            certificate = certificate_from_dict(data)
            return FileContents(certificate.mechanism, certificate)
        if data.get("format") == MECHANISM_FORMAT:
            return FileContents(mechanism_from_dict(MECHANISM_FILE_FORM.read(data)["mechanism"]))
        if data.get("format") in [*get_places("proof readers")]:
            raise CorruptFile(
                f"The file must contain a mechanism. Got a {data['format']}, which "
                "`workbench check` proves."
            )
    data = parse_json(text, decimals=True)
    if isinstance(data, dict):
        tables = [data[key] for key in ("pmf", "rows", "matrix") if key in data]
        if len(tables) != 1:
            raise CorruptFile(
                "The object must be a certificate or a mechanism, or have exactly one of the "
                "entries pmf, rows and matrix."
            )
        data = tables[0]
    if not isinstance(data, list) or not data:
        raise CorruptFile("The file must contain a list of numbers or a list of rows.")
    has_rows = isinstance(data[0], list)
    rows = data
    if not has_rows:
        rows = [data]
    if not all(isinstance(row, list) for row in rows):
        raise CorruptFile("Every row must be a list of numbers.")
    table = [[read_number(cell) for cell in row] for row in rows]
    if are_noise_pairs(table):
        law = read_integer_law([*map(_format_row, table)])
        return FileContents(law, has_neighbours=False)
    if has_rows:
        return FileContents(_build_channel(table), has_neighbours=False)
    return FileContents(_build_distribution(table[0]), has_neighbours=False)


def _read_csv_contents(text: str) -> FileContents:
    """Read a table of a law or of numbers from CSV. Raises CorruptFile, InvalidRequest."""
    lines = list_lines(text)
    # Each separator is tried on the first line. A file without lines has no heads.
    for separator in ",;\t" if lines else "":
        heads: list[str] = []
        # With a wrong separator a quote may end inside a cell, which raises CorruptFile.
        with suppress(CorruptFile):
            heads = split_cells(*lines[0], separator)
        if is_law_table(heads):
            rows = [split_cells(*line, separator) for line in lines[1:]]
            return FileContents(read_law_table(heads, rows))
    return _contents_of_table(read_number_table(lines))


def _contents_of_table(table: NumberTable) -> FileContents:
    """Return noise, a PMF or a channel from a table of numbers. Raises CorruptFile."""
    rows = table.rows
    if are_noise_pairs(rows, table.heads):
        law = read_integer_law([*map(_format_row, rows)])
        return FileContents(law, has_neighbours=False)
    if all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]
    if len(rows) == 1:
        return FileContents(_build_distribution(rows[0]), has_neighbours=False)
    channel = replace(_build_channel(rows), axis_labels=table.labels)
    return FileContents(channel, has_neighbours=False)


def _format_row(row: Sequence[Fraction]) -> list[str]:
    """Format the cells of a row as texts."""
    return [str(value) for value in row]


def _build_distribution(values: list[Fraction]) -> Distribution:
    """Build a distribution from probabilities or integer weights. Raises CorruptFile."""
    if min(values) < 0:
        raise CorruptFile(f"A probability is negative: {round_up(min(values)):g}.")
    total = sum(values, ZERO)
    are_integers = all(value.denominator == 1 for value in values)
    if not are_integers and abs(total - 1) > MAX_SUM_ERROR:
        raise CorruptFile(f"The probabilities add up to {round_up(total):.9g}, not 1.")
    return Distribution(values)


def _build_channel(rows: list[list[Fraction]]) -> Channel:
    """Build a channel from rows of probabilities or integer weights. Raises CorruptFile."""
    if len({len(row) for row in rows}) != 1 or len(rows) < 2:
        raise CorruptFile("A channel must have at least two rows, all of one length.")
    return Channel(tuple(_build_distribution(row) for row in rows))
