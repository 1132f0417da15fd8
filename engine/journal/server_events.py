"""The kinds of events by which an operator lets servers of `mcp.json` start; of the workspace's stream."""

from __future__ import annotations

from typing import ClassVar

from engine.journal.payload import Payload


class ServerTrusted(Payload):
    """The operator lets a server start, as its entry is now."""

    kind: ClassVar[str] = "mcp.trusted"
    server: str
    entry: str
    """SHA-256 of the entry (`engine.mcp.leave.entry_of`); another entry of that name has no leave."""
    what: str
    """The command line or the address, as it was shown; cut where it is very long."""
    seal: str
    """Shows that it was given here: see `engine.mcp.leave.Leave`."""


class ServerDistrusted(Payload):
    """The operator does not let a server start, or not any more."""

    kind: ClassVar[str] = "mcp.distrusted"
    server: str
    entry: str
