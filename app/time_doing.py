"""Changing time without a screen: previews as text and JSON, and carrying them out when that is asked for."""

from __future__ import annotations

from typing import Any

from app.rewinding import YES, as_json, command_of, parts_of, preview_of, read_rewind, text_of, title_of
from app.verb import GrammarError
from engine.engine import Engine
from engine.steering.rewinding import RewindError

Answer = tuple[int, dict[str, Any], str]
NOBODY: Answer = (2, {}, "there is no agent yet; agent_create bdi_agent ID makes one")


async def do_rewind(engine: Engine, rest: str, agent: str) -> Answer:
    """Show what a rewind would do, and do it where `--yes` is given."""
    if not agent:
        return NOBODY
    try:
        asked = read_rewind(rest)
        found = await preview_of(engine, agent, asked)
    except (GrammarError, RewindError) as error:
        return 2, {}, str(error)
    text, answer = text_of(title_of(found), parts_of(found)), as_json(found)
    if not asked.yes:
        return (
            0,
            {"ok": True, "applied": False, **answer},
            f"{text}\n\nnothing was changed; add {YES} to do it",
        )
    receipt = await engine.submit(command_of(found), operator="cli")
    answer = {"ok": receipt.ok, "applied": receipt.ok, "message": receipt.message, **answer}
    return (0 if receipt.ok else 1), {**answer, "event": receipt.event}, f"{text}\n\n{receipt.message}"
