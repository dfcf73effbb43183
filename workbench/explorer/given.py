"""Convert options between texts, as a page or a command line gives them, and exact values.

The word "given" means options that a user has given, as texts. For example, the options of
`--n 8 --directed` are {"n": "8", "directed": True}. Only the reader of an option turns its text
into an exact value. Readers that would open a file are stopped
(`workbench.io.files.forbid_file_access`), except for the texts that the owner of the process gave
on the command line. A hot option, such as ε, only changes numbers of a model that is already built,
so a slider can move it.
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
from workbench.notions import get_notion, notion_names
from workbench.pipeline.family import Family
from workbench.pipeline.option import Option, to_json_value
from workbench.pipeline.registry import list_families

# Option -> text, bool, or list of texts.
OptionTexts = Values

# Data that a page shows, ready for JSON. Each function that returns a view describes its keys.
View = dict[str, Any]

# (family, option, text) of the texts that may name files.
FileTexts = Collection[tuple[str, str, Any]]

# The options that have sliders besides the hot options.
SLIDER_OPTIONS = ("rho", "mu", "alpha", "runs")

# The values that a page sends for an option that is not given.
EMPTY_TEXTS: tuple[Any, ...] = ("", None, [])

_MAX_TEXT_LENGTH = 20_000  # A text with more characters is refused.

# The list of choices in an error message, such as "absolute, squared or error-rate".
_CHOICES_SENTENCE = re.compile(r"must be one of (.*?)(?:;|\. Got )")
_MIN_POSITIVE_SHARE = 1e-10  # The smallest positive value of a share on a slider.
_MAX_RUNS = 64.0  # The largest number of runs on a slider.

# The slider ranges of numbers on a logarithmic scale: of some parameters, and of all others.
_SLIDER_RANGES = {
    "alpha": (1.05, 64.0),
    "rho": (0.02, 2.0),
    "mu": (0.1, 4.0),
}
_DEFAULT_SLIDER_RANGE = (0.05, 10.0)

# Notion -> its full name. Notions of other packages have their titles.
_NOTION_NAMES = {
    "pure": "pure differential privacy (ε)",
    "dp": "differential privacy (ε, δ)",
    "pdp": "probabilistic differential privacy (ε, δ)",
    "metric": "metric differential privacy (ε per unit of distance)",
    "curve": "privacy curve (several pairs of ε, δ)",
    "tradeoff": "f-differential privacy (trade-off function)",
    "renyi": "Rényi differential privacy (α, ε)",
    "zcdp": "zero-concentrated differential privacy (ρ)",
    "gdp": "Gaussian differential privacy (μ)",
}

_DECIMAL = re.compile(r"-?\d+(\.\d+)?")  # A text that Python code can contain as a number.

# The form of a choice. Words of an error message that have another form are not offered.
_CHOICE = re.compile(r"[\w:.-]+")


def name_notion(name: str) -> str:
    """Return the full name of a notion of privacy.

    Args:
        name: The name of a notion in requests, such as "dp".
    """
    if name in _NOTION_NAMES:
        return _NOTION_NAMES[name]
    return get_notion(name).title


def offered_options(family: Family) -> dict[str, Option]:
    """Return the options that a page offers, by name. The command line has the same options.

    Args:
        family: The family that has the options.
    """
    return {option.name: option for option in family.options_for("command")}


def _find_option(family: Family, name: str) -> Option:
    """Return the option with a name. Raises InvalidRequest if a page does not offer it."""
    options = offered_options(family)
    return options.get(name) or must("option", f"one of {', '.join(options)}", repr(name))


def _command_flag(option: Option) -> str:
    """Return the flag of an option on the command line."""
    return f"--{(option.command or option.name).replace('_', '-')}"


def describe_families() -> list[Values]:
    """Return every family with its options and its first example, ready for JSON.

    It loads no models and no solvers.
    """
    descriptions: list[Values] = []
    for family in list_families():
        description = {
            "name": family.name,
            "title": family.title,
            "summary": family.summary,
            "certifies": family.certifies,
            "options": [*map(_describe_option, offered_options(family).values())],
            "first": first_example(family),
        }
        descriptions.append(description)
    return descriptions


def first_example(family: Family) -> OptionTexts:
    """Return the options that a page starts with.

    They are the first example that gives the last hot option, or else the first example.

    Args:
        family: The family that has the options.
    """
    examples = [option_texts for _, option_texts in _read_examples(family)]
    if family.hot_option_names:
        for option_texts in examples:
            if family.hot_option_names[-1] in option_texts:
                return option_texts
    return next(iter(examples), {})


def _describe_option(option: Option) -> Values:
    """Return an option, ready for JSON.

    "kind" is "flag", "list" or "text". "minor" options are shown last. "range" is the range of the
    slider (`find_slider_range`), or None.
    """
    kind = {bool: "flag", list: "list"}.get(option.kind, "text")
    has_slider = option.hot or option.name in SLIDER_OPTIONS
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
        "range": find_slider_range(option) if has_slider else None,
    }


def _to_option_text(value: Any) -> str:
    """Return an exact value as the text of an option: "" for None, "1,2" for a list."""
    json_value = to_json_value(value)
    if json_value is None:
        return ""
    if isinstance(json_value, list):
        return ",".join(map(str, json_value))
    return str(json_value)


def _find_refusal(option: Option, value: Any) -> str | None:
    """Return the message of an option's reader that refuses a value, or None."""
    try:
        with forbid_file_access():
            option.read_value(value)
    except Exception as error:
        # The reader of another package may raise any exception.
        return str(error)
    return None


def make_suggestions(family: Family) -> View:
    """Return the choices of the options, and the examples that need no file.

    It loads models and solvers.

    Args:
        family: The family that has the options.

    Returns:
        "words": option -> its choices. "labels": option -> choice -> its full name. "examples": for
        each, "title" (its command line) and "given" (its options).
    """
    choices_by_option = {}
    labels_by_option = {}
    for name, option in offered_options(family).items():
        choices = list_choices(option)
        if choices:
            choices_by_option[name] = choices
    if "notion" in choices_by_option:
        labels_by_option["notion"] = {
            name: name_notion(name)
            for name in choices_by_option["notion"]
            if name in notion_names()
        }
    examples = []
    for title, option_texts in _read_examples(family):
        # An example that reads a file raises an error.
        with contextlib.suppress(WorkbenchError), forbid_file_access():
            values = {**read_option_values(family, option_texts), "check": "audit"}
            family.make_request_from_values(values)
            examples.append({"title": title, "given": option_texts})
    return {"words": choices_by_option, "labels": labels_by_option, "examples": examples}


def list_choices(option: Option) -> list[str]:
    """Return the choices of an option, as its reader lists them when it refuses a value.

    Args:
        option: An option of a family.
    """
    if option.kind not in (str, list) or option.hot:
        return []
    # No option has the choice "?", so its reader refuses it.
    match = _CHOICES_SENTENCE.search(_find_refusal(option, "?") or "")
    if match is None:
        return []
    parts = re.split(r",? or |, ", match[1])
    return [part for part in parts if _CHOICE.fullmatch(part)]


def find_slider_range(option: Option) -> View | None:
    """Return the range of the slider of an option, or None if the option has no slider.

    The scales are "share" (0, or on a logarithmic scale up to 1, such as δ), "count" (1, 2, 4, 8,
    ...) and "log" (other positive numbers). The reader of the option decides: a share is a number
    that may be 1/2 but not 2.

    Args:
        option: An option of a family.

    Returns:
        "scale": "share", "count" or "log". "low", "high": the smallest positive and the largest
        value.
    """
    if option.kind is int:
        if option.name != "runs":
            return None
        return {"scale": "count", "low": 1.0, "high": _MAX_RUNS}
    if _find_refusal(option, Fraction(1, 2)) is not None:
        return None
    if _find_refusal(option, Fraction(2)) is not None:
        return {"scale": "share", "low": _MIN_POSITIVE_SHARE, "high": 1.0}
    low, high = _SLIDER_RANGES.get(option.name, _DEFAULT_SLIDER_RANGE)
    return {"scale": "log", "low": low, "high": high}


def _read_examples(family: Family) -> Iterator[tuple[str, OptionTexts]]:
    """Yield the family's design examples: the arguments as one text, and as texts by option."""
    for example in family.design_examples:
        text = example.removeprefix(f"design {family.name} ")
        yield text, read_arguments(family, shlex.split(text))


def read_arguments(family: Family, arguments: Sequence[str]) -> Record:
    """Return the texts of a command line, such as --n 8 --epsilon=1.5 --directed.

    Args:
        family: The family that has the options.
        arguments: The words of the command line after the name of the family.

    Returns:
        Option -> its text, flag or list of texts.

    Raises:
        InvalidRequest: An argument is no option of the family, or has no value.
    """
    flags = {_command_flag(option): option for option in offered_options(family).values()}
    texts: Record = {}
    remaining = iter(arguments)
    for argument in remaining:
        flag, equals, text = argument.partition("=")
        # --no-NAME switches the flag --NAME off.
        positive_flag = flag if flag in flags else flag.replace("--no-", "--", 1)
        if positive_flag not in flags:
            must("argument", f"an option of {family.name} ({', '.join(flags)})", repr(flag))
        option = flags[positive_flag]
        if option.kind is bool:
            texts[option.name] = positive_flag == flag
            continue
        value = text if equals else next(remaining, None)
        if value is None:
            raise InvalidRequest(f"{flag} must have a value. Got none.")
        if option.kind is list:
            texts.setdefault(option.name, []).append(value)
        else:
            texts[option.name] = value
    return texts


def list_file_texts(family: Family, option_texts: OptionTexts) -> FileTexts:
    """Return all texts of options as (family, option, text): these texts may name files.

    Args:
        family: The family that has the options.
        option_texts: The options. They come from the owner of the process, not from a page.
    """
    return {
        (family.name, name, text) for name, text in option_texts.items() if isinstance(text, str)
    }


def encode_address_fragment(family: str, option_texts: OptionTexts) -> str:
    """Return a request as the fragment of the explorer's address, the part after "#".

    Args:
        family: The name of the family, such as "modulo".
        option_texts: Option -> its text, flag or list of texts.

    Returns:
        The fragment, such as "family=modulo&n=8&directed=true".
    """
    texts = {}
    for name, text in option_texts.items():
        texts[name] = text
        if isinstance(text, bool):
            texts[name] = str(text).lower()
    return urlencode({"family": family, **texts}, doseq=True)


def write_option_texts(family: Family, options: Values) -> Record:
    """Return the texts of options that Python gives.

    Args:
        family: The family that has the options.
        options: Option -> its value in Python; None for no value.

    Raises:
        InvalidRequest: A value has no text.
    """
    texts: Record = {}
    for name, value in options.items():
        option = _find_option(family, name)
        if value is None:
            continue
        if isinstance(value, (bool, str)):
            texts[name] = value
            continue
        exact = option.read_value(value)
        is_same = False
        # A value is refused below if it has no text, or if its text means another value.
        with contextlib.suppress(InvalidRequest, TypeError):
            texts[name] = _to_option_text(exact)
            is_same = option.read_value(_to_reader_value(option, texts[name])) == exact
        if not is_same:
            must(name, "a text, as the command line takes it", repr(value))
    return texts


def check_option_texts(family: Family, option_texts: Any) -> OptionTexts:
    """Return the options that a page sends: names with texts, flags or lists of texts.

    Args:
        family: The family that has the options.
        option_texts: What the page sent. None means no options.

    Raises:
        InvalidRequest: They are something else.
    """
    if option_texts is None:
        return {}
    if not isinstance(option_texts, Mapping):
        must("given", "options with their texts", type(option_texts).__name__)
    options = offered_options(family)
    for name, value in option_texts.items():
        if not isinstance(name, str):
            must("option", "a name", repr(name))
        if name in options and value is not None:
            _to_reader_value(options[name], value)
    return option_texts


def read_option_values(family: Family, option_texts: Any, files: FileTexts = ()) -> Record:
    """Return the exact value of every option.

    Args:
        family: The family that has the options.
        option_texts: Option -> its text, flag or list of texts.
        files: (family, option, text) of each text that may name a file.

    Raises:
        InvalidRequest: An option is unknown or has a wrong value.
    """
    if not isinstance(option_texts, Mapping):
        must("request", "options with their texts", type(option_texts).__name__)
    values = {}
    for name, value in option_texts.items():
        option = _find_option(family, name)
        if value in EMPTY_TEXTS:
            continue
        values[name] = _to_reader_value(option, value)
        if isinstance(value, str) and (family.name, name, value) in files:
            if option.kind is Path:
                values[name] = Path(value)
            values[name] = option.read_value(values[name])
    with forbid_file_access():
        return family.read_values(values, "command")


def _to_list(value: Any) -> list[Any]:
    """Return a list unchanged, and another value as the only entry of a list."""
    return value if isinstance(value, list) else [value]


def _to_reader_value(option: Option, value: Any) -> Any:
    """Return a value of a page as the command line gives it to the option's reader.

    A text becomes an int or a list of texts if the option has this kind. Raises InvalidRequest if
    the value has another type, or if a text is too long.
    """
    texts = _to_list(value)
    text_type = bool if option.kind is bool else str
    for text in texts:
        if not isinstance(text, (str, text_type)) or len(str(text)) > _MAX_TEXT_LENGTH:
            rule = f"a text of at most {_MAX_TEXT_LENGTH} characters"
            must(option.name, rule, type(value).__name__)
    if option.kind is int and isinstance(value, str):
        # The reader explains what is wrong with other texts.
        with contextlib.suppress(ValueError):
            return int(value)
    if option.kind is list and isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return value


def write_command_line(family: Family, option_texts: OptionTexts) -> str:
    """Return the command of a design.

    Args:
        family: The family that has the options.
        option_texts: Option -> its text, flag or list of texts.
    """
    arguments = ["workbench", "design", family.name]
    for name, option in offered_options(family).items():
        value = option_texts.get(name)
        flag = _command_flag(option)
        if option.kind is bool:
            if isinstance(value, bool) and value != option.default:
                arguments.append(flag if value else f"--no-{flag.removeprefix('--')}")
        elif value not in EMPTY_TEXTS:
            arguments += [f"{flag}={part}" for part in _to_list(value)]
    return shlex.join(arguments)


def write_python_call(family: Family, option_texts: OptionTexts) -> str:
    """Return the Python call of a design.

    Args:
        family: The family that has the options.
        option_texts: Option -> its text, flag or list of texts.
    """
    arguments = [repr(family.name)]
    for name, value in option_texts.items():
        literal = _write_literal(_to_reader_value(_find_option(family, name), value))
        arguments.append(f"{name}={literal}")
    return f"import workbench as wb\nd = wb.design({', '.join(arguments)})"


def _write_literal(value: Any) -> str:
    """Return an option as Python code. The text of a decimal becomes a number."""
    return value if isinstance(value, str) and _DECIMAL.fullmatch(value) else repr(value)
