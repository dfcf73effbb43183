"""Define the family of noise on the integers or the reals: its options, requests and reports.

The command is `workbench design noise --on integers|reals`. Noise modulo a group is another family,
with other questions, losses and defaults (`workbench.families.modulo`). An option is added in
`_NoiseFamily.options`, and its meaning in `workbench.families.noise.request`. D is the sensitivity
and η the noise.
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
from workbench.io.files import names_file, path_exists
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


_MAX_LISTED_NOISE = 12  # The report lists the probabilities of noise values up to this size.
_MAX_QUOTED_CHARACTERS = 80  # An error quotes this many characters of a baseline's repr.

_LOSS_RULE = (
    "one of absolute, squared, error-rate, pinball:τ, huber:h; or losses of noise of size "
    "0, 1, 2, ... (a list or file)"
)
_read_notion = choice_reader(
    more_choices=lambda: (*list_hockey_stick_notions(), *list_convex_notions())
)


def _read_noise_loss(value: Any, name: str) -> Any:
    """Read the loss: a name, a function, or the losses of |η| = 0, 1, 2, ...

    The losses come from a list or a CSV file. Raises InvalidRequest.
    """
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
        must(name, _LOSS_RULE, repr(value))
    cells = list_labelled_cells(value, name, _LOSS_RULE)
    losses = list_reader(read_number)(cells, name)
    losses = tuple(
        align_container(
            cells,
            losses,
            answers=lambda: range(len(losses)),
            name=name,
            points_name="sizes of the noise",
        )
    )
    if min(losses) < 0 or len(losses) < 2:
        must(name, "at least two losses >= 0", repr(value))
    return losses


def _tabulate_loss_function(loss: Any, question: Any) -> AnswerLoss:
    """Tabulate a loss function of published minus true answer, for clamped integers.

    Raises InvalidRequest if the answers are not clamped integers: the values of the function beyond
    its table would be unknown.
    """
    from workbench.data.losses import call_loss
    from workbench.families.noise.request import AnswerLoss
    from workbench.questions.unbounded_noise import IntegerNoise

    if question.clamp is None or not isinstance(question, IntegerNoise):
        must(
            "loss",
            f"{_LOSS_RULE}, whose last step continues; a function is allowed for clamped integers",
            "a function, which has no end",
        )
    low, high = question.clamp
    span = high - low
    losses = []
    for difference in range(-span, span + 1):
        answer = Fraction(max(0, -difference))
        output = Fraction(max(0, difference))
        losses.append(
            call_loss(lambda q, o: loss(o - q), "published minus true answer", answer, output)
        )
    table = tuple(tuple(losses[span - q : 2 * span - q + 1]) for q in range(span + 1))
    return AnswerLoss("own", table)


def _read_answer_prior(value: Any, name: str) -> Rationals | str | None:
    """Read the prior of the clamped answers: "worst", None for uniform, or probabilities.

    Weights come from a list or a CSV file and are divided by their sum. Raises InvalidRequest.
    """
    from workbench.data.points import list_labelled_cells

    is_name = isinstance(value, (str, Path)) and str(value) in ("worst", "uniform")
    if is_name and not (path_exists(value) and Path(value).is_file()):
        return "worst" if str(value) == "worst" else None
    if isinstance(value, Path) and "," in str(value) and not names_file(str(value)):
        value = str(value)
    cells = list_labelled_cells(value, name, "uniform, worst, or weights, in a list or a file")
    weights = list_reader(read_nonnegative)(cells, name)
    total = sum(weights) or 1
    return LabelledTuple.with_labels_of(cells, (weight / total for weight in weights))


def _align_prior(prior: Rationals, question: Any) -> Rationals:
    """Bring the prior into the order of the clamped answers.

    On the reals the weights belong to equal parts of the range, in order. Raises InvalidRequest.
    """
    from workbench.questions.unbounded_noise import IntegerNoise

    clamp = question.clamp
    if clamp is None or not isinstance(question, IntegerNoise):
        refuse_labels(prior, "prior")
        return prior
    low, high = clamp
    return tuple(align_container(prior, prior, answers=lambda: range(low, high + 1), name="prior"))


class _NoiseFamily(Family):
    """The family of noise on all integers or all reals."""

    name = "noise"
    title = "additive noise on all integers or all reals"
    summary = (
        "Design optimal additive noise on all integers or all reals, optionally clamped, with a "
        "proven lower bound on the loss."
    )
    no_formula_reason = (
        "its mechanisms have infinitely many masses, and its programs only bound them"
    )
    examples = (
        "design noise --on integers --sensitivity 1 --epsilon 1 --delta 1e-5",
        "design noise --on integers --clamp 0..100 --loss squared --epsilon 1 --delta 1e-5 "
        "--notion dp --json",
        "design noise --on integers --sensitivity 3 --loss absolute --epsilon 1 --notion pure",
        "design noise --on reals --sensitivity 200000 --loss absolute --epsilon 0.5 --delta 0.05 "
        "--save noise.json",
        "design noise --on reals --sensitivity 200000 --clamp 0..200000 --epsilon 0.5 "
        "--delta 0.05 --save incomes.json",
        "design noise --on integers --epsilon 4 --delta 1e-5 --runs 16 --json",
        "design noise --on integers --clamp 0..100 --epsilon 1 --minimise delta --max-loss 1.5",
        "design noise --on integers --sensitivity 2 --notion zcdp --rho 0.1",
        'design noise --on reals --loss absolute --notion curve --curve "0.5:0.1,1:0.01"',
    )
    options = (
        Option(
            "on",
            choice_reader("integers", "reals"),
            "integers",
            "Numbers to which the noise belongs: integers or reals.",
            question=True,
        ),
        Option(
            "sensitivity",
            read_positive,
            ONE,
            "Largest difference of two neighbouring answers.",
            question=True,
        ),
        Option(
            "clamp",
            read_range,
            help="Range LOW..HIGH to which answer plus noise is clamped. Default: no clamping.",
            question=True,
        ),
        Option(
            "grid",
            read_positive,
            help="Spacing of the grid to which published real numbers are rounded. Default: a "
            "power of two near sensitivity / 2^20.",
            question=True,
        ),
        Option(
            "loss",
            _read_noise_loss,
            "squared",
            "Loss: absolute, squared, pinball:τ, huber:h, error-rate (only with --clamp), or a "
            "CSV of losses of |noise| 0, 1, 2, ...",
        ),
        Option(
            "unit",
            read_budget_parameter,
            ONE,
            "Distance between consecutive answers in a named loss, only with --clamp.",
        ),
        Option(
            "prior",
            _read_answer_prior,
            help="Prior of the answers in --clamp: worst, or a CSV of weights. On the reals, "
            "they are the weights of equal parts of the range. Default: uniform.",
            kind=Path,
        ),
        Option(
            "notion",
            _read_notion,
            "dp",
            "Privacy notion: dp, pure, renyi, zcdp, gdp, curve or tradeoff.",
        ),
        *NOTION_PARAMETERS,
        Option(
            "steps",
            integer_reader(minimum=1, maximum=1024),
            help="Number of cells per sensitivity, only for --on reals. Default: increased "
            "until loss and bound agree.",
            kind=int,
        ),
        Option(
            "gap",
            read_nonnegative,
            help="Relative gap between loss and bound at which the search stops. Default: 1e-8. "
            "Default for --on reals: 2e-4, or 2e-3 for ε > 2.",
        ),
        replace(RUNS, help="Number of runs that share the budget, for noise on the integers."),
        MINIMISE,
        replace(MAX_LOSS, hot=False),
        *SOLVING,
        Option(
            "delta",
            read_probability,
            ZERO,
            "δ of the budget, in [0, 1]. With --minimise delta: an upper limit.",
            hot=True,
        ),
        Option(
            "epsilon",
            read_positive,
            help="ε of the budget, > 0. With --minimise epsilon: an upper limit.",
            hot=True,
        ),
    )

    # Requests.

    @property
    def question_class(self) -> type[UnboundedNoise]:
        """Return the class of questions."""
        from workbench.questions.unbounded_noise import UnboundedNoise

        return UnboundedNoise

    def parse_question(self, values: Values) -> UnboundedNoise:
        """Make the question from the values of its options. Raises InvalidRequest."""
        from workbench.questions.unbounded_noise import IntegerNoise, RealNoise

        sensitivity = values["sensitivity"]
        clamp = values["clamp"]
        if values["on"] == "reals":
            return RealNoise(sensitivity, values["grid"], clamp)
        if values["grid"] is not None:
            raise InvalidRequest("grid must be left out for noise on the integers.")
        if sensitivity.denominator != 1:
            must("sensitivity", "an integer for noise on the integers", float(sensitivity))
        if clamp is not None and any(end.denominator != 1 for end in clamp):
            must("clamp", "integers LOW..HIGH for noise on the integers", format_range(clamp))
        if clamp is not None:
            low, high = clamp
            clamp = (int(low), int(high))
        return IntegerNoise(int(sensitivity), clamp)

    def build_request(self, question: Any, values: Record) -> NoiseRequest:
        """Make the request from a question and exact option values. Raises InvalidRequest."""
        from workbench.families.noise.request import (
            MAX_MINIMISED_DELTA,
            MAX_MINIMISED_EPSILON,
            NoiseRequest,
        )
        from workbench.pipeline.request import read_claim

        if callable(values["loss"]):
            values["loss"] = _tabulate_loss_function(values["loss"], question)
        if isinstance(values["prior"], tuple):
            values["prior"] = _align_prior(values["prior"], question)
        if values["minimise"] == "delta":
            values["delta"] = values["delta"] or None  # At its default of 0 there is no limit.
        max_epsilon = Fraction(MAX_MINIMISED_EPSILON)
        claim = read_claim(values, max_epsilon=max_epsilon, max_delta=MAX_MINIMISED_DELTA)
        return NoiseRequest.from_values(question, claim, values)

    def open_session(self, request: Any) -> Session:
        """Open the session of a request."""
        from workbench.families.noise.clamped_reals import ClampedSession
        from workbench.families.noise.problem import NoiseProblem, NoiseSession

        if request.is_on_reals and request.question.clamp is not None:
            return ClampedSession(request)
        if request.aim.runs > 1:
            from workbench.families.noise.runs import RunsProblem  # The import is slow.

            return NoiseSession(request, RunsProblem)
        return NoiseSession(request, NoiseProblem)

    # Baselines.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Compute the exact loss of other noise on the same numbers."""
        from workbench.families.noise.expected_loss import compute_noise_loss

        return float(compute_noise_loss(self.relate_mechanism(request, mechanism), request))

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """Return other noise under the question of a request, clamped if the question is.

        Raises InvalidRequest for noise that does not fit the question.
        """
        from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
        from workbench.mechanisms.real_noise import AdditiveRealNoise
        from workbench.questions.unbounded_noise import IntegerNoise

        question = request.question
        if isinstance(question, IntegerNoise):
            if isinstance(mechanism, AdditiveIntegerNoise):
                return AdditiveIntegerNoise(question, mechanism.noise)
            must("baseline", "noise on the integers", repr(mechanism)[:_MAX_QUOTED_CHARACTERS])
        is_on_reals = isinstance(mechanism, AdditiveRealNoise)
        if not is_on_reals or mechanism.question.sensitivity != question.sensitivity:
            rule = "noise on the reals for the same sensitivity"
            must("baseline", rule, repr(mechanism)[:_MAX_QUOTED_CHARACTERS])
        return mechanism

    # Reports.

    def describe_status(self, design: Design) -> str:
        """Return the status of a design in tables."""
        from workbench.families.noise.problem import has_open_gap

        if design.request.aim.runs > 1:
            return "found"
        if design.details.get("stopped"):
            return "stopped"
        return "gap_limit" if has_open_gap(design) else "optimal"

    def extra_columns(self, design: Design) -> Record:
        """Return the columns of this family in tables."""
        return {"class": _name_class(design)}

    def extra_json(self, design: Design) -> Record:
        """Return the entries of this family in JSON."""
        from workbench.families.noise.published import list_losses
        from workbench.mechanisms.real_noise import AdditiveRealNoise

        request = design.request
        mechanism = design.mechanism
        entries = {
            "class": _name_class(design),
            "question": request.question.to_dict(),
            "notion": request.claim.notion.name,
            "loss": request.loss_name,
            **_list_budget(design),
            "beside": dict(list_losses(request)),
        }
        for name, value in design.details.items():
            if name not in ("loss", "bound"):
                entries[name] = to_jsonable(value)
        if not isinstance(mechanism, AdditiveRealNoise):
            law = mechanism.noise
            entries |= {"on": "integers", "pmf": law.floats.tolist(), "first": law.first}
            return entries | _list_tail(law)
        law = mechanism.cells
        share = float(law.total / mechanism.total)
        entries |= {
            "atom": float(mechanism.atom / mechanism.total),
            "width": float(mechanism.width),
            "steps": mechanism.steps,
            "grid": float(request.question.grid),
            "on": "reals",
            "pmf": (law.floats * share).tolist(),
            "first": law.first,
        }
        return entries | _list_tail(law)

    def facts(self, design: Design) -> Facts:
        """Return the rows of the report."""
        from workbench.pipeline.budget import describe_audited_epsilon

        request = design.request
        exact_texts = format_exact_values(design)
        rows = [
            (_name_objective(design), f"{design.objective:.9g} ({_describe_class(design)})"),
            ("lower bound", _describe_bound(design)),
            ("requested", request.budget_text),
            (
                "verified",
                f"DP delta {exact_texts['dp_delta']}, pure epsilon {exact_texts['pure_epsilon']}"
                f"{describe_audited_epsilon(design)}",
            ),
        ]
        composition = design.details.get("composed")
        if composition:
            text = f"delta at most {composition['delta']!r} at that epsilon (proven)"
            rows.append(("composed", text))
        grid = getattr(request.question, "grid", None)
        if grid is not None:
            text = f"rounded to multiples of {float(grid):g}, which the loss leaves out"
            rows.append(("published", text))
        if "bound_words" in design.details:
            rows.append(("bound by", design.details["bound_words"]))
        if "rounds" in design.details:
            details = design.details
            solver = f"{details['solver']} {details['version']}"
            rows.append(
                ("solver", f"{solver}, {self.describe_status(design)}, {details['seconds']:.3f} s")
            )
        return rows

    def list_tables(self, design: Design) -> Tables:
        """Return the tables of the report: published noise, and the probabilities."""
        from workbench.families.noise.published import list_losses
        from workbench.mechanisms.real_noise import AdditiveRealNoise

        request = design.request
        mechanism = design.mechanism
        is_on_reals = isinstance(mechanism, AdditiveRealNoise)
        tables: Tables = []
        published_losses = list_losses(request)
        if published_losses:
            rows = [
                ["this design", self.compute_loss(request, mechanism)],
                *map(list, published_losses),
            ]
            title = "Published noise"
            if is_on_reals or request.aim.runs > 1:
                title += ", in floating point"
            tables.append((title, ["noise", f"{request.loss_name} loss"], rows))
        if not is_on_reals:
            law = mechanism.noise
            values = range(-_MAX_LISTED_NOISE, _MAX_LISTED_NOISE + 1)
            listed_values = [eta for eta in values if law.weight(eta)]
            cells = [[eta, float(law.weight(eta) / law.total)] for eta in listed_values]
            title = f"PMF, noise up to {_MAX_LISTED_NOISE}"
            tables.append((title, ["noise", "probability"], cells))
        return tables

    def comparison_laws(self, design: Design) -> LawsByName:
        """Return the laws of published noise for plots."""
        import numpy as np

        from workbench.families.noise.published import list_curves
        from workbench.mechanisms.real_noise import AdditiveRealNoise

        mechanism = design.mechanism
        if isinstance(mechanism, AdditiveRealNoise):
            edges, _ = mechanism.density()
            return list_curves(design.request, edges)
        values = mechanism.noise.first + np.arange(len(mechanism.noise.weights))
        return list_curves(design.request, values)


def _name_class(design: Design) -> str:
    """Return the text of the column "class": the set of noise over which the optimum is taken."""
    best = "best" if design.request.aim.runs == 1 else "best found"
    noise = _describe_noise(design)
    if design.request.aim.runs > 1:
        noise = noise.removeprefix("noise ")
    return f"{best} {noise}"


def _describe_noise(design: Design) -> str:
    """Return a phrase for the noise over which the optimum is taken."""
    from workbench.questions.unbounded_noise import IntegerNoise

    question = design.question
    request = design.request
    if not isinstance(question, IntegerNoise):
        suffix = "" if question.clamp is None else ", clamped afterwards"
        return f"noise on all reals{suffix}"
    if request.aim.runs > 1:
        return f"noise on all integers for {request.aim.runs} runs"
    phrase = "noise on all integers"
    if question.clamp is not None:
        low, high = question.clamp
        phrase += f", private before it is clamped to {low}..{high}"
    if request.is_worst_case:
        phrase += ", for the worst answer"
    return phrase


def _name_objective(design: Design) -> str:
    """Return the label of the objective in the report."""
    request = design.request
    if request.aim.minimise != "loss":
        return f"minimal {request.aim.minimise}"
    return "worst-case loss" if request.is_worst_case else "expected loss"


def _describe_class(design: Design) -> str:
    """Return the loss and the class of noise for the report, and whether it is optimal."""
    from workbench.families.noise.problem import has_open_gap

    noise = _describe_noise(design)
    is_optimal = design.request.aim.runs == 1 and not has_open_gap(design)
    if is_optimal and not design.details.get("stopped"):
        phrase = f"optimal {noise}"
    else:
        phrase = f"{noise}, best found; not proven optimal"
    if design.request.aim.minimise != "loss":
        return phrase
    return f"{design.request.loss_name}, {phrase}"


def _describe_bound(design: Design) -> str:
    """Return the lower bound for the report."""
    request = design.request
    if design.bound is None:
        if request.aim.runs > 1:
            return design.bound_text
        return "none: the published noise is clamped"
    if request.aim.minimise == "loss":
        return f"{design.bound_text} on the loss of every such noise"
    return f"{design.bound_text} on the {request.aim.minimise} of every such noise"


def _list_budget(design: Design) -> Record:
    """Return the JSON entries of the budget: ε and δ, or the parameters of another notion."""
    request = design.request
    if not request.has_several_bounds:
        return {"epsilon": float(request.claim.epsilon), "delta": float(request.claim.delta)}
    entries = request.audited_claim.to_dict().items()
    return {name: value for name, value in entries if name != "notion"}


def _list_tail(law: Any) -> Record:
    """Return the JSON entries of the tail beyond the listed masses of a law.

    Beyond the listed ones, masses fall by the factor tail_ratio every tail_period noise values.
    """
    return {"tail_ratio": float(law.ratio), "tail_period": law.period}


FAMILY = _NoiseFamily()
