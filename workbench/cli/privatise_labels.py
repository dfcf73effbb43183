"""The command `privatise labels`: a column of labels under label DP, with a private prior."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report
from workbench.cli.privatise import Publication
from workbench.errors import InvalidRequest, must

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.data.csv_column import CsvColumn

# Names of the methods in reports.
_METHOD_NAMES = {"bins": "RR-on-Bins", "unbiased": "the unbiased randomizer"}
_PRIVATE_SET_NOTE = (
    "The label set was read from the column. This is not private, because the bins reveal its "
    "ends. The guarantee holds between columns with the same label set, not between any two "
    "values. Give --labels to fix the label set beforehand."
)


def privatise_labels(
    *,
    column: str,
    epsilon: str,
    loss: str,
    labels: str | None,
    snap: bool,
    split: str,
    epsilon1: str | None,
    projection: str,
    method: str,
    time_limit: float,
    **files: Any,
) -> Report:
    """Randomize a column of labels under label DP (Algorithm 3 of Ghazi et al. 2023).

    The prior is estimated privately from the same labels. The method bins has the smallest loss for
    this prior, but moves the mean towards the middle of the labels. The method unbiased does not,
    but its loss is larger. The file OUT.csv.json states the budgets, the method, its outputs, the
    expected error and the bias. It may be published with the randomized column. Other columns that
    are copied are not private: OUT.csv is then readable for its owner only.

    Args:
        column: Name or number of the column.
        epsilon: Total privacy budget.
        loss: Name of the loss.
        labels: The public label set. None: the values of the column.
        snap: Whether values are clipped to the label set and rounded down to a label.
        split: How the budget is divided between the prior and the labels (see --help).
        epsilon1: ε of the prior, instead of `split`.
        projection: Projection of the noisy counts.
        method: "bins" or "unbiased".
        time_limit: Seconds of the design.
        files: Options of files and columns.
    """
    from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
    from workbench.privacy.privacy_budget import PrivacyBudget
    from workbench.privacy.row_cost import RowCost

    run = Publication({"labels": labels}, **files, protected="Label DP protects the labels only")
    InvalidRequest.check_choice(_METHOD_NAMES, "method", method)
    if method == "unbiased" and loss != "squared":
        must("loss", "squared if method is unbiased", repr(loss))
    columns = run.read([column])
    numbers = columns.private[0].numbers()
    label_set, values = _read_labels(columns.private[0], numbers, labels, snap)
    from workbench.families.labels.problem import find_best_bins
    from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer
    from workbench.pipeline.api import design

    def design_response(prior: Any, response_epsilon: Fraction) -> Any:
        if method == "bins":
            return find_best_bins(prior, response_epsilon, loss)
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
    release = randomizer.run(values, run.random_source)
    mechanism = release.mechanism
    method_name = _METHOD_NAMES[method]
    bins = None
    if isinstance(mechanism, RandomizedResponse):
        bins = mechanism.bins()
    label_source = "given"
    notes = []
    if labels is None:
        label_source = "taken from the column"
        notes.append(_PRIVATE_SET_NOTE)
    report = {
        "column": column,
        "labels": release.label_set.k,
        "label_set": label_source,
        "method": f"LabelRandomizer (Algorithm 3): private prior, {method_name}",
        "epsilon": float(release.epsilon),
        "epsilon1": float(release.epsilon_prior),
        "epsilon2": float(release.epsilon_response),
        "neighbours": "columns that differ in the label of one row",
        "loss": loss,
        "split": split if epsilon1 is None else None,
        "projection": projection,
        "d": int(mechanism.outputs.size),
        "outputs": mechanism.outputs.tolist(),
        "bins": bins,
        "expected_error": release.expected_error,
        "words": notes,
    }
    shares = f"{report['epsilon1']:.6g} (prior) + {report['epsilon2']:.6g} (response)"
    outputs = f"{report['d']}, of {method_name}, optimal for the private prior, {loss} loss"
    lines = [
        ("epsilon", f"{report['epsilon']:g} = {shares}"),
        ("labels", f"{report['labels']}, {report['label_set']}"),
        ("outputs", outputs),
    ]
    budget = PrivacyBudget(release.epsilon)
    # The ends of a label set that was read from the column are not protected.
    any_two = budget if labels is not None else PrivacyBudget(None)
    domain = "the label set" if labels is not None else None
    cost = RowCost(neighbours=budget, any_two=any_two, is_local=False, domain=domain, notion="pure")
    return run.publish(columns, numbers, [release.labels], cost, report, lines)


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
        lower_positions = np.searchsorted(label_set, numbers, side="right") - 1
        positions = np.where(positions < 0, np.maximum(lower_positions, 0), positions)
    rule = f"one of the {label_set.size} labels"
    column.refuse_rows(positions < 0, rule, "--snap clips and rounds down")
    return label_set, label_set[positions]
