"""The context meter: what the model was told, from the journal, while it is asked and later."""

from __future__ import annotations

from pathlib import Path

import pytest
from flight import cockpit

from app.commands.settings import Settings
from engine.core import commands as cmd
from engine.core.budgets import SpendingLimits
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.messages_server import MessagesServer, plan_call
from tests.rounds import sizes
from widgets.base.dialog import TextDialog
from widgets.base.facts import LongText
from widgets.dialogs.lists import ContextDialog

SECRET = "sk-not-for-the-screen-456"


def make(name: str) -> dict[str, object]:
    args = {"path": name}
    params = {"tool_id": "simple_coder", "command": "mkdir", "args": args}
    return {"type": "EXECUTE_TOOL", "id": "one", "description": "make it", "params": params}


def settings(server: MessagesServer, home: Path) -> Settings:
    endpoint = Endpoint(server.url, SECRET)
    choice = ModelChoice(endpoint, "claude-opus-4-6", budget=SpendingLimits(), retries=Retries(attempts=1))
    return Settings(home=home, model=choice)


@pytest.mark.parametrize("size", sizes((80, 24), (160, 45)))
async def test_the_meter_shows_the_prompt_exactly_as_it_was_sent_last(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with MessagesServer([plan_call(make("made")), plan_call(make("more"))]) as server:
        chosen = settings(server, tmp_path / "home")
        async with cockpit(tmp_path / "ws", size=size, settings=chosen) as flight:
            await flight.press("escape", "c")
            await flight.dialog(TextDialog)
            await flight.shows("No model was asked yet")
            await flight.press("escape")
            await flight.no_dialog()

            await flight.type("goal make a directory 'made'")
            await flight.until(lambda: flight.state.goals, "the goal")
            await flight.type("run")
            await flight.until(lambda: flight.state.model_calls == 1, "the call")
            await flight.press("escape", "c")
            await flight.dialog(TextDialog)
            await flight.shows("role", "goal", "in all", "$0.0010")
            await flight.press("Y")
            await flight.until(lambda: flight.app.clipboard, "the prompt")
            sent = server.requests[0].body
            words = [block["text"] for block in sent["system"]]
            words += [block["text"] for message in sent["messages"] for block in message["content"]]
            assert all(text in flight.app.clipboard for text in words)
            assert SECRET not in flight.app.clipboard

            # Another call is shown when the meter is opened again.
            await flight.press("q")
            await flight.no_dialog()
            await flight.engine.submit(cmd.AdoptGoal(agent="pilot-1", text="make a directory 'more'"))
            await flight.until(lambda: flight.state.model_calls == 2, "the second call")
            await flight.press("escape", "c")
            await flight.dialog(TextDialog)
            text = flight.app.screen.query_one(LongText)
            await flight.until(lambda: "for g2" in text.sections[1].text, "the second call in the meter")
            # With what was recalled, it is longer than a small screen.
            await flight.press("down", "down", "down")
            await flight.shows("g1 make a directory", "g2 make a directory", "in all 2 calls")


async def test_an_agent_without_a_model_says_why_there_is_no_prompt(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.type("context")
        await flight.dialog(TextDialog)
        await flight.shows("it plans by the plan library")
        await flight.press("q")
        await flight.no_dialog()


async def test_what_the_prompt_left_out_is_brought_back_with_one_key(tmp_path: Path) -> None:
    async with (
        MessagesServer([plan_call(make("made"))]) as server,
        cockpit(tmp_path / "ws", settings=settings(server, tmp_path / "home")) as flight,
    ):
        await flight.type("goal make a directory 'made'")
        await flight.until(lambda: flight.state.goals, "the goal")
        await flight.type("run")
        await flight.until(lambda: flight.state.actions == 1 and not flight.state.open_goals, "the end")
        await flight.type("guide plan: be brief")
        await flight.press("escape", "c")
        await flight.dialog(ContextDialog)
        await flight.shows("left out", "a1", "mkdir made", "not taken up yet; it waits: in the next plan")
        await flight.press("r")
        await flight.until(lambda: flight.state.restored, "what was brought back")
        assert flight.state.restored[0].what == "a1"
        await flight.type("unpin a1")
        await flight.until(lambda: not flight.state.restored, "what was let go")
