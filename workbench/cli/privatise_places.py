"""`workbench privatise places`: positions published through a channel of places, with exact draws.

A position is first moved to the nearest place (Euclidean, the first of several), which is decided in floating point and
part of the mechanism's input: how far is printed for the owner of the data, and stands in no file. The budget holds
between places; positions nearest to one place are hidden among each other altogether.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.console import Report
from workbench.cli.privatise import Publication
from workbench.errors import must

if TYPE_CHECKING:
    from solvers.arrays import Integers, Vector
    from workbench.privacy.certificate import Certificate
    from workbench.privacy.column_release import PrivacyBudget


def privatise_places(*, columns: str, mechanism: Path, **files: Any) -> Report:
    """Publish positions, two columns of numbers, through a saved channel of places.

    Beside OUT.csv, OUT.csv.json states the mechanism, its budget and its expected distance. How far positions were from
    their nearest places is printed for you alone.
    """
    import numpy as np

    from workbench.exact.sampler import Sampler
    from workbench.io.csv_column import CsvColumn

    run = Publication({"mechanism": mechanism}, **files, protected="Only the positions are protected")
    names = [name.strip() for name in columns.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        must("columns", "two columns, such as x,y", repr(columns))
    certificate, places, outputs = _channel(mechanism)
    tables = [CsvColumn.read(run.source, name) for name in names]
    given = np.column_stack([table.numbers() for table in tables])
    which, moved = _nearest(given, places)
    budget, norm = _budget(certificate)
    channel: Any = certificate.mechanism
    words = ["Every position was first moved to its nearest place."]
    if budget and budget.per_distance:
        words.append(
            f"Distance is {norm} between these places, in the unit of the coordinates; that between the positions "
            "themselves may be less."
        )
    report = {
        "columns": names, "method": "places", "places": len(places), "mechanism": channel.describe(),
        "claim": certificate.claim.to_dict(), "expected_error": _expected(channel, places, outputs), "words": words,
    }  # fmt: skip
    drawn = outputs[Sampler(list(channel.rows), run.drawing).draw_from(which)]
    own = {"moved_mean": float(moved.mean()), "moved_most": float(moved.max())}
    how_far = f"{own['moved_mean']:.6g} to the nearest place on average, {own['moved_most']:.6g} at most"
    cost, lines = (budget, certificate.notion), [("moved", how_far)]
    return run.published(tables, given.ravel(), [*drawn.T], cost, report, lines, own)


def _channel(path: Path) -> tuple[Certificate, Vector, Vector]:
    """The certificate, places and outputs as floats. Raises InvalidRequest for any other file."""
    import numpy as np

    from workbench.mechanisms.plane import planar
    from workbench.privacy.loading import read

    certificate = read(path).certificate
    labelled = None if certificate is None else getattr(certificate.mechanism, "labelled", None)
    if certificate is None or labelled is None or not all(map(planar, labelled)):
        must("mechanism", "the certificate that `workbench design channel --places FILE.csv --save` wrote", path.name)
    places, outputs = (np.array([[float(c) for c in point] for point in each]) for each in labelled)
    return certificate, places, outputs


def _nearest(given: Vector, places: Vector) -> tuple[Integers, Vector]:
    """The nearest place of every position, and how far it is."""
    import numpy as np
    from scipy.spatial import KDTree

    distances, which = KDTree(places).query(given)
    return np.asarray(which), np.asarray(distances)


def _budget(certificate: Certificate) -> tuple[PrivacyBudget | None, str]:
    """The budget, per unit of distance where neighbours have their own, and the norm of that distance."""
    from workbench.mechanisms.plane import Plane
    from workbench.privacy.column_release import PrivacyBudget, budget_of

    norm = str(certificate.record.get("norm", "L2"))
    if not certificate.claim.notion.per_distance or isinstance(certificate.claim.values.get("epsilon"), Fraction):
        return budget_of(certificate.claim), norm
    channel: Any = certificate.mechanism
    plane = Plane(channel.labelled[0], channel.labelled[0], norm)
    each = [value / plane.distance(*pair) for pair, value in certificate.epsilon.items()]
    return PrivacyBudget(max(each), Fraction(0), per_distance=True), norm


def _expected(channel: Any, places: Vector, outputs: Vector) -> dict[str, float]:
    """How far a place is published from itself."""
    import numpy as np

    each = (channel.matrix * np.hypot(*(places[:, None, :] - outputs[None, :, :]).transpose(2, 0, 1))).sum(axis=1)
    return {"largest mean distance from any place": float(each.max()),
            "mean distance, places equally often": float(each.mean())}  # fmt: skip
