"""Compute the limit of the smallest error rate of noise modulo n + 1 as n grows.

The privacy notion is (ε, δ)-PDP, and neighbouring answers differ by 1, 2, ..., or μ̄ in one
direction. `limit_law` answers: to which number does the smallest error rate converge as n -> ∞, for
fixed ε, δ and μ̄? It is the true counterpart of (53)-(56) of Kadam et al. 2024, which
`printed_theorem3` evaluates as printed. It is not in `ORACLES`, because these answer questions
about a finite group. A test compares it with their answers for large n.

Notation. f is the PMF of the noise, a = e^-ε and A = a/(1 - a). The noise values 1, 2, ... are
written in rows of μ̄ columns: row k of column j is the value (k - 1)μ̄ + j, with the weight a^k
relative to f(0). A cut c = (c_1, ..., c_μ̄) keeps the rows before row c_j >= 2 of column j;
c_j = ∞ keeps the whole column. A constraint f(η) <= e^ε f(η + μ) that does not hold is broken. With
σ = Σ_j a^{c_j - 1}, the kept rows and the value 0 have the total weight

    T(σ) = 1 + Σ_j (a + ... + a^{c_j - 1}) = 1 + A (μ̄ - σ).

Law. Let Σ be the set of all sums σ of at most μ̄ of the powers a, a², a³, ..., with repetitions.

    L(δ) = max{ δ, max over σ in Σ of min(1/T(σ), δ/σ) }

The error rate 1 - L is the limit for ε >= ln 2, for δ = 0, for μ̄ = 1, and where L = δ. For other
requests it is a lower bound on the limit (on the smallest accumulation point, as a limit may not
exist).

Proof.
  * No noise is better in the limit. By the chain bound of `column_cut`, which holds for every n and
    ε, f(0) is at most δ, or at most min(1/T_c, δ/σ) for a cut c of the finite table. T_c differs
    from T(σ) by at most μ̄ A a^b, where b = ⌊n/μ̄⌋, so the bound converges to L.
  * For ε >= ln 2 and every n, noise with f(0) >= L exists. Sort c non-increasing and keep the rows
    of c that the table has. In the infinite table a shift breaks constraints of weight at most σ,
    as a + a² + ... <= 1 (`column_cut`). In the finite table fewer constraints are broken, because
    a step beyond n ends at a noise value before row 2, which is kept and not lighter. The total
    weight is smaller as well. So f(0) >= min(1/T(σ), δ/σ).
  * For δ = 0 the law is 1/T(0), the limit of Lemma 4. For μ̄ = 1 the sums are 0 and the powers a^h,
    and min((1 - a)/(1 - a^{h+1}), δ e^{hε}) are the terms of Theorem 2 for n -> ∞
    (`single_distance`): their first factors are (53). ∎

So 1/T(σ) are the heights of the flat regions of f(0) as a function of δ, and δ/σ are its linear
regions. 1/T rises with σ, and δ/σ falls. The best σ is therefore next to the crossing
σ* = δ T(0)/(1 + δA), from below or from above.

| paper (Kadam et al. 2024) | here                                       |
|---------------------------|--------------------------------------------|
| f_i*(0), (53)             | 1/T(a^i) for μ̄ = 1                         |
| φ₀^∞, (55)                | 1/T(σ); the printed form is another number |
| (48), (49)                | 1/T(0) and 1 - 1/T(0)                      |
"""

import math
from functools import lru_cache

import numpy as np

from workbench.models.oracles.column_cut import PowerSums
from workbench.models.oracles.question import ClosedForm

# Powers of a that change a sum by less than this share of its target are left out.
_MAX_SUM_ERROR = 1e-14

_PROOF = "n -> ∞, differences 1..μ̄ in one direction, every δ: "

_make_power_sums = lru_cache(maxsize=4)(PowerSums)


def _find_nearest_sums(ratio: float, count: int, target: float) -> list[float]:
    """Return the sums of at most `count` powers of the ratio next to a target, up to rounding.

    Returns:
        The largest sum <= target and the smallest sum > target, if there is one, and others between
        0 and these.
    """
    # `count` times the last power is at most this share of the target.
    power_count = math.ceil(math.log(target * _MAX_SUM_ERROR / count) / math.log(ratio))
    powers = ratio ** np.arange(1, power_count + 1)
    power_sums = _make_power_sums(ratio, power_count, count)
    sums = [0.0]
    for size in range(1, count + 1):
        # `counts` says how often each power occurs in the sum.
        sums += [float(counts @ powers) for counts in power_sums.find_nearest(size, target)]
    return sums


def limit_law(mu_bar: int, epsilon: float, delta: float) -> ClosedForm:
    """Compute the limit of the smallest error rate for the differences 1..mu_bar as n -> ∞.

    Args:
        mu_bar: largest difference μ̄ >= 1 of neighbouring answers.
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].

    Returns:
        1 - L, without a PMF. The kind is "optimum" if it is the limit, else "lower bound".

    Raises:
        OutsideDomain: mu_bar is too large to search the sums of powers at this ε and δ.
    """
    ratio = math.exp(-epsilon)
    row_weight = ratio / -math.expm1(-epsilon)
    total_at_zero = 1.0 + row_weight * mu_bar
    mass = 1.0 / total_at_zero
    if delta:
        target = delta * total_at_zero / (1.0 + delta * row_weight)  # σ*, the crossing.
        for sigma in _find_nearest_sums(ratio, mu_bar, target):
            if sigma:
                kept_weight = 1.0 + row_weight * (mu_bar - sigma)
                mass = max(mass, min(1.0 / kept_weight, delta / sigma))
        mass = max(mass, delta)
    reasons = {
        "ε >= ln 2, so the chain bound is attained in the limit.": epsilon >= math.log(2),
        "it is the limit of Lemma 4.": not delta,
        "it is the limit of Theorem 2.": mu_bar == 1,
        "any noise with f(0) = δ attains it.": mass == delta,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    return ClosedForm(
        name="limit law",
        value=1.0 - mass,
        pmf=None,
        kind="optimum" if reason else "lower bound",
        proof=_PROOF + (reason or "the limit of the chain bound, which holds for every mechanism."),
    )
