"""What tests of MCP servers share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.tools.mcp.server import Server

SERVERS = Path(__file__).parent / "servers"
PLAIN = SERVERS / "plain.py"
Make = Callable[..., Server]
"""Begins a server; see the fixture `make`."""


def alive(pid: int) -> bool:
    """Whether a process is there and not dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
