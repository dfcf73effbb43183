"""How reports and JSON show the budget of a design."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.exact.numbers import to_jsonable
from workbench.exact.objects import Record
from workbench.io.shown import Facts
from workbench.pipeline.design import Design, format_exact_values


def list_budget_facts(design: Design) -> Facts:
    """What was asked of a design, its exact audit, and the composition of many runs, as rows of a report."""
    words = "PDP delta {pdp_delta}, DP delta {dp_delta}, pure epsilon {pure_epsilon}".format(
        **format_exact_values(design)
    )
    return [
        ("asked", design.request.budget_text),
        ("exact", words + describe_audited_epsilon(design)),
        *list_composition_facts(design),
    ]


def describe_audited_epsilon(design: Design) -> str:
    """At which ε the exact values are, where that is not the one of the request."""
    return (
        ""
        if design.claim.is_epsilon_delta
        else f" (at epsilon = {float(design.privacy.epsilon or 0):g})"
    )


def list_composition_facts(design: Design) -> Facts:
    """The composition in a report; nothing of one run."""
    composed = design.details.get("composed")
    if composed is None:
        return []
    return [
        (
            "composed",
            "{runs} runs: delta at most {delta!r} at epsilon = {epsilon:g} (proven)".format(
                **composed
            ),
        )
    ]


def budget_to_json(design: Design) -> Record:
    """The budget and what is minimised, for JSON; of many runs with the composition that the exact audit proved."""
    claim = design.claim
    stated = design.request.claim
    aim = design.request.aim
    if aim.runs == 1 and not claim.is_epsilon_delta:
        return {**claim.to_dict()}
    entries = {
        "notion": stated.notion.name,
        "minimise": aim.minimise,
        "max_loss": to_jsonable(aim.max_loss),
    }
    if aim.runs > 1:
        entries["runs"] = aim.runs
    epsilon = claim.epsilon if isinstance(stated.epsilon, Mapping) else stated.epsilon
    delta = claim.delta if aim.runs == 1 else stated.delta
    return entries | {"epsilon": to_jsonable(epsilon), "delta": float(delta or 0)}
