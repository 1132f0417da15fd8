"""From a tool's structured error code to one failure kind, whatever the wording.

The same table maps the names of the master loop (in brackets in ARCHITECTURE.md §3); mindX's
classification by substrings of prose misjudged its own messages (spec mindX §2.7).
"""

from __future__ import annotations

from engine.domain.action import ErrorCode
from engine.domain.failure import FailureKind as Kind

_KINDS: dict[ErrorCode, Kind] = {
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


def classify(code: ErrorCode) -> Kind:
    """The one failure kind of an error code."""
    return _KINDS[code]
