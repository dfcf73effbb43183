"""Private label randomizers as a family: its options, its requests, what its designs show."""

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
from workbench.pipeline.stated import list_linear_notions

if TYPE_CHECKING:
    from workbench.families.labels.request import LabelRequest
    from workbench.pipeline.design import Design, Tables
    from workbench.questions.labels import Labels


METHODS = ("bins", "lp", "unbiased")
_MIN_USED_MASS = 1e-9  # an output of less mass than this, for every label, is not in use
_MAX_SHOWN_ROWS = 40  # bins or outputs in a report


def _list_notions() -> Iterable[str]:
    """The notions whose programs are linear without binaries or convex, of those whose budgets the options spell."""
    return (
        name
        for name in chain(list_linear_notions(), list_convex_notions())
        if name in BUILT_IN_NOTIONS
    )


def _read_labels(value: Any, name: str) -> Labels:
    """ "0..20", or a CSV of labels and weights: their content, since files change."""
    from workbench.questions.labels import Labels

    return value if isinstance(value, Labels) else Labels.parse(read_plain_text(value, name))


def _read_label_prior(value: Any, name: str) -> Rationals | str:
    """The word uniform, or weights: a list, "1,2,1" or a CSV file of them."""
    from workbench.data.points import list_labelled_cells

    if isinstance(value, str) and value.strip() == "uniform":
        return "uniform"
    cells = list_labelled_cells(value, name, "uniform, or weights, in a list or a file")
    return LabelledTuple.with_labels_of(cells, list_reader(read_number)(cells, name))


def _read_label_outputs(value: Any, name: str) -> tuple[float, ...]:
    """ "0..20", a CSV, or the values."""
    from workbench.questions.labels import Labels

    try:
        outputs = (
            Labels.parse(read_plain_text(value, name)) if isinstance(value, str) else Labels(value)
        )
        if outputs.listed_order is not None:  # The columns of a loss would belong to other outputs.
            must(name, "in increasing order", repr(value))
    except InvalidRequest as error:
        raise InvalidRequest(
            f"outputs must be LOW..HIGH, such as -10..30, or increasing numbers. {error}"
        ) from None
    return tuple(outputs.values.tolist())


def _read_neighbours(value: Any, name: str) -> Any:
    """A named relation, or pairs of label positions, "0-1,1-2" or [(0, 1), (1, 2)]."""
    if isinstance(value, str) and "-" not in value:
        return choice_reader("all", "consecutive")(value, name)
    parts = [pair.split("-") for pair in value.split(",")] if isinstance(value, str) else value
    try:
        return tuple((int(i), int(j)) for i, j in parts)
    except (ValueError, TypeError):
        must(name, 'all, consecutive, or pairs of positions such as "0-1,1-2"', repr(value))


def _read_label_loss(value: Any, name: str) -> Any:
    """The canonical name of a loss, a Loss, a matrix as a tuple of rows, or a function (output, label) -> number."""
    from workbench.models.losses import Loss
    from workbench.pipeline.loss_tables import read_loss

    return value if isinstance(value, Loss) else read_loss(value, name)


class _LabelFamily(Family):
    name = "labels"
    title = "private randomizers of labels"
    summary = "The least-loss randomizer of labels: bins, channel LP or unbiased; judged and audited exactly."
    examples = (
        "design labels --labels 0..7 --method lp --notion zcdp --rho 0.1",
        "design labels --labels 0..5 --loss squared --epsilon 4",
        "design labels --labels 0..20 --loss squared --epsilon 4",
        "design labels --labels prior.csv --loss absolute --epsilon 1 --method lp --json",
        "design labels --labels 0..7 --loss absolute --epsilon 1 --method lp --neighbours consecutive",
        "design labels --labels 0..7 --method lp --notion dp --epsilon 4 --delta 1e-5 --runs 8",
        "design labels --labels 0..10 --epsilon 1 --method unbiased --save unbiased.json --plot channel.png",
        "(prior.csv has two columns: label, weight; a header line is optional)",
    )
    options = (
        Option(
            "labels", _read_labels, required=True, question=True,
            help='"0..20", "0..200:5", "0,1,5", or a CSV of labels, with weights in a second column.',
        ),
        Option(
            "prior", _read_label_prior, question=True,
            help="How often each label is expected: uniform, weights 1,2,1, or a CSV; those of the labels by default.",
        ),
        Option(
            "loss", _read_label_loss, "squared",
            "squared, absolute, poisson, poisson-deviance, error-rate, pinball:τ or huber:h; lp: or a CSV matrix, a "
            "row for every label (in Python: an array, or a function of an output and a label).",
        ),
        Option(
            "method", choice_reader("auto", *METHODS), "auto",
            "bins, lp or unbiased; auto: lp where what follows or a loss of your own asks for it, else bins.",
        ),
        Option("outputs", _read_label_outputs, help="lp: LOW..HIGH, the integers that may be published."),
        Option("neighbours", _read_neighbours, "all", 'lp: all, consecutive, or positions "0-1,1-2".'),
        Option("notion", choice_reader(more_choices=_list_notions), "dp", "lp: dp, pure or metric; curve, tradeoff, renyi, zcdp or gdp."),
        *NOTION_PARAMETERS,
        replace(RUNS, help="lp with notion dp: for how many runs the budget is."),
        Option(
            "constraints", read_constraints, (), kind=list, command="constraint",
            help="lp, repeatable: unbiased, row-monotone, column-monotone, symmetric or honest.",
        ),
        *SOLVING,
        PROGRESS,
        Option("delta", read_probability, ZERO, "lp with notion dp: in [0, 1].", hot=True),
        Option(
            "epsilon", read_budget_parameter, help="Privacy budget > 0; with notion metric per unit of the label.", hot=True,
        ),
    )  # fmt: skip

    @property
    def question_class(self) -> type[Labels]:
        from workbench.questions.labels import Labels

        return Labels

    def parse_question(self, values: Values) -> Labels:
        labels: Labels = values["labels"]
        prior = values["prior"]
        if prior is None:
            return labels
        if prior == "uniform":
            return labels.with_prior(prior)
        return labels.with_prior(LabelledTuple.with_labels_of(prior, map(nearest_float, prior)))

    def question_to_options(self, question: Any) -> Record:
        """See `Family.question_options`."""
        from workbench.pipeline.stated import simplify_shares

        shares = simplify_shares([*map(Fraction, question.prior.tolist())])
        whole = lcm(*(share.denominator for share in shares))  # as weights, which floats hold
        prior = "uniform" if len({*shares}) == 1 else [share * whole for share in shares]
        return {"labels": ",".join(map(repr, question.values.tolist())), "prior": prior}

    def build_request(self, question: Any, values: Record) -> LabelRequest:
        from workbench.families.labels.request import LabelRequest
        from workbench.models.losses import Loss
        from workbench.pipeline.request import read_claim

        if values["notion"] == "dp" and not values["delta"] and values["runs"] == 1:
            values["notion"] = "pure"  # the same, decided output by output
        values["constraints"] = tuple(dict.fromkeys(values["constraints"]))
        loss, neighbours = values["loss"], values["neighbours"]
        by_position = isinstance(loss, tuple) and get_row_labels(loss) is None
        if question.listed_order is not None and (by_position or not isinstance(neighbours, str)):
            companion = "rows of a loss" if by_position else "neighbours"
            must(
                "labels",
                f"in increasing order where {companion} are given by position",
                "another order",
            )
        is_open = values["method"] == "auto"
        if is_open:
            more = (
                values["outputs"],
                values["constraints"],
                values["neighbours"] != "all",
                values["notion"] != "pure",
            )
            values["method"] = (
                "bins" if isinstance(values["loss"], (str, Loss)) and not any(more) else "lp"
            )
        if (
            values["method"] == "unbiased" and values["solver"] == "highs"
        ):  # the default, which knows no cones
            values["solver"] = "cvxpy:clarabel"
        values["may_use_bins"] = is_open
        return LabelRequest.from_values(question, read_claim(values), values)

    def open_session(self, request: Any) -> Session:
        from workbench.families.labels.problem import (
            BinsProblem,
            ChannelOfLabels,
            design_within_curve,
        )
        from workbench.pipeline.solve import ProblemSession

        if request.aim.runs > 1:  # slow to import, as the unbiased ones are
            from workbench.pipeline.many_runs import ManyRuns

            return ManyRuns(request, design_within_curve)
        if request.how.method == "unbiased":
            from workbench.families.labels.unbiased import UnbiasedProblem

            return ProblemSession(request, UnbiasedProblem)
        return ProblemSession(
            request, ChannelOfLabels if request.how.method == "lp" else BinsProblem
        )

    def solver_label(self, values: Values) -> str | None:
        """Bins are found without a solver."""
        return None if values["method"] == "bins" else str(values["solver"])

    # Mechanisms from elsewhere.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """The expected loss of a randomizer of the same labels, under their prior."""
        labels = request.question
        channel = getattr(mechanism, "certified_form", lambda: mechanism)()
        if (
            not hasattr(channel, "matrix")
            or [*map(float, getattr(mechanism, "inputs", ()))] != labels.values.tolist()
        ):
            must("baseline", "a randomizer of the request's labels", repr(mechanism))
        losses = request.named_loss.matrix(
            np.asarray(mechanism.outputs, dtype=float), labels.values
        )
        return float((labels.prior @ (channel.matrix * losses)).sum())

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        from workbench.mechanisms.channel import Channel

        if request.pairs is None:
            return mechanism
        return Channel.from_pairs(
            getattr(mechanism, "certified_form", lambda: mechanism)(), request.pairs
        )

    # What a design shows.

    def exact_values(self, design: Design) -> Record:
        if design.claim.notion.has_delta or not design.claim.is_epsilon_delta:
            return super().exact_values(design)
        known = (
            0.0 if design.private else None
        )  # within the budget every δ at it is 0; beyond it none is computed
        return {"pdp_delta": known, "dp_delta": known, "pure_epsilon": design.privacy.pure_epsilon}

    def extra_columns(self, design: Design) -> Record:
        return {"outputs_used": count_used_outputs(design.mechanism)}

    def extra_json(self, design: Design) -> Record:
        request, mechanism = design.request, design.mechanism
        budget, of_bounds = design.claim.to_dict(), not design.claim.is_epsilon_delta
        if not of_bounds:
            budget = {"epsilon": float(request.claim.epsilon), "delta": float(request.claim.delta)}
        exact = {name: to_jsonable(value) for name, value in design.exact.items()}
        exact["epsilon"] = exact["pure_epsilon"]
        if of_bounds or design.claim.notion.has_delta:
            exact["delta"] = exact["dp_delta"]
        if request.aim.runs > 1:
            budget |= {"runs": request.aim.runs}
            exact["composed"] = design.details["composed"]
        shown = {
            "method": "bins"
            if request.how.method == "lp" and _list_bins(mechanism) is not None
            else request.how.method,
            "loss": request.loss_name,
            **budget,
            "notion": request.claim.notion.name,
            "labels": request.question.k,
            "neighbours": request.aim.neighbours
            if isinstance(request.aim.neighbours, str)
            else "listed",
            "d": count_used_outputs(mechanism),
            "bins": _list_bins(mechanism),
            "exact": exact,
        }
        if shown["bins"] is None:
            shown |= {"outputs": mechanism.outputs.tolist(), "channel": mechanism.matrix.tolist()}
        return shown

    def facts(self, design: Design) -> Facts:
        from workbench.pipeline.budget import list_composition_facts

        r = self.extra_json(design)
        return [
            (f"least {r['loss']} loss", f"{design.objective:.9g}, by {r['method']}"),
            ("bound", design.bound_text),
            ("asked", f"{design.request.budget_text}, {r['neighbours']} pairs"),
            ("exact", f"pure epsilon {r['exact']['epsilon']}"),
            ("outputs", f"{r['d']} in use"),
            *list_composition_facts(design),
        ]

    def list_tables(self, design: Design) -> Tables:
        bins, mechanism = _list_bins(design.mechanism), design.mechanism
        if bins is not None:
            rows = [[b["lower"], b["upper"], b["value"]] for b in bins]
            return [
                (
                    _title_table(len(rows), "bins"),
                    ["lower", "upper", "publishes"],
                    rows[:_MAX_SHOWN_ROWS],
                )
            ]
        mass = design.question.prior @ mechanism.matrix
        used = (mechanism.matrix.max(axis=0) > _MIN_USED_MASS).nonzero()[0]
        rows = [[float(mechanism.outputs[j]), float(mass[j])] for j in used]
        return [
            (
                _title_table(len(rows), "outputs in use"),
                ["publishes", "overall probability"],
                rows[:_MAX_SHOWN_ROWS],
            )
        ]

    def uncertified_mechanism(self, design: Design) -> Any:
        from workbench.families.labels.problem import make_bin_rows

        return (
            design.mechanism
            if _list_bins(design.mechanism) is None
            else make_bin_rows(design.mechanism)[0]
        )


def _title_table(count: int, what: str) -> str:
    """Title a table of at most `_SHOWN` rows."""
    return (
        f"{count} {what}"
        if count <= _MAX_SHOWN_ROWS
        else f"The first {_MAX_SHOWN_ROWS} of {count} {what}"
    )


def count_used_outputs(mechanism: Any) -> int:
    """How many outputs some label has."""
    if _list_bins(mechanism) is not None:
        return int(mechanism.outputs.size)
    return int((mechanism.matrix.max(axis=0) > _MIN_USED_MASS).sum())


def _list_bins(mechanism: Any) -> list[dict[str, float]] | None:
    """lower, upper (first and last label) and value of every bin; None when the mechanism has no bins."""
    from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse

    return mechanism.bins() if isinstance(mechanism, RandomizedResponse) else None


FAMILY = _LabelFamily()


def list_frontier_requests(question: Any, values: Values) -> Iterable[Point]:
    """(columns that name a point, its request): every method at every ε, the channel LP at every δ too."""
    for method in values["method"]:
        for delta in values["delta"] if method == "lp" else [ZERO]:
            for epsilon in values["epsilon"]:
                given = {"notion": "dp" if delta else "pure", "epsilon": epsilon, "delta": delta}
                row = given | {
                    "loss": values["loss"],
                    "epsilon": float(epsilon),
                    "delta": float(delta),
                }
                common = {name: values[name] for name in ("loss", "solver")}
                yield (
                    row,
                    FAMILY.make_request(
                        question or values["labels"], method=method, **common, **given
                    ),
                )
