"""Test that proofs of much more than ten seconds are refused before they start, and others end.

`count_work_units` estimates the work of an audit from the lengths of its numbers.
`workbench.privacy.audit_work` has the formula.
"""

from __future__ import annotations

import random
import time
from fractions import Fraction

import pytest
from certificate_samples import CERTIFICATES, quantizer, replace_entry
from certificate_samples import noise as sample

import workbench as wb
from workbench.notions import get_notion
from workbench.privacy.audit_work import MAX_WORK_UNITS, count_work_units
from workbench.privacy.certificate_file import certificate_from_dict


def make_noise_data(
    n: int, digits: int, shifts: int = 1, epsilon: str = "1", *, near: bool = False
) -> dict:
    """Return the data of a certificate of noise with random weights.

    Args:
        n: Number of weights.
        digits: Number of hexadecimal digits of a weight.
        shifts: Number of shifts, which are 1, 2, ...
        epsilon: ε of the claim.
        near: Whether all ratios of weights are within 2^(40 - 4 digits) of 1.
    """
    source = random.Random(n + digits)
    base = source.getrandbits(4 * digits)
    weights = [
        base + source.getrandbits(40) if near else source.getrandbits(4 * digits) for _ in range(n)
    ]
    mechanism = {
        "kind": "noise",
        "sizes": [n],
        "shifts": [[k + 1] for k in range(shifts)],
        "directed": False,
    }
    mechanism |= {"total": hex(sum(weights)), "weights": [*map(hex, weights)]}
    claim = {"notion": "dp", "epsilon": epsilon, "delta": "1"}
    return sample().to_dict() | {"mechanism": mechanism, "claim": claim, "objective": None}


def make_data_with_long_losses() -> dict:
    """Return a certificate with 30 losses whose sum has a million digits.

    The denominators of the losses have no common factor.
    """
    source = random.Random(1)
    losses = [
        f"{hex(source.getrandbits(200_000))}/{hex(source.getrandbits(200_000) | 1)}"
        for _ in range(30)
    ]
    return make_noise_data(n=30, digits=4) | {
        "objective": {"name": "mine", "value": "0", "losses": losses}
    }


def make_data_of_a_wide_quantizer() -> dict:
    """Return a certificate of a quantizer with one piece and 200 outputs.

    Its audit would make 800,000,000 comparisons of critical inputs.
    """
    source = random.Random(2)
    rows = [[source.randrange(1, 1000) for _ in range(200)] for _ in range(2)]
    ends = [{"total": hex(sum(row)), "weights": [*map(hex, row)]} for row in rows]
    mechanism = {
        "kind": "quantizer",
        "knots": ["0", "1"],
        "outputs": [*map(str, range(200))],
        "ends": ends,
    }
    claim = {"notion": "pdp", "epsilon": "1", "delta": "1"}
    return sample().to_dict() | {"mechanism": mechanism, "claim": claim, "objective": None}


@pytest.mark.parametrize(
    "data",
    [
        make_noise_data(n=30, digits=65_000, shifts=14),
        make_noise_data(n=30, digits=65_000, shifts=14, near=True),
        make_noise_data(n=30, digits=65_000, near=True, epsilon="1e-100"),
        make_noise_data(n=8000, digits=64, shifts=7999, near=True),
        make_noise_data(n=4, digits=4, epsilon="0x1" + "0" * 60_000 + "1/0x1" + "0" * 60_000),
        make_data_with_long_losses(),
        make_data_of_a_wide_quantizer(),
    ],
    ids=["wide", "wide and near", "one shift", "many", "epsilon", "losses", "pdp"],
)
def test_long_audits_are_refused_in_seconds(data):
    start = time.process_time()
    with pytest.raises(wb.CorruptFile, match="refused as too large"):
        certificate_from_dict(data)
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    "data",
    [
        make_noise_data(
            n=30, digits=32_000, near=True, epsilon="1e-100"
        ),  # It counts 70 million work units.
        make_noise_data(n=500, digits=1000, shifts=12, near=True, epsilon="1e-100"),
        make_noise_data(n=1500, digits=64, shifts=1499, near=True, epsilon="1e-10"),
        make_noise_data(n=4, digits=4, epsilon="0x1" + "0" * 20_000 + "1/0x1" + "0" * 20_000),
    ],
    ids=["wide", "many", "all shifts", "epsilon"],
)
def test_accepted_audits_are_proven_in_a_minute(data):
    start = time.process_time()
    assert certificate_from_dict(data).sentences
    assert time.process_time() - start < 60


def test_a_million_sizes_are_not_multiplied():
    data = sample().to_dict()
    data["mechanism"]["sizes"] = [9] * 2_000_000
    start = time.process_time()
    with pytest.raises(wb.CorruptFile, match="at most 32"):
        certificate_from_dict(data)
    assert time.process_time() - start < 60


def test_numbers_beyond_floats_are_refused_with_a_message():
    data = quantizer().to_dict()
    for path, value in [
        (("mechanism", "knots"), ["1e400", "1"]),
        (("bias", "worst"), "1e400"),
        (("mechanism", "outputs"), ["1e400", "1e401"]),
    ]:
        with pytest.raises(wb.CorruptFile):
            certificate_from_dict(replace_entry(data, path, value))
    with pytest.raises(wb.CorruptFile):
        certificate_from_dict(replace_entry(sample().to_dict(), ("objective", "value"), "1e400"))
    data["mechanism"]["knots"] = ["-1e400", "1e400"]
    # The error names the outcome that breaks the claim, at its input, which is infinite as a float.
    with pytest.raises(wb.CorruptFile, match="inf"):
        certificate_from_dict(replace_entry(data | {"bias": None}, ("claim", "epsilon"), "0.1"))


# Counts by hand. The expected counts have the terms of the formula in the module header of
# `workbench.privacy.audit_work`, in its order.


def test_work_units_of_noise_agree_with_a_count_by_hand():
    """The noise has 5 weights of total 50 (6 bits) and one directed shift."""
    assert count_work_units(sample().mechanism) == 1 * 5 * 4 + 1000 + 9 * 0 + 5 * 4


def test_a_short_budget_adds_no_work_units():
    """ε = 1 has 2 bits, and δ = 1/10 has 5 bits."""
    mechanism = sample().mechanism
    budget = {"epsilon": Fraction(1), "delta": Fraction(1, 10)}
    assert count_work_units(mechanism, get_notion("pdp"), budget) == count_work_units(mechanism)


def test_a_long_budget_adds_work_units():
    """ε and the total have 1010 bits together."""
    budget = {"epsilon": Fraction(1, 1 << 1000), "delta": Fraction(1)}
    work_units = count_work_units(sample().mechanism, get_notion("pdp"), budget)
    assert work_units == 5 * (4 + 9) + 1000 + 9 * 15**2 + 5 * (4 + 9) + 15**2


# The quantizer has 2 end laws on 2 outputs, with the total 3 (2 bits). Its outputs and knots are
# -3, -1, 1 and 3 (1 + 2 bits).


def test_work_units_of_a_quantizer_agree_with_a_count_by_hand():
    mechanism = quantizer().mechanism
    work_units = count_work_units(mechanism)
    assert work_units == 4 * 2 * 4 + 4 * 1000 + 2 * 2 * 4
    # Under PDP the critical inputs are compared, too.
    assert count_work_units(mechanism, get_notion("pdp")) == work_units + 1 * 16 * 100


def test_work_units_of_further_numbers_depend_on_their_denominators():
    """w has 827 bits, with 500 twos and the odd parts 5 and 3^200 of the denominators."""
    numbers = [Fraction(k, 10) for k in range(40)] + [Fraction(1, 1 << 500), Fraction(1, 3**200)]
    work_units = count_work_units(quantizer().mechanism, numbers=numbers)
    assert work_units == (4 * 2 * 4 + 4 * 1000 + 2 * 2 * (4 + (827 // 256) ** 2) + (827 // 64) ** 2)


def test_work_units_grow_with_the_labels():
    numbers = [Fraction(1, 1 << 1000)]
    work_units = count_work_units(quantizer().mechanism, numbers=numbers, labels=3)
    assert work_units == 4 * 2 * 4 + 4 * 1000 + 2 * (2 + 3) * (4 + 9) + 15**2


@pytest.mark.parametrize("name", CERTIFICATES)
def test_everyday_certificates_are_far_from_the_limit(name):
    proof = CERTIFICATES[name]()
    assert (
        count_work_units(proof.mechanism, proof.claim.notion, proof.claim.values)
        < MAX_WORK_UNITS / 1000
    )
