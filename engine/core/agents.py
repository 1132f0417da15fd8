"""Agents as a whole: what they are created with, their run states, their health, and runs of handoffs.

Commands that create, run, stop and delete agents and that allow MCP servers, and the events of agents.
Of runs only names stand here, so that the engine knows them without `engine.crew.ontology`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.core.budgets import SpendingLimits, limits_from
from engine.core.command import AgentId, Command
from engine.core.journal import Payload
from engine.core.reasoner import Stride
from engine.core.reasons import Reason
from engine.value import dataclass


class CreateAgent(Command, do="create_agent"):
    """Bring an agent to be."""

    agent: AgentId
    agent_type: str = "bdi_agent"
    description: str = Field(default="", max_length=4_000)
    config: dict[str, Any] = Field(default_factory=dict)


class DeleteAgent(Command, do="delete_agent"):
    """Remove an agent; its history stays."""


class Run(Command, do="run"):
    """Let the agent run."""

    max_loops: int | None = Field(default=None, ge=1)
    until: str | None = None
    """Pause when this goal has ended."""
    ask: bool = True
    """False when no operator will answer the agent's questions."""


class Pause(Command, do="pause"):
    """Start no new action."""


class Step(Command, do="step"):
    """Allow exactly one action or body step, or the whole of a goal."""

    scope: Literal["step", "over", "out"] = "step"
    """`over`: until the pending step is through, with the goals below it. `out`: until its plan is."""
    strides: bool = True
    """False as it was recorded before agents with plans could step into, over and out of goals."""
    plans: bool = True
    """Whether a step that has plans made lasts until they are there; False as it was recorded before."""


class ConfigureAgent(Command, do="configure_agent"):
    """Give an agent other settings, which count from its next decision on."""

    settings: dict[str, dict[str, Any]]
    """By table of `thresholds.toml` but metacognition's; a table that is given replaces the one before."""


class Intervene(Command, do="intervene"):
    """Take the agent's turn: it waits for the operator's decision."""


class HandBack(Command, do="hand_back"):
    """End the intervention without changing anything; the agent looks at its workspace afresh."""


"""Why a core agent stays, behind its id."""


ACP, ACP_AGENT = "acp", "acp_agent"
"""Thinker and type of an agent that another program is, by the Agent Client Protocol."""


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """What an agent was created with."""

    thinker: str = "procedural"
    max_consecutive_errors: int = 3
    """Failures in a row after which the operator is asked."""
    ask: bool = True
    """False when no operator will answer: manual fallback then aborts the goal."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Further settings given at creation, kept verbatim."""

    @property
    def parent(self) -> str:
        """The agent that this one works for, on whose budgets it draws; empty for none."""
        return str(self.meta.get("parent", ""))

    @property
    def set_aside(self) -> SpendingLimits:
        """What was set aside for it at creation, of its parent's budget or the workspace's."""
        given = self.meta.get("budget", {})
        return limits_from(given) if isinstance(given, dict) else SpendingLimits()

    @property
    def decides(self) -> bool:
        """True when the thinker decides on one action after the other and gives no plan beforehand."""
        return self.replans and (self.meta.get("style") == "decide" or self.thinker == ACP)

    @property
    def told_of_failures(self) -> bool:
        """True when the thinker waits for the result of each call, so that none is made again for it."""
        return self.thinker == ACP

    @property
    def replans(self) -> bool:
        """True when the thinker may give another plan once it is told what went wrong; recipes never do."""
        return self.thinker != "procedural"


@dataclass(frozen=True, slots=True)
class Forked:
    """Where an agent began that is a fork of another one; it works on files of its own."""

    parent: str
    """Reference of the event after which it begins, such as `pilot-1:31`."""
    snapshot: str = ""
    """The files that it began with."""
    event: str = ""

    @property
    def agent(self) -> str:
        """The agent that it is a fork of."""
        return self.parent.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class Health:
    """What does not work, in words; empty when all is well."""

    journal: str = ""
    library: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    """Parts of prompts that were left out when they were read last, with what is wrong with them."""
    agents: tuple[str, ...] = ()
    """Agents that ended by a fault of the program or could not be resumed, with the reason."""
    sandbox: str = ""
    """Why no program may run here, when the jail that the policy requires cannot be had."""
    snapshots: str = ""
    """Why old snapshots could not be cleared away; new ones are taken all the same."""
    states: tuple[str, ...] = ()
    """What opening found damaged, and how it went on: a torn end, kept states that were built again."""
    memory: str = ""
    """Why memory is not to be had, or holds not all that it should; agents continue without."""
    memory_behind: int = 0
    """Events of the journal that memory has not been written from yet."""
    servers: tuple[str, ...] = ()
    """What is wrong with MCP servers or their settings, a line each."""
    restricted: bool = False
    """Whether the workspace was opened without what its user does not trust of its folder."""


LOOPS_OVER = "MAX_LOOPS"
"""How a run without a screen ends whose loops are used up."""


class RunState(StrEnum):
    """What the operator allows the agent to do."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class Mode(StrEnum):
    """What the status line says."""

    RUNNING = "RUNNING"
    IDLE = "IDLE"
    """Allowed to run, and nothing to do."""
    PAUSED = "PAUSED"
    STEPPING = "STEPPING"
    WAITING = "WAITING"
    INTERVENTION = "INTERVENTION"
    SHELL = "SHELL"
    """The operator holds the agent's shell."""
    FROZEN = "FROZEN"
    """Its processes stand still."""
    TIMED_OUT = "TIMED_OUT"
    """The loops of its run are used up, and the goal is not done: another run continues with it."""
    STOPPED = "STOPPED"


HELD_MODES = frozenset({Mode.PAUSED, Mode.TIMED_OUT, Mode.INTERVENTION, Mode.SHELL, Mode.FROZEN})
"""Modes in which what comes next stands still until the operator does something."""


class PausePoint(StrEnum):
    """Where in its cycle a held agent stands."""

    BEFORE_THINKING = "before thinking"
    BEFORE_ACTING = "before acting"
    ACTING = "acting"
    """The action that runs ends by itself; nothing starts after it."""
    NOTHING_TO_DO = "nothing to do"


RUN_TYPES = ("role", "operator", "collaborative", "pipeline", "guided")
"""Types of agents that work on a handoff; the values of `engine.crew.ontology.kinds.AgentType`."""
BY_SPEC = "spec"
"""The thinker of a run: its type's method makes the plan, and a model decides what needs thought."""
CREW = "crew"
"""The tool by which a run reaches the others and the operator."""
SPEC, HANDOFF, PROGRESS = "spec", "handoff", "progress"
"""Where a run's configuration has its specification, what was handed to it, and how far others came."""
TASK = "task"
"""Where the configuration of a run that another program does has its whole task."""
RECORDING = "recording"
"""Where an agent's configuration, or a handoff's metadata, names the recording that answers for a model."""


def handoff_metadata(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of the handoff that a run's configuration has; empty for other agents."""
    handoff = config.get(HANDOFF)
    metadata = handoff.get("metadata") if isinstance(handoff, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def recording_of(config: Mapping[str, Any]) -> str:
    """The recording that answers an agent, by its configuration or its handoff's; empty for none."""
    return str(handoff_metadata(config).get(RECORDING) or config.get(RECORDING) or "")


PROOF = "proof"
"""Where the metadata of a handoff of version 0.1 say that it proved a new agent, and how."""

RETURNED = "crew.returned"
"""Beliefs of a run: how its handoff ended by its own word."""
REPAIRS = "crew.repairs"
"""How often what it wanted to return, or to say, was sent back."""
VIEWS = "crew.views"
"""What its sub-agents answered."""
PIPELINE, GUIDED, ROLE, DEBATE = "crew.pipeline", "crew.guided", "crew.role", "crew.debate"
"""How far it is, as the machines of `engine.crew.methods` say."""
TURNS = "crew.turns"
"""What was said between a role and the operator."""
NOTE = "crew.note"
"""What the operator is to know with the next question."""
WANTED = "crew.suggest"
"""The guided step for which the operator wants a draft."""
OPENED = "crew.opened"
"""Files of its skill that it has opened, by path."""
AWAY = "crew.away"
"""To whom a role gave the floor; it waits until it has it again."""


_Server = Annotated[str, Field(min_length=1, max_length=64)]


class ForServers(Command):
    """What concerns the servers that `mcp.json` names, and no agent."""


class TrustServer(ForServers, do="mcp_trust"):
    """Let a server of the workspace's `mcp.json` start, now and in later sessions, as long as its entry is
    the same.
    """

    server: _Server
    entry: Annotated[str, Field(max_length=64)] = ""
    """The hash of the entry as it was read, or its beginning, so that leave is not given to something else;
    empty for the entry as it is."""


class DistrustServer(ForServers, do="mcp_distrust"):
    """Let a server not start, and end it where it runs."""

    server: _Server


class WorkspaceCreated(Payload, kind="workspace.created"):
    """A directory became a workspace."""

    workspace: str


class SessionOpened(Payload, kind="session.opened"):
    """An engine opened the workspace."""

    session: str
    version: str


class SessionClosed(Payload, kind="session.closed"):
    """The engine closed the workspace in good order."""

    session: str
    reason: str = ""


class TierAccepted(Payload, kind="sandbox.tier_accepted"):
    """The operator lets programs run in a weaker jail than the policy requires, until the session ends."""

    session: str
    tier: str
    reason: Reason
    """What was missing."""


class NetworkGranted(Payload, kind="sandbox.network_granted"):
    """The operator said what programs may reach over the network, until the session ends."""

    session: str
    network: str


class AgentCreated(Payload, kind="agent.created", external=True):
    """An agent came to be; the first event of its stream."""

    agent_id: str
    agent_type: str
    description: str = ""
    config: AgentConfig


class AgentOpened(Payload, kind="agent.opened", external=True):
    """A session resumed the agent; what ran when the last one ended is settled after this."""

    session: str
    seed: int


class AgentConfigured(Payload, kind="agent.configured"):
    """The agent has other settings from here on."""

    settings: dict[str, dict[str, Any]]
    """By table; a table that is given replaces the one before."""
    max_consecutive_errors: int
    """Failures in a row after which the operator is asked."""


class AgentDeleted(Payload, kind="agent.deleted"):
    """The agent was removed; its history stays."""


class AgentResumed(Payload, kind="agent.resumed"):
    """The agent may run."""

    max_loops: int | None = None
    until: str | None = None
    ask: bool = True


class AgentPaused(Payload, kind="agent.paused"):
    """No new action starts; what runs ends by itself."""

    reason: Reason


class StepGranted(Payload, kind="agent.step_granted"):
    """While paused, one more action is allowed; to an agent with a reasoner a stride of body steps."""

    stride: Stride | None = None


class AgentStopped(Payload, kind="agent.stopped"):
    """The agent was stopped; a running action is cut off."""

    reason: Reason


class CommandReceived(Payload, kind="command.received", external=True):
    """The operator asked for something."""

    command: dict[str, Any]


class CommandRefused(Payload, kind="command.refused"):
    """What was asked for could not be done; nothing changed."""

    reason: Reason


class ServerTrusted(Payload, kind="mcp.trusted"):
    """The operator lets a server start, as its entry is now."""

    server: str
    entry: str
    """SHA-256 of the entry (`engine.tools.mcp.permissions.entry_of`); another entry of that name has no
    leave."""
    what: str
    """The command line or the address, as it was shown; cut where it is very long."""
    seal: str
    """Shows that it was given here: see `engine.tools.mcp.permissions.ServerPermissions`."""


class ServerDistrusted(Payload, kind="mcp.distrusted"):
    """The operator does not let a server start, or not any more."""

    server: str
    entry: str
