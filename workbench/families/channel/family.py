"""Any finite channel as a family: its options, its requests, what its designs show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact, jsonable, positive, probability
from workbench.families.base import Family, Session
from workbench.families.frontier_plan import Frontier, compared, later, several
from workbench.families.notion_points import OPTIONS as GRIDS
from workbench.families.notion_points import notion_requests
from workbench.families.option import (
    CERTIFY,
    MAX_LOSS,
    MINIMISE,
    NOTION_PARAMETERS,
    RUNS,
    SOLVER,
    SOLVING,
    Option,
    anything,
    flag,
    listed,
    one_of,
)
from workbench.families.requirements import convex_or_ratio_notion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from workbench.families.channel.request import ChannelRequest
    from workbench.families.design import Design
    from workbench.families.stated import Stated
    from workbench.mechanisms.finite_query import FiniteQuery


_SHOWN = 7  # inputs and outputs up to which a report has the whole channel
_USED = 1e-9


def _constraint_names() -> Iterable[str]:
    from models.channel import CONSTRAINTS

    return CONSTRAINTS


def _constraints(value: Any, name: str) -> Any:
    """Names, or a function of the CVXPY variable."""
    if callable(value):
        return value
    return listed(one_of(more=_constraint_names))(value, name) if len(value) else ()


def _loss(value: Any, name: str) -> Any:
    from workbench.families.channel.losses import read_loss

    return read_loss(value, name)


class _Channels(Family):
    name = "channel"
    title = "any finite channel"
    summary = "The least-loss private channel for any finite inputs, outputs, neighbours, prior and loss; certified."
    examples = (
        "design channel --answers 0..100 --max-shift 1 --loss squared --epsilon 1 --delta 1e-5",
        "design channel --answers 0..20 --neighbours consecutive --loss absolute --epsilon 1 --notion pure --json",
        "design channel --answers red,green,blue --neighbours all --loss loss.csv --prior worst --epsilon 1",
        "design channel --answers 0..10 --max-shift 1 --epsilon 4 --delta 1e-5 --runs 8",
        "design channel --answers 0..10 --max-shift 2 --epsilon 1 --minimise delta --max-loss 1.5 --save channel.json",
        "design channel --answers 0..20 --max-shift 1 --notion zcdp --rho 0.1",
        "design channel --answers 0..10 --max-shift 1 --outputs free --loss squared --epsilon 1",
        "(loss.csv has a row for every input and a column for every output)",
    )
    formulas = (
        "formula channel --answers 0..5 --max-shift 1 --loss absolute",
        "formula channel --answers 0..3 --max-shift 1 --loss absolute --delta 0..1 --epsilon 0.1..4",
    )
    options = (
        Option(
            "answers", anything, help='Inputs: "0..100", "0..5:0.5" (LOW..HIGH:STEP), "a,b,c" or a CSV of one column.',
            required=True, question=True,
        ),
        Option(
            "outputs", anything, question=True,
            help="What may be published, as --answers; by default the same; or free: any real numbers, chosen.",
        ),
        Option("max_shift", exact, help="Answers at most so far apart are neighbours.", question=True),
        Option(
            "neighbours", anything, question=True,
            help='all, consecutive, or a CSV of pairs (a third column: their distance), instead of --max-shift.',
        ),
        Option(
            "prior", anything, "uniform", "uniform, worst, weights 1,2,1, or a CSV of them.", question=True,
        ),
        Option(
            "loss", _loss, "squared",
            "squared, absolute, error-rate, pinball:τ, huber:h, ..., or a CSV matrix (in Python: a function too).",
        ),
        Option("notion", convex_or_ratio_notion, "dp", "dp, pure, pdp or metric; curve, tradeoff, renyi, zcdp or gdp."),
        *NOTION_PARAMETERS,
        Option(
            "constraints", _constraints, (), kind=list, command="constraint",
            help="Repeatable: unbiased, row-monotone, column-monotone, symmetric or honest (in Python: or a function "
                 "of the CVXPY variable).",
        ),
        MINIMISE,
        RUNS,
        *SOLVING,
        MAX_LOSS,
        Option("delta", probability, help="In [0, 1]; 0 by default. Where it is minimised: an upper limit.", hot=True),
        Option(
            "epsilon", positive, hot=True,
            help="Privacy budget > 0; with notion metric per unit of distance. Where it is minimised: an upper limit.",
        ),
    )  # fmt: skip
    frontier = "workbench.families.channel.family"
    recommendation = "workbench.families.channel.frontier"

    @property
    def question(self) -> type[FiniteQuery]:
        from workbench.mechanisms.finite_query import FiniteQuery

        return FiniteQuery

    def spelled_question(self, values: Mapping[str, Any]) -> FiniteQuery:
        names = ("outputs", "max_shift", "neighbours", "prior")
        return self.question(values["answers"], **{name: values[name] for name in names})

    def question_options(self, question: Any) -> dict[str, Any]:
        """See `Family.question_options`."""
        inputs = question.inputs
        neighbours: Any = "all"
        if question.pairs is not None:
            distances = question.distances or [None] * len(question.pairs)
            neighbours = [
                [inputs[i], inputs[j]] + ([] if distance is None else [distance])
                for (i, j), distance in zip(question.pairs, distances, strict=True)
            ]
        prior = "worst" if question.prior is None else question.prior
        return {"answers": inputs, "outputs": question.outputs, "neighbours": neighbours, "prior": prior}

    def stated(self, request: Any) -> Stated:
        """See `Family.stated`."""
        program: Stated = request.stated()
        return program

    def checked(self, question: Any, values: dict[str, Any]) -> ChannelRequest:
        from workbench.families.budget import completed
        from workbench.families.channel.losses import loss_table
        from workbench.families.channel.request import LARGEST, ChannelRequest
        from workbench.families.user_constraints import checked_constraints

        if callable(values["constraints"]):
            values |= {"constraints": (), "more": checked_constraints(values["constraints"], "M (k, m)")}
        values["constraints"] = tuple(dict.fromkeys(values["constraints"]))
        losses = loss_table(question, values["loss"])
        return ChannelRequest(question=question, losses=losses, **completed(values, LARGEST))

    def open(self, request: Any) -> Session:
        from workbench.families.channel.problem import ChannelProblem
        from workbench.families.channel.request import LEAST
        from workbench.families.pipeline import ProblemSession

        if request.runs > 1:  # many runs are found by programs in CVXPY, slow to import
            from workbench.families.many_runs import ManyRuns

            return ManyRuns(request)
        if request.question.free:
            from workbench.families.channel.free_outputs import FreeOutputsSession

            return FreeOutputsSession(request)
        return ProblemSession(request, ChannelProblem, LEAST)

    # Keys of sweeps.

    def key(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The question spelled out, so that a file's content counts and not its name."""
        spelling = [option.name for option in self.options if option.question]
        whole = super().key({**values, **dict.fromkeys(spelling)})
        return {name: whole[name] for name in whole if name not in spelling} | self.spelled_question(values).to_dict()

    def points_per_task(self, values: Mapping[str, Any]) -> int:
        return 4

    # Mechanisms from elsewhere.

    def loss(self, request: Any, mechanism: Any) -> float:
        """The expected (or largest) loss of a channel of the question's inputs and outputs, in their order."""
        from workbench.families.channel.repair import loss_of

        channel = self.related(request, mechanism)
        rows = np.array([row.integers for row in channel.rows], dtype=object)
        return float(loss_of(rows, request.losses, request.question.prior))

    def related(self, request: Any, mechanism: Any) -> Any:
        from workbench.mechanisms.channel import Channel

        channel = getattr(mechanism, "certified_form", lambda: mechanism)()
        shape = (request.question.k, request.question.m)
        if not isinstance(channel, Channel) or (len(channel.rows), len(channel.outputs)) != shape:
            InvalidRequest.must("baseline", f"a channel of {shape[0]} inputs and {shape[1]} outputs", repr(mechanism))
        return request.channel(channel)

    # What a design shows.

    def columns(self, design: Design) -> dict[str, Any]:
        return {"outputs_used": int((design.mechanism.matrix.max(axis=0) > _USED).sum())}

    def json(self, design: Design) -> dict[str, Any]:
        from workbench.families.budget import budget_json

        return {
            **budget_json(design),
            "loss_name": design.request.losses.name,
            "loss_value": jsonable(design.details["loss"]),
            "question": design.question.to_dict(),
            "channel": design.mechanism.matrix.tolist(),
        }

    def facts(self, design: Design) -> list[tuple[str, str]]:
        from workbench.families.budget import budget_facts

        r = design.request
        what = f"{r.losses.name} loss" if r.minimise == "loss" else r.minimise
        under = "for the worst input" if r.question.prior is None else "expected"
        best = "best of all channels on these outputs" if r.runs == 1 else f"best found for {r.runs} runs"
        if r.question.free:
            best = "best of all channels with real outputs"
        value = f"{design.objective:.9g} ({best}, {under})"
        used = self.columns(design)["outputs_used"]
        return [
            (f"least {what}", value),
            ("bound", design.bound_words + ("" if design.gap is None else f" (gap {design.gap:.2g})")),
            *budget_facts(design),
            ("outputs", self.published(design) if r.question.free else f"{used} of {r.question.m} in use"),
        ]

    def published(self, design: Design) -> str:
        """How many values a channel with free outputs publishes."""
        q = design.question
        used = np.flatnonzero(design.mechanism.matrix.max(axis=0) > _USED).tolist()
        answers = {q.outputs[o] for o in used} <= {*q.inputs}
        return f"publishes {len(used)} values, {'all of them answers' if answers else 'not only answers'}"

    def tables(self, design: Design) -> list[tuple[str, list[str], list[list[Any]]]]:
        from workbench.mechanisms.points import shown

        q, matrix = design.question, design.mechanism.matrix
        if q.k > _SHOWN or q.m > _SHOWN:
            return []
        heads = ["input", *(str(shown(o)) for o in q.outputs)]
        rows = [[str(shown(x)), *(f"{mass:.4g}" for mass in row)] for x, row in zip(q.inputs, matrix, strict=True)]
        return [("Probability of every output", heads, rows)]

    def figure(self, design: Design) -> Figure:
        from workbench.io.figures import channel_plot

        q = design.question
        inputs, outputs = q.places
        return channel_plot(
            inputs, outputs, design.mechanism.matrix, f"{q!r}\n{design.request.budget_words}: {design.objective:.6g}"
        )


FAMILY = _Channels()


FRONTIER = Frontier(
    "Least loss of any finite channel against ε and δ: certified points beside what is usual.",
    (
        *(option for option in FAMILY.options if option.question),
        *GRIDS,
        Option("notion", several(convex_or_ratio_notion), "dp", "dp, pure, pdp, metric, renyi, zcdp, gdp; or several."),
        FAMILY.option("loss"),
        Option("baselines", flag, True, "Geometric noise and randomized response at the same budgets.", kind=bool),
        SOLVER,
        CERTIFY,
    ),
    later("workbench.families.channel.frontier", "plan"),
    (
        "frontier channel --answers 0..20 --max-shift 1 --epsilon 0.1:4:20:log --delta 0,1e-5,0.01",
        "frontier channel --answers 0..10 --max-shift 1 --max-loss 0.5:3:6 --delta 0,1e-3",
        "frontier channel --answers a,b,c,d --neighbours all --loss error-rate --epsilon 0.5,1,2 --notion pure",
    ),
    points=compared(partial(notion_requests, FAMILY)),
)
