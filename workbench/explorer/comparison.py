"""Describe a comparison of mechanisms (`workbench.recommend`) as plain data, in the field's words.

The first page of the explorer and `workbench recommend --html` show the same data:

    lead        the answer in words: the best mechanism, its error, and a simpler mechanism
    assumption  what the errors assume about the answers
    quantity    the name of the objective, such as "mean squared error"
    rows        the rows of `recommend`. Each row also has "name" (the mechanism in words), "remark"
                (the notes in words) and "state" (the fragment of the address of its page)
    details     further sentences

Losses are rounded up and bounds are rounded down, so that no rounded number claims too much.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.objects import Record
from workbench.explorer import figures, views
from workbench.explorer.given import View, encode_address_fragment, read_arguments
from workbench.explorer.page_request import PageRequest
from workbench.io.result import Row
from workbench.pipeline.family import Family
from workbench.pipeline.recommendation import Query
from workbench.pipeline.registry import get_family, list_families
from workbench.recommendation.recommend import COLUMNS, Recommendation
from workbench.recommendation.wording import STOPPED_NOTE, select_certified

# Class of `recommend` -> its mechanism in words. Other classes keep their names.
_MECHANISM_NAMES = {
    "best channel": "an optimal table of probabilities",
    "channel on a grid": "an optimal table of probabilities on a grid",
    "integer noise, clamped": "optimal integer noise, clamped to the range",
    "real noise": "optimal noise",
    "real noise, clamped": "optimal noise, clamped to the range",
    "modulo noise": "optimal noise modulo the number of answers",
    "clamped geometric": "geometric (discrete Laplace) noise, clamped",
    "clamped truncated geometric": "truncated geometric (discrete Laplace) noise, clamped",
    "clamped discrete Gaussian": "discrete Gaussian noise, clamped",
    "clamped staircase": "staircase noise, clamped",
    "exponential": "exponential mechanism",
    "Laplace": "Laplace noise",
    "truncated Laplace": "truncated Laplace noise",
    "Gaussian": "Gaussian noise",
    "uniform": "uniform noise",
    "staircase (pure)": "staircase noise",
    "quantizer, 2 outputs": "optimal quantizer with 2 outputs",
    "quantizer, 4 outputs": "optimal quantizer with 4 outputs",
    "piecewise": "piecewise mechanism",
    "optimal piecewise": "optimal piecewise mechanism",
    "hybrid": "hybrid mechanism",
    "Duchi et al.": "mechanism of Duchi et al.",
}
# The best known mechanisms, which the lead compares with the best one.
_SIMPLE_CLASSES = ("clamped geometric", "Laplace", "randomized response")
# The classes of all mechanisms that answer a query with finitely many or with real answers.
_FINITE_CLASS = "best channel"
_RANGE_CLASS = "channel on a grid"
_ANSWER_LOSSES = ("absolute", "error-rate")  # The best outputs for these losses are answers.
# Options of noise on a range that the first page can express, besides the budget and the loss.
_CLAMPED_NOISE_OPTIONS = {"on", "clamp", "sensitivity"}
_DEFAULT_TEXTS = ("dp", "free")  # The notion and the outputs of the first page.
# Notes of `recommend` -> the same in words.
_REMARK_WORDS = {
    "designed for the worst input": "designed for the worst answer",
    ", does not use the prior": "",
    "does not use the prior; ": "",
}
_PRIOR_NOTE = "designed for the prior"
_UNIFORM_REMARK = "assumes that all answers are equally likely"
# The beginnings of sentences of `recommend` that the table and the assumption say as well.
_REPLACED_SENTENCES = ("If the prior is wrong,", "These classes are special cases")
# Column of a row -> its label among the facts of a class.
_ROW_FACTS = {
    "bound": "lower bound",
    "rmse": "root mean squared error",
    "worst": "loss of the worst answer",
    "bias": "largest bias",
    "bits": "bits of an output",
}
_LOSS_DIGITS = 4  # A loss in a sentence has this many significant digits.
_BOUND_DIGITS = 5  # A lower bound in a sentence has one digit more, so that the two differ.
_ERROR_DIGITS = 3  # The typical error ±1.34 has this many significant digits.
_SHARE_DIGITS = 2  # "0.63 % more" has this many significant digits.
_EQUAL_PERCENT = 1e-6  # A loss that is larger by less than this percentage is called the same.
# A quotient this close to an integer, as a share of it, is that integer but for rounding.
_DIVISION_ROUNDING = 1e-12
_MAX_PERCENT = 100  # A larger difference is written as a multiple, such as "7.5 times as much".


def round_loss(value: float, digits: int = _LOSS_DIGITS, *, is_bound: bool = False) -> str:
    """Write a loss with few digits, rounded up, or a lower bound, rounded down.

    Args:
        value: A loss >= 0.
        digits: The number of significant digits.
        is_bound: Whether the value is a lower bound.
    """
    if not value:
        return "0"
    # The last digit that is kept counts units of 10^exponent.
    exponent = math.floor(math.log10(abs(value))) + 1 - digits
    scaled = value / 10.0**exponent
    # Rounding errors of the division must not change a number that has few digits already.
    nearest = round(scaled)
    if not math.isclose(scaled, nearest, rel_tol=_DIVISION_ROUNDING):
        nearest = math.floor(scaled) if is_bound else math.ceil(scaled)
    return f"{nearest * 10.0**exponent:.{digits}g}"


def name_mechanism(class_name: str) -> str:
    """Return the mechanism of a class in words.

    Args:
        class_name: The name of a class of `recommend`.
    """
    return _MECHANISM_NAMES.get(class_name, class_name)


def describe_comparison(result: Recommendation) -> View:
    """Describe a comparison as plain data.

    Args:
        result: The comparison.

    Returns:
        The keys of the module's docstring, and those of `Recommendation.to_dict`.
    """
    query = result.query
    assert query is not None
    is_uniform = _has_equal_weights(query)
    quantity = "ε"
    if query.aim.max_loss is None:
        quantity = figures.LOSS_NAMES.get(str(query.aim.loss), "expected loss")
        if query.question.prior is None:
            quantity = f"{quantity} of the worst answer"
    table = result.to_dict()
    rows = [_describe_row(row, is_uniform=is_uniform) for row in table["rows"]]
    best = next((row for row in rows if row["class"] == result.chosen), None)
    if best is None:
        best = next(iter(select_certified(rows)), None)
    lead = "No mechanism is proven to be private for this query."
    details = list(result.sentences)
    if best is not None:
        lead = _write_lead(query, best, rows, quantity)
        # The lead and the assumption replace these sentences.
        replaced = (*_REPLACED_SENTENCES, f"Use the {best['class']}:")
        details = [
            text.replace(" it publishes", " the best mechanism publishes")
            for text in details
            if not text.startswith(replaced)
        ]
    return {
        **table,
        "rows": rows,
        "lead": lead,
        "assumption": _describe_assumption(best, quantity) if is_uniform else "",
        "quantity": quantity,
        "details": details,
        "stopped": any(STOPPED_NOTE in (row["notes"] or "") for row in rows),
    }


def _has_equal_weights(query: Query) -> bool:
    """Return whether the prior of a query has equal weights."""
    if query.has_real_answers:
        return query.range_query.uniform
    return query.question.prior is not None and len(set(query.question.prior)) == 1


def _describe_row(row: Row, *, is_uniform: bool) -> Row:
    """Return a row of `recommend` with its name, its remark and its address."""
    remark = row["notes"]
    for note, plain_words in _REMARK_WORDS.items():
        remark = remark.replace(note, plain_words)
    if is_uniform:
        remark = remark.replace(_PRIOR_NOTE, _UNIFORM_REMARK)
    address = read_design_command(row["command"] or "")
    state = None
    if address is not None:
        family, texts = address
        state = encode_address_fragment(family.name, texts)
    return {**row, "name": name_mechanism(row["class"]), "remark": remark, "state": state}


def read_design_command(command: str) -> tuple[Family, Record] | None:
    """Read a command `workbench design FAMILY ...`.

    Args:
        command: A command line.

    Returns:
        The family and the texts of its options. None for another command.
    """
    # The first word is the name of the program.
    _, *arguments = shlex.split(command) or [""]
    names = {family.name for family in list_families()}
    if len(arguments) < 2 or arguments[0] != "design" or arguments[1] not in names:
        return None
    family = get_family(arguments[1])
    try:
        return family, read_arguments(family, arguments[2:])
    except WorkbenchError:
        # A page does not offer an option of the command.
        return None


def link_published(request: PageRequest, names: Sequence[str]) -> dict[str, str]:
    """Return the addresses of the pages of published mechanisms at the same budget.

    Args:
        request: A request of a family page.
        names: The names of published mechanisms in the frontier of the family.

    Returns:
        Name -> fragment of the address. It is empty if the first page cannot express the request.
    """
    texts = {name: text for name, text in request.texts.items() if text not in _DEFAULT_TEXTS}
    budget = {"epsilon": texts.pop("epsilon", ""), "delta": texts.pop("delta", "0")}
    loss = texts.pop("loss", "")
    prefix = ""
    if texts.keys() == {"answers", "max_shift"}:
        query = {"form": "numbers", **texts}
    elif "clamp" in texts and texts.keys() <= _CLAMPED_NOISE_OPTIONS:
        is_integer = texts.get("on") == "integers"
        prefix = "clamped " if is_integer else ""
        query = {
            "form": "numbers" if is_integer else "range",
            "answers" if is_integer else "range": texts["clamp"],
            "max_shift": texts.get("sensitivity", "1"),
        }
    else:
        return {}
    # A family without these options, such as one of a plug-in, may also have no loss.
    budget["loss"] = loss or request.family.get_option("loss").default
    return {name: urlencode({**query, **budget, "class": f"{prefix}{name}"}) for name in names}


def _write_lead(query: Query, best: Row, rows: Sequence[Row], quantity: str) -> str:
    """Return the answer in words: the best mechanism, and a simpler one."""
    is_stopped = any(STOPPED_NOTE in row["notes"] for row in rows)
    subject = "Best found" if is_stopped else "Best"
    sentence = f"{subject}: {best['name']}, {quantity} {round_loss(best['objective'])}"
    if quantity == figures.LOSS_NAMES["squared"]:
        sentence += f" (typically ±{round_loss(math.sqrt(best['objective']), _ERROR_DIGITS)})"
    bound = best["bound"]
    bounded_kind = "no mechanism of this kind"
    for row in rows:
        if row["bound"] and _contains_every_mechanism(query, row):
            bound = row["bound"]
            bounded_kind = "no mechanism"
    if bound:
        sentence += f"; {bounded_kind} is below {round_loss(bound, _BOUND_DIGITS, is_bound=True)}"
    sentence += "."
    simple_row = _find_simple_row(best, rows)
    if simple_row is not None and best["objective"] > 0:
        name = simple_row["name"].removesuffix(", clamped")
        ratio = simple_row["objective"] / best["objective"]
        sentence += f" Simpler: {name}, {_describe_ratio(ratio)}."
    return sentence


def _contains_every_mechanism(query: Query, row: Row) -> bool:
    """Return whether the class of a row contains every mechanism that answers the query.

    The best output for an absolute error or an error rate is one of the answers. For other losses
    the class must choose its outputs.
    """
    if query.has_real_answers:
        return bool(row["class"] == _RANGE_CLASS)
    if row["class"] != _FINITE_CLASS:
        return False
    publishes_answers = query.question.outputs == query.question.inputs
    if publishes_answers and query.aim.loss in _ANSWER_LOSSES:
        return True
    return publishes_answers and "--outputs free" in (row["command"] or "")


def _find_simple_row(best: Row, rows: Sequence[Row]) -> Row | None:
    """Return the row of the best known mechanism, if it is certified and not the best one."""
    if best["class"] in _SIMPLE_CLASSES:
        return None
    for name in _SIMPLE_CLASSES:
        for row in select_certified(rows):
            if row["class"] == name and row["objective"] >= best["objective"]:
                return row
    return None


def _describe_ratio(ratio: float) -> str:
    """Return by how much a loss exceeds the smallest one, rounded up."""
    percent = 100 * (ratio - 1)
    if percent < _EQUAL_PERCENT:
        return "the same error"
    if percent < _MAX_PERCENT:
        return f"{round_loss(percent, _SHARE_DIGITS)} % more"
    return f"{round_loss(ratio, _SHARE_DIGITS)} times as much"


def _describe_assumption(best: Row | None, quantity: str) -> str:
    """Return what the errors assume about the answers. "" without a mechanism."""
    if best is None:
        return ""
    sentence = f"The {quantity} assumes that all answers are equally likely."
    if best.get("worst") is not None:
        sentence += f" For a single answer it is at most {round_loss(best['worst'])}."
    return sentence


def describe_class(result: Recommendation, class_name: str) -> View:
    """Describe the mechanism of one class, as the board of the page shows it.

    Args:
        result: A comparison that contains the class.
        class_name: The name of the class.

    Returns:
        "view": the keys of `views.make_design_view`, and "certificate" if there is one. "profile":
        the figures of its privacy and the gain of an attacker, if it has exact laws.

    Raises:
        InvalidRequest: The class does not apply to the query.
    """
    query = result.query
    assert query is not None
    comparison = describe_comparison(result)
    row = next((row for row in comparison["rows"] if row["class"] == class_name), None)
    if row is None or row["objective"] is None:
        reason = "it is no class of the comparison" if row is None else row["notes"]
        raise InvalidRequest(f"{name_mechanism(class_name)} cannot be shown: {reason}.")
    mechanism = result.mechanisms.get(class_name)
    quantity = comparison["quantity"]
    facts = [
        (quantity, f"{row['objective']:.9g}"),
        ("remark", row["remark"]),
        ("requested", result.title),
        ("privacy proof", "certified" if row["certified"] else "not certified"),
    ]
    for column, label in _ROW_FACTS.items():
        if row.get(column) is not None:
            facts.append((label, f"{row[column]:.9g}"))
    shown_figures = []
    profile: View | None = None
    if mechanism is not None:
        figure = figures.make_law_figure(mechanism)
        if figure is not None:
            shown_figures.append(figures.add_law_table(figure, mechanism))
        profile = _describe_privacy(mechanism, query)
    view: View = {
        "heading": capitalise(row["name"]),
        "title": _UNIFORM_REMARK if comparison["assumption"] else "designed for the given weights",
        "facts": facts,
        "note": "",
        "row": {name: row[name] for name in COLUMNS},
        "objective": row["objective"],
        "label": quantity,
        "reason": None,
        "certified": bool(row["certified"]),
        "proving": False,
        "private": bool(row["certified"]),
        "certifies": True,
        "status": "found",
        "unfinished": False,
        "bound": row["bound"],
        "figures": shown_figures,
        "given": {},
        "hot": _list_budget(query),
        "command": row["command"],
        "python": _write_python_call(query, class_name),
    }
    if class_name in result.design_makers:
        certificate = result.design(class_name).certificate
        if certificate is not None:
            view["certificate"] = certificate.content().decode()
    return {"view": view, "profile": profile}


def _list_budget(query: Query) -> View:
    """Return the ε of a query, which charts mark."""
    epsilon = query.claim.epsilon
    return {"epsilon": float(epsilon)} if isinstance(epsilon, (int, Fraction)) else {}


def _write_python_call(query: Query, class_name: str) -> str:
    """Return the Python call that compares one class. "" if an option has no text."""
    texts = query.option_texts or {}
    if None in texts.values():
        return ""
    arguments = [f"{name}={text!r}" for name, text in {**texts, "only": class_name}.items()]
    return f"import workbench as wb\ntable = wb.recommend({', '.join(arguments)})"


def capitalise(text: str) -> str:
    """Return a text whose first letter is a capital.

    Args:
        text: A text. The rest of it is not changed.
    """
    return text[:1].upper() + text[1:]


def _describe_privacy(mechanism: Any, query: Query) -> View | None:
    """Return the figures of a mechanism's privacy, or None if it has no exact laws."""
    try:
        return {
            "figures": figures.make_profile_figures(mechanism, query.claim),
            "risk": views.compute_attacker_gains(mechanism),
        }
    except WorkbenchError:
        return None
