"""What a guided session shows, and the moves that it can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from widgets.dialogs.long_text import Section

Kind = Literal["text", "long_text", "choice", "multi", "number", "confirm"]
GuidedWish = Literal["answer", "back", "skip", "jump", "suggest", "save", "finish", "resume"]
Answer = str | tuple[str, ...] | bool
Check = Callable[[str, Answer], str]
"""Takes a step's id and an answer, and gives what is wrong with it; empty when it can be stored."""


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step on the rail."""

    id: str
    title: str
    mark: str
    style: str
    word: str
    """Where it stands, in a word; the mark says no more."""


@dataclass(frozen=True, slots=True)
class StepAsked:
    """The step that is asked."""

    id: str
    title: str
    prompt: str
    kind: Kind
    options: tuple[str, ...] = ()
    value: Answer = ""
    """What was answered before."""
    note: str = ""
    """Whether it is required, or to be looked at again."""
    skippable: bool = False


@dataclass(frozen=True, slots=True)
class GuidedModel:
    """What the dialog shows."""

    handoff: str = ""
    title: str = ""
    place: str = ""
    """As `4/9`."""
    state: str = ""
    """Mark and word."""
    rail: tuple[StepLine, ...] = ()
    asked: str = ""
    """The question that waits, by its id; empty while nothing is asked."""
    step: StepAsked | None = None
    """None when all were gone through."""
    told: tuple[str, ...] = ()
    """When it was saved, and what has changed since."""
    refused: str = ""
    """Why the last move was not made."""
    draft: str = ""
    """What a model wrote; stored nowhere."""
    partial: tuple[Section, ...] = ()
    """The result so far."""
    missing: tuple[str, ...] = ()
    """Why it cannot be finished yet."""
    paused: bool = False
    over: bool = False
