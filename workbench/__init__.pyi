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
from workbench.privacy.audit import audit as audit
from workbench.privacy.certificate import Certificate as Certificate
from workbench.privacy.certificate_file import check as check
from workbench.privacy.certificate_file import save as save
from workbench.privacy.certify import certify as certify
from workbench.privacy.composition import compose as compose
from workbench.privacy.curve import profile as profile
from workbench.privacy.loading import load as load
from workbench.privacy.opendp import measurement as measurement
from workbench.privacy.risk import risk as risk
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
__all__ = ['AdditiveIntegerNoise', 'AdditiveNoise', 'AdditiveRealNoise', 'Certificate', 'Channel', 'CorruptFile', 'DataLaw', 'Design', 'DyadicLaplace', 'FiniteQuery', 'Infeasible', 'IntegerNoise', 'InvalidRequest', 'LabelRandomizer', 'Labels', 'Ledger', 'LicenceLimit', 'ModuloNoise', 'NotApplicable', 'NotCertified', 'NotInstalled', 'NotProven', 'PiecewiseAffine', 'Quantization', 'RealNoise', 'Result', 'SolverUnavailable', 'WorkbenchError', '__version__', 'audit', 'certify', 'check', 'compare', 'compose', 'design', 'explore', 'formula', 'frontier', 'load', 'measurement', 'profile', 'recommend', 'register', 'reproduce', 'risk', 'sample', 'save', 'sweep', 'verify']

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

        notion (default 'dp'): dp, pdp, pure or metric; curve, tradeoff, renyi, zcdp or gdp.
        loss (default 'error-rate'): error-rate; squared (error of the published answer); eta-squared (square of the
            noise value); circular-squared (square of the distance around the group); prior-squared (squared error under
            prior); worst-squared (squared error of the worst answer); or a CSV with the loss of every noise value. In
            Python also a list, or a function of the noise value.
        alpha (default None): Order > 1 of notion renyi.
        rho (default None): Budget > 0 of notion zcdp.
        mu (default None): Budget > 0 of notion gdp.
        curve (default None): Points epsilon:delta of notion curve, such as "0.5:0.1,1:0.01".
        tradeoff (default None): Points alpha:beta of notion tradeoff, such as 0:1,0.2:0.5,1:0.
        prior (default None): CSV with the probability of every answer, for loss prior-squared.
        zero_mean (default False): Require noise of mean zero.
        equal (default None): Require equal probabilities of noise values: "1=8,2=7" (vectors: row-major).
        constraints (default None): More linear constraints, as a function of the CVXPY variable f (N,).
        minimise (default 'loss'): What is minimised: loss; or delta or epsilon, with the loss limited by max_loss.
        runs (default 1): Number of runs that share the budget (with notion dp).
        method (default 'fast'): fast, or literal. For PDP with δ > 0, literal solves the mixed-integer program of Kadam
            et al. 2024.
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        gap (default None): Relative gap at which the solver of a mixed-integer program may stop.
        seed (default None): Random seed of the solver.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        max_loss (default None): Largest expected loss allowed when delta or epsilon is minimised.
        delta (default None): δ of the budget, in [0, 1]. Default: 0. With minimise delta: an upper limit.
        epsilon (default None): ε of the budget, > 0; "1=0.5,2=1" gives each difference a separate ε. With minimise
            epsilon: an upper limit.
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

        loss (default 'squared'): absolute, squared, pinball:τ, huber:h, error-rate (only with clamp), or a CSV of
            losses of |noise| 0, 1, 2, ...
        unit (default '1'): Distance between consecutive answers in units of a named loss (only with clamp).
        prior (default None): Prior of the answers in clamp: a CSV of weights (on the reals: of equal parts of the
            range), or worst. Default: uniform.
        notion (default 'dp'): dp, pure, curve, tradeoff, renyi, zcdp or gdp.
        alpha (default None): Order > 1 of notion renyi.
        rho (default None): Budget > 0 of notion zcdp.
        mu (default None): Budget > 0 of notion gdp.
        curve (default None): Points epsilon:delta of notion curve, such as "0.5:0.1,1:0.01".
        tradeoff (default None): Points alpha:beta of notion tradeoff, such as 0:1,0.2:0.5,1:0.
        steps (default None): Number of cells into which one sensitivity is divided (only on the reals). Default:
            refined until loss and bound agree.
        gap (default None): Relative gap between loss and bound at which the search stops. Default: 1e-8; on the reals
            2e-4, or 2e-3 for ε > 2.
        runs (default 1): Number of runs that share the budget, for noise on the integers.
        minimise (default 'loss'): What is minimised: loss; or delta or epsilon, with the loss limited by max_loss.
        max_loss (default None): Largest expected loss allowed when delta or epsilon is minimised.
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
            column for each output. In Python also a function (output, answer).
        notion (default 'dp'): Notion of privacy: dp, pure, pdp or metric (with epsilon and delta), renyi (with alpha
            and epsilon), zcdp (with rho), gdp (with mu), curve or tradeoff.
        alpha (default None): Order > 1 of notion renyi.
        rho (default None): Budget > 0 of notion zcdp.
        mu (default None): Budget > 0 of notion gdp.
        curve (default None): Points epsilon:delta of notion curve, such as "0.5:0.1,1:0.01".
        tradeoff (default None): Points alpha:beta of notion tradeoff, such as 0:1,0.2:0.5,1:0.
        constraints (default []): Constraint on the channel: unbiased, row-monotone, column-monotone, symmetric or
            honest. May be repeated. In Python also a function of the CVXPY variable M.
        unit (default None): Unit of the coordinates of places: m, km or mi. Needed for a budget such as epsilon 0.7/km.
        method (default 'auto'): Method: program (a linear program, solved by solver), block (a built-in interior-point
            method), or auto (the one that is estimated to be faster).
        minimise (default 'loss'): What is minimised: loss; or delta or epsilon, with the loss limited by max_loss.
        runs (default 1): Number of runs that share the budget (with notion dp).
        progress (default None): Function that is called with a line of text from time to time.
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        max_loss (default None): Largest expected loss allowed when delta or epsilon is minimised.
        delta (default None): δ of the budget, in [0, 1]. With minimise delta: the largest δ allowed. Default: 0.
        epsilon (default None): ε of the budget, > 0. With notion metric: ε per unit of distance. With minimise epsilon:
            the largest ε allowed.
    """

@overload
def design(
    question: Quantization,
    *,
    epsilon: Any,
    method: Any = 'exact',
    knots: int | None = None,
    loss: Any = None,
    metric: Any = None,
    reach: Any = None,
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
        method (default 'exact'): exact (linear program), optm (Cai et al. 2024), product (optimal two-bin mechanism) or
            mvu (Chaudhuri et al. 2022).
        knots (default None): Number of additional inputs at which the output probabilities may change their slope, with
            method exact. Default: 0 with bins, 41 with levels.
        loss (default None): absolute, squared, or a number s in [0, 1] for s absolute + (1 - s) squared. Default:
            absolute; with method mvu: squared.
        metric (default None): Distance to which ε is proportional: absolute or squared. Default: the same ε for every
            two inputs.
        reach (default None): Largest output allowed with levels. Default: twice the smallest feasible one; with method
            mvu: 40 times.
        inputs (default None): Number of points to which method mvu rounds the inputs at random. Default: the number of
            outputs.
        starts (default 4): Number of starts of the search over outputs, 1 to 7.
        certify (default True): True: return a certified mechanism. False: return the solver's mechanism.
        solver (default 'highs'): Solver, named as in `workbench doctor`.
        time_limit (default None): Time limit in seconds.
        options (default None): Further solver options, a mapping such as {'threads': 2}. Also accepted by name.
        progress (default None): Function that is called with a line of text from time to time.
        notion (default 'dp'): dp or pure. Both have the same meaning, because δ is 0.
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
            With method lp also a CSV matrix with a row for each label and a column for each output. In Python also an
            array, or a function (output, label).
        method (default 'auto'): Method: bins (one output for each interval of labels), lp (a linear program over all
            channels), unbiased (the mean output is the label), or auto. auto is bins, or lp if an option needs it.
        outputs (default None): Values that may be published, with method lp: LOW..HIGH (integers) or a CSV file.
            Default: the labels.
        neighbours (default 'all'): Neighbouring labels, with method lp: all, consecutive, or pairs of positions such as
            "0-1,1-2". The first label has the position 0.
        notion (default 'dp'): Notion of privacy, with method lp: dp, pure or metric (with epsilon and delta), renyi
            (with alpha and epsilon), zcdp (with rho), gdp (with mu), curve or tradeoff.
        alpha (default None): Order > 1 of notion renyi.
        rho (default None): Budget > 0 of notion zcdp.
        mu (default None): Budget > 0 of notion gdp.
        curve (default None): Points epsilon:delta of notion curve, such as "0.5:0.1,1:0.01".
        tradeoff (default None): Points alpha:beta of notion tradeoff, such as 0:1,0.2:0.5,1:0.
        runs (default 1): Number of runs that share the budget, with method lp and notion dp.
        constraints (default []): Constraint on the channel, with method lp: unbiased, row-monotone, column-monotone,
            symmetric or honest. May be repeated.
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

        bits (required): Largest mean number of bits for one number, > 0.
        epsilon (required): Privacy of the decoded numbers: ε for each unit of distance, > 0.
        code (default 'gamma'): Elias code of the integers: gamma or delta.
    """

@overload
def design(question: Any, **options: Any) -> Design:
    """A question of a family of another package."""
