"""The words of the ontology, each a closed set, and the base of its values.

Values are lower case; what is read may be upper case and have blanks around it. An unknown word is an error
that names the allowed ones: nothing is ever taken for something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Annotated, Any, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from engine.core.text import clean_line


class OntologyWord(StrEnum):
    """A word of a closed set."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if isinstance(value, str) and (word := value.strip().lower()) != value:
            return next((member for member in cls if member.value == word), None)
        return None


class AgentType(OntologyWord):
    """How an agent works."""

    ROLE = "role"
    """A persona that talks with the operator: short, one question a turn."""
    OPERATOR = "operator"
    """One task in, one structured answer out."""
    COLLABORATIVE = "collaborative"
    """Several views at once, then a synthesis; or a debate."""
    PIPELINE = "pipeline"
    """Phases in order, each with a checkpoint."""
    GUIDED = "guided"
    """Step by step with the operator."""

    @property
    def keeps_progress(self) -> bool:
        """Whether it can continue from what it kept: committed phases, answered steps."""
        return self in (AgentType.PIPELINE, AgentType.GUIDED)

    @property
    def badge(self) -> str:
        """Three letters for narrow places."""
        return _BADGES[self]


_BADGES = {
    AgentType.ROLE: "ROL",
    AgentType.OPERATOR: "OPR",
    AgentType.COLLABORATIVE: "COL",
    AgentType.PIPELINE: "PIP",
    AgentType.GUIDED: "GUI",
}


class HandoffType(OntologyWord):
    """What happens to the conversation."""

    DELEGATE = "delegate"
    TRANSFER = "transfer"
    RETURN = "return"
    ESCALATE = "escalate"


class HandoffMode(OntologyWord):
    """How a group of handoffs runs."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    SELECTIVE = "selective"
    DEBATE = "debate"


class ReturnBehavior(OntologyWord):
    """What the caller does with what comes back."""

    SYNTHESIZE = "synthesize"
    PASSTHROUGH = "passthrough"
    ITERATE = "iterate"


class OutputFormat(OntologyWord):
    """The form of an output."""

    MARKDOWN = "markdown"
    JSON = "json"
    STRUCTURED = "structured"


class Priority(IntEnum):
    """How urgent a handoff is."""

    NORMAL = 1
    HIGH = 2
    URGENT = 3


class HandoffState(OntologyWord):
    """Where a handoff stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_HUMAN = "waiting_human"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    REJECTED = "rejected"

    @property
    def terminal(self) -> bool:
        """Whether nothing follows."""
        return not MOVES[self]

    @property
    def glyph(self) -> str:
        """The sign that stands before the word."""
        return _GLYPHS[self]

    @property
    def words(self) -> str:
        """The word as it is shown."""
        return _SHOWN.get(self, self.value)


MOVES: dict[HandoffState, frozenset[HandoffState]] = dict.fromkeys(HandoffState, frozenset()) | {
    HandoffState.QUEUED: frozenset({HandoffState.RUNNING, HandoffState.REJECTED, HandoffState.CANCELLED}),
    HandoffState.RUNNING: frozenset(HandoffState)
    - {HandoffState.QUEUED, HandoffState.RUNNING, HandoffState.REJECTED},
    HandoffState.WAITING_HUMAN: frozenset(
        {HandoffState.RUNNING, HandoffState.FAILED, HandoffState.CANCELLED}
    ),
    HandoffState.PAUSED: frozenset({HandoffState.RUNNING, HandoffState.CANCELLED}),
}
"""Where a handoff may go from each state."""

_GLYPHS = dict(zip(HandoffState, "·▶?‖✓✗⊘⏱⊝", strict=True))
_SHOWN = {
    HandoffState.WAITING_HUMAN: "waiting",
    HandoffState.COMPLETED: "done",
    HandoffState.TIMED_OUT: "timed out",
}


class IllegalTransition(ValueError):  # noqa: N818 - the spec's name
    """A handoff was to go where it cannot; nothing changed.

    Args:
        source: where it stands.
        target: where it was to go.
    """

    def __init__(self, source: HandoffState, target: HandoffState) -> None:
        allowed = ", ".join(sorted(MOVES[source])) or "nowhere"
        super().__init__(f"a handoff cannot go from {source} to {target}; from {source} it goes to {allowed}")
        self.source, self.target = source, target


def check_move(source: HandoffState, target: HandoffState) -> None:
    """Say whether a move is allowed.

    Raises:
        IllegalTransition: it is not.
    """
    if target not in MOVES[source]:
        raise IllegalTransition(source, target)


class OnFail(OntologyWord):
    """What follows a checkpoint that was not passed."""

    RETRY = "retry"
    SKIP = "skip"
    ABORT = "abort"
    ASK_USER = "ask_user"


class ConfidenceSource(OntologyWord):
    """Who says how sure a result is."""

    AGENT = "agent"
    JUDGE = "judge"
    RULE = "rule"
    NONE = "none"


class Tier(OntologyWord):
    """How strong a model is wanted; configuration maps it to a model."""

    FAST = "fast"
    DEFAULT = "default"
    DEEP = "deep"


class Effort(OntologyWord):
    """How much a model is to work."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ThinkingMode(OntologyWord):
    """Whether a model thinks before it answers."""

    OFF = "off"
    ADAPTIVE = "adaptive"
    BUDGET = "budget"


class InputKind(OntologyWord):
    """What a guided step asks for."""

    TEXT = "text"
    LONG_TEXT = "long_text"
    CHOICE = "choice"
    MULTI = "multi"
    NUMBER = "number"
    CONFIRM = "confirm"


class Check(OntologyWord):
    """The closed registry of criteria; all but the last are pure functions."""

    NON_EMPTY = "non_empty"
    MIN_ITEMS = "min_items"
    MAX_ITEMS = "max_items"
    MIN_WORDS = "min_words"
    MAX_WORDS = "max_words"
    REGEX = "regex"
    SECTIONS_IN_ORDER = "sections_in_order"
    JSON_SCHEMA = "json_schema"
    NUMBER_RANGE = "number_range"
    SUM_EQUALS = "sum_equals"
    ONE_OF = "one_of"
    UNIQUE = "unique"
    CITES_RESOLVE = "cites_resolve"
    QUOTE_IN_SOURCE = "quote_in_source"
    NO_PLACEHOLDER = "no_placeholder"
    QUESTION_COUNT = "question_count"
    LLM_RUBRIC = "llm_rubric"


class RequestKind(OntologyWord):
    """What is asked of the operator."""

    QUESTION = "question"
    APPROVAL = "approval"
    PERMISSION = "permission"
    DECISION = "decision"
    TAKEOVER = "takeover"
    REVIEW = "review"


class RequestState(OntologyWord):
    """Where a request to the operator stands."""

    OPEN = "open"
    ANSWERED = "answered"
    DISMISSED = "dismissed"
    CANCELLED = "cancelled"


class Effect(OntologyWord):
    """What an option of a request does."""

    RESUME = "resume"
    RETRY = "retry"
    REROUTE = "reroute"
    SKIP = "skip"
    ACCEPT = "accept"
    ABORT = "abort"
    TAKEOVER = "takeover"


class ErrorCode(StrEnum):
    """Why a handoff did not succeed."""

    UNKNOWN_AGENT = "UNKNOWN_AGENT"
    NOT_CALLABLE = "NOT_CALLABLE"
    BAD_CONTEXT = "BAD_CONTEXT"
    INSUFFICIENT_CLARITY = "INSUFFICIENT_CLARITY"
    CYCLE = "CYCLE"
    DEPTH_LIMIT = "DEPTH_LIMIT"
    FANOUT_LIMIT = "FANOUT_LIMIT"
    TOOL_UNAVAILABLE = "TOOL_UNAVAILABLE"
    MCP_DOWN = "MCP_DOWN"
    MODEL_NETWORK = "MODEL_NETWORK"
    TIMEOUT = "TIMEOUT"
    RATE_LIMIT = "RATE_LIMIT"
    BUDGET = "BUDGET"
    OUTPUT_FORMAT = "OUTPUT_FORMAT"
    QUALITY_GATE = "QUALITY_GATE"
    QUORUM = "QUORUM"
    DEBATE_INCOMPLETE = "DEBATE_INCOMPLETE"
    DEBATE_VOID = "DEBATE_VOID"
    """A side made no claim: there was nothing to argue or to judge."""
    CHECKPOINT = "CHECKPOINT"
    CANCELLED = "CANCELLED"
    DISMISSED = "DISMISSED"
    NO_MODEL = "NO_MODEL"
    """What is left to do needs a model, and there is none."""
    INTERNAL = "INTERNAL"

    @property
    def category(self) -> str:
        """The failure category of the Agent Master Loop."""
        return _CATEGORIES[self]

    @property
    def retries(self) -> int:
        """How often the manager tries again by itself."""
        return _RETRIES.get(self, 0)


_CATEGORIES = {
    code: category
    for category, codes in {
        "InvalidInputError": "UNKNOWN_AGENT NOT_CALLABLE BAD_CONTEXT",
        "DependencyNotMetError": "INSUFFICIENT_CLARITY NO_MODEL",
        "PlanValidationError": "CYCLE DEPTH_LIMIT FANOUT_LIMIT",
        "ServerUnavailable": "TOOL_UNAVAILABLE MCP_DOWN",
        "NetworkError": "MODEL_NETWORK TIMEOUT",
        "APILimitError": "RATE_LIMIT BUDGET",
        "ToolExecutionError": "OUTPUT_FORMAT QUALITY_GATE QUORUM DEBATE_INCOMPLETE DEBATE_VOID "
        "CHECKPOINT DISMISSED",
        "CancelledError": "CANCELLED",
        "UnknownError": "INTERNAL",
    }.items()
    for code in map(ErrorCode, codes.split())
}
_RETRIES = {
    ErrorCode.TOOL_UNAVAILABLE: 2,
    ErrorCode.MCP_DOWN: 2,
    ErrorCode.MODEL_NETWORK: 3,
    ErrorCode.RATE_LIMIT: 3,
}


AGENT_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
RESERVED = ("user", "orchestrator")
"""Ends of a handoff that are no registered agents."""


class SpecProblem(NamedTuple):
    """One thing that is wrong with what was given."""

    path: str
    """Where, as `handoff.receives.min_clarity` or `phases[1].inputs[0]`."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidError(ValueError):
    """Something given is not valid; all of its problems are reported together.

    Args:
        what: what was to be read, as `agent spec`.
        problems: everything that is wrong with it.
    """

    def __init__(self, what: str, problems: tuple[SpecProblem, ...]) -> None:
        super().__init__(f"{what}: " + "; ".join(map(str, problems)))
        self.problems = problems


class OntologyValue(BaseModel):
    """A frozen value that is equal to what its JSON gives."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @classmethod
    def read(cls, given: Mapping[str, Any], what: str = "") -> Self:
        """The value of given fields.

        Raises:
            InvalidError: it is none; every field that is wrong is named.
        """
        try:
            return cls.model_validate(dict(given))
        except ValidationError as error:
            raise InvalidError(what or cls.__name__, problems_in(error)) from error

    @classmethod
    def loaded(cls, stored: Mapping[str, Any]) -> Self:
        """The value of a stored row, without fields that this version does not know.

        Raises:
            InvalidError: it is none.
        """
        return cls.read({key: field for key, field in stored.items() if key in cls.model_fields})


def problems_in(error: ValidationError) -> tuple[SpecProblem, ...]:
    """Everything that pydantic found wrong, with paths as they stand in YAML."""
    return tuple(SpecProblem(path_of(details["loc"]), _said(details["msg"])) for details in error.errors())


def path_of(loc: tuple[int | str, ...]) -> str:
    """`phases[1].inputs[0]` of `("phases", 1, "inputs", 0)`."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _said(message: str) -> str:
    return clean_line(message.removeprefix("Value error, "), limit=500)


def _agent_id(given: str) -> str:
    if not AGENT_ID.match(given):
        raise ValueError(
            f"{clean_line(given, limit=80)!r} is no agent id: lower-case letters, digits and hyphens, "
            "up to 64, not beginning with a hyphen"
        )
    return given


def _deduped(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(given))


AgentId = Annotated[str, AfterValidator(_agent_id)]
"""The id of a registered agent, or a reserved end."""
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
Lines = Annotated[tuple[Line, ...], Field(max_length=50), AfterValidator(_deduped)]
"""Up to 50 lines of up to 2,000 characters, each once, in the order given."""
WORDS_LIMIT = 200_000
Words = Annotated[str, Field(max_length=WORDS_LIMIT)]
"""A text of any kind."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number from 0 to 1."""
