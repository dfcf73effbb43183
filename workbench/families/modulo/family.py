"""Define the family of additive noise modulo a finite group: its options, requests and reports.

Answers are 0..n, or vectors of such numbers. The noise is added modulo n + 1 (in every coordinate),
so its law does not depend on the answer. Programs and requests are in the other modules of this
folder. An option is added in `_Modulo.options`, and its meaning in
`workbench.families.modulo.request`.

The option `check` decides how a solution is verified. The last column is the column "status" of
tables for a solution that is optimal:

check      what is done with the solver's solution                            status of an optimum
none       the objective is recomputed at the solver's point                  claimed
bound      the bound is recomputed from the duals; so is the residual of      optimal
           the point
audit      the solver's own PMF is audited exactly and compared with the      optimal
           closed form
certify    the mechanism is repaired and proven private                       optimal
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.data.groups import MAX_SHIFTS, read_max_shift
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import read_positive, read_probability
from workbench.exact.objects import Progress, Record, Values
from workbench.io.result import limit_message_rate
from workbench.io.shown import Facts
from workbench.notions import get_notion
from workbench.pipeline.family import Family, Session
from workbench.pipeline.frontier_plan import Point, load_when_called
from workbench.pipeline.notion_points import list_notion_requests
from workbench.pipeline.option import (
    CERTIFY,
    MAX_LOSS,
    MINIMISE,
    NOTION_PARAMETERS,
    OPTIONS,
    RUNS,
    SOLVER,
    TIME_LIMIT,
    Option,
    accept_anything,
    choice_reader,
    integer_reader,
    list_reader,
    make_check_option,
    read_flag,
    read_integer,
    read_nonnegative,
    read_probabilities,
    to_json_value,
)
from workbench.pipeline.requirements import (
    HOCKEY_STICK,
    get_ratio_kind,
    list_ratio_notions,
    read_convex_or_ratio_notion,
)
from workbench.solvers.arrays import Ints

if TYPE_CHECKING:
    from workbench.families.modulo.request import ModuloRequest
    from workbench.mechanisms.additive import AdditiveNoise
    from workbench.models.modulo.level_frontier import FrontierPiece
    from workbench.pipeline.design import Design, LawsByName, Tables
    from workbench.pipeline.formula_program import Interval
    from workbench.privacy.claim import Claim
    from workbench.questions.modulo_noise import ModuloNoise


METHODS = ("fast", "literal")
CHECKS = ("none", "bound", "audit", "certify")
# Losses whose frontier over δ is traced pattern by pattern.
_TRACED_LOSSES = ("error-rate", "eta-squared", "squared", "circular-squared")

_MAX_LISTED_MASSES = 24  # A report lists all masses if there are at most this many.
_HEAVIEST_MASSES = 16  # If there are more masses, a report lists this many of the largest.
_POINTS_PER_TASK = 20  # A sweep gives each process this many points at a time.
_BARE_POINTS_PER_TASK = 500  # The same for bare linear programs, which take a millisecond.


# Readers of options.


def _read_sizes(value: Any, name: str) -> Ints:
    """Read the numbers of answers of the coordinates: "5x5", or a list. Raises InvalidRequest."""
    if not isinstance(value, str):
        return list_reader(read_integer, "x")(value, name)
    if not all(part.strip() for part in value.lower().split("x")):
        must(name, "a number for each coordinate, such as 4x5", repr(value))
    return list_reader(read_integer, "x")(value.lower(), name)


def _read_shifts(value: Any, name: str) -> tuple[Any, ...]:
    """Read the differences: "1,2,3", for vectors "0,1;1,0", or lists. Raises InvalidRequest."""
    if isinstance(value, str) and ";" in value:
        return tuple(
            list_reader(read_integer)(part, name) for part in value.split(";") if part.strip()
        )

    def read_one_shift(part: Any, name: str) -> Any:
        """Read one difference: an integer, or the integers of a vector."""
        if isinstance(part, (list, tuple)):
            return list_reader(read_integer)(part, name)
        return read_integer(part, name)

    return list_reader(read_one_shift)(value, name)


def _read_max_shift(value: Any, name: str) -> int | str:
    """Read the largest difference: an integer, or a text such as "2 L1". Raises InvalidRequest."""
    max_shift = read_max_shift(value)
    if isinstance(max_shift, str):
        return max_shift
    largest_shift: int = integer_reader(1, MAX_SHIFTS)(max_shift, name)
    return largest_shift


def _read_epsilon(value: Any, name: str) -> Fraction | dict[Any, Fraction]:
    """Read ε: one number, or one for each difference.

    The latter is "1=0.5,2=1" (for vectors "0,1=0.5;1,0=1") or a mapping. Raises InvalidRequest.
    """
    if isinstance(value, str) and "=" in value:
        value = _parse_shift_budgets(value)
    if isinstance(value, Mapping):
        return {
            shift: read_positive(amount, f"epsilon of shift {shift}")
            for shift, amount in value.items()
        }
    return read_positive(value, name)


def _parse_shift_budgets(text: str) -> dict[Any, str]:
    """Split "1=0.5,2=1" into shift -> ε, still as text. Raises InvalidRequest."""
    parts = text.split(",")
    if not all("=" in part for part in parts):
        parts = text.split(";")
    budgets: dict[Any, str] = {}
    for part in parts:
        shift, _, amount = part.partition("=")
        key = list_reader(read_integer)(shift, "epsilon's shift")
        if key in budgets:
            raise InvalidRequest(
                f"epsilon must give each difference one budget. Got two for {shift.strip()}."
            )
        budgets[key] = amount.strip()
    return budgets


def _read_equal_groups(value: Any, name: str) -> tuple[Ints, ...]:
    """Read groups of row-major noise values with equal masses: "1=8,2=7". Raises InvalidRequest."""
    groups = value
    if isinstance(value, str):
        groups = value.split(",")
    if not isinstance(groups, (list, tuple)):
        must(name, "groups of noise values such as 1=8,2=7", repr(value))
    return tuple(list_reader(read_integer, "=")(group, name) for group in groups)


def _make_question_of_table(
    path: Any, query: Any, *, n: int | None, directed: bool, **unused_options: Any
) -> ModuloNoise:
    """Make the question whose differences a table and a query give. Raises InvalidRequest.

    The unused options describe the differences in other ways, so they must be None.
    """
    from workbench.data.query_differences import list_query_differences
    from workbench.questions.modulo_noise import ModuloNoise

    if path is None or query is None:
        raise InvalidRequest("data and query must be given together.")
    given_options = [name for name, value in unused_options.items() if value is not None]
    if given_options or directed:
        name = given_options[0] if given_options else "directed"
        raise InvalidRequest(f"{name} must be left out where data and query give the differences.")
    if n is None:
        raise InvalidRequest("n must be given with data: the answers are taken modulo n + 1.")
    differences = list_query_differences(path, query)
    if differences[-1] > n:
        must("n", f"at least {differences[-1]}, the largest difference of two answers", n)
    origin = (
        f"The differences are those of {query} between values that {Path(path).name} lists. Values "
        f"that it does not list are not protected. It must not depend on the private data."
    )
    return ModuloNoise(n=n, shifts=differences, origin=origin)


def _design_at_curve(request: Any, curve: Claim) -> Design:
    """Design the least-loss noise of one run at a claim of several (ε, δ)."""
    return FAMILY.design_request(request.with_values(claim=curve, method="fast"))


class _Modulo(Family):
    """The family of noise modulo a finite group."""

    name = "modulo"
    title = "additive noise modulo a finite group"
    summary = (
        "Design the optimal additive noise modulo the number of answers, audit it exactly and "
        "compare it with known formulas."
    )
    examples = (
        "design modulo --n 8 --max-shift 3 --epsilon 1.5",
        "design modulo --n 8 --shifts 1,2,3 --directed --epsilon 1.5 --delta 0.1212 --plot pmf.png",
        'design modulo --sizes 5x5 --max-shift "1 L1" --epsilon 1 --delta 0.01 --notion dp --json',
        "design modulo --n 8 --max-shift 3 --epsilon 1.5 --minimise delta --max-loss 0.4425",
        'design modulo --n 8 --shifts 1,2 --epsilon "1=0.5,2=1" --loss squared --zero-mean',
        "design modulo --n 30 --max-shift 1 --loss squared --notion zcdp --rho 0.1",
        "design modulo --n 30 --max-shift 1 --loss circular-squared --epsilon 4 --delta 1e-5 "
        "--notion dp --runs 16",
        'design modulo --n 30 --max-shift 1 --loss squared --notion curve --curve "0.5:0.1,1:0.01"',
    )
    formulas = (
        "formula modulo --n 12 --max-shift 2 --loss circular-squared --save f.tex",
        "formula modulo --n 8 --max-shift 3 --delta 0.01 --epsilon 1",
        "formula modulo --n 8 --max-shift 3 --directed --notion pdp --epsilon 1.5 --delta 0..0.2",
    )
    options = (
        Option(
            "n",
            integer_reader(1, 10**7),
            help="Largest answer: the answers are 0..n.",
            kind=int,
            question=True,
        ),
        Option(
            "sizes",
            _read_sizes,
            help='Number of answers per coordinate of a vector query: "5x5".',
            question=True,
        ),
        Option(
            "shifts",
            _read_shifts,
            help='Differences of neighbouring answers: "1,2,3", for vectors "0,1;1,0".',
            question=True,
        ),
        Option(
            "max_shift",
            _read_max_shift,
            help="Largest difference of neighbouring answers, instead of --shifts. For vectors "
            'with a norm: "1 L1" or "1 Linf".',
            question=True,
        ),
        Option(
            "data",
            accept_anything,
            help="CSV with the values that a person may have, instead of --shifts. It must be "
            "public.",
            kind=Path,
            places=frozenset(("command", "python")),
            question=True,
        ),
        Option(
            "query",
            accept_anything,
            help='Query on the column of --data: "sum(over=COLUMN)", or its whole steps: '
            '"sum(over=COLUMN, step=0.5)".',
            places=frozenset(("command", "python")),
            question=True,
        ),
        Option(
            "directed",
            read_flag,
            default=False,
            help="Protect only one order of each pair of neighbours, as in Kadam et al. 2024.",
            kind=bool,
            question=True,
        ),
        Option(
            "notion",
            read_convex_or_ratio_notion,
            "dp",
            "Privacy notion: dp, pure, pdp, metric, renyi, zcdp, gdp, curve or tradeoff.",
        ),
        Option(
            "loss",
            load_when_called("workbench.families.modulo.request", "read_loss"),
            "error-rate",
            "Loss: error-rate; squared (of the error of the published answer); eta-squared (of "
            "the noise value); circular-squared (of the distance around the group); "
            "prior-squared (squared, averaged with --prior); worst-squared (squared, for the "
            "worst answer); or a CSV with one loss for each noise value (in Python: an array, "
            "or a function of it).",
        ),
        *NOTION_PARAMETERS,
        Option(
            "prior",
            read_probabilities,
            help="CSV with the probabilities of the answers, for --loss prior-squared.",
            kind=Path,
        ),
        Option(
            "zero_mean", read_flag, default=False, help="Require noise of mean zero.", kind=bool
        ),
        Option(
            "equal",
            _read_equal_groups,
            help='Pairs of noise values that must have equal probabilities: "1=8,2=7". Vectors '
            "are numbered in row-major order.",
        ),
        Option(
            "constraints",
            accept_anything,
            places=frozenset(("python",)),
            help="More linear constraints, as a function of the CVXPY variable f (N,).",
        ),
        MINIMISE,
        RUNS,
        Option(
            "method",
            choice_reader(*METHODS),
            "fast",
            "Method: fast, or literal (for pdp with δ > 0: the mixed-integer program of Kadam "
            "et al. 2024).",
        ),
        make_check_option(*CHECKS),
        CERTIFY,
        SOLVER,
        TIME_LIMIT,
        Option(
            "gap",
            read_nonnegative,
            help="Relative gap at which a mixed-integer solver may stop.",
            kind=float,
            solver=True,
        ),
        Option(
            "seed",
            integer_reader(0, 2**31 - 1),
            help="Random seed of the solver.",
            kind=int,
            solver=True,
        ),
        OPTIONS,
        MAX_LOSS,
        Option(
            "delta",
            read_probability,
            help="δ of the budget, in [0, 1]. With --minimise delta: an upper limit. Default: 0.",
            hot=True,
        ),
        Option(
            "epsilon",
            _read_epsilon,
            hot=True,
            help='ε of the budget, > 0, or one ε for each difference: "1=0.5,2=1". With '
            "--minimise epsilon: an upper limit.",
        ),
    )
    solving_option_names = (*Family.solving_option_names, "method")

    # Requests.

    @property
    def question_class(self) -> type[ModuloNoise]:
        """Return the class of questions."""
        from workbench.questions.modulo_noise import ModuloNoise

        return ModuloNoise

    def parse_question(self, values: Values) -> ModuloNoise:
        """Make the question from the values of its options. Raises InvalidRequest."""
        names = ("n", "sizes", "max_shift", "directed", "shifts")
        arguments = {name: values[name] for name in names}
        if values.get("data") is None and values.get("query") is None:
            return self.question_class(**arguments)
        return _make_question_of_table(values["data"], values["query"], **arguments)

    def question_to_options(self, question: Any) -> Record:
        """Return the options of a question. See `Family.question_to_options`."""
        shifts = [shift[0] if question.is_scalar else shift for shift in question.shifts]
        return {"sizes": question.sizes, "shifts": shifts, "directed": question.directed}

    def trace_patterns(
        self, request: Any, deltas: Interval, time_limit: float | None, progress: Progress | None
    ) -> Sequence[FrontierPiece]:
        """Trace the frontier over δ pattern by pattern. See `Family.trace_patterns`."""
        from workbench.models.modulo.frontier import compute_delta_frontier
        from workbench.pipeline.outcome import translate_errors

        if not isinstance(request.claim.epsilon, Fraction):
            must("epsilon", "one number for all differences under pdp", "several")
        low, high = deltas
        if low == high:
            rule = "an interval such as 0..0.2 under pdp, where the frontier is of many pieces"
            must("delta", rule, low)
        InvalidRequest.check_choice(_TRACED_LOSSES, "loss", request.aim.loss)
        report = limit_message_rate(progress)

        def report_pieces(share: float, pieces: int) -> None:
            """Report the proven share of the interval of δ and the number of pieces."""
            report(f"{100 * share:.0f} % of the frontier over delta is proven, {pieces} pieces.")

        with translate_errors():
            return compute_delta_frontier(
                request.question.sizes,
                tuple(request.budgets),
                float(request.claim.epsilon),
                request.losses,
                high=float(high),
                seconds=time_limit,
                progress=report_pieces,
            )

    def build_request(self, question: Any, values: Record) -> ModuloRequest:
        """Make the request from a question and exact option values. Raises InvalidRequest."""
        from workbench.families.modulo.request import make_modulo_request

        return make_modulo_request(question, values)

    def open_session(self, request: Any) -> Session:
        """Open the session of a request."""
        if request.aim.runs == 1:
            from workbench.families.modulo.problem import ModuloSession

            return ModuloSession(request)
        from workbench.pipeline.many_runs import ManyRuns

        return ManyRuns(request, _design_at_curve)

    # Baselines.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Compute the loss of a baseline.

        For additive noise in the same group it is the exact loss; for a channel it is the error
        rate or the mean squared error with uniform answers. Raises InvalidRequest.
        """
        from workbench.mechanisms.additive import AdditiveNoise
        from workbench.privacy.repair import compute_exact_loss

        related_mechanism = self.relate_mechanism(request, mechanism)
        if isinstance(related_mechanism, AdditiveNoise):
            return float(compute_exact_loss(related_mechanism, request.losses))
        if request.aim.loss not in ("error-rate", "squared"):
            must("loss", "error-rate or squared for a channel", repr(request.aim.loss))
        if request.aim.loss == "error-rate":
            return float(related_mechanism.error_rate)
        return float(related_mechanism.mse)

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """Return a baseline under the differences of the question.

        For a channel, two answers are neighbours if they differ by one of these differences,
        without wrapping. Raises InvalidRequest for a mechanism that does not fit the question.
        """
        from workbench.mechanisms.additive import AdditiveNoise
        from workbench.mechanisms.channel import Channel

        question = request.question
        order = question.order
        if isinstance(mechanism, AdditiveNoise) and mechanism.question.sizes == question.sizes:
            return AdditiveNoise(question, mechanism.masses)
        is_square = (
            isinstance(mechanism, Channel)
            and len(mechanism.rows) == len(mechanism.outputs) == order
        )
        if not is_square or not question.is_scalar:
            rule = "additive noise on the query's answers, or their channel"
            must("baseline", rule, repr(mechanism))
        # A difference μ beyond N/2 may mean μ - N, so both are protected.
        distances = {shift % order for (shift,) in question.shifts}
        distances |= {-shift % order for (shift,) in question.shifts}
        pairs = []
        for distance in distances:
            pairs += [(q, q + distance) for q in range(order - distance)]
        return Channel.from_pairs(mechanism, pairs)

    # Sweeps.

    def sweep_key(self, values: Values) -> Record:
        """Return the key of a sweep, with n and max_shift spelled out as sizes and shifts.

        The key has one shift of each pair μ, -μ unless they are directed.
        """
        key = super().sweep_key(values)
        options = {name: value for name, value in key.items() if name not in ("n", "max_shift")}
        question = self.parse_question(values)
        shifts = {*question.shifts}
        if not question.directed:
            shifts = {min(shift, question.negate_shift(shift)) for shift in question.shifts}
        return options | question.to_dict() | {"shifts": [list(shift) for shift in sorted(shifts)]}

    def points_per_task(self, values: Values) -> int:
        """Return the number of points of a task: many for programs that are not audited."""
        is_bare = values["check"] in ("none", "bound") and values["notion"] in list_ratio_notions()
        if is_bare and get_ratio_kind(values["notion"]) == HOCKEY_STICK:
            return _BARE_POINTS_PER_TASK
        return _POINTS_PER_TASK

    # Reports.

    def extra_json(self, design: Design) -> Record:
        """Return the entries of this family in JSON."""
        from workbench.pipeline.budget import budget_to_json

        question = design.question
        entries = {
            "pmf": design.mechanism.pmf.tolist(),
            "loss": design.request.aim.loss,
            **budget_to_json(design),
        }
        return entries | {"question": question.to_dict(), "directed": question.directed}

    def facts(self, design: Design) -> Facts:
        """Return the rows of the report."""
        from workbench.pipeline.budget import list_budget_facts

        aim = design.request.aim
        label = f"minimal {aim.minimise}"
        if aim.minimise == "loss":
            label = "expected loss"
        if aim.loss == "worst-squared" and aim.minimise == "loss":
            label = "worst-case loss"
        return [
            (label, f"{design.objective:.9g} ({_describe_class(design)})"),
            ("lower bound", design.bound_text),
            *list_budget_facts(design),
        ]

    def comparison_laws(self, design: Design) -> LawsByName:
        """Return the laws of published noise for plots."""
        from workbench.families.modulo.published import list_laws

        return list_laws(design.request)

    def list_tables(self, design: Design) -> Tables:
        """Return the table of probabilities."""
        masses = design.mechanism.pmf
        question = design.question
        if masses.size <= _MAX_LISTED_MASSES:
            title = "PMF"
            indices = [*range(masses.size)]
        else:
            title = f"PMF, the {_HEAVIEST_MASSES} heaviest of {masses.size} noise values"
            indices = sorted(range(masses.size), key=lambda k: -masses[k])[:_HEAVIEST_MASSES]
        cells = [[question.format_shift(question.element_at(k)), float(masses[k])] for k in indices]
        tables = [(title, ["noise", "probability"], cells)]
        if not question.is_scalar and max(question.sizes) <= _MAX_LISTED_MASSES:
            tables.append(_make_marginal_table(design.mechanism))
        return tables


def _make_marginal_table(noise: AdditiveNoise) -> tuple[str, list[str], list[list[Any]]]:
    """Make the table of the probabilities of each coordinate: one row for each noise value."""
    sizes = noise.question.sizes
    heads = ["noise", *(f"coordinate {axis + 1}" for axis in range(len(sizes)))]
    marginals = [noise.marginal(axis).tolist() for axis in range(len(sizes))]
    rows = [[str(value), *row] for value, row in enumerate(zip_longest(*marginals, fillvalue=""))]
    return "Marginal PMFs", heads, rows


def _describe_class(design: Design) -> str:
    """Return the loss and the class of noise for the report, and whether it is optimal."""
    aim = design.request.aim
    order = "x".join(map(str, design.question.sizes))
    if aim.runs > 1:
        phrase = f"noise modulo {order} for {aim.runs} runs, best found; not proven optimal"
    elif design.status == "optimal":
        phrase = f"optimal noise modulo {order}"
    else:
        phrase = f"noise modulo {order}, best found; not proven optimal"
    if aim.minimise == "loss":
        return f"{aim.loss}, {phrase}"
    return phrase


FAMILY = _Modulo()


def list_modulo_points(question: Any, values: Values) -> Iterable[Point]:
    """List the requests of a frontier: every ε and δ under every notion, then the least ε.

    Args:
        question: the group and its differences, or None if options describe them.
        values: the exact values of the options.

    Returns:
        (columns, request) pairs. The columns are the entries of the table that name the point, such
        as notion, epsilon and delta. Points of least loss come first, in the order of the notions.

    Raises:
        InvalidRequest: the options do not fit together.
    """
    if values["loss"] == "prior-squared":
        must("loss", "one that needs no prior", repr(values["loss"]))
    notions = values["notion"]
    if values["epsilon"] and any(values["delta"]):
        deltas_text = ",".join(map(to_json_value, values["delta"]))
        for name in notions:
            if not get_notion(name).has_delta:
                must("delta", f"0 when notion is {name}", deltas_text)

    def order_point(point: Point) -> tuple[bool, int, Any]:
        """Return the sort key: least losses before least ε, then the notion, then ε."""
        columns, request = point
        is_least_epsilon = request.aim.minimise != "loss"
        return is_least_epsilon, notions.index(columns["notion"]), columns.get("epsilon", 0)

    return sorted(list_notion_requests(FAMILY, question, values), key=order_point)
