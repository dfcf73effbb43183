"""Names of things that higher layers provide to lower ones, by kind, each loaded when it is first used.

`workbench/__init__` fills the table, so it is complete whichever module is imported first. A lower layer asks by kind
and name: no module below the face names a module that builds on it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Places = Mapping[
    str, str
]  # name -> "module:attribute", or "module" where the module itself is provided

_places: dict[str, Places] = {}


def register_places(kind: str, places: Places) -> None:
    """Say where the things of a kind are; replaces what was said before."""
    _places[kind] = MappingProxyType(dict(places))


def get_places(kind: str) -> Places:
    """Return the places of a kind, by name; none where nothing is registered."""
    return _places.get(kind, MappingProxyType({}))


def load_provided(kind: str, name: str) -> Any:
    """Import the module that provides a thing and return the thing. Raises KeyError for an unknown name."""
    module, _, attribute = get_places(kind)[name].partition(":")
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
