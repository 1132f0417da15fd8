"""An answer as it comes in, piece by piece; at any moment it is a whole value.

Events of a streamed answer are checked where they come in from the network.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.text import StrictJsonError, clean_line, first_json, first_problem, read_json
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import (
    Block,
    ModelAnswer,
    Opaque,
    Piece,
    StopReason,
    Text,
    Thinking,
    ToolUse,
    Usage,
)
from engine.models.request import CHARACTERS_PER_TOKEN, ModelRequest, estimate_tokens
from engine.value import dataclass

if TYPE_CHECKING:
    from httpx2 import ServerSentEvent

Form = TypeVar("Form", bound=BaseModel)
UNNAMED = "message"
"""What the standard calls an event whose sender gave it no name."""


class Wire(BaseModel):
    """What comes over the network."""

    # The API may add fields at any time; those that are here must be of their type.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class WireCache(Wire):
    """How the tokens written to the cache divide."""

    ephemeral_1h_input_tokens: int = Field(default=0, ge=0)


class WireUsage(Wire):
    """Counts of tokens; each one may be left out."""

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cache_read_input_tokens: int | None = Field(default=None, ge=0)
    cache_creation_input_tokens: int | None = Field(default=None, ge=0)
    cache_creation: WireCache | None = None


class WireMessage(Wire):
    """The beginning of an answer."""

    id: str = ""
    model: str = ""
    usage: WireUsage = WireUsage()


class WireStopDetails(Wire):
    """What the endpoint says about a refusal."""

    category: str | None = None
    explanation: str | None = None


class WireDelta(Wire):
    """What came anew: of a block by `type`, of a message without."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: WireStopDetails | None = None


class WireError(Wire):
    """What went wrong at the endpoint while it answered."""

    type: str = ""
    message: str = ""


class WireEvent(Wire):
    """One event; which fields count depends on its type."""

    type: str
    index: int = Field(default=0, ge=0, le=100_000)
    message: WireMessage | None = None
    content_block: dict[str, Any] | None = None
    delta: WireDelta | None = None
    usage: WireUsage | None = None
    error: WireError | None = None


STREAM_ERRORS = {
    "overloaded_error": ModelErrorKind.OVERLOADED,
    "rate_limit_error": ModelErrorKind.RATE_LIMIT,
    "timeout_error": ModelErrorKind.TIMEOUT,
    "authentication_error": ModelErrorKind.AUTHENTICATION,
    "permission_error": ModelErrorKind.PERMISSION,
    "billing_error": ModelErrorKind.PERMISSION,
    "not_found_error": ModelErrorKind.NOT_FOUND,
    "invalid_request_error": ModelErrorKind.BAD_REQUEST,
    "request_too_large": ModelErrorKind.TOO_LARGE,
}


def read_event(event: ServerSentEvent, form: type[Form]) -> Form:
    """What a server sent, in the form that it has to have; it need not repeat its type.

    Raises:
        ModelError: UNREADABLE where it has not.
    """
    try:
        value = read_json(event.data)
        if isinstance(value, dict) and event.event != UNNAMED:
            value.setdefault("type", event.event)
        return form.model_validate(value)
    except (StrictJsonError, ValidationError) as error:
        why = first_problem(error) if isinstance(error, ValidationError) else str(error)
        name = "an event" if event.event == UNNAMED else clean_line(event.event, limit=60)
        raise ModelError(
            ModelErrorKind.UNREADABLE,
            f"the endpoint's stream cannot be read: {name}: {clean_line(why, limit=300)}: "
            "check that the address is one of a model",
        ) from None


def wire_event(event: ServerSentEvent) -> WireEvent:
    """The event that a server sent.

    Raises:
        ModelError: UNREADABLE where it is none; the error's own kind where the server reports one.
    """
    wire = read_event(event, WireEvent)
    if wire.type == "error":
        raise broken_off(wire.error or WireError())
    return wire


def broken_off(problem: WireError) -> ModelError:
    """What an endpoint says went wrong in the middle of an answer."""
    why = clean_line(problem.message or problem.type, limit=300)
    kind = STREAM_ERRORS.get(problem.type, ModelErrorKind.SERVER)
    return ModelError(kind, f"the model's endpoint broke the answer off: {why}")


ANSWER_LIMIT = 16 * 1024 * 1024
"""Most characters of one answer; beyond it the endpoint is not believed."""


@dataclass(slots=True)
class _Open:
    """A block under way."""

    kind: str
    start: dict[str, Any]
    parts: list[str] = field(default_factory=list)
    signature: str = ""
    ended: bool = False


class Assembly:
    """Collects the events of one streamed answer."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._blocks: dict[int, _Open] = {}
        self._usage = WireUsage()
        self._size = 0
        self._model = ""
        self._begun = False
        self._stop = ""
        self._stop_details = ""
        self._cut = False

    @property
    def begun(self) -> bool:
        """Whether anything of an answer has come."""
        return self._begun

    @property
    def ended(self) -> bool:
        """Whether the answer is whole: the endpoint said why it stopped."""
        return bool(self._stop)

    def cut(self, reason: StopReason) -> None:
        """End the answer here, as what follows is of no use; its tokens are estimated."""
        self._stop, self._cut = reason.value, True

    def take(self, event: WireEvent) -> Piece | None:
        """Add an event; what is new for a watcher, None when nothing is.

        Raises:
            ModelError: UNREADABLE where the event does not fit what came before.
        """
        match event.type:
            case "message_start":
                self._begun = True
                if event.message is not None:
                    self._model = event.message.model
                    self._count(event.message.usage)
            case "content_block_start":
                return self._start(event)
            case "content_block_delta":
                return self._delta(event)
            case "content_block_stop":
                self._block(event.index).ended = True
            case "message_delta":
                self._end(event)
            case _:
                # Pings, message_stop, and kinds of events that will be added one day.
                pass
        return None

    def _start(self, event: WireEvent) -> Piece | None:
        start = event.content_block or {}
        kind = start.get("type")
        if not isinstance(kind, str) or event.index in self._blocks:
            raise _out_of_order(f"block {event.index} begins twice or without a type")
        if kind == "tool_use" and not all(
            isinstance(start.get(key), str) and start[key] for key in ("id", "name")
        ):
            raise _out_of_order(f"the tool call in block {event.index} has no id or no name")
        self._begun = True
        block = self._blocks[event.index] = _Open(kind, start)
        if kind == "tool_use":
            return Piece("tool", start["name"], event.index)
        first = start.get(kind)
        if kind in ("text", "thinking") and isinstance(first, str) and first:
            block.parts.append(first)
            return Piece("text" if kind == "text" else "thinking", first, event.index)
        return None

    def _delta(self, event: WireEvent) -> Piece | None:
        block, delta = self._block(event.index), event.delta or WireDelta()
        match block.kind, delta.type:
            case "text", "text_delta":
                return self._add(block, Piece("text", delta.text, event.index))
            case "thinking", "thinking_delta":
                return self._add(block, Piece("thinking", delta.thinking, event.index))
            case "tool_use", "input_json_delta":
                return self._add(block, Piece("tool_input", delta.partial_json, event.index))
            case "thinking", "signature_delta":
                block.signature = delta.signature
        return None

    def _add(self, block: _Open, piece: Piece) -> Piece | None:
        self._size += len(piece.text)
        if self._size > ANSWER_LIMIT:
            raise ModelError(
                ModelErrorKind.UNREADABLE,
                f"the answer is longer than {ANSWER_LIMIT:,} characters: "
                "the endpoint does not keep to max_tokens",
            )
        block.parts.append(piece.text)
        return piece if piece.text else None

    def _block(self, index: int) -> _Open:
        block = self._blocks.get(index)
        if block is None:
            raise _out_of_order(f"block {index} goes on before it begins")
        return block

    def _end(self, event: WireEvent) -> None:
        if event.usage is not None:
            self._count(event.usage)
        delta = event.delta
        if delta is None or not delta.stop_reason:
            return
        self._stop = delta.stop_reason
        details = delta.stop_details
        if details is not None:
            self._stop_details = details.explanation or details.category or ""
        elif delta.stop_sequence:
            self._stop_details = delta.stop_sequence

    def _count(self, usage: WireUsage) -> None:
        # Counts are totals so far, and what a later event leaves out stands as it was.
        self._usage = self._usage.model_copy(
            update={name: value for name, value in usage if value is not None}
        )

    def answer(self, *, partial: bool = False) -> ModelAnswer:
        """The answer as far as it has come."""
        content = tuple(_closed(self._blocks[index]) for index in sorted(self._blocks))
        stop = None if partial else _stop_reason(self._stop)
        stop_words = ": ".join(part for part in (self._stop, self._stop_details) if part)
        return ModelAnswer(content, stop, stop_words, self._used(content), self._model, partial=partial)

    def _used(self, content: tuple[Block, ...]) -> Usage:
        used = self._usage
        written = used.cache_creation_input_tokens or 0
        hour = min(used.cache_creation.ephemeral_1h_input_tokens, written) if used.cache_creation else 0
        # The count at the start is of the first token only; the whole one comes with the reason to stop.
        counted = used.output_tokens is not None and self.ended and not self._cut
        output = used.output_tokens or 0
        if not counted:
            texts = ("".join(block.parts) for block in self._blocks.values())
            output = max(output, sum(map(estimate_tokens, texts)))
        asked = used.input_tokens
        if asked is None:
            asked = sum(tokens for _, tokens in self._request.shares())
        read = used.cache_read_input_tokens or 0
        estimated = not counted or used.input_tokens is None
        return Usage(asked, output, read, written - hour, hour, estimated)


def _out_of_order(what: str) -> ModelError:
    return ModelError(
        ModelErrorKind.UNREADABLE,
        f"the endpoint's stream is out of order: {what}: check that it is one of the Messages API",
    )


def _stop_reason(event: str) -> StopReason:
    try:
        return StopReason(event)
    except ValueError:
        return StopReason.UNKNOWN


def _closed(block: _Open) -> Block:
    text = "".join(block.parts)
    match block.kind:
        case "text":
            return Text(text)
        case "thinking":
            return Thinking(text, block.signature)
        case "tool_use":
            return _tool_use(block, text)
        case _:
            return Opaque(block.start)


def _tool_use(block: _Open, text: str) -> ToolUse:
    name, tool_id = block.start["name"], block.start["id"]
    if not text:
        # Some servers send the input at once.
        given = block.start.get("input")
        return ToolUse(tool_id, name, given if isinstance(given, dict) else {})
    try:
        value = read_json(text)
    except StrictJsonError as error:
        why = str(error) if block.ended else "the answer ended before the input did"
        return ToolUse(tool_id, name, fault=why, raw=text)
    if not isinstance(value, dict):
        return ToolUse(tool_id, name, fault="the input is no JSON object", raw=text)
    return ToolUse(tool_id, name, value)


# ------------------------------------------------------------------ when an answer is cut

REPEATED = 40 * CHARACTERS_PER_TOKEN
"""Characters that count as a repetition where they come three times in a row."""
LONGEST_PERIOD = 25 * REPEATED
_LONGEST_TOKEN = 8
"""Characters of a token, on average, in the longest answers of a given number of tokens."""
_SPARE = 1_000


def repeats(text: str) -> bool:
    """Whether a text ends with the same passage three times in a row, of at least forty tokens each."""
    tail = text[-REPEATED:]
    before = text.rfind(tail, max(0, len(text) - LONGEST_PERIOD - REPEATED), len(text) - 1)
    period = len(text) - len(tail) - before
    if len(tail) < REPEATED or before < 0 or period > LONGEST_PERIOD:
        return False
    length = 3 * max(period, REPEATED)
    end = text[-length:]
    return len(end) == length and end[period:] == end[:-period]


class Runaway:
    """Watches one answer come."""

    def __init__(self, request: ModelRequest) -> None:
        self._schema = request.json_schema
        self._longest = request.max_tokens * _LONGEST_TOKEN + _SPARE
        self._size = 0
        self._looked = 0
        self._texts: dict[int, str] = {}
        self._passed = 0
        self._ended = False

    def take(self, piece: Piece) -> StopReason | None:
        """Why the answer is to be cut after a piece; None where it goes on."""
        if piece.kind not in ("text", "thinking", "tool_input"):
            return None
        if self._ended:
            # One more piece is waited for, since most servers end by themselves, and say what it took.
            return StopReason.END_TURN
        text = self._texts[piece.block] = self._texts.get(piece.block, "") + piece.text
        self._size += len(piece.text)
        if piece.kind == "text" and self._schema is not None and "}" in piece.text:
            self._ended = self._whole(text)
        if self._size > self._longest:
            return StopReason.MAX_TOKENS
        if self._size - self._looked >= REPEATED:
            self._looked = self._size
            if repeats(text):
                return StopReason.REPETITION
        return None

    def _whole(self, text: str) -> bool:
        """Whether an object of the answer's schema is whole in a text, behind those that were passed."""
        names = (self._schema or {}).get("properties", {})
        while (begin := text.find("{", self._passed)) >= 0:
            try:
                value, self._passed = first_json(text, begin)
            except StrictJsonError:
                return False
            # Some models say the schema again before they answer.
            if not names or any(name in names for name in value):
                return True
        return False
