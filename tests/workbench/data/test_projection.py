"""Test the projection of longitudes and latitudes against distances on the sphere.

Places in degrees are projected to metres on a plane around a centre: x is proportional to the
longitude, y to the latitude. Far from the centre the distances are distorted, and a warning says by
how much.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.data.projection import Projection, read_degrees

# The mean radius of the Earth.
EARTH_RADIUS_METRES = 6_371_008.8
# The centre of Berlin, in degrees.
BERLIN = Projection(Fraction("13.4"), Fraction("52.52"))


def measure_on_sphere(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Return the distance of two places in degrees, in metres, by the haversine formula."""
    longitude_1, latitude_1 = map(math.radians, first)
    longitude_2, latitude_2 = map(math.radians, second)
    latitude_part = math.sin((latitude_2 - latitude_1) / 2) ** 2
    longitude_part = math.sin((longitude_2 - longitude_1) / 2) ** 2
    haversine = latitude_part + math.cos(latitude_1) * math.cos(latitude_2) * longitude_part
    return 2 * EARTH_RADIUS_METRES * math.asin(math.sqrt(haversine))


def test_a_degree_to_the_north_has_the_length_of_hand_calculation() -> None:
    """π 6,371,008.8 / 180 = 111,195.080."""
    _, metres_per_degree_of_latitude = BERLIN.metres_per_degree
    assert metres_per_degree_of_latitude == Fraction("111195.080")


@pytest.mark.parametrize("place", [("13.5", "52.6"), ("13.3", "52.45"), ("13.40", "52.60")])
def test_distances_near_the_centre_are_those_on_the_sphere(place: tuple[str, str]) -> None:
    longitude, latitude = place
    x, y = BERLIN.project((Fraction(longitude), Fraction(latitude)))
    on_sphere = measure_on_sphere((13.4, 52.52), (float(longitude), float(latitude)))
    assert math.hypot(x, y) == pytest.approx(on_sphere, rel=2e-3)


def test_equal_steps_of_degrees_are_exactly_equal_steps_of_the_plane() -> None:
    """Metric privacy relies on places that lie exactly between others."""
    points = [(Fraction(13) + Fraction(k, 7), Fraction(52) + Fraction(k, 11)) for k in range(3)]
    first, middle, last = map(BERLIN.project, points)
    assert (first[0] + last[0], first[1] + last[1]) == (2 * middle[0], 2 * middle[1])


def test_floats_and_degrees_return_to_the_same_place() -> None:
    longitudes = np.array([13.38, 13.4, 14.0])
    latitudes = np.array([52.4, 52.52, 53.0])
    degrees = BERLIN.to_degrees(BERLIN.project_floats(longitudes, latitudes))
    assert degrees == pytest.approx(np.column_stack([longitudes, latitudes]), abs=1e-7)


def test_longitudes_are_continued_across_the_date_line() -> None:
    fiji = Projection(Fraction(179), Fraction(-17))
    metres_per_degree_of_longitude, _ = fiji.metres_per_degree
    x, _ = fiji.project((Fraction(-179), Fraction(-17)))
    assert x == 2 * metres_per_degree_of_longitude
    ((x, _),) = fiji.project_floats(np.array([-179.0]), np.array([-17.0]))
    assert x > 0


def test_only_places_far_from_the_centre_are_distorted() -> None:
    """99 km to the north there is no warning. At 54.52 degrees cos 52.52 / cos 54.52 = 1.0483."""
    near = BERLIN.project((Fraction("13.4"), Fraction("53.41")))
    assert BERLIN.describe_distortion([near]) is None
    far = BERLIN.project((Fraction("13.4"), Fraction("54.52")))
    warning = BERLIN.describe_distortion([near, far])
    assert warning is not None
    assert "222 km" in warning
    assert "up to 4.8 %" in warning


def test_the_centre_is_the_middle_of_the_ranges() -> None:
    points = [(Fraction(1), Fraction(10)), (Fraction(4), Fraction(20)), (Fraction(1), Fraction(12))]
    assert Projection.around(points) == Projection(Fraction(5, 2), Fraction(15))


def test_the_centre_of_places_at_the_date_line_is_between_them() -> None:
    points = [(Fraction("179.9"), Fraction(0)), (Fraction("-179.8"), Fraction(0))]
    assert Projection.around(points) == Projection(Fraction("180.05"), Fraction(0))


def test_places_near_each_other_at_the_opposite_meridian_are_reported_as_distorted() -> None:
    """22.239 km on the sphere are 359.8 degrees of the plane: a factor of 1799."""
    atlantic = Projection(Fraction(0), Fraction(0))
    places = [atlantic.project((Fraction(text), Fraction(0))) for text in ("179.9", "-179.9")]
    warning = atlantic.describe_distortion(places)
    assert warning is not None
    assert "up to 179800 %" in warning


def test_two_places_on_both_sides_of_a_pole_are_reported_as_distorted() -> None:
    """At 80 degrees, 178 degrees of longitude are 3436.94 km in the plane and 2223.60 km.

    The second distance is that on the sphere, by the haversine formula.
    """
    arctic = Projection(Fraction(0), Fraction(80))
    places = [arctic.project((Fraction(text), Fraction(80))) for text in ("89", "-89")]
    on_sphere = measure_on_sphere((89.0, 80.0), (-89.0, 80.0))
    (first_x, _), (second_x, _) = places
    percent = 100 * (float(first_x - second_x) / on_sphere - 1)
    warning = arctic.describe_distortion(places)
    assert warning is not None
    assert f"up to {percent:.2g} %" in warning


def test_places_near_a_pole_are_distorted_within_100_km() -> None:
    """90 km north of 85 degrees: cos 85 / cos 85.8094 = 1.193."""
    arctic = Projection(Fraction(0), Fraction(85))
    warning = arctic.describe_distortion([(Fraction(0), Fraction(90_000))])
    assert warning is not None
    assert "up to 19 %" in warning


@pytest.mark.parametrize("text", ["13.4", "13.4,52,1", "a,b", "13.4,89", "400,10"])
def test_a_wrong_centre_is_refused(text: str) -> None:
    with pytest.raises(wb.InvalidRequest, match="centre"):
        Projection.parse(text)


@pytest.mark.parametrize("place", [(Fraction(13), Fraction(91)), (Fraction(-181), Fraction(0))])
def test_a_place_outside_the_earth_is_refused(place: tuple[Fraction, Fraction]) -> None:
    with pytest.raises(wb.InvalidRequest, match="longitude in -180"):
        BERLIN.project(place)


def test_a_record_of_other_data_has_no_projection() -> None:
    assert Projection.from_dict(BERLIN.to_dict()) == BERLIN
    for data in (None, {}, {"unit": "m"}, {"unit": "m", "longitude": "x", "latitude": "1"}):
        assert Projection.from_dict(data) is None


def test_named_columns_and_weights_are_read(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("name,lat,weight,lon\na,52.5,3,13.4\nb,52.6,1,13.5\n")
    points, weights = read_degrees(path, "lon", "lat")
    assert points[0] == (Fraction("13.4"), Fraction("52.5"))
    assert weights == [Fraction(3), Fraction(1)]


def test_an_unknown_column_of_longitudes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("name,lat,weight,lon\na,52.5,3,13.4\nb,52.6,1,13.5\n")
    with pytest.raises(wb.InvalidRequest, match="x must be a column of city"):
        read_degrees(path, "x", "lat")


def test_too_many_places_in_degrees_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("lon,lat\n" + "13.4,52.5\n" * 4001)
    with pytest.raises(wb.InvalidRequest, match=r"places must be at most 4000\. Got 4001"):
        read_degrees(path, "lon", "lat")


def test_a_question_in_degrees_needs_neighbours_of_a_norm() -> None:
    points = [(Fraction("13.4"), Fraction("52.5")), (Fraction("13.5"), Fraction("52.5"))]
    query = wb.FiniteQuery(points, neighbours="all L2", projection=BERLIN)
    assert query.inputs[0] == BERLIN.project(points[0])
    with pytest.raises(wb.InvalidRequest, match="neighbours"):
        wb.FiniteQuery(points, neighbours=[points], projection=BERLIN)


def test_a_question_reads_files_in_degrees_with_a_projection_only(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("lon,lat,weight\n13.4,52.5,3\n13.5,52.5,1\n")
    query = wb.FiniteQuery(path, path, neighbours="all L2", projection=BERLIN)
    assert query.outputs == query.inputs
    assert query.prior == (Fraction(3, 4), Fraction(1, 4))
    with pytest.raises(wb.InvalidRequest, match="coordinates on a plane"):
        wb.FiniteQuery(path, neighbours="all L2")


def test_a_file_with_the_latitude_first_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("lat,lon\n52.5,13.4\n52.5,13.5\n")
    with pytest.raises(wb.InvalidRequest, match="a longitude before its latitude"):
        wb.FiniteQuery(path, neighbours="all L2", projection=BERLIN)
