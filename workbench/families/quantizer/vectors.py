"""State the ε of a vector whose coordinates are quantized separately by one mechanism.

A vector x has d coordinates in [-c, c]. The quantizer publishes each of them with its own
randomness. x' is another vector with |x - x'| <= B in the Euclidean norm. ε is the audited budget
of the quantizer.

budget of two inputs a, b        ε of the vector
ε                                d ε
ε |a - b|                        ε B √d, and at most d 2c ε
ε |a - b|², vectors of knots     ε B²
ε |a - b|², all vectors          ε (B + 2 h √d)², h the largest distance of neighbouring knots

Proof. The outputs of the coordinates are independent, so their privacy losses add up. The sums are
d ε, ε |x - x'|_1 <= ε √d |x - x'|, and ε |x - x'|². The last one is Lemma 6 of Chaudhuri et al.
2022, which Sec. 5 of Cai et al. 2024 uses. With the budget ε |a - b|² an input is first dithered to
one of the two knots around it. The law at an input is therefore a mixture of the laws at these two
knots, and the ratio of two mixtures is at most the largest ratio of their components. Knots around
two inputs differ by at most |a - b| + 2h. The Euclidean norm of the vector of these numbers is at
most B + 2 h √d, by the triangle inequality.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isqrt

from workbench.mechanisms.piecewise_affine import Quantizer

_ROOT_UNITS = 10**15  # Square roots are rounded up to a multiple of 1/this.


@dataclass(frozen=True)
class VectorPrivacy:
    """The ε of vectors at most a Euclidean distance apart.

    Attributes:
        all_vectors: for any two vectors of inputs.
        knot_vectors: for two vectors whose coordinates are knots; None unless this is smaller.
    """

    all_vectors: Fraction
    knot_vectors: Fraction | None = None


def compute_vector_privacy(
    quantizer: Quantizer,
    epsilon: Fraction,
    metric: str | None,
    dimension: int,
    diameter: Fraction,
) -> VectorPrivacy:
    """Compute the ε of a vector whose coordinates are quantized separately.

    Args:
        quantizer: the quantizer of a coordinate.
        epsilon: its audited budget, for a metric per unit of the distance.
        metric: None for ε-DP, or "absolute" or "squared" for privacy by distance.
        dimension: the number d of coordinates, at least 1.
        diameter: the largest Euclidean distance B of two vectors, > 0.
    """
    if metric is None:
        return VectorPrivacy(dimension * epsilon)
    root = Fraction(isqrt(dimension * _ROOT_UNITS**2 - 1) + 1, _ROOT_UNITS)
    knots = quantizer.knots
    if metric == "absolute":
        width = knots[-1] - knots[0]
        return VectorPrivacy(epsilon * min(root * diameter, dimension * width))
    spacing = max(b - a for a, b in pairwise(knots))
    return VectorPrivacy(epsilon * (diameter + 2 * spacing * root) ** 2, epsilon * diameter**2)
