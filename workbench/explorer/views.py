"""Convert a design to plain data for the explorer's page.

The data are its loss, its class, its law, and the gain of an attacker. A fact is a pair of a name
and a text, such as ("expected loss", "0.35").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.exact.numbers import round_up
from workbench.explorer import figures
from workbench.explorer.given import (
    View,
    name_notion,
    write_command_line,
    write_python_call,
)
from workbench.explorer.page_request import PageRequest
from workbench.mechanisms.mechanism import as_mechanism

if TYPE_CHECKING:
    from workbench.pipeline.design import Design

DECODER_LABEL = "ε towards the decoder"  # The objective of noise that is sent in few bits.

# Column of a design's row -> the name of the objective that it contains.
_OBJECTIVE_LABELS = {
    "mae": "mean absolute error",
    "mse": "mean squared error",
    "ell": "minimal noise parameter ℓ",
    "decoder_epsilon": DECODER_LABEL,
}

# Label of a mean loss -> what the name of the loss is followed by.
_LOSS_SUFFIXES = {"expected loss": "", "worst-case loss": " of the worst answer"}

# Label of a fact -> its label on the page. "": the fact is left out.
_FACT_LABELS = {
    "ell": "",
    "delta0": "",
    "decoder_epsilon": DECODER_LABEL,
    "database_epsilon": "ε of the data",
    "mse": "mean squared error",
    "mean_bits": "mean bits of a number",
}

# Words in facts -> the same in the words of the page.
_FACT_WORDS = {
    "the least ell": f"the least {DECODER_LABEL}",
    "search over ell": "search over step sizes",
    "this ell": "this step size",
    "an ell so close to 1": "so small a step",
}

# Facts whose numbers are no objective.
_BOUND_LABELS = ("bound", "lower bound")

_MAX_RISK_MASSES = 150_000  # The gain of an attacker is omitted for more probabilities than this.


def make_design_view(
    design: Design, request: PageRequest, *, proving: bool = False, is_final: bool = False
) -> View:
    """Return a design as plain data.

    It contains nothing that is not in the design's row, facts or tables.

    Args:
        design: The design to show.
        request: The request that it answers.
        proving: Whether its proof follows. Facts about the solver's rounding are then omitted.
        is_final: Whether no better design follows. The whole law is then included, which the page
            can save.

    Returns:
        Texts: "heading", "title", "note", "reason" (why there is no mechanism), "status", "label"
        (name of the objective), "command", "python". Numbers: "objective", "bound". Flags:
        "certified", "private", "proving" (a proof follows), "certifies" (the family does),
        "unfinished" (the loss may not be minimal). Collections: "facts" ((name, text) pairs),
        "row", "figures", "given" (the option texts), "hot" (the values of the sliders).
    """
    family = request.family
    row = design.row()
    facts = word_facts(design)
    is_certified = design.certificate is not None
    is_unproven = family.certifies and not is_certified
    notes = [text for label, text in facts if label == "note" and text.startswith("Not proven")]
    if is_unproven and proving:
        facts = [fact for fact in facts if not _is_about_rounding(fact)]
    reason = None
    if row["objective"] is None:
        reason = _find_failure_reason(design)
    has_whole_law = is_final and (is_certified or not family.certifies)
    return {
        "heading": design.heading,
        "title": family.title,
        "facts": facts,
        "note": next(iter(notes), ""),
        "row": row,
        "objective": row["objective"],
        "label": find_objective_label(design),
        "reason": reason,
        "certified": is_certified,
        "proving": is_unproven and proving,
        "private": design.private,
        "certifies": family.certifies,
        "status": design.status,
        "unfinished": is_unproven and _is_unfinished(design),
        "bound": design.bound,
        "figures": figures.make_law_figures(design, is_whole=has_whole_law),
        "given": dict(request.texts),
        "hot": request.slider_values,
        "command": write_command_line(family, request.texts),
        "python": write_python_call(family, request.texts),
    }


def word_facts(design: Design) -> list[tuple[str, str]]:
    """Return the facts of a design in the words of the page, with the full name of the notion.

    Args:
        design: Any design.
    """
    facts = []
    notion = design.claim.notion.name
    for label, text in design.facts():
        shown_label = _FACT_LABELS.get(label, label)
        if not shown_label:
            continue
        for word, replacement in _FACT_WORDS.items():
            text = text.replace(word, replacement)
        if label == "requested" and text.startswith(f"{notion},"):
            text = f"{name_notion(notion)}{text.removeprefix(notion)}"
        facts.append((shown_label, text))
    return facts


def _is_unfinished(design: Design) -> bool:
    """Return whether the search was stopped, so that the loss may not be minimal."""
    has_unproven_note = any(text.startswith(("Not proven", "Preliminary")) for text in design.words)
    return has_unproven_note or design.status not in ("optimal", "found", "infeasible")


def _is_about_rounding(fact: tuple[str, str]) -> bool:
    """Return whether a fact of an uncertified design is about the rounding of the solver."""
    label, text = fact
    return label == "proof" or (label == "note" and not text.startswith("Not proven"))


def find_objective_label(design: Design) -> str:
    """Return the name of the objective: the label of the fact that states its value.

    A design does not name its objective, so the facts and columns are searched for the value. A
    fact with all digits comes first, then a rounded one, then a column.

    Args:
        design: Any design.

    Returns:
        The label, for example "mean squared error"; "objective" if no fact or column has the value.
    """
    facts = [fact for fact in design.facts() if fact[0] not in _BOUND_LABELS]
    rounded_text = f"{design.objective:.9g}"
    labels = [label for label, text in facts if text == repr(design.objective)]
    for label, text in facts:
        if text.startswith(rounded_text) and label != "objective":
            labels.append(label)
    for column, value in design.family.extra_columns(design).items():
        if value == design.objective:
            labels.append(column)
    label = next(iter(labels), "objective")
    loss_name = figures.LOSS_NAMES.get(str(getattr(design.request.aim, "loss", None)))
    if label in _LOSS_SUFFIXES and loss_name is not None:
        return f"{loss_name}{_LOSS_SUFFIXES[label]}"
    return _OBJECTIVE_LABELS.get(label, label)


def _find_failure_reason(design: Design) -> str:
    """Return why there is no mechanism, as the command line says it."""
    reasons = [text for label, text in design.facts() if label == "not reachable"]
    return next(iter(reasons), str(design.row()["failure"] or design.status))


def compute_attacker_gains(mechanism: Any) -> View | None:
    """Return the gain of an attacker who distinguishes neighbours, rounded up.

    Args:
        mechanism: A mechanism with exact laws.

    Returns:
        "guess": the largest probability of guessing which of two neighbours is the input.
        "advantage", "factor" (None if unbounded) and "posterior": the fields advantage,
        bayes_factor and posterior of `workbench.privacy.risk.risk`. None if this takes too long.
    """
    from workbench.privacy.risk import risk

    subject = as_mechanism(mechanism)
    mass_count = 0
    for comparison in subject.comparisons():
        mass_count += len(comparison.p)
        if mass_count > _MAX_RISK_MASSES:
            return None
    risks = risk(subject)
    return {
        "guess": round_up(risks.guess),
        "advantage": round_up(risks.advantage),
        "factor": None if risks.bayes_factor is None else round_up(risks.bayes_factor),
        "posterior": risks.posterior,
    }
