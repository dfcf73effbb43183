"""The file of a formula: strict JSON from which every piece is proven again, without a solver.

    {"what", "variable", "pieces", "open":                                       see `Formula.to_dict`
     "format": "dp-workbench formula", "version": 1,
     "question": {"family": "channel", "options": {"answers": ["0", "1"], ..}},  as sweeps spell them
     "epsilon": null | ["1/10", "4"], "delta": ["0", "1/5"],                     what the regions are to cover
     "regions": [{"low": END, "high": END | null, "sample": "3/2", "feasible": true,
                  "bases": [["0-+0..", "-0.."], ..]}, ..]}                       columns and rows: basic, lower, upper
    END: "2", or [["-1", "-1", "1"], "1/2", "9/4"], the one zero of a polynomial between two numbers

The family states the program again from the options. Of every region its bases give formulas and conditions, anew; each
condition must hold at the sample, and no condition may change its sign up to the ends, so that each formula is the
optimum in all of its region. The regions must cover the interval but for what is said to be open, and the pieces must
be the file's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import fmpz_poly

from workbench.errors import CorruptFile, InvalidRequest, NotCertified
from workbench.exact.numbers import ONE, ZERO, bits_of, exp_interval
from workbench.exact.objects import Record, Values
from workbench.formulas.formula_object import Formula
from workbench.formulas.pieces import epsilons, pieces_of
from workbench.io.files import no_files, ratio, spelled
from workbench.io.records import (
    AS_IS,
    FLAG,
    FORMULA,
    OBJECT,
    RATIO,
    TEXT,
    Entry,
    RecordForm,
    listed,
    many,
    numbers,
    optional,
    refuse,
    take,
)
from workbench.pipeline.family import Family
from workbench.pipeline.option import spell
from workbench.pipeline.registry import family
from workbench.pipeline.stated import MOST_EPSILON, Interval, Stated
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.parametric import Basis, Parametric
from workbench.solvers.exact.polynomials import Root, sign_changes
from workbench.solvers.exact.regions import Region, given_region

VERSION = 1
_SHOWN = {"what", "variable", "pieces", "open"}
_ASIDE = {
    "solver",
    "options",
    "check",
    "certify",
    "progress",
    "epsilon",
    "delta",
}  # of no meaning for a formula
_HELD = "-0+"
_MAX_DEGREE = 2_000  # An end of a region whose polynomial has more coefficients is refused.
_MAX_END_BITS = (
    500_000  # So is one with more coefficients times bits of its longest number: seconds of work.
)
_MAX_END = 10**300  # An end above it has no logarithm in floats.
_FLOAT_TOLERANCE = 1e-14  # Floats of a file may differ from ours by so much, relative or absolute.


@dataclass(frozen=True)
class Question:
    """What is to be answered by a formula. request: that at some ε and δ; values: of the options that spell it; notion:
    the one that was named, or None; unit: what ε = 1 is, a budget for each difference where it is no number."""

    family: Family
    request: Callable[[Values], Any]
    values: Callable[[], Values]
    notion: Any = None
    unit: Any = ONE

    @property
    def budgets(self) -> str:
        """The budgets of differences at ε = 1, as their option spells them; "" where there is one for all."""
        if self.unit == 1:
            return ""
        budgets = self.request({"epsilon": self.unit}).claim.epsilon
        keys = [key if isinstance(key, tuple) else (key,) for key in budgets]
        parts = [
            f"{','.join(map(str, key))}={spelled(v)}"
            for key, v in zip(keys, budgets.values(), strict=True)
        ]
        return (";" if len(keys[0]) > 1 else ",").join(parts)

    def stated(self, deltas: Interval | None) -> tuple[Stated, Interval]:
        """The program, and the interval of δ: that of the request where none is given. Raises InvalidRequest."""
        point = {"delta": (deltas[0] + deltas[1]) / 2} if deltas is not None and deltas[1] else {}
        given = self.request({"epsilon": self.unit} | point)
        own = given.claim.delta or ZERO
        stated, budgets = given.stated(), self.budgets
        words = f"{stated.what}, budgets {budgets} times ε" if budgets else stated.what
        return replace(stated, what=words), (own, own) if deltas is None else deltas


@dataclass(frozen=True)
class Known:
    """epsilon: the interval to cover, None for all; delta: that of δ; regions: by rising x."""

    epsilon: Interval | None
    delta: Interval
    regions: tuple[Region, ...]


def x_bounds(limits: Interval | None, steps: int) -> tuple[Fraction, Fraction | None]:
    """Rationals around e^(ε/steps) of an interval of ε, or of all."""
    if limits is None:
        return ONE, None
    low, high = (exp_interval(epsilon / steps, 64) for epsilon in limits)
    return low[0], high[1]


# Written.


def record(question: Question, stated: Stated, known: Known) -> Record:
    """What a certificate holds beside the pieces. Raises InvalidRequest for a question that cannot be written down."""
    kind, options = question.family, Record()
    given = question.request({"epsilon": question.unit}).question
    values = {
        name: value for name, value in question.values().items() if not kind.option(name).question
    }
    values |= kind.question_options(given)
    for name, value in values.items():
        option = kind.option(name)
        if (
            not option.solver
            and name not in _ASIDE
            and value is not None
            and value != option.default
        ):
            options[name] = spell(value)
    if question.budgets:
        options["epsilon"] = question.budgets
    asked_for = {"family": kind.name, "options": options}
    again, own = _asked(asked_for).stated(known.delta)[0].program, stated.program
    if any(
        getattr(again, name) != getattr(own, name)
        for name in ("rows", "sides", "cost", "bounds", "offset")
    ):
        raise InvalidRequest(
            "The question cannot be written as options, so that no file can hold its proof."
        )
    return _PROOF.write(known, question=asked_for)


def _region(region: Region) -> Record:
    bases = [region.formulas[0].start.basis, *(formula.vertex.basis for formula in region.formulas)]
    signs = [
        ["".join(_HELD[at + 1] for at in part) for part in (basis.columns, basis.rows)]
        for basis in bases
    ]
    return _REGION.write(region, feasible=region.formulas[0].value is not None, bases=signs)


def _end(root: Root) -> Any:
    if root.low == root.high:
        return spelled(root.low)
    return [
        [str(int(value)) for value in root.polynomial.coeffs()],
        spelled(root.low),
        spelled(root.high),
    ]


# Read.


def from_dict(data: Any) -> Formula:
    """The formula of a file, proven again (`workbench.check`). Raises CorruptFile, caused by NotCertified for one that
    is false."""
    fields = take(data, _PROOF.what, {*_PROOF.fixed, *_PROOF.entries, *_SHOWN})
    proof = _PROOF.read({name: value for name, value in fields.items() if name not in _SHOWN})
    delta = proof["delta"]
    try:
        with (
            no_files()
        ):  # a certificate is self-contained: its options name no file of this machine
            stated, _ = _asked(proof["question"]).stated(delta)
        parts = [_proven(stated.program, entry, delta) for entry in proof["regions"]]
        gaps = _uncovered(parts, x_bounds(proof["epsilon"], stated.steps))
    except (NotCertified, NoRationalSolution) as error:
        raise CorruptFile(f"It is false: {error}") from NotCertified(str(error))
    except InvalidRequest as error:
        raise CorruptFile(f"Its question is none: {error}") from None
    formula = Formula(
        stated.what,
        pieces_of(stated, parts),
        stated.steps,
        tuple(epsilons(g, stated.steps) for g in gaps),
    )
    shown = formula.to_dict()
    if wrong := [name for name in sorted(_SHOWN) if not _agree(shown[name], fields[name])]:
        reason = f"what is proven is not what it shows as {wrong[0]}."
        raise CorruptFile(f"It is false: {reason}") from NotCertified(reason)
    return formula


def _asked(question: Record) -> Question:
    """The question of a file. Raises CorruptFile, InvalidRequest."""
    kind, options = family(question["family"]), {**question["options"]}
    unit = options.pop("epsilon", ONE)
    if not set(options) <= {option.name for option in kind.options if not option.solver} - _ASIDE:
        refuse("The options", f"those of the family {kind.name}")
    return Question(kind, lambda point: kind.spelled(**options, **point), dict, unit=unit)


def _interval(data: Any, what: str) -> Interval:
    low, high = numbers(_pair(data, what), what)
    if not 0 <= low <= high:
        refuse(what, "two numbers in order")
    return low, high


def _epsilons(data: Any, what: str) -> Interval:
    low, high = _interval(data, what)
    if high > MOST_EPSILON:
        refuse(what, f"two numbers of at most {MOST_EPSILON}")
    return low, high


def _pair(data: Any, what: str, length: int = 2) -> list[Any]:
    if len(listed(data, what)) != length:
        refuse(what, f"a list of {length}")
    return list(data)


def _root(data: Any) -> Root:
    """An end of a region. Raises CorruptFile."""
    if isinstance(data, str):
        end = ratio(data, "An end")
        if not 0 <= end <= _MAX_END:
            refuse("An end", f"a number in [0, {float(_MAX_END):g}]")
        return Root.rational(end)
    parts = _pair(data, "An end", 3)
    coefficients = numbers(parts[0], "coefficients")
    if any(value.denominator != 1 for value in coefficients):
        refuse("coefficients", "integers")
    low, high = numbers(parts[1:], "an end")
    bits = max((bits_of(value) for value in (*coefficients, low, high)), default=0)
    if len(coefficients) > _MAX_DEGREE or len(coefficients) * bits > _MAX_END_BITS:
        refuse("An end", "a zero of a polynomial of moderate size")
    polynomial = fmpz_poly([value.numerator for value in coefficients])
    if polynomial.degree() < 2 or polynomial.factor() != (1, [(polynomial, 1)]):
        refuse("An end", "a zero of an irreducible polynomial")
    if not 0 <= low < high <= _MAX_END or sign_changes(polynomial, low, high) != 1:
        refuse("An end", "the one zero of its polynomial between its numbers")
    return Root(polynomial, low, high)


def _proven(program: Parametric, fields: Record, delta: Interval) -> Region:
    """A region of a file, proven. Raises CorruptFile, NotCertified, NoRationalSolution."""
    low, high, sample = (fields[name] for name in ("low", "high", "sample"))
    if not low.below(sample) or (high is not None and not high.above(sample)):
        refuse("A sample", "within its region")
    if not fields["feasible"] and delta[0] < delta[1]:
        refuse("feasible", "true, or false where delta is given")
    used = program if fields["feasible"] else program.relaxed
    bases = [_basis(used, pair) for pair in listed(fields["bases"], "bases")]
    if len(bases) < 2:
        refuse("bases", "at least two")
    region = given_region(used, bases, sample, (low, high), delta, feasible=fields["feasible"])
    if any(
        a is not b and (a is None or b is None or a.against(b))
        for a, b in zip(region.ends, (low, high), strict=True)
    ):
        raise NotCertified(
            f"a condition of a basis changes its sign in the region around x = {float(sample):g}."
        )
    return region


def _basis(program: Parametric, data: Any) -> Basis:
    columns, rows = _pair(data, "A basis")
    parts = []
    for text, ends in ((columns, program.bounds), (rows, program.sides)):
        if not isinstance(text, str) or len(text) != len(ends) or not set(text) <= set(_HELD):
            refuse("A basis", "of as many signs as the program has columns and rows")
        held = tuple(_HELD.index(sign) - 1 for sign in text)
        if any(
            at and pair[at > 0] is None and (at > 0 or pair[1] is not None)
            for at, pair in zip(held, ends, strict=True)
        ):
            refuse("A basis", "one that holds columns and rows where they have an end")
        parts.append(held)
    return Basis(*parts)


def _uncovered(
    parts: Sequence[Region], limits: tuple[Fraction, Fraction | None]
) -> list[tuple[Root, Root | None]]:
    """What of an interval of x the regions leave. Raises NotCertified where they overlap."""
    gaps: list[tuple[Root, Root | None]] = []
    at: Root | None = Root.rational(limits[0])
    for region in parts:
        if at is None or (region.low.against(at) < 0 and region is not parts[0]):
            raise NotCertified("regions overlap.")
        if region.low.against(at) > 0:
            gaps.append((at, region.low))
        at = region.high
    if at is not None and (limits[1] is None or at.below(limits[1])):
        gaps.append((at, None if limits[1] is None else Root.rational(limits[1])))
    return gaps


def _agree(proven: Any, shown: Any) -> bool:
    """Whether two JSON values are the same, floats up to their last digits."""
    if isinstance(proven, dict) and isinstance(shown, dict):
        return proven.keys() == shown.keys() and all(
            _agree(proven[name], shown[name]) for name in proven
        )
    if isinstance(proven, (list, tuple)) and isinstance(shown, list):
        return len(proven) == len(shown) and all(map(_agree, proven, shown))
    if isinstance(proven, float) and isinstance(shown, float):
        same_sign = math.copysign(1, proven) == math.copysign(1, shown)
        return same_sign and math.isclose(
            proven, shown, rel_tol=_FLOAT_TOLERANCE, abs_tol=_FLOAT_TOLERANCE
        )
    return type(proven) is type(shown) and bool(proven == shown)


_END = Entry(_end, lambda data, what: _root(data))
_DELTAS = Entry(lambda ends: [*map(spelled, ends)], _interval)
_EPSILONS = Entry(lambda ends: [*map(spelled, ends)], _epsilons)
_REGION = RecordForm(
    "A region", low=_END, high=optional(_END), sample=RATIO, feasible=FLAG, bases=AS_IS
)
_QUESTION = RecordForm("The question", family=TEXT, options=OBJECT)
_PROOF = RecordForm(
    "The file of a formula",
    {"format": FORMULA, "version": VERSION},
    question=Entry(dict, lambda data, what: _QUESTION.read(data)),
    epsilon=optional(_EPSILONS),
    delta=_DELTAS,
    regions=many(Entry(_region, lambda data, what: _REGION.read(data))),
)
