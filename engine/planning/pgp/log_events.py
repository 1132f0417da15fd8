"""What a BDI run with plan generation logs, as typed records of one JSON line each.

They say what happens in the agent and to its environment, and how what was executed went. Negative feedback
stands at warning level, all else at info.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator


class Level(StrEnum):
    """How much a line matters."""

    INFO = "info"
    WARNING = "warning"


_STRICT = ConfigDict(frozen=True, extra="forbid", json_schema_serialization_defaults_required=True)
"""Lines are written whole, so their schema requires every field."""


class _Record(BaseModel):
    model_config = _STRICT

    level: ClassVar[Level] = Level.INFO


class EventSelected(_Record):
    """The cycle took this event."""

    kind: Literal["event_selected"] = "event_selected"
    event: str


class IntentionStep(_Record):
    """An intention was created or updated, or one of its goals was run."""

    kind: Literal["intention"] = "intention"
    step: Literal["created", "updated", "goal_run"]
    intention: str
    goal: str = ""


class PlanSelected(_Record):
    """This plan was chosen for the event."""

    kind: Literal["plan_selected"] = "plan_selected"
    plan: str
    event: str


class GoalAchieved(_Record):
    """A goal's plan came to its end."""

    kind: Literal["goal_achieved"] = "goal_achieved"
    goal: str


class MessageArrived(_Record):
    """A message from another agent."""

    kind: Literal["message_received"] = "message_received"
    sender: str
    performative: str
    content: str


class ActionAdded(_Record):
    """An external action was handed to the environment."""

    kind: Literal["action_added"] = "action_added"
    action: str


class Kept(StrEnum):
    """What a mind keeps and may gain or lose."""

    BELIEF = "belief"
    INTENTION = "intention"
    EVENT = "event"
    PLAN = "plan"
    ADMISSIBLE_BELIEF = "admissible_belief"
    ADMISSIBLE_GOAL = "admissible_goal"


class MindChanged(_Record):
    """Something was added to the agent's mind or removed from it."""

    kind: Literal["mind_changed"] = "mind_changed"
    what: Kept
    change: Literal["added", "removed"]
    text: str


class ActivityChanged(_Record):
    """The agent sleeps, pauses or stops."""

    kind: Literal["activity"] = "activity"
    activity: Literal["sleep", "pause", "stop"]


class GenerationRequested(_Record):
    """A generation begins; the configuration is without its token."""

    kind: Literal["generation_requested"] = "generation_requested"
    goal: str
    config: dict[str, JsonValue]


class PromptSent(_Record):
    """A message to the model."""

    kind: Literal["prompt_sent"] = "prompt_sent"
    role: Literal["system", "user", "assistant"]
    text: str


class AnswerReceived(_Record):
    """A message from the model, unchanged."""

    kind: Literal["answer_received"] = "answer_received"
    completion_id: str
    text: str


class EnvironmentChanged(_Record):
    """An effect on the system outside the agent."""

    kind: Literal["environment_changed"] = "environment_changed"
    change: Literal[
        "agent_spawned",
        "agent_removed",
        "message_sent",
        "message_broadcast",
        "message_taken",
        "data_added",
        "data_removed",
        "data_updated",
    ]
    text: str


class WorldEvent(_Record):
    """An event of the world's own, by the name the world gives it."""

    kind: Literal["world_event"] = "world_event"
    name: str
    data: dict[str, JsonValue] = {}


class GoalSucceeded(_Record):
    """A goal in a body was executed."""

    kind: Literal["goal_succeeded"] = "goal_succeeded"
    goal: str


class ActionSucceeded(_Record):
    """An action succeeded; `name` is the action's own kind of success, such as `ObjectReached`."""

    kind: Literal["action_succeeded"] = "action_succeeded"
    action: str
    name: str = ""
    data: dict[str, JsonValue] = {}


class GenerationSucceeded(_Record):
    """A generation began, or gave plans."""

    kind: Literal["generation_succeeded"] = "generation_succeeded"
    goal: str
    stage: Literal["requested", "completed"]
    plans: tuple[str, ...] = ()


class _Negative(_Record):
    level = Level.WARNING


class TestGoalFailed(_Negative):
    """Nothing believed answers the test."""

    kind: Literal["test_goal_failed"] = "test_goal_failed"
    goal: str


class ActionFailed(_Negative):
    """An action could not be run, or failed."""

    kind: Literal["action_failed"] = "action_failed"
    action: str
    cause: Literal["wrong_arity", "not_found", "substitution_failed", "failed"]
    reason: str


class PlanNotFound(_Negative):
    """No plan is relevant for the event."""

    kind: Literal["plan_not_found"] = "plan_not_found"
    event: str


class GuardResult(BaseModel):
    """One literal of a context, and whether it held."""

    model_config = _STRICT

    guard: str
    held: bool


class PlanInapplicable(_Negative):
    """Plans are relevant, but the context of none holds; one entry a plan."""

    kind: Literal["plan_inapplicable"] = "plan_inapplicable"
    event: str
    guards: dict[str, tuple[GuardResult, ...]]


class GenerationFailed(_Negative):
    """A generation gave no plan that may be installed."""

    kind: Literal["generation_failed"] = "generation_failed"
    goal: str
    reason: str


LogEvent = (
    EventSelected
    | IntentionStep
    | PlanSelected
    | GoalAchieved
    | MessageArrived
    | ActionAdded
    | MindChanged
    | ActivityChanged
    | GenerationRequested
    | PromptSent
    | AnswerReceived
    | EnvironmentChanged
    | WorldEvent
    | GoalSucceeded
    | ActionSucceeded
    | GenerationSucceeded
    | TestGoalFailed
    | ActionFailed
    | PlanNotFound
    | PlanInapplicable
    | GenerationFailed
)


class LogLine(BaseModel):
    """An event with whom it concerns; one line of a `.jsonl` file."""

    model_config = _STRICT

    system: str
    """The run of the whole system."""
    agent: str | None = None
    generation: str | None = None
    cycle: int = Field(ge=0)
    event: Annotated[LogEvent, Field(discriminator="kind")]
    level: Level = Field(default_factory=lambda line: line["event"].level)
    """How much the line matters; the event decides it."""

    @model_validator(mode="after")
    def _is_of_its_level(self) -> LogLine:
        if self.level is not self.event.level:
            raise ValueError(f"{self.event.kind} stands at level {self.event.level}, not {self.level}")
        return self

    def to_json(self) -> str:
        """The line, without a line end; `from_json` gives an equal one back."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, line: str | bytes) -> LogLine:
        """A line read back.

        Raises:
            pydantic.ValidationError: it is no such line; the error names the field.
        """
        return cls.model_validate_json(line)
