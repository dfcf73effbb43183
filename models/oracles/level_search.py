"""Compute the smallest error rate under (ε, δ)-PDP without a solver.

The shifts are any set of shifts that all have the same ε.

`search_levels` proves that a known noise is optimal, or replaces it by a better one. It searches
all level functions (defined below).

Notation. f is the PMF of the noise η, so that the error rate is 1 - f(0). μ is a shift (a
difference of neighbouring answers), and a = e^-ε. A constraint (η, μ) says f(η) <= e^ε f(η + μ); it
is broken if this does not hold. PDP allows the elements η of broken constraints at most mass δ for
each μ. The hop law is the optimum at δ = 0 (`hops`), with the hop weights w(η) = a^(smallest number
of shifts from 0 to η) and the total weight T₀. A level ℓ(η) = ∞ means a^ℓ(η) = 0. (13) is the
mixed-integer program of Kadam et al. 2024 for the smallest loss at a given δ.

Level theorem. Give every element a level ℓ(η) in {0, 1, 2, ..., ∞} with ℓ(0) = 0, and let
    T = Σ a^{ℓ(η)},    S = max over μ of Σ { a^{ℓ(η)} : ℓ(η + μ) > ℓ(η) + 1 }.
Then the largest f(0) of any (ε, δ)-PDP mechanism is max{ 1/T₀, max over ℓ of min(1/T, δ/S) }.

Proof. (<=) Let f be feasible and ℓ(η) the least number of unbroken constraints that lead from 0 to
η. Then f(η) >= a^{ℓ(η)} f(0), so T f(0) <= 1. A constraint with ℓ(η + μ) > ℓ(η) + 1 must be broken,
so S f(0) <= δ. (>=) A level function ℓ keeps a constraint (η, μ) if ℓ(η + μ) <= ℓ(η) + 1.
Raise any ℓ to the shortest-path lengths over the constraints that it keeps: T and S can only fall,
and ℓ is now at least the hop distance, so a^ℓ <= w, the hop weights. The mechanism proportional to
max(a^ℓ, θw) breaks only constraints that S counts, at elements of mass a^ℓ before normalisation.
Let N(θ) be the sum of max(a^ℓ, θw). It grows continuously from T at θ = 0 to T₀ at θ = 1. The
normalised mechanism has f(0) = 1/N(θ), and for each μ a broken mass of at most S/N(θ). Choose θ
with 1/N(θ) = min(1/T, δ/S), which exists if this minimum is at least 1/T₀. ∎

`workbench.models.modulo.levels` searches all ℓ without a solver. Designs found by linear or
mixed-integer programs are thus judged independently. For designs that this search found itself it
is no independent judge.

| paper      | here                                                           |
|------------|----------------------------------------------------------------|
| (13)       | `search_levels`: its optimal error rate and PMF                |
"""

import math
from dataclasses import replace

import numpy as np

from workbench.models.convex.requirements import MASS_ABOVE_RATIO
from workbench.models.modulo.program import loss_vector
from workbench.models.oracles.question import ClosedForm, OutsideDomain, Question, is_close

# The search stops after this many decisions by default: about a second.
DEFAULT_NODES = 100_000
MAX_SEARCHED_ELEMENTS = 300  # Groups with more elements are refused.

PROOF = (
    "Any shifts, one ε: the level theorem, with every level function searched or excluded by a "
    "bound."
)


def search_levels(
    question: Question, feasible_form: ClosedForm, nodes: int = DEFAULT_NODES
) -> ClosedForm:
    """Prove that a feasible PDP answer is optimal, or replace it by a better one.

    Args:
        question: a question about a mass above a ratio, with one ε.
        feasible_form: a feasible answer to it.
        nodes: number of decisions after which the search stops.

    Returns:
        The best answer. Its kind is "optimum" if the search finished, else "upper bound".

    Raises:
        OutsideDomain: ε is below MIN_LEVEL_EPSILON, or the group has more than
            MAX_SEARCHED_ELEMENTS elements.
    """
    # These modules load slowly, and few questions need a search.
    from workbench.models.modulo.level_frontier import MIN_LEVEL_EPSILON, search_level_optimum
    from workbench.models.modulo.level_noise import best_noise_of_masses, distance_weights
    from workbench.models.modulo.patterns import NoiseProblem

    epsilon = question.epsilon
    assert question.requires == MASS_ABOVE_RATIO
    assert epsilon is not None
    if math.prod(question.sizes) > MAX_SEARCHED_ELEMENTS:
        raise OutsideDomain(
            f"sizes must have a product of at most {MAX_SEARCHED_ELEMENTS}. Got {question.sizes}."
        )
    if epsilon < MIN_LEVEL_EPSILON:
        raise OutsideDomain(f"epsilon must be at least {MIN_LEVEL_EPSILON:g}. Got {epsilon:g}.")
    exp_epsilon = np.full(len(question.shifts), math.exp(epsilon))
    loss = loss_vector("error-rate", question.sizes)
    noise = NoiseProblem(question.sizes, question.shifts, exp_epsilon, loss, question.delta)
    w = distance_weights(noise)
    # The search needs a noise to start from. This one has the PMF of the hop law, but the error
    # rate of `feasible_form`, so the search returns it unless it finds a smaller error rate.
    start = replace(best_noise_of_masses(noise, w, w), value=feasible_form.value)
    answer = search_level_optimum(noise, w, start, max_decisions=nodes)
    best_form = feasible_form
    # The search found a smaller error rate if it returns another than that of `start`.
    if not is_close(1.0 - answer.best.value, 1.0 - feasible_form.value):
        f = answer.best.pmf
        best_form = ClosedForm(
            "level search",
            float(f[1:].sum()),
            pmf=f,
            kind="upper bound",
            proof="Feasible by the level theorem.",
        )
    if answer.is_proven:
        return replace(best_form, kind="optimum", proof=PROOF)
    reason = f"The level search stopped after {nodes} decisions, so it is not proven optimal."
    return replace(best_form, proof=f"{best_form.proof} {reason}")
