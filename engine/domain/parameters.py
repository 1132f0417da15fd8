"""How the parameters of an action came to be what they are: the records that the journal keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SHOWN = 80
"""Characters of a value in a sentence."""


class Stage(StrEnum):
    """The stages that parameters go through, in order (seed parameter processing; spec mindX §3.6)."""

    COMPONENTS = "components"
    """Components that the goal names are looked for."""
    PATHS = "paths"
    """Arguments that are paths are compared with the workspace."""
    CORRECTIONS = "corrections"
    EXTRACTION = "extraction"
    """A model takes what is missing from the goal."""
    DEFAULTS = "defaults"
    VALIDATION = "validation"


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What one stage was given, what it made of it, and why; only arguments that concern it."""

    stage: Stage
    came_in: dict[str, Any] = field(default_factory=dict)
    went_out: dict[str, Any] = field(default_factory=dict)
    why: tuple[str, ...] = ()
    skipped: bool = False
    """True when the stage is switched off."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One argument that was changed or found."""

    argument: str
    before: Any
    """None where the argument was missing."""
    after: Any
    rule: str
    """`key`, `number`, `boolean`, `list`, `object`, `near path`, `component`, `placeholder` or `model`."""
    why: str

    @property
    def words(self) -> str:
        """The correction in a sentence."""
        before = "" if self.before is None else f"{shown(self.before)} → "
        return f"{self.argument}: {before}{shown(self.after)} because {self.why}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory of the workspace."""

    path: str
    """Relative to the root, as text."""
    directory: bool = False


@dataclass(frozen=True, slots=True)
class Survey:
    """What of the workspace corrections rest on."""

    missing: tuple[str, ...] = ()
    """Arguments whose path is not there."""
    entries: tuple[Entry, ...] = ()
    """What is there under a name like those that were looked for."""
    whole: bool = True
    """False when the workspace was too large to be searched to its end, so that nothing is certain."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a model found of the missing parameters."""

    model: str
    values: dict[str, Any] = field(default_factory=dict)
    repairs: tuple[tuple[str, ...], ...] = ()
    """What was wrong with the answer before each repair."""
    error: str = ""
    """Why there is no answer of use; empty when there is one."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A step's arguments after their processing."""

    args: dict[str, Any]
    corrections: tuple[Correction, ...] = ()


def shown(value: Any) -> str:
    """A value for a sentence: texts in quotes, all else as JSON, cut to a line's length."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
