"""Any finite channel as a family: its options, its requests, what its designs show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data.intervals import read_range
from workbench.data.plain import read_list
from workbench.data.points import format_point
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import (
    ONE,
    ZERO,
    read_number,
    read_positive,
    read_probability,
    round_up,
    to_jsonable,
)
from workbench.exact.objects import Record, Values
from workbench.io.shown import Facts
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.notions import get_notion
from workbench.pipeline.family import Family, Session
from workbench.pipeline.frontier_plan import load_when_called
from workbench.pipeline.option import (
    MAX_LOSS,
    MINIMISE,
    NOTION_PARAMETERS,
    PROGRESS,
    RUNS,
    SOLVING,
    Option,
    Place,
    accept_anything,
    choice_reader,
    integer_reader,
    read_constraints,
    read_flag,
    to_json_value,
)
from workbench.pipeline.requirements import (
    MASS_ABOVE_RATIO,
    get_ratio_kind,
    list_ratio_notions,
    read_convex_or_ratio_notion,
)
from workbench.privacy.exposure import compute_exposure
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import MAX_CELLS, RangeQuery

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from workbench.families.channel.request import ChannelRequest
    from workbench.pipeline.design import Design, Tables


_MAX_SHOWN_SIZE = 7  # inputs and outputs up to which a report has the whole channel
_RANGE_OPTIONS = ("range", "sensitivity", "cells")
_METRES_PER_UNIT = {"m": ONE, "km": Fraction(1000), "mi": Fraction(1609344, 1000)}


def _read_constraints(value: Any, name: str) -> Any:
    """Names, and last of all a function of the CVXPY variable."""
    if callable(value):
        return (value,)
    if value is None or isinstance(value, str):
        return read_constraints(value, name)
    value = read_list(
        value, name, "names of constraints, and perhaps a function of the CVXPY variable"
    )
    functions = [each for each in value if callable(each)]
    if len(functions) > 1:
        must(name, "given with at most one function", f"{len(functions)}")
    names = value if not functions else [each for each in value if not callable(each)]
    return (*read_constraints(names, name), *functions)


def _refuse_options(values: Values, names: Iterable[str], when: str) -> None:
    """Refuse options of other questions."""
    for name in names:
        if values[name] is not None:
            raise InvalidRequest(
                f"{name} must be left out {when}. Got {to_json_value(values[name])}."
            )


def _check_range_options(values: Values) -> None:
    """Refuse what is not known for real answers in a range."""
    InvalidRequest.check_choice(("absolute", "squared"), "loss of a range", values["loss"])
    least = values["minimise"] == "delta" or (
        values["minimise"] == "epsilon" and values["runs"] > 1
    )
    if least or values["constraints"] or get_notion(values["notion"]).is_per_distance:
        words = "minimise delta (or epsilon of several runs), constraints and budgets per distance"
        raise InvalidRequest(f"{words} must be left out with a range.")
    named = values["notion"]
    if (
        values["delta"]
        and named in list_ratio_notions()
        and get_ratio_kind(named) == MASS_ABOVE_RATIO
    ):
        must(
            "notion",
            "dp for a range with delta > 0, since rounding keeps dp but not pdp",
            repr(named),
        )


class _ChannelFamily(Family):
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
            "answers", accept_anything, help='Inputs: "0..100", "0..5:0.5" (LOW..HIGH:STEP), "a,b,c" or a CSV of one column.',
            question=True,
        ),
        Option("places", accept_anything, help="Instead of --answers: a CSV of places, x, y[, weight].", question=True),
        Option("range", read_range, help="Real answers between two numbers, 0..200000, instead of --answers.",
               question=True),
        Option("sensitivity", read_positive, question=True,
               help="How far neighbouring answers of a --range differ at most; all of it by default."),
        Option("cells", integer_reader(2, MAX_CELLS), kind=int, question=True,
               help="Equal cells that answers of a --range are rounded to; refined by default."),
        Option(
            "outputs", accept_anything, question=True,
            help="What may be published, as --answers; by default the same; or free: any real numbers, chosen.",
        ),
        Option("max_shift", read_number, help="Answers at most so far apart are neighbours.", question=True),
        Option(
            "neighbours", accept_anything, question=True,
            help='all, consecutive, or a CSV of pairs (a third column: their distance), instead of --max-shift; '
                 'of places "within R NORM" or "all NORM", NORM L1, L2 or Linf.',
        ),
        Option(
            "directed", read_flag, False, kind=bool, question=True,
            help="Only one side of each pair: the larger number (or later input, or first of a listed pair) against "
                 "the other.",
        ),
        Option(
            "prior", accept_anything, "uniform", "uniform, worst, weights 1,2,1, or a CSV of them.", question=True,
        ),
        Option(
            "loss", load_when_called("workbench.pipeline.loss_tables", "read_loss"), "squared",
            "squared, absolute, error-rate, pinball:τ, huber:h, ..., or a CSV matrix (in Python: or a function of an "
            "output and an answer); "
            "of places euclidean, manhattan, squared or error-rate.",
        ),
        Option("notion", read_convex_or_ratio_notion, "dp", "dp, pure, pdp or metric; curve, tradeoff, renyi, zcdp or gdp."),
        *NOTION_PARAMETERS,
        Option(
            "constraints", _read_constraints, (), kind=list, command="constraint",
            help="Repeatable: unbiased, row-monotone, column-monotone, symmetric or honest (in Python: and a "
                 "function of the CVXPY variable).",
        ),
        Option("unit", choice_reader("m", "km", "mi"), help="Of the coordinates of --places, for --epsilon 0.7/km."),
        Option(
            "method", choice_reader("auto", "block", "program"), "auto",
            "block: an interior point output by output; program: that of --solver; auto: what takes less work.",
        ),
        MINIMISE,
        RUNS,
        PROGRESS,
        *SOLVING,
        MAX_LOSS,
        Option("delta", read_probability, help="In [0, 1]; 0 by default. Where it is minimised: an upper limit.", hot=True),
        Option(
            "epsilon", read_positive, hot=True,
            help="Privacy budget > 0; with notion metric per unit of distance. Where it is minimised: an upper limit.",
        ),
    )  # fmt: skip
    solving_option_names = (*Family.solving_option_names, "method")

    def read_values(
        self, values: Values, place: Place = "python", *, with_question: bool = False
    ) -> Record:
        """See `Family.read`."""
        values = self.convert_epsilon_unit(values) if "/" in str(values.get("epsilon")) else values
        return super().read_values(values, place, with_question=with_question)

    def convert_epsilon_unit(self, given: Values) -> Values:
        """An ε "0.7/km" as per unit of the coordinates. Raises InvalidRequest."""
        epsilon, unit = given.get("epsilon"), given.get("unit")
        value, _, per = epsilon.partition("/") if isinstance(epsilon, str) else ("", "", "")
        if per.strip() in _METRES_PER_UNIT:
            if unit is None:
                raise InvalidRequest(
                    f"unit must be given, that of coordinates, for an epsilon per {per}. Got none."
                )
            if not get_notion(given.get("notion", "dp")).is_per_distance:
                must("notion", f"metric for an epsilon per {per}", repr(given.get("notion", "dp")))
            InvalidRequest.check_choice(_METRES_PER_UNIT, "unit", unit)
            given = {
                **given,
                "epsilon": read_positive(value, "epsilon")
                * _METRES_PER_UNIT[unit]
                / _METRES_PER_UNIT[per.strip()],
            }
        return given

    question_class = FiniteQuery

    def parse_question(self, values: Values) -> FiniteQuery:
        finite, real = (
            ("outputs", "max_shift", "neighbours", "directed", "prior"),
            ("sensitivity", "cells"),
        )
        values = {**dict.fromkeys((*_RANGE_OPTIONS, *finite, "places")), **values}
        values["directed"] = values["directed"] or None
        if sum(values[name] is not None for name in ("answers", "range", "places")) != 1:
            raise InvalidRequest(
                "The answers must be given by exactly one of answers, range and places."
            )
        if values["range"] is not None:
            _refuse_options(values, finite[:-1], "with a range")
            return RangeQuery(values["range"], **{name: values[name] for name in (*real, "prior")})
        _refuse_options(
            values, real, "unless a range is given (max_shift: how far neighbouring answers differ)"
        )
        given = {name: values[name] for name in finite} | {"directed": bool(values["directed"])}
        if (
            values["places"] is not None and given["prior"] == "uniform"
        ):  # a file's own weights come first
            given["prior"] = None
        return self.question_class(
            values["answers"] if values["places"] is None else values["places"], **given
        )

    def question_to_options(self, question: Any) -> Record:
        """See `Family.question_options`."""
        inputs = question.inputs
        if isinstance(question, RangeQuery):
            named = question.to_dict()
            return {name: named[name] for name in (*_RANGE_OPTIONS, "prior") if name in named}
        neighbours: Any = f"all {question.norm}" if question.is_planar else "all"
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

    def build_request(self, question: Any, values: Record) -> ChannelRequest:
        from workbench.families.channel.request import MAX_EPSILON, ChannelRequest
        from workbench.pipeline.loss_tables import make_loss_table
        from workbench.pipeline.request import read_claim
        from workbench.pipeline.user_constraints import check_constraints

        *names, last = values["constraints"] or (None,)
        if callable(last):
            values |= {"constraints": names, "more": check_constraints(last, "M (k, m)")}
        values["constraints"] = tuple(dict.fromkeys(values["constraints"]))
        if isinstance(question, RangeQuery):
            _check_range_options(values)
        if (
            values["unit"] is not None
            and not question.is_planar
            and not get_notion(values["notion"]).is_per_distance
        ):
            must(
                "unit",
                "left out unless places are given, or an epsilon per unit",
                repr(values["unit"]),
            )
        values["losses"] = make_loss_table(question, values["loss"])
        largest = Fraction(MAX_EPSILON)
        if values["minimise"] == "epsilon" and get_notion(values["notion"]).is_per_distance:
            largest /= max(
                question.metric_pairs()[1], default=ONE
            )  # The limit holds for the farthest neighbours.
        return ChannelRequest.from_values(question, read_claim(values, max_epsilon=largest), values)

    def open_session(self, request: Any) -> Session:
        from workbench.families.channel.problem import ChannelProblem
        from workbench.families.channel.request import MIN_EPSILON
        from workbench.pipeline.solve import ProblemSession

        if request.aim.runs > 1:  # many runs are found by programs in CVXPY, slow to import
            from workbench.pipeline.many_runs import ManyRuns

            return ManyRuns(request)
        if isinstance(request.question, RangeQuery):
            from workbench.families.channel.range import RangeSession

            return RangeSession(request)
        if request.question.has_free_outputs:
            from workbench.families.channel.free_outputs import FreeOutputsSession

            return FreeOutputsSession(request)
        return ProblemSession(request, ChannelProblem, MIN_EPSILON)

    # Keys of sweeps.

    def sweep_key(self, values: Values) -> Record:
        """The question spelled out, so that a file's content counts and not its name."""
        spelling = [option.name for option in self.options if option.question]
        whole = super().sweep_key({**values, **dict.fromkeys(spelling)})
        return {name: whole[name] for name in whole if name not in spelling} | self.parse_question(
            values
        ).to_dict()

    def points_per_task(self, values: Values) -> int:
        return 4

    # Mechanisms from elsewhere.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """The expected (or largest) loss of a channel of the question's inputs and outputs, in their order."""
        from workbench.families.channel.repair import compute_channel_loss

        return float(
            compute_channel_loss(
                self.relate_mechanism(request, mechanism), request.losses, request.question.prior
            )
        )

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        channel = getattr(mechanism, "certified_form", lambda: mechanism)()
        shape = (request.question.k, request.question.m)
        if not isinstance(channel, Channel) or (len(channel.rows), len(channel.outputs)) != shape:
            must(
                "baseline",
                f"a channel of {shape[0]} inputs and {shape[1]} outputs",
                repr(mechanism),
            )
        question = request.question
        pairs = question.metric_pairs()[0] if request.is_per_distance else question.pairs
        return Channel.from_pairs(channel, pairs, directed=question.directed)

    # What a design shows.

    def extra_columns(self, design: Design) -> Record:
        return {"outputs_used": len(design.mechanism.used_outputs)}

    def extra_json(self, design: Design) -> Record:
        from workbench.pipeline.budget import budget_to_json

        mechanism = design.mechanism
        return {
            **budget_to_json(design),
            "loss_name": design.request.losses.name,
            "loss_value": to_jsonable(design.details["loss"]),
            "question": design.question.to_dict(),
            "channel": mechanism.matrix.tolist()
            if hasattr(mechanism, "rows")
            else mechanism.to_dict(),
            **(
                {}
                if (alone := _compute_design_exposure(design)) is None
                else {"exposure": round_up(alone)}
            ),
        }

    def facts(self, design: Design) -> Facts:
        from workbench.pipeline.budget import list_budget_facts

        r = design.request
        under = "for the worst input" if r.question.prior is None else "expected"
        outputs = "with real outputs" if r.question.has_free_outputs else "on these outputs"
        best = f"best of all channels {outputs}"
        if r.aim.runs > 1:
            best = f"best found {outputs} for {r.aim.runs} runs"
        is_chosen = r.question.has_free_outputs or "rounded" in design.details
        if "rounded" in design.details:
            best = "best found of all channels of the range, rounding included"
        if name := design.details.get("name"):
            best = f"of {name}"
        value = f"{design.objective:.9g} ({best}, {under})"
        used = self.extra_columns(design)["outputs_used"]
        if r.aim.unit is not None and r.losses.name in ("euclidean", "manhattan"):
            value += f", in {r.aim.unit}"
        return [
            (r.objective_name if name else f"least {r.objective_name}", value),
            (
                "bound",
                design.bound_text + ("" if design.gap is None else f" (gap {design.gap:.2g})"),
            ),
            *list_budget_facts(design),
            *_list_exposure_facts(design),
            (
                "outputs",
                self.published(design) if is_chosen else f"{used} of {r.question.m} in use",
            ),
        ]

    def published(self, design: Design) -> str:
        """How many values a channel with free outputs publishes."""
        q = design.question
        used = design.mechanism.used_outputs
        answers = used.max() < q.m and {q.outputs[o] for o in used.tolist()} <= {*q.inputs}
        return f"publishes {len(used)} values, {'all of them answers' if answers else 'not only answers'}"

    def list_tables(self, design: Design) -> Tables:
        q, mechanism = design.question, design.mechanism
        inputs = q.inputs if hasattr(mechanism, "rows") else mechanism.inputs
        if len(inputs) > _MAX_SHOWN_SIZE or len(mechanism.outputs) > _MAX_SHOWN_SIZE:
            return []
        heads = ["input", *(str(format_point(o)) for o in q.outputs)]
        rows = [
            [str(format_point(x)), *(f"{mass:.4g}" for mass in row)]
            for x, row in zip(inputs, mechanism.matrix, strict=True)
        ]
        return [("Probability of every output", heads, rows)]

    def figure(self, design: Design) -> Figure:
        from workbench.io.figures import draw_place_maps

        q = design.question
        if q.is_planar and q.inputs == q.outputs:
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
                f"{words}\n{design.request.budget_text}: {design.objective:.6g}",
                "published from the cross",
            )
            return draw_place_maps(points, [weights @ law, law[own]], titles, points[own])
        return super().figure(design)


def _compute_design_exposure(design: Design) -> Fraction | None:
    """Compute the exposure of the channel of a design (`workbench.privacy.exposure`); None without a δ."""
    epsilon = design.claim.values.get("epsilon")
    if not design.claim.values.get("delta") or epsilon is None:
        return None
    if isinstance(design.mechanism, Channel):
        return compute_exposure(
            design.mechanism, max(epsilon.values()) if isinstance(epsilon, Mapping) else epsilon
        )
    return ZERO if isinstance(design.mechanism, NearestOutputs) else None


def _list_exposure_facts(design: Design) -> Facts:
    """A row of the report on what δ is spent on."""
    alone = _compute_design_exposure(design)
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


FAMILY = _ChannelFamily()

FINITE_OPTIONS = tuple(
    option for option in FAMILY.options if option.question and option.name not in _RANGE_OPTIONS
)
"""The options that spell a finite question."""
