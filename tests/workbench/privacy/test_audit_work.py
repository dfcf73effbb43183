"""Test that proofs of much more than ten seconds are refused before they start, and others end."""

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


def noise(n: int, digits: int, shifts: int = 1, epsilon: str = "1", *, near: bool = False) -> dict:
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


def long_losses() -> dict:
    """Return a certificate with 30 losses whose sum has a million digits.

    The denominators of the losses have no common factor.
    """
    source = random.Random(1)
    losses = [
        f"{hex(source.getrandbits(200_000))}/{hex(source.getrandbits(200_000) | 1)}"
        for _ in range(30)
    ]
    return noise(n=30, digits=4) | {"objective": {"name": "mine", "value": "0", "losses": losses}}


def wide_pdp() -> dict:
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
        noise(n=30, digits=65_000, shifts=14),
        noise(n=30, digits=65_000, shifts=14, near=True),
        noise(n=30, digits=65_000, near=True, epsilon="1e-100"),
        noise(n=8000, digits=64, shifts=7999, near=True),
        noise(n=4, digits=4, epsilon="0x1" + "0" * 60_000 + "1/0x1" + "0" * 60_000),
        long_losses(),
        wide_pdp(),
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
        noise(n=30, digits=32_000, near=True, epsilon="1e-100"),  # It counts 70 million work units.
        noise(n=500, digits=1000, shifts=12, near=True, epsilon="1e-100"),
        noise(n=1500, digits=64, shifts=1499, near=True, epsilon="1e-10"),
        noise(n=4, digits=4, epsilon="0x1" + "0" * 20_000 + "1/0x1" + "0" * 20_000),
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
    with pytest.raises(
        wb.CorruptFile, match="inf"
    ):  # the outcome that breaks the claim, at its input
        certificate_from_dict(replace_entry(data | {"bias": None}, ("claim", "epsilon"), "0.1"))


def test_work_units_agree_with_a_count_by_hand():
    proof = (
        sample()
    )  # 5 weights of total 50 (6 bits), one directed shift; ε = 1 (2 bits), δ = 1/10 (5 bits)
    assert count_work_units(proof.mechanism) == 1 * 5 * 4 + 1000 + 9 * 0 + 5 * 4
    assert (
        count_work_units(
            proof.mechanism, get_notion("pdp"), {"epsilon": Fraction(1), "delta": Fraction(1, 10)}
        )
        == 1040
    )
    wide = {
        "epsilon": Fraction(1, 1 << 1000),
        "delta": Fraction(1),
    }  # 1010 bits, the total included
    assert (
        count_work_units(proof.mechanism, get_notion("pdp"), wide)
        == 5 * (4 + 9) + 1000 + 9 * 15**2 + 5 * (4 + 9) + 15**2
    )
    law = (
        quantizer().mechanism
    )  # 2 end laws on 2 outputs, total 3 (2 bits); outputs and knots -3, -1, 1, 3: 1 + 2 bits
    assert count_work_units(law) == 4 * 2 * 4 + 4 * 1000 + 2 * 2 * 4
    assert count_work_units(law, get_notion("pdp")) == count_work_units(law) + 1 * 16 * 100
    tenths = [Fraction(k, 10) for k in range(40)] + [
        Fraction(1, 1 << 500),
        Fraction(1, 3**200),
    ]  # 500 twos; 5 and 3^200
    assert (
        count_work_units(law, numbers=tenths)
        == 4 * 2 * 4 + 4 * 1000 + 2 * 2 * (4 + (827 // 256) ** 2) + (827 // 64) ** 2
    )
    more = count_work_units(law, numbers=[Fraction(1, 1 << 1000)], labels=3)
    assert more == 4 * 2 * 4 + 4 * 1000 + 2 * (2 + 3) * (4 + 9) + 15**2


@pytest.mark.parametrize("name", CERTIFICATES)
def test_everyday_certificates_are_far_from_the_limit(name):
    proof = CERTIFICATES[name]()
    assert (
        count_work_units(proof.mechanism, proof.claim.notion, proof.claim.values)
        < MAX_WORK_UNITS / 1000
    )
