"""Design a quantizer for one request: solve it by its method, repair the result and prove it.

The table says what each method solves, which objective its solution has, and which lower bound it
proves. OPTM is the mechanism of Cai et al. 2024, whose equation (8) is the upper bound on the mean
absolute error that OPTM minimises. MVU is the mechanism of Chaudhuri et al. 2022, with a matrix P
of output probabilities. LP is a linear program, bins are outputs, and levels is the number of
outputs if they are optimised. "Any bins" means that the bound holds for every choice of outputs.

method     what is solved                                       objective          bound
exact      the exact LP (`models.quantizer.program`); with      exact error        LP dual; any bins
           levels, outputs are searched on top
optm       OPTM's LPs, searched over bounds (and bins); also    proxy (8)          none
           optm-theorem6 and optm-authors (`optm_programs`)
product    the optimal two-bin mechanism, by branch and         exact error        proven
           bound (`models.quantizer.two_bin`)
mvu        MVU's LP in P (and its alphabet)                     error on its grid  LP dual; any bins
rqm, erm   the largest private q of RQM, or γ of ERM            exact error        none
           (`parameter_search`)

A method is added as a route in `QuantizerProblem.routes` and as a value of the option method
(`workbench.families.quantizer.family.METHODS`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from workbench.errors import Infeasible, NotProven
from workbench.families.quantizer.certify import (
    SMALL_REPAIR_SHARE,
    audit_quantizer,
    certify_quantizer,
)
from workbench.families.quantizer.feasibility import (
    describe_infeasibility,
    find_smallest_epsilon,
)
from workbench.families.quantizer.laws import Bins, QuantizerAnswer, solve_exact_quantizer
from workbench.families.quantizer.limit import compute_output_bound, compute_two_output_error
from workbench.families.quantizer.mvu import solve_mvu
from workbench.families.quantizer.optm_programs import OPTM_METHODS
from workbench.families.quantizer.output_search import optimise_bins
from workbench.families.quantizer.parameter_search import find_best_parameter
from workbench.families.quantizer.product import solve_product_optimum
from workbench.families.quantizer.request import QuantizerRequest
from workbench.families.quantizer.search import search_bins
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import default_reach, smallest_reach
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.problem import Problem, Repaired
from workbench.pipeline.routes import Answer, Reason, Route
from workbench.privacy.audit import Privacy
from workbench.privacy.claim import Claim

# The note on a search counts the starts whose value is within this of the best value.
_REACHED_TOLERANCE = 1e-4
_REACH_TOLERANCE = 1e-6  # An outermost output within this share of the reach is at the reach.


def _make_route(
    name: str,
    method: str,
    solve: Callable[[QuantizerProblem], QuantizerAnswer],
    required_input: str = "",
) -> Route:
    """Make the route of a method.

    Args:
        name: the name of the route in reports.
        method: the method that a request must name.
        solve: solves a problem.
        required_input: "outputs" or "levels" if the route only accepts these. Default: both.
    """

    def explain_refusal(problem: QuantizerProblem) -> Reason:
        """Return why the route does not apply to a problem; None if it does."""
        if problem.request.how.method != method:
            return f"the requested method is {problem.request.how.method}"
        available_input = "levels" if problem.bins is None else "outputs"
        if required_input and required_input != available_input:
            return f"{required_input} are not given"
        return None

    return Route(
        name,
        explain_refusal,
        answer=lambda problem, programs, start: problem.answer_by(partial(solve, problem)),
    )


class QuantizerProblem(Problem):
    """Find the unbiased ε-private quantizer for a request by its method.

    Programs are solved in units of c, half the width of the inputs.

    Args:
        request: the checked request of the design.

    Attributes:
        law_question: the question of the law, in units of c.
        loss_factor: the factor from losses in units of c to losses of the request.
        bins: the given outputs in units of c, None if outputs are optimised.
        levels: the number of outputs.
        reach: the largest output that a search may choose, in units of c; inf for any.
    """

    request: QuantizerRequest
    SUBJECT = "The solver's law"
    CLAIMS_OPTIMUM = False
    routes = (
        _make_route(
            "exact program",
            "exact",
            lambda problem: problem.solve_exact_program(),
            required_input="outputs",
        ),
        _make_route(
            "search over outputs",
            "exact",
            lambda problem: problem.search_outputs(),
            required_input="levels",
        ),
        *(_make_route(name, name, lambda problem: problem.search_optm()) for name in OPTM_METHODS),
        _make_route("product", "product", lambda problem: problem.search_product()),
        _make_route("mvu", "mvu", lambda problem: problem.search_mvu()),
        _make_route("rqm", "rqm", lambda problem: problem.search_parameter()),
        _make_route("erm", "erm", lambda problem: problem.search_parameter()),
    )

    def __init__(self, request: QuantizerRequest) -> None:
        super().__init__(request)
        self.levels = request.question.levels
        self.law_question = request.law_question
        self.loss_factor = request.loss_factor
        self.bins = request.question.centred_bins
        self.reach = default_reach(self.law_question.float_epsilon)
        if request.how.method == "mvu":
            self.reach = math.inf
        if request.aim.reach is not None:
            self.reach = float(request.aim.reach / request.question.c)

    @property
    def loss_scale(self) -> LossScale:
        """Return the loss of an error of c as the scale of the losses; the inputs have width 2c."""
        return LossScale(width=float(self.loss_factor))

    # Routes.

    def answer_by(self, solve: Callable[[], QuantizerAnswer]) -> Answer:
        """Answer by one of the methods.

        Args:
            solve: solves the problem in units of c.

        Raises:
            Infeasible: no quantizer exists; with the smallest feasible ε if it is known.
            NotProven: a limit stopped the solver.
            SolverUnavailable, LicenceLimit: the solver is not installed, or its licence does not
                cover the program.
        """
        method = self.request.how.method
        least_epsilon = find_smallest_epsilon(self.request)
        try:
            with translate_errors():
                answer = solve()
        except Infeasible:
            raise Infeasible(describe_infeasibility(self.request, self.bins)) from None
        bound = None
        if answer.bound is not None:
            bound = self.loss_factor * answer.bound
        claimed_objective = None
        if method in (*OPTM_METHODS, "mvu"):
            claimed_objective = self.loss_factor * answer.objective
        notes = answer.notes
        if answer.start_values:
            notes += tuple(self._describe_search(answer, bound))
        return Answer(
            self._rescale_quantizer(answer.quantizer),
            bound,
            answer.solution,
            claimed_objective=claimed_objective,
            is_proxy=True,  # The methods with a claimed objective do not minimise the error.
            notes=notes,
            details={"smallest_epsilon": least_epsilon},
        )

    def _rescale_quantizer(self, quantizer: Quantizer) -> Quantizer:
        """Return a quantizer in the units of the inputs."""
        middle = self.request.question.middle
        c = self.request.question.c
        knots = tuple(middle + c * knot for knot in quantizer.knots)
        bins = tuple(middle + c * output for output in quantizer.bins)
        return Quantizer(knots, bins, quantizer.ends, quantizer.name)

    def solve_exact_program(self) -> QuantizerAnswer:
        """Solve the exact LP at given outputs. Raises Infeasible, NotProven."""
        assert self.bins is not None
        knots = self.request.extra_knot_count
        answer = solve_exact_quantizer(self.bins, self.law_question, knots=knots)
        if answer is None:
            raise Infeasible
        return answer

    def search_outputs(self, *, has_bound: bool = True) -> QuantizerAnswer:
        """Search for the outputs of least error of the exact LP. Raises Infeasible, NotProven.

        Args:
            has_bound: whether the answer has a lower bound for all outputs.
        """
        answer = optimise_bins(
            self.levels,
            self.law_question,
            reach=self.reach,
            knots=self.request.extra_knot_count,
            starts=self.request.how.starts,
        )
        if answer is None:
            raise Infeasible
        bound = None
        if has_bound and self.law_question.metric is None:
            bound = compute_output_bound(self.levels, self.law_question, self.reach)
        return replace(answer, bound=bound)

    def search_mvu(self) -> QuantizerAnswer:
        """Solve MVU's LP in P at given outputs, or search for outputs. Raises Infeasible."""
        answer = solve_mvu(
            self.law_question,
            self.levels if self.bins is None else self.bins,
            inputs=self.request.how.inputs,
            reach=self.reach,
            starts=self.request.how.starts,
        )
        note = (
            "MVU's objective is the mean error over its input grid; mae and mse include dithering."
        )
        return replace(answer, notes=(note,))

    def _get_bins(self) -> Bins:
        """Return the given outputs, or search for outputs by the method of the request."""
        if self.bins is not None:
            return self.bins
        method = self.request.how.method
        return search_bins(self.levels, self.law_question, method, reach=self.reach)

    def search_optm(self) -> QuantizerAnswer:
        """Find OPTM's best selection. Raises NotProven if its programs have no solution."""
        choices = self.request.how.optm_choices
        answer = choices.solve(self._get_bins(), self.law_question)
        if answer is None:
            epsilon = f"{self.law_question.float_epsilon:g}"
            bounds = " and bounds" if choices.has_bounds else ""
            advice = ""
            if choices.method == "optm-theorem6":
                advice = " Theorem 6 asks for more than privacy. Use method optm."
            raise NotProven(
                f"OPTM's linear programs have no solution for these bins{bounds} at epsilon = "
                f"{epsilon}.{advice}"
            )
        note = (
            "OPTM minimises an upper bound of the MAE (the objective shown); it proves no bound on "
            "the MAE itself."
        )
        return replace(answer, notes=(note,))

    def search_product(self) -> QuantizerAnswer:
        """Find the optimal two-bin mechanism with a proven bound. Raises NotProven without one."""
        answer = solve_product_optimum(self._get_bins(), self.law_question)
        if answer is None:
            epsilon = f"{self.law_question.float_epsilon:g}"
            raise NotProven(
                f"No two-bin mechanism was found for these bins at epsilon = {epsilon}."
            )
        return answer

    def search_parameter(self) -> QuantizerAnswer:
        """Find the best RQM or ERM. Raises NotProven if no private parameter was found."""
        method = self.request.how.method
        name = method.upper()
        best = find_best_parameter(method, self.bins, self.levels, self.law_question)
        if best is None:
            epsilon = f"{self.law_question.float_epsilon:g}"
            bins = "any bins tried" if self.bins is None else "these bins"
            raise NotProven(f"No parameter of {name} is private for {bins} at epsilon = {epsilon}.")
        quantizer = best.quantizer
        notes = []
        if best.parameter:
            notes.append(
                f"{best.parameter} is the largest private parameter of {name} on these bins, by "
                "bisection. The error never increases with it."
            )
        if self.bins is None and self.levels > 2:
            notes.append("The bins are the best of a search, and not proven optimal.")
        if best.is_stopped:
            notes.append("The time limit stopped the search for bins. Better bins may exist.")
        error = quantizer.expected_loss(self.law_question.loss, self.law_question.density)
        return QuantizerAnswer(
            error, bound=None, quantizer=quantizer, solution=None, notes=tuple(notes)
        )

    def _describe_search(self, answer: QuantizerAnswer, bound: float | None) -> list[str]:
        """Return notes on the result of a search over outputs."""
        question = self.request.question
        values = answer.start_values
        reached_count = sum(value <= min(values) + _REACHED_TOLERANCE for value in values)
        reach_text = ""
        if not math.isinf(self.reach):
            middle = f"{float(question.middle):g} " if question.middle else ""
            reach_text = f" within {middle}±{self.reach * float(question.c):.6g} (reach)"
        bound_text = "No bound is known."
        if bound is not None:
            bound_text = f"No choice of outputs{reach_text} goes below {bound:.6g}."
        notes = [
            f"Outputs{reach_text} are the best found by {len(values)} local searches "
            f"({reached_count} reached this value); they are not proven optimal over all outputs. "
            f"{bound_text}"
        ]
        if float(answer.quantizer.bins[-1]) > self.reach * (1 - _REACH_TOLERANCE):
            notes.append(
                "The outermost output is at the reach: a larger reach may give a smaller error."
            )
        return notes

    # Repair and audit.

    def repair(self, answer: Answer) -> Repaired:
        """Make the solver's law exactly private and certify it. Raises NotCertified.

        The law is mixed with a strictly private law if its rounding errors break privacy.
        """
        mechanism, certificate, share = certify_quantizer(
            answer.mechanism, self.request.claim.epsilon, self.request.aim.metric
        )
        notes = []
        if share > SMALL_REPAIR_SHARE:
            notes.append(
                f"The proof needed {float(share):.2g} of another law, mixed into the solver's law; "
                "errors are those of the mixture."
            )
        return mechanism, certificate, notes

    def compute_loss(self, mechanism: Quantizer) -> float:
        """Compute the exact error.

        Args:
            mechanism: a quantizer of the inputs of the request.
        """
        return mechanism.expected_loss(self.request.aim.loss, self.request.question.density)

    def audit(self, mechanism: Quantizer) -> Privacy:
        """Audit the comparisons that decide the claim, which are linear in the end laws.

        Args:
            mechanism: a quantizer of the inputs of the request.
        """
        privacy, _ = audit_quantizer(mechanism, self.request.claim.epsilon, self.request.aim.metric)
        return privacy

    def claim_for_audit(self, privacy: Privacy) -> Claim:
        """Return the claim. For the metric "squared" it has the budget of every two knots.

        Args:
            privacy: the audit, with these budgets.
        """
        if self.request.aim.metric == "squared":
            return Claim("metric", privacy.budgets)
        return self.claim

    # Proof.

    def require_proof(self, design: Design) -> Design:
        """Return the design with notes on the repaired law and a verdict.

        No design is rejected: every bound is proven, but need not be attained.

        Args:
            design: the design, repaired and audited.
        """
        quantizer = design.mechanism
        notes = [*design.words]
        origin = None
        if design.certificate is not None:
            share = design.certificate.record.get("repair_share")
            origin = "as the solver returned it"
            if design.solution is None:
                origin = "exact as constructed"
            if share:
                origin = f"{share:.2g} of a strictly private law mixed in"
        elif quantizer.bias:
            notes.append(
                f"Its exact bias is {float(quantizer.bias):.2g} (rounding of the solver's answer), "
                "not 0."
            )
        if self.request.aim.metric == "squared":
            notes.append(
                f"By |x - x'|² the guarantee is between the {len(quantizer.knots)} points that "
                "inputs are dithered to; between all real inputs it would force a constant law."
            )
        verdict = self._judge_error(self.compute_loss(quantizer), design.bound)
        return replace(design, origin=origin, oracle=verdict, words=tuple(notes))

    def _judge_error(self, error: float, bound: float | None) -> OracleVerdict:
        """Compare an error with the closed form of two outputs, or with the limit.

        The limit is the lower bound for all choices of outputs.
        """
        is_exact = self.request.how.method == "exact"
        if self._has_two_output_formula():
            return self._judge_two_outputs(error)
        if bound is not None and self.bins is None and is_exact:
            proof = "A bound for all outputs within the same reach, proven by duality."
            return OracleVerdict.judge(error, "limit", bound, "lower bound", proof)
        return OracleVerdict.without_formula("no closed form is known for more than two outputs.")

    def _has_two_output_formula(self) -> bool:
        """Check whether a closed form gives the error: for two outputs ±B, given or optimised."""
        if self.request.question.levels != 2:
            return False
        if self.bins is None:
            return self.request.aim.metric != "squared"
        low, high = self.bins
        return bool(low == -high)

    def _judge_two_outputs(self, error: float) -> OracleVerdict:
        """Compare an error with the closed form for two outputs ±B.

        If the outputs are optimised, B is the least reach.
        """
        request = self.request
        question = request.question
        x, w = question.density.quadrature([0.0])
        proof = (
            "Two outputs ±B leave one unbiased law, Pr[B] = (B + x)/(2B); its absolute error is "
            "(B² - x²)/B"
        )
        if self.bins is None:
            epsilon = float(request.claim.epsilon)
            reach = smallest_reach(epsilon, float(question.c), request.aim.metric)
            kind = "lower bound"
            if request.how.method == "exact":
                kind = "optimum"
            proof = f"{proof}, least where B is the least reach."
        else:
            _, high = self.bins
            reach = float(high * question.c)
            kind = "optimum"
            proof = f"{proof}."
        value = compute_two_output_error(reach, request.aim.loss, float(w @ x**2))
        return OracleVerdict.judge(error, "two outputs", value, kind, proof)
