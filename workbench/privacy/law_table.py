"""The whole law of a mechanism as a table of exact numbers, and the mechanism that such a table holds.

The head of the first column says which question the law answers; the law stands in the rows. Every row and every
cell is there, so that an audit of the table is an audit of the mechanism.

    first head                                          rows
    noise on integers | sensitivity 1 | clamp 0..50     noise value, probability
    noise modulo 9 | shifts 1 2 3                       noise value (0:1 in a group of two factors), probability
    noise on reals | sensitivity 1 | grid .. | steps 6  "-1/12 to 1/12", probability of the cell; "0", of the atom
    input | rows 11 | neighbours all                    input, probability of every output
    input in a cell | rows 4 | sensitivity 1 | ..       "0 to 1/4", probability of every output
    input at an end | rows 5 | sensitivity 1 | ..       the input, probability of every output; affine between rows
    input at a piece's end | rows 6                     the input, probability of every output; two rows for a piece

Geometric tails are two more rows, "below -1, times 0.36 every 1" and "above 1, times 0.36 every 1", each with the
probability of the whole tail. A probability is an exact decimal, or a ratio of integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

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

Table = tuple[list[str], list[list[str]]]  # heads, rows

_MAX_CELLS = 1_000_000  # A law with more probabilities is not written as a table.
_INTEGERS, _MODULO, _REALS = "noise on integers", "noise modulo", "noise on reals"
_FINITE, _CELLS, _ENDS, _PIECES = (
    "input",
    "input in a cell",
    "input at an end",
    "input at a piece's end",
)
_KINDS = (_INTEGERS, _REALS, _FINITE, _CELLS, _ENDS, _PIECES)
_TAIL = re.compile(r"(below|above) (\S+), times (\S+) every (\d+)")


def build_law_table(mechanism: Any) -> Table | None:
    """Write the law of a mechanism as (heads, rows), complete and exact.

    Returns:
        None for a mechanism that has no finite table: one without exact laws, or with more than 10^6 probabilities.
    """
    if isinstance(mechanism, AdditiveNoise):
        return _write_modulo_table(mechanism)
    if isinstance(mechanism, AdditiveIntegerNoise):
        return _write_integer_table(mechanism)
    if isinstance(mechanism, AdditiveRealNoise):
        return _write_real_table(mechanism)
    if isinstance(mechanism, PiecewiseAffine):
        places = [format_fraction(place) for place in mechanism.end_inputs]
        return _write_matrix_table(_PIECES, [], places, mechanism.bins, mechanism.ends)
    if isinstance(mechanism, RangeMechanism):
        return _write_range_table(mechanism)
    if isinstance(mechanism, Channel):
        return _write_channel_table(mechanism)
    rows: Any = getattr(mechanism, "inputs", None)
    has_laws = (
        rows is not None and hasattr(mechanism, "law") and not getattr(mechanism, "direct", 0)
    )
    if not has_laws or mechanism.segments != () or len(rows) * len(mechanism.outputs) > _MAX_CELLS:
        return None
    labelled = tuple(map(_exact_point, rows)), tuple(map(_exact_point, mechanism.outputs.tolist()))
    return _write_channel_table(
        Channel(tuple(map(mechanism.law, rows)), None, labelled)
    )  # any two inputs are neighbours


def is_law_table(heads: Sequence[str]) -> bool:
    """Whether the heads of a table are those that `law_table` writes."""
    kind, *options = heads[0].split(" | ") if heads else [""]
    is_group = kind.startswith(f"{_MODULO} ")
    return len(heads) > 1 and bool(options) and (is_group or kind.strip() in _KINDS)


def read_law_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Mechanism:
    """Build the mechanism of a table that `law_table` wrote. Raises CorruptFile, InvalidRequest."""
    kind, *options = (part.strip() for part in heads[0].split(" | "))
    given = dict(option.partition(" ")[::2] for option in options)
    if any(len(row) != len(heads) for row in rows):
        raise CorruptFile(f"Every row must have {len(heads)} cells.")
    if kind.startswith(_MODULO):
        return _read_modulo(kind.removeprefix(_MODULO).strip(), given, rows)
    if kind == _INTEGERS:
        clamp = given.get("clamp")
        question = IntegerNoise(
            _read_integer_cell(given.get("sensitivity")),
            None if clamp is None else _read_clamp(clamp),
        )
        return AdditiveIntegerNoise(question, read_integer_law(rows))
    if kind == _REALS:
        return _read_reals(given, rows)
    if len(rows) != _read_integer_cell(given.get("rows")):
        raise CorruptFile(
            f"The table must have the {given.get('rows')} rows that its head names. Got {len(rows)}."
        )
    laws = tuple(_read_law_masses([read_cell_number(cell) for cell in row[1:]]) for row in rows)
    labels, outputs = (
        [row[0] for row in rows],
        tuple(read_point(_strip_brackets(head), "output") for head in heads[1:]),
    )
    if kind == _PIECES:
        return _read_pieces(labels, outputs, laws)
    neighbours = _read_neighbours(given.get("neighbours"))
    if kind == _FINITE:
        return Channel(
            laws,
            neighbours,
            (tuple(read_point(_strip_brackets(x), "input") for x in labels), outputs),
        )
    if kind == _CELLS:
        cells = [[read_cell_number(end) for end in label.split(" to ")] for label in labels]
        if any(len(cell) != 2 for cell in cells) or any(a[1] != b[0] for a, b in pairwise(cells)):
            raise CorruptFile("The cells must follow each other: 'a to b', then 'b to c'.")
        ends = (cells[0][0], *(high for _, high in cells))
        places = tuple((low + high) / 2 for low, high in cells)
    elif kind == _ENDS:
        ends = places = tuple(map(read_cell_number, labels))
    else:
        raise CorruptFile(f"The first head must name a law. Got {kind[:40]!r}.")
    return RangeMechanism(
        laws,
        neighbours,
        (places, outputs),
        ends,
        read_cell_number(given.get("sensitivity")),
        kind == _ENDS,
    )


def read_integer_law(rows: Sequence[Sequence[str]]) -> IntegerLaw:
    """Read rows (noise value, probability) in any order, with or without tails. Raises CorruptFile."""
    masses: dict[int, Fraction] = {}
    tails: dict[str, tuple[Fraction, int, Fraction]] = {}
    for label, mass in rows:
        if tail := _TAIL.fullmatch(label):
            if tail[1] in tails:
                raise CorruptFile(f"The tail {tail[1]} must stand in one row. Got two.")
            tails[tail[1]] = read_cell_number(tail[3]), int(tail[4]), _read_mass(mass)
            continue
        value = _read_integer_cell(label)
        if value in masses:
            raise CorruptFile(f"The noise value {value} must stand in one row. Got two.")
        masses[value] = _read_mass(mass)
    if not masses:
        raise CorruptFile("The table must have at least one noise value.")
    first, last = min(masses), max(masses)
    if last - first >= _MAX_CELLS:
        raise CorruptFile(f"The noise values must span at most {_MAX_CELLS}. Got {first}..{last}.")
    weights = [masses.get(value, ZERO) for value in range(first, last + 1)]
    _check_mass_total(sum(weights, ZERO) + sum((tail[2] for tail in tails.values()), ZERO))
    if not tails:
        return IntegerLaw(first, weights)
    if {*tails} != {"below", "above"} or len({tail[:2] for tail in tails.values()}) != 1:
        raise CorruptFile("Both tails must be given, with one ratio and one period.")
    ratio, period, _ = tails["below"]
    law = IntegerLaw(first, weights, period, ratio)
    for side, end in zip(("below", "above"), law.end_sums, strict=True):
        whole = law.ratio / (1 - law.ratio) * end / law.total
        if abs(whole - tails[side][2]) > MAX_SUM_ERROR:
            raise CorruptFile(
                f"The tail {side} must have the probability that its ratio gives, {float(whole):g}."
            )
    return law


# Noise.


def _write_tail_rows(law: IntegerLaw, total: Fraction, low: str, high: str) -> list[list[str]]:
    if not law.ratio:
        return []
    fall = f"times {format_fraction(law.ratio)} every {law.period}"
    masses = [law.ratio / (1 - law.ratio) * end / total for end in law.end_sums]
    return [[f"{side} {end}, {fall}", _format_mass(mass)]
            for side, end, mass in zip(("below", "above"), (low, high), masses, strict=True)]  # fmt: skip


def _write_integer_table(mechanism: AdditiveIntegerNoise) -> Table | None:
    law, clamp = mechanism.noise, mechanism.question.clamp
    if len(law.weights) > _MAX_CELLS:
        return None
    head = f"{_INTEGERS} | sensitivity {mechanism.question.sensitivity}"
    head += "" if clamp is None else f" | clamp {clamp[0]}..{clamp[1]}"
    rows = [
        [str(law.first + k), _format_mass(weight / law.total)]
        for k, weight in enumerate(law.weights)
    ]
    return [head, "probability"], rows + _write_tail_rows(
        law, law.total, str(law.first), str(law.last)
    )


def _write_modulo_table(mechanism: AdditiveNoise) -> Table | None:
    question = mechanism.question
    if question.order > _MAX_CELLS:
        return None
    head = f"{_MODULO} {'x'.join(map(str, question.sizes))} | shifts {' '.join(map(_format_group_element, question.shifts))}"
    head += " | directed yes" if question.directed else ""
    cells = [
        [_format_group_element(question.element_at(k)), _format_mass(mass)]
        for k, mass in enumerate(mechanism.masses)
    ]
    return [head, "probability"], cells


def _format_group_element(value: Iterable[int]) -> str:
    return ":".join(map(str, value))


def _read_group_element(text: str) -> tuple[int, ...]:
    return tuple(_read_integer_cell(part) for part in text.split(":"))


def _read_modulo(sizes: str, given: dict[str, str], rows: Sequence[Sequence[str]]) -> AdditiveNoise:
    orders = [_read_integer_cell(part) for part in sizes.split("x")]
    shifts = [_read_group_element(part) for part in given.get("shifts", "").split()]
    scalar = len(orders) == 1
    moves: list[Any] = [shift[0] for shift in shifts] if scalar else [*shifts]
    question = ModuloNoise(sizes=orders, shifts=moves, directed=given.get("directed") == "yes")
    return AdditiveNoise(question, read_group_masses(question, rows))


def read_group_masses(question: ModuloNoise, rows: Sequence[Sequence[str]]) -> Distribution:
    """Read rows (noise value, probability) of noise on a group, every value once. Raises CorruptFile."""
    if question.order > _MAX_CELLS or len(rows) != question.order:
        raise CorruptFile(
            f"The table must have a row for each of {question.order} noise values. Got {len(rows)}."
        )
    masses = {_read_group_element(label): _read_mass(mass) for label, mass in rows}
    values = [question.element_at(k) for k in range(question.order)]
    missing = next((value for value in values if value not in masses), None)
    if missing is not None:
        raise CorruptFile(
            f"The noise value {_format_group_element(missing)} must stand in one row. Got none."
        )
    return _read_law_masses([masses[value] for value in values])


def _write_real_table(mechanism: AdditiveRealNoise) -> Table | None:
    law, question, width = mechanism.cells, mechanism.question, mechanism.width
    if len(law.weights) > _MAX_CELLS:
        return None
    head = f"{_REALS} | sensitivity {format_fraction(question.sensitivity)} | grid {format_fraction(question.grid)}"
    head += f" | steps {mechanism.steps}"
    head += "" if question.clamp is None else f" | clamp {format_range(question.clamp)}"
    total = mechanism.total
    ends = [
        format_fraction((law.first + k - Fraction(1, 2)) * width)
        for k in range(len(law.weights) + 1)
    ]
    rows = [
        [f"{low} to {high}", _format_mass(weight / total)]
        for (low, high), weight in zip(pairwise(ends), law.weights, strict=True)
    ]
    if mechanism.atom:
        rows.append(["0", _format_mass(mechanism.atom / total)])
    return [head, "probability"], rows + _write_tail_rows(law, total, ends[0], ends[-1])


def _read_reals(given: dict[str, str], rows: Sequence[Sequence[str]]) -> AdditiveRealNoise:
    clamp = given.get("clamp")
    ends = None if clamp is None else read_range(clamp, "clamp")
    question = RealNoise(
        read_cell_number(given.get("sensitivity")), read_cell_number(given.get("grid")), ends
    )
    steps = _read_integer_cell(given.get("steps"))
    width, atom = question.sensitivity / steps, ZERO
    cells: list[tuple[str, Fraction]] = []
    tails = []
    for label, mass in rows:
        if _TAIL.fullmatch(label):
            tails.append([label, mass])
        elif label == "0":
            atom += _read_mass(mass)
        else:
            low, *high = (
                read_cell_number(end) / width + Fraction(1, 2) for end in label.split(" to ")
            )
            if len(high) != 1 or high[0] != low + 1 or low.denominator != 1:
                raise CorruptFile(
                    f"A cell must be {float(width):g} wide and lie on the grid. Got {label[:60]!r}."
                )
            cells.append((str(low), _read_mass(mass)))
    if atom >= 1:
        raise CorruptFile("The probability of the atom must be below 1.")
    share = 1 - atom  # of the cells and the tails, which the atom is added to
    scaled = [[label, format_fraction(mass / share)] for label, mass in cells]
    scaled += [[label, format_fraction(_read_mass(mass) / share)] for label, mass in tails]
    law = read_integer_law(scaled)
    return AdditiveRealNoise(question, steps, law, atom / share * law.total)


# Laws of finitely many inputs.


def _write_matrix_table(
    kind: str,
    options: Sequence[str],
    labels: Strings | list[str],
    outputs: Sequence[Any],
    laws: Sequence[Distribution],
) -> Table | None:
    if len(laws) * len(laws[0]) > _MAX_CELLS:
        return None
    head = " | ".join([kind, f"rows {len(laws)}", *options])
    rows = [[label, *map(_format_mass, law)] for label, law in zip(labels, laws, strict=True)]
    return [head, *map(_format_label, outputs)], rows


def _write_channel_table(channel: Channel) -> Table | None:
    numbers = tuple(range(len(channel.rows))), tuple(range(len(channel.rows[0])))
    inputs, outputs = channel.axis_labels or numbers
    return _write_matrix_table(
        _FINITE, [_write_neighbours(channel)], [*map(_format_label, inputs)], outputs, channel.rows
    )


def _write_range_table(mechanism: RangeMechanism) -> Table | None:
    assert mechanism.axis_labels is not None
    ends = [format_fraction(end) for end in mechanism.ends]
    labels = ends if mechanism.at_ends else [f"{low} to {high}" for low, high in pairwise(ends)]
    options = [
        f"sensitivity {format_fraction(mechanism.sensitivity)}",
        _write_neighbours(mechanism),
    ]
    kind = _ENDS if mechanism.at_ends else _CELLS
    return _write_matrix_table(kind, options, labels, mechanism.axis_labels[1], mechanism.rows)


def _write_neighbours(channel: Channel) -> str:
    """The ordered pairs of rows, counted from 0: those of both orders as 0-1, others as 0>1."""
    if channel.neighbours is None:
        return "neighbours all"
    known = {*channel.neighbours}
    both = [f"{i}-{j}" for i, j in channel.neighbours if i < j and (j, i) in known]
    single = [f"{i}>{j}" for i, j in channel.neighbours if (j, i) not in known]
    return f"neighbours {' '.join(both + single)}"


def _read_neighbours(text: str | None) -> tuple[tuple[int, int], ...] | None:
    if text == "all":
        return None
    pairs = set()
    for part in (text or "").split():
        match = re.fullmatch(r"(\d{1,9})([->])(\d{1,9})", part)
        if match is None:
            raise CorruptFile(f"Neighbouring rows must be given as 0-1 or 0>1. Got {part[:20]!r}.")
        i, j = int(match[1]), int(match[3])
        pairs |= {(i, j)} if match[2] == ">" else {(i, j), (j, i)}
    if not pairs:
        raise CorruptFile("The head must name the neighbouring rows.")
    return tuple(sorted(pairs))


def _read_pieces(
    labels: Sequence[str], outputs: tuple[Point, ...], laws: Sequence[Distribution]
) -> PiecewiseAffine:
    places, values = [*map(read_cell_number, labels)], rationals_or_none(outputs)
    knots = (*places[0::2], *places[-1:])
    if values is None or len(places) % 2 or places != [x for pair in pairwise(knots) for x in pair]:
        raise CorruptFile(
            "Every piece must have two rows, at its left and its right end, and numbers as outputs."
        )
    return PiecewiseAffine(knots, values, tuple(laws))


# Cells.


def _exact_point(value: Any) -> Point:
    return (
        Fraction(value) if isinstance(value, (int, float, Fraction)) else read_point(value, "input")
    )


def _format_label(value: Any) -> str:
    """An input or output as text; the parts of a place stand in brackets."""
    if isinstance(value, (int, Fraction)):
        return format_fraction(Fraction(value))
    if isinstance(value, tuple):
        return f"({' '.join(map(_format_label, value))})"
    return str(value)


def _strip_brackets(text: str) -> Any:
    """A label as `point` reads it: places are in brackets."""
    if text.startswith("(") and text.endswith(")"):
        return tuple(text[1:-1].split())
    return text


def _format_mass(value: Fraction) -> str:
    return format_fraction(Fraction(value))


def read_cell_number(cell: str | None) -> Fraction:
    """Read the exact number of a cell. Raises CorruptFile."""
    value = parse_rational(cell) if cell is not None and 0 < len(cell) <= 5000 else None
    if value is None:
        value = _read_hexadecimal_ratio(cell or "")
    return value


def _read_hexadecimal_ratio(cell: str) -> Fraction:
    match = re.fullmatch(r"(-?)(0x[0-9a-f]+)/(0x[0-9a-f]+)", cell)
    if match is None or not int(match[3], 16):
        raise CorruptFile(f"{cell[:40]!r} is not a finite number.")
    value = Fraction(int(match[2], 16), int(match[3], 16))
    return -value if match[1] else value


def _read_integer_cell(cell: str | None) -> int:
    value = read_cell_number(cell)
    if value.denominator != 1 or abs(value) >= 1 << 40:
        raise CorruptFile(f"{str(cell)[:40]!r} must be an integer.")
    return int(value)


def _read_clamp(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    if not dots:
        raise CorruptFile(f"clamp must be two integers, as 0..50. Got {text[:40]!r}.")
    return _read_integer_cell(low), _read_integer_cell(high)


def _read_mass(cell: Any) -> Fraction:
    value = cell if isinstance(cell, Fraction) else read_cell_number(cell)
    if value < 0:
        raise CorruptFile(f"A probability is negative: {float(value):g}.")
    return value


def _check_mass_total(total: Fraction) -> None:
    if abs(total - 1) > MAX_SUM_ERROR:
        raise CorruptFile(f"The probabilities add up to {float(total):.9g}, not 1.")


def _read_law_masses(masses: Sequence[Fraction]) -> Distribution:
    checked = [_read_mass(mass) for mass in masses]
    _check_mass_total(sum(checked, ZERO))
    return Distribution(checked)
