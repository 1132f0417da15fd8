"""Changing time without a screen: previews as text and JSON, and carrying them out when that is asked for."""

from __future__ import annotations

import asyncio
from typing import Any

from app.forking import carry_out, read_fork
from app.headless import EXIT_CODES, Status
from app.outcomes import as_json as outcomes_json
from app.outcomes import outcomes
from app.outcomes import text_of as outcomes_text
from app.rewinding import (
    DRY,
    YES,
    adopted_parts,
    as_json,
    command_of,
    parts_of,
    preview_of,
    read_rewind,
    restored_json,
    text_of,
    title_of,
)
from app.verb import GrammarError
from app.waiting import at_rest, wait_until
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


async def do_fork(engine: Engine, rest: str, agent: str) -> Answer:
    """Make forks; where they are to run, wait until they rest and say what came of them."""
    if not agent:
        return NOBODY
    try:
        asked = read_fork(rest)
        if asked.times and (refusal := engine.sandbox(agent).refusal):
            return EXIT_CODES[Status.NO_JAIL], {"ok": False, "message": refusal}, refusal
        made, receipt = await carry_out(engine, agent, asked, "cli")
    except (GrammarError, RewindError) as error:
        return 2, {}, str(error)
    answer: dict[str, Any] = {"ok": receipt.ok, "message": receipt.message, "agents": made}
    if not receipt.ok or not asked.times:
        return (0 if receipt.ok else 1), answer, receipt.message
    await asyncio.gather(*(wait_until(engine, name, at_rest) for name in made))
    code, found, text = await do_outcomes(engine, agent)
    return code, {**answer, **found}, text


async def do_outcomes(engine: Engine, agent: str) -> Answer:
    """What came of an agent and its forks."""
    if not agent:
        return NOBODY
    original, groups = await outcomes(engine, agent)
    return 0, outcomes_json(original, groups), outcomes_text(original, groups)


async def do_adopt(engine: Engine, rest: str, agent: str) -> Answer:
    """Show what taking over a fork's files would do, and do it where `--yes` is given."""
    fork, yes = rest.removesuffix(YES).removesuffix(DRY).strip(), rest.endswith(YES)
    try:
        preview = await engine.adopt_preview(agent, fork)
    except (RewindError, KeyError) as error:
        return 2, {}, str(error)
    parts = adopted_parts(preview)
    text, lists = text_of(f"{agent} takes over the files of {fork}", parts), restored_json(preview)
    if not yes:
        said = f"{text}\n\nnothing was changed; add {YES} to do it"
        return 0, {"ok": True, "applied": False, "files": lists}, said
    receipt = await engine.submit(cmd.AdoptFork(agent=agent, fork=fork), operator="cli")
    answer = {"ok": receipt.ok, "applied": receipt.ok, "message": receipt.message, "files": lists}
    return (0 if receipt.ok else 1), answer, f"{text}\n\n{receipt.message}"
