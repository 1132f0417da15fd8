"""The kinds of events of the stream `workspace@crew`: who was registered, what was handed over and asked.

The stream is no agent's: it is verified with the rest and not replayed. `engine.crew.fold` makes the state
of it. Values of the ontology are kept as their JSON, so that reading a journal needs none of it.
Source: ontology spec §1.15.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from engine.journal.payload import Payload


class AgentRegistered(Payload):
    """A type of agent can be handed work from now on; one of the same id is replaced."""

    kind: ClassVar[str] = "crew.agent_registered"
    spec: dict[str, Any]
    source: str = ""
    """Where it comes from, as the folder that it was built of."""
    warnings: tuple[str, ...] = ()


class AgentRemoved(Payload):
    """A type of agent is gone; what runs goes on."""

    kind: ClassVar[str] = "crew.agent_removed"
    agent: str
    reason: str = ""


class AgentEnabled(Payload):
    """Whether an agent takes work."""

    kind: ClassVar[str] = "crew.agent_enabled"
    agent: str
    enabled: bool
    reason: str = ""


class HandoffQueued(Payload):
    """Work was handed over. Its first move: it waits."""

    kind: ClassVar[str] = "crew.handoff_queued"
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


class HandoffMoved(Payload):
    """A handoff stands elsewhere; the move and the state are this one event."""

    kind: ClassVar[str] = "crew.handoff_moved"
    handoff: str
    seq: int
    source: str
    target: str
    reason: str = ""
    spent_s: float = 0.0
    """Seconds of its deadline that are used up, without those in which it waited."""
    limit_s: float = 0.0
    """Its deadline in seconds, given when it begins; 0 leaves it as it was."""


class HandoffEnded(Payload):
    """A handoff's last move, with what came of it."""

    kind: ClassVar[str] = "crew.handoff_ended"
    handoff: str
    seq: int
    source: str
    target: str
    reason: str = ""
    spent_s: float = 0.0
    result: dict[str, Any]


class RunBegun(Payload):
    """An agent of the engine works on a handoff."""

    kind: ClassVar[str] = "crew.run_begun"
    handoff: str
    run: str


class PriorityChanged(Payload):
    """A handoff is more or less urgent."""

    kind: ClassVar[str] = "crew.priority_changed"
    handoff: str
    priority: int = Field(ge=1, le=3)


class StepModeSet(Payload):
    """Whether a handoff halts after each checkpoint or round and asks."""

    kind: ClassVar[str] = "crew.step_mode"
    handoff: str
    on: bool


class ProgressKept(Payload):
    """How far a run is: `pipeline.phase`, `guided.step`, `debate.turn`, `debate.ledger`, `role.turn` …"""

    kind: ClassVar[str] = "crew.progress"
    handoff: str
    what: str
    progress: dict[str, Any]
    note: str = ""


class LateResult(Payload):
    """A result came for a handoff that had ended; it was dropped."""

    kind: ClassVar[str] = "crew.late_result"
    handoff: str
    result: dict[str, Any]


class UsageRecorded(Payload):
    """An agent was used; selection learns from it."""

    kind: ClassVar[str] = "crew.usage"
    agent: str
    handoff: str = ""
    session: str = ""
    success: bool
    usage: dict[str, Any] = Field(default_factory=dict)


class GroupBegun(Payload):
    """Several handoffs belong together."""

    kind: ClassVar[str] = "crew.group_begun"
    group: str
    mode: str
    agents: tuple[str, ...]
    """Who is to take part, in the order given."""
    min_success: int = 0
    candidates: tuple[dict[str, Any], ...] = ()
    """Of a selection: each with `agent`, `score`, `parts`, `why`."""
    caller: str = ""


class GroupEnded(Payload):
    """A group is over (`batch.ended`)."""

    kind: ClassVar[str] = "crew.group_ended"
    group: str
    handoffs: tuple[str, ...]
    """One for each who was to take part, in the order given; the last try of each."""
    ok: bool
    code: str = ""
    message: str = ""
    synthesis: str = ""
    """The handoff that brought the answers together; empty for none."""
    output: str = ""
    """What came of all, for the caller; empty where the members' results are all there is."""
    lost: dict[str, str] = Field(default_factory=dict)
    """Of a selection: why each candidate that was not used lost."""


class FloorChanged(Payload):
    """Somebody else speaks with the operator."""

    kind: ClassVar[str] = "crew.floor_changed"
    holders: tuple[tuple[str, str], ...]
    """Agent and handoff of each holder, the present one last."""
    reason: str = ""


class OperatorSaid(Payload):
    """The operator said something to the holder of the floor, who was not listening yet."""

    kind: ClassVar[str] = "crew.operator_said"
    handoff: str
    text: str


class OperatorHeard(Payload):
    """What the operator said was taken up."""

    kind: ClassVar[str] = "crew.operator_heard"
    handoff: str


class HumanOpened(Payload):
    """Something is asked of the operator."""

    kind: ClassVar[str] = "crew.human_opened"
    request: dict[str, Any]


class HumanAgain(Payload):
    """The same was asked while it was open."""

    kind: ClassVar[str] = "crew.human_again"
    request: str


class HumanClosed(Payload):
    """A request is answered, dismissed, expired or cancelled."""

    kind: ClassVar[str] = "crew.human_closed"
    request: str
    state: str
    answer: dict[str, Any] | None = None
    taken: bool = True
    """False where nobody waited for the answer any more: whoever asks the same again has it."""
    reason: str = ""


class HumanTaken(Payload):
    """An answer that nobody waited for was taken by who asked the same again."""

    kind: ClassVar[str] = "crew.human_taken"
    request: str


class PermissionKept(Payload):
    """The operator said "always": it holds for one agent and one tool."""

    kind: ClassVar[str] = "crew.permission_kept"
    agent: str
    tool: str
    allow: bool


class PermissionRevoked(Payload):
    """An "always" holds no longer."""

    kind: ClassVar[str] = "crew.permission_revoked"
    agent: str
    tool: str


class IdeaParked(Payload):
    """A role put an idea of the conversation aside, for later."""

    kind: ClassVar[str] = "crew.idea_parked"
    idea: str
    handoff: str
    agent: str
    text: str


class IdeaSettled(Payload):
    """The operator took a parked idea up, or dropped it."""

    kind: ClassVar[str] = "crew.idea_settled"
    idea: str
    state: str
    """`taken` or `dropped`."""
    to: str = ""
    """What it became, as a handoff or a goal."""
    reason: str = ""


class BuildStaged(Payload):
    """How far a build of an agent is (`builder.phase`)."""

    kind: ClassVar[str] = "crew.build_staged"
    build: str
    phase: str
    state: str
    """As `begun`, `passed`, `failed`, `ended`."""
    agent: str = ""
    message: str = ""
    data: dict[str, Any] = Field(default_factory=dict)


class ServerTold(Payload):
    """How an MCP server is (`mcp.state`)."""

    kind: ClassVar[str] = "crew.server"
    server: str
    state: str
    message: str = ""
    tools: int = 0
