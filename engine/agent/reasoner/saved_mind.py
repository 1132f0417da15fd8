"""A reasoner's whole mind as data, and a mind that continues from it as the other would have.

It is a cache of what the events of a stream give, so it is taken only where it is exact: behind an event,
with nothing under way that no event says yet.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from engine.agent.reasoner.actions import TOOL, ActionTable, read_config
from engine.agent.reasoner.plan_generation import inventions_of
from engine.agent.reasoner.reasoner import Reasoner
from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_literal
from engine.bdi.printer import text_of
from engine.bdi.saved_state import SavedStateError
from engine.core import events as ev
from engine.core.agents import CREW
from engine.core.fold import without_checksum
from engine.core.journal import Event
from engine.core.reasoner import MIND, MIND_FORMAT, ForgottenError, MindBreakpoint
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.planning.pgp.answer_parser import with_inventions
from engine.tools.registry import ToolRegistry
from engine.tools.worlds.world import WORLDS

Data = dict[str, Any]
DELEGATE = "delegate"
"""The action that hands work to another agent of the crew."""


def save(mind: Reasoner) -> Data | None:
    """The mind as it is now, ready for JSON; None where that cannot be said exactly."""
    agent, procedure = mind.agent, mind.making.procedure
    if mind.run is not None or mind.late is not None or agent.beliefs.touched:
        return None
    if procedure is not None and procedure.generated != mind.making.shown:
        return None
    try:
        saved = agent.save()
    except SavedStateError:
        return None
    return {
        "agent": saved,
        "now": mind.now,
        "at": mind.at,
        "tracing": mind.tracing,
        "requests": mind.requests,
        "tags": list(mind.tags.items()),
        "facts": mind.facts,
        "world": [text_of(literal) for literal in mind.world],
        "visible": sorted(mind.visible),
        "breakpoints": [[point.id, point.on, point.pattern, point.enabled] for point in mind.watch.known],
        "begun": mind.making.begun,
        "inventions": [list(made) for made in mind.making.inventions],
        "procedure": None if procedure is None else procedure.save(),
        "questions": {
            generation: procedure.question_data(question)
            for generation, question in mind.making.questions.items()
            if procedure is not None
        },
    }


def restore(mind: Reasoner, data: Data) -> None:
    """Give a new reasoner of the same program a saved mind.

    Raises:
        SavedStateError: the data are no saved mind, or that of another program.
    """
    try:
        _restore(mind, data)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, ProgramError) as error:
        raise SavedStateError(f"the saved mind is damaged: {error!r}") from error


def _restore(mind: Reasoner, data: Data) -> None:
    agent, procedure = mind.agent, mind.making.procedure
    agent.restore(data["agent"])
    mind.now, mind.at, mind.tracing = float(data["now"]), str(data["at"]), bool(data["tracing"])
    mind.requests = {action: int(number) for action, number in data["requests"].items()}
    mind.tags = {int(intention): str(goal) for intention, goal in data["tags"]}
    mind.facts = dict(data["facts"])
    mind.world = tuple(map(parse_literal, data["world"]))
    mind.visible = set(map(int, data["visible"]))
    for point in data["breakpoints"]:
        mind.watch.change(MindBreakpoint(*point), cleared=False)
    mind.making.begun = int(data["begun"])
    mind.making.inventions = [(kind, template, purpose) for kind, template, purpose in data["inventions"]]
    mind.making.known = with_inventions(mind.making.known, inventions_of(mind.making.inventions))
    if procedure is not None:
        procedure.restore(data["procedure"])
        mind.making.shown = procedure.generated
        mind.making.questions = {
            generation: procedure.question_of(saved) for generation, saved in data["questions"].items()
        }
    agent.beliefs.touched = {}
    mind.held = {fact.plain for fact in agent.beliefs}
    mind.run = None


def make_reasoner(state: AgentState, registry: ToolRegistry, created: str) -> Reasoner:
    """The reasoner of an agent that has just been created.

    Args:
        state: the agent's state.
        registry: what actions can call.
        created: when the agent was created, ISO 8601.
    """
    config = read_config(state.config.meta)
    tools = [(TOOL, registry.get(TOOL).commands)]
    # A model that writes plans is told of it only where there is somebody to hand work to.
    if state.hands_back or f"{DELEGATE}(" in config.program:
        tools.insert(0, (CREW, {DELEGATE: registry.get(CREW).commands[DELEGATE]}))
    if config.world:
        tools.append((config.world, WORLDS[config.world].commands))
    return Reasoner(state.agent_id, config, ActionTable.of(*tools), created)


async def recall_mind(state: AgentState, store: JournalStore, registry: ToolRegistry) -> tuple[Reasoner, str]:
    """An agent's mind: as it was saved, with what has happened since; else from the whole stream.

    Args:
        state: the agent's state.
        store: the journal.
        registry: what actions can call.

    Returns:
        The mind, and why a saved one could not be used; empty where it could or there is none.

    Raises:
        ForgottenError: the stream cannot be done again.
    """
    agent, why = state.agent_id, ""
    (created,) = await store.read(agent, 1, 1)
    snapshot = await store.load_snapshot(f"{agent}{MIND}", state.version, MIND_FORMAT)
    if snapshot is not None:
        version, text = snapshot
        since = await store.read(agent, version)
        with suppress(ForgottenError, ValueError, LookupError, TypeError):
            saved = await asyncio.to_thread(json.loads, without_checksum(text))
            if saved["head"] == since[0].hash:
                mind = make_reasoner(state, registry, created.at)
                await asyncio.to_thread(restore, mind, saved["mind"])
                await asyncio.to_thread(_remember, mind, since[1:])
                if state.mind is not None and mind.agent.cycles == state.mind.cycles:
                    return mind, ""
        why = (
            f"{agent}: the mind kept at event {version} could not be used; it was built again from the events"
        )
    past = await store.read(agent, 2)
    mind = make_reasoner(state, registry, created.at)
    await asyncio.to_thread(_remember, mind, past)
    return mind, why


def _remember(mind: Reasoner, past: Sequence[Event]) -> None:
    """Let a reasoner do again what it has done."""
    for event in past:
        mind.remember(event, ev.payload_of(event))
