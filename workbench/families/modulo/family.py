"""Additive noise modulo a finite group as a family: its options, its requests, what its designs show.

check     what is done with the solver's answer                                           status of an optimum
none      the objective recomputed at the solver's point; no bound, no audit              claimed (the solver's word)
bound     the bound recomputed from the duals, and the residual                           optimal
audit     the exact audit of the solver's own PMF, and the closed form                    optimal
certify   the mechanism repaired and proven private                                       optimal
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from workbench.models.modulo.level_frontier import FrontierPiece
    from workbench.pipeline.design import Design, LawsByName, Tables
    from workbench.pipeline.stated import Interval
    from workbench.privacy.claim import Claim
    from workbench.questions.modulo_noise import ModuloNoise


METHODS = ("fast", "literal")
CHECKS = ("none", "bound", "audit", "certify")
# The losses of which the frontier over δ is traced pattern by pattern.
_PATTERN_LOSSES = ("error-rate", "eta-squared", "squared", "circular-squared")
_SHOWN = 24  # masses up to which a report lists all of them, beyond it the 16 heaviest


def _sizes(value: Any, name: str) -> Ints:
    """ "5x5", or its orders one by one."""
    return list_reader(read_integer, "x")(value.lower() if isinstance(value, str) else value, name)


def _shifts(value: Any, name: str) -> tuple[Any, ...]:
    """ "1,2,3", for vectors "0,1;1,0"; or lists of the same."""
    if isinstance(value, str) and ";" in value:
        return tuple(
            list_reader(read_integer)(part, name) for part in value.split(";") if part.strip()
        )

    def one_shift(part: Any, name: str) -> Any:
        return (
            list_reader(read_integer)(part, name)
            if isinstance(part, (list, tuple))
            else read_integer(part, name)
        )

    return list_reader(one_shift)(value, name)


def _epsilon(value: Any, name: str) -> Fraction | dict[Any, Fraction]:
    """One budget; "1=0.5,2=1" (for vectors "0,1=0.5;1,0=1") or a mapping gives each difference its own."""
    if isinstance(value, str) and "=" in value:
        parts = value.split(",")
        parts = parts if all("=" in part for part in parts) else value.split(";")
        given = {}
        for part in parts:
            shift, _, amount = part.partition("=")
            key = list_reader(read_integer)(shift, "epsilon's shift")
            if key in given:
                raise InvalidRequest(
                    f"epsilon must give each difference one budget. Got two for {shift.strip()}."
                )
            given[key] = amount.strip()
        value = given
    if isinstance(value, Mapping):
        return {
            shift: read_positive(amount, f"epsilon of shift {shift}")
            for shift, amount in value.items()
        }
    return read_positive(value, name)


def _equal(value: Any, name: str) -> tuple[Ints, ...]:
    """ "1=8,2=7": groups of row-major noise values with equal masses."""
    groups = value.split(",") if isinstance(value, str) else value
    if not isinstance(groups, (list, tuple)):
        must(name, "groups of noise values such as 1=8,2=7", repr(value))
    return tuple(list_reader(read_integer, "=")(group, name) for group in groups)


def _within_curve(request: Any, curve: Claim) -> Design:
    """The least-loss noise of one run within a claim of several (ε, δ)."""
    return FAMILY.design_request(request.with_values(claim=curve, method="fast"))


class _Modulo(Family):
    name = "modulo"
    title = "additive noise modulo a finite group"
    summary = "The best additive noise modulo a finite query domain, judged by its closed form and audited exactly."
    examples = (
        "design modulo --n 8 --max-shift 3 --epsilon 1.5",
        "design modulo --n 8 --shifts 1,2,3 --directed --epsilon 1.5 --delta 0.1212 --plot pmf.png",
        'design modulo --sizes 5x5 --shifts "0,1;1,0" --epsilon 1 --delta 0.01 --notion dp --json',
        "design modulo --n 8 --max-shift 3 --epsilon 1.5 --minimise delta --max-loss 0.4425",
        'design modulo --n 8 --shifts 1,2 --epsilon "1=0.5,2=1" --loss squared --zero-mean',
        "design modulo --n 30 --max-shift 1 --loss squared --notion zcdp --rho 0.1",
        "design modulo --n 30 --max-shift 1 --loss circular-squared --epsilon 4 --delta 1e-5 --notion dp --runs 16",
        'design modulo --n 30 --max-shift 1 --loss squared --notion curve --curve "0.5:0.1,1:0.01"',
    )
    formulas = (
        "formula modulo --n 12 --max-shift 2 --loss circular-squared --save f.tex",
        "formula modulo --n 8 --max-shift 3 --delta 0.01 --epsilon 1",
        "formula modulo --n 8 --max-shift 3 --directed --notion pdp --epsilon 1.5 --delta 0..0.2",
    )
    options = (
        Option("n", integer_reader(1, 10**7), help="Scalar query with answers 0..n.", kind=int, question=True),
        Option("sizes", _sizes, help='Vector query: orders of its coordinates, "5x5".', question=True),
        Option(
            "shifts", _shifts, help='How neighbouring answers differ: "1,2,3", for vectors "0,1;1,0".', question=True
        ),
        Option(
            "max_shift", integer_reader(1, 10**6), help="All differences 1..MAX_SHIFT (instead of --shifts).", kind=int,
            question=True,
        ),
        Option(
            "directed", read_flag, False, "Only the given sign of the differences, as the paper.", kind=bool, question=True
        ),
        Option(
            "notion", read_convex_or_ratio_notion, "dp", "dp, pdp, pure or metric; curve, tradeoff, renyi, zcdp or gdp."
        ),
        Option(
            "loss", load_when_called("workbench.families.modulo.request", "read_loss"), "error-rate",
            "error-rate, squared, eta-squared, circular-squared, prior-squared, worst-squared, or a CSV of losses, "
            "one for every noise value (in Python: an array, or a function of it).",
        ),
        *NOTION_PARAMETERS,
        Option(
            "prior", read_probabilities, help="CSV with N probabilities of the true answer (loss prior-squared).", kind=Path,
        ),
        Option("zero_mean", read_flag, False, "Require noise of mean zero.", kind=bool),
        Option("equal", _equal, help='Require equal masses: "1=8,2=7" (row-major noise values).'),
        Option(
            "constraints", accept_anything, places=frozenset(("python",)),
            help="More linear constraints, as a function of the CVXPY variable f (N,).",
        ),
        MINIMISE,
        RUNS,
        Option("method", choice_reader(*METHODS), "fast", "fast, or literal: PDP with delta > 0 as the printed MILP."),
        make_check_option(*CHECKS),
        CERTIFY,
        SOLVER,
        TIME_LIMIT,
        Option(
            "gap", read_nonnegative, help="Relative MILP gap at which the solver may stop.", kind=float, solver=True
        ),
        Option("seed", integer_reader(0, 2**31 - 1), help="Of the solver.", kind=int, solver=True),
        OPTIONS,
        MAX_LOSS,
        Option(
            "delta", read_probability, help="In [0, 1]; 0 by default. With --minimise delta: an upper limit.", hot=True
        ),
        Option(
            "epsilon", _epsilon, hot=True,
            help='Privacy budget > 0; "1=0.5,2=1" gives each difference its own. Where it is minimised: a limit.',
        ),
    )  # fmt: skip
    solving_option_names = (*Family.solving_option_names, "method")

    @property
    def question_class(self) -> type[ModuloNoise]:
        from workbench.questions.modulo_noise import ModuloNoise

        return ModuloNoise

    def parse_question(self, values: Values) -> ModuloNoise:
        names = ("n", "sizes", "max_shift", "directed", "shifts")
        return self.question_class(**{name: values[name] for name in names})

    def question_to_options(self, question: Any) -> Record:
        """See `Family.question_options`."""
        shifts = [shift[0] if question.is_scalar else shift for shift in question.shifts]
        return {"sizes": question.sizes, "shifts": shifts, "directed": question.directed}

    def trace_patterns(
        self, request: Any, deltas: Interval, time_limit: float | None, progress: Progress | None
    ) -> Sequence[FrontierPiece]:
        """See `Family.trace_patterns`."""
        from workbench.models.modulo.frontier import compute_delta_frontier
        from workbench.pipeline.outcome import translate_errors

        if not isinstance(request.claim.epsilon, Fraction):
            must("epsilon", "one number for all differences under pdp", "several")
        low, high = deltas
        if low == high:
            wanted = "an interval such as 0..0.2 under pdp, where the frontier is of many pieces"
            must("delta", wanted, low)
        InvalidRequest.check_choice(_PATTERN_LOSSES, "loss", request.aim.loss)
        report = limit_message_rate(progress or str)

        def report_pieces(share: float, pieces: int) -> None:
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
        from workbench.families.modulo.request import make_modulo_request

        return make_modulo_request(question, values)

    def open_session(self, request: Any) -> Session:
        if request.aim.runs == 1:
            from workbench.families.modulo.problem import ModuloSession

            return ModuloSession(request)
        from workbench.pipeline.many_runs import ManyRuns

        return ManyRuns(request, _within_curve)

    # Mechanisms from elsewhere.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Of additive noise in the same group its exact loss; of a channel its error rate or mean squared error, true
        answers uniform."""
        from workbench.mechanisms.additive import AdditiveNoise
        from workbench.privacy.repair import compute_exact_loss

        related = self.relate_mechanism(request, mechanism)
        if isinstance(related, AdditiveNoise):
            return float(compute_exact_loss(related, request.losses))
        if request.aim.loss not in ("error-rate", "squared"):
            must("loss", "error-rate or squared for a channel", repr(request.aim.loss))
        return float(related.error_rate if request.aim.loss == "error-rate" else related.mse)

    def relate_mechanism(self, request: Any, mechanism: Any) -> Any:
        """Noise under the question's differences; of a channel the answers that differ by one, without wrapping."""
        from workbench.mechanisms.additive import AdditiveNoise
        from workbench.mechanisms.channel import Channel

        question, order = request.question, request.question.order
        if isinstance(mechanism, AdditiveNoise) and mechanism.question.sizes == question.sizes:
            return AdditiveNoise(question, mechanism.masses)
        square = (
            isinstance(mechanism, Channel)
            and len(mechanism.rows) == len(mechanism.outputs) == order
        )
        if not square or not question.is_scalar:
            must(
                "baseline",
                "additive noise on the query's answers, or their channel",
                repr(mechanism),
            )
        # a difference beyond N/2 may have been meant as μ - N: protect both
        near = {
            distance for (shift,) in question.shifts for distance in (shift % order, -shift % order)
        }
        return Channel.from_pairs(mechanism, [(q, q + d) for d in near for q in range(order - d)])

    # Keys of sweeps.

    def sweep_key(self, values: Values) -> Record:
        """n and max_shift spelled out as sizes and shifts, one of each pair mu, -mu unless directed."""
        rest = {
            name: value
            for name, value in super().sweep_key(values).items()
            if name not in ("n", "max_shift")
        }
        question = self.parse_question(values)
        pairs = (
            {shift} if question.directed else {shift, question.negate_shift(shift)}
            for shift in question.shifts
        )
        return (
            rest
            | question.to_dict()
            | {"shifts": [list(shift) for shift in sorted({min(pair) for pair in pairs})]}
        )

    def points_per_task(self, values: Values) -> int:
        """Bare linear programs take less than a millisecond; audits and branch and bound much longer."""
        bare = values["check"] in ("none", "bound") and values["notion"] in list_ratio_notions()
        return 500 if bare and get_ratio_kind(values["notion"]) == HOCKEY_STICK else 20

    # What a design shows.

    def extra_json(self, design: Design) -> Record:
        from workbench.pipeline.budget import budget_to_json

        question = design.question
        entries = {
            "pmf": design.mechanism.pmf.tolist(),
            "loss": design.request.aim.loss,
            **budget_to_json(design),
        }
        return entries | {"question": question.to_dict(), "directed": question.directed}

    def facts(self, design: Design) -> Facts:
        from workbench.pipeline.budget import list_budget_facts

        what = (
            design.request.aim.loss
            if design.request.aim.minimise == "loss"
            else design.request.aim.minimise
        )
        order = "x".join(map(str, design.question.sizes))
        runs = design.request.aim.runs
        best = (
            f"best noise modulo {order}"
            if runs == 1
            else f"best found modulo {order} for {runs} runs"
        )
        return [
            (f"least {what}", f"{design.objective:.9g} ({best})"),
            ("bound", design.bound_text),
            *list_budget_facts(design),
        ]

    def comparison_laws(self, design: Design) -> LawsByName:
        from workbench.families.modulo.published import list_laws

        return list_laws(design.request)

    def list_tables(self, design: Design) -> Tables:
        masses, question = design.mechanism.pmf, design.question
        every = masses.size <= _SHOWN
        shown = (
            range(masses.size)
            if every
            else sorted(range(masses.size), key=lambda k: -masses[k])[:16]
        )
        cells = [[question.format_shift(question.element_at(k)), float(masses[k])] for k in shown]
        title = "PMF" if every else f"PMF, the 16 heaviest of {masses.size} noise values"
        return [(title, ["noise", "probability"], cells)]


FAMILY = _Modulo()


def list_modulo_points(question: Any, values: Values) -> Iterable[Point]:
    """(columns that name a point, its request): every ε and δ under every notion, then the least ε of losses.

    Raises InvalidRequest.
    """
    if values["loss"] == "prior-squared":
        must("loss", "one that needs no prior", repr(values["loss"]))
    for name in values["notion"] if values["epsilon"] else ():
        if any(values["delta"]) and not get_notion(name).has_delta:
            must("delta", f"0 when notion is {name}", ",".join(map(to_json_value, values["delta"])))
    every = list_notion_requests(FAMILY, question, values)
    notions = values["notion"]
    return sorted(
        every,
        key=lambda p: (
            p[1].aim.minimise != "loss",
            notions.index(p[0]["notion"]),
            p[0].get("epsilon", 0),
        ),
    )
