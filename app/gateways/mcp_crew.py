"""What the MCP server offers beside the sandbox and memory: the crew's work, plans and stories, missions.

A client answers only what work asks that was begun here, and never whether something is permitted: that is
the operator's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import ValidationError

from app.commands.command_runner import run_line
from app.commands.crew import answer_to
from app.commands.crew_runner import run_crew_command
from app.projection.event_lines import line_of, step_text
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import crew_commands as cc
from engine.core.text import clean, clean_line, first_problem
from engine.crew.ontology.kinds import RequestKind
from engine.planning.library.missions import MissionError, find_mission, mission_names
from engine.tools.mcp.tool_server import CallReply, Page, ServedCommand

CREW = "crew"
"""The tool under which these commands are served."""
LINES = 200
"""Events of an agent that its story has, the newest."""
_SERVED = {
    "delegate agent task": "hand a task to an agent of the crew (status lists them) and wait for its result",
    "debate motion pro? con? judge?": "have a motion argued by agents of the crew and judged",
    "answer request answer": "answer what work asks that was begun here: the number of an option, or a text",
    "select task": "which agent of the crew fits a task, and why",
    "status": "the agents, and what is handed over",
}
"""Each command with the names of its texts, of which those with `?` may be left out; and what it does."""
CHANGES = frozenset({"delegate", "debate", "answer"})


def crew_commands(*, read_only: bool) -> list[ServedCommand]:
    """The commands that are served of the crew."""
    commands = []
    for line, about in _SERVED.items():
        name, *texts = line.split()
        schema = {
            "type": "object",
            "properties": {text.rstrip("?"): {"type": "string", "minLength": 1} for text in texts},
            "required": [text for text in texts if not text.endswith("?")],
            "additionalProperties": False,
        }
        if not (read_only and name in CHANGES):
            commands.append(ServedCommand(name, CREW, name, about, schema, name in CHANGES))
    return commands


class CrewCaller:
    """Carries out what clients ask of the crew.

    Args:
        engine: the open engine.
    """

    def __init__(self, engine: WorkspaceEngine) -> None:
        self._engine = engine
        self._begun: set[str] = set()
        """Handoffs and groups that were begun here."""

    async def call(self, offer: ServedCommand, given: Mapping[str, Any], client: str) -> CallReply:
        """Carry out a call; what is wrong with it is in the answer's `message`."""
        wrong = best_match(Draft202012Validator(offer.schema).iter_errors(dict(given)))
        if wrong is not None:
            return CallReply(False, {"message": clean_line(wrong.message, limit=300)})
        command = offer.command
        if command in ("status", "select"):
            task = " ".join(given.get("task", "").split())
            lines = [f"select {task}"] if command == "select" else ["agents", "handoffs"]
            answers = [await run_line(self._engine, line, agent="", dry=False, quiet=True) for line in lines]
            text = "\n".join(text for _, _, text in answers)
            return CallReply(not any(code for code, _, _ in answers), {"message": clean(text)})
        try:
            asked = await self._command(command, given)
        except (ValidationError, ValueError) as error:
            words = first_problem(error) if isinstance(error, ValidationError) else str(error)
            return CallReply(False, {"message": words})
        code, answer, text = await run_crew_command(self._engine, asked, f"mcp-{client}"[:32])
        if (name := str(answer.get("handoff") or answer.get("group") or "")) and command != "answer":
            groups = (await self._engine.crew()).state.groups
            self._begun |= set(groups[name].handoffs) if name in groups else {name}
        return CallReply(code in (0, 3), {"message": text, "requests": answer.get("requests", [])})

    async def _command(self, command: str, given: Mapping[str, str]) -> cc.ForCrew:
        if command == "delegate":
            return cc.Delegate(to=given["agent"], task=given["task"])
        if command == "debate":
            return cc.Debate.model_validate(dict(given))
        state = (await self._engine.crew()).state
        request = state.requests.get(given["request"])
        asks = request.handoff_id if request is not None else None
        work = {asks, *(each.id for each in state.ancestors(asks))} if asks else set()
        if request is None or not work & self._begun or request.kind is RequestKind.PERMISSION:
            raise ValueError("it is no question of work that was begun here, so the operator answers it")
        number = int(given["answer"]) if given["answer"].isdecimal() and len(given["answer"]) < 4 else 0
        chosen = number if number <= len(request.options) else 0
        return answer_to(request, chosen, "" if chosen else given["answer"])


class WorkspacePages:
    """Plans and stories of agents as resources, and missions as prompts, of an open engine."""

    def __init__(self, engine: WorkspaceEngine) -> None:
        self._engine = engine

    def resources(self) -> list[Page]:
        """Those that there are."""
        about = {"plan": "what it wants, and its steps", "session": "what happened, a line an event"}
        return [
            Page(f"pilothouse://{kind}/{agent}", f"{kind} of {agent}", words)
            for agent in self._engine.agents
            for kind, words in about.items()
        ]

    async def resource(self, uri: str) -> str:
        """The text of one.

        Raises:
            KeyError: there is none.
        """
        kind, _, agent = uri.removeprefix("pilothouse://").partition("/")
        if uri not in {page.name for page in self.resources()}:
            raise KeyError(uri)
        if kind == "session":
            _, events = await self._engine.story(agent, LINES)
            return "\n".join(line.plain() for event in events if (line := line_of(event)) is not None)
        state = await self._engine.view(agent)
        lines = []
        for goal in state.goals.values():
            lines.append(f"{goal.id} {goal.status}: {goal.text}")
            steps = plan.steps if (plan := state.plans.get(goal.id)) is not None else ()
            lines += [f"  {step.id} {step.status}: {step_text(step)}" for step in steps]
        return clean("\n".join(lines)) or "no goal yet"

    async def prompts(self) -> list[Page]:
        """The missions."""
        names = await asyncio.to_thread(mission_names, self._engine.workspace)
        found = [(name, await self._mission(name)) for name in names]
        return [Page(name, mission.title, mission.summary) for name, mission in found if mission is not None]

    async def prompt(self, name: str) -> str:
        """A mission as a request.

        Raises:
            KeyError: there is none.
        """
        if (mission := await self._mission(name)) is None:
            raise KeyError(name)
        files = [f"The file {path}:\n```\n{content}\n```" for path, content in mission.files.items()]
        return "\n\n".join([mission.goal, *files])

    async def _mission(self, name: str) -> Any:
        try:
            return await asyncio.to_thread(find_mission, self._engine.workspace, name, self._engine.trust)
        except MissionError:
            return None
