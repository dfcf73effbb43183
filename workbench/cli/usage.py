"""What the parser of command lines says, in the one form of a message: "n must be an integer. Got eight."."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["usage_words"]

_VALUE = re.compile(r"Invalid value for '?(?P<name>[^':]+)'?: (?P<why>.*)")
_MISSING = re.compile(r"(?:Missing (?:option|argument)|Option) '(?P<name>[^']+)'(?: requires an argument)?\.?")
_FLAG = re.compile(r"Option '(?P<name>[^']+)' does not take a value\.")
_UNKNOWN = re.compile(r"No such (?P<kind>option|command):? '?(?P<got>[^' ]+?)'?\.?(?: (?P<hint>.*))?")
_HINT = re.compile(r"(?:\(Possible options:|Did you mean) (.*)[)?]")
_LONGEST = 300
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<got>.*)\)")


def usage_words(message: str, given: Sequence[str]) -> str:
    """A message of the parser as one of ours. given: the command line, which holds the value that was wrong."""
    words = _words(message, given)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _words(message: str, given: Sequence[str]) -> str:
    text = " ".join(message.split())
    if match := _VALUE.fullmatch(text):
        return f"{_plain(match['name'])} must be {_wanted(match['why'])}. Got {_value(match['name'], given)}."
    if match := _FLAG.fullmatch(text):
        return f"{_plain(match['name'])} must be given without a value. Got {_value(match['name'], given)}."
    if match := _MISSING.fullmatch(text):
        return f"{_plain(match['name'])} must be given. Got none."
    if match := _UNKNOWN.fullmatch(text):
        hint = _HINT.fullmatch(match["hint"] or "")
        near = (
            f"did you mean {' or '.join(hint[1].rsplit(', ', 1))}?" if hint else f"--help lists the {match['kind']}s."
        )
        return f"No such {match['kind']} {match['got']}; {near}"
    if match := _EXTRA.fullmatch(text):
        return f"arguments must be those that --help lists. Got {match['got']} besides."
    return text


def _plain(name: str) -> str:
    """--time-limit -> time-limit; FILE.csv stays."""
    return name.split(" / ")[0].lstrip("-")


def _wanted(why: str) -> str:
    kind = why.removeprefix("Input should be ").split(", unable")[0].rstrip(".")
    words = {"a valid integer": "an integer", "a valid number": "a number"}
    return words.get(
        kind, kind.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
    )


def _value(name: str, given: Sequence[str]) -> str:
    """What the command line gave an option; its last value counts."""
    for at in range(len(given) - 1, -1, -1):
        if given[at].startswith(f"{name}="):
            return given[at][len(name) + 1 :]
        if given[at] == name and at + 1 < len(given):
            return given[at + 1]
    return "another"
