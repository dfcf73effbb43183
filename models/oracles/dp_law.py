"""Hockey-stick law: the least error rate under (ε, δ)-DP is (1 - δ) times the least error rate under pure privacy.

Attained by δ·1₀ + (1 - δ)·f₀ with f₀ the hop law: only η = 0 can exceed e^ε times its shifted mass, and by δ at most.

No mechanism does better. Let T = Σ e^{-d} be the hop law's total and give every reachable η the lexicographically
least of its shortest words of shifts. A sub-word of such a word is again such a word (a better one could be put in its
place), so the words form a tree rooted at 0. Write excess(e) = f(p) - e^{ε_μ} f(c) for an edge e = (p -> c) of shift μ.
Down the tree, f(0) e^{-d(η)} - f(η) is the sum, over the edges e on the way to η, of excess(e) times the weight of the
word from p to η. Summed over η: T f(0) - 1 <= Σ_e excess(e)⁺ W(e), W(e) the weight of all words that start with e.
Such a word, μ and what follows it, is a sub-word, hence hangs from 0 as well: W(e) <= W(0 -> μ). The excesses of one
shift add up to δ at most and the W(0 -> μ) add up to T - 1, so T f(0) <= 1 + δ (T - 1), that is
1 - f(0) >= (1 - δ)(1 - 1/T). ∎

(ε, δ)-PDP implies (ε, δ)-DP (Theorem 1 of Kadam et al. 2024), so the same number is a lower bound under PDP.

| paper   | here             |
|---------|------------------|
| ρ(0, ε) | `hop_law().value`|
| ρ(δ, ε) | `dp_law().value` |
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from models.oracles.closed_form import ClosedForm, Shift, check_delta
from models.oracles.hops import hop_law
from models.oracles.question import Question
from models.requirements import HOCKEY_STICK


def dp_law(
    sizes: Sequence[int], shifts: Sequence[Sequence[int]], epsilon: float | Mapping[Shift, float], delta: float
) -> ClosedForm:
    """Optimal error rate and PMF under (ε, δ)-DP, any shifts, any dimension, one ε or one per shift.

    Raises OutsideDomain on a bad value.
    """
    weight = check_delta(delta)
    pure = hop_law(sizes, shifts, epsilon)
    assert pure.pmf is not None
    pmf = (1.0 - weight) * pure.pmf
    pmf[0] += weight
    return ClosedForm(
        name="hockey-stick law",
        value=(1.0 - weight) * pure.value,
        pmf=pmf,
        kind="optimum",
        proof="Any shifts, (ε, δ)-DP: the tree of least shortest words bounds f(0) by δ + (1 - δ) f₀(0), "
        "which δ·1₀ + (1 - δ)·f₀ attains.",
    )


def statements(question: Question) -> Iterator[ClosedForm]:
    """Answer DP questions; bound PDP questions from below, since PDP implies DP."""
    law = dp_law(question.sizes, question.shifts, question.budgets, question.delta)
    if question.requires == HOCKEY_STICK:
        yield law
    else:
        yield replace(
            law,
            name="hockey-stick bound",
            pmf=None,
            kind="lower bound",
            proof="Any shifts: (ε, δ)-PDP implies (ε, δ)-DP, whose optimal error rate is (1 - δ) times that of δ = 0.",
        )
