"""Test that certificate files prove their claim, and that changes that falsify it are detected.

The sample `noise` is PDP at ε = 1 and δ = 1/10, for directed neighbours. Its error rate is 46/100.
"""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from pathlib import Path

import pytest
from certificate_samples import (
    CERTIFICATES,
    claim_holds,
    iter_digit_texts,
    metric,
    noise,
    replace_entry,
)

import workbench as wb
from workbench.mechanisms.mechanism import Bias
from workbench.privacy.certificate import Certificate
from workbench.privacy.certificate_file import certificate_from_dict, check, save
from workbench.privacy.certify import certify
from workbench.privacy.objective import Objective


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_saved_certificate_is_read_back_with_its_sentences(name, tmp_path: Path):
    proof = CERTIFICATES[name]()
    path = tmp_path / "c.json"
    save(proof, path)
    read_back = check(path)
    assert read_back == proof
    assert read_back.to_dict() == proof.to_dict()
    text = str(read_back)
    assert "is private at the requested budget" in text or "metric epsilon" in text
    assert wb.load(path) == proof.mechanism


def test_every_single_changed_digit_is_detected_when_the_claim_fails():
    """A changed weight or total never adds up. A changed claim is accepted if it holds."""
    data = noise().to_dict()
    tried_count = 0
    accepted_count = 0
    for path, text in iter_digit_texts({key: data[key] for key in ("mechanism", "claim")}):
        for changed_text in list_changed_digits(text):
            tried_count += 1
            changed_data = replace_entry(data, path, changed_text)
            try:
                certificate_from_dict(changed_data)
            except wb.CorruptFile:
                continue
            accepted_count += 1
            assert path[0] == "claim"
            assert claim_holds(changed_data)
    assert tried_count > 100
    assert 0 < accepted_count < tried_count / 3


def list_changed_digits(text: str) -> list[str]:
    """Return all texts that differ from a decimal or hexadecimal number in one digit."""
    is_hexadecimal = text.startswith("0x")
    digits = "0123456789abcdef" if is_hexadecimal else "0123456789"
    first_digit = 2 if is_hexadecimal else 0
    changed_texts = []
    for position in range(first_digit, len(text)):
        if text[position] != ".":
            other_digits = digits.replace(text[position], "")
            changed_texts += [
                text[:position] + digit + text[position + 1 :] for digit in other_digits
            ]
    return changed_texts


def test_two_consistent_changes_are_judged_by_the_claim():
    """A weight is changed, and the total with it."""
    data = noise().to_dict()
    accepted_count = 0
    refused_count = 0
    for position in range(5):
        for changed_weight in range(1, 70):
            weights = [int(weight, 16) for weight in data["mechanism"]["weights"]]
            weights[position] = changed_weight
            changed_data = replace_entry(data, ("mechanism", "weights"), [*map(hex, weights)])
            changed_data["mechanism"]["total"] = hex(sum(weights))
            changed_data["objective"] = None
            try:
                certificate_from_dict(changed_data)
                accepted_count += 1
                assert claim_holds(changed_data)
            except wb.CorruptFile as error:
                # A file whose weights have a common factor is malformed, whatever its claim.
                if "common factor" not in str(error):
                    refused_count += 1
                    assert not claim_holds(changed_data)
    assert accepted_count > 20
    assert refused_count > 20


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("format",), "x", "format"),
        (("version",), 2, "version must be 1"),
        (("version",), True, "must be 1"),
        (("version",), 0, "version must be 1"),
        (("claim", "epsilon"), "0.5", "does not prove"),
        (("claim", "delta"), "0.05", "does not prove"),
        (("claim", "delta"), "-1", "delta"),
        (("claim", "delta"), 0.1, "exact number"),
        (("claim", "epsilon"), "1e400", "epsilon"),
        (("claim", "epsilon"), "1e999999999", "exact number"),
        (("claim", "epsilon"), "9" * 6000, "exact number"),
        (("claim", "epsilon"), "nan", "exact number"),
        (("claim", "notion"), "rdp", "notion"),
        (("claim", "notion"), "pure", "does not prove|delta"),
        (("claim", "notion"), "dp" * 60, "short string"),
        (("mechanism", "kind"), "magic", "kind"),
        (("mechanism", "sizes"), [10**15], "integer"),
        (("mechanism", "sizes"), [5, 10**11], "not consistent"),
        (("mechanism", "sizes"), [5.0], "integer"),
        (("mechanism", "shifts"), [[0]], "not consistent"),
        (("mechanism", "shifts"), [[1, 2]], "not consistent"),
        (("mechanism", "shifts"), [], "not consistent"),
        (("mechanism", "shifts"), [1], "list"),
        (("mechanism", "directed"), 1, "true or false"),
        (("mechanism", "directed"), False, "does not prove"),
        (("mechanism", "weights"), [], "add up"),
        (("mechanism", "weights"), ["0x0"] * 5, "add up"),
        (("mechanism", "weights"), ["0x" + "f" * 70000] * 5, "hexadecimal"),
        (("mechanism", "weights"), ["0x_1"] * 5, "hexadecimal"),
        (("mechanism", "weights"), ["٣"] * 5, "hexadecimal"),
        (("mechanism", "weights"), [1, 2, 3, 4, 5], "hexadecimal"),
        (("mechanism", "total"), "0x65", "add up"),
        (("objective", "value"), "0.45", "error-rate"),
        (("objective", "value"), "0.4600001", "error-rate"),
        (("objective", "name"), "squared", "losses"),
        (("objective", "losses"), ["1"], "losses"),
        (
            ("objective",),
            {"name": "squared", "value": "0", "losses": ["0"] * 5},
            "be those of squared",
        ),
        (("objective",), {"name": "squared", "value": "0", "losses": None}, "losses"),
        (("objective",), {"name": "worst-squared", "value": "0", "losses": ["0"] * 5}, "left out"),
        (("bias",), {"outputs": [], "inputs": [], "worst": "0"}, "bias"),
        (("record",), [], "record"),
        (("mechanism",), None, "kind"),
        (("claim",), [], "claim"),
    ],
)
def test_each_error_names_its_reason(path, value, reason):
    with pytest.raises(wb.CorruptFile, match=reason):
        certificate_from_dict(replace_entry(noise().to_dict(), path, value))


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("metric", ("bias", "worst"), "0.5"),
        ("metric", ("mechanism", "pairs"), [[0, 9]]),
        ("metric", ("mechanism", "pairs"), [[0, 1, 2]]),
        ("metric", ("claim", "epsilon"), "0.1"),
        ("metric", ("claim", "epsilon"), [[[0, 1], "0.3"], [[0, 1], "0.3"]]),
        ("metric", ("claim", "epsilon"), [[[0, 1], "0.3"]]),
        # The budget is for no pair, and (0, 1) has none.
        ("metric", ("claim", "epsilon", 0, 0), [0, 7]),
        ("metric", ("claim", "delta"), "1"),
        ("metric quantizer", ("claim", "delta"), "1"),
        ("metric quantizer", ("claim", "epsilon"), "0.3"),
        ("quantizer", ("mechanism", "knots"), ["1", "-1"]),
        ("quantizer", ("mechanism", "outputs"), ["-3", "2"]),
        ("quantizer", ("claim", "epsilon"), [[[0, 1], "0.7"]]),
        ("quantizer", ("claim", "epsilon"), "0.69"),
        ("vector", ("objective", "value"), "2"),
        # A file may not state its own losses under a built-in name.
        ("vector", ("objective", "name"), "error-rate"),
        (
            "vector",
            ("claim", "epsilon"),
            [[[0, 1], "0.5"], [[0, 2], "0.5"], [[1, 0], "0.2"], [[1, 1], "9"]],
        ),
        ("vector", ("claim", "epsilon"), [[[0, 1], "0.1"], [[1, 0], "0.1"]]),
    ],
)
def test_changed_files_of_other_kinds_are_refused(name, path, value):
    with pytest.raises(wb.CorruptFile):
        certificate_from_dict(replace_entry(CERTIFICATES[name]().to_dict(), path, value))


def test_a_certificate_cannot_be_changed_afterwards():
    proof = metric()
    budgets = {(0, 1): "0.3", (0, 2): "0.6", (1, 2): "0.3"}
    copy = Certificate(proof.mechanism, "metric", budgets)
    budgets[0, 1] = "0.0001"
    assert copy.epsilon[0, 1] == Fraction("0.3")
    with pytest.raises(TypeError):
        copy.epsilon[0, 1] = Fraction(0)
    assert deepcopy(copy) == copy
    with pytest.raises(AttributeError):
        copy.delta = Fraction(0)


def test_a_certificate_reads_decimals_exactly():
    assert Certificate(noise().mechanism, "pdp", epsilon=1, delta=0.1).delta == Fraction(1, 10)


def test_a_certificate_of_a_false_claim_cannot_be_built():
    with pytest.raises(wb.NotCertified, match="is NOT private"):
        Certificate(noise().mechanism, "pdp", epsilon=Fraction(1), delta=Fraction("0.0999"))


def test_a_certificate_of_a_smaller_loss_cannot_be_built():
    with pytest.raises(wb.NotCertified, match="error-rate is"):
        Certificate(
            noise().mechanism,
            "pdp",
            epsilon=Fraction(1),
            delta=Fraction("0.1"),
            objective=Objective("error-rate", Fraction(45, 100)),
        )


def test_a_certificate_of_a_smaller_bias_cannot_be_built():
    with pytest.raises(wb.NotCertified, match="bias"):
        Certificate(
            metric().mechanism,
            "metric",
            metric().epsilon,
            bias=Bias(outputs=(0, 1), inputs=(0, 0, 0), worst=Fraction(0)),
        )


def test_a_delta_above_1_cannot_be_certified():
    with pytest.raises(wb.InvalidRequest):
        certify(noise().mechanism, "pdp", epsilon=1, delta=2)
