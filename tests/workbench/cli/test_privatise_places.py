"""Test the command `privatise places`, and an ε per kilometre in `design channel`.

`design channel --places` designs a mechanism c.json for a list of places, under metric privacy with
an ε per unit of distance. `privatise places` publishes a place for each position of trips.csv.
"""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest

from workbench.cli import main

# Four places in metres, and three positions of two people.
PLACES = "x,y,weight\n0,0,3\n0,500,1\n500,0,1\n500,500,2\n"
TRIPS = "who,x,y\nann,10,0\nbob,480,520\nann,0,499.5\n"
PLACES_QUERY = ["design", "channel", "--places", "city.csv", "--loss", "euclidean"]
PLACES_QUERY += ["--neighbours", "all L2", "--epsilon", "2/km"]
DESIGN = [*PLACES_QUERY, "--notion", "metric", "--unit", "m", "--save", "c.json"]


def make_publish_command(columns: str) -> list[str]:
    """Return the command that publishes the named columns of trips.csv with c.json."""
    command = ["privatise", "places", "trips.csv", "--mechanism", "c.json", "--out", "p.csv"]
    return [*command, "--columns", columns]


PUBLISH = make_publish_command("x,y")


def run(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str, str]:
    """Run a command. Return its exit code, and stdout and stderr with single spaces."""
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), " ".join(out.split()), " ".join(err.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the files city.csv and trips.csv, and return its path."""
    monkeypatch.chdir(tmp_path)
    Path("city.csv").write_text(PLACES)
    Path("trips.csv").write_text(TRIPS)
    return tmp_path


@pytest.fixture
def designed(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Design c.json in the folder with city.csv, and return what the command printed."""
    code, out, _ = run(capsys, DESIGN)
    assert code == 0
    return out


def read_published_rows() -> list[list[str]]:
    """Return the rows of p.csv, with the header."""
    with Path("p.csv").open(newline="") as file:
        return list(csv.reader(file))


def test_a_design_states_its_epsilon_per_unit_of_distance(designed: str) -> None:
    """2/km is 0.002 per metre, the unit of the coordinates."""
    assert "epsilon = 0.002 per unit of distance" in designed
    assert "in m" in designed


def test_a_design_of_places_is_drawn_as_a_map(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = run(capsys, [*DESIGN, "--plot", "map.png"])
    assert code == 0
    assert Path("map.png").exists()


def test_positions_are_published_at_places(
    designed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, [*PUBLISH, "--id", "who", "--person", "who", "--insecure-seed", "1"])
    assert code == 0
    assert "epsilon = 0.004 per unit of distance" in out  # ann has two rows.
    assert "to the nearest place on average" in out
    header, *rows = read_published_rows()
    assert header == ["who", "x", "y"]
    assert [who for who, _, _ in rows] == ["ann", "bob", "ann"]
    assert {x for _, x, _ in rows} | {y for _, _, y in rows} <= {"0", "500"}


def test_the_published_report_does_not_depend_on_the_positions(
    designed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The distances to the nearest places depend on the positions, so no entry publishes them."""
    run(capsys, PUBLISH)
    report = json.loads(Path("p.csv.json").read_text())
    assert report["claim"]["notion"] == "metric"
    entries = {name: entry for name, entry in report.items() if name != "words"}
    assert "moved" not in json.dumps(entries)


@pytest.mark.parametrize("coordinate", ["x", "y"])
def test_a_coordinate_cannot_be_the_person_column(
    designed: str, capsys: pytest.CaptureFixture[str], coordinate: str
) -> None:
    code, _, err = run(capsys, [*PUBLISH, "--person", coordinate])
    assert code == 2
    assert "another column than the private one" in err
    assert not Path("p.csv").exists()


def test_a_file_with_positions_only_causes_no_warning_about_other_columns(
    designed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("trips.csv").write_text("x,y\n10,0\n480,520\n")
    code, out, _ = run(capsys, PUBLISH)
    assert code == 0
    assert "copied unchanged" not in out


def test_only_a_certificate_of_places_is_accepted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    design = "design channel --answers 0..3 --max-shift 1 --epsilon 1 --save c.json"
    code, _, _ = run(capsys, design.split())
    assert code == 0
    code, _, err = run(capsys, PUBLISH)
    assert code == 2
    assert "design channel --places" in err
    assert not Path("p.csv").exists()


def test_places_need_two_columns(designed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, make_publish_command("x"))
    assert code == 2
    assert "two columns" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--unit m --notion pure", "notion must be metric for an epsilon per km. Got 'pure'."),
        ("--notion metric", "unit must be given, the unit of the coordinates,"),
        ("--notion metric --unit inch", "unit must be one of m, km, mi. Got 'inch'."),
        (
            "--notion metric --unit m --answers 0..3",
            "The answers must be given by exactly one of answers, range and places.",
        ),
    ],
)
def test_a_budget_per_kilometre_needs_a_unit_and_the_notion_metric(
    folder: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    code, _, err = run(capsys, [*PLACES_QUERY, *options.split()])
    assert code == 2
    assert err.startswith(f"InvalidRequest: {message}")


# Four places in degrees.
DEGREES = "lon,lat\n13.38,52.50\n13.38,52.51\n13.395,52.50\n13.395,52.51\n"
DEGREES_DESIGN = ["design", "channel", "--places", "city.csv", "--x", "lon", "--y", "lat"]
DEGREES_DESIGN += ["--neighbours", "all L2", "--loss", "euclidean", "--notion", "metric"]
DEGREES_DESIGN += ["--epsilon", "2/km", "--save", "c.json"]


@pytest.fixture
def degrees_folder(folder: Path) -> Path:
    """Replace city.csv and trips.csv by places and positions in degrees."""
    Path("city.csv").write_text(DEGREES)
    Path("trips.csv").write_text("who,lon,lat\nann,13.381,52.501\nbob,13.394,52.509\n")
    return folder


@pytest.fixture
def designed_in_degrees(degrees_folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Design c.json for the places in degrees, and return what the command printed."""
    code, out, _ = run(capsys, DEGREES_DESIGN)
    assert code == 0
    return out


def test_places_in_degrees_are_projected_to_metres(designed_in_degrees: str) -> None:
    """A hundredth of a degree of latitude is 1111.95 m on a sphere of radius 6371.0088 km."""
    assert "epsilon = 0.002 per unit of distance" in designed_in_degrees
    assert "metres around longitude 13.3875, latitude 52.505" in designed_in_degrees
    inputs = json.loads(Path("c.json").read_text())["record"]["inputs"]
    south_west, north_west, south_east, _ = inputs
    assert north_west[1] - south_west[1] == pytest.approx(1111.9508)
    # 0.015 degrees of longitude, times the cosine of the latitude.
    assert south_east[0] - south_west[0] == pytest.approx(1015, abs=1)


def test_positions_in_degrees_are_published_in_degrees(
    designed_in_degrees: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "privatise places trips.csv --x lon --y lat --mechanism c.json --out p.csv"
    code, out, _ = run(capsys, shlex.split(command))
    assert code == 0
    assert "m to the nearest place on average" in out
    header, *rows = read_published_rows()
    assert header == ["lon", "lat"]
    assert {longitude for longitude, _ in rows} <= {"13.38", "13.395"}
    assert {latitude for _, latitude in rows} <= {"52.5", "52.51"}
    report = json.loads(Path("p.csv.json").read_text())
    assert report["projection"] == {"longitude": "13.3875", "latitude": "52.505", "unit": "m"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--columns lon,lat", "columns must be left out for places in degrees"),
        ("--x lon", "x and y must be given"),
    ],
)
def test_places_in_degrees_need_both_columns(
    designed_in_degrees: str, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    command = f"privatise places trips.csv --mechanism c.json --out p.csv {options}"
    code, _, err = run(capsys, command.split())
    assert code == 2
    assert message in err


def test_places_of_the_plane_are_not_in_degrees(
    designed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "privatise places trips.csv --mechanism c.json --out p.csv --x x --y y"
    code, _, err = run(capsys, command.split())
    assert code == 2
    assert "x must be left out unless the mechanism was designed with --x and --y" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--places city.csv --x lon", "y must be given with x or centre"),
        ("--places city.csv --centre 13,52", "x must be given with y or centre"),
        ("--places city.csv --x lon --y lat --unit km", "unit must be m or left out with x and y"),
        ("--answers 0..3 --x lon", "x must be left out without --places"),
    ],
)
def test_an_incomplete_projection_is_refused(
    degrees_folder: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    arguments = ["--neighbours", "all L2", "--epsilon", "1", *options.split()]
    code, _, err = run(capsys, ["design", "channel", *arguments])
    assert code == 2
    assert message in err


def test_degrees_are_not_taken_for_coordinates_of_a_plane(
    designed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The places of the plane are in metres, so degrees would all be moved to one place."""
    Path("trips.csv").write_text("Longitude,Latitude\n13.38,52.50\n")
    code, _, err = run(capsys, make_publish_command("Longitude,Latitude"))
    assert code == 2
    assert "columns must be coordinates on a plane" in err
    assert not Path("p.csv").exists()


def test_places_in_degrees_need_the_options_x_and_y(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("city.csv").write_text(DEGREES)
    code, _, err = run(capsys, DESIGN)
    assert code == 2
    assert "places must be coordinates on a plane" in err
    assert "--x and --y" in err
