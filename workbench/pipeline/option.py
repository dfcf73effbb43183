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
from workbench.data.plain import is_whole, plain_list, spelled_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import Rationals, exact, nearest_float, positive, probability
from workbench.exact.objects import Record, Values, Words
from workbench.io.files import spelled

Reader = Callable[[Any, str], Any]
Place = Literal["command", "python", "sweep"]
EVERYWHERE: frozenset[Place] = frozenset(("command", "python", "sweep"))
_HUGE = 10**300
_LOSSES = {
    "mse": "squared",
    "l2": "squared",
    "mae": "absolute",
    "l1": "absolute",
    "0-1": "error-rate",
}
_LARGEST_PARAMETER, _LARGEST_ORDER = 10**100, 10**9
PYTHON: frozenset[Place] = frozenset(("python",))


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
    def meaning(self) -> str:
        """Its help as Python says it: other options without the dashes of a command line."""
        return re.sub(r"--([a-z][a-z-]*)", lambda match: match[1].replace("-", "_"), self.help)

    def of(self, value: Any) -> Any:
        """The exact value; None is one only of an option that may be left out. Raises InvalidRequest."""
        if self.name == "loss" and isinstance(value, str) and value.lower() == "rmse":
            must(
                "loss", "squared, whose root is the RMSE (max_loss is then its square)", repr(value)
            )
        if self.name == "loss" and isinstance(value, str) and value in _LOSSES:
            must("loss", f"{_LOSSES[value]}, which is what it is called here", repr(value))
        return (
            None
            if value is None and self.default is None and not self.required
            else self.read(value, self.name)
        )


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """What of the known words may be meant: those that a word begins, else those like it."""
    words = list(known)
    return [each for each in words if each.startswith(word)] or get_close_matches(word, words)


def read(
    options: Iterable[Option], given: Values, what: str = "request", *, exact_defaults: bool = False
) -> Record:
    """The exact value of every option, its default where it is not given. Raises InvalidRequest.

    what: they make up; exact_defaults: whether defaults are exact values, and not read like what is given.
    """
    named = {option.name: option for option in options}
    if foreign := next((name for name in given if name not in named), None):
        near = nearest(foreign, named)
        if near:
            raise InvalidRequest(f"No such option {foreign}; did you mean {' or '.join(near)}?")
        must(what, f"made of {', '.join(named)}", foreign)
    values = {}
    for name, value in given.items():
        is_text_of_integer = named[name].kind is int and isinstance(value, str)
        values[name] = named[name].of(spelled_integer(value) if is_text_of_integer else value)
    for name, option in named.items():
        if name not in values if exact_defaults else values.get(name) is None:
            if option.required:
                raise InvalidRequest(f"{name} must be given. Got none.")
            values[name] = option.default if exact_defaults else option.of(option.default)
    return values


def spell(value: Any) -> Any:
    """An exact value as canonical JSON: a Fraction as the shortest text that spells it, a tuple as a list.

    Raises InvalidRequest for what cannot be written down, such as a function.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Fraction):
        return spelled(value)
    if isinstance(value, Mapping):
        return {
            ",".join(map(str, key)) if isinstance(key, tuple) else str(key): spell(v)
            for key, v in value.items()
        }
    if isinstance(value, (tuple, list)):
        return [spell(part) for part in value]
    if not hasattr(value, "to_dict"):
        must("a value that is filed", "a name, numbers or a file's content", repr(value))
    return spell(value.to_dict())


# Readers.


def one_of(*words: str, more: Callable[[], Iterable[str]] = tuple) -> Reader:
    """One of some words; more: those that are known only where it is read."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in chain(words, more()):
            InvalidRequest.unless_among((*words, *more()), name, value)
        return str(value)

    return read


def flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        must(name, "true or false", repr(value))
    return value


def count(least: int, most: int) -> Reader:
    """An integer in least..most."""

    def read(value: Any, name: str) -> int:
        if not is_whole(value) or not least <= int(value) <= most:
            got = repr(value) if isinstance(value, str) else value
            must(name, f"an integer in {least}..{most}", got)
        return int(value)

    return read


def integers(value: Any, name: str) -> int:
    """An integer, or the text of one."""
    try:
        if isinstance(value, str) or is_whole(value):
            return int(value)
    except ValueError:
        pass
    return must(name, "integers", repr(value))


def text(value: Any, name: str) -> str:
    """A string that says something."""
    if not isinstance(value, str) or not value.strip():
        must(name, "a string", repr(value))
    return value.strip()


def listed(read: Reader, separator: str = ",") -> Callable[[Any, str], tuple[Any, ...]]:
    """A sequence, or one string "1,2,3"."""

    def reader(value: Any, name: str) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = value.strip().removesuffix(separator).split(separator) if value.strip() else []
        elif not isinstance(value, (list, tuple)) and (
            hasattr(value, "tolist") or hasattr(value, "to_numpy")
        ):
            value = plain_list(value, name, column=True)
        if not isinstance(value, (list, tuple)) or not value:
            must(name, f'a list such as "1{separator}2{separator}3"', repr(value))
        return tuple(read(part, name) for part in value)

    return reader


def probabilities(
    value: Any, name: str, wanted: str = "a list of probabilities, one for every answer"
) -> Rationals:
    """A list of probabilities, or a CSV file of them or of answers and them."""
    from workbench.data.points import labelled_cells

    cells = labelled_cells(value, name, wanted)
    return LabelledTuple.under(cells, listed(probability)(cells, name))


def _constraint_names() -> Iterable[str]:
    from workbench.models.channel.program import CONSTRAINTS

    return CONSTRAINTS


def constraints(value: Any, name: str) -> Words:
    """Names of constraints of a channel, or none."""
    if value is None:
        return ()
    names = (
        value
        if isinstance(value, str)
        else plain_list(value, name, "a list of names of constraints")
    )
    return listed(one_of(more=_constraint_names))(names, name) if names else ()


def within(epsilon: Fraction, least: Fraction, most: int, more: str = "") -> None:
    """Raise InvalidRequest for an ε that is not between two. more: words after them."""
    if not least <= epsilon <= most:
        got = spelled(epsilon) if epsilon.denominator < 10**9 else f"{nearest_float(epsilon):g}"
        must("epsilon", f"between {float(least):g} and {most}{more}", got)


def anything(value: Any, name: str) -> Any:
    """Whatever it is; the request checks it."""
    return value


def seconds(value: Any, name: str) -> Fraction:
    """A time limit."""
    wanted = "a finite number of seconds > 0"
    limit = exact(value, name, wanted)
    if not 0 < limit < _HUGE:
        must(name, wanted, repr(value))
    return limit


def solver(value: Any, name: str) -> str:
    """The label of a solver this workbench knows; it need not be installed."""
    from workbench.pipeline.outcome import translated_errors

    if not isinstance(value, str):
        must(name, "the name of a solver", repr(value))
    with translated_errors():
        from workbench.solvers.backend import backend

        return backend(value.strip()).label


def progress(value: Any, name: str) -> Any:
    """A function of one line."""
    if not callable(value):
        must(name, "a function of one line of text", repr(value))
    return value


def or_zero(value: Any, name: str) -> Fraction:
    """A number >= 0 that is one in floating point too."""
    number = positive(value, name, or_zero=True)
    return number if number < _HUGE else must(name, "a finite number >= 0", value)


def parameter(value: Any, name: str) -> Fraction:
    """A budget > 0 that is a number > 0 in floating point too, squared as well."""
    number = positive(value, name)
    if not Fraction(1, _LARGEST_PARAMETER) <= number <= _LARGEST_PARAMETER:
        must(name, f"between 1e-100 and {float(_LARGEST_PARAMETER):g}", value)
    return number


def order(value: Any, name: str) -> Fraction:
    """An order of a Rényi divergence: the notion says that it is > 1, a cone's power that it is more than rounding."""
    number = exact(value, name)
    if not Fraction(1, _LARGEST_ORDER) <= number - 1 <= _LARGEST_ORDER and number > 1:
        must(name, f"1 + 1e-9 at least and {float(_LARGEST_ORDER):g} at most", value)
    return number


# Options that several families have.

SOLVER = Option("solver", solver, "highs", "A name from `workbench doctor`.")
TIME_LIMIT = Option("time_limit", seconds, help="Seconds.", kind=float, solver=True)
MINIMISE = Option(
    "minimise",
    one_of("loss", "delta", "epsilon"),
    "loss",
    "loss; delta or epsilon for a --max-loss.",
)
MAX_LOSS = Option(
    "max_loss", exact, help="Largest loss allowed, where delta or epsilon is minimised.", hot=True
)
NOTION_PARAMETERS = (  # budgets other than ε and δ
    Option("alpha", order, help="renyi: the order > 1."),
    Option("rho", parameter, help="zcdp: the budget > 0."),
    Option("mu", parameter, help="gdp: the budget > 0."),
    Option("curve", anything, help='curve: "0.5:0.1,1:0.01", each epsilon with its delta.'),
    Option(
        "tradeoff", anything, help='tradeoff: points alpha:beta of a trade-off function, "0:1,0.1:0.6,0.4:0.2,1:0".',
    ),
)  # fmt: skip


def check_option(*checks: str) -> Option:
    """What a sweep has done with each answer."""
    words = "What is done with an answer: " + ", ".join(checks)
    return Option("check", one_of(*checks), "audit", f"{words}.", places=frozenset(("sweep",)))


CERTIFY = Option(  # the same in Python; a command line has --raw
    "certify", flag, True, "True: a mechanism proven private, with its certificate; False: the solver's own.",
    kind=bool, places=PYTHON,
)  # fmt: skip


def solver_options(value: Any, name: str) -> Record:
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
            value.given()
            | {"threads": value.threads}
            | ({"native": value.native} if value.native else {})
        )
    if foreign := next((each for each in value if each not in SOLVER_OPTIONS), None):
        must(name, f"a mapping of {', '.join(SOLVER_OPTIONS)}", repr(foreign))
    return {
        each: None if given is None else SOLVER_OPTIONS[each](given, each)
        for each, given in value.items()
    }


def _above_zero(value: Any, name: str) -> float:
    return float(parameter(value, name))


def _native(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in value):
        must(name, "a mapping of options under the solver's own names", repr(value))
    return dict(value)


SOLVER_OPTIONS: dict[str, Reader] = {  # of `workbench.solvers.backend.Options`
    "time_limit": lambda value, name: float(seconds(value, name)),
    "gap": lambda value, name: float(or_zero(value, name)),
    "node_limit": count(0, 10**9),
    "iteration_limit": count(0, 10**9),
    "threads": count(1, 1024),
    "seed": count(0, 2**31 - 1),
    "feasibility_tolerance": _above_zero,
    "dual_feasibility_tolerance": _above_zero,
    "integrality_tolerance": _above_zero,
    "presolve": flag,
    "algorithm": one_of("simplex", "interior-point"),
    "native": _native,
}
OPTIONS = Option(
    "options", solver_options, help="More options of the solver, a mapping such as {'threads': 2}; also by name.",
    places=PYTHON,
)  # fmt: skip
PROGRESS = Option("progress", progress, help="Told a line now and then.", places=PYTHON)
SOLVING = (check_option("audit", "certify"), CERTIFY, SOLVER, TIME_LIMIT, OPTIONS)
RUNS = Option(
    "runs", count(1, 1024), 1, "With notion dp: for how many runs the budget is.", kind=int
)
