"""Denoise published labels: the posterior of a label, and the best estimate for a loss.

A randomizer M publishes the output o for the label y with probability M(o | y). p_y is the prior of
y. Bayes' rule gives

    posterior      P(y | o) = p_y M(o | y) / Σ_z p_z M(o | z)
    best estimate  argmin_e Σ_y P(y | o) ℓ(e, y)

| loss              | best estimate                                           |
|-------------------|---------------------------------------------------------|
| squared, poisson  | the mean of the posterior                               |
| absolute          | its median (the smallest one)                           |
| pinball:τ         | its τ-quantile (the smallest one)                       |
| error-rate        | its likeliest label (the smallest one)                  |
| huber:h           | the point at which the mean of the clipped error is 0   |

An estimate is a function of the output and of the prior. So it is as private as the output, if the
prior is public or itself a private estimate. Every record may have its own prior, for example the
prediction of a model from the public features of the record (ALIBI, Malek Esmaeili et al. 2021).
Sec. 6 of Ghazi et al. 2022 names such methods as future work.

The outputs of the optimal RR-on-Bins are already the best estimates for its prior and its loss.
Denoising gains for other randomizers, for another loss, and for priors of single records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.plain import read_finite_floats, read_floats
from workbench.errors import must
from workbench.exact.arrays import Integers, Vector
from workbench.families.channel.output_cells import find_posterior_points
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
from workbench.models.losses import Loss, parse_loss
from workbench.pipeline.outcome import translate_errors
from workbench.questions.labels import Labels

_MAX_POSTERIOR_ENTRIES = 20_000_000  # Records are denoised in parts of at most this many entries.


def compute_posterior(labels: Labels, mechanism: Any) -> Vector:
    """Compute the posterior P(y | o) of every label for every output.

    Args:
        labels: the k labels, with their prior.
        mechanism: a randomizer of these labels with m outputs.

    Returns:
        Shape (m, k). Each row sums to 1. An output that no label of positive prior publishes has
        the prior as its posterior.

    Raises:
        InvalidRequest: the mechanism has other labels.
    """
    return _normalise_rows(_read_matrix(labels, mechanism).T * labels.prior, labels.prior)


def find_best_estimates(labels: Labels, mechanism: Any, loss: str | Loss = "squared") -> Vector:
    """Find the best estimate of the label for every output.

    Args:
        labels: the k labels, with their prior.
        mechanism: a randomizer of these labels with m outputs.
        loss: the loss that the estimates minimise.

    Returns:
        The estimates, in the order of the outputs of the mechanism. Shape (m,).

    Raises:
        InvalidRequest: the mechanism has other labels, or the loss is unknown.
    """
    posterior = compute_posterior(labels, mechanism)
    return _estimate(_read_loss(loss), labels.values, posterior)


def use_best_estimates(
    randomizer: RandomizedResponse, loss: str | Loss = "squared"
) -> RandomizedResponse:
    """Return a randomizer that publishes the best estimate instead of every output.

    Its privacy is the same: every estimate is a function of one output. Two outputs may have the
    same estimate.

    Args:
        randomizer: randomized response on labels with a prior.
        loss: the loss that the estimates minimise, for example the loss of the model that is
            trained on the published labels.

    Raises:
        InvalidRequest: the loss is unknown, or there are more than 4·10^6 masses.
    """
    estimates = find_best_estimates(randomizer.labels, randomizer, loss)
    return replace(randomizer, outputs=estimates)


def denoise(
    published: ArrayLike,
    labels: Labels,
    mechanism: Any,
    loss: str | Loss = "squared",
    *,
    priors: ArrayLike | None = None,
) -> Vector:
    """Replace every published label by the best estimate of the true one.

    Args:
        published: the published labels of n records, shape (n,).
        labels: the k labels, with their prior.
        mechanism: the randomizer that published them, or its design.
        loss: the loss that the estimates minimise.
        priors: a prior for each record, from public data alone, shape (n, k). Default: the prior of
            `labels` for all records.

    Returns:
        The estimates, shape (n,).

    Raises:
        InvalidRequest: a published label is no output of the mechanism, the mechanism has other
            labels, the loss is unknown, or priors has another shape, a negative weight, or a row
            without a positive weight at a label that can have published the output.
    """
    named_loss = _read_loss(loss)
    mechanism = getattr(mechanism, "mechanism", mechanism)
    matrix = _read_matrix(labels, mechanism)
    positions = _find_output_positions(published, mechanism)
    if priors is None:
        return find_best_estimates(labels, mechanism, named_loss)[positions]
    weights = read_finite_floats(priors, "priors")
    shape = (positions.size, labels.k)
    if weights.shape != shape or (weights < 0).any():
        must("priors", f"weights >= 0 of shape {shape}", f"shape {weights.shape}")
    estimates = np.empty(positions.size)
    part_size = max(1, _MAX_POSTERIOR_ENTRIES // labels.k)
    for start in range(0, positions.size, part_size):
        part = slice(start, start + part_size)
        joint_weights = weights[part] * matrix[:, positions[part]].T
        if not (joint_weights.sum(axis=1) > 0).all():
            must("priors", "positive at a label that can have published the output", "0 at all")
        posterior = _normalise_rows(joint_weights, labels.prior)
        estimates[part] = _estimate(named_loss, labels.values, posterior)
    return estimates


def _read_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name. Raises InvalidRequest."""
    with translate_errors():
        return parse_loss(loss)


def _read_matrix(labels: Labels, mechanism: Any) -> Vector:
    """Return the probabilities M(o | y), shape (k, m). Raises InvalidRequest for other labels."""
    if isinstance(mechanism, RandomizedResponse):
        if mechanism.labels.values.tolist() != labels.values.tolist():
            must("mechanism", f"a randomizer of {labels!r}", repr(mechanism))
        return mechanism.matrix
    certified_mechanism = getattr(mechanism, "certified_form", lambda: mechanism)()
    inputs = [*map(float, getattr(mechanism, "inputs", ()))]
    matrix = np.asarray(getattr(certified_mechanism, "matrix", np.empty((0, 0))), dtype=float)
    has_other_labels = bool(inputs) and inputs != labels.values.tolist()
    if has_other_labels or matrix.shape[0] != labels.k:
        must("mechanism", f"a randomizer of {labels!r}", repr(mechanism))
    return matrix


def _find_output_positions(published: ArrayLike, mechanism: Any) -> Integers:
    """Return the position of every published label among the outputs. Raises InvalidRequest."""
    values = read_floats(published, "published", column=True)
    outputs = np.asarray(mechanism.outputs, dtype=float)
    order = np.argsort(outputs)
    places = np.minimum(np.searchsorted(outputs[order], values), outputs.size - 1)
    positions = order[places]
    is_wrong = outputs[positions] != values
    if values.ndim != 1 or is_wrong.any():
        wrong_values = values[is_wrong] if values.ndim == 1 else values
        rule = "a column of outputs of the mechanism"
        must("published", rule, float(wrong_values.ravel()[0]))
    return np.asarray(positions)


def _normalise_rows(weights: Vector, prior: Vector) -> Vector:
    """Divide rows by their sums. A row of sum 0 becomes the prior."""
    sums = weights.sum(axis=1, keepdims=True)
    return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), prior)


def _estimate(loss: Loss, values: Vector, posterior: Vector) -> Vector:
    """Find the best estimate for every row of posteriors. Shape of the rows."""
    if loss.kind == "error-rate":
        return np.asarray(values[posterior.argmax(axis=1)])
    if loss.kind in ("absolute", "pinball"):
        quantile = 0.5 if loss.parameter is None else loss.parameter
        positions = (np.cumsum(posterior, axis=1) < quantile).sum(axis=1)
        return np.asarray(values[np.minimum(positions, values.size - 1)])
    if loss.kind == "huber":
        return find_posterior_points(loss, values, posterior.T)
    return np.asarray(posterior @ values)
