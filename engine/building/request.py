"""What a builder is asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.building.findings import Mode

BUILDER_VERSION = "2"
"""Raised whenever the same source would give other bytes."""
PROJECT, USER = "project", "user"
BUILT_IN = "built-in"
"""What the metadata of agents that Pilothouse ships say as their source."""
SANDBOX = "sandbox"
"""The directory of a workspace that agents write to."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be built, and how."""

    source: Path | str
    mode: Mode = Mode.LENIENT
    dry_run: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    interactive: bool = False
    live: bool = False
    scope: str = PROJECT
    """Whose skill it is; the project's goes before the user's."""
    trusted: bool = True
    """Whether the operator trusts the folder; one that is not trusted is asked about first."""

    @property
    def overrides_sha256(self) -> str:
        """Hash of the overrides and the mode."""
        said = json.dumps([dict(self.overrides), self.mode.value], sort_keys=True, default=str)
        return hashlib.sha256(said.encode()).hexdigest()


def source_of(said: str | Path) -> Path | str:
    """A skill's folder or file, or the text of one: text is never tried as a path."""
    if isinstance(said, str) and ("\n" in said or said.startswith("---")):
        return said
    return Path(said)
