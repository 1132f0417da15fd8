"""What an operator sees of an agent's intentions: frozen values that `viewing` makes (spec §5)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.bdi.position import Position


@dataclass(frozen=True, slots=True)
class PendingStep:
    """The body step that runs next."""

    intention: int
    goal: str
    plan: str
    step: str
    source: str
    """Where the plan's text came from."""
    position: Position


@dataclass(frozen=True, slots=True)
class ItemView:
    """One line of a plan's body."""

    text: str
    depth: int
    """Blocks around it."""
    current: bool
    """True for the step that runs next, or whose sub-goal is being pursued."""
    position: Position


@dataclass(frozen=True, slots=True)
class FrameView:
    """One plan being carried out."""

    goal: str
    plan: str
    items: tuple[ItemView, ...]
    bindings: tuple[tuple[str, str], ...]
    """Variables that have a value, with it."""
    collapsed: int
    """Calls of the same goal whose place this one has taken."""


@dataclass(frozen=True, slots=True)
class IntentionView:
    """One intention, its outermost goal first."""

    id: int
    state: str
    """`running`, `suspended`, `waiting for an event`, or what it is pending on."""
    reason: str
    frames: tuple[FrameView, ...]
    left_out: int = 0
    """Frames between the first and the last that are not shown."""
    tag: str = ""
    """The host's name for its outermost goal."""
