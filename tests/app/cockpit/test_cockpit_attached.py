"""The cockpit on an engine that it has not opened itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit
from textual import events

from app.cockpit.controllers.panes import OTHERS_SHELL
from app.cockpit.controllers.turn import ShellPane
from app.commands.headless import open_engine
from app.gateways.socket_server import EngineServer
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from widgets.dialogs.preview import RewindDialog
from widgets.dialogs.turn import HandBackDialog, HandoverDialog

HAND_BACK = "ctrl+right_square_bracket"
SERVERS = '{"mcpServers": {"clock": {"command": "clock-server", "args": ["--utc"]}}}'


@pytest.fixture
async def attached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Flight]:
    """A cockpit that is attached to an engine of this program."""
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "mcp.json").write_text(SERVERS)
    async with open_engine(workspace, EngineConfig(home=tmp_path / "home")) as engine:
        server = EngineServer(engine, "serve")
        await server.begin()
        await engine.submit(cmd.CreateAgent(agent="pilot-1"))
        async with cockpit(workspace) as flight:
            yield flight
        await server.close()


async def test_a_shell_is_taken_typed_into_and_handed_back(attached: Flight) -> None:
    layout = attached.app.controllers.layout
    await attached.press("t")
    await attached.until(lambda: layout.terminal is not None and layout.terminal.has_focus, "the shell")
    await attached.shows("YOU HOLD THE SHELL", "$ ")
    assert isinstance(layout.terminal, ShellPane)
    layout.terminal.post_message(events.Paste("echo $((6*7)) > a.txt; cat a.txt; stty size"))
    await attached.press("enter")
    place = layout.terminal.content_size
    await attached.shows("42", f"{place.height} {place.width}")
    await attached.press(HAND_BACK)
    await attached.dialog(HandBackDialog)
    await attached.press("enter")
    await attached.dialog(HandoverDialog)
    await attached.shows("a.txt")


async def test_a_shell_that_another_operator_took_waits_to_be_gone_to(attached: Flight) -> None:
    layout, engine = attached.app.controllers.layout, attached.app.context.engine
    assert engine is not None
    assert (await engine.submit(cmd.TakeShell(agent="pilot-1"))).ok
    await attached.until(lambda: attached.state.shell_taken, "the shell")
    await attached.shows(OTHERS_SHELL)
    assert layout.terminal is None
    await attached.press("t")
    await attached.until(lambda: layout.terminal is not None and layout.terminal.has_focus, "the shell")
    await engine.submit(cmd.ReturnShell(agent="pilot-1"))
    await attached.until(lambda: layout.terminal is None, "the end of the shell")


async def test_a_rewind_is_previewed_and_done(attached: Flight) -> None:
    await attached.type("believe lamp on")
    await attached.until(lambda: "lamp" in attached.state.beliefs, "the belief")
    await attached.type("rewind 2")
    await attached.dialog(RewindDialog)
    await attached.shows("lamp", "Cannot be undone")
    await attached.press("y")
    await attached.until(lambda: "lamp" not in attached.state.beliefs, "the rewind")


async def test_permission_for_a_server_is_asked_and_given(attached: Flight) -> None:
    await attached.says("clock waits for your permission to start")
    await attached.type("mcp_trust clock ?")
    await attached.shows("clock-server")
