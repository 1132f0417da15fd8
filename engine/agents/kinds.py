"""The words of the ontology (ontology spec §1.1), each a closed set.

Values are lower case; what is read may be upper case and have blanks around it. An unknown word is an error
that names the allowed ones: nothing is ever taken for something else.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Self


class Word(StrEnum):
    """A word of a closed set."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if isinstance(value, str) and (wanted := value.strip().lower()) != value:
            return next((one for one in cls if one.value == wanted), None)
        return None


class AgentType(Word):
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
        """Whether it can go on from what it kept: committed phases, answered steps."""
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


class HandoffType(Word):
    """What happens to the conversation."""

    DELEGATE = "delegate"
    TRANSFER = "transfer"
    RETURN = "return"
    ESCALATE = "escalate"


class HandoffMode(Word):
    """How a group of handoffs runs."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    SELECTIVE = "selective"
    DEBATE = "debate"


class ReturnBehavior(Word):
    """What the caller does with what comes back."""

    SYNTHESIZE = "synthesize"
    PASSTHROUGH = "passthrough"
    ITERATE = "iterate"


class OutputFormat(Word):
    """The form of an output."""

    MARKDOWN = "markdown"
    JSON = "json"
    STRUCTURED = "structured"


class Priority(IntEnum):
    """How urgent a handoff is."""

    NORMAL = 1
    HIGH = 2
    URGENT = 3


class HandoffState(Word):
    """Where a handoff stands (ontology spec §1.9)."""

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


MOVES: dict[HandoffState, frozenset[HandoffState]] = {
    HandoffState.QUEUED: frozenset({HandoffState.RUNNING, HandoffState.REJECTED, HandoffState.CANCELLED}),
    HandoffState.RUNNING: frozenset(
        {
            HandoffState.WAITING_HUMAN,
            HandoffState.PAUSED,
            HandoffState.COMPLETED,
            HandoffState.FAILED,
            HandoffState.CANCELLED,
            HandoffState.TIMED_OUT,
        }
    ),
    HandoffState.WAITING_HUMAN: frozenset(
        {HandoffState.RUNNING, HandoffState.FAILED, HandoffState.CANCELLED}
    ),
    HandoffState.PAUSED: frozenset({HandoffState.RUNNING, HandoffState.CANCELLED}),
    HandoffState.COMPLETED: frozenset(),
    HandoffState.FAILED: frozenset(),
    HandoffState.CANCELLED: frozenset(),
    HandoffState.TIMED_OUT: frozenset(),
    HandoffState.REJECTED: frozenset(),
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


class OnFail(Word):
    """What follows a checkpoint that was not passed."""

    RETRY = "retry"
    SKIP = "skip"
    ABORT = "abort"
    ASK_USER = "ask_user"


class ClarityLevel(Word):
    """How clear a problem is, in a word."""

    UNCLEAR = "unclear"
    PARTIAL = "partial"
    MOSTLY_CLEAR = "mostly_clear"
    CLEAR = "clear"


class ConfidenceSource(Word):
    """Who says how sure a result is."""

    AGENT = "agent"
    JUDGE = "judge"
    RULE = "rule"
    NONE = "none"


class Tier(Word):
    """How strong a model is wanted; configuration maps it to a model."""

    FAST = "fast"
    DEFAULT = "default"
    DEEP = "deep"


class Effort(Word):
    """How much a model is to work."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ThinkingMode(Word):
    """Whether a model thinks before it answers."""

    OFF = "off"
    ADAPTIVE = "adaptive"
    BUDGET = "budget"


class InputKind(Word):
    """What a guided step asks for."""

    TEXT = "text"
    LONG_TEXT = "long_text"
    CHOICE = "choice"
    MULTI = "multi"
    NUMBER = "number"
    CONFIRM = "confirm"


class Check(Word):
    """The closed registry of criteria (ontology spec §1.6); all but the last are pure functions."""

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


class RequestKind(Word):
    """What is asked of the operator."""

    QUESTION = "question"
    APPROVAL = "approval"
    PERMISSION = "permission"
    DECISION = "decision"
    TAKEOVER = "takeover"
    REVIEW = "review"


class RequestState(Word):
    """Where a request to the operator stands."""

    OPEN = "open"
    ANSWERED = "answered"
    DISMISSED = "dismissed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Effect(Word):
    """What an option of a request does."""

    RESUME = "resume"
    RETRY = "retry"
    REROUTE = "reroute"
    SKIP = "skip"
    ACCEPT = "accept"
    ABORT = "abort"
    TAKEOVER = "takeover"


class ErrorCode(StrEnum):
    """Why a handoff did not succeed (ontology spec §1.5)."""

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
    ErrorCode.UNKNOWN_AGENT: "InvalidInputError",
    ErrorCode.NOT_CALLABLE: "InvalidInputError",
    ErrorCode.BAD_CONTEXT: "InvalidInputError",
    ErrorCode.INSUFFICIENT_CLARITY: "DependencyNotMetError",
    ErrorCode.CYCLE: "PlanValidationError",
    ErrorCode.DEPTH_LIMIT: "PlanValidationError",
    ErrorCode.FANOUT_LIMIT: "PlanValidationError",
    ErrorCode.TOOL_UNAVAILABLE: "ServerUnavailable",
    ErrorCode.MCP_DOWN: "ServerUnavailable",
    ErrorCode.MODEL_NETWORK: "NetworkError",
    ErrorCode.TIMEOUT: "NetworkError",
    ErrorCode.RATE_LIMIT: "APILimitError",
    ErrorCode.BUDGET: "APILimitError",
    ErrorCode.OUTPUT_FORMAT: "ToolExecutionError",
    ErrorCode.QUALITY_GATE: "ToolExecutionError",
    ErrorCode.QUORUM: "ToolExecutionError",
    ErrorCode.DEBATE_INCOMPLETE: "ToolExecutionError",
    ErrorCode.CHECKPOINT: "ToolExecutionError",
    ErrorCode.CANCELLED: "CancelledError",
    ErrorCode.DISMISSED: "ToolExecutionError",
    ErrorCode.NO_MODEL: "DependencyNotMetError",
    ErrorCode.INTERNAL: "UnknownError",
}
_RETRIES = {
    ErrorCode.TOOL_UNAVAILABLE: 2,
    ErrorCode.MCP_DOWN: 2,
    ErrorCode.MODEL_NETWORK: 3,
    ErrorCode.RATE_LIMIT: 3,
}
