"""Define the options of families: reader, default and help, and the readers that options share.

A value is the text of a command line, a TOML value of a sweep, or a Python object. One reader
converts all of them to one exact value (a Fraction, an int, a text, or a tuple of these) or raises
InvalidRequest. `to_json_value` writes such a value as canonical JSON, which is the key of answers
in the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

from workbench.data.labels import LabelledTuple
from workbench.data.plain import is_integer, read_integer_text, read_list
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import (
    Rationals,
    nearest_float,
    read_number,
    read_positive,
    read_probability,
)
from workbench.exact.objects import Record, Strings, Values
from workbench.io.files import format_fraction

# Takes a value as it was given and the name of its option. Returns the exact value.
Reader = Callable[[Any, str], Any]
# A command line, a call of `workbench.design`, or a file of a sweep.
Place = Literal["command", "python", "sweep"]
EVERYWHERE: frozenset[Place] = frozenset(("command", "python", "sweep"))
PYTHON_ONLY: frozenset[Place] = frozenset(("python",))
# More processes, or more threads of a solver, are refused.
MAX_WORKERS = 1024
# Larger numbers are refused, because programs need them as doubles.
_MAX_NUMBER = 10**300
# A budget and its reciprocal are at most this, so that the square of either is a double.
_MAX_BUDGET_PARAMETER = 10**100
# Rényi orders α are at most this, and 1/(α - 1) is at most this.
_MAX_RENYI_ORDER = 10**9
# Common names of losses that have another name here.
_LOSS_BY_ALIAS = {
    "mse": "squared",
    "l2": "squared",
    "mae": "absolute",
    "l1": "absolute",
    "0-1": "error-rate",
}


@dataclass(frozen=True)
class Option:
    """One option of a family.

    Attributes:
        name: Name in Python, in sweeps and in keys.
        read: Function of a value and the name that returns the exact value, or raises
            InvalidRequest.
        default: Exact default value. None if the option may be left out.
        help: One line of help.
        required: Whether the option must be given.
        hot: Whether a session that has solved one value can continue with another value, without
            a new program (hot start). The last hot option of a family varies fastest.
        solver: Whether it is an option of the solver.
        question: Whether it describes the question, and is an argument of its class in Python.
        kind: Type on a command line: str, int, float, bool, Path or list.
        command: Name on a command line. None: the name.
        places: Where it can be given.
    """

    name: str
    read: Reader
    default: Any = None
    help: str = ""
    required: bool = False
    hot: bool = False
    solver: bool = False
    question: bool = False
    kind: type = str
    command: str | None = None
    places: frozenset[Place] = EVERYWHERE

    @property
    def python_help(self) -> str:
        """Return the help for Python, which names other options without dashes."""
        return re.sub(r"--([a-z][a-z-]*)", lambda match: match[1].replace("-", "_"), self.help)

    def read_value(self, value: Any) -> Any:
        """Return the exact value of the option.

        Args:
            value: A value as it was given. None is accepted only if the option may be left out.

        Raises:
            InvalidRequest: The value is invalid.
        """
        if self.name == "loss" and isinstance(value, str) and value.lower() == "rmse":
            rule = "squared, whose root is the RMSE (max_loss is then its square)"
            must("loss", rule, repr(value))
        if self.name == "loss" and isinstance(value, str) and value in _LOSS_BY_ALIAS:
            must("loss", f"{_LOSS_BY_ALIAS[value]}, the name of this loss here", repr(value))
        if value is None and self.default is None and not self.required:
            return None
        return self.read(value, self.name)


def suggest_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that a misspelt name may stand for.

    Args:
        name: The unknown name.
        names: All names that exist. Those that begin with `name` are preferred to similar ones.
    """
    candidates = list(names)
    completions = [candidate for candidate in candidates if candidate.startswith(name)]
    return completions or get_close_matches(name, candidates)


def read_options(
    options: Iterable[Option], given: Values, what: str = "request", *, exact_defaults: bool = False
) -> Record:
    """Return the exact value of every option.

    Args:
        options: The options.
        given: Values by name. Missing options get their default.
        what: Name of the whole in error messages, such as "request".
        exact_defaults: Whether defaults are already exact. Otherwise they are texts to be read.

    Raises:
        InvalidRequest: A value is invalid, a required option is missing, or a name is unknown.
    """
    options_by_name = {option.name: option for option in options}
    unknown_name = next((name for name in given if name not in options_by_name), None)
    if unknown_name is not None:
        suggestions = suggest_names(unknown_name, options_by_name)
        if suggestions:
            question = f"did you mean {' or '.join(suggestions)}?"
            raise InvalidRequest(f"No such option {unknown_name}; {question}")
        must(what, f"made of {', '.join(options_by_name)}", unknown_name)
    values = {}
    for name, value in given.items():
        option = options_by_name[name]
        if option.kind is int and isinstance(value, str):
            value = read_integer_text(value)
        values[name] = option.read_value(value)
    for name, option in options_by_name.items():
        if values.get(name) is not None or (exact_defaults and name in values):
            continue
        if option.required:
            raise InvalidRequest(f"{name} must be given. Got none.")
        values[name] = option.default
        if not exact_defaults:
            values[name] = option.read_value(option.default)
    return values


def to_json_value(value: Any) -> Any:
    """Return an exact value as canonical JSON: equal values give equal JSON.

    Args:
        value: A Fraction becomes its shortest text, a tuple becomes a list, and an object is
            replaced by its `to_dict()`.

    Raises:
        InvalidRequest: The value cannot be written. An example is a function.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Fraction):
        return format_fraction(value)
    if isinstance(value, Mapping):
        texts = {}
        for key, item in value.items():
            text = ",".join(map(str, key)) if isinstance(key, tuple) else str(key)
            texts[text] = to_json_value(item)
        return texts
    if isinstance(value, (tuple, list)):
        return [to_json_value(part) for part in value]
    if not hasattr(value, "to_dict"):
        must("a value that is filed", "a name, numbers or a file's content", repr(value))
    return to_json_value(value.to_dict())


# The readers of options. Each takes a value and the name of its option, and returns the exact value
# or raises InvalidRequest.


def choice_reader(*choices: str, more_choices: Callable[[], Iterable[str]] = tuple) -> Reader:
    """Return a reader that accepts one of some texts.

    Args:
        choices: Texts that are accepted.
        more_choices: Function that returns further texts. It is called when a value is read.
    """

    def read(value: Any, name: str) -> str:
        """Return the text if it is a choice. Raises InvalidRequest."""
        if not isinstance(value, str) or value not in chain(choices, more_choices()):
            InvalidRequest.check_choice((*choices, *more_choices()), name, value)
        return str(value)

    return read


def read_flag(value: Any, name: str) -> bool:
    """Read True or False.

    Args:
        value: A bool.
        name: Name of the option.
    """
    if not isinstance(value, bool):
        must(name, "true or false", repr(value))
    return value


def integer_reader(minimum: int, maximum: int) -> Reader:
    """Return a reader that accepts an integer.

    Args:
        minimum: Smallest integer accepted.
        maximum: Largest integer accepted.
    """

    def read(value: Any, name: str) -> int:
        """Return the integer if it is within the limits. Raises InvalidRequest."""
        if not is_integer(value) or not minimum <= int(value) <= maximum:
            if isinstance(value, str):
                value = repr(value)
            must(name, f"an integer in {minimum}..{maximum}", value)
        return int(value)

    return read


def read_integer(value: Any, name: str) -> int:
    """Read an integer of any size.

    Args:
        value: An integer or its text.
        name: Name of the option.
    """
    try:
        if isinstance(value, str) or is_integer(value):
            return int(value)
    except ValueError:
        pass
    return must(name, "integers", repr(value))


def read_plain_text(value: Any, name: str) -> str:
    """Read a text that is not empty.

    Args:
        value: A string.
        name: Name of the option.
    """
    if not isinstance(value, str) or not value.strip():
        must(name, "a string", repr(value))
    return value.strip()


def list_reader(read: Reader, separator: str = ",") -> Callable[[Any, str], tuple[Any, ...]]:
    """Return a reader that accepts a sequence, an array, or a text such as "1,2,3".

    Args:
        read: Reader of one item.
        separator: What separates the items of a text.
    """

    def reader(value: Any, name: str) -> tuple[Any, ...]:
        """Split a text, or take the items of a sequence, and read each. Raises InvalidRequest."""
        is_array = hasattr(value, "tolist") or hasattr(value, "to_numpy")
        if isinstance(value, str):
            text = value.strip()
            value = text.removesuffix(separator).split(separator) if text else []
        elif not isinstance(value, (list, tuple)) and is_array:
            value = read_list(value, name, column=True)
        if not isinstance(value, (list, tuple)) or not value:
            must(name, f'a list such as "1{separator}2{separator}3"', repr(value))
        return tuple(read(part, name) for part in value)

    return reader


def read_probabilities(
    value: Any, name: str, constraint: str = "a list of probabilities, one for every answer"
) -> Rationals:
    """Read a list of probabilities.

    Args:
        value: A list, or a CSV file of probabilities, with or without a column of answers.
        name: Name of the option.
        constraint: What the value must be, for errors.
    """
    from workbench.data.points import list_labelled_cells

    cells = list_labelled_cells(value, name, constraint)
    return LabelledTuple.with_labels_of(cells, list_reader(read_probability)(cells, name))


def _constraint_names() -> Iterable[str]:
    """Return the names of the constraints of channels."""
    from workbench.models.channel.program import CONSTRAINTS

    return CONSTRAINTS


def read_constraints(value: Any, name: str) -> Strings:
    """Read the names of constraints of a channel.

    Args:
        value: A list of names, a text with commas, or None.
        name: Name of the option.
    """
    if value is None:
        return ()
    names = value
    if not isinstance(value, str):
        names = read_list(value, name, "a list of names of constraints")
    if not names:
        return ()
    return list_reader(choice_reader(more_choices=_constraint_names))(names, name)


def check_epsilon_range(
    epsilon: Fraction, minimum: Fraction, maximum: int, suffix: str = ""
) -> None:
    """Raise InvalidRequest if an ε is not in an interval.

    Args:
        epsilon: The ε.
        minimum: Smallest ε accepted.
        maximum: Largest ε accepted.
        suffix: Text after the limits in the message.
    """
    if minimum <= epsilon <= maximum:
        return
    got = f"{nearest_float(epsilon):g}"
    # A longer fraction could not be read in an error.
    if epsilon.denominator < 10**9:
        got = format_fraction(epsilon)
    must("epsilon", f"between {float(minimum):g} and {maximum}{suffix}", got)


def accept_anything(value: Any, name: str) -> Any:
    """Return the value, which the request checks later.

    Args:
        value: Any value.
        name: Name of the option.
    """
    return value


def read_seconds(value: Any, name: str) -> Fraction:
    """Read a time limit.

    Args:
        value: A number of seconds > 0.
        name: Name of the option.
    """
    rule = "a finite number of seconds > 0"
    limit = read_number(value, name, rule)
    if not 0 < limit < _MAX_NUMBER:
        must(name, rule, repr(value))
    return limit


def read_solver_label(value: Any, name: str) -> str:
    """Read the label of a solver that the workbench supports. It need not be installed.

    Args:
        value: A string.
        name: Name of the option.
    """
    from workbench.pipeline.outcome import translate_errors

    if not isinstance(value, str):
        must(name, "the name of a solver", repr(value))
    with translate_errors():
        from workbench.solvers.backend import get_backend

        return get_backend(value.strip()).label


def read_progress(value: Any, name: str) -> Any:
    """Read a function that reports progress.

    Args:
        value: A function of one line of text.
        name: Name of the option.
    """
    if not callable(value):
        must(name, "a function of one line of text", repr(value))
    return value


def read_nonnegative(value: Any, name: str) -> Fraction:
    """Read a number >= 0 that a double can represent.

    Args:
        value: A number or its text.
        name: Name of the option.
    """
    number = read_positive(value, name, or_zero=True)
    if number >= _MAX_NUMBER:
        must(name, "a finite number >= 0", value)
    return number


def read_budget_parameter(value: Any, name: str) -> Fraction:
    """Read a budget between 1e-100 and 1e100, whose square is a double > 0.

    Args:
        value: A number or its text.
        name: Name of the option.
    """
    number = read_positive(value, name)
    if not Fraction(1, _MAX_BUDGET_PARAMETER) <= number <= _MAX_BUDGET_PARAMETER:
        must(name, f"between 1e-100 and {float(_MAX_BUDGET_PARAMETER):g}", value)
    return number


def read_renyi_order(value: Any, name: str) -> Fraction:
    """Read the order of a Rényi divergence.

    The notion checks that the order exceeds 1. This reader refuses orders whose cone has a power
    that rounding would change.

    Args:
        value: A number or its text.
        name: Name of the option.
    """
    number = read_number(value, name)
    is_in_range = Fraction(1, _MAX_RENYI_ORDER) <= number - 1 <= _MAX_RENYI_ORDER
    if number > 1 and not is_in_range:
        must(name, f"between 1 + 1e-9 and {float(_MAX_RENYI_ORDER):g}", value)
    return number


# Options that several families have.

SOLVER = Option(
    "solver",
    read_solver_label,
    default="highs",
    help="Solver, named as in `workbench doctor`.",
)
TIME_LIMIT = Option(
    "time_limit", read_seconds, help="Time limit in seconds.", kind=float, solver=True
)
MINIMISE = Option(
    "minimise",
    choice_reader("loss", "delta", "epsilon"),
    default="loss",
    help="Quantity to minimise: loss, or else delta or epsilon subject to --max-loss.",
)
MAX_LOSS = Option(
    "max_loss",
    read_number,
    help="Largest expected loss allowed, for --minimise delta or epsilon.",
    hot=True,
)
# The budgets of notions other than ε and δ.
NOTION_PARAMETERS = (
    Option("alpha", read_renyi_order, help="Rényi order > 1, for --notion renyi."),
    Option("rho", read_budget_parameter, help="ρ > 0 of the budget, for --notion zcdp."),
    Option("mu", read_budget_parameter, help="μ > 0 of the budget, for --notion gdp."),
    Option(
        "curve",
        accept_anything,
        help='Pairs ε:δ that must all hold, for --notion curve: "0.5:0.1,1:0.01".',
    ),
    Option(
        "tradeoff",
        accept_anything,
        help='Points α:β of the trade-off curve, for --notion tradeoff: "0:1,0.2:0.5,1:0".',
    ),
)


def make_check_option(*checks: str) -> Option:
    """Make the option of a sweep that selects the check of every answer.

    Args:
        checks: Names of the checks.
    """
    return Option(
        "check",
        choice_reader(*checks),
        default="audit",
        help=f"Check of every answer: {', '.join(checks)}.",
        places=frozenset(("sweep",)),
    )


# This is the check in Python. A command line has --raw instead.
CERTIFY = Option(
    "certify",
    read_flag,
    default=True,
    help="True: return a certified mechanism. False: return the solver's mechanism.",
    kind=bool,
    places=PYTHON_ONLY,
)


def read_solver_options(value: Any, name: str) -> Record:
    """Read the options of the solver.

    Args:
        value: A mapping, or a `workbench.solvers.backend.Options`.
        name: Name of the option.

    Returns:
        The options that are set.

    Raises:
        InvalidRequest: An option is unknown or invalid.
    """
    if not isinstance(value, Mapping):
        from workbench.solvers.backend import Options

        if not isinstance(value, Options):
            rule = "a mapping of the solver's options, or a workbench.solvers.backend.Options"
            must(name, rule, repr(value))
        options = value
        value = options.list_set_options() | {"threads": options.threads}
        if options.native:
            value |= {"native": options.native}
    unknown_name = next((key for key in value if key not in SOLVER_OPTIONS), None)
    if unknown_name is not None:
        must(name, f"a mapping of {', '.join(SOLVER_OPTIONS)}", repr(unknown_name))
    exact_values = {}
    for key, item in value.items():
        exact_values[key] = None if item is None else SOLVER_OPTIONS[key](item, key)
    return exact_values


def _read_tolerance(value: Any, name: str) -> float:
    """Read a tolerance > 0."""
    return float(read_budget_parameter(value, name))


def _read_native_options(value: Any, name: str) -> Mapping[str, Any]:
    """Read options under the names that the solver uses."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        must(name, "a mapping of options under the solver's own names", repr(value))
    return dict(value)


# The readers of the fields of `workbench.solvers.backend.Options`.
SOLVER_OPTIONS: dict[str, Reader] = {
    "time_limit": lambda value, name: float(read_seconds(value, name)),
    "gap": lambda value, name: float(read_nonnegative(value, name)),
    "node_limit": integer_reader(minimum=0, maximum=10**9),
    "iteration_limit": integer_reader(minimum=0, maximum=10**9),
    "threads": integer_reader(minimum=1, maximum=MAX_WORKERS),
    "seed": integer_reader(minimum=0, maximum=2**31 - 1),
    "feasibility_tolerance": _read_tolerance,
    "dual_feasibility_tolerance": _read_tolerance,
    "integrality_tolerance": _read_tolerance,
    "presolve": read_flag,
    "algorithm": choice_reader("simplex", "interior-point"),
    "native": _read_native_options,
}
OPTIONS = Option(
    "options",
    read_solver_options,
    help="Further solver options, a mapping such as {'threads': 2}. Also accepted by name.",
    places=PYTHON_ONLY,
)
PROGRESS = Option(
    "progress",
    read_progress,
    help="Function that is called with a line of text from time to time.",
    places=PYTHON_ONLY,
)
SOLVING = (make_check_option("audit", "certify"), CERTIFY, SOLVER, TIME_LIMIT, OPTIONS)
RUNS = Option(
    "runs",
    integer_reader(minimum=1, maximum=1024),
    default=1,
    help="Number of runs that share the budget, for --notion dp.",
    kind=int,
)
