"""Certificate files: proven again from themselves; any change that breaks the claim is detected; no file hurts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.files import LIMIT, parse_json, ratio, read_text, spelled, whole
from workbench.privacy.certificate import Bias, Certificate, Objective
from workbench.privacy.certificate_file import from_dict, load_certificate, save_certificate, to_dict
from workbench.privacy.certify import certify, rounded_objective


def noise() -> Certificate:
    """PDP with holes, δ = 1/10 reached exactly: 10 of 100 violate, ratios tight below e."""
    made = wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1], directed=True), [54, 24, 10, 0, 12])
    return Certificate(made, "pdp", Fraction(1), Fraction("0.1"), Objective("error-rate", Fraction(46, 100)))


def metric() -> Certificate:
    return wb.certify_channel(
        [[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]], notion="metric", epsilon="0.3", metric=lambda i, j: abs(i - j),
        outputs=[-1, 3], unbiased_for=[0.6, 1, 1.4], allow_bias=True,
    )  # fmt: skip


def quantizer() -> Certificate:
    third = Fraction(1, 3)
    return wb.certify_quantizer([-1, 1], [-3, 3], [[2 * third, third], [third, 2 * third]], epsilon="0.7")


def vector() -> Certificate:
    question = wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)])
    costs = tuple(map(Fraction, (0, 2, 2, 1, 3, 3)))
    made = wb.AdditiveNoise(question, [6, 4, 4, 5, 4, 4])
    value = rounded_objective("squared", Objective("squared", Fraction(0), costs).of(made), costs)
    return Certificate(made, "dp", {(0, 1): Fraction(1, 2), (1, 0): Fraction("0.2")}, Fraction("0.01"), value)


ALL = {"noise": noise, "metric": metric, "quantizer": quantizer, "vector": vector}


@pytest.mark.parametrize("name", ALL)
def test_round_trip_and_words(name, tmp_path: Path):
    made = ALL[name]()
    path = tmp_path / "c.json"
    save_certificate(made, path)
    again = load_certificate(path)
    assert again == made
    assert to_dict(again) == to_dict(made)
    assert "meets the request" in str(again) or "metric epsilon" in str(again)
    assert wb.load(path) == made.mechanism


def holds(data: dict) -> bool:
    """The claim of a certificate's JSON, decided by a second route: the definitions in 60-digit decimals."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        m, claim = data["mechanism"], data["claim"]
        k = [int(w, 16) for w in m["weights"]]
        f = [Decimal(x) / sum(k) for x in k]
        epsilon, delta = Decimal(claim["epsilon"]), Decimal(claim["delta"])
        (size,), ((shift,),) = m["sizes"], m["shifts"]
        assert m["directed"]
        e = epsilon.exp()
        lost = sum((f[i] for i in range(size) if f[i] > e * f[(i + shift) % size]), Decimal(0))
        return lost <= delta


def spots(value, path=()):
    """Every string of digits in a JSON value, with where it is."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from spots(item, (*path, key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from spots(item, (*path, k))
    elif isinstance(value, str) and (value.startswith("0x") or value.replace(".", "").isdigit()):
        yield path, value


def changed(data: dict, path: tuple, text: str) -> dict:
    copy = json.loads(json.dumps(data))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = text
    return copy


def test_every_single_changed_digit_is_detected_when_the_claim_fails():
    data = to_dict(noise())
    tried = accepted = 0
    for path, text in spots({key: data[key] for key in ("mechanism", "claim")}):
        digits = "0123456789abcdef" if text.startswith("0x") else "0123456789"
        for k in range(2 if text.startswith("0x") else 0, len(text)):
            for digit in digits:
                if text[k] in {".", digit}:
                    continue
                tried += 1
                other = changed(data, path, text[:k] + digit + text[k + 1 :])
                try:
                    from_dict(other)
                except wb.CorruptFile:
                    continue
                accepted += 1
                assert path[0] == "claim", "a changed weight or total never adds up"
                assert holds(other)
    assert tried > 100
    assert 0 < accepted < tried / 3


def test_a_weight_and_its_total_changed_together_are_judged_by_the_claim():
    data = to_dict(noise())
    kept = broken = 0
    for k in range(5):
        for value in range(1, 70):
            weights = [int(w, 16) for w in data["mechanism"]["weights"]]
            weights[k] = value
            other = changed(data, ("mechanism", "weights"), [hex(w) for w in weights])
            other["mechanism"]["total"] = hex(sum(weights))
            other["objective"] = None
            try:
                from_dict(other)
                kept += 1
                assert holds(other)
            except wb.CorruptFile as error:
                if "common factor" not in str(error):
                    broken += 1
                    assert not holds(other)
    assert kept > 20
    assert broken > 20


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("format",), "x", "format"),
        (("version",), 2, "version 1"),
        (("version",), True, "version 1"),
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
        (("mechanism", "sizes"), [10**15], "positive|fill"),
        (("mechanism", "sizes"), [5, 10**11], "fill"),
        (("mechanism", "sizes"), [5.0], "integers"),
        (("mechanism", "shifts"), [[0]], "no sense"),
        (("mechanism", "shifts"), [[1, 2]], "no sense"),
        (("mechanism", "shifts"), [], "no sense"),
        (("mechanism", "shifts"), [1], "lists"),
        (("mechanism", "directed"), 1, "no sense"),
        (("mechanism", "directed"), False, "does not prove"),
        (("mechanism", "weights"), [], "fill"),
        (("mechanism", "weights"), ["0x0"] * 5, "add up"),
        (("mechanism", "weights"), ["0x" + "f" * 70000] * 5, "hexadecimal"),
        (("mechanism", "weights"), ["0x_1"] * 5, "hexadecimal"),
        (("mechanism", "weights"), ["٣"] * 5, "hexadecimal"),
        (("mechanism", "weights"), [1, 2, 3, 4, 5], "hexadecimal"),
        (("mechanism", "total"), "0x65", "add up"),
        (("objective", "value"), "0.45", "error-rate"),
        (("objective", "value"), "0.4600001", "error-rate"),
        (("objective", "name"), "squared", "costs"),
        (("objective", "costs"), ["1"], "costs"),
        (("bias",), {"outputs": [], "inputs": [], "worst": "0"}, "bias"),
        (("record",), [], "record"),
        (("mechanism",), None, "kind"),
        (("claim",), [], "claim"),
    ],
)
def test_each_reason(path, value, reason):
    with pytest.raises(wb.CorruptFile, match=reason):
        from_dict(changed(to_dict(noise()), path, value))


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("metric", ("bias", "worst"), "0.5"),
        ("metric", ("mechanism", "pairs"), [[0, 9]]),
        ("metric", ("mechanism", "pairs"), [[0, 1, 2]]),
        ("metric", ("claim", "epsilon"), "0.1"),
        ("metric", ("claim", "epsilon"), [[[0, 1], "0.3"], [[0, 1], "0.3"]]),
        ("metric", ("claim", "epsilon"), [[[0, 1], "0.3"]]),
        ("quantizer", ("mechanism", "knots"), ["1", "-1"]),
        ("quantizer", ("mechanism", "outputs"), ["-3", "2"]),
        ("quantizer", ("claim", "epsilon"), [[[0, 1], "0.7"]]),
        ("quantizer", ("claim", "epsilon"), "0.69"),
        ("vector", ("objective", "value"), "2"),
        ("vector", ("claim", "epsilon"), [[[0, 1], "0.1"], [[1, 0], "0.1"]]),
    ],
)
def test_other_kinds(name, path, value):
    with pytest.raises(wb.CorruptFile):
        from_dict(changed(to_dict(ALL[name]()), path, value))


def test_a_certificate_cannot_be_changed_afterwards():
    proof, budgets = metric(), {(0, 1): "0.3", (0, 2): "0.6", (1, 2): "0.3"}
    copy = Certificate(proof.mechanism, "metric", budgets)
    budgets[0, 1] = "0.0001"
    assert copy.epsilon[0, 1] == Fraction("0.3")
    with pytest.raises(TypeError):
        copy.epsilon[0, 1] = Fraction(0)
    assert deepcopy(copy) == copy
    with pytest.raises(AttributeError):
        copy.delta = Fraction(0)
    assert Certificate(noise().mechanism, "pdp", 1, 0.1).delta == Fraction(1, 10)


def test_nothing_unproven_can_be_built():
    made = noise().mechanism
    with pytest.raises(wb.NotCertified, match="misses"):
        Certificate(made, "pdp", Fraction(1), Fraction("0.0999"))
    with pytest.raises(wb.NotCertified, match="error-rate is"):
        Certificate(made, "pdp", Fraction(1), Fraction("0.1"), Objective("error-rate", Fraction(45, 100)))
    with pytest.raises(wb.NotCertified, match="bias"):
        Certificate(metric().mechanism, "metric", metric().epsilon, bias=Bias((0, 1), (0, 0, 0), Fraction(0)))
    with pytest.raises(wb.InvalidRequest):
        certify(made, "pdp", 1, 2)


# Files.


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b"[" * 200_000, "nested"),
        (b'{"a":' * 200_000, "nested"),
        (b"null", "entries"),
        (b"[1, 2]", "entries"),
        (b'{"format": "dp-workbench certificate"', "JSON"),
    ],
)
def test_hostile_files_give_a_reason(content, reason, tmp_path: Path):
    with pytest.raises(wb.CorruptFile, match=reason):
        wb.verify_certificate(write(tmp_path / "c.json", content))


def test_places_that_are_no_files(tmp_path: Path):
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(wb.CorruptFile):
            wb.verify_certificate(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(wb.CorruptFile, match="regular"):
        wb.verify_certificate(tmp_path / "pipe")
    with pytest.raises(wb.CorruptFile, match="larger"):
        read_text(write(tmp_path / "big", b" " * 2000), limit=1000)
    assert LIMIT < 1 << 26


def test_a_huge_file_costs_bounded_memory(tmp_path: Path):
    data = to_dict(noise())
    data["mechanism"]["sizes"] = [50_000_000]
    path = write(tmp_path / "c.json", json.dumps(data))
    (tmp_path / "long.json").write_bytes(b"[" + b"0," * (LIMIT // 2) + b"0]")
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
import workbench as wb
for name in sys.argv[1:]:
    try:
        wb.verify_certificate(name)
    except wb.CorruptFile as error:
        print("CorruptFile", error)
"""
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "long.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("CorruptFile") == 2


def test_no_pickle_anywhere():
    root = Path(wb.__file__).parent
    for path in root.rglob("*.py"):
        words = {word for line in path.read_text("utf-8").splitlines() for word in line.split()}
        assert not {"pickle", "marshal", "shelve", "dill"} & words, path


GOOD = json.dumps(to_dict(noise())).encode()
quiet = settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def survives(content: bytes, folder: Path) -> None:
    path = write(folder / "c.json", content)
    try:
        proven = wb.verify_certificate(path)
    except wb.CorruptFile:
        return
    assert proven.holds()


@quiet
@given(st.binary(max_size=300))
def test_fuzz_bytes(tmp_path, content):
    survives(content, tmp_path)


@quiet
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 3), st.binary(max_size=6), st.integers(0, 40))
def test_fuzz_mutations_of_a_good_file(tmp_path, at, how, extra, cut):
    variants = [
        GOOD[:at],
        GOOD[:at] + extra + GOOD[at:],
        GOOD[:at] + GOOD[at + cut :],
        GOOD[:at] + extra + GOOD[at + len(extra) :],
    ]
    survives(variants[how], tmp_path)


LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=8),
    st.sampled_from(["0x1", "0x0", "0.1", "1/3", "1e-9", "pdp", "pure", "noise", "channel", "quantizer"]),
)  # fmt: skip
JSONS = st.recursive(LEAF, lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=8), x, max_size=4))
SPOTS = [path for path, _ in spots(json.loads(GOOD))] + [
    ("mechanism",), ("claim",), ("objective",), ("bias",), ("record",), ("version",), ("mechanism", "sizes"),
    ("mechanism", "shifts"), ("mechanism", "weights"), ("mechanism", "directed"), ("claim", "epsilon"),
]  # fmt: skip


@quiet
@given(st.sampled_from(SPOTS), JSONS)
def test_fuzz_values_in_a_good_file(tmp_path, path, value):
    survives(json.dumps(changed(json.loads(GOOD), path, value)).encode(), tmp_path)


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=12).map(Fraction))
def test_spelled_numbers_are_read_back(value):
    assert ratio(spelled(value), "value") == value


def test_very_long_numbers_are_read_back():
    value = Fraction(-(3**9000), 2**30000 + 1)
    assert ratio(spelled(value), "value") == value
    assert ratio("0x1/0x2", "value") == Fraction(1, 2)
    for bad in ("0x1/0x0", "--0x1/0x2", "0x1/-0x2", "0x1/0x2/0x3", "0x1", "0x/0x1"):
        with pytest.raises(wb.CorruptFile):
            ratio(bad, "value")


@given(st.integers(min_value=0, max_value=1 << 2000))
def test_hexadecimals_are_read_back(value):
    assert whole(hex(value), "value") == value


def test_json_numbers_are_exact_or_refused():
    assert parse_json("[1, 2.5]") == [1, 2.5]
    with pytest.raises(wb.CorruptFile):
        parse_json("[1.e]")
