"""Commands in an agent's sandbox: tools, the shell, background jobs, the jail."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from engine.domain.command import Command


class CallTool(Command):
    """Call a tool as the operator, through the agent's own pipeline and session; or for a client."""

    do: Literal["call_tool"] = "call_tool"
    tool: str = "simple_coder"
    command: str
    args: dict[str, Any] = Field(default_factory=dict)
    client: str = Field(default="", pattern=r"^[\w.-]{0,32}$")
    """The program that asks for it, where the workspace is served to one: then it passes the gate as an
    agent's action does."""
    wait_s: float = Field(default=0.0, ge=0, le=86_400, allow_inf_nan=False)
    """Seconds that the operator has to answer where a client's call is asked about; 0: nobody is there."""


class DropCall(Command):
    """A client no longer wants a call: it is taken out of the queue, or cut off where it runs."""

    do: Literal["drop_call"] = "drop_call"
    call: str = Field(min_length=1, max_length=200)
    """The event that queued it."""
    client: str = Field(default="", pattern=r"^[\w.-]{0,32}$")


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


SandboxCommand = CallTool | DropCall | TakeShell | ReturnShell | SettleChanges | StopJob | AcceptTier
