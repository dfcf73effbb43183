"""What is asked in texts: the options of a family as a page or a command line gives them.

A text becomes an exact value by its option's own reader, and nowhere else. Readers that would open a file are refused
it (`workbench.io.files.no_files`), except for those texts that the owner of the process gave on the command line.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from workbench.errors import InvalidRequest, WorkbenchError, must
from workbench.exact.objects import Record, Values
from workbench.io.files import no_files
from workbench.pipeline.family import Family
from workbench.pipeline.option import Option, spell
from workbench.pipeline.registry import families

Given = Values  # option -> text, bool, or list of texts
View = dict[str, Any]  # what a page shows
Files = Collection[tuple[str, str, Any]]  # (family, option, text) whose texts may name files
SLID = ("rho", "mu", "alpha", "runs")  # besides hot options
EMPTY: tuple[Any, ...] = ("", None, [])  # what a page gives for an option that is left out
_LONGEST = 20_000  # characters of a text
_WORDS = re.compile(r"must be one of (.*?)(?:;|\. Got )")
_LEAST = 1e-10  # of a share on a slider, but for 0
_REACHES = {
    "alpha": (1.05, 64.0),
    "rho": (0.02, 2.0),
    "mu": (0.1, 4.0),
}  # of parameters whose usual values are others than those of ε
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORD = re.compile(r"[\w:.-]+")


def known(kind: Family) -> dict[str, Option]:
    """The options that a page offers, by name: those of a command line."""
    return {option.name: option for option in kind.given_in("command")}


def _option(kind: Family, name: str) -> Option:
    named = known(kind)
    return named.get(name) or must("option", f"one of {', '.join(named)}", repr(name))


def _flag(option: Option) -> str:
    return f"--{(option.command or option.name).replace('_', '-')}"


def listing() -> list[Values]:
    """Every family with its options and examples, JSON-ready; loads neither models nor solvers."""
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "summary": kind.summary,
            "certifies": kind.certifies,
            "options": [*map(_listed, known(kind).values())],
            "first": first(kind),
        }
        for kind in families()
    ]


def first(kind: Family) -> Given:
    """What a page begins with: the first example that gives what a slider is for, else the first of all."""
    examples = [given for _, given in _examples(kind)]
    return next(
        (given for given in examples if kind.hot and kind.hot[-1] in given),
        next(iter(examples), {}),
    )


def _listed(option: Option) -> Values:
    kind = {bool: "flag", list: "list"}.get(option.kind, "text")
    return {
        "name": option.name,
        "flag": option.command or option.name,
        "help": option.help,
        "kind": kind,
        "default": option.default if kind == "flag" else _text(option.default),
        "required": option.required,
        "question": option.question,
        "hot": option.hot,
        "minor": option.solver or option.name == "solver",
        "range": option_range(option) if option.hot or option.name in SLID else None,
    }


def _text(value: Any) -> str:
    spelled = spell(value)
    return (
        ""
        if spelled is None
        else ",".join(map(str, spelled))
        if isinstance(spelled, list)
        else str(spelled)
    )


def _refusal(option: Option, value: Any) -> str | None:
    """What the reader of an option says against a value, None where it takes it."""
    try:
        with no_files():
            option.of(value)
    except Exception as error:  # a reader of another package may raise anything
        return str(error)
    return None


def suggestions(kind: Family) -> View:
    """The words that options take, and the examples that need no file; to know them loads models and solvers."""
    words = {name: choices for name, option in known(kind).items() if (choices := words_of(option))}
    examples = []
    for title, given in _examples(kind):
        with contextlib.suppress(WorkbenchError), no_files():  # one that reads a file
            kind.request_of({**exact_values(kind, given), "check": "audit"})
            examples.append({"title": title, "given": given})
    return {"words": words, "examples": examples}


def words_of(option: Option) -> list[str]:
    """The words of one option, as its reader lists them when it refuses another."""
    match = (
        _WORDS.search(_refusal(option, "?") or "")
        if option.kind in (str, list) and not option.hot
        else None
    )
    return (
        [word for word in re.split(r",? or |, ", match[1]) if _WORD.fullmatch(word)]
        if match
        else []
    )


def option_range(option: Option) -> View | None:
    """The range of a slider for a number: a share is 0 or on a scale up to 1, others on a scale of positive numbers; a
    count doubles."""
    if option.kind is int:
        return {"scale": "count", "low": 1.0, "high": 64.0} if option.name == "runs" else None
    if _refusal(option, Fraction(1, 2)) is not None:
        return None
    if _refusal(option, Fraction(2)) is not None:
        return {"scale": "share", "low": _LEAST, "high": 1.0}
    low, high = _REACHES.get(option.name, (0.05, 10.0))
    return {"scale": "log", "low": low, "high": high}


def _examples(kind: Family) -> Iterator[tuple[str, Given]]:
    """The options of the family's examples that design, as text and as texts."""
    for text in kind.designs:
        options = text.removeprefix(f"design {kind.name} ")
        yield options, from_words(kind, shlex.split(options))


def from_words(kind: Family, words: Sequence[str]) -> Record:
    """The texts of a command line: --n 8 --epsilon=1.5 --directed. Raises InvalidRequest for what is no option of the
    family."""
    named = {_flag(option): option for option in known(kind).values()}
    texts: Record = {}
    rest = iter(words)
    for word in rest:
        flag, equals, text = word.partition("=")
        on = flag if flag in named else flag.replace("--no-", "--", 1)
        if on not in named:
            must("argument", f"an option of {kind.name} ({', '.join(named)})", repr(flag))
        option = named[on]
        if option.kind is bool:
            texts[option.name] = on == flag
            continue
        value = text if equals else next(rest, None)
        if value is None:
            raise InvalidRequest(f"{flag} must have a value. Got none.")
        texts[option.name] = [*texts.get(option.name, []), value] if option.kind is list else value
    return texts


def named_files(kind: Family, given: Given) -> Files:
    """The texts that the owner of the process gave, which may name files."""
    return {(kind.name, name, text) for name, text in given.items() if isinstance(text, str)}


def state(family: str, given: Given) -> str:
    """What is shown, as the fragment of the explorer's address has it."""
    texts = {
        name: str(text).lower() if isinstance(text, bool) else text for name, text in given.items()
    }
    return urlencode({"family": family, **texts}, doseq=True)


def texts_of(kind: Family, options: Values) -> Record:
    """The texts of options that Python gives, as a page holds them. Raises InvalidRequest."""
    texts: Record = {}
    for name, value in options.items():
        option = _option(kind, name)
        if value is None or isinstance(value, (bool, str)):
            texts |= {} if value is None else {name: value}
            continue
        exact, same = option.of(value), False
        with contextlib.suppress(InvalidRequest, TypeError):  # what has no text, or another one
            texts[name] = _text(exact)
            same = option.of(_typed(option, texts[name])) == exact
        if not same:
            must(name, "a text, as the command line takes it", repr(value))
    return texts


def texts_given(kind: Family, given: Any) -> Given:
    """Check the options that a page sends: names with texts, flags or lists of texts. Raises InvalidRequest."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        must("given", "options with their texts", type(given).__name__)
    for name, value in given.items():
        if not isinstance(name, str):
            must("option", "a name", repr(name))
        if name in known(kind) and value is not None:
            _typed(known(kind)[name], value)
    return given


def exact_values(kind: Family, given: Any, files: Files = ()) -> Record:
    """The exact value of every option. files: (family, option, text) whose texts may name a file.

    Raises InvalidRequest, for an unknown option as well.
    """
    if not isinstance(given, Mapping):
        must("request", "options with their texts", type(given).__name__)
    values = {}
    for name, value in given.items():
        option = _option(kind, name)
        if value not in EMPTY:
            values[name] = _typed(option, value)
            if isinstance(value, str) and (kind.name, name, value) in files:
                values[name] = option.of(Path(value) if option.kind is Path else values[name])
    with no_files():
        return kind.read(values, "command")


def _typed(option: Option, value: Any) -> Any:
    """A text of a page as the command line would hand it to the option's reader."""
    texts = value if isinstance(value, list) else [value]
    allowed = bool if option.kind is bool else str
    if any(not isinstance(text, (str, allowed)) or len(str(text)) > _LONGEST for text in texts):
        must(option.name, f"a text of at most {_LONGEST} characters", type(value).__name__)
    if option.kind is int and isinstance(value, str):
        with contextlib.suppress(ValueError):  # its reader says what is wrong
            return int(value)
    if option.kind is list and isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return value


def command_line(kind: Family, given: Given) -> str:
    """The command that designs what is shown."""
    words = ["workbench", "design", kind.name]
    for name, option in known(kind).items():
        value, flag = given.get(name), _flag(option)
        if option.kind is bool:
            if isinstance(value, bool) and value != option.default:
                words.append(flag if value else f"--no-{flag[2:]}")
        elif value not in EMPTY:
            words += [f"{flag}={part}" for part in (value if isinstance(value, list) else [value])]
    return shlex.join(words)


def python_call(kind: Family, given: Given) -> str:
    """The Python call that designs what is shown."""
    words = [
        f"{name}={_literal(_typed(_option(kind, name), value))}" for name, value in given.items()
    ]
    return f"import workbench as wb\nd = wb.design({', '.join([repr(kind.name), *words])})"


def _literal(value: Any) -> str:
    """An option as Python code: the text of a decimal as a number."""
    return value if isinstance(value, str) and _NUMBER.fullmatch(value) else repr(value)
