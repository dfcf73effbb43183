"""Test that objects of higher layers are found from any module, and loaded at their first use.

The root package registers the *place* of each object, "module:attribute" or a module, by kind and
name. A module of a lower layer loads the object by these two names, and does not import the higher
layer.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import workbench
from workbench.io.providers import get_places, load_provided, register_places

# Certificates that earlier versions wrote.
CERTIFICATES = Path(__file__).parents[2] / "golden" / "certificates"
PLACES = [(kind, name) for kind, places in workbench._PLACES_BY_KIND.items() for name in places]
# The following programs run in a new process. They get the files of a formula and a certificate.
SHADOW_PRICES_PROGRAM = """
import sys
import workbench as wb

design = wb.design(wb.FiniteQuery("0..2", max_shift=1), loss="absolute", epsilon=1)
assert "workbench.formulas.formula" not in sys.modules
assert design.shadow_prices.epsilon is not None
assert design.unique is not None
assert "workbench.formulas.formula" in sys.modules
"""
CHECK_PROGRAM = """
import sys
import workbench as wb

assert type(wb.check(sys.argv[1])).__name__ == "Formula"
assert type(wb.check(sys.argv[2])).__name__ == "Certificate"
"""
CHECK_WITHOUT_MODELS_PROGRAM = """
import sys
import workbench as wb

wb.check(sys.argv[2])
assert not [name for name in sys.modules if name.partition(".")[0] in ("models", "solvers")]
assert not [name for name in sys.modules if name.startswith("workbench.families")]
"""


@pytest.mark.parametrize(("kind", "name"), PLACES)
def test_every_registered_place_can_be_loaded(kind: str, name: str) -> None:
    assert load_provided(kind, name) is not None


@pytest.mark.parametrize(
    "program", [SHADOW_PRICES_PROGRAM, CHECK_PROGRAM, CHECK_WITHOUT_MODELS_PROGRAM]
)
def test_a_new_process_imports_higher_layers_only_when_they_are_used(program: str) -> None:
    files = [str(CERTIFICATES / name) for name in ("formula-channel.json", "channel-dp.json")]
    run = subprocess.run(
        [sys.executable, "-c", program, *files], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr


def test_an_unknown_kind_has_no_objects() -> None:
    assert not get_places("no such kind")
    with pytest.raises(KeyError):
        load_provided("no such kind", "thing")


def test_a_place_without_an_attribute_is_the_module_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.io.providers._places", {})
    register_places("tools", {"json": "json", "dumps": "json:dumps"})
    assert load_provided("tools", "json").dumps is load_provided("tools", "dumps")
