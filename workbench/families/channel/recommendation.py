"""List the classes of channels that a recommendation compares: the best channel, published
mechanisms and user-defined baselines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from workbench.families.channel.family import FAMILY
from workbench.families.channel.output_cells import CONVEX_LOSSES, LINEAR_LOSSES
from workbench.families.channel.query_channels import make_certified_design
from workbench.families.channel.request import ChannelTooLarge
from workbench.pipeline.design import Design
from workbench.pipeline.published import list_entries
from workbench.pipeline.recommendation import (
    RANGE_CHANNEL,
    Candidate,
    Query,
    Value,
    evaluate_published,
    format_bits,
)
from workbench.pipeline.requirements import (
    MASS_ABOVE_RATIO,
    bounds_one_ratio,
    get_ratio_kind,
    list_ratio_notions,
)
from workbench.pipeline.user_baselines import make_baselines
from workbench.questions.finite_query import FREE

# The mechanisms of these classes are channels on the same outputs.
_CHANNEL_CLASSES = (
    "integer noise, clamped",
    "modulo noise",
    *(entry.name for entry in FAMILY.published_mechanisms()),
)
_QUESTION_OPTIONS = ("answers", "places", "outputs", "max_shift", "neighbours", "directed", "prior")
# The recommended class has the smallest complexity among classes of equal loss.
_BEST_CHANNEL_COMPLEXITY = 3


def candidates(query: Query) -> Iterable[Candidate]:
    """Yield the best channel, and every baseline at the smallest parameter that the budget allows.

    Args:
        query: a finite query.
    """
    try:
        yield _make_best_channel(query)
    except ChannelTooLarge as error:
        yield Candidate("best channel", reason=str(error))
    # Functions of the user are left out, because a copy of the query for another process cannot
    # contain them.
    design = partial(make_certified_design, replace(query, user_baselines=()))
    for entry in list_entries(FAMILY, make_baselines(query.user_baselines, FAMILY.name)):
        if not entry.serves(query):
            continue
        evaluate = partial(evaluate_published, entry, query, design)
        if entry.package:
            yield Candidate(entry.name, f"{entry.package} baseline", evaluate)
            continue
        use = "uses the prior" if entry.with_prior else "does not use the prior"
        note = f"published ({entry.source}), {use}"
        complexity = int(entry.name != "randomized response")
        yield Candidate(entry.name, note, evaluate, complexity=complexity)


def real_candidates(query: Query) -> Iterable[Candidate]:
    """Yield the best channel on cells of a range.

    Args:
        query: a query with real answers.
    """
    note = f"biased; designed for {query.range_query.prior_text} on the range; chooses its outputs"
    make_request = partial(
        query.make_request, FAMILY, query.question, loss=query.aim.loss, **query.budget_options
    )
    yield Candidate.from_request(
        RANGE_CHANNEL, note, make_request, query.time, _read_range_value, supports_runs=True
    )


def _make_best_channel(query: Query) -> Candidate:
    """Return the class of all channels. Raises ChannelTooLarge."""
    listing_reason = _explain_listed_outputs(query)
    question = query.question
    if listing_reason is None:
        question = question.with_free_outputs()
    is_free = question.has_free_outputs
    named_loss = query.losses.named_loss
    request = query.make_request(FAMILY, question, loss=query.aim.loss, **query.budget_options)
    prior = "the worst input" if query.question.prior is None else "the prior"
    note = f"designed for {prior}"
    if not is_free:
        note += f"; publishes only the outputs, {format_bits(question.m)}{listing_reason}"
    elif named_loss is None:
        note += "; the loss is read as linear between them"
    contained_classes = _CHANNEL_CLASSES
    command_options = {}
    read_value: Callable[[Design, bool], Value] = Value.from_design
    if is_free:
        contained_classes = (*_CHANNEL_CLASSES, "RR-on-Bins")
        command_options["outputs"] = FREE
        read_value = _read_free_outputs_value
    loss_text = (query.option_texts or {}).get("loss")
    if named_loss is not None:
        loss_text = named_loss.name
    command = query.design_command("channel", *_QUESTION_OPTIONS, **command_options, loss=loss_text)
    return Candidate.from_request(
        "best channel",
        note,
        lambda: request,
        query.time,
        read_value,
        contains=contained_classes,
        complexity=_BEST_CHANNEL_COMPLEXITY,
        finds_least_epsilon=True,
        supports_runs=True,
        command=command,
    )


def _explain_listed_outputs(query: Query) -> str | None:
    """Return why a channel publishes the listed outputs only, as the end of a note.

    None if it may publish any real numbers, because the bound over all of them is proven. An empty
    text if the user listed the outputs, if answers are not numbers, or if other outputs cannot
    reduce the loss.
    """
    question = query.question
    named_loss = query.losses.named_loss
    notion = query.claim.notion
    are_outputs_given = (
        "outputs" in (query.option_texts or {}) or question.outputs != question.inputs
    )
    is_error_rate = named_loss is not None and named_loss.kind == "error-rate"
    if are_outputs_given or question.numbers is None or is_error_rate:
        return ""
    if (
        query.claim.delta
        and bounds_one_ratio(notion)
        and get_ratio_kind(notion) == MASS_ABOVE_RATIO
    ):
        return f" (randomising between two others may break {notion.name})"
    has_convex_loss = named_loss is not None and named_loss.kind in CONVEX_LOSSES
    if isinstance(query.aim.loss, tuple) or has_convex_loss:
        if notion.name in list_ratio_notions():
            return None
        if named_loss is None or named_loss.kind in LINEAR_LOSSES:
            # No output between the listed ones has a smaller loss.
            return ""
        return (
            f" (under {notion.name} outputs are listed; values between them may have a smaller "
            "loss)"
        )
    largest_step = max(b - a for a, b in pairwise(sorted(question.numbers[1])))
    return (
        " (if the loss changes by at most s a unit, other outputs between them reduce it by at "
        f"most {float(largest_step) / 2:g} s)"
    )


def _read_free_outputs_value(design: Design, is_stopped: bool) -> Value:
    """Return the value of a design, with a note on the outputs that it chose."""
    used_count = FAMILY.extra_columns(design)["outputs_used"]
    note = f"{FAMILY.describe_outputs(design)}, {format_bits(used_count)}"
    return Value.from_design(design, is_stopped, note)


def _read_range_value(design: Design, is_stopped: bool) -> Value:
    """Return the value of a design of a range, with its first note."""
    return Value.from_design(design, is_stopped, design.words[0])
