"""Test posteriors of labels, their best estimates, RRWithPrior as a method, and training losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InvalidRequest
from workbench.families.labels.denoising import (
    compute_posterior,
    denoise,
    find_best_estimates,
    use_best_estimates,
)
from workbench.families.labels.problem import find_best_bins
from workbench.mechanisms.label_randomizers.randomized_response import rr_k_ary, rr_with_prior
from workbench.models.losses import parse_loss

LABELS = wb.Labels([0, 1, 2, 4, 8], [4, 3, 2, 1, 2])
LOSSES = ["squared", "absolute", "pinball:0.8", "huber:1", "poisson-deviance", "error-rate"]


def test_the_posterior_is_bayes_rule() -> None:
    mechanism = rr_with_prior(LABELS, 1)
    posterior = compute_posterior(LABELS, mechanism)
    for position, output in enumerate(mechanism.outputs):
        joint = [p * float(mechanism.row(i)[position]) for i, p in enumerate(LABELS.prior.tolist())]
        assert posterior[position] == pytest.approx(np.array(joint) / sum(joint)), output
    assert posterior.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_estimate_of_a_fine_grid_has_a_smaller_posterior_loss(loss: str) -> None:
    mechanism = rr_k_ary(LABELS, 1)
    named_loss = parse_loss(loss)
    estimates = find_best_estimates(LABELS, mechanism, loss)
    grid = np.linspace(0.001, 8, 4000)
    for posterior, estimate in zip(compute_posterior(LABELS, mechanism), estimates, strict=True):
        losses = named_loss.matrix(grid, LABELS.values).T @ posterior
        own_loss = named_loss.matrix(np.array([estimate]), LABELS.values).T @ posterior
        assert own_loss[0] <= losses.min() + 1e-6


@pytest.mark.parametrize("loss", ["squared", "absolute", "pinball:0.8", "poisson-deviance"])
def test_the_optimal_bins_publish_the_best_estimates(loss: str) -> None:
    """So denoising gains nothing for the prior and the loss of the design (Theorem 5)."""
    mechanism = find_best_bins(LABELS, 2, loss)
    estimates = find_best_estimates(LABELS, mechanism, loss)
    named_loss = parse_loss(loss)
    denoised = use_best_estimates(mechanism, loss)
    assert denoised.loss(named_loss) == pytest.approx(mechanism.loss(named_loss), rel=1e-12)
    if loss == "squared":
        assert estimates == pytest.approx(mechanism.outputs, rel=1e-12)


def test_estimates_lower_the_loss_of_rr_with_prior_to_no_less_than_the_optimum() -> None:
    """The optimum of all randomizers is RR-on-Bins (Theorem 5)."""
    squared = parse_loss("squared")
    mechanism = rr_with_prior(LABELS, 2)
    denoised = use_best_estimates(mechanism, "squared")
    optimum = find_best_bins(LABELS, 2, "squared").loss(squared)
    assert optimum <= denoised.loss(squared) < mechanism.loss(squared)
    assert wb.audit(denoised).pure_epsilon == wb.audit(mechanism).pure_epsilon


def test_bins_of_another_loss_get_estimates_for_the_training_loss() -> None:
    squared = parse_loss("squared")
    mechanism = find_best_bins(LABELS, 2, "absolute")
    denoised = use_best_estimates(mechanism, "squared")
    optimum = find_best_bins(LABELS, 2, "squared").loss(squared)
    assert optimum <= denoised.loss(squared) < mechanism.loss(squared)


def test_published_labels_become_the_estimates_of_their_outputs() -> None:
    design = wb.design(LABELS, epsilon=2, method="rr-with-prior")
    published = np.repeat(design.mechanism.outputs, 2)[::-1]
    estimates = find_best_estimates(LABELS, design.mechanism)
    assert denoise(published, LABELS, design).tolist() == np.repeat(estimates, 2)[::-1].tolist()


def test_a_prior_for_each_record_is_used_for_it_alone() -> None:
    mechanism = rr_k_ary(LABELS, 1)
    priors = np.array([[0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [4, 3, 2, 1, 2]], dtype=float)
    estimates = denoise([8, 8, 8], LABELS, mechanism, priors=priors)
    assert estimates[0] == 2
    weights = np.array([1, 1, 1, 1, np.e])
    assert estimates[1] == pytest.approx(weights @ LABELS.values / weights.sum())
    assert estimates[2] == pytest.approx(find_best_estimates(LABELS, mechanism)[-1])


def test_priors_of_records_lower_the_error_of_informative_features() -> None:
    """The feature is the parity of the position of the label; both losses are exact sums."""
    mechanism = rr_k_ary(LABELS, 1)
    k = LABELS.k
    errors = {"global": 0.0, "feature": 0.0}
    for label in range(k):
        is_possible = (np.arange(k) % 2 == label % 2).astype(float)
        priors = np.tile(is_possible * LABELS.prior, (k, 1))
        with_feature = denoise(mechanism.outputs, LABELS, mechanism, priors=priors)
        without = denoise(mechanism.outputs, LABELS, mechanism)
        masses = LABELS.prior[label] * mechanism.matrix[label]
        errors["feature"] += float(masses @ (with_feature - LABELS.values[label]) ** 2)
        errors["global"] += float(masses @ (without - LABELS.values[label]) ** 2)
    assert errors["feature"] < errors["global"]


@pytest.mark.parametrize(
    ("published", "options", "message"),
    [
        ([3], {}, "published must be a column of outputs of the mechanism. Got 3"),
        ([8], {"loss": "cubic"}, "loss"),
        ([8], {"priors": [[1, 1]]}, "priors must be weights >= 0 of shape \\(1, 5\\)"),
        ([8], {"priors": [[1, 1, 1, 1, -1]]}, "priors must be weights >= 0"),
        ([8], {"priors": [[0, 0, 0, 0, 0]]}, "priors must be positive at a label"),
    ],
)
def test_wrong_records_are_an_error(
    published: list[float], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        denoise(published, LABELS, rr_k_ary(LABELS, 1), **options)


def test_a_mechanism_of_other_labels_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match="mechanism must be a randomizer of"):
        compute_posterior(LABELS, rr_k_ary(wb.Labels.uniform(0, 4), 1))


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_rr_with_prior_has_the_error_rate_of_the_linear_program(epsilon: str) -> None:
    """Ghazi et al. 2021 prove that it has the smallest error rate for every prior."""
    options = {"epsilon": epsilon, "loss": "error-rate"}
    design = wb.design(LABELS, method="rr-with-prior", **options)
    program = wb.design(LABELS, method="lp", **options)
    assert design.objective == pytest.approx(program.objective, abs=1e-9)
    assert design.private
    assert design.certificate is not None
    assert design.status == "found"


def test_rr_with_prior_has_the_optimum_of_all_randomizers_as_lower_bound() -> None:
    design = wb.design(LABELS, method="rr-with-prior", epsilon=2)
    optimum = wb.design(LABELS, epsilon=2)
    assert design.bound == pytest.approx(optimum.objective)
    assert design.objective > optimum.objective
    assert design.to_dict()["method"] == "rr-with-prior"
    assert "not proven optimal" in str(design)


def test_a_frontier_has_rr_with_prior_as_a_baseline_only() -> None:
    with pytest.raises(InvalidRequest, match="method"):
        wb.frontier("labels", labels="0..3", epsilon="1", method="rr-with-prior")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": "0.1"}, "and for a delta > 0"),
        ({"outputs": "0..9"}, "other outputs"),
        ({"solver": "scip"}, "solver must be left out"),
    ],
)
def test_options_of_programs_are_an_error_with_rr_with_prior(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        wb.design(LABELS, method="rr-with-prior", epsilon=1, **options)
