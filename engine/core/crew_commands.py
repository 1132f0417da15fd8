"""Commands to the crew: what an operator asks of handoffs, agents' types and what is asked of them.

They go through `Engine.submit` like all others and concern no agent of the engine. Handoffs and requests
may be named by a unique beginning of their id.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from engine.core.command import Command

_Id = Annotated[str, Field(min_length=1, max_length=80)]
_Words = Annotated[str, Field(max_length=200_000)]
_Source = Annotated[str, Field(min_length=1, max_length=1_000)]
_Agent = Annotated[str, Field(min_length=1, max_length=64)]
_Areas = Annotated[tuple[str, ...], Field(max_length=50)]
_Priority = Annotated[int, Field(ge=1, le=3)]
_Timeout = Annotated[int | None, Field(ge=1, le=86_400)]


class ForCrew(Command):
    """What the crew carries out, and no agent of the engine."""


class Bringing(ForCrew):
    """What is given with work."""

    given: Any = None
    """Data as JSON, or a text: checked and counted where its agent does that, and told to its model."""
    sources: Annotated[tuple[_Source, ...], Field(max_length=20)] = ()
    """What can be quoted: files of the sandbox, and handoffs whose results are meant."""
    metadata: dict[str, Any] = Field(default_factory=dict)


class _Work(Bringing):
    """What work is handed over with."""

    task: Annotated[str, Field(min_length=1, max_length=200_000)]
    expected: _Words = ""
    focus: _Areas = ()
    skip: _Areas = ()
    priority: _Priority = 1
    timeout_s: _Timeout = None
    clarity: dict[str, Any] | None = None
    """What, who and success; None takes what is known of the conversation, or the task as `what`."""


class Delegate(_Work, do="crew_delegate"):
    """Hand a task to an agent; the receipt's data has the handoff's id as `handoff`."""

    to: _Agent


class Sequence(_Work, do="crew_sequence"):
    """One agent after the other, each with the findings of those before; a failure ends it."""

    to: Annotated[tuple[_Agent, ...], Field(min_length=1, max_length=32)]


class Parallel(_Work, do="crew_parallel"):
    """Several agents at once, none with a view of the others; their answers are brought together."""

    to: Annotated[tuple[_Agent, ...], Field(min_length=1, max_length=32)]
    min_success: Annotated[int | None, Field(ge=1, le=32)] = None
    """None takes half of them, rounded up."""


class Select(_Work, do="crew_select"):
    """Let the selection choose who does it."""

    among: tuple[_Agent, ...] = ()
    """Who may be chosen; empty is everybody that may be selected."""


class Debate(Bringing, do="crew_debate"):
    """Have a motion argued and judged, by a registered debate agent or by two agents that are named."""

    motion: Annotated[str, Field(min_length=1, max_length=8_000)]
    agent_id: str = Field(default="", max_length=64)
    """A registered agent with a debate; empty takes `decision-debate` where no sides are named."""
    pro: str = Field(default="", max_length=64)
    con: str = Field(default="", max_length=64)
    judge: str = Field(default="", max_length=64)
    """Of two agents that are named; empty takes `judge`. A registered debate has its own."""
    rounds: Annotated[int | None, Field(ge=1, le=4)] = None
    """None takes what the registered debate says, else 2."""
    clarity: dict[str, Any] | None = None
    timeout_s: _Timeout = None
    priority: _Priority = 1


class Transfer(ForCrew, do="crew_transfer"):
    """Give the floor to a role or a guided agent."""

    to: _Agent
    reason: _Words = ""
    clarity: dict[str, Any] | None = None


class TakeBack(ForCrew, do="crew_take_back"):
    """Give the floor back to whoever had it before."""


class Say(ForCrew, do="crew_say"):
    """Say something to the holder of the floor."""

    text: Annotated[str, Field(min_length=1, max_length=100_000)]


class CancelHandoff(ForCrew, do="crew_cancel"):
    """End a handoff with all that it handed over, or all of the session."""

    handoff: str = Field(default="", max_length=80)
    """Empty is all that is open."""
    reason: str = Field(default="cancelled", max_length=2_000)


class TakeHandoff(ForCrew, do="crew_take"):
    """Take in what an agent of another engine hands to one of this; that engine is told how it stands."""

    context: dict[str, Any]
    origin: str = Field(default="", max_length=80)
    """The engine that hands it over."""


class ReportHandoff(ForCrew, do="crew_report"):
    """Hear how a handoff stands that another engine took in."""

    handoff: _Id
    state: Annotated[str, Field(max_length=32)]
    limit_s: float = Field(default=0.0, ge=0)
    """Its deadline there."""
    result: dict[str, Any] | None = None
    """What it ended with."""
    why: str = Field(default="", max_length=2_000)
    """Why it ended without a result."""


class RetryHandoff(ForCrew, do="crew_retry"):
    """Hand the same over once more, as a new handoff."""

    handoff: _Id


class PauseHandoff(ForCrew, do="crew_pause"):
    """Let a handoff stand still; its clock does, too."""

    handoff: _Id


class ResumeHandoff(ForCrew, do="crew_resume"):
    """Let a paused handoff continue."""

    handoff: _Id


class SetPriority(ForCrew, do="crew_priority"):
    """Say how urgent a handoff is: 1 normal, 2 high, 3 urgent."""

    handoff: _Id
    priority: _Priority


class StepMode(ForCrew, do="crew_step_mode"):
    """Say whether a pipeline asks after each checkpoint, a debate after each round, how to continue."""

    handoff: _Id
    on: bool = True


class TakeOver(ForCrew, do="crew_take_over"):
    """Write a handoff's result by hand; it is marked as the operator's."""

    handoff: _Id
    text: Annotated[str, Field(min_length=1, max_length=200_000)]


class AnswerRequest(ForCrew, do="crew_answer"):
    """Answer what is asked of the operator, by an option, by text, or by both."""

    request: _Id
    option: str = Field(default="", max_length=64)
    """An option's id, or its number from 1."""
    text: _Words = ""


class DismissRequest(ForCrew, do="crew_dismiss"):
    """Give no answer; whoever waits for it fails."""

    request: _Id
    reason: str = Field(default="", max_length=2_000)


class RevokePermission(ForCrew, do="crew_revoke"):
    """Take an "always" back."""

    who: _Agent
    tool: Annotated[str, Field(min_length=1, max_length=2_000)]
    """The tool, or the rule, as it is listed."""


class RegisterAgent(ForCrew, do="crew_register"):
    """Take in a type of agent."""

    spec: dict[str, Any]
    source: str = Field(default="", max_length=2_000)


class BuildAgent(ForCrew, do="crew_build"):
    """Build and register the agent of a skill's folder, unless it is up to date; the receipt says how."""

    path: Annotated[str, Field(min_length=1, max_length=4_000)]
    """Absolute, where the engine runs."""


class RemoveAgent(ForCrew, do="crew_remove"):
    """Take a type of agent out; what runs continues."""

    who: _Agent
    reason: str = Field(default="", max_length=2_000)


class EnableAgent(ForCrew, do="crew_enable"):
    """Say whether an agent takes work."""

    who: _Agent
    enabled: bool = True


class GuidedMove(ForCrew, do="crew_guided"):
    """A move in a guided handoff, given to its run, which waits for it."""

    handoff: _Id
    move: Literal["answer", "back", "skip", "jump", "confirm", "suggest", "save", "finish"]
    value: Any = None
    """The answer, as JSON."""
    step: str = Field(default="", max_length=64)
    """Where `jump` and `confirm` go."""
    reason: str = Field(default="", max_length=2_000)
