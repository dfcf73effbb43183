"""Label randomizers: exact laws, exact losses, exact privacy, and samplers that follow them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, optimize

from models.losses import loss_named
from workbench.errors import InvalidRequest
from workbench.mechanisms import label_noise
from workbench.mechanisms.draws import Source
from workbench.mechanisms.label_channel import extreme_pairs
from workbench.mechanisms.label_lattice import LATTICE_KINDS, LatticeNoise, best_stairs
from workbench.mechanisms.label_noise import LabelNoise, best_gamma
from workbench.mechanisms.label_randomizer import LabelRandomizer, private_prior, project, split_budget
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.masses import Masses
from workbench.mechanisms.randomized_response import k_ary, on_bins, top_k, with_prior
from workbench.privacy.audit import audit_channel

SQUARED = loss_named("squared")
SMALL = Labels([0, 1, 2, 5, 9, 10], [1, 4, 2, 0, 2, 1])


def close(count: np.ndarray, law: np.ndarray, size: int) -> bool:
    """Counts within 5 standard deviations of their law everywhere."""
    return bool((np.abs(count - size * law) <= 5 * np.sqrt(size * law * (1 - law)) + 1e-9).all())


# Randomized response.


@pytest.mark.parametrize("epsilon", ["0.01", 1, "12"])
@pytest.mark.parametrize(
    "make",
    [
        lambda e: k_ary(SMALL, e),
        lambda e: on_bins(SMALL, [0, 2, 5], [0.5, 3.0, 9.5], e),
        lambda e: top_k(SMALL, 3, e),
        lambda e: with_prior(SMALL, e),
    ],
)
def test_randomized_response_is_exactly_private_and_no_more_than_asked(make, epsilon):
    made = make(epsilon)
    channel, m = made.channel, made.outputs.size
    pairs = list(combinations(range(len(channel.rows)), 2)) if len(channel.rows) > 1 else None
    if pairs is None:
        assert m == 1
        return
    found = audit_channel(channel, pairs, epsilon)
    assert found.meets("pure", epsilon)
    assert audit_channel(made.audit_rows, extreme_pairs(made.audit_rows), epsilon).pure_ratio == found.pure_ratio
    full = np.array([made.row(i).floats for i in range(SMALL.k)])
    assert np.allclose(full, made.matrix, atol=1e-15)
    expected = float((SMALL.prior[:, None] * full * SQUARED.matrix(made.outputs, SMALL.values)).sum())
    assert made.loss(SQUARED) == pytest.approx(expected, rel=1e-12)
    if (made.own >= 0).sum() > 1 and np.unique(made.own).size > 1:
        assert found.pure_epsilon == pytest.approx(float(Fraction(epsilon)), rel=1e-12)


def test_rr_with_prior_maximises_the_chance_of_the_truth():
    for epsilon in (0.3, 1.0, 4.0):
        chosen = with_prior(SMALL, epsilon)
        zero_one = loss_named("zero-one")
        losses = [top_k(SMALL, k, epsilon).loss(zero_one) for k in range(1, 7)]
        assert chosen.loss(zero_one) == pytest.approx(min(losses), rel=1e-12)


def test_a_large_audit_is_the_full_one():
    labels = Labels.uniform(0, 59)
    made = k_ary(labels, 1)
    assert len(made.audit_rows.rows) == 2
    full = audit_channel(made.channel, [(i, j) for i in (0, 7, 59) for j in (3, 30)], 1)
    assert audit_channel(made.audit_rows, [(0, 1)], 1).pure_ratio == full.pure_ratio


def test_randomized_response_sampling_follows_the_law():
    made = on_bins(SMALL, [0, 2, 5], [0.5, 3.0, 9.5], 1)
    for i in (0, 3, 5):
        drawn = made.sample(np.full(40_000, SMALL.values[i]), Source(i))
        count = np.array([(drawn == o).sum() for o in made.outputs])
        assert close(count, made.row(i).floats, 40_000)
    mixed = top_k(SMALL, 2, 1)
    outside = SMALL.values[mixed.own < 0][0]
    drawn = mixed.sample(np.full(20_000, outside), Source(9))
    assert close(np.array([(drawn == o).sum() for o in mixed.outputs]), np.full(2, 0.5), 20_000)
    with pytest.raises(InvalidRequest, match="one of the mechanism's labels"):
        made.sample([4.0])


# Exact draws.


def test_bernoulli_and_choose_resolve_ties_with_more_bits():
    class Fixed(Source):
        def __init__(self, words):
            super().__init__(0)
            self.queue = list(words)

        def words(self, count):
            taken, self.queue = self.queue[:count], self.queue[count:]
            return np.array(taken, dtype=np.uint64)

    third = (1 << 64) // 3  # 2^64/3 = third + 1/3: the first word ties, the second decides
    assert Fixed([third, 0]).bernoulli(1, 3, 1).tolist() == [True]
    assert Fixed([third, third + 1]).bernoulli(1, 3, 1).tolist() == [False]
    assert Fixed([third, third, third + 1]).bernoulli(1, 3, 1).tolist() == [False]
    assert Fixed([third - 1]).bernoulli(1, 3, 1).tolist() == [True]
    law = Masses([1, 2])
    assert Fixed([third, 0]).choose(law, 1).tolist() == [0]
    assert Fixed([third, third + 1]).choose(law, 1).tolist() == [1]
    assert Fixed([(1 << 64) - 1, 5]).below(10, 1).tolist() == [5]  # above the last multiple of 10: drawn again


def test_discrete_laplace_follows_its_law():
    s, t, size = 3, 7, 60_000
    drawn = Source(1).discrete_laplace(s, t, size)
    alpha = math.exp(-s / t)
    values = np.arange(-6, 7)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(values)
    assert close(np.array([(drawn == v).sum() for v in values]), law, size)
    assert not np.array_equal(Source().words(4), Source().words(4))
    with pytest.raises(InvalidRequest, match="seed must be"):
        Source(-1)


# Continuous noise.


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("kind", label_noise.NOISES)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_continuous_losses_are_the_integrals_of_their_law(kind, epsilon, loss):
    noise = LabelNoise(kind, -2, 6, epsilon, loss=loss)
    power = 2 if loss == "squared" else 1
    for y in (-2.0, -0.5, 3.0, 6.0):
        # E|o-y|^p = ∫ p x^(p-1) Pr[|o-y| > x] dx
        def tail(x: float, y: float = y) -> float:
            below = float(noise.cdf(y, y - x - 1e-12)) if y - x >= noise.low else 0.0
            return power * x ** (power - 1) * (1 - float(noise.cdf(y, y + x)) + below)

        corners = [c for c in (y - noise.low, noise.high - y, (noise.gamma or 0.5) * 8) if 0 < c < 8]
        value = integrate.quad(tail, 0, 8, points=corners, limit=300)[0]
        assert noise.losses([y], loss)[0] == pytest.approx(value, rel=1e-6)


def test_clipped_laplace_closed_form():
    b, u, v = 4.0, 3.0, 5.0  # range 8, ε = 2, y = low + 3
    expected = 2 * b * b - math.exp(-u / b) * b * (b + u) - math.exp(-v / b) * b * (b + v)
    assert LabelNoise("laplace", 0, 8, 2).losses([3.0])[0] == pytest.approx(expected, rel=1e-14)


def test_the_staircase_is_the_right_one():
    for epsilon in (0.2, 1.0, 4.0):
        noise = LabelNoise("staircase", 0, 1, epsilon, clip=False, loss="absolute")
        least = math.exp(epsilon / 2) / math.expm1(epsilon)
        assert noise.losses([0.5], "absolute")[0] == pytest.approx(least, rel=1e-13)
        drawn = np.abs(noise.sample(np.zeros(200_000), np.random.default_rng(1)))
        assert abs(drawn.mean() - least) < 5 * drawn.std() / math.sqrt(200_000)
        for loss, power in (("absolute", 1), ("squared", 2)):
            best = optimize.minimize_scalar(
                lambda g, power=power, epsilon=epsilon: label_noise._stair_moment(power, epsilon, g),
                bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10},
            ).x  # fmt: skip
            assert best_gamma(epsilon, loss) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("kind", label_noise.NOISES)
@pytest.mark.parametrize("clip", [True, False])
def test_continuous_samples_follow_the_law(kind, clip):
    noise = LabelNoise(kind, 0, 10, 2, clip=clip)
    drawn = noise.sample(np.full(60_000, 3.0), np.random.default_rng(3))
    edges = np.array([-5.0, 0, 1, 3, 7.5, 10, 15])
    count = np.array([(drawn <= e).sum() for e in edges])
    assert close(count, noise.cdf(3.0, edges), 60_000)
    if clip:
        assert drawn.min() >= 0
        assert drawn.max() <= 10
    assert np.mean((drawn - 3) ** 2) == pytest.approx(noise.losses([3.0])[0], rel=0.05)


# Integer noise.


@pytest.mark.parametrize("kind", LATTICE_KINDS)
@pytest.mark.parametrize("epsilon", ["0.3", 1, 4])
def test_integer_laws_are_exact_and_private(kind, epsilon):
    noise = LatticeNoise(kind, 3, 12, epsilon)
    audit = audit_channel(noise.channel, list(combinations(range(10), 2)), epsilon)
    assert audit.meets("pure", epsilon)
    share = 0.5 if kind == "exponential" else 1.0  # the paper's scale for the exponential mechanism spends half
    assert audit.pure_epsilon == pytest.approx(share * float(Fraction(epsilon)), rel=1e-9)
    assert np.abs(noise.channel.matrix - noise.matrix).max() < 1e-14
    if kind == "exponential":
        return
    eta = np.arange(-6000, 6001)
    c = float(noise.ratio)
    stair = np.where(np.abs(eta) % 9 < (noise.stairs or 0), 1.0, c) * c ** (np.abs(eta) // 9)
    law = c ** np.abs(eta) if kind == "laplace" else stair
    law = law / law.sum()
    table = np.zeros((10, 10))
    for y in range(10):
        np.add.at(table[y], np.clip(y + eta, 0, 9), law)
    assert np.abs(table - noise.matrix).max() < 1e-12
    for power in (1, 2):
        assert noise.moment(power) == pytest.approx(float(law @ np.abs(eta) ** power), rel=1e-8)
    assert noise.loss(Labels.uniform(3, 12), SQUARED) == pytest.approx(
        float((table * SQUARED.matrix(np.arange(10.0), np.arange(10.0))).sum()) / 10, rel=1e-9
    )


def test_the_best_stairs_are_best_and_samples_follow():
    for loss, power in (("squared", 2), ("absolute", 1)):
        moments = [LatticeNoise("staircase", 0, 12, 1, stairs=r).moment(power) for r in range(1, 13)]
        assert best_stairs(12, 1.0, loss) == int(np.argmin(moments)) + 1
    noise = LatticeNoise("laplace", 0, 12, 1)
    drawn = noise.sample(np.full(30_000, 4), Source(2))
    assert close(np.bincount(drawn, minlength=13), noise.matrix[4], 30_000)


# Algorithm 3.


def test_budgets_add_up_exactly_and_too_few_records_are_refused():
    for share in (1, "1/2", "0.25"):
        first, second = split_budget("0.3", 7, 12_345, share)
        assert first + second == Fraction(3, 10)
        assert float(first) == pytest.approx(float(Fraction(share)) * math.sqrt(7 / 12_345), abs=2e-9)
        assert float(first) <= float(Fraction(share)) * math.sqrt(7 / 12_345)
    with pytest.raises(InvalidRequest, match="n must be at least 11 records"):
        split_budget(1, 10, 10)
    assert split_budget(1, 10, 11)[0] < 1


def test_projections():
    assert project([3.0, -1.0, 1.0]).tolist() == [0.75, 0.0, 0.25]
    assert project([-1.0, -2.0]).tolist() == [0.5, 0.5]
    near = project([0.9, 0.4, -0.2], "simplex")
    assert near == pytest.approx([0.75, 0.25, 0.0])
    rng = np.random.default_rng(0)
    for _ in range(20):
        h = rng.normal(size=5)
        x = project(h, "simplex")
        assert x.sum() == pytest.approx(1)
        other = rng.dirichlet(np.ones(5), size=200)
        assert ((other - h) ** 2).sum(axis=1).min() >= ((x - h) ** 2).sum() - 1e-12
    with pytest.raises(InvalidRequest, match="projection must be"):
        project([1.0], "l1")


def test_the_private_prior_has_noise_of_the_stated_scale():
    counts = np.full(4000, 1000)
    first = Fraction(1, 5)
    noisy = private_prior(counts, first, projection="clip", source=Source(4)) * 4_000_000
    alpha = math.exp(-0.1)
    assert np.var(noisy) == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.1)


def test_a_run_of_algorithm_3():
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 4, 20_000).astype(float)
    seen = []

    def optimise(labels: Labels, second: Fraction):
        seen.append((labels, second))
        return on_bins(labels, [0, 2], [0.5, 2.5], second)

    release = LabelRandomizer(np.arange(4), 1, optimise).run(truth, Source(1))
    labels, second = seen[0]
    assert release.epsilon == 1
    assert release.epsilon_response == second
    assert np.abs(labels.prior - 0.25).max() < 0.05
    kept = np.mean((release.labels > 1) == (truth > 1))
    assert kept == pytest.approx(math.exp(float(second)) / (1 + math.exp(float(second))), abs=0.02)
    with pytest.raises(InvalidRequest, match="one of the mechanism's labels"):
        LabelRandomizer(np.arange(4), 1, optimise).run([9.0] * 100)
    with pytest.raises(InvalidRequest, match="epsilon_prior must be"):
        LabelRandomizer(np.arange(4), 1, optimise, epsilon_prior=1)


# Labels.


def test_labels_are_read_in_any_order_and_bad_ones_named(tmp_path: Path):
    file = tmp_path / "prior.csv"
    file.write_text("label,weight\n3,1\n-1,3\n")
    read = Labels.parse(str(file))
    assert read.values.tolist() == [-1, 3]
    assert read.prior.tolist() == [0.75, 0.25]
    assert Labels.parse("uniform:0..20").k == 21
    for text, message in (
        ("3,1\n3,2\n", "line 2"),
        ("a,b\n1,x\n", "line 2"),
        ("1,-2\n", "line 1"),
        ("l,w\n", "at least"),
        ("1\n2,1\n", "line 1"),  # no header: it begins with a number
        ("1;1\n2;1\n", "line 1"),
        ("1_0,1\n", "line 1"),
        ("nan,1\n2,1\n", "line 1"),
        ("1e200,1\n", "at most 1e\\+100 in size"),
    ):
        file.write_text(text)
        with pytest.raises(InvalidRequest, match=message):
            Labels.read(file)
    assert Labels([1, 2, 3], [1e308, 1e308, 1e308]).prior == pytest.approx(1 / 3)
    for bad in ("5..1", "0..x"):
        with pytest.raises(InvalidRequest, match="LOW"):
            Labels.parse(bad)
    with pytest.raises(InvalidRequest, match="strictly increasing"):
        Labels([2, 1])
