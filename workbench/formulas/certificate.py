"""Write and read the certificate file of a formula: strict JSON that proves every piece.

`make_proof_record` writes the proof. `read_formula` reads a file and proves the formula again,
without a solver.

    {"what", "variable", "pieces", "open": ..,
     "format": "dp-workbench formula", "version": 1,
     "question": {"family": "channel", "options": {"answers": ["0", "1"], ..}},
     "epsilon": null | ["1/10", "4"], "delta": ["0", "1/5"],
     "regions": [{"low": END, "high": END | null, "sample": "3/2", "feasible": true,
                  "bases": [["0-+0..", "-0.."], ..]}, ..]}
    END: "2", or [["-1", "-1", "1"], "1/2", "9/4"], the one zero of a polynomial between two numbers

x is e^(ε/steps), where steps is the number of steps into which ε is divided. A region is an
interval of x. The first four entries are those of `Formula.to_dict`. The options are written as in
sweeps. "epsilon" and "delta" are the area that the regions must cover. A basis is a vertex of the
linear program: it says for each column, and then for each row, whether it is basic (0), at its
lower end (-) or at its upper end (+).

The proof: The family builds the program again from the options. The bases of every region give
formulas and conditions. Each condition must hold at the sample, and no condition may change its
sign up to the ends of the region. Each formula is then the optimum in its whole region. The regions
must cover the area except for the intervals listed as open. The pieces must be those of the file.
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
from workbench.pipeline.formula_program import MAX_FORMULA_EPSILON, FormulaProgram, Interval
from workbench.pipeline.option import to_json_value
from workbench.pipeline.registry import get_family
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.parametric import Basis, ParametricProgram
from workbench.solvers.exact.polynomials import Root, count_sign_changes
from workbench.solvers.exact.regions import Region, build_region

VERSION = 1  # The version of the file format.

# These entries show the formula; they are compared with the formula that is proven.
_DISPLAYED_KEYS = {"what", "variable", "pieces", "open"}
# These options do not change a formula.
_IGNORED_OPTIONS = {"solver", "options", "check", "certify", "progress", "epsilon", "delta"}
# The signs of the states -1 (at the lower end), 0 (basic) and 1 (at the upper end).
_BASIS_SIGNS = "-0+"
_MAX_COEFFICIENT_COUNT = 2_000  # An end whose polynomial has more coefficients is refused.
# An end with more coefficients times bits of its longest number is refused: it takes seconds.
_MAX_END_BITS = 500_000
_MAX_END = 10**300  # A larger end is refused, because its logarithm in floats would overflow.
# A file whose floats differ from ours by more than this, relative and absolute, is false.
_FLOAT_TOLERANCE = 1e-14
_EXP_BITS = 64  # e^ε is enclosed to this many bits.


@dataclass(frozen=True)
class FormulaQuestion:
    """A question whose optimum is to be found as a formula.

    Attributes:
        family: The family of the question.
        make_request: Function from {"epsilon": ..., "delta": ...} to the request.
        read_values: Function without arguments that returns the values of the options by name.
        notion: The name of the notion; None if the user named none.
        epsilon_unit: The budget at ε = 1. It is the number 1, or a budget for each difference.
    """

    family: Family
    make_request: Callable[[Values], Any]
    read_values: Callable[[], Values]
    notion: Any = None
    epsilon_unit: Any = ONE

    @property
    def unit_budgets_text(self) -> str:
        """Return the budgets of differences at ε = 1 as option text, such as "1=1,2=3/2".

        It is "" if all differences have the same budget.
        """
        if self.epsilon_unit == 1:
            return ""
        budgets = self.make_request({"epsilon": self.epsilon_unit}).claim.epsilon
        differences = [key if isinstance(key, tuple) else (key,) for key in budgets]
        texts = []
        for difference, budget in zip(differences, budgets.values(), strict=True):
            texts.append(f"{','.join(map(str, difference))}={format_fraction(budget)}")
        is_vector = len(differences[0]) > 1
        return (";" if is_vector else ",").join(texts)

    def state_program(self, deltas: Interval | None) -> tuple[FormulaProgram, Interval]:
        """Return the program of the question and the interval of δ.

        Args:
            deltas: The interval of δ. None: the returned interval has only the δ of the request.

        Raises:
            InvalidRequest: The question has no formula.
        """
        point: Record = {"epsilon": self.epsilon_unit}
        if deltas is not None:
            low, high = deltas
            if high:
                point["delta"] = (low + high) / 2
        request = self.make_request(point)
        program = request.formula_program()
        if self.unit_budgets_text:
            title = f"{program.title}, budgets {self.unit_budgets_text} times ε"
            program = replace(program, title=title)
        if deltas is None:
            delta = request.claim.delta or ZERO
            deltas = (delta, delta)
        return program, deltas


@dataclass(frozen=True)
class ProvenRegions:
    """The proven regions of a formula.

    Attributes:
        epsilon: The interval of ε to cover; None for all ε.
        delta: The interval of δ.
        regions: The regions by rising x.
    """

    epsilon: Interval | None
    delta: Interval
    regions: tuple[Region, ...]


def x_bounds(limits: Interval | None, steps: int) -> tuple[Fraction, Fraction | None]:
    """Return rationals that enclose x = e^(ε/steps) for an interval of ε.

    Args:
        limits: The interval of ε. None for all ε > 0.
        steps: The number of steps into which ε is divided.

    Returns:
        The lower and the upper bound of x. The upper bound is None for all ε > 0.
    """
    if limits is None:
        return ONE, None
    low_epsilon, high_epsilon = limits
    low, _ = exp_interval(low_epsilon / steps, _EXP_BITS)
    _, high = exp_interval(high_epsilon / steps, _EXP_BITS)
    return low, high


# Writing.


def make_proof_record(
    question: FormulaQuestion, program: FormulaProgram, proven_regions: ProvenRegions
) -> Record:
    """Return the entries of a certificate file that prove a formula.

    Args:
        question: The question whose optimum the formula is.
        program: The program of the question.
        proven_regions: The proven regions, and the area that they must cover.

    Raises:
        InvalidRequest: The question cannot be written as options.
    """
    question_record = {"family": question.family.name, "options": _list_options(question)}
    read_program, _ = _read_question(question_record).state_program(proven_regions.delta)
    for name in ("rows", "sides", "cost", "bounds", "offset"):
        if getattr(read_program.program, name) != getattr(program.program, name):
            raise InvalidRequest(
                "The question cannot be written as options, so no file can prove its formula. "
                "Save .tex, .py or .csv."
            )
    return _PROOF.write(proven_regions, question=question_record)


def _list_options(question: FormulaQuestion) -> Record:
    """Return the options of a question that differ from their defaults, as JSON values."""
    family = question.family
    request = question.make_request({"epsilon": question.epsilon_unit})
    values = {
        name: value
        for name, value in question.read_values().items()
        if not family.get_option(name).question
    }
    values |= family.question_to_options(request.question)
    options = Record()
    for name, value in values.items():
        option = family.get_option(name)
        is_default = value is None or value == option.default
        if not option.solver and name not in _IGNORED_OPTIONS and not is_default:
            options[name] = to_json_value(value)
    if question.unit_budgets_text:
        options["epsilon"] = question.unit_budgets_text
    return options


def _write_region(region: Region) -> Record:
    """Return the entries of a region."""
    # The first formula starts at a basis, and each formula leads to the next one.
    first_formula, *_ = region.formulas
    bases = [first_formula.start.basis]
    bases += [formula.vertex.basis for formula in region.formulas]
    signs = [[_write_signs(basis.columns), _write_signs(basis.rows)] for basis in bases]
    is_feasible = first_formula.value is not None
    return _REGION.write(region, feasible=is_feasible, bases=signs)


def _write_signs(states: Sequence[int]) -> str:
    """Write the states -1, 0, 1 of columns or rows as signs."""
    return "".join(_BASIS_SIGNS[state + 1] for state in states)


def _write_root(root: Root) -> Any:
    """Return the JSON value of an end of a region (END in the module header)."""
    if root.low == root.high:
        return format_fraction(root.low)
    coefficients = [str(int(value)) for value in root.polynomial.coeffs()]
    return [coefficients, format_fraction(root.low), format_fraction(root.high)]


# Reading.


def read_formula(data: Any) -> Formula:
    """Read the formula of a file and prove it again (`workbench.check`).

    Args:
        data: The JSON object of the file.

    Raises:
        CorruptFile: The file is malformed, or it is false (then caused by NotCertified).
    """
    keys = {*_PROOF.constants, *_PROOF.entries, *_DISPLAYED_KEYS}
    fields = take_entries(data, _PROOF.record_name, keys)
    proof_fields = {name: value for name, value in fields.items() if name not in _DISPLAYED_KEYS}
    proof = _PROOF.read(proof_fields)
    delta = proof["delta"]
    try:
        # A certificate is self-contained: its options must not name files of this machine.
        with forbid_file_access():
            program, _ = _read_question(proof["question"]).state_program(delta)
        regions = [_prove_region(program.program, entry, delta) for entry in proof["regions"]]
        gaps = _find_gaps(regions, x_bounds(proof["epsilon"], program.steps))
    except (NotCertified, NoRationalSolution) as error:
        raise CorruptFile(f"It is false: {error}") from NotCertified(str(error))
    except InvalidRequest as error:
        raise CorruptFile(f"Its question is invalid: {error}") from None
    formula = Formula(
        program.title,
        pieces=merge_regions(program, regions),
        steps=program.steps,
        unproven=tuple(to_epsilon_interval(gap, program.steps) for gap in gaps),
    )
    displayed_values = formula.to_dict()
    for name in sorted(_DISPLAYED_KEYS):
        if not _values_agree(displayed_values[name], fields[name]):
            reason = f"what is proven differs from its entry {name}."
            raise CorruptFile(f"It is false: {reason}") from NotCertified(reason)
    return formula


def _read_question(question: Record) -> FormulaQuestion:
    """Return the question of a file. Raises CorruptFile, InvalidRequest."""
    family = get_family(question["family"])
    options = {**question["options"]}
    epsilon_unit = options.pop("epsilon", ONE)
    allowed_keys = {
        option.name for option in family.options if not option.solver
    } - _IGNORED_OPTIONS
    if not set(options) <= allowed_keys:
        raise_corrupt_entry("The options", f"those of the family {family.name}")

    def make_request(point: Values) -> Any:
        """Make the family's request at one point, a dictionary of epsilon and delta."""
        return family.make_request_from_options(**options, **point)

    # The values of options are only read to write a question, which this one never is.
    return FormulaQuestion(family, make_request, read_values=dict, epsilon_unit=epsilon_unit)


def _read_interval(data: Any, entry_name: str) -> Interval:
    """Return an interval of numbers >= 0. Raises CorruptFile."""
    low, high = read_ratios(_read_list(data, entry_name), entry_name)
    if not 0 <= low <= high:
        raise_corrupt_entry(entry_name, "two numbers in order")
    return low, high


def _read_epsilon_interval(data: Any, entry_name: str) -> Interval:
    """Return an interval of ε. Raises CorruptFile."""
    low, high = _read_interval(data, entry_name)
    if high > MAX_FORMULA_EPSILON:
        raise_corrupt_entry(entry_name, f"two numbers of at most {MAX_FORMULA_EPSILON}")
    return low, high


def _read_list(data: Any, entry_name: str, length: int = 2) -> list[Any]:
    """Return a list of a fixed length. Raises CorruptFile."""
    if len(require_list(data, entry_name)) != length:
        raise_corrupt_entry(entry_name, f"a list of {length}")
    return list(data)


def _read_root(data: Any) -> Root:
    """Return an end of a region. Raises CorruptFile."""
    if isinstance(data, str):
        end = parse_ratio(data, "An end")
        if not 0 <= end <= _MAX_END:
            raise_corrupt_entry("An end", f"a number in [0, {float(_MAX_END):g}]")
        return Root.from_rational(end)
    coefficient_texts, *end_texts = _read_list(data, "An end", length=3)
    coefficients = read_ratios(coefficient_texts, "coefficients")
    if any(value.denominator != 1 for value in coefficients):
        raise_corrupt_entry("coefficients", "integers")
    low, high = read_ratios(end_texts, "an end")
    bits = max((count_bits(value) for value in (*coefficients, low, high)), default=0)
    is_too_long = len(coefficients) > _MAX_COEFFICIENT_COUNT
    if is_too_long or len(coefficients) * bits > _MAX_END_BITS:
        raise_corrupt_entry("An end", "a zero of a polynomial of moderate size")
    polynomial = fmpz_poly([value.numerator for value in coefficients])
    # Rational ends are written as texts, so the polynomial of another end has degree 2 or more.
    if polynomial.degree() < 2 or polynomial.factor() != (1, [(polynomial, 1)]):
        raise_corrupt_entry("An end", "a zero of an irreducible polynomial")
    if not 0 <= low < high <= _MAX_END or count_sign_changes(polynomial, low, high) != 1:
        raise_corrupt_entry("An end", "the one zero of its polynomial between its numbers")
    return Root(polynomial, low, high)


def _prove_region(program: ParametricProgram, fields: Record, delta: Interval) -> Region:
    """Return a region of a file after proving it.

    Raises CorruptFile, NotCertified, NoRationalSolution.
    """
    low = fields["low"]
    high = fields["high"]
    sample = fields["sample"]
    is_feasible = fields["feasible"]
    if not low.is_below(sample) or (high is not None and not high.is_above(sample)):
        raise_corrupt_entry("A sample", "within its region")
    low_delta, high_delta = delta
    if not is_feasible and low_delta < high_delta:
        raise_corrupt_entry("feasible", "true, or false where delta is one number")
    used_program = program if is_feasible else program.relaxation
    bases = [_read_basis(used_program, pair) for pair in require_list(fields["bases"], "bases")]
    if len(bases) < 2:  # A region has a formula, which leads from one basis to the next.
        raise_corrupt_entry("bases", "at least two")
    region = build_region(
        used_program, bases, x=sample, ends=(low, high), deltas=delta, feasible=is_feasible
    )
    for proven_end, end in zip(region.ends, (low, high), strict=True):
        if not _is_same_end(proven_end, end):
            raise NotCertified(
                f"a condition of a basis changes its sign in the region around "
                f"x = {float(sample):g}."
            )
    return region


def _is_same_end(first: Root | None, second: Root | None) -> bool:
    """Return whether two ends of a region are equal. None is an end at infinity."""
    if first is second:
        return True
    if first is None or second is None:
        return False
    return first.compare(second) == 0


def _read_basis(program: ParametricProgram, data: Any) -> Basis:
    """Return a basis of a program. Raises CorruptFile."""
    columns, rows = _read_list(data, "A basis")
    column_states = _read_states(columns, program.bounds)
    row_states = _read_states(rows, program.sides)
    return Basis(column_states, row_states)


def _read_states(text: Any, ends: Sequence[Any]) -> tuple[int, ...]:
    """Return the states -1, 0, 1 of columns or rows. Raises CorruptFile.

    text: one sign for each column or row; ends: its lower and its upper end, None for no end.
    """
    is_text = isinstance(text, str) and len(text) == len(ends)
    if not is_text or not set(text) <= set(_BASIS_SIGNS):
        raise_corrupt_entry("A basis", "of as many signs as the program has columns and rows")
    states = tuple(_BASIS_SIGNS.index(sign) - 1 for sign in text)
    for state, (lower, upper) in zip(states, ends, strict=True):
        # A column without any end that is not basic is written as being at its lower end.
        has_no_end = (state > 0 and upper is None) or (
            state < 0 and lower is None and upper is not None
        )
        if has_no_end:
            raise_corrupt_entry("A basis", "one whose columns and rows are only at ends that exist")
    return states


def _find_gaps(
    regions: Sequence[Region], limits: tuple[Fraction, Fraction | None]
) -> list[tuple[Root, Root | None]]:
    """Return the intervals of x that the regions do not cover. Raises NotCertified if they overlap.

    regions: by rising x; limits: the interval of x to cover, None for no upper limit.
    """
    low, high = limits
    gaps: list[tuple[Root, Root | None]] = []
    # The first region may start below the interval.
    covered_end: Root | None = Root.from_rational(low)  # None: everything above is covered.
    for region in regions:
        is_first = region is regions[0]
        if covered_end is None or (region.low.compare(covered_end) < 0 and not is_first):
            raise NotCertified("regions overlap.")
        if region.low.compare(covered_end) > 0:
            gaps.append((covered_end, region.low))
        covered_end = region.high
    if covered_end is not None and (high is None or covered_end.is_below(high)):
        gaps.append((covered_end, None if high is None else Root.from_rational(high)))
    return gaps


def _values_agree(proven_values: Any, displayed_values: Any) -> bool:
    """Return whether two JSON values are equal, floats up to their last digits."""
    if isinstance(proven_values, dict) and isinstance(displayed_values, dict):
        if proven_values.keys() != displayed_values.keys():
            return False
        return all(
            _values_agree(proven_values[name], displayed_values[name]) for name in proven_values
        )
    if isinstance(proven_values, (list, tuple)) and isinstance(displayed_values, list):
        return len(proven_values) == len(displayed_values) and all(
            map(_values_agree, proven_values, displayed_values)
        )
    if isinstance(proven_values, float) and isinstance(displayed_values, float):
        has_same_sign = math.copysign(1, proven_values) == math.copysign(1, displayed_values)
        return has_same_sign and math.isclose(
            proven_values, displayed_values, rel_tol=_FLOAT_TOLERANCE, abs_tol=_FLOAT_TOLERANCE
        )
    return type(proven_values) is type(displayed_values) and bool(proven_values == displayed_values)


def _write_interval(ends: Interval) -> list[str]:
    """Return the JSON value of an interval."""
    return [format_fraction(end) for end in ends]


_END = Entry(_write_root, read=lambda data, entry_name: _read_root(data))
_DELTAS = Entry(_write_interval, _read_interval)
_EPSILONS = Entry(_write_interval, _read_epsilon_interval)
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
    question=Entry(dict, read=lambda data, entry_name: _QUESTION.read(data)),
    epsilon=make_optional_entry(_EPSILONS),
    delta=_DELTAS,
    regions=make_list_entry(Entry(_write_region, read=lambda data, entry_name: _REGION.read(data))),
)
