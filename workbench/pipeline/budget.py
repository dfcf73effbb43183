"""Format the budget of a design for reports and for JSON."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.exact.numbers import to_jsonable
from workbench.exact.objects import Record
from workbench.io.shown import Facts
from workbench.pipeline.design import Design, format_exact_values


def list_budget_facts(design: Design) -> Facts:
    """Return the rows of a report on the requested budget, its audit, and several runs.

    Args:
        design: The `Design`, with its request and mechanism.
    """
    template = "DP delta {dp_delta}, pure epsilon {pure_epsilon}"
    if design.request.claim.notion.quantity == "pdp_delta":
        template = f"PDP delta {{pdp_delta}}, {template}"
    verified = template.format(**format_exact_values(design))
    return [
        ("requested", design.request.budget_text),
        ("verified", verified + describe_audited_epsilon(design)),
        *list_composition_facts(design),
    ]


def describe_audited_epsilon(design: Design) -> str:
    """Return the ε at which the audit states δ, as text. Empty if it is the ε of the request.

    Args:
        design: The `Design`, with its request and mechanism.
    """
    if design.claim.is_epsilon_delta:
        return ""
    return f" (at epsilon = {float(design.privacy.epsilon or 0):g})"


def list_composition_facts(design: Design) -> Facts:
    """Return the row of a report on several runs, none for one run.

    Args:
        design: The `Design`, with its request and mechanism.
    """
    composed = design.details.get("composed")
    if composed is None:
        return []
    text = "{runs} runs: delta at most {delta!r} at epsilon = {epsilon:g} (proven)"
    return [("composed", text.format(**composed))]


def budget_to_json(design: Design) -> Record:
    """Return the budget for JSON, and for a claim in ε and δ also what is minimised.

    Args:
        design: The `Design`, with its request and mechanism.
    """
    claim = design.claim  # The budget that the mechanism is audited for.
    request_claim = design.request.claim  # The budget that was requested, for all runs together.
    aim = design.request.aim
    if aim.runs == 1 and not claim.is_epsilon_delta:
        return {**claim.to_dict()}
    entries = {
        "notion": request_claim.notion.name,
        "minimise": aim.minimise,
        "max_loss": to_jsonable(aim.max_loss),
    }
    if aim.runs > 1:
        entries["runs"] = aim.runs
    epsilon = request_claim.epsilon
    if isinstance(epsilon, Mapping):
        epsilon = claim.epsilon
    delta = request_claim.delta
    # If δ is minimised, the claim has the δ that is reached and the request only its upper limit.
    if aim.runs == 1:
        delta = claim.delta
    return entries | {"epsilon": to_jsonable(epsilon), "delta": float(delta or 0)}
