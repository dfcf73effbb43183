"""Baselines: mechanisms that stand in the frontier of a family beside its optimum, of other packages and of one's own.

Of another package: `workbench.register(Baseline("staircase", "modulo", build))`, or an entry point of the group
`workbench.baselines`. Of one's own, for the frontiers of every family and `recommend`:

    PMF        {noise value: probability}, or a CSV of two columns, noise and probability: noise on the answers'
               positions, clamped into them; modulo a group wrapped around; on the integers as it is
    matrix     rows of numbers, or a CSV: a row for every answer, a column for every output. Two columns of which every
               row adds up to 1 are a matrix, unless a header says noise. Of labels the outputs are the labels
    table      a CSV: a header of a word and the outputs, then rows of an input and its probabilities: of labels all of
               them; of quantizers the knots from -c to c, between which the law is affine
    mechanism  any, or a Design or Certificate of one; a .json file that holds it
    function   (epsilon, delta) -> a PMF, a matrix or a mechanism; `baseline` of a .py file, which is run

Whatever it is, the exact audit decides whether it is private at a budget, and the family computes what it costs. A law
of doubles, which are rounded, may miss its budget by that rounding: it is then mixed with as small a share of a private
law as makes it private, a note says so, and the loss is that of the mixture.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from workbench.data.containers import is_frame
from workbench.data.labels import Axis, align, align_table, column_labels, row_labels
from workbench.errors import InvalidRequest, NotCertified, WorkbenchError, must
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ONE, ZERO, exact, nearest_float
from workbench.exact.plain import is_whole, plain_list
from workbench.families.base import Family
from workbench.families.frontier_plan import NotApplicable
from workbench.families.published import Published, Reference
from workbench.io.files import is_there, read_table
from workbench.io.plugins import plugins
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise, IntegerNoise
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.mechanism import Mechanism, as_mechanism
from workbench.mechanisms.modulo import ModuloNoise
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.points import rationals_of
from workbench.mechanisms.quantization import Quantization
from workbench.privacy.audit import holds, proves
from workbench.privacy.certify import certify
from workbench.privacy.claim import Claim
from workbench.privacy.law_table import is_law_table, read_law_table
from workbench.privacy.loading import load

_WANTED = (
    "a PMF {noise: probability}, a matrix, a mechanism, a function of (epsilon, delta), a file of the first three, or "
    "a mapping from names to such"
)
_TABLE = "a CSV with the outputs in its header (x,-2,2) and rows of a knot and its probabilities, or a quantizer"
_MOST = 100_000  # distance of noise values
_TOTAL = Fraction(1, 10**6)  # how far probabilities may be from adding up to 1
_ROUNDING = Fraction(1, 10**12)  # A law that is private at a budget larger by this share is repaired.
_ROUNDING_OF_DELTA = Fraction(1, 10**15)  # A law that is private at a δ larger by this much is repaired.
_MOST_MOVED = 1e-9  # A repair that moves more probability is not that of rounding.


@dataclass(frozen=True)
class Baseline:
    """A published mechanism for the questions of a family.

    name: of the series; family: the name of the family; mechanism: (request) -> the mechanism that is to meet its
    budget, None where there is none. It is audited exactly, and its loss computed by the family.
    """

    name: str
    family: str
    mechanism: Callable[[Any], Mechanism | None]

    def built(self, request: Any) -> Mechanism:
        """The mechanism for a request. Raises NotApplicable where there is none, and whatever its own code raises."""
        given = self.mechanism(request)
        if given is None:
            raise NotApplicable("no mechanism of it meets the budget", "infeasible")
        return as_mechanism(given)


def joined(kind: Family, own: Sequence[Baseline] = ()) -> list[Published]:
    """The baselines of other packages for a family, and those of the user, as entries of its list of the published."""
    every = ((plugin.thing, plugin.package) for plugin in plugins("baselines").values())
    theirs = [(baseline, package) for baseline, package in every if baseline.family == kind.name]
    theirs += [(baseline, "own") for baseline in own]
    return [
        Published(
            baseline.name,
            package,
            partial(_cost, kind, baseline, package),
            lambda request: request.runs == 1,  # which alone is audited
            any_budget=True,
            fixed={"package": package},
        )
        for baseline, package in theirs
    ]


@contextmanager
def code_of(package: str) -> Iterator[None]:
    """Whatever code that is not ours raises is NotApplicable."""
    try:
        yield
    except (WorkbenchError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise NotApplicable(f"{package}: {type(error).__name__}: {error}", "failed") from error


def _cost(kind: Family, baseline: Baseline, package: str, request: Any) -> Reference:
    """What a mechanism costs under the neighbour relation of a request's question."""
    with code_of(package):
        given = baseline.built(request)
        mechanism = kind.related(request, given)
        if holds(mechanism, request.claim.on(mechanism)):
            return Reference(kind.loss(request, given), True, mechanism)
        if (repaired := _without_rounding(mechanism, request.claim)) is None:
            return Reference(kind.loss(request, given), False, mechanism)
        note = (
            "Its probabilities are rounded and miss the budget by that: the loss is that of the mechanism repaired in "
            "exact arithmetic, which moves less than 1e-9 of the probability."
        )
        return Reference(kind.loss(request, repaired), True, repaired, note=note)


def _without_rounding(mechanism: Mechanism, claim: Claim) -> Mechanism | None:
    """The nearest private mechanism to one whose probabilities miss a budget only by the rounding of doubles; None for
    one that misses it by more, or misses a budget that is no number."""
    wider = {name: _widened(name, value) for name, value in claim.values.items()}
    if None in wider.values() or not proves(mechanism, Claim(claim.notion, **wider).on(mechanism)):
        return None
    try:
        certificate = certify(mechanism, claim.notion, **claim.values)
    except (InvalidRequest, NotCertified):
        return None
    moved = max(certificate.record.get(name, 0.0) for name in ("repair_mixed_in", "repair_moved_mass"))
    return certificate.mechanism if moved <= _MOST_MOVED else None


def _widened(name: str, value: Any) -> Any:
    """A budget's number, or numbers, larger by what rounding may cost; None where it is none."""
    if isinstance(value, Mapping):
        return {label: _widened(name, each) for label, each in value.items()}
    if not isinstance(value, Fraction) or name == "alpha":  # a larger order is a stricter budget
        return value if name == "alpha" else None
    return min(ONE, value + _ROUNDING_OF_DELTA) if name == "delta" and value else value * (1 + _ROUNDING)


# One's own.


@dataclass(frozen=True)
class _Table:
    """rows: (k, m), each adding up to 1; inputs: (k,), outputs: (m,), their labels, None of a bare matrix."""

    rows: list[list[Fraction]]
    inputs: list[Any] | None = None
    outputs: list[Any] | None = None

    def aligned(self, inputs: Sequence[Any], outputs: Sequence[Any], what: str) -> list[list[Fraction]]:
        """The rows in the order of a question's inputs, and their entries in that of its outputs. Raises
        InvalidRequest."""
        return align_table(
            self.rows, Axis(self.inputs, inputs, what), Axis(self.outputs, outputs, "outputs"), "baseline"
        )


class _Name(str):
    """Of a published mechanism."""


Named = tuple[tuple[str, Any], ...]  # a name and a law, or a function, each
Masses = dict[int, Fraction]  # of noise values
Law = Masses | _Table | Mechanism
Function = Callable[..., Any]  # of a budget


def read_baselines(value: Any, name: str) -> Named:
    """Reader of an option: (name, law or function) of each; value: one of the docstring's, a list of paths, or a
    mapping from names to them; of the name of a published one None in place of its law. Raises InvalidRequest."""
    if isinstance(value, Mapping) and value and all(isinstance(key, str) for key in value):
        return tuple((key, _read(item, key)) for key, item in value.items())
    several = isinstance(value, (list, tuple)) and value and all(isinstance(item, (str, Path)) for item in value)
    items = [part for item in (value if several else [value]) for part in _parts(item)]
    baselines = tuple((_named(item), _read(item, name)) for item in items)
    if len({key for key, _ in baselines}) < len(baselines):
        must(name, "files of different names", ", ".join(key for key, _ in baselines))
    return baselines


def own_baselines(given: Named, family: str) -> list[Baseline]:
    """What was read as baselines of a family."""
    return [Baseline(name, family, partial(_mechanism, law)) for name, law in given]


def _parts(value: Any) -> list[Any]:
    """Names that commas separate; anything else as it is."""
    if isinstance(value, str) and not Path(value).suffix and not is_there(value):
        return [_Name(part.strip()) for part in value.split(",")]
    return [value]


def _named(value: Any) -> str:
    if isinstance(value, (str, Path)):
        return str(value) if isinstance(value, _Name) else Path(value).stem
    return str(getattr(value, "__name__", "own")).replace("<lambda>", "own")


def _read(value: Any, name: str) -> Any:
    """A law, a function, or None of a published one."""
    if isinstance(value, _Name):
        return None
    if isinstance(value, (str, Path)):
        path = Path(value)
        return _READERS.get(path.suffix.lower(), _from_table)(path, name)
    return value if callable(value) else _law(value, name)


def _from_python(path: Path, name: str) -> Any:
    """The function `baseline` of a file, which is run."""
    try:
        function = runpy.run_path(str(path)).get("baseline")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        must(name, f"a Python file that runs: {path.name}", f"{type(error).__name__}: {error}")
    if not callable(function):
        must(name, "a Python file with a function baseline(epsilon, delta)", path.name)
    return function


def _from_json(path: Path, name: str) -> Law:
    held = load(path)
    if isinstance(held, IntegerLaw):
        return _law(dict(enumerate(held.held, held.first)), name)
    if isinstance(held, Distribution):
        must(name, _WANTED, f"a list of masses in {path.name}, whose noise values are not given")
    return _law(held, name)


_READERS: dict[str, Callable[[Path, str], Any]] = {".json": _from_json, ".py": _from_python}


def _from_table(path: Path, name: str) -> Law:
    rows = read_table(path, name, header=True)
    if rows and is_law_table(rows[0]):
        return _law(read_law_table(rows[0], rows[1:]), name)
    head = [] if not rows or _numeric(rows[0]) else rows.pop(0)
    if not rows:
        must(name, f"{path.name} with numbers below its header", "none")
    cells = [[exact(cell, f"a cell of {path.name}") for cell in row] for row in rows]
    if len(cells) > 1 and all(sum(row) == 1 for row in cells) and head[:1] != ["noise"]:
        return _law(cells, name)
    if len(head) > 2 and _numeric(head[1:]) and {*map(len, rows)} == {len(head)}:
        outputs = [exact(cell, f"an output of {path.name}") for cell in head[1:]]
        return _Table([_summed(row[1:], name) for row in cells], [row[0] for row in cells], outputs)
    return _law(_masses(cells, path, name) or cells, name)


def _masses(cells: list[list[Fraction]], path: Path, name: str) -> Masses:
    """Rows of a noise value and its probability; none where they are something else."""
    if not all(len(row) == 2 and row[0].denominator == 1 for row in cells):
        return {}
    masses = {int(eta): mass for eta, mass in cells}
    if len(masses) < len(cells):
        must(name, "a PMF with every noise value once", path.name)
    return masses


def _numeric(row: Sequence[str]) -> bool:
    try:
        return bool([exact(cell, "a cell") for cell in row])
    except InvalidRequest:
        return False


def _law(value: Any, name: str) -> Law:
    if hasattr(getattr(value, "mechanism", value), "comparisons"):
        return as_mechanism(value)
    if hasattr(value, "items") and hasattr(value, "index") and not is_frame(value):
        value = dict(value.items())  # a Series, whose index is the noise values
    if isinstance(value, Mapping):
        if not value or not all(is_whole(eta) and abs(int(eta)) <= _MOST for eta in value):
            must(name, f"a PMF of integer noise values, at most {_MOST} in size", repr(value)[:80])
        masses = [exact(mass, "a probability of the PMF") for mass in value.values()]
        return dict(zip(map(int, value), _summed(masses, name), strict=True))
    try:
        lists = [plain_list(row, name, _WANTED) for row in plain_list(value, name, _WANTED, column=True)]
        rows = [[exact(cell, "an entry of the matrix") for cell in row] for row in lists]
    except TypeError:
        rows = []
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        must(name, _WANTED, repr(value)[:80])
    return _Table([_summed(row, name) for row in rows], row_labels(value), column_labels(value))


def _summed(masses: list[Fraction], name: str) -> list[Fraction]:
    total = sum(masses, ZERO)
    if min(masses) < 0 or abs(total - 1) > _TOTAL:
        must(name, "made of probabilities >= 0 that add up to 1", f"a total of {float(total):.9g}")
    return masses


def _mechanism(law: Law | Function, request: Any) -> Mechanism:
    """What a law is for the question of a request; a function is called with its budget."""
    if callable(law):
        epsilon = None if request.epsilon is None else float(request.epsilon)
        value = law(epsilon, float(getattr(request, "delta", None) or 0))
        if isinstance(value, (str, Path)) or callable(value):
            must("baseline", "a PMF, a matrix or a mechanism from a function", repr(value)[:80])
        law = _law(value, "baseline")
    if isinstance(law, _Table):
        return _channel(law, request.question)
    return _noise(law, request.question) if isinstance(law, dict) else law


def _channel(law: _Table, question: Any) -> Mechanism:
    rows, inputs, outputs = law.rows, law.inputs, law.outputs
    if isinstance(question, Quantization):
        if inputs is None or outputs is None or len(rows) < 2:
            got = "one row" if inputs else "a matrix, which names neither knots nor outputs"
            must("baseline", _TABLE, got)
        knots, published = _numbers(inputs), _numbers(outputs)
        return PiecewiseAffine.from_ends("own", published, knots, [[*ends] for ends in pairwise(rows)])
    if isinstance(question, Labels):
        if inputs is None and question.listed_order is not None:
            must("labels", "in increasing order where a baseline is a matrix without labels", "another order")
        rows = align(rows, inputs, [*map(Fraction, question.values.tolist())], "the rows of baseline", "labels")
        if outputs is None and len(rows[0]) != question.k:
            wanted = f"a matrix of {question.k} columns, the labels, or a table with the outputs in its header"
            must("baseline", wanted, f"{len(rows[0])} columns")
        if len(rows) != question.k:
            wanted = f"a matrix with a row for each of {question.k} labels"
            must("baseline", wanted, f"{len(rows)} rows")
        return _labelled(question, None if outputs is None else _numbers(outputs), Channel.from_rows(rows))
    if isinstance(question, FiniteQuery):
        return Channel.from_rows(law.aligned(question.inputs, question.outputs, "answers"))
    if inputs is None and isinstance(question, ModuloNoise):
        return Channel.from_rows(rows)
    wanted, got = "a PMF or a matrix for this query", "a table of inputs and outputs"
    if inputs is None:
        wanted, got = "a PMF where the answers have no largest one", "a matrix"
    return must("baseline", wanted, got)


def _labelled(labels: Labels, outputs: Iterable[Fraction] | None, channel: Channel) -> Channel:
    """A channel of labels; outputs: the labels by default."""
    known = tuple(map(Fraction, labels.values.tolist()))
    published = known if outputs is None else tuple(Fraction(nearest_float(output)) for output in outputs)
    return replace(channel, labelled=(known, published))


def _numbers(labels: Iterable[Any]) -> list[Fraction]:
    """The labels of a table as numbers. Raises InvalidRequest."""
    return [exact(label, "a label of the baseline") for label in labels]


def _noise(masses: Masses, question: Any) -> Mechanism:
    first, last = min(masses), max(masses)
    law = IntegerLaw(first, [masses.get(eta, ZERO) for eta in range(first, last + 1)])
    if isinstance(question, IntegerNoise):
        return AdditiveIntegerNoise(question, law)
    if isinstance(question, FiniteQuery) and question.outputs == question.inputs:
        x = rationals_of(question.inputs)
        if x is None or [*x] != sorted(x):
            must("answers", "numbers in increasing order beside a PMF of noise, which is added to positions", question)
        return Channel(_clamped(law, question.k))
    if isinstance(question, Labels):
        return _labelled(question, None, Channel(_clamped(law, question.k)))
    if isinstance(question, Quantization):
        must("baseline", _TABLE, "a PMF of noise, which is biased once it is clamped")
    if isinstance(question, ModuloNoise) and question.scalar:
        wrapped = [ZERO] * question.order
        for eta, mass in masses.items():
            wrapped[eta % question.order] += mass
        return AdditiveNoise(question, wrapped)
    wanted = "a mechanism of this family or its .json file, or for finitely many answers a matrix"
    return must("baseline", wanted, "a PMF of noise")


def _clamped(law: IntegerLaw, count: int) -> tuple[Distribution, ...]:
    """The noise on positions 0..count-1, clamped into them."""
    return tuple(law.clamped(-q, count - 1 - q) for q in range(count))
