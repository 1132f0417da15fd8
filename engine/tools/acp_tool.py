"""What an agent of another program does beside files and commands: its turns, and what only it can carry out.

The program that has the session answers these calls (`engine.agent.acp`); here stands only what they take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, Reversibility, ToolResult
from engine.core.ports import CallContext, CommandSpec, Parameter

TOOL, PROMPT, USE, OPTIONS, SET_OPTION = "acp", "prompt", "use", "options", "set_option"


def _reaching(name: str, description: str, *parameters: Parameter) -> CommandSpec:
    undo = Reversibility.IRREVERSIBLE.value
    return CommandSpec(name, description, parameters, runs_only=True, mutates=True, undo=undo)


class AcpTool:
    """The tool `acp`; another program than the agent's own has no use for it."""

    id = TOOL
    description = "the session with an agent of another program"
    commands: Mapping[str, CommandSpec] = {
        PROMPT: _reaching(PROMPT, "give the program its turn", Parameter("text", "what it is asked")),
        USE: _reaching(
            USE,
            "let the program use a tool of its own",
            Parameter("kind", "what it is for: fetch, search, move, delete, …"),
            Parameter("title", "what the program calls it"),
            Parameter("path", "the first path that it names", required=False, kind="path"),
        ),
        OPTIONS: CommandSpec(OPTIONS, "modes, models and options of the session", runs_only=True),
        SET_OPTION: CommandSpec(
            SET_OPTION,
            "choose a mode, a model or another option",
            (
                Parameter("option", "its id, such as mode or model"),
                Parameter("value", "one of its values", type="any"),
            ),
            runs_only=True,
            writes=True,
        ),
    }

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Refuse: this agent has no such session."""
        message = f"{TOOL}.{command} is for agents of type acp_agent, and {context.agent} is none"
        return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.NOT_ALLOWED)
