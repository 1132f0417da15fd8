"""Changing time without a screen: previews as text and JSON, and carrying them out when that is asked for."""

from __future__ import annotations

from typing import Any

from app.rewinding import DRY, YES, as_json, command_of, parts_of, preview_of, read_rewind, text_of, title_of
from app.verb import GrammarError
from engine.domain import commands as cmd
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.steering.rewinding import RewindError
from engine.steering.undoing import UndoError

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


async def do_undo(engine: Engine, rest: str, agent: str, *, again: bool) -> Answer:
    """Undo the newest change, or redo it; with `--dry-run` only say what that would be."""
    if not agent:
        return NOBODY
    try:
        offer = await engine.undo_offer(agent, again=again)
    except UndoError as error:
        return 1, {"ok": False, "message": str(error)}, str(error)
    what = {"of": offer.of, "by": offer.by, "does": offer.words}
    told = f"{'redo' if again else 'undo'} of {offer.of} ({offer.by}): {clean_line(offer.words)}"
    if isinstance(offer.command, cmd.Rewind) and rest != YES:
        rest, told = DRY, f"{told}; what comes with it: rewind {offer.command.to}, and {YES} does it"
    if rest == DRY:
        return 0, {"ok": True, "applied": False, **what}, told
    receipt = await engine.submit(offer.as_command(agent), operator="cli")
    answer = {"ok": receipt.ok, "applied": receipt.ok, **what, "message": receipt.message}
    return (0 if receipt.ok else 1), {**answer, "event": receipt.event}, f"{told}\n{receipt.message}"
