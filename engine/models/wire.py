"""Events of a streamed answer, checked where they come in from the network."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.domain.strict_json import StrictJsonError, read_json
from engine.domain.text import clean_line
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.sse import ServerEvent


class _Wire(BaseModel):
    # The API may add fields at any time; those that are here must be of their type.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class WireCache(_Wire):
    """How the tokens written to the cache divide."""

    ephemeral_1h_input_tokens: int = Field(default=0, ge=0)
    ephemeral_5m_input_tokens: int = Field(default=0, ge=0)


class WireUsage(_Wire):
    """Counts of tokens; each one may be left out."""

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cache_read_input_tokens: int | None = Field(default=None, ge=0)
    cache_creation_input_tokens: int | None = Field(default=None, ge=0)
    cache_creation: WireCache | None = None


class WireMessage(_Wire):
    """The beginning of an answer."""

    id: str = ""
    model: str = ""
    usage: WireUsage = WireUsage()


class WireStopDetails(_Wire):
    """What the endpoint says about a refusal."""

    category: str | None = None
    explanation: str | None = None


class WireDelta(_Wire):
    """What came anew: of a block by `type`, of a message without."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: WireStopDetails | None = None


class WireError(_Wire):
    """What went wrong at the endpoint while it answered."""

    type: str = ""
    message: str = ""


class WireEvent(_Wire):
    """One event; which fields count depends on its type."""

    type: str
    index: int = Field(default=0, ge=0, le=100_000)
    message: WireMessage | None = None
    content_block: dict[str, Any] | None = None
    delta: WireDelta | None = None
    usage: WireUsage | None = None
    error: WireError | None = None


_STREAM_ERRORS = {
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


def wire_event(event: ServerEvent) -> WireEvent:
    """The event that a server sent.

    Raises:
        ModelError: UNREADABLE where it is none; the error's own kind where the server reports one.
    """
    try:
        value = read_json(event.data)
        if isinstance(value, dict) and "type" not in value and event.name:
            value["type"] = event.name
        wire = WireEvent.model_validate(value)
    except StrictJsonError as error:
        raise _unreadable(event, str(error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        raise _unreadable(event, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if wire.type == "error":
        said = wire.error or WireError()
        raise ModelError(
            _STREAM_ERRORS.get(said.type, ModelErrorKind.SERVER),
            f"the model's endpoint broke the answer off: {clean_line(said.message or said.type, limit=300)}",
        )
    return wire


def _unreadable(event: ServerEvent, why: str) -> ModelError:
    name = clean_line(event.name, limit=60) or "an event"
    return ModelError(
        ModelErrorKind.UNREADABLE,
        f"the endpoint's stream cannot be read: {name}: {clean_line(why, limit=300)}: "
        "check that the address is one of the Messages API",
    )
