"""Leave for MCP servers of the workspace: asked on opening and in the inbox, answered where all is shown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.cockpit.mind_keys import MindKeys
from engine.domain.server_commands import DistrustServer, TrustServer

if TYPE_CHECKING:
    from engine.mcp.starting import Entry


class ServerKeys(MindKeys):
    """Letting servers start."""

    def _tell_of_servers(self) -> None:
        """Say that servers wait for leave, where some do."""
        servers = self._engine.servers if self._engine is not None else None
        names = [one.server for one in servers.asked if not one.refused] if servers is not None else []
        if names:
            wait = "waits" if len(names) == 1 else "wait"
            self._say(f"mcp.json: {', '.join(names)} {wait} for your leave to start: A shows what", "asks")

    def _ask_leave(self, name: str, *, refuse: bool = False) -> None:
        """Show a server's whole entry and ask whether it may start, or say at once that it may not."""
        servers = self._engine.servers if self._engine is not None else None
        entry = next((one for one in servers.asked if one.server == name), None) if servers else None
        if entry is None:
            self._say(f"{name} does not wait for your leave", "note")
        elif refuse:
            self._send(DistrustServer(server=name))
        else:
            from widgets.dialogs.leave import LeaveDialog, LeaveModel

            model = LeaveModel(entry.server, entry.entry, entry.facts)
            self.push_screen(LeaveDialog(model), partial(self._leave_said, entry))

    def _leave_said(self, entry: Entry, yes: bool | None) -> None:
        if yes is None:
            self._say(f"{entry.server} goes on waiting; A shows all that waits", "note")
        elif yes:
            self._send(TrustServer(server=entry.server, entry=entry.entry))
        else:
            self._send(DistrustServer(server=entry.server))
