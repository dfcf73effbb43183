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
from workbench.io.files import forbid_file_access
from workbench.pipeline.family import Family
from workbench.pipeline.option import Option, to_json_value
from workbench.pipeline.registry import list_families

OptionTexts = Values  # option -> text, bool, or list of texts
View = dict[str, Any]  # what a page shows
FileTexts = Collection[tuple[str, str, Any]]  # (family, option, text) whose texts may name files
SLIDER_OPTIONS = ("rho", "mu", "alpha", "runs")  # besides hot options
EMPTY_TEXTS: tuple[Any, ...] = ("", None, [])  # what a page gives for an option that is left out
_MAX_TEXT_LENGTH = 20_000  # characters of a text
_CHOICES_SENTENCE = re.compile(r"must be one of (.*?)(?:;|\. Got )")
_MIN_POSITIVE_SHARE = 1e-10  # of a share on a slider, but for 0
_SLIDER_RANGES = {
    "alpha": (1.05, 64.0),
    "rho": (0.02, 2.0),
    "mu": (0.1, 4.0),
}  # of parameters whose usual values are others than those of ε
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")
_CHOICE = re.compile(r"[\w:.-]+")


def offered_options(kind: Family) -> dict[str, Option]:
    """The options that a page offers, by name: those of a command line."""
    return {option.name: option for option in kind.options_for("command")}


def _find_option(kind: Family, name: str) -> Option:
    named = offered_options(kind)
    return named.get(name) or must("option", f"one of {', '.join(named)}", repr(name))


def _command_flag(option: Option) -> str:
    return f"--{(option.command or option.name).replace('_', '-')}"


def describe_families() -> list[Values]:
    """Every family with its options and examples, JSON-ready; loads neither models nor solvers."""
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "summary": kind.summary,
            "certifies": kind.certifies,
            "options": [*map(_describe_option, offered_options(kind).values())],
            "first": first_example(kind),
        }
        for kind in list_families()
    ]


def first_example(kind: Family) -> OptionTexts:
    """What a page begins with: the first example that gives what a slider is for, else the first of all."""
    examples = [given for _, given in _read_examples(kind)]
    return next(
        (
            given
            for given in examples
            if kind.hot_option_names and kind.hot_option_names[-1] in given
        ),
        next(iter(examples), {}),
    )


def _describe_option(option: Option) -> Values:
    kind = {bool: "flag", list: "list"}.get(option.kind, "text")
    return {
        "name": option.name,
        "flag": option.command or option.name,
        "help": option.help,
        "kind": kind,
        "default": option.default if kind == "flag" else _to_option_text(option.default),
        "required": option.required,
        "question": option.question,
        "hot": option.hot,
        "minor": option.solver or option.name == "solver",
        "range": find_slider_range(option) if option.hot or option.name in SLIDER_OPTIONS else None,
    }


def _to_option_text(value: Any) -> str:
    spelled = to_json_value(value)
    return (
        ""
        if spelled is None
        else ",".join(map(str, spelled))
        if isinstance(spelled, list)
        else str(spelled)
    )


def _find_refusal(option: Option, value: Any) -> str | None:
    """What the reader of an option says against a value, None where it takes it."""
    try:
        with forbid_file_access():
            option.read_value(value)
    except Exception as error:  # a reader of another package may raise anything
        return str(error)
    return None


def make_suggestions(kind: Family) -> View:
    """The words that options take, and the examples that need no file; to know them loads models and solvers."""
    words = {
        name: choices
        for name, option in offered_options(kind).items()
        if (choices := list_choices(option))
    }
    examples = []
    for title, given in _read_examples(kind):
        with contextlib.suppress(WorkbenchError), forbid_file_access():  # one that reads a file
            kind.make_request_from_values({**read_option_values(kind, given), "check": "audit"})
            examples.append({"title": title, "given": given})
    return {"words": words, "examples": examples}


def list_choices(option: Option) -> list[str]:
    """The words of one option, as its reader lists them when it refuses another."""
    match = (
        _CHOICES_SENTENCE.search(_find_refusal(option, "?") or "")
        if option.kind in (str, list) and not option.hot
        else None
    )
    return (
        [word for word in re.split(r",? or |, ", match[1]) if _CHOICE.fullmatch(word)]
        if match
        else []
    )


def find_slider_range(option: Option) -> View | None:
    """The range of a slider for a number: a share is 0 or on a scale up to 1, others on a scale of positive numbers; a
    count doubles."""
    if option.kind is int:
        return {"scale": "count", "low": 1.0, "high": 64.0} if option.name == "runs" else None
    if _find_refusal(option, Fraction(1, 2)) is not None:
        return None
    if _find_refusal(option, Fraction(2)) is not None:
        return {"scale": "share", "low": _MIN_POSITIVE_SHARE, "high": 1.0}
    low, high = _SLIDER_RANGES.get(option.name, (0.05, 10.0))
    return {"scale": "log", "low": low, "high": high}


def _read_examples(kind: Family) -> Iterator[tuple[str, OptionTexts]]:
    """The options of the family's examples that design, as text and as texts."""
    for text in kind.design_examples:
        options = text.removeprefix(f"design {kind.name} ")
        yield options, read_arguments(kind, shlex.split(options))


def read_arguments(kind: Family, words: Sequence[str]) -> Record:
    """The texts of a command line: --n 8 --epsilon=1.5 --directed. Raises InvalidRequest for what is no option of the
    family."""
    named = {_command_flag(option): option for option in offered_options(kind).values()}
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


def list_file_texts(kind: Family, given: OptionTexts) -> FileTexts:
    """The texts that the owner of the process gave, which may name files."""
    return {(kind.name, name, text) for name, text in given.items() if isinstance(text, str)}


def encode_address_fragment(family: str, given: OptionTexts) -> str:
    """What is shown, as the fragment of the explorer's address has it."""
    texts = {
        name: str(text).lower() if isinstance(text, bool) else text for name, text in given.items()
    }
    return urlencode({"family": family, **texts}, doseq=True)


def write_option_texts(kind: Family, options: Values) -> Record:
    """The texts of options that Python gives, as a page holds them. Raises InvalidRequest."""
    texts: Record = {}
    for name, value in options.items():
        option = _find_option(kind, name)
        if value is None or isinstance(value, (bool, str)):
            texts |= {} if value is None else {name: value}
            continue
        exact, same = option.read_value(value), False
        with contextlib.suppress(InvalidRequest, TypeError):  # what has no text, or another one
            texts[name] = _to_option_text(exact)
            same = option.read_value(_to_reader_value(option, texts[name])) == exact
        if not same:
            must(name, "a text, as the command line takes it", repr(value))
    return texts


def check_option_texts(kind: Family, given: Any) -> OptionTexts:
    """Check the options that a page sends: names with texts, flags or lists of texts. Raises InvalidRequest."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        must("given", "options with their texts", type(given).__name__)
    for name, value in given.items():
        if not isinstance(name, str):
            must("option", "a name", repr(name))
        if name in offered_options(kind) and value is not None:
            _to_reader_value(offered_options(kind)[name], value)
    return given


def read_option_values(kind: Family, given: Any, files: FileTexts = ()) -> Record:
    """The exact value of every option. files: (family, option, text) whose texts may name a file.

    Raises InvalidRequest, for an unknown option as well.
    """
    if not isinstance(given, Mapping):
        must("request", "options with their texts", type(given).__name__)
    values = {}
    for name, value in given.items():
        option = _find_option(kind, name)
        if value not in EMPTY_TEXTS:
            values[name] = _to_reader_value(option, value)
            if isinstance(value, str) and (kind.name, name, value) in files:
                values[name] = option.read_value(
                    Path(value) if option.kind is Path else values[name]
                )
    with forbid_file_access():
        return kind.read_values(values, "command")


def _to_reader_value(option: Option, value: Any) -> Any:
    """A text of a page as the command line would hand it to the option's reader."""
    texts = value if isinstance(value, list) else [value]
    allowed = bool if option.kind is bool else str
    if any(
        not isinstance(text, (str, allowed)) or len(str(text)) > _MAX_TEXT_LENGTH for text in texts
    ):
        must(option.name, f"a text of at most {_MAX_TEXT_LENGTH} characters", type(value).__name__)
    if option.kind is int and isinstance(value, str):
        with contextlib.suppress(ValueError):  # its reader says what is wrong
            return int(value)
    if option.kind is list and isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return value


def write_command_line(kind: Family, given: OptionTexts) -> str:
    """The command that designs what is shown."""
    words = ["workbench", "design", kind.name]
    for name, option in offered_options(kind).items():
        value, flag = given.get(name), _command_flag(option)
        if option.kind is bool:
            if isinstance(value, bool) and value != option.default:
                words.append(flag if value else f"--no-{flag[2:]}")
        elif value not in EMPTY_TEXTS:
            words += [f"{flag}={part}" for part in (value if isinstance(value, list) else [value])]
    return shlex.join(words)


def write_python_call(kind: Family, given: OptionTexts) -> str:
    """The Python call that designs what is shown."""
    words = [
        f"{name}={_write_literal(_to_reader_value(_find_option(kind, name), value))}"
        for name, value in given.items()
    ]
    return f"import workbench as wb\nd = wb.design({', '.join([repr(kind.name), *words])})"


def _write_literal(value: Any) -> str:
    """An option as Python code: the text of a decimal as a number."""
    return value if isinstance(value, str) and _DECIMAL.fullmatch(value) else repr(value)
