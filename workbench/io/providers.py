"""Let lower layers use objects of higher layers, which they must not import.

A lower layer asks here for an object by kind and name. The module of the object is imported at its
first use. Example: `load_provided("families", "channel")` returns the family of channels.
`workbench/__init__` registers the place of every object. This module is therefore complete
whichever other module is imported first.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

# By the name of an object: "module:attribute", or "module" if the object is the module itself.
Places = Mapping[str, str]

_places: dict[str, Places] = {}


def register_places(kind: str, places: Places) -> None:
    """Register the places of all objects of a kind. They replace earlier ones.

    Args:
        kind: Kind of the objects, such as "families".
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
