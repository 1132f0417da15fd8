"""What the crew knows of MCP servers: whether an agent's tools are there, and each change as an event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.crew.spine import Spine
from engine.journal import crew_events as ce

if TYPE_CHECKING:
    from engine.mcp.fleet import Servers
    from engine.mcp.health import ServerView


class ServerHealth:
    """Asks the servers (`engine.crew.parts.Health`).

    Args:
        servers: the workspace's.
        spine: where their changes go.
    """

    def __init__(self, servers: Servers, *, spine: Spine) -> None:
        self._servers, self._spine = servers, spine
        for view in servers.views:
            self._told(view)
        servers.follow(self._told)

    async def down(self, server: str, tools: Sequence[str]) -> str:
        """See `Health`."""
        return (await self._servers.meets(server, tools)).message

    def _told(self, view: ServerView) -> None:
        known = self._spine.state.servers.get(view.name)
        now = (view.state.value, view.error, len(view.tools))
        if not self._spine.closed and (known is None or (known.state, known.message, known.tools) != now):
            said = ce.ServerTold(server=view.name, state=now[0], message=now[1], tools=now[2])
            self._spine.append(said)
