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


class Delegate(_Work):
    """Hand a task to an agent; the receipt's data has the handoff's id as `handoff`."""

    do: Literal["crew_delegate"] = "crew_delegate"
    to: _Agent


class Sequence(_Work):
    """One agent after the other, each with the findings of those before; a failure ends it."""

    do: Literal["crew_sequence"] = "crew_sequence"
    to: Annotated[tuple[_Agent, ...], Field(min_length=1, max_length=32)]


class Parallel(_Work):
    """Several agents at once, none with a view of the others; their answers are brought together."""

    do: Literal["crew_parallel"] = "crew_parallel"
    to: Annotated[tuple[_Agent, ...], Field(min_length=1, max_length=32)]
    min_success: Annotated[int | None, Field(ge=1, le=32)] = None
    """None takes half of them, rounded up."""


class Select(_Work):
    """Let the selection choose who does it."""

    do: Literal["crew_select"] = "crew_select"
    among: tuple[_Agent, ...] = ()
    """Who may be chosen; empty is everybody that may be selected."""


class Debate(Bringing):
    """Have a motion argued and judged, by a registered debate agent or by two agents that are named."""

    do: Literal["crew_debate"] = "crew_debate"
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


class Transfer(ForCrew):
    """Give the floor to a role or a guided agent."""

    do: Literal["crew_transfer"] = "crew_transfer"
    to: _Agent
    reason: _Words = ""
    clarity: dict[str, Any] | None = None


class TakeBack(ForCrew):
    """Give the floor back to whoever had it before."""

    do: Literal["crew_take_back"] = "crew_take_back"


class Say(ForCrew):
    """Say something to the holder of the floor."""

    do: Literal["crew_say"] = "crew_say"
    text: Annotated[str, Field(min_length=1, max_length=100_000)]


class TakeIdea(ForCrew):
    """Take a parked idea up: hand it to a registered agent, or make it a goal of an agent of the engine."""

    do: Literal["crew_take_idea"] = "crew_take_idea"
    idea: _Id
    to: str = Field(default="", max_length=64)
    """The registered agent that is handed it."""
    goal_of: str = Field(default="", max_length=128)
    """Else the agent whose goal it becomes."""


class DropIdea(ForCrew):
    """Let a parked idea go; it stays on record."""

    do: Literal["crew_drop_idea"] = "crew_drop_idea"
    idea: _Id
    reason: str = Field(default="", max_length=2_000)


class CancelHandoff(ForCrew):
    """End a handoff with all that it handed over, or all of the session."""

    do: Literal["crew_cancel"] = "crew_cancel"
    handoff: str = Field(default="", max_length=80)
    """Empty is all that is open."""
    reason: str = Field(default="cancelled", max_length=2_000)


class RetryHandoff(ForCrew):
    """Hand the same over once more, as a new handoff."""

    do: Literal["crew_retry"] = "crew_retry"
    handoff: _Id


class PauseHandoff(ForCrew):
    """Let a handoff stand still; its clock does, too."""

    do: Literal["crew_pause"] = "crew_pause"
    handoff: _Id


class ResumeHandoff(ForCrew):
    """Let a paused handoff go on."""

    do: Literal["crew_resume"] = "crew_resume"
    handoff: _Id


class SetPriority(ForCrew):
    """Say how urgent a handoff is: 1 normal, 2 high, 3 urgent."""

    do: Literal["crew_priority"] = "crew_priority"
    handoff: _Id
    priority: _Priority


class StepMode(ForCrew):
    """Say whether a pipeline asks after each checkpoint, a debate after each round, how it goes on."""

    do: Literal["crew_step_mode"] = "crew_step_mode"
    handoff: _Id
    on: bool = True


class TakeOver(ForCrew):
    """Write a handoff's result by hand; it is marked as the operator's."""

    do: Literal["crew_take_over"] = "crew_take_over"
    handoff: _Id
    text: Annotated[str, Field(min_length=1, max_length=200_000)]


class AnswerRequest(ForCrew):
    """Answer what is asked of the operator, by an option, by text, or by both."""

    do: Literal["crew_answer"] = "crew_answer"
    request: _Id
    option: str = Field(default="", max_length=64)
    """An option's id, or its number from 1."""
    text: _Words = ""


class DismissRequest(ForCrew):
    """Give no answer; whoever waits for it fails."""

    do: Literal["crew_dismiss"] = "crew_dismiss"
    request: _Id
    reason: str = Field(default="", max_length=2_000)


class RevokePermission(ForCrew):
    """Take an "always" back."""

    do: Literal["crew_revoke"] = "crew_revoke"
    who: _Agent
    tool: Annotated[str, Field(min_length=1, max_length=2_000)]
    """The tool, or the rule, as it is listed."""


class RegisterAgent(ForCrew):
    """Take in a type of agent."""

    do: Literal["crew_register"] = "crew_register"
    spec: dict[str, Any]
    source: str = Field(default="", max_length=2_000)


class RemoveAgent(ForCrew):
    """Take a type of agent out; what runs goes on."""

    do: Literal["crew_remove"] = "crew_remove"
    who: _Agent
    reason: str = Field(default="", max_length=2_000)


class EnableAgent(ForCrew):
    """Say whether an agent takes work."""

    do: Literal["crew_enable"] = "crew_enable"
    who: _Agent
    enabled: bool = True


class GuidedMove(ForCrew):
    """A move in a guided handoff, given to its run, which waits for it."""

    do: Literal["crew_guided"] = "crew_guided"
    handoff: _Id
    move: Literal["answer", "back", "skip", "jump", "confirm", "suggest", "save", "finish"]
    value: Any = None
    """The answer, as JSON."""
    step: str = Field(default="", max_length=64)
    """Where `jump` and `confirm` go."""
    reason: str = Field(default="", max_length=2_000)
