"""A baseline of one's own: a PMF, a matrix, a table, a mechanism, or a function of (ε, δ), for the frontiers of every
family and `recommend`.

    PMF        {noise value: probability}, or a CSV of two columns, noise and probability: noise on the answers'
               positions, clamped into them; modulo a group wrapped around; on the integers as it is
    matrix     rows of numbers, or a CSV: a row for every answer, a column for every output. Two columns of which every
               row adds up to 1 are a matrix, unless a header says noise. Of labels the outputs are the labels
    table      a CSV: a header of a word and the outputs, then rows of an input and its probabilities: of labels all of
               them; of quantizers the knots from -c to c, between which the law is affine
    mechanism  any, or a Design or Certificate of one; a .json file that holds it
    function   (epsilon, delta) -> a PMF, a matrix or a mechanism

Whatever it is, the exact audit decides whether it is private at a budget, and the family computes what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import exact, nearest_float
from workbench.exact.plain import is_whole, plain_list
from workbench.families.baseline import Baseline
from workbench.io.files import read_table
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.mechanism import Mechanism, as_mechanism
from workbench.mechanisms.modulo import ModuloNoise
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.quantization import Quantization
from workbench.privacy.loading import load

__all__ = ["own_baselines", "read_baselines"]

_WANTED = (
    "a PMF {noise: probability}, a matrix, a mechanism, a function of (epsilon, delta), or a file of the first three"
)
_TABLE = "a CSV with the outputs in its header (x,-2,2) and rows of a knot and its probabilities, or a quantizer"
_MOST = 100_000  # distance of noise values


@dataclass(frozen=True)
class _Table:
    """inputs: (k,); outputs: (m,); rows: (k, m), each adding up to 1."""

    inputs: list[Fraction]
    outputs: list[Fraction]
    rows: list[list[Fraction]]


Law = dict[int, Fraction] | list[list[Fraction]] | _Table | Mechanism


def read_baselines(value: Any, name: str) -> tuple[tuple[str, Any], ...]:
    """Reader of an option: (name, law or function) of each; value: one of the docstring's, a list of paths, or a
    mapping from names to them. Raises InvalidRequest."""
    if isinstance(value, Mapping) and value and all(isinstance(key, str) for key in value):
        return tuple((key, _read(item, key)) for key, item in value.items())
    several = isinstance(value, (list, tuple)) and value and all(isinstance(item, (str, Path)) for item in value)
    baselines = tuple((_named(item), _read(item, name)) for item in (value if several else [value]))
    if len({key for key, _ in baselines}) < len(baselines):
        InvalidRequest.must(name, "files of different names", ", ".join(key for key, _ in baselines))
    return baselines


def own_baselines(given: tuple[tuple[str, Any], ...], family: str) -> list[Baseline]:
    """What was read as baselines of a family."""
    return [Baseline(name, family, _builder(law)) for name, law in given]


def _named(value: Any) -> str:
    if isinstance(value, (str, Path)):
        return Path(value).stem
    return str(getattr(value, "__name__", "own")).replace("<lambda>", "own")


def _read(value: Any, name: str) -> Law | Callable[..., Any]:
    if isinstance(value, (str, Path)):
        return _from_file(Path(value), name)
    if callable(value):
        function: Callable[..., Any] = value
        return function
    return _law(value, name)


def _from_file(path: Path, name: str) -> Law:
    if path.suffix.lower() == ".json":
        held = load(path)
        if isinstance(held, Distribution):
            InvalidRequest.must(name, _WANTED, f"a list of masses in {path.name}, whose noise values are not given")
        return _law(held, name)
    rows = read_table(path, name, header=True)
    headed = bool(rows) and not _numbers(rows[0])
    body = rows[1:] if headed else rows
    if not body:
        InvalidRequest.must(name, f"{path.name} with numbers below its header", "none")
    cells = [[exact(cell, f"a cell of {path.name}") for cell in row] for row in body]
    first = [row[0] for row in cells if len(row) == 2 and row[0].denominator == 1]
    stochastic = len(cells) > 1 and all(sum(row) == 1 for row in cells)
    if headed and not stochastic and len(rows[0]) > 2 and _numbers(rows[0][1:]) and {*map(len, body)} == {len(rows[0])}:
        for row in cells:
            _sums_to_one(row[1:], name)
        outputs = [exact(cell, f"an output of {path.name}") for cell in rows[0][1:]]
        return _Table([row[0] for row in cells], outputs, [row[1:] for row in cells])
    if len(first) == len(cells) and ((headed and rows[0][0] == "noise") or not stochastic):
        if len(set(first)) < len(cells):
            InvalidRequest.must(name, "a PMF with every noise value once", path.name)
        return _law({int(row[0]): row[1] for row in cells}, name)
    return _law(cells, name)


def _numbers(row: Sequence[str]) -> bool:
    try:
        return bool([exact(cell, "a cell") for cell in row])
    except InvalidRequest:
        return False


def _law(value: Any, name: str) -> Law:
    if hasattr(getattr(value, "mechanism", value), "comparisons"):
        return as_mechanism(value)
    if isinstance(value, Mapping):
        if not value or not all(is_whole(eta) and abs(int(eta)) <= _MOST for eta in value):
            InvalidRequest.must(name, f"a PMF of integer noise values, at most {_MOST} in size", repr(value)[:80])
        masses = {int(eta): exact(mass, "a probability of the PMF") for eta, mass in value.items()}
        _sums_to_one([*masses.values()], name)
        return masses
    try:
        rows = [
            [exact(cell, "an entry of the matrix") for cell in plain_list(row, name, _WANTED)]
            for row in plain_list(value, name, _WANTED)
        ]
    except TypeError:
        InvalidRequest.must(name, _WANTED, repr(value)[:80])
    if not rows or len({len(row) for row in rows}) != 1:
        InvalidRequest.must(name, _WANTED, repr(value)[:80])
    for row in rows:
        _sums_to_one(row, name)
    return rows


def _sums_to_one(masses: list[Fraction], name: str) -> None:
    total = sum(masses, Fraction(0))
    if min(masses) < 0 or abs(total - 1) > Fraction(1, 10**6):
        InvalidRequest.must(name, "made of probabilities >= 0 that add up to 1", f"a total of {float(total):.9g}")


def _builder(law: Law | Callable[..., Any]) -> Callable[[Any], Mechanism]:
    def mechanism(request: Any) -> Mechanism:
        baseline = law
        if callable(baseline):
            epsilon = None if request.epsilon is None else float(request.epsilon)
            value = baseline(epsilon, float(getattr(request, "delta", None) or 0))
            if isinstance(value, (str, Path)) or callable(value):
                InvalidRequest.must("baseline", "a PMF, a matrix or a mechanism from a function", repr(value)[:80])
            baseline = _law(value, "baseline")
        return _mechanism(baseline, request.question)

    return mechanism


def _mechanism(law: Law, question: Any) -> Mechanism:
    if isinstance(law, _Table):
        return _table(law, question)
    if isinstance(law, list):
        return _matrix(law, question)
    return _noise(law, question) if isinstance(law, dict) else law


def _table(law: _Table, question: Any) -> Mechanism:
    if isinstance(question, Quantization):
        if len(law.rows) < 2:
            InvalidRequest.must("baseline", _TABLE, "one row")
        pieces = [[law.rows[k], law.rows[k + 1]] for k in range(len(law.rows) - 1)]
        return PiecewiseAffine.from_ends("own", law.outputs, law.inputs, pieces)
    if isinstance(question, Labels):
        _same(law.inputs, [Fraction(y) for y in question.values.tolist()], "labels")
        return _label_channel(law.rows, [nearest_float(output) for output in law.outputs], question)
    if isinstance(question, FiniteQuery) and question.numbers is not None:
        _same(law.inputs, [*question.numbers[0]], "answers")
        _same(law.outputs, [*question.numbers[1]], "outputs")
        return Channel.from_rows(law.rows)
    return InvalidRequest.must("baseline", "a PMF or a matrix for this query", "a table of inputs and outputs")


def _same(given: list[Fraction], known: list[Fraction], what: str) -> None:
    if [*map(nearest_float, given)] != [*map(nearest_float, known)]:
        InvalidRequest.must("baseline", f"a table of the {len(known)} {what} in their order", f"{len(given)} others")


def _label_channel(rows: list[list[Fraction]], outputs: list[float], labels: Labels) -> Mechanism:
    if len(rows) != labels.k:
        InvalidRequest.must("baseline", f"a matrix with a row for each of {labels.k} labels", f"{len(rows)} rows")
    return _labelled(labels, outputs, Channel.from_rows(rows))


def _labelled(labels: Labels, outputs: Iterable[float], channel: Channel) -> Channel:
    return replace(channel, labelled=(tuple(map(Fraction, labels.values.tolist())), tuple(map(Fraction, outputs))))


def _matrix(rows: list[list[Fraction]], question: Any) -> Mechanism:
    if isinstance(question, (FiniteQuery, ModuloNoise)):
        return Channel.from_rows(rows)
    if isinstance(question, Labels):
        if len(rows[0]) != question.k:
            wanted = f"a matrix of {question.k} columns, the labels, or a table with the outputs in its header"
            InvalidRequest.must("baseline", wanted, f"{len(rows[0])} columns")
        return _label_channel(rows, question.values.tolist(), question)
    if isinstance(question, Quantization):
        InvalidRequest.must("baseline", _TABLE, "a matrix, which names neither knots nor outputs")
    return InvalidRequest.must("baseline", "a PMF where the answers have no largest one", "a matrix")


def _noise(masses: dict[int, Fraction], question: Any) -> Mechanism:
    first, last = min(masses), max(masses)
    law = IntegerLaw(first, [masses.get(eta, Fraction(0)) for eta in range(first, last + 1)])
    if isinstance(question, IntegerNoise):
        return AdditiveIntegerNoise(question, law)
    if isinstance(question, FiniteQuery) and question.outputs == question.inputs:
        return Channel(_clamped(law, question.k))
    if isinstance(question, Labels):
        return _labelled(question, question.values.tolist(), Channel(_clamped(law, question.k)))
    if isinstance(question, Quantization):
        InvalidRequest.must("baseline", _TABLE, "a PMF of noise, which is biased once it is clamped")
    if isinstance(question, ModuloNoise) and question.scalar:
        from workbench.mechanisms.additive import AdditiveNoise

        wrapped = [Fraction(0)] * question.order
        for eta, mass in masses.items():
            wrapped[eta % question.order] += mass
        return AdditiveNoise(question, wrapped)
    wanted = "a mechanism of this family or its .json file, or for finitely many answers a matrix"
    return InvalidRequest.must("baseline", wanted, "a PMF of noise")


def _clamped(law: IntegerLaw, count: int) -> tuple[Distribution, ...]:
    """The noise on positions 0..count-1, clamped into them."""
    return tuple(law.clamped(-q, count - 1 - q) for q in range(count))
