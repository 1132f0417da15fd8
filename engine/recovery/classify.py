"""From what a failure is made of to one failure kind, whatever the wording.

A status code or an error code says the kind by itself; what a tool raises is put under an error code by
its type. Words are looked at only where an exception's type says nothing: mindX's classification by
substrings of prose misjudged its own messages (spec mindX §2.7, master-loop W27).
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping

from engine.domain.action import ErrorCode
from engine.domain.failure import FailureKind as Kind
from engine.models import ModelError, ModelErrorKind

_KINDS: Mapping[ErrorCode, Kind] = {
    ErrorCode.UNKNOWN_TOOL: Kind.TOOL_UNAVAILABLE,
    ErrorCode.UNKNOWN_COMMAND: Kind.TOOL_UNAVAILABLE,
    ErrorCode.BAD_ARGUMENTS: Kind.INVALID_PARAMETERS,
    ErrorCode.NOT_FOUND: Kind.INVALID_PARAMETERS,
    ErrorCode.WRONG_TYPE: Kind.INVALID_PARAMETERS,
    ErrorCode.EXISTS: Kind.INVALID_PARAMETERS,
    ErrorCode.TOO_LARGE: Kind.INVALID_PARAMETERS,
    ErrorCode.NOT_TEXT: Kind.INVALID_PARAMETERS,
    ErrorCode.OUTSIDE_ROOT: Kind.PERMISSION_ERROR,
    ErrorCode.NOT_ALLOWED: Kind.PERMISSION_ERROR,
    ErrorCode.PERMISSION: Kind.PERMISSION_ERROR,
    ErrorCode.EXIT_STATUS: Kind.TOOL_EXECUTION_ERROR,
    ErrorCode.TIMEOUT: Kind.TOOL_EXECUTION_ERROR,
    ErrorCode.NO_SPACE: Kind.TOOL_EXECUTION_ERROR,
    ErrorCode.NETWORK: Kind.NETWORK_ERROR,
    ErrorCode.RATE_LIMIT: Kind.RATE_LIMIT_ERROR,
    ErrorCode.CANCELLED: Kind.CANCELLED,
    ErrorCode.INTERNAL: Kind.UNKNOWN_ERROR,
}

_STATUSES: Mapping[int, Kind] = {
    401: Kind.PERMISSION_ERROR,
    402: Kind.PERMISSION_ERROR,
    403: Kind.PERMISSION_ERROR,
    407: Kind.PERMISSION_ERROR,
    408: Kind.NETWORK_ERROR,
    412: Kind.DEPENDENCY_NOT_MET,
    424: Kind.DEPENDENCY_NOT_MET,
    429: Kind.RATE_LIMIT_ERROR,
    451: Kind.PERMISSION_ERROR,
    499: Kind.CANCELLED,
    501: Kind.TOOL_UNAVAILABLE,
    502: Kind.NETWORK_ERROR,
    503: Kind.NETWORK_ERROR,
    504: Kind.NETWORK_ERROR,
    529: Kind.RATE_LIMIT_ERROR,
}
"""HTTP's statuses, and of the master loop 412 and 499 (spec master-loop §3.12)."""

_MODELS: Mapping[ModelErrorKind, Kind] = {
    ModelErrorKind.AUTHENTICATION: Kind.PERMISSION_ERROR,
    ModelErrorKind.PERMISSION: Kind.PERMISSION_ERROR,
    ModelErrorKind.NOT_FOUND: Kind.TOOL_UNAVAILABLE,
    ModelErrorKind.BAD_REQUEST: Kind.INVALID_PARAMETERS,
    ModelErrorKind.TOO_LARGE: Kind.INVALID_PARAMETERS,
    ModelErrorKind.RATE_LIMIT: Kind.RATE_LIMIT_ERROR,
    ModelErrorKind.OVERLOADED: Kind.RATE_LIMIT_ERROR,
    ModelErrorKind.SERVER: Kind.NETWORK_ERROR,
    ModelErrorKind.TIMEOUT: Kind.NETWORK_ERROR,
    ModelErrorKind.NETWORK: Kind.NETWORK_ERROR,
    # A model that declines once declines again: only a person can word the goal otherwise.
    ModelErrorKind.REFUSED: Kind.PERMISSION_ERROR,
    ModelErrorKind.TRUNCATED: Kind.PLANNING_ERROR,
    ModelErrorKind.UNREADABLE: Kind.NETWORK_ERROR,
    # The agent is held before anything is recovered from.
    ModelErrorKind.BUDGET: Kind.PERMISSION_ERROR,
}

_TYPES: tuple[tuple[type[BaseException], ErrorCode], ...] = (
    (asyncio.CancelledError, ErrorCode.CANCELLED),
    (TimeoutError, ErrorCode.TIMEOUT),
    (ConnectionError, ErrorCode.NETWORK),
    (PermissionError, ErrorCode.PERMISSION),
    (FileNotFoundError, ErrorCode.NOT_FOUND),
    (FileExistsError, ErrorCode.EXISTS),
    (IsADirectoryError, ErrorCode.WRONG_TYPE),
    (NotADirectoryError, ErrorCode.WRONG_TYPE),
    (UnicodeError, ErrorCode.NOT_TEXT),
)
_ERRNOS: Mapping[int, ErrorCode] = {
    errno.ENOSPC: ErrorCode.NO_SPACE,
    errno.EDQUOT: ErrorCode.NO_SPACE,
    errno.EFBIG: ErrorCode.TOO_LARGE,
    errno.EROFS: ErrorCode.PERMISSION,
    errno.ENETUNREACH: ErrorCode.NETWORK,
    errno.ENETDOWN: ErrorCode.NETWORK,
    errno.EHOSTUNREACH: ErrorCode.NETWORK,
}
_WORDS: tuple[tuple[str, ErrorCode], ...] = (
    ("rate limit", ErrorCode.RATE_LIMIT),
    ("too many requests", ErrorCode.RATE_LIMIT),
    ("permission denied", ErrorCode.PERMISSION),
    ("access denied", ErrorCode.PERMISSION),
    ("timed out", ErrorCode.TIMEOUT),
    ("connection refused", ErrorCode.NETWORK),
    ("connection reset", ErrorCode.NETWORK),
    ("name resolution", ErrorCode.NETWORK),
    ("no space left", ErrorCode.NO_SPACE),
)


def classify(code: ErrorCode, status: object = None) -> Kind:
    """The one failure kind of what a tool answered.

    Args:
        code: the answer's error code.
        status: the status code that came with it, if it is one; it says more than the code.
    """
    return (kind_of_status(status) if isinstance(status, int) else None) or _KINDS[code]


def kind_of_status(status: int) -> Kind | None:
    """The failure kind of an HTTP status; None when it is no failure."""
    if status in _STATUSES:
        return _STATUSES[status]
    if 400 <= status < 500:
        return Kind.INVALID_PARAMETERS
    return Kind.TOOL_EXECUTION_ERROR if 500 <= status < 600 else None


def kind_of_model_error(error: ModelError) -> Kind:
    """The failure kind of a call of a model; its own kind was given by status and exception already."""
    return _MODELS[error.kind]


def code_of(error: BaseException) -> ErrorCode:
    """The error code of an exception: by its type, its number, and only then by what it says."""
    for known, code in _TYPES:
        if isinstance(error, known):
            return code
    if isinstance(error, OSError):
        return _ERRNOS.get(error.errno or 0, ErrorCode.INTERNAL)
    if isinstance(error, ArithmeticError | AssertionError | AttributeError | LookupError | TypeError):
        return ErrorCode.INTERNAL
    said = str(error)[:2_000].casefold()
    return next((code for words, code in _WORDS if words in said), ErrorCode.INTERNAL)
