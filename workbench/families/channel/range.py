"""The best channel for real answers in a range, by finite ones on points that are h apart: both bounds, exactly.

                  under a prior, uniform on each of its parts         where the worst answer counts
points            the middles m_i of cells of width h                 the ends x_i of cells of width h
an answer x       goes to the middle of its cell                      to an end of its cell, at random, x the mean
cost              Σ_i p_i Σ_o M(i, o) c(o - m_i), c the mean loss     max over x between x_i and x_i+1 of the mean of
                  of a cell (`cell_loss`)                             their rows' losses at x: pieces of parabolas
bound             for every offset t the answers low + t + i h are    the answers x_i are some of all
                  a finite question, the same for all t but for a
                  shift; the mean loss is the mean over t

Neighbours differ by S at most: their points by ⌈S/h⌉ h (with one draw for both if it is random; what mixes private
rows with the same shares is private), which M protects, while the bound may use ⌊S/h⌋ h only; where all answers are
neighbours so are all points. Where h divides S, or S is the whole range, cost and bound differ by O(h²) for most. The
worst answer, where not all are neighbours, has blocks that count answers between points (`range_points`). At δ = 0 both
bounds are by extreme rays, whose prices need no program of all masses (`range_rays`).

All neighbours, δ = 0, under a prior: RR-on-Bins is the best of all with real outputs (Ghazi et al. 2023, Theorem 5),
so the finite questions are answered by their bins, on up to 2^15 points for the bound, and the bins are the cells. For
the worst answer: `models.range_channel` on points, about as many in each bin; its multipliers are a prior on them,
under which the least loss of bins is the bound; outputs are spread as its least masses are and then moved. With many
bins both come from `models.range_outputs`: whatever outputs and prior are, the loss is exact, and bins are a bound.

All neighbours, δ > 0: the best at δ = 0 publishes the answer itself with probability δ, to so many equal steps, which
costs 1 - δ times as much; it does not where δ gains less than .1 %. The bound is that of `models.range_delta`, first
without multipliers, then with those of a program: for the worst answer the one that chose the prior, then, for few
bins, one that chooses prior and multipliers for δ.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from models.losses import loss_named
from models.oracles.bins import Bins, optimal_bins
from models.quantizer import largest_ratio
from models.range_channel import RangeChannel
from models.range_delta import bound_of, bound_of_bins, bound_of_few, bound_of_worst
from models.range_outputs import Limit, by_masses, level, spread
from solvers.arrays import Vector
from solvers.backend import solve
from solvers.program import Program
from solvers.search import Deadline
from solvers.session import Options
from solvers.solution import Solution
from workbench.errors import InvalidRequest, NotProven, must
from workbench.exact.numbers import ONE, ZERO, Rationals
from workbench.families.base import Session, Values
from workbench.families.channel.range_channels import NARROW, GivenMechanism, cost_of, near
from workbench.families.channel.range_least import least
from workbench.families.channel.range_points import BetweenPoints, Points, by_points, coarse, fits, in_blocks, parts_of
from workbench.families.channel.range_rays import GivenRows, Rays, by_rays, counts_of
from workbench.families.channel.request import ChannelRequest, ChannelTooLarge
from workbench.families.design import Design, OracleVerdict
from workbench.families.loss_scale import LossScale
from workbench.families.loss_tables import loss_table
from workbench.families.pipeline import design
from workbench.families.problem import PRIVATE_WITHOUT_DELTA
from workbench.families.requirements import is_hockey_stick
from workbench.mechanisms.finite_query import FREE, FiniteQuery
from workbench.mechanisms.label_randomizers.randomized_response import odds_below
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.mechanisms.range_query import RangeQuery
from workbench.privacy.certificate import Certificate

_FINEST = (1 << 15, 1 << 18)  # points that bins are made of
_CLOSE, _OF_WORST = 0.01, 0.8  # of each other, relative; the share of it that ends programs for the worst answer
_STEEP, _GAIN = 30, 0.001  # ε up to which bins are known; δ from which answers themselves are published
_OF_AN_OUTPUT, _STEPS = 512, 1 << 20  # steps of an output, and at most
_FEW_POINTS, _POINTS, _LARGEST = (48, 60), 12, 1000  # of a bound at δ, for each bin, at most
_OF_A_BIN, _OF_A_GAP = (4, 8, 12, 16, 24), 4  # points of a program for the worst answer, the first for few bins only
_FEWEST, _MOST, _FINE, _ENDS, _LABELS = 16, 350, 1 << 13, 512, 32  # of a half; of a first bound; of a limit, a bin
_SOME, _MANY, _OWN, _ATOMS = 12, 20, (16, 24), (0.3, 0.4)  # bins; outputs of one; its share at an end
_INTERIOR = Options(algorithm="interior-point", native={"run_crossover": "off"})
_LISTED = 4  # Outputs in each cell under several bounds, for the squared loss.
_TINY_DELTA = Fraction(1, 10**8)  # Up to this δ the channel of δ = 0 is tried as well.
_STEP = Fraction(1, 1 << 30)  # of the range, of which outputs are multiples


class RangeSession(Session):
    """The session of a request for a range."""

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The best channel on the finest cells that are tried, with the best bound on all channels of the range."""
        request = self.request if point is None else self.request.at(point)
        assert isinstance(request, ChannelRequest)
        if request.delta and request.delta >= 1:
            must("delta", "less than 1 for a range: there the answer itself may be published", float(request.delta))
        if request.minimise == "epsilon":
            return least(request)
        search = _Search(request)
        try:
            search.run()
        except (ChannelTooLarge, NotProven) as error:
            if getattr(error, "interrupted", False):
                raise
            search.stop()
        search.try_constant()
        reached = search.design()
        tiny = request.delta and request.delta <= _TINY_DELTA and search.pure is None
        return self._without_delta(request, reached) if tiny else reached

    def _without_delta(self, request: ChannelRequest, reached: Design) -> Design:
        """The channel of δ = 0, which is private at every δ, where it costs less."""
        try:
            pure = RangeSession(replace(request, delta=ZERO)).design()
        except NotProven as error:
            if error.design is None or error.interrupted:
                raise
            pure = error.design
        if pure.objective >= reached.objective:
            return reached
        words = (*pure.words, PRIVATE_WITHOUT_DELTA)
        chosen = replace(pure.request, delta=request.delta)
        return replace(pure, request=chosen, claim=request.claim, bound=reached.bound, words=words)


def by_bins(request: Any) -> tuple[float, float]:
    """(bound, cost) of a range under a prior, every two answers neighbours, by bins of 2^15 points, or of 2^18."""
    assert isinstance(request, ChannelRequest)
    search = _Search(request)
    assert search.pure is not None
    for points in _FINEST:
        search._binned(search.pure, points)
        if search.close:
            break
    if request.delta:
        search.publish_answers(request.delta)
    assert search.best is not None
    return float(search.bound), float(search.best[0])


class _Search:
    """The best channel so far, and the bound. pure: the request at δ = 0, where that helps."""

    def __init__(self, request: ChannelRequest) -> None:
        assert isinstance(request.question, RangeQuery)
        self.request, self.question = request, request.question
        self._width = self.question.high - self.question.low
        self._deadline = Deadline(request.options.time_limit)
        self.best: tuple[Fraction, RangeQuery, Design] | None = None
        self.bound = ZERO  # at δ = 0, where `pure` is first
        alike = self.question.local and is_hockey_stick(request.notion)
        known = float(request.epsilon or 0) <= _STEEP and not self.question.given
        self.pure = replace(request, notion="pure", delta=ZERO) if alike and known else None
        self._loss = loss_named(str(request.loss))
        self._share = _CLOSE / 2 if self.pure and request.delta else _CLOSE  # δ takes the other half
        self._at_delta = self._best_of_all = ZERO  # the bound at δ; that of the best prior there
        self.bins, self._cut = 0, False  # at δ: of many, few cells gain nothing; whether time stopped a program

    @property
    def close(self) -> bool:
        """Whether cost and bound are."""
        return self.best is not None and self.best[0] - self.bound <= Fraction(self._share) * self.best[0]

    def refine(self, request: ChannelRequest) -> None:
        """Try more and more cells until cost and bound are close. Raises WorkbenchError where there is no channel."""
        pure = request is self.pure
        if pure and self.question.weights is None:
            self._worst()
            return
        rays = None if pure or not by_rays(request) else Rays(request, self._deadline)
        blocks = not (pure or rays) and by_points(request)
        by = self._binned if pure else self._between if blocks else self._solved
        by = by if rays is None else partial(self._by_rays, rays)
        counts = counts_of(request, pure)
        for count in counts:
            if self.best is not None:
                if self._deadline.passed or not (pure or rays or fits(request, self.question.of(count))):
                    break
                if blocks and count < counts[-1] and coarse(count, *self.best[:2], self.bound):
                    continue
            try:
                by(request, count)
            except (ChannelTooLarge, InvalidRequest, NotProven) as error:
                if self.best is None or getattr(error, "interrupted", False):
                    raise
                break
            self._tell(count)
            if self.close:
                break

    def _tell(self, count: int) -> None:
        if self.request.progress is not None and self.best is not None:
            self.request.progress(f"{count} cells: loss {float(self.best[0]):.9g}, bound {float(self.bound):.9g}")

    def _by_rays(self, rays: Rays, request: ChannelRequest, count: int) -> None:
        """By extreme rays, as `range_rays` has it."""
        self.bound = max(self.bound, self._scaled(rays.bound(count)))
        if not self.close:
            cells, (outputs, rows) = self.question.of(count), rays.channel(count)
            self._take(self._finite(request, cells.finite(cells.far, outputs), partial(GivenRows, rows=rows)), cells)

    def _solved(self, request: ChannelRequest, count: int) -> None:
        """By programs."""
        cells = self.question.of(count)
        outputs: Any = FREE
        excess = ZERO  # by which the least loss on the listed outputs may exceed that on all real ones
        if request.cut:
            parts = _LISTED if self._loss.name == "squared" else 2
            outputs = cells.between(parts)
            excess = (cells.width / parts) ** 2 / 4 if self._loss.name == "squared" else ZERO
        reached = self._finite(request, cells.finite(cells.far, outputs))
        self._take(reached, cells)
        if (lower := cells.below(outputs)) is not None:
            same = (lower.inputs, lower.pairs) == (cells.inputs, cells.pairs)
            below = reached if same else self._finite(request, lower)
            self.bound = max(self.bound, Fraction(below.bound or 0) - excess)

    def _between(self, request: ChannelRequest, count: int) -> None:
        """By blocks, as `range_points` has it."""
        cells, squared = self.question.of(count), self._loss.name == "squared"
        parts = parts_of(cells, squared, None if self.best is None else self.best[0])
        outputs, blocks = cells.between(parts), in_blocks(request)
        if (lower := cells.below(outputs)) is not None:
            below = self._finite(replace(blocks, check="none"), lower, Points).bound or 0.0
            self.bound = max(self.bound, Fraction(below) - squared * (cells.width / parts) ** 2 / 4)
        if self.best is None or not self._deadline.passed:
            self._take(self._finite(blocks, cells.finite(cells.far, outputs), BetweenPoints), cells)

    def _finite(self, request: ChannelRequest, question: FiniteQuery, kind: Any = None) -> Design:
        """The best channel of a finite question; proven or not. kind: of problem. Raises WorkbenchError."""
        left = self._deadline.left
        options = request.options if left is None else replace(request.options, time_limit=max(0.2, left))
        inner = replace(request, question=question, losses=loss_table(question, request.loss), options=options)
        try:
            return inner.family.designed(inner) if kind is None else design(kind(inner))
        except NotProven as error:
            if error.design is None or error.interrupted:
                raise
            self._cut = self._cut or self._deadline.passed
            unproven: Design = error.design
            return unproven

    def _binned(self, request: ChannelRequest, count: int) -> None:
        """By the best bins, whose loss is the bound as well."""
        question = self.question
        prior = np.repeat(np.array([float(w) for w in question.weights or ()]), count // question.parts)
        bins = self._prove((np.arange(count) + 0.5) / count, prior)
        values = [question.low + self._width * Fraction(f"{value:.12g}") for value in bins.values]
        self._take_nearest(request, tuple(values * 2 if bins.d == 1 else values), 1)  # one bin is the constant

    def _worst(self) -> None:
        """By programs on points, about as many in each bin."""
        q, name = math.expm1(float(self.request.epsilon or 0)), self._loss.name
        d = self._first(q)
        scale, limit = (np.array([0.0, 1.0]), np.array([0.0, float(d)])), None
        if d > _SOME:
            limit = Limit.of(q, name)
            scale = limit.places(_ENDS), np.linspace(0, limit.bins, _ENDS + 1)
            if limit.bins > _MANY:
                self._levelled(limit, q)
        for each in _OF_A_BIN if limit is None else _OF_A_BIN[2:]:
            count = max(round(each * scale[1][-1] / 2), _FEWEST)
            if self._enough or self._deadline.passed or count > _MOST:
                break
            half, m = np.interp(np.linspace(0, scale[1][-1] / 2, count + 1), *scale[::-1]), _OF_A_GAP * count
            half *= 0.5 / half[-1]
            if name == "squared":  # outputs between points, all equally far from each other
                half = np.unique(np.rint(half * m)) / m
            x = np.append(half, 1 - half[-2::-1])
            outputs = np.arange(m + 1) / m if name == "squared" else x
            model = RangeChannel(half, outputs, near(half, outputs, scale), q, name, mirrored=True)
            solution = self._stopped(model.program())
            if solution.x is None:
                break
            p, multipliers = (model.both(part) for part in (model.prior(solution), model.multipliers(solution)))
            self._prove(x, p)
            if limit is None or limit.bins <= _MANY:
                own, spread_, scale = by_masses(outputs, model.least(solution), q, name)
                self._nearest(spread_, own)
            if self.request.delta and not self._enough:
                self._prove_at_delta(x, p / p.sum(), outputs, multipliers / p.sum())
            self._tell(2 * count)

    @property
    def _enough(self) -> bool:
        """Whether loss and bound will be close, at δ as well."""
        delta = self.request.delta or ZERO
        loss = (self.best or (ZERO,))[0] * (1 - delta if delta >= _GAIN else 1)
        return loss - (self._at_delta if delta else self.bound) <= Fraction(_OF_WORST * _CLOSE) * loss

    def _first(self, q: float) -> int:
        """A first answer soon: outputs as far apart as the best bins of the uniform prior; how many these are."""
        middles = (np.arange(_FINE) + 0.5) / _FINE
        bins = self._prove(middles, None)
        own = max(1, min(_OWN[0], _FINE // bins.d))
        shares = (np.arange(own * max(bins.d, 2)) + 0.5) / own
        o = np.interp(shares, np.arange(bins.d + 1), np.append(middles[bins.starts], 1.0))
        self._nearest(level(o, own, q, self._loss.name) if bins.d <= _SOME else o, own)
        return bins.d

    def _nearest(self, outputs: Vector, own: int) -> None:
        """Outputs in units of the range, of which the nearest are likelier."""
        values = (self.question.low + self._width * _STEP * round(float(output) / float(_STEP)) for output in outputs)
        self._take_nearest(self.pure or self.request, tuple(values), own)

    def _take_nearest(self, request: ChannelRequest, outputs: Rationals, own: int, direct: Fraction = ZERO) -> None:
        """These outputs, own of which are likelier, and the answers themselves with probability direct."""
        parts, ends = self.question.parts, (self.question.low, self.question.high)
        steps = parts * -(-min(_OF_AN_OUTPUT * len(outputs) // own, _STEPS) // parts) if direct else 1
        odds = odds_below(Fraction(request.epsilon or 0))[0]
        nearest = NearestOutputs(ends, outputs, own, odds, direct, steps)
        self._take(design(GivenMechanism(request, nearest)), self.question)

    def run(self) -> None:
        """Search, at δ = 0 first where that helps. Raises WorkbenchError where there is no channel."""
        request = self.request
        if self.pure is not None:
            self.refine(self.pure)
            if request.delta:
                self.publish_answers(request.delta)
        if self.pure is None or (request.delta and not self.close and self.bins <= NARROW):
            self.refine(request)

    def stop(self) -> None:
        """Say that the search found no more."""
        self._cut = True

    def try_constant(self) -> None:
        """Take the output that costs least whatever the answer is, where nothing cheaper was found."""
        output, loss = self.question.constant(str(self.request.loss))
        if self.best is not None and self.best[0] <= loss:
            return
        nearest = NearestOutputs((self.question.low, self.question.high), (output,) * 2, 1, ONE, ZERO, 1)
        self._take(design(GivenMechanism(self.request, nearest)), self.question)

    def publish_answers(self, delta: Fraction) -> None:
        """What is best at δ = 0 becomes what is good at δ, with a bound at δ."""
        assert self.best is not None
        self._share, self.bound = _CLOSE, self._at_delta
        if delta >= _GAIN:
            nearest = self.best[2].mechanism
            self._take_nearest(self.request, nearest.bins, nearest.own, min(delta, ONE))
        if not self.close and self.question.weights is not None:
            self._sharpen(float(delta), self.bins)

    def _levelled(self, limit: Limit, q: float) -> None:
        """By many outputs, of which the nearest ones are likelier."""
        loss, labels = self._loss.name, max(_LABELS, round(_FINE / limit.bins))
        for atom in _ATOMS:
            self._prove(*limit.labels(atom, labels))
        for own in _OWN:
            self._nearest(level(spread(limit, own, q, loss), own, q, loss), own)
            self._tell(round(limit.bins * own))
            if self._enough or self._deadline.passed:
                break

    def _stopped(self, program: Program) -> Solution:
        """What a solver says in the time that is left, none at all where that is over."""
        left = self._deadline.left
        return solve(program, options=replace(_INTERIOR, time_limit=None if left is None else max(left, 0.0)))

    def _take(self, reached: Design, cells: RangeQuery) -> None:
        nearest = isinstance(reached.mechanism, NearestOutputs)
        cost = reached.details["loss"] if nearest else cost_of(reached, cells)
        if self.best is None or cost < self.best[0]:
            self.best = cost, cells, reached

    def _prove(self, labels: Vector, prior: Vector | None) -> Bins:
        """The best bins of points under a prior, and the bound they are at δ = 0 on the channels of the range (module
        docstring). labels: in [0, 1], as shares of the range."""
        epsilon, delta = float(self.request.epsilon or 0), float(self.request.delta or 0)
        bins = optimal_bins(labels, prior, epsilon, self._loss)
        if (bound := self._scaled(bins.bound)) > self.bound:
            self.bound, self.bins = bound, bins.d
        if delta:
            shares = np.full(labels.size, 1.0) if prior is None else prior
            least = bound_of_bins(labels, shares / shares.sum(), bins, epsilon, delta, self._loss.name)
            self._at_delta = max(self._at_delta, self._scaled(least))
        return bins

    def _scaled(self, bound: float) -> Fraction:
        """A bound on the loss of a range of width 1, or 0, as one for the range."""
        return Fraction(max(bound, 0.0)) * self._width ** (2 if self._loss.name == "squared" else 1)

    def _sharpen(self, delta: float, bins: int) -> None:
        """The bound at δ by the multipliers of a program, where there are not too many bins."""
        epsilon, parts, squared = float(self.request.epsilon or 0), self.question.parts, self._loss.name == "squared"
        count = parts * -(-max(_FEW_POINTS[0], _POINTS * bins) // parts)
        if count > _LARGEST:
            return
        p = np.repeat(np.array([float(w) for w in self.question.weights or ()]), count // parts)
        x, p = (np.arange(count) + 0.5) / count, p / p.sum()
        outputs = np.sort(np.concatenate([x, (x[1:] + x[:-1]) / 2])) if squared else x
        name, ratio = self._loss.name, largest_ratio(epsilon)
        if x.size <= _FEW_POINTS[1]:
            value = bound_of_few(x, p, outputs, name, ratio, delta)
        else:
            starts = optimal_bins(x, p, epsilon, self._loss).starts
            told = near(x, outputs, (x[starts], np.arange(starts.size, dtype=np.float64)))
            model = RangeChannel(x, outputs, told, math.expm1(epsilon), name, p)
            solution = self._stopped(model.program())
            if solution.row_dual is None:
                return
            value = bound_of(x, p, outputs, model.multipliers(solution), name, ratio, delta)
        self.bound = max(self.bound, self._scaled(value - squared * float(np.diff(outputs).max()) ** 2 / 4))

    def _prove_at_delta(self, x: Vector, p: Vector, outputs: Vector, multipliers: Vector) -> None:
        """The bound at δ by the multipliers of a program, then, for few bins, by the best of all, once."""
        epsilon, delta, loss = float(self.request.epsilon or 0), float(self.request.delta or 0), self._loss.name
        apart = float(np.diff(outputs).max()) * (loss == "squared")
        value = bound_of(x, p, outputs, multipliers, loss, largest_ratio(epsilon), delta) - apart**2 / 4
        self._at_delta = max(self._at_delta, self._scaled(value))
        if self.close and not self._enough and self.bins <= _SOME and not self._best_of_all:
            self._best_of_all = self._scaled(bound_of_worst(x, p, epsilon, delta, loss, self._stopped))
            self._at_delta = max(self._at_delta, self._best_of_all)

    def design(self) -> Design:
        """What was found, as a design of the range. Raises NotProven where the time is up."""
        assert self.best is not None
        (cost, cells, reached), bound = self.best, float(self.bound)
        gap = float((cost - self.bound) / cost)
        proven = "within 1 % of any channel" if self.close else f"not proven within 1 % of any channel ({gap:.2g})"
        mechanism, certificate, outputs = reached.mechanism, reached.certificate, reached.question.outputs
        if isinstance(mechanism, NearestOutputs):
            outputs, rounded = mechanism.bins, f"{len(mechanism.cells)} cells"
        else:
            rounded = cells.rounded
            mechanism = cells.published(mechanism)
            if certificate is not None:  # loss and bias of the points are not those of the answers
                certificate = Certificate(mechanism, certificate.claim, record=certificate.record)
        nearest = "rounded to"
        if rounded.endswith("cells"):
            nearest = "in"
        elif cells.weights is None:
            nearest = "rounded at random to one of the two nearest, the answer being the mean, of"
        words = f"It takes answers {nearest} {rounded}, which the loss charges; {proven} of the range"
        words += f" at {self.request.budget_words}."
        if isinstance(mechanism, NearestOutputs) and len({*mechanism.bins}) == 1 and not mechanism.direct:
            words = f"It publishes {float(mechanism.bins[0]):g} whatever the answer is; {proven} of the range"
            words += f" at {self.request.budget_words}."
        words = " ".join((words, *getattr(mechanism, "column_cautions", ())))
        if reached.request.delta != self.request.delta:
            words += " It is private at delta = 0."
        chosen = replace(reached.request, question=cells.placed(outputs), options=self.request.options)
        none = OracleVerdict.none("no closed form is known for a range.")
        details = {**reached.details, "loss": cost, "rounded": rounded, "solver": reached.solver}
        scale = LossScale(width=float(self.question.constant(self._loss.name)[1]))
        reported = replace(reached, request=chosen, mechanism=mechanism, certificate=certificate,
                           objective=float(cost), bound=bound, oracle=none, solution=None,
                           words=(words,), details=details, scale=scale)  # fmt: skip
        if self._cut or (self._deadline.passed and not self.close):
            words = f"The search stopped at its time limit: incumbent {reported.objective:.9g}, bound {bound:.9g}."
            raise NotProven(words, incumbent=reported.objective, bound=bound, design=reported)
        return reported
