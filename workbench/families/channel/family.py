"""Declare the family of finite channels: its options, how they become requests, and what reports
show.

A finite channel is a matrix of probabilities with a row for each input (a possible answer) and a
column for each output (docs/glossary.md).

Where to change: a new option needs an `Option` here, a field of `ChannelAim` (or of the request's
`HOW`) with the same name, and its check in `request`. If it describes the question, it also needs
`question=True`, a place in `_FINITE_QUESTION_OPTIONS` or `_RANGE_OPTIONS`, and one in
`question_to_options`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data.intervals import read_range
from workbench.data.plain import read_list
from workbench.data.points import format_point
from workbench.data.projection import Projection, read_degrees
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
from workbench.mechanisms.place_spacing import describe_spacing
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
    read_plain_text,
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


# A report shows the whole channel up to this many inputs and outputs.
_MAX_SHOWN_SIZE = 7
# A sweep gives each process this many points at a time.
_POINTS_PER_TASK = 4
# The options that define a range, in the order of its certificate.
_RANGE_OPTIONS = ("range", "sensitivity", "cells")
# The options that define a finite question beside answers or places.
_FINITE_QUESTION_OPTIONS = ("outputs", "max_shift", "neighbours", "directed", "prior")
# The options of places in degrees.
_PROJECTION_OPTIONS = ("x", "y", "centre")
# Units of length that an ε such as "0.7/km" may name.
_METRES_PER_UNIT = {"m": ONE, "km": Fraction(1000), "mi": Fraction(1609344, 1000)}
# The beginning of an error about the inputs of a question.
_INPUTS_SUBJECT = re.compile(r"^(every one of the )?inputs must ")


def _read_constraints(value: Any, name: str) -> tuple[Any, ...]:
    """Read the option `constraints`.

    Args:
        value: a text such as "unbiased,honest", a list of names, a function of the CVXPY variable,
            or a list of names with at most one function.
        name: name of the option, for errors.

    Returns:
        The names, followed by the function if there is one.
    """
    if callable(value):
        return (value,)
    if value is None or isinstance(value, str):
        return read_constraints(value, name)
    entries = read_list(
        value, name, "names of constraints, and perhaps a function of the CVXPY variable"
    )
    functions = [entry for entry in entries if callable(entry)]
    if len(functions) > 1:
        must(name, "given with at most one function", f"{len(functions)}")
    names = [entry for entry in entries if not callable(entry)]
    return (*read_constraints(names, name), *functions)


def _refuse_options(values: Values, names: Iterable[str], condition: str) -> None:
    """Raise InvalidRequest if an option is given that belongs to another kind of question.

    Args:
        values: option -> value, None if the option is not given.
        names: options that must be left out.
        condition: end of the message, such as "with a range".
    """
    for name in names:
        if values[name] is not None:
            raise InvalidRequest(
                f"{name} must be left out {condition}. Got {to_json_value(values[name])}."
            )


@contextlib.contextmanager
def _naming_inputs(option: str) -> Iterator[None]:
    """Name the option in errors about the inputs of a question, which the option defines."""
    try:
        yield
    except InvalidRequest as error:
        message = _INPUTS_SUBJECT.sub(rf"\1{option} must ", str(error))
        raise type(error)(message) from None


def _check_range_options(values: Values) -> None:
    """Raise InvalidRequest for options that are not supported for a range."""
    InvalidRequest.check_choice(("absolute", "squared"), "loss of a range", values["loss"])
    notion_name = values["notion"]
    minimises_delta = values["minimise"] == "delta"
    minimises_shared_epsilon = values["minimise"] == "epsilon" and values["runs"] > 1
    is_per_distance = get_notion(notion_name).is_per_distance
    if minimises_delta or minimises_shared_epsilon or values["constraints"] or is_per_distance:
        raise InvalidRequest(
            "minimise delta (or epsilon of several runs), constraints and budgets per distance "
            "must be left out with a range."
        )
    if not values["delta"] or notion_name not in list_ratio_notions():
        return
    if get_ratio_kind(notion_name) == MASS_ABOVE_RATIO:
        rule = "dp for a range with delta > 0, because rounding preserves dp but not pdp"
        must("notion", rule, repr(notion_name))


class _ChannelFamily(Family):
    """The family of finite channels."""

    name = "channel"
    title = "any finite channel"
    summary = (
        "Design the channel with the smallest loss for finitely many answers, and certify it. A "
        "channel is a table with the probability of each output for each answer."
    )
    examples = (
        "design channel --answers 0..10 --max-shift 1 --loss squared --epsilon 1 --delta 1e-5",
        "design channel --answers 0..100 --max-shift 1 --loss squared --epsilon 1 --delta 1e-5",
        "design channel --answers 0..20 --neighbours consecutive --loss absolute --epsilon 1 "
        "--notion pure --json",
        "design channel --answers red,green,blue --neighbours all --loss loss.csv --prior "
        "worst --epsilon 1",
        "design channel --answers 0..10 --max-shift 1 --epsilon 4 --delta 1e-5 --runs 8",
        "design channel --answers 0..10 --max-shift 2 --epsilon 1 --minimise delta "
        "--max-loss 1.5 --save channel.json",
        "design channel --answers 0..20 --max-shift 1 --notion zcdp --rho 0.1",
        "design channel --answers 0..10 --max-shift 1 --outputs free --loss squared --epsilon 1",
        'design channel --places city.csv --neighbours "within 1 L1" --loss euclidean '
        "--epsilon 0.7 --notion pure",
        'design channel --places city.csv --neighbours "all L2" --loss euclidean --epsilon '
        "0.7 --notion metric",
        "design channel --range 0..200000 --loss absolute --epsilon 0.5 --delta 0.05 --save "
        "incomes.json",
    )
    formulas = (
        "formula channel --answers 0..5 --max-shift 1 --loss absolute",
        "formula channel --answers 0..3 --max-shift 1 --loss absolute --delta 0..1 --epsilon "
        "0.1..4",
    )
    options = (
        Option(
            "answers",
            accept_anything,
            question=True,
            help='Answers: "0..100", "0..5:0.5" (LOW..HIGH:STEP), "a,b,c" or a CSV with one '
            "column.",
        ),
        Option(
            "places",
            accept_anything,
            question=True,
            help="Answers that are places, instead of --answers: a CSV with the columns x, y "
            "and optionally weight.",
        ),
        Option(
            "x",
            read_plain_text,
            question=True,
            help="Column of longitudes in degrees in the file of --places, with --y. The places "
            "are then projected onto a plane in metres.",
        ),
        Option(
            "y",
            read_plain_text,
            question=True,
            help="Column of latitudes in degrees in the file of --places.",
        ),
        Option(
            "centre",
            read_plain_text,
            question=True,
            help="Public centre of the projection, with --x and --y: LONGITUDE,LATITUDE in "
            "degrees. Default: the middle of the places.",
        ),
        Option(
            "range",
            read_range,
            question=True,
            help="Range of real answers, instead of --answers: LOW..HIGH, such as 0..200000.",
        ),
        Option(
            "sensitivity",
            read_positive,
            question=True,
            help="Largest difference between neighbouring answers of --range. Default: the "
            "whole range.",
        ),
        Option(
            "cells",
            integer_reader(2, MAX_CELLS),
            kind=int,
            question=True,
            help="Number of equal cells into which --range is divided. Default: increased until "
            "loss and bound are close.",
        ),
        Option(
            "outputs",
            accept_anything,
            question=True,
            help="Outputs, in the form of --answers, or free (the design chooses real numbers). "
            "Default: the answers.",
        ),
        Option(
            "max_shift",
            read_number,
            question=True,
            help="Answers that differ by at most this are neighbours.",
        ),
        Option(
            "neighbours",
            accept_anything,
            question=True,
            help="Neighbours, instead of --max-shift: all, consecutive, or a CSV of pairs (with an "
            'optional third column: their distance). For places: "within R NORM" or "all NORM", '
            "where NORM is L1, L2 or Linf.",
        ),
        Option(
            "directed",
            read_flag,
            default=False,
            kind=bool,
            question=True,
            help="Protect only one order of each pair: bound the output probabilities at the "
            "larger number, the later answer, or the first of a listed pair by those at the other.",
        ),
        Option(
            "prior",
            accept_anything,
            "uniform",
            "Prior of the answers: uniform, worst, weights such as 1,2,1, or a CSV of weights.",
            question=True,
        ),
        Option(
            "loss",
            load_when_called("workbench.pipeline.loss_tables", "read_loss"),
            "squared",
            "Loss: squared, absolute, error-rate, pinball:τ, huber:h, poisson or poisson-deviance; "
            "for places euclidean, manhattan, squared or error-rate. Or a CSV matrix with a row "
            "for each answer and a column for each output (in Python also a function of an output "
            "and an answer).",
        ),
        Option(
            "notion",
            read_convex_or_ratio_notion,
            "dp",
            "Privacy notion: dp, pure, pdp or metric (budget: --epsilon, --delta), renyi "
            "(--alpha, --epsilon), zcdp (--rho), gdp (--mu), curve or tradeoff.",
        ),
        *NOTION_PARAMETERS,
        Option(
            "constraints",
            _read_constraints,
            default=(),
            kind=list,
            command="constraint",
            help="Constraint (repeatable). unbiased: the mean output is the answer. row-monotone, "
            "column-monotone: along a row or a column, no probability rises with the distance of "
            "output and answer. symmetric: unchanged if answers and outputs are reversed. honest: "
            "the likeliest output is the answer. In Python also a function of the CVXPY variable.",
        ),
        Option(
            "unit",
            choice_reader("m", "km", "mi"),
            help="Unit of the coordinates of --places: m, km or mi. It allows --epsilon 0.7/km.",
        ),
        Option(
            "method",
            choice_reader("auto", "block", "program"),
            "auto",
            "Method: block (built-in interior-point method, one output at a time), program "
            "(linear program for --solver) or auto (whichever needs less work).",
        ),
        MINIMISE,
        RUNS,
        PROGRESS,
        *SOLVING,
        MAX_LOSS,
        Option(
            "delta",
            read_probability,
            help="δ of the budget, in [0, 1]. With --minimise delta: an upper limit. Default: 0.",
            hot=True,
        ),
        Option(
            "epsilon",
            read_positive,
            hot=True,
            help="ε of the budget, > 0. With --notion metric: ε per unit of distance. With "
            "--minimise epsilon: the largest ε allowed.",
        ),
    )
    solving_option_names = (*Family.solving_option_names, "method")
    question_class = FiniteQuery

    # Requests.

    def read_values(
        self, values: Values, place: Place = "python", *, with_question: bool = False
    ) -> Record:
        """Read option values, with an ε per unit of length: see `Family.read_values`.

        Args:
            values: option -> value.
            place: where the values come from.
            with_question: whether the options of the question are read too.
        """
        if "/" in str(values.get("epsilon")):
            values = self.convert_epsilon_unit(values)
        return super().read_values(values, place, with_question=with_question)

    def convert_epsilon_unit(self, values: Values) -> Values:
        """Convert an ε such as "0.7/km" to one per unit of the coordinates.

        Args:
            values: option -> value.

        Returns:
            The values with a number as ε. They are returned unchanged if ε has no unit of length.

        Raises:
            InvalidRequest: the unit of the coordinates is missing, or the notion is not per
                distance.
        """
        epsilon = values.get("epsilon")
        if not isinstance(epsilon, str):
            return values
        number, _, length_unit = epsilon.partition("/")
        length_unit = length_unit.strip()
        if length_unit not in _METRES_PER_UNIT:
            return values
        unit = values.get("unit")
        if unit is None and values.get("x") is not None:
            unit = "m"
        notion_name = values.get("notion", "dp")
        if unit is None:
            raise InvalidRequest(
                f"unit must be given, the unit of the coordinates, for an epsilon per "
                f"{length_unit}. Got none."
            )
        if not get_notion(notion_name).is_per_distance:
            must("notion", f"metric for an epsilon per {length_unit}", repr(notion_name))
        InvalidRequest.check_choice(_METRES_PER_UNIT, "unit", unit)
        units_ratio = _METRES_PER_UNIT[unit] / _METRES_PER_UNIT[length_unit]
        return {**values, "epsilon": read_positive(number, "epsilon") * units_ratio}

    def parse_question(self, values: Values) -> FiniteQuery:
        """Make the question from the values of its options.

        Args:
            values: option -> exact value.

        Raises:
            InvalidRequest: not exactly one of answers, range and places is given, or an option is
                for another question.
        """
        real_options = ("sensitivity", "cells")
        all_options = (
            *_RANGE_OPTIONS,
            *_FINITE_QUESTION_OPTIONS,
            "places",
            *_PROJECTION_OPTIONS,
            "unit",
        )
        values = {**dict.fromkeys(all_options), **values}
        # False is the default of `directed`, which counts as not given.
        values["directed"] = values["directed"] or None
        if sum(values[name] is not None for name in ("answers", "range", "places")) != 1:
            raise InvalidRequest(
                "The answers must be given by exactly one of answers, range and places."
            )
        if values["places"] is None:
            _refuse_options(values, _PROJECTION_OPTIONS, "without --places")
        if values["range"] is not None:
            finite_options = [name for name in _FINITE_QUESTION_OPTIONS if name != "prior"]
            _refuse_options(values, finite_options, "with a range")
            range_options = {name: values[name] for name in (*real_options, "prior")}
            return RangeQuery(values["range"], **range_options)
        condition = "unless a range is given (max_shift: the largest difference of neighbours)"
        _refuse_options(values, real_options, condition)
        finite_values = {name: values[name] for name in _FINITE_QUESTION_OPTIONS}
        finite_values["directed"] = bool(values["directed"])
        if values["places"] is None:
            with _naming_inputs("answers"):
                return self.question_class(values["answers"], **finite_values)
        if finite_values["prior"] == "uniform":
            # "uniform" is the default, so weights in the file of places are used if it has some.
            finite_values["prior"] = None
        if any(values[name] is not None for name in _PROJECTION_OPTIONS):
            return self._project_places(values, finite_values)
        with _naming_inputs("places"):
            return self.question_class(values["places"], **finite_values)

    def _project_places(self, values: Values, finite_values: Record) -> FiniteQuery:
        """Make the question of places in degrees. Raises InvalidRequest.

        Args:
            values: option -> value, None if the option is not given.
            finite_values: The values of the options of a finite question.
        """
        for name, partner in (("x", "y"), ("y", "x")):
            if values[name] is None:
                must(name, f"given with {partner} or centre: places in degrees have both", "none")
        if values["unit"] not in (None, "m"):
            must(
                "unit", "m or left out with x and y, which are projected to metres", values["unit"]
            )
        points, weights = read_degrees(values["places"], values["x"], values["y"])
        if values["centre"] is None:
            projection = Projection.around(points)
        else:
            projection = Projection.parse(values["centre"])
        if finite_values["prior"] is None:
            finite_values["prior"] = weights
        with _naming_inputs("places"):
            return self.question_class(points, **finite_values, projection=projection)

    def question_to_options(self, question: Any) -> Record:
        """Return the options that define a question: see `Family.question_to_options`.

        Args:
            question: a FiniteQuery or a RangeQuery.

        Returns:
            option -> value. For a FiniteQuery the neighbours are listed as [input, input] or
            [input, input, distance].
        """
        inputs = question.inputs
        if isinstance(question, RangeQuery):
            fields = question.to_dict()
            return {name: fields[name] for name in (*_RANGE_OPTIONS, "prior") if name in fields}
        neighbours: Any = f"all {question.norm}" if question.is_planar else "all"
        if question.pairs is not None:
            neighbours = [[inputs[i], inputs[j]] for i, j in question.pairs]
            for pair, distance in zip(neighbours, question.distances or (), strict=False):
                if distance is not None:
                    pair.append(distance)
        options = {"answers": inputs, "places": None, "outputs": question.outputs}
        options["neighbours"] = neighbours
        if question.directed:
            options["directed"] = True
        options["prior"] = "worst" if question.prior is None else question.prior
        return options

    def build_request(self, question: Any, values: Record) -> ChannelRequest:
        """Make a request from exact values of options.

        Args:
            question: a FiniteQuery or a RangeQuery.
            values: option -> exact value.

        Raises:
            InvalidRequest: the values cannot be combined.
        """
        from workbench.families.channel.request import MAX_EPSILON, ChannelRequest
        from workbench.pipeline.loss_tables import make_loss_table
        from workbench.pipeline.request import read_claim
        from workbench.pipeline.user_constraints import check_constraints

        constraints = list(values["constraints"])
        if constraints and callable(constraints[-1]):
            values["user_constraints"] = check_constraints(constraints.pop(), "M (k, m)")
        values["constraints"] = tuple(dict.fromkeys(constraints))
        if isinstance(question, RangeQuery):
            _check_range_options(values)
        is_per_distance = get_notion(values["notion"]).is_per_distance
        if values["unit"] is not None and not question.is_planar and not is_per_distance:
            rule = "left out unless places are given, or an epsilon per unit"
            must("unit", rule, repr(values["unit"]))
        if question.projection is not None:
            values["unit"] = "m"
        values["losses"] = make_loss_table(question, values["loss"])
        max_epsilon = Fraction(MAX_EPSILON)
        if values["minimise"] == "epsilon" and is_per_distance:
            # The limit holds for the neighbours of largest distance.
            _, distances = question.metric_pairs()
            max_epsilon /= max(distances, default=ONE)
        claim = read_claim(values, max_epsilon=max_epsilon)
        return ChannelRequest.from_values(question, claim, values)

    def open_session(self, request: Any) -> Session:
        """Open the session that designs a request.

        Args:
            request: a request of this family.
        """
        from workbench.families.channel.problem import ChannelProblem
        from workbench.families.channel.request import MIN_EPSILON
        from workbench.pipeline.solve import ProblemSession

        if request.aim.runs > 1:
            # The programs of many runs are stated in CVXPY, which is slow to import.
            from workbench.pipeline.many_runs import ManyRuns

            return ManyRuns(request)
        if isinstance(request.question, RangeQuery):
            from workbench.families.channel.range import RangeSession

            return RangeSession(request)
        if request.question.has_free_outputs:
            from workbench.families.channel.free_outputs import FreeOutputsSession

            return FreeOutputsSession(request)
        return ProblemSession(request, ChannelProblem, MIN_EPSILON)

    # Sweeps.

    def sweep_key(self, values: Values) -> Record:
        """Return the key of a point of a sweep.

        It contains the question itself, not the name of its file.

        Args:
            values: option -> value.
        """
        question_names = [option.name for option in self.options if option.question]
        key = super().sweep_key({**values, **dict.fromkeys(question_names)})
        other_values = {name: key[name] for name in key if name not in question_names}
        return other_values | self.parse_question(values).to_dict()

    def points_per_task(self, values: Values) -> int:
        """Return the number of points that one process designs.

        Args:
            values: not used.
        """
        return _POINTS_PER_TASK

    # Mechanisms of other sources.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Compute the expected (or worst-case) loss of a channel.

        Args:
            request: request of this family.
            mechanism: channel with the inputs and outputs of the request, in their order.

        Raises:
            InvalidRequest: the mechanism has other inputs or outputs.
        """
        from workbench.families.channel.repair import compute_channel_loss

        channel = self.relate_mechanism(request, mechanism)
        return float(compute_channel_loss(channel, request.losses, request.question.prior))

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """Return a channel with the same rows and the neighbours of a request, for an audit.

        Args:
            request: request of this family.
            mechanism: channel with the inputs and outputs of the request, in their order.

        Raises:
            InvalidRequest: the mechanism has other inputs or outputs.
        """
        question = request.question
        channel = getattr(mechanism, "certified_form", lambda: mechanism)()
        shape = (question.k, question.m)
        if not isinstance(channel, Channel) or (len(channel.rows), len(channel.outputs)) != shape:
            rule = f"a channel of {question.k} inputs and {question.m} outputs"
            must("baseline", rule, repr(mechanism))
        pairs = question.pairs
        if request.is_per_distance:
            pairs, _ = question.metric_pairs()
        return Channel.from_pairs(channel, pairs, directed=question.directed)

    # Reports.

    def extra_columns(self, design: Design) -> Record:
        """Return the columns of a sweep that only this family has: `outputs_used`, the number of
        outputs in use.

        Args:
            design: design of this family.
        """
        return {"outputs_used": len(design.mechanism.used_outputs)}

    def extra_json(self, design: Design) -> Record:
        """Return the JSON fields that only this family has.

        Args:
            design: design of this family.

        Returns:
            The fields of the budget; loss_name; loss_value, the loss of the certified channel;
            question; channel, the matrix of probabilities (inputs, outputs), or the fields of a
            mechanism without rows; and exposure, if the budget has a δ.
        """
        from workbench.pipeline.budget import budget_to_json

        mechanism = design.mechanism
        fields = {
            **budget_to_json(design),
            "loss_name": design.request.losses.name,
            "loss_value": to_jsonable(design.details["loss"]),
            "question": design.question.to_dict(),
        }
        if hasattr(mechanism, "rows"):
            fields["channel"] = mechanism.matrix.tolist()
        else:
            fields["channel"] = mechanism.to_dict()
        design_exposure = _compute_design_exposure(design)
        if design_exposure is not None:
            fields["exposure"] = round_up(design_exposure)
        return fields

    def facts(self, design: Design) -> Facts:
        """Return the lines of a report, as pairs (label, text).

        Args:
            design: design of this family.
        """
        from workbench.pipeline.budget import list_budget_facts

        question = design.request.question
        bound_text = design.bound_text
        if design.gap is not None:
            bound_text += f" (gap {design.gap:.2g})"
        used_count = self.extra_columns(design)["outputs_used"]
        outputs_text = f"{used_count} of {question.m} in use"
        if question.has_free_outputs or "rounded" in design.details:
            outputs_text = self.describe_outputs(design)
        return [
            (_name_objective(design), _describe_objective(design)),
            ("lower bound", bound_text),
            *list_budget_facts(design),
            *_list_exposure_facts(design),
            ("outputs", outputs_text),
            *_list_place_facts(design),
        ]

    def describe_outputs(self, design: Design) -> str:
        """Describe the outputs of a channel whose outputs were chosen.

        Args:
            design: design of this family.
        """
        question = design.question
        used_positions = design.mechanism.used_outputs
        are_answers = False
        # Outputs of a range that publishes the answer itself with a share of δ are not listed.
        if used_positions.max() < question.m:
            used_outputs = {question.outputs[o] for o in used_positions.tolist()}
            are_answers = used_outputs <= {*question.inputs}
        origin = "all of them answers" if are_answers else "not only answers"
        return f"publishes {len(used_positions)} values ({origin})"

    def list_tables(self, design: Design) -> Tables:
        """Return the table of the channel, if it has at most 7 inputs and 7 outputs.

        Args:
            design: design of this family.

        Returns:
            [(title, heads, rows)] with a row for every input and a column for every output, or an
            empty list.
        """
        mechanism = design.mechanism
        inputs = design.question.inputs if hasattr(mechanism, "rows") else mechanism.inputs
        if len(inputs) > _MAX_SHOWN_SIZE or len(mechanism.outputs) > _MAX_SHOWN_SIZE:
            return []
        heads = ["input", *(str(format_point(o)) for o in design.question.outputs)]
        rows = []
        for label, masses in zip(inputs, mechanism.matrix, strict=True):
            rows.append([str(format_point(label)), *(f"{mass:.4g}" for mass in masses)])
        return [("Probability of every output", heads, rows)]

    def figure(self, design: Design) -> Figure:
        """Draw a channel. If the outputs are the places themselves, two maps are drawn: where
        places are published overall, and for the likeliest place.

        Args:
            design: design of this family.
        """
        from workbench.io.figures import draw_place_maps

        question = design.question
        if not question.is_planar or question.inputs != question.outputs:
            return super().figure(design)
        weights = np.full(question.k, 1 / question.k)
        subject = "published places, for a uniform place"
        if question.prior is not None:
            weights = np.array([float(p) for p in question.prior])
            subject = "published places, under the prior"
        likeliest = int(weights.argmax())
        matrix = design.mechanism.matrix
        points = [[float(c) for c in place] for place in question.inputs]
        titles = (
            f"{subject}\n{design.request.budget_text}: {design.objective:.6g}",
            "published places, for the place at the cross",
        )
        laws = [weights @ matrix, matrix[likeliest]]
        return draw_place_maps(points, laws, titles, points[likeliest])


def _name_objective(design: Design) -> str:
    """Return the label of the objective in a report."""
    request = design.request
    if request.aim.minimise != "loss":
        return f"minimal {request.aim.minimise}"
    return "worst-case loss" if request.question.prior is None else "expected loss"


def _describe_objective(design: Design) -> str:
    """Return the objective for a report, with the loss and the class of channels."""
    request = design.request
    outputs = "real outputs" if request.question.has_free_outputs else "these outputs"
    if "name" in design.details:
        description = str(design.details["name"])
    elif "rounded" in design.details:
        description = "best channel found for the range, rounding included; not proven optimal"
    elif request.aim.runs > 1:
        description = (
            f"best channel found with {outputs} for {request.aim.runs} runs; not proven optimal"
        )
    elif design.status == "optimal":
        description = f"optimal channel with {outputs}"
    else:
        description = f"best channel found with {outputs}; not proven optimal"
    if request.aim.minimise == "loss":
        description = f"{request.loss_name}, {description}"
    text = f"{design.objective:.9g} ({description})"
    if request.aim.unit is not None and request.losses.name in ("euclidean", "manhattan"):
        text += f", in {request.aim.unit}"
    return text


def _compute_design_exposure(design: Design) -> Fraction | None:
    """Compute the exposure of a design: the probability of outputs that a neighbour practically
    never produces (`workbench.privacy.exposure`).

    None without an ε and a δ > 0, or if the mechanism is none for which it is computed.
    """
    epsilon = design.claim.values.get("epsilon")
    if not design.claim.values.get("delta") or epsilon is None:
        return None
    if isinstance(design.mechanism, Channel):
        largest_epsilon = max(epsilon.values()) if isinstance(epsilon, Mapping) else epsilon
        return compute_exposure(design.mechanism, largest_epsilon)
    return ZERO if isinstance(design.mechanism, NearestOutputs) else None


def _list_place_facts(design: Design) -> Facts:
    """Return the lines of a report on a projection, and on the spacing of places."""
    question = design.request.question
    if not question.is_planar or not isinstance(design.mechanism, Channel):
        return []
    facts = []
    if question.projection is not None:
        east, north = (float(scale) for scale in question.projection.metres_per_degree)
        text = (
            f"metres around longitude {float(question.projection.longitude):g}, latitude "
            f"{float(question.projection.latitude):g}: {east:.3f} m for a degree to the east, "
            f"{north:.3f} m to the north"
        )
        facts.append(("projection", text))
        warning = question.projection.describe_distortion(question.inputs)
        if warning is not None:
            facts.append(("warning", warning))
    places, outputs = (
        np.array([[float(part) for part in point] for point in points])
        for points in (question.inputs, question.outputs)
    )
    unit = design.request.aim.unit or ""
    warning = describe_spacing(np.asarray(design.mechanism.matrix), places, outputs, unit)
    if warning is not None:
        facts.append(("warning", warning))
    return facts


def _list_exposure_facts(design: Design) -> Facts:
    """Return the line of a report that states the exposure. Empty without a δ."""
    design_exposure = _compute_design_exposure(design)
    if design_exposure is None:
        return []
    if design_exposure:
        text = (
            "outputs that a neighbour cannot produce, or produces 10,000 times more rarely than "
            f"epsilon allows, have a probability of up to {float(design_exposure):.6g}"
        )
    else:
        text = (
            "no output is 10,000 times likelier for an input than epsilon allows for its neighbour"
        )
    return [("exposure", text)]


FAMILY = _ChannelFamily()

# The options that define a finite question.
FINITE_OPTIONS = tuple(
    option
    for option in FAMILY.options
    if option.question and option.name not in (*_RANGE_OPTIONS, *_PROJECTION_OPTIONS)
)
