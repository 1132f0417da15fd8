"""Uses of an engine from away: who came with which token, from where, and what was refused.

Events and commands; they stand in the workspace's stream.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.core.command import Command
from engine.core.journal import Payload

Use = Literal["login", "logout", "cockpit", "answer", "stop", "refused"]
Short = Annotated[str, Field(max_length=64)]


class AccessUsed(Payload, kind="access.used"):
    """A token was used, or a use was refused; what it did to agents stands in their own streams."""

    use: Use
    token: str = ""
    """Its name; empty where none was known."""
    scope: str = ""
    address: str = ""
    """From where, as the server saw it."""
    code: str = ""
    """Why it was refused, such as `token.wrong`."""
    count: int = 1
    """How many alike came since the last that was recorded."""


class RecordAccess(Command, do="record_access"):
    """Record a use of a token; the server of web pages gives it."""

    use: Use
    token: Short = ""
    scope: Short = ""
    address: Short = ""
    code: Short = ""
    count: int = Field(default=1, ge=1, le=1_000_000_000)
