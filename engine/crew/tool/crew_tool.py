"""The tool `crew`, by which a run reaches the other agents and the operator, described without the crew.

Every call is an action like all others: seen, gated, journaled. None changes files; all but `transfer_to` can
be repeated after the program's end, because the handoff has their result. What a call needs is imported by
the first one, as replay and prompts need the descriptions only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.core.actions import ToolResult
from engine.core.agents import CREW
from engine.core.ports import CallContext, CommandSpec, Parameter

if TYPE_CHECKING:
    from engine.crew.run_service import RunService


def _text(name: str, description: str, default: str | None = "") -> Parameter:
    return Parameter(name, description, required=default is None, default=default)


def _list(name: str, description: str) -> Parameter:
    return Parameter(name, description, "array", required=False)


def _object(name: str, description: str, *, required: bool = False) -> Parameter:
    return Parameter(name, description, "object", required=required)


def _command(name: str, description: str, *parameters: Parameter) -> CommandSpec:
    return CommandSpec(name, description, parameters, runs_only=True, resumes=name != "transfer_to")


_COMMANDS = (
    _command("delegate", "hand work to another agent and wait for what comes back",
      _text("to", "the agent's id", None),
      _text("task", "what it is to do, with all that it needs to know", None),
      _text("expected", "what is to come back"), _list("focus", "what it is to look at"),
      _list("ignore", "what it is to leave out"),
      Parameter("priority", "1 normal, 2 high, 3 urgent", "integer", required=False, default=1),
      Parameter("timeout_s", "seconds that it has", "integer", required=False)),
    _command("gather", "have the sub-agents work on the task at once, each without a view of the others",
      _text("task", "what they are to do; the handoff's task where nothing is said")),
    _command("debate", "have a motion argued from its sides and judged in both orders",
      _text("motion", "a sentence that can be decided; the specification's, or the task, by default")),
    _command("transfer_to", "give the floor to another agent: the operator then talks with that one",
      _text("agent", "its id", None), _text("reason", "why, in a sentence", None)),
    _command("return_result",
      "return the result of the handoff; without arguments, what the run has gathered so far",
      _text("output", "the answer in full"), _list("key_findings", "what was found"),
      _list("recommendations", "what follows from it"),
      Parameter("confidence", "how sure it is, from 0 to 1", "number", required=False),
      _object("scores", "numbers by name"),
      _list("suggested_next_agents", "ids of agents that might go on"),
      _list("open_questions", "what is not known yet"), _object("data", "the structured answer by field"),
      _text("error", "why there is no result"), _text("code", "a code of the ontology for that"),
      Parameter("final", "whether nobody can repair it", "boolean", required=False, default=False)),
    _command("escalate", "ask the operator what only a person can know or decide, and wait for the answer",
      _text("question", "what is asked", None),
      _text("kind", "question, approval, decision or review", "question"),
      _list("options", "answers to choose from, in a few words each"), _text("context", "what was tried")),
    _command("reply", "say something to the operator and wait for what they say next",
      _text("text", "what is said")),
    _command("update_clarity", "note what the problem is, who has it or what success looks like",
      _text("slot", "what, who or success", None), _text("text", "in the operator's words", None),
      Parameter("score", "how clear it is, from 0 to 1", "number"),
      Parameter("confirmed", "whether the operator said yes to it", "boolean", required=False,
                default=False)),
    _command("park", "put an idea aside for later, where the operator finds it",
      _text("idea", "the idea, in the operator's words", None)),
    _command("checkpoint", "end a phase: its outputs are checked and, where they hold, committed",
      _text("output", "what the phase gave, in words"), _object("outputs", "its outputs by name")),
    _command("ask", "ask the operator the step that is next",
      _text("draft", "a draft of the answer, which is never stored unless the operator says so")),
    _command("read_skill",
      "open one of the files that came with the agent's skill: from then on its model is told what it says",
      _text("path", "as it is listed", None)),
    _command("compute", "compute sums, verdicts and scores of data by the specification's formula",
      _object("data", "what is computed with", required=True)),
)  # fmt: skip
COMMANDS = {spec.name: spec for spec in _COMMANDS}
"""By name."""


class CrewTool:
    """The crew for the registry of tools.

    Args:
        service: opens the manager of handoffs where it is not open yet.
    """

    id = CREW
    description = "other agents and the operator, for agents that work on a handoff"
    commands: Mapping[str, CommandSpec] = COMMANDS

    def __init__(self, service: Callable[[], Awaitable[RunService]]) -> None:
        self._service = service

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Do what a run asks; cancelling it cancels what it waits for."""
        module = await asyncio.to_thread(import_module, "engine.crew.tool.dispatch")
        result: ToolResult = await module.dispatch(await self._service(), command, args, context)
        return result
