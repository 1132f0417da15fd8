"""A model at the helm as the operator sees it: how to get one, what it says as it says it, cutting it off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from flight import Flight, cockpit

from app.commands.settings import Settings
from engine.core import events as ev
from engine.core.agents import RunState
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.messages_server import MessagesServer, Reply, plan_call

NO_MODEL = "no model is set, so recipes plan: see ?"
THOUGHT = "I think that a directory comes first, and then a file in it, and then I look at both. "


@asynccontextmanager
async def with_model(workspace: Path, *script: Reply) -> AsyncIterator[tuple[Flight, MessagesServer]]:
    """A cockpit whose agent thinks by the scripted model."""
    async with MessagesServer(list(script)) as server:
        choice = ModelChoice(Endpoint(server.url), "claude-opus-4-6", retries=Retries(attempts=1))
        settings = Settings(home=workspace.parent / "home", model=choice)
        async with cockpit(workspace, settings=settings) as flight:
            yield flight, server


async def asked(flight: Flight, server: MessagesServer) -> None:
    """Give a goal and let the agent run until the model holds in the middle of its answer."""
    await flight.type("goal make a directory")
    await flight.until(lambda: flight.state.open_goals, "the goal")
    await flight.press("escape", "space")
    await flight.until(server.held.is_set, "the model in the middle of its answer")


async def test_the_key_cuts_the_stream_and_what_had_come_is_kept_and_marked(tmp_path: Path) -> None:
    held = Reply(text=THOUGHT, after=9, then="hold")
    async with with_model(tmp_path / "ws", held) as (flight, server):
        await asked(flight, server)
        await flight.shows("I think that a directory")
        assert "cut off" not in flight.text
        await flight.press("full_stop")
        await flight.shows("I think that a directory", "cut off")
        (call,) = await flight.journal(ev.ModelCalled)
        assert (call.partial, call.error) == (True, "")
        kept = call.answer["content"][0]["text"]
        assert kept
        assert THOUGHT.startswith(kept)
        assert "".join(piece.text for piece in await flight.journal(ev.ModelSaid)) == kept
        assert (flight.state.run, flight.state.plans) == (RunState.STOPPED, {})
        await server.emptied()


async def test_after_a_cut_the_agent_asks_anew_and_goes_on(tmp_path: Path) -> None:
    step = {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": "ls", "args": {}}}
    held = Reply(text=THOUGHT, after=9, then="hold")
    async with with_model(tmp_path / "ws", held, plan_call(step)) as (flight, server):
        await asked(flight, server)
        await flight.press("full_stop")
        await flight.shows("cut off")
        await flight.press("space")
        await flight.until(
            lambda: flight.state.actions == 1 and not flight.state.open_goals, "the goal's end"
        )
        assert [call.partial for call in await flight.journal(ev.ModelCalled)] == [True, False]


async def test_without_a_model_the_cockpit_says_so_once_and_how_to_have_one(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        await flight.says(NO_MODEL)
        await flight.press("question_mark")
        await flight.until(lambda: len(flight.app.screen_stack) == 2, "the help")
        shown = {key for group in flight.app.screen.groups.values() for key, _ in group}
        assert {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "PILOTHOUSE_MODEL"} <= shown
        await flight.press("escape")
        await flight.goal("create a file named notes.txt")
        assert flight.state.config.thinker == "procedural"
    async with cockpit(tmp_path / "ws") as flight:
        await flight.until(lambda: flight.steps, "the plan of before")
        assert NO_MODEL not in flight.message


async def test_with_a_model_nothing_is_said_of_one_and_new_agents_think_by_it(tmp_path: Path) -> None:
    async with with_model(tmp_path / "ws") as (flight, server):
        await flight.says("press : and type")
        assert NO_MODEL not in flight.message
        assert flight.state.config.thinker == "claude"
        assert server.requests == []
