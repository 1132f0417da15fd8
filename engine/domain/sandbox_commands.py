"""Commands in an agent's sandbox: tools, the shell, background jobs, the jail."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.domain.command import Command


class CallTool(Command):
    """Call a tool as the operator, through the agent's own pipeline and session."""

    do: Literal["call_tool"] = "call_tool"
    tool: str = "simple_coder"
    command: str
    args: dict[str, Any] = Field(default_factory=dict)


class TakeShell(Command):
    """Take the agent's shell: it is held, and the operator works in its sandbox."""

    do: Literal["take_shell"] = "take_shell"


class ReturnShell(Command):
    """Hand the shell back; what changed meanwhile is offered as beliefs."""

    do: Literal["return_shell"] = "return_shell"
    note: str = Field(default="", max_length=2_000)
    """A word to the agent about what was done."""


class SettleChanges(Command):
    """Say what of the changes made at the shell the agent is to know."""

    do: Literal["settle_changes"] = "settle_changes"
    accept: tuple[str, ...] | None = None
    """Keys of the offered beliefs; None accepts all."""
    follow: bool = True
    """Whether the agent goes on in the directory and virtual environment in which the shell ended."""


class StopJob(Command):
    """End a background job."""

    do: Literal["stop_job"] = "stop_job"
    job: str


class AcceptTier(Command):
    """Let programs run in a weaker jail than the policy requires, until this session ends."""

    do: Literal["accept_tier"] = "accept_tier"
    tier: Literal["FULL", "KERNEL", "SEATBELT", "PATHS"]
    """What this machine gives; the operator names it, so that nobody accepts less than they read."""


SandboxCommand = CallTool | TakeShell | ReturnShell | SettleChanges | StopJob | AcceptTier
