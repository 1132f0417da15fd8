"""Leave for MCP servers in the cockpit: told on opening, asked in the inbox, answered where all is shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from flight import cockpit

from app.commands.settings import Settings
from engine.tools.mcp.health import ServerState
from widgets.dialogs.approvals import PermissionDialog
from widgets.dialogs.lists import InboxDialog
from widgets.dialogs.preview import PreviewDialog

PLAIN = Path(__file__).parents[2] / "engine/tools/mcp/servers" / "plain.py"


async def test_the_inbox_asks_before_a_server_starts_and_shows_all_of_it(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    entry = {"command": sys.executable, "args": [str(PLAIN), "\x1b[2J\u202eevil"], "env": {"TOLD": "hush"}}
    other = {"command": "/bin/false"}
    (workspace / "mcp.json").write_text(json.dumps({"plain": entry, "other": other}))
    async with cockpit(workspace, settings=Settings(home=tmp_path / "home")) as flight:
        await flight.says("plain, other wait for your permission to start: A shows what")
        servers = flight.engine.servers
        assert servers is not None

        def states() -> dict[str, ServerState]:
            return {view.name: view.state for view in servers.views}

        await flight.press("A")
        await flight.dialog(InboxDialog)
        await flight.shows("plain of mcp.json would start", "other of mcp.json would start: /bin/false")
        await flight.press("a")
        await flight.dialog(PermissionDialog)
        await flight.shows("May plain start?", "\\x1b[2J\\u202eevil", "TOLD", str(workspace))
        assert "hush" not in flight.text
        await flight.press("enter")
        assert isinstance(flight.app.screen, PermissionDialog), "no habit agrees"
        await flight.press("y")
        await flight.until(lambda: states()["plain"] is ServerState.OK, "the server")
        assert states()["other"] is ServerState.WAITING

        await flight.press("A")
        await flight.dialog(InboxDialog)
        await flight.shows("other of mcp.json would start")
        await flight.press("d")
        await flight.shows("Nothing needs you.")
        assert servers.asked[0].refused
        await flight.press("escape")
        await flight.type("mcp_distrust plain")
        await flight.until(lambda: states()["plain"] is ServerState.WAITING, "its end")
        await flight.type("mcp_trust plain ?")
        await flight.dialog(PreviewDialog)
        await flight.shows("starts", "\\x1b[2J", "undo")
        await flight.press("enter")
        await flight.until(lambda: states()["plain"] is ServerState.OK, "the server again")
