"""Find objects that higher layers provide to lower ones, each imported at its first use.

A lower layer, such as `io`, asks here for an object of a higher layer by kind and name, because it
must not import that layer. `workbench/__init__` fills the table of these objects, so it is complete
whichever module is imported first.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# Name -> "module:attribute", or "module" if the module itself is provided.
Places = Mapping[str, str]

_places: dict[str, Places] = {}


def register_places(kind: str, places: Places) -> None:
    """Register the places of all objects of a kind, in place of earlier ones.

    Args:
        kind: Kind of the objects.
        places: Place of each object by name.
    """
    _places[kind] = MappingProxyType(dict(places))


def get_places(kind: str) -> Places:
    """Return the places of all objects of a kind, by name. The default is an empty mapping.

    Args:
        kind: Kind of the objects.
    """
    return _places.get(kind, MappingProxyType({}))


def load_provided(kind: str, name: str) -> Any:
    """Import the module that provides an object, and return the object.

    Args:
        kind: Kind of the object.
        name: Name of the object.

    Raises:
        KeyError: The name is unknown.
    """
    module, _, attribute = get_places(kind)[name].partition(":")
    loaded = importlib.import_module(module)
    if attribute:
        return getattr(loaded, attribute)
    return loaded
