"""Every line of a frontier has a colour, whoever the mechanism comes from."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import workbench as wb
from workbench.families.frontier_plots import all_series
from workbench.families.noise.frontier import SERIES
from workbench.io.figures import COLOURS, MARKERS


def test_baselines_beyond_the_colours_begin_again():
    others = [f"mine {k}" for k in range(2 * len(COLOURS))]
    table = pd.DataFrame({"curve": "baseline", "mechanism": others})
    drawn = all_series(SERIES, table)
    assert set(drawn) == {*SERIES, *others}
    mine = pd.DataFrame({"curve": ["point", "baseline"], "mechanism": ["noise", "mine 0"]})
    assert all_series(SERIES, mine)["mine 0"].colour != SERIES["noise"].colour
    assert all(0 <= look.colour < min(len(COLOURS), len(MARKERS)) for look in drawn.values())


def test_the_frontier_of_integer_noise_draws_all_its_baselines(tmp_path: Path):
    result = wb.frontier("noise", epsilon="1,2", delta="0.001,0.01")
    rows = result.to_frame()
    assert set(rows[rows["curve"] == "baseline"]["mechanism"]) <= set(SERIES)
    result.save(tmp_path / "drawn")
    assert list((tmp_path / "drawn").glob("*.png"))
