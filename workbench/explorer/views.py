"""A design as plain data for the page: its price, its class, its law, what leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.exact.numbers import round_up
from workbench.explorer import figures
from workbench.explorer.given import View, write_command_line, write_python_call
from workbench.explorer.page_request import PageRequest
from workbench.mechanisms.mechanism import as_mechanism

if TYPE_CHECKING:
    from workbench.pipeline.design import Design

_OBJECTIVE_LABELS = {"mae": "mean absolute error", "mse": "mean squared error", "ell": "least noise parameter ℓ",
           "decoder_epsilon": "ε towards the decoder"}  # fmt: skip
_MAX_RISK_MASSES = 150_000  # masses of comparisons of which the risk is told while one waits


def make_design_view(
    design: Design, request: PageRequest, *, proving: bool = False, is_final: bool = False
) -> View:
    """A design as plain data; nothing that is not in its row, its facts or its tables. proving: its proof is still to
    come, and what its raw answer misses by rounding is not told; is_final: nothing better of it follows, so that its
    whole law comes along, which the page then saves."""
    kind, given = request.family, request.texts
    row, certified, facts = design.row(), design.certificate is not None, design.facts()
    raw = kind.certifies and not certified
    return {
        "heading": design.heading,
        "title": kind.title,
        "facts": [fact for fact in facts if not (raw and proving and _is_about_rounding(fact))],
        "note": next(
            (words for name, words in facts if name == "note" and words.startswith("Not proven")),
            "",
        ),
        "row": row,
        "objective": row["objective"],
        "label": find_objective_label(design),
        "reason": None if row["objective"] is not None else _find_failure_reason(design),
        "certified": certified,
        "proving": raw and proving,
        "private": design.private,
        "certifies": kind.certifies,
        "status": design.status,
        "unfinished": raw and _is_unfinished(design),
        "bound": design.bound,
        "figures": figures.make_law_figures(
            design, is_whole=is_final and (certified or not kind.certifies)
        ),
        "given": dict(given),
        "hot": request.slider_values,
        "command": write_command_line(kind, given),
        "python": write_python_call(kind, given),
    }


def _is_unfinished(design: Design) -> bool:
    """Whether the search was stopped before its end, so that its loss may be above the least of the class."""
    has_interval = any(words.startswith(("Not proven", "Preliminary")) for words in design.words)
    return has_interval or design.status not in ("optimal", "found", "infeasible")


def _is_about_rounding(fact: tuple[str, str]) -> bool:
    """Whether a fact of an answer that is not certified yet is about the solver's rounding, which concerns nobody."""
    return fact[0] == "proof" or (fact[0] == "note" and not fact[1].startswith("Not proven"))


def find_objective_label(design: Design) -> str:
    """What the objective is called: the label of the fact that states it."""
    facts, number = (
        [fact for fact in design.facts() if fact[0] != "bound"],
        f"{design.objective:.9g}",
    )
    in_full = [label for label, words in facts if words == repr(design.objective)]
    columns = [
        name
        for name, value in design.family.extra_columns(design).items()
        if value == design.objective
    ]
    begun = [label for label, words in facts if words.startswith(number) and label != "objective"]
    words = next(iter([*in_full, *begun, *columns]), "objective")
    unsaid = words == f"least {design.request.loss_name}" and "rate" not in words
    return f"{words} loss" if unsaid else _OBJECTIVE_LABELS.get(words, words)


def _find_failure_reason(design: Design) -> str:
    """Why there is no mechanism, as the command line says it."""
    sentences = [words for name, words in design.facts() if name == "not reachable"]
    return next(iter(sentences), str(design.row()["failure"] or design.status))


def compute_attacker_gains(mechanism: Any) -> View | None:
    """What an attacker gains who tells two neighbours apart, rounded up; None where that takes too long."""
    from workbench.privacy.risk import risk

    subject, masses = as_mechanism(mechanism), 0
    for comparison in subject.comparisons():
        masses += len(comparison.p)
        if masses > _MAX_RISK_MASSES:
            return None
    risks = risk(subject)
    factor = None if risks.bayes_factor is None else round_up(risks.bayes_factor)
    numbers = {"guess": round_up(risks.guess), "advantage": round_up(risks.advantage)}
    return {**numbers, "factor": factor, "posterior": risks.posterior}
