"""What is asked in texts: the options of a family as a page or a command line gives them.

A text becomes an exact value by its option's own reader, and nowhere else. Readers that would open a file are refused
it (`workbench.io.files.no_files`), except for those texts that the owner of the process gave on the command line.
"""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.families.base import Family
from workbench.families.option import Option, spell
from workbench.families.registry import families
from workbench.io.files import no_files, spelled

__all__ = [
    "Given",
    "command_line",
    "exact_values",
    "from_words",
    "listing",
    "option_range",
    "python_call",
    "suggestions",
    "texts_of",
]

Given = Mapping[str, Any]  # option -> text, bool, or list of texts
_LONGEST = 20_000  # characters of a text
_WORDS = re.compile(r"must be one of (.*?)\. Got ")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORD = re.compile(r"[\w:.-]+")


def known(kind: Family) -> list[Option]:
    """The options that a page offers: those of a command line."""
    return kind.given_in("command")


def listing() -> list[dict[str, Any]]:
    """Every family with its options and examples, JSON-ready; loads neither models nor solvers."""
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "summary": kind.summary,
            "certifies": kind.certifies,
            "options": [_listed(option) for option in known(kind)],
            "first": _first(kind),
        }
        for kind in families()
    ]


def _first(kind: Family) -> Given:
    """What a page begins with: the first example that gives what a slider is for, else the first of all."""
    examples = [given for _, given in _examples(kind)]
    return next((given for given in examples if kind.hot and kind.hot[-1] in given), next(iter(examples), {}))


def _listed(option: Option) -> dict[str, Any]:
    kind = "flag" if option.kind is bool else "list" if option.kind is list else "text"
    shown = option.default if kind == "flag" else _text(option.default)
    return {
        "name": option.name,
        "flag": option.command or option.name,
        "help": option.help,
        "kind": kind,
        "default": shown,
        "required": option.required,
        "question": option.question,
        "hot": option.hot,
        "minor": option.solver or option.name == "solver",
        "range": option_range(option) if option.hot else None,
    }


def _text(value: Any) -> str:
    spelled = spell(value)
    return "" if spelled is None else ",".join(map(str, spelled)) if isinstance(spelled, list) else str(spelled)


def _refusal(option: Option, value: Any) -> str | None:
    """What the reader of an option says against a value, None where it takes it."""
    try:
        with no_files():
            option.of(value)
    except Exception as error:  # a reader of another package may raise anything
        return str(error)
    return None


def suggestions(kind: Family) -> dict[str, Any]:
    """The words that options take, and the examples that need no file; to know them loads models and solvers."""
    words = {option.name: choices for option in known(kind) if (choices := _words(option))}
    examples = []
    for text, given in _examples(kind):
        with contextlib.suppress(WorkbenchError):  # one that reads a file
            exact_values(kind, given)
            examples.append({"title": text.removeprefix(f"design {kind.name} "), "given": given})
    return {"words": words, "examples": examples}


def _words(option: Option) -> list[str]:
    """The words of one option, as its reader lists them when it refuses another."""
    match = _WORDS.search(_refusal(option, "?") or "") if option.kind in (str, list) and not option.hot else None
    return [word for word in re.split(r",? or |, ", match[1]) if _WORD.fullmatch(word)] if match else []


def option_range(option: Option) -> dict[str, Any] | None:
    """The range of a slider for a number: [0, 1] for a share, else a scale of positive numbers."""
    if _refusal(option, Fraction(1, 2)) is not None:
        return None
    if _refusal(option, Fraction(2)) is not None:
        return {"scale": "share", "low": 0.0, "high": 1.0}
    return {"scale": "log", "low": 0.05, "high": 10.0}


def _examples(kind: Family) -> Iterable[tuple[str, Given]]:
    """The family's example commands that design, with the texts of their options."""
    for text in kind.examples:
        words = shlex.split(text)
        if words[:2] == ["design", kind.name]:
            yield text, from_words(kind, words[2:], ignore=("json", "plot", "save", "html", "raw"))


def from_words(kind: Family, words: Sequence[str], ignore: Collection[str] = ()) -> dict[str, Any]:
    """The texts of a command line: --n 8 --epsilon=1.5 --directed. ignore: names of the command's own options.

    Raises InvalidRequest for what is no option of the family.
    """
    named = {(option.command or option.name).replace("_", "-"): option for option in known(kind)}
    options: dict[str, Any] = {}
    rest = list(words)
    while rest:
        flag, equals, text = rest.pop(0).partition("=")
        name = flag.removeprefix("--")
        negated = name.startswith("no-") and name.removeprefix("no-") in named
        option = named.get(name.removeprefix("no-") if negated else name)
        if flag.startswith("--") and name in ignore:
            if rest and not rest[0].startswith("--"):
                rest.pop(0)
            continue
        if not flag.startswith("--") or option is None:
            wanted = f"an option of {kind.name} (--{', --'.join(named)})"
            InvalidRequest.must("argument", wanted, repr(flag))
        if option.kind is bool:
            options[option.name] = not negated
            continue
        if not equals and not rest:
            raise InvalidRequest(f"{flag} must have a value. Got none.")
        value = text if equals else rest.pop(0)
        options[option.name] = [*options.get(option.name, []), value] if option.kind is list else value
    return options


def texts_of(kind: Family, options: Mapping[str, Any]) -> dict[str, Any]:
    """The texts of options that Python gives, as a page holds them. Raises InvalidRequest."""
    named = {option.name: option for option in known(kind)}
    texts: dict[str, Any] = {}
    for name, value in options.items():
        option = named.get(name) or InvalidRequest.must("option", f"one of {', '.join(named)}", repr(name))
        if value is None or isinstance(value, (bool, str)):
            texts |= {} if value is None else {name: value}
            continue
        exact, same = option.of(value), False
        with contextlib.suppress(InvalidRequest, TypeError):  # what has no text, or another one
            texts[name] = _text(exact)
            same = option.of(_typed(option, texts[name])) == exact
        if not same:
            InvalidRequest.must(name, "a text, as the command line takes it", repr(value))
    return texts


def exact_values(kind: Family, given: Any, files: Collection[tuple[str, str, Any]] = ()) -> dict[str, Any]:
    """The exact value of every option. files: (family, option, text) whose texts may name a file.

    Raises InvalidRequest, for an unknown option as well.
    """
    if not isinstance(given, Mapping):
        InvalidRequest.must("request", "options with their texts", type(given).__name__)
    named = {option.name: option for option in known(kind)}
    trusted, others = {}, {}
    for name, value in given.items():
        if name not in named:
            InvalidRequest.must("option", f"one of {', '.join(named)}", repr(name))
        option = named[name]
        if value in ("", None, []):
            continue
        typed = _typed(option, value)
        if isinstance(value, str) and (kind.name, name, value) in files:
            trusted[name] = option.of(Path(value) if option.kind is Path else typed)
        else:
            others[name] = typed
    with no_files():
        return kind.read(trusted | others, "command")


def _typed(option: Option, value: Any) -> Any:
    """A text of a page as the command line would hand it to the option's reader."""
    texts = value if isinstance(value, list) else [value]
    allowed = bool if option.kind is bool else str
    if any(not isinstance(text, (str, allowed)) or len(str(text)) > _LONGEST for text in texts):
        InvalidRequest.must(option.name, f"a text of at most {_LONGEST} characters", type(value).__name__)
    if option.kind is int and isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return value  # its reader says what is wrong
    if option.kind is list and isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return value


def command_line(kind: Family, given: Given, extra: str = "") -> str:
    """The command that designs what is shown."""
    words = ["workbench", "design", kind.name]
    for option in known(kind):
        value = given.get(option.name)
        flag = f"--{(option.command or option.name).replace('_', '-')}"
        if option.kind is bool:
            if isinstance(value, bool) and value != option.default:
                words.append(flag if value else f"--no-{flag[2:]}")
        elif value not in ("", None, []):
            words += [f"{flag}={part}" for part in (value if isinstance(value, list) else [value])]
    return shlex.join([*words, *extra.split()])


def python_call(kind: Family, given: Given, values: Mapping[str, Any], extra: str = "") -> str:
    """The Python call that designs what is shown: `wb.design`, where code can spell the question by its class."""
    named = {option.name: option for option in known(kind) if option.name in given}
    rest = [f"{name}={_literal(values[name])}" for name, option in named.items() if not option.question]
    code = _question(kind, [name for name, option in named.items() if option.question], given, values)
    if code is not None:
        return f"import workbench as wb\nd = wb.design({', '.join([code, *rest, *extra.split()])})"
    texts = ", ".join(f"{name!r}: {_typed(named[name], value)!r}" for name, value in given.items())
    return (
        f"from workbench.families.registry import family\nkind = family({kind.name!r})\n"
        f"values = kind.read({{{texts}}}, 'command')\nd = kind.open(kind.request_of(values)).design()"
    )


def _question(kind: Family, names: Sequence[str], given: Given, values: Mapping[str, Any]) -> str | None:
    """Code that makes the question, tried out; None where its class takes other arguments than its options."""
    import workbench

    name, wanted = kind.question.__name__, repr(kind.spelled_question(values))
    if name not in workbench.__all__:
        return None
    literals = {option: _literal(values[option]) for option in names}
    parse = getattr(kind.question, "parse", None)
    try:
        with no_files():
            if parse is not None and len(names) == 1:
                return f"wb.{name}.parse({given[names[0]]!r})" if repr(parse(given[names[0]])) == wanted else None
            question = kind.question(**{option: ast.literal_eval(text) for option, text in literals.items()})
    except (TypeError, ValueError, SyntaxError, WorkbenchError):
        return None
    arguments = ", ".join(f"{option}={text}" for option, text in literals.items())
    return f"wb.{name}({arguments})" if repr(question) == wanted else None


def _literal(value: Any) -> str:
    """An exact value as Python code: a decimal as it is written, a ratio as the text that spells it."""
    if isinstance(value, Fraction):
        text = spelled(value)
        return text if _NUMBER.fullmatch(text) else repr(text)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_literal(part)}' for key, part in value.items())}}}"
    return repr(value)
