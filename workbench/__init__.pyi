# Made by `python tools/stub.py` from the tables of options; not edited by hand.
"""Design differential-privacy mechanisms by optimization, and audit them exactly."""

from typing import Any, overload

from workbench.exact.numbers import Real
from workbench.comparison.compare import compare as compare
from workbench.comparison.verify import verify as verify
from workbench.errors import CorruptFile as CorruptFile
from workbench.errors import Infeasible as Infeasible
from workbench.errors import InvalidRequest as InvalidRequest
from workbench.errors import LicenceLimit as LicenceLimit
from workbench.errors import NotApplicable as NotApplicable
from workbench.errors import NotCertified as NotCertified
from workbench.errors import NotInstalled as NotInstalled
from workbench.errors import NotProven as NotProven
from workbench.errors import SolverUnavailable as SolverUnavailable
from workbench.errors import WorkbenchError as WorkbenchError
from workbench.explorer.notebook import explore as explore
from workbench.families.labels.denoising import denoise as denoise
from workbench.formulas.formula import formula as formula
from workbench.frontiers.run import frontier as frontier
from workbench.io.plugins import register as register
from workbench.io.result import Result as Result
from workbench.mechanisms.additive import AdditiveNoise as AdditiveNoise
from workbench.mechanisms.channel import Channel as Channel
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace as DyadicLaplace
from workbench.mechanisms.dyadic_laplace.mean_length import DataLaw as DataLaw
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise as AdditiveIntegerNoise
from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer as LabelRandomizer
from workbench.mechanisms.mechanism import sample as sample
from workbench.mechanisms.piecewise_affine import PiecewiseAffine as PiecewiseAffine
from workbench.mechanisms.real_noise import AdditiveRealNoise as AdditiveRealNoise
from workbench.papers.reproduce import reproduce as reproduce
from workbench.pipeline.design import Design as Design
from workbench.privacy.certificate import Certificate as Certificate
from workbench.privacy.certificate_file import check as check
from workbench.privacy.certificate_file import save as save
from workbench.privacy.certify import certify as certify
from workbench.privacy.composition import compose as compose
from workbench.privacy.curve import profile as profile
from workbench.privacy.loading import load as load
from workbench.privacy.opendp import measurement as measurement
from workbench.privacy.public_audit import audit as audit
from workbench.privacy.release_ledger import LedgerTerms as LedgerTerms
from workbench.privacy.release_ledger import ReleaseLedger as ReleaseLedger
from workbench.privacy.risk import risk as risk
from workbench.publishing.api import publish as publish
from workbench.questions.finite_query import FiniteQuery as FiniteQuery
from workbench.questions.labels import Labels as Labels
from workbench.questions.modulo_noise import ModuloNoise as ModuloNoise
from workbench.questions.quantization import Quantization as Quantization
from workbench.questions.unbounded_noise import IntegerNoise as IntegerNoise
from workbench.questions.unbounded_noise import RealNoise as RealNoise
from workbench.recommendation.recommend import recommend as recommend
from workbench.sweeps.ledger import Ledger as Ledger
from workbench.sweeps.run import sweep as sweep
from workbench.questions.unbounded_noise import UnboundedNoise

__version__: str
__all__ = ['AdditiveIntegerNoise', 'AdditiveNoise', 'AdditiveRealNoise', 'Certificate', 'Channel', 'CorruptFile', 'DataLaw', 'Design', 'DyadicLaplace', 'FiniteQuery', 'Infeasible', 'IntegerNoise', 'InvalidRequest', 'LabelRandomizer', 'Labels', 'Ledger', 'LedgerTerms', 'LicenceLimit', 'ModuloNoise', 'NotApplicable', 'NotCertified', 'NotInstalled', 'NotProven', 'PiecewiseAffine', 'Quantization', 'RealNoise', 'ReleaseLedger', 'Result', 'SolverUnavailable', 'WorkbenchError', '__version__', 'audit', 'certify', 'check', 'compare', 'compose', 'denoise', 'design', 'explore', 'formula', 'frontier', 'load', 'measurement', 'profile', 'publish', 'recommend', 'register', 'reproduce', 'risk', 'sample', 'save', 'sweep', 'verify']

@overload
def design(
    question: ModuloNoise,
    *,
    notion: Any = 'dp',
    loss: Any = 'error-rate',
    alpha: Any = None,
    rho: Any = None,
    mu: Any = None,
    curve: Any = None,
    tradeoff: Any = None,
    prior: Any = None,
    zero_mean: bool = False,
    equal: Any = None,
    constraints: Any = None,
    minimise: Any = 'loss',
    runs: int = 1,
    method: Any = 'fast',
    certify: bool = True,
    solver: Any = 'highs',
    time_limit: Real | None = None,
    gap: Real | None = None,
    seed: int | None = None,
    options: Any = None,
    max_loss: Any = None,
    delta: Any = None,
    epsilon: Any = None,
) -> Design:
    """Design additive noise modulo a finite group.

        notion (default 'dp'): Privacy notion: dp, pure, pdp, metric, renyi, zcdp, gdp, curve or tradeoff.
        loss (default 'error-rate'): Loss: error-rate; squared (of the error of the published answer); eta-squared (of
            the noise value); circular-squared (of the distance around the group); prior-squared (squared, averaged with
            prior); worst-squared (squared, for the worst answer); or a CSV with one loss for each noise value (in
            Python: an array, or a function of it).
        alpha (default None): Rényi order > 1, for notion renyi.
        rho (default None): ρ > 0 of the budget, for notion zcdp.
        mu (default None): μ > 0 of the budget, for notion gdp.
        curve (default None): Pairs ε:δ that must all hold, for notion curve: "0.5:0.1,1:0.01".
        tradeoff (default None): Points α:β of the trade-off curve, for notion tradeoff: "0:1,0.2:0.5,1:0".
        prior (default None): CSV with the probabilities of the answers, for loss prior-squared.
        zero_mean (default False): Require noise of mean zero.
        equal (default None): Pairs of noise values that must have equal probabilities: "1=8,2=7". Vectors are numbered
            in row-major order.
        constraints (default None): More linear constraints, as a function of the CVXPY variable f (N,).
        minimise (default 'loss'): Quantity to minimise: loss, or else delta or epsilon subject to max_loss.
        runs (default 1): Number of runs that share the budget, for notion dp.
        method (default 'fast'): Method: fast, or literal (for pdp with δ > 0: the mixed-integer program of Kadam et al.
            2024).
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        gap (default None): Relative gap at which a mixed-integer solver may stop.
        seed (default None): Random seed of the solver.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        max_loss (default None): Largest expected loss allowed, for minimise delta or epsilon.
        delta (default None): δ of the budget, in [0, 1]. With minimise delta: an upper limit. Default: 0.
        epsilon (default None): ε of the budget, > 0, or one ε for each difference: "1=0.5,2=1". With minimise epsilon:
            an upper limit.
    """

@overload
def design(
    question: UnboundedNoise,
    *,
    loss: Any = 'squared',
    unit: Any = '1',
    prior: Any = None,
    notion: Any = 'dp',
    alpha: Any = None,
    rho: Any = None,
    mu: Any = None,
    curve: Any = None,
    tradeoff: Any = None,
    steps: int | None = None,
    gap: Any = None,
    runs: int = 1,
    minimise: Any = 'loss',
    max_loss: Any = None,
    certify: bool = True,
    solver: Any = 'highs',
    time_limit: Real | None = None,
    options: Any = None,
    delta: Any = '0',
    epsilon: Any = None,
) -> Design:
    """Design additive noise on all integers or all reals.

        loss (default 'squared'): Loss: absolute, squared, pinball:τ, huber:h, error-rate (only with clamp), or a CSV of
            losses of |noise| 0, 1, 2, ...
        unit (default '1'): Distance between consecutive answers in a named loss, only with clamp.
        prior (default None): Prior of the answers in clamp: worst, or a CSV of weights. On the reals, they are the
            weights of equal parts of the range. Default: uniform.
        notion (default 'dp'): Privacy notion: dp, pure, renyi, zcdp, gdp, curve or tradeoff.
        alpha (default None): Rényi order > 1, for notion renyi.
        rho (default None): ρ > 0 of the budget, for notion zcdp.
        mu (default None): μ > 0 of the budget, for notion gdp.
        curve (default None): Pairs ε:δ that must all hold, for notion curve: "0.5:0.1,1:0.01".
        tradeoff (default None): Points α:β of the trade-off curve, for notion tradeoff: "0:1,0.2:0.5,1:0".
        steps (default None): Number of cells per sensitivity, only for on reals. Default: increased until loss and
            bound agree.
        gap (default None): Relative gap between loss and bound at which the search stops. Default: 1e-8. Default for on
            reals: 2e-4, or 2e-3 for ε > 2.
        runs (default 1): Number of runs that share the budget, for noise on the integers.
        minimise (default 'loss'): Quantity to minimise: loss, or else delta or epsilon subject to max_loss.
        max_loss (default None): Largest expected loss allowed, for minimise delta or epsilon.
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        delta (default '0'): δ of the budget, in [0, 1]. With minimise delta: an upper limit.
        epsilon (default None): ε of the budget, > 0. With minimise epsilon: an upper limit.
    """

@overload
def design(
    question: FiniteQuery,
    *,
    loss: Any = 'squared',
    notion: Any = 'dp',
    alpha: Any = None,
    rho: Any = None,
    mu: Any = None,
    curve: Any = None,
    tradeoff: Any = None,
    constraints: Any = [],
    unit: Any = None,
    method: Any = 'auto',
    minimise: Any = 'loss',
    runs: int = 1,
    progress: Any = None,
    certify: bool = True,
    solver: Any = 'highs',
    time_limit: Real | None = None,
    options: Any = None,
    max_loss: Any = None,
    delta: Any = None,
    epsilon: Any = None,
) -> Design:
    """Design any finite channel.

        loss (default 'squared'): Loss: squared, absolute, error-rate, pinball:τ, huber:h, poisson or poisson-deviance;
            for places euclidean, manhattan, squared or error-rate. Or a CSV matrix with a row for each answer and a
            column for each output (in Python also a function of an output and an answer).
        notion (default 'dp'): Privacy notion: dp, pure, pdp or metric (budget: epsilon, delta), renyi (alpha, epsilon),
            zcdp (rho), gdp (mu), curve or tradeoff.
        alpha (default None): Rényi order > 1, for notion renyi.
        rho (default None): ρ > 0 of the budget, for notion zcdp.
        mu (default None): μ > 0 of the budget, for notion gdp.
        curve (default None): Pairs ε:δ that must all hold, for notion curve: "0.5:0.1,1:0.01".
        tradeoff (default None): Points α:β of the trade-off curve, for notion tradeoff: "0:1,0.2:0.5,1:0".
        constraints (default []): Constraint (repeatable). unbiased: the mean output is the answer. row-monotone,
            column-monotone: along a row or a column, no probability rises with the distance of output and answer.
            symmetric: unchanged if answers and outputs are reversed. honest: the likeliest output is the answer. In
            Python also a function of the CVXPY variable.
        unit (default None): Unit of the coordinates of places: m, km or mi. It allows epsilon 0.7/km.
        method (default 'auto'): Method: block (built-in interior-point method, one output at a time), program (linear
            program for solver) or auto (whichever needs less work).
        minimise (default 'loss'): Quantity to minimise: loss, or else delta or epsilon subject to max_loss.
        runs (default 1): Number of runs that share the budget, for notion dp.
        progress (default None): Function that is called with a line of text from time to time.
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        max_loss (default None): Largest expected loss allowed, for minimise delta or epsilon.
        delta (default None): δ of the budget, in [0, 1]. With minimise delta: an upper limit. Default: 0.
        epsilon (default None): ε of the budget, > 0. With notion metric: ε per unit of distance. With minimise epsilon:
            the largest ε allowed.
    """

@overload
def design(
    question: Quantization,
    *,
    epsilon: Any,
    method: Any = 'exact',
    lower_bound: Any = None,
    upper_bound: Any = None,
    slice_width: Any = None,
    knots: int | None = None,
    loss: Any = None,
    metric: Any = None,
    reach: Any = None,
    dimension: int | None = None,
    diameter: Any = None,
    inputs: int | None = None,
    starts: int = 4,
    certify: bool = True,
    solver: Any = 'highs',
    time_limit: Real | None = None,
    options: Any = None,
    progress: Any = None,
    notion: Any = 'dp',
) -> Design:
    """Design unbiased private quantizers of a number.

        epsilon (required): ε of the budget, > 0.
        method (default 'exact'): Method: exact (the best quantizer, with a proven bound), optm (of Cai et al. 2024;
            optm-theorem6 and optm-authors are its other programs), product (the best mechanism of the kind of optm,
            proven), mvu (of Chaudhuri et al. 2022), rqm or erm (the best parameter at the budget).
        lower_bound (default None): Lower bounds o of selection probabilities, for the optm methods with bins. One
            program is then solved. Default: a grid of bounds.
        upper_bound (default None): Upper bounds u of selection probabilities, as lower_bound.
        slice_width (default None): Width of the slices of q_2(1) of the methods optm and optm-authors. Default: 0.01,
            or smaller if no slice has a solution.
        knots (default None): Number of additional knots (inputs at which the law may bend), for method exact. Default:
            0 with bins, 41 with levels.
        loss (default None): Loss: absolute, squared, or a number in [0, 1] (the share of absolute in a mixture of
            both). Default: absolute, but squared with method mvu.
        metric (default None): Distance of two inputs: absolute or squared. Their budget is then ε times this distance
            (metric privacy). Default: ε for every two inputs.
        reach (default None): Largest output allowed with levels. Default: twice the smallest feasible one (40 times
            with method mvu).
        dimension (default None): Number of coordinates of a vector whose coordinates are quantized separately. The
            report then states its ε. Needs diameter.
        diameter (default None): Largest Euclidean distance of two vectors, with dimension.
        inputs (default None): Number of points to which inputs are rounded at random, for method mvu. Default: the
            number of outputs.
        starts (default 4): Number of starts of the search for outputs, 1 to 7.
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        progress (default None): Function that is called with a line of text from time to time.
        notion (default 'dp'): Privacy notion: dp or pure. Both mean the same, because the budget has no δ.
    """

@overload
def design(
    question: Labels,
    *,
    loss: Any = 'squared',
    method: Any = 'auto',
    outputs: Any = None,
    neighbours: Any = 'all',
    notion: Any = 'dp',
    alpha: Any = None,
    rho: Any = None,
    mu: Any = None,
    curve: Any = None,
    tradeoff: Any = None,
    runs: int = 1,
    constraints: Any = [],
    certify: bool = True,
    solver: Any = 'highs',
    time_limit: Real | None = None,
    options: Any = None,
    progress: Any = None,
    delta: Any = '0',
    epsilon: Any = None,
) -> Design:
    """Design private randomizers of labels.

        loss (default 'squared'): Loss: squared, absolute, poisson, poisson-deviance, error-rate, pinball:τ or huber:h.
            With method lp also a CSV matrix with a row for each label and a column for each output (in Python also an
            array, or a function of an output and a label).
        method (default 'auto'): Method: bins, lp, unbiased, rr-with-prior (of Ghazi et al. 2021), or auto (lp if
            another option needs it, otherwise bins).
        outputs (default None): Outputs for lp: integers LOW..HIGH. Default: the labels.
        neighbours (default 'all'): Neighbours for lp: all, consecutive, or pairs of positions such as "0-1,1-2".
        notion (default 'dp'): Privacy notion for lp: dp, pure, metric, renyi, zcdp, gdp, curve or tradeoff.
        alpha (default None): Rényi order > 1, for notion renyi.
        rho (default None): ρ > 0 of the budget, for notion zcdp.
        mu (default None): μ > 0 of the budget, for notion gdp.
        curve (default None): Pairs ε:δ that must all hold, for notion curve: "0.5:0.1,1:0.01".
        tradeoff (default None): Points α:β of the trade-off curve, for notion tradeoff: "0:1,0.2:0.5,1:0".
        runs (default 1): Number of runs that share the budget, for lp with notion dp.
        constraints (default []): Constraint for lp: unbiased, row-monotone, column-monotone, symmetric or honest
            (repeatable).
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        progress (default None): Function that is called with a line of text from time to time.
        delta (default '0'): δ of the budget, in [0, 1], with method lp and notion dp.
        epsilon (default None): ε of the budget, > 0. With notion metric: ε per unit of the label.
    """

@overload
def design(
    question: DataLaw,
    *,
    bits: Any,
    epsilon: Any,
    code: Any = 'gamma',
) -> Design:
    """Design exact Laplace noise in few bits.

        bits (required): Mean number of bits per number, > 0.
        epsilon (required): ε of the database privacy, per unit of |x - x'|, > 0.
        code (default 'gamma'): Elias code of the transmitted integers: gamma or delta.
    """

@overload
def design(question: Any, **options: Any) -> Design:
    """A question of a family of another package."""
