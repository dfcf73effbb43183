"""The command `privatise labels`: a column of labels under label DP, with a private prior."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report
from workbench.cli.privatise import Publication
from workbench.errors import InvalidRequest, must

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.data.csv_column import CsvColumn
    from workbench.exact.objects import Record
    from workbench.io.shown import Facts
    from workbench.mechanisms.label_randomizers.label_randomizer import BucketRelease, Release
    from workbench.pipeline.design import Design

# Names of the methods in reports.
_METHOD_NAMES = {
    "bins": "RR-on-Bins",
    "unbiased": "the unbiased randomizer",
    "rr-with-prior": "RRWithPrior",
}
_BUCKET_NOTE = (
    "The column of --bucket must be public. The report states its values and the number of rows "
    "with each of them. The budget of a row is the same as without buckets, because every label "
    "is in one bucket."
)
_PRIVATE_SET_NOTE = (
    "The label set was read from the column. This is not private, because the outputs reveal "
    "labels of the column. The guarantee holds between columns with the same label set, not "
    "between any two values. Give --labels to fix the label set beforehand."
)


def privatise_labels(
    *,
    column: str,
    epsilon: str,
    loss: str,
    labels: str | None,
    snap: bool,
    split: str | None,
    epsilon1: str | None,
    projection: str,
    method: str,
    outputs: str,
    training_loss: str | None,
    bucket: str | None,
    time_limit: float,
    **files: Any,
) -> Report:
    """Randomize a column of labels under label DP (Algorithm 3 of Ghazi et al. 2023).

    The prior is estimated privately from the same labels. The method bins has the smallest loss for
    this prior, but moves the mean towards the middle of the labels. The method unbiased does not,
    but its loss is larger. With --outputs labels every published value is a label, such as a score
    from 1 to 5. The file OUT.csv.json states the budgets, the method, its outputs, the expected
    error and the bias. It may be published with the randomized column. Copied columns are not
    randomized, so only the owner can read OUT.csv if there are any.

    Args:
        column: Name or number of the column.
        epsilon: Total privacy budget.
        loss: Name of the loss.
        labels: The public label set. None: the values of the column.
        snap: Whether values are clipped to the label set and rounded down to a label.
        split: How the budget is divided between the prior and the labels (see --help). None: 1.
        epsilon1: ε of the prior, instead of `split`.
        projection: Projection of the noisy counts.
        method: "bins", "unbiased" or "rr-with-prior".
        outputs: "real" for the outputs of the method, or "labels" for outputs that are labels.
        training_loss: Loss for which every output is replaced by the best estimate of the label.
        bucket: Name or number of a public column. The rows of each value have their own prior.
        time_limit: Seconds of the design.
        files: Options of files and columns.
    """
    from workbench.exact.numbers import read_positive
    from workbench.models.losses import parse_loss
    from workbench.pipeline.outcome import translate_errors
    from workbench.privacy.privacy_budget import PrivacyBudget
    from workbench.privacy.row_cost import RowCost

    run = Publication({"labels": labels}, **files, protected="Label DP protects the labels only")
    InvalidRequest.check_choice(_METHOD_NAMES, "method", method)
    if method == "unbiased" and loss != "squared":
        must("loss", "squared if method is unbiased", repr(loss))
    if method == "unbiased" and training_loss is not None:
        rule = "left out if method is unbiased, because estimates are biased"
        must("training_loss", rule, training_loss)
    if training_loss is not None:
        with translate_errors():
            parse_loss(training_loss, option="training_loss")
    _check_outputs(outputs, method, training_loss)
    if split is not None and epsilon1 is not None:
        must("split", "left out with epsilon1, which is used instead", split)
    split = split or "1"
    budget = PrivacyBudget(read_positive(epsilon, "epsilon"))
    # The ends of a label set that is read from the column are not protected.
    any_two = budget if labels is not None else PrivacyBudget(epsilon=None)
    domain = "the label set" if labels is not None else None
    cost = RowCost(neighbours=budget, any_two=any_two, is_local=False, domain=domain, notion="pure")
    run.check_ledger(cost)
    columns = run.read([column], bucket)
    numbers = columns.private[0].numbers()
    label_set, values = _read_labels(columns.private[0], numbers, labels, snap)
    from workbench.families.labels.denoising import use_best_estimates
    from workbench.families.labels.problem import find_best_bins
    from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer
    from workbench.mechanisms.label_randomizers.randomized_response import rr_with_prior
    from workbench.pipeline.api import design

    restricted_designs: list[Design] = []

    def design_response(prior: Any, response_epsilon: Fraction) -> Any:
        """Design the randomizer of labels for a prior and the ε that is left for the labels."""
        if outputs == "labels" and method == "bins":
            options = {"epsilon": response_epsilon, "method": "lp", "loss": loss}
            restricted = design(prior, **options, time_limit=time_limit)
            restricted_designs.append(restricted)
            return restricted.mechanism
        if method != "unbiased":
            if method == "bins":
                response = find_best_bins(prior, response_epsilon, loss)
            else:
                response = rr_with_prior(prior, response_epsilon)
            if training_loss is not None:
                response = use_best_estimates(response, training_loss)
            return response
        options = {"epsilon": response_epsilon, "method": method, "time_limit": time_limit}
        return design(prior, **options).mechanism

    randomizer = LabelRandomizer(
        label_set,
        epsilon,
        design_response,
        split=split,
        projection=projection,
        epsilon_prior=epsilon1,
    )
    method_name = _METHOD_NAMES[method]
    if outputs == "labels" and method == "bins":
        method_name = "the best channel whose outputs are labels"
    release: Release | BucketRelease
    entries: Record
    if columns.bucket is None:
        release = randomizer.run(values, run.random_source)
        entries = _describe_release(release)
    else:
        # Spaces around a cell cannot be seen, so "a" and "a " are one bucket.
        bucket_names = [cell.strip() for cell in columns.bucket.cells]
        release = randomizer.run_in_buckets(values, bucket_names, run.random_source)
        entries = {"bucket": columns.bucket.name, "buckets": {}}
        for name, part in release.releases.items():
            entries["buckets"][name] = {"rows": release.counts[name], **_describe_release(part)}
    _add_restricted_losses(entries, release, restricted_designs, loss)
    label_source = "given"
    notes = []
    if labels is None:
        label_source = "taken from the column"
        notes.append(_PRIVATE_SET_NOTE)
    if columns.bucket is not None:
        notes.append(_BUCKET_NOTE)
    if training_loss is not None:
        entries["training_loss"] = training_loss
    report = {
        "column": column,
        "labels": randomizer.labels.k,
        "label_set": label_source,
        "method": f"LabelRandomizer (Algorithm 3): private prior, {method_name}",
        "epsilon": float(randomizer.epsilon),
        "neighbours": "columns that differ in the label of one row",
        # RRWithPrior depends on no loss.
        "loss": None if method == "rr-with-prior" else loss,
        "split": split if epsilon1 is None else None,
        "projection": projection,
        **entries,
        "expected_error": release.expected_error,
        "words": notes,
    }
    lines = _list_lines(report, method_name)
    return run.publish(columns, numbers, [release.labels], cost=cost, report=report, lines=lines)


def _check_outputs(outputs: str, method: str, training_loss: str | None) -> None:
    """Raise InvalidRequest if the outputs are unknown, or do not fit the other options."""
    InvalidRequest.check_choice(("real", "labels"), "outputs", outputs)
    if outputs == "real":
        return
    if method == "unbiased":
        rule = "real with method unbiased, because an unbiased output can lie beyond the labels"
        must("outputs", rule, outputs)
    if training_loss is not None:
        rule = "left out with --outputs labels, because estimates are no labels"
        must("training_loss", rule, training_loss)


def _add_restricted_losses(
    entries: Record, release: Release | BucketRelease, designs: Sequence[Design], loss: str
) -> None:
    """Add the losses of outputs that are labels to the entries of a report.

    They are functions of the private prior, so they may be published. Without such designs, nothing
    is added.

    Args:
        entries: The entries of the report. With buckets, "buckets" has the entries of each one.
        release: The release.
        designs: The design of each release, in order. Empty if outputs may be any real numbers.
        loss: Name of the loss.
    """
    from workbench.mechanisms.label_randomizers.label_randomizer import Release

    if not designs:
        return
    if isinstance(release, Release):
        parts = [(release, entries)]
    else:
        parts = [(part, entries["buckets"][name]) for name, part in release.releases.items()]
    for (part, target), restricted in zip(parts, designs, strict=True):
        is_used = restricted.mechanism.matrix.max(axis=0) > 0
        target["outputs"] = part.mechanism.outputs[is_used].tolist()
        target["d"] = len(target["outputs"])
        target["expected_loss"] = restricted.objective
        target["lower_bound_with_these_outputs"] = restricted.bound
        target["expected_loss_with_real_outputs"] = _compute_real_loss(part, loss)


def _compute_real_loss(release: Release, loss: str) -> float | None:
    """Return the smallest expected loss with real outputs under the private prior.

    None if it is not known for the loss.
    """
    from workbench.families.labels.problem import find_best_bins
    from workbench.models.losses import parse_loss

    try:
        bins = find_best_bins(release.label_set, release.epsilon_response, loss)
    except InvalidRequest:
        return None
    return float(release.label_set.prior @ bins.losses(parse_loss(loss)))


def _describe_release(release: Release) -> Record:
    """Return the entries of a report about the mechanism of a release."""
    mechanism: Any = release.mechanism
    has_bins = getattr(mechanism, "name", None) == "RR-on-Bins"
    return {
        "epsilon1": float(release.epsilon_prior),
        "epsilon2": float(release.epsilon_response),
        "d": int(mechanism.outputs.size),
        "outputs": mechanism.outputs.tolist(),
        "bins": mechanism.bins() if has_bins else None,
    }


def _list_lines(report: Record, method_name: str) -> Facts:
    """Return the lines for the owner: budgets, labels, outputs, and a line for every bucket."""
    loss = report["loss"]
    training_loss = report.get("training_loss")

    def describe_shares(entries: Record) -> str:
        """Describe how the budget is divided between the prior and the response."""
        return f"{entries['epsilon1']:.6g} (prior) + {entries['epsilon2']:.6g} (response)"

    text = f"of {method_name}, optimal for the private prior, {loss} loss"
    if loss is None:
        text = f"of {method_name} for the private prior"
    elif training_loss is not None:
        text = f"of {method_name} for the private prior and {loss} loss"
    if training_loss is not None:
        text = f"{text}, replaced by the best estimates for {training_loss} loss"
    labels = ("labels", f"{report['labels']}, {report['label_set']}")
    if "buckets" not in report:
        lines: Facts = [
            ("epsilon", f"{report['epsilon']:g} = {describe_shares(report)}"),
            labels,
            ("outputs", f"{report['d']}, {text}"),
        ]
        if "expected_loss" in report:
            lines.append(("expected loss", _describe_restricted_loss(report)))
        return lines
    lines = [labels, ("outputs", text)]
    for name, entries in report["buckets"].items():
        shares = describe_shares(entries)
        bucket_text = f"{name}: {entries['rows']} rows, epsilon {shares}, {entries['d']} outputs"
        if "expected_loss" in entries:
            bucket_text = f"{bucket_text}, expected loss {_describe_restricted_loss(entries)}"
        lines.append(("bucket", bucket_text))
    return lines


def _describe_restricted_loss(entries: Record) -> str:
    """Describe the expected loss of outputs that are labels, its bound, and that of real ones."""
    text = f"{entries['expected_loss']:.6g}"
    if entries["lower_bound_with_these_outputs"] is not None:
        text += f" (proven lower bound {entries['lower_bound_with_these_outputs']:.6g})"
    if entries["expected_loss_with_real_outputs"] is not None:
        text += f"; with real outputs {entries['expected_loss_with_real_outputs']:.6g}"
    return text


def _read_labels(
    column: CsvColumn, numbers: NDArray[Any], labels: str | None, snap: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the label set, shape (k,), and the label of each row, shape (rows,).

    A number means the label from which it differs by at most 4 units in the last place of the
    largest label. Example: 0.1 + 0.2 means the label 0.3. Raises InvalidRequest if a number means
    no label.

    Args:
        column: The column, for errors.
        numbers: Numbers of the column.
        labels: Text of the label set. None: the set consists of the numbers of the column.
        snap: Whether other numbers are clipped to the label set and rounded down to a label.
    """
    import numpy as np

    from workbench.data.tolerance import find_nearest_positions
    from workbench.questions.labels import Labels

    if labels is None:
        return np.unique(numbers), numbers
    label_set = Labels.parse(labels).values
    positions = find_nearest_positions(label_set, numbers)
    if snap:
        # Only numbers that mean no label are rounded down.
        # This is the last label that is at most the number, or -1 if the number is below all.
        lower_positions = np.searchsorted(label_set, numbers, side="right") - 1
        positions = np.where(positions < 0, np.maximum(lower_positions, 0), positions)
    rule = f"one of the {label_set.size} labels"
    column.refuse_rows(positions < 0, rule, "--snap clips and rounds down")
    return label_set, label_set[positions]
