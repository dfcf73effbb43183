"""One request of a page: a family, its options as texts and as exact values, and which options it has room for.

What an option may be beside the others is what the family says when it is tried: house sentences such as "rho must be
left out when notion is dp" and "The parameters of the notion zcdp must be rho" decide what a page offers.
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
from workbench.notions import get_notion as notion_named
from workbench.notions import notion_names as known_notions
from workbench.pipeline.family import Family
from workbench.pipeline.option import Option
from workbench.pipeline.request import Request

ProgressFunction = Callable[..., None]  # (parts done, parts, and what has come out of the last one)
_TEXT_DIGITS = 4  # of what is found or drawn along an option
_GRID_VALUES = 25  # values of an option along its range
_TRIAL_VALUES = (
    True,
    "1",
    "0.5",
    "2",
    "0..10",
    "1,2,1",
)  # values of an option of which no words are known
_UNFIT_SENTENCE = re.compile(
    r"left out|parameters of the notion|exactly one|only there|given without|not both|must be 0 when|"
    r"must be \w+ for other"
)
_OPTION_SENTENCE = re.compile(  # the option of a sentence, and what it must be
    r"parameters of the notion.* Got (?P<foreign>\w+)\.$|"
    r"^(?P<own>\w+) must be (?P<must>given|left out|0 when|(?P<other>\w+) for other)"
)
_FIRST_BUDGET_TEXTS = {  # of a budget that a page has to begin with
    "epsilon": "1", "delta": "1e-5", "alpha": "2", "rho": "0.1", "mu": "0.5", "curve": "0.5:0.1,1:0.01",
    "tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0",
}  # fmt: skip


def ignore_progress(done: int, total: int, part: Any = None) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class PageRequest:
    """What a task is about: a family, its options as texts and as exact values, what the task itself takes, and whom
    to tell how far it is."""

    family: Family
    texts: Values
    values: Values
    task_fields: Values = field(default_factory=dict)
    report_progress: ProgressFunction = ignore_progress

    @property
    def key(self) -> str:
        """The same for the same request."""
        return json.dumps([self.family.name, self.texts], sort_keys=True)

    def hot_values(self, **moved: Any) -> View:
        """The hot options that are given; those of a request that are left out are its own."""
        point = {
            name: self.values[name] for name in self.family.hot_option_names if name in self.texts
        } | moved
        return dict(self.family.complete_point(self.values, point))

    @property
    def slider_values(self) -> View:
        """The budget as numbers that sliders move, in the order of their charts: the most telling one first."""
        taken = dict(self.family.complete_point(self.values, self.values))
        numbers = [
            (name, taken[name])
            for name in list_slider_options(self.family, self.values)
            if isinstance(taken.get(name), (int, Fraction)) and not isinstance(taken[name], bool)
        ]
        return {
            name: value
            for name, value in numbers
            if find_slider_range(self.family.get_option(name)) is not None
        }

    def make_request(self, check: str, **more: Any) -> Request:
        """The family's request; no file is read."""
        with forbid_file_access():
            return self.family.make_request_from_values({**self.values, "check": check, **more})

    def time_limit_option(self, seconds: Fraction) -> Values:
        """The option that gives a solver so many seconds; none where it has fewer, or where the family has no such
        option."""
        option, given = (
            offered_options(self.family).get("time_limit"),
            self.values.get("time_limit"),
        )
        fewer = given is not None and given <= seconds
        return {} if option is None or not option.solver or fewer else {option.name: seconds}

    def with_value(self, name: str, value: Fraction) -> PageRequest:
        """The same with another value of an option."""
        exact = int(value) if self.family.get_option(name).kind is int else value
        return replace(
            self,
            texts={**self.texts, name: write_number(value)},
            values={**self.values, name: exact},
        )

    def slider_range(self, name: Any) -> View:
        """The range of a slider. Raises InvalidRequest for an option that has none."""
        ends = (
            find_slider_range(self.family.get_option(name))
            if name in list_slider_options(self.family, self.values)
            else None
        )
        return ends or must("along", f"a number among {', '.join(self.slider_values)}", repr(name))

    def slider_grid(self, name: Any, steps: int = _GRID_VALUES) -> list[Fraction]:
        """Values of an option over its slider's range, the present one among them, three digits each."""
        reach = self.slider_range(name)
        low, high, scale = (
            Fraction(f"{reach['low']:.3g}"),
            Fraction(f"{reach['high']:.3g}"),
            reach["scale"],
        )
        least, most = float(low), float(high)
        numbers = {
            Fraction(f"{least * (most / least) ** (k / (steps - 1)):.3g}") for k in range(steps)
        }
        if scale == "count":
            numbers = {Fraction(1 << k) for k in range(int(most).bit_length())}
        now = self.slider_values.get(name)
        zero = {Fraction(0)} if scale == "share" else set()
        return sorted(
            {min(max(number, low), high) for number in numbers} | zero | ({now} if now else set())
        )


def round_to_text_digits(value: Any) -> Fraction:
    """A number to four digits."""
    return Fraction(f"{float(value):.{_TEXT_DIGITS}g}")


def write_number(value: Fraction) -> str:
    """A number as a text: in four digits where it has no more."""
    return (
        f"{float(value):.{_TEXT_DIGITS}g}" if value == round_to_text_digits(value) else str(value)
    )


def list_slider_options(kind: Family, values: Values) -> list[str]:
    """The options that sliders move: the parameters of the notion, the hot options, and runs."""
    named = offered_options(kind)
    runs = ["runs"] if "runs" in named and values.get("runs", 1) != 1 else []
    fit = notion_parameters(values.get("notion"))
    hot = [
        name
        for name in reversed(kind.hot_option_names)
        if fit is None or name in fit or name not in _FIRST_BUDGET_TEXTS
    ]
    least = values.get("minimise", "loss")
    return [
        name
        for name in dict.fromkeys([*hot, *(fit or ()), *runs])
        if name in named and name != least
    ]


def notion_parameters(notion: Any) -> tuple[str, ...] | None:
    """The parameters of a notion by name; None of no notion."""
    if not isinstance(notion, str) or notion not in known_notions():
        return None
    named = notion_named(notion)
    return tuple(name for name in named.parameters if name != "delta" or named.has_delta)


def find_request_refusal(kind: Family, given: OptionTexts) -> str | None:
    """What the family says against a request, None where it takes it."""
    try:
        values = read_option_values(kind, given)
        with forbid_file_access():
            kind.make_request_from_values({**values, "check": "audit"})
    except (WorkbenchError, ValueError, TypeError) as error:
        return str(error)
    return None


def classify_missing_options(kind: Family, given: OptionTexts) -> View:
    """Options of a page that are not given: those that cannot be, and those that can be given instead of others."""
    unfit = []
    instead = {}
    fit = notion_parameters(
        given.get("notion") or getattr(offered_options(kind).get("notion"), "default", None)
    )
    for name, option in offered_options(kind).items():
        if given.get(name) not in (*EMPTY_TEXTS, False):
            continue
        if fit is not None and name in _FIRST_BUDGET_TEXTS and name not in fit:
            unfit.append(name)
            continue
        refused = _find_option_refusal(kind, given, option)
        subject = re.match(r"(\w+) must be (?:given where|left out|0 when)", refused or "")
        if (
            refused is None
            or not _UNFIT_SENTENCE.search(refused)
            or (subject and subject[1] != name)
        ):
            continue
        others = [other for other in given if other != name and re.search(rf"\b{other}\b", refused)]
        if others and re.search("exactly one|not both|left out with|given without", refused):
            instead[name] = others
        else:
            unfit.append(name)
    return {"unfit": unfit, "instead": instead}


def _find_option_refusal(kind: Family, given: OptionTexts, option: Option) -> str | None:
    """What is refused against the most fitting of some values of an option; None where one is taken."""
    words: Iterable[Any] = [word for word in list_choices(option) if word != option.default][:3]
    refusals = []
    for value in words or [
        value for value in _TRIAL_VALUES if (value is True) == (option.kind is bool)
    ]:
        sentence = find_request_refusal(kind, {**given, option.name: value})
        if sentence is None:
            return None
        refusals.append(sentence)
        if _UNFIT_SENTENCE.search(sentence):
            break
    return next(
        (sentence for sentence in refusals if _UNFIT_SENTENCE.search(sentence)),
        refusals[0] if refusals else None,
    )


def adapt_request(
    kind: Family, given: OptionTexts, changed: str, limit: str | None = None
) -> OptionTexts:
    """A request after one option changed: what no longer fits is left out, what is then missing begins somewhere.

    limit: the largest loss to begin with, where another thing is minimised.
    """
    begin = {**_FIRST_BUDGET_TEXTS, "max_loss": limit or "1"}
    taken = {name: value for name, value in given.items() if value not in EMPTY_TEXTS}
    if changed == "notion" and (fit := notion_parameters(taken.get("notion"))) is not None:
        taken = {
            name: value
            for name, value in taken.items()
            if name not in _FIRST_BUDGET_TEXTS or name in fit
        }
    for _ in range(8):
        refused = find_request_refusal(kind, taken)
        if refused is None:
            break
        if (match := _OPTION_SENTENCE.search(refused)) is None:
            break
        name: str = match["foreign"] or match["own"]
        if name == changed:
            break
        if (
            match["must"] == "given"
            and name not in taken
            and name in begin
            and name in offered_options(kind)
        ):
            taken[name] = begin[name]
        elif match["other"] and taken.get(name) != match["other"]:
            taken[name] = match["other"]
        elif name in taken:
            del taken[name]
        else:
            break
    return taken
