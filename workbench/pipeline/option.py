"""One option of a family, declared once: its reader, its default, its help; and the readers that options share.

A value arrives as the text of a command line, as a TOML value of a sweep, or as a Python object. One reader takes all
of them to one exact value (a Fraction, an int, a word, a tuple of these), or refuses it as InvalidRequest. `spell`
writes such a value as canonical JSON: what a sweep files its answers under.
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

Reader = Callable[[Any, str], Any]
Place = Literal["command", "python", "sweep"]
EVERYWHERE: frozenset[Place] = frozenset(("command", "python", "sweep"))
_MAX_NUMBER = 10**300
_LOSS_BY_ALIAS = {
    "mse": "squared",
    "l2": "squared",
    "mae": "absolute",
    "l1": "absolute",
    "0-1": "error-rate",
}
_LARGEST_PARAMETER, _LARGEST_ORDER = 10**100, 10**9
PYTHON_ONLY: frozenset[Place] = frozenset(("python",))


@dataclass(frozen=True)
class Option:
    """One option of a family.

    name: in Python, in sweeps and in keys. read: (value, name) -> its exact value, or InvalidRequest. default: an exact
    value; None where it may be left out. help: one line.
    required: it may not be left out. hot: a live session follows it from point to point; of several the last one in a
    family's table varies fastest. solver: it is handed to the solver. question: it spells the question, and is an
    argument of the question's class in Python.
    kind, command: what a command line takes it as (str, int, float, bool, Path, list), and under which name if not
    --name. places: where it can be given.
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
        """Its help as Python says it: other options without the dashes of a command line."""
        return re.sub(r"--([a-z][a-z-]*)", lambda match: match[1].replace("-", "_"), self.help)

    def read_value(self, value: Any) -> Any:
        """The exact value; None is one only of an option that may be left out. Raises InvalidRequest."""
        if self.name == "loss" and isinstance(value, str) and value.lower() == "rmse":
            must(
                "loss", "squared, whose root is the RMSE (max_loss is then its square)", repr(value)
            )
        if self.name == "loss" and isinstance(value, str) and value in _LOSS_BY_ALIAS:
            must("loss", f"{_LOSS_BY_ALIAS[value]}, which is what it is called here", repr(value))
        return (
            None
            if value is None and self.default is None and not self.required
            else self.read(value, self.name)
        )


def suggest_names(word: str, known: Iterable[str]) -> list[str]:
    """What of the known words may be meant: those that a word begins, else those like it."""
    words = list(known)
    return [each for each in words if each.startswith(word)] or get_close_matches(word, words)


def read_options(
    options: Iterable[Option], given: Values, what: str = "request", *, exact_defaults: bool = False
) -> Record:
    """The exact value of every option, its default where it is not given. Raises InvalidRequest.

    what: they make up; exact_defaults: whether defaults are exact values, and not read like what is given.
    """
    named = {option.name: option for option in options}
    if foreign := next((name for name in given if name not in named), None):
        near = suggest_names(foreign, named)
        if near:
            raise InvalidRequest(f"No such option {foreign}; did you mean {' or '.join(near)}?")
        must(what, f"made of {', '.join(named)}", foreign)
    values = {}
    for name, value in given.items():
        is_text_of_integer = named[name].kind is int and isinstance(value, str)
        values[name] = named[name].read_value(
            read_integer_text(value) if is_text_of_integer else value
        )
    for name, option in named.items():
        if name not in values if exact_defaults else values.get(name) is None:
            if option.required:
                raise InvalidRequest(f"{name} must be given. Got none.")
            values[name] = option.default if exact_defaults else option.read_value(option.default)
    return values


def to_json_value(value: Any) -> Any:
    """An exact value as canonical JSON: a Fraction as the shortest text that spells it, a tuple as a list.

    Raises InvalidRequest for what cannot be written down, such as a function.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Fraction):
        return format_fraction(value)
    if isinstance(value, Mapping):
        return {
            ",".join(map(str, key)) if isinstance(key, tuple) else str(key): to_json_value(v)
            for key, v in value.items()
        }
    if isinstance(value, (tuple, list)):
        return [to_json_value(part) for part in value]
    if not hasattr(value, "to_dict"):
        must("a value that is filed", "a name, numbers or a file's content", repr(value))
    return to_json_value(value.to_dict())


# Readers.


def choice_reader(*words: str, more_choices: Callable[[], Iterable[str]] = tuple) -> Reader:
    """One of some words; more: those that are known only where it is read."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in chain(words, more_choices()):
            InvalidRequest.check_choice((*words, *more_choices()), name, value)
        return str(value)

    return read


def read_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        must(name, "true or false", repr(value))
    return value


def integer_reader(least: int, most: int) -> Reader:
    """An integer in least..most."""

    def read(value: Any, name: str) -> int:
        if not is_integer(value) or not least <= int(value) <= most:
            got = repr(value) if isinstance(value, str) else value
            must(name, f"an integer in {least}..{most}", got)
        return int(value)

    return read


def read_integer(value: Any, name: str) -> int:
    """An integer, or the text of one."""
    try:
        if isinstance(value, str) or is_integer(value):
            return int(value)
    except ValueError:
        pass
    return must(name, "integers", repr(value))


def read_plain_text(value: Any, name: str) -> str:
    """A string that says something."""
    if not isinstance(value, str) or not value.strip():
        must(name, "a string", repr(value))
    return value.strip()


def list_reader(read: Reader, separator: str = ",") -> Callable[[Any, str], tuple[Any, ...]]:
    """A sequence, or one string "1,2,3"."""

    def reader(value: Any, name: str) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = value.strip().removesuffix(separator).split(separator) if value.strip() else []
        elif not isinstance(value, (list, tuple)) and (
            hasattr(value, "tolist") or hasattr(value, "to_numpy")
        ):
            value = read_list(value, name, column=True)
        if not isinstance(value, (list, tuple)) or not value:
            must(name, f'a list such as "1{separator}2{separator}3"', repr(value))
        return tuple(read(part, name) for part in value)

    return reader


def read_probabilities(
    value: Any, name: str, wanted: str = "a list of probabilities, one for every answer"
) -> Rationals:
    """A list of probabilities, or a CSV file of them or of answers and them."""
    from workbench.data.points import list_labelled_cells

    cells = list_labelled_cells(value, name, wanted)
    return LabelledTuple.with_labels_of(cells, list_reader(read_probability)(cells, name))


def _constraint_names() -> Iterable[str]:
    from workbench.models.channel.program import CONSTRAINTS

    return CONSTRAINTS


def read_constraints(value: Any, name: str) -> Strings:
    """Names of constraints of a channel, or none."""
    if value is None:
        return ()
    names = (
        value
        if isinstance(value, str)
        else read_list(value, name, "a list of names of constraints")
    )
    return list_reader(choice_reader(more_choices=_constraint_names))(names, name) if names else ()


def check_epsilon_range(epsilon: Fraction, least: Fraction, most: int, more: str = "") -> None:
    """Raise InvalidRequest for an ε that is not between two. more: words after them."""
    if not least <= epsilon <= most:
        got = (
            format_fraction(epsilon)
            if epsilon.denominator < 10**9
            else f"{nearest_float(epsilon):g}"
        )
        must("epsilon", f"between {float(least):g} and {most}{more}", got)


def accept_anything(value: Any, name: str) -> Any:
    """Whatever it is; the request checks it."""
    return value


def read_seconds(value: Any, name: str) -> Fraction:
    """A time limit."""
    wanted = "a finite number of seconds > 0"
    limit = read_number(value, name, wanted)
    if not 0 < limit < _MAX_NUMBER:
        must(name, wanted, repr(value))
    return limit


def read_solver_label(value: Any, name: str) -> str:
    """The label of a solver this workbench knows; it need not be installed."""
    from workbench.pipeline.outcome import translate_errors

    if not isinstance(value, str):
        must(name, "the name of a solver", repr(value))
    with translate_errors():
        from workbench.solvers.backend import get_backend

        return get_backend(value.strip()).label


def read_progress(value: Any, name: str) -> Any:
    """A function of one line."""
    if not callable(value):
        must(name, "a function of one line of text", repr(value))
    return value


def read_nonnegative(value: Any, name: str) -> Fraction:
    """A number >= 0 that is one in floating point too."""
    number = read_positive(value, name, or_zero=True)
    return number if number < _MAX_NUMBER else must(name, "a finite number >= 0", value)


def read_budget_parameter(value: Any, name: str) -> Fraction:
    """A budget > 0 that is a number > 0 in floating point too, squared as well."""
    number = read_positive(value, name)
    if not Fraction(1, _LARGEST_PARAMETER) <= number <= _LARGEST_PARAMETER:
        must(name, f"between 1e-100 and {float(_LARGEST_PARAMETER):g}", value)
    return number


def read_renyi_order(value: Any, name: str) -> Fraction:
    """An order of a Rényi divergence: the notion says that it is > 1, a cone's power that it is more than rounding."""
    number = read_number(value, name)
    if not Fraction(1, _LARGEST_ORDER) <= number - 1 <= _LARGEST_ORDER and number > 1:
        must(name, f"1 + 1e-9 at least and {float(_LARGEST_ORDER):g} at most", value)
    return number


# Options that several families have.

SOLVER = Option("solver", read_solver_label, "highs", "A name from `workbench doctor`.")
TIME_LIMIT = Option("time_limit", read_seconds, help="Seconds.", kind=float, solver=True)
MINIMISE = Option(
    "minimise",
    choice_reader("loss", "delta", "epsilon"),
    "loss",
    "loss; delta or epsilon for a --max-loss.",
)
MAX_LOSS = Option(
    "max_loss",
    read_number,
    help="Largest loss allowed, where delta or epsilon is minimised.",
    hot=True,
)
NOTION_PARAMETERS = (  # budgets other than ε and δ
    Option("alpha", read_renyi_order, help="renyi: the order > 1."),
    Option("rho", read_budget_parameter, help="zcdp: the budget > 0."),
    Option("mu", read_budget_parameter, help="gdp: the budget > 0."),
    Option("curve", accept_anything, help='curve: "0.5:0.1,1:0.01", each epsilon with its delta.'),
    Option(
        "tradeoff", accept_anything, help='tradeoff: points alpha:beta of a trade-off function, "0:1,0.1:0.6,0.4:0.2,1:0".',
    ),
)  # fmt: skip


def make_check_option(*checks: str) -> Option:
    """What a sweep has done with each answer."""
    words = "What is done with an answer: " + ", ".join(checks)
    return Option(
        "check", choice_reader(*checks), "audit", f"{words}.", places=frozenset(("sweep",))
    )


CERTIFY = Option(  # the same in Python; a command line has --raw
    "certify", read_flag, True, "True: a mechanism proven private, with its certificate; False: the solver's own.",
    kind=bool, places=PYTHON_ONLY,
)  # fmt: skip


def read_solver_options(value: Any, name: str) -> Record:
    """The solver's options that are set, of a mapping or a `workbench.solvers.backend.Options`. Raises
    InvalidRequest."""
    if not isinstance(value, Mapping):
        from workbench.solvers.backend import Options

        if not isinstance(value, Options):
            must(
                name,
                "a mapping of the solver's options, or a workbench.solvers.backend.Options",
                repr(value),
            )
        value = (
            value.list_set_options()
            | {"threads": value.threads}
            | ({"native": value.native} if value.native else {})
        )
    if foreign := next((each for each in value if each not in SOLVER_OPTIONS), None):
        must(name, f"a mapping of {', '.join(SOLVER_OPTIONS)}", repr(foreign))
    return {
        each: None if given is None else SOLVER_OPTIONS[each](given, each)
        for each, given in value.items()
    }


def _read_tolerance(value: Any, name: str) -> float:
    return float(read_budget_parameter(value, name))


def _read_native_options(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value):
        must(name, "a mapping of options under the solver's own names", repr(value))
    return dict(value)


SOLVER_OPTIONS: dict[str, Reader] = {  # of `workbench.solvers.backend.Options`
    "time_limit": lambda value, name: float(read_seconds(value, name)),
    "gap": lambda value, name: float(read_nonnegative(value, name)),
    "node_limit": integer_reader(0, 10**9),
    "iteration_limit": integer_reader(0, 10**9),
    "threads": integer_reader(1, 1024),
    "seed": integer_reader(0, 2**31 - 1),
    "feasibility_tolerance": _read_tolerance,
    "dual_feasibility_tolerance": _read_tolerance,
    "integrality_tolerance": _read_tolerance,
    "presolve": read_flag,
    "algorithm": choice_reader("simplex", "interior-point"),
    "native": _read_native_options,
}
OPTIONS = Option(
    "options", read_solver_options, help="More options of the solver, a mapping such as {'threads': 2}; also by name.",
    places=PYTHON_ONLY,
)  # fmt: skip
PROGRESS = Option("progress", read_progress, help="Told a line now and then.", places=PYTHON_ONLY)
SOLVING = (make_check_option("audit", "certify"), CERTIFY, SOLVER, TIME_LIMIT, OPTIONS)
RUNS = Option(
    "runs", integer_reader(1, 1024), 1, "With notion dp: for how many runs the budget is.", kind=int
)
