"""What can go wrong with a call of a model, as one exception with a kind."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.core.recovery import FailureKind

if TYPE_CHECKING:
    from engine.models.messages import ModelAnswer


class ModelErrorKind(StrEnum):
    """Kinds of failed calls; recovery goes by these, never by words."""

    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    """The key may not do this, or the account is out of credit."""
    NOT_FOUND = "not_found"
    """The endpoint knows no such model or address."""
    BAD_REQUEST = "bad_request"
    TOO_LARGE = "too_large"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"
    """The endpoint failed by itself."""
    TIMEOUT = "timeout"
    NETWORK = "network"
    """No connection, or it broke before the answer was whole."""
    REFUSED = "refused"
    """The model declined to answer."""
    TRUNCATED = "truncated"
    """The answer reached its limit of tokens before it was whole."""
    UNREADABLE = "unreadable"
    """What came is no answer of the Messages API, or not of the form that was asked for."""
    BUDGET = "budget"
    """The call was not made, as it could break a budget."""


RETRIED = frozenset(
    {
        *(ModelErrorKind.RATE_LIMIT, ModelErrorKind.OVERLOADED, ModelErrorKind.SERVER),
        *(ModelErrorKind.TIMEOUT, ModelErrorKind.NETWORK, ModelErrorKind.UNREADABLE),
    }
)
"""Kinds that may pass by themselves; all others would come again."""


ATTEMPTS: Mapping[ModelErrorKind, int] = {ModelErrorKind.UNREADABLE: 2}
"""How often a call is made at most, where that is less than `Retries` says."""
CANNOT_ANSWER = frozenset(
    {
        *(ModelErrorKind.PERMISSION, ModelErrorKind.NOT_FOUND, ModelErrorKind.TOO_LARGE),
        *(ModelErrorKind.RATE_LIMIT, ModelErrorKind.OVERLOADED, ModelErrorKind.SERVER),
        ModelErrorKind.TIMEOUT,
    }
)
"""Kinds after which another model of the same endpoint is asked, where the settings name one."""


class ModelError(Exception):
    """A call of a model failed; the message says what happened and what to do, and holds no key."""

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        request_id: str = "",
        retries: int = 0,
        answer: ModelAnswer | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        """HTTP status, where one came."""
        self.retry_after_s = retry_after_s
        """Seconds that the endpoint asked to wait."""
        self.request_id = request_id
        self.retries = retries
        """Retries made before giving up."""
        self.answer = answer
        """What had come of the answer, marked as partial unless the model itself ended it."""

    def __repr__(self) -> str:
        return f"ModelError({self.kind.name}, {self.message!r}, status={self.status})"


_FAILURES: Mapping[ModelErrorKind, FailureKind] = {
    **dict.fromkeys(RETRIED, FailureKind.NETWORK_ERROR),
    **dict.fromkeys((ModelErrorKind.RATE_LIMIT, ModelErrorKind.OVERLOADED), FailureKind.RATE_LIMIT_ERROR),
    **dict.fromkeys((ModelErrorKind.BAD_REQUEST, ModelErrorKind.TOO_LARGE), FailureKind.INVALID_PARAMETERS),
    # Garbage was asked for again already: an endpoint that answers so will do it again.
    **dict.fromkeys((ModelErrorKind.NOT_FOUND, ModelErrorKind.UNREADABLE), FailureKind.TOOL_UNAVAILABLE),
    ModelErrorKind.TRUNCATED: FailureKind.PLANNING_ERROR,
}
"""All others are refusals, which would come again."""


def kind_of_model_error(error: ModelError) -> FailureKind:
    """The failure kind of a call of a model; its own kind was given by status and exception already."""
    return _FAILURES.get(error.kind, FailureKind.PERMISSION_ERROR)
