"""Members of a crew that are no model with instructions: another program, or an AgentSpeak(L) program.

Their specification names an agent of the workspace (`done_by`) that the operator created. Each run is a new
agent with that one's configuration, so a specification by itself grants no program anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from engine.bdi.parser import parse_literal
from engine.bdi.printer import text_of
from engine.core.agents import ACP_AGENT, TASK
from engine.core.command import GOAL_LIMIT
from engine.core.journal import Event, canonical
from engine.core.reasoner import REASONER
from engine.core.state import AgentState
from engine.core.text import StrictJsonError
from engine.crew.ontology.context import HandoffContext
from engine.crew.ontology.kinds import ErrorCode, InvalidError
from engine.crew.ontology.results import parse_returned, parse_text_answer
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ports import HandoffError, RunningHandoff
from engine.crew.thinker.model_calls import FORM
from engine.crew.thinker.prompt import context_prompt, given_blocks
from engine.models.lenient import values_in

NO_RESULT = "its program believes no result(Text): let its plan for !task(Text) end with +result(Text)"
RESULT = "result("
"""How the belief begins in which an AgentSpeak(L) program leaves what it returns."""


def member_of(spec: AgentSpec, agents: Mapping[str, AgentState]) -> AgentState:
    """The agent that does a specification's work.

    Raises:
        HandoffError: it is not here, or is none that can.
    """
    state = agents.get(spec.done_by)
    how = f"agent_create {ACP_AGENT} {spec.done_by} …, or agent_create {REASONER} {spec.done_by} …"
    if state is None:
        message = f"{spec.id} is done by the agent {spec.done_by}, which is not here; create it first: {how}"
        raise HandoffError(ErrorCode.TOOL_UNAVAILABLE, message)
    if state.hands_back:
        message = f"{spec.id} cannot be done by {spec.done_by}, which is a run itself; create one: {how}"
        raise HandoffError(ErrorCode.TOOL_UNAVAILABLE, message)
    return state


def member_config(member: AgentState, handoff: RunningHandoff) -> dict[str, Any]:
    """The configuration of a run: its member's, with the whole task; it stands on its own."""
    config = {name: value for name, value in member.config.meta.items() if name not in ("parent", "core")}
    if member.reasons:
        return {**config, "own_goals": False}
    return {**config, TASK: _task_of(handoff.spec, handoff.context)}


def member_goal(member: AgentState, text: str) -> str:
    """The goal of a run, as its kind takes it."""
    if not member.reasons:
        return text
    goal = f"task({text_of(text)})"
    while len(goal) > GOAL_LIMIT:
        text = text[: len(text) - (len(goal) - GOAL_LIMIT)]
        goal = f"task({text_of(text)})"
    return goal


def _task_of(spec: AgentSpec, context: HandoffContext) -> str:
    """Everything that another program is told, in words."""
    parts = [spec.instructions.system, context_prompt(context)]
    parts += [block.text for block in given_blocks(context)]
    if form := context.metadata.get(FORM):
        parts.append(f"Answer with one JSON object by this schema, and nothing else:\n{canonical(form)}")
    return "\n\n".join(part.strip() for part in parts if part.strip())


def result_text(state: AgentState) -> str:
    """What an AgentSpeak(L) program returns: the newest `result(Text)` that it believes."""
    for text in reversed(state.held_beliefs):
        if text.startswith(RESULT):
            literal = parse_literal(text)
            said = literal.args[0]
            return said if isinstance(said, str) else text_of(said)
    return ""


def action_text(finished: Event) -> str:
    """What the last action of a run gave: the result of one that plans by recipes."""
    result = json.loads(finished.body).get("result", {})
    found = (result.get(name) for name in ("output", "content", "stdout", "items"))
    return next((text if isinstance(text, str) else canonical(text) for text in found if text), "")


def result_fields(text: str, context: HandoffContext) -> dict[str, Any]:
    """The fields of a result that a text has; the data where its caller asked for some."""
    if context.metadata.get(FORM):
        with suppress(StrictJsonError, InvalidError):
            found = [value for value in values_in(text, []) if isinstance(value, dict)]
            return parse_returned({"output": text, "data": found[-1]}).model_dump(exclude={"confidence"})
    return parse_text_answer(text).model_dump(exclude={"confidence"})
