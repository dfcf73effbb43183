"""One row of the ledger, and the canonical text and the key of what it holds."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

__all__ = ["Row", "canonical", "digest"]


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(*texts: str) -> str:
    """sha256 of texts, as hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


class Row(NamedTuple):
    """One answer: key, request and answer as in the file, and the seconds it took."""

    key: str
    request: str
    answer: str
    seconds: float

    @property
    def asked(self) -> dict[str, Any]:
        """The request as an object."""
        return dict(json.loads(self.request))

    @property
    def found(self) -> dict[str, Any]:
        """The answer as an object."""
        return dict(json.loads(self.answer))
