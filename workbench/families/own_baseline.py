"""A baseline of one's own: a PMF, a matrix, or a function of (ε, δ), for the frontiers of every family and `recommend`.

    PMF       {noise value: probability}, or a CSV of two columns, noise and probability: noise on the answers'
              positions, clamped into them; modulo a group wrapped around; on the integers as it is
    matrix    rows of numbers, or a CSV: a row for every answer, a column for every output. Two columns of which every
              row adds up to 1 are a matrix, unless a header says noise
    function  (epsilon, delta) -> a PMF or a matrix

Whatever it is, the exact audit decides whether it is private at a budget, and the family computes what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import exact
from workbench.exact.plain import is_whole, plain_list
from workbench.families.baseline import Baseline
from workbench.io.files import read_rows
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise
from workbench.mechanisms.mechanism import Mechanism
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["own_baselines", "read_baselines"]

_WANTED = "a PMF {noise: probability}, a matrix, a function of (epsilon, delta), or a CSV file of the first two"
_MOST = 100_000  # distance of noise values
Law = dict[int, Fraction] | list[list[Fraction]]


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
    rows = [row for row in read_rows(path, name) if any(cell.strip() for cell in row)]
    headed = bool(rows) and not _numbers(rows[0])
    body = rows[1:] if headed else rows
    if not body or not all(map(_numbers, body)):
        InvalidRequest.must(name, f"{path.name} with numbers alone below its header", "something else")
    cells = [[exact(cell.strip(), f"a cell of {path.name}") for cell in row] for row in body]
    first = [row[0] for row in cells if len(row) == 2 and row[0].denominator == 1]
    stochastic = len(cells) > 1 and all(sum(row) == 1 for row in cells)
    if len(first) == len(cells) and ((headed and rows[0][0].strip() == "noise") or not stochastic):
        if len(set(first)) < len(cells):
            InvalidRequest.must(name, "a PMF with every noise value once", path.name)
        return _law({int(row[0]): row[1] for row in cells}, name)
    return _law(cells, name)


def _numbers(row: list[str]) -> bool:
    try:
        return bool([exact(cell.strip(), "a cell") for cell in row])
    except InvalidRequest:
        return False


def _law(value: Any, name: str) -> Law:
    if isinstance(value, Mapping):
        if not value or not all(is_whole(eta) and abs(int(eta)) <= _MOST for eta in value):
            InvalidRequest.must(name, f"a PMF of integer noise values, at most {_MOST} in size", repr(value)[:80])
        masses = {int(eta): exact(mass, "a probability of the PMF") for eta, mass in value.items()}
        _sums_to_one([*masses.values()], name)
        return masses
    try:
        rows = [[exact(cell, "an entry of the matrix") for cell in plain_list(row, name, _WANTED)]
                for row in plain_list(value, name, _WANTED)]  # fmt: skip
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
            value = baseline(epsilon, float(request.delta or 0))
            if isinstance(value, (str, Path)) or callable(value):
                InvalidRequest.must("baseline", "a PMF or a matrix from a function", repr(value)[:80])
            baseline = _law(value, "baseline")
        return _matrix(baseline, request.question) if isinstance(baseline, list) else _noise(baseline, request.question)

    return mechanism


def _matrix(rows: list[list[Fraction]], question: Any) -> Mechanism:
    if isinstance(question, (FiniteQuery, ModuloNoise)):
        return Channel.from_rows(rows)
    return InvalidRequest.must("baseline", "a PMF where the answers have no largest one", "a matrix")


def _noise(masses: dict[int, Fraction], question: Any) -> Mechanism:
    first, last = min(masses), max(masses)
    law = IntegerLaw(first, [masses.get(eta, Fraction(0)) for eta in range(first, last + 1)])
    if isinstance(question, IntegerNoise):
        return AdditiveIntegerNoise(question, law)
    if isinstance(question, FiniteQuery) and question.outputs == question.inputs:
        top = question.k - 1
        return Channel(tuple(law.clamped(-q, top - q) for q in range(question.k)))
    if isinstance(question, ModuloNoise) and question.scalar:
        from workbench.mechanisms.additive import AdditiveNoise

        wrapped = [Fraction(0)] * question.order
        for eta, mass in masses.items():
            wrapped[eta % question.order] += mass
        return AdditiveNoise(question, wrapped)
    return InvalidRequest.must("baseline", "a matrix for this query", "a PMF of noise")
