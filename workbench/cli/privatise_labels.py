"""`workbench privatise labels`: a column of labels under label DP, its prior learnt from the same budget."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report
from workbench.cli.privatise import Publication
from workbench.errors import InvalidRequest, must

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workbench.data.csv_column import CsvColumn

_LABEL_METHODS = {"bins": "RR-on-Bins", "unbiased": "the unbiased randomizer"}
_UNKNOWN = (
    "The label set was read from the column, and that is not private: its ends stand in the bins. The guarantee holds "
    "among columns over this very set, and not between any two values; give --labels to fix it beforehand."
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
    """Randomize a column of labels under label DP (Algorithm 3), with a private prior and the best bins for it.

    Bins shift means towards the middle; --method unbiased shifts none, at a larger loss. Beside OUT.csv, OUT.csv.json
    states the budgets, the method, its outputs, expected error and bias; all of it is safe to publish. A new OUT.csv
    that copies other columns is readable by its owner only.
    """
    from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
    from workbench.privacy.privacy_budget import PrivacyBudget
    from workbench.privacy.row_cost import RowCost

    run = Publication({"labels": labels}, **files, protected="Label DP protects the labels only")
    InvalidRequest.check_choice(_LABEL_METHODS, "method", method)
    if method == "unbiased" and loss != "squared":
        must("loss", "squared where method is unbiased", repr(loss))
    columns = run.read([column])
    given = columns.private[0].numbers()
    known, values = _labels(columns.private[0], given, labels, snap)
    from workbench.families.labels.problem import find_best_bins
    from workbench.mechanisms.label_randomizers.label_randomizer import LabelRandomizer
    from workbench.pipeline.api import design

    def best(prior: Any, second: Fraction) -> Any:
        if method == "bins":
            return find_best_bins(prior, second, loss)
        return design(prior, epsilon=second, method=method, time_limit=time_limit).mechanism

    release = LabelRandomizer(
        known, epsilon, best, split=split, projection=projection, epsilon_prior=epsilon1
    ).run(values, run.random_source)
    mechanism = release.mechanism
    report = {
        "column": column, "labels": release.label_set.k,
        "label_set": "given" if labels is not None else "taken from the column",
        "method": f"LabelRandomizer (Algorithm 3): private prior, {_LABEL_METHODS[method]}",
        "epsilon": float(release.epsilon), "epsilon1": float(release.epsilon_prior),
        "epsilon2": float(release.epsilon_response), "neighbours": "columns that differ in the label of one row",
        "loss": loss, "split": None if epsilon1 is not None else split, "projection": projection,
        "d": int(mechanism.outputs.size), "outputs": mechanism.outputs.tolist(),
        "bins": mechanism.bins() if isinstance(mechanism, RandomizedResponse) else None,
        "expected_error": release.expected_error, "words": [_UNKNOWN] if labels is None else [],
    }  # fmt: skip
    shares = f"{report['epsilon1']:.6g} (prior) + {report['epsilon2']:.6g} (response)"
    outputs = f"{report['d']}, of {_LABEL_METHODS[method]}, best for the private prior, {loss} loss"
    lines = [
        ("epsilon", f"{report['epsilon']:g} = {shares}"),
        ("labels", f"{report['labels']}, {report['label_set']}"),
        ("outputs", outputs),
    ]
    budget = PrivacyBudget(release.epsilon)
    if labels is None:
        cost = RowCost(budget, PrivacyBudget(None), False, None, "pure")
    else:
        cost = RowCost(budget, budget, False, "the label set", "pure")
    return run.publish(columns, given, [release.labels], cost, report, lines)


def _labels(
    column: CsvColumn, given: NDArray[Any], labels: str | None, snap: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The label set, and the labels of the rows.

    A number is a label where they differ by at most 4 units in the last place of the largest label: 0.1 + 0.2 is the
    label 0.3. Raises InvalidRequest where a row has none of the set.
    """
    import numpy as np

    from workbench.data.tolerance import find_nearest_positions
    from workbench.questions.labels import Labels

    if labels is None:
        return np.unique(given), given
    known = Labels.parse(labels).values
    positions = find_nearest_positions(known, given)
    if snap:  # 0.3 is 0.30000000000000004 among computed labels, and not the label below it
        below = np.maximum(np.searchsorted(known, given, side="right") - 1, 0)
        positions = np.where(positions < 0, below, positions)
    column.refuse_rows(
        positions < 0, f"one of the {known.size} labels", "--snap clips and rounds down"
    )
    return known, known[positions]
