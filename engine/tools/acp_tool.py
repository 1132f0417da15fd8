"""What an agent of another program does beside files and commands: its turns, and what only it can carry out.

The program that has the session answers these calls (`engine.agent.acp`); here stands only what they take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.core.actions import ErrorCode, ResultStatus, ToolResult
from engine.core.ports import CallContext
from engine.tools.command_table import read_commands

TOOL, PROMPT, USE, OPTIONS, SET_OPTION = "acp", "prompt", "use", "options", "set_option"


class AcpTool:
    """The tool `acp`; another program than the agent's own has no use for it."""

    id = TOOL
    description = "the session with an agent of another program"
    commands = read_commands(__file__)

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Refuse: this agent has no such session."""
        message = f"{TOOL}.{command} is for agents of type acp_agent, and {context.agent} is none"
        return ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.NOT_ALLOWED)
