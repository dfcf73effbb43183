"""Additive noise on the integers or the reals as a family: `workbench design noise --on integers|reals`.

Beside noise modulo a group it is a family of its own: other questions, costs and defaults, none of its options those of
the group.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.data.intervals import format_range, read_range
from workbench.data.labels import LabelledTuple, align_container, refuse_labels
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import (
    ONE,
    ZERO,
    Rationals,
    read_number,
    read_positive,
    read_probability,
    to_jsonable,
)
from workbench.exact.objects import Record, Values
from workbench.io.files import names_file
from workbench.io.shown import Facts
from workbench.pipeline.design import format_exact_values
from workbench.pipeline.family import Family, Session
from workbench.pipeline.option import (
    MAX_LOSS,
    MINIMISE,
    NOTION_PARAMETERS,
    RUNS,
    SOLVING,
    Option,
    choice_reader,
    integer_reader,
    list_reader,
    read_budget_parameter,
    read_nonnegative,
)
from workbench.pipeline.requirements import list_convex_notions, list_hockey_stick_notions

if TYPE_CHECKING:
    from workbench.families.noise.request import AnswerLoss, NoiseRequest
    from workbench.pipeline.design import Design, LawsByName, Tables
    from workbench.questions.unbounded_noise import UnboundedNoise


_SHOWN = 12  # noise values a report lists


_notion = choice_reader(more_choices=lambda: (*list_hockey_stick_notions(), *list_convex_notions()))

_WANTED = "one of absolute, squared, error-rate, pinball:τ, huber:h; or losses of noise of size 0, 1, 2, ... (a list or file)"


def _loss(value: Any, name: str) -> Any:
    """A name, a function, or the losses of |η| = 0, 1, 2, ...: a list, or a CSV file of them."""
    from workbench.data.points import list_labelled_cells
    from workbench.families.noise.request import NAMED_LOSSES, AnswerLoss
    from workbench.models.losses import parse_loss
    from workbench.pipeline.outcome import translate_errors

    if isinstance(value, AnswerLoss) or callable(value):
        return value
    if isinstance(value, str) and value.partition(":")[0] in NAMED_LOSSES:
        with translate_errors():
            return parse_loss(value).name
    if isinstance(value, str) and not names_file(value):
        must(name, _WANTED, repr(value))
    cells = list_labelled_cells(value, name, _WANTED)
    losses = list_reader(read_number)(cells, name)
    losses = tuple(
        align_container(cells, losses, lambda: range(len(losses)), name, "sizes of the noise")
    )
    if min(losses) < 0 or len(losses) < 2:
        must(name, "at least two losses >= 0", repr(value))
    return losses


def _of_differences(loss: Any, question: Any) -> AnswerLoss:
    """What a function of published minus true answer costs between clamped integers. Raises InvalidRequest."""
    from workbench.data.losses import call_loss
    from workbench.families.noise.request import AnswerLoss
    from workbench.questions.unbounded_noise import IntegerNoise

    if question.clamp is None or not isinstance(
        question, IntegerNoise
    ):  # nothing tells how it goes on
        where = "; a function is one of clamped integers"
        must("loss", f"{_WANTED}, whose last step goes on{where}", "a function, which has no end")
    span = question.clamp[1] - question.clamp[0]
    known = [
        call_loss(
            lambda q, o: loss(o - q),
            "published minus true answer",
            Fraction(max(0, -e)),
            Fraction(max(0, e)),
        )
        for e in range(-span, span + 1)
    ]
    return AnswerLoss(
        "own", tuple(tuple(known[span - q : 2 * span - q + 1]) for q in range(span + 1))
    )


def _prior(value: Any, name: str) -> Rationals | str | None:
    """Shares of the clamped answers from weights: a list, or a CSV file of them; worst, or uniform (None)."""
    from workbench.data.points import list_labelled_cells

    if (
        isinstance(value, (str, Path))
        and str(value) in ("worst", "uniform")
        and not Path(value).is_file()
    ):
        return "worst" if str(value) == "worst" else None
    if isinstance(value, Path) and "," in str(value) and not names_file(str(value)):
        value = str(value)
    wanted = "uniform, worst, or weights, in a list or a file"
    cells = list_labelled_cells(value, name, wanted)
    weights = list_reader(read_nonnegative)(cells, name)
    return LabelledTuple.with_labels_of(cells, (weight / (sum(weights) or 1) for weight in weights))


def _aligned_prior(prior: Rationals, question: Any) -> Rationals:
    """Weights in the order of the clamped answers; of the reals they belong to parts of the range, by position."""
    from workbench.questions.unbounded_noise import IntegerNoise

    clamp = question.clamp
    if clamp is None or not isinstance(question, IntegerNoise):
        refuse_labels(prior, "prior")
        return prior
    return tuple(align_container(prior, prior, lambda: range(clamp[0], clamp[1] + 1), "prior"))


class _NoiseFamily(Family):
    name = "noise"
    title = "additive noise on all integers or all reals"
    summary = "The best additive noise on all integers (clamped if wanted) or all reals, bounded from both sides."
    no_formula_reason = (
        "its mechanisms have infinitely many masses, and its programs only bound them"
    )
    examples = (
        "design noise --on integers --sensitivity 1 --epsilon 1 --delta 1e-5",
        "design noise --on integers --clamp 0..100 --loss squared --epsilon 1 --delta 1e-5 --notion dp --json",
        "design noise --on integers --sensitivity 3 --loss absolute --epsilon 1 --notion pure",
        "design noise --on reals --sensitivity 200000 --loss absolute --epsilon 0.5 --delta 0.05 --save noise.json",
        "design noise --on reals --sensitivity 200000 --clamp 0..200000 --epsilon 0.5 --delta 0.05 --save incomes.json",
        "design noise --on integers --epsilon 4 --delta 1e-5 --runs 16 --json",
        "design noise --on integers --clamp 0..100 --epsilon 1 --minimise delta --max-loss 1.5",
        "design noise --on integers --sensitivity 2 --notion zcdp --rho 0.1",
        'design noise --on reals --loss absolute --notion curve --curve "0.5:0.1,1:0.01"',
    )
    options = (
        Option("on", choice_reader("integers", "reals"), "integers", "integers or reals.", question=True),
        Option("sensitivity", read_positive, ONE, "How far neighbouring answers differ at most.", question=True),
        Option("clamp", read_range, help="Answers LOW..HIGH into which the sum is clamped.", question=True),
        Option("grid", read_positive, help="Real noise is published rounded to multiples of it.", question=True),
        Option(
            "loss", _loss, "squared",
            "absolute, squared, pinball:τ, huber:h, error-rate (clamped), or a CSV of losses of |noise| 0, 1, 2, ...",
        ),
        Option("unit", read_budget_parameter, ONE, "What a step of clamped answers is worth to the loss."),
        Option(
            "prior", _prior,
            help="Weights of clamped answers, of the reals of equal parts of the range; or worst; uniform by default.",
            kind=Path,
        ),
        Option("notion", _notion, "dp", "dp, pure, curve, tradeoff, renyi, zcdp or gdp."),
        *NOTION_PARAMETERS,
        Option("steps", integer_reader(1, 1024), help="Cells of a sensitivity, of the reals; refined by default.", kind=int),
        Option("gap", read_nonnegative, help="Relative, of loss and bound; 1e-8, on the reals 2e-4 or, for ε > 2, 2e-3."),
        replace(RUNS, help="For how many runs the budget is, of integer noise."),
        MINIMISE,
        replace(MAX_LOSS, hot=False),
        *SOLVING,
        Option("delta", read_probability, ZERO, "In [0, 1]. Where it is minimised: an upper limit.", hot=True),
        Option("epsilon", read_positive, help="Privacy budget > 0. Where it is minimised: an upper limit.", hot=True),
    )  # fmt: skip

    @property
    def question_class(self) -> type[UnboundedNoise]:
        from workbench.questions.unbounded_noise import UnboundedNoise

        return UnboundedNoise

    def parse_question(self, values: Values) -> UnboundedNoise:
        from workbench.questions.unbounded_noise import IntegerNoise, RealNoise

        spread, clamp = values["sensitivity"], values["clamp"]
        if values["on"] == "reals":
            return RealNoise(spread, values["grid"], clamp)
        if values["grid"] is not None:
            raise InvalidRequest("grid must be left out for noise on the integers.")
        if spread.denominator != 1:
            must("sensitivity", "an integer for noise on the integers", float(spread))
        if clamp is not None and any(end.denominator != 1 for end in clamp):
            must("clamp", "integers LOW..HIGH for noise on the integers", format_range(clamp))
        return IntegerNoise(int(spread), clamp and (int(clamp[0]), int(clamp[1])))

    def build_request(self, question: Any, values: Record) -> NoiseRequest:
        from workbench.families.noise.request import (
            MAX_MINIMISED_DELTA,
            MAX_MINIMISED_EPSILON,
            NoiseRequest,
        )
        from workbench.pipeline.request import read_claim

        if callable(values["loss"]):
            values["loss"] = _of_differences(values["loss"], question)
        if isinstance(values["prior"], tuple):
            values["prior"] = _aligned_prior(values["prior"], question)
        if values["minimise"] == "delta":
            values["delta"] = values["delta"] or None  # At its default of 0 there is no limit.
        claim = read_claim(
            values, max_epsilon=Fraction(MAX_MINIMISED_EPSILON), max_delta=MAX_MINIMISED_DELTA
        )
        return NoiseRequest.from_values(question, claim, values)

    def open_session(self, request: Any) -> Session:
        from workbench.families.noise.problem import ClampedSession, NoiseProblem, NoiseSession

        if request.reals and request.question.clamp is not None:
            return ClampedSession(request)
        if request.aim.runs > 1:  # slow to import
            from workbench.families.noise.runs import RunsProblem

            return NoiseSession(request, RunsProblem)
        return NoiseSession(request, NoiseProblem)

    # Mechanisms from elsewhere.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """The exact loss of noise on the same numbers."""
        from workbench.families.noise.problem import compute_noise_loss

        return float(compute_noise_loss(self.relate_mechanism(request, mechanism), request))

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """The noise for the question's sensitivity, clamped where the question is."""
        from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
        from workbench.mechanisms.real_noise import AdditiveRealNoise
        from workbench.questions.unbounded_noise import IntegerNoise

        question = request.question
        if isinstance(question, IntegerNoise) and isinstance(mechanism, AdditiveIntegerNoise):
            return AdditiveIntegerNoise(question, mechanism.noise)
        same = isinstance(mechanism, AdditiveRealNoise) and not isinstance(question, IntegerNoise)
        if not same or mechanism.question.sensitivity != question.sensitivity:
            where = (
                "the integers"
                if isinstance(question, IntegerNoise)
                else "the reals for the same sensitivity"
            )
            must("baseline", f"noise on {where}", repr(mechanism)[:80])
        return mechanism

    # What a design shows.

    def describe_status(self, design: Design) -> str:
        from workbench.families.noise.problem import has_open_gap

        if design.request.aim.runs > 1:
            return "found"
        return (
            "stopped"
            if design.details.get("stopped")
            else "gap_limit"
            if has_open_gap(design)
            else "optimal"
        )

    def extra_columns(self, design: Design) -> Record:
        return {"class": self.describe_class(design)}

    def extra_json(self, design: Design) -> Record:
        from workbench.families.noise.published import list_losses
        from workbench.mechanisms.real_noise import AdditiveRealNoise

        request, mechanism = design.request, design.mechanism
        entries = {
            "class": self.describe_class(design), "question": request.question.to_dict(),
            "notion": request.claim.notion.name, "loss": request.loss_name, **_budget(design),
            "beside": dict(list_losses(request)), **{
                name: to_jsonable(value) for name, value in design.details.items() if name not in ("loss", "bound")
            },
        }  # fmt: skip
        if isinstance(mechanism, AdditiveRealNoise):
            law, share = mechanism.cells, float(mechanism.cells.total / mechanism.total)
            more = {"atom": float(mechanism.atom / mechanism.total), "width": float(mechanism.width),
                    "steps": mechanism.steps, "grid": float(request.question.grid)}  # fmt: skip
            return (
                entries
                | more
                | {
                    "on": "reals",
                    "pmf": (law.floats * share).tolist(),
                    "first": law.first,
                    **_tail(law),
                }
            )
        law = mechanism.noise
        return entries | {
            "on": "integers",
            "pmf": law.floats.tolist(),
            "first": law.first,
            **_tail(law),
        }

    def describe_class(self, design: Design) -> str:
        """What the optimum is taken over."""
        from workbench.questions.unbounded_noise import IntegerNoise

        question = design.question
        if not isinstance(question, IntegerNoise):
            return "best noise on all reals" + (
                "" if question.clamp is None else ", clamped afterwards"
            )
        clamped = (
            ""
            if question.clamp is None
            else f", private before it is clamped to {question.clamp[0]}..{question.clamp[1]}"
        )
        if design.request.aim.runs > 1:
            return f"best found on all integers for {design.request.aim.runs} runs"
        worst = ", for the worst answer" if design.request.worst else ""
        return f"best noise on all integers{clamped}{worst}"

    def facts(self, design: Design) -> Facts:
        from workbench.pipeline.budget import describe_audited_epsilon

        request, exact_ = design.request, format_exact_values(design)
        least = "costs less" if request.aim.minimise == "loss" else "does with less"
        bound = "none: what is published is the noise clamped"
        if design.bound is not None:
            bound = f"{design.bound_text}: no such noise {least}"
        elif request.aim.runs > 1:
            bound = design.bound_text
        rows = [
            (
                f"least {request.objective_name}",
                f"{design.objective:.9g} ({self.describe_class(design)})",
            ),
            ("bound", bound),
            ("asked", request.budget_text),
            (
                "exact",
                f"DP delta {exact_['dp_delta']}, pure epsilon {exact_['pure_epsilon']}{describe_audited_epsilon(design)}",
            ),
        ]
        if composed := design.details.get("composed"):
            rows.append(
                ("composed", f"delta at most {composed['delta']!r} at that epsilon (proven)")
            )
        grid = getattr(request.question, "grid", None)
        if grid is not None:
            rows.append(
                ("published", f"rounded to multiples of {float(grid):g}, which the loss leaves out")
            )
        if "bound_words" in design.details:
            rows.append(("bound by", design.details["bound_words"]))
        if "rounds" in design.details:
            d = design.details
            rows.append(
                (
                    "solver",
                    f"{d['solver']} {d['version']}, {self.describe_status(design)}, {d['seconds']:.3f} s",
                )
            )
        return rows

    def list_tables(self, design: Design) -> Tables:
        from workbench.families.noise.published import list_losses
        from workbench.mechanisms.real_noise import AdditiveRealNoise

        tables: Tables = []
        mechanism = design.mechanism
        others = list_losses(design.request)
        if others:
            rows = [
                ["this design", self.compute_loss(design.request, mechanism)],
                *map(list, others),
            ]
            exact = not isinstance(mechanism, AdditiveRealNoise) and design.request.aim.runs == 1
            heads = ["noise", f"{design.request.loss_name} loss"]
            tables.append(("Beside it" + ("" if exact else ", in floating point"), heads, rows))
        if not isinstance(mechanism, AdditiveRealNoise):
            law = mechanism.noise
            cells = [
                [eta, float(law.weight(eta) / law.total)]
                for eta in range(-_SHOWN, _SHOWN + 1)
                if law.weight(eta)
            ]
            tables.append((f"PMF, noise up to {_SHOWN}", ["noise", "probability"], cells))
        return tables

    def comparison_laws(self, design: Design) -> LawsByName:
        import numpy as np

        from workbench.families.noise.published import list_curves
        from workbench.mechanisms.real_noise import AdditiveRealNoise

        mechanism = design.mechanism
        if isinstance(mechanism, AdditiveRealNoise):
            return list_curves(design.request, mechanism.density()[0])
        return list_curves(
            design.request, mechanism.noise.first + np.arange(len(mechanism.noise.weights))
        )


def _budget(design: Design) -> Record:
    """Of JSON: ε and δ, or the parameters of another notion."""
    request = design.request
    if request.has_several_bounds:
        return {
            name: value
            for name, value in request.audited_claim.to_dict().items()
            if name != "notion"
        }
    return {"epsilon": float(request.claim.epsilon), "delta": float(request.claim.delta)}


def _tail(law: Any) -> Record:
    """How a law goes on beyond its weights."""
    return {"tail_ratio": float(law.ratio), "tail_period": law.period}


FAMILY = _NoiseFamily()
