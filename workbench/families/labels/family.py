"""Declare the family of label randomizers: its options, how they become requests, and what reports
show.

To add an option: an `Option` here, a field of `LabelAim` or `LabelHow` with the same name in
`request`, and its check there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data.labels import LabelledTuple, get_row_labels
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import (
    ZERO,
    Rationals,
    nearest_float,
    read_number,
    read_probability,
    to_jsonable,
)
from workbench.exact.objects import Record, Values
from workbench.io.shown import Facts
from workbench.notions import BUILT_IN_NOTIONS
from workbench.pipeline.family import Family, Session
from workbench.pipeline.formula_program import list_linear_notions
from workbench.pipeline.frontier_plan import Point
from workbench.pipeline.option import (
    NOTION_PARAMETERS,
    PROGRESS,
    RUNS,
    SOLVING,
    Option,
    choice_reader,
    list_reader,
    read_budget_parameter,
    read_constraints,
    read_plain_text,
)
from workbench.pipeline.requirements import list_convex_notions

if TYPE_CHECKING:
    from workbench.families.labels.request import LabelRequest
    from workbench.pipeline.design import Design, Tables
    from workbench.questions.labels import Labels


METHODS = ("bins", "lp", "unbiased", "rr-with-prior")
# Methods that call no solver.
_SOLVERLESS_METHODS = ("bins", "rr-with-prior")
# An output is in use if its mass is above this for some label.
_MIN_USED_MASS = 1e-9
# A report shows this many bins or outputs.
_MAX_SHOWN_ROWS = 40


def _list_notions() -> Iterable[str]:
    """List the built-in notions whose programs are linear without binaries, or convex."""
    names = chain(list_linear_notions(), list_convex_notions())
    return (name for name in names if name in BUILT_IN_NOTIONS)


def _read_labels(value: Any, name: str) -> Labels:
    """Read labels: "0..20", or a CSV of labels and weights.

    The content of a file is read at once.
    """
    from workbench.questions.labels import Labels

    return value if isinstance(value, Labels) else Labels.parse(read_plain_text(value, name))


def _read_label_prior(value: Any, name: str) -> Rationals | str:
    """Read a prior: "uniform", or weights in a list, a text "1,2,1" or a CSV file."""
    from workbench.data.points import list_labelled_cells

    if isinstance(value, str) and value.strip() == "uniform":
        return "uniform"
    cells = list_labelled_cells(value, name, "uniform, or weights, in a list or a file")
    return LabelledTuple.with_labels_of(cells, list_reader(read_number)(cells, name))


def _read_label_outputs(value: Any, name: str) -> tuple[float, ...]:
    """Read outputs: "0..20", a CSV, or increasing values."""
    from workbench.questions.labels import Labels

    try:
        if isinstance(value, str):
            outputs = Labels.parse(read_plain_text(value, name))
        else:
            outputs = Labels(value)
        if outputs.listed_order is not None:
            # The columns of a loss matrix would belong to other outputs.
            must(name, "in increasing order", repr(value))
    except InvalidRequest as error:
        raise InvalidRequest(
            f"outputs must be LOW..HIGH, such as -10..30, or increasing numbers. {error}"
        ) from None
    return tuple(outputs.values.tolist())


def _read_neighbours(value: Any, name: str) -> Any:
    """Read neighbours: a named relation, or pairs of positions, "0-1,1-2" or [(0, 1), (1, 2)]."""
    pairs = value
    if isinstance(value, str):
        if "-" not in value:
            return choice_reader("all", "consecutive")(value, name)
        pairs = [pair.split("-") for pair in value.split(",")]
    try:
        return tuple((int(i), int(j)) for i, j in pairs)
    except (ValueError, TypeError):
        must(name, 'all, consecutive, or pairs of positions such as "0-1,1-2"', repr(value))


def _read_label_loss(value: Any, name: str) -> Any:
    """Read a loss: a name, a Loss, a matrix, or a function (output, label) -> number.

    Returns the canonical name, the Loss, the rows of the matrix, or the function.
    """
    from workbench.models.losses import Loss
    from workbench.pipeline.loss_tables import read_loss

    return value if isinstance(value, Loss) else read_loss(value, name)


class _LabelFamily(Family):
    """The family of label randomizers."""

    name = "labels"
    title = "private randomizers of labels"
    summary = (
        "Design the mechanism with the smallest loss that publishes a numeric label under label "
        "DP: any two labels are neighbours. Such a mechanism is called a label randomizer."
    )
    examples = (
        "design labels --labels 0..7 --method lp --notion zcdp --rho 0.1",
        "design labels --labels 0..5 --loss squared --epsilon 4",
        "design labels --labels 0..20 --loss squared --epsilon 4",
        "design labels --labels prior.csv --loss absolute --epsilon 1 --method lp --json",
        "design labels --labels 0..7 --loss absolute --epsilon 1 --method lp "
        "--neighbours consecutive",
        "design labels --labels 0..7 --method lp --notion dp --epsilon 4 --delta 1e-5 --runs 8",
        "design labels --labels 0..10 --epsilon 1 --method unbiased --save unbiased.json "
        "--plot channel.png",
        "(prior.csv has the columns label and weight. A header line is optional.)",
    )
    formulas = ("formula labels --labels 0..2 --method lp",)
    options = (
        Option(
            "labels",
            _read_labels,
            required=True,
            question=True,
            help='Possible labels: "0..20", "0..200:5" (LOW..HIGH:STEP), "0,1,5", or a CSV file '
            "with weights in an optional second column.",
        ),
        Option(
            "prior",
            _read_label_prior,
            question=True,
            help="Prior of the labels: uniform, weights such as 1,2,1, or a CSV. Default: the "
            "weights in --labels.",
        ),
        Option(
            "loss",
            _read_label_loss,
            "squared",
            "Loss: squared, absolute, poisson, poisson-deviance, error-rate, pinball:τ or huber:h. "
            "With --method lp also a CSV matrix with a row for each label and a column for each "
            "output (in Python also an array, or a function of an output and a label).",
        ),
        Option(
            "method",
            choice_reader("auto", *METHODS),
            "auto",
            "Method: bins, lp, unbiased, rr-with-prior (of Ghazi et al. 2021), or auto (lp if "
            "another option needs it, otherwise bins).",
        ),
        Option(
            "outputs",
            _read_label_outputs,
            help="Outputs for lp: integers LOW..HIGH. Default: the labels.",
        ),
        Option(
            "neighbours",
            _read_neighbours,
            "all",
            'Neighbours for lp: all, consecutive, or pairs of positions such as "0-1,1-2".',
        ),
        Option(
            "notion",
            choice_reader(more_choices=_list_notions),
            "dp",
            "Privacy notion for lp: dp, pure, metric, renyi, zcdp, gdp, curve or tradeoff.",
        ),
        *NOTION_PARAMETERS,
        replace(RUNS, help="Number of runs that share the budget, for lp with --notion dp."),
        Option(
            "constraints",
            read_constraints,
            default=(),
            kind=list,
            command="constraint",
            help="Constraint for lp: unbiased, row-monotone, column-monotone, symmetric or "
            "honest (repeatable).",
        ),
        *SOLVING,
        PROGRESS,
        Option(
            "delta",
            read_probability,
            ZERO,
            "δ of the budget, in [0, 1], with --method lp and --notion dp.",
            hot=True,
        ),
        Option(
            "epsilon",
            read_budget_parameter,
            help="ε of the budget, > 0. With --notion metric: ε per unit of the label.",
            hot=True,
        ),
    )

    # Requests.

    @property
    def question_class(self) -> type[Labels]:
        """Return the class of questions."""
        from workbench.questions.labels import Labels

        return Labels

    def parse_question(self, values: Values) -> Labels:
        """Make the question from the values of its options.

        Args:
            values: option -> exact value.
        """
        labels: Labels = values["labels"]
        prior = values["prior"]
        if prior is None:
            return labels
        if prior == "uniform":
            return labels.with_prior(prior)
        return labels.with_prior(LabelledTuple.with_labels_of(prior, map(nearest_float, prior)))

    def question_to_options(self, question: Any) -> Record:
        """Return the options that define a question: see `Family.question_to_options`.

        Args:
            question: labels with a prior.
        """
        from workbench.pipeline.formula_program import simplify_shares

        shares = simplify_shares([*map(Fraction, question.prior.tolist())])
        prior: Any = "uniform"
        if len({*shares}) > 1:
            # Weights over the common denominator are integers, which floats represent exactly.
            denominator = lcm(*(share.denominator for share in shares))
            prior = [share * denominator for share in shares]
        return {"labels": ",".join(map(repr, question.values.tolist())), "prior": prior}

    def build_request(self, question: Any, values: Record) -> LabelRequest:
        """Make a request from exact values of options.

        Args:
            question: labels with a prior.
            values: option -> exact value.

        Raises:
            InvalidRequest: the values cannot be combined.
        """
        from workbench.families.labels.request import LabelRequest
        from workbench.models.losses import Loss
        from workbench.pipeline.request import read_claim

        if values["notion"] == "dp" and not values["delta"] and values["runs"] == 1:
            # The claim is the same, and it is decided output by output.
            values["notion"] = "pure"
        values["constraints"] = tuple(dict.fromkeys(values["constraints"]))
        loss = values["loss"]
        neighbours = values["neighbours"]
        has_loss_by_position = isinstance(loss, tuple) and get_row_labels(loss) is None
        has_pairs_by_position = not isinstance(neighbours, str)
        if question.listed_order is not None and (has_loss_by_position or has_pairs_by_position):
            companion = "rows of a loss" if has_loss_by_position else "neighbours"
            rule = f"in increasing order if {companion} are given by position"
            must("labels", rule, "another order")
        is_method_automatic = values["method"] == "auto"
        if is_method_automatic:
            needs_program = (
                values["outputs"]
                or values["constraints"]
                or neighbours != "all"
                or values["notion"] != "pure"
                or not isinstance(loss, (str, Loss))
            )
            values["method"] = "lp" if needs_program else "bins"
        if values["method"] == "unbiased" and values["solver"] == "highs":
            # The default solver cannot solve cone programs.
            values["solver"] = "cvxpy:clarabel"
        values["may_use_bins"] = is_method_automatic
        return LabelRequest.from_values(question, read_claim(values), values)

    def open_session(self, request: Any) -> Session:
        """Open the session that designs a request.

        Args:
            request: a request of this family.
        """
        from workbench.families.labels.problem import (
            BinsProblem,
            ChannelOfLabels,
            WithPriorProblem,
            design_within_curve,
        )
        from workbench.pipeline.solve import ProblemSession

        # The modules of many runs and of unbiased randomizers are slow to import.
        if request.aim.runs > 1:
            from workbench.pipeline.many_runs import ManyRuns

            return ManyRuns(request, design_within_curve)
        if request.how.method == "unbiased":
            from workbench.families.labels.unbiased import UnbiasedProblem

            return ProblemSession(request, UnbiasedProblem)
        if request.how.method == "lp":
            return ProblemSession(request, ChannelOfLabels)
        if request.how.method == "rr-with-prior":
            return ProblemSession(request, WithPriorProblem)
        return ProblemSession(request, BinsProblem)

    def solver_label(self, values: Values) -> str | None:
        """Return the solver of a request. None for the methods that need no solver.

        Args:
            values: option -> value.
        """
        return None if values["method"] in _SOLVERLESS_METHODS else str(values["solver"])

    def describe_status(self, design: Design) -> str:
        """Return how the search ended: "found" for RRWithPrior, which is not proven optimal.

        Args:
            design: design of this family.
        """
        if design.request.how.method == "rr-with-prior":
            return "found"
        return super().describe_status(design)

    # Mechanisms of other sources.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Compute the expected loss of a randomizer under the prior of the labels.

        Args:
            request: request of this family.
            mechanism: randomizer of the same labels.

        Raises:
            InvalidRequest: the mechanism has other labels.
        """
        labels = request.question
        channel = getattr(mechanism, "certified_form", lambda: mechanism)()
        inputs = [*map(float, getattr(mechanism, "inputs", ()))]
        if not hasattr(channel, "matrix") or inputs != labels.values.tolist():
            must("baseline", "a randomizer of the request's labels", repr(mechanism))
        outputs = np.asarray(mechanism.outputs, dtype=float)
        losses = request.named_loss.matrix(outputs, labels.values)
        return float((labels.prior @ (channel.matrix * losses)).sum())

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """Return a randomizer with the neighbours of a request.

        Args:
            request: request of this family.
            mechanism: randomizer of the same labels.
        """
        from workbench.mechanisms.channel import Channel

        if request.pairs is None:
            return mechanism
        channel = getattr(mechanism, "certified_form", lambda: mechanism)()
        return Channel.from_pairs(channel, request.pairs)

    # Reports.

    def exact_values(self, design: Design) -> Record:
        """Return the exact privacy values of a design: pdp_delta, dp_delta and pure_epsilon.

        For a claim of pure ε both δ are 0 if the design is private, else None.

        Args:
            design: design of this family.
        """
        if design.claim.notion.has_delta or not design.claim.is_epsilon_delta:
            return super().exact_values(design)
        # If the design is not private, no δ is computed.
        delta = 0.0 if design.private else None
        return {"pdp_delta": delta, "dp_delta": delta, "pure_epsilon": design.privacy.pure_epsilon}

    def extra_columns(self, design: Design) -> Record:
        """Return the columns of a sweep that only this family has: `outputs_used`, the number of
        outputs that some label publishes.

        Args:
            design: design of this family.
        """
        return {"outputs_used": count_used_outputs(design.mechanism)}

    def extra_json(self, design: Design) -> Record:
        """Return the JSON fields that only this family has.

        Args:
            design: design of this family.

        Returns:
            method, loss, the budget, notion, labels (their number), neighbours ("all",
            "consecutive" or "listed"), d (number of outputs in use), bins (None without bins) and
            exact (the audited values). Without bins also outputs, and channel, the matrix of
            probabilities (labels, outputs).
        """
        request = design.request
        mechanism = design.mechanism
        bins = _list_bins(mechanism)
        has_other_budget = not design.claim.is_epsilon_delta
        if has_other_budget:
            budget = design.claim.to_dict()
        else:
            budget = {"epsilon": float(request.claim.epsilon), "delta": float(request.claim.delta)}
        exact = {name: to_jsonable(value) for name, value in design.exact.items()}
        exact["epsilon"] = exact["pure_epsilon"]
        if has_other_budget or design.claim.notion.has_delta:
            exact["delta"] = exact["dp_delta"]
        if request.aim.runs > 1:
            budget |= {"runs": request.aim.runs}
            exact["composed"] = design.details["composed"]
        method = request.how.method
        if method == "lp" and bins is not None:
            method = "bins"
        neighbours = request.aim.neighbours
        if not isinstance(neighbours, str):
            neighbours = "listed"
        fields = {
            "method": method,
            "loss": request.loss_name,
            **budget,
            "notion": request.claim.notion.name,
            "labels": request.question.k,
            "neighbours": neighbours,
            "d": count_used_outputs(mechanism),
            "bins": bins,
            "exact": exact,
        }
        if bins is None:
            fields["outputs"] = mechanism.outputs.tolist()
            fields["channel"] = mechanism.matrix.tolist()
        return fields

    def facts(self, design: Design) -> Facts:
        """Return the lines of a report, as pairs (label, text).

        Args:
            design: design of this family.
        """
        from workbench.pipeline.budget import list_composition_facts

        fields = self.extra_json(design)
        return [
            ("expected loss", f"{design.objective:.9g} ({_describe_class(design, fields)})"),
            ("lower bound", design.bound_text),
            ("requested", f"{design.request.budget_text}, {fields['neighbours']} pairs"),
            ("verified", f"pure epsilon {fields['exact']['epsilon']}"),
            ("outputs", f"{fields['d']} in use"),
            *list_composition_facts(design),
        ]

    def list_tables(self, design: Design) -> Tables:
        """Return the table of bins, or of the outputs in use.

        Args:
            design: design of this family.

        Returns:
            [(title, heads, rows)]. The heads are lower, upper and publishes for bins (first and
            last label, output), or publishes and overall probability.
        """
        mechanism = design.mechanism
        bins = _list_bins(mechanism)
        if bins is not None:
            rows = [[b["lower"], b["upper"], b["value"]] for b in bins]
            title = _title_table(len(rows), "bins")
            return [(title, ["lower", "upper", "publishes"], rows[:_MAX_SHOWN_ROWS])]
        masses = design.question.prior @ mechanism.matrix
        used_outputs = np.flatnonzero(mechanism.matrix.max(axis=0) > _MIN_USED_MASS)
        rows = [[float(mechanism.outputs[j]), float(masses[j])] for j in used_outputs]
        title = _title_table(len(rows), "outputs in use")
        return [(title, ["publishes", "overall probability"], rows[:_MAX_SHOWN_ROWS])]

    def uncertified_mechanism(self, design: Design) -> Any:
        """Return the mechanism that is audited if the design has no certificate.

        Bins of many labels are audited by one row for every bin.

        Args:
            design: design of this family.
        """
        from workbench.families.labels.problem import make_bin_rows

        if _list_bins(design.mechanism) is None:
            return design.mechanism
        channel, _ = make_bin_rows(design.mechanism)
        return channel


def _describe_class(design: Design, fields: Record) -> str:
    """Return the loss and the class of randomizers for a report, and whether it is optimal."""
    classes = {
        "bins": "bins",
        "lp": "channel with these outputs",
        "unbiased": "unbiased randomizer",
        "rr-with-prior": "RRWithPrior",
    }
    name = classes[fields["method"]]
    is_optimal = design.status == "optimal" and design.request.aim.runs == 1
    if is_optimal:
        return f"{fields['loss']}, optimal {name}"
    return f"{fields['loss']}, best {name} found; not proven optimal"


def _title_table(count: int, subject: str) -> str:
    """Return the title of a table with at most `_MAX_SHOWN_ROWS` rows."""
    if count <= _MAX_SHOWN_ROWS:
        return f"{count} {subject}"
    return f"The first {_MAX_SHOWN_ROWS} of {count} {subject}"


def count_used_outputs(mechanism: Any) -> int:
    """Count the outputs that some label produces.

    Args:
        mechanism: a label randomizer.
    """
    if _list_bins(mechanism) is not None:
        return int(mechanism.outputs.size)
    return int((mechanism.matrix.max(axis=0) > _MIN_USED_MASS).sum())


def _list_bins(mechanism: Any) -> list[dict[str, float]] | None:
    """Return the bins of a mechanism as records of lower, upper (first and last label) and value
    (the output). None if the mechanism is not RR-on-Bins.
    """
    from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse

    is_on_bins = isinstance(mechanism, RandomizedResponse) and mechanism.name == "RR-on-Bins"
    return mechanism.bins() if is_on_bins else None


FAMILY = _LabelFamily()


def list_frontier_requests(question: Any, values: Values) -> Iterable[Point]:
    """Yield the points of a frontier: every method at every ε, and the channel LP at every δ too.

    Args:
        question: labels with a prior. None: the options define them.
        values: option -> value.

    Yields:
        (columns, request): the columns notion, epsilon, delta and loss of a point, and its
        request.
    """
    for method in values["method"]:
        deltas = values["delta"] if method == "lp" else [ZERO]
        for delta in deltas:
            for epsilon in values["epsilon"]:
                notion = "dp" if delta else "pure"
                columns = {
                    "notion": notion,
                    "epsilon": float(epsilon),
                    "delta": float(delta),
                    "loss": values["loss"],
                }
                request = FAMILY.make_request(
                    question or values["labels"],
                    method=method,
                    loss=values["loss"],
                    solver=values["solver"],
                    notion=notion,
                    epsilon=epsilon,
                    delta=delta,
                )
                yield columns, request
