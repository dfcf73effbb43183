"""Project longitudes and latitudes onto a plane in metres around a public centre.

The projection is equirectangular. With the centre (λ0, φ0) and the radius R of the Earth,

    x = k_x (λ - λ0),  k_x = k_y cos φ0          metres to the east
    y = k_y (φ - φ0),  k_y = π R / 180           metres to the north, 111195.08 for each degree

k_x and k_y are rounded to millimetres for each degree. The map is then linear with rational
coefficients, so places at equal steps of longitude and latitude are at exactly equal steps in the
plane. λ - λ0 is taken from [-180, 180).

Distances to the north are those on the sphere. Distances to the east at the latitude φ are wrong by
the factor cos φ0 / cos φ. Within 100 km of the centre this is up to 1.6 % at 45 degrees, 2.8 % at
60 degrees, and 22 % at 85 degrees. The Earth is not a sphere, which changes distances by up to
.6 %. Two places on both sides of the opposite meridian λ0 + 180 are near each other on the sphere,
but at the two ends of the plane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.places import MAX_PLACES
from workbench.data.tables import read_table
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import RationalPair, Rationals, nearest_float, read_number
from workbench.exact.objects import Record
from workbench.io.files import format_fraction

EARTH_RADIUS_METRES = 6_371_008.8  # The mean radius of the Earth (IUGG).
# Within this distance of the centre, a distortion of distances up to the next number needs no
# warning.
_MAX_PLAIN_METRES = 100_000
_MAX_PLAIN_DISTORTION = 0.03
_LONG_RANGE_DEGREES = 180  # A longer range of longitudes may cross the date line.
_MAX_LONGITUDE = 360  # Longitudes are from -180 to 180, or from 0 to 360.
_MAX_CENTRE_LATITUDE = 85  # Nearer to a pole, degrees of longitude are too short.
_MILLIMETRES_PER_METRE = 1000
_DEGREE_DECIMALS = 7  # Published degrees have this many decimals, about a centimetre.


@dataclass(frozen=True)
class Projection:
    """The map from degrees to metres in a plane around a public centre.

    Attributes:
        longitude: Longitude of the centre in degrees, from -180 to 360.
        latitude: Latitude of the centre in degrees, from -85 to 85.

    Raises:
        InvalidRequest: If the centre is outside these ranges.
    """

    longitude: Fraction
    latitude: Fraction

    def __post_init__(self) -> None:
        longitude = read_number(self.longitude, "longitude of the centre")
        latitude = read_number(self.latitude, "latitude of the centre")
        if not -180 <= longitude <= _MAX_LONGITUDE:
            must("longitude of the centre", "in -180..360 degrees", self.longitude)
        if abs(latitude) > _MAX_CENTRE_LATITUDE:
            rule = f"in -{_MAX_CENTRE_LATITUDE}..{_MAX_CENTRE_LATITUDE} degrees"
            must("latitude of the centre", rule, self.latitude)
        self.__dict__.update(longitude=longitude, latitude=latitude)

    @classmethod
    def parse(cls, text: str) -> Projection:
        """Read a centre "LONGITUDE,LATITUDE" in degrees.

        Args:
            text: The text.

        Raises:
            InvalidRequest: The text has another form.
        """
        parts = text.split(",")
        if len(parts) != 2:
            must("centre", "LONGITUDE,LATITUDE in degrees, such as 13.4,52.52", repr(text))
        longitude, latitude = (read_number(part.strip(), "centre") for part in parts)
        return cls(longitude=longitude, latitude=latitude)

    @classmethod
    def around(cls, points: Sequence[RationalPair]) -> Projection:
        """Return the projection around the middle of the ranges of longitudes and latitudes.

        Places on both sides of the date line have the middle of their shortest range, such as 180
        for 179 and -179.

        Args:
            points: Public places (longitude, latitude) in degrees.
        """
        longitudes, latitudes = zip(*points, strict=True)
        if max(longitudes) - min(longitudes) > _LONG_RANGE_DEGREES:
            longitudes = _list_from_largest_gap(longitudes)
        longitude, latitude = (
            (min(numbers) + max(numbers)) / 2 for numbers in (longitudes, latitudes)
        )
        if longitude > _MAX_LONGITUDE:
            longitude -= 360
        return cls(longitude, latitude)

    @cached_property
    def metres_per_degree(self) -> RationalPair:
        """Return (k_x, k_y), exact multiples of a millimetre."""
        north = math.radians(EARTH_RADIUS_METRES)
        east = north * math.cos(math.radians(float(self.latitude)))
        k_x, k_y = (
            Fraction(round(scale * _MILLIMETRES_PER_METRE), _MILLIMETRES_PER_METRE)
            for scale in (east, north)
        )
        return k_x, k_y

    def project(self, point: RationalPair) -> RationalPair:
        """Return a place in metres, exactly.

        Args:
            point: (longitude, latitude) in degrees.

        Raises:
            InvalidRequest: The latitude or the longitude is outside its range.
        """
        longitude, latitude = point
        if not -180 <= longitude <= _MAX_LONGITUDE or abs(latitude) > 90:
            rule = "a longitude in -180..360 and a latitude in -90..90, in degrees"
            must("a place", rule, f"{nearest_float(longitude):g}, {nearest_float(latitude):g}")
        east, north = self.metres_per_degree
        difference = (longitude - self.longitude + 180) % 360 - 180
        return east * difference, north * (latitude - self.latitude)

    def project_floats(self, longitudes: Vector, latitudes: Vector) -> Vector:
        """Return positions in metres. Shape (n, 2).

        Args:
            longitudes: Degrees, shape (n,).
            latitudes: Degrees, shape (n,).
        """
        east, north = map(float, self.metres_per_degree)
        differences = (longitudes - float(self.longitude) + 180) % 360 - 180
        return np.column_stack([east * differences, north * (latitudes - float(self.latitude))])

    def to_degrees(self, places: Vector) -> Vector:
        """Return longitudes and latitudes, rounded to about a centimetre. Shape (n, 2).

        Args:
            places: Places in metres, shape (n, 2).
        """
        centre = np.array([float(self.longitude), float(self.latitude)])
        degrees = centre + places / np.array([float(scale) for scale in self.metres_per_degree])
        return np.asarray(np.round(degrees, _DEGREE_DECIMALS))

    def describe_distortion(self, places: Sequence[RationalPair]) -> str | None:
        """Return a warning if a place is so far from the centre that distances are distorted.

        Args:
            places: Places in metres.
        """
        farthest = max(math.hypot(float(x), float(y)) for x, y in places)
        centre_cosine = math.cos(math.radians(float(self.latitude)))
        distortion = 0.0
        _, metres_per_latitude = self.metres_per_degree
        for _, y in places:
            latitude = float(self.latitude) + float(y / metres_per_latitude)
            cosine = max(math.cos(math.radians(latitude)), 0.0)
            east_error = abs(centre_cosine / cosine - 1) if cosine else math.inf
            distortion = max(distortion, east_error)
        if farthest <= _MAX_PLAIN_METRES and distortion <= _MAX_PLAIN_DISTORTION:
            return None
        if farthest > _MAX_PLAIN_METRES:
            distortion = max(distortion, self._measure_distortion(places))
        percent = 100 * distortion
        text = f"{percent:.2g}" if percent < 100 else f"{percent:.0f}"
        return (
            f"A place is {farthest / 1000:.0f} km from the centre of the map. Distances in the "
            f"plane are wrong by up to {text} %, and with them the privacy for each metre."
        )

    def _measure_distortion(self, places: Sequence[RationalPair]) -> float:
        """Return the largest |d / d' - 1| of two places, d in the plane and d' on the sphere.

        d' is the great-circle distance by the haversine formula.
        """
        plane = np.array([[float(part) for part in place] for place in places])
        scales = np.array([float(scale) for scale in self.metres_per_degree])
        centre = np.array([float(self.longitude), float(self.latitude)])
        longitudes, latitudes = np.radians(centre + plane / scales).T
        largest = 0.0
        for k in range(1, len(plane)):
            distances = np.hypot(*(plane[:k] - plane[k]).T)
            haversine = np.sin((latitudes[:k] - latitudes[k]) / 2) ** 2
            east = np.sin((longitudes[:k] - longitudes[k]) / 2) ** 2
            haversine += np.cos(latitudes[:k]) * np.cos(latitudes[k]) * east
            on_sphere = 2 * EARTH_RADIUS_METRES * np.arcsin(np.sqrt(np.minimum(haversine, 1.0)))
            is_apart = distances > 0
            with np.errstate(divide="ignore"):
                errors = np.abs(distances[is_apart] / on_sphere[is_apart] - 1)
            largest = max(largest, float(errors.max(initial=0.0)))
        return largest

    def to_dict(self) -> Record:
        """Return the projection as data for JSON."""
        return {
            "longitude": format_fraction(self.longitude),
            "latitude": format_fraction(self.latitude),
            "unit": "m",
        }

    @classmethod
    def from_dict(cls, data: Any) -> Projection | None:
        """Read the data that `to_dict` returned. None for other data.

        Args:
            data: An entry of the record of a certificate, which nothing proves.
        """
        if not isinstance(data, dict) or data.get("unit") != "m":
            return None
        try:
            return cls(data["longitude"], data["latitude"])
        except (InvalidRequest, KeyError):
            return None


def _list_from_largest_gap(longitudes: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """List longitudes without a jump of 360 degrees, except in their largest gap."""
    ordered = sorted({longitude % 360 for longitude in longitudes})
    previous = [ordered[-1] - 360, *ordered[:-1]]
    gaps = [east - west for west, east in zip(previous, ordered, strict=True)]
    start = ordered[gaps.index(max(gaps))]
    return tuple(start + (longitude - start) % 360 for longitude in ordered)


def read_degrees(
    path: Path | str, x: str, y: str
) -> tuple[list[RationalPair], list[Fraction] | None]:
    """Read places in degrees from the named columns of a CSV file.

    A column "weight" has the weights of the places.

    Args:
        path: Path of the file, whose first row has the names of the columns.
        x: Name of the column of longitudes.
        y: Name of the column of latitudes.

    Returns:
        (places, weights). The weights are None without such a column.

    Raises:
        InvalidRequest: A column is missing, a cell is no number, or there are too many places.
    """
    table = read_table(path, "places", keep_header=True)
    names: list[str] = [*map(str, table[0])] if table else []
    positions = []  # Positions of x, of y, and of the weight if there is one.
    for option, name in (("x", x), ("y", y)):
        if name.strip() not in names:
            must(option, f"a column of {Path(path).name}: {', '.join(names)}", name)
        positions.append(names.index(name.strip()))
    if "weight" in names:
        positions.append(names.index("weight"))
    if len(table) < 2:
        must("places", "at least one row below the names of the columns", Path(path).name)
    if len(table) - 1 > MAX_PLACES:
        must("places", f"at most {MAX_PLACES}", len(table) - 1)
    rows: list[Rationals] = []
    for row in table[1:]:
        if len(row) != len(names):
            must("places", f"rows of {len(names)} cells", f"{len(row)} cells")
        rows.append(tuple(read_number(row[position], "a place") for position in positions))
    weights = None
    if "weight" in names:
        weights = [weight for _, _, weight in rows]
    return [(row[0], row[1]) for row in rows], weights
