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
from workbench.exact.numbers import ONE, ZERO, count_bits, exp_interval
from workbench.exact.objects import Record, Values
from workbench.formulas.formula_object import Formula
from workbench.formulas.pieces import merge_regions, to_epsilon_interval
from workbench.io.files import forbid_file_access, format_fraction, parse_ratio
from workbench.io.records import (
    FLAG,
    FORMULA_FORMAT,
    OBJECT,
    RATIO,
    TEXT,
    UNCHANGED,
    Entry,
    RecordForm,
    make_list_entry,
    make_optional_entry,
    raise_corrupt_entry,
    read_ratios,
    require_list,
    take_entries,
)
from workbench.pipeline.family import Family
from workbench.pipeline.option import to_json_value
from workbench.pipeline.registry import get_family
from workbench.pipeline.stated import MAX_FORMULA_EPSILON, FormulaProgram, Interval
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.parametric import Basis, ParametricProgram
from workbench.solvers.exact.polynomials import Root, count_sign_changes
from workbench.solvers.exact.regions import Region, build_region

VERSION = 1
_DISPLAYED_KEYS = {"what", "variable", "pieces", "open"}
_IGNORED_OPTIONS = {
    "solver",
    "options",
    "check",
    "certify",
    "progress",
    "epsilon",
    "delta",
}  # of no meaning for a formula
_BASIS_SIGNS = "-0+"
_MAX_COEFFICIENT_COUNT = (
    2_000  # An end of a region whose polynomial has more coefficients is refused.
)
_MAX_END_BITS = (
    500_000  # So is one with more coefficients times bits of its longest number: seconds of work.
)
_MAX_END = 10**300  # An end above it has no logarithm in floats.
_FLOAT_TOLERANCE = 1e-14  # Floats of a file may differ from ours by so much, relative or absolute.


@dataclass(frozen=True)
class FormulaQuestion:
    """What is to be answered by a formula. request: that at some ε and δ; values: of the options that spell it; notion:
    the one that was named, or None; unit: what ε = 1 is, a budget for each difference where it is no number."""

    family: Family
    make_request: Callable[[Values], Any]
    read_values: Callable[[], Values]
    notion: Any = None
    epsilon_unit: Any = ONE

    @property
    def unit_budgets_text(self) -> str:
        """The budgets of differences at ε = 1, as their option spells them; "" where there is one for all."""
        if self.epsilon_unit == 1:
            return ""
        budgets = self.make_request({"epsilon": self.epsilon_unit}).claim.epsilon
        keys = [key if isinstance(key, tuple) else (key,) for key in budgets]
        parts = [
            f"{','.join(map(str, key))}={format_fraction(v)}"
            for key, v in zip(keys, budgets.values(), strict=True)
        ]
        return (";" if len(keys[0]) > 1 else ",").join(parts)

    def state_program(self, deltas: Interval | None) -> tuple[FormulaProgram, Interval]:
        """The program, and the interval of δ: that of the request where none is given. Raises InvalidRequest."""
        point = {"delta": (deltas[0] + deltas[1]) / 2} if deltas is not None and deltas[1] else {}
        given = self.make_request({"epsilon": self.epsilon_unit} | point)
        own = given.claim.delta or ZERO
        stated, budgets = given.formula_program(), self.unit_budgets_text
        words = f"{stated.title}, budgets {budgets} times ε" if budgets else stated.title
        return replace(stated, title=words), (own, own) if deltas is None else deltas


@dataclass(frozen=True)
class ProvenRegions:
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


def make_proof_record(
    question: FormulaQuestion, stated: FormulaProgram, known: ProvenRegions
) -> Record:
    """What a certificate holds beside the pieces. Raises InvalidRequest for a question that cannot be written down."""
    kind, options = question.family, Record()
    given = question.make_request({"epsilon": question.epsilon_unit}).question
    values = {
        name: value
        for name, value in question.read_values().items()
        if not kind.get_option(name).question
    }
    values |= kind.question_to_options(given)
    for name, value in values.items():
        option = kind.get_option(name)
        if (
            not option.solver
            and name not in _IGNORED_OPTIONS
            and value is not None
            and value != option.default
        ):
            options[name] = to_json_value(value)
    if question.unit_budgets_text:
        options["epsilon"] = question.unit_budgets_text
    asked_for = {"family": kind.name, "options": options}
    again, own = _read_question(asked_for).state_program(known.delta)[0].program, stated.program
    if any(
        getattr(again, name) != getattr(own, name)
        for name in ("rows", "sides", "cost", "bounds", "offset")
    ):
        raise InvalidRequest(
            "The question cannot be written as options, so that no file can hold its proof."
        )
    return _PROOF.write(known, question=asked_for)


def _write_region(region: Region) -> Record:
    bases = [region.formulas[0].start.basis, *(formula.vertex.basis for formula in region.formulas)]
    signs = [
        ["".join(_BASIS_SIGNS[at + 1] for at in part) for part in (basis.columns, basis.rows)]
        for basis in bases
    ]
    return _REGION.write(region, feasible=region.formulas[0].value is not None, bases=signs)


def _write_root(root: Root) -> Any:
    if root.low == root.high:
        return format_fraction(root.low)
    return [
        [str(int(value)) for value in root.polynomial.coeffs()],
        format_fraction(root.low),
        format_fraction(root.high),
    ]


# Read.


def read_formula(data: Any) -> Formula:
    """The formula of a file, proven again (`workbench.check`). Raises CorruptFile, caused by NotCertified for one that
    is false."""
    fields = take_entries(
        data, _PROOF.record_name, {*_PROOF.constants, *_PROOF.entries, *_DISPLAYED_KEYS}
    )
    proof = _PROOF.read(
        {name: value for name, value in fields.items() if name not in _DISPLAYED_KEYS}
    )
    delta = proof["delta"]
    try:
        with (
            forbid_file_access()
        ):  # a certificate is self-contained: its options name no file of this machine
            stated, _ = _read_question(proof["question"]).state_program(delta)
        parts = [_prove_region(stated.program, entry, delta) for entry in proof["regions"]]
        gaps = _find_gaps(parts, x_bounds(proof["epsilon"], stated.steps))
    except (NotCertified, NoRationalSolution) as error:
        raise CorruptFile(f"It is false: {error}") from NotCertified(str(error))
    except InvalidRequest as error:
        raise CorruptFile(f"Its question is none: {error}") from None
    formula = Formula(
        stated.title,
        merge_regions(stated, parts),
        stated.steps,
        tuple(to_epsilon_interval(g, stated.steps) for g in gaps),
    )
    shown = formula.to_dict()
    if wrong := [
        name for name in sorted(_DISPLAYED_KEYS) if not _values_agree(shown[name], fields[name])
    ]:
        reason = f"what is proven is not what it shows as {wrong[0]}."
        raise CorruptFile(f"It is false: {reason}") from NotCertified(reason)
    return formula


def _read_question(question: Record) -> FormulaQuestion:
    """The question of a file. Raises CorruptFile, InvalidRequest."""
    kind, options = get_family(question["family"]), {**question["options"]}
    unit = options.pop("epsilon", ONE)
    if (
        not set(options)
        <= {option.name for option in kind.options if not option.solver} - _IGNORED_OPTIONS
    ):
        raise_corrupt_entry("The options", f"those of the family {kind.name}")
    return FormulaQuestion(
        kind,
        lambda point: kind.make_request_from_options(**options, **point),
        dict,
        epsilon_unit=unit,
    )


def _read_interval(data: Any, what: str) -> Interval:
    low, high = read_ratios(_read_list(data, what), what)
    if not 0 <= low <= high:
        raise_corrupt_entry(what, "two numbers in order")
    return low, high


def _read_epsilon_interval(data: Any, what: str) -> Interval:
    low, high = _read_interval(data, what)
    if high > MAX_FORMULA_EPSILON:
        raise_corrupt_entry(what, f"two numbers of at most {MAX_FORMULA_EPSILON}")
    return low, high


def _read_list(data: Any, what: str, length: int = 2) -> list[Any]:
    if len(require_list(data, what)) != length:
        raise_corrupt_entry(what, f"a list of {length}")
    return list(data)


def _read_root(data: Any) -> Root:
    """An end of a region. Raises CorruptFile."""
    if isinstance(data, str):
        end = parse_ratio(data, "An end")
        if not 0 <= end <= _MAX_END:
            raise_corrupt_entry("An end", f"a number in [0, {float(_MAX_END):g}]")
        return Root.from_rational(end)
    parts = _read_list(data, "An end", 3)
    coefficients = read_ratios(parts[0], "coefficients")
    if any(value.denominator != 1 for value in coefficients):
        raise_corrupt_entry("coefficients", "integers")
    low, high = read_ratios(parts[1:], "an end")
    bits = max((count_bits(value) for value in (*coefficients, low, high)), default=0)
    if len(coefficients) > _MAX_COEFFICIENT_COUNT or len(coefficients) * bits > _MAX_END_BITS:
        raise_corrupt_entry("An end", "a zero of a polynomial of moderate size")
    polynomial = fmpz_poly([value.numerator for value in coefficients])
    if polynomial.degree() < 2 or polynomial.factor() != (1, [(polynomial, 1)]):
        raise_corrupt_entry("An end", "a zero of an irreducible polynomial")
    if not 0 <= low < high <= _MAX_END or count_sign_changes(polynomial, low, high) != 1:
        raise_corrupt_entry("An end", "the one zero of its polynomial between its numbers")
    return Root(polynomial, low, high)


def _prove_region(program: ParametricProgram, fields: Record, delta: Interval) -> Region:
    """A region of a file, proven. Raises CorruptFile, NotCertified, NoRationalSolution."""
    low, high, sample = (fields[name] for name in ("low", "high", "sample"))
    if not low.is_below(sample) or (high is not None and not high.is_above(sample)):
        raise_corrupt_entry("A sample", "within its region")
    if not fields["feasible"] and delta[0] < delta[1]:
        raise_corrupt_entry("feasible", "true, or false where delta is given")
    used = program if fields["feasible"] else program.relaxation
    bases = [_read_basis(used, pair) for pair in require_list(fields["bases"], "bases")]
    if len(bases) < 2:
        raise_corrupt_entry("bases", "at least two")
    region = build_region(used, bases, sample, (low, high), delta, feasible=fields["feasible"])
    if any(
        a is not b and (a is None or b is None or a.compare(b))
        for a, b in zip(region.ends, (low, high), strict=True)
    ):
        raise NotCertified(
            f"a condition of a basis changes its sign in the region around x = {float(sample):g}."
        )
    return region


def _read_basis(program: ParametricProgram, data: Any) -> Basis:
    columns, rows = _read_list(data, "A basis")
    parts = []
    for text, ends in ((columns, program.bounds), (rows, program.sides)):
        if (
            not isinstance(text, str)
            or len(text) != len(ends)
            or not set(text) <= set(_BASIS_SIGNS)
        ):
            raise_corrupt_entry("A basis", "of as many signs as the program has columns and rows")
        held = tuple(_BASIS_SIGNS.index(sign) - 1 for sign in text)
        if any(
            at and pair[at > 0] is None and (at > 0 or pair[1] is not None)
            for at, pair in zip(held, ends, strict=True)
        ):
            raise_corrupt_entry("A basis", "one that holds columns and rows where they have an end")
        parts.append(held)
    return Basis(*parts)


def _find_gaps(
    parts: Sequence[Region], limits: tuple[Fraction, Fraction | None]
) -> list[tuple[Root, Root | None]]:
    """What of an interval of x the regions leave. Raises NotCertified where they overlap."""
    gaps: list[tuple[Root, Root | None]] = []
    at: Root | None = Root.from_rational(limits[0])
    for region in parts:
        if at is None or (region.low.compare(at) < 0 and region is not parts[0]):
            raise NotCertified("regions overlap.")
        if region.low.compare(at) > 0:
            gaps.append((at, region.low))
        at = region.high
    if at is not None and (limits[1] is None or at.is_below(limits[1])):
        gaps.append((at, None if limits[1] is None else Root.from_rational(limits[1])))
    return gaps


def _values_agree(proven: Any, shown: Any) -> bool:
    """Whether two JSON values are the same, floats up to their last digits."""
    if isinstance(proven, dict) and isinstance(shown, dict):
        return proven.keys() == shown.keys() and all(
            _values_agree(proven[name], shown[name]) for name in proven
        )
    if isinstance(proven, (list, tuple)) and isinstance(shown, list):
        return len(proven) == len(shown) and all(map(_values_agree, proven, shown))
    if isinstance(proven, float) and isinstance(shown, float):
        same_sign = math.copysign(1, proven) == math.copysign(1, shown)
        return same_sign and math.isclose(
            proven, shown, rel_tol=_FLOAT_TOLERANCE, abs_tol=_FLOAT_TOLERANCE
        )
    return type(proven) is type(shown) and bool(proven == shown)


_END = Entry(_write_root, lambda data, what: _read_root(data))
_DELTAS = Entry(lambda ends: [*map(format_fraction, ends)], _read_interval)
_EPSILONS = Entry(lambda ends: [*map(format_fraction, ends)], _read_epsilon_interval)
_REGION = RecordForm(
    "A region",
    low=_END,
    high=make_optional_entry(_END),
    sample=RATIO,
    feasible=FLAG,
    bases=UNCHANGED,
)
_QUESTION = RecordForm("The question", family=TEXT, options=OBJECT)
_PROOF = RecordForm(
    "The file of a formula",
    {"format": FORMULA_FORMAT, "version": VERSION},
    question=Entry(dict, lambda data, what: _QUESTION.read(data)),
    epsilon=make_optional_entry(_EPSILONS),
    delta=_DELTAS,
    regions=make_list_entry(Entry(_write_region, lambda data, what: _REGION.read(data))),
)
