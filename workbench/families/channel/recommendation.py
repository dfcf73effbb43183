"""List the classes of channels that a recommendation compares: the best channel, published
mechanisms and user-defined baselines.

A class is one kind of mechanism and one row of the table of `workbench recommend`. A `Candidate`
holds its name, its notes, and a function that computes its loss.
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

# The mechanisms of these classes are channels on the outputs of the query.
_CHANNEL_CLASSES = (
    "integer noise, clamped",
    "modulo noise",
    *(entry.name for entry in FAMILY.published_mechanisms()),
)
_QUESTION_OPTIONS = ("answers", "places", "outputs", "max_shift", "neighbours", "directed", "prior")
# Among classes of equal loss the one of smallest complexity is recommended. Published mechanisms
# have 0 or 1, so the best channel, which has no formula, comes after them.
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
        if entry.parameter_meaning:
            note += f"; {entry.parameter_meaning}"
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
    question = query.question
    if _can_choose_outputs(query):
        question = question.with_free_outputs()
    is_free = question.has_free_outputs
    named_loss = query.losses.named_loss
    request = query.make_request(FAMILY, question, loss=query.aim.loss, **query.budget_options)
    prior = "the worst input" if query.question.prior is None else "the prior"
    note = f"designed for {prior}"
    if not is_free:
        note += f"; publishes only the outputs, {format_bits(question.m)}"
        note += _describe_unlisted_outputs(query)
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
        request=lambda: request,
        time=query.time,
        read=read_value,
        contains=contained_classes,
        complexity=_BEST_CHANNEL_COMPLEXITY,
        finds_least_epsilon=True,
        supports_runs=True,
        command=command,
    )


def _can_choose_outputs(query: Query) -> bool:
    """Return whether the best channel of a query may publish any real numbers.

    This is the case if other outputs than the listed ones could have a smaller loss, and if the
    lower bound over all real outputs is proven.
    """
    if _are_outputs_final(query) or _bounds_mass_above_ratio(query):
        return False
    return _has_proven_loss(query) and query.claim.notion.name in list_ratio_notions()


def _describe_unlisted_outputs(query: Query) -> str:
    """Return the end of a note, in parentheses: how much outputs beside the listed ones could save.

    Empty if they cannot reduce the loss, or if the user chose the outputs.
    """
    named_loss = query.losses.named_loss
    notion = query.claim.notion
    if _are_outputs_final(query):
        return ""
    if _bounds_mass_above_ratio(query):
        return f" (publishing one of two neighbouring values at random may break {notion.name})"
    if _has_proven_loss(query):
        if named_loss is None or named_loss.kind in LINEAR_LOSSES:
            # No output between the listed ones has a smaller loss.
            return ""
        return (
            f" (under {notion.name} outputs are listed; values between them may have a smaller "
            "loss)"
        )
    assert query.question.numbers is not None
    largest_step = max(b - a for a, b in pairwise(sorted(query.question.numbers[1])))
    return (
        " (if the loss changes by at most s a unit, other outputs between them reduce it by at "
        f"most {float(largest_step) / 2:g} s)"
    )


def _are_outputs_final(query: Query) -> bool:
    """Return whether the listed outputs are the only ones to consider.

    The user listed them, or answers are no numbers, or the loss is the error rate: every output
    that is no answer is then always wrong.
    """
    question = query.question
    named_loss = query.losses.named_loss
    are_outputs_given = (
        "outputs" in (query.option_texts or {}) or question.outputs != question.inputs
    )
    is_error_rate = named_loss is not None and named_loss.kind == "error-rate"
    return are_outputs_given or question.numbers is None or is_error_rate


def _bounds_mass_above_ratio(query: Query) -> bool:
    """Return whether the budget is one of pdp with δ > 0, which post-processing does not preserve.

    The proof of the bound over all real outputs uses post-processing.
    """
    notion = query.claim.notion
    return bool(
        query.claim.delta
        and bounds_one_ratio(notion)
        and get_ratio_kind(notion) == MASS_ABOVE_RATIO
    )


def _has_proven_loss(query: Query) -> bool:
    """Return whether the loss is a table or one of the losses of a proof over all real outputs."""
    named_loss = query.losses.named_loss
    if isinstance(query.aim.loss, tuple):
        return True
    return named_loss is not None and named_loss.kind in CONVEX_LOSSES


def _read_free_outputs_value(design: Design, is_stopped: bool) -> Value:
    """Return the value of a design, with a note on the outputs that it chose."""
    used_count = FAMILY.extra_columns(design)["outputs_used"]
    note = f"{FAMILY.describe_outputs(design)}, {format_bits(used_count)}"
    return Value.from_design(design, is_stopped, note)


def _read_range_value(design: Design, is_stopped: bool) -> Value:
    """Return the value of a design of a range, with its first note."""
    return Value.from_design(design, is_stopped, design.words[0])
