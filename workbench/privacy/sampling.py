"""Draws from any mechanism, exactly distributed, with the system's randomness (`workbench.exact.sampler`)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.mechanisms.mechanism import as_mechanism

__all__ = ["publish", "sample"]


def sample(mechanism: Any, count: int, *, answer: Any = None, insecure_seed: int | None = None) -> NDArray[Any]:
    """What a mechanism publishes, independently `count` times.

    Args:
        mechanism: any, or a Design or Certificate of one, or a Distribution.
        count: of draws.
        answer: the true input. Of noise an integer, or a tuple for a vector query, to which it is added in the group
            (without one: η itself); of a mechanism on real inputs a number; of a label randomizer and of a channel an
            input, which is a row number where the channel is bare rows.
        insecure_seed: draw from a seeded generator instead, for experiments only.

    Returns:
        Shape (count,) of published values; (count, k) for noise on a group of k > 1 factors.

    Raises:
        InvalidRequest.
    """
    source = Source(insecure_seed)
    if isinstance(mechanism, Distribution):
        return Sampler(mechanism, source).draw(count)
    drawn: NDArray[Any] = as_mechanism(mechanism).draws(answer, count, source)
    return drawn


def publish(mechanism: Any, answers: NDArray[Any], *, insecure_seed: int | None = None) -> NDArray[Any]:
    """What a mechanism publishes for each of many true answers, independently.

    mechanism: additive noise on scalar answers, on the integers or the reals, or a mechanism on real inputs with an
    affine law; or a Design or Certificate of one. answers: (n,) answers 0..N-1 (all integers) as integers, or numbers
    in the range.
    Returns shape (n,). Raises InvalidRequest.
    """
    subject = as_mechanism(mechanism)
    if not hasattr(subject, "publish"):
        InvalidRequest.must("mechanism", "noise on scalar answers, or one on real inputs", subject.describe())
    published: NDArray[Any] = subject.publish(answers, insecure_seed=insecure_seed)
    return published
