"""The kinds of events of a workspace, its sessions and its agents: that they are there, and that they run."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.domain.reasoning import Stride
from engine.domain.state import AgentConfig
from engine.journal.payload import Payload


class WorkspaceCreated(Payload):
    """A directory became a workspace."""

    kind: ClassVar[str] = "workspace.created"
    workspace: str


class SessionOpened(Payload):
    """An engine opened the workspace."""

    kind: ClassVar[str] = "session.opened"
    session: str
    version: str


class SessionClosed(Payload):
    """The engine closed the workspace in good order."""

    kind: ClassVar[str] = "session.closed"
    session: str
    reason: str = ""


class TierAccepted(Payload):
    """The operator lets programs run in a weaker jail than the policy requires, until the session ends."""

    kind: ClassVar[str] = "sandbox.tier_accepted"
    session: str
    tier: str
    reason: str
    """What was missing."""


class AgentCreated(Payload):
    """An agent came to be; the first event of its stream."""

    kind: ClassVar[str] = "agent.created"
    external: ClassVar[bool] = True
    agent_id: str
    agent_type: str
    description: str = ""
    config: AgentConfig


class AgentOpened(Payload):
    """A session took the agent up; what ran when the last one ended is settled after this."""

    kind: ClassVar[str] = "agent.opened"
    external: ClassVar[bool] = True
    session: str
    seed: int


class AgentDeleted(Payload):
    """The agent was removed; its history stays."""

    kind: ClassVar[str] = "agent.deleted"


class AgentResumed(Payload):
    """The agent may run."""

    kind: ClassVar[str] = "agent.resumed"
    max_loops: int | None = None
    until: str | None = None
    ask: bool = True


class AgentPaused(Payload):
    """No new action starts; what runs ends by itself."""

    kind: ClassVar[str] = "agent.paused"
    reason: str


class StepGranted(Payload):
    """While paused, one more action is allowed; to an agent with a reasoner a stride of body steps."""

    kind: ClassVar[str] = "agent.step_granted"
    stride: Stride | None = None


class AgentStopped(Payload):
    """The agent was stopped; a running action is cut off."""

    kind: ClassVar[str] = "agent.stopped"
    reason: str


class CommandReceived(Payload):
    """The operator asked for something."""

    kind: ClassVar[str] = "command.received"
    external: ClassVar[bool] = True
    command: dict[str, Any]


class CommandRefused(Payload):
    """What was asked for could not be done; nothing changed."""

    kind: ClassVar[str] = "command.refused"
    reason: str
