"""Test the losses in certificates: named losses are recomputed from their formulas.

The certificate of a channel contains the labels, the prior and the outputs of its loss.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from certificate_samples import certify_channel, metric, noise, replace_entry

import workbench as wb
from workbench.mechanisms.additive import named_losses
from workbench.models.losses import Loss, parse_loss
from workbench.models.modulo.program import LOSSES, loss_vector
from workbench.privacy.certificate import Certificate
from workbench.privacy.certificate_file import certificate_from_dict
from workbench.privacy.objective import ExpectedLoss, Objective, is_exact_loss

# Losses with rational values, which a certificate of a channel states.
EXACT_LOSSES = ("squared", "absolute", "error-rate", "pinball:0.3", "huber:1.5")


@pytest.mark.parametrize("sizes", [(5,), (2, 3), (4, 1, 3)])
def test_named_losses_equal_those_of_the_models_or_are_none(sizes):
    """They are None for losses without one exact number for each noise value."""
    for name in LOSSES:
        losses = named_losses(name, sizes)
        if name in {"squared", "eta-squared", "circular-squared"}:
            assert [*map(float, losses)] == loss_vector(name, sizes).tolist()
        else:
            assert losses is None


def test_a_built_in_name_with_other_losses_is_refused():
    data = noise().to_dict()
    for losses in (["0"] * 5, ["0", "4", "6", "6", "5"], ["0", "4", "6", "6"]):
        data["objective"] = {"name": "squared", "value": "0", "losses": losses}
        with pytest.raises(wb.CorruptFile, match="losses must be"):
            certificate_from_dict(data)


def test_losses_under_another_name_are_called_numbers_of_the_file():
    data = noise().to_dict()
    data["objective"] = {"name": "free-lunch", "value": "0", "losses": ["0"] * 5}
    assert (
        "Its loss is 0.0 by numbers that this file states, under the name 'free-lunch'."
        in certificate_from_dict(data).sentences
    )


def test_the_loss_of_a_built_in_name_is_recomputed():
    data = noise().to_dict()
    losses = named_losses("squared", (5,))
    value = Objective("squared", Fraction(0), losses).exact_loss_of(noise().mechanism)
    data["objective"] = {"name": "squared", "value": str(value), "losses": [*map(str, losses)]}
    assert (
        f"Its squared loss is {float(value)!r}, recomputed."
        in certificate_from_dict(data).sentences
    )


def certify_channel_with_loss(loss: str = "squared") -> Certificate:
    """Certify a channel for three labels with this loss; two of the labels share a row.

    `certify` computes the exact value of the loss, in place of the value 0 that is given here.
    """
    objective = ExpectedLoss(
        loss,
        value=Fraction(0),
        labels=(Fraction(0), Fraction(1), Fraction("2.5")),
        outputs=(Fraction(0), Fraction("1.75")),
        prior=(Fraction(1, 2), Fraction(1, 3), Fraction(1, 5)),
        rows=(0, 1, 1),
    )
    return certify_channel([[0.6, 0.4], [0.4, 0.6]], epsilon="0.5", objective=objective)


@pytest.mark.parametrize("loss", EXACT_LOSSES)
def test_the_loss_of_a_channel_is_recomputed(loss, tmp_path: Path):
    """The weights 1/2, 1/3 and 1/5 of the labels have the sum 31/30."""
    proof = certify_channel_with_loss(loss)
    wb.save(proof, tmp_path / "c.json")
    read_back = wb.check(tmp_path / "c.json")
    assert read_back == proof
    rows = np.array([[0.6, 0.4], [0.4, 0.6], [0.4, 0.6]])
    losses = parse_loss(loss).matrix([0, 1.75], [0, 1, 2.5])
    prior = np.array([1 / 2, 1 / 3, 1 / 5]) / (31 / 30)
    expected_loss = prior @ (rows * losses).sum(axis=1)
    assert float(read_back.objective.value) == pytest.approx(expected_loss, rel=1e-12)
    assert f"Its expected {loss} loss is" in str(read_back)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("value", "0"),
        ("name", "huber:0.7"),
        ("prior", ["1", "0", "0"]),
        ("prior", ["0", "0", "0"]),
        ("prior", ["1", "-1", "1"]),
        ("rows", [0, 1, 0]),
        ("rows", [0, 1, 2]),
        ("rows", [0, 1, True]),
        ("labels", ["0", "1"]),
        ("outputs", ["0"]),
        ("name", "poisson"),
        ("name", "huber:-1"),
    ],
)
@pytest.mark.parametrize("loss", EXACT_LOSSES)
def test_a_changed_loss_of_a_channel_is_refused(loss: str, key: str, value: object):
    if (loss, key, value) == ("error-rate", "rows", [0, 1, 0]):
        pytest.skip("Neither 1 nor 2.5 is an output, so their error rate is 1 in every row.")
    data = certify_channel_with_loss(loss).to_dict()
    with pytest.raises(wb.CorruptFile):
        certificate_from_dict(replace_entry(data, ("objective", key), value))


@pytest.mark.parametrize("loss", EXACT_LOSSES)
def test_a_loss_of_a_channel_that_is_too_large_by_10_to_the_minus_12_is_refused(loss: str):
    proof = certify_channel_with_loss(loss)
    larger_value = str(proof.objective.value * Fraction("1.000000000001"))
    with pytest.raises(wb.CorruptFile):
        certificate_from_dict(replace_entry(proof.to_dict(), ("objective", "value"), larger_value))


def test_a_certificate_without_an_objective_proves_no_loss():
    assert "It proves no loss." in metric().sentences


def test_an_objective_of_another_mechanism_is_refused():
    objective = certify_channel_with_loss().to_dict()["objective"]
    with pytest.raises(wb.CorruptFile, match="expected loss is only possible"):
        certificate_from_dict(noise().to_dict() | {"objective": objective})
    with pytest.raises(wb.CorruptFile, match="must be an expected loss"):
        certificate_from_dict(
            certify_channel_with_loss().to_dict()
            | {"objective": {"name": "squared", "value": "0", "losses": ["0", "1"]}}
        )


UNEVEN_LABELS = wb.Labels([1.0, 2.5, 3.0, 7.0], [0.1, 0.4, 0.2, 0.3])


@pytest.mark.parametrize("loss", EXACT_LOSSES)
def test_the_certificate_of_designed_labels_proves_their_loss(loss):
    method = "lp" if loss in {"error-rate", "huber:1.5"} else "bins"
    design = wb.design(UNEVEN_LABELS, epsilon=1, loss=loss, method=method, certify=True)
    certificate = design.certificate
    assert float(certificate.objective.value) == pytest.approx(design.objective, rel=1e-12)
    assert certificate_from_dict(certificate.to_dict()) == certificate


@pytest.mark.parametrize("loss", ["poisson", "poisson-deviance"])
def test_a_certificate_of_labels_proves_no_loss_with_irrational_values(loss):
    assert not is_exact_loss(loss)
    certificate = wb.design(UNEVEN_LABELS, epsilon=1, loss=loss, certify=True).certificate
    assert certificate.objective is None
    assert "It proves no loss." in certificate.sentences


def test_one_row_for_every_bin_still_states_the_loss_of_all_labels():
    design = wb.design(wb.Labels.uniform(0, 1699), epsilon=1, certify=True)
    objective = design.certificate.objective
    assert len(design.certificate.mechanism.rows) < 1700 == len(objective.labels)
    assert float(objective.value) == pytest.approx(design.objective, rel=1e-12)


def test_the_name_of_a_loss_keeps_every_digit():
    assert parse_loss("pinball:0.123456789").name == "pinball:0.123456789"
    assert Loss("huber", 2.0).name == "huber:2"
