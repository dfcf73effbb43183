"""The command `privatise places`, which publishes positions through a channel of places.

1. Each position is moved to its nearest place, by Euclidean distance in floating point.
2. The channel draws an output for this place, exactly.

The budget holds between places. Positions with the same nearest place cannot be distinguished at
all. If a position is farther from every place than the two most distant places are from each other,
it is an error, unless --clip is given. The distances of step 1 are printed for the owner of the
data, and are in no file.
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

# A log-ratio may exceed its limit by this, relatively and absolutely, because of rounding.
_MAX_LOG_RATIO_ERROR = 1e-9


def privatise_places(
    *,
    columns: str | None,
    x: str | None,
    y: str | None,
    mechanism: Path,
    clip: bool,
    **files: Any,
) -> Report:
    """Publish positions (two columns of coordinates) with a saved channel on places.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected distance. The
    distances of the positions to their nearest places are printed only for you.

    Args:
        columns: Names or numbers of the two columns, for places of the plane.
        x: Column of longitudes in degrees, for places that were designed with --x and --y.
        y: Column of latitudes in degrees.
        mechanism: Certificate of the channel.
        clip: Whether positions that are far from every place are moved as well.
        files: Options of files and columns.
    """
    import numpy as np

    from workbench.data.csv_column import read_two_names
    from workbench.data.places import refuse_degrees
    from workbench.data.projection import Projection
    from workbench.exact.numbers import to_jsonable
    from workbench.exact.sampler import Sampler
    from workbench.mechanisms.place_spacing import describe_spacing

    run = Publication(
        {"mechanism": mechanism}, **files, protected="Only the positions are protected"
    )
    plane_names = None
    if columns is not None:
        plane_names = read_two_names(columns, run.source)
    certificate, places, output_places = _read_place_channel(mechanism)
    projection = Projection.from_dict(certificate.record.get("projection"))
    names = _select_columns(plane_names, x, y, is_projected=projection is not None)
    cost, norm = _make_row_cost(certificate, places)
    run.check_ledger(cost)
    file_columns = run.read(names)
    if projection is None:
        refuse_degrees([column.name for column in file_columns.private], "columns")
    numbers = [column.numbers() for column in file_columns.private]
    positions = np.column_stack(numbers)
    if projection is not None:
        positions = projection.project_floats(*numbers)
    place_indices, distances = _find_nearest_places(positions, places)
    max_distance = _find_diameter(places)
    if not clip:
        file_columns.private[0].refuse_rows(
            distances > max_distance,
            f"at most {max_distance:.6g} from a place, with the other column",
            "--clip moves them to the nearest place",
        )
    channel: Any = certificate.mechanism
    notes = ["Every position was first moved to its nearest place."]
    unit = ""
    unit_name = "in the unit of the coordinates"
    if projection is not None:
        unit = "m"
        unit_name = "in metres of the projected plane"
    if cost.neighbours and cost.neighbours.per_distance:
        notes.append(
            f"Distance is {norm} between these places, {unit_name}. The distance between the "
            "positions themselves may be smaller."
        )
    warnings = [describe_spacing(channel.matrix, places, output_places, unit)]
    if projection is not None:
        warnings.append(projection.describe_distortion(channel.axis_labels[0]))
    notes += [f"Warning: {text}" for text in warnings if text is not None]
    report = {
        "columns": names,
        "method": "places",
        "places": len(places),
        "mechanism": channel.describe(),
        "claim": certificate.claim.to_dict(),
        "projection": None if projection is None else projection.to_dict(),
        "expected_error": _expected_distances(channel, places, output_places),
        "clip": clip,
        "words": notes,
    }
    sampler = Sampler(list(channel.rows), run.random_source)
    published_places = output_places
    if projection is not None:
        published_places = projection.to_degrees(output_places)
    outputs = published_places[sampler.draw_from(place_indices)]
    mean = float((distances / distances.size).sum())
    largest_distance = float(distances.max())
    owner_entries = {
        "moved_mean": to_jsonable(mean),
        "moved_most": to_jsonable(largest_distance),
    }
    suffix = f" {unit}" if unit else ""
    mean_text = f"{mean:.6g}{suffix} to the nearest place on average"
    lines = [("moved", f"{mean_text}, {largest_distance:.6g}{suffix} at most")]
    values = positions.ravel()
    return run.publish(
        file_columns,
        values,
        [*outputs.T],
        cost=cost,
        report=report,
        lines=lines,
        owner_entries=owner_entries,
    )


def _select_columns(
    plane_names: list[str] | None, x: str | None, y: str | None, *, is_projected: bool
) -> list[str]:
    """Return the names of the two private columns.

    Raises InvalidRequest unless they are in degrees for projected places, and on the plane for
    others.

    Args:
        plane_names: The two names of --columns. None if the option is not given.
        x: Column of longitudes. None if the option is not given.
        y: Column of latitudes. None if the option is not given.
        is_projected: Whether the certificate is for places in degrees.
    """
    if is_projected:
        if plane_names is not None:
            rule = "left out for places in degrees, which --x and --y name (longitude and latitude)"
            must("columns", rule, ",".join(plane_names))
        if x is None or y is None:
            must("x and y", "given: the columns of longitudes and latitudes in degrees", "none")
        return [x, y]
    for name, value in (("x", x), ("y", y)):
        if value is not None:
            must(name, "left out unless the mechanism was designed with --x and --y", value)
    if plane_names is None:
        must("columns", "given: the two columns of coordinates, such as x,y", "none")
    return plane_names


def _read_place_channel(path: Path) -> tuple[Certificate, Vector, Vector]:
    """Return a certificate, its places and its outputs as floats.

    Raises InvalidRequest if the file is no certificate of a channel of places.
    """
    import numpy as np

    from workbench.privacy.loading import read_mechanism_file
    from workbench.questions.places import Plane, are_planar

    certificate = read_mechanism_file(path).certificate
    axis_labels = None
    if certificate is not None:
        axis_labels = getattr(certificate.mechanism, "axis_labels", None)
    if certificate is None or axis_labels is None or not all(map(are_planar, axis_labels)):
        rule = "a certificate written by `workbench design channel --places FILE.csv --save`"
        must("mechanism", rule, path.name)
    for points in axis_labels:
        # Coordinates that are too large are refused here.
        Plane(points, second=(), norm="L1")
    inputs, outputs = axis_labels
    places = np.array([[float(c) for c in point] for point in inputs])
    output_places = np.array([[float(c) for c in point] for point in outputs])
    return certificate, places, output_places


def _find_nearest_places(positions: Vector, places: Vector) -> tuple[Integers, Vector]:
    """Find the nearest place of every position. Both arguments have the shape (n, 2).

    Coordinates are divided by a power of two above the largest one, so that no square of a
    difference overflows.

    Returns:
        Index of the nearest place of each position, and its distance.
    """
    import numpy as np
    from scipy.spatial import KDTree

    largest = max(float(np.abs(positions).max()), float(np.abs(places).max()))
    _, exponent = math.frexp(largest)
    tree = KDTree(np.ldexp(places, -exponent))
    distances, indices = tree.query(np.ldexp(positions, -exponent))
    # A distance may be larger than every double.
    with np.errstate(over="ignore"):
        return np.asarray(indices), np.ldexp(distances, exponent)


def _find_diameter(places: Vector) -> float:
    """Return the largest distance between two places."""
    import numpy as np

    return max(float(np.hypot(*(places - place).T).max()) for place in places)


def _make_row_cost(certificate: Certificate, places: Vector) -> tuple[RowCost, str]:
    """Return the privacy cost of a position, and the norm of distances.

    Between neighbours, the budget is that of the certificate. Between any two places, it is
    computed exactly from the channel. The cost is local if the budget of the certificate does not
    hold between all places.
    """
    from workbench.mechanisms.channel import Channel
    from workbench.privacy.privacy_budget import PrivacyBudget
    from workbench.privacy.row_cost import RowCost, find_exact_budget

    budget, norm = _read_place_budget(certificate)
    channel: Any = certificate.mechanism
    delta = budget.delta if budget else Fraction(0)
    any_pair_budget = find_exact_budget(Channel(channel.rows), delta) or PrivacyBudget(epsilon=None)
    if budget is None:
        is_local = channel.neighbours is not None
    elif budget.per_distance:
        is_local = not _holds_everywhere(certificate, budget, norm)
    else:
        is_local = not any_pair_budget.is_within(budget)
    if budget and not is_local and not budget.per_distance:
        any_pair_budget = budget
    else:
        any_pair_budget = any_pair_budget.round_up_epsilon()
    cost = RowCost(
        neighbours=budget,
        any_two=any_pair_budget,
        is_local=is_local,
        domain=f"the {len(places)} places",
        notion=certificate.notion,
        neighbour_condition="that the certificate names",
    )
    return cost, norm


def _holds_everywhere(certificate: Certificate, budget: PrivacyBudget, norm: str) -> bool:
    """Return whether log-ratios of any two places are at most ε times their distance.

    The comparison has a tolerance for rounding.
    """
    import numpy as np

    from workbench.questions.places import Plane

    channel: Any = certificate.mechanism
    plane = Plane(channel.axis_labels[0], channel.axis_labels[0], norm)
    with np.errstate(divide="ignore"):
        log_masses = np.log(channel.matrix)
    is_used = np.isfinite(log_masses).any(axis=0)
    log_masses = log_masses[:, is_used]
    if not np.isfinite(log_masses).all() or budget.epsilon is None:
        return False
    for row, law in enumerate(log_masses):
        for other in range(row):
            limit = float(budget.epsilon * plane.distance(row, other))
            log_ratio = np.abs(law - log_masses[other]).max()
            if log_ratio > limit * (1 + _MAX_LOG_RATIO_ERROR) + _MAX_LOG_RATIO_ERROR:
                return False
    return True


def _read_place_budget(certificate: Certificate) -> tuple[PrivacyBudget | None, str]:
    """Return the budget between neighbours, None without ε and δ, and the norm of distances.

    If the pairs of neighbours have different ε, the budget is per unit of distance: the largest
    ratio of ε to the distance of a pair.
    """
    from workbench.privacy.privacy_budget import PrivacyBudget, budget_of_claim
    from workbench.questions.places import Plane

    norm = str(certificate.record.get("norm", "L2"))
    has_one_epsilon = isinstance(certificate.claim.values.get("epsilon"), Fraction)
    if not certificate.claim.notion.is_per_distance or has_one_epsilon:
        return budget_of_claim(certificate.claim), norm
    channel: Any = certificate.mechanism
    plane = Plane(channel.axis_labels[0], channel.axis_labels[0], norm)
    rates = [value / plane.distance(*pair) for pair, value in certificate.epsilon.items()]
    return PrivacyBudget(max(rates), Fraction(0), per_distance=True), norm


def _expected_distances(channel: Any, places: Vector, outputs: Vector) -> dict[str, float]:
    """Return the mean distance between a place and its output, for the worst and the mean place."""
    from workbench.mechanisms.place_spacing import compute_mean_moves

    means = compute_mean_moves(channel.matrix, places, outputs)
    return {
        "largest mean distance from any place": float(means.max()),
        "mean distance, places equally often": float(means.mean()),
    }
