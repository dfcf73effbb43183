"""Test every public function (audit, certify, sample, profile, ...) on every kind of mechanism.

Each function accepts three *forms*: the mechanism, an object with it (such as a Design), and its
Certificate. A new kind of mechanism needs an entry in CASES.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import workbench as wb
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.baselines.poisson_binomial import poisson_binomial
from workbench.mechanisms.baselines.two_bin import BiasedQuantizer, rqm, rqm_selection, two_bin
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.dyadic_laplace.randomness import LocalStream, SharedStream
from workbench.mechanisms.joint_noise import JointNoise
from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.randomized_response import (
    rr_k_ary,
    rr_on_bins,
    rr_top_k,
)
from workbench.mechanisms.mechanism import Distances, as_mechanism
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.privacy.audit import audit_extremes
from workbench.privacy.certificate_file import check
from workbench.privacy.opendp import measurement
from workbench.questions.joint_query import JointQuery

LABELS = wb.Labels([0, 1, 2, 5], [4, 3, 2, 1])
ROWS = [
    [Fraction(6, 10), Fraction(3, 10), Fraction(1, 10)],
    [Fraction(2, 6), Fraction(3, 6), Fraction(1, 6)],
    [Fraction(2, 8), Fraction(3, 8), Fraction(3, 8)],
]

# Masses of noise at -40..40 that fall by 1/2 every two integers.
HALVED = [Fraction(1, 2 ** ((abs(j) + 1) // 2)) for j in range(-40, 41)]


@dataclass(frozen=True)
class Design:
    """An object with a mechanism, in place of a `wb.Design`."""

    mechanism: Any


@dataclass(frozen=True)
class Case:
    """A mechanism to test.

    Attributes:
        mechanism: The mechanism.
        answer: One of its inputs.
        epsilon: An ε slightly above its pure ε.
        certifiable: Whether a certificate can contain it.
    """

    mechanism: Any
    answer: Any
    epsilon: str
    certifiable: bool = True


CASES = {
    "additive noise": Case(
        wb.AdditiveNoise(wb.ModuloNoise(n=4, max_shift=1), [8, 4, 2, 2, 4]), answer=3, epsilon="0.7"
    ),
    "directed noise": Case(
        wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1], directed=True), [8, 4, 2, 1, 4]),
        answer=0,
        epsilon="0.7",
    ),
    "vector noise": Case(
        wb.AdditiveNoise(wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)]), [6, 3, 3, 4, 2, 2]),
        answer=(1, 2),
        epsilon="0.7",
    ),
    "integer noise": Case(
        wb.AdditiveIntegerNoise(
            wb.IntegerNoise(2),
            IntegerLaw(first=-40, weights=HALVED, period=2, ratio=Fraction(1, 2)),
        ),
        answer=0,
        epsilon="0.7",
    ),
    "clamped noise": Case(
        wb.AdditiveIntegerNoise(
            wb.IntegerNoise(1, clamp=(3, 6)),
            IntegerLaw(first=0, weights=[1], period=1, ratio=Fraction(1, 2)),
        ),
        answer=4,
        epsilon="0.7",
    ),
    "real noise": Case(
        wb.AdditiveRealNoise(
            wb.RealNoise(1, grid="1/2"),
            2,
            IntegerLaw(first=-40, weights=HALVED, period=2, ratio=Fraction(1, 2)),
        ),
        answer=0,
        epsilon="0.7",
    ),
    "joint noise": Case(
        JointNoise(
            JointQuery("rows-anywhere", rows=2),
            IntegerLaw(first=0, weights=[1], period=1, ratio=Fraction(3, 4)).cover(
                low=-60, high=60
            ),
        ),
        answer=None,
        epsilon="0.6",
    ),
    "channel, all rows": Case(Channel.from_rows(ROWS), answer=1, epsilon="1.4"),
    "channel, some rows": Case(Channel.from_pairs(ROWS, [(0, 1), (1, 2)]), answer=2, epsilon="1"),
    "affine": Case(rqm("-2,-0.5,0.5,2", "0.3"), answer=0.25, epsilon="3"),
    "two bins": Case(two_bin(bins=[-3, 3], selection=[[1]]), Fraction(1, 3), "0.7"),
    "nearest outputs": Case(
        NearestOutputs(
            (Fraction(0), Fraction(3)), (Fraction(0), Fraction(1), Fraction(2)), 1, Fraction(2)
        ),
        answer=1,
        epsilon="0.7",
    ),
    "k-ary": Case(rr_k_ary(LABELS, 1), answer=2, epsilon="1"),
    "RR-on-Bins": Case(
        rr_on_bins(LABELS, starts=[0, 2], values=[0.5, 3], epsilon=1), answer=5, epsilon="1"
    ),
    "RR-top": Case(rr_top_k(LABELS, count=2, epsilon=1), answer=5, epsilon="1"),
    "labelled channel": Case(
        replace(Channel.from_rows(ROWS), axis_labels=((0, 1, 2), (-1, 1, 3))),
        answer=2,
        epsilon="1.4",
    ),
    "Poisson binomial": Case(
        poisson_binomial(4, epsilon=1), answer=0.5, epsilon="1", certifiable=False
    ),
}
CERTIFIABLE = [name for name, case in CASES.items() if case.certifiable]
# The neighbours of a joint release are given by rows of a person, and not by a distance of answers.
WITH_DISTANCES = [name for name in CASES if name != "joint noise"]


def make_certificate(name: str) -> Any:
    """Return the certificate of a case at its ε."""
    case = CASES[name]
    return wb.certify(case.mechanism, "pure", case.epsilon)


def list_forms(name: str) -> list[Any]:
    """Return the mechanism of a case, a Design of it and, if there is one, its Certificate."""
    mechanism = CASES[name].mechanism
    certificates = [make_certificate(name)] if CASES[name].certifiable else []
    return [mechanism, Design(mechanism), *certificates]


@pytest.mark.parametrize("name", CASES)
def test_all_forms_have_the_largest_ratio_of_the_audit_of_extremes(name: str):
    case = CASES[name]
    largest_ratio = audit_extremes(case.mechanism, case.epsilon).pure_ratio
    for form in list_forms(name):
        assert wb.audit(form, case.epsilon).pure_ratio == largest_ratio


@pytest.mark.parametrize("name", CASES)
def test_all_forms_are_private_at_the_epsilon_of_their_case(name: str):
    epsilon = CASES[name].epsilon
    for form in list_forms(name):
        privacy = wb.audit(form, epsilon)
        assert privacy.meets("pure", epsilon)
        assert privacy.dp_delta <= 0


@pytest.mark.parametrize("name", CASES)
def test_no_form_is_private_at_a_smaller_epsilon_without_delta(name: str):
    """The pure ε of all cases is above 0.3."""
    case = CASES[name]
    needed_delta = Fraction(float(wb.audit(case.mechanism, "0.3").dp_delta)) + Fraction(1, 10**9)
    for form in list_forms(name):
        privacy = wb.audit(form, case.epsilon)
        assert privacy.pure_epsilon > 0.3
        assert not privacy.meets("pure", "0.3")
        assert "is NOT private" in privacy.verdict("pure", "0.3")
        assert privacy.meets("dp", "0.3", needed_delta)


@pytest.mark.parametrize("name", CERTIFIABLE)
def test_a_tighter_budget_repairs_the_mechanism_and_its_file_is_proven(name: str, tmp_path: Path):
    case = CASES[name]
    proof = make_certificate(name)
    assert wb.certify(proof, "pure", case.epsilon) == wb.certify(
        Design(case.mechanism), "pure", case.epsilon
    )
    assert "repair_mixed_in" not in proof.record  # The mechanism needed no repair.
    if name in ("nearest outputs", "joint noise"):  # These mechanisms cannot be repaired.
        with pytest.raises(wb.NotCertified, match="exact pure epsilon is 0"):
            wb.certify(case.mechanism, "pure", "0.5")
        return
    tighter = wb.certify(case.mechanism, "pure", "0.5")
    assert tighter.privacy.pure_epsilon <= 0.5 < proof.privacy.pure_epsilon
    wb.save(tighter, tmp_path / "proof.json")
    assert check(tmp_path / "proof.json") == tighter
    assert wb.load(tmp_path / "proof.json") == tighter.mechanism
    assert copy.copy(proof) == proof


@pytest.mark.parametrize("name", CASES)
def test_sample_draws_published_values_from_the_law(name: str):
    count = 20_000
    case = CASES[name]
    outputs = case.mechanism.outputs
    law = case.mechanism.law(case.answer)
    assert isinstance(law, Distribution)
    assert len(law) == len(outputs)
    # An output of vector noise is a vector, and all others are numbers.
    index_by_output = {tuple(np.atleast_1d(output)): k for k, output in enumerate(outputs)}
    assert len(index_by_output) == len(outputs)
    is_possible = law.floats > 0
    for form in list_forms(name):
        draws = wb.sample(form, count, answer=case.answer, insecure_seed=7)
        # A KeyError here means that a value is drawn that is no output.
        indices = [index_by_output[tuple(draw)] for draw in np.atleast_2d(draws.T).T]
        counts = np.bincount(indices, minlength=len(outputs))
        expected_counts = count * law.floats[is_possible]
        assert chisquare(counts[is_possible], expected_counts).pvalue > 1e-4
        repeated_draws = wb.sample(form, count, answer=case.answer, insecure_seed=7)
        assert (repeated_draws == draws).all()


@pytest.mark.parametrize("name", CASES)
def test_sample_draws_the_requested_number_of_values_without_a_seed(name: str):
    for form in list_forms(name):
        assert len(wb.sample(form, 5, answer=CASES[name].answer)) == 5


@pytest.mark.parametrize("name", CASES)
def test_profile_is_the_audit_at_every_epsilon(name: str):
    for form in list_forms(name):
        curve = wb.profile(form)
        for epsilon in ("0", "0.2", "0.5", "2"):
            assert curve.exact_delta(epsilon) == wb.audit(form, epsilon).dp_delta
        assert curve.pure_epsilon == wb.audit(form, 0).pure_epsilon


def test_a_notebook_shows_profiles_audits_of_quantizers_and_quantized_laplace_noise():
    pytest.importorskip("matplotlib")
    curve = wb.profile(Channel.from_rows([[3, 1], [1, 3]]))
    assert "DP δ at ε = 1" in curve._repr_html_()
    assert "<svg" in curve._repr_html_()
    assert repr(curve) == "Profile(dp, 1 different pairs of neighbours)"
    quantizer = rqm(bins=[-2, -1, 1, 2], q=0.3)
    assert repr(audit_extremes(quantizer, 0).pure_epsilon) in wb.audit(quantizer)._repr_html_()
    for bits, ell in ((5, "ell"), (1, "not reachable")):
        shown = wb.design(wb.DataLaw.uniform(-1, 1), epsilon=1, bits=bits)._repr_html_()
        assert f">{ell}</th>" in shown
        assert "None" not in shown


@pytest.mark.parametrize("name", CASES)
def test_the_composition_of_one_run_contains_the_audit(name: str):
    for form in list_forms(name):
        exact_delta = float(wb.audit(form, "0.2").dp_delta)
        composition = wb.compose(form, 1, epsilon="0.2", interval=1e-3)
        assert exact_delta <= composition.delta
        # A composition has bounds for neighbours in both orders.
        if not as_mechanism(form).is_one_sided:
            assert composition.delta_low <= exact_delta


def test_a_notebook_shows_a_composition_as_a_table():
    composition = wb.compose(CASES["k-ary"].mechanism, 1, epsilon="0.2", interval=1e-3)
    assert "<table>" in composition._repr_html_()


@pytest.mark.parametrize("name", CASES)
def test_a_saved_mechanism_is_loaded_unchanged(name: str, tmp_path: Path):
    mechanism = CASES[name].mechanism
    # The first two forms are the mechanism and a Design.
    for number, form in enumerate(list_forms(name)[:2]):
        wb.save(form, tmp_path / f"{number}.json")
        loaded: Any = wb.load(tmp_path / f"{number}.json")
        assert type(loaded) is type(mechanism)
        assert loaded.to_dict() == mechanism.to_dict()
        assert loaded.law(CASES[name].answer) == mechanism.law(CASES[name].answer)
        # The labels of a channel are not part of a mechanism file.
        if getattr(mechanism, "axis_labels", None) is None:
            assert np.array_equal(loaded.outputs, mechanism.outputs)


@pytest.mark.parametrize("name", CASES)
def test_a_mechanism_is_made_again_from_its_dictionary(name: str):
    data = CASES[name].mechanism.to_dict()
    assert type(CASES[name].mechanism).from_dict(data).to_dict() == data


@pytest.mark.parametrize("name", CASES)
def test_a_mechanism_describes_itself_in_one_line(name: str):
    description = CASES[name].mechanism.describe()
    assert description
    assert "\n" not in description


def test_a_joint_release_is_no_measurement_with_a_distance():
    pytest.importorskip("opendp")
    with pytest.raises(wb.InvalidRequest, match="with_max_distance"):
        measurement(CASES["joint noise"].mechanism)


@pytest.mark.parametrize("name", WITH_DISTANCES)
def test_the_map_of_a_measurement_is_the_audit_within_a_distance(name: str):
    """A measurement maps a distance to the pure ε of all inputs within it, and draws outputs only."""
    case = CASES[name]
    pytest.importorskip("opendp")
    from opendp.prelude import enable_features

    enable_features("contrib", "honest-but-curious")
    subject = case.mechanism
    distances = Distances.from_mechanism(subject)
    # OpenDP distinguishes floats from integers, in distances as well.
    number = float if distances.kind == "real" else int
    answer = case.answer
    if distances.kind == "real":
        answer = float(case.answer)
    elif isinstance(case.answer, tuple):
        answer = [*case.answer]
    for form in list_forms(name):
        release = measurement(form)
        assert release.map(number(0)) == 0.0
        for distance in {1, min(distances.max_distance, 2)}:
            pure_epsilon = audit_extremes(subject.with_max_distance(distance), 0).pure_epsilon
            assert release.map(number(distance)) == pure_epsilon > 0.3
        exact_delta = wb.audit(subject.with_max_distance(1), "0.3").dp_delta.upper
        approximate = measurement(form, "approximate", epsilon="0.3")
        assert approximate.map(number(1)) == (pytest.approx(0.3), exact_delta)
        if subject.inputs is not None:
            outputs = {tuple(np.atleast_1d(output)) for output in subject.outputs}
            draws = {tuple(np.atleast_1d(release(answer))) for _ in range(20)}
            assert draws <= outputs


@pytest.mark.parametrize("name", CASES)
def test_dp_accounting_agrees_on_the_exported_privacy_loss(name: str):
    """The δ of dp_accounting is the exact δ, rounded up by at most 1e-8, and is read back unchanged."""
    pytest.importorskip("dp_accounting")
    if CASES[name].mechanism.is_one_sided:  # dp_accounting has one law for both orders.
        with pytest.raises(wb.InvalidRequest, match="neighbours in both orders"):
            measurement(list_forms(name)[-1], "privacy_loss_distribution")
        return
    losses = measurement(list_forms(name)[-1], "privacy_loss_distribution")
    channel = Channel.from_privacy_loss(losses)
    for epsilon in (0.0, 0.3, 0.7, 1.5):
        exact_delta = wb.audit(CASES[name].mechanism, epsilon).dp_delta
        delta_read_back = wb.audit(channel, epsilon).dp_delta
        exported_delta = losses.get_delta_for_epsilon(epsilon)
        assert exact_delta.upper - 1e-15 <= exported_delta <= exact_delta.upper + 1e-8
        assert exact_delta.lower <= delta_read_back.upper
        assert delta_read_back.upper == pytest.approx(exported_delta, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", ["k-ary", "real noise"])
def test_dp_accounting_agrees_on_two_runs(name: str):
    pytest.importorskip("dp_accounting")
    losses = measurement(list_forms(name)[-1], "privacy_loss_distribution")
    composition = wb.compose(CASES[name].mechanism, 2, epsilon=1, interval=1e-2)
    assert composition.delta_low <= losses.self_compose(2).get_delta_for_epsilon(1.0) + 1e-12


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (wb.DyadicLaplace(epsilon=1, ell=2), "continuous"),
        (LabelNoise("laplace", low=0, high=3, epsilon=1), "integer versions"),
        (
            BiasedQuantizer.from_selection("-2,-0.5,0.5,2", rqm_selection(4, "0.3"), "0.3"),
            "logistic",
        ),
        (
            wb.LabelRandomizer([0, 1], 1, lambda labels, epsilon: rr_k_ary(labels, epsilon)),
            "complete column",
        ),
        ([[0.5, 0.5]], "a mechanism, a Design or a Certificate. Got list."),
        (Design(3), "a mechanism, a Design or a Certificate. Got Design."),
    ],
)
def test_mechanisms_without_an_exact_law_are_errors(mechanism: Any, reason: str, tmp_path: Path):
    for verb in (
        as_mechanism,
        lambda m: wb.audit(m, 1),
        lambda m: wb.certify(m, "pure", 1),
        lambda m: wb.sample(m, 1, answer=0),
        wb.profile,
        lambda m: wb.compose(m, 1, delta="0.1"),
        lambda m: wb.save(m, tmp_path / "x.json"),
    ):
        with pytest.raises(wb.InvalidRequest, match=r"^mechanism must ") as caught:
            verb(mechanism)
        assert reason in str(caught.value)


def test_certify_refuses_a_law_that_no_certificate_can_contain():
    with pytest.raises(wb.InvalidRequest, match="polynomial in the input"):
        wb.certify(poisson_binomial(4, epsilon=1), "pure", 1)


def test_a_law_that_is_not_affine_has_no_pdp_delta():
    audit = wb.audit(poisson_binomial(4, epsilon=1), 1)
    for refused in (
        lambda: audit.pdp_delta,
        lambda: audit.worst_result("pdp"),
        lambda: audit.meets("pdp", 1, "0.1"),
        lambda: audit.meets("pdp", 2, "0.1"),
        lambda: wb.profile(audit.mechanism, "pdp"),
        lambda: audit.meets("metric", 1),
    ):
        with pytest.raises(wb.InvalidRequest):
            refused()


@pytest.mark.parametrize("name", CASES)
def test_every_mechanism_has_an_html_view_a_plot_and_a_file(name: str, tmp_path: Path):
    pytest.importorskip("matplotlib")
    mechanism = CASES[name].mechanism
    # The mechanism, its certificate if there is one, and its audit. A Design here has no view.
    for shown in (*list_forms(name)[0::2], wb.audit(mechanism, 1)):
        html = shown._repr_html_()
        assert "<table>" in html
        assert "<svg" in html or "<img" in html
        assert "<script" not in html
        assert len(repr(shown)) < 300
        shown.plot(tmp_path / "x.svg")
        shown.save(tmp_path / "x.json")
        assert (tmp_path / "x.svg").stat().st_size > 1000
        assert (tmp_path / "x.json").stat().st_size > 50


def test_the_joint_law_of_a_vector_has_its_shape():
    noise = CASES["vector noise"].mechanism
    assert noise.pmf.shape == (6,)
    assert noise.pmf.reshape(2, 3)[1, 2] == noise.pmf[noise.question.shifted_positions((1, 2))[0]]


@pytest.fixture
def exact_delta() -> Any:
    """Return an exact δ, which is irrational: a sum of masses minus e^0.5 times another."""
    return wb.audit(CASES["additive noise"].mechanism, "0.5").dp_delta


def test_an_exact_delta_is_ordered_like_a_number(exact_delta: Any):
    assert 0 < exact_delta < 1
    assert not exact_delta > Fraction(1, 2)
    assert max(exact_delta, Fraction(0)) is exact_delta


def test_an_exact_delta_is_between_the_floats_next_to_it(exact_delta: Any):
    assert exact_delta.lower <= float(exact_delta) <= exact_delta.upper
    assert exact_delta.lower <= exact_delta <= exact_delta.upper < float("inf")


def test_an_exact_delta_only_equals_the_same_exact_delta(exact_delta: Any):
    assert exact_delta == wb.audit(CASES["additive noise"].mechanism, "0.5").dp_delta
    assert exact_delta != exact_delta.upper


def test_an_exact_delta_is_not_compared_with_a_text(exact_delta: Any):
    with pytest.raises(TypeError):
        _ = exact_delta < "1"


def test_sample_reads_a_label_by_its_value_and_not_by_its_position():
    """5 is one of the labels 0, 1, 5, but no row number. 2 is a row number, but no label."""
    made = rr_on_bins(wb.Labels([0, 1, 5]), starts=[0, 2], values=[-7.5, 8.25], epsilon=1)
    for form in (made, wb.certify(made, "pure", 1)):
        assert set(wb.sample(form, 200, answer=5)) == {-7.5, 8.25}
        with pytest.raises(
            wb.InvalidRequest, match=r"answer must be one of the 3 labels from 0 to 5\. Got 2\."
        ):
            wb.sample(form, 3, answer=2)


@pytest.mark.parametrize("certify", [True, False])
def test_a_designed_channel_uses_the_answers_and_outputs_of_its_question(
    certify: bool, tmp_path: Path
):
    """The answers 10, 20, 30 are inputs, and the row number 2 is none.

    This holds for the design, its mechanism, its certificate and its file.
    """
    request: dict[str, Any] = {"loss": "squared", "epsilon": 1, "certify": certify}
    design = wb.design(wb.FiniteQuery([10, 20, 30], [9, 19.5, 31], max_shift=10), **request)
    forms = [design, design.mechanism]
    if certify:
        design.save(tmp_path / "proof.json")
        forms += [design.certificate, wb.load(tmp_path / "proof.json")]
    for form in forms:
        assert {*wb.sample(form, 200, answer="20").tolist()} == {9.0, 19.5, 31.0}
        with pytest.raises(
            wb.InvalidRequest, match=r"answer must be one of the 3 labels from 10 to 30\. Got 2\."
        ):
            wb.sample(form, 3, answer=2)
        assert as_mechanism(form).law(10) == design.mechanism.rows[0]
        error = wb.audit(form, loss="squared").error
        assert float(error.mean_error) == pytest.approx(design.objective, rel=1e-6)
        assert error.worst_input in (10, 20, 30)
        error = wb.audit(form, data=[30, 30]).error
        assert float(error.mean_error) == pytest.approx(
            float(design.mechanism.rows[2].floats @ [21, 10.5, 1])
        )


def test_a_designed_channel_of_texts_publishes_texts(tmp_path: Path):
    question = wb.FiniteQuery(["no", "maybe", ("yes", 1)], ["no", "else"], neighbours="consecutive")
    design = wb.design(question, loss=[[0, 1], [1, 0], [1, 0]], epsilon=1)
    design.save(tmp_path / "proof.json")
    for form in (design, design.certificate, wb.load(tmp_path / "proof.json")):
        assert {*wb.sample(form, 200, answer="maybe").tolist()} == {"no", "else"}
        assert len(wb.sample(form, 3, answer=("yes", 1))) == 3
        for bad in (1, "yes", None):
            with pytest.raises(
                wb.InvalidRequest, match=r"answer must be one of the 3 inputs, such as 'no'\. Got "
            ):
                wb.sample(form, 3, answer=bad)
        error = wb.audit(form, loss="error-rate").error
        assert (error.worst_error, error.worst_input) == (1.0, "maybe")
        with pytest.raises(
            wb.InvalidRequest,
            match="loss must be error-rate for inputs and outputs that are no numbers",
        ):
            wb.audit(form, loss="absolute")


def test_the_file_of_a_label_randomizer_keeps_the_labels(tmp_path: Path):
    """The label 0.1 is no short binary fraction."""
    randomizer = rr_on_bins(wb.Labels([0.1, 0.7, 5]), starts=[0, 2], values=[-7.5, 8.25], epsilon=1)
    proof = wb.certify(randomizer, "pure", 1, record=RECORD_WITHOUT_LABELS)
    wb.save(proof, tmp_path / "proof.json")
    loaded: Any = wb.load(tmp_path / "proof.json")
    for label in (0.1, "5"):
        assert {*wb.sample(loaded, 200, answer=label)} == {-7.5, 8.25}
    assert float(wb.audit(loaded, loss="absolute").error.mean_error) == pytest.approx(
        float(wb.audit(randomizer, loss="absolute").error.mean_error)
    )


# A record may have labels under these keys. Other values are ignored.
RECORD_WITHOUT_LABELS = {"inputs": "table.csv", "outputs": 3}


def test_a_channel_without_labels_publishes_its_column_numbers():
    proof = wb.certify(Channel.from_rows(ROWS), "pure", "1.4", record=RECORD_WITHOUT_LABELS)
    assert proof.mechanism.axis_labels is None  # type: ignore[union-attr]
    assert {*wb.sample(proof, 200, answer=1)} == {0, 1, 2}


def test_a_channel_needs_a_label_for_each_row_and_column():
    rows = Channel.from_rows(ROWS).rows
    two_inputs = (Fraction(1), Fraction(2))
    three_outputs = (Fraction(0), Fraction(1), Fraction(2))
    with pytest.raises(
        wb.InvalidRequest, match=r"axis_labels must be 3 inputs and 3 outputs\. Got \[2, 3\]\."
    ):
        Channel(rows, None, (two_inputs, three_outputs))


@pytest.mark.parametrize(
    "column",
    [
        np.ma.masked_array([0.1, 0.2], [False, True]),
        [np.ma.masked_array([0.1], [True])],
        ["1_0"],
        ["\uff11"],
        [1j],
        np.array([1, 2], "timedelta64[s]"),
        np.array(["2020-01-01"], "datetime64[D]"),
        [0.1, np.nan],
    ],
)
def test_every_mechanism_refuses_values_that_are_no_plain_numbers(column: Any):
    for publish in (
        rqm("-2,-0.5,0.5,2", "0.3").sample,
        poisson_binomial(4, epsilon=1).sample,
        rr_k_ary(LABELS, 1).sample,
        Channel.from_rows(ROWS).sample,
        wb.LabelRandomizer([0, 1], 1, lambda labels, epsilon: rr_k_ary(labels, epsilon)).run,
        lambda x: wb.DyadicLaplace(epsilon=1, ell=2).encode(
            x, SharedStream(bytes(32), bytes(16)), LocalStream()
        ),
    ):
        with pytest.raises(wb.InvalidRequest):
            publish(column)


@pytest.mark.parametrize(
    "epsilon", ["1_0", "\uff11", np.timedelta64(3, "s"), np.datetime64("2020-01-01")]
)
def test_an_epsilon_that_is_no_plain_number_is_refused(epsilon: Any):
    with pytest.raises(wb.InvalidRequest, match=r"^epsilon must be"):
        wb.audit(CASES["k-ary"].mechanism, epsilon)


def test_a_profile_is_saved_as_a_table_and_a_picture(tmp_path: Path) -> None:
    design = wb.design(wb.ModuloNoise(6, max_shift=2), epsilon=1, delta="0.1")
    profile = wb.profile(design)
    (table,) = profile.save(tmp_path / "profile.csv")
    lines = table.read_text("utf-8").splitlines()
    assert lines[0] == "epsilon,delta"
    assert [float(line.split(",")[1]) for line in lines[1:]] == pytest.approx(
        [profile.delta(e) for e in profile.breakpoints.tolist()], rel=1e-11
    )
    assert [file.name for file in profile.save(tmp_path / "all")] == [
        "profile.csv",
        "profile.png",
        "profile.svg",
        "profile.pdf",
    ]
    assert str(design.oracle).startswith(f"{design.oracle.name} ")
