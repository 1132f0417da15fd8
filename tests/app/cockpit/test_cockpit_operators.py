"""A cockpit beside another operator: edits that collide, and the controls that somebody asks for."""

from __future__ import annotations

import json
from pathlib import Path

from flight import cockpit
from textual.widgets import TextArea

from app.commands.settings import Settings
from engine.core import commands as cmd
from tests.app.gateways.sockets import client_of
from widgets.dialogs.lists import InboxDialog
from widgets.dialogs.step_editor import StepEditor
from widgets.panes.status_bar import StatusBar

MINE = '{"command": "echo mine"}'


async def test_what_another_changed_is_shown_beside_what_was_typed_and_not_overwritten(
    tmp_path: Path,
) -> None:
    async with cockpit(tmp_path / "ws", settings=Settings(home=tmp_path / "home", operator="ann")) as flight:
        await flight.goal("run 'echo one', run 'echo two'")
        await flight.press("e")
        await flight.dialog(StepEditor)
        flight.app.screen.query_one("#args", TextArea).text = MINE
        await flight.pilot.pause()
        edit = cmd.EditStep(agent="pilot-1", step="s1", args={"command": "echo theirs"})
        assert (await flight.engine.submit(edit, operator="bob")).ok
        await flight.press("ctrl+s")
        await flight.shows("bob changed step s1 since you began", "echo theirs")
        await flight.dialog(StepEditor)
        assert json.loads(flight.app.screen.query_one("#args", TextArea).text) == json.loads(MINE)
        assert flight.state.step.args == {"command": "echo theirs"}
        await flight.press("ctrl+s")  # now that it was seen
        await flight.until(lambda: flight.state.step.args == {"command": "echo mine"}, "the edit")
        mind = [row.copy for row in flight.app.context.live._shown.mind]
        assert "bob: plan p1: step s1 edited" in mind
        assert "plan p1: step s1 edited" in mind


async def test_who_asks_for_the_controls_is_in_the_inbox_and_one_key_gives_them(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    async with cockpit(workspace, settings=Settings(home=tmp_path / "home", operator="ann")) as flight:
        await flight.until(lambda: flight.app.context.server and flight.app.context.server._server)
        async with client_of(workspace, "bob") as bob:
            await flight.until(lambda: "bob" in dict(flight.app.query_one(StatusBar)._model.others))
            await flight.type("goal run 'echo one'")
            await flight.says("you hold the controls of pilot-1 now")
            assert not (await bob.submit(cmd.Step(agent="pilot-1"))).ok
            assert (await bob.submit(cmd.AskControl(agent="pilot-1"))).ok
            await flight.says("bob asks you for the controls of pilot-1")
            await flight.press("escape", "A")
            await flight.dialog(InboxDialog)
            await flight.shows("bob asks ann for the controls")
            await flight.press("a")
            await flight.until(lambda: flight.state.control.holder == "bob", "the controls")
            await flight.press("escape")
            await flight.until(lambda: flight.app.query_one(StatusBar)._model.holder == "bob")
            assert (await bob.submit(cmd.TakeControl(agent="pilot-1"))).ok
            await flight.press("s")
            await flight.says("bob has held pilot-1 since")
            await flight.type("control take")
            await flight.says("bob had them")
            assert (await bob.submit(cmd.TakeControl(agent="pilot-1"))).ok
            await flight.says("bob took the controls of pilot-1 from you")
