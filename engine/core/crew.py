"""Settings of a crew, and the events of its stream `workspace@crew`.

The stream is no agent's: it is verified with the rest and not replayed. `engine.crew.event_stream` folds it.
Values of the ontology are kept as their JSON, so that reading a journal needs none of it.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from engine.core.journal import Payload
from engine.core.reasons import NONE, Reason
from engine.value import dataclass


@dataclass(frozen=True, slots=True)
class CrewSettings:
    """Limits of a crew."""

    model_calls: int = 4
    """Model calls of all its runs at a time; how many handoffs run at a time is not limited."""
    attended: bool = True
    """Whether an operator is there to be asked; else ties and pauses take their usual way."""
    built_ins: bool = True
    """Whether the agents that Pilothouse ships are there."""
    learn: bool = True
    """Whether selection learns from how earlier work ended."""
    remote: bool = False
    """Whether work for agents that are not registered here is handed to other engines (`HandoffSent`)."""


class AgentRegistered(Payload, kind="crew.agent_registered"):
    """A type of agent can be handed work from now on; one of the same id is replaced."""

    spec: dict[str, Any]
    source: str = ""
    """Where it comes from, as the folder that it was built of."""
    warnings: tuple[str, ...] = ()


class AgentRemoved(Payload, kind="crew.agent_removed"):
    """A type of agent is gone; what runs continues."""

    agent: str
    reason: Reason = NONE


class AgentEnabled(Payload, kind="crew.agent_enabled"):
    """Whether an agent takes work."""

    agent: str
    enabled: bool
    reason: str = ""


class RemoteAgents(Payload, kind="crew.remote_agents"):
    """Whether agents that are not registered here may be on other engines."""

    on: bool


class HandoffQueued(Payload, kind="crew.handoff_queued"):
    """Work was handed over. Its first move: it waits."""

    handoff: str
    seq: int = 1
    context: dict[str, Any]
    spec_event: str = ""
    """The event that registered the spec it runs by; empty where `spec` has it, or there is none."""
    spec: dict[str, Any] | None = None
    """The spec of a sub-agent that is registered nowhere."""
    caller: str = ""
    """The run that handed it over; empty for the operator."""
    group: str = ""
    origin: str = Field(default="", exclude_if=lambda given: not given)
    """The engine that handed it over, where another one did."""


class HandoffMoved(Payload, kind="crew.handoff_moved"):
    """A handoff stands elsewhere; the move and the state are this one event."""

    handoff: str
    seq: int
    source: str
    target: str
    reason: Reason = NONE
    spent_s: float = 0.0
    """Seconds of its deadline that are used up, without those in which it waited."""
    limit_s: float = 0.0
    """Its deadline in seconds, given when it begins; 0 leaves it as it was."""


class HandoffEnded(Payload, kind="crew.handoff_ended"):
    """A handoff's last move, with its result."""

    handoff: str
    seq: int
    source: str
    target: str
    reason: Reason = NONE
    spent_s: float = 0.0
    result: dict[str, Any]


class RunBegun(Payload, kind="crew.run_begun"):
    """An agent of the engine works on a handoff."""

    handoff: str
    run: str


class HandoffSent(Payload, kind="crew.handoff_sent"):
    """Another engine is to be told of a handoff; whoever connects the two gives it the command, once."""

    handoff: str
    agent: str
    """Who works on it."""
    origin: str = ""
    """The engine that is told; empty for that of the agent."""
    command: dict[str, Any]


class PriorityChanged(Payload, kind="crew.priority_changed"):
    """A handoff is more or less urgent."""

    handoff: str
    priority: int = Field(ge=1, le=3)


class StepModeSet(Payload, kind="crew.step_mode"):
    """Whether a handoff halts after each checkpoint or round and asks."""

    handoff: str
    on: bool


class ProgressKept(Payload, kind="crew.progress"):
    """How far a run is: `pipeline.phase`, `guided.step`, `debate.turn`, `debate.ledger`, `role.turn` …"""

    handoff: str
    what: str
    progress: dict[str, Any]
    note: str = ""


class LateResult(Payload, kind="crew.late_result"):
    """A result came for a handoff that had ended; it was dropped."""

    handoff: str
    result: dict[str, Any]


class UsageRecorded(Payload, kind="crew.usage"):
    """An agent was used; selection learns from it."""

    agent: str
    handoff: str = ""
    session: str = ""
    success: bool
    usage: dict[str, Any] = Field(default_factory=dict)


class GroupBegun(Payload, kind="crew.group_begun"):
    """Several handoffs belong together."""

    group: str
    mode: str
    agents: tuple[str, ...]
    """Who is to take part, in the order given."""
    min_success: int = 0
    candidates: tuple[dict[str, Any], ...] = ()
    """Of a selection: each with `agent`, `score`, `parts`, `why`."""
    caller: str = ""


class GroupEnded(Payload, kind="crew.group_ended"):
    """A group is over (`batch.ended`)."""

    group: str
    handoffs: tuple[str, ...]
    """One for each who was to take part, in the order given; the last try of each."""
    ok: bool
    code: str = ""
    message: str = ""
    synthesis: str = ""
    """The handoff that brought the answers together; empty for none."""
    output: str = ""
    """The result of all, for the caller; empty where the members' results are all there is."""
    lost: dict[str, str] = Field(default_factory=dict)
    """Of a selection: why each candidate that was not used lost."""


class FloorChanged(Payload, kind="crew.floor_changed"):
    """Another agent speaks with the operator."""

    holders: tuple[tuple[str, str], ...]
    """Agent and handoff of each holder, the present one last."""
    reason: Reason = NONE


class OperatorSaid(Payload, kind="crew.operator_said"):
    """The operator said something to the holder of the floor, who was not listening yet."""

    handoff: str
    text: str


class OperatorHeard(Payload, kind="crew.operator_heard"):
    """What the operator said was heard."""

    handoff: str


class HumanOpened(Payload, kind="crew.human_opened"):
    """Something is asked of the operator."""

    request: dict[str, Any]


class HumanAgain(Payload, kind="crew.human_again"):
    """The same was asked while it was open."""

    request: str


class HumanClosed(Payload, kind="crew.human_closed"):
    """A request is answered, dismissed, expired or cancelled."""

    request: str
    state: str
    answer: dict[str, Any] | None = None
    taken: bool = True
    """False where the answer was waited for no longer: whoever asks the same again has it."""
    reason: Reason = NONE


class HumanTaken(Payload, kind="crew.human_taken"):
    """An answer that was not waited for was taken by who asked the same again."""

    request: str


class PermissionKept(Payload, kind="crew.permission_kept"):
    """The operator said "always": it holds for one agent and one tool."""

    agent: str
    tool: str
    allow: bool


class PermissionRevoked(Payload, kind="crew.permission_revoked"):
    """An "always" holds no longer."""

    agent: str
    tool: str


class IdeaParked(Payload, kind="crew.idea_parked"):
    """A role put an idea of the conversation aside, for later."""

    idea: str
    handoff: str
    agent: str
    text: str


class IdeaSettled(Payload, kind="crew.idea_settled"):
    """The operator took a parked idea up, or dropped it."""

    idea: str
    state: str
    """`taken` or `dropped`."""
    to: str = ""
    """What it became, as a handoff or a goal."""
    reason: str = ""


class BuildStaged(Payload, kind="crew.build_staged"):
    """How far a build of an agent is (`builder.phase`)."""

    build: str
    phase: str
    state: str
    """As `begun`, `passed`, `failed`, `ended`."""
    agent: str = ""
    message: str = ""
    data: dict[str, Any] = Field(default_factory=dict)


class ServerTold(Payload, kind="crew.server"):
    """How an MCP server is (`mcp.state`)."""

    server: str
    state: str
    message: str = ""
    tools: int = 0
