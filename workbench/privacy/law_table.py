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

from workbench.data.intervals import read_range, spelled_range
from workbench.data.number_tables import MAX_SUM_ERROR
from workbench.data.points import Point, point, rationals_of
from workbench.errors import CorruptFile
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, rational
from workbench.exact.objects import Words
from workbench.io.files import spelled
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


def law_table(mechanism: Any) -> Table | None:
    """Write the law of a mechanism as (heads, rows), complete and exact.

    Returns:
        None for a mechanism that has no finite table: one without exact laws, or with more than 10^6 probabilities.
    """
    if isinstance(mechanism, AdditiveNoise):
        return _modulo_table(mechanism)
    if isinstance(mechanism, AdditiveIntegerNoise):
        return _integer_table(mechanism)
    if isinstance(mechanism, AdditiveRealNoise):
        return _real_table(mechanism)
    if isinstance(mechanism, PiecewiseAffine):
        places = [spelled(place) for place in mechanism.places]
        return _matrix_table(_PIECES, [], places, mechanism.bins, mechanism.ends)
    if isinstance(mechanism, RangeMechanism):
        return _range_table(mechanism)
    if isinstance(mechanism, Channel):
        return _channel_table(mechanism)
    rows: Any = getattr(mechanism, "inputs", None)
    has_laws = (
        rows is not None and hasattr(mechanism, "law") and not getattr(mechanism, "direct", 0)
    )
    if not has_laws or mechanism.segments != () or len(rows) * len(mechanism.outputs) > _MAX_CELLS:
        return None
    labelled = tuple(map(_exact_point, rows)), tuple(map(_exact_point, mechanism.outputs.tolist()))
    return _channel_table(
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
            _whole(given.get("sensitivity")), None if clamp is None else _two(clamp)
        )
        return AdditiveIntegerNoise(question, integer_law(rows))
    if kind == _REALS:
        return _read_reals(given, rows)
    if len(rows) != _whole(given.get("rows")):
        raise CorruptFile(
            f"The table must have the {given.get('rows')} rows that its head names. Got {len(rows)}."
        )
    laws = tuple(_law([number(cell) for cell in row[1:]]) for row in rows)
    labels, outputs = (
        [row[0] for row in rows],
        tuple(point(_bare(head), "output") for head in heads[1:]),
    )
    if kind == _PIECES:
        return _read_pieces(labels, outputs, laws)
    neighbours = _read_neighbours(given.get("neighbours"))
    if kind == _FINITE:
        return Channel(laws, neighbours, (tuple(point(_bare(x), "input") for x in labels), outputs))
    if kind == _CELLS:
        cells = [[number(end) for end in label.split(" to ")] for label in labels]
        if any(len(cell) != 2 for cell in cells) or any(a[1] != b[0] for a, b in pairwise(cells)):
            raise CorruptFile("The cells must follow each other: 'a to b', then 'b to c'.")
        ends = (cells[0][0], *(high for _, high in cells))
        places = tuple((low + high) / 2 for low, high in cells)
    elif kind == _ENDS:
        ends = places = tuple(map(number, labels))
    else:
        raise CorruptFile(f"The first head must name a law. Got {kind[:40]!r}.")
    return RangeMechanism(
        laws, neighbours, (places, outputs), ends, number(given.get("sensitivity")), kind == _ENDS
    )


def integer_law(rows: Sequence[Sequence[str]]) -> IntegerLaw:
    """Read rows (noise value, probability) in any order, with or without tails. Raises CorruptFile."""
    masses: dict[int, Fraction] = {}
    tails: dict[str, tuple[Fraction, int, Fraction]] = {}
    for label, mass in rows:
        if tail := _TAIL.fullmatch(label):
            if tail[1] in tails:
                raise CorruptFile(f"The tail {tail[1]} must stand in one row. Got two.")
            tails[tail[1]] = number(tail[3]), int(tail[4]), _mass(mass)
            continue
        value = _whole(label)
        if value in masses:
            raise CorruptFile(f"The noise value {value} must stand in one row. Got two.")
        masses[value] = _mass(mass)
    if not masses:
        raise CorruptFile("The table must have at least one noise value.")
    first, last = min(masses), max(masses)
    if last - first >= _MAX_CELLS:
        raise CorruptFile(f"The noise values must span at most {_MAX_CELLS}. Got {first}..{last}.")
    weights = [masses.get(value, ZERO) for value in range(first, last + 1)]
    _check_total(sum(weights, ZERO) + sum((tail[2] for tail in tails.values()), ZERO))
    if not tails:
        return IntegerLaw(first, weights)
    if {*tails} != {"below", "above"} or len({tail[:2] for tail in tails.values()}) != 1:
        raise CorruptFile("Both tails must be given, with one ratio and one period.")
    ratio, period, _ = tails["below"]
    law = IntegerLaw(first, weights, period, ratio)
    for side, end in zip(("below", "above"), law.ends, strict=True):
        whole = law.ratio / (1 - law.ratio) * end / law.total
        if abs(whole - tails[side][2]) > MAX_SUM_ERROR:
            raise CorruptFile(
                f"The tail {side} must have the probability that its ratio gives, {float(whole):g}."
            )
    return law


# Noise.


def _tail_rows(law: IntegerLaw, total: Fraction, low: str, high: str) -> list[list[str]]:
    if not law.ratio:
        return []
    fall = f"times {spelled(law.ratio)} every {law.period}"
    masses = [law.ratio / (1 - law.ratio) * end / total for end in law.ends]
    return [[f"{side} {end}, {fall}", _spelled(mass)]
            for side, end, mass in zip(("below", "above"), (low, high), masses, strict=True)]  # fmt: skip


def _integer_table(mechanism: AdditiveIntegerNoise) -> Table | None:
    law, clamp = mechanism.noise, mechanism.question.clamp
    if len(law.weights) > _MAX_CELLS:
        return None
    head = f"{_INTEGERS} | sensitivity {mechanism.question.sensitivity}"
    head += "" if clamp is None else f" | clamp {clamp[0]}..{clamp[1]}"
    rows = [
        [str(law.first + k), _spelled(weight / law.total)] for k, weight in enumerate(law.weights)
    ]
    return [head, "probability"], rows + _tail_rows(law, law.total, str(law.first), str(law.last))


def _modulo_table(mechanism: AdditiveNoise) -> Table | None:
    question = mechanism.question
    if question.order > _MAX_CELLS:
        return None
    head = f"{_MODULO} {'x'.join(map(str, question.sizes))} | shifts {' '.join(map(_group, question.shifts))}"
    head += " | directed yes" if question.directed else ""
    cells = [[_group(question.point(k)), _spelled(mass)] for k, mass in enumerate(mechanism.masses)]
    return [head, "probability"], cells


def _group(value: Iterable[int]) -> str:
    return ":".join(map(str, value))


def _parts(text: str) -> tuple[int, ...]:
    return tuple(_whole(part) for part in text.split(":"))


def _read_modulo(sizes: str, given: dict[str, str], rows: Sequence[Sequence[str]]) -> AdditiveNoise:
    orders = [_whole(part) for part in sizes.split("x")]
    shifts = [_parts(part) for part in given.get("shifts", "").split()]
    scalar = len(orders) == 1
    moves: list[Any] = [shift[0] for shift in shifts] if scalar else [*shifts]
    question = ModuloNoise(sizes=orders, shifts=moves, directed=given.get("directed") == "yes")
    return AdditiveNoise(question, group_masses(question, rows))


def group_masses(question: ModuloNoise, rows: Sequence[Sequence[str]]) -> Distribution:
    """Read rows (noise value, probability) of noise on a group, every value once. Raises CorruptFile."""
    if question.order > _MAX_CELLS or len(rows) != question.order:
        raise CorruptFile(
            f"The table must have a row for each of {question.order} noise values. Got {len(rows)}."
        )
    masses = {_parts(label): _mass(mass) for label, mass in rows}
    values = [question.point(k) for k in range(question.order)]
    missing = next((value for value in values if value not in masses), None)
    if missing is not None:
        raise CorruptFile(f"The noise value {_group(missing)} must stand in one row. Got none.")
    return _law([masses[value] for value in values])


def _real_table(mechanism: AdditiveRealNoise) -> Table | None:
    law, question, width = mechanism.cells, mechanism.question, mechanism.width
    if len(law.weights) > _MAX_CELLS:
        return None
    head = f"{_REALS} | sensitivity {spelled(question.sensitivity)} | grid {spelled(question.grid)}"
    head += f" | steps {mechanism.steps}"
    head += "" if question.clamp is None else f" | clamp {spelled_range(question.clamp)}"
    total = mechanism.total
    ends = [spelled((law.first + k - Fraction(1, 2)) * width) for k in range(len(law.weights) + 1)]
    rows = [
        [f"{low} to {high}", _spelled(weight / total)]
        for (low, high), weight in zip(pairwise(ends), law.weights, strict=True)
    ]
    if mechanism.atom:
        rows.append(["0", _spelled(mechanism.atom / total)])
    return [head, "probability"], rows + _tail_rows(law, total, ends[0], ends[-1])


def _read_reals(given: dict[str, str], rows: Sequence[Sequence[str]]) -> AdditiveRealNoise:
    clamp = given.get("clamp")
    ends = None if clamp is None else read_range(clamp, "clamp")
    question = RealNoise(number(given.get("sensitivity")), number(given.get("grid")), ends)
    steps = _whole(given.get("steps"))
    width, atom = question.sensitivity / steps, ZERO
    cells: list[tuple[str, Fraction]] = []
    tails = []
    for label, mass in rows:
        if _TAIL.fullmatch(label):
            tails.append([label, mass])
        elif label == "0":
            atom += _mass(mass)
        else:
            low, *high = (number(end) / width + Fraction(1, 2) for end in label.split(" to "))
            if len(high) != 1 or high[0] != low + 1 or low.denominator != 1:
                raise CorruptFile(
                    f"A cell must be {float(width):g} wide and lie on the grid. Got {label[:60]!r}."
                )
            cells.append((str(low), _mass(mass)))
    if atom >= 1:
        raise CorruptFile("The probability of the atom must be below 1.")
    share = 1 - atom  # of the cells and the tails, which the atom is added to
    scaled = [[label, spelled(mass / share)] for label, mass in cells]
    scaled += [[label, spelled(_mass(mass) / share)] for label, mass in tails]
    law = integer_law(scaled)
    return AdditiveRealNoise(question, steps, law, atom / share * law.total)


# Laws of finitely many inputs.


def _matrix_table(
    kind: str,
    options: Sequence[str],
    labels: Words | list[str],
    outputs: Sequence[Any],
    laws: Sequence[Distribution],
) -> Table | None:
    if len(laws) * len(laws[0]) > _MAX_CELLS:
        return None
    head = " | ".join([kind, f"rows {len(laws)}", *options])
    rows = [[label, *map(_spelled, law)] for label, law in zip(labels, laws, strict=True)]
    return [head, *map(_label, outputs)], rows


def _channel_table(channel: Channel) -> Table | None:
    numbers = tuple(range(len(channel.rows))), tuple(range(len(channel.rows[0])))
    inputs, outputs = channel.labelled or numbers
    return _matrix_table(
        _FINITE, [_neighbours(channel)], [*map(_label, inputs)], outputs, channel.rows
    )


def _range_table(mechanism: RangeMechanism) -> Table | None:
    assert mechanism.labelled is not None
    ends = [spelled(end) for end in mechanism.ends]
    labels = ends if mechanism.at_ends else [f"{low} to {high}" for low, high in pairwise(ends)]
    options = [f"sensitivity {spelled(mechanism.sensitivity)}", _neighbours(mechanism)]
    kind = _ENDS if mechanism.at_ends else _CELLS
    return _matrix_table(kind, options, labels, mechanism.labelled[1], mechanism.rows)


def _neighbours(channel: Channel) -> str:
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
    places, values = [*map(number, labels)], rationals_of(outputs)
    knots = (*places[0::2], *places[-1:])
    if values is None or len(places) % 2 or places != [x for pair in pairwise(knots) for x in pair]:
        raise CorruptFile(
            "Every piece must have two rows, at its left and its right end, and numbers as outputs."
        )
    return PiecewiseAffine(knots, values, tuple(laws))


# Cells.


def _exact_point(value: Any) -> Point:
    return Fraction(value) if isinstance(value, (int, float, Fraction)) else point(value, "input")


def _label(value: Any) -> str:
    """An input or output as text; the parts of a place stand in brackets."""
    if isinstance(value, (int, Fraction)):
        return spelled(Fraction(value))
    if isinstance(value, tuple):
        return f"({' '.join(map(_label, value))})"
    return str(value)


def _bare(text: str) -> Any:
    """A label as `point` reads it: places are in brackets."""
    if text.startswith("(") and text.endswith(")"):
        return tuple(text[1:-1].split())
    return text


def _spelled(value: Fraction) -> str:
    return spelled(Fraction(value))


def number(cell: str | None) -> Fraction:
    """Read the exact number of a cell. Raises CorruptFile."""
    value = rational(cell) if cell is not None and 0 < len(cell) <= 5000 else None
    if value is None:
        value = _hexadecimal(cell or "")
    return value


def _hexadecimal(cell: str) -> Fraction:
    match = re.fullmatch(r"(-?)(0x[0-9a-f]+)/(0x[0-9a-f]+)", cell)
    if match is None or not int(match[3], 16):
        raise CorruptFile(f"{cell[:40]!r} is not a finite number.")
    value = Fraction(int(match[2], 16), int(match[3], 16))
    return -value if match[1] else value


def _whole(cell: str | None) -> int:
    value = number(cell)
    if value.denominator != 1 or abs(value) >= 1 << 40:
        raise CorruptFile(f"{str(cell)[:40]!r} must be an integer.")
    return int(value)


def _two(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    if not dots:
        raise CorruptFile(f"clamp must be two integers, as 0..50. Got {text[:40]!r}.")
    return _whole(low), _whole(high)


def _mass(cell: Any) -> Fraction:
    value = cell if isinstance(cell, Fraction) else number(cell)
    if value < 0:
        raise CorruptFile(f"A probability is negative: {float(value):g}.")
    return value


def _check_total(total: Fraction) -> None:
    if abs(total - 1) > MAX_SUM_ERROR:
        raise CorruptFile(f"The probabilities add up to {float(total):.9g}, not 1.")


def _law(masses: Sequence[Fraction]) -> Distribution:
    checked = [_mass(mass) for mass in masses]
    _check_total(sum(checked, ZERO))
    return Distribution(checked)
