"""List the classes of channels that a recommendation compares: the best channel, published
mechanisms and user-defined baselines.

A class is one kind of mechanism and one row of the table of `workbench recommend`. A `Candidate`
holds its name, its notes, and a function that computes its loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from workbench.families.channel.family import FAMILY
from workbench.families.channel.output_cells import CONVEX_LOSSES, LINEAR_LOSSES
from workbench.families.channel.query_channels import make_certified_design
from workbench.families.channel.request import ChannelTooLarge
from workbench.models.oracles.line_noise import POWERS, staircase_reals
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
    is_hockey_stick,
    list_ratio_notions,
)
from workbench.pipeline.user_baselines import make_baselines
from workbench.questions.finite_query import FREE
from workbench.questions.range_query import MAX_CELLS

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
    if _is_noise_better(query):
        command = query.design_command("channel", "range", "sensitivity", "prior", "loss")
        reason = (
            f"not tried, because its loss on at most {MAX_CELLS} cells is larger than that of real "
            "noise"
        )
        if command is not None:
            reason += f" ({command} designs it)"
        yield Candidate(RANGE_CHANNEL, reason=reason)
        return
    note = f"biased; designed for {query.range_query.prior_text} on the range; chooses its outputs"
    make_request = partial(
        query.make_request, FAMILY, query.question, loss=query.aim.loss, **query.budget_options
    )
    yield Candidate.from_request(
        RANGE_CHANNEL, note, make_request, query.time, _read_range_value, supports_runs=True
    )


def bound_loss_on_cells(loss: str, pure_epsilon: float | None) -> float:
    """Return a lower bound on the expected loss of a channel on cells of the width 1.

    A channel publishes one law for all answers of a cell, and the answers are uniform on a cell. So
    the absolute loss is at least 1/4 and the squared loss at least 1/12, by the distance from the
    middle of the cell. Under pure DP consider an output at the distance s from the middle of a cell
    and 1 - s from that of the next one, which is as likely. Given the output, the cell has a
    probability of at most p = e^ε/(1 + e^ε). So the mean absolute loss of both cells is at least

        min_s p (1/4 + s²) + (1 - p) (1 - s) = p/4 + (1 - p) - (1 - p)²/4p

    and the mean squared loss is at least 1/12 + p (1 - p).

    Args:
        loss: "absolute" or "squared".
        pure_epsilon: ε of pure DP if all cells are equally likely. None in all other cases.
    """
    p = 1.0
    if pure_epsilon is not None:
        p = 1 / (1 + math.exp(-pure_epsilon))
    if loss == "absolute":
        return p / 4 + (1 - p) - (1 - p) ** 2 / (4 * p)
    return 1 / 12 + p * (1 - p)


def _is_noise_better(query: Query) -> bool:
    """Return whether noise on the reals has a smaller loss than every channel on cells of a range.

    The noise is the staircase at δ = 0, which is private at every δ. The grid has the largest
    number of cells that is allowed.
    """
    claim = query.claim
    real_range = query.range_query
    is_loss_at_epsilon = query.aim.max_loss is None and query.aim.runs == 1
    if not is_loss_at_epsilon or not is_hockey_stick(claim.notion):
        return False
    if real_range.weights is None or real_range.has_user_cells:
        return False
    epsilon = float(claim.epsilon)
    is_pure = real_range.uniform and not claim.delta
    cell_loss = bound_loss_on_cells(query.aim.loss, epsilon if is_pure else None)
    power = POWERS[query.aim.loss]
    channel_loss = cell_loss * float((real_range.high - real_range.low) / MAX_CELLS) ** power
    noise_loss = staircase_reals(epsilon, float(real_range.sensitivity), query.aim.loss)
    return channel_loss > noise_loss


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
    _, outputs = query.question.numbers
    largest_step = max(b - a for a, b in pairwise(sorted(outputs)))
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
