"""Write the complete law of a mechanism as a table of exact numbers, and read such tables.

A table is a CSV file that the explorer saves. For example, noise modulo 3 is

    noise modulo 3 | shifts 1,probability
    0,1/2
    1,1/4
    2,1/4

The head of the first column names the kind of law and its neighbours. The table has every
probability, so that an audit of the table is an audit of the mechanism.

    first head                                          rows
    noise on integers | sensitivity 1 | clamp 0..50     noise value, probability
    noise modulo 9 | shifts 1 2 3                       noise value (0:1 in a group of two factors),
                                                        probability
    noise on reals | sensitivity 1 | grid .. | steps 6  "-1/12 to 1/12", probability of the cell;
                                                        "0", probability of the atom
    input | rows 11 | neighbours all                    input, probability of every output
    input in a cell | rows 4 | sensitivity 1 | ..       "0 to 1/4", probability of every output
    input at an end | rows 5 | sensitivity 1 | ..       input, probability of every output; affine
                                                        between rows
    input at a piece's end | rows 6                     input, probability of every output; two rows
                                                        for a piece

Geometric tails are two more rows, "below -1, times 0.36 every 1" and "above 1, times 0.36 every 1",
each with the probability of the whole tail. A probability is an exact decimal, or a ratio of
integers.

A new kind of law needs its head in `_KINDS`, a function that writes it for `build_law_table`, and
one that reads it for `read_law_table`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from workbench.data.intervals import format_range, read_range
from workbench.data.number_tables import MAX_SUM_ERROR
from workbench.data.points import Point, rationals_or_none, read_point
from workbench.errors import CorruptFile
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, parse_rational
from workbench.exact.objects import Strings
from workbench.io.files import format_fraction
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.mechanism import Mechanism
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.questions.modulo_noise import ModuloNoise
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise

Table = tuple[list[str], list[list[str]]]  # Heads of the columns, and the rows.

_MAX_TABLE_CELLS = 1_000_000  # A law with more probabilities is not written as a table.
_MAX_INTEGER = 1 << 40  # A cell for an integer must hold a smaller one.
_MAX_CELL_CHARACTERS = 5000  # A longer cell is read as a ratio of hexadecimal integers only.

# The heads of the first column.
_INTEGERS = "noise on integers"
_MODULO = "noise modulo"
_REALS = "noise on reals"
_FINITE = "input"
_CELLS = "input in a cell"
_ENDS = "input at an end"
_PIECES = "input at a piece's end"
_KINDS = (_INTEGERS, _REALS, _FINITE, _CELLS, _ENDS, _PIECES)
_TAIL = re.compile(
    r"(?P<side>below|above) (?P<end>\S+), times (?P<ratio>\S+) every (?P<period>\d+)"
)
_PAIR = re.compile(r"(?P<first>\d{1,9})(?P<order>[->])(?P<second>\d{1,9})")
_HEXADECIMAL_RATIO = re.compile(
    r"(?P<sign>-?)(?P<numerator>0x[0-9a-f]+)/(?P<denominator>0x[0-9a-f]+)"
)
_MAX_QUOTED_CHARACTERS = 40  # Errors show this much of a wrong cell.


class _Tail(NamedTuple):
    """A geometric tail of a law, as its row states it.

    Attributes:
        ratio: Ratio of the masses of two consecutive periods.
        period: Number of integers of a period.
        mass: Probability of the whole tail.
    """

    ratio: Fraction
    period: int
    mass: Fraction


def build_law_table(mechanism: Any) -> Table | None:
    """Write the law of a mechanism as (heads, rows), complete and exact.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.

    Returns:
        None for a mechanism without a finite table: one without exact laws, or with more than 10^6
        probabilities.
    """
    if isinstance(mechanism, AdditiveNoise):
        return _write_modulo_table(mechanism)
    if isinstance(mechanism, AdditiveIntegerNoise):
        return _write_integer_table(mechanism)
    if isinstance(mechanism, AdditiveRealNoise):
        return _write_real_table(mechanism)
    if isinstance(mechanism, PiecewiseAffine):
        places = [format_fraction(place) for place in mechanism.end_inputs]
        return _write_matrix_table(
            _PIECES, options=[], labels=places, outputs=mechanism.bins, laws=mechanism.ends
        )
    if isinstance(mechanism, RangeMechanism):
        return _write_range_table(mechanism)
    if isinstance(mechanism, Channel):
        return _write_channel_table(mechanism)
    inputs: Any = getattr(mechanism, "inputs", None)
    # With `direct`, a law of `NearestOutputs` depends on the step of the answer besides its cell.
    if inputs is None or not hasattr(mechanism, "law") or getattr(mechanism, "direct", False):
        return None
    cell_count = len(inputs) * len(mechanism.outputs)
    if mechanism.segments != () or cell_count > _MAX_TABLE_CELLS:
        return None
    input_points = tuple(map(_read_exact_point, inputs))
    output_points = tuple(map(_read_exact_point, mechanism.outputs.tolist()))
    laws = tuple(map(mechanism.law, inputs))
    # Any two inputs are neighbours.
    return _write_channel_table(
        Channel(rows=laws, neighbours=None, axis_labels=(input_points, output_points))
    )


def is_law_table(heads: Sequence[str]) -> bool:
    """Return whether the heads of a table are those that `build_law_table` writes.

    Args:
        heads: Texts of the first row. The first one names the question, as in the module header.
    """
    kind, *options = heads[0].split(" | ") if heads else [""]
    is_group = kind.startswith(f"{_MODULO} ")
    return len(heads) > 1 and bool(options) and (is_group or kind.strip() in _KINDS)


def read_law_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Mechanism:
    """Build the mechanism of a table that `build_law_table` wrote.

    Args:
        heads: Texts of the first row. The first one names the question, as in the module header.
        rows: Texts of the other rows, one for each head.

    Raises:
        CorruptFile: The table is malformed.
        InvalidRequest: Its parts do not fit together.
    """
    kind, *options = (part.strip() for part in heads[0].split(" | "))
    # An option such as "sensitivity 1" is a name, a space and a value.
    option_values = {}
    for option in options:
        name, _, value = option.partition(" ")
        option_values[name] = value
    if any(len(row) != len(heads) for row in rows):
        raise CorruptFile(f"Every row must have {len(heads)} cells.")
    if kind.startswith(_MODULO):
        return _read_modulo(kind.removeprefix(_MODULO).strip(), option_values, rows)
    if kind == _INTEGERS:
        return _read_integers(option_values, rows)
    if kind == _REALS:
        return _read_reals(option_values, rows)
    if len(rows) != _read_integer_cell(option_values.get("rows")):
        raise CorruptFile(
            f"The table must have the {option_values.get('rows')} rows that its head names. "
            f"Got {len(rows)}."
        )
    laws = tuple(_read_law_masses([read_cell_number(cell) for cell in row[1:]]) for row in rows)
    labels = [row[0] for row in rows]
    outputs = tuple(read_point(_strip_brackets(head), "output") for head in heads[1:])
    if kind == _PIECES:
        return _read_pieces(labels, outputs, laws)
    neighbours = _read_neighbours(option_values.get("neighbours"))
    if kind == _FINITE:
        inputs = tuple(read_point(_strip_brackets(label), "input") for label in labels)
        return Channel(laws, neighbours, (inputs, outputs))
    if kind == _CELLS:
        ends, places = _read_cells(labels)
    elif kind == _ENDS:
        ends = places = tuple(map(read_cell_number, labels))
    else:
        raise CorruptFile(f"The first head must name a law. Got {kind[:_MAX_QUOTED_CHARACTERS]!r}.")
    sensitivity = read_cell_number(option_values.get("sensitivity"))
    return RangeMechanism(
        rows=laws,
        neighbours=neighbours,
        axis_labels=(places, outputs),
        ends=ends,
        sensitivity=sensitivity,
        at_ends=kind == _ENDS,
    )


def _read_cells(labels: Sequence[str]) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Read the ends and the centres of the cells "a to b", "b to c", ... Raises CorruptFile."""
    cells = [tuple(read_cell_number(end) for end in label.split(" to ")) for label in labels]
    is_gapless = all(len(cell) == 2 for cell in cells) and all(
        left_high == right_low for (_, left_high), (right_low, _) in pairwise(cells)
    )
    if not is_gapless:
        raise CorruptFile("The cells must follow each other: 'a to b', then 'b to c'.")
    ends = (cells[0][0], *(high for _, high in cells))
    return ends, tuple((low + high) / 2 for low, high in cells)


def read_integer_law(rows: Sequence[Sequence[str]]) -> IntegerLaw:
    """Read a law of integer noise from a table.

    Args:
        rows: Rows (noise value, probability) in any order, with or without two rows of tails.

    Raises:
        CorruptFile: The rows are no law.
    """
    masses: dict[int, Fraction] = {}
    tails: dict[str, _Tail] = {}
    for label, mass in rows:
        tail_match = _TAIL.fullmatch(label)
        if tail_match:
            side = tail_match["side"]
            if side in tails:
                raise CorruptFile(f"The tail {side} must stand in one row. Got two.")
            ratio = read_cell_number(tail_match["ratio"])
            tails[side] = _Tail(ratio, int(tail_match["period"]), _read_mass(mass))
            continue
        value = _read_integer_cell(label)
        if value in masses:
            raise CorruptFile(f"The noise value {value} must stand in one row. Got two.")
        masses[value] = _read_mass(mass)
    if not masses:
        raise CorruptFile("The table must have at least one noise value.")
    first = min(masses)
    last = max(masses)
    if last - first >= _MAX_TABLE_CELLS:
        raise CorruptFile(
            f"The noise values must span at most {_MAX_TABLE_CELLS}. Got {first}..{last}."
        )
    weights = [masses.get(value, ZERO) for value in range(first, last + 1)]
    _check_mass_total(sum(weights, ZERO) + sum((tail.mass for tail in tails.values()), ZERO))
    if not tails:
        return IntegerLaw(first, weights)
    forms = {(tail.ratio, tail.period) for tail in tails.values()}
    if {*tails} != {"below", "above"} or len(forms) != 1:
        raise CorruptFile("Both tails must be given, with one ratio and one period.")
    law = IntegerLaw(first, weights, tails["below"].period, tails["below"].ratio)
    for side, end_weight in zip(("below", "above"), law.end_sums, strict=True):
        tail_mass = law.ratio / (1 - law.ratio) * end_weight / law.total
        if abs(tail_mass - tails[side].mass) > MAX_SUM_ERROR:
            raise CorruptFile(
                f"The tail {side} must have the probability that its ratio gives, "
                f"{float(tail_mass):g}."
            )
    return law


# Noise.


def _write_tail_rows(law: IntegerLaw, total: Fraction, low: str, high: str) -> list[list[str]]:
    """Write the two rows of geometric tails, or none for a law without tails.

    Args:
        law: The law.
        total: Sum of its weights, by which masses are divided.
        low: Label of its first value.
        high: Label of its last value.
    """
    if not law.ratio:
        return []
    decay = f"times {format_fraction(law.ratio)} every {law.period}"
    masses = [law.ratio / (1 - law.ratio) * end_weight / total for end_weight in law.end_sums]
    rows = []
    for side, end, mass in zip(("below", "above"), (low, high), masses, strict=True):
        rows.append([f"{side} {end}, {decay}", _format_mass(mass)])
    return rows


def _write_integer_table(mechanism: AdditiveIntegerNoise) -> Table | None:
    """Write the table of noise on the integers, or return None if it is too large."""
    law = mechanism.noise
    clamp = mechanism.question.clamp
    if len(law.weights) > _MAX_TABLE_CELLS:
        return None
    head = f"{_INTEGERS} | sensitivity {mechanism.question.sensitivity}"
    if clamp is not None:
        low, high = clamp
        head += f" | clamp {low}..{high}"
    rows = []
    for value, weight in enumerate(law.weights, law.first):
        rows.append([str(value), _format_mass(weight / law.total)])
    tail_rows = _write_tail_rows(law, law.total, str(law.first), str(law.last))
    return [head, "probability"], rows + tail_rows


def _read_integers(
    option_values: dict[str, str], rows: Sequence[Sequence[str]]
) -> AdditiveIntegerNoise:
    """Build noise on the integers from its table. Raises CorruptFile, InvalidRequest."""
    clamp = option_values.get("clamp")
    sensitivity = _read_integer_cell(option_values.get("sensitivity"))
    question = IntegerNoise(sensitivity, None if clamp is None else _read_clamp(clamp))
    return AdditiveIntegerNoise(question, read_integer_law(rows))


def _write_modulo_table(mechanism: AdditiveNoise) -> Table | None:
    """Write the table of noise on a finite group, or return None if it is too large."""
    question = mechanism.question
    if question.order > _MAX_TABLE_CELLS:
        return None
    shifts = " ".join(map(_format_group_element, question.shifts))
    head = f"{_MODULO} {'x'.join(map(str, question.sizes))} | shifts {shifts}"
    if question.directed:
        head += " | directed yes"
    rows = []
    for index, mass in enumerate(mechanism.masses):
        rows.append([_format_group_element(question.element_at(index)), _format_mass(mass)])
    return [head, "probability"], rows


def _format_group_element(value: Iterable[int]) -> str:
    """Format an element of a group, such as "0:1" for two factors."""
    return ":".join(map(str, value))


def _read_group_element(text: str) -> tuple[int, ...]:
    """Read an element of a group, such as "0:1" for two factors."""
    return tuple(_read_integer_cell(part) for part in text.split(":"))


def _read_modulo(
    sizes: str, option_values: dict[str, str], rows: Sequence[Sequence[str]]
) -> AdditiveNoise:
    """Build noise on a finite group from its table. Raises CorruptFile, InvalidRequest."""
    orders = [_read_integer_cell(part) for part in sizes.split("x")]
    shifts = [_read_group_element(part) for part in option_values.get("shifts", "").split()]
    is_scalar = len(orders) == 1
    scalar_or_tuple_shifts: list[Any] = [shift[0] for shift in shifts] if is_scalar else [*shifts]
    is_directed = option_values.get("directed") == "yes"
    question = ModuloNoise(sizes=orders, shifts=scalar_or_tuple_shifts, directed=is_directed)
    return AdditiveNoise(question, read_group_masses(question, rows))


def read_group_masses(question: ModuloNoise, rows: Sequence[Sequence[str]]) -> Distribution:
    """Read the masses of noise on a group.

    Args:
        question: The question, which has the group.
        rows: Rows (noise value, probability), one for every noise value, in any order.

    Raises:
        CorruptFile: A noise value is missing, or the probabilities do not add up to 1.
    """
    if question.order > _MAX_TABLE_CELLS or len(rows) != question.order:
        raise CorruptFile(
            f"The table must have a row for each of {question.order} noise values. Got {len(rows)}."
        )
    masses = {_read_group_element(label): _read_mass(mass) for label, mass in rows}
    values = [question.element_at(index) for index in range(question.order)]
    missing = next((value for value in values if value not in masses), None)
    if missing is not None:
        raise CorruptFile(
            f"The noise value {_format_group_element(missing)} must stand in one row. Got none."
        )
    return _read_law_masses([masses[value] for value in values])


def _write_real_table(mechanism: AdditiveRealNoise) -> Table | None:
    """Write the table of noise on the reals: cells, the atom at 0, and tails."""
    law = mechanism.cells
    question = mechanism.question
    if len(law.weights) > _MAX_TABLE_CELLS:
        return None
    head = f"{_REALS} | sensitivity {format_fraction(question.sensitivity)}"
    head += f" | grid {format_fraction(question.grid)} | steps {mechanism.steps}"
    if question.clamp is not None:
        head += f" | clamp {format_range(question.clamp)}"
    total = mechanism.total
    first_end = law.first - Fraction(1, 2)  # The cell j begins at j - 1/2, in units of its width.
    numbers = [(first_end + k) * mechanism.width for k in range(len(law.weights) + 1)]
    ends = [format_fraction(number) for number in numbers]
    rows = []
    for (low, high), weight in zip(pairwise(ends), law.weights, strict=True):
        rows.append([f"{low} to {high}", _format_mass(weight / total)])
    if mechanism.atom:
        rows.append(["0", _format_mass(mechanism.atom / total)])
    return [head, "probability"], rows + _write_tail_rows(law, total, ends[0], ends[-1])


def _read_reals(option_values: dict[str, str], rows: Sequence[Sequence[str]]) -> AdditiveRealNoise:
    """Build noise on the reals from its table. Raises CorruptFile, InvalidRequest."""
    clamp = option_values.get("clamp")
    clamp_ends = None
    if clamp is not None:
        clamp_ends = read_range(clamp, "clamp")
    sensitivity = read_cell_number(option_values.get("sensitivity"))
    grid = read_cell_number(option_values.get("grid"))
    question = RealNoise(sensitivity, grid, clamp_ends)
    steps = _read_integer_cell(option_values.get("steps"))
    width = question.sensitivity / steps
    atom = ZERO
    cells: list[tuple[str, Fraction]] = []
    tails = []
    for label, mass in rows:
        if _TAIL.fullmatch(label):
            tails.append([label, mass])
        elif label == "0":
            atom += _read_mass(mass)
        else:
            # In units of the width, the cell j goes from j - 1/2 to j + 1/2.
            first_cell, *next_cells = (
                read_cell_number(end) / width + Fraction(1, 2) for end in label.split(" to ")
            )
            if next_cells != [first_cell + 1] or first_cell.denominator != 1:
                shown_label = label[:_MAX_QUOTED_CHARACTERS]
                raise CorruptFile(
                    f"A cell must be {float(width):g} wide and lie on the grid. "
                    f"Got {shown_label!r}."
                )
            cells.append((str(first_cell), _read_mass(mass)))
    if atom >= 1:
        raise CorruptFile("The probability of the atom must be below 1.")
    share = 1 - atom  # This is the share of the cells and tails, to which the atom is added.
    scaled_rows = [[label, format_fraction(mass / share)] for label, mass in cells]
    scaled_rows += [[label, format_fraction(_read_mass(mass) / share)] for label, mass in tails]
    law = read_integer_law(scaled_rows)
    return AdditiveRealNoise(question, steps, law, atom / share * law.total)


# Laws of finitely many inputs.


def _write_matrix_table(
    kind: str,
    options: Sequence[str],
    labels: Strings | list[str],
    outputs: Sequence[Any],
    laws: Sequence[Distribution],
) -> Table | None:
    """Write a table with one law a row: its label, then its mass at every output.

    The first cell of the head names the kind of table, the number of rows and the options. None if
    the table is too large.
    """
    if len(laws) * len(laws[0]) > _MAX_TABLE_CELLS:
        return None
    head = " | ".join([kind, f"rows {len(laws)}", *options])
    rows = [[label, *map(_format_mass, law)] for label, law in zip(labels, laws, strict=True)]
    return [head, *map(_format_label, outputs)], rows


def _write_channel_table(channel: Channel) -> Table | None:
    """Write the table of a channel. Rows and columns without labels are numbered from 0."""
    numbers = tuple(range(len(channel.rows))), tuple(range(len(channel.rows[0])))
    inputs, outputs = channel.axis_labels or numbers
    return _write_matrix_table(
        _FINITE,
        options=[_write_neighbours(channel)],
        labels=[*map(_format_label, inputs)],
        outputs=outputs,
        laws=channel.rows,
    )


def _write_range_table(mechanism: RangeMechanism) -> Table | None:
    """Write the table of a channel of a range, by cells or by ends."""
    assert mechanism.axis_labels is not None
    ends = [format_fraction(end) for end in mechanism.ends]
    if mechanism.at_ends:
        kind = _ENDS
        labels = ends
    else:
        kind = _CELLS
        labels = [f"{low} to {high}" for low, high in pairwise(ends)]
    sensitivity = format_fraction(mechanism.sensitivity)
    options = [f"sensitivity {sensitivity}", _write_neighbours(mechanism)]
    return _write_matrix_table(
        kind, options, labels, outputs=mechanism.axis_labels[1], laws=mechanism.rows
    )


def _write_neighbours(channel: Channel) -> str:
    """Write the ordered pairs of rows, counted from 0: both orders as 0-1, one order as 0>1."""
    if channel.neighbours is None:
        return "neighbours all"
    pairs = {*channel.neighbours}
    both_orders = [f"{i}-{j}" for i, j in channel.neighbours if i < j and (j, i) in pairs]
    one_order = [f"{i}>{j}" for i, j in channel.neighbours if (j, i) not in pairs]
    return f"neighbours {' '.join(both_orders + one_order)}"


def _read_neighbours(text: str | None) -> tuple[tuple[int, int], ...] | None:
    """Read the pairs that `_write_neighbours` wrote; None for all pairs. Raises CorruptFile."""
    if text == "all":
        return None
    pairs = set()
    for part in (text or "").split():
        match = _PAIR.fullmatch(part)
        if match is None:
            raise CorruptFile(f"Neighbouring rows must be given as 0-1 or 0>1. Got {part[:20]!r}.")
        i = int(match["first"])
        j = int(match["second"])
        pairs.add((i, j))
        if match["order"] != ">":
            pairs.add((j, i))
    if not pairs:
        raise CorruptFile("The head must name the neighbouring rows.")
    return tuple(sorted(pairs))


def _read_pieces(
    labels: Sequence[str], outputs: tuple[Point, ...], laws: Sequence[Distribution]
) -> PiecewiseAffine:
    """Build a mechanism on real inputs from two rows for every piece. Raises CorruptFile."""
    places = [*map(read_cell_number, labels)]
    values = rationals_or_none(outputs)
    # Every other row is a left end. The last row is the right end of the last piece.
    knots = (*places[0::2], *places[-1:])
    piece_ends = [end for piece in pairwise(knots) for end in piece]
    if values is None or len(places) % 2 or places != piece_ends:
        raise CorruptFile(
            "Every piece must have two rows, at its left and its right end, and numbers as outputs."
        )
    return PiecewiseAffine(knots, values, tuple(laws))


# Cells.


def _read_exact_point(value: Any) -> Point:
    """Read an input or output. A float is the binary fraction that it holds."""
    if isinstance(value, (int, float, Fraction)):
        return Fraction(value)
    return read_point(value, "input")


def _format_label(value: Any) -> str:
    """Format an input or output. The parts of a place stand in brackets."""
    if isinstance(value, (int, Fraction)):
        return format_fraction(Fraction(value))
    if isinstance(value, tuple):
        return f"({' '.join(map(_format_label, value))})"
    return str(value)


def _strip_brackets(text: str) -> Any:
    """Split the parts of a place that stands in brackets. Any other text is returned unchanged."""
    if text.startswith("(") and text.endswith(")"):
        return tuple(text[1:-1].split())
    return text


def _format_mass(value: Fraction) -> str:
    """Format a probability exactly."""
    return format_fraction(Fraction(value))


def read_cell_number(cell: str | None) -> Fraction:
    """Read the exact number of a cell.

    Args:
        cell: A decimal, or a ratio of decimal or hexadecimal integers. None counts as empty.

    Raises:
        CorruptFile: The cell is no finite number.
    """
    value = None
    if cell is not None and 0 < len(cell) <= _MAX_CELL_CHARACTERS:
        value = parse_rational(cell)
    if value is None:
        value = _read_hexadecimal_ratio(cell or "")
    return value


def _read_hexadecimal_ratio(cell: str) -> Fraction:
    """Read a ratio such as "0x1/0x3". Raises CorruptFile."""
    match = _HEXADECIMAL_RATIO.fullmatch(cell)
    if match is None or not int(match["denominator"], 16):
        raise CorruptFile(f"{cell[:_MAX_QUOTED_CHARACTERS]!r} is not a finite number.")
    value = Fraction(int(match["numerator"], 16), int(match["denominator"], 16))
    if match["sign"]:
        return -value
    return value


def _read_integer_cell(cell: str | None) -> int:
    """Read an integer of moderate size. Raises CorruptFile."""
    value = read_cell_number(cell)
    if value.denominator != 1 or abs(value) >= _MAX_INTEGER:
        raise CorruptFile(f"{str(cell)[:_MAX_QUOTED_CHARACTERS]!r} must be an integer.")
    return int(value)


def _read_clamp(text: str) -> tuple[int, int]:
    """Read a clamp such as "0..50". Raises CorruptFile."""
    low, dots, high = text.partition("..")
    if not dots or high.startswith("."):
        quoted = repr(text[:_MAX_QUOTED_CHARACTERS])
        raise CorruptFile(f"clamp must be two integers, as 0..50. Got {quoted}.")
    return _read_integer_cell(low), _read_integer_cell(high)


def _read_mass(cell: Any) -> Fraction:
    """Read a probability >= 0 from a cell or a number. Raises CorruptFile."""
    value = cell if isinstance(cell, Fraction) else read_cell_number(cell)
    if value < 0:
        raise CorruptFile(f"A probability is negative: {float(value):g}.")
    return value


def _check_mass_total(total: Fraction) -> None:
    """Raise CorruptFile if a sum of probabilities is not 1 within the accepted error."""
    if abs(total - 1) > MAX_SUM_ERROR:
        raise CorruptFile(f"The probabilities add up to {float(total):.9g}, not 1.")


def _read_law_masses(masses: Sequence[Fraction]) -> Distribution:
    """Build a distribution from probabilities that add up to 1. Raises CorruptFile."""
    checked_masses = [_read_mass(mass) for mass in masses]
    _check_mass_total(sum(checked_masses, ZERO))
    return Distribution(checked_masses)
