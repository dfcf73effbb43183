"""Any finite channel as a family: its options, its requests, what its designs show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data.intervals import read_range
from workbench.data.plain import plain_list
from workbench.data.points import shown
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ONE, ZERO, exact, jsonable, positive, probability, round_up
from workbench.exact.objects import Record, Values
from workbench.io.shown import Facts
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.notions import notion
from workbench.pipeline.family import Family, Session
from workbench.pipeline.frontier_plan import later
from workbench.pipeline.option import (
    MAX_LOSS,
    MINIMISE,
    NOTION_PARAMETERS,
    PROGRESS,
    RUNS,
    SOLVING,
    Option,
    Place,
    anything,
    constraints,
    count,
    flag,
    one_of,
    spell,
)
from workbench.pipeline.requirements import (
    MASS_ABOVE_RATIO,
    convex_or_ratio_notion,
    ratio_kind,
    ratio_notions,
)
from workbench.privacy.exposure import exposure
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import MOST_CELLS, RangeQuery

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from workbench.families.channel.request import ChannelRequest
    from workbench.pipeline.design import Design, Tables


_SHOWN = 7  # inputs and outputs up to which a report has the whole channel
_RANGE = ("range", "sensitivity", "cells")
_METRES = {"m": ONE, "km": Fraction(1000), "mi": Fraction(1609344, 1000)}


def _constraints(value: Any, name: str) -> Any:
    """Names, and last of all a function of the CVXPY variable."""
    if callable(value):
        return (value,)
    if value is None or isinstance(value, str):
        return constraints(value, name)
    value = plain_list(
        value, name, "names of constraints, and perhaps a function of the CVXPY variable"
    )
    functions = [each for each in value if callable(each)]
    if len(functions) > 1:
        must(name, "given with at most one function", f"{len(functions)}")
    names = value if not functions else [each for each in value if not callable(each)]
    return (*constraints(names, name), *functions)


def _without(values: Values, names: Iterable[str], when: str) -> None:
    """Refuse options of other questions."""
    for name in names:
        if values[name] is not None:
            raise InvalidRequest(f"{name} must be left out {when}. Got {spell(values[name])}.")


def _check_range(values: Values) -> None:
    """Refuse what is not known for real answers in a range."""
    InvalidRequest.unless_among(("absolute", "squared"), "loss of a range", values["loss"])
    least = values["minimise"] == "delta" or (
        values["minimise"] == "epsilon" and values["runs"] > 1
    )
    if least or values["constraints"] or notion(values["notion"]).per_distance:
        words = "minimise delta (or epsilon of several runs), constraints and budgets per distance"
        raise InvalidRequest(f"{words} must be left out with a range.")
    named = values["notion"]
    if values["delta"] and named in ratio_notions() and ratio_kind(named) == MASS_ABOVE_RATIO:
        must(
            "notion",
            "dp for a range with delta > 0, since rounding keeps dp but not pdp",
            repr(named),
        )


class _Channels(Family):
    name = "channel"
    title = "any finite channel"
    summary = "The least-loss private channel for any finite inputs, outputs, neighbours, prior and loss; certified."
    examples = (
        "design channel --answers 0..10 --max-shift 1 --loss squared --epsilon 1 --delta 1e-5",
        "design channel --answers 0..100 --max-shift 1 --loss squared --epsilon 1 --delta 1e-5",
        "design channel --answers 0..20 --neighbours consecutive --loss absolute --epsilon 1 --notion pure --json",
        "design channel --answers red,green,blue --neighbours all --loss loss.csv --prior worst --epsilon 1",
        "design channel --answers 0..10 --max-shift 1 --epsilon 4 --delta 1e-5 --runs 8",
        "design channel --answers 0..10 --max-shift 2 --epsilon 1 --minimise delta --max-loss 1.5 --save channel.json",
        "design channel --answers 0..20 --max-shift 1 --notion zcdp --rho 0.1",
        "design channel --answers 0..10 --max-shift 1 --outputs free --loss squared --epsilon 1",
        'design channel --places city.csv --neighbours "within 1 L1" --loss euclidean --epsilon 0.7 --notion pure',
        'design channel --places city.csv --neighbours "all L2" --loss euclidean --epsilon 0.7 --notion metric',
        "design channel --range 0..200000 --loss absolute --epsilon 0.5 --delta 0.05 --save incomes.json",
        "(loss.csv has a row for every input and a column for every output)",
    )
    formulas = (
        "formula channel --answers 0..5 --max-shift 1 --loss absolute",
        "formula channel --answers 0..3 --max-shift 1 --loss absolute --delta 0..1 --epsilon 0.1..4",
    )
    options = (
        Option(
            "answers", anything, help='Inputs: "0..100", "0..5:0.5" (LOW..HIGH:STEP), "a,b,c" or a CSV of one column.',
            question=True,
        ),
        Option("places", anything, help="Instead of --answers: a CSV of places, x, y[, weight].", question=True),
        Option("range", read_range, help="Real answers between two numbers, 0..200000, instead of --answers.",
               question=True),
        Option("sensitivity", positive, question=True,
               help="How far neighbouring answers of a --range differ at most; all of it by default."),
        Option("cells", count(2, MOST_CELLS), kind=int, question=True,
               help="Equal cells that answers of a --range are rounded to; refined by default."),
        Option(
            "outputs", anything, question=True,
            help="What may be published, as --answers; by default the same; or free: any real numbers, chosen.",
        ),
        Option("max_shift", exact, help="Answers at most so far apart are neighbours.", question=True),
        Option(
            "neighbours", anything, question=True,
            help='all, consecutive, or a CSV of pairs (a third column: their distance), instead of --max-shift; '
                 'of places "within R NORM" or "all NORM", NORM L1, L2 or Linf.',
        ),
        Option(
            "directed", flag, False, kind=bool, question=True,
            help="Only one side of each pair: the larger number (or later input, or first of a listed pair) against "
                 "the other.",
        ),
        Option(
            "prior", anything, "uniform", "uniform, worst, weights 1,2,1, or a CSV of them.", question=True,
        ),
        Option(
            "loss", later("workbench.pipeline.loss_tables", "read_loss"), "squared",
            "squared, absolute, error-rate, pinball:τ, huber:h, ..., or a CSV matrix (in Python: or a function of an "
            "output and an answer); "
            "of places euclidean, manhattan, squared or error-rate.",
        ),
        Option("notion", convex_or_ratio_notion, "dp", "dp, pure, pdp or metric; curve, tradeoff, renyi, zcdp or gdp."),
        *NOTION_PARAMETERS,
        Option(
            "constraints", _constraints, (), kind=list, command="constraint",
            help="Repeatable: unbiased, row-monotone, column-monotone, symmetric or honest (in Python: and a "
                 "function of the CVXPY variable).",
        ),
        Option("unit", one_of("m", "km", "mi"), help="Of the coordinates of --places, for --epsilon 0.7/km."),
        Option(
            "method", one_of("auto", "block", "program"), "auto",
            "block: an interior point output by output; program: that of --solver; auto: what takes less work.",
        ),
        MINIMISE,
        RUNS,
        PROGRESS,
        *SOLVING,
        MAX_LOSS,
        Option("delta", probability, help="In [0, 1]; 0 by default. Where it is minimised: an upper limit.", hot=True),
        Option(
            "epsilon", positive, hot=True,
            help="Privacy budget > 0; with notion metric per unit of distance. Where it is minimised: an upper limit.",
        ),
    )  # fmt: skip
    how = (*Family.how, "method")

    def read(self, given: Values, place: Place = "python", *, spelled: bool = False) -> Record:
        """See `Family.read`."""
        given = self.in_units(given) if "/" in str(given.get("epsilon")) else given
        return super().read(given, place, spelled=spelled)

    def in_units(self, given: Values) -> Values:
        """An ε "0.7/km" as per unit of the coordinates. Raises InvalidRequest."""
        epsilon, unit = given.get("epsilon"), given.get("unit")
        value, _, per = epsilon.partition("/") if isinstance(epsilon, str) else ("", "", "")
        if per.strip() in _METRES:
            if unit is None:
                raise InvalidRequest(
                    f"unit must be given, that of coordinates, for an epsilon per {per}. Got none."
                )
            if not notion(given.get("notion", "dp")).per_distance:
                must("notion", f"metric for an epsilon per {per}", repr(given.get("notion", "dp")))
            InvalidRequest.unless_among(_METRES, "unit", unit)
            given = {
                **given,
                "epsilon": positive(value, "epsilon") * _METRES[unit] / _METRES[per.strip()],
            }
        return given

    question = FiniteQuery

    def spelled_question(self, values: Values) -> FiniteQuery:
        finite, real = (
            ("outputs", "max_shift", "neighbours", "directed", "prior"),
            ("sensitivity", "cells"),
        )
        values = {**dict.fromkeys((*_RANGE, *finite, "places")), **values}
        values["directed"] = values["directed"] or None
        if sum(values[name] is not None for name in ("answers", "range", "places")) != 1:
            raise InvalidRequest(
                "The answers must be given by exactly one of answers, range and places."
            )
        if values["range"] is not None:
            _without(values, finite[:-1], "with a range")
            return RangeQuery(values["range"], **{name: values[name] for name in (*real, "prior")})
        _without(
            values, real, "unless a range is given (max_shift: how far neighbouring answers differ)"
        )
        given = {name: values[name] for name in finite} | {"directed": bool(values["directed"])}
        if (
            values["places"] is not None and given["prior"] == "uniform"
        ):  # a file's own weights come first
            given["prior"] = None
        return self.question(
            values["answers"] if values["places"] is None else values["places"], **given
        )

    def question_options(self, question: Any) -> Record:
        """See `Family.question_options`."""
        inputs = question.inputs
        if isinstance(question, RangeQuery):
            named = question.to_dict()
            return {name: named[name] for name in (*_RANGE, "prior") if name in named}
        neighbours: Any = f"all {question.norm}" if question.planar else "all"
        if question.pairs is not None:
            distances = question.distances or [None] * len(question.pairs)
            neighbours = [
                [inputs[i], inputs[j]] + ([] if distance is None else [distance])
                for (i, j), distance in zip(question.pairs, distances, strict=True)
            ]
        prior = "worst" if question.prior is None else question.prior
        named = {"answers": inputs, "places": None, "outputs": question.outputs}
        directed = {"directed": True} if question.directed else {}
        return {**named, "neighbours": neighbours, **directed, "prior": prior}

    def checked(self, question: Any, values: Record) -> ChannelRequest:
        from workbench.families.channel.request import LARGEST, ChannelRequest
        from workbench.pipeline.loss_tables import loss_table
        from workbench.pipeline.request import read_claim
        from workbench.pipeline.user_constraints import checked_constraints

        *names, last = values["constraints"] or (None,)
        if callable(last):
            values |= {"constraints": names, "more": checked_constraints(last, "M (k, m)")}
        values["constraints"] = tuple(dict.fromkeys(values["constraints"]))
        if isinstance(question, RangeQuery):
            _check_range(values)
        if (
            values["unit"] is not None
            and not question.planar
            and not notion(values["notion"]).per_distance
        ):
            must(
                "unit",
                "left out unless places are given, or an epsilon per unit",
                repr(values["unit"]),
            )
        values["losses"] = loss_table(question, values["loss"])
        largest = Fraction(LARGEST)
        if values["minimise"] == "epsilon" and notion(values["notion"]).per_distance:
            largest /= max(
                question.metric_pairs()[1], default=ONE
            )  # The limit holds for the farthest neighbours.
        return ChannelRequest.of(question, read_claim(values, max_epsilon=largest), values)

    def open(self, request: Any) -> Session:
        from workbench.families.channel.problem import ChannelProblem
        from workbench.families.channel.request import LEAST
        from workbench.pipeline.solve import ProblemSession

        if request.aim.runs > 1:  # many runs are found by programs in CVXPY, slow to import
            from workbench.pipeline.many_runs import ManyRuns

            return ManyRuns(request)
        if isinstance(request.question, RangeQuery):
            from workbench.families.channel.range import RangeSession

            return RangeSession(request)
        if request.question.free:
            from workbench.families.channel.free_outputs import FreeOutputsSession

            return FreeOutputsSession(request)
        return ProblemSession(request, ChannelProblem, LEAST)

    # Keys of sweeps.

    def key(self, values: Values) -> Record:
        """The question spelled out, so that a file's content counts and not its name."""
        spelling = [option.name for option in self.options if option.question]
        whole = super().key({**values, **dict.fromkeys(spelling)})
        return {
            name: whole[name] for name in whole if name not in spelling
        } | self.spelled_question(values).to_dict()

    def points_per_task(self, values: Values) -> int:
        return 4

    # Mechanisms from elsewhere.

    def loss(self, request: Any, mechanism: Any) -> float:
        """The expected (or largest) loss of a channel of the question's inputs and outputs, in their order."""
        from workbench.families.channel.repair import channel_loss

        return float(
            channel_loss(self.related(request, mechanism), request.losses, request.question.prior)
        )

    def related(self, request: Any, mechanism: Any) -> Any:
        channel = getattr(mechanism, "certified_form", lambda: mechanism)()
        shape = (request.question.k, request.question.m)
        if not isinstance(channel, Channel) or (len(channel.rows), len(channel.outputs)) != shape:
            must(
                "baseline",
                f"a channel of {shape[0]} inputs and {shape[1]} outputs",
                repr(mechanism),
            )
        question = request.question
        pairs = question.metric_pairs()[0] if request.per_distance else question.pairs
        return Channel.of(channel, pairs, directed=question.directed)

    # What a design shows.

    def columns(self, design: Design) -> Record:
        return {"outputs_used": len(design.mechanism.used)}

    def json(self, design: Design) -> Record:
        from workbench.pipeline.budget import budget_json

        mechanism = design.mechanism
        return {
            **budget_json(design),
            "loss_name": design.request.losses.name,
            "loss_value": jsonable(design.details["loss"]),
            "question": design.question.to_dict(),
            "channel": mechanism.matrix.tolist()
            if hasattr(mechanism, "rows")
            else mechanism.to_dict(),
            **({} if (alone := _exposure(design)) is None else {"exposure": round_up(alone)}),
        }

    def facts(self, design: Design) -> Facts:
        from workbench.pipeline.budget import budget_facts

        r = design.request
        under = "for the worst input" if r.question.prior is None else "expected"
        outputs = "with real outputs" if r.question.free else "on these outputs"
        best = f"best of all channels {outputs}"
        if r.aim.runs > 1:
            best = f"best found {outputs} for {r.aim.runs} runs"
        is_chosen = r.question.free or "rounded" in design.details
        if "rounded" in design.details:
            best = "best found of all channels of the range, rounding included"
        if name := design.details.get("name"):
            best = f"of {name}"
        value = f"{design.objective:.9g} ({best}, {under})"
        used = self.columns(design)["outputs_used"]
        if r.aim.unit is not None and r.losses.name in ("euclidean", "manhattan"):
            value += f", in {r.aim.unit}"
        return [
            (r.minimised if name else f"least {r.minimised}", value),
            (
                "bound",
                design.bound_words + ("" if design.gap is None else f" (gap {design.gap:.2g})"),
            ),
            *budget_facts(design),
            *_exposed(design),
            (
                "outputs",
                self.published(design) if is_chosen else f"{used} of {r.question.m} in use",
            ),
        ]

    def published(self, design: Design) -> str:
        """How many values a channel with free outputs publishes."""
        q = design.question
        used = design.mechanism.used
        answers = used.max() < q.m and {q.outputs[o] for o in used.tolist()} <= {*q.inputs}
        return f"publishes {len(used)} values, {'all of them answers' if answers else 'not only answers'}"

    def tables(self, design: Design) -> Tables:
        q, mechanism = design.question, design.mechanism
        inputs = q.inputs if hasattr(mechanism, "rows") else mechanism.inputs
        if len(inputs) > _SHOWN or len(mechanism.outputs) > _SHOWN:
            return []
        heads = ["input", *(str(shown(o)) for o in q.outputs)]
        rows = [
            [str(shown(x)), *(f"{mass:.4g}" for mass in row)]
            for x, row in zip(inputs, mechanism.matrix, strict=True)
        ]
        return [("Probability of every output", heads, rows)]

    def figure(self, design: Design) -> Figure:
        from workbench.io.figures import place_plot

        q = design.question
        if q.planar and q.inputs == q.outputs:
            weights = (
                np.full(q.k, 1 / q.k) if q.prior is None else np.array([float(p) for p in q.prior])
            )
            own, law = int(weights.argmax()), design.mechanism.matrix
            points = [[float(c) for c in place] for place in q.inputs]
            words = (
                "what is published"
                if q.prior is not None
                else "what is published, places equally often"
            )
            titles = (
                f"{words}\n{design.request.budget_words}: {design.objective:.6g}",
                "published from the cross",
            )
            return place_plot(points, [weights @ law, law[own]], titles, points[own])
        return super().figure(design)


def _exposure(design: Design) -> Fraction | None:
    """Compute the exposure of the channel of a design (`workbench.privacy.exposure`); None without a δ."""
    epsilon = design.claim.values.get("epsilon")
    if not design.claim.values.get("delta") or epsilon is None:
        return None
    if isinstance(design.mechanism, Channel):
        return exposure(
            design.mechanism, max(epsilon.values()) if isinstance(epsilon, Mapping) else epsilon
        )
    return ZERO if isinstance(design.mechanism, NearestOutputs) else None


def _exposed(design: Design) -> Facts:
    """A row of the report on what δ is spent on."""
    alone = _exposure(design)
    if alone is None:
        return []
    if alone:
        rare = (
            "a neighbour cannot produce, or produces 10,000 times more rarely than epsilon allows"
        )
        words = f"outputs that {rare}, have a probability of up to {float(alone):.6g}"
    else:
        words = (
            "no output is 10,000 times likelier for an input than epsilon allows for its neighbour"
        )
    return [("exposure", words)]


FAMILY = _Channels()

FINITE = tuple(option for option in FAMILY.options if option.question and option.name not in _RANGE)
"""The options that spell a finite question."""
