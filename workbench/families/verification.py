"""What a family is verified on: requests whose closed forms are known, in groups that one session answers.

A family has some when its `Family.verification` names a module with `groups(small) -> list[Group]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Group"]


@dataclass(frozen=True)
class Group:
    """A question, the options that all its requests share, and the hot options of each."""

    question: Any
    options: Mapping[str, Any]
    points: Sequence[Mapping[str, Any]]
