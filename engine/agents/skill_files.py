"""The files that came with a skill beside its SKILL.md, as a run is told of them (ontology spec §2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OPENED_MOST = 8
"""Files that a run may have open."""
TEXT_LIMIT = 60_000
"""Characters of a file that are told."""


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """What lies beside a SKILL.md: read on demand, never changed."""

    folder: str
    """Where they lie; programs of the run may read there, and nothing may write."""
    sizes: Mapping[str, int]
    """Bytes of each by its path in the folder, sorted."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """What stands in those that the run has opened, by path, in the order in which it did."""
