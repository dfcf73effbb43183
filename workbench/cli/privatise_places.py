"""`workbench privatise places`: positions published through a channel of places, with exact draws.

A position is first moved to the nearest place (Euclidean, the first of several), which is decided in floating point and
part of the mechanism's input: how far is printed for the owner of the data, and stands in no file. The budget holds
between places; positions nearest to one place are hidden among each other altogether. A position that is further from
every place than the places are from each other is refused unless --clip moves it as well.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report
from workbench.cli.privatise import Publication
from workbench.errors import must

if TYPE_CHECKING:
    from workbench.privacy.certificate import Certificate
    from workbench.privacy.privacy_budget import PrivacyBudget
    from workbench.privacy.row_cost import RowCost
    from workbench.solvers.arrays import Integers, Vector

_PATH_SLACK = 1e-9  # By how much a budget that follows from a path of others may be rounded.


def privatise_places(*, columns: str, mechanism: Path, clip: bool, **files: Any) -> Report:
    """Publish positions, two columns of numbers, through a saved channel of places.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected distance. How far positions were from
    their nearest places is printed for you alone.
    """
    import numpy as np

    from workbench.data.csv_column import read_two_names
    from workbench.exact.numbers import to_jsonable
    from workbench.exact.sampler import Sampler

    run = Publication(
        {"mechanism": mechanism}, **files, protected="Only the positions are protected"
    )
    names = read_two_names(columns, run.source)
    certificate, places, outputs = _channel(mechanism)
    chosen = run.read(names)
    given = np.column_stack([column.numbers() for column in chosen.private])
    which, moved = _nearest(given, places)
    farthest = _diameter(places)
    if not clip:
        more = "--clip moves them to the nearest place"
        chosen.private[0].refuse_rows(
            moved > farthest, f"at most {farthest:.6g} from a place, with the other column", more
        )
    cost, norm = _cost(certificate, places)
    channel: Any = certificate.mechanism
    words = ["Every position was first moved to its nearest place."]
    if cost.neighbours and cost.neighbours.per_distance:
        words.append(
            f"Distance is {norm} between these places, in the unit of the coordinates; that between the positions "
            "themselves may be less."
        )
    report = {
        "columns": names, "method": "places", "places": len(places), "mechanism": channel.describe(),
        "claim": certificate.claim.to_dict(), "expected_error": _expected(channel, places, outputs), "clip": clip,
        "words": words,
    }  # fmt: skip
    drawn = outputs[Sampler(list(channel.rows), run.random_source).draw_from(which)]
    mean, largest = float((moved / moved.size).sum()), float(moved.max())
    own = {"moved_mean": to_jsonable(mean), "moved_most": to_jsonable(largest)}
    how_far = f"{mean:.6g} to the nearest place on average, {largest:.6g} at most"
    return run.publish(chosen, given.ravel(), [*drawn.T], cost, report, [("moved", how_far)], own)


def _channel(path: Path) -> tuple[Certificate, Vector, Vector]:
    """The certificate, places and outputs as floats. Raises InvalidRequest for any other file."""
    import numpy as np

    from workbench.privacy.loading import read_mechanism_file
    from workbench.questions.places import Plane, are_planar

    certificate = read_mechanism_file(path).certificate
    labelled = None if certificate is None else getattr(certificate.mechanism, "axis_labels", None)
    if certificate is None or labelled is None or not all(map(are_planar, labelled)):
        must(
            "mechanism",
            "the certificate that `workbench design channel --places FILE.csv --save` wrote",
            path.name,
        )
    for points in labelled:
        Plane(points, (), "L1")  # Coordinates that are too large are refused.
    places, outputs = (np.array([[float(c) for c in point] for point in each]) for each in labelled)
    return certificate, places, outputs


def _nearest(given: Vector, places: Vector) -> tuple[Integers, Vector]:
    """The nearest place of every position, and how far it is.

    Coordinates are divided by a power of two above the largest, so that no square of a difference overflows.
    """
    import numpy as np
    from scipy.spatial import KDTree

    power = math.frexp(max(float(np.abs(given).max()), float(np.abs(places).max())))[1]
    distances, which = KDTree(np.ldexp(places, -power)).query(np.ldexp(given, -power))
    with np.errstate(over="ignore"):  # of a distance that no double holds
        return np.asarray(which), np.ldexp(distances, power)


def _diameter(places: Vector) -> float:
    """The largest distance of two places."""
    import numpy as np

    return max(float(np.hypot(*(places - place).T).max()) for place in places)


def _cost(certificate: Certificate, places: Vector) -> tuple[RowCost, str]:
    """What a position costs, and the norm in which distances are measured.

    Between any two places it is the exact privacy loss. A budget per unit of distance is local where it does not hold
    between all places: where the neighbours of the certificate do not imply it.
    """
    from workbench.mechanisms.channel import Channel
    from workbench.privacy.privacy_budget import PrivacyBudget
    from workbench.privacy.row_cost import RowCost, find_exact_budget

    budget, norm = _budget(certificate)
    channel: Any = certificate.mechanism
    delta = budget.delta if budget else Fraction(0)
    any_two = find_exact_budget(Channel(channel.rows), delta) or PrivacyBudget(None)
    if budget is None:
        is_local = channel.neighbours is not None
    elif budget.per_distance:
        is_local = not _holds_everywhere(certificate, budget, norm)
    else:
        is_local = not any_two.is_within(budget)
    any_two = (
        budget
        if budget and not is_local and not budget.per_distance
        else any_two.round_up_epsilon()
    )
    words = f"the {len(places)} places"
    return RowCost(
        budget,
        any_two,
        is_local,
        words,
        certificate.notion,
        neighbour_condition="that the certificate names",
    ), norm


def _holds_everywhere(certificate: Certificate, budget: PrivacyBudget, norm: str) -> bool:
    """Whether log-ratios of any two places are within ε times their distance, but for roundings."""
    import numpy as np

    from workbench.questions.places import Plane

    channel: Any = certificate.mechanism
    plane = Plane(channel.axis_labels[0], channel.axis_labels[0], norm)
    with np.errstate(divide="ignore"):
        logs = np.log(channel.matrix)
    used = np.isfinite(logs).any(axis=0)
    logs = logs[:, used]
    if not np.isfinite(logs).all() or budget.epsilon is None:
        return False
    for row, law in enumerate(logs):
        for other in range(row):
            limit = float(budget.epsilon * plane.distance(row, other))
            if np.abs(law - logs[other]).max() > limit * (1 + _PATH_SLACK) + _PATH_SLACK:
                return False
    return True


def _budget(certificate: Certificate) -> tuple[PrivacyBudget | None, str]:
    """The budget, per unit of distance where neighbours have their own, and the norm of that distance."""
    from workbench.privacy.privacy_budget import PrivacyBudget, budget_of_claim
    from workbench.questions.places import Plane

    norm = str(certificate.record.get("norm", "L2"))
    if not certificate.claim.notion.is_per_distance or isinstance(
        certificate.claim.values.get("epsilon"), Fraction
    ):
        return budget_of_claim(certificate.claim), norm
    channel: Any = certificate.mechanism
    plane = Plane(channel.axis_labels[0], channel.axis_labels[0], norm)
    each = [value / plane.distance(*pair) for pair, value in certificate.epsilon.items()]
    return PrivacyBudget(max(each), Fraction(0), per_distance=True), norm


def _expected(channel: Any, places: Vector, outputs: Vector) -> dict[str, float]:
    """How far a place is published from itself."""
    import numpy as np

    each = (
        channel.matrix * np.hypot(*(places[:, None, :] - outputs[None, :, :]).transpose(2, 0, 1))
    ).sum(axis=1)
    return {"largest mean distance from any place": float(each.max()),
            "mean distance, places equally often": float(each.mean())}  # fmt: skip
