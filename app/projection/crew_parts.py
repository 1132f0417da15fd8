"""What the models of a crew's dialogs have in common: how a handoff stands, and what it asks."""

from __future__ import annotations

import json
from typing import Any

from engine.agents.human import HumanRequest
from engine.crew.state import CrewState, Handoff, Move
from engine.domain.text import clean_line

STYLES = {"✓": "success", "✗": "error", "!": "warning", "?": "warning", "●": "accent", "▶": "accent"}
"""The style of a mark; of others it is dim."""


def style_of(mark: str) -> str:
    """The style of a mark."""
    return STYLES.get(mark, "dim")


def standing(handoff: Handoff) -> str:
    """How it stands: mark and word, never colour alone."""
    return f"{handoff.state.glyph} {handoff.state.words}"


def asked(state: CrewState, handoff: str, reason: str) -> HumanRequest | None:
    """The open question of a handoff whose reason begins so; None where there is none."""
    return next((one for one in state.open_requests(handoff) if one.reason_code.startswith(reason)), None)


def last_move(handoff: Handoff, target: str) -> Move | None:
    """The last time that it came to stand there."""
    return next((one for one in reversed(handoff.moves) if one.target == target), None)


def when(at: str) -> str:
    """A moment as day and time of day."""
    return f"{at[:10]} {at[11:19]} UTC"


def shown(value: Any) -> str:
    """A value as text: words as they are, all else as JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def title_of(handoff: Handoff) -> str:
    """What is done, by whom."""
    name = handoff.spec.name if handoff.spec is not None else handoff.agent
    task = clean_line(handoff.context.task_description, limit=80)
    return f"{name}: {task}" if task else name
