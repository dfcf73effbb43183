"""Represent one request of the explorer's page, and find the options that it can have.

A request is a family with its options as texts and as exact values. A page only offers options that
fit the others. To find out whether an option fits, a value of it is tried: the family accepts the
request, or refuses it with a message. The page reads messages such as "rho must be left out when
notion is dp" and "The parameters of the notion zcdp must be rho". If such a message is worded
differently, the patterns `_..._SENTENCE` must change too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from workbench.errors import WorkbenchError, must
from workbench.exact.objects import Values
from workbench.explorer.given import (
    EMPTY_TEXTS,
    OptionTexts,
    View,
    find_slider_range,
    list_choices,
    offered_options,
    read_option_values,
)
from workbench.io.files import forbid_file_access
from workbench.notions import get_notion, notion_names
from workbench.pipeline.family import Family
from workbench.pipeline.option import Option
from workbench.pipeline.request import Request

# A function of (number of finished parts, number of parts, and optionally the result of the last
# part).
ProgressFunction = Callable[..., None]

_TEXT_DIGITS = 4  # Values of an option are written with this many significant digits.
_GRID_DIGITS = 3  # Values of a slider's grid are rounded to this many significant digits.
_GRID_SIZE = 25  # The number of values of an option along its range.
_MAX_ADAPTATIONS = 8  # A request that is refused after this many changes is not changed further.
_MAX_TRIED_CHOICES = 3  # To see whether an option fits, at most this many choices are tried.

# Values that are tried for options without known choices: a flag, numbers, a range, a list.
_TRIAL_VALUES = (
    True,
    "1",
    "0.5",
    "2",
    "0..10",
    "1,2,1",
)

# A message that says that an option cannot be given.
_UNFIT_SENTENCE = re.compile(
    r"left out|parameters of the notion|exactly one|Give either|given to minimise|given without|"
    r"not both|"
    r"must be 0 when|must be \w+ for other"
)

# The option that a message is about, and what it must be. `foreign` is a parameter of another
# notion, `own` any other option, and `other` the value that it must have.
_OPTION_SENTENCE = re.compile(
    r"parameters of the notion.* Got (?P<foreign>\w+)\.$|"
    r"^(?P<own>\w+) must be (?P<must>given|left out|0 when|(?P<other>\w+) for other)"
)

# The start of a message that says when an option must or must not be given.
_SUBJECT_SENTENCE = re.compile(r"(\w+) must be (?:given if|given to|left out|0 when)")

# Parameter of a notion -> the text with which a page starts.
_FIRST_BUDGET_TEXTS = {
    "epsilon": "1",
    "delta": "1e-5",
    "alpha": "2",
    "rho": "0.1",
    "mu": "0.5",
    "curve": "0.5:0.1,1:0.01",
    "tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0",
}


def ignore_progress(done_count: int, total: int, part: Any = None) -> None:
    """Ignore the progress of a task that has no reader.

    Args:
        done_count: The number of finished parts.
        total: The number of parts.
        part: The result of the last part.
    """


@dataclass(frozen=True)
class PageRequest:
    """The request of a task.

    Attributes:
        family: The family of the request.
        texts: Its options as texts, without empty ones.
        values: All its options as exact values.
        task_fields: The JSON object of the page, with the further fields of the task.
        report_progress: Called with (number of finished parts, number of parts, result of the last
            part).
    """

    family: Family
    texts: Values
    values: Values
    task_fields: Values = field(default_factory=dict)
    report_progress: ProgressFunction = ignore_progress

    @property
    def key(self) -> str:
        """Return a text that is equal for equal requests, for storing results."""
        return json.dumps([self.family.name, self.texts], sort_keys=True)

    def hot_values(self, **moved: Any) -> View:
        """Return the hot options that the request gives, and those that they determine.

        Args:
            moved: Values of hot options that replace those of the request.

        Returns:
            Option -> exact value, as `Family.complete_point` completes it.
        """
        point = {
            name: self.values[name] for name in self.family.hot_option_names if name in self.texts
        }
        return dict(self.family.complete_point(self.values, point | moved))

    @property
    def slider_values(self) -> View:
        """Return the numbers of the budget that sliders move, in the order of their charts."""
        values = dict(self.family.complete_point(self.values, self.values))
        numbers = {}
        for name in list_slider_options(self.family, self.values):
            value = values.get(name)
            is_number = isinstance(value, (int, Fraction)) and not isinstance(value, bool)
            if is_number and find_slider_range(self.family.get_option(name)) is not None:
                numbers[name] = value
        return numbers

    def make_request(self, check: str, **further: Any) -> Request:
        """Return the family's request. No file is read.

        Args:
            check: The value of the option "check": "audit" or "certify".
            further: Values of options that replace those of the request.
        """
        values = {**self.values, "check": check, **further}
        with forbid_file_access():
            return self.family.make_request_from_values(values)

    def time_limit_option(self, seconds: Fraction) -> Values:
        """Return the option that limits the time of the solver.

        Args:
            seconds: The time limit in seconds.

        Returns:
            {"time_limit": seconds}. It is empty if the request has a smaller limit, or if the
            family has no such option.
        """
        option = offered_options(self.family).get("time_limit")
        current_limit = self.values.get("time_limit")
        has_smaller_limit = current_limit is not None and current_limit <= seconds
        if option is None or not option.solver or has_smaller_limit:
            return {}
        return {option.name: seconds}

    def with_value(self, name: str, value: Fraction) -> PageRequest:
        """Return the request with another value of an option.

        Args:
            name: The name of an option with a slider.
            value: Its new value.
        """
        exact: Any = value
        if self.family.get_option(name).kind is int:
            exact = int(value)
        texts = {**self.texts, name: write_number(value)}
        return replace(self, texts=texts, values={**self.values, name: exact})

    def slider_range(self, name: Any) -> View:
        """Return the range of a slider.

        Args:
            name: The name of the option.

        Returns:
            "scale", "low" and "high", as `find_slider_range` returns them.

        Raises:
            InvalidRequest: The option has no slider.
        """
        if name in list_slider_options(self.family, self.values):
            limits = find_slider_range(self.family.get_option(name))
            if limits:
                return limits
        return must("along", f"a number among {', '.join(self.slider_values)}", repr(name))

    def slider_grid(self, name: Any, size: int = _GRID_SIZE) -> list[Fraction]:
        """Return values of an option over the range of its slider, with the current value.

        Args:
            name: The name of the option.
            size: The number of values of a share or a logarithmic scale. A count doubles.

        Returns:
            The values in increasing order.
        """
        limits = self.slider_range(name)
        low = _round_number(limits["low"], _GRID_DIGITS)
        high = _round_number(limits["high"], _GRID_DIGITS)
        if limits["scale"] == "count":
            numbers = {Fraction(1 << k) for k in range(int(high).bit_length())}
        else:
            ratio = float(high) / float(low)
            numbers = {
                _round_number(float(low) * ratio ** (k / (size - 1)), _GRID_DIGITS)
                for k in range(size)
            }
        grid = {min(max(number, low), high) for number in numbers}
        if limits["scale"] == "share":
            grid.add(Fraction(0))
        current = self.slider_values.get(name)
        if current:
            grid.add(current)
        return sorted(grid)


def _round_number(value: float, digits: int) -> Fraction:
    """Return a number rounded to this many significant digits."""
    return Fraction(f"{float(value):.{digits}g}")


def round_to_text_digits(value: Any) -> Fraction:
    """Return a number rounded to four significant digits.

    Args:
        value: Any finite number.
    """
    return _round_number(value, _TEXT_DIGITS)


def write_number(value: Fraction) -> str:
    """Return a number as text: "0.25" if it has at most four significant digits, else "1/3".

    Args:
        value: An exact number.
    """
    if value == round_to_text_digits(value):
        return f"{float(value):.{_TEXT_DIGITS}g}"
    return str(value)


def list_slider_options(family: Family, values: Values) -> list[str]:
    """Return the options that sliders move: hot options, parameters of the notion, and runs.

    Args:
        family: The family that has the options.
        values: The exact values of the options.
    """
    options = offered_options(family)
    parameters = list_notion_parameters(values.get("notion"))
    # The last hot option varies fastest along a path, so its slider and chart come first.
    names = [
        name
        for name in reversed(family.hot_option_names)
        if parameters is None or name in parameters or name not in _FIRST_BUDGET_TEXTS
    ]
    names += parameters or ()
    if "runs" in options and values.get("runs", 1) != 1:
        names.append("runs")
    minimised_name = values.get("minimise", "loss")
    return [name for name in dict.fromkeys(names) if name in options and name != minimised_name]


def list_notion_parameters(notion: Any) -> tuple[str, ...] | None:
    """Return the names of the parameters of a notion.

    Args:
        notion: The name of the notion.

    Returns:
        The names; None if the argument is not the name of a notion.
    """
    if not isinstance(notion, str) or notion not in notion_names():
        return None
    entry = get_notion(notion)
    return tuple(name for name in entry.parameters if name != "delta" or entry.has_delta)


def find_request_refusal(family: Family, option_texts: OptionTexts) -> str | None:
    """Return the message of a family that refuses a request. None: it accepts the request.

    Args:
        family: The family that has the options.
        option_texts: Option -> its text, flag or list of texts.
    """
    try:
        values = read_option_values(family, option_texts)
        with forbid_file_access():
            family.make_request_from_values({**values, "check": "audit"})
    except (WorkbenchError, ValueError, TypeError) as error:
        return str(error)
    return None


def classify_missing_options(family: Family, option_texts: OptionTexts) -> View:
    """Sort the options that are not given: some do not fit, some fit only instead of others.

    Args:
        family: The family that has the options.
        option_texts: Option -> its text, flag or list of texts.

    Returns:
        "unfit": the names of the options that cannot be given. "instead": option -> the given
        options that it can replace. All other options can be added.
    """
    options = offered_options(family)
    unfit = []
    instead = {}
    notion = option_texts.get("notion") or getattr(options.get("notion"), "default", None)
    parameters = list_notion_parameters(notion)
    for name, option in options.items():
        if option_texts.get(name) not in (*EMPTY_TEXTS, False):
            continue
        if parameters is not None and name in _FIRST_BUDGET_TEXTS and name not in parameters:
            unfit.append(name)
            continue
        refusal = _find_option_refusal(family, option_texts, option)
        if refusal is None or not _UNFIT_SENTENCE.search(refusal):
            continue
        # A message about another option does not say that this one is unfit.
        subject = _SUBJECT_SENTENCE.match(refusal)
        if subject and subject[1] != name:
            continue
        replaceable = [
            other_name
            for other_name in option_texts
            if other_name != name and re.search(rf"\b{other_name}\b", refusal)
        ]
        if replaceable and re.search(
            "exactly one|Give either|not both|left out with|given without", refusal
        ):
            instead[name] = replaceable
        else:
            unfit.append(name)
    return {"unfit": unfit, "instead": instead}


def _find_option_refusal(family: Family, option_texts: OptionTexts, option: Option) -> str | None:
    """Try some values of an option and return a refusal, or None if a value is accepted.

    A message that says that the option cannot be given is preferred to other messages.
    """
    choices = [choice for choice in list_choices(option) if choice != option.default]
    values: Iterable[Any] = choices[:_MAX_TRIED_CHOICES]
    if not choices:
        is_flag = option.kind is bool
        # A flag gets True, any other option gets the texts.
        values = [value for value in _TRIAL_VALUES if (value is True) == is_flag]
    first_refusal = None
    for value in values:
        refusal = find_request_refusal(family, {**option_texts, option.name: value})
        if refusal is None:
            return None
        if _UNFIT_SENTENCE.search(refusal):
            return refusal
        first_refusal = first_refusal or refusal
    return first_refusal


def adapt_request(
    family: Family, option_texts: OptionTexts, changed_option: str, limit: str | None = None
) -> OptionTexts:
    """Return a request after one option changed.

    Options that can no longer be given are removed. Missing options get a first value.

    Args:
        family: The family that has the options.
        option_texts: Option -> its text, flag or list of texts.
        changed_option: The option that changed.
        limit: The text of max_loss if the request needs one and has none. Default: "1".

    Returns:
        The options of the new request. The family may still refuse it.
    """
    options = offered_options(family)
    first_texts = {**_FIRST_BUDGET_TEXTS, "max_loss": limit or "1"}
    new_texts = {name: value for name, value in option_texts.items() if value not in EMPTY_TEXTS}
    if changed_option == "notion":
        parameters = list_notion_parameters(new_texts.get("notion"))
        if parameters is not None:
            for name in _FIRST_BUDGET_TEXTS:
                if name not in parameters:
                    new_texts.pop(name, None)
    for _ in range(_MAX_ADAPTATIONS):
        refusal = find_request_refusal(family, new_texts)
        match = _OPTION_SENTENCE.search(refusal or "")
        if match is None:
            break
        name = match["foreign"] or match["own"]
        if name == changed_option:
            break
        is_missing = match["must"] == "given" and name not in new_texts
        if is_missing and name in first_texts and name in options:
            new_texts[name] = first_texts[name]
        elif match["other"] and new_texts.get(name) != match["other"]:
            new_texts[name] = match["other"]
        elif name in new_texts:
            del new_texts[name]
        else:
            break
    return new_texts
